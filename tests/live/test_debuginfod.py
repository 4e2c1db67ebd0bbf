# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of debug files that are well, say nothing, trickle or die: none of them costs a recording more
than names, and nobody waits for them longer than they want to."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import pytest

import support

NOBODY = 65534
EXIT_STATUS = 3  # every_function's
# Longer than any test may take: then only something else ends the wait.
FOR_EVER = "3600"


class Server:
    """Answers each connection by @behave(connection, path of the request). Its first request is an event."""

    def __init__(self, behave):
        self.behave = behave
        self.asked = threading.Event()
        self.ended = threading.Event()  # the client has closed a connection
        self.over = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/"
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            request = connection.recv(65536)
            if request:
                self.asked.set()
                self.behave(self, connection, request.split()[1].decode())

    def wait_for_client(self, connection):
        """Until the client has closed the connection."""
        with contextlib.suppress(OSError):
            while connection.recv(4096):
                pass
        self.ended.set()

    def close(self):
        self.over.set()
        # Ends accept(). Closed under its hands, the descriptor's number could be the next server's by then, and
        # what is meant for that would be accepted here.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.acceptor.join()
        self.socket.close()


def say_nothing(server, connection, path):
    server.wait_for_client(connection)


def trickle(server, connection, path):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not server.over.wait(0.02):
        connection.sendall(b"x")


def die(server, connection, path):
    """In the midst of the file."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + 10000 * b"x")


@pytest.fixture
def serve(tmp_path):
    """A function that starts a server and returns it with the environment that names it."""
    servers = []

    def start(behave):
        server = Server(behave)
        servers.append(server)
        cache = tmp_path / f"cache{len(servers)}"
        # Nobody has called sudo, whoever runs the tests.
        return server, {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(cache),
                        "DEBUGINFOD_TIMEOUT": "90", "no_proxy": "*", "SUDO_UID": "", "SUDO_GID": ""}

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def stripped(tmp_path):
    """A program of which only a server has the DWARF, and its debug file."""
    program = tmp_path / "every_function"
    debug = tmp_path / "debug"
    shutil.copy(support.target("every_function"), program)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-debug", program], check=True)
    return program, debug


def lines_of(data, program):
    """Places of @program that have a source line, and those that have a name."""
    recording = support.Recording(data)
    return recording.sql("SELECT sum(l.file > 0), count(*) FROM lines l JOIN frames f ON f.id = l.frame "
                         "JOIN modules m ON m.id = f.module WHERE m.path = ?", str(program))[0]


def is_usable(run, allocprof, data):
    text = run([allocprof, "report", "-i", data], expect=0).stdout
    assert b"complete" in text, text


def test_one_that_has_the_file(run, allocprof, tmp_path, serve, stripped):
    program, debug = stripped

    def answer(server, connection, path):
        found = path == f"/buildid/{support.build_id(program)}/debuginfo"
        body = debug.read_bytes() if found else b""
        status = b"200 OK" if found else b"404 Not Found"
        connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)

    server, env = serve(answer)
    for options in ([], ["-r", "2"]):
        data = tmp_path / f"data{len(options)}"
        done = run([allocprof, "record", *options, "-o", data, "--", program], env, expect=EXIT_STATUS)
        assert b"missing" not in done.stderr, done.stderr
        with_line, _ = lines_of(data, program)
        assert with_line, "no place has a source line"
        assert not (tmp_path / f"{data.name}.old").exists(), "the file without names is left"
    # Its client, which is nobody, has kept the file where nobody else writes.
    assert server.asked.is_set()
    own = pathlib.Path(env["DEBUGINFOD_CACHE_PATH"]) / "allocprof-fetched"
    assert (own.stat().st_uid, own.stat().st_gid, stat.S_IMODE(own.stat().st_mode)) == (NOBODY, 0, 0o770)
    assert (own / support.build_id(program) / "debuginfo").read_bytes() == debug.read_bytes()


def test_file_that_another_client_has_fetched(run, allocprof, tmp_path, serve, stripped):
    """In root's own cache, which the client cannot read: no server is asked for it."""
    program, debug = stripped
    _, env = serve(say_nothing)
    kept = pathlib.Path(env["DEBUGINFOD_CACHE_PATH"]) / support.build_id(program)
    kept.mkdir(parents=True)
    shutil.copy(debug, kept / "debuginfo")
    data = tmp_path / "data"
    run([allocprof, "record", "-o", data, "--", program], env, expect=EXIT_STATUS)
    with_line, _ = lines_of(data, program)
    assert with_line, "no place has a source line"


