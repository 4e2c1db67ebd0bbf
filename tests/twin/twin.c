// SPDX-License-Identifier: GPL-3.0-or-later
#include "twin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The settings are read-only data of the programs. */
#include "maps.bpf.h"
static struct ap_config twin_config;
#define config twin_config
#include "blocks.bpf.c"
#include "events.bpf.c"
#include "faults.bpf.c"
#include "gate.bpf.c"
#include "hits.bpf.c"
#include "live.bpf.c"
#include "mappings.bpf.c"
#include "shared_maps.bpf.c"
#include "modules.bpf.c"
#include "processes.bpf.c"
#include "python.bpf.c"
#include "record_abi.h"
#include "regions.bpf.c"
#include "trampoline.bpf.c"
#include "unprobed.bpf.c"
#include "usdt.bpf.c"
#include "walk.bpf.c"

/* Elements are allocated one by one, so that ASan sees where each ends. */
struct element {
	struct element *next;
	void *value;
	unsigned char key[];
};

#define BUCKETS 4096

struct map {
	const void *map;
	size_t key_size, value_size;
	__u32 max_entries;
	bool array, counted;
	void **values;		   /* of arrays */
	struct element **elements; /* of hashes */
	__u32 n_elements;
};

#define MAP(name, is_array, is_counted)                                                            \
	{                                                                                          \
		.map = &name, .key_size = sizeof(*name.key), .value_size = sizeof(*name.value),    \
		.max_entries = sizeof(*name.max_entries) / sizeof(int), .array = is_array,         \
		.counted = is_counted                                                              \
	}

/* The one table of live blocks that there is. */
static char twin_live_table;

static struct map maps[] = {
	MAP(unwind_tables, true, true),
	MAP(unwind_slices, true, true),
	MAP(unwind_rules, true, true),
	MAP(vmas, false, true),
	MAP(pythons, false, true),
	MAP(modules, false, true),
	MAP(scratches, true, false),
	MAP(processes, false, false),
	MAP(stats, true, false),
	MAP(sites, true, false),
	MAP(internal_returns, false, false),
	MAP(tail_calls, false, false),
	MAP(jumps, false, false),
	{
		.map = &counts_a,
		.key_size = sizeof(struct ap_count_key),
		.value_size = sizeof(struct ap_count),
		.max_entries = sizeof(*counts_a.max_entries) / sizeof(int),
	},
	MAP(stacks_sent, false, false),
	MAP(site_counts, true, false),
	MAP(threads, false, false),
	{
		.map = &twin_live_table,
		.key_size = sizeof(struct ap_block_key),
		.value_size = sizeof(struct ap_block),
	},
};

#define N_MAPS (sizeof(maps) / sizeof(maps[0]))

static struct unwind_chunk *chunks[UNWIND_MAX_CHUNKS];
static const struct twin_memory *memory;
static const struct twin_mapping *mappings;
static size_t n_memory, n_mappings;
static void (*meet_module)(const struct ap_module_record *record);
static __u32 n_lookups, n_faults;
static bool ring_is_full;
static __u64 ring_unread, now_ns;
/* The module whose table comes at that time; 0: none. */
static __u32 coming_module;
static __u64 comes_at_ns;
static __u32 n_records;

static struct mm_struct twin_mm;
static struct task_struct twin_task = { .pid = 42, .tgid = 42, .mm = &twin_mm };
static struct process twin_process = { .id = 1, .state = PROCESS_COUNTED, .pid = 42 };

static struct map *find_map(const void *map)
{
	for (size_t i = 0; i < N_MAPS; i++)
		if (maps[i].map == map)
			return &maps[i];
	abort();
}

static struct element **find_element(struct map *map, const void *key)
{
	struct element **at;
	__u64 hash = 0;

	if (!map->elements)
		map->elements = calloc(BUCKETS, sizeof(*map->elements));
	for (size_t i = 0; i < map->key_size; i++)
		hash = ap_stack__mix(hash ^ ((const unsigned char *)key)[i]);
	for (at = &map->elements[hash % BUCKETS]; *at; at = &(*at)->next)
		if (!memcmp((*at)->key, key, map->key_size))
			break;
	return at;
}

