// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernel_types.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "hash_table.h"

#define PATH "/sys/kernel/btf/vmlinux"

/* BTF_KIND_ENUM64, Linux 6.0. */
#define KIND_ENUM64 19

struct kernel_types {
	char *data;
	size_t size;
	bool is_mapped;
	const char *strings;
	__u32 strings_size;
	__u32 n;		      /* ids are 1 … n */
	const struct btf_type **list; /* indexed by id; that of 0, which is void, is NULL */
};

/* Returns how many bytes follow a type of this kind; -1: the kind is not known. */
static int extra_bytes(const struct btf_type *type)
{
	size_t n = btf_vlen(type);

	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
		return sizeof(__u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(struct btf_decl_tag);
	case KIND_ENUM64:
		return n * 3 * sizeof(__u32);
	}
	return -1;
}

/* Reads the kernel's types. Linux 6.16 can map the file; earlier kernels return a page per read. */
static int read_file(struct kernel_types *types)
{
	_cleanup_(close_fd) int fd = open(PATH, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	types->size = st.st_size;
	types->data = mmap(NULL, types->size, PROT_READ, MAP_PRIVATE, fd, 0);
	types->is_mapped = types->data != MAP_FAILED;
	if (types->is_mapped)
		return 0;
	types->data = malloc(types->size);
	if (!types->data)
		return -ENOMEM;
	return fd__read_all(fd, types->data, types->size);
}

static int index_types(struct kernel_types *types)
{
	const struct btf_header *header = (const void *)types->data;
	const char *at, *end;
	size_t room = 0;

	if (types->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->hdr_len > types->size ||
	    header->type_off + (__u64)header->type_len > types->size - header->hdr_len ||
	    header->str_off + (__u64)header->str_len > types->size - header->hdr_len)
		return -EINVAL;
	types->strings = types->data + header->hdr_len + header->str_off;
	types->strings_size = header->str_len;
	if (!types->strings_size || types->strings[types->strings_size - 1])
		return -EINVAL;
	at = types->data + header->hdr_len + header->type_off;
	end = at + header->type_len;
	/* Most types take more than 24 bytes. */
	if (array__reserve(&types->list, &room, header->type_len / 24 + 1, sizeof(*types->list)))
		return -ENOMEM;
	types->list[0] = NULL;
	while (end - at >= (ptrdiff_t)sizeof(struct btf_type)) {
		const struct btf_type *type = (const void *)at;
		int extra = extra_bytes(type);

		at += sizeof(*type);
		if (extra < 0 || extra > end - at || type->name_off >= types->strings_size)
			return -EINVAL;
		at += extra;
		if (array__reserve(&types->list, &room, types->n + 2, sizeof(*types->list)))
			return -ENOMEM;
		types->list[++types->n] = type;
	}
	return 0;
}

int kernel_types__open(struct kernel_types **out)
{
	struct kernel_types *types = calloc(1, sizeof(*types));
	int err;

	if (!types)
		return -ENOMEM;
	err = read_file(types);
	if (!err)
		err = index_types(types);
	if (err) {
		kernel_types__free(types);
		return err;
	}
	*out = types;
	return 0;
}

void kernel_types__free(struct kernel_types *types)
{
	if (!types)
		return;
	if (types->is_mapped)
		munmap(types->data, types->size);
	else if (types->data != MAP_FAILED)
		free(types->data);
	free(types->list);
	free(types);
}

static const char *name_of(const struct kernel_types *types, const struct btf_type *type)
{
	return types->strings + type->name_off;
}

static const struct btf_type *type_of(const struct kernel_types *types, __u32 id)
{
	return id <= types->n ? types->list[id] : NULL;
}

static __u32 find(const struct kernel_types *types, const char *name, __u32 kind)
{
	for (__u32 id = 1; id <= types->n; id++)
		if (btf_kind(types->list[id]) == kind &&
		    !strcmp(name_of(types, types->list[id]), name))
			return id;
	return 0;
}

__u32 kernel_types__function(const struct kernel_types *types, const char *name)
{
	return find(types, name, BTF_KIND_FUNC);
}

/* Returns the id of the type with which programs of the tracepoint @name are loaded; 0: the kernel
 * lacks it. */
static __u32 kernel_types__tracepoint(const struct kernel_types *types, const char *name)
{
	char type_name[128];

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	return find(types, type_name, BTF_KIND_TYPEDEF);
}

int kernel_types__tracepoint_parameters(const struct kernel_types *types, const char *name)
{
	const struct btf_type *type = type_of(types, kernel_types__tracepoint(types, name));

	type = type ? type_of(types, type->type) : NULL;
	type = type && btf_is_ptr(type) ? type_of(types, type->type) : NULL;
	return type && btf_is_func_proto(type) ? btf_vlen(type) - 1 : 0;
}

/* The picked types, which the programs need, with new ids, as they are written for libbpf. */
struct pick {
	const struct kernel_types *types;
	__u32 *new_ids; /* indexed by the kernel's id; 0: not picked */
	__u32 *ids;	/* the kernel's ids of the picked types, from new id 1 on */
	size_t room, n;
	char *strings;
	size_t strings_room, strings_size;
	/* The programs' types by essential name; ids are those in @local. */
	struct hash_table names;
	const struct btf *local;
};

/* Returns the length of @name without a flavour, as in mm_struct___6_4. */
static size_t essential_length(const char *name)
{
	const char *flavour = strstr(name, "___");

	return flavour && flavour != name ? (size_t)(flavour - name) : strlen(name);
}

static bool has_name(const void *owner, __u32 id, const void *key)
{
	const struct pick *pick = owner;
	const char *name =
		btf__name_by_offset(pick->local, btf__type_by_id(pick->local, id)->name_off);
	size_t length = essential_length(key);

	return essential_length(name) == length && !memcmp(name, key, length);
}

static __u64 hash_of(const char *name)
{
	return hash_bytes(0, name, essential_length(name));
}

/* Returns whether libbpf looks for types of this kind. */
static bool is_sought(const struct btf_type *type)
{
	switch (btf_kind(type)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_ENUM:
	case KIND_ENUM64:
		return type->name_off != 0;
	}
	return false;
}

static int note_names(struct pick *pick)
{
	for (__u32 id = 1; id < btf__type_cnt(pick->local); id++) {
		const struct btf_type *type = btf__type_by_id(pick->local, id);
		const char *name = btf__name_by_offset(pick->local, type->name_off);
		__u64 hash;

		if (!is_sought(type))
			continue;
		hash = hash_of(name);
		if (!hash_table__find(&pick->names, hash, has_name, pick, name) &&
		    hash_table__insert(&pick->names, hash, id))
			return -ENOMEM;
	}
	return 0;
}

static int add(struct pick *pick, __u32 id)
{
	if (!id || id > pick->types->n || pick->new_ids[id])
		return id > pick->types->n ? -EINVAL : 0;
	if (array__reserve(&pick->ids, &pick->room, pick->n + 2, sizeof(*pick->ids)))
		return -ENOMEM;
	pick->ids[++pick->n] = id;
	pick->new_ids[id] = pick->n;
	return 0;
}

static int add_named(struct pick *pick)
{
	const struct kernel_types *types = pick->types;
	int err = 0;

	for (__u32 id = 1; id <= types->n && !err; id++) {
		const struct btf_type *type = types->list[id];
		const char *name = name_of(types, type);

		if (is_sought(type) &&
		    hash_table__find(&pick->names, hash_of(name), has_name, pick, name))
			err = add(pick, id);
	}
	return err;
}

/* Adds the types of which @type consists. Types to which it points do not matter, since libbpf
 * follows no pointer. */
static int add_parts(struct pick *pick, const struct btf_type *type)
{
	int err = 0;

	switch (btf_kind(type)) {
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return add(pick, type->type);
	case BTF_KIND_ARRAY:
		err = add(pick, btf_array(type)->type);
		return err ? err : add(pick, btf_array(type)->index_type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (__u32 i = 0; i < btf_vlen(type) && !err; i++)
			err = add(pick, btf_members(type)[i].type);
	}
	return err;
}

/* Copies a name from the kernel's strings to the picked ones, and changes *@offset to its place
 * there. */
static int move_name(struct pick *pick, __u32 *offset)
{
	const char *name;
	size_t size;

	if (!*offset)
		return 0;
	if (*offset >= pick->types->strings_size)
		return -EINVAL;
	name = pick->types->strings + *offset;
	size = strlen(name) + 1;
	if (array__reserve(&pick->strings, &pick->strings_room, pick->strings_size + size, 1))
		return -ENOMEM;
	memcpy(pick->strings + pick->strings_size, name, size);
	*offset = pick->strings_size;
	pick->strings_size += size;
	return 0;
}

static __u32 new_id(const struct pick *pick, __u32 id)
{
	return id <= pick->types->n ? pick->new_ids[id] : 0;
}

/* Replaces the ids and names in @type, which is a copy, by those of the picked types. */
static int move_type(struct pick *pick, struct btf_type *type)
{
	int err = move_name(pick, &type->name_off);

	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
		type->type = 0;
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		type->type = new_id(pick, type->type);
		break;
	case BTF_KIND_ARRAY:
		btf_array(type)->type = new_id(pick, btf_array(type)->type);
		btf_array(type)->index_type = new_id(pick, btf_array(type)->index_type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (__u32 i = 0; i < btf_vlen(type) && !err; i++) {
			struct btf_member *member = &btf_members(type)[i];

			member->type = new_id(pick, member->type);
			err = move_name(pick, &member->name_off);
		}
		break;
	case BTF_KIND_ENUM:
		for (__u32 i = 0; i < btf_vlen(type) && !err; i++)
			err = move_name(pick, &btf_enum(type)[i].name_off);
		break;
	case KIND_ENUM64:
		for (__u32 i = 0; i < btf_vlen(type) && !err; i++)
			err = move_name(pick, (__u32 *)(type + 1) + 3 * i);
		break;
	}
	return err;
}

static int write_types(struct pick *pick, FILE *to)
{
	struct btf_header header = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(header),
	};
	int err = 0;

	/* The first string is empty. */
	if (array__reserve(&pick->strings, &pick->strings_room, 1, 1))
		return -ENOMEM;
	pick->strings[pick->strings_size++] = '\0';
	if (fwrite(&header, sizeof(header), 1, to) != 1)
		return -errno;
	for (size_t i = 1; i <= pick->n && !err; i++) {
		const struct btf_type *type = pick->types->list[pick->ids[i]];
		size_t size = sizeof(*type) + extra_bytes(type);
		_cleanup_(free_ptr) struct btf_type *copy = array__copy(type, size, 1);

		if (!copy)
			return -ENOMEM;
		err = move_type(pick, copy);
		if (!err && fwrite(copy, size, 1, to) != 1)
			err = -errno;
		header.type_len += size;
	}
	if (err)
		return err;
	header.str_off = header.type_len;
	header.str_len = pick->strings_size;
	if (fwrite(pick->strings, pick->strings_size, 1, to) != 1 || fseek(to, 0, SEEK_SET) ||
	    fwrite(&header, sizeof(header), 1, to) != 1 || fflush(to))
		return -errno;
	return 0;
}

static int pick_into(struct pick *pick, int fd)
{
	_cleanup_(close_file) FILE *to = NULL;
	int copy, err;

	pick->new_ids = calloc((size_t)pick->types->n + 1, sizeof(*pick->new_ids));
	if (!pick->new_ids)
		return -ENOMEM;
	err = note_names(pick);
	if (!err)
		err = add_named(pick);
	for (size_t i = 1; i <= pick->n && !err; i++)
		err = add_parts(pick, pick->types->list[pick->ids[i]]);
	if (err)
		return err;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	to = copy < 0 ? NULL : fdopen(copy, "w");
	if (!to) {
		err = -errno;
		close_fd(&copy);
		return err;
	}
	return write_types(pick, to);
}

int kernel_types__pick(const struct kernel_types *types, const struct btf *local, int fd)
{
	struct pick pick = { .types = types, .local = local };
	int err = pick_into(&pick, fd);

	free(pick.new_ids);
	free(pick.ids);
	free(pick.strings);
	hash_table__release(&pick.names);
	return err;
}

/* Thread-local, since libbpf's callback has no context but one that is the same for all objects. */
static _Thread_local const struct sleepable *used;

void sleepable__find(struct sleepable *sleepable, const struct kernel_types *types)
{
	sleepable->lock = kernel_types__function(types, "bpf_rcu_read_lock");
	sleepable->unlock = kernel_types__function(types, "bpf_rcu_read_unlock");
}

/* Replaces the numbers that stand for the kernel's functions by their ids. */
static void set_functions(const struct sleepable *sleepable, struct bpf_insn *instructions,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bpf_insn *call = &instructions[i];

		if (call->code != (BPF_JMP | BPF_CALL) || call->src_reg ||
		    (call->imm != AP_CALL_RCU_READ_LOCK && call->imm != AP_CALL_RCU_READ_UNLOCK))
			continue;
		call->src_reg = BPF_PSEUDO_KFUNC_CALL;
		call->imm =
			call->imm == AP_CALL_RCU_READ_LOCK ? sleepable->lock : sleepable->unlock;
	}
}

