# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that is measured from inside (--engine=inside -p): probes check in the first moments whether all calls come to the library."""

import contextlib
import os
import pathlib
import sqlite3

import pytest

from measured import ADDRESSES, FAR, maps_of
from support import Obedient, read_report, unavailable

# The check lasts until the end of the recording.
CHECKED = ["--inject", "check_ms=60000"]

ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.*"]
PLACE = pathlib.Path("/usr/lib/x86_64-linux-gnu")

# Says "done" when it has called all of its functions so often; and by "copied", also malloc by a copy of its address.
ALL = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
static void *(*volatile copied_malloc)(size_t);

int main()
{
	char line[64];

	copied_malloc = malloc;

	setbuf(stdout, nullptr);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < atoi(strchr(line, ' ')); i++) {
			void *volatile block = malloc(i + 1), *aligned = nullptr;

			block = realloc(block, i + 100);
			free(block);
			free(calloc(3, i + 1));
			if (!posix_memalign(&aligned, 64, i + 1))
				free(aligned);
			free(aligned_alloc(64, 128));
			free(memalign(64, i + 1));
			free(strdup(line));
			::operator delete(::operator new(i + 1));
			::operator delete[](::operator new[](i + 1));
			free(reallocarray(nullptr, 3, i + 1));
			if (!strncmp(line, "copied", 6))
				free(copied_malloc(i + 1));
		}
		puts("done");
	}
	return 0;
}
"""
CALLS = 19  # in one round of the loop


def mappings_of(pid):
    """Without inodes: the library's data is mapped anew for each measurement."""
    return [(line.split()[:2], line.split()[5:]) for line in maps_of(pid)]


def checked_calls(path):
    with contextlib.closing(sqlite3.connect(path)) as data:
        (number,), = data.execute("SELECT value FROM meta WHERE key = 'checked_calls'").fetchall()
        return int(number), data.execute("SELECT kind, number, object FROM gaps").fetchall()


@pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")
@pytest.mark.parametrize("multi", [[], ["multi=0"]], ids=["one link", "a link each"])
def test_all_calls_come(measure, runner, target, multi):
    """As many as the library counts; and no probe leaves anything behind."""
    process = Obedient(runner, [target("sleeper")])
    process.ask("alloc 1")
    measure(process, "record").finish()
    before = mappings_of(process.pid)
    measured = measure(process, "record", "--inject", ",".join(["check_ms=60000", *multi]))
    process.ask("alloc 500")
    said = measured.finish()
    assert "not complete" not in said, said
    assert checked_calls(measured.output) == (1000, [])
    assert mappings_of(process.pid) == before
    process.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")
def test_calls_by_a_copied_address(measure, runner, target):
    """They are not counted, which is said, with the file that makes them."""
    process = Obedient(runner, [target("sleeper")])
    measured = measure(process, "record", *CHECKED)
    process.ask("alloc 10")
    process.ask("copied 300")
    said = measured.finish()
    assert checked_calls(measured.output) == (620, [("calls_bypassed", 300, str(target("sleeper")))])
    assert "not complete: 300 calls of process" in said and "did not come to the library" in said, said
    measured = measure(process, "stat", "--json", *CHECKED)
    process.ask("alloc 10")
    process.ask("copied 300")
    measured.finish()
    report = read_report(measured.output)
    assert report["complete"] is False and report["functions"]["malloc"]["calls"] == 10, report
    process.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")
@pytest.mark.parametrize("allocator", ["libc.so.6", *ALLOCATORS])
def test_functions_of_allocators(measure, runner, compiled, allocator):
    """Those that call or jump to each other, and operators new and delete, are one call each; none of them hides a call that comes to no
    stub; and no single-stepped probe leaves the kernel's mapping behind."""
    library = next(iter(PLACE.glob(allocator)), None)
    if not library:
        unavailable(f"{allocator} is not installed: scripts/setup --test")
    program = compiled(ALL, compiler="g++", name="all")
    process = Obedient(runner, ["env", f"LD_PRELOAD={library}", program])
    measured = measure(process, "record", *CHECKED)
    process.ask("all 200")
    said = measured.finish()
    number, gaps = checked_calls(measured.output)
    # mimalloc 3 has a strdup() of its own, of which no size is known.
    own = [("own_functions", 200, "")] if "mimalloc" in allocator and gaps else []
    assert gaps == own, (gaps, said)
    # The calls that an allocator makes itself through its own words come to stubs as well.
    assert number == 200 * CALLS if allocator == "libc.so.6" else number >= 200 * CALLS, (number, said)
    measured = measure(process, "record", *CHECKED)
    process.ask("copied 200")
    measured.finish()
    assert checked_calls(measured.output)[1] == [*own, ("calls_bypassed", 200, str(program))]
    assert not [line for line in maps_of(process.pid) if "[uprobes]" in line]
    process.exit()


@pytest.mark.skipif(os.geteuid() != 0, reason="probes need root")
def test_allocator_of_the_program(measure, runner, compiled):
    """Of a program's own calls only those are the allocator's that its functions make. The compiler decides which functions have an
    instruction that the kernel emulates."""
    program = compiled(ADDRESSES, FAR, "-fPIE", "-pie", name="program")
    process = Obedient(runner, [program])
    process.ask("1")
    measured = measure(process, "record", *CHECKED)
    process.ask("20")
    measured.finish()
    number, gaps = checked_calls(measured.output)
    assert 20 * 5 <= number <= 20 * 11 and gaps == []
    measured = measure(process, "record", *CHECKED)
    process.ask("20")
    process.ask("-300")
    said = measured.finish()
    assert checked_calls(measured.output)[1] == [("calls_bypassed", 300, str(program))], said
    process.exit()
