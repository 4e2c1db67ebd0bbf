// SPDX-License-Identifier: GPL-3.0-or-later
#include "usdt.h"

#include <string.h>

#include "debug_file.h"

#define NOTE_STAPSDT 3

/* A note's addresses: pc, base, semaphore. */
#define ADDRESSES_SIZE (3 * sizeof(__u64))

/* Returns the address of .stapsdt.base, by which prelink's relocation of the code can be computed. */
static __u64 base_address(Elf *elf)
{
	GElf_Shdr header;

	return debug_file__section(elf, ".stapsdt.base", &header) ? header.sh_addr : 0;
}

/* Returns the string at *@bytes and skips it; NULL if it is not terminated. */
static const char *read_string(const char **bytes, size_t *size)
{
	const char *string = *bytes;
	size_t len = strnlen(string, *size);

	if (len == *size)
		return NULL;
	*bytes += len + 1;
	*size -= len + 1;
	return string;
}

static bool read_probe(const char *bytes, size_t size, __u64 base, struct usdt_probe *out)
{
	__u64 addresses[3];

	if (size < ADDRESSES_SIZE)
		return false;
	memcpy(addresses, bytes, ADDRESSES_SIZE);
	bytes += ADDRESSES_SIZE;
	size -= ADDRESSES_SIZE;
	out->provider = read_string(&bytes, &size);
	out->name = out->provider ? read_string(&bytes, &size) : NULL;
	out->arguments = out->name ? read_string(&bytes, &size) : NULL;
	if (!out->arguments)
		return false;
	out->vaddr = addresses[0];
	out->semaphore = addresses[2];
	if (base && addresses[1]) {
		out->vaddr += base - addresses[1];
		if (out->semaphore)
			out->semaphore += base - addresses[1];
	}
	return true;
}

static int visit_notes(Elf_Data *data, __u64 base, usdt_fn fn, void *arg)
{
	const char *bytes = data->d_buf;
	size_t at = 0, next, name_at, desc_at;
	GElf_Nhdr note;

	while (at < data->d_size &&
	       (next = gelf_getnote(data, at, &note, &name_at, &desc_at)) > at) {
		struct usdt_probe probe;
		int ret;

		at = next;
		if (note.n_type != NOTE_STAPSDT || note.n_namesz != sizeof("stapsdt") ||
		    memcmp(bytes + name_at, "stapsdt", sizeof("stapsdt")) != 0 ||
		    !read_probe(bytes + desc_at, note.n_descsz, base, &probe))
			continue;
		ret = fn(&probe, arg);
		if (ret)
			return ret;
	}
	return 0;
}

int usdt__for_each(Elf *elf, usdt_fn fn, void *arg)
{
	__u64 base = base_address(elf);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int ret = 0;

	while (!ret && (section = elf_nextscn(elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf)
			ret = visit_notes(data, base, fn, arg);
	}
	return ret;
}
