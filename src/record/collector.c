// SPDX-License-Identifier: GPL-3.0-or-later
#include "collector.h"

#include <bpf/bpf.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "dump_unwind.h"
#include "elf_file.h"
#include "hash_table.h"
#include "jit_names.h"
#include "map_batch.h"
#include "mapped_file.h"
#include "mapping_events.h"
#include "process_maps.h"
#include "profile.h"
#include "sampling.h"
#include "symbols.h"
#include "table_cache.h"

/* A program may be preempted between a dump's time and its sending. */
#define DUMP_MOST_LATE_NS 1000000000ULL

/* Real ones have one or two pages. */
#define VDSO_MAX_BYTES 65536

/* What the kernel calls image, module and stack, and the profile's ids for the same. */
struct image {
	__u32 pid;
	__u32 process; /* profile id, 0: nothing known */
};

struct module {
	/* All that it goes by, as far as it was asked; what it was first met by is the first. */
	struct file_identity identities[FILE_IDENTITIES + 2];
	size_t n_identities;
	__u32 version; /* as the kernel side has it; 0 where only user space has met the file */
	__u32 id;      /* profile id, 0 until a frame is in it */
	int fd;	       /* of the file; -1: it could not be opened */
	struct timespec modified; /* when it was opened */
	char *path;
	struct elf_file *elf;		/* NULL where it could not be read */
	const struct ap_within *within; /* code that calls are to be within, or NULL */
	size_t table;			/* number of its table */
};

struct known_stack {
	__u64 hash;
	__u32 id; /* profile id */
};

/* Where records of dumps count: by the number of the dump. */
struct dumped_stack {
	__u32 stack; /* profile id, 0: not known */
};

struct ended_process {
	__u32 pid;
	__u64 time_ns;
};

struct pending_dump {
	struct pending_dump *next;
	__u64 record[]; /* struct ap_dump_record and the bytes of stack */
};

struct collector {
	struct collector_options options;
	struct profile *profile;
	struct process_maps *maps;
	struct image *images; /* by kernel id - 1 */
	size_t n_images, images_capacity;
	struct hash_table followed; /* pid -> index in images + 1 */
	struct module *modules;
	size_t n_modules;
	__u32 *module_by_kernel_id; /* index in modules + 1, by kernel id - 1; 0 unknown */
	size_t n_kernel_modules;
	struct known_stack *stacks;
	size_t n_stacks, stacks_capacity;
	struct hash_table stack_index;
	struct dumped_stack *dumped; /* by number - 1 */
	size_t n_dumped;
	struct table_loader *tables;
	struct dump_unwinder *unwinder;
	struct jit_names *jit_names;
	struct pending_dump *dumps, **dumps_end;
	__u64 mappings_known_ns;     /* what was mapped before then has been read */
	__u64 settled_ns;	     /* when the dumps that had come by then had been unwound */
	struct ended_process *ended; /* their maps may go when the dumps have been unwound */
	size_t n_ended, ended_capacity;
	int current; /* of the two counter maps */
	bool wants_drain;
	__u64 attributed;	       /* calls */
	__u64 found_within, undecided; /* of the calls of dumps */
};

static int find_file(const struct code_mapping *mapping, __u32 pid, __u64 *bias, void *context);

struct collector *collector__new(const struct collector_options *options)
{
	struct collector *collector = calloc(1, sizeof(*collector));

	if (!collector) {
		unwind_tables__free(options->tables.tables);
		table_cache__close(options->tables.cache);
		return NULL;
	}
	collector->options = *options;
	collector->profile = profile__new();
	collector->maps = process_maps__new();
	collector->tables = table_loader__new(&options->tables);
	collector->dumps_end = &collector->dumps;
	collector->jit_names = jit_names__new();
	if (collector->maps)
		collector->unwinder = dump_unwinder__new(collector->maps, find_file, collector);
	if (!collector->profile || !collector->maps || !collector->tables ||
	    !collector->jit_names || !collector->unwinder) {
		collector__free(collector);
		return NULL;
	}
	return collector;
}

static void drop_dumps(struct collector *collector)
{
	struct pending_dump *dump;

	while ((dump = collector->dumps)) {
		collector->dumps = dump->next;
		free(dump);
	}
	collector->dumps_end = &collector->dumps;
}

