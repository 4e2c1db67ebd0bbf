# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof check --against, limits by place and by function, and runs that differ."""

import json
import re
import shutil

import pytest

pytestmark = pytest.mark.engines("preload")

# Allocates argv[2] times in often(), and in sometimes() as often as the next of the further arguments says: each
# run takes another one, for which it counts itself in the file argv[1].
VARIES = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void often(void)
{
	void *volatile block = malloc(100);
	free(block);
}
__attribute__((noinline)) static void sometimes(void)
{
	void *volatile block = malloc(10);
	free(block);
}
__attribute__((noinline)) static void once(void)
{
	void *volatile block = malloc(33);
	free(block);
}
int main(int argc, char **argv)
{
	char run = 0;
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (read(fd, &run, 1) == 1)
		run++;
	pwrite(fd, &run, 1, 0);
	for (int i = atoi(argv[2]); i > 0; i--)
		often();
	for (int i = argc > 3 ? atoi(argv[3 + run % (argc - 3)]) : 0; i > 0; i--)
		sometimes();
#ifdef MORE
	once();
#endif
	return 0;
}
"""


@pytest.fixture
def varies(compiled):
    return compiled(VARIES, "-g")


def check(run, allocprof, *words, expect, cwd=None):
    return run([allocprof, "check", *words], expect=expect, cwd=cwd).stderr.decode()


def budget_of(path, **tests):
    path.write_text(json.dumps({"tests": tests}))
    return path


def against(run, allocprof, tmp_path, program, base, head, *words, expect):
    """Two programs that count their runs in files of their own. @base and @head are the further arguments."""
    command = " ".join(map(str, (program, tmp_path / "base.runs", *base)))
    return check(run, allocprof, "--baseline-dir", tmp_path / "kept", "--against", command, *words, "--", program,
                 tmp_path / "head.runs", *head, expect=expect)


@pytest.mark.fast("preload")
def test_equal(run, allocprof, varies, tmp_path):
    said = against(run, allocprof, tmp_path, varies, [1000], [1000], expect=0)
    assert said == "within      program: total_allocations 1,000, as in the base\n"
    said = against(run, allocprof, tmp_path, varies, [1000], [900], expect=0)
    assert said == "within      program: total_allocations 900, -100 (-10.0 %) against 1,000 of the base\n"


@pytest.mark.parametrize("runs", ["-r1", "-r3"])
def test_planted(run, allocprof, compiled, tmp_path, runs):
    """One allocation more in 100,000 is found each time, and named."""
    base, head = (compiled(VARIES, "-g", *flags, name=name) for name, flags in (("base", []), ("head", ["-DMORE"])))
    line, = [i for i, text in enumerate(VARIES.splitlines(), 1) if "malloc(33)" in text]
    for _ in range(3):
        said = check(run, allocprof, runs, "--baseline-dir", tmp_path / "kept", "--against", f"{base} {tmp_path}/a 100000",
                     "--", head, tmp_path / "b", "100000", expect=1)
        assert said.startswith("over        head: total_allocations 100,001, +1 (+0.0 %) against 100,000 of the base, "
                               "where no growth is allowed\n\nSince the base, total_allocations:\n")
        assert re.search(rf"\+1  0 -> 1  new\n +malloc\n +once \(head\.c:{line}\)", said)
    said = check(run, allocprof, runs, "--baseline-dir", tmp_path / "kept", "--against", f"{base} {tmp_path}/a 100000",
                 "--fail-over=0.001%", "--", head, tmp_path / "b", "100000", expect=0)
    assert said.startswith("within")


def test_chance(run, allocprof, varies, tmp_path):
    """Runs that overlap do not fail; those that are apart do, after ten of each."""
    said = against(run, allocprof, tmp_path, varies, [1000, 0, 8], [1004, 0, 8], expect=0)
    assert "total_allocations 1,004 to 1,012 in 3 runs, +4 (+0.4 %) against 1,000 of the base, which has 1,000 to 1,008: " \
        "the runs of both overlap, so it may be chance" in said
    said = against(run, allocprof, tmp_path, varies, [1000, 0, 8], [1009, 0, 8], expect=1)
    assert "total_allocations 1,009 to 1,017 in 10 runs, +9 (+0.9 %) against 1,000 of the base, which has 1,000 to 1,008, " \
        "where no growth is allowed" in said


NOISY = r"""
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct seeded {
	size_t seed;
	size_t operator()(const std::string &text) const { return std::hash<std::string>()(text) ^ seed * 0x9e3779b97f4a7c15; }
};

