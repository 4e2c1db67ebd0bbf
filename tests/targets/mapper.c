// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Maps, unmaps, replaces, moves, grows, shrinks, protects and gives back random ranges of pages, and says which pages
 * are whose:
 *
 *   mapper SEED CALLS [THREADS [FORKS]]
 *
 * Each thread has REGION_PAGES pages of its own. With FORKS 1 a child is forked when half of the calls are made, and
 * does the other half, too, on its copies. Each process prints at its end, in one write:
 *
 *   own PID BEGIN END FUNCTION   pages of the region that a call beneath FUNCTION has mapped; of a child those of
 *                                its own calls
 *   maps PID LINE                a line of its /proc/self/maps
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	     4096UL
#define REGION_PAGES 2048
#define MOST_THREADS 8

#define STAY() __asm__ volatile("")

enum owner {
	NOBODY,
	RESERVED,
	PRIVATE,
	SHARED,
	STACK,
	EXECUTABLE,
	GROWN,
	DUPLICATED,
	INHERITED,
	OWNERS
};

static const char *const names[OWNERS] = {
	[RESERVED] = "map_region",	 [PRIVATE] = "map_private", [SHARED] = "map_shared",
	[STACK] = "map_stack",		 [GROWN] = "grow",	    [DUPLICATED] = "duplicate",
	[EXECUTABLE] = "map_executable",
};

struct region {
	char *begin;
	uint64_t random;
	unsigned char owners[REGION_PAGES];
};

static struct region regions[MOST_THREADS];
static int n_regions = 1, file_fd;
static long n_calls;

