# SPDX-License-Identifier: GPL-3.0-or-later
"""What the live tests share: where things are, and how to run them without leaving any behind."""

import atexit
import contextlib
import ctypes
import dataclasses
import functools
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.parse

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# <sched.h>, <sys/mount.h>
CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

# The same whoever called sudo: what a test says of these variables it sets itself.
for variable in ("SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"):
    os.environ.pop(variable, None)


def find_build():
    """The build directory; a copy of what tests run where other users cannot reach it, as in a home of mode 0700: what
    they run must be able to load the library and to execute targets."""
    build = pathlib.Path(os.environ.get("ALLOCPROF_BUILD", SOURCE / "build")).resolve()
    if os.geteuid() != 0 or all(path.stat().st_mode & 0o1 for path in [build, *build.parents]):
        return build
    # Tests mount others over /tmp, /var/tmp and /run.
    copy = pathlib.Path(tempfile.mkdtemp(prefix="allocprof-build-", dir="/var/lib"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    for name in ("cli", "src/inside", *(f"tests/{name}" for name in ("golden", "inside", "misled", "oracle", "preload", "targets"))):
        if (build / name).exists():
            shutil.copytree(build / name, copy / name, symlinks=True,
                            ignore=shutil.ignore_patterns("*.p", "*.a", "*.junit.xml"))
    return copy


BUILD = find_build()
TARGETS = BUILD / "tests" / "targets"
COUNTER_LIBRARY = BUILD / "tests" / "preload" / "libcounter.so"
TRUTH_LIBRARY = BUILD / "tests" / "preload" / "libtruth.so"
EVENTS_LIBRARY = BUILD / "tests" / "preload" / "libevents.so"

sys.path.insert(0, str(SOURCE / "tests" / "preload"))

import counter as counter_module  # noqa: E402
import truth  # noqa: E402
from counter import FUNCTIONS  # noqa: E402

# Long enough for a loaded machine: a test waits for a condition, and this only ends a hang.
TIMEOUT_SECONDS = 120

# How many times as much as in CI a few long tests do.
SCALE = int(os.environ.get("ALLOCPROF_SCALE", 1))


def target(name):
    """The path of a program of tests/targets."""
    path = TARGETS / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is not built: ninja -C {BUILD}")
    return str(path)


def preload_exec():
    """The program that executes another one with a library preloaded, and that no tool of this test counts anything
    of: a static one, but where it is measured by a preloaded library itself."""
    return target("preload_exec_libc" if os.environ.get("ALLOCPROF_ENGINE") == "preload" else "preload_exec")


def stated(name):
    """What the first comment of a target in C says that it allocates above start-up."""
    comment = (SOURCE / "tests" / "targets" / f"{name}.c").read_text().split("*/")[0]
    pattern = re.compile(r"^ \* +(\w+): (\d+) calls, (\d+) bytes(?:, (\d+) fresh of (\d+) bytes)?"
                         r"(?:, (\d+) released)?(?:, (\d+) null)?$", re.MULTILINE)
    slots = {name: counter_module.Slot() for name in counter_module.FUNCTIONS}
    for found in pattern.finditer(comment):
        slots[found[1]] = counter_module.Slot(*(int(n or 0) for n in found.groups()[1:]))
    if not any(slot.calls for slot in slots.values()):
        raise ValueError(f"{name}.c states no calls")
    return slots


def figures(text):
    """The dictionary that "name=value name=value" stands for; a value of "any" is None."""
    return {name: None if value == "any" else int(value)
            for name, value in (word.split("=") for word in text.split())}


def stated_cases(name):
    """The figures that the first comment of a target states for each of its cases. The comment is
    " *   CASE: name=value ...", and goes on where a line is indented by two more."""
    (path,) = (SOURCE / "tests" / "targets").glob(f"{name}.c*")
    cases = {}
    case = None
    for line in path.read_text().split("*/")[0].splitlines():
        begins = re.fullmatch(r" \*   (\w+): (\w+=.*)", line)
        goes_on = re.fullmatch(r" \*     (\w+=.*)", line)
        if begins:
            case = begins[1]
            cases[case] = figures(begins[2])
        elif goes_on and case:
            cases[case].update(figures(goes_on[1]))
        else:
            case = None
    if not cases:
        raise ValueError(f"{path.name} states no cases")
    return cases


def build_id(program):
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True)
    return notes.stdout.split("Build ID: ")[1].split()[0]


def unavailable(why):
    # A run that has to prove something must not pass by skipping.
    if os.environ.get("CI"):
        pytest.fail(f"CI is set, so this must run: {why}", pytrace=False)
    pytest.skip(why)


def root_is_mount_point():
    """As unshare(1) needs it to say that mounts are private. It is not in a plain chroot."""
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split()[4] == "/" for line in mounts)


