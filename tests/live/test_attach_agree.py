# SPDX-License-Identifier: GPL-3.0-or-later
"""The two engines against each other, on processes that run (-p): both are attached to one at a time, while it does the same work, so that
whatever it does, by chance, too, each has to say the same of each row: function, thread, stack, and how that ends. By turns they
have to say the same of work that is the same each time. What cannot be the same is listed here, with its cause."""

import collections
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import sqlite3

import pytest

from measured import LIBRARY, Measured
from memory import EXACT
from servers import Nginx, Node, Postgresql, Redis
from support import Obedient, Recording, by_address, libc_path, stack_addresses, stop, target, unavailable, wait_until, with_loops_alike

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")
ROUNDS = 30
# A target that works for itself may do so just when one engine counts already.
TRIES = 20

# Names at one address are one function for a probe.
FIRST = {name: names[0] for names in by_address(libc_path()) for name in names}


@pytest.fixture
def engine():
    """Each case has both."""


class Program:
    """One that does a fixed work for each line that it reads, and says "done" then."""

    def __init__(self, runner, argv, line, env=None):
        if not shutil.which(argv[0]):
            unavailable(f"{argv[0]} is not installed: scripts/setup --test")
        self.line = line
        self.process = Obedient(runner, argv, env)
        self.pid = self.process.pid

    def ask(self, number):
        self.process.ask(self.line(number))

    def end(self):
        self.process.exit()


PYTHON = """
import json, re, sys
print("ready", flush=True)
for line in sys.stdin:
    text = json.dumps({str(i): [i] * 20 for i in range(int(line))})
    kept = [json.loads(text), re.findall("[0-9]+", text), sorted(text.split(","))]
    print("done", flush=True)
"""
PERL = """
$| = 1; my @kept; print "ready\\n";
while (<STDIN>) { my %h = map { $_ => "x" x $_ } 1 .. $_ % 90 + 20; push @kept, [sort keys %h]; shift @kept if @kept > 9; print "done\\n"; }
"""
GAWK = r"""
BEGIN { print "ready"; fflush() }
{
	delete a
	for (i = 0; i < 50 + $1; i++) {
		a[i % 70] = a[i % 61] $1 i
		if (length(a[i % 70]) > 300)
			delete a[i % 70]
	}
	split($0 " b c d", words)
	gsub(/[0-9]/, "<&>")
	print "done"
	fflush()
}
"""
SQLITE = "CREATE TEMP TABLE t (a, b); INSERT INTO t SELECT value, hex(zeroblob(value * 7)) FROM json_each('{0}'); " \
         "SELECT 'done' FROM (SELECT count(*), group_concat(b) FROM t GROUP BY a % 5) LIMIT 1; DROP TABLE t;"
JQ = 'group_by(. % 7) | map(add) | tojson | "done"'
# Allocates, by each of its threads, through the C library and operators new, and throws.
THREADED = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <vector>
static pthread_barrier_t begins, ends;
static int rounds;
static std::map<int, std::string> kept[8];

static void *work(void *number)
{
	auto &mine = kept[(long)number];
	char name[16];

	snprintf(name, sizeof(name), "worker-%ld", (long)number % 3);
	pthread_setname_np(pthread_self(), name);
	for (;;) {
		pthread_barrier_wait(&begins);
		for (int i = 0; i < rounds; i++) {
			std::vector<std::string> words(i % 7 + 1, std::string(20 + i, 'x'));
			void *aligned = nullptr;

			mine[i % 23] = words.back();
			try {
				if (i % 5 == 0)
					throw std::runtime_error(words[0]);
			} catch (const std::exception &) {
			}
			free(realloc(calloc(3, i + 1), 500));
			if (!posix_memalign(&aligned, 64, i + 1))
				free(aligned);
			free(strdup(mine[0].c_str()));
			free(malloc(-1UL / 2));
		}
		pthread_barrier_wait(&ends);
	}
	return nullptr;
}

