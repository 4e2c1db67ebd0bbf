#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What allocprof prints to a terminal, a pseudo-terminal of 80 columns.

screens.py ALLOCPROF WRITE_FIXTURE
"""
import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import data_digest  # noqa: E402

# A session is kept in a vector: four of the library's functions, two of them wrappers, stand between the
# user's code and the allocator.
CPP = """
UPDATE functions SET name = 'app::session_store::remember' WHERE name = 'leak_session';
UPDATE functions SET name = 'app::sessions::accept_connection' WHERE name = 'serve';
INSERT INTO functions SELECT 12, 'r', n, n FROM (SELECT
    'std::vector<app::sessions::session>::_M_realloc_insert<app::sessions::session const&>' n);
INSERT INTO functions SELECT 13, 'p', n, n FROM (SELECT
    'std::vector<app::sessions::session>::push_back' n);
INSERT INTO functions SELECT 14, 'a', n, n FROM (SELECT 'std::allocator<app::session>::allocate' n);
INSERT INTO functions SELECT 15, 'o', n, n FROM (SELECT 'operator new' n);
UPDATE lines SET depth = 4 WHERE frame = 5;
INSERT INTO lines SELECT 5, n, 15 - n, 0, 0, 1 FROM (SELECT 2 n UNION SELECT 3);
INSERT INTO lines VALUES(5, 0, 15, 0, 0, 1), (5, 1, 14, 0, 0, 1);
UPDATE lines SET function = 12 WHERE frame = 5 AND depth = 2;
UPDATE lines SET function = 13 WHERE frame = 5 AND depth = 3;
"""
LARGE = "UPDATE meta SET value = hex(zeroblob(200000)) WHERE key = 'command'"
CLEAN = {name: value for name, value in os.environ.items()
         if name not in ("NO_COLOR", "COLUMNS", "PAGER", "LESS", "LV", "MORE")}


class Failure(Exception):
    pass


def on_terminal(words, cwd, columns=80, **environment):
    """What a program writes to its terminal, which is its standard output and error, and its status."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    program = subprocess.Popen(
        words, cwd=cwd, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        env={**CLEAN, "TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": cwd, **environment})
    os.close(terminal)
    output = b""
    killer = threading.Timer(60, program.kill)
    killer.start()
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:
            break
        if not more:
            break
        output += more
    os.close(master)
    status = program.wait()
    killer.cancel()
    return output.decode().replace("\r\n", "\n"), status


def expect(what, expected, got):
    if expected != got:
        raise Failure(f"{what}:\nexpected {expected!r}\n     got {got!r}")


def lines_with(text, word):
    return [line for line in text.splitlines() if word in line]


def check_users_code(allocprof, cwd):
    """The function that asked, what it called, and the allocator: these are what a line keeps."""
    plain = {"NO_COLOR": "1", "PAGER": "cat"}
    text, status = on_terminal([allocprof, "report", "--tree", "--leaks"], cwd, **plain)
    expect("the exit status of report --tree", 0, status)
    expect("report --tree at 80 columns",
           ["91.9 %   312 KiB   5,000  ├─ ... > app::session_store::remember > ... > malloc"],
           lines_with(text, "session_store"))
    text, _ = on_terminal([allocprof, "report", "--tree", "--leaks"], cwd, 160, **plain)
    expect("report --tree at 160 columns",
           ["91.9 %   312 KiB   5,000  ├─ app::sessions::accept_connection > app::session_store::remember > "
            "std::vector<app::sessions::session>::push_back > malloc"],
           [line.replace(" (inlined)", "") for line in lines_with(text, "session_store")])
    for raw in [[], ["--raw-stacks"]]:
        for columns in (44, 60, 80, 100, 140):
            text, _ = on_terminal([allocprof, "report", "--tree", "--leaks", *raw], cwd, columns,
                                  **plain)
            tree = text[text.index("> called function"):].splitlines()[1:]
            for line in tree:
                if len(line) > columns:
                    raise Failure(f"{len(line)} columns on a terminal of {columns}: {line!r}")
            if columns >= 80 and not lines_with("\n".join(tree), "session_store"):
                raise Failure(f"the user's function is not in the tree: {tree}")


