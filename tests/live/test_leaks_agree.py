# SPDX-License-Identifier: GPL-3.0-or-later
"""`record --live` and `report --leaks` against heaptrack and valgrind's memcheck, on Debian's own programs:
of every stack from which something is live at the end, the blocks and the bytes, to the last one.

Each of the three needs a run of its own, so the programs are such as do the same each time. Stacks
are compared by places (leaks.py), so that nothing depends on who knows which name. This is where the
three mean different things, and what is done about it:

- memcheck frees what the C library and the C++ library keep before it counts; it is told not to.
- memcheck runs its program with four environment variables more, which some programs copy. The other
  runs get as many, of the same lengths.
- Its malloc, which stands for the C library's, and heaptrack's dlopen are frames of their own.
- heaptrack does free these, and stops counting before the destructors of libraries run. In programs
  in C both come to nothing; of one in C++ the very difference is asserted.
- heaptrack writes its end when exit() is called, so a program that calls _exit() is not for it.
"""

import collections
import json
import pathlib
import re
import shutil
import subprocess

import pytest

import leaks
from conftest import unavailable
from containers import own_mounts
from support import SOURCE, Recording, libc_path

TOP = 10
SOURCES = SOURCE / "tests" / "targets" / "reachable"
MEMCHECK = ["valgrind", "--leak-check=full", "--show-leak-kinds=all", "--leak-resolution=high",
            "--show-below-main=yes", "--num-callers=200", "--read-inline-info=no", "--xml=yes"]

PYTHON = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
CYCLES = """
import gc, json
gc.disable()
class Node: pass
for n in range(500):
    node = Node()
    node.itself = node
json.dumps({"a": [1, 2.5, "three"]})
"""
NUMBERS = "".join(f"{n}\n" for n in range(2000))
# Arrays of both kinds, functions, expansions, matches, and a line of the history; nothing forks.
SCRIPT = r"""
set -o history
count() { local word; for word; do (( seen[$word]++ )); done; trap 'echo "$FUNCNAME"' RETURN; }
declare -A seen table; declare -a list; shopt -s extglob
for i in {1..300}; do table[key$i]=value$i; list+=("${table[key$i]/value/"$i "}"); done
count "${list[@]%% *}"
unset 'table[key7]' 'list[3]'; unset -f nothing
printf -v line '%s,' "${!seen[@]}"; [[ $line =~ (1[0-9]+),(.*) ]]
eval "second() { echo ${BASH_REMATCH[1]@Q} \"\$@\"; }"; second ${list[*]:0:9} ~root /us[r]
shopt -s expand_aliases; alias name=value; hash -p /bin/true t; declare -n reference=list; local_one() { local -a own=(1 2); }; local_one
"""

# Name: command, what is added to its environment, exit status, stacks that have something at least.
PROGRAMS = {
    "gawk": (["gawk", "{ x[$1] = $1 } END { print length(x) }", "numbers"], {}, 0, 100),
    "git": (["git", "diff", "--no-index", "--stat", "/dev/null", "numbers"], {}, 1, 20),
    "jq": (["jq", "-n", '[range(10) | {a: "\\(.)"}] | group_by(.a)'], {}, 0, 0),
    "ld": (["ld", "--help"], {}, 0, 10),
    "perl": (["perl", "-e", "my @x = map { { a => $_ } } 1..500; $_->{itself} = $_ for @x"],
             {"PERL_HASH_SEED": "0"}, 0, 100),
    "python": (["/usr/bin/python3", "-c", CYCLES], PYTHON, 0, 50),
    "sqlite3": (["sqlite3", ":memory:", "CREATE TABLE t(a); INSERT INTO t VALUES (1)"], {}, 0, 5),
}

# Bugs of jq 1.6, Debian 12's: what is printed for so many times, and the blocks that are lost.
JQ_LEAKS = {
    # jv_array_indexes() forgets an array of each call.
    "indices": ("[range(1000) | [.] | indices([.])] | length", 1000, 1000, 32000),
    # f_ltrimstr() forgets the string where it has no string to cut off: it, and what holds it.
    "ltrimstr": ("[range(300) | tostring | ltrimstr(1)] | length", 300, 600, 22800),
}


