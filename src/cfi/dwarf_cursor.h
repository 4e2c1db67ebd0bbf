/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A bounded reader of DWARF's encodings, in the byte order of this machine. */
#ifndef ALLOCPROF_DWARF_CURSOR_H
#define ALLOCPROF_DWARF_CURSOR_H

#include <linux/types.h>
#include <stdbool.h>

/* A position in a section. A read beyond the end sets @bad, returns 0 and leaves nothing to read,
 * so that callers check once after several reads, and loops terminate. */
struct dwarf_cursor {
	const __u8 *pos;
	const __u8 *end;
	bool bad;
};

__u8 dwarf_cursor__u8(struct dwarf_cursor *c);
__u16 dwarf_cursor__u16(struct dwarf_cursor *c);
__u32 dwarf_cursor__u32(struct dwarf_cursor *c);
__u64 dwarf_cursor__u64(struct dwarf_cursor *c);
__u64 dwarf_cursor__uleb128(struct dwarf_cursor *c);
__s64 dwarf_cursor__sleb128(struct dwarf_cursor *c);
/* Skips @size bytes. Returns where they start. */
const __u8 *dwarf_cursor__skip(struct dwarf_cursor *c, __u64 size);

#endif
