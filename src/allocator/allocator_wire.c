// SPDX-License-Identifier: GPL-3.0-or-later
/* Allocators as bytes: a worker finds them in a file, and this process checks what it says of it. */
#include "allocator_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allocator_internal.h"
#include "array.h"
#include "executable_parts.h"
#include "sources.h"
#include "usdt_source.h"
#include "wire.h"

/* By name, since places of structs differ. */
#define FOR_EACH_FLAG(site, do)                                                                    \
	do                                                                                         \
		((site)->emulated);                                                                \
	do                                                                                         \
		((site)->is_own);                                                                  \
	do                                                                                         \
		((site)->throws);                                                                  \
	do                                                                                         \
		((site)->may_jump);                                                                \
	do                                                                                         \
		((site)->must_jump);

static __u32 number_of(const struct interface_function *interface, const struct source *source)
{
	for (size_t i = 0; source && i < source->n_functions; i++)
		if (interface == &source->functions[i].interface)
			return i;
	return interface_function__number(interface);
}

static void put_array(struct wire_writer *to, const __u64 *array, size_t n)
{
	wire__put_u64(to, n);
	wire__put_bytes(to, array, n * sizeof(*array));
}

static void put_site(struct wire_writer *to, const struct site *site, const struct source *source)
{
#define PUT_FLAG(flag) wire__put_u32(to, flag)
	wire__put_u32(to, site->function);
	wire__put_u64(to, site->names);
	wire__put_u64(to, site->n_aliases);
	for (size_t i = 0; i < site->n_aliases; i++)
		wire__put_string(to, site->aliases[i]);
	wire__put_u64(to, site->entry_vaddr);
	wire__put_u64(to, site->probe_vaddr);
	wire__put_u64(to, site->entry_offset);
	wire__put_u64(to, site->probe_offset);
	wire__put_u64(to, site->size);
	FOR_EACH_FLAG(site, PUT_FLAG)
	wire__put_string(to, site->instruction);
	wire__put_string(to, site->reason);
	wire__put_u64(to, site->tail_calls);
	wire__put_u32(to, number_of(site->interface, source));
	wire__put_bytes(to, site->argument_at, sizeof(site->argument_at));
	wire__put_u32(to, site->returns);
	wire__put_u32(to, site->usdt != NULL);
	if (site->usdt)
		wire__put_bytes(to, site->usdt, sizeof(*site->usdt));
}

void allocator__write(const struct allocator *allocator, struct wire_writer *to)
{
	wire__put_string(to, allocator->build_id);
	wire__put_u64(to, allocator->text_start);
	wire__put_u64(to, allocator->text_end);
	wire__put_u64(to, allocator->n_sites);
	for (size_t i = 0; i < allocator->n_sites; i++)
		put_site(to, &allocator->sites[i], allocator->source);
	wire__put_u64(to, allocator->n_unknown);
	for (size_t i = 0; i < allocator->n_unknown; i++) {
		const struct unknown_function *unknown = &allocator->unknown[i];

		wire__put_string(to, unknown->name);
		wire__put_u64(to, unknown->vaddr);
		wire__put_u64(to, unknown->offset);
		wire__put_u32(to, unknown->ends);
		wire__put_u32(to, unknown->is_by_name);
	}
	wire__put_u32(to, allocator->is_described);
	wire__put_u32(to, allocator->is_wrapper);
	wire__put_u32(to, allocator->goes_past);
	wire__put_u32(to, allocator->is_bypassed);
	wire__put_u32(to, allocator->is_collected);
	put_array(to, allocator->internal_returns, allocator->n_internal_returns);
	put_array(to, allocator->return_offsets, allocator->n_return_offsets);
	put_array(to, allocator->nest_offsets, allocator->n_nest_offsets);
}

struct reading {
	struct wire_reader *from;
	const struct executable_parts *parts;
	struct allocator *allocator;
	int err;
};

static void require(struct reading *reading, bool condition)
{
	if (!condition)
		wire__refuse(reading->from);
}

static bool get_flag(struct reading *reading)
{
	__u32 value = wire__get_u32(reading->from);

	require(reading, value <= 1);
	return value;
}

/* A copy; NULL if it is bad. */
static char *get_name(struct reading *reading, size_t max)
{
	const char *text = wire__get_string(reading->from, max);
	char *copy = text ? strdup(text) : NULL;

	if (!text)
		wire__refuse(reading->from);
	else if (!copy)
		reading->err = -ENOMEM;
	return copy;
}

