// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sys.h"

#include <asm/signal.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <linux/time.h>
#include <linux/time_types.h>

#include "abi.h"
#include "inside_abi.h"

int sys__open(const char *path, int flags)
{
	return sys(__NR_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, 0, 0, 0);
}

long sys__read(int fd, void *buffer, size_t size)
{
	long n;

	do
		n = sys(__NR_read, fd, (long)buffer, size, 0, 0, 0);
	while (n == -EINTR);
	return n;
}

int sys__read_at(int fd, void *buffer, size_t size, __u64 offset)
{
	while (size) {
		long n = sys(__NR_pread64, fd, (long)buffer, size, offset, 0, 0);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		buffer = (char *)buffer + n;
		offset += n;
		size -= n;
	}
	return 0;
}

void sys__close(int fd)
{
	sys(__NR_close, fd, 0, 0, 0, 0, 0);
}

__u32 sys__read_text(const char *path, char *text, size_t size)
{
	int fd = sys__open(path, O_RDONLY);
	size_t n = 0;
	long part;

	text[0] = 0;
	if (fd < 0)
		return 0;
	while (n < size - 1 && (part = sys__read(fd, text + n, size - 1 - n)) > 0)
		n += part;
	sys__close(fd);
	text[n] = 0;
	return n;
}

long sys__size(int fd)
{
	return sys(__NR_lseek, fd, 0, SEEK_TO_END, 0, 0, 0);
}

void *sys__map(size_t size, int protection, int flags, int fd, __u64 offset)
{
	long address = sys(__NR_mmap, 0, size, protection, flags, fd, offset);

	if (address < 0 && address > -4096)
		return NULL;
	spared__add(address, size);
	return (void *)address;
}

void *sys__map_private(size_t size)
{
	return sys__map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void sys__unmap(void *address, size_t size)
{
	spared__remove((__u64)address);
	sys(__NR_munmap, (long)address, size, 0, 0, 0, 0);
}

/* A filter may refuse even these, as whoever started the program has set it. */
static __u32 ask_for_number(long number)
{
	long result = sys__may(number) ? sys(number, 0, 0, 0, 0, 0, 0) : 0;

	return result > 0 ? result : 0;
}

__u32 sys__pid(void)
{
	return ask_for_number(__NR_getpid);
}

__u32 sys__tid(void)
{
	return ask_for_number(__NR_gettid);
}

__u32 sys__parent_pid(void)
{
	return ask_for_number(__NR_getppid);
}

__u64 sys__pid_namespace(void)
{
	struct stat status;

	return sys(__NR_newfstatat, AT_FDCWD, (long)"/proc/self/ns/pid", (long)&status, 0, 0, 0)
		       ? 0
		       : status.st_ino;
}

bool sys__thread_has_ended(__u32 pid, __u32 tid)
{
	return sys(__NR_tgkill, pid, tid, 0, 0, 0, 0) == -ESRCH;
}

/* Children of vfork(2) are told from their parent by getpid(2), which they may call
 * (note_child()). */
bool sys__is_limited(void)
{
	__u32 pid;

	if (likely(!sys_limits.is_limited) || !sys_limits.n_children)
		return sys_limits.is_limited;
	pid = sys__pid();
	for (int i = 0; i < SYS_LIMITED; i++)
		if (sys_limits.children[i] == pid)
			return true;
	return false;
}

__u64 sys__now_ns(void)
{
	struct {
		long seconds, ns;
	} now = { 0 };

	if (sys(__NR_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0))
		return sys_limits.last_ns;
	return now.seconds * 1000000000ULL + now.ns;
}

/* A system call takes some hundred ticks; what takes more was interrupted, or is in a slow virtual machine. */
#define READING_TICKS 3000
#define READING_TRIES 8

bool sys__read_clocks(__u64 *now_ns, __u64 *ticks)
{
	for (int i = 0; i < READING_TRIES && !sys_limits.is_limited; i++) {
		__u64 before = processor__ticks(), after;

		*now_ns = sys__now_ns();
		after = processor__ticks();
		*ticks = before + (after - before) / 2;
		if (*now_ns && after - before < READING_TICKS)
			return true;
	}
	return false;
}

void sys__comm(char *comm)
{
	for (int i = 0; i < AP_COMM_LEN; i++)
		comm[i] = 0;
	sys(__NR_prctl, PR_GET_NAME, (long)comm, 0, 0, 0, 0);
}

/* The compiler generates calls of these two functions to copy and clear structures. The host build
 * uses the C library's, which sanitizers check. */
#ifndef INSIDE_HOST
__attribute__((visibility("hidden"))) void *memcpy(void *to, const void *from, size_t size)
{
	processor__copy(to, from, size);
	return to;
}

__attribute__((visibility("hidden"))) void *memset(void *to, int value, size_t size)
{
	processor__set(to, value, size);
	return to;
}
#endif

size_t text__length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

bool text__equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

bool text__begins(const char *text, const char *start)
{
	while (*start)
		if (*text++ != *start++)
			return false;
	return true;
}

bool text__contains(const char *text, const char *part)
{
	for (; *text; text++)
		if (text__begins(text, part))
			return true;
	return false;
}

char *text__append(char *end, const char *stop, const char *text)
{
	if (!end)
		return NULL;
	while (*text) {
		if (end + 1 >= stop)
			return NULL;
		*end++ = *text++;
	}
	*end = 0;
	return end;
}

__u64 sys__random(void)
{
	__u64 number = 0;

	/* getrandom(2) is missing before Linux 3.17, and seccomp may forbid it: then time and
	 * thread number do. */
	if (sys(__NR_getrandom, (long)&number, sizeof(number), GRND_NONBLOCK, 0, 0, 0) !=
	    sizeof(number))
		number = sys__now_ns() ^ (__u64)sys__tid() << 40;
	return number;
}

/* How long a thread sleeps between two looks where futex(2) is missing or a filter may forbid it. */
#define STEP_NS 50000

void sys__await(const __u32 *word, __u32 value, __u64 ns)
{
	struct __kernel_timespec wait = { .tv_nsec = ns };
	long err = -ENOSYS;

	if (!sys_limits.is_limited)
		err = sys(__NR_futex, (long)word, FUTEX_WAIT, value, (long)&wait, 0, 0);
	if (!err || err == -EAGAIN || err == -EINTR || err == -ETIMEDOUT)
		return;
	wait.tv_nsec = ns < STEP_NS ? ns : STEP_NS;
	sys(__NR_nanosleep, (long)&wait, 0, 0, 0, 0, 0);
}

void sys__wake(const __u32 *word)
{
	if (!sys_limits.is_limited)
		sys(__NR_futex, (long)word, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

#define BIT(signal) (1ULL << (signal - 1))

/* Signals that instructions raise. If they were blocked, such an instruction would kill the
 * process. */
#define BY_INSTRUCTIONS                                                                            \
	(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS))

/* The mask is set and restored by the same system call, so that one look at the target's filter of system calls is
 * enough (confine.c). */
static long set_mask(const __u64 *mask, __u64 *before)
{
	return sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)mask, (long)before, sizeof(*mask), 0, 0);
}

