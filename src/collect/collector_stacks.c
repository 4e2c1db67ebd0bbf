// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns stacks of addresses, which the programs have kept, into stacks of the profile's frames. */
#include "collector_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "dump_unwind.h"
#include "elf_headers.h"
#include "hash_table.h"
#include "jit_names.h"
#include "process_maps.h"
#include "profile.h"
#include "record_abi.h"
#include "sampling.h"

/* How long after the time in a stack dump it may be submitted: a program may be preempted in
 * between. */
#define DUMP_MOST_LATE_NS NS_PER_S

/* The time for an address if it is unknown when the process was there. */
#define AT_ANY_TIME UINT64_MAX

/* Finds the module and file offset of an address that the kernel could not resolve. */
static int resolve_address(struct collector *collector, __u32 pid, __u64 address, __u64 time_ns,
			   size_t *index, __u64 *offset)
{
	const struct code_mapping *mapping;
	int err;

	collector__know_mappings(collector, time_ns);
	mapping = time_ns == AT_ANY_TIME
			  ? process_maps__find_lasting(collector->maps, pid, address)
			  : process_maps__find(collector->maps, pid, address, time_ns);

	if (!mapping)
		return -ENOENT;
	err = collector__mapped_module(collector, mapping, pid, index);
	if (!err)
		*offset = address - mapping->start + mapping->offset;
	return err;
}

static enum profile_place place_of(const struct ap_frame *frame)
{
	return frame->flags & AP_FRAME_ASYNC	     ? PROFILE_PLACE_AWAITING
	       : frame->flags & AP_FRAME_INTERRUPTED ? PROFILE_PLACE_INTERRUPTED
						     : PROFILE_PLACE_CALL;
}

/* Adds a frame that is in no file, and may be JIT code. */
static int add_unmapped_frame(struct collector *collector, const struct ap_frame *frame,
			      __u32 program_id, __u32 pid, __u32 *id)
{
	int err = profile__add_frame(collector->profile, 0, frame->offset, place_of(frame), id);
	struct jit_place place = { .program = program_id, .pid = pid };

	if (err || frame->module)
		return err;
	place.frame = *id;
	/* Not the time of the call, which a stack that many calls have does not say. */
	place.time_ns = clock__now_ns();
	return jit_names__add(collector->jit_names, &place);
}

/* Adds a frame, or sets *@id to 0 if it is left out. A frame without a module is looked up in the
 * mappings at @time_ns; 0: it is in no file. @program_id is a program that
 * collector__get_program() has added. */
static int add_frame(struct collector *collector, const struct ap_frame *frame, __u32 program_id,
		     __u64 time_ns, __u32 *id)
{
	__u32 pid = collector->programs[program_id - 1].pid;
	struct module *module;
	__u64 offset = frame->offset;
	__u32 module_number;
	size_t index = 0;
	int err;

	if (frame->flags & AP_FRAME_PYTHON)
		return collector__add_python_frame(collector, offset, id);
	if (frame->module && frame->module <= collector->n_kernel_modules)
		index = collector->module_by_kernel_id[frame->module - 1];
	if (index) {
		index--;
	} else {
		err = frame->module || !time_ns
			      ? -ENOENT
			      : resolve_address(collector, pid, offset, time_ns, &index, &offset);
		if (err == -ENOENT)
			return add_unmapped_frame(collector, frame, program_id, pid, id);
		if (err)
			return err;
	}
	module = &collector->modules[index];
	*id = 0;
	if (module->is_inside)
		return 0;
	if (offset - module->loop.start < module->loop.bytes)
		return collector__add_python_frame(collector, 0, id);
	if (module->elf)
		elf_headers__offset_to_vaddr(module->elf, offset, &offset);
	err = collector__module_id(collector, module, &module_number);
	return err ? err
		   : profile__add_frame(collector->profile, module_number, offset, place_of(frame),
					id);
}

static bool is_good_end(enum ap_stack_end end)
{
	return end == AP_END_COMPLETE || end == AP_END_MAX_DEPTH;
}

