# SPDX-License-Identifier: GPL-3.0-or-later
"""What reads the files of targets while they are recorded has no privileges. If it ends or hangs, that costs the file
that it was at, and is said."""

import os
import pathlib
import signal
import sqlite3
import subprocess

import pytest

from support import Obedient, wait_until, wait_until_counting

FIRST_USER = 0x70000000

# For each line that names a library: loads it, and has it allocate.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	char path[4096];

	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(path, sizeof(path), stdin)) {
		void *library, *(*get)(void);

		path[strcspn(path, "\n")] = '\0';
		library = dlopen(path, RTLD_NOW);
		get = library ? (void *(*)(void))dlsym(library, "get") : NULL;
		if (!get || !get())
			return 1;
		puts("done");
	}
	return 0;
}
"""

LIBRARY = r"""
#include <stdlib.h>

void *get(void)
{
	void *memory = malloc(SIZE);

	__asm__ volatile("" : : "r"(memory));
	return memory;
}
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "library.c").write_text(LIBRARY)
    for i in range(2):
        subprocess.run(["gcc", "-O1", f"-DSIZE={1000 + i}", "-shared", "-fPIC", "-fomit-frame-pointer",
                        "-o", f"lib{i}.so", "library.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-O1", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    return tmp_path / "program"


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def parsers(recorder):
    """Those of the recording, which wait for files to read: one for tables, one for places of probes."""
    found = [child for child in children(recorder.pid)
             if pathlib.Path(f"/proc/{child}/comm").read_text() == "allocprof-parse\n"]
    return found if len(found) == 2 and all(is_waiting(pid) for pid in found) else None


def is_waiting(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.fixture
def recording(runner, allocprof, program, tmp_path):
    """A program that is recorded, the recording, and its data file."""
    obedient = Obedient(runner, [program])
    data = tmp_path / "data"
    recorder = runner.start([allocprof, "record", "--no-cache", "--no-symbols", "-o", data, "-p", obedient.pid],
                            stderr=subprocess.PIPE)
    wait_until_counting(allocprof, recorder)
    return obedient, recorder, data


def end(recording):
    """The data file, what was said, and the exit status."""
    obedient, recorder, data = recording
    obedient.exit()
    _, told = recorder.communicate()
    return sqlite3.connect(data), told.decode(), recorder.returncode


def ends(database, size):
    """How the stacks of calls end that asked for @size bytes each."""
    return {end for end, in database.execute(
        "SELECT s.end FROM counts c JOIN stacks s ON s.id = c.stack WHERE c.bytes = c.calls * ?", (size,))}


def test_confinement(recording):
    found = wait_until(lambda: parsers(recording[1]), "both wait")
    for pid in found:
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        owner = os.geteuid() or FIRST_USER + pid
        assert {int(number) for number in status["Uid"].split()} == {owner}
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {16 * "0"}
        assert os.geteuid() or status["CapBnd"] == 16 * "0"
        files = {int(path.name): os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        assert [files.pop(fd) for fd in range(3)] == 3 * ["/dev/null"]
        assert list(files) == [3] and files[3].startswith("socket:")
        # Neither maps of programs nor memory of processes.
        assert not [line for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
                    if line.split()[1][3] == "s"]
    obedient = recording[0]
    obedient.ask(str(pathlib.Path(obedient.process.args[0]).parent / "lib0.so"))
    database, told, status = end(recording)
    assert status == 0 and "safely" not in told
    assert ends(database, 1000) == {"complete"}


def fail(recording, signal_number, why):
    """The parsers get a signal, and then are asked for a library; the next one is read."""
    obedient, recorder, data = recording
    libraries = [str(data.parent / f"lib{i}.so") for i in range(2)]
    for pid in wait_until(lambda: parsers(recorder), "both wait"):
        os.kill(pid, signal_number)
    obedient.ask(libraries[0])
    obedient.ask(libraries[1])
    database, told, status = end(recording)
    assert f"not probed: {libraries[0]} could not be read safely: the process that read it {why}" in " ".join(told.split())
    assert f"{libraries[1]} could not" not in told
    (missing,), = database.execute("SELECT value FROM meta WHERE key = 'no_unwind_table'")
    assert missing.splitlines() == [libraries[0]]
    # Without a table the stack is sent, and libdw goes on.
    assert ends(database, 1000) == ends(database, 1001) == {"complete"}
    return database, status


def test_crash(recording):
    fail(recording, signal.SIGKILL, "was ended by signal 9")


@pytest.mark.slow
def test_hang(recording):
    fail(recording, signal.SIGSTOP, "took longer than 20 s")


# libdw makes room for 134,217,712 registers, and for another copy of them with each of what follows: 10 GB from a file of
# 16 kB. The CFA is one that the programs' tables cannot express, so each stack is sent.
BOMB = """
.globl main
main:
 .cfi_startproc
 push %rbx
 .cfi_adjust_cfa_offset 8
 .cfi_escape 0x08,0xf0,0xff,0xff,0x3f
 .cfi_escape 0x0a,0x0a,0x0a,0x0a,0x0a,0x0a,0x0a,0x0a
 .cfi_escape 0x0c,0x03,0x10
 mov %rsp,%rbx
 mov $4321,%edi
 call malloc@plt
 mov $4321,%edi
 call malloc@plt
 xor %eax,%eax
 pop %rbx
 ret
 .cfi_endproc
.section .note.GNU-stack,"",@progbits
"""
MOST_KIB = 300 << 10


def test_much_memory(runner, allocprof, tmp_path):
    """Stack dumps for which libdw would need 10 GB each cost little, and are unwound."""
    (tmp_path / "bomb.S").write_text(BOMB)
    subprocess.run(["gcc", "-o", tmp_path / "bomb", tmp_path / "bomb.S"], check=True)
    data = tmp_path / "data"
    recorder = runner.start([allocprof, "record", "--no-cache", "--no-symbols", "-o", data, "--", tmp_path / "bomb"])
    _, status, usage = os.wait4(recorder.pid, 0)
    assert status == 0
    # Its children's, too.
    assert usage.ru_maxrss < MOST_KIB
    database = sqlite3.connect(data)
    found = ends(database, 4321)
    assert set(found) == {"complete"}
    assert database.execute("SELECT sum(calls) FROM counts WHERE bytes = calls * 4321").fetchone() == (2,)
