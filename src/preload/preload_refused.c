// SPDX-License-Identifier: GPL-3.0-or-later
/* Programs that processes are about to execute and that the library cannot enter: the processes wait for an answer. */
#include "preload_internal.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/mman.h>

#include "array.h"
#include "file.h"

/* The place of an array's element; 0 if there is no chunk for it. */
static __u64 place_of(const struct inside_array *array, __u32 index, size_t size)
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

static int wake_at(int fd, __u64 place)
{
	__u64 page = place & ~(__u64)(INSIDE_PAGE - 1);
	char *mapped = mmap(NULL, INSIDE_PAGE, PROT_READ, MAP_SHARED, fd, page);

	/* Those that nobody wakes look again themselves. */
	if (mapped == MAP_FAILED)
		return 0;
	preload__wake_waiting(mapped + (place - page));
	munmap(mapped, INSIDE_PAGE);
	return 0;
}

static int answer(struct reader *reader, __u32 index, const void *element)
{
	const struct inside_refused *refused = element;
	const struct asking *asking = reader->context;
	__u8 *known = &asking->preload->answers[index];
	struct preload_refused asked;
	__u64 place = place_of(&reader->header.refused, index, sizeof(*refused)) +
		      offsetof(struct inside_refused, answer);
	__u32 written;

	/* It may still be written. */
	if (*known != INSIDE_NO_ANSWER || refused->state != INSIDE_READY)
		return 0;
	*known = INSIDE_NOT_TAKEN;
	if (refused__read(refused, UINT_MAX, &asked) && asking->take(asking->context, &asked))
		*known = INSIDE_TAKEN;
	written = *known;
	/* The place was read from, so it is in the file. */
	return fd__write_all_at(reader->fd, &written, sizeof(written), place)
		       ?: wake_at(reader->fd, place);
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
	/* More than an array has room for cannot be right. */
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
