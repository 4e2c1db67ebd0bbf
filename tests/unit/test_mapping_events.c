// SPDX-License-Identifier: GPL-3.0-or-later
/* Reading of mappings' events, and processors that come and go meanwhile. The linker puts the functions below in the place of the
 * C library's (--wrap). */
#include "unit.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mapping_events.h"

static const char *online;
static unsigned int n_opened;
static time_t seconds;
static void *last_ring; /* that was mapped */

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset);
long __wrap_syscall(long number, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_libbpf_num_possible_cpus(void);

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	if (strcmp(path, "/sys/devices/system/cpu/online") != 0)
		return __real_fopen64(path, mode);
	return fmemopen((void *)online, strlen(online), "r");
}

/* Stands for perf_event_open(2). */
long __wrap_syscall(long number, ...)
{
	assert_int_equal(number, SYS_perf_event_open);
	n_opened++;
	return eventfd(0, EFD_CLOEXEC);
}

/* An empty ring. */
void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	last_ring = __real_mmap64(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return last_ring;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	*time = (struct timespec){ .tv_sec = ++seconds };
	return 0;
}

int __wrap_libbpf_num_possible_cpus(void)
{
	return 8;
}

static void handle(const struct mapping_event *event, void *context)
{
	fail();
}

/* PERF_RECORD_MMAP2 with PERF_SAMPLE_TIME. */
struct mapped {
	struct perf_event_header header;
	__u32 pid, tid;
	__u64 address, length, offset;
	__u32 major, minor;
	__u64 inode, generation;
	__u32 protection, flags;
	char path[8];
	__u64 time_ns;
};

static void map_file(struct perf_event_mmap_page *ring, __u64 time_ns)
{
	const struct mapped record = {
		.header = { .type = PERF_RECORD_MMAP2, .size = sizeof(record) },
		.pid = 42,
		.path = "/file",
		.time_ns = time_ns,
	};

	memcpy((char *)ring + sysconf(_SC_PAGESIZE) + ring->data_head, &record, sizeof(record));
	ring->data_head += sizeof(record);
}

struct handled {
	__u64 times_ns[4];
	size_t n;
};

static void note_time(const struct mapping_event *event, void *context)
{
	struct handled *handled = context;

	assert_string_equal(event->path, "/file");
	handled->times_ns[handled->n++] = event->time_ns;
}

static void test_gathered_events_are_handled_later(void **state)
{
	struct mapping_events *events;
	struct perf_event_mmap_page *ring;
	struct handled handled = { { 0 } };

	online = "0\n";
	assert_int_equal(mapping_events__open(&events, NULL), 0);
	ring = last_ring;
	map_file(ring, 20);
	mapping_events__gather(events);
	assert_int_equal(ring->data_tail, ring->data_head);
	/* It was in the ring of another CPU. */
	map_file(ring, 10);
	mapping_events__read(events, note_time, &handled);
	assert_int_equal(handled.n, 2);
	assert_int_equal(handled.times_ns[0], 10);
	assert_int_equal(handled.times_ns[1], 20);
	mapping_events__read(events, handle, NULL);
	/* Those that nobody handles any more are freed. */
	map_file(ring, 30);
	mapping_events__gather(events);
	mapping_events__close(events);
}

static void test_processors_that_come_online(void **state)
{
	struct mapping_events *events;

	online = "0,2\n";
	n_opened = 0;
	assert_int_equal(mapping_events__open(&events, NULL), 0);
	assert_int_equal(n_opened, 2);
	mapping_events__read(events, handle, NULL);
	assert_int_equal(mapping_events__lost(events), 0);
	/* What was mapped on them until now may have gone unnoticed. */
	online = "0-3\n";
	mapping_events__read(events, handle, NULL);
	assert_int_equal(n_opened, 4);
	assert_int_equal(mapping_events__lost(events), 2);
	/* One that goes takes nothing along; when it comes again it has missed something again. */
	online = "0-2\n";
	mapping_events__read(events, handle, NULL);
	assert_int_equal(mapping_events__lost(events), 2);
	online = "0-3\n";
	mapping_events__read(events, handle, NULL);
	assert_int_equal(n_opened, 5);
	assert_int_equal(mapping_events__lost(events), 3);
	mapping_events__close(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gathered_events_are_handled_later),
		cmocka_unit_test(test_processors_that_come_online),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
