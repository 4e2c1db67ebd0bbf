# SPDX-License-Identifier: GPL-3.0-or-later
"""allocprof check given what it cannot use: a budget, a place for recordings, a command. One sentence
says what is wrong, and what can be judged is judged."""

import json
import os
import shutil
import sqlite3
import xml.etree.ElementTree

import pytest

from test_check import check, write

# What request_server_before allocates for one request.
CALLS = 7
WITHIN = {"max": CALLS, "min": CALLS}
OVER = {"max": CALLS - 1}
ONCE = {"runs": 1, "warmup": 0}


@pytest.fixture
def server(target):
    return [target("request_server_before"), "1"]


def one_line(said):
    """What is not of a test's result."""
    line, = [line for line in said.splitlines() if line.startswith("allocprof: ")]
    return line


def limits(text):
    return ('{"tests": {"a": {"total_allocations": {"max": %s}}}}' % text).encode()


BUDGETS = {
    "negative": (limits("-1"), "max is -1; it cannot be negative"),
    "float": (limits("7.0"), "a whole number"),
    "exponent": (limits("1e3"), "a whole number"),
    "nan": (limits("NaN"), "a whole number"),
    "infinite": (limits("-Infinity"), "a whole number"),
    "greater than integers": (limits("9223372036854775808"), "it has to be from 0"),
    "text": (limits('"7"'), "a whole number"),
    "unknown": (b'{"tests": {"a": {"total_alocations": {"max": 7}}}}', '"total_alocations": unknown key'),
    "twice": (b'{"tests": {"a": {},\n "a": {}}}', 'the key "a" twice, again at line 2, byte 2'),
    "not UTF-8": (b'{"tests": {"\xc3": {}}}', "is no JSON"),
    "UTF-16": ('{"tests": {}}'.encode("utf-16"), "is no JSON"),
    "deep": (b'{"tests":' * 100000, "is no JSON: line 1"),
    "deep lists": (b'{"tests": ' + b"[" * 100000, "is no JSON: line 1"),
    "huge": (b" " * (17 << 20), "too large"),
    "zeros": (b"\0" * 100, "is no JSON"),
    "empty": (b"", "is no JSON"),
    "cut": (b'{"tests": {"a": {"comm', "is no JSON"),
}


@pytest.mark.parametrize("kind", BUDGETS)
def test_budget(run, allocprof, tmp_path, kind):
    text, why = BUDGETS[kind]
    budget, ran = tmp_path / "budget.json", tmp_path / "ran"
    budget.write_bytes(text)
    for words in ([], ["--update"]):
        said = check(run, allocprof, budget, *words, "touch", str(ran), expect=2)
        assert said == one_line(said) + "\n" and why in said and str(budget) in said
        assert len(said) < 1000
    assert not ran.exists() and budget.read_bytes() == text
    assert not (tmp_path / "budget.json.baselines").exists()


def test_no_budget(run, allocprof, tmp_path):
    assert "Is a directory" in one_line(check(run, allocprof, tmp_path, "true", expect=2))
    assert "there is no budget" in one_line(check(run, allocprof, tmp_path / "gone", "true", expect=2))
    result = run([allocprof, "check", "true"], expect=64)
    assert b"no budget" in result.stderr


def test_names(run, allocprof, server, tmp_path):
    tests = {name: {"command": server, "total_allocations": WITHIN, **ONCE} for name in "ab"}
    budget = write(tmp_path / "budget.json", **tests)
    said = check(run, allocprof, budget, "--name", "b", expect=0)
    assert " b: " in said and " a: " not in said
    assert "given twice" in check(run, allocprof, budget, "-n", "a", "-n", "b", expect=64)
    said = check(run, allocprof, budget, "-n", "\x1b[2J", expect=64)
    assert "no test '?[2J' in the budget; it has a, b" in one_line(said)
    assert "can be one of them" in check(run, allocprof, budget, *server, expect=64)


@pytest.mark.slow
def test_baseline_dir(run, allocprof, target, server, tmp_path):
    """It is made, and what failed is compared with what is in it."""
    budget = write(tmp_path / "budget.json", a={"total_allocations": WITHIN, **ONCE})
    kept = tmp_path / "kept here"
    words = ["--baseline-dir", str(kept)]
    check(run, allocprof, budget, *words, *server, expect=0)
    assert os.listdir(kept) == ["a.data"]
    passed = (kept / "a.data").read_bytes()
    said = check(run, allocprof, budget, *words, target("request_server_after"), "1", expect=1)
    assert "only in AFTER: +3" in said
    assert sorted(os.listdir(kept)) == ["a.data", "a.failed.data"]
    assert (kept / "a.data").read_bytes() == passed
    assert not (tmp_path / "budget.json.baselines").exists()