static uint32_t next(struct region *region, uint32_t below)
{
	region->random = region->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (region->random >> 33) % below;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

#define MAPS(name, flags, protection, file)                                                        \
	__attribute__((noinline)) static void name(char *at, size_t bytes)                         \
	{                                                                                          \
		if (mmap(at, bytes, protection, (flags) | MAP_FIXED, file, 0) != at)               \
			fail(#name);                                                               \
		STAY();                                                                            \
	}

MAPS(map_private, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, -1)
MAPS(map_shared, MAP_SHARED | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, -1)
MAPS(map_stack, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, PROT_READ | PROT_WRITE, -1)
MAPS(map_executable, MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_EXEC, -1)
MAPS(map_file, MAP_PRIVATE, PROT_READ, file_fd)

__attribute__((noinline)) static char *map_region(void)
{
	char *at = mmap(NULL, REGION_PAGES * PAGE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		fail("map_region");
	STAY();
	return at;
}

__attribute__((noinline)) static int grow(char *from, size_t before, char *to, size_t after)
{
	char *got = mremap(from, before, after, MREMAP_MAYMOVE | MREMAP_FIXED, to);

	STAY();
	return got == to;
}

__attribute__((noinline)) static int shrink(char *from, size_t before, size_t after)
{
	char *got = mremap(from, before, after, 0);

	STAY();
	return got == from;
}

__attribute__((noinline)) static int duplicate(char *from, size_t bytes, char *to)
{
	char *got =
		mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);

	STAY();
	return got == to;
}

static void set_owner(struct region *region, size_t first, size_t n, enum owner owner)
{
	memset(region->owners + first, owner, n);
}

/* A call that failed may have unmapped where it was to move to, and then all of it. */
static void look_at(struct region *region, size_t first, size_t n)
{
	unsigned char resident;

	for (size_t i = first; i < first + n; i++)
		if (!mincore(region->begin + i * PAGE, PAGE, &resident))
			return;
	set_owner(region, first, n, NOBODY);
}

static void move(struct region *region)
{
	size_t n = 1 + next(region, 24), more = next(region, 48),
	       first = next(region, REGION_PAGES / 2 - 48);
	size_t to = REGION_PAGES / 2 + next(region, REGION_PAGES / 2 - 48);
	unsigned char kept[48] = { 0 };
	char *source = region->begin + first * PAGE, *target = region->begin + to * PAGE;

	if (next(region, 2)) {
		size_t other = first;
		char *place = source;

		first = to, to = other;
		source = target, target = place;
	}
	if (!more)
		more = 1;
	/* From Linux 6.17 on a call that changes no size may move several mappings. What is at the new
	 * place of the gaps between them stays, which is not followed (docs/mappings.md). */
	if (more == n)
		more++;
	memcpy(kept, region->owners + first, n);
	if (next(region, 4) == 0) {
		n = 1;
		if (duplicate(source, n * PAGE, target))
			set_owner(region, to, n, kept[0] == NOBODY ? NOBODY : DUPLICATED);
		else
			look_at(region, to, n);
		return;
	}
	/* Before Linux 6.17 a call that is to shrink a mapping and move it may unmap its end and fail. */
	if (more < n) {
		if (shrink(source, n * PAGE, more * PAGE))
			set_owner(region, first + more, n - more, NOBODY);
		return;
	}
	if (!grow(source, n * PAGE, target, more * PAGE)) {
		look_at(region, to, more);
		return;
	}
	set_owner(region, first, n, NOBODY);
	for (size_t i = 0; i < more; i++) {
		/* A file's mapping, which has no owner, stays one when it grows. */
		enum owner grown = kept[0] == NOBODY ? NOBODY : GROWN;

		region->owners[to + i] = i < n ? kept[i] : grown;
	}
}

static void step(struct region *region)
{
	size_t n = 1 + next(region, 32), first = next(region, REGION_PAGES - 32);
	char *at = region->begin + first * PAGE;
	static const int protections[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE };

	switch (next(region, 12)) {
	case 0:
		map_private(at, n * PAGE);
		set_owner(region, first, n, PRIVATE);
		break;
	case 1:
		map_shared(at, n * PAGE);
		set_owner(region, first, n, SHARED);
		break;
	case 2:
		map_stack(at, n * PAGE);
		set_owner(region, first, n, STACK);
		break;
	case 3:
		map_executable(at, n * PAGE);
		set_owner(region, first, n, EXECUTABLE);
		break;
	case 4:
		map_file(at, n * PAGE);
		set_owner(region, first, n, NOBODY);
		break;
	case 5:
	case 6:
	case 7:
		if (munmap(at, n * PAGE - next(region, PAGE)))
			fail("munmap");
		set_owner(region, first, n, NOBODY);
		break;
	case 8:
		mprotect(at, n * PAGE, protections[next(region, 3)]);
		break;
	case 9:
		madvise(at, n * PAGE, next(region, 2) ? MADV_DONTNEED : MADV_FREE);
		break;
	default:
		move(region);
	}
}

static void *work(void *argument)
{
	for (long i = 0; i < n_calls / 2; i++)
		step(argument);
	return NULL;
}

static void work_in_threads(void)
{
	pthread_t threads[MOST_THREADS];

	for (int i = 1; i < n_regions; i++)
		if (pthread_create(&threads[i], NULL, work, &regions[i]))
			fail("pthread_create");
	work(&regions[0]);
	for (int i = 1; i < n_regions; i++)
		pthread_join(threads[i], NULL);
}

static char text[4 << 20], maps[4 << 20];
static size_t length;

/* Prints without a call that may map memory. */
static void say_owners(void)
{
	for (int r = 0; r < n_regions; r++) {
		const struct region *region = &regions[r];

		for (size_t i = 0, until; i < REGION_PAGES; i = until) {
			for (until = i;
			     until < REGION_PAGES && region->owners[until] == region->owners[i];)
				until++;
			if (names[region->owners[i]])
				length += snprintf(text + length, sizeof(text) - length,
						   "own %d %lx %lx %s\n", getpid(),
						   (unsigned long)region->begin + i * PAGE,
						   (unsigned long)region->begin + until * PAGE,
						   names[region->owners[i]]);
		}
	}
}

static void say(void)
{
	int fd;
	ssize_t n;
	size_t size = 0;

	say_owners();
	fd = open("/proc/self/maps", O_RDONLY);
	while ((n = read(fd, maps + size, sizeof(maps) - 1 - size)) > 0)
		size += n;
	for (char *at = maps, *end; (end = strchr(at, '\n')); at = end + 1)
		length += snprintf(text + length, sizeof(text) - length, "maps %d %.*s\n", getpid(),
				   (int)(end - at), at);
	if (write(1, text, length) != (ssize_t)length)
		_exit(1);
}

int main(int argc, char **argv)
{
	pid_t child = -1;

	if (argc < 3)
		return 1;
	/* A program that takes memory and never calls malloc would be one whose allocator is not known. */
	free(malloc(1));
	file_fd = open("/proc/self/exe", O_RDONLY);
	n_calls = atol(argv[2]);
	if (argc > 3)
		n_regions = atoi(argv[3]);
	for (int i = 0; i < n_regions; i++) {
		regions[i].begin = map_region();
		regions[i].random = strtoull(argv[1], NULL, 10) * MOST_THREADS + i;
		set_owner(&regions[i], 0, REGION_PAGES, RESERVED);
	}
	work_in_threads();
	if (argc > 4) {
		child = fork();
		/* What was its parent's is not its own. */
		for (int i = 0; i < n_regions && !child; i++)
			for (int j = 0; j < REGION_PAGES; j++)
				if (regions[i].owners[j])
					regions[i].owners[j] = INHERITED;
	}
	work_in_threads();
	if (child > 0)
		waitpid(child, NULL, 0);
	say();
	_exit(0);
}
