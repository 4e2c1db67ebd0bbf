# SPDX-License-Identifier: GPL-3.0-or-later
"""--allocator python with the engine preload: what Python asks its three domains for, as tracemalloc has it and as hooks of
the program's own count it."""

import json
import signal
import subprocess
import sys

import pytest

from support import Recording, read_report, unavailable, wait_until, wait_until_counting

PYTHON = "/usr/bin/python3"
DOMAINS = ["python-raw", "python-mem", "python"]

# The window is opened and closed from C, so that Python does the same with and without it. Python's headers are not
# needed: these functions and the struct have been the same since 3.9.
HELPER = r"""
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct object object;
object *PyImport_ImportModule(const char *), *PyObject_GetAttrString(object *, const char *), *PyObject_CallNoArgs(object *);
object *PyTuple_GetItem(object *, long), *PyObject_CallMethod(object *, const char *, const char *, ...);
long PyLong_AsLong(object *);

struct table {
	void *context;
	void *(*malloc)(void *, size_t), *(*calloc)(void *, size_t, size_t), *(*realloc)(void *, void *, size_t);
	void (*free)(void *, void *);
};
void PyMem_GetAllocator(int, struct table *), PyMem_SetAllocator(int, struct table *);

enum { ALLOC, REALLOC, FREE };
static struct table before[3];
static long calls[3][3], bytes[3][3];
static int counts;
static __thread int depth;

static struct table *enter(void *context, int kind, size_t size)
{
	struct table *table = context;

	if (!depth++ && counts) {
		__atomic_fetch_add(&calls[table - before][kind], 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&bytes[table - before][kind], size, __ATOMIC_RELAXED);
	}
	return table;
}

static void *hook_malloc(void *context, size_t size)
{
	struct table *table = enter(context, ALLOC, size);
	void *block = table->malloc(table->context, size);

	depth--;
	return block;
}

static void *hook_calloc(void *context, size_t n, size_t size)
{
	struct table *table = enter(context, ALLOC, n * size);
	void *block = table->calloc(table->context, n, size);

	depth--;
	return block;
}

static void *hook_realloc(void *context, void *block, size_t size)
{
	struct table *table = enter(context, REALLOC, size);

	block = table->realloc(table->context, block, size);
	depth--;
	return block;
}

static void hook_free(void *context, void *block)
{
	struct table *table = enter(context, FREE, 0);

	table->free(table->context, block);
	depth--;
}

void hook(void)
{
	for (int i = 0; i < 3; i++) {
		struct table hooks = { &before[i], hook_malloc, hook_calloc, hook_realloc, hook_free };

		PyMem_GetAllocator(i, &before[i]);
		PyMem_SetAllocator(i, &hooks);
	}
}

void nothing(void)
{
}

/* Functions that hand nothing on to those of before but what they do not know. */
static char room[64 << 20];
static size_t used;

static void *own_malloc(void *context, size_t size)
{
	char *block = room + used;

	used += size + 15 & ~15UL;
	return block;
}

static void *own_calloc(void *context, size_t n, size_t size)
{
	return own_malloc(context, n * size);
}

static void *own_realloc(void *context, void *block, size_t size)
{
	if (block && (char *)block - room >= sizeof(room))
		return before[2].realloc(before[2].context, block, size);
	return block ? memmove(own_malloc(context, size), block, size) : own_malloc(context, size);
}

static void own_free(void *context, void *block)
{
}

void replace(void)
{
	struct table own = { NULL, own_malloc, own_calloc, own_realloc, own_free };

	PyMem_GetAllocator(2, &before[2]);
	PyMem_SetAllocator(2, &own);
}

static object *clear, *traced;

void trace(void)
{
	object *module = PyImport_ImportModule("_tracemalloc");

	clear = PyObject_GetAttrString(module, "clear_traces");
	traced = PyObject_GetAttrString(module, "get_traced_memory");
	PyObject_CallMethod(module, "start", "i", 1);
}

static void control(const char *what)
{
	const char *words[] = { getenv("ALLOCPROF"), "ctl", "-p", getenv("RECORDER"), what, NULL };
	extern char **environ;
	int status = 1;
	pid_t pid;

	if (posix_spawn(&pid, words[0], NULL, NULL, (char **)words, environ) || waitpid(pid, &status, 0) != pid || status)
		_exit(9);
}

void begin(void)
{
	if (clear)
		PyObject_CallNoArgs(clear);
	control("start");
	counts = 1;
}

void end(void)
{
	FILE *to = fopen(getenv("RESULT"), "w");
	object *both;

	counts = 0;
	control("stop");
	both = traced ? PyObject_CallNoArgs(traced) : NULL;
	fprintf(to, "{\"live\": %ld, \"peak\": %ld, \"calls\": [", both ? PyLong_AsLong(PyTuple_GetItem(both, 0)) : 0,
		both ? PyLong_AsLong(PyTuple_GetItem(both, 1)) : 0);
	for (int i = 0; i < 9; i++)
		fprintf(to, "%s[%ld, %ld]", i ? ", " : "", calls[i / 3][i % 3], bytes[i / 3][i % 3]);
	fputs("]}", to);
	fclose(to);
	_exit(0);
}
"""

