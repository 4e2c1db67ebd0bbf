// SPDX-License-Identifier: GPL-3.0-or-later
#include "measure.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "command.h"
#include "controlled.h"
#include "error.h"
#include "measure_progress.h"
#include "message.h"
#include "number.h"
#include "probed_text.h"

/* The command inherits the mask as it was, and its dispositions are never touched. With these blocked a closed pipe and a
 * limit of file sizes are errors of the writes. */
static void block_write_signals(struct measure_surroundings *surroundings)
{
	sigset_t set;

	if (surroundings->has_mask)
		return;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, &surroundings->inheritance.signal_mask);
	surroundings->has_mask = true;
}

/* Blocks signals and reads them from the descriptor: those that end a recording, and those that a command may send to its process
 * group. */
static int take_signals(void)
{
	static const int signals[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM
	};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Raises RLIMIT_NOFILE: each mapped file stays open until it has been symbolized. */
static void allow_many_files(struct target_inheritance *inheritance)
{
	struct rlimit more;

	getrlimit(RLIMIT_NOFILE, &inheritance->files);
	more = inheritance->files;
	more.rlim_cur = more.rlim_max;
	setrlimit(RLIMIT_NOFILE, &more);
}

static int status_of_start(const struct measure *measure, int err)
{
	if (measure->pid)
		return EXIT_OURS;
	if (err == -ENOENT)
		return EXIT_NOT_FOUND;
	if (err == -EACCES || err == -ENOEXEC || err == -EISDIR)
		return EXIT_CANNOT_RUN;
	return EXIT_OURS;
}

/* Sessions are loaded before the signals are blocked, so that Ctrl-C ends us at once then. */
static int take_surroundings(struct measure_surroundings *surroundings, struct error *error)
{
	int fd;

	if (surroundings->is_taken)
		return 0;
	fd = take_signals();
	if (fd < 0)
		return error__set(error, -errno, "cannot receive signals: %s", strerror(errno));
	surroundings->signal_fd = fd;
	surroundings->is_taken = true;
	return 0;
}

/* Looked up once for all runs of a series. */
static int take_user(struct measure_surroundings *surroundings, const char *name,
		     struct error *error)
{
	int err;

	if (!name || surroundings->inheritance.user)
		return 0;
	err = target_user__find(name, &surroundings->user, error);
	if (!err)
		surroundings->inheritance.user = &surroundings->user;
	return err;
}

bool measure_surroundings__was_interrupted(const struct measure_surroundings *surroundings)
{
	struct signalfd_siginfo info;
	bool was = false;

	while (surroundings->is_taken &&
	       read(surroundings->signal_fd, &info, sizeof(info)) == sizeof(info))
		was = true;
	return was;
}

void measure_surroundings__release(struct measure_surroundings *surroundings)
{
	if (surroundings->is_taken)
		close(surroundings->signal_fd);
	surroundings->is_taken = false;
	surroundings->inheritance.user = NULL;
	target_user__release(&surroundings->user);
}

static void print_log(const char *line)
{
	message__print("%s", line);
}

static void print_found(const struct probed_file *file)
{
	probed_text__print(file, print_log);
}

static void say_engine(const struct measure *measure, const struct session *session)
{
	if (measure->quiet || measure->session.engine != SESSION_ENGINE_AUTO ||
	    strcmp(session__engine(session), "preload") != 0)
		return;
	message__print(
		"no uprobes can be set here (allocprof doctor says why): a library that is loaded "
		"into the command counts (--engine=preload)");
}

/* Enough for most targets and allocprof beside each other. */
#define AMPLE_BYTES	 (256ULL << 20)
#define AMPLE_LIVE_BYTES (1ULL << 30)

static void say_memory(const struct measure *measure, const struct session *session)
{
	bool is_probed = !strcmp(session__engine(session), "uprobe");
	struct session_memory memory;

	if (measure->quiet || !measure->session.stacks ||
	    !session__memory_group(session, &memory) ||
	    memory.free_bytes >= (measure->session.live ? AMPLE_LIVE_BYTES : AMPLE_BYTES))
		return;
	message__print(
		"the control group %s has %s left below its limit of %s, for what is measured and "
		"allocprof, which has %s%s%s: %s",
		memory.group[0] ? memory.group : "/", number__bytes(memory.free_bytes, false).text,
		number__bytes(memory.limit_bytes, false).text,
		number__bytes(memory.own_bytes, false).text,
		memory.most_bytes ? " and takes up to " : "",
		memory.most_bytes ? number__bytes(memory.most_bytes, false).text : "",
		is_probed ? "run it outside of the group (-p PID) where that is too much"
			  : "--sample, and no --live, take less where that is too much");
}

int measure__run(const struct measure *measure, struct measure_surroundings *surroundings,
		 struct session **out, int *status, struct error *error)
{
	struct session_options options = measure->session;
	struct controlled *controlled = NULL;
	struct measure_progress progress;
	struct session *session = NULL;
	int err;

	*status = EXIT_OURS;
	block_write_signals(surroundings);
	if (!surroundings->is_taken)
		allow_many_files(&surroundings->inheritance);
	options.launches = !measure->pid;
	options.expected = measure->expected;
	options.ignored = measure->ignored;
	options.sources = sources__any(&measure->sources) ? &measure->sources : NULL;
	options.log = measure->verbose ? print_log : NULL;
	options.found = measure->verbose ? print_found : NULL;
	err = take_user(surroundings, measure->user, error);
	if (!err)
		err = session__open(&options, &session, error);
	if (!err && !surroundings->is_taken)
		say_engine(measure, session);
	if (!err && !surroundings->is_taken)
		say_memory(measure, session);
	if (!err)
		err = take_surroundings(surroundings, error);
	if (!err && !measure->repeats)
		err = controlled__begin(measure, &controlled, error);
	if (err)
		goto fail;
	if (measure->pid)
		err = session__attach(session, measure->pid, error);
	else
		err = session__launch(session, measure->argv, &surroundings->inheritance, error);
	if (err) {
		*status = status_of_start(measure, err);
		goto fail;
	}
	measure_progress__yield_to(session);
	measure_progress__begin(&progress, measure, controlled__attendant(controlled));
	err = session__run(session, measure->duration_ns, surroundings->signal_fd,
			   &progress.attendant, error);
	if (progress__is_shown())
		progress__draw("collecting what was counted");
	controlled__stop(controlled);
	if (!err)
		err = session__finish(session, error);
	if (err)
		goto fail;
	controlled__end(controlled, surroundings->signal_fd);
	progress__clear();
	*out = session;
	return 0;
fail:
	controlled__end(controlled, surroundings->signal_fd);
	if (!error->text[0])
		error__set(error, err, "cannot measure the target: %s", strerror(-err));
	measure__close(session);
	return err;
}

void measure__close(struct session *session)
{
	progress__clear();
	measure_progress__yield_to(NULL);
	session__close(session);
}
