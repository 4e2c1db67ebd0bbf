// SPDX-License-Identifier: GPL-3.0-or-later
/* Answers requests during a recording, and writes copies of it: those that are asked for, those at
 * limits of memory, and checkpoints. */
#include "controlled.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "data_file.h"
#include "dump_limits.h"
#include "dump_peak.h"
#include "error.h"
#include "measure_options.h"
#include "message.h"
#include "number.h"
#include "profile.h"
#include "recorder.h"
#include "text.h"

/* Number of attempts to read the live blocks while the target neither allocates nor frees; then
 * number of attempts while the target is held. */
#define DUMP_TRIES 3
#define HELD_TRIES 5
/* Number of attempts if the target must not be held. */
#define UNHELD_TRIES 20
/* Limits for one attempt while the target is held: until all threads stand still, and then until
 * all is read. */
#define STOP_NS	     (100 * NS_PER_MS)
#define MOST_HELD_MS 2000
#define HAS_READ     'r'

/* A checkpoint is due after half of the time that has been recorded until now, but at least
 * CHECKPOINT_LEAST_NS and at most CHECKPOINT_MOST_NS, and not before CHECKPOINT_COST times as long
 * as the last one took. */
#define CHECKPOINT_LEAST_NS (5 * NS_PER_S)
#define CHECKPOINT_MOST_NS  (60 * NS_PER_S)
#define CHECKPOINT_COST	    50

/* The time between two looks at the memory, and how many times as long as the last look it is at
 * least. */
#define LOOK_NS	  (100 * NS_PER_MS)
#define LOOK_COST 20

/* The child writes this when it has read all that it needs of the target. */
struct note {
	char mark; /* HAS_READ */
	bool has_sample;
	struct profile_rss_sample sample; /* of the resident memory (--resident) */
};

/* A forked child that writes the counts as they were at the fork. */
struct dump {
	pid_t pid;    /* 0: no dump is running */
	int fd;	      /* the child reports its result here */
	__u64 client; /* the client that requested the dump */
	char *path;   /* NULL: it goes to the owner */
	unsigned int tries;
	unsigned int held_tries;
	__u64 held_ns; /* how long the last attempt held the target */
	bool resets;   /* the recording has already forgotten the counts that are being written */
	bool is_checkpoint, is_peak;
	char why[DUMP_LIMITS_TEXT]; /* limits that were reached; "": a client requested the dump */
	bool may_be_torn; /* the target may allocate and free while its live blocks are read */
	char text[CONTROL_MAX_REPLY];
	size_t len;
};

struct controlled {
	const struct measure *measure;
	struct control *control; /* NULL: there is no directory for the control socket */
	struct session *session; /* only while a request is handled */
	struct session_attendant attendant;
	struct dump dump;
	unsigned int n_dumps;
	struct dump_limits limits;
	char reached[DUMP_LIMITS_TEXT]; /* limits for which no dump has been begun yet */
	__u64 look_ns;			/* when the memory is looked at, CLOCK_MONOTONIC */
	struct dump_peak peak;
	char **kept; /* paths of the last dumps at limits, or NULL; a ring */
	__u64 n_written;
	__u64 start_ns, checkpoint_ns,
		/* CLOCK_MONOTONIC when the recording started, when the last checkpoint began, and
		 * when the next is due. */
		due_ns;
};

struct time_text {
	char text[32];
};

static struct time_text local_time(__u64 realtime_ns)
{
	time_t seconds = realtime_ns / NS_PER_S;
	struct time_text text = { "" };
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(text.text, sizeof(text.text), "%Y-%m-%d %H:%M:%S", &local);
	return text;
}

static const char *state_name(const struct session *session)
{
	return session__is_gate_open(session) ? "counting" : "not counting";
}

static void answer_state(struct controlled *controlled, __u64 client)
{
	const struct session *session = controlled->session;

	control__reply(controlled->control, client, true, "%s since %s", state_name(session),
		       local_time(session__gate_realtime_ns(session)).text);
}

/* Answers a client that looks for recordings with the process, the state, the time of the start,
 * and the command. */
static void answer_who(struct controlled *controlled, __u64 client)
{
	const struct session *session = controlled->session;
	const struct measure *measure = controlled->measure;

	control__reply(controlled->control, client, true, "%d\t%s\t%s\t%s %s",
		       session__target_pid(session), state_name(session),
		       local_time(session__start_realtime_ns(session)).text,
		       measure->session.stacks ? "record" : "stat",
		       measure->argv ? measure->argv[0] : "-p");
}

