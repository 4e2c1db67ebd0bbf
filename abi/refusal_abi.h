/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists programs into which neither a library nor probes may be put, by names in their files or of
 * their files, and has the rules by which allocprof and src/inside refuse to preload the library
 * into one. */
#ifndef ALLOCPROF_REFUSAL_ABI_H
#define ALLOCPROF_REFUSAL_ABI_H

#include <linux/types.h>
#include <stdbool.h>

#include "inside_abi.h"

/* X(how the name of a sanitizer's library begins). Some of these libraries end the process if
 * another library comes before them, and all of them replace the allocator by one that must see
 * each call first. */
#define SANITIZER_LIBRARIES(X)                                                                     \
	X("libasan.so")                                                                            \
	X("libtsan.so")                                                                            \
	X("liblsan.so")                                                                            \
	X("libhwasan.so")                                                                          \
	X("libclang_rt.asan")                                                                      \
	X("libclang_rt.tsan")                                                                      \
	X("libclang_rt.lsan")                                                                      \
	X("libclang_rt.hwasan")                                                                    \
	X("libclang_rt.memprof")

/* X(function that every program with the sanitizer calls). */
#define SANITIZER_FUNCTIONS(X)                                                                     \
	X("__asan_init")                                                                           \
	X("__tsan_init")                                                                           \
	X("__lsan_init")                                                                           \
	X("__msan_init")                                                                           \
	X("__hwasan_init")                                                                         \
	X("__memprof_init")

/* X(file name of a program that runs translated copies of another program's code): valgrind(1), whose tools are
 * in a directory of its own; DynamoRIO; Pin; qemu's user mode. */
#define TRANSLATOR_NAMES(X)                                                                        \
	X("valgrind")                                                                              \
	X("valgrind.bin")                                                                          \
	X("drrun")                                                                                 \
	X("pin")                                                                                   \
	X("qemu-x86_64")                                                                           \
	X("qemu-x86_64-static")

/* X(part of the path of such a program). */
#define TRANSLATOR_DIRECTORIES(X)                                                                  \
	X("/libexec/valgrind/")                                                                    \
	X("/lib/valgrind/")

/* An ELF file that is about to be executed, and the user who executes it. */
struct ap_program {
	bool is_foreign; /* it is for another machine than this library */
	/* No dynamic linker is loaded for it, and it is not a dynamic linker itself. */
	bool is_static;
	bool has_sanitizer;    /* it has a sanitizer, by the names above */
	bool has_malloc;       /* it defines malloc; also false if nobody has checked */
	bool has_capabilities; /* its file has capabilities */
	/* Mode and owners of its file; mode 0: they are not known. */
	__u32 mode, owner, owning_group;
	/* The credentials of the process that executes it. */
	__u32 user, effective_user, group, effective_group;
};

#define AP_MODE_SET_USER  04000
#define AP_MODE_SET_GROUP 02010 /* effective only if the group may execute */

/* Returns whether the dynamic linker will load nothing by name because the privileges change
 * (AT_SECURE). */
static inline bool ap_program__changes_privileges(const struct ap_program *program)
{
	if (program->user != program->effective_user || program->group != program->effective_group)
		return true;
	/* Capabilities of the file give root nothing new. */
	if (program->user && program->has_capabilities)
		return true;
	if (program->mode & AP_MODE_SET_USER && program->owner != program->user)
		return true;
	return (program->mode & AP_MODE_SET_GROUP) == AP_MODE_SET_GROUP &&
	       program->owning_group != program->group;
}

/* Returns an enum inside_refusal, or -1 if the library can be preloaded into the program. A static
 * program is refused as such whatever its privileges, since it passes the environment on. */
static inline int ap_program__refusal(const struct ap_program *program)
{
	if (program->is_foreign)
		return INSIDE_REFUSES_MACHINE;
	if (program->is_static)
		return INSIDE_REFUSES_STATIC;
	if (ap_program__changes_privileges(program))
		return INSIDE_REFUSES_SECURE;
	if (program->has_sanitizer)
		return INSIDE_REFUSES_SANITIZER;
	return program->has_malloc ? INSIDE_REFUSES_ALLOCATOR : -1;
}

/* Returns whether a program that is refused for this reason has to run without the library in its
 * environment: the dynamic linker would print an error if it cannot load the library, and a static
 * program passes the environment on. For other reasons the variable does no harm, and programs
 * that the program executes in turn are measured. */
static inline bool ap_refusal__clears_environment(int refusal)
{
	return refusal == INSIDE_REFUSES_HIDDEN || refusal == INSIDE_REFUSES_MACHINE ||
	       refusal == INSIDE_REFUSES_STATIC || refusal == INSIDE_REFUSES_SANITIZER ||
	       refusal == INSIDE_REFUSES_TRANSLATOR || refusal == INSIDE_REFUSES_CONFINED;
}

#endif
