// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Probed files that are written to. The kernel would put breakpoints where the old contents had functions, and a program that
 * maps the new contents would be killed by one. A program that is executed before allocprof has read the event is killed all the
 * same.
 */
#include "probes_internal.h"

#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "attachment.h"

void probes__watch_contents(struct probes *probes, struct probed_allocator *entry, int fd)
{
	char path[64];
	int watch;

	/* Where nothing can be watched, files are probed nevertheless. */
	if (probes->contents_fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	watch = inotify_add_watch(probes->contents_fd, path, IN_MODIFY);
	entry->watch = watch > 0 ? watch : 0;
}

static void drop(struct probed_allocator *entry)
{
	for (int role = 0; role < PROBE_ROLES; role++) {
		attachment__free(entry->attachments[role]);
		entry->attachments[role] = NULL;
	}
	entry->watch = 0;
	snprintf(
		entry->gap, sizeof(entry->gap),
		"written to while it was probed: its probes were removed, and later calls are missing "
		"(write another file, and move it there)");
}

static void handle(struct probed_allocator *entry, const struct inotify_event *event)
{
	if (event->mask & IN_MODIFY)
		drop(entry);
	/* The file is gone, or its file system: the number of the watch may be another file's next. */
	if (event->mask & IN_IGNORED)
		entry->watch = 0;
}

void probes__drop_rewritten(struct probes *probes)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t len;

	if (probes->contents_fd < 0)
		return;
	while ((len = read(probes->contents_fd, events, sizeof(events))) > 0) {
		const struct inotify_event *event;

		for (const char *at = events; at < events + len;
		     at += sizeof(*event) + event->len) {
			event = (const void *)at;
			for (size_t i = 0; i < probes->n_list; i++)
				if (probes->list[i].watch && probes->list[i].watch == event->wd)
					handle(&probes->list[i], event);
		}
	}
}