static void move_gate(struct controlled *controlled, __u64 client, bool open)
{
	int err = session__open_gate(controlled->session, open);

	if (err)
		control__reply(controlled->control, client, false, "cannot stop: %s",
			       strerror(-err));
	else
		answer_state(controlled, client);
}

static void reset(struct controlled *controlled, __u64 client)
{
	struct error error = { 0 };

	if (session__reset(controlled->session, &error))
		control__reply(controlled->control, client, false, "%s", error.text);
	else
		control__reply(controlled->control, client, true, "begun anew at %s, %s",
			       local_time(session__start_realtime_ns(controlled->session)).text,
			       state_name(controlled->session));
}

static void write_note(const struct profile *profile, int fd)
{
	struct note note = { .mark = HAS_READ, .has_sample = profile->n_rss };

	if (note.has_sample)
		note.sample = profile->rss_samples[profile->n_rss_samples - 1];
	if (write(fd, &note, sizeof(note)) != sizeof(note))
		_exit(1);
}

/* Writes the dump, in the child, which has only a copy of the recording's memory. */
static void write_dump(struct controlled *controlled, const char *path, int fd)
{
	const struct measure *measure = controlled->measure;
	char text[CONTROL_MAX_REPLY];
	struct error error = { 0 };
	__u64 calls = 0;
	int err, len;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	progress__forbid();
	session__become_snapshot(controlled->session, controlled->dump.may_be_torn,
				 controlled->dump.why[0] ? controlled->dump.why : NULL);
	if (write(fd, "", 1) != 1)
		_exit(1);
	err = session__finish(controlled->session, &error);
	if (!err)
		write_note(session__profile(controlled->session), fd);
	if (!err)
		err = measure->dump(measure->dump_context, controlled->session, path,
				    controlled->dump.is_checkpoint || controlled->dump.is_peak ||
					    !path,
				    &calls, &error);
	if (err == -EAGAIN)
		len = snprintf(text, sizeof(text), "2");
	else if (err)
		len = snprintf(text, sizeof(text), "1%s",
			       error.text[0] ? error.text : strerror(-err));
	else
		len = snprintf(text, sizeof(text), "0%s %s in %s", number__count(calls).text,
			       plural__of("call{|s}", calls).text, path ?: "a copy");
	if (len >= (int)sizeof(text))
		len = sizeof(text) - 1;
	_exit(write(fd, text, len) != len);
}

/* Forks the child that writes the dump. Returns 0 once the child holds nothing that keeps probes
 * in place. */
static int start_dump(struct controlled *controlled)
{
	struct dump *dump = &controlled->dump;
	int fds[2], err;
	char ready;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	dump->pid = fork();
	if (!dump->pid) {
		close(fds[0]);
		write_dump(controlled, dump->path, fds[1]);
	}
	err = dump->pid < 0 ? -errno : 0;
	close(fds[1]);
	if (!err && read(fds[0], &ready, 1) != 1)
		err = -ECHILD;
	if (!err && controlled->control)
		err = control__watch(controlled->control, fds[0]);
	if (!err) {
		fcntl(fds[0], F_SETFL, O_NONBLOCK);
		dump->fd = fds[0];
		dump->len = 0;
		return 0;
	}
	close(fds[0]);
	if (dump->pid > 0) {
		kill(dump->pid, SIGKILL);
		waitpid(dump->pid, NULL, 0);
	}
	dump->pid = 0;
	return err;
}

static int dump_path(struct controlled *controlled, const char *asked, char **path)
{
	if (*asked)
		*path = strdup(asked);
	else if (asprintf(path, "%s.%u", controlled->measure->dump_path, ++controlled->n_dumps) < 0)
		*path = NULL;
	return *path ? 0 : -ENOMEM;
}

/* Plans the next checkpoint after one has been written, or could not be. */
static void plan_checkpoint(struct controlled *controlled)
{
	__u64 now_ns = clock__now_ns(), wait_ns = (now_ns - controlled->start_ns) / 2;
	__u64 cost_ns = (now_ns - controlled->checkpoint_ns) * CHECKPOINT_COST;

	if (wait_ns < CHECKPOINT_LEAST_NS)
		wait_ns = CHECKPOINT_LEAST_NS;
	if (wait_ns > CHECKPOINT_MOST_NS)
		wait_ns = CHECKPOINT_MOST_NS;
	controlled->due_ns = now_ns + (wait_ns > cost_ns ? wait_ns : cost_ns);
}

