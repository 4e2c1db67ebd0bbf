/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Has a child process record for this one, which asks it for copies of the recording while it goes
 * on. The child is what `allocprof record` is, with the same options, and the only one that measures;
 * this process reads what it has written as it would read any recording.
 */
#ifndef ALLOCPROF_RECORDER_H
#define ALLOCPROF_RECORDER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct argp_option;
struct command;
struct error;
struct profile;
struct recorder;

/* Rows of an argp table: targets, and options of measuring, of every command that has a recorder. */
/* clang-format off */
#define RECORDER_OPTIONS_TARGET                                                                    \
	MEASURE_OPTIONS_PID,                                                                       \
	MEASURE_OPTION_USER
#define RECORDER_OPTIONS_MEASURE                                                                   \
	RECORD_OPTION_SAMPLE,                                                                      \
	MEASURE_OPTION_EVENTS,                                                                     \
	MEASURE_OPTIONS_DEFINITIONS,                                                               \
	MEASURE_OPTION_IGNORE
#define RECORDER_OPTIONS_HOW                                                                       \
	MEASURE_OPTION_ENGINE,                                                                     \
	MEASURE_OPTION_NO_CACHE,                                                                   \
	RECORD_OPTIONS_LIMITS,                                                                     \
	MEASURE_OPTION_INJECT
/* clang-format on */

/* The recorder's command line. Zeroed it is empty. */
struct recorder_words {
	char **words;
	size_t n, room;
	bool waits; /* where no process is of its choice it waits until there is one */
};

/* Adds the option of record that has @key, with its value @arg or NULL. Returns 0 or -ENOMEM; or
 * OPTIONS_UNKNOWN if record has none. */
int recorder_words__add(struct recorder_words *words, int key, const char *arg);
/* Adds the option by which recordings have no arguments of processes. */
int recorder_words__add_no_arguments(struct recorder_words *words);
void recorder_words__release(struct recorder_words *words);

/*
 * Starts the child, which reads the options itself: what is wrong with them is the reason for which it ends.
 * The calling thread must stay, since the child ends with it, and should be the only one. The child's
 * standard streams and signals are its own, and signals of the terminal do not reach it. Returns 0 or
 * a negative errno with @error set.
 */
int recorder__start(const struct recorder_words *words, struct recorder **out, struct error *error);

/* A descriptor that is readable when recorder__attend() has something to do. */
int recorder__fd(const struct recorder *recorder);

/* Asks for a copy of the recording, also while the child still begins: it answers when it can.
 * Returns 0; -EBUSY if a copy is under way; or another negative errno, and the end will be told. */
int recorder__ask(struct recorder *recorder);

enum recorder_news {
	RECORDER_QUIET,	  /* nothing to tell */
	RECORDER_COPIED,  /* the copy that was asked for can be read */
	RECORDER_REFUSED, /* it was not made; the error says why */
	/* The child has ended, with the whole recording to be read; or the error says why not. */
	RECORDER_ENDED,
};

/* Takes what the child has sent. Never blocks. @error is set where the child says why. */
enum recorder_news recorder__attend(struct recorder *recorder, struct error *error);

/* Reads the last copy, or after the end the whole recording, into a new profile, which the caller
 * frees. Names are not looked up but where they could not be later. Returns 0 or a negative errno
 * with @error set. */
int recorder__read(const struct recorder *recorder, struct profile **profile, struct error *error);

/* Takes out the next sentence that the child has printed, or returns false. */
bool recorder__next_message(struct recorder *recorder, char *line, size_t size);

/* The child's process id; 0 after its end. */
pid_t recorder__pid(const struct recorder *recorder);
/* The exit status of the child that has ended. */
int recorder__status(const struct recorder *recorder);

/* Has the child end its recording and write it; recorder__attend() tells the end. */
void recorder__stop(const struct recorder *recorder);

/* Ends the child, if it has not ended, and waits until its probes are gone. */
void recorder__free(struct recorder *recorder);

/* For cmd_record.c: what the child has from its owner. */
struct recorder_owner {
	pid_t pid;
	int control_fd;	       /* a connected socket, by which the owner asks for copies */
	int copy_fd, final_fd; /* files for the copies, and for the recording at its end */
	bool waits;	       /* as of recorder_words */
};

/* Returns whether the owner waits neither for a copy nor for the recording any more. */
bool recorder_owner__has_left(const struct recorder_owner *owner);

/* Records as `allocprof record` with the words @argv, which end with NULL; for @owner, if it is not
 * NULL. Returns the exit status. */
int record__run(char **argv, const struct recorder_owner *owner);

#endif
