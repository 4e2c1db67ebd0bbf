# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof stat -r and check: series of runs, and the story of a regression that CI finds."""

import json
import os
import re
import xml.etree.ElementTree

import pytest

from support import SOURCE

REQUESTS = 1000


def documented(title, block):
    """The lines of a block of a section of docs/ci.md."""
    section = (SOURCE / "docs" / "ci.md").read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    return section.split("```")[1::2][block].strip("\n").splitlines()


def line_of(text):
    """The line of request_server.c that has @text."""
    lines = (SOURCE / "tests" / "targets" / "request_server.c").read_text().splitlines()
    number, = [i for i, line in enumerate(lines, 1) if line.strip() == text]
    return number


def sums(said):
    """The rows of the table that a failure is explained by: stacks, before, after, difference."""
    table = re.search(r"\n +stacks .*\n(( .*\n)+)", said)[1]
    rows = {}
    for line in table.splitlines():
        words = line.split()
        title = re.search(r"[a-z].*", line.replace(" new ", " "))[0]
        rows[title] = [int(word.replace(",", "")) for word in words[:4]]
    return rows


def check(run, allocprof, budget, *words, expect):
    result = run([allocprof, "check", "--budget", str(budget), *words], expect=expect)
    return result.stderr.decode()


def write(path, **tests):
    path.write_text(json.dumps({"tests": tests}, indent=2))
    return path


@pytest.mark.slow
def test_story(run, allocprof, target, tmp_path):
    """A build passes, the next one allocates more in each request and has a renamed function."""
    budget = write(tmp_path / "budget.json", requests={
        "runs": 2, "total_allocations": {"max": 3050}, "remaining_allocations": {"max": 4, "min": 4}})
    junit = tmp_path / "junit.xml"
    before, after = (target(f"request_server_{when}") for when in ("before", "after"))
    said = check(run, allocprof, budget, before, str(REQUESTS), expect=0)
    assert "within      requests: total_allocations 3,004 (2,051 to 3,050)" in said
    assert (tmp_path / "budget.json.baselines" / "requests.data").exists()
    said = check(run, allocprof, budget, "--junit", str(junit), after, str(REQUESTS), expect=1)
    assert "over the limit of 3,050 by 2,954" in said
    only_after, paired = said.split("only in AFTER: +3,000")[1].split("paired, frames differ: ")
    # The one stack that is new, with its lines.
    assert only_after.count("->") == 1 and "+3,000  0 -> 3,000  new" in only_after
    assert f"add_trace (request_server.c:{line_of('use(32);')}) (request_server_after" in only_after
    assert f"handle_request (request_server.c:{line_of('add_trace();')})" in only_after
    rows = sums(said)
    assert rows["only in AFTER"] == [1, 0, 3000, 3000]
    assert rows["paired, frames differ"] == [1, 1000, 1000, 0]
    assert rows["only in BEFORE"][0] == rows["changed"][0] == 0
    assert rows["total"] == [sum(row[i] for name, row in rows.items() if name != "total")
                             for i in range(4)] == [rows["total"][0], 3004, 6004, 3000]
    assert paired.startswith("1 pair at the same cost; --all lists it\n")
    baseline = tmp_path / "budget.json.baselines" / "requests"
    every = run([allocprof, "diff", "--all", f"{baseline}.data", f"{baseline}.failed.data"])
    paired = every.stdout.decode().split("paired, frames differ: 0")[1].split("alike: 0")[0]
    assert paired.count("->") == 1 and "0  1,000 -> 1,000  paired" in paired
    assert "- parse_headers" in paired and "+ decode_headers" in paired
    suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure.get("type") == "over"
    assert f"add_trace (request_server.c:{line_of('use(32);')})" in failure.text
    # Far fewer than the limit, so that it would hide the next one.
    said = check(run, allocprof, budget, "--strict-limits", before, "1", expect=3)
    assert "under the lower limit of 2,051" in said
    assert '(no "min" is given, so 999 less than the upper limit of 3,050; --update writes' in said
    # The new need is accepted, and holds.
    said = check(run, allocprof, budget, "--update", after, str(REQUESTS), expect=0)
    assert "updated" in said
    assert json.loads(budget.read_text())["tests"]["requests"]["total_allocations"] == {"max": 6050}
    check(run, allocprof, budget, after, str(REQUESTS), expect=0)


