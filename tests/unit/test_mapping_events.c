// SPDX-License-Identifier: GPL-3.0-or-later
/* Processors that come and go while mappings are listened to. The linker puts the functions below in the place of the
 * C library's (--wrap). */
#include "unit.h"

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
	return __real_mmap64(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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

static void test_processors_that_come_online(void **state)
{
	struct mapping_events *events;

	online = "0,2\n";
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
		cmocka_unit_test(test_processors_that_come_online),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
