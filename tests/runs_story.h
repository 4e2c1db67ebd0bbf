/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Three runs of a program, of four that were to be; run n takes n * 10 s, which is 100 epochs:
 *
 * handle   999 + n blocks of 100 bytes, freed at once but for 10, which are freed in the last epoch
 * cache    5 blocks of 1000 bytes, of epoch 20, that stay
 * plugin   1 block of 8 bytes; its file, without a build id, was replaced before run 3
 * jit_add  1 block of 8 bytes, at an address that was jit_mul's in run 3
 *
 * Run 2 has the highest peak: 9 blocks of handle, where the others have 5.
 */
#ifndef ALLOCPROF_TESTS_RUNS_STORY_H
#define ALLOCPROF_TESTS_RUNS_STORY_H

struct profile;

#define RUNS_STORY_RUNS 3

/* Run @number alone, as a session has it; NULL where anything failed. */
struct profile *runs_story__run(unsigned int number);
/* All in one. */
struct profile *runs_story__new(void);

#endif
