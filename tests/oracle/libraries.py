#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the libraries that libraries__list() finds for the programs of this machine with those that
their dynamic linkers list, by inode: also with LD_LIBRARY_PATH and LD_PRELOAD, and for programs that have
DT_RPATH, DT_RUNPATH, $ORIGIN, $LIB, names with slashes and libraries for newer processors.

Run alone: /usr/bin/python3 tests/oracle/libraries.py build/tests/oracle/libraries
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

GLIBC = "/lib64/ld-linux-x86-64.so.2"
MUSL = "/lib/ld-musl-x86_64.so.1"


def identity(path, directory):
    entry = os.stat(os.path.join(directory, path))
    return entry.st_dev, entry.st_ino


def ours(tool, linker, programs, environment, directory):
    found = {program: set() for program in programs}
    # LD_PRELOAD is not for the tool itself, in which a sanitizer must come first.
    words = [f"{name}={value}" for name, value in environment.items() if name.startswith("LD_")]
    own = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    text = subprocess.run([tool, linker, *words, *programs], env=own, cwd=directory, check=True, capture_output=True,
                          text=True).stdout
    for line in text.splitlines():
        program, library = line.split(" ", 1)
        found[program].add(identity(library, directory))
    return found


def theirs(linker, program, environment, directory):
    """What `ld.so --list` prints, without the dynamic linker itself; None if it cannot load the program."""
    done = subprocess.run([linker, "--list", program], env=environment, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        return None
    found = set()
    for line in done.stdout.splitlines():
        match = re.match(r"\s*(?:.* => )?(\S*/\S*) \(0x", line)
        if match:
            found.add(identity(match[1], directory))
    return found - {identity(linker, directory)}


def interpreter(path):
    with open(path, "rb") as file:
        start = file.read(4096)
    if start[:5] != b"\x7fELF\x02":
        return None
    return next((linker for linker in (GLIBC, MUSL) if linker.encode() + b"\0" in start), None)


def compile_to(path, text, *options, compiler="gcc"):
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([compiler, "-x", "c", "-", "-x", "none", "-o", path, *options], input=text, text=True, check=True)


def make_programs(top):
    """Programs whose libraries lie in unusual places."""
    shared = ("-shared", "-fPIC", "-nostdlib")
    libraries = {
        "origin/liba.so": (), "run/libb.so": (), "path/libc1.so": (), "slash/libd.so": (), "lib/x86_64-linux-gnu/libe.so": (),
    }
    for name in libraries:
        function = pathlib.PurePath(name).stem
        compile_to(top / name, f"int {function}(void) {{ return 1; }}", *shared, f"-Wl,-soname,{function}.so")
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        compile_to(top / "run/glibc-hwcaps" / level / "libb.so", "int libb(void) { return 2; }", *shared,
                   "-Wl,-soname,libb.so")
    # Found by the program's DT_RPATH, and not by its own, since it has a DT_RUNPATH.
    compile_to(top / "origin/libf.so", "int liba(void); int libf(void) { return liba(); }", *shared, "-Wl,-soname,libf.so",
               f"-L{top}/origin", "-la")
    compile_to(top / "origin/libg.so", "int liba(void); int libg(void) { return liba(); }", *shared, "-Wl,-soname,libg.so",
               f"-L{top}/origin", "-la", "-Wl,--enable-new-dtags,-rpath,/nowhere")
    text = "int {0}(void); int main(void) {{ return {0}(); }}"
    made = []
    for name, function, options in (
            ("rpath-origin", "liba", ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/origin",)),
            ("rpath-inherited", "libf", ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/origin",)),
            ("runpath-not-inherited", "libf", ("-Wl,--enable-new-dtags,-rpath,${ORIGIN}/origin",)),
            ("rpath-not-by-runpath", "libg", ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/origin",)),
            ("runpath-levels", "libb", ("-Wl,--enable-new-dtags,-rpath,/nowhere:$ORIGIN/run",)),
            ("runpath-lib", "libe", ("-Wl,--enable-new-dtags,-rpath,$ORIGIN/$LIB",)),
            ("library-path", "libc1", ())):
        library = next(path for path in top.rglob(f"{function}.so") if "hwcaps" not in str(path))
        compile_to(top / name, text.format(function), library, "-Wl,--allow-shlib-undefined", *options)
        made.append(str(top / name))
    compile_to(top / "slash/libh.so", "int libh(void) { return 1; }", *shared)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o", "with-slash", "./slash/libh.so"],
                   input=text.format("libh"), text=True, check=True, cwd=top)
    made.append(str(top / "with-slash"))
    for name, options in (("musl-rpath", ("-Wl,-rpath,$ORIGIN/origin",)), ("musl-library-path", ())):
        compile_to(top / name, text.format("libf"), top / "origin/libf.so", "-Wl,--allow-shlib-undefined", *options,
                   compiler="musl-gcc")
        made.append(str(top / name))
    return made


def main():
    tool = os.path.abspath(sys.argv[1])
    compared, wrong = {GLIBC: 0, MUSL: 0}, []
    with tempfile.TemporaryDirectory() as directory:
        top = pathlib.Path(directory)
        made = make_programs(top)
        programs = sorted({os.path.realpath(entry.path) for place in ("/usr/bin", "/usr/sbin", "/usr/games")
                           if os.path.isdir(place) for entry in os.scandir(place) if entry.is_file()})
        programs = [path for path in programs if os.access(path, os.R_OK)]
        programs = [path for path in programs if interpreter(path)] + made
        environments = {
            "plain": {},
            "LD_LIBRARY_PATH": {"LD_LIBRARY_PATH": f"{top}/path;:{top}/$LIB:{top}/origin"},
            "LD_PRELOAD": {"LD_PRELOAD": f"{top}/slash/libd.so libz.so.1:libm.so.6"},
        }
        for kind, extra in environments.items():
            environment = {"PATH": os.environ["PATH"], **extra}
            for linker in (GLIBC, MUSL):
                chosen = [path for path in programs if interpreter(path) == linker]
                chosen = chosen if kind == "plain" else chosen[:10] + [path for path in made if path in chosen]
                found = ours(tool, linker, chosen, environment, directory) if chosen else {}
                for program in chosen:
                    expected = theirs(linker, program, environment, directory)
                    if expected is None:
                        continue
                    compared[linker] += 1
                    if found[program] != expected:
                        wrong.append(f"{kind}: {program}: {found[program] ^ expected} in one list only")
    print(*(f"{n} programs of {linker} compared" for linker, n in compared.items()), *wrong, sep="\n")
    return 1 if wrong or compared[GLIBC] < 100 or compared[MUSL] < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
