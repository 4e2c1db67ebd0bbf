# SPDX-License-Identifier: GPL-3.0-or-later
"""The two engines of stat and record: uprobe, in the kernel, and preload, by a library that is loaded into the
command, which needs no privileges."""

import collections
import contextlib
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import pytest

import support
from support import INPUT, by_address, libc_path, programs, read_report, stated, wait_until

USER = 65534

@pytest.fixture
def stat(run, allocprof, tmp_path):
    """The report of an engine, and how the command ended."""
    def counted(engine, argv, expect=0, options=(), **popen):
        output = tmp_path / f"{engine}.json"
        result = run([allocprof, "stat", "--json", f"--engine={engine}", "-o", output, *options, "--", *argv],
                     expect=expect, **popen)
        report = read_report(output)
        assert report["engine"] == engine
        return report, result
    return counted


def calls(report):
    """Calls by function; those that are one for a probe are added up."""
    first = {name: names[0] for names in by_address(libc_path()) for name in names}
    sums = collections.Counter()
    for name, entry in report["functions"].items():
        sums[first.get(name, name)] += entry["calls"]
    return {name: n for name, n in sums.items() if n}


# Children of vfork(2) that execute nothing: they are a part of their parent.
NOT_SEEN = {"vfork": 1, "ten_vforking": 10}


@pytest.mark.fast("every_function", "threads", "vfork", "shell")
@pytest.mark.parametrize("name", list(programs(str)))
def test_equal_counts(stat, target, name):
    words, status = programs(target)[name]
    argv = [str(word) for word in words]
    (uprobe, _), (preload, _) = (stat(engine, argv, status, stdin=INPUT) for engine in ("uprobe", "preload"))
    got, expected = calls(preload), calls(uprobe)
    # The dynamic linker calls free(NULL) for a library more.
    assert got.pop("free", 0) >= expected.pop("free", 0)
    assert got == expected
    assert preload["deallocations"] == uprobe["deallocations"]
    assert preload["processes"] == uprobe["processes"] - NOT_SEEN.get(name, 0)
    assert preload["complete"] and preload["lost"]["total"] == 0


def test_stated(stat, target):
    """What every_function states, to the byte."""
    functions = stat("preload", [target("every_function")], 3)[0]["functions"]
    expected = {name: (slot.calls, slot.bytes) for name, slot in stated("every_function").items()
                if slot.calls}
    assert {name: (functions[name]["calls"], functions[name]["bytes"]) for name in expected} == expected


def rows(path):
    """Calls by function, thread's name and stack; those by stacks that the tables cannot express apart."""
    sums, cut = collections.Counter(), collections.Counter()
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as data:
        stacks, _ = support.stack_addresses(data)
        ends = dict(data.execute("SELECT id, end FROM stacks"))
        ledger = dict(data.execute("SELECT name, value FROM ledger"))
        meta = dict(data.execute("SELECT key, value FROM meta"))
        for function, thread, stack, n in data.execute(
                "SELECT c.function, t.name, c.stack, c.calls FROM counts c JOIN threads t ON t.id = c.thread"):
            # Where code is that belongs to no file differs from run to run.
            frames = tuple(place if place[0] else None for place in stacks[stack])
            to = cut if ends[stack] == "unsupported" else sums
            to["aligned_alloc" if function == "memalign" else function, thread, frames] += n
    return sums, cut, ledger, meta


