# SPDX-License-Identifier: GPL-3.0-or-later
"""`allocprof serve`: what it answers is what `report` and `export` say of the recording that it keeps; requests, full disks and kills
leave the recording and the target as they are."""

import errno
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
import yaml

from serving import OPEN, Serve, metrics_of, report, total
from support import Obedient, unavailable, wait_until

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import pprof  # noqa: E402

PROFILES = {"allocs": "alloc_space", "heap": "inuse_space"}


@pytest.fixture
def sleeper(runner, target):
    return Obedient(runner, [target("sleeper")])


def profile_of(data, directory):
    path = directory / "profile"
    path.write_bytes(data)
    return pprof.read(path)


def test_metrics_are_those_of_report(run, runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, "-o", tmp_path / "kept", target=sleeper.pid)
    before = serve.metrics()
    assert total(before, "allocations_total") == 0
    sleeper.ask("alloc 1000")
    sleeper.ask("keep 300")
    sleeper.ask("release 100")
    metrics = wait_until(lambda: total(now := serve.metrics(), "allocations_total") == 1300 and now, "the calls are counted")
    serve.end()
    [path] = serve.files()
    whole = report(run, allocprof, path)["all"]
    for name, figure in {"allocations_total": "allocations", "allocated_bytes_total": "bytes", "live_blocks": "live",
                         "live_bytes": "live_bytes"}.items():
        assert total(metrics, name) == total(metrics, f"function_{name}") == whole[figure], name
    assert whole["live"] == 200 and total(metrics, "deallocations_total") == 1100
    assert total(metrics, "deallocated_bytes_total") == 1000 * 32 + 100 * 48
    label = f'pid="{sleeper.pid}",program="sleeper"'
    assert metrics["allocprof_allocations_total"][label] == 1300 and metrics["allocprof_resident_bytes"][label] > 0
    assert metrics["allocprof_function_live_bytes"]['function="keep"'] == 200 * 48
    assert total(metrics, "calls_lost_total") == 0 and total(metrics, "own_memory_bytes") > 0
    sleeper.exit()


@pytest.mark.parametrize("form", ["open", "text"])
def test_formats(run, runner, allocprof, tmp_path, sleeper, form):
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    with urllib.request.urlopen(urllib.request.Request(serve.address + "/metrics", headers=OPEN if form == "open" else {})) as answer:
        kind, text = answer.headers["Content-Type"], answer.read().decode()
    assert kind.startswith("application/openmetrics-text; version=1.0.0" if form == "open" else "text/plain; version=0.0.4")
    assert text.endswith("# EOF\n") == (form == "open")
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    for name in metrics_of(text):
        family = name.removesuffix("_total") if form == "open" else name
        assert types[family] == ("counter" if name.endswith("_total") else "gauge"), name
    if form == "open":
        return
    if not shutil.which("promtool"):
        unavailable("promtool is missing: Debian's prometheus, scripts/setup --test")
    checked = run(["promtool", "check", "metrics"], stdin=text.encode())
    assert checked.status == 0 and not checked.stdout + checked.stderr, checked


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_those_of_export(run, runner, allocprof, tmp_path, sleeper, name):
    serve = Serve(runner, allocprof, tmp_path, "-o", tmp_path / "kept", target=sleeper.pid)
    serve.metrics()
    sleeper.ask("alloc 500")
    sleeper.ask("keep 70")
    wait_until(lambda: total(serve.metrics(), "allocations_total") == 570, "the calls are counted")
    began = time.time()
    got = profile_of(serve.get(f"/debug/pprof/{name}"), tmp_path)
    assert got.raw["default"] == PROFILES[name] and not got.raw["duration"]
    assert began - 2 <= got.raw["time"] / 1e9 <= time.time()
    serve.end()
    [path] = serve.files()
    run([allocprof, "export", "-i", path, "-o", tmp_path / "exported"], expect=0)
    exported = pprof.read(tmp_path / "exported")
    assert got.totals() == exported.totals() == {"alloc_objects": 570, "alloc_space": 500 * 32 + 70 * 48, "inuse_objects": 70,
                                                 "inuse_space": 70 * 48}
    assert sorted(values for values, _, _ in got.samples) == sorted(values for values, _, _ in exported.samples)
    assert {function["name"] for function in got.functions.values()} == {function["name"] for function in exported.functions.values()}


