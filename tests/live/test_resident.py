"""What holds the resident memory (record --resident), against what the programs say of themselves: tests/targets/resident.c
prints its Rss, and how many bytes it has of its kind of memory, in its last moment."""

import collections
import json
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import unavailable
from support import Recording

PAGE = 4096
# What the program maps and touches after it has read its Rss: a few pages, with those that the kernel maps around them.
LATER = 256 << 10

# For each kind of memory: its part of the sum, the beginning of the sentence about it, and how much more than the bytes
# of its kind the part may have at the most.
KINDS = {
    "leak": ("blocks", "A leak, or a cache that still fills: live blocks hold", 0),
    "cache": ("blocks", "In use: live blocks hold", 0),
    "retained": ("free", "Retained: ", 0.02),
    "pinned": ("slack", "Fragmentation: ", 0.02),
    "mapping": ("mappings", "Mappings: ", 0.02),
    "stacks": ("stacks", "Stacks: ", 0.02),
}


def report_of(run, allocprof, data):
    return json.loads(run([allocprof, "report", "--json", data]).stdout)


@pytest.fixture
def resident(run, allocprof, target, tmp_path):
    """resident(kind, *options) records it, and returns the Rss and the bytes of its kind that it has printed, the parts of its
    resident memory by pid and kind, and the report."""

    def record(kind, *options):
        data = tmp_path / "resident.data"
        result = run([allocprof, "record", "-q", "--resident", *options, "-o", data, target("resident"), kind], expect=0)
        rss, size = map(int, result.stdout.split())
        text = run([allocprof, "report", "--resident", data], expect=0).stdout.decode()
        return rss, size, report_of(run, allocprof, data), text

    return record


def parts_of(process):
    """The parts whose sum is the process's Rss."""
    return {kind: size for kind, size in process.items() if kind not in ("pid", "comm", "huge", "highest")}


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("kind", KINDS)
def test_largest_part(resident, kind):
    part, sentence, more = KINDS[kind]
    rss, size, report, text = resident(kind)
    [process] = report["rss"]
    parts = parts_of(process)
    assert max(parts, key=parts.get) == part, parts
    assert size <= parts[part] + size * 0.01 and parts[part] <= size * (1 + more) + LATER, (size, parts)
    if part == "blocks":
        assert parts[part] >= size, "each byte of these blocks was written"
    assert re.search(f"^{re.escape(sentence)}", text, re.M), text


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("kind", KINDS)
def test_parts_add_up_to_what_the_program_has_read(resident, kind):
    rss, _, report, _ = resident(kind)
    [process] = report["rss"]
    assert rss <= sum(parts_of(process).values()) <= rss * 1.01 + LATER


# For each kind of live blocks: what the sentence says if they were searched for pointers, too, and of what it has numbers.
SEARCHED = {
    "leak": ("A leak: live blocks hold", "no pointer leads to"),
    "circles": ("A leak: live blocks hold", "no pointer leads to"),
    "list": ("A cache that still fills, or blocks that are kept for nothing: live blocks hold", "pointers lead to"),
    "cache": ("In use: live blocks hold", "pointers lead to"),
}


@pytest.mark.engines("uprobe", "preload")
def test_lost_blocks_that_pin_pages(resident):
    """They are 1,000,000 bytes, less than what else is on their pages."""
    _, _, _, text = resident("pinned", "--reachable")
    assert re.search(r"^Fragmentation: ", text, re.M)
    found = re.search(r"^Of the (1,00\d,\d{3}) bytes in live blocks (\d[\d,]+) bytes are lost: ", text, re.M)
    assert found and 990000 <= int(found[2].replace(",", "")) <= int(found[1].replace(",", "")), text


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("kind", SEARCHED)
def test_leak_or_cache(resident, kind):
    """With --reachable the sentence tells them apart."""
    sentence, what = SEARCHED[kind]
    _, size, _, text = resident(kind, "--reachable")
    found = re.search(rf"^{re.escape(sentence)} .*; {what} ([\d,]+) bytes of (?:its|their) ([\d,]+) bytes\.$", text, re.M)
    assert found, text
    some, all_bytes = (int(number.replace(",", "")) for number in found.groups())
    assert size * 0.99 <= some <= all_bytes <= size * 1.01 + LATER, text


