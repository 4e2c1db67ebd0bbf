// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Begins and ends the measurement of a process that runs already. allocprof has mapped this
 * library into the process, holds all of its threads, and has one of them call allocprof_attach().
 * The dynamic linker does not know the library: allocprof has relocated it, except for the words
 * that depend on the process's objects and threads.
 */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/filter.h>
#include <linux/time_types.h>

#include "confine.h"
#include "domains.h"
#include "inside_abi.h"
#include "memory.h"
#include "objects.h"
#include "own.h"
#include "process.h"
#include "stack.h"
#include "sys.h"
#include "words.h"

#define EXPORT __attribute__((visibility("default")))

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

/* Sets the words through which this library's code finds its thread-local variables: each holds a
 * variable's offset from processor__thread_data(). */
static void set_offsets(const struct inside_request *request)
{
	__u64 bias = (__u64)__ehdr_start, size_bytes = 0;
	const Elf64_Rela *relocation = NULL;

	for (const Elf64_Dyn *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA)
			relocation = object__address(&own_object, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_RELASZ)
			size_bytes = entry->d_un.d_val;
	}
	for (; size_bytes >= sizeof(*relocation); size_bytes -= sizeof(*relocation), relocation++) {
		__u64 *word = (__u64 *)(bias + relocation->r_offset);
		__u32 type = ELF64_R_TYPE(relocation->r_info);

		if (type == PROCESSOR_THREAD)
			*word = request->offsets[relocation->r_addend / sizeof(__u64) %
						 INSIDE_THREAD_WORDS];
	}
}

/* Called by object__each_slot() for the library's own slots: binds a slot to the definition of
 * @name. */
static void bind_own(void *context, const char *name, __u64 *slot, bool is_lazy)
{
	struct definition found;

	if (object__defines(&own_object, name, &found) || objects__find_function(name, &found))
		*slot = (__u64)found.address;
}

/* Thread-specific data (pthread_key_create(3)) is the only memory of a thread that a library can
 * get when the thread exists already: such threads have no room for this library's thread-local
 * variables. */

typedef int (*create_key_t)(__u32 *key, void (*destroy)(void *));

/* glibc keeps the data of the first 32 keys in struct pthread, and allocates memory for the data of
 * further keys. */
#define KEYS_IN_THREAD 32
#define PTHREAD_WORDS  ((PTHREAD_END - PTHREAD_BEGIN) / (__s64)sizeof(__u64))

/* A copy of struct pthread, up to PTHREAD_END, and of what is around it. */
struct pthread_copy {
	__u64 words[PTHREAD_WORDS];
};

#define STEP_WORDS 16

/* Copies the calling thread's. Returns the index of the first word; what is in front of it cannot be
 * read. */
static __s64 copy_pthread(struct pthread_copy *copy)
{
	__u64 begin = processor__thread_data() + PTHREAD_BEGIN;
	__s64 first = 0;

	while (first < PTHREAD_WORDS &&
	       !memory__read(begin + first * sizeof(__u64), &copy->words[first],
			     (PTHREAD_WORDS - first) * sizeof(__u64)))
		first += STEP_WORDS;
	return first;
}

static __u64 offset_of_word(__s64 index)
{
	return PTHREAD_BEGIN + index * (__s64)sizeof(__u64);
}

static bool find_offset(process_keep_fn keep, __u32 key, __u64 *offset)
{
	__u64 sign = (__u64)&keep;
	struct pthread_copy copy;
	bool is_found = false;

	if (keep(key, (const void *)sign))
		return false;
	for (__s64 i = copy_pthread(&copy); i < PTHREAD_WORDS; i++)
		if (copy.words[i] == sign) {
			is_found = !*offset;
			*offset = offset_of_word(i);
		}
	keep(key, NULL);
	return is_found;
}

/* Returns the offset of the thread's number, which follows a list's two pointers in struct pthread;
 * if there is none, of any word that equals it; 0 if there is none at all. */
static __u64 find_tid_offset(void)
{
	__u32 tid = sys__tid();
	struct pthread_copy copy;
	__s64 first = copy_pthread(&copy), known = (PTHREAD_TID - PTHREAD_BEGIN) / sizeof(__u64);
	__u64 any = 0;

	if (PTHREAD_TID && first <= known && (__u32)copy.words[known] == tid)
		return PTHREAD_TID;
	for (__s64 i = first; i < PTHREAD_WORDS; i++) {
		const __u64 *word = &copy.words[i];

		if ((__u32)*word != tid)
			continue;
		if (i >= first + 2 && word[-1] > LEAST_PAGE && word[-2] > LEAST_PAGE)
			return offset_of_word(i);
		any = any ?: offset_of_word(i);
	}
	return any;
}

static int make_keys(struct inside_request *request)
{
	struct definition create, keep;

	if (!objects__find_function("pthread_setspecific", &keep) ||
	    !objects__find_function("pthread_key_create", &create))
		return -ENOSYS;
	for (int i = 0; i < INSIDE_THREAD_WORDS && !request->has_keys; i++) {
		__u32 *key = &request->keys[i];

		if (((create_key_t)create.address)(key, NULL) || *key >= KEYS_IN_THREAD ||
		    !find_offset((process_keep_fn)keep.address, *key, &request->offsets[i]))
			return -ENOSYS;
	}
	if (!request->has_keys)
		request->tid_offset = find_tid_offset();
	if (!request->tid_offset)
		return -ENOSYS;
	request->has_keys = 1;
	process__keep_threads((process_keep_fn)keep.address, request->keys[0], request->tid_offset);
	set_offsets(request);
	return 0;
}

