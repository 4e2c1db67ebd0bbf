// SPDX-License-Identifier: GPL-3.0-or-later
/* The expression by which an event log has blocks, and a thread's name behind a newline. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "event_choice.h"
#include "fuzz.h"

/* Longer expressions make SQLite slow, and nobody but the user writes them. */
#define MOST_BYTES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size < MOST_BYTES ? size : MOST_BYTES);
	char *thread = text + strcspn(text, "\n");
	struct event_choice *choice = NULL;
	struct error error = { "" };

	if (*thread)
		*thread++ = '\0';
	if (event_choice__new(text, &choice, &error)) {
		FUZZ_CHECK(error.text[0] && !choice);
	} else {
		for (__u64 block = 0; block < 2; block++) {
			bool has = event_choice__has(choice, thread, block * 4096);

			/* Without a failure the answer is remembered, and the same. */
			if (!event_choice__failure(choice))
				FUZZ_CHECK(event_choice__has(choice, thread, block * 4096) == has);
		}
	}
	event_choice__free(choice);
	free(text);
	return 0;
}
