// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "debug_file.h"
#include "debuginfod.h"
#include "elf_file.h"
#include "symbols_internal.h"
#include "worker.h"

struct symbols *symbols__new(const struct symbols_options *options)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	elf_version(EV_CURRENT);
	if (symbols && options)
		symbols->options = *options;
	return symbols;
}

static void release_module(struct named_module *module)
{
	free(module->path);
	free(module->build_id);
	free(module->text);
	close_fd(&module->fd);
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->n_modules; i++)
		release_module(&symbols->modules[i]);
	free(symbols->modules);
	hash_table__release(&symbols->index);
	free(symbols);
}

static bool match_module(const void *owner, __u32 at, const void *key)
{
	return ((const struct symbols *)owner)->modules[at - 1].id == *(const __u32 *)key;
}

struct named_module *symbols__find_module(const struct symbols *symbols, __u32 id)
{
	__u32 at = hash_table__find(&symbols->index, hash_mix(0, id), match_module, symbols, &id);

	return at ? &symbols->modules[at - 1] : NULL;
}

int symbols__add_module(struct symbols *symbols, __u32 id, int fd, const char *path,
			const char *build_id)
{
	struct named_module module = { .id = id, .fd = -1 };
	struct named_module *grown;
	int err = -ENOMEM;

	if (!id)
		return -EINVAL;
	if (symbols__find_module(symbols, id))
		return -EEXIST;
	grown = reallocarray(symbols->modules, symbols->n_modules + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	symbols->modules = grown;
	module.path = strdup(path);
	module.build_id = strdup(build_id);
	if (!module.path || !module.build_id)
		goto fail;
	if (fd >= 0) {
		module.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (module.fd < 0) {
			err = -errno;
			goto fail;
		}
	}
	symbols->modules[symbols->n_modules] = module;
	err = hash_table__insert(&symbols->index, hash_mix(0, id), symbols->n_modules + 1);
	if (err)
		goto fail;
	symbols->n_modules++;
	return 0;
fail:
	release_module(&module);
	return err;
}

int symbols__open_file(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = symbols__find_module(symbols, id);
	int fd;

	if (!module)
		return -ENOENT;
	if (module->fd >= 0) {
		fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	/* A mapping without a file has no absolute path. */
	return *module->path == '/' ? worker__open_file(module->path) : -ENOENT;
}

bool symbols__is_file(const struct symbols *symbols, __u32 id, const struct elf_file *elf)
{
	const struct named_module *module = symbols__find_module(symbols, id);

	return module && (!*module->build_id || !strcmp(module->build_id, elf_file__build_id(elf)));
}

const char *symbols__module_text(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = symbols__find_module(symbols, id);

	return module && module->text ? module->text : "";
}

bool symbols__is_unread(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = symbols__find_module(symbols, id);

	return module && module->is_unread;
}

const char *symbols__fetch_problem(const struct symbols *symbols)
{
	return symbols->fetch_problem;
}

bool symbols__have_servers(void)
{
	return debuginfod__has_servers();
}
