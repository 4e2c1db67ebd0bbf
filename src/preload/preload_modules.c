// SPDX-License-Identifier: GPL-3.0-or-later
/* Answers the processes: takes the files that they have mapped, writes the unwind tables that they
 * wait for, and says what becomes of programs that the library cannot be preloaded into. */
#include "preload_internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "file.h"

struct taking {
	struct preload *preload;
	preload_module_fn fn;
	void *context;
};

static int take_module(struct reader *reader, __u32 index, const void *element)
{
	const struct inside_module *module = element;
	const struct taking *taking = reader->context;
	struct ap_module_record record = {
		.type = AP_RECORD_MODULE,
		.id = INSIDE_FIRST_MODULE + index,
		.pid = module->pid,
		.device = module->device,
		.inode = module->inode,
		.start = module->start,
		.end = module->end,
		.offset = module->offset,
		.time_ns = module->time_ns,
	};
	char path[sizeof(module->path) + 1];

	/* A process may still be writing the entry. */
	if (taking->preload->taken[index] || module->state != INSIDE_READY)
		return 0;
	taking->preload->taken[index] = true;
	memcpy(path, module->path, sizeof(module->path));
	path[sizeof(module->path)] = 0;
	return taking->fn(taking->context, &record, path);
}

static int know(struct preload *preload, size_t n)
{
	if (n <= preload->n_modules)
		return 0;
	if (array__reserve_zeroed(&preload->taken, &preload->modules_room, n,
				  sizeof(*preload->taken)))
		return -ENOMEM;
	preload->n_modules = n;
	return 0;
}

/* Lets threads wait for the full time again, since allocprof is at work. Returns 0 or a negative
 * errno. */
static int preload__extend_waits(const struct preload *preload)
{
	const size_t at = offsetof(struct inside_header, waits.since_ns);
	const __u64 none = 0;
	__u64 since_ns;

	if (fd__read_all_at(preload->memory_fd, &since_ns, sizeof(since_ns), at))
		return -EIO;
	return since_ns ? fd__write_all_at(preload->memory_fd, &none, sizeof(none), at) : 0;
}

int preload__take_modules(struct preload *preload, preload_module_fn fn, void *context)
{
	struct taking taking = { preload, fn, context };
	struct reader reader = { .context = &taking };
	size_t first = 0;
	int err = reader__begin(&reader, preload);

	if (err)
		return err;
	if (reader.header.modules.n > UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE)
		reader.header.modules.n = UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE;
	err = know(preload, reader.header.modules.n);
	if (err)
		return err;
	while (first < preload->n_modules && preload->taken[first])
		first++;
	err = reader__each(&reader, &reader.header.modules, first, sizeof(struct inside_module),
			   take_module);
	return err ? err : preload__extend_waits(preload);
}

/* Wakes the threads that wait for a word of shared memory. The word may lie beyond the end of its
 * file. */
