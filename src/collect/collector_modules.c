// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps the files whose code is in the stacks, each identified by device, inode and time, and the
 * vDSO. */
#include "collector_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "dump_unwind.h"
#include "elf_headers.h"
#include "hash_table.h"
#include "inside_abi.h"
#include "mapped_file.h"
#include "path.h"
#include "process_maps.h"
#include "profile.h"
#include "record_abi.h"
#include "symbols.h"

/* Upper limit of the vDSO's size; real ones have one or two pages. */
#define VDSO_MAX_BYTES 65536

static struct timespec modification_time(int fd)
{
	struct stat st = { 0 };

	(void)fstat(fd, &st);
	return st.st_mtim;
}

static bool module__has_identity(const struct module *module, const struct file_identity *identity)
{
	for (size_t i = 0; i < module->n_identities; i++)
		if (file_identity__is_same(&module->identities[i], identity))
			return true;
	return false;
}

static void add_identity(struct module *module, const struct file_identity *identity)
{
	if (!module__has_identity(module, identity) &&
	    module->n_identities < ARRAY_SIZE(module->identities))
		module->identities[module->n_identities++] = *identity;
}

/* Prepares the file's unwind table, which is compiled when it is needed. */
static int prepare_table(struct collector *collector, struct module *module)
{
	struct table_file file = {
		.fd = module->fd,
		.path = module->path,
		.build_id = module->elf ? elf_headers__build_id(module->elf) : "",
		.entry = module->elf ? elf_headers__entry(module->elf) : 0,
	};

	file.has_entry = file.entry &&
			 !elf_headers__vaddr_to_offset(module->elf, file.entry, &file.entry_offset);
	return table_loader__add(collector->tables, &file, &module->table);
}

/* Adds a module and sets *@index. Takes over @fd, which is the open file, or -1. */
static int add_module(struct collector *collector, int fd, const char *path,
		      const struct file_identity *identity, __u32 version, size_t *index)
{
	struct module *module;
	int err;

	if (array__reserve(&collector->modules, &collector->modules_capacity,
			   collector->n_modules + 1, sizeof(*module))) {
		close_fd(&fd);
		return -ENOMEM;
	}
	module = &collector->modules[collector->n_modules];
	*module = (struct module){
		.identities = { *identity },
		.n_identities = 1,
		.version = version,
		.fd = fd,
		.path = strdup(path),
		.is_inside = !strcmp(path__name(path), INSIDE_FILE),
	};
	if (!module->path) {
		close_fd(&fd);
		return -ENOMEM;
	}
	if (fd >= 0) {
		module->modified = modification_time(fd);
		elf_headers__read(fd, &module->elf);
		if (collector->options.within)
			module->within =
				collector->options.within(fd, path, collector->options.context);
	}
	err = prepare_table(collector, module);
	/* On error the file is unknown, but the module stays, since the collector frees what it
	 * owns. */
	*index = collector->n_modules++;
	return err;
}

/* Returns a number that is the same in two recordings if the file was not written to in between. */
static __u64 file_number(const struct module *module)
{
	struct file_identity identity = module->identities[0];
	__u64 number;

	/* The first identity may be a kernel-internal one that differs the next time. */
	if (module->fd >= 0)
		file_identity__of(module->fd, &identity);
	number = hash_mix(identity.inode, (__u64)identity.device << 32 | identity.generation);

	number = hash_mix(number, module->modified.tv_sec);
	return hash_mix(number, module->modified.tv_nsec);
}

int collector__module_id(struct collector *collector, struct module *module, __u32 *id)
{
	int err = 0;

	if (!module->id)
		err = profile__add_module_file(collector->profile, module->path,
					       module->elf ? elf_headers__build_id(module->elf)
							   : "",
					       file_number(module), &module->id);
	if (!err)
		*id = module->id;
	return err;
}

/* Finds the module of @identity, which another kernel id or user space may have added already; of
 * several versions of the file, the last. */
static bool find_module(struct collector *collector, const struct file_identity *identity,
			__u32 version, size_t *index)
{
	for (size_t i = collector->n_modules; i-- > 0;) {
		struct module *module = &collector->modules[i];

		if (!module__has_identity(module, identity) ||
		    (module->version && version && module->version != version))
			continue;
		if (!module->version)
			module->version = version;
		*index = i;
		return true;
	}
	return false;
}

/* Returns @fd or, if that is a copy, a descriptor of the original, whose path, times and debug
 * files are used. */
static int take_original(const struct collector *collector, int fd)
{
	int original = -ENOENT;

	if (fd >= 0 && collector->options.original)
		original = collector->options.original(fd, collector->options.context);
	if (original < 0)
		return fd;
	close(fd);
	return original;
}

