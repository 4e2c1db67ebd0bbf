# SPDX-License-Identifier: GPL-3.0-or-later
"""Several running processes in one recording: by their numbers (-p A,B), their children (--follow), by the name of their program
(--name) and by their control group (--cgroup), with those that start while it is recorded."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from measured import Recorder
from servers import Postgresql
from support import TIMEOUT_SECONDS, Obedient, Recording, control_group, wait_until, wait_until_counting


class Several(Recorder):
    """allocprof while it measures the processes that @choice names."""

    def __init__(self, runner, allocprof, data, *choice, command="record"):
        super().__init__(runner, [allocprof, command, "-o", data, *choice])


def calls_by_pid(data, size=32):
    """Calls of malloc with blocks of @size bytes, by process."""
    rows = Recording(data).database.execute("SELECT pid, sum(calls), sum(bytes) FROM calls WHERE function = 'malloc' "
                 f"AND bytes = {size} * calls GROUP BY pid")
    return {pid: calls for pid, calls, _ in rows}


@pytest.fixture
def named(target, tmp_path):
    """named(program) is a copy of it with a name that no other program has; each copy in a directory of its own."""
    name = f"ap{os.getpid()}many"

    def copy(program):
        directory = tmp_path / program
        directory.mkdir()
        return pathlib.Path(shutil.copy(target(program), directory / name))

    copy.name = name
    return copy


@pytest.fixture
def group():
    with control_group() as made:
        yield made


@pytest.mark.parametrize("live", [[], ["--live"]])
def test_numbers(runner, allocprof, target, tmp_path, live):
    """Each process's calls are its own, and their sum is the recording's; one that nobody named is not in it."""
    processes = [Obedient(runner, [target("sleeper")]) for _ in range(4)]
    data = tmp_path / "data"
    numbers = [process.pid for process in processes]
    several = Several(runner, allocprof, data, *live, "-p", f"{numbers[0]},{numbers[1]}", "-p", numbers[2])
    for i, process in enumerate(processes):
        process.ask(f"alloc {100 + i}")
    # One may end before the others.
    processes[0].exit()
    processes[1].ask("alloc 50")
    said = several.finish()
    for process in processes[1:]:
        process.exit()
    assert calls_by_pid(data) == {numbers[0]: 100, numbers[1]: 151, numbers[2]: 102}
    folded = runner.run([allocprof, "folded", "--by=pid", data], expect=0).stdout.decode().splitlines()
    assert {line.split(";")[0]: int(line.rsplit(" ", 1)[1]) for line in folded} == {
        f"sleeper_{numbers[0]}": 100, f"sleeper_{numbers[1]}": 151, f"sleeper_{numbers[2]}": 102}
    report = runner.run([allocprof, "report", "--by=pid", data], expect=0).stdout.decode()
    assert all(f"process sleeper {number}\n" in report for number in numbers[:3])
    assert said.count("go on without probes") == 1 and "the measured processes go on without probes" in said
    recording = Recording(data)
    assert recording.meta["attached_pids"] == ",".join(map(str, numbers[:3]))
    assert recording.meta["attached_command"] == "sleeper (3 processes)"
    assert recording.ledger["events"] == 353 and recording.ledger["lost"] == 0


@pytest.mark.parametrize("engine", [[], ["--engine=inside"]], ids=" ".join)
def test_stat(runner, allocprof, target, tmp_path, engine):
    processes = [Obedient(runner, [target("sleeper")]) for _ in range(2)]
    several = Several(runner, allocprof, tmp_path / "stat", *engine, "-p", ",".join(str(process.pid) for process in processes),
                      command="stat")
    for process in processes:
        process.ask("alloc 1000")
        process.exit()
    # All have ended, and so has it.
    assert several.process.wait(TIMEOUT_SECONDS) == 0
    said = " ".join((tmp_path / "stat").read_text().split())
    assert "Allocation counts for sleeper (2 processes): calls function bytes requested internal 2,000 malloc 64,000" in said
    assert "the measured processes had" in said


def test_follow(runner, allocprof, target, tmp_path):
    """What it starts from the attach on is measured; without the option it is not."""
    for options, expected in ((["--follow"], 200), ([], 0)):
        shell = runner.start(["sh", "-c", 'read line; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "$0"; done',
                              target("short_children")], stdin=subprocess.PIPE)
        data = tmp_path / f"data{expected}"
        several = Several(runner, allocprof, data, *options, "-p", shell.pid)
        shell.communicate(b"\n", timeout=TIMEOUT_SECONDS)
        # The recording ends with the process that is attached to.
        assert several.process.wait(TIMEOUT_SECONDS) == 0
        assert sum(calls_by_pid(data, 40).values()) == expected
        if options:
            assert Recording(data).ledger["lost"] == 0


def test_children_from_before(runner, allocprof, tmp_path):
    """They are not measured, which is said with what to do."""
    parent = runner.start(["sh", "-c", 'sleep 1000 & echo $!; read line'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    several = Several(runner, allocprof, tmp_path / "data", "--follow", "-p", parent.pid)
    said = several.finish()
    os.kill(child, signal.SIGTERM)
    parent.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    assert f"process {parent.pid} has 1 child, which was not measured: {child}" in said
    assert f"as well: -p {child}" in said


def test_name(runner, allocprof, named, tmp_path):
    """Those that run, and those that a shell starts later, of which none is missed though they live for a moment."""
    first = Obedient(runner, [named("sleeper")])
    short = named("short_children")
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--name", named.name[:-2] + "*")
    first.ask("alloc 77")
    later = Obedient(runner, [first.process.args[0]])
    later.ask("alloc 33")
    runner.run(["sh", "-c", 'i=0; while [ $i -lt 200 ]; do "$0"; i=$((i + 1)); done', short], expect=0)
    # The recording outlives all of them.
    first.exit()
    later.exit()
    several.finish()
    assert calls_by_pid(data) == {first.pid: 77, later.pid: 33}
    short_calls = calls_by_pid(data, 40)
    assert sum(short_calls.values()) == 2000 and set(short_calls.values()) == {10}
    assert Recording(data).ledger["lost"] == 0


def test_five_hundred_a_second(runner, allocprof, named, tmp_path):
    keeper = Obedient(runner, [named("sleeper")])
    short = named("short_children")
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--name", named.name)
    runner.run([short, 1000, 500], expect=0)
    keeper.exit()
    said = several.finish()
    assert sum(calls_by_pid(data, 40).values()) == 10000, said


def test_user(runner, allocprof, named, tmp_path):
    """Those of a user, by its name or number, and those that it starts later; of others none, whatever their name."""
    program = named("sleeper")
    program.parent.chmod(0o755)
    as_user = ["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups"]
    own, other = Obedient(runner, [*as_user, program]), Obedient(runner, [program])
    for i, choice in enumerate((["-a", "--user", "4242"], ["--name", named.name, "--user=4242"])):
        data = tmp_path / f"data{i}"
        several = Several(runner, allocprof, data, *choice)
        later, others = Obedient(runner, [*as_user, program]), Obedient(runner, [program])
        for process, n in ((own, 10), (other, 20), (later, 30), (others, 40)):
            process.ask(f"alloc {n}")
        later.exit()
        others.exit()
        several.finish()
        assert calls_by_pid(data) == {own.pid: 10, later.pid: 30}
    own.exit()
    other.exit()


def test_group(runner, allocprof, target, group, tmp_path):
    """Those that are in it, below it, and what comes into it and executes a program; no others."""
    inside, outside = (Obedient(runner, [target("sleeper")]) for _ in range(2))
    (group / "below").mkdir()
    (group / "below" / "cgroup.procs").write_text(str(inside.pid))
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--cgroup", group)
    later = Obedient(runner, ["sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$1"', group, target("sleeper")])
    for process, n in ((inside, 10), (outside, 20), (later, 30)):
        process.ask(f"alloc {n}")
        process.exit()
    several.finish()
    (group / "below").rmdir()
    assert calls_by_pid(data) == {inside.pid: 10, later.pid: 30}


def test_group_by_a_word(runner, allocprof, target, group, tmp_path):
    """A unit's name is a word of the path, as is the id of a container."""
    container = "0123456789abcdef" * 4
    (group / f"docker-{container}.scope").mkdir()
    process = Obedient(runner, [target("sleeper")])
    (group / f"docker-{container}.scope" / "cgroup.procs").write_text(str(process.pid))
    for i, word in enumerate((container[:12], container, f"docker-{container}.scope")):
        several = Several(runner, allocprof, tmp_path / f"{i}", "--cgroup", word)
        process.ask("alloc 5")
        several.finish()
        assert calls_by_pid(tmp_path / f"{i}") == {process.pid: 5}
    process.exit()
    (group / f"docker-{container}.scope").rmdir()


