# SPDX-License-Identifier: GPL-3.0-or-later
"""--isolate: only the command's processes meet probes, in copies of the files; all else is as without it."""

import os
import shutil
import signal

import pytest

from support import (INPUT, Obedient, Recording, TIMEOUT_SECONDS, command_of, mapped_code, libc_path, patched_functions,
                     programs, read_report, root_is_mount_point, shell_status, unavailable, wait_until)
from test_stat_counts import compare
from test_window import MEASURED, assert_stat, own_figures, stat

NOBODY = 65534
COMMANDS = ["stat", "record"]


@pytest.fixture(autouse=True)
def root():
    if not root_is_mount_point():
        unavailable("/ is no mount point, as in a plain chroot: mount --bind the directory onto itself before")


def isolated(argv):
    return [*argv[:2], "--isolate", *argv[2:]]


def words(allocprof, command, path, *options):
    return [allocprof, command, *(["--json"] if command == "stat" else []), "-o", path, *options]


def identity(pid, name="libc.so.6"):
    """Device and inode of a file that the process has mapped, as maps has them."""
    with open(f"/proc/{pid}/maps") as maps:
        return {tuple(line.split()[3:5]) for line in maps if line.rstrip().endswith("/" + name)}


def own_mounts():
    with open("/proc/self/mountinfo") as mounts:
        return sorted(mounts)


@pytest.mark.fast("every_function", "threads", "fork", "vfork", "posix_spawn", "shell", "exec_nonleader", "dlopen", "segv",
                  "close_all", "sort")
@pytest.mark.parametrize("name", list(programs(str)))
def test_equal_counts(run, allocprof, counter, target, tmp_path, name):
    argv, status = programs(target)[name]
    report, _ = compare(run, allocprof, counter, target, tmp_path, argv, isolated, status, INPUT)
    assert report["complete"], report


