# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured window: what --within, --start-on, --stop-on and --delay count is what the target counts
itself, as stats_alloc does (tests/targets/window.cpp)."""

import re
import signal
import subprocess

import pytest

from support import (TIMEOUT_SECONDS, Obedient, Recording, figures, mapped_code, patched_functions, read_report,
                     shell_status, wait_until_counting)

WAYS = ["return", "recurse", "throw", "jump", "threads"]
MEASURED = "service::measured"


def own_figures(result):
    """What the target printed of itself."""
    return figures(result.stdout.decode().strip())


def stat(run, allocprof, tmp_path, options, argv, status=0):
    output = tmp_path / "stat.json"
    result = run([allocprof, "stat", "--json", "-o", output, *options, "--", *argv], expect=status)
    return read_report(output), result


def record(run, allocprof, tmp_path, options, argv, status=0):
    data = tmp_path / "window.data"
    result = run([allocprof, "record", "-o", data, *options, "--", *argv], expect=status)
    return Recording(data), result


def assert_stat(report, own, way=None, most_undecided=0):
    got = {"calls": report["total_allocations"], "frees": report["deallocations"]}
    expected = {"calls": own["calls"], "frees": own["frees"]}
    # How large an exception is is the C++ library's business.
    if way != "throw":
        got["bytes"], expected["bytes"] = report["total_allocated_bytes"], own["bytes"]
    assert report["window_opened"] and not report["lost"]["total"], report
    undecided = report["undecided"]
    assert report["complete"] == (not undecided) and undecided <= most_undecided, report
    if not undecided:
        assert got == expected
        return
    for name in "calls", "frees":
        assert got[name] <= expected[name] <= got[name] + undecided, report


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("recurse")
@pytest.mark.parametrize("way", WAYS)
def test_stat_within(run, allocprof, target, tmp_path, way):
    report, result = stat(run, allocprof, tmp_path, ["--within", MEASURED],
                          [target("window"), way])
    assert_stat(report, own_figures(result), way)


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("throw")
@pytest.mark.parametrize("way", WAYS)
def test_record_within(run, allocprof, target, tmp_path, way):
    recording, result = record(run, allocprof, tmp_path, ["--within", MEASURED],
                               [target("window"), way])
    own = own_figures(result)
    assert recording.ledger["events"] == own["calls"]
    assert not recording.unbalanced()
    assert (recording.ledger["lost"], recording.ledger["undecided"]) == (0, 0)
    if way != "throw":
        assert sum(size for _, size in recording.functions.values()) == own["bytes"]
    assert recording.meta["window_within"] == MEASURED
    assert recording.meta["window_opened"] == "1"
    assert all(MEASURED in text for text in recording.texts()), recording.texts()


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("jump-record")
@pytest.mark.parametrize("command", ["stat", "record"])
@pytest.mark.parametrize("way", WAYS)
def test_live_within(run, allocprof, target, tmp_path, command, way):
    """What is inside is followed until it ends: here it all does, the exceptions outside."""
    options = ["--live", "--within", MEASURED]
    if command == "stat":
        report, result = stat(run, allocprof, tmp_path, options, [target("window"), way])
        assert report["total_allocations"] == own_figures(result)["calls"]
        assert (report["live"], report["untracked"]["total"], report["undecided"]) == (0, 0, 0)
        assert report["deallocations"] == report["total_allocations"]
        return
    recording, result = record(run, allocprof, tmp_path, options, [target("window"), way])
    ledger = recording.ledger
    assert ledger["events"] == own_figures(result)["calls"]
    assert (ledger["allocations"], ledger["frees"]) == (ledger["events"], ledger["events"])
    assert (ledger["frees_unknown"], ledger["undecided"]) == (0, 0)


@pytest.mark.engines("uprobe", "preload")
def test_while_memory_is_mapped(run, allocprof, target, tmp_path):
    """Other threads hold the lock that a look-up of a mapping needs, and the callers are in new pages."""
    report, result = stat(run, allocprof, tmp_path, ["--within", MEASURED],
                          [target("window"), "pages"])
    assert_stat(report, own_figures(result))


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("name", ["service::measured(way, int)", "_ZN7service8measuredE3wayi"])
def test_names(run, allocprof, target, tmp_path, name):
    report, result = stat(run, allocprof, tmp_path, ["--within", name],
                          [target("window"), "recurse"])
    assert_stat(report, own_figures(result))


# What the shell runs, from the program's directory, and the file of the function where it is not the command's.
PATHS = {
    "relative": ("exec $ALLOCPROF ./program", ""),
    "parent": ("cd below && exec $ALLOCPROF ../program", ""),
    "link": ("exec $ALLOCPROF below/link", ""),
    "search_path": ("PATH=.:$PATH exec $ALLOCPROF program", ""),
    "named": ("exec $ALLOCPROF sh -c 'exec ./program'", "@below/link"),
    "itself": ("exec $ALLOCPROF ./program again", ""),
    "mounted": ("exec $ALLOCPROF unshare -m sh -c 'mount --bind . below && exec below/program'", "@./program"),
}


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("relative", "preload-relative", "preload-mounted")
@pytest.mark.parametrize("case", PATHS)
def test_paths_within(run, allocprof, compiled, tmp_path, case):
    """However the program is named, by the user and by whoever executes it."""
    program = compiled("""
        #include <stdlib.h>
        #include <unistd.h>
        __attribute__((noinline)) void measured(void)
        {
            for (int i = 0; i < 10; i++)
                free(malloc(100));
        }
        int main(int argc, char **argv)
        {
            free(malloc(5));
            if (argc > 1)
                execl("/proc/self/exe", argv[0], NULL);
            measured();
            return 0;
        }
    """)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "link").symlink_to(program)
    script, file = PATHS[case]
    run(["sh", "-c", script], cwd=tmp_path, expect=0,
        env={"ALLOCPROF": f"{allocprof} stat --json -o {tmp_path}/json --within measured{file} --"})
    report = read_report(tmp_path / "json")
    assert {name: (entry["calls"], entry["bytes"]) for name, entry in report["functions"].items() if entry["calls"]} == \
        {"malloc": (10, 1000), "free": (10, 0)}


@pytest.mark.engines("preload")
@pytest.mark.parametrize("options, why", [
    (["--within", "never_called"], "no call was made beneath the function of --within"),
    (["--within", "f@libnothing.so.1"], "did not load the file"),
], ids=["within", "file"])
def test_nothing_beneath(run, allocprof, target, tmp_path, options, why):
    """As test_never_opened() has it for probes."""
    argv = [target("window"), "return"]
    report, result = stat(run, allocprof, tmp_path, options, argv, status=125)
    never(result, report)
    assert why in report["window"]["why_not_opened"]


@pytest.mark.engines("preload")
@pytest.mark.parametrize("options, words", [
    (["--within", "service::other"], ["several functions", "service::other(int)"]),
    (["--within", "service::mesured"], ["no function", "service::measured"]),
    (["--within", "main@/nowhere/at/all"], ["--within", "/nowhere/at/all", "No such file"]),
    (["--within", "@file"], ["SYMBOL@FILE"]),
    (["--within", "sdt:allocprof_begin:part"], ["takes a function"]),
], ids=["ambiguous", "misspelt", "no-file", "empty", "usdt"])
def test_refused_by_the_library(run, allocprof, target, tmp_path, options, words):
    """The command does not run; one sentence says why."""
    result = run([allocprof, "stat", "-o", tmp_path / "out", *options, "--", target("window")], expect=125)
    message = result.stderr.decode()
    assert len(message.splitlines()) == 1 and all(word in message for word in words), message
    assert result.stdout == b""


@pytest.mark.engines("preload")
@pytest.mark.parametrize("command", ["stat", "record"])
def test_within_later(run, allocprof, target, tmp_path, command):
    """In a library that is loaded by dlopen, named by its path and by its name, and in a program that a shell runs."""
    library, program = target("libwindow_later.so"), target("window")
    argv = [program, "later", library]
    cases = [(f"later_measured@{library}", argv, LATER["calls"]),
             ("later_measured@libwindow_later.so", argv, LATER["calls"]),
             (f"{MEASURED}@{program}", ["/bin/sh", "-c", f"x=$(echo 1); exec {program} recurse"], None)]
    for within, argv, calls in cases:
        if command == "stat":
            report, result = stat(run, allocprof, tmp_path, ["--within", within], argv)
            got, lacking = report["total_allocations"], report["undecided"] + report["lost"]["total"]
        else:
            recording, result = record(run, allocprof, tmp_path, ["--within", within], argv)
            got, lacking = recording.ledger["events"], recording.ledger["undecided"] + recording.ledger["lost"]
            assert not recording.unbalanced()
        assert (got, lacking) == (calls or own_figures(result)["calls"], 0)


BETWEEN = ["--start-on", "window_opens", "--stop-on", "window_closes"]


@pytest.mark.engines("uprobe", why="preload notices no calls but the allocator's")
@pytest.mark.fast("multi")
@pytest.mark.parametrize("inject", [[], ["--inject", "multi=0"]], ids=["multi", "single"])
def test_stat_between(run, allocprof, target, tmp_path, inject):
    report, result = stat(run, allocprof, tmp_path, [*BETWEEN, *inject],
                          [target("window"), "between"])
    assert_stat(report, own_figures(result))


@pytest.mark.engines("uprobe", why="preload notices no calls but the allocator's")
@pytest.mark.fast("live")
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["plain", "live"])
def test_record_between(run, allocprof, target, tmp_path, live):
    recording, result = record(run, allocprof, tmp_path, [*BETWEEN, *live],
                               [target("window"), "between"])
    assert recording.ledger["events"] == own_figures(result)["calls"]
    assert not recording.unbalanced()
    if live:
        assert recording.ledger["frees"] == recording.ledger["events"]


MARKS = {
    "part": {"calls": 4 + 2, "frees": 4},  # of two of the four passes an exception is thrown
    "plain": {"calls": 1, "frees": 1, "bytes": 300},
}


@pytest.mark.engines("uprobe", why="preload notices no calls but the allocator's")
@pytest.mark.parametrize("name", MARKS)
def test_usdt(run, allocprof, target, tmp_path, name):
    """Regions that the program marks with include/allocprof.h."""
    report, _ = stat(run, allocprof, tmp_path,
                     ["--start-on", f"sdt:allocprof_begin:{name}",
                      "--stop-on", f"sdt:allocprof_end:{name}"], [target("window"), "marked"])
    assert_stat(report, MARKS[name], "throw" if name == "part" else None)


@pytest.mark.engines("uprobe", why="preload notices no calls but the allocator's")
@pytest.mark.slow
def test_forked_child_is_where_its_parent_was(run, allocprof, target, tmp_path):
    """The parent's window is open: the child's too; and that of a program it runs is not."""
    report, result = stat(run, allocprof, tmp_path, ["--start-on", "window_opens"],
                          [target("window"), "fork"])
    # One block each; what comes before window_opens() is not counted.
    assert (report["total_allocations"], report["total_allocated_bytes"]) == (2, 110)
    assert report["processes"] == 2
    script = f"{target('window')} between"
    report, result = stat(run, allocprof, tmp_path,
                          [*(o if o.startswith("--") else f"{o}@{target('window')}"
                             for o in BETWEEN)],
                          ["/bin/sh", "-c", f"{script}; {script}"])
    totals = [figures(line) for line in result.stdout.decode().splitlines()]
    assert report["total_allocations"] == sum(one["calls"] for one in totals)
    assert report["window_opened"]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_library_by_soname(run, allocprof, target, tmp_path):
    """A function of a library that the command starts with."""
    report, _ = stat(run, allocprof, tmp_path, ["--within", "asprintf@libc.so.6"],
                     [target("every_function"), "asprintf"], status=3)
    assert report["complete"] and report["total_allocations"] >= 7


def never(result, report):
    assert b"nothing was measured" in result.stderr
    assert report["window_opened"] is False and not report["complete"]
    assert report["total_allocations"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("options, why", [
    (["--within", "never_called"], "the function of --within was not called"),
    (["--start-on", "never_called"], "the function of --start-on was not called"),
    (["--within", "f@libnothing.so.1"], "did not load the file"),
    (["--delay", "1h"], "before the delay was over"),
], ids=["within", "start-on", "file", "delay"])
def test_never_opened(run, allocprof, target, tmp_path, options, why):
    """No silent zero: it is said, and a command that ended well is no success."""
    argv = [target("window"), "return"]
    report, result = stat(run, allocprof, tmp_path, options, argv, status=125)
    never(result, report)
    assert why in report["window"]["why_not_opened"]
    recording, result = record(run, allocprof, tmp_path, options, argv, status=125)
    assert recording.meta["window_opened"] == "0"
    assert recording.ledger["events"] == 0
    folded = run([allocprof, "folded", "--strict", "-i", tmp_path / "window.data"])
    assert folded.status != 0 and b"nothing was measured" in folded.stderr


@pytest.mark.engines("uprobe", why="preload does not know whether a function was called that allocates nothing")
def test_opened_and_nothing_allocated(run, allocprof, target, tmp_path):
    """A function that ran and allocated nothing is a true zero."""
    report, _ = stat(run, allocprof, tmp_path, ["--within", "service::other(int)"],
                     [target("window"), "return"])
    assert report["window_opened"] and report["complete"]
    assert report["total_allocations"] == 0


@pytest.mark.slow
def test_status_of_the_command_stays(run, allocprof, target, tmp_path):
    stat(run, allocprof, tmp_path, ["--within", "never_called"], [target("window"), "what"], 2)


@pytest.mark.covering(1)
@pytest.mark.fast("stat-ambiguous")
@pytest.mark.parametrize("options, words", [
    (["--within", "service::other"], ["several functions", "service::other(int)",
                                      "service::other(char const*)"]),
    (["--within", "service::mesured"], ["no function", "service::measured"]),
    (["--start-on", "nothing_like_it_at_all"], ["no function", "inlined"]),
    (["--within", "main@/nowhere/at/all"], ["--within", "/nowhere/at/all", "No such file"]),
    (["--within", "nothing_like_it@libc.so.6"], ["no function", "libc.so.6"]),
    (["--start-on", "main", "--stop-on", "main"], ["the same function"]),
    (["--within", "@file"], ["SYMBOL@FILE"]),
    (["--start-on", "sdt:allocprof_begin:prat"], ["no USDT probe", "allocprof_begin:part"]),
    (["--within", "sdt:allocprof_begin:part"], ["takes a function"]),
], ids=["ambiguous", "misspelt", "missing", "no-file", "missing-in-library", "same", "empty",
        "usdt", "within-usdt"])
@pytest.mark.parametrize("command", ["stat", "record"])
def test_refused(run, allocprof, target, tmp_path, command, options, words):
    """The command does not run; one sentence says why."""
    result = run([allocprof, command, "-o", tmp_path / "out", *options, "--", target("window")],
                 expect=125)
    message = result.stderr.decode()
    assert len(message.splitlines()) == 1, message
    for word in words:
        assert word in message, message
    assert result.stdout == b""


def test_refused_together(run, allocprof, target):
    result = run([allocprof, "stat", "--delay", "1s", "--start-on", "main", "--",
                  target("window")], expect=64)
    assert b"one beginning" in result.stderr


@pytest.mark.engines("uprobe", why="preload does not know whether a function was called that allocates nothing")
@pytest.mark.slow
def test_address(run, allocprof, target, tmp_path):
    """One of several functions is named by its address, as the sentence tells it."""
    refused = run([allocprof, "stat", "--within", "service::other", "--", target("window")])
    address = re.search(r"service::other\(int\) at (0x[0-9a-f]+)", refused.stderr.decode())[1]
    report, _ = stat(run, allocprof, tmp_path, ["--within", address],
                     [target("window"), "return"])
    assert report["window_opened"]


@pytest.mark.slow
@pytest.mark.parametrize("inject", [[], ["--inject", "multi=0"]], ids=["multi", "single"])
def test_semaphore(run, allocprof, target, tmp_path, inject):
    """A probe that is passed only while somebody counts."""
    assert run([target("semaphore")], expect=0).stdout == b"0\n"
    report, result = stat(run, allocprof, tmp_path, ["--start-on", "sdt:app:request", *inject],
                          [target("semaphore")])
    assert result.stdout == b"1\n"
    assert (report["total_allocations"], report["total_allocated_bytes"]) == (2, 5)
    assert run([target("semaphore")], expect=0).stdout == b"0\n"


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_stripped(run, allocprof, target, tmp_path):
    """Without symbols it is refused, and says so; with those of a debug file it works."""
    program = tmp_path / "window"
    run(["strip", "-o", program, target("window")], expect=0)
    result = run([allocprof, "stat", "--within", MEASURED, "--", program], expect=125)
    assert b"stripped" in result.stderr
    run(["objcopy", "--only-keep-debug", target("window"), tmp_path / "window.debug"], expect=0)
    run(["objcopy", "--strip-all", f"--add-gnu-debuglink={tmp_path / 'window.debug'}",
         target("window"), program], expect=0)
    report, result = stat(run, allocprof, tmp_path, ["--within", MEASURED], [program, "recurse"])
    assert_stat(report, own_figures(result))
    # A debug file with a table of symbols, and nothing else that debuggers read.
    run(["objcopy", "--only-keep-debug", "--strip-debug", target("window"),
         tmp_path / "window.debug"], expect=0)
    run(["objcopy", "--strip-all", f"--add-gnu-debuglink={tmp_path / 'window.debug'}",
         target("window"), program], expect=0)
    sections = run(["readelf", "-SW", tmp_path / "window.debug"], expect=0).stdout
    assert b".symtab" in sections and b".debug_info" not in sections
    report, result = stat(run, allocprof, tmp_path, ["--within", MEASURED], [program, "recurse"])
    assert_stat(report, own_figures(result))


def has_probe(pid, program, symbol):
    """Whether there is a breakpoint in the function's first bytes."""
    line, = [line for line in subprocess.run(["nm", program], check=True, stdout=subprocess.PIPE,
                                             text=True).stdout.splitlines()
             if line.split()[-1] == symbol]
    start, mapped_offset = mapped_code(pid, program)
    segments = subprocess.run(["readelf", "-lW", program], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
    for words in (line.split() for line in segments.splitlines() if " LOAD " in line):
        offset, vaddr, size = (int(words[i], 16) for i in (1, 2, 4))
        address = int(line.split()[0], 16)
        if vaddr <= address < vaddr + size:
            offset += address - vaddr
            break
    with open(program, "rb") as file, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        file.seek(offset)
        memory.seek(start + offset - mapped_offset)
        return file.read(8) != memory.read(8)


# Each with what tells that it is on: where the probes are.
ATTACHED = {
    "within": ("recurse", ["--within", MEASURED], ["_ZN7service8measuredE3wayi"]),
    "threads": ("threads", ["--within", MEASURED], ["_ZN7service8measuredE3wayi"]),
    "start-on": ("between", ["--start-on", "window_opens"], ["window_opens"]),
    "between": ("between", ["--start-on", "window_opens", "--stop-on", "window_closes"],
                ["window_opens", "window_closes"]),
    "stop-on": ("between", ["--stop-on", "window_closes"], ["window_closes"]),
}


@pytest.mark.covering(1)
@pytest.mark.fast("within-record", "between-stat")
@pytest.mark.parametrize("command", ["stat", "record"])
@pytest.mark.parametrize("kind", ATTACHED)
def test_attached(runner, allocprof, target, tmp_path, command, kind):
    """Of a process that runs; names are those of its program."""
    way, options, symbols = ATTACHED[kind]
    obedient = Obedient(runner, [target("window"), way, "wait"])
    out = tmp_path / "out"
    words = ["--json"] if command == "stat" else []
    process = runner.start([allocprof, command, *words, "-o", out, *options, "-p", obedient.pid])
    wait_until_counting(allocprof, process)
    assert all(has_probe(obedient.pid, target("window"), name) for name in symbols)
    obedient.send("go")
    own = figures(obedient.read_line())
    process.send_signal(signal.SIGINT)
    assert shell_status(process.wait(TIMEOUT_SECONDS)) == 0
    obedient.exit()
    if kind == "start-on":
        # Never shut again: with what comes between, of 200 bytes each.
        own = {name: own[name] + more for name, more in (("calls", 3), ("bytes", 600), ("frees", 3))}
    elif kind == "stop-on":
        # What comes before the first end.
        own = {"calls": 2, "bytes": 101, "frees": 2}
    # A thread whose first stack is walked while another one, which maps memory, is kept from running for long.
    most_undecided = 100 if kind == "threads" else 0
    if command == "stat":
        assert_stat(read_report(out), own, most_undecided=most_undecided)
        return
    recording = Recording(out)
    undecided = recording.ledger["undecided"]
    assert recording.ledger["lost"] == 0 and undecided <= most_undecided
    assert recording.ledger["events"] <= own["calls"] <= recording.ledger["events"] + undecided
    assert not recording.unbalanced()


@pytest.mark.parametrize("options, why", [
    (["--within", "service::mesured"], "service::measured"),
    (["--start-on", "service::other"], "several functions"),
], ids=["misspelt", "ambiguous"])
def test_refused_attached(runner, run, own_libc, allocprof, target, tmp_path, options, why):
    """The process goes on as if nothing had been."""
    obedient = Obedient(runner, [target("window"), "recurse", "wait"], env=own_libc)
    result = run([allocprof, "stat", *options, "-p", obedient.pid], expect=125)
    assert why in result.stderr.decode() and len(result.stderr.splitlines()) == 1
    assert not patched_functions(obedient.pid)
    obedient.send("go")
    figures(obedient.read_line())
    obedient.exit()


LATER = {"calls": 7, "bytes": 7 * 40, "frees": 7}


@pytest.mark.covering(1)
@pytest.mark.fast("within-record")
@pytest.mark.parametrize("command", ["stat", "record"])
@pytest.mark.parametrize("kind", ["within", "start-on", "usdt"])
def test_library_loaded_later(run, allocprof, target, tmp_path, command, kind):
    """By dlopen, and named by its path: it is prepared before the command runs."""
    library = target("libwindow_later.so")
    options, own = {
        "within": (["--within", f"later_measured@{library}"], LATER),
        # And one after it.
        "start-on": (["--start-on", f"later_measured@{library}", "--stop-on", "window_opens"],
                     {"calls": 8, "bytes": 7 * 40 + 41, "frees": 8}),
        "usdt": (["--start-on", f"sdt:allocprof_begin:later@{library}",
                  "--stop-on", f"sdt:allocprof_end:later@{library}"],
                 {"calls": 6, "bytes": 6 * 40, "frees": 6}),
    }[kind]
    argv = [target("window"), "later", library]
    if command == "stat":
        report, _ = stat(run, allocprof, tmp_path, options, argv)
        assert_stat(report, own)
        return
    recording, _ = record(run, allocprof, tmp_path, options, argv)
    assert recording.ledger["events"] == own["calls"]
    assert sum(size for _, size in recording.functions.values()) == own["bytes"]
    assert all("later_measured" in text or "later_outside" in text for text in recording.texts())


@pytest.mark.slow
@pytest.mark.parametrize("way", ["recurse", "between"])
def test_program_that_is_run_later(run, allocprof, target, tmp_path, way):
    """A shell becomes it: named by its path, and told from what the shell allocates. Its libraries are
    prepared for, as stat cannot look at a stack again."""
    program = target("window")
    options = ["--expect", program, "--within", f"{MEASURED}@{program}"] if way == "recurse" else [
        word if word.startswith("--") else f"{word}@{program}" for word in BETWEEN]
    report, result = stat(run, allocprof, tmp_path, options,
                          ["/bin/sh", "-c", f"x=$(echo 1); exec {program} {way}"])
    assert_stat(report, own_figures(result))
    recording, result = record(run, allocprof, tmp_path, options,
                               [target("exec_nonleader"), program, way])
    assert recording.ledger["events"] == own_figures(result)["calls"]


@pytest.mark.covering(1)
@pytest.mark.slow
@pytest.mark.parametrize("options", [["--within", MEASURED], BETWEEN], ids=["within", "between"])
@pytest.mark.parametrize("build", ["no_pie", "static", "static_pie"])
def test_builds(run, allocprof, target, tmp_path, build, options):
    way = "between" if options == BETWEEN else "threads"
    argv = [target(f"window_{build}"), way]
    report, result = stat(run, allocprof, tmp_path, options, argv)
    assert_stat(report, own_figures(result))
    recording, result = record(run, allocprof, tmp_path, options, argv)
    assert recording.ledger["events"] == own_figures(result)["calls"]
    assert not recording.unbalanced() and not recording.ledger["undecided"]


@pytest.mark.covering(1)
@pytest.mark.fast("jump-record-within")
@pytest.mark.parametrize("options", [
    ["--within", MEASURED], BETWEEN], ids=["within", "between"])
@pytest.mark.parametrize("command", [
    ["stat"], ["record"], pytest.param(["record", "--live"], marks=pytest.mark.slow)], ids=" ".join)
@pytest.mark.parametrize("way", [*WAYS, "between", "fork"])
def test_no_harm(run, allocprof, target, tmp_path, command, options, way):
    argv = [target("window"), way]
    bare = run(argv)
    ours = run([allocprof, *command, "-o", tmp_path / "out", *options, "--", *argv])
    assert ours.stdout == bare.stdout
    opened = (way in ("between", "fork")) == (options == BETWEEN) or way == "fork"
    assert ours.status == (bare.status or (0 if opened else 125)), ours
