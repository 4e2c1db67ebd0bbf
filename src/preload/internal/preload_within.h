/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The function of --within: in which files it is, and its code there. */
#ifndef ALLOCPROF_PRELOAD_WITHIN_H
#define ALLOCPROF_PRELOAD_WITHIN_H

struct ap_within;
struct error;
struct parser;
struct preload_within;

/* @text is that of the option; @parser reads the files, and stays the caller's. -EINVAL with *@error set, -ENOMEM. */
int preload_within__new(const char *text, struct parser *parser, struct preload_within **out,
			struct error *error);
/* Accepts NULL. */
void preload_within__free(struct preload_within *within);

/* Looks into the file of the function, if that is known before the command @program runs; calls @use with it. -ESRCH: no
 * such file or function, -ENOTUNIQ: several, ... */
int preload_within__prepare(struct preload_within *within, const char *program,
			    void (*use)(int fd, void *context), void *context, struct error *error);

/* The function's code in the file @fd, which processes map; NULL: none. Valid as long as @within. */
const struct ap_within *preload_within__code(struct preload_within *within, int fd,
					     const char *path);

/* Why no call was beneath the function, a clause. */
const char *preload_within__why_none(const struct preload_within *within);

#endif