@pytest.mark.parametrize("name", ["every_function", "truth_O2", "truth_realign", "truth_clang"])
def test_equal_stacks(run, allocprof, target, tmp_path, name):
    got = {}
    for engine in ("uprobe", "preload"):
        data = tmp_path / engine
        run([allocprof, "record", f"--engine={engine}", "-o", data, "--", target(name)], expect=None)
        got[engine], cut, ledger, meta = rows(data)
        assert ledger["lost"] == 0 and ledger["events"] == sum(got[engine].values()) + sum(cut.values()) > 0
        assert meta.get("engine") == (None if engine == "uprobe" else engine)
    expected, preload = got["uprobe"], got["preload"]
    # Where the tables do not suffice, libdw goes on for uprobe, from a copy of the stack.
    for (function, thread, frames), n in cut.items():
        whole, = [key for key in expected if key not in preload and key[:2] == (function, thread) and
                  key[2][:len(frames)] == frames and expected[key] == n]
        del expected[whole]
    wrong = [f"{key}: uprobe {expected[key]}, preload {preload[key]}"
             for key in {*expected, *preload} if expected[key] != preload[key]]
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def unprivileged(run, allocprof, public_directory):
    """Runs an installed allocprof as a user without privileges."""
    if os.geteuid():
        pytest.skip("only root can change the user")
    (public_directory / "cli").mkdir()
    (public_directory / "src" / "inside").mkdir(parents=True)
    tool = shutil.copy(allocprof, public_directory / "cli")
    shutil.copy(support.BUILD / "src" / "inside" / "liballocprof-inside.so", public_directory / "src" / "inside")
    (public_directory / "out").mkdir()
    os.chown(public_directory / "out", USER, USER)

    def ran(name, options, argv, **popen):
        program = pathlib.Path(shutil.copy(argv[0], public_directory))
        return run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", tool, name, *options, "--",
                    program, *argv[1:]], cwd=public_directory / "out", **popen)
    ran.directory = public_directory / "out"
    return ran


@pytest.mark.parametrize("options", [[], ["--engine=preload"]], ids=["auto", "preload"])
def test_unprivileged_stat(unprivileged, target, options):
    result = unprivileged("stat", ["--json", "-o", "x.json", *options], [target("every_function")], expect=3)
    report = read_report(unprivileged.directory / "x.json")
    assert report["complete"] and report["engine"] == "preload"
    slot = stated("every_function")["malloc"]
    assert (report["functions"]["malloc"]["calls"], report["functions"]["malloc"]["bytes"]) == (slot.calls, slot.bytes)
    assert b"--engine=preload" not in result.stderr, result


def test_unprivileged_record(unprivileged, target):
    unprivileged("record", ["-o", "x.data", "-q"], [target("every_function")], expect=3)
    got, _, ledger, meta = rows(unprivileged.directory / "x.data")
    assert meta["engine"] == "preload" and ledger["lost"] == 0 and ledger["events"] == sum(got.values()) > 0


@pytest.mark.parametrize("options", [["stat", "--start-on=main"], ["record", "--stop-on=main"],
                                     ["stat", "--allocator=mmap"], ["stat", "--ignore=new_*"]], ids=lambda words: " ".join(words))
def test_options_are_refused(run, allocprof, tmp_path, options):
    name, *others = options
    result = run([allocprof, name, "--engine=preload", "-o", tmp_path / "out", *others, "--", "true"], expect=125)
    line, = result.stderr.splitlines()
    assert others[0].split("=")[0].encode() in line and b"--engine=uprobe" in line


# Microseconds that the probes are taken to need for a call, docs/cost.md.
COST = {(): 0.7, ("--live",): 2}


@pytest.mark.slow
@pytest.mark.parametrize("options", list(COST), ids=lambda words: " ".join(words) or "counts")
def test_the_other_engine_is_named(run, allocprof, tmp_path, options):
    """Where the probes took more time than the command, by the figures of the report itself; not to somebody who has
    chosen the engine, nor with -q."""
    # One with as many calls as it takes, and one with hardly any.
    calls = round(0.35e6 / COST[options])
    for script in f"x = [bytes(n % 512) for n in range({calls})]", "pass":
        for said, chosen in ((True, []), (False, ["-q"]), (False, ["--engine=uprobe"]))[:3 if options else 1]:
            result = run([allocprof, "stat", "--json", "-o", tmp_path / "json", *options, *chosen, "--",
                          "/usr/bin/python3", "-c", script], {"PYTHONMALLOC": "malloc", "ALLOCPROF_ENGINE": ""}, expect=0)
            report = read_report(tmp_path / "json")
            calls = sum(entry["calls"] + entry["internal"] for entry in report["functions"].values())
            probes = calls * COST[options] / 1e6
            all_seconds = report["user_seconds"] + report["system_seconds"]
            expected = said and probes >= max(0.3, all_seconds - probes)
            assert (b"--engine=preload" in result.stderr) == expected
            assert script != "pass" or not expected


def test_unknown_engine(run, allocprof):
    assert b"'ptrace' is no engine" in run([allocprof, "stat", "--engine=ptrace", "true"], expect=64).stderr
    assert b"ALLOCPROF_ENGINE" in run([allocprof, "stat", "true"], {"ALLOCPROF_ENGINE": "ptrace"}, expect=64).stderr


