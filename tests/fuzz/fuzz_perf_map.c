// SPDX-License-Identifier: GPL-3.0-or-later
/* /tmp/perf-PID.map of a process. */
#include <stdint.h>
#include <stdlib.h>

#include "fuzz.h"
#include "jit_query.h"
#include "perf_map.h"

#define QUERIES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_query queries[QUERIES] = { { 0 } };
	struct perf_map *map;

	if (perf_map__read(fuzz__file(data, size, NULL), &map))
		return 0;
	for (size_t i = 0; i < QUERIES; i++)
		queries[i].address =
			i < QUERIES / 2 ? i * 0x1000 : UINT64_MAX - (QUERIES - 1 - i) * 0x1000;
	FUZZ_CHECK(!perf_map__look_up(map, queries, QUERIES));
	for (size_t i = 0; i < QUERIES; i++)
		for (const char *c = queries[i].name; c && *c; c++)
			FUZZ_CHECK((unsigned char)*c >= ' ');
	perf_map__free(map);
	return 0;
}
