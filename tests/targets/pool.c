// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * pool KIB [exec|wait]: allocates KIB KiB without malloc, in one anonymous mapping, which it keeps. "exec": then executes
 * itself with 0 KiB; "wait": waits for a byte on stdin first, then writes "taken", and waits for another one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void take(size_t size)
{
	if (size && mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			    MAP_FAILED)
		_exit(1);
}

static void wait_for_byte(void)
{
	char byte;

	if (read(0, &byte, 1) != 1)
		_exit(1);
}

int main(int argc, char **argv)
{
	const char *then = argc > 2 ? argv[2] : "";

	if (argc < 2)
		return 2;
	if (!strcmp(then, "wait"))
		wait_for_byte();
	take(strtoul(argv[1], NULL, 10) * 1024);
	if (!strcmp(then, "exec"))
		execlp(argv[0], argv[0], "0", NULL);
	if (!strcmp(then, "wait")) {
		if (write(1, "taken", 5) != 5)
			return 1;
		wait_for_byte();
	}
	return 0;
}
