// SPDX-License-Identifier: GPL-3.0-or-later
/* Marks of regions, in functions that call each other: those that a function has left open end with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "error.h"
#include "fuzz.h"
#include "inside_host.h"
#include "preload_internal.h"
#include "regions.h"

#define MAX_CALLS 64

static struct preload *preload;

static void begin(void)
{
	const struct preload_options options = {
		.library = "/proc/self/exe",
		.settings = { .mode = INSIDE_COUNT, .regions = 1 },
	};
	static char path[INSIDE_PATH_BYTES + 16];
	struct error error = { "" };

	FUZZ_CHECK(!preload__new(&options, &preload, &error));
	FUZZ_CHECK(!preload__set_gate(preload, INSIDE_OPEN));
	snprintf(path, sizeof(path), "%s/" INSIDE_LIBRARY, preload->directory);
	host__load(path);
	/* It has the files open and mapped. */
	preload__free(preload);
	FUZZ_CHECK(self);
}

static const struct ap_region_thread *open_regions(void)
{
	return regions__open(self);
}

static const char *name_of(uint8_t byte)
{
	static const char names[][4] = { "a", "b", "c", "ab", "abc", "", ":", "d" };

	return names[byte % ARRAY_SIZE(names)];
}

static void check(void)
{
	const struct ap_region_thread *open = open_regions();

	FUZZ_CHECK(!open || (open->n <= AP_MAX_OPEN_REGIONS && open->floor));
}

struct marks {
	const uint8_t *data;
	size_t size;
};

/* A function of the program; it ends with the input, or where that says so. */
static __attribute__((noinline)) void call(struct marks *marks, int depth)
{
	volatile char room[16];

	room[0] = depth;
	while (marks->size) {
		uint8_t byte = *marks->data++;

		marks->size--;
		switch (byte & 7) {
		case 0:
		case 1:
		case 2:
		case 3:
			allocprof_mark_(byte & 7, name_of(byte >> 3));
			break;
		case 4:
		case 5:
			inside_free(NULL);
			break;
		case 6:
			if (depth < MAX_CALLS)
				call(marks, depth + 1);
			break;
		default:
			return;
		}
		check();
	}
	room[1] = room[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct marks marks = { data, size };
	const struct ap_region_thread *open;

	if (!preload)
		begin();
	call(&marks, 0);
	/* A call further out: only regions without a scope are open. */
	inside_free(NULL);
	open = open_regions();
	for (__u32 i = 0; open && i < open->n; i++)
		FUZZ_CHECK(!open->open[i].scoped);
	regions__begin_thread(self, NULL);
	return 0;
}
