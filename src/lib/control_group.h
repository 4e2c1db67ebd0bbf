/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads which control group a process is in, and what people call that group: its container, its
 * unit of systemd(1), or the last part of its path. */
#ifndef ALLOCPROF_CONTROL_GROUP_H
#define ALLOCPROF_CONTROL_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Containers have ids of 64 hexadecimal digits, of which programs print the first twelve. */
#define CONTAINER_ID_DIGITS 64
#define CONTAINER_ID_SHOWN  12

/*
 * Returns the path of the process's group as /proc/PID/cgroup has it, which the caller frees: one
 * with a container, else that of version 2, else the longest of version 1. NULL if it cannot be read.
 */
char *control_group__read(pid_t pid);

/* Returns the id of the container in @path, of CONTAINER_ID_DIGITS digits; NULL: there is none. */
const char *control_group__container(const char *path);

/* Returns whether @word is the name of a unit of systemd(1) that has processes. */
bool control_group__is_unit(const char *word);

/*
 * Returns what reports call the group, which the caller frees: the name of the container, or the
 * first digits of its id if its name cannot be found; else the innermost unit; else the last part of
 * the path. @pid: a process that is in it. NULL: there is no memory.
 */
char *control_group__name(const char *path, pid_t pid);

#endif
