# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of Debian that tests start, and requests to them."""

import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import threading

from support import TIMEOUT_SECONDS, unavailable, wait_until

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]

NGINX = """
daemon off;
user nobody nogroup;
worker_processes 2;
pid {0}/pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
	access_log off;
	client_body_temp_path {0}/body;
	proxy_temp_path {0}/proxy;
	fastcgi_temp_path {0}/fastcgi;
	uwsgi_temp_path {0}/uwsgi;
	scgi_temp_path {0}/scgi;
	limit_req_zone $request_uri zone=requests:256k rate=1000000r/s;
	server {{
		listen unix:{0}/socket;
		root {0};
		limit_req zone=requests burst=1000000 nodelay;
		location /hello {{ return 200 hello; }}
	}}
}}
"""


def ask(path, request):
    """What comes back until the other side closes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        connection.connect(str(path))
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def is_listening(path):
    """The file of a socket is there before that."""
    with socket.socket(socket.AF_UNIX) as connection:
        return not connection.connect_ex(str(path))


class Nginx:
    """Connections whose request is not complete stay."""

    def __init__(self, runner, directory, _):
        if not pathlib.Path("/usr/sbin/nginx").exists():
            unavailable("nginx is not installed: scripts/setup --test")
        self.socket, self.held = directory / "socket", []
        (directory / "conf").write_text(NGINX.format(directory).replace("worker_processes 2", "worker_processes 1"))
        (directory / "file").write_text("file\n" * 20000)
        process = runner.start(["/usr/sbin/nginx", "-p", directory, "-c", directory / "conf", "-e", "stderr"], cwd="/",
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        self.pid = int(wait_until(lambda: is_listening(self.socket) and children.read_text().split(), "it has a worker")[0])

    def ask(self, number):
        answer = ask(self.socket, b"GET /%s?%d HTTP/1.0\r\n\r\n" % ([b"hello", b"file", b"none"][number % 3], number))
        assert answer.startswith(b"HTTP/1.1 "), answer[:100]

    def keep(self):
        for _ in range(5):
            self.held.append(socket.socket(socket.AF_UNIX))
            self.held[-1].connect(str(self.socket))
            self.held[-1].sendall(b"GET /file HTTP/1.1\r\nHost: ")

    def end(self):
        for connection in self.held:
            connection.close()


class Redis:
    """The second half of the keys are overwritten and deleted all the time. Its allocator is jemalloc. @prefix: words of a command
    that runs it."""

    def __init__(self, runner, directory, _, prefix=()):
        if not shutil.which("redis-server"):
            unavailable("redis-server is not installed: scripts/setup --test")
        self.socket, self.kept = directory / "socket", 0
        self.pid = runner.start([*prefix, "redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", directory, "--save", "",
                                 "--daemonize", "no"], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid
        wait_until(lambda: is_listening(self.socket) and self.say("PING") == 1, "it answers")

    def lines(self, *commands):
        return ask(self.socket, "\r\n".join([*commands, "QUIT", ""]).encode()).splitlines()

    def say(self, *commands):
        """The number of commands that were obeyed."""
        return sum(line.startswith((b"+", b":")) for line in self.lines(*commands)) - 1

    def ask(self, number):
        value = "x" * (number * 37 % 900)
        assert self.say(f"SET other{number % 50} _{value}", f"DEL other{number % 31}", f"RPUSH list _{value}", "LTRIM list -20 -1",
                        f"HSET hash {number % 40} _{value}", f"ZADD sorted {number % 200} m{number % 200}", f"SADD set s{number % 300}") == 7
        assert f"_{value}".encode() in self.lines(f"HGET hash {number % 40}"), number

    def keep(self):
        self.kept += 1
        assert self.say(*(f"SET kept{self.kept}-{i} {'k' * (i + 1)}" for i in range(50))) == 50

    def end(self):
        pass


NODE = """
const crypto = require('crypto'), http = require('http'), zlib = require('zlib');
const buffers = new Map(), kept = [];
http.createServer((request, answer) => {
  const n = Number(request.url.slice(1));
  if (!n) kept.push(Buffer.alloc(10000 + kept.length, 1));
  buffers.set(n % 100, Buffer.alloc(5000 + n % 7000, 1));
  const hash = crypto.createHash('sha256').update(buffers.get(n % 100)).digest('hex');
  zlib.gzip(hash.repeat(20), (error, zipped) => answer.end(zipped));
}).listen(process.argv[2]);
"""


class Node:
    """Its native blocks are held by objects in V8's heap."""

    def __init__(self, runner, directory, _):
        node = shutil.which("node", path="/usr/bin")
        if not node:
            unavailable("nodejs is not installed: scripts/setup --test")
        self.socket = directory / "socket"
        (directory / "server.js").write_text(NODE)
        self.pid = runner.start([node, directory / "server.js", self.socket], stdin=subprocess.DEVNULL).pid
        wait_until(lambda: is_listening(self.socket), "it listens")

    def ask(self, number):
        assert ask(self.socket, b"GET /%d HTTP/1.0\r\n\r\n" % (number + 1)).startswith(b"HTTP/1.1 200 OK")

    def keep(self):
        for _ in range(5):
            self.ask(-1)

    def end(self):
        pass


