// SPDX-License-Identifier: GPL-3.0-or-later
#include "debug_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "cleanup.h"
#include "elf_file.h"
#include "file.h"
#include "mapped_file.h"
#include "path.h"

#define SYSTEM_DIR "/usr/lib/debug"

/* Limit of debug sections in memory, and of files whose checksum is compared; chromium's have 3
 * GiB. */
#define MAX_DEBUG_BYTES (4ULL << 30)

/* Returns the memory for debug sections that are compressed or, if the file is not @mapped, for
 * all of them. */
static __u64 memory_bytes(Elf *elf, bool mapped)
{
	Elf_Scn *section = NULL;
	size_t names;
	__u64 sum = 0;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;
		GElf_Chdr compressed;
		__u64 size;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (!name || (strncmp(name, ".debug_", 7) && strncmp(name, ".zdebug_", 8)))
			continue;
		size = mapped ? 0 : header.sh_size;
		if (header.sh_flags & SHF_COMPRESSED) {
			if (gelf_getchdr(section, &compressed))
				size = compressed.ch_size;
		} else if (name[1] == 'z') {
			ssize_t uncompressed = dwelf_scn_gnu_compressed_size(section);

			size = uncompressed < 0 ? 0 : (__u64)uncompressed;
		}
		if (__builtin_add_overflow(sum, size, &sum))
			return UINT64_MAX;
	}
	return sum;
}

__u64 debug_file__most_memory_bytes(void)
{
	__u64 half = (__u64)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;

	return half < MAX_DEBUG_BYTES ? half : MAX_DEBUG_BYTES;
}

static __u64 most_memory_bytes(int fd)
{
	__u64 most = debug_file__most_memory_bytes();
	__u64 unpacked = elf_open__most_unpacked_bytes(fd);

	return most < unpacked ? most : unpacked;
}

static bool is_mapped(const struct stat *st)
{
	return file_owner__is_only_root(st);
}

__u64 debug_file__memory_bytes(const struct debug_file *file)
{
	struct stat st;

	return memory_bytes(file->elf, !fstat(file->fd, &st) && is_mapped(&st));
}

int debug_file__open(int fd, const char *path, struct debug_file *out, struct error *error)
{
	struct debug_file file = { .fd = fd };
	GElf_Ehdr header;
	struct stat st;
	bool mapped;
	int err = -ENOEXEC;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		error__set(error, 0, "%s is not a regular file", path);
		goto fail;
	}
	mapped = is_mapped(&st);
	if (elf_open__begin(fd, mapped ? ELF_C_READ_MMAP_PRIVATE : ELF_C_READ, &file.elf) ||
	    elf_kind(file.elf) != ELF_K_ELF || !gelf_getehdr(file.elf, &header) ||
	    (header.e_type != ET_DYN && header.e_type != ET_EXEC && header.e_type != ET_REL)) {
		error__set(error, 0, "%s is not an ELF file of code", path);
		goto fail;
	}
	if (memory_bytes(file.elf, mapped) > most_memory_bytes(fd)) {
		err = -EFBIG;
		error__set(error, 0, "the debug information of %s does not fit into memory", path);
		goto fail;
	}
	err = -ENOMEM;
	file.path = strdup(path);
	if (!file.path)
		goto fail;
	*out = file;
	return 0;
fail:
	debug_file__close(&file);
	return err;
}

void debug_file__close(struct debug_file *file)
{
	if (file->elf)
		elf_end(file->elf);
	close_fd(&file->fd);
	free(file->path);
	*file = (struct debug_file)DEBUG_FILE_NONE;
}

int debug_file__reopen(const struct debug_file *file, struct debug_file *out)
{
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -ENOMEM : debug_file__open(fd, file->path, out, NULL);
}