int main()
{
	std::random_device random;
	std::unordered_map<std::string, int, seeded> shared(8, seeded{random()});
	std::vector<std::thread> threads;
	std::mutex mutex;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			std::mt19937 numbers(random());
			for (int j = 0; j < 500; j++) {
				std::string key = "longer than what is kept in place " + std::to_string(numbers() % 700);
				std::lock_guard<std::mutex> lock(mutex);
				shared[key]++;
			}
		});
	for (auto &thread : threads)
		thread.join();
	return 0;
}
"""


@pytest.mark.slow
def test_random(run, allocprof, compiled, tmp_path):
    """Random hashing and threads: two equal builds are equal. That they are not, by chance, happens once in 184,756 times."""
    base, head = (compiled(NOISY, compiler="g++", name=name) for name in ("base", "head"))
    for _ in range(5):
        check(run, allocprof, "--baseline-dir", tmp_path / "kept", "--against", base, "--", head, expect=0)


def test_confirmed(run, allocprof, varies, tmp_path):
    """What looks like growth at first and is none: the runs go on until one shows it."""
    said = against(run, allocprof, tmp_path, varies, [1000], [1000, 5, 5, 5, 5, 0, 5, 5, 5], "-r3", expect=0)
    assert "total_allocations 1,000 to 1,005 in 5 runs, as in the base" in said
    assert "Runs differ:\n  1 of 5 runs -5 in sometimes < main" in said


def test_directory(run, allocprof, varies, tmp_path):
    """A directory is where the base was built: each test's command is run there."""
    for name in ("base", "head"):
        (tmp_path / name / "tests").mkdir(parents=True)
        shutil.copy(varies, tmp_path / name / "tests" / "program")
    budget = budget_of(tmp_path / "head" / "budget.json", **{
        "a": {"command": ["./program", "runs", "1000"], "directory": "tests"},
        "b": {"command": ["./program", "runs", "2000"], "directory": "tests"}})
    said = check(run, allocprof, "--budget", budget, "--against", "../base", expect=0, cwd=tmp_path / "head")
    assert said.count("as in the base") == 2 and "total_allocations 2,000" in said
    assert (tmp_path / "base" / "tests" / "runs").read_bytes() == (tmp_path / "head" / "tests" / "runs").read_bytes() == b"\x05"
    said = check(run, allocprof, "--budget", budget, "--against", "./program", expect=64, cwd=tmp_path / "head")
    assert "the budget has 2 tests: choose one with --name, or name a directory" in said


@pytest.mark.fast("preload")
def test_recording(run, allocprof, varies, tmp_path):
    """A recording is a base of which nothing is run."""
    for name, words in ("live", ["--live", "-r3", "--warmup=0"]), ("plain", []):
        run([allocprof, "record", *words, "-o", tmp_path / name, "--", varies, tmp_path / "runs", "1000", "0", "2"], expect=0)
    budget = budget_of(tmp_path / "budget.json", t={
        "command": [str(varies), str(tmp_path / "runs"), "1000"], "total_allocations": {"growth": 0},
        "peak_bytes": {"growth": "1%"}, "temporary_allocations": {"growth": 5}, "total_allocated_bytes": {"growth": 0}})
    said = check(run, allocprof, "--budget", budget, "--against", tmp_path / "live", expect=0)
    assert "total_allocations 1,000, as in the base, which has 1,000 to 1,002" in said
    assert "peak_bytes 100, as in the base; temporary_allocations 1,000, as in the base" in said
    said = check(run, allocprof, "--budget", budget, "--against", tmp_path / "live", "--", varies, tmp_path / "runs", "1006",
                 expect=1)
    assert "temporary_allocations 1,006, +6 (+0.6 %) against 1,000 of the base, which has 1,000 to 1,002, " \
        "where a growth of 5 is allowed" in said and "Since the base, temporary_allocations:" in said
    said = check(run, allocprof, "--budget", budget, "--against", tmp_path / "plain", expect=2)
    assert "does not follow blocks; make it with record --live" in said


@pytest.mark.fast("preload")
def test_recording_has_no_regions(run, allocprof, target, tmp_path):
    """The growth of a region cannot be judged by a recording, whose region would have allocated nothing."""
    program = str(target("regions_O2"))
    run([allocprof, "record", "--live", "-o", tmp_path / "live", "--", program, "nest"], expect=0)
    budget = budget_of(tmp_path / "budget.json", t={"command": [program, "nest"], "total_allocations": {"growth": 0},
                                                    "regions": {"parse": {"total_allocations": {"growth": 0}}}})
    said = check(run, allocprof, "--budget", budget, "--against", tmp_path / "live", expect=2)
    assert said == "failed      t: the growth of region 'parse' is limited, and a recording has no regions; name a command or " \
        "a directory with --against\n"
    # Its other limits need no base.
    budget_of(tmp_path / "budget.json", t={"command": [program, "nest"], "total_allocations": {"growth": 0},
                                           "regions": {"parse": {"total_allocations": {"max": 1000}}}})
    check(run, allocprof, "--budget", budget, "--against", tmp_path / "live", expect=0)


