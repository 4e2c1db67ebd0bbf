/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads files of /proc/PID: maps, stat, statm, status, and others as text. */
#ifndef ALLOCPROF_PROC_H
#define ALLOCPROF_PROC_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Returns the text of /proc/PID/@name, up to 64 KiB, which the caller frees, and sets *@size to its length
 * unless @size is NULL; a NUL is behind it. Returns NULL if it cannot be read.
 */
char *proc_file__read(pid_t pid, const char *name, size_t *size);

/*
 * Returns the command line of the process as a shell would take it, or the title that it has given itself,
 * which the caller frees; of one with more than @most bytes these, and "..." behind them. Returns NULL if it
 * cannot be read or the process has none, or if there is no memory.
 */
char *proc_command__read(pid_t pid, size_t most);
/* Does the same for @size bytes of such a file, behind which is room for one more. */
char *proc_command__text(char *words, size_t size, size_t most);
/* Returns the name of the process's first thread, which the caller frees; NULL as above. */
char *proc_comm__read(pid_t pid);

/* A line of /proc/PID/maps. */
struct proc_mapping {
	__u64 start, end, offset; /* addresses of the mapping, and its offset in the file */
	bool is_readable, is_writable, is_executable, is_shared;
	unsigned int major, minor; /* numbers of the device */
	__u64 inode;		   /* 0: anonymous memory */
	const char *path;	   /* as the kernel shows it, "" for anonymous memory */
};

/* Reads a line of /proc/PID/maps, or the first one of a mapping in smaps, and ends it before its
 * newline; the path is a part of it. Returns false if it is another line. */
bool proc_mapping__parse(char *line, struct proc_mapping *out);

/* Called with each mapping. A result other than 0 ends the iteration, whose result it becomes. */
typedef int proc_maps_visit(void *context, const struct proc_mapping *mapping);

/*
 * Calls @visit with each mapping of the process @pid, or of this process if @pid is 0, in the
 * order of their addresses. Returns 0; the value other than 0 that @visit returned; or a negative
 * errno: -ENOENT or -ESRCH if there is no such process.
 */
int proc_maps__each(pid_t pid, proc_maps_visit *visit, void *context);

/* Flags PF_EXITING and PF_KTHREAD of the kernel's include/linux/sched.h. */
#define PROC_IS_EXITING	      0x00000004UL
#define PROC_IS_KERNEL_THREAD 0x00200000UL

/* Some fields of /proc/PID/stat (proc_pid_stat(5)). */
struct proc_stat {
	char state; /* 'Z': the process's first thread has ended */
	/* Process id of the parent; 0: the parent is not in this PID namespace. */
	pid_t parent;
	/* Controlling terminal, encoded as by the kernel's new_encode_dev(); 0: none. */
	unsigned int terminal;
	unsigned long flags; /* PROC_IS_KERNEL_THREAD and others */
	int n_threads;	     /* the first one, too, until somebody has waited for the process */
	__u64 cpu_ticks;     /* processor time, also of children that were waited for */
	__u64 start_ticks;   /* when it started, in clock ticks since the machine's start */
};

/* Reads the fields of process @pid. Returns 0 or a negative errno: -ESRCH or -ENOENT if there is
 * no such process. */
int proc_stat__read(pid_t pid, struct proc_stat *out);

/* Does the same for one thread of the process. */
int proc_stat__read_thread(pid_t pid, pid_t tid, struct proc_stat *out);

/* Returns whether all threads of the process have ended, whether somebody has waited for it or not. */
bool proc__has_ended(pid_t pid);

struct proc_memory {
	__u64 rss_bytes;    /* resident memory */
	__u64 shared_bytes; /* what of it is of files, or shared */
};

/* Reads them from /proc/PID/statm. Returns false if there is no such process. */
bool proc_memory__read(pid_t pid, struct proc_memory *out);

/* Reads the number behind @key, such as "Threads", in /proc/PID/status (proc_pid_status(5)). Returns
 * false if there is none, or no such process. */
bool proc_status__number(pid_t pid, const char *key, int *out);
/* Does the same for the last of several numbers: that of "NSpid" is the one in the process's own PID namespace. */
bool proc_status__last_number(pid_t pid, const char *key, int *out);
/* Returns whether both processes have the same line of @key, which can be read. */
bool proc_status__is_same(pid_t pid, pid_t other, const char *key);

#endif
