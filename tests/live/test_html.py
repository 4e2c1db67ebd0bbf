# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof html in Chromium and Firefox: what each control shows is what `report` and `graph` say of the same
recording, and a span is what a log of the program's own calls says of it."""

import base64
import collections
import json
import os
import re
import sqlite3
import subprocess
import sys
import zlib

import pytest

from support import SOURCE, unavailable

sys.path[:0] = [str(SOURCE / "tests" / "web"), str(SOURCE / "tests")]

import browser as browsers  # noqa: E402
import data_digest  # noqa: E402

pytestmark = pytest.mark.slow

HOSTILE = ["</script><script>document.title = 'broken'</script>", "<img src=x onerror=\"document.title = 'broken'\">",
           "quote\" back\\slash 'single' & &lt;", "a\tb\nc\x01\x1b[31m", "\u202eright to left", "{{data}}",
           "std::vector<" + "std::pair<int, long>, " * 500 + ">"]
PHASES = 5


@pytest.fixture(scope="module", params=sorted(browsers.BROWSERS))
def browser(request):
    missing = browsers.missing(request.param)
    if missing:
        unavailable(f"{missing} is not installed")
    with browsers.Browser(request.param, width=1280, height=1000) as opened:
        yield opened


# What is held there are numbers, which the page's own code works out. How a page is used is tried in both browsers.
in_chromium = pytest.mark.parametrize("browser", ["chromium"], indirect=True)


class Page:
    """A page of `allocprof html` as a person uses it."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.open(path)

    def close(self):
        """Nothing went wrong, and nothing was asked for."""
        assert self.browser.errors() == []
        assert self.browser.requests() == []

    def x_of(self, ns):
        x, y, _, height = self.browser.area("#timeline canvas")
        left, width, end = self.browser.evaluate(
            "(({ left, width, endNs }) => [left, width, endNs])(document.querySelector('#timeline canvas').dataset)")
        return x + float(left) + ns / float(end) * float(width), y + height / 2

    def choose_moment(self, ns):
        self.browser.click_at(*self.x_of(ns))

    def choose_span(self, start_ns, end_ns):
        self.browser.drag(*self.x_of(start_ns), *self.x_of(end_ns))

    def title(self):
        return self.browser.text("#choice-title")

    def cards(self):
        """{name: (bytes, blocks)}, to the last byte."""
        shown = self.browser.evaluate(
            "[...document.querySelectorAll('.card')].map((card) => [card.dataset.card, card.title])")
        return {name: tuple(int(n.replace(",", "")) for n in re.findall(r"(\d[\d,]*) ", title)) for name, title in shown}

    def choose_card(self, name):
        self.browser.click(f".card[data-card={name}] .value")

    def show(self, panel):
        self.browser.click(f"#tab-{panel}")

    def all_rows(self, panel):
        """Each row of a panel's table as a list of texts, numbers to the last byte."""
        while self.browser.evaluate(f"!document.querySelector('#panel-{panel} .more').hidden"):
            self.browser.click(f"#panel-{panel} .more")
        return self.browser.evaluate(f"""[...document.querySelectorAll('#panel-{panel} tbody tr')].map((row) =>
            [...row.cells].map((cell) => cell.querySelector('[title]')?.title ?? (cell.querySelector('.code') ?? cell).textContent))""")

    def all_rows_of(self, selector):
        return self.browser.evaluate(f"""[...document.querySelectorAll({json.dumps(selector)})].map((row) =>
            [...row.cells].map((cell) => cell.innerText))""")

    def functions(self):
        """{name: (own, total)} of what is shown."""
        self.show("functions")
        return {name: (number_of(own), number_of(total))
                for own, _, total, _, name in self.all_rows("functions")}


def number_of(text):
    """The exact number of "1.23 KiB (1,260 bytes)" or "12 blocks"."""
    return int(re.findall(r"(-?[\d,]+) (?:bytes?|blocks?|calls?)", text)[-1].replace(",", ""))


@pytest.fixture
def page(browser):
    """page(path): the page, which must not go wrong."""
    opened = []

    def make(path):
        opened.append(Page(browser, path))
        return opened[-1]

    yield make
    for one in opened[-1:]:
        one.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("html")


@pytest.fixture
def recorded(run, allocprof, target, directory):
    """recorded(name, options, command): a data file and its page, made once."""
    def make(name, options=("--live",), command=("case_study", "400")):
        data = directory / f"{name}.data"
        if not data.exists():
            run([allocprof, "record", *options, "-o", data, "--", target(command[0]), *command[1:]], expect=0)
        return data
    return make


@pytest.fixture
def written(run, allocprof):
    """written(data, options): the page of a data file."""
    def make(data, *options):
        path = data.with_suffix(".html")
        run([allocprof, "html", "-o", path, *options, data], expect=0)
        return path
    return make


@pytest.fixture
def said(run, allocprof):
    """said("report", data, options): what a command says as JSON."""
    def read(command, data, *options):
        return json.loads(run([allocprof, command, "--json", *options, data], expect=0).stdout)
    return read


def figures(selection):
    """A selection of report as the cards have it."""
    return {"allocated": (selection["bytes"], selection["allocations"]),
            "live": (selection["live_bytes"], selection["live"]),
            "peak": (selection["peak_bytes"], selection["peak"]),
            "temporary": (selection["temporary_bytes"], selection["temporary"])}


def figures_of_all(report):
    """Of the whole recording: the peak is the counted one, and behind it stands what the stacks add up to where that differs."""
    found, counted = figures(report["all"]), report["peak_bytes"]
    of_stacks, blocks = found["peak"]
    return found if counted == of_stacks else {**found, "peak": (counted, blocks, of_stacks)}


def by_function(report, cost):
    """{name: [own, total]} of a cost; recursion counts once."""
    sums = collections.defaultdict(lambda: [0, 0])
    for stack in report["stacks"]:
        names = [report["frames"][frame]["name"] for frame in stack["frames"]]
        sums[names[0]][0] += stack["selected"][cost]
        for name in set(names):
            sums[name][1] += stack["selected"][cost]
    return {name: tuple(pair) for name, pair in sums.items() if pair[1]}


@in_chromium
def test_whole_recording(page, recorded, written, said):
    data = recorded("study")
    report = said("report", data)
    shown = page(written(data))
    assert shown.cards() == figures_of_all(report)
    assert shown.title() == "The whole recording"
    for card, cost in [("allocated", "bytes"), ("live", "live_bytes"), ("peak", "peak_bytes"),
                       ("temporary", "temporary_bytes")]:
        shown.choose_card(card)
        assert shown.functions() == by_function(report, cost)
    shown.browser.click("[data-unit=blocks]")
    assert shown.functions() == by_function(report, "temporary")
    # The peak is a button, too.
    shown.browser.click("#choose-all")
    shown.choose_card("live")
    shown.browser.click("#choose-peak")
    assert shown.functions() == by_function(report, "peak")


