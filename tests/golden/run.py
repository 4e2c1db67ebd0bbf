#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what allocprof prints for a fixed recording with the files beside this one.

run.py ALLOCPROF WRITE_FIXTURE MAN_DIR CASE [--update]
"""
import contextlib
import csv
import difflib
import gzip
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import data_digest  # noqa: E402
import pprof  # noqa: E402

FOLDED = {
    "folded": [],
    "folded_bytes": ["--cost=bytes"],
    "folded_addresses": ["--addresses"],
    "folded_no_comm": ["--no-comm"],
    "folded_by_thread": ["--by=process,thread", "--raw-stacks", "--demangle=none"],
    "folded_all": ["--cost", "bytes", "--addresses", "--no-comm", "--strict"],
}
REPORT = {
    "report": [],
    "report_all": ["--top=0", "--sort=allocations", "--histogram", "--strict"],
    "report_tree": ["--tree", "--min-share=0%"],
    "report_json": ["--json", "--leaks"],
}
EXPORT = {
    "export_pprof": ["--format=pprof"],
    "export_speedscope": ["--format=speedscope", "--no-inline"],
    "export_json": ["--format=json"],
    "export_dhat": ["--format=dhat"],
    "export_heaptrack": ["--format=heaptrack"],
    "export_firefox": ["--format=firefox", "--no-inline"],
}
EXPORT_REFUSED = [
    ["--format=heap"],
    ["--cost=bytes"],
    ["--format=heaptrack", "no_live.data"],
    ["--format=heaptrack", "--leaks"],
    ["--format=collapsed", "--cost=live", "no_live.data"],
    ["--format=json", "--leaks", "no_live.data"],
    ["-o", "allocprof.data"],
    ["nowhere.data"],
]
SQL = {"sql": "EXAMPLES", "sql_leaks": "LEAKS STEP BY STEP", "sql_runs": "SEVERAL RUNS"}
ABOUT_CASE_STUDY = ["flamegraph", "report_missing_times", "report_sampled", "sql_leaks", "report_examples", "report_refused",
                    "report_without_live", "query_examples", "export_pprof", "export_speedscope", "export_json", "export_dhat",
                    "export_firefox"]
QUERY = [
    ["SELECT * FROM calls"],
    ["SELECT name, value FROM ledger WHERE name IN ('events', 'lost')", "allocprof.data"],
    ["-i", "allocprof.data", "SELECT 1.5 AS real, NULL AS missing, -9223372036854775808 AS integer, 'x' AS text; -- one"],
    ["--csv", "SELECT comm, frames, '\"' AS \"a,b\", NULL AS missing FROM calls"],
    ["--json", "SELECT comm, frames, calls, 1e999 AS infinite, 0.5 AS half FROM calls"],
    ["SELECT * FROM calls WHERE calls < 0"],
    ["--csv", "SELECT * FROM meta WHERE key IS NULL"],
    ["--json", "SELECT * FROM meta WHERE key IS NULL"],
    ["PRAGMA table_info(ledger)"],
    ["--schema"],
]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
QUERY_REFUSED = [
    [],
    ["--schema", "SELECT 1"],
    ["--csv", "--json", "SELECT 1"],
    ["--timeout=never", "SELECT 1"],
    [" "],
    ["SELECT price FROM calls"],
    ["SELECT 1; SELECT 2"],
    ["DELETE FROM meta"],
    ["UPDATE meta SET value = ''"],
    ["CREATE TEMP TABLE t(a)"],
    ["ATTACH 'other' AS other"],
    ["VACUUM INTO 'other'"],
    ["PRAGMA journal_mode = WAL"],
    ["BEGIN IMMEDIATE"],
    ["SELECT load_extension('other')"],
    ["--timeout=10ms", ENDLESS + " SELECT count(*) FROM n"],
    ["SELECT zeroblob(100000000)"],
    ["SELECT 1", "nowhere.data"],
    ["SELECT 1", "text.data"],
    ["SELECT 1", "short.data"],
    ["SELECT 1", "other_views.data"],
    ["-o", "allocprof.data", "SELECT 1"],
]
# What a recording has that was made without --live.
WITHOUT_LIVE = """
DELETE FROM blocks; DELETE FROM lifetimes; DELETE FROM timeline; DELETE FROM size_histogram;
DELETE FROM lifetime_histogram; DELETE FROM meta WHERE key = 'epoch_ns';
"""
# What it has where bytes were sampled.
SAMPLED = """
INSERT INTO meta VALUES('sample_bytes', '4096');
INSERT INTO samples SELECT count, 'calls', 1 + allocations / 50, 50.0 * allocations, 4096.0 * bytes
    FROM blocks;
