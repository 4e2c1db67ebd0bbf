# SPDX-License-Identifier: GPL-3.0-or-later
"""A running process that is measured from inside (--engine=inside -p): the library is mapped into it and left again."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import time

import pytest

import support
from conftest import WITHOUT_PRIVILEGES
from measured import ADDRESSES, CHECKING, FAR, JEMALLOC, LATER, LIBRARY, MEMORY, await_untouched, code_of, maps_of, moves_references
from support import TIMEOUT_SECONDS, Obedient, read_report, states_of, stop, unavailable, wait_until, wait_until_counting


@pytest.fixture
def engine():
    """Each case names its own."""


def rows(path):
    """Calls by stack and what became of the blocks, and what the ledger says of frees, whatever the engine."""
    with contextlib.closing(sqlite3.connect(path)) as data:
        calls = sorted(data.execute("SELECT function, sum(calls), sum(bytes), thread, end, frames FROM calls GROUP BY function, thread, end, frames"))
        memory = sorted(data.execute("SELECT function, sum(allocations), sum(bytes), sum(frees), sum(freed_bytes), sum(temporary), sum(live), "
                                     "frames FROM memory GROUP BY function, frames"))
        return calls, memory, dict(data.execute("SELECT name, value FROM ledger"))


@pytest.mark.parametrize("engine_name", ["inside", "preload"])
def test_counts(measure, runner, target, engine_name):
    """Exactly what the process does while it is measured; the engine has two names."""
    process = Obedient(runner, [target("sleeper")])
    process.ask("alloc 10")
    measured = measure(process, "stat", "--json", engine=engine_name)
    process.ask("alloc 1000")
    process.ask("keep 7")
    measured.finish()
    process.ask("alloc 10")
    report = read_report(measured.output)
    functions = report["functions"]
    assert functions["malloc"]["calls"] == 1007 and functions["free"]["calls"] == 1000, functions
    assert functions["malloc"]["bytes"] == 1000 * 32 + 7 * 48 and report["complete"] is True
    process.exit()


@pytest.mark.parametrize("engine_name", ["inside", "uprobe"])
def test_end_that_nobody_waits_for(measure, runner, target, engine_name):
    """A process that has ended is left, though its parent never asks for its exit status, as PID 1 of a container may not."""
    process = Obedient(runner, [target("sleeper")])
    measured = measure(process, "record", engine=engine_name)
    process.ask("alloc 100")
    process.process.stdin.close()
    said = measured.process.communicate(timeout=TIMEOUT_SECONDS)[1].decode()
    with open(f"/proc/{process.pid}/stat") as stat:
        assert stat.read().rpartition(")")[2].split()[0] == "Z"
    assert measured.process.returncode == 0 and "not complete" not in said, said
    recording = support.Recording(measured.output)
    assert not recording.gaps and recording.ledger["events"] >= 100
    process.process.wait(TIMEOUT_SECONDS)


def test_stacks_and_blocks_of_both_engines(measure, runner, target):
    process = Obedient(runner, [target("sleeper")])
    process.ask("keep 5")
    data = {}
    for engine in ("inside", "uprobe"):
        measured = measure(process, "record", "--live", engine=engine)
        process.ask("alloc 300")
        process.ask("keep 4")
        process.ask("release 6")
        process.ask("keep 2")
        said = measured.finish()
        assert f"process {process.pid} goes on" in said and "not complete" not in said, said
        data[engine] = rows(measured.output)
    assert data["inside"] == data["uprobe"] and data["inside"][1], data
    process.exit()


def end_of_segments(elf):
    """Where the last PT_LOAD ends in the file."""
    first, = struct.unpack_from("<Q", elf, 32)
    size, number = struct.unpack_from("<HH", elf, 54)
    headers = [struct.unpack_from("<IIQQQQ", elf, first + i * size) for i in range(number)]
    return max(offset + length for kind, _, offset, _, _, length in headers if kind == 1)


def test_what_is_left(measure, runner, target):
    """The named mapping of the library's code and data, and nothing else: no descriptor, no other mapping, no word."""
    process = Obedient(runner, [target("sleeper")])
    process.ask("alloc 10")
    maps, descriptors = maps_of(process.pid), os.listdir(f"/proc/{process.pid}/fd")
    for words in (["stat"], ["record"], ["record", "--live"], ["record", "--events"]):
        measured = measure(process, *words)
        assert any(line.endswith("allocprof-memory (deleted)") for line in maps_of(process.pid))
        process.ask("alloc 100")
        measured.finish()
        left = [line for line in maps_of(process.pid) if MEMORY in line]
        assert left and all(LIBRARY in line for line in left), left
        assert os.listdir(f"/proc/{process.pid}/fd") == descriptors
    # What is behind the segments in the file would be in the last page of the library's data else.
    for line in left if os.geteuid() == 0 else []:
        start, end = (int(address, 16) for address in line.split()[0].split("-"))
        copy = pathlib.Path(f"/proc/{process.pid}/map_files/{start:x}-{end:x}").read_bytes()
        assert len(copy) == end_of_segments(copy), line
    added = {line.split()[0] for line in maps_of(process.pid)} - {line.split()[0] for line in maps}
    # The library, its data, and what the kernel joins with it.
    assert len(added) <= 8, added
    process.ask("alloc 100")
    process.exit()


