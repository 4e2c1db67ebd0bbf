// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes the tables of a thread in the Firefox Profiler's format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export_firefox.h"
#include "json.h"
#include "path.h"
#include "stack_view.h"

/* resourceTypes.library of src/profile-logic/data-structures.ts. */
#define RESOURCE_LIBRARY "1"
/* From this value on JavaScript's numbers are not exact. */
#define MAX_INTEGER	   (1ULL << 53)
#define CATEGORY_OTHER	   0
#define CATEGORY_ALLOCATOR 1

static int init_numbers(struct firefox_numbers *numbers, size_t n)
{
	numbers->of = malloc((n + 1) * sizeof(*numbers->of));
	numbers->used = malloc((n + 1) * sizeof(*numbers->used));
	if (!numbers->of || !numbers->used)
		return -ENOMEM;
	memset(numbers->of, 0xff, (n + 1) * sizeof(*numbers->of));
	return 0;
}

static void forget_numbers(struct firefox_numbers *numbers)
{
	while (numbers->n)
		numbers->of[numbers->used[--numbers->n]] = FIREFOX_NONE;
}

/* Numbers an id. Returns false if it had a number already. */
static bool number(struct firefox_numbers *numbers, __u32 id)
{
	if (numbers->of[id] != FIREFOX_NONE)
		return false;
	numbers->of[id] = numbers->n;
	numbers->used[numbers->n++] = id;
	return true;
}

int firefox__init_tables(struct firefox *firefox)
{
	int err = init_numbers(&firefox->frames, firefox->n_ids);

	if (!err)
		err = init_numbers(&firefox->funcs, firefox->n_funcs_at_most);
	if (!err)
		err = init_numbers(&firefox->modules, firefox->input->profile->n_modules);
	firefox->frame_of_func =
		malloc((firefox->n_funcs_at_most + 1) * sizeof(*firefox->frame_of_func));
	return err || !firefox->frame_of_func ? -ENOMEM : 0;
}

void firefox__release_tables(struct firefox *firefox)
{
	struct firefox_numbers *all[] = { &firefox->frames, &firefox->funcs, &firefox->modules };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		free(all[i]->of);
		free(all[i]->used);
	}
	free(firefox->frame_of_func);
	string_ids__release(&firefox->strings);
}

static const struct stack_location *location_of(const struct firefox *firefox, __u32 frame)
{
	return frame < firefox->first_function ? &firefox->input->view->locations[frame] : NULL;
}

static const struct profile_frame *profile_frame_of(const struct firefox *firefox, __u32 frame)
{
	const struct stack_location *location = location_of(firefox, frame);

	return location ? &firefox->input->profile->frames[location->frame - 1] : NULL;
}

static __u32 func_of(const struct firefox *firefox, __u32 frame)
{
	const struct stack_location *location = location_of(firefox, frame);

	return location ? location->label
			: firefox->input->view->n_labels + frame - firefox->first_function;
}

static const char *name_of(const struct firefox *firefox, __u32 frame)
{
	const struct stack_location *location = location_of(firefox, frame);

	if (location)
		return firefox->input->view->labels[location->label].text;
	if (frame == firefox->no_frame)
		return EXPORT_NO_FRAME;
	return definition_names__function(&firefox->input->profile->definitions,
					  frame - firefox->first_function);
}

/* Returns the frame's module; 0: it is unknown. */
static __u32 module_of(const struct firefox *firefox, __u32 frame)
{
	const struct profile_frame *of = profile_frame_of(firefox, frame);

	return of ? of->module : 0;
}

static const struct profile_line *line_of(const struct firefox *firefox, __u32 frame)
{
	return location_of(firefox, frame) ? export__line(firefox->input, frame) : NULL;
}

static bool is_function(const struct firefox *firefox, __u32 frame)
{
	return frame >= firefox->first_function && frame != firefox->no_frame;
}

static void visit_frame(struct firefox *firefox, __u32 frame, __u32 prefix)
{
	__u32 module = module_of(firefox, frame);

	(void)prefix;
	if (!number(&firefox->frames, frame))
		return;
	if (number(&firefox->funcs, func_of(firefox, frame)))
		firefox->frame_of_func[firefox->funcs.n - 1] = frame;
	if (module)
		number(&firefox->modules, module - 1);
}

static void visit_stack_frame(struct firefox *firefox, __u32 frame, __u32 prefix)
{
	(void)prefix;
	firefox__number(firefox, firefox->frames.of[frame]);
}