def take_own_libc():
    """Binds a copy over the machine's C library, in a mount namespace of this process: all that the tests of one file
    start share it, and meet no probe that other tests set meanwhile. This process has the machine's itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = next(line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
                if re.search(r"/libc\.so\.6$", line))
    copy = pathlib.Path(tempfile.mkdtemp(prefix="allocprof-libc-", dir="/var/lib")) / "libc.so.6"
    atexit.register(shutil.rmtree, copy.parent, ignore_errors=True)
    shutil.copy2(path, copy)
    for result in (libc.unshare(CLONE_NEWNS), libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None),
                   libc.mount(bytes(copy), path.encode(), None, MS_BIND, None)):
        if result:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


if os.geteuid() == 0 and root_is_mount_point():
    take_own_libc()


def clean_environment(extra=None):
    env = {name: value for name, value in os.environ.items()
           if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH", "ALLOCPROF_COUNTER", "PYTEST_CURRENT_TEST")}
    env["LC_ALL"] = "C"
    # No unwind table is there from an earlier test.
    env["XDG_CACHE_HOME"] = "/nonexistent"
    env.update(extra or {})
    return env


@dataclasses.dataclass
class Result:
    argv: list
    status: int  # as a shell shows it: 128 + signal
    stdout: bytes
    stderr: bytes

    def __str__(self):
        return (f"{shlex.join(self.argv)}\nexit status {self.status}\n"
                f"stdout: {self.stdout[-2000:]!r}\nstderr: {self.stderr[-2000:]!r}")


def shell_status(returncode):
    return 128 - returncode if returncode < 0 else returncode


class Runner:
    """Starts programs, each in a session of its own, and ends what is left of them."""

    def __init__(self):
        self.commands = []
        self.started = []

    def start(self, argv, env=None, **popen):
        argv = [str(word) for word in argv]
        if "unshare" in argv and not root_is_mount_point():
            unavailable("no mount namespace can be made where / is no mount point, as in a plain chroot: "
                        "mount --bind the directory onto itself before chroot, as scripts/root does")
        shown = " ".join(f"{k}={shlex.quote(v)}" for k, v in (env or {}).items())
        self.commands.append(f"{shown} {shlex.join(argv)}".strip())
        process = subprocess.Popen(argv, env=clean_environment(env),
                                   start_new_session=popen.pop("start_new_session", True), **popen)
        self.started.append(process)
        return process

    def run(self, argv, env=None, stdin=b"", timeout=TIMEOUT_SECONDS, expect=None, **popen):
        """Runs to the end. @expect is the exit status asked for, None for any."""
        process = self.start(argv, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **popen)
        try:
            stdout, stderr = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            self.end(process)
            stdout, stderr = process.communicate()
            raise AssertionError(f"no end within {timeout} s: {shlex.join(process.args)}\n"
                                 f"stdout: {stdout!r}\nstderr: {stderr!r}") from None
        result = Result(process.args, shell_status(process.returncode), stdout, stderr)
        if expect is not None:
            assert result.status == expect, f"expected exit status {expect}: {result}"
        return result

    def end(self, process):
        # The group keeps its number while the leader is not reaped.
        if process.poll() is None:
            try:
                if os.getpgid(process.pid) == process.pid:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            except ProcessLookupError:
                pass

    def end_all(self):
        for process in self.started:
            self.end(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    try:
                        stream.close()
                    except BrokenPipeError:
                        pass
            process.wait()


class Obedient:
    """A target that reads commands: sleeper, busy_threads, ignore_int."""

    def __init__(self, runner, argv, env=None, **popen):
        self.process = runner.start(argv, env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    **popen)
        self.pid = self.process.pid
        self.pending = b""
        self.expect_line("ready")

    def read_line(self, timeout=TIMEOUT_SECONDS):
        deadline = time.monotonic() + timeout
        fd = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise AssertionError(f"no answer from {self.process.args} within {timeout} s")
            data = os.read(fd, 4096)
            if not data:
                raise AssertionError(f"{self.process.args} has ended without an answer")
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line.decode()

    def expect_line(self, expected):
        line = self.read_line()
        assert line == expected, f"{self.process.args} said {line!r} instead of {expected!r}"

    def send(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, command):
        self.send(command)
        self.expect_line("done")

    def exit(self, expect=0):
        self.process.stdin.close()
        self.process.stdin = None
        status = shell_status(self.process.wait(TIMEOUT_SECONDS))
        assert status == expect, f"{self.process.args} ended with {status} instead of {expect}"


def program_of(pid):
    """What the process executes; None if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return None