static void write_hex(char *hex, const unsigned char *bytes, size_t n)
{
	*hex = '\0';
	if (n > (BUILD_ID_SIZE - 1) / 2)
		return;
	for (size_t i = 0; i < n; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
}

void debug_file__build_id(Elf *elf, char *build_id)
{
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &bytes);

	write_hex(build_id, bytes, n > 0 ? n : 0);
}

Elf_Scn *debug_file__section(Elf *elf, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *is = gelf_getshdr(section, header)
					 ? elf_strptr(elf, names, header->sh_name)
					 : NULL;

		if (is && !strcmp(is, name) && header->sh_type != SHT_NOBITS)
			return section;
	}
	return NULL;
}

bool debug_file__has_dwarf(Elf *elf)
{
	GElf_Shdr header;

	return debug_file__section(elf, ".debug_info", &header) ||
	       debug_file__section(elf, ".zdebug_info", &header);
}

bool debug_file__has_checksum(int fd, __u32 checksum)
{
	unsigned char buffer[65536];
	unsigned long crc = 0;
	__u64 at = 0;
	ssize_t len = 1;

	while (at <= MAX_DEBUG_BYTES && (len = pread(fd, buffer, sizeof(buffer), (off_t)at)) > 0) {
		crc = crc32(crc, buffer, (uInt)len);
		at += len;
	}
	return !len && (__u32)crc == checksum;
}

/* Conditions that a candidate must meet. */
struct wanted {
	const char *build_id; /* "": none */
	bool has_crc;
	GElf_Word crc;
	struct stat not_this; /* the stripped file itself, which a debuglink may name */
	struct debug_file *out;
	struct error *error; /* says what the first mismatch was */
};

/* Keeps the reason of the first mismatch. */
#define REFUSE(wanted, ...)                                                                        \
	do {                                                                                       \
		if ((wanted)->error && !(wanted)->error->text[0])                                  \
			error__set((wanted)->error, 0, __VA_ARGS__);                               \
	} while (0)

static int check(const struct wanted *wanted, struct debug_file *file)
{
	char build_id[BUILD_ID_SIZE];

	debug_file__build_id(file->elf, build_id);
	if (wanted->build_id[0] && build_id[0]) {
		if (!strcmp(build_id, wanted->build_id))
			return 0;
		REFUSE(wanted, "%s is not used: its build id is %s, not %s", file->path, build_id,
		       wanted->build_id);
		return -ENOENT;
	}
	if (wanted->has_crc) {
		if (debug_file__has_checksum(file->fd, wanted->crc))
			return 0;
		REFUSE(wanted, "%s is not used: its checksum is not the one in .gnu_debuglink",
		       file->path);
		return -ENOENT;
	}
	REFUSE(wanted, "%s is not used: it has no build id to compare", file->path);
	return -ENOENT;
}

/* Takes the file at @path if it matches, and frees @path. Returns 0, -ENOENT or -ENOMEM. */
static int try_path(struct wanted *wanted, char *path)
{
	struct debug_file file = DEBUG_FILE_NONE;
	struct error problem = { 0 };
	struct stat st;
	int fd, err;

	if (!path)
		return -ENOMEM;
	fd = regular_file__open(path);
	if (fd < 0 || fstat(fd, &st) ||
	    (st.st_ino == wanted->not_this.st_ino && st.st_dev == wanted->not_this.st_dev)) {
		close_fd(&fd);
		free(path);
		return -ENOENT;
	}
	err = debug_file__open(fd, path, &file, &problem);
	free(path);
	if (err == -ENOMEM)
		return err;
	if (err) {
		REFUSE(wanted, "%s", problem.text);
		return -ENOENT;
	}
	err = check(wanted, &file);
	if (err)
		debug_file__close(&file);
	else
		*wanted->out = file;
	return err;
}

__attribute__((format(printf, 1, 2))) static char *format(const char *fmt, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	return len < 0 ? NULL : text;
}

static const char *search_dir(const struct debug_search *search, size_t i)
{
	return i < search->n_dirs ? search->dirs[i] : SYSTEM_DIR;
}