@pytest.mark.slow
def test_worst_result_wins(run, allocprof, target, tmp_path):
    server = target("request_server_before")
    once = {"runs": 1, "warmup": 0}
    tests = {
        "good": {"command": [server, "1"], "total_allocations": {"max": 7, "min": 7}, **once},
        "stale": {"command": [server, "1"], "total_allocations": {"max": 9, "min": 8}, **once},
        "over": {"command": [server, "1"], "total_allocations": {"max": 6}, **once},
        "fails": {"command": ["sh", "-c", "exit 3"], "total_allocations": {"max": 6}, **once},
        "gone": {"command": ["./gone"], "total_allocations": {"max": 6}, **once},
    }
    for names, expect in ((["good"], 0), (["good", "stale"], 3), (["over", "stale", "good"], 1),
                          (["over", "fails"], 2), (["fails", "gone"], 127)):
        budget = write(tmp_path / "budget.json", **{name: tests[name] for name in names})
        said = check(run, allocprof, budget, "--strict-limits", expect=expect)
        for name in names:
            assert f" {name}: " in said
    assert "its command ended with status 3" in said
    budget = write(tmp_path / "budget.json", over=tests["over"])
    # What is not known is not judged.
    said = check(run, allocprof, budget, "--inject", "counts=2", expect=4)
    assert "incomplete  over:" in said


def test_bad_input(run, allocprof, tmp_path):
    budget = tmp_path / "budget.json"
    budget.write_text('{"tests": {"a": {"peak_bytes": {"max": -1}}}}')
    assert "max is -1; it cannot be negative" in check(run, allocprof, budget, "true", expect=2)
    write(budget, a={"peak_bytes": {"max": 1}})
    assert "no test 'b'" in check(run, allocprof, budget, "--name", "b", "true", expect=64)
    assert 'no "command"' in check(run, allocprof, budget, expect=64)
    gone = tmp_path / "gone.json"
    said = check(run, allocprof, gone, "true", expect=2)
    assert f"there is no budget {gone}; check --update with a command makes one" in said
    said = check(run, allocprof, gone, "--update", expect=2)
    assert f"there is no budget {gone}; give a command after --, and the budget is made from it" in said
    # Nothing is written of a test that failed.
    check(run, allocprof, gone, "--update", "-r1", "--warmup=0", "--", "false", expect=2)
    assert not gone.exists()


def test_sources(run, allocprof, target, tmp_path):
    """Calls of the functions of --probe are in the figures, and what has no blocks is refused."""
    budget = write(tmp_path / "budget.json", pools={"total_allocations": {"max": 1}})
    limits = {}
    for words in (), ("--probe", "alloc=pool_get(size=arg0), free=pool_put(ptr=arg0)"):
        run([allocprof, "check", "--budget", budget, "--update", "-r1", *words, "--", target("pools")], expect=0)
        limits[words] = json.loads(budget.read_text())["tests"]["pools"]["total_allocations"]["max"]
    assert limits[words] - limits[()] > 1000
    said = check(run, allocprof, budget, "--allocator", "mmap", "--", "true", expect=64)
    assert "do not use --allocator mmap with stat --live or check" in said


def test_new_budget(run, allocprof, target, tmp_path):
    """--update makes a budget of the command where there is none, and it holds."""
    budget, once = tmp_path / "budget.json", ["-r1", "--warmup=0"]
    server = target("request_server_before")
    said = check(run, allocprof, budget, "--update", *once, "--", server, "1", expect=0)
    assert f"{budget} is new, with the command of test 'request_server_before' and its limits" in said
    limits = {"total_allocations": {"max": 7, "min": 7}, "remaining_allocations": {"max": 4, "min": 4}}
    assert json.loads(budget.read_text()) == {
        "tests": {"request_server_before": {"command": [server, "1"], **limits}}}
    assert budget.stat().st_mode & 0o777 == 0o666 & ~umask()
    check(run, allocprof, budget, *once, expect=0)