static int cut_and_start(struct controlled *controlled, struct error *error)
{
	int err = session__cut(controlled->session, error);
	struct session_use use;

	if (err)
		return err;
	if (controlled->dump.is_peak) {
		session__use(controlled->session, &use);
		dump_peak__begin(&controlled->peak, use.rss_bytes);
	}
	err = start_dump(controlled);
	return err ? error__set(error, err, "cannot start the process that writes a dump: %s",
				strerror(-err))
		   : 0;
}

/* Starts a dump while the target is held until the child has read what it needs. */
static int start_held(struct controlled *controlled, struct error *error)
{
	struct dump *dump = &controlled->dump;
	__u64 begin_ns = clock__now_ns();
	int err = session__hold(controlled->session, STOP_NS, error);

	if (err)
		return err;
	if (session__searches(controlled->session))
		err = session__search_held(controlled->session);
	if (!err)
		err = cut_and_start(controlled, error);
	if (!err)
		poll(&(struct pollfd){ .fd = dump->fd, .events = POLLIN }, 1, MOST_HELD_MS);
	session__let_go(controlled->session);
	dump->held_ns = clock__now_ns() - begin_ns;
	if (dump->is_peak && dump->held_ns > controlled->peak.held_ns)
		controlled->peak.held_ns = dump->held_ns;
	return err;
}

/* At a limit a copy that can be off is worth more than none; it says by how much. */
static int start_torn(struct controlled *controlled, struct error *error)
{
	controlled->dump.may_be_torn = true;
	return cut_and_start(controlled, error);
}

static int start_held_or_torn(struct controlled *controlled, struct error *error)
{
	int err = start_held(controlled, error);

	return err && controlled->dump.why[0] && !controlled->dump.pid
		       ? start_torn(controlled, error)
		       : err;
}

/* Begins to write a dump to dump->path, which is freed then. */
static int begin(struct controlled *controlled, bool resets, struct error *error)
{
	struct dump *dump = &controlled->dump;
	int err = data_file__check_writable(dump->path, error);

	dump->held_ns = 0;
	if (!err)
		err = session__searches(controlled->session) && dump->held_tries
			      ? start_held_or_torn(controlled, error)
			      : cut_and_start(controlled, error);
	if (err) {
		free(dump->path);
		return err;
	}
	if (resets)
		session__forget(controlled->session);
	dump->resets = resets;
	return 0;
}

/* Tries again if a dump with --live failed with -EAGAIN because the target allocated or freed
 * meanwhile. */
static bool try_again(struct controlled *controlled)
{
	struct dump *dump = &controlled->dump;
	struct error error = { 0 };
	int err;

	if (dump->text[0] != '2')
		return false;
	if (dump->tries && --dump->tries)
		err = cut_and_start(controlled, &error);
	else if (dump->held_tries && dump->held_tries--)
		err = start_held_or_torn(controlled, &error);
	else if (dump->why[0] && !dump->may_be_torn)
		err = start_torn(controlled, &error);
	else
		return false;
	if (err)
		dump->len = snprintf(dump->text, sizeof(dump->text),
				     "1cannot begin another attempt: %s",
				     error.text[0] ? error.text : strerror(-err));
	return !err;
}

/* Removes the child's note from the text that it has written. */
static void take_out_note(struct controlled *controlled)
{
	struct dump *dump = &controlled->dump;
	struct note note;

	if (dump->len < sizeof(note) || dump->text[0] != HAS_READ)
		return;
	memcpy(&note, dump->text, sizeof(note));
	dump->len -= sizeof(note);
	memmove(dump->text, dump->text + sizeof(note), dump->len + 1);
	/* Without memory for it the time line lacks the sample. */
	if (note.has_sample)
		(void)session__keep_rss_sample(controlled->session, &note.sample);
}

/* Keeps the path of a dump, and removes the oldest one if there are more than are to be kept. Takes
 * @path over. */
static void keep_dump(struct controlled *controlled, char *path)
{
	char **oldest;

	if (!controlled->kept) {
		free(path);
		return;
	}
	oldest = &controlled->kept[controlled->n_written++ % controlled->measure->n_kept_dumps];
	if (*oldest)
		unlink(*oldest);
	free(*oldest);
	*oldest = path;
}