void collector__free(struct collector *collector)
{
	if (!collector)
		return;
	/* It has the modules' files in hand. */
	table_loader__free(collector->tables);
	for (size_t i = 0; i < collector->n_modules; i++) {
		close_fd(&collector->modules[i].fd);
		free(collector->modules[i].path);
		elf_file__free(collector->modules[i].elf);
	}
	free(collector->modules);
	free(collector->module_by_kernel_id);
	free(collector->images);
	free(collector->stacks);
	free(collector->dumped);
	hash_table__release(&collector->followed);
	hash_table__release(&collector->stack_index);
	drop_dumps(collector);
	free(collector->ended);
	dump_unwinder__free(collector->unwinder);
	jit_names__free(collector->jit_names);
	process_maps__free(collector->maps);
	profile__free(collector->profile);
	free(collector);
}

void collector__list_without_table(const struct collector *collector, FILE *to)
{
	for (size_t i = 0, written = 0; i < collector->n_modules; i++) {
		const struct module *module = &collector->modules[i];
		struct unwind_place place;

		if (module->id && module->path &&
		    !table_loader__place(collector->tables, module->table, &place) &&
		    !place.n_slices)
			fprintf(to, "%s%s", written++ ? "\n" : "", module->path);
	}
}

void collector__await_tables(struct collector *collector)
{
	table_loader__wait(collector->tables);
}

bool collector__brings_tables(struct collector *collector)
{
	return table_loader__progresses(collector->tables);
}

void collector__finish_tables(struct collector *collector)
{
	table_loader__finish(collector->tables);
}

struct profile *collector__profile(struct collector *collector)
{
	return collector->profile;
}

__u64 collector__attributed(const struct collector *collector)
{
	return collector->attributed;
}

__u64 collector__accounted(const struct collector *collector)
{
	__u64 calls = collector->attributed;

	for (const struct pending_dump *dump = collector->dumps; dump; dump = dump->next) {
		const struct ap_dump_record *record = (const void *)dump->record;

		calls += !(record->key.function & (AP_FUNCTION_UNDECIDED | AP_FUNCTION_DUMPED));
	}
	return calls;
}

void collector__forget(struct collector *collector)
{
	drop_dumps(collector);
	profile__forget_counts(collector->profile);
	collector->attributed = 0;
	collector->undecided = 0;
}

__u64 collector__found_within(const struct collector *collector)
{
	return collector->found_within;
}

__u64 collector__undecided(const struct collector *collector)
{
	return collector->undecided;
}

bool collector__wants_drain(const struct collector *collector)
{
	/* The message that says so may have found no room. */
	return collector->wants_drain ||
	       __atomic_load_n(collector->options.counts_inserted, __ATOMIC_RELAXED) >=
		       collector->options.drain_at;
}

static bool image_has_pid(const void *owner, __u32 id, const void *key)
{
	const struct collector *collector = owner;

	return collector->images[id - 1].pid == *(const __u32 *)key;
}

bool collector__is_followed(const struct collector *collector, pid_t pid)
{
	__u32 key = pid;

	return hash_table__find(&collector->followed, hash_mix(0, key), image_has_pid, collector,
				&key);
}

void collector__forget_process(struct collector *collector, pid_t pid)
{
	process_maps__forget(collector->maps, pid, UINT64_MAX);
}

void collector__scan_process(struct collector *collector, pid_t pid)
{
	process_maps__scan(collector->maps, pid);
}

void collector__handle_mapping(struct collector *collector, const struct mapping_event *event)
{
	struct code_mapping mapping = {
		.start = event->start,
		.end = event->end,
		.offset = event->offset,
		.identity = {
			.inode = event->inode,
			.device = event->major << 20 | event->minor,
			.generation = event->generation,
		},
		.time_ns = event->time_ns,
		.path = event->path,
	};

	if (event->kind == MAPPING_EXEC)
		process_maps__exec(collector->maps, event->pid, event->time_ns);
	else
		process_maps__add(collector->maps, event->pid, &mapping);
}

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* Reads the mapping events of what was there at @time_ns, so that nothing is resolved by what was at its
 * place before. */
static void know_mappings(struct collector *collector, __u64 time_ns)
{
	if (time_ns < collector->mappings_known_ns)
		return;
	collector->mappings_known_ns = now_ns();
	collector->options.refresh_mappings(collector->options.context);
}

/* Room for the image that the kernel calls @id; @id comes from a 32-bit counter, so it is bounded by
 * what was forked. */
