# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof diff on two builds of one program: an allocation was added and a function renamed."""

import json
import shutil
import signal
import subprocess

import pytest

import conftest
from support import Obedient, wait_until_counting

REQUESTS = 1000
SECTIONS = ["only_in_before", "only_in_after", "changed", "paired", "alike", "below_min"]


@pytest.fixture
def recordings(run, allocprof, target, tmp_path):
    paths = []
    for when in ["before", "after"]:
        paths.append(str(tmp_path / f"{when}.data"))
        run([allocprof, "record", "-o", paths[-1], "--", target(f"request_server_{when}"),
             str(REQUESTS)])
    return paths


def diff(allocprof, *words):
    done = subprocess.run([allocprof, "diff", "--json", "--raw-stacks", *words],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def listed(result, section, side):
    """The functions of each stack of a section as they are on one side, and its difference."""
    return [([frame["name"] for frame in stack["frames"] if frame["in"] in (side, "both")],
             stack["difference"]) for stack in result["sections"][section]["listed"]]


def assert_sums(result):
    for key in ["before", "after"]:
        assert sum(result["sections"][name][key] for name in SECTIONS) + \
            result["between_runs"][key] == result[key]["total"]
    assert sum(result["sections"][name]["difference"] for name in SECTIONS) == \
        result["difference"]


def test_story(allocprof, recordings):
    result = diff(allocprof, *recordings)
    assert_sums(result)
    assert result["before"]["complete"] and result["after"]["complete"]
    assert result["difference"] == 3 * REQUESTS
    new, = listed(result, "only_in_after", "after")
    assert new[0][:4] == ["malloc", "use", "add_trace", "handle_request"], new
    assert new[1] == 3 * REQUESTS
    before, = listed(result, "paired", "before")
    after, = listed(result, "paired", "after")
    assert before[0][:4] == ["malloc", "use", "parse_headers", "handle_request"], before
    assert after[0][:4] == ["malloc", "use", "decode_headers", "handle_request"], after
    assert before[1] == 0
    assert not result["sections"]["only_in_before"]["stacks"]
    assert not result["sections"]["changed"]["stacks"]


def test_swapped_and_same(allocprof, recordings):
    there, back = diff(allocprof, *recordings), diff(allocprof, *reversed(recordings))
    assert there["difference"] == -back["difference"]
    assert [(stack, -n) for stack, n in listed(there, "only_in_after", "after")] == \
        listed(back, "only_in_before", "before")
    same = diff(allocprof, recordings[0], recordings[0])
    assert same["sections"]["alike"]["stacks"] == same["before"]["stacks"]


def test_heaptrack_agrees(run, allocprof, target, recordings, tmp_path):
    if not shutil.which("heaptrack_print"):
        conftest.unavailable("heaptrack is not installed")
    for when in ["before", "after"]:
        run(["heaptrack", "-o", str(tmp_path / when), target(f"request_server_{when}"),
             str(REQUESTS)])
    logs = {when: str(next(tmp_path.glob(f"{when}.*[tz]"))) for when in ["before", "after"]}
    folded = tmp_path / "folded"
    run(["heaptrack_print", "-f", logs["after"], "-d", logs["before"], "-F", str(folded),
         "--flamegraph-cost-type", "allocations"])
    theirs = [line.rsplit(" ", 1) for line in folded.read_text().splitlines()]
    added, = [int(n) for stack, n in theirs if "add_trace" in stack]
    result = diff(allocprof, *recordings)
    (_, ours), = listed(result, "only_in_after", "after")
    assert ours == added == 3 * REQUESTS
    # heaptrack knows nothing of renames: the one is gone and the other is new, by as much.
    moved = {name: sum(int(n) for stack, n in theirs if name in stack)
             for name in ("parse_headers", "decode_headers", "respond", "load_config")}
    assert moved == {"parse_headers": -REQUESTS, "decode_headers": REQUESTS, "respond": 0,
                     "load_config": 0}
    assert sum(int(n) for _, n in theirs) == result["difference"]


def attach_for(run, runner, allocprof, target, data, requests):
    """Records a process from outside while it allocates so often."""
    process = Obedient(runner, [target("sleeper")])
    recorder = runner.start([allocprof, "record", "--no-symbols", "-o", data, "-p", process.pid], stderr=-1)
    wait_until_counting(allocprof, recorder)
    process.ask(f"alloc {requests}")
    recorder.send_signal(signal.SIGINT)
    recorder.communicate()
    process.exit()


def test_per(run, runner, allocprof, target, tmp_path):
    """Recordings of different lengths, in which different numbers of requests were served."""
    paths = [tmp_path / "before", tmp_path / "after"]
    for path, requests in zip(paths, (300, 100)):
        attach_for(run, runner, allocprof, target, path, requests)
    found = {}
    for per, amounts in (("300:50", (300, 50)), ("second", None)):
        found[per] = diff(allocprof, f"--per={per}", *map(str, paths))
        assert found[per]["per"] == per
        if amounts:
            assert (found[per]["before"]["per"], found[per]["after"]["per"]) == amounts
    assert (found["300:50"]["before"]["total"], found["300:50"]["after"]["total"]) == (50, 100)
    assert found["300:50"]["before"]["calls"] == 300 and found["300:50"]["difference"] == 50
    seconds = [found["second"][side]["elapsed_seconds"] for side in ("before", "after")]
    assert abs(found["second"]["before"]["total"] - 300 * seconds[1] / seconds[0]) <= 1, (found["second"]["before"], seconds)
    text = run([allocprof, "diff", "--per=300:50", *paths], expect=0).stdout.decode()
    assert "before 1.000, after 2.000" in text and "sleeper" in text.splitlines()[0], text
    assert b"nothing is known to divide by" in run([allocprof, "diff", "--per=none_such", *paths], expect=2).stderr
    assert b"leave one out" in run([allocprof, "diff", "--per=second", "--cost=peak", *paths], expect=64).stderr


def test_fail_over(run, allocprof, recordings, tmp_path):
    """4,004 allocations before, 7,004 after: 3,000 more, or 74.9 %."""
    before, after = recordings
    totals = [diff(allocprof, before, after)[side]["total"] for side in ("before", "after")]
    assert totals[1] - totals[0] == 3000
    share = 100 * 3000 / totals[0]
    said = {}
    for allowed, status in (("2999", 3), ("3000", 0), ("0", 3), (f"{share - 0.01:.2f}%", 3), (f"{share + 0.01:.2f}%", 0)):
        result = run([allocprof, "diff", f"--fail-over={allowed}", before, after], expect=status)
        said[allowed] = result.stderr.decode()
        assert b"only in AFTER: +3,000" in result.stdout
    assert said["2999"] == f"allocprof: allocations: +3,000 (+{share:.1f} %), where --fail-over allows a growth of 2,999\n"
    assert said["0"].endswith("allows no growth\n") and said["3000"] == ""
    # What became less is not over, nor is another cost that did not grow.
    run([allocprof, "diff", "--fail-over=0", after, before], expect=0)
    run([allocprof, "diff", "--fail-over=0", before, before], expect=0)
    run([allocprof, "diff", "--fail-over=0", "--through=parse_headers", before, after], expect=0)
    # Half as much work before: for the same, it was twice as much.
    run([allocprof, "diff", "--fail-over=0", "--per=1:2", before, after], expect=0)
    for wrong in ("1.5", "-1", "", "%", "1%%", "many"):
        result = run([allocprof, "diff", f"--fail-over={wrong}", before, after], expect=64)
        assert b"is no limit of growth; write a share such as 1% or a whole number such as 1000" in result.stderr


@pytest.mark.engines("preload")
def test_fail_over_noise(run, allocprof, compiled, tmp_path):
    """Runs whose ranges overlap did not grow; those that are apart did."""
    program = compiled("""
        #include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {
            char run = 0;
            int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
            read(fd, &run, 1);
            run++;
            pwrite(fd, &run, 1, 0);
            for (int i = atoi(argv[2]) + run % 2 * 8; i > 0; i--)
                free(malloc(100));
            return 0;
        }
    """)
    for name, n in ("base", 1000), ("noise", 1004), ("grown", 1100):
        run([allocprof, "record", "-r4", "--warmup=0", "-o", tmp_path / name, "--", program, tmp_path / "run", n], expect=0)
    noise = run([allocprof, "diff", "--fail-over=0", tmp_path / "base", tmp_path / "noise"], expect=0)
    assert noise.stderr == b"allocprof: allocations: +4 (+0.4 %), within the noise of the runs\n"
    run([allocprof, "diff", "--fail-over=0", tmp_path / "base", tmp_path / "grown"], expect=3)


@pytest.mark.engines("preload")
@pytest.mark.parametrize("words, command, lack", [
    (["--duration=0.2"], "exec sleep 1", "ended before its command did"), ([], "./program", "does not have all calls or blocks"),
], ids=["duration", "unprobed"])
def test_fail_over_cannot_tell(run, allocprof, compiled, tmp_path, words, command, lack):
    """No growth is no proof where calls of a recording may be missing, on either side."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    # No library can be loaded into it.
    compiled("#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }", "-static")
    run([allocprof, "record", "--live", "-o", whole, "--", "sh", "-c", "exit 0"], expect=0)
    run([allocprof, "record", "--live", *words, "-o", part, "--", "sh", "-c", command], cwd=tmp_path)
    for files in (whole, part), (part, whole):
        result = run([allocprof, "diff", "--fail-over=100000", *files], expect=1)
        assert f"{part} {lack}, so whether allocations grew is not known\n" in result.stderr.decode()
        run([allocprof, "diff", *files], expect=0)
    run([allocprof, "diff", "--fail-over=100000", whole, whole], expect=0)
    run([allocprof, "diff", "--fail-over=100000", "--per=1:1", whole, part], expect=0 if "ended" in lack else 1)