int main()
{
	char line[64];

	setbuf(stdout, nullptr);
	setbuf(stdin, nullptr);
	pthread_barrier_init(&begins, nullptr, 9);
	pthread_barrier_init(&ends, nullptr, 9);
	for (long i = 0; i < 8; i++) {
		pthread_t thread;
		pthread_create(&thread, nullptr, work, (void *)i);
	}
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		rounds = atoi(line);
		pthread_barrier_wait(&begins);
		pthread_barrier_wait(&ends);
		puts("done");
	}
	_Exit(0);
}
"""


def program(argv, line, env=None, **answers):
    return lambda request, runner, directory: Program(runner, argv, line, env, **answers)


def repository(request, runner, directory):
    """git reads objects, and says "done" of each that is there."""
    path = request.getfixturevalue("tmp_path") / "repository"
    git = ["git", "-C", str(path), "-c", "user.name=a", "-c", "user.email=a"]
    runner.run(["git", "init", "-q", str(path)], expect=0)
    for number in range(ROUNDS + 1):
        (path / "file").write_text("".join(f"line {i} of {number}\n" for i in range(200 + number)))
        runner.run([*git, "add", "file"], expect=0)
        runner.run([*git, "commit", "-qm", f"{number}"], expect=0)
    return Program(runner, ["sh", "-c", f"echo ready; exec git -C {path} cat-file --batch-check=done"],
                   lambda number: f"HEAD~{number % ROUNDS}:file")


def server(kind):
    return lambda request, runner, directory: kind(runner, directory, request.getfixturevalue("cluster") if kind is Postgresql else None)


def threaded(allocator):
    def begin(request, runner, directory):
        found = glob.glob(f"/usr/lib/x86_64-linux-gnu/{allocator}.so.*")
        if allocator and not found:
            unavailable(f"{allocator} is not installed: scripts/setup --test")
        argv = [request.getfixturevalue("compiled")(THREADED, "-pthread", compiler="g++", name="threaded")]
        return Program(runner, ["env", f"LD_PRELOAD={found[0]}", *argv] if allocator else argv, lambda number: "9")
    return begin


def containing(allocator):
    """The allocator is a part of the program."""
    def begin(request, runner, directory):
        archive = f"/usr/lib/x86_64-linux-gnu/{allocator}.a"
        if not os.path.exists(archive):
            unavailable(f"{archive} is not installed: scripts/setup --test")
        compiled = request.getfixturevalue("compiled")
        return Program(runner, [compiled(THREADED, "-O2", archive, "-pthread", "-lm", compiler="g++", name=allocator)], lambda number: "9")
    return begin


TARGETS = {
    "sleeper": program([target("sleeper")], lambda number: ["alloc 40", "keep 3", "release 2"][number % 3]),
    "threads": threaded(None),
    "jemalloc": threaded("libjemalloc"), "tcmalloc": threaded("libtcmalloc_minimal"), "mimalloc": threaded("libmimalloc"),
    "with-jemalloc": containing("libjemalloc"), "with-tcmalloc": containing("libtcmalloc_minimal"),
    "python3": program(["/usr/bin/python3", "-S", "-c", PYTHON], lambda number: str(30 + number), {"PYTHONMALLOC": "malloc"}),
    "perl": program(["perl", "-e", PERL], str, {"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}),
    "gawk": program(["gawk", GAWK], str),
    "jq": program(["sh", "-c", "echo ready; exec jq --unbuffered -r \"$0\"", JQ], lambda number: str([*range(number + 20)])),
    "sqlite3": program(["sh", "-c", "echo ready; exec stdbuf -oL sqlite3 -batch"], lambda number: SQLITE.format([*range(number + 20)])),
    "git": repository,
    "nginx": server(Nginx), "node": server(Node), "postgresql": server(Postgresql), "redis": server(Redis),
}


def switches_of(pid):
    """{thread: (whether it sleeps, how often it has begun to)}."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
            found[path.parent.name] = status["State"][0] == "S", status["voluntary_ctxt_switches"], status["nonvoluntary_ctxt_switches"]
    return found


def await_sleep(pid):
    """Until all of its threads sleep at one moment: none of them has run between two looks."""
    def sleeps():
        first = switches_of(pid)
        return all(state[0] for state in first.values()) and switches_of(pid) == first
    wait_until(sleeps, f"process {pid} does nothing")


