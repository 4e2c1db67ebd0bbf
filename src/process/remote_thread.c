// SPDX-License-Identifier: GPL-3.0-or-later
/* Makes a stopped thread of another process run code that this process chooses. What that takes of the processor is in
 * remote_<processor>.c. */
#include "remote.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "memory_mappings.h"
#include "proc.h"
#include "remote_thread.h"

/* How much stack, below what the thread uses, a function may use in addition to the frame. */
#define STACK_BYTES (64 << 10)

/* Time between two looks at whether a function is done. */
#define LOOK_US 20

struct looking {
	pid_t pid;
	struct remote_code *code;
};

/* Returns the address of the instructions in the mapping, or 0. */
static __u64 find_code(pid_t pid, const struct proc_mapping *mapping,
		       const struct remote_instructions *wanted)
{
	size_t size = mapping->end - mapping->start;
	_cleanup_(free_ptr) unsigned char *code = malloc(size);
	const unsigned char *found;

	if (!code || process_memory__read(pid, mapping->start, code, size))
		return 0;
	found = memmem(code, size, wanted->bytes, wanted->size);
	return found ? mapping->start + (found - code) : 0;
}

/* musl keeps no thread-specific data near the thread pointer, where the callers need them. */
static int look_for_code(void *context, const struct proc_mapping *mapping)
{
	const struct looking *looking = context;
	struct remote_code *code = looking->code;
	bool is_c_library = memory_mapping__is_c_library(mapping->path),
	     is_of_kernel = !strcmp(mapping->path, "[vdso]");

	if (!mapping->is_executable)
		return 0;
	if (is_c_library && !code->system_call)
		code->system_call = find_code(looking->pid, mapping, &remote_system_call_code);
	if ((remote_restorer_code.is_of_kernel ? is_of_kernel : is_c_library) && !code->restorer)
		code->restorer = find_code(looking->pid, mapping, &remote_restorer_code);
	return 0;
}

int remote_code__find(pid_t pid, struct remote_code *out)
{
	struct remote_code code = { 0 };
	struct looking looking = { pid, &code };
	int err = proc_maps__each(pid, look_for_code, &looking);

	if (!err && (!code.system_call || !code.restorer))
		err = -ENOTSUP;
	if (!err)
		*out = code;
	return err;
}

struct stack_position {
	__u64 sp, data; /* the stack pointer, and the thread pointer */
};

/* Accepts the main thread's stack, or a stack that the C library has made, which ends with the
 * thread's data; not a coroutine's stack, next to which there may be other data. */
static int look_at_stack(void *context, const struct proc_mapping *mapping)
{
	const struct stack_position *at = context;

	if (at->sp < mapping->start || at->sp >= mapping->end)
		return 0;
	return !strcmp(mapping->path, "[stack]") ||
	       (at->data > at->sp && at->data < mapping->end &&
		at->sp - mapping->start > STACK_BYTES + REMOTE_VECTORS);
}

/* Returns whether the code still is there: the process may have executed another program since it
 * was found. */
static bool has_code(pid_t pid, __u64 address, const struct remote_instructions *code)
{
	unsigned char found[sizeof(code->bytes)];

	return !process_memory__read(pid, address, found, code->size) &&
	       !memcmp(found, code->bytes, code->size);
}

static int read_registers(const struct remote *remote, struct user_regs_struct *out)
{
	struct iovec part = { out, sizeof(*out) };

	return ptrace(PTRACE_GETREGSET, remote->tid, (void *)NT_PRSTATUS, &part) ? -ESRCH : 0;
}

static bool is_time(pid_t pid, __u64 address)
{
	struct timespec time;

	return !process_memory__read(pid, address, &time, sizeof(time)) && time.tv_sec >= 0 &&
	       (__u64)time.tv_nsec < NS_PER_S;
}

static bool is_word(pid_t pid, __u64 address)
{
	__u32 word;

	return !process_memory__read(pid, address, &word, sizeof(word));
}

/* Returns whether the address is that of files that poll(2) waits for. */
static bool is_polled(pid_t pid, __u64 address)
{
	struct pollfd polled;

	return !process_memory__read(pid, address, &polled, sizeof(polled)) && !polled.revents;
}

/* Numbers of clocks, and of polled files, are below. */
#define MOST_CLOCKS 16
#define MOST_POLLED (1 << 20)

