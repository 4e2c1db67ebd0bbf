// SPDX-License-Identifier: GPL-3.0-or-later
/* /proc/PID/maps, and mappings, forks, execs and exits in any order. The linker puts the function below in the place of
 * fopen(3). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "process_maps.h"

#define PIDS 5

static FILE *lines; /* that the next fopen(3) gives */

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	FILE *file = lines;

	lines = NULL;
	return file ? file : __real_fopen64(path, mode);
}

static void take(const struct code_mapping *mapping, void *context)
{
	FUZZ_CHECK(mapping->path);
	fuzz__read_text(mapping->path);
}

static void scan(struct process_maps *maps, const uint8_t *data, size_t size)
{
	lines = fmemopen((void *)data, size, "r");
	FUZZ_CHECK(lines);
	process_maps__scan(maps, 1);
	process_maps__for_each(maps, 1, UINT64_MAX, take, NULL);
	process_maps__version(maps, 1, UINT64_MAX);
}

/* Eight bytes say what happens, when, and to which process. */
static void happen(struct process_maps *maps, const uint8_t *bytes, __u64 *now_ns)
{
	char path[] = { '/', 'a' + bytes[5] % PIDS, '\0' };
	__u32 pid = 1 + bytes[1] % PIDS, other = 1 + bytes[5] % PIDS;
	struct code_mapping mapping = {
		.start = (__u64)bytes[4] << 12,
		.end = (__u64)(bytes[4] + bytes[6]) << 12,
		.offset = (__u64)bytes[7] << 12,
		.identity = { .inode = bytes[5] % PIDS },
		.path = bytes[0] & 0x80 ? NULL : path,
	};

	*now_ns += bytes[2] & 0x80 ? (__u64)(bytes[2] & 0x7f) << 22 : bytes[2];
	mapping.time_ns = *now_ns - (bytes[3] < *now_ns ? bytes[3] : 0);
	switch (bytes[0] % 8) {
	case 0:
		process_maps__exec(maps, pid, mapping.time_ns);
		break;
	case 1:
		process_maps__fork(maps, pid, other, mapping.time_ns);
		break;
	case 2:
		process_maps__forget(maps, pid, bytes[3] & 1 ? UINT64_MAX : mapping.time_ns);
		break;
	case 3:
		process_maps__settle(maps, mapping.time_ns);
		break;
	case 4:
		process_maps__find(maps, pid, mapping.start, mapping.time_ns);
		process_maps__find_lasting(maps, pid, mapping.start);
		process_maps__for_each(maps, pid, mapping.time_ns, take, NULL);
		break;
	default:
		process_maps__add(maps, pid, &mapping);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct process_maps *maps = process_maps__new();
	__u64 now_ns = 1;

	FUZZ_CHECK(maps);
	if (size > 1 && data[0] < 0x80)
		scan(maps, data, size);
	else
		for (; size >= 8; data += 8, size -= 8)
			happen(maps, data, &now_ns);
	process_maps__free(maps);
	return 0;
}
