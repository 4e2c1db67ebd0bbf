# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of examples/adapters, each with the framework that it is for."""

import json
import shutil
import sys
import xml.etree.ElementTree

import pytest

from support import SOURCE, unavailable

ADAPTERS = SOURCE / "examples" / "adapters"
pytestmark = [pytest.mark.engines("preload"), pytest.mark.slow]

GTEST = r"""
#include "allocations_gtest.h"
#include <memory>

TEST(Allocations, None) { EXPECT_ALLOCATIONS_AT_MOST(0, int volatile i = 1; (void)i); }
TEST(Allocations, Three) { EXPECT_ALLOCATIONS_AT_MOST(MOST, for (int i = 0; i < 3; i++) free(malloc(10))); }

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


@pytest.mark.parametrize("most, status", [(3, 0), (2, 1)])
def test_gtest(run, allocprof, tmp_path, most, status):
    require(run, tmp_path, "gtest/gtest.h")
    program = build(run, tmp_path, GTEST, f"-DMOST={most}", "-lgtest")
    result = run([allocprof, "stat", "--", program, f"--gtest_output=xml:{tmp_path}/out.xml"], expect=status)
    assert (b"allocations by for (int i = 0; i < 3; i++)" in result.stdout) == bool(status)
    cases = {case.get("name"): case for case in xml.etree.ElementTree.parse(tmp_path / "out.xml").iter("testcase")}
    noted = {name: int(next(case.iter("property")).get("value")) for name, case in cases.items()}
    # With the test's own object, and the message of a failure.
    assert noted["Three"] - noted["None"] == 3 if not status else noted["Three"] - noted["None"] > 3
    # Unmeasured all pass, and nothing is noted.
    run([program, f"--gtest_output=xml:{tmp_path}/out.xml"], expect=0)
    assert not list(xml.etree.ElementTree.parse(tmp_path / "out.xml").iter("property"))


CATCH2 = r"""
#define CATCH_CONFIG_MAIN
#include "allocations_catch2.h"
#include <cstdlib>

TEST_CASE("none") { REQUIRE_ALLOCATIONS_AT_MOST(0, int volatile i = 1; (void)i); }
TEST_CASE("three") { REQUIRE_ALLOCATIONS_AT_MOST(MOST, for (int i = 0; i < 3; i++) free(malloc(10))); }
"""


@pytest.mark.parametrize("most, failures", [(3, 0), (2, 1)])
def test_catch2(run, allocprof, tmp_path, most, failures):
    (tmp_path / "has.cc").write_text("#include <catch2/catch_test_macros.hpp>\n")
    is_third = not run(["g++", "-std=c++17", "-fsyntax-only", tmp_path / "has.cc"]).status
    if not is_third:
        require(run, tmp_path, "catch2/catch.hpp")
    program = build(run, tmp_path, CATCH2, f"-DMOST={most}", *(["-lCatch2Main", "-lCatch2"] if is_third else []))
    result = run([allocprof, "stat", "--", program], expect=failures)
    assert (b"allocations by for (int i = 0; i < 3; i++)" in result.stdout) == bool(failures)
    run([program], expect=0)


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
