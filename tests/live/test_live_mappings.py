# SPDX-License-Identifier: GPL-3.0-or-later
"""record --live --allocator mmap: live mappings are those of /proc/PID/maps, page by page, and of the calls that mapped
them, in programs that split, replace, move, grow and inherit them."""

import collections
import json
import os
import shutil
import signal
import sys
import time

import pytest

import live_mappings
from support import Obedient, Recording, TIMEOUT_SECONDS, stop, unavailable, wait_until_counting

PAGE = 4096


def mappings_of(recording):
    return [live_mappings.Mapping(*row) for row in recording.sql(live_mappings.QUERY)]


def check(recording):
    """Nothing is lost, and all sums agree."""
    assert recording.ledger["lost"] == 0, recording.ledger
    assert not recording.unbalanced()
    assert "mapping_changes_lost" not in recording.gaps
    ranges = sum(mapping.bytes for mapping in mappings_of(recording))
    [(live,)] = recording.sql("SELECT sum(live_bytes) FROM memory WHERE function IN ('mmap', 'mremap', 'brk')")
    assert ranges == live
    for [allocations, size, frees, freed, discarded, discarded_bytes, count] in recording.sql(
            "SELECT allocations, bytes, frees, freed_bytes, discarded, discarded_bytes, count FROM blocks"):
        of_epochs = recording.sql("SELECT sum(blocks), sum(bytes), sum(blocks * (died IS NOT NULL)), "
                                  "sum(bytes * (died IS NOT NULL)) FROM lifetimes WHERE count = ?", count)
        if allocations:
            assert of_epochs == [(allocations, size, frees + discarded, freed + discarded_bytes)]


# Threads wait for each other's mappings, so that fewer calls take as long.
CASES = {"alone": (1, 20000, 1), "threads": (2, 3000, 3), "fork": (3, 10000, 1, 1), "threads_fork": (4, 2000, 2, 1)}


@pytest.mark.parametrize("case", CASES)
def test_equal_to_maps(run, allocprof, target, tmp_path, case):
    words = [str(word) for word in CASES[case]]
    data = tmp_path / "data"
    result = run([allocprof, "record", "-q", "--live", "--allocator", "mmap", "-o", data, "--", target("mapper"), *words],
                 expect=0)
    said = live_mappings.Said(result.stdout.decode())
    recording = Recording(data)
    check(recording)
    mapped = mappings_of(recording)
    children = {pid for pid, in recording.sql("SELECT pid FROM processes WHERE parent != 0")} if "fork" in case else set()
    assert len(said.maps) == 1 + len(children)
    # Where the kernel could not tell in time what a moved mapping is, and says so, it may be a file's.
    found = live_mappings.differences(said, mapped, children)
    assert not found or "mappings_unsure" in recording.gaps, found
    if "mappings_unsure" not in recording.gaps:
        assert {"reserved", "stack", "code", "other", "heap"} == {mapping.kind for mapping in mapped}
    for mapping in mapped:
        functions = set(mapping.frames.split(";"))
        if "map_stack" in functions:
            assert mapping.kind == "stack"
        if "map_executable" in functions:
            assert mapping.kind == "code"


@pytest.fixture
def idle(runner, allocprof, tmp_path):
    """idle(argv) records it until it has said that it is ready; returns what is live then, and its maps."""
    held = []

    def record(argv):
        data = tmp_path / "data"
        one = Obedient(runner, [allocprof, "record", "-q", "--live", "--allocator", "mmap", "-o", data, "--", *argv])
        # The other children of the recorder are its own.
        [pid] = [int(pid) for pid in runner.run(["pgrep", "-P", one.pid], expect=0).stdout.split()
                 if os.readlink(f"/proc/{int(pid)}/exe") != os.path.realpath(allocprof)]
        held.append((one, pid))
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            stop(pid)
            lines = open(f"/proc/{pid}/maps").read()
            runner.run([allocprof, "ctl", "-p", one.pid, "dump", "-o", tmp_path / "dump"], expect=0)
            recording = Recording(tmp_path / "dump")
            if "torn" not in recording.gaps or time.monotonic() > deadline:
                return pid, recording, lines.splitlines()
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.5)

    yield record
    for one, pid in held:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)
        one.process.wait(TIMEOUT_SECONDS)


