// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * In a process whose calls src/inside counts, these programs find calls of an allocator's functions
 * that have not come through the library's stubs. A thread that enters a stub goes on to a function.
 * The programs have their own object and maps, since no others run in such a measurement.
 */
#include "kernel.h"
#include "arch.bpf.h"
#include "bypass_abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct thread {
	__u64 n_entered; /* how many stubs it has entered without a function afterwards */
	/* Of the last call that came through a stub. If the function jumps to another one, that is
	 * no further call. */
	__u64 sp, return_address;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BYPASS_THREADS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BYPASS_CALLERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u64);
} callers SEC(".maps");

/* Return addresses of calls that an allocator in a program makes itself; written by allocprof. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BYPASS_INTERNAL);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u8);
} internal SEC(".maps");

struct bypass_state bypass;

/* Returns NULL if there is no room. */
static struct thread *current_thread(bool *is_new)
{
	static const struct thread none;
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct thread *thread = bpf_map_lookup_elem(&threads, &tid);

	*is_new = !thread;
	if (thread)
		return thread;
	bpf_map_update_elem(&threads, &tid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &tid);
}

SEC("uprobe")
int at_stub(struct pt_regs *ctx)
{
	struct thread *thread;
	bool is_new;

	kernel_stack__use(ctx);
	if (!LOAD(bypass.is_on))
		return 0;
	thread = current_thread(&is_new);
	if (thread)
		thread->n_entered++;
	return 0;
}

/* Returns whether the address is in the code of an allocator, whose own calls are not counted. */
static bool is_of_allocator(__u64 address)
{
	for (int i = 0; i < BYPASS_RANGES; i++)
		if (address - bypass.ranges[i].start < bypass.ranges[i].size)
			return true;
	return bpf_map_lookup_elem(&internal, &address);
}

static void note_caller(__u64 return_address)
{
	const __u64 one = 1;
	__u64 *n = bpf_map_lookup_elem(&callers, &return_address);

	__sync_fetch_and_add(&bypass.n_bypassed, 1);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&callers, &return_address, &one, BPF_NOEXIST);
}

/* The probe's cookie is how many bytes the stack pointer is below its value at the function's entry. */
SEC("uprobe")
int at_function(struct pt_regs *ctx)
{
	__u64 sp = arch__sp(ctx) + bpf_get_attach_cookie(ctx), return_address = arch__link();
	struct thread *thread;
	bool is_new;

	kernel_stack__use(ctx);
	if (!LOAD(bypass.is_on))
		return 0;
	thread = current_thread(&is_new);
	if (!thread || (!ARCH_HAS_LINK &&
			bpf_probe_read_user(&return_address, sizeof(return_address), (void *)sp))) {
		__sync_fetch_and_add(&bypass.n_unread, 1);
		return 0;
	}
	if (thread->n_entered) {
		thread->n_entered--;
		thread->sp = sp;
		thread->return_address = return_address;
		__sync_fetch_and_add(&bypass.n_passed, 1);
		return 0;
	}
	/* The thread may have entered the stub before the probes were there. */
	if (is_new)
		return 0;
	if ((thread->sp == sp && thread->return_address == return_address) ||
	    is_of_allocator(return_address))
		return 0;
	note_caller(return_address);
	return 0;
}