# These allocators keep blocks of a size together, so that those of 100 bytes pin no pages that others were on.
OTHERS = ["libjemalloc.so.2", "libtcmalloc.so.4", "libmimalloc.so"]
OF_OTHERS = {**KINDS, "pinned": KINDS["retained"]}
# They keep what is free, and give nothing back to the kernel while the test looks.
KEEPING = ["MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1", "TCMALLOC_RELEASE_RATE=0", "MIMALLOC_PURGE_DELAY=-1",
           "MIMALLOC_RESET_DELAY=1000000"]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("kind", ["leak", "cache", "retained", "pinned", "mapping"])
@pytest.mark.parametrize("library", OTHERS)
def test_other_allocators(run, allocprof, target, tmp_path, engine, library, kind):
    """The sum is what the program has read, and its largest part is the right one. A mapping without any live block may be the
    program's own as well as this allocator's, and in how many mappings an allocator has its free memory depends on where the
    kernel puts them."""
    found = [path for path in pathlib.Path("/usr/lib/x86_64-linux-gnu").glob(f"{library}*") if path.is_file()]
    if not found:
        unavailable(f"{library} is not installed; scripts/setup does it")
    part, sentence, _ = OF_OTHERS[kind]
    data = tmp_path / "resident.data"
    result = run([allocprof, "record", "-q", "--resident", "--expect", target("resident"), "-o", data, "--", "env", *KEEPING,
                  f"LD_PRELOAD={found[0]}", target("resident"), kind], expect=0)
    rss, size = map(int, result.stdout.split())
    process = report_of(run, allocprof, data)["rss"][-1]
    parts = parts_of(process)
    assert rss <= sum(parts.values()) <= rss * 1.01 + LATER
    if part == "free" and parts.get("mappings", 0) > parts["free"]:
        sentence = "Mappings: "
    merged = collections.Counter(parts)
    if part == "free":
        merged["free"] += merged.pop("mappings", 0)
    assert max(merged, key=merged.get) == part, parts
    assert size <= merged[part] * 1.01, (size, parts)
    assert re.search(f"^{re.escape(sentence)}", run([allocprof, "report", "--resident", data], expect=0).stdout.decode(), re.M)


@pytest.mark.engines("uprobe", "preload")
def test_stack_that_pins_pages(resident):
    """It has a block of 100 bytes in each 4,080 bytes; only the first and last pages may have blocks of others, too."""
    _, _, report, text = resident("pinned")
    [stack] = [stack for stack in report["stacks"] if stack["selected"]["live"] == 10000]
    selected = stack["selected"]
    assert selected["live_bytes"] == selected["resident_bytes"] == 10000 * 100
    assert 10000 * 4080 - 4 * PAGE <= selected["unique_bytes"] <= 10000 * 4080 + 4 * PAGE
    assert selected["unique_slack_bytes"] == selected["unique_bytes"] - 10000 * 100
    assert "most of it those of 1 stack" in text


@pytest.mark.engines("uprobe", "preload")
def test_untouched_block(resident):
    _, size, report, text = resident("reserved")
    assert report["selected"]["live_bytes"] == size
    assert report["selected"]["resident_bytes"] <= PAGE
    assert re.search(r"^Of the 268,435,456 bytes in live blocks 268,43\d,\d+ bytes are not resident: never touched", text, re.M)


