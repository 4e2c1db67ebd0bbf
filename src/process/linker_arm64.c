// SPDX-License-Identifier: GPL-3.0-or-later
/* Paths that the dynamic linkers have built in, and libraries that they prefer. */
#include "linker.h"

#include <stddef.h>

/* FLAG_ELF_LIBC6 | FLAG_AARCH64_LIB64 */
const __s32 linker_cache_flags = 0x0a03;

const char linker_platform[] = "aarch64";

const char linker_musl[] = "/lib/ld-musl-aarch64.so.1";
const char linker_musl_path_file[] = "/etc/ld-musl-aarch64.path";

const char *const linker_lib_names[] = { "lib/aarch64-linux-gnu", "lib64", NULL };

const char *const linker_directories[] = {
	"/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
	NULL,
};

/* glibc has no levels of this processor. */
const char *const *linker__processor_levels(void)
{
	static const char *const names[] = { NULL };

	return names;
}
