// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `allocprof serve`: records for as long as it runs, answers HTTP requests about the recording, and pushes profiles.
 * Up to four processes: a child records (recorder.h), others answer and push (http_process.h) and have no privileges, and
 * this one passes copies of the recording from the first to those, with names, and keeps some on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "command.h"
#include "data_file.h"
#include "error.h"
#include "http_process.h"
#include "measure_options.h"
#include "message.h"
#include "options.h"
#include "proc.h"
#include "profile.h"
#include "profile_runs.h"
#include "recorder.h"
#include "serve_listener.h"
#include "serve_otlp.h"
#include "serve_store.h"
#include "symbol_options.h"

enum {
	OPT_LISTEN = 256,
	OPT_TOKEN_FILE,
	OPT_ROTATE,
	OPT_KEEP,
	OPT_MAX_SIZE,
	OPT_SERIES,
	OPT_OTLP,
	OPT_OTLP_INTERVAL,
};

#define DEFAULT_ROTATE_NS (600 * NS_PER_S)
#define DEFAULT_KEEP_NS	  (24 * 3600 * NS_PER_S)
#define DEFAULT_MAX_BYTES (1ULL << 30)
#define DEFAULT_SERIES	  50
#define DEFAULT_OTLP_NS	  (60 * NS_PER_S)
#define MOST_SERIES	  1000
/* The longest time until the process that answers is started again. */
#define MOST_DELAY_NS (60 * NS_PER_S)

static const struct argp_option serve_options[] = {
	OPTIONS_GROUP("Where it answers, and to whom:"),
	{ "listen", OPT_LISTEN, "ADDRESS", 0,
	  "Listen at ADDRESS:PORT, such as 127.0.0.1:9100, or at unix:PATH", 0 },
	{ "token-file", OPT_TOKEN_FILE, "FILE", 0,
	  "Answer only who knows the first line of FILE; needed for addresses that others reach",
	  0 },
	{ "series", OPT_SERIES, "N", 0,
	  "Have up to N functions and N processes apart in /metrics (default 50)", 0 },
	OPTIONS_GROUP("Where it pushes to:"),
	{ "otlp", OPT_OTLP, "URL", 0,
	  "Push profiles to a collector of OpenTelemetry, such as http://localhost:4318; env: that of "
	  "OTEL_EXPORTER_OTLP_ENDPOINT",
	  0 },
	{ "otlp-interval", OPT_OTLP_INTERVAL, "TIME", 0, "Push every TIME (default 60s)", 0 },
	OPTIONS_GROUP("What is kept on disk:"),
	{ "output", 'o', "DIR", 0, "Keep recordings in DIR; without it none is on disk", 0 },
	{ "rotate", OPT_ROTATE, "TIME", 0, "Write one every TIME (default 10m)", 0 },
	{ "keep", OPT_KEEP, "TIME", 0, "Keep those of TIME (default 24h)", 0 },
	{ "max-size", OPT_MAX_SIZE, "BYTES", 0, "Keep up to BYTES of them (default 1G)", 0 },
	OPTIONS_GROUP("Which processes:"),
	RECORDER_OPTIONS_TARGET,
	OPTIONS_GROUP("What is recorded:"),
	RECORDER_OPTIONS_MEASURE,
	OPTIONS_GROUP("Names of functions:"),
	SYMBOL_OPTION_DEBUG_DIR,
	SYMBOL_OPTION_NO_DEBUGINFOD,
	SYMBOL_OPTION_DEBUGINFOD_TIMEOUT,
	OPTIONS_GROUP("How it is measured:"),
	RECORDER_OPTIONS_HOW,
	{ 0 },
};

struct serve {
	const char *address, *token_file;
	__u64 rotate_ns, keep_ns, n_series;
	bool has_rotation;		  /* an option of it was given */
	bool has_answering, has_interval; /* options of answers, and of pushes, were given */
	struct serve_otlp otlp;
	struct symbol_options symbols;
	struct recorder_words words;
	struct serve_store store;
	char token[HTTP_MAX_TOKEN + 1];
	struct serve_listener listener;
	struct recorder *recorder;
	struct http_process http;
	bool has_answered; /* a process that answers has been started */
	__u64 http_due_ns; /* when the process that answers is started again; 0: it runs */
	__u64 http_began_ns, http_delay_ns;
	__u64 rotate_due_ns;
	bool is_copying, http_wants, store_wants, otlp_wants, is_stopping;
	bool has_begun;				     /* the recorder has answered */
	bool has_failed_to_keep, has_failed_to_name; /* the reason has been printed */
	struct profile *named;			     /* the last copy, for its names */
	size_t n_named;				     /* its frames before it had names */
};

