# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that the library of src/inside is loaded into, or must not be, do what they do without it: output, exit
status and signals. `stat`, `record`, and with blocks."""

import pathlib
import shutil
import subprocess

import pytest

from conftest import WITHOUT_PRIVILEGES
from support import unavailable

MODES = ["stat", "record", "live"]


@pytest.mark.fast("stat")
@pytest.mark.parametrize("mode", MODES)
def test_commands_at_a_time(same, target, mode):
    """What system(3) executes is measured, and the target's environment is its own again."""
    bare, report = same(mode, [target("shell_commands")])
    assert bare.stdout.splitlines()[-1] == b"preloaded none changed 2 added 3 commands 4"
    if mode == "stat":
        # The target and its child, and five commands.
        assert report["processes"] == 7, report


def test_many_commands(run, allocprof, target, tmp_path):
    """Each command leaves nothing in the target."""
    grown = [int(run([*words, target("shell_commands"), "many"], expect=0).stdout.split()[1])
             for words in ([], [allocprof, "stat", "--engine=preload", "-o", tmp_path / "json", "--"])]
    assert grown[1] < 256, grown


LAUNCHER = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status = 1;
	printf("LD_PRELOAD=%s\\n", getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "none");
	fflush(stdout);
	if (!fork()) { execv(argv[1], argv + 1); _exit(99); }
	wait(&status);
	return WEXITSTATUS(status);
}
"""
OVERFLOW = """
#include <stdlib.h>
int main(void)
{
	char *volatile block = malloc(10);
	return block[10];
}
"""


@pytest.mark.covering(1)
@pytest.mark.fast("stat-alone", "stat-beside")
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside"])
@pytest.mark.parametrize("mode", MODES)
def test_static_launcher(same, compiled, mode, alone):
    """A static program hands its environment on: what it executes must not get the library in LD_PRELOAD. Where there are
    uprobes, they count it."""
    launcher = compiled(LAUNCHER, "-static", name="launcher")
    sanitized = compiled(OVERFLOW, "-fsanitize=address", name="sanitized")
    bare, _ = same(mode, [launcher, sanitized], alone=alone, env={"ASAN_OPTIONS": "log_path=/dev/null"})
    assert bare.status == 1 and bare.stdout == b"LD_PRELOAD=none\n", bare
    _, report = same(mode, [launcher, compiled(BLOCKS, name="blocks"), "1000"], alone=alone)
    if mode == "stat" and not alone:
        assert report["functions"]["malloc"]["calls"] >= 1000 and report["complete"], report
    if mode == "stat" and alone:
        assert named(report) == [("launcher", "statically linked")]


EFFECTIVE = """
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int err = argv[1][0] == 'g' ? setegid(65534) : setresuid(65534, 0, 0);
	if (err) return 98;
	execv(argv[2], argv + 2);
	return 99;
}
"""


@pytest.mark.parametrize("ids", ("group", "user"))
def test_effective_ids(same, compiled, public_directory, ids):
    """The dynamic linker loads nothing by name where the effective ids are others than the real ones."""
    blocks = shutil.copy(compiled(BLOCKS, name="blocks"), public_directory)
    _, report = same("stat", [compiled(EFFECTIVE, name="effective"), ids, blocks, "1000"])
    assert named(report) == [("blocks", "with other privileges")] or report["functions"]["malloc"]["calls"] >= 1000, report


BAD_ARGUMENTS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
	char *argv[] = { "true", NULL }, *partly[] = { "A=1", (char *)8, NULL };
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *path = page + 4096 - 4, **bad = (char **)8;
	int pid;
	mprotect(page + 4096, 4096, PROT_NONE);
	memcpy(path, "/bin", 4);
	execve(NULL, argv, environ); printf("%d\\n", errno);
	execve((char *)1, argv, environ); printf("%d\\n", errno);
	execve(path, argv, environ); printf("%d\\n", errno);
	execve("/bin/true", argv, bad); printf("%d\\n", errno);
	execve("/bin/true", argv, partly); printf("%d\\n", errno);
	syscall(SYS_execve, NULL, argv, environ); printf("%d\\n", errno);
	syscall(SYS_execve, "/bin/true", argv, bad); printf("%d\\n", errno);
	execveat(AT_FDCWD, NULL, argv, environ, 0); printf("%d\\n", errno);
	printf("%d\\n", posix_spawn(&pid, NULL, NULL, NULL, argv, environ));
	printf("%d\\n", posix_spawn(&pid, "/bin/true", NULL, NULL, argv, bad));
	printf("%d\\n", posix_spawn(&pid, "/bin/true", NULL, NULL, argv, NULL));
	waitpid(pid, NULL, 0);
	return 0;
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_bad_arguments_of_exec(same, compiled, mode):
    """What is no path or no environment is the kernel's to refuse."""
    bare, _ = same(mode, [compiled(BAD_ARGUMENTS)])
    assert bare.stdout == b"14\n" * 10 + b"0\n", bare


