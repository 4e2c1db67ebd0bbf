# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot work says so in one sentence, with what, why and a remedy, ends with the status for it,
and leaves nothing half done."""

import os
import shutil
import sqlite3

import struct

import pytest

import conftest

from containers import own_mounts
from support import Obedient, wait_until

COMMANDS = ["stat", "record"]


@pytest.fixture
def refuse(run, tmp_path):
    """refuse(argv, status, words): it fails so, in one line that has these words, and no file comes
    or goes in the directory of the test."""
    def refuse(argv, status, *words, **options):
        before = contents(tmp_path)
        result = run(argv, expect=status, **options)
        lines = result.stderr.decode().splitlines()
        assert len(lines) == 1, result
        assert lines[0].startswith("allocprof: "), result
        assert len(lines[0]) < 400 and not lines[0].endswith("."), result
        for word in words:
            assert word in lines[0], f"no {word!r} in: {result}"
        assert result.stdout == b"", result
        assert contents(tmp_path) == before
        return result
    return refuse


def contents(directory):
    return {path: path.read_bytes() if path.is_file() and not path.is_symlink() else None
            for path in directory.rglob("*")}


# Privileges and the kernel

@pytest.mark.parametrize("command", COMMANDS)
def test_not_root(refuse, allocprof, public_directory, command):
    # Where its program can be reached; the command's own directory may not be.
    copy = public_directory / "allocprof"
    shutil.copy(allocprof, copy)
    (public_directory / "out").mkdir()
    (public_directory / "out").chmod(0o777)
    refuse(["setpriv", "--reuid=65534", "--clear-groups", copy, command, "-o", public_directory / "out/x",
            "--", "true"], 125, "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE", "as root")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("dropped, missing, others", [
    ("cap_bpf,cap_sys_admin", "CAP_BPF", ["CAP_PERFMON", "CAP_SYS_PTRACE"]),
    ("cap_perfmon,cap_sys_admin", "CAP_PERFMON", ["CAP_BPF", "CAP_SYS_PTRACE"]),
    ("cap_sys_ptrace", "CAP_SYS_PTRACE", ["CAP_BPF", "CAP_PERFMON"]),
])
def test_missing_capability(refuse, allocprof, tmp_path, command, dropped, missing, others):
    """It is named, and none that is there."""
    result = refuse([shutil.which("capsh") or "/sbin/capsh", f"--drop={dropped}", "--", "-c",
                     'exec "$@"', "sh", "env", "ALLOCPROF_ENGINE=uprobe", allocprof, command, "-o", tmp_path / "x", "--", "true"],
                    125, missing, "as root")
    assert not any(name.encode() in result.stderr for name in others)


def test_capabilities_that_do(run, allocprof):
    """What is asked for is enough: without CAP_SYS_ADMIN it works."""
    run([shutil.which("capsh") or "/sbin/capsh", "--drop=cap_sys_admin", "--", "-c", 'exec "$@"',
         "sh", allocprof, "stat", "--", "true"], expect=0)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("error", [1, 38], ids=["EPERM", "ENOSYS"])
def test_without_bpf(refuse, allocprof, target, tmp_path, command, error):
    refuse([target("without_bpf"), "bpf", error, "env", "ALLOCPROF_ENGINE=uprobe", allocprof, command, "-o", tmp_path / "x", "--",
            "true"], 125, "bpf(2)", "seccomp", "--engine=preload")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_perf_events(refuse, allocprof, target, tmp_path, command):
    refuse([target("without_bpf"), "perf", 1, "env", "ALLOCPROF_ENGINE=uprobe", allocprof, command, "-o", tmp_path / "x", "--",
            "true"], 125, "perf_event_open", "Operation not permitted")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_btf(refuse, allocprof, tmp_path, command):
    refuse(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh",
            "env", "ALLOCPROF_ENGINE=uprobe", allocprof, command, "-o", tmp_path / "x", "--", "true"], 125,
           "/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF")


# The command

@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_command_that_cannot_run(refuse, allocprof, target, tmp_path, command):
    argv = [allocprof, command, "-o", tmp_path / "x", "--"]
    (tmp_path / "text").write_text("true\n")
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o755)
    refuse([*argv, "no-such-command"], 127, "'no-such-command'", "PATH")
    refuse([*argv, "/no/such/command"], 127, "'/no/such/command'", "no such file")
    refuse([*argv, ""], 127, "cannot run ''")
    refuse([*argv, tmp_path / "text"], 126, "text'", "not an executable file", "chmod")
    refuse([*argv, tmp_path], 126, str(tmp_path), "is a directory")
    refuse([*argv, tmp_path / "orphan"], 127, "orphan'", "interpreter")


@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_static_without_symbols(refuse, allocprof, target, tmp_path, command):
    refuse([allocprof, command, "-o", tmp_path / "x", "--", target("static_stripped")], 125,
           "static", "strip")


# The process

@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_process_that_cannot_be_attached_to(refuse, runner, allocprof, target, tmp_path, command):
    def attach(pid, status, *words):
        refuse([allocprof, command, "-o", tmp_path / "x", "-p", pid], status, *words)

    odd = Obedient.__new__(Obedient)
    odd.process = runner.start([target("ends_unnoticed")], stdin=-1, stdout=-1)
    odd.pid, odd.pending = odd.process.pid, b""
    zombie, thread = odd.read_line(), odd.read_line()
    attach(zombie, 125, f"process {zombie} has ended", "parent")
    attach(thread, 125, f"{thread} is a thread of process {odd.pid}", f"-p {odd.pid}")
    attach(2, 125, "process 2 is a kernel thread")
    with open("/proc/sys/kernel/pid_max") as file:
        beyond = int(file.read()) + 1
    attach(beyond, 125, f"no process {beyond}", "ps")
    for garbage in ("", "x", "12x", "-1", "0", "1.5", "99999999999999999999", " "):
        attach(garbage, 64, f"'{garbage}' is no process id")
    odd.exit()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_process_that_ends_meanwhile(runner, allocprof, target, tmp_path, command):
    """It ends while the probes are being set or after: a sentence, or an empty report; never silence
    with an error's status, and no hang."""
    for round in range(10):
        output = tmp_path / f"x{round}"
        obedient = Obedient(runner, [target("sleeper")])
        process = runner.start([allocprof, command, "-o", output, "-p", obedient.pid], stderr=-1)
        # At another point of allocprof's start each time, whatever the machine's speed.
        steps = [lambda: process.poll() is not None, *[
            lambda n=n: len(os.listdir(f"/proc/{process.pid}/fd")) > n
            for n in (2, 4, 8, 12, 16, 20, 24, 28, 32)]]
        wait_until(lambda: process.poll() is not None or round == 0 or steps[round](), "its start")
        obedient.exit()
        _, stderr = process.communicate()
        if process.returncode == 0:
            assert output.exists()
        else:
            assert process.returncode == 125, stderr
            assert stderr.startswith(b"allocprof: ") and stderr.count(b"\n") == 1, stderr
            assert b"ended" in stderr or b"no process" in stderr, stderr
            assert not output.exists()