static int parse_series(struct serve *serve, const char *text, struct error *error)
{
	if (number__parse_between(text, 1, MOST_SERIES, &serve->n_series))
		return 0;
	return error__set(error, -EINVAL, "'%s' is no number of series; --series takes 1 to %d",
			  text, MOST_SERIES);
}

static int check_serve(struct serve *serve, struct error *error)
{
	int err;

	if (!serve->address && !serve->otlp.is_used)
		return error__set(
			error, -EINVAL,
			"serve takes an address to listen at; give --listen 127.0.0.1:9100, "
			"for example, or --otlp to push alone");
	if (!serve->address && serve->has_answering)
		return error__set(error, -EINVAL,
				  "--token-file and --series mean nothing without --listen");
	if (serve->has_interval && !serve->otlp.is_used)
		return error__set(error, -EINVAL, "--otlp-interval means nothing without --otlp");
	if (serve->otlp.interval_ns < NS_PER_S)
		return error__set(error, -EINVAL, "--otlp-interval takes a second or more");
	if (serve->has_rotation && !serve->store.directory)
		return error__set(error, -EINVAL,
				  "--rotate, --keep and --max-size mean nothing without -o DIR");
	if (serve->rotate_ns < NS_PER_S)
		return error__set(error, -EINVAL, "--rotate takes a second or more");
	if (serve->keep_ns < serve->rotate_ns)
		return error__set(error, -EINVAL, "--keep takes no less than --rotate");
	serve->store.most = serve->keep_ns / serve->rotate_ns;
	serve->words.waits = true;
	/* Command lines have secrets, and copies go to processes that talk to the network. */
	err = recorder_words__add_no_arguments(&serve->words);
	/* Live blocks are a part of all answers. */
	return err ?: recorder_words__add(&serve->words, OPT_LIVE, NULL);
}

static int parse_serve(int key, char *arg, struct options_input *input)
{
	struct serve *serve = input->options;
	int err;

	switch (key) {
	case OPT_LISTEN:
		serve->address = arg;
		return 0;
	case OPT_OTLP:
		serve->otlp.is_used = true;
		serve->otlp.address = !strcmp(arg, "env") ? NULL : arg;
		return 0;
	case OPT_OTLP_INTERVAL:
		serve->has_interval = true;
		return number__parse_duration(arg, &serve->otlp.interval_ns, input->error);
	case OPT_TOKEN_FILE:
		serve->has_answering = true;
		serve->token_file = arg;
		return 0;
	case OPT_SERIES:
		serve->has_answering = true;
		return parse_series(serve, arg, input->error);
	case 'o':
		serve->store.directory = arg;
		return 0;
	case OPT_ROTATE:
		serve->has_rotation = true;
		return number__parse_duration(arg, &serve->rotate_ns, input->error);
	case OPT_KEEP:
		serve->has_rotation = true;
		return number__parse_duration(arg, &serve->keep_ns, input->error);
	case OPT_MAX_SIZE:
		serve->has_rotation = true;
		return number__parse_size(arg, &serve->store.most_bytes, input->error);
	case OPTIONS_OPERAND:
		return error__set(input->error, -EINVAL,
				  "serve starts no command, so '%s' has no meaning; give -p PID or "
				  "--name NAME",
				  arg);
	case OPTIONS_END:
		return check_serve(serve, input->error);
	default:
		err = symbol_options__parse(&serve->symbols, key, arg, input->error);
		return err == OPTIONS_UNKNOWN ? recorder_words__add(&serve->words, key, arg) : err;
	}
}

static int read_token(struct serve *serve, struct error *error)
{
	char token[sizeof(serve->token)];
	int err = serve->token_file
			  ? serve_token__read(serve->token_file, token, sizeof(token), error)
			  : 0;

	if (!err && serve->token_file)
		memcpy(serve->token, token, sizeof(token));
	return err;
}

static int start_http(struct serve *serve, struct error *error)
{
	const struct http_options options = {
		.listener = serve->listener.fd,
		.token = serve->token,
		.most_series = serve->n_series,
		.is_restart = serve->has_answered,
	};
	int err;

	serve->http_due_ns = 0;
	serve->http_wants = false;
	err = http_process__start(&options, &serve->http, error);
	serve->has_answered |= !err;
	serve->http_began_ns = clock__now_ns();
	return err;
}

