# SPDX-License-Identifier: GPL-3.0-or-later
"""The definitions that come with allocprof (data/allocators), with programs of Debian: what they count is held to the
kernel's own count of all hits of these functions, in the same run."""

import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from servers import NGINX, NOBODY, ask
from support import SOURCE, TIMEOUT_SECONDS, EveryHit, Recording, unavailable, wait_until



def functions_of(definition):
    """Names of functions by what reports call them: {"nginx.alloc": ["ngx_palloc", ...]}"""
    functions = {}
    source = None
    for line in (SOURCE / "data" / "allocators" / definition).read_text().splitlines():
        head = re.fullmatch(r"\[(\S+)\]", line)
        function = re.match(r"(alloc|realloc|free) = (\w+)\(", line)
        if head:
            source = head[1]
        elif function:
            functions.setdefault(f"{source}.{function[1]}", []).append(function[2])
    return functions


def stat(run, allocprof, path, *options, expect=0, **popen):
    result = run([allocprof, "stat", "--json", "-o", path, *options], expect=expect, **popen)
    figures = json.loads(path.read_text())
    assert figures["lost"]["total"] == 0 and figures["not_nested"] == 0
    return figures, result


# Functions each call of which calls or jumps to one other function of the same kind, and only that.
PASSING_ON = {"palloc_mul", "palloc0_mul", "palloc_mul_extended", "palloc_aligned", "MemoryContextAllocAligned",
              "repalloc0", "repalloc_huge", "repalloc_mul", "repalloc_mul_extended",
              "ngx_pcalloc", "ngx_slab_alloc", "ngx_slab_calloc", "ngx_slab_calloc_locked", "ngx_slab_free",
              "ruby_xrealloc", "ruby_xrealloc2", "ruby_xfree", "_ecalloc",
              # This is what _erealloc() of a null pointer jumps to, and nobody else calls.
              "_zend_mm_alloc"}


def counted_by_kernel(hits, definition):
    """Calls and internal hits, which these hits are, by what reports call the functions."""
    expected = {}
    for name, functions in functions_of(definition).items():
        there = [function for function in functions if function in hits]
        internal = sum(hits[function] for function in there if function in PASSING_ON)
        if there:
            expected[name] = sum(hits[function] for function in there) - internal, internal
    return expected


def assert_all_hits(figures, hits, definition):
    for name, expected in counted_by_kernel(hits, definition).items():
        entry = figures["functions"][name]
        assert (entry["calls"], entry["internal"]) == expected, (name, hits)


@pytest.fixture
def hits(runner):
    """hits(path, definition) counts while its block runs."""
    def make(path, definition):
        return EveryHit(runner, path, [function for names in functions_of(definition).values() for function in names])

    return make


def assert_sums(figures, slack=0):
    """What the man page says of the two nestings, @figures by nesting: what is beneath counts beside, is internal
    otherwise. The two runs of the program may differ by @slack calls of each function."""
    of = {nesting: one["functions"] for nesting, one in figures.items()}
    for name, beside in of["beside"].items():
        outermost = of["outermost"][name]
        more = outermost["calls"] + outermost["internal"] - beside["calls"] - beside["internal"]
        assert abs(more) <= slack, (name, outermost, beside)
    events = {nesting: sum(entry["calls"] for entry in functions.values()) for nesting, functions in of.items()}
    internal = {nesting: sum(entry["internal"] for entry in functions.values()) for nesting, functions in of.items()}
    more = events["outermost"] + internal["outermost"] - internal["beside"] - events["beside"]
    assert abs(more) <= slack * len(of["beside"]), (events, internal)


# A query is a line. The last one fails, and PostgreSQL leaves what it was doing by siglongjmp().
QUERIES = b"""SELECT count(*), max(n) FROM (SELECT 'number ' || i AS n FROM generate_series(1, 2000) AS i) AS a
SELECT string_agg(repeat('x', i), ',' ORDER BY -i) FROM generate_series(1, 300) AS i
SELECT sum(1 / (i - 1500)) FROM generate_series(1, 2000) AS i
"""


