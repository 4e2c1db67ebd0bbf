// SPDX-License-Identifier: GPL-3.0-or-later
/* Has the calls that a program makes to the allocator in its own file lead to the library's stubs, and back. */
#include "attach_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "inside_abi.h"
#include "interface.h"
#include "proc.h"
#include "remote.h"

#define PAGE 4096ULL

/* Where the library may begin: memory below that is not mapped (vm.mmap_min_addr). */
#define LOWEST (64ULL << 10)
/* A distance in an instruction has 32 bits. */
#define REACH INT32_MAX
/* Most bytes of the program's data that are searched for addresses of functions. */
#define MOST_DATA_BYTES (64ULL << 20)
#define CHUNK_BYTES	(256ULL << 10)
/* How many distances are read at a time. */
#define BATCH 512

/* An instruction that leads to a function. Its last four bytes are the distance from @next. */
struct call_site {
	__u64 next; /* address in the process */
	__u32 function;
};

/* Lists the functions. */

static const struct interface_function *row_of(const struct site *site, size_t name)
{
	enum interface_family family;

	return name ? interface__find(site->aliases[name - 1], &family) : site->interface;
}

/* Adds the function once for each row of the table that its names have: libraries may know it by
 * any of them. */
static void add_function(struct attach_calls *calls, const struct site *site)
{
	__u64 address = calls->bias + site->entry_vaddr;

	for (size_t name = 0; name <= site->n_aliases; name++) {
		const struct interface_function *row = row_of(site, name);
		int number = row ? interface_function__number(row) : -1;
		size_t i = calls->n_functions;

		while (i && (calls->functions[i - 1].address != address ||
			     calls->functions[i - 1].row != (__u32)number))
			i--;
		if (number < 0 || i || row->kind != INTERFACE_REQUEST ||
		    calls->n_functions == INSIDE_STUBS)
			continue;
		calls->functions[calls->n_functions++] = (struct inside_function){
			.address = address,
			.size_bytes = site->size,
			.row = number,
		};
	}
}

static int compare_sites(const void *a, const void *b)
{
	const struct call_site *left = a, *right = b;

	return (left->next > right->next) - (left->next < right->next);
}

static int list_functions(struct attach_calls *calls, const struct allocator *allocator)
{
	calls->functions = calloc(INSIDE_STUBS, sizeof(*calls->functions));
	calls->sites = calloc(allocator->n_references + 1, sizeof(*calls->sites));
	if (!calls->functions || !calls->sites)
		return -ENOMEM;
	for (size_t i = 0; i < allocator->n_sites; i++)
		add_function(calls, &allocator->sites[i]);
	for (size_t i = 0; i < allocator->n_references; i++) {
		const struct allocator_reference *reference = &allocator->references[i];
		__u64 address = calls->bias + reference->entry;
		__u32 function = 0;

		while (function < calls->n_functions &&
		       calls->functions[function].address != address)
			function++;
		if (function < calls->n_functions)
			calls->sites[calls->n_sites++] =
				(struct call_site){ calls->bias + reference->next, function };
	}
	qsort(calls->sites, calls->n_sites, sizeof(*calls->sites), compare_sites);
	return 0;
}

/* Words of the program's data that hold the address of a function, or of a stub. */

struct data_search {
	const struct attach_calls *calls;
	__u64 stubs;
	bool is_restored; /* stubs' addresses become those of functions, and not the reverse */
	int fd;		  /* /proc/PID/mem; -1: the words are only counted */
	__u64 n;
};

/* Returns what the word has to become, or 0 if it is another's. */
static __u64 replacement_of(const struct data_search *search, __u64 word)
{
	const struct attach_calls *calls = search->calls;
	__u64 at = word - search->stubs;

	if (search->is_restored)
		return at < calls->n_functions * INSIDE_STUB_BYTES && at % INSIDE_STUB_BYTES == 0
			       ? calls->functions[at / INSIDE_STUB_BYTES].address
			       : 0;
	for (size_t i = 0; i < calls->n_functions; i++)
		if (calls->functions[i].address == word)
			return search->stubs + i * INSIDE_STUB_BYTES;
	return 0;
}

