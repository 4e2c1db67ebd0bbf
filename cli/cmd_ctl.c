// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof ctl`: makes a running measurement start, stop, dump or reset, or asks for its state. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "control.h"
#include "error.h"
#include "message.h"
#include "options.h"

enum {
	OPT_RESET = 256,
	OPT_NO_HOLD,
};

static const struct argp_option ctl_options[] = {
	{ "pid", 'p', "PID", 0,
	  "The recording, or that of the process PID (default: the only one that runs)", 0 },
	{ "output", 'o', "FILE", 0,
	  "dump: write to FILE instead of the recording's file with .1, .2, ... behind it", 0 },
	{ "reset", OPT_RESET, NULL, 0,
	  "dump: set the counts back once they are written, so that the next dump has later calls only",
	  0 },
	{ "no-hold", OPT_NO_HOLD, NULL, 0,
	  "dump: never hold the target; with --live a dump of one that allocates all the time fails "
	  "then",
	  0 },
	{ 0 },
};

static const char *const verbs[] = { "start", "stop", "dump", "reset", "status", NULL };

struct ctl_options {
	const char *verb;
	const char *output;
	pid_t pid;
	bool resets, no_hold;
};

static int parse_verb(struct ctl_options *options, const char *word, struct options_input *input)
{
	const char *nearest;

	if (options->verb)
		return options__reject_operand(word, input->error);
	for (size_t i = 0; verbs[i]; i++)
		if (!strcmp(verbs[i], word))
			options->verb = verbs[i];
	if (options->verb)
		return 0;
	nearest = options__nearest(word, verbs);
	if (nearest)
		return error__set(input->error, -EINVAL, "unknown word '%s'; did you mean '%s'?",
				  word, nearest);
	return error__set(input->error, -EINVAL,
			  "unknown word '%s'; ctl takes start, stop, dump, reset or status", word);
}

static int check(const struct ctl_options *options, struct error *error)
{
	if (!options->verb)
		return error__set(error, -EINVAL,
				  "nothing to do; ctl takes start, stop, dump, reset or status");
	if (strcmp(options->verb, "dump") &&
	    (options->output || options->resets || options->no_hold))
		return error__set(error, -EINVAL,
				  "-o, --reset and --no-hold mean nothing without dump");
	if (options->resets && options->no_hold)
		return error__set(
			error, -EINVAL,
			"--reset and --no-hold cannot be used together; only a recording with --live is "
			"held, and that cannot be reset: leave one of them out");
	return 0;
}

static int parse_ctl(int key, char *arg, struct options_input *input)
{
	struct ctl_options *options = input->options;

	switch (key) {
	case 'p':
		return number__parse_pid(arg, &options->pid, input->error);
	case 'o':
		options->output = arg;
		return 0;
	case OPT_RESET:
		options->resets = true;
		return 0;
	case OPT_NO_HOLD:
		options->no_hold = true;
		return 0;
	case OPTIONS_OPERAND:
		return parse_verb(options, arg, input);
	case OPTIONS_END:
		return check(options, input->error);
	default:
		return OPTIONS_UNKNOWN;
	}
}

static void list_candidates(const struct control_recordings *recordings)
{
	for (size_t i = 0; i < recordings->n; i++) {
		const struct control_recording *one = &recordings->list[i];

		message__print("%d: %s (process %d), since %s, %s", one->pid, one->command,
			       one->target, one->since, one->state);
	}
}

/* Returns the process id of the recording to control, or 0 after printing why there is none. */
static pid_t choose(const struct control_recordings *recordings, pid_t wanted)
{
	const struct control_recording *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < recordings->n; i++) {
		const struct control_recording *one = &recordings->list[i];

		if (one->pid == wanted)
			return wanted;
		if (wanted && one->target != wanted)
			continue;
		found = one;
		n++;
	}
	if (n == 1)
		return found->pid;
	if (n)
		message__print("%zu recordings run; name one by -p", n);
	else if (wanted)
		message__print("process %d is neither a recording nor recorded%s", wanted,
			       recordings->n ? "; there are" : "");
	else
		message__print("no recording runs; begin one with allocprof record or stat");
	list_candidates(recordings);
	return 0;
}

/* Makes the text of the request. Paths are made absolute, since the recording may have another
 * working directory. */
static int make_request(const struct ctl_options *options, char *request, size_t size,
			struct error *error)
{
	_cleanup_(free_ptr) char *directory = NULL;
	const char *output = options->output ? options->output : "";
	int len;

	if (*output && *output != '/') {
		directory = getcwd(NULL, 0);
		if (!directory)
			return error__set(error, -errno, "cannot make %s an absolute path: %s",
					  output, strerror(errno));
	}
	if (strcmp(options->verb, "dump"))
		len = snprintf(request, size, "%s", options->verb);
	else
		len = snprintf(request, size, "dump%s %s%s%s",
			       options->resets	  ? "-reset"
			       : options->no_hold ? "-no-hold"
						  : "",
			       directory ? directory : "", directory ? "/" : "", output);
	if (len < 0 || (size_t)len >= size)
		return error__set(error, -ENAMETOOLONG, "the name of the file is too long");
	return 0;
}

static int control(const struct ctl_options *options, struct error *error)
{
	_cleanup_(control_recordings__release) struct control_recordings recordings = { 0 };
	char request[CONTROL_MAX_REQUEST], reply[CONTROL_MAX_REPLY];
	bool done;
	pid_t pid;
	int err;

	err = make_request(options, request, sizeof(request), error);
	if (!err)
		err = control_recordings__find(&recordings, error);
	if (err)
		return err;
	pid = choose(&recordings, options->pid);
	if (!pid)
		return -ESRCH;
	err = control_client__ask(pid, request, &done, reply, error);
	if (err)
		return err;
	if (!done)
		return error__set(error, -EOPNOTSUPP, "%s", reply);
	for (char *c = reply; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	printf("%s\n", reply);
	return 0;
}

static int run_ctl(char **argv)
{
	struct ctl_options options = { 0 };
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_ctl, parse_ctl, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	err = control(&options, &error);
	if (error.text[0])
		message__print("%s", error.text);
	return err ? EXIT_INCOMPLETE : EXIT_GOOD;
}

const struct command cmd_ctl = {
	.name = "ctl",
	.summary = "Start, stop, dump or reset a recording that runs",
	.args_doc = "start|stop|dump|reset|status",
	.doc = "Make a running allocprof record or stat start or stop counting, to write what it "
	       "has counted so far, or to forget it.\v"
	       "For example: allocprof record --paused ./server, and in another terminal: allocprof "
	       "ctl start && sleep 10 && allocprof ctl dump --reset",
	.options = ctl_options,
	.run = run_ctl,
};
