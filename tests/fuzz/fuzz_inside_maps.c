// SPDX-License-Identifier: GPL-3.0-or-later
/* The list of a process's mappings as text, as the library in it reads it for one address, through buffers of any size. */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <string.h>

#include "fuzz.h"
#include "inside_host.h"
#include "maps.h"

#define FD 5

static const uint8_t *text;
static size_t text_bytes;

static long answer(long number, const long arguments[6])
{
	size_t n = arguments[2];

	switch (number) {
	case __NR_openat:
		return FD;
	case __NR_ioctl:
		return -ENOTTY;
	case __NR_read:
		n = n < text_bytes ? n : text_bytes;
		memcpy((void *)arguments[1], text, n);
		text += n;
		text_bytes -= n;
		return n;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	__u64 address = (__u64)fuzz__take(data, &size) << 12;
	__u32 room = fuzz__take(data, &size) % 256 + 1, path_bytes = room % 48 + 1;
	struct mapping mapping = { 0 };
	char buffer[256], path[48];
	int err;

	text = data;
	text_bytes = size;
	host__answer_by(answer);
	err = maps__find(address, &mapping, path, path_bytes, buffer, room);
	if (!err) {
		FUZZ_CHECK(address >= mapping.start && address < mapping.end);
		FUZZ_CHECK(strnlen(path, path_bytes) < path_bytes);
	} else if (err == -ENOENT) {
		FUZZ_CHECK(address >= mapping.start && address <= mapping.end);
	}
	return 0;
}
