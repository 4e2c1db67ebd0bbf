// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "memory.h"

#include <asm/resource.h>
#include <asm/stat.h>
#include <asm/statfs.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/falloc.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "sys.h"

#define MAX_PIECES 4096
#define ALIGNMENT  64

#define NS_PER_MS 1000000ULL

/* Pieces of mapped memory from which small requests are served one after the other. */
struct pool {
	/* The index of the current piece, from 1, and how many of its bytes are taken. They are in
	 * one word, so that threads and signal handlers need no lock. */
	__u64 state;
	__u32 n_pieces;
	__u32 extender; /* tid of the thread that maps the next piece; 0: none */
	bool is_shared;
	char *pieces[MAX_PIECES];
	__u64 offsets[MAX_PIECES]; /* offsets of shared pieces in the file */
};

static struct {
	struct inside_header *header;
	const void *tables; /* the first page of the unwind tables */
	char path[MEMORY_PATH_BYTES], tables_path[MEMORY_PATH_BYTES];
	char wake_path[MEMORY_PATH_BYTES];
	bool is_own;	     /* the file is this process's own, and nobody is beside it */
	__u64 device, inode; /* is_own: the file's */
	size_t failed_bytes; /* the smallest size for which the file system had no room; 0: none */
	__u64 failed_ns;     /* when that was; 0: it will not have room later either */
	__u32 n_refused;
	struct pool shared, own;
} memory = { .shared.is_shared = true };

struct inside_header *memory__header(void)
{
	return memory.header;
}

void memory__add_gap(enum inside_gap gap)
{
	if (memory.header)
		__atomic_fetch_add(&memory.header->gaps[gap], 1, __ATOMIC_RELAXED);
}

static bool header__is_usable(const struct inside_header *header, long size)
{
	return header->magic == INSIDE_MAGIC && header->version == INSIDE_VERSION &&
	       header->header_bytes == sizeof(*header) && header->size_bytes == (__u64)size;
}

static bool make_path(char *path, const char *directory, const char *name)
{
	char *stop = path + sizeof(memory.path), *end;

	end = text__append(path, stop, directory);
	end = text__append(end, stop, "/");
	return text__append(end, stop, name);
}

/* Maps the first @size bytes of a file, which must have @least bytes, and stores its size in
 * *@file_bytes. */
static void *map_first(const char *path, size_t size, long least, bool is_written, long *file_bytes)
{
	int protection = is_written ? PROT_READ | PROT_WRITE : PROT_READ;
	int fd = sys__open(path, (is_written ? O_RDWR : O_RDONLY) | O_NOFOLLOW);
	void *address = NULL;

	if (fd < 0)
		return NULL;
	*file_bytes = sys__size(fd);
	if (*file_bytes >= least)
		address = sys__map(size, protection, MAP_SHARED, fd, 0);
	sys__close(fd);
	/* The other mappings of the file are copies of this one and inherit the flag, so none of
	 * them is in core files. */
	if (address)
		sys(__NR_madvise, (long)address, size, MADV_DONTDUMP, 0, 0, 0);
	return address;
}

bool memory__open(const char *directory)
{
	struct inside_header *header;
	long size, tables_size;

	if (!make_path(memory.path, directory, INSIDE_MEMORY) ||
	    !make_path(memory.tables_path, directory, INSIDE_TABLES) ||
	    !make_path(memory.wake_path, directory, INSIDE_WAKE))
		return false;
	header = map_first(memory.path, INSIDE_HEADER_BYTES, INSIDE_HEADER_BYTES, true, &size);
	if (!header)
		return false;
	if (!header__is_usable(header, size)) {
		sys__unmap(header, INSIDE_HEADER_BYTES);
		return false;
	}
	if (header->settings.mode != INSIDE_COUNT || header->settings.within)
		memory.tables = map_first(memory.tables_path, INSIDE_PAGE, INSIDE_TABLES_BYTES,
					  false, &tables_size);
	memory.header = header;
	return true;
}