/* Has the process that answers started later: the longer, the more often it has ended soon. */
static void delay_http(struct serve *serve)
{
	__u64 now = clock__now_ns();

	if (now - serve->http_began_ns > MOST_DELAY_NS)
		serve->http_delay_ns = 0;
	serve->http_delay_ns = serve->http_delay_ns ? 2 * serve->http_delay_ns : NS_PER_S;
	if (serve->http_delay_ns > MOST_DELAY_NS)
		serve->http_delay_ns = MOST_DELAY_NS;
	serve->http_due_ns = now + serve->http_delay_ns;
}

/* The recording goes on without the process that answers, until another one is started. @err: why it is of no use,
 * or 0 if it has ended. */
static void replace_http(struct serve *serve, int err)
{
	int status = http_process__end(&serve->http);
	char why[128];

	if (err)
		snprintf(why, sizeof(why), "takes no message: %s", strerror(-err));
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "was ended by a signal: %s",
			 strsignal(WTERMSIG(status)));
	else
		snprintf(why, sizeof(why), "has ended with status %d", WEXITSTATUS(status));
	delay_http(serve);
	message__print("the process that answers %s; it is started again in %llu s", why,
		       serve->http_delay_ns / NS_PER_S);
}

static void refuse_http(struct serve *serve, const char *why)
{
	int err = serve->http.pid ? http_process__refuse(&serve->http, why) : 0;

	if (err)
		replace_http(serve, err);
}

/* Returns whether a signal waits that ends the server. All threads have it blocked. */
static bool is_to_end(void *context)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT));
}

/* Gives the frames names: those that they had in the last copy and, if there are new ones, others. That it
 * cannot is said once, until it can again. */
static void name_frames(struct serve *serve, struct profile *profile)
{
	/* Looking names up adds frames, of tail calls. */
	size_t n_frames = profile->n_frames;
	struct error error = { 0 };
	int err = serve->named ? profile__borrow_names(profile, serve->named) : 0;

	if (serve->named && !err && n_frames == serve->n_named && !serve->has_failed_to_name)
		return;
	serve->n_named = n_frames;
	serve->symbols.only_new = true;
	serve->symbols.stop = is_to_end;
	err = offline_names__add(profile, &serve->symbols, !serve->named, &error);
	if (err && !serve->has_failed_to_name && err != -EINTR)
		message__error(&error, err);
	serve->has_failed_to_name = err;
}

/* Returns the last copy, or the whole recording after its end, with names; NULL after setting @error. */
static struct profile *read_copy(struct serve *serve, struct error *error)
{
	struct profile *profile;

	if (recorder__read(serve->recorder, &profile, error))
		return NULL;
	name_frames(serve, profile);
	profile__free(serve->named);
	serve->named = profile;
	return profile;
}

/* Adds processor time and memory of process @pid, and of its children that have ended. */
static void add_costs(pid_t pid, struct http_costs *costs)
{
	struct proc_memory memory;
	struct proc_stat stat;

	if (!proc_stat__read(pid, &stat))
		costs->cpu_ns += stat.cpu_ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
	if (proc_memory__read(pid, &memory))
		costs->memory_bytes += memory.rss_bytes;
}

