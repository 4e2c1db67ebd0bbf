# SPDX-License-Identifier: GPL-3.0-or-later
"""What test_inside_harm asks, where several threads or processes, or the end of the measurement, are needed for it."""

import contextlib
import sqlite3

import pytest

from support import TIMEOUT_SECONDS, wait_until

LOADS = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int is_over;
static void *load_in_vain(void *path)
{
	while (!is_over)
		if (dlopen(path, RTLD_NOW)) exit(2);
	return NULL;
}
static void *unload(void *path)
{
	while (!is_over) {
		void *library = dlopen(path, RTLD_NOW);
		if (!library) exit(3);
		dlclose(library);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, load_in_vain, argv[1]);
	pthread_create(&threads[1], NULL, unload, argv[2]);
	for (int i = 0; i < 40000; i++)
		if (!dlopen("libm.so.6", RTLD_NOW)) exit(4);
	is_over = 1;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	puts("loaded");
	return 0;
}
"""


@pytest.mark.fast("stat")
@pytest.mark.parametrize("mode", ["stat", "live"])
def test_libraries_go_meanwhile(same, compiled, mode):
    """The objects are looked at only while none is unmapped: of libraries that are unloaded, or could not be loaded."""
    functions = "".join(f"int function_{i}(void) {{ return {i}; }}" for i in range(4000))
    broken = compiled(functions + "int nowhere(void); int broken(void) { return nowhere(); }", "-shared", "-fPIC", name="broken.so")
    other = compiled(functions, "-shared", "-fPIC", name="other.so")
    bare, _ = same(mode, [compiled(LOADS, "-ldl", name="loads"), broken, other])
    assert bare.stdout == b"loaded\n", bare


RELOCATED = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW);
	int (*use)(void) = library ? (int (*)(void))dlsym(library, "use") : NULL;
	printf("%d\\n", use ? use() : -1);
	return 0;
}
"""
RESOLVER = """
#include <dlfcn.h>
static int seven(void) { return 7; }
static void *resolve(void) { dlopen("libm.so.6", RTLD_NOW); return seven; }
int resolved(void) __attribute__((ifunc("resolve")));
"""
ALLOCATOR = """
#include <stdlib.h>
static char memory[4096];
void *mi_malloc(size_t size) { return memory; }
void mi_free(void *block) { }
"""
USER = """
#include <stddef.h>
void *mi_malloc(size_t size);
void mi_free(void *block);
int resolved(void);
int use(void)
{
	int result = resolved();
	for (int i = 0; i < 5000; i++) mi_free(mi_malloc(10));
	return result;
}
"""


def test_words_of_an_object_that_is_being_loaded(same, compiled, tmp_path):
    """Another dlopen(3) that ends before the object has its addresses is not the last one to look at its words."""
    shared = ["-shared", "-fPIC", f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}"]
    compiled(ALLOCATOR, *shared, name="libown.so")
    compiled(RESOLVER, "-shared", "-fPIC", "-ldl", name="libresolver.so")
    user = compiled(USER, *shared, "-l:libresolver.so", "-l:libown.so", name="user.so")
    bare, report = same("stat", [compiled(RELOCATED, "-ldl", name="relocated"), user])
    assert bare.stdout == b"7\n", bare
    assert report["functions"]["malloc"]["calls"] >= 5000 and report["complete"], report


