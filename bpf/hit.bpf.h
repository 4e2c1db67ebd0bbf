/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a hit of a probe: its arguments, and whether the application or the allocator itself made
 * the call (docs/semantics.md, "internal"). Also knows the calls beneath which no other counts.
 */
#ifndef ALLOCPROF_HIT_BPF_H
#define ALLOCPROF_HIT_BPF_H

#include "arch.bpf.h"
#include "fault.bpf.h"
#include "kernel.h"
#include "maps.bpf.h"
#include "sites.bpf.h"
#include "trampoline.bpf.h"

/*
 * Calls of AP_NESTING_OUTERMOST definitions, beneath which no other allocator call counts. A thread has
 * a note here from the entry of such a function to its return.
 */

struct nest {
	__u64 sp; /* at the entry, where it points to the return address */
	__u64 return_address;
	__u32 site;
	__u32 pad; /* 0 */
};

/* Keyed by thread; preallocated like tail_calls. */
DECLARE_MAP(nests, HASH, 16384, 0, __u64, struct nest);

/* Returns whether @sp is on the thread's alternate signal stack (sigaltstack(2)). */
static __always_inline bool sp__is_on_signal_stack(__u64 sp)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return sp - task->sas_ss_sp < task->sas_ss_size;
}

/*
 * Returns 1 if the hit is beneath the call that its thread has a note of. Since a longjmp leaves
 * notes behind, the stack is read: while the call is under way, its return address, or a return
 * probe's trampoline, is still there. A function that the call tail-called has the same SP. If that
 * function @ends the call, as malloc does, it returns in its place, and the note is deleted.
 */
int nest__holds(__u64 sp, __u64 return_address, __u32 site, __u32 ends);

/* Notes the call, or counts it as not noted if there is no room. Returns 0. */
int nest__enter(__u64 sp, __u64 return_address, __u32 site);

/* Called when a function returns. @sp is SP after the return. */
static __always_inline void nest__leave(__u64 sp)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct nest *nest = bpf_map_lookup_elem(&nests, &thread);

	if (nest && arch__caller_sp(nest->sp) <= sp &&
	    sp__is_on_signal_stack(nest->sp) == sp__is_on_signal_stack(sp))
		bpf_map_delete_elem(&nests, &thread);
}

/* Note of a tail call that a hit's arguments force: the thread's next hit of @function with this SP
 * and return address is internal. */
struct tail_call {
	__u64 sp;
	__u64 return_address;
	__u32 function;
	__u32 pad;
};

/* Keyed by thread. Preallocated, since allocation may fail where the kernel cannot sleep. An entry
 * lives only until the thread's next hit, so the size limits the number of threads between two
 * such hits. */
DECLARE_MAP(tail_calls, HASH, 16384, 0, __u64, struct tail_call);

/* Note of a hit whose function may tail-call another probed function of an allocator with an
 * interface of its own. The thread's next hit is that tail call if SP, return address and arguments
 * match. */
struct jump {
	__u64 sp;
	__u64 return_address;
	__u64 pointer;
	__u64 size_bytes;
	__u32 site;	  /* site of this hit; a function does not tail-call itself */
	__u32 definition; /* site__definition(); a hit of another definition is a call of its own */
};

/* Keyed by thread; preallocated like tail_calls. */
DECLARE_MAP(jumps, HASH, 16384, 0, __u64, struct jump);

/* The alignment of every malloc on 64-bit targets (2 * sizeof(size_t)). Functions for aligned
 * blocks tail-call malloc if no larger one is asked for. */
#define MALLOC_ALIGNMENT 16

struct hit {
	__u64 sp, fp;
	__u64 return_address; /* 0: it could not be read */
	__u64 pointer;	      /* old block of realloc or free */
	__u64 size_bytes;     /* requested; 0 for a product that overflows */
	__u32 site;
	__u32 weight;	/* calls that this one stands for; 1 without sampling */
	__u8 function;	/* enum ap_function */
	__u8 overflows; /* 1: the product of count and size overflows */
	__u8 internal : 1;
	__u8 recorded : 1; /* calls of the site are recorded, and not only needed to classify others */
	__u8 aligned : 1; /* the requested alignment exceeds MALLOC_ALIGNMENT */
	/* The thread is not at a function's entry but at a system call, fault or USDT probe; sp and
	 * return_address are as if it had called a function there. */
	__u8 in_caller : 1;
	/* The program runs in the middle of a page fault, with a lock of the mappings held and, on
	 * newer kernels, interrupts disabled: it must not wait. */
	__u8 locked : 1;
	__u8 weighed : 1; /* a probe has told the weight, so nothing is drawn */
	__u8 regions;	  /* set of open regions; regions__count() sets it */
	__u8 result;	  /* enum ap_result */
	__u8 blocks;	  /* as in struct ap_site */
};