def command_of(pid):
    """Process id of the command that the recorder @pid has launched. Its other children are workers, and write dumps and
    checkpoints."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found, = [int(child) for child in children if program_of(child) not in (None, program_of(pid))]
    return found


def wait_until(condition, what, timeout=TIMEOUT_SECONDS):
    """Polls until @condition() is true; it is the condition that decides, never the time."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what}")
        time.sleep(0.005)


def states_of(pid):
    """Those of its threads; one may end meanwhile."""
    states = set()
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            states.add(path.read_text().rsplit(")", 1)[1].split()[0])
    return states


def stop(pid):
    """Sends SIGSTOP, and returns when none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: states_of(pid) == {"T"}, "all threads are stopped")


def wait_until_counting(allocprof, process):
    """Until the recording, which is @process or a child of it, has set all of its probes and opened its
    window: only then does it answer."""
    def is_counting():
        if process.poll() is not None:
            fds = select.select([process.stderr.fileno()], [], [], 0)[0] if process.stderr else []
            said = "".join(os.read(fd, 4096).decode(errors="replace") for fd in fds)
            raise AssertionError(f"allocprof ended with {process.returncode}: {said}")
        answer = subprocess.run([allocprof, "ctl", "-p", str(process.pid), "status"], env=clean_environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return answer.returncode == 0 and answer.stdout.startswith(b"counting")

    wait_until(is_counting, "allocprof counts")


@functools.cache
def libc_path():
    """The C library that the targets are linked to. Where probes are set, ldd would meet them at each call."""
    output = subprocess.run(["ldd", target("nothing")], check=True, stdout=subprocess.PIPE,
                            text=True).stdout
    return os.path.realpath(re.search(r"libc\.so\S* => (\S+)", output)[1])


def second_libc(directory):
    """A copy of the C library; the environment that makes programs use it instead."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(libc_path(), directory / "libc.so.6")
    return {"LD_LIBRARY_PATH": str(directory)}


def in_pid_namespace(argv):
    return ["unshare", "-pf", "--mount-proc", *argv]


CHAIN = "ls / | wc -l; (true; false) || ls /usr >/dev/null"
INPUT = b"one\ntwo\n"


def programs(target):
    """Command lines, whose stdin is INPUT, and their exit status; target names a program."""
    return {
        "nothing": ([target("nothing")], 0),
        "every_function": ([target("every_function")], 3),
        "asprintf": ([target("every_function"), "asprintf"], 3),
        "threads": ([target("threads"), 8, 1000], 0),
        "many_threads": ([target("threads"), 64, 200], 0),
        "fork": ([target("fork_noexec")], 0),
        "vfork": ([target("vfork_exec")], 0),
        "posix_spawn": ([target("spawn")], 0),
        "shell": (["sh", "-c", CHAIN], 0),
        "exec_nonleader": ([target("exec_nonleader"), target("every_function")], 3),
        "exec_nonleader_threads": ([target("exec_nonleader"), target("threads"), 4, 500], 0),
        "ten_at_once": ([target("launcher"), 10, target("threads"), 8, 300], 0),
        "ten_forking": ([target("launcher"), 10, target("fork_noexec")], 0),
        "ten_vforking": ([target("launcher"), 10, target("vfork_exec")], 0),
        "dlopen": ([target("dlopen_lib"), target("liballocating.so"), 3], 0),
        "throw": ([target("throw")], 6),
        "longjmp": ([target("longjmp")], 0),
        "cancel": ([target("cancel")], 0),
        "pthread_exit_main": ([target("pthread_exit_main")], 7),
        "signals": ([target("signals")], 0),
        "segv": ([target("segv")], 139),
        "close_all": ([target("close_all")], 4),
        "exec_itself": ([target("exec_itself"), 50], 0),
        "fork_storm": ([target("fork_storm")], 0),
        "stacks": ([target("many_stacks"), "-t", 4, 50000, 1000], 0),
        "sort": (["sort"], 0),
    }


