// SPDX-License-Identifier: GPL-3.0-or-later
#include "mapping_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"

/* Size of the ring of each CPU: an exec takes some ten records of about 120 bytes. The least is
 * what a user without CAP_IPC_LOCK may lock (perf_event_mlock_kb). */
#define MIN_RING_BYTES (512UL * 1024)
/* If few CPUs share the memory, each has a larger ring: setting probes one by one keeps the reader
 * away for seconds. */
#define MAX_RING_BYTES	(4UL << 20)
#define ALL_RINGS_BYTES (8UL << 20)

struct cpu_ring {
	int cpu;
	int fd;
	struct perf_event_mmap_page *page;
	size_t bytes; /* bytes for records, a power of two */
};

struct mapping_events {
	int epoll_fd;
	struct cpu_ring *rings;
	size_t n_rings, rings_room;
	__u64 lost;
	char online[256];   /* the kernel's list of online CPUs at the last check */
	__u64 looked_at_ns; /* CLOCK_MONOTONIC */
	/* events that have not been handled yet */
	struct mapping_event *events;
	size_t n_events, capacity;
};

/* Trailer of every record but PERF_RECORD_SAMPLE, with sample_id_all and PERF_SAMPLE_TIME. */
struct sample_id {
	__u64 time_ns;
};

struct mmap2_record {
	struct perf_event_header header;
	__u32 pid, tid;
	__u64 address, length, offset;
	__u32 major, minor;
	__u64 inode, generation;
	__u32 protection, flags;
	char path[];
};

struct lost_record {
	struct perf_event_header header;
	__u64 id, lost;
};

struct comm_record {
	struct perf_event_header header;
	__u32 pid, tid;
	char comm[];
};

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static size_t ring_map_bytes(size_t bytes)
{
	return bytes + sysconf(_SC_PAGESIZE);
}

