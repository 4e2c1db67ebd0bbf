// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Allocates where ld.so calls the program before main and after: an IFUNC's resolver, the preinit
 * array, constructors, destructors of threads and of the program; and in functions of truth_lib,
 * which ld.so binds at their first call. What it allocates is recorded by libtruth. Exit status 0.
 */
#include <pthread.h>
#include "raw.h"
#include "truth_lib.h"

DEFINE_SINK;

static __attribute__((noinline)) void allocate(size_t size)
{
	sink = malloc(size);
	free(sink);
	__asm__ volatile("" : : : "memory");
}

static void chosen(void)
{
	allocate(2001);
}

static __attribute__((used)) void (*choose(void))(void)
{
	allocate(2002);
	return chosen;
}

static void called(void) __attribute__((ifunc("choose")));

static void preinit(void)
{
	allocate(2003);
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(void) = preinit;

__attribute__((constructor(101))) static void first_constructor(void)
{
	allocate(2004);
}

__attribute__((constructor)) static void constructor(void)
{
	allocate(2005);
}

__attribute__((destructor)) static void destructor(void)
{
	allocate(2006);
}

int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *dso);
extern void *__dso_handle;

static void thread_ends(void *unused)
{
	allocate(2007);
}

static void *work(void *unused)
{
	pthread_key_t key;

	pthread_key_create(&key, thread_ends);
	pthread_setspecific(key, &key);
	__cxa_thread_atexit_impl(thread_ends, NULL, &__dso_handle);
	allocate(2008);
	return NULL;
}

static void called_back(void)
{
	allocate(2009);
}

int main(void)
{
	pthread_t thread;

	called();
	for (int i = 0; i < 2; i++) {
		truth_lib_call(called_back);
		truth_lib_chosen(2010);
	}
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	say("done\n");
	return 0;
}