static void get_text(struct reading *reading, char *to, size_t size)
{
	const char *text = wire__get_string(reading->from, size);

	if (text)
		strcpy(to, text);
	else
		wire__refuse(reading->from);
}

/* The elements have @least_bytes at least. */
static size_t get_count(struct reading *reading, size_t least_bytes, size_t max)
{
	size_t n = wire__get_count(reading->from, least_bytes);

	require(reading, n <= max);
	return reading->from->is_bad ? 0 : n;
}

static __u64 *get_array(struct reading *reading, size_t max, size_t *n)
{
	size_t count = get_count(reading, sizeof(__u64), max);
	const void *bytes = wire__get_bytes(reading->from, count * sizeof(__u64));
	__u64 *array = count ? array__copy(bytes, count, sizeof(__u64)) : NULL;

	if (count && !array)
		reading->err = -ENOMEM;
	*n = array ? count : 0;
	return array;
}

static bool operand_is_sound(const struct ap_operand *operand)
{
	return operand->kind <= AP_OPERAND_MEMORY && operand->is_signed <= 1 &&
	       operand->is_second <= 1 && operand->shift < 4 &&
	       (operand->kind == AP_OPERAND_NONE || operand->bytes == 1 || operand->bytes == 2 ||
		operand->bytes == 4 || operand->bytes == 8);
}

static void get_usdt(struct reading *reading, struct site *site)
{
	const void *bytes = wire__get_bytes(reading->from, sizeof(*site->usdt));
	const struct ap_usdt *arguments;

	if (!bytes)
		return;
	site->usdt = array__copy(bytes, 1, sizeof(*site->usdt));
	if (!site->usdt) {
		reading->err = -ENOMEM;
		return;
	}
	arguments = &site->usdt->arguments;
	require(reading, site->usdt->semaphore_offset < reading->parts->file_bytes &&
				 operand_is_sound(&arguments->size) &&
				 operand_is_sound(&arguments->count) &&
				 operand_is_sound(&arguments->pointer) &&
				 operand_is_sound(&arguments->result));
}

static const struct interface_function *get_interface(struct reading *reading)
{
	const struct source *source = reading->allocator->source;
	__u32 number = wire__get_u32(reading->from);

	if (!source)
		return interface__at(number);
	return number < source->n_functions ? &source->functions[number].interface : NULL;
}

static void get_arguments(struct reading *reading, struct site *site)
{
	const __u8 *bytes = wire__get_bytes(reading->from, sizeof(site->argument_at));

	if (!bytes)
		return;
	memcpy(site->argument_at, bytes, sizeof(site->argument_at));
	for (size_t i = 0; i < sizeof(site->argument_at); i++)
		require(reading, site->argument_at[i] <= SITE_ARGUMENTS);
}

static void get_aliases(struct reading *reading, struct site *site)
{
	size_t n = get_count(reading, sizeof(__u32), MAX_ALIASES);

	site->aliases = calloc(MAX_ALIASES, sizeof(*site->aliases));
	if (!site->aliases) {
		reading->err = -ENOMEM;
		return;
	}
	for (; site->n_aliases < n; site->n_aliases++) {
		char *name = get_name(reading, MAX_SYMBOL_NAME + 1);

		if (!name)
			return;
		site->aliases[site->n_aliases] = name;
	}
}

/* Checks what the kernel and the BPF programs rely on. */
static bool site_is_sound(const struct reading *reading, const struct site *site)
{
	const __u64 functions = (1ULL << AP_FUNCTIONS) - 1;

	return site->function < (reading->allocator->source ? AP_FUNCTIONS : AP_DEFINED) &&
	       site->names >> site->function & 1 && !(site->names & ~functions) &&
	       !(site->tail_calls & ~functions) && site->interface &&
	       site->names >> site->interface->function & 1 && site->returns <= RETURNS_UNKNOWN &&
	       site->probe_vaddr - site->entry_vaddr <= SITE_MAX_DISTANCE &&
	       executable_parts__have(reading->parts, site->entry_vaddr, site->entry_offset) &&
	       executable_parts__have(reading->parts, site->probe_vaddr, site->probe_offset) &&
	       (site->usdt != NULL) ==
		       (reading->allocator->source && reading->allocator->source->is_usdt);
}