static void **array_value(struct map *map, __u32 index)
{
	if (index >= map->max_entries)
		return NULL;
	if (!map->values)
		map->values = calloc(map->max_entries, sizeof(*map->values));
	if (!map->values[index])
		map->values[index] = calloc(1, map->value_size);
	return &map->values[index];
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 index = *(const __u32 *)key;
	struct element **element;
	struct map *found;
	void **value;

	if (map == &counts)
		return &counts_a;
	if (map == &live_tables)
		return index ? NULL : &twin_live_table;
	if (map == &records)
		return NULL;
	if (map == &unwind_chunks) {
		n_lookups++;
		return index < UNWIND_MAX_CHUNKS && chunks[index] ? &chunks[index] : NULL;
	}
	if ((uintptr_t)map - (uintptr_t)chunks < sizeof(chunks))
		return index ? NULL : *(struct unwind_chunk **)map;
	found = find_map(map);
	n_lookups += found->counted;
	if (found->array) {
		value = array_value(found, index);
		return value ? *value : NULL;
	}
	element = find_element(found, key);
	return *element ? (*element)->value : NULL;
}

static void map__clear(struct map *map)
{
	for (__u32 i = 0; map->values && i < map->max_entries; i++)
		free(map->values[i]);
	for (__u32 i = 0; map->elements && i < BUCKETS; i++)
		for (struct element *next, *at = map->elements[i]; at; at = next) {
			next = at->next;
			free(at->value);
			free(at);
		}
	free(map->values);
	free(map->elements);
	map->values = NULL;
	map->elements = NULL;
	map->n_elements = 0;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	struct map *found = find_map(map);
	struct element **at;
	void **array;

	if (found->array) {
		array = array_value(found, *(const __u32 *)key);
		if (!array)
			return -E2BIG;
		memcpy(*array, value, found->value_size);
		return 0;
	}
	at = find_element(found, key);
	if (*at && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!*at) {
		/* As a map that forgets what was not used lately may do. */
		if (map == &vmas && found->n_elements == found->max_entries)
			map__clear(found);
		if (found->n_elements == found->max_entries)
			return -E2BIG;
		at = find_element(found, key);
		*at = calloc(1, sizeof(**at) + found->key_size);
		memcpy((*at)->key, key, found->key_size);
		(*at)->value = calloc(1, found->value_size);
		found->n_elements++;
	}
	memcpy((*at)->value, value, found->value_size);
	return 0;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	struct map *found = find_map(map);
	struct element **at = find_element(found, key), *gone = *at;

	if (!gone)
		return -ENOENT;
	*at = gone->next;
	free(gone->value);
	free(gone);
	found->n_elements--;
	return 0;
}

/* Queues are only used with live, which is not tested here. */
long bpf_map_push_elem(void *map, const void *value, __u64 flags)
{
	return -E2BIG;
}

long bpf_map_pop_elem(void *map, void *value)
{
	return -ENOENT;
}

long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

/* The twin's programs are not sleepable. */
long bpf_copy_from_user(void *to, __u32 size, const void *from)
{
	abort();
}

long bpf_probe_read_user(void *to, __u32 size, const void *from)
{
	__u64 address = (uintptr_t)from;

	for (size_t i = 0; i < n_memory; i++) {
		__u64 offset = address - memory[i].start;

		if (offset < memory[i].size && size <= memory[i].size - offset) {
			memcpy(to, (const char *)memory[i].bytes + offset, size);
			return 0;
		}
	}
	memset(to, 0, size);
	n_faults++;
	return -EFAULT;
}

long twin_find_vma(__u64 address, struct vm_area_struct **vma)
{
	static struct super_block super_block;
	static struct inode inode = { .i_sb = &super_block };
	static struct file file = { .f_inode = &inode };
	static struct vm_area_struct found;

	n_lookups++;
	for (size_t i = 0; i < n_mappings; i++) {
		if (address < mappings[i].start || address >= mappings[i].end)
			continue;
		super_block.s_dev = mappings[i].device;
		inode.i_ino = mappings[i].inode;
		found = (struct vm_area_struct){
			.vm_start = mappings[i].start,
			.vm_end = mappings[i].end,
			.vm_flags = mappings[i].executable ? VM_EXEC : 0,
			.vm_pgoff = mappings[i].offset >> PAGE_SHIFT,
			.vm_file = mappings[i].inode ? &file : NULL,
		};
		*vma = &found;
		return 0;
	}
	return -ENOENT;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return &twin_task;
}

long bpf_task_pt_regs(struct task_struct *task)
{
	return 0;
}

long bpf_current_task_under_cgroup(void *map, __u32 index)
{
	return 0;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return (__u64)twin_task.tgid << 32 | twin_task.pid;
}

