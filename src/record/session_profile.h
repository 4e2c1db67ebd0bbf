/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns a finished recording into the profile that the data file stores. */
#ifndef ALLOCPROF_SESSION_PROFILE_H
#define ALLOCPROF_SESSION_PROFILE_H

#include <stdbool.h>

struct profile;
struct session;
struct symbols;

/*
 * Names the frames of the finished session's profile with linker names. Without @files only frames
 * without a file, of the vDSO and JITs. @symbols must have no modules yet. 0 or -ENOMEM.
 */
int session__symbolize(const struct session *session, struct symbols *symbols, bool files);

/*
 * Fills the meta table and the ledger of the finished session's profile.
 * @argv is the launched command, or NULL for an attached process. *@profile is owned by the session.
 * 0 or -ENOMEM.
 */
int session__profile(const struct session *session, char *const argv[], struct profile **profile);

#endif
