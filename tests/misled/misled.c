// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Puts itself before functions that workers run. ALLOCPROF_TEST_WORKER=HOW:WHAT makes a worker that comes to a file whose
 * path ends in WHAT ("perf.map" for a perf map, "code" for the search for tail calls) fail by HOW: crash, hang, nonsense,
 * forbidden; or, with truncate, wait until the file, which has been mapped, is empty. ALLOCPROF_TEST_TIMEOUT_MS is how
 * long names of a module may take. ALLOCPROF_TEST_ELF=WHAT crashes any process that opens such a file by libelf or libdw,
 * which only workers may. ALLOCPROF_TEST_START=SIGNAL
 * is a signal that each worker raises before anything else. With ALLOCPROF_TEST_DEBUG_FILE=PATH the worker of archive names PATH, whatever is there, as the debug
 * file of each file without debug information.
 */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confinement.h"
#include "debug_file.h"
#include "elf_file.h"
#include "perf_map.h"
#include "symbol_table.h"
#include "symbols_module.h"
#include "tail_call_search.h"

int __real_module_job__run(struct module_job *job);
int __wrap_module_job__run(struct module_job *job);
int __real_elf_file__open(int fd, const char *path, struct elf_file **out, struct error *error);
int __wrap_elf_file__open(int fd, const char *path, struct elf_file **out, struct error *error);
int __real_debug_file__open(int fd, const char *path, struct debug_file *out, struct error *error);
int __wrap_debug_file__open(int fd, const char *path, struct debug_file *out, struct error *error);
int __real_debug_file__find(const struct debug_search *search, struct debug_file *out,
			    struct error *error);
int __wrap_debug_file__find(const struct debug_search *search, struct debug_file *out,
			    struct error *error);
struct symbol_table *__real_symbol_table__new(void);
struct symbol_table *__wrap_symbol_table__new(void);
int __real_perf_map__read(int fd, struct perf_map **out);
int __wrap_perf_map__read(int fd, struct perf_map **out);
int __real_tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
			      struct tail_call_pairs *pairs);
int __wrap_tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
			      struct tail_call_pairs *pairs);
int __real_confinement__enter(const struct confinement *confinement);
int __wrap_confinement__enter(const struct confinement *confinement);
unsigned int __real_module_job__timeout_ms(void);
unsigned int __wrap_module_job__timeout_ms(void);

/* The descriptor of the file that is to become empty; 0: none. */
static int truncated;

static bool ends_in(const char *path, const char *what)
{
	size_t size = strlen(path), len = strlen(what);

	return len <= size && !strcmp(path + size - len, what);
}

static void mislead(const char *path)
{
	const char *how = getenv("ALLOCPROF_TEST_WORKER"), *what = how ? strchr(how, ':') : NULL;

	if (!what || !ends_in(path, what + 1))
		return;
	if (!strncmp(how, "truncate:", 9)) {
		truncated = 4;
		return;
	}
	if (!strncmp(how, "crash:", 6))
		raise(SIGSEGV);
	if (!strncmp(how, "nonsense:", 9))
		for (size_t i = 0; i < 1000; i++)
			(void)!write(3, "nonsense and more of it, many a byte", 36);
	if (!strncmp(how, "forbidden:", 10))
		socket(AF_INET, SOCK_STREAM, 0);
	for (;;)
		poll(NULL, 0, 1000);
}

int __wrap_module_job__run(struct module_job *job)
{
	truncated = 0;
	mislead(job->path);
	return __real_module_job__run(job);
}

static void crash(const char *path)
{
	const char *what = getenv("ALLOCPROF_TEST_ELF");

	if (what && ends_in(path, what))
		raise(SIGSEGV);
}

int __wrap_elf_file__open(int fd, const char *path, struct elf_file **out, struct error *error)
{
	crash(path);
	return __real_elf_file__open(fd, path, out, error);
}

int __wrap_debug_file__open(int fd, const char *path, struct debug_file *out, struct error *error)
{
	crash(path);
	return __real_debug_file__open(fd, path, out, error);
}

int __wrap_debug_file__find(const struct debug_search *search, struct debug_file *out,
			    struct error *error)
{
	const char *path = getenv("ALLOCPROF_TEST_DEBUG_FILE");

	if (!path)
		return __real_debug_file__find(search, out, error);
	*out = (struct debug_file){ .fd = -1, .path = strdup(path) };
	return 0;
}

/* It comes after the file has been opened, and before it is read. */
struct symbol_table *__wrap_symbol_table__new(void)
{
	struct stat st;

	while (truncated && !fstat(truncated, &st) && st.st_size)
		poll(NULL, 0, 10);
	return __real_symbol_table__new();
}

int __wrap_perf_map__read(int fd, struct perf_map **out)
{
	mislead("perf.map");
	return __real_perf_map__read(fd, out);
}

int __wrap_tail_calls__search(const struct profile *profile, const struct tail_call_files *files,
			      struct tail_call_pairs *pairs)
{
	mislead("code");
	return __real_tail_calls__search(profile, files, pairs);
}

int __wrap_confinement__enter(const struct confinement *confinement)
{
	const char *text = getenv("ALLOCPROF_TEST_START");

	if (text)
		raise(strtol(text, NULL, 10));
	return __real_confinement__enter(confinement);
}

unsigned int __wrap_module_job__timeout_ms(void)
{
	const char *text = getenv("ALLOCPROF_TEST_TIMEOUT_MS");

	return text ? strtoul(text, NULL, 10) : __real_module_job__timeout_ms();
}
