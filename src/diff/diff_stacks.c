// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads profiles as stacks of names, with a cost on each side. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "diff_internal.h"
#include "filter.h"
#include "hash_table.h"
#include "list_sort.h"
#include "profile.h"
#include "stack_view.h"

struct diff_reader {
	struct diff *diff;
	const struct diff_input *inputs;
	struct diff_modules modules;
	struct hash_table name_index, stack_index; /* values are the index in the list plus 1 */
	__u64 seed;
	size_t names_room, frames_room, stacks_room;
};

/* The cost of a stack in one run. */
struct sample {
	__u32 stack, run;
	__u64 cost;
	double margin; /* margin of an estimated cost, else 0 */
};

/* State while a profile is read. */
struct reading {
	struct diff_reader *reader;
	const struct diff_input *input;
	const struct profile *profile;
	enum diff_side side;
	bool *is_same_build; /* by module: both profiles have the same build of the file */
	/* Indexes of names + 1, 0 until needed: by the view's labels, by the allocator's
	 * functions, and by ids of processes and threads. */
	__u32 *labels, *processes, *threads;
	__u32 functions[AP_FUNCTIONS];
	__u32 *frames; /* frames of the current stack */
	size_t frames_room;
	struct sample *samples; /* sorted by stack and run */
	size_t n_samples;
	__u32 *runs; /* numbers of the runs, ascending */
	size_t n_runs;
};

/* Makes room for @more elements. Fails if there would be more indexes than 32 bits hold, since
 * some start at 1. */
static int make_room(void *array, size_t *room, size_t n, size_t more, size_t size)
{
	return more >= UINT32_MAX - n ? -ENOMEM : array__reserve(array, room, n + more, size);
}

struct name_key {
	const char *module, *function;
};

static bool match_name(const void *owner, __u32 id, const void *key)
{
	const struct diff_reader *reader = owner;
	const struct name_key *wanted = key;
	const struct diff_name *name = &reader->diff->names[id - 1];

	return !strcmp(name->function, wanted->function) && !strcmp(name->module, wanted->module);
}

static int add_name(struct diff_reader *reader, const char *module, const char *function, __u32 *id)
{
	const struct name_key key = { module, function };
	__u64 hash = hash_string(hash_string(reader->seed, module), function);
	struct diff *diff = reader->diff;
	struct diff_name *name;
	int err;

	*id = hash_table__find(&reader->name_index, hash, match_name, reader, &key);
	if (*id)
		return 0;
	err = make_room(&diff->names, &reader->names_room, diff->n_names, 1, sizeof(*diff->names));
	if (!err)
		err = hash_table__insert(&reader->name_index, hash, diff->n_names + 1);
	if (err)
		return err;
	name = &diff->names[diff->n_names++];
	*name = (struct diff_name){ .function = strdup(function), .module = strdup(module) };
	*id = diff->n_names;
	return name->function && name->module ? 0 : -ENOMEM;
}

static const char *module_name(const struct reading *reading, __u32 module)
{
	const struct diff_modules *modules = &reading->reader->modules;

	return modules->modules[reading->side][modules->by_id[reading->side][module - 1]].name;
}

/*
 * Adds a frame. Unnamed code is called by its module or, if both sides have the same build of the
 * module, by its address.
 */
