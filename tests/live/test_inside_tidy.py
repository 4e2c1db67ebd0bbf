# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that look at /proc/self/maps and give back, protect or replace what they find: the memory that their calls are
counted in is not theirs, and is still there."""

import pytest

MODES = ["stat", "record", "live"]

TIDY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 4096
struct range { unsigned long start, end; char flags[8], name[64]; };
static struct range before[MOST], now[MOST];
static int n_before, n_now;
static char text[1 << 20];

static int read_maps(struct range *to)
{
	int fd = open("/proc/self/maps", O_RDONLY), n = 0;
	long size = 0, got;

	while ((got = read(fd, text + size, sizeof(text) - 1 - size)) > 0) size += got;
	close(fd);
	text[size] = 0;
	for (char *line = text; *line && n < MOST; n++) {
		to[n].name[0] = 0;
		sscanf(line, "%lx-%lx %7s %*s %*s %*s %63[^\n]", &to[n].start, &to[n].end, to[n].flags, to[n].name);
		line = strchr(line, '\n') + 1;
	}
	return n;
}

static int is_new(const struct range *range)
{
	for (int i = 0; i < n_before; i++)
		if (range->start < before[i].end && before[i].start < range->end) return 0;
	return range->name[0] != '[';
}

static __attribute__((noinline)) void use(int depth)
{
	free(realloc(malloc(depth + 1), 5000));
	if (depth) use(depth - 1);
	__asm__ volatile("");
}

static void tidy(const char *how, struct range *range)
{
	void *at = (void *)range->start;
	size_t size = range->end - range->start;

	if (!strcmp(how, "munmap") && munmap(at, size)) perror(how);
	if (!strcmp(how, "syscall") && syscall(SYS_munmap, at, size)) perror(how);
	if (!strcmp(how, "mprotect") && mprotect(at, size, PROT_NONE)) perror(how);
	if (!strcmp(how, "remove")) madvise(at, size, MADV_REMOVE);
	if (!strcmp(how, "dontneed") && madvise(at, size, MADV_DONTNEED)) perror(how);
	if (!strcmp(how, "dontfork") && madvise(at, size, MADV_DONTFORK)) perror(how);
	if (!strcmp(how, "mremap")) mremap(at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(0x100000000000 + range->start % (1ul << 40)));
	if (!strcmp(how, "replace") && mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) perror(how);
}

int main(int argc, char **argv)
{
	n_before = read_maps(before);
	use(200);
	n_now = read_maps(now);
	for (int i = 0; i < n_now; i++)
		if (!strcmp(argv[2], "shared") ? now[i].flags[3] == 's' : is_new(&now[i])) tidy(argv[1], &now[i]);
	use(400);
	if (!fork()) { use(600); _exit(0); }
	int status; wait(&status);
	close_range(3, ~0u, 0);
	use(800);
	printf("child %d\n", status);
	return 7;
}
"""
CALLS = 201 + 401 + 601 + 801

WAYS = ["munmap", "syscall", "mprotect", "remove", "dontneed", "dontfork", "mremap"]


@pytest.mark.covering(2)
@pytest.mark.fast("stat-shared-munmap", "record-shared-mprotect", "live-new-munmap", "live-shared-remove", "live-new-dontneed",
                  "record-shared-syscall")
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("which", ["shared", "new"])
@pytest.mark.parametrize("mode", MODES)
def test_tidies_up(same, compiled, mode, which, how):
    """What the target does to mappings that it did not make, is done around those of the library."""
    bare, report = same(mode, [compiled(TIDY, name="tidy"), how, which])
    assert bare.status == 7 and bare.stdout == b"child 0\n", bare
    if mode == "stat":
        # And the buffer of stdio; frees have no stack.
        assert CALLS <= report["functions"]["malloc"]["calls"] <= CALLS + 1 and report["complete"], report
    else:
        assert report["lost"] == 0 and 2 * CALLS <= report["events"] <= 2 * CALLS + 1, report


@pytest.mark.fast("live")
@pytest.mark.parametrize("mode", MODES)
def test_memory_is_replaced(same, compiled, mode):
    """Where the target maps other memory over the library's, it gets that; what comes afterwards does not count, and the report
    says so."""
    tidy = compiled(TIDY, name="tidy")
    bare, report = same(mode, [tidy, "replace", "shared"])
    assert bare.status == 7 and bare.stdout == b"child 0\n", bare
    if mode != "stat":
        assert 2 * 201 <= report["events"] < 2 * CALLS, report
        return
    gap, = report["engine_gaps"]
    assert gap.startswith("1 process mapped other memory over") and not report["complete"], report
    assert 201 <= report["functions"]["malloc"]["calls"] < CALLS, report
