// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * truth_shapes [SHAPE...]: allocates once or a few times from each of the named shapes of stack,
 * from all without arguments. Each is one that an unwinder can get wrong. Built in many ways. What
 * it allocates is recorded by libtruth. Prints the name of each shape, exit status 0.
 */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "raw.h"
#if defined(__x86_64__)
#include "truth_x86.h"
#elif defined(__aarch64__)
#include "truth_arm64.h"
#endif

DEFINE_SINK;

/* In truth_x86.S and truth_arm64.S; all end with NULL. */
extern void (*const cfi_functions[])(void (*callee)(void));
extern void (*const cfi_kept_functions[])(void (*callee)(void));
extern void (*const trap_functions[])(unsigned long number);

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* Behind a call, so that it is no tail call. */
#define NOT_LAST __asm__ volatile("" : : : "memory")

static volatile unsigned long number = 3;
static volatile unsigned char *volatile bytes;
static size_t next_size = 1000;

/* Sizes that are not used twice, so that a difference can be told by them. */
static NOINLINE void allocate(void)
{
	sink = malloc(next_size++);
	free(sink);
	NOT_LAST;
}

static NOINLINE void chain(int depth)
{
	if (depth)
		chain(depth - 1);
	else
		allocate();
	NOT_LAST;
}

static NOINLINE void with_alloca(size_t size)
{
	bytes = alloca(size);
	bytes[0] = 1;
	allocate();
	NOT_LAST;
}

static NOINLINE void with_array(size_t size)
{
	volatile unsigned char array[size];

	array[0] = 1;
	bytes = array;
	with_alloca(size * 3);
	NOT_LAST;
}

static void variable(void)
{
	for (size_t size = 1; size < 3000; size = size * 3 + 1)
		with_array(size * number);
}

static NOINLINE void realigned_array(size_t size)
{
	__attribute__((aligned(64))) volatile unsigned char aligned[128];
	volatile unsigned char array[size];

	aligned[0] = array[0] = 1;
	bytes = aligned;
	bytes = array;
	allocate();
	NOT_LAST;
}

static NOINLINE int realigned(int a, int b, int c, int d, int e, int f, int on_stack)
{
	__attribute__((aligned(64))) volatile unsigned char aligned[64];

	aligned[0] = on_stack;
	bytes = aligned;
	allocate();
	realigned_array(number * 100);
	/* The argument on the stack is found through the register that keeps the frame. */
	return aligned[0] + a + b + c + d + e + f + on_stack;
}

static FORCE_ALIGN NOINLINE void forced(void)
{
	allocate();
	realigned(1, 2, 3, 4, 5, 6, number);
	NOT_LAST;
}

static void realign(void)
{
	realigned(1, 2, 3, 4, 5, 6, number);
	forced();
}

static NOINLINE void large_frame(int depth)
{
	volatile unsigned char large[40 << 10];

	large[0] = 1;
	bytes = large;
	if (depth)
		large_frame(depth - 1);
	else
		allocate();
	NOT_LAST;
	large[1] = large[0];
}

static void large(void)
{
	large_frame(0);
	large_frame(3);
}

static void deep(void)
{
	chain(100);
}

static void deeper(void)
{
	chain(600);
}

/* Nine arguments: some are pushed, the CFA changes between the instructions of one function. */
static NOINLINE long nine(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	allocate();
	return a + b + c + d + e + f + g + h + i;
}

static NOINLINE long pushes(long a)
{
	return nine(a, 2, 3, 4, 5, 6, nine(1, 2, 3, 4, 5, 6, 7, 8, a),
		    nine(a, a, a, a, a, a, a, a, a), 9) +
	       a;
}

static void arguments(void)
{
	number = pushes(number) ? 3 : 4;
}

/* What was allocated on the way is only saved where it is needed. */
static NOINLINE long shrink_wrapped(long a, long *out)
{
	if (a > 3)
		return a;
	for (long i = 0; i < a; i++) {
		allocate();
		out[i] = i * a;
	}
	allocate();
	return out[0] + out[a - 1];
}

