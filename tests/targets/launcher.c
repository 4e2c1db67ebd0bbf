// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * launcher N PROG [ARGS...]: starts N copies of PROG, which all wait for the last before they exec,
 * and waits for them. Allocates nothing above start-up. Prints nothing; exit status is the highest
 * of the copies' (128 + signal where one died by a signal).
 */
#include <sys/wait.h>
#include "raw.h"

DEFINE_SINK;

int main(int argc, char **argv)
{
	unsigned long n = number_or(argc > 1 ? argv[1] : NULL, 0);
	int gate[2], status, worst = 0;
	char c;

	if (argc < 3 || !n || pipe(gate))
		return 2;
	for (unsigned long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid)
			continue;
		close(gate[1]);
		/* Ends as the launcher closes its end, the last that is open. */
		read(gate[0], &c, 1);
		close(gate[0]);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	close(gate[0]);
	close(gate[1]);
	while (wait(&status) > 0) {
		int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

		if (code > worst)
			worst = code;
	}
	return worst;
}
