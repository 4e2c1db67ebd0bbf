# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that keep their counts in files of their own, by environment alone (`allocprof env`), and the recordings that `allocprof salvage`
makes of the files: those of launched runs with the engine preload, however the processes end."""

import contextlib
import os
import re
import shlex
import signal
import sys

import pytest

from support import INPUT, Obedient, Recording, TIMEOUT_SECONDS, programs, shell_status, stop, wait_until
from test_killed import Told, in_group, limited_memory
from test_systemd import FILTER

pytestmark = pytest.mark.engines("preload")


class Own:
    """Programs that count for themselves below @directory."""

    def __init__(self, run, allocprof, directory):
        self.run, self.allocprof, self.directory = run, allocprof, directory

    def environment(self, *options, pattern="%e.%p"):
        lines = self.run([self.allocprof, "env", "-o", self.directory / pattern, *options], expect=0).stdout.decode()
        return dict(re.fullmatch(r"export (\w+)=(.*)", line).groups() for line in lines.splitlines())

    def files(self):
        return sorted(path for path in self.directory.iterdir() if path.is_file())

    def salvage(self, *files, expect=0):
        """The recording of the files, or of all, and what was said."""
        data = self.directory.parent / "own.data"
        result = self.run([self.allocprof, "salvage", "-o", data, *(files or self.files())], expect=expect)
        return (Recording(data) if not expect else None), result.stderr.decode()


@pytest.fixture
def own(run, allocprof, public_directory):
    directory = public_directory / "own"
    directory.mkdir()
    return Own(run, allocprof, directory)


def launched(run, allocprof, data, argv, *options, env, expect=None, stdin=INPUT):
    """The recording of a launched run. Variables of an environment are allocated for by programs that copy it: it has
    others of the same length instead."""
    others = {f"{name[:-1]}_": value for name, value in env.items()}
    run([allocprof, "record", "-q", "-o", data, *options, "--", *argv], env=others, stdin=stdin, expect=expect)
    return Recording(data)


# Of these programs the calls are the same in each run; stacks and threads are too many.
SAME = ["nothing", "every_function", "threads", "fork", "vfork", "posix_spawn", "shell", "exec_nonleader", "ten_forking", "dlopen", "throw",
        "longjmp", "cancel", "signals", "exec_itself", "sort"]

def rows(recording):
    """Calls and bytes by program, function and stack."""
    sums = {}
    for comm, function, calls, size, stack in recording.sql(
            "SELECT p.comm, c.function, c.calls, c.bytes, u.functions FROM counts c JOIN uninlined u ON u.count = c.id "
            "JOIN processes p ON p.id = c.process"):
        before = sums.get((comm, function, stack), (0, 0))
        sums[comm, function, stack] = before[0] + calls, before[1] + size
    return sums


@pytest.mark.fast("preload-every_function", "preload-threads", "preload-fork", "preload-shell", "preload-exec_itself")
@pytest.mark.parametrize("case", SAME)
def test_as_launched(run, allocprof, own, target, tmp_path, case):
    """Stacks, calls, bytes and processes, and what the program prints and returns."""
    argv, status = programs(target)[case]
    env = own.environment()
    recorded = launched(run, allocprof, tmp_path / "launched.data", argv, env=env, expect=status)
    bare = run(argv, stdin=INPUT, expect=status)
    counted = run(argv, env, stdin=INPUT, expect=status)
    assert (counted.stdout, counted.stderr) == (bare.stdout, bare.stderr)
    salvaged, said = own.salvage()
    assert rows(salvaged) == rows(recorded)
    assert salvaged.ledger == recorded.ledger and not salvaged.unbalanced() and not salvaged.gaps
    processes = "SELECT comm, execed, text FROM processes p LEFT JOIN arguments a ON a.process = p.id ORDER BY comm, text"
    assert salvaged.sql(processes) == recorded.sql(processes)
    assert salvaged.meta["salvaged"] == str(len(own.files())) and "exit_status" not in salvaged.meta
    assert "not complete" not in said


@pytest.mark.fast("preload-other_thread")
@pytest.mark.parametrize("shape", ["move", "aligned", "other_thread", "thread_ends"])
def test_live_as_launched(run, allocprof, own, target, tmp_path, shape):
    blocks = ("SELECT u.functions, sum(b.allocations), sum(b.bytes), sum(b.frees), sum(b.freed_bytes), sum(b.peak_bytes) FROM blocks b "
              "JOIN uninlined u ON u.count = b.count GROUP BY u.functions ORDER BY u.functions")
    argv = [target("live_shapes"), shape]
    env = own.environment("--live")
    recorded = launched(run, allocprof, tmp_path / "launched.data", argv, "--live", env=env)
    run(argv, env)
    salvaged, said = own.salvage()
    assert salvaged.sql(blocks) == recorded.sql(blocks) != []
    assert salvaged.meta["peak_bytes"] == recorded.meta["peak_bytes"] and "not complete" not in said


TIMED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
void *volatile kept[2];
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
__attribute__((noinline)) static void early(void) { kept[0] = malloc(111); }
__attribute__((noinline)) static void late(void) { kept[1] = malloc(222); }
int main(void)
{
	long times[4];
	times[0] = now(); early(); times[1] = now();
	usleep(100000);
	free(malloc(1));
	usleep(200000);
	times[2] = now(); late(); times[3] = now();
	printf("%ld %ld %ld %ld\n", times[0], times[1], times[2], times[3]);
}
"""