static void early_return(void)
{
	long out[4];

	shrink_wrapped(number + 10, out);
	shrink_wrapped(number, out);
	NOT_LAST;
}

static __attribute__((cold)) NOINLINE void unlikely(long a)
{
	chain(a);
	NOT_LAST;
}

/* The cold part may be a piece of its own, with its own FDE, and starts with a frame in place. */
static NOINLINE long parted(long a, long b, long c)
{
	long sum = 0;

	for (long i = 0; i < a; i++) {
		sum += b * i;
		if (__builtin_expect(sum > c, 0)) {
			unlikely(1);
			allocate();
			sum -= number;
		}
	}
	return sum;
}

static void cold(void)
{
	parted(5, number, 10);
	NOT_LAST;
}

static void registers(void)
{
	for (size_t i = 0; cfi_functions[i]; i++)
		cfi_functions[i](allocate);
}

static void in_kept(void)
{
	for (size_t i = 0; cfi_kept_functions[i]; i++)
		cfi_kept_functions[i](allocate);
}

static NOINLINE void handler(int sig, siginfo_t *info, void *context)
{
	allocate();
	if (sig == SIGUSR1)
		raise(SIGUSR2);
	NOT_LAST;
}

static void handle(int sig, int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	sigaction(sig, &action, NULL);
}

static NOINLINE void raise_both(void)
{
	raise(SIGUSR1);
	raise(SIGUSR2);
	NOT_LAST;
}

static void raised(void)
{
	handle(SIGUSR1, 0);
	handle(SIGUSR2, 0);
	raise_both();
}

static unsigned char other_stack[256 << 10];

static void alternate(void)
{
	stack_t stack = { .ss_size = sizeof(other_stack), .ss_sp = other_stack };

	sigaltstack(&stack, NULL);
	handle(SIGUSR1, SA_ONSTACK);
	handle(SIGUSR2, SA_ONSTACK);
	raise_both();
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

static void step_over(int sig, siginfo_t *info, void *context)
{
	allocate();
	step_over_trap(context);
}

/* Each of the functions is interrupted at several instructions: the first, where the address before
 * is another function's, right behind a push, in a leaf that uses the red zone, the last. */
static sigjmp_buf out_of_vdso;

static void leave_vdso(int signal)
{
	allocate();
	siglongjmp(out_of_vdso, signal);
}

/* Interrupted in the kernel's own code: the vDSO's clock_gettime() faults where it writes its result.
 * The coarse clock is read there whatever the machine's clock source is. */
static void in_vdso(void)
{
	struct sigaction action = { .sa_handler = leave_vdso };
	struct timespec *volatile nowhere = (struct timespec *)8;

	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(out_of_vdso, 1))
		clock_gettime(CLOCK_MONOTONIC_COARSE, nowhere);
}

static void interrupted(void)
{
	struct sigaction action = { .sa_sigaction = step_over, .sa_flags = SA_SIGINFO };
	stack_t stack = { .ss_size = sizeof(other_stack), .ss_sp = other_stack };

	for (int i = 0; i < 2; i++) {
		sigaction(SIGILL, &action, NULL);
		for (size_t j = 0; trap_functions[j]; j++)
			trap_functions[j](number);
		sigaltstack(&stack, NULL);
		action.sa_flags |= SA_ONSTACK;
	}
	stack.ss_flags = SS_DISABLE;
	sigaltstack(&stack, NULL);
}

static NOINLINE int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	allocate();
	return (x > y) - (x < y);
}

static void callback(void)
{
	static int few[6] = { 3, 1, 2, 6, 5, 4 }, many[600];
	int key = 17;

	for (int i = 0; i < 600; i++)
		many[i] = i ^ 0x155;
	qsort(few, 6, sizeof(*few), compare);
	/* Too much for the stack: qsort allocates, too. */
	qsort(many, 600, sizeof(*many), compare);
	sink = bsearch(&key, many, 600, sizeof(*many), compare);
}

static jmp_buf back;

static _Noreturn NOINLINE void fail(int code)
{
	chain(1);
	longjmp(back, code);
}

