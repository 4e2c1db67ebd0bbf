# SPDX-License-Identifier: GPL-3.0-or-later
"""The library that counts inside of processes (src/inside), driven by tests/inside/measure.c: against what
targets state, and against the counter of tests/preload, which stands behind it in the same processes."""

import json
import os
import subprocess

import pytest

from support import BUILD, COUNTER_LIBRARY, INPUT, programs, stated, target as target_path

MEASURE = BUILD / "tests" / "inside" / "measure"
MAX_SUM = (1 << 63) - 1
LIBRARY = BUILD / "src" / "inside" / "liballocprof-inside.so"


@pytest.fixture
def measure(run, tmp_path):
    """Runs a command and returns what measure.c wrote."""
    def measured(argv, status=0, env=None, mode="count", **options):
        output = tmp_path / "measured.json"
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        result = run([MEASURE, mode, LIBRARY, output, *variables, *argv], expect=status, **options)
        report = json.loads(output.read_text())
        report["result"] = result
        assert report["damaged"] == 0 and report["unfinished"] == 0, report
        return report
    return measured


def slots(report):
    return {name: (entry["calls"], entry["bytes"], entry["fresh"], entry["released"], entry["null"])
            for name, entry in report["functions"].items()}


def sums(counts):
    """This library hands reallocarray's calls on as calls of realloc: behind it the two are not told apart.
    Bytes saturate."""
    counts = {name: (slot[0], min(slot[1], MAX_SUM), *slot[2:]) for name, slot in counts.items()}
    merged = tuple(a + b for a, b in zip(counts["realloc"], counts.pop("reallocarray")))
    return {**counts, "realloc": merged}


def test_every_function(measure):
    report = measure([target_path("every_function")], status=3)
    expected = {name: (slot.calls, slot.bytes, slot.fresh, slot.released, slot.null)
                for name, slot in stated("every_function").items()}
    got = slots(report)
    assert {name: got[name] for name in expected} == expected
    assert report["gaps"] == [0] * 6 and report["refused"] == []


NAMES = list(programs(str))


@pytest.mark.fast("every_function", "threads", "vfork", "shell", "dlopen", "close_all")
@pytest.mark.parametrize("name", NAMES)
def test_equals_counter(measure, counter, target, name):
    argv, status = programs(target)[name]
    made = counter()
    env = {"LD_PRELOAD": COUNTER_LIBRARY, "ALLOCPROF_COUNTER": made.path}
    report = measure(argv, status, env, stdin=INPUT)
    counts = made.read()
    expected = {name: (slot.calls, slot.bytes, slot.fresh, slot.released, slot.null)
                for name, slot in counts.functions.items()}
    got = {name: slot for name, slot in slots(report).items() if name in expected}
    assert counts.images > 0
    assert sums(got) == sums(expected)
    begun = sum(not image["is_fork"] for image in report["images"])
    assert begun == counts.images


def test_target_does_not_see_it(measure, target):
    script = ("echo ${LD_PRELOAD-none}; env | grep -c inside.so; "
              "/usr/bin/python3 -c 'import os; os.system(\"env | grep -c inside.so\"); print(os.environ.get(\"LD_PRELOAD\"))'")
    report = measure(["sh", "-c", script])
    assert report["result"].stdout.decode().split() == ["none", "0", "0", "None"]
    assert report["result"].stderr == b""


def test_environment_is_cleared(measure, target):
    """env -i, and a shell's child of a child: all are measured."""
    report = measure(["sh", "-c", f"env -i {target('threads')} 8 1000"])
    assert report["functions"]["malloc"]["calls"] >= 8 * 1000
    assert [image["comm"] for image in report["images"]].count("threads") == 1


def test_static_program_is_named(measure, target):
    report = measure(["/usr/bin/env", target("window_static")], status=None)
    assert [(entry["path"], entry["reason"]) for entry in report["refused"]] == []
    report = measure(["sh", "-c", f"exec {target('window_static')}"], status=None)
    assert [(entry["path"], entry["reason"]) for entry in report["refused"]] == \
        [(target("window_static"), "statically linked")]


def test_killed(measure, tmp_path):
    """All up to the last call is there."""
    source = tmp_path / "killed.c"
    source.write_text("""#include <signal.h>
#include <stdlib.h>
int main(void) { for (int i = 0; i < 4321; i++) { void *volatile p = malloc(17); (void)p; }
raise(SIGKILL); }""")
    subprocess.run(["gcc", "-O0", "-o", tmp_path / "killed", source], check=True)
    report = measure([tmp_path / "killed"], status=137)
    assert report["functions"]["malloc"]["calls"] == 4321
    assert report["functions"]["malloc"]["bytes"] == 4321 * 17


def test_nothing_is_left(measure, target):
    before = set(os.listdir("/dev/shm"))
    measure([target("nothing")])
    assert not {name for name in os.listdir("/dev/shm") if name.startswith("allocprof-")} - before
