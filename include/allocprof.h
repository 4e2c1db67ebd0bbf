/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions of a program whose allocations `allocprof stat` and `allocprof check` count apart: allocprof-stat(1),
 * Regions. For C (C99 and later) and C++; there is no library to link with. Unmeasured a mark is one nop
 * and, on x86-64, a load and a branch; and a note in the file that is not loaded.
 *
 *	ALLOCPROF_REGION("parse");
 *
 * is a declaration: from there to the end of the scope, however that is left.
 *
 *	ALLOCPROF_BEGIN("parse");
 *	...
 *	ALLOCPROF_END("parse");
 *
 * are statements, both to be passed by the same function. Names are string literals without a colon. The marks
 * are the USDT probes allocprof_begin:parse and allocprof_end:parse, for --start-on and --stop-on; in C the end
 * of an ALLOCPROF_REGION is allocprof_leave:scope, whatever the region.
 */
#ifndef ALLOCPROF_H
#define ALLOCPROF_H

#if defined(__linux__) && defined(__LP64__) && defined(__GNUC__)

/* Versions of clang-format do not agree on it. */
/* clang-format off */
/* As SystemTap's sdt.h writes them, version 3 of the note. The name is a literal, quotes included. An argument
 * of 1 tells the beginning of what ends with its scope. */
#define ALLOCPROF_NOTE_(provider, name, arguments)                                                          \
	__asm__ __volatile__(                                                                      \
		"990:	nop\n"                                                                       \
		".pushsection .note.stapsdt,\"?\",\"note\"\n"                                      \
		".balign 4\n"                                                                      \
		".4byte 992f-991f, 994f-993f, 3\n"                                                 \
		"991:	.asciz \"stapsdt\"\n"                                                        \
		"992:	.balign 4\n"                                                                 \
		"993:	.8byte 990b\n"                                                               \
		"	.8byte _.stapsdt.base\n"                                                         \
		"	.8byte 0\n"                                                                      \
		"	.asciz \"" provider "\"\n"                                                      \
		"	.asciz " #name "\n"                                                             \
		"	.asciz \"" arguments "\"\n"                                                     \
		"994:	.balign 4\n"                                                                 \
		".popsection\n"                                                                    \
		".ifndef _.stapsdt.base\n"                                                         \
		".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"            \
		".weak _.stapsdt.base\n"                                                           \
		".hidden _.stapsdt.base\n"                                                         \
		"_.stapsdt.base: .space 1\n"                                                       \
		".size _.stapsdt.base, 1\n"                                                        \
		".popsection\n"                                                                    \
		".endif\n" ::                                                                      \
			: "memory")

/* What `allocprof --engine=preload` loads into the process defines a function that the mark calls. Its address is in the
 * global offset table, where it is 0 otherwise, also in static programs; C alone would refer to it without the table
 * in programs that are not position independent, where it is 0 for good. */
#if defined(__x86_64__) && !defined(__code_model_large__)
#define ALLOCPROF_CALL_(kind, name)                                                                         \
	do {                                                                                       \
		void (*allocprof_call_)(int, const char *);                                        \
		__asm__(".weak allocprof_mark_\n"                                                  \
			"mov{q	allocprof_mark_@GOTPCREL(%%rip), %0|	%0, QWORD PTR allocprof_mark_@GOTPCREL[rip]}" \
			: "=r"(allocprof_call_));                                                  \
		if (__builtin_expect(allocprof_call_ != 0, 0)) {                                   \
			allocprof_call_(kind, name);                                               \
			/* No jump out of a frame that is gone then. */                            \
			__asm__ __volatile__("" ::: "memory");                                     \
		}                                                                                  \
	} while (0)
#else
#define ALLOCPROF_CALL_(kind, name) ((void)0)
#endif
/* clang-format on */

/* The kinds of marks, as the measurement knows them: enum ap_region_mark. */
#define ALLOCPROF_MARK_(provider, name, arguments, kind)                                           \
	do {                                                                                       \
		ALLOCPROF_NOTE_(provider, name, arguments);                                        \
		ALLOCPROF_CALL_(kind, name);                                                       \
	} while (0)

#define ALLOCPROF_JOIN_(a, b)	a##b
#define ALLOCPROF_UNIQUE_(a, b) ALLOCPROF_JOIN_(a, b)

#define ALLOCPROF_BEGIN(name)  ALLOCPROF_MARK_("allocprof_begin", name, "", 0)
#define ALLOCPROF_ENTER_(name) ALLOCPROF_MARK_("allocprof_begin", name, "-4@$1", 1)
#define ALLOCPROF_END(name)    ALLOCPROF_MARK_("allocprof_end", name, "", 2)

/* Marks of a scope are in the function's own frame, also where nothing else is inlined: so a call above it is
 * known to be outside of the region. */
#ifdef __cplusplus
#define ALLOCPROF_REGION(name)                                                                     \
	struct ALLOCPROF_UNIQUE_(allocprof_region_, __LINE__) {                                    \
		__attribute__((__always_inline__))                                                 \
		ALLOCPROF_UNIQUE_(allocprof_region_, __LINE__)()                                   \
		{                                                                                  \
			ALLOCPROF_ENTER_(name);                                                    \
		}                                                                                  \
		__attribute__((__always_inline__)) ~ALLOCPROF_UNIQUE_(allocprof_region_,           \
								      __LINE__)()                  \
		{                                                                                  \
			ALLOCPROF_END(name);                                                       \
		}                                                                                  \
	} ALLOCPROF_UNIQUE_(allocprof_in_, __LINE__)
#else
static inline __attribute__((__always_inline__)) void allocprof_leave_(const char *scope)
{
	(void)scope;
	ALLOCPROF_MARK_("allocprof_leave", "scope", "", 3);
}

#define ALLOCPROF_REGION(name)                                                                     \
	__attribute__((__cleanup__(allocprof_leave_), __unused__)) const char ALLOCPROF_UNIQUE_(   \
		allocprof_in_, __LINE__) = __extension__({                                         \
		ALLOCPROF_ENTER_(name);                                                            \
		(char)0;                                                                           \
	})
#endif

#else

#define ALLOCPROF_JOIN_(a, b)	a##b
#define ALLOCPROF_UNIQUE_(a, b) ALLOCPROF_JOIN_(a, b)

#define ALLOCPROF_BEGIN(name)  ((void)0)
#define ALLOCPROF_END(name)    ((void)0)
/* A declaration here too. */
#define ALLOCPROF_REGION(name) struct ALLOCPROF_UNIQUE_(allocprof_region_, __LINE__)

#endif

#endif
