/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hit of a probe: whose it is, what was asked for, and whether the application called or the
 * allocator's own machinery did (docs/semantics.md, "internal").
 */
#ifndef ALLOCPROF_HIT_BPF_H
#define ALLOCPROF_HIT_BPF_H

#include "arch.bpf.h"
#include "maps.bpf.h"
#include "nest.bpf.h"
#include "process.bpf.h"
#include "sites.bpf.h"
#include "trampoline.bpf.h"

/* A tail call that the arguments of a thread's hit force: its next hit of @function with this SP
 * and return address is that tail call, not a call. */
struct tail_call {
	__u64 sp;
	__u64 return_address;
	__u32 function;
	__u32 pad;
};

/* By thread. Preallocated, since an allocation here may fail where the kernel cannot sleep. An entry
 * lives from the noting hit to the next one, so the size bounds threads inside that window. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct tail_call);
} tail_calls SEC(".maps");

/* A hit of a function that may end in a jump to another probed function of an allocator with an interface of
 * its own. The thread's next hit is that jump if it has the SP, the return address and the arguments. */
struct jump {
	__u64 sp;
	__u64 return_address;
	__u64 pointer;
	__u64 size_bytes;
	__u32 site;   /* that was hit: it does not jump to itself */
	__u32 source; /* as site__source(): what is of another is a request of its own */
};

/* By thread; as tail_calls. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct jump);
} jumps SEC(".maps");

/* The alignment that every malloc gives on 64-bit targets (2 * sizeof(size_t)): an aligned request
 * of no more is a plain malloc. */
#define MALLOC_ALIGNMENT 16

struct hit {
	__u64 sp, fp;
	__u64 return_address; /* 0 where it could not be read */
	__u64 pointer;	      /* realloc's or free's old block */
	__u64 size_bytes;     /* asked for; 0 for a product that overflows */
	__u32 site;
	__u32 weight;	/* calls that it stands for, 1 without sampling */
	__u8 function;	/* enum ap_function */
	__u8 overflows; /* a product of sizes that does not fit */
	__u8 internal : 1;
	__u8 recorded : 1; /* calls of the site are recorded, not only needed to classify others */
	__u8 aligned : 1; /* more than every malloc does, of the functions that take an alignment */
	__u8 in_caller : 1; /* no function was entered: the thread stands in the code that asks, and the return
			     * address is what would be that of a call there */
	__u8 regions; /* set of regions that it is in, once that was asked for */
	__u8 result;  /* enum ap_result */
	__u8 blocks;  /* as in struct ap_site */
};

/* @count * @size, or 0 and *@overflows = 1. */
static __always_inline __u64 product(__u64 count, __u64 size, __u8 *overflows)
{
	__u64 limit;

	if (((count | size) >> 32) && count) {
		limit = ~0ULL / count;
		barrier_var(limit); /* or clang makes it a 128-bit product, which BPF has not */
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

/* Not static, so that the verifier does not follow each choice further on. */
__noinline __u64 nth_of(__u64 first, __u64 second, __u64 third, __u64 fourth, __u32 n)
{
	switch (n) {
	case 1:
		return first;
	case 2:
		return second;
	case 3:
		return third;
	case 4:
		return fourth;
	}
	return 0;
}

static __always_inline __u64 argument(const struct pt_regs *regs, __u8 number)
{
	if (number > 4)
		return nth_of(arch__arg5(regs), arch__arg6(regs), 0, 0, number - 4);
	return nth_of(arch__arg1(regs), arch__arg2(regs), arch__arg3(regs), arch__arg4(regs),
		      number);
}

/* What is where @value points, which cannot be told where that is not in memory: 0. Not static, as above. */
__noinline __u64 word_at(__u64 value)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)value);
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
	/* One of the two is 0. */
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

/* Whether this hit is the tail call that the thread's hit before it announced; consumes the note. */
static __always_inline bool hit__is_announced(const struct hit *hit, __u64 thread)
{
	struct tail_call *note = bpf_map_lookup_elem(&tail_calls, &thread);

	if (!note || note->function != hit->function || note->sp != hit->sp ||
	    note->return_address != hit->return_address)
		return false;
	bpf_map_delete_elem(&tail_calls, &thread);
	return true;
}

/* The function that this hit's arguments make it jump to, or -1. */
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

/* Declared in process.bpf.h: a thread that was killed before the hit that a note announces leaves no note behind. */
static __always_inline void hit__end_thread(__u64 thread)
{
	bpf_map_delete_elem(&tail_calls, &thread);
	bpf_map_delete_elem(&jumps, &thread);
	if (config.outermost)
		bpf_map_delete_elem(&nests, &thread);
}

