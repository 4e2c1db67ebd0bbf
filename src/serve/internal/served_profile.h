/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A copy of a recording, with what answers need of it, and profiles that are made of one or two. */
#ifndef ALLOCPROF_SERVED_PROFILE_H
#define ALLOCPROF_SERVED_PROFILE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "export.h"
#include "filter.h"
#include "http_types.h"

struct error;
struct profile;
struct stack_groups;
struct stack_view;
struct wrappers;

struct served_profile {
	unsigned int references;
	__u64 received_ns; /* CLOCK_MONOTONIC */
	__u64 taken_ns;	   /* since 1970 */
	struct http_costs costs;
	struct profile *profile;
	struct stack_view *view;
	struct stack_groups *groups;
	struct filtered filtered; /* of all */
};

/* Reads the data file @fd. The caller has a reference. Returns 0 or a negative errno with @error set. */
int served_profile__read(int fd, const struct wrappers *wrappers, const struct http_costs *costs,
			 struct served_profile **out, struct error *error);
struct served_profile *served_profile__hold(struct served_profile *served);
/* Gives up a reference; NULL is none. */
void served_profile__drop(struct served_profile *served);

/* Takes live blocks of processes that have ended from @counts: their memory is gone, whatever they have not freed. */
void served_profile__drop_ended(const struct profile *profile, struct selection *counts);

struct served_form {
	enum export_format format;
	const char *by_default; /* see struct export_input, as the following ones */
	const struct export_attribute *attributes;
	size_t n_attributes;
	bool has_all_live; /* live blocks are all that there are, of processes that have not ended, also since a base */
};

/*
 * Makes a profile of @served, of what has changed since @base if that is not NULL. The caller
 * frees *@bytes. Returns 0; -ESTALE if @base is no earlier copy of the same recording; -ENOMEM, or another
 * negative errno.
 */
int served_profile__write(const struct served_profile *served, const struct served_profile *base,
			  const struct served_form *form, char **bytes, size_t *size);

#endif
