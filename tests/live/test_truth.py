# SPDX-License-Identifier: GPL-3.0-or-later
"""Stacks are those that the processes' own unwinder finds: of every recorded call of the allocator,
all addresses from the allocator's caller to the outermost frame, and no call more or less."""

import collections
import os
import platform
import shutil
import sqlite3

import pytest

import conftest
import support
import truth
from containers import in_container
from support import by_address, libc_path

SHAPES = ["variable", "realign", "large", "deep", "arguments", "early_return", "cold", "registers",
          "kept", "raised", "alternate", "interrupted", "callback", "noreturn", "thread", "context",
          "child", "every", "tail_call", "leave"]
BUILDS = ["O0", "O2", "O3", "Os", "no_plt", "sections", "protected", "lazy", "stripped", "no_pie", "static", "static_pie", "clang",
          # Of each processor, what its compilers do not do by themselves.
          *(["no_fp", "signed"] if platform.machine() == "aarch64" else ["fp", "realign"])]
DEFAULT_DEPTH = 127
FIRST_NAMES = {name: names[0] for names in by_address(libc_path()) for name in names}

pytestmark = pytest.mark.engines("uprobe", "preload")

# In static programs: libgcc itself allocates, and the C library before libgcc can unwind.
UNTOLD = {"truth_enter", "__libc_init_first"}

# Shown of what differs.
MOST_SHOWN = 6


class Recording:
    """What a data file says."""

    def __init__(self, path, dynamic=True):
        self.data = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.ledger = dict(self.data.execute("SELECT name, value FROM ledger"))
        self.meta = dict(self.data.execute("SELECT key, value FROM meta"))
        self.gaps = support.gaps_of(self.data)
        # A static program has no library of ours: uprobes count it, where they can be set.
        self.is_inside = dynamic and self.meta.get("engine") == "preload"
        self.ends = {}
        frames, self.names = support.stack_addresses(self.data)
        self.names[support.LOOP] = None
        ends = dict(self.data.execute("SELECT id, end FROM stacks"))
        self.stacks = collections.defaultdict(truth.Sum)
        for stack, function, calls, size in self.data.execute(
                "SELECT stack, function, calls, bytes FROM counts"):
            key = (self.function_of(function), support.with_loops_alike(frames[stack]))
            self.stacks[key].add(calls, size)
            self.ends[key[1]] = ends[stack]

    def function_of(self, name):
        """As libtruth has it. The library of the engine preload, which is in front of it, hands calls of reallocarray
        on as calls of realloc, and tells names at one address apart."""
        if not self.is_inside:
            return name
        return FIRST_NAMES["realloc" if name == "reallocarray" else name]

    def show(self, frames):
        lines = []
        for path, address in frames:
            name = self.names.get((path, address))
            lines.append(f"    {os.path.basename(path or '-')}+{address:#x} {name or ''}".rstrip())
        if len(lines) > 40:
            lines[30:-8] = [f"    ... {len(lines) - 38} more"]
        return "\n".join(lines)

    def reasons(self):
        return ", ".join(f"{name} {value}" for name, value in self.ledger.items()
                         if name.startswith(("incomplete_", "lost_")) and value) or "none"

    def without_library(self, stacks):
        """dlopen(3) returns to the library, whose frames are left out; the allocator's functions do not."""
        sums = collections.defaultdict(truth.Sum)
        for (function, frames), known in stacks.items():
            outer = (frame for frame in frames[1:] if os.path.basename(frame[0] or "") != "inside.so")
            sums[function, (*frames[:1], *outer)].add(known.calls, known.bytes)
        return sums

    def expressible(self, stacks):
        """The engine preload has the part of a stack that the unwind tables can express; the end says so. For uprobes
        libdw goes on from there, in a copy of the stack."""
        if not self.is_inside:
            return stacks
        cut = {key for key in self.stacks if self.ends[key[1]] == "unsupported"}
        sums = collections.defaultdict(truth.Sum)
        for (function, frames), known in stacks.items():
            if (function, frames) not in self.stacks:
                frames = next((frames[:n] for n in range(len(frames)) if (function, frames[:n]) in cut), frames)
            sums[function, frames].add(known.calls, known.bytes)
        return sums

    def assert_no_loss(self):
        assert self.ledger["lost"] == 0, self.reasons()
        assert self.ledger["events"] == self.ledger["complete"] + self.ledger["incomplete"]