# Of these the ids of processes and threads matter.
IN_PID_NAMESPACES = ["threads", "fork", "vfork", "posix_spawn", "shell", "exec_nonleader", "exec_itself", "fork_storm"]


def symbol_offsets(path, names=FUNCTIONS, exported=True):
    """File offsets of functions, exported ones or all."""
    status = os.stat(path)
    return dict(read_offsets(str(path), (status.st_ino, status.st_mtime_ns), tuple(names), exported))


@functools.cache
def read_offsets(path, _, names, exported):
    tool = {"check": True, "stdout": subprocess.PIPE, "text": True}
    segments = []
    for line in subprocess.run(["readelf", "-lW", path], **tool).stdout.splitlines():
        words = line.split()
        if words and words[0] == "LOAD":
            segments.append([int(word, 16) for word in (words[1], words[2], words[4])])
    offsets = {}
    for line in subprocess.run(["nm", *(["-D"] if exported else []), path], **tool).stdout.splitlines():
        words = line.split()
        name = words[-1].split("@")[0]
        if name not in names or len(words) != 3:
            continue
        address = int(words[0], 16)
        for offset, start, size in segments:
            if start <= address < start + size:
                offsets[name] = address - start + offset
    return offsets


def by_address(path, names=FUNCTIONS):
    """Names of exported functions, grouped by where they are: the first, and its aliases."""
    groups = {}
    offsets = symbol_offsets(path, names)
    for name in names:
        if name in offsets:
            groups.setdefault(offsets[name], []).append(name)
    return list(groups.values())


class Hits:
    """Raw hits of libc's allocator functions as perf counts them, one process at a time (its counts
    are wrong for several). Probes are in a group of this object's own."""

    def __init__(self, runner):
        self.runner = runner
        self.group = f"allocprof_test_{os.getpid()}"
        self.path = libc_path()
        self.offsets = symbol_offsets(self.path)
        self.names = [names[0] for names in by_address(self.path)]

    def _mounted(self, argv):
        # A mount of our own where there is none, so that the machine's are as they were.
        return ["unshare", "-m", "sh", "-c",
                "test -e /sys/kernel/tracing/uprobe_events || "
                'mount -t tracefs nodev /sys/kernel/tracing || exit; exec "$@"', "sh", *argv]

    def _traced(self, argv, **options):
        return self.runner.run(self._mounted(argv), **options)

    def _events(self, lines):
        self._traced(["sh", "-c", "cat >>/sys/kernel/tracing/uprobe_events"],
                     stdin="".join(line + "\n" for line in lines).encode(), expect=0)

    def __enter__(self):
        self._events(f"p:{self.group}/{name} {self.path}:{self.offsets[name]:#x}"
                     for name in self.names)
        return self

    def __exit__(self, *_):
        self._events(f"-:{self.group}/{name}" for name in self.names)

    def attach(self, pid):
        """perf stat on a process that runs, until it gets SIGINT."""
        events = ",".join(f"{self.group}:{name}" for name in self.names)
        return self.runner.start(self._mounted(["perf", "stat", "-e", events, "-p", str(pid)]),
                                 stderr=subprocess.DEVNULL)

    def count(self, argv, counter=None, expect=None):
        """Hits of @argv from its exec on, under @counter where one is given."""
        # preload_exec itself makes no hit.
        if counter:
            argv = [target("preload_exec"), counter.path, counter.library, *argv]
        events = ",".join(f"{self.group}:{name}" for name in self.names)
        with open_temporary() as output:
            self._traced(["perf", "stat", "-x", ",", "-o", output.name, "-e", events, "--",
                          *argv], expect=expect)
            hits = {}
            for line in output.read().splitlines():
                words = line.split(",")
                if len(words) > 2 and words[2].startswith(self.group + ":"):
                    hits[words[2].split(":")[1]] = int(words[0])
        assert set(hits) == set(self.names), f"perf stat counted only {hits}"
        return hits


