// SPDX-License-Identifier: GPL-3.0-or-later
/* Iterates over the selected stacks of an export, and numbers texts. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "export_internal.h"
#include "filter.h"
#include "recording_text.h"
#include "stack_view.h"

static bool match(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct string_ids *)owner)->texts[id - 1], key);
}

int string_ids__add(struct string_ids *ids, const char *text, __u32 *id)
{
	__u64 hash;

	if (!ids->n)
		ids->seed = hash_seed();
	hash = hash_string(ids->seed, text);
	*id = hash_table__find(&ids->index, hash, match, ids, text);
	if (*id)
		return 0;
	if (ids->n >= UINT32_MAX ||
	    array__reserve(&ids->texts, &ids->room, ids->n + 1, sizeof(*ids->texts)) ||
	    hash_table__insert(&ids->index, hash, ids->n + 1))
		return -ENOMEM;
	ids->texts[ids->n++] = text;
	*id = ids->n;
	return 0;
}

void string_ids__release(struct string_ids *ids)
{
	free(ids->texts);
	hash_table__release(&ids->index);
}

bool export__next(const struct export_input *input, size_t *at, struct export_sample *sample)
{
	const struct profile *profile = input->profile;
	const struct stack_view *view = input->view;

	while (*at < profile->n_counts) {
		const struct profile_count *count = &profile->counts[*at];
		const struct selection *selected = &input->counts[(*at)++];
		enum ap_stack_end end = profile->stacks[count->stack - 1].end;

		if (profile__function_frees(count->function) ||
		    (!selected->allocations && !selected->size_bytes && !selected->live &&
		     !selected->live_bytes))
			continue;
		*sample = (struct export_sample){
			.count = count,
			.selected = selected,
			.process = &profile->processes[count->process - 1],
			.thread = profile->threads[count->thread - 1].name,
			.function =
				definition_names__function(&profile->definitions, count->function),
			.type = stack_view__type(view, count->stack),
			.end = end == AP_END_COMPLETE ? NULL : profile__stack_end_name(end),
		};
		sample->labels = stack_view__frames(view, count->stack, &sample->n_frames);
		if (view->locations)
			sample->locations =
				stack_view__locations(view, count->stack, &sample->n_frames);
		return true;
	}
	return false;
}

static int number(const struct export_input *input, bool by_location, __u32 **numbers, size_t *n)
{
	size_t room = by_location ? input->view->n_locations : input->view->n_labels;
	__u32 *made = malloc((room + 1) * sizeof(*made));
	struct export_sample sample;

	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < room; i++)
		made[i] = EXPORT_UNUSED;
	for (size_t at = 0; export__next(input, &at, &sample);)
		for (size_t i = 0; i < sample.n_frames; i++)
			made[by_location ? sample.locations[i] : sample.labels[i]] = 0;
	*n = 0;
	for (size_t i = 0; i < room; i++)
		if (!made[i])
			made[i] = (*n)++;
	*numbers = made;
	return 0;
}

int export__number_locations(const struct export_input *input, __u32 **numbers, size_t *n)
{
	return number(input, true, numbers, n);
}

int export__number_labels(const struct export_input *input, __u32 **numbers, size_t *n)
{
	return number(input, false, numbers, n);
}

const struct profile_line *export__line(const struct export_input *input, __u32 location)
{
	const struct stack_location *at = &input->view->locations[location];
	const struct profile_line *line;

	if (at->line == STACK_NO_LINE)
		return NULL;
	line = &input->profile->frames[at->frame - 1].lines[at->line];
	return line->function ? line : NULL;
}

__u64 export__address(const struct profile_frame *frame)
{
	return frame->offset - (!frame->place && frame->offset ? 1 : 0);
}

bool export__has_live(const struct export_input *input)
{
	return filter__has_live(input->profile);
}

__u64 export__start_ns(const struct export_input *input)
{
	const char *text = profile__meta(input->profile, "start_time");
	struct tm utc = { 0 };
	const char *end;
	time_t seconds;

	end = text ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc) : NULL;
	if (!end || *end)
		return 0;
	seconds = timegm(&utc);
	return seconds > 0 && (__u64)seconds < INT64_MAX / NS_PER_S ? seconds * NS_PER_S : 0;
}

int export__headline(const struct export_input *input, char **text)
{
	_cleanup_(free_ptr) char *title = recording_text__title(input->profile), *remarks = NULL;
	int err = title ? recording_text__remarks(input->profile, &remarks) : -ENOMEM;

	if (err)
		return err;
	for (char *at = remarks; *at; at++)
		if (*at == '\n')
			*at = at[1] ? ';' : '\0';
	if (asprintf(text, "%s%s%s%s", title, *remarks ? " (" : "", remarks, *remarks ? ")" : "") <
	    0)
		return -ENOMEM;
	return 0;
}
