// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "definition_names.h"
#include "clock.h"
#include "elf_file.h"
#include "error.h"
#include "file.h"
#include "proc.h"
#include "ticks.h"

/*
 * Releases memory of ended processes. Without stacks a thread has only one struct, in pages that
 * only its process uses: these are punched out of the file when no process writes them any more.
 * The sums go on from what was read.
 */

/* How often memory is released: each time all programs are read. */
#define INTERVAL_NS NS_PER_S

struct retiring {
	struct preload *preload;
	/* Indexed by program; all of its threads may share pages, so they count as ended together. */
	bool *has_ended;
	size_t n_programs, programs_room;
	__u64 *offsets;
	size_t n_offsets, offsets_room;
};

static int look_at_program(struct reader *reader, __u32 index, const void *element)
{
	struct retiring *retiring = reader->context;
	const struct inside_program *program = element;

	/* Programs in chunks that cannot be read stay zero, so they count as running. */
	if (array__reserve_zeroed(&retiring->has_ended, &retiring->programs_room, index + 1UL,
				  sizeof(*retiring->has_ended)))
		return -ENOMEM;
	/* A number of another PID namespace may be another process's here. */
	retiring->has_ended[index] = program->state == INSIDE_READY && program->pid > 1 &&
				     program->pid_namespace &&
				     program->pid_namespace == retiring->preload->pid_namespace &&
				     kill(program->pid, 0) && errno == ESRCH;
	retiring->n_programs = index + 1UL;
	return 0;
}

static int look_at_thread(struct reader *reader, __u32 index, const void *element)
{
	static const __u64 retired = INSIDE_RETIRED;
	struct retiring *retiring = reader->context;
	struct preload *preload = retiring->preload;
	const __u64 *offset = element;
	struct inside_thread thread;
	int err;

	if (!*offset || *offset == INSIDE_RETIRED ||
	    !reader__get_thread(reader, *offset, &thread) ||
	    thread.program > retiring->n_programs || !retiring->has_ended[thread.program - 1])
		return 0;
	if (array__reserve(&retiring->offsets, &retiring->offsets_room, retiring->n_offsets + 1,
			   sizeof(*retiring->offsets)))
		return -ENOMEM;
	err = fd__write_all_at(
		preload->memory_fd, &retired, sizeof(retired),
		inside_array__offset(&reader->header.threads, index, sizeof(*offset)));
	if (err)
		return err;
	retiring->offsets[retiring->n_offsets++] = *offset;
	preload_results__add_thread(&preload->retired, reader, &thread);
	return preload_results__add_regions(&preload->retired, reader, &thread);
}

/* Releases the pages that contain the struct at @offset. They belong to a piece, so they are
 * behind the header. */
static void give_back(const struct preload *preload, __u64 offset)
{
	__u64 start = offset & ~(__u64)(INSIDE_PAGE - 1);
	__u64 end = (offset + sizeof(struct inside_thread) + INSIDE_PAGE - 1) &
		    ~(__u64)(INSIDE_PAGE - 1);

	if (start >= sizeof(struct inside_header))
		(void)fallocate(preload->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				start, end - start);
}

int preload__retire(struct preload *preload)
{
	struct retiring retiring = { .preload = preload };
	struct reader reader = { .context = &retiring };
	__u64 now_ns = clock__now_ns();
	int err;

	if (preload->mode != INSIDE_COUNT || !preload->pid_namespace ||
	    now_ns - preload->retired_ns < INTERVAL_NS)
		return 0;
	preload->retired_ns = now_ns;
	err = reader__begin(&reader, preload);
	if (!err)
		err = reader__each(&reader, &reader.header.programs, 0,
				   sizeof(struct inside_program), look_at_program);
	if (!err)
		err = reader__each(&reader, &reader.header.threads, 0, sizeof(__u64),
				   look_at_thread);
	for (size_t i = 0; i < retiring.n_offsets; i++)
		give_back(preload, retiring.offsets[i]);
	free(retiring.has_ended);
	free(retiring.offsets);
	return err;
}

