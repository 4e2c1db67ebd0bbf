# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of examples/adapters, each with the framework that it is for."""

import json
import pathlib
import re
import shutil
import sys
import xml.etree.ElementTree

import pytest

from support import SOURCE, unavailable
from test_rust import REGISTRY

ADAPTERS = SOURCE / "examples" / "adapters"
SERVICE = SOURCE / "examples" / "check"
pytestmark = [pytest.mark.engines("preload"), pytest.mark.slow]

GTEST = r"""
#include "allocations_gtest.h"
#include <cstdlib>
#include <memory>

TEST(Allocations, None) { EXPECT_ALLOCATIONS_AT_MOST(0, int volatile i = 1; (void)i); }
TEST(Allocations, Three) { EXPECT_ALLOCATIONS_AT_MOST(std::atoi(std::getenv("MOST")), for (int i = 0; i < 3; i++) free(malloc(10))); }

int main(int argc, char **argv)
{
	testing::InitGoogleTest(&argc, argv);
	testing::UnitTest::GetInstance()->listeners().Append(new AllocationListener);
	return RUN_ALL_TESTS();
}
"""


def build(run, tmp_path, source, *words):
    (tmp_path / "test.cc").write_text(source)
    run(["g++", "-std=c++17", "-O1", "-fno-builtin", "-Wall", "-Wextra", "-Werror", "-I", ADAPTERS, "-I", SOURCE / "include",
         tmp_path / "test.cc", "-o", tmp_path / "test", "-pthread", *words], expect=0)
    return tmp_path / "test"


def require(run, tmp_path, header):
    (tmp_path / "has.cc").write_text(f"#include <{header}>\n")
    if run(["g++", "-fsyntax-only", tmp_path / "has.cc"]).status:
        unavailable(f"{header} is not installed")


# How many allocations the case that has three may have, and whether it fails then.
LIMITS = {"3": False, "2": True}


def test_gtest(run, allocprof, tmp_path):
    require(run, tmp_path, "gtest/gtest.h")
    program = build(run, tmp_path, GTEST, "-lgtest")
    for most, fails in LIMITS.items():
        env = {"MOST": most}
        result = run([allocprof, "stat", "--", program, f"--gtest_output=xml:{tmp_path}/out.xml"], env=env, expect=fails)
        assert (b"allocations by for (int i = 0; i < 3; i++)" in result.stdout) == fails
        cases = {case.get("name"): case for case in xml.etree.ElementTree.parse(tmp_path / "out.xml").iter("testcase")}
        noted = {name: int(next(case.iter("property")).get("value")) for name, case in cases.items()}
        # With the test's own object, and the message of a failure.
        assert noted["Three"] - noted["None"] == 3 if not fails else noted["Three"] - noted["None"] > 3
        # Unmeasured all pass, and nothing is noted.
        run([program, f"--gtest_output=xml:{tmp_path}/out.xml"], env=env, expect=0)
        assert not list(xml.etree.ElementTree.parse(tmp_path / "out.xml").iter("property"))


CATCH2 = r"""
#define CATCH_CONFIG_MAIN
#include "allocations_catch2.h"
#include <cstdlib>

TEST_CASE("none") { REQUIRE_ALLOCATIONS_AT_MOST(0, int volatile i = 1; (void)i); }
TEST_CASE("three") { REQUIRE_ALLOCATIONS_AT_MOST(std::atoi(std::getenv("MOST")), for (int i = 0; i < 3; i++) free(malloc(10))); }
"""


def test_catch2(run, allocprof, tmp_path):
    (tmp_path / "has.cc").write_text("#include <catch2/catch_test_macros.hpp>\n")
    is_third = not run(["g++", "-std=c++17", "-fsyntax-only", tmp_path / "has.cc"]).status
    if not is_third:
        require(run, tmp_path, "catch2/catch.hpp")
    # All of Catch2 2 is compiled.
    program = build(run, tmp_path, CATCH2, *(["-lCatch2Main", "-lCatch2"] if is_third else ["-O0"]))
    for most, fails in LIMITS.items():
        result = run([allocprof, "stat", "--", program], env={"MOST": most}, expect=fails)
        assert (b"allocations by for (int i = 0; i < 3; i++)" in result.stdout) == fails
        run([program], env={"MOST": most}, expect=0)


BENCHMARK = r"""
#include "allocations_benchmark.h"
#include <cstdlib>

static void three(benchmark::State &state)
{
	for (auto _ : state) {
		for (int i = 0; i < 3; i++)
			free(malloc(100000));
	}
}
BENCHMARK(three);

int main(int argc, char **argv)
{
	benchmark::Initialize(&argc, argv);
	register_allocations();
	benchmark::RunSpecifiedBenchmarks();
	return 0;
}
"""