def test_libraries_are_listed(same):
    bare, _ = same("stat", ["sh", "-c", "ldd /bin/ls | sed 's/ (0x.*//'"])
    assert b"libc.so.6" in bare.stdout


SEARCHES = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[1], RTLD_NOW);
	printf("%s\\n", plugin ? "loaded" : dlerror());
	return !plugin || !((int (*)(void))dlsym(plugin, "plugin"))();
}
"""


def test_search_path_of_the_loader(same, compiled, tmp_path):
    """DT_RPATH of the library that loaded the caller of dlopen(3) counts, too."""
    private = tmp_path / "private"
    private.mkdir()
    compiled("int other(void) { return 42; }", "-shared", "-fPIC", name="libother.so").rename(private / "libother.so")
    compiled("""
#include <dlfcn.h>
int helper(void) { return dlopen("libother.so", RTLD_NOW) != 0; }
""", "-shared", "-fPIC", name="libhelper.so").rename(private / "libhelper.so")
    plugin = compiled("int helper(void); int plugin(void) { return helper(); }", "-shared", "-fPIC", f"-L{private}", "-lhelper",
                      "-Wl,--disable-new-dtags,-rpath,$ORIGIN/private", name="plugin.so")
    bare, _ = same("stat", [compiled(SEARCHES, "-ldl", name="searches"), plugin])
    assert bare.status == 0 and bare.stdout == b"loaded\n", bare


HARM = ["faults", "small_stack", "coroutines", "vforks", "forks", "libraries", "descriptors", "limits", "root", "signals",
        "stacks"]


@pytest.mark.covering(1, mode="live")
@pytest.mark.fast("live-small_stack", "live-descriptors", "record-limits", "live-vforks", "record-coroutines")
@pytest.mark.parametrize("case", HARM)
@pytest.mark.parametrize("mode", [*MODES, "events"])
def test_harm(same, target, public_directory, mode, case):
    arguments = {"libraries": [target("liballocating.so")], "root": [public_directory]}.get(case, [])
    bare, report = same(mode, [target("harm"), case, *arguments])
    assert bare.status == 0
    if mode == "stat":
        assert report["complete"] and report["lost"]["total"] == 0
    else:
        assert report["lost"] == 0 and report["events"] > 0


@pytest.mark.covering(1, mode="live")
@pytest.mark.fast("record-kill", "live-child")
@pytest.mark.parametrize("how", ["strict", "kill", "trap", "errno", "wrong", "child"])
@pytest.mark.parametrize("mode", [*MODES, "events"])
def test_confined(same, target, mode, how):
    """After seccomp(2) no system call is made that is forbidden. Without stacks none is needed; stacks that find no
    room any more are lost, and said to be."""
    bare, report = same(mode, [target("confined"), how])
    assert bare.status == 7 and bare.stdout.endswith(b"allocated\n")
    if mode == "stat":
        assert report["functions"]["malloc"]["calls"] >= 6001 and report["complete"]
    elif how != "child":
        assert (report["lost"] == 0) == (how == "wrong")


@pytest.mark.parametrize("mode", MODES)
def test_confined_program(same, target, mode):
    """A program that is executed with a filter which the library could not load under runs without it."""
    bare, report = same(mode, [target("confined"), "exec"], alone=True)
    assert bare.stdout == b"executed\n"
    if mode == "stat":
        assert named(report) == [("echo", "with a filter of system calls (seccomp)")]


@pytest.mark.fast("stat")
@pytest.mark.parametrize("mode", MODES)
def test_environment(same, target, mode):
    """/proc/self/environ has the same entries, and nothing of the library."""
    argv = [target("harm"), "memory"]
    bare, _ = same(mode, argv, env={"NAME": "value"})
    assert b"LD_PRELOAD" not in bare.stdout
    bare, _ = same(mode, argv, env={"LD_PRELOAD": "libm.so.6"})
    assert bare.stdout.count(b"LD_PRELOAD=libm.so.6\n") == 2


TARGETS = ["every_function", "throw", "longjmp", "cancel", "pthread_exit_main", "print_backtrace", "signals", "segv",
           "ignore_int", "close_all", "exec_itself 50", "fork_storm", "threads 64 100", "many_stacks -t 4 100000 1000",
           "own_malloc", "live_random 1 1 5000", "contexts", "daemonize", "spawn", "vfork_exec", "return_hazards jump",
           "return_hazards unwind", "return_hazards exit",
           "return_hazards cancel", "return_hazards fork", "swap_code"]


@pytest.mark.covering(1)
@pytest.mark.fast("live-segv", "live-cancel", "live-throw")
@pytest.mark.parametrize("words", TARGETS)
@pytest.mark.parametrize("mode", [*MODES, "events"])
def test_targets(same, target, mode, words):
    name, *arguments = words.split()
    if name == "swap_code":
        arguments = [target("libswap_a.so"), target("libswap_b.so")]
    same(mode, [target(name), *arguments])


ALLOCATES = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 10; i++) { void *volatile p = malloc(10); free(p); }
	puts(getenv("LD_PRELOAD") ? "seen" : "fine");
	return 5;
}
"""


