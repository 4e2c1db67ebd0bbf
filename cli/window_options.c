// SPDX-License-Identifier: GPL-3.0-or-later
#include "window_options.h"

#include <errno.h>

#include "command.h"
#include "error.h"
#include "message.h"
#include "number.h"
#include "number_parse.h"
#include "options.h"
#include "profile.h"
#include "session_options.h"
#include "text.h"

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

int window_options__status(const struct profile *profile)
{
	const struct profile_totals *totals = &profile->totals;

	if (totals->window.asked_for && !totals->window.opened &&
	    totals->run.exit_status == EXIT_GOOD)
		return EXIT_OURS;
	return totals->run.exit_status;
}