@pytest.fixture
def peers(tmp_path):
    """valgrind, heaptrack, and a C library that is not that of others' probes, which are refused while valgrind runs."""
    for name in ("valgrind", "heaptrack", "heaptrack_print", "zstd"):
        if not shutil.which(name):
            unavailable(f"{name} is not installed; scripts/setup does it")
    with own_mounts():
        subprocess.run(["mount", "--bind", shutil.copy(libc_path(), tmp_path / "own_libc"), libc_path()], check=True)
        yield


def in_place_of(word):
    """A variable of the same length that means nothing to anybody."""
    name, _, value = word.partition("=")
    return "_" + name[1:], value


@pytest.fixture
def placeholders(run, peers, tmp_path):
    """Variables as long as those that valgrind adds."""
    def environment(argv):
        # With PWD as below, or the shell that begins valgrind would add that.
        result = run([*argv, "env", "-0"], env={"PWD": str(tmp_path)}, cwd=tmp_path, expect=0)
        return set(result.stdout.decode().split("\0"))

    added = environment(["valgrind", "-q"]) - environment([])
    assert added
    return dict(map(in_place_of, added))


class Runs:
    def __init__(self, run, allocprof, placeholders, directory):
        self._run = run
        self.allocprof = allocprof
        self.placeholders = placeholders
        self.directory = directory

    def run(self, argv, env, status):
        # valgrind is begun by a shell, which mends PWD.
        return self._run(argv, env={"PWD": str(self.directory), **env}, cwd=self.directory,
                         expect=status)

    def record(self, argv, env, status):
        data = self.directory / "data"
        result = self.run([self.allocprof, "record", "--reachable", "--max-depth", "512",
                           "--no-debuginfod", "-o", data, "--", *argv],
                          {**self.placeholders, **env}, status)
        recording = Recording(data)
        assert recording.ledger["lost"] == recording.ledger["untracked"] == 0
        assert recording.ledger["incomplete"] == 0
        return leaks.of_recording(recording), result.stdout

    def memcheck(self, argv, env, status, freeres="no"):
        path = self.directory / "memcheck.xml"
        self.run([*MEMCHECK, f"--run-libc-freeres={freeres}", f"--run-cxx-freeres={freeres}",
                  f"--xml-file={path}", *argv], env, status)
        return leaks.of_memcheck(path)

    def heaptrack(self, argv, env, status):
        path = self.directory / "heaptrack.zst"
        result = self.run(["heaptrack", "-o", self.directory / "heaptrack", *argv],
                          {**self.placeholders, **env}, status)
        live = leaks.of_heaptrack(path)
        # What heaptrack itself says, so that it is not our reading of its file that agrees.
        said = re.search(r"leaked allocations:\s+(\d+)", (result.stdout + result.stderr).decode())
        assert int(said[1]) == live.total()[0]
        return live


@pytest.fixture
def runs(run, allocprof, placeholders, tmp_path):
    (tmp_path / "numbers").write_text(NUMBERS)
    return Runs(run, allocprof, placeholders, tmp_path)


def assert_report(run, allocprof, directory, ours):
    """`report --leaks` has the stacks of the data file: blocks and bytes, by names."""
    data = directory / "data"
    report = json.loads(run([allocprof, "report", "-i", data, "--leaks", "--at-exit", "--json", "--raw-stacks",
                             "--no-inline"], expect=0).stdout)
    expected = collections.Counter()
    recording = Recording(data)
    for names, blocks, size in recording.sql(
            "SELECT coalesce(u.functions, ''), sum(m.live), sum(m.live_bytes) FROM uninlined u "
            "JOIN memory m ON m.count = u.count GROUP BY u.functions HAVING sum(m.live)"):
        expected[names] = blocks, size
    found = collections.defaultdict(lambda: (0, 0))
    for stack in report["stacks"]:
        # The report marks what tail calls removed; the data file's view has the names alone.
        names = ";".join(report["frames"][frame]["name"].removesuffix(" [tail call]")
                         for frame in reversed(stack["frames"]))
        live = stack["selected"]["live"], stack["selected"]["live_bytes"]
        found[names] = tuple(map(sum, zip(found[names], live)))
    assert dict(found) == dict(expected)
    assert (report["selected"]["live"], report["selected"]["live_bytes"]) == ours.total()
    # What is lost comes first, then what is possibly lost.
    order = [(selected["lost_bytes"] + selected["indirectly_lost_bytes"], selected["possibly_lost_bytes"], selected["live_bytes"])
             for selected in (stack["selected"] for stack in report["stacks"])]
    assert order == sorted(order, reverse=True)


