# SPDX-License-Identifier: GPL-3.0-or-later
"""A call that passes through another library's function of the same name is one call: the preloaded library's, whose
process is attached to by uprobes, and those of libraries that check or log what they hand on."""

import re
import signal
import subprocess

import pytest

from support import Recording, command_of, libc_path, read_report, symbol_offsets, unavailable, wait_until, wait_until_counting

# For each character that it reads, 1,000 blocks of 1 to 1,000 bytes, which it frees; without stdio.
PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	char c;

	write(1, "begun\n", 6);
	while (read(0, &c, 1) == 1) {
		for (int i = 0; i < 1000; i++) {
			void *volatile block = malloc(i + 1);

			free(block);
		}
		write(1, "done\n", 5);
	}
	return 0;
}
"""
CALLS, BYTES = 5000, 5 * 500500


@pytest.fixture
def program(compiled):
    return compiled(PROGRAM)


def allocate(process):
    """Has the program make CALLS calls of malloc and of free."""
    for _ in range(5):
        process.stdin.write(b"x")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"


def attached(runner, allocprof, pid, process, path, words):
    """What uprobes count of CALLS calls."""
    recorder = runner.start([allocprof, *words, "-o", path, "-p", pid], stderr=subprocess.PIPE)
    wait_until_counting(allocprof, recorder)
    allocate(process)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate()[1].decode()
    assert "not complete" not in said and "not exact" not in said, said


@pytest.mark.fast("ended-stat", "measured-record-live")
@pytest.mark.parametrize("options", [["stat"], ["record", "--live"]], ids=["stat", "record-live"])
@pytest.mark.parametrize("state", ["measured", "ended"])
def test_preloaded(runner, allocprof, program, tmp_path, options, state):
    launcher = runner.start([allocprof, *options, "--engine=preload", *(["--duration=100ms"] if state == "ended" else []),
                             "-o", tmp_path / "launched", "--", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    assert launcher.stdout.readline() == b"begun\n"
    pid = command_of(launcher.pid)
    if state == "ended":
        wait_until(lambda: launcher.poll() is not None or (tmp_path / "launched").exists() and
                   (tmp_path / "launched").stat().st_size, "the end of the first measurement")
    report = tmp_path / "stat"
    attached(runner, allocprof, pid, launcher, report, ["stat", "--json"])
    functions = read_report(report)["functions"]
    assert {name: (entry["calls"], entry["bytes"]) for name, entry in functions.items() if entry["calls"]} == \
        {"malloc": (CALLS, BYTES), "free": (CALLS, 0)}
    assert read_report(report)["complete"] is True
    for words in ["record"], ["record", "--live"]:
        path = tmp_path / "-".join(words)
        attached(runner, allocprof, pid, launcher, path, words)
        recording = Recording(path)
        assert recording.functions == {"malloc": (CALLS, BYTES)}
        assert recording.ledger["attributed"] == recording.ledger["complete"] == CALLS
        # Not a frame of the library, though it calls the C library's function where it follows blocks.
        (stack, calls), = recording.texts().items()
        assert calls == CALLS and stack.endswith(";main"), stack
        assert not recording.sql("SELECT path FROM modules WHERE path LIKE '%liballocprof-inside%'")
    launcher.stdin.close()
    launcher.wait()
    if state == "measured":
        first = tmp_path / "launched"
        if options == ["stat"]:
            assert " 15,000    malloc" in first.read_text(), first.read_text()
        else:
            assert Recording(first).functions == {"malloc": (3 * CALLS, 3 * BYTES)}


def test_nested(run, allocprof, program, tmp_path):
    """Each engine around each: both measurements have each call once. Of two preloaded libraries the inner one is not
    loaded, and its report says so."""
    for outer in "uprobe", "preload":
        for inner in "uprobe", "preload":
            done = run([allocprof, "stat", "--json", f"--engine={outer}", "-o", tmp_path / "outer", "--",
                        allocprof, "stat", "--json", f"--engine={inner}", "-o", tmp_path / "inner", "--", program],
                       stdin=b"xxxxx", expect=0)
            report = read_report(tmp_path / "inner")
            malloc = report["functions"]["malloc"]
            assert report["complete"] is (outer == "uprobe" or inner == "uprobe")
            assert (malloc["calls"], malloc["bytes"]) == (CALLS, BYTES) or not report["complete"], (outer, inner)
            assert report["complete"] or re.search(rb"of the program program .*, in which another recording's library counts:",
                                                   done.stderr), done


def library_beside_libc(name):
    directory = libc_path().rpartition("/")[0]
    try:
        symbol_offsets(f"{directory}/{name}", ["malloc"])
    except (FileNotFoundError, subprocess.CalledProcessError):
        unavailable(f"the C library's {name} is not installed")
    return f"{directory}/{name}"


@pytest.mark.engines("uprobe", "preload")
def test_memusage(run, allocprof, program, tmp_path, engine):
    """It stands in front of malloc and of mmap. The header that it adds to each block has 16 bytes."""
    run([allocprof, "stat", "--json", "-o", tmp_path / "json", "--", program], stdin=b"xxxxx", expect=0,
        env={"LD_PRELOAD": library_beside_libc("libmemusage.so"), "MEMUSAGE_PROG_NAME": "program"})
    report = read_report(tmp_path / "json")
    assert report["functions"]["malloc"]["calls"] - CALLS < 5 and report["complete"] is True
    assert report["functions"]["malloc"]["calls"] >= CALLS