@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_attached_without_allocator(refuse, runner, allocprof, target, tmp_path, command):
    obedient = Obedient(runner, [target("static_stripped")])
    refuse([allocprof, command, "-o", tmp_path / "x", "-p", obedient.pid], 125,
           f"process {obedient.pid} has no allocator", "static", "symbols")
    obedient.exit()


@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_translator(refuse, run, runner, allocprof, target, tmp_path, own_libc, command):
    """A breakpoint in code that is copied would end the program, the target or any other that has the file mapped."""
    if not shutil.which("valgrind"):
        conftest.unavailable("valgrind is not installed")
    measure = [allocprof, command, "--engine=uprobe", "-o", tmp_path / "x"]
    refuse([*measure, "valgrind", "-q", target("nothing")], 125, "runs copies of its program's code")
    obedient = Obedient(runner, ["valgrind", "-q", target("sleeper")], env=own_libc)
    refuse([*measure, "-p", obedient.pid], 125, "runs copies of its program's code")
    refuse([*measure, target("nothing")], 125, f"process {obedient.pid}", "libc.so.6", "--isolate", "--force", env=own_libc)
    other = Obedient(runner, [target("sleeper")], env=own_libc)
    # Probes in copies, in one process, in no process, and in another file do no harm.
    run([*measure, "--duration", "100ms", "-p", other.pid], expect=0)
    run([*measure, "--isolate", target("nothing")], env=own_libc, expect=0)
    run([*measure, "--engine=preload", target("nothing")], env=own_libc, expect=0)
    run([*measure, target("nothing")], expect=0)
    obedient.ask("alloc 10")
    other.exit()
    # Its process has nothing more to allocate.
    run([*measure, "--force", target("nothing")], env=own_libc, expect=0)
    obedient.exit()


