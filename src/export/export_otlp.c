// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Writes OpenTelemetry's profiles (opentelemetry-proto 1.11, profiles/v1development): ProfilesData, which is the body of
 * an ExportProfilesServiceRequest as well. Each process is a resource with a profile for each type of its samples;
 * stacks, attributes and the tables of pprof_tables.h are shared by all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "control_group.h"
#include "export_internal.h"
#include "pprof_tables.h"
#include "stack_view.h"
#include "text.h"

enum {
	DATA_RESOURCE_PROFILES = 1,
	DATA_DICTIONARY = 2,
	DICTIONARY_LINK = 4,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	RESOURCE_ATTRIBUTES = 1,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	ANY_VALUE_STRING = 1,
	ANY_VALUE_INT = 3,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILES = 2,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME_UNIX_NANO = 3,
	PROFILE_DURATION_NANO = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	SAMPLE_STACK_INDEX = 1,
	SAMPLE_ATTRIBUTE_INDICES = 2,
	SAMPLE_VALUES = 4,
	MAPPING_ATTRIBUTE_INDICES = 5,
	STACK_LOCATION_INDICES = 1,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	LINK_TRACE_ID = 1,
	LINK_SPAN_ID = 2,
};

#define TYPES PPROF_SAMPLE_TYPES
/* The first type of which there is a number at a moment, and none of a span. */
#define FIRST_GAUGE PPROF_WITHOUT_LIVE

/* A sample has these attributes beside its stack. OpenTelemetry's conventions name some of them. */
enum attribute {
	ATTRIBUTE_THREAD,
	ATTRIBUTE_FUNCTION,
	ATTRIBUTE_TYPE,
	ATTRIBUTE_INCOMPLETE,
	ATTRIBUTES,
	ATTRIBUTE_BUILD_ID = ATTRIBUTES, /* of a file */
};

static const char *const attribute_keys[] = {
	[ATTRIBUTE_THREAD] = "thread.name",
	[ATTRIBUTE_FUNCTION] = "allocprof.function",
	[ATTRIBUTE_TYPE] = "allocprof.type",
	[ATTRIBUTE_INCOMPLETE] = "allocprof.incomplete",
	[ATTRIBUTE_BUILD_ID] = "process.executable.build_id.gnu",
};

/* An element of the table of attributes. */
struct pair {
	__u32 key;   /* enum attribute */
	__u32 value; /* a number of the values */
};

/* Numbers of locations, leaf first, in struct otlp's. */
struct otlp_stack {
	size_t first, n;
};

/* A row of a profile. Ids are indexes of tables; 0: none. */
struct otlp_sample {
	__u32 process, stack, attributes[ATTRIBUTES];
	__u64 values[TYPES];
};

struct otlp {
	const struct export_input *input;
	FILE *to;
	struct pprof_tables tables;
	struct string_ids values; /* of attributes */
	struct pair *pairs;
	size_t n_pairs, pairs_room;
	__u32 *locations;
	size_t n_locations, locations_room;
	struct otlp_stack *stacks;
	size_t n_stacks, stacks_room;
	struct hash_table pair_index, stack_index;
	__u64 seed;
	struct otlp_sample *samples;
	size_t n_samples;
	struct protobuf dictionary;
};

static bool match_pair(const void *owner, __u32 id, const void *key)
{
	return !memcmp(&((const struct otlp *)owner)->pairs[id - 1], key, sizeof(struct pair));
}

static int add_attribute(struct otlp *otlp, enum attribute key, const char *text, __u32 *id)
{
	struct pair pair = { .key = key };
	__u64 hash;
	int err;

	if (!text || !*text)
		return 0;
	err = string_ids__add(&otlp->values, text, &pair.value);
	if (err)
		return err;
	hash = hash_bytes(otlp->seed, &pair, sizeof(pair));
	*id = hash_table__find(&otlp->pair_index, hash, match_pair, otlp, &pair);
	if (*id)
		return 0;
	if (array__reserve(&otlp->pairs, &otlp->pairs_room, otlp->n_pairs + 1, sizeof(pair)) ||
	    hash_table__insert(&otlp->pair_index, hash, otlp->n_pairs + 1))
		return -ENOMEM;
	otlp->pairs[otlp->n_pairs++] = pair;
	*id = otlp->n_pairs;
	return 0;
}

