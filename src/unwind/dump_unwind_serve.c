// SPDX-License-Identifier: GPL-3.0-or-later
/* Unwinds stack dumps in a worker. */
#include "dump_unwind_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cfi_frames.h"
#include "record_abi.h"
#include "worker.h"

/* The stack dump. */
struct dumped_stack {
	const __u8 *bytes;
	__u64 start;
	__u32 n_bytes;
	bool ran_out; /* a word beyond the stack dump was needed */
};

static bool load(void *context, __u64 address, __u64 *value)
{
	struct dumped_stack *stack = context;
	__u64 offset = address - stack->start;

	if (offset >= stack->n_bytes || stack->n_bytes - offset < sizeof(*value)) {
		stack->ran_out |= address > stack->start;
		return false;
	}
	memcpy(value, stack->bytes + offset, sizeof(*value));
	return true;
}

static void begin(struct dump_server *server)
{
	for (size_t i = 0; i < server->n_files; i++)
		cfi_frames__free(server->files[i].frames);
	server->n_files = 0;
	server->has_begun = true;
}

/* Files that cannot be read are skipped. */
static int add_files(struct dump_server *server, struct worker_call *call)
{
	if (!server->has_begun)
		return -EINVAL;
	for (size_t i = 0; i < call->n_fds; i++) {
		struct dump_file file = { .bias = wire__get_u64(&call->request) };

		file.start = wire__get_u64(&call->request);
		file.end = wire__get_u64(&call->request);
		wire__get_string(&call->request, PATH_MAX);
		if (cfi_frames__open(call->fds[i], &file.frames))
			continue;
		if (array__reserve(&server->files, &server->files_room, server->n_files + 1,
				   sizeof(*server->files))) {
			cfi_frames__free(file.frames);
			return -ENOMEM;
		}
		server->files[server->n_files++] = file;
	}
	return 0;
}

/* Stores the rules for @address. Returns false if there are none. */
static bool find_rules(const struct dump_server *server, __u64 address, struct frame_rules *rules)
{
	for (size_t i = 0; i < server->n_files; i++) {
		const struct dump_file *file = &server->files[i];

		if (address >= file->start && address < file->end &&
		    cfi_frames__find(file->frames, address - file->bias, rules))
			return true;
	}
	return false;
}

/* Computes the caller's registers. Callee-saved registers without a rule are unchanged. The return address is known in its
 * register only until the next call, which is why it has a rule in all frames but the innermost, and an interrupted one. */
static int step(const struct frame_rules *rules, struct dwarf_machine *machine)
{
	struct dwarf_machine caller = *machine;
	__u64 cfa;
	int err;

	err = frame_rules__cfa(rules, machine, &cfa);
	if (err)
		return err;
	caller.known = 0;
	for (int i = 0; i < DWARF_REGISTERS; i++) {
		err = frame_rules__caller_register(rules, machine, i, cfa, &caller.registers[i]);
		if (!err)
			caller.known |= 1ULL << i;
		else if (rules->registers[i].how == FRAME_UNSPECIFIED &&
			 (dwarf_registers.kept & 1ULL << i))
			caller.known |= machine->known & 1ULL << i;
		else if ((unsigned int)i == dwarf_registers.return_address)
			return err;
	}
	if (!(caller.known & 1ULL << dwarf_registers.return_address))
		return -ENODATA;
	if (!(caller.known & 1ULL << dwarf_registers.sp)) {
		caller.registers[dwarf_registers.sp] = cfa;
		caller.known |= 1ULL << dwarf_registers.sp;
	}
	caller.known &= ~(1ULL << dwarf_registers.return_address);
	caller.registers[dwarf_registers.pc] =
		caller.registers[dwarf_registers.return_address] & dwarf_registers.address;
	caller.known |= 1ULL << dwarf_registers.pc;
	*machine = caller;
	return 0;
}

/* Does the work of dump_unwinder__unwind() in the worker. */
static int unwind(const struct dump_server *server, const struct dump_question *question,
		  const void *bytes, struct ap_frame *frames, enum ap_stack_end *end)
{
	struct dumped_stack stack = {
		.bytes = bytes,
		.start = question->registers[dwarf_registers.sp],
		.n_bytes = question->n_bytes,
	};
	struct dwarf_machine machine = { .known = ~0ULL, .load = load, .context = &stack };
	/* If not in the caller, the innermost frame is the allocator's function, at the probe. */
	bool is_call = question->is_in_caller;
	size_t n = 0, max_frames = question->max_frames;
	int err;

	memcpy(machine.registers, question->registers, sizeof(machine.registers));
	if (is_call && max_frames)
		frames[n++] = (struct ap_frame){ .offset = machine.registers[dwarf_registers.pc] };
	for (;;) {
		struct frame_rules rules;

		*end = question->end;
		if (!find_rules(server, machine.registers[dwarf_registers.pc] - is_call, &rules))
			return n;
		err = step(&rules, &machine);
		if (err == -ENOENT || (!err && !machine.registers[dwarf_registers.pc])) {
			*end = AP_END_COMPLETE;
			return n;
		}
		if (err) {
			if (stack.ran_out)
				*end = AP_END_DUMP_SHORT;
			return n;
		}
		is_call = !rules.is_signal;
		if (n == max_frames) {
			*end = AP_END_MAX_DEPTH;
			return n;
		}
		frames[n++] = (struct ap_frame){
			.flags = rules.is_signal ? AP_FRAME_INTERRUPTED : 0,
			.offset = machine.registers[dwarf_registers.pc],
		};
	}
}

static int unwind_one(struct dump_server *server, struct worker_call *call)
{
	const void *header = wire__get_bytes(&call->request, sizeof(struct dump_question)), *bytes;
	struct ap_frame frames[AP_MAX_DEPTH];
	struct dump_question question;
	enum ap_stack_end end;
	int n;

	if (!header)
		return -EINVAL;
	memcpy(&question, header, sizeof(question));
	bytes = wire__get_bytes(&call->request, question.n_bytes);
	if (!bytes || question.max_frames > AP_MAX_DEPTH || !server->has_begun)
		return -EINVAL;
	n = unwind(server, &question, bytes, frames, &end);
	if (n < 0)
		return n;
	wire__put_u32(&call->reply, end);
	wire__put_u64(&call->reply, n);
	wire__put_bytes(&call->reply, frames, n * sizeof(*frames));
	return 0;
}

int dump_server__serve(struct worker_call *call)
{
	struct dump_server *server = call->context;

	switch (wire__get_u32(&call->request)) {
	case DUMP_BEGIN:
		begin(server);
		return 0;
	case DUMP_FILES:
		return add_files(server, call);
	case DUMP_UNWIND:
		return unwind_one(server, call);
	}
	return -EINVAL;
}
