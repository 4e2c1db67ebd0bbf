/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the texts of a page about its recording; the numbers of its stacks are in page_recording.c. */
#ifndef ALLOCPROF_PAGE_RECORDING_INTERNAL_H
#define ALLOCPROF_PAGE_RECORDING_INTERNAL_H

#include <json-c/json.h>
#include <stdbool.h>

#include "page_recording.h"

struct profile;

/* Returns texts about the recording, its ledger, processes and threads; NULL if there is no
 * memory. The caller puts it. */
json_object *page_recording__meta(const struct page_recording *recording,
				  const struct page_epochs *epochs);
/* Returns whether a process ended before the recording did, and left blocks live. */
bool page_recording__has_exits(const struct profile *profile);

#endif
