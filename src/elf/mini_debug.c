// SPDX-License-Identifier: GPL-3.0-or-later
#include "mini_debug.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "debug_file.h"
#include "file.h"
#include "symbol_table.h"

/* libdwfl reads the whole file. */
#define MAX_FILE_BYTES (1ULL << 30)

/* Firefox's has 30 MiB. 100 MiB of .xz can unpack to half a terabyte. */
#define MAX_UNPACKED_BYTES (256ULL << 20)

#define XZ_HEADER_BYTES 12

struct mini_debug {
	Dwfl *dwfl;
	char *image;
};

/* Adds up the LZMA2 chunks of a block, and moves *@at past it (see liblzma's lzma2_decoder.c). */
static bool sum_chunks(const unsigned char *bytes, size_t size, size_t *at, __u64 *unpacked)
{
	while (*at < size) {
		const unsigned char *chunk = bytes + *at;
		size_t left = size - *at, packed;

		if (!chunk[0]) {
			++*at;
			return true;
		}
		if (chunk[0] >= 0x80) {
			if (left < 6)
				return false;
			*unpacked += ((chunk[0] & 0x1f) << 16 | chunk[1] << 8 | chunk[2]) + 1;
			packed = (chunk[3] << 8 | chunk[4]) + 1 + (chunk[0] >= 0xc0 ? 6 : 5);
		} else {
			if (chunk[0] > 2 || left < 3)
				return false;
			*unpacked += (chunk[1] << 8 | chunk[2]) + 1;
			packed = (chunk[1] << 8 | chunk[2]) + 1 + 3;
		}
		if (packed > left)
			return false;
		*at += packed;
	}
	return false;
}

bool mini_debug__unpacked_size(const unsigned char *bytes, size_t size, __u64 *unpacked)
{
	static const unsigned char magic[] = { 0xfd, '7', 'z', 'X', 'Z', 0, 0 };
	static const unsigned char check_bytes[16] = { 0,  4,  4,  4,  8,  8,  8,  16,
						       16, 16, 32, 32, 32, 64, 64, 64 };
	size_t at = XZ_HEADER_BYTES, check;
	__u64 sum = 0;

	if (size < XZ_HEADER_BYTES || memcmp(bytes, magic, sizeof(magic)) || bytes[7] > 15)
		return false;
	check = check_bytes[bytes[7]];
	/* A block header begins with its size; 0 begins the index. */
	while (at < size && bytes[at]) {
		size_t header = (bytes[at] + 1) * 4;

		if (header > size - at)
			return false;
		at += header;
		if (!sum_chunks(bytes, size, &at, &sum))
			return false;
		at = (at + 3) / 4 * 4 + check;
	}
	if (at >= size)
		return false;
	*unpacked = sum;
	return true;
}

static bool is_fit(Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_file__section(elf, ".gnu_debugdata", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	__u64 unpacked;

	return data && data->d_buf &&
	       mini_debug__unpacked_size(data->d_buf, data->d_size, &unpacked) &&
	       unpacked <= MAX_UNPACKED_BYTES;
}

static char *read_file(int fd, size_t *size)
{
	struct stat st;
	char *bytes;

	if (fstat(fd, &st) || st.st_size <= 0 || (__u64)st.st_size > MAX_FILE_BYTES)
		return NULL;
	bytes = malloc(st.st_size);
	if (!bytes)
		return NULL;
	if (fd__read_all_at(fd, bytes, st.st_size, 0)) {
		free(bytes);
		return NULL;
	}
	*size = st.st_size;
	return bytes;
}

static int find_nothing(Dwfl_Module *module, void **user_data, const char *name, Dwarf_Addr base,
			const char *path, const char *link, GElf_Word crc, char **debug_path)
{
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.section_address = dwfl_offline_section_address,
	.find_debuginfo = find_nothing,
};

static int add_symbols(Dwfl_Module *module, Elf *main, GElf_Addr bias, struct symbol_table *table)
{
	int n = dwfl_module_getsymtab(module), err = 0;

	for (int i = 1; i < n && !err; i++) {
		GElf_Addr address;
		GElf_Word section;
		GElf_Sym symbol;
		Elf *elf = NULL;
		const char *name =
			dwfl_module_getsym_info(module, i, &symbol, &address, &section, &elf, NULL);

		/* dwfl reports the file's own .dynsym too. */
		if (!name || !elf || elf == main)
			continue;
		err = symbol_table__add(table, elf, &symbol, section, name, 0);
	}
	return err;
}

int mini_debug__add(const struct debug_file *file, struct symbol_table *table,
		    struct mini_debug **out)
{
	struct mini_debug *mini;
	Dwfl_Module *module = NULL;
	GElf_Addr bias = 0;
	Elf *elf = NULL;
	size_t size = 0;
	int err = 0;

	*out = NULL;
	if (!is_fit(file->elf))
		return 0;
	mini = calloc(1, sizeof(*mini));
	if (!mini)
		return -ENOMEM;
	mini->image = read_file(file->fd, &size);
	mini->dwfl = mini->image ? dwfl_begin(&callbacks) : NULL;
	if (mini->dwfl) {
		dwfl_report_begin(mini->dwfl);
		module = dwfl_report_offline_memory(mini->dwfl, file->path, file->path, mini->image,
						    size);
		dwfl_report_end(mini->dwfl, NULL, NULL);
	}
	if (module)
		elf = dwfl_module_getelf(module, &bias);
	if (elf)
		err = add_symbols(module, elf, bias, table);
	if (err || !elf) {
		mini_debug__free(mini);
		return err;
	}
	*out = mini;
	return 0;
}

void mini_debug__free(struct mini_debug *mini)
{
	if (!mini)
		return;
	if (mini->dwfl)
		dwfl_end(mini->dwfl);
	free(mini->image);
	free(mini);
}
