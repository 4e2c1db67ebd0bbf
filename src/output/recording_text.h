/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a picture or a file for another viewer says about the recording that it was made from. */
#ifndef ALLOCPROF_RECORDING_TEXT_H
#define ALLOCPROF_RECORDING_TEXT_H

struct profile;

/* The command, or the attached process. To be freed; NULL on ENOMEM. */
char *recording_text__title(const struct profile *profile);
/*
 * Sets *@text to sentences, one per line: that the numbers are estimates, and what is missing. "" if
 * there are none. The caller frees it. 0 or -ENOMEM.
 */
int recording_text__remarks(const struct profile *profile, char **text);

#endif