LEFT = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static long mapped(const char *what)
{
	char line[512];
	unsigned long start, end;
	long size = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, what) && sscanf(line, "%lx-%lx", &start, &end) == 2) size += end - start;
	fclose(maps);
	return size;
}
int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	int to[2], child;
	long before, after;
	while (!mapped("/memory (deleted)")) usleep(1000);
	pipe(to);
	before = mapped("/memory");
	child = fork();
	if (!child) {
		free(malloc(10));
		after = mapped("/memory");
		write(to[1], &after, sizeof(after));
		_exit(0);
	}
	read(to[0], &after, sizeof(after));
	waitpid(child, NULL, 0);
	fprintf(out, "%ld\\n", after - before);
	fflush(out);
	child = fork();
	if (!child) {
		dup2(fileno(out), 1);
		execl("/bin/grep", "grep", "-c", "/memory", "/proc/self/maps", NULL);
	}
	waitpid(child, NULL, 0);
	fprintf(out, "end\\n");
	return 0;
}
"""


@pytest.mark.fast("stat")
@pytest.mark.parametrize("mode", ["stat", "live"])
def test_what_begins_afterwards(allocprof, runner, compiled, tmp_path, mode):
    """When allocprof has left, a process that begins takes no memory and enters nothing."""
    said = tmp_path / "said"
    words = ["stat"] if mode == "stat" else ["record", "--live"]
    runner.start([allocprof, *words, "--engine=preload", "--duration", "0.2", "-o", tmp_path / "data", "--",
                  compiled(LEFT, name="left"), said])
    wait_until(lambda: said.exists() and said.read_text().endswith("end\n"), "the target has said what there is")
    assert said.read_text().split() == ["0", "0", "end"]


WAITS = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}
int main(int argc, char **argv)
{
	FILE *out = fopen(argv[1], "w");
	int was = getppid();
	double begin;
	fprintf(out, "begun\\n");
	fflush(out);
	while (getppid() == was) usleep(1000);
	begin = now();
	for (int i = 0; i < 2; i++) {
		int child = fork();
		if (!child) {
			execv(argv[2 + i], argv + 2 + i);
			_exit(9);
		}
		waitpid(child, NULL, 0);
	}
	fprintf(out, "%f end\\n", now() - begin);
	return 0;
}
"""


@pytest.mark.parametrize("mode", ["stat", "record"])
def test_allocprof_was_killed(allocprof, runner, compiled, tmp_path, mode):
    """Nobody waits for the answers and tables of an allocprof that is no more."""
    said = tmp_path / "said"
    blocks = compiled("#include <stdlib.h>\nint main(void) { free(malloc(10)); return 0; }", name="blocks")
    static = compiled("int main(void) { return 0; }", "-static", name="static")
    process = runner.start([allocprof, mode, "--engine=preload", "-o", tmp_path / "data", "--", compiled(WAITS, name="waits"),
                            said, static, blocks])
    wait_until(lambda: said.exists() and said.read_text(), "the target has begun")
    process.kill()
    process.wait(TIMEOUT_SECONDS)
    wait_until(lambda: said.exists() and said.read_text().endswith("end\n"), "the target has said how long it took")
    assert float(said.read_text().split()[1]) < 3


