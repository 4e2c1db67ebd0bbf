// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Decides whether a call that has a thread's memory will go on, or was left by a jump. */
#include "claim.h"

#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/errno.h>

#include "stack.h"
#include "sys.h"

/* Whether @inner is further in than @outer on the stack that the kernel has for the thread's signals: nothing else is in that. */
static bool is_further_in(__u64 inner, __u64 outer)
{
	stack_t signals = { 0 };

	if (inner >= outer || sys(__NR_sigaltstack, 0, (long)&signals, 0, 0, 0, 0))
		return false;
	return inner >= (__u64)signals.ss_sp && outer - (__u64)signals.ss_sp < signals.ss_size;
}

/*
 * A call owns its part of the stack, from its claim to the return address, until it returns. So it will not go on if another
 * call that has not ended has a part of the same memory, or if what it wrote there is not there any more. From which of two calls is
 * further out nothing is concluded but on one stack that the kernel knows: a handler may run on a stack of its own, above the one
 * that it interrupts, and a program may go on with other stacks in a handler, and come back. What a jump has left without anybody
 * using that part of the stack since is taken for a call that may go on.
 */
bool claim__is_gone(__u64 address, const struct claim *now)
{
	__u64 return_address;
	struct claim claim;
	long size = memory__read_some(address, &claim, sizeof(claim));

	if (size < 0 && size != -EFAULT)
		return false;
	if (size != sizeof(claim) || claim.sign != (CLAIM_SIGN ^ address))
		return true;
	if (address < (__u64)(now->frame + 2) && (__u64)now < (__u64)(claim.frame + 2))
		return true;
	size = memory__read_some((__u64)&claim.frame[1], &return_address, sizeof(return_address));
	if (size < 0 && size != -EFAULT)
		return false;
	return size != sizeof(return_address) || return_address != claim.return_address ||
	       is_further_in(address, (__u64)now);
}