PROGRAM = """
import ctypes, os, sys
helper = ctypes.PyDLL(sys.argv[1])
{setup}
getattr(helper, sys.argv[2])()
if "RECORDER" not in os.environ:
    print("ready", flush=True)
    os.environ["RECORDER"] = input()
helper.begin()
{work}
helper.end()
"""

# What runs before, and what is measured.
PROGRAMS = {
    "objects": ("", """
kept = [object() for i in range(20000)]
del kept[::3]
names = {str(i): (i, [i]) for i in range(5000)}
"""),
    "json": ("""
import json
text = json.dumps([{"a": i, "b": [str(i)] * 3, "c": {"d": 1.5 * i}} for i in range(2000)])
""", """
kept = json.loads(text)
again = len(json.dumps(kept))
"""),
    "growing": ("", """
kept = bytearray()
words = []
for i in range(2000):
    kept += b"x" * i
    words.append(" ".join(map(str, range(i % 50))))
    if i % 7 == 0:
        kept = kept[i:]
big = [bytes(n) for n in range(400, 700)]
"""),
    "threads": ("import threading", """
kept = []
def work(n):
    mine = [str(i) * n for i in range(2000)]
    kept.append(mine[::2])
threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""),
    "coroutines": ("import asyncio", """
async def one(i):
    await asyncio.sleep(0)
    return [i] * 10
async def all_of_them():
    return await asyncio.gather(*(one(i) for i in range(500)))
kept = asyncio.run(all_of_them())
def numbers():
    for i in range(1000):
        yield {i: i}
kept += list(numbers())
"""),
    "imports": ("", """
import argparse, decimal, email.message, fractions, html.parser, logging, statistics, xml.dom.minidom
document = xml.dom.minidom.parseString("<a>" + "<b c='d'>text</b>" * 500 + "</a>")
exec("def f(x):\\n    return x + 1\\n" * 200)
"""),
}


@pytest.fixture
def measured(runner, allocprof, compiled, tmp_path):
    """measured(NAME, HOW, **ENV): what the program says of itself, and the recording of the same window."""
    def attach(program, record, env):
        process = runner.start(program, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        recorder = runner.start([*record, "-p", process.pid])
        wait_until(lambda: runner.run([allocprof, "ctl", "-p", recorder.pid, "status"]).status == 0, "allocprof answers")
        process.communicate(f"{recorder.pid}\n".encode())
        assert recorder.wait() == 0

    def measure(name, how, is_attached=False, **env):
        helper = compiled(HELPER, "-shared", "-fPIC", name="helper.so")
        setup, work = PROGRAMS[name]
        program, result, data = tmp_path / "program.py", tmp_path / "result", tmp_path / "data"
        program.write_text(PROGRAM.format(setup=setup, work=work))
        record = [allocprof, "record", "--engine=preload", "--live", "--paused", "--no-symbols", "--allocator", "python", "-o", data]
        env = {"ALLOCPROF": allocprof, "RESULT": str(result), "PYTHONHASHSEED": "0", **env}
        if is_attached:
            attach([PYTHON, program, helper, how], record, env)
        else:
            # The shell's number is the recording's.
            runner.run(["sh", "-c", 'RECORDER=$$ exec "$0" "$@"', *record, "--", PYTHON, program, helper, how], env=env, expect=0)
        return json.loads(result.read_text()), Recording(data)
    return measure


# What the engine preload counts there is what Python, or tracemalloc, asks for outermost.
LIVE = """SELECT m.function, f.offset, sum(m.live_bytes) FROM memory m LEFT JOIN stack_frames s ON s.stack = m.stack AND s.depth = 0
    LEFT JOIN frames f ON f.id = s.frame WHERE m.function LIKE 'python%' GROUP BY m.function, f.offset"""


def live(recording):
    """Bytes that are live at the end, by function and by the address from where it was called."""
    return {(function, offset): size for function, offset, size in recording.sql(LIVE)}


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-json")
@pytest.mark.parametrize("name", PROGRAMS)
def test_tracemalloc_agrees(measured, name):
    """Bytes that are live at the window's end, of blocks that were allocated in it. Where tracemalloc notes from where an object
    comes that Python has kept for reuse, it asks for memory itself, by calls that the program has not without it."""
    callers = {key for key in live(measured(name, "nothing")[1]) if key[0].startswith("python-raw.")}
    said, recording = measured(name, "trace")
    assert said["live"] > 100000
    found = live(recording)
    own = {key: size for key, size in found.items() if key[0].startswith("python-raw.") and key not in callers}
    assert sum(found.values()) - sum(own.values()) == said["live"], own
    assert not recording.gaps and recording.ledger["lost"] == 0


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-growing")
@pytest.mark.parametrize("name", PROGRAMS)
def test_hooks_agree(measured, name):
    """Calls and bytes of each domain's functions, of hooks that the program sets while it is measured."""
    said, recording = measured(name, "hook")
    expected = {f"{domain}.{kind}": said["calls"][i * 3 + j] for i, domain in enumerate(DOMAINS)
                for j, kind in enumerate(["alloc", "realloc"]) if said["calls"][i * 3 + j][0]}
    assert {name: list(sums) for name, sums in recording.functions.items() if name.startswith("python")} == expected
    assert sum(calls for calls, _ in expected.values()) > 1000
    assert not recording.gaps and recording.ledger["lost"] == 0


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-PYTHONMALLOC=debug")
@pytest.mark.parametrize("setting", ["PYTHONMALLOC=debug", "PYTHONMALLOC=malloc", "PYTHONDEVMODE=1", "PYTHONTRACEMALLOC=5"])
def test_tables_that_python_changes(measured, setting):
    """Before the program begins, and without handing anything on. Bytes that Python's checks add are none of Python's requests."""
    name, _, value = setting.partition("=")
    said, recording = measured("coroutines", "hook", **{name: value})
    functions = recording.functions
    for i, domain in enumerate(DOMAINS):
        # Of tracemalloc's own requests the raw domain has some.
        if (domain, name) != ("python-raw", "PYTHONTRACEMALLOC"):
            assert list(functions.get(f"{domain}.alloc", (0, 0))) == said["calls"][i * 3]
    assert functions["python.alloc"][0] > 1000 and not recording.gaps and recording.ledger["lost"] == 0


@pytest.mark.engines("preload")
@pytest.mark.parametrize("how", ["hook", "replace"])
def test_functions_that_hand_nothing_on(measured, how):
    """Calls that came before they were noticed are missing, which is said; those of functions that hand them on are not."""
    _, recording = measured("objects", how)
    assert bool(recording.gaps) == (how == "replace"), recording.gaps
    assert recording.functions["python.alloc"][0] > 30000


@pytest.mark.engines("preload")
@pytest.mark.fast("preload-threads")
@pytest.mark.parametrize("name", PROGRAMS)
def test_attached(measured, name):
    """A process that runs already, with hooks of its own."""
    said, recording = measured(name, "hook", is_attached=True)
    expected = {f"{domain}.{kind}": said["calls"][i * 3 + j] for i, domain in enumerate(DOMAINS)
                for j, kind in enumerate(["alloc", "realloc"]) if said["calls"][i * 3 + j][0]}
    assert {name: list(sums) for name, sums in recording.functions.items() if name.startswith("python")} == expected
    assert not recording.gaps and recording.ledger["lost"] == 0


COMMANDS = """
import sys, tracemalloc
print("ready", flush=True)
while True:
    line = sys.stdin.readline()
    if not line:
        break
    exec(line)
    print("done", flush=True)
"""
ALLOCATES = "kept = [object() for byte in b'x' * 10000]; del kept"


@pytest.mark.engines("preload")
def test_tracemalloc_outlives_it(runner, allocprof, tmp_path):
    """Tracemalloc keeps copies of the tables, and puts them back when allocprof has left; then it is attached again."""
    process = runner.start([PYTHON, "-c", COMMANDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"

    def do(command):
        process.stdin.write(command.encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"

    def calls(*commands):
        recorder = runner.start([allocprof, "stat", "--json", "--engine=preload", "--allocator", "python", "-o",
                                 tmp_path / "json", "-p", process.pid])
        wait_until_counting(allocprof, recorder)
        for command in commands:
            do(command)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait() == 0
        report = read_report(tmp_path / "json")
        assert report["complete"], report
        return report["functions"]["python.alloc"]["calls"]

    begun = calls(ALLOCATES, "tracemalloc.start()", ALLOCATES)
    do("tracemalloc.stop()")
    do(ALLOCATES)
    again = calls(ALLOCATES, "tracemalloc.start()", ALLOCATES, "tracemalloc.stop()", ALLOCATES)
    do(ALLOCATES)
    last = calls(ALLOCATES)
    process.stdin.close()
    assert process.wait() == 0
    assert [n // 10000 for n in (begun, again, last)] == [2, 3, 1]


EMBEDS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
		void (*begin)(int) = library ? dlsym(library, "Py_InitializeEx") : NULL;
		int (*run)(const char *, void *) = library ? dlsym(library, "PyRun_SimpleStringFlags") : NULL;

		if (!run)
			return puts(dlerror());
		if (i) {
			begin(0);
			run("kept = [object() for i in range(30000)]", NULL);
		} else {
			dlclose(library);
		}
		free(malloc(1));
	}
	return 0;
}
"""


@pytest.mark.engines("preload")
def test_library_that_is_loaded(run, allocprof, compiled, tmp_path):
    """A Python that comes, goes and comes again while the program runs."""
    library = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    program = compiled(EMBEDS, "-ldl")
    if run([program, library]).stdout:
        unavailable(f"{library} is not installed: scripts/setup --test")
    run([allocprof, "stat", "--json", "--engine=preload", "--allocator", "python", "-o", tmp_path / "json", "--", program,
         library], expect=0)
    report = read_report(tmp_path / "json")
    assert report["complete"] and "own_heaps" not in report
    assert report["functions"]["python.alloc"]["calls"] > 30000


@pytest.mark.engines("preload")
def test_without_python(run, allocprof, tmp_path):
    result = run([allocprof, "stat", "--json", "--engine=preload", "--allocator", "python", "-o", tmp_path / "json", "--", "true"],
                 expect=0)
    assert read_report(tmp_path / "json")["complete"] is False
    assert b"no file of the target has a function of python, such as PyMem_GetAllocator" in result.stderr
