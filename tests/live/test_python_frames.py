# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames of Python in stacks, by both engines: python_zoo.py says what the interpreter has, and the recording has the same.

Of another interpreter than the system's: ALLOCPROF_PYTHON=/path/to/python3.12."""

import collections
import json
import os
import pathlib
import subprocess
import sys

import pytest

from support import TIMEOUT_SECONDS, Recording, unavailable

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="its programs have code of x86-64, and nobody has tried it elsewhere")

PYTHON = os.environ.get("ALLOCPROF_PYTHON", "/usr/bin/python3")
# A debug build adds bytes to each block otherwise.
ENVIRONMENT = {"PYTHONMALLOC": "pymalloc"}
ZOO = pathlib.Path(__file__).with_name("python_zoo.py")
MISSING = "[Python frames missing]"
# Python's frames and, by their names alone, those that are missing. All that is planted is larger than anything else.
LEAST_BYTES = 1_000_000
STACKS = """SELECT c.id, c.calls, c.bytes, n.name, coalesce(n.file, ''), coalesce(n.line, 0) FROM counts c
    JOIN stacks s ON s.id = c.stack JOIN stack_frames f ON f.stack = s.id JOIN frame_names n ON n.frame = f.frame
    WHERE n.module = '[Python]' AND c.bytes >= c.calls * ? ORDER BY c.id, f.depth"""
# With uprobes the first stacks with code of a file may come before its unwind table, and are unwound from a copy of the stack.
MOST_EARLY = 10


def recorded(path):
    """(calls, bytes) by frames of Python, innermost first."""
    counts = collections.defaultdict(list)
    sums = {}
    for number, calls, size, *frame in Recording(path).sql(STACKS, LEAST_BYTES):
        sums[number] = calls, size
        if frame[0] != MISSING or counts[number][-1:] != [tuple(frame)]:
            counts[number].append(tuple(frame))
    return add_up((frames, sums[number]) for number, frames in counts.items())


def add_up(pairs):
    sums = {}
    for frames, (calls, size) in pairs:
        before = sums.get(tuple(frames), (0, 0))
        sums[tuple(frames)] = before[0] + calls, before[1] + size
    return sums


def hold(planted, path, most_early=0):
    assert len(planted) > 150
    # Of an interpreter that another one has called, and no other, the frames of the other one are missing.
    wanted = add_up(([*map(tuple, plant["frames"]), *[(MISSING, "", 0)] * (plant["shape"] == "subinterpreter")],
                     (1, plant["size"])) for plant in planted)
    got = recorded(path)
    shapes = {tuple(map(tuple, plant["frames"])): plant["shape"] for plant in planted}
    wrong = [f"{shapes.get(frames, '')}: {frames}: expected {wanted.get(frames)}, got {got.get(frames)}"
             for frames in sorted({*wanted, *got}) if wanted.get(frames) != got.get(frames)]
    early = got.get(((MISSING, "", 0),), (0, 0))
    others = [frames for frames in {*wanted, *got} if frames != ((MISSING, "", 0),)]
    lacking = [[wanted.get(frames, (0, 0))[i] - got.get(frames, (0, 0))[i] for frames in others] for i in range(2)]
    if early[0] <= most_early and min(map(min, lacking)) >= 0 and list(early) == [*map(sum, lacking)]:
        return
    assert not wrong, f"{len(wrong)} differences, {len(wanted)} stacks planted:\n" + "\n".join(wrong[:10])


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("record", "preload-record")
@pytest.mark.parametrize("options", [[], ["--live"], ["--live", "--events"]], ids=["record", "live", "events"])
def test_launched(runner, allocprof, engine, tmp_path, options):
    record = runner.start([allocprof, "record", f"--engine={engine}", *options, "-o", tmp_path / "data", "--", PYTHON, ZOO],
                          ENVIRONMENT, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1)
    stdout, stderr = record.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    assert record.returncode == 0, stderr
    hold(json.loads(stdout.split(b"\n", 1)[1])["planted"], tmp_path / "data", MOST_EARLY if engine == "uprobe" else 0)


@pytest.mark.parametrize("engine", ["inside", "uprobe"], indirect=False)
def test_attached(measure, runner, tmp_path, engine):
    """Without calls of malloc by an address that dlsym(3) has returned, which the engine inside does not count then."""
    process = runner.start([PYTHON, ZOO], ENVIRONMENT, stdin=-1, stdout=-1)
    assert process.stdout.readline() == b"ready\n"
    measured = measure(process, "record", engine=engine)
    stdout, _ = process.communicate(b"by_ctypes without_the_lock without_the_lock_in_a_thread\n", timeout=TIMEOUT_SECONDS)
    measured.finish()
    hold(json.loads(stdout)["planted"], measured.output, MOST_EARLY if engine == "uprobe" else 0)