static void visit_prefix(struct firefox *firefox, __u32 frame, __u32 prefix)
{
	(void)frame;
	if (prefix == FIREFOX_NONE)
		firefox__null(firefox);
	else
		firefox__number(firefox, prefix);
}

static void visit_category(struct firefox *firefox, __u32 frame, __u32 prefix)
{
	(void)prefix;
	firefox__number(firefox, is_function(firefox, frame) ? CATEGORY_ALLOCATOR : CATEGORY_OTHER);
}

static void begin_table(struct firefox *firefox, const char *key, size_t length)
{
	fprintf(firefox->to, ",\n\"%s\":{\"length\":%zu", key, length);
	firefox->in_table = true;
}

static void end_table(struct firefox *firefox)
{
	fputc('}', firefox->to);
}

static void end_list(struct firefox *firefox)
{
	fputc(']', firefox->to);
}

static void print_stacks(struct firefox *firefox, const struct firefox_thread *thread)
{
	static const struct {
		const char *key;
		void (*visit)(struct firefox *firefox, __u32 frame, __u32 prefix);
	} columns[] = {
		{ "frame", visit_stack_frame },
		{ "prefix", visit_prefix },
		{ "category", visit_category },
	};
	__u32 n = firefox->n_stacks;

	begin_table(firefox, "stackTable", n);
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		firefox__list(firefox, columns[i].key);
		firefox__walk_all(firefox, thread, columns[i].visit);
		end_list(firefox);
	}
	firefox__same(firefox, "subcategory", n, "0");
	end_table(firefox);
}

static void print_frames(struct firefox *firefox)
{
	const struct firefox_numbers *frames = &firefox->frames;

	begin_table(firefox, "frameTable", frames->n);
	firefox__list(firefox, "address");
	for (size_t i = 0; i < frames->n; i++) {
		const struct profile_frame *frame = profile_frame_of(firefox, frames->used[i]);
		__u64 address = frame && frame->module ? export__address(frame) : UINT64_MAX;

		/* Addresses of the vsyscall page are too large for JavaScript's integers. */
		firefox__number(firefox, address < MAX_INTEGER ? (__s64)address : -1);
	}
	end_list(firefox);
	firefox__list(firefox, "inlineDepth");
	for (size_t i = 0; i < frames->n; i++) {
		const struct stack_location *location = location_of(firefox, frames->used[i]);
		const struct profile_frame *frame = profile_frame_of(firefox, frames->used[i]);

		firefox__number(firefox, location && location->line != STACK_NO_LINE
						 ? frame->n_lines - 1 - location->line
						 : 0);
	}
	end_list(firefox);
	firefox__list(firefox, "category");
	for (size_t i = 0; i < frames->n; i++)
		visit_category(firefox, frames->used[i], 0);
	end_list(firefox);
	firefox__list(firefox, "func");
	for (size_t i = 0; i < frames->n; i++)
		firefox__number(firefox, firefox->funcs.of[func_of(firefox, frames->used[i])]);
	end_list(firefox);
	firefox__list(firefox, "line");
	for (size_t i = 0; i < frames->n; i++) {
		const struct profile_line *line = line_of(firefox, frames->used[i]);

		if (line && line->line)
			firefox__number(firefox, line->line);
		else
			firefox__null(firefox);
	}
	end_list(firefox);
	firefox__same(firefox, "subcategory", frames->n, "0");
	firefox__same(firefox, "nativeSymbol", frames->n, "null");
	firefox__same(firefox, "innerWindowID", frames->n, "0");
	firefox__same(firefox, "implementation", frames->n, "null");
	firefox__same(firefox, "column", frames->n, "null");
	end_table(firefox);
}

static void print_string(struct firefox *firefox, const char *text)
{
	__u32 id = 0;

	if (!firefox->err)
		firefox->err = string_ids__add(&firefox->strings, text, &id);
	if (!firefox->err)
		firefox__number(firefox, id - 1);
}

static void print_funcs(struct firefox *firefox)
{
	const struct profile *profile = firefox->input->profile;
	size_t n = firefox->funcs.n;

	begin_table(firefox, "funcTable", n);
	firefox__list(firefox, "name");
	for (size_t i = 0; i < n; i++)
		print_string(firefox, name_of(firefox, firefox->frame_of_func[i]));
	end_list(firefox);
	firefox__list(firefox, "resource");
	for (size_t i = 0; i < n; i++) {
		__u32 module = module_of(firefox, firefox->frame_of_func[i]);

		firefox__number(firefox, module ? (__s64)firefox->modules.of[module - 1] : -1);
	}
	end_list(firefox);
	firefox__list(firefox, "fileName");
	for (size_t i = 0; i < n; i++) {
		const struct profile_line *line = line_of(firefox, firefox->frame_of_func[i]);

		if (line && line->file)
			print_string(firefox, profile->files[line->file - 1].path);
		else
			firefox__null(firefox);
	}
	end_list(firefox);
	firefox__same(firefox, "isJS", n, "false");
	firefox__same(firefox, "relevantForJS", n, "false");
	firefox__same(firefox, "lineNumber", n, "null");
	firefox__same(firefox, "columnNumber", n, "null");
	end_table(firefox);
}

