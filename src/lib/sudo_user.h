/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The user who called sudo. */
#ifndef ALLOCPROF_SUDO_USER_H
#define ALLOCPROF_SUDO_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* False if this process is not root's, or if root itself called it. *@gid is -1 where sudo names no group. */
bool sudo_user__find(uid_t *uid, gid_t *gid);

#endif