def assert_same(ours, theirs, name):
    wrong = ours.differences(theirs, "allocprof", name)
    assert not wrong, "\n".join([f"{len(wrong)} stacks differ", *wrong[:TOP]])
    assert ours.total() == theirs.total()
    assert [sums for _, sums in ours.top(TOP)] == [sums for _, sums in theirs.top(TOP)]


def stack_has(ours, memcheck, stack, name):
    return any(name in (ours.names.get(place) or memcheck.names.get(place) or "") for place in stack)


def forget_sizes(ours, memcheck, name):
    """Of stacks through the function only the blocks are compared. What the C library has of a thread is larger with a library
    that has thread-local variables more, as the preload engine's."""
    for live in ours, memcheck:
        for stacks in live.by_kind.values():
            for stack in [stack for stack in stacks if stack_has(ours, memcheck, stack, name)]:
                stacks[stack] = [stacks[stack][0], 0]


def assert_same_kinds(ours, memcheck):
    """What can be reached. Where the dynamic linker lists what dlopen() has loaded, it begins at a multiple of a cache
    line within the block, so that where the block is decides whether it points to its beginning."""
    for live in ours, memcheck:
        for kind in "possibly_lost", "reachable":
            for stack in [s for s in live.by_kind[kind] if stack_has(ours, memcheck, s, "_dl_find_object_update")]:
                live.by_kind["reachable"][stack] = live.by_kind[kind].pop(stack)
    assert sum(leaks.total_of(stacks)[0] for stacks in ours.by_kind.values()) == ours.total()[0]
    for kind in leaks.KINDS.values():
        wrong = ours.differences(memcheck, "allocprof", "memcheck", kind)
        assert not wrong, "\n".join([f"{len(wrong)} stacks differ in blocks that are {kind}", *wrong[:TOP]])


# Of tests/targets/reachable.cpp, which says what each does.
REACHABLE = [
    "chain", "lost", "lost_chain", "cycle", "shared", "inside", "behind_inside", "past_the_end", "empty", "odd_sizes",
    "unaligned", "hidden", "freed", "arrays", "bases", "strings", "containers", "functions", "threads", "mapped", "large",
    "grown", "taken", "internal",
]


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("case", REACHABLE)
def test_kinds_of_blocks(runs, target, engine, case):
    ours, _ = runs.record([target("reachable"), case], {}, 0)
    memcheck = runs.memcheck([target("reachable"), case], {}, 0)
    forget_sizes(ours, memcheck, "_dl_allocate_tls")
    # What __libc_malloc returns passes by the preload engine.
    if case == "internal" and engine == "preload":
        kept = memcheck.by_kind["reachable"]
        passed = [stack for stack, live in kept.items() if live in ([1, 800], [1, 100000])]
        assert [kept.pop(stack) for stack in passed] and len(passed) == 2
    assert_same_kinds(ours, memcheck)


# Of tests/targets/reachable/objects.cpp.
OBJECTS = [
    "functions", "anys", "virtual_bases", "pure_bases", "bools", "aligned_new", "small_arrays", "old_strings", "sized",
    "coroutines", "shared_pointers", "intrusive", "tagged", "containers", "resources", "futures",
]


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    if not shutil.which("g++"):
        unavailable("g++ is not installed")
    path = tmp_path_factory.mktemp("objects") / "objects"
    subprocess.run(["g++", "-std=gnu++20", "-O1", "-fno-builtin", "-g", "-pthread", "-o", path, SOURCES / "objects.cpp"], check=True)
    return path


@pytest.mark.engines("uprobe", "preload")
@pytest.mark.parametrize("case", OBJECTS)
def test_kinds_of_objects(runs, objects, case):
    ours, _ = runs.record([objects, case], {}, 0)
    memcheck = runs.memcheck([objects, case], {}, 0)
    forget_sizes(ours, memcheck, "_dl_allocate_tls")
    assert_same_kinds(ours, memcheck)