@in_chromium
def test_moments(page, recorded, written, said):
    """Bytes alive at a chosen moment are the graph's."""
    data = recorded("study")
    graph = said("graph", data)
    shown = page(written(data))
    alive = [sum(series["stays_bytes"][i] + series["freed_bytes"][i] for series in graph["series"])
             for i in range(len(graph["times_ns"]))]
    for i in range(0, len(alive), len(alive) // 4):
        # The closest pixel may be between two points.
        shown.choose_moment(graph["times_ns"][i])
        time = shown.title()
        matching = [alive[j] for j, ns in enumerate(graph["times_ns"]) if time_of(time) == rounded(ns, time)]
        assert matching and shown.cards()["alive"][0] in matching, time
    shown.browser.evaluate("document.querySelector('#timeline canvas').focus()")
    shown.browser.keys("End")
    assert shown.cards() == {"alive": (graph["live_bytes"], graph["live"])}
    shown.browser.click("#choose-end")
    assert shown.title() == "At the end"
    assert shown.functions() == by_function(said("report", data), "live_bytes")


def shown_bands(browser):
    """[(name, number)] of the legend, to the last byte."""
    found = browser.evaluate("[...document.querySelectorAll('#bands .band')].map((band) => "
                             "[band.querySelector('.code').textContent, band.title])")
    return [(name, number_of(title)) for name, title in found]


@in_chromium
def test_bands_are_the_graphs(page, recorded, written, said):
    """What stays and what is freed later of each stack at each moment of the table is what `graph` draws there."""
    data = recorded("study")
    graph = said("graph", data)
    pairs = [list(zip(series["stays_bytes"], series["freed_bytes"])) for series in graph["series"]]
    alive = [sum(map(sum, moment)) for moment in zip(*pairs)]
    # Stacks that could not be seen are among the others.
    own = [i for i, series in enumerate(graph["series"]) if series["stack"] and series["peak_bytes"] >= 0.005 * max(alive)]
    others = [tuple(map(sum, zip(*moment))) for moment in zip(*(pairs[i] for i in range(len(pairs)) if i not in own))]
    bands = [pairs[i] for i in own] + ([others] if others else [])
    assert any(stays for band in bands for stays, _ in band) and any(freed for band in bands for _, freed in band)
    shown = page(written(data))
    shown.browser.choose("#bands-by", "stack")
    assert [number for _, number in shown_bands(shown.browser)] == [max(map(sum, band)) for band in bands]
    shown.browser.click("#moments summary")
    shown.browser.wait_until("document.querySelector('#moments-table tbody') !== null")
    rows = shown.browser.evaluate("[...document.querySelectorAll('#moments-table tbody tr')].map((row) => "
                                  "[...row.cells].slice(1, -1).map((cell) => cell.title))")
    n = len(alive) - 1
    points = sorted({int(i * n / min(20, n) + 0.5) for i in range(min(20, n) + 1)} | {alive.index(max(alive))})
    assert len(rows) == len(points)
    for row, point in zip(rows, points):
        assert number_of(row[0]) == alive[point]
        assert [tuple(number_of(part) for part in title.split(", of which ")) for title in row[1:]] == [
            (sum(band[point]), band[point][0]) for band in bands]


def test_bands_by_thread(page, recorded, written, said):
    """Of each thread the legend says what `report` does; it is used by keyboard, and a click shows that thread alone."""
    data = recorded("phases", command=("phases",))
    database = sqlite3.connect(data)
    shown = page(written(data))
    browser = shown.browser
    browser.choose("#bands-by", "thread")
    browser.click("#choose-end")
    found = dict(shown_bands(browser))
    assert found == {name: said("report", data, f"--thread={name}")["selected"]["live_bytes"] for name in ("phases", "worker")}
    browser.click("#choose-peak")
    assert browser.evaluate("[...document.querySelectorAll('#time-tools [aria-pressed=true]')].map((one) => one.textContent)") == ["Peak"]
    browser.choose("#chart", "allocated")
    most = dict(database.execute("""SELECT name, max(bytes) FROM (SELECT threads.name AS name, sum(lifetimes.bytes) AS bytes FROM lifetimes
        JOIN counts ON counts.id = count JOIN threads ON threads.id = thread GROUP BY threads.name, born) GROUP BY name"""))
    assert dict(shown_bands(browser)) == most
    browser.evaluate("document.querySelector('#bands .band').focus()")
    browser.keys("Enter")
    name = shown_bands(browser)[0][0]
    assert browser.text("#only").startswith("only phases (") and f", {name}" in browser.text("#only")
    assert shown_bands(browser) == [(name, most[name])]
    browser.click("#only")
    browser.choose("#bands-by", "function")
    browser.click("#bands button.band")
    assert browser.text(".sandwich h3") == shown_bands(browser)[0][0]
    browser.evaluate("history.back()")
    browser.wait_until("document.querySelector('.sandwich').hidden")
    assert browser.evaluate("document.querySelector('#chart').value") == "allocated"


# Leaves blocks of two types, and of none.
TYPES = r"""
#include <cstdlib>
#include <map>
#include <unistd.h>
#include <vector>
static void *left;
int main()
{
	static auto *numbers = new std::vector<int>(1000);
	static auto *places = new std::map<int, long>;
	for (int i = 0; i < 50; i++) {
		(*places)[i] = i;
		std::vector<char>(100);
		usleep(1000);
	}
	left = malloc(numbers->size() + places->size());
}
"""


@in_chromium
def test_types(page, run, allocprof, compiled, written, said, tmp_path):
    """Bands and single blocks have the types that `report` has."""
    program = compiled(TYPES, "-g", "-static-libstdc++", compiler="g++")
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "--events", "-o", data, "--", program], expect=0)
    report = said("report", data, "--by=type", "--leaks")
    live = {report["frames"][stack["frames"][0]]["name"]: stack["selected"]["live_bytes"] for stack in report["stacks"]}
    assert live["std::vector<int>"] == 4000 and live["std::map<int, long>"] >= 50 * 48
    shown = page(written(data))
    shown.browser.choose("#bands-by", "type")
    shown.browser.click("#choose-end")
    found = {name: value for name, value in shown_bands(shown.browser) if value and "others" not in name}
    assert found == {name: live[name] for name in found} and {"std::vector<int>", "std::map<int, long>"} <= set(found)
    blocks = said("report", data, "--blocks", "--top=10000")["blocks"]
    assert collections.Counter(block["type"] for block in blocks)["std::vector<char>"] == 50
    shown.browser.click("#choose-all")
    shown.show("blocks")
    rows = shown.browser.evaluate("[...document.querySelectorAll('#panel-blocks tbody tr')].map((row) => row.cells[4].textContent)")
    assert rows == [block["type"] or "" for block in blocks[:len(rows)]] and "std::vector<char>" in rows
    text = run([allocprof, "report", "--blocks", "--top=10000", data], expect=0).stdout.decode()
    assert text.count("        std::vector<char>, freed by the same thread") == 50


PIXELS = """(() => { const canvas = document.querySelector('#timeline canvas');
    return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].join(); })()"""


def test_pointer_leaves_no_trace(page, recorded, written):
    """The line at the pointer is drawn over what is there, and gone when it leaves; so it is where another theme was chosen meanwhile."""
    browser = page(written(recorded("phases", command=("phases",)))).browser
    x, y, width, height = browser.area("#timeline canvas")

    def shown_at(place):
        browser.point(*place)
        browser.settle()
        return browser.evaluate(PIXELS)
    for theme in ("light", "dark"):
        browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        beside = shown_at((1, 1))
        first, second = (shown_at((x + share * width, y + height / 2)) for share in (0.4, 0.6))
        assert len({beside, first, second}) == 3
        assert shown_at((1, 1)) == beside


def test_bands_of_a_zoom(page, recorded, written):
    """Where the flame graph is zoomed, the bands are of that part alone; a finding zooms to the function that it names."""
    shown = page(written(recorded("phases", command=("phases",))))
    browser = shown.browser
    assert len(shown_bands(browser)) > 1
    name, number = next((name, number) for name, number in shown_bands(browser) if name == "keep")
    browser.click("#flame .flame-search")
    browser.type("keep")
    browser.keys("Enter")
    browser.evaluate("document.querySelector('#flame canvas').focus()")
    browser.keys("Enter")
    assert shown_bands(browser) == [(name, number)]


def test_resident_memory(page, recorded, written, said):
    """The table has what the data file has, to the byte, and the time line says what its dashed line is."""
    data = recorded("resident", ("--resident",), ("resident", "retained"))
    samples = said("graph", data)["rss_samples"]
    shown = page(written(data))
    shown.show("resident")
    heads = shown.browser.evaluate("[...document.querySelectorAll('#panel-resident thead th')].map((cell) => cell.textContent)")
    rows = shown.browser.evaluate("[...document.querySelectorAll('#panel-resident tbody tr')].map((row) => "
                                  "[...row.cells].map((cell) => cell.title))")
    assert len(rows) == len(samples) >= 1
    for row, sample in zip(rows, samples):
        parts = [value for name, value in sample.items() if name not in ("time_ns", "torn_ms")]
        assert number_of(row[1]) == sum(parts) == sum(map(number_of, row[2:]))
        assert number_of(row[heads.index("Allocator's, without a live block")]) == sample["free"] > 50 << 20
    assert "The dashed line is resident memory" in shown.browser.text("#timeline-help")


def test_zoom_stands_out(page, recorded, written):
    """What is alive of the stacks that the flame graph is zoomed to: at the end 40 blocks of keep, each of 1000 bytes."""
    shown = page(written(recorded("phases", command=("phases",))))
    browser = shown.browser

    def said_of_end():
        return browser.evaluate("document.querySelector('#timeline canvas').getAttribute('aria-valuetext')")

    browser.evaluate("document.querySelector('#timeline canvas').focus()")
    browser.keys("End")
    assert "zoomed" not in said_of_end()
    for is_reversed in False, True:
        if is_reversed:
            browser.evaluate("document.querySelector('#flame .flame-reversed').click()")
        browser.click("#flame .flame-search")
        browser.evaluate("document.querySelector('#flame .flame-search').select()")
        browser.type("keep")
        browser.keys("Enter")
        browser.evaluate("document.querySelector('#flame canvas').focus()")
        browser.keys("Enter")
        assert ", 39.1 KiB of it in the stacks that the flame graph is zoomed to" in said_of_end()
        browser.keys("Escape")
        assert "zoomed" not in said_of_end()