/* The largest and smallest size that are tried for the sparse file; RLIMIT_FSIZE may forbid large
 * ones. */
#define MOST_BYTES  (1ULL << 40)
#define LEAST_BYTES (64ULL << 20)

static int resize(int fd)
{
	for (__u64 size = MOST_BYTES; size >= LEAST_BYTES; size /= 4)
		if (!ftruncate(fd, size))
			return 0;
	return -errno;
}

/* How long the two clocks are compared. */
#define CALIBRATION_NS 2000000

/* Measures the rate of the processor's counter, if the kernel's clock uses it too: reading it takes
 * half the time of reading a clock. */
static void set_clock(struct inside_settings *settings)
{
	settings->start_ns = settings->epoch_ns = clock__now_ns();
	_cleanup_(close_fd) int fd =
		open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		     O_RDONLY | O_CLOEXEC);
	__u64 begin_ns, now_ns, begin;
	char name[32] = "";

	if (settings->mode != INSIDE_LIVE || fd < 0 || read(fd, name, sizeof(name) - 1) < 0 ||
	    !ticks__are_of(name))
		return;
	begin_ns = clock__now_ns();
	begin = ticks__read();
	do
		now_ns = clock__now_ns();
	while (now_ns - begin_ns < CALIBRATION_NS);
	settings->ns_per_tick =
		((unsigned __int128)(now_ns - begin_ns) << 32) / (ticks__read() - begin);
	settings->start_ns = begin_ns;
	settings->start_ticks = begin;
}