static void print_resources(struct firefox *firefox)
{
	const struct firefox_numbers *modules = &firefox->modules;

	begin_table(firefox, "resourceTable", modules->n);
	firefox__list(firefox, "lib");
	for (size_t i = 0; i < modules->n; i++)
		firefox__number(firefox, modules->used[i]);
	end_list(firefox);
	firefox__list(firefox, "name");
	for (size_t i = 0; i < modules->n; i++)
		print_string(firefox,
			     path__name(firefox->input->profile->modules[modules->used[i]].path));
	end_list(firefox);
	firefox__same(firefox, "host", modules->n, "null");
	firefox__same(firefox, "type", modules->n, RESOURCE_LIBRARY);
	end_table(firefox);
}

static void print_stack_of(struct firefox *firefox, const struct firefox_sample *sample, __u64 n)
{
	__u32 stack = firefox__walk(firefox, sample, NULL);

	while (n--)
		firefox__number(firefox, stack);
}

static const struct selection *selection_of(const struct firefox *firefox,
					    const struct firefox_sample *sample)
{
	return &firefox->input->counts[sample->at];
}

/* Prints allocations as that many samples. */
static void print_samples(struct firefox *firefox, const struct firefox_thread *thread)
{
	begin_table(firefox, "samples", thread->n);
	fputs(",\"weightType\":\"samples\"", firefox->to);
	firefox__list(firefox, "stack");
	firefox->n_steps = firefox->n_stacks = 0;
	for (size_t i = 0; i < thread->n; i++)
		print_stack_of(firefox, &thread->samples[i], 1);
	end_list(firefox);
	firefox__list(firefox, "weight");
	for (size_t i = 0; i < thread->n; i++)
		firefox__number(firefox, selection_of(firefox, &thread->samples[i])->allocations);
	end_list(firefox);
	firefox__same(firefox, "time", thread->n, "0");
	end_table(firefox);
}

/*
 * The rows of a sample: bytes that stayed, bytes that were freed, and a third row that frees the
 * second. An address ties these two together; it is a number that nothing else has.
 */
struct rows {
	__u64 stayed, freed;
};

static struct rows rows_of(const struct firefox *firefox, const struct firefox_sample *sample)
{
	const struct selection *selected = selection_of(firefox, sample);
	__u64 freed =
		export__has_live(firefox->input) && selected->size_bytes > selected->live_bytes
			? selected->size_bytes - selected->live_bytes
			: 0;

	return (struct rows){ selected->size_bytes - freed, freed };
}

enum part {
	PART_STAYED,
	PART_FREED,
	PART_FREES,
	PARTS,
};

enum column {
	COLUMN_TIME,
	COLUMN_WEIGHT,
	COLUMN_STACK,
	COLUMN_ADDRESS,
	COLUMN_THREAD,
};

static void print_cell(struct firefox *firefox, const struct firefox_sample *sample,
		       enum column column, enum part part, __u64 bytes)
{
	switch (column) {
	case COLUMN_TIME:
		firefox__number(firefox,
				part == PART_FREES ? firefox->input->end_ns / NS_PER_MS : 0);
		break;
	case COLUMN_WEIGHT:
		firefox__number(firefox, part == PART_FREES ? -(__s64)bytes : (__s64)bytes);
		break;
	case COLUMN_STACK:
		print_stack_of(firefox, sample, 1);
		break;
	case COLUMN_ADDRESS:
		firefox__number(firefox, 2 * (__s64)sample->at + (part == PART_STAYED ? 1 : 2));
		break;
	case COLUMN_THREAD:
		firefox__number(firefox, sample->thread);
		break;
	}
}