def test_times(run, own, compiled):
    """When blocks began: by the processor's counter, once the process knows its rate."""
    times = [int(word) for word in run([compiled(TIMED)], own.environment("--live"), expect=0).stdout.split()]
    salvaged, _ = own.salvage()
    epoch_ns = int(salvaged.meta["epoch_ns"])
    born = [salvaged.sql("SELECT l.born FROM lifetimes l JOIN uninlined u ON u.count = l.count WHERE u.called_by = ? AND l.died IS NULL",
                         name) for name in ("early", "late")]
    ((early,),), ((late,),) = born
    assert (times[2] - times[1]) // epoch_ns - 1 <= late - early <= (times[3] - times[0]) // epoch_ns + 1


def assert_all_there(own, told, file):
    """At the end one call may have been under way."""
    begun, ended, _, _ = told.calls()
    salvaged, said = own.salvage(file)
    assert "was killed, or ended without saying so" in said
    calls = sum(calls for stack, calls in salvaged.texts().items() if "main" in stack)
    assert ended <= calls <= begun and salvaged.ledger["lost"] == 0


def test_killed(runner, own, target):
    """Of what SIGKILL ends, every call that had returned is there."""
    with contextlib.closing(Told()) as told:
        process = runner.start([target("until_killed"), told.path, 40], own.environment())
        wait_until(lambda: told.calls()[1] > 100000, "it has allocated")
        process.kill()
        process.wait()
        assert_all_there(own, told, *own.files())


def test_out_of_memory(runner, own, target):
    """So it is of what the kernel kills for want of memory."""
    with contextlib.closing(Told()) as told, limited_memory() as (group, kills):
        process = runner.start(in_group(group, target("until_killed"), told.path, 4000), own.environment())
        assert shell_status(process.wait(TIMEOUT_SECONDS)) == 128 + signal.SIGKILL and kills()
        # The shell has a file, too.
        assert_all_there(own, told, *(path for path in own.files() if path.name.startswith("until_killed")))


def test_exit_at_once(run, own, compiled):
    """A system call instruction of the program's own ends it, so that nobody is told."""
    program = compiled("#include <stdlib.h>\n#include <unistd.h>\nint main(void)\n{\n\tvoid *volatile kept = malloc(10);\n"
                       "\t__asm__ volatile(\"syscall\" : : \"a\"(231), \"D\"(3));\n}", name="ends")
    run([program], own.environment(), expect=3)
    salvaged, said = own.salvage()
    assert [calls for stack, calls in salvaged.texts().items() if "main" in stack] == [1] and "ended without saying so" in said


def test_running(run, runner, own, target):
    """The counts of a process that goes on, and then those until its end."""
    sleeper = Obedient(runner, [target("sleeper")], own.environment())
    sleeper.ask("alloc 10")
    first, said = own.salvage()
    assert f"process {sleeper.pid} " in said and "runs: its counts are of this moment" in said
    sleeper.ask("alloc 5")
    sleeper.exit()
    second, said = own.salvage()
    assert "runs" not in said
    of_main = [sum(calls for stack, calls in one.texts().items() if "main" in stack) for one in (first, second)]
    assert of_main == [10, 15]