static struct image *get_image(struct collector *collector, __u32 id)
{
	if (!id || array__reserve_zeroed(&collector->images, &collector->images_capacity, id,
					 sizeof(*collector->images)))
		return NULL;
	if (id > collector->n_images)
		collector->n_images = id;
	return &collector->images[id - 1];
}

/* An exit ends the record's image, an exec its parent. */
static void end_image(struct collector *collector, const struct ap_process_record *record)
{
	bool execed = record->event == AP_PROCESS_EXECED;
	__u32 id = execed ? record->parent : record->id;

	if (id && id <= collector->n_images && collector->images[id - 1].process)
		profile__end_process(collector->profile, collector->images[id - 1].process,
				     record->time_ns, execed);
}

static int handle_process(struct collector *collector, const struct ap_process_record *record)
{
	struct image *image, *parent;
	char comm[AP_COMM_LEN + 1];
	int err;

	if (record->event == AP_PROCESS_EXITED || record->event == AP_PROCESS_EXECED)
		end_image(collector, record);
	if (record->event == AP_PROCESS_EXITED) {
		if (array__reserve_zeroed(&collector->ended, &collector->ended_capacity,
					  collector->n_ended + 1, sizeof(*collector->ended)))
			return -ENOMEM;
		collector->ended[collector->n_ended++] =
			(struct ended_process){ record->pid, record->time_ns };
		return 0;
	}
	image = get_image(collector, record->id);
	if (!image)
		return -ENOMEM;
	parent = record->parent && record->parent <= collector->n_images
			 ? &collector->images[record->parent - 1]
			 : NULL;
	image->pid = record->pid;
	if (record->event == AP_PROCESS_FORKED && parent) {
		know_mappings(collector, record->time_ns);
		err = process_maps__fork(collector->maps, parent->pid, record->pid,
					 record->time_ns);
		if (err)
			return err;
	}
	err = hash_table__insert(&collector->followed, hash_mix(0, record->pid), record->id);
	if (err)
		return err;
	memcpy(comm, record->comm, AP_COMM_LEN);
	comm[AP_COMM_LEN] = '\0';
	return profile__add_process(collector->profile, parent ? parent->process : 0, record->pid,
				    record->time_ns, comm, &image->process);
}

/* The profile's process for what the kernel calls image @id, also where its record was lost. */
static int image_process(struct collector *collector, __u32 id, __u32 *process)
{
	struct image *image = get_image(collector, id);
	int err = 0;

	if (!image)
		return -ENOMEM;
	if (!image->process)
		err = profile__add_process(collector->profile, 0, image->pid, 0, "[unknown]",
					   &image->process);
	if (!err)
		*process = image->process;
	return err;
}

static int key_thread(struct collector *collector, const struct ap_count_key *key, __u32 *thread)
{
	char name[AP_COMM_LEN + 1];
	__u32 process;
	int err = image_process(collector, key->process, &process);

	if (err)
		return err;
	memcpy(name, key->thread, AP_COMM_LEN);
	name[AP_COMM_LEN] = '\0';
	return profile__add_thread(collector->profile, process, name, thread);
}

static struct timespec modification_time(int fd)
{
	struct stat st = { 0 };

	(void)fstat(fd, &st);
	return st.st_mtim;
}

static bool module_goes_by(const struct module *module, const struct file_identity *identity)
{
	for (size_t i = 0; i < module->n_identities; i++)
		if (file_identity__is_same(&module->identities[i], identity))
			return true;
	return false;
}

static void add_identity(struct module *module, const struct file_identity *identity)
{
	if (!module_goes_by(module, identity) &&
	    module->n_identities < sizeof(module->identities) / sizeof(module->identities[0]))
		module->identities[module->n_identities++] = *identity;
}

/* Its table is made when it is needed. */
static int prepare_table(struct collector *collector, struct module *module)
{
	struct table_file file = {
		.fd = module->fd,
		.path = module->path,
		.build_id = module->elf ? elf_file__build_id(module->elf) : "",
		.entry = module->elf ? elf_file__entry(module->elf) : 0,
	};

	file.has_entry = file.entry &&
			 !elf_file__vaddr_to_offset(module->elf, file.entry, &file.entry_offset);
	return table_loader__add(collector->tables, &file, &module->table);
}

