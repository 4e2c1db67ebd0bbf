/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes unwind tables into the programs' maps. */
#ifndef ALLOCPROF_UNWIND_MAPS_H
#define ALLOCPROF_UNWIND_MAPS_H

#include "unwind_tables.h"

/* The maps of bpf/tables.bpf.h. */
struct unwind_maps_fds {
	int chunks, tables, slices, rules;
};

/* NULL on ENOMEM. */
struct unwind_tables *unwind_maps__new(const struct unwind_maps_fds *fds);

#endif