static int add_to_mapping(struct pprof_tables *tables, const struct profile_module *module,
			  const struct pprof_mapping *mapping, struct protobuf *message)
{
	_cleanup_(protobuf__release) struct protobuf indexes = { 0 };
	__u32 id = 0;
	int err = add_attribute(tables->context, ATTRIBUTE_BUILD_ID, module->build_id, &id);

	(void)mapping;
	if (err || !id)
		return err;
	protobuf__append(&indexes, id);
	protobuf__add_message(message, MAPPING_ATTRIBUTE_INDICES, &indexes);
	return 0;
}

static const struct pprof_fields fields = {
	.mappings = 1,
	.locations = 2,
	.functions = 3,
	.strings = 5,
	.has_null = true,
	.location_mapping = 1,
	.location_address = 2,
	.location_lines = 3,
	.function_name = 1,
	.function_symbol = 2,
	.function_file = 3,
	.mapping_start = 1,
	.mapping_limit = 2,
	.mapping_file = 4,
	.add_to_mapping = add_to_mapping,
};

static bool match_stack(const void *owner, __u32 id, const void *key)
{
	const struct otlp *otlp = owner;
	const struct otlp_stack *stack = &otlp->stacks[id - 1], *sought = key;

	return stack->n == sought->n &&
	       !memcmp(otlp->locations + stack->first, otlp->locations + sought->first,
		       stack->n * sizeof(*otlp->locations));
}

/* Stores the number of the stack of which the locations from @first on are. */
static int number_stack(struct otlp *otlp, size_t first, __u32 *id)
{
	const struct otlp_stack stack = { first, otlp->n_locations - first };
	__u64 hash =
		hash_bytes(otlp->seed, otlp->locations + first, stack.n * sizeof(*otlp->locations));

	*id = hash_table__find(&otlp->stack_index, hash, match_stack, otlp, &stack);
	if (*id) {
		otlp->n_locations = first;
		return 0;
	}
	if (array__reserve(&otlp->stacks, &otlp->stacks_room, otlp->n_stacks + 1,
			   sizeof(*otlp->stacks)) ||
	    hash_table__insert(&otlp->stack_index, hash, otlp->n_stacks + 1))
		return -ENOMEM;
	otlp->stacks[otlp->n_stacks++] = stack;
	*id = otlp->n_stacks;
	return 0;
}

static int add_location(void *context, __u64 id)
{
	struct otlp *otlp = context;

	if (array__reserve(&otlp->locations, &otlp->locations_room, otlp->n_locations + 1,
			   sizeof(*otlp->locations)))
		return -ENOMEM;
	otlp->locations[otlp->n_locations++] = id;
	return 0;
}

static int make_sample(struct otlp *otlp, const struct export_sample *from, struct otlp_sample *to)
{
	const struct selection *selected = from->selected;
	size_t first = otlp->n_locations;
	int err = pprof_tables__each_location(&otlp->tables, from, add_location, otlp);

	*to = (struct otlp_sample){
		.process = from->count->process,
		.values = { selected->allocations, selected->size_bytes, selected->live,
			    selected->live_bytes },
	};
	if (!err)
		err = number_stack(otlp, first, &to->stack);
	if (!err)
		err = add_attribute(otlp, ATTRIBUTE_THREAD, from->thread,
				    &to->attributes[ATTRIBUTE_THREAD]);
	if (!err)
		err = add_attribute(otlp, ATTRIBUTE_FUNCTION, from->function,
				    &to->attributes[ATTRIBUTE_FUNCTION]);
	if (!err)
		err = add_attribute(otlp, ATTRIBUTE_TYPE, from->type,
				    &to->attributes[ATTRIBUTE_TYPE]);
	return err ? err
		   : add_attribute(otlp, ATTRIBUTE_INCOMPLETE, from->end,
				   &to->attributes[ATTRIBUTE_INCOMPLETE]);
}

