# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof flamegraph in browsers: every control is used, and what is shown then is what `report` and `folded` say."""

import json
import re
import sqlite3
import subprocess
import xml.etree.ElementTree

import pytest

import data_digest
from conftest import ALLOCPROF, GOLDEN

ROW = 20
HOSTILE = ["</script><script>document.title = 'broken out'</script>", "quote\" back\\slash 'single' &amp; <b>bold</b>",
           "a\tb\nc\x01\x1b[31m", "std::vector<" + "std::pair<int, long>, " * 500 + ">", "\u202eright to left", "]]>",
           "<img src=x onerror=alert(1)>", "{{data}}"]

# What is held there are numbers, which the page's own code works out. How a page is used is tried in both browsers.
in_chromium = pytest.mark.parametrize("started", ["chromium"], indirect=True)


class Node:
    """A frame of what `folded` prints."""

    def __init__(self, name="all"):
        self.name, self.total, self.children = name, 0, {}

    def add(self, names, value):
        self.total += value
        if names:
            self.children.setdefault(names[0], Node(names[0])).add(names[1:], value)


def tree_of(folded, reverse=False):
    root = Node()
    for line in folded.splitlines():
        stack, value = line.rsplit(" ", 1)
        # folded marks what was inlined.
        names = [re.sub(r"_\[i\]$", "", name) for name in stack.split(";")]
        root.add(names[::-1] if reverse else names, int(value))
    return root


def boxes_of(root, width):
    """Where each frame is drawn: (names from the root on, x, width), siblings by size, then by name."""
    boxes, pending = [], [((root.name,), root, 0)]
    while pending:
        path, node, x = pending.pop()
        boxes.append((path, x, width * node.total / root.total, node))
        for child in sorted(node.children.values(), key=lambda one: (-one.total, one.name)):
            pending.append(((*path, child.name), child, x))
            x += width * child.total / root.total
    return boxes


def number(text):
    """"2.29 MiB (2,400,000 bytes)" and "1 block" as numbers."""
    inner = re.search(r"\(([\d,]+) bytes\)", text)
    return int((inner[1] if inner else re.match(r"[\d,]+", text)[0]).replace(",", ""))


