// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * preload_exec FILE LIBRARY CMD [ARGS...]: executes CMD, looked up in PATH, with LIBRARY in LD_PRELOAD
 * and ALLOCPROF_COUNTER=FILE in front of the rest of the environment.
 *
 * Built without any C library, so that no allocator is loaded before CMD: the tool that launches it
 * and the counter see the same first call. Exit status is CMD's; 127 where it could not be executed.
 */
#include <asm/unistd.h>
#include <stddef.h>

#if defined(__x86_64__)
#include "preload_exec_x86.h"
#elif defined(__aarch64__)
#include "preload_exec_arm64.h"
#endif

#define MAX_TEXT      4096
#define MAX_VARIABLES 4096

static _Noreturn void leave(long status)
{
	for (;;)
		syscall3(__NR_exit_group, (void *)status, NULL, NULL);
}

static int starts_with(const char *text, const char *start)
{
	while (*start)
		if (*text++ != *start++)
			return 0;
	return 1;
}

/* Appends at @end of @buffer up to @stop or the text's end; the new end. */
static size_t append(char *buffer, size_t end, const char *text, char stop)
{
	while (*text && *text != stop) {
		if (end + 1 >= MAX_TEXT)
			leave(127);
		buffer[end++] = *text++;
	}
	buffer[end] = '\0';
	return end;
}

/* Never called. allocprof refuses a static program in which it finds no allocator; here it finds one
 * whose count is 0. */
__attribute__((used)) void *malloc(size_t size);
__attribute__((used)) void free(void *pointer);

__attribute__((used, noinline)) void *malloc(size_t size)
{
	__asm__ volatile("" : : "r"(size));
	return NULL;
}

__attribute__((used, noinline)) void free(void *pointer)
{
	__asm__ volatile("" : : "r"(pointer));
}

static char preload[MAX_TEXT];
static char counter[MAX_TEXT];
static char program[MAX_TEXT];
static char *environment[MAX_VARIABLES];

_Noreturn __attribute__((used)) void start(char **stack);

_Noreturn __attribute__((used)) void start(char **stack)
{
	long argc = (long)stack[0];
	char **argv = stack + 1, **env = argv + argc + 1;
	const char *path = "/usr/bin:/bin", *name;
	size_t n = 0, length;

	if (argc < 4)
		leave(127);
	append(counter, append(counter, 0, "ALLOCPROF_COUNTER=", 0), argv[1], 0);
	length = append(preload, 0, "LD_PRELOAD=", 0);
	/* Another library stays in front: its calls go through this one's. */
	for (char **entry = env; *entry; entry++)
		if (starts_with(*entry, "LD_PRELOAD="))
			length = append(preload, append(preload, 0, *entry, 0), ":", 0);
	append(preload, length, argv[2], 0);
	environment[n++] = counter;
	environment[n++] = preload;
	for (; *env; env++) {
		if (starts_with(*env, "PATH="))
			path = *env + 5;
		if (starts_with(*env, "LD_PRELOAD=") || starts_with(*env, "ALLOCPROF_COUNTER="))
			continue;
		if (n + 1 >= MAX_VARIABLES)
			leave(127);
		environment[n++] = *env;
	}

	for (name = argv[3]; *name; name++)
		if (*name == '/') {
			syscall3(__NR_execve, argv[3], argv + 3, environment);
			leave(127);
		}
	for (;;) {
		size_t end = append(program, 0, path, ':');

		append(program, append(program, end, "/", 0), argv[3], 0);
		syscall3(__NR_execve, program, argv + 3, environment);
		while (*path && *path != ':')
			path++;
		if (!*path++)
			leave(127);
	}
}

__asm__(START);
