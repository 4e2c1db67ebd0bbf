# SPDX-License-Identifier: GPL-3.0-or-later
"""The benches at a tiny scale: what they measure then is nothing, but that they work is known before it takes half an hour."""

import json
import re

import pytest

from support import BUILD, SOURCE, unavailable

TARGETS = ["jq", "depth-20-same", "depth-20-fresh"]
# Floors are run with them.
TOOLS = ["bare", "stat", "record", "live", "preload-record", "heaptrack"]


@pytest.fixture
def built():
    for name in ("bench/floor", "bench/depth", "bench/memory"):
        if not (BUILD / name).exists():
            unavailable(f"{name} is not built")


def test_table(run, built, tmp_path):
    table, raw = tmp_path / "table.md", tmp_path / "table.json"
    run([SOURCE / "bench" / "run", "--build", BUILD, "--quick", "--force", "--scale", "0.002", "--targets", ",".join(TARGETS),
         "--tools", ",".join(TOOLS), "-o", table], expect=0, timeout=600)
    text = table.read_text()
    assert "failed" not in text and "not run" not in text, text
    for name in TARGETS:
        assert f"| **{name}**: " in text
    measured = {(one["target"], one["tool"]) for one in json.loads(raw.read_text())["runs"]}
    for name in TARGETS:
        assert {tool for target, tool in measured if target == name} >= {*TOOLS, "floor-stat", "floor-record", "floor-live"}
    # Which runs there are is kept while it measures.
    again = run([SOURCE / "bench" / "run", "--from", raw], expect=0)
    assert again.stdout.decode().strip() == text.strip()


def test_inside(run, built, tmp_path):
    table = tmp_path / "inside.md"
    run([SOURCE / "bench" / "inside", "--build", BUILD, "--quick", "--force", "-o", table], expect=0, timeout=600)
    rows = dict(re.findall(r"^\| ([^|]+) \| (.*) \|$", table.read_text(), re.MULTILINE))
    assert "0 calls were lost." in table.read_text()
    for what in ("jq: all of the run / bare", "true: ms above bare", "memory: KiB a thread"):
        assert "–" not in rows[what].split(" | ")[2:4], table.read_text()


def test_serve(run):
    said = run([SOURCE / "bench" / "serve", "--build", BUILD, "--rounds", "1", "--requests", "1000"], expect=0, timeout=300).stdout.decode()
    assert [line.split(":")[0] for line in said.splitlines()][:3] == ["bare", "uprobe", "preload"], said