# Sorts, groups, fills a table, and leaves an error; what it prepares stays until the end.
SQL = """BEGIN;
DECLARE c CURSOR FOR SELECT i, repeat('x', i % 900) AS t FROM generate_series(1, 500) AS i ORDER BY 2;
FETCH 20 FROM c;
SELECT count(*) FROM (SELECT DISTINCT i % 100 AS n FROM generate_series(1, 300) AS i) AS numbers;
CREATE TEMPORARY TABLE mine ON COMMIT DROP AS SELECT i, repeat('x', 100) AS text FROM generate_series(1, 50) AS i;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END $$;
FETCH 50 FROM c;
COMMIT;
"""


class Postgresql:
    """A backend, which psql asks."""

    def __init__(self, runner, directory, cluster):
        programs, server, data = cluster
        server = runner.start([*NOBODY, server, "-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off"], cwd="/",
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: runner.run([programs / "pg_isready", "-q", "-h", directory]).status == 0, "the server answers")
        self.runner, self.server, self.lock, self.kept = runner, server, threading.Lock(), 0
        self.psql = [programs / "psql", "-qAtX", "-h", directory, "-U", "test", "postgres"]
        self.client = runner.start(self.psql, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.pid = int(self.say("SELECT pg_backend_pid();\n")[0])

    def say(self, statements):
        with self.lock:
            self.client.stdin.write(statements.encode() + b"SELECT 'the end';\n")
            self.client.stdin.flush()
            return list(iter(self.client.stdout.readline, b"the end\n"))

    def one_more(self):
        """Number of another backend, which has ended."""
        return int(self.runner.run([*self.psql, "-c", "SELECT pg_backend_pid()"], expect=0, cwd="/").stdout)

    def ask(self, number):
        assert self.say(SQL)

    def keep(self):
        self.kept += 1
        self.say("".join(f"PREPARE p{self.kept}_{i} (int) AS SELECT $1 + {i}, count(*) FROM pg_class; EXECUTE p{self.kept}_{i}(1);\n"
                         for i in range(5)))

    def end(self):
        self.client.stdin.close()
        self.client.wait(TIMEOUT_SECONDS)
        self.server.send_signal(signal.SIGINT)
        self.server.wait(TIMEOUT_SECONDS)


# Of the load between two looks.
REQUESTS = 40


class Load(contextlib.AbstractContextManager):
    """Asks the server from a thread until the block ends."""

    def __init__(self, server):
        self.server, self.n, self.ends, self.error = server, 0, False, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.ends:
                self.server.ask(self.n)
                self.n += 1
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def await_more(self):
        until = self.n + REQUESTS
        wait_until(lambda: self.error or self.n >= until, "the server answers")
        assert not self.error, self.error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join(TIMEOUT_SECONDS)
