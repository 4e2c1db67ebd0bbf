// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "confine.h"

#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <linux/time.h>

#include "memory.h"
#include "stack.h"

struct sys_limits sys_limits;

#define X_OK 1

/*
 * The system calls that this library makes, with the arguments that seccomp filters inspect. Where
 * a call has several rows, its third and fourth arguments select the row.
 */
static const struct {
	__u32 number;
	__u64 arguments[6];
} used[] = {
	{ __NR_clock_gettime, { CLOCK_MONOTONIC } },
	{ __NR_close, { 1023 } },
	{ __NR_faccessat, { (__u32)AT_FDCWD, 4096 } },
	{ __NR_faccessat, { (__u32)AT_FDCWD, 4096, X_OK } },
	{ __NR_fcntl, { 1023, F_DUPFD_CLOEXEC } },
	{ __NR_fstat, { 1023 } },
	{ __NR_getegid, { 0 } },
	{ __NR_geteuid, { 0 } },
	{ __NR_getpid, { 0 } },
	{ __NR_getppid, { 0 } },
	{ __NR_getrandom, { 4096, 8, GRND_NONBLOCK } },
	{ __NR_gettid, { 0 } },
	{ __NR_ioctl, { 1023, 0xc0686611 } },
	{ __NR_lseek, { 1023, 0, SEEK_TO_END } },
	{ __NR_madvise, { 4096, 4096, MADV_DONTDUMP } },
	{ __NR_madvise, { 4096, 4096, MADV_POPULATE_WRITE } },
	{ __NR_madvise, { 4096, 4096, MADV_REMOVE } },
	{ __NR_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ULL } },
	{ __NR_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 1023 } },
	{ __NR_mmap, { 0, 4096, PROT_READ, MAP_SHARED, 1023 } },
	{ __NR_mprotect, { 4096, 4096, PROT_READ | PROT_WRITE } },
	{ __NR_mprotect, { 4096, 4096, PROT_READ } },
	{ __NR_mremap, { 4096, 0, 4096, MREMAP_MAYMOVE } },
	{ __NR_munmap, { 4096, 4096 } },
	{ __NR_nanosleep, { 4096 } },
	{ __NR_newfstatat, { (__u32)AT_FDCWD } },
	{ __NR_openat, { (__u32)AT_FDCWD, 4096, O_RDONLY | O_CLOEXEC } },
	{ __NR_openat, { (__u32)AT_FDCWD, 4096, O_RDONLY | O_CLOEXEC | O_NOFOLLOW } },
	{ __NR_openat, { (__u32)AT_FDCWD, 4096, O_RDWR | O_CLOEXEC | O_NOFOLLOW } },
	{ __NR_openat, { (__u32)AT_FDCWD, 4096, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK } },
	{ __NR_openat, { (__u32)AT_FDCWD, 4096, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK } },
	{ __NR_prctl, { PR_GET_NAME } },
	{ __NR_pread64, { 1023 } },
	{ __NR_process_vm_readv, { 1023, 4096, 1, 4096, 1 } },
	{ __NR_read, { 1023 } },
	{ __NR_readlinkat, { (__u32)AT_FDCWD, 4096 } },
	{ __NR_rt_sigprocmask, { SIG_SETMASK, 4096, 0, 8 } },
	{ __NR_sigaltstack, { 0, 4096 } },
	{ __NR_tgkill, { 1023, 1023 } },
	{ __NR_write, { 1023, 4096, 1 } },
};

#define N_USED (sizeof(used) / sizeof(used[0]))

_Static_assert(N_USED < 64, "sys_limits has a bit for each");

static bool is_permitted(__u32 row)
{
	return sys_limits.permitted >> row & 1;
}

bool sys__permits(__u32 number, long c, long d)
{
	__u32 found = N_USED, n = 0;

	for (__u32 i = 0; i < N_USED; i++) {
		if (used[i].number != number)
			continue;
		found = i;
		n++;
		if (used[i].arguments[2] == (__u64)c && used[i].arguments[3] == (__u64)d)
			return is_permitted(i) || !sys__is_limited();
	}
	return (n == 1 && is_permitted(found)) || !sys__is_limited();
}

/* Loads a word of @data. seccomp(2) permits filters to load aligned words only. */
static __u32 load(const struct seccomp_data *data, __u32 offset)
{
	if (offset >= sizeof(*data) || offset & 3)
		return 0;
	return ((const __u32 *)data)[offset / 4];
}

struct machine {
	__u32 a, x, memory[BPF_MEMWORDS];
};

static bool compute(struct machine *machine, const struct sock_filter *at)
{
	__u32 by = BPF_SRC(at->code) == BPF_X ? machine->x : at->k;

	switch (BPF_OP(at->code)) {
	case BPF_ADD:
		machine->a += by;
		return true;
	case BPF_SUB:
		machine->a -= by;
		return true;
	case BPF_MUL:
		machine->a *= by;
		return true;
	case BPF_DIV:
		machine->a = by ? machine->a / by : 0;
		return by;
	case BPF_OR:
		machine->a |= by;
		return true;
	case BPF_AND:
		machine->a &= by;
		return true;
	case BPF_XOR:
		machine->a ^= by;
		return true;
	case BPF_LSH:
		machine->a <<= by & 31;
		return true;
	case BPF_RSH:
		machine->a >>= by & 31;
		return true;
	case BPF_NEG:
		machine->a = -machine->a;
		return true;
	}
	return false;
}

