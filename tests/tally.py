#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints how many tests of the last `meson test` passed, failed and were skipped.

tally.py [--clear] BUILD

A test that pytest ran leaves NAME.junit.xml somewhere below BUILD and counts as the tests in it.
--clear removes what earlier runs left.
"""
import pathlib
import sys
import xml.etree.ElementTree


def cases(path):
    return list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def main():
    build = pathlib.Path(sys.argv[-1])
    meson_log = build / "meson-logs" / "testlog.junit.xml"
    details = {path.name.removesuffix(".junit.xml"): path
               for path in build.glob("tests/**/*.junit.xml")}
    if sys.argv[1] == "--clear":
        for path in [meson_log, *details.values()]:
            path.unlink(missing_ok=True)
        return
    sums = {"passed": 0, "failed": 0, "skipped": 0}
    for case in cases(meson_log):
        found = [case]
        # "allocprof:live / test_leave"
        name = case.get("name").split(" / ")[-1]
        if name in details:
            found = cases(details[name])
            # Killed, out of time, or nothing to collect.
            if outcome(case) == "failed" and all(outcome(one) != "failed" for one in found):
                found.append(case)
        for one in found:
            sums[outcome(one)] += 1
    print(*sums.values())


main()