def test_no_harm(stat, tmp_path):
    """Output, exit status and signals are the command's, and nothing stays behind."""
    shared = tmp_path / "shared"
    shared.mkdir()
    script = 'echo out; echo err >&2; env | grep -c -e ^LD_PRELOAD -e /allocprof-; ls "$0" | wc -l; kill -s TERM $$'
    _, result = stat("preload", ["sh", "-c", script, shared], 128 + signal.SIGTERM,
                     env={"ALLOCPROF_INSIDE_DIR": str(shared)})
    assert result.stdout == b"out\n0\n1\n" and result.stderr == b"err\n"
    assert os.listdir(shared) == []


# Prints where the shared memory is.
MEMORY = ["grep", "-om1", "/[^ ]*/memory$", "/proc/self/maps"]


def test_directory_is_the_users(stat):
    """Nobody else can make a directory of the name that LD_PRELOAD has, after its end either."""
    _, result = stat("preload", MEMORY)
    made = pathlib.Path(result.stdout.decode().strip()).parent
    users = made.parent
    assert users.name == f"allocprof-{os.geteuid()}"
    assert users.stat().st_uid == os.geteuid() and users.stat().st_mode & 0o777 == 0o700
    assert not made.exists()


PARENTS = ["/dev/shm", "/tmp", "/var/tmp"]
OWN_PARENTS = "; ".join(f"mount -t tmpfs -o mode=1777{',size=64m' * (parent == '/dev/shm')} none {parent}" for parent in PARENTS)


@pytest.mark.parametrize("taken", ["mkdir $place && chown 65534 $place", "ln -s / $place", "mkdir -m 0777 $place"])
def test_directory_that_is_not_the_users(run, taken):
    """Another user cannot keep this one from measuring: a directory of another name is taken, by all measurements the same."""
    # The build directory may be in one of them.
    script = f"""mount --bind {support.BUILD} /mnt || exit 98; {OWN_PARENTS}
        for parent in {" ".join(PARENTS)}; do place=$parent/allocprof-$(id -u); {{ {taken}; }} || exit 99; done
        for i in 1 2; do "$@" || exit; done; ls -d /tmp/allocprof-*-*"""
    result = run(["unshare", "-m", "sh", "-c", script, "sh", "/mnt/cli/allocprof", "stat", "--engine=preload", "-o", "/dev/null",
                  "--", *MEMORY], expect=0)
    # One line for each measurement, and the directory: /tmp's, which has most room.
    memory, again, made = result.stdout.decode().split()
    assert re.fullmatch(f"/tmp/allocprof-{os.geteuid()}-......", made)
    assert pathlib.Path(memory).parents[1] == pathlib.Path(again).parents[1] == pathlib.Path(made), result


def test_process_on_its_way(run, allocprof, target, tmp_path):
    """The measurement is over when the dynamic linker looks for the library: it is there, and does nothing. The next
    measurement removes it."""
    memory, fifo, printed = tmp_path / "memory", tmp_path / "fifo", tmp_path / "printed"
    memory.mkdir()
    os.mkfifo(fifo)
    measured = [allocprof, "stat", "--engine=preload", "-o", tmp_path / "stat", "--"]
    env = {"ALLOCPROF_INSIDE_DIR": str(memory)}
    run([*measured, target("late_child"), fifo, printed], env, expect=0)
    left, = memory.iterdir()
    assert {path.name for path in left.iterdir()} == {"inside.so", "other.so", "memory"}
    fifo.write_text("x")
    wait_until(lambda: "status" in printed.read_text(), "the process has ended")
    assert printed.read_text() == "none\nstatus 0\n"
    run([*measured, "sh", "-c", "no-such-command; true"], env, expect=0)
    assert not list(memory.iterdir())


@pytest.mark.parametrize("kib, why", ((1 << 17, None), (1 << 10, b"raise the limit of file sizes (ulimit -f)")))
def test_limit_of_file_sizes(run, allocprof, tmp_path, kib, why):
    """The shared memory is as large as the limit allows; the command has the signal as it was."""
    done = run(["prlimit", f"--fsize={kib << 10}", "--", allocprof, "stat", "--engine=preload", "-o", tmp_path / "x", "--",
                "sh", "-c", "echo ran; grep SigBlk /proc/self/status"], expect=125 if why else 0)
    assert done.stdout == (b"" if why else b"ran\nSigBlk:\t0000000000000000\n")
    assert (why or b"") in done.stderr, done


