// SPDX-License-Identifier: GPL-3.0-or-later
/* Measures how long the hit of a probe takes whose instruction the kernel single-steps, by a probe
 * in a function of this program. */
#include "stepping.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "disasm.h"

#define PROGRAM "/proc/self/exe"

#define ROUNDS 5
#define CALLS  100

__attribute__((noinline)) static unsigned long add_one(unsigned long number)
{
	return number + 1;
}

struct site_address {
	__u64 address;
	__u64 offset; /* offset in the program's file; 0: not found */
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct site_address *site = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		__u64 at = site->address - info->dlpi_addr - part->p_vaddr;

		if (part->p_type == PT_LOAD && at < part->p_filesz)
			site->offset = part->p_offset + at;
	}
	return 1; /* the first object is the program itself */
}

/* Returns the kernel's type number of uprobe events, or a negative errno. */
static int uprobe_type(void)
{
	_cleanup_(close_fd) int fd =
		open("/sys/bus/event_source/devices/uprobe/type", O_RDONLY | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return -ENOENT;
	return (int)strtol(text, NULL, 10);
}

/* Sets a probe whose event only counts. Returns the event's descriptor, or a negative errno. */
static int set_probe(__u64 offset)
{
	int type = uprobe_type(), fd;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config1 = (__u64)(uintptr_t)PROGRAM,
		.config2 = offset,
	};

	if (type < 0)
		return type;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int stepping__measure(double *hit_seconds)
{
	/* It is volatile, so that the compiler does not know which function is called. How it is
	 * called does not matter. */
	unsigned long (*volatile function)(unsigned long) = add_one;
	struct site_address site = { .address = (__u64)(uintptr_t)add_one };
	_cleanup_(close_fd) int fd = -1;
	struct disasm_insn insn;
	__u64 least = ~0ULL;

	dl_iterate_phdr(find_offset, &site);
	if (!site.offset || disasm__decode((const void *)add_one, 15, site.address, &insn) ||
	    insn.emulated)
		return -ENOTSUP;
	fd = set_probe(site.offset);
	if (fd < 0)
		return fd;
	for (int round = 0; round < ROUNDS; round++) {
		__u64 begin = clock__now_ns();

		for (unsigned long i = 0; i < CALLS; i++)
			function(i);
		if (clock__now_ns() - begin < least)
			least = clock__now_ns() - begin;
	}
	*hit_seconds = least / 1e9 / CALLS;
	return 0;
}