def time_of(title):
    """The time that a title names, as it is written there."""
    return re.search(r"([\d.]+) (ms|s)", title)[1]


def rounded(ns, like):
    """A time as a title writes it."""
    digits, unit = re.search(r"\d+\.?(\d*) (ms|s)", like).groups()
    return f"{ns / {'ms': 1e6, 's': 1e9}[unit]:.{len(digits)}f}"


def gaps(times, n):
    """The middles of the @n longest pauses between sorted @times."""
    pauses = sorted(((b - a, (a + b) / 2) for a, b in zip(times, times[1:])), reverse=True)[:n]
    return sorted(middle for _, middle in pauses)


def busy_times(data):
    """When epochs began or ended in which blocks were born or died, in nanoseconds since the start."""
    database = sqlite3.connect(data)
    (length,), = database.execute("SELECT value FROM meta WHERE key = 'epoch_ns'")
    epochs = {epoch for row in database.execute("SELECT born, died FROM lifetimes") for epoch in row if epoch is not None}
    return sorted(int(length) * (epoch + end) for epoch in epochs for end in (0, 1))


@in_chromium
def test_what_processes_left(page, recorded, written, said):
    """At the end only what the command left is alive; what the others left went with them."""
    data = recorded("leaves", command=("leaves",))
    shown = page(written(data))
    assert shown.cards()["live"] == (4400000, 6)
    shown.choose_card("live")
    assert "What ended processes left is among them." in shown.browser.text("#balance")
    shown.browser.click("#choose-end")
    assert shown.browser.evaluate("document.querySelector('.card input:checked').value") == "live"
    shown.browser.evaluate("document.querySelector('#timeline canvas').focus()")
    shown.browser.keys("End")
    assert shown.cards() == {"alive": (400000, 2)}
    assert "What processes left that had ended by then is not." in shown.browser.text("#balance")
    shown.choose_span(0, said("graph", data)["end_ns"])
    assert shown.cards() == {"allocated": (4400000, 6), "kept": (400000, 2), "freed": (4000000, 4)}
    assert "freed or gone with their process" in shown.browser.text("#balance")


@in_chromium
def test_span_is_that_of_a_log_of_events(page, both, written, tmp_path, target):
    """Each span between two pauses has what the program's own calls, logged by a library inside of it, come to."""
    _, _, logged = both.record([target("phases")], expect=0)
    data = tmp_path / "data"
    times = sorted(ns for life in logged.lives for ns in (life.born_ns, life.died_ns) if ns)
    of_log, of_data = gaps(times, PHASES - 1), gaps(busy_times(data), PHASES - 1)
    shown = page(written(data))

    def replayed(passes):
        lives = [life for life in logged.lives if passes(life.born_ns, life.died_ns or float("inf"))]
        return sum(life.bytes for life in lives), len(lives)

    for i, j in [(0, 1), (0, 3), (1, 2), (2, 3)]:
        since, until = of_log[i], of_log[j]
        shown.choose_span(of_data[i], of_data[j])
        assert shown.cards() == {
            "allocated": replayed(lambda born, died: since <= born < until),
            "kept": replayed(lambda born, died: since <= born < until <= died),
            "freed": replayed(lambda born, died: since <= died < until)}, (i, j)
    for at, ns in enumerate(of_data):
        shown.choose_moment(ns)
        assert shown.cards() == {"alive": replayed(lambda born, died: born < of_log[at] <= died)}


@in_chromium
def test_span_by_function(page, recorded, written):
    """What the target states of its phases 2 and 3. Of the ten blocks that these drop four are their own:
    the first phase left six."""
    data = recorded("phases", command=("phases",))
    pauses = gaps(busy_times(data), PHASES - 1)
    shown = page(written(data))
    shown.choose_span(pauses[0], pauses[2])
    expected = {"allocated": {"keep": 25 * 1000, "churn": 100 * 60, "worker": 6 * 5000},
                "kept": {"keep": (25 - 4) * 1000, "worker": 3 * 5000},
                "freed": {"keep": 10 * 1000, "churn": 100 * 60, "worker": 6 * 5000}}
    for card, owns in expected.items():
        shown.choose_card(card)
        found = shown.functions()
        assert {name: own for name, (own, _) in found.items() if name in ("keep", "churn", "worker")} == owns, card
    # One thread alone.
    shown.show("threads")
    shown.browser.click("#panel-threads [aria-label$='worker'].only")
    assert shown.cards() == {"allocated": (30000, 6), "kept": (15000, 3), "freed": (30000, 6)}
    assert set(shown.functions()) >= {"worker"} and "keep" not in shown.functions()


def stacks_of(report, *costs):
    """Of each stack the costs, sorted, with its frames."""
    return sorted((*(stack["selected"][cost] for cost in costs), report["frames"][stack["frames"][0]]["name"])
                  for stack in report["stacks"])


@in_chromium
def test_leaks_and_temporary_blocks(page, recorded, written, said):
    data = recorded("study")
    shown = page(written(data))
    shown.show("leaks")
    report = said("report", data, "--leaks", "--at-exit")
    found = shown.all_rows("leaks")
    assert sorted((number_of(row[0]), number_of(row[1]), row[-1].split(" ")[0]) for row in found) == \
        stacks_of(report, "live_bytes", "live")
    assert [number_of(row[0]) for row in found] == [s["selected"]["live_bytes"] for s in report["stacks"]]
    assert [{"no": False, "undecided": None}.get(row[4], True) for row in found] == [s["growth"]["growing"] for s in report["stacks"]]
    shown.show("temporary")
    report = said("report", data, "--sort=temporary")
    assert sorted((number_of(row[0]), number_of(row[1]), row[-1].split(" ")[0]) for row in shown.all_rows("temporary")) == \
        stacks_of(report, "temporary", "temporary_bytes")
    # All frames of a stack, once it is opened.
    shown.browser.click("#panel-temporary tbody summary")
    shown.browser.wait_until("document.querySelector('#panel-temporary tbody li') !== null")
    frames = shown.browser.texts("#panel-temporary tbody tr:first-child li .code")
    assert frames == ["malloc"] + [report["frames"][frame]["name"] for frame in report["stacks"][0]["frames"]]


@in_chromium
def test_histograms(page, recorded, written, said):
    data = recorded("study")
    report = said("report", data)
    shown = page(written(data))
    shown.show("histograms")
    for i, key in enumerate(["size_histogram", "lifetime_histogram_ns"]):
        blocks = shown.browser.evaluate(f"""[...document.querySelectorAll('#panel-histograms table')][{i}].querySelectorAll(
            'tbody tr').values().map((row) => row.cells[1]?.innerText ?? '0').toArray()""")
        assert [int(n.replace(",", "")) for n in blocks if n != "0"] == [bucket["blocks"] for bucket in report[key]]


def thread_rows(browser):
    """[(name, own)] of the rows that are unfolded, to the last byte."""
    return [(name, number_of(title)) for name, title in browser.evaluate(
        "[...document.querySelectorAll('.threads tbody tr')].map((row) => [row.querySelector('.code').textContent, row.cells[1].title])")]


@in_chromium
def test_programs(page, recorded, written, said):
    """Processes are below their program, whose sum stands beside it; a program is left out with all of its processes, by keyboard."""
    data = recorded("leaves", command=("leaves",))
    shown = page(written(data))
    browser = shown.browser
    shown.show("threads")
    found = dict(thread_rows(browser))
    report = said("report", data)["selected"]["bytes"]
    database = sqlite3.connect(data)
    (processes,), = database.execute("SELECT count(DISTINCT process) FROM threads")
    assert found["leaves"] == report and processes > 1
    assert f"{processes} processes" in browser.text(".threads tbody tr .name-cell")
    ofs = [value for name, value in found.items() if name.startswith("leaves (")]
    assert len(ofs) == processes and sum(ofs) == report
    browser.evaluate("document.querySelector('.threads .fold[aria-expanded]').focus()")
    browser.keys("Enter")
    assert thread_rows(browser) == [("leaves", report)]
    assert browser.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
    browser.keys("Space")
    assert dict(thread_rows(browser)) == found
    pid = re.search(r"\((\d+)\)", next(name for name in found if name.startswith("leaves (")))[1]
    browser.evaluate(f"document.querySelector('.threads [aria-label=\"Show leaves ({pid})\"]').focus()")
    browser.keys("Space")
    assert browser.evaluate("document.querySelector('.threads .shown').indeterminate")
    assert shown.cards()["allocated"][0] == report - found[f"leaves ({pid})"]
    browser.evaluate("document.querySelector('.threads .shown').click()")
    assert shown.cards()["allocated"][0] == report


