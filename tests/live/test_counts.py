# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that a definition only counts (`count = FUNCTION`), by both engines: what the program says that it called. The
program's calls come by words of its own, so that the engine preload sees all of them."""

import json
import pathlib
import re

import pytest

from support import SOURCE, unavailable

LIBRARY = """
#include <stdexcept>
#include <cstdlib>
extern "C" void tick(void) { __asm__ volatile("" ::: "memory"); }
extern "C" void fails(void) { std::free(std::malloc(7)); throw std::runtime_error("no"); }
extern "C" void ticks_twice(void) { tick(); std::free(std::malloc(8)); tick(); }
"""

PROGRAM = """
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include "allocprof.h"
extern "C" void tick(void);
extern "C" void fails(void);
extern "C" void ticks_twice(void);
static void (*const pointer)(void) = tick;
static void many(int n) { for (int i = 0; i < n; i++) { tick(); std::free(std::malloc(16)); } }
int main()
{
	std::vector<std::thread> threads;
	int caught = 0;
	many(10);
	pointer();
	ticks_twice();
	for (int i = 0; i < 4; i++)
		threads.emplace_back(many, 1000);
	for (std::thread &thread : threads)
		thread.join();
	if (pid_t child = fork())
		waitpid(child, nullptr, 0);
	else {
		many(5);
		_exit(0);
	}
	for (int i = 0; i < 3; i++)
		try { fails(); } catch (const std::exception &) { caught++; }
	ALLOCPROF_BEGIN("part");
	many(20);
	ticks_twice();
	ALLOCPROF_END("part");
	if (void *late = dlopen("./libuser.so", RTLD_NOW))
		((void (*)(void))dlsym(late, "use"))();
	std::printf("tick=%d fails=%d part=%d\\n", 10 + 1 + 2 + 4000 + 5 + 20 + 2 + 9, caught, 22);
	return 0;
}
"""

USER = """
void tick(void);
void use(void) { for (int i = 0; i < 9; i++) tick(); }
"""

DEFINITIONS = """
[tick]
modules = libcounted.so*
count = tick
[fails]
modules = *.so other lib?ounted.*
count = fails
"""