@pytest.mark.slow
def test_postgresql_alone(run, allocprof, cluster, hits, tmp_path):
    """Without other processes its calls are the same in each run, but for what it does once a second."""
    _, server, data = cluster
    figures = {}
    # Of a new cluster the first run has more to do.
    for nesting in ("", "beside", "outermost"):
        with hits(server, "postgresql") as counted:
            figures[nesting], result = stat(
                run, allocprof, tmp_path / "json", "--allocator", f"postgresql:{nesting}".rstrip(":"), "--expect",
                server, "--", *NOBODY, server, "--single", "-D", data, "template1", stdin=QUERIES, cwd="/")
            assert_all_hits(figures[nesting], counted.read(), "postgresql")
        assert figures[nesting]["complete"] is True
        assert b'count = "2000"' in result.stdout and b"division by zero" in result.stderr
    del figures[""]
    assert_sums(figures, slack=30)
    assert figures["outermost"]["functions"]["malloc"]["internal"] > 100
    for one in figures.values():
        assert one["functions"]["postgresql.alloc"]["calls"] > 4000
        # 300 strings of 150 bytes on the average, and what they are put together in.
        assert one["functions"]["postgresql.alloc"]["bytes"] > 2 * 300 * 150


SCRIPT = """SELECT count(*) FROM (SELECT DISTINCT i % 10 AS n FROM generate_series(1, 500) AS i) AS numbers;
CREATE TEMPORARY TABLE mine AS SELECT i, repeat('x', 100) AS text FROM generate_series(1, 50) AS i;
SELECT string_agg(text, ',') FROM mine WHERE i > 7;
DROP TABLE mine;
"""


class Server:
    """Under allocprof, with @options; ends with the block."""

    def __init__(self, runner, allocprof, options, argv, stop, env=None):
        self.runner = runner
        self.argv = [allocprof, *options, "--", *argv]
        self.stop = stop
        self.env = env

    def __enter__(self):
        self.process = self.runner.start(self.argv, self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.PIPE, cwd="/")
        return self

    def wait_for(self, condition, what):
        def is_so():
            assert self.process.poll() is None, self.process.stderr.read()
            return condition()

        wait_until(is_so, what)

    def __exit__(self, kind, *_):
        # Without allocprof it goes on, so it ends first, also where the test has failed.
        try:
            os.kill(self.pid(), self.stop)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            assert kind, "the server has ended by itself"
        _, self.stderr = self.process.communicate(timeout=TIMEOUT_SECONDS)
        assert kind or self.process.returncode == 0, self.stderr

    def pid(self):
        return int(self.pid_file.read_text().split()[0])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["stat", "record"])
def test_postgresql(run, runner, allocprof, cluster, hits, tmp_path, command):
    """A server with several backends, which other processes ask."""
    programs, server, data = cluster
    options = [command, "-o", tmp_path / "out", "--allocator", "postgresql", "--expect", server]
    if command == "stat":
        options.append("--json")
    directory = data.parent
    (directory / "script").write_text(SCRIPT)
    with hits(server, "postgresql") as counted:
        under = Server(runner, allocprof, options, [
            *NOBODY, server, "-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off"], signal.SIGINT)
        under.pid_file = data / "postmaster.pid"
        with under:
            under.wait_for(lambda: (directory / ".s.PGSQL.5432").exists() and
                           run([programs / "pg_isready", "-q", "-h", directory]).status == 0, "the server answers")
            run([programs / "pgbench", "-h", directory, "-U", "test", "-n", "-c", "4", "-j", "2", "-t", "25", "-f",
                 directory / "script", "postgres"], expect=0)
        raw = counted.read()
    if command == "stat":
        figures = json.loads((tmp_path / "out").read_text())
        assert figures["complete"] is True and figures["lost"]["total"] == 0
        assert_all_hits(figures, raw, "postgresql")
        assert figures["processes"] > 4
        return
    recording = Recording(tmp_path / "out")
    assert recording.unbalanced() == []
    assert recording.ledger["lost"] == 0 and recording.ledger["incomplete"] == 0
    expected = counted_by_kernel(raw, "postgresql")
    for name in ("postgresql.alloc", "postgresql.realloc"):
        assert recording.functions.get(name, (0, 0))[0] == expected[name][0]