@pytest.mark.engines("uprobe", "preload")
def test_huge_pages(resident):
    """A block of 2 MiB is resident as a whole if it is a huge page, else its first page alone. Whether the kernel has
    any is its own affair."""
    _, size, report, text = resident("huge")
    [process] = report["rss"]
    [stack] = [stack for stack in report["stacks"] if stack["selected"]["live"] == 20]
    huge = process.get("huge", 0)
    assert stack["selected"]["resident_bytes"] == size == huge + (20 - huge // (2 << 20)) * PAGE
    assert ("are transparent huge pages" in text) == (huge > 0)


@pytest.mark.parametrize("kind", ["mapping", "stacks"])
def test_mappings_by_stack(resident, kind):
    """With --allocator mmap who maps memory has what of it is resident: all of 40 MiB, or of stacks of threads what they use."""
    _, size, report, text = resident(kind, "--allocator", "mmap")
    part = report["rss"][0][{"mapping": "mappings", "stacks": "stacks"}[kind]]
    [stack] = [stack for stack in report["stacks"] if stack["function"] == "mmap" and kind in
               (report["frames"][frame]["name"] for frame in stack["frames"])]
    selected = stack["selected"]
    assert size <= selected["resident_bytes"] == selected["unique_bytes"] <= min(part, selected["live_bytes"])
    assert selected["resident_bytes"] <= size * 1.02 + LATER
    if kind == "mapping":
        assert re.search(r"^Mappings: .*, most of it mapped by 1 stack\.$", text, re.M), text


@pytest.mark.engines("uprobe", "preload")
def test_forked_child(resident):
    """The child's copies of its parent's blocks are neither its own blocks nor kept by its allocator."""
    _, _, report, _ = resident("fork")
    parent, child = report["rss"]
    assert parent["blocks"] >= 30 << 20 and "inherited" not in parent
    assert child["inherited"] >= 30 << 20 and child.get("blocks", 0) < PAGE and child.get("free", 0) == 0


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("kind", ["leak", "pinned"])
def test_attached(runner, run, allocprof, target, tmp_path, engine, kind):
    """What was there before the recording is neither ascribed to blocks nor said to be retained. The process goes on."""
    data = tmp_path / "attached.data"
    process = runner.start([target("resident"), kind, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    rss, size = map(int, process.stdout.readline().split())
    run([allocprof, "record", "-q", "--engine", engine, "--resident", "--duration", "100ms", "-o", data, "-p", process.pid], expect=0)
    process.stdin.close()
    assert process.wait() == 0
    [parts] = report_of(run, allocprof, data)["rss"]
    assert parts["pid"] == process.pid
    assert parts["before"] >= size and parts.get("blocks", 0) == 0 and parts.get("free", 0) <= 16 * PAGE
    assert rss * 0.99 - LATER <= sum(parts_of(parts).values())
    text = run([allocprof, "report", "--resident", data], expect=0).stdout
    assert b"From before the recording: " in text


ENDS = {
    "exit": ("exit(3)", 3),
    "_exit": ("_exit(4)", 4),
    "thread": ("pthread_create(&thread, 0, leave, 0), pause()", 5),
    "abort": ("abort()", 128 + signal.SIGABRT),
    "killed": ("raise(SIGKILL)", 128 + signal.SIGKILL),
    "segv": ("*(volatile int *)8 = 1", 128 + signal.SIGSEGV),
}


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("end", ENDS)
def test_ends(run, allocprof, compiled, tmp_path, end):
    """However a command ends, its memory is read before it goes, and it ends as it would without that."""
    statement, status = ENDS[end]
    program = compiled(f"""
        #include <pthread.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        void *kept;
        static void *leave(void *unused) {{ _exit(5); }}
        int main(void)
        {{
            pthread_t thread;
            kept = memset(malloc(1000000), 1, 1000000);
            signal(SIGUSR1, SIG_IGN);
            for (int i = 0; i < 100; i++) raise(SIGUSR1);
            {statement};
        }}""")
    data = tmp_path / "ends.data"
    run([allocprof, "record", "-q", "--resident", "-o", data, program], expect=status)
    [process] = report_of(run, allocprof, data)["rss"]
    assert process["blocks"] >= 1000000


@pytest.mark.engines("uprobe", "preload")
def test_first_thread_that_ends_alone(run, allocprof, compiled, tmp_path):
    """Then nothing stops the process at its end: that is said, and the recording is not complete."""
    program = compiled("""
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void *go_on(void *unused) { usleep(900000); free(malloc(100)); return 0; }
        int main(void) { pthread_t thread; pthread_create(&thread, 0, go_on, 0); pthread_exit(0); }""")
    data = tmp_path / "alone.data"
    run([allocprof, "record", "-q", "--resident", "-o", data, program], expect=0)
    report = report_of(run, allocprof, data)
    assert not report["complete"] and "rss" not in report
    result = run([allocprof, "report", "--resident", data])
    assert result.status != 0 and b"what was resident at the end is not known: its first thread ended before others" in result.stderr


@pytest.mark.engines("uprobe", "preload")
def test_dump(runner, run, allocprof, target, tmp_path):
    """A dump has the memory of its moment, and so has the recording's end."""
    data, dump = tmp_path / "whole.data", tmp_path / "dump.data"
    recording = runner.start([allocprof, "record", "-q", "--resident", "-o", data, target("resident"), "retained", "wait"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _, size = map(int, recording.stdout.readline().split())
    run([allocprof, "ctl", "-p", recording.pid, "dump", "-o", dump], expect=0)
    recording.stdin.close()
    assert recording.wait() == 0
    for path in dump, data:
        [process] = report_of(run, allocprof, path)["rss"]
        assert size <= process["free"] <= size * 1.02 + LATER, path


SIZES = [1, 24, 25, 100, 121, 500, 1000]
# 1,000 blocks of each size, and what malloc_usable_size(3) says of them.
SIZED = ("""
    #include <malloc.h>
    #include <stdio.h>
    #include <stdlib.h>
    int main(void)
    {
        static const int sizes[] = { %s };
        static void *kept[100000];
        int n = 0;
        for (int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            unsigned long usable = 0;
            for (int j = 0; j < 1000; j++)
                usable += malloc_usable_size(kept[n++] = malloc(sizes[i]));
            printf("%%lu\\n", usable);
        }
    }""" % ", ".join(map(str, SIZES)))


@pytest.mark.fast("None", "preload-None", "libjemalloc.so.2")
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("library", [None, "libjemalloc.so.2", "libtcmalloc.so.4"])
def test_size_classes(run, allocprof, compiled, tmp_path, library):
    """Usable bytes are those that the allocator says, or not known."""
    path = pathlib.Path(f"/usr/lib/x86_64-linux-gnu/{library}")
    if library and not path.exists():
        unavailable(f"{library} is not installed; scripts/setup does it")
    program, data = compiled(SIZED), tmp_path / "sized.data"
    result = run([allocprof, "record", "-q", "--resident", "--expect", program, "-o", data, "--",
                  *(["env", f"LD_PRELOAD={path}"] if library else []), program], expect=0)
    usable = [int(line) // 1000 for line in result.stdout.split()]
    classes = {(row["rule"], row["most_bytes"]): row for row in report_of(run, allocprof, data)["size_classes"]}
    for size, each in zip(SIZES, usable):
        if library == "libtcmalloc.so.4":
            row = classes["unknown", (size + 7) // 8 * 8]
            assert row["blocks"] >= 1000 and row["usable_bytes"] is None
            continue
        row = classes["jemalloc" if library else "glibc", each]
        alike = [other for other, its in zip(SIZES, usable) if its == each]
        assert row["blocks"] >= 1000 * len(alike) and row["usable_bytes"] == row["blocks"] * each
        assert row["blocks"] < 1000 * len(alike) + 300 and row["bytes"] >= 1000 * sum(alike)
    text = run([allocprof, "report", "--resident", data], expect=0).stdout.decode()
    assert {None: "as glibc rounds them", "libjemalloc.so.2": "as jemalloc rounds them"}.get(library, "whose rounding is not known") in text


# What glibc says of itself: bytes of its chunks in use, mapped bytes and blocks, and the main heap's size.
MALLINFO = """
    #include <malloc.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    int main(void)
    {
        static void *kept[20000], *large[3];
        static char text[200];
        for (int i = 0; i < 20000; i++) kept[i] = memset(malloc(1 + i % 2000), 1, 1 + i % 2000);
        for (int i = 0; i < 3; i++) large[i] = memset(malloc(1000000), 1, 1000000);
        for (int i = 0; i < 20000; i += 3) free(kept[i]);
        struct mallinfo2 info = mallinfo2();
        int length = sprintf(text, "%zu %zu %zu %zu", info.uordblks, info.hblkhd, info.hblks, info.arena);
        _exit(write(1, text, length) != length);
    }"""


@pytest.mark.engines("uprobe", "preload")
def test_mallinfo(run, allocprof, compiled, tmp_path):
    """Live blocks with their headers and rounding are what glibc has in use, heap by heap."""
    program, data = compiled(MALLINFO), tmp_path / "mallinfo.data"
    # What a thread's cache has is in use for glibc.
    result = run([allocprof, "record", "-q", "--resident", "-o", data, "--", "env", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", program],
                 expect=0)
    used, mapped_bytes, mapped_blocks, arena = map(int, result.stdout.split())
    recording = Recording(data)
    ((taken,),) = recording.sql("SELECT (SELECT sum(bytes) FROM size_classes) + (SELECT sum(rounding_bytes) FROM rounding)")
    # The thread's cache itself is a chunk of glibc's own.
    assert 0 <= used + mapped_bytes - taken < 1024
    heaps = {heap["kind"]: heap for heap in report_of(run, allocprof, data)["heaps"]}
    assert heaps["mapped"]["blocks"] == mapped_blocks == 3 and heaps["mapped"]["resident_bytes"] == mapped_bytes
    assert heaps["main"]["resident_bytes"] <= arena <= heaps["main"]["resident_bytes"] + LATER


ARENAS = """
    #include <pthread.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    static void *kept[20000];
    static void keep(int from, int n) { for (int i = from; i < from + n; i++) memset(kept[i] = malloc(1000), 1, 1000); }
    static pthread_barrier_t barrier;
    static void *thread(void *number)
    {
        pthread_barrier_wait(&barrier);
        keep((long)number * 5000, 2000);
        pthread_barrier_wait(&barrier);
        return 0;
    }
    int main(void)
    {
        pthread_t threads[2];
        pthread_barrier_init(&barrier, 0, 3);
        for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, thread, (void *)(i + 1));
        keep(0, 3000);
        memset(kept[19999] = malloc(1 << 20), 1, 1 << 20);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
        _exit(0);
    }"""


@pytest.mark.fast("None", "preload-None")
@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("library", [None, "libjemalloc.so.2"])
def test_heaps(run, allocprof, compiled, tmp_path, library):
    """glibc's main heap, an arena for each of two threads, and a mapping of one block; jemalloc's are told apart from these."""
    path = pathlib.Path(f"/usr/lib/x86_64-linux-gnu/{library}")
    if library and not path.exists():
        unavailable(f"{library} is not installed; scripts/setup does it")
    program, data = compiled(ARENAS), tmp_path / "arenas.data"
    run([allocprof, "record", "-q", "--resident", "--expect", program, "-o", data, "--",
         *(["env", f"LD_PRELOAD={path}"] if library else []), program], expect=0)
    report = report_of(run, allocprof, data)
    parts = report["rss"][-1]
    heaps = [heap for heap in report["heaps"] if heap["pid"] == parts["pid"]]
    # A library's own data may have blocks, too: those that the dynamic linker made before there was a malloc.
    assert sum(heap["block_bytes"] for heap in heaps) == parts["blocks"]
    assert sum(heap["slack_bytes"] for heap in heaps) == parts["slack"]
    assert sum(heap["free_bytes"] for heap in heaps) == parts.get("free", 0)
    by_kind = {}
    for heap in heaps:
        by_kind.setdefault(heap["kind"], []).append(heap)
    if library:
        [other] = by_kind["other"]
        assert other["blocks"] >= 7001 and other["block_bytes"] >= (1 << 20) + 7000000 and "main" not in by_kind
        return
    [main], [mapped], arenas = by_kind["main"], by_kind["mapped"], by_kind["arena"]
    assert 3000 <= main["blocks"] < 3300 and mapped["blocks"] == 1 and mapped["block_bytes"] == mapped["bytes"] == 1 << 20
    assert len({arena["address"] for arena in arenas}) == 2
    assert all(2000 <= arena["blocks"] < 2100 and 2000000 <= arena["block_bytes"] < 2100000 for arena in arenas)
    text = run([allocprof, "report", "--resident", data], expect=0).stdout.decode()
    for name in "main heap of glibc (brk)", "mapped by glibc for single large blocks", "arena of threads of glibc at 0x":
        assert name in text


@pytest.mark.engines("uprobe", "preload")
def test_highest(run, allocprof, compiled, tmp_path):
    """The kernel keeps how much the process had, and the report says so where that is more than at the end."""
    program = compiled("""
        #include <stdlib.h>
        #include <string.h>
        int main(void) { char *block = malloc(50 << 20); memset(block, 1, 50 << 20); free(block); return 0; }""")
    data = tmp_path / "highest.data"
    run([allocprof, "record", "-q", "--resident", "-o", data, program], expect=0)
    report = report_of(run, allocprof, data)
    [process] = report["rss"]
    assert process["highest"] > 50 << 20 > 5 * sum(parts_of(process).values())
    [end] = report["rss_samples"]
    assert parts_of(process) == {kind: size for kind, size in end.items() if kind not in ("time_ns", "torn_ms")}
    text = run([allocprof, "report", "--resident", data], expect=0).stdout.decode()
    assert f"At its highest the process had {process['highest']:,} bytes: record with --dump-at=peak to see what held it" in text


@pytest.mark.engines("uprobe", "preload")
def test_command_of_several_processes(run, allocprof, target, tmp_path):
    """Only the end of the first process is seen; that others ended before is said."""
    data = tmp_path / "shell.data"
    run([allocprof, "record", "-q", "--resident", "-o", data, "sh", "-c", f"{target('resident')} leak; true"], expect=0)
    [shell] = report_of(run, allocprof, data)["rss"]
    assert shell["comm"] == "sh" and shell.get("blocks", 0) < 1 << 20
    text = run([allocprof, "report", "--resident", data], expect=0).stdout.decode()
    assert "1 more process ended before (resident): what it had in memory then is not known" in text
    # What ended processes had left is not said to be swapped out.
    assert "are not resident" not in text


def test_refused_options(run, allocprof):
    result = run([allocprof, "record", "--resident", "--sample", "512K", "true"])
    assert result.status == 64 and b"--resident and --sample cannot be used together" in result.stderr
