# SPDX-License-Identifier: GPL-3.0-or-later
"""A tool whose file has capabilities lends these to whoever runs it: for probes, and for nothing that this user could
not do without them. Each test has such a copy in a place that is root's."""

import collections
import json
import os
import shutil
import signal
import stat
import subprocess
import sys

import pytest

import attaching
import support
from attaching import USER, as_user
from support import Recording, in_pid_namespace, unavailable, wait_until

OTHER = 65530
EXIT_STATUS = 3  # every_function's
DOCUMENTED = "cap_bpf,cap_perfmon=ep"
# What a careless administrator may give.
TOO_MANY = "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_override,cap_dac_read_search,cap_fowner,cap_setuid,cap_kill=ep"
PRIVATE = 0o600
GETS_NOTHING = b"programs had more privileges than the user who measured, and were not measured"


@pytest.fixture
def place(allocprof, public_directory):
    """A directory for all users; lent/allocprof has the capabilities, out is the user's, others that of OTHER."""
    for name in ("lent", "src/inside", "out", "runtime", "others", "shared"):
        (public_directory / name).mkdir(parents=True)
    shutil.copy(allocprof, public_directory / "lent")
    shutil.copy(support.BUILD / "src" / "inside" / "liballocprof-inside.so", public_directory / "src" / "inside")
    for name in ("every_function", "sleeper", "gains"):
        shutil.copy(support.target(name), public_directory)
    for name, user, mode in (("out", USER, 0o755), ("runtime", USER, 0o700), ("others", OTHER, 0o700)):
        os.chown(public_directory / name, user, user)
        (public_directory / name).chmod(mode)
    (public_directory / "shared").chmod(0o1777)
    lend(public_directory, TOO_MANY)
    return public_directory


def lend(place, capabilities):
    setcap = shutil.which("setcap") or "/usr/sbin/setcap"
    if not os.path.exists(setcap):
        unavailable("setcap is not installed")
    done = subprocess.run([setcap, capabilities, place / "lent" / "allocprof"], check=False, capture_output=True)
    if done.returncode:
        unavailable(f"this file system has no capabilities of files: {done.stderr!r}")


@pytest.fixture
def environment(place):
    return {"XDG_RUNTIME_DIR": str(place / "runtime"), "HOME": str(place / "out")}


@pytest.fixture
def tool(run, place, environment):
    """Runs it as the user, in a directory of the user's."""
    def ran(*words, env=None, **how):
        return run([*as_user(), place / "lent" / "allocprof", *words], {**environment, **(env or {})},
                   cwd=place / "out", **how)
    return ran


def privileged(place, name, program="gains"):
    """A program that USER gets more by than it has, or whose process it may not look at."""
    path = shutil.copy(place / program, place / name)
    if name == "set_user":
        os.chmod(path, 0o4755)
    elif name == "set_group":
        os.chown(path, 0, OTHER)
        os.chmod(path, 0o2755)
    elif name == "capabilities":
        subprocess.run([shutil.which("setcap") or "/usr/sbin/setcap", "cap_net_raw=ep", path], check=True)
    else:
        os.chmod(path, 0o711)
    return path


def sentence(result, status):
    """The one on standard error."""
    line, = result.stderr.decode().splitlines()
    assert result.status == status and line.startswith("allocprof: "), result
    return line


@pytest.mark.covering(1)
@pytest.mark.fast("documented-stat", "too_many-record")
@pytest.mark.parametrize("words", [["stat"], ["record"], ["record", "--live"], ["record", "--events"]], ids="-".join)
@pytest.mark.parametrize("capabilities", [DOCUMENTED, TOO_MANY], ids=["documented", "too_many"])
def test_it_counts(tool, place, capabilities, words):
    lend(place, capabilities)
    options = ["--json"] if words == ["stat"] else []
    tool(*words, *options, "-o", "x", "--", place / "every_function", env={"ALLOCPROF_ENGINE": "uprobe"},
         expect=EXIT_STATUS)
    stated = support.stated("every_function")
    if options:
        report = json.loads((place / "out" / "x").read_text())
        assert report["complete"] and report["engine"] == "uprobe"
        calls = report["functions"]["malloc"]["calls"], report["functions"]["calloc"]["calls"]
    else:
        recording = Recording(place / "out" / "x")
        assert recording.ledger["lost"] == 0 and recording.ledger["complete"] == recording.ledger["events"]
        calls = recording.functions["malloc"][0], recording.functions["calloc"][0]
    assert calls == (stated["malloc"].calls, stated["calloc"].calls)
    for path in (place / "out").iterdir():
        assert path.stat().st_uid == USER


