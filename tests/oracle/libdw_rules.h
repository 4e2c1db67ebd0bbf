/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Evaluates libdw's frame rules, which are DWARF expressions, over registers and memory. */
#ifndef ALLOCPROF_TESTS_LIBDW_RULES_H
#define ALLOCPROF_TESTS_LIBDW_RULES_H

#include <elfutils/libdw.h>

#include "cfi_frames.h"

/* The CFA of @frame. -ENOENT if it has none. */
int dwarf_frame__cfa(Dwarf_Frame *frame, const struct dwarf_machine *machine, __u64 *cfa);

/* The caller's value of register @number. -ENOENT: libdw has no rule for it, or "undefined". */
int dwarf_frame__caller_register(Dwarf_Frame *frame, const struct dwarf_machine *machine,
				 int number, __u64 cfa, __u64 *value);

#endif
