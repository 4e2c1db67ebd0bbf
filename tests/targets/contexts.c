// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A context of Boost's, on a stack of its own, that allocates: 3 blocks of 500 bytes in allocate(), called by within(),
 * which the context begins with. It is left and entered again between them.
 */
#include <stdlib.h>

/* boost/context/detail/fcontext.hpp, in C. */
struct transfer {
	void *context;
	void *data;
};

struct transfer jump_fcontext(void *to, void *data);
void *make_fcontext(void *stack_end, size_t size, void (*function)(struct transfer));

static char stack[65536];
static void *volatile sink;

static __attribute__((noinline)) void allocate(void)
{
	sink = malloc(500);
	free(sink);
}

static void within(struct transfer back)
{
	for (;;) {
		allocate();
		back = jump_fcontext(back.context, NULL);
	}
}

int main(void)
{
	void *context = make_fcontext(stack + sizeof(stack), sizeof(stack), within);

	for (int i = 0; i < 3; i++)
		context = jump_fcontext(context, NULL).context;
	return 0;
}
