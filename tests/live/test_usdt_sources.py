# SPDX-License-Identifier: GPL-3.0-or-later
"""USDT probes as definitions: a pool that says by its probes what it hands out (tests/targets/usdt_pool.c) is counted as often
and with as many bytes as it states, in programs and in libraries that are loaded later."""

import collections
import json
import signal
import sqlite3

import pytest

from support import TARGETS, Obedient, folded, unavailable, wait_until_counting

BUILDS = ["O0", "O2", "semaphores"]
DEFINITION = ("name=pool, alloc=pool:alloc(size=arg0)->arg1, alloc=pool:many(size=arg1*arg0)->arg2, "
              "realloc=pool:realloc(ptr=arg0, size=arg1)->arg2, free=pool:free(ptr=arg0)")
N = 1000


def program(build):
    path = TARGETS / f"usdt_source_{build}"
    if not path.exists():
        unavailable(f"{path} is not built: sys/sdt.h is missing, scripts/setup --test")
    return str(path)


def library(build):
    program(build)
    return str(TARGETS / f"libusdt_pool_{build}.so")


def usdt(path):
    return ["--usdt", f"{path}:{DEFINITION}"]


def expected(n):
    """Calls and bytes of pool_work(n), by function."""
    return {"pool.alloc": (2 * n + 1, n * 48 + n * 21 + 1000), "pool.realloc": (n // 4, n // 4 * 96),
            "pool.free": (n // 2, 0)}


def counted(report):
    assert report["complete"] and report["lost"]["total"] == 0, report
    return {name: (entry["calls"], entry["bytes"]) for name, entry in report["functions"].items()
            if name.startswith("pool.")}


def stat(run, allocprof, *arguments):
    return json.loads(run([allocprof, "stat", "--json", *arguments], expect=0).stderr)


@pytest.mark.fast("O2")
@pytest.mark.parametrize("build", BUILDS)
def test_stat(run, allocprof, build):
    report = stat(run, allocprof, *usdt(program(build)), program(build), str(N))
    assert counted(report) == expected(N)


def test_size_that_is_a_number(run, allocprof):
    """Of what is taken for 10 bytes each, there are 3 at a time."""
    path = program("O2")
    report = stat(run, allocprof, "--usdt", f"{path}:name=pool, alloc=pool:alloc(size=7), alloc=pool:many(size=10*arg0)",
                  path, str(N))
    assert counted(report) == {"pool.alloc": (2 * N + 1, (N + 1) * 7 + N * 3 * 10)}


@pytest.mark.fast("-semaphores")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("multi", ["", "--inject=multi=0"])
def test_library_that_is_loaded_later(run, allocprof, build, multi):
    """Named beforehand, so nothing is missing, although no file of the program has the probes in use."""
    options = [multi] if multi else []
    report = stat(run, allocprof, *options, *usdt(library(build)), program("O2"), str(N), library(build))
    assert counted(report) == expected(N)


@pytest.mark.fast("O2")
@pytest.mark.parametrize("build", BUILDS)
def test_record(run, allocprof, tmp_path, build):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", *usdt(program(build)), "-o", str(data), program(build), str(N)], expect=0)
    lines, _ = folded(run, allocprof, data)
    calls = collections.Counter()
    for stack, number in lines.items():
        frames = stack.split(";")
        if frames[-1].startswith("pool."):
            assert frames[-3] == "pool_work" and "main" in frames
            calls[frames[-2], frames[-1]] += number
    assert calls == {("pool_alloc", "pool.alloc"): N + 1, ("pool_many", "pool.alloc"): N,
                     ("pool_realloc", "pool.realloc"): N // 4}


def live_figures(report):
    return {name: report[name] for name in ("live", "live_bytes", "failed", "deallocations", "reallocations",
                                            "allocations", "unknown", "unseen")}


@pytest.mark.fast("-O2")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("multi", ["", "--inject=multi=0"])
def test_stat_live(run, allocprof, build, multi):
    options = [multi] if multi else []
    alone = stat(run, allocprof, "--live", *options, program(build), str(N))
    both = stat(run, allocprof, "--live", *options, *usdt(program(build)), program(build), str(N))
    assert counted(both) == expected(N)
    difference = {name: both[name] - number for name, number in live_figures(alone).items()}
    assert difference == {"live": N // 2 + N, "live_bytes": N // 2 * 48 + N * 21, "failed": 1,
                          "deallocations": N // 2, "reallocations": N // 4, "allocations": 2 * N,
                          "unknown": 0, "unseen": 0}
    assert both["untracked"]["total"] == 0


def test_record_live(run, allocprof, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", *usdt(program("O2")), "-o", str(data), program("O2"), str(N)],
        expect=0)
    connection = sqlite3.connect(f"file:{data}?mode=ro", uri=True)
    rows = {(caller, function): figures for caller, function, *figures in connection.execute(
        "SELECT caller, function, sum(allocations), sum(live), sum(live_bytes), sum(failed) FROM memory "
        "WHERE function LIKE 'pool.%' GROUP BY 1, 2")}
    connection.close()
    assert rows == {("pool_alloc", "pool.alloc"): [N, N // 2, N // 2 * 48, 1],
                    ("pool_many", "pool.alloc"): [N, N, N * 21, 0],
                    ("pool_realloc", "pool.realloc"): [N // 4, 0, 0, 0]}


@pytest.mark.fast("semaphores")
@pytest.mark.parametrize("build", BUILDS)
def test_attached(run, runner, allocprof, tmp_path, build):
    """To a program that has loaded the library, or loads it while it is measured."""
    process = Obedient(runner, [program("O2")])
    output = tmp_path / "json"
    tool = runner.start([allocprof, "stat", "--json", "-o", str(output), *usdt(library(build)), "-p",
                         str(process.pid)])
    wait_until_counting(allocprof, tool)
    process.ask(f"load {library(build)}")
    process.ask(f"work {N}")
    process.exit()
    assert tool.wait(60) == 0
    assert counted(json.loads(output.read_text())) == expected(N)


@pytest.mark.slow
def test_semaphores_are_put_back(run, runner, allocprof, tmp_path):
    process = Obedient(runner, [program("semaphores")])
    for _ in range(2):
        output = tmp_path / "json"
        tool = runner.start([allocprof, "stat", "--json", "-o", str(output), *usdt(program("semaphores")), "-p",
                             str(process.pid)])
        wait_until_counting(allocprof, tool)
        process.ask(f"work {N}")
        tool.send_signal(signal.SIGINT)
        assert tool.wait(60) == 0
        assert counted(json.loads(output.read_text())) == expected(N)
    process.exit()


@pytest.mark.parametrize("definition, sentence", [
    ("alloc=pool:alloc(size=arg7)->arg1", "has no arg7; its arguments are"),
    ("alloc=pool:alloc(size=arg0)->arg1, free=pool:nosuch(ptr=arg0)", "has no USDT probe pool:nosuch"),
])
def test_named_as_missing(run, allocprof, definition, sentence):
    result = run([allocprof, "stat", "--json", "--usdt", f"{program('O2')}:{definition}", program("O2"), "1"],
                 expect=0)
    report = json.loads(result.stderr[result.stderr.index(b"{"):result.stderr.rindex(b"}") + 1])
    assert not report["complete"]
    assert any(entry["gap"] and sentence in entry["gap"] for entry in report["allocators"])


@pytest.mark.parametrize("option, status, sentence", [
    ("pool:alloc(size=arg0)", 64, "names no file"),
    ("/nonexistent:alloc=pool:alloc(size=arg0)", 127, "cannot open"),
    ("./x:alloc=pool_alloc(size=arg0)", 64, "is no USDT probe"),
    ("./x:alloc=pool:alloc(size=*arg0)", 64, "*arg0"),
    ("./x:alloc=pool:alloc(size=arg0)->ret", 64, "ret"),
    ("./x:nesting=outermost, alloc=pool:alloc(size=arg0)", 64, "beside"),
])
def test_refused(run, allocprof, option, status, sentence):
    result = run([allocprof, "stat", "--usdt", option, "true"])
    assert result.status == status and sentence.encode() in result.stderr, result
