// SPDX-License-Identifier: GPL-3.0-or-later
/* Removes V8's mark of the compiler from the name of a JavaScript function. */
#include "stack_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "block_type.h"
#include "cleanup.h"
#include "hash_table.h"
#include "path.h"
#include "profile.h"
#include "wrappers.h"

char *js_tier__remove(const char *name)
{
	/* V8 marks the names of these kinds. RegExp: is not among them, since an expression may
	 * begin with the same characters as a mark. */
	static const char *const kinds[] = { "JS:", "Eval:", "Script:", "Function:",
					     "LazyCompile:" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);
		char *text;

		if (strncmp(name, kinds[i], len))
			continue;
		if (!name[len] || !strchr("~^+*", name[len]))
			return NULL;
		/* A quote follows where the code is for one context. */
		return asprintf(&text, "%s%s", kinds[i], name + len + 1 + (name[len + 1] == '\'')) <
				       0
			       ? NULL
			       : text;
	}
	return NULL;
}

/* A line of a frame, and the label that shows it. */
struct view_location {
	__u32 label;
	bool is_wrapper, is_library;
};

struct builder {
	const struct profile *profile;
	const struct stack_view_options *options;
	struct stack_view *view;
	size_t labels_room;
	struct hash_table index; /* labels: index + 1 */
	__u64 seed;
	struct view_location *locations;
	size_t n_locations;
	size_t *starts; /* by frame's id - 1: index of its first location; one more ends the last */
	struct block_types *types;
	struct hash_table type_index; /* of names of types: index + 1 */
	size_t type_names_room;
};

static bool match_label(const void *owner, __u32 id, const void *key)
{
	const struct stack_label *label = &((const struct stack_view *)owner)->labels[id - 1];
	const struct stack_label *wanted = key;

	return label->module == wanted->module && label->inlined == wanted->inlined &&
	       (!wanted->has_kind || label->kind == wanted->kind) &&
	       !strcmp(label->text, wanted->text);
}

/* Adds a label and takes over @wanted's text; NULL means -ENOMEM. */
static int add_label(struct builder *builder, const struct stack_label *wanted, __u32 *at)
{
	struct stack_view *view = builder->view;
	_cleanup_(free_ptr) char *text = wanted->text;
	__u64 hash;
	__u32 found;

	if (!text)
		return -ENOMEM;
	hash = hash_mix(hash_string(builder->seed, text), wanted->module << 1 | wanted->inlined);
	found = hash_table__find(&builder->index, hash, match_label, view, wanted);
	if (found) {
		*at = found - 1;
		/* Not all of a function's frames have lines, which tell more. */
		if (view->labels[*at].kind == FRAME_KIND_OWN)
			view->labels[*at].kind = wanted->kind;
		return 0;
	}
	if (array__reserve(&view->labels, &builder->labels_room, view->n_labels + 1,
			   sizeof(*view->labels)))
		return -ENOMEM;
	if (hash_table__insert(&builder->index, hash, view->n_labels + 1))
		return -ENOMEM;
	*at = view->n_labels;
	view->labels[view->n_labels++] = *wanted;
	text = NULL;
	return 0;
}

static char *text_of_location(const struct builder *builder, const struct profile_frame *frame)
{
	const struct profile_module *module;
	char *text;

	if (!frame->module)
		return strdup("[unknown]");
	module = &builder->profile->modules[frame->module - 1];
	return asprintf(&text, builder->options->addresses ? "%s+0x%llx" : "[%s+0x%llx]",
			profile_module__basename(module), frame->offset) < 0
		       ? NULL
		       : text;
}

static char *text_of_line(const struct builder *builder, const char *name,
			  const struct profile_line *line)
{
	const char *file;
	char *text;
	int len;

	if (!builder->options->lines || !line->file)
		return strdup(name);
	file = path__name(builder->profile->files[line->file - 1].path);
	if (line->line)
		len = asprintf(&text, "%s (%s:%u)", name, file, line->line);
	else
		len = asprintf(&text, "%s (%s)", name, file);
	return len < 0 ? NULL : text;
}