INSERT INTO samples SELECT count, 'allocations', samples, variance, bytes_variance FROM samples;
INSERT INTO samples SELECT count, 'live', 1 + (allocations - frees) / 50, 50.0 * (allocations - frees),
    4096.0 * (bytes - freed_bytes) FROM blocks WHERE allocations > frees;
INSERT INTO samples SELECT count, 'temporary', 1 + temporary / 50, 50.0 * temporary,
    4096.0 * temporary_bytes FROM blocks WHERE temporary;
INSERT INTO ledger SELECT 'sampled', sum(samples) FROM samples WHERE what = 'calls';
INSERT INTO ledger SELECT 'not_sampled', (SELECT value FROM ledger WHERE name = 'events') -
    (SELECT value FROM ledger WHERE name = 'sampled');
"""
# What it has where a stack went through code without an unwind table.
BY_FRAME_POINTERS = """
UPDATE stacks SET end = 'frame_pointers' WHERE end = 'no_mapping';
UPDATE ledger SET value = 3 WHERE name = 'incomplete_frame_pointers';
UPDATE ledger SET value = 0 WHERE name = 'incomplete_no_mapping';
INSERT INTO meta VALUES('no_unwind_table', '/usr/lib/libc.so.6' || char(10) || '/usr/lib/libfoo.so.1');
"""
# What it has where every stack alone asked for as much as a sum can hold.
HUGE = "UPDATE counts SET bytes = 9223372036854775807 WHERE bytes"
# What it has where the kernel's side had no room for all of these.
MISSING_TIMES = """
INSERT OR REPLACE INTO ledger VALUES('lifetimes_missing', 1200);
INSERT OR REPLACE INTO ledger VALUES('histograms_missing', 1);
"""
# What it has with --allocator mmap.
MAPPINGS = "UPDATE counts SET function = 'mmap' WHERE function = 'calloc'"
REFUSED = [
    ["--sort=size"],
    ["--sort=live-byte"],
    ["--leaks", "--freed"],
    ["--tree", "--bottom-up"],
    ["--tree", "--json"],
    ["--tree", "--sort=oldest"],
    ["--tree", "--top=1"],
    ["--bottom-up", "--top=0"],
    ["--min-share=1%"],
    ["--freed", "--sort=peak"],
    ["--min-lifetime=1s", "--sort=temporary"],
    ["--older=101s"],
    ["--older=soon"],
    ["--freed-after=101%"],
    ["--min-size=4X"],
    ["--min-share=1"],
    ["--top=ten"],
    ["--top=-1"],
    ["--through=/(/"],
    ["--stack=7"],
    ["--stack=0x1"],
    ["--suppressions=allocprof.data", "--leaks"],
    ["--suppressions=/dev/null"],
    ["--suppressions=missing", "--leaks"],
]
# Every command that reads one data file, with a result that does not depend on the file's name.
READERS = [
    ["report", "--json"],
    ["folded"],
    ["export", "--format=json"],
    ["graph", "--json"],
    ["symbolize", "--no-debuginfod", "-o", "named.data"],
    ["archive", "-o", "packed.tar.gz"],
]
# On the recording that the manual pages talk about.
CASE_STUDY = {
    "report_oldest": ["report", "--sort=oldest", "--top=1"],
    "report_peak": ["report", "--sort=peak", "--top=2"],
    "report_temporary": ["report", "--sort=temporary", "--top=1"],
    "report_tree_lines": ["report", "--tree", "--lines", "--leaks"],
    "report_by_thread": ["report", "--by=thread", "--tree", "--raw-stacks"],
    "report_by_process": ["report", "--by=process", "--top=1"],
    "report_nothing": ["report", "--through=nowhere"],
    "report_unsure": ["report", "--older=50s", "--top=1"],
    "folded_live_bytes": ["folded", "--cost=live-bytes", "--not-through=/config/"],
    "folded_freed_after": ["folded", "--cost=bytes", "--freed-after=98%", "--no-comm"],
    "folded_temporary": ["folded", "--cost=temporary"],
    "folded_peak": ["folded", "--cost=peak"],
}

# On a recording of several runs.
RUNS = {
    "runs_report": [
        ["report", "--top=0"],
        ["report", "--run=2", "--sort=oldest"],
        ["report", "--sort=peak"],
        ["report", "--freed-after=98%"],
        ["report", "--older=10s", "--tree"],
        ["report", "--run=3", "--stack=4"],
        ["report", "--json", "--stack=1"],
        ["report", "--json", "--stack=1", "--run=3"],
    ],
    "runs_folded": [
        ["folded"],
        ["folded", "--run=all", "--cost=live"],
        ["folded", "--run=3"],
        ["folded", "--cost=peak"],
        ["graph", "--json", "--run=2", "--leaks"],
        ["diff", "--alike", "allocprof.data", "allocprof.data"],
        ["diff", "--run=3", "--through=main", "allocprof.data", "allocprof.data"],
        ["flamegraph", "--base=allocprof.data", "-o", "x.svg"],
        ["html", "-o", "x.html"],
        ["html", "--run=2", "-o", "x.html"],
    ],
    "runs_refused": [
        ["report", "--run=4"],
        ["report", "--run=0"],
        ["report", "--run=last"],
        ["report", "--older=31s"],
        ["report", "--older=21s", "--run=2"],
        ["graph", "--run=all", "-o", "x.svg"],
        ["report", "--run=2", "-i", "no_live.data"],
        ["folded", "--run=1", "-i", "no_live.data"],
        ["record", "-r", "0", "true"],
        ["record", "-r", "2", "-p", "1"],
        ["record", "--warmup=1", "true"],
        ["record", "-r", "2", "--duration=1s", "true"],
    ],
}

# On what write_diff_story makes.
DIFF = {
    "diff": ["before.data", "after.data"],
    "diff_all": ["--all", "before.data", "after.data"],
    "diff_plain": ["--no-pairing", "--alike", "--min=11", "before.data", "after.data"],
    "diff_depth": ["--depth=1", "--top=1", "before.data", "after.data"],
    "diff_temporary": ["--cost=temporary", "before.data", "after.data"],
    "diff_runs": ["before.data", "before_runs.data"],
    "diff_json": ["--json", "before_runs.data", "after_runs.data"],
    "diff_folded": ["--folded", "before.data", "after.data"],
    "diff_through": ["--through=handle_request", "--by=process", "before.data", "after.data"],
    "diff_incomplete": ["--strict", "allocprof.data", "allocprof.data"],
}
# SVG, of the case study, the fixture with its names, one that has nothing, and of what write_diff_story makes.
FLAMEGRAPH = {
    "flamegraph": [
        [],
        ["--reverse", "--cost=allocations", "--colour=module", "--layout=flame", "--through=main"],
        ["--merge-recursion", "--no-inline", "--by=process,thread", "fixture.data"],
        ["--strict", "empty.data"],
        ["--title=a <title> & more", "--width=400", "empty.data"],
    ],
    "flamegraph_base": [
        ["--base=before.data", "after.data"],
        ["--base=after.data", "--by=process", "--cost=allocations", "before.data"],
    ],
    "flamegraph_refused": [
        ["-o", "flame.gif"],
        ["-o", "allocprof.data"],
        ["-o", "flame.html", "half.data"],
        ["--cost=weight"],
        ["--cost=live", "no_live.data"],
        ["--cost=peak", "--leaks"],
        ["--layout=tree"],
        ["--width=5"],
        ["--width=500", "-o", "flame.html"],
        ["--no-comm", "--by=process"],
        ["--colour=size"],
        ["--base=nowhere.data"],
        ["--base=half.data"],
        ["--base=allocprof.data", "--stack=1"],
        ["--base=allocprof.data", "--run=all"],
        ["nowhere.data"],
    ],
}
FOLDED_REFUSED = [
    ["--addresses", "--lines", "--demangle=full"],
    ["--addresses", "--demangle=none"],
    ["--no-comm", "--by=process"],
    ["--no-comm", "--by=thread,process"],
]
DIFF_REFUSED = [
    [],
    ["before.data"],
    ["before.data", "after.data", "third.data"],
    ["--json", "--folded", "before.data", "after.data"],
    ["--folded", "--top=1", "before.data", "after.data"],
    ["--cost=weight", "before.data", "after.data"],
    ["--depth=0", "before.data", "after.data"],
    ["--stack=1", "before.data", "after.data"],
    ["before.data", "nowhere.data"],
    ["-o", "before.data", "before.data", "after.data"],
    ["-o", "after.data", "before.data", "after.data"],
]


def read(path):
    return open(path, encoding="utf-8", errors="surrogateescape").read()


def run(words, cwd, stdout=subprocess.PIPE):
    # Nobody's own list of wrappers is read.
    done = subprocess.run(words, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, "XDG_CONFIG_HOME": cwd})
    text = (done.stdout or b"").decode("utf-8", "surrogateescape")
    errors = done.stderr.decode("utf-8", "surrogateescape")
    return f"{text}--- stderr\n{errors}--- exit {done.returncode}\n"


def sql_examples(man_dir, name):
    """The statements of a section, as a reader would copy them."""
    page = read(os.path.join(man_dir, "allocprof-data.5"))
    section = page.split(".Sh " + name)[1].split(".Sh ")[0]
    return re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", section, re.S | re.M)


# With a reader that is gone.
CLOSED_PIPE = [
    ["report"],
    ["report", "--json"],
    ["diff", "allocprof.data", "allocprof.data"],
    ["query", "SELECT * FROM calls"],
    ["export", "--format=json"],
    ["export"],
    ["html"],
    ["flamegraph"],
]


GRAPH_ERRORS = [
    ["-i", "no_live.data", "-o", "graph.svg"],
    ["-o", "allocprof.data.svg/x.svg"],
    ["-o", "graph.gif"],
    ["-i", "graph.svg", "-o", "graph.svg"],
    ["--top=0"],
    ["--top=17"],
    ["--top", "8x"],
    ["nowhere.data"],
    ["--leaks", "--freed"],
    ["--stack=99"],
]


def command_examples(man_dir):
    """The commands that allocprof-report(1) shows."""
    page = read(os.path.join(man_dir, "allocprof-report.1"))
    return re.findall(r"^\.Dl \$ (allocprof .*)$", page.split(".Sh EXAMPLES")[1], re.M)


def heaptrack_text(path):
    """The lines of a heaptrack file; the events between two others are one line, and their repetitions a number."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"^[-+] .*\n(?:[-+] .*\n)*", lambda events: "; ".join(events[0].splitlines()) + "\n", text, flags=re.M)

    def count(repeated):
        times = len(repeated[0].split("; ")) // len(repeated[1].split("; "))
        return f"{times} times {repeated[1]}"
    return re.sub(r"(?<![^;\n ])([-+] \w+(?:; - \w+){0,2})(?:; \1)+(?![^;\n])", count, text)


