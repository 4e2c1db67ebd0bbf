/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A recording of a server for 100 seconds with memory of four kinds, which the manual pages tell apart:
 *
 * leak_session      64 bytes, never freed: a linear leak
 * load_plugin       256 bytes, all of it freed, but only when the server ends
 * cache_insert      128 bytes, 200 at a time: each block is freed 2 to 3 seconds later
 * parse_request     48 bytes, most freed at once; of 100 one is freed at the end, and one never
 *
 * Beside them read_config keeps one block of 4096 bytes, as programs do.
 */
#ifndef ALLOCPROF_TESTS_CASE_STUDY_H
#define ALLOCPROF_TESTS_CASE_STUDY_H

struct profile;

/* NULL where anything failed. */
struct profile *case_study__new(void);

#endif
