# SPDX-License-Identifier: GPL-3.0-or-later
"""At least 99.9 % of the stacks of real programs, as the distribution builds them, are followed to
their outermost frame: in C, C++, Rust, and two interpreters."""

import shutil
import sqlite3
import subprocess

import pytest

import conftest
import support
from test_truth import PROGRAMS, Recording

COMPILE = "echo 'int main(void) { return 0; }' >x.c; gcc -O1 -c x.c"

AT_LEAST = 0.999

MORE = {
    "gdb": (["gdb", "-nx", "-batch", "-ex", "info functions ^a", "-ex", "info line main",
             support.TARGETS / "throw"], ""),
}
LANGUAGES = {"C": "sqlite3", "C too": "jq", "C++": "cmake", "C++ and Python": "gdb", "Rust": "rg",
             "Python": "python3", "Perl": "perl"}


def share(recording, name, least=1000):
    recording.assert_no_loss()
    complete, events = recording.ledger["complete"], recording.ledger["events"]
    print(f"{name}: {complete} of {events} stacks complete; others: {recording.reasons()}")
    assert events >= least, "too few to tell"
    return complete / events


@pytest.mark.slow
@pytest.mark.parametrize("name", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_real_program(run, allocprof, tmp_path, name):
    argv, text = {**PROGRAMS, **MORE}[name]
    if not shutil.which(argv[0]):
        conftest.unavailable(f"{argv[0]} is not installed")
    # Deeper ones are not asked for.
    run([allocprof, "record", "--max-depth", "512", "-o", tmp_path / "data", "--", *argv],
        env={"PYTHONMALLOC": "malloc"}, stdin=text.encode(), expect=0)
    recording = Recording(tmp_path / "data")
    assert share(recording, name) >= AT_LEAST, recording.reasons()


STARTED = {
    "compiler": ["sh", "-c", COMPILE],
    "nice": ["nice", "clang-format", "--version"],
    "git": ["env", "git", "grep", "--no-index", "-n", "-e", "static", "--", "src"],
    "several": ["sh", "-c", "for n in 1 2 3; do cmake --version; gdb --version; jq --version; done"],
    "python": ["timeout", "100", "/usr/bin/python3", "-c", "import unittest, json, sqlite3, decimal"],
}


@pytest.mark.covering(1)
@pytest.mark.fast("compiler-plain", "python-live")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
@pytest.mark.parametrize("name", STARTED)
def test_started_by_another(run, allocprof, tmp_path, name, live):
    """allocprof learns of these programs when they are executed, and they allocate at once: their first
    calls wait for the tables."""
    run([allocprof, "record", *live, "--max-depth", "512", "-o", tmp_path / "data", "--", *STARTED[name]],
        expect=0, cwd=support.SOURCE if name == "git" else tmp_path)
    recording = Recording(tmp_path / "data")
    assert share(recording, name, 300) >= AT_LEAST, recording.reasons()


@pytest.mark.fast("")
@pytest.mark.engines("uprobe", "preload")
def test_context_of_boost(run, allocprof, target, tmp_path):
    """Its outermost function has a return address that nothing called from, in code without a table."""
    run([allocprof, "record", "-o", tmp_path / "data", target("contexts")], expect=0)
    recording = support.Recording(tmp_path / "data")
    found = {text: calls for text, calls in recording.texts().items() if "allocate" in text}
    assert found == {"make_fcontext;within;allocate": 3}
    assert recording.ledger["complete"] == recording.ledger["events"], recording.ledger


@pytest.mark.slow
@pytest.mark.parametrize("options", [["record"], ["record", "--live"], ["stat"]], ids=" ".join)
def test_short_children(run, allocprof, counter, target, tmp_path, options):
    """500 a second for two seconds: none is missed, by the counter that is loaded into each of them."""
    made = counter()
    data = tmp_path / "data"
    run([allocprof, *options, *(["--json"] if options == ["stat"] else []), "-o", data, "--",
         target("preload_exec"), made.path, made.library, target("short_children"), "1000", "500"], expect=0)
    counts = made.read()
    assert counts.programs == 1001
    assert counts["malloc"].calls >= 1000 * support.stated("short_children")["malloc"].calls
    if options == ["stat"]:
        wrong = support.differences(support.read_report(data), counts)
    else:
        wrong = support.Recording(data).differences(counts)
        recording = Recording(data)
        assert share(recording, "short children") >= AT_LEAST, recording.reasons()
    assert not wrong, "\n".join(wrong)


# What follows the call is more than the way out.
LIBRARY = "void *through(void *(*f)(void)) { void *p = f(); __asm__ volatile(\"nop\"); return p; }\n"
PROGRAM = """#include <stdlib.h>
void *through(void *(*f)(void));
static void *get(void) { void *p = malloc(100); __asm__ volatile("" :: "r"(p)); return p; }
int main(void) { for (int i = 0; i < 100; i++) free(through(get)); return 0; }
"""


def test_library_without_table_is_named(run, allocprof, tmp_path):
    """Frame pointers lead through it, and nothing else hints at it: the tree begins where others do. It needs another
    library, so it is no C library, whose instructions are followed."""
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "program.c").write_text(PROGRAM)
    flags = ["-O1", "-g0", "-fno-omit-frame-pointer"]
    subprocess.run(["gcc", *flags, "-shared", "-fPIC", "-nostdlib", "-fno-asynchronous-unwind-tables",
                    "-fno-unwind-tables", "-o", "libno_table.so", "library.c", "-Wl,--no-as-needed", "-lc"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", *flags, "-o", "program", "program.c", "./libno_table.so"], cwd=tmp_path, check=True)
    data = tmp_path / "data"
    run([allocprof, "record", "-e", "malloc", "-o", data, "--", tmp_path / "program"], cwd=tmp_path, expect=0)
    recording = Recording(data)
    recording.assert_no_loss()
    assert recording.reasons() == "incomplete_frame_pointers 100"
    with sqlite3.connect(data) as database:
        assert database.execute("SELECT value FROM meta WHERE key = 'no_unwind_table'").fetchall() == \
            [(f"{tmp_path}/libno_table.so",)]
    text = run([allocprof, "report", data], expect=0).stdout.decode()
    assert "\n        frames may be missing (no unwind table in libno_table.so)\n" in text
    tree = run([allocprof, "report", "--tree", data], expect=0).stdout.decode().splitlines()
    assert tree[-1].endswith("> main > through > get > malloc") and "[" not in tree[-1], tree
    assert len(tree) == tree.index(next(line for line in tree if "called function" in line)) + 2, tree


@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_absent_pages(run, allocprof, target, tmp_path, reads_pages_in, live):
    """Pages of the stack that the kernel has taken away are read in, as for the program itself."""
    run([allocprof, "record", *live, "-o", tmp_path / "data", "--", target("absent_stack")], expect=0)
    recording = support.Recording(tmp_path / "data")
    path = ";".join(["work", *["outer"] * 20, "allocate"])
    found = {text: calls for text, calls in recording.texts().items() if "allocate" in text.split(";")}
    assert [calls for text, calls in found.items() if text.endswith(path)] == [40], found
    assert recording.ledger["complete"] == recording.ledger["events"], recording.ledger


def test_absent_pages_of_file(run, allocprof, target, tmp_path):
    """A file may be of a file system that takes as long as it likes: nothing waits for it, and the stacks end there."""
    run([allocprof, "record", "-o", tmp_path / "data", "--", target("absent_stack"), "file"], expect=0)
    recording = support.Recording(tmp_path / "data")
    assert recording.ledger["incomplete_unreadable"] == 40, recording.ledger


def test_absent_pages_within(run, allocprof, target, tmp_path, reads_pages_in):
    """stat decides by the stack whether a call is beneath the function."""
    run([allocprof, "stat", "--json", "--within", "work", "-o", tmp_path / "json", "--", target("absent_stack")], expect=0)
    report = support.read_report(tmp_path / "json")
    assert report["functions"]["malloc"]["calls"] == 40
    assert report["complete"], report