@pytest.mark.slow
def test_renamed_test(run, allocprof, server, tmp_path):
    """The recording of the old name is none of the new one, and stays."""
    budget = write(tmp_path / "budget.json", old={"total_allocations": WITHIN, **ONCE})
    check(run, allocprof, budget, *server, expect=0)
    write(budget, new={"total_allocations": OVER, **ONCE})
    said = check(run, allocprof, budget, *server, expect=1)
    assert "No recording of a run that passed" in said and "allocprof report -i" in said
    assert sorted(os.listdir(f"{budget}.baselines")) == ["new.failed.data", "old.data"]


def spoil_with(text):
    return lambda path: path.write_bytes(text)


def spoil_directory(path):
    path.unlink()
    path.mkdir()


def spoil_table(path):
    with sqlite3.connect(path) as database:
        database.execute("UPDATE counts SET stack = 1000")


SPOILS = {
    "empty": spoil_with(b""), "text": spoil_with(b"no database\n" * 1000),
    "cut": lambda path: os.truncate(path, 5000), "directory": spoil_directory, "rows": spoil_table,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPOILS)
def test_spoilt_baseline(run, allocprof, server, tmp_path, kind):
    budget = write(tmp_path / "budget.json", a={"total_allocations": WITHIN, **ONCE})
    check(run, allocprof, budget, *server, expect=0)
    baseline = tmp_path / "budget.json.baselines" / "a.data"
    SPOILS[kind](baseline)
    write(budget, a={"total_allocations": OVER, **ONCE})
    said = check(run, allocprof, budget, *server, expect=1)
    assert f"over the limit of {CALLS - 1} by 1" in said
    why, = [line for line in said.splitlines() if "cannot be compared" in line]
    assert str(baseline) in why