@pytest.mark.slow
def test_nginx(runner, allocprof, directory, hits, tmp_path):
    if not os.path.exists("/usr/sbin/nginx"):
        unavailable("nginx is not installed: scripts/setup --test")
    server = shutil.copy("/usr/sbin/nginx", directory / "nginx")
    (directory / "conf").write_text(NGINX.format(directory))
    (directory / "file").write_text("file\n" * 100)
    requests = 200
    with hits(server, "nginx") as counted:
        under = Server(runner, allocprof, ["stat", "--json", "-o", tmp_path / "out", "--allocator", "nginx"],
                       [server, "-p", directory, "-c", directory / "conf", "-e", "stderr"], signal.SIGQUIT)
        under.pid_file = directory / "pid"
        with under:
            under.wait_for(lambda: (directory / "socket").exists() and (directory / "pid").exists(), "it listens")
            for i in range(requests):
                answer = ask(directory / "socket", b"GET /%s?%d HTTP/1.0\r\n\r\n" % ([b"hello", b"file"][i % 2], i))
                assert answer.startswith(b"HTTP/1.1 200 OK"), answer
        figures = json.loads((tmp_path / "out").read_text())
        assert_all_hits(figures, counted.read(), "nginx")
    assert figures["complete"] is True and figures["lost"]["total"] == 0
    functions = figures["functions"]
    assert functions["nginx.alloc"]["calls"] > 5 * requests
    # A node of the zone for each address whose requests are limited; some may have been given back.
    assert functions["nginx-slab.alloc"]["calls"] >= requests / 2
    # One pool for each connection and one for each request, with its first block.
    assert functions["posix_memalign"]["calls"] >= 2 * requests


def library(name):
    path = pathlib.Path("/usr/lib/x86_64-linux-gnu") / name
    if not path.exists():
        unavailable(f"{name} is not installed: scripts/setup --test")
    return path


@pytest.fixture
def build(run, tmp_path):
    """build(source, library): a program, and a copy of the library that only this test uses."""
    def make(source, name):
        (tmp_path / "lib").mkdir()
        own = shutil.copy(library(name), tmp_path / "lib")
        (tmp_path / "user.c").write_text(source)
        run(["gcc", "-O1", "-fno-builtin", "-w", "-o", tmp_path / "user", tmp_path / "user.c", own,
             f"-Wl,-rpath,{tmp_path / 'lib'}"], expect=0)
        return tmp_path / "user", own

    return make


def counts_in_both(run, allocprof, tmp_path, hits, program, own, definition):
    """Figures by nesting, after each was held to the kernel's hits."""
    figures = {}
    for nesting in ("beside", "outermost"):
        with hits(own, definition) as counted:
            figures[nesting], _ = stat(run, allocprof, tmp_path / "json", "--allocator", f"{definition}:{nesting}",
                                       "--", program)
            raw = counted.read()
        assert figures[nesting]["complete"] is True
        for name, functions in functions_of(definition).items():
            there = [function for function in functions if function in raw]
            if there:
                entry = figures[nesting]["functions"][name]
                assert entry["calls"] + entry["internal"] == sum(raw[function] for function in there), (name, raw)
    assert_sums(figures)
    return figures


def figures_of(figures, name):
    entry = figures["functions"][name]
    return entry["calls"], entry["bytes"]


SQLITE_USER = r"""
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
typedef struct sqlite3 sqlite3;
int sqlite3_open(const char *, sqlite3 **), sqlite3_close(sqlite3 *);
int sqlite3_exec(sqlite3 *, const char *, void *, void *, char **);
int sqlite3_status64(int, int64_t *, int64_t *, int);
void *sqlite3_malloc(int), *sqlite3_malloc64(uint64_t), *sqlite3_realloc(void *, int), sqlite3_free(void *);

int main(int argc, char **argv)
{
	sqlite3 *db;
	int64_t now, highest;

	if (sqlite3_open(":memory:", &db) ||
	    sqlite3_exec(db, "CREATE TABLE t(a, b); INSERT INTO t VALUES (1, 'one'), (2, 'two');"
			     "SELECT group_concat(a || b || hex(randomblob(500))) FROM t", 0, 0, 0))
		return 1;
	for (int i = 0; i < 100; i++)
		sqlite3_free(sqlite3_realloc(sqlite3_malloc(40), 400));
	for (int i = 0; i < 30; i++)
		sqlite3_malloc64(100);
	if (sqlite3_status64(9 /* SQLITE_STATUS_MALLOC_COUNT */, &now, &highest, 0))
		return 1;
	dprintf(1, "%d", (int)now);
	_exit(0);
}
"""


