// SPDX-License-Identifier: GPL-3.0-or-later
/* The child process that fetches debug files by elfutils' client. */
#include <dlfcn.h>
#include <linux/types.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "confinement.h"
#include "debuginfod_internal.h"
#include "packet.h"
#include "user.h"

/*
 * Loaded at run time, as libdw does, because it is optional. The types are those of debuginfod.h.
 */
#define LIBRARY "libdebuginfod.so.1"

/* Minimum time between two messages. */
#define REPORT_MS 50

typedef struct debuginfod_client debuginfod_client;
typedef int (*progress_fn)(debuginfod_client *client, long done, long total);

struct server {
	debuginfod_client *client;
	int (*find)(debuginfod_client *client, const unsigned char *build_id, int size,
		    char **path);
	__u64 reported_ms;
};

/* ISO C cannot convert the result of dlsym() to a function pointer. */
static bool find_function(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	return *(void **)function;
}

/* Progress callback of the client, which passes our server as its user data. */
static int report_progress(debuginfod_client *client, long done, long total)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	void *(*get_user_data)(debuginfod_client * client);
	const struct debuginfod_progress progress = { .done = done, .total = total };
	struct packet packet = { .kind = PACKET_NOTE };
	struct server *server = NULL;

	if (library && find_function(library, "debuginfod_get_user_data", &get_user_data))
		server = get_user_data(client);
	if (library)
		dlclose(library);
	if (!server)
		return 1;
	if (clock__now_ns() / NS_PER_MS - server->reported_ms < REPORT_MS)
		return 0;
	server->reported_ms = clock__now_ns() / NS_PER_MS;
	memcpy(packet.bytes, &progress, sizeof(progress));
	return packet__send(CONFINED_FD, &packet, sizeof(progress), NULL, 0) != 0;
}

static bool open_client(struct server *server)
{
	void (*set_progress)(debuginfod_client * client, progress_fn fn);
	void (*set_user_data)(debuginfod_client * client, void *data);
	debuginfod_client *(*begin)(void);
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NODELETE);

	if (!library || !find_function(library, "debuginfod_begin", &begin) ||
	    !find_function(library, "debuginfod_find_debuginfo", &server->find) ||
	    !find_function(library, "debuginfod_set_progressfn", &set_progress) ||
	    !find_function(library, "debuginfod_set_user_data", &set_user_data))
		return false;
	server->client = begin();
	if (!server->client)
		return false;
	set_user_data(server->client, server);
	set_progress(server->client, report_progress);
	return true;
}

static void answer(struct server *server, const char *build_id)
{
	struct packet packet = { .kind = PACKET_GIVE };
	/* Size 0: the id is a hex string. */
	int fd = server->find(server->client, (const unsigned char *)build_id, 0, NULL);

	packet.status = fd < 0 ? fd : 0;
	if (packet__send(CONFINED_FD, &packet, 0, &fd, fd >= 0))
		_exit(1);
	close_fd(&fd);
}

/* Has the client keep what it fetches where the user that this process becomes can write. */
static void find_cache(void)
{
	const struct passwd *entry;
	uid_t uid;
	gid_t gid;

	if (debuginfod_cache__is_roots()) {
		debuginfod_cache__enter();
		return;
	}
	if (!sudo_user__find(&uid, &gid))
		return;
	entry = getpwuid(uid);
	unsetenv("XDG_CACHE_HOME");
	if (entry)
		setenv("HOME", entry->pw_dir, 1);
}

void debuginfod__serve(int fd, pid_t parent)
{
	const struct confinement confinement = {
		.kind = CONFINE_CLIENT,
		.name = "allocprof-fetch",
		.parent = parent,
		.fd = fd,
	};
	struct server server = { 0 };
	char build_id[MAX_REQUEST];
	ssize_t len;

	find_cache();
	if (confinement__enter(&confinement) || !open_client(&server) ||
	    confinement__close(CONFINE_CLIENT))
		_exit(1);
	while ((len = recv(CONFINED_FD, build_id, sizeof(build_id) - 1, 0)) > 0) {
		build_id[len] = '\0';
		answer(&server, build_id);
	}
	_exit(0);
}
