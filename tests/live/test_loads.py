# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's verifier accepts the programs of every mode. What it accepts depends on the clang that
compiled them: CI has this file run in Debian 13, too, with those of a later clang (scripts/test)."""

import ctypes
import os
import pathlib
import platform
import re
import struct

import pytest

from support import Obedient, program_names, programs_of

MODES = [
    ["stat", "--allocator", "mmap"], ["stat", "--allocator", "mmap", "--within", "main"],
    ["record", "--allocator", "mmap"], ["record", "--allocator", "mmap", "--within", "main", "--sample", "100"],
    ["stat"], ["stat", "--within", "main"], ["stat", "--start-on", "main"],
    ["stat", "--live"], ["stat", "--live", "--within", "main"],
    ["record"], ["record", "--within", "main"], ["record", "--sample", "100"],
    ["record", "--live"], ["record", "--live", "--within", "main"], ["record", "--events"],
    ["record", "--live", "--sample", "100"],
    ["record", "--live", "--sample", "100", "--within", "main"],
]


@pytest.mark.fast("stat-multi=0", "stat --live-sessions=0", "record --within main-multi=0",
                  "record --live --sample 100-multi=0")
@pytest.mark.parametrize("inject", ["multi=0", "sessions=0"])
@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_loads(run, allocprof, target, tmp_path, mode, inject):
    """Those for older kernels; what this one takes is loaded below. The program's own malloc has its return instructions
    probed, libc's has not."""
    result = run([allocprof, *mode, "--inject", inject, "-o", tmp_path / "out", "--", target("own_malloc")])
    assert result.status == 0, result.stderr.decode()


# Of the million that the kernel allows. Linux 6.1's verifier may need more than twice what this kernel's does.
MOST_INSTRUCTIONS = 300_000


def verified_instructions(pid):
    """{id: instructions that the verifier looked at} of the BPF programs that a process holds open."""
    found = {}
    for path in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            info = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        except FileNotFoundError:
            continue
        if "verified_insns" in info:
            found[int(info["prog_id"])] = int(info["verified_insns"])
    return found


@pytest.mark.fast("stat", "record", "stat --live", "record --live")
@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_verifier_has_room(runner, allocprof, target, tmp_path, mode):
    """A program that grows is noticed before a kernel refuses it."""
    obedient = Obedient(runner, [allocprof, *mode, "-o", tmp_path / "out", "--", target("sleeper")])
    verified = verified_instructions(obedient.pid)
    names = program_names()
    obedient.exit()
    assert verified, "allocprof holds no BPF program, or the kernel is older than Linux 5.16"
    print(", ".join(f"{names[number]} {verified[number]:,}" for number in sorted(verified, key=verified.get)))
    wrong = [f"{names[number]}: the verifier looks at {n:,} instructions, {n - MOST_INSTRUCTIONS:,} more than it should "
             f"at most" for number, n in verified.items() if n > MOST_INSTRUCTIONS]
    assert not wrong, "\n".join(wrong)


GET_FD_BY_ID, GET_INFO_BY_FD = 13, 15  # commands of bpf(2)
BPF_SYSCALL = 321  # on x86-64
KPROBE, TRACING = 2, 26  # types of programs; those at uprobes are of the first
INFO_BYTES = 256
# add %gs:this_cpu_off,%r9: where a function gets the address of its stack, if that is the program's own.
OWN_STACK = bytes.fromhex("654c030c25")


def bpf(command, attributes):
    result = ctypes.CDLL(None, use_errno=True).syscall(BPF_SYSCALL, command, attributes, len(attributes))
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result


def compiled(number):
    """(type, machine code) of a BPF program."""
    fd = bpf(GET_FD_BY_ID, struct.pack("<IIIIQ", number, 0, 0, 0, 0))
    try:
        info = ctypes.create_string_buffer(INFO_BYTES)
        request = struct.pack("<IIQ", fd, INFO_BYTES, ctypes.addressof(info))
        bpf(GET_INFO_BY_FD, request)
        kind, _, _, size = struct.unpack_from("<II8sI", info.raw)
        code = ctypes.create_string_buffer(size)
        ctypes.memset(info, 0, INFO_BYTES)
        struct.pack_into("<I4xQ", info, 16, size, ctypes.addressof(code))
        bpf(GET_INFO_BY_FD, request)
        return kind, code.raw
    finally:
        os.close(fd)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows the machine code of x86-64")
@pytest.mark.fast("record", "record --live", "record --live --inject sessions=0")
@pytest.mark.parametrize("mode", [
    *MODES, ["record", "--live", "--inject", "sessions=0"], ["record", "--live", "--inject", "multi=0"],
    ["record", "--usdt", "USDT"], ["record", "--live", "--usdt", "USDT"]], ids=" ".join)
def test_stack_is_the_threads(runner, allocprof, target, tmp_path, mode):
    """Linux 6.13 and newer give a program at a uprobe a stack per processor, although it may be preempted by itself."""
    source = f"{target('usdt_source_O2')}:name=pool, alloc=pool:alloc(size=arg0)->arg1, free=pool:free(ptr=arg0)"
    mode = [source if word == "USDT" else word for word in mode]
    obedient = Obedient(runner, [allocprof, *mode, "-o", tmp_path / "out", "--", target("sleeper")])
    programs = {number: compiled(number) for number in programs_of(obedient.pid)}
    names = program_names()
    obedient.exit()
    assert any(kind == KPROBE for kind, _ in programs.values()), "allocprof holds no program for uprobes"
    own = {number for number, (_, code) in programs.items() if OWN_STACK in code}
    assert not {names[number] for number in own if programs[number][0] == KPROBE}, \
        "these have a stack per processor; do they begin with kernel_stack__use()?"
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 13):
        assert any(programs[number][0] == TRACING for number in own), "no program has such a stack: is it still seen?"
