// SPDX-License-Identifier: GPL-3.0-or-later
#include "view_options.h"

#include <errno.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "demangling.h"
#include "error.h"
#include "options.h"
#include "profile.h"
#include "wrappers.h"

static int parse_demangle(struct view_choice *choice, const char *name, struct error *error)
{
	static const char *const names[] = {
		[STACK_NAMES_SIMPLE] = "simple",
		[STACK_NAMES_FULL] = "full",
		[STACK_NAMES_LINKED] = "none",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], name)) {
			choice->options.names = i;
			return 0;
		}
	}
	return error__set(error, -EINVAL,
			  "unknown form of names '%s'; --demangle is simple, full or none", name);
}

static int parse_by(struct view_choice *choice, const char *list, struct error *error)
{
	for (;;) {
		size_t len = strcspn(list, ",");

		if (len == strlen("thread") && !strncmp(list, "thread", len)) {
			choice->by_thread = true;
		} else if (len == strlen("process") && !strncmp(list, "process", len)) {
			choice->by_process = true;
		} else {
			return error__set(
				error, -EINVAL,
				"unknown root '%.*s'; --by is process, thread or both with a "
				"comma",
				(int)len, list);
		}
		if (!list[len])
			return 0;
		list += len + 1;
	}
}

int view_choice__parse(struct view_choice *choice, int key, char *arg, struct error *error)
{
	switch (key) {
	case OPT_BY:
		return parse_by(choice, arg, error);
	case OPT_DEMANGLE:
		return parse_demangle(choice, arg, error);
	case OPT_DEMANGLE_COMMAND:
		choice->demangle_command = arg;
		return 0;
	case OPT_LINES:
		choice->options.lines = true;
		return 0;
	case OPT_NO_INLINE:
		choice->options.no_inline = true;
		return 0;
	case OPT_RAW_STACKS:
		choice->options.all_frames = true;
		return 0;
	case OPT_WRAPPERS:
		choice->wrappers_path = arg;
		return 0;
	default:
		return OPTIONS_UNKNOWN;
	}
}

int view_choice__check_no_comm(const struct view_choice *choice, bool no_comm, struct error *error)
{
	if (!no_comm || !choice->by_process)
		return 0;
	return error__set(error, -EINVAL,
			  "--no-comm leaves out the processes that --by=process begins with; leave "
			  "one out");
}

static void free_wrappers(struct wrappers **wrappers)
{
	wrappers__free(*wrappers);
}

static int make_view(const struct view_choice *choice, struct profile *profile,
		     struct stack_view **view, struct error *error)
{
	struct stack_view_options options = choice->options;
	_cleanup_(free_wrappers) struct wrappers *wrappers = NULL;
	int err;

	err = wrappers__load(choice->wrappers_path, &wrappers, error);
	if (err)
		return err;
	options.wrappers = wrappers;
	/*
	 * Demangle again: this machine may have more demanglers than the one of the recording.
	 * Wrappers are matched by demangled names, whichever form is printed.
	 */
	err = demangling__apply(choice->demangle_command, profile, error);
	return err ? err : stack_view__new(profile, &options, view);
}

int view_choice__open(const struct view_choice *choice, struct profile *profile,
		      struct stack_view **view, struct error *error)
{
	int err = make_view(choice, profile, view, error);

	if (err == -ENOMEM)
		return error__set(error, err, "cannot group the stacks: out of memory");
	return err;
}
