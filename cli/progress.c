// SPDX-License-Identifier: GPL-3.0-or-later
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS	 1000000000ULL
#define PAUSE_NS 100000000ULL

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

void progress__begin(struct progress *progress)
{
	*progress = (struct progress){ .start_ns = now_ns(), .on = isatty(STDERR_FILENO) };
}

void progress__show(struct progress *progress, const char *what, size_t done, size_t total)
{
	__u64 now;

	if (!progress->on)
		return;
	now = now_ns();
	if (now - progress->start_ns < WAIT_NS || now - progress->shown_ns < PAUSE_NS)
		return;
	progress->shown_ns = now;
	progress->shown = true;
	if (total)
		fprintf(stderr, "\r%s: %zu of %zu\033[K", what, done, total);
	else
		fprintf(stderr, "\r%s: %zu\033[K", what, done);
}

void progress__end(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
