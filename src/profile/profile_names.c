// SPDX-License-Identifier: GPL-3.0-or-later
/* Names of functions, of reasons for lost calls and of ends of stacks, as in the data file. */
#include <errno.h>
#include <string.h>

#include "profile.h"
#include "reasons.h"

static const char *const function_names[AP_DEFINED] = {
	[AP_MALLOC] = "malloc",
	[AP_CALLOC] = "calloc",
	[AP_REALLOC] = "realloc",
	[AP_REALLOCARRAY] = "reallocarray",
	[AP_POSIX_MEMALIGN] = "posix_memalign",
	[AP_ALIGNED_ALLOC] = "aligned_alloc",
	[AP_MEMALIGN] = "memalign",
	[AP_VALLOC] = "valloc",
	[AP_PVALLOC] = "pvalloc",
	[AP_FREE] = "free",
	[AP_NEW] = "new",
	[AP_DELETE] = "delete",
	[AP_FREE_SIZED] = "free_sized",
	[AP_MALLOCX] = "mallocx",
	[AP_RALLOCX] = "rallocx",
	[AP_XALLOCX] = "xallocx",
	[AP_DALLOCX] = "dallocx",
	[AP_SDALLOCX] = "sdallocx",
	[AP_MMAP] = "mmap",
	[AP_MREMAP] = "mremap",
	[AP_BRK] = "brk",
	[AP_MUNMAP] = "munmap",
};

const char *profile__function_name(enum ap_function function)
{
	return (unsigned int)function < AP_DEFINED ? function_names[function] : "unknown";
}

bool profile__function_frees(enum ap_function function)
{
	return AP_FREEING >> function & 1;
}

bool profile__function_reallocates(enum ap_function function)
{
	return AP_REALLOCATING >> function & 1;
}

bool profile__function_maps(enum ap_function function)
{
	return function >= AP_MMAP && function <= AP_MUNMAP;
}

const char *profile__lost_name(enum ap_lost reason)
{
	return reason__lost(reason)->name;
}

const char *profile__untracked_name(enum ap_untracked reason)
{
	return reason__untracked(reason)->name;
}

const char *profile__stack_end_name(enum ap_stack_end end)
{
	return reason__stack_end(end)->name;
}

int profile__function_by_name(const char *name)
{
	for (int i = 0; i < AP_DEFINED; i++) {
		if (!strcmp(function_names[i], name))
			return i;
	}
	return -ENOENT;
}

int profile__stack_end_by_name(const char *name)
{
	for (int i = 0; i < AP_STACK_ENDS; i++) {
		if (!strcmp(reason__stack_end(i)->name, name))
			return i;
	}
	return -ENOENT;
}