@in_chromium
def test_control_groups(page, recorded, written, said, tmp_path):
    """Where there are several, programs are below them, and bands are by them; arguments stand beside a process."""
    data = tmp_path / "grouped.data"
    data.write_bytes(recorded("leaves", command=("leaves",)).read_bytes())
    with sqlite3.connect(data) as database:
        database.executescript("""DELETE FROM control_groups; DELETE FROM arguments;
            INSERT INTO control_groups SELECT id, '/' || (id % 2), 'web' || (id % 2) FROM processes;
            INSERT INTO arguments SELECT id, '/usr/bin/leaves --number ' || id FROM processes""")
        data_digest.renew(database)
        pid, number = database.execute("SELECT pid, id FROM processes ORDER BY id LIMIT 1").fetchone()
    shown = page(written(data))
    browser = shown.browser
    shown.show("threads")
    found = dict(thread_rows(browser))
    wanted = {name: said("report", data, "--where", f"cgroup = '{name}'")["selected"] for name in ("web0", "web1")}
    assert {name: found[name] for name in wanted} == {name: totals["bytes"] for name, totals in wanted.items()}
    names = browser.texts(".threads .name-cell")
    assert any(name.endswith(f"leaves ({pid}) --number {number}") for name in names), names
    browser.choose("#bands-by", "cgroup")
    legend = browser.texts("#bands li")
    assert sorted(text.split()[0] for text in legend) == ["web0", "web1"]
    browser.click("#bands li button")
    assert shown.cards() == figures(wanted[legend[0].split()[0]])
    browser.evaluate("document.querySelector('#only').click()")
    browser.choose("#bands-by", "process")
    assert all("--number" in text for text in browser.texts("#bands li") if "others" not in text)
    # Found by its arguments.
    browser.click("#panel-threads input[type=search]")
    browser.type(f"--number {number}")
    assert [name for name, _ in thread_rows(browser)] == [f"web{number % 2}", "leaves", f"leaves ({pid})"]


@in_chromium
def test_tables_say_what_they_are_of(page, recorded, written):
    """A table either follows the moment and the span, or says that it does not."""
    data = recorded("study")
    shown = page(written(data))
    browser = shown.browser
    for key, words in (("End", "not of the moment"), ("Shift+Left", "not of the span alone")):
        browser.evaluate("document.querySelector('#timeline canvas').focus()")
        browser.keys(key)
        for name in browser.evaluate("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.id)"):
            browser.click(f"#{name}")
            assert (words in browser.text("#of-whole")) == (name not in ("tab-functions", "tab-stacks", "tab-threads")), name
    browser.click("#choose-all")
    browser.click("#tab-leaks")
    assert browser.evaluate("document.querySelector('#of-whole').hidden")


@in_chromium
def test_threads(page, recorded, written, said):
    """What is left is what report says of that thread."""
    data = recorded("phases", command=("phases",))
    shown = page(written(data))
    shown.show("threads")
    whole, *rows = thread_rows(shown.browser)
    assert whole[0].startswith("phases (") and whole[1] == said("report", data)["selected"]["bytes"]
    assert dict(rows) == {
        name: said("report", data, f"--thread={name}")["selected"]["bytes"] for name in ("phases", "worker")}
    shown.browser.click("#panel-threads input[aria-label$='worker']")
    assert shown.cards() == figures(said("report", data, "--thread=phases")["selected"])
    assert shown.functions() == by_function(said("report", data, "--thread=phases"), "bytes")
    shown.show("threads")
    shown.browser.click("#panel-threads .filter input")
    shown.browser.type("work")
    assert [name for name, _ in thread_rows(shown.browser)[1:]] == ["worker"]
    shown.browser.click("#panel-threads .filter button:nth-of-type(2)")
    assert shown.cards() == figures(said("report", data, "--thread=worker")["selected"])
    shown.browser.click("#panel-threads .filter button:nth-of-type(1)")
    assert shown.cards() == figures_of_all(said("report", data))


def shown_state(shown):
    """What the page shows, as far as the state in its address is about it."""
    return shown.browser.evaluate("""({
        title: document.querySelector('#choice-title').textContent, card: document.querySelector('.card input:checked').value,
        unit: document.querySelector('#units [aria-pressed=true]').dataset.unit,
        panel: document.querySelector('#tabs [aria-selected=true]').id, only: document.querySelector('#only').textContent,
        zoom: document.querySelector('#flame .flame-reset').disabled ? null
            : document.querySelector('#timeline canvas').getAttribute('aria-valuetext'),
        find: document.querySelector('#flame .flame-search').value, matches: document.querySelector('#flame .flame-matches').textContent,
        switches: [...document.querySelectorAll('#flame .flame-switches :is(select, button)')].map(
            (one) => one.value || one.getAttribute('aria-pressed')),
    })""")


def go_back(browser):
    browser.evaluate("new Promise((done) => { addEventListener('popstate', () => setTimeout(done), { once: true }); history.back(); })")


def test_findings(page, recorded, written, said):
    """What report says first, each a link that shows it: the part of the recording, the cost, and the function."""
    data = recorded("planted", command=("case_study",))
    findings = said("report", data)["findings"]
    path = written(data)
    shown = page(path)
    browser = shown.browser
    assert browser.texts("#findings .finding") == [
        f"{finding['function']} {finding['says']}\n{finding['detail']}" for finding in findings]
    first = shown_state(shown)
    expected = {"growing": ("live", "bytes", "linear_leak", "live_bytes"), "peak": ("peak", "bytes", "leak_until_end", "peak_bytes"),
                "churn": ("allocated", "blocks", "mixture", "allocations"), "advice": ("allocated", "blocks", "mixture", "allocations")}
    assert [finding["kind"] for finding in findings] == list(expected)
    # At 1280 by 800 the time line is on the first screen, and the flame graph begins there.
    browser.resize(1280, 800)
    assert browser.area("#timeline canvas")[1] < 400 and browser.area("#flame .flame-canvas")[1] < 700
    browser.resize(1280, 1000)
    for kind, (card, unit, function, cost) in expected.items():
        browser.click(f".finding[data-kind={kind}]")
        state = shown_state(shown)
        assert (state["card"], state["unit"]) == (card, unit)
        assert shown.functions()[function][1] == by_function(said("report", data), cost)[function][1]
        # The flame graph shows what the function has, and that alone.
        browser.evaluate("document.querySelector('#flame canvas').focus()")
        assert state["zoom"] is not None and browser.text(".flame-tip .name") == function
        browser.evaluate("document.querySelector('#flame .flame-reset').click()")
        assert shown_state(shown)["zoom"] is None
        go_back(browser)
        assert shown_state(shown)["zoom"] == state["zoom"]
        browser.click("#tab-functions")
        if kind == "advice":
            assert state["panel"] == "tab-advice"
        browser.open(path)
        assert shown_state(shown) == first


def test_findings_of_two(page, recorded, written, run, allocprof):
    """What moved, as diff says it."""
    before, after = recorded("planted", command=("case_study",)), recorded("longer", command=("case_study", "3000"))
    moved = json.loads(run([allocprof, "diff", "--json", before, after], expect=0).stdout)["findings"]
    shown = page(written(after, f"--base={before}"))
    assert shown.browser.texts("#findings .finding") == [f"{finding['says']}\n{finding['detail']}" for finding in moved]
    shown.browser.click(".finding[data-kind=peak]")
    state = shown_state(shown)
    assert (state["card"], state["title"]) == ("peak", "At the peak") and state["zoom"] is not None


@in_chromium
def test_advice(page, recorded, written, said):
    """All of it, in the order of report."""
    data = recorded("planted", command=("case_study",))
    advice = said("report", data, "--advice")["advice"]
    shown = page(written(data))
    shown.show("advice")
    rows = shown.all_rows_of("#panel-advice tbody tr")
    assert len(rows) == len(advice) > 0
    for one, (says, saves, function, _) in zip(advice, rows):
        assert one["saved_calls"] == 0 or f"{one['saved_calls']:,} allocations" in saves
    shown.browser.click("#panel-advice a")
    assert shown_state(shown)["zoom"] is not None and shown_state(shown)["panel"] == "tab-advice"


