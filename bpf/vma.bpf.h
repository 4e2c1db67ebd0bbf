/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions that tell of what kind a mapping is. */
#ifndef ALLOCPROF_VMA_BPF_H
#define ALLOCPROF_VMA_BPF_H

#include "kernel.h"

/* linux/magic.h */
#define HUGETLBFS_MAGIC 0x958458f6

/* Anonymous shared memory and huge pages are backed by the kernel's own files. */
static __always_inline bool vma__is_anonymous(const struct vm_area_struct *vma)
{
	const struct file *file = vma->vm_file;

	if (!file)
		return true;
	return file->f_inode->i_flags & S_PRIVATE ||
	       (file->f_inode->i_sb->s_magic == HUGETLBFS_MAGIC && !file->f_inode->i_nlink);
}

/* Returns whether a process handles the page faults of the mapping by userfaultfd(2). */
static __always_inline bool vma__has_handler(const struct vm_area_struct *vma)
{
	return bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) && vma->vm_userfaultfd_ctx.ctx;
}

#endif
