/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a target under a session, once or several times; handles signals and the exit status. */
#ifndef ALLOCPROF_MEASURE_H
#define ALLOCPROF_MEASURE_H

#include <argp.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#include "measure_options.h"
#include "profile_runs.h"
#include "user.h"

struct error;
struct measure;
struct probed_file;
struct session;

/*
 * Signal mask and limits as they were before measuring, which the command inherits. Zeroed at
 * first; shared by all runs of a series.
 */
struct measure_surroundings {
	bool has_mask;
	bool has_signal_fd;
	int signal_fd;	   /* descriptor that the signals which end the measurement are read from */
	__u32 own_signals; /* as in struct session_options: these do not end it */
	struct target_inheritance inheritance;
	struct target_user user; /* the user of --user */
};

/* Raises RLIMIT_NOFILE, which was *@before: each mapped file stays open until it has been symbolized, and each file of
 * a process's own until it has been read. */
void measure__allow_many_files(struct rlimit *before);

/* Returns whether a signal that ends the measurement has arrived since the last check. */
bool measure_surroundings__was_interrupted(const struct measure_surroundings *surroundings);
void measure_surroundings__release(struct measure_surroundings *surroundings);

#define SERIES_MAX_RUNS PROFILE_MAX_RUNS

enum {
	OPT_WARMUP = 0x300,
};

/* Rows of an argp table. @default_warmup is a string literal. */
/* clang-format off */
#define SERIES_OPTIONS(default_warmup) \
	{ "repeat", 'r', "N", 0, "Run the command N times, one after the other", 0 }, \
	{ "warmup", OPT_WARMUP, "N", 0, "Before these, run it N times that do not count (default " default_warmup ")", 0 }
/* clang-format on */

/* The options of a series of runs. Zeroed it is a single run. */
struct series {
	__u64 runs;   /* number of runs that count; 0: -r was not given, so there is one */
	__u64 warmup; /* number of runs before them that do not count */
	bool has_warmup;
};

/* How a series ended. */
struct series_end {
	/* Status of the first run that failed, else 0; or of the series if that failed. */
	int status;
	size_t counted;	  /* runs that counted */
	bool interrupted; /* a signal ended the series before its last run */
};

/* Called after each run that counts, with its number @run, counted from 1, and its finished
 * session. An error ends the series. */
typedef int (*series_take)(void *context, struct session *session, size_t run, struct error *error);

/* Parses an option of SERIES_OPTIONS. Returns 0, -EINVAL with @error set, or OPTIONS_UNKNOWN. */
int series__parse(struct series *series, int key, const char *arg, struct error *error);

/* Checks that the options go together, and fills in defaults. Returns 0, or -EINVAL with @error
 * set. */
int series__check(struct series *series, const struct measure *measure, struct error *error);

/*
 * Runs @measure as often as @series says. An interrupted run does not count in a series, but does
 * if it is the only run. A run whose command fails counts. Each run reads standard input from the
 * same offset, if standard input is seekable. The caller owns @surroundings. Returns 0, -EINTR if
 * no run counted, or another negative errno with @error set; *@end is set in any case.
 */
int series__run(const struct series *series, const struct measure *measure,
		struct measure_surroundings *surroundings, series_take take, void *context,
		struct series_end *end, struct error *error);

/* Prints a file that was found, and its probed functions, by one call of @print for each line. */
void probed_text__print(const struct probed_file *file, void (*print)(const char *line));

#endif