/* Gives a copy to the processes that want it. */
static void give_copy(struct serve *serve, const struct profile *profile)
{
	_cleanup_(close_fd) int fd =
		memfd_create("allocprof-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct http_costs costs = { .otlp = serve->otlp.counts };
	int err = fd < 0 ? -errno : data_file__write_open(profile, fd);

	if (err) {
		if (serve->http_wants)
			refuse_http(serve, strerror(-err));
		if (serve->otlp_wants)
			serve_otlp__postpone(&serve->otlp, strerror(-err));
		return;
	}
	add_costs(getpid(), &costs);
	if (recorder__pid(serve->recorder))
		add_costs(recorder__pid(serve->recorder), &costs);
	if (serve->otlp.process.pid > 0)
		add_costs(serve->otlp.process.pid, &costs);
	/* Two processes share it, one of which the network reaches. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (serve->otlp_wants)
		serve_otlp__give(&serve->otlp, fd, &costs);
	err = serve->http_wants && serve->http.pid ? http_process__give(&serve->http, fd, &costs)
						   : 0;
	if (err)
		replace_http(serve, err);
}

/* Keeps a copy on disk. That it cannot is said once, until it can again: the recording goes on. */
static int keep_copy(struct serve *serve, const struct profile *profile)
{
	struct error error = { 0 };
	int err = serve_store__add(&serve->store, profile, &error);

	if (err && !serve->has_failed_to_keep)
		message__error(&error, err);
	if (!err && serve->has_failed_to_keep)
		message__print("recordings are kept again in %s", serve->store.directory);
	serve->has_failed_to_keep = err;
	return err;
}

/* There is no copy for the processes that want one. */
static void refuse_copies(struct serve *serve, const char *why)
{
	if (serve->http_wants)
		refuse_http(serve, why);
	if (serve->otlp_wants)
		serve_otlp__postpone(&serve->otlp, why);
}

static void take_copy(struct serve *serve)
{
	struct error error = { 0 };
	const struct profile *profile = read_copy(serve, &error);

	serve->is_copying = false;
	serve->has_begun = true;
	if (!profile)
		message__error(&error, -EIO);
	if ((serve->http_wants || serve->otlp_wants) && profile)
		give_copy(serve, profile);
	else if (!profile)
		refuse_copies(serve, error.text);
	if (serve->store_wants && profile)
		(void)keep_copy(serve, profile);
	serve->http_wants = serve->store_wants = serve->otlp_wants = false;
}

static void refuse_copy(struct serve *serve, const struct error *error)
{
	serve->is_copying = false;
	serve->has_begun = true;
	refuse_copies(serve, error->text);
	if (serve->store_wants)
		message__print("a recording is not kept: %s", error->text);
	serve->http_wants = serve->store_wants = serve->otlp_wants = false;
}

/* Asks for a copy if somebody wants one. */
static void ask(struct serve *serve)
{
	if ((serve->http_wants || serve->store_wants || serve->otlp_wants) && !serve->is_copying &&
	    !serve->is_stopping)
		serve->is_copying = !recorder__ask(serve->recorder);
}

/* Pushes what has come since the last push. */
static void push_last(struct serve *serve, const struct profile *profile, int signals)
{
	__u64 accepted;

	/* One copy may be on its way. */
	serve_otlp__finish(&serve->otlp, signals);
	accepted = serve->otlp.counts.accepted;
	serve->http_wants = false;
	serve->otlp_wants = true;
	give_copy(serve, profile);
	serve_otlp__finish(&serve->otlp, signals);
	if (serve->otlp.counts.accepted == accepted)
		message__print(
			"the collector lacks what has come since the last push: that was the "
			"last one");
}

/* The recording has ended. Returns the exit status. */
static int end(struct serve *serve, const struct error *why, int signals)
{
	struct error error = { 0 };
	const struct profile *profile;
	int status = EXIT_GOOD;

	/* A signal has ended it before there was a recording. */
	if (why->text[0] && serve->is_stopping && !serve->has_begun)
		return EXIT_GOOD;
	if (why->text[0]) {
		message__print("%s", why->text);
		return recorder__status(serve->recorder) ?: EXIT_OURS;
	}
	profile = serve->store.directory || serve->otlp.is_used ? read_copy(serve, &error) : NULL;
	/* This is the last chance to say it. */
	serve->has_failed_to_keep = false;
	serve->otlp.said = 0;
	if (error.text[0])
		message__error(&error, -EIO);
	if (serve->store.directory && (!profile || keep_copy(serve, profile)))
		status = EXIT_OURS;
	if (serve->otlp.is_used && profile)
		push_last(serve, profile, signals);
	if (!serve->is_stopping)
		message__print("the recording has ended, since no process is left to record");
	return status;
}

static void give_token(struct serve *serve)
{
	int err = serve->http.pid ? http_process__set_token(&serve->http, serve->token) : 0;

	if (err)
		replace_http(serve, err);
}

static void attend_signal(struct serve *serve, int fd)
{
	struct signalfd_siginfo info;
	struct error error = { 0 };

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP) {
			if (read_token(serve, &error))
				message__print("the old token stays: %s", error.text);
			else
				give_token(serve);
			serve->store_wants = serve->store.directory;
		} else {
			serve->is_stopping = true;
			http_process__end(&serve->http);
			serve_listener__close(&serve->listener);
			recorder__stop(serve->recorder);
		}
	}
}

/* A request may have ended the process that answers; the recording goes on, and another process answers. */
static void attend_http(struct serve *serve)
{
	int wants = http_process__take(&serve->http);

	if (wants > 0)
		serve->http_wants = true;
	if (wants < 0)
		replace_http(serve, 0);
}

static void attend_times(struct serve *serve)
{
	__u64 now = clock__now_ns();
	struct error error = { 0 };

	if (serve->is_stopping)
		return;
	if (serve->http_due_ns && now >= serve->http_due_ns && start_http(serve, &error)) {
		message__print("%s", error.text);
		delay_http(serve);
	}
	serve->otlp_wants |= serve_otlp__wants(&serve->otlp);
	if (serve->store.directory && now >= serve->rotate_due_ns) {
		serve->store_wants = true;
		/* Spans that a stopped machine has missed are not made up for. */
		serve->rotate_due_ns +=
			(now - serve->rotate_due_ns) / serve->rotate_ns * serve->rotate_ns +
			serve->rotate_ns;
	}
}

