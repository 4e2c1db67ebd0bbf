// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "error.h"

/* Sizes to try for the sparse file, from the largest; RLIMIT_FSIZE may forbid some. */
#define MOST_BYTES  (1ULL << 40)
#define LEAST_BYTES (64ULL << 20)

static int resize(int fd)
{
	for (__u64 size = MOST_BYTES; size >= LEAST_BYTES; size /= 4)
		if (!ftruncate(fd, size))
			return 0;
	return -errno;
}

int write_all(int fd, const void *data, size_t size, __u64 offset)
{
	ssize_t n = pwrite(fd, data, size, offset);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -ENOSPC;
}

/* How long the two clocks are compared. */
#define CALIBRATION_NS 2000000

/* The processor's counter, if the kernel takes its time from it, is read in half the time of a clock. */
static void set_clock(struct inside_settings *settings)
{
	settings->start_ns = clock__now_ns();
#ifdef __x86_64__
	_cleanup_(close_fd) int fd =
		open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		     O_RDONLY | O_CLOEXEC);
	__u64 begin_ns, now_ns, begin;
	char name[16] = "";

	if (settings->mode != INSIDE_LIVE || fd < 0 || read(fd, name, sizeof(name) - 1) < 0 ||
	    (strncmp(name, "tsc\n", 4) != 0 && strncmp(name, "kvm-clock\n", 10) != 0))
		return;
	begin_ns = clock__now_ns();
	begin = __builtin_ia32_rdtsc();
	do
		now_ns = clock__now_ns();
	while (now_ns - begin_ns < CALIBRATION_NS);
	settings->ns_per_tick =
		((unsigned __int128)(now_ns - begin_ns) << 32) / (__builtin_ia32_rdtsc() - begin);
	settings->start_ns = begin_ns;
	settings->start_ticks = begin;
#endif
}

static int make_memory(struct preload *preload, const struct inside_settings *settings)
{
	struct inside_header header = {
		.magic = INSIDE_MAGIC,
		.version = INSIDE_VERSION,
		.header_bytes = sizeof(header),
		.settings = *settings,
		.next = (sizeof(header) + INSIDE_PAGE - 1) & ~(__u64)(INSIDE_PAGE - 1),
	};
	struct stat status;
	int fd, err;

	header.live.epoch_shift = AP_FIRST_EPOCH_SHIFT;
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
	return write_all(fd, &header, sizeof(header), 0);
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
	if (mkfifoat(preload->directory_fd, INSIDE_WAKE, 0600))
		return -errno;
	fd = openat(preload->directory_fd, INSIDE_WAKE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	preload->wake_fd = fd;
	return 0;
}

/* Where a memory file system is, as a rule. */
static const char *const parents[] = { "/dev/shm", "/run/shm", "/tmp", "/var/tmp" };

static int make_directory(struct preload *preload, struct error *error)
{
	const char *chosen = getenv("ALLOCPROF_INSIDE_DIR");
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
		const char *parent = chosen ? chosen : parents[i];
		int n = snprintf(preload->directory, sizeof(preload->directory),
				 "%s/allocprof-XXXXXX", parent);

		if (n >= (int)sizeof(preload->directory))
			return error__set(error, -ENAMETOOLONG,
					  "the path '%s' is too long for the shared memory",
					  parent);
		/* LD_PRELOAD would be split at these. */
		if (strpbrk(parent, ": $"))
			return error__set(
				error, -EINVAL,
				"the path '%s' for the shared memory has a colon, a space or a "
				"dollar sign, which LD_PRELOAD cannot name",
				parent);
		if (mkdtemp(preload->directory))
			break;
		err = -errno;
		preload->directory[0] = 0;
		if (chosen)
			break;
	}
	if (!preload->directory[0])
		return error__set(error, err,
				  "cannot make a directory for the shared memory in %s: %s",
				  chosen ? chosen : "/dev/shm or /tmp", strerror(-err));
	preload->directory_fd = open(preload->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (preload->directory_fd < 0)
		return error__set(error, -errno, "cannot open '%s': %s", preload->directory,
				  strerror(errno));
	return 0;
}

int preload__new(const struct preload_options *options, struct preload **out, struct error *error)
{
	struct preload *preload = calloc(1, sizeof(*preload));
	int err = -ENOMEM;

	if (!preload)
		return error__set(error, -ENOMEM, "no memory");
	preload->memory_fd = preload->tables_fd = preload->wake_fd = preload->directory_fd = -1;
	preload->library = realpath(options->library, NULL);
	if (!preload->library) {
		err = error__set(error, -errno, "cannot find the library '%s': %s",
				 options->library, strerror(errno));
		goto fail;
	}
	err = make_directory(preload, error);
	if (err)
		goto fail;
	err = make_memory(preload, &options->settings);
	if (!err && options->settings.mode != INSIDE_COUNT)
		err = make_tables(preload);
	if (err) {
		error__set(error, err, "cannot make the shared memory in '%s': %s",
			   preload->directory, strerror(-err));
		goto fail;
	}
	if (symlinkat(preload->library, preload->directory_fd, INSIDE_LIBRARY)) {
		err = error__set(error, -errno, "cannot make a link in '%s': %s",
				 preload->directory, strerror(errno));
		goto fail;
	}
	*out = preload;
	return 0;
fail:
	preload__free(preload);
	return err;
}

void preload__free(struct preload *preload)
{
	static const char *const names[] = { INSIDE_LIBRARY, INSIDE_MEMORY, INSIDE_TABLES,
					     INSIDE_WAKE };

	if (!preload)
		return;
	if (preload->directory_fd >= 0)
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			unlinkat(preload->directory_fd, names[i], 0);
	if (preload->directory[0])
		rmdir(preload->directory);
	close_fd(&preload->memory_fd);
	close_fd(&preload->tables_fd);
	close_fd(&preload->wake_fd);
	close_fd(&preload->directory_fd);
	free(preload->taken);
	free(preload->library);
	free(preload);
}

int preload__open(struct preload *preload, bool is_open)
{
	__u32 value = is_open;

	return write_all(preload->memory_fd, &value, sizeof(value),
			 offsetof(struct inside_header, open));
}

const char *preload__refusal_name(enum inside_refusal reason)
{
	static const char *const names[INSIDE_REFUSALS] = {
		[INSIDE_REFUSES_STATIC] = "statically linked",
		[INSIDE_REFUSES_MACHINE] = "of another processor",
		[INSIDE_REFUSES_SECURE] = "with other privileges",
		[INSIDE_REFUSES_HIDDEN] = "without access to the shared memory",
		[INSIDE_REFUSES_UNREADABLE] = "unreadable",
		[INSIDE_REFUSES_ALLOCATOR] = "with its own malloc",
	};

	return reason < INSIDE_REFUSALS ? names[reason] : "unknown";
}