/*
 * Linux 6.2 has bpf_rcu_read_lock(). Since 6.9 a program may call its own functions while it holds
 * this lock, which is needed, too.
 */
bool sleepable__supported(const struct kernel_types *types)
{
	struct bpf_insn instructions[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = AP_CALL_RCU_READ_LOCK },
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 3 },
		{ .code = BPF_JMP | BPF_CALL, .imm = AP_CALL_RCU_READ_UNLOCK },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
		/* The function that is called with the lock held. */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_SLEEPABLE);
	_cleanup_(close_fd) int program = -1;
	struct sleepable sleepable;

	sleepable__find(&sleepable, types);
	if (!sleepable.lock || !sleepable.unlock)
		return false;
	set_functions(&sleepable, instructions, ARRAY_SIZE(instructions));
	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "probe_sleepable", "GPL", instructions,
				ARRAY_SIZE(instructions), &options);
	return program >= 0;
}

/* libbpf calls this after it has appended the functions that the program calls. */
static int prepare_sleepable(struct bpf_program *program, struct bpf_prog_load_opts *options,
			     long cookie)
{
	_cleanup_(free_ptr) struct bpf_insn *instructions = NULL;
	size_t n = bpf_program__insn_cnt(program);

	if (!used)
		return 0;
	instructions = malloc(n * sizeof(*instructions));
	if (!instructions)
		return -ENOMEM;
	memcpy(instructions, bpf_program__insns(program), n * sizeof(*instructions));
	set_functions(used, instructions, n);
	options->prog_flags |= BPF_F_SLEEPABLE;
	return bpf_program__set_insns(program, instructions, n);
}

