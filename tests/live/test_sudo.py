# SPDX-License-Identifier: GPL-3.0-or-later
"""What sudo leaves in the environment decides whose the files are that root writes."""

import json
import os
import pwd
import shutil

import pytest

import support

USER, GROUP = 65534, 65533
SUDO = {"SUDO_UID": str(USER), "SUDO_GID": str(GROUP)}
EXIT_STATUS = 3  # every_function's


@pytest.fixture
def directory(public_directory):
    """One that USER can reach and that is root's."""
    return public_directory


def owners(directory):
    """Of all that is in it: name, owner, group and mode."""
    found = {}
    for place, directories, files in os.walk(directory):
        for name in directories + files:
            path = os.path.join(place, name)
            status = os.lstat(path)
            found[os.path.relpath(path, directory)] = (status.st_uid, status.st_gid,
                                                       oct(status.st_mode & 0o7777))
    return found


def test_recorded_by_sudo_and_read_without(run, allocprof, directory):
    record = [allocprof, "record", "-o", "a.data", "--", support.target("every_function")]
    for _ in range(2):
        run(record, SUDO, expect=EXIT_STATUS, cwd=directory)
    assert owners(directory) == dict.fromkeys(["a.data", "a.data.old"], (USER, GROUP, "0o600"))
    # What is installed can be run by everybody, what is tested perhaps not.
    executable = shutil.copy(allocprof, directory / "allocprof")
    # A shell of su(1) keeps root's.
    roots = directory / "home"
    roots.mkdir(mode=0o700)
    for home in "/nonexistent", roots:
        done = run(["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", executable, "report",
                    "a.data"], {"HOME": str(home)}, expect=0, cwd=directory)
        assert b"complete" in done.stdout, done


def test_a_directory_above_is_closed(run, allocprof, directory):
    """The file is read from where the user is, by no path from the root."""
    inner = directory / "inner"
    inner.mkdir()
    run([allocprof, "record", "-q", "-o", "a.data", "--", support.target("every_function")], SUDO, expect=EXIT_STATUS,
        cwd=inner)
    shutil.copy(allocprof, inner / "allocprof")
    directory.chmod(0o700)
    done = run(["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", "./allocprof", "report",
                "a.data"], expect=0, cwd=inner)
    assert b"complete" in done.stdout, done


@pytest.mark.slow
def test_every_command_that_writes(run, allocprof, directory):
    program = support.target("every_function")
    budget = {"tests": {"t": {"command": ["/bin/true"], "total_allocations": {"max": 0}}}}
    (directory / "limits.json").write_text(json.dumps(budget))
    os.chown(directory / "limits.json", USER, GROUP)
    before = owners(directory)
    for words, expect in [
            (["record", "--live", "-o", "a.data", "--", program], EXIT_STATUS),
            (["record", "--no-symbols", "-r", "2", "-o", "b.data", "--", program], EXIT_STATUS),
            (["stat", "-o", "stat", "--", program], EXIT_STATUS),
            (["symbolize", "-i", "b.data"], 0),
            (["archive", "-i", "a.data"], 0),
            (["report", "-i", "a.data", "-o", "report"], 0),
            (["folded", "-i", "a.data", "-o", "folded"], 0),
            (["graph", "-i", "a.data", "-o", "graph.svg"], 0),
            (["graph", "-i", "a.data", "-o", "graph.png"], 0),
            (["diff", "a.data", "b.data", "-o", "diff"], 0),
            (["check", "--budget", "limits.json", "--update", "-r", "1", "--warmup", "0",
              "--junit", "junit.xml", "-o", "check"], 0),
            (["check", "--budget", "new.json", "--update", "-r", "1", "--warmup", "0", "--",
              "/bin/true"], 0)]:
        run([allocprof, *words], SUDO, expect=expect, cwd=directory)
    written = owners(directory)
    assert before.keys() < written.keys() and len(written) > 14, written
    wrong = {name: found for name, found in written.items() if found[:2] != (USER, GROUP)}
    assert not wrong, wrong
    modes = {name: found[2] for name, found in written.items()}
    for name in ("a.data", "b.data", "b.data.old"):
        assert modes[name] == "0o600"
    for name in ("stat", "report", "folded", "graph.svg", "graph.png", "diff", "junit.xml", "check",
                 "new.json"):
        assert modes[name] == "0o644", name