static int make_memory(struct preload *preload, const struct preload_options *options)
{
	struct inside_header header = {
		.magic = INSIDE_MAGIC,
		.version = INSIDE_VERSION,
		.header_bytes = sizeof(header),
		.settings = options->settings,
		.next = INSIDE_HEADER_BYTES,
	};
	struct stat status;
	int fd, err;

	header.live.epoch_shift = AP_FIRST_EPOCH_SHIFT;
	if (options->counted)
		header.counted = *options->counted;
	for (__u32 i = 0; i < header.counted.n; i++)
		preload->functions |= 1ULL << header.counted.list[i].function;
	for (__u32 i = 0; i < header.counted.n_domains; i++)
		for (int kind = 0; kind < AP_DEFINED_KINDS; kind++)
			preload->functions |= 1ULL << definition__function(
						      header.counted.domains[i].definition, kind);
	set_clock(&header.settings);
	fd = openat(preload->directory_fd, INSIDE_MEMORY, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	preload->memory_fd = fd;
	err = resize(fd);
	if (err)
		return err;
	if (fstat(fd, &status))
		return -errno;
	header.size_bytes = status.st_size;
	return fd__write_all_at(fd, &header, sizeof(header), 0);
}

static int make_tables(struct preload *preload)
{
	int fd = openat(preload->directory_fd, INSIDE_TABLES, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			0600);

	if (fd < 0)
		return -errno;
	preload->tables_fd = fd;
	if (ftruncate(fd, INSIDE_TABLES_BYTES))
		return -errno;
	preload->awaited =
		mmap(NULL, INSIDE_SLICES_AT, PROT_READ, MAP_SHARED, fd, INSIDE_TABLES_AT);
	if (preload->awaited == MAP_FAILED) {
		preload->awaited = NULL;
		return -errno;
	}
	return 0;
}

static int make_wake(struct preload *preload)
{
	int fd;

	if (mkfifoat(preload->directory_fd, INSIDE_WAKE, 0600))
		return -errno;
	fd = openat(preload->directory_fd, INSIDE_WAKE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	preload->wake_fd = fd;
	return 0;
}

int preload__new(const struct preload_options *options, struct preload **out, struct error *error)
{
	struct preload *preload = calloc(1, sizeof(*preload));
	struct stat status;
	int err = -ENOMEM;

	if (!preload)
		return error__set(error, -ENOMEM, "no memory");
	preload->sampling = options->settings.sampling;
	preload->mode = options->settings.mode;
	preload->functions = (1ULL << AP_DEFINED) - 1;
	preload->pid_namespace = stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
	preload->has_within = options->settings.within;
	preload->memory_fd = preload->tables_fd = preload->wake_fd = preload->directory_fd = -1;
	preload->library = realpath(options->library, NULL);
	if (!preload->library) {
		err = error__set(error, -errno, "cannot find the library '%s': %s",
				 options->library, strerror(errno));
		goto fail;
	}
	err = preload__make_directory(preload, error);
	if (err)
		goto fail;
	err = make_memory(preload, options);
	if (!err && (options->settings.mode != INSIDE_COUNT || options->settings.within))
		err = make_tables(preload);
	if (!err)
		err = make_wake(preload);
	if (err) {
		error__set(error, err, "cannot make the shared memory in '%s': %s%s",
			   preload->directory, strerror(-err),
			   err == -EFBIG ? "; raise the limit of file sizes (ulimit -f)" : "");
		goto fail;
	}
	if (symlinkat(preload->library, preload->directory_fd, INSIDE_LIBRARY) ||
	    symlinkat(preload->library, preload->directory_fd, INSIDE_OTHER)) {
		err = error__set(error, -errno, "cannot make a link in '%s': %s",
				 preload->directory, strerror(errno));
		goto fail;
	}
	preload__watch_room(preload);
	*out = preload;
	return 0;
fail:
	preload__free(preload);
	return err;
}

/* Copies the data of a sparse file to an equally large one, without the holes. */
static int copy_file(int from, int to)
{
	char bytes[1 << 16];
	struct stat status;
	off_t at = 0;

	if (fstat(from, &status) || ftruncate(to, status.st_size))
		return -errno;
	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		ssize_t n = pread(from, bytes, sizeof(bytes), at);
		int err = n > 0 ? fd__write_all_at(to, bytes, n, at) : -EIO;

		if (err)
			return err;
		at += n;
	}
	return errno == ENXIO ? 0 : -errno;
}

int preload__move(struct preload *preload, int *memory_fd, int *tables_fd)
{
	int err = copy_file(preload->memory_fd, *memory_fd);
	void *awaited;

	if (err)
		return err;
	close_fd(&preload->memory_fd);
	preload->memory_fd = *memory_fd;
	*memory_fd = -1;
	if (preload->tables_fd < 0)
		return 0;
	err = copy_file(preload->tables_fd, *tables_fd);
	if (err)
		return err;
	awaited = mmap(NULL, INSIDE_SLICES_AT, PROT_READ, MAP_SHARED, *tables_fd, INSIDE_TABLES_AT);
	if (awaited == MAP_FAILED)
		return -errno;
	munmap(preload->awaited, INSIDE_SLICES_AT);
	preload->awaited = awaited;
	close_fd(&preload->tables_fd);
	preload->tables_fd = *tables_fd;
	*tables_fd = -1;
	return 0;
}

int preload__add_attached(struct preload *preload, pid_t pid)
{
	struct attached_number *number;
	struct stat status;
	char path[64];
	int own;

	if (array__reserve(&preload->attached, &preload->attached_room, preload->n_attached + 1,
			   sizeof(*preload->attached)))
		return -ENOMEM;
	number = &preload->attached[preload->n_attached++];
	*number = (struct attached_number){ .pid = pid, .own_pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	if (!stat(path, &status))
		number->pid_namespace = status.st_ino;
	if (proc_status__last_number(pid, "NSpid", &own))
		number->own_pid = own;
	return 0;
}

void preload__free(struct preload *preload)
{
	if (!preload)
		return;
	preload__remove_directory(preload);
	if (preload->awaited)
		munmap(preload->awaited, INSIDE_SLICES_AT);
	close_fd(&preload->memory_fd);
	close_fd(&preload->tables_fd);
	close_fd(&preload->wake_fd);
	close_fd(&preload->directory_fd);
	preload_results__free(&preload->retired);
	free(preload->attached);
	free(preload->taken);
	free(preload->answers);
	free(preload->library);
	free(preload);
}

const char *preload__library(const struct preload *preload)
{
	return preload->library;
}

void preload__memory_path(const struct preload *preload, char *out, size_t size)
{
	snprintf(out, size, "%s/" INSIDE_MEMORY, preload->directory);
}

static __u64 bytes_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_blocks * 512ULL;
}

__u64 preload__memory_bytes(const struct preload *preload)
{
	return bytes_of(preload->memory_fd) + bytes_of(preload->tables_fd);
}

int preload__wake_fd(const struct preload *preload)
{
	return preload->wake_fd;
}

/* The room for all processes together below which is_tight is set: what they may use between two
 * looks, and what they have taken and not written yet. */
#define TIGHT_BYTES (256ULL << 20)

/* How many bytes are allocated at a time, and how many are left free in the file system. */
#define STEP_BYTES (1ULL << 20)
#define LEFT_BYTES (16ULL << 20)

/* Allocates pages for shared memory that processes have mapped and not written yet: on a full file
 * system a write would raise SIGBUS. */
static void have_pages(struct preload *preload)
{
	__u64 next = 0;

	if (fd__read_all_at(preload->memory_fd, &next, sizeof(next),
			    offsetof(struct inside_header, next)))
		return;
	for (__u64 at = 0; at < next; at += STEP_BYTES)
		if (preload__room_bytes(preload->directory_fd) < LEFT_BYTES ||
		    fallocate(preload->memory_fd, FALLOC_FL_KEEP_SIZE, at,
			      next - at < STEP_BYTES ? next - at : STEP_BYTES))
			return;
}

void preload__watch_room(struct preload *preload)
{
	const __u32 is_tight = 1;

	if (preload->is_tight || preload__room_bytes(preload->directory_fd) >= TIGHT_BYTES)
		return;
	/* Processes read zeros where a table is missing, and even for a page of zeros the file
	 * system needs room. */
	if (preload->tables_fd >= 0)
		(void)fallocate(preload->tables_fd, 0, 0, INSIDE_SLICES_AT);
	if (preload->has_within)
		(void)fallocate(preload->tables_fd, 0, INSIDE_WITHIN_AT, INSIDE_WITHIN_BYTES);
	preload->is_tight = !fd__write_all_at(preload->memory_fd, &is_tight, sizeof(is_tight),
					      offsetof(struct inside_header, is_tight));
	/* Processes that see is_tight allocate the pages of what they map themselves. */
	have_pages(preload);
}

int preload__set_gate(struct preload *preload, enum inside_gate gate)
{
	__u32 value = gate;

	return fd__write_all_at(preload->memory_fd, &value, sizeof(value),
				offsetof(struct inside_header, gate));
}

int preload__set_epoch(struct preload *preload, __u64 now_ns)
{
	return fd__write_all_at(preload->memory_fd, &now_ns, sizeof(now_ns),
				offsetof(struct inside_header, settings.epoch_ns));
}

const char *preload__refusal_name(enum inside_refusal reason)
{
	static const char *const names[INSIDE_REFUSALS] = {
		[INSIDE_REFUSES_STATIC] = "statically linked",
		[INSIDE_REFUSES_MACHINE] = ELF_OTHER_MACHINE,
		[INSIDE_REFUSES_SECURE] = "with other privileges",
		[INSIDE_REFUSES_HIDDEN] = "without access to the shared memory",
		[INSIDE_REFUSES_UNREADABLE] = "unreadable",
		[INSIDE_REFUSES_ALLOCATOR] = "with its own malloc",
		[INSIDE_REFUSES_SANITIZER] = "with a sanitizer",
		[INSIDE_REFUSES_TRANSLATOR] = "a translator of machine code",
		[INSIDE_REFUSES_CONFINED] = "with a filter of system calls (seccomp)",
	};

	return reason < INSIDE_REFUSALS ? names[reason] : "unknown";
}