@pytest.mark.parametrize("options, said", [((), b""), (("--warn",), b"allocprof: the process is not measured: ")], ids=["silent", "warn"])
@pytest.mark.parametrize("case", ["no directory", "read-only root", "not this user's"])
def test_no_file(run, own, target, case, options, said):
    """A process that can make no file runs as without the variables, and says so only if that is asked for."""
    argv = [target("every_function")]
    bare = run(argv)
    if case == "no directory":
        counted = run(argv, own.environment(*options, pattern="none/%p"))
    elif case == "read-only root":
        env = own.environment(*options)
        script = f"mount --bind {own.directory} {own.directory} && mount -o remount,ro,bind {own.directory} && exec \"$@\""
        # The shell would be measured, too.
        words = [f"{name}={value}" for name, value in env.items()]
        counted = run(["unshare", "-m", "sh", "-c", script, "sh", "env", *words, *argv])
    else:
        own.directory.chmod(0o755)
        counted = run(["setpriv", "--reuid=65534", "--clear-groups", "env",
                       *(f"{name}={value}" for name, value in own.environment(*options).items()), *argv])
    assert not own.files()
    assert (counted.status, counted.stdout) == (bare.status, bare.stdout)
    assert counted.stderr.startswith(said) and (said or counted.stderr == bare.stderr)
    assert len(counted.stderr.splitlines()) == len(bare.stderr.splitlines()) + bool(said)


@pytest.mark.parametrize("case", ["no reader", "no room", "largest size"])
def test_warning_harms_nobody(runner, own, target, tmp_path, case):
    """A standard error that nobody reads, that is full, or as large as it may be, neither kills the process nor holds it up."""
    words = [target("nothing")]
    if case == "largest size":
        words = ["prlimit", "--fsize=0", "env", *(f"{name}={value}" for name, value in own.environment("--warn", pattern="none/%p").items()),
                 *words]
        with open(tmp_path / "said", "wb") as said:
            assert runner.start(words, stderr=said).wait(TIMEOUT_SECONDS) == 0
        return
    reading, writing = os.pipe()
    if case == "no reader":
        os.close(reading)
    else:
        os.set_blocking(writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writing, bytes(4096))
        os.set_blocking(writing, True)
    process = runner.start(words, own.environment("--warn", pattern="none/%p"), stderr=writing)
    os.close(writing)
    assert process.wait(TIMEOUT_SECONDS) == 0


def test_no_warning_of_forked(run, own, compiled, tmp_path):
    """In a forked child, descriptor 2 may be a file of the target's."""
    program = compiled("#include <fcntl.h>\n#include <stdlib.h>\n#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
                       "int main(int n, char **argv)\n{\n\tvoid *volatile kept = malloc(1);\n\tclose(2);\n\topen(argv[1], O_RDWR | O_CREAT, 0600);\n"
                       "\trename(argv[2], argv[3]);\n\tif (!fork()) {\n\t\tkept = malloc(2);\n\t\t_exit(0);\n\t}\n\twait(NULL);\n}")
    (own.directory / "goes").mkdir()
    run([program, tmp_path / "data", own.directory / "goes", own.directory / "went"], own.environment("--warn", pattern="goes/%p"), expect=0)
    assert (tmp_path / "data").read_bytes() == b""
    (file,) = (own.directory / "went").iterdir()
    assert own.salvage(file)[0].gaps


