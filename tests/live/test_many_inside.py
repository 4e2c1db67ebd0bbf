# SPDX-License-Identifier: GPL-3.0-or-later
"""Several running processes in one recording by the engine inside of them: by their numbers, in other PID namespaces, and what they
fork while they are measured. All are left: what forked children have of the library, too."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from measured import MEMORY, Recorder, await_untouched, code_of, maps_of
from servers import Postgresql
from support import TIMEOUT_SECONDS, Obedient, Recording, wait_until

# Obeys as sleeper does: "fork" forks a child that says its number and obeys, too, until its parent's input ends.
PREFORK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char *what)
{
	write(1, what, strlen(what));
}

int main(int argc, char **argv)
{
	char line[64], *to;

	say("ready\n");
	for (;;) {
		for (to = line; read(0, to, 1) == 1 && *to != '\n'; to++)
			;
		if (to == line)
			return 0;
		*to = 0;
		if (!strncmp(line, "alloc ", 6)) {
			for (int n = atoi(line + 6); n; n--) {
				void *p = malloc(32);

				__asm__ volatile("" : : "r"(p) : "memory");
				free(p);
			}
		} else if (!strncmp(line, "fork ", 5) && !fork()) {
			/* The child gets its orders through a FIFO. */
			FILE *orders = fopen(line + 5, "r");

			dup2(fileno(orders), 0);
		} else if (!strncmp(line, "exec ", 5)) {
			execl(line + 5, line + 5, NULL);
		}
		say("done\n");
	}
}
"""


def mallocs(data):
    """Calls of malloc with blocks of 32 bytes, by process."""
    return dict(Recording(data).database.execute(
        "SELECT pid, sum(calls) FROM calls WHERE function = 'malloc' AND bytes = 32 * calls GROUP BY pid").fetchall())


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def shared(pid):
    return [line for line in maps_of(pid) if MEMORY in line and "allocprof-inside" not in line]


class Inside(Recorder):
    def __init__(self, runner, allocprof, data, pids, *options):
        super().__init__(runner, [allocprof, "record", "--engine=inside", "-o", data, *options, "-p", ",".join(map(str, pids))])


@pytest.fixture
def prefork(runner, tmp_path):
    source = tmp_path / "prefork.c"
    source.write_text(PREFORK)
    runner.run(["gcc", "-O1", "-o", tmp_path / "prefork", source], expect=0)
    return tmp_path / "prefork"


@pytest.mark.parametrize("options", [[], ["--live"], ["--sample", "1"]], ids=" ".join)
def test_numbers(runner, allocprof, target, tmp_path, options):
    """Each process's calls are its own, also of one in a PID namespace, where it has another number."""
    processes = [Obedient(runner, [target("sleeper")]) for _ in range(3)]
    away = Obedient(runner, ["unshare", "--pid", "--fork", target("sleeper")])
    pids = [process.pid for process in processes] + children(away.pid)
    before = {pid: code_of(pid) for pid in pids}
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, pids, *options)
    for i, process in enumerate([*processes, away]):
        process.ask(f"alloc {100 + i}")
    # One may end before the others.
    processes[0].exit()
    processes[1].ask("alloc 50")
    said = recorder.finish()
    for pid in pids[1:]:
        await_untouched(pid, before[pid])
        assert not shared(pid)
    for process in [*processes[1:], away]:
        process.ask("alloc 10")
        process.exit()
    assert mallocs(data) == dict(zip(pids, [100, 151, 102, 103]))
    assert "the measured processes go on; the library stays mapped and counts no more; their threads stood still" in said
    assert "not complete" not in said
    assert Recording(data).ledger["lost"] == 0
    assert Recording(data).meta["attached_pids"] == ",".join(map(str, pids))


@pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")
def test_calls_by_a_copied_address(runner, allocprof, target, tmp_path):
    """One process of each program is checked for calls that do not come to the library: of three, those of two programs."""
    first, second = Obedient(runner, [target("sleeper")]), Obedient(runner, [target("sleeper")])
    copy = shutil.copy(target("sleeper"), tmp_path / "other")
    other = Obedient(runner, [copy])
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, [process.pid for process in (first, second, other)], "--inject", "check_ms=60000")
    for process in (first, second, other):
        process.ask("alloc 10")
    for n, process in ((300, first), (400, second), (500, other)):
        process.ask(f"copied {n}")
        process.exit()
    assert recorder.process.wait(TIMEOUT_SECONDS) == 0
    recording = Recording(data)
    assert recording.database.execute("SELECT kind, number, pid, object FROM gaps").fetchall() == [
        ("calls_bypassed", 300, first.pid, str(target("sleeper"))), ("calls_bypassed", 500, other.pid, str(copy))]
    assert recording.meta["checked_calls"] == str(2 * (300 + 500 + 10 + 10))