static int take_functions(struct inside_request *request)
{
	bool is_taken =
		own__take((const struct inside_function *)request->functions, request->n_functions);

	if (request->functions)
		sys(__NR_munmap, request->functions, request->functions_bytes, 0, 0, 0, 0);
	request->functions = 0;
	return is_taken ? 0 : -EUCLEAN;
}

/* Applies the process's seccomp filters to this library: they are lifted only for the calling
 * thread and only now, and later calls must obey them. */
static void obey_filters(struct inside_request *request)
{
	const struct sock_fprog *filters = (const struct sock_fprog *)request->filters;

	for (__u64 i = 0; i < request->n_filters; i++)
		confine__by_filter((unsigned long)&filters[i], 0);
	if (request->filters)
		sys(__NR_munmap, request->filters, request->filters_bytes, 0, 0, 0, 0);
	request->filters = 0;
}

/* Returns whether the program itself defines malloc: its code then calls malloc directly, through
 * no word that could be changed. */
static bool program__has_malloc(void)
{
	struct definition first;

	return objects__find_function("malloc", &first) && first.object == objects__first();
}

__attribute__((visibility("protected"))) struct inside_redirections allocprof_redirections;

/* Functions without a next definition are left out. */
static void add_redirection(const char *name, enum next which)
{
	struct inside_redirections *list = &allocprof_redirections;
	/* interpose.c says why. */
	void *function = next__get(which == NEXT_reallocarray ? NEXT_realloc : which);
	struct definition own;

	if (function && object__defines(&own_object, name, &own))
		list->list[list->n++] = (struct inside_redirection){
			.stub = (__u64)own.address,
			.function = (__u64)function,
		};
}

static void list_redirections(void)
{
	allocprof_redirections.n = 0;
#define ADD(name, function) add_redirection(#name, NEXT_##name);
	NEXT_ALLOCATOR(ADD)
#undef ADD
	own__list(&allocprof_redirections);
}

static int begin(struct inside_request *request)
{
	int err;

	objects__set_linker(request->linker);
	if (!objects__are_consistent())
		return -EAGAIN;
	if (!request->n_functions && program__has_malloc())
		return -EEXIST;
	object__each_slot(&own_object, NULL, bind_own, NULL);
	__atomic_store_n(&request->stage, INSIDE_STAGE_LOCKS, __ATOMIC_RELEASE);
	objects__await_lock();
	domains__await_locks(&((const struct inside_header *)request->memory)->counted);
	__atomic_store_n(&request->stage, INSIDE_STAGE_WORKS, __ATOMIC_RELEASE);
	err = make_keys(request);
	if (!err && !words__begin())
		err = -ENOMEM;
	if (!err)
		err = take_functions(request);
	if (!err)
		err = process__attach(request->memory, request->tables);
	if (!err)
		words__bind_linker();
	if (!err)
		list_redirections();
	obey_filters(request);
	request->n_words = words__count();
	return err;
}

static int end(struct inside_request *request)
{
	struct words_sum sum;

	if (!objects__are_consistent())
		return -EAGAIN;
	__atomic_store_n(&request->stage, INSIDE_STAGE_LOCKS, __ATOMIC_RELEASE);
	objects__await_lock();
	__atomic_store_n(&request->stage, INSIDE_STAGE_WORKS, __ATOMIC_RELEASE);
	process__detach();
	sum = words__restore();
	request->n_words = sum.n;
	request->n_lost = sum.n_lost + domains__restore();
	return 0;
}

/* The longest time that a thread waits until allocprof takes it back. */
#define WAIT_NS 100000000

__u32 allocprof_n_outside;

/* Sleeps by rt_sigtimedwait(2) with an empty set of signals. Most other calls that wait store how
 * the kernel restarts them, and would overwrite what it has stored for the thread's own
 * interrupted call. The filters do not matter yet. */
static void wait_for_none(void)
{
	struct __kernel_timespec wait = { .tv_nsec = WAIT_NS };
	const __u64 none = 0;

	processor__call(__NR_rt_sigtimedwait, (long)&none, 0, (long)&wait, sizeof(none), 0, 0);
}

/* The request of allocprof. It stays in memory for the next allocprof that attaches to this
 * process. */
__attribute__((visibility("protected"))) struct inside_request allocprof_request;

EXPORT void allocprof_attach(void);
EXPORT void allocprof_attach(void)
{
	struct inside_request *request = &allocprof_request;
	struct sys_limits limits = sys_limits;

	/* The filters of the process are lifted for this thread, and the others are stopped. */
	sys_limits.is_limited = false;
	objects__keep_symbols(true);
	if (request->action == INSIDE_ATTACH)
		request->result = begin(request);
	else if (request->action == INSIDE_DETACH)
		request->result = end(request);
	else
		process__clean();
	objects__keep_symbols(false);
	if (request->action != INSIDE_ATTACH)
		sys_limits = limits;
	__atomic_store_n(&request->stage, INSIDE_STAGE_DONE, __ATOMIC_RELEASE);
	wait_for_none();
	__atomic_store_n(&request->stage, INSIDE_STAGE_RETURNS, __ATOMIC_RELEASE);
}