def test_benchmark(run, allocprof, tmp_path):
    require(run, tmp_path, "benchmark/benchmark.h")
    program = build(run, tmp_path, BENCHMARK, "-lbenchmark")
    words = ["--benchmark_format=json", "--benchmark_min_time=0.01"]
    figures, = json.loads(run([allocprof, "stat", "--live", "--", program, *words], expect=0).stdout)["benchmarks"]
    assert 3 <= figures["allocs_per_iter"] < 3.5
    assert 100000 <= figures["max_bytes_used"] < 300000
    assert figures["total_allocated_bytes"] >= 3 * 100000
    plain, = json.loads(run([program, *words], expect=0).stdout)["benchmarks"]
    assert "allocs_per_iter" not in plain


PYTHON = """
import ctypes
import threading
import pytest

c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
c.free.argtypes = [ctypes.c_void_p]


def allocate(n):
    for _ in range(n):
        c.free(c.malloc(100))


@pytest.mark.limit_allocations(5)
def test_within(tmp_path):
    allocate(3)


@pytest.mark.limit_allocations(5)
def test_over():
    threads = [threading.Thread(target=allocate, args=[100]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.limit_allocations(0)
def test_fails():
    assert allocate(3) == 1


def test_unlimited():
    allocate(1000)
"""


def test_pytest(run, allocprof, tmp_path):
    shutil.copy(ADAPTERS / "pytest_allocations.py", tmp_path)
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['pytest_allocations']\n")
    (tmp_path / "test_it.py").write_text(PYTHON)
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q", "--junitxml=out.xml"]
    result = run([allocprof, "stat", "--", *words], expect=1, cwd=tmp_path)
    cases = {case.get("name"): case for case in xml.etree.ElementTree.parse(tmp_path / "out.xml").iter("testcase")}
    failures = {name: [failure.get("message") for failure in case.iter("failure")] for name, case in cases.items()}
    assert failures["test_within"] == failures["test_unlimited"] == []
    allocations = {name: int(next(case.iter("property")).get("value")) for name, case in cases.items() if name in ("test_within", "test_over")}
    assert 3 <= allocations["test_within"] <= 5 and allocations["test_over"] >= 400
    assert failures["test_over"][0].endswith(f"allocated {allocations['test_over']:,} times, 5 are allowed")
    # Its own failure is what is shown.
    assert "assert None == 1" in failures["test_fails"][0], result
    run(words, expect=1, cwd=tmp_path)
    unmeasured = run([*words, "--allocations=required", "-k", "within or unlimited"], expect=1, cwd=tmp_path)
    assert b"allocprof does not measure this process" in unmeasured.stdout and b"1 failed, 1 passed" in unmeasured.stdout


