#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the graph of the folders of src/, and holds the tree to the rules of CONTRIBUTING.md: folders include
only from those below them that src/meson.build names, files do not depend on each other in circles, the library
prints nothing by itself, each file says what its job is, and none is too long to be read at a sitting.

That a folder cannot include from others is for the compiler to prove: each has an include path of its own. This
finds what the compiler cannot: folders that are named and not needed, and circles."""

import ast
import collections
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 800

# Stems that may depend on each other: a header that shows what files share with each other includes the one that shows
# the same to all others. And why.
CIRCLES = {
    ("cli/message", "cli/user_terminal"):
        "what is written must clear the line of progress, and the pager's end must be said",
    ("src/definitions/definition_line", "src/definitions/definitions"):
        "definitions.h is what the line is read into, definitions.c reads files of lines",
    ("src/profile/definition_names", "src/profile/profile", "src/profile/profile_totals"):
        "a profile holds totals and the names of definitions, to which functions of the profile belong",
}


# Parts of gaps' sentences that a file has for a reason: the verdict alone, and of several runs.
OTHER_SENTENCES = {("report_text.c", "not complete"), ("stat_series.c", "not complete")}


# What cli/ must not see: how calls are measured, and ELF.
HIDDEN_FROM_CLI = {"elf", "process", "unwind", "allocator", "collect", "uprobe"}


def folders():
    """Of src/meson.build and cli/meson.build: each folder's name, in order, and the folders that it may include
    from."""
    text = (SOURCE / "src/meson.build").read_text()
    listed = re.search(r"folders = \[(.*?)^\]", text, re.S | re.M).group(1)
    rows = re.findall(r"\['(\w+)', (\[[^]]*\]),", listed)
    allowed = {name: ast.literal_eval(below) for name, below in rows}
    listed = re.search(r"cli_folders = (\[.*?\])", (SOURCE / "cli/meson.build").read_text(), re.S).group(1)
    return allowed | {"cli": ast.literal_eval(listed)}


def check_engine(allowed):
    """Only src/uprobe sees the skeleton of the BPF programs and the interface of bpf(2)."""
    for other in sorted(HIDDEN_FROM_CLI & set(allowed["cli"])):
        yield f"cli/meson.build lets cli include from src/{other}"
    for path in files():
        if folder_of(path) in (None, "uprobe"):
            continue
        for name in re.findall(r"^#include [<\"](bpf/bpf\.h|\w+\.skel\.h)[>\"]", path.read_text(), re.M):
            yield f"{path.relative_to(SOURCE)} includes {name}, which is for src/uprobe"


def files():
    for folder in ("abi", "bpf", "src", "cli"):
        for path in sorted((SOURCE / folder).rglob("*.[ch]")):
            yield path


def stem(path):
    """What a .c and its .h are called together: folder and name, internal/ left out."""
    relative = path.relative_to(SOURCE)
    parts = [part for part in relative.parts[:-1] if part != "internal"]
    return "/".join([*parts, re.sub(r"(_internal)?(\.bpf)?\.[ch]$", "", relative.name)])


def includes(path, by_name):
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
        if name in by_name:
            yield by_name[name]


def circles(graph):
    """Strongly connected components of more than one node (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(tuple(sorted(stack[at:])))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def folder_of(path):
    """The folder of src/ that the file is in, or cli; None for others."""
    parts = path.relative_to(SOURCE).parts
    return parts[1] if parts[0] == "src" else "cli" if parts[0] == "cli" else None


def all_includes(path, by_name):
    """The headers that the compiler reads for a file: those that it includes, and those that they include."""
    seen, todo = set(), [path]
    while todo:
        for other in includes(todo.pop(), by_name):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def check_folders(allowed, by_name):
    order = list(allowed)
    used = collections.defaultdict(set)
    for path in files():
        folder = folder_of(path)
        if folder:
            used[folder] |= {folder_of(other) for other in all_includes(path, by_name)} - {folder, None}
    for name in order:
        print(f"{name:10} -> {' '.join(allowed[name])}")
        for other in allowed[name]:
            if order.index(other) >= order.index(name):
                yield f"{name} includes from src/{other}, which is above it"
            if other not in used[name]:
                yield f"meson.build lets {name} include from src/{other}, which it does not need"
        for other in sorted(used[name] - set(allowed[name])):
            yield f"{name} includes from src/{other}, which meson.build does not name"


def check_circles(by_name):
    graph = collections.defaultdict(set)
    for path in files():
        if path.suffix == ".c" or path.suffix == ".h":
            graph[stem(path)] |= {stem(other) for other in includes(path, by_name)} - {stem(path)}
    found = circles(graph)
    for circle in found:
        if circle not in CIRCLES:
            yield f"depend on each other: {', '.join(circle)}"
    for circle in CIRCLES:
        if circle not in found:
            yield f"no circle any more, so it need not be excused: {', '.join(circle)}"


def check_streams():
    """The library writes to a FILE that its caller gives, and leaves exiting to cli/."""
    comments_and_strings = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.S)
    words = re.compile(r"\b(?:stdout|stderr|(?:v?printf|puts|putchar|perror|exit)(?=\())")
    for path in files():
        if SOURCE / "src" in path.parents:
            for word in sorted(set(words.findall(comments_and_strings.sub("", path.read_text())))):
                yield f"{path.relative_to(SOURCE)} uses {word}: only cli/ prints to the user, and exits"


