// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "diff_internal.h"

static const char *const prefixes[] = { "specialized ", "merged ", "outlined " };
/* Clones that GCC and LLVM make of a function. */
static const char *const suffixes[] = { " [clone .", ".isra.", ".constprop.", ".part.",
					".cold",     ".llvm.", ".lto_priv." };

static bool is_operator(const char *name, const char *at)
{
	return at - name >= 8 && !memcmp(at - 8, "operator", 8);
}

/* Copies @name without what stands in <> and (), and returns the length. */
static size_t drop_brackets(const char *name, char *text)
{
	size_t len = 0;
	int depth = 0;

	for (const char *at = name; *at; at++) {
		bool opens = *at == '<' || *at == '(', closes = *at == '>' || *at == ')';

		if (opens && !depth && is_operator(name, at))
			opens = false;
		/* A '>' of "->" or of an operator closes nothing. */
		if (closes && (!depth || at[-1] == '-'))
			closes = false;
		if (closes)
			depth--;
		else if (opens)
			depth++;
		else if (!depth)
			text[len++] = *at;
	}
	text[len] = '\0';
	/* Nothing but brackets, "(anonymous namespace)" say, or one that is never closed. */
	if (!len || depth) {
		len = strlen(name);
		memcpy(text, name, len + 1);
	}
	return len;
}

/* "::h" and 16 hexadecimal digits end Rust's older names. */
static size_t drop_rust_hash(char *text, size_t len)
{
	if (len > 19 && !memcmp(text + len - 19, "::h", 3) &&
	    strspn(text + len - 16, "0123456789abcdef") == 16)
		len -= 19;
	text[len] = '\0';
	return len;
}

size_t diff_name__canonical(const char *name, char *text)
{
	size_t len;

	if (*name == '[') {
		len = strlen(name);
		memcpy(text, name, len + 1);
		return len;
	}
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t size = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], size) && name[size])
			name += size;
	}
	len = drop_brackets(name, text);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *at = strstr(text, suffixes[i]);

		if (at && at != text)
			*at = '\0';
	}
	return drop_rust_hash(text, strlen(text));
}

static int compare_pairs(const void *a, const void *b)
{
	return (int)*(const __u16 *)a - *(const __u16 *)b;
}

size_t diff_name__pairs(const char *name, __u16 pairs[DIFF_NAME_PAIRS])
{
	size_t n = 0;

	for (const unsigned char *at = (const unsigned char *)name; *at && at[1]; at++) {
		if (n == DIFF_NAME_PAIRS)
			break;
		pairs[n++] = at[0] << 8 | at[1];
	}
	qsort(pairs, n, sizeof(*pairs), compare_pairs);
	return n;
}

unsigned int diff_name__shared_pairs(const __u16 *a, size_t n_a, const __u16 *b, size_t n_b)
{
	size_t shared = 0;

	for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
		if (a[i] == b[j]) {
			shared++;
			i++;
			j++;
		} else if (a[i] < b[j]) {
			i++;
		} else {
			j++;
		}
	}
	return n_a + n_b ? shared * 2 * 1000 / (n_a + n_b) : 0;
}

bool diff_name__is_comparable(const struct diff_name *a, const struct diff_name *b)
{
	/* Places without a name, and a frame beside the allocator's function. */
	return *a->function != '[' && *b->function != '[' && !*a->module == !*b->module;
}