bool memory__adopt(__u64 address, __u64 tables)
{
	struct inside_header *header = (struct inside_header *)address;

	spared__add(address, INSIDE_HEADER_BYTES);
	sys(__NR_madvise, address, INSIDE_HEADER_BYTES, MADV_DONTDUMP, 0, 0, 0);
	if (tables) {
		spared__add(tables, INSIDE_PAGE);
		sys(__NR_madvise, tables, INSIDE_PAGE, MADV_DONTDUMP, 0, 0, 0);
	}
	if (!header__is_usable(header, header->size_bytes))
		return false;
	memory.tables = (const void *)tables;
	memory.header = header;
	return true;
}

void memory__close(void)
{
	memory.header = NULL;
}

/*
 * Makes another mapping of the file without a descriptor, which programs close, and without its
 * path, which the process may not reach any more: mremap(2) copies a shared mapping if the old
 * size is 0. The copy begins where the header does; the part before @offset is unmapped again.
 */
static void *map_copy(const void *first, __u64 offset, size_t size)
{
	long address = sys(__NR_mremap, (long)first, 0, offset + size, MREMAP_MAYMOVE, 0, 0);

	if (address < 0 && address > -4096)
		return NULL;
	if (offset)
		sys(__NR_munmap, address, offset, 0, 0, 0, 0);
	spared__add(address + offset, size);
	return (void *)(address + offset);
}

bool memory__is_full(void)
{
	return __atomic_load_n(&memory.failed_bytes, __ATOMIC_RELAXED);
}

static void note_lack(size_t size, __u64 now_ns)
{
	__atomic_store_n(&memory.failed_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&memory.failed_bytes, size, __ATOMIC_RELAXED);
}

/* A disk that was full may have room some time later. The clock is read once in so many requests, since it
 * takes a system call. */
#define RETRY_NS      (5000 * NS_PER_MS)
#define RETRY_REFUSED 64

static bool may_try_again(void)
{
	__u64 since_ns = __atomic_load_n(&memory.failed_ns, __ATOMIC_RELAXED);

	return since_ns &&
	       !(__atomic_add_fetch(&memory.n_refused, 1, __ATOMIC_RELAXED) % RETRY_REFUSED) &&
	       sys__may(__NR_clock_gettime) && sys__now_ns() > since_ns + RETRY_NS;
}

bool memory__lacks(size_t size)
{
	size_t failed = __atomic_load_n(&memory.failed_bytes, __ATOMIC_RELAXED);

	if (likely(!failed || size < failed))
		return false;
	if (!may_try_again())
		return true;
	__atomic_store_n(&memory.failed_bytes, 0, __ATOMIC_RELAXED);
	return false;
}