@pytest.mark.fast("preload-sampled", "preload-unprobed")
@pytest.mark.parametrize("words, command, status, says", [
    (["--sample=1"], "exit 0", 2, "failed      sh: {} is sampled, so its figures are estimates"),
    (["--delay=1ms"], "exit 0", 2, "failed      sh: {} has only a part of a run"),
    (["--duration=0.2"], "exec sleep 3", 2, "failed      sh: {} ended before what it recorded did"),
    ([], "exit 3", 2, "failed      sh: the command of {} ended with status 3"),
    ([], "./program; exit 0", 4, "incomplete  sh: not all calls of the base are known"),
], ids=["sampled", "window", "duration", "status", "unprobed"])
def test_recording_refused(run, allocprof, compiled, tmp_path, words, command, status, says):
    """The base is held to what the test itself is."""
    recording = tmp_path / "base"
    # No library can be loaded into it.
    compiled("#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }", "-static")
    run([allocprof, "record", "--live", *words, "-o", recording, "--", "sh", "-c", command], cwd=tmp_path)
    said = check(run, allocprof, "--fail-over=100000", "--against", recording, "--", "sh", "-c", "exit 0", expect=status, cwd=tmp_path)
    assert says.format(recording) in said


@pytest.mark.parametrize("words, status, words_said", [
    (["--against", "false", "--", "true"], 2, "failed      true: the base's command ended with status 1"),
    (["--against", "/no/such/file x", "--", "true"], 127, "not run     true: the base: "),
    (["--against", "a | b", "--", "true"], 64, "'a | b' cannot be split into the words of a command"),
    (["--against", "true"], 64, "no budget; name the file of limits with --budget, or give the command to compare"),
    (["--fail-over=1%", "--budget=b", "--", "true"], 64, "--fail-over means nothing without --against"),
    (["--against", "true", "--update", "--", "true"], 64, "no budget to update"),
    (["--against", "true", "--fail-over=x", "--", "true"], 64, "'x' is no limit of growth"),
], ids=["fails", "missing", "words", "no-command", "fail-over", "update", "growth"])
def test_base_refused(run, allocprof, tmp_path, words, status, words_said):
    assert words_said in check(run, allocprof, *words, expect=status, cwd=tmp_path)


@pytest.mark.fast("preload")
def test_through(run, allocprof, varies, tmp_path):
    """Limits of what stacks through a function cost, whoever else allocates."""
    command = [str(varies), str(tmp_path / "runs"), "1000", "3"]
    through = {"sometimes": {"total_allocations": {"max": 2}, "total_allocated_bytes": {"max": 30},
                             "temporary_allocations": {"max": 3}, "remaining_bytes": {"max": 0}},
               "never": {"total_allocations": {"max": 0}}, "/of.en/": {"total_allocations": {"max": 1000, "min": 1000}}}
    budget = budget_of(tmp_path / "budget.json", t={"command": command, "through": through})
    said = check(run, allocprof, "--budget", budget, expect=1)
    assert "through 'sometimes' total_allocations 3, over the limit of 2 by 1; through 'sometimes' total_allocated_bytes 30 " \
        "(at most 30); through 'sometimes' remaining_bytes 0 (at most 0); through 'sometimes' temporary_allocations 3 " \
        "(at most 3); through 'never' total_allocations 0 (at most 0); through '/of.en/' total_allocations 1,000 " \
        "(exactly 1,000)" in said
    check(run, allocprof, "--budget", budget, "--update", expect=0)
    written = json.loads(budget.read_text())["tests"]["t"]["through"]
    assert written["sometimes"]["total_allocations"] == {"max": 3}
    check(run, allocprof, "--budget", budget, expect=0)
    # The explanation is of the stacks through the function alone.
    said = check(run, allocprof, "--budget", budget, "--", *command[:-2], "1100", "5", expect=1)
    sections = said.split("Since the last pass, total_allocations through ")[1:]
    assert [section.split(":")[0] for section in sections] == ["'sometimes'", "'/of.en/'"]
    assert "+2  3 -> 5" in sections[0] and "often" not in sections[0] and "+100  1,000 -> 1,100" in sections[1]