/* Finds the module of @file, or adds it with its table. @version is 0 if only user space has seen
 * the file. */
static int get_module(struct collector *collector, const struct mapped_file *file, __u32 version,
		      size_t *index)
{
	struct file_identities identities = { 0 };
	bool known = false;
	char path[4096];
	int fd, err = 0;

	if (find_module(collector, &file->identity, version, index))
		return 0;
	fd = mapped_file__open(file, &collector->options.identifier, &identities);
	if (fd < 0)
		identities.n = 0;
	for (size_t i = 0; i < identities.n && !known; i++)
		known = find_module(collector, &identities.of[i], version, index);
	if (known) {
		close(fd);
	} else {
		fd = take_original(collector, fd);
		if (fd >= 0)
			mapped_file__path(fd, path, sizeof(path));
		else if (file->path)
			snprintf(path, sizeof(path), "%s", file->path);
		else
			snprintf(path, sizeof(path), "[inode %llu of device %u:%u]",
				 file->identity.inode, file->identity.device >> 20,
				 file->identity.device & 0xfffff);
		err = add_module(collector, fd < 0 ? -1 : fd, path, &file->identity, version,
				 index);
		if (err)
			return err;
	}
	add_identity(&collector->modules[*index], &file->identity);
	for (size_t i = 0; i < identities.n; i++)
		add_identity(&collector->modules[*index], &identities.of[i]);
	return 0;
}

static int know_module(struct collector *collector, const struct ap_module_record *record,
		       const char *path, const struct file_identity *identity)
{
	struct mapped_file file = {
		.pid = record->pid,
		.start = record->start,
		.end = record->end,
		.identity = { record->inode, record->device, record->generation },
		.path = path,
	};
	size_t index;
	int err;

	if (!record->id ||
	    array__reserve_zeroed(&collector->module_by_kernel_id, &collector->n_kernel_modules,
				  record->id, sizeof(*collector->module_by_kernel_id)))
		return -ENOMEM;
	err = get_module(collector, &file, record->version, &index);
	if (err)
		return err;
	if (identity && collector->modules[index].fd < 0)
		add_identity(&collector->modules[index], identity);
	collector->module_by_kernel_id[record->id - 1] = index + 1;
	/* The code must be set before the table: until there is a table, no stack with a frame of
	 * the file ends as complete. */
	if (collector->modules[index].within) {
		err = collector->options.set_within(record->id, collector->modules[index].within,
						    collector->options.context);
		if (err)
			return err;
	}
	if (collector->options.meet) {
		err = collector->options.meet(record->id, collector->modules[index].fd,
					      collector->modules[index].path ?: "",
					      &collector->modules[index].loop,
					      collector->options.context);
		if (err)
			return err;
	}
	/* allocprof itself has mapped the file to announce it, so no hit has seen it. */
	return table_loader__assign(collector->tables, collector->modules[index].table, record->id,
				    record->pid != (__u32)getpid());
}

int collector__handle_module(struct collector *collector, const struct ap_module_record *record)
{
	const struct code_mapping *mapping;

	/* If the process has ended, or has mapped another file there, only the mapping event knows
	 * the file. */
	collector__know_mappings(collector, record->time_ns);
	mapping = process_maps__find(collector->maps, record->pid, record->start, record->time_ns);
	return know_module(collector, record, mapping ? mapping->path : NULL,
			   mapping ? &mapping->identity : NULL);
}

int collector__handle_module_at(struct collector *collector, const struct ap_module_record *record,
				const char *path)
{
	return know_module(collector, record, path, NULL);
}

/* Returns the size of the vDSO, which is the same in every process on this kernel, also in this
 * one. It ends with its section headers, so the size follows from its ELF header, and is limited
 * to its mapping. */
static size_t vdso_size(const Elf64_Ehdr *header)
{
	size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;

	return size < VDSO_MAX_BYTES ? size : 0;
}

/* Returns a memfd with a copy of the vDSO, from which names and call frame information are read;
 * -1 on error. */
static int vdso_file(const Elf64_Ehdr *header, size_t size)
{
	int fd = memfd_create("vdso", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, header, size) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}

