// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "preloadable.h"

#include <asm/stat.h>
#include <asm/unistd.h>
#include <elf.h>
#include <linux/errno.h>
#include <linux/fcntl.h>

#include "elf_symbols.h"
#include "inside_abi.h"
#include "refusal_abi.h"
#include "sys.h"

#define NAME_BYTES 32

static bool begins_as_library(const char *name)
{
#define BEGINS(text)                                                                               \
	if (text__begins(name, text))                                                              \
		return true;
	SANITIZER_LIBRARIES(BEGINS)
#undef BEGINS
	return false;
}

static bool needs_library(const struct file_symbols *symbols)
{
	char name[NAME_BYTES];
	Elf64_Dyn entry;

	for (__u32 i = 0; file_symbols__entry(symbols, i, &entry); i++) {
		if (entry.d_tag != DT_NEEDED)
			continue;
		file_symbols__string(symbols, entry.d_un.d_val, name, sizeof(name));
		if (begins_as_library(name))
			return true;
	}
	return false;
}

static bool defines_function(const struct file_symbols *symbols)
{
#define DEFINES(name)                                                                              \
	if (file_symbols__define(symbols, name))                                                   \
		return true;
	SANITIZER_FUNCTIONS(DEFINES)
#undef DEFINES
	return false;
}

/* Returns whether the program is built with a sanitizer, judged by the libraries that its file
 * needs and the symbols that it defines. */
static bool sanitizer__is_in(int fd, const Elf64_Ehdr *header)
{
	struct file_symbols symbols;

	return file_symbols__open(&symbols, fd, header) &&
	       (needs_library(&symbols) || defines_function(&symbols));
}

bool sanitizer__is_preloaded(const char *value)
{
	for (bool begins = true; *value; value++) {
		if (begins && begins_as_library(value))
			return true;
		begins = *value == '/' || *value == ':' || *value == ' ';
	}
	return false;
}

/* A program that defines one of these has an allocator linked into it, whose functions only the
 * program itself calls. */
static const char *const hidden_names[] = {
	"je_malloc", "_rjem_malloc", "mi_malloc", "tc_malloc", "scalable_malloc", "GC_malloc",
};

#define MAX_SECTIONS	  4096
#define MAX_SECTION_BYTES (64 << 20)

/* Bytes of the file that are read at a time. A child of vfork(2) may have a small stack. */
#define PART_BYTES 1024

/* Bytes that two parts have in common: more than the longest name with the bytes around it. */
#define OVERLAP 24

static bool read_section(int fd, const Elf64_Ehdr *header, __u32 index, Elf64_Shdr *section)
{
	return index < header->e_shnum && index < MAX_SECTIONS &&
	       !sys__read_at(fd, section, sizeof(*section),
			     header->e_shoff + index * sizeof(*section));
}

/* How many offsets of the names in the string table are kept. A file has each name once, or as the
 * end of longer names. */
#define MAX_OFFSETS 16

struct offsets {
	__u32 n;
	__u32 at[MAX_OFFSETS];
};

static bool has_offset(const struct offsets *offsets, __u32 offset)
{
	for (__u32 i = 0; i < offsets->n; i++)
		if (offsets->at[i] == offset)
			return true;
	return false;
}

static bool is_defined(int fd, const Elf64_Shdr *symbols, const struct offsets *offsets)
{
	Elf64_Sym part[PART_BYTES / sizeof(Elf64_Sym)];
	const __u32 most = sizeof(part) / sizeof(part[0]);
	__u64 left = symbols->sh_size / sizeof(part[0]), at = symbols->sh_offset;

	while (left) {
		__u32 n = left < most ? left : most;

		if (sys__read_at(fd, part, n * sizeof(part[0]), at))
			return false;
		for (__u32 i = 0; i < n; i++)
			if (part[i].st_shndx != SHN_UNDEF &&
			    ELF64_ST_TYPE(part[i].st_info) == STT_FUNC &&
			    has_offset(offsets, part[i].st_name))
				return true;
		left -= n;
		at += n * sizeof(part[0]);
	}
	return false;
}