@pytest.mark.slow
def test_sqlite(run, allocprof, build, hits, tmp_path):
    """What is live is what SQLite counts itself."""
    program, own = build(SQLITE_USER, "libsqlite3.so.0")
    figures = counts_in_both(run, allocprof, tmp_path, hits, program, own, "sqlite")
    assert figures["beside"]["functions"]["sqlite.alloc"] == figures["outermost"]["functions"]["sqlite.alloc"]
    outermost = figures["outermost"]["functions"]
    # All of malloc's calls were SQLite's but for those of the C library.
    assert outermost["sqlite.alloc"]["calls"] > 130 + 100 and outermost["malloc"]["calls"] < 10
    live, result = stat(run, allocprof, tmp_path / "json", "--live", "--allocator", "sqlite", "--", program)
    assert live["complete"] is True
    assert live["live"] == int(result.stdout) and live["unknown"] == 0


TALLOC_USER = r"""
#include <stddef.h>
#include <stdio.h>
void *_talloc(const void *, size_t), *_talloc_zero(const void *, size_t, const char *);
void *talloc_named_const(const void *, size_t, const char *), *talloc_pool(const void *, size_t);
void *_talloc_array(const void *, size_t, unsigned, const char *);
void *_talloc_zero_array(const void *, size_t, unsigned, const char *);
void *_talloc_realloc(const void *, void *, size_t, const char *);
void *_talloc_realloc_array(const void *, void *, size_t, unsigned, const char *);
char *talloc_strdup(const void *, const char *), *talloc_asprintf(const void *, const char *, ...);
char *talloc_asprintf_append(char *, const char *, ...);
int _talloc_free(void *, const char *);

int main(void)
{
	void *top = talloc_named_const(NULL, 8, "top"), *pool = talloc_pool(top, 4096);

	for (int i = 0; i < 100; i++)
		_talloc_free(_talloc(top, 24), "here");
	for (int i = 0; i < 50; i++)
		_talloc_realloc(top, _talloc_zero(top, 40, "z"), 100, "z");
	for (int i = 0; i < 30; i++)
		_talloc_realloc_array(top, _talloc_array(top, 8, 3, "a"), 8, 30, "a");
	for (int i = 0; i < 20; i++)
		_talloc_zero_array(pool, 4, 5, "p");
	for (int i = 0; i < 10; i++)
		talloc_asprintf_append(talloc_asprintf(talloc_strdup(top, "ten"), "%d", i), "%d", i);
	_talloc_free(top, "here");
	return 0;
}
"""


@pytest.mark.slow
def test_talloc(run, allocprof, build, hits, tmp_path):
    program, own = build(TALLOC_USER, "libtalloc.so.2")
    figures = counts_in_both(run, allocprof, tmp_path, hits, program, own, "talloc")
    for one in figures.values():
        assert figures_of(one, "talloc.alloc") == (2 + 100 + 50 + 30 + 20 + 20,
                                                   8 + 4096 + 100 * 24 + 50 * 40 + 30 * 24 + 20 * 20)
        assert one["functions"]["talloc.free"]["calls"] == 101
        # What is appended makes strings of two letters.
        assert figures_of(one, "talloc.realloc") == (50 + 30 + 10, 50 * 100 + 30 * 240 + 10 * 3)
    beside = figures["beside"]["functions"]
    # All but what the pool had room for, and at the end one for each block that hangs on the first.
    assert beside["malloc"]["calls"] == beside["free"]["calls"] == 222 - 20


APR_USER = r"""
#include <stddef.h>
int apr_initialize(void), apr_pool_create_ex(void **, void *, void *, void *);
void apr_terminate(void), apr_pool_destroy(void *);
void *apr_palloc(void *, size_t), *apr_pcalloc(void *, size_t);
char *apr_pstrdup(void *, const char *), *apr_psprintf(void *, const char *, ...);

int main(int argc, char **argv)
{
	void *pool;

	apr_initialize();
	apr_pool_create_ex(&pool, NULL, NULL, NULL);
	if (argc > 1)
		return 0;
	for (int i = 0; i < 1000; i++)
		apr_palloc(pool, 24);
	for (int i = 0; i < 50; i++)
		apr_pcalloc(pool, 400);
	for (int i = 0; i < 30; i++)
		apr_pstrdup(pool, "seven..");
	for (int i = 0; i < 20; i++)
		apr_psprintf(pool, "%d", i);
	apr_pool_destroy(pool);
	return 0;
}
"""


