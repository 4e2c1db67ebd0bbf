// SPDX-License-Identifier: GPL-3.0-or-later
/* Starts the child process that records, asks it for copies, and reads them. */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "command.h"
#include "control.h"
#include "data_file.h"
#include "epoll.h"
#include "error.h"
#include "message.h"
#include "options.h"

/* What is kept of the child's sentences until they are taken; the rest is lost. */
#define MESSAGES_SIZE 16384

struct recorder {
	pid_t pid;
	int status;
	int epoll, control, errors, pidfd, copy, final;
	bool has_asked, has_ended;
	char messages[MESSAGES_SIZE];
	size_t n_messages; /* bytes */
	char last[sizeof(
		((struct error *)0)
			->text)]; /* the last sentence, which is the reason if the child fails */
};

static void shut(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

static int add_word(struct recorder_words *words, char *word)
{
	if (!word || array__reserve(&words->words, &words->room, words->n + 1, sizeof(word))) {
		free(word);
		return -ENOMEM;
	}
	words->words[words->n++] = word;
	return 0;
}

struct search {
	int key;
	const struct argp_option *found;
};

static bool has_key(const struct argp_option *option, const struct argp_option *meaning,
		    void *context)
{
	struct search *search = context;

	if (option->key == search->key)
		search->found = option;
	return search->found;
}

int recorder_words__add(struct recorder_words *words, int key, const char *arg)
{
	struct search search = { .key = key };
	char *word;

	if (!options__visit(&cmd_record, has_key, &search) || !search.found->name)
		return OPTIONS_UNKNOWN;
	if (asprintf(&word, "--%s%s%s", search.found->name, arg ? "=" : "", arg ?: "") < 0)
		return -ENOMEM;
	return add_word(words, word);
}

int recorder_words__add_no_arguments(struct recorder_words *words)
{
	return add_word(words, strdup("--no-arguments"));
}

void recorder_words__release(struct recorder_words *words)
{
	for (size_t i = 0; i < words->n; i++)
		free(words->words[i]);
	free(words->words);
	*words = (struct recorder_words){ 0 };
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all descriptors but the standard ones and @kept, which are sorted by that: a descriptor of
 * the owner's would be open for as long as the child runs. */
static void close_others(int *kept, size_t n)
{
	int first = STDERR_FILENO + 1;

	qsort(kept, n, sizeof(*kept), compare);
	for (size_t i = 0; i < n; i++) {
		if (kept[i] > first)
			close_range(first, kept[i] - 1, 0);
		if (kept[i] >= first)
			first = kept[i] + 1;
	}
	close_range(first, UINT_MAX, 0);
}

/* Never returns. */
static void run_child(char **argv, const struct recorder_owner *owner, int errors)
{
	int kept[] = { owner->control_fd, owner->copy_fd, owner->final_fd };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;
	int status;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != owner->pid || null < 0)
		_exit(EXIT_OURS);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* It ends in order also when its sentences are read no more. */
	signal(SIGPIPE, SIG_IGN);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	close_others(kept, ARRAY_SIZE(kept));
	progress__forbid();
	status = record__run(argv, owner);
	fflush(stderr);
	_exit(status);
}

/* The descriptors that only the start needs. */
struct child_ends {
	int control, errors;
};

static int open_ends(struct recorder *recorder, struct child_ends *ends)
{
	int pair[2];

	recorder->epoll = epoll_create1(EPOLL_CLOEXEC);
	recorder->copy = memfd_create("allocprof-copy", MFD_CLOEXEC);
	recorder->final = memfd_create("allocprof-recording", MFD_CLOEXEC);
	if (recorder->epoll < 0 || recorder->copy < 0 || recorder->final < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	recorder->control = pair[0];
	ends->control = pair[1];
	if (pipe2(pair, O_CLOEXEC))
		return -errno;
	recorder->errors = pair[0];
	ends->errors = pair[1];
	if (fcntl(recorder->errors, F_SETFL, O_NONBLOCK))
		return -errno;
	return epoll__watch(recorder->epoll, recorder->control)
		       ?: epoll__watch(recorder->epoll, recorder->errors);
}

static int fork_child(struct recorder *recorder, const struct child_ends *ends, char **argv,
		      bool waits)
{
	const struct recorder_owner owner = { getpid(), ends->control, recorder->copy,
					      recorder->final, waits };

	fflush(NULL);
	recorder->pid = fork();
	if (!recorder->pid)
		run_child(argv, &owner, ends->errors);
	if (recorder->pid < 0) {
		recorder->pid = 0;
		return -errno;
	}
	recorder->pidfd = syscall(SYS_pidfd_open, recorder->pid, 0);
	return recorder->pidfd < 0 ? -errno : epoll__watch(recorder->epoll, recorder->pidfd);
}

int recorder__start(const struct recorder_words *words, struct recorder **out, struct error *error)
{
	_cleanup_(free_ptr) char **argv = calloc(words->n + 2, sizeof(*argv));
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct child_ends ends = { -1, -1 };
	int err;

	if (!argv || !recorder) {
		free(recorder);
		return error__set(error, -ENOMEM, "out of memory");
	}
	argv[0] = (char *)cmd_record.name;
	for (size_t i = 0; i < words->n; i++)
		argv[i + 1] = words->words[i];
	recorder->epoll = recorder->control = recorder->errors = recorder->pidfd = -1;
	recorder->copy = recorder->final = -1;
	err = open_ends(recorder, &ends);
	if (!err)
		err = fork_child(recorder, &ends, argv, words->waits);
	close_fd(&ends.control);
	close_fd(&ends.errors);
	if (err) {
		recorder__free(recorder);
		return error__set(error, err, "cannot start the process that records: %s",
				  strerror(-err));
	}
	*out = recorder;
	return 0;
}

bool recorder_owner__has_left(const struct recorder_owner *owner)
{
	struct pollfd fd = { .fd = owner->control_fd };

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP;
}

int recorder__fd(const struct recorder *recorder)
{
	return recorder->epoll;
}

int recorder__ask(struct recorder *recorder)
{
	static const char request[] = "copy";

	if (recorder->has_asked)
		return -EBUSY;
	if (recorder->control < 0)
		return -EPIPE;
	if (send(recorder->control, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	recorder->has_asked = true;
	return 0;
}

/* Keeps the last sentence apart, since it is asked for last. */
static void keep_last(struct recorder *recorder)
{
	const char *text = recorder->messages, *prefix = "allocprof: ", *line;
	size_t len = strlen(text);

	while (len && text[len - 1] == '\n')
		len--;
	if (!len)
		return;
	line = memrchr(text, '\n', len);
	line = line ? line + 1 : text;
	len -= line - text;
	if (len > strlen(prefix) && !strncmp(line, prefix, strlen(prefix))) {
		line += strlen(prefix);
		len -= strlen(prefix);
	}
	snprintf(recorder->last, sizeof(recorder->last), "%.*s", (int)len, line);
}

static void read_messages(struct recorder *recorder)
{
	char rest[512] = { 0 };
	ssize_t len;

	do {
		size_t room = MESSAGES_SIZE - 1 - recorder->n_messages;

		len = read(recorder->errors,
			   room ? recorder->messages + recorder->n_messages : rest,
			   room ? room : sizeof(rest));
		if (len > 0 && room) {
			recorder->n_messages += len;
			recorder->messages[recorder->n_messages] = '\0';
		}
	} while (len > 0 || (len < 0 && errno == EINTR));
	/* At the end of the file epoll would tell it for ever. */
	if (!len)
		shut(&recorder->errors);
	keep_last(recorder);
}

static enum recorder_news take_answer(struct recorder *recorder, struct error *error)
{
	char reply[CONTROL_MAX_REPLY];
	ssize_t len = recv(recorder->control, reply, sizeof(reply) - 1, MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return RECORDER_QUIET;
	/* The child is about to end. */
	if (len < 2) {
		shut(&recorder->control);
		return RECORDER_QUIET;
	}
	reply[len] = '\0';
	recorder->has_asked = false;
	if (reply[0] == '0')
		return RECORDER_COPIED;
	error__set(error, -EIO, "%s", reply + 2);
	return RECORDER_REFUSED;
}

static enum recorder_news take_end(struct recorder *recorder, struct error *error)
{
	int status;

	if (waitpid(recorder->pid, &status, WNOHANG) != recorder->pid)
		return RECORDER_QUIET;
	recorder->pid = 0;
	recorder->has_ended = true;
	shut(&recorder->pidfd);
	if (recorder->errors >= 0)
		read_messages(recorder);
	recorder->status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_OURS;
	if (WIFSIGNALED(status))
		error__set(error, -ECHILD, "the process that records was ended by a signal: %s",
			   strsignal(WTERMSIG(status)));
	else if (recorder->status == EXIT_OURS || recorder->status == EXIT_USAGE)
		error__set(error, -ECHILD, "%s",
			   recorder->last[0] ? recorder->last : "the process that records failed");
	return RECORDER_ENDED;
}

enum recorder_news recorder__attend(struct recorder *recorder, struct error *error)
{
	enum recorder_news news = RECORDER_QUIET;

	if (recorder->errors >= 0)
		read_messages(recorder);
	if (recorder->control >= 0)
		news = take_answer(recorder, error);
	if (news == RECORDER_QUIET && recorder->pid)
		news = take_end(recorder, error);
	return news;
}

int recorder__read(const struct recorder *recorder, struct profile **profile, struct error *error)
{
	return data_file__read_open(recorder->has_ended ? recorder->final : recorder->copy,
				    "the copy of the recording", profile, error);
}

bool recorder__next_message(struct recorder *recorder, char *line, size_t size)
{
	const char *prefix = "allocprof: ", *text = recorder->messages;
	size_t len = strcspn(text, "\n"), skipped = strlen(prefix);

	/* A sentence that is not complete is left for the next time, unless nothing can follow. */
	if (!*text ||
	    (!text[len] && recorder->errors >= 0 && recorder->n_messages < MESSAGES_SIZE - 1))
		return false;
	if (strncmp(text, prefix, skipped))
		skipped = 0;
	snprintf(line, size, "%.*s", (int)(len - skipped), text + skipped);
	len += text[len] == '\n';
	recorder->n_messages -= len;
	memmove(recorder->messages, recorder->messages + len, recorder->n_messages + 1);
	return true;
}

pid_t recorder__pid(const struct recorder *recorder)
{
	return recorder->pid;
}

int recorder__status(const struct recorder *recorder)
{
	return recorder->status;
}

void recorder__stop(const struct recorder *recorder)
{
	if (recorder->pid)
		kill(recorder->pid, SIGTERM);
}

void recorder__free(struct recorder *recorder)
{
	if (!recorder)
		return;
	close_fd(&recorder->control);
	/* The child would wait for ever to write what nobody reads. */
	shut(&recorder->errors);
	recorder__stop(recorder);
	if (recorder->pid)
		while (waitpid(recorder->pid, NULL, 0) < 0 && errno == EINTR)
			;
	close_fd(&recorder->epoll);
	close_fd(&recorder->pidfd);
	close_fd(&recorder->copy);
	close_fd(&recorder->final);
	free(recorder);
}