@pytest.mark.parametrize("what", ["writable", "link", "taken", "above"])
def test_cache_that_others_may_have_made(run, allocprof, tmp_path, serve, stripped, what):
    """Nothing there is given to the user nobody, and no file of it is used; the client, which cannot write there, fails."""
    program, debug = stripped
    _, env = serve(say_nothing)
    cache = pathlib.Path(env["DEBUGINFOD_CACHE_PATH"])
    real = cache
    if what == "link":
        real = tmp_path / "elsewhere"
        cache.symlink_to(real)
    elif what == "above":
        real = cache / "below"
        env["DEBUGINFOD_CACHE_PATH"] = str(real)
    kept = real / support.build_id(program)
    kept.mkdir(parents=True)
    if what == "taken":
        (cache / "allocprof-fetched").mkdir()
    else:
        shutil.copy(debug, kept / "debuginfo")
    if what in ("writable", "above"):
        cache.chmod(0o770)
    before = {path: path.stat().st_uid for path in real.rglob("*")}
    done = run([allocprof, "record", "-o", tmp_path / "data", "--", program], env, expect=EXIT_STATUS)
    assert {path: path.stat().st_uid for path in real.rglob("*")} == before
    assert b"what the debuginfod servers send cannot be kept: Permission denied" in done.stderr, done.stderr


@pytest.mark.fast("say_nothing-record")
@pytest.mark.parametrize("command", ["record", "record -r 2", "symbolize"])
@pytest.mark.parametrize("behave", [say_nothing, trickle], ids=lambda behave: behave.__name__)
def test_given_up(run, allocprof, tmp_path, serve, stripped, behave, command):
    program, _ = stripped
    server, env = serve(behave)
    data = tmp_path / "data"
    options = ["--debuginfod-timeout", "0.5"]
    begun = time.monotonic()
    if command == "symbolize":
        run([allocprof, "record", "--no-symbols", "-o", data, "--", program], expect=EXIT_STATUS)
        done = run([allocprof, "symbolize", *options, "-i", data], env, expect=0)
    else:
        done = run([allocprof, *command.split(), *options, "-o", data, "--", program], env,
                   expect=EXIT_STATUS)
    took = time.monotonic() - begun
    assert server.asked.is_set(), "no server was asked"
    assert b"sent nothing for 0.5 s, or nearly so" in done.stderr, done.stderr
    # Its client would wait for 90 s.
    assert took < 85, f"it took {took:.0f} s"
    with_line, with_name = lines_of(data, program)
    assert not with_line and with_name, "the names of its symbol table"
    is_usable(run, allocprof, data)


def answer_nonsense(server, connection, path):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<p>\n")


def test_one_that_is_not_there(run, allocprof, tmp_path, serve, stripped):
    program, _ = stripped
    server, env = serve(say_nothing)
    server.close()
    done = run([allocprof, "record", "-o", tmp_path / "data", "--", program], env, expect=EXIT_STATUS)
    assert b"the debuginfod servers could not be asked for the debug file of " in done.stderr, done.stderr
    assert b": Connection refused" in done.stderr, done.stderr
    is_usable(run, allocprof, tmp_path / "data")


def test_one_that_answers_nonsense(run, allocprof, tmp_path, serve, stripped):
    program, _ = stripped
    _, env = serve(answer_nonsense)
    done = run([allocprof, "record", "-o", tmp_path / "data", "--", program], env, expect=EXIT_STATUS)
    assert b"a debuginfod server sent something other than an ELF file as the debug file of " in done.stderr, done.stderr
    is_usable(run, allocprof, tmp_path / "data")