bool sys__block_signals(__u64 *before)
{
	__u64 blocked;

	if (set_mask(NULL, before))
		return false;
	blocked = *before | ~BY_INSTRUCTIONS;
	return !set_mask(&blocked, NULL);
}

void sys__restore_signals(__u64 before)
{
	set_mask(&before, NULL);
}

static struct inside_mappings spared;

__u64 spared__address(void)
{
	return (__u64)&spared;
}

void spared__add(__u64 start, __u64 size)
{
	__u32 at = __atomic_load_n(&spared.free, __ATOMIC_RELAXED);

	for (; at < INSIDE_MAX_MAPPINGS; at++) {
		__u32 n = __atomic_load_n(&spared.n, __ATOMIC_RELAXED);
		__u64 none = 0;

		if (!__atomic_compare_exchange_n(&spared.list[at].start, &none,
						 INSIDE_MAPPING_WRITTEN, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&spared.free, at + 1, __ATOMIC_RELAXED);
		spared.list[at].end = start + size;
		__atomic_store_n(&spared.list[at].start, start, __ATOMIC_RELEASE);
		while (n <= at && !__atomic_compare_exchange_n(&spared.n, &n, at + 1, false,
							       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		return;
	}
}

void spared__remove(__u64 start)
{
	__u32 n = __atomic_load_n(&spared.n, __ATOMIC_RELAXED);

	for (__u32 i = n; i-- > 0;)
		if (__atomic_load_n(&spared.list[i].start, __ATOMIC_RELAXED) == start) {
			__atomic_store_n(&spared.list[i].start, 0, __ATOMIC_RELEASE);
			if (i < __atomic_load_n(&spared.free, __ATOMIC_RELAXED))
				__atomic_store_n(&spared.free, i, __ATOMIC_RELAXED);
			return;
		}
}

void spared__unmap_all(void)
{
	for (__u32 i = 0; i < spared.n; i++)
		if (spared.list[i].start > INSIDE_MAPPING_WRITTEN)
			sys(__NR_munmap, spared.list[i].start,
			    spared.list[i].end - spared.list[i].start, 0, 0, 0, 0);
	memset(spared.list, 0, spared.n * sizeof(spared.list[0]));
	spared.n = spared.free = 0;
}

void spared__end(void)
{
	__atomic_store_n(&spared.n, 0, __ATOMIC_RELAXED);
}

/* Finds the first noted mapping in the range, cut to the range. Returns false if there is none. */
static bool find_first(__u64 start, __u64 end, __u64 *first, __u64 *first_end)
{
	__u32 n = __atomic_load_n(&spared.n, __ATOMIC_RELAXED);
	bool found = false;

	for (__u32 i = 0; i < n; i++) {
		__u64 from = __atomic_load_n(&spared.list[i].start, __ATOMIC_ACQUIRE);
		__u64 to = spared.list[i].end;

		if (from <= INSIDE_MAPPING_WRITTEN || from >= end || to <= start ||
		    (found && from >= *first))
			continue;
		*first = from > start ? from : start;
		*first_end = to < end ? to : end;
		found = true;
	}
	return found;
}

/* Returns the end of the range as the kernel rounds it; @start if the kernel refuses the range. Where pages are larger than the
 * least, no mapping begins or ends between the two ends. */
static __u64 end_of(__u64 start, __u64 size)
{
	__u64 end = start + ((size + LEAST_PAGE - 1) & ~(LEAST_PAGE - 1ULL));

	return start & (LEAST_PAGE - 1) || end < start ? start : end;
}

bool spared__overlaps(__u64 start, __u64 size)
{
	__u64 first, first_end;

	return find_first(start, end_of(start, size), &first, &first_end);
}

int spared__around(__u64 start, __u64 size, spared_fn fn, void *context)
{
	__u64 end = end_of(start, size), first, first_end;
	int err;

	if (!find_first(start, end, &first, &first_end))
		return fn(context, start, size);
	do {
		err = first > start ? fn(context, start, first - start) : 0;
		start = first_end;
	} while (!err && start < end && find_first(start, end, &first, &first_end));
	return err || start >= end ? err : fn(context, start, end - start);
}