/* Adds the file, which @fd (taken over; -1: none) has open, and yields its index. */
static int add_module(struct collector *collector, int fd, const char *path,
		      const struct file_identity *identity, __u32 version, size_t *index)
{
	struct module *modules, *module;
	int err;

	modules = realloc(collector->modules, (collector->n_modules + 1) * sizeof(*modules));
	if (!modules) {
		close_fd(&fd);
		return -ENOMEM;
	}
	collector->modules = modules;
	module = &modules[collector->n_modules];
	*module = (struct module){
		.identities = { *identity },
		.n_identities = 1,
		.version = version,
		.fd = fd,
		.path = strdup(path),
	};
	if (!module->path) {
		close_fd(&fd);
		return -ENOMEM;
	}
	if (fd >= 0) {
		module->modified = modification_time(fd);
		elf_file__open(fd, path, &module->elf, NULL);
		if (collector->options.within)
			module->within =
				collector->options.within(fd, path, collector->options.context);
	}
	err = prepare_table(collector, module);
	/* Without it the file is not known: what it has open goes with the collector. */
	*index = collector->n_modules++;
	return err;
}

/* The same for a file in one recording and the next, as long as nobody writes to it. */
static __u64 file_number(const struct module *module)
{
	struct file_identity identity = module->identities[0];
	__u64 number;

	/* What it was met by may be another thing the next time. */
	if (module->fd >= 0)
		file_identity__of(module->fd, &identity);
	number = hash_mix(identity.inode, (__u64)identity.device << 32 | identity.generation);

	number = hash_mix(number, module->modified.tv_sec);
	return hash_mix(number, module->modified.tv_nsec);
}

/* The profile has only those modules that frames are in. */
static int module_id(struct collector *collector, struct module *module, __u32 *id)
{
	int err = 0;

	if (!module->id)
		err = profile__add_module_file(collector->profile, module->path,
					       module->elf ? elf_file__build_id(module->elf) : "",
					       file_number(module), &module->id);
	if (!err)
		*id = module->id;
	return err;
}

/* Where two kernel ids, or the kernel and user space, found the same file; of several that it was,
 * written to in between, the last. */
static bool find_module(struct collector *collector, const struct file_identity *identity,
			__u32 version, size_t *index)
{
	for (size_t i = collector->n_modules; i-- > 0;) {
		struct module *module = &collector->modules[i];

		if (!module_goes_by(module, identity) ||
		    (module->version && version && module->version != version))
			continue;
		if (!module->version)
			module->version = version;
		*index = i;
		return true;
	}
	return false;
}

/* Adds the file that @file tells of as a module, with its table, unless it is one already. @version is
 * 0 where only user space has met it. */