static int add_frame(struct reading *reading, const struct stack_label *label, __u32 *id)
{
	_cleanup_(free_ptr) char *text = NULL;
	const char *base;

	if (!label->module)
		return add_name(reading->reader, "", label->text, id);
	base = module_name(reading, label->module);
	if (reading->is_same_build[label->module - 1])
		return add_name(reading->reader, base, label->text, id);
	if (asprintf(&text, "[%s]", base) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return add_name(reading->reader, base, text, id);
}

static int label_name(struct reading *reading, __u32 index, __u32 *id)
{
	const struct stack_label *label = &reading->input->view->labels[index];
	const char *module = "";
	int err;

	if (reading->labels[index]) {
		*id = reading->labels[index];
		return 0;
	}
	if (label->module)
		module = module_name(reading, label->module);
	if (label->function)
		err = add_name(reading->reader, module, label->text, id);
	else
		err = add_frame(reading, label, id);
	if (!err)
		reading->labels[index] = *id;
	return err;
}

struct stack_key {
	const __u32 *frames;
	__u32 n_frames;
};

static bool match_stack(const void *owner, __u32 id, const void *key)
{
	const struct diff_reader *reader = owner;
	const struct stack_key *wanted = key;
	const struct diff_stack *stack = &reader->diff->stacks[id - 1];

	return stack->n_frames == wanted->n_frames &&
	       !memcmp(diff_stack__frames(reader->diff, stack), wanted->frames,
		       wanted->n_frames * sizeof(*wanted->frames));
}

static int add_stack(struct diff_reader *reader, const __u32 *frames, __u32 n_frames, __u32 *id)
{
	const struct stack_key key = { frames, n_frames };
	__u64 hash = hash_bytes(reader->seed, frames, n_frames * sizeof(*frames));
	struct diff *diff = reader->diff;
	int err;

	*id = hash_table__find(&reader->stack_index, hash, match_stack, reader, &key);
	if (*id)
		return 0;
	err = make_room(&diff->stacks, &reader->stacks_room, diff->n_stacks, 1,
			sizeof(*diff->stacks));
	if (!err)
		err = make_room(&diff->frames, &reader->frames_room, diff->n_frames, n_frames,
				sizeof(*diff->frames));
	if (!err)
		err = hash_table__insert(&reader->stack_index, hash, diff->n_stacks + 1);
	if (err)
		return err;
	memcpy(diff->frames + diff->n_frames, frames, n_frames * sizeof(*frames));
	diff->stacks[diff->n_stacks++] = (struct diff_stack){
		.first = diff->n_frames,
		.n_frames = n_frames,
	};
	diff->n_frames += n_frames;
	*id = diff->n_stacks;
	return 0;
}

/* Adds a name that belongs to no file, unless *@id is already set. */
static int plain_name(struct reading *reading, const char *name, __u32 *id)
{
	return *id ? 0 : add_name(reading->reader, "", name, id);
}

/* Adds the stack of @count, from the allocator's function to the process. */
static int count_stack(struct reading *reading, const struct profile_count *count, __u32 *id)
{
	const struct diff_options *options = &reading->reader->diff->options;
	const struct profile *profile = reading->profile;
	size_t n, at = 0;
	const __u32 *labels = stack_view__frames(reading->input->view, count->stack, &n);
	__u32 *names[] = { &reading->functions[count->function],
			   &reading->threads[count->thread - 1],
			   &reading->processes[count->process - 1] };
	int err;

	if (options->depth && options->depth < n)
		n = options->depth;
	err = array__reserve(&reading->frames, &reading->frames_room, n + 3, sizeof(*names[0]));
	if (!err)
		err = plain_name(reading,
				 definition_names__function(&profile->definitions, count->function),
				 names[0]);
	if (!err && options->by_thread)
		err = plain_name(reading, profile->threads[count->thread - 1].name, names[1]);
	if (!err && options->by_process)
		err = plain_name(reading,
				 profile_process__label(&profile->processes[count->process - 1]),
				 names[2]);
	if (err)
		return err;
	reading->frames[at++] = *names[0];
	for (size_t i = 0; i < n; i++) {
		err = label_name(reading, labels[i], &reading->frames[at++]);
		if (err)
			return err;
	}
	if (options->by_thread)
		reading->frames[at++] = *names[1];
	if (options->by_process)
		reading->frames[at++] = *names[2];
	return add_stack(reading->reader, reading->frames, at, id);
}

/* Stores the cost of @count that is compared. Returns false if it has none. */
static bool select_cost(const struct reading *reading, const struct profile_count *count,
			__u64 *cost, double *margin)
{
	enum cost kind = reading->reader->diff->options.cost;
	const struct profile_estimate *estimate;
	struct selection selection;

	if (profile__function_frees(count->function))
		return false;
	if (reading->input->counts)
		selection = reading->input->counts[count->id - 1];
	else
		filter__whole(reading->profile, NULL, count, &selection);
	*cost = cost__of(kind, &selection);
	estimate = cost__estimate(kind, &selection);
	*margin = estimate ? profile_estimate__margin(estimate, cost__is_bytes(kind)) : 0;
	return *cost || selection.allocations;
}

static int collect_samples(struct reading *reading)
{
	const struct profile *profile = reading->profile;
	struct diff *diff = reading->reader->diff;
	int err;

	diff->count_stacks[reading->side] =
		calloc(profile->n_counts + 1, sizeof(*diff->count_stacks[0]));
	reading->samples = calloc(profile->n_counts + 1, sizeof(*reading->samples));
	reading->labels = calloc(reading->input->view->n_labels + 1, sizeof(*reading->labels));
	reading->processes = calloc(profile->n_processes + 1, sizeof(*reading->processes));
	reading->threads = calloc(profile->n_threads + 1, sizeof(*reading->threads));
	if (!diff->count_stacks[reading->side] || !reading->samples || !reading->labels ||
	    !reading->processes || !reading->threads)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++) {
		const struct profile_count *count = &profile->counts[i];
		double margin;
		__u64 cost;
		__u32 id;

		if (!select_cost(reading, count, &cost, &margin))
			continue;
		err = count_stack(reading, count, &id);
		if (err)
			return err;
		diff->profiles[reading->side].n_stacks +=
			!diff->stacks[id - 1].is_in[reading->side];
		diff->stacks[id - 1].is_in[reading->side] = true;
		diff->count_stacks[reading->side][i] = id;
		reading->samples[reading->n_samples++] = (struct sample){
			.stack = id,
			.run = profile->processes[count->process - 1].run,
			.cost = cost,
			.margin = margin,
		};
	}
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	__u32 left = *(const __u32 *)a, right = *(const __u32 *)b;

	return left < right ? -1 : left > right;
}