int collector__add_vdso(struct collector *collector)
{
	const Elf64_Ehdr *header = (const void *)getauxval(AT_SYSINFO_EHDR);
	/* No file has this identity. */
	const struct file_identity identity = { .device = ~0U, .inode = ~0ULL };
	size_t index;
	int err;

	if (!header || !vdso_size(header))
		return 0;
	err = add_module(collector, vdso_file(header, vdso_size(header)), "[vdso]", &identity, 0,
			 &index);
	if (!err)
		err = array__reserve_zeroed(&collector->module_by_kernel_id,
					    &collector->n_kernel_modules, AP_MODULE_VDSO,
					    sizeof(*collector->module_by_kernel_id));
	if (err)
		return err;
	collector->module_by_kernel_id[AP_MODULE_VDSO - 1] = index + 1;
	return table_loader__assign(collector->tables, collector->modules[index].table,
				    AP_MODULE_VDSO, false);
}

static struct mapped_file mapped_file_of(const struct code_mapping *mapping, __u32 pid)
{
	return (struct mapped_file){
		.pid = pid,
		.start = mapping->start,
		.end = mapping->end,
		.identity = mapping->identity,
		.path = mapping->path,
	};
}

int collector__mapped_module(struct collector *collector, const struct code_mapping *mapping,
			     __u32 pid, size_t *index)
{
	struct mapped_file file = mapped_file_of(mapping, pid);

	return get_module(collector, &file, 0, index);
}

int collector__find_file(const struct code_mapping *mapping, __u32 pid, __u64 *bias, void *context)
{
	struct collector *collector = context;
	const struct module *module;
	__u64 vaddr;
	size_t index;
	int err;

	err = collector__mapped_module(collector, mapping, pid, &index);
	if (err)
		return err;
	module = &collector->modules[index];
	if (!module->elf || elf_headers__offset_to_vaddr(module->elf, mapping->offset, &vaddr))
		return -ENOEXEC;
	*bias = mapping->start - vaddr;
	return module->fd;
}

/* Returns whether @module's file has not been rewritten since it was opened. */
static bool is_intact(const struct module *module)
{
	struct timespec now = modification_time(module->fd);
	struct elf_headers *elf;
	bool same;

	if (now.tv_sec == module->modified.tv_sec && now.tv_nsec == module->modified.tv_nsec)
		return true;
	/* The times alone may differ, if the file was only touched. */
	if (!module->elf || !elf_headers__build_id(module->elf)[0] ||
	    elf_headers__read(module->fd, &elf))
		return false;
	same = !strcmp(elf_headers__build_id(elf), elf_headers__build_id(module->elf));
	elf_headers__free(elf);
	return same;
}

static const char *build_id(const struct module *module)
{
	return module->elf ? elf_headers__build_id(module->elf) : "";
}

/* Returns whether the profile, which identifies files by path and build id, has merged another
 * file with @module. */
static bool is_ambiguous(const struct collector *collector, const struct module *module)
{
	if (*build_id(module))
		return false;
	for (size_t i = 0; i < collector->n_modules; i++)
		if (collector->modules[i].id == module->id && &collector->modules[i] != module)
			return true;
	return false;
}

/* Returns why @module's frames cannot be named, or NULL. */
static const char *why_unnamed(const struct collector *collector, const struct module *module)
{
	/* The file that is at the path now may be another one. */
	if (module->fd < 0 && *module->path == '/')
		return "the file was gone before it could be opened";
	if (module->fd >= 0 && !is_intact(module))
		return "the file was written over while it was recorded";
	if (is_ambiguous(collector, module))
		return "several files without a build id were at this path";
	return NULL;
}

int collector__add_modules(const struct collector *collector, struct symbols *symbols, bool files)
{
	for (size_t i = 0; i < collector->n_modules; i++) {
		const struct module *module = &collector->modules[i];
		const char *why;
		int err;

		if (!module->id || (!files && *module->path == '/'))
			continue;
		why = why_unnamed(collector, module);
		if (why)
			err = profile__set_module_symbols(collector->profile, module->id, why);
		else
			err = symbols__add_module(symbols, module->id, module->fd, module->path,
						  build_id(module));
		if (err && err != -EEXIST)
			return err;
	}
	return 0;
}

struct visitor {
	void (*visit)(void *to, const struct mapped_file *file);
	void *to;
	__u32 pid;
};

static void visit_mapping(const struct code_mapping *mapping, void *context)
{
	const struct visitor *visitor = context;
	const struct mapped_file file = mapped_file_of(mapping, visitor->pid);

	visitor->visit(visitor->to, &file);
}

void collector__each_mapped(void *context, __u32 pid,
			    void (*visit)(void *to, const struct mapped_file *file), void *to)
{
	struct collector *collector = context;
	struct visitor visitor = { visit, to, pid };
	__u64 now_ns = clock__now_ns();

	collector__know_mappings(collector, now_ns);
	process_maps__for_each(collector->maps, pid, now_ns, visit_mapping, &visitor);
}
