// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A server's life, built twice: AFTER is the same program with something done to it. With N requests
 * (argv[1]) it allocates, above start-up
 *
 *   before: N from parse_headers, 2 N from respond, 4 from load_config
 *   after: N from decode_headers, which is the new name of parse_headers, 2 N from respond,
 *     3 N from add_trace, which is new, and 4 from load_config
 */
#include <stdlib.h>

#define OWN_FRAME __attribute__((noinline, noclone))

/* A call at the end would be a jump. */
#define STAY __asm__ volatile("")

static void *volatile kept;

static OWN_FRAME void use(size_t size_bytes)
{
	kept = malloc(size_bytes);
	free(kept);
	STAY;
}

#ifdef AFTER
#define parse_headers decode_headers

static OWN_FRAME void add_trace(void)
{
	for (int i = 0; i < 3; i++)
		use(32);
	STAY;
}
#endif

static OWN_FRAME void parse_headers(void)
{
	use(64);
	STAY;
}

static OWN_FRAME void respond(void)
{
	use(128);
	use(256);
	STAY;
}

static OWN_FRAME void handle_request(void)
{
	parse_headers();
#ifdef AFTER
	add_trace();
#endif
	respond();
	STAY;
}

static OWN_FRAME void load_config(void)
{
	for (int i = 0; i < 4; i++)
		kept = malloc(100);
	STAY;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;

	load_config();
	for (int i = 0; i < n; i++)
		handle_request();
	return 0;
}
