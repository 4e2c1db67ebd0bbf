// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_tables.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "command_path.h"
#include "elf_headers.h"
#include "mapped_file.h"
#include "parser.h"
#include "preload.h"
#include "table_loader.h"

/* A wake-up may not reach us, from a process that cannot reach the FIFO. */
#define WAIT_MS 50

/* Real ones have one or two pages. */
#define VDSO_MAX_BYTES 65536

struct tables_file {
	char *path;
	int fd;
	struct elf_headers *elf;
	struct file_identity identity; /* as the processes see it */
	size_t table;		       /* the loader's number */
};

struct preload_tables {
	struct preload *preload;
	struct table_loader *loader;
	struct tables_file **files;
	size_t n_files, files_room;
	struct tables_file **by_module;
	size_t n_modules;
	pthread_t thread;
	bool has_thread;
	atomic_bool ends;
};

static struct tables_file *find_file(const struct preload_tables *tables,
				     const struct file_identity *identity)
{
	for (size_t i = 0; i < tables->n_files; i++)
		if (file_identity__is_same(&tables->files[i]->identity, identity))
			return tables->files[i];
	return NULL;
}

/* Takes over @fd. NULL on ENOMEM. */
static struct tables_file *add_file(struct preload_tables *tables, int fd, const char *path,
				    const struct file_identity *identity)
{
	struct tables_file *file = calloc(1, sizeof(*file));
	struct table_file source = { .fd = fd, .build_id = "" };
	char resolved[4096] = "";

	if (!file || array__reserve(&tables->files, &tables->files_room, tables->n_files + 1,
				    sizeof(*tables->files))) {
		free(file);
		close_fd(&fd);
		return NULL;
	}
	tables->files[tables->n_files++] = file;
	file->fd = fd;
	file->identity = *identity;
	if (fd >= 0 && *path == '/')
		mapped_file__path(fd, resolved, sizeof(resolved));
	file->path = strdup(*resolved ? resolved : path);
	if (!file->path)
		return NULL;
	if (fd >= 0)
		elf_headers__read(fd, &file->elf);
	source.path = file->path;
	if (file->elf) {
		source.build_id = elf_headers__build_id(file->elf);
		source.entry = elf_headers__entry(file->elf);
		source.has_entry =
			source.entry && !elf_headers__vaddr_to_offset(file->elf, source.entry,
								      &source.entry_offset);
	}
	return table_loader__add(tables->loader, &source, &file->table) ? NULL : file;
}

static int assign(struct preload_tables *tables, struct tables_file *file, __u32 module,
		  bool is_met)
{
	if (array__reserve_zeroed(&tables->by_module, &tables->n_modules, module + 1,
				  sizeof(*tables->by_module)))
		return -ENOMEM;
	tables->by_module[module] = file;
	return table_loader__assign(tables->loader, file->table, module, is_met);
}

static int meet(void *context, const struct ap_module_record *record, const char *path)
{
	struct preload_tables *tables = context;
	struct mapped_file mapped = {
		.pid = record->pid,
		.start = record->start,
		.end = record->end,
		.identity = { record->inode, record->device, 0 },
		.path = path,
	};
	struct file_identities identities = { 0 };
	struct tables_file *file = find_file(tables, &mapped.identity);

	if (!file)
		file = add_file(tables, mapped_file__open(&mapped, NULL, &identities), path,
				&mapped.identity);
	return file ? assign(tables, file, record->id, true) : -ENOMEM;
}

static void add_vdso(struct preload_tables *tables)
{
	const Elf64_Ehdr *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	const struct file_identity identity = { .device = ~0U, .inode = ~0ULL };
	struct tables_file *file;
	size_t size;
	int fd;

	if (!header)
		return;
	size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (size > VDSO_MAX_BYTES || fd < 0 || write(fd, header, size) != (ssize_t)size) {
		close_fd(&fd);
		return;
	}
	file = add_file(tables, fd, "[vdso]", &identity);
	if (file)
		assign(tables, file, AP_MODULE_VDSO, false);
}

int preload_tables__new(struct preload *preload, struct preload_tables **out)
{
	const struct unwind_writer writer = { .write = preload__write_table, .context = preload };
	struct table_loader_options options = { .tables = unwind_tables__new(&writer) };
	struct preload_tables *tables = calloc(1, sizeof(*tables));
	int err = tables ? parser__new(&options.parser, NULL) : -ENOMEM;

	if (err)
		unwind_tables__free(options.tables);
	else
		tables->loader = table_loader__new(&options);
	if (!err && !tables->loader)
		err = -ENOMEM;
	if (err) {
		free(tables);
		return err;
	}
	tables->preload = preload;
	add_vdso(tables);
	*out = tables;
	return 0;
}

static void announce(const char *path, struct preload_tables *tables)
{
	_cleanup_(free_ptr) char *whole = realpath(path, NULL);
	int fd = whole ? open(whole, O_RDONLY | O_CLOEXEC) : -1;
	struct file_identity identity;
	struct tables_file *file;
	__u32 id;

	if (fd < 0)
		return;
	if (file_identity__of(fd, &identity) || find_file(tables, &identity)) {
		close(fd);
		return;
	}
	file = add_file(tables, fd, whole, &identity);
	if (file &&
	    !preload__announce(tables->preload, identity.device, identity.inode, whole, &id))
		assign(tables, file, id, false);
}

void preload_tables__announce_command(struct preload_tables *tables, char *const *argv,
				      const char *library)
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;

	announce(library, tables);
	if (command_path__find(argv[0], getenv("PATH"), &path) ||
	    command_path__elf(path, getenv("PATH"), &program))
		return;
	announce(program, tables);
	table_loader__wait(tables->loader);
}

static void *serve(void *context)
{
	struct preload_tables *tables = context;

	while (!atomic_load(&tables->ends)) {
		preload__wait(tables->preload, WAIT_MS);
		preload__take_modules(tables->preload, meet, tables);
	}
	return NULL;
}

int preload_tables__start(struct preload_tables *tables)
{
	int err = pthread_create(&tables->thread, NULL, serve, tables);

	tables->has_thread = !err;
	return -err;
}

void preload_tables__stop(struct preload_tables *tables)
{
	if (!tables->has_thread)
		return;
	atomic_store(&tables->ends, true);
	pthread_join(tables->thread, NULL);
	tables->has_thread = false;
}

static const struct tables_file *file_of(const struct preload_tables *tables, __u32 module)
{
	return module < tables->n_modules ? tables->by_module[module] : NULL;
}

const char *preload_tables__path(const struct preload_tables *tables, __u32 module)
{
	const struct tables_file *file = file_of(tables, module);

	return file ? file->path : NULL;
}

__u64 preload_tables__vaddr(const struct preload_tables *tables, __u32 module, __u64 offset)
{
	const struct tables_file *file = file_of(tables, module);

	if (file && file->elf)
		elf_headers__offset_to_vaddr(file->elf, offset, &offset);
	return offset;
}

void preload_tables__free(struct preload_tables *tables)
{
	if (!tables)
		return;
	preload_tables__stop(tables);
	table_loader__free(tables->loader);
	for (size_t i = 0; i < tables->n_files; i++) {
		elf_headers__free(tables->files[i]->elf);
		close_fd(&tables->files[i]->fd);
		free(tables->files[i]->path);
		free(tables->files[i]);
	}
	free(tables->files);
	free(tables->by_module);
	free(tables);
}