static void report_at_limit(struct controlled *controlled, bool is_written, const char *said)
{
	const struct dump *dump = &controlled->dump;

	if (!is_written)
		message__print("at %s no copy of the recording was written: %s", dump->why, said);
	else if (!controlled->measure->quiet)
		message__print("at %s: %s%s%s", dump->why, said,
			       dump->held_ns ? ", for which the target was held for " : "",
			       dump->held_ns ? number__time(dump->held_ns).text : "");
}

static void end_dump(struct controlled *controlled)
{
	struct dump *dump = &controlled->dump;
	const char *said = dump->text + 1;

	close(dump->fd);
	waitpid(dump->pid, NULL, 0);
	dump->pid = 0;
	dump->text[dump->len] = '\0';
	take_out_note(controlled);
	if (try_again(controlled))
		return;
	if (!dump->len)
		said = "the process that was to write the dump has died";
	else if (dump->text[0] == '2')
		said = dump->held_ns
			       ? "the target's live memory could not be read in the two seconds for which "
				 "it is held; try again when it is idle"
			       : "the target allocated or freed memory during each attempt; with "
				 "--live try again when it is idle, or without --no-hold";
	if (dump->resets && dump->text[0] != '0')
		session__lose_forgotten(controlled->session);
	/* Checkpoints, copies at a peak, which replace each other, and those for an owner are nobody's wish at that moment. */
	if (dump->text[0] == '0' && dump->path && !dump->is_checkpoint && !dump->is_peak)
		session__mark_dump(controlled->session, dump->why);
	if (dump->is_checkpoint) {
		plan_checkpoint(controlled);
	} else if (dump->is_peak) {
		dump_peak__end(&controlled->peak, dump->text[0] == '0', said);
	} else if (dump->why[0]) {
		report_at_limit(controlled, dump->text[0] == '0', said);
		if (dump->text[0] == '0') {
			keep_dump(controlled, dump->path);
			dump->path = NULL;
		}
	} else if (dump->held_ns && dump->text[0] == '0')
		control__reply(controlled->control, dump->client, true,
			       "%s, for which the target was held for %s", said,
			       number__time(dump->held_ns).text);
	else
		control__reply(controlled->control, dump->client, dump->text[0] == '0', "%s", said);
	free(dump->path);
}

/* Gives up a checkpoint, a copy at a peak, or one for an owner. */
static void abandon(struct controlled *controlled)
{
	kill(controlled->dump.pid, SIGKILL);
	controlled->dump.len = 0;
	end_dump(controlled);
}

static int begin_dump(struct controlled *controlled, const char *asked, bool resets, bool may_hold,
		      const char *why, struct error *error)
{
	struct dump *dump = &controlled->dump;
	int err;

	if (dump->pid && dump->is_checkpoint)
		abandon(controlled);
	if (dump->pid)
		return error__set(
			error, -EBUSY,
			"another dump is still being written; try again when it has finished");
	err = resets ? session__check_forget(controlled->session, error) : 0;
	if (!err)
		err = dump_path(controlled, asked, &dump->path);
	if (err)
		return err;
	dump->is_checkpoint = dump->is_peak = dump->may_be_torn = false;
	snprintf(dump->why, sizeof(dump->why), "%s", why);
	dump->tries = may_hold ? DUMP_TRIES : UNHELD_TRIES;
	dump->held_tries = may_hold ? HELD_TRIES : 0;
	return begin(controlled, resets, error);
}

static void dump(struct controlled *controlled, __u64 client, const char *asked, bool resets,
		 bool may_hold)
{
	struct error error = { 0 };
	int err = begin_dump(controlled, asked, resets, may_hold, "", &error);

	if (err)
		control__reply(controlled->control, client, false, "%s",
			       error.text[0] ? error.text : strerror(-err));
	else
		controlled->dump.client = client;
}

/* Copies the recording for its owner, who asks often: the target is never held for that, and a copy
 * may be torn. */
static void copy(struct controlled *controlled, __u64 client)
{
	struct dump *dump = &controlled->dump;
	struct error error = { 0 };
	int err;

	if (dump->pid) {
		control__reply(controlled->control, client, false,
			       "another copy is still being written");
		return;
	}
	dump->is_checkpoint = dump->is_peak = dump->resets = false;
	dump->may_be_torn = true;
	dump->why[0] = '\0';
	dump->tries = 1;
	dump->held_tries = 0;
	dump->held_ns = 0;
	dump->path = NULL;
	err = cut_and_start(controlled, &error);
	if (err)
		control__reply(controlled->control, client, false, "%s",
			       error.text[0] ? error.text : strerror(-err));
	else
		dump->client = client;
}