static size_t print_column(struct firefox *firefox, const struct firefox_thread *thread,
			   const char *key, enum column column)
{
	size_t n = 0;

	if (key)
		firefox__list(firefox, key);
	/* Times must ascend, so the frees come last. */
	for (enum part part = 0; part < PARTS; part++) {
		firefox->n_steps = firefox->n_stacks = 0;
		for (size_t i = 0; i < thread->n; i++) {
			const struct firefox_sample *sample = &thread->samples[i];
			struct rows rows = rows_of(firefox, sample);
			__u64 bytes = part == PART_STAYED ? rows.stayed : rows.freed;

			/* Every sample is walked, so that its stacks get their numbers. */
			if (!bytes && column == COLUMN_STACK)
				firefox__walk(firefox, sample, NULL);
			if (!bytes)
				continue;
			n++;
			if (key)
				print_cell(firefox, sample, column, part, bytes);
		}
	}
	if (key)
		end_list(firefox);
	return n;
}

static void print_allocations(struct firefox *firefox, const struct firefox_thread *thread)
{
	begin_table(firefox, "nativeAllocations",
		    print_column(firefox, thread, NULL, COLUMN_WEIGHT));
	fputs(",\"weightType\":\"bytes\"", firefox->to);
	print_column(firefox, thread, "time", COLUMN_TIME);
	print_column(firefox, thread, "weight", COLUMN_WEIGHT);
	print_column(firefox, thread, "stack", COLUMN_STACK);
	/* Without addresses the viewer does not offer to show what stayed. */
	if (export__has_live(firefox->input)) {
		print_column(firefox, thread, "memoryAddress", COLUMN_ADDRESS);
		print_column(firefox, thread, "threadId", COLUMN_THREAD);
	}
	end_table(firefox);
}

static void print_empty(struct firefox *firefox, const char *key, const char *const *columns)
{
	begin_table(firefox, key, 0);
	for (; *columns; columns++)
		firefox__same(firefox, *columns, 0, "");
	end_table(firefox);
}

static void print_strings(struct firefox *firefox)
{
	fputs(",\n\"stringArray\":[", firefox->to);
	for (size_t i = 0; i < firefox->strings.n && !firefox->err; i++) {
		if (i)
			fputc(',', firefox->to);
		firefox->err = json__print_string(firefox->strings.texts[i], firefox->to);
	}
	fputc(']', firefox->to);
}

/* Returns whether the thread is the first of its process. */
static bool is_main(const struct profile *profile, const struct profile_thread *thread)
{
	return thread->id == 1 || profile->threads[thread->id - 2].process != thread->process;
}

static void print_head(struct firefox *firefox, const struct firefox_thread *of)
{
	const struct profile *profile = firefox->input->profile;
	const struct profile_thread *thread =
		of->n ? &profile->threads[of->samples->thread - 1] : NULL;
	const struct profile_process *process =
		thread ? &profile->processes[thread->process - 1] : NULL;

	fputs("{\"name\":", firefox->to);
	firefox->err = json__print_string(thread ? thread->name : "nothing", firefox->to);
	fputs(",\"processName\":", firefox->to);
	if (!firefox->err)
		firefox->err = json__print_string(process ? process->comm : "nothing", firefox->to);
	/* Programs of one process have the same number. */
	fprintf(firefox->to, ",\"pid\":\"%u", process ? process->pid : 0);
	if (process && process->parent &&
	    profile->processes[process->parent - 1].pid == process->pid)
		fprintf(firefox->to, "-%u", process->id);
	fprintf(firefox->to,
		"\",\"tid\":%u,\"isMainThread\":%s,\"processType\":\"default\","
		"\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
		"\"unregisterTime\":null,\"pausedRanges\":[]",
		thread ? thread->id : 0, !thread || is_main(profile, thread) ? "true" : "false");
}

void firefox__print_thread(struct firefox *firefox, const struct firefox_thread *thread)
{
	static const char *const markers[] = { "data",	"name",	    "startTime", "endTime",
					       "phase", "category", NULL };
	static const char *const symbols[] = { "libIndex", "address", "name", "functionSize",
					       NULL };

	print_head(firefox, thread);
	if (!firefox->err)
		firefox__walk_all(firefox, thread, visit_frame);
	if (firefox->err)
		return;
	print_stacks(firefox, thread);
	print_frames(firefox);
	print_funcs(firefox);
	print_resources(firefox);
	print_samples(firefox, thread);
	print_allocations(firefox, thread);
	print_empty(firefox, "markers", markers);
	print_empty(firefox, "nativeSymbols", symbols);
	print_strings(firefox);
	fputc('}', firefox->to);
	forget_numbers(&firefox->frames);
	forget_numbers(&firefox->funcs);
	forget_numbers(&firefox->modules);
	string_ids__release(&firefox->strings);
	firefox->strings = (struct string_ids){ 0 };
}