# PREPARE is what the child of vfork(2) does before it executes a program, in a thread that has not allocated.
VFORKS = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define N 2000000
static pthread_barrier_t barrier;
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_fprog program = { 4, filter };
static void work(void) { for (int i = 0; i < N; i++) free(malloc(24)); }
static void *beside(void *unused)
{
	free(malloc(10));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	work();
	return NULL;
}
static void *spawn(void *unused)
{
	static char *const argv[] = { "true", NULL }, *const none[] = { NULL };
	int pid;
	pthread_barrier_wait(&barrier);
	pid = vfork();
	if (!pid) {
		PREPARE;
		execve("/bin/true", argv, none);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	pid = vfork();
	if (!pid) {
		execve("/bin/true", argv, none);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	pthread_barrier_wait(&barrier);
	work();
	return NULL;
}
int main(void)
{
	pthread_t threads[2];
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&threads[0], NULL, beside, NULL);
	pthread_create(&threads[1], NULL, spawn, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
"""


def bare_mallocs(same, compiled):
    """What the program of VFORKS allocates beside its two loops."""
    _, report = same("stat", [compiled(VFORKS.replace("PREPARE", "").replace("2000000", "0"), name="vforks_nothing")])
    return report["functions"]["malloc"]["calls"]


@pytest.mark.parametrize("prepare", ["", 'prctl(PR_SET_NAME, "renamed")',
                                     "prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)"],
                         ids=["plain", "name", "filter"])
def test_child_of_a_thread_that_has_not_allocated(same, compiled, prepare):
    """It is not that thread's end, name or limit."""
    _, report = same("stat", [compiled(VFORKS.replace("PREPARE", prepare), name="vforks")], alone=True)
    assert report["functions"]["malloc"]["calls"] == bare_mallocs(same, compiled) + 2 * 2000000
    refused = [("true", "with a filter of system calls (seccomp)")] if "SECCOMP" in prepare else []
    assert [(program["name"], program["why"]) for program in report["unprobed_programs"]] == refused
    assert all(program["processes"] == 1 for program in report["unprobed_programs"])


def test_name_of_a_child(same, compiled, tmp_path):
    """A child of vfork(2) that renames itself has its parent's thread, whose calls keep their name."""
    argv = [compiled(VFORKS.replace("PREPARE", 'prctl(PR_SET_NAME, "renamed")'), name="vforks")]
    same("record", argv)
    with contextlib.closing(sqlite3.connect(tmp_path / "record.out")) as data:
        assert {name for name, in data.execute("SELECT t.name FROM counts c JOIN threads t ON t.id = c.thread")} == {"vforks"}


SEARCHES = r"""
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int pid;
	setenv("PATH", argv[1], 1);
	if (!strcmp(argv[2], "spawn")) {
		posix_spawnp(&pid, argv[3], NULL, NULL, argv + 3, (char *[]){ "A=1", NULL });
		waitpid(pid, NULL, 0);
		return 0;
	}
	execvp(argv[3], argv + 3);
	return 1;
}
"""
SHOWS = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 1000; i++) free(malloc(10));
	puts(getenv("LD_PRELOAD") ? "seen" : "fine");
	return 0;
}
"""


@pytest.mark.parametrize("way", ["exec", "spawn"])
def test_directory_in_path(same, compiled, tmp_path, way):
    """A directory of the command's name is not the command: here that is a static program."""
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "command").mkdir(parents=True)
    second.mkdir()
    compiled(SHOWS, "-static", name="shows").rename(second / "command")
    bare, report = same("stat", [compiled(SEARCHES, name="searches"), f"{first}:{second}", way, "command"], alone=True)
    assert bare.stdout == b"fine\n", bare
    assert [program["why"] for program in report["unprobed_programs"]] == ["statically linked"]


# A filter permits a call with one argument only.
ARGUMENTS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
static __attribute__((noinline)) void left(unsigned bits, int depth);
static __attribute__((noinline)) void right(unsigned bits, int depth)
{
	if (depth) (bits & 1 ? left : right)(bits >> 1, depth - 1); else free(malloc(20));
	__asm__ volatile("");
}
static __attribute__((noinline)) void left(unsigned bits, int depth)
{
	if (depth) (bits & 1 ? left : right)(bits >> 1, depth - 1); else free(malloc(30));
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	int opens = !strcmp(argv[1], "open"), maps = !strcmp(argv[1], "map");
	struct sock_filter filter[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, opens ? SYS_openat : maps ? SYS_mmap : SYS_madvise, 0, 4),
		LOAD(args[2]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, opens ? O_ACCMODE : maps ? PROT_WRITE : 0xff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, opens ? O_RDONLY : maps ? PROT_WRITE : MADV_DONTDUMP, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 7, filter };
	free(malloc(100000));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) return 2;
	/* Tables grow, and a file is met that nobody knows yet. */
	for (int i = 0; i < 4096; i++) left(i, 12);
	qsort(&(int[]){ 2, 1 }, 2, sizeof(int), (int (*)(const void *, const void *))strcmp);
	puts("allocated");
	return 0;
}
"""


@pytest.mark.fast("record-advise")
@pytest.mark.parametrize("what", ["open", "advise", "map"])
@pytest.mark.parametrize("mode", ["record", "live"])
def test_filter_of_arguments(same, compiled, mode, what):
    """What is permitted with one argument may be forbidden with another one. Nothing is lost: what is permitted is enough."""
    bare, report = same(mode, [compiled(ARGUMENTS, name="arguments"), what])
    assert bare.stdout == b"allocated\n", bare
    assert report["lost"] == 0, report


FILLS = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>
static __attribute__((noinline)) void recurse(uint64_t bits, int n)
{
	if (!n) free(malloc(16));
	else if (bits & 1) recurse(bits >> 1, n - 1);
	else recurse(bits >> 1, n - 1);
	__asm__ volatile("");
}
static char buffer[1 << 20];
int main(int argc, char **argv)
{
	int fd = open(argv[1], O_CREAT | O_WRONLY, 0600);
	for (int i = 0; i < 200; i++) recurse(i, 13);
	/* It waits in front of the limit, and then fills all that is left. */
	for (int i = 0; i < 200; i++) write(fd, buffer, sizeof(buffer));
	sleep(1);
	while (write(fd, buffer, sizeof(buffer)) > 0) ;
	while (write(fd, buffer, 4096) > 0) ;
	for (int i = 0; i < 8000; i++) recurse(i, 13);
	unlink(argv[1]);
	puts("done");
	return 0;
}
"""