static int get_module(struct collector *collector, const struct mapped_file *file, __u32 version,
		      size_t *index)
{
	struct file_identities identities = { 0 };
	bool known = false;
	char path[4096];
	int fd, err = 0;

	if (find_module(collector, &file->identity, version, index))
		return 0;
	fd = mapped_file__open(file, &collector->options.asker, &identities);
	if (fd < 0)
		identities.n = 0;
	for (size_t i = 0; i < identities.n && !known; i++)
		known = find_module(collector, &identities.of[i], version, index);
	if (known) {
		close(fd);
	} else {
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

static int handle_module(struct collector *collector, const struct ap_module_record *record)
{
	struct mapped_file file = {
		.pid = record->pid,
		.start = record->start,
		.end = record->end,
		.identity = { record->inode, record->device, record->generation },
	};
	const struct code_mapping *mapping;
	size_t index;
	int err;

	if (!record->id ||
	    array__reserve_zeroed(&collector->module_by_kernel_id, &collector->n_kernel_modules,
				  record->id, sizeof(*collector->module_by_kernel_id)))
		return -ENOMEM;
	/* What a mapping event said of the file is all that is left of it where the process is gone, or
	 * has something else there by now. */
	know_mappings(collector, record->time_ns);
	mapping = process_maps__find(collector->maps, record->pid, record->start, record->time_ns);
	if (mapping)
		file.path = mapping->path;
	err = get_module(collector, &file, record->version, &index);
	if (err)
		return err;
	if (mapping && collector->modules[index].fd < 0)
		add_identity(&collector->modules[index], &mapping->identity);
	collector->module_by_kernel_id[record->id - 1] = index + 1;
	/* Before the table: until then no stack through the file is taken for complete. */
	if (collector->modules[index].within &&
	    bpf_map_update_elem(collector->options.within_fd, &record->id,
				collector->modules[index].within, BPF_ANY))
		return -errno;
	/* What we had mapped ourselves to make it known, no hit has seen yet. */
	return table_loader__assign(collector->tables, collector->modules[index].table, record->id,
				    record->pid != (__u32)getpid());
}

/* The vDSO is the same in every process that runs on this kernel, our own among them; what is no
 * longer than its mapping is bounded by its section headers, which end it. */
static size_t vdso_size(const Elf64_Ehdr *header)
{
	size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;

	return size < VDSO_MAX_BYTES ? size : 0;
}

/* A file that names and call frame information can be read from. -1: none. */
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

static int mapped_module(struct collector *collector, const struct code_mapping *mapping, __u32 pid,
			 size_t *index)
{
	struct mapped_file file = {
		.pid = pid,
		.start = mapping->start,
		.end = mapping->end,
		.identity = mapping->identity,
		.path = mapping->path,
	};

	return get_module(collector, &file, 0, index);
}

/* For the dump unwinder. */
static int find_file(const struct code_mapping *mapping, __u32 pid, __u64 *bias, void *context)
{
	struct collector *collector = context;
	const struct module *module;
	__u64 vaddr;
	size_t index;
	int err;

	err = mapped_module(collector, mapping, pid, &index);
	if (err)
		return err;
	module = &collector->modules[index];
	if (!module->elf || elf_file__offset_to_vaddr(module->elf, mapping->offset, &vaddr))
		return -ENOEXEC;
	*bias = mapping->start - vaddr;
	return module->fd;
}

/* Of an address of which it is not known when the process stood there. */
#define AT_ANY_TIME UINT64_MAX

/* The module of an address that the kernel could not resolve, and the file offset. */
static int resolve_address(struct collector *collector, __u32 pid, __u64 address, __u64 time_ns,
			   size_t *index, __u64 *offset)
{
	const struct code_mapping *mapping;
	int err;

	know_mappings(collector, time_ns);
	mapping = time_ns == AT_ANY_TIME
			  ? process_maps__find_lasting(collector->maps, pid, address)
			  : process_maps__find(collector->maps, pid, address, time_ns);

	if (!mapping)
		return -ENOENT;
	err = mapped_module(collector, mapping, pid, index);
	if (!err)
		*offset = address - mapping->start + mapping->offset;
	return err;
}

/* A frame in no file: perhaps in code that the process made itself. */
static int add_unmapped_frame(struct collector *collector, const struct ap_frame *frame,
			      __u32 image_id, __u32 pid, __u32 *id)
{
	int err = profile__add_frame(collector->profile, 0, frame->offset,
				     frame->flags & AP_FRAME_INTERRUPTED, id);

	if (err || frame->module)
		return err;
	return jit_names__add(collector->jit_names, image_id, pid, *id);
}

/* One without a module is looked for in what was mapped at @time_ns; 0: it is in no file. The image is
 * one that get_image() has made room for. */
static int add_frame(struct collector *collector, const struct ap_frame *frame, __u32 image_id,
		     __u64 time_ns, __u32 *id)
{
	bool interrupted = frame->flags & AP_FRAME_INTERRUPTED;
	__u32 pid = collector->images[image_id - 1].pid;
	struct module *module;
	__u64 offset = frame->offset;
	__u32 module_number;
	size_t index = 0;
	int err;

	if (frame->module && frame->module <= collector->n_kernel_modules)
		index = collector->module_by_kernel_id[frame->module - 1];
	if (index) {
		index--;
	} else {
		err = frame->module || !time_ns
			      ? -ENOENT
			      : resolve_address(collector, pid, offset, time_ns, &index, &offset);
		if (err == -ENOENT)
			return add_unmapped_frame(collector, frame, image_id, pid, id);
		if (err)
			return err;
	}
	module = &collector->modules[index];
	if (module->elf)
		elf_file__offset_to_vaddr(module->elf, offset, &offset);
	err = module_id(collector, module, &module_number);
	return err ? err
		   : profile__add_frame(collector->profile, module_number, offset, interrupted, id);
}

static bool is_good_end(enum ap_stack_end end)
{
	return end == AP_END_COMPLETE || end == AP_END_MAX_DEPTH;
}

/* As is_entry() of bpf/stack.bpf.h, of a frame that has only its address. */
static bool is_entry(struct collector *collector, const struct ap_frame *frame, __u32 pid,
		     __u64 time_ns)
{
	struct unwind_place place;
	__u64 offset;
	size_t index;

	if (resolve_address(collector, pid, frame->offset, time_ns, &index, &offset) ||
	    table_loader__place(collector->tables, collector->modules[index].table, &place))
		return false;
	return offset - place.entry_offset < place.entry_size;
}

static int note_dumped(struct collector *collector, __u64 number, __u32 stack)
{
	if (!number || number > UINT32_MAX ||
	    array__reserve_zeroed(&collector->dumped, &collector->n_dumped, number,
				  sizeof(*collector->dumped)))
		return -ENOMEM;
	collector->dumped[number - 1].stack = stack;
	return 0;
}

/* Whether the frame, which has only its address, is in code that calls are to be within. */
static bool is_within(struct collector *collector, const struct ap_frame *frame, __u32 pid,
		      __u64 time_ns)
{
	const struct ap_within *within;
	__u64 offset;
	size_t index;

	if (resolve_address(collector, pid, frame->offset, time_ns, &index, &offset))
		return false;
	within = collector->modules[index].within;
	offset -= !(frame->flags & AP_FRAME_INTERRUPTED);
	for (__u32 i = 0; within && i < within->n; i++)
		if (offset - within->ranges[i].start < within->ranges[i].size)
			return true;
	return false;
}

/* Whether the call of an undecided dump counts, now that its stack is known. */
static bool decide(struct collector *collector, const struct ap_dump_record *dump, __u32 pid,
		   const struct ap_frame *frames, int n, enum ap_stack_end end)
{
	for (int i = 0; i < n; i++) {
		if (!is_within(collector, &frames[i], pid, dump->time_ns))
			continue;
		collector->found_within++;
		return true;
	}
	if (end != AP_END_COMPLETE)
		collector->undecided++;
	return false;
}

/* Adds @sum to the profile's count @id of that thread, stack and function. */
static int add_calls(struct collector *collector, __u32 thread, __u32 stack, __u32 function,
		     const struct ap_count *sum, __u32 *id)
{
	struct profile_estimate estimate =
		sampling__estimate(&sum->estimate, collector->options.sample_unit_shift);
	struct profile_samples *samples;
	int err = profile__add_count(collector->profile, thread, stack, function, sum->calls,
				     sum->size_bytes, id);

	if (err || !collector->options.sample) {
		collector->attributed += err ? 0 : sum->calls;
		return err;
	}
	err = profile__get_samples(collector->profile, *id, &samples);
	if (err)
		return err;
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_CALLS], &estimate);
	collector->attributed += sum->estimate.samples;
	return 0;
}

