/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the running processes that a user names: by numbers, by the name of their program, by a
 * control group, by their user, or all. */
#ifndef ALLOCPROF_PROCESS_SET_H
#define ALLOCPROF_PROCESS_SET_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct error;

/* A process that starts later belongs to a set if it has this name and is in this group. */
struct process_joining {
	/* Pattern of the name, with * and ?, of up to 15 bytes; "": any. */
	char name[16];
	/* Control group of version 2, as /proc/PID/cgroup has it; NULL: any. */
	char *group;
	bool has_user;
	uid_t user; /* real user id, if @has_user */
	/* The group is one of version 1 alone, of which the kernel does not tell BPF programs. */
	bool is_unknown;
};

struct process_set {
	pid_t *pids; /* owned */
	size_t n, room;
	char *group;	   /* as it is searched by; NULL: not given; owned */
	char *other_group; /* another one that the name fits; owned */
	bool was_searched;
	pid_t owner; /* as in the choice */
	struct process_joining joining;
};

struct process_set *process_set__new(void);
void process_set__free(struct process_set *set);

pid_t process_set__first(const struct process_set *set);
size_t process_set__size(const struct process_set *set);
/* Returns the resident memory of all of them that run; 0: none does. */
__u64 process_set__rss_bytes(const struct process_set *set);
/* Returns which later processes belong to the set; NULL: none does. */
const struct process_joining *process_set__joining(const struct process_set *set);

/* Adds the numbers of @text, which commas separate. Returns 0, or a negative errno with @error
 * set. */
int process_set__add_numbers(struct process_set *set, const char *text, struct error *error);

/* Which processes are searched for: those that have all that is not NULL; with nothing, all. */
struct process_choice {
	/* Pattern of their program's name (comm, 15 bytes), with * and ?. */
	const char *name;
	/* Control group, they may be below it: path, systemd unit, id of a container. */
	const char *group;
	/* Container, in place of @group: its name, or at least 12 digits of its id. */
	const char *container;
	/* Name or number of their real user. */
	const char *user;
	/* The process that has this one search: it is none of them, as this one is not. 0: there is none. */
	pid_t owner;
};

/* Adds these processes. Returns 0, -ESRCH if there is none now, or another negative errno; with @error
 * set. */
int process_set__search(struct process_set *set, const struct process_choice *choice,
			struct error *error);

/* Searches once more, for those that have started since. Returns 0, or a negative errno with @error
 * set. */
int process_set__search_again(struct process_set *set, struct error *error);

#endif
