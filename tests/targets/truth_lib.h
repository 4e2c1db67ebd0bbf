/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef TARGETS_TRUTH_LIB_H
#define TARGETS_TRUTH_LIB_H

#include <stddef.h>

/* Calls @callee and allocates before and after. */
void truth_lib_call(void (*callee)(void));

/* An IFUNC whose resolver allocates, too. */
void truth_lib_chosen(size_t size);

#endif