@pytest.mark.parametrize("words", [["stat"], ["record"], ["record", "--live"], ["record", "--live", "--sample", "64K"],
                                   ["record", "--events", "--throttle"]], ids=" ".join)
def test_again_and_again(run, allocprof, runner, compiled, tmp_path, words):
    """Threads that check their blocks, while a recording follows the other."""
    process = Obedient(runner, [compiled(CHECKING, "-pthread", name="checking")])
    for _ in range(10):
        done = run([allocprof, *words, "--engine=inside", "--duration", "20ms", "-o", tmp_path / "out", "-p", process.pid], expect=0)
        assert b"not complete" not in done.stderr, done.stderr
    assert not states_of(process.pid) & set("tT")
    process.exit()


def test_name_of_the_engine(run, allocprof, runner, target, tmp_path):
    """By either name it is called preload in what comes out."""
    process = Obedient(runner, [target("sleeper")])
    for name in "inside", "preload":
        run([allocprof, "record", f"--engine={name}", "--duration", "20ms", "-o", tmp_path / name, "-p", process.pid], expect=0)
        assert support.Recording(tmp_path / name).meta["engine"] == "preload"
        head = run([allocprof, "report", "-i", tmp_path / name], expect=0).stdout.decode().partition("\n")[0]
        assert head.endswith(", engine preload"), head
    process.exit()


def test_killed_at_any_moment(run, allocprof, runner, compiled, tmp_path):
    """What is killed is left by its guard, or by the next allocprof; no thread stays stopped, no sleep is cut short."""
    process = Obedient(runner, [compiled(CHECKING, "-pthread", name="checking")])
    for number in range(20):
        recorder = runner.start([allocprof, "record", "-q", "--live", "--engine=inside", "-o", tmp_path / "out", "-p", process.pid],
                                stderr=subprocess.DEVNULL)
        time.sleep(random.Random(number).random() * 0.5)
        recorder.kill()
        recorder.wait()
    support.wait_until(lambda: not states_of(process.pid) & set("tT"), "no thread is stopped")
    # A thread that was to return by itself may have left what looks as if it was within the library.
    done = run([allocprof, "stat", "--engine=inside", "--duration", "50ms", "-p", process.pid])
    assert done.status in (0, 125) and (done.status == 0 or b"whenever allocprof looked" in done.stderr), done
    process.exit()