static void handle(void *context, __u64 client, const char *request)
{
	struct controlled *controlled = context;
	size_t word = strcspn(request, " ");

	/* The memory is looked at before the next request is answered. */
	controlled->look_ns = 0;
	if (!strcmp(request, "who"))
		answer_who(controlled, client);
	else if (!strcmp(request, "status"))
		answer_state(controlled, client);
	else if (!strcmp(request, "start"))
		move_gate(controlled, client, true);
	else if (!strcmp(request, "stop"))
		move_gate(controlled, client, false);
	else if (!strcmp(request, "reset"))
		reset(controlled, client);
	else if (!strcmp(request, "copy") && controlled->measure->owner)
		copy(controlled, client);
	else if (word == 4 && !strncmp(request, "dump ", 5))
		dump(controlled, client, request + 5, false, true);
	else if (word == 12 && !strncmp(request, "dump-no-hold ", 13))
		dump(controlled, client, request + 13, false, false);
	else if (word == 10 && !strncmp(request, "dump-reset ", 11))
		dump(controlled, client, request + 11, true, true);
	else
		control__reply(controlled->control, client, false,
			       "unknown request; use the allocprof that made the recording");
}

static void attend_dump(struct controlled *controlled)
{
	struct dump *dump = &controlled->dump;
	ssize_t len;

	if (!dump->pid)
		return;
	len = read(dump->fd, dump->text + dump->len, sizeof(dump->text) - 1 - dump->len);
	if (len > 0)
		dump->len += len;
	else if (!len || errno != EAGAIN)
		end_dump(controlled);
}

/* Begins a checkpoint if one is due. If the target is too busy, no further attempt is made until
 * the next time; the target is never held for a checkpoint. */
static void attend_checkpoint(struct controlled *controlled)
{
	const struct measure *measure = controlled->measure;
	struct dump *dump = &controlled->dump;
	__u64 now_ns = clock__now_ns();

	if (!measure->checkpoint_path || dump->pid || now_ns < controlled->due_ns)
		return;
	controlled->checkpoint_ns = now_ns;
	dump->client = 0;
	dump->is_peak = false;
	dump->is_checkpoint = dump->may_be_torn = true;
	dump->why[0] = '\0';
	dump->tries = 1;
	dump->held_tries = 0;
	dump->path = strdup(measure->checkpoint_path);
	if (!dump->path || begin(controlled, false, NULL))
		plan_checkpoint(controlled);
	else
		*measure->is_kept = true;
}

static void attend_peak(struct controlled *controlled, __u64 rss_bytes)
{
	struct dump *dump = &controlled->dump;
	struct dump_peak *peak = &controlled->peak;
	bool is_written = dump->pid && dump->is_peak;
	struct error error = { 0 };
	int err;

	if (controlled->reached[0] || (dump->pid && !is_written && !dump->is_checkpoint) ||
	    !dump_peak__is_due(peak, rss_bytes, is_written))
		return;
	if (dump->pid)
		abandon(controlled);
	dump->client = 0;
	dump->is_peak = true;
	dump->is_checkpoint = dump->may_be_torn = false;
	strcpy(dump->why, "peak");
	/* Until the target stands still by itself the peak may be over. */
	dump->tries = 1;
	dump->held_tries = HELD_TRIES;
	dump->path = strdup(peak->path);
	err = dump->path ? begin(controlled, false, &error) : -ENOMEM;
	if (err)
		dump_peak__end(peak, false, error.text[0] ? error.text : strerror(-err));
}

/* Looks at the memory, and begins a dump if a limit is reached. If another dump is being written,
 * its end is awaited. */
static void attend_limits(struct controlled *controlled)
{
	__u64 now_ns = clock__now_ns(), cost_ns;
	struct error error = { 0 };
	struct session_use use;
	int err;

	if (!controlled->limits.n)
		return;
	if (now_ns >= controlled->look_ns) {
		session__use(controlled->session, &use);
		dump_limits__add_reached(&controlled->limits, &use, now_ns, controlled->reached);
		cost_ns = (clock__now_ns() - now_ns) * LOOK_COST;
		controlled->look_ns = now_ns + (cost_ns > LOOK_NS ? cost_ns : LOOK_NS);
		attend_peak(controlled, use.rss_bytes);
		dump_peak__note(&controlled->peak, use.rss_bytes);
	}
	if (!controlled->reached[0] || (controlled->dump.pid && !controlled->dump.is_checkpoint))
		return;
	err = begin_dump(controlled, "", false, true, controlled->reached, &error);
	if (err)
		message__print("at %s no copy of the recording was written: %s",
			       controlled->reached, error.text[0] ? error.text : strerror(-err));
	controlled->reached[0] = '\0';
}