long remote__number_by_arguments(pid_t pid, const __u64 arguments[4], long poll)
{
	__u64 a = arguments[0], b = arguments[1], c = arguments[2], d = arguments[3];
	__u64 operation = b & ~(__u64)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
	const struct {
		long number;
		bool fits;
	} calls[] = {
		{ SYS_clock_nanosleep, a < MOST_CLOCKS && !b && is_time(pid, c) },
		{ SYS_nanosleep, is_time(pid, a) && (!b || is_word(pid, b)) },
		{ SYS_futex, (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) &&
				     !(a & 3) && is_word(pid, a) && is_time(pid, d) },
		{ poll, poll >= 0 && b && b < MOST_POLLED && (__s32)c > 0 && is_polled(pid, a) },
	};
	long number = -1;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (!calls[i].fits)
			continue;
		if (number >= 0)
			return -1;
		number = calls[i].number;
	}
	return number;
}

/* Returns whether the thread has stopped to take a signal: this is lost where the thread goes on from another stop. */
static bool takes_signal(pid_t tid)
{
	siginfo_t info;

	return !ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) &&
	       info.si_code >> 8 != PTRACE_EVENT_STOP;
}

int remote__begin(pid_t pid, pid_t tid, const struct remote_code *code, struct remote **out)
{
	struct remote *remote = calloc(1, sizeof(*remote));
	struct stack_position at;
	int err = -ESRCH;

	if (!remote)
		return -ENOMEM;
	remote->pid = pid;
	remote->tid = tid;
	remote->code = *code;
	if (read_registers(remote, &remote->before) || remote__thread_data(tid, &at.data) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(remote->mask), &remote->mask))
		goto fail;
	err = -EAGAIN;
	if (takes_signal(tid))
		goto fail;
	err = -ESTALE;
	if (!has_code(pid, code->system_call, &remote_system_call_code) ||
	    !has_code(pid, code->restorer, &remote_restorer_code))
		goto fail;
	at.sp = remote_registers__sp(&remote->before);
	err = proc_maps__each(pid, look_at_stack, &at);
	err = err == 1 ? remote__read_vectors(remote) : err ? err : -ENOTSUP;
	if (!err)
		err = remote__write_frame(remote);
	if (!err && ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)PTRACE_O_TRACESYSGOOD))
		err = -ESRCH;
	if (err)
		goto fail;
	*out = remote;
	return 0;
fail:
	free(remote);
	return err;
}

int remote__lift_filters(struct remote *remote)
{
	return ptrace(PTRACE_SETOPTIONS, remote->tid, NULL,
		      (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP))
		       ? -EPERM
		       : 0;
}

int remote__read_filter(const struct remote *remote, unsigned index, struct sock_filter *out,
			size_t *n)
{
	long result = ptrace(PTRACE_SECCOMP_GET_FILTER, remote->tid, (void *)(long)index, NULL);

	if (result > 0 && result <= BPF_MAXINSNS)
		result = ptrace(PTRACE_SECCOMP_GET_FILTER, remote->tid, (void *)(long)index, out);
	if (result < 0)
		return errno == ENOENT ? -ENOENT : -EPERM;
	*n = result;
	return 0;
}

__u64 remote__put(struct remote *remote, const void *bytes, size_t size)
{
	return size <= REMOTE_ROOM && !process_memory__write(remote->pid, remote->room, bytes, size)
		       ? remote->room
		       : 0;
}

/* Waits for a stop. Returns 0 with the status, or -ESRCH. */
static int await_stop(const struct remote *remote, int *status)
{
	while (waitpid(remote->tid, status, __WALL) < 0)
		if (errno != EINTR)
			return -ESRCH;
	return WIFSTOPPED(*status) ? 0 : -ESRCH;
}

/* Returns whether the thread cannot go on from its present instruction. Signals that others send
 * are blocked. */
static bool is_fault(int status)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!(status >> 16) && WSTOPSIG(status) == faults[i])
			return true;
	return false;
}

int remote__set_mask(const struct remote *remote, __u64 mask)
{
	return ptrace(PTRACE_SETSIGMASK, remote->tid, (void *)sizeof(mask), &mask) ? -ESRCH : 0;
}

/* If the whole process is stopped meanwhile (SIGSTOP), that stop is skipped: the thread stops when it is
 * released. A signal that comes where none is blocked is blocked, with which the kernel keeps it for later. */
int remote__go_to_system_call(const struct remote *remote)
{
	int status, err, signal = 0;

	do {
		if (signal)
			(void)remote__set_mask(remote, REMOTE_ALL_SIGNALS);
		if (ptrace(PTRACE_SYSCALL, remote->tid, NULL, (void *)(long)signal))
			return -ESRCH;
		err = await_stop(remote, &status);
		if (!err && remote->is_moved && is_fault(status))
			return -EFAULT;
		signal = status >> 16 ? 0 : WSTOPSIG(status);
	} while (!err && signal != (SIGTRAP | 0x80));
	return err;
}

