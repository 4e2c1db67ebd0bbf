// SPDX-License-Identifier: GPL-3.0-or-later
/* Paths that the dynamic linkers have built in, and libraries that they prefer. */
#include "linker.h"

#include <stdbool.h>
#include <stddef.h>

/* FLAG_ELF_LIBC6 | FLAG_X8664_LIB64 */
const __s32 linker_cache_flags = 0x0303;

const char linker_platform[] = "x86_64";

const char linker_musl[] = "/lib/ld-musl-x86_64.so.1";
const char linker_musl_path_file[] = "/etc/ld-musl-x86_64.path";

const char *const linker_lib_names[] = { "lib/x86_64-linux-gnu", "lib64", NULL };

const char *const linker_directories[] = {
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
	NULL,
};

/* Returns the levels of the x86-64 psABI that this processor has. For each level only those
 * features are checked that no processor has without the others. */
const char *const *linker__processor_levels(void)
{
	static const char *const names[] = { "x86-64-v4", "x86-64-v3", "x86-64-v2", NULL };
	bool second, third, fourth;

	__builtin_cpu_init();
	second = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
	third = second && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
	fourth = third && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		 __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
		 __builtin_cpu_supports("avx512vl");
	return names + (fourth ? 0 : third ? 1 : second ? 2 : 3);
}