static int try_build_id(const struct debug_search *search, struct wanted *wanted)
{
	int err = -ENOENT;

	if (strlen(wanted->build_id) < 6)
		return err;
	for (size_t i = 0; i <= search->n_dirs && err == -ENOENT; i++)
		err = try_path(wanted, format("%s/.build-id/%.2s/%s.debug", search_dir(search, i),
					      wanted->build_id, wanted->build_id + 2));
	return err;
}

static int try_link(const struct debug_search *search, struct wanted *wanted, const char *link)
{
	int dir_size = (int)(path__name(search->path) - search->path);
	int err;

	err = try_path(wanted, format("%.*s%s", dir_size, search->path, link));
	if (err == -ENOENT)
		err = try_path(wanted, format("%.*s.debug/%s", dir_size, search->path, link));
	for (size_t i = 0; i <= search->n_dirs && err == -ENOENT; i++) {
		const char *dir = search_dir(search, i);

		err = try_path(wanted, format("%s/%.*s%s", dir, dir_size, search->path, link));
		if (err == -ENOENT && i < search->n_dirs)
			err = try_path(wanted, format("%s/%s", dir, link));
	}
	return err;
}

static int try_names(const struct debug_search *search, struct wanted *wanted)
{
	static const char *const endings[] = { ".debug", "" };
	int err = -ENOENT;

	for (size_t i = 0; i < search->n_dirs && err == -ENOENT; i++) {
		for (size_t j = 0; j < 4 && err == -ENOENT; j++)
			err = try_path(wanted,
				       format("%s/%s%s", search->dirs[i],
					      j < 2 ? search->path : path__name(search->path),
					      endings[j % 2]));
	}
	return err;
}

int debug_file__find(const struct debug_search *search, struct debug_file *out, struct error *error)
{
	struct wanted wanted = { .build_id = search->build_id, .out = out, .error = error };
	const char *link = dwelf_elf_gnu_debuglink(search->elf, &wanted.crc);
	int err;

	if (fstat(search->fd, &wanted.not_this))
		return -ENOENT;
	err = try_build_id(search, &wanted);
	/* Pseudo files such as [vdso] have no directory to search. */
	if (*search->path != '/')
		return err;
	if (err == -ENOENT && link && *link && !strchr(link, '/')) {
		wanted.has_crc = true;
		err = try_link(search, &wanted, link);
	}
	if (err == -ENOENT)
		err = try_names(search, &wanted);
	return err;
}

bool debug_file__alt_name(const struct debug_file *file, const char **name, char *build_id)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_file__section(file->elf, ".gnu_debugaltlink", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	size_t size;

	if (!data || !data->d_buf)
		return false;
	size = strnlen(data->d_buf, data->d_size);
	*name = data->d_buf;
	write_hex(build_id, (unsigned char *)data->d_buf + size + 1,
		  size < data->d_size ? data->d_size - size - 1 : 0);
	return size < data->d_size && size && *build_id;
}

int debug_file__find_alt(const struct debug_search *search, const struct debug_file *debug,
			 const char *name, const char *build_id, struct debug_file *out,
			 struct error *error)
{
	struct wanted wanted = { .build_id = build_id, .out = out, .error = error };
	char path[PATH_MAX];
	int err;

	if (fstat(debug->fd, &wanted.not_this))
		return -ENOENT;
	/* The name is relative to the file, not to a link to it. */
	mapped_file__path(debug->fd, path, sizeof(path));
	err = try_build_id(search, &wanted);
	if (err == -ENOENT)
		err = try_path(&wanted, *name == '/'
						? strdup(name)
						: format("%.*s%s", (int)(path__name(path) - path),
							 path, name));
	for (size_t i = 0; i <= search->n_dirs && err == -ENOENT; i++)
		err = try_path(&wanted,
			       format("%s/.dwz/%s", search_dir(search, i), path__name(name)));
	return err;
}
