/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of an event log: allocprof-events(5). All numbers are little endian. */
#ifndef ALLOCPROF_EVENT_LOG_FORMAT_H
#define ALLOCPROF_EVENT_LOG_FORMAT_H

#include <linux/types.h>

#define EVENT_LOG_MAGIC	      "aprfevts"
#define EVENT_LOG_VERSION     2
#define EVENT_LOG_BLOCK_MAGIC 0x62747665 /* "evtb" as little-endian number */

struct event_log_header {
	char magic[8];
	__u32 version; /* from 1 to EVENT_LOG_VERSION */
	__u32 bytes;   /* size of this header */
	unsigned char id[16];
	__u64 start_realtime_ns;
	__u8 unused[20]; /* 0 */
	__u32 crc;	 /* CRC-32 of the fields before */
};

/* Precedes the data of a block, which are compressed as RFC 1950 describes. */
struct event_log_block {
	__u32 magic;
	__u32 stored_bytes;
	__u32 unpacked_bytes;
	__u32 n_events;
	__u64 first_event; /* number of events in the blocks before */
	__u32 stored_crc;
	__u32 crc; /* CRC-32 of the fields before */
};

_Static_assert(sizeof(struct event_log_header) == 64, "headers have no padding");
_Static_assert(sizeof(struct event_log_block) == 32, "headers have no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are written as they are");

/* A writer ends a block when it has reached the first size; a reader accepts none that is larger
 * than the second. */
#define EVENT_LOG_FULL_BYTES (256 << 10)
#define EVENT_LOG_MOST_BYTES (1 << 20)

/* The first byte of an item: an event, or one of the tags. */
#define EVENT_LOG_IS_EVENT     0x80
#define EVENT_LOG_HAS_WEIGHT   0x40 /* since version 2 */
#define EVENT_LOG_IS_TEMPORARY 0x20
#define EVENT_LOG_SAME_THREAD  0x10
#define EVENT_LOG_KIND	       0x0f

enum event_log_tag {
	TAG_MODULE = 1,
	TAG_FRAME,
	TAG_STACK,
	TAG_PROCESS,
	TAG_SITE,
	TAG_SITE_STACK,
	TAG_EXIT,
	TAG_END,
};

/* Longest text in bytes. */
#define EVENT_LOG_MOST_TEXT 4096

/* The values from which the numbers of events in a block are stored as differences; zeroed where a
 * block begins. */
struct event_log_last {
	__u32 thread, process;
	__u64 time_ns, id, address;
};

static inline __u64 zigzag__from(__u64 difference)
{
	return difference << 1 ^ (__u64)((__s64)difference >> 63);
}

static inline __u64 zigzag__to(__u64 value)
{
	return value >> 1 ^ -(value & 1);
}

#endif