static struct ap_count count_one(const struct collector *collector, __u32 weight, __u64 size_bytes)
{
	return sampling__count_one(weight, size_bytes, collector->options.sample_unit_shift);
}

/* The dump's stack, unwound here, as one of the profile's. */
static int count_dump(struct collector *collector, const struct ap_dump_record *dump)
{
	struct ap_frame frames[AP_MAX_DEPTH];
	struct image *image = get_image(collector, dump->key.process);
	__u32 ids[AP_MAX_DEPTH], stack, thread, count;
	struct ap_count one;
	enum ap_stack_end end;
	int n, err;

	if (!image)
		return -ENOMEM;
	know_mappings(collector, dump->time_ns);
	end = dump->end;
	n = dump_unwinder__unwind(collector->unwinder, dump, image->pid, frames,
				  collector->options.max_depth, &end);
	if (!is_good_end(end) && n > 0 &&
	    is_entry(collector, &frames[n - 1], image->pid, dump->time_ns))
		end = AP_END_COMPLETE;
	if ((dump->key.function & AP_FUNCTION_UNDECIDED) &&
	    !decide(collector, dump, image->pid, frames, n, end))
		return 0;
	for (int i = 0; i < n; i++) {
		err = add_frame(collector, &frames[i], dump->key.process, dump->time_ns, &ids[i]);
		if (err)
			return err;
	}
	err = profile__add_stack(collector->profile, ids, n < 0 ? 0 : n, end, &stack);
	/* Its calls are in a record of their own. */
	if (!err && (dump->key.function & AP_FUNCTION_DUMPED))
		return note_dumped(collector, dump->key.stack, stack);
	if (!err)
		err = key_thread(collector, &dump->key, &thread);
	if (err)
		return err;
	one = count_one(collector, dump->weight, dump->size_bytes);
	return add_calls(collector, thread, stack, dump->key.function & ~AP_FUNCTION_UNDECIDED,
			 &one, &count);
}

