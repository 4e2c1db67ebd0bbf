# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that take memory from the kernel by means that nobody knows: that nothing was counted in them is said.
Of programs that need no memory nothing is said."""

import json
import re
import shutil
import subprocess

import pytest

from support import Recording, unavailable, wait_until_counting

# Without a C library: it grows its heap by as many KiB as it has arguments.
BARE = r"""
static long call(long number, long argument)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(argument) : "rcx", "r11", "memory");
	return result;
}

void start(long *stack)
{
	long brk = call(12, 0);

	if (stack[0] > 1 && call(12, brk + (stack[0] - 1) * 1024) == brk)
		call(60, 1);
	call(60, 0);
}

__asm__(".globl _start\n_start: mov %rsp, %rdi\ncall start");
"""

# Half a MiB of arrays, a thread's own variables, files and processes, all without malloc.
FRUGAL = r"""
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static char room[1 << 19];
static __thread char own[64];

int main(int argc, char **argv)
{
	int fd = open(argv[0], O_RDONLY);
	long n = read(fd, room, sizeof(room));
	pid_t pid = fork();

	own[0] = room[0];
	if (!pid && argc > 1)
		execl(argv[0], argv[0], (char *)0);
	if (!pid)
		_exit(0);
	return waitpid(pid, NULL, 0) != pid || n <= 0 || !own[0];
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """programs(NAME) is the program of that name."""
    directory = tmp_path_factory.mktemp("unprobed")
    sources = {"bare": BARE, "frugal": FRUGAL, "frugal_musl": FRUGAL}
    flags = {"bare": ["-static", "-nostdlib", "-fno-stack-protector"], "frugal_musl": ["-static", "-s"]}

    def build(name):
        compiler = "musl-gcc" if name.endswith("musl") else "gcc"
        if not shutil.which(compiler, path="/usr/bin"):
            unavailable(f"{compiler} is not installed: scripts/setup --test")
        if not (directory / name).exists():
            (directory / f"{name}.c").write_text(sources[name])
            subprocess.run([f"/usr/bin/{compiler}", "-O1", *flags.get(name, []), "-o", directory / name,
                            directory / f"{name}.c"], check=True)
        return directory / name
    return build


def stat(run, allocprof, path, *arguments):
    """The figures, and stderr."""
    result = run([allocprof, "stat", "--json", "-o", path, *arguments], expect=0)
    return json.loads(path.read_text()), result.stderr.decode()


SENTENCE = "took {} bytes from the kernel and called no function that is probed: its allocator is unknown; define it " \
    "(allocprof-allocators(5))\n"


def test_memory_of_a_program_of_its_own(run, allocprof, target, tmp_path):
    figures, told = stat(run, allocprof, tmp_path / "json", "--", target("pool"), 4096)
    program, = figures["unprobed_programs"]
    assert figures["complete"] is False
    assert (program["name"], program["processes"]) == ("pool", 1)
    # What the dynamic linker maps for the C library is among it.
    assert 4096 * 1024 <= program["bytes"] < 5000 * 1024
    assert f"not complete: 1 process of the program pool ({program['pid']}) " \
        + SENTENCE.format(f"{program['bytes']:,}") in told
    text = run([allocprof, "stat", "--", target("pool"), 4096], expect=0).stderr
    assert b"called no function that is probed" in b" ".join(text.split())


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["plain", "live"])
def test_recorded(run, allocprof, target, tmp_path, options):
    data = tmp_path / "data"
    result = run([allocprof, "record", *options, "-o", data, "--", target("pool"), 4096], expect=0)
    assert b"called no function that is probed" in result.stderr
    assert Recording(data).gaps["program_unprobed"] == [(1, "pool", "")]
    # Both have digits in groups.
    bytes_taken, = re.findall(r"took ([\d,]+) bytes from the kernel", result.stderr.decode())
    result = run([allocprof, "report", "--strict", data], expect=1)
    assert f"took {bytes_taken} bytes from the kernel and called no function that is probed" in result.stderr.decode()
    assert not json.loads(run([allocprof, "report", "--json", data]).stdout)["complete"]


def test_several_processes(run, allocprof, target, tmp_path):
    """The shell calls malloc, they do not."""
    script = "for i in 1 2 3; do $0 500; done; exit 0"
    figures, _ = stat(run, allocprof, tmp_path / "json", "--", "sh", "-c", script, target("pool"))
    assert [(program["name"], program["processes"]) for program in figures["unprobed_programs"]] == [("pool", 3)]
    assert figures["complete"] is False


def test_replaced_by_exec(run, allocprof, target, tmp_path):
    """The second program of the process takes nothing; what the first took is not forgotten."""
    figures, _ = stat(run, allocprof, tmp_path / "json", "--", target("pool"), 4096, "exec")
    assert [program["name"] for program in figures["unprobed_programs"]] == ["pool"]


def test_still_running(runner, allocprof, target, tmp_path):
    """Attached to, and left while it goes on."""
    process = runner.start([target("pool"), 4096, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    recorder = runner.start([allocprof, "stat", "--json", "-o", tmp_path / "json", "-p", process.pid])
    wait_until_counting(allocprof, recorder)
    process.stdin.write(b"g")
    process.stdin.flush()
    assert process.stdout.read(5) == b"taken"
    recorder.send_signal(2)
    recorder.wait()
    figures = json.loads((tmp_path / "json").read_text())
    assert [(program["name"], program["pid"]) for program in figures["unprobed_programs"]] == [("pool", process.pid)]
    assert figures["complete"] is False
    process.stdin.write(b"g")
    process.stdin.close()
    assert process.wait() == 0


def test_attached_to_what_has_memory_already(runner, allocprof, target, tmp_path):
    process = runner.start([target("pool"), 0, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    recorder = runner.start([allocprof, "stat", "--json", "-o", tmp_path / "json", "-p", process.pid])
    wait_until_counting(allocprof, recorder)
    recorder.send_signal(2)
    recorder.wait()
    figures = json.loads((tmp_path / "json").read_text())
    assert figures["unprobed_programs"] == [] and figures["complete"] is True
    process.stdin.write(b"gg")
    process.stdin.close()
    assert process.wait() == 0


@pytest.mark.parametrize("kib, told", [(0, False), (8, True)])
def test_static_program(run, allocprof, programs, tmp_path, kib, told):
    """A program that has no allocator with a name: where it takes no memory it needs none."""
    program = programs("bare")
    figures, _ = stat(run, allocprof, tmp_path / "json", "--", "sh", "-c", f"{program} {'x ' * kib}; exit 0")
    gaps = {entry["path"]: entry["gap"] for entry in figures["allocators"] if entry["gap"]}
    assert [entry["name"] for entry in figures["unprobed_programs"]] == (["bare"] if told else [])
    assert list(gaps) == ([str(program)] if told else [])
    assert figures["complete"] is not told


@pytest.mark.parametrize("name", ["frugal", "frugal_musl"])
def test_programs_that_allocate_nothing(run, allocprof, programs, tmp_path, name):
    """Nor do the processes that they fork, and what these execute."""
    figures, told = stat(run, allocprof, tmp_path / "json", "--", "sh", "-c", f"{programs(name)} x; exit 0")
    assert figures["unprobed_programs"] == [] and figures["complete"] is True and told == ""
    assert figures["processes"] >= 3


def test_where_not_all_functions_are_probed(run, allocprof, target, tmp_path):
    """That calloc is not called says nothing."""
    figures, _ = stat(run, allocprof, tmp_path / "json", "-e", "calloc", "--", target("pool"), 4096)
    assert figures["unprobed_programs"] == [] and figures["complete"] is True
