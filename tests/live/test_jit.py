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
            for path in pathlib.Path("/tmp").glob(f"perf-{pid}.map*"):
                path.unlink()


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


@pytest.mark.slow
def test_node(run, allocprof, tmp_path, clean_maps):
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
for (let i = 0; i < 50; i++) loop(2000);
""")
    recording = record(run, allocprof, tmp_path, node, "--perf-basic-prof", script,
                       cwd=tmp_path)  # V8 leaves a log where it runs
    names = {name for name, in recording.sql(
        "SELECT u.name FROM frames f JOIN lines l ON l.frame = f.id "
        "JOIN functions u ON u.id = l.function WHERE f.module = 0")}
    assert [name for name in names if "allocateHere" in name or "loop" in name], names


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
