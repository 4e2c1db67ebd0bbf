// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump_unwind.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "dwarf_ops.h"
#include "go_table.h"
#include "process_maps.h"
#include "record_abi.h"

struct dump_unwinder {
	const struct process_maps *maps;
	dump_find_file_fn find_file;
	void *context;
	/* libdwfl's state for the last process; valid while its mappings do not change. */
	Dwfl *dwfl;
	__u32 pid;
	__u64 version; /* of the process's mappings */
};

/* The user-stack snapshot. */
struct dumped_stack {
	const __u8 *bytes;
	__u64 start;
	__u32 n_bytes;
	bool ran_out; /* a word beyond the snapshot was needed */
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

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	return -1; /* modules are reported with their files */
}

static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **debug_name)
{
	return -1; /* .eh_frame is in the file itself, not in a debug file */
}

/* Reports the file of one mapping to libdwfl; skips one that cannot be opened. */
static void report_mapping(const struct code_mapping *mapping, void *context)
{
	struct dump_unwinder *unwinder = context;
	__u64 bias;
	int fd = unwinder->find_file(mapping, unwinder->pid, &bias, unwinder->context);

	if (fd < 0)
		return;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0 &&
	    !dwfl_report_elf(unwinder->dwfl, mapping->path, mapping->path, fd, bias, true))
		close(fd);
}

/* Reports the process's current mappings to libdwfl. */
static int enter_process(struct dump_unwinder *unwinder, __u32 pid, __u64 time_ns)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = find_debuginfo,
	};
	__u64 version = process_maps__version(unwinder->maps, pid, time_ns);

	if (unwinder->dwfl && unwinder->pid == pid && unwinder->version == version)
		return 0;
	if (unwinder->dwfl)
		dwfl_end(unwinder->dwfl);
	unwinder->pid = pid;
	unwinder->version = version;
	unwinder->dwfl = dwfl_begin(&callbacks);
	if (!unwinder->dwfl)
		return -ENOMEM;
	dwfl_report_begin(unwinder->dwfl);
	process_maps__for_each(unwinder->maps, pid, time_ns, report_mapping, unwinder);
	dwfl_report_end(unwinder->dwfl, NULL, NULL);
	return 0;
}

struct dump_unwinder *dump_unwinder__new(const struct process_maps *maps,
					 dump_find_file_fn find_file, void *context)
{
	struct dump_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->maps = maps;
	unwinder->find_file = find_file;
	unwinder->context = context;
	return unwinder;
}

void dump_unwinder__free(struct dump_unwinder *unwinder)
{
	if (!unwinder)
		return;
	if (unwinder->dwfl)
		dwfl_end(unwinder->dwfl);
	free(unwinder);
}

static bool is_go(Dwfl_Module *module)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);

	return elf && go_table__is_go(elf);
}

/* The rules for @address, to be freed; NULL if there are none. */
static Dwarf_Frame *find_rules(const struct dump_unwinder *unwinder, __u64 address)
{
	Dwfl_Module *module = dwfl_addrmodule(unwinder->dwfl, address);
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi;

	cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	if (cfi && !dwarf_cfi_addrframe(cfi, address - bias, &frame))
		return frame;
	/* Go's .debug_frame does not describe the runtime's stack switches. */
	if (!module || is_go(module))
		return NULL;
	cfi = dwfl_module_dwarf_cfi(module, &bias);
	if (cfi && !dwarf_cfi_addrframe(cfi, address - bias, &frame))
		return frame;
	return NULL;
}

/*
 * Computes the caller's registers by @frame's rules. Callee-saved registers without a rule are
 * unchanged: libdw's ABI defaults (0.188 to date) name rax instead of rbx, so that dwfl_frame_*
 * cannot unwind a frame whose CFA is based on rbx.
 */
static int step(Dwarf_Frame *frame, struct dwarf_machine *machine)
{
	static const __u32 callee_saved = 1U << DWARF_RBX | 1U << DWARF_RBP | 0xf000;
	struct dwarf_machine caller = *machine;
	__u64 cfa;
	int err;

	err = dwarf_frame__cfa(frame, machine, &cfa);
	if (err)
		return err;
	caller.known = 0;
	for (int i = 0; i < DWARF_REGISTERS; i++) {
		err = dwarf_frame__caller_register(frame, machine, i, cfa, &caller.registers[i]);
		if (!err)
			caller.known |= 1U << i;
		else if (err == -ENOENT && (callee_saved & 1U << i))
			caller.known |= machine->known & 1U << i;
		else if (i == DWARF_RIP)
			return err;
	}
	if (!(caller.known & 1U << DWARF_RSP)) {
		caller.registers[DWARF_RSP] = cfa;
		caller.known |= 1U << DWARF_RSP;
	}
	*machine = caller;
	return 0;
}

int dump_unwinder__unwind(struct dump_unwinder *unwinder, const struct ap_dump_record *dump,
			  __u32 pid, struct ap_frame *frames, size_t max_frames,
			  enum ap_stack_end *end)
{
	struct dumped_stack stack = {
		.bytes = (const __u8 *)(dump + 1),
		.start = dump->registers[DWARF_RSP],
		.n_bytes = dump->n_bytes,
	};
	struct dwarf_machine machine = { .known = ~0U, .load = load, .context = &stack };
	/* Otherwise the innermost frame is the allocator's function, at the probe. */
	bool is_call = dump->is_in_caller;
	size_t n = 0;
	int err;

	err = enter_process(unwinder, pid, dump->time_ns);
	if (err)
		return err;
	memcpy(machine.registers, dump->registers, sizeof(machine.registers));
	if (is_call && max_frames)
		frames[n++] = (struct ap_frame){ .offset = machine.registers[DWARF_RIP] };
	for (;;) {
		_cleanup_(free_ptr) Dwarf_Frame *frame =
			find_rules(unwinder, machine.registers[DWARF_RIP] - is_call);
		bool is_signal = false;

		*end = dump->end;
		if (!frame)
			return n;
		dwarf_frame_info(frame, NULL, NULL, &is_signal);
		err = step(frame, &machine);
		if (err == -ENOENT || (!err && !machine.registers[DWARF_RIP])) {
			*end = AP_END_COMPLETE;
			return n;
		}
		if (err) {
			if (stack.ran_out)
				*end = AP_END_DUMP_SHORT;
			return n;
		}
		is_call = !is_signal;
		if (n == max_frames) {
			*end = AP_END_MAX_DEPTH;
			return n;
		}
		frames[n++] = (struct ap_frame){
			.flags = is_signal ? AP_FRAME_INTERRUPTED : 0,
			.offset = machine.registers[DWARF_RIP],
		};
	}
}