# Keeps values in vector registers while it counts down, and finds them there again.
REGISTERS = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile int ends;
static void end(int signal) { ends = 1; }
int main(void)
{
	unsigned char before[16][16], after[16][16];
	void *volatile block = malloc(10);
	int wrong = 0;
	signal(SIGTERM, end);
	for (int i = 0; i < sizeof(before); i++) before[0][i] = i + 1;
	puts("ready");
	fflush(stdout);
	while (!ends) {
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#ifdef __x86_64__
#define SET(N) "movdqu " #N "*16(%0), %%xmm" #N "\n"
#define GET(N) "movdqu %%xmm" #N ", " #N "*16(%1)\n"
#define USED(N) , "xmm" #N
		__asm__ volatile(EACH(SET) "mov $1000000, %%ecx\n1: dec %%ecx\njnz 1b\n" EACH(GET)
				 :: "r"(before), "r"(after) : "ecx", "memory" EACH(USED));
#else
#define SET(N) "ldr q" #N ", [%0, " #N "*16]\n"
#define GET(N) "str q" #N ", [%1, " #N "*16]\n"
#define USED(N) , "v" #N
		__asm__ volatile(EACH(SET) "mov w9, 1000\nlsl w9, w9, 10\n1: subs w9, w9, 1\nb.ne 1b\n" EACH(GET)
				 :: "r"(before), "r"(after) : "w9", "cc", "memory" EACH(USED));
#endif
		for (int i = 0; i < 16; i++)
			if (memcmp(before[i], after[i], 16))
				wrong |= 1 << i;
	}
	printf("%x\n", wrong);
	return 0;
}
"""


@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
def test_vector_registers(run, allocprof, runner, compiled, tmp_path, killed):
    """Code that calls nothing may have something in any register when it is interrupted."""
    process = runner.start([compiled(REGISTERS)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    words = [allocprof, "record", "-q", "--live", "--engine=inside", "-o", tmp_path / "out", "-p", process.pid]
    for number in range(10):
        if killed:
            recorder = runner.start(words, stderr=subprocess.DEVNULL)
            time.sleep(0.02 * number)
            recorder.kill()
            recorder.wait()
        else:
            run([*words, "--duration", "20ms"], expect=0)
    support.wait_until(lambda: not states_of(process.pid) & set("tT"), "no thread is stopped")
    process.terminate()
    assert process.communicate(timeout=TIMEOUT_SECONDS)[0] == b"0\n"


def test_library_that_is_loaded_later(measure, runner, compiled, tmp_path):
    """Its calls come to the library as well, by its own dlopen(3)."""
    library = compiled(LATER, "-shared", "-fPIC", name="later.so")
    process = Obedient(runner, [compiled(LOADING, "-ldl", name="loading"), library])
    measured = measure(process, "stat", "--json")
    process.ask("load 100")
    measured.finish()
    report = read_report(measured.output)
    assert report["functions"]["malloc"]["calls"] >= 100 and report["functions"]["free"]["calls"] >= 100
    assert report["complete"] is True
    process.exit()


def test_function_that_comes_later(measure, runner, compiled):
    """One whose first definition comes with the library is counted by its own name."""
    library = compiled(FREE_SIZED, "-shared", "-fPIC", "-Wl,-z,now", name="later.so")
    process = Obedient(runner, [compiled(LOADING, "-ldl", name="loading"), library])
    measured = measure(process, "stat", "--json")
    process.ask("load 100")
    measured.finish()
    report = read_report(measured.output)
    assert report["functions"]["free_sized"]["calls"] == 100, report["functions"]
    assert report["complete"] is True
    process.exit()


def test_confined_process(measure, runner, compiled):
    """A filter of system calls is lifted for what the library does while the threads are stopped, and then obeyed."""
    process = Obedient(runner, [compiled(CONFINED, name="confined")])
    measured = measure(process, "record")
    process.ask("alloc 100")
    measured.finish()
    process.exit()


# Has a filter that allows all, and threads that begin and end all the time.
CONFINED_THREADS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
static void *allocate(void *context)
{
	void *volatile block = malloc(100);

	free(block);
	return context;
}
static void *begin_threads(void *context)
{
	for (pthread_t thread; !pthread_create(&thread, NULL, allocate, NULL); pthread_join(thread, NULL))
		;
	return context;
}
int main(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, code };
	pthread_t thread;
	char line[64];

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 4;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL, begin_threads, NULL);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
"""


def test_threads_that_end_have_no_other_filters(run, allocprof, runner, compiled):
    """The status of a thread that has just ended shows no filter. Taken for another one, that refuses every third measurement."""
    process = Obedient(runner, [compiled(CONFINED_THREADS, "-pthread", name="confined_threads")])
    for _ in range(10):
        run([allocprof, "stat", "--engine=inside", "--duration", "10ms", "-p", process.pid], expect=0)
    process.exit()


