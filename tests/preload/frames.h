/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The process's own stack, by libgcc's _Unwind_Backtrace. What libgcc says of the outermost end is
 * taken as follows: the frame whose CFI leaves the return address undefined (_start, clone3) is
 * reported as any other and is the last; behind it libgcc reports one more of address 0, which is
 * dropped. A frame without CFI is the last, too, and is kept.
 */
#ifndef PRELOAD_FRAMES_H
#define PRELOAD_FRAMES_H

#include <stddef.h>
#include <stdint.h>

/* Puts the return addresses of the stack into @frames, from @return_address, that of the stub that
 * was entered, outwards; how many. */
size_t frames__capture(uintptr_t *frames, size_t room, uintptr_t return_address);

/* The path of the file that @pc is in, as ld.so has it, and what to subtract for an ELF virtual
 * address; NULL and 0 where there is none. Takes no lock. */
const char *frames__module(uintptr_t pc, uintptr_t *bias);

/* The path of the program. */
const char *frames__program(void);

#endif
