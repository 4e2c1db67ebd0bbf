# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes behind instructions that lower the stack pointer count the same calls, sizes, callers and blocks as probes
elsewhere: what the program knows of itself."""

import json
import re
import subprocess

import pytest

import interfaces
from support import Recording, read_report, unavailable

# Like glibc 2.31's free and musl's calloc: nothing that the kernel emulates is before the stack pointer is lowered.
LIBRARY = r"""
#include <stddef.h>
#include <string.h>

static char memory[64 << 20];
static size_t used;

__attribute__((used, noinline)) static void *take(size_t size, void *old)
{
	char *block = memory + used;

	if (used + size + 32 > sizeof(memory))
		return NULL;
	used += (size + 15) / 16 * 16 + 16;
	*(size_t *)block = size;
	if (old)
		memcpy(block + 16, old, ((size_t *)old)[-2] < size ? ((size_t *)old)[-2] : size);
	return block + 16;
}

#ifdef KNOWN
int mi_version(void) { return 1; }
#endif

asm(".text\n"
    ".macro begin name\n"
    ".globl \\name\n.type \\name, @function\n\\name:\n.cfi_startproc\n"
    "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n"
    "mov %rbx, 16(%rsp)\n.cfi_rel_offset rbx, 16\n"
    "test %rdi, %rdi\njs 9f\n"
    ".endm\n"
    ".macro end name\n"
    "mov 16(%rsp), %rbx\nadd $24, %rsp\n.cfi_adjust_cfa_offset -24\nret\n"
    ".cfi_adjust_cfa_offset 24\n9: ud2\n.cfi_endproc\n.size \\name, . - \\name\n"
    ".endm\n"
    "begin malloc\nxor %esi, %esi\ncall take\nend malloc\n"
    "begin calloc\nimul %rsi, %rdi\nxor %esi, %esi\ncall take\nend calloc\n"
    "begin realloc\nmov %rdi, %rbx\nmov %rsi, %rdi\nmov %rbx, %rsi\ncall take\nend realloc\n"
    "begin free\nend free\n");
"""
PROGRAM = r"""
#include <stdlib.h>

#define CALLER __attribute__((noinline, noclone)) static

static void *kept[100];

/* No call is a jump. */
CALLER void *call_malloc(size_t size)
{
	void *block = malloc(size);

	asm volatile("" : "+r"(block));
	return block;
}

CALLER void *call_calloc(size_t n, size_t size)
{
	void *block = calloc(n, size);

	asm volatile("" : "+r"(block));
	return block;
}

CALLER void *call_realloc(void *old, size_t size)
{
	void *block = realloc(old, size);

	asm volatile("" : "+r"(block));
	return block;
}

CALLER void call_free(void *block) { free(block); asm volatile(""); }

void *through(void *(*function)(size_t), size_t size);
asm(".text\n.globl through\n.type through, @function\nthrough:\n.cfi_startproc\n"
    "sub $8, %rsp\n"
    ".cfi_escape 0x0f, 6, 0x77, 8, 0x38, 0x22, 0x30, 0x22\n" /* CFA: rsp + 8 + 8 + 0 */
    "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\nadd $8, %rsp\n.cfi_def_cfa rsp, 8\nret\n"
    ".cfi_endproc\n.size through, . - through\n");