# An allocator with a prefix, as a program in Rust has it, which only the program's own code calls.
HIDDEN = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) void *_rjem_malloc(size_t size) { static char room[4096]; static size_t at; return room + (at += size) % 4000; }
__attribute__((noinline)) void _rjem_free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
int main(int argc, char **argv)
{
	char line[64];

	setbuf(stdin, NULL);
	setbuf(stdout, NULL);
	puts("ready");
	do
		_rjem_free(_rjem_malloc(10));
	while (fgets(line, sizeof(line), stdin) && puts("done"));
	free(malloc(10));
	return 0;
}
"""
STRICT = r"""
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	char c;

	free(malloc(10));
	write(1, "ready\n", 6);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	while (read(0, &c, 1) > 0)
		;
	return syscall(SYS_exit, 0);
}
"""
REFUSED = {
    "static": (CHECKING, ["-static"], "the program is linked statically, with a malloc of its own"),
    "musl": (CHECKING, [], "it has no C library"),
    "strict": (STRICT, [], "its threads have forbidden themselves"),
    # Here the number in an instruction may be an address, or no address.
    "fixed": (ADDRESSES, [FAR, "-O1", "-no-pie", "-fno-pie"], "the program has a malloc of its own, and it cannot be told what leads to it"),
    # A jump of two bytes cannot lead as far as the library.
    "short": (ADDRESSES, ["-DSECTION=\".text\"", "-O1"], "the program has a malloc of its own, and it cannot be told what leads to it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(run, allocprof, runner, compiled, tmp_path, name):
    """One sentence, and the process is as it was and goes on."""
    source, flags, why = REFUSED[name]
    if name == "musl" and not shutil.which("musl-gcc"):
        unavailable("musl-gcc is not installed: scripts/setup --test")
    process = Obedient(runner, [compiled(source, "-pthread", *flags, compiler="musl-gcc" if name == "musl" else "gcc", name=name)])
    # It has done so when it reads, if it does.
    wait_until(lambda: name != "strict" or "Seccomp:\t1" in pathlib.Path(f"/proc/{process.pid}/status").read_text(), "it is confined")
    before = code_of(process.pid)
    done = run([allocprof, "stat", "--engine=inside", "--duration", "50ms", "-p", process.pid], expect=125)
    said, = done.stderr.decode().splitlines()
    assert not any(MEMORY in line for line in maps_of(process.pid)) and code_of(process.pid) == before
    assert said.startswith(f"allocprof: cannot measure process {process.pid} from inside: {why}"), said
    process.exit()


# Its callers are compiled in sight of the allocator's code, and keep values in registers that this leaves alone.
REGISTERS_KEPT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char heap[1 << 20];
static size_t used;
__attribute__((noinline)) void *malloc(size_t size)
{
	void *block = heap + used;
	used = (used + 64) & 0x7ffff;
	__asm__ volatile("" : : : "memory");
	return block;
}
__attribute__((noinline)) void free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
__attribute__((noinline)) void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }
__attribute__((noinline)) void *realloc(void *block, size_t size) { return block ? block : malloc(size); }
__attribute__((noinline, section(".far"))) static long work(long n)
{
	long sum = 0, a = n * 3, b = n ^ 5, c = n + 9, d = n * 7;
	for (long i = 0; i < n; i++) {
		void *block = malloc(10);
		sum += i; a += sum; b ^= a; c += b; d -= c;
		free(block);
	}
	return sum + a + b + c + d;
}
int main(void)
{
	char line[64];

	setbuf(stdin, NULL);
	setbuf(stdout, NULL);
	long right = work(500);
	puts("ready");
	while (fgets(line, sizeof(line), stdin))
		puts(work(atoi(line)) == right ? "done" : "wrong");
	return 0;
}
"""
# Asks for more than there is, and catches what is thrown.
THROWS = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
static volatile size_t huge = (size_t)1 << 62;
int main()
{
	char line[64];

	setbuf(stdin, nullptr);
	setbuf(stdout, nullptr);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		int caught = 0;
		for (int i = 0; i < atoi(line); i++) {
			delete[] new char[i + 1];
			try {
				delete[] new char[huge];
			} catch (const std::bad_alloc &) {
				caught++;
			}
		}
		puts(caught == atoi(line) ? "done" : "wrong");
	}
	return 0;
}
"""
# Has changed a call of its own.
CHANGES_ITSELF = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static char heap[1 << 20];
static size_t used;
__attribute__((noinline)) void *malloc(size_t size) { return heap + (used = (used + size + 31) % (sizeof(heap) / 2) & ~15UL); }
__attribute__((noinline)) void free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
__attribute__((noinline)) void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }
__attribute__((noinline)) void *realloc(void *block, size_t size) { return block ? block : malloc(size); }
__attribute__((noinline, section(".far"))) static void other(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
__attribute__((noinline, noipa, section(".changed"), aligned(4096))) static void changed(void)
{
	free(malloc(3));
	__asm__ volatile("" : : : "memory");
}
int main(void)
{
	unsigned char *code = (unsigned char *)changed;
	char line[64];

	mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	while (*code != 0xe8)
		code++;
	int distance = (unsigned char *)other - (code + 5);
	memcpy(code + 1, &distance, 4);
	setbuf(stdin, NULL);
	setbuf(stdout, NULL);
	puts("ready");
	while (fgets(line, sizeof(line), stdin))
		puts("done");
	return 0;
}
"""
# Keeps an address of a function that it has taken while it is measured. Its thread holds the dynamic linker's lock when told so.
KEEPS = r"""
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char heap[1 << 20];
static size_t used;
static void *volatile last_freed;
__attribute__((noinline)) void *malloc(size_t size) { return heap + (used = (used + size + 31) % (sizeof(heap) / 2) & ~15UL); }
__attribute__((noinline)) void free(void *block) { last_freed = block; }
__attribute__((noinline)) void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }
__attribute__((noinline)) void *realloc(void *block, size_t size) { return block ? block : malloc(size); }
__attribute__((noinline, section(".far"))) static void (*address(void))(void *) { return free; }
static volatile int holds, is_held;
static int hold(struct dl_phdr_info *info, size_t size, void *unused)
{
	for (is_held = 1; holds; usleep(1000))
		;
	is_held = 0;
	return 1;
}
static void *wait(void *unused)
{
	for (;; usleep(1000))
		if (holds)
			dl_iterate_phdr(hold, NULL);
	return NULL;
}
int main(void)
{
	void (*volatile kept[2])(void *) = { free };
	pthread_t thread;
	char line[64];

	pthread_create(&thread, NULL, wait, NULL);
	setbuf(stdin, NULL);
	setbuf(stdout, NULL);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] == 'k')
			kept[0] = address();
		holds = line[0] == 'h';
		while (is_held != holds)
			usleep(1000);
		for (int i = 0; i < 100; i++)
			kept[0](malloc(10));
		puts("done");
	}
	return 0;
}
"""
OWN = {
    "optimized": (ADDRESSES, [FAR, "-O2", "-fPIE", "-pie"], {"malloc": 4, "calloc": 1, "realloc": 1, "free": 5}),
    "addresses": (ADDRESSES, [FAR, "-fPIE", "-pie"], {"malloc": 4, "calloc": 1, "realloc": 1, "free": 5}),
    "full-relro": (ADDRESSES, [FAR, "-fPIE", "-pie", "-Wl,-z,now"], {"malloc": 4, "calloc": 1, "realloc": 1, "free": 5}),
}