JAVA = """
import java.util.*;
class Idle {
    public static void main(String[] words) throws Exception {
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            byte[] block = new byte[50000];
            if (i % 20 == 0) kept.add(block);
        }
        Thread[] threads = new Thread[8];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> { try { Thread.sleep(1000000); } catch (InterruptedException e) { } });
            threads[i].setDaemon(true);
            threads[i].start();
        }
        System.gc();
        System.out.println("ready");
        System.in.read();
    }
}
"""
NODE = """
let kept = [];
for (let i = 0; i < 300000; i++) { kept.push({i, text: "x" + i}); if (i % 3 == 0) kept.pop(); }
let hot = (a) => { let s = 0; for (let i = 0; i < a; i++) s += i * kept.length; return s; };
for (let i = 0; i < 2000; i++) hot(1000);
kept = kept.slice(0, 1000);
console.log("ready");
process.stdin.resume();
"""
PYTHON = """
import ctypes, mmap, os, sys, threading
kept = [mmap.mmap(-1, 1 << 20) for i in range(30)]
for i in range(0, 30, 3): kept[i].close()
kept.append(bytearray(50 << 20))
def wait(): threading.Event().wait()
for i in range(4): threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("language", ["java", "node", "python"])
def test_runtimes(idle, tmp_path, language):
    """Garbage collectors and JITs reserve, commit, protect and give back."""
    if language != "python" and not shutil.which(language, path="/usr/bin"):
        unavailable(f"{language} is not installed")
    if language == "java":
        (tmp_path / "Idle.java").write_text(JAVA)
        argv = ["/usr/bin/java", "-Xmx256m", "-XX:-UsePerfData", str(tmp_path / "Idle.java")]
    elif language == "node":
        (tmp_path / "idle.js").write_text(NODE)
        argv = ["/usr/bin/node", str(tmp_path / "idle.js")]
    else:
        argv = ["/usr/bin/python3", "-c", PYTHON]
    pid, recording, lines = idle(argv)
    assert recording.ledger["lost"] == 0
    mapped = [mapping for mapping in mappings_of(recording) if mapping.pid == pid]
    live = [live_mappings.range_of(mapping) for mapping in mapped]
    assert live_mappings.size(live) == live_mappings.size(live_mappings.union(live))
    anonymous = live_mappings.anonymous(lines)
    assert live_mappings.without(live, anonymous) == []
    assert live_mappings.without(anonymous, live) == []
    kinds = collections.Counter()
    for mapping in mapped:
        kinds[mapping.kind] += mapping.bytes
    assert kinds["stack"] > 0
    if language != "python":
        assert kinds["code"] > 0
        executable = sum(live_mappings.size([tuple(int(address, 16) for address in line.split()[0].split("-"))])
                         for line in lines if "x" in line.split()[1] and line.split()[4] == "0" and len(line.split()) == 5)
        assert kinds["code"] >= executable > 0


def test_attached(runner, run, allocprof, target, tmp_path):
    """What a process had mapped before is nobody's, and when it is unmapped nothing of ours ends."""
    program = [sys.executable, "-c", """
import mmap, sys
before = [mmap.mmap(-1, 1 << 20) for i in range(8)]
print("ready", flush=True)
for line in sys.stdin:
    for one in before: one.close()
    kept = [mmap.mmap(-1, 3 << 20) for i in range(5)]
    kept.pop().close()
    print("done", flush=True)
"""]
    process = Obedient(runner, program)
    data = tmp_path / "data"
    recorder = runner.start([allocprof, "record", "-q", "--live", "--allocator", "mmap", "-o", data, "-p", process.pid])
    wait_until_counting(allocprof, recorder)
    process.ask("go")
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(TIMEOUT_SECONDS) == 0
    recording = Recording(data)
    check(recording)
    [(frees, freed)] = recording.sql("SELECT sum(frees), sum(freed_bytes) FROM memory WHERE function = 'mmap'")
    assert frees >= 1 and freed >= 3 << 20
    assert freed < 8 << 20, "what was mapped before counts as freed"
    sizes = [mapping.bytes for mapping in mappings_of(recording) if mapping.bytes >= 3 << 20]
    assert sum(sizes) == 4 * (3 << 20)
    process.exit()


def test_refused(run, allocprof, target):
    for words, says in [
            (["stat", "--live"], b"only record --live follows mappings"),
            (["record", "--events"], b"--allocator mmap and --events cannot be used together"),
            (["record", "--live", "--sample", "1K"], b"--allocator mmap and --sample cannot be used together"),
            (["record", "--live", "--engine=preload"], b"cannot be used with the engine preload")]:
        result = run([allocprof, *words, "--allocator", "mmap", "--", target("nothing")])
        assert result.status not in (0, None) and says in result.stderr, result
        assert result.stderr.count(b"\n") == 1


def test_lost_changes(run, allocprof, target, tmp_path):
    """A change that found the ring buffer full is a gap, and the recording not complete."""
    data = tmp_path / "data"
    result = run([allocprof, "record", "--live", "--allocator", "mmap", "--inject", "ring=4096", "-o", data, "--",
                  target("mapper"), "1", "20000"], expect=0)
    recording = Recording(data)
    assert recording.ledger["lost"] > 0 or "mapping_changes_lost" in recording.gaps
    assert b"not complete" in result.stderr


def test_report(run, allocprof, target, tmp_path):
    """The report names the kinds of live mappings, and of each stack."""
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--live", "--allocator", "mmap", "-o", data, "--", target("mapper"), "1", "200"],
        expect=0)
    report = json.loads(run([allocprof, "report", "--json", "--leaks", "--top", "0", data], expect=0).stdout)
    sums = collections.Counter()
    for mapping in mappings_of(Recording(data)):
        sums[mapping.kind] += mapping.bytes
    assert {kind: size for kind, size in report["mappings"].items() if kind != "given_back" and size} == dict(sums)
    by_stack = collections.Counter()
    for stack in report["stacks"]:
        by_stack.update(stack.get("mappings", {}))
    assert {kind: size for kind, size in by_stack.items() if size and kind != "given_back"} == dict(sums)
    text = run([allocprof, "report", "--leaks", data], expect=0).stdout.decode()
    assert "thread stacks" in text and "reserved" in text and "executable" in text
