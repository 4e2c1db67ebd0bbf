// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes over what the library that counts inside of it has in the shared memory, and allocates 100 bytes before. "pid",
 * "begin", "end": of its process; "frees": more of them than allocations; "lifetimes": 2^64 - 1 blocks of one. 77 if it
 * does not find that.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside_abi.h"

#define MEMORY_BYTES (256UL << 20)

static char *memory;

static int map_memory(void)
{
	char line[4096], path[4096] = "";
	FILE *maps = fopen("/proc/self/maps", "r");
	int fd;

	while (maps && fgets(line, sizeof(line), maps)) {
		char *start = strchr(line, '/');

		if (start && strstr(start, "/memory\n"))
			snprintf(path, sizeof(path), "%.*s", (int)strcspn(start, "\n"), start);
	}
	fd = open(path, O_RDWR);
	memory = fd < 0 ? MAP_FAILED
			: mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? -1 : 0;
}

static int forge_frees(const struct inside_thread *thread)
{
	struct inside_record *records = (void *)(memory + (thread->records & ~(__u64)INSIDE_SHIFT));
	struct ap_blocks blocks;

	for (size_t i = 0; i < 1UL << (thread->records & INSIDE_SHIFT); i++) {
		if (!records[i].record)
			continue;
		memcpy(&blocks, records[i].blocks, sizeof(records[i].blocks));
		blocks.frees = blocks.allocations + 5;
		memcpy(records[i].blocks, &blocks, sizeof(records[i].blocks));
		return 0;
	}
	return 77;
}

static int forge_lifetimes(const struct inside_thread *thread)
{
	struct inside_lifetime *lifetimes =
		(void *)(memory + (thread->lifetimes & ~(__u64)INSIDE_SHIFT));

	for (size_t i = 0; i < 1UL << (thread->lifetimes & INSIDE_SHIFT); i++) {
		if (!lifetimes[i].lifetime.blocks)
			continue;
		lifetimes[i].lifetime.blocks = -1ULL;
		return 0;
	}
	return 77;
}

int main(int argc, char **argv)
{
	const struct inside_header *header;
	const struct inside_thread *thread;
	struct inside_program *program;

	free(malloc(100));
	if (argc != 2 || map_memory())
		return 77;
	header = (void *)memory;
	program = (void *)(memory + header->programs.chunks[0]);
	thread = (void *)(memory + *(__u64 *)(memory + header->threads.chunks[0]));
	if (!strcmp(argv[1], "pid"))
		program->pid = 1U << 31;
	if (!strcmp(argv[1], "begin"))
		program->begin_ns = -1ULL;
	if (!strcmp(argv[1], "frees"))
		return forge_frees(thread);
	if (!strcmp(argv[1], "lifetimes"))
		return forge_lifetimes(thread);
	if (!strcmp(argv[1], "end")) {
		program->ended = INSIDE_EXITED;
		program->end_ns = -1ULL;
		_exit(0);
	}
	return 0;
}
