# SPDX-License-Identifier: GPL-3.0-or-later
"""What -o names is written as people expect of it: a pipe into the pipe, a link into what it leads to; and nothing that was
read is lost."""

import os
import subprocess
import tarfile

import pytest


def record(run, allocprof, directory, name="p", *words):
    run([allocprof, "record", "-q", "--engine=preload", "--no-symbols", "-o", name, *words, "--", "ls", "/"], cwd=directory,
        expect=0)
    return directory / name


def assert_refused(done, *words):
    lines = done.stderr.decode().splitlines()
    assert done.status and len(lines) == 1, done
    for word in words:
        assert word in lines[0], done


def members(path):
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_archive_into_pipe(run, allocprof, tmp_path):
    record(run, allocprof, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "read", "wb") as file:
        reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=file)
    run([allocprof, "archive", "-i", "p", "-o", "pipe"], cwd=tmp_path, expect=0)
    assert reader.wait(timeout=60) == 0
    assert members(tmp_path / "read")
    assert (tmp_path / "pipe").is_fifo()


def test_archive_through_link_to_own_stdout(run, allocprof, tmp_path):
    record(run, allocprof, tmp_path)
    (tmp_path / "link").symlink_to("/proc/self/fd/1")
    done = run([allocprof, "archive", "-i", "p", "-o", "link"], cwd=tmp_path, expect=0)
    (tmp_path / "read").write_bytes(done.stdout)
    assert members(tmp_path / "read")
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("is_there", [True, False])
def test_archive_through_link(run, allocprof, tmp_path, is_there):
    record(run, allocprof, tmp_path)
    (tmp_path / "there").mkdir()
    if is_there:
        (tmp_path / "there/file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    run([allocprof, "archive", "-i", "p", "-o", "link"], cwd=tmp_path, expect=0)
    assert (tmp_path / "link").is_symlink()
    assert members(tmp_path / "there/file")
    assert os.listdir(tmp_path / "there") == ["file"]


def symbolize(run, allocprof, directory, output):
    return run([allocprof, "symbolize", "--no-debuginfod", "-i", "p", "-o", output], cwd=directory)


def record_again(run, allocprof, directory, output):
    return run([allocprof, "record", "-q", "--engine=preload", "-o", output, "--", "ls", "/"], cwd=directory)


@pytest.mark.parametrize("write", [symbolize, record_again])
def test_data_file_through_link(run, allocprof, tmp_path, write):
    record(run, allocprof, tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    assert write(run, allocprof, tmp_path, "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path / "there")) == ["file", "file.old"]
    assert (tmp_path / "there/file.old").read_text() == "old"
    run([allocprof, "report", "link"], cwd=tmp_path, expect=0)


@pytest.mark.parametrize("write", [symbolize, record_again])
def test_data_file_is_no_stdout_and_no_pipe(run, allocprof, tmp_path, write):
    record(run, allocprof, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    before = sorted(os.listdir(tmp_path))
    for name in ["pipe", "link", "stdout"]:
        assert_refused(write(run, allocprof, tmp_path, name), f"cannot write {name}: it is not a regular file", "-o")
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "link").is_symlink() and (tmp_path / "stdout").is_symlink()


def test_event_log_is_beside_the_data(run, allocprof, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    record(run, allocprof, tmp_path, "link", "--engine=uprobe", "--events")
    assert sorted(os.listdir(tmp_path / "there")) == ["file", "file.events"]
    for name in ["link", "there/file"]:
        done = run([allocprof, "export", "--format=events", "-i", name], cwd=tmp_path, expect=0)
        assert done.stdout


@pytest.fixture
def recorded(run, allocprof, tmp_path):
    """Files that commands read: data files p and b, p's event log, a budget, and lists."""
    record(run, allocprof, tmp_path, "p", "--engine=uprobe", "--events")
    record(run, allocprof, tmp_path, "b")
    (tmp_path / "budget").write_text('{"tests": {"t": {"command": ["true"], "total_allocations": {"max": 5}}}}')
    (tmp_path / "known").write_text("leak:nothing\n")
    (tmp_path / "wrappers").write_text("nothing\n")
    (tmp_path / "link").symlink_to("p.events")
    return tmp_path


@pytest.mark.parametrize("words", [
    "html p --base b -o b",
    "flamegraph p --base b -o b",
    "flamegraph p --base p -o p",
    "html b --base p -o p.events",
    "diff p b -o p",
    "diff b p -o p.events",
    "export --format=events p -o p",
    "export --format=events p.events -o p",
    "export --format=events p.events -o p.events",
    "export --format=events p -o link",
    "export p -o p.events",
    "report p -o p.events",
    "query -i p -o p.events --schema",
    "archive p -o p.events",
    "symbolize --no-debuginfod p -o p.events",
    "check --engine=preload -b budget -o budget",
    "check --engine=preload -b budget --junit budget",
    "folded p --wrappers=wrappers -o wrappers",
    "diff b p --wrappers=wrappers -o wrappers",
])
def test_what_is_read_is_not_written(run, allocprof, recorded, words):
    before = {path: path.read_bytes() for path in recorded.iterdir()}
    done = run([allocprof, *words.split()], cwd=recorded)
    assert_refused(done, " itself; name another file with ", "--junit" if "--junit" in words else "-o")
    assert {path: path.read_bytes() for path in recorded.iterdir()} == before


def test_suppressions_are_not_written(run, allocprof, recorded):
    run([allocprof, "record", "-q", "--engine=preload", "--live", "-o", "b", "--", "ls", "/"], cwd=recorded, expect=0)
    done = run([allocprof, "report", "b", "--leaks", "--suppressions=known", "-o", "known"], cwd=recorded)
    assert_refused(done, "known is the file of --suppressions itself; name another file with -o")
    assert (recorded / "known").read_text() == "leak:nothing\n"


def test_option_of_the_report_is_named(run, allocprof, recorded):
    done = run([allocprof, "check", "--engine=preload", "-b", "budget", "--junit", "none/x.xml"], cwd=recorded)
    assert_refused(done, "cannot write none/x.xml: No such file or directory; name another file with --junit")