EXPORT_TEXT = {"export_pprof": lambda path: pprof.text(pprof.read(path)), "export_heaptrack": heaptrack_text}


def export(case, allocprof, cwd):
    """Of the case study, of the fixture with its names, of one without --live and of one that has nothing."""
    write_fixture = os.path.abspath(sys.argv[2])
    subprocess.run([write_fixture, os.path.join(cwd, "fixture.data")], check=True)
    subprocess.run([write_fixture, os.path.join(cwd, "empty.data"), "empty"], check=True)
    text = ""
    names = ["allocprof.data", "fixture.data", "no_live.data", "empty.data"]
    # It has a line for each block, of which the case study has many, and needs --live.
    for name in ["fixture.data", "empty.data"] if case == "export_heaptrack" else names:
        done = run([allocprof, "export", *EXPORT[case], "-o", "out", name], cwd)
        plain = subprocess.run([allocprof, "export", *EXPORT[case], name], cwd=cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL).stdout
        with open(os.path.join(cwd, "out"), "rb") as file:
            if file.read() != plain:
                sys.exit("-o FILE gave something else than standard output")
        path = os.path.join(cwd, "out")
        text += f"$ {name}\n" + EXPORT_TEXT.get(case, read)(path) + done
    return text


def query_refused(allocprof, cwd):
    """None changes the file or makes another one."""
    with open(os.path.join(cwd, "allocprof.data"), "rb") as file:
        data = file.read()
    with open(os.path.join(cwd, "text.data"), "w") as file:
        file.write("SELECT 1")
    with open(os.path.join(cwd, "short.data"), "wb") as file:
        file.write(data[:-1])
    shutil.copy(os.path.join(cwd, "allocprof.data"), os.path.join(cwd, "other_views.data"))
    with contextlib.closing(sqlite3.connect(os.path.join(cwd, "other_views.data"))) as other, other:
        other.execute("DROP VIEW stack_texts")
        other.execute(f"CREATE VIEW stack_texts AS {ENDLESS} SELECT i AS stack, '' AS text FROM n")
    files = sorted(os.listdir(cwd))
    text = "".join(f"$ {' '.join(words)}\n" + run([allocprof, "query", *words], cwd) for words in QUERY_REFUSED)
    with open(os.path.join(cwd, "allocprof.data"), "rb") as file:
        if file.read() != data or sorted(os.listdir(cwd)) != files:
            sys.exit("a query changed the data file or made another file")
    return text