static void search_words(struct data_search *search, __u64 address, const __u64 *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		__u64 value = replacement_of(search, words[i]);

		if (value && (search->fd < 0 ||
			      pwrite(search->fd, &value, sizeof(value),
				     (off_t)(address + i * sizeof(value))) == sizeof(value)))
			search->n++;
	}
}

static int search_data(struct data_search *search)
{
	const struct process_program *program = &search->calls->program;
	_cleanup_(free_ptr) __u64 *words = malloc(CHUNK_BYTES);
	__u64 left = MOST_DATA_BYTES;

	if (!words)
		return -ENOMEM;
	for (size_t i = 0; i < program->n; i++) {
		const Elf64_Phdr *header = &program->headers[i];
		__u64 at = (program->bias + header->p_vaddr + 7) & ~7ULL;
		__u64 end = program->bias + header->p_vaddr + header->p_memsz;

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
			continue;
		for (__u64 size; at + sizeof(__u64) <= end && left; at += size, left -= size) {
			size = (end - at) & ~7ULL;
			size = size > CHUNK_BYTES ? CHUNK_BYTES : size;
			size = size > left ? left : size;
			if (!process_memory__read(search->calls->pid, at, words, size))
				search_words(search, at, words, size / sizeof(*words));
		}
	}
	return 0;
}

/* Finding out. */

static int read_allocator(struct parser *parser, pid_t pid, struct allocator **out)
{
	_cleanup_(close_fd) int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = regular_file__open(path);
	return fd < 0 ? fd : allocator__parse(parser, fd, path, out, NULL);
}

/* Returns why the program's calls cannot be redirected, or NULL. */
static const char *obstacle(const struct attach_calls *calls, const struct allocator *allocator)
{
	struct data_search search = { .calls = calls, .fd = -1 };
	bool is_dynamic = false;

	for (size_t i = 0; i < calls->program.n; i++)
		is_dynamic |= calls->program.headers[i].p_type == PT_INTERP;
	if (!is_dynamic)
		return "the program is linked statically, with a malloc of its own";
	if (allocator->is_bypassed)
		return "the program has a malloc of its own, which the compiler has put into its callers";
	/* In programs that are not position-independent a number may look like an address. */
	if (allocator->has_unclear_references ||
	    (!calls->bias && (search_data(&search) || search.n)))
		return "the program has a malloc of its own, and it cannot be told what leads to it";
	return NULL;
}

int attach_calls__find(struct parser *parser, pid_t pid, struct attach_calls *out, const char **why)
{
	struct allocator *allocator;
	int err;

	*out = (struct attach_calls){ .pid = pid };
	*why = NULL;
	if (process__read_program(pid, &out->program) || read_allocator(parser, pid, &allocator))
		return 0;
	/* A program whose malloc only passes its calls on has none of its own. */
	if (allocator__find(allocator, AP_MALLOC) &&
	    (!allocator->is_wrapper || allocator->goes_past)) {
		out->bias = out->program.bias;
		out->start = out->bias + allocator->text_start;
		out->end = out->bias + allocator->text_end;
		err = list_functions(out, allocator);
		if (!err)
			*why = obstacle(out, allocator);
		if (*why)
			err = -EEXIST;
	} else {
		err = 0;
	}
	allocator__free(allocator);
	if (err)
		attach_calls__release(out);
	return err;
}

void attach_calls__release(struct attach_calls *calls)
{
	free(calls->functions);
	free(calls->sites);
	calls->functions = NULL;
	calls->sites = NULL;
	calls->n_functions = calls->n_sites = 0;
}

/* Finding room for the library. */

struct room_search {
	const struct attach_calls *calls;
	__u64 size, free_from, best;
};

static int find_room(void *context, const struct proc_mapping *mapping)
{
	struct room_search *search = context;
	__u64 end = mapping->start > search->calls->start ? search->calls->start : mapping->start;

	/* A page stays free on either side. */
	if (end > search->free_from && end - search->free_from >= search->size + 2 * PAGE)
		search->best = end - PAGE - search->size;
	if (mapping->end > search->free_from)
		search->free_from = mapping->end;
	return mapping->start >= search->calls->start;
}