/* Does what is_entry() of bpf/walk.bpf.c does, for a frame without a module. */
static bool is_entry(struct collector *collector, const struct ap_frame *frame, __u32 pid,
		     __u64 time_ns)
{
	struct loaded_table loaded;
	__u64 offset;
	size_t index;

	if (resolve_address(collector, pid, frame->offset, time_ns, &index, &offset) ||
	    table_loader__find(collector->tables, collector->modules[index].table, &loaded))
		return false;
	return offset - loaded.entry_offset < loaded.entry_size;
}

static int note_dumped(struct collector *collector, __u64 number, __u32 stack)
{
	if (!number || number > UINT32_MAX ||
	    array__reserve_zeroed(&collector->dumped, &collector->n_dumped, number,
				  sizeof(*collector->dumped)))
		return -ENOMEM;
	collector->dumped[number - 1].stack = stack;
	return 0;
}

/* Returns whether a frame without a module is in a function of --within. */
static bool is_within(struct collector *collector, const struct ap_frame *frame, __u32 pid,
		      __u64 time_ns)
{
	const struct ap_within *within;
	__u64 offset;
	size_t index;

	if (resolve_address(collector, pid, frame->offset, time_ns, &index, &offset))
		return false;
	within = collector->modules[index].within;
	offset -= !(frame->flags & AP_FRAME_INTERRUPTED);
	for (__u32 i = 0; within && i < within->n; i++)
		if (offset - within->ranges[i].start < within->ranges[i].size)
			return true;
	return false;
}

/* Decides an AP_FUNCTION_UNDECIDED dump by whether the unwound stack has a frame of a --within
 * function. */
static bool decide(struct collector *collector, const struct ap_dump_record *dump, __u32 pid,
		   const struct ap_frame *frames, int n, enum ap_stack_end end)
{
	for (int i = 0; i < n; i++) {
		if (!is_within(collector, &frames[i], pid, dump->time_ns))
			continue;
		collector->found_within++;
		return true;
	}
	if (end != AP_END_COMPLETE)
		collector->undecided++;
	return false;
}

int collector__add_calls(struct collector *collector, __u32 thread, __u32 stack, __u32 function,
			 const struct ap_count *sum, __u32 *id)
{
	struct profile_estimate estimate =
		sampling__estimate(&sum->estimate, collector->options.sample_unit_shift);
	struct profile_samples *samples;
	int err = profile__add_count(collector->profile, thread, stack, function, sum->calls,
				     sum->size_bytes, id);

	if (err || !collector->options.sample) {
		collector->attributed += err ? 0 : sum->calls;
		return err;
	}
	err = profile__get_samples(collector->profile, *id, &samples);
	if (err)
		return err;
	profile_estimate__add(&samples->of[PROFILE_SAMPLED_CALLS], &estimate);
	collector->attributed += sum->estimate.samples;
	return 0;
}

/* Unwinds the stack dump, and adds its stack and call to the profile. */
static int count_dump(struct collector *collector, const struct ap_dump_record *dump)
{
	struct ap_frame frames[AP_MAX_DEPTH];
	struct program *program = collector__get_program(collector, dump->key.process);
	__u32 ids[AP_MAX_DEPTH], n_ids = 0, stack, thread, count;
	struct ap_count one;
	enum ap_stack_end end;
	int n, err;

	if (!program)
		return -ENOMEM;
	collector__know_mappings(collector, dump->time_ns);
	end = dump->end;
	n = dump_unwinder__unwind(collector->unwinder, dump, program->pid, frames,
				  collector->options.max_depth, &end);
	if (!is_good_end(end) && n > 0 &&
	    is_entry(collector, &frames[n - 1], program->pid, dump->time_ns))
		end = AP_END_COMPLETE;
	if ((dump->key.function & AP_FUNCTION_UNDECIDED) &&
	    !decide(collector, dump, program->pid, frames, n, end))
		return 0;
	for (int i = 0; i < n; i++) {
		err = add_frame(collector, &frames[i], dump->key.process, dump->time_ns,
				&ids[n_ids]);
		if (err)
			return err;
		n_ids += ids[n_ids] != 0;
	}
	err = profile__add_stack(collector->profile, ids, n_ids, end, &stack);
	/* The call is counted in a record of its own. */
	if (!err && (dump->key.function & AP_FUNCTION_DUMPED))
		return note_dumped(collector, dump->key.stack, stack);
	if (!err)
		err = collector__key_thread(collector, &dump->key, &thread);
	if (err)
		return err;
	one = collector__count_one(collector, dump->weight, dump->size_bytes);
	return collector__add_calls(collector, thread, stack,
				    dump->key.function & ~AP_FUNCTION_UNDECIDED, &one, &count);
}

