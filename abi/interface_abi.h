/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Table of the allocators' functions, with their arguments and results. Each file that includes
 * this header has a copy. */
#ifndef ALLOCPROF_INTERFACE_ABI_H
#define ALLOCPROF_INTERFACE_ABI_H

#include <linux/types.h>
#include <stdbool.h>

#include "abi.h"

/* Families of allocators by prefix; a file may define several. */
enum interface_family {
	INTERFACE_C,	     /* malloc */
	INTERFACE_CPLUSPLUS, /* operator new, which belongs to the file's other family */
	INTERFACE_JE,	     /* je_malloc */
	INTERFACE_RJEM,	     /* _rjem_malloc: Rust's tikv-jemallocator */
	INTERFACE_TC,	     /* tc_malloc */
	INTERFACE_MI,	     /* mi_malloc */
	INTERFACE_TBB,	     /* scalable_malloc */
	INTERFACE_GC,	     /* GC_malloc of the Boehm collector, which also frees blocks itself */
	INTERFACE_FAMILIES,
};

enum interface_kind {
	INTERFACE_REQUEST, /* its calls count */
	/* Returns a block that it gets from a function of the table, like strdup. The call of that
	 * function counts as if the application had made it. */
	INTERFACE_THROUGH,
	INTERFACE_OWN,	   /* calls functions of the table, for the allocator's own purposes */
	INTERFACE_IGNORED, /* neither allocates nor frees */
	INTERFACE_COUNTED, /* it is in no table: a definition says that its calls are only counted */
	INTERFACE_LOOKUP,  /* dlsym(3), in no table either: it finds the function of a name */
	INTERFACE_DOMAIN, /* nor this: a definition's domain has it, and its calls and none beneath them count */
};

struct interface_function {
	/* Name without the family's prefix, if functions of the family have one. */
	const char *name;
	enum ap_function function;
	enum interface_kind kind;
	/* Argument numbers, from 1; 0: there is none. The requested size is size * count. */
	__u8 size, count, pointer;
	__u32 size_bytes; /* requested size in bytes if no argument has it */
	/* USDT probes, which return nothing: number of the argument with the allocated block. */
	__u8 block;
	/* USDT probes: number of the argument with the bytes that the call stands for. */
	__u8 weight;
	__u8 behind;   /* AP_BEHIND_ */
	__u8 result;   /* enum ap_result */
	bool prefixed; /* also exists with the families' prefixes */
	/* An exception may leave the function, so it must not have a return probe. */
	bool throws;
	/* Its calls may end blocks that are not arguments; those of mallctl only for some names. */
	bool ends;
};

static const char *const interface_prefixes[INTERFACE_FAMILIES] = {
	[INTERFACE_C] = "",
	[INTERFACE_CPLUSPLUS] = "_Z",
	[INTERFACE_JE] = "je_",
	[INTERFACE_RJEM] = "_rjem_",
	[INTERFACE_TC] = "tc_",
	[INTERFACE_MI] = "mi_",
	[INTERFACE_TBB] = "scalable_",
	[INTERFACE_GC] = "GC_",
};

/* Rows of the table: name, the function under which its calls count, and numbers of the size,
 * count and pointer arguments. */
#define C(name, function, ...)                                                                     \
	{                                                                                          \
		name, function, .prefixed = true, __VA_ARGS__                                      \
	}
#define PLAIN(name, function, ...)                                                                 \
	{                                                                                          \
		name, function, __VA_ARGS__                                                        \
	}
#define NEW(name, ...)                                                                             \
	{                                                                                          \
		name, AP_NEW, .throws = true, __VA_ARGS__                                          \
	}
#define THROUGH(name)                                                                              \
	{                                                                                          \
		name, AP_MALLOC, INTERFACE_THROUGH                                                 \
	}
#define OWN(name, function)                                                                        \
	{                                                                                          \
		name, function, INTERFACE_OWN, .pointer = 1                                        \
	}
#define IGNORED(name)                                                                              \
	{                                                                                          \
		name, AP_MALLOC, INTERFACE_IGNORED, .prefixed = true                               \
	}

/* The first AP_C_FUNCTIONS rows are in the order of enum ap_function: the programs have their
 * arguments built in. */
