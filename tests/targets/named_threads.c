// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * named_threads N NAME: N threads, one after the other; thread I is called NAME, in which %d is I. Each calls malloc and free 20
 * times, and each hundredth leaves a block of 101 bytes. Prints the kilobytes of memory that the process has when a tenth of them
 * have ended, and when all have.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS	    20
#define LEAVES	    100
#define LEAVE_BYTES 101

static const char *name_format;

static __attribute__((noinline)) void *request(size_t size)
{
	void *volatile block = malloc(size);

	return block;
}

static void *work(void *number)
{
	long i = (long)number;
	char name[16];

	snprintf(name, sizeof(name), name_format, (int)i);
	pthread_setname_np(pthread_self(), name);
	for (int k = 1; k <= CALLS; k++)
		free(request(100 * k));
	if (i % LEAVES == 0)
		request(LEAVE_BYTES);
	return NULL;
}

static long resident_kb(void)
{
	static char text[4096];
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	setvbuf(file, text, _IOFBF, sizeof(text));
	fscanf(file, "%*d %ld", &pages);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[1]) : 0;

	name_format = argv[2];
	for (long i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, (void *)i))
			return 1;
		pthread_join(thread, NULL);
		if (i == n / 10 || i == n - 1)
			printf("%ld\n", resident_kb());
	}
	return 0;
}
