// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads and writes the memory of another process. */
#include "remote.h"

#include <errno.h>
#include <sys/uio.h>

int process_memory__read(pid_t pid, __u64 address, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)address, size };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return n == (ssize_t)size ? 0 : n < 0 && errno == ESRCH ? -ESRCH : -EFAULT;
}

int process_memory__write(pid_t pid, __u64 address, const void *bytes, size_t size)
{
	struct iovec local = { (void *)bytes, size }, remote = { (void *)address, size };
	ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

	return n == (ssize_t)size ? 0 : n < 0 && errno == ESRCH ? -ESRCH : -EFAULT;
}