def query_examples(allocprof, man_dir, cwd):
    """Every statement of allocprof-data(5) gives what sqlite3 gives; this prints how many rows."""
    text = ""
    for section in SQL.values():
        for statement in sql_examples(man_dir, section):
            printed = subprocess.run([allocprof, "query", "--csv", statement], cwd=cwd, check=True, text=True,
                                     stdout=subprocess.PIPE).stdout
            rows = list(csv.reader(printed.splitlines()))
            with contextlib.closing(sqlite3.connect(os.path.join(cwd, "allocprof.data"))) as database:
                cursor = database.execute(statement)
                expected = [[name for name, *_ in cursor.description]] + \
                    [["" if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)
                      for value in row] for row in cursor]
            if rows != expected:
                sys.exit(f"{statement}: expected {expected}, got {rows}")
            text += f"{len(rows) - 1} rows: {statement}"
    return text


def output_of(case, allocprof, man_dir, cwd):
    if case in FOLDED or case in REPORT:
        words = ["folded", *FOLDED[case]] if case in FOLDED else ["report", *REPORT[case]]
        text = run([allocprof, *words], cwd)
        to_file = run([allocprof, words[0], "-o", "out", *words[1:]], cwd)
        if read(os.path.join(cwd, "out")) + to_file != text:
            sys.exit("-o FILE gave something else than standard output")
        return text
    if case in EXPORT:
        return export(case, allocprof, cwd)
    if case == "export_refused":
        return "".join(run([allocprof, "export", *words], cwd) for words in EXPORT_REFUSED)
    if case in DIFF:
        text = run([allocprof, "diff", *DIFF[case]], cwd)
        to_file = run([allocprof, "diff", "-o", "out", *DIFF[case]], cwd)
        if read(os.path.join(cwd, "out")) + to_file != text:
            sys.exit("-o FILE gave something else than standard output")
        return text
    if case in FLAMEGRAPH:
        write_fixture = os.path.abspath(sys.argv[2])
        subprocess.run([write_fixture, os.path.join(cwd, "fixture.data")], check=True)
        subprocess.run([write_fixture, os.path.join(cwd, "empty.data"), "empty"], check=True)
        with open(os.path.join(cwd, "allocprof.data"), "rb") as whole, \
                open(os.path.join(cwd, "half.data"), "wb") as half:
            half.write(whole.read()[:20000])
        return "".join(f"$ {' '.join(words)}\n" + run([allocprof, "flamegraph", *words], cwd)
                       for words in FLAMEGRAPH[case])
    if case == "folded_refused":
        return "".join(f"$ {' '.join(words)}\n" + run([allocprof, "folded", *words], cwd) for words in FOLDED_REFUSED)
    if case == "diff_refused":
        return "".join(run([allocprof, "diff", *words], cwd) for words in DIFF_REFUSED)
    if case == "graph":
        text = run([allocprof, "graph", "--json", "--strict"], cwd)
        # The bytes of code points that are no characters.
        with contextlib.closing(sqlite3.connect(os.path.join(cwd, "allocprof.data"))) as db, db:
            db.execute("UPDATE meta SET value = ? WHERE key = 'command'",
                       ["a\ufdd0\ufdef\ufffe\uffff\U0001fffe\U0010ffff|\ufdcf\ufdf0\ufffd\U0001fffd"])
            data_digest.renew(db)
        text += run([allocprof, "graph", "-o", "x.svg"], cwd) + run([allocprof, "graph", "-o", "x.png"], cwd)
        return text
    if case == "graph_errors":
        return "".join(f"$ graph {' '.join(words)}\n" + run([allocprof, "graph", *words], cwd)
                       for words in GRAPH_ERRORS)
    if case == "query":
        return "".join(f"$ {' '.join(words)}\n" + run([allocprof, "query", *words], cwd) for words in QUERY)
    if case == "query_refused":
        return query_refused(allocprof, cwd)
    if case == "query_examples":
        return query_examples(allocprof, man_dir, cwd)
    if case in CASE_STUDY:
        return run([allocprof, *CASE_STUDY[case]], cwd)
    if case in SQL:
        return "".join(
            statement + run(["sqlite3", "-readonly", "allocprof.data", statement], cwd)
            for statement in sql_examples(man_dir, SQL[case]))
    if case in RUNS:
        text = "".join(f"$ {' '.join(words)}\n" + run([allocprof, *words], cwd)
                       for words in RUNS[case])
        # That it is the right run is enough.
        return re.sub(r'  "times_ns": \[.*?^}\n', "...\n", text, flags=re.S | re.M)
    if case == "report_examples":
        with open(os.path.join(cwd, "known.txt"), "w") as file:
            file.write("# known\nleak:^read_config$\n")
        return "".join(
            "$ " + command + "\n" + run([allocprof, *command.split()[1:]], cwd)
            for command in command_examples(man_dir))
    if case == "help":
        return run([allocprof, "folded", "--help"], cwd) + run([allocprof, "-Vx"], cwd) + \
            run([allocprof, "--versions"], cwd) + run([allocprof, "--xyzzy"], cwd) + run([allocprof, "folded", "-x"], cwd)
    if case == "report_without_live":
        data_digest.edit(os.path.join(cwd, "allocprof.data"), WITHOUT_LIVE)
        return "".join(run([allocprof, *words], cwd) for words in (
            ["report", "--not-through=parse_request"], ["report", "--tree"], ["report", "--leaks"],
            ["report", "--sort=oldest"], ["folded", "--cost=live"], ["folded", "--cost=bytes"],
            ["report", "--json", "--top=1", "--function=calloc"]))
    if case == "report_sampled":
        shutil.copy(os.path.join(cwd, "allocprof.data"), os.path.join(cwd, "whole.data"))
        data_digest.edit(os.path.join(cwd, "allocprof.data"), SAMPLED)
        return "".join(run([allocprof, *words], cwd) for words in (
            ["report", "--top=2"], ["report", "--leaks", "--top=1"],
            ["report", "--older=50s", "--top=1"], ["report", "--sort=peak", "--top=1"],
            ["report", "--freed", "--sort=allocations", "--top=1"], ["report", "--tree", "--strict"],
            ["report", "--json", "--top=1", "--leaks"], ["folded", "--strict", "--cost=temporary"],
            ["diff", "--cost=live-bytes", "whole.data", "allocprof.data"],
            ["diff", "--strict", "--through=read_config", "whole.data", "allocprof.data"]))
    if case == "report_frame_pointers":
        data_digest.edit(os.path.join(cwd, "allocprof.data"), BY_FRAME_POINTERS)
        text = run([allocprof, "report", "--function=realloc", "--strict"], cwd) + \
            run([allocprof, "report", "--function=realloc", "--tree"], cwd) + \
            run([allocprof, "folded", "--function=realloc"], cwd) + \
            run([allocprof, "report", "--function=realloc", "--json", "--by=process"], cwd)
        data_digest.edit(os.path.join(cwd, "allocprof.data"), "DELETE FROM meta WHERE key = 'no_unwind_table'")
        return text + run([allocprof, "report", "--function=realloc"], cwd)
    if case == "report_huge":
        data_digest.edit(os.path.join(cwd, "allocprof.data"), WITHOUT_LIVE + HUGE)
        return "".join(f"$ {' '.join(words)}\n" + run([allocprof, *words], cwd) for words in (
            ["report", "--top=1"], ["report", "--top=3"], ["report", "--tree"], ["report", "--bottom-up"],
            ["query", "SELECT sum(bytes) FROM calls"], ["query", "SELECT total(bytes) FROM calls"]))
    if case == "report_missing_times":
        data_digest.edit(os.path.join(cwd, "allocprof.data"), MISSING_TIMES)
        return "".join(f"$ {' '.join(words)}\n" + run([allocprof, *words], cwd) for words in (
            ["report", "--top=1", "--strict"], ["report", "--top=1", "--strict", "--histogram"],
            ["report", "--top=1", "--strict", "--min-lifetime=1s"], ["report", "--top=1", "--leaks"],
            ["folded", "--strict"], ["folded", "--strict", "--freed-after=98%"],
            ["html", "--strict", "-o", "x.html"], ["graph", "--strict", "-o", "x.svg"]))
    if case == "report_mappings":
        data_digest.edit(os.path.join(cwd, "allocprof.data"), WITHOUT_LIVE + MAPPINGS)
        return "".join(f"$ {' '.join(words)}\n" + run([allocprof, *words], cwd) for words in (
            ["report", "--top=1"], ["report", "--top=1", "--function=malloc"]))
    if case == "report_refused":
        return "".join(run([allocprof, "report", *words], cwd) for words in REFUSED)
    if case == "data_file_named":
        os.rename(os.path.join(cwd, "allocprof.data"), os.path.join(cwd, "a.data"))
        text = ""
        for words in READERS:
            command = [allocprof, *words]
            ways = [["-i", "a.data"], ["a.data"], ["--", "a.data"], ["-i", "nowhere", "-i", "a.data"]]
            first, *others = [run(command + way, cwd) for way in ways] + \
                [run([allocprof, words[0], "a.data", *words[1:]], cwd)]
            if not first.endswith("--- exit 0\n"):
                sys.exit(f"{words} -i a.data: expected exit status 0, got {first[-300:]}")
            for other in others:
                if other != first:
                    sys.exit(f"{words}: expected the same with a.data as with -i a.data, got "
                             f"{other[-300:]}")
            text += "".join(f"$ {' '.join(words + way)}\n" + run(command + way, cwd) for way in (
                [], ["nowhere.data"], ["a.data", "no_live.data"], ["-i", "a.data", "no_live.data"],
                ["a.data", "-i", "no_live.data"], ["-o", "a.data", "a.data"]))
        return text
    if case == "stdout":
        reader, closed = os.pipe()
        os.close(reader)
        with open("/dev/full", "w") as full, os.fdopen(closed, "w") as pipe:
            return run([allocprof, "folded"], cwd, full) + run([allocprof, "folded"], cwd, pipe) + \
                run([allocprof, "--help"], cwd, full) + \
                "".join(run([allocprof, *words], cwd, pipe) for words in CLOSED_PIPE) + \
                run([allocprof, "folded", "-o", "allocprof.data"], cwd)
    sys.exit(f"no such case: {case}")


