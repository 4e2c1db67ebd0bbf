// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes code at run time that allocates 100 times 1234 bytes, and says so in a jitdump, jit-PID.dump in the directory that is
 * the first argument; it maps that as code, as perf's specification has it. The second argument: "reused": other code
 * comes to the address later, "moved": the code was moved there, "writable": anyone may write to the dump, "machine": the dump is
 * another processor's, "half": the record of the code is not complete, "child": a forked process runs the code. */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum record_id {
	CODE_LOAD,
	CODE_MOVE,
	CODE_DEBUG_INFO,
};

static const char source[] = "/src/made.js";

static void allocate(void)
{
	void *volatile block = malloc(1234);

	free(block);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void put(int fd, const void *bytes, size_t size)
{
	if (write(fd, bytes, size) != (ssize_t)size)
		exit(1);
}

static void put_prefix(int fd, uint32_t id, uint32_t size, uint64_t time_ns)
{
	put(fd, &id, sizeof(id));
	put(fd, &size, sizeof(size));
	put(fd, &time_ns, sizeof(time_ns));
}

static void put_header(int fd, uint32_t machine)
{
	uint32_t words[] = { 0x4a695444, 1, 40, machine, 0, getpid() };
	uint64_t time_and_flags[] = { now_ns(), 0 };

	put(fd, words, sizeof(words));
	put(fd, time_and_flags, sizeof(time_and_flags));
}

/* The call is in line 8, what is before it in line 7. */
static void put_lines(int fd, uint64_t address, uint64_t call)
{
	uint64_t head[] = { address, 2 };
	struct {
		uint64_t address;
		uint32_t line, discriminator;
	} first = { address, 7, 0 }, second = { call, 8, 0 };

	put_prefix(fd, CODE_DEBUG_INFO, 16 + sizeof(head) + 2 * (sizeof(first) + sizeof(source)),
		   0);
	put(fd, head, sizeof(head));
	put(fd, &first, sizeof(first));
	put(fd, source, sizeof(source));
	put(fd, &second, sizeof(second));
	put(fd, source, sizeof(source));
}

static void put_load(int fd, const char *name, const void *code, uint64_t address, size_t size,
		     uint64_t index, uint64_t time_ns)
{
	uint32_t ids[] = { getpid(), getpid() };
	uint64_t places[] = { address, address, size, index };

	put_prefix(fd, CODE_LOAD, 16 + sizeof(ids) + sizeof(places) + strlen(name) + 1 + size,
		   time_ns);
	put(fd, ids, sizeof(ids));
	put(fd, places, sizeof(places));
	put(fd, name, strlen(name) + 1);
	put(fd, code, size);
}

static void put_move(int fd, uint64_t from, uint64_t to, size_t size, uint64_t index)
{
	uint32_t ids[] = { getpid(), getpid() };
	uint64_t places[] = { to, from, to, size, index };

	put_prefix(fd, CODE_MOVE, 16 + sizeof(ids) + sizeof(places), now_ns());
	put(fd, ids, sizeof(ids));
	put(fd, places, sizeof(places));
}

static void write_dump(const char *directory, const char *how, const void *code, size_t size,
		       size_t call)
{
	int moved = !strcmp(how, "moved"), other = !strcmp(how, "machine");
	uint64_t place = (uint64_t)code, first = moved ? place + 0x100000 : place;
	char path[4096];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, getpid());
	umask(0);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, strcmp(how, "writable") ? 0644 : 0666);
	if (fd < 0)
		exit(1);
	put_header(fd, other ? EM_S390 : EM_X86_64);
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(1);
	put_load(fd, "an earlier life", code, place, size, 1, now_ns());
	put_lines(fd, first, first + call);
	put_load(fd, "made at run time", code, first, size, 2, now_ns());
	if (!strcmp(how, "half") && (fstat(fd, &st) || ftruncate(fd, st.st_size - 1)))
		exit(1);
	if (moved)
		put_move(fd, first, place, size, 2);
	/* An hour later, so that nobody can have been here before that. */
	if (!strcmp(how, "reused"))
		put_load(fd, "a later life", code, place, size, 3, now_ns() + 3600 * 1000000000ULL);
	close(fd);
}

int main(int argc, char *argv[])
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret. */
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	const char *how = argc > 2 ? argv[2] : "";
	void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(place, code, sizeof(code));
	mprotect(place, 4096, PROT_READ | PROT_EXEC);
	write_dump(argv[1], how, place, sizeof(code), 4);
	if (!strcmp(how, "child") && fork())
		return wait(NULL) < 0;
	for (int i = 0; i < 100; i++)
		((void (*)(void (*)(void)))place)(allocate);
	return 0;
}
