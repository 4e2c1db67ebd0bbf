# SPDX-License-Identifier: GPL-3.0-or-later
"""Which blocks pointers still lead to (record --reachable). test_leaks_agree.py holds it to valgrind's memcheck; this file
has what memcheck cannot tell: processes that run on, copies of a running recording, and all ways to end."""

import json
import signal
import subprocess

import pytest

from measured import Measured
from support import Recording

KINDS = ("lost", "indirectly_lost", "possibly_lost", "reachable")


def leaks_of(run, allocprof, data):
    return json.loads(run([allocprof, "report", "--leaks", "--at-exit", "--json", data], expect=0).stdout)


def frames_of(report, stack):
    return {report["frames"][frame]["name"] for frame in stack["frames"]}


def lost_by(report, function):
    """Blocks of the stacks through the function, by kind; and those of other stacks."""
    sums = {True: dict.fromkeys(KINDS, 0), False: dict.fromkeys(KINDS, 0)}
    for stack in report["stacks"]:
        for kind in KINDS:
            sums[function in frames_of(report, stack)][kind] += stack["selected"][kind]
    return sums[True], sums[False]


def ask(process):
    """Has the server lose 7 blocks, each with one more."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"lost\n"


@pytest.mark.engines("uprobe", "preload")
def test_server(runner, run, allocprof, target, tmp_path, engine):
    """Attached to a server: what it loses and nothing else is lost, though it has blocks from before. The server goes on."""
    data = tmp_path / "server.data"
    server = runner.start([target("reachable"), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"
    recording = Measured(runner, allocprof, server.pid, data, "record", "-q", "--reachable", engine=engine)
    for _ in range(20):
        ask(server)
    recording.finish()
    ask(server)
    server.stdin.close()
    assert server.wait() == 0
    report = leaks_of(run, allocprof, data)
    lost, others = lost_by(report, "lose")
    assert sum(lost.values()) == 20 * 14
    # The last one may be on the stack, or in a register; and the address of the free memory behind one, which is within
    # its last chunk of memory.
    assert lost["lost"] + lost["indirectly_lost"] >= 20 * 14 - 4
    assert others["lost"] == others["indirectly_lost"] == 0 and others["reachable"] > 0
    # Lost ones come first, though the table of the server has more bytes.
    assert "lose" in frames_of(report, report["stacks"][0]) and report["sort"] == "lost"
    assert int(Recording(data).meta["reach_stop_ns"]) > 0


@pytest.mark.engines("uprobe", "preload")
def test_dump(runner, run, allocprof, target, tmp_path, engine):
    """A copy of a recording that runs is of its moment, and so is the recording's end."""
    data, dump = tmp_path / "whole.data", tmp_path / "dump.data"
    recording = runner.start([allocprof, "record", "-q", "--engine", engine, "--reachable", "-o", data, target("reachable"), "serve"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert recording.stdout.readline() == b"ready\n"
    for _ in range(3):
        ask(recording)
    run([allocprof, "ctl", "-p", recording.pid, "dump", "-o", dump], expect=0)
    ask(recording)
    recording.stdin.close()
    assert recording.wait() == 0
    for path, times in (dump, 3), (data, 4):
        lost, others = lost_by(leaks_of(run, allocprof, path), "lose")
        # The last one may be on the stack, or in a register.
        assert sum(lost.values()) == times * 14, path
        assert lost["lost"] + lost["indirectly_lost"] >= times * 14 - 2, path
        assert others["lost"] == others["indirectly_lost"] == 0, path


HOLDS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t barrier;
/* The only pointer is in this function's frame, or in a register that it has saved or uses. */
static __attribute__((noinline)) void hold(long i)
{
    char *volatile only = malloc(1000 + i);
    pthread_barrier_wait(&barrier);
    if (i % 2) pause();
    for (;;) only[0]++;
}
static void *begin(void *number) { pthread_barrier_wait(&barrier); hold((long)number); return 0; }
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 9);
    for (long i = 0; i < 8; i++) pthread_create(&thread, 0, begin, (void *)i);
    puts("ready"); fflush(stdout);
    getchar();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    puts("held"); fflush(stdout);
    getchar();
    _exit(0);
}
"""


@pytest.mark.engines("uprobe", "preload")
def test_stacks_of_threads(runner, run, allocprof, compiled, tmp_path, engine):
    """What only a thread's stack or register points to is not lost, whether the thread sleeps or runs."""
    data = tmp_path / "threads.data"
    program = runner.start([compiled(HOLDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"ready\n"
    recording = Measured(runner, allocprof, program.pid, data, "record", "-q", "--reachable", engine=engine)
    program.stdin.write(b"\n")
    program.stdin.flush()
    assert program.stdout.readline() == b"held\n"
    recording.finish()
    program.stdin.close()
    assert program.wait() == 0
    held, _ = lost_by(leaks_of(run, allocprof, data), "hold")
    assert held == {"lost": 0, "indirectly_lost": 0, "possibly_lost": 0, "reachable": 8}


# A thread gives back a block and ends; what its cache wrote into the block is still there when it is in use again.
USED_AGAIN = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void **kept;
static void *give_back(void *block) { free(block); return 0; }
static __attribute__((noinline)) void add(void) { kept[3] = malloc(77); }
static __attribute__((noinline)) void clear(void) { volatile char b[9999]; memset((void *)b, 0, sizeof(b)); }
int main(void)
{
    pthread_t thread;
    void *block = malloc(100);
    pthread_create(&thread, 0, give_back, block);
    pthread_join(thread, 0);
    kept = malloc(100);
    puts(kept == block ? "ready" : "another block"); fflush(stdout);
    getchar();
    add();
    clear();
    puts("added"); fflush(stdout);
    getchar();
    return 0;
}
"""


@pytest.mark.engines("uprobe", "preload")
def test_block_that_looks_free(runner, run, allocprof, compiled, tmp_path, engine):
    """A block from before, of which the first words are not used yet, has what glibc writes into free ones."""
    data = tmp_path / "data"
    program = runner.start([compiled(USED_AGAIN)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"ready\n"
    recording = Measured(runner, allocprof, program.pid, data, "record", "-q", "--reachable", engine=engine)
    program.stdin.write(b"\n")
    program.stdin.flush()
    assert program.stdout.readline() == b"added\n"
    recording.finish()
    program.stdin.close()
    assert program.wait() == 0
    added, _ = lost_by(leaks_of(run, allocprof, data), "add")
    assert added == {"lost": 0, "indirectly_lost": 0, "possibly_lost": 0, "reachable": 1}


ENDS = {
    "exit": ("exit(3)", 3),
    "_exit": ("_exit(4)", 4),
    "thread": ("pthread_create(&thread, 0, leave, 0), pause()", 5),
    "abort": ("abort()", 128 + signal.SIGABRT),
    "killed": ("raise(SIGKILL)", 128 + signal.SIGKILL),
    "segv": ("*(volatile int *)8 = 1", 128 + signal.SIGSEGV),
}


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("end", ENDS)
def test_ends(run, allocprof, compiled, tmp_path, end):
    """However a command ends, it is searched before its memory goes, and it ends as it would without that."""
    statement, status = ENDS[end]
    program = compiled(f"""
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        void *volatile kept;
        static void *leave(void *unused) {{ _exit(5); }}
        static __attribute__((noinline)) void lose(void) {{ kept = malloc(77); kept = malloc(88); }}
        static __attribute__((noinline)) void clear(void) {{ volatile char b[9999]; memset((void *)b, 0, sizeof(b)); }}
        int main(void)
        {{
            pthread_t thread;
            lose();
            clear();
            {statement};
        }}""")
    data = tmp_path / "ends.data"
    run([allocprof, "record", "-q", "--reachable", "-o", data, program], expect=status)
    lost, _ = lost_by(leaks_of(run, allocprof, data), "lose")
    assert lost == {"lost": 1, "indirectly_lost": 0, "possibly_lost": 0, "reachable": 1}


@pytest.mark.engines("uprobe", "preload")
def test_forked_child(run, allocprof, compiled, tmp_path):
    """Pointers in blocks that a child has from its parent are followed, though these blocks are not its own."""
    program = compiled("""
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        struct node { struct node *next; } *volatile kept;
        static __attribute__((noinline)) void add(void) { kept->next = malloc(500); }
        int main(void)
        {
            int ready[2], recorder = getppid();
            char byte;
            kept = calloc(1, 40);
            pipe(ready);
            if (fork()) { read(ready[0], &byte, 1); return 0; }
            add();
            write(ready[1], "", 1);
            close(1), close(2);
            while (!kill(recorder, 0)) usleep(1000);
        }""")
    data = tmp_path / "forked.data"
    run([allocprof, "record", "-q", "--reachable", "-o", data, program], expect=0)
    added, _ = lost_by(leaks_of(run, allocprof, data), "add")
    assert added == {"lost": 0, "indirectly_lost": 0, "possibly_lost": 0, "reachable": 1}


def test_no_pointers(run, allocprof, target, tmp_path):
    """Without the option nothing is said of it."""
    data = tmp_path / "live.data"
    run([allocprof, "record", "-q", "--live", "-o", data, target("reachable"), "lost"], expect=0)
    assert "lost" not in leaks_of(run, allocprof, data)["selected"]
    assert b"no pointer leads" not in run([allocprof, "report", "--leaks", data], expect=0).stdout
    result = run([allocprof, "folded", "--cost=lost", data])
    assert result.status == 2 and b"record with --reachable" in result.stderr


@pytest.mark.engines("uprobe", "preload")
def test_costs(run, allocprof, target, tmp_path):
    """lost is a cost of all commands: 7 blocks of 100 bytes."""
    data = tmp_path / "lost.data"
    run([allocprof, "record", "-q", "--reachable", "-o", data, target("reachable"), "lost"], expect=0)
    folded = run([allocprof, "folded", "--cost=lost", data], expect=0).stdout.decode().splitlines()
    assert len(folded) == 1 and folded[0].endswith(";main;lost;malloc 700"), folded
    text = run([allocprof, "report", "--leaks", "--at-exit", data], expect=0).stdout.decode()
    assert "7 blocks lost: no pointer leads to them" in text
    assert b"Lost: 700 bytes in 7 blocks of 1 stack" in run([allocprof, "report", "--sort=lost", data], expect=0).stdout
    for command in ["flamegraph", "-o", tmp_path / "lost.svg"], ["diff", data]:
        run([allocprof, command[0], "--cost=lost", *command[1:], data], expect=0)


def test_refused_options(run, allocprof):
    result = run([allocprof, "record", "--reachable", "--sample", "512K", "true"])
    assert result.status == 64 and b"--reachable and --sample cannot be used together" in result.stderr
