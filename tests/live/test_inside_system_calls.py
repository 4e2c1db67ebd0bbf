# SPDX-License-Identifier: GPL-3.0-or-later
"""What the library asks the kernel, it asks once: a program that does four times as much makes no more system calls than
without the library. And what it remembers instead is not used when it is not so any more."""

import contextlib
import re
import shutil
import sqlite3

import pytest

from support import SOURCE, clean_environment, unavailable

WORK = r"""
#include <stdlib.h>
static void __attribute__((noinline)) work(int depth)
{
	if (depth) {
		work(depth - 1);
		__asm__ volatile("");
		return;
	}
	free(malloc(100));
}
"""

# Each of them has a stack of its own.
COROUTINES = WORK + r"""
#include <ucontext.h>
enum { N = 100 };
static ucontext_t back, coroutines[N];
static void body(int i)
{
	for (;;) {
		work(i % 7);
		swapcontext(&coroutines[i], &back);
	}
}
int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++) {
		getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = malloc(256 << 10);
		coroutines[i].uc_stack.ss_size = 256 << 10;
		makecontext(&coroutines[i], (void (*)(void))body, 1, i);
	}
	for (int i = 0; i < atoi(argv[1]); i++) {
		work(2);
		swapcontext(&back, &coroutines[i % N]);
	}
	return 0;
}
"""

HANDLERS = WORK + r"""
#include <signal.h>
static void handle(int number) { work(3); }
int main(int argc, char **argv)
{
	stack_t stack = { malloc(65536), 0, 65536 };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < atoi(argv[1]); i++) {
		work(2);
		raise(SIGUSR1);
	}
	return 0;
}
"""

# Code without call frame information, some with frame pointers, below code that has it; in threads and in the first one.
MADE = WORK + r"""
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
static void (*plain)(void (*)(void)), (*framed)(void (*)(void));
static int n;
static void inner(void) { work(1); __asm__ volatile(""); }
static void middle(void) { plain(inner); __asm__ volatile(""); }
static void outer(void) { framed(middle); __asm__ volatile(""); }
static void *run(void *unused)
{
	for (int i = 0; i < n; i++)
		framed(i % 2 ? outer : inner);
	return NULL;
}
int main(int argc, char **argv)
{
	/* sub $8,%rsp; call *%rdi; add $8,%rsp; ret */
	static const unsigned char a[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3 };
	/* push %rbp; mov %rsp,%rbp; call *%rdi; nop; pop %rbp; ret */
	static const unsigned char b[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x90, 0x5d, 0xc3 };
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	memcpy(code, a, sizeof(a));
	memcpy(code + 64, b, sizeof(b));
	plain = (void *)code;
	framed = (void *)(code + 64);
	n = atoi(argv[1]);
	pthread_create(&thread, NULL, run, NULL);
	run(NULL);
	pthread_join(thread, NULL);
	return 0;
}
"""

CPLUSPLUS = r"""
#include <map>
#include <string>
#include <vector>
int main(int argc, char **argv)
{
	std::map<std::string, std::vector<int>> all;
	for (int i = 0; i < atoi(argv[1]); i++) {
		all[std::string(40, 'a' + i % 20)].push_back(i);
		try {
			throw std::string(50, 'x');
		} catch (const std::string &) {
		}
	}
}
"""

SQL = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) " \
      "SELECT count(*) FROM (SELECT group_concat(hex(x)) FROM c GROUP BY x %% 50)"

# JavaScript's functions are compiled before the first count is over.
NODE = """
const n = +process.argv[1]; let sum = 0;
function allocate(i) { return Buffer.allocUnsafeSlow(300 + i % 50).length + Buffer.from('x'.repeat(100)).toString('hex').length }
for (let i = 0; i < n; i++) sum += [i].map(allocate)[0];
"""

INTERPRETED = {
    "python": ["/usr/bin/python3", "-c", "import json, sys\nfor i in range(int(sys.argv[1])): json.loads(json.dumps({str(i): [i] * 200}))"],
    "perl": ["perl", "-e", "for my $i (1..$ARGV[0]) { my %h = (a => 'x' x 300, b => [1..50]); }"],
    "ruby": ["ruby", "--disable-gems", "-e", "ARGV[0].to_i.times { |i| 'x' * (900 + i % 100) }"],
    "php": ["env", "USE_ZEND_ALLOC=0", "php", "-n", "-r", "for ($i = 0; $i < $argv[1]; $i++) $a = [str_repeat('x', 3000), [$i]];", "--"],
    "node": ["node", "-e", NODE, "--"],
}

