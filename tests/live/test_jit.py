# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of frames: inlined functions with their lines, and code that was made at run time."""

import os
import pathlib
import shutil

import pytest

import conftest
from support import Recording


def record(run, allocprof, tmp_path, *argv, **kwargs):
    run([allocprof, "record", "-o", str(tmp_path / "data"), "--", *[str(word) for word in argv]],
        expect=0, **kwargs)
    return Recording(tmp_path / "data")


@pytest.fixture
def clean_maps(tmp_path):
    """Removes the maps that the recorded programs leave in /tmp, and none of another test that runs now."""
    yield
    if (tmp_path / "data").exists():
        for pid, in Recording(tmp_path / "data").sql("SELECT pid FROM processes"):
            for path in (*pathlib.Path("/tmp").glob(f"perf-{pid}.map*"), pathlib.Path(f"/tmp/jit-{pid}.dump")):
                path.unlink(missing_ok=True)


@pytest.mark.fast("early")
@pytest.mark.parametrize("words", [["trampoline"], [], ["late"]], ids=["trampoline", "early", "late"])
def test_code_made_at_run_time(run, allocprof, target, tmp_path, clean_maps, words):
    recording = record(run, allocprof, tmp_path, target("jit"), *words)
    found = {text: calls for text, calls in recording.texts().items() if "made at run time" in text}
    assert sum(found.values()) == 100, recording.texts()
    for text in found:
        assert "main;made at run time;allocate" in text
    # What such code does until it returns says where its caller's frame is.
    assert recording.ledger["complete"] == recording.ledger["events"], recording.ledger


@pytest.mark.parametrize("how", ["link", "writable"])
def test_maps_that_are_not_believed(run, allocprof, target, tmp_path, clean_maps, how):
    recording = record(run, allocprof, tmp_path, target("jit"), how)
    assert not [text for text in recording.texts() if "made at run time" in text]
    assert "main;[unknown];allocate" in "".join(recording.texts())


@pytest.mark.parametrize(("name", "shown"), [
    ("py::_find_and_load:<frozen importlib._bootstrap>", None),  # CPython
    ("instance void [app] Program::<Main>b__0()[Tier0]", None),  # .NET
    ("JS:*read file:///a/b@1.2/index.js:3:4", None),  # V8: an npm package in a directory with its version
    ("_ZN3app4main17h05af221e174051e9E", "app::main"),  # Rust, compiled to WebAssembly
])
def test_names_of_runtimes(run, allocprof, target, tmp_path, clean_maps, name, shown):
    """They are shown as they are: they are no symbols."""
    recording = record(run, allocprof, tmp_path, target("jit"), "name", name)
    names = {name for name, in recording.sql("SELECT u.name FROM frames f JOIN lines l ON l.frame = f.id "
                                             "JOIN functions u ON u.id = l.function WHERE f.module = 0")}
    assert names == {shown or name}


def dumped(recording):
    """Of the stacks with code that the dump names: name, source and line of that code, and calls."""
    return recording.sql("SELECT n.name, n.file, n.line, sum(c.calls) FROM frame_names n "
                         "JOIN stack_frames s ON s.frame = n.frame JOIN counts c ON c.stack = s.stack "
                         "JOIN frames f ON f.id = n.frame WHERE f.module = 0 GROUP BY n.name, n.file, n.line")


@pytest.mark.fast("tmp", "preload-tmp", "reused", "moved")
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("how", ["tmp", "reused", "moved"])
def test_jitdump(run, allocprof, target, tmp_path, clean_maps, how):
    """Names and lines of the code that was there when it was called."""
    recording = record(run, allocprof, tmp_path, target("jit_dump"), "/tmp", how)
    assert dumped(recording) == [("made at run time", "/src/made.js", 8, 100)], recording.texts()
    text, = [text for text in recording.texts() if "made at run time" in text]
    assert "main;made at run time;allocate" in text
    assert recording.ledger["complete"] == recording.ledger["events"], recording.ledger


@pytest.mark.parametrize("how", ["alone", "child"])
def test_jitdump_in_another_directory(run, allocprof, target, tmp_path, clean_maps, how):
    """The kernel says of the mapping where it is, also if the process has ended since. A forked one has its parent's code and dump."""
    recording = record(run, allocprof, tmp_path, target("jit_dump"), tmp_path, how)
    assert dumped(recording) == [("made at run time", "/src/made.js", 8, 100)], recording.texts()


@pytest.mark.engines("preload")
@pytest.mark.parametrize("where", ["here", "home"])
def test_jitdump_of_ended_process(run, allocprof, target, tmp_path, monkeypatch, where):
    """Where the kernel says nothing of mappings, the dump is looked for where compilers leave it."""
    home = tmp_path / ".debug" / "jit" / "llvm-IR-jit-20261130"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    recording = record(run, allocprof, tmp_path, target("jit_dump"), home if where == "home" else tmp_path, cwd=tmp_path)
    assert dumped(recording) == [("made at run time", "/src/made.js", 8, 100)], recording.texts()