@pytest.mark.parametrize("words, status", [([], 0), (["--features", "regression"], 101)], ids=["passes", "fails"])
def test_cargo(cargo, allocprof, tmp_path, monkeypatch, words, status):
    """Tests run beside each other, and only the one that a regression is planted in fails."""
    shutil.copytree(ADAPTERS / "cargo", tmp_path / "words")
    manifest = tmp_path / "words" / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("../../../bindings", str(SOURCE / "bindings")))
    monkeypatch.setenv("PATH", str(pathlib.Path(allocprof).parent), prepend=":")
    result = cargo("test", *words, cwd=tmp_path / "words", expect=status)
    assert b"allocations" in result.stderr
    if status:
        assert b"FAILED. 1 passed; 1 failed" in result.stdout
        assert b"count(\"one two three\") allocated 1 times, 0 are allowed" in result.stdout
    else:
        assert b"test result: ok. 2 passed" in result.stdout
    # Unmeasured all pass.
    monkeypatch.setenv("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "env")
    cargo("test", *words, cwd=tmp_path / "words", expect=0)


def test_criterion(cargo, allocprof, tmp_path, monkeypatch):
    """Allocations per iteration are exact, also none, and one more is a regression."""
    if not list(pathlib.Path("/usr/share/cargo/registry").glob("criterion-0*")):
        unavailable("criterion is not installed: scripts/setup --test")
    package = tmp_path / "words"
    shutil.copytree(ADAPTERS / "criterion", package)
    manifest = package / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace("../../../bindings", str(SOURCE / "bindings")))
    with (package / ".cargo" / "config.toml").open("a") as config:
        config.write(REGISTRY)
    monkeypatch.setenv("PATH", str(pathlib.Path(allocprof).parent), prepend=":")
    # What criterion itself warns of in Debian's version is its own.
    monkeypatch.setenv("RUSTFLAGS", "")
    words = ["--noplot", "--sample-size=10", "--warm-up-time=1", "--measurement-time=1", "--nresamples=1000", "allocations"]

    def bench(*options, expect):
        result = cargo("bench", "--profile=dev", "--bench=count", *options, "--", *words, cwd=package, expect=expect, timeout=1800)
        text = result.stdout.decode()
        return dict(re.findall(r"(\w+)/allocations +time: +\[(\d+\.\d+) allocations", text)), text, result.stderr.decode()

    figures, text, _ = bench(expect=0)
    assert figures == {"count": "0.0000", "split": "4.0000"} and "regressed" not in text
    figures, text, _ = bench("--features=regression", expect=0)
    assert figures == {"count": "1.0000", "split": "4.0000"} and text.count("Performance has regressed") == 1
    monkeypatch.setenv("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "env")
    assert "allocprof does not measure this process" in bench(expect=101)[2]


NODE = """
import { allocations } from "./allocations.mjs";
import assert from "node:assert";
import test from "node:test";

test("within", () => {
	assert.equal(allocations("./program", "3").total_allocations, 3);
});
test("over", () => {
	const { total_allocations } = allocations("./program", "4");
	assert.ok(total_allocations <= 3, `${total_allocations} allocations`);
});
test("fails", () => {
	assert.throws(() => allocations("./program", "200"), /ended with 9/);
	assert.throws(() => allocations("./missing"), /ended with 127/);
});
"""


def test_node(run, allocprof, compiled, tmp_path, monkeypatch):
    node = shutil.which("node") or unavailable("nodejs is not installed: scripts/setup --test")
    compiled("""
#include <stdlib.h>
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	for (int i = 0; i < n; i++)
		free(malloc(10));
	return n > 100 ? 9 : 0;
}
""")
    shutil.copy(ADAPTERS / "allocations.mjs", tmp_path)
    (tmp_path / "it.test.mjs").write_text(NODE)
    monkeypatch.setenv("ALLOCPROF", str(allocprof))
    result = run([node, "--test", "--test-reporter=tap", tmp_path / "it.test.mjs"], cwd=tmp_path, expect=1)
    lines = [line.strip() for line in result.stdout.decode().splitlines()]
    assert [line for line in lines if line.startswith(("ok", "not ok"))][:3] == ["ok 1 - within", "not ok 2 - over", "ok 3 - fails"]
    assert any("4 allocations" in line for line in lines)


BUILDS = {"cmake": (["cmake", "-B", "build"], ["cmake", "-B", "build", "-DCMAKE_CXX_FLAGS=-DREGRESSION"],
                    ["cmake", "--build", "build"], ["ctest", "--test-dir", "build", "--output-on-failure"], 8),
          "meson": (["meson", "setup", "build"], ["meson", "configure", "build", "-Dcpp_args=-DREGRESSION"],
                    ["meson", "compile", "-C", "build"], ["meson", "test", "-C", "build", "--print-errorlogs"], 1)}


@pytest.mark.parametrize("name", BUILDS)
def test_build(run, allocprof, tmp_path, monkeypatch, name):
    """It passes, and with the regression fails by a log that says where."""
    configure, plant, build, test, failed = BUILDS[name]
    if not shutil.which(configure[0]):
        unavailable(f"{configure[0]} is not installed: scripts/setup --test")
    source = tmp_path / "check"
    shutil.copytree(SERVICE, source, ignore=shutil.ignore_patterns("service", "*.baselines"))
    before = sorted(source.iterdir())
    # Meson would use it where it is installed, and it would make the directory of caches, which is none.
    monkeypatch.setenv("CCACHE_DISABLE", "1")
    monkeypatch.setenv("PATH", str(pathlib.Path(allocprof).parent), prepend=":")
    for prepare, status in (configure, 0), (plant, failed):
        run(prepare, cwd=source, expect=0)
        run(build, cwd=source, expect=0)
        result = run(test, cwd=source, expect=status)
        assert (b"over the limit of 2,050 by 955" in result.stdout) == (b"log_request (service.cpp:25)" in result.stdout) == bool(status)
        suite = xml.etree.ElementTree.parse(source / "build" / "allocations.xml").getroot()
        assert len(list(suite.iter("failure"))) == bool(status)
    # Nothing but the build's directory is written to.
    assert sorted(source.iterdir()) == sorted([*before, source / "build"])
