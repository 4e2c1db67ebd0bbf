/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom the user may look at who runs allocprof by file capabilities: what ptrace(2) asks of somebody without
 * capabilities, __ptrace_may_access() of the kernel.
 */
#ifndef ALLOCPROF_CALLER_BPF_H
#define ALLOCPROF_CALLER_BPF_H

#include "kernel.h"
#include "maps.bpf.h"

static __always_inline bool mm__is_dumpable(struct mm_struct *mm)
{
	struct mm_struct___6_18 *mm_6_18 = (void *)mm;
	struct mm_struct___5_17 *mm_5_17 = (void *)mm;
	unsigned long flags = 0;

	if (!mm)
		return false;
	if (bpf_core_field_exists(mm_6_18->flags))
		bpf_core_read(&flags, sizeof(flags), &mm_6_18->flags);
	else
		bpf_core_read(&flags, sizeof(flags), &mm_5_17->flags);
	return (flags & MMF_DUMPABLE_MASK) == SUID_DUMP_USER;
}

/*
 * Capabilities in a user namespace that the user has made are no gain, since the user has all of them there. All other
 * capabilities are one.
 */
static __always_inline bool cred__is_callers(const struct cred *cred)
{
	__u64 permitted = ~0ULL;

	if (!cred || BPF_CORE_READ(cred, uid.val) != config.user ||
	    BPF_CORE_READ(cred, euid.val) != config.user ||
	    BPF_CORE_READ(cred, suid.val) != config.user ||
	    BPF_CORE_READ(cred, gid.val) != config.group ||
	    BPF_CORE_READ(cred, egid.val) != config.group ||
	    BPF_CORE_READ(cred, sgid.val) != config.group)
		return false;
	bpf_core_read(&permitted, sizeof(permitted), &cred->cap_permitted);
	return !permitted || BPF_CORE_READ(cred, user_ns, owner.val) == config.user;
}

static __always_inline bool task__is_callers(struct task_struct *task)
{
	return cred__is_callers(BPF_CORE_READ(task, real_cred)) &&
	       mm__is_dumpable(BPF_CORE_READ(task, mm));
}

#endif
