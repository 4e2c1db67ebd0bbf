// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_options.h"

bool window_options__any(const struct window_options *options)
{
	return options->within || options->start_on || options->stop_on || options->delay_ns ||
	       options->paused;
}

bool session_options__walk(const struct session_options *options)
{
	return options->stacks || options->window.within;
}

bool session_options__have_functions(const struct session_options *options)
{
	const struct window_options *window = &options->window;

	return window->within || window->start_on || window->stop_on;
}
