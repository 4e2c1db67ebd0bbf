/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measures how long a hit of a probe takes that the kernel single-steps. */
#ifndef ALLOCPROF_STEPPING_H
#define ALLOCPROF_STEPPING_H

/* Sets *@hit_seconds to what one takes on this machine, without a program at it. It sets a probe of its own for some
 * milliseconds. A negative errno: it could not. */
int stepping__measure(double *hit_seconds);

#endif
