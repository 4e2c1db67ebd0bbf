# SPDX-License-Identifier: GPL-3.0-or-later
"""record --sample: where every byte is chosen it is what it is without; else each figure lies near the
truth by what is stated, the ledger holds, and the target notices nothing."""

import json

import pytest

import sampling
from memory import CASES, MANY_AT_ONCE, SHARING, assert_none, differences, shared_differences, status_of
from support import Recording, folded, without_summary


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("live_shapes-move", "return_hazards-jump")
@pytest.mark.parametrize("name, case", CASES)
def test_one_byte_of_one(both, target, engine, name, case):
    expected, found, _ = both.record([target(name), case], words=["--sample", "1"],
                                     expect=status_of(case))
    if engine == "preload" and case in SHARING:
        assert_none(shared_differences(expected, found))
        return
    assert_none(differences(expected, found, peak=case not in MANY_AT_ONCE))


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_one_byte_of_one_without_live(both, target, tmp_path):
    expected, found, _ = both.record([target("live_random"), 3, 4, 3000], live=False,
                                     words=["--sample", "1"], expect=0)
    expected.blocks.clear()
    assert_none(differences(expected, found, peak=False))
    recording = Recording(tmp_path / "data")
    assert recording.meta["sample_bytes"] == "1"
    assert recording.unbalanced(sampled=True) == []
    assert recording.sql("SELECT sum(samples), sum(variance), sum(bytes_variance) FROM samples") \
        == [(recording.ledger["events"], 0, 0)]


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", why="the limits of --inject are those of the programs' maps and links")
@pytest.mark.slow
@pytest.mark.parametrize("words", [["live_random", 9, 4, 4000], ["return_hazards", "jump"],
                                   ["live_shapes", "exec"], ["live_shapes", "fork_free"]],
                         ids=lambda words: str(words[-1]))
@pytest.mark.parametrize("options", [["--live"], ["--live", "--inject", "sessions=0"],
                                     ["--live", "--inject", "multi=0"], []], ids=" ".join)
def test_ledger(both, run, allocprof, target, tmp_path, words, options):
    """Events are all there are; what was sampled and what was not add up to them."""
    expected, _, _ = both.record([target(words[0]), *words[1:]], live=False,
                                 words=[*options, "--sample", "300"], expect=0)
    recording = Recording(tmp_path / "data")
    calls = sum(sums.calls for key, sums in expected.calls.items() if key[2] != "free")
    assert recording.ledger["events"] == calls
    assert recording.ledger["lost"] == 0
    assert recording.ledger["sampled"] <= calls
    # The others allocate a few hundred bytes: all or nothing of them may be drawn.
    if words[0] in ("live_random", "sample_shapes"):
        assert 0 < recording.ledger["sampled"] < calls
    sampling.assert_sampled_ledger(recording.ledger)
    assert "frees_unknown" not in recording.ledger
    ((impossible,),) = recording.sql("SELECT count(*) FROM samples WHERE samples < 1 OR "
                                     "variance < 0 OR bytes_variance < 0")
    assert impossible == 0
    lines, result = folded(run, allocprof, recording.path)
    counted = "allocations" if "--live" in options else "attributed"
    assert sum(lines.values()) == recording.ledger[counted]
    assert "one byte of 300 was sampled: all numbers are estimates" in result.stderr.decode()


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
@pytest.mark.parametrize("live", [True, False], ids=["live", "calls"])
def test_truth_is_near(run, allocprof, target, tmp_path, live):
    """Within 6.5 of the standard deviations that are stated, which is less than 1 in 10^10 for what has as
    many samples as each of these stacks (hundreds or more): there are some 30 figures."""
    argv = [target("sample_shapes")]
    truth = sampling.record(run, allocprof, tmp_path / "truth", argv, live=live)
    found = sampling.record(run, allocprof, tmp_path / "sampled", argv, "1K", live=live)
    wanted = [(key, figure) for key, figure in sampling.figures_of(truth)]
    assert len(wanted) > (25 if live else 12)
    for key, figure in wanted:
        margin = 6.5 / sampling.CONFIDENCE * found.margin(key, figure)
        assert abs(found.value(key, figure) - truth.value(key, figure)) <= margin, (key, figure)
        assert 0 < margin < truth.value(key, figure), (key, figure)
    assert found.ledger["events"] == truth.ledger["events"]
    sampling.assert_sampled_ledger(found.ledger)
    assert found.complete


