// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads registers of arm64 of a thread that has stopped. Having it run code that this process chooses is not there yet:
 * remote_code__find() refuses. */
#include "remote.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

int remote_code__find(pid_t pid, struct remote_code *out)
{
	return -EPROTONOSUPPORT;
}

int remote__begin(pid_t pid, pid_t tid, const struct remote_code *code, struct remote **out)
{
	return -EOPNOTSUPP;
}

void remote__end(struct remote *remote)
{
}

int remote__lift_filters(struct remote *remote)
{
	return -EOPNOTSUPP;
}

int remote__read_filter(const struct remote *remote, unsigned index, struct sock_filter *out,
			size_t *n)
{
	return -EOPNOTSUPP;
}

long remote__system_call(struct remote *remote, long number, long a, long b, long c, long d, long e,
			 long f)
{
	return -EOPNOTSUPP;
}

__u64 remote__put(struct remote *remote, const void *bytes, size_t size)
{
	return 0;
}

int remote__call(struct remote *remote, __u64 function, enum remote_state (*is_done)(void *context),
		 void *context, __u64 until_ns)
{
	return -EOPNOTSUPP;
}

/* Reads a set of registers (NT_*). Returns the bytes that there are, or -ESRCH. */
static ssize_t read_set(pid_t tid, long set, void *out, size_t size)
{
	struct iovec part = { out, size };

	return ptrace(PTRACE_GETREGSET, tid, (void *)set, &part) ? -ESRCH : (ssize_t)part.iov_len;
}

int remote__thread_data(pid_t tid, __u64 *address)
{
	return read_set(tid, NT_ARM_TLS, address, sizeof(*address)) < 0 ? -ESRCH : 0;
}

/* Thread-local variables of the C library and others begin behind the thread pointer, and seldom need more. */
#define MOST_VARIABLES 4096

__u64 remote__variables_end(__u64 data)
{
	return data + MOST_VARIABLES;
}

int remote__position(pid_t tid, __u64 *code, __u64 *stack)
{
	struct user_regs_struct registers = { 0 };

	if (read_set(tid, NT_PRSTATUS, &registers, sizeof(registers)) < 0)
		return -ESRCH;
	if (code)
		*code = registers.pc;
	*stack = registers.sp;
	return 0;
}

int remote__registers(pid_t tid, __u64 words[REMOTE_REGISTERS], size_t *n)
{
	ssize_t used = read_set(tid, NT_PRSTATUS, words, sizeof(struct user_regs_struct)), more;

	if (used < 0)
		return -ESRCH;
	more = read_set(tid, NT_PRFPREG, (char *)words + used,
			REMOTE_REGISTERS * sizeof(*words) - (size_t)used);
	*n = (size_t)(used + (more < 0 ? 0 : more)) / sizeof(*words);
	return 0;
}