/* Returns @count * @size; on overflow returns 0 and sets *@overflows. */
static __always_inline __u64 product(__u64 count, __u64 size, __u8 *overflows)
{
	__u64 limit;

	if (((count | size) >> 32) && count) {
		limit = ~0ULL / count;
		barrier_var(
			/* Without this bound clang makes it a 128-bit product, which BPF does not
			 * have. */
			limit);
		if (size > limit) {
			*overflows = 1;
			return 0;
		}
	}
	return count * size;
}

static __always_inline void hit__read_arguments(struct hit *hit, const struct pt_regs *regs)
{
	switch (hit->function) {
	case AP_MALLOC:
	case AP_VALLOC:
	case AP_PVALLOC:
		hit->size_bytes = arch__arg1(regs);
		break;
	case AP_CALLOC:
		hit->size_bytes = product(arch__arg1(regs), arch__arg2(regs), &hit->overflows);
		break;
	case AP_REALLOC:
		hit->pointer = arch__arg1(regs);
		hit->size_bytes = arch__arg2(regs);
		break;
	case AP_REALLOCARRAY:
		hit->pointer = arch__arg1(regs);
		hit->size_bytes = product(arch__arg2(regs), arch__arg3(regs), &hit->overflows);
		break;
	case AP_POSIX_MEMALIGN:
		hit->aligned = arch__arg2(regs) > MALLOC_ALIGNMENT;
		hit->size_bytes = arch__arg3(regs);
		break;
	case AP_ALIGNED_ALLOC:
	case AP_MEMALIGN:
		hit->aligned = arch__arg1(regs) > MALLOC_ALIGNMENT;
		hit->size_bytes = arch__arg2(regs);
		break;
	case AP_FREE:
		hit->pointer = arch__arg1(regs);
		break;
	}
}

/* Returns the value of register number @n, from 1, or 0. */
__u64 nth_of(__u64 first, __u64 second, __u64 third, __u64 fourth, __u32 n);

/* Returns the argument; @number is as in struct ap_site. */
static __always_inline __u64 argument(const struct pt_regs *regs, __u8 number)
{
	if (number > 4)
		return nth_of(arch__arg5(regs), arch__arg6(regs), arch__result(regs), 0,
			      number - 4);
	return nth_of(arch__arg1(regs), arch__arg2(regs), arch__arg3(regs), arch__arg4(regs),
		      number);
}

/* Returns the word at @address, or 0 if it cannot be read. For programs in the section
 * "sleepable". Not inlined, so that the verifier sees little of it in each of its callers. */
static __noinline __u64 word_at(__u64 address)
{
	__u64 word = 0;

	if (address && word__read(&word, address, true))
		stat__add(AP_STAT_CALLS_UNREAD);
	return word;
}

static __always_inline void hit__read_described_arguments(struct hit *hit,
							  const struct ap_site *site,
							  const struct pt_regs *regs)
{
	__u64 count;

	hit->result = site->result;
	hit->blocks = site->blocks;
	hit->pointer = argument(regs, site->pointer_argument);
	/* A site has a size argument or a fixed size, so one of the two is 0. */
	hit->size_bytes = argument(regs, site->size_argument) + site->size_bytes;
	if (site->behind & AP_BEHIND_POINTER)
		hit->pointer = word_at(hit->pointer);
	if (site->behind & AP_BEHIND_SIZE)
		hit->size_bytes = word_at(hit->size_bytes);
	if (!site->count_argument)
		return;
	count = argument(regs, site->count_argument);
	if (site->behind & AP_BEHIND_COUNT)
		count = word_at(count);
	hit->size_bytes = product(count, hit->size_bytes, &hit->overflows);
}

