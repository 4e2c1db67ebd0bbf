// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the kernel's list of a thread's return probes. */
#include "trampoline.bpf.h"

#include "maps.bpf.h"

__noinline __u64 trampoline__address(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xol_area *area = task->mm->uprobes_state.xol_area;

	return area ? area->vaddr : 0;
}

/* Maximum number of the thread's probed calls to search; the kernel allows 64. */
#define TRAMPOLINE_MAX_CALLS 64

/* State of the bpf_loop() over the list. An unrolled loop would cost the verifier 20 us for each pointer that it reads. */
struct return_search {
	struct return_instance *instance; /* the thread's last one, then those before it */
	__u64 slot, found;
};

static long look_at_return(__u32 index, struct return_search *search)
{
	struct return_instance *instance = search->instance;

	if (!instance)
		return 1;
	if (instance->stack == search->slot) {
		search->found = instance->orig_ret_vaddr;
		return 1;
	}
	search->instance = instance->next;
	return 0;
}

__noinline __u64 trampoline__real(__u64 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_search search = {
		.instance = task->utask->return_instances,
		.slot = slot,
	};

	bpf_loop(TRAMPOLINE_MAX_CALLS, look_at_return, &search, 0);
	return search.found;
}

/* Maximum number of return addresses restored in a stack dump; each costs the verifier some hundred
 * steps. */
#define DUMP_MAX_RESTORED 16

__noinline int trampoline__restore(struct stack_copy *copy, __u64 sp, __u32 n)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *instance = task->utask->return_instances;

	for (int i = 0; i < DUMP_MAX_RESTORED && copy && instance; i++) {
		__u64 offset = instance->stack - sp;

		barrier_var(offset);
		if (offset < n && offset <= AP_MAX_STACK_DUMP && !(offset & 7))
			*(__u64 *)(copy->bytes + offset) = instance->orig_ret_vaddr;
		instance = instance->next;
	}
	return 0;
}