@pytest.mark.engines("uprobe", "preload")
def test_kinds_of_rust(runs, tmp_path):
    rustc = shutil.which("rustc", path="/usr/bin:/root/.cargo/bin")
    if not rustc:
        unavailable("rustc is not installed")
    program = tmp_path / "shared"
    subprocess.run([rustc, "--edition", "2021", "-O", "-g", "-o", program, SOURCES / "shared.rs"], check=True)
    ours, _ = runs.record([program], {}, 0)
    memcheck = runs.memcheck([program], {}, 0)
    forget_sizes(ours, memcheck, "_dl_allocate_tls")
    assert_same_kinds(ours, memcheck)
    assert all(ours.by_kind.values())


def test_kinds_of_bash(runs):
    argv = ["bash", "--norc", "-c", SCRIPT]
    ours, output = runs.record(argv, {}, 0)
    assert output.endswith(b" /root /usr\n")
    memcheck = runs.memcheck(argv, {}, 0)
    # The digits of the parent's process ID.
    forget_sizes(ours, memcheck, "set_ppid")
    assert_same_kinds(ours, memcheck)


@pytest.mark.parametrize("name", PROGRAMS)
def test_kinds(runs, name):
    argv, env, status, _ = PROGRAMS[name]
    ours, _ = runs.record(argv, env, status)
    assert_same_kinds(ours, runs.memcheck(argv, env, status))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(run, allocprof, runs, tmp_path, name):
    argv, env, status, at_least = PROGRAMS[name]
    ours, _ = runs.record(argv, env, status)
    assert len(ours.stacks) >= at_least
    assert_report(run, allocprof, tmp_path, ours)
    assert_same(ours, runs.memcheck(argv, env, status), "memcheck")
    assert_same(ours, runs.heaptrack(argv, env, status), "heaptrack")


@pytest.mark.parametrize("name", JQ_LEAKS)
def test_leak(run, allocprof, runs, tmp_path, name):
    """A leak that is a bug, and nothing else is left."""
    program, times, blocks, size = JQ_LEAKS[name]
    argv = ["jq", "-n", program]
    ours, output = runs.record(argv, {}, 0)
    assert output == f"{times}\n".encode()
    assert_report(run, allocprof, tmp_path, ours)
    memcheck = runs.memcheck(argv, {}, 0)
    assert_same(ours, memcheck, "memcheck")
    assert_same(ours, runs.heaptrack(argv, {}, 0), "heaptrack")
    # Later versions have mended them; that the three agree is what must hold there, too.
    if run(["jq", "--version"], expect=0).stdout == b"jq-1.6\n":
        assert ours.total() == (blocks, size)
        assert leaks.total_of(memcheck.by_kind["lost"])[0] == times
        shown = run([allocprof, "report", "-i", tmp_path / "data", "--leaks", "--at-exit", "--strict"],
                    expect=0).stdout.decode()
        assert f"Leaked: {size:,} bytes in {blocks:,} blocks of " in shown


def test_libraries_clean_up(run, allocprof, runs, tmp_path):
    """A program in C++. The C++ library keeps a pool to throw exceptions from: heaptrack has it freed,
    memcheck too where it is not told otherwise; and what heaptrack has besides has ended with us."""
    argv = ["cmake", "--version"]
    ours, _ = runs.record(argv, {}, 0)
    assert_report(run, allocprof, tmp_path, ours)
    assert_same(ours, runs.memcheck(argv, {}, 0), "memcheck")
    (pool,) = [stack for stack, (blocks, size) in ours.stacks.items()
               if pathlib.Path(stack[0][0]).name.startswith("libstdc++.so") and size > 70000]
    cleaned = runs.memcheck(argv, {}, 0, freeres="yes")
    assert pool not in cleaned.stacks
    heaptrack = runs.heaptrack(argv, {}, 0)
    assert pool not in heaptrack.stacks
    allocated = leaks.of_recording(Recording(tmp_path / "data"), "allocations", "bytes")
    for stack, (blocks, size) in heaptrack.stacks.items():
        if ours.stacks.get(stack) != [blocks, size]:
            assert allocated.stacks[stack] >= [blocks, size]
