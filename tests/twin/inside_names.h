/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Comes before each source of src/inside that is built for the host: the functions that the library stands in front of get names of
 * their own, so that the test's own calls are not counted, and it begins when the test says so.
 */
#define constructor

#define _Exit		   inside__Exit
#define _Fork		   inside__Fork
#define _exit		   inside__exit
#define aligned_alloc	   inside_aligned_alloc
#define calloc		   inside_calloc
#define dlmopen		   inside_dlmopen
#define dlopen		   inside_dlopen
#define execl		   inside_execl
#define execle		   inside_execle
#define execlp		   inside_execlp
#define execv		   inside_execv
#define execve		   inside_execve
#define execveat	   inside_execveat
#define execvp		   inside_execvp
#define execvpe		   inside_execvpe
#define fexecve		   inside_fexecve
#define fork		   inside_fork
#define free		   inside_free
#define free_aligned_sized inside_free_aligned_sized
#define free_sized	   inside_free_sized
#define madvise		   inside_madvise
#define malloc		   inside_malloc
#define memalign	   inside_memalign
#define mmap		   inside_mmap
#define mmap64		   inside_mmap64
#define mprotect	   inside_mprotect
#define mremap		   inside_mremap
#define munmap		   inside_munmap
#define popen		   inside_popen
#define posix_memalign	   inside_posix_memalign
#define posix_spawn	   inside_posix_spawn
#define posix_spawnp	   inside_posix_spawnp
#define prctl		   inside_prctl
#define pthread_setname_np inside_pthread_setname_np
#define pvalloc		   inside_pvalloc
#define realloc		   inside_realloc
#define reallocarray	   inside_reallocarray
#define syscall		   inside_syscall
#define system		   inside_system
#define valloc		   inside_valloc
#define wordexp		   inside_wordexp
