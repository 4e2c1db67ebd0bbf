// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump_unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "elf_file.h"
#include "probes.h"
#include "process_maps.h"

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

struct report {
	Dwfl *dwfl;
	pid_t pid;
};

/* Reports the file of one mapping; one that cannot be opened is left out. */
static void report_mapping(const struct code_mapping *mapping, void *context)
{
	struct report *report = context;
	struct elf_file *elf;
	__u64 vaddr;
	int fd;

	if (mapping->path[0] != '/')
		return;
	fd = open_mapped_file(report->pid, mapping->start, mapping->end, mapping->path,
			      mapping->inode);
	if (fd < 0)
		return;
	if (elf_file__open(fd, mapping->path, &elf, NULL)) {
		close(fd);
		return;
	}
	if (!elf_file__offset_to_vaddr(elf, mapping->offset, &vaddr) &&
	    dwfl_report_elf(report->dwfl, mapping->path, mapping->path, fd, mapping->start - vaddr,
			    true))
		fd = -1; /* libdwfl's now */
	elf_file__free(elf);
	close_fd(&fd);
}

static void end_dwfl(Dwfl **dwfl)
{
	if (*dwfl)
		dwfl_end(*dwfl);
}

int dump__unwind(const struct ap_dump_record *dump, const struct process_maps *maps, __u32 pid,
		 struct ap_frame *frames, size_t max_frames, enum ap_stack_end *end)
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
	_cleanup_(end_dwfl) Dwfl *dwfl = dwfl_begin(&callbacks);
	struct unwinding unwinding = {
		.dump = dump,
		.bytes = (const __u8 *)(dump + 1),
		.sp = dump->registers[REGISTER_SP],
		.is_first = true,
		.frames = frames,
		.max_frames = max_frames,
	};
	struct report report = { .dwfl = dwfl, .pid = pid };
	int status;

	if (!dwfl)
		return -ENOMEM;
	dwfl_report_begin(dwfl);
	process_maps__for_each(maps, pid, report_mapping, &report);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!dwfl_attach_state(dwfl, NULL, 1, &thread_callbacks, &unwinding))
		return -ENOENT;
	status = dwfl_getthread_frames(dwfl, 1, take_frame, &unwinding);
	if (unwinding.is_cut)
		*end = AP_END_MAX_DEPTH;
	else if (!status)
		*end = AP_END_COMPLETE;
	else
		*end = unwinding.ran_out ? AP_END_DUMP_SHORT : dump->end;
	return unwinding.n_frames;
}