def test_state_is_in_the_address(page, recorded, written):
    """Back undoes one step after the other; a link shows the same; what others write into it breaks nothing."""
    path = written(recorded("phases", command=("phases",)))
    shown = page(path)
    browser = shown.browser
    states = [shown_state(shown)]

    def did(action):
        action()
        states.append(shown_state(shown))
        assert states[-1] != states[-2]

    did(lambda: browser.click("#choose-end"))
    did(lambda: browser.click("[data-unit=blocks]"))
    did(lambda: browser.click("#tab-stacks"))
    did(lambda: browser.choose("#flame .flame-layout", "flame"))
    did(lambda: browser.evaluate("document.querySelector('#flame .flame-reversed').click()"))
    did(lambda: (browser.click("#flame .flame-search"), browser.type("keep")))
    did(lambda: (browser.keys("Enter"), browser.evaluate("document.querySelector('#flame canvas').focus()"), browser.keys("Enter")))
    browser.click("#tab-threads")
    states.append(shown_state(shown))
    did(lambda: browser.click("#panel-threads [aria-label$='worker'].only"))
    fragment = browser.evaluate("location.hash")
    browser.open(path, fragment)
    assert shown_state(shown) == states[-1]
    for fragment in ("#at=99999999&card=%00&unit=x&zoom=4294967295&threads=7.-1.x&panel=toString&find=(&regexp=1",
                     "#span=5-3&card=constructor&colour=__proto__&layout=hasOwnProperty&at=-1", "#%", "#zoom=1e9&threads="):
        browser.open(path, fragment)
        assert "NaN" not in browser.evaluate("document.body.innerText")
    browser.open(path)
    for action in ("#choose-end", "[data-unit=blocks]", "#tab-stacks"):
        browser.click(action)
    for state in states[2::-1]:
        go_back(browser)
        assert shown_state(shown) == state


@in_chromium
def test_threads_that_are_left_out_are_named(page, recorded, written):
    """Above all that lacks them; a click on that shows all. Modules keep their colours."""
    data = recorded("phases", command=("phases",))
    shown = page(written(data))
    browser = shown.browser
    colours = """Object.fromEntries([...document.querySelectorAll('#flame .flame-legend li')].map((item) =>
        [item.textContent, item.querySelector('.swatch').style.background]))"""
    browser.choose("#flame .flame-colour", "module")
    modules = browser.evaluate(colours)
    assert next(iter(modules)) == "phases"
    assert browser.evaluate("document.querySelector('#only').hidden")
    shown.show("threads")
    browser.click("#panel-threads [aria-label$='worker'].only")
    assert re.fullmatch(r"only phases \(\d+\), worker \u2715", browser.text("#only"))
    assert browser.evaluate(colours) == modules
    browser.click("#only")
    assert browser.evaluate("document.querySelector('#only').hidden")
    assert browser.evaluate("[...document.querySelectorAll('#panel-threads input[type=checkbox]')].every((one) => one.checked)")


@in_chromium
def test_peak_is_of_bytes(page, recorded, written, said):
    """Its line is not in the chart of blocks, of which there may be more at another time."""
    data = recorded("study")
    shown = page(written(data))
    peak = "document.querySelector('#timeline canvas').dataset.peak"
    assert shown.browser.evaluate(peak) == str(said("report", data)["peak_bytes"])
    shown.browser.click("[data-unit=blocks]")
    assert shown.browser.evaluate(peak) == ""
    shown.browser.click("#choose-peak")
    assert shown.title() == "At the peak"


@in_chromium
def test_phone(page, recorded, written):
    """On 390 pixels nothing is beside the window: a row's name has a line of its own."""
    shown = page(written(recorded("study")))
    browser = shown.browser
    browser.resize(390, 844)
    try:
        browser.settle()
        for panel in ("functions", "stacks", "leaks", "temporary", "histograms", "threads", "ledger"):
            shown.show(panel)
            wide = browser.evaluate("""[...document.querySelectorAll('html, .panel:not([hidden]), #flame .flame-tree-scroll')]
                .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.id || one.className)""")
            assert wide == [], panel
        shown.show("functions")
        name, number = (browser.area(f"#panel-functions tbody tr td{cell}") for cell in (".name-cell", ".number"))
        assert name[1] >= number[1] + number[3] and name[2] > 300
        heights = browser.evaluate("[...document.querySelectorAll('#flame .flame-tree tbody tr')].map((row) => row.offsetHeight)")
        assert max(heights) < 90
    finally:
        browser.resize(1280, 1000)


def test_table_of_functions(page, recorded, written, said):
    """Searched, and sorted both ways."""
    data = recorded("study")
    shown = page(written(data))
    expected = by_function(said("report", data), "bytes")
    owns = [own for own, _ in shown.functions().values()]
    assert owns == sorted(owns, reverse=True)
    shown.browser.click("#panel-functions th:nth-child(3) button")
    totals = [total for _, total in shown.functions().values()]
    assert totals == sorted(totals, reverse=True)
    shown.browser.click("#panel-functions th:nth-child(3) button")
    totals = [total for _, total in shown.functions().values()]
    assert totals == sorted(totals) and len(totals) == len(expected)
    shown.browser.click("#panel-functions input")
    shown.browser.type("LEAK")
    assert set(shown.functions()) == {name for name in expected if "leak" in name} != set()


def test_function_between_callers_and_callees(page, recorded, written, said):
    """A click on a function shows what report says of the stacks through it, its boxes in the flame graph, and on both sides what
    is there; a moment, a link and Back change that."""
    data = recorded("study")
    path = written(data)
    shown = page(path)
    browser = shown.browser
    names = list(by_function(said("report", data), "bytes"))

    def choose(name):
        browser.evaluate(f"""[...document.querySelectorAll('#panel-functions [data-function]')].find(
            (one) => one.innerText === {json.dumps(name)}).click()""")

    def figures_shown():
        return browser.text(".sandwich h3"), browser.text(".sandwich p")

    def details_of(side, from_root):
        """What is said of the first box so many rows from the function."""
        x, y, width, height = browser.area(f".sandwich canvas[aria-label^='{side}']")
        at = height - 10 - 20 * from_root if side == "Callers" else 10 + 20 * from_root
        browser.point(1, 1)
        browser.point(x + width / 4, y + at)
        return browser.evaluate("[...document.querySelectorAll('.sandwich .flame-tip')].find((one) => !one.hidden)?.innerText")

    assert browser.evaluate("document.querySelector('.sandwich').hidden")
    for name in names:
        choose(name)
        expected = said("report", data, "--through", name)
        chosen, text = figures_shown()
        whole = expected["selected"]["bytes"]
        assert chosen == name and " through it, " in text
        assert number_of(browser.evaluate("document.querySelector('.sandwich p').title")) == whole
        for side in ("Callers", "Callees"):
            assert f"{whole:,}" in details_of(side, 0)
        stacks = [[expected["frames"][frame]["name"] for frame in stack["frames"]] for stack in expected["stacks"]]
        around = {"Callers": {frames[i + 1] for frames in stacks for i, one in enumerate(frames[:-1]) if one == name},
                  "Callees": {frames[i - 1] for frames in stacks for i, one in enumerate(frames) if one == name and i}}
        for side, ones in around.items():
            if ones:
                assert any(one in details_of(side, 1) for one in ones), (name, side)
        assert "through 1 function" in browser.text("#flame .flame-matches")
    fragment = browser.evaluate("location.hash")
    last = figures_shown()
    go_back(browser)
    assert figures_shown()[0] == names[-2]
    browser.open(path, fragment)
    assert figures_shown() == last
    browser.click("[data-unit=blocks]")
    assert "blocks" in figures_shown()[1]
    browser.click(".sandwich button")
    assert browser.evaluate("document.querySelector('.sandwich').hidden && document.activeElement.dataset.function !== undefined")
    assert browser.text("#flame .flame-matches") == ""
    browser.keys("Enter")
    assert figures_shown()[0] == last[0]


def by_line(report, name, cost):
    """{line: (own, total)} of a cost in a file, of a report with --lines; recursion counts once."""
    sums = collections.defaultdict(lambda: [0, 0])
    for stack in report["stacks"]:
        lines = [re.search(r"\((.+):(\d+)\)$", report["frames"][frame]["name"]) for frame in stack["frames"]]
        lines = [int(line[2]) if line and line[1] == name else None for line in lines]
        if lines[0]:
            sums[lines[0]][0] += stack["selected"][cost]
        for line in set(lines) - {None}:
            sums[line][1] += stack["selected"][cost]
    return {line: tuple(pair) for line, pair in sums.items() if pair[1]}


