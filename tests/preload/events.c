// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The independent truth about what becomes of memory: logs each call of the C library's allocator,
 * what it returned, and the stack that it came from. tests/preload/events.py creates and reads the
 * log, which ALLOCPROF_COUNTER=FILE names in the first environment.
 *
 * The log is one file, mapped shared by every process of the tree: threads, fork, vfork, exec, _exit
 * and SIGKILL need no handling, and nothing is ever flushed. It is sparse; its events are an array,
 * and the index of an event is its place in the order of time for the whole tree. An event is
 * claimed, filled and then given its kind: one that is still NOTHING was never finished.
 *
 * A call is an ENTER before the real function and, but for free, a RETURN after it. So for any
 * address the RETURN of the call that made a block comes before the ENTER of the free that ends it,
 * and that before the RETURN that hands the address out again, whichever threads these are on.
 *
 * A stub of anything but free calls the real function: libevents.so is the innermost frame there.
 * free, and the realloc that reallocarray jumps to, are jumped to as in libcounter.
 *
 * An address space has a number. It is kept in a page that the kernel zeroes in a forked child: the
 * child takes a new number, whereas vfork and CLONE_VM go on with the one that is there.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "frames.h"

const char library_name[] = "libevents";

#define MAGIC 0x31746e6576457061ull /* "apEvent1" */

/* In the header's flags: no stacks are wanted. */
#define WITHOUT_STACKS 1

#define MAX_EVENTS  (1ull << 26)
#define MAX_WORDS   (1ull << 31) /* of stacks */
#define MAX_MODULES 1024
#define MAX_PATH    1020
#define MAX_FRAMES  8192
#define MAX_ACTIVE  256
#define PAGE_BYTES  4096ul

/* A word of a stack: which module, from 1, and the pc as an ELF virtual address; 0 for no module. */
#define MODULE_SHIFT 48

enum kind {
	NOTHING,
	ENTER,	/* pointer: the first argument of realloc, reallocarray and free; of posix_memalign
		 * where the result goes */
	RETURN, /* pointer: the block or NULL; link: the ENTER */
	IMAGE,	/* a program image has begun, in a new space; link: its module */
	SPACE,	/* a forked child has a space of its own; link: the space that it is a copy of */
};

/* In an event's flags: the product overflows. */
#define OVERFLOW 1

struct event {
	atomic_uint kind; /* set last */
	uint16_t function;
	uint16_t n_frames;
	uint32_t process;
	uint32_t thread;
	uint32_t space;
	uint32_t flags;
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint64_t pointer;
	uint64_t bytes;
	uint64_t stack; /* index of its first word */
	uint64_t link;
};

_Static_assert(sizeof(struct event) == 64, "events.py has the layout");

struct module {
	atomic_uint state;
	char path[MAX_PATH];
};

enum {
	VACANT,
	CLAIMED,
	READY
};

struct log {
	uint64_t magic;
	uint64_t flags;
	atomic_uint_least64_t n_events;
	atomic_uint_least64_t n_words;
	atomic_uint_least64_t n_spaces;
	uint64_t unused[3];
	struct module modules[MAX_MODULES];
	struct event events[MAX_EVENTS];
	uint64_t words[MAX_WORDS];
};

/* Where a stack is put together. Not on the stack, which may be a small one, nor thread-local. */
static struct scratch {
	atomic_bool used;
	uintptr_t frames[MAX_FRAMES];
} scratch[MAX_ACTIVE];

static struct log *_Atomic the_log;
static atomic_bool is_off; /* without ALLOCPROF_COUNTER */
/* The number of the address space; 0 in a child that was just forked. */
static atomic_uint *space_page;
/* The same, but kept by a fork. */
static atomic_uint last_space;