def big_blocks(run, allocprof, target, tmp_path, case):
    """What there is in all of a hundred blocks of a megabyte, all of which are sampled: allocations, live and
    temporary ones. Those of 1 byte are passed by, or else have rows of their own or weigh less than a megabyte."""
    run([allocprof, "record", "--live", "--sample", "16K", "-o", tmp_path / "data", "--",
         target("sample_shapes"), case], expect=0)
    return Recording(tmp_path / "data").sql(
        "SELECT allocations, live, temporary FROM memory WHERE live_bytes + freed_bytes > 99 << 20")


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_end_by_a_realloc_that_is_passed_by(run, allocprof, target, tmp_path):
    assert big_blocks(run, allocprof, target, tmp_path, "shrink") == [(100, 0, 100)]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_not_temporary_for_one_that_is_passed_by(run, allocprof, target, tmp_path):
    assert big_blocks(run, allocprof, target, tmp_path, "between") == [(100, 0, 0)]


@pytest.mark.covering(1)
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("live-threads", "calls-signals")
@pytest.mark.parametrize("words", [["every_function"], ["throw"], ["longjmp"], ["cancel"],
                                   ["fork_storm"], ["print_backtrace"], ["signals"],
                                   ["threads", "64", "100"]], ids=lambda words: words[0])
@pytest.mark.parametrize("live", [True, False], ids=["live", "calls"])
def test_no_harm(run, allocprof, target, tmp_path, words, live):
    argv = [target(words[0]), *words[1:]]
    bare = run(argv)
    ours = run([allocprof, "record", *(["--live"] if live else []), "--sample", "500", "-o",
                tmp_path / "data", "--", *argv])
    stderr, summary = without_summary(ours.stderr)
    assert len(summary) == (4 if live else 1), ours
    assert (ours.status, ours.stdout, stderr) == (bare.status, bare.stdout, bare.stderr)


@pytest.mark.engines("uprobe", why="the limits of --inject are those of the programs' maps and links")
@pytest.mark.slow
@pytest.mark.parametrize("options, reason", [
    (["--inject", "counts=1,ring=4096"], None),
    (["--inject", "ring=4096"], None),
    (["--inject", "scratch=0"], "no_scratch"),
    (["--live", "--inject", "scratch=0"], "no_scratch"),
    (["--live", "--inject", "counts=5"], "counts_full"),
], ids=lambda words: " ".join(words) if isinstance(words, list) else "")
def test_losses(run, allocprof, target, tmp_path, options, reason):
    """What was chosen and then lost is neither sampled nor not sampled."""
    # Where allocprof stands still there are no unwind tables, and few different stacks.
    freeze = [] if reason == "counts_full" else [target("freeze")]
    result = run([allocprof, "record", *options, "--sample", "64", "-o", tmp_path / "data", "--",
                  *freeze, target("many_stacks"), "-t", "4", "100000", "3000"], expect=0)
    ledger = Recording(tmp_path / "data").ledger
    sampling.assert_sampled_ledger(ledger)
    assert ledger["lost_unaccounted"] == 0
    assert ledger["not_sampled"] > 0
    if reason:
        lost = ledger[f"lost_{reason}"]
        assert lost > 0
        assert f"not complete: {lost:,} call{'s' if lost > 1 else ''} lost ({reason})" in result.stderr.decode()


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_nothing_is_within_nothing(run, allocprof, target, tmp_path):
    """Of no sample there is no error, and no share."""
    data = tmp_path / "data"
    told = run([allocprof, "record", "--live", "--sample=1M", "-o", data, target("nothing")], expect=0).stderr.decode()
    assert "not freed:   0 of 0 B\n" in told and "temporary:   0 of 0 B\n" in told, told
    assert " within " not in told and "(-" not in told
    said = run([allocprof, "report", data], expect=0).stdout.decode()
    assert "within" not in said.split("stated error")[1]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.fast("", "preload")