@pytest.mark.slow
def test_own_file(run, allocprof, tmp_path):
    """A process that keeps a file of its own."""
    env = dict(word.split("=", 1) for word in
               run([allocprof, "env", "--format=docker", "-o", tmp_path / "own.%p"], expect=0).stdout.decode().replace("ENV ", "").split())
    process = subprocess.run([PYTHON, ZOO], input=b"\n", stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT, **env},
                             timeout=TIMEOUT_SECONDS, check=True)
    run([allocprof, "salvage", "-o", tmp_path / "data", *tmp_path.glob("own.*")], expect=0)
    hold(json.loads(process.stdout.split(b"\n", 1)[1])["planted"], tmp_path / "data")


SOURCE = pathlib.Path(__file__).parents[2] / "src" / "python"
# Members that the layout has, by the names that CPython has for them.
CHECK = """#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#include "python_layout.c"

static int wrong;

static void check(const char *what, unsigned long has, unsigned long expected)
{
    if (has != expected)
        wrong = 1, printf("%s: the layout has %lu, the header %lu\\n", what, has, expected);
}

#define CHECK(member, type, name) check(#member, layout.member, offsetof(type, name))

int main(void)
{
    struct python_layout layout;

    if (!python_layout__find((const void *)&_PyRuntime, PY_VERSION_HEX, &layout))
        return puts("the version is not known");
    CHECK(interpreters, _PyRuntimeState, interpreters.head);
    CHECK(finalizing, _PyRuntimeState, _finalizing);
    CHECK(next_interpreter, PyInterpreterState, next);
    CHECK(threads, PyInterpreterState, threads.head);
    CHECK(next_thread, PyThreadState, next);
    CHECK(native_id, PyThreadState, native_thread_id);
    CHECK(previous, _PyInterpreterFrame, previous);
    CHECK(owner, _PyInterpreterFrame, owner);
#if PY_VERSION_HEX < 0x030c0000
    CHECK(gil_owner, _PyRuntimeState, gilstate.tstate_current);
    CHECK(about_key, _PyRuntimeState, gilstate.autoTSSkey);
    CHECK(is_entry, _PyInterpreterFrame, is_entry);
    CHECK(next_cframe, _PyCFrame, previous);
    CHECK(code, _PyInterpreterFrame, f_code);
#else
    check("about_key", labs((long)layout.about_key - (long)offsetof(_PyRuntimeState, autoTSSkey)) < 1024, 1);
    check("entry_owner", layout.entry_owner, FRAME_OWNED_BY_CSTACK);
#endif
#if PY_VERSION_HEX < 0x030d0000
    CHECK(cframe, PyThreadState, cframe);
    CHECK(frame, _PyCFrame, current_frame);
    CHECK(instruction, _PyInterpreterFrame, prev_instr);
#else
    CHECK(frame, PyThreadState, current_frame);
    CHECK(attached, PyThreadState, state);
    CHECK(code, _PyInterpreterFrame, f_executable);
    CHECK(instruction, _PyInterpreterFrame, instr_ptr);
#endif
    CHECK(file, PyCodeObject, co_filename);
    CHECK(name, PyCodeObject, co_qualname);
    CHECK(lines, PyCodeObject, co_linetable);
    CHECK(first_line, PyCodeObject, co_firstlineno);
    CHECK(bytecode, PyCodeObject, co_code_adaptive);
    CHECK(type, PyObject, ob_type);
    CHECK(size, PyVarObject, ob_size);
    CHECK(length, PyASCIIObject, length);
    CHECK(state, PyASCIIObject, state);
    CHECK(data, PyBytesObject, ob_sval);
    check("ascii", layout.ascii, sizeof(PyASCIIObject));
    check("characters", layout.characters, sizeof(PyCompactUnicodeObject));
    return wrong;
}
"""


SCRIPT = """
import json
held = []
for _ in range(40):
    held.append(bytearray(1 << 20))
exec(compile("held.append(bytearray(1 << 22))", "", "exec"))
"""


def test_module_of_the_script_is_own_code(run, allocprof, tmp_path):
    """Though modules of the interpreter and of libraries run in functions of the same name; and code without the name of a file is not missing."""
    (tmp_path / "script.py").write_text(SCRIPT)
    run([allocprof, "record", "-q", "--engine=preload", "--live", "-o", tmp_path / "data", "--", PYTHON, tmp_path / "script.py"],
        {**os.environ, **ENVIRONMENT}, expect=0)
    report = json.loads(run([allocprof, "report", "--json", tmp_path / "data"], expect=0).stdout)
    [peak] = [finding for finding in report["findings"] if finding["kind"] == "peak"]
    assert peak["function"] == "<module>" and peak["bytes"] >= 44 << 20


def test_layout_is_that_of_the_headers(run, tmp_path):
    """Of the system's Python."""
    version = "{}.{}".format(*sys.version_info)
    include = pathlib.Path(f"/usr/include/python{version}")
    if not (include / "internal" / "pycore_frame.h").exists():
        unavailable("libpython3-dev is not installed: scripts/setup --test")
    (tmp_path / "check.c").write_text(CHECK)
    run(["cc", "-o", tmp_path / "check", tmp_path / "check.c", f"-I{SOURCE}", f"-I{SOURCE.parents[1] / 'abi'}", f"-I{include}", f"-I{include}/internal",
         f"-lpython{version}"], expect=0)
    result = run([tmp_path / "check"])
    assert result.status == 0, result.stdout.decode()