static void preload__wake_waiting(const void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool preload__has_taken(const struct preload *preload, __u32 module)
{
	size_t index = (size_t)module - INSIDE_FIRST_MODULE;

	return module < INSIDE_FIRST_MODULE ||
	       (index < preload->n_modules && preload->taken[index]);
}

/* Adds a module. To be called before the first process begins, since then nobody else writes to
 * the array. */
int preload__announce(struct preload *preload, __u32 device, __u64 inode, const char *path,
		      __u32 *id)
{
	struct inside_module module = {
		.state = INSIDE_READY,
		.device = device,
		.inode = inode,
	};
	struct reader reader = { 0 };
	struct inside_array *modules = &reader.header.modules;
	__u32 n, chunk = 0, first = 0;
	int err = reader__begin(&reader, preload);

	if (err)
		return err;
	n = modules->n;
	while (chunk < INSIDE_CHUNKS && n - first >= (__u32)INSIDE_FIRST << chunk)
		first += INSIDE_FIRST << chunk++;
	if (chunk == INSIDE_CHUNKS || n >= UNWIND_MAX_MODULES - INSIDE_FIRST_MODULE)
		return -ENOSPC;
	if (!modules->chunks[chunk]) {
		size_t bytes = (INSIDE_FIRST << chunk) * sizeof(module);

		modules->chunks[chunk] = reader.header.next;
		reader.header.next += (bytes + INSIDE_PAGE - 1) & ~(__u64)(INSIDE_PAGE - 1);
	}
	modules->n++;
	strncpy(module.path, path, sizeof(module.path) - 1);
	err = know(preload, modules->n);
	if (!err)
		err = fd__write_all_at(preload->memory_fd, &module, sizeof(module),
				       modules->chunks[chunk] + (n - first) * sizeof(module));
	if (!err)
		err = fd__write_all_at(preload->memory_fd, &reader.header, sizeof(reader.header),
				       0);
	if (err)
		return err;
	preload->taken[n] = true;
	*id = INSIDE_FIRST_MODULE + n;
	return 0;
}

void preload__wait(struct preload *preload, int timeout_ms)
{
	struct pollfd wait = { .fd = preload->wake_fd, .events = POLLIN };
	char bytes[256];

	if (poll(&wait, 1, timeout_ms) > 0)
		while (read(preload->wake_fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
			;
}

/* Returns the size of a chunk up to its last word that is not 0. */
static size_t used_bytes(const struct unwind_chunk *chunk)
{
	size_t n = UNWIND_CHUNK_WORDS;

	while (n && !chunk->words[n - 1])
		n--;
	return n * sizeof(chunk->words[0]);
}

int preload__write_table(void *context, enum unwind_map map, __u32 index, const void *value)
{
	struct preload *preload = context;
	int err;

	switch (map) {
	case UNWIND_MAP_CHUNKS:
		if (!value)
			return index < UNWIND_MAX_CHUNKS ? 0 : -ENOSPC;
		return fd__write_all_at(preload->tables_fd, value, used_bytes(value),
					INSIDE_CHUNKS_AT +
						(__u64)index * sizeof(struct unwind_chunk));
	case UNWIND_MAP_TABLES:
		err = fd__write_all_at(preload->tables_fd, value, sizeof(struct unwind_table),
				       INSIDE_TABLES_AT +
					       (__u64)index * sizeof(struct unwind_table));
		preload__wake_waiting(&((struct unwind_table *)preload->awaited)[index].state);
		return err;
	case UNWIND_MAP_SLICES:
		return fd__write_all_at(preload->tables_fd, value, sizeof(struct unwind_slice),
					INSIDE_SLICES_AT +
						(__u64)index * sizeof(struct unwind_slice));
	case UNWIND_MAP_RULES:
		return fd__write_all_at(preload->tables_fd, value, sizeof(struct unwind_rule),
					INSIDE_RULES_AT +
						(__u64)index * sizeof(struct unwind_rule));
	}
	return -EINVAL;
}

int preload__set_within(void *context, __u32 module, const struct ap_within *within)
{
	struct preload *preload = context;

	if (module >= UNWIND_MAX_MODULES)
		return -EINVAL;
	return fd__write_all_at(preload->tables_fd, within, sizeof(*within),
				INSIDE_WITHIN_AT + module * sizeof(*within));
}

/* Programs that processes are about to execute and that the library cannot be preloaded into. The
 * processes wait for an answer. */

__u64 inside_array__offset(const struct inside_array *array, __u32 index, size_t size)
{
	__u32 chunk = 0, first = 0;

	while (chunk < INSIDE_CHUNKS && index - first >= (__u32)INSIDE_FIRST << chunk)
		first += INSIDE_FIRST << chunk++;
	if (chunk == INSIDE_CHUNKS || !array->chunks[chunk])
		return 0;
	return array->chunks[chunk] + (__u64)(index - first) * size;
}

struct asking {
	struct preload *preload;
	preload_take_fn take;
	void *context;
};

int preload__wake_at(int fd, __u64 offset)
{
	__u64 page = offset & ~(__u64)(INSIDE_PAGE - 1);
	char *mapped = mmap(NULL, INSIDE_PAGE, PROT_READ, MAP_SHARED, fd, page);

	/* If the page cannot be mapped, nobody is woken; waiting processes look again by
	 * themselves. */
	if (mapped == MAP_FAILED)
		return 0;
	preload__wake_waiting(mapped + (offset - page));
	munmap(mapped, INSIDE_PAGE);
	return 0;
}

static int answer(struct reader *reader, __u32 index, const void *element)
{
	const struct inside_refused *refused = element;
	const struct asking *asking = reader->context;
	__u8 *known = &asking->preload->answers[index];
	struct preload_refused asked;
	__u64 offset = inside_array__offset(&reader->header.refused, index, sizeof(*refused)) +
		       offsetof(struct inside_refused, answer);
	__u32 written;

	/* A process may still be writing the entry. */
	if (*known != INSIDE_NO_ANSWER || refused->state != INSIDE_READY)
		return 0;
	*known = INSIDE_NOT_BY_OTHER;
	if (refused__read(refused, UINT_MAX, &asked) && asking->take(asking->context, &asked))
		*known = INSIDE_BY_OTHER;
	written = *known;
	/* The offset was just read from, so it is within the file. */
	return fd__write_all_at(reader->fd, &written, sizeof(written), offset)
		       ?: preload__wake_at(reader->fd, offset);
}

int preload__take_refused(struct preload *preload, preload_take_fn take, void *context)
{
	struct asking asking = { preload, take, context };
	struct reader reader = { .context = &asking };
	size_t first = 0, n;
	int err = reader__begin(&reader, preload);

	if (err)
		return err;
	n = reader.header.refused.n;
	/* A larger number than an array has room for cannot be right. */
	if (n > INSIDE_FIRST << INSIDE_CHUNKS)
		n = INSIDE_FIRST << INSIDE_CHUNKS;
	reader.header.refused.n = n;
	if (n > preload->n_answers) {
		if (array__reserve_zeroed(&preload->answers, &preload->answers_room, n,
					  sizeof(*preload->answers)))
			return -ENOMEM;
		preload->n_answers = n;
	}
	while (first < preload->n_answers && preload->answers[first] != INSIDE_NO_ANSWER)
		first++;
	if (first < n)
		err = reader__each(&reader, &reader.header.refused, first,
				   sizeof(struct inside_refused), answer);
	return err ? err : preload__extend_waits(preload);
}

int preload__hand_over(struct preload *preload, bool hands_over)
{
	__u32 value = hands_over;

	return fd__write_all_at(preload->memory_fd, &value, sizeof(value),
				offsetof(struct inside_header, hands_over));
}
