# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of functions, those that were inlined among them, of programs in C++ and Rust: as addr2line
finds them, as the programs' sources say, and with all ways in which debug information is kept."""

import os
import re
import shutil
import subprocess

import pytest

import conftest
import support
from names import Named, addr2line, leaf, plain, stated

pytestmark = pytest.mark.engines("uprobe", "preload")

NAMES = support.SOURCE / "tests" / "targets" / "names"


def record(run, allocprof, tmp_path, argv, *options):
    run([allocprof, "record", "-o", tmp_path / "data", *options, "--", *argv], expect=0)
    recording = Named(tmp_path / "data")
    assert recording.unbalanced() == []
    assert recording.ledger["lost"] == 0
    assert recording.ledger["complete"] == recording.ledger["events"]
    return recording


def assert_as_addr2line(recording, path, described, inlined=True, places=True, column="name"):
    """Each frame in @path has the functions that addr2line finds in @described, and no others: of
    names the last part, which is all that DWARF tells of some."""
    frames = {frame.address: frame for frame in recording.frames(path, column)}
    expected = addr2line(described, frames)
    wrong = []
    for address, frame in frames.items():
        wanted = [line for line in expected[address] if line.name != "??"]
        if not inlined:
            wanted = wanted[-1:]
        names = [leaf(line.name) for line in wanted]
        found = [leaf(line.name) for line in frame.lines]
        if names != found:
            wrong.append(f"{address:#x}: expected {';'.join(reversed(names))}, "
                         f"got {';'.join(reversed(found))}")
        elif places and [line.place for line in wanted] != [line.place for line in frame.lines]:
            wrong.append(f"{address:#x}: {';'.join(names)}: expected {wanted}, got {frame.lines}")
    assert frames
    assert not wrong, f"{len(wrong)} of {len(frames)} frames differ:\n" + "\n".join(wrong[:20])


def own_functions(stack, path, is_own, shorten):
    return [shorten(line.name) for frame in reversed(stack.frames)
            if os.path.realpath(frame.path) == os.path.realpath(path)
            for line in reversed(frame.lines) if is_own(line.name)]


def assert_as_stated(recording, source, path, is_own, shorten, inlined=True):
    stacks = recording.stacks()
    wrong = []
    for one in stated(source):
        wanted = [shorten(name) for name in one.functions(inlined)]
        alike = [stack for stack in stacks
                 if stack.function != "free" and
                 one.least <= stack.bytes / stack.calls <= one.most]
        found = [stack for stack in alike
                 if own_functions(stack, path, is_own, shorten) == wanted and stack.calls == 1]
        if len(found) != 1:
            texts = "\n".join(f"    {stack.calls} calls: {stack.text()}" for stack in alike)
            wrong.append(f"{one.least} bytes, expected once: {';'.join(wanted)}; got\n"
                         f"{texts or '    none'}")
    assert not wrong, "\n".join(wrong)


def no_names(recording, path):
    named = {line.name for frame in recording.frames(path) for line in frame.lines}
    # What libstdc++ or the linker exports from a program.
    return {name for name in named if not name.startswith(("_start", "std::", "operator "))}


# C++

CPP = NAMES / "shapes.cpp"


def is_own_cpp(name):
    return not plain(name).startswith(("std::", "__gnu_cxx::", "_"))


def tool(*argv, **options):
    subprocess.run([str(word) for word in argv], check=True, **options)


def build_id(path):
    output = subprocess.run(["readelf", "-n", path], check=True, stdout=subprocess.PIPE, text=True)
    return re.search(r"Build ID: ([0-9a-f]+)", output.stdout)[1]


