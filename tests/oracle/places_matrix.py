#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""One C++ program with debug information of each kind: names and lines are as good as it allows.

places_matrix.py PLACES [CASE...]   PLACES is build/tests/oracle/places
"""
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'places_shapes.cpp')
LINES = {found[1]: number for number, line in enumerate(open(SOURCE), 1)
         if (found := re.search(r'// (\w+)$', line))}

HOLDER = '_ZN6HolderIlLi7EE'
FULL = {
    'constructor': [(HOLDER + 'C4El', 'in_constructor', True), ('_Z5outeri', 'construct', False)],
    'template': [(HOLDER + '5twiceEv', 'in_template', False)],
    'anonymous': [('_ZN12_GLOBAL__N_16hiddenEi', 'in_anonymous', False)],
    'lambda': [('outer::{lambda}::operator()', 'in_lambda', True), ('_Z5outeri', 'call_lambda', False)],
    'exported': [('exported', 'in_exported', False)],
}
PROBES = ['constructor', 'lambda', 'template', 'anonymous', 'exported']


def sh(command, **kwargs):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **kwargs)
    if done.returncode:
        sys.exit(f'FAILED: {" ".join(command)}: status {done.returncode}\n{done.stderr}')
    return done.stdout


class Program:
    """The program in a directory of its own, and where its calls of probe() return to."""

    def __init__(self, places, *flags, compiler='g++'):
        self.places = places
        self.dir = tempfile.mkdtemp(prefix='allocprof-places.')
        self.path = os.path.join(self.dir, 'shapes')
        sh([compiler, '-O2', '-g', *flags, '-Wl,--build-id=sha1', '-rdynamic', '-o', self.path,
            SOURCE], cwd=self.dir)
        self.build_id = re.search(r'Build ID: (\w+)', sh(['readelf', '-n', self.path]))[1]
        # Which of probe()'s callers a return address is in shows in its argument.
        self.returns = {}
        argument = None
        number = {1: 'constructor', 2: 'template', 3: 'anonymous', 4: 'lambda', 5: 'exported'}
        after_call = False
        for line in sh(['objdump', '-d', '--no-show-raw-insn', self.path]).splitlines():
            if after_call and ':' in line:
                self.returns[number[argument]] = int(line.split(':')[0], 16)
                after_call = False
            if found := re.search(r'mov +\$0x([1-5]),%edi', line):
                argument = int(found[1], 16)
            if re.search(r'call +[0-9a-f]+ <probe', line):
                after_call = True
        assert sorted(self.returns) == sorted(PROBES), self.returns

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def run(self, *commands):
        for command in commands:
            sh(['bash', '-ec', command], cwd=self.dir)

    def look_up(self, *args, file=None, env=None):
        """({case: [(symbol, file, line), ...]}, text)"""
        query = '\n'.join(f'{address - 1:x}' for address in self.returns.values())
        out = sh([self.places, *args, file or self.path], input=query,
                 env={**{name: value for name, value in os.environ.items()
                         if not name.startswith('SUDO_')}, **(env or {})})
        by_address = {address - 1: case for case, address in self.returns.items()}
        found, text = {}, ''
        for line in out.splitlines():
            if line.startswith('0x'):
                chain = found.setdefault(by_address[int(line, 16)], [])
            elif line.startswith('# '):
                text = line[2:]
            else:
                symbol, place = line.split('\t')
                file_name, number = place.rsplit(':', 1)
                chain.append((symbol, file_name, int(number)))
        return found, text


failures = 0


def check(what, expected, came):
    global failures
    if expected != came:
        failures += 1
        print(f'FAILED: {what}: expected {expected}, came {came}; alone: {" ".join(sys.argv[:2])} '
              f'{CASE}')


def check_text(what, wanted, text):
    if not re.search(wanted, text):
        check(f'{what}, its text', wanted, text)


def expected(symbols=None, lines=True, inlined=True):
    """FULL, with less: names known by @symbols only, no lines, no inlined levels."""
    result = {}
    for case, levels in FULL.items():
        chain = [(symbol, SOURCE if lines else '??', LINES[line] if lines else 0)
                 for symbol, line, is_inlined in levels if inlined or not is_inlined]
        if symbols is None or chain[-1][0] in symbols:
            result[case] = chain
    return result


GLOBALS = ('_Z5outeri', HOLDER + '5twiceEv', 'exported')
NO_DWARF = expected(lines=False, inlined=False)


def check_full(what, program, *args, **kwargs):
    found, text = program.look_up(*args, **kwargs)
    check(what, expected(), found)
    return text


def case_full(places):
    for version in '4', '5':
        with Program(places, f'-gdwarf-{version}') as program:
            check_text('full', '^its DWARF$', check_full(f'DWARF {version}', program))


def case_compressed(places):
    for how in 'zlib', 'zlib-gnu':
        with Program(places, f'-gz={how}') as program:
            check_full(f'compressed by {how}', program)


def case_lto(places):
    with Program(places, '-flto') as program:
        found, _ = program.look_up()
        # A function may be inlined into another one that it is not in without it.
        for case, levels in expected().items():
            check(f'LTO, {case}', levels, found[case][:len(levels)])


def case_split(places):
    for version in '4', '5':
        with Program(places, f'-gdwarf-{version}', '-gsplit-dwarf') as program:
            check_full(f'split DWARF {version}', program)
            # A FIFO in its place would have us wait for ever.
            program.run('for f in *.dwo; do rm $f && mkfifo $f; done')
            found, _ = program.look_up()
            check('without its .dwo', {case: chain[0][0] for case, chain in NO_DWARF.items()},
                  {case: chain[-1][0] for case, chain in found.items()})


def case_clang(places):
    for version in '4', '5':
        with Program(places, f'-gdwarf-{version}', compiler='clang++') as program:
            found, _ = program.look_up()
            for case, levels in expected().items():
                # Clang's constructors and lambdas have other mangled names.
                short = [(line, file) for _, file, line in levels]
                check(f'clang {version}, {case}', short,
                      [(line, file) for _, file, line in found[case]])
                check(f'clang {version}, {case}', levels[-1][0], found[case][-1][0])
            check('clang, constructor', True, 'Holder' in found['constructor'][0][0])
            check('clang, lambda', True, 'clEi' in found['lambda'][0][0] or
                  'operator()' in found['lambda'][0][0])


def case_g1(places):
    with Program(places, '-g1') as program:
        found, _ = program.look_up()
        # -g1 has lines and inlined functions, and mangled names of what has code.
        wanted = {case: [(chain[-1][0], *chain[-1][1:])] for case, chain in expected().items()}
        check('-g1', wanted, {case: chain[-1:] for case, chain in found.items()})
        check('-g1, levels', {case: len(chain) for case, chain in expected().items()},
              {case: len(chain) for case, chain in found.items()})


def case_build_id(places):
    with Program(places) as program:
        ab, cdef = program.build_id[:2], program.build_id[2:]
        program.run(f'mkdir -p debug/.build-id/{ab}; objcopy --only-keep-debug shapes '
                    f'debug/.build-id/{ab}/{cdef}.debug; strip shapes')
        found, text = program.look_up()
        check_text('elsewhere', 'dynamic symbol table', text)
        text = check_full('by build id', program, '--debug-dir', program.dir + '/debug')
        check_text('by build id', r'^the DWARF of .*\.debug$', text)
        # Somebody else's file under this name.
        program.run('g++ -g -shared -fPIC -x c++ /dev/null -o other.so -Wl,--build-id=sha1; '
                    f'cp other.so debug/.build-id/{ab}/{cdef}.debug')
        found, text = program.look_up('--debug-dir', program.dir + '/debug')
        check('a wrong one', expected(symbols=GLOBALS, lines=False, inlined=False),
              {case: chain for case, chain in found.items() if chain[0][0] in GLOBALS})
        check_text('a wrong one', r'is not used: its build id is \w+, not ' + program.build_id, text)


def case_debuglink(places):
    with Program(places) as program:
        program.run('objcopy --only-keep-debug shapes shapes.dbg; strip shapes; '
                    'objcopy --remove-section .note.gnu.build-id --add-gnu-debuglink=shapes.dbg '
                    'shapes; objcopy --remove-section .note.gnu.build-id shapes.dbg good.dbg')
        program.run('mv good.dbg shapes.dbg; objcopy --remove-section .gnu_debuglink shapes; '
                    'objcopy --add-gnu-debuglink=shapes.dbg shapes')
        check_full('by debuglink', program)
        program.run('mkdir .debug; mv shapes.dbg .debug')
        check_full('in .debug', program)
        program.run('mkdir -p all; mv .debug/shapes.dbg all')
        check_full('in a directory', program, '--debug-dir', program.dir + '/all')
        program.run('mkdir -p "tree/$PWD"; mv all/shapes.dbg "tree/$PWD"')
        check_full('in a tree', program, '--debug-dir', program.dir + '/tree')
        program.run('cp "tree/$PWD/shapes.dbg" .; echo >>shapes.dbg')
        _, text = program.look_up()
        check_text('with another checksum', r'is not used: its checksum', text)


def case_by_name(places):
    with Program(places) as program:
        program.run('mkdir -p by tree/$PWD other; cp shapes by/; cp shapes tree/$PWD/shapes.debug; '
                    'strip shapes; cp shapes other/shapes')
        check_full('by name', program, '--debug-dir', program.dir + '/by')
        check_full('by path', program, '--debug-dir', program.dir + '/tree')
        _, text = program.look_up('--debug-dir', program.dir + '/other')
        check_text('without DWARF', 'dynamic symbol table', text)


def case_mini(places):
    with Program(places) as program:
        program.run(
            'nm -D shapes --format=posix --defined-only | cut -d" " -f1 | sort >dynamic; '
            'nm shapes --format=posix --defined-only | awk \'/ [tT] /{print $1}\' | sort >all; '
            'comm -13 dynamic all >keep; objcopy --only-keep-debug shapes debug; '
            'objcopy -S --remove-section .gdb_index --remove-section .comment '
            '--keep-symbols=keep debug mini; strip --strip-all -R .comment shapes; xz mini; '
            'objcopy --add-section .gnu_debugdata=mini.xz shapes')
        found, text = program.look_up()
        check('.gnu_debugdata', NO_DWARF, found)
        check_text('.gnu_debugdata', '^its .gnu_debugdata', text)
        # Half a gigabyte of nothing.
        program.run('head -c 500000000 /dev/zero | xz -1 >zeros.xz; '
                    'objcopy --update-section .gnu_debugdata=zeros.xz shapes')
        found, text = program.look_up()
        check_text('a bomb', '^its dynamic symbol table', text)


def case_stripped(places):
    with Program(places) as program:
        program.run('strip -g shapes')
        found, text = program.look_up()
        check('symbol table', NO_DWARF, found)
        check_text('symbol table', '^its symbol table$', text)
        program.run('strip shapes')
        found, text = program.look_up()
        check('stripped', expected(symbols=GLOBALS, lines=False, inlined=False),
              {case: chain for case, chain in found.items() if chain[0][0] in GLOBALS})
        check_text('stripped', '^its dynamic symbol table$', text)
        _, text = program.look_up('--build-id', '1234567890')
        check_text('another file', 'is another file by now: its build id is '
                   f'{program.build_id}, not 1234567890', text)


def case_dwz(places):
    with Program(places) as program:
        program.run('cp shapes second; mkdir common; '
                    'dwz -m common/all.debug -M ../common/all.debug shapes second || '
                    'dwz -m common/all.debug shapes second')
        if '.gnu_debugaltlink' not in sh(['readelf', '-SW', program.path]):
            return
        program.run('mkdir -p found/.dwz; cp common/all.debug found/.dwz/all.debug')
        check_full('dwz', program, '--debug-dir', program.dir + '/found')
        program.run('rm -r common found')
        found, text = program.look_up()
        check('without its common file', NO_DWARF, found)
        check_text('without its common file', 'needs .*all.debug with build id', text)


def case_debuginfod(places):
    asked, stalls = [], []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if stalls:
                stalls[0].wait(60)
                return
            super().do_GET()

        def log_message(self, *_):
            pass

    with Program(places) as program:
        program.run(f'mkdir -p www/buildid/{program.build_id}; objcopy --only-keep-debug shapes '
                    f'www/buildid/{program.build_id}/debuginfo; strip shapes; mkdir cache')
        server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), lambda *args: Handler(*args, directory=program.dir + '/www'))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        env = {'DEBUGINFOD_URLS': f'http://127.0.0.1:{server.server_port}/',
               'DEBUGINFOD_CACHE_PATH': program.dir + '/cache', 'http_proxy': '', 'no_proxy': '*'}
        program.look_up(env=env)
        check('nothing asked without leave', [], asked)
        check_full('from a server', program, '--debuginfod=20', env=env)
        check('asked for the build id', [f'/buildid/{program.build_id}/debuginfo'], asked)
        # One that takes the question and says nothing.
        stalls.append(threading.Event())
        env['DEBUGINFOD_CACHE_PATH'] = program.dir + '/second'
        begun = time.monotonic()
        _, text = program.look_up('--debuginfod=1', env=env)
        took = time.monotonic() - begun
        stalls[0].set()
        check('a server that says nothing: given up in time', True, took < 10)
        check_text('a server that says nothing', '^its dynamic symbol table', text)
        server.shutdown()


CASES = {name[5:]: fn for name, fn in list(globals().items()) if name.startswith('case_')}
for CASE in sys.argv[2:] or CASES:
    CASES[CASE](os.path.abspath(sys.argv[1]))
print(f'{failures} differences')
sys.exit(1 if failures else 0)