def test_a_dump(runner, run, allocprof, directory):
    target = support.Obedient(runner, [support.target("sleeper")])
    recording = runner.start([allocprof, "record", "-o", "a.data", "-p", str(target.pid)], SUDO,
                             cwd=directory)
    status = [allocprof, "ctl", "-p", str(recording.pid), "status"]
    support.wait_until(lambda: run(status).status == 0, "the recording can be asked")
    run([allocprof, "ctl", "-p", str(recording.pid), "dump"], expect=0)
    recording.terminate()
    recording.wait(support.TIMEOUT_SECONDS)
    assert owners(directory) == dict.fromkeys(["a.data", "a.data.1"], (USER, GROUP, "0o600"))


@pytest.mark.fast("a link to a file")
@pytest.mark.parametrize("place", ["a file", "a link to a file", "a link to nothing"])
def test_what_was_there_stays_whose_it_is(run, allocprof, directory, place):
    """In a directory of the user's, who can put links there. What a link to nothing makes was not there."""
    named = directory / "named"
    (directory / "users").mkdir()
    os.chown(directory / "users", USER, GROUP)
    report = directory / "users" / "report"
    run([allocprof, "record", "-o", "a.data", "--", support.target("every_function")],
        expect=EXIT_STATUS, cwd=directory)
    if place == "a file":
        report.touch(0o644)
    else:
        report.symlink_to(named)
    if place == "a link to a file":
        named.touch(0o600)
    run([allocprof, "report", "-i", "a.data", "-o", report], SUDO, expect=0, cwd=directory)
    status = report.stat()
    expected = (USER, GROUP) if place == "a link to nothing" else (0, 0)
    assert (status.st_uid, status.st_gid) == expected and status.st_size


@pytest.mark.fast("-1", "65534x")
@pytest.mark.parametrize("user", ["", "0", "-1", "4294967295", "65534x", " 65534", "99999999999"])
def test_no_user(run, allocprof, directory, user):
    run([allocprof, "stat", "-o", "stat", "--", "/bin/true"], {"SUDO_UID": user, "SUDO_GID": "65533"},
        expect=0, cwd=directory)
    assert owners(directory)["stat"][:2] == (0, 0)


def test_command_of_another_user(run, allocprof, directory):
    """Name, groups and environment; the recording is root's own, complete, and so is what the command prints."""
    show = ["sh", "-c", "id -u; id -g; id -G; echo $HOME; touch made"]
    directory.chmod(0o777)
    done = run([allocprof, "record", "-o", "a.data", "--user", "daemon", "--", *show], {"HOME": "/nowhere"}, expect=0,
               cwd=directory)
    daemon = pwd.getpwnam("daemon")
    groups = " ".join(map(str, os.getgrouplist("daemon", daemon.pw_gid)))
    assert done.stdout.decode() == f"{daemon.pw_uid}\n{daemon.pw_gid}\n{groups}\n/nowhere\n"
    found = owners(directory)
    assert found["made"][:2] == (daemon.pw_uid, daemon.pw_gid)
    assert found["a.data"] == (0, 0, "0o600")
    ledger = support.Recording(directory / "a.data").ledger
    assert ledger["events"] > 0 and ledger["lost"] == 0, ledger


@pytest.mark.parametrize(("words", "why", "status"), (
    (["nobody-of-this-name", "--", "true"], b"there is no user 'nobody-of-this-name'", 125),
    (["4294967295", "--", "true"], b"there is no user '4294967295'", 125),
    (["daemon", "-p", "1"], b"-p and --user cannot be used together", 64),
), ids=("unknown", "no number", "a process"))
def test_no_such_user(run, allocprof, words, why, status):
    done = run([allocprof, "stat", "--user", *words], expect=status)
    assert why in done.stderr, done


def test_another_user_in_the_process(run, allocprof):
    """The dynamic linker would print an error into the command's output: that user may not open root's library."""
    done = run([allocprof, "stat", "--engine", "preload", "--user", "daemon", "--", "echo", "ran"], expect=125)
    assert b"run allocprof itself as that user (sudo -u)" in done.stderr, done
    assert done.stdout == b""
    run([allocprof, "stat", "--engine", "preload", "--user", "root", "--", "true"], expect=0)


def test_another_user_without_privileges(run, allocprof, directory):
    executable = shutil.copy(allocprof, directory / "allocprof")
    done = run(["setpriv", f"--reuid={USER}", f"--regid={GROUP}", "--clear-groups", executable, "stat", "--user",
                "daemon", "--", "true"], expect=125)
    assert b"cannot run a command as 'daemon' without being root" in done.stderr, done