@pytest.fixture
def program(run, compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compiled(LIBRARY, "-fPIC", "-shared", compiler="g++", name="libcounted.so")
    compiled(USER, "-fPIC", "-shared", "-L.", "-l:libcounted.so", name="libuser.so")
    (tmp_path / "counts.ini").write_text(DEFINITIONS)
    return compiled(PROGRAM, f"-I{SOURCE}/include", "-L.", "-l:libcounted.so", "-ldl", f"-Wl,-rpath,{tmp_path}", compiler="g++")


def stat(run, allocprof, tmp_path, *options):
    result = run([allocprof, "stat", "--json", "-o", tmp_path / "json", *options], expect=0)
    return json.loads((tmp_path / "json").read_text()), result


def stated(result):
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", result.stdout.decode())}


def calls(functions):
    return {name.removesuffix(".count"): entry["calls"] for name, entry in functions.items() if name.endswith(".count")}


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("plain", "live", "preload-plain", "preload-live")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_stat(run, allocprof, program, tmp_path, engine, live):
    """They are exact, in regions, too, and in no figure of allocations."""
    report, result = stat(run, allocprof, tmp_path, *live, "--allocator", "./counts.ini", program)
    said = stated(result)
    part = said.pop("part")
    assert calls(report["functions"]) == said
    assert report["complete"] and report["lost"]["total"] == 0
    assert calls(report["regions"]["part"]["functions"])["tick"] == part
    assert "bytes" not in report["functions"]["tick.count"] and "internal" not in report["functions"]["tick.count"]
    alone, _ = stat(run, allocprof, tmp_path, *live, program)
    figures = ["allocations", "deallocations", "reallocations", "bytes_allocated", "internal", *(["live", "temporary"] if live else [])]
    # With the definition counts in preload's processes do not change what the program itself asks for.
    assert {name: report[name] for name in figures} == {name: alone[name] for name in figures}
    if live:
        assert report["untracked"]["total"] == 0


def test_text(run, allocprof, program):
    lines = run([allocprof, "stat", "--engine=preload", "--allocator", "./counts.ini", program], expect=0).stderr.decode().splitlines()
    assert any(re.fullmatch(r" +4,049    tick\.count( +0)?", line.rstrip()) for line in lines), lines


def test_misspelt(run, allocprof):
    """What is proposed are names of functions that there are."""
    def said(name):
        return run([allocprof, "stat", "--engine=preload", "-e", name, "--probe", "name=l,count=tick", "true"], expect=64).stderr.decode()

    assert "did you mean 'l.count'?" in said("l.cout")
    assert "''" not in said("x") and "l.free" not in said("l.free").partition(";")[2]


def rows(run, allocprof, *words):
    result = run([allocprof, "report", "--json", *words], expect=0)
    return json.loads(result.stdout)


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("plain", "preload-plain", "preload-live")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_recorded(run, allocprof, program, tmp_path, engine, live):
    """A report has them where a function is asked for, and then nothing else."""
    run([allocprof, "record", "-o", tmp_path / "data", *live, "--allocator", "./counts.ini", program], expect=0)
    report = rows(run, allocprof, tmp_path / "data")
    assert {stack["function"] for stack in report["stacks"]} & {"tick.count", "fails.count"} == set()
    assert report["ledger"]["lost"] == 0 and report["ledger"].get("unfinished", 0) == 0 and report["complete"]
    chosen = rows(run, allocprof, "--function", "tick.count", tmp_path / "data")
    assert {stack["function"] for stack in chosen["stacks"]} == {"tick.count"}
    assert chosen["selected"]["allocations"] == 4049 and chosen["all"] == report["all"]
    text = run([allocprof, "report", "--function", "tick.count", tmp_path / "data"], expect=0).stdout.decode()
    assert "These are calls that are only counted: they hand out nothing" in text
    callers = {chosen["frames"][stack["frames"][0]]["name"].split("(")[0] for stack in chosen["stacks"]}
    assert callers == {"many", "main", "ticks_twice", "use"}
    folded = run([allocprof, "folded", "--cost=allocations", tmp_path / "data"], expect=0).stdout
    assert b"tick.count" not in folded
    folded = run([allocprof, "folded", "--cost=allocations", "--where", "function = 'fails.count'", tmp_path / "data"], expect=0).stdout
    assert sum(int(line.split()[-1]) for line in folded.splitlines()) == 3


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("", "preload")
def test_within(run, allocprof, program, tmp_path, engine):
    report, _ = stat(run, allocprof, tmp_path, "--within", "ticks_twice@libcounted.so", "--allocator", "./counts.ini", program)
    assert calls(report["functions"]) == {"tick": 4, "fails": 0}
    assert report["allocations"] == 2


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("", "preload")
def test_check(run, allocprof, program, tmp_path, engine):
    """Their limits have names of their own, and fail where nobody counts."""
    budget = tmp_path / "budget.json"

    def check(most, *options, expect):
        budget.write_text(json.dumps({"tests": {"ticks": {"command": [str(program)], "runs": 1, "counts": {
            "tick.count": {"calls": {"max": most}}}}}}))
        return run([allocprof, "check", "--budget", budget, "--json", tmp_path / "check.json", *options], expect=expect).stderr.decode()

    definitions = ["--allocator", "./counts.ini"]
    check(4049, *definitions, expect=0)
    assert "of 'tick.count' calls 4,049, over the limit of 4,000 by 49" in check(4000, *definitions, expect=1)
    figure, = json.loads((tmp_path / "check.json").read_text())["tests"][0]["figures"]
    assert (figure["figure"], figure["count"], figure["unit"], figure["value"]) == ("calls", "tick.count", "calls", 4049)
    assert "name the definition that has it with --allocator" in check(4049, expect=5)
    check(1, "--update", *definitions, expect=0)
    assert json.loads(budget.read_text())["tests"]["ticks"]["counts"]["tick.count"]["calls"]["max"] == 4050


HIDDEN = """
#include <stdlib.h>
%s __attribute__((noinline)) void tick(void) { __asm__ volatile("" ::: "memory"); }
%s
void ticks_twice(void) { tick(); free(malloc(8)); tick(); }
"""


@pytest.mark.engines("preload")
@pytest.mark.parametrize("how, more, seen", [
    ('__attribute__((visibility("protected")))', "", "may call itself"),
    ("", "void (*volatile table)(void) __attribute__((visibility(\"hidden\"))) = tick; void other(void);", None),
    ('__attribute__((visibility("hidden")))', "", "no file of the target"),
], ids=["protected", "table", "hidden"])
def test_told_when_unseen(run, allocprof, compiled, tmp_path, monkeypatch, how, more, seen):
    """What cannot be seen inside is said: never just less."""
    monkeypatch.chdir(tmp_path)
    compiled(HIDDEN % (how, more), "-fPIC", "-shared", name="libcounted.so")
    program = compiled("void ticks_twice(void); int main() { ticks_twice(); return 0; }", "-L.", "-l:libcounted.so",
                       f"-Wl,-rpath,{tmp_path}")
    result = run([allocprof, "stat", "--json", "-o", tmp_path / "json", "--probe", "name=tick,count=tick", program], expect=0)
    report = json.loads((tmp_path / "json").read_text())
    ticks = calls(report["functions"]).get("tick", 0)
    assert report["complete"] == (seen is None), result.stderr
    assert ticks == (2 if seen is None else 0)
    assert seen is None or seen in result.stderr.decode()


@pytest.mark.engines("preload")
def test_looked_up(run, allocprof, compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compiled(HIDDEN % ("", ""), "-fPIC", "-shared", name="libcounted.so")
    program = compiled("""#include <dlfcn.h>
        int main() { ((void (*)(void))dlsym(dlopen("./libcounted.so", RTLD_NOW), "tick"))(); return 0; }""", "-ldl")
    result = run([allocprof, "stat", "--json", "-o", tmp_path / "json", "--probe", "name=tick,count=tick", program], expect=0)
    report = json.loads((tmp_path / "json").read_text())
    assert not report["complete"] and "looked its address up" in result.stderr.decode()


@pytest.mark.engines("uprobe")
def test_recursion(run, allocprof, compiled, tmp_path, engine):
    """Each call counts, whoever makes it."""
    program = compiled("""__attribute__((noinline)) int descend(int n) { return n ? descend(n - 1) + n * n : 0; }
        int main(int argc, char **argv) { return descend(6) != 91; }""", "-O0")
    report, _ = stat(run, allocprof, tmp_path, "--probe", "name=down,count=descend", program)
    assert calls(report["functions"]) == {"down": 7} and report["complete"]


@pytest.mark.engines("uprobe")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_usdt(run, allocprof, compiled, tmp_path, engine, live):
    if not pathlib.Path("/usr/include/x86_64-linux-gnu/sys/sdt.h").exists():
        unavailable("sys/sdt.h is not installed: scripts/setup --test")
    program = compiled("""#include <stdlib.h>
#include <sys/sdt.h>
        int main() { for (int i = 0; i < 12; i++) { DTRACE_PROBE(app, event); free(malloc(3)); } return 0; }""")
    report, _ = stat(run, allocprof, tmp_path, *live, "--usdt", f"{program}:name=events,count=app:event", program)
    assert calls(report["functions"]) == {"events": 12} and report["allocations"] == 12 and report["complete"]


THROUGH = """
static void body(void) { __asm__ volatile("" ::: "memory"); }
void (*hook)(void) = body;
char hooked;
__attribute__((visibility("protected"))) void tick(void) { if (hooked) hook(); else body(); }
__attribute__((visibility("protected"))) void tick_alike(void) { if (hooked) hook(); else body(); }
void ticks_twice(void) { tick(); tick_alike(); }
"""


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("", "preload")
def test_through_a_variable(run, allocprof, compiled, tmp_path, monkeypatch, engine):
    """As in Swift's runtime: the library's own calls are direct, and each goes on by a variable."""
    monkeypatch.chdir(tmp_path)
    compiled(THROUGH, "-fPIC", "-shared", name="libcounted.so")
    program = compiled("void tick(void), ticks_twice(void); int main() { tick(); for (int i = 0; i < 50; i++) ticks_twice(); return 0; }",
                       "-L.", "-l:libcounted.so", f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "counts.ini").write_text(
        "[tick]\ncount = tick through hook\ncount = tick_alike through hook\nswitch = hooked\n")
    report, _ = stat(run, allocprof, tmp_path, "--allocator", "./counts.ini", program)
    assert calls(report["functions"]) == {"tick": 101} and report["complete"]


UNUSABLE = {
    "copied": ("void (*hook)(void) = body; char hooked;", "extern void (*hook)(void); int main() { if (!hook) return 1;"),
    "small": ("int hook[1]; char hooked;", "int main() {"),
    "read-only": ("void (*hook)(void) = body; __attribute__((section(\".rodata\"))) const char hooked = 0;", "int main() {"),
    "large": ("void (*hook)(void) = body; int hooked;", "int main() {"),
}


@pytest.mark.engines("preload")
@pytest.mark.parametrize("kind", UNUSABLE)
def test_variable_that_cannot_be_used(run, allocprof, compiled, tmp_path, monkeypatch, kind):
    """It stays as it is, and the report says that calls may be missing."""
    monkeypatch.chdir(tmp_path)
    variables, begin = UNUSABLE[kind]
    compiled("""static void __attribute__((unused)) body(void) { __asm__ volatile("" ::: "memory"); } %s
        __attribute__((visibility("protected"))) void tick(void) { if (hooked) ((void (*)(void))*(void *const *)(void *)&hook)(); }
        void ticks_twice(void) { tick(); tick(); }
        int is_hooked(void) { return hooked; }""" % variables, "-fPIC", "-shared", name="libcounted.so")
    program = compiled("void ticks_twice(void); int is_hooked(void); %s ticks_twice(); return is_hooked(); }" % begin,
                       "-fno-PIE", "-no-pie", "-L.", "-l:libcounted.so", f"-Wl,-rpath,{tmp_path}")
    (tmp_path / "counts.ini").write_text("[tick]\ncount = tick through hook\nswitch = hooked\n")
    report, result = stat(run, allocprof, tmp_path, "--engine=preload", "--allocator", "./counts.ini", program)
    assert not report["complete"] and "may call itself" in result.stderr.decode(), result.stderr


@pytest.mark.parametrize("lines, message", [
    ("[a]\ncount = f(size=arg0)\n", "is no function to count"),
    ("[a]\ncount = f through\n", "is no function to count"),
    ("[a]\ncount = p:n through w\n", "is no function to count"),
    ("[a]\ncount = f\nalloc = g()\n", "such as are only counted; define two definitions"),
    ("[a]\nalloc = g()\ncount = f\n", "such as are only counted; define two definitions"),
    ("[a]\ncount = f\nnesting = beside\n", "only counts calls, all of them"),
    ("[a]\nalloc = f()\nswitch = s\n", "has a switch and no count line"),
    ("[a]\ncount = f\nswitch = s t\n", "switch takes the name of one variable"),
    ("[a]\ncount = f\nblocks = none\n", "a definition that only counts has no blocks"),
    ("[a]\ncount = f\ndomain = g(1)\n", "has a domain, and no functions of an allocator"),
    ("[a]\nalloc = f()\ndomain = g(1)\n", "takes nesting = outermost and blocks = malloc"),
    ("[a]\nalloc = f()\nblocks = malloc\ndomain = g\n", "domain takes one function"),
    ("[a]\nalloc = f()\nblocks = malloc\ndomain = g(100)\n", "domain takes one function"),
    ("[a]\nalloc = f()\nblocks = malloc\ndomain = g(1)\ndomain = g(2)\n", "domain takes one function"),
    ("[a]\nalloc = f()\nblocks = malloc\ndomain = g(1) h\n", "unexpected 'h' at the end"),
])
def test_refused_definitions(run, allocprof, tmp_path, lines, message):
    (tmp_path / "a.ini").write_text(lines)
    result = run([allocprof, "stat", "--engine=preload", "--allocator", tmp_path / "a.ini", "true"], expect=64)
    assert message in result.stderr.decode()


@pytest.mark.parametrize("lines, message", [
    ("[a]\ncount = f\n[b]\ncount = f\n", "which another definition counts"),
    ("[a]\ncount = f through w\n[b]\ncount = g through w\n", "by the same variable"),
    ("[a]\nmodules = lib[ab].so\ncount = f\n", "takes names of files"),
    ("[a]\ncount = p:n\n", "which sets no probes"),
    ("[a]\ncount = f" + 160 * "x" + "\n", "names of up to 159 bytes"),
    ("[a]\n" + "".join(f"count = f{i}\n" for i in range(65)), "64 functions at the most"),
    ("[a]\nalloc = f()\n", "only if it has a `domain`"),
    ("[a]\nalloc = p:n()\n", "which sets no probes"),
    ("".join(f"[a{i}]\nblocks = malloc\nalloc = f()\ndomain = g({i})\n" for i in range(9)), "8 domains at the most"),
])
def test_refused_by_preload(run, allocprof, tmp_path, lines, message):
    (tmp_path / "a.ini").write_text(lines)
    result = run([allocprof, "stat", "--engine=preload", "--allocator", tmp_path / "a.ini", "true"], expect=125)
    assert message in result.stderr.decode()