static int attend(struct session *session, void *context)
{
	struct controlled *controlled = context;

	controlled->session = session;
	attend_dump(controlled);
	attend_limits(controlled);
	attend_checkpoint(controlled);
	if (controlled->control) {
		control__attend(controlled->control);
		/* The recording ends as by a signal. */
		if (control__is_left(controlled->control))
			kill(getpid(), SIGTERM);
	}
	return 0;
}

static void free_controlled(struct controlled *controlled)
{
	for (__u64 i = 0; controlled->kept && i < controlled->measure->n_kept_dumps; i++)
		free(controlled->kept[i]);
	free(controlled->kept);
	free(controlled);
}

int controlled__begin(const struct measure *measure, struct controlled **out, struct error *error)
{
	struct controlled *controlled = calloc(1, sizeof(*controlled));
	int err;

	if (!controlled)
		return -ENOMEM;
	controlled->measure = measure;
	controlled->limits = measure->dump_limits;
	if (measure->n_kept_dumps)
		controlled->kept = calloc(measure->n_kept_dumps, sizeof(*controlled->kept));
	if (measure->n_kept_dumps && !controlled->kept) {
		free(controlled);
		return -ENOMEM;
	}
	controlled->peak.path = measure->peak_path;
	controlled->start_ns = clock__now_ns();
	controlled->due_ns = controlled->start_ns + CHECKPOINT_LEAST_NS;
	if (measure->owner)
		err = control__open_for(measure->owner->control_fd, handle, controlled,
					&controlled->control);
	else
		err = control__open(handle, controlled, &controlled->control, error);
	if (err && measure->owner) {
		free_controlled(controlled);
		return error__set(error, err, "cannot serve who started the recording: %s",
				  strerror(-err));
	}
	if (err && measure->session.window.paused) {
		free_controlled(controlled);
		return error__wrap(error, err, "a recording that is --paused could not be started");
	}
	if (err && error)
		error->text[0] = '\0';
	controlled->attendant = (struct session_attendant){
		.fd = err ? -1 : control__fd(controlled->control),
		.attend = attend,
		.context = controlled,
	};
	*out = controlled;
	return 0;
}

const struct session_attendant *controlled__attendant(const struct controlled *controlled)
{
	return controlled ? &controlled->attendant : NULL;
}

void controlled__stop(struct controlled *controlled)
{
	if (!controlled)
		return;
	if (controlled->control)
		control__hide(controlled->control);
	/* There is no further attempt, since a finished session cannot be cut into parts. */
	controlled->dump.tries = 1;
	controlled->dump.held_tries = 0;
	controlled->dump.may_be_torn = true;
}

/* Returns whether a signal has come that is not for a dump. */
static bool is_to_end(const struct controlled *controlled, int signal_fd)
{
	struct signalfd_siginfo info;

	while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		if (!own_signals__have(controlled->measure->session.own_signals, info.ssi_signo))
			return true;
	return false;
}

/* Returns whether nobody has a use for the copy that is being written, once the recording is over. */
static bool is_useless(const struct controlled *controlled)
{
	const struct recorder_owner *owner = controlled->measure->owner;

	return controlled->dump.is_checkpoint ||
	       (!controlled->dump.path && owner && recorder_owner__has_left(owner));
}

void controlled__end(struct controlled *controlled, int signal_fd)
{
	if (!controlled)
		return;
	if (controlled->dump.pid && is_useless(controlled))
		abandon(controlled);
	while (controlled->dump.pid) {
		struct pollfd fds[] = {
			{ .fd = controlled->dump.fd, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN },
		};

		poll(fds, 2, -1);
		if (fds[1].revents && is_to_end(controlled, signal_fd))
			kill(controlled->dump.pid, SIGKILL);
		attend_dump(controlled);
	}
	if (controlled->peak.path) {
		dump_peak__report(&controlled->peak, controlled->measure->quiet);
		*controlled->measure->has_peak = controlled->peak.is_written;
	}
	control__close(controlled->control);
	free_controlled(controlled);
}
