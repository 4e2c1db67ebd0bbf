// SPDX-License-Identifier: GPL-3.0-or-later
/* Runs the processes in which the library of src/inside counts, and reads what it has counted. */
#include "unit.h"

#include "measured_process.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "error.h"
#include "inside_host.h"

/* With ASan: then exit(3) would look for what the parent has allocated. */
extern void __lsan_do_leak_check(void) __attribute__((weak));

void leave(void)
{
	if (__lsan_do_leak_check)
		inside__exit(0);
	exit(0);
}

void wait_for(int pid)
{
	int status;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

void measured__new(const struct inside_settings *settings, struct measured *out)
{
	struct preload_options options = { .library = INSIDE_LIBRARY_PATH, .settings = *settings };
	struct error error = { "" };

	if (!options.settings.max_depth)
		options.settings.max_depth = 127;
	if (!options.settings.max_live_shift)
		options.settings.max_live_shift = 20;
	options.settings.recorded = AP_ALL_FUNCTIONS & ~AP_FREEING;
	*out = (struct measured){ 0 };
	if (preload__new(&options, &out->preload, &error))
		fail_msg("%s", error.text);
	preload__set_gate(out->preload, INSIDE_OPEN);
}

static void load(const char *directory)
{
	static char path[INSIDE_PATH_BYTES + 16];
	char value[sizeof(path) + 16];

	snprintf(path, sizeof(path), "%s/" INSIDE_LIBRARY, directory);
	snprintf(value, sizeof(value), "%s:libc.so.6", path);
	setenv("LD_PRELOAD", value, 1);
	host__load(path);
}

/* cmocka would go on with its next test in the process. */
static void end_by_errors(void)
{
	static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
}

static void run(const char *directory, void (*program)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		end_by_errors();
		if (directory)
			load(directory);
		program();
		leave();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

void measured__run(struct measured *measured, void (*program)(void))
{
	run(measured->preload->directory, program);
}

void measured__run_alone(struct measured *measured, void (*program)(void))
{
	run(NULL, program);
}

void measured__read(struct measured *measured)
{
	assert_int_equal(preload__read(measured->preload, &measured->results), 0);
	assert_int_equal(measured->results.n_damaged, 0);
	assert_int_equal(measured->results.n_unfinished, 0);
}

void measured__finish(struct measured *measured)
{
	preload_results__free(&measured->results);
	preload__free(measured->preload);
}

void measure(const struct inside_settings *settings, void (*program)(void), struct measured *out)
{
	measured__new(settings, out);
	measured__run(out, program);
	measured__read(out);
}

int sum_calls(void *context, __u32 thread, const struct ap_count_key *key,
	      const struct ap_count *count)
{
	__u64 *sums = context;

	sums[0] += count->calls;
	sums[1] += count->size_bytes;
	return 0;
}

int sum_block(void *context, const struct ap_block_key *key, const struct ap_block *block)
{
	__u64 *sums = context;

	sums[0]++;
	sums[1] += block->size_bytes;
	return 0;
}
