// SPDX-License-Identifier: GPL-3.0-or-later
#include "series.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "command.h"
#include "error.h"
#include "measure.h"
#include "number_parse.h"
#include "options.h"
#include "profile.h"
#include "session.h"
#include "window_options.h"

static int parse_runs(const char *text, const char *option, __u64 least, __u64 *runs,
		      struct error *error)
{
	__u64 value;

	if (number__parse_count(text, &value, error))
		return -EINVAL;
	if (value < least || value > SERIES_MAX_RUNS)
		return error__set(error, -EINVAL,
				  "'%.64s' is no number of runs; %s takes %llu to %d", text, option,
				  least, SERIES_MAX_RUNS);
	*runs = value;
	return 0;
}

int series__parse(struct series *series, int key, const char *arg, struct error *error)
{
	switch (key) {
	case 'r':
		return parse_runs(arg, "-r", 1, &series->runs, error);
	case OPT_WARMUP:
		series->has_warmup = true;
		return parse_runs(arg, "--warmup", 0, &series->warmup, error);
	default:
		return OPTIONS_UNKNOWN;
	}
}

int series__check(struct series *series, const struct measure *measure, struct error *error)
{
	int err = 0;

	if (series->has_warmup && !series->runs)
		err = error__set(error, -EINVAL, "--warmup means nothing without -r");
	else if (series->runs && measure->pid)
		err = error__set(error, -EINVAL,
				 "-r and -p together; only a command can be run again");
	else if (series->runs && measure->duration_ns)
		err = error__set(error, -EINVAL,
				 "-r and --duration together; a command that goes on is not run "
				 "again beside itself");
	else if (series->runs && measure->session.window.paused)
		err = error__set(error, -EINVAL,
				 "-r and --paused together; only a single run can be controlled");
	if (series->runs && !series->has_warmup)
		series->warmup = 1;
	return err;
}

/* Does one run. Returns 1 if it counts. */
static int run_once(const struct measure *measure, struct measure_surroundings *surroundings,
		    bool is_single, bool is_warmup, series_take take, void *context,
		    struct series_end *end, struct error *error)
{
	const struct profile *profile;
	struct measure one = *measure;
	struct session *session;
	int status, err;

	one.repeats = !is_single;
	err = measure__run(&one, surroundings, &session, &status, error);
	if (err) {
		end->status = status;
		return err;
	}
	profile = session__profile(session);
	end->interrupted = profile->totals.run.interrupted;
	if (measure_surroundings__was_interrupted(surroundings))
		end->interrupted = true;
	if (!end->status)
		end->status = window_options__status(profile);
	if (is_single || (!is_warmup && !end->interrupted)) {
		err = take(context, session, end->counted + 1, error);
		if (err)
			end->status = EXIT_OURS;
		else
			err = 1;
	}
	measure__close(session);
	return err;
}

int series__run(const struct series *series, const struct measure *measure,
		struct measure_surroundings *surroundings, series_take take, void *context,
		struct series_end *end, struct error *error)
{
	off_t input = series->runs ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
	__u64 runs = series->warmup + (series->runs ? series->runs : 1);
	int err = 0;

	*end = (struct series_end){ 0 };
	for (__u64 run = 0; run < runs && !end->interrupted; run++) {
		if (input >= 0)
			lseek(STDIN_FILENO, input, SEEK_SET);
		err = run_once(measure, surroundings, !series->runs, run < series->warmup, take,
			       context, end, error);
		if (err < 0)
			break;
		end->counted += err;
		err = 0;
		/* A signal may have arrived while @take handled the run. */
		if (run + 1 < runs && measure_surroundings__was_interrupted(surroundings))
			end->interrupted = true;
	}
	if (!err && !end->counted) {
		if (!end->status)
			end->status = 128 + SIGINT;
		err = error__set(error, -EINTR,
				 "interrupted before a run that counts was over; nothing is kept");
	}
	return err;
}
