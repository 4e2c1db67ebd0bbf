# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers of signals that come within the library, at any instruction of it, allocate, and return, leave by a jump, go on with
another stack or are interrupted there themselves. The processor's trap flag raises a signal after each instruction, so that none
of this depends on time. And how much stack the library takes."""

import collections
import contextlib
import json
import sqlite3

import pytest

STEPS = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif
#define TRAP_FLAG    0x100
#define MOST_LEVELS  7
#define STACK_BYTES  (64 << 10)

static unsigned long start, end, calls[MOST_LEVELS];
static volatile int steps, at, level;
static enum { RETURN, JUMP, NEST, SWITCH } how;
static sigjmp_buf back;
static ucontext_t first, second, outside;
static void *volatile sink[MOST_LEVELS];

static inline void trace(void) { __asm__ volatile("pushf\n orq $0x100, (%%rsp)\n popf" ::: "memory", "cc"); }
static inline void untrace(void) { __asm__ volatile("pushf\n andq $~0x100, (%%rsp)\n popf" ::: "memory", "cc"); }

/* Each level has a size of its own. */
static __attribute__((noinline)) void use(int depth, int of)
{
	if (depth) { use(depth - 1, of); __asm__ volatile(""); return; }
	calls[of]++;
	sink[of] = malloc(24 + 16 * of);
}

static void run_second(void)
{
	for (;;) {
		/* As many as it takes until the library looks for what was left. */
		for (int i = 0; i < 20; i++) { use(3, 1); free(sink[1]); }
		swapcontext(&second, &first);
	}
}

static __attribute__((noinline)) void nest(void)
{
	int of = ++level;

	steps = 0;
	if (of < MOST_LEVELS - 1) trace();
	use(3, of);
	untrace();
	free(sink[of]);
	level--;
}

static void handle(int number, siginfo_t *info, void *context)
{
	ucontext_t *at_step = context;
	unsigned long pc = at_step->uc_mcontext.gregs[REG_RIP];

	/* Where other signals are blocked, none would come. */
	if (pc < start || pc >= end || sigismember(&at_step->uc_sigmask, SIGALRM) || ++steps != at) return;
	at_step->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (how == NEST) {
		nest();
	} else if (how == SWITCH) {
		swapcontext(&first, &second);
	} else {
		use(3, 1);
		free(sink[1]);
	}
	if (how == JUMP) siglongjmp(back, 1);
}

static void run_first(int depth)
{
	trace(); use(depth, 0); untrace(); free(sink[0]);
	setcontext(&outside);
}

static void switch_stacks(char *stacks, int depth, int is_above)
{
	ucontext_t context;
	volatile int has_returned = 0;

	getcontext(&second);
	second.uc_stack = (stack_t){ .ss_sp = stacks + (is_above ? STACK_BYTES : 0), .ss_size = STACK_BYTES };
	makecontext(&second, run_second, 0);
	getcontext(&context);
	context.uc_stack = (stack_t){ .ss_sp = stacks + (is_above ? 0 : STACK_BYTES), .ss_size = STACK_BYTES };
	makecontext(&context, (void (*)(void))run_first, 1, depth);
	getcontext(&outside);
	if (!has_returned++) setcontext(&context);
}

static long resident_pages(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
	fclose(file);
	return pages;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "return", "jump", "nest", "switch" };
	/* Above what is interrupted. */
	char other[2 * STACK_BYTES], line[4096];
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER };
	stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) };
	FILE *maps = fopen("/proc/self/maps", "r"), *out;
	int depth;
	long before;

	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "inside.so") && strstr(line, "r-xp")) sscanf(line, "%lx-%lx", &start, &end);
	fclose(maps);
	while (strcmp(argv[1], names[how])) how++;
	if (strcmp(argv[4], "one")) {
		action.sa_flags |= SA_ONSTACK;
		if (!strcmp(argv[4], "disarmed")) stack.ss_flags = SS_AUTODISARM;
		if (sigaltstack(&stack, NULL)) return 2;
	}
	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < 100; i++) { use(i % 20, 0); free(sink[0]); }
	before = resident_pages();
	for (int i = 1; i < atoi(argv[2]); i++) {
		at = 5 * i;
		steps = 0;
		depth = how == NEST || how == SWITCH ? 3 : i % 20;
		if (how == SWITCH) switch_stacks(other, depth, i & 1);
		else if (!sigsetjmp(back, 1)) { trace(); use(depth, 0); untrace(); free(sink[0]); }
		/* Where it is left further in than the next call is. */
		if (how == JUMP) { use(30, 0); free(sink[0]); }
	}
	if (resident_pages() - before > 400) printf("grown by %ld pages\n", resident_pages() - before);
	out = fopen(argv[3], "w");
	for (int i = 0; i < MOST_LEVELS; i++) fprintf(out, "%lu ", calls[i]);
	fclose(out);
	puts("done");
	return 5;
}
"""

LEVELS = 7
# Of calls of a thread that are under way at a time, the library counts at least so many.
COUNTED = 3
SIZES = {24 + 16 * level: level for level in range(LEVELS)}


def recorded(path):
    """By level: calls that are in the counts, and the numbers of frames that their stacks have."""
    calls, depths = collections.Counter(), collections.defaultdict(set)
    with contextlib.closing(sqlite3.connect(path)) as data:
        for n, size_bytes, frames in data.execute(
                "SELECT calls, bytes, (SELECT count(*) FROM stack_frames s WHERE s.stack = c.stack) FROM counts c "
                "WHERE function = 'malloc'"):
            level = SIZES.get(size_bytes / n)
            # Others are what stdio allocates.
            if level is not None:
                calls[level] += n
                depths[level].add(frames)
    return calls, depths