class Truth:
    """Runs programs under libtruth and allocprof."""

    def __init__(self, run, allocprof, directory):
        self.run = run
        self.allocprof = allocprof
        self.directory = directory

    def record(self, argv, options=(), preloaded=True, copies=1, env=None, expect=0,
               wrap=lambda argv: argv, **popen):
        """What allocprof has recorded, and the truth."""
        lines, data = self.directory / "truth", self.directory / "data"
        lines.write_bytes(b"")
        program = argv[:1]
        # A static program has it linked in.
        if preloaded:
            argv = [support.preload_exec(), lines, support.TRUTH_LIBRARY, *argv]
        if copies > 1:
            argv = [support.target("launcher"), copies, *argv]
        # The static launcher tells allocprof nothing of what it will run.
        expected = [word for name in program for word in ("--expect", name)]
        self.run(wrap([self.allocprof, "record", "-o", data, *expected, *options, "--", *argv]),
                 env={"ALLOCPROF_COUNTER": str(lines), **(env or {})}, expect=expect, **popen)
        stacks = collections.defaultdict(truth.Sum)
        for (function, frames), known in truth.read(lines).items():
            stacks[FIRST_NAMES[function], support.with_loops_alike(frames)].add(known.calls, known.bytes)
        return Recording(data, preloaded), stacks

    def assert_same(self, recording, stacks, depth=DEFAULT_DEPTH):
        """The recording has each of @stacks as often, and no others."""
        recording.assert_no_loss()
        expected = collections.defaultdict(truth.Sum)
        ends = {}
        stacks = recording.without_library(stacks)
        for (function, frames), known in recording.expressible(stacks).items():
            kept = frames[:depth]
            expected[function, kept].add(known.calls, known.bytes)
            ends[kept] = ("unsupported" if (function, frames) not in stacks else
                          "max_depth" if len(frames) > depth else "complete")
        found = {key: known for key, known in recording.stacks.items()
                 if not {recording.names[place] for place in key[1]} & UNTOLD}
        differing = [key for key, known in expected.items() if found.get(key) != known]
        wrong = [f"{function}, {expected[function, frames].calls} calls of {expected[function, frames].bytes} bytes, not recorded "
                 f"({found[function, frames].calls if (function, frames) in found else 'no'} "
                 f"calls):\n{recording.show(frames)}\n"
                 f"{closest(recording, found, expected, function, frames)}"
                 for function, frames in differing[:MOST_SHOWN]]
        more = [f"{function}, {known.calls} calls of {known.bytes} bytes, end "
                f"{recording.ends[frames]}:\n{recording.show(frames)}"
                for (function, frames), known in found.items()
                if (function, frames) not in expected]
        ended = [f"end {recording.ends[frames]} instead of {end}:\n{recording.show(frames)}"
                 for frames, end in ends.items()
                 if recording.ends.get(frames, end) != end]
        text = [f"{len(differing)} of {len(expected)} stacks differ, {len(more)} are in the recording "
                f"only, {len(ended)} end otherwise; incomplete or lost: {recording.reasons()}"]
        for title, found in (("differs: ", wrong), ("only recorded: ", more), ("", ended)):
            text += [title + one for one in found[:MOST_SHOWN]]
        assert not wrong and not more and not ended, "\n".join(text)


def closest(recording, found, expected, function, frames):
    """The recorded stack that has most of the innermost frames."""
    def shared(other):
        n = 0
        while n < min(len(frames), len(other)) and frames[n] == other[n]:
            n += 1
        return n

    others = [other for name, other in found if name == function and (name, other) not in expected]
    best = max(others, key=shared, default=None)
    if best is None:
        return "  no other is like it"
    n = shared(best)
    return (f"  recorded, end {recording.ends[best]}, is the same for {n} frames and goes on:\n"
            f"{recording.show(best[n:])}")


@pytest.fixture
def own(run, allocprof, tmp_path):
    if not support.TRUTH_LIBRARY.exists():
        conftest.unavailable(f"{support.TRUTH_LIBRARY} is not built")
    return Truth(run, allocprof, tmp_path)


def built(name):
    if not (support.TARGETS / name).exists():
        conftest.unavailable(f"{name} is not built: its compiler is not installed")
    return support.target(name)


def assert_complete(recording):
    """But for what Recording.expressible() is about."""
    cut = recording.ledger["incomplete_unsupported"] if recording.is_inside else 0
    assert recording.ledger["complete"] + cut == recording.ledger["events"], recording.reasons()