def test_two_hundred(runner, allocprof, target, tmp_path):
    processes = [Obedient(runner, [target("sleeper")]) for _ in range(200)]
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, [process.pid for process in processes])
    for i, process in enumerate(processes):
        process.ask(f"alloc {i + 1}")
    recorder.finish()
    for process in processes:
        process.exit()
    assert mallocs(data) == {process.pid: i + 1 for i, process in enumerate(processes)}


class Forking(Obedient):
    def fork(self, fifo):
        """Has it fork a child. Returns the child's number and where it reads its orders."""
        os.mkfifo(fifo)
        before = children(self.pid)
        self.ask(f"fork {fifo}")
        orders = open(fifo, "w", encoding="ascii", buffering=1)
        self.expect_line("done")
        (child,) = set(children(self.pid)) - set(before)
        return child, orders


@pytest.mark.parametrize("live", [[], ["--live"]], ids=" ".join)
def test_forked(runner, allocprof, prefork, tmp_path, live):
    """What it forks is measured from its first call, and left: the child's words, too, and it can be measured again by itself."""
    parent = Forking(runner, [prefork])
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, [parent.pid], "--follow", *live)
    parent.ask("alloc 7")
    kids = [parent.fork(tmp_path / f"orders{i}") for i in range(3)]
    for i, (_, orders) in enumerate(kids):
        orders.write(f"alloc {20 + i}\n")
        parent.expect_line("done")
    kids[0][1].close()
    wait_until(lambda: pathlib.Path(f"/proc/{kids[0][0]}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z", "a child has ended")
    said = recorder.finish()
    assert mallocs(data) == {parent.pid: 7, **{child: 20 + i for i, (child, _) in enumerate(kids)}}, said
    assert "not complete" not in said
    for child in [parent.pid] + [child for child, _ in kids[1:]]:
        assert not shared(child)
    again = tmp_path / "again"
    recorder = Inside(runner, allocprof, again, [child for child, _ in kids[1:]])
    for i, (child, orders) in enumerate(kids[1:]):
        orders.write(f"alloc {40 + i}\n")
        parent.expect_line("done")
    recorder.finish()
    assert mallocs(again) == {child: 40 + i for i, (child, _) in enumerate(kids[1:])}
    for _, orders in kids[1:]:
        orders.close()
    parent.exit()


def test_not_followed(runner, allocprof, prefork, tmp_path):
    """Without --follow the child of a single process is not measured, and has nothing of the memory in the end."""
    parent = Forking(runner, [prefork])
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, [parent.pid])
    child, orders = parent.fork(tmp_path / "orders")
    orders.write("alloc 5\n")
    parent.expect_line("done")
    parent.ask("alloc 6")
    recorder.finish()
    assert mallocs(data) == {parent.pid: 6}
    assert not shared(child)
    orders.write("alloc 5\n")
    parent.expect_line("done")
    orders.close()
    parent.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lift a filter")