static const struct interface_function interface_functions[] = {
	C("malloc", AP_MALLOC, .size = 1),
	C("calloc", AP_CALLOC, .size = 2, .count = 1),
	C("realloc", AP_REALLOC, .size = 2, .pointer = 1),
	C("reallocarray", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	C("posix_memalign", AP_POSIX_MEMALIGN, .size = 3),
	C("aligned_alloc", AP_ALIGNED_ALLOC, .size = 2),
	C("memalign", AP_MEMALIGN, .size = 2),
	C("valloc", AP_VALLOC, .size = 1),
	C("pvalloc", AP_PVALLOC, .size = 1),
	C("free", AP_FREE, .pointer = 1),

	/* C23, BSD, and obsolete ones */
	C("free_sized", AP_FREE_SIZED, .pointer = 1),
	C("free_aligned_sized", AP_FREE_SIZED, .pointer = 1),
	C("cfree", AP_FREE, .pointer = 1),
	C("vfree", AP_FREE, .pointer = 1),
	C("reallocf", AP_REALLOC, .size = 2, .pointer = 1, .result = AP_RESULT_FREES),
	C("_aligned_malloc", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("__libc_memalign", AP_MEMALIGN, .size = 2),
	PLAIN("__libc_valloc", AP_VALLOC, .size = 1),
	PLAIN("__libc_pvalloc", AP_PVALLOC, .size = 1),
	PLAIN("__posix_memalign", AP_POSIX_MEMALIGN, .size = 3),
	C("reallocarr", AP_REALLOCARRAY, INTERFACE_THROUGH),
	IGNORED("malloc_usable_size"),
	IGNORED("malloc_size"),
	IGNORED("malloc_good_size"),
	IGNORED("malloc_trim"),
	IGNORED("malloc_stats"),
	IGNORED("malloc_stats_print"),
	IGNORED("malloc_info"),
	IGNORED("malloc_get_state"),
	IGNORED("malloc_set_state"),

	/* C++; some allocators have further names for the operators below */
	NEW("_Znwm", .size = 1),
	NEW("_Znam", .size = 1),
	NEW("_ZnwmRKSt9nothrow_t", .size = 1),
	NEW("_ZnamRKSt9nothrow_t", .size = 1),
	NEW("_ZnwmSt11align_val_t", .size = 1),
	NEW("_ZnamSt11align_val_t", .size = 1),
	NEW("_ZnwmSt11align_val_tRKSt9nothrow_t", .size = 1),
	NEW("_ZnamSt11align_val_tRKSt9nothrow_t", .size = 1),
	NEW("_Znwm12__hot_cold_t", .size = 1),
	NEW("_Znam12__hot_cold_t", .size = 1),
	NEW("_ZnwmRKSt9nothrow_t12__hot_cold_t", .size = 1),
	NEW("_ZnamRKSt9nothrow_t12__hot_cold_t", .size = 1),
	NEW("_ZnwmSt11align_val_t12__hot_cold_t", .size = 1),
	NEW("_ZnamSt11align_val_t12__hot_cold_t", .size = 1),
	NEW("_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t", .size = 1),
	NEW("_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t", .size = 1),
	PLAIN("_ZdlPv", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPv", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvm", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvm", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvmRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvmRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvSt11align_val_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvSt11align_val_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvSt11align_val_tRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvSt11align_val_tRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvmSt11align_val_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvmSt11align_val_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdlPvmSt11align_val_tRKSt9nothrow_t", AP_DELETE, .pointer = 1),
	PLAIN("_ZdaPvmSt11align_val_tRKSt9nothrow_t", AP_DELETE, .pointer = 1),

	/* jemalloc */
	C("mallocx", AP_MALLOCX, .size = 1),
	C("rallocx", AP_RALLOCX, .size = 2, .pointer = 1),
	C("xallocx", AP_XALLOCX, .size = 2, .pointer = 1, .result = AP_RESULT_SIZE_IN_PLACE),
	C("dallocx", AP_DALLOCX, .pointer = 1),
	C("sdallocx", AP_SDALLOCX, .pointer = 1),
	{ "mallctl", AP_MALLOC, INTERFACE_IGNORED, .prefixed = true, .ends = true },
	IGNORED("nallocx"),
	IGNORED("sallocx"),

	/* tcmalloc */
	NEW("tc_new", .size = 1),
	NEW("tc_newarray", .size = 1),
	NEW("tc_new_nothrow", .size = 1),
	NEW("tc_newarray_nothrow", .size = 1),
	NEW("tc_new_aligned", .size = 1),
	NEW("tc_newarray_aligned", .size = 1),
	NEW("tc_new_aligned_nothrow", .size = 1),
	NEW("tc_newarray_aligned_nothrow", .size = 1),
	PLAIN("tc_delete", AP_DELETE, .pointer = 1),
	PLAIN("tc_deletearray", AP_DELETE, .pointer = 1),
	PLAIN("tc_delete_nothrow", AP_DELETE, .pointer = 1),
	PLAIN("tc_deletearray_nothrow", AP_DELETE, .pointer = 1),
	PLAIN("tc_delete_sized", AP_DELETE, .pointer = 1),
	PLAIN("tc_deletearray_sized", AP_DELETE, .pointer = 1),
	PLAIN("tc_delete_aligned", AP_DELETE, .pointer = 1),
	PLAIN("tc_deletearray_aligned", AP_DELETE, .pointer = 1),
	PLAIN("tc_delete_aligned_nothrow", AP_DELETE, .pointer = 1),
	PLAIN("tc_deletearray_aligned_nothrow", AP_DELETE, .pointer = 1),
	PLAIN("tc_delete_sized_aligned", AP_DELETE, .pointer = 1),
	PLAIN("tc_deletearray_sized_aligned", AP_DELETE, .pointer = 1),
	PLAIN("tc_malloc_skip_new_handler", AP_MALLOC, .size = 1),

	/* oneTBB; a second library has the C library's names and calls these */
	PLAIN("scalable_aligned_malloc", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("scalable_aligned_realloc", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("scalable_aligned_free", AP_FREE, .pointer = 1),
	PLAIN("__TBB_malloc_safer_free", AP_FREE, .pointer = 1),
	PLAIN("__TBB_malloc_safer_realloc", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("__TBB_malloc_safer_aligned_realloc", AP_REALLOC, .size = 2, .pointer = 1),

	/* dmalloc, whose first arguments are the caller's file and line */
	PLAIN("dmalloc_malloc", AP_MALLOC, .size = 3),
	PLAIN("dmalloc_realloc", AP_REALLOC, .size = 4, .pointer = 3),
	PLAIN("dmalloc_free", AP_FREE, .pointer = 3),
	PLAIN("dmalloc_posix_memalign", AP_ALIGNED_ALLOC, .size = 4, .pointer = 3,
	      .result = AP_RESULT_AT_POINTER),
	PLAIN("recalloc", AP_REALLOC, .size = 2, .pointer = 1),

	/* DUMA, whose header redefines the C library's names to these */
	PLAIN("_duma_malloc", AP_MALLOC, .size = 1),
	PLAIN("_duma_calloc", AP_CALLOC, .size = 2, .count = 1),
	PLAIN("_duma_realloc", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("_duma_memalign", AP_MEMALIGN, .size = 2),
	PLAIN("_duma_posix_memalign", AP_POSIX_MEMALIGN, .size = 3),
	PLAIN("_duma_valloc", AP_VALLOC, .size = 1),
	PLAIN("_duma_free", AP_FREE, .pointer = 1),

	/* the Boehm collector; GC_free and others are above */
	PLAIN("GC_malloc_atomic", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_uncollectable", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_atomic_uncollectable", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_stubborn", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_ignore_off_page", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_atomic_ignore_off_page", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_explicitly_typed", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_explicitly_typed_ignore_off_page", AP_MALLOC, .size = 1),
	PLAIN("GC_calloc_explicitly_typed", AP_CALLOC, .size = 2, .count = 1),
	PLAIN("GC_malloc_kind", AP_MALLOC, .size = 1),
	PLAIN("GC_malloc_kind_global", AP_MALLOC, .size = 1),
	PLAIN("GC_generic_malloc", AP_MALLOC, .size = 1),
	PLAIN("GC_gcj_malloc", AP_MALLOC, .size = 1),
	PLAIN("GC_debug_malloc", AP_MALLOC, .size = 1),
	PLAIN("GC_debug_malloc_atomic", AP_MALLOC, .size = 1),
	PLAIN("GC_debug_malloc_uncollectable", AP_MALLOC, .size = 1),
	PLAIN("GC_debug_malloc_replacement", AP_MALLOC, .size = 1),
	PLAIN("GC_debug_realloc", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("GC_debug_realloc_replacement", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("GC_debug_free", AP_FREE, .pointer = 1),
	THROUGH("GC_strdup"),
	THROUGH("GC_strndup"),
	THROUGH("GC_wcsdup"),
	THROUGH("GC_debug_strdup"),
	IGNORED("GC_alloc_lock"),
	IGNORED("GC_alloc_unlock"),
	IGNORED("GC_call_with_alloc_lock"),
	IGNORED("GC_init_finalized_malloc"),
	IGNORED("GC_init_gcj_malloc"),
	IGNORED("GC_new_free_list"),
	IGNORED("GC_new_free_list_inner"),
	IGNORED("GC_new_kind"),
	IGNORED("GC_new_kind_inner"),
	IGNORED("GC_new_proc"),
	IGNORED("GC_new_proc_inner"),

	/* mimalloc: z is zeroed, n has a count, c both, at has an offset of the alignment */
	PLAIN("mi_malloc_small", AP_MALLOC, .size = 1),
	PLAIN("mi_zalloc_small", AP_CALLOC, .size = 1),
	PLAIN("mi_zalloc", AP_CALLOC, .size = 1),
	PLAIN("mi_mallocn", AP_MALLOC, .size = 2, .count = 1),
	PLAIN("mi_umalloc", AP_MALLOC, .size = 1),
	PLAIN("mi_ucalloc", AP_CALLOC, .size = 2, .count = 1),
	PLAIN("mi_urealloc", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_ufree", AP_FREE, .pointer = 1),
	PLAIN("mi_umalloc_small", AP_MALLOC, .size = 1),
	PLAIN("mi_uzalloc", AP_CALLOC, .size = 1),
	PLAIN("mi_uzalloc_small", AP_CALLOC, .size = 1),
	PLAIN("mi_umalloc_aligned", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("mi_uzalloc_aligned", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("mi_reallocn", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	PLAIN("mi_rezalloc", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_recalloc", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	PLAIN("mi_expand", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi__expand", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_malloc_aligned", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("mi_malloc_aligned_at", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("mi_zalloc_aligned", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("mi_zalloc_aligned_at", AP_ALIGNED_ALLOC, .size = 1),
	PLAIN("mi_calloc_aligned", AP_ALIGNED_ALLOC, .size = 2, .count = 1),
	PLAIN("mi_calloc_aligned_at", AP_ALIGNED_ALLOC, .size = 2, .count = 1),
	PLAIN("mi_realloc_aligned", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_realloc_aligned_at", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_rezalloc_aligned", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_rezalloc_aligned_at", AP_REALLOC, .size = 2, .pointer = 1),
	PLAIN("mi_recalloc_aligned", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	PLAIN("mi_recalloc_aligned_at", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	PLAIN("mi_aligned_recalloc", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	PLAIN("mi_aligned_offset_recalloc", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1),
	PLAIN("mi_free_size", AP_FREE_SIZED, .pointer = 1),
	PLAIN("mi_free_size_aligned", AP_FREE_SIZED, .pointer = 1),
	PLAIN("mi_free_aligned", AP_FREE, .pointer = 1),
	NEW("mi_new", .size = 1),
	NEW("mi_new_nothrow", .size = 1),
	NEW("mi_new_aligned", .size = 1),
	NEW("mi_new_aligned_nothrow", .size = 1),
	NEW("mi_new_n", .size = 2, .count = 1),
	NEW("mi_heap_alloc_new", .size = 2),
	NEW("mi_heap_alloc_new_n", .size = 3, .count = 2),
	PLAIN("mi_new_realloc", AP_REALLOC, .size = 2, .pointer = 1, .throws = true),
	PLAIN("mi_new_reallocn", AP_REALLOCARRAY, .size = 3, .count = 2, .pointer = 1,
	      .throws = true),
	PLAIN("mi_heap_malloc", AP_MALLOC, .size = 2),
	PLAIN("mi_heap_malloc_small", AP_MALLOC, .size = 2),
	PLAIN("mi_heap_zalloc", AP_CALLOC, .size = 2),
	PLAIN("mi_heap_zalloc_small", AP_CALLOC, .size = 2),
	PLAIN("mi_heap_calloc", AP_CALLOC, .size = 3, .count = 2),
	PLAIN("mi_heap_mallocn", AP_MALLOC, .size = 3, .count = 2),
	PLAIN("mi_heap_realloc", AP_REALLOC, .size = 3, .pointer = 2),
	PLAIN("mi_heap_reallocn", AP_REALLOCARRAY, .size = 4, .count = 3, .pointer = 2),
	PLAIN("mi_heap_reallocf", AP_REALLOC, .size = 3, .pointer = 2, .result = AP_RESULT_FREES),
	PLAIN("mi_heap_rezalloc", AP_REALLOC, .size = 3, .pointer = 2),
	PLAIN("mi_heap_recalloc", AP_REALLOCARRAY, .size = 4, .count = 3, .pointer = 2),
	PLAIN("mi_heap_malloc_aligned", AP_ALIGNED_ALLOC, .size = 2),
	PLAIN("mi_heap_malloc_aligned_at", AP_ALIGNED_ALLOC, .size = 2),
	PLAIN("mi_heap_zalloc_aligned", AP_ALIGNED_ALLOC, .size = 2),
	PLAIN("mi_heap_zalloc_aligned_at", AP_ALIGNED_ALLOC, .size = 2),
	PLAIN("mi_heap_calloc_aligned", AP_ALIGNED_ALLOC, .size = 3, .count = 2),
	PLAIN("mi_heap_calloc_aligned_at", AP_ALIGNED_ALLOC, .size = 3, .count = 2),
	PLAIN("mi_heap_realloc_aligned", AP_REALLOC, .size = 3, .pointer = 2),
	PLAIN("mi_heap_realloc_aligned_at", AP_REALLOC, .size = 3, .pointer = 2),
	PLAIN("mi_heap_rezalloc_aligned", AP_REALLOC, .size = 3, .pointer = 2),
	PLAIN("mi_heap_rezalloc_aligned_at", AP_REALLOC, .size = 3, .pointer = 2),
	PLAIN("mi_heap_recalloc_aligned", AP_REALLOCARRAY, .size = 4, .count = 3, .pointer = 2),
	PLAIN("mi_heap_recalloc_aligned_at", AP_REALLOCARRAY, .size = 4, .count = 3, .pointer = 2),
	THROUGH("mi_strdup"),
	THROUGH("mi_strndup"),
	THROUGH("mi_realpath"),
	THROUGH("mi_heap_strdup"),
	THROUGH("mi_heap_strndup"),
	THROUGH("mi_heap_realpath"),
	THROUGH("mi_wcsdup"),
	THROUGH("mi_mbsdup"),
	THROUGH("mi_dupenv_s"),
	THROUGH("mi_wdupenv_s"),
	OWN("mi_heap_new", AP_MALLOC),
	OWN("mi_heap_new_in_arena", AP_MALLOC),
	OWN("mi_heap_new_ex", AP_MALLOC),
	OWN("mi_heap_delete", AP_FREE),
	{ "mi_heap_destroy", AP_FREE, INTERFACE_OWN, .pointer = 1, .ends = true },
	OWN("mi_thread_done", AP_FREE),
};

#undef C
#undef PLAIN
#undef NEW
#undef THROUGH
#undef OWN
#undef IGNORED

/* Returns whether @name begins with @start. The rest of @name is stored in *@rest. */
static inline bool interface__begins(const char *name, const char *start, const char **rest)
{
	while (*start && *name == *start) {
		name++;
		start++;
	}
	*rest = name;
	return !*start;
}

static inline bool interface__is(const char *name, const char *other)
{
	const char *rest;

	return interface__begins(name, other, &rest) && !*rest;
}

/* Returns the row of the function @name and its family; NULL if the table has none. */
static inline const struct interface_function *interface__find_row(const char *name,
								   enum interface_family *family)
{
	const __u32 n = sizeof(interface_functions) / sizeof(interface_functions[0]);
	enum interface_family found = INTERFACE_C;
	const char *rest, *behind = name;

	/* This excludes most names of a C++ program. */
	if (name[0] == '_' && name[1] == 'Z' && name[2] != 'n' && name[2] != 'd')
		return 0;
	for (int i = INTERFACE_C + 1; i < INTERFACE_FAMILIES; i++)
		if (interface__begins(name, interface_prefixes[i], &rest)) {
			found = (enum interface_family)i;
			behind = rest;
		}
	/* Functions that oneTBB has for its second library. */
	if (interface__begins(name, "__TBB_", &rest)) {
		found = INTERFACE_TBB;
		behind = name;
	}
	for (__u32 i = 0; i < n; i++) {
		const struct interface_function *function = &interface_functions[i];

		if (!interface__is(name, function->name) &&
		    !(function->prefixed && interface__is(behind, function->name)))
			continue;
		*family = found;
		return function;
	}
	return 0;
}

struct interface_word {
	const char *text;
	__u32 length;
};

static inline bool interface_word__is(struct interface_word word, const char *const *list)
{
	const char *rest;

	for (; *list; list++)
		if (interface__begins(word.text, *list, &rest) && rest == word.text + word.length)
			return true;
	return false;
}

static inline bool interface__has_letter(const char *letters, char letter)
{
	while (*letters && *letters != letter)
		letters++;
	return *letters;
}

/* Returns whether the word is one of the stems, with an optional letter before and after it, and
 * an optional number. */
static inline bool interface_word__is_request(struct interface_word word)
{
	static const char *const stems[] = { "malloc",	 "calloc",     "realloc",  "reallocarray",
					     "alloc",	 "valloc",     "memalign", "free",
					     "new",	 "delete",     "newarray", "deletearray",
					     "allocate", "deallocate", "dealloc",  0 };
	static const char before[] = "cdmnprsuvxz", behind[] = "fnx";

	while (word.length && interface__has_letter("0123456789", word.text[word.length - 1]))
		word.length--;
	for (__u32 cut_before = 0; cut_before < 2; cut_before++)
		for (__u32 cut_behind = 0; cut_behind < 2; cut_behind++) {
			struct interface_word stem = word;

			if (word.length < 3)
				return false;
			if (cut_before && !interface__has_letter(before, *stem.text))
				continue;
			if (cut_behind &&
			    !interface__has_letter(behind, stem.text[stem.length - 1]))
				continue;
			stem.text += cut_before;
			stem.length -= cut_before + cut_behind;
			if (interface_word__is(stem, stems))
				return true;
		}
	return false;
}

/* Returns whether it is a C library function that returns a copy in memory from malloc. */
static inline bool interface__copies(const char *name)
{
	return interface__is(name, "strdup") || interface__is(name, "strndup");
}

/* Returns whether @name, which is not in the table, resembles names of the table, as foo_mallocx2
 * and pool_free do, and foo_alloc_stats does not. */
static inline bool interface__looks_alike(const char *name)
{
	/* Words of functions about memory that do not allocate. */
	static const char *const others[] = {
		"stats",    "info",	"size",	      "usable",	  "good",   "trim",    "state",
		"conf",	    "hook",	"hooks",      "handler",  "set",    "get",     "print",
		"register", "deferred", "is",	      "check",	  "count",  "mode",    "opt",
		"option",   "init",	"fini",	      "start",	  "stop",   "dump",    "debug",
		"fork",	    "prefork",	"postfork",   "thread",	  "query",  "total",   "bytes",
		"limit",    "memory",	"list",	      "lists",	  "err",    "error",   "log",
		"verify",   "return",	"accounting", "callback", "enable", "disable", "shutdown",
		0,
	};
	bool requests = interface__copies(name);

	/* Names with a leading underscore are internal to a library. */
	if (*name == '_')
		return false;
	while (*name) {
		struct interface_word word = { name, 0 };

		while (*name && *name != '_')
			name++;
		word.length = name - word.text;
		if (interface_word__is(word, others))
			return false;
		requests |= interface_word__is_request(word);
		name += *name == '_';
	}
	return requests;
}

#endif
