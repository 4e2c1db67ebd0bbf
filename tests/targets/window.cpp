// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Allocates inside and outside of one function, measured(), in all the ways to enter and leave it. What
 * is inside is counted by the program itself, as stats_alloc does, and printed at the end:
 * "calls=N bytes=N frees=N", of all threads.
 *
 * window WAY [wait | LIBRARY]: with "wait" it says "ready" and begins when a line comes, prints its
 * figures and waits for the end of its input; with "later" it loads LIBRARY, which is window_later.
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "allocprof.h"

#define NOINLINE __attribute__((noinline))

static unsigned long calls, bytes, frees;
/* Frames of measured() that this thread has. */
static thread_local int inside;

NOINLINE static void *take(size_t size)
{
	if (inside) {
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&bytes, size, __ATOMIC_RELAXED);
	}
	void *block = malloc(size);
	asm volatile("" : "+r"(block));
	return block;
}

NOINLINE static void give(void *block)
{
	if (inside)
		__atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
	free(block);
	asm volatile("");
}

/* Each lies in a page of its own, which nobody has been in before. */
template <int N> NOINLINE __attribute__((aligned(4096))) static void on_own_page()
{
	give(take(N + 1));
}

template <int... N> NOINLINE static void on_all_pages(std::integer_sequence<int, N...>)
{
	(on_own_page<N>(), ...);
}

static jmp_buf out;

enum way {
	RETURN,
	RECURSE,
	THROW,
	JUMP,
	PAGES
};

extern "C" {
NOINLINE void window_opens(void)
{
	asm volatile("");
}

NOINLINE void window_closes(void)
{
	asm volatile("");
}

NOINLINE void never_called(void)
{
	asm volatile("");
}
}

namespace service
{
NOINLINE void other(int)
{
	asm volatile("");
}

NOINLINE void other(const char *)
{
	asm volatile("");
}

NOINLINE void measured(way how, int depth)
{
	volatile char frame[64];

	inside++;
	frame[depth & 63] = 1;
	give(take(10 + depth % 7));
	if (depth)
		measured(how, depth - 1);
	else if (how == THROW) {
		/* The exception is allocated here, and freed outside. */
		calls++;
		throw 1;
	} else if (how == JUMP) {
		longjmp(out, 1);
	} else if (how == PAGES) {
		on_all_pages(std::make_integer_sequence<int, 100>());
	}
	void *kept = take(20);
	free(realloc(nullptr, 0));
	if (inside) {
		__atomic_fetch_add(&frees, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	}
	give(kept);
	asm volatile("" : : "r"(frame[0]) : "memory");
	inside--;
}
} // namespace service

static void run(way how, int depth)
{
	give(take(1000));
	switch (how) {
	case THROW:
		try {
			service::measured(how, depth);
		} catch (int) {
			inside = 0;
		}
		break;
	case JUMP:
		if (!setjmp(out))
			service::measured(how, depth);
		inside = 0;
		break;
	default:
		service::measured(how, depth);
	}
	give(take(2000));
}

static void *thread(void *)
{
	for (int i = 0; i < 200; i++)
		run(RETURN, i % 5);
	return nullptr;
}

/* Keeps the lock of the process's mappings held, most of the time. */
static bool mapping_enough;

static void *map_and_unmap(void *)
{
	while (!__atomic_load_n(&mapping_enough, __ATOMIC_RELAXED)) {
		void *memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (memory != MAP_FAILED)
			munmap(memory, 1 << 20);
	}
	return nullptr;
}

static void pages()
{
	pthread_t ids[4];

	service::measured(RETURN, 0);
	for (auto &id : ids)
		pthread_create(&id, nullptr, map_and_unmap, nullptr);
	service::measured(PAGES, 0);
	__atomic_store_n(&mapping_enough, true, __ATOMIC_RELAXED);
	for (auto id : ids)
		pthread_join(id, nullptr);
}

static void threads()
{
	pthread_t ids[8];

	for (auto &id : ids)
		pthread_create(&id, nullptr, thread, nullptr);
	for (auto id : ids)
		pthread_join(id, nullptr);
}

/* The process's own window, from window_opens() to window_closes(). */
static void between()
{
	give(take(1));
	for (int i = 0; i < 3; i++) {
		window_opens();
		inside = 1;
		give(take(100));
		inside = 0;
		window_closes();
		give(take(200));
	}
}

/* The same by USDT probes: the region ends however it is left. */
static void marked()
{
	give(take(1));
	for (int i = 0; i < 4; i++) {
		try {
			ALLOCPROF_REGION("part");
			inside = 1;
			give(take(100));
			if (i & 1) {
				calls++;
				throw i;
			}
			inside = 0;
		} catch (int) {
			inside = 0;
		}
		give(take(200));
	}
	ALLOCPROF_BEGIN("plain");
	inside = 1;
	give(take(300));
	inside = 0;
	ALLOCPROF_END("plain");
}

/* Without the C library's buffer, which is allocated. */
static bool read_line()
{
	char c = 0;

	while (read(STDIN_FILENO, &c, 1) == 1)
		if (c == '\n')
			return true;
	return false;
}

/* It says itself what it allocates. */
static int later(const char *library)
{
#ifdef NO_DLOPEN
	(void)library;
	return 3;
#else
	void *handle = library ? dlopen(library, RTLD_NOW) : nullptr;
	auto call =
		handle ? reinterpret_cast<void (*)(int)>(dlsym(handle, "later_outside")) : nullptr;

	if (!call)
		return 3;
	call(7);
	calls = frees = 7;
	bytes = 7 * 40;
	return 0;
#endif
}

int main(int argc, char **argv)
{
	bool waits = argc > 2 && !strcmp(argv[2], "wait");
	const char *how = argc > 1 ? argv[1] : "return";
	static char buffer[BUFSIZ];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (waits) {
		puts("ready");
		fflush(stdout);
		read_line();
	}
	if (!strcmp(how, "return"))
		run(RETURN, 0);
	else if (!strcmp(how, "recurse"))
		run(RECURSE, 300);
	else if (!strcmp(how, "throw"))
		for (int i = 0; i < 50; i++)
			run(THROW, i % 4);
	else if (!strcmp(how, "jump"))
		for (int i = 0; i < 50; i++)
			run(JUMP, i % 4);
	else if (!strcmp(how, "threads"))
		threads();
	else if (!strcmp(how, "pages"))
		pages();
	else if (!strcmp(how, "between"))
		between();
	else if (!strcmp(how, "marked"))
		marked();
	else if (!strcmp(how, "later") && later(argv[2]))
		return 3;
	else if (!strcmp(how, "later"))
		;
	else if (!strcmp(how, "fork")) {
		run(RETURN, 2);
		window_opens();
		fflush(stdout);
		if (!fork()) {
			inside = 1;
			give(take(50));
			_exit(0);
		}
		wait(nullptr);
		inside = 1;
		give(take(60));
		calls++;
		bytes += 50;
		frees++;
	} else {
		return 2;
	}
	service::other(1);
	service::other("");
	if (argc > 100)
		never_called();
	printf("calls=%lu bytes=%lu frees=%lu\n", calls, bytes, frees);
	fflush(stdout);
	if (waits)
		read_line();
	return 0;
}