class EveryHit(Hits):
    """Raw hits of functions of a file, in all processes, from here to the end of the block."""

    def __init__(self, runner, path, names):
        super().__init__(runner)
        self.path = os.path.realpath(path)
        self.offsets = symbol_offsets(self.path, names)
        self.names = [names[0] for names in by_address(self.path, names)]

    def _enable(self, value):
        instance = f"/sys/kernel/tracing/instances/{self.group}"
        make, remove = (f"mkdir {instance}; echo 4 >{instance}/buffer_size_kb;", "") if value else (
            "", f"rmdir {instance}")
        self._traced(["sh", "-ec", f"{make} echo {value} >{instance}/events/{self.group}/enable; {remove}"], expect=0)

    def __enter__(self):
        super().__enter__()
        self._enable(1)
        return self

    def __exit__(self, *error):
        self._enable(0)
        super().__exit__(*error)

    def read(self):
        """Hits by name."""
        profile = self._traced(["cat", "/sys/kernel/tracing/uprobe_profile"], expect=0).stdout.decode()
        rows = [line.rsplit(None, 2) for line in profile.splitlines()]
        hits = {name: int(n) for path, name, n in rows if path.strip() == self.path and name in self.offsets}
        assert set(hits) == set(self.names), f"the kernel counted only {hits}"
        return hits


def open_temporary():
    return tempfile.NamedTemporaryFile("r", prefix="allocprof-test-")


# The probe may sit a few instructions behind a function's entry.
SITE_BYTES = 48


def mapped_code(pid, path):
    """The executable mapping of @path in a process: its start and file offset."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            words = line.split()
            if len(words) > 5 and "x" in words[1] and os.path.basename(words[5]) == \
                    os.path.basename(path):
                return int(words[0].split("-")[0], 16), int(words[2], 16)
    raise LookupError(f"{path} is not mapped in {pid}")


def patched_functions(pid):
    """Which allocator functions of libc have a breakpoint in a process, by their first names."""
    path = libc_path()
    start, mapped_offset = mapped_code(pid, path)
    offsets = symbol_offsets(path)
    patched = set()
    with open(path, "rb") as file, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for names in by_address(path):
            offset = offsets[names[0]]
            end = min([o for o in offsets.values() if o > offset], default=offset + SITE_BYTES)
            size = min(end - offset, SITE_BYTES)
            file.seek(offset)
            memory.seek(start + offset - mapped_offset)
            if file.read(size) != memory.read(size):
                patched.add(names[0])
    return patched


def programs_of(pid):
    """Ids of the BPF programs that a process holds open."""
    ids = set()
    directory = f"/proc/{pid}/fdinfo"
    for name in os.listdir(directory):
        try:
            with open(f"{directory}/{name}") as info:
                ids.update(int(line.split()[1]) for line in info if line.startswith("prog_id:"))
        except FileNotFoundError:
            pass
    return ids


def program_names():
    """Names of all BPF programs of the kernel by id. The kernel keeps 15 letters of them."""
    bpftool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    output = subprocess.run([bpftool, "-j", "prog", "show"], check=True,
                            stdout=subprocess.PIPE).stdout
    return {program["id"]: program.get("name", "") for program in json.loads(output or b"[]")}


def loaded_programs():
    """Ids of all BPF programs of the kernel."""
    return set(program_names())


def read_report(path):
    """What `stat --json` wrote."""
    report = json.loads(path.read_text())
    assert report["schema"] == "allocprof-stat/1"
    return report


# Where sums of the engine preload stop: it does not believe what a target says of itself.
MOST_BYTES = 2**63 - 1


def handed_on(functions):
    """The library of the engine preload hands calls of reallocarray on as calls of realloc, and the counter, which is
    behind it, has them as these."""
    realloc, array = functions["realloc"], functions["reallocarray"]
    both = {**realloc, "aliases": [*realloc["aliases"], "reallocarray"]}
    both.update((name, min(realloc[name] + array[name], MOST_BYTES)) for name in ("calls", "bytes"))
    return {**{name: entry for name, entry in functions.items() if name != "reallocarray"}, "realloc": both}


def differences(report, counts):
    """Sentences on all that allocprof says otherwise than the counter."""
    functions = report["functions"]
    if report["engine"] == "preload":
        functions = handed_on(functions)
    wrong = []
    seen = set()
    size = 0

    def expect(what, expected, got):
        if expected != got:
            wrong.append(f"{what}: the counter has {expected}, allocprof {got}")

    def bytes_of(sizes):
        return min(sum(sizes), MOST_BYTES)

    for name, entry in functions.items():
        # Names at one address cannot be told apart by a probe.
        names = [name, *entry["aliases"]]
        seen.update(names)
        names = [n for n in names if n in FUNCTIONS]
        expect(f"{name}: calls", sum(counts[n].calls for n in names), entry["calls"])
        expect(f"{name}: bytes", bytes_of(counts[n].bytes for n in names), entry["bytes"])
        size += bytes_of(counts[n].bytes for n in names)
    for name in FUNCTIONS:
        if name not in seen and counts[name].calls:
            wrong.append(f"{name}: the counter has {counts[name].calls} calls, allocprof no entry")

    expect("allocations", counts.allocations, report["allocations"])
    expect("reallocations", counts.reallocations, report["reallocations"])
    expect("deallocations", counts.deallocations, report["deallocations"])
    # In totals a reallocation is one free and one allocation.
    expect("total_allocations", counts.allocations + counts.reallocations,
           report["total_allocations"])
    expect("remaining_allocations", counts.allocations - counts.deallocations,
           report["remaining_allocations"])
    expect("total_allocated_bytes", min(size, MOST_BYTES), report["total_allocated_bytes"])
    expect("lost", 0, report["lost"]["total"])
    return wrong


# As the view calls, with the functions that have code of their own: what compilers inline is up to
# them, and stated stacks are of calls.
UNINLINED = """CREATE TEMP VIEW uninlined AS
SELECT c.*, n.name AS called_by, (SELECT group_concat(name, ';') FROM (SELECT n.name AS name
    FROM stack_frames sf JOIN frame_names n ON n.frame = sf.frame AND NOT n.inlined
    WHERE sf.stack = c.stack ORDER BY sf.depth DESC)) AS functions
