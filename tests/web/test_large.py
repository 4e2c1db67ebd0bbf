# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of very many stacks: what they show is what `report` says, and the memory that they need in a browser."""

import json
import os
import re
import subprocess

import pytest

from conftest import GOLDEN, SOURCE

MIB = 1 << 20
# As in tests/live/support.py.
SCALE = int(os.environ.get("ALLOCPROF_SCALE", 1))
# Bounds of memory are about twice what docs/cost.md has: a browser collects its garbage when it wants to.


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    """large(stacks, epochs, rows): a data file, made once."""
    directory = tmp_path_factory.mktemp("large")

    def make(*numbers):
        path = directory / f"{numbers[0]}.data"
        if not path.exists():
            subprocess.run([GOLDEN / "write_fixture", path], check=True)
            subprocess.run(["/usr/bin/python3", SOURCE / "tests" / "large_data.py", path, *map(str, numbers)], check=True)
        return path
    return make


@pytest.fixture
def written(run, tmp_path):
    def write(command, data):
        path = tmp_path / f"{command}.html"
        run(command, "-o", path, "-i", data)
        return path
    return write


def cards(page):
    shown = page.evaluate("[...document.querySelectorAll('.card')].map((card) => [card.dataset.card, card.title])")
    return {name: tuple(int(n.replace(",", "")) for n in re.findall(r"(\d[\d,]*) ", title)) for name, title in shown}


def use_each_part(page):
    """Each that has lists of its own of all stacks. What the browser needed at most."""
    most = page.page_bytes()
    for selector in (".flame-reversed", "#choose-end", "#tab-stacks", "#tab-leaks", ".flame-reversed", ".flame-merged",
                     "#choose-peak", ".flame-merged", "#tab-functions"):
        page.click(selector)
        page.settle()
        most = max(most, page.page_bytes())
    return most


def of_sizes(*cases):
    """The last one, of a million stacks, with ALLOCPROF_SCALE=10."""
    return list(cases if SCALE >= 10 else cases[:-1])


def in_browsers(*names):
    """Those of them alone; both with ALLOCPROF_SCALE=10."""
    return pytest.mark.parametrize("started", ["chromium", "firefox"] if SCALE >= 10 else names, indirect=True)


# The larger page is in the browser that takes half of the other's time for it, the smaller one in the other.
@in_browsers("firefox")
@pytest.mark.parametrize("numbers, opened_bytes, used_bytes", of_sizes(
    pytest.param((100_000, 500, 1_200_000), 400 * MIB, 800 * MIB, id="100000"),
    pytest.param((1_000_000, 50, 2_000_000), 1300 * MIB, 2800 * MIB, id="1000000")))
def test_report(page, large, written, run, numbers, opened_bytes, used_bytes):
    """Used, it needs more until the browser collects what is not needed any more."""
    data = large(*numbers)
    report = json.loads(run("report", "--json", "--top=1", data))["all"]
    page.open(written("html", data))
    assert page.page_bytes() < opened_bytes
    found = cards(page)
    assert found["allocated"] == (report["bytes"], report["allocations"])
    assert found["live"] == (report["live_bytes"], report["live"])
    page.evaluate("document.querySelector('#timeline canvas').focus()")
    page.keys("End")
    assert cards(page) == {"alive": (report["live_bytes"], report["live"])}
    page.click("#choose-all")
    assert use_each_part(page) < used_bytes


@in_browsers("chromium")
@pytest.mark.parametrize("numbers, most_bytes", of_sizes(
    pytest.param((100_000, 500, 1_200_000), 2000 * MIB, id="100000"),
    pytest.param((1_000_000, 50, 2_000_000), 3200 * MIB, id="1000000")))
def test_flamegraph(page, large, written, run, numbers, most_bytes):
    data = large(*numbers)
    report = json.loads(run("report", "--json", "--top=1", data))["all"]
    page.open(written("flamegraph", data))
    assert f"({report['bytes']:,} bytes)" in page.text("#figure")
    page.click(".flame-reversed")
    page.settle()
    assert f"({report['bytes']:,} bytes)" in page.text("#figure")
    # All stacks begin with malloc then.
    assert page.texts(".flame-tree tbody .name")[:2] == ["all stacks", "malloc"]
    assert page.page_bytes() < most_bytes