/* Returns whether the thread's previous hit noted this one as its tail call; deletes the note. */
static __always_inline bool hit__is_announced(const struct hit *hit, __u64 thread)
{
	struct tail_call *note = bpf_map_lookup_elem(&tail_calls, &thread);

	if (!note || note->function != hit->function || note->sp != hit->sp ||
	    note->return_address != hit->return_address)
		return false;
	bpf_map_delete_elem(&tail_calls, &thread);
	return true;
}

/* Returns the function that the hit's arguments force this one to tail-call, or -1. */
static __always_inline int hit__forced_tail_call(const struct hit *hit, const struct ap_site *site)
{
	if (site->tail_calls & (1 << AP_REALLOC)) {
		if (hit->function == AP_REALLOCARRAY && !hit->overflows)
			return AP_REALLOC;
	}
	if (site->tail_calls & (1 << AP_MALLOC)) {
		if (hit->function == AP_REALLOC && !hit->pointer)
			return AP_MALLOC;
		if ((hit->function == AP_ALIGNED_ALLOC || hit->function == AP_MEMALIGN) &&
		    !hit->aligned)
			return AP_MALLOC;
	}
	return -1;
}

/* Deletes the notes of a thread that was killed before its next hit. */
static __always_inline void hit__end_thread(__u64 thread)
{
	bpf_map_delete_elem(&tail_calls, &thread);
	bpf_map_delete_elem(&jumps, &thread);
	if (config.outermost)
		bpf_map_delete_elem(&nests, &thread);
}

/*
 * Sets hit->internal if the hit is
 * (a) a call from the allocator's own code: its return address is in the set that user space found
 * by disassembly; or
 * (b) the tail call that the thread's previous hit noted.
 * A call through the PLT from elsewhere in libc (strdup's malloc) is not internal.
 */
static __always_inline void hit__classify(struct hit *hit, const struct ap_site *site,
					  const struct pt_regs *regs)
{
	__u64 thread = bpf_get_current_pid_tgid();
	__u64 bias = arch__ip(regs) - site->probe_vaddr;
	__u64 vaddr = hit->return_address - bias;
	int next;

	if (vaddr >= site->text_start && vaddr < site->text_end) {
		struct ap_internal_return key = { .vaddr = vaddr, .allocator = site->allocator };

		if (bpf_map_lookup_elem(&internal_returns, &key))
			hit->internal = 1;
	}
	if (!hit->internal && site->tail_called && hit__is_announced(hit, thread))
		hit->internal = 1;

	next = hit__forced_tail_call(hit, site);
	if (next >= 0) {
		struct tail_call note = {
			.sp = hit->sp,
			.return_address = hit->return_address,
			.function = next,
		};

		if (bpf_map_update_elem(&tail_calls, &thread, &note, BPF_ANY) && !hit->internal) {
			/* Without a note the tail call will be counted as a call, so this hit is
			 * not. */
			hit->internal = 1;
			stat__add(AP_STAT_RELABELLED);
		}
	}
}

/* Identifies a defined allocator; 0 for all built-in allocators. */
static __always_inline __u32 site__definition(const struct ap_site *site)
{
	return site->nesting ? site->allocator + 1 : 0;
}

/* By how many bytes the called function's size may be smaller: the Boehm collector adds no byte
 * behind the end of uncollectable blocks. */
#define JUMP_BYTES_LOST 1

/* Returns whether the thread's previous hit may have ended in a tail call that is this hit. The
 * called function may get a rounded-up size. */
static __always_inline bool hit__was_jumped_to(const struct hit *hit, const struct ap_site *site,
					       __u64 thread)
{
	struct jump *jump = bpf_map_lookup_elem(&jumps, &thread);
	bool was;

	if (!jump)
		return false;
	was = jump->definition == site__definition(site) && jump->site != hit->site &&
	      jump->sp == hit->sp && jump->return_address == hit->return_address &&
	      jump->pointer == hit->pointer &&
	      ((AP_FREEING >> hit->function & 1) ||
	       (__s64)(jump->size_bytes - hit->size_bytes) <= JUMP_BYTES_LOST);
	bpf_map_delete_elem(&jumps, &thread);
	return was;
}