class Variants:
    """Copies of a program whose debug information is elsewhere, or in part gone. Each function
    gives the options that allocprof needs, and whether there is DWARF."""

    def __init__(self, full, directory):
        self.full = full
        self.program = directory / "program"
        self.directory = directory

    def strip(self):
        tool("objcopy", "--strip-all", self.full, self.program)

    def keep_debug(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        tool("objcopy", "--only-keep-debug", self.full, path)
        return path

    def whole(self):
        shutil.copy(self.full, self.program)
        return [], True

    def debuglink(self, debug):
        """Found by the name in the stripped file."""
        self.keep_debug(debug)
        tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", self.full, self.program)
        # Not by its build id.
        tool("objcopy", "--remove-section=.note.gnu.build-id", self.program)
        return [], True

    def beside(self):
        return self.debuglink(self.directory / "program.debug")

    def below(self):
        return self.debuglink(self.directory / ".debug" / "program.debug")

    def build_id(self):
        """As distributions and debuginfod clients keep it: DIR/.build-id/ab/cdef….debug"""
        number = build_id(self.full)
        self.keep_debug(self.directory / "store" / ".build-id" / number[:2] / f"{number[2:]}.debug")
        self.strip()
        return ["--debug-dir", str(self.directory / "store")], True

    def wrong_debuglink(self):
        """Of another build: not to be used."""
        result = self.beside()
        with open(self.directory / "program.debug", "ab") as file:
            file.write(b"\0")
        return result[0], None

    def gnu_debugdata(self):
        """MiniDebugInfo, as Fedora has it: an ELF file with a symbol table, compressed."""
        mini = self.directory / "mini"
        tool("objcopy", "--strip-debug", "--remove-section=.comment", self.full, mini)
        tool("objcopy", "--only-keep-debug", mini)
        tool("xz", "--keep", "--force", mini)
        self.strip()
        tool("objcopy", f"--add-section=.gnu_debugdata={mini}.xz", self.program)
        return [], False

    def symbols_only(self):
        tool("objcopy", "--strip-debug", self.full, self.program)
        return [], False

    def bare(self):
        self.strip()
        return [], None

    def compressed(self):
        tool("objcopy", "--compress-debug-sections=zlib", self.full, self.program)
        return [], True


@pytest.mark.fast("whole", "beside")
@pytest.mark.parametrize("variant", ["whole", "compressed", "beside", "below", "build_id",
                                     "wrong_debuglink", "gnu_debugdata", "symbols_only", "bare"])
def test_cpp(run, allocprof, target, tmp_path, variant):
    variants = Variants(target("names_full"), tmp_path)
    options, has_dwarf = getattr(variants, variant)()
    recording = record(run, allocprof, tmp_path, [variants.program], *options)
    # The library below is another file, with its own names.
    assert any(stack.names()[-1] == "__cxa_allocate_exception" for stack in recording.stacks())
    if has_dwarf is None:
        assert no_names(recording, variants.program) == set()
        return
    assert_as_addr2line(recording, variants.program, variants.full, has_dwarf, has_dwarf)
    assert_as_stated(recording, CPP, variants.program, is_own_cpp, plain, has_dwarf)


# Written down, from main on, for programs of which only the symbols are there: by the short names.
SHORT = {
    1001: "main;plain_new;operator new",
    1208: "main;nested_templates;operator new",
    1301: "main;functor;shapes::(anonymous namespace)::run<std::function<void (int)>&>;"
          "std::_Function_handler<void (int), functor::{lambda(int)#1}>::_M_invoke;operator new",
    1402: "main;virtual_call;non-virtual thunk to shapes::Circle::erase;operator new",
    1501: "main;static_method;shapes::Registry::add;shapes::Registry::add;operator new",
    1601: "main;operators;shapes::operator+;operator new",
    1602: "main;operators;shapes::Text::operator();operator new",
    1603: "main;operators;shapes::Text::operator char*;operator new",
    1701: "main;recursion;shapes::descend<2>;shapes::descend<1>;shapes::descend<0>;operator new",
    1901: "main;destructor;shapes::Late::~Late;operator new",
    4096: "main;map_growth;operator new",
}
# And in full, where that does not depend on which clones the compiler made.
FULL = {
    1001: "main;plain_new();operator new(unsigned long)",
    1402: "main;virtual_call(shapes::Shape&, shapes::Solid&);non-virtual thunk to "
          "shapes::Circle::erase();operator new(unsigned long)",
    1601: "main;operators();shapes::operator+(shapes::Text const&, shapes::Text const&);"
          "operator new(unsigned long)",
    1701: "main;recursion();shapes::descend<2>(unsigned long);shapes::descend<1>(unsigned long);"
          "shapes::descend<0>(unsigned long);operator new(unsigned long)",
}


@pytest.mark.fast("full")
@pytest.mark.parametrize("column, expected", [("name", SHORT), ("full_name", FULL)],
                         ids=["short", "full"])
def test_cpp_written_down(run, allocprof, target, tmp_path, column, expected):
    Variants(target("names_full"), tmp_path).symbols_only()
    recording = record(run, allocprof, tmp_path, [tmp_path / "program"])
    found = {stack.bytes: stack.text() for stack in recording.stacks(column) if stack.calls == 1}
    for size, text in expected.items():
        assert found[size].endswith(f";{text}"), f"{size} bytes: expected {text}, got {found[size]}"


def test_cpp_g1(run, allocprof, target, tmp_path):
    """-g1 has no variables and types, hence no scopes of local classes, and all that a backtrace
    needs."""
    path = target("names_g1")
    recording = record(run, allocprof, tmp_path, [path])
    assert_as_addr2line(recording, path, path)
    assert_as_stated(recording, CPP, path, is_own_cpp, leaf)


@pytest.mark.fast("5")
@pytest.mark.parametrize("version", [4, 5])
def test_cpp_of_clang(run, allocprof, tmp_path, version):
    if not (support.TARGETS / "names_clang_dwarf4").exists():
        conftest.unavailable("names_clang_dwarf4 is not built: clang++ is not installed")
    path = support.target(f"names_clang_dwarf{version}")
    recording = record(run, allocprof, tmp_path, [path])
    # addr2line does not find all that is inlined in LLVM's DWARF 5.
    assert_as_addr2line(recording, path, support.target("names_clang_dwarf4"))
    named = {stack.bytes: stack.names() for stack in recording.stacks() if stack.calls == 1}
    for size, name in ((1001, "plain_new"), (1501, "shapes::Registry::add"), (1901, "destructor")):
        assert name in named[size], named[size]


# Rust

RUST = NAMES / "shapes.rs"
RUSTC = "/usr/bin/rustc"


def is_own_rust(name):
    # Every function is a type, which implements FnOnce.
    return name.startswith(("shapes::", "<shapes::")) and leaf(name) != "call_once"


@pytest.fixture(scope="module")
def rust(tmp_path_factory):
    """Programs by the way of mangling."""
    built = {}

    def build(mangling):
        if not os.access(RUSTC, os.X_OK):
            conftest.unavailable(f"{RUSTC} is not installed")
        if mangling not in built:
            built[mangling] = tmp_path_factory.mktemp("rust") / f"shapes_{mangling}"
            options = ["-C", "symbol-mangling-version=v0"] if mangling == "v0" else []
            tool(RUSTC, "--edition", "2021", "-O", "-g", *options, "-o", built[mangling], RUST)
        return built[mangling]

    return build


@pytest.mark.covering(2)
@pytest.mark.slow
@pytest.mark.parametrize("debug", [True, False], ids=["debug", "symbols"])
@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_rust(run, allocprof, tmp_path, rust, mangling, debug):
    full = rust(mangling)
    path = tmp_path / "program"
    tool("objcopy", *([] if debug else ["--strip-debug"]), full, path)
    recording = record(run, allocprof, tmp_path, [path])
    names = {line.name for frame in recording.frames(path) for line in frame.lines}
    mangled = re.compile(r"::h[0-9a-f]{16}$|\[[0-9a-f]{8,}\]|\$|^_R")
    assert not [name for name in names if mangled.search(name)]
    assert_as_addr2line(recording, path, full, debug, debug)
    assert_as_stated(recording, RUST, path, is_own_rust, leaf, debug)