/* Adds a mark to the text. Takes over @text, which may be NULL. */
static char *mark(char *text, const char *what)
{
	char *marked;
	int len = text ? asprintf(&marked, "%s [%s]", text, what) : -1;

	free(text);
	return len < 0 ? NULL : marked;
}

static const char *name_of(const struct builder *builder, const struct profile_line *line)
{
	const struct profile_function *function = &builder->profile->functions[line->function - 1];

	switch (builder->options->names) {
	case STACK_NAMES_FULL:
		return function->full_name;
	case STACK_NAMES_LINKED:
		return function->symbol;
	case STACK_NAMES_SIMPLE:
		break;
	}
	return function->name;
}

static void look_up(const struct builder *builder, const struct profile_frame *frame,
		    const struct profile_line *line, struct view_location *location)
{
	const struct profile *profile = builder->profile;
	const struct wrappers *wrappers = builder->options->wrappers;
	const char *name, *module;

	if (!wrappers || !line->function)
		return;
	name = profile->functions[line->function - 1].name;
	module = frame->module ? profile->modules[frame->module - 1].path : NULL;
	location->is_wrapper = wrappers__hides(wrappers, name, module);
	location->is_library = wrappers__folds(wrappers, name, module);
}

static enum frame_kind kind_of(const struct builder *builder, const struct profile_frame *frame,
			       const struct profile_line *line,
			       const struct view_location *location)
{
	const struct profile *profile = builder->profile;
	struct frame_code code = {
		.name = line->function ? profile->functions[line->function - 1].name : "",
		.module = frame->module ? profile->modules[frame->module - 1].path : NULL,
		.source = line->file ? profile->files[line->file - 1].path : NULL,
		.is_internal = location->is_wrapper || location->is_library,
	};

	return frame_kind__of(&code);
}

static int add_line(struct builder *builder, const struct profile_frame *frame,
		    const struct profile_line *line)
{
	struct view_location *location = &builder->locations[builder->n_locations];
	struct stack_label label = { .module = frame->module, .inlined = line->inlined };
	const char *name = line->function ? name_of(builder, line) : "";
	_cleanup_(free_ptr) char *function = NULL;
	int err;

	/* Functions compiled by several compilers are one, unless stacks are shown as they are. */
	if (!builder->options->all_frames && builder->options->names != STACK_NAMES_LINKED)
		function = js_tier__remove(name);
	if (function)
		name = function;
	if (!*name || builder->options->addresses) {
		label.text = text_of_location(builder, frame);
	} else {
		label.text = text_of_line(builder, name, line);
		label.function = line->function;
	}
	if (frame->tail_call && builder->options->all_frames)
		label.text = mark(label.text, "tail call");
	if (frame->place == PROFILE_PLACE_AWAITING)
		label.text = mark(label.text, "async");
	look_up(builder, frame, line, location);
	label.kind = kind_of(builder, frame, line, location);
	label.has_kind = frame->module && !strcmp(builder->profile->modules[frame->module - 1].path,
						  PROFILE_PYTHON_MODULE);
	err = add_label(builder, &label, &location->label);
	if (!err && builder->view->locations)
		builder->view->locations[builder->n_locations] = (struct stack_location){
			.frame = frame->id,
			.line = frame->n_lines ? line - frame->lines : STACK_NO_LINE,
			.label = location->label,
		};
	builder->n_locations++;
	return err;
}

/* Returns how many of @frame's lines are printed, counted from the last. */
static __u32 count_lines(const struct builder *builder, const struct profile_frame *frame)
{
	bool one = builder->options->no_inline || builder->options->addresses;

	return one && frame->n_lines ? 1 : frame->n_lines;
}

static int add_frames(struct builder *builder)
{
	static const struct profile_line no_line;
	const struct profile *profile = builder->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->n_frames; i++)
		n += count_lines(builder, &profile->frames[i]) ?: 1;
	builder->locations = calloc(n + 1, sizeof(*builder->locations));
	builder->starts = calloc(profile->n_frames + 1, sizeof(*builder->starts));
	if (builder->options->with_locations)
		builder->view->locations = calloc(n + 1, sizeof(*builder->view->locations));
	if (!builder->locations || !builder->starts ||
	    (builder->options->with_locations && !builder->view->locations))
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		__u32 n_lines = count_lines(builder, frame);
		int err = n_lines ? 0 : add_line(builder, frame, &no_line);

		for (__u32 j = frame->n_lines - n_lines; j < frame->n_lines && !err; j++)
			err = add_line(builder, frame, &frame->lines[j]);
		if (err)
			return err;
		builder->starts[i + 1] = builder->n_locations;
	}
	builder->view->n_locations = builder->n_locations;
	return 0;
}

