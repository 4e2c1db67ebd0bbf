/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loop of the process that pushes profiles. */
#ifndef ALLOCPROF_OTLP_PUSHER_H
#define ALLOCPROF_OTLP_PUSHER_H

#include <stdbool.h>

struct curl_library;
struct otlp_options;
struct wrappers;

/*
 * Pushes what each copy has that the collector has not yet taken, and tells the parent, which is at the other end of
 * @channel, what became of it, until that is closed. With @is_restart another process has pushed before, so that the first
 * copy says only from where on there is something to push. Returns an exit status.
 */
int otlp_pusher__run(const struct curl_library *library, const struct wrappers *wrappers,
		     const struct otlp_options *options, bool is_restart, int channel);

#endif