def check_programs():
    """A program in a header would be in each object that includes it."""
    for path in sorted((SOURCE / "bpf").glob("*.h")):
        for section in re.findall(r'^SEC\("([^"]*)"\)', path.read_text(), re.M):
            yield f"{path.relative_to(SOURCE)} has a program ({section}), which is for a .bpf.c"
    for path in sorted((SOURCE / "bpf").glob("*.bpf.c")):
        for name, body in re.findall(r'^SEC\("u(?:ret)?probe[^"]*"\)\n.*?(\w+)\(.*?\n\{\n(.*?)^\}', path.read_text(), re.M | re.S):
            if "\tkernel_stack__use(ctx);\n" not in body:
                yield f"{path.relative_to(SOURCE)}: {name} runs at uprobes and lacks kernel_stack__use() (kernel.h)"


# What several programs call stands here, whichever header declares it: functions of all objects, and what walks ask of
# mappings.
SHARED_BY_PROGRAMS = {"shared_maps.bpf.c", "modules.bpf.c"}


def functions(path):
    """The functions of bpf/ that a file defines, by name with their bodies, and the names of those that it declares."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    text = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    defined = re.findall(r"^[a-z_][^;{}]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, re.M | re.S)
    return dict(defined), set(re.findall(r"^(?!static|extern)[a-z_][\w *]*?\b(\w+)\([^;{}]*\);", text, re.M))


def without_processor(file):
    """The name that the files for each processor share."""
    return re.sub(r"_(x86|arm64)(?=\.)", "", file)


def check_calls():
    """Functions of bpf/ stand where they are declared, and headers do not call each other in circles."""
    read = {path.name: functions(path) for path in sorted((SOURCE / "bpf").glob("*.[ch]"))}
    headers = [file for file in read if file.endswith(".h")]
    place = {name: without_processor(file) for file in headers for name in {*read[file][0], *read[file][1]}}
    graph = collections.defaultdict(set, {without_processor(file): set() for file in headers})
    for file, (defined, _) in read.items():
        file = without_processor(file)
        for name, body in defined.items():
            at = place.get(name, file)
            if file not in {at, at.replace(".h", ".c"), *SHARED_BY_PROGRAMS}:
                yield f"bpf/{file} defines {name}(), which bpf/{at} declares"
            graph[at] |= {place[called] for called in re.findall(r"\b\w+\b", body) if called in place} - {at}
    for circle in circles(graph):
        yield f"call each other: {', '.join(f'bpf/{file}' for file in circle)}"


def check_jobs():
    """What a file is for is said once: by the header of its name, or, where there is none, by itself."""
    sources = [path for path in files() if path.suffix == ".c"]
    for path in sources:
        headers = [path.with_suffix(".h"), path.parent / "internal" / f"{path.stem}.h"]
        if not any(re.match(r"[^\n]*SPDX[^\n]*\n/\*", one.read_text()) for one in [path, *headers] if one.exists()):
            yield f"{path.relative_to(SOURCE)} does not begin with a comment that says what its job is"


def check_cited():
    """Documents that are named are there."""
    for path in files():
        for name in sorted(set(re.findall(r"\bdocs/[\w-]+\.md\b", path.read_text()))):
            if not (SOURCE / name).exists():
                yield f"{path.relative_to(SOURCE)} names {name}, which is not there"


def literals(path):
    """The strings of a file, each with its parts put together; comments are left out."""
    text = re.sub(r"/\*.*?\*/|'\\?.'|(\"(?:\\.|[^\"\\])*\")", lambda found: found.group(1) or "", path.read_text(), flags=re.S)
    for found in re.finditer(r'"(?:\\.|[^"\\])*"(?:\s*"(?:\\.|[^"\\])*")*', text):
        yield re.sub(r'"\s*"', "", found.group())[1:-1]


def check_sentences():
    """What users read about gaps stands once: in gap_text.c."""
    words = SOURCE / "src/output/gap_text.c"
    parts = {part.strip(" ,;:") for text in literals(words) for part in re.split(r"%\w|\{[^}]*\}", text)}
    parts = {part for part in parts if len(part) >= 20} | {"not complete", "not exact"}
    for path in files():
        if path == words or folder_of(path) in (None, "inside"):
            continue
        strings = "\n".join(literals(path))
        for part in sorted(parts):
            if part in strings and (path.name, part) not in OTHER_SENTENCES:
                yield f"{path.relative_to(SOURCE)} says '{part}', which is for src/output/gap_text.c to say"


def check_private():
    """A function that headers declare is called by another file than its own."""
    texts = {path: re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(errors="replace"), flags=re.S)
             for folder in ("abi", "bpf", "src", "cli", "tests", "bench") for path in (SOURCE / folder).rglob("*")
             if path.suffix in (".c", ".h", ".cpp", ".py", ".in")}
    uses = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        for name in re.findall(r"\w+", text):
            uses[name][path] += 1
    for path in files():
        if path.suffix != ".h" or folder_of(path) is None and path.parent.name == "bpf":
            continue
        for name in re.findall(r"^(?!static|extern|typedef)[a-z_][\w *]*?\b(\w+)\([^;{}]*\)[^;{}]*;", texts[path], re.M):
            others = {other for other in uses[name] if other != path or uses[name][path] > 1}
            if len(others) < 2:
                yield f"{path.relative_to(SOURCE)} declares {name}(), which only its own file calls: it can be static"


def check_length():
    for path in [*files(), *sorted((SOURCE / "src/page/web").glob("*.*"))]:
        lines = path.read_text().count("\n")
        if lines > MAX_LINES:
            yield f"{path.relative_to(SOURCE)} has {lines} lines, more than {MAX_LINES}"


def check_tests():
    """A test that no build file names never runs."""
    named = "".join((SOURCE / path).read_text() for path in ("tests/live/meson.build", "bench/meson.build"))
    for path in sorted((SOURCE / "tests/live").glob("test_*.py")):
        if not re.search(rf"\b{path.stem}\b", named):
            yield f"{path.relative_to(SOURCE)} is not named in tests/live/meson.build, so that it does not run"


def main():
    by_name = {path.name: path for path in files()}
    allowed = folders()
    failures = [*check_folders(allowed, by_name), *check_engine(allowed), *check_circles(by_name),
                *check_streams(), *check_programs(), *check_calls(), *check_jobs(), *check_cited(),
                *check_sentences(), *check_private(), *check_length(), *check_tests()]
    for failure in failures:
        print(f"structure: {failure}")
    if failures:
        print("structure: run it alone with tests/structure.py")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
