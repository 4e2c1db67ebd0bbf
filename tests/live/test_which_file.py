# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions have the names of the file that was mapped, whatever has become of it since and
whatever is at its path now. The file that must not be taken differs in a name only."""

import collections
import contextlib
import errno
import os
import pathlib
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess

import pytest

from support import (Obedient, Recording, TIMEOUT_SECONDS, shell_status, stack_addresses, stop, wait_until,
                     wait_until_counting)

PROGRAM_BYTES = 1111
LIBRARY_BYTES = 2222


@pytest.fixture
def program(target, tmp_path):
    """A copy of which_first."""
    return pathlib.Path(shutil.copy(target("which_first"), tmp_path / "program"))


@pytest.fixture
def library(target, tmp_path):
    return pathlib.Path(shutil.copy(target("libwhich_first.so"), tmp_path / "library.so"))


class Recorder:
    """Starts allocprof and reads what it recorded."""

    def __init__(self, runner, allocprof, tmp_path):
        self.runner = runner
        self.data = tmp_path / "data"
        self.argv = [allocprof, "record", "-o", self.data]

    def launch(self, *argv, options=()):
        return Obedient(self.runner, [*self.argv, *options, "--", *argv])

    def run(self, *argv, options=(), expect=0):
        return self.runner.run([*self.argv, *options, "--", *argv], expect=expect)

    def makers(self, size):
        """Who made blocks of a size, and how often, each by a complete stack; "no name" where its
        file could not be had."""
        recording = Recording(self.data)
        assert recording.unbalanced() == []
        assert recording.ledger["lost"] == 0
        stacks = recording.sql("SELECT caller, frames, end, calls FROM calls "
                               "WHERE function = 'malloc' AND bytes = calls * ?", size)
        makers = {}
        for caller, frames, end, calls in stacks:
            assert end == "complete", f"{frames} ends by {end}"
            if re.fullmatch(r"\[(program|library\.so)\+0x[0-9a-f]+\]", caller):
                caller = "no name"
            makers[caller] = makers.get(caller, 0) + calls
        return makers


@pytest.fixture
def recorder(runner, allocprof, tmp_path):
    return Recorder(runner, allocprof, tmp_path)


def is_path(found, path):
    """Whether the kernel calls the file at @path that. Where tests run in a chroot, it has the path of
    what cannot be reached from there, as in another mount namespace, from the outermost root."""
    return found.endswith(str(path))


def holds(pid, path):
    """Whether a process has the file open that was at @path when it opened it."""
    directory = f"/proc/{pid}/fd"
    for name in os.listdir(directory):
        try:
            link = os.readlink(f"{directory}/{name}")
        except FileNotFoundError:
            continue
        if is_path(link.removesuffix(" (deleted)"), path):
            return True
    return False


def attach(recorder, pid):
    """allocprof, recording the process."""
    process = recorder.runner.start([*recorder.argv, "-p", pid], stderr=subprocess.PIPE)
    wait_until_counting(recorder.argv[0], process)
    return process


def detach(process):
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert shell_status(process.returncode) == 0


def wait_for_hold(process, path):
    wait_until(lambda: holds(process.pid, path), f"allocprof has {path} open")


class Shell:
    """sh, recorded, that runs one command after the other."""

    def __init__(self, recorder, *options, inside=()):
        self.process = recorder.runner.start([*recorder.argv, *options, "--", *inside, "sh"],
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # It has begun.
        self.run("true")

    def run(self, *argv, holding=()):
        """@holding are files that allocprof has to have found before the next command."""
        words = shlex.join(str(word) for word in argv)
        self.process.stdin.write(f"{words}; echo $?\n".encode())
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"0\n", f"{words} failed"
        for path in holding:
            wait_for_hold(self.process, path)

    @contextlib.contextmanager
    def asleep(self):
        """allocprof does nothing meanwhile."""
        stop(self.process.pid)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None
        assert shell_status(self.process.wait(TIMEOUT_SECONDS)) == 0


def replace(path, by, way):
    """Makes @by what is at @path: another file, or the same with other contents."""
    if way == "renamed":
        new = path.with_name("new")
        shutil.copy(by, new)
        os.replace(new, path)
    else:
        path.write_bytes(pathlib.Path(by).read_bytes())


# What the first version's functions are called: of what was written over nothing is left.
FIRST = {"renamed": "first_makes", "overwritten": "no name"}

# The program

def test_exited(recorder, program):
    recorder.run(program, "make")
    assert recorder.makers(PROGRAM_BYTES) == {"first_makes": 1}


@pytest.mark.fast("renamed")
@pytest.mark.parametrize("after", ["deleted", "renamed"])
def test_launched(recorder, program, target, after):
    """What was started is another file by the time that it makes a block and names are wanted."""
    obedient = recorder.launch(program)
    if after == "deleted":
        program.unlink()
    else:
        replace(program, target("which_second"), after)
    obedient.ask("make")
    obedient.exit()
    assert recorder.makers(PROGRAM_BYTES) == {"first_makes": 1}


def test_running_program_cannot_be_overwritten(recorder, program, target):
    """Which makes it certain that the others are all the ways in which it can be replaced."""
    obedient = recorder.launch(program)
    with pytest.raises(OSError) as caught:
        replace(program, target("which_second"), "overwritten")
    assert caught.value.errno == errno.ETXTBSY
    obedient.exit()


@pytest.mark.fast("deleted")
@pytest.mark.parametrize("after", ["deleted", "renamed"])
def test_attached(recorder, runner, program, target, after):
    """The path leads to nothing, or to another file, before allocprof comes."""
    obedient = Obedient(runner, [program])
    if after == "deleted":
        program.unlink()
    else:
        replace(program, target("which_second"), after)
    process = attach(recorder, obedient.pid)
    obedient.ask("make")
    wait_for_hold(process, program)
    detach(process)
    obedient.exit()
    assert recorder.makers(PROGRAM_BYTES) == {"first_makes": 1}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["renamed", "overwritten"])
def test_two_versions_of_a_program(recorder, program, target, way):
    """One after the other in the same tree."""
    # What is expected is read before anything runs, and not while it is written over.
    shell = Shell(recorder, "--expect", program)
    shell.run(program, "make", holding=[program])
    replace(program, target("which_second"), way)
    shell.run(program, "make")
    shell.run(program, "make", holding=[program])
    shell.end()
    assert recorder.makers(PROGRAM_BYTES) == {FIRST[way]: 1, "second_makes": 2}


@pytest.mark.fast("overwritten")
@pytest.mark.parametrize("way", ["renamed", "overwritten"])
def test_two_versions_without_build_ids(recorder, program, target, tmp_path, way):
    """What tells them apart is the file itself, as long as allocprof has it open."""
    second = tmp_path / "second"
    for path, of in ((second, "which_second"), (program, "which_first")):
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", target(of), path],
                       check=True)
    shell = Shell(recorder, "--expect", program)
    shell.run(program, "make", holding=[program])
    replace(program, second, way)
    shell.run(program, "make", holding=[program])
    shell.end()
    assert recorder.makers(PROGRAM_BYTES) == {FIRST[way]: 1, "second_makes": 1}
    modules = Recording(recorder.data).sql("SELECT symbols FROM modules WHERE path = ?",
                                           str(program))
    assert len(modules) == 2
    if way == "overwritten":
        assert ("the file was written over while it was recorded",) in modules


@pytest.mark.slow
def test_deleted_after_the_process(recorder, program):
    """By something that runs as part of the recording, and before names are looked up."""
    shell = Shell(recorder)
    shell.run(program, "make", holding=[program])
    shell.run("rm", program)
    shell.end()
    assert recorder.makers(PROGRAM_BYTES) == {"first_makes": 1}


# A library

@pytest.mark.fast("unloaded")
@pytest.mark.parametrize("after", ["deleted", "renamed", "unloaded"])
def test_loaded(recorder, program, library, target, after):
    obedient = recorder.launch(program)
    obedient.ask(f"load {library}")
    wait_for_hold(obedient.process, library)
    if after == "unloaded":
        obedient.ask("unload")
    if after == "renamed":
        replace(library, target("libwhich_second.so"), after)
    else:
        library.unlink()
    if after != "unloaded":
        obedient.ask("again")
    obedient.exit()
    assert recorder.makers(LIBRARY_BYTES) == {"first_makes": 1 + (after != "unloaded")}


def test_deleted_before_its_first_block(recorder, runner, program, library):
    """As a program does that unpacks a library, loads it, and leaves nothing behind. Nothing has
    been asked about the file before it was deleted."""
    obedient = Obedient(runner, [program])
    obedient.ask(f"load {library}")
    library.unlink()
    process = attach(recorder, obedient.pid)
    obedient.ask("again")
    wait_for_hold(process, library)
    detach(process)
    obedient.exit()
    assert recorder.makers(LIBRARY_BYTES) == {"first_makes": 1}


@pytest.mark.fast("renamed")
@pytest.mark.parametrize("way", ["renamed", "overwritten"])
def test_two_versions_of_a_library(recorder, program, library, target, way):
    """Between two processes of the tree."""
    shell = Shell(recorder, "--expect", library)
    shell.run(program, "load", library, holding=[library])
    replace(library, target("libwhich_second.so"), way)
    shell.run(program, "load", library)
    shell.run(program, "load", library, holding=[library])
    shell.end()
    assert recorder.makers(LIBRARY_BYTES) == {FIRST[way]: 1, "second_makes": 2}


@pytest.mark.fast("overwritten")
@pytest.mark.parametrize("way", ["renamed", "overwritten"])
def test_two_versions_of_a_library_in_one_process(recorder, program, library, target, way):
    obedient = recorder.launch(program, options=["--expect", library])
    obedient.ask(f"load {library}")
    wait_for_hold(obedient.process, library)
    obedient.ask("unload")
    replace(library, target("libwhich_second.so"), way)
    obedient.ask(f"load {library}")
    obedient.ask("again")
    wait_for_hold(obedient.process, library)
    obedient.exit()
    assert recorder.makers(LIBRARY_BYTES) == {FIRST[way]: 1, "second_makes": 2}


# Too late

def callers(recorder):
    """Of blocks of the library; what was seen too late has perhaps no complete stack either."""
    return {re.sub(r"^\[library\.so\+0x[0-9a-f]+\]$", "no name", caller)
            for caller, in Recording(recorder.data).sql(
                "SELECT caller FROM calls WHERE bytes = calls * ?", LIBRARY_BYTES)}


@pytest.mark.fast("deleted")
@pytest.mark.parametrize("after", ["nothing", "deleted", "renamed"])
def test_too_late(recorder, program, library, target, tmp_path, after):
    """allocprof sleeps while a process comes, loads a library and goes. Where that is no longer at
    its path there is no name to be had; and a wrong one would be worse than none."""
    shell = Shell(recorder, "--expect", program)
    with shell.asleep():
        shell.run(program, "load", library)
        if after == "deleted":
            library.unlink()
        elif after == "renamed":
            replace(library, target("libwhich_second.so"), after)
    shell.end()
    assert callers(recorder) == {"first_makes" if after == "nothing" else "no name"}


# Another root

def libraries_of(path):
    output = subprocess.run(["ldd", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return sorted(set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", output, re.MULTILINE)))


def make_tree(directory, target, name):
    """What which_NAME needs to run, it and the library that it loads: options so that their unwind
    tables are made before the command starts, however late allocprof hears of its exec."""
    directory.mkdir(exist_ok=True)
    for path in libraries_of(target(f"which_{name}")):
        to = directory / path[1:]
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    shutil.copy(target(f"which_{name}"), directory / "program")
    shutil.copy(target(f"libwhich_{name}.so"), directory / "library.so")
    files = [directory / "program", *directory.rglob("*.so*")]
    return [word for path in files for word in ("--expect", path)]


def test_chroot(recorder, target, tmp_path):
    """Program and libraries, the C library among them, are files of another root."""
    root = tmp_path / "root"
    options = make_tree(root, target, "first")
    recorder.run("chroot", root, "/program", "load", "/library.so", options=options)
    recorder.run("chroot", root, "/program", "load", "/library.so", options=options)
    assert recorder.makers(LIBRARY_BYTES) == {"first_makes": 1}
    paths = {path for path, in Recording(recorder.data).sql("SELECT path FROM modules")}
    assert {str(root / "program"), str(root / "library.so")} <= paths


@pytest.mark.slow
def test_chroot_is_gone(recorder, target, tmp_path):
    root = tmp_path / "root"
    options = make_tree(root, target, "first")
    obedient = recorder.launch("chroot", root, "/program", options=options)
    obedient.ask("load /library.so")
    wait_for_hold(obedient.process, root / "library.so")
    shutil.rmtree(root)
    obedient.ask("again")
    obedient.ask("make")
    obedient.exit()
    assert recorder.makers(LIBRARY_BYTES) == {"first_makes": 2}
    assert recorder.makers(PROGRAM_BYTES) == {"first_makes": 1}


# What is at the same paths outside is the other version.
NAMESPACE = """
set -e
mount -t tmpfs none "$0"
cp "$1" "$0/program"
cp "$2" "$0/library.so"
shift 2
exec "$0/program" "$@"
"""


def in_namespace(place, target, *words):
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", NAMESPACE, str(place),
            target("which_first"), target("libwhich_first.so"), *words]


@pytest.fixture
def place(run, target, tmp_path):
    """A directory with the second version, on a file system of its own."""
    place = tmp_path / "place"
    place.mkdir()
    shutil.copy(target("which_second"), place / "program")
    shutil.copy(target("libwhich_second.so"), place / "library.so")
    return place


@pytest.mark.fast("launched")
@pytest.mark.parametrize("attached", [False, True], ids=["launched", "attached"])
def test_mount_namespace(recorder, runner, target, place, attached):
    """A tmpfs that nobody else sees is over the directory of the program and its library."""
    argv = in_namespace(place, target)
    if attached:
        obedient = Obedient(runner, argv)
        process = attach(recorder, obedient.pid)
    else:
        obedient = recorder.launch(*argv)
        process = obedient.process
    obedient.ask("make")
    obedient.ask(f"load {place}/library.so")
    for name in ("program", "library.so"):
        wait_for_hold(process, place / name)
    obedient.ask("again")
    if attached:
        detach(process)
    obedient.exit()
    assert recorder.makers(PROGRAM_BYTES) == {"first_makes": 1}
    assert recorder.makers(LIBRARY_BYTES) == {"first_makes": 2}
    paths = [path for path, in Recording(recorder.data).sql("SELECT path FROM modules")]
    # As the process calls them: here there is no path that leads to them.
    for name in ("program", "library.so"):
        assert any(is_path(path, place / name) for path in paths), (place / name, paths)


@pytest.mark.slow
def test_mount_namespace_too_late(recorder, target, place):
    """The process and its file system are gone, and at the path is a file of the same size, on a
    file system of the same kind with the same inode number."""
    shell = Shell(recorder, inside=["unshare", "--mount", "--propagation", "private"])
    shell.run("mount", "-t", "tmpfs", "none", place)
    shell.run("cp", target("which_second"), place / "program")
    shell.run("cp", target("libwhich_second.so"), place / "library.so")
    with shell.asleep():
        shell.run(*in_namespace(place, target, "load", f"{place}/library.so"))
    shell.end()
    assert callers(recorder) == {"no name"}


def calls_of_replaced_code(path):
    """Calls by function of swap_code's libraries. Their stacks are complete, and each call has its function's bytes."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as data:
        stacks, names = stack_addresses(data)
        counts = data.execute("SELECT stack, sum(calls), sum(bytes) FROM counts GROUP BY stack")
        ends = dict(data.execute("SELECT id, end FROM stacks"))
        found = collections.defaultdict(collections.Counter)
        for stack, calls, size in counts.fetchall():
            frames = [names[place] for place in stacks[stack]]
            (name,) = {"from_a", "from_b"} & {*frames} or (None,)
            if not name:
                continue
            assert ends[stack] == "complete", f"{calls} calls of {name} end by {ends[stack]}"
            assert "main" in frames, frames
            found[name]["calls"] += calls
            found[name]["bytes"] += size
    assert found.keys() == {"from_a", "from_b"}
    assert found["from_a"]["bytes"] == 11 * found["from_a"]["calls"]
    assert found["from_b"]["bytes"] == 22 * found["from_b"]["calls"]
    return {name: calls["calls"] for name, calls in found.items()}