@moves_references
@pytest.mark.parametrize("name", OWN)
def test_allocator_of_the_program(measure, runner, compiled, name):
    """Whatever leads to its functions leads to the library, but for the allocator's own calls; and each is led back."""
    source, flags, calls = OWN[name]
    process = Obedient(runner, [compiled(source, "-O1", *flags, name=name)])
    process.ask("1")
    measure(process, "stat").finish()
    before = code_of(process.pid)
    for words in ["stat", "--json"], ["record", "--live"], ["stat", "--json"]:
        measured = measure(process, *words)
        process.ask("50")
        said = measured.finish()
        assert "not complete" not in said, said
        if words[0] == "stat":
            report = read_report(measured.output)
            assert report["complete"] is True
            assert {function: figures["calls"] for function, figures in report["functions"].items() if figures["calls"]} == \
                {function: 50 * n for function, n in calls.items()}
        else:
            assert support.Recording(measured.output).ledger["lost"] == 0
        await_untouched(process.pid, before)
        process.ask("50")
    process.exit()


@moves_references
@pytest.mark.parametrize("words", [["stat"], ["record"], ["record", "--live"]], ids=" ".join)
def test_values_in_registers(measure, runner, compiled, words):
    process = Obedient(runner, [compiled(REGISTERS_KEPT, "-O2", "-fPIE", "-pie", name="registers")])
    process.ask("500")
    measured = measure(process, *words)
    process.ask("500")
    measured.finish()
    process.ask("500")
    process.exit()