static int compare_u64(const void *a, const void *b)
{
	__u64 left = *(const __u64 *)a, right = *(const __u64 *)b;

	return left < right ? -1 : left > right;
}

static int compare_samples(const void *left, const void *right)
{
	const struct sample *a = left, *b = right;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->run < b->run ? -1 : a->run > b->run;
}

static int find_runs(struct reading *reading)
{
	const struct profile *profile = reading->profile;
	size_t n = 0;

	reading->runs = calloc(profile->n_processes + profile->n_runs + 1, sizeof(*reading->runs));
	if (!reading->runs)
		return -ENOMEM;
	/* A run may have allocated nothing. */
	for (size_t i = 0; i < profile->n_runs; i++)
		reading->runs[reading->n_runs++] = i + 1;
	if (reading->n_runs)
		return 0;
	for (size_t i = 0; i < profile->n_processes; i++)
		reading->runs[i] = profile->processes[i].run;
	qsort(reading->runs, profile->n_processes, sizeof(*reading->runs), compare_u32);
	for (size_t i = 0; i < profile->n_processes; i++) {
		if (!i || reading->runs[i] != reading->runs[i - 1])
			reading->runs[n++] = reading->runs[i];
	}
	reading->n_runs = n;
	return 0;
}

__u64 diff__add_up(struct diff *diff, __u64 a, __u64 b)
{
	if (a + b > PROFILE_MAX)
		diff->is_cut = true;
	return profile__add_up(a, b);
}

/* Returns the median of @n sorted values and @n_zeros zeros in front of them; of two middle values
 * the lower one, so that it is the value of some run. */
static struct diff_cost median_of(const __u64 *values, size_t n, size_t n_zeros)
{
	size_t middle = (n + n_zeros - 1) / 2;

