# SPDX-License-Identifier: GPL-3.0-or-later
"""Return probes that somebody else has in the target, which replace return addresses on its stack:
calls are told from what is internal, and stacks are whole, as without them."""

import json
import os

import pytest

import conftest
from support import (Hits, Obedient, by_address, folded, libc_path, patched_functions, symbol_offsets,
                     wait_until)

MANY_STACKS = ["many_stacks", "-t", "4", "4000", "200"]


class ReturnProbes(Hits):
    """The kernel's own, for all processes: at the entries of libc's functions, which is not where
    allocprof's probes are, and of functions of a target."""

    def __init__(self, runner, target):
        super().__init__(runner)
        offsets = symbol_offsets(target, ("left", "right"), exported=False)
        self.places = [(name, self.path, self.offsets[name]) for name in self.names
                       if name != "free"]
        self.places += [(name, target, offset) for name, offset in offsets.items()]

    def _enable(self, value):
        self._traced(["sh", "-c", f"echo {value} >/sys/kernel/tracing/events/{self.group}/enable"],
                     expect=0)

    def __enter__(self):
        self._events(f"r:{self.group}/{name} {path}:{offset:#x}" for name, path, offset in self.places)
        self._enable(1)
        return self

    def __exit__(self, *_):
        self._enable(0)
        self._events(f"-:{self.group}/{name}" for name, _, _ in self.places)


@pytest.fixture
def kernels(runner, target):
    if os.geteuid() != 0:
        conftest.unavailable("not root: the kernel's probes need it")
    with ReturnProbes(runner, target(MANY_STACKS[0])):
        yield


@pytest.fixture
def anothers(runner, allocprof, target, tmp_path):
    """Another allocprof that follows memory; its probes are in every process."""
    other = Obedient(runner, [allocprof, "record", "--live", "-o", tmp_path / "other", "--",
                              target("sleeper")])
    every = {names[0] for names in by_address(libc_path())}
    bystander = Obedient(runner, [target("sleeper")])
    wait_until(lambda: patched_functions(bystander.pid) == every, "the other's probes are there")
    yield
    other.exit()


def stat_of(run, allocprof, argv, directory, options, expect):
    path = directory / "stat.json"
    run([allocprof, "stat", *options, "--json", "-o", path, "--", *argv], expect=expect)
    report = json.loads(path.read_text())
    return report["functions"], report.get("live")


def stacks_of(run, allocprof, argv, directory, options, expect):
    path = directory / "data"
    run([allocprof, "record", *options, "-o", path, "--", *argv], expect=expect)
    return folded(run, allocprof, path, "--raw-stacks")[0]


WAYS = [(stat_of, []), (stat_of, ["--live"]), (stacks_of, []), (stacks_of, ["--live"])]
IDS = ["stat", "stat-live", "record", "record-live"]
COMMANDS = [(["every_function"], 3), (MANY_STACKS, 0)]


@pytest.mark.covering(1)
@pytest.mark.fast("stat-every_function-kernels", "record-live-every_function-anothers")
@pytest.mark.parametrize("others", ["kernels", "anothers"])
@pytest.mark.parametrize("command, status", COMMANDS, ids=[words[0] for words, _ in COMMANDS])
@pytest.mark.parametrize("way, options", WAYS, ids=IDS)
def test_the_same_beside(run, request, allocprof, target, tmp_path, way, options, command, status,
                         others):
    argv = [target(command[0]), *command[1:]]
    alone = way(run, allocprof, argv, tmp_path, options, status)
    request.getfixturevalue(others)
    assert way(run, allocprof, argv, tmp_path, options, status) == alone
