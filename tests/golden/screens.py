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


def main():
    allocprof, write_fixture = map(os.path.abspath, sys.argv[1:3])
    if not shutil.which("sqlite3"):
        print("sqlite3 is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as cwd:
        subprocess.run([write_fixture, os.path.join(cwd, "allocprof.data"), "case-study"], check=True)
        subprocess.run(["sqlite3", os.path.join(cwd, "allocprof.data"), CPP], check=True)
        for name, check in list(globals().items()):
            if not name.startswith("check_"):
                continue
            try:
                check(allocprof, cwd)
            except Failure as failure:
                print(f"{name}: {failure}\nrun it alone: {' '.join(sys.argv)}")
                sys.exit(1)


main()