@pytest.mark.parametrize("missing", ["cap_bpf", "cap_perfmon"])
def test_one_less(tool, place, missing):
    lend(place, "cap_bpf=ep" if missing == "cap_perfmon" else "cap_perfmon,cap_sys_ptrace=ep")
    said = sentence(tool("stat", "-p", "1"), 125)
    assert f"recording needs {missing.upper()}, which this user lacks" in said
    tool("stat", "--", place / "every_function", expect=EXIT_STATUS)


def test_own_process(runner, tool, place, environment):
    """It can be attached to; and nobody but root can look into the tool, which has BPF programs and their maps."""
    target = support.Obedient(runner, [*as_user(), place / "sleeper"])
    process = runner.start([*as_user(), place / "lent" / "allocprof", "stat", "--json", "-o", "x", "-p", target.pid],
                           environment, cwd=place / "out", stderr=-1)

    def is_counting():
        assert process.poll() is None, process.stderr.read()
        return tool("ctl", "-p", process.pid, "status").stdout.startswith(b"counting")

    wait_until(is_counting, "it counts")
    for name in ("mem", "environ", "maps", "fd", "map_files"):
        looked = subprocess.run([*as_user(), "sh", "-c", f"ls {name}/ 2>&1 || cat {name}"], cwd=f"/proc/{process.pid}",
                                capture_output=True, check=False)
        assert looked.returncode and b"denied" in looked.stdout + looked.stderr, (name, looked)
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{process.pid}/status") if ":\t" in line)
    # CAP_PERFMON and CAP_BPF, of all that the file has.
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 1 << 38 | 1 << 39
    assert not int(status["CapInh"], 16) and not int(status["CapAmb"], 16)
    target.ask("alloc 1234")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=support.TIMEOUT_SECONDS)
    assert json.loads((place / "out" / "x").read_text())["functions"]["malloc"]["calls"] == 1234
    target.exit()


@pytest.mark.parametrize("owner", [OTHER, 0], ids=["another", "root"])
def test_process_of_others(runner, tool, place, owner):
    target = support.Obedient(runner, [*as_user(owner), place / "sleeper"])
    for words in (["stat"], ["record"], ["record", "--live"], ["record", "--events"], ["stat", "--within", "main"],
                  ["record", "--start-on", "main"], ["record", "--no-follow"]):
        said = sentence(tool(*words, "-o", "x", "-p", target.pid), 125)
        assert f"process {target.pid} is another user's, or has more privileges than this user" in said
    done = tool("doctor", "-p", target.pid, expect=2)
    assert b"is another user's, or has more privileges than this user" in done.stderr
    assert b"libc" not in done.stdout
    assert not list((place / "out").iterdir())
    target.exit()


@pytest.mark.parametrize("kind", ["set_user", "set_group", "capabilities", "unreadable"])
def test_program_with_more(tool, place, kind):
    """Of a program that gains privileges nothing is counted, whoever starts it, nor of what it starts."""
    program = privileged(place, kind)
    command = ["sh", "-c", f"{program} once; {place}/gains each 3 {program} once; {program} 0 {place}/gains once"]
    for words in (["stat", "--json"], ["stat", "--live", "--json"]):
        tool(*words, "-o", "x", "--", place / "gains", "each", "5", program, "once", expect=0)
        report = json.loads((place / "out" / "x").read_text())
        assert report["processes_refused"] == 5 and not report["complete"]
        assert report["functions"]["malloc"]["calls"] == 0, report["functions"]
    for words in (["record"], ["record", "--live"], ["record", "--events"]):
        done = tool(*words, "-o", "a.data", "--", *command, expect=0)
        assert GETS_NOTHING in done.stderr, done
        recording = Recording(place / "out" / "a.data")
        assert recording.gaps["processes_refused"] == [(5, "", "")]
        paths = [path for path, in recording.sql("SELECT path FROM modules")]
        assert not [path for path in paths if path == program], paths
        shown = tool("report", "-i", "a.data", expect=0)
        assert b"more privileges than the user who measured" in shown.stdout + shown.stderr
    tool("stat", "--json", "-o", "x", "--", program, "once", expect=0)
    assert json.loads((place / "out" / "x").read_text())["functions"]["malloc"]["calls"] == 0


@pytest.mark.slow  # the fast tests run in a plain chroot, too, in which none can be made
def test_namespace_of_users(run, tool, place):
    """Where the user is root in a namespace it has made, that is no gain."""
    if run([*as_user(), "unshare", "-Ur", "true"]).status:
        unavailable("no namespace of users can be made here")
    tool("stat", "--json", "-o", "x", "--", "unshare", "-Ur", place / "every_function", expect=EXIT_STATUS)
    report = json.loads((place / "out" / "x").read_text())
    assert report["functions"]["calloc"]["calls"] >= support.stated("every_function")["calloc"].calls
    assert report["processes_refused"] == 0