# Options

@pytest.mark.parametrize("words, message", [
    (["--jsn", "true"], "did you mean '--json'?"),
    (["--utput=x", "true"], "did you mean '--output'?"),
    (["--qwertyuiop", "true"], "`allocprof stat --help` lists all"),
    (["-Z", "true"], "unknown option '-Z'"),
    (["--json=yes", "true"], "takes no value"),
    (["-o"], "'-o' needs a value"),
    (["--output"], "'--output' needs a value"),
    ([], "no target; give a command"),
    (["--"], "no target; give a command"),
    (["--stop-limit", "5ms", "true"], "--stop-limit means nothing without -p and --engine=preload"),
    (["-p", "1", "true"], "-p and the command 'true' cannot be used together"),
    (["-p"], "'-p' needs a value"),
    (["--duration", "0", "true"], "'0' is no duration"),
    (["--duration", "-1s", "true"], "'-1s' is no duration"),
    (["--duration", "1 week", "true"], "'1 week' is no duration"),
    (["--duration", "nan", "true"], "'nan' is no duration"),
    (["--duration", "inf", "true"], "'inf' is no duration"),
    (["--duration", "1e300", "true"], "'1e300' is no duration"),
    (["--duration", "", "true"], "'' is no duration"),
    (["-e", "maloc", "true"], "did you mean 'malloc'"),
    (["-e", "malloc,", "true"], "unknown function ''"),
    (["-e", "", "true"], "unknown function ''"),
    (["-e", "x" * 300, "true"], "unknown function"),
    (["--sample", "1M", "true"], "unknown option '--sample'"),
])
def test_options_of_stat(refuse, allocprof, words, message):
    refuse([allocprof, "stat", *words], 64, message)


@pytest.mark.parametrize("words, message", [
    (["--max-depth", "0", "true"], "'0' is no stack depth; --max-depth takes 1 to 512"),
    (["--max-depth", "513", "true"], "'513' is no stack depth"),
    (["--max-depth", "-5", "true"], "'-5' is no stack depth"),
    (["--max-depth", "deep", "true"], "'deep' is no stack depth"),
    (["--max-depth", "18446744073709551617", "true"], "is no stack depth"),
    (["--json", "true"], "unknown option '--json'"),
    (["--sample", "0", "true"], "'0' cannot be sampled; --sample takes 1 byte to 1G"),
    (["--sample", "2G", "true"], "'2G' cannot be sampled"),
    (["--sample", "half", "true"], "'half' is no size"),
    (["--durations", "1", "true"], "did you mean '--duration'?"),
])
def test_options_of_record(refuse, allocprof, words, message):
    refuse([allocprof, "record", *words], 64, message)


@pytest.mark.parametrize("words, message", [
    ([], "no command given"),
    (["stta", "true"], "did you mean 'stat'?"),
    (["rcord", "true"], "did you mean 'record'?"),
    (["ls"], "unknown command 'ls'"),
    (["--versoin"], "did you mean '--version'?"),
    (["folded", "--cost=time"], "unknown cost 'time'; --cost is allocations, bytes, live, live-bytes, temporary or peak"),
    (["folded", "one", "two"], "one data file is read, not both one and two"),
    (["folded", "--by=process,cpu"], "unknown root 'cpu'"),
    (["folded", "--demangle=short"], "--demangle is simple, full or none"),
])
def test_commands(refuse, allocprof, words, message):
    refuse([allocprof, *words], 64, message)


# Data files

@pytest.fixture
def data(run, allocprof, target, tmp_path):
    path = tmp_path / "good.data"
    run([allocprof, "record", "-o", path, "--", target("every_function")], expect=3)
    return path


