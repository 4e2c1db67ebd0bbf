/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of page_recording__write(). */
#ifndef ALLOCPROF_PAGE_RECORDING_INTERNAL_H
#define ALLOCPROF_PAGE_RECORDING_INTERNAL_H

#include <json-c/json.h>

#include "page_recording.h"

/* Texts about the recording, its ledger, processes and threads. NULL on ENOMEM. */
json_object *page_recording__meta(const struct page_recording *recording,
				  const struct page_epochs *epochs);

#endif
