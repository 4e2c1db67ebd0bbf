// SPDX-License-Identifier: GPL-3.0-or-later
/* Records of the kernel's ring of mappings. The linker puts the functions below in the place of the C library's. */
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "mapping_events.h"

static struct perf_event_mmap_page *ring;
static size_t ring_bytes;

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
long __wrap_syscall(long number, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_libbpf_num_possible_cpus(void);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	if (strcmp(path, "/sys/devices/system/cpu/online") != 0)
		return __real_fopen64(path, mode);
	return fmemopen((void *)"0\n", 2, "r");
}

long __wrap_syscall(long number, ...)
{
	FUZZ_CHECK(number == SYS_perf_event_open);
	return eventfd(0, EFD_CLOEXEC);
}

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	ring = __real_mmap64(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FUZZ_CHECK(ring != MAP_FAILED);
	ring_bytes = size - sysconf(_SC_PAGESIZE);
	return ring;
}

/* The processors are never looked at again. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	*time = (struct timespec){ 0 };
	return 0;
}

int __wrap_libbpf_num_possible_cpus(void)
{
	return 1;
}

static void take(const struct mapping_event *event, void *context)
{
	struct mapped_file file = mapping_event__file(event);

	fuzz__read_text(file.path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mapping_events *events;
	char *records;
	__u64 tail;

	if (!events)
		FUZZ_CHECK(!mapping_events__open(&events, NULL));
	/* So that records reach over the end of the ring. */
	tail = ring_bytes - fuzz__take(data, &size) % 4096 / 8 * 8;
	records = (char *)ring + sysconf(_SC_PAGESIZE);
	if (size > ring_bytes)
		size = ring_bytes;
	for (size_t i = 0; i < size; i++)
		records[(tail + i) % ring_bytes] = data[i];
	ring->data_tail = tail;
	ring->data_head = tail + size;
	mapping_events__read(events, take, NULL);
	return 0;
}