/* The call is the last instruction: the return address belongs to the next function. */
static NOINLINE void call_is_last(long a)
{
	if (a)
		fail(1);
	allocate();
	fail(2);
}

static NOINLINE _Noreturn void call_is_all(void)
{
	fail(3);
}

static void noreturn(void)
{
	if (!setjmp(back))
		call_is_last(number);
	if (!setjmp(back))
		call_is_last(!number);
	if (!setjmp(back))
		call_is_all();
}

static void *work(void *depth)
{
	chain((intptr_t)depth);
	return NULL;
}

static void in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, (void *)5);
	pthread_join(thread, NULL);
}

static ucontext_t here, there;

static void coroutine(int depth)
{
	chain(depth);
	swapcontext(&there, &here);
	chain(depth + 1);
}

static void context(void)
{
	getcontext(&there);
	there.uc_stack.ss_sp = other_stack;
	there.uc_stack.ss_size = sizeof(other_stack);
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))coroutine, 1, 2);
	swapcontext(&here, &there);
	swapcontext(&here, &there);
}

static void in_child(void)
{
	int status;
	volatile pid_t pid = vfork();

	if (!pid) {
		chain(3);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	pid = fork();
	if (!pid) {
		chain(4);
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

static NOINLINE void every(void)
{
	void *block;

	sink = realloc(NULL, next_size++);
	sink = realloc(sink, next_size++);
	sink = realloc(sink, 100000 + next_size++);
	sink = calloc(next_size++, 3);
	sink = reallocarray(NULL, next_size++, 5);
	sink = reallocarray(sink, next_size++, 5);
	sink = aligned_alloc(64, next_size++ * 64);
	sink = posix_memalign(&block, 4096, next_size++) ? NULL : block;
	sink = strdup("a string");
	NOT_LAST;
}

/* The callee of a tail call sees its caller's caller. */
static NOINLINE void *tail(size_t size)
{
	return malloc(size);
}

static void tail_call(void)
{
	sink = tail(next_size++);
	NOT_LAST;
}

/* Code that is in no file. */
static NOINLINE void run_code(const unsigned char *code, size_t size)
{
	void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(place, code, size);
	mprotect(place, size, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(place, (char *)place + size);
	((void (*)(void (*)(void)))place)(allocate);
	munmap(place, size);
}

static void generated(void)
{
	static const unsigned char code[] = { GENERATED };
	volatile unsigned char large[40 << 10];

	large[0] = 1;
	bytes = large;
	run_code(code, sizeof(code));
	NOT_LAST;
	large[1] = large[0];
}

static void trampoline(void)
{
	static const unsigned char code[] = { GENERATED_LEAVING };

	run_code(code, sizeof(code));
	NOT_LAST;
}

static void at_exit(void)
{
	chain(2);
}

static void leave(void)
{
	atexit(at_exit);
}

static const struct {
	const char *name;
	void (*run)(void);
} shapes[] = {
	{ "variable", variable },
	{ "realign", realign },
	{ "large", large },
	{ "deep", deep },
	{ "deeper", deeper },
	{ "arguments", arguments },
	{ "early_return", early_return },
	{ "cold", cold },
	{ "registers", registers },
	{ "raised", raised },
	{ "alternate", alternate },
	{ "interrupted", interrupted },
	{ "vdso", in_vdso },
	{ "callback", callback },
	{ "noreturn", noreturn },
	{ "thread", in_thread },
	{ "context", context },
	{ "child", in_child },
	{ "every", every },
	{ "tail_call", tail_call },
	{ "leave", leave },
	{ "generated", generated },
	{ "trampoline", trampoline },
	{ "kept", in_kept },
};

#define SHAPES (sizeof(shapes) / sizeof(*shapes))

static NOINLINE void run(size_t i)
{
	say(shapes[i].name);
	say("\n");
	shapes[i].run();
	NOT_LAST;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < SHAPES; i++) {
		bool asked = argc < 2;

		for (int j = 1; j < argc; j++)
			asked |= !strcmp(argv[j], shapes[i].name);
		if (asked)
			run(i);
	}
	return 0;
}