def check_templates(allocprof, cwd):
    """Arguments of templates are left out before frames are."""
    plain = {"NO_COLOR": "1", "PAGER": "cat"}
    wide, _ = on_terminal([allocprof, "report", "--bottom-up", "--leaks"], cwd, 400, **plain)
    narrow, _ = on_terminal([allocprof, "report", "--bottom-up", "--leaks"], cwd, 140, **plain)
    found = lines_with(wide, "session_store")
    if not found or "std::vector<app::sessions::session>::push_back" not in found[0]:
        raise Failure(f"expected whole names where there is room, got {found}")
    found = lines_with(narrow, "session_store")
    if not found or "std::vector<...>::push_back > app::session_store::remember > app::sessions::accept_connection" not in found[0]:
        raise Failure(f"expected the arguments of the vector to be left out, and nothing else, got {found}")


def check_diff(allocprof, cwd):
    """On a terminal bytes have units, as in a report, and no line is wrapped within a name."""
    plain = {"NO_COLOR": "1", "PAGER": "cat"}
    words = [allocprof, "diff", "--cost=bytes", "lossy.data", "allocprof.data"]
    for columns in (60, 80, 100):
        text, _ = on_terminal(words, cwd, columns, **plain)
        frames = [line for line in text.splitlines() if line.startswith("        ")]
        longest = max(frames, key=len)
        if len(frames) < 10 or len(longest) > columns:
            raise Failure(f"a frame of {len(longest)} columns on a terminal of {columns}: {longest!r}")
    if not lines_with(text, " MiB -> ") + lines_with(text, " -> 4.77 MiB") + lines_with(text, "MiB  new"):
        raise Failure(f"expected units, got {text}")
    done = subprocess.run(words, cwd=cwd, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    if "MiB" in done.stdout[done.stdout.index("\nbytes\n"):]:
        raise Failure(f"expected whole numbers in a file, got {done.stdout}")


def check_pager(allocprof, cwd):
    """What goes to the terminal is read in $PAGER, and allocprof's status is its own."""
    prefix = {"PAGER": "sed 's/^/paged: /'"}
    for words in (["report"], ["report", "--json"], ["folded"], ["graph", "--json"],
                  ["diff", "lossy.data", "lossy.data"]):
        words = [allocprof, *words]
        text, status = on_terminal(words, cwd, **prefix)
        expect(f"the status of {words[1]}", 0, status)
        if not text.startswith("paged: "):
            raise Failure(f"{words}: expected all of it in the pager, got {text[:200]!r}")
        for without, environment in (
                (["--no-pager"], prefix), ([], {"PAGER": "cat"}), ([], {"PAGER": ""}),
                ([], {**prefix, "TERM": "dumb"})):
            plain, status = on_terminal(words + without, cwd, **environment)
            expect(f"the status of {words[1]}", 0, status)
            if "paged: " in plain or len(plain) < 40:
                raise Failure(f"{words} {without} {environment}: expected no pager, got {plain[:200]!r}")
        on_terminal([*words, "-o", "out"], cwd, **prefix)
        with open(os.path.join(cwd, "out"), encoding="utf-8") as file:
            if "paged: " in file.read():
                raise Failure(f"{words} -o out: a file went through the pager")
        done = subprocess.run(words, cwd=cwd, env={**CLEAN, **prefix, "TERM": "xterm"},
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        if b"paged: " in done.stdout:
            raise Failure(f"{words}: a pipe went through the pager")
    strict = [allocprof, "report", "lossy.data", "--strict"]
    text, status = on_terminal(strict, cwd, **prefix)
    expect("the status of report --strict", 1, status)
    last = text.splitlines()[-1]
    if not last.startswith("allocprof: "):
        raise Failure(f"expected what is lacking behind what was read, got {last!r}")
    # 400 kB do not fit a pipe: the pager leaves before all is written.
    for pager in ("head -n 1", "true", "exec 0<&-; exit 3"):
        text, status = on_terminal([allocprof, "report", "--json", "large.data", "--strict"], cwd,
                                   PAGER=pager)
        expect(f"the status of report --strict in {pager!r}", 1, status)
        expect(f"lines of report in {pager!r}", ["{"] if "head" in pager else [],
               [line for line in text.splitlines() if not line.startswith("allocprof: ")])
    text, status = on_terminal([allocprof, "folded"], cwd, PAGER="no-such-pager -x")
    expect("the status of folded without a pager", 0, status)
    lines = text.splitlines()
    expect("folded without a pager", "allocprof: cannot run the pager 'no-such-pager -x' that PAGER names; "
           "printing without", lines[0])
    if not lines_with(text, ";malloc "):
        raise Failure(f"expected folded stacks without a pager, got {lines}")
    show = "printf '%s/' \"$LESS\" \"$LV\"; cat >/dev/null"
    expect("what the pager is told", "FRX/-c/", on_terminal([allocprof, "folded"], cwd, PAGER=show)[0])
    expect("what the pager is told", "S/-c/",
           on_terminal([allocprof, "folded"], cwd, PAGER=show, LESS="S")[0])
    if shutil.which("less"):
        text, status = on_terminal([allocprof, "folded"], cwd)
        expect("the status of folded in less", 0, status)
        if not lines_with(text, ";malloc "):
            raise Failure(f"expected less to print one screen and end, got {text!r}")


def check_colours(allocprof, cwd):
    """Colours are for terminals that have them and readers who want them, also in a pager."""
    for words in (["report"], ["report", "--tree"], ["diff", "allocprof.data", "lossy.data"]):
        words = [allocprof, *words]
        for pager in ("cat", "tr a a"):
            coloured, _ = on_terminal(words, cwd, PAGER=pager)
            if "\x1b[1m" not in coloured:
                raise Failure(f"{words} in {pager!r}: expected colours, got {coloured[:200]!r}")
            for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                text, _ = on_terminal(words, cwd, **{"PAGER": pager, **environment})
                if "\x1b" in text:
                    raise Failure(f"{words} with {environment}: expected no colours, got {text[:200]!r}")
            if "\x1b[1m" not in on_terminal(words, cwd, PAGER=pager, NO_COLOR="")[0]:
                raise Failure(f"{words}: an empty NO_COLOR says nothing")


def check_doctor(allocprof, cwd):
    """What is wrong with the program comes last, on a terminal and in a file."""
    error = "allocprof: cannot run '/nonexist': there is no such file; check the spelling, or give its path"
    text, status = on_terminal([allocprof, "doctor", "/nonexist"], cwd)
    expect("the status of doctor /nonexist", 2, status)
    expect("the last line of doctor /nonexist", error, text.splitlines()[-1])
    done = subprocess.run([allocprof, "doctor", "/nonexist"], env=CLEAN, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    expect("the status of doctor /nonexist", 2, done.returncode)
    expect("the last line of doctor /nonexist in a file", error, done.stdout.splitlines()[-1])


def main():
    allocprof, write_fixture = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as cwd:
        subprocess.run([write_fixture, os.path.join(cwd, "allocprof.data"), "case-study"], check=True)
        data_digest.edit(os.path.join(cwd, "allocprof.data"), CPP)
        for name in ("lossy.data", "large.data"):
            subprocess.run([write_fixture, os.path.join(cwd, name)], check=True)
        data_digest.edit(os.path.join(cwd, "large.data"), LARGE)
        for name, check in list(globals().items()):
            if not name.startswith("check_"):
                continue
            try:
                check(allocprof, cwd)
            except Failure as failure:
                print(f"{name}: {failure}\nrun it alone: {' '.join(sys.argv)}")
                sys.exit(1)


main()
