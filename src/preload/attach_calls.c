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
static int add_function(struct attach_calls *calls, const struct site *site)
{
	__u64 address = calls->program.bias + site->entry_vaddr;

	for (size_t name = 0; name <= site->n_aliases; name++) {
		const struct interface_function *row = row_of(site, name);
		int number = row ? interface_function__number(row) : -1;
		size_t i = calls->n_functions;

		while (i && (calls->functions[i - 1].address != address ||
			     calls->functions[i - 1].row != (__u32)number))
			i--;
		if (number < 0 || i || row->kind != INTERFACE_REQUEST)
			continue;
		if (calls->n_functions == INSIDE_STUBS)
			return -E2BIG;
		calls->functions[calls->n_functions++] = (struct inside_function){
			.address = address,
			.size_bytes = site->size,
			.row = number,
		};
	}
	return 0;
}

static int list_functions(struct attach_calls *calls, const struct allocator *allocator)
{
	calls->functions = calloc(INSIDE_STUBS, sizeof(*calls->functions));
	calls->sites = calloc(allocator->n_references + 1, sizeof(*calls->sites));
	if (!calls->functions || !calls->sites)
		return -ENOMEM;
	for (size_t i = 0; i < allocator->n_sites; i++) {
		int err = add_function(calls, &allocator->sites[i]);

		if (err)
			return err;
	}
	for (size_t i = 0; i < allocator->n_references; i++) {
		const struct allocator_reference *reference = &allocator->references[i];
		__u64 address = calls->program.bias + reference->entry;
		__u32 function = 0;

		while (function < calls->n_functions &&
		       calls->functions[function].address != address)
			function++;
		if (function < calls->n_functions)
			calls->sites[calls->n_sites++] =
				(struct call_site){ calls->program.bias + reference->next,
						    function };
	}
	return 0;
}

/* Words of the program's data that hold the address of a function, or of a stub. */

struct data_search {
	const struct attach_calls *calls;
	__u64 stubs;
	__u64 lowest, highest; /* the words that matter are within this range */
	bool is_restored;      /* stubs' addresses become those of functions, and not the reverse */
	int fd;		       /* /proc/PID/mem; -1: the words are only counted */
	__u64 n;
	__u64 n_unread; /* pieces of the data that were not searched */
};

static struct data_search begin_search(const struct attach_calls *calls, __u64 stubs,
				       bool is_restored, int fd)
{
	struct data_search search = {
		.calls = calls, .stubs = stubs, .is_restored = is_restored, .fd = fd
	};

	search.lowest = is_restored ? stubs : UINT64_MAX;
	search.highest = is_restored ? stubs + INSIDE_STUBS * INSIDE_STUB_BYTES : 0;
	for (size_t i = 0; !is_restored && i < calls->n_functions; i++) {
		__u64 address = calls->functions[i].address;

		search.lowest = address < search.lowest ? address : search.lowest;
		search.highest = address > search.highest ? address : search.highest;
	}
	return search;
}

/* Returns what the word has to become, or 0 if it is another's. */
static __u64 replacement_of(const struct data_search *search, __u64 word)
{
	const struct attach_calls *calls = search->calls;
	__u64 at = word - search->stubs;

	if (word < search->lowest || word > search->highest)
		return 0;
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

		if (!value)
			continue;
		if (search->fd < 0 || !fd__write_all_at(search->fd, &value, sizeof(value),
							address + i * sizeof(value)))
			search->n++;
		else
			search->n_unread++;
	}
}

/* Searches @size bytes at @address, by pages where not all of them can be read. */
static void search_piece(struct data_search *search, __u64 address, __u64 *words, __u64 size)
{
	pid_t pid = search->calls->pid;

	if (!process_memory__read(pid, address, words, size)) {
		search_words(search, address, words, size / sizeof(*words));
		return;
	}
	for (__u64 at = address, end; at < address + size; at = end) {
		end = (at | (PAGE - 1)) + 1;
		if (end > address + size)
			end = address + size;
		if (process_memory__read(pid, at, words, end - at))
			search->n_unread++;
		else
			search_words(search, at, words, (end - at) / sizeof(*words));
	}
}

