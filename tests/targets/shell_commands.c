// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Has two threads in system(3) at a time, the first of which returns first; forks while a command runs; and has two commands
 * run again while it changes the environment. Prints what the environment has then, and how many of the four commands ended
 * well:
 *
 *   preloaded none
 *   preloaded in child 0
 *   preloaded none changed 2 added 3 commands 4
 *
 * With the argument "many" runs 1,100 commands by popen(3), and prints by how many KiB the last 1,000 have made it
 * larger: "grown 8".
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include "raw.h"

/* Each command writes a byte when it has begun, and ends when its own pipe is closed. */
struct command {
	pthread_t thread;
	int end[2];
	int status;
};

static int begun[2];

static void *run(void *argument)
{
	struct command *command = argument;
	char text[128];

	snprintf(text, sizeof(text), "echo >&%d; read line <&%d; test \"$KEPT\" = 1", begun[1],
		 command->end[0]);
	command->status = system(text);
	return NULL;
}

static void begin(struct command *command)
{
	char byte;

	if (pipe(command->end) || fcntl(command->end[1], F_SETFD, FD_CLOEXEC) ||
	    pthread_create(&command->thread, NULL, run, command) || read(begun[0], &byte, 1) != 1)
		_exit(100);
}

static void end(struct command *command)
{
	close(command->end[1]);
	pthread_join(command->thread, NULL);
	close(command->end[0]);
}

static const char *or_none(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : "none";
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long all, resident;

	if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2)
		_exit(101);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void run_commands(int n)
{
	while (n--) {
		FILE *command = popen("exit 0", "r");

		if (!command || pclose(command))
			_exit(102);
	}
}

static int run_many(void)
{
	long before_kib;

	run_commands(100);
	before_kib = resident_kib();
	run_commands(1000);
	printf("grown %ld\n", resident_kib() - before_kib);
	return 0;
}

/* Returns how many of the two commands ended well. */
static int run_overlapping(bool changes_environment)
{
	struct command first, second;

	begin(&first);
	begin(&second);
	if (changes_environment)
		setenv("CHANGED", "2", 1);
	end(&first);
	if (changes_environment)
		setenv("ADDED", "3", 1);
	end(&second);
	return !first.status + !second.status;
}

/* Returns whether a child that is forked while a command runs has LD_PRELOAD. */
static bool is_seen_by_child(void)
{
	struct command command;
	int child, status;

	begin(&command);
	child = fork();
	if (!child)
		_exit(getenv("LD_PRELOAD") != NULL);
	waitpid(child, &status, 0);
	end(&command);
	return status;
}

int main(int argc, char **argv)
{
	int commands;

	if (argc > 1)
		return run_many();
	if (pipe(begun) || setenv("KEPT", "1", 1) || setenv("CHANGED", "1", 1))
		return 1;
	commands = run_overlapping(false);
	printf("preloaded %s\n", or_none("LD_PRELOAD"));
	printf("preloaded in child %d\n", is_seen_by_child());
	commands += run_overlapping(true);
	printf("preloaded %s changed %s added %s commands %d\n", or_none("LD_PRELOAD"),
	       or_none("CHANGED"), or_none("ADDED"), commands);
	return 0;
}