static int registered;

static void register_section(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, options, .prog_prepare_load_fn = prepare_sleepable);

	registered = libbpf_register_prog_handler("sleepable", BPF_PROG_TYPE_KPROBE, 0, &options);
}

int sleepable__take_over(void)
{
	/* The registration is never undone, as in tracing__take_over(). */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_section);
	return registered < 0 ? registered : 0;
}

void sleepable__use(const struct sleepable *sleepable)
{
	used = sleepable;
}

/* Thread-local, since libbpf's callback has no context but one that is the same for all objects. */
static _Thread_local const struct kernel_types *used_types;

static __u32 find_target(enum bpf_attach_type type, const char *name)
{
	char iterator[128];

	switch (type) {
	case BPF_TRACE_RAW_TP:
		return kernel_types__tracepoint(used_types, name);
	case BPF_TRACE_FENTRY:
	case BPF_TRACE_FEXIT:
		return kernel_types__function(used_types, name);
	case BPF_TRACE_ITER:
		snprintf(iterator, sizeof(iterator), "bpf_iter_%s", name);
		return kernel_types__function(used_types, iterator);
	default:
		return 0;
	}
}

/* Gives the program its type and the id of its target only now: if it had this type before the
 * load, libbpf would read all of the kernel's types. */
static int prepare_tracing(struct bpf_program *program, struct bpf_prog_load_opts *options,
			   long cookie)
{
	const char *name = strchr(bpf_program__section_name(program), '/');

	if (used_types && name)
		options->attach_btf_id = find_target(options->expected_attach_type, name + 1);
	if (!options->attach_btf_id)
		return -ESRCH;
	return bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
}

static int registered;

static void register_sections(void)
{
	static const struct {
		const char *section;
		enum bpf_attach_type type;
	} sections[] = {
		{ "tp_btf/", BPF_TRACE_RAW_TP },
		{ "fentry/", BPF_TRACE_FENTRY },
		{ "fexit/", BPF_TRACE_FEXIT },
		{ "iter/", BPF_TRACE_ITER },
	};
	LIBBPF_OPTS(libbpf_prog_handler_opts, options, .prog_prepare_load_fn = prepare_tracing);

	for (size_t i = 0; i < ARRAY_SIZE(sections) && registered >= 0; i++)
		registered = libbpf_register_prog_handler(sections[i].section,
							  BPF_PROG_TYPE_RAW_TRACEPOINT,
							  sections[i].type, &options);
}

int tracing__take_over(void)
{
	/* The registration is never undone: when the last one is removed, libbpf 1.1 frees its
	 * list, and goes on using it. */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_sections);
	return registered < 0 ? registered : 0;
}

void tracing__use(const struct kernel_types *types)
{
	used_types = types;
}
