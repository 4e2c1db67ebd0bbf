// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Memory of ended processes. Without stacks a thread has nothing but one struct, in pages that only its process uses:
 * these are given back when nobody writes them any more. Sums go on from what was read.
 */
#include "preload_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "file.h"

/* All images are read for it. */
#define INTERVAL_NS NS_PER_S

struct retiring {
	struct preload *preload;
	bool *has_ended; /* by image; the same for all of its threads, which may share pages */
	size_t n_images, images_room;
	__u64 *places;
	size_t n_places, places_room;
};

static int look_at_image(struct reader *reader, __u32 index, const void *element)
{
	struct retiring *retiring = reader->context;
	const struct inside_image *image = element;

	/* Those of a chunk that cannot be read have not. */
	if (array__reserve_zeroed(&retiring->has_ended, &retiring->images_room, index + 1UL,
				  sizeof(*retiring->has_ended)))
		return -ENOMEM;
	/* In another namespace the number is that of another process. */
	retiring->has_ended[index] = image->state == INSIDE_READY && image->pid > 1 &&
				     image->pid_namespace &&
				     image->pid_namespace == retiring->preload->pid_namespace &&
				     kill(image->pid, 0) && errno == ESRCH;
	retiring->n_images = index + 1UL;
	return 0;
}

/* Where element @index of the array of threads is. */
static __u64 place_of(const struct inside_array *array, __u32 index)
{
	__u32 chunk = 0, first = 0;

	while (index - first >= (__u32)INSIDE_FIRST << chunk)
		first += INSIDE_FIRST << chunk++;
	return array->chunks[chunk] + (index - first) * sizeof(__u64);
}

static int look_at_thread(struct reader *reader, __u32 index, const void *element)
{
	static const __u64 retired = INSIDE_RETIRED;
	struct retiring *retiring = reader->context;
	struct preload *preload = retiring->preload;
	const __u64 *place = element;
	struct inside_thread thread;
	int err;

	if (!*place || *place == INSIDE_RETIRED || !reader__get_thread(reader, *place, &thread) ||
	    thread.image > retiring->n_images || !retiring->has_ended[thread.image - 1])
		return 0;
	if (array__reserve(&retiring->places, &retiring->places_room, retiring->n_places + 1,
			   sizeof(*retiring->places)))
		return -ENOMEM;
	err = fd__write_all_at(preload->memory_fd, &retired, sizeof(retired),
			       place_of(&reader->header.threads, index));
	if (err)
		return err;
	retiring->places[retiring->n_places++] = *place;
	preload_results__add_thread(&preload->retired, &thread);
	return preload_results__add_regions(&preload->retired, reader, &thread);
}

/* The pages that have @place and what follows; no others than those of pieces, which are behind the header. */
static void give_back(const struct preload *preload, __u64 place)
{
	__u64 start = place & ~(__u64)(INSIDE_PAGE - 1);
	__u64 end = (place + sizeof(struct inside_thread) + INSIDE_PAGE - 1) &
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
		err = reader__each(&reader, &reader.header.images, 0, sizeof(struct inside_image),
				   look_at_image);
	if (!err)
		err = reader__each(&reader, &reader.header.threads, 0, sizeof(__u64),
				   look_at_thread);
	for (size_t i = 0; i < retiring.n_places; i++)
		give_back(preload, retiring.places[i]);
	free(retiring.has_ended);
	free(retiring.places);
	return err;
}
