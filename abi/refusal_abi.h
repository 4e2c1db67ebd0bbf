/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that neither a library nor probes may be put into, by the names in their files and of their files. */
#ifndef ALLOCPROF_REFUSAL_ABI_H
#define ALLOCPROF_REFUSAL_ABI_H

/* X(beginning of the name of a sanitizer's library). Some end the process where another library comes before
 * them, and all of them replace the allocator by one that must see each call first. */
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

#endif