	return (struct diff_cost){
		.median = middle < n_zeros ? 0 : values[middle - n_zeros],
		.min = n_zeros ? 0 : values[0],
		.max = values[n - 1],
	};
}

/* Returns the cost of a stack from its @samples, which are sorted by run, and adds it to the runs'
 * totals. */
static struct diff_cost sum_stack(struct reading *reading, const struct sample *samples, size_t n,
				  __u64 *values, __u64 *totals)
{
	struct diff *diff = reading->reader->diff;
	size_t n_values = 0;

	for (size_t i = 0; i < n;) {
		__u64 cost = 0;
		__u32 run = samples[i].run, *at;

		for (; i < n && samples[i].run == run; i++)
			cost = diff__add_up(diff, cost, samples[i].cost);
		at = bsearch(&run, reading->runs, reading->n_runs, sizeof(run), compare_u32);
		totals[at - reading->runs] = diff__add_up(diff, totals[at - reading->runs], cost);
		values[n_values++] = cost;
	}
	qsort(values, n_values, sizeof(*values), compare_u64);
	return median_of(values, n_values, reading->n_runs - n_values);
}

/* Widens the cost of a sampled run to its confidence interval; samples are independent. */
static void widen(struct diff_cost *cost, const struct sample *samples, size_t n)
{
	double squares = 0, margin;

	for (size_t i = 0; i < n; i++)
		squares += samples[i].margin * samples[i].margin;
	margin = sqrt(squares);
	cost->min = margin < cost->median ? cost->median - (__u64)margin : 0;
	cost->max = profile__add_up(cost->median,
				    margin < (double)PROFILE_MAX ? (__u64)margin : PROFILE_MAX);
}

static __u64 times(__u64 value, double factor)
{
	double product = value * factor + 0.5;

	return product < (double)PROFILE_MAX ? (__u64)product : PROFILE_MAX;
}

static void scale(struct diff_cost *cost, double factor)
{
	cost->median = times(cost->median, factor);
	cost->min = times(cost->min, factor);
	cost->max = times(cost->max, factor);
}

static int sum_samples(struct reading *reading)
{
	_cleanup_(free_ptr) __u64 *values = calloc(reading->n_runs + 1, sizeof(*values));
	_cleanup_(free_ptr) __u64 *totals = calloc(reading->n_runs + 1, sizeof(*totals));
	struct diff *diff = reading->reader->diff;
	struct diff_profile *to = &diff->profiles[reading->side];
	double factor = reading->side == DIFF_BEFORE ? diff->options.before_times : 0;
	struct diff_cost total = { 0 };
	__u64 sum = 0;

	if (!values || !totals)
		return -ENOMEM;
	to->is_sampled = reading->n_runs == 1 && profile__sample_bytes(reading->profile);
	qsort(reading->samples, reading->n_samples, sizeof(*reading->samples), compare_samples);
	for (size_t i = 0, n; i < reading->n_samples; i += n) {
		const struct sample *samples = &reading->samples[i];
		struct diff_cost *cost = &diff->stacks[samples->stack - 1].costs[reading->side];

		for (n = 1; i + n < reading->n_samples && samples[n].stack == samples->stack;)
			n++;
		*cost = sum_stack(reading, samples, n, values, totals);
		if (to->is_sampled)
			widen(cost, samples, n);
		if (factor)
			scale(cost, factor);
		sum = diff__add_up(diff, sum, cost->median);
	}
	qsort(totals, reading->n_runs, sizeof(*totals), compare_u64);
	if (reading->n_runs)
		total = median_of(totals, reading->n_runs, 0);
	if (to->is_sampled)
		widen(&total, reading->samples, reading->n_samples);
	if (factor)
		scale(&total, factor);
	/* Multiplied costs are rounded, so their sum may differ from the multiplied total. */
	if (factor && reading->n_runs == 1) {
		total.median = sum;
		if (!to->is_sampled)
			total.min = total.max = sum;
	}
	to->n_runs = reading->n_runs;
	to->total = total.median;
	to->min = total.min;
	to->max = total.max;
	diff->between_runs[reading->side] = to->total - sum;
	return 0;
}

