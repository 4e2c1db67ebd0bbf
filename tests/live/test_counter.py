# SPDX-License-Identifier: GPL-3.0-or-later
"""The counter that the other tests believe, against programs that state what they allocate. Needs
neither root nor allocprof."""

import dataclasses
import subprocess

import pytest

from counter import Slot
from support import COUNTER_LIBRARY, FUNCTIONS, Obedient, second_libc, stated


def count(run, counter, argv, expect=0, **options):
    made = counter()
    run(argv, env={**options.pop("env", {}), **made.env()}, expect=expect, **options)
    return made.read()


@pytest.fixture
def startup(run, counter, target):
    """What one program of a C target allocates before main and after."""
    counts = count(run, counter, [target("nothing")])
    assert counts.programs == 1
    return counts


def above(counts, startup):
    return {name: Slot(*(a - counts.programs * b for a, b in
                         zip(dataclasses.astuple(counts[name]), dataclasses.astuple(startup[name]))))
            for name in FUNCTIONS}


def assert_same(counted, expected):
    wrong = [f"{name}: expected {expected[name]}, counted {counted[name]}"
             for name in FUNCTIONS if counted[name] != expected[name]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name, status, programs", [
    ("every_function", 3, 1),
    ("fork_noexec", 0, 1),
    ("vfork_exec", 0, 6),
    ("spawn", 0, 5),
    ("longjmp", 0, 1),
    ("signals", 0, 1),
    ("segv", 139, 1),
    ("ignore_int", 5, 1),
    ("close_all", 4, 1),
])
def test_stated(run, counter, target, startup, name, status, programs):
    counts = count(run, counter, [target(name)], status)
    assert counts.programs == programs
    assert_same(above(counts, startup), stated(name))


@pytest.mark.parametrize("name", ["cancel", "pthread_exit_main", "print_backtrace"])
def test_stated_at_least(run, counter, target, startup, name):
    """These load the unwinder, which allocates as the C library likes."""
    counts = above(count(run, counter, [target(name)], None), startup)
    for function, slot in stated(name).items():
        assert counts[function].calls >= slot.calls


def threads_stated(threads, rounds):
    calls = threads * rounds
    slots = {name: Slot() for name in FUNCTIONS}
    slots["malloc"] = Slot(calls, calls * 40)
    slots["realloc"] = Slot(calls, calls * 120)
    slots["free"] = Slot(2 * calls)
    slots["calloc"] = Slot(calls + threads, calls * 60)
    return slots


def without_library(slots):
    """How much pthread_create asks for per thread, and how many NULLs an exiting thread frees, is the
    C library's business."""
    free = slots["free"]
    return {**slots, "calloc": Slot(slots["calloc"].calls), "free": Slot(free.calls - free.null)}


@pytest.mark.parametrize("threads, rounds", [(8, 1000), (1, 10), (64, 200)])
def test_threads(run, counter, target, startup, threads, rounds):
    counts = above(count(run, counter, [target("threads"), threads, rounds]), startup)
    assert_same(without_library(counts), without_library(threads_stated(threads, rounds)))


def test_ten_programs_at_once(run, counter, target, startup):
    for _ in range(20):
        argv = [target("launcher"), 10, target("threads"), 2, 300]
        counts = count(run, counter, argv)
        assert counts.programs == 11
        expected = {name: Slot(*(10 * n for n in dataclasses.astuple(slot)))
                    for name, slot in threads_stated(2, 300).items()}
        assert_same(without_library(above(counts, startup)), without_library(expected))


def test_exec_by_nonleader(run, counter, target, startup):
    counts = count(run, counter, [target("exec_nonleader"), target("every_function")], 3)
    assert counts.programs == 2
    expected = {name: slot + stated("exec_nonleader")[name]
                for name, slot in stated("every_function").items()}
    expected["calloc"] += Slot(2)
    calloc = above(counts, startup)["calloc"]
    assert calloc.calls == expected["calloc"].calls
    assert_same({**above(counts, startup), "calloc": expected["calloc"]}, expected)


def test_nested_reallocarray_in_another_copy_of_libc(run, counter, target, startup, tmp_path):
    counts = count(run, counter, [target("every_function")], 3, env=second_libc(tmp_path / "libc"))
    assert_same(above(counts, startup), stated("every_function"))