# Its filter does as asked for a system call.
FILTERS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int n, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FORBIDDEN, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ACTION),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 4;
	execv(argv[1], argv + 1);
	return 5;
}
"""


def test_filter_that_kills(run, own, target, compiled):
    """A filter that is older than the program: the process is not measured, and says so if that is asked for."""
    words = [f"{name}={value}" for name, value in own.environment("--warn").items()]
    # Programs do not call it as they begin.
    filters = compiled(FILTERS, "-DFORBIDDEN=SYS_ftruncate", "-DACTION=SECCOMP_RET_KILL_PROCESS")
    done = run([filters, "/usr/bin/env", *words, target("nothing")], expect=0)
    assert b"a filter of system calls may kill it" in done.stderr and not own.files()


@pytest.mark.parametrize("action", ["kill", "errno"])
def test_filtered(run, own, target, action):
    """Under SystemCallFilter=@system-service, if asked for."""
    words = [f"{name}={value}" for name, value in own.environment("--filtered").items()]
    run([sys.executable, FILTER, action, "seccomp", "/usr/bin/env", *words, target("exec_itself"), 1], expect=0)
    salvaged, said = own.salvage()
    assert len(own.files()) == 2 and salvaged.ledger["lost"] == 0 and "not complete" not in said


@pytest.mark.parametrize("options", [(), ("--live",)], ids=["record", "live"])
def test_never_begun(run, own, target, compiled, options):
    """A process that could not begin to count: its file can be read, alone and beside others, and says so."""
    filters = compiled(FILTERS, "-DFORBIDDEN=SYS_getpid", "-DACTION=(SECCOMP_RET_ERRNO | EPERM)")
    words = [f"{name}={value}" for name, value in own.environment("--filtered", *options, pattern="%e").items()]
    run([filters, "/usr/bin/env", *words, target("nothing")], expect=0)
    salvaged, said = own.salvage()
    assert "has counted nothing: it found no room" in said and salvaged.ledger["events"] == 0 and salvaged.gaps
    assert 0 <= float(salvaged.meta["elapsed_seconds"]) < TIMEOUT_SECONDS
    if options:
        return
    run([target("every_function")], own.environment(pattern="%e"), expect=3)
    salvaged, said = own.salvage()
    assert salvaged.ledger["events"] > 0 and "has counted nothing" in said
    assert 0 <= float(salvaged.meta["elapsed_seconds"]) < TIMEOUT_SECONDS


def test_left_out(run, own, target):
    """A file that was made, and never written to, beside others."""
    run([target("nothing")], own.environment(), expect=0)
    empty = own.directory / "empty"
    empty.touch()
    os.truncate(empty, 1 << 30)
    salvaged, said = own.salvage()
    assert f"{empty} is no file that a process has kept" in said and "it is left out" in said
    assert salvaged.meta["salvaged"] == "1"


def test_many_files(run, allocprof, own, target, tmp_path):
    """More files than the soft limit lets a process open."""
    run([target("launcher"), 30, target("nothing")], own.environment(), expect=0)
    assert len(own.files()) == 61
    run(["prlimit", "--nofile=32:1024", allocprof, "salvage", "-o", tmp_path / "data", *own.files()], expect=0)
    assert Recording(tmp_path / "data").meta["salvaged"] == "61"


def test_other_namespace(runner, own, target):
    words = [f"{name}={value}" for name, value in own.environment().items()]
    sleeper = Obedient(runner, ["unshare", "--pid", "--fork", "env", *words, target("sleeper")])
    sleeper.ask("alloc 10")
    salvaged, said = own.salvage()
    assert "of another PID namespace" in said and "killed, or ended" not in said
    assert sum(calls for stack, calls in salvaged.texts().items() if "main" in stack) == 10
    sleeper.exit()
    salvaged, said = own.salvage()
    assert "another PID namespace" not in said


def test_live_of_running(runner, own, target):
    """Of a process that allocates without a pause the counts are of no single moment, which is said; of one that rests they are."""
    with contextlib.closing(Told()) as told:
        process = runner.start([target("until_killed"), told.path, 40], own.environment("--live"))
        wait_until(lambda: told.calls()[1] > 100000, "it has allocated")
        # On a busy machine the process may have stood still while one was made; another one follows.
        wait_until(lambda: "torn_ms" in own.salvage()[0].gaps, "a copy of a process that allocates meanwhile")
        stop(process.pid)
        salvaged, _ = own.salvage()
        assert "torn_ms" not in salvaged.gaps and not salvaged.unbalanced()
        process.kill()
        process.wait()


# Fills a file system but for so many KiB, once the process has made its file.
FILLS = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static __attribute__((constructor)) void fill(void)
{
	static char bytes[1 << 16];
	int fd;

	free(malloc(1));
	fd = open("disk/rest", O_RDWR | O_CREAT, 0600);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	ftruncate(fd, lseek(fd, 0, SEEK_CUR) - KIB * 1024);
	close(fd);
}
"""


@pytest.mark.parametrize("kib", [0, 4, 64, 400])
def test_full_disk(run, own, target, compiled, kib):
    """Whatever there is room for, the program does what it does without, and what has no room is counted as lost."""
    argv = [target("many_stacks"), 20000, 5000]
    bare = run(argv, expect=0)
    env = own.environment(pattern="disk/f")
    env["LD_PRELOAD"] += f":{compiled(FILLS, '-shared', '-fPIC', f'-DKIB={kib}', name='fills.so')}"
    data = own.directory / "data"
    script = (f"mount -t tmpfs -o size=66M none disk; "
              f"env {' '.join(f'{name}={shlex.quote(value)}' for name, value in env.items())} {shlex.join(map(str, argv))}; echo $?; "
              f"{own.allocprof} salvage -q -o {data} disk/f")
    (own.directory / "disk").mkdir()
    counted = run(["unshare", "-m", "sh", "-c", script], cwd=own.directory, expect=0)
    assert counted.stdout == bare.stdout + b"0\n"
    salvaged = Recording(data)
    assert salvaged.ledger["lost"] == salvaged.ledger["lost_no_room"] > 0 or salvaged.gaps
    assert salvaged.gaps or salvaged.ledger["events"] >= 20000
    assert not salvaged.unbalanced()