/* Works like hit__classify(), for allocators whose functions may tail-call each other with any
 * arguments. */
static __always_inline void hit__classify_described(struct hit *hit, const struct ap_site *site,
						    __u64 ip)
{
	__u64 thread = bpf_get_current_pid_tgid();
	__u64 bias = ip - site->probe_vaddr;
	__u64 vaddr = hit->return_address - bias;

	if (vaddr >= site->text_start && vaddr < site->text_end) {
		struct ap_internal_return key = { .vaddr = vaddr, .allocator = site->allocator };

		if (bpf_map_lookup_elem(&internal_returns, &key))
			hit->internal = 1;
	}
	if (hit__was_jumped_to(hit, site, thread) || site->own)
		hit->internal = 1;
	if (!hit->internal && site->tail_called && hit__is_announced(hit, thread))
		hit->internal = 1;
	if (site->may_jump) {
		struct jump jump = {
			.sp = hit->sp,
			.return_address = hit->return_address,
			.pointer = hit->pointer,
			.size_bytes = hit->size_bytes,
			.site = hit->site,
			.definition = site__definition(site),
		};

		if (bpf_map_update_elem(&jumps, &thread, &jump, BPF_ANY) && !hit->internal) {
			/* Without a note the tail call will be counted as a call, so this hit is
			 * not. */
			if (site->must_jump)
				hit->internal = 1;
			stat__add(AP_STAT_RELABELLED);
		}
	}
}

/* Not inlined, so that its stack frame is not live during the walk. */
static __noinline int hit__read_described(struct hit *hit, const struct ap_site *site,
					  const struct pt_regs *regs)
{
	hit__read_described_arguments(hit, site, regs);
	if (site->blocks == AP_ONLY_COUNTED && site->nesting == AP_NESTING_NONE)
		return 0;
	hit__classify_described(hit, site, arch__ip(regs));
	if (!config.outermost || site->nesting == AP_NESTING_BESIDE)
		return 0;
	if (nest__holds(hit->sp, hit->return_address, hit->site, site->nesting == AP_NESTING_NONE))
		hit->internal = 1;
	else if (site->nesting == AP_NESTING_OUTERMOST && !hit->internal)
		nest__enter(hit->sp, hit->return_address, hit->site);
	return 0;
}

/* Returns @address or, if that is the trampoline of a return probe, which allocprof or another
 * tracer has set, the original return address. */
static __always_inline __u64 hit__real_return(const struct hit *hit, __u64 address,
					      __u64 trampoline)
{
	return address && address == trampoline ? trampoline__real(arch__return_slot(hit->sp))
						: address;
}

/* Finds the return address alone, for programs in the section "sleepable" that read no more of the stack. */
static __always_inline __u64 hit__return_address(const struct hit *hit)
{
	__u64 address = 0;

	if (ARCH_HAS_LINK)
		address = arch__link();
	else if (word__read(&address, arch__return_slot(hit->sp), true))
		stat__add(AP_STAT_CALLS_UNREAD);
	return hit__real_return(hit, address, trampoline__address());
}

/* Initialises @hit with SP and frame pointer at the function's entry. Returns the site, or NULL if it is unknown. */
static __always_inline const struct ap_site *hit__enter(struct hit *hit, struct pt_regs *regs)
{
	__u32 index = bpf_get_attach_cookie(regs);
	const struct ap_site *site = bpf_map_lookup_elem(&sites, &index);

	__builtin_memset(hit, 0, sizeof(*hit));
	if (!site)
		return NULL;
	hit->site = index;
	hit->function = site->function;
	hit->recorded = site->recorded;
	hit->sp = arch__sp(regs) + site->lowered_words * sizeof(__u64);
	hit->fp = arch__fp(regs);
	hit->weight = 1;
	return site;
}

/* Fills the rest of @hit; hit->return_address is set. */
static __always_inline void hit__read(struct hit *hit, const struct ap_site *site,
				      const struct pt_regs *regs)
{
	if (site->described) {
		hit__read_described(hit, site, regs);
		return;
	}
	hit__read_arguments(hit, regs);
	hit__classify(hit, site, regs);
	if (config.outermost && nest__holds(hit->sp, hit->return_address, hit->site, 1))
		hit->internal = 1;
}

#endif
