// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * late_child FIFO FILE: ends while a process that it has started is between execve(2) of /usr/bin/env and the program's first
 * instruction, and a tracer, which goes on, holds it there until a byte can be read from FIFO. FILE gets what the process
 * writes, and in the end "status 0". Exit status 0.
 */
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "raw.h"

static void trace(const char *fifo, const char *file, int has_stopped)
{
	int null = open("/dev/null", O_RDWR),
	    output = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
	int status, fd;
	char byte;
	pid_t child;

	dup2(null, 0);
	dup2(output, 1);
	dup2(output, 2);
	child = fork();
	if (!child) {
		if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			execl("/usr/bin/env", "env", "sh", "-c", "echo ${LD_PRELOAD-none}", NULL);
		_exit(99);
	}
	if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
	    write(has_stopped, "", 1) != 1)
		_exit(98);
	fd = open(fifo, O_RDONLY);
	if (read(fd, &byte, 1) != 1 || ptrace(PTRACE_DETACH, child, NULL, NULL))
		_exit(97);
	waitpid(child, &status, 0);
	say_number("status ", status, "\n");
	_exit(0);
}

int main(int argc, char **argv)
{
	int has_stopped[2];
	char byte;

	if (argc != 3 || pipe(has_stopped))
		return 2;
	if (!fork()) {
		close(has_stopped[0]);
		trace(argv[1], argv[2], has_stopped[1]);
	}
	close(has_stopped[1]);
	return read(has_stopped[0], &byte, 1) != 1;
}
