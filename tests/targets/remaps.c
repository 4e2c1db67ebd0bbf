// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Four threads allocate 40,000 times each, malloc(1) to malloc(100), while four others map memory all the time,
 * so that the lock of the process's mappings is rarely free, and one loads libm and libz and closes them, so that
 * its code is another each time. The dynamic linker allocates, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MAPPERS	   4
#define ALLOCATORS 4
#define CALLS	   40000
#define MAP_BYTES  (1 << 20)

static bool done;

static bool goes_on(void)
{
	return !__atomic_load_n(&done, __ATOMIC_RELAXED);
}

static void *map(void *unused)
{
	while (goes_on()) {
		char *memory = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			abort();
		for (int i = 0; i < MAP_BYTES / 4096; i += 4)
			memory[i * 4096] = 1;
		mprotect(memory, 4096, PROT_READ);
		munmap(memory, MAP_BYTES);
	}
	return unused;
}

static void *load(void *unused)
{
	static const char *const names[] = { "libm.so.6", "libz.so.1" };

	for (int i = 0; goes_on(); i ^= 1) {
		void *library = dlopen(names[i], RTLD_NOW);

		if (!library)
			abort();
		dlclose(library);
	}
	return unused;
}

static void *allocate(void *unused)
{
	for (int i = 0; i < CALLS; i++) {
		char *volatile block = malloc(i % 100 + 1);

		*block = 1;
		free(block);
	}
	return unused;
}

int main(void)
{
	pthread_t mappers[MAPPERS], allocators[ALLOCATORS], loader;

	for (int i = 0; i < MAPPERS; i++)
		pthread_create(&mappers[i], NULL, map, NULL);
	pthread_create(&loader, NULL, load, NULL);
	for (int i = 0; i < ALLOCATORS; i++)
		pthread_create(&allocators[i], NULL, allocate, NULL);
	for (int i = 0; i < ALLOCATORS; i++)
		pthread_join(allocators[i], NULL);
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (int i = 0; i < MAPPERS; i++)
		pthread_join(mappers[i], NULL);
	pthread_join(loader, NULL);
	return 0;
}
