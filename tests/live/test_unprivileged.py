# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has no privileges measures a command all the same: another user, in namespaces of users and in containers, with
what these forbid. Nothing is said to choose the engine."""

import errno
import os
import pathlib
import shutil
import struct

import pytest

import support
from support import Recording, read_report, stated, unavailable

USER = 65534
# Where this is no root, it is such a user itself.
OTHER_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []

# What Docker's default profile forbids on x86-64 to who has no capabilities, by number.
FORBIDDEN = {
    "add_key": 248, "bpf": 321, "clock_adjtime": 305, "clock_settime": 227, "delete_module": 176, "finit_module": 313,
    "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433, "get_mempolicy": 239, "init_module": 175,
    "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425, "ioperm": 173, "iopl": 172, "kcmp": 312,
    "kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212, "mbind": 237, "mount": 165,
    "mount_setattr": 442, "move_mount": 429, "move_pages": 279, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "open_tree": 428, "perf_event_open": 298, "pivot_root": 155, "quotactl": 179, "reboot": 169, "request_key": 249,
    "set_mempolicy": 238, "setns": 308, "settimeofday": 164, "swapoff": 168, "swapon": 167, "syslog": 103,
    "umount2": 166, "unshare": 272, "userfaultfd": 323, "vhangup": 153,
}
# And before Linux 4.8, by itself.
FORBIDDEN_ONCE = {"process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101}
CLONE3 = 435

BPF_LOAD, BPF_JUMP_EQUAL, BPF_RETURN = 0x20, 0x15, 0x06
RETURN_ERROR, RETURN_ALLOWED = 0x00050000, 0x7FFF0000


def seccomp_filter(forbidden):
    """The program of it, which is made for x86-64 alone."""
    def instruction(code, jump_true, jump_false, value):
        return struct.pack("=HBBI", code, jump_true, jump_false, value)

    program = [instruction(BPF_LOAD, 0, 0, 0)]
    # C libraries go on with clone(2) then.
    for number, error in [*((number, errno.EPERM) for number in forbidden), (CLONE3, errno.ENOSYS)]:
        program += [instruction(BPF_JUMP_EQUAL, 0, 1, number), instruction(BPF_RETURN, 0, 0, RETURN_ERROR | error)]
    return b"".join([*program, instruction(BPF_RETURN, 0, 0, RETURN_ALLOWED)])


@pytest.fixture
def place(allocprof, public_directory):
    """A directory for all users, with the tool and an empty one that the user without privileges may write to."""
    (public_directory / "cli").mkdir()
    (public_directory / "src" / "inside").mkdir(parents=True)
    shutil.copy(allocprof, public_directory / "cli")
    shutil.copy(support.BUILD / "src" / "inside" / "liballocprof-inside.so", public_directory / "src" / "inside")
    (public_directory / "out").mkdir()
    if os.geteuid() == 0:
        os.chown(public_directory / "out", USER, USER)
    return public_directory


def bubblewrap(place, *more):
    """A container without capabilities, with a root to read from and a /dev and a /proc of its own."""
    if not shutil.which("bwrap"):
        unavailable("bubblewrap is not installed")
    return [*OTHER_USER, "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/",
            "--dev", "/dev", "--proc", "/proc", "--ro-bind", place, place, "--bind", place / "out", place / "out", *more]


def seccomp(place, forbidden):
    """A container with a filter of system calls."""
    reader, writer = os.pipe()
    os.write(writer, seccomp_filter(forbidden))
    os.close(writer)
    return bubblewrap(place, "--seccomp", str(reader)), reader


def no_capabilities(place):
    """Of root nothing is left but its number, and what is root's directory it may write to."""
    if os.geteuid():
        unavailable("only root can be without its capabilities")
    os.chown(place / "out", 0, 0)
    return ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]


WAYS = {
    "user": lambda place: OTHER_USER,
    "no_capabilities": no_capabilities,
    "root_of_a_namespace": lambda place: [*OTHER_USER, "unshare", "-Ur"],
    "unmapped_user": lambda place: [*OTHER_USER, "unshare", "-U"],
    "bubblewrap": bubblewrap,
    "docker": lambda place: seccomp(place, FORBIDDEN.values()),
    "docker_before_4_8": lambda place: seccomp(place, [*FORBIDDEN.values(), *FORBIDDEN_ONCE.values()]),
}