TIMES = {"node": 10000, "go": 500}
PROGRAMS = {"coroutines": COROUTINES, "handlers": HANDLERS, "made": MADE}


@pytest.fixture
def argv_of(compiled, run, tmp_path):
    def argv(name, times):
        if name == "sqlite":
            return ["sqlite3", ":memory:", SQL % times]
        if name in INTERPRETED:
            return [*INTERPRETED[name], times]
        if name == "c++":
            return [compiled(CPLUSPLUS, compiler="g++", name=name), times]
        if name == "go":
            source = SOURCE / "tests" / "targets" / "go" / "calls.go"
            run(["/usr/bin/go", "build", "-o", tmp_path / name, source], expect=0,
                env=clean_environment({"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off", "PATH": "/usr/bin:/bin"}))
            return [tmp_path / name, times]
        return [compiled(PROGRAMS[name], name=name), times]
    return argv


def system_calls_of_library(run, argv, tmp_path, words):
    """How many of them the library makes within @argv: strace names the address that each is made from."""
    trace = tmp_path / "trace"
    run([*words, "strace", "-f", "-i", "-o", trace, *argv], expect=0)
    begin = end = n = 0
    opened = None
    for line in trace.read_text(errors="replace").splitlines():
        call = re.match(r"\d+ +\[([0-9a-f]+)\] (\w+)\((.*)", line)
        if not call:
            continue
        address, name, rest = int(call[1], 16), call[2], call[3]
        if name == "execve":
            begin = end = 0
        elif name == "openat" and (match := re.search(r'/inside\.so".* = (\d+)$', rest)):
            opened = match[1]
        elif name == "mmap" and (match := re.match(rf"NULL, (\d+), .*, {opened}, 0\) = (0x[0-9a-f]+)$", rest)):
            # The first mapping of an object is as long as the whole of it.
            begin, opened = int(match[2], 16), None
            end = begin + int(match[1])
        n += begin <= address < end
    assert end, f"no library is mapped in {trace}"
    return n


@pytest.mark.covering(1)
@pytest.mark.fast("record-coroutines", "record-made", "live-handlers")
@pytest.mark.parametrize("name", ["coroutines", "handlers", "made", "c++", "go", "sqlite", *INTERPRETED])
@pytest.mark.parametrize("mode", ["record", "live"])
def test_none_at_each_call(run, allocprof, argv_of, tmp_path, mode, name):
    """The calls of the program that are counted are many more: one system call at every fiftieth would be too many. Not none,
    since the library looks again at what may have changed when time has passed."""
    times, output = TIMES.get(name, 1000), tmp_path / "data"
    words = [allocprof, "record", "-q", "--no-symbols", "--engine=preload", *(["--live"] if mode == "live" else []), "-o", output, "--"]
    made, calls = [], []
    for n in (times, 4 * times):
        argv = argv_of(name, n)
        for program in argv[:3] if argv[0] == "env" else argv[:1]:
            if "=" not in str(program) and not shutil.which(program):
                unavailable(f"{program} is not installed: scripts/setup --test")
        made.append(system_calls_of_library(run, argv, tmp_path, words))
        with contextlib.closing(sqlite3.connect(output)) as data:
            calls.append(data.execute("SELECT sum(calls) FROM counts").fetchone()[0])
    more = calls[1] - calls[0]
    assert more >= 3 * times, calls
    assert made[1] - made[0] < more // 50, f"{made[0]} system calls of the library in {calls[0]} calls, {made[1]} in {calls[1]}"


