# SPDX-License-Identifier: GPL-3.0-or-later
"""--by=type: which types blocks are of, against programs that count themselves what they allocate for which type."""

import collections
import json
import re
import subprocess
import sys

import pytest

from support import SOURCE

sys.path.insert(0, str(SOURCE / "tests"))

import pprof  # noqa: E402

BUILDS = ["types_O0", "types_O2", "types_clang", "types_rust"]


@pytest.fixture
def recorded(run, allocprof, target, tmp_path):
    """recorded(build): the data file, and {type: calls} as the program says."""
    def record(build, *options):
        path = tmp_path / "data"
        said = run([allocprof, "record", "-q", *options, "-o", path, "--", target(build)], expect=0).stdout.decode()
        rows = [line.split("\t") for line in said.splitlines()]
        return path, {name: int(count) for count, name in rows}
    return record


@pytest.fixture
def types(run, allocprof):
    """types(data, options): {type: calls} as report says; those that are not known as "[in FUNCTION]"."""
    def read(path, *options):
        report = json.loads(run([allocprof, "report", "--json", "--top=0", "--by=type", *options, path], expect=0).stdout)
        found = collections.Counter()
        for stack in report["stacks"]:
            assert len(stack["frames"]) == 1
            found[report["frames"][stack["frames"][0]]["name"]] += stack["all"]["allocations"]
        return found
    return read


def without_printing(found):
    """Without what the run-time library allocates before and after, which the program does not count."""
    return {name: count for name, count in found.items() if not name.startswith("[in ") and "thread_info" not in name
            and name != "alloc::boxed::Box<str>"}


@pytest.mark.fast("types_O2")
@pytest.mark.parametrize("build", BUILDS)
def test_types_are_right(recorded, types, build):
    """No type has calls that the program did not make for it, and 95 % of its calls have their type."""
    path, truth = recorded(build)
    found = types(path)
    # Rust's stdout has a buffer, too, which is made when the first line is printed.
    late = {"alloc::vec::Vec<u8>": 1} if build == "types_rust" else {}
    wrong = {name: (count, truth.get(name, 0)) for name, count in without_printing(found).items()
             if count > truth.get(name, 0) + late.get(name, 0)}
    assert not wrong, "type: (found, allocated)"
    wanted = sum(count for name, count in truth.items() if name)
    right = sum(min(found[name], count) for name, count in truth.items() if name)
    assert wanted > 50 and right >= 0.95 * wanted, {name: (found[name], count) for name, count in truth.items() if found[name] < count}
    if build != "types_rust":
        assert right == wanted
        # What operator new is called for without any library between has no type.
        assert found["[in app::Packet::Packet]"] == 2 and found["[in own_objects]"] == 1


def test_without_symbols(recorded, types, target, run, allocprof, tmp_path):
    """A stripped program has no types but those of functions in libraries, and no error."""
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, target("types_O2")], check=True)
    data = tmp_path / "data"
    run([allocprof, "record", "-q", "-o", data, "--", stripped], expect=0)
    found = types(data)
    assert {name for name in found if not name.startswith("[in ")} <= {"std::string"}
    assert sum(found.values()) > 300


def test_same_in_all_forms(recorded, types, run, allocprof, tmp_path):
    """The type selects, is the outermost frame of folded, a label in pprof's format, and a band."""
    path, truth = recorded("types_O2", "--live")
    name = "std::map<app::Key, app::Session>"
    chosen = json.loads(run([allocprof, "report", "--json", "--where", f"type = '{name}'", path], expect=0).stdout)
    assert chosen["selected"]["allocations"] == truth[name] == 100
    folded = run([allocprof, "folded", "--no-comm", "--by=type", path], expect=0).stdout.decode().splitlines()
    sums = collections.Counter()
    for line in folded:
        stack, count = line.rsplit(" ", 1)
        sums[stack.split(";")[0].replace("_", "").replace(" ", "")] += int(count)
        assert ";" in stack
    assert sums == {key.replace("_", "").replace(" ", ""): count for key, count in types(path).items()}
    rows = run([allocprof, "report", "--by=type", path], expect=0).stdout.decode()
    assert re.search(r"in [\d,]+ blocks of \d+ rows", rows) and re.search(r"^ *share +bytes", rows, re.M), rows
    tree = run([allocprof, "report", "--tree", "--by=type", path], expect=0).stdout.decode()
    assert f"  {name}" in tree and "fill_containers" in tree
    run([allocprof, "export", "--format=pprof", "-o", tmp_path / "pb.gz", path], expect=0)
    profile = pprof.read(tmp_path / "pb.gz")
    assert sum(values[0] for values, labels, _ in profile.samples if labels.get("type") == name) == 100
    graph = json.loads(run([allocprof, "graph", "--json", "--by=type", path], expect=0).stdout)
    assert any(name in json.dumps(series) for series in graph["series"])
    diff = run([allocprof, "diff", "--by=type", "--all", path, path], expect=0).stdout.decode()
    assert name in diff


def test_same_whatever_is_shown(recorded, types, run, allocprof):
    """Types are of what was called, not of what is printed: inlined functions, the allocator's wrappers, rows of types."""
    path, _ = recorded("types_O2")
    whole = without_printing(types(path))
    for options in (["--no-inline"], ["--raw-stacks"], ["--demangle=full"]):
        assert without_printing(types(path, *options)) == whole, options
    for expression in ("caller = 'own_objects'", "module = 'types_O2'", "type IS NULL"):
        numbers = [json.loads(run([allocprof, "report", "--json", *by, "--where", expression, path], expect=0).stdout)["selected"]
                   for by in ([], ["--by=type"])]
        assert numbers[0]["allocations"] == numbers[1]["allocations"] > 0, expression


def test_incomplete_stacks_are_one_type(recorded, types):
    """Stacks that end early have their type all the same, and it is one row."""
    path, truth = recorded("types_O2", "--max-depth=12")
    found = types(path)
    assert found["std::vector<double>"] == truth["std::vector<double>"]


@pytest.mark.parametrize("command, sentence", [
    (["graph", "--by=thread"], "bands are stacks or, with --by=type, types"),
    (["report", "--by=colour"], "--by takes process, pid, arguments, cgroup, thread or type"),
], ids=["graph", "unknown"])
def test_refused(run, allocprof, command, sentence):
    assert sentence in run([allocprof, *command, "-i", "none"], expect=64).stderr.decode()