@pytest.mark.slow
def test_apr(run, allocprof, build, hits, tmp_path):
    program, own = build(APR_USER, "libapr-1.so.0")
    figures = counts_in_both(run, allocprof, tmp_path, hits, program, own, "apr")
    nothing, _ = stat(run, allocprof, tmp_path / "json", "--allocator", "apr", "--", program, "nothing")
    own_calls, own_bytes = figures_of(nothing, "apr.alloc")
    for one in figures.values():
        calls, size = figures_of(one, "apr.alloc")
        assert calls - own_calls == 1000 + 50 + 30 + 20
        assert size - own_bytes == 1000 * 24 + 50 * 400 + 30 * 8


RUBY = """
words = (1..3000).map { |i| "word number #{i}, longer than what a slot has room for" * 3 }
table = {}
words.each { |word| table[word.reverse] = word.upcase }
text = words.join(",")
GC.start
puts text.length, table.size
"""


@pytest.mark.slow
def test_ruby(run, allocprof, hits, tmp_path):
    """With collections of garbage beneath some of the calls."""
    found = sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libruby-3.*.so.3.?"))
    if not found or not shutil.which("ruby"):
        unavailable("Ruby is not installed: scripts/setup --test")
    own = shutil.copy(found[-1], tmp_path)
    with hits(own, "ruby") as counted:
        figures, result = stat(run, allocprof, tmp_path / "json", "--allocator", "ruby", "--", "ruby",
                               "--disable-gems", "-e", RUBY, env={"LD_LIBRARY_PATH": str(tmp_path)})
        assert_all_hits(figures, counted.read(), "ruby")
    assert figures["complete"] is True
    length = sum(len(f"word number {i}, longer than what a slot has room for") * 3 + 1 for i in range(1, 3001)) - 1
    assert result.stdout.split() == [b"%d" % length, b"3000"]
    # Each word is there three times.
    assert figures["functions"]["ruby.alloc"]["calls"] > 3 * 3000
    assert figures["functions"]["ruby.alloc"]["bytes"] + figures["functions"]["ruby.realloc"]["bytes"] > 3 * length
    assert figures["functions"]["ruby.free"]["calls"] > 0
    # All but tables inside of Ruby.
    assert figures["functions"]["malloc"]["calls"] >= figures["functions"]["ruby.alloc"]["calls"] * 0.5


@pytest.mark.slow
def test_php(run, allocprof, hits, tmp_path):
    """Strings of 5000 bytes and arrays, one of each in turn: 2000 more of them."""
    found = sorted(glob.glob("/usr/bin/php[0-9]*.[0-9]"))
    if not found:
        unavailable("PHP is not installed: scripts/setup --test")
    own = shutil.copy(found[-1], tmp_path / "php")
    figures, raw = {}, {}
    for n in (1000, 3000):
        with hits(own, "php") as counted:
            figures[n], _ = stat(run, allocprof, tmp_path / "json", "--allocator", "php", "--", own, "-n", "-r",
                                 f"for ($i = 0; $i < {n}; $i++) {{ $text = str_repeat('x', 5000); $list = [$i]; }}")
            raw[n] = counted.read()
        assert_all_hits(figures[n], raw[n], "php")
        assert figures[n]["complete"] is True
    more = {name: raw[3000][name] - raw[1000][name] for name in raw[1000]}
    calls, size = ({n: one["functions"]["php.alloc"][key] for n, one in figures.items()} for key in ("calls", "bytes"))
    assert calls[3000] - calls[1000] >= 2 * 2000
    assert more["_emalloc"] == 2000 and more["_emalloc_56"] == 2000
    # A string has 24 bytes before it and a null behind it, in whole words.
    assert size[3000] - size[1000] == 2000 * 5032 + sum(
        n * int(name.removeprefix("_emalloc_")) for name, n in more.items() if re.fullmatch(r"_emalloc_\d+", name))


JEMALLOC = ["malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "mallocx",
            "rallocx", "xallocx", "dallocx", "sdallocx"]


