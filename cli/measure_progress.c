// SPDX-License-Identifier: GPL-3.0-or-later
#include "measure_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "measure_options.h"
#include "number.h"

static void show(const struct session *session, __u64 duration_ns)
{
	struct session_progress now;
	char limit[48] = "", live[48] = "";

	session__progress(session, &now);
	if (duration_ns)
		snprintf(limit, sizeof(limit), " of %s", number__time(duration_ns).text);
	if (now.has_live)
		snprintf(live, sizeof(live), ", %s live",
			 number__bytes(now.live_size_bytes, false).text);
	progress__draw("%s%s: %s calls, %s lost%s%s", number__time(now.elapsed_ns).text, limit,
		       number__count(now.calls).text, number__count(now.lost).text, live,
		       now.is_counting ? "" : ", not counting");
}

static int attend(struct session *session, void *context)
{
	struct measure_progress *progress = context;
	const struct measure *measure = progress->measure;

	if (!measure->quiet && progress__is_due(&progress->progress))
		show(session, measure->duration_ns);
	return progress->next ? progress->next->attend(session, progress->next->context) : 0;
}

void measure_progress__begin(struct measure_progress *progress, const struct measure *measure,
			     const struct session_attendant *next)
{
	*progress = (struct measure_progress){
		.measure = measure,
		.next = next,
		.attendant = {
			.fd = next ? next->fd : -1,
			.attend = attend,
			.context = progress,
		},
	};
	progress__begin(&progress->progress);
}

static bool has_terminal(pid_t pid, void *context)
{
	return terminal_users__has(context, pid);
}

static bool is_in_use(void *context)
{
	struct terminal_users terminal;

	return !terminal_users__of(STDERR_FILENO, &terminal) &&
	       session__visit_processes(context, has_terminal, &terminal);
}

void measure_progress__yield_to(const struct session *session)
{
	progress__share(session ? is_in_use : NULL, (void *)session);
}
