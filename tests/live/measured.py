# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that are measured from inside (--engine=inside -p): what is mapped there, and programs that are to notice nothing."""

import os
import pathlib
import signal
import subprocess

import pytest

from support import TIMEOUT_SECONDS, wait_until, wait_until_counting

MACHINE = os.uname().machine
# Of tests whose programs have an allocator of their own.
moves_references = pytest.mark.skipif(MACHINE == "aarch64", reason="what leads to an allocator of a program's own is not moved on arm64")
JEMALLOC = pathlib.Path(f"/usr/lib/{MACHINE}-linux-gnu/libjemalloc.a")
LIBRARY = "/memfd:allocprof-inside"
MEMORY = "/memfd:allocprof-"


def maps_of(pid):
    return pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()


def code_of(pid):
    """What the files' mappings that cannot be written hold, code and relocated words: (start, end, rights, path, bytes), without
    allocprof's own."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps_of(pid):
            addresses, rights, _, _, inode, *path = line.split(maxsplit=5)
            start, end = (int(address, 16) for address in addresses.split("-"))
            if inode == "0" or "w" in rights or line.split()[5].startswith(MEMORY):
                continue
            memory.seek(start)
            content = memory.read(end - start)
            # The kernel may split a mapping and join it again elsewhere.
            if found and (found[-1][1], *found[-1][2:4]) == (start, rights, path[0]):
                start, content = found[-1][0], found.pop()[4] + content
            found.append((start, end, rights, path[0], content))
    return found


def writable_of(pid):
    """Where the files' mappings are that can be written, without allocprof's own."""
    return [(line.split()[0], line.split()[1], line.split()[5]) for line in maps_of(pid)
            if line.split()[4] != "0" and line.split()[1][1] == "w" and not line.split()[5].startswith(MEMORY)]


# Bytes of a uprobe's instruction.
BREAKPOINT = {"x86_64": b"\xcc", "aarch64": b"\xa0\x00\x20\xd4"}[MACHINE]


def differences(after, before, is_killed):
    """Where mappings of code_of() differ: (path, address). Of breakpoints of a process that was killed the kernel may leave some ("failed to
    unregister, leaking uprobe"), each of which is gone when it has been hit."""
    if [mapping[:4] for mapping in after] != [mapping[:4] for mapping in before]:
        return [mapping[:4] for mapping in after if mapping[:4] not in [other[:4] for other in before]] or ["a mapping is missing"]
    found = []
    for one, other in zip(after, before):
        if one[4] != other[4]:
            found += [(one[3], hex(one[0] + i)) for i, (byte, old) in enumerate(zip(one[4], other[4]))
                      if byte != old and not (is_killed and byte in BREAKPOINT)]
    return found


def await_untouched(pid, before, is_killed=False):
    """@before: what code_of() has said. The kernel takes its time to remove probes."""
    try:
        wait_until(lambda: not differences(code_of(pid), before, is_killed), "it is as before")
    except AssertionError as error:
        raise AssertionError(f"{error}: {differences(code_of(pid), before, is_killed)[:10]}") from None


class Recorder:
    """allocprof with a command line that attaches, from when it counts to finish()."""

    def __init__(self, runner, argv):
        self.process = runner.start(argv, stderr=subprocess.PIPE)
        wait_until_counting(argv[0], self.process)

    def finish(self):
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=TIMEOUT_SECONDS)[1].decode()
        assert self.process.returncode == 0, said
        return said


class Measured(Recorder):
    """allocprof while it measures the process @pid."""

    def __init__(self, runner, allocprof, pid, output, *words, engine="inside"):
        self.output = output
        super().__init__(runner, [allocprof, *words, f"--engine={engine}", "-o", output, "-p", pid])


