// SPDX-License-Identifier: GPL-3.0-or-later
#include "window_options.h"

#include <errno.h>

#include "command.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "number_parse.h"
#include "options.h"
#include "plural.h"
#include "session.h"

int window_options__parse(struct window_options *options, int key, char *arg, struct error *error)
{
	switch (key) {
	case OPT_WITHIN:
		options->within = arg;
		return 0;
	case OPT_START_ON:
		options->start_on = arg;
		return 0;
	case OPT_STOP_ON:
		options->stop_on = arg;
		return 0;
	case OPT_DELAY:
		return number__parse_duration(arg, &options->delay_ns, error);
	case OPT_PAUSED:
		options->paused = true;
		return 0;
	default:
		return OPTIONS_UNKNOWN;
	}
}

int window_options__check(const struct window_options *options, struct error *error)
{
	if (options->delay_ns && options->start_on)
		return error__set(
			error, -EINVAL,
			"--delay and --start-on together; give one beginning or the other");
	if (options->delay_ns && options->paused)
		return error__set(error, -EINVAL,
				  "--delay and --paused together; give one beginning or the other");
	return 0;
}

void window_options__report_gaps(const struct session_window *window)
{
	if (!window->asked_for)
		return;
	if (!window->opened)
		message__print("nothing was measured: %s", window->why);
	if (window->undecided)
		message__print(
			"not complete: %s %s and may be within",
			number__count(window->undecided).text,
			plural__of("call{|s} {has an incomplete stack|have incomplete stacks}",
				   window->undecided)
				.text);
	if (window->unnoticed)
		message__print("not complete: %s %s of the window went unnoticed",
			       number__count(window->unnoticed).text,
			       plural__of("beginning{|s} or end{|s}", window->unnoticed).text);
}

int window_options__status(const struct session_results *results)
{
	const struct session_window *window = &results->window;

	if (window->asked_for && !window->opened && results->exit_status == EXIT_GOOD)
		return EXIT_OURS;
	return results->exit_status;
}