def test_source(page, recorded, written, said):
    """Beside each line stands what report --lines has there, at the peak and of a span, and around it what the file has."""
    data = recorded("study")
    shown = page(written(data, "--source"))
    browser = shown.browser
    source = (SOURCE / "tests" / "targets" / "case_study.c").read_text().splitlines()
    browser.evaluate("[...document.querySelectorAll('#panel-functions button.place')].find((one) => one.innerText.includes('case_study.c')).focus()")
    browser.keys("Enter")
    assert browser.evaluate("document.activeElement.id") == "tab-source"
    assert "case_study.c" in browser.evaluate("document.querySelector('#source-file').selectedOptions[0].textContent")

    def rows():
        return browser.evaluate("[...document.querySelectorAll('.source tr[data-line]')].map((row) => "
                                "[+row.dataset.line, row.cells[0].title, row.cells[1].title, row.cells[4].textContent])")

    def numbers():
        return {line: (number_of(own) if own else 0, number_of(total)) for line, own, total, _ in rows() if total}
    assert numbers() == by_line(said("report", data, "--lines"), "case_study.c", "bytes")
    for line, _, _, text in rows():
        assert text == source[line - 1].replace("\t", "    ")
    near = {line + i for line in numbers() for i in range(-5, 6)}
    assert {line for line, *_ in rows()} == {line for line in near if 1 <= line <= len(source)}
    browser.click("#choose-peak")
    assert numbers() == by_line(said("report", data, "--lines"), "case_study.c", "peak_bytes")
    browser.click("[data-unit=blocks]")
    assert numbers() == by_line(said("report", data, "--lines"), "case_study.c", "peak")
    others = browser.evaluate("[...document.querySelectorAll('#source-file option')].map((one) => [one.value, one.textContent])")
    value = next(value for value, text in others if "libc-start.c" in text)
    browser.choose("#source-file", value)
    assert "Of this file: its directory is not known." in browser.text("#panel-source")
    fragment = browser.evaluate("location.hash")
    browser.open(data.with_suffix(".html"), fragment)
    assert browser.evaluate("document.querySelector('#source-file').value") == value


def blocks_of(path):
    """What the page has inside, by name."""
    found = re.findall(r'data-name="([^"]*)" data-type="[^"]*">([^<]*)<', path.read_text())
    return {name: zlib.decompress(base64.b64decode(text)) for name, text in found}


SECRET = b"the secret line"


def test_source_of_hostile_files(recorded, run, allocprof, tmp_path, public_directory):
    """What the data file calls source is read only if it is a regular file of text with a name of source, that the one who called
    sudo could read; nothing at all without --source."""
    data = tmp_path / "hostile.data"
    directory = public_directory
    lines = b"".join(b"line %d\n" % i for i in range(1, 400))
    (directory / "fine.c").write_bytes(lines)
    (directory / "secret").write_bytes(SECRET * 400)
    (directory / "link.c").symlink_to(directory / "secret")
    (directory / "other.c").symlink_to(directory / "fine.c")
    (directory / "zero.c").symlink_to("/dev/zero")
    (directory / "directory.c").mkdir()
    (directory / "binary.c").write_bytes(lines + b"\0" + SECRET)
    (directory / "short.c").write_bytes(b"one\n")
    (directory / "empty.c").write_bytes(b"")
    (directory / "long.c").write_bytes((b"x" * 5000 + b"\n") * 400)
    (directory / "own.c").write_bytes(SECRET)
    (directory / "own.c").chmod(0o600)
    with open(directory / "large.c", "wb") as file:
        file.truncate(1 << 40)
    for path in directory.iterdir():
        os.utime(path, (0, 0), follow_symlinks=False)
    (directory / "newer.c").write_bytes(lines)
    os.utime(directory / "newer.c", (1 << 33, 1 << 33))
    os.mkfifo(directory / "fifo.c")
    fewer = "it has fewer lines than when it was compiled"
    notes = {
        "fine.c": None, "other.c": None, "newer.c": "it was changed after the recording began", "long.c": None, "short.c": fewer, "empty.c": fewer, "secret": "its name is not one of source",
        "link.c": "it is a link to a file whose name is not one of source", "zero.c": "it is no regular file",
        "directory.c": "it is no regular file", "binary.c": "it is not text", "large.c": "it is too large",
        "fifo.c": "it is no regular file", "none.c": "it is not there", "own.c": "it cannot be read",
    }
    names = [*notes, "../relative.c", "/proc/self/environ", "\x1b[31m<script>.c"]
    page = tmp_path / "page.html"
    found, texts = {}, []
    # The program has fewer lines than that.
    for part in (names[:9], names[9:]):
        data.write_bytes(recorded("study").read_bytes())
        with sqlite3.connect(data) as database:
            (file,), *_ = database.execute("SELECT id FROM files WHERE path LIKE '%case_study.c'")
            (number,), = database.execute("SELECT max(id) FROM files")
            frames = [row[0] for row in database.execute("SELECT frame FROM lines WHERE file = ? ORDER BY line DESC", (file,))]
            for i, name in enumerate(part):
                path = name if "/" in name else str(directory / name)
                database.execute("INSERT INTO files VALUES(?, ?)", (number + 1 + i, path))
                database.execute("UPDATE lines SET file = ? WHERE frame = ? AND file = ?", (number + 1 + i, frames[i], file))
            data_digest.renew(database)
        env = {**os.environ, "SUDO_UID": "12345", "SUDO_GID": "12345"}
        run([allocprof, "html", "--source", "-o", page, data], expect=0, env=env, timeout=60)
        blocks = blocks_of(page)
        assert SECRET not in b"".join(blocks.values())
        found |= {os.path.basename(path): note for path, note in json.loads(blocks["after.source.files"])}
        texts += blocks["after.source.text"].split(b"\0")
    for name, note in notes.items():
        assert found[name] == note, name
    assert found["relative.c"] == "its directory is not known" and found["environ"] == notes["secret"]
    assert any(text.startswith(b"line ") for text in texts)
    assert max(len(line) for text in texts for line in text.split(b"\n")) == 400
    run([allocprof, "html", "-o", page, data], expect=0)
    assert not [name for name in blocks_of(page) if "source" in name]


