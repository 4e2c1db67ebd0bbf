/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures how long the hit of a probe takes whose instruction the kernel single-steps. */
#ifndef ALLOCPROF_STEPPING_H
#define ALLOCPROF_STEPPING_H

/* Sets *@hit_seconds to the time of one such hit on this machine, without a BPF program. For that
 * it sets a probe of its own for some milliseconds. Returns a negative errno if that fails. */
int stepping__measure(double *hit_seconds);

#endif
