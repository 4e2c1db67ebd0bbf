// SPDX-License-Identifier: GPL-3.0-or-later
/* The program: finds the command and runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "error.h"
#include "message.h"
#include "options.h"
#include "user.h"

#define MAX_COMMANDS 64

/* Options before the command. */
static const struct argp_option main_options[] = {
	{ "version", 'V', NULL, 0, "Print the version" },
	{ 0 },
};

static void print_help(void)
{
	printf("Usage: allocprof COMMAND [OPTION...] [ARGUMENT...]\n"
	       "Count what a program allocates, and from where.\n\n");
	for (size_t i = 0; commands[i]; i++)
		printf("  %-12s %s\n", commands[i]->name, commands[i]->summary);
	printf("  %-12s Print the help of a command\n"
	       "\n  -h, --help     Print this help\n"
	       "  -V, --version  Print the version\n"
	       "\n`allocprof COMMAND --help` lists the options of a command.\n",
	       "help [CMD]");
}

/* Flushes stdout, so that write errors are noticed. Returns the exit status. */
static int finish(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_GOOD;
	if (errno == EPIPE)
		return EXIT_GOOD;
	message__print("cannot write standard output: %s; write elsewhere", strerror(errno));
	return EXIT_FAILED;
}

static int fail_unknown_command(const char *name)
{
	const char *names[MAX_COMMANDS + 1] = { "help" };
	const char *nearest;

	for (size_t i = 0; commands[i] && i + 1 < MAX_COMMANDS; i++)
		names[i + 1] = commands[i]->name;
	nearest = options__nearest(name, names);
	if (nearest)
		message__print("unknown command '%s'; did you mean '%s'?", name, nearest);
	else
		message__print("unknown command '%s'; `allocprof --help` lists all", name);
	return EXIT_USAGE;
}

static int run_help(char **argv)
{
	const struct command *command;

	if (!argv[1]) {
		print_help();
		return finish();
	}
	command = command__find(argv[1]);
	if (!command)
		return fail_unknown_command(argv[1]);
	options__print_help(command);
	return finish();
}

/* Runs an option that stands before the command: it prints something, and allocprof exits. */
static int run_main_option(char *option)
{
	static const struct command self = { .name = "", .options = main_options };
	char *argv[] = { (char *)"allocprof", option, NULL };
	struct error error = { 0 };
	int status = options__check(&self, argv, &error);

	if (status < 0) {
		message__error(&error, status);
		return EXIT_USAGE;
	}
	if (status > 0)
		print_help();
	else
		printf("allocprof %s\n", ALLOCPROF_VERSION);
	return finish();
}

#define KEPT_PRELOAD "ALLOCPROF_KEPT_PRELOAD"

/*
 * Executes allocprof again without LD_PRELOAD, which is meant for the measured command, and puts
 * it back for the command. A library loaded into allocprof would run in its workers, too, where it
 * may make too few system calls.
 */
static void leave_preload_to_command(char **argv)
{
	const char *preload = getenv("LD_PRELOAD"), *kept = getenv(KEPT_PRELOAD);

	if (!kept && preload && *preload && !setenv(KEPT_PRELOAD, preload, 1)) {
		unsetenv("LD_PRELOAD");
		execv("/proc/self/exe", argv);
		/* Without /proc allocprof cannot execute itself. */
		kept = getenv(KEPT_PRELOAD);
	}
	if (kept) {
		setenv("LD_PRELOAD", kept, 1);
		unsetenv(KEPT_PRELOAD);
	}
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct error error = { 0 };
	int status;

	if (borrowed__reduce(&error)) {
		message__print("%s", error.text);
		return EXIT_FAILED;
	}
	leave_preload_to_command(argv);
	if (argc < 2) {
		message__print("no command given; `allocprof --help` lists all");
		return EXIT_USAGE;
	}
	if (argv[1][0] == '-' && argv[1][1] && strcmp(argv[1], "--"))
		return run_main_option(argv[1]);
	if (!strcmp(argv[1], "help"))
		return run_help(argv + 1);
	command = command__find(argv[1]);
	if (!command)
		return fail_unknown_command(argv[1]);
	status = command->run(argv + 1);
	return status == EXIT_GOOD ? finish() : status;
}