@pytest.mark.parametrize("follow", [[], ["--follow"]], ids=" ".join)
def test_child_with_a_filter(runner, allocprof, tmp_path, follow):
    """A child that has closed itself in since it was forked is left as it is, or by lifted filters, and lives on."""
    source = tmp_path / "sandbox.c"
    source.write_text(r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_ON(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		KILL_ON(SYS_mmap), KILL_ON(SYS_munmap), KILL_ON(SYS_mprotect), KILL_ON(SYS_madvise), KILL_ON(SYS_mremap),
		KILL_ON(SYS_rt_sigtimedwait), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };
	int status;
	char c;

	write(1, "ready\n", 6);
	read(0, &c, 1);
	if (!fork()) {
		free(malloc(32));
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
		write(1, "done\n", 5);
		_exit(read(0, &c, 1) != 1);
	}
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}
""")
    runner.run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "sandbox", source], expect=0)
    process = Obedient(runner, [tmp_path / "sandbox"])
    recorder = Inside(runner, allocprof, tmp_path / "data", [process.pid], *follow)
    process.ask("")
    recorder.finish()
    process.send("x")
    assert process.process.wait(TIMEOUT_SECONDS) == 0


def test_executed(runner, allocprof, prefork, tmp_path):
    """A program that a child executes is not measured, which is said."""
    parent = Forking(runner, [prefork])
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, [parent.pid], "--follow")
    child, orders = parent.fork(tmp_path / "orders")
    orders.write("alloc 5\nexec /bin/true\n")
    parent.expect_line("done")
    wait_until(lambda: pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z", "it has ended")
    said = recorder.finish()
    parent.exit()
    assert mallocs(data) == {child: 5}
    assert f"not complete: 1 process of the program true ({child}), without access to the shared memory" in said


def test_killed(runner, allocprof, target, prefork, tmp_path):
    """Where allocprof is killed each process is left by itself."""
    processes = [Obedient(runner, [target("sleeper")]) for _ in range(3)]
    before = [code_of(process.pid) for process in processes]
    recorder = Inside(runner, allocprof, tmp_path / "data", [process.pid for process in processes])
    recorder.process.send_signal(signal.SIGKILL)
    recorder.process.wait(TIMEOUT_SECONDS)
    for process, code in zip(processes, before):
        wait_until(lambda one=process: not shared(one.pid), "the memory is unmapped")
        await_untouched(process.pid, code, is_killed=True)
        process.ask("alloc 3")
        process.exit()


def test_users(runner, allocprof, target):
    """Processes share memory, so those of two users are not measured together, and nothing is left in either."""
    own = Obedient(runner, [target("sleeper")])
    other = Obedient(runner, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", target("sleeper")])
    pids = [own.pid, other.pid]
    done = runner.run([allocprof, "stat", "--engine=inside", "-p", ",".join(map(str, pids))], expect=125)
    assert f"they share memory, and {own.pid} and {other.pid} have different users, groups or capabilities" in done.stderr.decode()
    for process in (own, other):
        assert not shared(process.pid)
        process.ask("alloc 3")
        process.exit()


def test_one_that_cannot_be_measured(runner, run, allocprof, target, tmp_path):
    """All are refused, and those that were attached to before are as they were."""
    source = tmp_path / "static.c"
    source.write_text("#include <stdlib.h>\n#include <unistd.h>\nint main(void)\n{\n\tchar c;\n\n\twrite(1, \"ready\\n\", 6);\n"
                      "\twhile (read(0, &c, 1) == 1)\n\t\tfree(malloc(c));\n}\n")
    run(["gcc", "-static", "-o", tmp_path / "static", source], expect=0)
    static, dynamic = Obedient(runner, [tmp_path / "static"]), Obedient(runner, [target("sleeper")])
    before = code_of(dynamic.pid)
    done = run([allocprof, "stat", "--engine=inside", "-p", f"{dynamic.pid},{static.pid}"], expect=125)
    assert str(static.pid) in done.stderr.decode()
    await_untouched(dynamic.pid, before)
    assert not shared(dynamic.pid)
    dynamic.exit()
    static.exit()


def test_backends(runner, allocprof, cluster, directory, tmp_path):
    """PostgreSQL forks a process for each connection: all are in the recording, and each query is answered."""
    served = Postgresql(runner, directory, cluster)
    data = tmp_path / "data"
    recorder = Inside(runner, allocprof, data, [served.server.pid], "--follow")
    sleeping = runner.start(served.psql, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sleeping.stdin.write(b"SELECT pg_backend_pid();\n")
    sleeping.stdin.flush()
    last = int(sleeping.stdout.readline())
    backends = {served.one_more() for _ in range(20)} | {last}
    said = recorder.finish()
    assert not shared(last), f"a backend was not left: {said}"
    sleeping.stdin.write(b"SELECT sum(i) FROM generate_series(1, 100000) AS i;\n")
    assert sleeping.communicate(timeout=TIMEOUT_SECONDS)[0] == b"5000050000\n"
    served.end()
    assert backends <= {pid for (pid,) in Recording(data).database.execute("SELECT DISTINCT pid FROM calls")}, said
    assert Recording(data).ledger["lost"] == 0
