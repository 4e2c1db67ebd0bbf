// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "enterable.h"

#include <asm/stat.h>
#include <asm/unistd.h>
#include <elf.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "elf_symbols.h"
#include "inside_abi.h"
#include "own_malloc.h"
#include "refusal_abi.h"
#include "sanitizer.h"
#include "sys.h"

/* As the kernel reads of a file that is executed. */
#define HEAD_BYTES 256

/* Interpreters of interpreters, as in the kernel. */
#define MAX_INTERPRETERS 5

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
	int n = header->e_phnum < ELF_MAX_PROGRAM_HEADERS ? header->e_phnum
							  : ELF_MAX_PROGRAM_HEADERS;

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

/* A dynamic linker can be executed, too, and loads the program that its arguments name. A static program at any address looks like
 * one, and says that it is a program. */
static bool program__is_linker(int fd, const Elf64_Ehdr *header)
{
	struct file_symbols symbols;
	Elf64_Dyn entry;

	if (!file_symbols__open(&symbols, fd, header))
		return false;
	for (__u32 i = 0; file_symbols__entry(&symbols, i, &entry); i++)
		if (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE)
			return false;
	return true;
}

static struct ap_program describe(int fd)
{
	struct ap_program program = {
		.user = sys(__NR_getuid, 0, 0, 0, 0, 0, 0),
		.effective_user = sys(__NR_geteuid, 0, 0, 0, 0, 0, 0),
		.group = sys(__NR_getgid, 0, 0, 0, 0, 0, 0),
		.effective_group = sys(__NR_getegid, 0, 0, 0, 0, 0, 0),
		.has_capabilities =
			sys(__NR_fgetxattr, fd, (long)"security.capability", 0, 0, 0, 0) > 0,
	};
	struct stat status;

	if (sys(__NR_fstat, fd, (long)&status, 0, 0, 0, 0))
		return program;
	program.mode = status.st_mode;
	program.owner = status.st_uid;
	program.owning_group = status.st_gid;
	return program;
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
	struct ap_program program = describe(fd);

	program.is_foreign =
		header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64;
	if (!program.is_foreign)
		program.is_static = !has_interpreter(fd, header) && !program__is_linker(fd, header);
	/* Symbols are read only where nothing else decides. */
	if (ap_program__refusal(&program) < 0)
		program.has_sanitizer = sanitizer__is_in(fd, header);
	if (looks && ap_program__refusal(&program) < 0)
		program.has_malloc = program__has_malloc(fd, header);
	return ap_program__refusal(&program);
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