@pytest.mark.fast("preload")
def test_where(run, allocprof, varies, tmp_path):
    """Limits of what blocks cost of which an expression holds."""
    command = [str(varies), str(tmp_path / "runs"), "1000", "3"]
    where = {"through('sometimes') AND freed": {"total_allocations": {"max": 2}},
             "through('/of.en/') AND lifetime >= 0": {"total_allocations": {"max": 1000, "min": 1000}},
             "leaked AND through('/of.en/')": {"remaining_bytes": {"max": 0}}}
    budget = budget_of(tmp_path / "budget.json", t={"command": command, "where": where})
    said = check(run, allocprof, "--budget", budget, "--markdown", tmp_path / "summary.md", expect=1)
    assert "where 'through('sometimes') AND freed' total_allocations 3, over the limit of 2 by 1; where 'through('/of.en/') AND " \
        "lifetime >= 0' total_allocations 1,000 (exactly 1,000); where 'leaked AND through('/of.en/')' remaining_bytes 0 " \
        "(at most 0)" in said
    assert " where through" in (tmp_path / "summary.md").read_text()
    check(run, allocprof, "--budget", budget, "--update", expect=0)
    said = check(run, allocprof, "--budget", budget, "--", *command[:-2], "1100", "5", expect=1)
    sections = said.split("Since the last pass, total_allocations where ")[1:]
    assert "+2  3 -> 5" in sections[0] and "often" not in sections[0] and "+100  1,000 -> 1,100" in sections[1]
    budget_of(tmp_path / "budget.json", t={"command": ["false"], "where": {"sise > 3": {"remaining_bytes": {"max": 0}}}})
    assert "test 't': --where: no such column: sise, at character 1" in check(run, allocprof, "--budget", budget, expect=2)


@pytest.mark.fast("preload")
def test_through_growth(run, allocprof, compiled, tmp_path):
    base, head = (compiled(VARIES, "-g", *flags, name=name) for name, flags in (("base", []), ("head", ["-DMORE"])))
    budget = budget_of(tmp_path / "budget.json", t={"through": {
        "once": {"total_allocations": {"growth": 0}}, "often": {"total_allocations": {"growth": "1%"}}}})
    said = check(run, allocprof, "--budget", budget, "--against", f"{base} {tmp_path}/a 1000", "--", head, tmp_path / "b", "1009",
                 expect=1)
    assert "through 'once' total_allocations 1, +1 against 0 of the base, where no growth is allowed" in said
    assert "through 'often' total_allocations 1,009, +9 (+0.9 %) against 1,000 of the base" in said
    assert "Since the base, total_allocations through 'once':" in said and "through 'often':" not in said


def test_when(run, allocprof, varies, tmp_path):
    """The first entry whose conditions hold gives limits; --update writes into it."""
    command = [str(varies), str(tmp_path / "runs"), "1000", "3"]
    test = {"command": command, "total_allocations": {"max": 5}, "remaining_allocations": {"max": 0},
            "through": {"sometimes": {"total_allocations": {"max": 1}}},
            "when": [{"machine": "^vax$", "total_allocations": {"max": 1}},
                     {"libc": "GNU C Library|musl", "machine": "^x86_64$", "compiler": "GCC", "library": "/libc[.]",
                      "system": ".", "total_allocations": {"max": 1010, "min": 0},
                      "through": {"sometimes": {"total_allocations": {"max": 3}}}},
                     {"machine": ".", "total_allocations": {"max": 2}}]}
    budget = budget_of(tmp_path / "budget.json", t=test)
    said = check(run, allocprof, "--budget", budget, expect=0)
    assert "total_allocations 1,003 (0 to 1,010); remaining_allocations 0 (at most 0); " \
        "through 'sometimes' total_allocations 3 (at most 3)" in said
    check(run, allocprof, "--budget", budget, "--update", "--name=t", "--", *command[:-1], "4", expect=0)
    written = json.loads(budget.read_text())["tests"]["t"]
    assert written["total_allocations"] == {"max": 5} and written["when"][0] == test["when"][0]
    assert written["when"][1]["through"] == {"sometimes": {"total_allocations": {"max": 4}}}
    assert written["when"][1]["total_allocations"] == {"max": 1050, "min": 51} and written["when"][2] == test["when"][2]
    # An entry for a new place gets what the test has.
    budget_of(tmp_path / "budget.json", t={**test, "through": {"often": {"total_allocations": {"max": 1000}}},
                                           "when": [{"machine": "x86"}]})
    check(run, allocprof, "--budget", budget, "--update", expect=0)
    written = json.loads(budget.read_text())["tests"]["t"]
    assert written["when"] == [{"machine": "x86", "total_allocations": {"max": 1050}, "remaining_allocations": {"max": 0}}]
    assert written["total_allocations"] == {"max": 5}