def named(report):
    return [(program["name"], program["why"]) for program in report["unprobed_programs"]]


@pytest.mark.covering(2)
@pytest.mark.fast("stat-gcc-address", "record-gcc-address", "stat-clang-address")
@pytest.mark.parametrize("sanitizer", ["address", "thread", "leak"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("mode", ["stat", "record"])
def test_sanitizer(same, compiled, mode, compiler, sanitizer):
    """gcc's ends where its library is not the first, clang's is in the program. It is named, also as a child, or
    counted by uprobes."""
    program = compiled(ALLOCATES, f"-fsanitize={sanitizer}", compiler=compiler)
    for argv in [program], ["sh", "-c", f"{program}; exit $?"]:
        bare, report = same(mode, argv, alone=True)
        assert bare.status == 5 and bare.stdout == b"fine\n"
        if mode == "stat":
            assert named(report) == [("program", "with a sanitizer")] and not report["complete"]
            report = same(mode, argv)[1]
            assert report["functions"]["malloc"]["calls"] >= 10 or not report["complete"]


def test_undefined_sanitizer(same, compiled):
    """It has no allocator."""
    _, report = same("stat", [compiled(ALLOCATES, "-fsanitize=undefined")])
    assert report["functions"]["malloc"]["calls"] >= 10 and report["complete"]


def test_sanitizer_is_preloaded(same, compiled):
    program = compiled(ALLOCATES)
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True).stdout.decode().strip()
    bare, report = same("stat", ["sh", "-c", f"LD_PRELOAD={library} {program}; exit $?"], alone=True)
    assert bare.stdout == b"seen\n" and named(report) == [("program", "with a sanitizer")]
    bare, report = same("stat", [program], alone=True, env={"LD_PRELOAD": library})
    assert bare.stdout == b"seen\n" and named(report) == [("program", "with a sanitizer")]


def test_finding_of_a_sanitizer(same, compiled):
    """What it reports is what it reports by itself: its process numbers and addresses apart."""
    program = compiled("#include <stdlib.h>\nint main(void) { char *volatile p = malloc(10); return p[10]; }",
                       "-fsanitize=address")
    bare, _ = same("stat", ["sh", "-c", f"{program} 2>&1 | grep -o 'heap-buffer-overflow' | head -n 1"])
    assert bare.stdout == b"heap-buffer-overflow\n"


@pytest.mark.fast("stat")
@pytest.mark.parametrize("mode", ["stat", "record"])
def test_valgrind(same, run, allocprof, compiled, mode, own_libc):
    # Of its own, since others may not set probes in a file that valgrind has mapped.
    if not shutil.which("valgrind"):
        unavailable("valgrind is not installed")
    program = compiled(ALLOCATES)
    for argv in ["valgrind", "-q", program], ["sh", "-c", f"valgrind -q {program}; exit $?"]:
        bare, report = same(mode, argv, env=own_libc)
        assert bare.status == 5 and bare.stdout == b"seen\n"  # valgrind's own
        if mode == "stat":
            assert named(report) == [("valgrind", "a translator of machine code")]
    # Nor are uprobes proposed, which would end what it runs.
    told = run([allocprof, "stat", "--engine=preload", "--", "valgrind", "-q", program], env=own_libc).stderr.decode()
    told = " ".join(told.split())
    assert "a translator of machine code" in told and "run it without the translator" in told
    assert "--engine=uprobe" not in told


# All of its blocks are in one array, and others end it. The C library's reallocarray calls the program's realloc.
OWN_MALLOC = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char room[1 << 20];
static size_t used;
void *malloc(size_t size)
{
	size_t *block = (size_t *)(room + used);
	used += (size + 31) & ~15UL;
	*block = size;
	return block + 2;
}
void free(void *block)
{
	if (block && ((char *)block < room || (char *)block >= room + sizeof(room)))
		abort();
}
void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }
void *realloc(void *old, size_t size)
{
	void *block = malloc(size);
	free(old);
	return old ? memcpy(block, old, ((size_t *)old)[-2] < size ? ((size_t *)old)[-2] : size) : block;
}
int main(void)
{
	char *text = strdup("text");
	text = reallocarray(text, 20, 10);
	text = reallocarray(text, 1, 1000);
	puts(text);
	free(text);
	free(reallocarray(NULL, 3, 5));
	return 4;
}
"""


@pytest.mark.covering(1)
@pytest.mark.fast("live-alone")
@pytest.mark.parametrize("alone", [False, True], ids=["with_uprobes", "alone"])
@pytest.mark.parametrize("mode", MODES)
def test_malloc_of_the_program(same, compiled, mode, alone):
    """Its blocks go to no other allocator."""
    bare, report = same(mode, [compiled(OWN_MALLOC)], alone=alone)
    assert (bare.status, bare.stdout) == (4, b"text\n")


OPERATORS = """
#include <cstdlib>
#include <new>
int main() { for (int i = 0; i < 10; i++) { char *volatile p = new char[100]; delete[] p; std::free(std::malloc(3)); } return 4; }
"""
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.*"]


@pytest.mark.fast("libjemalloc.so.2")
@pytest.mark.parametrize("library", ALLOCATORS)
def test_functions_of_an_allocator(same, compiled, library):
    """They are counted, whoever has them."""
    path = next(iter(pathlib.Path("/usr/lib/x86_64-linux-gnu").glob(library)), None)
    if not path:
        unavailable(f"{library} is not installed: scripts/setup --test")

    def counted(program, env):
        bare, report = same("stat", [program], env=env)
        assert bare.status in (4, 5) and report["functions"]["malloc"]["calls"] >= 10
        assert report["complete"] and not report.get("engine_gaps")
        return report["functions"].get("new", {"calls": 0})["calls"]
    with_operators = compiled(OPERATORS, compiler="g++", name="operators")
    # tcmalloc's own code uses its operator twice, when it is loaded; from 2.16 on it does not.
    own = counted(compiled(ALLOCATES), {"LD_PRELOAD": str(path)})
    assert own in ((0, 2) if "tcmalloc" in library else (0,))
    assert counted(with_operators, {"LD_PRELOAD": str(path)}) == own + 10
    # The C++ library's operators call malloc, which counts.
    assert counted(with_operators, {}) == 0


LOADS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], RTLD_NOW | FLAGS);
	printf("%s\\n", library ? "loaded" : dlerror());
	return !library;
}
"""