def others_files(place):
    """What is OTHER's, closed to USER: (path, content) of each."""
    files = {}
    for name in ("secret.data", "report"):
        path = place / "others" / name
        path.write_text(f"{name} of another user\n")
        os.chown(path, OTHER, OTHER)
        path.chmod(0o644 if name == "report" else PRIVATE)
        files[path] = path.read_bytes()
    return files


def test_files_of_others(runner, tool, place):
    """Files of another user are neither read nor written, by path or through /proc/PID."""
    target = support.Obedient(runner, [*as_user(OTHER), "sh", "-c", f"cd {place}/others && exec {place}/sleeper"])
    files = others_files(place)
    tool("record", "-q", "-o", "mine.data", "--", place / "every_function", expect=EXIT_STATUS)
    ways = [f"{place}/others", f"/proc/{target.pid}/cwd", f"/proc/{target.pid}/root{place}/others"]
    for way in ways:
        for path in files:
            name = f"{way}/{path.name}"
            read = tool("report", "-i", name, expect=2)
            assert b"ermission denied" in read.stderr and b"of another user" not in read.stdout + read.stderr, read
            for words in (["report", "-i", "mine.data"], ["folded", "-i", "mine.data"], ["html", "-i", "mine.data"],
                          ["export", "-i", "mine.data"], ["stat", "--", "true"], ["record", "--", "true"]):
                end = words.index("--") if "--" in words else len(words)
                done = tool(*words[:end], "-o", name, *words[end:])
                assert done.status in (2, 125), done
                assert b"ermission denied" in done.stderr or b"a link of another user's is on the way" in done.stderr, done
        done = tool("doctor", f"{way}/sleeper")
        assert f"cannot run '{way}/sleeper': its directory may not be searched" in done.stderr.decode(), done
    assert {path: path.read_bytes() for path in files} == files
    assert sorted(path.name for path in (place / "others").iterdir()) == ["report", "secret.data"]
    target.exit()


@pytest.mark.parametrize("what", ["file", "link", "link_to_own"])
def test_sticky_directory(tool, place, what):
    """As /tmp is: neither a file of another user's nor a link of another user's is written by."""
    at, file = place / "shared" / "x", place / "out" / "file"
    file.write_text("as it was")
    os.chown(file, USER, USER)
    if what == "file":
        at.write_text("as it was")
        os.chown(at, OTHER, OTHER)
        at.chmod(0o666)
    else:
        at.symlink_to(file if what == "link_to_own" else place / "others" / "new")
        os.chown(at, OTHER, OTHER, follow_symlinks=False)
    for words in (["stat", "-o", at], ["record", "-o", at]):
        done = tool(*words, "--", "true")
        assert at.is_symlink() == (what != "file")
        assert file.read_text() == "as it was" and not list((place / "others").iterdir()), done
        if what == "file":
            assert at.read_text() == "as it was" and at.stat().st_uid == OTHER
        assert done.status == 125, done


@pytest.mark.parametrize("mode", [0o4755, 0o2755], ids=["set_user", "set_group"])
def test_set_user_id(tool, place, mode):
    lend(place, "=")
    (place / "lent" / "allocprof").chmod(mode)
    assert stat.S_IMODE((place / "lent" / "allocprof").stat().st_mode) == mode
    assert "does not run set-user-ID or set-group-ID" in sentence(tool("report", "-i", "x"), 2)


def test_preloaded_libraries(tool, place, counter, run):
    """The dynamic linker takes LD_PRELOAD away from such a file: neither the tool nor the command has the library.
    env(1) gives it to the command, and so does the engine preload with its own."""
    counts = counter()
    path = counts.path
    os.chmod(path.parent, 0o755)
    for directory in path.parents:
        if os.stat(directory).st_uid == 0 and str(directory).startswith("/tmp/"):
            os.chmod(directory, 0o755)
    library = shutil.copy(support.COUNTER_LIBRARY, place)
    preload = {"LD_PRELOAD": library, "LD_LIBRARY_PATH": str(place / "out")}
    show = ["sh", "-c", "echo ${LD_PRELOAD-none}"]
    assert tool("stat", "-o", "x", "--", *show, env=preload, expect=0).stdout == b"none\n"
    # What it hands on to itself where it may; no process of the tool has it.
    kept = tool("stat", "-o", "x", "--", *show, env={"ALLOCPROF_KEPT_PRELOAD": library}, expect=0)
    assert kept.stdout.decode() == f"{library}\n"
    done = tool("stat", "-o", "x", "--", "env", f"LD_PRELOAD={library}", *show, expect=0)
    assert done.stdout.decode() == f"{library}\n"
    tool("stat", "--engine=preload", "--json", "-o", "x.json", "--", place / "every_function", env=preload,
         expect=EXIT_STATUS)
    report = json.loads((place / "out" / "x.json").read_text())
    assert report["engine"] == "preload" and report["complete"]
    assert report["functions"]["malloc"]["calls"] == support.stated("every_function")["malloc"].calls