def test_vdso(own):
    recording, stacks = own.record([built("truth_O2"), "vdso"])
    ((_, known),) = stacks
    if known[-1][0] != "[vdso]":
        own.assert_same(recording, stacks)
        assert_complete(recording)
        return
    # That of arm64 has no CFI: libgcc's stack ends there, ours goes on by the frame pointer, and says so.
    recording.assert_no_loss()
    ((_, found),) = recording.stacks
    assert found[:len(known)] == known
    assert [recording.names[place] for place in found[len(known):]][:3] == ["in_vdso", "run", "main"]
    assert recording.ends[found] == "frame_pointers"


@pytest.mark.fast("O2", "clang", "static_pie", "preload-O2")
@pytest.mark.parametrize("build", BUILDS)
def test_build(own, build):
    recording, stacks = own.record([built(f"truth_{build}"), *SHAPES],
                                   preloaded=build not in ("static", "static_pie"))
    assert len(stacks) > 100
    if "program_refused" in recording.gaps:
        # No library can be loaded into it, which is said where uprobes cannot count it either.
        assert build in ("static", "static_pie") and not recording.stacks
        assert recording.gaps["program_refused"] == [(1, f"truth_{build}", "statically linked")]
        return
    own.assert_same(recording, stacks)
    assert_complete(recording)


@pytest.mark.fast("127")
@pytest.mark.parametrize("depth", [1, 2, 127, 300, 512])
def test_cut(own, depth):
    recording, stacks = own.record([built("truth_O2"), "deeper"], ["--max-depth", str(depth)])
    own.assert_same(recording, stacks, depth)
    cut = sum(known.calls for (_, frames), known in stacks.items() if len(frames) > depth)
    assert cut > 0
    assert recording.ledger["incomplete"] == recording.ledger["incomplete_max_depth"] == cut