MODULES = "SELECT path, build_id FROM modules ORDER BY path"


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_equal_recording(run, allocprof, target, tmp_path, options):
    """Stacks, names, lines and files, those of the file system."""
    recordings = []
    for way in ("--isolate", "--no-isolate"):
        run([*words(allocprof, "record", tmp_path / way, way, *options), "--", "sh", "-c",
             f"{target('every_function')}; ls / >/dev/null"], expect=0)
        recordings.append(Recording(tmp_path / way))
    ours, bare = recordings
    assert ours.texts() == bare.texts() and ours.functions == bare.functions
    assert ours.sql(MODULES) == bare.sql(MODULES)
    assert ours.sql("SELECT DISTINCT file, line FROM lines ORDER BY file, line") == \
        bare.sql("SELECT DISTINCT file, line FROM lines ORDER BY file, line")
    assert not ours.unbalanced() and ours.ledger["incomplete"] == bare.ledger["incomplete"]
    for path, in ours.sql("SELECT path FROM modules WHERE path LIKE '/%'"):
        assert os.path.exists(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_bystander_meets_no_probe(runner, own_libc, allocprof, target, tmp_path, command):
    """Neither one that ran before nor one that starts meanwhile; without --isolate both do, which is what makes this
    test able to fail."""
    before = Obedient(runner, [target("sleeper")], env=own_libc)
    for way in ("--isolate", "--no-isolate"):
        obedient = Obedient(runner, [*words(allocprof, command, tmp_path / way, way), "--", target("sleeper")],
                            env=own_libc)
        meanwhile = Obedient(runner, [target("sleeper")], env=own_libc)
        pid = command_of(obedient.pid)
        assert "malloc" in patched_functions(pid)
        met = [patched_functions(bystander.pid) for bystander in (before, meanwhile)]
        if way == "--isolate":
            assert met == [set(), set()]
            assert identity(pid) and not identity(pid) & identity(before.pid)
        else:
            assert all("malloc" in one for one in met)
            assert identity(pid) == identity(before.pid)
        before.ask("alloc 1000")
        obedient.ask("alloc 77")
        obedient.exit()
        meanwhile.exit()
    before.exit()
    for way in ("--isolate", "--no-isolate"):
        calls = (read_report(tmp_path / way)["functions"]["malloc"]["calls"] if command == "stat" else
                 Recording(tmp_path / way).functions["malloc"][0])
        assert calls == 77


def test_allocprof_stays_outside(runner, allocprof, target, tmp_path):
    before = own_mounts()
    obedient = Obedient(runner, [*words(allocprof, "stat", tmp_path / "x", "--isolate"), "--", target("sleeper")])
    def namespace(pid):
        return os.readlink(f"/proc/{pid}/ns/mnt")
    assert namespace(obedient.pid) == namespace("self") != namespace(command_of(obedient.pid))
    assert own_mounts() == before
    obedient.exit()
    assert own_mounts() == before


# What the command finds of itself: -L follows links, the first line is the process's own descriptors.
LOOK = """cd "$1" || exit 9
pwd; pwd -P; id; umask; ls /dev | wc -l; ls /proc/self/fd | wc -l; readlink /proc/self/root
stat -Lc '%n %s %a %U %G %F %Y %N' /bin/sh "$2" "$3"
read line && echo "$line"; echo error >&2; exit 5"""


def test_surroundings_are_the_same(run, allocprof, target, tmp_path):
    argv = ["sh", "-c", LOOK, "sh", tmp_path, libc_path(), target("own_malloc")]
    bare = run(argv, stdin=INPUT, expect=5)
    ours = run([*words(allocprof, "stat", tmp_path / "x", "--isolate"), "--", *argv], stdin=INPUT, expect=5)
    assert ours.stdout == bare.stdout and bare.stderr in ours.stderr


def test_copies_cannot_be_written(run, allocprof, target, tmp_path):
    """What is written to them would be lost."""
    program = shutil.copy(target("own_malloc"), tmp_path)
    result = run([*words(allocprof, "stat", tmp_path / "x", "--isolate", "--expect", program), "--", "sh", "-c",
                  f"echo more >> {program} || echo refused; echo new > {tmp_path}/other"], expect=0)
    assert result.stdout == b"refused\n" and b"Read-only" in result.stderr
    with open(program, "rb") as copy, open(target("own_malloc"), "rb") as original:
        assert copy.read() == original.read()
    assert (tmp_path / "other").read_text() == "new\n"


def test_mounts_stay_inside(run, allocprof, tmp_path):
    (tmp_path / "place").mkdir()
    run([*words(allocprof, "stat", tmp_path / "x", "--isolate"), "--", "sh", "-c",
         f"mount -t tmpfs none {tmp_path}/place && touch {tmp_path}/place/file"], expect=0)
    assert not list((tmp_path / "place").iterdir())


def test_links_lead_to_the_copy(run, allocprof, target, tmp_path):
    """By a link, by a path with .., from a directory, and from PATH."""
    shutil.copy(target("own_malloc"), tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dir").mkdir()
    for argv in ([tmp_path / "link"], [f"{tmp_path}/dir/../real"], ["./real"], ["link"]):
        report, _ = stat(run, allocprof, tmp_path, ["--isolate"], [
            "env", "-C", tmp_path, f"PATH={tmp_path}:{os.environ['PATH']}", *argv])
        bare, _ = stat(run, allocprof, tmp_path, ["--expect", tmp_path / "real"], [tmp_path / "real"])
        assert bare["complete"] and bare["functions"]["malloc"]["calls"]
        direct, _ = stat(run, allocprof, tmp_path, ["--isolate"], [tmp_path / "link"])
        assert direct["complete"] and direct["functions"] == bare["functions"]
        assert report["exit_status"] == 0


def test_program_with_privileges(run, allocprof, target, public_directory, tmp_path):
    """A set-user-ID program is no copy, and has its privileges; so has one that the command starts."""
    program = shutil.copy(target("own_malloc"), public_directory / "program")
    os.chmod(program, 0o4755)
    id_program = shutil.copy("/usr/bin/id", public_directory / "id")
    os.chmod(id_program, 0o4755)
    (isolated_report, _), (bare, _) = (stat(run, allocprof, tmp_path, [way, "--user", "nobody"], [program])
                                       for way in ("--isolate", "--no-isolate"))
    assert isolated_report["complete"] and isolated_report["functions"] == bare["functions"]
    _, result = stat(run, allocprof, tmp_path, ["--isolate", "--user", "nobody"],
                     ["sh", "-c", f"{id_program} -ru; {id_program} -u"])
    assert result.stdout.split() == [str(NOBODY).encode(), b"0"]


def test_original_from_elsewhere(run, allocprof, target, tmp_path):
    """A process that leaves the namespace has the original, which is probed when it is noticed, and named."""
    if not shutil.which("nsenter"):
        unavailable("nsenter is not installed")
    ours = f"/proc/{os.getpid()}"
    report, result = stat(run, allocprof, tmp_path, ["--isolate"], [
        "nsenter", f"--mount={ours}/ns/mnt", f"--root={ours}/root", target("every_function")], 3)
    assert not report["complete"] and report["exit_status"] == 3
    assert b"from elsewhere than where the command has its copy (--isolate)" in result.stderr, result


@pytest.mark.parametrize("command", COMMANDS)
def test_killed(runner, allocprof, target, tmp_path, command):
    """The command goes on without allocprof."""
    before = own_mounts()
    obedient = Obedient(runner, [*words(allocprof, command, tmp_path / "x", "--isolate"), "--", target("sleeper")])
    pid = command_of(obedient.pid)
    obedient.process.send_signal(signal.SIGKILL)
    assert shell_status(obedient.process.wait(TIMEOUT_SECONDS)) == 128 + signal.SIGKILL
    wait_until(lambda: not patched_functions(pid), "no breakpoint is left")
    obedient.ask("alloc 1000")
    assert mapped_code(pid, libc_path())
    obedient.send("exit")
    wait_until(lambda: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split()[2] == "Z",
               "the command has ended")
    assert own_mounts() == before


def test_window(run, allocprof, target, tmp_path):
    """Probes at functions that options name are in the copies, too."""
    report, result = stat(run, allocprof, tmp_path, ["--isolate", "--within", MEASURED], [target("window"), "recurse"])
    assert_stat(report, own_figures(result))


def test_regions(run, allocprof, target, tmp_path):
    (ours, _), (bare, _) = (stat(run, allocprof, tmp_path, [way], [target("regions_O2"), "nest"])
                            for way in ("--isolate", "--no-isolate"))
    assert ours["regions"] and ours["regions"] == bare["regions"]


def test_in_chroot(run, allocprof, target, tmp_path):
    """In the root directory of allocprof, beyond which the kernel names what is in the command's mounts."""
    place = tmp_path / "root"
    place.mkdir()
    inner = ["sh", "-c", 'mount --make-rprivate / && mount --rbind / "$0" && exec chroot "$0" "$@"', place]
    recordings = []
    for way in ("--isolate", "--no-isolate"):
        run(["unshare", "--mount", *inner, *words(allocprof, "record", tmp_path / way, way), "--", "sh", "-c",
             f"{target('every_function')}; ls / >/dev/null"], expect=0)
        recordings.append(Recording(tmp_path / way))
    ours, bare = recordings
    assert ours.texts() == bare.texts() and ours.sql(MODULES) == bare.sql(MODULES)


def test_plain_chroot(run, allocprof, tmp_path):
    """Whose mounts cannot be kept from those of others."""
    place = tmp_path / "root"
    place.mkdir()
    mounts = "".join(f'mkdir -p "$0/{name}"; mount --rbind /{name} "$0/{name}" || exit 9; '
                     for name in os.listdir("/") if os.path.isdir(f"/{name}"))
    result = run(["unshare", "--mount", "sh", "-c", f'mount --make-rprivate /; {mounts}exec chroot "$0" "$@"', place,
                  allocprof, "stat", "--isolate", "touch", tmp_path / "ran"], expect=125)
    assert b"--isolate: " in result.stderr and b"no mount point" in result.stderr
    assert not (tmp_path / "ran").exists()


def test_check(run, allocprof, target, tmp_path):
    """A budget that was written without is kept to the call."""
    budget = tmp_path / "budget.json"
    run([allocprof, "check", "--update", "--budget", budget, "--", target("spawn")], expect=0)
    result = run([allocprof, "check", "--isolate", "-r", 1, "--budget", budget])
    assert result.status == 0 and b"over" not in result.stderr, result


def test_series(run, allocprof, target, tmp_path):
    """Each run has copies of its own."""
    run([*words(allocprof, "record", tmp_path / "x", "--isolate", "-r", 3), "--", target("every_function")], expect=3)
    recording = Recording(tmp_path / "x")
    run([*words(allocprof, "record", tmp_path / "y", "-r", 3), "--", target("every_function")], expect=3)
    assert recording.functions == Recording(tmp_path / "y").functions
    paths = [path for path, in recording.sql("SELECT path FROM modules WHERE path LIKE '/%'")]
    assert len(paths) == len(set(paths))


def test_only_the_command(run, allocprof, target, tmp_path):
    """Where only the command itself is probed nothing is copied."""
    report, result = stat(run, allocprof, tmp_path, ["--isolate", "--no-follow"], [
        "cat", "/proc/self/mountinfo"])
    assert b" tmpfs allocprof " not in result.stdout and report["complete"]


def test_without_privileges(run, allocprof, tmp_path):
    result = run(["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin",
                  *words(allocprof, "stat", tmp_path / "x", "--isolate"), "--", "touch", tmp_path / "ran"], expect=125)
    assert b"--isolate: " in result.stderr and b"CAP_SYS_ADMIN" in result.stderr
    assert not (tmp_path / "ran").exists()


def test_with_preload(run, allocprof, tmp_path):
    result = run([*words(allocprof, "stat", tmp_path / "x", "--isolate", "--engine=preload"), "--",
                  "touch", tmp_path / "ran"], expect=125)
    assert b"--isolate cannot be used with the engine preload" in result.stderr
    assert not (tmp_path / "ran").exists()