def test_data_file(refuse, run, allocprof, tmp_path, data):
    def folded(path, *words, status=2):
        refuse([allocprof, "folded", "-i", path], status, str(path), *words)

    good = data.read_bytes()
    run([allocprof, "folded", "-i", data], expect=0)
    folded(tmp_path / "nothing", "no such file", "allocprof record")
    folded(tmp_path, "is a directory", "-i")
    folded("/dev/null", "not a data file")
    bad = tmp_path / "bad.data"
    for size in (0, 1, 50, 100, 4096, len(good) // 2, len(good) - 1):
        bad.write_bytes(good[:size])
        folded(bad, "damaged" if size else "", ";")
    for content in (b"not ours\n", b"\x7fELF" + good, bytes(8192), b"SQLite format 3\0" + bytes(200)):
        bad.write_bytes(content)
        folded(bad, ";")
    bad.unlink()
    database = sqlite3.connect(bad)
    database.execute("CREATE TABLE meta(key, value)")
    database.commit()
    database.close()
    folded(bad, "not a data file of allocprof")
    bad.write_bytes(good)
    database = sqlite3.connect(bad)
    database.execute("UPDATE meta SET value = '6' WHERE key = 'schema_version'")
    database.commit()
    database.close()
    folded(bad, "newer allocprof", "schema 6", "update")


# Where output goes

@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written(refuse, allocprof, target, tmp_path, command):
    """Told before the command runs: it would print "done"."""
    def write(path, *words):
        refuse([allocprof, command, "-o", path, "--", target("threads")], 125,
               f"cannot write {path}", *words, "-o")

    write(tmp_path / "no/such/x", "No such file or directory")
    write(tmp_path, "irectory")
    (tmp_path / "file").write_text("kept")
    write(tmp_path / "file/x", "Not a directory")
    write("/proc/x", "")


def on_file_system(argv, directory, options, prepare="true"):
    """Runs in a mount namespace where @directory is a file system of its own; shows its files after."""
    script = (f"mount -t tmpfs -o {options} none '{directory}' && cd '{directory}' && {prepare} || "
              'exit 99; "$@"; status=$?; sha256sum * >"$0"; ls -A >>"$0"; exit $status')
    return ["unshare", "-m", "sh", "-c", script, str(directory) + ".files", *argv]


@pytest.mark.parametrize("command", COMMANDS)
def test_read_only(run, allocprof, target, tmp_path, command):
    directory = tmp_path / "mount"
    directory.mkdir()
    argv = on_file_system([allocprof, command, "-o", directory / "x", "--", target("threads")],
                          directory, "mode=755", f"mount -o remount,ro '{directory}'")
    result = run(argv, expect=125)
    assert result.stdout == b"", "the command ran for nothing"
    assert result.stderr.count(b"\n") == 1 + result.stderr.count(b"sha256sum"), result
    assert f"allocprof: cannot write {directory}/x: Read-only file system".encode() in result.stderr


@pytest.mark.fast("new-stat", "older-record")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("older", [False, True], ids=["new", "older"])
def test_full(run, allocprof, target, tmp_path, command, older):
    """No room for the result: the command has run and its output is there, an older file is as it
    was, and nothing else is left. The command's words are in the result and make it long."""
    directory = tmp_path / "mount"
    directory.mkdir()
    prepare = "head -c 1000 /dev/urandom >x;" if older else ""
    prepare += "head -c 1000000 /dev/zero >filler 2>/dev/null; sha256sum * >'%s.before';true" % directory
    argv = on_file_system([allocprof, command, *(["--json"] if command == "stat" else []), "-o",
                           directory / "x", "--", "sh", "-c", f"echo done # {'x' * 8000}"],
                          directory, "size=12k", prepare)
    result = run(argv, expect=125)
    assert result.stdout == b"done\n"
    assert result.stderr.count(b"\n") == 1, result
    assert f"allocprof: cannot write {directory}/x: No space left on device; ".encode() in \
        result.stderr
    before = (tmp_path / "mount.before").read_text()
    names = "filler\n" + "x\n" * older
    assert (tmp_path / "mount.files").read_text() == before + names


def test_no_room_for_names(run, allocprof, target, tmp_path):
    """The calls are there, and the message says so, and how names are added."""
    directory, whole = tmp_path / "mount", tmp_path / "whole.data"
    directory.mkdir()
    run([allocprof, "record", "--no-symbols", "-o", whole, "--", target("every_function")], expect=3)
    # One copy has room, two have not.
    size = whole.stat().st_size * 5 // 4
    copy = tmp_path / "x.data"
    command = [allocprof, "record", "-o", directory / "x", "--", target("every_function")]
    result = run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size="$0" none "$1" || exit 99; kept=$1; copy=$2; shift 2; '
                  '"$@"; status=$?; ls -A "$kept" >"$copy.names"; cp "$kept/x" "$copy"; exit $status',
                  str(size), directory, copy, *command], expect=125)
    said = result.stderr.decode()
    assert f"allocprof: {directory}/x has all calls, but lacks names of functions: cannot write {directory}/x: " \
        "No space left on device; " in said and said.endswith("then `allocprof symbolize` adds them\n"), said
    assert (tmp_path / "x.data.names").read_text() == "x\n"
    calls = "SELECT function, sum(calls), sum(bytes) FROM calls GROUP BY function"
    assert run([allocprof, "query", "-i", copy, calls]).stdout == run([allocprof, "query", "-i", whole, calls]).stdout
    run([allocprof, "symbolize", "--no-debuginfod", copy], expect=0)
    assert b";main" in run([allocprof, "folded", copy], expect=0).stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_dev_full(run, allocprof, target, command):
    result = run([allocprof, command, "-o", "/dev/full", "--", target("threads")], expect=125)
    assert result.stderr.startswith(b"allocprof: cannot write /dev/full: ")
    assert result.stderr.count(b"\n") == 1
    assert os.stat("/dev/full").st_rdev == os.makedev(1, 7)