FROM calls c LEFT JOIN stack_frames sf ON sf.stack = c.stack AND sf.depth = 0
LEFT JOIN frame_names n ON n.frame = sf.frame AND NOT n.inlined"""


def gaps_of(database):
    """Number, object and detail of each gap of a recording, by kind."""
    gaps = {}
    for kind, *gap in database.execute("SELECT kind, number, object, detail FROM gaps WHERE NOT run"):
        gaps.setdefault(kind, []).append(tuple(gap))
    return gaps


@contextlib.contextmanager
def control_group():
    """A new control group of version 2, which is empty again at the end."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    groups = [pathlib.Path(words[1], f"allocprof-test-{os.getpid()}") for words in mounts if words[2] == "cgroup2"]
    try:
        groups[0].mkdir()
    except (IndexError, OSError) as error:
        unavailable(f"no control group of version 2 can be made: {error}")
    try:
        yield groups[0]
    finally:
        wait_until(lambda: not (groups[0] / "cgroup.procs").read_text(), "the group is empty")
        groups[0].rmdir()


class Recording:
    """A data file, read by SQL as anyone may."""

    def __init__(self, path):
        self.path = str(path)
        self.database = sqlite3.connect(f"file:{urllib.parse.quote(self.path)}?mode=ro", uri=True)
        self.database.execute(UNINLINED)
        self.ledger = dict(self.database.execute("SELECT name, value FROM ledger"))
        self.meta = dict(self.database.execute("SELECT key, value FROM meta"))
        self.gaps = gaps_of(self.database)
        self.functions = {}
        # Summed here: throw asks for more bytes than SQL can count.
        for name, calls, size in self.database.execute("SELECT function, calls, bytes FROM counts"):
            before = self.functions.get(name, (0, 0))
            self.functions[name] = before[0] + calls, before[1] + size

    def sql(self, query, *values):
        return self.database.execute(query, values).fetchall()

    def texts(self):
        """Calls by the text of their stack, without what is inlined."""
        return dict(self.sql("SELECT functions, sum(calls) FROM uninlined GROUP BY functions"))

    def differences(self, counts, functions=FUNCTIONS[:-1]):
        """Sentences on all that is recorded otherwise than the counter has it, and on a ledger that
        does not add up. @functions were asked for."""
        wrong = []

        def expect(what, expected, got):
            if expected != got:
                wrong.append(f"{what}: expected {expected}, got {got}")

        wanted = 0
        for names in by_address(libc_path()):
            calls = size = 0
            if set(names) & set(functions):
                calls = sum(counts[name].calls for name in names)
                size = sum(counts[name].bytes for name in names)
            wanted += calls
            got_calls, got_size = self.functions.get(names[0], (0, 0))
            expect(f"{names[0]}: calls", calls, got_calls)
            # Sums end at the most.
            expect(f"{names[0]}: bytes", min(size, MOST_BYTES), min(got_size, MOST_BYTES))
        expect("events", wanted, self.ledger["events"])
        expect("lost", 0, self.ledger["lost"])
        return wrong + self.unbalanced()

    def unbalanced(self, sampled=False):
        """What of the ledger does not add up."""
        ledger = self.ledger
        wrong = []
        for total, parts in (
                ("events", [*(["sampled", "not_sampled"] if sampled else ["attributed"]),
                            "lost"]),
                ("attributed", ["complete", "incomplete"]),
                ("lost", [n for n in ledger if n.startswith("lost_")]),
                ("incomplete", [n for n in ledger if n.startswith("incomplete_")])):
            if ledger[total] != sum(ledger[part] for part in parts):
                wrong.append(f"{total} is not {' + '.join(parts)}: {ledger}")
        counted = sum(calls for calls, _ in self.functions.values())
        if counted != ledger["attributed"]:
            wrong.append(f"{counted} calls in counts, {ledger['attributed']} attributed")
        return wrong