int main(int argc, char *argv[])
{
	for (int i = 0; i < 20 && argc > 1; i++)
		through(malloc, 77);
	for (int i = 0; i < 1000; i++) {
		void *block = call_malloc(100 + i % 10);

		if (i % 10 == 0)
			kept[i / 10] = block;
		else
			call_free(block);
	}
	for (int i = 0; i < 300; i++)
		call_calloc(3, 7);
	for (int i = 0; i < 50; i++)
		kept[i] = call_realloc(kept[i], 500);
	return 0;
}
"""
CALLS = {"malloc": (1000, 1000 * 100 + 4500), "calloc": (300, 300 * 21), "realloc": (50, 50 * 500)}
FREED = 900


@pytest.fixture(scope="module", params=["own", "known"])
def program(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("sites")
    (directory / "library.c").write_text(LIBRARY)
    (directory / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-fno-builtin", *(["-DKNOWN"] if request.param == "known" else []),
                    "-o", directory / "liblowered.so", directory / "library.c"], check=True)
    subprocess.run(["gcc", "-O2", "-g", "-fno-builtin", "-o", directory / "program", directory / "program.c",
                    directory / "liblowered.so", f"-Wl,-rpath,{directory}"], check=True)
    return directory / "program", request.param == "known"


def stepped(stderr):
    """The functions that stat -v or doctor has found in liblowered.so, and whether each is single-stepped."""
    text = stderr.decode().partition("liblowered.so")[2]
    return dict(re.findall(r"^(?:allocprof: )? *(malloc|calloc|realloc|free)\n.*\n.*?(emulated|single-stepped)", text,
                           re.MULTILINE))


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_stat(run, allocprof, program, tmp_path, options):
    path, is_known = program
    result = run([allocprof, "stat", "-v", "--json", "-o", tmp_path / "figures", *options, path], expect=0)
    figures = json.loads((tmp_path / "figures").read_text())["functions"]
    assert {name: (figures[name]["calls"], figures[name]["bytes"]) for name in CALLS} == CALLS
    assert figures["free"]["calls"] == FREED
    # A return probe replaces the return address where the stack pointer points to.
    entry = "single-stepped" if is_known and options else "emulated"
    assert stepped(result.stderr) == {"malloc": entry, "calloc": entry, "realloc": entry, "free": "emulated"}, result


@pytest.mark.covering(2)
@pytest.mark.fast("own-live-sessions", "known-live-sessions", "known-live-single")
@pytest.mark.parametrize("inject", [[], ["--inject", "multi=0"], ["--inject", "sessions=0"]],
                         ids=["sessions", "single", "multi"])
@pytest.mark.parametrize("options", [[], ["--live"], ["--live", "--sample", "1"]], ids=["plain", "live", "sample"])
def test_record(run, allocprof, program, tmp_path, options, inject):
    path, _ = program
    run([allocprof, "record", "-o", tmp_path / "data", *options, *inject, path], expect=0)
    recording = Recording(tmp_path / "data")
    found = {(caller, function): (calls, size) for caller, function, calls, size in
             recording.sql("SELECT caller, function, sum(calls), sum(bytes) FROM calls GROUP BY 1, 2")}
    assert found == {(f"call_{name}", name): counts for name, counts in CALLS.items()}
    assert recording.sql("SELECT count(*) FROM stacks WHERE end != 'complete'") == [(0,)]
    if options:
        live = dict(recording.sql("SELECT function, sum(live) FROM memory GROUP BY 1"))
        assert live == {"malloc": 50, "calloc": 300, "realloc": 50}


def test_stack_copy(run, allocprof, program, tmp_path):
    """A caller whose rules no table has: user space unwinds a copy of the stack, from the lowered stack pointer on."""
    path, _ = program
    run([allocprof, "record", "-o", tmp_path / "data", path, "through"], expect=0)
    recording = Recording(tmp_path / "data")
    assert recording.sql("SELECT sum(calls), sum(bytes) FROM calls WHERE caller = 'through'") == [(20, 20 * 77)]
    assert recording.sql("SELECT count(*) FROM stacks WHERE end != 'complete'") == [(0,)]


@pytest.mark.fast("stat")
@pytest.mark.parametrize("mode", ["stat", "record"])
def test_stepped(run, allocprof, tmp_path, mode):
    """What took long because of single-stepped probes is said, and of which functions."""
    (tmp_path / "library.c").write_text("""
        static char memory[1 << 20];
        char *block = memory;
        asm(".globl malloc\\n.type malloc, @function\\nmalloc: pxor %xmm0, %xmm0\\nmov block@GOTPCREL(%rip), %rax\\n"
            "mov (%rax), %rax\\nret\\n.size malloc, . - malloc\\n"
            ".globl free\\n.type free, @function\\nfree: push %rax\\npop %rax\\nret\\n.size free, . - free\\n");""")
    (tmp_path / "program.c").write_text("""
        #include <stdlib.h>
        int main(void) { for (int i = 0; i < 200000; i++) free(malloc(16)); }""")
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-fno-builtin", "-o", tmp_path / "libstepped.so",
                    tmp_path / "library.c"], check=True)
    subprocess.run(["gcc", "-O2", "-fno-builtin", "-o", tmp_path / "program", tmp_path / "program.c",
                    tmp_path / "libstepped.so", f"-Wl,-rpath,{tmp_path}"], check=True)
    result = run([allocprof, mode, "-o", tmp_path / "out", tmp_path / "program"], expect=0)
    assert re.search(r"the probes of malloc are single-stepped: 200,000 calls took (at least )?[0-9.]+ us each, about "
                     r"[0-9.]+ of [0-9.]+ seconds; allocprof doctor says why", result.stderr.decode()), result


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_jemalloc(run, allocprof, counter, tmp_path, options):
    """All of libjemalloc's functions have emulated instructions, also its free, which overwrites rdx first."""
    library = interfaces.library("libjemalloc")
    if not library:
        unavailable("libjemalloc is not installed: scripts/setup --test")
    text = run([allocprof, "doctor", library]).stdout.decode().partition(f"\n{library}, ")[2].partition("\n\n")[0]
    assert "emulated" in text and "single-stepped" not in text
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-fno-builtin", "-Wl,--no-as-needed", "-o", tmp_path / "program",
                    tmp_path / "program.c", library], check=True)
    made = counter()
    # The counter calls the C library itself, so that it counts in a run of its own.
    run([tmp_path / "program"], env=made.env(), expect=0)
    counts = made.read()
    assert counts["free"].calls >= FREED
    run([allocprof, "stat", "--json", "-o", tmp_path / "figures", *options, "--", tmp_path / "program"], expect=0)
    found = read_report(tmp_path / "figures")["functions"]
    assert {name: found[name]["calls"] for name in [*CALLS, "free"]} == \
        {name: counts[name].calls for name in [*CALLS, "free"]}