def sizes(stacks):
    return {known.bytes // known.calls for known in stacks.values()}


def test_before_and_after_main(own):
    recording, stacks = own.record([built("truth_early")])
    # An IFUNC's resolver, preinit, constructors, destructors, those of a thread; the library's.
    assert {2002, 2003, 2004, 2006, 2007, 2008, 3001, 3002, 3005} <= sizes(stacks)
    own.assert_same(recording, stacks)
    assert_complete(recording)


@pytest.mark.fast("unexpected-tables")
@pytest.mark.parametrize("name", ["", "kept_"], ids=["tables", "dumps"])
@pytest.mark.parametrize("known", [True, False], ids=["expected", "unexpected"])
def test_libraries_that_come_and_go(own, known, name):
    """Two libraries take turns at the same addresses, with stacks that the kernel side unwinds and
    with such as are sent: those are unwound later, by what mapping events say."""
    libraries = [built(f"libtruth_{name}a.so"), built(f"libtruth_{name}b.so")]
    options = [word for name in libraries for word in ("--expect", name)] if known else []
    recording, stacks = own.record([built("truth_load"), *libraries], options)
    assert {3001, 3002, 3003, 3004, 3005, 4001, 4002} <= sizes(stacks)
    own.assert_same(recording, stacks)
    assert_complete(recording)


@pytest.mark.usefixtures("container")
def test_new_libraries_that_come_and_go_in_a_container(own, tmp_path):
    """What the kernel calls their files is not what stat(2) does: no other library, which is at the same
    place a moment later, must be taken for one of them."""
    libraries = [f"/libtruth_{i}.so" for i in range(60)]
    copy = "".join(f"cp {built('libtruth_' + 'ab'[i % 2] + '.so')} {name}; "
                   for i, name in enumerate(libraries))

    def wrap(argv):
        return in_container(tmp_path, ["sh", "-c", copy + 'exec "$@"', "sh", *argv])

    recording, stacks = own.record([built("truth_load"), *libraries], wrap=wrap)
    assert len(stacks) > 400
    own.assert_same(recording, stacks)
    assert_complete(recording)


def test_exceptions(own):
    recording, stacks = own.record([built("truth_throw")])
    assert {5000, 5005, 5100, 5200, 5201, 5301, 5400, 5500, 5600} <= sizes(stacks)
    own.assert_same(recording, stacks)
    assert_complete(recording)


@pytest.mark.slow
@pytest.mark.parametrize("copies", [1, 10])
def test_short_lives(own, copies):
    """Processes that end after some milliseconds, of which nothing is known when they start."""
    recording, stacks = own.record([built("truth_O2"), "callback", "every"], copies=copies)
    assert all(known.calls % copies == 0 for known in stacks.values())
    own.assert_same(recording, stacks)
    assert_complete(recording)


def test_generated_code(own):
    """Code in no file has no CFI: libgcc's stack ends there, ours must not be called complete."""
    recording, stacks = own.record([built("truth_O2"), "generated"])
    recording.assert_no_loss()
    (known,) = [frames for _, frames in stacks if frames[-1][0] is None]
    (found,) = [frames for _, frames in recording.stacks if frames[0] == known[0]]
    assert found[:len(known)] == known
    # What the walk over the frame pointer finds is up to the code. On arm64 it has its caller's, who is skipped, and the
    # return address of the next one is at the far end of a large frame.
    assert recording.ends[found] in ("bad_frame", "frame_pointers", "no_mapping", "unreadable")
    if platform.machine() == "aarch64":
        assert [recording.names[place] for place in found[len(known):]][:3] == ["generated", "run", "main"]
    assert recording.ledger["incomplete"] == 1


def test_generated_code_that_only_leaves(own):
    """libgcc's stack ends there; ours goes on to where the others end, by the instructions behind the call."""
    recording, stacks = own.record([built("truth_O2"), "trampoline"])
    (known,) = [frames for _, frames in stacks if frames[-1][0] is None]
    (found,) = [frames for _, frames in recording.stacks if frames[0] == known[0]]
    assert found[:len(known)] == known
    assert [recording.names[place] for place in found[len(known):]][:4] == ["run_code", "trampoline", "run", "main"]
    assert_complete(recording)


JSON = "[" + ",".join(f'{{"a":{i},"b":["x{i}",{i / 7}]}}' for i in range(300)) + "]"
SQL = """CREATE TABLE t (a, b); CREATE INDEX i ON t (b);
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500)
INSERT INTO t SELECT x, 'text ' || x * 7919 % 500 FROM n;
SELECT count(*), group_concat(a), b FROM t GROUP BY substr(b, 1, 6) ORDER BY 1, b;"""
PYTHON = """import collections, decimal, json, re
data = [{'a': i, 'b': str(i) * 3} for i in range(300)]
text = json.dumps(json.loads(json.dumps(data)))
print(len(re.findall(r'(\\d+)+', text)), decimal.Decimal(2).sqrt())
sorted(data, key=lambda d: d['b'])"""
PERL = """my %h; $h{$_ % 37} .= "x$_" for 1 .. 500; my @s = sort { $h{$a} cmp $h{$b} } keys %h;
print scalar(@s), join(",", map { s/x(\\d)/<$1>/gr } values %h), "\n";"""
AWK = """BEGIN {
    for (i = 0; i < 500; i++) { t[i % 37] = t[i % 37] "x" i; gsub(/x[0-9]/, "y", t[i % 5]) }
}"""

# Programs as the distribution builds them: stripped, without frame pointers.
PROGRAMS = {
    "jq": (["jq", "map(select(.a > 10)) | group_by(.a % 7) | map(length)"], JSON),
    "sqlite3": (["sqlite3", ":memory:"], SQL),
    "python3": (["/usr/bin/python3", "-c", PYTHON], ""),
    "perl": (["perl", "-e", PERL], ""),
    "gawk": (["gawk", AWK], ""),
    "bash": (["bash", "-c", "for i in {1..100}; do a[i]=x$i; b=$(echo ${a[i]}); done"], ""),
    "git": (["git", "-C", support.SOURCE, "grep", "--no-index", "-n", "-e", "static", "--", "src"], ""),
    "cmake": (["cmake", "--help-module", "FindPackageHandleStandardArgs"], ""),
    "clang-format": (["clang-format", support.SOURCE / "src" / "lib" / "error.c"], ""),
    "rg": (["rg", "-j2", "-n", "stat(ic|e)", support.SOURCE / "src"], ""),
}


@pytest.mark.covering(1, engine="uprobe")
@pytest.mark.fast("jq")
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(own, name):
    argv, text = PROGRAMS[name]
    if not shutil.which(argv[0]):
        conftest.unavailable(f"{argv[0]} is not installed")
    # One call of Python's loop has many functions of Python, which libtruth knows nothing of.
    depth = 512 if name == "python3" else DEFAULT_DEPTH
    recording, stacks = own.record(argv, [f"--max-depth={depth}"], env={"PYTHONMALLOC": "malloc"}, stdin=text.encode())
    assert len(stacks) > 100
    own.assert_same(recording, stacks, depth)
    # Deep ones are not asked for; the rest must be whole.
    cut = sum(known.calls for (_, frames), known in stacks.items() if len(frames) > depth)
    assert recording.ledger["incomplete"] == cut, recording.reasons()
