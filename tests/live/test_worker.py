# SPDX-License-Identifier: GPL-3.0-or-later
"""What reads files of others has no privileges, and costs names only, whatever becomes of it."""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

import containers
import support

EXIT_STATUS = 3  # every_function's
FIRST_USER = 0x70000000
SECCOMP_FILTER = "2"
PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000


@pytest.fixture
def misled(allocprof):
    """allocprof whose workers fail as they are told to."""
    return str(support.BUILD / "tests" / "misled" / "allocprof_misled")


@pytest.fixture
def program(public_directory):
    return str(shutil.copy(support.target("every_function"), pathlib.Path(public_directory) / "misleading"))


def attach(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0, os.strerror(ctypes.get_errno())
    os.waitpid(pid, WALL)
    return lambda: libc.ptrace(PTRACE_DETACH, pid, None, None)


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found += map(int, (task / "children").read_text().split())
    return found


def wait_for_worker(process, name, path):
    """The worker of that name that was handed that file: others read other files, before and beside it."""
    deadline = time.monotonic() + support.TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "it ended"
        for child in children(process.pid):
            try:
                status = pathlib.Path(f"/proc/{child}/status").read_text()
                file = os.readlink(f"/proc/{child}/fd/4")
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has no request yet, or has ended
            if f"Name:\t{name}" in status and f"Seccomp:\t{SECCOMP_FILTER}" in status and file == path:
                return child
        time.sleep(0.01)
    raise TimeoutError(f"no process {name} with {path}")


@pytest.mark.parametrize("sudo", [None, 1234], ids=["root", "sudo"])
def test_confinement(run, runner, allocprof, misled, program, tmp_path, sudo):
    """A worker that hangs while it is looked at: whose it is, and what it has."""
    data = tmp_path / "data"
    run([allocprof, "record", "--no-symbols", "-o", data, "--", program], expect=EXIT_STATUS)
    env = {**os.environ, "ALLOCPROF_TEST_WORKER": "hang:misleading"}
    env.pop("SUDO_UID", None)
    if sudo:
        env |= {"SUDO_UID": str(sudo), "SUDO_GID": str(sudo)}
    process = subprocess.Popen([misled, "symbolize", "-i", data], env=env, stderr=subprocess.PIPE)
    try:
        worker = wait_for_worker(process, "allocprof-names", program)
        detach = attach(worker)
        proc = pathlib.Path(f"/proc/{worker}")
        status = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
        files = {fd.name: os.readlink(fd) for fd in (proc / "fd").iterdir()}
        maps = (proc / "maps").read_text().splitlines()
        limits = {line[:26].strip(): line[26:].split() for line in (proc / "limits").read_text().splitlines()[1:]}
        detach()
        user = str(FIRST_USER + worker)
        assert status["Uid"].split() == status["Gid"].split() == 4 * [user]
        for other in 65534, 1234:  # Neither nobody nor the user who called sudo may stop or end it.
            signals = run(["setpriv", f"--reuid={other}", f"--regid={other}", "--clear-groups",
                           "sh", "-c", f"kill -STOP {worker} || kill -KILL {worker}"])
            assert signals.status != 0 and b"not permitted" in signals.stderr.lower(), signals
        assert status["Groups"].split() == []
        assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == SECCOMP_FILTER
        assert {name: path for name, path in files.items() if int(name) < 3} == dict.fromkeys("012", "/dev/null")
        assert files["3"].startswith("socket:")
        # What it was handed: the program's file.
        assert [path for name, path in files.items() if int(name) > 3] == [program]
        assert not [line for line in maps if line.split()[1][3] == "s"]
        assert limits["Max core file size"][:2] == limits["Max file size"][:2] == ["0", "0"]
        assert int(limits["Max open files"][1]) == 4096
        assert limits["Max data size"][1] != "unlimited" and limits["Max cpu time"][1] != "unlimited"
        os.kill(worker, signal.SIGKILL)
        assert b"have a name" in process.communicate(timeout=support.TIMEOUT_SECONDS)[1]
    finally:
        process.kill()
        process.wait()
    assert not pathlib.Path(f"/proc/{worker}").exists()


PROBLEMS = {
    "crash": "was ended by signal 11",
    "hang": "took longer than 2 s",
    "nonsense": "gave no valid answer",
    "forbidden": "made a system call that is not allowed",
}


@pytest.mark.parametrize("how", PROBLEMS)
def test_failing_worker_costs_names_of_its_file(run, misled, program, tmp_path, how):
    """The counts are there, other files have their names, and the report says whose are missing, and why."""
    data = tmp_path / "data"
    env = {"ALLOCPROF_TEST_WORKER": f"{how}:misleading"}
    if how == "hang":
        env["ALLOCPROF_TEST_TIMEOUT_MS"] = "2000"
    run([misled, "record", "-o", data, "--", program], env, expect=EXIT_STATUS)
    recording = support.Recording(data)
    named = dict(recording.sql("SELECT m.path, count(l.frame) FROM frames f JOIN modules m ON m.id = f.module "
                               "LEFT JOIN lines l ON l.frame = f.id GROUP BY m.path"))
    assert named.pop(program) == 0
    assert any(n for path, n in named.items() if "libc.so.6" in path), named
    ((text,),) = recording.sql("SELECT symbols FROM modules WHERE path = ?", program)
    assert text.startswith("it could not be read safely: the process that read it ") and PROBLEMS[how] in text
    ((unread,),) = recording.sql("SELECT value FROM meta WHERE key = 'unread_files'")
    assert unread == f"{program}: {text}"
    report = run([misled, "report", "-i", data], expect=0)
    assert f"names are missing: {program}: {text}".encode() in report.stderr
    # The file is not to blame: with a worker that works it has names.
    run([misled, "symbolize", "-i", data], expect=0)
    (found,) = support.Recording(data).sql("SELECT count(*) FROM lines l JOIN frames f ON f.id = l.frame "
                                           "JOIN modules m ON m.id = f.module WHERE m.path = ?", program)
    assert found[0]
    assert b"names are missing" not in run([misled, "report", "-i", data], expect=0).stderr


def test_file_that_shrinks_while_it_is_read(run, allocprof, misled, program, tmp_path):
    """libelf has mapped it: reading it raises SIGBUS, which ends what reads and nothing else."""
    data = tmp_path / "data"
    run([allocprof, "record", "--no-symbols", "-o", data, "--", program], expect=EXIT_STATUS)
    process = subprocess.Popen([misled, "symbolize", "-i", data], stderr=subprocess.PIPE,
                               env={**os.environ, "ALLOCPROF_TEST_WORKER": "truncate:misleading"})
    try:
        maps = pathlib.Path(f"/proc/{wait_for_worker(process, 'allocprof-names', program)}/maps")
        while program not in maps.read_text():
            time.sleep(0.01)
        os.truncate(program, 0)
        assert b"have a name" in process.communicate(timeout=support.TIMEOUT_SECONDS)[1]
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()
    recording = support.Recording(data)
    ((unread,),) = recording.sql("SELECT value FROM meta WHERE key = 'unread_files'")
    assert unread.startswith(f"{program}: ") and "signal 7" in unread
    ((named,),) = recording.sql("SELECT count(*) FROM lines")
    assert named


def test_failing_worker_costs_names_of_its_perf_map(run, misled, tmp_path):
    data = tmp_path / "data"
    run([misled, "record", "-o", data, "--", support.target("jit")],
        {"ALLOCPROF_TEST_WORKER": "crash:perf.map"})
    report = run([misled, "report", "-i", data], expect=0)
    assert b"names are missing: /tmp/perf-" in report.stderr
    assert b"was ended by signal 11" in report.stderr


@pytest.mark.parametrize("how", ["crash", "nonsense", "forbidden"])
def test_failing_worker_costs_frames_of_tail_calls(run, misled, tmp_path, how):
    data = tmp_path / "data"

    def stacks():
        return sorted(support.Recording(data).sql(
            "SELECT bytes, (SELECT group_concat(name) FROM stack_frames s JOIN frame_names n ON n.frame = s.frame "
            "WHERE s.stack = c.stack) FROM counts c"))

    run([misled, "record", "-o", data, support.target("tail_calls")], expect=0)
    whole = stacks()
    run([misled, "record", "-o", data, support.target("tail_calls")], {"ALLOCPROF_TEST_WORKER": f"{how}:code"}, expect=0)
    without = stacks()
    assert [size for size, _ in without] == [size for size, _ in whole]
    assert without != whole
    report = run([misled, "report", data], expect=0)
    assert b"names are missing: functions that ended by a tail call: the process that read the machine code " in report.stderr
    assert PROBLEMS[how].encode() in report.stderr
    run([misled, "symbolize", data], expect=0)
    assert stacks() == whole
    assert b"names are missing" not in run([misled, "report", data], expect=0).stderr


@pytest.fixture
def installed_misled(misled, tmp_path):
    """Where --engine=preload finds its library."""
    (tmp_path / "cli").mkdir()
    (tmp_path / "src").symlink_to(support.BUILD / "src")
    return shutil.copy(misled, tmp_path / "cli" / "allocprof")


@pytest.mark.engines("uprobe", "preload")
def test_no_worker_lives(run, installed_misled, tmp_path, engine):
    """Each is killed before it reads anything: the command runs as it would, and what is missing is said."""
    done = run([installed_misled, "record", f"--engine={engine}", "-o", tmp_path / "data", "--", "sh", "-c", "echo ran; exit 3"],
               {"ALLOCPROF_TEST_START": str(int(signal.SIGKILL))}, expect=3)
    assert done.stdout == b"ran\n"
    # Where the allocators' functions are, or only the unwind tables.
    missing = b"was ended by signal 9" if engine == "uprobe" else b"(0.0 % of the calls have a complete stack)"
    assert missing in done.stderr, done.stderr


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("command", ["stat", "record"])
def test_libelf_reads_files_of_others_in_workers_only(run, installed_misled, program, tmp_path, engine, command):
    """Where libelf or libdw opens the program, they crash: that ends a worker, and neither the recording nor the target."""
    data = ["-o", tmp_path / "data"] if command == "record" else []
    done = run([installed_misled, command, f"--engine={engine}", *data, "--", program],
               {"ALLOCPROF_TEST_ELF": "misleading"}, expect=EXIT_STATUS)
    assert f"{program} could not be read safely: the process that read it {PROBLEMS['crash']}" in \
        " ".join(done.stderr.decode().split()), done.stderr


def test_failing_worker_costs_the_archive_a_debug_file(run, allocprof, misled, program, tmp_path):
    data, archive, debug = tmp_path / "data", tmp_path / "data.tar.gz", tmp_path / "debug"
    debug.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", program, debug / "misleading.debug"], check=True)
    subprocess.run(["strip", program], check=True)
    run([allocprof, "record", "--no-symbols", "-o", data, "--", program], expect=EXIT_STATUS)

    def members():
        return subprocess.run(["tar", "-tf", archive], capture_output=True, text=True, check=True).stdout.splitlines()

    run([misled, "archive", "--debug-dir", debug, data], expect=0)
    whole = members()
    done = run([misled, "archive", "--debug-dir", debug, data], {"ALLOCPROF_TEST_ELF": "misleading"}, expect=0)
    ((build_id,),) = support.Recording(data).sql("SELECT build_id FROM modules WHERE path = ?", program)
    assert set(whole) - set(members()) == {f".build-id/{build_id[:2]}/{build_id[2:]}.debug"}
    said = " ".join(done.stderr.decode().split())
    assert f"left out: the debug files of {program}: it could not be read safely: " \
        f"the process that read it {PROBLEMS['crash']}" in said


@pytest.mark.engines("uprobe", "preload")
def test_file_system_in_user_space(run, allocprof, public_directory, engine):
    """As AppImages that root runs mount it (FUSE without allow_other): the kernel lets nobody but root ask for a file's status."""
    if not shutil.which("squashfuse") or not os.path.exists("/dev/fuse"):
        support.unavailable("squashfuse or /dev/fuse is missing")
    image, files, mounted = (pathlib.Path(public_directory) / name for name in ("image", "files", "mounted"))
    files.mkdir(), mounted.mkdir()
    shutil.copy(support.target("every_function"), files / "program")
    subprocess.run(["mksquashfs", files, image, "-quiet", "-noappend"], check=True, stdout=subprocess.DEVNULL)

    def recorded(path):
        data = path.parent.parent / "data"
        run([allocprof, "record", "--live", f"--engine={engine}", "-o", data, "--", path], expect=EXIT_STATUS)
        run([allocprof, "folded", "--strict", data], expect=0)
        return sorted(run([allocprof, "folded", data], expect=0).stdout.splitlines())

    with containers.own_mounts():
        subprocess.run(["squashfuse", image, mounted], check=True)
        try:
            found = recorded(mounted / "program")
        finally:
            subprocess.run(["umount", mounted], check=True)
    assert found == recorded(files / "program")


@pytest.mark.parametrize("wrong, why", [
    ("other", "it has neither the build id nor the checksum that it should have"),
    ("no-elf", "it is no ELF file"),
], ids=["other", "no-elf"])
def test_archive_has_no_debug_file_but_the_right_one(run, allocprof, misled, program, tmp_path, wrong, why):
    """Whatever file the worker names: that of another program, or one that is no ELF file. Both are named."""
    data, archive, named = tmp_path / "data", tmp_path / "data.tar.gz", tmp_path / "named"
    if wrong == "other":
        shutil.copy(support.target("threads"), named)
    else:
        named.write_text("no ELF file")
    subprocess.run(["strip", program], check=True)
    run([allocprof, "record", "--no-symbols", "-o", data, "--", program], expect=EXIT_STATUS)
    done = run([misled, "archive", data], {"ALLOCPROF_TEST_DEBUG_FILE": str(named)}, expect=0)
    assert f"left out: the debug file {named} of {program}: {why}" in " ".join(done.stderr.decode().split())
    members = subprocess.run(["tar", "-tf", archive], capture_output=True, text=True, check=True).stdout.splitlines()
    ((build_id,),) = support.Recording(data).sql("SELECT build_id FROM modules WHERE path = ?", program)
    name = f".build-id/{build_id[:2]}/{build_id[2:]}"
    assert name in members and f"{name}.debug" not in members