@pytest.mark.covering(2)
@pytest.mark.fast("record-jump-one", "live-jump-one", "live-return-one", "record-jump-other")
@pytest.mark.parametrize("stack", ["one", "other", "disarmed"])
@pytest.mark.parametrize("how", ["return", "jump"])
@pytest.mark.parametrize("mode", ["record", "live", "events"])
def test_signal_within_the_library(same, compiled, tmp_path, mode, how, stack):
    """No memory is left behind, and no call is lost, but for a few after a jump, before anything shows that it was one."""
    calls = tmp_path / "calls"
    bare, report = same(mode, [compiled(STEPS, "-O1", name="steps"), how, "120", calls, stack])
    assert bare.status == 5 and bare.stdout == b"done\n", bare
    made = sum(map(int, calls.read_text().split()))
    # And what stdio allocates. A call that is left by a jump may not be counted yet.
    left = 120 if how == "jump" else 0
    assert made - left <= report["events"] <= made + 12, (made, report)
    assert report["lost"] == report["lost_no_scratch"] <= left / 10, report


@pytest.mark.fast("live-nest-one", "record-switch-one")
# A handler on a stack that the kernel uses again is not left.
@pytest.mark.parametrize("how, stack", [("nest", "one"), ("nest", "other"), ("nest", "disarmed"), ("switch", "one")])
@pytest.mark.parametrize("mode", ["record", "live", "events"])
def test_calls_under_way(same, compiled, tmp_path, mode, how, stack):
    """Handlers interrupt each other within the library, or go on with another stack, in the same mapping, and come back. Each
    call is in the counts, with its own stack and size, or lost where too many are under way."""
    calls = tmp_path / "calls"
    bare, report = same(mode, [compiled(STEPS, "-O1", name="steps"), how, "100", calls, stack])
    assert bare.status == 5 and bare.stdout == b"done\n", bare
    made = dict(enumerate(map(int, calls.read_text().split())))
    got, depths = recorded(tmp_path / f"{mode}.out")
    exact = range(LEVELS) if how == "switch" else range(COUNTED)
    assert {level: got[level] for level in exact} == {level: made[level] for level in exact}, (made, got, report)
    assert all(got[level] <= made[level] for level in made), (made, got, report)
    # The first calls, of level 0, come from stacks of other depths.
    assert all(len(depths[level]) <= 1 for level in depths if level), depths
    assert sum(made.values()) - sum(got.values()) == report["lost"] == report["lost_no_scratch"], (made, got, report)
    # Else nothing bounds the stack that handlers take which interrupt each other.
    assert (report["lost"] > 0) == (how == "nest"), (made, got, report)


STACK_USE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define PAINT  0xa5
#define BELOW  512 /* what is not painted, since it is in use */
#define ROOM   32768

/* The C library's own names, which nobody counts. */
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

static void *volatile block;
static __attribute__((noinline)) void do_malloc(void) { block = malloc(40); __asm__ volatile(""); }
static __attribute__((noinline)) void do_realloc(void) { block = realloc(block, 41); __asm__ volatile(""); }
static __attribute__((noinline)) void do_free(void) { free(block); __asm__ volatile(""); }

/* Returns how many bytes of stack below this function's frame the call writes to. */
static __attribute__((noinline)) unsigned used(void (*call)(void))
{
	volatile unsigned char *top = __builtin_frame_address(0), *at;

	for (at = top - ROOM; at < top - BELOW; at++) *at = PAINT;
	call();
	for (at = top - ROOM; *at == PAINT; at++);
	return top - at;
}

static void most(unsigned *to)
{
	void (*const calls[])(void) = { do_malloc, do_realloc, do_free };

	for (int i = 0; i < 3; i++) {
		unsigned n = used(calls[i]);
		if (n > *to) *to = n;
	}
}

static __attribute__((noinline)) void deep(int depth, unsigned *to)
{
	if (depth) { deep(depth - 1, to); __asm__ volatile(""); return; }
	most(to);
}

static unsigned first, known, stacks, library;

static void *run(void *unused)
{
	__libc_free(__libc_malloc(40));
	most(&first);
	for (int i = 0; i < 10; i++) { do_malloc(); do_realloc(); do_free(); }
	for (int i = 0; i < 10; i++) most(&known);
	for (int i = 0; i < 300; i++) deep(i % 100, &stacks);
	return NULL;
}

int main(int argc, char **argv)
{
	void *make = dlsym(dlopen(argv[1], RTLD_NOW), "make");
	pthread_t thread;
	FILE *out;

	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	library = used(make);
	out = fopen(argv[2], "w");
	fprintf(out, "{\"first\": %u, \"known\": %u, \"stacks\": %u, \"library\": %u}", first, known, stacks, library);
	fclose(out);
	return 5;
}
"""

# As docs/inside.md has it.
STACK_BYTES, KNOWN_STACK_BYTES = 2048, 1024


@pytest.mark.fast("live")
@pytest.mark.parametrize("mode", ["stat", "record", "live"])
def test_stack_of_a_call(same, compiled, tmp_path, mode):
    """What a call writes to below its caller: the first calls of a thread, calls from stacks that are known and from others, while
    tables grow, and one from a library that was not there before."""
    out = tmp_path / "used"
    library = compiled("#include <stdlib.h>\nvoid *kept;\nvoid *make(void) { kept = malloc(40); return kept; }",
                       "-shared", "-fPIC", "-Wl,-z,now", name="library")
    same(mode, [compiled("#include <pthread.h>\n" + STACK_USE, "-Wl,-z,now", name="stack_use"), library, out])
    used = json.loads(out.read_text())
    assert all(n <= STACK_BYTES for n in used.values()), used
    assert used["known"] <= KNOWN_STACK_BYTES, used
