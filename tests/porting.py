#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/porting.md names all files that know the processor, and each processor has all of them."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def processors():
    text = (SOURCE / "meson.build").read_text()
    return re.findall(r"'\w+': \['(\w+)', '[\w-]+'\]", re.search(r"^processors = \{(.*)\}$", text, re.M)[1])


def main():
    names = processors()
    pattern = re.compile(r"_(%s)(?=[._])" % "|".join(names))
    found = {}
    for top in ("abi", "bpf", "cli", "src"):
        for path in sorted((SOURCE / top).rglob("*.[chS]")):
            name = str(path.relative_to(SOURCE))
            if match := pattern.search(name):
                found.setdefault(pattern.sub("_*", name), set()).add(match[1])
    listed = set(re.findall(r"^\| `([^`]*\*[^`]*)` \|", (SOURCE / "docs" / "porting.md").read_text(), re.M))
    wrong = [f"docs/porting.md does not name {kind}" for kind in sorted(set(found) - listed)]
    wrong += [f"docs/porting.md names {kind}, and there is no such file" for kind in sorted(listed - set(found))]
    wrong += [f"there is no {kind.replace('*', name)}" for kind in sorted(found) for name in names if name not in found[kind]]
    for line in wrong:
        print("porting:", line)
    if wrong or not found:
        print("porting: run it alone with tests/porting.py")
        sys.exit(1)
    print(f"{len(found)} kinds of files, for {' and '.join(names)}")


main()