@pytest.mark.parametrize("how", ["writable", "machine", "half"])
def test_jitdumps_that_are_not_believed(run, allocprof, target, tmp_path, clean_maps, how):
    recording = record(run, allocprof, tmp_path, target("jit_dump"), tmp_path, how)
    expected = [("an earlier life", None, None, 100)] if how == "half" else []
    assert [row for row in dumped(recording) if row[0] != "[unknown]"] == expected
    unread = recording.sql("SELECT value FROM meta WHERE key = 'unread_files'")
    assert ("it is no jitdump of this machine's processor" in str(unread)) == (how == "machine"), unread


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    ["--perf-basic-prof", "--interpreted-frames-native-stack"],
    ["--perf-prof", "--interpreted-frames-native-stack"],
    ["--perf-prof", "--always-sparkplug", "--no-opt"],
], ids=["map", "dump", "baseline"])
def test_node(run, allocprof, tmp_path, clean_maps, options):
    node = shutil.which("node", path="/usr/bin")
    if not node:
        conftest.unavailable("nodejs is not installed")
    script = tmp_path / "script.js"
    script.write_text("""
function allocateHere(i) {
  return Buffer.allocUnsafeSlow(100000 + (i & 7)).length;
}
function loop(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += allocateHere(i);
  return sum;
}
for (let i = 0; i < 20; i++) loop(500);
""")
    recording = record(run, allocprof, tmp_path, node, *options, script, cwd=tmp_path)  # V8 leaves a log where it runs
    rows = recording.sql("SELECT n.name, n.file, n.line FROM frame_names n JOIN frames f ON f.id = n.frame WHERE f.module = 0")
    assert not [row for row in rows if row[0] == "[unknown]"], rows
    names = {name for name, _, _ in rows}
    assert [name for name in names if "allocateHere" in name], names
    assert [name for name in names if "loop" in name], names
    # What V8 says of lines is not always true, which is why it need not be there.
    with_lines = {row for row in rows if row[2]}
    assert bool(with_lines) == (options[0] == "--perf-prof"), rows
    assert not [row for row in with_lines if "*" in row[0] or row[1] not in row[0]], with_lines
    ranges = {"allocateHere": {2, 3}, "loop": {5, 6, 7, 8}}
    for name, file, line in with_lines:
        if file == str(script):
            function = name.split()[0].removeprefix("JS:^")
            assert line in ranges.get(function, {1, 10}), (name, line)


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
def test_llvm(run, allocprof, tmp_path, monkeypatch):
    """LLVM's own dump, of code with frame pointers."""
    for tool in ("clang", "lli"):
        if not shutil.which(tool):
            conftest.unavailable(f"{tool} is not installed")
    source = tmp_path / "made.c"
    source.write_text("""#include <stdlib.h>
__attribute__((noinline)) void *inner(int i)
{
	return malloc(1000 + i);
}
int main(void)
{
	for (int i = 0; i < 100; i++)
		free(inner(i));
	return 0;
}
""")
    run(["clang", "-O1", "-g", "-fno-builtin", "-fno-omit-frame-pointer", "-S", "-emit-llvm",
         "-o", tmp_path / "made.ll", source], expect=0)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JITDUMPDIR", str(tmp_path))
    recording = record(run, allocprof, tmp_path, "lli", "-jit-kind=mcjit", tmp_path / "made.ll")
    assert dumped(recording) == [("inner", str(source), 4, 100), ("main", str(source), 9, 100)], recording.texts()
    text, = [text for text in recording.texts() if text.endswith(";inner")]
    assert text.endswith(";main;inner") and "_start" in text and "[unknown]" not in text, text


def test_inlined_functions(run, allocprof, tmp_path):
    """A C++ program with a constructor, a template and a lambda inlined."""
    if not shutil.which("g++"):
        conftest.unavailable("g++ is not installed")
    source = tmp_path / "inlined.cpp"
    source.write_text("""#include <cstdlib>
struct Owner {
	void *block;
	__attribute__((always_inline)) Owner(size_t size) : block(malloc(size)) {}
	__attribute__((always_inline)) ~Owner() { free(block); }
};
__attribute__((noinline)) long use(size_t size)
{
	Owner owner(size);
	asm volatile("" : : "r"(owner.block) : "memory");
	return (long)owner.block;
}
int main()
{
	long sum = 0;
	for (int i = 0; i < 10; i++)
		sum += use(1000 + i);
	return sum == 0;
}
""")
    run(["g++", "-O2", "-g", "-fno-builtin", "-o", tmp_path / "inlined", source], expect=0)
    recording = record(run, allocprof, tmp_path, tmp_path / "inlined")
    found = recording.sql(
        "SELECT n.name, n.inlined, n.file, n.line FROM frame_names n JOIN frame_names o "
        "ON o.frame = n.frame WHERE o.name LIKE 'use%' AND o.inlined = 0 ORDER BY n.frame, n.depth")
    places = {(name.split("(")[0], inlined, file, line) for name, inlined, file, line in found}
    assert {("Owner::Owner", 1, str(source), 4), ("use", 0, str(source), 9)} <= places, places
    text, = recording.sql("SELECT symbols FROM modules WHERE path = ?", str(tmp_path / "inlined"))
    assert text == ("its DWARF",)


def test_wrong_file(run, allocprof, target, tmp_path, clean_maps):
    """Names come from the file that was mapped, not from what is at its path by then."""
    program = tmp_path / "program"
    shutil.copy(target("jit"), program)
    os.chmod(program, 0o755)
    script = tmp_path / "script"
    script.write_text(f"{program}\nrm {program}\ncp /bin/true {program}\n")
    recording = record(run, allocprof, tmp_path, "sh", script)
    assert [text for text in recording.texts() if text.endswith("allocate")]