static int compare_samples(const void *a, const void *b)
{
	const struct otlp_sample *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return memcmp(x->attributes, y->attributes, sizeof(x->attributes));
}

/* Makes the samples, sorted by process, those that are alike added up. */
static int make_samples(struct otlp *otlp)
{
	struct export_sample sample;
	size_t at = 0, n = 0, left = 0;
	int err = 0;

	otlp->samples = calloc(otlp->input->profile->n_counts + 1, sizeof(*otlp->samples));
	if (!otlp->samples)
		return -ENOMEM;
	while (!err && export__next(otlp->input, &at, &sample))
		err = make_sample(otlp, &sample, &otlp->samples[n++]);
	qsort(otlp->samples, n, sizeof(*otlp->samples), compare_samples);
	for (size_t i = 0; i < n; i++) {
		struct otlp_sample *last = left ? &otlp->samples[left - 1] : NULL;

		if (last && !compare_samples(last, &otlp->samples[i]))
			for (size_t type = 0; type < TYPES; type++)
				last->values[type] = profile__add_up(last->values[type],
								     otlp->samples[i].values[type]);
		else
			otlp->samples[left++] = otlp->samples[i];
	}
	otlp->n_samples = left;
	return err;
}

static void add_value_text(struct protobuf *message, unsigned int field, const char *text)
{
	_cleanup_(protobuf__release) struct protobuf value = { 0 };
	_cleanup_(free_ptr) char *clean = utf8__from_bytes(text);

	value.failed = !clean;
	if (clean)
		protobuf__add_bytes(&value, ANY_VALUE_STRING, clean, strlen(clean));
	protobuf__add_message(message, field, &value);
}

/* Adds an attribute of the resource; if @text is NULL its value is @number. */
static void add_resource_attribute(struct protobuf *resource, const char *key, const char *text,
				   __u64 number)
{
	_cleanup_(protobuf__release) struct protobuf pair = { 0 }, value = { 0 };

	protobuf__add_bytes(&pair, KEY_VALUE_KEY, key, strlen(key));
	if (text) {
		add_value_text(&pair, KEY_VALUE_VALUE, text);
	} else {
		protobuf__add(&value, ANY_VALUE_INT, number);
		protobuf__add_message(&pair, KEY_VALUE_VALUE, &value);
	}
	protobuf__add_message(resource, RESOURCE_ATTRIBUTES, &pair);
}

static bool is_given(const struct export_input *input, const char *key)
{
	for (size_t i = 0; i < input->n_attributes; i++)
		if (!strcmp(input->attributes[i].key, key))
			return true;
	return false;
}

static void add_resource(const struct otlp *otlp, const struct profile_process *process,
			 struct protobuf *message)
{
	const struct export_input *input = otlp->input;
	_cleanup_(protobuf__release) struct protobuf resource = { 0 };
	const char *container = process->group ? control_group__container(process->group) : NULL;
	char id[CONTAINER_ID_DIGITS + 1];
	const struct {
		const char *key, *text;
	} known[] = {
		{ "service.name", process->comm },
		{ "process.executable.name", process->comm },
		{ "process.linux.cgroup", process->group },
		{ "container.id", container ? id : NULL },
	};

	snprintf(id, sizeof(id), "%s", container ?: "");
	for (size_t i = 0; i < input->n_attributes; i++)
		add_resource_attribute(&resource, input->attributes[i].key,
				       input->attributes[i].value, 0);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].text && !is_given(input, known[i].key))
			add_resource_attribute(&resource, known[i].key, known[i].text, 0);
	if (!is_given(input, "process.pid"))
		add_resource_attribute(&resource, "process.pid", NULL, process->pid);
	protobuf__add_message(message, RESOURCE_PROFILES_RESOURCE, &resource);
}

