// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a worker that was taken over may say of a file's allocator. The input is a list of edits of the reply that a
 * worker of good will gives for the C library: two bytes for the place, one for the value, and one for how many bytes
 * are cut off or added there.
 */
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_internal.h"
#include "elf_headers.h"
#include "fuzz.h"
#include "wire.h"

static struct wire_writer base;
static struct executable_parts parts;

static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	const char **path = context;

	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*path = info->dlpi_name;
	return 1;
}

static void make_base(void)
{
	struct allocator *allocator;
	const char *path = NULL;
	int fd;

	dl_iterate_phdr(find_libc, &path);
	fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(!executable_parts__read(fd, &parts));
	FUZZ_CHECK(!allocator__read(fd, path, SITE_BEST, &allocator, NULL));
	allocator__write(allocator, &base);
	allocator__free(allocator);
	close(fd);
}

static void check(const struct allocator *allocator)
{
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		FUZZ_CHECK(executable_parts__have_offset(&parts, site->probe_offset));
		FUZZ_CHECK(site->function < AP_FUNCTIONS && site->interface);
		for (size_t j = 0; j < site->n_aliases; j++)
			fuzz__read_text(site->aliases[j]);
	}
	for (size_t i = 0; i < allocator->n_return_offsets; i++)
		FUZZ_CHECK(executable_parts__have_offset(&parts, allocator->return_offsets[i]));
	fuzz__read_text(allocator->build_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct allocator *allocator;
	struct wire_reader reader;
	size_t n;
	char *bytes;

	if (!base.size)
		make_base();
	bytes = malloc(base.size + 1);
	FUZZ_CHECK(bytes);
	memcpy(bytes, base.bytes, base.size);
	n = base.size;
	for (; size >= 4 && n; data += 4, size -= 4) {
		size_t at = (data[0] | data[1] << 8) % n;

		bytes[at] = (char)data[2];
		if (data[3] > 250)
			n = at;
	}
	/* Of exactly this size, so that ASan sees what is read behind it. */
	bytes = realloc(bytes, n ? n : 1);
	FUZZ_CHECK(bytes);
	reader = wire__reader(bytes, n);
	if (!allocator__take(&reader, "/lib/libc.so.6", NULL, &parts, &allocator)) {
		check(allocator);
		allocator__free(allocator);
	}
	free(bytes);
	return 0;
}
