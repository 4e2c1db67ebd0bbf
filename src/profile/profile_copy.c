// SPDX-License-Identifier: GPL-3.0-or-later
#include "profile_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "profile_runs.h"

void profile_copy__release(struct profile_copy *copy)
{
	free(copy->modules);
	free(copy->functions);
	free(copy->files);
	free(copy->frames);
	free(copy->stacks);
	free(copy->processes);
	free(copy->threads);
	free(copy->counts);
}

__u32 profile_copy__find_module(const struct profile *to, const struct profile_module *module)
{
	for (size_t i = 0; i < to->n_modules; i++) {
		const struct profile_module *other = &to->modules[i];

		if (strcmp(other->path, module->path) || strcmp(other->build_id, module->build_id))
			continue;
		if (*module->build_id || other->file == module->file)
			return other->id;
	}
	return 0;
}

static int copy_modules(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_modules && !err; i++) {
		const struct profile_module *module = &copy->from->modules[i];
		__u32 *id = &copy->modules[i];

		err = profile__add_module_file(copy->to, module->path, module->build_id,
					       module->file, id);
		if (!err && !*copy->to->modules[*id - 1].symbols)
			err = profile__set_module_symbols(copy->to, *id, module->symbols);
	}
	return err;
}

static int copy_names(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_functions && !err; i++) {
		const struct profile_function *function = &copy->from->functions[i];

		err = profile__add_function(copy->to, function->symbol, function->name,
					    function->full_name, &copy->functions[i]);
	}
	for (size_t i = 0; i < copy->from->n_files && !err; i++)
		err = profile__add_file(copy->to, copy->from->files[i].path, &copy->files[i]);
	return err;
}

/* The lines of @frame with function and file ids of @to. To be freed; NULL on ENOMEM. */
static struct profile_line *translate_lines(const struct profile_copy *copy,
					    const struct profile_frame *frame)
{
	struct profile_line *lines = calloc(frame->n_lines + 1, sizeof(*lines));

	for (__u32 i = 0; lines && i < frame->n_lines; i++) {
		lines[i] = frame->lines[i];
		lines[i].function = copy->functions[lines[i].function - 1];
		if (lines[i].file)
			lines[i].file = copy->files[lines[i].file - 1];
	}
	return lines;
}

static bool has_lines(const struct profile_frame *frame, const struct profile_line *lines,
		      __u32 n_lines)
{
	if (frame->n_lines != n_lines)
		return false;
	for (__u32 i = 0; i < n_lines; i++)
		if (frame->lines[i].function != lines[i].function ||
		    frame->lines[i].file != lines[i].file || frame->lines[i].line != lines[i].line)
			return false;
	return true;
}

/* An address without a known file may have been other code in each run. */
static int copy_address(struct profile_copy *copy, const struct profile_frame *frame,
			const struct profile_line *lines, __u32 *id)
{
	const struct profile_frame *found = NULL;

	if (!copy->keeps_ids)
		found = profile__find_frame(copy->to, 0, frame->offset, frame->interrupted);
	if (!found || !has_lines(found, lines, frame->n_lines))
		return profile__add_other_frame(copy->to, frame->offset, frame->interrupted, id);
	*id = found->id;
	return 0;
}

static int copy_frame(struct profile_copy *copy, const struct profile_frame *frame, __u32 *id)
{
	_cleanup_(free_ptr) struct profile_line *lines = translate_lines(copy, frame);
	int err;

	if (!lines)
		return -ENOMEM;
	if (frame->tail_call)
		err = profile__add_tail_call(copy->to, copy->modules[frame->module - 1],
					     frame->offset, id);
	else if (frame->module)
		err = profile__add_frame(copy->to, copy->modules[frame->module - 1], frame->offset,
					 frame->interrupted, id);
	else
		err = copy_address(copy, frame, lines, id);
	if (!err && frame->n_lines && !copy->to->frames[*id - 1].n_lines)
		err = profile__set_frame_lines(copy->to, *id, lines, frame->n_lines);
	return err;
}

static int copy_stacks(struct profile_copy *copy)
{
	__u32 frames[AP_MAX_DEPTH];
	int err = 0;

	for (size_t i = 0; i < copy->from->n_frames && !err; i++)
		err = copy_frame(copy, &copy->from->frames[i], &copy->frames[i]);
	for (size_t i = 0; i < copy->from->n_stacks && !err; i++) {
		const struct profile_stack *stack = &copy->from->stacks[i];

		for (__u32 j = 0; j < stack->n_frames; j++)
			frames[j] = copy->frames[stack->frames[j] - 1];
		err = profile__add_stack(copy->to, frames, stack->n_frames, stack->end,
					 &copy->stacks[i]);
	}
	return err;
}

