# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's verifier accepts the programs of every mode. What it accepts depends on the clang that
compiled them: CI has this file run in Debian 13, too, with those of a later clang (scripts/test)."""

import pathlib

import pytest

from support import Obedient, program_names

MODES = [
    ["stat", "--allocator", "mmap"], ["stat", "--allocator", "mmap", "--within", "main"],
    ["record", "--allocator", "mmap"], ["record", "--allocator", "mmap", "--within", "main", "--sample", "100"],
    ["stat"], ["stat", "--within", "main"], ["stat", "--start-on", "main"],
    ["stat", "--live"], ["stat", "--live", "--within", "main"],
    ["record"], ["record", "--within", "main"], ["record", "--sample", "100"],
    ["record", "--live"], ["record", "--live", "--within", "main"],
    ["record", "--live", "--sample", "100"],
    ["record", "--live", "--sample", "100", "--within", "main"],
]


@pytest.mark.fast("stat-None", "stat --live-sessions=0", "record --within main-None",
                  "record --live --sample 100-None")
@pytest.mark.parametrize("inject", [None, "multi=0", "sessions=0"])
@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_loads(run, allocprof, target, tmp_path, mode, inject):
    """The program's own malloc has its return instructions probed, libc's has not."""
    options = ["--inject", inject] if inject else []
    result = run([allocprof, *mode, *options, "-o", tmp_path / "out", "--", target("own_malloc")])
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
