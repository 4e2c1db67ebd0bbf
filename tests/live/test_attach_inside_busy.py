# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that is measured from inside (--engine=inside -p) while it does what disturbs a debugger, or beside other tools: it goes on
as without, whenever it is entered and left. ALLOCPROF_TRIES says how often it is."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess

import pytest

from measured import CHECKING, JEMALLOC, LATER, LIBRARY, MEMORY, await_untouched, code_of, differences, maps_of, moves_references, writable_of
from servers import Load, Nginx, Node, Postgresql, Redis
from support import TIMEOUT_SECONDS, Obedient, control_group, read_report, states_of, unavailable, wait_until

TRIES = int(os.environ.get("ALLOCPROF_TRIES", 12))
KINDS = [["stat"], ["record"], ["record", "--live"], ["record", "--live", "--sample", "64K"]]
# Where each try may meet a thread on a coroutine's stack, one that cannot be stopped, or the dynamic linker at work, it may be refused.
REFUSED = {"coroutines": b"no thread on a stack of its own", "libraries": b"its dynamic linker was at work",
           "vforks": b"waited for a child of vfork(2)"}


@pytest.fixture
def engine():
    """Each case names its own."""


# Where an address within the library may be that of an interrupted instruction, the shared memory stays until the next measurement.
INTERRUPTED = ["signals", "jumps"]


def is_as_before(process, descriptors, names=LIBRARY):
    """Nothing is left but the named mapping: no thread is stopped, no descriptor open."""
    left = [line for line in maps_of(process.pid) if MEMORY in line]
    return (not states_of(process.pid) & set("tT") and all(names in line for line in left)
            and len(os.listdir(f"/proc/{process.pid}/fd")) <= descriptors)


@pytest.mark.parametrize("what", ["signals", "jumps", "forks", "vforks", "threads", "libraries", "coroutines", "no-new-code"])
def test_restless(run, allocprof, runner, target, compiled, tmp_path, what):
    library = compiled(LATER, "-shared", "-fPIC", name="later.so")
    process = Obedient(runner, [target("restless"), what, library])
    descriptors = len(os.listdir(f"/proc/{process.pid}/fd")) + (what == "libraries")
    refused = 0
    for number in range(TRIES):
        done = run([allocprof, *KINDS[number % len(KINDS)], "--engine=inside", "--duration", "5ms", "-o", tmp_path / "out", "-p", process.pid])
        assert done.status == 0 or (done.status == 125 and REFUSED.get(what, b"none is") in done.stderr), done.stderr
        refused += done.status == 125
        assert is_as_before(process, descriptors, MEMORY if what in INTERRUPTED else LIBRARY), (states_of(process.pid), os.listdir(f"/proc/{process.pid}/fd"), [line for line in maps_of(process.pid) if MEMORY in line])
    assert refused < TRIES
    process.exit()


def files_of(pid):
    """What its descriptors are; one may be closed meanwhile."""
    found = []
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(path))
    return found


def is_measured(done):
    assert done.status == 0 or b"another allocprof does so now" in done.stderr, done
    return done.status == 0