long bpf_get_current_comm(void *buffer, __u32 size)
{
	memset(buffer, 0, size);
	return 0;
}

/* No session is run here. */
__u64 bpf_get_func_ip(void *context)
{
	return 0;
}

/* No program calls another. */
long bpf_tail_call(void *context, void *programs, __u32 index)
{
	abort();
}

__u64 bpf_get_attach_cookie(void *context)
{
	return 0;
}

/* Each look at the clock takes a microsecond. */
__u64 bpf_ktime_get_ns(void)
{
	struct unwind_table *table;

	now_ns += 1000;
	if (coming_module && now_ns >= comes_at_ns) {
		table = bpf_map_lookup_elem(&unwind_tables, &coming_module);
		table->state = UNWIND_TABLE_NONE;
	}
	return now_ns;
}

bool twin__await_table(__u32 module, __u64 after_ns, __u64 *waited_ns)
{
	const __u64 start_ns = now_ns, total_ns = waits.total_ns;
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &module);
	bool comes;

	table->state = UNWIND_TABLE_AWAITED;
	coming_module = module;
	comes_at_ns = start_ns + after_ns;
	waits.left_ns = AP_WAITS_BUDGET_NS;
	waits.most = 1;
	bpf_map_update_elem(&processes, &twin_task.tgid, &twin_process, BPF_ANY);
	comes = table__await(module);
	twin_process = *(struct process *)bpf_map_lookup_elem(&processes, &twin_task.tgid);
	coming_module = 0;
	*waited_ns = waits.total_ns - total_ns;
	return comes;
}

void twin__set_unread(__u64 bytes, __u32 dump_below_bytes)
{
	ring_unread = bytes;
	twin_config.dump_below_bytes = dump_below_bytes;
	twin_config.stack_dump = AP_MAX_STACK_DUMP;
}

__u32 bpf_get_prandom_u32(void)
{
	static __u64 state;

	/* splitmix64 */
	state += 0x9e3779b97f4a7c15;
	return ap_stack__mix(state) >> 32;
}

void twin__set_sampling(const struct ap_config *settings)
{
	twin_config = *settings;
}

unsigned __int128 twin__chance(__u64 size_bytes)
{
	__u64 chance = sample__chance(size_bytes);

	return chance ?: (unsigned __int128)1 << 64;
}

__u32 twin__weight(__u64 chance, __u64 draw)
{
	return sample__weight(chance, draw);
}

__u32 twin__draw(__u64 size_bytes)
{
	return sample__draw(size_bytes);
}

void twin__estimate_add(struct ap_estimate *estimate, __u32 weight, __u64 size_bytes)
{
	estimate__add(estimate, weight, size_bytes);
}

void *bpf_ringbuf_reserve(void *map, __u64 size, __u64 flags)
{
	return ring_is_full ? NULL : calloc(1, size);
}

void bpf_ringbuf_submit(void *record, __u64 flags)
{
	n_records++;
	if (*(__u32 *)record == AP_RECORD_MODULE && meet_module)
		meet_module(record);
	free(record);
}

long bpf_ringbuf_output(void *map, void *data, __u64 size, __u64 flags)
{
	return 0;
}

__u64 bpf_ringbuf_query(void *map, __u64 flags)
{
	return ring_unread;
}

void twin__free(void)
{
	for (size_t i = 0; i < N_MAPS; i++)
		map__clear(&maps[i]);
	for (size_t i = 0; i < UNWIND_MAX_CHUNKS; i++) {
		free(chunks[i]);
		chunks[i] = NULL;
	}
}

void twin__reset(void)
{
	twin__free();
	last_module_id = AP_MODULE_VDSO;
	memory = NULL;
	mappings = NULL;
	n_memory = n_mappings = 0;
	meet_module = NULL;
	ring_is_full = false;
	ring_unread = 0;
	n_records = 0;
	live = (struct ap_live){ .n_tables = 1 };
	twin_config.max_depth = 127;
	twin_process.generation = 0;
	twin_process.exec_pages = 0;
	twin_process.waited_ns = twin_process.vain_ns = 0;
	twin_mm.exec_vm = 1;
}

void twin__set_memory(const struct twin_memory *list, size_t n)
{
	memory = list;
	n_memory = n;
}

void twin__set_mappings(const struct twin_mapping *list, size_t n)
{
	mappings = list;
	n_mappings = n;
}

void twin__set_max_depth(__u32 max_depth)
{
	twin_config.max_depth = max_depth;
}

void twin__on_module(void (*meet)(const struct ap_module_record *record))
{
	meet_module = meet;
}

