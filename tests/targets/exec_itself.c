// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * exec_itself N: calls malloc(40) and executes itself with N - 1, until N is 0. Above start-up of
 * N + 1 programs N + 1 calls. Prints "done", exit status 0.
 */
#include "raw.h"

DEFINE_SINK;

int main(int argc, char **argv)
{
	unsigned long n = number_or(argc > 1 ? argv[1] : NULL, 0);
	char *args[] = { argv[0], NULL, NULL }, digits[32], *p = digits + sizeof(digits);

	sink = malloc(40);
	if (!n) {
		say("done\n");
		return 0;
	}
	*--p = '\0';
	for (n--; n || !*p; n /= 10)
		*--p = '0' + n % 10;
	args[1] = p;
	execv("/proc/self/exe", args);
	return 1;
}
