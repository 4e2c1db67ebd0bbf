// SPDX-License-Identifier: GPL-3.0-or-later
/* What this engine cannot measure is handed over to another one of the session, if there is one. */
#include "preload_engine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "cleanup.h"
#include "command_path.h"
#include "file.h"
#include "target.h"

static __u64 own_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

static int take(struct preload_engine *engine, struct handed_over process)
{
	const struct engine_others *others = &engine->others;
	int err;

	if (!others->take)
		return -EOPNOTSUPP;
	process.library = preload__library(engine->preload);
	err = others->take(others->context, &process);
	if (err != -EPERM && err != -EOPNOTSUPP)
		return err;
	/* Nobody need ask again. */
	engine->others.take = NULL;
	preload__hand_over(engine->preload, false);
	return err;
}

static bool take_refused(void *context, const struct preload_refused *refused)
{
	struct preload_engine *engine = context;
	const struct handed_over process = {
		.pid = refused->pid,
		.image = refused->image + 1,
		.path = refused->path,
	};

	/* Translated code with a probe in it would end the process. The number of a process in another namespace
	 * is another process here. */
	if (refused->reason == INSIDE_REFUSES_TRANSLATOR || !refused->pid_namespace ||
	    refused->pid_namespace != own_namespace() ||
	    !preload_engine__runs(engine, refused->pid))
		return false;
	return !take(engine, process);
}

int preload_engine__take_refused(struct preload_engine *engine)
{
	return preload__take_refused(engine->preload, take_refused, engine);
}

int preload_engine__take_no_more(struct preload_engine *engine)
{
	int err = engine->others.take ? preload__hand_over(engine->preload, false) : 0;

	engine->others.take = NULL;
	return err ? err : preload_engine__take_refused(engine);
}

/* Also where only the program's own code calls it. */
static bool has_malloc(const struct preload_engine *engine, const char *path)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct allocator *allocator;
	bool has;

	if (fd < 0 || allocator__parse(engine->parser, fd, path, &allocator, NULL))
		return false;
	has = (!allocator->is_wrapper || allocator->goes_past) &&
	      allocator__find(allocator, AP_MALLOC);
	allocator__free(allocator);
	return has;
}

bool preload_engine__hands_over_malloc(struct preload_engine *engine, char *const argv[])
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;

	return engine->others.take && !command_path__find(argv[0], getenv("PATH"), &path) &&
	       !command_path__elf(path, getenv("PATH"), &program) && has_malloc(engine, program) &&
	       !take(engine, (struct handed_over){ 0 });
}

void preload_engine__hand_over_command(struct preload_engine *engine)
{
	const struct handed_over process = {
		.pid = engine->target->pid,
		.path = engine->command,
	};

	if (engine->command_refusal >= 0 && engine->command_refusal != INSIDE_REFUSES_TRANSLATOR)
		engine->is_command_taken = !take(engine, process);
}

bool preload_engine__find_elsewhere(const struct preload_engine *engine, size_t image,
				    struct followed_elsewhere *out)
{
	const struct engine_others *others = &engine->others;

	return others->find && others->find(others->context, image + 1, out);
}