/* Returns the offset from @from on at which @bytes contains one of the names between two 0 bytes,
 * or @n if there is none. */
static __u32 find_name(const char *bytes, __u32 from, __u32 n)
{
	for (__u32 i = from; i + OVERLAP <= n; i++)
		for (__u32 j = 0; !bytes[i - 1] && j < sizeof(hidden_names) / sizeof(char *); j++)
			if (text__equal(bytes + i, hidden_names[j]))
				return i;
	return n;
}

static void find_offsets(int fd, const Elf64_Shdr *strings, struct offsets *out)
{
	char bytes[PART_BYTES + OVERLAP];
	__u64 at = 0;

	out->n = 0;
	while (at < strings->sh_size) {
		__u64 left = strings->sh_size - at;
		__u32 n = left < PART_BYTES ? left : PART_BYTES, found = 1;

		memset(bytes + n, 0, OVERLAP);
		if (sys__read_at(fd, bytes, n, strings->sh_offset + at))
			return;
		while ((found = find_name(bytes, found, n + OVERLAP)) < n) {
			if (!has_offset(out, at + found))
				out->at[out->n++] = at + found;
			if (out->n == MAX_OFFSETS)
				return;
			found++;
		}
		if (left <= PART_BYTES)
			break;
		at += PART_BYTES - OVERLAP;
	}
}

static bool has_hidden_names(int fd, const Elf64_Ehdr *header)
{
	Elf64_Shdr symbols, strings;
	struct offsets offsets;

	if (header->e_shentsize != sizeof(symbols))
		return false;
	for (__u32 i = 0; read_section(fd, header, i, &symbols); i++)
		if (symbols.sh_type == SHT_SYMTAB) {
			if (symbols.sh_size > MAX_SECTION_BYTES ||
			    !read_section(fd, header, symbols.sh_link, &strings) ||
			    strings.sh_size > MAX_SECTION_BYTES)
				return false;
			find_offsets(fd, &strings, &offsets);
			return offsets.n && is_defined(fd, &symbols, &offsets);
		}
	return false;
}

/* Returns whether the program in the file @fd defines malloc for all of its libraries, or has an
 * allocator for itself alone (je_malloc). */
static bool program__has_malloc(int fd, const Elf64_Ehdr *header)
{
	struct file_symbols exported;

	return (file_symbols__open(&exported, fd, header) &&
		file_symbols__define(&exported, "malloc")) ||
	       has_hidden_names(fd, header);
}

/* How many bytes the kernel reads of a file that is executed (BINPRM_BUF_SIZE). */
#define HEAD_BYTES 256

/* How many interpreters may follow each other, as in the kernel. */
#define MAX_INTERPRETERS 5

#define F_OK 0
#define X_OK 1

static int open_program(const struct program *program)
{
	/* O_NONBLOCK: without it opening a FIFO would wait for a writer. */
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

/* Returns whether the program is a dynamic linker, which can be executed, too, and loads the
 * program that its arguments name. A static position-independent program looks like one, but its
 * DT_FLAGS_1 says that it is a program. */
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

/* Moves the path behind "#!" to the beginning of @head. Returns false if there is none. */
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
		header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != PROCESSOR_MACHINE;
	if (!program.is_foreign)
		program.is_static = !has_interpreter(fd, header) && !program__is_linker(fd, header);
	/* Symbols are read only if nothing cheaper refuses the program. */
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
	/* The process may be able to open the file only by capabilities that it loses with the
	 * exec, so the owner counts, too. */
	may = !sys(__NR_fstat, fd, (long)&status, 0, 0, 0, 0) &&
	      (!(flags & O_RDWR) || ((!user || status.st_uid == user) &&
				     /* The file is truncated when the measurement is over. */
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
		/* An interpreter that does not exist or may not be executed will not run, so
		 * nothing is refused; one that can be executed but not read is. */
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
		/* Any other file is not executed, or an interpreter of binfmt_misc runs it. */
		if (n < 3 || !text__begins(head.text, "#!") || !take_interpreter(head.text, n))
			return -1;
		now = (struct program){ AT_FDCWD, head.text };
	}
	return -1;
}