@pytest.mark.fast("deep")
@pytest.mark.parametrize("flags, words, is_missing", [("0", [], False), ("RTLD_DEEPBIND", [], True), ("0", ["new"], True)],
                         ids=["plain", "deep", "namespace"])
def test_library_with_its_own_allocator(same, compiled, target, flags, words, is_missing):
    """A library that does not find the functions of the one that counts is named."""
    program = compiled(LOADS, f"-DFLAGS={flags}", "-D_GNU_SOURCE", "-ldl")
    bare, report = same("stat", [program, target("liballocating.so"), *words])
    assert bare.stdout == b"loaded\n"
    assert report["complete"] == (not is_missing)
    assert [("dlmopen" in gap) for gap in report.get("engine_gaps", [])] == [True] * is_missing


def in_shared_memory(run, allocprof, tmp_path, mode, argv):
    """Bytes of memory that a measurement took, which has its shared memory in a file system of its own."""
    words = {"stat": ["stat", "-o", "/dev/null"], "live": ["record", "-q", "--no-symbols", "--live", "-o", tmp_path / "x"]}[mode]
    directory = tmp_path / "memory"
    directory.mkdir(exist_ok=True)
    script = ('mount -t tmpfs none "$1"; shift; "$@"; s=$?; exit $s')
    sample = ["sh", "-c", f'"$@"; stat -f -c "%b %f %S" {directory}', "sh"]
    result = run(["unshare", "-m", "sh", "-c", script, "sh", directory, "env", f"ALLOCPROF_INSIDE_DIR={directory}",
                  allocprof, *words, "--engine=preload", "--", *sample, *argv], expect=0)
    total, free, size = result.stdout.split()[-3:]
    return (int(total) - int(free)) * int(size)