def test_one_that_dies(run, allocprof, tmp_path, serve, stripped):
    program, _ = stripped
    server, env = serve(die)
    run([allocprof, "record", "-o", tmp_path / "data", "--", program], env, expect=EXIT_STATUS)
    assert server.asked.is_set(), "no server was asked"
    with_line, with_name = lines_of(tmp_path / "data", program)
    assert not with_line and with_name, "the names of its symbol table"


@pytest.mark.fast("SIGINT")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_the_wait_is_interrupted(runner, run, allocprof, tmp_path, serve, stripped, number):
    program, _ = stripped
    server, env = serve(say_nothing)
    data = tmp_path / "data"
    process = runner.start([allocprof, "record", "--debuginfod-timeout", FOR_EVER, "-o", data, "--",
                            program], env, stderr=subprocess.PIPE)
    assert server.asked.wait(support.TIMEOUT_SECONDS), "no server was asked"
    is_usable(run, allocprof, data)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=support.TIMEOUT_SECONDS)
    assert process.returncode == EXIT_STATUS, stderr
    assert b"was interrupted" in stderr, stderr
    assert lines_of(data, program)[1], "the names of its symbol table"
    is_usable(run, allocprof, data)


def test_killed_while_it_waits(runner, run, allocprof, tmp_path, serve, stripped):
    program, _ = stripped
    server, env = serve(say_nothing)
    data = tmp_path / "data"
    process = runner.start([allocprof, "record", "--debuginfod-timeout", FOR_EVER, "-o", data, "--",
                            program], env, stderr=subprocess.DEVNULL)
    assert server.asked.wait(support.TIMEOUT_SECONDS), "no server was asked"
    process.kill()
    process.wait(support.TIMEOUT_SECONDS)
    assert server.ended.wait(support.TIMEOUT_SECONDS), "the process that asks servers is left"
    is_usable(run, allocprof, data)
    run([allocprof, "symbolize", "-i", data], expect=0)
    assert lines_of(data, program)[1], "the names of its symbol table"


@pytest.mark.parametrize("words", ["0", "-1", "x", "nan", "1e9"])
def test_no_time_limit(run, allocprof, words):
    done = run([allocprof, "symbolize", f"--debuginfod-timeout={words}"], expect=64)
    assert b"--debuginfod-timeout takes 0.1 to 3600 seconds" in done.stderr, done.stderr


@pytest.mark.parametrize("sudo", [None, 1234], ids=["root", "sudo"])
def test_client_has_no_privileges(run, allocprof, tmp_path, serve, stripped, sudo):
    """What talks to servers is the user who called sudo, or nobody, and has no capabilities."""
    program, _ = stripped
    data = tmp_path / "data"
    run([allocprof, "record", "--no-symbols", "-o", data, "--", program], expect=EXIT_STATUS)
    server, env = serve(say_nothing)
    env = {**os.environ, **env}
    env.pop("SUDO_UID", None)
    if sudo:
        # pytest's directories are root's alone.
        cache = pathlib.Path("/tmp") / f"allocprof-cache-{os.getpid()}"
        cache.mkdir(mode=0o777)
        cache.chmod(0o777)
        env |= {"SUDO_UID": str(sudo), "SUDO_GID": str(sudo), "DEBUGINFOD_CACHE_PATH": str(cache)}
    process = subprocess.Popen([allocprof, "symbolize", "--debuginfod-timeout", FOR_EVER, "-i", data], env=env,
                               stderr=subprocess.PIPE)
    try:
        assert server.asked.wait(support.TIMEOUT_SECONDS)
        statuses = [pathlib.Path(f"/proc/{child}/status").read_text()
                    for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        (text,) = [text for text in statuses if "Name:\tallocprof-fetch" in text]
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        assert status["Uid"].split() == status["Gid"].split() == 4 * [str(sudo or NOBODY)]
        assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    finally:
        process.kill()
        process.communicate()
        if sudo:
            shutil.rmtree(cache)
