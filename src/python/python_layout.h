/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds where an interpreter of CPython has the fields of its structs (struct python_layout), by its version. */
#ifndef ALLOCPROF_PYTHON_LAYOUT_H
#define ALLOCPROF_PYTHON_LAYOUT_H

#include <linux/types.h>
#include <stdbool.h>

#include "python_abi.h"

/* Bytes of _PyRuntimeState from the beginning that python_layout__find() is to be given. */
#define PYTHON_OFFSETS_BYTES 576

/* Finds the layout of an interpreter, by the words at the beginning of its _PyRuntimeState and, in versions before
 * 3.13, by @version (PY_VERSION_HEX). Returns false if the version is not known. */
bool python_layout__find(const __u64 words[PYTHON_OFFSETS_BYTES / 8], __u32 version,
			 struct python_layout *out);

#endif
