// SPDX-License-Identifier: GPL-3.0-or-later
/* Both ends of `allocprof ctl`: a recording with clients that send anything, and clients whose recording does. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "error.h"
#include "fuzz.h"

#define CLIENTS 20

static struct control *control;

static void handle(void *context, __u64 client, const char *request)
{
	FUZZ_CHECK(strlen(request) <= CONTROL_MAX_REQUEST);
	switch (request[0]) {
	case 'a':
		break;
	case 'b':
		control__reply(control, client, false, "%*s", CONTROL_MAX_REPLY, request);
		break;
	case 'c':
		control__reply(control, client + 1, true, "none");
		break;
	case 'd':
		control__hide(control);
		break;
	default:
		control__reply(control, client, true, "%d\tcounting\tnow\t%s", 7, request);
	}
}

static void act(int directory, const char *name, int *client, uint8_t action, const uint8_t *data,
		size_t size)
{
	char reply[CONTROL_MAX_REPLY + 8];
	ssize_t len;

	switch (action % 4) {
	case 0:
		if (*client < 0)
			*client = control_directory__connect(directory, name);
		break;
	case 1:
		if (*client >= 0)
			send(*client, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 2:
		if (*client >= 0)
			close(*client);
		*client = -1;
		break;
	case 3:
		len = *client < 0 ? 0 : recv(*client, reply, sizeof(reply), MSG_DONTWAIT);
		FUZZ_CHECK(len <= CONTROL_MAX_REPLY);
		break;
	}
	control__attend(control);
}

static void serve(int directory, const char *name, const uint8_t *data, size_t size)
{
	struct error error = { "" };
	int clients[CLIENTS];

	memset(clients, -1, sizeof(clients));
	FUZZ_CHECK(!control__open(handle, NULL, &control, &error));
	while (size >= 2) {
		size_t used = data[0] / 4 < size - 2 ? data[0] / 4 : size - 2;

		act(directory, name, &clients[data[1] % CLIENTS], data[0], data + 2, used);
		used = data[0] % 4 == 1 ? used : 0;
		data += 2 + used;
		size -= 2 + used;
	}
	for (int i = 0; i < CLIENTS; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	control__attend(control);
	control__close(control);
}

/* Answers both of the client's connections with the input. */
static void answer(int listening, const uint8_t *data, size_t size)
{
	char request[100];

	for (int i = 0; i < 2; i++) {
		int client = accept(listening, NULL, NULL);

		recv(client, request, sizeof(request), 0);
		send(client, data, size, MSG_NOSIGNAL);
		close(client);
	}
	_exit(0);
}

static void ask(int directory, const char *name, const uint8_t *data, size_t size)
{
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct control_recordings found = { 0 };
	char reply[CONTROL_MAX_REPLY];
	struct sockaddr_un address;
	struct error error = { "" };
	bool is_done;
	pid_t pid;

	control_directory__address(directory, name, &address);
	FUZZ_CHECK(!bind(listening, (struct sockaddr *)&address, sizeof(address)));
	FUZZ_CHECK(!listen(listening, 2));
	pid = fork();
	if (!pid)
		answer(listening, data, size);
	control_recordings__find(&found, NULL);
	for (size_t i = 0; i < found.n; i++) {
		fuzz__read_text(found.list[i].state);
		fuzz__read_text(found.list[i].since);
		fuzz__read_text(found.list[i].command);
	}
	control_recordings__release(&found);
	if (!control_client__ask(getpid(), "status", &is_done, reply, &error))
		fuzz__read_text(reply);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(listening);
	unlinkat(directory, name, 0);
}

/* Not the directory of this machine's recordings. */
static int open_directory(void)
{
	static char path[] = "/tmp/allocprof-fuzz.XXXXXX";
	int directory;

	FUZZ_CHECK(mkdtemp(path) && !setenv("XDG_RUNTIME_DIR", path, 1));
	/* Root's is fixed: it gets another one of that name. */
	if (!geteuid()) {
		rmdir(path);
		FUZZ_CHECK(!unshare(CLONE_NEWNS));
		FUZZ_CHECK(!mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
		FUZZ_CHECK(!mount("tmpfs", "/run", "tmpfs", 0, NULL));
	}
	directory = control_directory__open(true, NULL);
	FUZZ_CHECK(directory >= 0);
	return directory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int directory = -1;
	char name[CONTROL_NAME_SIZE];

	if (directory < 0)
		directory = open_directory();
	if (!size)
		return 0;
	control_directory__name(getpid(), name);
	if (data[0] % 16)
		serve(directory, name, data + 1, size - 1);
	else
		ask(directory, name, data + 1, size - 1);
	return 0;
}
