/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine that measures by BPF programs at uprobes. */
#ifndef ALLOCPROF_UPROBE_ENGINE_H
#define ALLOCPROF_UPROBE_ENGINE_H

#include "engine.h"

extern const struct engine_operations uprobe_engine;

/* Returns how many instructions the verifier processed for the program at the probes (with --live,
 * at the entries), of at most a million. 0 before Linux 5.16. */
__u32 uprobe_engine__verified_instructions(const struct engine *engine);

#endif