class Picture:
    """The flame graph in a page."""

    def __init__(self, page):
        self.page = page
        self.x, self.y, self.width, self.height = page.area(".flame-canvas")

    def point(self, x, depth, rows=None):
        self.page.point(self.x + x, self.y + ((rows - 1 - depth) if rows else depth) * ROW + ROW // 2)

    def click(self, x, depth):
        self.page.click_at(self.x + x, self.y + depth * ROW + ROW // 2)

    def details(self):
        """The name and the rows of the details that are shown; None if none are."""
        if self.page.evaluate("document.querySelector('.flame-tip').hidden"):
            return None
        rows = self.page.evaluate("""[...document.querySelectorAll('.flame-tip tr')].map(
            (row) => [...row.cells].map((cell) => cell.innerText))""")
        return self.page.text(".flame-tip .name"), dict(rows)

    def hold_to(self, tree, rows=None):
        """Each frame that is wide enough to be pointed at is where it belongs, with its numbers."""
        seen = 0
        for path, x, width, node in boxes_of(tree, self.width):
            if width < 4:
                continue
            seen += 1
            self.point(x + width / 2, len(path) - 1, rows)
            name, shown = self.details()
            assert name == ("all stacks" if len(path) == 1 else path[-1])
            first = next(iter(shown.values()))
            assert number(first) == node.total, (path, shown)
            if len(path) > 1:
                assert shown["of all"] == share(node.total, tree.total), (path, shown)
        return seen


def share(part, whole):
    percent = 100 * part / whole
    return "<0.1 %" if percent < 0.05 else "99.9 %" if part < whole and percent >= 99.95 else f"{percent:.1f} %"


@pytest.fixture
def opened(run, page, tmp_path):
    """opened(data, options): the picture of what flamegraph writes of it."""
    def draw(data, *options):
        path = tmp_path / "flame.html"
        run("flamegraph", "-o", path, "-i", data, *options)
        page.open(path)
        return Picture(page)
    return draw


def test_each_box(run, opened, page, case_study):
    """All boxes of all layouts have the numbers of folded."""
    picture = opened(case_study)
    tree = tree_of(run("folded", "--cost=bytes", "-i", case_study))
    assert picture.hold_to(tree) >= 15
    page.choose(".flame-layout", "flame")
    picture.hold_to(tree, rows=picture.height / ROW)
    page.choose(".flame-layout", "icicle")
    page.click(".flame-reversed")
    picture = Picture(page)
    assert picture.hold_to(tree_of(run("folded", "--cost=bytes", "-i", case_study), reverse=True)) >= 15
    page.click(".flame-reversed")
    page.choose(".flame-order", "name")
    page.choose("#cost", "live-bytes")
    Picture(page).point(1, 2)
    assert picture.details()[0] == "__clone3"  # before _start
    page.choose(".flame-order", "size")
    Picture(page).hold_to(tree_of(run("folded", "--cost=live-bytes", "-i", case_study)))


@in_chromium
def test_sides_of_callers(opened, page, run, case_study):
    """Words say where the picture has callers, in every layout."""
    opened(case_study)
    button = "document.querySelector('.flame-reversed')"
    for layout, side in (("flame", "above"), ("icicle", "below")):
        page.choose(".flame-layout", layout)
        assert page.text(".flame-reversed") == f"Callers {side}"
        assert page.evaluate(f"{button}.title").endswith(f"; {side} a box is what called it")
    opened(case_study, "--layout=flame", "--reverse")
    assert page.text(".flame-reversed") == "Callers above"
    for layout in ("icicle", "flame"):
        for reverse in ([], ["--reverse"]):
            svg = run("flamegraph", f"--layout={layout}", *reverse, case_study)
            said = re.search("; callers are (above|below) what they call</text>", svg)
            assert bool(said) == bool(reverse)
            # Where the allocator and what calls it at last are.
            y = {name: float(re.search(rf">{name}\n.*?<rect [^>]*y=\"(\d+)\"", svg, re.S)[1]) for name in ("main", "malloc")}
            if reverse:
                assert said[1] == ("above" if y["main"] < y["malloc"] else "below")


@in_chromium
def test_costs_are_reports(opened, page, case_study, totals):
    opened(case_study, "--cost=peak")
    expected = totals(case_study)
    names = {"bytes": "bytes", "allocations": "allocations", "live-bytes": "live_bytes", "live": "live",
             "peak": "peak_bytes", "peak-blocks": "peak", "temporary-bytes": "temporary_bytes", "temporary": "temporary"}
    assert page.evaluate("document.querySelector('#cost').value") == "peak"
    assert page.evaluate("[...document.querySelector('#cost').options].map((one) => one.value)") == list(names)
    for name, reported in names.items():
        page.choose("#cost", name)
        assert number(page.text("#figure")) == expected[reported] > 0, name
    # Selected by the fate of blocks, there are no temporary ones and no peak.
    opened(case_study, "--leaks")
    assert page.evaluate("[...document.querySelector('#cost').options].map((one) => one.value)") == list(names)[:4]
    assert number(page.text("#figure")) == totals(case_study, "--leaks")["bytes"]


@in_chromium
def test_details_name_both_numbers(opened, case_study, run):
    picture = opened(case_study, "--through=parse_request")
    tree = tree_of(run("folded", "--through=parse_request", "-i", case_study))
    picture.point(100, 4)
    name, rows = picture.details()
    assert name == "parse_request"
    assert number(rows["allocations"]) == tree.total
    assert rows["of all"] == rows["of its caller"] == "100.0 %"
    # Beside the picture nothing is pointed at.
    picture.page.point(5, 5)
    assert picture.details() is None


def test_zoom(opened, page, case_study):
    picture = opened(case_study)
    assert page.evaluate("document.querySelector('.flame-reset').disabled")
    picture.click(picture.width * 0.6, 5)
    for x in (2, picture.width - 2):
        picture.point(x, 5)
        assert picture.details()[0] == "cache_insert"
        picture.point(x, 3)
        assert picture.details()[0] == "main"
    page.click(".flame-reset")
    picture.point(2, 5)
    assert picture.details()[0] == "malloc"
    assert page.evaluate("document.querySelector('.flame-reset').disabled")


def test_search(opened, page, case_study, totals):
    opened(case_study)
    whole = totals(case_study)["bytes"]

    def found(text):
        page.evaluate("document.querySelector('.flame-search').select()")
        page.click(".flame-search")
        page.evaluate("document.querySelector('.flame-search').select()")
        page.type(text)
        return page.text(".flame-matches")

    through = totals(case_study, "--through=parse_request")["bytes"]
    assert found("PARSE_req").startswith(share(through, whole) + ": ")
    assert found("PARSE_req").endswith("through 1 function")
    assert found("(").startswith("0.0 %")
    page.click(".flame-regexp")
    assert "regular expression" in page.text(".flame-matches")
    through = totals(case_study, "--through=/^(cache_insert|leak_session)$/")["bytes"]
    assert found("^(cache_insert|leak_session)$") .startswith(share(through, whole))
    assert "2 functions" in page.text(".flame-matches")
    # Enter goes from match to match.
    page.keys("Enter")
    assert page.text(".flame-tip .name") == "cache_insert"
    assert page.text(".flame-matches").startswith(f"1 of 2, {share(through, whole)}: ")
    page.keys("Enter")
    assert page.text(".flame-tip .name") == "leak_session"
    assert page.text(".flame-matches").startswith(f"2 of 2, {share(through, whole)}: ")
    page.keys("Enter")
    assert page.text(".flame-tip .name") == "cache_insert"
    page.keys("Shift+Enter")
    assert page.text(".flame-tip .name") == "leak_session"
    page.keys("Escape")
    assert page.text(".flame-matches") == ""


def test_keyboard_alone(opened, page, case_study):
    opened(case_study)
    spoken = "document.querySelector('.flame [aria-live=polite].visually-hidden').textContent"
    page.evaluate("document.activeElement.blur()")
    for _ in range(20):
        page.keys("Tab")
        if page.evaluate("document.activeElement.className") == "flame-canvas":
            break
    page.keys("Down", "Up")
    assert page.evaluate(spoken).startswith("all stacks, level 0, 4.31 MiB, 100.0 %")
    page.keys("Down", "Down", "Right")
    assert page.evaluate(spoken).startswith("_start, level 2, ")
    assert page.text(".flame-tip .name") == "_start"
    page.keys("Left")
    assert page.evaluate(spoken).startswith("__clone3, level 2, ")
    page.keys("Down", "Enter")
    assert page.evaluate(spoken).startswith("worker, level 3, ")
    assert not page.evaluate("document.querySelector('.flame-reset').disabled")
    page.keys("Escape")
    assert page.evaluate("document.querySelector('.flame-reset').disabled")
    page.keys("/")
    assert page.evaluate("document.activeElement.className") == "flame-search"
    page.type("leak_s")
    assert page.text(".flame-matches").endswith("through 1 function")


def test_buttons_by_keyboard(opened, page, case_study, totals):
    """Tab comes to each control, in the order in which they are seen, and Space and Enter press buttons."""
    opened(case_study)
    wanted = ["theme", "cost", "flame-search", "flame-regexp", "flame-layout", "flame-order", "flame-colour",
              "flame-reversed", "flame-folded", "flame-merged", "flame-canvas"]
    focused = "document.activeElement.classList[0] ?? document.activeElement.id"
    page.evaluate("document.activeElement.blur()")
    for name in wanted:
        page.keys("Tab")
        assert page.evaluate(focused) == name
    for key in ("Space", "Enter"):
        for name in ("flame-reversed", "flame-folded", "flame-merged", "flame-regexp"):
            page.evaluate(f"document.querySelector('.{name}').focus()")
            pressed = f"document.querySelector('.{name}').getAttribute('aria-pressed')"
            before = page.evaluate(pressed)
            page.keys(key)
            assert page.evaluate(pressed) != before, (name, key)
    # Space pressed them, Enter released them.
    assert page.texts(".flame-tree tbody .name")[1] == "server"
    page.evaluate("document.querySelector('.flame-reversed').focus()")
    page.keys("Space")
    assert page.texts(".flame-tree tbody .name")[1] == "malloc"
    page.evaluate("document.querySelector('#cost').focus()")
    page.keys("Down", "Enter")
    page.wait_until("document.querySelector('#cost').value === 'allocations'")
    assert number(page.text("#figure")) == totals(case_study)["allocations"]
    page.evaluate("document.querySelector('.theme').focus()")
    page.keys("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def table(page):
    """The rows of the table: name -> cells."""
    rows = page.evaluate("""[...document.querySelectorAll('.flame-tree tbody tr')].map((row) =>
        [row.querySelector('.name')?.innerText, ...[...row.cells].slice(1).map((cell) => cell.innerText)])""")
    return {row[0]: row[1:] for row in rows}


def test_table_by_keyboard(opened, page, case_study, totals):
    opened(case_study)
    rows = table(page)
    assert list(rows) == ["all stacks", "server", "__clone3", "_start"]
    assert rows["_start"][1] == share(totals(case_study, "--through=_start")["bytes"], totals(case_study)["bytes"])
    page.evaluate("document.querySelector('.flame-tree tbody tr').focus()")
    page.keys("Down", "Down", "Down", "Right")  # opens _start, and what has nearly all of it
    rows = table(page)
    assert {"main", "serve", "cache_insert", "leak_session"} <= set(rows)
    assert rows["cache_insert"][1] == share(totals(case_study, "--through=cache_insert")["bytes"],
                                            totals(case_study)["bytes"])
    page.keys("Right", "Enter")  # main, of which the picture shows what is below
    picture = Picture(page)
    picture.point(2, 3)
    assert picture.details()[0] == "main"
    page.keys("Left", "Left")
    page.keys("Left")
    assert "cache_insert" not in table(page)


def test_small_rows_are_one(opened, page, fixture_data):
    """What has less than a hundredth of its caller's is summed up below the others, and unfolded by Enter; bars begin at one edge."""
    fill(fixture_data, [f"main f{i}" for i in range(1, 7)])
    opened(fixture_data, "--cost=bytes")
    cells = "[...document.querySelectorAll('.flame-tree tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))"
    rows = page.evaluate(cells)

    def functions():
        return [name for name in page.texts(".flame-tree tbody .name") if name.startswith("f")]
    assert functions() == ["f6", "f5"]
    assert rows[-1][0].endswith("4 smaller") and rows[-1][1:3] == ["10.8 KiB", "1.0 %"]
    edges = page.evaluate("[...document.querySelectorAll('.flame-tree .bar span')].map((bar) => bar.getBoundingClientRect().left)")
    assert len(edges) == len(rows) and len(set(edges)) == 1
    page.evaluate("document.querySelector('.flame-tree tbody tr').focus()")
    page.keys("End", "Enter")
    assert functions() == ["f6", "f5", "f4", "f3", "f2", "f1"]


@in_chromium
@pytest.mark.parametrize("layout", ["icicle", "flame"])
def test_details_leave_what_comes_next(opened, page, fixture_data, layout):
    """They are on the side of the callers, where the window has room; a key shows them as the pointer does."""
    fill(fixture_data, DEEP)
    picture = opened(fixture_data, f"--layout={layout}")
    middle = picture.height / ROW // 2
    page.point(picture.x + 300, picture.y + (middle + 0.5) * ROW)
    row = picture.y + middle * ROW

    def edges():
        _, y, _, height = page.area(".flame-tip")
        return y, y + height
    assert picture.details() is not None
    assert edges()[1] <= row if layout == "icicle" else edges()[0] >= row + ROW
    page.point(1, 1)
    page.evaluate("document.querySelector('.flame-canvas').focus()")
    page.keys(*["Down" if layout == "icicle" else "Up"] * 15)
    row = picture.y + (15 * ROW if layout == "icicle" else picture.height - 16 * ROW)
    assert picture.details()[0] == "f12"
    assert edges()[1] <= row if layout == "icicle" else edges()[0] >= row + ROW


@in_chromium
def test_base(opened, page, story, run):
    before, after = story
    picture = opened(after, f"--base={before}")
    picture.point(3, 0)
    _, rows = picture.details()
    diff = run("diff", "--cost=bytes", "--folded", before, after)
    sums = [sum(int(line.split()[side]) for line in diff.splitlines()) for side in (-2, -1)]
    assert [number(rows["before"]), number(rows["bytes"])] == sums
    assert page.text("#figure").endswith(f"{'+' if sums[1] > sums[0] else ''}{100 * (sums[1] - sums[0]) / sums[0]:.1f} %)")
    page.click(".flame-search")
    page.type("add_trace")
    page.keys("Enter")
    name, rows = picture.details()
    assert name == "add_trace" and rows["change"].endswith("new") and rows["before"].startswith("0 ")
    # What is gone stays visible, and says so.
    picture = opened(before, f"--base={after}")
    page.click(".flame-search")
    page.type("add_trace")
    page.keys("Enter")
    name, rows = picture.details()
    assert name == "add_trace" and rows["bytes"].startswith("0 ") and rows["change"].endswith("gone")
    assert page.texts(".flame-legend li") == ["new", "grew", "did not change", "shrank", "gone"]


# main calls f, which calls itself and g, which calls f.
RECURSIVE = ["main f", "main f f f", "main f g f g"]
DEEP = ["main " + " ".join(f"f{i}" for i in range(150))]


def fill(path, stacks):
    """Has the data file have these stacks alone, with 10 bytes for the first, 100 for the second."""
    database = sqlite3.connect(path)
    frames = {name: i for i, name in enumerate(dict.fromkeys(" ".join(stacks).split()), 1)}
    for table_name in ("counts", "stacks", "blocks", "lifetimes", "size_histogram", "lifetime_histogram",
                       "timeline", "frames", "lines", "functions"):
        database.execute(f"DELETE FROM {table_name}")
    for name, i in frames.items():
        database.execute("INSERT INTO functions VALUES(?, ?, ?, ?)", (i, name, name, name))
        database.execute("INSERT INTO frames VALUES(?, 1, ?, 0, 0)", (i, 4096 * i))
        database.execute("INSERT INTO lines VALUES(?, 0, ?, 0, 0, 0)", (i, i))
    for i, stack in enumerate(stacks, 1):
        ids = ",".join(str(frames[name]) for name in stack.split()[::-1])
        database.execute("INSERT INTO stacks VALUES(?, 'complete', ?)", (i, f"[{ids}]"))
        database.execute("INSERT INTO counts VALUES(?, 1, 1, ?, 'malloc', 1, ?)", (i, i, 10 ** i))
    database.execute("UPDATE ledger SET value = 0")
    database.execute("UPDATE ledger SET value = ? WHERE name IN ('events', 'attributed', 'complete')", (len(stacks),))
    data_digest.renew(database)
    database.commit()


def merge(names):
    merged = []
    for name in names:
        merged = merged[:merged.index(name) + 1] if name in merged else [*merged, name]
    return merged


@in_chromium
def test_merged_recursion(opened, page, fixture_data, run, tmp_path):
    fill(fixture_data, RECURSIVE)
    opened(fixture_data)
    folded = run("folded", "--cost=bytes", "-i", fixture_data)
    assert Picture(page).hold_to(tree_of(folded)) > 8
    page.click(".flame-merged")
    tree = Node()
    for line in folded.splitlines():
        stack, value = line.rsplit(" ", 1)
        tree.add(merge(stack.split(";")), int(value))
    assert Picture(page).hold_to(tree) == 7  # all, the process, main, f, malloc, g, malloc
    # So it is in SVG.
    names = []
    root = xml.etree.ElementTree.fromstring(run("flamegraph", "--merge-recursion", fixture_data).encode())
    for title in root.iter("{http://www.w3.org/2000/svg}title"):
        names.append(title.text.split("\n")[0])
    assert sorted(names) == sorted(["all", "app", "main", "f", "malloc", "g", "malloc"])


def test_own_code_only(opened, page, run, case_study):
    """Frames of other modules than the program go, but for the allocator's, and with callers below, too."""
    opened(case_study)
    report = json.loads(run("report", "--json", "--sort=bytes", "-i", case_study))
    others = {frame["name"] for frame in report["frames"] if frame["module"] and frame["module"].endswith(".so.6")}
    folded = run("folded", "--cost=bytes", "-i", case_study)
    others.add("_start")  # it is the runtime's, in whichever file
    assert any(name in folded for name in others)
    own = "\n".join(";".join([*[name for name in stack.split(";")[:-1] if name not in others], stack.split(";")[-1]]) + " " + value
                    for stack, value in (line.rsplit(" ", 1) for line in folded.splitlines()))
    page.click(".flame-folded")
    n = Picture(page).hold_to(tree_of(own))
    assert 3 < n < len(boxes_of(tree_of(folded), 1))
    page.click(".flame-reversed")
    assert Picture(page).hold_to(tree_of(own, reverse=True)) > 3
    page.click(".flame-reversed")
    page.click(".flame-folded")
    Picture(page).hold_to(tree_of(folded))


def box_at(page, picture, y):
    """The name of the box that is seen so many pixels below the picture's top."""
    page.point(picture.x + 300, picture.y + y)
    shown = picture.details()
    return shown and shown[0]


def scroll(page, rows):
    page.evaluate(f"document.querySelector('.flame-scroll').scrollTop += {rows * ROW}")
    page.settle()


@pytest.mark.parametrize("layout", ["icicle", "flame"])
def test_deep_stacks(opened, page, fixture_data, layout):
    """The rows that the window has no room for are scrolled to; what calls everything is seen first."""
    fill(fixture_data, DEEP)
    picture = opened(fixture_data, f"--layout={layout}")
    names = ["all stacks", "app", *DEEP[0].split(), "malloc"]
    assert picture.height < 900 < len(names) * ROW
    assert page.evaluate("document.querySelector('.flame-scroll').clientHeight") == picture.height
    # The scroll bar covers nothing.
    assert page.evaluate("document.querySelector('.flame-scroll').clientWidth") == picture.width
    if layout == "flame":
        assert [box_at(page, picture, picture.height - (row + 0.5) * ROW) for row in range(3)] == names[:3]
        scroll(page, -len(names))
        assert [box_at(page, picture, (row + 0.5) * ROW) for row in range(3)] == names[::-1][:3]
    else:
        assert [box_at(page, picture, (row + 0.5) * ROW) for row in range(3)] == names[:3]
        scroll(page, len(names))
        assert [box_at(page, picture, picture.height - (row + 0.5) * ROW) for row in range(3)] == names[::-1][:3]
    # A lower window has room for fewer.
    page.resize(1280, 500)
    page.wait_until(f"document.querySelector('.flame-scroll').clientHeight < {picture.height}")
    assert page.area(".flame-canvas")[3] == page.evaluate("document.querySelector('.flame-scroll').clientHeight")


def test_colours(opened, page, case_study):
    opened(case_study, "--colour=module")
    assert page.texts(".flame-legend li") == ["server", "libc.so.6", "allocator", "process"]
    swatches = "[...document.querySelectorAll('.flame-legend .swatch')].map((one) => one.style.background)"
    assert len(set(page.evaluate(swatches))) == 4
    page.choose(".flame-colour", "kind")
    assert page.texts(".flame-legend li") == ["own code", "runtime", "allocator", "process"]


def test_changes_have_one_colour_everywhere(opened, page, run, story):
    """A static picture has the colours of the page, which say how much changed: a little is nearly nothing."""
    before, after = story
    opened(after, f"--base={before}")
    swatches = page.evaluate("""[...document.querySelectorAll('.flame-legend .swatch')].map((one) => {
        const context = new OffscreenCanvas(1, 1).getContext('2d');
        context.fillStyle = one.style.background;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    })""")
    root = xml.etree.ElementTree.fromstring(run("flamegraph", f"--base={before}", after).encode())
    fills = [rect.get("fill") for rect in root.iter("{http://www.w3.org/2000/svg}rect")]
    drawn = [[int(fill[i:i + 2], 16) for i in (1, 3, 5)] for fill in fills[-5:]]
    assert all(abs(a - b) <= 1 for one, other in zip(swatches, drawn, strict=True) for a, b in zip(one, other))
    # All of it grew by an eighth: that is between no change and the one that stands for growth.
    whole, grew, same = ([int(fill[i:i + 2], 16) for i in (1, 3, 5)] for fill in (fills[1], fills[-4], fills[-3]))
    assert same[2] > whole[2] > grew[2]


@in_chromium
def test_many_modules(opened, page, run, case_study, tmp_path):
    """Those without a colour are others; the legend of a static picture takes several lines then, and has all colours."""
    data = tmp_path / "modules.data"
    data.write_bytes(case_study.read_bytes())
    with sqlite3.connect(data) as database:
        database.execute("INSERT INTO modules SELECT id + 2, '/opt/' || id || ?, '', '' FROM frames", ("long" * 12,))
        database.execute("UPDATE frames SET module = id + 2")
        data_digest.renew(database)
    opened(data, "--colour=module")
    shown = page.texts(".flame-legend li")
    assert shown[-3:] == ["others", "allocator", "process"]
    for recording in (case_study, data):
        root = xml.etree.ElementTree.fromstring(run("flamegraph", "--colour=module", recording).encode())
        texts, rects = ([*root.findall(f"{{http://www.w3.org/2000/svg}}{tag}")] for tag in ("text", "rect"))
        entries = {text.text: rect.get("fill") for text, rect in zip(texts[2:], rects[1:])}
        assert len(set(entries.values())) == len(entries) == len(rects) - 1
        assert list(entries) == (shown if recording == data else ["server", "libc.so.6", "allocator", "process"])
        assert all(float(rect.get("y")) + 12 < float(root.get("height")) for rect in rects[1:])
        assert (len({rect.get("y") for rect in rects[1:]}) > 1) == (recording == data)


def pixel(page, x, y):
    """The colour in the picture, as [r, g, b]."""
    return page.evaluate(f"""(() => {{
        const canvas = document.querySelector('.flame-canvas');
        return [...canvas.getContext('2d').getImageData({x} * devicePixelRatio, {y} * devicePixelRatio, 1, 1).data].slice(0, 3);
    }})()""")


def test_themes(opened, page, case_study):
    """Text has a contrast of 4.5 and more with each box, in both themes."""
    opened(case_study)

    def contrast(a, b):
        def luminance(colour):
            parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
        lighter, darker = sorted((luminance(a), luminance(b)), reverse=True)
        return (lighter + 0.05) / (darker + 0.05)

    seen = []
    for _ in range(2):
        ink = [int(c) for c in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).color"))[:3]]
        colours = [pixel(page, 600, row * ROW + 2) for row in range(6)]
        for colour in colours:
            assert contrast(colour, ink) >= 4.5, (colour, ink)
        seen.append(colours)
        page.click(".theme")
    assert seen[0] != seen[1]


def test_edges_of_controls(opened, page, case_study):
    """They are seen: three times as light or dark as what is around them (WCAG 1.4.11), in both themes."""
    def luminance(colour):
        parts = [int(part) / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(a * b for a, b in zip(linear, (0.2126, 0.7152, 0.0722)))

    opened(case_study)
    for _ in range(2):
        found = page.evaluate("""[...document.querySelectorAll('button, select, input')].map((one) => [
            getComputedStyle(one).borderTopColor, getComputedStyle(document.body).backgroundColor, getComputedStyle(one).backgroundColor])""")
        assert len(found) > 6
        for edge, *beside in found:
            # One that is pressed is filled with the colour of its edge.
            beside = [colour for colour in beside if colour != edge]
            light = [luminance(re.findall(r"\d+", colour)[:3]) for colour in (edge, *beside)]
            assert all((max(light[0], one) + 0.05) / (min(light[0], one) + 0.05) >= 3 for one in light[1:]), (edge, beside)
        page.click(".theme")


def test_narrow_window(opened, page, case_study, run):
    picture = opened(case_study)
    page.resize(480, 800)
    page.wait_until("document.querySelector('.flame-canvas').clientWidth < 480")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture = Picture(page)
    picture.hold_to(tree_of(run("folded", "--cost=bytes", "-i", case_study)))


def test_print(opened, page, case_study, tmp_path):
    opened(case_study)
    page.print(tmp_path / "page.pdf")
    text = subprocess.run(["pdftotext", "-layout", tmp_path / "page.pdf", "-"], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    for word in ("server --port 8080", "__clone3", "53.1 %", "own code"):
        assert word in text, text
    assert "Callers" not in text and "Arrow keys" not in text


def test_print_has_all_rows(opened, page, fixture_data):
    """Those that the window has no room for, too, once all that hears of the printing has run."""
    fill(fixture_data, DEEP)
    opened(fixture_data)
    rows = len(DEEP[0].split()) + 3
    height = "document.querySelector('.flame-canvas').getBoundingClientRect().height"
    shown = page.evaluate(height)
    assert shown < rows * ROW
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.settle()
    assert page.evaluate(height) == rows * ROW
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.settle()
    assert page.evaluate(height) == shown


@in_chromium
def test_nothing(opened, page, tmp_path):
    path = tmp_path / "empty.data"
    subprocess.run([GOLDEN / "write_fixture", path, "empty"], check=True)
    page.evaluate("1")
    opened_path = tmp_path / "flame.html"
    subprocess.run([ALLOCPROF, "flamegraph", "-o", opened_path, path], check=True, stderr=subprocess.DEVNULL)
    page.open(opened_path)
    assert page.text(".flame-nothing") == "Nothing to draw: no stack has any of it."
    assert number(page.text("#figure")) == 0


def make_hostile(path):
    database = sqlite3.connect(path)
    for i, name in enumerate(HOSTILE):
        database.execute("UPDATE functions SET symbol = ?, name = ?, full_name = ? WHERE id = ?",
                         (f"{name}{i}", name, name, i + 1))
        database.execute("INSERT OR IGNORE INTO functions VALUES(?, ?, ?, ?)", (i + 1, f"{name}{i}", name, name))
    frames = [frame for frame, in database.execute("SELECT id FROM frames ORDER BY id LIMIT ?", (len(HOSTILE),))]
    database.execute("DELETE FROM lines")
    for i, frame in enumerate(frames):
        database.execute("INSERT INTO lines VALUES(?, 0, ?, 1, 7, 0)", (frame, i + 1))
    database.execute("INSERT OR REPLACE INTO files VALUES(1, ?)", (HOSTILE[0],))
    database.execute("UPDATE processes SET comm = ?", (HOSTILE[0],))
    database.execute("UPDATE threads SET name = ? || id", (HOSTILE[4],))
    database.execute("UPDATE modules SET path = ? WHERE id = 1", (HOSTILE[1],))
    database.execute("UPDATE meta SET value = ? WHERE key = 'command'", (HOSTILE[0] + HOSTILE[4] + "\xff",))
    data_digest.renew(database)
    database.commit()


def test_hostile_names(opened, page, fixture_data, tmp_path, run):
    make_hostile(fixture_data)
    picture = opened(fixture_data, "--by=process,thread", "--raw-stacks")
    assert page.evaluate("document.title").startswith("</script><script>document.title")
    assert page.evaluate("document.querySelectorAll('img, b, script:not([type=module])').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    assert page.text("h1").startswith(HOSTILE[0] + "\\u{202e}right to left")
    # All names, as the details show them.
    shown = set()
    page.evaluate("document.querySelector('.flame-canvas').focus()")
    for y in range(int(picture.height) // ROW):
        for x in range(4, int(picture.width), 40):
            picture.point(x, y)
            details = picture.details()
            if details:
                shown.add(details[0])
    assert HOSTILE[0] in shown and any(name.startswith("\\u{202e}right to left") for name in shown)
    names = {name for name, in sqlite3.connect(fixture_data).execute(
        "SELECT DISTINCT name FROM functions JOIN lines ON function = functions.id JOIN stack_frames USING (frame)")}
    assert len(names & set(HOSTILE)) >= 4
    for selector in ("h1", ".flame-tree tbody", ".flame-legend", ".flame-tip"):
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x01\x1b]", page.text(selector)), selector
    # SVG is XML, with the same names but for what XML does not have.
    svg = run("flamegraph", "--by=process,thread", "--raw-stacks", fixture_data)
    root = xml.etree.ElementTree.fromstring(svg.encode())
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert tags == {"svg", "g", "title", "rect", "text"}
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith(HOSTILE[0] + "\n") for title in titles)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", svg)
    path = tmp_path / "flame.svg"
    path.write_text(svg)
    page.show(path)
    assert page.evaluate("document.documentElement.tagName") == "svg"


def test_svg_of_tiny_shares_is_xml(run, tmp_path):
    """A box can be half a pixel wide and have less than 0.05 % of all."""
    path = tmp_path / "tiny.data"
    subprocess.run([GOLDEN / "write_fixture", path], check=True)
    fill(path, RECURSIVE)
    database = sqlite3.connect(path)
    database.execute("UPDATE counts SET bytes = 10845 WHERE id > 1")
    data_digest.renew(database)
    database.commit()
    root = xml.etree.ElementTree.fromstring(run("flamegraph", path).encode())
    assert any("<0.1 % of all" in title.text for title in root.iter("{http://www.w3.org/2000/svg}title"))


def test_svg_has_the_numbers_of_folded(run, case_study):
    """Titles and widths of the static picture."""
    tree = tree_of(run("folded", "--cost=live-bytes", "-i", case_study))
    root = xml.etree.ElementTree.fromstring(run("flamegraph", "--cost=live-bytes", case_study).encode())
    drawn = {}
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        title, rect = group[0].text.split("\n"), group[1]
        value = next(line for line in title if re.search(r"byte", line))
        drawn.setdefault((round(float(rect.get("x")) - 16), (int(rect.get("y")) - 62) // 18), (title[0], number(value)))
    for path, x, width, node in boxes_of(tree, 1168):
        if width >= 1:
            assert drawn[round(x), len(path) - 1] == (path[-1], node.total)


def test_chart(run, opened, page, tmp_path):
    """Boxes of a chart are in the order of the calls, with their times, and nothing offers another order."""
    data, files = tmp_path / "logged.data", tmp_path / "files"
    files.mkdir()
    for number in range(150):
        (files / f"a file {number}").touch()
    run("record", "--engine=preload", "--events", "-q", "-o", data, "--", "ls", files)
    picture = opened(data, "--chart", "--cost=allocations")
    assert page.evaluate("document.querySelectorAll('.flame-order, .flame-reversed, .flame-merged, .flame-folded').length") == 0
    units = {"ns": 1, "\u00b5s": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
    comes_again = False
    for depth in (5, 8):
        boxes = []
        for x in range(4, int(picture.width), 12):
            picture.point(x, depth)
            name, shown = picture.details() or (None, {})
            if "called" in shown and (not boxes or boxes[-1] != (name, shown["called"])):
                boxes.append((name, shown["called"]))
        starts = [float(value) * units[unit] for value, unit in (called.split()[:2] for _, called in boxes)]
        assert len(starts) > 2 and starts == sorted(starts), boxes
        names = [name for name, _ in boxes]
        comes_again = comes_again or any(name in names[:at - 1] for at, name in enumerate(names) if at > 1)
    assert comes_again
