/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the frames of CPython's interpreter that belong to a stack, and sends what they are called (docs/architecture.md). */
#ifndef ALLOCPROF_PYTHON_BPF_H
#define ALLOCPROF_PYTHON_BPF_H

#include "maps.bpf.h"
#include "scratch.bpf.h"

/* Interpreters, by the module that they are in. User space adds them before the module's table. */
DECLARE_MAP(pythons, HASH, AP_MAX_PYTHONS, 0, __u32, struct ap_python);

/* Notes that the thread has code of an interpreter, if @module is one. @bias: file offset minus address. */
static __always_inline void python__meet(struct scratch *scratch, __u32 module, __u64 bias)
{
	const struct ap_python *python = bpf_map_lookup_elem(&pythons, &module);

	if (!python)
		return;
	scratch->python.of = *python;
	scratch->python.loop = python->loop - bias;
	scratch->python.module = module;
}

/* Finds the frames of Python of the stack that the scratch holds, whose hash it changes. */
int python__walk(struct scratch *scratch);

/* Appends the frames of Python to those of the stack, which are laid out. */
int python__lay_out(struct scratch *scratch);

/* Sends the code objects of these frames that user space does not have. To be called before the frames are laid out. */
int python__send(struct scratch *scratch);

#endif