def main():
    allocprof, write_fixture, man_dir = map(os.path.abspath, sys.argv[1:4])
    case = sys.argv[4]
    expected_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), case + ".expected")
    with tempfile.TemporaryDirectory() as cwd:
        kind = ["case-study"] if case in CASE_STUDY or case in ABOUT_CASE_STUDY else \
            ["runs"] if case in RUNS or case == "sql_runs" else []
        subprocess.run([write_fixture, os.path.join(cwd, "allocprof.data"), *kind], check=True)
        if case.startswith("diff") or case == "flamegraph_base":
            subprocess.run([os.path.join(os.path.dirname(write_fixture), "write_diff_story"), cwd],
                           check=True)
        subprocess.run([write_fixture, os.path.join(cwd, "no_live.data"), "no_live"], check=True)
        shutil.copy(os.path.join(cwd, "allocprof.data"), os.path.join(cwd, "graph.svg"))
        if (case in SQL or case in ("report_without_live", "report_sampled", "report_frame_pointers", "report_huge", "report_mappings",
                                  "report_missing_times")) and not shutil.which("sqlite3"):
            print("sqlite3 is not installed")
            sys.exit(77)
        got = output_of(case, allocprof, man_dir, cwd)
    if "--update" in sys.argv:
        with open(expected_path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(got)
    expected = read(expected_path)
    if got != expected:
        sys.stdout.reconfigure(errors="backslashreplace")
        sys.stdout.writelines(difflib.unified_diff(
            expected.splitlines(True), got.splitlines(True), "expected", "got"))
        print("run it alone:", " ".join(sys.argv), "(--update accepts what came)")
        sys.exit(1)


main()