@pytest.fixture
def without_privileges(run, place):
    """Runs the tool in one of the ways."""
    def ran(way, command, options, argv, **popen):
        words = WAYS[way](place)
        words, fd = words if isinstance(words, tuple) else (words, None)
        if way not in ("user", "no_capabilities") and run([*OTHER_USER, "unshare", "-U", "true"]).status:
            unavailable("no namespace of users can be made here, as in a plain chroot")
        program = shutil.copy(argv[0], place)
        try:
            return run([*words, place / "cli" / "allocprof", command, *options, "--", program, *argv[1:]],
                       cwd=place / "out", pass_fds=[fd] if fd is not None else [], **popen)
        finally:
            if fd is not None:
                os.close(fd)
    ran.out = place / "out"
    return ran


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-user")
@pytest.mark.parametrize("way", list(WAYS))
def test_stat(without_privileges, target, monkeypatch, way):
    """What every_function states, to the byte."""
    monkeypatch.delenv("ALLOCPROF_ENGINE")
    result = without_privileges(way, "stat", ["--json", "-o", "x.json"], [target("every_function")], expect=3)
    assert b"uprobes" not in result.stderr, result
    report = read_report(without_privileges.out / "x.json")
    assert report["engine"] == "preload" and report["complete"] and report["lost"]["total"] == 0
    expected = {name: (slot.calls, min(slot.bytes, support.MOST_BYTES))
                for name, slot in stated("every_function").items() if slot.calls}
    functions = report["functions"]
    assert {name: (functions[name]["calls"], functions[name]["bytes"]) for name in expected} == expected


@pytest.mark.engines("preload")
def test_verbose(without_privileges, target, monkeypatch):
    """Only who asks, or wants what uprobes alone can do, reads of uprobes, in one line."""
    monkeypatch.delenv("ALLOCPROF_ENGINE")
    asked = without_privileges("user", "stat", ["-v"], [target("nothing")], expect=0).stderr
    assert asked.startswith(b"allocprof: no uprobes can be set here (allocprof doctor says why): --engine=preload counts\n")
    assert asked.count(b"uprobes") == 1, asked
    wanted = without_privileges("user", "record", ["--faults", "-o", "x"], [target("nothing")], expect=125).stderr
    assert wanted.count(b"\n") == wanted.count(b"needs CAP_BPF") == 1, wanted


@pytest.mark.engines("preload")
@pytest.mark.parametrize("way", list(WAYS))
def test_record(without_privileges, run, allocprof, target, monkeypatch, way):
    """Stacks are those of a recording by root, and so are those of what a shell executes."""
    monkeypatch.delenv("ALLOCPROF_ENGINE")
    place = without_privileges.out.parent
    # bubblewrap sets it, and a shell that has it does not ask where it is.
    monkeypatch.setenv("PWD", str(without_privileges.out))
    shutil.copy(target("every_function"), place)
    for number, argv in enumerate(([target("every_function")], [shutil.which("sh"), "-c", f"{place}/every_function; exit 3"])):
        data = without_privileges.out / f"{number}.data"
        without_privileges(way, "record", ["-o", data, "-q"], argv, expect=3)
        recording = Recording(data)
        assert recording.meta["engine"] == "preload" and recording.ledger["lost"] == 0
        assert not recording.gaps
        assert recording.ledger["complete"] == recording.ledger["events"] > 0
        assert not recording.unbalanced()
        by_root = without_privileges.out / "root.data"
        run([allocprof, "record", "--engine=preload", "-o", by_root, "-q", "--", place / os.path.basename(argv[0]),
             *argv[1:]], cwd=without_privileges.out, expect=3)
        assert recording.texts() == Recording(by_root).texts()


@pytest.mark.engines("preload")
def test_nowhere_to_write(run, place, target, monkeypatch):
    """Where there is no directory for the shared memory, both reasons are given, and the way out helps."""
    monkeypatch.delenv("ALLOCPROF_ENGINE")
    words = [*bubblewrap(place, "--ro-bind", "/tmp", "/tmp", "--ro-bind", "/dev/shm", "/dev/shm", "--bind", place / "out",
                         place / "out"), place / "cli" / "allocprof", "stat", "--", "true"]
    line, = run(words, expect=125).stderr.splitlines()
    assert b"no uprobes can be set here" in line and b"ALLOCPROF_INSIDE_DIR" in line
    run(words, {"ALLOCPROF_INSIDE_DIR": str(place / "out")}, expect=0)


@pytest.mark.engines("preload")
def test_demo(run, place, monkeypatch):
    """scripts/demo says which engine it shows."""
    monkeypatch.delenv("ALLOCPROF_ENGINE")
    for program in ("jq", "sqlite3"):
        if not shutil.which(program):
            unavailable(f"{program} is not installed")
    demo = shutil.copy(support.SOURCE / "scripts" / "demo", place)
    result = run([*OTHER_USER, "bash", demo], {"ALLOCPROF": str(pathlib.Path(place, "cli", "allocprof")),
                                                   "TMPDIR": str(place / "out")}, expect=0)
    page, = (place / "out").glob("allocprof-demo.*.html")
    assert f"Here it is {page}." in result.stdout.decode() and page.read_bytes().startswith(b"<!doctype html>")
    assert b"not root" in result.stdout and b"by a library that is loaded into it" in result.stdout
    assert b"jv_mem_alloc" in result.stdout