@pytest.mark.parametrize("words", [["stat"], ["record"], ["record", "--live"]], ids=["stat", "record", "live"])
def test_no_room_for_what_was_mapped(run, allocprof, compiled, tmp_path, words):
    """What a process has mapped has pages before the file system is full."""
    full = tmp_path / "full"
    full.mkdir()
    result = run(["unshare", "-m", "--propagation", "private", "sh", "-c", 'mount -t tmpfs -o size=400m none "$0" && exec "$@"', full,
                  allocprof, *words, "--engine=preload", "-o", tmp_path / "data", "--", compiled(FILLS, name="fills"), full / "big"],
                 env={"ALLOCPROF_INSIDE_DIR": str(full)})
    assert (result.status, result.stdout) == (0, b"done\n"), result


NAMELESS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };
	int status = 9;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) return 2;
	if (!fork()) {
		for (int i = 0; i < 1000; i++) free(malloc(10));
		_exit(3);
	}
	wait(&status);
	return WEXITSTATUS(status);
}
"""


def test_child_without_a_number(same, compiled):
    """Calls of a forked child that may not ask for its number are missing, and said to be."""
    bare, report = same("stat", [compiled(NAMELESS, name="nameless")])
    assert bare.status == 3
    gap, = report["engine_gaps"]
    assert gap.startswith("1 program ") and not report["complete"], report


# Code without call frame information that has the frame pointer for itself, as a compiler at run time makes it, on a stack of
# which the half was given back.
STALE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static ucontext_t first, second;
static char *room;
static size_t size = 1 << 20;
void made(void *frame_pointer);
__asm__(".text\n.type made, @function\nmade: push %rbp\n sub $32, %rsp\n mov %rdi, %rbp\n mov $24, %edi\n"
	" call malloc@plt\n nop\n nop\n add $32, %rsp\n pop %rbp\n nop\n ret\n");
static void body(void)
{
	free(malloc(24));
	if (munmap(room + size / 2, size / 2)) perror("munmap");
	made(room + size / 2 + 4096);
}
int main(void)
{
	room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	getcontext(&second);
	second.uc_stack.ss_sp = room;
	second.uc_stack.ss_size = size / 2;
	second.uc_link = &first;
	makecontext(&second, body, 0);
	swapcontext(&first, &second);
	puts("done");
	return 0;
}
"""


@pytest.mark.parametrize("mode", ["record", "live"])
def test_frame_pointer_to_what_was_unmapped(same, compiled, mode):
    bare, report = same(mode, [compiled(STALE, name="stale")])
    assert bare.stdout == b"done\n" and report["lost"] == 0


KEEPS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void keep(void) { for (int i = 0; i < 100000; i++) malloc(16); }
int main(void)
{
	if (!fork()) {
		keep();
		_exit(0);
	}
	wait(NULL);
	keep();
	return 0;
}
"""


def test_limit_of_sampled_blocks(run, allocprof, compiled, tmp_path):
    """A process that ends takes as many blocks out of the number as it has, and not what they stand for."""
    run([allocprof, "record", "-q", "--engine=preload", "--live", "--sample", "1K", "--max-live", "100", "-o", tmp_path / "data", "--",
         compiled(KEEPS, name="keeps")], expect=0)
    with contextlib.closing(sqlite3.connect(tmp_path / "data")) as data:
        untracked, = data.execute("SELECT value FROM ledger WHERE name = 'untracked_live_full'").fetchone()
    assert untracked > 150000