static int copy_processes(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_processes && !err; i++) {
		const struct profile_process *process = &copy->from->processes[i];
		__u32 parent = process->parent ? copy->processes[process->parent - 1] : 0;

		if (process->run != copy->from_run)
			continue;
		err = profile__add_process(copy->to, parent, process->pid, process->start_ns,
					   process->comm, &copy->processes[i]);
		if (err)
			break;
		copy->to->processes[copy->to->n_processes - 1].end_ns = process->end_ns;
		copy->to->processes[copy->to->n_processes - 1].execed = process->execed;
		copy->to->processes[copy->to->n_processes - 1].run = copy->to_run;
	}
	for (size_t i = 0; i < copy->from->n_threads && !err; i++) {
		const struct profile_thread *thread = &copy->from->threads[i];
		__u32 process = copy->processes[thread->process - 1];

		if (process)
			err = profile__add_thread(copy->to, process, thread->name,
						  &copy->threads[i]);
	}
	return err;
}

static int copy_blocks(struct profile_copy *copy, const struct profile_count *count, __u32 id)
{
	struct profile_blocks blocks;

	if (!profile__count_blocks(copy->from, count, &blocks))
		return 0;
	blocks.count = id;
	return profile__add_blocks(copy->to, &blocks);
}

static int copy_samples(struct profile_copy *copy, const struct profile_count *count, __u32 id)
{
	const struct profile_samples *from = profile__count_samples(copy->from, count);
	struct profile_samples *to;
	int err = from ? profile__get_samples(copy->to, id, &to) : 0;

	if (!from || err)
		return err;
	*to = *from;
	to->count = id;
	return 0;
}

/* Translates the function of a defined source to the other profile. */
static int copy_function(struct profile_copy *copy, enum ap_function *function)
{
	const char *name = source_names__function(&copy->from->sources, *function);
	int known = source_names__take(&copy->to->sources, name);

	if (known < 0)
		return known;
	*function = known;
	return 0;
}

static int copy_counts(struct profile_copy *copy)
{
	struct profile_lifetime lifetime;
	__u32 at = 0;
	int err = 0;

	for (size_t i = 0; i < copy->from->n_counts && !err; i++) {
		const struct profile_count *count = &copy->from->counts[i];
		__u32 thread = copy->threads[count->thread - 1];
		enum ap_function function = count->function;

		if (!thread)
			continue;
		err = copy_function(copy, &function);
		if (!err)
			err = profile__add_count(copy->to, thread, copy->stacks[count->stack - 1],
						 function, count->calls, count->size_bytes,
						 &copy->counts[i]);
		if (!err)
			err = copy_blocks(copy, count, copy->counts[i]);
		if (!err)
			err = copy_samples(copy, count, copy->counts[i]);
	}
	while (!err && profile__next_lifetime(copy->from, &at, &lifetime)) {
		__u32 count = copy->counts[lifetime.count - 1];

		lifetime.count = count;
		if (count)
			err = profile__add_lifetime(copy->to, &lifetime);
	}
	return err;
}

static int copy_timeline(struct profile_copy *copy)
{
	int err = 0;

	for (size_t i = 0; i < copy->from->n_timeline && !err; i++) {
		struct profile_moment moment = copy->from->timeline[i];

		if (moment.run != copy->from_run)
			continue;
		moment.run = copy->to_run;
		err = profile__add_moment(copy->to, &moment);
	}
	return err;
}

static int make_room(struct profile_copy *copy)
{
	const struct profile *from = copy->from;
	const struct {
		__u32 **ids;
		size_t n;
	} arrays[] = {
		{ &copy->modules, from->n_modules }, { &copy->functions, from->n_functions },
		{ &copy->files, from->n_files },     { &copy->frames, from->n_frames },
		{ &copy->stacks, from->n_stacks },   { &copy->processes, from->n_processes },
		{ &copy->threads, from->n_threads }, { &copy->counts, from->n_counts },
	};

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		*arrays[i].ids = calloc(arrays[i].n + 1, sizeof(**arrays[i].ids));
		if (!*arrays[i].ids)
			return -ENOMEM;
	}
	return 0;
}

int profile_copy__run(struct profile_copy *copy)
{
	int err = make_room(copy);

	if (!err)
		err = copy_modules(copy);
	if (!err)
		err = copy_names(copy);
	if (!err)
		err = copy_stacks(copy);
	if (!err)
		err = copy_processes(copy);
	if (!err)
		err = copy_counts(copy);
	return err ? err : copy_timeline(copy);
}

int profile_copy__lines(struct profile *to, __u32 frame, const struct profile *from,
			const struct profile_frame *of)
{
	_cleanup_(free_ptr) struct profile_line *lines = calloc(of->n_lines + 1, sizeof(*lines));
	int err = lines ? 0 : -ENOMEM;

	for (__u32 i = 0; i < of->n_lines && !err; i++) {
		const struct profile_function *function =
			&from->functions[of->lines[i].function - 1];

		lines[i] = of->lines[i];
		err = profile__add_function(to, function->symbol, function->name,
					    function->full_name, &lines[i].function);
		if (!err && lines[i].file)
			err = profile__add_file(to, from->files[lines[i].file - 1].path,
						&lines[i].file);
	}
	return err ? err : profile__set_frame_lines(to, frame, lines, of->n_lines);
}
