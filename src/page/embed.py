#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes one C file of the pages in web/: embed.py OUTPUT PAGE.html...

Of a page
- <link rel="stylesheet" href="NAME.css"> becomes a style sheet in the page,
- <script type="module" src="NAME.js"></script> becomes one script of that module and those that it imports,
- a policy is put behind <meta charset>, which allows these by their hashes, and nothing else,
- {{NAME.html}} becomes that file, for what pages have in common,
- {{title}} and {{data}} are where page.c writes.

The modules are joined by dropping the lines that import and the word "export". So that nothing else is needed:
- an import is one line: import { a, b } from "./name.js";
- an export is a declaration: export function, async function, class, const or let, at the beginning of a line,
- names at the top of a module are unique in the whole page, exported or not.
This is checked here."""

import base64
import hashlib
import pathlib
import re
import sys

IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w-]+\.js)";$')
DECLARATION = re.compile(r"^(export )?(?:async function|function\*?|class|const|let) (\w+)")
STYLE = re.compile(r'^ *<link rel="stylesheet" href="([\w-]+\.css)">\n', re.M)
SCRIPT = re.compile(r'^ *<script type="module" src="([\w-]+\.js)"></script>\n', re.M)
SHARED = re.compile(r"^\{\{([\w-]+\.html)\}\}\n", re.M)
CHARSET = '<meta charset="utf-8">\n'
# A policy in <meta> cannot have frame-ancestors and sandbox.
POLICY = "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'"


def fail(path, number, why):
    sys.exit(f"{path}:{number}: {why}; {sys.argv[0]} says how modules are written")


class Module:
    def __init__(self, path):
        self.path = path
        self.imports = []  # (line number, file name, names)
        self.names = {}    # line numbers of what is declared at the top
        self.exports = set()
        lines = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            found = IMPORT.match(line)
            if found:
                self.imports.append((number, found[2], found[1].split(", ")))
                continue
            declared = DECLARATION.match(line)
            if declared:
                self.names[declared[2]] = number
                if declared[1]:
                    self.exports.add(declared[2])
                    line = line[len("export "):]
            elif re.match(r"(import|export)\b", line):
                fail(path, number, "neither the import of names on one line nor the export of a declaration")
            elif re.match(r"(const|let|var|class|function|async)\b", line):
                fail(path, number, "a declaration that declares no single name")
            if re.search(r"\b(import\(|import\.meta|eval\(|new Function\b)", line):
                fail(path, number, "code from elsewhere, which the policy of the page forbids")
            if re.search(r"</script|<!--", line, re.I):
                fail(path, number, "ends or hides the script in the page")
            lines.append(line)
        self.text = "\n".join(lines).strip("\n") + "\n"


def join(path):
    """The text of a module and of all that it imports, each once, behind what it imports."""
    modules, text, names = {}, [], {}

    def add(path, loading):
        if path in modules:
            return
        module = modules[path] = Module(path)
        for number, name, wanted in module.imports:
            other = path.parent / name
            if other in loading:
                fail(path, number, f"imports {name}, which imports it")
            if not other.exists():
                fail(path, number, f"there is no {other}")
            add(other, loading + [path])
            for one in wanted:
                if one not in modules[other].exports:
                    fail(path, number, f"{name} does not export {one}")
        for name, number in module.names.items():
            if name in names:
                fail(path, number, f"{names[name]} declares {name}, too")
            names[name] = path
        text.append(f"// {path.name}\n{module.text}")

    add(path, [])
    return "\n" + "\n".join(text)


def allowed(texts):
    if not texts:
        return "'none'"
    return " ".join("'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
                    for text in texts)


def page_of(path):
    """The page with its styles, its script and its policy, and both slots."""
    text = SHARED.sub(lambda found: (path.parent / found[1]).read_text(encoding="utf-8"), path.read_text(encoding="utf-8"))
    styles, scripts = [], []

    def put_style(found):
        style = "\n" + (path.parent / found[1]).read_text(encoding="utf-8")
        if re.search(r"</style|@import|url\(", style, re.I):
            fail(path.parent / found[1], 0, "loads something, or ends the style sheet in the page")
        styles.append(style)
        return f"<style>{style}</style>\n"

    def put_script(found):
        scripts.append(join(path.parent / found[1]))
        return f'<script type="module">{scripts[-1]}</script>\n'

    text = STYLE.sub(put_style, text)
    text = SCRIPT.sub(put_script, text)
    outside = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.S)
    unwanted = re.search(r"<link|<script|<style|<iframe|\b(src|href|style|on\w+)=", outside)
    if unwanted:
        fail(path, 0, f"{unwanted[0]}: neither a style sheet nor a module beside it")
    if text.count(CHARSET) != 1 or text.count("{{title}}") != 1 or text.count("{{data}}") != 1:
        fail(path, 0, "charset, {{title}} and {{data}} must be in it once")
    policy = POLICY.format(allowed(scripts), allowed(styles))
    return text.replace(CHARSET, f'{CHARSET}<meta http-equiv="Content-Security-Policy" content="{policy}">\n')


def quoted(text):
    """A C string, a line for each line."""
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = "".join(
            {"\n": "\\n", "\t": "\\t", "?": "\\?", '"': '\\"', "\\": "\\\\"}.get(c) or (c if " " <= c <= "~" else
                "".join(f"\\{byte:03o}" for byte in c.encode()))
            for c in line)
        lines.append(f'\t"{escaped}"')
    return "\n".join(lines) or '\t""'


def main():
    output, *pages = sys.argv[1:]
    made = ['/* Made by embed.py. */\n#include "page.h"\n']
    for path in map(pathlib.Path, pages):
        head, rest = page_of(path).split("{{title}}")
        middle, tail = rest.split("{{data}}")
        parts = "".join(f"\t.{name} =\n{quoted(part)},\n".replace('\t"', '\t\t"')
                        for name, part in (("head", head), ("middle", middle), ("tail", tail)))
        made.append(f"\nconst struct page page_{path.stem} = {{\n{parts}}};\n")
    pathlib.Path(output).write_text("".join(made), encoding="utf-8")


if __name__ == "__main__":
    main()