static void add_sample(const struct otlp_sample *sample, size_t type, struct protobuf *profile)
{
	_cleanup_(protobuf__release) struct protobuf message = { 0 }, list = { 0 };

	protobuf__add(&message, SAMPLE_STACK_INDEX, sample->stack);
	for (size_t i = 0; i < ATTRIBUTES; i++)
		if (sample->attributes[i])
			protobuf__append(&list, sample->attributes[i]);
	if (list.size)
		protobuf__add_message(&message, SAMPLE_ATTRIBUTE_INDICES, &list);
	protobuf__append(&list, sample->values[type]);
	protobuf__add_message(&message, SAMPLE_VALUES, &list);
	protobuf__add_message(profile, PROFILE_SAMPLES, &message);
}

/* Adds when what is counted came. */
static void add_times(const struct export_input *input, size_t type, struct protobuf *profile)
{
	__u64 start_ns = export__start_ns(input), duration_ns = input->end_ns;

	if (input->taken_ns && type >= FIRST_GAUGE) {
		start_ns = input->taken_ns;
		duration_ns = 0;
	} else if (input->taken_ns) {
		duration_ns = input->duration_ns ?: input->taken_ns - start_ns;
		start_ns = input->taken_ns - duration_ns;
	}
	protobuf__add_fixed64(profile, PROFILE_TIME_UNIX_NANO, start_ns);
	protobuf__add(profile, PROFILE_DURATION_NANO, duration_ns);
}

/* Adds the profile of a type, unless it has no sample. */
static int add_profile(struct otlp *otlp, const struct otlp_sample *samples, size_t n, size_t type,
		       struct protobuf *scope)
{
	_cleanup_(protobuf__release) struct protobuf profile = { 0 };
	__u64 period = profile__sample_bytes(otlp->input->profile);
	bool is_empty = true;
	int err;

	for (size_t i = 0; i < n; i++) {
		if (!samples[i].values[type])
			continue;
		add_sample(&samples[i], type, &profile);
		is_empty = false;
	}
	if (is_empty)
		return 0;
	err = pprof_tables__value_type(&otlp->tables, &pprof_sample_types[type], &profile,
				       PROFILE_SAMPLE_TYPE);
	if (!err && period)
		err = pprof_tables__value_type(&otlp->tables, &pprof_period_type, &profile,
					       PROFILE_PERIOD_TYPE);
	protobuf__add(&profile, PROFILE_PERIOD, period);
	add_times(otlp->input, type, &profile);
	protobuf__add_message(scope, SCOPE_PROFILES_PROFILES, &profile);
	return err;
}

static int write_piece(struct protobuf *piece, void *context)
{
	struct otlp *otlp = context;
	size_t n = piece->size;

	if (piece->failed)
		return -ENOMEM;
	piece->size = 0;
	errno = 0;
	if (fwrite(piece->bytes, 1, n, otlp->to) != n)
		return errno ? -errno : -EIO;
	return 0;
}

/* Writes the profiles of one process, which has all @samples. */
static int write_process(struct otlp *otlp, const struct otlp_sample *samples, size_t n)
{
	_cleanup_(protobuf__release) struct protobuf scope = { 0 }, inner = { 0 }, message = { 0 },
						     piece = { 0 };
	size_t n_types = export__has_live(otlp->input) ? TYPES : FIRST_GAUGE;
	int err = 0;

	add_resource(otlp, &otlp->input->profile->processes[samples[0].process - 1], &message);
	protobuf__add_bytes(&inner, SCOPE_NAME, "allocprof", strlen("allocprof"));
	protobuf__add_bytes(&inner, SCOPE_VERSION, ALLOCPROF_VERSION, strlen(ALLOCPROF_VERSION));
	protobuf__add_message(&scope, SCOPE_PROFILES_SCOPE, &inner);
	/* Viewers show the first profile, if nothing else is asked for. */
	for (size_t type = n_types; type-- && !err;)
		err = add_profile(otlp, samples, n, type, &scope);
	protobuf__add_message(&message, RESOURCE_PROFILES_SCOPE_PROFILES, &scope);
	protobuf__add_message(&piece, DATA_RESOURCE_PROFILES, &message);
	return err ? err : write_piece(&piece, otlp);
}