def test_improvement_passes(run, allocprof, target, tmp_path):
    """It is reported, is kept as the recording of the last pass, and fails with --strict-limits alone."""
    budget = write(tmp_path / "budget.json", less={
        "command": [target("request_server_before"), "1"], "runs": 1, "total_allocations": {"max": 9, "min": 8}})
    junit = tmp_path / "junit.xml"
    said = check(run, allocprof, budget, "--junit", junit, expect=0)
    assert "improved    less: total_allocations 7, under the lower limit of 8 by 1" in said
    assert xml.etree.ElementTree.parse(junit).getroot().find("testsuite").get("failures") == "0"
    assert (tmp_path / "budget.json.baselines" / "less.data").exists()
    said = check(run, allocprof, budget, "--strict-limits", "--junit", junit, expect=3)
    assert "stale       less: " in said
    assert xml.etree.ElementTree.parse(junit).getroot().find("testsuite").get("failures") == "1"


def test_add_to_budget(run, allocprof, target, tmp_path):
    """--update with --name adds a test; without, the limits of one command do not become those of another."""
    budget, once = tmp_path / "budget.json", ["-r1", "--warmup=0"]
    server = target("request_server_before")
    check(run, allocprof, budget, "--update", *once, "--name", "one", "--", server, "1", expect=0)
    first = json.loads(budget.read_text())
    said = check(run, allocprof, budget, "--update", *once, "--", server, "2", expect=64)
    assert "test 'one' of the budget has another command; --name" in said
    assert json.loads(budget.read_text()) == first
    said = check(run, allocprof, budget, "--update", *once, "--name", "two", "--", server, "2", expect=0)
    assert f"test 'two' is new in {budget}, with the command and its limits" in said
    tests = json.loads(budget.read_text())["tests"]
    assert list(tests) == ["one", "two"] and tests["one"] == first["tests"]["one"]
    assert tests["two"]["command"] == [server, "2"] and tests["two"]["total_allocations"]["max"] == 10
    # As before where the command is the test's own, or --name says which one is meant.
    check(run, allocprof, budget, "--update", *once, "--name", "one", "--", server, "2", expect=0)
    assert json.loads(budget.read_text())["tests"]["one"]["total_allocations"]["max"] == 10
    assert "improved    one: total_allocations 7, under" in check(run, allocprof, budget, *once, expect=0)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.slow
def test_series(run, allocprof, target, tmp_path):
    output = tmp_path / "out.json"
    run([allocprof, "stat", "-r", "20", "--per", "10", "--json", "-o", str(output), "--",
         target("request_server_before"), "10"], expect=0)
    report = json.loads(output.read_text())
    assert report["schema"] == "allocprof-stat/2" and report["complete"]
    assert len(report["runs"]) == 20
    total = report["figures"]["total_allocations"]
    assert total == {"min": 3.4, "median": 3.4, "max": 3.4, "spread": 0, "same": True}
    assert {one["total_allocations"] for one in report["runs"]} == {34}


def test_series_differs(run, allocprof, target, tmp_path):
    """Each run is told apart; the status is that of the first that failed; input is read again."""
    output, state, text = tmp_path / "out.json", tmp_path / "state", tmp_path / "input"
    script = f'cat; echo x >> {state}; n=$(wc -l < {state}); ' \
        f'{target("request_server_before")} $n; [ $n != 3 ]'
    text.write_text("in\n")
    command = f'{allocprof} stat -r 3 --warmup 0 --json -o {output} sh -c "$0" < {text}'
    result = run(["sh", "-c", command, script], expect=1)
    assert result.stdout == b"in\n" * 3
    total = json.loads(output.read_text())["figures"]["total_allocations"]
    assert not total["same"] and total["spread"] >= 6


