// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Takes page faults of many kinds, each beneath a function of its own, and says how many the kernel has counted there.
 *
 *   faults                 prints "NAME=NUMBER" for each kind
 *   faults wait            prints "ready", does so for each line that it reads, and prints "done" then
 *   faults measure WORDS   runs the command WORDS, and prints of the program that it was forked from and of the command, with
 *                          all processes that it has waited for, "forked PID" and "measured MINOR MAJOR"
 *
 *   lazily     writes to 1000 pages of an array that was never touched
 *   copied     a forked child writes to 300 pages of the same array
 *   mapped     reads each page of the program's own file
 *   shared     writes to 100 pages of shared memory
 *   huge       writes to each page of 4 MiB for which huge pages are wanted
 *   handed     the kernel writes to 64 untouched pages, for read(2)
 *   threaded   4 threads write to 50 pages each
 *   filled     maps 200 pages with MAP_POPULATE
 *   locked     locks 30 untouched pages with mlock(2)
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "raw.h"

#define PAGE	 4096UL
#define N_LAZY	 1000
#define N_THREAD 50

static char *array;

static char *map(unsigned long pages, int flags)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(101);
	/* So that each page is one fault. */
	if (!(flags & MAP_POPULATE))
		madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
	return at;
}

static void write_to(char *at, unsigned long pages)
{
	for (unsigned long i = 0; i < pages; i++)
		((volatile char *)at)[i * PAGE] = 1;
}

static unsigned long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

__attribute__((noinline)) static void lazily(void)
{
	write_to(array, N_LAZY);
	__asm__ volatile("");
}

__attribute__((noinline)) static void copied(void)
{
	write_to(array, 300);
	__asm__ volatile("");
}

__attribute__((noinline)) static void mapped(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	off_t bytes = lseek(fd, 0, SEEK_END);
	char *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	for (off_t i = 0; i < bytes; i += PAGE)
		(void)((volatile char *)at)[i];
	munmap(at, bytes);
	close(fd);
}

__attribute__((noinline)) static void shared(void)
{
	write_to(map(100, MAP_SHARED), 100);
	__asm__ volatile("");
}

__attribute__((noinline)) static void huge(void)
{
	char *at = map(1024, MAP_PRIVATE);

	madvise(at, 1024 * PAGE, MADV_HUGEPAGE);
	write_to(at, 1024);
}

__attribute__((noinline)) static void handed(void)
{
	char *at = map(64, MAP_PRIVATE);
	int fd = open("/dev/zero", O_RDONLY);

	read(fd, at, 64 * PAGE);
	close(fd);
}

static void *work(void *at)
{
	write_to(at, N_THREAD);
	return NULL;
}

__attribute__((noinline)) static void threaded(void)
{
	pthread_t threads[4];
	char *at = map(4 * N_THREAD, MAP_PRIVATE);

	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, work, at + i * N_THREAD * PAGE))
			_exit(102);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

__attribute__((noinline)) static void filled(void)
{
	map(200, MAP_PRIVATE | MAP_POPULATE);
	__asm__ volatile("");
}

__attribute__((noinline)) static void locked(void)
{
	char *at = map(30, MAP_PRIVATE);

	mlock(at, 30 * PAGE);
	munlock(at, 30 * PAGE);
}

/* What the functions below touch has been touched before the first of them counts. */
static void take(const char *name, void (*kind)(void))
{
	unsigned long before = faults();

	kind();
	say_number(name, faults() - before, "\n");
}

static void take_all(void)
{
	int status;

	array = map(N_LAZY, MAP_PRIVATE);
	say_number("", faults() && faults(), "\n");
	take("lazily=", lazily);
	if (!fork()) {
		faults();
		take("copied=", copied);
		_exit(0);
	}
	wait(&status);
	take("mapped=", mapped);
	take("shared=", shared);
	take("huge=", huge);
	take("handed=", handed);
	take("threaded=", threaded);
	take("filled=", filled);
	take("locked=", locked);
	munmap(array, N_LAZY * PAGE);
}

static int measure(char **argv)
{
	struct rusage usage;
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 103;
	say_number("forked ", getpid(), "\n");
	say_number("measured ", usage.ru_minflt, " ");
	say_number("", usage.ru_majflt, "\n");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 104;
}

int main(int argc, char **argv)
{
	char line[16];

	if (argc > 2 && !strcmp(argv[1], "measure"))
		return measure(argv + 2);
	if (argc == 1) {
		take_all();
		return 0;
	}
	say("ready\n");
	while (read_line(line, sizeof(line))) {
		take_all();
		say("done\n");
	}
	return 0;
}