def test_source_without_room(recorded, run, allocprof, tmp_path, public_directory):
    """What the page's bound cuts off, and a place behind the end of its file, is said of the file."""
    data, page = tmp_path / "long.data", tmp_path / "page.html"
    data.write_bytes(recorded("study").read_bytes())
    paths = [public_directory / f"{name}.c" for name in ("first", "second", "third", "fourth", "near")]
    for path in paths:
        # 4 MB each, of which 8 MiB hold two.
        path.write_bytes((b"x" * 399 + b"\n") * 10000)
        os.utime(path, (0, 0))
    (public_directory / "near.c").write_bytes(b"line\n" * 9998)
    os.utime(public_directory / "near.c", (0, 0))
    with sqlite3.connect(data) as database:
        (number,), = database.execute("SELECT max(id) FROM files")
        frames = list(database.execute("SELECT frame, function FROM lines WHERE inlined = 0 AND frame IN "
                                       "(SELECT value FROM counts JOIN stacks ON stacks.id = stack, json_each(frames))"))
        places = []
        for i, path in enumerate([paths[-1], *paths[:-1]]):
            database.execute("INSERT INTO files VALUES(?, ?)", (number + 1 + i, str(path)))
            lines = range(5, 10001, 10) if path != paths[-1] else [10000]
            places += [(number + 1 + i, line) for line in lines]
        share = -(-len(places) // len(frames))
        for i, (frame, function) in enumerate(frames):
            inlined = places[i * share:(i + 1) * share]
            database.execute("DELETE FROM lines WHERE frame = ?", (frame,))
            database.executemany("INSERT INTO lines(frame, depth, function, file, line, inlined) VALUES(?, ?, ?, ?, ?, ?)",
                                 [(frame, depth, function, file, line, depth + 1 < len(inlined))
                                  for depth, (file, line) in enumerate(inlined)])
        data_digest.renew(database)
    run([allocprof, "html", "--source", "--lines", "-o", page, data], expect=0, timeout=60)
    blocks = blocks_of(page)
    notes = {os.path.basename(path): note for path, note in json.loads(blocks["after.source.files"])}
    room = "the page has no room for all lines of source, and lacks some of these"
    assert {name: notes[name] for name in ("near.c", "first.c", "second.c", "third.c", "fourth.c")} == {
        "near.c": "it has fewer lines than when it was compiled", "first.c": None, "second.c": None, "third.c": room, "fourth.c": room}
    assert len(blocks["after.source.text"]) <= (8 << 20) + 10000


@in_chromium
def test_band_of_one_of_many_processes(page, recorded, written, said):
    """Of a program with more processes than are listed one by one, a click on a band shows its process alone, and so does the link."""
    data = recorded("processes", command=("many_stacks", "-p", "110", "300", "10"))
    pids = [pid for pid, in sqlite3.connect(data).execute("SELECT pid FROM processes")]
    assert len(pids) > 100
    page_path = written(data)
    shown = page(page_path)
    browser = shown.browser
    browser.choose("#bands-by", "process")
    browser.click("#bands button.band")
    text = browser.text("#only")
    pid = int(re.search(r"only many_stacks \((\d+)\)", text)[1])
    assert pid in pids
    expected = said("report", data, f"--process={pid}")["selected"]["bytes"]
    assert shown.cards()["allocated"][0] == expected < said("report", data)["selected"]["bytes"]
    browser.open(page_path, browser.evaluate("location.hash"))
    assert browser.text("#only") == text and shown.cards()["allocated"][0] == expected
    browser.click("#only")
    assert shown.cards()["allocated"][0] == said("report", data)["selected"]["bytes"]


@in_chromium
def test_places_of_a_base_alone(page, recorded, written):
    """A place leads to a file of source only where the page has it: files of the recording that is compared with are not read."""
    before = recorded("study")
    shown = page(written(recorded("phases", command=("phases",)), "--source", f"--base={before}"))
    places = shown.browser.evaluate("[...document.querySelectorAll('#panel-functions tbody tr .place')].map((one) => "
                                    "[one.tagName, one.textContent])")
    buttons, texts = (" ".join(text for tag, text in places if (tag == "BUTTON") == is_button) for is_button in (True, False))
    assert "phases.c" in buttons and "case_study.c" not in buttons
    assert "case_study.c" in texts


@in_chromium
def test_ledger(page, recorded, written, said, run, allocprof, tmp_path):
    """The entries, and the sentences of report about what is missing."""
    data = tmp_path / "lacking.data"
    data.write_bytes(recorded("study").read_bytes())
    with sqlite3.connect(data) as database:
        database.execute("UPDATE ledger SET value = value + 7 WHERE name IN ('events', 'lost', 'lost_ring_full')")
        database.execute("INSERT INTO meta VALUES ('unknown_functions', '/lib/liballoc.so: get_<b>memory</b>')")
        data_digest.renew(database)
    sentences = run([allocprof, "report", data]).stderr.decode().replace("allocprof: ", "").splitlines()
    assert len(sentences) > 1
    shown = page(written(data))
    assert shown.browser.text("#findings .missing summary") == f"Not complete: {len(sentences)} remarks"
    shown.browser.click("#findings .missing summary")
    assert shown.browser.texts("#findings .missing li") == sentences
    shown.show("ledger")
    assert shown.browser.texts("#panel-ledger .sentences li") == sentences
    assert "Not complete" in shown.browser.texts("#panel-ledger h3")
    rows = shown.all_rows_of("#panel-ledger tbody tr")
    assert [name for name, _, meaning in rows if not meaning] == []
    entries = {name: int(value.replace(",", "")) for name, value, _ in rows}
    assert entries == {name: value for name, value in said("report", data)["ledger"].items() if value or "_" not in name}


def test_keyboard_alone(page, recorded, written, said):
    """From the top of the page: moments, spans, cards and tabs."""
    data = recorded("phases", command=("phases",))
    graph = said("graph", data)
    shown = page(written(data))
    browser = shown.browser

    def go_to(selector):
        for _ in range(40):
            if browser.evaluate(f"document.activeElement?.matches({json.dumps(selector)}) ?? false"):
                return
            browser.keys("Tab")
        raise AssertionError(f"Tab never comes to {selector}")

    go_to("#timeline canvas")
    browser.keys("End")
    assert shown.cards() == {"alive": (graph["live_bytes"], graph["live"])}
    browser.keys("Home")
    assert shown.cards() == {"alive": (0, 0)}
    browser.keys("Shift+End")
    report = said("report", data)
    whole = report["all"]
    assert shown.cards() == {"allocated": (whole["bytes"], whole["allocations"]),
                             "kept": (whole["live_bytes"], whole["live"]),
                             "freed": (whole["bytes"] - whole["live_bytes"], whole["allocations"] - whole["live"])}
    assert browser.evaluate("document.activeElement.getAttribute('aria-valuetext')").startswith("from 0")
    browser.keys("Shift+Left", "Shift+PageDown")
    assert shown.title().startswith("From 0")
    browser.keys("Escape")
    assert shown.cards() == figures_of_all(report)
    browser.keys("Right")
    assert shown.title().startswith("At ")
    assert shown.cards()["alive"][0] == graph["drawn_peak_bytes"]
    browser.keys("Escape")
    go_to(".card input")
    browser.keys("Right")
    assert browser.evaluate("document.querySelector('.card input:checked').value") == "live"
    go_to("#tab-functions")
    browser.keys("Right", "Right")
    assert browser.evaluate("document.activeElement.id") == "tab-leaks"
    assert browser.evaluate("document.querySelector('#panel-leaks').hidden") is False


def test_marks(page, recorded, written, tmp_path):
    """What happened to the recording is a list of buttons below the time line, which choose its moments; names are text."""
    data = tmp_path / "marked.data"
    data.write_bytes(recorded("study").read_bytes())
    with sqlite3.connect(data) as database:
        (end_ns,), = database.execute("SELECT CAST(value * 1e9 AS INTEGER) FROM meta WHERE key = 'elapsed_seconds'")
        database.executemany("INSERT INTO marks VALUES (?, ?, ?)", [
            (end_ns // 4, "dump", "rss=<b>2G</b>"), (end_ns // 2, "stop", ""), (end_ns // 2 + 1, "start", "")])
        data_digest.renew(database)
    shown = page(written(data))
    browser = shown.browser
    texts = browser.texts("#marks button")
    assert [text.split(": ")[1] for text in texts] == ["copy at rss=<b>2G</b>", "stopped", "started"]
    browser.evaluate("document.querySelector('#marks button').focus()")
    browser.keys("Enter")
    # A moment is where an epoch begins.
    epoch_ns = int(dict(database.execute("SELECT key, value FROM meta"))["epoch_ns"])
    assert browser.evaluate("location.hash") == f"#at={round(end_ns // 4 / epoch_ns)}" and shown.title().startswith("At ")
    plain = page(written(recorded("study")))
    assert plain.browser.evaluate("document.querySelector('#marks').hidden")


def test_buttons_by_keyboard(page, recorded, written, said):
    """Those that Tab comes to are pressed by Enter and by Space, as others are by a click."""
    report = said("report", recorded("study"))
    shown = page(written(recorded("study")))
    browser = shown.browser

    def press(selector, key):
        browser.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        browser.keys(key)

    def is_pressed(selector):
        return browser.evaluate(f"document.querySelector({json.dumps(selector)}).getAttribute('aria-pressed')") == "true"

    for key in ("Enter", "Space"):
        press("#choose-peak", key)
        assert is_pressed("#choose-peak") and shown.functions() == by_function(report, "peak_bytes")
        press("[data-unit=blocks]", key)
        assert is_pressed("[data-unit=blocks]") and shown.functions() == by_function(report, "peak")
        press("#choose-end", key)
        assert is_pressed("#choose-end") and shown.functions() == by_function(report, "live")
        press("#choose-all", key)
        assert is_pressed("#choose-all") and shown.functions() == by_function(report, "allocations")
        press("[data-unit=bytes]", key)
        assert shown.functions() == by_function(report, "bytes")
        press("#moments summary", key)
        browser.wait_until("document.querySelector('#moments').open === " + ("true" if key == "Enter" else "false"))


def test_print(page, recorded, written, said, tmp_path):
    """What is shown, without what only a screen has, in light colours."""
    report = said("report", recorded("study"))
    shown = page(written(recorded("study")))
    shown.browser.print(tmp_path / "page.pdf")
    text = subprocess.run(["pdftotext", "-layout", tmp_path / "page.pdf", "-"], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    for word in ("Live memory over time", "The whole recording", f"{report['all']['allocations']:,} blocks", "mixture"):
        assert word in text, text
    for word in ("Click for a moment", "Callers ", "by function"):
        assert word not in text, text


def test_theme_of_the_system(browser, page, recorded, written):
    """Dark or light as the reader's system is, and by the button the other one."""
    def lightness(of):
        return sum(int(c) for c in re.findall(r"\d+", of.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]) / 765

    path = written(recorded("study"))
    light = page(path)
    assert lightness(light.browser) > 0.9
    with browsers.Browser(browser.name, dark=True) as dark:
        shown = Page(dark, path)
        assert lightness(dark) < 0.2
        assert shown.cards() == light.cards()
        dark.click(".theme")
        assert lightness(dark) > 0.9
        shown.close()


@in_chromium
def test_without_live(page, recorded, written, said):
    data = recorded("requests", options=())
    report = said("report", data)
    shown = page(written(data))
    assert "--live" in shown.browser.text("#no-timeline")
    assert shown.browser.evaluate("document.querySelector('#time').hidden")
    assert shown.cards() == {"allocated": (report["all"]["bytes"], report["all"]["allocations"])}
    assert shown.functions() == by_function(report, "bytes")


@in_chromium
def test_nothing_recorded(page, recorded, written):
    shown = page(written(recorded("nothing", command=("nothing",))))
    assert shown.cards() == {"allocated": (0, 0), "live": (0, 0), "peak": (0, 0), "temporary": (0, 0)}
    shown.choose_moment(0)
    assert shown.cards() == {"alive": (0, 0)}
    for panel in ("stacks", "leaks", "temporary", "histograms", "threads", "ledger"):
        shown.show(panel)


@in_chromium
def test_comparison_without_change(page, recorded, written):
    recording = recorded("study")
    shown = page(written(recording, f"--base={recording}"))
    assert shown.browser.texts("#findings .finding") == ["No cost moved by 1 % or more"]


@in_chromium
def test_comparison(page, recorded, written, said):
    """Cards and functions say what changed, of the whole recording and at the end."""
    before, after = recorded("short", command=("case_study", "200")), recorded("study")
    old, new = said("report", before), said("report", after)
    shown = page(written(after, f"--base={before}"))
    assert shown.cards() == figures_of_all(new)
    for card, cost in [("allocated", "bytes"), ("live", "live_bytes")]:
        shown.choose_card(card)
        was, now = by_function(old, cost), by_function(new, cost)
        rows = {row[-1]: [number_of(row[i]) for i in (0, 2, 4, 5)] for row in shown.all_rows("functions")}
        assert rows == {name: [*now.get(name, (0, 0)), *(a - b for a, b in zip(now.get(name, (0, 0)), was.get(name, (0, 0))))]
                        for name in {**was, **now}}
    # A change stands behind the number that it is of.
    value = shown.browser.text(".card[data-card=live] .value")
    assert re.fullmatch(r"[\d.,]+ [KM]iB \+[\d.,]+ [KM]iB", value), value
    assert "+" not in shown.browser.text(".card[data-card=live] .other")
    shown.browser.click("[data-unit=blocks]")
    more = new["all"]["live"] - old["all"]["live"]
    assert shown.browser.text(".card[data-card=live] .value") == f"{new['all']['live']:,} blocks +{more:,}"
    shown.browser.click("[data-unit=bytes]")
    # Each recording is of one process, and the other one's is no second.
    shown.show("threads")
    total, change = shown.browser.text(".card[data-card=live] .value").split(" +")
    assert [row[1:] for row in shown.all_rows_of("#panel-threads tbody tr")] == [
        [total, "100.0 %", f"+{change}", "Only", "case_study"]]
    # Beyond the end of the shorter one its end is what is compared.
    shown.browser.evaluate("document.querySelector('#timeline canvas').focus()")
    shown.browser.keys("End")
    change = shown.browser.text(".card .change").strip()
    assert change.startswith("+") and number_in_units(change) == pytest.approx(
        new["all"]["live_bytes"] - old["all"]["live_bytes"], rel=0.01)


def number_in_units(text):
    value, unit = re.search(r"([\d.,]+) (B|KiB|MiB)", text).groups()
    return float(value.replace(",", "")) * {"B": 1, "KiB": 1024, "MiB": 1 << 20}[unit]


NAMED = ["mixture", "bounded_cache", "leak_until_end", "linear_leak", "main", "_start", "__libc_start_main"]


def test_hostile_names(page, recorded, written, tmp_path):
    """They are text wherever they are shown."""
    data = tmp_path / "hostile.data"
    data.write_bytes(recorded("study").read_bytes())
    with sqlite3.connect(data) as database:
        for old, new in zip(NAMED, HOSTILE, strict=True):
            database.execute("UPDATE functions SET symbol = ?, name = ?, full_name = ? WHERE name = ?", (new,) * 3 + (old,))
        everything = " ".join(HOSTILE)
        database.execute("UPDATE files SET path = '/' || ? || id", (everything,))
        database.execute("UPDATE modules SET path = '/' || replace(?, '/', '!') || id", (everything,))
        for table, column in [("processes", "comm"), ("arguments", "text"), ("control_groups", "name"), ("threads", "name"), ("meta", "value")]:
            where = " WHERE key IN ('command', 'start_time')" if table == "meta" else ""
            database.execute(f"UPDATE {table} SET {column} = ?{where}", (everything,))
        data_digest.renew(database)
    shown = page(written(data))
    browser = shown.browser

    def visible(text):
        return re.sub("[\x00-\x1f\u202e]", lambda c: f"\\u{{{ord(c[0]):x}}}", text)

    assert browser.evaluate("document.querySelector('#title').textContent") == visible(everything)
    # A name has no more than 8192 characters in any report.
    assert {visible(name)[:8192] for name in HOSTILE} - set(shown.functions()) == set()
    for panel in ("stacks", "leaks", "temporary", "histograms", "threads", "ledger"):
        shown.show(panel)
    assert visible(everything) in browser.evaluate("document.querySelector('#panel-threads').textContent")
    assert browser.evaluate("document.querySelectorAll('img, iframe, b, script:not([type=module])').length") == 0
    assert browser.evaluate("document.title") not in ("broken", "broken out")
    # Nothing makes the page wider than the window.
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_single_blocks(page, recorded, written, said):
    """Of a recording with an event log the page lists its blocks as `report --blocks` does, those of what is chosen alone."""
    data = recorded("logged", ("--events",), ("phases",))
    blocks = said("report", data, "--blocks", "--top=10000")["blocks"]
    meta = dict(sqlite3.connect(data).execute("SELECT key, value FROM meta"))
    epoch_ns = int(meta["epoch_ns"])
    shown = page(written(data))
    browser = shown.browser
    shown.show("blocks")

    def listed():
        return browser.evaluate("document.querySelector('#panel-blocks [role=status]').textContent")

    def expected(holds):
        return f"{sum(map(holds, blocks)):,} of {len(blocks):,} blocks"
    rows = browser.evaluate("""[...document.querySelectorAll('#panel-blocks tbody tr')].map((row) =>
        [row.cells[0].firstChild.title, row.cells[1].textContent, row.cells[4].textContent, row.cells[5].textContent])""")
    words = {"alive": "alive at the end", "freed": "freed by ", "reallocated": "reallocated by "}
    assert len(rows) == min(100, len(blocks))
    for (size, address, thread, fate), block in zip(rows, blocks):
        assert (number_of(size), address) == (block["size"], block["address"])
        assert thread.startswith(f"{block['thread_name']} ({block['thread']})")
        assert fate.startswith(words[block["fate"]])
    assert listed() == expected(lambda block: True)
    shown.choose_card("live")
    assert listed() == expected(lambda block: block["fate"] == "alive")
    shown.choose_card("temporary")
    assert listed() == expected(lambda block: block["temporary"])
    shown.choose_span(0, 20 * epoch_ns)
    from_point, until_point = browser.evaluate("location.hash.match(/span=(\\d+)-(\\d+)/).slice(1).map(Number)")
    from_ns, until_ns = from_point * epoch_ns, until_point * epoch_ns
    assert until_ns > from_ns

    def is_born(block):
        return from_ns <= block["allocated_at_ns"] < until_ns
    assert listed() == expected(is_born)
    shown.choose_card("freed")
    assert listed() == expected(lambda block: block["ended_at_ns"] is not None and from_ns <= block["ended_at_ns"] < until_ns)
    shown.choose_card("kept")
    assert listed() == expected(lambda block: is_born(block) and (block["ended_at_ns"] is None or block["ended_at_ns"] >= until_ns))
    browser.click("#choose-all")
    address = collections.Counter(block["address"] for block in blocks).most_common(1)[0][0]
    browser.click("#panel-blocks input")
    browser.type(address)
    at = int(address, 16)
    assert listed() == expected(lambda block: int(block["address"], 16) <= at < int(block["address"], 16) + max(block["size"], 1))
