/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef ALLOCPROF_REGULAR_FILE_H
#define ALLOCPROF_REGULAR_FILE_H

/* Opens @path for reading if it is a regular file; a FIFO, which may block, or a device, which may act,
 * is not opened. Returns a descriptor that the caller closes, or a negative errno: -EISDIR for a directory,
 * -ENOTSUP for other kinds of file. */
int regular_file__open(const char *path);

/* The same for the absolute @path as processes see it whose root is the directory @root, such as /proc/PID/root:
 * links do not lead out of it. */
int regular_file__open_in(const char *root, const char *path);

/* The same for the file that @place, opened with O_PATH, refers to, whatever is at its path by now. */
int regular_file__reopen(int place);

#endif