void twin__change_code(void)
{
	twin_mm.exec_vm++;
}

int twin__write(void *context, enum unwind_map map, __u32 index, const void *value)
{
	switch (map) {
	case UNWIND_MAP_CHUNKS:
		if (!value) {
			chunks[index] = calloc(1, sizeof(*chunks[index]));
			return chunks[index] ? 0 : -ENOMEM;
		}
		memcpy(chunks[index], value, sizeof(*chunks[index]));
		return 0;
	case UNWIND_MAP_TABLES:
		return bpf_map_update_elem(&unwind_tables, &index, value, BPF_ANY);
	case UNWIND_MAP_SLICES:
		return bpf_map_update_elem(&unwind_slices, &index, value, BPF_ANY);
	case UNWIND_MAP_RULES:
		return bpf_map_update_elem(&unwind_rules, &index, value, BPF_ANY);
	}
	return -EINVAL;
}

void twin__fill_ring(bool is_full)
{
	ring_is_full = is_full;
}

__u32 twin__count_records(void)
{
	return n_records;
}

__u64 twin__stat(enum ap_stat which)
{
	__u32 at = which;
	__u64 *value = bpf_map_lookup_elem(&stats, &at);

	return *value;
}

bool twin__dump(void)
{
	static struct uprobe_task no_returns;
	struct ap_count_key key = { .function = AP_FUNCTION_DUMPED };
	struct pt_regs regs = { 0 };
	struct hit hit = { .weight = 1 };
	bool sent;

	twin_task.utask = &no_returns;
	twin_config.stack_dump = 4096;
	twin_config.dump_below_bytes = 1;
	sent = stack__dump(&regs, &key, AP_END_NO_TABLE, &hit);
	twin_config.stack_dump = 0;
	return sent;
}

__u32 twin__count_dumps(void)
{
	return live.n_dumps;
}

void twin__set_live_room(__u32 blocks)
{
	find_map(&twin_live_table)->max_entries = blocks;
}

int twin__put_block(__u64 address)
{
	struct ap_block_key key = { .address = address };
	struct ap_block block = { .size_bytes = 100, .weight = 1, .record = AP_NO_RECORD };

	return blocks__put(&key, &block);
}

bool twin__has_block(__u64 address)
{
	struct ap_block_key key = { .address = address };

	return blocks__has(&key);
}

void twin__enter_realloc(__u64 address, __u64 size_bytes)
{
	struct hit hit = {
		.sp = 4096,
		.function = AP_REALLOC,
		.pointer = address,
		.size_bytes = size_bytes,
		.weight = 1,
	};

	call__enter(&twin_process, &hit, 0, AP_NO_RECORD);
}

void twin__leave_realloc(__u64 result)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct ap_thread *thread = bpf_map_lookup_elem(&threads, &id);

	call__return(&twin_process, thread, &thread->pending[0], result);
	thread->n_pending--;
}

static struct scratch *the_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

void *twin__memory_of_last(size_t *size)
{
	*size = sizeof(struct scratch);
	return the_scratch();
}

void twin__forget(void)
{
	struct scratch *scratch = the_scratch();

	memset(scratch, 0, sizeof(*scratch));
}

void twin__walk(const struct twin_hit *at, struct twin_walk *walk)
{
	struct hit hit = { .sp = at->sp, .fp = at->fp };
	struct scratch *scratch = scratch__claim(bpf_get_current_pid_tgid());

	n_lookups = n_faults = 0;
	process__refresh(&twin_process);
	scratch__enter(scratch, bpf_get_current_pid_tgid(), &twin_process);
	if (stack__read(scratch, &hit, false))
		hit.return_address = scratch->window[0];
	stack__walk(scratch, &twin_process, &hit, false);
	walk->n_frames = scratch->record.n_frames;
	walk->end = scratch->record.end;
	walk->hash = scratch->record.stack;
	walk->lookups = n_lookups;
	walk->faults = n_faults;
	stack__lay_out(scratch);
	memcpy(walk->frames, scratch->frames, sizeof(walk->frames));
	scratch__release(scratch);
}

bool twin__joins(const char *pattern, const char *name)
{
	struct name_match match = { 0 };

	memset(twin_config.joins_name, 0, sizeof(twin_config.joins_name));
	strncpy(twin_config.joins_name, pattern, sizeof(twin_config.joins_name) - 1);
	strncpy(match.name, name, sizeof(match.name) - 1);
	return name__is_joined(&match);
}
