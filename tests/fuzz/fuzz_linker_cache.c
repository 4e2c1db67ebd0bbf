// SPDX-License-Identifier: GPL-3.0-or-later
/* /etc/ld.so.cache of a root that belongs to others. */
#include "fuzz.h"
#include "libraries.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct linker_cache *cache;
	const char *path;

	fuzz__file(data, size, &path);
	if (linker_cache__open(path, &cache))
		return 0;
	fuzz__read_text(linker_cache__find(cache, "libc.so.6"));
	fuzz__read_text(linker_cache__find(cache, ""));
	linker_cache__free(cache);
	return 0;
}