# Code is written over without a system call: at the same return address code has one frame, and then another.
REWRITTEN = WORK + r"""
#include <string.h>
#include <sys/mman.h>
static void inner(void) { work(0); __asm__ volatile(""); }
int main(void)
{
	/* sub $8,%rsp; 7 times nop; call *%rdi; add $8,%rsp; ret */
	static const unsigned char before[] = { 0x48, 0x83, 0xec, 8, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd7,
		0x48, 0x83, 0xc4, 8, 0xc3 };
	/* push %rbp; mov %rsp,%rbp; sub $32,%rsp; 3 times nop; call *%rdi; nop; leave; ret */
	static const unsigned char after[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x90, 0x90, 0x90, 0xff, 0xd7,
		0x90, 0xc9, 0xc3 };
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*volatile call)(void (*)(void)) = (void *)code;
	memcpy(code, before, sizeof(before));
	for (int i = 0; i < 1000; i++)
		call(inner);
	memcpy(code, after, sizeof(after));
	for (int i = 0; i < 40000; i++)
		call(inner);
	return 0;
}
"""


def test_code_that_is_written_over(run, allocprof, compiled, tmp_path):
    """What was read of the former code is not used for ever (MAX_WALKS in src/inside/walk.c)."""
    output = tmp_path / "data"
    run([allocprof, "record", "-q", "--no-symbols", "--engine=preload", "-o", output, "--", compiled(REWRITTEN, name="rewritten")],
        expect=0)
    with contextlib.closing(sqlite3.connect(output)) as data:
        by_end = dict(data.execute("""SELECT s.end, sum(c.calls) FROM counts c JOIN stacks s ON s.id = c.stack
                                      WHERE c.function = 'malloc' GROUP BY 1"""))
    # Behind a frame pointer that was used for want of a rule nothing is certain; by the former code these stacks are complete.
    assert by_end["complete"] >= 1000 and by_end["frame_pointers"] >= 40000 - 16384, by_end


# A stack's memory goes away while others are still used, in each of the ways that the library sees, and as glibc does inside of
# free(3); and code without call frame information has a frame pointer into what is gone.
GONE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
static ucontext_t first, second;
static char *room, *how;
static size_t half = 1 << 19;
void made(void *frame_pointer);
__asm__(".text\n.type made, @function\nmade: push %rbp\n sub $32, %rsp\n mov %rdi, %rbp\n mov $24, %edi\n"
	" call malloc@plt\n nop\n nop\n add $32, %rsp\n pop %rbp\n nop\n ret\n");
static void body(void)
{
	void *upper = room + half;
	for (int i = 0; i < 10; i++) {
		free(malloc(24));
		swapcontext(&second, &first);
	}
	if (!strcmp(how, "munmap")) munmap(upper, half);
	if (!strcmp(how, "syscall")) syscall(SYS_munmap, upper, half);
	if (!strcmp(how, "mprotect")) mprotect(upper, half, PROT_NONE);
	if (!strcmp(how, "mremap")) mremap(upper, half, 4096, 0);
	if (!strcmp(how, "mmap")) mmap(upper, half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (!strcmp(how, "free")) free(room + half + 16);
	made(room + half + 8192);
}
int main(int argc, char **argv)
{
	how = argv[1];
	if (!strcmp(how, "free")) {
		/* Blocks that glibc maps alone are beside each other, and one mapping. */
		char *block, *below = malloc(half - 4096);
		int i = 0;
		do {
			block = below;
			below = malloc(half - 4096);
		} while (below + half != block && ++i < 20);
		if (i == 20) { puts("not beside each other"); return 3; }
		room = block - 16 - half;
	} else {
		room = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	getcontext(&second);
	second.uc_stack.ss_sp = room + 4096;
	second.uc_stack.ss_size = half - 8192;
	second.uc_link = &first;
	makecontext(&second, body, 0);
	for (int i = 0; i < 11; i++) {
		swapcontext(&first, &second);
		free(malloc(32));
	}
	puts("done");
	return 0;
}
"""


@pytest.mark.covering(1)
@pytest.mark.fast("record-munmap", "live-free")
@pytest.mark.parametrize("how", ["munmap", "syscall", "mprotect", "mremap", "mmap", "free"])
@pytest.mark.parametrize("mode", ["record", "live"])
def test_stacks_that_go_away(same, compiled, mode, how):
    bare, report = same(mode, [compiled(GONE, name="gone"), how])
    assert bare.stdout == b"done\n" and report["lost"] == 0
