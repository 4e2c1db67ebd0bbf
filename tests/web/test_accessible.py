# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of html and flamegraph have nothing that axe-core holds against them, neither as they open nor in use."""

import pathlib

import pytest

from conftest import unavailable

AXE = pathlib.Path("/var/cache/allocprof/axe-core/axe.min.js")


@pytest.fixture
def violations(page):
    """violations(): sentences on what axe-core finds in the page as it is."""
    if not AXE.exists():
        unavailable("axe-core is not installed: scripts/setup --ci installs it")

    def find():
        page.evaluate(f"(() => {{ {AXE.read_text()}\n}})()")
        return page.evaluate("""axe.run().then((results) => results.violations.flatMap((rule) => rule.nodes.map(
            (node) => `${rule.id} (${rule.impact}): ${node.target}: ${node.failureSummary}`)))""")
    return find


PAGES = {
    "html": ["html"],
    "html_of_source": ["html", "--source"],
    "html_of_two": ["html", "--base"],
    "html_of_blocks": ["html", "--events"],
    "flamegraph": ["flamegraph"],
    "flamegraph_of_two": ["flamegraph", "--base"],
    "chart": ["flamegraph", "--chart", "--events"],
}


@pytest.mark.parametrize("words", PAGES.values(), ids=PAGES.keys())
def test_pages(page, run, story, case_study, violations, tmp_path, words):
    path = tmp_path / "page.html"
    data = [*words, story[0], "-i", story[1]] if "--base" in words else [*words, "-i", case_study]
    if "--events" in words:
        logged = tmp_path / "logged.data"
        run("record", "--engine=preload", "--events", "-q", "-o", logged, "--", "ls", "/usr/bin")
        data = [*(word for word in words if word != "--events"), "-i", logged]
    run(*data, "-o", path)
    page.open(path)
    found = []

    def look(where):
        page.settle()
        found.extend(f"{where}: {one}" for one in violations())

    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        look(theme)
        for number in range(page.evaluate("document.querySelectorAll('[role=tab]').length")):
            page.evaluate(f"document.querySelectorAll('[role=tab]')[{number}].click()")
            look(f"{theme}, tab {number}")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate("document.querySelectorAll('input[type=search]').forEach((one) => { one.value = 'a'; "
                  "one.dispatchEvent(new Event('input', { bubbles: true })); })")
    page.evaluate("document.querySelector('#tab-functions')?.click()")
    page.evaluate("document.querySelector('#panel-functions [data-function]')?.click()")
    look("in use")
    page.resize(390, 800)
    look("narrow")
    assert not found, "\n".join(found)
