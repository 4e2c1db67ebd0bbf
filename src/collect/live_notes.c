// SPDX-License-Identifier: GPL-3.0-or-later
/* Keeps numbers of records, and sums of blocks that were not freed. */
#include "live_notes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "array.h"

void live_notes__release(struct live_notes *notes)
{
	for (size_t i = 0; i < notes->n_notes; i++)
		free(notes->notes[i].reached);
	free(notes->notes);
	free(notes->counts);
}

static int get(struct live_notes *notes, __u32 index, struct live_note **note)
{
	if (index >= notes->max_records)
		return -EINVAL;
	if (array__reserve_zeroed(&notes->notes, &notes->n_notes, (size_t)index + 1,
				  sizeof(*notes->notes)))
		return -ENOMEM;
	*note = &notes->notes[index];
	return 0;
}

int live_notes__number(struct live_notes *notes, __u32 index, __u32 *number)
{
	struct live_note *note;
	int err = get(notes, index, &note);

	if (err)
		return err;
	if (!note->number) {
		if (notes->n_numbers == UINT32_MAX ||
		    array__reserve(&notes->counts, &notes->counts_room,
				   (size_t)notes->n_numbers + 1, sizeof(*notes->counts)))
			return -ENOMEM;
		notes->counts[notes->n_numbers++] = 0;
		note->number = notes->n_numbers;
	}
	*number = note->number;
	return 0;
}

int live_notes__add_discarded(struct live_notes *notes, __u32 index, const struct ap_count *sum,
			      const struct profile_estimate *estimate)
{
	struct live_note *note;
	int err = get(notes, index, &note);

	if (err)
		return err;
	note->discarded += sum->calls;
	note->discarded_bytes = profile__add_up(note->discarded_bytes, sum->size_bytes);
	profile_estimate__add(&note->of_discarded, estimate);
	return 0;
}

int live_notes__add_live(struct live_notes *notes, __u32 index, __u64 birth_ns)
{
	struct live_note *note;
	int err = get(notes, index, &note);

	if (!err && (!note->oldest_ns || birth_ns < note->oldest_ns))
		note->oldest_ns = birth_ns;
	return err;
}

int live_notes__add_reached(struct live_notes *notes, __u32 index, enum profile_reach reach,
			    const struct ap_count *sum)
{
	struct profile_reached *reached;
	struct live_note *note;
	int err = get(notes, index, &note);

	if (err)
		return err;
	if (!note->reached)
		note->reached = calloc(PROFILE_REACHES, sizeof(*note->reached));
	if (!note->reached)
		return -ENOMEM;
	reached = &note->reached[reach];
	reached->blocks += sum->calls;
	reached->size_bytes = profile__add_up(reached->size_bytes, sum->size_bytes);
	return 0;
}

const struct live_note *live_notes__get(const struct live_notes *notes, __u32 index)
{
	static const struct live_note none;

	return index < notes->n_notes ? &notes->notes[index] : &none;
}

void live_notes__clear(struct live_notes *notes, __u32 index)
{
	if (index >= notes->n_notes)
		return;
	free(notes->notes[index].reached);
	notes->notes[index] = (struct live_note){ 0 };
}

__u32 live_notes__count(const struct live_notes *notes, __u32 number)
{
	return number && number <= notes->n_numbers ? notes->counts[number - 1] : 0;
}

void live_notes__set_count(struct live_notes *notes, const struct live_note *note, __u32 count)
{
	if (note->number)
		notes->counts[note->number - 1] = count;
}