static unsigned int current_space(struct log *log);

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static struct event *begin(struct log *log, unsigned int space)
{
	uint64_t i = atomic_fetch_add(&log->n_events, 1);
	struct event *event;

	if (i >= MAX_EVENTS)
		die("too many events");
	event = &log->events[i];
	event->process = syscall(SYS_getpid);
	event->thread = syscall(SYS_gettid);
	event->space = space;
	event->ns = now_ns();
	return event;
}

static void finish(struct event *event, enum kind kind)
{
	atomic_store_explicit(&event->kind, kind, memory_order_release);
}

/* A module may be there twice, where two processes were about to add it. */
static unsigned int module_number(struct log *log, const char *path)
{
	size_t length = strlen(path);
	uint32_t hash = 2166136261u;

	if (length >= MAX_PATH)
		die("the path of a module is too long");
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)path[i]) * 16777619u;
	for (size_t i = 0; i < MAX_MODULES; i++) {
		unsigned int at = (hash + i) % MAX_MODULES, state = VACANT;
		struct module *module = &log->modules[at];

		if (atomic_compare_exchange_strong(&module->state, &state, CLAIMED)) {
			memcpy(module->path, path, length + 1);
			atomic_store(&module->state, READY);
			return at + 1;
		}
		if (state == READY && !strcmp(module->path, path))
			return at + 1;
	}
	die("too many modules");
}

static struct scratch *claim_scratch(void)
{
	for (size_t i = 0; i < MAX_ACTIVE; i++)
		if (!atomic_exchange(&scratch[i].used, true))
			return &scratch[i];
	die("too many calls at once");
}

/* Appends the stack from @return_address outwards; its first word's index, and how many. */
static uint64_t append_stack(struct log *log, uintptr_t return_address, uint16_t *n_frames)
{
	struct scratch *s = claim_scratch();
	size_t n = frames__capture(s->frames, MAX_FRAMES, return_address);
	uint64_t at = atomic_fetch_add(&log->n_words, n);
	const char *last = NULL;
	uint64_t module = 0;

	if (at + n > MAX_WORDS)
		die("too many stacks");
	for (size_t i = 0; i < n; i++) {
		uintptr_t bias;
		const char *path = frames__module(s->frames[i], &bias);

		if (!path)
			module = 0;
		else if (path != last)
			module = module_number(log, path);
		last = path;
		log->words[at + i] = module << MODULE_SHIFT |
				     ((s->frames[i] - bias) & ((1ull << MODULE_SHIFT) - 1));
	}
	atomic_store(&s->used, false);
	*n_frames = n;
	return at;
}

static void map_space_page(void)
{
	void *page = map_anonymous(PAGE_BYTES);

	if (syscall(SYS_madvise, page, PAGE_BYTES, (long)MADV_WIPEONFORK))
		die("cannot have a page that a fork wipes");
	space_page = page;
}

/* Always by the only thread: to start another one allocates. */
static struct log *attach(void)
{
	const char *path = first_environment("ALLOCPROF_COUNTER");
	int saved_errno = errno;
	struct event *image;
	struct log *log;

	/* A forked child never comes here. */
	if (!path) {
		atomic_store(&is_off, true);
		return NULL;
	}
	log = map_output(path, sizeof(*log));
	if (log->magic != MAGIC)
		die("the file in ALLOCPROF_COUNTER is not a log of events");
	map_space_page();
	atomic_store(space_page, atomic_fetch_add(&log->n_spaces, 1) + 1);
	atomic_store(&last_space, atomic_load(space_page));
	image = begin(log, atomic_load(space_page));
	image->link = module_number(log, frames__program());
	finish(image, IMAGE);
	atomic_store(&the_log, log);
	errno = saved_errno;
	return log;
}

static struct log *get_log(void)
{
	struct log *log = atomic_load(&the_log);

	return log || atomic_load(&is_off) ? log : attach();
}

/* An image that never allocates is an image too. */
__attribute__((constructor)) static void loaded(void)
{
	get_log();
}

