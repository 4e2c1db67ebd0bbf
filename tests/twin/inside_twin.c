// SPDX-License-Identifier: GPL-3.0-or-later
/* twin.h by the unwinder of src/inside, so that one test holds both unwinders to the same expectations. */
#include "twin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "async_code.h"
#include "frame_rules.h"
#include "tables.h"
#include "walk.h"

#define MAX_TWIN_MODULES 512

static struct unwind_table *twin_tables;
static struct unwind_slice *twin_slices;
static struct unwind_rule *twin_rules;
static struct unwind_chunk *twin_chunks[UNWIND_MAX_CHUNKS];
static struct walker *walker;
static const struct twin_memory *memory;
static const struct twin_mapping *mappings;
static size_t n_memory, n_mappings;
static void (*meet_module)(const struct ap_module_record *record);
static struct {
	__u64 inode;
	__u32 device;
} modules[MAX_TWIN_MODULES];
static __u32 n_modules, generation;

static const void *find_memory(__u64 address, __u32 size)
{
	for (size_t i = 0; i < n_memory; i++) {
		__u64 offset = address - memory[i].start;

		if (offset < memory[i].size && size <= memory[i].size - offset)
			return (const char *)memory[i].bytes + offset;
	}
	return NULL;
}

/* A load that is not in bounds would end the target. */
__u64 host__word(__u64 address)
{
	const __u64 *word = find_memory(address, sizeof(*word));

	if (!word || address & 7)
		abort();
	return *word;
}

bool memory__read(__u64 address, void *out, __u32 size)
{
	const void *from = find_memory(address, size);

	if (!from)
		return false;
	memcpy(out, from, size);
	return true;
}

bool stack_copy__load(struct stack_copy *copy, __u64 address, __u64 *value)
{
	return !(address & 7) && memory__read(address, value, sizeof(*value));
}

bool memory__read_kept(__u64 address, __u64 *value)
{
	return memory__read(address, value, sizeof(*value));
}

void stack__range(__u64 sp, __u64 thread_data, struct stack_range *out, void *buffer, __u32 size)
{
	/* Room to work in: what the walk has there must not matter. */
	memset(buffer, 0xa5, size);
	*out = (struct stack_range){ 0 };
	for (size_t i = 0; i < n_memory; i++)
		if (sp - memory[i].start < memory[i].size)
			*out = (struct stack_range){ memory[i].start,
						     memory[i].start + memory[i].size,
						     memory[i].start + memory[i].size };
}

__u32 stack__generation(void)
{
	return generation;
}

/* The test's tables are there. */
enum unwind_table_state frame_rules__find(struct frame_work *work, __u64 address,
					  const struct code_range *range, struct unwind_rule *out)
{
	abort();
}

bool frame_rules__is_entry(__u32 module, __u64 offset)
{
	abort();
}

bool async_is_there;

bool async_code__has(struct frame_work *work, __u64 address, const struct code_range *range)
{
	abort();
}

/* Memory of tests changes without notice. */
bool code__recall(__u64 address, __u32 *said)
{
	return false;
}

void code__remember(__u64 address, __u32 said)
{
}

void code__forget_bytes(void)
{
}

__u32 code__loads(void)
{
	return 0;
}

__u32 code__generation(void)
{
	return generation;
}

static __u32 module_of(const struct twin_mapping *mapping)
{
	struct ap_module_record record = {
		.type = AP_RECORD_MODULE,
		.device = mapping->device,
		.inode = mapping->inode,
		.start = mapping->start,
		.end = mapping->end,
		.offset = mapping->offset,
	};

	for (__u32 i = 0; i < n_modules; i++)
		if (modules[i].inode == mapping->inode && modules[i].device == mapping->device)
			return AP_MODULE_VDSO + 1 + i;
	if (n_modules == MAX_TWIN_MODULES)
		abort();
	modules[n_modules].inode = mapping->inode;
	modules[n_modules++].device = mapping->device;
	record.id = AP_MODULE_VDSO + n_modules;
	if (meet_module)
		meet_module(&record);
	return record.id;
}

