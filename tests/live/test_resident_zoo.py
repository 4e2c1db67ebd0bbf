"""What holds the resident memory of programs of Debian (record --resident), against what they and the kernel say of it."""

import json
import pathlib
import re
import shutil
import subprocess

import pytest

from measured import Measured
from servers import Postgresql, Redis, ask
from support import TIMEOUT_SECONDS, unavailable

PARTS = ("blocks", "slack", "free", "before", "mappings", "inherited", "stacks", "data", "files", "shared", "allocprof", "changed")


def rss_of(pid):
    return int(re.search(r"^Rss: +(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1]) << 10


def sum_of(parts):
    return sum(parts.get(name, 0) for name in PARTS)


def child_of(recorder, name):
    """The command: the recorder has other children, too."""
    children = pathlib.Path(f"/proc/{recorder}/task/{recorder}/children").read_text().split()
    [child] = [int(pid) for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith(name)]
    return child


@pytest.fixture
def copied(run, allocprof, tmp_path):
    """copied(recorder, pid): the report of a copy, whose sum closes within 1 % of the process's Rss."""

    def copy(recorder, pid):
        path = tmp_path / "copy.data"
        before = rss_of(pid)
        run([allocprof, "ctl", "-p", recorder, "dump", "-o", path], expect=0)
        after = rss_of(pid)
        report = json.loads(run([allocprof, "report", "--json", path], expect=0).stdout)
        [parts] = [process for process in report["rss"] if process["pid"] == pid]
        assert min(before, after) * 0.99 <= sum_of(parts) <= max(before, after) * 1.01
        report["parts"] = parts
        report["text"] = run([allocprof, "report", "--resident", path], expect=0).stdout.decode()
        return report

    return copy


def usable_of(report, rule):
    return sum(row["usable_bytes"] for row in report["size_classes"] if row["rule"] == rule)


@pytest.mark.engines("uprobe", "preload")
def test_redis_after_many_deletions(runner, allocprof, directory, tmp_path, engine, copied):
    """Its own figures: jemalloc's bytes are those that live blocks may use, and the ratio of fragmentation is Rss over them."""
    served = Redis(runner, directory, None, [allocprof, "record", "-q", "--resident", f"--engine={engine}", "-o", tmp_path / "data", "--"])
    server = child_of(served.pid, "redis")
    for start in range(0, 40000, 1000):
        assert served.say(*(f"SET k{key} {'v' * 400}" for key in range(start, start + 1000))) == 1000
    # One of eight keys stays, so that nearly all of jemalloc's slabs do.
    for start in range(0, 40000, 1000):
        assert served.say("DEL " + " ".join(f"k{key}" for key in range(start, start + 1000) if key % 8)) == 1
    report = copied(served.pid, server)
    info = {key: float(value) for key, value in re.findall(rb"^(\w+):([\d.]+)\r$", ask(served.socket, b"INFO memory\r\nQUIT\r\n"), re.M)}
    parts, usable = report["parts"], usable_of(report, "jemalloc")
    # Blocks that threads keep for later use are live to jemalloc, and the answer to INFO takes memory, too.
    assert usable == pytest.approx(info[b"allocator_allocated"], rel=0.02, abs=1 << 20)
    # Redis looks ten times a second, and jemalloc gives pages back meanwhile.
    assert sum_of(parts) == pytest.approx(info[b"used_memory_rss"], rel=0.02, abs=1 << 20)
    assert sum_of(parts) / info[b"used_memory"] == pytest.approx(info[b"mem_fragmentation_ratio"], rel=0.03)
    assert (parts["blocks"] + parts["slack"]) / usable == pytest.approx(info[b"allocator_frag_ratio"], rel=0.1)
    assert parts["blocks"] + parts["slack"] <= info[b"allocator_active"] * 1.01
    # 5,000 values of 400 bytes, and 35,000 that are gone from pages which these hold.
    assert parts["slack"] > 10 << 20 > parts["blocks"] - (3 << 20)
    assert re.search(r"^Fragmentation: ", report["text"], re.M)


MALLCTL = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int (*mallctl)(const char *, void *, size_t *, void *, size_t);
static size_t of(const char *name)
{
    size_t value = 0, size = sizeof(value);
    mallctl(name, &value, &size, 0, 0);
    return value;
}
int main(void)
{
    static void *kept[100000];
    static char text[200];
    size_t epoch = 1;
    for (int i = 0; i < 100000; i++) kept[i] = memset(malloc(100 + i % 900), 1, 100 + i % 900);
    for (int i = 0; i < 100000; i++) if (i % 8) free(kept[i]);
    mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    mallctl("thread.tcache.flush", 0, 0, 0, 0);
    mallctl("epoch", 0, 0, &epoch, sizeof(epoch));
    /* 4096 stands for all arenas; dirty pages are free ones that it keeps. */
    int length = sprintf(text, "%zu %zu %zu %zu", of("stats.allocated"), of("stats.active"), of("stats.arenas.4096.pdirty") * 4096,
                         of("stats.resident"));
    _exit(write(1, text, length) != length);
}"""


@pytest.mark.engines("uprobe", "preload")
def test_jemalloc_says(run, allocprof, compiled, tmp_path):
    """What blocks may use is allocated; pages with live blocks are active; and resident are these, what is free, and as much of
    its own data as it has written: it counts all of that as resident."""
    library = pathlib.Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
    if not library.exists():
        unavailable("libjemalloc.so.2 is not installed; scripts/setup does it")
    program, data = compiled(MALLCTL), tmp_path / "jemalloc.data"
    result = run([allocprof, "record", "-q", "--resident", "--expect", program, "-o", data, "--", "env", f"LD_PRELOAD={library}",
                  "MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1", program], expect=0)
    allocated, active, dirty, resident = map(int, result.stdout.split())
    report = json.loads(run([allocprof, "report", "--json", data], expect=0).stdout)
    parts = report["rss"][-1]
    assert usable_of(report, "jemalloc") == pytest.approx(allocated, rel=0.01)
    held = parts["blocks"] + parts["slack"]
    assert held <= active * 1.01 and active <= (held + parts.get("free", 0)) * 1.01
    assert (active + dirty) * 0.99 <= held + parts.get("free", 0) + parts.get("mappings", 0) <= resident * 1.01


PYTHON = """
import sys
kept = [str(i) * 40 for i in range(100000)]
print("ready", flush=True)
sys.stdin.readline()
del kept
print("gone", flush=True)
sys.stdin.readline()
"""


@pytest.mark.engines("uprobe", "preload")
def test_python_that_frees_a_list(runner, allocprof, tmp_path, engine, copied):
    """Its blocks are live, and then gone, or kept by glibc's malloc without a live block."""
    python = shutil.which("python3", path="/usr/bin")
    recorder = runner.start([allocprof, "record", "-q", "--resident", f"--engine={engine}", "-o", tmp_path / "data", "--",
                             "env", "PYTHONMALLOC=malloc", python, "-c", PYTHON], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert recorder.stdout.readline() == b"ready\n"
    pid = child_of(recorder.pid, "python3")
    full = copied(recorder.pid, pid)["parts"]
    # 100,000 texts of 238 bytes on average.
    assert full["blocks"] > 20 << 20 and full["slack"] + full.get("free", 0) < full["blocks"] / 2
    recorder.stdin.write(b"\n")
    recorder.stdin.flush()
    assert recorder.stdout.readline() == b"gone\n"
    freed = copied(recorder.pid, pid)["parts"]
    assert full["blocks"] - freed["blocks"] > 20 << 20
    assert sum_of(full) - sum_of(freed) == pytest.approx(
        sum(full.get(name, 0) - freed.get(name, 0) for name in ("blocks", "slack", "free", "mappings", "allocprof")), abs=1 << 20)
    recorder.stdin.close()
    assert recorder.wait(TIMEOUT_SECONDS) == 0


NODE = """
const kept = [];
for (let i = 0; i < 30; i++) kept.push(Buffer.alloc(1 << 20, 1));
require('fs').writeSync(1, 'ready\\n');
process.stdin.on('data', () => process.exit(kept.length - 30));
"""


@pytest.mark.engines("uprobe", "preload")
def test_node(runner, allocprof, tmp_path, engine, copied):
    """Buffers are blocks; V8's heap is mappings that no allocator has made."""
    node = shutil.which("node", path="/usr/bin")
    if not node:
        unavailable("nodejs is not installed: scripts/setup --test")
    recorder = runner.start([allocprof, "record", "-q", "--resident", f"--engine={engine}", "-o", tmp_path / "data", "--", node, "-e", NODE],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert recorder.stdout.readline() == b"ready\n"
    report = copied(recorder.pid, child_of(recorder.pid, "node"))
    assert report["parts"]["blocks"] >= 30 << 20 and report["parts"]["mappings"] > 1 << 20 and report["parts"]["files"] > 10 << 20
    recorder.stdin.write(b"\n")
    recorder.stdin.close()
    assert recorder.wait(TIMEOUT_SECONDS) == 0


@pytest.mark.engines("uprobe", "preload")
def test_postgresql(runner, allocprof, directory, tmp_path, engine, cluster, copied):
    """A backend's sorting is live blocks; its buffers are shared with other processes."""
    served = Postgresql(runner, directory, cluster)
    recording = Measured(runner, allocprof, served.pid, tmp_path / "data", "record", "-q", "--resident", engine=engine)
    served.say("SET work_mem = '100MB'; BEGIN; DECLARE c CURSOR FOR SELECT i, repeat('x', 100) FROM generate_series(1, 400000) AS i ORDER BY 2;\n"
               "FETCH 1 FROM c;\n")
    sorting = copied(recording.process.pid, served.pid)["parts"]
    assert sorting["blocks"] > 10 << 20 and sorting["shared"] > 1 << 20
    served.say("COMMIT;\n")
    done = copied(recording.process.pid, served.pid)["parts"]
    assert sorting["blocks"] - done.get("blocks", 0) > 10 << 20
    recording.finish()
    served.end()