def test_little_room(run, own, target):
    """Where others may need the rest of the file system no file is made."""
    words = [f"{name}={shlex.quote(value)}" for name, value in own.environment("--warn", pattern="disk/f").items()]
    (own.directory / "disk").mkdir()
    script = f"mount -t tmpfs -o size=63M none disk && env {' '.join(words)} {target('nothing')} && ls disk"
    done = run(["unshare", "-m", "sh", "-c", script], cwd=own.directory, expect=0)
    assert not done.stdout and b"less than 64 MiB or 1 % of its file system are free" in done.stderr


def test_bounded(run, own, target):
    """A file that may be no larger: what does not fit is counted as lost."""
    run([target("many_stacks"), 200000, 100000], own.environment("--max-size=16M"), expect=0)
    (file,) = own.files()
    salvaged, said = own.salvage()
    assert file.stat().st_size == 16 << 20 and file.stat().st_blocks * 512 <= 16 << 20
    assert salvaged.ledger["events"] >= 200000 and salvaged.ledger["lost"] == salvaged.ledger["lost_no_room"] > 0
    assert "a process's own file as large as it may be" in said and not salvaged.unbalanced()


def test_size_by_stacks(run, own, target):
    """How much of a file is used depends on the stacks, and not on the number of calls."""
    sizes = []
    for calls in (10000, 1000000):
        run([target("many_stacks"), calls, 100], own.environment("--sample=4K", pattern=f"{calls}"), expect=0)
        sizes.append((own.directory / str(calls)).stat().st_blocks * 512)
    assert sizes[0] == sizes[1] < 1 << 20


def test_hundred_at_once(run, own, target):
    run([target("launcher"), 100, target("threads"), 2, 50], own.environment(), expect=0)
    salvaged, _ = own.salvage()
    # One for the fork of each, and one for what it executes.
    assert len(own.files()) == 201
    ((n,),) = salvaged.sql("SELECT count(*) FROM processes WHERE comm = 'threads'")
    ((calls,),) = salvaged.sql("SELECT sum(c.calls) FROM counts c JOIN uninlined u ON u.count = c.id WHERE c.function = 'malloc' "
                               "AND u.functions LIKE '%work%'")
    assert n == 100 and calls and calls % 100 == 0 and salvaged.ledger["lost"] == 0


def test_names(run, own, target):
    """No file is written over, whatever the pattern: an exec keeps the process's number."""
    run([target("exec_itself"), 3], own.environment(pattern="100%%"), expect=0)
    assert {path.name for path in own.files()} == {"100%", "100%.2", "100%.3", "100%.4"}
    salvaged, _ = own.salvage()
    assert salvaged.sql("SELECT count(DISTINCT pid), count(*) FROM processes") == [(1, 4)]
    assert sum(calls for stack, calls in salvaged.texts().items() if "main" in stack) == 4


def test_no_follow(run, own, target):
    run([target("fork_noexec")], own.environment("--no-follow"), expect=0)
    assert len(own.files()) == 1


def test_sanitizer(run, own, compiled):
    """A program with a sanitizer must not have the library: its own runtime has to come first."""
    program = compiled("#include <stdio.h>\nint main(void) { puts(\"runs\"); return 0; }", "-fsanitize=address", name="sanitized")
    starter = compiled("#include <unistd.h>\nint main(int n, char **argv) { execv(argv[1], argv + 1); return 1; }", name="starter")
    counted = run([starter, program], own.environment(), expect=0)
    assert (counted.stdout, counted.stderr) == (b"runs\n", b"")
    salvaged, said = own.salvage()
    assert "sanitized" in said and "not complete" in said and salvaged.gaps


def rebuilt(compiled, text, name):
    return compiled(f"#include <stdlib.h>\nvoid *kept;\n__attribute__((noinline)) void {text}(void) {{ kept = malloc(20); }}\n"
                    f"int main(void) {{ {text}(); return 0; }}", "-Wl,--build-id", name=name)