@moves_references
@pytest.mark.parametrize("archive", ["libjemalloc.a", "libtcmalloc_minimal.a"])
def test_exceptions(measure, runner, compiled, archive):
    """They pass no code of the library's, which the program's unwinder does not know."""
    path = JEMALLOC.with_name(archive)
    if not path.exists():
        unavailable(f"{archive} is not installed: scripts/setup --test")
    process = Obedient(runner, [compiled(THROWS, path, "-lm", "-pthread", compiler="g++", name="throws")])
    process.ask("3")
    for words in ["record"], ["record", "--live"]:
        measured = measure(process, *words)
        process.ask("3")
        measured.finish()
    assert support.Recording(measured.output).functions["new"][0] == 6
    process.ask("3")
    process.exit()


@moves_references
def test_program_that_changed_itself(run, allocprof, runner, compiled):
    """It is refused before anything has been done in it, however often."""
    process = Obedient(runner, [compiled(CHANGES_ITSELF, "-O2", "-fPIE", "-pie", name="changes")])
    before = maps_of(process.pid)
    for _ in range(20):
        done = run([allocprof, "stat", "--engine=inside", "--duration", "10ms", "-p", process.pid], expect=125)
        assert b"its code is not as in its file" in done.stderr, done.stderr
    process.ask("on")
    assert maps_of(process.pid) == before
    process.exit()


@moves_references
def test_address_that_is_kept(measure, run, allocprof, runner, compiled):
    """It leads to the function when nobody measures any more, and where the next measurement fails."""
    process = Obedient(runner, [compiled(KEEPS, "-O1", "-fPIE", "-pie", name="keeps")])
    measured = measure(process, "stat", "--json")
    process.ask("keep")
    measured.finish()
    assert read_report(measured.output)["functions"]["free"]["calls"] == 100
    process.ask("go on")
    process.ask("hold")
    done = run([allocprof, "stat", "--engine=inside", "--duration", "10ms", "-p", process.pid], expect=125)
    assert b"its dynamic linker was at work" in done.stderr, done.stderr
    process.ask("go on")
    measured = measure(process, "stat", "--json")
    process.ask("go on")
    measured.finish()
    assert read_report(measured.output)["functions"]["free"]["calls"] == 100
    process.exit()


@moves_references
def test_hidden_functions(measure, runner, compiled):
    process = Obedient(runner, [compiled(HIDDEN, name="hidden")])
    measured = measure(process, "stat", "--json")
    for _ in range(20):
        process.ask("once")
    measured.finish()
    report = read_report(measured.output)
    assert report["functions"]["malloc"]["calls"] == report["functions"]["free"]["calls"] == 20, report["functions"]
    process.exit()


def test_hidden_allocator_of_a_command(run, allocprof, compiled, tmp_path):
    """Who has no probes is told that its calls are missing."""
    run([*WITHOUT_PRIVILEGES, allocprof, "stat", "--json", "--engine=preload", "-o", tmp_path / "out", "--", compiled(HIDDEN)], expect=0)
    report = read_report(tmp_path / "out")
    assert report["complete"] is False and "with its own malloc" in str(report), report


def test_stopped_process(run, allocprof, runner, target):
    process = Obedient(runner, [target("sleeper")])
    stop(process.pid)
    done = run([allocprof, "stat", "--engine=inside", "--duration", "50ms", "-p", process.pid], expect=125)
    assert b"it was stopped (SIGSTOP)" in done.stderr, done.stderr
    os.kill(process.pid, signal.SIGCONT)
    process.ask("alloc 10")
    process.exit()


def test_program_is_executed(runner, allocprof, target, tmp_path):
    """Its calls are missing, which the report says."""
    process = Obedient(runner, ["sh", "-c", "echo ready; read line; exec " + str(target("sleeper"))])
    recorder = runner.start([allocprof, "stat", "--engine=inside", "-o", tmp_path / "out", "-p", process.pid], stderr=subprocess.PIPE)
    wait_until_counting(allocprof, recorder)
    process.send("go on")
    process.expect_line("ready")
    process.ask("alloc 10")
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=TIMEOUT_SECONDS)
    said = (tmp_path / "out").read_text()
    assert recorder.returncode == 0 and "1 process executed another program" in " ".join(said.split()), said
    process.ask("alloc 10")
    process.exit()