def measure_many_times(run, allocprof, runner, output, pid):
    """Every fifth allocprof is killed at some moment. Nothing is left but the named mapping, each word is as it was, and no instruction has
    changed."""
    code, writable = code_of(pid), writable_of(pid)
    moments = random.Random(7919)
    for number in range(TRIES):
        words = [allocprof, *KINDS[number % len(KINDS)], "--engine=inside", "-o", output, "-p", pid]
        if number % 5 < 4:
            # What watches one that was killed may have put back the words, and not be done yet.
            wait_until(lambda words=words: is_measured(run([*words, "--duration", "10ms"])), "it can be measured")
            # What one that was killed has left is gone with the next.
            left = [line for line in maps_of(pid) if MEMORY in line]
            assert not states_of(pid) & set("tT") and all(LIBRARY in line for line in left), (number, states_of(pid), left)
            assert not [path for path in files_of(pid) if MEMORY in path], (number, files_of(pid))
        else:
            recorder = runner.start(words, stderr=subprocess.DEVNULL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                recorder.wait(moments.random() * 0.4)
            recorder.kill()
            recorder.wait(TIMEOUT_SECONDS)
        # What watches it leaves the process for one that was killed.
        await_untouched(pid, code, is_killed=number >= 4)
        assert writable_of(pid) == writable


@pytest.mark.parametrize("words", KINDS, ids=" ".join)
def test_killed(runner, measure, target, words):
    """What watches it leaves the process, and no other allocprof has to come."""
    process = Obedient(runner, [target("sleeper")])
    process.ask("alloc 1")
    before, descriptors = code_of(process.pid), os.listdir(f"/proc/{process.pid}/fd")
    measure(process, *words).finish()
    measured = measure(process, *words)
    process.ask("alloc 10")
    assert differences(code_of(process.pid), before, is_killed=True)
    measured.process.kill()
    measured.process.wait(TIMEOUT_SECONDS)
    await_untouched(process.pid, before, is_killed=True)
    wait_until(lambda: is_as_before(process, len(descriptors)), "nothing is left")
    process.ask("alloc 10")
    process.exit()


@pytest.mark.parametrize("allocator", ["C library's", pytest.param("program's", marks=moves_references)])
def test_many_times(run, allocprof, runner, compiled, tmp_path, allocator):
    """Threads that check their blocks."""
    if allocator == "program's" and not JEMALLOC.exists():
        unavailable("libjemalloc-dev is not installed: scripts/setup --test")
    flags = [JEMALLOC, "-lm", "-lstdc++"] if allocator == "program's" else []
    # With -z now no word is bound later, so that all of them are in pages that cannot be written.
    process = Obedient(runner, [compiled(CHECKING, "-pthread", "-Wl,-z,now", *flags, name="checking")])
    assert any(path.endswith("/checking") and rights == "r--p" for _, _, rights, path, _ in code_of(process.pid))
    measure_many_times(run, allocprof, runner, tmp_path / "out", process.pid)
    process.exit()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the servers are started as other users")
@pytest.mark.parametrize("server", [Nginx, Node, Postgresql, Redis])
def test_servers_many_times(request, run, allocprof, runner, directory, tmp_path, server):
    """All answers are right meanwhile."""
    served = server(runner, directory, request.getfixturevalue("cluster") if server is Postgresql else None)
    with Load(served) as load:
        load.await_more()
        measure_many_times(run, allocprof, runner, tmp_path / "out", served.pid)
        load.await_more()
    served.end()


# As an allocprof leaves it that is killed while it maps the library.
HALF = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	int fd = memfd_create("allocprof-inside", MFD_CLOEXEC);

	if (ftruncate(fd, 1 << 20) || mmap(NULL, 1 << 14, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	close(fd);
	setbuf(stdin, NULL);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		free(malloc(10));
	return 0;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at what is mapped in a process")
def test_half_mapped(measure, runner, compiled):
    """A library that has not been mapped completely is removed, and does not stand in the way."""
    process = Obedient(runner, [compiled(HALF, name="half")])
    half, = [line.split()[0] for line in maps_of(process.pid) if LIBRARY in line]
    measured = measure(process, "stat", "--json")
    process.send("x")
    measured.finish()
    assert read_report(measured.output)["complete"] is True
    assert half not in [line.split()[0] for line in maps_of(process.pid)]
    process.exit()


def test_other_probes(measure, runner, target):
    """Uprobes of another allocprof at the same functions: each engine counts every call once."""
    process = Obedient(runner, [target("sleeper")])
    inside = measure(process, "stat", "--json")
    probes = measure(process, "stat", "--json", engine="uprobe")
    process.ask("alloc 1000")
    inside.finish()
    process.ask("alloc 500")
    probes.finish()
    counted = [read_report(one.output)["functions"]["malloc"]["calls"] for one in (inside, probes)]
    assert counted == [1000, 1500], counted
    process.exit()


@contextlib.contextmanager
def group_to_freeze():
    """A control group in which processes can be frozen."""
    with control_group() as group:
        try:
            yield group
        finally:
            (group / "cgroup.freeze").write_text("0")


def test_frozen(run, allocprof, runner, target):
    """A process of a frozen control group runs nothing; it is left alone, and can be measured when it is thawed."""
    process = Obedient(runner, [target("sleeper")])
    with group_to_freeze() as group:
        (group / "cgroup.procs").write_text(str(process.pid))
        (group / "cgroup.freeze").write_text("1")
        wait_until(lambda: "frozen 1" in (group / "cgroup.events").read_text(), "the group is frozen")
        done = run([allocprof, "stat", "--engine=inside", "-p", process.pid], expect=125)
        assert b"its control group is frozen; thaw it" in done.stderr
        (group / "cgroup.freeze").write_text("0")
        run([allocprof, "stat", "--engine=inside", "--duration", "10ms", "-p", process.pid], expect=0)
        process.ask("alloc 10")
        process.exit()


def test_another_from_inside(measure, run, allocprof, runner, target):
    process = Obedient(runner, [target("sleeper")])
    first = measure(process, "stat", "--json")
    done = run([allocprof, "stat", "--engine=inside", "-p", process.pid], expect=125)
    assert b"another allocprof does so now" in done.stderr, done.stderr
    process.ask("alloc 10")
    first.finish()
    assert read_report(first.output)["functions"]["malloc"]["calls"] == 10
    process.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes another user")
def test_another_without_privileges(run, allocprof, runner, target, public_directory):
    """Who is not root sees that another allocprof measures its process, too."""
    user = ["setpriv", "--reuid=65531", "--regid=65531", "--clear-groups"]
    os.chmod(public_directory, 0o777)
    process = Obedient(runner, [*user, target("sleeper")])
    words = [*user, allocprof, "stat", "--json", "--engine=inside", "-o"]
    first = runner.start([*words, public_directory / "first", "--duration", "60s", "-p", process.pid], stderr=subprocess.DEVNULL)
    wait_until(lambda: MEMORY in "".join(maps_of(process.pid)), "the first one is there")
    # While the first one attaches it traces the process.
    second = [*words, public_directory / "second", "--duration", "10ms", "-p", process.pid]
    wait_until(lambda: b"another allocprof does so now" in run(second, expect=125).stderr, "the second one is refused")
    first.send_signal(signal.SIGINT)
    assert first.wait(TIMEOUT_SECONDS) == 0
    process.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes another user")
@pytest.mark.parametrize("whose", ["root's", "setuid"])
def test_of_another_user(run, allocprof, runner, target, public_directory, whose):
    """Who may not trace it changes nothing; nor if the user has started the program, whose file lends privileges."""
    user = ["setpriv", "--reuid=65531", "--regid=65531", "--clear-groups"]
    program = shutil.copy(target("sleeper"), public_directory / "program")
    if whose == "setuid":
        os.chmod(program, 0o4755)
    process = Obedient(runner, [*(user if whose == "setuid" else []), program])
    before = maps_of(process.pid), code_of(process.pid)
    done = run([*user, allocprof, "stat", "--engine=inside", "-p", process.pid])
    assert done.status == 125 and b"or this user may not (ptrace(2))" in done.stderr, done.stderr
    assert (maps_of(process.pid), code_of(process.pid)) == before
    process.ask("alloc 10")
    process.exit()


@pytest.mark.slow  # the fast tests run in a plain chroot, too, in which none can be made
@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces are root's")
def test_container(run, measure, runner, target):
    """A process with its own mount, PID, user, network and IPC namespaces and a root that cannot be written."""
    if run(["unshare", "-U", "true"]).status:
        unavailable("no namespace of users can be made here")
    process = Obedient(runner, ["unshare", "-m", "-p", "-U", "-r", "-n", "-i", "--fork", "--kill-child", "sh", "-c",
                                "mount -o remount,bind,ro / && ! touch /read-only 2>/dev/null && exec " + str(target("sleeper"))])
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
        process.pid = int(children.read())
    measured = measure(process, "stat", "--json")
    process.ask("alloc 100")
    measured.finish()
    assert read_report(measured.output)["functions"]["malloc"]["calls"] == 100
    process.exit()


def test_within(measure, runner, compiled):
    process = Obedient(runner, [compiled(WITHIN, name="within")])
    measured = measure(process, "record", "--live", "--within", "wanted")
    process.ask("other 100")
    process.ask("wanted 7")
    measured.finish()
    with contextlib.closing(sqlite3.connect(measured.output)) as data:
        assert list(data.execute("SELECT function, sum(calls) FROM calls GROUP BY 1")) == [("malloc", 7)]
    process.exit()


WITHIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void allocate(int n) { while (n--) { void *volatile block = malloc(40); free(block); } }
__attribute__((noinline)) int wanted(int n) { allocate(n); return n; }

int main(void)
{
	char name[32], said[] = "done\n";
	int n, sum = 0;

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (scanf("%31s %d", name, &n) == 2) {
		if (!strcmp(name, "wanted"))
			sum += wanted(n);
		else
			allocate(n);
		fputs(said, stdout);
	}
	return sum < 0;
}
"""


def test_dump(measure, run, allocprof, runner, target, tmp_path):
    """`ctl dump` copies what is live without an end of the recording."""
    process = Obedient(runner, [target("sleeper")])
    measured = measure(process, "record", "--live")
    process.ask("keep 3")
    run([allocprof, "ctl", "-p", measured.process.pid, "dump", "-o", tmp_path / "dump"], expect=0)
    process.ask("keep 4")
    measured.finish()
    for path, live in ((tmp_path / "dump", 3), (measured.output, 7)):
        with contextlib.closing(sqlite3.connect(path)) as data:
            assert list(data.execute("SELECT sum(live) FROM memory")) == [(live,)], path
    process.exit()