def test_other_program_at_path(run, own, compiled):
    """Names are of the program that ran: of its copy, which is another file with the same build id; not of another program in the same
    file."""
    program = rebuilt(compiled, "takes_a", "program")
    run([program], own.environment(), expect=0)
    content = program.read_bytes()
    program.unlink()
    program.write_bytes(content)
    salvaged, _ = own.salvage()
    assert any("takes_a" in stack for stack in salvaged.texts())
    other = rebuilt(compiled, "takes_b", "second").read_bytes()
    with open(program, "r+b") as file:
        file.truncate()
        file.write(other)
    salvaged, _ = own.salvage()
    assert not any("takes_" in stack for stack in salvaged.texts())


def test_refused(run, allocprof, own, target, tmp_path):
    """What salvage says to files that are none, or that do not belong together."""
    run([target("nothing")], own.environment(pattern="a"), expect=0)
    run([target("nothing")], own.environment("--sample=4K", pattern="sampled"), expect=0)
    for name in ("live", "live2"):
        run([target("nothing")], own.environment("--live", pattern=name), expect=0)
    files = {path.name: path for path in own.files()}
    text, empty, fifo, cut = (tmp_path / name for name in ("text", "empty", "fifo", "cut"))
    text.write_text("no file of a process\n" * 10000)
    empty.touch()
    os.mkfifo(fifo)
    cut.write_bytes(files["a"].open("rb").read(100))
    link = own.directory / "link"
    os.link(files["a"], link)
    for paths, sentence in (([], "no file was given"), ([text], "is no file that a process has kept"),
                            ([empty], "is no file that a process has kept"), ([fifo], "cannot open"),
                            ([cut], "is no file that a process has kept"), ([tmp_path / "none"], "cannot open"),
                            ([files["a"], files["a"]], "was given twice"), ([files["a"], link], "was given twice"),
                            ([text, empty], "is no file that a process has kept"), ([files["a"], files["sampled"]], "with other settings"),
                            ([files["live"], files["live2"]], "make a recording of each")):
        result = run([allocprof, "salvage", "-o", tmp_path / "data", *paths])
        assert result.status == (2 if paths else 64) and sentence in result.stderr.decode(), (paths, result)


@pytest.mark.parametrize("options, sentence", [
    (["-o", "relative"], "is no absolute path"),
    (["-o", "/tmp/%x"], "followed by none of"),
    (["-o", "/tmp/a b"], "has a space"),
    (["-o", "/" + "a" * 300], "longer than"),
    (["--sample=2G"], "--sample takes"),
    (["--max-depth=0"], "--max-depth takes"),
    (["--max-size=1M"], "--max-size takes"),
    (["--format=xml"], "--format takes"),
    (["--library=lib.so"], "is no absolute path"),
    (["ls"], "ls"),
])
def test_invalid(run, allocprof, options, sentence):
    result = run([allocprof, "env", *options])
    assert result.status == 64 and sentence in result.stderr.decode() and not result.stdout


def test_formats(run, allocprof):
    def lines(which):
        return run([allocprof, "env", "-o", "/x/%p", "--library=/l.so", "--sample=4K", "--max-depth=9", f"--format={which}"],
                   expect=0).stdout.decode().splitlines()

    settings = "record,sample=4096,depth=9"
    assert lines("shell") == ["export LD_PRELOAD=/l.so", "export ALLOCPROF_OUTPUT=/x/%p", f"export ALLOCPROF_SETTINGS={settings}"]
    assert lines("systemd") == ["Environment=LD_PRELOAD=/l.so", "Environment=ALLOCPROF_OUTPUT=/x/%%p",
                                f"Environment=ALLOCPROF_SETTINGS={settings}"]
    assert lines("docker") == ["ENV LD_PRELOAD=/l.so", "ENV ALLOCPROF_OUTPUT=/x/%p", f"ENV ALLOCPROF_SETTINGS={settings},filtered"]
    assert lines("kubernetes")[2:4] == ["- name: ALLOCPROF_OUTPUT", "  value: \"/x/%p\""]


@pytest.mark.parametrize("settings", ["", "record,", "none", "sample=0", "depth=1000", "size=1", "record;live", "sample=99999999999999999999"])
def test_settings(run, own, target, settings):
    """The library takes what `allocprof env` prints, the default where nothing is said, and nothing else."""
    env = {**own.environment(), "ALLOCPROF_SETTINGS": settings}
    run([target("nothing")], env, expect=0)
    assert len(own.files()) == (settings in ("", "record,"))
