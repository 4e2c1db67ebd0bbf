// SPDX-License-Identifier: GPL-3.0-or-later
/* A filter of system calls that a process confines itself by: the library in it works out which of its own calls are permitted,
 * before the kernel has looked whether it is a filter. */
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "confine.h"
#include "fuzz.h"
#include "inside_host.h"

static const void *filter;
static size_t filter_bytes;
static void *copy;

/* Memory of this program; the kernel has no part. */
static long answer(long number, const long arguments[6])
{
	const struct iovec *to = (const void *)arguments[1], *from = (const void *)arguments[3];

	switch (number) {
	case __NR_process_vm_readv:
		if (from->iov_base == filter && from->iov_len > filter_bytes)
			return -EFAULT;
		memcpy(to->iov_base, from->iov_base, from->iov_len);
		return from->iov_len;
	case __NR_mmap:
		copy = calloc(1, arguments[1]);
		return (long)copy;
	case __NR_munmap:
		FUZZ_CHECK((void *)arguments[0] == copy);
		free(copy);
		copy = NULL;
	}
	return 0;
}

static bool is_all_permitted(void)
{
	for (__u32 number = 0; number < 512; number++)
		if (!sys__permits(number, 0, 0))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sock_fprog program = { .filter = (void *)data };
	__u64 permitted[2];

	host__answer_by(answer);
	program.len = size ? data[--size] & 1 ? size : size / sizeof(*program.filter) : 0;
	program.filter = malloc(size + 1);
	FUZZ_CHECK(program.filter);
	memcpy(program.filter, data, size);
	filter = program.filter;
	filter_bytes = size;
	for (__u32 child = 0; child < 2; child++) {
		struct sys_limits before = confine__by_filter((unsigned long)&program, child);

		permitted[child] = sys_limits.permitted;
		FUZZ_CHECK(!copy && sys_limits.is_limited == (permitted[child] != ~0ULL));
		/* Less is permitted by a further one. */
		confine__strictly();
		FUZZ_CHECK(sys_limits.is_limited && !(sys_limits.permitted & ~permitted[child]));
		confine__take_back(&before);
		FUZZ_CHECK(is_all_permitted());
	}
	FUZZ_CHECK(permitted[0] == permitted[1]);
	free(program.filter);
	return 0;
}