# Prints "ready"; its threads allocate until the end of the input and check what is in their blocks. The first one sleeps meanwhile, and
# its sleep must not end before its time.
CHECKING = r"""
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OWN_MALLOC
static char heap[1 << 26];
static size_t used;
void *malloc(size_t size) { return heap + __atomic_fetch_add(&used, (size + 31) & ~15UL, __ATOMIC_RELAXED) % (sizeof(heap) / 2); }
void free(void *block) { }
void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }
void *realloc(void *block, size_t size) { return block ? block : malloc(size); }
#endif

enum { THREADS = 6, BLOCKS = 16 };
static volatile int ends, errors;

static void *check(void *number)
{
	char mark = (char)(long)number, *blocks[BLOCKS];

	for (unsigned seed = mark; !ends; usleep(500)) {
		for (int i = 0; i < BLOCKS; i++) {
			size_t size = 20 + rand_r(&seed) % 300;
			blocks[i] = i % 3 ? malloc(size) : calloc(1, size);
			memset(blocks[i], mark, size);
			if (i % 5 == 0)
				blocks[i] = realloc(blocks[i], 2 * size);
		}
		for (int i = 0; i < BLOCKS; i++) {
			errors += blocks[i][0] != mark || blocks[i][19] != mark;
			free(blocks[i]);
		}
	}
	return NULL;
}

static void *nap(void *unused)
{
	while (!ends) {
		struct timespec before, after, length = { 0, 300000000 };
		clock_gettime(CLOCK_MONOTONIC, &before);
		if (nanosleep(&length, NULL))
			errors++;
		clock_gettime(CLOCK_MONOTONIC, &after);
		if ((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < 300000000)
			errors++;
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS + 1];
	char c;

#ifdef OWN_MALLOC
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		free(malloc(100));
	return 0;
#endif
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, check, (void *)(i + 1));
	pthread_create(&threads[THREADS], NULL, nap, NULL);
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	ends = 1;
	for (int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	return errors ? 3 : 0;
}
"""

# Has an allocator of its own that is reached in all ways: by a call, a jump at the end of a function and a conditional one, by its address in an instruction, in
# data that is constant and in data that is not, and by another library. A number below 0 has it called by an address on the stack.
ADDRESSES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char heap[1 << 20];
static size_t used;
static void *volatile last_freed;
__attribute__((noinline)) void *malloc(size_t size)
{
	void *block = heap + used % (sizeof(heap) / 2);
	used += (size + 31) & ~15UL;
	return block;
}
__attribute__((noinline)) void free(void *block)
{
	if (block && !((char *)block - heap & 7))
		last_freed = block;
}
__attribute__((noinline)) void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }
__attribute__((noinline)) void *realloc(void *block, size_t size) { return block ? block : malloc(size); }
static void *(*changing)(size_t) = malloc;
static void (*const constant[])(void *) = { free, free };
static void (*volatile last)(void *);
__attribute__((noinline, section(SECTION))) static void *jump(size_t size) { return malloc(size + 1); }
__attribute__((noinline, section(SECTION))) static void jump_if(void *block)
{
#ifdef __x86_64__
	__asm__ goto("test %0, %0\n\tjne free" : : "D"(block) : "memory" : out);
out:
	return;
#else
	free(block);
#endif
}
/* A loop would take the address once, before there is a stub. */
__attribute__((noinline)) static void (*address(void))(void *) { return free; }
int main(void)
{
	void (*volatile early)(void *) = free;
	char line[64];

	setbuf(stdin, NULL);
	setbuf(stdout, NULL);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; line[0] == '-' && i > atoi(line); i--)
			early(malloc(10));
		for (int i = 0; i < atoi(line); i++) {
			free(malloc(10));
			jump_if(jump(20));
			address()(changing(30));
			constant[i % 2](strdup("a text"));
			last = address();
			last(realloc(calloc(2, 5), 60));
		}
		puts("done");
	}
	return 0;
}
"""
FAR = '-DSECTION=".far"'

LATER = r"""
#include <stdlib.h>
void later(int n) { while (n--) { void *volatile block = malloc(40); free(block); } }
"""
