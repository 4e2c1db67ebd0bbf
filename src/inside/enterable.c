// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "enterable.h"

#include <asm/stat.h>
#include <asm/unistd.h>
#include <elf.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/stat.h>

#include "inside_abi.h"
#include "own_malloc.h"
#include "refusal_abi.h"
#include "sanitizer.h"
#include "sys.h"

/* As the kernel reads of a file that is executed. */
#define HEAD_BYTES 256

/* Interpreters of interpreters, as in the kernel. */
#define MAX_INTERPRETERS 5

#define MAX_PROGRAM_HEADERS 64

#define F_OK 0
#define X_OK 1

static int open_program(const struct program *program)
{
	/* Not for reading alone: a FIFO would wait. */
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

	if (!*program->path)
		return sys(__NR_fcntl, program->at, F_DUPFD_CLOEXEC, 0, 0, 0, 0);
	return sys(__NR_openat, program->at, (long)program->path, flags, 0, 0, 0);
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
	int n = header->e_phnum < MAX_PROGRAM_HEADERS ? header->e_phnum : MAX_PROGRAM_HEADERS;

	if (header->e_phentsize != sizeof(Elf64_Phdr))
		return false;
	for (int i = 0; i < n; i++) {
		Elf64_Phdr segment;

		if (sys__read_at(fd, &segment, sizeof(segment),
				 header->e_phoff + i * sizeof(segment)))
			return false;
		if (segment.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* Whether the dynamic linker will load nothing by name, as it is told by AT_SECURE. */
static bool changes_privileges(int fd)
{
	__u32 user = sys(__NR_getuid, 0, 0, 0, 0, 0, 0);
	__u32 group = sys(__NR_getgid, 0, 0, 0, 0, 0, 0);
	struct stat status;

	if (user != (__u32)sys(__NR_geteuid, 0, 0, 0, 0, 0, 0) ||
	    group != (__u32)sys(__NR_getegid, 0, 0, 0, 0, 0, 0))
		return true;
	/* Capabilities of the file change nothing for root. */
	if (user && sys(__NR_fgetxattr, fd, (long)"security.capability", 0, 0, 0, 0) > 0)
		return true;
	if (sys(__NR_fstat, fd, (long)&status, 0, 0, 0, 0))
		return false;
	if (status.st_mode & S_ISUID && status.st_uid != user)
		return true;
	return (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	       status.st_gid != group;
}

/* The path behind "#!", put in place at the beginning of @head; false if there is none. */
static bool take_interpreter(char *head, long n)
{
	char *from = head + 2, *to = head;

	head[n < HEAD_BYTES ? n : HEAD_BYTES - 1] = 0;
	while (*from == ' ' || *from == '\t')
		from++;
	while (*from && *from != ' ' && *from != '\t' && *from != '\n')
		*to++ = *from++;
	*to = 0;
	return to > head;
}

static int elf_refusal(int fd, const Elf64_Ehdr *header, bool looks)
{
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
		return INSIDE_REFUSES_MACHINE;
	if (changes_privileges(fd))
		return INSIDE_REFUSES_SECURE;
	if (!has_interpreter(fd, header))
		return INSIDE_REFUSES_STATIC;
	if (sanitizer__is_in(fd, header))
		return INSIDE_REFUSES_SANITIZER;
	return looks && program__has_malloc(fd, header) ? INSIDE_REFUSES_ALLOCATOR : -1;
}

static bool is_translator(const char *path)
{
	const char *name = path;

#define IN_DIRECTORY(part)                                                                         \
	if (text__begins(at, part))                                                                \
		return true;
#define IS(text)                                                                                   \
	if (text__equal(name, text))                                                               \
		return true;
	for (const char *at = path; *at; at++) {
		if (*at != '/')
			continue;
		name = at + 1;
		TRANSLATOR_DIRECTORIES(IN_DIRECTORY)
	}
	TRANSLATOR_NAMES(IS)
#undef IS
#undef IN_DIRECTORY
	return false;
}

bool refusal__clears_environment(int refusal)
{
	/* The dynamic linker complains where it cannot load the library. */
	return refusal == INSIDE_REFUSES_HIDDEN || refusal == INSIDE_REFUSES_MACHINE ||
	       refusal == INSIDE_REFUSES_STATIC || refusal == INSIDE_REFUSES_SANITIZER ||
	       refusal == INSIDE_REFUSES_TRANSLATOR || refusal == INSIDE_REFUSES_CONFINED;
}

static bool can_open(const char *directory, const char *name, int flags)
{
	char path[INSIDE_PATH_BYTES + 16];
	char *stop = path + sizeof(path), *end;
	__u32 user = sys(__NR_geteuid, 0, 0, 0, 0, 0, 0);
	struct stat status;
	bool may;
	int fd;

	end = text__append(path, stop, directory);
	end = text__append(end, stop, name);
	fd = end ? sys__open(path, flags) : -1;
	if (fd < 0)
		return false;
	/* Capabilities by which this process may still open it may be gone after the exec. */
	may = !sys(__NR_fstat, fd, (long)&status, 0, 0, 0, 0) &&
	      (!(flags & O_RDWR) || ((!user || status.st_uid == user) &&
				     /* It is smaller when the measurement is over. */
				     status.st_size >= (long)sizeof(struct inside_header)));
	sys__close(fd);
	return may;
}

bool directory__is_reachable(const char *directory)
{
	return can_open(directory, "/" INSIDE_LIBRARY, O_RDONLY) &&
	       can_open(directory, "/" INSIDE_MEMORY, O_RDWR);
}

bool program__has_path(const struct program *program)
{
	return sys(__NR_faccessat, program->at, (long)program->path, F_OK, 0, 0, 0) != -EFAULT;
}

int program__refusal(const struct program *program, bool looks)
{
	union {
		char text[HEAD_BYTES];
		Elf64_Ehdr elf;
	} head;
	struct program now = *program;

	for (int i = 0; i < MAX_INTERPRETERS; i++) {
		int fd, refusal;
		long n;

		if (is_translator(now.path))
			return INSIDE_REFUSES_TRANSLATOR;
		fd = open_program(&now);
		/* One that is not found, or may not be executed, will not run; others may. */
		if (fd == -EACCES && !sys(__NR_faccessat, now.at, (long)now.path, X_OK, 0, 0, 0))
			return INSIDE_REFUSES_UNREADABLE;
		if (fd < 0)
			return -1;
		n = sys(__NR_pread64, fd, (long)&head, sizeof(head) - 1, 0, 0, 0);
		if (n >= (long)sizeof(head.elf) && text__begins(head.text, "\177ELF")) {
			refusal = elf_refusal(fd, &head.elf, looks);
			sys__close(fd);
			return refusal;
		}
		sys__close(fd);
		/* What the kernel does not know is no program, or one of binfmt_misc's. */
		if (n < 3 || !text__begins(head.text, "#!") || !take_interpreter(head.text, n))
			return -1;
		now = (struct program){ AT_FDCWD, head.text };
	}
	return -1;
}
