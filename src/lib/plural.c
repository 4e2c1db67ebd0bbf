// SPDX-License-Identifier: GPL-3.0-or-later
#include "plural.h"

#include <string.h>

struct plural_text plural__of(const char *sentence, __u64 n)
{
	struct plural_text plural = { "" };
	size_t len = 0;

	while (*sentence && len + 1 < sizeof(plural.text)) {
		size_t bar = strcspn(sentence, "|"), end = strcspn(sentence, "}");

		if (*sentence != '{' || !sentence[end] || bar > end) {
			plural.text[len++] = *sentence++;
			continue;
		}
		for (size_t at = n == 1 ? 1 : bar + 1;
		     at < (n == 1 ? bar : end) && len + 1 < sizeof(plural.text); at++)
			plural.text[len++] = sentence[at];
		sentence += end + 1;
	}
	return plural;
}
