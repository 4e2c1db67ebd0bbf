/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_TEXT_FILE_H
#define ALLOCPROF_TEXT_FILE_H

#include <stddef.h>

/*
 * Reads the first @most_bytes of the file @fd, or of what comes from a FIFO. A caller that limits the size passes its limit
 * plus one. *@text, to be freed, has a null behind *@size_bytes bytes, and may have others among them. -ENOMEM, or what
 * read(2) says.
 */
int text_file__read(int fd, size_t most_bytes, char **text, size_t *size_bytes);

#endif