# Races: what is attached to is another program by then.

@pytest.mark.parametrize("words, tries", [
    pytest.param(["stat"], 200, id="stat-few"),
    pytest.param(["stat", "--live"], 200, id="live-few", marks=pytest.mark.slow),
    pytest.param(["stat"], int(os.environ.get("ALLOCPROF_TRIES", 500)), id="stat-many", marks=pytest.mark.slow)])
def test_many_gain(tool, place, words, tries):
    """Each of many processes becomes a set-user-ID program at once, and calls malloc."""
    program = privileged(place, "set_user")
    tool(*words, "--json", "-o", "x", "--", place / "gains", "each", tries, program, "once", expect=0,
         timeout=support.TIMEOUT_SECONDS + tries / 10, env={"ALLOCPROF_ENGINE": "uprobe"})
    report = json.loads((place / "out" / "x").read_text())
    assert report["functions"]["malloc"]["calls"] == 0
    # One that the kernel skipped the program for is named as unfollowed.
    assert report["processes_refused"] + report["processes_unfollowed"] >= tries


# A longer run is `ALLOCPROF_TRIES=10000`: 0.2 to 0.6 s each.
TRIES = [pytest.param(10, id="few"),
         pytest.param(int(os.environ.get("ALLOCPROF_TRIES", 30)), id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("tries", TRIES)
def test_exec_while_attaching(runner, place, environment, tries):
    """At moments that are spread over the time that it takes to attach."""
    program = privileged(place, "set_user")
    longest = attaching.microseconds(runner, place, environment)
    refused = 0
    for number in range(tries):
        delay = longest * number // tries
        victim = runner.start([*as_user(), place / "gains", delay, program, "spend", 2 * longest // 1000])
        calls = attaching.calls(*attaching.begin(runner, place, environment, victim.pid))
        victim.kill()
        victim.wait()
        runner.started.clear()
        assert not calls, f"after {delay} us: {calls} calls of a program with more privileges"
        refused += calls is None
    # The first has executed it before anything else.
    assert refused


@pytest.mark.parametrize("tries", TRIES)
def test_pid_is_used_again(run, place, environment, tries):
    """The process ends while it is attached to, and one of root's has its number. In a PID namespace, since whatever
    else is measured on this machine meanwhile would have such processes, too."""
    done = run(in_pid_namespace([sys.executable, attaching.__file__, place, tries]), environment, timeout=tries + support.TIMEOUT_SECONDS)
    assert done.stdout == b"%d tries\n" % tries, done


# Makes the name x, over and over, a file, then a link, then nothing.
SWAP = """
import contextlib, os, sys
own, link, at = sys.argv[1:]
while True:
    # In a sticky directory what the other one has made stays until that one removes it.
    with contextlib.suppress(OSError):
        open(own, "w").close()
        os.rename(own, at)
    with contextlib.suppress(OSError):
        os.symlink(link, own)
    with contextlib.suppress(OSError):
        os.rename(own, at)
        os.unlink(at)
"""


@pytest.mark.parametrize("tries", TRIES)
@pytest.mark.parametrize("swapper", [USER, OTHER], ids=["user", "other"])
def test_output_is_swapped(runner, tool, place, environment, tries, swapper):
    """While it is opened and replaced. Neither the user nor another one has it write over what its user may not write to, or
    through a link of another's: what x leads to is as it was."""
    directory = place / ("out" if swapper == USER else "shared")
    kept = others_files(place)
    own = place / "out" / "own"
    own.write_text("the user's own")
    os.chown(own, USER, USER)
    tool("record", "-q", "-o", "mine.data", "--", place / "every_function", expect=EXIT_STATUS)
    link = own if swapper == OTHER else place / "others" / "report"
    swap = runner.start([*as_user(swapper), sys.executable, "-S", "-c", SWAP, directory / "swap", link, directory / "x"])
    # rm fails where the other user has made the file.
    loop = 'for i in $(seq "$1"); do "$0" folded -i mine.data -o "$2" 2> /dev/null; echo $?; rm -f "$2"; done; true'
    done = runner.run([*as_user(), "sh", "-c", loop, place / "lent" / "allocprof", tries, directory / "x"], environment,
                      cwd=place / "out", timeout=tries + support.TIMEOUT_SECONDS, expect=0)
    statuses = collections.Counter(done.stdout.split())
    print(dict(statuses))
    assert set(statuses) <= {b"0", b"2"} and statuses.total() == tries, statuses
    assert swap.poll() is None
    swap.kill()
    assert {path: path.read_bytes() for path in kept} == kept and own.read_text() == "the user's own"