LOSES = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *kept;
__attribute__((noinline)) static void lose(int n)
{
	for (int i = 0; i < n; i++) {
		void *volatile block = malloc(100);
		block = 0;
		(void)block;
	}
}
int main(int argc, char **argv)
{
	char below[4096];
	kept = malloc(200);
	lose(atoi(argv[1]));
	/* Nothing of it is left in registers or below the stack. */
	memset(below, 0, sizeof(below));
	__asm__ volatile("" : : "r"(below) : "memory");
	if (argc > 2 && !fork())
		kept = malloc(300);
	return 0;
}
"""


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("preload")
def test_lost(run, allocprof, compiled, tmp_path):
    """What is left and still in use is no leak."""
    program = str(compiled(LOSES, "-g"))
    lost = {"lost_allocations": {"max": 2, "min": 2}, "lost_bytes": {"max": 200}}
    budget = write(tmp_path / "budget.json", t={**lost, "remaining_allocations": {"max": 4}, "through": {"lose": lost}})
    said = check(run, allocprof, budget, "--", program, "2", expect=0)
    assert said == "within      t: remaining_allocations 3 (at most 4); lost_allocations 2 (exactly 2); lost_bytes 200 (at most 200); " \
        "through 'lose' lost_allocations 2 (exactly 2); through 'lose' lost_bytes 200 (at most 200)\n"
    said = check(run, allocprof, budget, "--", program, "3", expect=1)
    assert "through 'lose' lost_bytes 300, over the limit of 200 by 100" in said
    assert re.search(r"\+100  200 -> 300  .*\n +malloc\n +lose \(program.c:", said), said
    # A child has blocks, too, and nobody has looked where pointers lead in it.
    said = check(run, allocprof, budget, "-r", "1", "--", program, "2", "fork", expect=4)
    assert "incomplete  t: not all of its blocks are known, as said above" in said and "test 't' left" in said


@pytest.mark.engines("preload")
def test_lost_against(run, allocprof, compiled, tmp_path):
    """A base that was recorded has to know what is lost."""
    program = str(compiled(LOSES))
    for options, status in (["--live"], 2), (["--reachable"], 1):
        run([allocprof, "record", *options, "-o", tmp_path / "base.data", "--", program, "1"], expect=0)
        budget = write(tmp_path / "budget.json", t={"lost_allocations": {"growth": 0}})
        said = check(run, allocprof, budget, "--against", str(tmp_path / "base.data"), "--", program, "2", expect=status)
        assert ("make it with record --reachable" in said) == (status == 2)
    assert "lost_allocations 2, +1 (+100.0 %) against 1 of the base, where no growth is allowed" in said


@pytest.mark.engines("preload")
def test_limits_of_swiftnio(run, allocprof, compiled, tmp_path):
    """What its tests print becomes a budget, by what docs/ci.md says."""
    program = compiled("""#include <stdlib.h>
#include "allocprof.h"
int main()
{
	free(malloc(1));
	ALLOCPROF_BEGIN("test_lots");
	for (int i = 0; i < 75; i++)
		free(malloc(10));
	ALLOCPROF_END("test_lots");
	return 0;
}""", f"-I{SOURCE}/include", name="test_lots")
    log = """- /home/me/swift-nio/IntegrationTests/tests_04_performance/test_01_resources/test_lots.swift
test_lots.remaining_allocations: 0
test_lots.total_allocations: %d
test_lots.total_allocated_bytes: 750
DEBUG: [["remaining_allocations": 0, "total_allocations": %d, "total_allocated_bytes": 750]]
"""
    command = "\n".join(documented("From the failing test to the line", 2))
    for most, status in (75, 0), (74, 1):
        (tmp_path / "counts.log").write_text(log % (most, most))
        run(["sh", "-c", command], cwd=tmp_path, expect=0)
        result = run([allocprof, "check", "--budget", "budget.json"], cwd=tmp_path, expect=status)
        assert b"in region 'test_lots'" in result.stderr and program.exists()
