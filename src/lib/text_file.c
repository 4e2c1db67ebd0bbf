// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads a whole text file, with a limit of its size. */
#include "text_file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"

#define FIRST_BYTES 4096

int text_file__read(int fd, size_t most_bytes, char **text, size_t *size_bytes)
{
	_cleanup_(free_ptr) char *bytes = NULL;
	size_t room = 0, size = 0;
	ssize_t n;

	do {
		size_t left;

		if (array__reserve(&bytes, &room, size ? size + 2 : FIRST_BYTES, 1))
			return -ENOMEM;
		left = room - 1 - size < most_bytes - size ? room - 1 - size : most_bytes - size;
		/* Others may read by the same offset. A FIFO has none. */
		n = pread(fd, bytes + size, left, size);
		if (n < 0 && errno == ESPIPE)
			n = read(fd, bytes + size, left);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return -errno;
		else
			size += n;
	} while (n > 0 && size < most_bytes);
	bytes[size] = '\0';
	*text = bytes;
	bytes = NULL;
	*size_bytes = size;
	return 0;
}