@pytest.mark.fast("--live")
@pytest.mark.parametrize("options", [[], ["--live"], ["--sample", "10"], ["--live", "--sample", "10"]],
                         ids=" ".join)
def test_code_that_is_replaced(recorder, target, options):
    """By as many pages of another file, without an allocation in between that would show it."""
    recorder.run(target("swap_code"), target("libswap_a.so"), target("libswap_b.so"), options=options)
    found = calls_of_replaced_code(recorder.data)
    if "--sample" not in options:
        assert found == {"from_a": 100, "from_b": 100}


@pytest.mark.slow
def test_code_that_is_replaced_while_others_set_probes(recorder, allocprof, target):
    """For each probe in libc the kernel holds the lock of the mappings of each process that maps it."""
    times = int(os.environ.get("ALLOCPROF_TRIES", 10000))
    process = recorder.runner.start([*recorder.argv, "--", target("swap_code"), target("libswap_a.so"),
                                     target("libswap_b.so"), times])
    runs = 0
    while process.poll() is None:
        recorder.runner.run([allocprof, "stat", "true"], expect=0)
        runs += 1
    assert process.returncode == 0
    assert runs >= 3, "swap_code ended too soon"
    assert calls_of_replaced_code(recorder.data) == {"from_a": times, "from_b": times}