/* Put off until the ring buffer has been read: a new file's record must not wait behind the very
 * dumps that the programs send for want of its table. The ring buffer's size bounds them. */
static int put_off(struct collector *collector, const struct ap_dump_record *dump, size_t size)
{
	struct pending_dump *pending = malloc(sizeof(*pending) + size);

	if (!pending)
		return -ENOMEM;
	pending->next = NULL;
	memcpy(pending->record, dump, size);
	*collector->dumps_end = pending;
	collector->dumps_end = &pending->next;
	return 0;
}

bool collector__has_dumps(const struct collector *collector)
{
	return collector->dumps;
}

int collector__settle(struct collector *collector, size_t most)
{
	struct pending_dump *dump;
	int err = 0;

	for (; (dump = collector->dumps) && most && !err; most--) {
		collector->dumps = dump->next;
		err = count_dump(collector, (const void *)dump->record);
		free(dump);
	}
	if (collector->dumps)
		return err;
	collector->dumps_end = &collector->dumps;
	/* What came since has been read by the time of the next call. */
	if (collector->settled_ns > DUMP_MOST_LATE_NS)
		process_maps__settle(collector->maps, collector->settled_ns - DUMP_MOST_LATE_NS);
	collector->settled_ns = now_ns();
	/* A process that ended was still needed by the dumps before. */
	for (size_t i = 0; i < collector->n_ended; i++)
		process_maps__forget(collector->maps, collector->ended[i].pid,
				     collector->ended[i].time_ns);
	collector->n_ended = 0;
	return err;
}

static bool stack_has_hash(const void *owner, __u32 id, const void *key)
{
	const struct collector *collector = owner;

	return collector->stacks[id - 1].hash == *(const __u64 *)key;
}

static int handle_stack(struct collector *collector, const struct ap_stack_record *record)
{
	const struct ap_frame *frames = (const struct ap_frame *)(record + 1);
	__u32 ids[AP_MAX_DEPTH];
	struct known_stack *stack;
	struct image *image;
	int err;

	if (hash_table__find(&collector->stack_index, record->stack, stack_has_hash, collector,
			     &record->stack))
		return 0;
	image = get_image(collector, record->process);
	if (!image)
		return -ENOMEM;
	for (__u32 i = 0; i < record->n_frames; i++) {
		/* The kernel knew of all others, and may not have of the one that it ended at. */
		bool unsure = record->end == AP_END_NO_TABLE && i + 1 == record->n_frames;

		err = add_frame(collector, &frames[i], record->process, unsure ? AT_ANY_TIME : 0,
				&ids[i]);
		if (err)
			return err;
	}
	if (array__reserve_zeroed(&collector->stacks, &collector->stacks_capacity,
				  collector->n_stacks + 1, sizeof(*collector->stacks)))
		return -ENOMEM;
	stack = &collector->stacks[collector->n_stacks];
	stack->hash = record->stack;
	err = profile__add_stack(collector->profile, ids, record->n_frames, record->end,
				 &stack->id);
	if (err)
		return err;
	return hash_table__insert(&collector->stack_index, record->stack, ++collector->n_stacks);
}

/* The profile's stack for the key's, 0 where it is not known. */
static __u32 key_stack(struct collector *collector, const struct ap_count_key *key)
{
	__u32 index;

	if (key->function & AP_FUNCTION_DUMPED)
		return key->stack && key->stack <= collector->n_dumped
			       ? collector->dumped[key->stack - 1].stack
			       : 0;
	index = hash_table__find(&collector->stack_index, key->stack, stack_has_hash, collector,
				 &key->stack);
	return index ? collector->stacks[index - 1].id : 0;
}

int collector__add_record(struct collector *collector, const struct ap_count_key *key,
			  const struct ap_count *sum, __u32 *count)
{
	__u32 stack = key_stack(collector, key), thread;
	int err;

	/* Frames are sent before their counter exists and read before it is. Should that ever be
	 * wrong, the calls are missing from what is attributed and the ledger says so. */
	*count = 0;
	if (!stack)
		return 0;
	err = key_thread(collector, key, &thread);
	if (err)
		return err;
	return add_calls(collector, thread, stack, key->function & ~AP_FUNCTION_DUMPED, sum, count);
}

static int add_count(struct collector *collector, const struct ap_count_key *key,
		     const struct ap_count *sum)
{
	__u32 count;

	return collector__add_record(collector, key, sum, &count);
}