def rows(path):
    """{(function, thread's name, how the stack ends, frames): figures}, without the frames of the library, whose functions the C library's
    return to in a process that is measured from inside, too; and names of frames, and the ledger."""
    with contextlib.closing(sqlite3.connect(path)) as data:
        stacks, names = stack_addresses(data)
        found = collections.defaultdict(collections.Counter)
        blocks = {number: values for number, *values in data.execute(f"SELECT count, {', '.join(EXACT)} FROM blocks")}
        sizes = collections.defaultdict(dict)
        for number, bucket, n in data.execute("SELECT count, bucket, blocks FROM size_histogram"):
            sizes[number][f"blocks of size class {bucket}"] = n
        for number, stack, end, function, thread, calls, size in data.execute(
                "SELECT counts.id, stack, end, function, threads.name, calls, counts.bytes FROM counts "
                "JOIN stacks ON stacks.id = stack JOIN threads ON threads.id = thread"):
            frames = tuple(frame if frame[0] else None for frame in with_loops_alike(stacks[stack]) if not (frame[0] or "").startswith(LIBRARY))
            found[FIRST.get(function, function), thread, end, frames].update(
                {"calls": calls, "called bytes": size, **dict(zip(EXACT, blocks.get(number, ()))), **sizes[number]})
        return {key: {name: value for name, value in row.items() if value} for key, row in found.items()}, names, Recording(path).ledger


def show(key, names):
    function, thread, end, frames = key
    return "\n".join([f"{function} of thread {thread}, {end}:", *(
        f"    {os.path.basename(frame[0])}+{frame[1]:#x} {names.get(frame, '')}".rstrip() if frame else "    -" for frame in frames)])


def differences(uprobe, inside, names):
    keys = [key for key in {**uprobe, **inside} if uprobe.get(key) != inside.get(key)]
    return [f"{len(keys)} of {len(uprobe)} rows differ", *(
        f"uprobe {uprobe.get(key)}\ninside {inside.get(key)}\n{show(key, names)}" for key in keys[:5])] if keys else []


def work(served, first):
    for number in range(first, first + ROUNDS):
        served.ask(number)
    await_sleep(served.pid)


def assert_equal(one, other):
    uprobe, names, uprobe_ledger = rows(one)
    inside, _, inside_ledger = rows(other)
    assert uprobe_ledger["lost"] == 0 and uprobe_ledger["events"] > 100
    wrong = differences(uprobe, inside, names)
    assert not wrong, "\n".join(wrong)
    assert uprobe_ledger == inside_ledger


class Stopped(contextlib.AbstractContextManager):
    """The process does nothing."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        stop(self.pid)
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def dump(run, allocprof, recorder, path):
    run([allocprof, "ctl", "-p", recorder.process.pid, "dump", "-o", path], expect=0)
    return path


# mimalloc's posix_memalign goes on to another function of its own by a jump through a word, which leads to the library in a process that is
# measured from inside: for a probe a call of the library's.
@pytest.mark.fast("redis", "threads")
@pytest.mark.parametrize("name", [name for name in TARGETS if name != "mimalloc"])
def test_at_a_time(request, run, runner, allocprof, directory, tmp_path, name):
    """What is compared is from when both count to when neither does, in both of which moments the process is stopped."""
    served = TARGETS[name](request, runner, directory)
    work(served, 0)

    def begin(engine_name):
        return Measured(runner, allocprof, served.pid, tmp_path / engine_name, "record", "--live", "--max-depth=512", engine=engine_name)

    for _ in range(TRIES):
        inside = begin("inside")
        with Stopped(served.pid):
            uprobe = begin("uprobe")
            early = Recording(dump(run, allocprof, inside, tmp_path / "early")).ledger
        if not early["events"] + early["frees"] + early["frees_unknown"] + early["frees_null"]:
            break
        uprobe.finish()
        inside.finish()
    work(served, ROUNDS)
    with Stopped(served.pid):
        dump(run, allocprof, inside, tmp_path / "dump")
        uprobe.finish()
    inside.finish()
    served.end()
    assert_equal(tmp_path / "uprobe", tmp_path / "dump")


@pytest.mark.fast("nginx")
@pytest.mark.parametrize("name", [name for name in TARGETS if name not in ("node", "postgresql", "redis")])
def test_by_turns(request, runner, allocprof, directory, tmp_path, name):
    """node compiles what runs often, PostgreSQL's catalogue grows, and redis looks for idle connections once a second."""
    served = TARGETS[name](request, runner, directory)
    work(served, 0)
    for engine_name in ("uprobe", "inside"):
        recorder = Measured(runner, allocprof, served.pid, tmp_path / engine_name, "record", "--live", "--max-depth=512",
                            engine=engine_name)
        work(served, 0)
        recorder.finish()
    served.end()
    assert_equal(tmp_path / "uprobe", tmp_path / "inside")