def test_no_sample_has_a_bound(run, allocprof, compiled, tmp_path):
    """One byte that stays, of which one in 2^30 runs takes a sample: an estimate of 0 is no proof of nothing."""
    data = tmp_path / "data"
    program = compiled("#include <stdlib.h>\nvoid *volatile keep;\nint main(void) { keep = malloc(1); return 0; }\n")
    told = run([allocprof, "record", "--live", "--sample=1G", "-o", data, "--", program], expect=0).stderr.decode()
    assert "not freed:   0 of 0 B, less than 3.00 GiB\n" in told, told
    said = run([allocprof, "report", "--leaks", data], expect=0).stdout.decode()
    assert "Leaked: nothing was sampled: less than 3,221,225,472 bytes\n" in said
    assert "at the end 0 left, 0 bytes, less than 3,221,225,472 bytes\n" in said
    error = json.loads(run([allocprof, "report", "--leaks", "--json", data], expect=0).stdout)["selected"]["error"]
    assert (error["live_samples"], error["live_bytes"], error["live"]) == (0, 3 << 30, None)
    exported = json.loads(run([allocprof, "export", "--format=json", "-o", "/dev/stdout", data], expect=0).stdout)
    assert any("what has no sample is less than 3,221,225,472 bytes" in remark for remark in exported["remarks"])


def test_max_live(run, allocprof, target, tmp_path):
    """What does not fit is counted as what it stands for."""
    result = run([allocprof, "record", "--live", "--sample", "1K", "--max-live", "100", "-o",
                  tmp_path / "data", "--", target("sample_shapes")], expect=0)
    ledger = Recording(tmp_path / "data").ledger
    sampling.assert_sampled_ledger(ledger)
    assert ledger["untracked_live_full"] > 10000
    assert "(live_full)" in result.stderr.decode()


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_windows(run, allocprof, target, tmp_path):
    """--within: only sampled calls are looked at, and only those of them that are within are events."""
    run([allocprof, "record", "--live", "--sample", "1K", "--within", "grow", "-o",
         tmp_path / "data", "--", target("sample_shapes")], expect=0)
    recording = Recording(tmp_path / "data")
    assert recording.ledger["not_sampled"] == 0
    assert 4000 < recording.ledger["events"] == recording.ledger["sampled"] < 20000
    assert recording.sql("SELECT DISTINCT caller FROM memory") == [("grow",)]
    sampling.assert_sampled_ledger(recording.ledger)
    # As many as there are, by 7 standard deviations of 20,000 calls of 200 and 1,500 bytes.
    assert abs(recording.ledger["attributed"] - 20000) < 7 * 10000 ** 0.5 * (
        sampling.deviation_of_one(200, 1024) + sampling.deviation_of_one(1500, 1024))


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--live"]], ids=["calls", "live"])
def test_runs(run, allocprof, target, tmp_path, options):
    """Of several runs the samples are kept as the counts are: together they are those of each."""
    run([allocprof, "record", "-r", "3", *options, "--sample", "1K", "-o", tmp_path / "data", "--",
         target("sample_shapes")], expect=0)
    recording = Recording(tmp_path / "data")
    sampling.assert_sampled_ledger(recording.ledger)
    assert recording.ledger["events"] == 3 * 81000
    assert recording.sql("SELECT sum(samples) FROM samples WHERE what = 'calls'") == \
        [(recording.ledger["sampled"],)]
    sampled = 0
    for number in ("1", "2", "3"):
        result = run([allocprof, "report", "--json", "--run", number, "-i", recording.path], expect=0)
        ledger = json.loads(result.stdout)["ledger"]
        sampling.assert_sampled_ledger(ledger)
        sampled += ledger["sampled"]
    assert sampled == recording.ledger["sampled"]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.slow
def test_diff_takes_errors_for_noise(run, allocprof, target, tmp_path):
    """The same program twice: what differs are the samples."""
    for name in ("a", "b"):
        run([allocprof, "record", "--sample", "1K", "-o", tmp_path / name, "--",
             target("sample_shapes")], expect=0)
    result = run([allocprof, "diff", "--json", tmp_path / "a", tmp_path / "b"], expect=0)
    found = json.loads(result.stdout)
    assert found["before"]["sampled"] and found["after"]["sampled"]
    assert found["before"]["min"] < found["before"]["total"] < found["before"]["max"]
    listed = [entry for section in found["sections"].values() for entry in section["listed"]]
    assert listed
    # Each pair of intervals overlaps but once in 180, and there are 6 stacks.
    assert sum(not entry["noise"] for entry in listed) <= 4
    assert b"one byte of 1,024 was sampled" in result.stderr