def test_two_hundred(runner, allocprof, named, tmp_path):
    program = named("sleeper")
    processes = [Obedient(runner, [program]) for _ in range(200)]
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--name", named.name)
    for i, process in enumerate(processes):
        process.ask(f"alloc {i + 1}")
    several.finish()
    for process in processes:
        process.exit()
    assert calls_by_pid(data) == {process.pid: i + 1 for i, process in enumerate(processes)}


def test_one_without_an_allocator(runner, allocprof, target, tmp_path):
    """Of numbers each has to be measurable."""
    process = Obedient(runner, [target("sleeper")])
    done = runner.run([allocprof, "record", "-o", tmp_path / "data", "-p", f"{process.pid},2147483646"], expect=125)
    assert b"there is no process 2147483646" in done.stderr
    process.exit()


@pytest.mark.parametrize("words, sentence", [
    (["--name", "no-such-one"], "no process that runs now has the name 'no-such-one'"),
    (["--cgroup", "/no/such/one"], "no process that runs now is in the control group /no/such/one"),
    (["--name", "no-such-one", "--user", "daemon"], "no process that runs now has the name 'no-such-one' and is of the user 'daemon'"),
    (["-a", "--user", "no-such-one"], "there is no user 'no-such-one'"),
    (["--engine=inside", "--name", "python*"], "--engine=inside does not notice processes that start later"),
])
def test_not_measured(runner, allocprof, words, sentence):
    assert sentence in runner.run([allocprof, "stat", *words], expect=125).stderr.decode()


