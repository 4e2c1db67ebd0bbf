// SPDX-License-Identifier: GPL-3.0-or-later
/* Names of the functions of a stack, a line each, the innermost first: which type do they say? */
#include <stdlib.h>
#include <string.h>

#include "block_type.h"
#include "fuzz.h"
#include "profile.h"

#define MOST_FRAMES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz__text(data, size), *rest = text, *name;
	struct profile *profile = profile__new();
	__u32 frames[MOST_FRAMES], n = 0, module, file, stack;
	struct block_types *types;
	const char *type = NULL;

	FUZZ_CHECK(profile && !profile__add_module(profile, "/app", "", &module) &&
		   !profile__add_file(profile, "/a.cc", &file));
	while (n < MOST_FRAMES && (name = strsep(&rest, "\n"))) {
		struct profile_line line = { .line = 1, .file = file };

		FUZZ_CHECK(!profile__add_function(profile, name, name, name, &line.function) &&
			   !profile__add_frame(profile, module, n + 1, false, &frames[n]) &&
			   !profile__set_frame_lines(profile, frames[n], &line, 1));
		n++;
	}
	FUZZ_CHECK(!profile__add_stack(profile, frames, n, AP_END_COMPLETE, &stack));
	types = block_types__new(profile);
	FUZZ_CHECK(types && !block_types__of_stack(types, &profile->stacks[stack - 1], &type));
	FUZZ_CHECK(!type || *type);
	fuzz__read_text(type ? type : "");
	block_types__free(types);
	profile__free(profile);
	free(text);
	return 0;
}
