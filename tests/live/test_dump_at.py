# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of a recording at limits of memory (record --dump-at), and recordings that begin at one (--begin-at). The target
allocates when it is told to, so that it is known what has happened before each copy."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from support import Obedient, Recording, TIMEOUT_SECONDS, wait_until, wait_until_counting
from test_killed import Told, in_group, limited_memory

# Commands: keep N, drop N, child N: the last one keeps blocks in a child that lives until it is killed.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define SIZE (1 << 20)
static void *blocks[4096];
static int n;
static __attribute__((noinline)) void keep(void) { memset(blocks[n++] = malloc(SIZE), 1, SIZE); }
static __attribute__((noinline)) void keep_in_child(int more)
{
    if (!fork()) {
        while (more--) keep();
        for (;;) pause();
    }
    wait(0);
}
int main(void)
{
    char word[16];
    int times;
    puts("ready"); fflush(stdout);
    while (scanf("%15s %d", word, &times) == 2) {
        if (!strcmp(word, "child")) keep_in_child(times);
        while (!strcmp(word, "keep") && times--) keep();
        while (!strcmp(word, "drop") && times--) free(blocks[--n]);
        puts("done"); fflush(stdout);
    }
    return 0;
}
"""


class Limited:
    """A recording with --dump-at of the program."""

    def __init__(self, runner, allocprof, program, directory, engine, *options, group=None):
        self.run, self.allocprof = runner.run, allocprof
        self.data = directory / "data"
        self.messages = directory / "messages"
        command = [program] if not group else in_group(group, program)
        with open(self.messages, "wb") as stderr:
            self.target = Obedient(runner, [allocprof, "record", "--live", f"--engine={engine}", "-o", self.data, *options, "--",
                                            *command], stderr=stderr)

    def wait_until_looked_at(self):
        """A request has the memory looked at before the next one is answered."""
        for _ in range(2):
            self.run([self.allocprof, "ctl", "-p", self.target.pid, "status"], expect=0)

    def copy(self, number):
        path = self.data.with_name(f"data.{number}")
        wait_until(lambda: f" calls in {path}" in self.messages.read_text(), f"{path} is written")
        recording = Recording(path)
        assert not recording.unbalanced()
        return recording

    def copies(self):
        return sorted(int(path.suffix[1:]) for path in self.data.parent.glob("data.[0-9]*"))

    def end(self):
        self.target.exit()
        return Recording(self.data)


def kept(recording):
    """Blocks of keep() that are live."""
    ((n,),) = recording.sql(
        "SELECT coalesce(sum(b.allocations - b.frees), 0) FROM blocks b JOIN uninlined u ON u.count = b.count "
        "WHERE u.called_by = 'keep'")
    return n


@pytest.fixture
def limited(runner, allocprof, compiled, tmp_path, engine):
    program = compiled(PROGRAM)
    return lambda *options, **more: Limited(runner, allocprof, program, tmp_path, engine, *options, **more)


def wait_until_awaits(recorder):
    """Until it has the descriptor on which it waits for signals while it looks at the memory."""
    def awaits():
        links = pathlib.Path(f"/proc/{recorder.pid}/fd").iterdir()
        return any(os.path.islink(link) and os.readlink(link) == "anon_inode:[signalfd]" for link in links)

    wait_until(awaits, "the recording waits")


# A copy is of a moment at which the memory is looked at, which may be in the midst of a command.

@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("limit", ["rss=50M", "live=50M"])
def test_reached(limited, limit):
    """One copy when the limit is reached, and another one only after the memory was a tenth below it."""
    one = limited(f"--dump-at={limit}")
    one.target.ask("keep 30")
    one.target.ask("keep 25")
    first = one.copy(1)
    assert first.meta["dump_at"] == limit and 40 < kept(first) <= 55
    for command in "keep 5", "drop 7", "keep 5", "drop 30":
        one.target.ask(command)
        one.wait_until_looked_at()
    assert one.copies() == [1]
    one.target.ask("keep 40")
    assert 40 < kept(one.copy(2)) <= 68
    whole = one.end()
    assert one.copies() == [1, 2] and kept(whole) == 68 and "dump_at" not in whole.meta
    # A copy has those before it.
    marks = whole.sql("SELECT time_ns, kind, name FROM marks ORDER BY time_ns")
    assert [mark[1:] for mark in marks] == [("dump", limit)] * 2
    assert 0 < marks[0][0] < marks[1][0] < float(whole.meta["elapsed_seconds"]) * 1e9
    assert first.sql("SELECT * FROM marks") == [] and one.copy(2).sql("SELECT time_ns, kind, name FROM marks") == marks[:1]


@pytest.mark.engines("uprobe", "preload")
def test_last_are_kept(limited):
    """A copy each time that so much has come within the time."""
    one = limited("--dump-at=growth=20M/1h", "--keep=2")
    one.wait_until_looked_at()
    for number in range(1, 5):
        one.target.ask("keep 24")
        assert 20 * number - 4 < kept(one.copy(number)) <= 24 * number
    one.end()
    assert one.copies() == [3, 4]


@pytest.mark.engines("uprobe", "preload")
def test_control_group(limited):
    """Before the group has used up what it may have, and after the kernel has killed one of its processes: that copy has what the
    process had."""
    with limited_memory(120 << 20) as (group, killed):
        one = limited("--dump-at=cgroup=60%,oom", group=group)
        one.target.ask("keep 20")
        one.target.ask("keep 65")
        first = one.copy(1)
        assert first.meta["dump_at"] == "cgroup=60%" and 50 < kept(first) <= 85
        one.target.ask("drop 70")
        one.wait_until_looked_at()
        one.target.ask("child 500")
        assert killed() == 1
        one.wait_until_looked_at()
        wait_until(lambda: "oom: " in one.messages.read_text(), "the copy is written")
        one.end()
    last = Recording(one.data.with_name(f"data.{one.copies()[-1]}"))
    assert last.meta["dump_at"].split(",")[-1] == "oom"
    ((blocks,),) = last.sql("SELECT sum(b.allocations - b.frees) FROM blocks b JOIN uninlined u ON u.count = b.count "
                            "JOIN counts c ON c.id = b.count JOIN processes p ON p.id = c.process "
                            "WHERE u.called_by = 'keep' AND p.parent")
    # The last one may not have been written to.
    assert 80 < blocks <= 121


@pytest.mark.engines("uprobe", "preload")
def test_signal(limited):
    """The signal is for allocprof, and does not reach the command, which would die of it."""
    one = limited("--dump-at=signal=USR2")
    for number in 1, 2:
        one.target.ask("keep 3")
        os.kill(one.target.pid, signal.SIGUSR2)
        copy = one.copy(number)
        assert copy.meta["dump_at"] == "signal=USR2" and kept(copy) == 3 * number
    assert kept(one.end()) == 6


@pytest.mark.engines("uprobe", "preload")
def test_command_that_is_killed(limited):
    """What the kernel did to the command is known, though the command leaves its control group when it ends."""
    with limited_memory(60 << 20) as (group, killed):
        one = limited("--dump-at=oom,cgroup=95%", group=group)
        one.target.ask("keep 1")
        one.wait_until_looked_at()
        one.target.send("keep 500")
        assert one.target.process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGKILL
        assert killed() == 1
    assert Recording(one.data).meta["oom_kills"] == "1"


# A server with a table, that forgets a few blocks with each answer: "command FILE" answers until it is killed, "worker FILE" has a
# child do so. The first word of FILE is how many bytes are live.
LEAKING = """
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long *live;
static void *table[64], *volatile last;
static void *get(size_t size)
{
    void *block = malloc(size);
    *live += size;
    return memset(block, 1, size);
}
static void put(void *block, size_t size) { free(block); *live -= size; }
static __attribute__((noinline)) void fill_table(void) { for (int i = 0; i < 64; i++) table[i] = get(65536); }
static __attribute__((noinline)) void parse(unsigned n) { put(get(30000), 30000); }
static __attribute__((noinline)) void forget(unsigned n) { last = get(500 + n % 3000); }
static __attribute__((noinline)) void answer_all(void)
{
    fill_table();
    for (unsigned n = 0;; n++) {
        parse(n);
        forget(n * 17);
    }
}
int main(void)
{
    char who[16], path[99];
    puts("ready"); fflush(stdout);
    while (scanf("%15s %98s", who, path) == 2) {
        live = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(path, O_RDWR), 0);
        if (!strcmp(who, "command") || !fork()) answer_all();
        wait(0);
        puts("done"); fflush(stdout);
    }
    return 0;
}
"""


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("who", ["command", "worker"])
@pytest.mark.parametrize("times", [1, pytest.param(int(os.environ.get("ALLOCPROF_TRIES", 20)), id="many", marks=pytest.mark.slow)])
def test_leak_until_the_limit(runner, run, allocprof, compiled, tmp_path, engine, who, times):
    """Whom the kernel kills has its recording, or a copy where another process goes on: the leak comes first, and what is live is
    what the program says, but for the block on whose page it was killed."""
    program = compiled(LEAKING)
    for number in range(times):
        directory, told = tmp_path / str(number), Told()
        directory.mkdir()
        with limited_memory() as (group, killed):
            one = Limited(runner, allocprof, program, directory, engine, "--dump-at=oom", group=group)
            # What is killed counts from when the group was looked at, into which the program has gone.
            one.wait_until_looked_at()
            one.target.send(f"{who} {told.path}")
            if who == "worker":
                one.target.expect_line("done")
                recording = one.copy(1)
                one.end()
            else:
                assert one.target.process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGKILL
                recording = Recording(one.data)
            assert killed() == 1
        report = json.loads(run([allocprof, "report", "--leaks", "--json", recording.path], expect=0).stdout)
        live = told.calls()[0]
        told.close()
        assert "forget" in {report["frames"][frame]["name"] for frame in report["stacks"][0]["frames"]}
        of_answers = sum(stack["selected"]["live_bytes"] for stack in report["stacks"]
                         if "answer_all" in {report["frames"][frame]["name"] for frame in stack["frames"]})
        assert abs(of_answers - live) <= 30000 < live / 100, (of_answers, live)


@pytest.mark.engines("uprobe", "preload")
def test_peak(limited, run, allocprof):
    """The copy is that of the highest resident memory, with names and with the sum of that moment, whatever comes after."""
    one = limited("--resident", "--dump-at=peak", "--keep=1")
    peak = one.data.with_name("data.peak")

    def is_at_peak():
        # Until the end it has no names.
        return peak.exists() and Recording(peak).sql("SELECT sum(allocations - frees) FROM blocks WHERE bytes >= 1 << 20") == [(60,)]

    one.target.ask("keep 20")
    one.target.ask("drop 10")
    one.target.ask("keep 50")
    wait_until(is_at_peak, "the copy has all blocks")
    one.target.ask("drop 55")
    one.target.ask("keep 10")
    assert kept(one.end()) == 15 and one.copies() == []
    copy = Recording(peak)
    assert copy.meta["dump_at"] == "peak" and kept(copy) == 60 and not copy.unbalanced()
    report = json.loads(run([allocprof, "report", "--json", peak], expect=0).stdout)
    assert report["rss"][0]["blocks"] >= 59 << 20
    assert re.search(r"at the peak: 6\d\.\d MiB of resident memory when .*/data.peak was written, at most 6\d\.\d MiB at any look",
                     one.messages.read_text())
    ended = json.loads(run([allocprof, "report", "--json", one.data], expect=0).stdout)
    assert 15 << 20 <= ended["rss"][0]["blocks"] <= 16 << 20, "its end was seen though it was held before"
    # The recording has what was there at the copies, that of the peak among them.
    samples = ended["rss_samples"]
    times = [sample["time_ns"] for sample in samples]
    assert times == sorted(times) and samples[:-1] and samples[-1]["blocks"] == ended["rss"][0]["blocks"]
    highest = max(samples, key=lambda sample: sample["blocks"])
    assert highest["blocks"] == report["rss"][0]["blocks"] and highest["torn_ms"] == 0
    text = run([allocprof, "report", "--resident", one.data], expect=0).stdout.decode()
    held = [line.split() for line in text.splitlines() if line.endswith("live blocks")]
    assert [(words[0], words[3]) for words in held] == [tuple(f"{end['blocks']:,}" for end in (ended["rss"][0], highest))]
    assert re.search(r"^It was \d\d,\d{3},\d{3} bytes after .*, the columns to the right", text, re.M)


@pytest.mark.engines("uprobe", "preload")
def test_peak_of_an_earlier_recording(run, allocprof, tmp_path, engine):
    """It is not taken for that of a recording that is too short to have one."""
    data = tmp_path / "data"
    data.with_name("data.peak").write_bytes(b"")
    result = run([allocprof, "record", f"--engine={engine}", "--live", "--dump-at=peak", "-o", data, "true"], expect=0)
    assert (b"no copy at the peak was written: " in result.stderr) == (not data.with_name("data.peak").exists())
    assert not data.with_name("data.peak").exists() or kept(Recording(data.with_name("data.peak"))) == 0


@pytest.mark.engines("uprobe", "preload")
def test_signal_of_the_command(run, allocprof, tmp_path, engine):
    data = tmp_path / "data"
    result = run([allocprof, "record", f"--engine={engine}", "--dump-at=signal=USR2", "-o", data, "--",
                  "sh", "-c", "kill -USR2 $PPID; while ! [ -e $0.1 ]; do sleep 0.1; done", data], expect=0)
    assert b"at signal=USR2: " in result.stderr


@pytest.mark.parametrize("engine", ["uprobe", "inside"])
def test_begins_at(runner, allocprof, compiled, tmp_path, engine):
    """Nothing is probed before, and what was allocated until then is not in the recording."""
    data = tmp_path / "data"
    target = Obedient(runner, [compiled(PROGRAM)])
    target.ask("keep 10")
    recorder = runner.start([allocprof, "record", "-q", f"--engine={engine}", "--begin-at=rss=50M", "-o", data, "-p", target.pid])
    wait_until_awaits(recorder)
    target.ask("keep 10")
    maps = pathlib.Path(f"/proc/{target.pid}/maps").read_text()
    assert "[uprobes]" not in maps and "allocprof" not in maps
    target.ask("keep 40")
    wait_until_counting(allocprof, recorder)
    target.ask("keep 3")
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(TIMEOUT_SECONDS) == 0
    target.exit()
    ((calls,),) = Recording(data).sql("SELECT sum(c.calls) FROM counts c JOIN uninlined u ON u.count = c.id WHERE u.called_by = 'keep'")
    assert calls == 3


def test_never_begins(runner, allocprof, compiled, tmp_path):
    """The process ends before it has so much memory, or nobody waits any longer."""
    for ends in True, False:
        target = Obedient(runner, [compiled(PROGRAM)])
        recorder = runner.start([allocprof, "record", "--begin-at=rss=50M", "-o", tmp_path / "data", "-p", target.pid],
                                stderr=subprocess.PIPE)
        wait_until_awaits(recorder)
        if ends:
            target.exit()
        else:
            recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate(timeout=TIMEOUT_SECONDS)
        assert recorder.returncode == 125 and b"before" in said and b"nothing was recorded" in said, said
        assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("words, said", [
    (["--dump-at=rss"], "'rss' is no limit; --dump-at takes rss=SIZE"),
    (["--dump-at=growth=5M"], "'growth=5M' is no limit"),
    (["--dump-at=signal=KILL"], "'signal=KILL' is no limit"),
    (["--dump-at=live=5M"], "--dump-at live= means nothing without --live"),
    (["--dump-at=peak"], "--dump-at peak means nothing without --live"),
    (["--keep=3"], "--keep means nothing without --dump-at"),
    (["--dump-at=rss=5M", "-r3"], "--dump-at and -r cannot be used together"),
    (["--begin-at=rss=5M"], "--begin-at means nothing without -p"),
    (["--begin-at=live=5M", "-p1"], "'live=5M' is no limit; --begin-at takes rss=SIZE"),
])
def test_refused(run, allocprof, words, said):
    result = run([allocprof, "record", *words, *([] if "-p1" in words else ["true"])])
    assert result.status == 64 and said in result.stderr.decode()