def stack_addresses(database):
    """What a data file says of addresses of code: ({stack: ((path, ELF virtual address), ...)} with the
    allocator's caller first, {(path, address): name of the function that has the code}). Only of what is
    on the stack, not of what tail calls removed."""
    paths = {0: None}
    paths.update((number, truth.real(path))
                 for number, path in database.execute("SELECT id, path FROM modules"))
    names = dict(database.execute("SELECT frame, name FROM frame_names WHERE inlined = 0"))
    places = {number: (paths[module], offset & (1 << 64) - 1) for number, module, offset in
              database.execute("SELECT id, module, offset FROM frames WHERE NOT tail_call")}
    stacks = {number: [] for number, in database.execute("SELECT id FROM stacks")}
    for stack, frame in database.execute(
            "SELECT stack, frame FROM stack_frames ORDER BY stack, depth"):
        if frame in places:
            stacks[stack].append(places[frame])
    return ({stack: tuple(frames) for stack, frames in stacks.items()},
            {place: names[number] for number, place in places.items()})


LOOP = ("the interpreter's loop", 0)


@functools.cache
def interpreter_loop(path):
    """Where the file has the loop of CPython's interpreter: its first address, and the one behind its last."""
    symbols = subprocess.run(["nm", "--dynamic", "--print-size", path], capture_output=True, text=True).stdout
    found = re.search(r"^(\w+) (\w+) T _PyEval_EvalFrameDefault$", symbols, re.M)
    start, size = (int(number, 16) for number in found.groups()) if found else (0, 0)
    return start, start + size


def with_loops_alike(frames):
    """The engine inside has the frames of Python in the place of that of the interpreter's loop: one for either."""
    alike = []
    for path, address in frames:
        name = os.path.basename(path or "")
        start, end = interpreter_loop(path) if name.startswith(("python", "libpython")) else (0, 0)
        frame = LOOP if name == "[Python]" or start < address <= end else (path, address)
        if frame != LOOP or alike[-1:] != [LOOP]:
            alike.append(frame)
    return tuple(alike)


# What record says of a command beside its summary.
REMARKS = re.compile(rb"^allocprof: (?:[\d,]+ calls? asked for 128 TiB or more"
                     rb"|the command was ended by the signal SIG).*\n", re.MULTILINE)


def without_summary(stderr):
    """What is the target's own of @stderr, and the lines that record ends with."""
    stderr = REMARKS.sub(b"", stderr)
    summary = re.findall(rb"^allocprof: (?:(?:allocations|not freed|temporary): "
                         rb"|recorded .*; next: allocprof report).*\n", stderr, re.MULTILINE)
    return stderr.replace(b"".join(summary), b""), summary


def folded(run, allocprof, data, *options):
    """The lines of `allocprof folded`: numbers by stack, and its result."""
    result = run([allocprof, "folded", "-i", data, *options], expect=0)
    lines = {}
    for line in result.stdout.decode().splitlines():
        stack, _, number = line.rpartition(" ")
        assert stack not in lines, f"two lines for {stack}"
        lines[stack] = int(number)
    return lines, result
