/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formats numbers. */
#ifndef ALLOCPROF_NUMBER_H
#define ALLOCPROF_NUMBER_H

#include <linux/types.h>
#include <stdbool.h>

struct number_text {
	char text[40]; /* room for the greatest number, and " bytes" */
};

/* Returns @sum, which is not below 0, without its fraction, and at most 2^63 - 1. */
__u64 number__of(double sum);
/* "1,234,567" */
struct number_text number__count(__u64 value);
/* Returns "1.23 MiB" (1 KiB is 1024 bytes) or, if @exact, the same as number__count(). */
struct number_text number__bytes(__u64 bytes, bool exact);
/* Returns "61.2 %"; "-" if @whole is 0. Only exact shares are rounded to 0.0 % and 100.0 %. */
struct number_text number__share(__u64 part, __u64 whole);
/* Returns "3.9 %", the relative error of the estimate @value; "-" if @value is 0. */
struct number_text number__margin(double margin, __u64 value);
/* Returns "12.0 s", "850 ms" or "3.2 h". */
struct number_text number__time(__u64 ns);

#endif