int attach_calls__find_room(const struct attach_calls *calls, __u64 size, __u64 *address)
{
	struct room_search search = { .calls = calls, .size = size, .free_from = LOWEST };
	int err = proc_maps__each(calls->pid, find_room, &search);

	if (err < 0)
		return err;
	if (!search.best || calls->end - search.best > REACH)
		return -ENOSPC;
	*address = search.best;
	return 0;
}

int attach_calls__copy(const struct attach_calls *calls, struct remote *remote,
		       struct inside_request *request)
{
	request->n_functions = calls->n_functions;
	request->functions_bytes = calls->n_functions * sizeof(*calls->functions);
	return process__map_copy(calls->pid, remote, calls->functions, request->functions_bytes,
				 &request->functions);
}

/* Redirecting. */

static __u32 distance(const struct call_site *site, __u64 to)
{
	return (__u32)(to - site->next);
}

static __u32 original_distance(const struct attach_calls *calls, const struct call_site *site)
{
	return distance(site, calls->functions[site->function].address);
}

static __u32 stub_distance(const struct call_site *site, __u64 stubs)
{
	return distance(site, stubs + (__u64)site->function * INSIDE_STUB_BYTES);
}

/* Reads the distances of the sites from number @first on, at most BATCH. */
static int read_distances(const struct attach_calls *calls, size_t first, __u32 values[BATCH],
			  size_t *n)
{
	struct iovec remote[BATCH], local = { .iov_base = values };
	ssize_t size;

	*n = calls->n_sites - first > BATCH ? BATCH : calls->n_sites - first;
	for (size_t i = 0; i < *n; i++)
		remote[i] = (struct iovec){ (void *)(calls->sites[first + i].next - sizeof(__u32)),
					    sizeof(__u32) };
	local.iov_len = *n * sizeof(__u32);
	size = process_vm_readv(calls->pid, &local, 1, remote, *n, 0);
	return size == (ssize_t)local.iov_len ? 0 : size < 0 && errno == ESRCH ? -ESRCH : -EFAULT;
}

int attach_calls__check(const struct attach_calls *calls, __u64 stubs)
{
	__u64 end = stubs + INSIDE_STUBS * INSIDE_STUB_BYTES;
	__u32 values[BATCH];
	size_t n;

	if (!calls->n_functions)
		return 0;
	if (calls->end > stubs ? calls->end - stubs > REACH : end - calls->start > REACH)
		return -ENOSPC;
	for (size_t first = 0; first < calls->n_sites; first += n) {
		int err = read_distances(calls, first, values, &n);

		if (err)
			return err;
		for (size_t i = 0; i < n; i++)
			if (values[i] != original_distance(calls, &calls->sites[first + i]))
				return -EEXIST;
	}
	return 0;
}

/* Code and read-only data are written through /proc/PID/mem, as debuggers do; the process gets pages of
 * its own there. */
static int change(const struct attach_calls *calls, __u64 stubs, bool restores,
		  struct calls_changed *out)
{
	_cleanup_(close_fd) int fd = -1;
	struct data_search search = { .calls = calls, .stubs = stubs, .is_restored = restores };
	__u32 values[BATCH];
	char path[32];
	size_t n;
	int err;

	*out = (struct calls_changed){ 0 };
	if (!calls->n_functions || !stubs)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", calls->pid);
	search.fd = fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (size_t first = 0; first < calls->n_sites; first += n) {
		err = read_distances(calls, first, values, &n);
		if (err)
			return err;
		for (size_t i = 0; i < n; i++) {
			const struct call_site *site = &calls->sites[first + i];
			__u32 original = original_distance(calls, site),
			      stub = stub_distance(site, stubs), to = restores ? original : stub;

			if (values[i] != (restores ? stub : original)) {
				out->n_lost += values[i] != to;
				continue;
			}
			err = fd__write_all_at(fd, &to, sizeof(to), site->next - sizeof(to));
			if (err)
				return err;
			out->n++;
		}
	}
	err = search_data(&search);
	out->n += search.n;
	return err;
}

int attach_calls__redirect(const struct attach_calls *calls, __u64 stubs, struct calls_changed *out)
{
	return change(calls, stubs, false, out);
}

int attach_calls__restore(const struct attach_calls *calls, __u64 stubs, struct calls_changed *out)
{
	return change(calls, stubs, true, out);
}