static unsigned int current_space(struct log *log)
{
	unsigned int space = atomic_load(space_page), parent = atomic_load(&last_space), fresh;
	struct event *event;

	if (space)
		return space;
	fresh = atomic_fetch_add(&log->n_spaces, 1) + 1;
	if (!atomic_compare_exchange_strong(space_page, &space, fresh))
		return space;
	atomic_store(&last_space, fresh);
	event = begin(log, fresh);
	event->link = parent;
	finish(event, SPACE);
	return fresh;
}

/* What a stub learns in %rax and %rdx: where it goes on, and 0 or what events_return() is to get. */
struct entered {
	void *function;
	uint64_t ticket;
};

/* How far below the stub's the stack pointer is at the entry of the function that it calls. */
#define CALL_DEPTH 16

/* Logs a call, @sp as at its entry. */
__attribute__((used)) struct entered events_enter(uintptr_t a, uintptr_t b, uintptr_t c,
						  const uintptr_t *sp, enum function f);
/* Logs what it returned. */
__attribute__((used)) void events_return(uint64_t ticket, uintptr_t result);

__attribute__((noinline)) struct entered events_enter(uintptr_t a, uintptr_t b, uintptr_t c,
						      const uintptr_t *sp, enum function f)
{
	struct entered entered = { .function = real_function(f) };
	int saved_errno = errno;
	struct log *log = get_log();
	uint64_t stack = 0;
	uint16_t n_frames = 0;
	unsigned int space;
	struct event *event;
	bool overflow;
	size_t bytes = requested_bytes(f, a, b, c, &overflow);

	if (!log || (f == REALLOC && nested__take(a, b, (uintptr_t)sp)))
		return entered;
	if (f == REALLOCARRAY && !overflow)
		nested__expect(a, bytes, (uintptr_t)sp - CALL_DEPTH);
	space = current_space(log);
	/* Before the event, which is to be close to the real call. */
	if (!(log->flags & WITHOUT_STACKS))
		stack = append_stack(log, *sp, &n_frames);
	event = begin(log, space);
	event->function = f;
	event->flags = overflow ? OVERFLOW : 0;
	if (f == REALLOC || f == REALLOCARRAY || f == FREE || f == POSIX_MEMALIGN)
		event->pointer = a;
	event->bytes = bytes;
	event->stack = stack;
	event->n_frames = n_frames;
	finish(event, ENTER);
	if (f != FREE)
		entered.ticket = event - log->events + 1;
	errno = saved_errno;
	return entered;
}

void events_return(uint64_t ticket, uintptr_t result)
{
	int saved_errno = errno;
	struct log *log = atomic_load(&the_log);
	const struct event *enter = &log->events[ticket - 1];
	struct event *event = begin(log, current_space(log));

	if (enter->function == POSIX_MEMALIGN)
		result = (int)result ? 0 : *(uintptr_t *)enter->pointer;
	event->function = enter->function;
	event->pointer = result;
	event->link = ticket - 1;
	finish(event, RETURN);
	errno = saved_errno;
}

#define STUB(index, constant, name)                                                                \
	__asm__(STUB_ENTER(#name, index, "events_enter") "	mov %rdx, %r11\n" STUB_RESTORE     \
							 "	test %r11, %r11\n"                      \
							 "	je 1f\n"                                \
							 "	push %r11\n"                            \
							 "	.cfi_adjust_cfa_offset 8\n"             \
							 "	call *%rax\n"                           \
							 "	pop %rdi\n"                             \
							 "	.cfi_adjust_cfa_offset -8\n"            \
							 "	push %rax\n"                            \
							 "	.cfi_adjust_cfa_offset 8\n"             \
							 "	mov %rax, %rsi\n"                       \
							 "	call events_return\n"                   \
							 "	pop %rax\n"                             \
							 "	.cfi_adjust_cfa_offset -8\n"            \
							 "	ret\n"                                  \
							 "1:	jmp *%rax\n" STUB_END(#name));
ALLOCATOR_FUNCTIONS(STUB)
