# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that contains its allocator, and is written to while it is probed: breakpoints at its old functions would kill it."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess

import pytest

import support

FIRST = """
#include <stdlib.h>
int main(void) { for (int i = 0; i < 1000; i++) free(malloc(10)); return 0; }
"""

# All of its code is elsewhere.
SECOND = """
#include <stdio.h>
#include <stdlib.h>
static int table[1 << 16] = { 1 };
__attribute__((noinline)) int big(int n) { %s return n; }
int main(void) { puts("second"); free(malloc(big(table[0]))); return 0; }
""" % "".join(f"if (n == {i}) n += table[n + {i % 7}] + {i};" for i in range(2, 3000))


@pytest.fixture
def programs(tmp_path):
    for name, text in ("first", FIRST), ("second", SECOND):
        subprocess.run(["gcc", "-O0", "-static", "-x", "c", "-o", tmp_path / name, "-"], input=text, text=True, check=True)
    return tmp_path


def links(pid):
    """How many BPF links a process holds open: probes and others."""
    n = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        # allocprof may have closed it by now.
        with contextlib.suppress(FileNotFoundError):
            n += os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:bpf_link"
    return n


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_program_that_is_written_to(runner, allocprof, programs, options):
    program, output = programs / "program", programs / "out"
    shutil.copy(programs / "first", program)

    def start(*expected):
        recorder = runner.start([allocprof, "stat", *options, "--json", *expected, "-o", output, "--", "sh"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def say(text):
            recorder.stdin.write(f"{text}; echo status $?\n".encode())
            recorder.stdin.flush()
            said = b""
            while not said or b"status" not in said.splitlines()[-1]:
                said += recorder.stdout.readline()
            return said
        return recorder, say

    # As many links are left when the last of the program's probes is removed.
    recorder, say = start()
    assert say("true") == b"status 0\n"
    without = links(recorder.pid)
    recorder.stdin.close()
    assert recorder.wait(support.TIMEOUT_SECONDS) == 0

    recorder, say = start("--expect", program)
    assert say(program) == b"status 0\n"
    assert links(recorder.pid) > without
    assert say(f"cat {shlex.quote(str(programs / 'second'))} > {shlex.quote(str(program))}") == b"status 0\n"
    support.wait_until(lambda: links(recorder.pid) == without, "its probes have been removed")
    assert say(program) == b"second\nstatus 0\n"
    recorder.stdin.close()
    assert recorder.wait(support.TIMEOUT_SECONDS) == 0
    assert b"was written to while it was probed" in b" ".join(recorder.stderr.read().split())
    report = json.loads(output.read_text())
    assert not report["complete"] and report["functions"]["malloc"]["calls"] >= 1000