static size_t count_locations(const struct builder *builder, const struct profile_stack *stack)
{
	size_t n = 0;

	for (__u32 i = 0; i < stack->n_frames; i++)
		n += builder->starts[stack->frames[i]] - builder->starts[stack->frames[i] - 1];
	return n;
}

/* Writes the labels of a stack. Returns their number; it is also that of the locations, unless
 * @locations is NULL. */
static size_t add_stack(const struct builder *builder, const struct profile_stack *stack,
			__u32 *labels, __u32 *locations)
{
	bool within_wrappers = !builder->options->all_frames, within_library = false;
	size_t n = 0;

	for (__u32 i = 0; i < stack->n_frames; i++) {
		size_t at = builder->starts[stack->frames[i] - 1];

		for (; at < builder->starts[stack->frames[i]]; at++) {
			const struct view_location *location = &builder->locations[at];

			/* The next frame replaces a wrapper; the last wrapper stays if nothing
			 * follows. */
			if (within_wrappers)
				n = 0;
			else if (within_library && location->is_library)
				n--;
			within_wrappers = within_wrappers && location->is_wrapper;
			within_library = location->is_library && !builder->options->all_frames;
			if (locations)
				locations[n] = at;
			labels[n++] = location->label;
		}
	}
	return n;
}

static bool match_type(const void *owner, __u32 id, const void *key)
{
	return !strcmp(((const struct stack_view *)owner)->type_names[id - 1].name, key);
}

/* Adds the name of a type, or of the program's own function where the type is not known. */
static int add_type_name(struct builder *builder, const char *type, const struct view_location *own,
			 __u32 *at)
{
	struct stack_view *view = builder->view;
	_cleanup_(free_ptr) char *name = NULL;
	__u64 hash;
	int err;

	if (type)
		name = strdup(type);
	else if (asprintf(&name, "[in %s]", own ? view->labels[own->label].text : "unknown") < 0)
		name = NULL;
	if (!name || array__reserve(&view->type_names, &builder->type_names_room,
				    view->n_type_names + 1, sizeof(*view->type_names)))
		return -ENOMEM;
	hash = hash_string(builder->seed, name);
	*at = hash_table__find(&builder->type_index, hash, match_type, view, name);
	if (*at) {
		--*at;
		return 0;
	}
	err = hash_table__insert(&builder->type_index, hash, view->n_type_names + 1);
	if (err)
		return err;
	*at = view->n_type_names;
	view->type_names[view->n_type_names++] = (struct stack_type){ name, type };
	name = NULL;
	return 0;
}

/* Looks up the type of what @stack allocates. */
static int add_type(struct builder *builder, const struct profile_stack *stack)
{
	const struct view_location *own = NULL;
	const char *type;
	int err = block_types__of_stack(builder->types, stack, &type);

	for (__u32 i = 0; i < stack->n_frames && !own; i++) {
		size_t at = builder->starts[stack->frames[i] - 1];

		for (; at < builder->starts[stack->frames[i]] && !own; at++)
			if (!builder->locations[at].is_wrapper &&
			    !builder->locations[at].is_library)
				own = &builder->locations[at];
	}
	return err ?: add_type_name(builder, type, own, &builder->view->types[stack->id - 1]);
}

static int add_types(struct builder *builder)
{
	const struct profile *profile = builder->profile;
	int err = 0;

	builder->types = block_types__new(profile);
	builder->view->types = calloc(profile->n_stacks + 1, sizeof(*builder->view->types));
	if (!builder->types || !builder->view->types)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_stacks && !err; i++)
		err = add_type(builder, &profile->stacks[i]);
	return err;
}

