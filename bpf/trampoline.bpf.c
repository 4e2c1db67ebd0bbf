// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the kernel's list of a thread's return probes. */
#include "arch.bpf.h"
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
	__u64 slot, found, distance;
};

static long look_at_return(__u32 index, struct return_search *search)
{
	struct return_instance *instance = search->instance;

	__u64 distance;

	if (!instance)
		return 1;
	distance = arch__return_distance(instance->stack, search->slot);
	if (distance < search->distance) {
		search->distance = distance;
		search->found = instance->orig_ret_vaddr;
	}
	search->instance = instance->next;
	return !distance;
}

__noinline __u64 trampoline__real(__u64 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_search search = {
		.instance = task->utask->return_instances,
		.slot = slot,
		.distance = ~0ULL,
	};

	bpf_loop(TRAMPOLINE_MAX_CALLS, look_at_return, &search, 0);
	return search.found;
}

/* Maximum number of return addresses restored in a stack dump; each costs the verifier some hundred
 * steps. */
#define DUMP_MAX_RESTORED 16

/* State of the bpf_loop() over the words of a stack dump. */
struct restoration {
	struct stack_copy *copy;
	__u64 sp, trampoline, mask;
	__u32 n;
};

static long restore_word(__u32 index, struct restoration *restoration)
{
	__u64 offset = index * sizeof(__u64), *word;

	if (offset >= restoration->n || offset >= AP_MAX_STACK_DUMP)
		return 1;
	word = (__u64 *)(restoration->copy->bytes + offset);
	if (arch__code_address(*word, restoration->mask) == restoration->trampoline)
		*word = trampoline__real(restoration->sp + offset);
	return 0;
}

/* Any word of a frame may be its return address. */
static __always_inline void restore_words(struct stack_copy *copy, __u64 sp, __u32 n)
{
	struct restoration restoration = {
		.copy = copy,
		.sp = sp,
		.trampoline = trampoline__address(),
		.mask = arch__code_mask(),
		.n = n,
	};

	if (restoration.trampoline)
		bpf_loop(AP_MAX_STACK_DUMP / sizeof(__u64), restore_word, &restoration, 0);
}

__noinline int trampoline__restore(struct stack_copy *copy, __u64 sp, __u32 n)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct return_instance *instance = task->utask->return_instances;

	if (ARCH_HAS_LINK && copy && instance) {
		restore_words(copy, sp, n);
		return 0;
	}
	for (int i = 0; i < DUMP_MAX_RESTORED && copy && instance; i++) {
		__u64 offset = instance->stack - sp;

		barrier_var(offset);
		if (offset < n && offset <= AP_MAX_STACK_DUMP && !(offset & 7))
			*(__u64 *)(copy->bytes + offset) = instance->orig_ret_vaddr;
		instance = instance->next;
	}
	return 0;
}
