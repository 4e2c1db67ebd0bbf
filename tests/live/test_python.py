# SPDX-License-Identifier: GPL-3.0-or-later
"""Where Python keeps small objects from malloc, stat and record say so, once, and only there."""

import json
import re
import subprocess
import sys

import pytest

from support import Obedient, Recording, TIMEOUT_SECONDS

PYTHON = "/usr/bin/python3"
SENTENCE = re.compile(r"^allocprof: Python \(.*/python3.*\) keeps objects of up to 512 bytes in arenas of "
                      r"its own.*--engine=preload --allocator python.*PYTHONMALLOC=malloc.*\n", re.MULTILINE)
MALLOC = {"PYTHONMALLOC": "malloc"}


def words_of(value):
    """A case's name, with its environment."""
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(value).replace("/usr/bin/", "") if isinstance(value, list) else ""


WAITS = "print('ready', flush=True); input()"


@pytest.mark.fast("python3--", "env PYTHONMALLOC=malloc python3--")
@pytest.mark.parametrize("argv, env, says", [
    ([PYTHON], {}, True),
    ([PYTHON], MALLOC, False),
    ([PYTHON, "-W", "-I", "-X", "-E"], MALLOC, False),
    ([PYTHON], {"PYTHONMALLOC": "malloc_debug"}, False),
    ([PYTHON], {"PYTHONMALLOC": "pymalloc"}, True),
    ([PYTHON], {"PYTHONMALLOC": ""}, True),
    ([PYTHON], {"PYTHONDEVMODE": "1"}, True),
    ([PYTHON, "-X", "dev"], MALLOC, False),
    ([PYTHON, "-I"], MALLOC, True),
    ([PYTHON, "-sE"], MALLOC, True),
    (["env", "PYTHONMALLOC=malloc", PYTHON], {}, False),
    (["env", "-u", "PYTHONMALLOC", PYTHON], MALLOC, True),
    (["sh", "-c", f'{PYTHON} -c pass; {PYTHON} "$@"', "sh"], {}, True),
    (["sh", "-c", f'PYTHONMALLOC=malloc {PYTHON} -c pass; {PYTHON} "$@"', "sh"], {}, True),
], ids=words_of)
def test_sentence(runner, run, allocprof, tmp_path, argv, env, says):
    """Python's options and environment are read from the process, which therefore lives until the recording has
    handled all events: the dump shows that."""
    data = tmp_path / "data"
    record = Obedient(runner, [allocprof, "record", "--no-symbols", "-o", data, "--", *argv, "-c", WAITS, "-I", "-E"],
                      env=env, stderr=subprocess.PIPE)
    run([allocprof, "ctl", "-p", record.pid, "dump", "-o", tmp_path / "dump"], expect=0)
    _, stderr = record.process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    assert record.process.returncode == 0, stderr
    found = SENTENCE.findall(stderr.decode())
    assert len(found) == says, stderr
    recording = Recording(data)
    assert ("own_heaps" in recording.meta) == says
    report = run([allocprof, "report", "-i", data], expect=0)
    assert SENTENCE.findall(report.stderr.decode()) == found


def test_no_python(run, allocprof, tmp_path):
    result = run([allocprof, "record", "--no-symbols", "-o", tmp_path / "data", "--", "ls"], expect=0)
    assert b"arenas" not in result.stderr


@pytest.mark.parametrize("malloc", [False, True])
def test_it_is_true(run, allocprof, tmp_path, malloc):
    """A hundred thousand small objects are calls only where no sentence says that they are none."""
    out = tmp_path / "out"
    program = "kept = [object() for i in range(100000)]"
    result = run([allocprof, "stat", "--json", "-o", out, "--", PYTHON, "-c", program],
                 env=MALLOC if malloc else {}, expect=0)
    report = json.loads(out.read_text())
    assert (report["functions"]["malloc"]["calls"] > 100000) == malloc
    assert ("own_heaps" in report) == (not malloc)
    assert bool(SENTENCE.search(result.stderr.decode())) == (not malloc)


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("words", [[], ["env"], ["sh", "-c", '"$@"; exit', "sh"]], ids=["itself", "env", "shell"])
@pytest.mark.parametrize("malloc", [False, True])
def test_started_by_another_program(run, allocprof, tmp_path, words, malloc):
    result = run([allocprof, "stat", "-o", tmp_path / "out", "--", *words, PYTHON, "-c", "pass"],
                 env=MALLOC if malloc else {}, expect=0)
    assert bool(SENTENCE.search(result.stderr.decode())) == (not malloc), result


@pytest.mark.parametrize("malloc", [False, True])
def test_process(runner, run, allocprof, malloc):
    """And in the report as text."""
    process = runner.start([PYTHON, "-c", WAITS], env=MALLOC if malloc else {}, stdin=-1,
                           stdout=-1)
    assert process.stdout.readline() == b"ready\n"
    result = run([allocprof, "stat", "--duration", "10ms", "-p", process.pid], expect=0)
    text = " ".join(result.stderr.decode().split())
    assert ("arenas of its own" in text and "PYTHONMALLOC=malloc" in text) == (not malloc)


EMBEDS = """#include <stdlib.h>
int Py_BytesMain(int, char **);
int main(int n, char **words) { free(malloc(9)); return n > 1 ? Py_BytesMain(n, words) : 0; }
"""


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("starts", [True, False], ids=["starts", "links"])
def test_library(run, allocprof, tmp_path, starts):
    """Python in a library of its own, within another program, which starts it or is merely linked to it: stacks show which,
    and counts do not."""
    version = "{}.{}".format(*sys.version_info)
    (tmp_path / "embeds.c").write_text(EMBEDS)
    built = run(["cc", "-o", tmp_path / "embeds", tmp_path / "embeds.c", f"-lpython{version}"])
    if built.status:
        pytest.skip(f"libpython{version} is not installed to link with: {built}")
    command = [tmp_path / "embeds", *(["-c", "pass"] if starts else [])]
    hedge = ", if the program starts it,"
    said = run([allocprof, "record", "--no-symbols", "-o", tmp_path / "data", "--", *command], expect=0).stderr.decode()
    said += run([allocprof, "report", "-i", tmp_path / "data"], expect=0).stderr.decode()
    assert said.count(f"libpython{version}") == 2 * starts and hedge not in said
    window = run([allocprof, "record", "--no-symbols", "--delay", "1h", "-o", tmp_path / "data", "--", *command]).stderr.decode()
    stat = run([allocprof, "stat", "-o", tmp_path / "out", "--", *command], expect=0).stderr.decode()
    assert f"libpython{version}" in window and hedge in window and f"libpython{version}" in stat and hedge in stat
