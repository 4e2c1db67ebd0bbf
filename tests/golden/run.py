#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares what allocprof prints for a fixed recording with the files beside this one.

run.py ALLOCPROF WRITE_FIXTURE MAN_DIR CASE [--update]
"""
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

FOLDED = {
    "folded": [],
    "folded_bytes": ["--cost=bytes"],
    "folded_addresses": ["--addresses"],
    "folded_no_comm": ["--no-comm"],
    "folded_by_thread": ["--by=process,thread", "--raw-stacks", "--demangle=none"],
    "folded_all": ["--cost", "bytes", "--addresses", "--no-comm", "--strict"],
}


def read(path):
    return open(path, encoding="utf-8", errors="surrogateescape").read()


def run(words, cwd, stdout=subprocess.PIPE):
    # SIGPIPE stays ignored, as Python has it, so that a closed pipe is an error to be dealt with.
    # Nobody's own list of wrappers is read.
    done = subprocess.run(words, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE,
                          restore_signals=False, env={**os.environ, "XDG_CONFIG_HOME": cwd})
    text = (done.stdout or b"").decode("utf-8", "surrogateescape")
    errors = done.stderr.decode("utf-8", "surrogateescape")
    return f"{text}--- stderr\n{errors}--- exit {done.returncode}\n"


def sql_examples(man_dir):
    """The statements of the EXAMPLES section, as a reader would copy them."""
    page = read(os.path.join(man_dir, "allocprof-data.5"))
    section = page.split(".Sh EXAMPLES")[1].split(".Sh ")[0]
    return re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", section, re.S | re.M)


def output_of(case, allocprof, man_dir, cwd):
    if case in FOLDED:
        text = run([allocprof, "folded", *FOLDED[case]], cwd)
        to_file = run([allocprof, "folded", "-o", "out", *FOLDED[case]], cwd)
        if read(os.path.join(cwd, "out")) + to_file != text:
            sys.exit("-o FILE gave something else than standard output")
        return text
    if case == "sql":
        return "".join(
            statement + run(["sqlite3", "-readonly", "allocprof.data", statement], cwd)
            for statement in sql_examples(man_dir))
    if case == "help":
        return run([allocprof, "folded", "--help"], cwd)
    if case == "stdout":
        reader, closed = os.pipe()
        os.close(reader)
        with open("/dev/full", "w") as full, os.fdopen(closed, "w") as pipe:
            return run([allocprof, "folded"], cwd, full) + run([allocprof, "folded"], cwd, pipe) + \
                run([allocprof, "--help"], cwd, full) + \
                run([allocprof, "folded", "-o", "allocprof.data"], cwd)
    sys.exit(f"no such case: {case}")


def main():
    allocprof, write_fixture, man_dir = map(os.path.abspath, sys.argv[1:4])
    case = sys.argv[4]
    expected_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), case + ".expected")
    with tempfile.TemporaryDirectory() as cwd:
        subprocess.run([write_fixture, os.path.join(cwd, "allocprof.data")], check=True)
        if case == "sql" and not shutil.which("sqlite3"):
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
