#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints how many tests of the last `meson test` passed, failed and were skipped.

tally.py [--clear | --failures | --skipped | --times] BUILD

A test that pytest ran leaves NAME.junit.xml somewhere below BUILD and counts as the tests in it.
--clear removes what earlier runs left. --failures prints a line for each test that failed: its name and why. --skipped
prints a line for each reason why tests were skipped, and which those were. --times prints how long the tests of each
suite took, added up, and the ten slowest cases.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree


def meson_log(build):
    return build / "meson-logs" / "testlog.junit.xml"


def case_files(build):
    return {path.name.removesuffix(".junit.xml"): path for path in build.glob("tests/**/*.junit.xml")}


# What XML 1.0 has no characters for; meson writes what tests print as it is.
NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def cases(path):
    text = NO_CHARACTERS.sub("?", path.read_text(encoding="utf-8", errors="replace"))
    return list(xml.etree.ElementTree.fromstring(text.encode()).iter("testcase"))


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def found_cases(build):
    """The name that meson has for a test, and a case of it, for each case."""
    details = case_files(build)
    for case in cases(meson_log(build)):
        found = [case]
        # "allocprof:live / test_leave"
        name = case.get("name").split(" / ")[-1]
        if name in details:
            found = cases(details[name])
            # Killed, out of time, or nothing to collect.
            if outcome(case) == "failed" and all(outcome(one) != "failed" for one in found):
                found.append(case)
        for one in found:
            yield name, one


def reason(case):
    """The first line of why a case failed or was skipped. Meson gives none."""
    problem = next(found for name in ("failure", "error", "skipped") if (found := case.find(name)) is not None)
    said = problem.get("message") or problem.text or ""
    return next(iter(said.splitlines()), "")[:400]


def times(build):
    """Tests run beside each other, so the sums are more than what passed by the clock."""
    suites = collections.Counter()
    for case in cases(meson_log(build)):
        # "allocprof:live+distribution / test_names": the first one is that which it is one of alone.
        suites[case.get("name").split(" / ")[0].split(":")[-1].split("+")[0]] += float(case.get("time", 0))
    yield "time: " + ", ".join(f"{suite} {seconds:.0f} s" for suite, seconds in suites.most_common())
    slowest = sorted(((float(case.get("time", 0)), name, case.get("name")) for name, case in found_cases(build)),
                     reverse=True)
    for seconds, name, case in slowest[:10]:
        yield f"time: {seconds:.0f} s {name}: {case}"


def main():
    build = pathlib.Path(sys.argv[-1])
    if sys.argv[1] == "--clear":
        for path in [meson_log(build), *case_files(build).values()]:
            path.unlink(missing_ok=True)
        return
    if sys.argv[1] == "--failures":
        for name, case in found_cases(build):
            if outcome(case) == "failed":
                print(f"FAILED: {name}: {case.get('name')}: {reason(case)}")
        return
    if sys.argv[1] == "--skipped":
        why = collections.defaultdict(collections.Counter)
        for name, case in found_cases(build):
            if outcome(case) == "skipped":
                why[reason(case) or "it does not say why"][name] += 1
        for sentence, names in why.items():
            print(f"skipped: {sentence}: " + ", ".join(f"{name} ({n})" if n > 1 else name for name, n in names.items()))
        return
    if sys.argv[1] == "--times":
        for line in times(build):
            print(line)
        return
    sums = {"passed": 0, "failed": 0, "skipped": 0}
    for _, case in found_cases(build):
        sums[outcome(case)] += 1
    print(*sums.values())


main()