int collector__handle_record(struct collector *collector, const void *record, size_t size)
{
	const struct ap_stack_record *stack = record;
	const struct ap_count_record *count = record;
	const struct ap_dump_record *dump = record;
	struct ap_count one;

	if (size < sizeof(__u32))
		return 0;
	switch (*(const __u32 *)record) {
	case AP_RECORD_PROCESS:
		return size < sizeof(struct ap_process_record) ? 0
							       : handle_process(collector, record);
	case AP_RECORD_MODULE:
		return size < sizeof(struct ap_module_record) ? 0
							      : handle_module(collector, record);
	case AP_RECORD_STACK:
		if (size < sizeof(*stack) || stack->n_frames > AP_MAX_DEPTH ||
		    stack->end >= AP_STACK_ENDS ||
		    size < sizeof(*stack) + stack->n_frames * sizeof(struct ap_frame))
			return 0;
		return handle_stack(collector, stack);
	case AP_RECORD_COUNT:
		if (size < sizeof(*count))
			return 0;
		one = count_one(collector, count->weight, count->size_bytes);
		return add_count(collector, &count->key, &one);
	case AP_RECORD_DUMP:
		if (size < sizeof(*dump) || dump->n_bytes > AP_MAX_STACK_DUMP + 4096 ||
		    dump->end >= AP_STACK_ENDS || size < sizeof(*dump) + dump->n_bytes)
			return 0;
		return put_off(collector, dump, sizeof(*dump) + dump->n_bytes);
	case AP_RECORD_DRAIN:
		collector->wants_drain = true;
		return 0;
	}
	return 0;
}

static int move_count(void *context, const void *key, const void *count)
{
	return add_count(context, key, count);
}

/* No program counts into the map any more: moves all of it into the profile. */
static int read_counts(struct collector *collector, int fd)
{
	return map_batch__each(fd, sizeof(struct ap_count_key), sizeof(struct ap_count), true,
			       move_count, collector);
}

/* Replacing a map inside a map waits for a grace period (Linux 4.20, maybe_wait_bpf_programs()):
 * afterwards no program has the old one in hand. */
static int use_map(const struct collector *collector, int which)
{
	__u32 zero = 0;

	return bpf_map_update_elem(collector->options.counts_fd, &zero,
				   &collector->options.counts_fds[which], BPF_ANY)
		       ? -errno
		       : 0;
}

int collector__wait_for_programs(const struct collector *collector)
{
	return use_map(collector, collector->current);
}

int collector__begin_drain(struct collector *collector)
{
	int next = !collector->current;
	int err = use_map(collector, next);

	if (err)
		return err;
	__atomic_store_n(collector->options.counts_inserted, 0, __ATOMIC_RELAXED);
	collector->current = next;
	collector->wants_drain = false;
	return 0;
}

int collector__end_drain(struct collector *collector)
{
	return read_counts(collector, collector->options.counts_fds[!collector->current]);
}

int collector__drain_all(struct collector *collector)
{
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		err = read_counts(collector, collector->options.counts_fds[i]);
	return err;
}

int collector__name_jit_frames(struct collector *collector)
{
	return jit_names__apply(collector->jit_names, collector->profile);
}

/* Whether @module's file still is as it was when its code was met: it may have been written over. */
static bool is_intact(const struct module *module)
{
	struct timespec now = modification_time(module->fd);
	struct elf_file *elf;
	bool same;

	if (now.tv_sec == module->modified.tv_sec && now.tv_nsec == module->modified.tv_nsec)
		return true;
	/* Or only touched. */
	if (!module->elf || !elf_file__build_id(module->elf)[0] ||
	    elf_file__open(module->fd, module->path, &elf, NULL))
		return false;
	same = !strcmp(elf_file__build_id(elf), elf_file__build_id(module->elf));
	elf_file__free(elf);
	return same;
}

static const char *build_id(const struct module *module)
{
	return module->elf ? elf_file__build_id(module->elf) : "";
}

/* Whether the profile, which knows files by path and build id, takes another one for @module. */
static bool is_ambiguous(const struct collector *collector, const struct module *module)
{
	if (*build_id(module))
		return false;
	for (size_t i = 0; i < collector->n_modules; i++)
		if (collector->modules[i].id == module->id && &collector->modules[i] != module)
			return true;
	return false;
}

/* Why there can be no names for @module, NULL where there may be. */
static const char *why_unnamed(const struct collector *collector, const struct module *module)
{
	/* What is at the path by now need not be the file that could not be opened. */
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