THREADS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t barrier;
static void *work(void *unused)
{
	free(malloc(10));
	pthread_barrier_wait(&barrier);
	return NULL;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	pthread_t *threads = malloc(n * sizeof(*threads));
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, NULL)) return 2;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
	return 0;
}
"""
BLOCKS = """
#include <stdlib.h>
int main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i > 0; i--) { void *volatile p = malloc(24); (void)p; }
	return 0;
}
"""
CHILDREN = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i > 0; i--) {
		pid_t pid = fork();
		if (!pid) { free(malloc(10)); _exit(0); }
		waitpid(pid, NULL, 0);
	}
	return 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("source, n, most_bytes, mode", [
    (THREADS, 1000, 64 << 10, "live"), (BLOCKS, 1000000, 48, "live"), (CHILDREN, 2000, 8 << 10, "stat"),
    (CHILDREN, 2000, 32 << 10, "live")], ids=["thread", "block", "child", "child_live"])
def test_memory(run, allocprof, compiled, tmp_path, source, n, most_bytes, mode):
    """What each thread, live block, and child that has ended has in shared memory."""
    program = compiled(source)
    few, many = (in_shared_memory(run, allocprof, tmp_path, mode, [program, str(count)]) for count in (n // 10, n))
    each = (many - few) / (n - n // 10)
    print(f"{each:.0f} bytes each")
    assert few > 0 and each <= most_bytes
    # The recorder gives back the memory of ended children while others run, so what is left at the end differs.
    assert each > 0 or source == CHILDREN


SMALL = {"stacks": ["many_stacks", "20000", "100000"], "threads": ["threads", "64", "1000"], "forks": ["fork_storm"]}


@pytest.mark.covering(2)
@pytest.mark.fast("record-1m-stacks")
@pytest.mark.parametrize("words", SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("size", ("1m", "3m"))
@pytest.mark.parametrize("mode", MODES)
def test_full_file_system(run, allocprof, target, tmp_path, mode, size, words):
    """The file system of the shared memory fills up, as /dev/shm of a container with 64 MiB may: the target goes on,
    and what found no room counts as lost."""
    options = {"stat": ["stat", "-o", tmp_path / "x"], "record": ["record", "-q", "-o", tmp_path / "x"],
               "live": ["record", "-q", "--live", "-o", tmp_path / "x"]}[mode]
    directory = tmp_path / "memory"
    directory.mkdir()
    argv = [target(words[0]), *words[1:]]
    script = 'mount -t tmpfs -o size="$1" none "$2"; shift 2; exec "$@"'
    result = run(["unshare", "-m", "sh", "-c", script, "sh", size, directory, "env", f"ALLOCPROF_INSIDE_DIR={directory}",
                  *WITHOUT_PRIVILEGES, allocprof, *options, "--engine=preload", "--", *argv])
    bare = run(argv)
    assert (result.status, result.stdout) == (bare.status, bare.stdout), result
    if mode != "stat" and (size == "1m" or words[0] != "threads"):
        assert b"not complete" in result.stderr, result
    if b"(no_room)" in result.stderr:
        assert b"--shm-size" in result.stderr and b"ALLOCPROF_INSIDE_DIR" in result.stderr
    assert b"--max-live" not in result.stderr and b"--max-records" not in result.stderr


def test_blocks_in_a_full_file_system(run, allocprof, compiled, tmp_path):
    """No room for more blocks in 64 MB: what helps is named, and the target does not try again at each call."""
    directory = tmp_path / "memory"
    directory.mkdir()
    program = compiled("#include <stdlib.h>\nint main(void) { for (int i = 0; i < 1500000; i++) malloc(16); return 0; }")
    script = 'mount -t tmpfs -o size=64m none "$1"; shift 1; exec "$@"'
    result = run(["unshare", "-m", "sh", "-c", script, "sh", directory, "env", f"ALLOCPROF_INSIDE_DIR={directory}",
                  allocprof, "record", "--live", "--engine=preload", "-o", tmp_path / "x", "--", program], expect=0)
    text = result.stderr.decode()
    assert "(no_room)" in text and "docker run --shm-size" in text and "ALLOCPROF_INSIDE_DIR" in text
    assert "--max-live" not in text and "live_full" not in text
