// SPDX-License-Identifier: GPL-3.0-or-later
/* jit-PID.dump of a process. */
#include <stdint.h>
#include <stdlib.h>

#include "arena.h"
#include "fuzz.h"
#include "jit_dump.h"
#include "jit_query.h"

#define QUERIES 64

static void check_text(const char *text, size_t most)
{
	size_t n = 0;

	for (; text && text[n]; n++)
		FUZZ_CHECK((unsigned char)text[n] >= ' ');
	FUZZ_CHECK(n <= most && (!text || n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_query queries[QUERIES] = { { 0 } };
	struct arena texts = { 0 };

	for (size_t i = 0; i < QUERIES; i++) {
		queries[i].address =
			i < QUERIES / 2 ? i * 0x1000 : UINT64_MAX - (QUERIES - 1 - i) * 0x1000;
		queries[i].time_ns = i;
	}
	(void)jit_dump__look_up(fuzz__file(data, size, NULL), queries, QUERIES, &texts);
	for (size_t i = 0; i < QUERIES; i++) {
		check_text(queries[i].name, JIT_NAME_BYTES);
		check_text(queries[i].file, JIT_FILE_BYTES);
		FUZZ_CHECK(!queries[i].line == !queries[i].file);
	}
	arena__release(&texts);
	return 0;
}
