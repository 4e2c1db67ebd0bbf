/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A list of texts, such as what a report says of calls that are missing. */
#ifndef ALLOCPROF_SENTENCES_H
#define ALLOCPROF_SENTENCES_H

#include <stddef.h>

/* Zeroed is empty. */
struct sentences {
	char **list;
	size_t n, room;
};

/* 0 or -ENOMEM. */
__attribute__((format(printf, 2, 3))) int sentences__add(struct sentences *sentences,
							 const char *format, ...);
void sentences__release(struct sentences *sentences);

#endif