static void *map_ring(int fd, size_t bytes)
{
	return mmap(NULL, ring_map_bytes(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static size_t most_ring_bytes(void)
{
	size_t bytes = MAX_RING_BYTES;

	while (bytes > MIN_RING_BYTES && bytes * get_nprocs() > ALL_RINGS_BYTES)
		bytes /= 2;
	return bytes;
}

static int add_cpu(struct mapping_events *events, int cpu)
{
	struct epoll_event interest = { .events = EPOLLIN };
	size_t bytes = most_ring_bytes();
	void *page;
	int fd, err;

	fd = open_event(cpu);
	if (fd < 0)
		return fd;
	page = map_ring(fd, bytes);
	if (page == MAP_FAILED) {
		bytes = MIN_RING_BYTES;
		page = map_ring(fd, bytes);
	}
	if (page == MAP_FAILED) {
		err = -errno;
		goto fail;
	}
	err = array__reserve(&events->rings, &events->rings_room, events->n_rings + 1,
			     sizeof(*events->rings));
	if (err)
		goto unmap;
	if (epoll_ctl(events->epoll_fd, EPOLL_CTL_ADD, fd, &interest)) {
		err = -errno;
		goto unmap;
	}
	events->rings[events->n_rings++] =
		(struct cpu_ring){ .cpu = cpu, .fd = fd, .page = page, .bytes = bytes };
	return 0;
unmap:
	munmap(page, ring_map_bytes(bytes));
fail:
	close(fd);
	return err;
}

static bool has_cpu(const struct mapping_events *events, int cpu)
{
	for (size_t i = 0; i < events->n_rings; i++)
		if (events->rings[i].cpu == cpu)
			return true;
	return false;
}

/* Reads the kernel's list of online CPUs, such as "0-3,8". */
static int read_online(char *list, size_t size)
{
	_cleanup_(close_file) FILE *file = fopen("/sys/devices/system/cpu/online", "re");

	if (!file)
		return -errno;
	return fgets(list, size, file) ? 0 : -EIO;
}

/* Returns whether @cpu is in the list. */
static bool is_online(const char *list, int cpu)
{
	char *at = (char *)list;

	while (*at >= '0' && *at <= '9') {
		long first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		if (cpu >= first && cpu <= last)
			return true;
		at += *at == ',';
	}
	return false;
}

static int add_online_cpus(struct mapping_events *events)
{
	int n_cpus = libbpf_num_possible_cpus(), err;

	err = n_cpus < 0 ? n_cpus : read_online(events->online, sizeof(events->online));
	for (int cpu = 0; cpu < n_cpus && !err; cpu++)
		if (is_online(events->online, cpu) && !has_cpu(events, cpu))
			err = add_cpu(events, cpu);
	return err ? err : events->n_rings ? 0 : -ENODEV;
}

static void close_ring(struct cpu_ring *ring)
{
	munmap(ring->page, ring_map_bytes(ring->bytes));
	close(ring->fd);
}

static void read_ring(struct mapping_events *events, struct cpu_ring *ring);

static void drop_offline_cpus(struct mapping_events *events)
{
	for (size_t i = 0; i < events->n_rings;) {
		if (is_online(events->online, events->rings[i].cpu)) {
			i++;
			continue;
		}
		/* Events since the last read. */
		read_ring(events, &events->rings[i]);
		close_ring(&events->rings[i]);
		events->rings[i] = events->rings[--events->n_rings];
	}
}

/* Interval between checks of the online CPUs. */
#define LOOK_AT_CPUS_NS 100000000

/* Opens rings for CPUs that came online; their mappings before that may be lost. */
static void look_at_cpus(struct mapping_events *events)
{
	char online[sizeof(events->online)];
	size_t n_before;

	events->looked_at_ns = clock__now_ns();
	if (read_online(online, sizeof(online)) || !strcmp(online, events->online))
		return;
	memcpy(events->online, online, sizeof(online));
	drop_offline_cpus(events);
	n_before = events->n_rings;
	if (add_online_cpus(events))
		events->lost++;
	events->lost += events->n_rings - n_before;
}

int mapping_events__open(struct mapping_events **out, struct error *error)
{
	struct mapping_events *events = calloc(1, sizeof(*events));
	int err;

	if (!events)
		return -ENOMEM;
	events->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (events->epoll_fd < 0)
		err = -errno;
	else
		err = add_online_cpus(events);
	if (err) {
		error__set(
			error, err,
			"cannot follow what processes map (perf_event_open): %s; run as root, and "
			"allow perf_event_open in the container's seccomp profile",
			strerror(-err));
		mapping_events__close(events);
		return err;
	}
	*out = events;
	return 0;
}

void mapping_events__close(struct mapping_events *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < events->n_rings; i++)
		close_ring(&events->rings[i]);
	free(events->rings);
	for (size_t i = 0; i < events->n_events; i++)
		free(events->events[i].path);
	free(events->events);
	close_fd(&events->epoll_fd);
	free(events);
}

int mapping_events__fd(const struct mapping_events *events)
{
	return events->epoll_fd;
}

struct mapped_file mapping_event__file(const struct mapping_event *event)
{
	return (struct mapped_file){
		.pid = event->pid,
		.start = event->start,
		.end = event->end,
		.identity = {
			.inode = event->inode,
			.device = file_identity__device(event->major, event->minor),
			.generation = event->generation,
		},
		.path = event->path,
	};
}

void mapping_events__finish(struct mapping_events *events)
{
	look_at_cpus(events);
}

__u64 mapping_events__lost(const struct mapping_events *events)
{
	return events->lost;
}

static void add_event(struct mapping_events *events, const struct mapping_event *event,
		      const char *path, size_t path_len)
{
	struct mapping_event *copy;

	if (array__reserve(&events->events, &events->capacity, events->n_events + 1,
			   sizeof(*events->events))) {
		events->lost++;
		return;
	}
	copy = &events->events[events->n_events];
	*copy = *event;
	copy->path = strndup(path, path_len);
	if (copy->path)
		events->n_events++;
	else
		events->lost++;
}

static void parse_record(struct mapping_events *events, const struct perf_event_header *header)
{
	const char *bytes = (const char *)header;
	struct mapping_event event = { 0 };
	struct sample_id id;
	size_t end;

	if (header->size < sizeof(*header) + sizeof(id))
		return;
	end = header->size - sizeof(id);
	memcpy(&id, bytes + end, sizeof(id));
	event.time_ns = id.time_ns;

	if (header->type == PERF_RECORD_LOST && end >= sizeof(struct lost_record)) {
		events->lost += ((const struct lost_record *)header)->lost;
	} else if (header->type == PERF_RECORD_COMM &&
		   (header->misc & PERF_RECORD_MISC_COMM_EXEC) &&
		   end >= sizeof(struct comm_record)) {
		event.kind = MAPPING_EXEC;
		event.pid = ((const struct comm_record *)header)->pid;
		add_event(events, &event, "", 0);
	} else if (header->type == PERF_RECORD_MMAP2 && end > sizeof(struct mmap2_record)) {
		const struct mmap2_record *record = (const struct mmap2_record *)header;

		event.kind = MAPPING_ADDED;
		event.pid = record->pid;
		event.start = record->address;
		event.end = record->address + record->length;
		event.offset = record->offset;
		event.major = record->major;
		event.minor = record->minor;
		event.inode = record->inode;
		event.generation = record->generation;
		add_event(events, &event, record->path, end - sizeof(*record));
	}
}

static void read_ring(struct mapping_events *events, struct cpu_ring *ring)
{
	const char *data = (const char *)ring->page + sysconf(_SC_PAGESIZE);
	__u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = ring->page->data_tail;
	/* Aligned, and large enough for any record: their size has 16 bits. */
	_Alignas(struct mmap2_record) char copy[65536];

	while (tail < head) {
		size_t at = tail % ring->bytes;
		const struct perf_event_header *header =
			(const struct perf_event_header *)(data + at);
		size_t size = header->size;

		/* The kernel aligns records. */
		if (size < sizeof(*header) || size % 8 || size > head - tail)
			break;
		if (at + size > ring->bytes) {
			size_t first = ring->bytes - at;

			memcpy(copy, data + at, first);
			memcpy(copy + first, data, size - first);
			header = (const struct perf_event_header *)copy;
		}
		parse_record(events, header);
		tail += size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

static int compare_time(const void *a, const void *b)
{
	const struct mapping_event *left = a, *right = b;

	return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

void mapping_events__gather(struct mapping_events *events)
{
	for (size_t i = 0; i < events->n_rings; i++)
		read_ring(events, &events->rings[i]);
}

void mapping_events__read(struct mapping_events *events,
			  void (*handle)(const struct mapping_event *event, void *context),
			  void *context)
{
	struct epoll_event ready;

	/* perf rings are edge-like: consume the reported readiness, as all rings are read below. */
	while (epoll_wait(events->epoll_fd, &ready, 1, 0) < 0 && errno == EINTR)
		;
	mapping_events__gather(events);
	if (clock__now_ns() - events->looked_at_ns >= LOOK_AT_CPUS_NS)
		look_at_cpus(events);
	if (events->n_events > 1)
		qsort(events->events, events->n_events, sizeof(*events->events), compare_time);
	for (size_t i = 0; i < events->n_events; i++) {
		handle(&events->events[i], context);
		free(events->events[i].path);
	}
	events->n_events = 0;
}
