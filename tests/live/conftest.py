# SPDX-License-Identifier: GPL-3.0-or-later
"""Run as /usr/bin/python3 -m pytest tests/live, as root. ALLOCPROF_BUILD names the build directory,
ALLOCPROF the program to test where it is not the build's."""

import collections
import contextlib
import glob
import itertools
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import pytest

import support  # first: it knows where the others are
import measured
import events
import memory
from containers import in_container
from servers import NOBODY
from support import read_report, unavailable, without_summary

# Of root: the files are still its own.
WITHOUT_PRIVILEGES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
@pytest.fixture
def compiled(tmp_path):
    """Compiles C, or C++ where the compiler is one for that."""
    def made(source, *flags, compiler="gcc", name="program"):
        if not shutil.which(compiler):
            unavailable(f"{compiler} is not installed")
        path = tmp_path / f"{name}{'.cc' if '++' in compiler else '.c'}"
        path.write_text(source)
        # gcc 14 refuses a call of what is not declared, whatever -w says.
        subprocess.run([compiler, "-O1", "-fno-builtin", "-pthread", "-w", "-D_GNU_SOURCE", "-o", tmp_path / name, path, *flags],
                       check=True)
        return tmp_path / name
    return made


@pytest.fixture
def cargo(run, tmp_path, monkeypatch):
    """Debian's, which fetches nothing and leaves nothing behind."""
    program = shutil.which("cargo", path="/usr/bin")
    if not program:
        unavailable("cargo is not installed: scripts/setup --test")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RUSTC", "/usr/bin/rustc")
    monkeypatch.setenv("RUSTDOC", "/usr/bin/rustdoc")
    monkeypatch.setenv("RUSTFLAGS", "-D warnings -g")
    return lambda *words, **more: run([program, words[0], "--offline", "--quiet", *words[1:]], **more)


@pytest.fixture
def measure(runner, allocprof, tmp_path):
    """Begins to measure a process that runs; Measured.finish() ends it."""
    def begin(process, *words, engine="inside"):
        return measured.Measured(runner, allocprof, process.pid, tmp_path / f"{words[0]}-{engine}", *words, engine=engine)

    return begin


