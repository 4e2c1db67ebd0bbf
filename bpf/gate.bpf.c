// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program that opens and closes the measured window of a process (docs/windows.md). */
#include "gate.bpf.h"
#include "kernel.h"

struct ap_gate gate;

/* The program at the entries of the window's start and stop functions, and of those of --within.
 * The probe may hit more than once per call, which is harmless, since it only sets flags. */
SEC("uprobe")
int gate_event(struct pt_regs *ctx)
{
	struct process *process = process__current();

	kernel_stack__use(ctx);
	if (!process)
		return 0;
	switch (bpf_get_attach_cookie(ctx)) {
	case AP_GATE_START:
		process->closed = 0;
		gate.started = 1;
		break;
	case AP_GATE_STOP:
		process->closed = 1;
		break;
	case AP_GATE_ENTER:
		/* The flag is written only once, since each hit reads this cache line. */
		if (!LOAD(gate.entered) && gate__is_open(process))
			gate.entered = 1;
		break;
	}
	return 0;
}
