// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds out what the user's terminal can show and who writes to it, and runs the pager. */
#include "user_terminal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "message.h"
#include "proc.h"

#define MIN_COLUMNS 40

static size_t find_columns(int fd)
{
	const char *text = getenv("COLUMNS");
	struct winsize size = { 0 };
	unsigned long columns = text ? strtoul(text, NULL, 10) : 0;

	if (!columns && !ioctl(fd, TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (!columns)
		columns = 80;
	return columns < MIN_COLUMNS ? MIN_COLUMNS : columns;
}

static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static const int quiet_signals[] = { SIGINT, SIGQUIT, SIGPIPE };

#define N_QUIET_SIGNALS (ARRAY_SIZE(quiet_signals))

/* The running pager. There is at most one, since a process has one standard output. */
static struct {
	pid_t pid; /* 0: no pager runs */
	int terminal_fd;
	/* The original actions of the signals that are ignored meanwhile. */
	struct sigaction actions[N_QUIET_SIGNALS];
} running;

struct terminal terminal__of(FILE *to)
{
	int fd = to == stdout && running.pid ? running.terminal_fd : fileno(to);
	struct terminal terminal = { .to = to, .is_terminal = isatty(fd) };
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (!terminal.is_terminal)
		return terminal;
	terminal.redraws = term && strcmp(term, "dumb");
	terminal.colour = !(no_color && *no_color) && terminal.redraws;
	terminal.utf8 = locale_is_utf8();
	terminal.columns = find_columns(fd);
	return terminal;
}

/* Returns whether $PATH has the program that @command begins with. */
static bool is_there(const char *command)
{
	const char *path = getenv("PATH");
	size_t len = strcspn(command, " \t");
	char name[4096];

	/* Only the shell can tell what a command with special characters runs. */
	if (strpbrk(command, "$`'\"\\;|&<>(){}=*?~"))
		return true;
	if (memchr(command, '/', len)) {
		snprintf(name, sizeof(name), "%.*s", (int)len, command);
		return !access(name, X_OK);
	}
	while (path && *path) {
		size_t n = strcspn(path, ":");

		snprintf(name, sizeof(name), "%.*s/%.*s", (int)n, n ? path : ".", (int)len,
			 command);
		if (!access(name, X_OK))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static const char *choose_pager(void)
{
	const char *term = getenv("TERM"), *pager = getenv("PAGER");

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb"))
		return NULL;
	if (!pager)
		return is_there("less") ? "less" : NULL;
	if (!*pager || !strcmp(pager, "cat"))
		return NULL;
	if (is_there(pager))
		return pager;
	message__print("cannot run the pager '%s' that PAGER names; printing without", pager);
	return NULL;
}

static void run_pager(const char *pager, const int pipe_fds[2])
{
	for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
		sigaction(quiet_signals[i], &running.actions[i], NULL);
	if (dup2(pipe_fds[0], STDIN_FILENO) < 0)
		_exit(126);
	/* Options as git sets them: quit if the output fits one screen, pass colours on, do not
	 * clear the screen. */
	setenv("LESS", "FRX", false);
	setenv("LV", "-c", false);
	execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	_exit(127);
}

void pager__begin(void)
{
	const char *pager = choose_pager();
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int pipe_fds[2], terminal_fd;

	if (running.pid || !pager || pipe2(pipe_fds, O_CLOEXEC))
		return;
	fflush(stdout);
	terminal_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	/* Ignore the terminal's signals, which are meant for the pager. */
	for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
		sigaction(quiet_signals[i], &ignore, &running.actions[i]);
	running.pid = terminal_fd < 0 ? -1 : fork();
	if (!running.pid)
		run_pager(pager, pipe_fds);
	if (running.pid > 0 && dup2(pipe_fds[1], STDOUT_FILENO) >= 0) {
		running.terminal_fd = terminal_fd;
	} else {
		for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
			sigaction(quiet_signals[i], &running.actions[i], NULL);
		if (terminal_fd >= 0)
			close(terminal_fd);
		running.pid = 0;
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

int pager__end(int err)
{
	if (!running.pid)
		return err;
	/* The pager has quit: discard the rest that is still buffered. */
	__fpurge(stdout);
	clearerr(stdout);
	dup2(running.terminal_fd, STDOUT_FILENO);
	close(running.terminal_fd);
	while (waitpid(running.pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < N_QUIET_SIGNALS; i++)
		sigaction(quiet_signals[i], &running.actions[i], NULL);
	running.pid = 0;
	return err == -EPIPE ? 0 : err;
}

#define MAX_ANCESTORS 64

/* Maximum number of descriptors that are checked per process; a process with more is assumed to
 * have the terminal. */
#define MAX_DESCRIPTORS 1024

/* /dev/tty stands for the controlling terminal, whichever device that is. */
#define IS_CONTROLLING(device) ((device) == makedev(5, 0))

/*
 * Reads the parent of @pid and its controlling terminal; each is 0 if there is none. Returns 0, or
 * -EBUSY if the first thread of the process has ended and others may still run: then /proc does
 * not list its descriptors.
 */
static int read_stat(pid_t pid, pid_t *parent, dev_t *terminal)
{
	struct proc_stat stat;
	unsigned int device;
	int err = proc_stat__read(pid, &stat);

	if (err)
		return err;
	if (stat.state == 'Z')
		return -EBUSY;
	*parent = stat.parent;
	device = stat.terminal;
	*terminal =
		device ? makedev(device >> 8 & 0xfff, (device & 0xff) | (device >> 12 & 0xfff00))
		       : 0;
	return 0;
}

static bool is_ours(const struct terminal_users *terminal, dev_t device)
{
	for (size_t i = 0; i < terminal->n; i++)
		if (terminal->devices[i] == device)
			return true;
	return false;
}

static void add(struct terminal_users *terminal, dev_t device)
{
	size_t room = ARRAY_SIZE(terminal->devices);

	if (device && terminal->n < room && !is_ours(terminal, device))
		terminal->devices[terminal->n++] = device;
}

int terminal_users__of(int fd, struct terminal_users *terminal)
{
	struct stat st;
	pid_t pid = getpid();
	dev_t device;

	if (!isatty(fd) || fstat(fd, &st))
		return -ENOTTY;
	terminal->n = 0;
	add(terminal, st.st_rdev);
	for (int i = 0; pid > 0 && i < MAX_ANCESTORS && !read_stat(pid, &pid, &device); i++)
		add(terminal, device);
	return 0;
}

/* Returns whether descriptor @name in @directory (/proc/PID/fd) is the user's terminal; -ENOENT if
 * the descriptor is closed. */
static int is_terminal(const struct terminal_users *terminal, int directory, const char *name,
		       bool controls)
{
	struct stat st;

	if (fstatat(directory, name, &st, 0))
		return -errno;
	return S_ISCHR(st.st_mode) &&
	       (is_ours(terminal, st.st_rdev) || (controls && IS_CONTROLLING(st.st_rdev)));
}

static bool has_any(const struct terminal_users *terminal, DIR *directory)
{
	const struct dirent *entry;
	size_t n = 0;

	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "0"))
			continue;
		if (n++ == MAX_DESCRIPTORS ||
		    is_terminal(terminal, dirfd(directory), entry->d_name, true) > 0)
			return true;
	}
	return false;
}

bool terminal_users__has(const struct terminal_users *terminal, pid_t pid)
{
	_cleanup_(close_directory) DIR *directory = NULL;
	dev_t controlling;
	char path[64];
	pid_t parent;
	int err = read_stat(pid, &parent, &controlling);

	if (err)
		return err != -ENOENT && err != -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	directory = opendir(path);
	if (!directory)
		return errno != ENOENT && errno != ESRCH;
	if (controlling && is_ours(terminal, controlling))
		return has_any(terminal, directory);
	return is_terminal(terminal, dirfd(directory), "1", false) > 0 ||
	       is_terminal(terminal, dirfd(directory), "2", false) > 0;
}