def ledger(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as data:
        return dict(data.execute("SELECT name, value FROM ledger"))

# Under nohup, and in a shell's background, they are ignored, and would be in all that is started.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


def obstacle():
    """Why allocprof cannot be tested here, None where it can."""
    if os.geteuid() != 0:
        return "not root: BPF programs and uprobes need it"
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return "this kernel has no BTF (/sys/kernel/btf/vmlinux)"
    if not os.path.exists("/sys/bus/event_source/devices/uprobe/type"):
        return "this kernel has no uprobes (/sys/bus/event_source/devices/uprobe)"
    return None


def pytest_generate_tests(metafunc):
    """@pytest.mark.engines("uprobe", "preload") names the engines that a test runs with, each in a case of its own."""
    engines = metafunc.definition.get_closest_marker("engines")
    if engines:
        metafunc.parametrize("engine", engines.args, indirect=True)


def case_of(item):
    """What fast() calls the case of a test: that of uprobes without its engine, so that both have the same names."""
    params = getattr(item, "callspec", None)
    if not params:
        return ""
    engine = params.params.get("engine")
    if engine and (engine == "uprobe" or obstacle()):
        return params.id.removeprefix(engine).removeprefix("-")
    return params.id


def values_of(item):
    """Of each parametrization of a case its place among them and the name of the value that the case has."""
    return list(enumerate(item.callspec._idlist))


def combinations_of(item, strength):
    return set(itertools.combinations(values_of(item), strength))


def covering(items, strength, always):
    """As few of a test's cases as a greedy choice finds that together have each combination of @strength values that any
    of them has; those that @always() is true of are among them. Of equally good ones it takes that whose values were
    taken least, so that a short list of values is gone through evenly."""
    chosen = [item for item in items if always(item)]
    left = set().union(*(combinations_of(item, strength) for item in items))
    left = left.difference(*(combinations_of(item, strength) for item in chosen))
    taken = collections.Counter(value for item in chosen for value in values_of(item))
    while left:
        best = max(items, key=lambda item: (len(left & combinations_of(item, strength)),
                                            -sum(taken[value] for value in values_of(item))))
        chosen.append(best)
        left -= combinations_of(best, strength)
        taken.update(values_of(best))
    return {id(item) for item in chosen}


def choose_covering(config, items):
    """@pytest.mark.covering(STRENGTH, parameter=value): of the cases of a test those of covering() are run, with those
    that the fast suite has or that have the value; all of them with ALLOCPROF_CASES=all, or where one is asked for."""
    if os.environ.get("ALLOCPROF_CASES") == "all" or any("[" in word for word in config.args):
        return
    tests = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("covering"):
            tests[item.path, item.originalname].append(item)
    dropped = set()
    for cases in tests.values():
        mark = cases[0].get_closest_marker("covering")
        kept = covering(cases, *mark.args, lambda item: not item.get_closest_marker("slow") or any(
            item.callspec.params[name] == value for name, value in mark.kwargs.items()))
        dropped |= {id(item) for item in cases} - kept
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = [item for item in items if id(item) not in dropped]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """@pytest.mark.fast("case", ...) names those cases of a test that the fast suite has; the others are the slow
    suite's. So are all by the engine preload, but for those named "preload-case". Where there are no uprobes they take
    the place of the others."""
    named = {}
    for item in items:
        fast = item.get_closest_marker("fast")
        case = case_of(item)
        if fast:
            names = named.setdefault((item.path, item.originalname), set(fast.args))
            if case not in fast.args:
                item.add_marker(pytest.mark.slow)
            names.discard(item.callspec.id)
            names.discard(case)
        elif case.split("-")[0] == "preload":
            item.add_marker(pytest.mark.slow)
    # Where single cases are asked for the others are not there.
    if not any("[" in word for word in config.args):
        missing = [f"{path.name}::{test} has no case {name!r}"
                   for (path, test), names in named.items() for name in sorted(names)]
        if missing:
            raise pytest.UsageError("fast: " + "; ".join(missing))
    choose_covering(config, items)


@pytest.fixture(autouse=True)
def engine(request, monkeypatch):
    """That of stat, record and check in a test that is marked with engines; None where it is the tool's choice."""
    name = getattr(request, "param", None)
    if name:
        monkeypatch.setenv("ALLOCPROF_ENGINE", name)
    return name


@pytest.fixture
def allocprof(engine):
    why = obstacle() if engine != "preload" else None
    if why:
        unavailable(why)
    path = pathlib.Path(os.environ.get("ALLOCPROF", support.BUILD / "cli" / "allocprof"))
    if not os.access(path, os.X_OK):
        unavailable(f"{path} is not built")
    return str(path.resolve())


@pytest.fixture
def runner(request):
    runner = support.Runner()
    request.node.stash[COMMANDS] = runner.commands
    yield runner
    runner.end_all()


@pytest.fixture
def run(runner):
    return runner.run


@pytest.fixture
def target():
    return support.target


@pytest.fixture
def public_directory():
    """One that every user can reach: those of pytest are root's alone, and whenever another pytest starts it closes
    the directory above them again."""
    with tempfile.TemporaryDirectory(prefix="allocprof-test-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


@pytest.fixture
def own_libc(tmp_path):
    """An environment in which programs have a C library of this test's own: there is no breakpoint in it but for
    this test's recordings, whatever else is recorded meanwhile."""
    return support.second_libc(tmp_path / "own_libc")


@pytest.fixture
def counter(tmp_path):
    """counter() is a new file to count into."""
    if not support.COUNTER_LIBRARY.exists():
        unavailable(f"{support.COUNTER_LIBRARY} is not built")
    made = []

    def make():
        path = tmp_path / f"counts.{len(made)}"
        made.append(support.counter_module.Counter(path, support.COUNTER_LIBRARY))
        return made[-1]

    return make


@pytest.fixture
def log(tmp_path):
    """log() is a new file to log the events of the allocator to."""
    if not support.EVENTS_LIBRARY.exists():
        unavailable(f"{support.EVENTS_LIBRARY} is not built (x86-64 only)")
    made = []

    def make(**options):
        path = tmp_path / f"events.{len(made)}"
        made.append(events.Log(path, support.EVENTS_LIBRARY, **options))
        return made[-1]

    yield make
    # pytest keeps directories, and these files are large.
    for one in made:
        one.path.unlink()


COMMANDS = pytest.StashKey()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    path = os.path.relpath(item.path, support.SOURCE)
    test = f"{path}::{item.name}"
    commands = item.stash.get(COMMANDS, [])
    if commands:
        report.sections.append(("commands run", "\n".join(commands)))
    report.sections.append(("run alone", f"/usr/bin/python3 -m pytest '{test}'"))


@pytest.fixture
def both(run, log, allocprof, target, tmp_path, engine):
    return memory.Both(run, log, allocprof, target, tmp_path, engine)


@pytest.fixture
def container(run, tmp_path):
    """There can be containers.in_container()."""
    result = run(in_container(tmp_path, ["true"]))
    if result.status:
        unavailable(f"no container can be made here: {result}")


@pytest.fixture
def reads_pages_in(run, allocprof):
    """Kernels before Linux 6.9 do not."""
    if not re.search(r"sleepable programs +yes", run([allocprof, "doctor"]).stdout.decode()):
        unavailable("this kernel's programs at probes cannot be sleepable")


@pytest.fixture
def recorded_log(run, allocprof, target, tmp_path):
    """recorded_log(target, arguments..., options): the data file of a recording with --events."""
    def record(*command, options=()):
        data = tmp_path / "data"
        run([allocprof, "record", "--events", *options, "-o", data, "--", target(command[0]), *command[1:]], expect=0)
        return data
    return record


@pytest.fixture
def same(run, allocprof, tmp_path):
    """Runs a command bare and measured from inside, asserts that nobody can tell the difference, and returns the result
    of the bare one and the report of the other: JSON, of a recording its ledger. @alone: without uprobes for what cannot
    be entered."""
    def ran(mode, argv, alone=False, **options):
        output = tmp_path / f"{mode}.out"
        words = {"stat": ["stat", "--json"], "record": ["record", "-q", "--no-symbols"],
                 "live": ["record", "-q", "--no-symbols", "--live"],
                 "events": ["record", "-q", "--no-symbols", "--events"]}[mode]
        bare = run(argv, **options)
        ours = run([*(WITHOUT_PRIVILEGES if alone else []), allocprof, *words, "--engine=preload", "-o", output, "--", *argv], **options)
        stderr = b"".join(line for line in without_summary(ours.stderr)[0].splitlines(True)
                          if not line.startswith(b"allocprof: "))
        assert (ours.status, ours.stdout, stderr) == (bare.status, bare.stdout, bare.stderr)
        report = read_report(output) if mode == "stat" else ledger(output)
        if mode == "events":
            # Of each event the log has it or says that it is missing.
            noops = sum(report[name] for name in ("frees_null", "frees_unknown", "frees_inherited"))
            assert report["logged"] + report["not_logged"] == \
                report["attributed"] + report["frees"] - report["reallocations"] + noops, report
        return bare, report
    return ran


@pytest.fixture
def directory(public_directory):
    """One that is another user's."""
    shutil.chown(public_directory, 65534, 65534)
    return public_directory


@pytest.fixture
def cluster(run, directory):
    """PostgreSQL's programs, its server, and a directory of data. The server is a copy: nobody else runs it."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        unavailable("PostgreSQL is not installed: scripts/setup --test")
    programs = pathlib.Path(found[-1]).parent
    run([*NOBODY, found[-1], "-D", directory / "data", "-A", "trust", "-U", "test", "--no-sync", "--no-instructions",
         "--locale=C"], expect=0, cwd="/")
    return programs, shutil.copy(programs / "postgres", directory / "postgres"), directory / "data"
