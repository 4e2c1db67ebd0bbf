# SPDX-License-Identifier: GPL-3.0-or-later
"""With --engine=preload and privileges, the processes that the library cannot enter are measured by uprobes, from their
exec on; the others go on counting inside. Together they count what --engine=uprobe counts."""

import collections
import contextlib
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys

import pytest

import support
from support import by_address, libc_path, read_report, unavailable

NOBODY = 65534
HIDDEN = """
#include <stdlib.h>
__attribute__((noinline)) void *je_malloc(size_t size) { static char room[4096]; static size_t at; return room + (at += size) - size; }
__attribute__((noinline)) void je_free(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }
int main(void) { for (int i = 0; i < 20; i++) je_free(je_malloc(100)); free(malloc(7)); return 0; }
"""
MUSL = "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 20; i++) free(malloc(100)); return 0; }\n"


@pytest.fixture
def programs(target, tmp_path):
    """Programs that cannot be entered, and some that can, by name."""
    def setuid():
        path = shutil.copy(target("every_function"), tmp_path / "setuid")
        os.chown(path, NOBODY, -1)
        os.chmod(path, 0o4755)
        return path

    def musl():
        if not shutil.which("musl-gcc"):
            unavailable("musl-tools is not installed: scripts/setup --test")
        (tmp_path / "musl.c").write_text(MUSL)
        subprocess.run(["musl-gcc", "-O1", "-fno-builtin", "-o", tmp_path / "musl", tmp_path / "musl.c"], check=True)
        return tmp_path / "musl"

    def hidden():
        (tmp_path / "hidden.c").write_text(HIDDEN)
        subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", tmp_path / "hidden", tmp_path / "hidden.c"], check=True)
        return tmp_path / "hidden"

    made = {"hidden": hidden, "setuid": setuid, "musl": musl, "static": lambda: target("window_static")}
    return lambda name: str(made[name]() if name in made else target(name))


def calls(report):
    """Calls by function; those that are one for a probe are added up."""
    first = {name: names[0] for names in by_address(libc_path()) for name in names}
    sums = collections.Counter()
    for name, entry in report["functions"].items():
        sums[first.get(name, name)] += entry["calls"]
    return {name: n for name, n in sums.items() if n}


def whole(report):
    return report["complete"] and not report["lost"]["total"] and not report["unprobed_programs"]


# Each executes PROGRAM once, and has it followed by one that can be entered.
WAYS = {
    "itself": "exec PROGRAM",
    "vfork": "PROGRAM; OTHER",
    "fork": "(:; PROGRAM); OTHER",
    "cleared": "env -i PROGRAM; OTHER",
    "python": "python3 -S -c 'import os; os.execv(\"PROGRAM\", [\"PROGRAM\"])'; OTHER",
    "spawn": "python3 -S -c 'import os; os.waitpid(os.posix_spawn(\"PROGRAM\", [\"PROGRAM\"], {}), 0)'; OTHER",
    "number": "python3 -S -c 'import ctypes; a = (ctypes.c_char_p * 2)(b\"PROGRAM\", None); "
              "ctypes.CDLL(None).syscall(59, a[0], a, None)'; OTHER",
    "relative": "cd DIRECTORY; ./NAME; OTHER",
}
CASES = [("static", way) for way in WAYS] + [(name, "vfork") for name in ("setuid", "own_malloc", "musl")] + \
        [("hidden", way) for way in ("itself", "vfork", "spawn", "cleared")] + \
        [("setuid", "itself"), ("own_malloc", "itself"), ("own_malloc", "spawn")]


@pytest.mark.slow
@pytest.mark.parametrize("name, way", CASES, ids=lambda word: word)
def test_equal_counts(run, allocprof, programs, target, tmp_path, name, way):
    program, other = programs(name), target("every_function")
    directory, base = os.path.split(program)
    script = WAYS[way].replace("PROGRAM", program).replace("OTHER", other)
    script = script.replace("DIRECTORY", shlex.quote(directory)).replace("NAME", base)
    reports = {}
    for engine in "uprobe", "preload":
        output = tmp_path / f"{engine}.json"
        run([allocprof, "stat", "--json", f"--engine={engine}", "--expect", program, "-o", output, "--", "sh", "-c", script],
            expect=None)
        reports[engine] = read_report(output)
        assert whole(reports[engine]), reports[engine]
    got, expected = calls(reports["preload"]), calls(reports["uprobe"])
    # The dynamic linker calls free(NULL) for a library more.
    assert got.pop("free", 0) >= expected.pop("free", 0)
    assert got == expected
    assert reports["preload"]["processes"] == reports["uprobe"]["processes"]
    measured = {entry["name"]: entry["processes"] for entry in reports["preload"].get("uprobe_programs", [])}
    assert measured == ({base: 1} if name != "musl" else {}) and "uprobe_programs" not in reports["uprobe"]