int remote__go_to_stop(const struct remote *remote)
{
	int status, err;

	(void)ptrace(PTRACE_INTERRUPT, remote->tid, NULL, NULL);
	do {
		if (ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
			return -ESRCH;
		err = await_stop(remote, &status);
		if (!err && is_fault(status))
			return -EFAULT;
	} while (!err && status >> 16 != PTRACE_EVENT_STOP);
	return err;
}

/* Has the thread go on with other registers. Its signals are blocked only when it has them: if this process is killed, the frame
 * gives it its own mask back. */
static int move(struct remote *remote, const struct user_regs_struct *registers)
{
	int err = remote->is_moved ? 0 : remote__settle(remote);

	if (!err)
		err = remote__set_registers(remote, registers);
	if (err || remote->is_moved)
		return err;
	remote->is_moved = true;
	return remote__set_mask(remote, REMOTE_ALL_SIGNALS);
}

long remote__system_call(struct remote *remote, long number, long a, long b, long c, long d, long e,
			 long f)
{
	struct user_regs_struct regs = remote->before;
	int err;

	if (remote->returns)
		return -EAGAIN;
	remote__aim_at_call(remote, &regs, number, (const long[]){ a, b, c, d, e, f });
	err = move(remote, &regs);
	if (!err)
		err = remote__go_to_system_call(remote);
	if (!err)
		err = remote__go_to_system_call(remote);
	if (!err)
		err = read_registers(remote, &regs);
	return err ? err : remote_registers__result(&regs);
}

static int interrupt(struct remote *remote)
{
	int status, err;

	do {
		(void)ptrace(PTRACE_INTERRUPT, remote->tid, NULL, NULL);
		err = await_stop(remote, &status);
		if (err || status >> 16 == PTRACE_EVENT_STOP)
			return err;
		if (is_fault(status))
			return -EFAULT;
	} while (!ptrace(PTRACE_CONT, remote->tid, NULL, NULL));
	return -ESRCH;
}

/* A thread that was about to take a signal when it was held stops once more before it runs. */
static int pass_stops(const struct remote *remote)
{
	int status;

	while (waitpid(remote->tid, &status, __WALL | WNOHANG) == remote->tid) {
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (is_fault(status))
			return -EFAULT;
		if (ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
			return -ESRCH;
	}
	return 0;
}

int remote__call(struct remote *remote, __u64 function, enum remote_state (*is_done)(void *context),
		 void *context, __u64 until_ns)
{
	struct user_regs_struct regs = remote->before;
	enum remote_state state;
	int err;

	if (remote->returns)
		return -EAGAIN;
	remote__aim_at_function(remote, &regs, function);
	err = move(remote, &regs);
	if (!err && ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
		err = -ESRCH;
	if (err)
		return err;
	for (;;) {
		/* Sleeps in between, since the thread may share this processor. */
		while (!err && is_done(context) == REMOTE_WORKS && clock__now_ns() < until_ns) {
			usleep(LOOK_US);
			err = pass_stops(remote);
		}
		if (!err)
			err = interrupt(remote);
		if (err)
			return err;
		/* Just now the function may have stopped waiting, have finished, or have got what
		 * it waited for. */
		state = is_done(context);
		if (state != REMOTE_WORKS || clock__now_ns() >= until_ns)
			break;
		if (ptrace(PTRACE_CONT, remote->tid, NULL, NULL))
			return -ESRCH;
	}
	remote->returns = state == REMOTE_RETURNS;
	return state == REMOTE_DONE ? 0 : remote->returns ? -ECANCELED : -ETIMEDOUT;
}

/* The library's own code leaves these registers alone, but not the C library's that it calls. */
static void restore_vectors(struct remote *remote)
{
	struct iovec part = { remote->vectors, remote->vectors_size };

	(void)ptrace(PTRACE_SETREGSET, remote->tid, (void *)remote->vectors_set, &part);
}

/* How much stack is cleared: functions that were called leave addresses below what the thread
 * uses, and later frames of the thread would have them in their gaps. */
#define USED_BYTES (16 << 10)

static void clear_stack(const struct remote *remote)
{
	static const unsigned char zeros[4096];
	__u64 at = remote->frame - USED_BYTES, end = remote->unused_end;

	for (; at < end; at += sizeof(zeros))
		(void)process_memory__write(remote->pid, at, zeros,
					    end - at < sizeof(zeros) ? end - at : sizeof(zeros));
}

/* The kernel restarts an interrupted system call when the thread is about to handle signals, which an interruption makes it do. If
 * this process is killed before the thread has its registers, the frame gives it all that it has not got back yet. */
void remote__end(struct remote *remote)
{
	if (!remote)
		return;
	if (!remote->returns && remote->is_moved) {
		restore_vectors(remote);
		(void)remote__set_mask(remote, remote->mask);
		(void)remote__set_registers(remote, &remote->before);
		clear_stack(remote);
		(void)remote__go_to_stop(remote);
	}
	free(remote);
}