@pytest.mark.parametrize("path", ["allocs", "heap", "allocs?seconds=1", "heap?seconds=1"])
def test_scrapers_accept(run, runner, allocprof, tmp_path, sleeper, path):
    """Parca and Grafana Alloy take a profile by its status, its type (application/octet-stream) and its first bytes, and Go's parser
    reads it: one of a process that has not allocated, too. What Parca demands of the tables, pprof.read() checks."""
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    for blocks in (0, 30):
        if blocks:
            sleeper.ask(f"keep {blocks}")
            wait_until(lambda: total(serve.metrics(), "allocations_total") == blocks, "the calls are counted")
        with urllib.request.urlopen(f"{serve.address}/debug/pprof/{path}", timeout=60) as answer:
            body = answer.read()
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/octet-stream" and body[:2] == b"\x1f\x8b"
        got = profile_of(body, tmp_path)
        assert [name for name, _ in got.types] == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
        assert got.totals()["alloc_objects"] == (0 if "seconds" in path else blocks)
        raw = run(["go", "tool", "pprof", "-raw", tmp_path / "profile"], env={"PPROF_TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
                  expect=0).stdout.decode()
        assert "alloc_objects/count" in raw


def signed(value):
    return value - 2 ** 64 if value >> 63 else value


def test_span(run, runner, allocprof, tmp_path, sleeper):
    """What was allocated within it, and what was alive before and is not any more."""
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    serve.metrics()
    sleeper.ask("keep 100")
    wait_until(lambda: total(serve.metrics(), "allocations_total") == 100, "the calls are counted")
    connection = http.client.HTTPConnection(serve.address.removeprefix("http://"), timeout=60)
    connection.request("GET", "/debug/pprof/heap?seconds=5")
    # Requests are taken in the order of their coming, so the span's first copy is no later than this one's.
    serve.metrics()
    sleeper.ask("alloc 40")
    sleeper.ask("release 60")
    answer = connection.getresponse()
    assert answer.status == 200
    got = profile_of(answer.read(), tmp_path)
    assert {name: signed(sum(values[i] for values, _, _ in got.samples) % 2 ** 64) for i, (name, _) in enumerate(got.types)} == {
        "alloc_objects": 40, "alloc_space": 40 * 32, "inuse_objects": -60, "inuse_space": -60 * 48}
    assert 5e9 <= got.raw["duration"] < 60e9


def test_go_tool(run, runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    serve.metrics()
    sleeper.ask("keep 1000")
    wait_until(lambda: total(serve.metrics(), "allocations_total") == 1000, "the calls are counted")
    environment = {"PPROF_TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    base = tmp_path / "base.pb.gz"
    base.write_bytes(serve.get("/debug/pprof/heap"))
    top = run(["go", "tool", "pprof", "-top", "-unit=B", f"{serve.address}/debug/pprof/heap"], env=environment, expect=0).stdout.decode()
    assert re.search(r"^ *48000B .* 48000B .* keep", top, re.M), top
    sleeper.ask("keep 10")
    wait_until(lambda: total(serve.metrics(), "allocations_total") == 1010, "the calls are counted")
    diff = run(["go", "tool", "pprof", "-top", "-unit=B", "-diff_base", base, f"{serve.address}/debug/pprof/heap"], env=environment,
               expect=0).stdout.decode()
    assert re.search(r"^ *480B .* keep", diff, re.M), diff


REQUESTS = {
    "no-path": ("/", "GET", 404), "other": ("/debug/pprof/profile", "GET", 404), "post": ("/metrics", "POST", 405),
    "put": ("/debug/pprof/heap", "PUT", 405), "zero": ("/debug/pprof/heap?seconds=0", "GET", 400),
    "sign": ("/debug/pprof/heap?seconds=-1", "GET", 400), "long": ("/debug/pprof/allocs?seconds=601", "GET", 400),
    "overflow": ("/debug/pprof/allocs?seconds=18446744073709551617", "GET", 400), "empty": ("/debug/pprof/heap?seconds=", "GET", 400),
    "part": ("/debug/pprof/heap?seconds=1.5", "GET", 400), "head": ("/metrics", "HEAD", 200), "dots": ("/../../etc/passwd", "GET", 404),
    "more": ("/metrics?x=1&y", "GET", 200)}
GARBAGE = [b"\0" * 100, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n",
           b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
           b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n" + b"x" * 1000,
           b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
           b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)]


def exchange(address, data):
    """What comes back until the server closes, or has answered."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    got = b""
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                got += data
        except ConnectionError:
            pass
        except OSError as error:
            # The server has shut it before this side does.
            if error.errno != errno.ENOTCONN:
                raise
    return got


def test_requests(runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    got = {name: serve.status(path, method=method) for name, (path, method, _) in REQUESTS.items()}
    assert got == {name: status for name, (_, _, status) in REQUESTS.items()}
    process = serve.children()["allocprof-http"]
    for data in GARBAGE:
        answer = exchange(serve.address, data)
        assert not answer or answer.startswith(b"HTTP/1.1 "), (data[:40], answer)
    assert serve.metrics() and serve.children()["allocprof-http"] == process
    assert "started again" not in serve.said()


def test_no_privileges(runner, allocprof, tmp_path, sleeper, monkeypatch):
    """Nor those of the user who called sudo."""
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1234")
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    serve.metrics()
    status = dict(line.split(":\t", 1) for line in
                  pathlib.Path(f"/proc/{serve.children()['allocprof-http']}/status").read_text().splitlines() if ":\t" in line)
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and not status["Groups"].split()
    assert not {"0", "1234", "65534"} & {*status["Uid"].split(), *status["Gid"].split()}


@pytest.mark.slow
def test_slow_client(runner, allocprof, tmp_path, sleeper):
    """A client that sends a byte a second is shut out, whatever its request would become."""
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    host, _, port = serve.address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        def is_shut():
            try:
                connection.send(b"G")
                return False
            except ConnectionError:
                return True
            finally:
                time.sleep(1)
        wait_until(is_shut, "the connection is shut")


def test_many_connections(runner, allocprof, tmp_path, sleeper):
    """1,000 that say nothing keep nobody out."""
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    host, _, port = serve.address.removeprefix("http://").rpartition(":")
    silent = []
    try:
        for _ in range(1000):
            silent.append(socket.create_connection((host, int(port)), timeout=60))
        assert serve.metrics()
        fds = len(os.listdir(f"/proc/{serve.children()['allocprof-http']}/fd"))
        assert fds < 300, fds
    finally:
        for connection in silent:
            connection.close()


def test_spans_at_a_time(runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    serve.metrics()
    waiting = []
    for _ in range(4):
        connection = http.client.HTTPConnection(serve.address.removeprefix("http://"), timeout=60)
        connection.request("GET", "/debug/pprof/heap?seconds=600")
        waiting.append(connection)
    assert serve.status("/debug/pprof/heap?seconds=1") == 503
    assert serve.metrics()


def test_token(runner, allocprof, tmp_path, sleeper):
    path = tmp_path / "token"
    path.write_text("0123456789abcdef\n")
    serve = Serve(runner, allocprof, tmp_path, "--token-file", path, listen="0.0.0.0:0", target=sleeper.pid)
    serve.address = serve.address.replace("0.0.0.0", "127.0.0.1")

    def statuses(token):
        return [serve.status(path, headers) for path in ("/metrics", "/debug/pprof/heap", "/x")
                for headers in ({}, {"Authorization": token}, {"Authorization": f"Bearer {token}x"}, {"Authorization": f"Bearer {token}"})]

    assert statuses("0123456789abcdef") == [401, 401, 401, 200, 401, 401, 401, 200, 401, 401, 401, 404]
    path.write_text("fedcba9876543210\n")
    serve.process.send_signal(signal.SIGHUP)
    wait_until(lambda: serve.status("/metrics", {"Authorization": "Bearer 0123456789abcdef"}) == 401, "the token is the new one")
    assert statuses("fedcba9876543210")[3] == 200
    path.write_text("short\n")
    serve.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "the old token stays: the first line of" in serve.said(), "the token is refused")
    assert statuses("fedcba9876543210")[3] == 200


def test_host(runner, allocprof, tmp_path, sleeper):
    """A page from elsewhere whose name leads here reads nothing; who has the token may use any name."""
    serve = Serve(runner, allocprof, tmp_path, listen="127.0.0.2:0", target=sleeper.pid)
    hosts = {"localhost": 200, "LOCALHOST:9100": 200, "127.0.0.1:9100": 200, "127.0.0.2": 200, "[::1]:9100": 200, "evil.example": 403,
             "localhost.evil.example:9100": 403, "127.0.0.3": 403, "": 403}
    assert {host: serve.status("/metrics", {"Host": host}) for host in hosts} == hosts
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    serve = Serve(runner, allocprof, tmp_path, "--token-file", token, target=sleeper.pid)
    assert serve.status("/metrics", {"Host": "node.example", "Authorization": "Bearer 0123456789abcdef"}) == 200


def test_unix_socket(runner, allocprof, tmp_path, sleeper):
    path = tmp_path / "socket"
    serve = Serve(runner, allocprof, tmp_path, listen=f"unix:{path}", target=sleeper.pid)

    def ask():
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(path))
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return b"".join(iter(lambda: connection.recv(65536), b""))

    assert b"allocprof_allocations_total{" in ask() and path.stat().st_mode & 0o777 == 0o600
    serve.process.kill()
    serve.process.wait()
    assert path.exists()
    serve = Serve(runner, allocprof, tmp_path, listen=f"unix:{path}", target=sleeper.pid)
    assert b"200 OK" in ask()
    serve.end()
    assert not path.exists()
    serve = Serve(runner, allocprof, tmp_path, listen=f"unix:{path}", target=sleeper.pid)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        serve.end()
        assert path.exists()


def test_rotation(run, runner, allocprof, tmp_path, sleeper):
    """Files have numbers, and the oldest go, whatever the clock said of them: what an earlier run left counts as older."""
    kept = tmp_path / "kept"
    kept.mkdir()
    for number in (3, 7):
        old = kept / f"serve-{number:010}-29991231T235959Z.data"
        old.write_bytes(b"x")
        os.utime(old, (2 ** 33, 2 ** 33))
    (kept / "mine.data").write_bytes(b"x")
    serve = Serve(runner, allocprof, tmp_path, "-o", kept, "--rotate", "1s", "--keep", "4s", target=sleeper.pid)
    most = 0

    def numbers():
        nonlocal most
        sleeper.ask("keep 10")
        found = [int(path.name[6:16]) for path in serve.files()]
        most = max(most, len(found))
        return found if found[-1] >= 14 else None

    found = wait_until(numbers, "14 files were written")
    # The fifth is there until it has been decided which goes.
    assert found == list(range(found[0], found[-1] + 1)) and 4 <= len(found) <= most <= 5
    assert (kept / "mine.data").exists()
    serve.process.kill()
    serve.process.wait()
    left = serve.files()
    assert len(left) >= 4
    before, after = (report(run, allocprof, path)["all"]["allocations"] for path in (left[0], left[-1]))
    diff = json.loads(run([allocprof, "diff", "--json", left[0], left[-1]], expect=0).stdout)
    assert (diff["before"]["total"], diff["after"]["total"]) == (before, after) and after > before, diff
    run([allocprof, "html", "-o", tmp_path / "page.html", "--base", left[0], left[-1]], expect=0)
    sleeper.ask("keep 10")
    sleeper.exit()


def test_size(runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, "-o", tmp_path / "kept", "--rotate", "1s", "--max-size", "1", target=sleeper.pid)
    wait_until(lambda: serve.files() and int(serve.files()[-1].name[6:16]) >= 3, "3 files were written")
    wait_until(lambda: len(serve.files()) == 1, "one is left")


def test_full_disk(run, runner, allocprof, tmp_path, sleeper):
    """It is said once, the server goes on, and so does the keeping when there is room."""
    kept = tmp_path / "kept"
    kept.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", kept], expect=0)
    try:
        (kept / "filler").write_bytes(bytes(380 * 1024))
        serve = Serve(runner, allocprof, tmp_path, "-o", kept, "--rotate", "1s", target=sleeper.pid)
        wait_until(lambda: "No space left" in serve.said(), "the full disk is noticed")
        assert serve.metrics()
        (kept / "filler").unlink()
        wait_until(lambda: "recordings are kept again" in serve.said(), "there is room")
        wait_until(lambda: int(serve.files()[-1].name[6:16]) >= 6, "older files have made room")
        assert serve.said().count("No space left") == 1, serve.said()
        serve.end()
    finally:
        run(["umount", "-l", kept])


@pytest.mark.parametrize("which", ["allocprof-http", "recorder", "server"])
def test_killed(runner, allocprof, tmp_path, sleeper, which):
    serve = Serve(runner, allocprof, tmp_path, "-o", tmp_path / "kept", "--rotate", "1s", target=sleeper.pid)
    wait_until(serve.files, "a file was written")
    sleeper.ask("keep 7")
    wait_until(lambda: total(serve.metrics(), "allocations_total") == 7, "the calls are counted")
    children = serve.children()
    http_pid = children.pop("allocprof-http")
    [recorder_pid] = children.values()
    os.kill({"allocprof-http": http_pid, "recorder": recorder_pid, "server": serve.process.pid}[which], signal.SIGKILL)
    if which == "allocprof-http":
        wait_until(lambda: serve.children().get("allocprof-http", http_pid) != http_pid, "another process answers")
        assert "the process that answers was ended by a signal: Killed; it is started again in 1 s" in serve.said()
        metrics = serve.metrics()
        assert total(metrics, "allocations_total") == total(metrics, "function_allocations_total") == 0
        assert total(metrics, "live_blocks") == 7
        sleeper.ask("keep 10")
        wait_until(lambda: total(serve.metrics(), "allocations_total") == 10, "it counts on")
        serve.end()
    else:
        status = serve.process.wait(60)
        assert status == (125 if which == "recorder" else -signal.SIGKILL)
        for pid in (http_pid, recorder_pid):
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "no process is left")
        if which == "recorder":
            assert "the process that records was ended by a signal: Killed" in serve.said()
    sleeper.ask("alloc 1000")
    sleeper.exit()


def test_it_answers_later_each_time(runner, allocprof, tmp_path, sleeper):
    """The process that answers is started again after twice the time where it ends soon; the recording goes on."""
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    serve.metrics()
    for seconds in (1, 2, 4):
        pid = wait_until(lambda: serve.children().get("allocprof-http"), "a process answers")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: f"Killed; it is started again in {seconds} s\n" in serve.said(), f"it is started again in {seconds} s")
    sleeper.ask("keep 7")
    assert total(serve.metrics(), "live_blocks") == 7
    serve.end()


@pytest.fixture
def silent_server():
    """A server of debug files that is asked, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def look_up_for_ever(runner, allocprof, tmp_path, target, server):
    """A server in the midst of a look-up of names, for which no time limit is set."""
    program = tmp_path / "nameless"
    shutil.copy(target("sleeper"), program)
    subprocess.run(["strip", "--strip-debug", program], check=True)
    sleeper = Obedient(runner, [program])
    serve = Serve(runner, allocprof, tmp_path, "--debuginfod-timeout=3600", target=sleeper.pid, debuginfod=True, env={
        "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.getsockname()[1]}/", "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache"),
        "DEBUGINFOD_TIMEOUT": "3600", "no_proxy": "*", "SUDO_UID": "", "SUDO_GID": ""})
    serve.metrics()
    sleeper.ask("keep 10")
    connection = http.client.HTTPConnection(serve.address.removeprefix("http://"), timeout=120)

    def is_asked():
        server.settimeout(0.5)
        try:
            return server.accept()[0]
        except TimeoutError:
            return None

    # Of a copy that was made just before, the next answer comes without another.
    time.sleep(1)
    connection.request("GET", "/metrics")
    return serve, connection, wait_until(is_asked, "the server of debug files is asked")


def test_signal_ends_a_look_up(runner, allocprof, tmp_path, target, silent_server):
    serve, connection, asked = look_up_for_ever(runner, allocprof, tmp_path, target, silent_server)
    with asked:
        serve.end()
    connection.close()


@pytest.mark.slow
def test_copy_that_does_not_come(runner, allocprof, tmp_path, target, silent_server):
    """The request is refused after a minute, while names are looked up."""
    serve, connection, asked = look_up_for_ever(runner, allocprof, tmp_path, target, silent_server)
    with asked:
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (503, b"the recording has not answered in time\n")
        assert answer.headers["Retry-After"] == "5"
        serve.end()


def test_name_that_nobody_has_yet(runner, allocprof, tmp_path, target):
    program = tmp_path / "latecomer39"
    shutil.copy(target("sleeper"), program)
    serve = Serve(runner, allocprof, tmp_path, "--name", program.name)
    wait_until(lambda: f"no process that runs now has the name '{program.name}'; ps -eo pid,ruser,comm,cgroup shows all; "
               "waiting until there is one\n" in serve.said(), "it waits")
    sleeper = Obedient(runner, [program])
    serve.metrics()
    sleeper.ask("keep 7")
    wait_until(lambda: total(serve.metrics(), "allocations_total") == 7, "the calls are counted")
    serve.end()


def test_signal_ends_the_wait_for_a_process(runner, allocprof, tmp_path):
    serve = Serve(runner, allocprof, tmp_path, "--name", "nobody-has-it")
    wait_until(lambda: "waiting until there is one\n" in serve.said(), "it waits")
    serve.end()


def test_end_of_target(run, runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, "-o", tmp_path / "kept", target=sleeper.pid)
    serve.metrics()
    sleeper.ask("keep 5")
    sleeper.exit()
    assert serve.process.wait(60) == 0 and "no process is left" in serve.said()
    assert report(run, allocprof, serve.files()[0])["all"]["allocations"] == 5


def test_bounded_series(runner, allocprof, tmp_path, target):
    """Many processes, of which two have series; they keep these, and the others' sum does not fall."""
    shell = Obedient(runner, [target("sleeper")])
    others = [Obedient(runner, [target("sleeper")]) for _ in range(4)]
    serve = Serve(runner, allocprof, tmp_path, "--series", "2", "-p", ",".join(str(one.pid) for one in [shell, *others]))
    serve.metrics()
    for n, one in enumerate([shell, *others]):
        one.ask(f"alloc {10 * (n + 1)}")
    metrics = wait_until(lambda: total(now := serve.metrics(), "allocations_total") == 150 and now, "the calls are counted")
    rows = metrics["allocprof_allocations_total"]
    assert len(rows) == 3 and len(metrics["allocprof_resident_bytes"]) == 2
    assert len(metrics["allocprof_function_allocations_total"]) <= 3
    listed = {label for label in rows if "(other)" not in label}
    for one in others:
        one.ask("alloc 1000")
    later = wait_until(lambda: total(now := serve.metrics(), "allocations_total") == 4150 and now, "the calls are counted")
    assert listed == {label for label in later["allocprof_allocations_total"] if "(other)" not in label}


def test_last_one_is_not_kept(runner, allocprof, tmp_path, sleeper):
    serve = Serve(runner, allocprof, tmp_path, "-o", tmp_path / "kept", target=sleeper.pid)
    serve.metrics()
    serve.kept.rmdir()
    serve.process.send_signal(signal.SIGTERM)
    assert serve.process.wait(60) == 125 and "No such file or directory" in serve.said()


def test_stop_while_it_loads(runner, allocprof, tmp_path, sleeper):
    """It listens before the probes are there."""
    Serve(runner, allocprof, tmp_path, target=sleeper.pid).end()


def test_place_of_the_ended(runner, allocprof, tmp_path, target):
    """A process gets the place of one that has ended: nothing is counted twice, no counter falls, and the ended one's memory is gone."""
    first, second = (Obedient(runner, [target("sleeper")]) for _ in range(2))
    serve = Serve(runner, allocprof, tmp_path, "--series", "1", "-p", f"{first.pid},{second.pid}")
    serve.metrics()
    first.ask("keep 1000")
    second.ask("keep 10")

    def allocations(metrics):
        return {label and label.split('"')[1]: value for label, value in metrics["allocprof_allocations_total"].items()}

    before = wait_until(lambda: sum((now := allocations(serve.metrics())).values()) == 1010 and now, "the calls are counted")
    listed, other = (first, second) if str(first.pid) in before else (second, first)
    count = {first: 1000, second: 10}
    assert before == {str(listed.pid): count[listed], "(other)": count[other]}
    listed.exit()
    metrics = wait_until(lambda: str(other.pid) in allocations(now := serve.metrics()) and now, "the other one has the place")
    assert allocations(metrics) == {str(other.pid): 0, "(other)": count[other]}
    assert total(metrics, "live_blocks") == total(metrics, "function_live_blocks") == count[other]
    other.ask("alloc 5")
    after = wait_until(lambda: allocations(now := serve.metrics())[str(other.pid)] and now, "the calls are counted")
    assert allocations(after) == {str(other.pid): 5, "(other)": count[other]}
    assert total(after, "function_allocations_total") == 1015


@pytest.mark.parametrize("arguments, why", [
    ("-p 1", "serve takes an address to listen at"), ("--listen 127.0.0.1 -p 1", "is no address"), ("--listen [::1]:99999 -p 1", "is no address"),
    ("--listen host.example:80 -p 1", "is no address"), ("--listen 0.0.0.0:0 -p 1", "can be reached from elsewhere"),
    ("--listen [::]:0 -p 1", "can be reached from elsewhere"), ("--listen unix: -p 1", "takes a path of 1 to"),
    ("--listen 127.0.0.1:0 --rotate 1m -p 1", "mean nothing without -o"), ("--listen 127.0.0.1:0 -o d --rotate 10ms -p 1", "a second or more"),
    ("--listen 127.0.0.1:0 -o d --rotate 2h --keep 1h -p 1", "no less than --rotate"), ("--listen 127.0.0.1:0 --series 0 -p 1", "no number of series"),
    ("--listen 127.0.0.1:0 --token-file /dev/null -p 1", "cannot read the token"), ("--listen 127.0.0.1:0 true", "starts no command")],
    ids=str)
def test_usage(run, allocprof, tmp_path, arguments, why):
    result = run([allocprof, "serve", *arguments.split()], cwd=tmp_path)
    assert result.status in (64, 125) and why in result.stderr.decode() and result.stderr.count(b"\n") == 1, result


def test_nothing_to_record(run, allocprof):
    result = run([allocprof, "serve", "--listen", "127.0.0.1:0"])
    assert result.status == 64, result
    result = run([allocprof, "serve", "--listen", "127.0.0.1:0", "-p", 2 ** 22 - 1])
    assert result.status == 125 and b"4194303" in result.stderr, result


@pytest.mark.slow
def test_prometheus(run, runner, allocprof, tmp_path, sleeper):
    """It scrapes once a second, takes every answer, and has no more series than before."""
    if not shutil.which("prometheus"):
        unavailable("prometheus is missing: scripts/setup --test")
    serve = Serve(runner, allocprof, tmp_path, target=sleeper.pid)
    serve.metrics()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "allocprof", "static_configs": [{"targets": [serve.address.removeprefix("http://")]}]}]}))
    runner.start(["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
                  f"--web.listen-address=127.0.0.1:{port}"], stderr=(tmp_path / "prometheus.log").open("wb"))

    def query(text):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={text}", timeout=30) as answer:
                rows = json.load(answer)["data"]["result"]
                return {row["metric"].get("program", ""): float(row["value"][1]) for row in rows}
        except OSError:
            return {}

    wait_until(lambda: query("up").get("") == 1, "prometheus has scraped")
    series = query("scrape_samples_scraped")[""]
    sleeper.ask("keep 123")
    wait_until(lambda: query("allocprof_live_blocks").get("sleeper") == 123, "prometheus has the numbers")
    wait_until(lambda: query("count_over_time(up[10m])").get("", 0) >= 20, "it has scraped 20 times")
    assert query("scrape_samples_scraped")[""] <= series + 8
    assert query("allocprof_allocations_total").get("sleeper") == 123


EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/serve"


def arguments_of_examples():
    """{file: the words behind `allocprof serve`}"""
    unit = (EXAMPLES / "allocprof-serve.service").read_text()
    pod = yaml.safe_load((EXAMPLES / "daemonset.yaml").read_text())["spec"]["template"]["spec"]
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", (EXAMPLES / "Dockerfile").read_text(), re.M)[1])
    assert entry[1:] == ["serve"]
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]} and pod["hostPID"]
    return {"unit": re.search(r"^ExecStart=\S+ serve (.*)$", unit, re.M)[1].split(), "daemonset": pod["containers"][0]["args"]}


@pytest.mark.parametrize("which", ["unit", "daemonset"])
def test_examples(runner, allocprof, tmp_path, sleeper, which):
    """Their options are taken: with the places and the program of this test."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    replaced = {"${STATE_DIRECTORY}": tmp_path / "kept", "/var/lib/allocprof": tmp_path / "kept", "/run/secrets/allocprof/token": token,
                "127.0.0.1:9100": "127.0.0.1:0", "0.0.0.0:9100": "0.0.0.0:0"}
    words = [replaced.get(word, word) for word in arguments_of_examples()[which]]
    at = words.index("--name")
    listen = words[words.index("--listen") + 1]
    serve = Serve(runner, allocprof, tmp_path, *words[:at], *words[at + 2:], listen=listen, target=sleeper.pid)
    serve.address = serve.address.replace("0.0.0.0", "127.0.0.1")
    assert serve.get("/metrics", {"Authorization": "Bearer 0123456789abcdef"})
    serve.end()
    assert serve.files()


def test_unit_is_sound(run, tmp_path):
    if not shutil.which("systemd-analyze"):
        unavailable("systemd-analyze is missing")
    path = tmp_path / "allocprof-serve.service"
    path.write_text((EXAMPLES / path.name).read_text().replace("/usr/local/bin/allocprof", "/bin/true"))
    result = run(["systemd-analyze", "verify", "--man=no", path])
    assert result.status == 0 and path.name.encode() not in result.stderr, result