int collector__queue_dump(struct collector *collector, const struct ap_dump_record *dump,
			  size_t size)
{
	struct pending_dump *pending = malloc(sizeof(*pending) + size);

	if (!pending)
		return -ENOMEM;
	pending->next = NULL;
	memcpy(pending->record, dump, size);
	*collector->dumps_end = pending;
	collector->dumps_end = &pending->next;
	return 0;
}

bool collector__has_dumps(const struct collector *collector)
{
	return collector->dumps;
}

int collector__settle(struct collector *collector, size_t most)
{
	struct pending_dump *dump;
	int err = 0;

	for (; (dump = collector->dumps) && most && !err; most--) {
		collector->dumps = dump->next;
		err = count_dump(collector, (const void *)dump->record);
		free(dump);
	}
	if (collector->dumps)
		return err;
	collector->dumps_end = &collector->dumps;
	/* By the next call, mapping events of later times will have been read. */
	if (collector->settled_ns > DUMP_MOST_LATE_NS)
		process_maps__settle(collector->maps, collector->settled_ns - DUMP_MOST_LATE_NS);
	collector->settled_ns = clock__now_ns();
	/* Pending stack dumps no longer need the mappings of ended processes. */
	for (size_t i = 0; i < collector->n_ended; i++)
		process_maps__forget(collector->maps, collector->ended[i].pid,
				     collector->ended[i].time_ns);
	collector->n_ended = 0;
	return err;
}

static bool stack_has_hash(const void *owner, __u32 id, const void *key)
{
	const struct collector *collector = owner;

	return collector->stacks[id - 1].hash == *(const __u64 *)key;
}

int collector__handle_stack(struct collector *collector, const struct ap_stack_record *record)
{
	const struct ap_frame *frames = (const struct ap_frame *)(record + 1);
	__u32 ids[AP_MAX_DEPTH], n_ids = 0;
	struct known_stack *stack;
	struct program *program;
	int err;

	if (hash_table__find(&collector->stack_index, record->stack, stack_has_hash, collector,
			     &record->stack))
		return 0;
	program = collector__get_program(collector, record->process);
	if (!program)
		return -ENOMEM;
	for (__u32 i = 0; i < record->n_frames; i++) {
		/* The kernel resolved all frames but perhaps the last one of a stack that ended for
		 * want of a table. */
		bool unsure = record->end == AP_END_NO_TABLE && i + 1 == record->n_frames;

		err = add_frame(collector, &frames[i], record->process, unsure ? AT_ANY_TIME : 0,
				&ids[n_ids]);
		if (err)
			return err;
		n_ids += ids[n_ids] != 0;
	}
	if (array__reserve_zeroed(&collector->stacks, &collector->stacks_capacity,
				  collector->n_stacks + 1, sizeof(*collector->stacks)))
		return -ENOMEM;
	stack = &collector->stacks[collector->n_stacks];
	stack->hash = record->stack;
	err = profile__add_stack(collector->profile, ids, n_ids, record->end, &stack->id);
	if (err)
		return err;
	return hash_table__insert(&collector->stack_index, record->stack, ++collector->n_stacks);
}

__u32 collector__key_stack(struct collector *collector, const struct ap_count_key *key)
{
	__u32 index;

	if (key->function & AP_FUNCTION_DUMPED)
		return key->stack && key->stack <= collector->n_dumped
			       ? collector->dumped[key->stack - 1].stack
			       : 0;
	index = hash_table__find(&collector->stack_index, key->stack, stack_has_hash, collector,
				 &key->stack);
	return index ? collector->stacks[index - 1].id : 0;
}