@pytest.mark.parametrize("words, sentence", [
    (["-p", "1,x"], "'x' is no process id"),
    (["-p", "1,"], "'' is no process id"),
    (["--name", "a", "-p", "1"], "-p and --name cannot be used together"),
    (["-a", "--name", "daemon"], "-a and --name cannot be used together"),
    (["--user", "daemon"], "no target; give a command to run as 'daemon', or -a for all processes of that user"),
    (["--follow", "true"], "--follow is for -p"),
    (["--cgroup", "a", "true"], "--cgroup and the command 'true' cannot be used together"),
])
def test_refused(runner, allocprof, words, sentence):
    assert sentence in runner.run([allocprof, "stat", *words], expect=64).stderr.decode()


def test_backends(runner, allocprof, cluster, directory, tmp_path):
    """PostgreSQL starts a process for each connection: all of them are in the recording."""
    served = Postgresql(runner, directory, cluster)
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--name", "postgres")
    backends = {served.one_more() for _ in range(20)}
    several.finish()
    served.end()
    assert backends <= {pid for (pid,) in Recording(data).database.execute("SELECT DISTINCT pid FROM calls")}
    assert Recording(data).ledger["lost"] == 0


def test_one_that_cannot_be_measured(runner, run, allocprof, named, tmp_path):
    """A static program without symbols among those of the name is said to be missing; given by its number it is refused."""
    source = tmp_path / "static.c"
    source.write_text("#include <stdlib.h>\n#include <unistd.h>\nint main(void)\n{\n\tchar c;\n\n"
                      "\twhile (read(0, &c, 1) == 1)\n\t\tfree(malloc(c));\n}\n")
    (tmp_path / "static").mkdir()
    program = tmp_path / "static" / named.name
    run(["gcc", "-static", "-s", "-o", program, source], expect=0)
    static = runner.start([program], stdin=subprocess.PIPE)
    dynamic = Obedient(runner, [named("sleeper")])
    data = tmp_path / "data"
    for order in ([dynamic.pid, static.pid], [static.pid, dynamic.pid]):
        done = run([allocprof, "stat", "-p", ",".join(map(str, order))], expect=125)
        assert f"process {static.pid} has no allocator that can be found by name" in done.stderr.decode()
    several = Several(runner, allocprof, data, "--name", named.name)
    dynamic.ask("alloc 5")
    said = several.finish()
    dynamic.exit()
    static.communicate(b"abc", timeout=TIMEOUT_SECONDS)
    assert calls_by_pid(data) == {dynamic.pid: 5}
    assert f"process {static.pid} has no allocator that can be found by name" in said and "not complete" in said


def test_forked_while_it_attaches(runner, allocprof, named, tmp_path):
    """A server that forks without pause: each of its processes is measured from when the recording begins."""
    source = tmp_path / "prefork.c"
    source.write_text(r"""
#include <stdlib.h>
#include <unistd.h>

/* Each child makes 10 calls once it is told to by the end of its input, and then ends. */
int main(void)
{
	write(1, "ready\n", 6);
	for (int i = 0; i < 300; i++) {
		if (!fork()) {
			char c;

			while (read(0, &c, 1) > 0)
				;
			for (int j = 0; j < 10; j++)
				free(malloc(48));
			_exit(0);
		}
		usleep(3000);
	}
	char c;
	while (read(0, &c, 1) > 0)
		;
	sleep(1);
}
""")
    (tmp_path / "prefork").mkdir()
    program = tmp_path / "prefork" / named.name
    runner.run(["gcc", "-O1", "-fno-builtin", "-o", program, source], expect=0)
    server = Obedient(runner, [program])
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--name", named.name)
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 300, "all are forked")
    server.exit()
    several.finish()
    calls = calls_by_pid(data, 48)
    assert len(calls) == 300 and set(calls.values()) == {10}


