// SPDX-License-Identifier: GPL-3.0-or-later
/* Programs that look at allocprof's own mappings find its mmap_lock held while another thread of it maps memory. The
 * linker puts the functions below in the place of libbpf's (--wrap). */
#include "unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "uprobe_internal.h"

static struct {
	int busy;   /* runs that find the lock held */
	int result; /* of those after it */
	int runs;
} kernel;

int __wrap_bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *options);
int __wrap_bpf_program__fd(const struct bpf_program *program);

int __wrap_bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *options)
{
	options->retval = kernel.runs++ < kernel.busy ? -EBUSY : kernel.result;
	return 0;
}

int __wrap_bpf_program__fd(const struct bpf_program *program)
{
	return 3;
}

static int look(int busy, int result)
{
	int args = 0;

	kernel = (typeof(kernel)){ .busy = busy, .result = result };
	return uprobe__look_at_own(NULL, &args, sizeof(args));
}

static void test_waits_for_the_lock(void **state)
{
	assert_int_equal(look(20, 0), 0);
	assert_int_equal(kernel.runs, 21);
}

static void test_other_errors_are_final(void **state)
{
	assert_int_equal(look(1, -ENOENT), -ENOENT);
	assert_int_equal(kernel.runs, 2);
}

static void test_does_not_wait_for_ever(void **state)
{
	assert_int_equal(look(1 << 30, 0), -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_the_lock),
		cmocka_unit_test(test_other_errors_are_final),
		cmocka_unit_test(test_does_not_wait_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
