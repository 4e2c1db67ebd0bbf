// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Takes memory from the kernel and gives it back, in pages of 4096 bytes: beneath the function work(), and in a forked
 * process beneath forked():
 *
 *   work: mmap=7 mmap_bytes=2199023771648 mmap_failed=1 mmap_returned=0
 *     mremap=4 mremap_bytes=24576 mremap_failed=1 mremap_returned=8192
 *     brk=3 brk_bytes=196608 brk_failed=1 brk_returned=8192
 *     munmap=6 munmap_bytes=0 munmap_failed=0 munmap_returned=69632
 *   forked: mmap=1 mmap_bytes=8192 mmap_failed=0 mmap_returned=0
 *     mremap=0 mremap_bytes=0 mremap_failed=0 mremap_returned=0
 *     brk=0 brk_bytes=0 brk_failed=0 brk_returned=0
 *     munmap=1 munmap_bytes=0 munmap_failed=0 munmap_returned=8192
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* So that the call before it is no jump. */
#define STAY() __asm__ volatile("")

static char *map(size_t bytes, int flags)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

static void fail(const char *what)
{
	fprintf(stderr, "%s did not do what it should\n", what);
	exit(1);
}

__attribute__((noinline)) static void split(void)
{
	/* mmap: 10 pages; munmap: 1 in the middle, 1 at the beginning, 8 in what is left and a hole */
	char *at = map(10 * PAGE, MAP_PRIVATE);

	munmap(at + 4 * PAGE, PAGE);
	munmap(at, PAGE - 1);
	munmap(at + PAGE, 9 * PAGE);
}

__attribute__((noinline)) static void files(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	/* A file's mapping counts neither when it begins nor when it ends, nor when it shrinks. */
	char *at = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

	if (at == MAP_FAILED || mremap(at, 3 * PAGE, 2 * PAGE, 0) != at)
		fail("a file's mapping");
	munmap(at, 2 * PAGE);
	/* mmap: 2 pages of a file's four become anonymous; munmap: 2 of the four that end */
	at = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	mmap(at + PAGE, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
	munmap(at, 4 * PAGE);
	close(fd);
}

__attribute__((noinline)) static void shared(void)
{
	/* mmap: 1 page, which has no file either */
	char *at = map(PAGE, MAP_SHARED);

	munmap(at, PAGE);
}

__attribute__((noinline)) static void moving(void)
{
	/* mmap: 4 pages; mremap: 2 more, none more at another place, 2 less, and 4 more that do not fit there */
	char *at = map(4 * PAGE, MAP_PRIVATE), *place = map(8 * PAGE, MAP_PRIVATE);

	at = mremap(at, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	at = mremap(at, 6 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	if (at != place || mremap(at, 6 * PAGE, 4 * PAGE, 0) != at)
		fail("mremap");
	if (mremap(at, 4 * PAGE, 8 * PAGE, 0) != MAP_FAILED)
		fail("mremap into what is taken");
	/* munmap: 4 pages; the 2 behind the 6 stay, with 2 that were free in between */
	munmap(at, 4 * PAGE);
}

__attribute__((noinline)) static void failing(void)
{
	/* mmap: 2 TiB that may not be; brk: 1 EiB */
	if (syscall(SYS_mmap, NULL, 1UL << 41, PROT_WRITE | PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 1) != -1)
		fail("mmap");
	if ((uintptr_t)sbrk(1L << 60) != (uintptr_t)-1)
		fail("brk");
}

__attribute__((noinline)) static void heap(void)
{
	/* brk: 48 pages more, 2 less; none for the question where it ends */
	sbrk(48 * PAGE);
	sbrk(-2 * PAGE);
	sbrk(0);
}

__attribute__((noinline)) static void work(void)
{
	split();
	files();
	shared();
	moving();
	failing();
	heap();
	map(100 * PAGE + 1, MAP_PRIVATE | MAP_NORESERVE);
	STAY();
}

__attribute__((noinline)) static void forked(void)
{
	munmap(map(2 * PAGE, MAP_PRIVATE), 2 * PAGE);
	STAY();
}

int main(void)
{
	pid_t child;

	/* A program that takes memory and never calls malloc would be one whose allocator is not known. */
	free(malloc(1));
	work();
	child = fork();
	if (!child) {
		forked();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