@pytest.mark.parametrize("options, threads", [([], 0), (["-t", "3"], 3)])
def test_many_stacks(run, counter, target, startup, options, threads):
    counts = above(count(run, counter, [target("many_stacks"), *options, 100000, 1000]), startup)
    assert counts["malloc"] == Slot(100000, sum(1 + i % 1000 % 64 for i in range(100000)))
    assert counts["free"].calls - counts["free"].null == 100000
    assert counts["calloc"].calls == threads


def test_exec_itself(run, counter, target, startup):
    counts = count(run, counter, [target("exec_itself"), 50])
    assert counts.programs == 51
    assert above(counts, startup)["malloc"] == Slot(51, 51 * 40)


def test_fork_storm(run, counter, target, startup):
    counts = above(count(run, counter, [target("fork_storm"), 6, 3]), startup)
    processes = 1 + 6 + 36 + 216
    assert counts["malloc"] == Slot(10 * processes, 330 * processes)


def test_commands(runner, counter, target):
    for argv, workers in (["sleeper"], 1), (["busy_threads", 5], 5):
        made = counter()
        obedient = Obedient(runner, [target(argv[0]), *argv[1:]], env=made.env())
        for n in (0, 1, 1000):
            before = made.read()
            obedient.ask(f"alloc {n}")
            counts = made.read() - before
            assert counts["malloc"] == Slot(n * workers, 32 * n * workers)
            assert counts["free"] == Slot(n * workers)
            assert sum(slot.calls for slot in counts.functions.values()) == 2 * n * workers
        obedient.exit()


def test_dlopen(run, counter, target):
    program, library = target("dlopen_lib"), target("liballocating.so")
    once = count(run, counter, [program, library, 1])
    more = count(run, counter, [program, library, 11])
    assert (more - once)["malloc"].calls >= 10 * 17
    assert (more - once)["free"].calls >= 10 * 16


def test_shell_chain(run, counter):
    """Four programs: sh, ls, wc, ls; subshells without exec are none."""
    counts = count(run, counter,
                   ["sh", "-c", "ls / | wc -l; (true; false) || ls /usr >/dev/null"])
    assert counts.programs == 4
    assert counts["malloc"].calls > 0


def test_preload_exec_is_no_program(run, counter, target, startup):
    """The launcher of the comparisons adds nothing of its own."""
    made = counter()
    argv = [target("preload_exec"), made.path, made.library, target("every_function")]
    run(argv, expect=3)
    assert made.read().programs == 1
    assert_same(above(made.read(), startup), stated("every_function"))
    for argv in (["sh", "-c", "exit 9"], ["no-such-command"]):
        run([target("preload_exec"), made.path, made.library, *argv],
            expect=9 if argv[0] == "sh" else 127)


def test_without_file(run, target):
    run([target("every_function")], env={"LD_PRELOAD": str(COUNTER_LIBRARY)}, expect=3)


@pytest.mark.parametrize("content", [None, b"\0" * 4096], ids=["missing", "zeros"])
def test_bad_file_is_no_zero(run, target, tmp_path, content):
    path = tmp_path / "bad"
    if content is not None:
        path.write_bytes(content)
    result = run([target("nothing")], expect=99, env={
        "LD_PRELOAD": str(COUNTER_LIBRARY), "ALLOCPROF_COUNTER": str(path)})
    assert b"libcounter: " in result.stderr


def test_looks_like_a_wrapper():
    """A library with malloc and dlsym but without mmap or sbrk is one that forwards."""
    output = subprocess.run(["nm", "-D", COUNTER_LIBRARY], check=True, stdout=subprocess.PIPE,
                            text=True).stdout
    imports = {line.split()[1].split("@")[0] for line in output.splitlines()
               if line.split()[0] == "U"}
    assert imports & {"dlsym", "dlvsym"}
    assert not imports & {"mmap", "mmap64", "sbrk", "brk", *FUNCTIONS}
    segments = subprocess.run(["readelf", "-lW", COUNTER_LIBRARY], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    assert "TLS" not in segments, "a module with TLS changes what the C library frees"
