# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of record --events: its replay has what the data file of the same recording has, and what was written
before allocprof is killed can be read."""

import contextlib
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import pytest

import event_replay
from support import SCALE, TIMEOUT_SECONDS, command_of, wait_until


@pytest.fixture
def exported(run, allocprof, tmp_path):
    """The lines of the log, and what stderr says."""
    def export(*options, status=0, path=tmp_path / "data"):
        result = run([allocprof, "export", "--format=events", "-o", tmp_path / "lines", *options, path], expect=status)
        return (tmp_path / "lines").read_text().splitlines(), result.stderr.decode()
    return export


@pytest.fixture
def run_through():
    """run_through(words): the lines of standard output as they come; the command must not fail, and says nothing."""
    @contextlib.contextmanager
    def run(words):
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            yield process.stdout
            assert process.stderr.read() == ""
        assert process.returncode == 0
    return run


@pytest.fixture
def recorded(run, allocprof, tmp_path):
    def record(*words, options=(), expect=0, **more):
        return run([allocprof, "record", "--events", "-o", tmp_path / "data", *options, "--", *words], expect=expect,
                   **more)
    return record


@pytest.fixture
def same(exported, tmp_path):
    """That the log has what the data file has; returns the replay."""
    def check():
        lines, errors = exported("--backtrace=none", "--strict")
        assert errors == ""
        database = sqlite3.connect(tmp_path / "data")
        replay = event_replay.Replay(lines)
        wrong = event_replay.differences(replay, database.execute(event_replay.QUERY))
        assert not wrong, "\n".join(wrong[:6])
        ledger = dict(database.execute("SELECT name, value FROM ledger"))
        kinds = replay.kinds
        assert ledger["not_logged"] == 0
        assert ledger["logged"] == sum(kinds[kind] for kind in (
            "alloc", "free", "realloc", "unseen", "failed", "released", "untracked", "unfinished", "noop"))
        assert kinds["realloc"] == ledger["reallocations"]
        assert kinds["released"] == ledger["released"] and kinds["unfinished"] == ledger["unfinished"]
        assert kinds["noop"] == ledger["frees_null"] + ledger["frees_unknown"] + ledger["frees_inherited"]
        assert len(replay.live) == ledger["allocations"] - ledger["frees"] - ledger["discarded"]
        return replay
    return check


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("uprobe", "preload")
def test_replay(recorded, same, target):
    """Eight threads with all functions: failures, reallocs to 0, blocks that other threads free."""
    recorded(target("live_random"), 3, 8, 1500)
    replay = same()
    assert all(replay.kinds[kind] for kind in ("alloc", "free", "realloc", "failed", "released", "noop"))


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("seed", [10, 11])
def test_replay_of_many(recorded, same, target, seed):
    recorded(target("live_random"), seed, 8, 1500)
    same()


def chosen(events, is_chosen):
    """What a log has of @events if it has only some blocks. A realloc that it has one block of is an alloc or a free."""
    sites = {event["site"]: event["thread_name"] for event in events if event["kind"] in ("alloc", "realloc")}
    kept = []
    for event in events:
        # A free of no block that is followed has no site.
        has = "site" in event and is_chosen(event.get("thread_name") or sites[event["site"]], event["size"])
        if event["kind"] != "realloc":
            if has:
                kept.append((event["kind"], event["size"]))
            continue
        had = is_chosen(sites[event["previous_site"]], event["previous_size"])
        if had or has:
            kept.append(("realloc", event["size"]) if had and has else ("alloc", event["size"]) if has else
                        ("free", event["previous_size"]))
    return kept


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("expression, is_chosen", [
    ("size BETWEEN 100 AND 3000", lambda thread, size: 100 <= size <= 3000),
    ("matches(thread, '/random/') AND size % 2 = 0", lambda thread, size: size % 2 == 0),
    ("thread = 'nobody'", lambda thread, size: False),
], ids=["size", "thread", "none"])
def test_chosen_blocks(recorded, exported, target, tmp_path, expression, is_chosen):
    """A log of some blocks has their events, of the same program that does the same again, and says which these are."""
    def events(options):
        recorded(target("live_random"), 3, 1, 1500, options=options)
        lines, errors = exported("--strict")
        with contextlib.closing(sqlite3.connect(tmp_path / "data")) as database:
            ledger = dict(database.execute("SELECT name, value FROM ledger"))
        return [event for event in map(json.loads, lines) if "size" in event], errors, ledger
    whole, errors, _ = events([])
    assert errors == ""
    some, errors, ledger = events(["--where", expression])
    assert f"the log has only the blocks that record --where '{expression}' chose" in errors
    assert [(event["kind"], event["size"]) for event in some] == chosen(whole, is_chosen)
    assert ledger["logged"] == len(some) and ledger["logged"] + ledger["left_out"] == len(whole)
    assert ledger["not_logged"] == 0


@pytest.mark.parametrize("words, sentence", [
    (["--where=size > 1"], "--where means nothing without --events"),
    (["--events", "--where=alive"], "--where of a log asks for size and thread only"),
    (["--events", "--where=through('main')"], "--where of a log asks for size and thread only"),
    (["--events", "--where=size >"], "--where: incomplete input"),
    (["--events", "--where=colour > 1"], "--where: no such column: colour"),
    (["--events", "--where=size > 1", "--where=size < 9"], "--where is given twice"),
], ids=["no_events", "column", "stack", "cut", "unknown", "twice"])
def test_chosen_refused(run, allocprof, target, words, sentence):
    result = run([allocprof, "record", *words, "--", target("nothing")], expect=64)
    assert sentence in result.stderr.decode()


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
def test_a_million(recorded, run_through, allocprof, target, tmp_path, engine):
    """Of one thread that does nothing but to allocate and to free: nothing is lost, and the log alone leads to the figures of
    the data file; with uprobes at default settings. Of ten million with ALLOCPROF_SCALE=10."""
    calls = 500_000 * SCALE
    options = ["--throttle"] if engine == "preload" else []
    recorded(target("many_stacks"), calls, 1000, options=options, timeout=(5 + SCALE) * TIMEOUT_SECONDS)
    database = sqlite3.connect(tmp_path / "data")
    ledger = dict(database.execute("SELECT name, value FROM ledger"))
    assert (ledger["not_logged"], ledger["lost"]) == (0, 0)
    assert ledger["logged"] >= 2 * calls
    with run_through([allocprof, "export", "--format=events", "--backtrace=none", "--strict", tmp_path / "data"]) as lines:
        replay = event_replay.Replay(lines)
    assert replay.kinds["alloc"] >= calls and replay.kinds["free"] >= calls
    wrong = event_replay.differences(replay, database.execute(event_replay.QUERY))
    assert not wrong, "\n".join(wrong[:6])


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("shape", ["exec", "vfork_exec", "fork_free", "zero", "fail"])
def test_replay_of_processes(recorded, same, target, engine, shape):
    """Blocks that an exec discards, that a child frees."""
    recorded(target("live_shapes"), shape)
    replay = same()
    if "exec" in shape:
        # Uprobes see the exec of the command, too.
        assert replay.kinds["exec"] + replay.kinds["fork"] > (engine == "uprobe")


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("uprobe-512", "preload-512")
@pytest.mark.parametrize("mean", [16, 512, 16384])
def test_replay_of_a_sample(recorded, exported, target, tmp_path, mean):
    """Each event counts as often as its weight says, which is the data file's estimate."""
    recorded(target("live_random"), 3, 8, 1500, options=[f"--sample={mean}"])
    lines, errors = exported("--backtrace=none", "--strict")
    assert errors == ""
    with contextlib.closing(sqlite3.connect(tmp_path / "data")) as database:
        replay = event_replay.Replay(lines)
        wrong = event_replay.differences(replay, database.execute(event_replay.QUERY))
        ledger = dict(database.execute("SELECT name, value FROM ledger"))
    assert not wrong, "\n".join(wrong[:6])
    assert ledger["not_logged"] == 0 and ledger["logged"] == sum(replay.kinds[kind] for kind in (
        "alloc", "free", "realloc", "unseen", "failed", "released", "untracked", "unfinished", "noop"))
    # Of few samples none need be of realloc.
    assert all(replay.kinds[kind] for kind in ("alloc", "free", *["realloc"] * (mean < 16384)))
    assert any('"weight":' in line for line in lines)


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
def test_backtraces(recorded, exported, target):
    """Each form has the stack of the same event, innermost frame first."""
    recorded(target("many_stacks"), 3000, 64)

    def of(form):
        lines, _ = exported(f"--backtrace={form}")
        return [event.get("backtrace") for event in map(json.loads, lines) if event.get("function") == "malloc" and
                event["kind"] == "alloc"]
    none, addresses, names, full = (of(form) for form in ("none", "addr", "name", "full"))
    assert len(none) == len(addresses) == len(names) == len(full) >= 3000
    assert not any(none)
    leaves = [n for n, frames in enumerate(names) if frames[0] == "leaf"]
    assert len(leaves) == 3000
    for n in leaves:
        assert names[n][-1] == "_start"
        assert addresses[n][0].startswith("many_stacks+0x")
        assert full[n][0]["function"] == "leaf" and full[n][0]["line"] and full[n][0]["file"].endswith("many_stacks.c")
        assert full[n][0]["module"].endswith("/many_stacks")


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("uprobe", "preload")
def test_without_stacks(recorded, same, exported, target, run, allocprof, tmp_path):
    """The log has the same calls and blocks, by thread and function, and no stack has a frame."""
    recorded(target("live_random"), 3, 8, 1500, options=["--backtrace=none"])
    replay = same()
    with contextlib.closing(sqlite3.connect(tmp_path / "data")) as database:
        assert list(database.execute("SELECT frames, \"end\" FROM stacks")) == [("[]", "complete")]
    lines, _ = exported("--backtrace=name")
    assert {json.dumps(event["backtrace"]) for event in map(json.loads, lines) if event.get("stack")} == {"[]"}
    report = run([allocprof, "report", tmp_path / "data"], expect=0).stdout.decode()
    assert "no stacks were taken (--backtrace=none)" in report and "[no frames]" in report
    assert all(replay.kinds[kind] for kind in ("alloc", "free", "realloc", "failed", "released", "noop"))


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
def test_killed(runner, allocprof, exported, target, tmp_path):
    """SIGKILL leaves a log without a data file; it defines all that its events refer to."""
    recorder = runner.start([allocprof, "record", "--events", "-q", "-o", tmp_path / "data", "--",
                             target("pairs"), 1], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    log = tmp_path / "data.events"
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not log.exists() or log.stat().st_size < 20000:
        assert time.monotonic() < deadline and recorder.poll() is None
        time.sleep(0.05)
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    assert not (tmp_path / "data").exists()
    lines, errors = exported("--backtrace=name")
    assert "the recording was cut off" in errors and "printing addresses instead of names" in errors
    replay = event_replay.Replay(lines)
    assert replay.kinds["alloc"] > 1000 and replay.kinds["free"] > 1000
    for event in map(json.loads, lines):
        if event["kind"] == "alloc":
            assert event["backtrace"][0].startswith("[pairs+0x") and event["pid"] == event["thread"]
    exported("--strict", status=1)
    # Cut anywhere, it can be read up to the last whole block before.
    data = log.read_bytes()
    for size in (64, 65, 95, 96, len(data) // 2, len(data) - 1):
        log.write_bytes(data[:size])
        cut, errors = exported("--backtrace=name")
        assert cut == lines[:len(cut)] and "the recording was cut off" in errors


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
def test_consumer_falls_behind(runner, allocprof, exported, target, tmp_path):
    """While allocprof is stopped the ring buffer, or the shared memory, of 64 KiB here, runs full. What did not fit is counted, and with
    what is in the log it is all that happened."""
    recorder = runner.start([allocprof, "record", "--events", "--inject", "ring=65536", "-o", tmp_path / "data", "--",
                             target("pairs"), 1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert recorder.stdout.readline() == b"ready\n"
    threads = pathlib.Path(f"/proc/{command_of(recorder.pid)}/task")
    # The target sleeps after each round, and the events of five fill the ring buffer.
    rounds = lambda: sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (thread / "status").read_text(), re.MULTILINE)[1])
                         for thread in threads.iterdir())
    recorder.send_signal(signal.SIGSTOP)
    first = rounds()
    wait_until(lambda: rounds() >= first + 50, "the target has run 50 rounds")
    recorder.send_signal(signal.SIGCONT)
    _, errors = recorder.communicate(timeout=TIMEOUT_SECONDS)
    ledger = dict(sqlite3.connect(tmp_path / "data").execute("SELECT name, value FROM ledger"))
    lines, said = exported("--backtrace=none")
    assert sum("id" in json.loads(line) for line in lines) == ledger["logged"]
    assert ledger["not_logged"] > 0
    assert ledger["logged"] + ledger["not_logged"] == ledger["allocations"] + ledger["frees"] + ledger["frees_null"] + \
        ledger["frees_unknown"]
    assert f"{ledger['not_logged']:,} events are not in" in errors.decode()
    assert f"{ledger['not_logged']:,} events are not in the log" in said
    exported("--strict", status=1)


@pytest.mark.slow
@pytest.mark.engines("uprobe", "preload")
def test_throttled(recorded, same, target, engine):
    """From inside with room for so few events that threads wait all the time."""
    room = ["--inject", "ring=65536"] if engine == "preload" else []
    recorded(target("live_random"), 4, 8, 3000, options=["--throttle", *room])
    same()


@pytest.mark.slow
@pytest.mark.engines("preload")
def test_killed_while_throttled(runner, allocprof, target, tmp_path):
    """A target that waits for allocprof goes on when that is killed, and ends by itself."""
    recorder = runner.start([allocprof, "record", "--events", "--throttle", "--inject", "ring=65536", "-q", "-o", tmp_path / "data",
                             "--", target("pairs"), 4], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert recorder.stdout.readline() == b"ready\n"
    command = command_of(recorder.pid)
    stat = pathlib.Path(f"/proc/{command}/stat")
    begun = stat.read_text().split()[21]
    recorder.send_signal(signal.SIGSTOP)
    # One of the threads waits in futex(2).
    wait_until(lambda: any(call.read_text().startswith("202 ") for call in pathlib.Path(f"/proc/{command}/task").glob("*/syscall")),
               "a thread waits for room")
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    recorder.stdin.close()
    wait_until(lambda: not stat.exists() or stat.read_text().split()[21] != begun or " Z " in stat.read_text(),
               "the target has ended")


REFUSED = [
    (["--events", "-r", "2"], "--events and -r cannot be used together"),
    (["--throttle"], "--throttle means nothing without --events"),
    (["--backtrace=none"], "--backtrace=none means nothing without --events"),
    (["--events", "--backtrace=name"], "--backtrace takes none"),
    (["--events", "--backtrace=none", "--max-depth=5"], "--max-depth and --within are about"),
]


@pytest.mark.parametrize("words, sentence", REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_refused(run, allocprof, target, tmp_path, words, sentence):
    result = run([allocprof, "record", *words, "-o", tmp_path / "data", "--", target("nothing")])
    assert result.status and sentence in result.stderr.decode()
    assert not list(tmp_path.glob("data*"))