/*
 * Decides hit->internal:
 * (a) a call from the allocator's own code: its return address is in the set that user space made
 *     by disassembly;
 * (b) the jump that the thread's hit before it had to make.
 * A direct call from elsewhere in libc through the PLT (strdup's malloc) is a call like any other.
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
			/* The jump will look like a call of its own: let it stand for this one. */
			hit->internal = 1;
			stat__add(AP_STAT_RELABELLED);
		}
	}
}

/* Tells defined sources from each other and from the allocators that are known, whose is 0. */
static __always_inline __u32 site__source(const struct ap_site *site)
{
	return site->nesting ? site->allocator + 1 : 0;
}

/* Bytes that a size may have lost on the way: the Boehm collector's uncollectable blocks do not need the one behind
 * their end. */
#define JUMP_BYTES_LOST 1

/* Whether this hit is the jump that the thread's hit before it may have ended in. Sizes may have been rounded up
 * on the way. */
static __always_inline bool hit__was_jumped_to(const struct hit *hit, const struct ap_site *site,
					       __u64 thread)
{
	struct jump *jump = bpf_map_lookup_elem(&jumps, &thread);
	bool was;

	if (!jump)
		return false;
	was = jump->source == site__source(site) && jump->site != hit->site &&
	      jump->sp == hit->sp && jump->return_address == hit->return_address &&
	      jump->pointer == hit->pointer &&
	      ((AP_FREEING >> hit->function & 1) || jump->size_bytes <= hit->size_bytes ||
	       jump->size_bytes - hit->size_bytes == JUMP_BYTES_LOST);
	bpf_map_delete_elem(&jumps, &thread);
	return was;
}

/* The same as hit__classify() in an allocator whose functions may end in jumps to each other, whatever their
 * arguments are. */
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
			.source = site__source(site),
		};

		if (bpf_map_update_elem(&jumps, &thread, &jump, BPF_ANY) && !hit->internal) {
			/* The jump will look like a call of its own: let it stand for this one. */
			if (site->must_jump)
				hit->internal = 1;
			stat__add(AP_STAT_RELABELLED);
		}
	}
}

/* Not inlined, so that its stack is not in use while the walk's is. */
static __noinline int hit__read_described(struct hit *hit, const struct ap_site *site,
					  const struct pt_regs *regs)
{
	hit__read_described_arguments(hit, site, regs);
	hit__classify_described(hit, site, arch__ip(regs));
	if (!config.outermost || site->nesting == AP_NESTING_BESIDE)
		return 0;
	if (nest__holds(hit->sp, hit->return_address, hit->site, site->nesting == AP_NESTING_NONE))
		hit->internal = 1;
	else if (site->nesting == AP_NESTING_OUTERMOST && !hit->internal)
		nest__enter(hit->sp, hit->return_address, hit->site);
	return 0;
}

/* The return address that is @address now, which a return probe may have put there: one of ours, or of
 * whoever else looks at the process. */
static __always_inline __u64 hit__real_return(const struct hit *hit, __u64 address,
					      __u64 trampoline)
{
	return address && address == trampoline ? trampoline__real(arch__return_slot(hit->sp))
						: address;
}

/* Reads the return address by itself, for those who read no more of the stack. */
static __always_inline __u64 hit__return_address(const struct hit *hit)
{
	__u64 address = 0;

	bpf_probe_read_user(&address, sizeof(address), (void *)arch__return_slot(hit->sp));
	return hit__real_return(hit, address, trampoline__address());
}

/* Begins @hit with the registers that tell where the thread stands. */
static __always_inline void hit__enter(struct hit *hit, const struct pt_regs *regs)
{
	__builtin_memset(hit, 0, sizeof(*hit));
	hit->sp = arch__sp(regs);
	hit->fp = arch__fp(regs);
	hit->weight = 1;
}

/* Fills the rest, the return address being set. False where the hit is none of ours. */
static __always_inline bool hit__read(struct hit *hit, struct pt_regs *regs)
{
	__u32 index = bpf_get_attach_cookie(regs);
	struct ap_site *site = bpf_map_lookup_elem(&sites, &index);

	if (!site)
		return false;
	hit->site = index;
	hit->function = site->function;
	hit->recorded = site->recorded;
	if (site->described) {
		hit__read_described(hit, site, regs);
		return true;
	}
	hit__read_arguments(hit, regs);
	hit__classify(hit, site, regs);
	if (config.outermost && nest__holds(hit->sp, hit->return_address, index, 1))
		hit->internal = 1;
	return true;
}

#endif