/* Searches the data; in a program that is mapped where its file says, constants, too. */
static int search_data(struct data_search *search)
{
	const struct process_program *program = &search->calls->program;
	__u32 flags = program->bias ? PF_W : PF_R;
	_cleanup_(free_ptr) __u64 *words = malloc(CHUNK_BYTES);
	__u64 left = MOST_DATA_BYTES;

	if (!words)
		return -ENOMEM;
	for (size_t i = 0; i < program->n; i++) {
		const Elf64_Phdr *header = &program->headers[i];
		__u64 at = (program->bias + header->p_vaddr + 7) & ~7ULL;
		__u64 end = program->bias + header->p_vaddr + header->p_memsz;

		if (header->p_type != PT_LOAD || !(header->p_flags & flags))
			continue;
		for (__u64 size; at + sizeof(__u64) <= end && left; at += size, left -= size) {
			size = (end - at) & ~7ULL;
			size = size > CHUNK_BYTES ? CHUNK_BYTES : size;
			size = size > left ? left : size;
			search_piece(search, at, words, size);
		}
		search->n_unread += at + sizeof(__u64) <= end;
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
	struct data_search search = begin_search(calls, 0, false, -1);
	bool is_dynamic = false;

	for (size_t i = 0; i < calls->program.n; i++)
		is_dynamic |= calls->program.headers[i].p_type == PT_INTERP;
	if (!is_dynamic)
		return "the program is linked statically, with a malloc of its own";
	if (allocator->is_bypassed)
		return "the program has a malloc of its own, which the compiler has put into its callers";
	/* In programs that are not position-independent a number may look like an address. */
	if (allocator->has_unclear_references ||
	    (!calls->program.bias && (search_data(&search) || search.n || search.n_unread)))
		return "the program has a malloc of its own, and it cannot be told what leads to it";
	return NULL;
}

static int find_calls(struct attach_calls *calls, const struct allocator *allocator,
		      const char **why)
{
	int err;

	/* A program whose malloc only passes its calls on has none of its own. */
	if (!allocator__find(allocator, AP_MALLOC) ||
	    (allocator->is_wrapper && !allocator->goes_past))
		return 0;
	calls->start = calls->program.bias + allocator->text_start;
	calls->end = calls->program.bias + allocator->text_end;
	err = list_functions(calls, allocator);
	if (err == -E2BIG) {
		*why = "the program has a malloc of its own with more functions than there are stubs for";
		return -EEXIST;
	}
	if (!err)
		*why = obstacle(calls, allocator);
	return *why ? -EEXIST : err;
}

int attach_calls__find(struct parser *parser, pid_t pid, struct attach_calls *out, const char **why)
{
	struct allocator *allocator = NULL;
	int err;

	*out = (struct attach_calls){ .pid = pid };
	*why = NULL;
	err = process__read_program(pid, &out->program);
	if (!err)
		err = read_allocator(parser, pid, &allocator);
	if (err == -ENOENT || err == -ENOMEM)
		return err == -ENOMEM ? err : 0;
	if (err) {
		*why = "it cannot be told whether the program has a malloc of its own: its file cannot be read";
		return -EEXIST;
	}
	err = find_calls(out, allocator, why);
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
				return -EILSEQ;
	}
	return 0;
}

/* Code and read-only data are written through /proc/PID/mem, as debuggers do; the process gets pages of
 * its own there. */
static int open_memory(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int attach_calls__redirect(const struct attach_calls *calls, __u64 stubs, struct calls_changed *out)
{
	_cleanup_(close_fd) int fd = -1;
	struct data_search search;
	int err = 0;

	*out = (struct calls_changed){ 0 };
	if (!calls->n_functions)
		return 0;
	fd = open_memory(calls->pid);
	if (fd < 0)
		return fd;
	for (size_t i = 0; i < calls->n_sites && !err; i++) {
		__u32 to = stub_distance(&calls->sites[i], stubs);

		err = fd__write_all_at(fd, &to, sizeof(to), calls->sites[i].next - sizeof(to));
		out->n += !err;
	}
	search = begin_search(calls, stubs, false, fd);
	if (!err)
		err = search_data(&search);
	out->n += search.n;
	return err;
}

/* Restores one site. What cannot be read or written stays, and is lost. */
static void restore_site(const struct attach_calls *calls, const struct call_site *site,
			 __u64 stubs, int fd, struct calls_changed *out)
{
	__u32 original = original_distance(calls, site), value;
	__u64 at = site->next - sizeof(value);

	if (process_memory__read(calls->pid, at, &value, sizeof(value)))
		out->n_lost++;
	else if (value != stub_distance(site, stubs))
		out->n_lost += value != original;
	else if (fd__write_all_at(fd, &original, sizeof(original), at))
		out->n_lost++;
	else
		out->n++;
}

void attach_calls__restore(const struct attach_calls *calls, __u64 stubs, struct calls_changed *out)
{
	_cleanup_(close_fd) int fd = -1;
	struct data_search search;

	*out = (struct calls_changed){ 0 };
	if (!calls->n_functions)
		return;
	fd = open_memory(calls->pid);
	for (size_t i = 0; i < calls->n_sites; i++)
		restore_site(calls, &calls->sites[i], stubs, fd, out);
	search = begin_search(calls, stubs, true, fd < 0 ? -1 : fd);
	if (fd < 0 || search_data(&search))
		out->n_lost++;
	out->n += search.n;
	out->n_lost += search.n_unread;
}