@pytest.mark.slow
@pytest.mark.parametrize("live", [[], ["--live"]], ids=["", "live"])
def test_redis(runner, allocprof, directory, tmp_path, live):
    """Needs no definition: Debian's is linked to jemalloc."""
    if not shutil.which("redis-server"):
        unavailable("redis-server is not installed: scripts/setup --test")
    own = shutil.copy(library("libjemalloc.so.2"), tmp_path)
    requests = 500
    with EveryHit(runner, own, JEMALLOC) as counted:
        under = Server(runner, allocprof, ["stat", "--json", *live, "-o", tmp_path / "out", "--expect", own], [
            shutil.which("redis-server"), "--port", "0", "--unixsocket",
            directory / "socket", "--pidfile", directory / "pid", "--dir", directory, "--save", "", "--daemonize",
            "no"], signal.SIGTERM, {"LD_LIBRARY_PATH": str(tmp_path)})
        under.pid_file = directory / "pid"
        with under:
            under.wait_for(lambda: (directory / "socket").exists() and (directory / "pid").exists(), "it listens")
            script = "".join(f"SET key{i} {'x' * (10 + i)}\r\nGET key{i}\r\n" for i in range(requests)) + "QUIT\r\n"
            assert ask(directory / "socket", script.encode()).count(b"+OK") == requests + 1
        raw = counted.read()
    figures = json.loads((tmp_path / "out").read_text())
    assert figures["complete"] is True and figures["lost"]["total"] == 0
    functions = figures["functions"]
    assert {name: functions[name]["calls"] + functions[name]["internal"] for name in raw if name in functions} == {
        name: n for name, n in raw.items() if name in functions}
    assert functions["malloc"]["calls"] > 2 * requests
    if live:
        assert figures["unknown"] == figures["unseen"] == figures["untracked"]["total"] == 0
        assert figures["live"] > requests


def test_files_that_are_looked_in(run, allocprof, tmp_path):
    """The message says them, so that nobody wonders why python3 is not what python means."""
    figures, result = stat(run, allocprof, tmp_path / "json", "--allocator", "python,apr", "--", "true")
    assert figures["complete"] is False
    assert (b"no file of the target named python3*d or libpython3*d.so* has a function of python, such as "
            b"PyObject_Malloc") in result.stderr
    assert b"no file of the target named libapr-1.so* has a function of apr" in result.stderr


# What is called as functions of the definition are, and hands out memory. Each of the file has to be in it.
NAMES = {
    "apr": ("libapr-1.so.0", r"apr_pc?alloc|apr_pvsprintf"),
    "nginx": ("/usr/sbin/nginx", r"ngx_p\w*alloc|ngx_pmemalign|ngx_pfree|ngx_slab_(calloc|alloc|free)\w*"),
    "php": ("/usr/bin/php[0-9]*.[0-9]", r"_(e|zend_mm_)(malloc|calloc|realloc|alloc|free)2?(_large|_huge|_\d+)?"),
    "postgresql": ("/usr/lib/postgresql/*/bin/postgres",
                   r"palloc(0|_\w+|0_\w+)?|repalloc\w*|pfree|MemoryContextAlloc((Zero|Extended|Huge|Aligned)\w*)?"),
    "ruby": ("libruby-3.*.so.3.?", r"ruby_(sized_)?x(malloc|calloc|realloc|free)\d?|rb_alloc_tmp_buffer_\w+"),
    "sqlite": ("libsqlite3.so.0", r"sqlite3_?(malloc|realloc|Malloc|Realloc)(64|Zero)?|sqlite3_free"),
    "talloc": ("libtalloc.so.2",
               r"_talloc(_zero|_array|_zero_array|_memdup|_pooled_object|_realloc|_realloc_array|_free)?|"
               r"talloc_(named|named_const|pool|init|strdup|strndup|vasprintf|realloc_fn)"),
}


@pytest.mark.parametrize("definition", NAMES)
def test_names(run, definition):
    file, pattern = NAMES[definition]
    found = sorted(glob.glob(str(pathlib.Path("/usr/lib/x86_64-linux-gnu") / file)))
    if not found:
        unavailable(f"{file} is not installed: scripts/setup --test")
    lines = run(["nm", "-D", "--defined-only", found[-1]], expect=0).stdout.decode().splitlines()
    exported = {line.split()[2].split("@")[0] for line in lines if line.split()[1] in "Ti"}
    there = {name for name in exported if re.fullmatch(pattern, name)}
    defined = {function for functions in functions_of(definition).values() for function in functions}
    assert there and there == defined & exported