def test_folded_to_a_full_device(refuse, allocprof, data):
    refuse([allocprof, "folded", "-i", data, "-o", "/dev/full"], 2, "/dev/full",
           "No space left on device")


def test_pprof_is_no_json(refuse, allocprof, data, tmp_path):
    refuse([allocprof, "export", "-i", data, "-o", tmp_path / "x.json"], 64, "pprof", "--format=speedscope")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.fast("stat")
@pytest.mark.parametrize("command", COMMANDS)
def test_failure_keeps_the_older_file(run, refuse, allocprof, target, tmp_path, command):
    """A command that cannot run, or a process that is not there, costs nothing that was measured."""
    output = tmp_path / "x"
    run([allocprof, command, "-o", output, "--", "true"], expect=0)
    refuse([allocprof, command, "-o", output, "--", "no-such-command"], 127, "no-such-command")
    refuse([allocprof, command, "-o", output, "-p", 2], 125, "kernel thread")


# Libraries

def test_graph_without_cairo(refuse, run, allocprof, target, tmp_path):
    """It is loaded for pictures only, so that all else works without it."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-q", "-o", data, "--", target("nothing")], expect=0)
    with own_mounts():
        library = run(["gcc", "-print-file-name=libcairo.so.2"], expect=0).stdout.decode().strip()
        run(["mount", "--bind", "/dev/null", library], expect=0)
        refuse([allocprof, "graph", "-o", tmp_path / "graph.svg", data], 2, "libcairo.so.2", "libcairo2", "--json")
        run([allocprof, "graph", "--json", "-o", tmp_path / "graph.json", data], expect=0)



def test_archive_without_libarchive(refuse, run, allocprof, target, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "-o", data, "--", target("nothing")], expect=0)
    with own_mounts():
        library = run(["gcc", "-print-file-name=libarchive.so.13"], expect=0).stdout.decode().strip()
        run(["mount", "--bind", "/dev/null", library], expect=0)
        refuse([allocprof, "archive", "-o", tmp_path / "a.tar.gz", data], 2, "libarchive.so.13", "libarchive13t64")
        run([allocprof, "report", data], expect=0)
    assert not (tmp_path / "a.tar.gz").exists()


def test_32_bit_program(run, allocprof, tmp_path):
    """Both engines and doctor say the same of it, and none sends to the other. The kernel need not run such programs."""
    interpreter = b"/lib/ld-linux.so.2\0"
    header = b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x8048074, 52, 0, 0, 52, 32, 2, 40, 0, 0)
    segments = struct.pack("<8I", 3, 116, 0x8048074, 0x8048074, len(interpreter), len(interpreter), 4, 1) + \
        struct.pack("<8I", 1, 0, 0x8048000, 0x8048000, 200, 200, 5, 4096)
    program = tmp_path / "program"
    program.write_bytes((header + segments + interpreter).ljust(256, b"\0"))
    program.chmod(0o755)
    said = {}
    for name, argv in {"stat": ["stat", program], "record": ["record", "-o", tmp_path / "x", program], "doctor": ["doctor", program],
                       "preload": ["stat", "--engine=preload", program],
                       "live": ["record", "--live", "--engine=preload", "-o", tmp_path / "y", program]}.items():
        result = run([allocprof, *argv])
        said[name] = " ".join(result.stderr.decode().split())
        assert "a 32-bit program" in said[name] and "allocprof measures 64-bit" in said[name], result
        assert "--engine" not in said[name] and "allocprof-allocators" not in said[name], result
