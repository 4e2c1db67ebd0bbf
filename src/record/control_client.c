// SPDX-License-Identifier: GPL-3.0-or-later
#include "control_client.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"

static int ask(int fd, const char *request, bool *is_done, char reply[CONTROL_MAX_REPLY])
{
	ssize_t len;

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	do
		len = recv(fd, reply, CONTROL_MAX_REPLY - 1, 0);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return -errno;
	if (len < 2)
		return -ECONNRESET;
	reply[len] = '\0';
	*is_done = reply[0] == '0';
	memmove(reply, reply + 2, len - 1);
	return 0;
}

int control_client__ask(pid_t pid, const char *request, bool *is_done,
			char reply[CONTROL_MAX_REPLY], struct error *error)
{
	_cleanup_(close_fd) int directory = control_directory__open(false, error);
	_cleanup_(close_fd) int fd = -1;
	char name[CONTROL_NAME_SIZE];
	int err;

	if (directory < 0)
		return directory;
	control_directory__name(pid, name);
	fd = control_directory__connect(directory, name);
	err = fd < 0 ? fd : ask(fd, request, is_done, reply);
	if (err)
		return error__set(error, err,
				  "the recording %d does not answer: %s; it may have just ended",
				  pid, strerror(-err));
	return 0;
}

/* Parses an answer of the form "process\tstate\tsince\tcommand". */
static bool read_who(char *text, struct control_recording *one)
{
	const char *process = strsep(&text, "\t");
	const char *state = strsep(&text, "\t"), *since = strsep(&text, "\t");

	if (!text)
		return false;
	one->target = atoi(process);
	snprintf(one->state, sizeof(one->state), "%s", state);
	snprintf(one->since, sizeof(one->since), "%s", since);
	snprintf(one->command, sizeof(one->command), "%s", text);
	return true;
}

/* Asks the recording at @name what it records; false if it does not answer. Removes stale
 * sockets. */
static bool ask_who(int directory, const char *name, struct control_recording *one)
{
	_cleanup_(close_fd) int fd = control_directory__connect(directory, name);
	struct timeval patience = { .tv_sec = CONTROL_PATIENCE_SECONDS };
	char reply[CONTROL_MAX_REPLY];
	bool is_done;

	if (fd == -ECONNREFUSED)
		unlinkat(directory, name, 0);
	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return !ask(fd, "who", &is_done, reply) && is_done && read_who(reply, one);
}

static int add(struct control_recordings *recordings, const struct control_recording *one)
{
	if (array__reserve(&recordings->list, &recordings->room, recordings->n + 1,
			   sizeof(*recordings->list)))
		return -ENOMEM;
	recordings->list[recordings->n++] = *one;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return ((const struct control_recording *)a)->pid -
	       ((const struct control_recording *)b)->pid;
}

int control_recordings__find(struct control_recordings *recordings, struct error *error)
{
	int directory = control_directory__open(false, error);
	const struct dirent *entry;
	DIR *entries;
	int err = 0;

	if (directory == -ENOENT) {
		/* There has been no recording yet. */
		if (error)
			error->text[0] = '\0';
		return 0;
	}
	if (directory < 0)
		return directory;
	entries = fdopendir(directory);
	if (!entries) {
		close(directory);
		return -ENOMEM;
	}
	while (!err && (entry = readdir(entries))) {
		struct control_recording one = { .pid = control_directory__pid(entry->d_name) };

		if (one.pid && ask_who(directory, entry->d_name, &one))
			err = add(recordings, &one);
	}
	closedir(entries);
	if (recordings->n)
		qsort(recordings->list, recordings->n, sizeof(*recordings->list), compare);
	return err;
}

void control_recordings__release(struct control_recordings *recordings)
{
	free(recordings->list);
	*recordings = (struct control_recordings){ 0 };
}
