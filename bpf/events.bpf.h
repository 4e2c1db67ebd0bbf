/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* With --events: sends each call and each end of a block to user space. */
#ifndef ALLOCPROF_EVENTS_BPF_H
#define ALLOCPROF_EVENTS_BPF_H

#include "event_abi.h"
#include "maps.bpf.h"

extern const volatile struct ap_event_config event_config;

/* Number of the last block; unique in the run. */
extern __u64 last_block_id;

/* These functions are global, so that the verifier checks each once. They are called where the
 * stack of BPF functions is nearly full (at most 512 bytes for all frames together), so they have
 * few parameters. */

/* To be called before @key gets the record @index. */
int event__key(__u32 index, const struct ap_count_key *key);
/* @block at @address has begun or, at @now, ended in the program @process. @kind: enum
 * ap_event_kind, and EVENT_TEMPORARY. */
int event__block(const struct ap_block *block, __u64 address, __u64 now, __u32 process, __u32 kind);
/* Sends a call of the current process that has no followed block. @weight: as in struct
 * ap_event_record. */
int event__call(__u32 kind, __u32 record, __u64 address, __u64 size_bytes, __u32 weight);

#define EVENT_TEMPORARY 0x100

#endif