EXECUTING = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	fd_set in;

	if (argc == 1)
		puts("ready");
	fflush(stdout);
	for (int i = 0; i < 20; i++) {
		struct timeval wait = { .tv_usec = 100 };

		free(malloc(100));
		FD_ZERO(&in);
		FD_SET(0, &in);
		if (select(1, &in, NULL, NULL, &wait) > 0)
			return 0;
	}
	execl("/proc/self/exe", argv[0], "again", (char *)NULL);
	return 1;
}
"""


def test_program_that_executes_itself(run, allocprof, runner, compiled):
    """allocprof finds out about a program, and another one is there when it comes to change something."""
    process = Obedient(runner, [compiled(EXECUTING, name="executing")])
    for _ in range(20):
        done = run([allocprof, "stat", "--engine=inside", "--duration", "5ms", "-p", process.pid])
        assert done.status in (0, 125), done.stderr
        assert not states_of(process.pid) & set("tT")
    process.exit()


def test_stop_limit(run, allocprof, runner, compiled):
    """Where the threads do not stop within the time, they go on as if nothing had been."""
    process = Obedient(runner, [compiled(CHECKING, "-pthread", name="checking")])
    done = run([allocprof, "stat", "--engine=inside", "--stop-limit", "1ns", "-p", process.pid], expect=125)
    assert b"within the time that --stop-limit allows" in done.stderr, done.stderr
    assert not any(MEMORY in line for line in maps_of(process.pid)) and not states_of(process.pid) & set("tT")
    run([allocprof, "stat", "--engine=inside", "--stop-limit", "1m", "--duration", "1ms", "-p", process.pid], expect=0)
    process.exit()


def test_stopped_at_the_end(runner, allocprof, target, tmp_path):
    """What could not be left could not be looked through either, so that the report is not complete."""
    process = Obedient(runner, [target("sleeper")])
    recorder = runner.start([allocprof, "stat", "--engine=inside", "-o", tmp_path / "report", "-p", process.pid], stderr=subprocess.DEVNULL)
    wait_until_counting(allocprof, recorder)
    process.ask("alloc 10")
    stop(process.pid)
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(TIMEOUT_SECONDS) == 0
    assert "1 process could not be left" in (tmp_path / "report").read_text()
    os.kill(process.pid, signal.SIGCONT)
    process.ask("alloc 10")
    process.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="root measures others' processes")
def test_other_user_in_other_namespaces(measure, runner, target, public_directory):
    """The shared memory reaches a process that sees neither allocprof's files nor its number."""
    program = public_directory / "sleeper"
    shutil.copy(target("sleeper"), program)
    process = Obedient(runner, ["unshare", "-m", "-i", "-u", "setpriv", "--reuid=65531", "--regid=65531", "--clear-groups", program])
    measured = measure(process, "record")
    process.ask("alloc 100")
    measured.finish()
    assert ("malloc", 100, 3200) in [row[:3] for row in rows(measured.output)[0]]
    process.exit()


# Most releases of glibc do not have it.
FREE_SIZED = r"""
#include <stdlib.h>
void free_sized(void *block, size_t size) { free(block); }
void later(int n) { while (n--) free_sized(malloc(40), 40); }
"""

LOADING = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	char line[64];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		void *library = dlopen(argv[1], RTLD_NOW);
		((void (*)(int))dlsym(library, "later"))(atoi(line + 5));
		puts("done");
		fflush(stdout);
	}
	return 0;
}
"""

# May do nothing but what it does: memfd_create would end it.
CONFINED = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_brk), ALLOW(SYS_fstat), ALLOW(SYS_newfstatat), ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_restart_syscall), ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_gettid), ALLOW(SYS_getpid), ALLOW(SYS_mremap),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
	char line[64];

	puts("ready");
	fflush(stdout);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 4;
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = atoi(line + 6); i; i--) {
			void *volatile block = malloc(100);
			free(block);
		}
		puts("done");
		fflush(stdout);
	}
	return 0;
}
"""
