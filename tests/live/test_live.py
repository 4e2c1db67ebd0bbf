# SPDX-License-Identifier: GPL-3.0-or-later
"""Live memory as allocprof has it against the log of events, both in the same run: of every stack
the blocks, bytes, frees, temporary and failed ones, to the last one; the peak within its bound."""

import collections
import json
import re
import signal

import pytest

import events
from events import Blocks
from memory import (CASES, MANY_AT_ONCE, SHARING, assert_none, differences, shared_differences, stat_differences,
                    status_of)
from support import (TIMEOUT_SECONDS, Obedient, Recording, read_report, shell_status, stated_cases, wait_until_counting)

pytestmark = pytest.mark.engines("uprobe", "preload")


@pytest.mark.fast("live_shapes-move", "live_shapes-fork_own", "live_shapes-exec_thread", "return_hazards-unwind",
                  "preload-live_shapes-move", "preload-live_shapes-fork_own")
@pytest.mark.parametrize("name, case", CASES)
def test_record(both, target, engine, name, case):
    expected, found, _ = both.record([target(name), case], expect=status_of(case))
    if engine == "preload" and case in SHARING:
        assert_none(shared_differences(expected, found))
        return
    assert_none(differences(expected, found, peak=case not in MANY_AT_ONCE))


@pytest.mark.slow
def test_case_study(both, target):
    """Each function's memory, and when it came and went."""
    expected, found, _ = both.record([target("case_study")], expect=0)
    assert_none(differences(expected, found))
    by_caller = collections.defaultdict(Blocks)
    for (_, _, _, frames), sums in found.blocks.items():
        by_caller[found.names[frames[0]]] += sums
    for name, stated in stated_cases("case_study").items():
        assert {key: getattr(by_caller[name], key) for key in stated} == stated


@pytest.mark.fast("", "preload")
def test_what_processes_left(run, allocprof, engine, target, tmp_path):
    """What a process left is live in a time line until it ends, what the command left to the end: the peak is that of
    the kernel's count, and not of what all of them left together."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", target("leaves")], expect=0)
    recording = Recording(data)
    left = recording.sql("SELECT exited IS NOT NULL, bytes, sum(blocks) FROM lifetimes WHERE died IS NULL GROUP BY 1, 2")
    assert left == [(0, 100000, 1), (0, 300000, 1), (1, 1000000, 4)]
    assert recording.sql("SELECT count(*) FROM lifetimes WHERE exited < born OR died IS NOT NULL") == [(0,)]
    graph = json.loads(run([allocprof, "graph", "--json", data], expect=0).stdout)
    assert (graph["live"], graph["live_bytes"]) == (6, 4400000)
    alive = [sum(series["stays_bytes"][i] for series in graph["series"]) for i in range(len(graph["times_ns"]))]
    assert max(alive) == graph["drawn_peak_bytes"] <= graph["peak_bytes"] == int(recording.meta["peak_bytes"]) == 1300000
    assert alive[-1] == 400000


GROWS = """
#include <stdlib.h>
#include <unistd.h>
void *volatile block;
int main(int argc, char **argv)
{
	for (int i = 0; i < 1500; i++) {
		block = malloc(5000);
		if (argc > 1) { block = malloc(20000 + 10 * i); free(block); }
		usleep(100);
	}
}
"""


@pytest.mark.fast("beside", "preload-beside")
@pytest.mark.parametrize("words, peak", [(["beside"], 1500 * 5000 + 20000 + 10 * 1499), ([], 1500 * 5000)], ids=["beside", "alone"])
def test_one_peak(run, allocprof, engine, compiled, tmp_path, words, peak):
    """What grows to its end, alone or beside a block that is freed at once, has one peak on all screens: the counted one."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "--no-symbols", "-o", data, "--", compiled(GROWS), *words], expect=0)
    assert Recording(data).meta["peak_bytes"] == str(peak)
    assert json.loads(run([allocprof, "graph", "--json", data], expect=0).stdout)["peak_bytes"] == peak
    report = run([allocprof, "report", "--sort=peak", data], expect=0).stdout.decode()
    assert re.findall(r"At the peak: ([\d,]+) bytes", report) == [f"{peak:,}"], report


def test_command_leaves_a_child_behind(run, allocprof, engine, target, tmp_path):
    """The recording ends with the command, so what that left is live at the end although a process goes on."""
    data = tmp_path / "data"
    script = f'sleep 3 >/dev/null 2>&1 & exec {target("leaves")}'
    run([allocprof, "record", "--live", "-o", data, "--", "sh", "-c", script], expect=0)
    recording = Recording(data)
    assert recording.sql("SELECT sum(l.bytes) FROM lifetimes l JOIN counts c ON c.id = l.count JOIN processes p ON p.id = c.process "
                         "WHERE died IS NULL AND exited IS NULL AND p.comm = 'leaves'") == [(400000,)]


# A process that runs can only be measured by uprobes.
@pytest.mark.engines("uprobe")
@pytest.mark.fast("int")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=["int", "term"])
def test_attached(runner, allocprof, log, target, tmp_path, stop):
    """What was there before is not known; its end is counted apart."""
    made = log()
    obedient = Obedient(runner, [target("sleeper")], env=made.env())
    obedient.ask("keep 10")
    stat = runner.start([allocprof, "stat", "--live", "--json", "-o", tmp_path / "out.json",
                         "-p", str(obedient.pid)])
    wait_until_counting(allocprof, stat)
    first = made.position()
    obedient.ask("keep 5")
    obedient.ask("alloc 300")
    obedient.ask("release 12")
    obedient.ask("keep 1")
    stat.send_signal(stop)
    assert shell_status(stat.wait(TIMEOUT_SECONDS)) == 0
    end = made.position()
    obedient.ask("alloc 100")
    obedient.exit()
    found = events.analyse(made.read(first, end))
    assert found.all_totals.unknown == 7
    assert_none(stat_differences(read_report(tmp_path / "out.json"), found))


@pytest.mark.engines("uprobe", "preload")
def test_one_block_is_one(run, allocprof, target):
    done = run([allocprof, "stat", "--live", target("exec_itself"), "0"], expect=0)
    assert "bytes live at the end  # in 1 block\n" in done.stderr.decode(), done
