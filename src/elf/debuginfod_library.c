// SPDX-License-Identifier: GPL-3.0-or-later
/* Fetches debug files by the library of elfutils' client. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

#include "debuginfod.h"
#include "debuginfod_client.h"

/*
 * The library is loaded at run time, as libdw does, since it is optional. The types are those of
 * debuginfod.h.
 */
#define LIBRARY "libdebuginfod.so.1"

typedef struct debuginfod_client_of_library debuginfod_client;
typedef int (*progress_fn)(debuginfod_client *client, long done, long total);

struct debuginfod_client {
	debuginfod_client *client;
	int (*find)(debuginfod_client *client, const unsigned char *build_id, int size,
		    char **path);
	const struct debuginfod_reporter *reporter;
};

const char *const debuginfod__client = "libdebuginfod";

const enum confinement_kind debuginfod_client__confinement = CONFINE_CLIENT;

/* Finds a function; ISO C cannot convert the result of dlsym() to a function pointer. */
static bool find_function(void *library, const char *name, void *function)
{
	*(void **)function = dlsym(library, name);
	return *(void **)function;
}

/* The library's progress callback; its user data is our struct. */
static int report_progress(debuginfod_client *client, long done, long total)
{
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
	void *(*get_user_data)(debuginfod_client * client);
	const struct debuginfod_client *ours = NULL;

	if (library && find_function(library, "debuginfod_get_user_data", &get_user_data))
		ours = get_user_data(client);
	if (library)
		dlclose(library);
	return ours ? ours->reporter->report(ours->reporter->context, done, total) : 1;
}

static bool load(struct debuginfod_client *ours)
{
	void (*set_progress)(debuginfod_client * client, progress_fn fn);
	void (*set_user_data)(debuginfod_client * client, void *data);
	debuginfod_client *(*begin)(void);
	void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_NODELETE);

	if (!library || !find_function(library, "debuginfod_begin", &begin) ||
	    !find_function(library, "debuginfod_find_debuginfo", &ours->find) ||
	    !find_function(library, "debuginfod_set_progressfn", &set_progress) ||
	    !find_function(library, "debuginfod_set_user_data", &set_user_data))
		return false;
	ours->client = begin();
	if (!ours->client)
		return false;
	set_user_data(ours->client, ours);
	set_progress(ours->client, report_progress);
	return true;
}

struct debuginfod_client *debuginfod_client__open(const struct debuginfod_reporter *reporter)
{
	struct debuginfod_client *ours = calloc(1, sizeof(*ours));

	if (!ours)
		return NULL;
	ours->reporter = reporter;
	if (!load(ours)) {
		free(ours);
		return NULL;
	}
	return ours;
}

int debuginfod_client__find(struct debuginfod_client *ours, const char *build_id)
{
	/* A size of 0 means that the id is a hex string. */
	return ours->find(ours->client, (const unsigned char *)build_id, 0, NULL);
}
