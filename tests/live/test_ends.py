# SPDX-License-Identifier: GPL-3.0-or-later
"""What a recording says of its end: a peak that is there, and what a tidy program freed because it ended."""

import base64
import json
import re
import zlib

import pytest

from support import Recording

pytestmark = pytest.mark.engines("uprobe", "preload")

# 1,000 blocks of 997 bytes that stay: the last of them are less than what begins a new mark of the peak.
GROWING = """
#include <stdlib.h>
void *keep[1000];
int main(int argc, char **argv)
{
	for (int i = 0; i < 1000; i++)
		keep[i] = malloc(997);
	return 0;
}
"""

# 400 blocks of 10,000 bytes, one each millisecond, and 3 of 77 bytes that stay. All the others are freed by a handler of exit.
TIDY = """
#include <stdlib.h>
#include <unistd.h>
void *keep[400], *volatile stays;
__attribute__((noinline)) static void *kept(void) { return malloc(10000); }
__attribute__((noinline)) static void *left(void) { return malloc(77); }
static void tidy(void)
{
	for (int i = 0; i < 400; i++)
		free(keep[i]);
}
int main(void)
{
	atexit(tidy);
	for (int i = 0; i < 3; i++)
		stays = left();
	for (int i = 0; i < 400; i++) {
		keep[i] = kept();
		usleep(1000);
	}
	return 0;
}
"""


@pytest.mark.fast("", "preload")
def test_peak_at_the_end(run, allocprof, compiled, tmp_path):
    """One number in all reports, and the stacks add up to it where the peak is the end."""
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", compiled(GROWING)], expect=0)
    report, graph = (json.loads(run([allocprof, *words, "--json", data], expect=0).stdout)
                     for words in (["report", "--sort=peak"], ["graph"]))
    counted = int(Recording(data).meta["peak_bytes"])
    assert (counted, report["peak_bytes"], report["all"]["peak_bytes"], report["all"]["live_bytes"], graph["peak_bytes"]) == \
        (997000,) * 5
    run([allocprof, "html", "-o", tmp_path / "page", data], expect=0)
    meta = re.search(r'data-name="after\.meta"[^>]*>([^<]*)<', (tmp_path / "page").read_text())
    assert json.loads(zlib.decompress(base64.b64decode(meta[1])))["peakBytes"] == counted
    shown = run([allocprof, "report", "--sort=peak", data], expect=0).stdout.decode()
    assert "At the peak: 997,000 bytes in 1,000 blocks of 1 stack" in shown


@pytest.mark.fast("", "preload")
def test_freed_at_exit(run, allocprof, compiled, tmp_path):
    data = tmp_path / "data"
    run([allocprof, "record", "--live", "-o", data, "--", compiled(TIDY)], expect=0)

    def report(*words):
        return json.loads(run([allocprof, "report", "--leaks", "--json", data, *words], expect=0).stdout)

    before, after = report(), report("--at-exit")
    assert (before["what"], before["selected"]["live"], before["selected"]["live_bytes"]) == \
        ("alive before the end", 403, 4000231)
    assert before["exit_frees"]["freed_bytes"] == 4000000 and before["exit_frees"]["left"] == 3
    assert (after["what"], after["selected"]["live"], after["selected"]["live_bytes"], after["exit_frees"]) == \
        ("leaked", 3, 231, None)
    shown = run([allocprof, "report", "--leaks", data], expect=0).stdout.decode()
    assert "Alive before the end: 4,000,231 bytes in 403 blocks of 2 stacks\n" in shown
    assert "--at-exit\nshows what was left at the end, 231 bytes in 3 blocks\n" in shown
    folded = run([allocprof, "folded", "--leaks", "--cost=live", data], expect=0)
    assert sum(int(line.rsplit(b" ", 1)[1]) for line in folded.stdout.splitlines()) == 403
    assert b"--at-exit selects what was left" in folded.stderr