def read_only(run, directory, argv, expect):
    """Runs @argv where @directory can be read only, which root obeys too."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    return run(["unshare", "-m", "sh", "-c", script, directory, *argv], expect=expect).stderr.decode()


@pytest.mark.slow
def test_no_place_for_baselines(run, allocprof, server, tmp_path):
    """All is judged, and it is said that failures cannot be explained."""
    directory = tmp_path / "project"
    directory.mkdir()
    budget = write(directory / "budget.json",
                   good={"command": server, "total_allocations": WITHIN, **ONCE},
                   bad={"command": server, "total_allocations": OVER, **ONCE})
    argv = [allocprof, "check", "--budget", budget]

    def judged(said, why):
        assert why in one_line(said) and "cannot be explained" in said
        assert "within      good: " in said and "over        bad: " in said

    judged(read_only(run, directory, argv, 1), "Read-only file system")
    file = tmp_path / "file"
    file.write_text("mine")
    judged(check(run, allocprof, budget, "--baseline-dir", str(file), expect=1), "Not a directory")
    assert file.read_text() == "mine"
    judged(check(run, allocprof, budget, "--baseline-dir", str(tmp_path / "no" / "where"), expect=1),
           "No such file")
    assert os.listdir(directory) == ["budget.json"]


@pytest.mark.slow
def test_recording_cannot_be_kept(run, allocprof, server, tmp_path):
    """No room for recordings: the same, for each test."""
    room = tmp_path / "room"
    room.mkdir()
    budget = write(tmp_path / "budget.json",
                   good={"command": server, "total_allocations": WITHIN, **ONCE},
                   bad={"command": server, "total_allocations": OVER, **ONCE})
    script = 'mount -t tmpfs -o size=16k none "$0" && exec "$@"'
    result = run(["unshare", "-m", "sh", "-c", script, room, allocprof, "check", "--budget", budget,
                  "--baseline-dir", room], expect=1)
    said = result.stderr.decode()
    assert said.count("cannot be explained") == 2, said
    assert "within      good: " in said and "over        bad: " in said


def test_update_where_it_cannot_be_written(run, allocprof, server, tmp_path):
    """It is said before anything runs, and the file is as it was."""
    directory, ran = tmp_path / "project", tmp_path / "ran"
    directory.mkdir()
    budget = write(directory / "budget.json", a={"command": ["touch", str(ran)], **ONCE})
    before = budget.read_bytes()
    said = read_only(run, directory, [allocprof, "check", "--budget", budget, "--update"], 125)
    assert said == one_line(said) + "\n" and f"cannot write the budget {budget}" in said
    assert budget.read_bytes() == before and not ran.exists()
    assert os.listdir(directory) == ["budget.json"]


@pytest.mark.slow
def test_update_leaves_what_failed(run, allocprof, server, tmp_path):
    """Nothing of a test that failed is written; of the others all."""
    budget = write(tmp_path / "budget.json",
                   a={"command": server, "total_allocations": OVER, **ONCE},
                   b={"command": [*server[:1], "2"], "total_allocations": OVER, **ONCE},
                   fails={"command": ["sh", "-c", "exit 1"], "total_allocations": OVER, **ONCE})
    before = json.loads(budget.read_text())["tests"]
    budget.chmod(0o640)
    check(run, allocprof, budget, "--update", expect=2)
    after = json.loads(budget.read_text())["tests"]
    assert after["fails"] == before["fails"]
    assert after["a"] == {**before["a"], "total_allocations": {"max": CALLS}}
    assert after["b"] == {**before["b"], "total_allocations": {"max": CALLS + 3}}
    assert list(after) == list(before) and budget.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["budget.json", "budget.json.baselines"]


@pytest.mark.slow
def test_commands_that_fail(run, allocprof, server, tmp_path):
    """None is judged, all others are; the worst is the status."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    tests = {
        "nonzero": ["sh", "-c", "exit 7"], "killed": ["sh", "-c", "kill -KILL $$"],
        "gone": [str(tmp_path / "gone")], "plain": [str(plain)],
    }
    budget = write(tmp_path / "budget.json", **{
        name: {"command": command, "total_allocations": WITHIN, **ONCE}
        for name, command in {**tests, "good": server}.items()})
    for name, status, how in (("nonzero", 2, "status 7"), ("killed", 2, "signal 9"),
                              ("gone", 127, "no such file"), ("plain", 126, "plain")):
        said = check(run, allocprof, budget, "-n", name, expect=status)
        assert how in said, said
        assert not (tmp_path / "budget.json.baselines" / f"{name}.data").exists()
    junit = tmp_path / "junit.xml"
    said = check(run, allocprof, budget, "--junit", str(junit), expect=127)
    assert "within      good: " in said
    suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "0", "4")
    types = {case.get("name"): case.find("error").get("type")
             for case in suite if case.find("error") is not None}
    assert types == {"nonzero": "failed", "killed": "failed", "gone": "not run", "plain": "not run"}


HOSTILE = ['"quoted"', "it's", "<b>&amp;", "]]>", "a]]>b<![CDATA[", "<!--", "&#0;", "\u00e9\u4e2d\U0001f600",
           "\ufffe", "\u0085", "%s%n", "name with blanks "]


@pytest.mark.slow
def test_junit_of_hostile_names(run, allocprof, server, tmp_path):
    budget = tmp_path / "bud\x01get & <co>.json"
    write(budget, **{name: {"command": server, "total_allocations": OVER, **ONCE}
                     for name in HOSTILE})
    junit = tmp_path / "junit.xml"
    said = check(run, allocprof, budget, "--junit", str(junit), expect=1)
    suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
    assert suite.get("name") == "bud?get & <co>.json"
    # XML cannot have U+FFFE; of control characters there is a ? for each byte.
    assert [case.get("name") for case in suite] == [
        name.replace("\ufffe", "?").replace("\x85", "??") for name in HOSTILE]
    for case in suite:
        assert case.find("failure").get("type") == "over"
        assert f"over the limit of {CALLS - 1} by 1" in case.find("failure").get("message")
    assert sorted(os.listdir(f"{budget}.baselines")) == sorted(
        f"{name}.failed.data" for name in HOSTILE)
    # The log is for terminals.
    assert "\u0085" not in said
    if shutil.which("xmllint"):
        run(["xmllint", "--noout", junit], expect=0)
    for name in ("\x1b[2J", "a\nb", "\x7f", "..", "a/b"):
        write(budget, **{name: {"command": server, "total_allocations": OVER, **ONCE}})
        said = check(run, allocprof, budget, expect=2)
        assert "the name has to be one that files can have" in one_line(said)
        assert "\x1b" not in said