/* Appends @piece to the dictionary, and empties it. */
static int keep_piece(struct protobuf *piece, void *context)
{
	struct otlp *otlp = context;

	protobuf__move(&otlp->dictionary, piece);
	return otlp->dictionary.failed ? -ENOMEM : 0;
}

static void keep_stacks(struct otlp *otlp)
{
	_cleanup_(protobuf__release) struct protobuf message = { 0 }, list = { 0 };

	protobuf__add_message(&otlp->dictionary, DICTIONARY_STACK, &message);
	for (size_t i = 0; i < otlp->n_stacks; i++) {
		const struct otlp_stack *stack = &otlp->stacks[i];

		for (size_t at = 0; at < stack->n; at++)
			protobuf__append(&list, otlp->locations[stack->first + at]);
		protobuf__add_message(&message, STACK_LOCATION_INDICES, &list);
		protobuf__add_message(&otlp->dictionary, DICTIONARY_STACK, &message);
	}
}

static int keep_attributes(struct otlp *otlp)
{
	_cleanup_(protobuf__release) struct protobuf message = { 0 };
	int err = 0;

	protobuf__add_message(&otlp->dictionary, DICTIONARY_ATTRIBUTE, &message);
	for (size_t i = 0; i < otlp->n_pairs && !err; i++) {
		const struct pair *pair = &otlp->pairs[i];
		__u64 key;

		err = pprof_tables__string(&otlp->tables, attribute_keys[pair->key], &key);
		protobuf__add(&message, ATTRIBUTE_KEY, err ? 0 : key);
		add_value_text(&message, ATTRIBUTE_VALUE, otlp->values.texts[pair->value - 1]);
		protobuf__add_message(&otlp->dictionary, DICTIONARY_ATTRIBUTE, &message);
	}
	return err;
}

/* No sample has a link, but the first one of the table has to be there. */
static void keep_link(struct otlp *otlp)
{
	_cleanup_(protobuf__release) struct protobuf message = { 0 };
	static const unsigned char none[16];

	protobuf__add_bytes(&message, LINK_TRACE_ID, none, 16);
	protobuf__add_bytes(&message, LINK_SPAN_ID, none, 8);
	protobuf__add_message(&otlp->dictionary, DICTIONARY_LINK, &message);
}

static int write_dictionary(struct otlp *otlp)
{
	_cleanup_(protobuf__release) struct protobuf piece = { 0 };
	int err;

	keep_link(otlp);
	keep_stacks(otlp);
	/* Files have attributes, and attributes have keys among the strings, which are written last. */
	err = pprof_tables__write_places(&otlp->tables, keep_piece, otlp);
	if (!err)
		err = keep_attributes(otlp);
	if (!err)
		err = pprof_tables__write_strings(&otlp->tables, keep_piece, otlp);
	if (err)
		return err;
	protobuf__add_message(&piece, DATA_DICTIONARY, &otlp->dictionary);
	return write_piece(&piece, otlp);
}

static void otlp__release(struct otlp *otlp)
{
	pprof_tables__release(&otlp->tables);
	string_ids__release(&otlp->values);
	hash_table__release(&otlp->pair_index);
	hash_table__release(&otlp->stack_index);
	protobuf__release(&otlp->dictionary);
	free(otlp->pairs);
	free(otlp->locations);
	free(otlp->stacks);
	free(otlp->samples);
}

int export_otlp__write(const struct export_input *input, FILE *to)
{
	struct otlp otlp = { .input = input, .to = to, .seed = hash_seed() };
	size_t n = 0;
	int err = pprof_tables__init(&otlp.tables, input, &fields);

	otlp.tables.context = &otlp;
	if (!err)
		err = make_samples(&otlp);
	for (size_t at = 0; at < otlp.n_samples && !err; at += n) {
		for (n = 1; at + n < otlp.n_samples &&
			    otlp.samples[at + n].process == otlp.samples[at].process;
		     n++)
			;
		err = write_process(&otlp, otlp.samples + at, n);
	}
	if (!err && otlp.n_samples)
		err = write_dictionary(&otlp);
	otlp__release(&otlp);
	return err;
}
