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
#include "process_maps.h"

/* One dump under way. */
struct unwinding {
	const struct ap_dump_record *dump;
	const __u8 *bytes;
	__u64 sp;
	bool ran_out; /* of bytes */
	bool is_first;
	bool is_cut;
	struct ap_frame *frames;
	size_t n_frames, max_frames;
};

struct dump_unwinder {
	const struct process_maps *maps;
	dump_find_file_fn find_file;
	void *context;
	/* What libdwfl knows of the process that was last; good as long as its mappings are. */
	Dwfl *dwfl;
	__u32 pid;
	__u64 version; /* of the process's mappings */
	struct unwinding now;
};

/* DWARF's number of the stack pointer on x86-64. */
#define REGISTER_SP 7
#define REGISTER_PC 16

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	/* One thread, given once. */
	if (*thread)
		return 0;
	*thread = context;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
	*thread = context;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *value, void *context)
{
	struct unwinding *unwinding = context;
	__u64 offset = address - unwinding->sp;

	if (offset >= unwinding->dump->n_bytes ||
	    unwinding->dump->n_bytes - offset < sizeof(*value)) {
		if (address > unwinding->sp)
			unwinding->ran_out = true;
		return false;
	}
	memcpy(value, unwinding->bytes + offset, sizeof(*value));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct unwinding *unwinding = context;
	Dwarf_Word registers[AP_DUMP_REGISTERS];

	for (int i = 0; i < AP_DUMP_REGISTERS; i++)
		registers[i] = unwinding->dump->registers[i];
	dwfl_thread_state_register_pc(thread, unwinding->dump->registers[REGISTER_PC]);
	return dwfl_thread_state_registers(thread, 0, AP_DUMP_REGISTERS, registers);
}

static int take_frame(Dwfl_Frame *state, void *context)
{
	struct unwinding *unwinding = context;
	bool is_activation;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(state, &pc, &is_activation))
		return DWARF_CB_ABORT;
	/* The innermost is the allocator itself. */
	if (unwinding->is_first) {
		unwinding->is_first = false;
		return DWARF_CB_OK;
	}
	if (unwinding->n_frames == unwinding->max_frames) {
		unwinding->is_cut = true;
		return DWARF_CB_ABORT;
	}
	unwinding->frames[unwinding->n_frames++] = (struct ap_frame){
		.flags = is_activation ? AP_FRAME_INTERRUPTED : 0,
		.offset = pc,
	};
	return DWARF_CB_OK;
}

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	return -1; /* every module was reported with its file */
}

static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **debug_name)
{
	return -1; /* .eh_frame is in the file itself */
}

/* Reports the file of one mapping; one that cannot be had is left out. */
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

/* Makes libdwfl know the process's files as they are mapped now. */
static int enter_process(struct dump_unwinder *unwinder, __u32 pid)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks thread_callbacks = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_memory,
		.set_initial_registers = set_registers,
	};
	__u64 version = process_maps__version(unwinder->maps, pid);

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
	process_maps__for_each(unwinder->maps, pid, report_mapping, unwinder);
	dwfl_report_end(unwinder->dwfl, NULL, NULL);
	if (dwfl_attach_state(unwinder->dwfl, NULL, 1, &thread_callbacks, &unwinder->now))
		return 0;
	dwfl_end(unwinder->dwfl);
	unwinder->dwfl = NULL;
	return -ENOENT;
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

/* Whether the last frame's rule says that nothing called it: an undefined return address. */
static bool ends_at_outermost(const struct dump_unwinder *unwinder)
{
	const struct unwinding *now = &unwinder->now;
	_cleanup_(free_ptr) Dwarf_Frame *frame = NULL;
	Dwarf_Op memory[3], *ops = NULL;
	const struct ap_frame *last;
	Dwarf_Addr bias, address;
	Dwfl_Module *module;
	Dwarf_CFI *cfi;
	size_t n_ops;

	if (!now->n_frames)
		return false;
	last = &now->frames[now->n_frames - 1];
	address = last->offset - !(last->flags & AP_FRAME_INTERRUPTED);
	module = dwfl_addrmodule(unwinder->dwfl, address);
	cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	if (!cfi || dwarf_cfi_addrframe(cfi, address - bias, &frame))
		return false;
	/* No operations stand for "undefined", or, without a place for them, for "the same". */
	return !dwarf_frame_register(frame, REGISTER_PC, memory, &ops, &n_ops) && !n_ops &&
	       ops == memory;
}

int dump_unwinder__unwind(struct dump_unwinder *unwinder, const struct ap_dump_record *dump,
			  __u32 pid, struct ap_frame *frames, size_t max_frames,
			  enum ap_stack_end *end)
{
	int err;

	err = enter_process(unwinder, pid);
	if (err)
		return err;
	unwinder->now = (struct unwinding){
		.dump = dump,
		.bytes = (const __u8 *)(dump + 1),
		.sp = dump->registers[REGISTER_SP],
		.is_first = true,
		.frames = frames,
		.max_frames = max_frames,
	};
	/* Its result does not tell the outermost frame from one that it could not leave. */
	dwfl_getthread_frames(unwinder->dwfl, 1, take_frame, &unwinder->now);
	if (unwinder->now.is_cut)
		*end = AP_END_MAX_DEPTH;
	else if (ends_at_outermost(unwinder))
		*end = AP_END_COMPLETE;
	else
		*end = unwinder->now.ran_out ? AP_END_DUMP_SHORT : dump->end;
	return unwinder->now.n_frames;
}