static bool jumps(const struct machine *machine, const struct sock_filter *at)
{
	__u32 with = BPF_SRC(at->code) == BPF_X ? machine->x : at->k;

	switch (BPF_OP(at->code)) {
	case BPF_JEQ:
		return machine->a == with;
	case BPF_JGT:
		return machine->a > with;
	case BPF_JGE:
		return machine->a >= with;
	}
	return machine->a & with;
}

static __u32 value_of(const struct machine *machine, const struct sock_filter *at,
		      const struct seccomp_data *data)
{
	switch (BPF_MODE(at->code)) {
	case BPF_ABS:
		return load(data, at->k);
	case BPF_LEN:
		return sizeof(*data);
	case BPF_MEM:
		return machine->memory[at->k % BPF_MEMWORDS];
	}
	return at->k;
}

/* Runs the filter and returns its verdict: to kill the process if this interpreter does not
 * understand the filter. */
static __u32 run(const struct sock_filter *filter, __u32 n, const struct seccomp_data *data)
{
	struct machine machine = { 0 };

	for (__u32 i = 0; i < n; i++) {
		const struct sock_filter *at = &filter[i];
		__u32 skipped;

		switch (BPF_CLASS(at->code)) {
		case BPF_LD:
			machine.a = value_of(&machine, at, data);
			break;
		case BPF_LDX:
			machine.x = value_of(&machine, at, data);
			break;
		case BPF_ST:
			machine.memory[at->k % BPF_MEMWORDS] = machine.a;
			break;
		case BPF_STX:
			machine.memory[at->k % BPF_MEMWORDS] = machine.x;
			break;
		case BPF_ALU:
			if (!compute(&machine, at))
				return SECCOMP_RET_KILL_PROCESS;
			break;
		case BPF_JMP:
			skipped = BPF_OP(at->code) == BPF_JA ? at->k
				  : jumps(&machine, at)	     ? at->jt
							     : at->jf;
			/* The kernel has not checked this filter yet: it may skip so many
			 * instructions that the sum wraps round to a jump backwards. */
			if (skipped >= n - i)
				return SECCOMP_RET_KILL_PROCESS;
			i += skipped;
			break;
		case BPF_RET:
			return BPF_RVAL(at->code) == BPF_A ? machine.a : at->k;
		case BPF_MISC:
			if (BPF_MISCOP(at->code) == BPF_TAX)
				machine.x = machine.a;
			else
				machine.a = machine.x;
			break;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* Returns whether the process goes on after the verdict. It does after SECCOMP_RET_ERRNO, an error
 * that the library handles. */
static bool permits(__u32 verdict)
{
	verdict &= SECCOMP_RET_ACTION_FULL;
	return verdict == SECCOMP_RET_ALLOW || verdict == SECCOMP_RET_LOG ||
	       verdict == SECCOMP_RET_ERRNO;
}

static struct sys_limits begin(__u32 child)
{
	struct sys_limits before = sys_limits;

	/* Limits add up. But if so far only children of vfork(2) have set filters, those do not
	 * limit this process. */
	if (before.is_limited && (child || !before.n_children))
		return before;
	sys_limits.n_children = 0;
	sys_limits.is_limited = false;
	sys_limits.permitted = ~0ULL;
	sys_limits.last_ns = sys__now_ns();
	return before;
}

static void forbid(__u64 rows)
{
	sys_limits.permitted &= ~rows;
	sys_limits.is_limited |= !!rows;
}

struct sys_limits confine__strictly(void)
{
	struct sys_limits before = begin(0);

	/* Strict mode also forbids this library to read the processor's counter. */
	sys_limits.no_ticks = true;
	forbid((1ULL << N_USED) - 1);
	return before;
}

/* Notes that a child of vfork(2) has limited itself. A child that may not call getpid(2) cannot be
 * told from its parent, so its limits apply to both. */
static void note_child(__u32 child)
{
	bool may_ask = false;

	for (__u32 i = 0; i < N_USED; i++)
		may_ask |= used[i].number == __NR_getpid && is_permitted(i);
	if (child && may_ask)
		sys_limits.children[sys_limits.n_children++ % SYS_LIMITED] = child;
	else
		sys_limits.n_children = 0;
}

/* Returns the rows that the filter forbids: all rows if the filter cannot be read. */
static __u64 forbidden_rows(const struct sock_filter *filter, __u32 n)
{
	__u64 rows = 0;

	for (__u32 i = 0; i < N_USED; i++) {
		struct seccomp_data data = {
			.nr = used[i].number,
			.arch = PROCESSOR_AUDIT,
			.instruction_pointer = (__u64)confine__by_filter,
		};

		memcpy(data.args, used[i].arguments, sizeof(data.args));
		if (!permits(run(filter, n, &data)))
			rows |= 1ULL << i;
	}
	return rows;
}

struct sys_limits confine__by_filter(unsigned long program, __u32 child)
{
	struct sys_limits before = begin(child);
	struct sock_filter *filter = NULL;
	struct sock_fprog from = { 0 };
	size_t size;
	__u64 rows;

	if (!memory__read(program, &from, sizeof(from)) || from.len > BPF_MAXINSNS)
		from.len = 0;
	size = from.len * sizeof(*filter);
	if (size)
		filter = sys__map_private(size);
	if (!filter || !memory__read((__u64)from.filter, filter, size))
		from.len = 0;
	rows = forbidden_rows(filter, from.len);
	if (filter)
		sys__unmap(filter, size);
	forbid(rows);
	if (!before.is_limited || before.n_children)
		note_child(child);
	return before;
}

void confine__take_back(const struct sys_limits *before)
{
	sys_limits = *before;
}