/* Returns the exit status. */
static int attend(struct serve *serve, int signals)
{
	struct error error = { 0 };
	enum recorder_news news;
	char line[1024];

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = recorder__fd(serve->recorder), .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
			{ .fd = serve->http.pid ? serve->http.channel : -1, .events = POLLIN },
			{ .fd = serve->otlp.process.pid ? serve->otlp.process.channel : -1,
			  .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), 500) < 0 && errno != EINTR)
			return EXIT_OURS;
		news = recorder__attend(serve->recorder, &error);
		while (recorder__next_message(serve->recorder, line, sizeof(line)))
			if (news != RECORDER_ENDED || strcmp(line, error.text) != 0)
				message__print("%s", line);
		if (news == RECORDER_COPIED)
			take_copy(serve);
		else if (news == RECORDER_REFUSED)
			refuse_copy(serve, &error);
		/* What ended the processes may have asked for the end of this one, too. */
		else if (news == RECORDER_ENDED) {
			if (fds[1].revents)
				attend_signal(serve, signals);
			return end(serve, &error, signals);
		}
		error.text[0] = '\0';
		if (fds[1].revents)
			attend_signal(serve, signals);
		if (serve->http.pid && fds[2].revents)
			attend_http(serve);
		if (serve->otlp.process.pid && fds[3].revents)
			serve_otlp__attend(&serve->otlp);
		attend_times(serve);
		ask(serve);
	}
}

/* Blocks the signals, which are read from the descriptor that it returns, or a negative errno. */
static int catch_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int open_all(struct serve *serve, struct error *error)
{
	int err = read_token(serve, error);

	if (!err && serve->store.directory)
		err = serve_store__open(&serve->store, error);
	if (!err && serve->otlp.is_used)
		err = serve_otlp__set_up(&serve->otlp, error);
	if (!err && serve->address)
		err = serve_listener__open(&serve->listener, serve->address, serve->token[0],
					   error);
	if (!err)
		err = recorder__start(&serve->words, &serve->recorder, error);
	if (!err && serve->address)
		err = start_http(serve, error);
	return !err && serve->otlp.is_used ? serve_otlp__start(&serve->otlp, error) : err;
}

static int run_serve(char **argv)
{
	struct serve serve = {
		.rotate_ns = DEFAULT_ROTATE_NS,
		.keep_ns = DEFAULT_KEEP_NS,
		.n_series = DEFAULT_SERIES,
		.store.most_bytes = DEFAULT_MAX_BYTES,
		.listener.fd = -1,
		.http.channel = -1,
		.otlp = { .interval_ns = DEFAULT_OTLP_NS, .process.channel = -1 },
	};
	_cleanup_(close_fd) int signals = -1;
	struct error error = { 0 };
	int status = options__read(&cmd_serve, parse_serve, &serve, argv), err;

	if (status != OPTIONS_READ) {
		recorder_words__release(&serve.words);
		return status;
	}
	progress__forbid();
	signals = catch_signals();
	err = signals < 0 ? signals : open_all(&serve, &error);
	if (err) {
		message__error(&error, err);
		status = err == -EINVAL ? EXIT_USAGE : EXIT_OURS;
	} else {
		serve.rotate_due_ns = clock__now_ns() + serve.rotate_ns;
		/* Its names are there when the first request comes. */
		serve.is_copying = !recorder__ask(serve.recorder);
		if (serve.address)
			message__print("listening at %s", serve.listener.name);
		if (serve.otlp.is_used)
			message__print("pushing profiles every %llu s",
				       serve.otlp.interval_ns / NS_PER_S);
		status = attend(&serve, signals);
	}
	http_process__end(&serve.http);
	serve_otlp__release(&serve.otlp);
	serve_listener__close(&serve.listener);
	recorder__free(serve.recorder);
	recorder_words__release(&serve.words);
	profile__free(serve.named);
	return status;
}

const struct command cmd_serve = {
	.name = "serve",
	.summary = "Record services, for Prometheus, pprof and OpenTelemetry over HTTP",
	.doc = "Record running processes for as long as this runs, answer HTTP requests: "
	       "/metrics, /debug/pprof/heap and /debug/pprof/allocs, and push OpenTelemetry's profiles.\v"
	       "For example: sudo allocprof serve --listen 127.0.0.1:9100 --sample 512K --name redis-server",
	.options = serve_options,
	.run = run_serve,
};