def test_command_itself(run, allocprof, programs, tmp_path):
    """There is nothing to enter at all."""
    got = {}
    for engine in "uprobe", "preload":
        run([allocprof, "stat", "--json", f"--engine={engine}", "-o", tmp_path / engine, "--", programs("static")])
        got[engine] = read_report(tmp_path / engine)
        assert whole(got[engine]) and got[engine]["processes"] == 1
    assert calls(got["preload"]) == calls(got["uprobe"])


@pytest.mark.covering(1)
@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True], ids=["directory", "mount"])
@pytest.mark.parametrize("path", ["/program", "/link", "/../directory/link", "directory/link", "directory/other"])
def test_in_another_root(run, allocprof, target, tmp_path, path, apart):
    """A link of that root leads to a file of that root, whatever is at the path in allocprof's; so does a relative path. Also
    where the root is a mount that allocprof does not see."""
    root = tmp_path / "root"
    root.mkdir()
    # Processes find allocprof's shared memory there, too.
    script = f"""import ctypes, os, subprocess
def mount(*words):
    subprocess.run(["mount", *words], check=True)
root = {str(root)!r}
if {apart}:
    assert not ctypes.CDLL(None).unshare(0x20000)  # CLONE_NEWNS
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "none", root)
os.makedirs(root + "/directory")
subprocess.run(["cp", {str(target("window_static"))!r}, root + "/program"], check=True)
os.symlink("/program", root + "/link")
os.symlink("../program", root + "/directory/link")
os.symlink("/program", root + "/directory/other")
os.makedirs(root + "/dev/shm")
os.makedirs(root + "/proc")
mount("--bind", "/dev/shm", root + "/dev/shm")
mount("-t", "proc", "proc", root + "/proc")
os.chroot(root)
os.chdir("/")
os.execv({path!r}, [{path!r}])
"""
    run(["unshare", "--mount", "sh", "-c", 'mount --make-rprivate / && exec "$@"', "sh", allocprof, "stat", "--json",
         "-o", tmp_path / "report", "--engine=preload", "--", sys.executable, "-S", "-c", script], expect=0)
    report = read_report(tmp_path / "report")
    assert whole(report), report
    assert [program["name"] for program in report["uprobe_programs"]] == [os.path.basename(path)]


@pytest.mark.slow
def test_entered_below(run, allocprof, programs, target, tmp_path):
    """What a program that cannot be entered executes is entered again, and is one process of the recording."""
    entered, data = target("every_function"), tmp_path / "data"
    script = f"{programs('static')}; {entered}; exec {programs('setuid')}"
    run([allocprof, "record", "-q", "--engine=preload", "-o", data, "--", "sh", "-c", script], expect=None)
    with contextlib.closing(sqlite3.connect(f"file:{data}?mode=ro", uri=True)) as file:
        ledger = dict(file.execute("SELECT name, value FROM ledger"))
        rows = file.execute("SELECT comm, count(*), min(end_ns > start_ns) FROM processes GROUP BY comm").fetchall()
        meta = dict(file.execute("SELECT key, value FROM meta"))
        counted = dict(file.execute("SELECT comm, sum(calls) FROM calls GROUP BY comm"))
    assert ledger["lost"] == 0 and ledger["events"] == ledger["attributed"] == sum(counted.values())
    assert meta["engine"] == "preload"
    assert meta["uprobe_programs"] == "window_static: 1 process\nsetuid: 1 process"
    names = {name: n for name, n, _ in rows}
    assert names["window_static"] == names["every_function"] == names["setuid"] == 1
    assert all(ended for _, _, ended in rows)
    # The same program, measured by each engine.
    assert counted["every_function"] == counted["setuid"]


@pytest.mark.slow
def test_unprivileged_names_them(run, allocprof, programs, target, public_directory):
    """Without privileges what cannot be entered is named, and the measurement is not complete."""
    if os.geteuid():
        pytest.skip("only root can change the user")
    static = shutil.copy(programs("static"), public_directory)
    own = shutil.copy(target("own_malloc"), public_directory)
    for name, argv in ("window_static", [static]), ("window_static", ["sh", "-c", f"{static}; :"]), \
                      ("own_malloc", ["sh", "-c", f"{own}; :"]):
        output = public_directory / "x.json"
        output.touch()
        os.chown(output, NOBODY, NOBODY)
        run([*unprivileged_tool(allocprof, public_directory), "stat", "--json", "--engine=preload", "-o", output,
             "--", *argv], expect=None)
        report = read_report(output)
        assert not report["complete"]
        program, = report["unprobed_programs"]
        assert program["name"] == name and program["why"]


def unprivileged_tool(allocprof, directory):
    if not (directory / "cli").exists():
        (directory / "cli").mkdir()
        (directory / "src" / "inside").mkdir(parents=True)
        shutil.copy(allocprof, directory / "cli")
        shutil.copy(support.BUILD / "src" / "inside" / "liballocprof-inside.so", directory / "src" / "inside")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", directory / "cli" / "allocprof"]
