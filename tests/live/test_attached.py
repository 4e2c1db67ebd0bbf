# SPDX-License-Identifier: GPL-3.0-or-later
"""What is beside the recording of a process that was attached to: its name, its children, and what it had before."""

import json
import shutil
import subprocess

import pytest

import support
from support import Obedient, Recording, read_report

PAGE = 4096


# Kernels count pages by processor, and add them up now and then.
RSS_MARGIN = 1 << 19


def is_rss(value, pid):
    now = int(open(f"/proc/{pid}/statm").read().split()[1]) * PAGE
    assert value > 0 and abs(value - now) <= RSS_MARGIN, (value, now)
    return True


@pytest.fixture
def parent(runner, target):
    """An obedient process with two children, as a server that only its workers work for."""
    words = ["sh", "-c", 'sleep 1000 & sleep 1001 & exec "$0" two "words"', target("sleeper")]
    process = Obedient(runner, words)
    children = [int(pid) for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()]
    assert len(children) == 2
    yield process, sorted(children)
    subprocess.run(["kill", *[str(pid) for pid in children]], check=True)


def attach(run, allocprof, command, options, process, expect=0):
    return run([allocprof, command, *options, "--duration", "100ms", "-p", process.pid], expect=expect)


def test_record(run, allocprof, parent, tmp_path):
    """Its title is what it was started as; children and memory are named on each screen, and --quiet is quiet."""
    process, children = parent
    data = tmp_path / "data"
    done = attach(run, allocprof, "record", ["--live", "--no-symbols", "-o", data], process)
    meta = Recording(data).meta
    command = meta["attached_command"]
    assert command.endswith("sleeper two words") and "command" not in meta, meta
    assert is_rss(int(meta["attached_rss_bytes"]), process.pid)
    assert sorted(meta["attached_children"].split("\n")) == [f"{pid} sleep {1000 + i}" for i, pid in enumerate(children)]
    children_said = f"process {process.pid} has 2 children, which were not measured: "
    memory_said = f"process {process.pid} had "
    said = done.stderr.decode()
    assert children_said in said and f"attach to them as well: -p {children[0]},{children[1]}" in said, said
    assert memory_said in said and "(RSS) when the recording began" in said, said
    report = run([allocprof, "report", "-i", data], expect=0).stdout.decode()
    assert report.startswith(f"{data}: {command} (process {process.pid}), "), report
    assert children_said in report and memory_said in report, report
    run([allocprof, "html", "-o", tmp_path / "page.html", data], expect=0)
    assert f"<title>{command} (process {process.pid})" in (tmp_path / "page.html").read_text()
    graph = json.loads(run([allocprof, "graph", "--json", data], expect=0).stdout)
    assert f"{command} (process {process.pid})" in json.dumps(graph)
    assert attach(run, allocprof, "record", ["--quiet", "-o", data], process).stderr == b""
    process.exit()


def test_stat(run, allocprof, parent, tmp_path):
    process, children = parent
    attach(run, allocprof, "stat", ["--json", "-o", tmp_path / "json"], process)
    report = read_report(tmp_path / "json")
    assert report["attached_command"].endswith("sleeper two words"), report
    assert is_rss(report["attached_rss_bytes"], process.pid)
    assert sorted((int(child["pid"]), child["command"]) for child in report["attached_children"]) == [
        (pid, f"sleep {1000 + i}") for i, pid in enumerate(children)]
    text = " ".join(attach(run, allocprof, "stat", [], process).stderr.decode().split())
    assert f"process {process.pid} has 2 children, which were not measured: " in text, text
    process.exit()


def test_title_of_its_own(run, allocprof, runner, target, tmp_path):
    """A server that writes its title over its arguments, and control characters in it."""
    process = Obedient(runner, [target("sleeper")], executable=target("sleeper")) \
        if False else Obedient(runner, ["bash", "-c", 'exec -a "server: pool\tone" "$0"', target("sleeper")])
    attach(run, allocprof, "record", ["--no-symbols", "-o", tmp_path / "data"], process)
    meta = Recording(tmp_path / "data").meta
    assert meta["attached_command"] == "server: pool?one" and "attached_children" not in meta, meta
    process.exit()


@pytest.mark.slow  # the fast tests run in a plain chroot, too, in which none can be made
def test_namespace_of_users(run, allocprof, runner, target, tmp_path):
    """The kernel's version is not the reason."""
    if run(["unshare", "-Ur", "true"]).status:
        support.unavailable("no namespace of users can be made here")
    process = Obedient(runner, [target("sleeper")])
    done = run(["unshare", "-Ur", allocprof, "record", "-o", tmp_path / "data", "-p", process.pid], expect=125)
    said = done.stderr.decode()
    assert "namespace of users" in said and "Linux 5.17" not in said, said
    process.exit()


@pytest.mark.parametrize("name, runtime", [
    ("libjvm.so", "java"), ("beam.smp", "erlang"), ("libcoreclr.so", "dotnet"), ("node", "javascript"),
    ("php-fpm8.2", "php"), ("ruby3.1", "ruby"), ("nodes", None), ("rubyish", None),
])
@pytest.mark.engines("uprobe", "preload")
def test_own_heap(run, allocprof, target, tmp_path, name, runtime):
    """Runtimes that serve objects from memory of their own are known by the names of their files."""
    program = shutil.copy(target("every_function"), tmp_path / name)
    done = run([allocprof, "stat", "--json", "-o", tmp_path / "json", program], expect=3)
    expected = [{"runtime": runtime, "path": str(program)}] if runtime else None
    assert read_report(tmp_path / "json").get("own_heaps") == expected
    assert (f"({program})".encode() in done.stderr) == bool(runtime), done
