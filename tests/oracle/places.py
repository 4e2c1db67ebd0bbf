#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, files and lines of sampled addresses against eu-addr2line and addr2line.

places.py [-n ADDRESSES] [-v] PLACES FILE...   PLACES is build/tests/oracle/places

A chain of inlined functions is right if either of the two says the same, but for two parts that may come
from the other one: the innermost file and line, which are the line table's (binutils has the wrong file
where one unit has several of a name), and the outermost function, of which the symbol table may have
another name than the debug information (where the linker or LLVM made one function of two). They differ
from each other in some places, and both counts are printed. Where a file is missing it is left out.
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys

DEBUG = '/usr/lib/debug/.build-id'


def run(command, stdin=''):
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False,
                          errors='replace').stdout


def debug_file(path):
    """The file that has the debug information of @path."""
    if '.debug_info' in run(['readelf', '-SW', path]):
        return path
    found = re.search(r'Build ID: ([0-9a-f]+)', run(['readelf', '-n', path]))
    name = f'{DEBUG}/{found[1][:2]}/{found[1][2:]}.debug' if found else ''
    return name if os.path.exists(name) else None


class Symbols:
    """Functions of the symbol table, and which names are of one place."""

    def __init__(self, path):
        self.functions = []
        self.places = collections.defaultdict(set)
        # Local, global, weak and indirect functions.
        for line in run(['readelf', '-sW', path]).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[3] not in ('FUNC', 'IFUNC') or not fields[6].isdigit():
                continue
            start, size = int(fields[1], 16), int(fields[2], 0)
            if size:
                self.functions.append((start, size))
            self.places[fields[7].split('@')[0]].add(start)

    def same(self, ours, theirs):
        if ours == theirs or ours.endswith('::' + theirs):
            return True
        # Constructors and destructors have several names, of which the table may have some.
        if one_structor(ours) == one_structor(theirs):
            return True
        # Where the DWARF has no mangled name we take the symbol table's.
        bare = theirs.split('<')[0]
        part = 'clE' if theirs == 'operator()' else f'{len(bare)}{bare}'
        if ours.startswith('_') and part in ours:
            return True
        if bare.startswith('~') and f'{len(bare) - 1}{bare[1:]}' in ours and 'Ev' in ours.split('D')[-1]:
            return True
        # addr2line says foo.cold or foo.part.0 where we and eu-addr2line say foo.
        if theirs.split('.')[0] == ours.split('.')[0]:
            return True
        # What C's headers redirect, by an assembler name, we call as the source does.
        if theirs == ours + '64':
            return True
        return bool(self.places.get(ours, set()) & self.places.get(theirs, set()))


def one_structor(name):
    """For a complete object, or for a base class: the same code, and the same once demangled."""
    return re.sub(r'([CD])[1245](?=E)', r'\1', name) if name.startswith('_Z') else name


def sample(symbols, n, seed):
    """@n addresses in functions, each byte as likely as any other."""
    chooser = random.Random(seed)
    functions = sorted(set(symbols.functions))
    weights = [size for _, size in functions]
    return sorted({start + chooser.randrange(size)
                   for start, size in chooser.choices(functions, weights, k=n)})


def parse(text):
    """{address: [(function, file, line), ...]} of either addr2line's --pretty-print."""
    chains = {}
    chain = None
    for line in text.splitlines():
        found = re.match(r'(0x[0-9a-f]+): (.*)', line)
        if found:
            chain = chains.setdefault(int(found[1], 16), [])
            line = found[2]
        found = re.match(r'(?: ?\(inlined by\) )?(?:(.*?) at )?(\S.*?):([0-9]+|\?)(?::\d+)?'
                         r'(?: \(discriminator \d+\))?$', line)
        if chain is not None and found:
            chain.append((found[1] or '??', found[2], 0 if found[3] == '?' else int(found[3])))
    return chains


def ours(places, path, addresses):
    chains = {}
    for line in run([places, path], '\n'.join(f'{a:x}' for a in addresses)).splitlines():
        if line.startswith('0x'):
            chain = chains.setdefault(int(line, 16), [])
        elif line.startswith('#'):
            print(f'{path}: {line[2:]}')
        else:
            symbol, place = line.split('\t')
            file, number = place.rsplit(':', 1)
            chain.append((symbol, file, int(number)))
    return chains


def same_file(a, b):
    return os.path.normpath(a) == os.path.normpath(b) or '??' in (a, b) and a.strip('?') == b.strip('?')


def same_place(mine, other):
    return same_file(mine[1], other[1]) and (mine[2] == other[2] or mine[1] == '??')


def agrees(symbols, mine, other, third):
    """Whether the chain @mine is @other, or @third where the first comment says so."""
    if not mine:
        return not other or other[0][0] == '??'
    if len(mine) != len(other):
        return False
    for i, (m, o) in enumerate(zip(mine, other)):
        # Of what was inlined and is known by no mangled name addr2line says the outer function's.
        named = symbols.same(m[0], o[0]) or (
            i == 0 and not m[0].startswith('_') and symbols.same(mine[-1][0], o[0]))
        if i == len(mine) - 1 and third:
            named = named or symbols.same(m[0], third[-1][0])
        placed = same_place(m, o) or (i == 0 and third and same_place(m, third[0]))
        # Without line information addr2line says the symbol table's file, and eu-addr2line another unit's line.
        if i == 0 and third and m[1] == '??' and third[0][1].endswith('.o') and not third[0][2]:
            placed = True
        if not named or not placed:
            return False
    return True


def check(places, path, n, verbose):
    debug = debug_file(path)
    if not debug:
        print(f'{path}: has no debug information here')
        return 0, 0
    symbols = Symbols(debug)
    # Of one file the same ones, wherever it lies.
    addresses = sample(symbols, n, os.path.basename(path))
    text = [f'{a:#x}' for a in addresses]
    mine = ours(places, path, addresses)
    eu = parse(run(['eu-addr2line', '-afi', '--pretty-print', '-e', path], '\n'.join(text)))
    gnu = parse(run(['addr2line', '-afip', '-e', debug], '\n'.join(text)))
    counts = collections.Counter()
    for address in addresses:
        chain = mine.get(address, [])
        both = eu.get(address, []), gnu.get(address, [])
        with_eu = agrees(symbols, chain, *both)
        with_gnu = agrees(symbols, chain, *both[::-1])
        counts[with_eu, with_gnu] += 1
        if not with_eu and not with_gnu and counts[False, False] <= (1000 if verbose else 5):
            print(f'{path} {address:#x}:\n  ours      {chain}\n  elfutils  {eu.get(address)}\n'
                  f'  binutils  {gnu.get(address)}')
    print(f'{path}: {len(addresses)} addresses: both agree {counts[True, True]}, '
          f'only elfutils {counts[True, False]}, only binutils {counts[False, True]}, '
          f'neither {counts[False, False]}')
    return len(addresses), counts[False, False]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('-n', type=int, default=10000, help='addresses of all files together')
    parser.add_argument('-v', action='store_true', help='show every difference')
    parser.add_argument('places')
    parser.add_argument('files', nargs='+')
    args = parser.parse_args()
    files = [file for file in args.files if os.path.exists(file)]
    total = wrong = 0
    for file in files:
        n, w = check(args.places, file, args.n // len(files), args.v)
        total += n
        wrong += w
    print(f'{total} addresses, {wrong} differ from both')
    return 1 if wrong or not total else 0


if __name__ == '__main__':
    sys.exit(main())
