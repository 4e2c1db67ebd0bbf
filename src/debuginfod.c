// SPDX-License-Identifier: GPL-3.0-or-later
#include "debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

/* Opened by name as libdw does, which can do without it too. The types are those of debuginfod.h. */
#define LIBRARY "libdebuginfod.so.1"

typedef struct debuginfod_client debuginfod_client;
typedef int (*progress_fn)(debuginfod_client *client, long done, long total);

struct debuginfod {
	void *library;
	debuginfod_client *client;
	debuginfod_progress_fn progress;
	void *context;
	void (*end)(debuginfod_client *client);
	int (*find)(debuginfod_client *client, const unsigned char *build_id, int size,
		    char **path);
};

/* ISO C has no conversion from what dlsym() returns to a function. */
static bool find_function(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	return *(void **)function;
}

/* The client knows whose it is, if it is asked through the library. */
static int told(debuginfod_client *client, long done, long total)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	void *(*get_user_data)(debuginfod_client * client);
	struct debuginfod *debuginfod = NULL;

	if (library && find_function(library, "debuginfod_get_user_data", &get_user_data))
		debuginfod = get_user_data(client);
	if (library)
		dlclose(library);
	return debuginfod ? debuginfod->progress(debuginfod->context, done, total) : 1;
}

struct debuginfod *debuginfod__new(debuginfod_progress_fn progress, void *context)
{
	void (*set_progress)(debuginfod_client * client, progress_fn fn);
	void (*set_user_data)(debuginfod_client * client, void *data);
	debuginfod_client *(*begin)(void);
	const char *servers = getenv("DEBUGINFOD_URLS");
	struct debuginfod *debuginfod;

	if (!servers || !*servers)
		return NULL;
	debuginfod = calloc(1, sizeof(*debuginfod));
	if (!debuginfod)
		return NULL;
	debuginfod->progress = progress;
	debuginfod->context = context;
	/* The TLS library that comes along does not survive being unloaded. */
	debuginfod->library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NODELETE);
	if (!debuginfod->library ||
	    !find_function(debuginfod->library, "debuginfod_begin", &begin) ||
	    !find_function(debuginfod->library, "debuginfod_end", &debuginfod->end) ||
	    !find_function(debuginfod->library, "debuginfod_find_debuginfo", &debuginfod->find) ||
	    !find_function(debuginfod->library, "debuginfod_set_progressfn", &set_progress) ||
	    !find_function(debuginfod->library, "debuginfod_set_user_data", &set_user_data)) {
		debuginfod__free(debuginfod);
		return NULL;
	}
	debuginfod->client = begin();
	if (!debuginfod->client) {
		debuginfod__free(debuginfod);
		return NULL;
	}
	set_user_data(debuginfod->client, debuginfod);
	set_progress(debuginfod->client, told);
	return debuginfod;
}

void debuginfod__free(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->client)
		debuginfod->end(debuginfod->client);
	if (debuginfod->library)
		dlclose(debuginfod->library);
	free(debuginfod);
}

int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id, char **path)
{
	/* A size of 0 says that the id is text. */
	return debuginfod->find(debuginfod->client, (const unsigned char *)build_id, 0, path);
}