@pytest.mark.slow
def test_killed_ones_are_swept(runner, allocprof, stat, tmp_path):
    """What an allocprof that was killed has left is removed by the next one, and nothing that is in use."""
    def left():
        return {name for name in os.listdir(tmp_path) if name.startswith("allocprof-")}

    env = {"ALLOCPROF_INSIDE_DIR": str(tmp_path)}
    command = [allocprof, "stat", "--engine=preload", "--", "sleep", "60"]
    killed, running = (runner.start(command, env) for _ in range(2))
    for recording in killed, running:
        support.wait_until_counting(allocprof, recording)
    assert len(left()) == 2
    killed.kill()
    killed.wait()
    stat("preload", ["true"], env=env)
    kept, = left()
    assert (tmp_path / kept / "memory").exists()
    (tmp_path / "allocprof-others").mkdir()
    running.send_signal(signal.SIGINT)
    running.wait(support.TIMEOUT_SECONDS)
    assert left() == {"allocprof-others"}


@pytest.mark.slow
def test_check(run, allocprof, target, tmp_path):
    """The limits that --update writes are the same."""
    limits = {}
    for engine in "uprobe", "preload":
        budget = tmp_path / f"{engine}.json"
        run([allocprof, "check", "--update", f"--engine={engine}", "-r1", "--budget", budget, "--",
             target("live_shapes"), "grow"], expect=0)
        limits[engine] = budget.read_text()
        run([allocprof, "check", "-r1", "--budget", budget], {"ALLOCPROF_ENGINE": engine}, expect=0)
    assert limits["preload"] == limits["uprobe"] and "total_allocations" in limits["uprobe"]
    assert b"'ptrace' is no engine" in run([allocprof, "check", "--engine=ptrace", "--budget", budget], expect=64).stderr


def test_not_found(run, allocprof):
    assert run([allocprof, "stat", "--engine=preload", "/nonexistent"], expect=127).stdout == b""
    assert run([allocprof, "stat", "--engine=preload", "/etc/passwd"], expect=126).stdout == b""


def test_own_heaps(stat):
    """The note on them is the same."""
    python = ["/usr/bin/python3", "-S", "-c", ""]
    assert stat("preload", python)[0]["own_heaps"] == stat("uprobe", python)[0]["own_heaps"]
    assert "own_heaps" not in stat("preload", python, env={"PYTHONMALLOC": "malloc"})[0]


CHILDREN = r"""
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static long kilobytes(const char *pattern)
{
	struct stat status;
	glob_t found;
	long blocks = -1;

	if (!glob(pattern, 0, NULL, &found) && !stat(found.gl_pathv[0], &status))
		blocks = status.st_blocks / 2;
	globfree(&found);
	return blocks;
}
int main(int argc, char **argv)
{
	long n = atol(argv[2]), most = atol(argv[3]), after = -1;

	for (long i = 0; i < n; i++) {
		if (!fork()) {
			void *block = NULL;

			_exit(posix_memalign(&block, 64, 10) || !block);
		}
		wait(NULL);
	}
	for (int i = 0; i < 600 && (after < 0 || after > most); i++) {
		usleep(100000);
		after = kilobytes(argv[1]);
	}
	printf("%ld\n", after);
	return after < 0 || after > most;
}
"""


@pytest.mark.slow
def test_memory_of_ended_processes(stat, tmp_path):
    """It is given back while others run, and what they counted stays. In memory a page has no more than its bytes."""
    n, most = 2500, 3000
    (tmp_path / "children.c").write_text(CHILDREN)
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "children", tmp_path / "children.c"], check=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        report, _ = stat("preload", [tmp_path / "children", f"{directory}/allocprof-*/memory", str(n), str(most)],
                         env={"ALLOCPROF_INSIDE_DIR": directory})
    assert report["complete"] and report["processes"] == n + 1
    function = report["functions"]["posix_memalign"]
    assert (function["calls"], function["bytes"]) == (n, 10 * n)