def test_group_of_another_name(runner, allocprof, target, group, tmp_path):
    """A path is that of one group, with or without a slash behind it; a word that fits two of them is refused."""
    processes = []
    for directory in (group / "one", group / "one" / "same", group / "two", group / "two" / "same"):
        directory.mkdir()
        processes.append(Obedient(runner, [target("sleeper")]))
        (directory / "cgroup.procs").write_text(str(processes[-1].pid))
    refused = runner.run([allocprof, "stat", "--cgroup", "same"], expect=125).stderr.decode()
    assert f"'same' fits several control groups, /{group.name}/" in refused
    for i, path in enumerate((f"{group}/one/", f"/{group.name}/one")):
        several = Several(runner, allocprof, tmp_path / f"{i}", "--cgroup", path)
        for process in processes:
            process.ask("alloc 3")
        several.finish()
        assert calls_by_pid(tmp_path / f"{i}") == {process.pid: 3 for process in processes[:2]}
    for process in processes:
        process.exit()
    for directory in (group / "one" / "same", group / "one", group / "two" / "same", group / "two"):
        wait_until(lambda place=directory: not (place / "cgroup.procs").read_text(), "the group is empty")
        directory.rmdir()


def test_own_processes(runner, allocprof, target, group, tmp_path):
    """allocprof in the group that it measures does not measure itself."""
    process = Obedient(runner, [target("sleeper")])
    (group / "cgroup.procs").write_text(str(process.pid))
    data = tmp_path / "data"
    recorder = runner.start(["sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$@"', group, allocprof, "record", "-o", data,
                             "--cgroup", group], stderr=subprocess.PIPE)
    wait_until_counting(allocprof, recorder)
    process.ask("alloc 4")
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=TIMEOUT_SECONDS)
    process.exit()
    assert {comm for (comm,) in Recording(data).database.execute("SELECT comm FROM processes")} == {"sleeper"}


def test_own_processes_of_top(runner, allocprof, target, group):
    """Neither does its recorder measure the process that shows, nor that one's helpers."""
    process = Obedient(runner, [target("sleeper")])
    (group / "cgroup.procs").write_text(str(process.pid))
    shown = runner.run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs; exec "$@"', group, allocprof, "top", "-b", "-n", "3", "-d", "100ms",
                        "--by=process", "--totals", "--cgroup", group], expect=0).stdout.decode()
    process.exit()
    assert "allocprof top, " in shown and f": sleeper ({process.pid}), " in shown
    assert not [line for line in shown.splitlines() if "allocprof (" in line]


def test_begin_at(runner, allocprof, target, tmp_path):
    """The memory is that of all of them."""
    small, large = (Obedient(runner, [target("sleeper")]) for _ in range(2))
    recorder = runner.start([allocprof, "record", "-o", tmp_path / "data", "--begin-at=rss=20M", "-p", f"{small.pid},{large.pid}"],
                            stderr=subprocess.PIPE)
    assert b"of resident memory of the processes" in recorder.stderr.readline()
    large.ask("keep 700000")
    wait_until_counting(allocprof, recorder)
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=TIMEOUT_SECONDS)
    assert recorder.returncode == 0
    small.exit()
    large.exit()


def test_faults_of_later_ones(runner, allocprof, named, tmp_path):
    """A process that joins is followed from its exec on: its faults are those that it was charged with from then on."""
    keeper = Obedient(runner, [named("sleeper")])
    data = tmp_path / "data"
    several = Several(runner, allocprof, data, "--faults", "--name", named.name)
    later = runner.start([named("faults")], stdout=subprocess.PIPE)
    output, _ = later.communicate(timeout=TIMEOUT_SECONDS)
    assert later.returncode == 0
    # What it counted itself; copied are those of its child.
    counted = {name: int(number) for name, number in (line.split("=") for line in output.decode().split() if "=" in line)}
    least = sum(number for name, number in counted.items() if name != "copied")
    keeper.exit()
    several.finish()
    recording = Recording(data)
    [(faults,)] = recording.sql(f"SELECT sum(calls) FROM calls WHERE pid = {later.pid}")
    # Those that a kernel without fentry shows to no program are lost, and none else.
    lost = recording.ledger["lost"]
    assert faults + lost >= least and lost in (0, counted["filled"] + counted["locked"])