__u64 memory__reserve(size_t size)
{
	__u64 *next = &memory.header->next, limit = memory.header->size_bytes;
	__u64 offset = __atomic_load_n(next, __ATOMIC_RELAXED);

	do {
		if (offset <= limit && size <= limit - offset)
			continue;
		/* The size of a process's own file is what its user gives it. */
		if (memory.is_own)
			note_lack(size, 0);
		return 0;
	} while (!__atomic_compare_exchange_n(next, &offset, offset + size, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return offset;
}

/* Opens the shared memory's file once more. By then an own one's path may be another file's. */
static int open_again(void)
{
	int fd = sys__open(memory.path, O_RDWR | O_NOFOLLOW);
	struct stat status;

	if (fd < 0 || !memory.is_own)
		return fd;
	if (!sys(__NR_fstat, fd, (long)&status, 0, 0, 0, 0) && status.st_dev == memory.device &&
	    status.st_ino == memory.inode)
		return fd;
	sys__close(fd);
	return -ESTALE;
}

/* Has the file system allocate pages of a process's own file, for kernels without MADV_POPULATE_WRITE. */
static long allocate(int fd, __u64 offset, size_t size)
{
	return sys(__NR_fallocate, fd, FALLOC_FL_KEEP_SIZE, offset, size, 0, 0);
}

static bool allocate_again(__u64 offset, size_t size)
{
	int fd = open_again();
	long err;

	if (fd < 0)
		return false;
	err = allocate(fd, offset, size);
	sys__close(fd);
	return !err;
}

/* Has the kernel allocate the pages at @offset now, by MADV_POPULATE_WRITE of Linux 5.14. Returns false if
 * there is no room for them. */
static bool has_pages(void *address, __u64 offset, size_t size)
{
	long err;

	if (likely(!__atomic_load_n(&memory.header->is_tight, __ATOMIC_RELAXED)))
		return true;
	err = sys(__NR_madvise, (long)address, size, MADV_POPULATE_WRITE, 0, 0, 0);
	if (err == -EINVAL)
		return !memory.is_own || allocate_again(offset, size);
	return !err;
}

/* Maps a part of the opened file, and closes it. */
static void *map_file(int fd, __u64 offset, size_t size, int protection)
{
	void *address;

	if (fd < 0)
		return NULL;
	address = sys__map(size, protection, MAP_SHARED, fd, offset);
	sys__close(fd);
	if (address)
		sys(__NR_madvise, (long)address, size, MADV_DONTDUMP, 0, 0, 0);
	return address;
}

void *memory__map(__u64 offset, size_t size)
{
	__u64 limit = memory.header->size_bytes;
	void *address;

	if (!offset || offset & (INSIDE_PAGE - 1) || offset > limit || size > limit - offset)
		return NULL;
	address = map_copy(memory.header, offset, size);
	/* The copy is larger at first than the mapping that is wanted and may exceed a limit of
	 * address space (ulimit -v). */
	if (!address)
		address = map_file(open_again(), offset, size, PROT_READ | PROT_WRITE);
	if (address && !has_pages(address, offset, size)) {
		sys__unmap(address, size);
		note_lack(size, sys__may(__NR_clock_gettime) ? sys__now_ns() : 0);
		return NULL;
	}
	return address;
}

/* Returns whether a file may grow to @size_bytes: the kernel would end a process that exceeds its limit
 * (SIGXFSZ). */
static bool may_grow_to(__u64 size_bytes)
{
	struct {
		__u64 now, most;
	} limit = { 0 };

	return !sys(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) &&
	       size_bytes <= limit.now;
}

/* The least that must be free of a file system, and which part of it. */
#define LEAST_FREE_BYTES (64ULL << 20)
#define LEAST_FREE_PART	 100

/* Returns whether a file system has so much room that what others need of it is left. One that does not know has. */
static bool has_room(int fd)
{
	struct statfs status = { 0 };
	__u64 available;

	if (sys(__NR_fstatfs, fd, (long)&status, 0, 0, 0, 0) || status.f_blocks <= 0 ||
	    status.f_bsize <= 0)
		return true;
	available = status.f_bavail;
	return available >= (__u64)status.f_blocks / LEAST_FREE_PART &&
	       available >= LEAST_FREE_BYTES / status.f_bsize;
}

static void *map_new(int fd, __u64 size_bytes, long *err)
{
	void *address;

	*err = !has_room(fd)		 ? -ENOSPC
	       : may_grow_to(size_bytes) ? sys(__NR_ftruncate, fd, size_bytes, 0, 0, 0, 0)
					 : -EFBIG;
	if (*err)
		return NULL;
	address = sys__map(INSIDE_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!address) {
		*err = -ENOMEM;
		return NULL;
	}
	*err = sys(__NR_madvise, (long)address, INSIDE_HEADER_BYTES, MADV_POPULATE_WRITE, 0, 0, 0);
	if (*err == -EINVAL)
		*err = allocate(fd, 0, INSIDE_HEADER_BYTES);
	if (*err)
		sys__unmap(address, INSIDE_HEADER_BYTES);
	return *err ? NULL : address;
}

int memory__make(const char *path, const struct inside_settings *settings, __u64 size_bytes)
{
	struct inside_header *header = NULL;
	struct stat status;
	long err;
	int fd;

	fd = sys(__NR_openat, AT_FDCWD, (long)path,
		 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600, 0, 0);
	if (fd < 0)
		return fd;
	err = sys(__NR_fstat, fd, (long)&status, 0, 0, 0, 0);
	if (!err)
		header = map_new(fd, size_bytes, &err);
	sys__close(fd);
	if (!header) {
		sys(__NR_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
		return err;
	}
	sys(__NR_madvise, (long)header, INSIDE_HEADER_BYTES, MADV_DONTDUMP, 0, 0, 0);
	header->version = INSIDE_VERSION;
	header->header_bytes = sizeof(*header);
	header->size_bytes = size_bytes;
	header->settings = *settings;
	header->gate = INSIDE_OPEN;
	header->is_tight = 1;
	header->next = INSIDE_HEADER_BYTES;
	header->live.epoch_shift = AP_FIRST_EPOCH_SHIFT;
	header->n_begun = 1;
	__atomic_store_n(&header->magic, INSIDE_MAGIC, __ATOMIC_RELEASE);
	memory.path[0] = 0;
	text__append(memory.path, memory.path + sizeof(memory.path), path);
	memory.is_own = true;
	memory.device = status.st_dev;
	memory.inode = status.st_ino;
	memory.tables = NULL;
	memory.header = header;
	memory__forget();
	return 0;
}

const void *memory__map_tables(__u64 offset, size_t size)
{
	void *address;

	if (!memory.tables || offset > INSIDE_TABLES_BYTES || size > INSIDE_TABLES_BYTES - offset)
		return NULL;
	address = map_copy(memory.tables, offset, size);
	return address ? address
		       : map_file(sys__open(memory.tables_path, O_RDONLY | O_NOFOLLOW), offset,
				  size, PROT_READ);
}

/* Opens the FIFO for reading as well, so that the process gets no SIGPIPE if allocprof has ended. */
void memory__wake(void)
{
	int fd = memory.is_own ? -1 : sys__open(memory.wake_path, O_RDWR | O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return;
	sys(__NR_write, fd, (long)"", 1, 0, 0, 0);
	sys__close(fd);
}

bool memory__is_left(void)
{
	int fd;

	if (header__has_ended(memory.header) || memory.is_own)
		return header__has_ended(memory.header);
	/* Opening it for writing fails as soon as allocprof, its only reader, has ended. */
	fd = sys__open(memory.wake_path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
	if (fd >= 0)
		sys__close(fd);
	if (fd != -ENXIO)
		return false;
	__atomic_store_n(&memory.header->gate, INSIDE_STOPPED, __ATOMIC_RELAXED);
	return true;
}

/* How often a waiting process checks whether allocprof still runs. */
#define LOOK_NS (50 * NS_PER_MS)

/* Returns whether allocprof has done nothing for so long that no process waits any more. The first
 * that waits notes the time. */
static bool has_waited_enough(struct inside_waits *waits, __u64 now_ns)
{
	__u64 since_ns = 0;

	if (__atomic_compare_exchange_n(&waits->since_ns, &since_ns, now_ns, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	return now_ns - since_ns > memory.header->settings.wait_ms * NS_PER_MS;
}

/* Since when the thread waits; 0: it does not wait, or a signal handler has left the wait by a
 * jump. */
static __thread __u64 waits_since_ns;

void memory__await(const __u32 *word, __u32 value)
{
	__u64 begin_ns, now_ns, limit_ns = memory.header->settings.wait_ms * NS_PER_MS;
	struct inside_waits *waits = &memory.header->waits;

	/* Without a clock, which the target's filter may forbid to read, a wait could not be
	 * limited, so this thread does not wait. If the filter is older than the program, only the
	 * kernel knows about it; then sys__now_ns() returns 0. */
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value || !sys__may(__NR_nanosleep) ||
	    !sys__may(__NR_clock_gettime))
		return;
	begin_ns = now_ns = sys__now_ns();
	if (!begin_ns)
		return;
	/* If this thread waits already, this is a signal handler: further handlers would wait
	 * here, too, each inside the one before. */
	if (waits_since_ns && now_ns - waits_since_ns < limit_ns)
		return;
	waits_since_ns = now_ns;
	do {
		if (has_waited_enough(waits, now_ns) || memory__is_left())
			break;
		sys__await(word, value, LOOK_NS);
		now_ns = sys__now_ns();
	} while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value && now_ns - begin_ns < limit_ns);
	waits_since_ns = 0;
	if (now_ns == begin_ns)
		return;
	__atomic_fetch_add(&waits->count, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waits->total_ns, now_ns - begin_ns, __ATOMIC_RELAXED);
}

void *memory__take_pages(size_t size, __u64 *offset)
{
	__u64 end;
	void *pages;

	size = (size + INSIDE_PAGE - 1) & ~(size_t)(INSIDE_PAGE - 1);
	/* Without this check each call of the target would fail again, after several system calls. */
	if (memory__lacks(size))
		return NULL;
	*offset = memory__reserve(size);
	pages = memory__map(*offset, size);
	end = *offset + size;
	/* Attempts that fail again and again would use up the file. */
	if (!pages && *offset)
		__atomic_compare_exchange_n(&memory.header->next, &end, *offset, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return pages;
}

/* The first pieces are small, since many processes run briefly; later ones are large. */
static size_t piece_bytes(__u32 index)
{
	return index <= 4 ? 256 << 10 : index <= 16 ? 1 << 20 : index <= 1024 ? 4 << 20 : 16 << 20;
}

/* Maps a further piece and returns its first @size bytes, which are taken. @before is the pool's
 * state that had no room; if the state is still the same, other requests are served from the new
 * piece, too. */
static char *pool__extend(struct pool *pool, __u64 before, size_t size, __u64 *offset)
{
	__u32 index = __atomic_add_fetch(&pool->n_pieces, 1, __ATOMIC_RELAXED), taken = index;
	__u64 at = 0;
	char *piece = NULL;

	if (index < MAX_PIECES && size <= piece_bytes(index))
		piece = pool->is_shared ? memory__take_pages(piece_bytes(index), &at)
					: sys__map_private(piece_bytes(index));
	if (!piece) {
		/* Attempts that fail again and again would use up the numbers. */
		__atomic_compare_exchange_n(&pool->n_pieces, &taken, index - 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		return NULL;
	}
	pool->pieces[index] = piece;
	pool->offsets[index] = at;
	__atomic_compare_exchange_n(&pool->state, &before, (__u64)index << 32 | size, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	*offset = at;
	return piece;
}

/* A thread for which thousands wait may not get a processor for hundreds of milliseconds; the more
 * often the others look, the longer it takes. */
#define EXTEND_WAIT_NS	 (500 * NS_PER_MS)
#define EXTEND_MOST_WAIT 2

/*
 * Returns true if the caller is to map the pool's next piece, and false if another thread has
 * changed the pool's state since it was @before. The kernel maps memory for one thread of a
 * process at a time: if thousands of threads found no room at once, each would wait in mmap(2) and
 * map a piece too many. A thread waits neither for a thread that does not get on, nor for one that
 * its own signal handler has interrupted.
 */
static bool pool__begin_extend(struct pool *pool, __u64 before, __u32 tid)
{
	__u32 awaited = 0;
	int waits = 0;

	if (!tid || !sys__may(__NR_nanosleep)) {
		__atomic_store_n(&pool->extender, tid, __ATOMIC_RELAXED);
		return true;
	}
	for (;;) {
		__u32 other = 0;

		if (__atomic_compare_exchange_n(&pool->extender, &other, tid, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
		    other == tid)
			return true;
		waits = other == awaited ? waits + 1 : 0;
		awaited = other;
		/* One of the threads that have waited this long for the same thread maps a piece
		 * in its place. */
		if (waits >= EXTEND_MOST_WAIT &&
		    __atomic_compare_exchange_n(&pool->extender, &other, tid, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		sys__await(&pool->extender, other, EXTEND_WAIT_NS);
		if (__atomic_load_n(&pool->state, __ATOMIC_ACQUIRE) != before)
			return false;
	}
}

static void pool__end_extend(struct pool *pool, __u32 tid)
{
	if (__atomic_compare_exchange_n(&pool->extender, &tid, 0, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		sys__wake(&pool->extender);
}

/* Maps a further piece, and takes @size bytes of it; NULL on failure. */
static void *pool__take_new(struct pool *pool, __u64 before, size_t size, __u64 *offset,
			    bool *is_late)
{
	__u32 tid = sys__tid();
	void *taken = NULL;

	*is_late = !pool__begin_extend(pool, before, tid);
	if (*is_late)
		return NULL;
	/* Another thread may have extended the pool right before this thread's turn. */
	*is_late = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE) != before;
	if (!*is_late)
		taken = pool__extend(pool, before, size, offset);
	pool__end_extend(pool, tid);
	return taken;
}

static void *pool__take(struct pool *pool, size_t size, __u64 *offset)
{
	__u64 state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);

	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	for (;;) {
		__u32 index = state >> 32, used = state;
		bool is_late;
		void *taken;

		if (!index || piece_bytes(index) - used < size) {
			taken = pool__take_new(pool, state, size, offset, &is_late);
			if (!is_late)
				return taken;
			state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
			continue;
		}
		if (__atomic_compare_exchange_n(&pool->state, &state, state + size, false,
						__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			*offset = pool->offsets[index] + used;
			return pool->pieces[index] + used;
		}
	}
}

void *memory__take(size_t size, __u64 *offset)
{
	return pool__take(&memory.shared, size, offset);
}

void *memory__take_private(size_t size)
{
	__u64 offset;

	return pool__take(&memory.own, size, &offset);
}

/* Forgets the pieces but leaves them mapped: if a signal handler has forked, the code that it
 * interrupted goes on in both processes. */
void memory__forget(void)
{
	memory.failed_bytes = 0;
	memory.shared.n_pieces = 0;
	memory.shared.state = 0;
	memory.shared.extender = memory.own.extender = 0;
}

/* Returns the index of the chunk that has element @index, and stores the index of the chunk's
 * first element in *@first. */
static __u32 chunk_of(__u32 index, __u32 *first)
{
	__u32 chunk = 0;

	*first = 0;
	while (chunk < INSIDE_CHUNKS && index - *first >= (__u32)INSIDE_FIRST << chunk)
		*first += INSIDE_FIRST << chunk++;
	return chunk;
}

static size_t chunk_bytes(__u32 chunk, size_t size)
{
	return ((INSIDE_FIRST << chunk) * size + INSIDE_PAGE - 1) & ~(size_t)(INSIDE_PAGE - 1);
}

static char *map_chunk(struct mapped_array *mapped, __u32 chunk, __u64 offset, size_t size)
{
	char *base = __atomic_load_n(&mapped->chunks[chunk], __ATOMIC_ACQUIRE);

	if (base)
		return base;
	base = memory__map(offset, chunk_bytes(chunk, size));
	/* If another thread has mapped the chunk meanwhile, it is mapped twice. */
	if (base)
		__atomic_store_n(&mapped->chunks[chunk], base, __ATOMIC_RELEASE);
	return base;
}

void *mapped_array__get(struct mapped_array *mapped, const struct inside_array *array, size_t size,
			__u32 index)
{
	__u32 first, chunk = chunk_of(index, &first);
	char *base;

	if (chunk == INSIDE_CHUNKS)
		return NULL;
	base = map_chunk(mapped, chunk, __atomic_load_n(&array->chunks[chunk], __ATOMIC_ACQUIRE),
			 size);
	return base ? base + (index - first) * size : NULL;
}

void *mapped_array__add(struct mapped_array *mapped, struct inside_array *array, size_t size,
			__u32 *index)
{
	__u32 n = __atomic_fetch_add(&array->n, 1, __ATOMIC_RELAXED), first;
	__u32 chunk = chunk_of(n, &first);
	__u64 offset, none = 0;
	char *base;

	if (chunk == INSIDE_CHUNKS)
		return NULL;
	offset = __atomic_load_n(&array->chunks[chunk], __ATOMIC_ACQUIRE);
	if (!offset) {
		offset = memory__reserve(chunk_bytes(chunk, size));
		if (!offset)
			return NULL;
		if (!__atomic_compare_exchange_n(&array->chunks[chunk], &none, offset, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			offset = none;
	}
	if (memory__lacks(chunk_bytes(chunk, size)) &&
	    !__atomic_load_n(&mapped->chunks[chunk], __ATOMIC_RELAXED))
		return NULL;
	base = map_chunk(mapped, chunk, offset, size);
	*index = n;
	return base ? base + (n - first) * size : NULL;
}

#define FIRST_SHIFT 4

/* From this size on a table has pages of its own, which are unmapped when it grows. */
#define OWN_PAGES_BYTES (16 << 10)

static char *take_entries(size_t bytes, __u64 *offset)
{
	return bytes < OWN_PAGES_BYTES ? memory__take(bytes, offset)
				       : memory__take_pages(bytes, offset);
}

static void give_back_entries(char *entries, size_t bytes)
{
	if (!entries || bytes < OWN_PAGES_BYTES)
		return;
	bytes = (bytes + INSIDE_PAGE - 1) & ~(size_t)(INSIDE_PAGE - 1);
	sys(__NR_madvise, (long)entries, bytes, MADV_REMOVE, 0, 0, 0);
	sys__unmap(entries, bytes);
}

static bool grow_table(struct table *table, const struct table_kind *kind, __u64 *published)
{
	struct table grown = { .shift = table->entries ? table->shift + 1 : FIRST_SHIFT };
	size_t bytes = kind->entry_bytes << grown.shift;
	__u64 offset;

	if (grown.shift > INSIDE_MAX_SHIFT)
		return false;
	grown.entries = take_entries(bytes, &offset);
	if (!grown.entries)
		return false;
	for (__u64 i = 0; table->entries && i < 1ULL << table->shift; i++) {
		const char *from = table->entries + i * kind->entry_bytes;
		__u64 hash = kind->hash(from);
		void *to;

		if (!hash)
			continue;
		to = table__first(&grown, kind->entry_bytes, hash);
		while (kind->hash(to))
			to = table__next(&grown, kind->entry_bytes, to);
		memcpy(to, from, kind->entry_bytes);
		grown.n++;
	}
	__atomic_store_n(published, offset | grown.shift, __ATOMIC_RELEASE);
	give_back_entries(table->entries, kind->entry_bytes << table->shift);
	*table = grown;
	return true;
}

/* Signals are blocked: a handler that jumped out of here would leave a table that is copied in
 * part. */
bool table__reserve(struct table *table, const struct table_kind *kind, __u64 *published)
{
	__u64 signals;
	bool has_room;

	if (table->entries && table->n < (1U << table->shift) / 2)
		return true;
	sys__block_signals(&signals);
	has_room = grow_table(table, kind, published);
	sys__restore_signals(signals);
	return has_room;
}
