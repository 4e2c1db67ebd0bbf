/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a recording found, as the profile that the data file keeps. */
#ifndef ALLOCPROF_SESSION_PROFILE_H
#define ALLOCPROF_SESSION_PROFILE_H

struct profile;
struct session;

/*
 * Names the frames and fills the meta table and the ledger of the finished session's profile.
 * @argv is the launched command, or NULL for an attached process. *@profile is owned by the session.
 * 0 or -ENOMEM.
 */
int session__profile(const struct session *session, char *const argv[], struct profile **profile);

#endif