static bool match_module(const void *owner, __u32 id, const void *key)
{
	const struct profile *profile = owner;
	const struct profile_module *wanted = key, *module = &profile->modules[id - 1];

	return !strcmp(module->build_id, wanted->build_id) &&
	       !strcmp(profile_module__basename(module), profile_module__basename(wanted));
}

static __u64 hash_module(const struct diff_reader *reader, const struct profile_module *module)
{
	return hash_string(hash_string(reader->seed, module->build_id),
			   profile_module__basename(module));
}

static int find_same_builds(struct reading *reading)
{
	const struct diff_reader *reader = reading->reader;
	const struct profile *other = reader->inputs[!reading->side].profile;
	struct hash_table index = { 0 };
	int err = 0;

	reading->is_same_build =
		calloc(reading->profile->n_modules + 1, sizeof(*reading->is_same_build));
	if (!reading->is_same_build)
		return -ENOMEM;
	for (size_t i = 0; i < other->n_modules && !err; i++) {
		if (*other->modules[i].build_id)
			err = hash_table__insert(&index, hash_module(reader, &other->modules[i]),
						 i + 1);
	}
	for (size_t i = 0; i < reading->profile->n_modules && !err; i++) {
		const struct profile_module *module = &reading->profile->modules[i];

		reading->is_same_build[i] =
			*module->build_id && hash_table__find(&index, hash_module(reader, module),
							      match_module, other, module);
	}
	hash_table__release(&index);
	return err;
}

static int read_profile(struct diff_reader *reader, enum diff_side side)
{
	struct reading reading = {
		.reader = reader,
		.input = &reader->inputs[side],
		.profile = reader->inputs[side].profile,
		.side = side,
	};
	int err = find_same_builds(&reading);

	if (!err)
		err = find_runs(&reading);
	if (!err)
		err = collect_samples(&reading);
	if (!err)
		err = sum_samples(&reading);
	free(reading.is_same_build);
	free(reading.labels);
	free(reading.processes);
	free(reading.threads);
	free(reading.frames);
	free(reading.samples);
	free(reading.runs);
	if (!err && reading.input->release)
		reading.input->release(reading.input->context);
	return err;
}

static __u32 frame_at(const void *owner, __u32 stack, size_t at)
{
	const struct diff *diff = owner;

	return at < diff->stacks[stack].n_frames
		       ? diff_stack__frames(diff, &diff->stacks[stack])[at]
		       : UINT32_MAX;
}

static int rank_stacks(struct diff *diff)
{
	_cleanup_(free_ptr) __u32 *order = calloc(diff->n_stacks + 1, sizeof(*order));
	int err;

	diff->ranks = calloc(diff->n_stacks + 1, sizeof(*diff->ranks));
	if (!order || !diff->ranks)
		return -ENOMEM;
	for (size_t i = 0; i < diff->n_stacks; i++)
		order[i] = i;
	err = list_sort(order, diff->n_stacks, frame_at, diff);
	for (size_t i = 0; i < diff->n_stacks && !err; i++)
		diff->ranks[order[i]] = i;
	return err;
}

int diff__read_stacks(struct diff *diff, const struct diff_input inputs[DIFF_SIDES])
{
	struct diff_reader reader = {
		.diff = diff,
		.inputs = inputs,
		.seed = hash_seed(),
	};
	int err = diff_modules__match(&reader.modules, inputs);

	for (int side = 0; side < DIFF_SIDES && !err; side++)
		err = read_profile(&reader, side);
	if (!err)
		err = diff__order_names(diff);
	if (!err)
		err = rank_stacks(diff);
	diff_modules__release(&reader.modules);
	hash_table__release(&reader.name_index);
	hash_table__release(&reader.stack_index);
	return err;
}