def test_when_nowhere(run, allocprof, varies, tmp_path):
    command = [str(varies), str(tmp_path / "runs"), "1000"]
    budget = budget_of(tmp_path / "budget.json", t={"command": command, "when": [
        {"libc": "version 1[.]0", "total_allocations": {"max": 1}}]})
    said = check(run, allocprof, "--budget", budget, expect=5)
    assert said.startswith("missing     t: it has no limits for where it was run: machine 'x86_64', system '")
    assert ", libc '" in said and ", compiler 'GCC: " in said and said.endswith("; add an entry to \"when\"\n")


def test_runs_differ(run, allocprof, varies, tmp_path):
    """It is said where, and how; --update leaves room for it."""
    program = [str(varies), str(tmp_path / "runs"), "1000"]
    budget = budget_of(tmp_path / "budget.json", t={"runs": 5, "total_allocations": {"max": 1000, "min": 0}})
    said = check(run, allocprof, "--budget", budget, "--", *program, "0", "0", "3", "0", "0", expect=0)
    assert "total_allocations 1,000 to 1,003 in 5 runs (0 to 1,000)\nRuns differ:\n  1 of 5 runs +3 in sometimes < main" in said
    assert said.endswith("\n  with room for it: total_allocations at most 1,050\n")
    check(run, allocprof, "--budget", budget, "--update", "--", *program, "0", "0", "3", "0", "70", expect=0)
    assert json.loads(budget.read_text())["tests"]["t"]["total_allocations"] == {"max": 1150, "min": 51}
    said = check(run, allocprof, "--budget", budget, "--", *program, "1", "2", "3", "4", "5", expect=0)
    assert "  1 to 5 in 5 runs in sometimes < main" in said


@pytest.mark.parametrize("percentile, judged", [(0, 1000), (50, 1002), (99, 1003), (100, 1004)])
def test_percentile(run, allocprof, varies, tmp_path, percentile, judged):
    budget = budget_of(tmp_path / "budget.json", t={"runs": 5, "percentile": percentile, "total_allocations": {"max": judged, "min": 0}})
    program = [str(varies), str(tmp_path / "runs"), "1000", "4", "0", "3", "1", "2"]
    said = check(run, allocprof, "--budget", budget, "--", *program, expect=0)
    assert f"total_allocations {judged:,}{' to' if not percentile else ', of 1,000 to'} 1,004 in 5 runs (0 to {judged:,})" in said
    budget_of(tmp_path / "budget.json", t={"runs": 5, "percentile": percentile, "total_allocations": {"max": judged - 1, "min": 0}})
    check(run, allocprof, "--budget", budget, "--", *program, expect=1)


@pytest.mark.parametrize("test, says", [
    ({"percentile": 101}, "\"percentile\": it is 101; it has to be from 0 to 100"),
    ({"when": {}}, "\"when\": it has to be a list of objects with conditions and limits"),
    ({"when": [{"total_allocations": {"max": 1}}]}, "an entry has no condition"),
    ({"when": [{"libc": "("}]}, "\"libc\": '(' is no regular expression"),
    ({"when": [{"libc": "8" + "+" * 40}]}, "is too large once its repetitions are written out"),
    ({"when": [{"libc": "x", "runs": 3}]}, "\"runs\": unknown key; here are machine, system, libc, compiler and library"),
    ({"when": [{"libc": "x", "regions": {"r": {"peak_bytes": {"max": 1}}}}]}, "\"when\", region 'r', \"peak_bytes\": unknown key"),
    ({"through": {"f": {"runs": 1}}}, "through 'f', \"runs\": unknown key; a function has"),
    ({"through": []}, "a key for each function"),
    ({"total_allocations": {"growth": "1.5"}}, "growth has to be a share, such as \"1%\", or a whole number"),
    ({"total_allocations": {"growth": -1}}, "growth is -1; it cannot be negative"),
])
def test_bad_budget(run, allocprof, tmp_path, test, says):
    budget = budget_of(tmp_path / "budget.json", t={"command": ["true"], **test})
    assert says in check(run, allocprof, "--budget", budget, expect=2)


def test_growth_of_nothing(run, allocprof, tmp_path):
    budget = budget_of(tmp_path / "budget.json", t={"command": ["true"], "total_allocations": {"growth": 1}})
    said = check(run, allocprof, "--budget", budget, expect=5)
    assert said.startswith("missing     t: it has limits of growth alone; name with --against")