static void get_site(struct reading *reading, struct site *site)
{
#define GET_FLAG(flag) flag = get_flag(reading)
	site->function = wire__get_u32(reading->from);
	site->names = wire__get_u64(reading->from);
	get_aliases(reading, site);
	site->entry_vaddr = wire__get_u64(reading->from);
	site->probe_vaddr = wire__get_u64(reading->from);
	site->entry_offset = wire__get_u64(reading->from);
	site->probe_offset = wire__get_u64(reading->from);
	site->size = wire__get_u64(reading->from);
	FOR_EACH_FLAG(site, GET_FLAG)
	get_text(reading, site->instruction, sizeof(site->instruction));
	get_text(reading, site->reason, sizeof(site->reason));
	site->tail_calls = wire__get_u64(reading->from);
	site->interface = get_interface(reading);
	get_arguments(reading, site);
	site->returns = wire__get_u32(reading->from);
	if (get_flag(reading))
		get_usdt(reading, site);
	require(reading, site_is_sound(reading, site));
}

static void get_sites(struct reading *reading)
{
	struct allocator *allocator = reading->allocator;
	bool is_usdt = allocator->source && allocator->source->is_usdt;
	size_t n = get_count(reading, 1, is_usdt ? USDT_MAX_PLACES : MAX_SITES);

	allocator->sites = calloc(n ? n : 1, sizeof(*allocator->sites));
	if (!allocator->sites) {
		reading->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n && !reading->from->is_bad && !reading->err; i++) {
		allocator->n_sites++;
		get_site(reading, &allocator->sites[i]);
	}
}

static void get_unknown(struct reading *reading)
{
	struct allocator *allocator = reading->allocator;
	size_t n = get_count(reading, 1, ALLOCATOR_MAX_UNKNOWN);

	allocator->unknown = calloc(n + 1, sizeof(*allocator->unknown));
	if (!allocator->unknown) {
		reading->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n && !reading->from->is_bad && !reading->err; i++) {
		struct unknown_function *unknown = &allocator->unknown[i];

		unknown->name = get_name(reading, MAX_SYMBOL_NAME + 1);
		allocator->n_unknown++;
		unknown->vaddr = wire__get_u64(reading->from);
		unknown->offset = wire__get_u64(reading->from);
		unknown->ends = get_flag(reading);
		unknown->is_by_name = get_flag(reading);
		require(reading,
			executable_parts__have(reading->parts, unknown->vaddr, unknown->offset));
	}
}

/* They are searched by halves. */
static void check_returns(struct reading *reading)
{
	const struct allocator *allocator = reading->allocator;

	for (size_t i = 1; i < allocator->n_internal_returns; i++)
		require(reading,
			allocator->internal_returns[i - 1] < allocator->internal_returns[i]);
}

static void check_offsets(struct reading *reading, const __u64 *offsets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		require(reading, executable_parts__have_offset(reading->parts, offsets[i]));
}

static void get_all(struct reading *reading)
{
	struct allocator *allocator = reading->allocator;

	get_text(reading, allocator->build_id, sizeof(allocator->build_id));
	require(reading,
		strspn(allocator->build_id, "0123456789abcdef") == strlen(allocator->build_id));
	allocator->text_start = wire__get_u64(reading->from);
	allocator->text_end = wire__get_u64(reading->from);
	get_sites(reading);
	get_unknown(reading);
	allocator->is_described = get_flag(reading);
	allocator->is_wrapper = get_flag(reading);
	allocator->goes_past = get_flag(reading);
	allocator->is_bypassed = get_flag(reading);
	allocator->is_collected = get_flag(reading);
	allocator->internal_returns =
		get_array(reading, MAX_RETURNS, &allocator->n_internal_returns);
	allocator->return_offsets = get_array(reading, MAX_ENDS, &allocator->n_return_offsets);
	allocator->nest_offsets = get_array(reading, MAX_ENDS, &allocator->n_nest_offsets);
	check_returns(reading);
	check_offsets(reading, allocator->return_offsets, allocator->n_return_offsets);
	check_offsets(reading, allocator->nest_offsets, allocator->n_nest_offsets);
}

int allocator__take(struct wire_reader *from, const char *path, const struct source *source,
		    const struct executable_parts *parts, struct allocator **out)
{
	struct reading reading = { .from = from, .parts = parts };

	reading.allocator = calloc(1, sizeof(*reading.allocator));
	if (!reading.allocator)
		return -ENOMEM;
	reading.allocator->source = source;
	reading.allocator->path = strdup(path);
	if (!reading.allocator->path)
		reading.err = -ENOMEM;
	get_all(&reading);
	if (!reading.err && !wire__is_read(from))
		reading.err = -EPROTO;
	if (!reading.err)
		reading.err = allocator__collect_names(reading.allocator);
	if (reading.err) {
		allocator__free(reading.allocator);
		return reading.err;
	}
	*out = reading.allocator;
	return 0;
}