int code__find(__u64 address, struct code_range *out)
{
	for (size_t i = 0; i < n_mappings; i++) {
		const struct twin_mapping *mapping = &mappings[i];

		if (address < mapping->start || address >= mapping->end)
			continue;
		if (!mapping->executable)
			return -EIO;
		*out = (struct code_range){ mapping->start, mapping->end };
		if (mapping->inode) {
			out->bias = mapping->offset - mapping->start;
			out->module = module_of(mapping);
		}
		return 0;
	}
	return -EIO;
}

const struct unwind_chunk *tables__map_chunk(__u32 index)
{
	tables.chunks[index] = twin_chunks[index];
	return twin_chunks[index];
}

int twin__write(void *context, enum unwind_map map, __u32 index, const void *value)
{
	switch (map) {
	case UNWIND_MAP_CHUNKS:
		if (index >= UNWIND_MAX_CHUNKS)
			return -E2BIG;
		if (!value) {
			twin_chunks[index] = calloc(1, sizeof(*twin_chunks[index]));
			return twin_chunks[index] ? 0 : -ENOMEM;
		}
		memcpy(twin_chunks[index], value, sizeof(*twin_chunks[index]));
		return 0;
	case UNWIND_MAP_TABLES:
		if (index >= UNWIND_MAX_MODULES)
			return -E2BIG;
		memcpy(&twin_tables[index], value, sizeof(*twin_tables));
		return 0;
	case UNWIND_MAP_SLICES:
		if (index >= UNWIND_MAX_SLICES)
			return -E2BIG;
		memcpy(&twin_slices[index], value, sizeof(*twin_slices));
		return 0;
	case UNWIND_MAP_RULES:
		if (index >= UNWIND_MAX_RULES_LOADED)
			return -E2BIG;
		memcpy(&twin_rules[index], value, sizeof(*twin_rules));
		return 0;
	}
	return -EINVAL;
}

void twin__free(void)
{
	for (size_t i = 0; i < UNWIND_MAX_CHUNKS; i++) {
		free(twin_chunks[i]);
		twin_chunks[i] = NULL;
	}
	free(twin_tables);
	free(twin_slices);
	free(twin_rules);
	free(walker);
	twin_tables = NULL;
	twin_slices = NULL;
	twin_rules = NULL;
	walker = NULL;
	tables = (struct tables){ 0 };
}

void twin__reset(void)
{
	twin__free();
	twin_tables = calloc(UNWIND_MAX_MODULES, sizeof(*twin_tables));
	twin_slices = calloc(UNWIND_MAX_SLICES, sizeof(*twin_slices));
	twin_rules = calloc(UNWIND_MAX_RULES_LOADED, sizeof(*twin_rules));
	walker = calloc(1, sizeof(*walker));
	if (!twin_tables || !twin_slices || !twin_rules || !walker)
		abort();
	tables.tables = twin_tables;
	tables.slices = twin_slices;
	tables.rules = twin_rules;
	memory = NULL;
	mappings = NULL;
	n_memory = n_mappings = 0;
	meet_module = NULL;
	n_modules = 0;
	walker->max_depth = 127;
	walker->generation = generation;
	walker__forget(walker);
}

/* The process's memory is another one: a thread's stack does not change so. */
void twin__set_memory(const struct twin_memory *list, size_t n)
{
	memory = list;
	n_memory = n;
	walker->range = (struct stack_range){ 0 };
}

void twin__set_mappings(const struct twin_mapping *list, size_t n)
{
	mappings = list;
	n_mappings = n;
}

void twin__set_max_depth(__u32 max_depth)
{
	walker->max_depth = max_depth;
}

void twin__on_module(void (*meet)(const struct ap_module_record *record))
{
	meet_module = meet;
}

void twin__change_code(void)
{
	generation++;
}

void twin__forget(void)
{
	walker__forget(walker);
}

void *twin__memory_of_last(size_t *size)
{
	*size = sizeof(*walker);
	return walker;
}

void twin__walk(const struct twin_hit *hit, struct twin_walk *walk)
{
	__u64 pc = 0;

	/* The caller has called: its return address is there. */
	if (hit->sp & 7 || !memory__read(hit->sp, &pc, sizeof(pc)))
		pc = 0;
	walk->hash = walker__walk(walker, pc, hit->sp + 8, hit->fp);
	walk->n_frames = walker->n;
	walk->end = walker->end;
	walk->lookups = walker->lookups;
	walk->faults = 0; /* it reads where the thread itself has pushed */
	walker__frames(walker, walk->frames);
}