/* Makes labels of the types if they are to be shown. */
static int label_types(struct builder *builder, __u32 *labels)
{
	const struct stack_view *view = builder->view;
	int err = 0;

	for (size_t i = 0; view->shown_types != STACK_TYPES_NONE && i < view->n_type_names && !err;
	     i++)
		err = add_label(
			builder,
			&(struct stack_label){ .text = strdup(view->type_names[i].name),
					       .kind = frame_kind__of(&(struct frame_code){
						       .name = view->type_names[i].name }) },
			&labels[i]);
	return err;
}

static int add_stacks(struct builder *builder)
{
	const struct profile *profile = builder->profile;
	struct stack_view *view = builder->view;
	_cleanup_(free_ptr) __u32 *labels = calloc(view->n_type_names + 1, sizeof(*labels));
	size_t n = 0;
	int err;

	for (size_t i = 0; i < profile->n_stacks; i++)
		n += count_locations(builder, &profile->stacks[i]) + 1;
	view->frames = calloc(n + 1, sizeof(*view->frames));
	view->starts = calloc(profile->n_stacks + 1, sizeof(*view->starts));
	view->innermost = calloc(profile->n_stacks + 1, sizeof(*view->innermost));
	if (view->locations)
		view->frame_locations = calloc(n + 1, sizeof(*view->frame_locations));
	if (!labels || !view->frames || !view->starts || !view->innermost ||
	    (view->locations && !view->frame_locations))
		return -ENOMEM;
	view->shown_types = builder->options->types;
	err = label_types(builder, labels);
	if (err)
		return err;
	for (size_t i = 0; i < profile->n_stacks; i++) {
		size_t start = view->starts[i];

		view->starts[i + 1] =
			start + add_stack(builder, &profile->stacks[i], view->frames + start,
					  view->locations ? view->frame_locations + start : NULL);
		if (view->starts[i + 1] > start)
			view->innermost[i] = view->frames[start] + 1;
		if (view->shown_types == STACK_TYPES_ONLY)
			view->starts[i + 1] = start;
		if (view->shown_types != STACK_TYPES_NONE)
			view->frames[view->starts[i + 1]++] = labels[view->types[i]];
	}
	return 0;
}

int stack_view__new(const struct profile *profile, const struct stack_view_options *options,
		    struct stack_view **out)
{
	struct builder builder = { .profile = profile, .options = options, .seed = hash_seed() };
	int err = -ENOMEM;

	builder.view = calloc(1, sizeof(*builder.view));
	if (builder.view)
		err = add_frames(&builder);
	if (!err)
		err = add_types(&builder);
	if (!err)
		err = add_stacks(&builder);
	hash_table__release(&builder.index);
	block_types__free(builder.types);
	hash_table__release(&builder.type_index);
	free(builder.locations);
	free(builder.starts);
	if (err)
		stack_view__free(builder.view);
	else
		*out = builder.view;
	return err;
}

void stack_view__free(struct stack_view *view)
{
	if (!view)
		return;
	for (size_t i = 0; i < view->n_labels; i++)
		free(view->labels[i].text);
	free(view->labels);
	free(view->frames);
	free(view->starts);
	free(view->locations);
	free(view->frame_locations);
	for (size_t i = 0; i < view->n_type_names; i++)
		free(view->type_names[i].name);
	free(view->type_names);
	free(view->types);
	free(view->innermost);
	free(view);
}

const char *stack_view__type(const struct stack_view *view, __u32 stack)
{
	const struct stack_type *type = &view->type_names[view->types[stack - 1]];

	return type->is_known ? type->name : NULL;
}

bool stack_view__knows_types(const struct stack_view *view)
{
	for (size_t i = 0; i < view->n_type_names; i++)
		if (view->type_names[i].is_known)
			return true;
	return false;
}

const __u32 *stack_view__frames(const struct stack_view *view, __u32 stack, size_t *n_frames)
{
	*n_frames = view->starts[stack] - view->starts[stack - 1];
	return view->frames + view->starts[stack - 1];
}

const __u32 *stack_view__locations(const struct stack_view *view, __u32 stack, size_t *n_frames)
{
	*n_frames = view->starts[stack] - view->starts[stack - 1];
	return view->frame_locations + view->starts[stack - 1];
}
