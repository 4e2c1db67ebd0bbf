// SPDX-License-Identifier: GPL-3.0-or-later
/* What is found and picked of the running kernel's types, against libbpf. */
#include "unit.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_types.h"

static struct kernel_types *types;
static struct btf *kernel;

static int set_up(void **state)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return 0;
	kernel = btf__load_vmlinux_btf();
	return kernel ? kernel_types__open(&types) : -errno;
}

static int tear_down(void **state)
{
	kernel_types__free(types);
	btf__free(kernel);
	return 0;
}

static void require_types(void)
{
	if (!types)
		skip();
}

static void test_functions(void **state)
{
	const char *names[] = { "perf_event_mmap", "do_exit", "no_such_function" };

	require_types();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int id = btf__find_by_name_kind(kernel, names[i], BTF_KIND_FUNC);

		assert_int_equal(kernel_types__function(types, names[i]), id > 0 ? id : 0);
	}
}

static void test_tracepoints(void **state)
{
	require_types();
	/* A task and the process id it had before, and the program. */
	assert_int_equal(kernel_types__tracepoint_parameters(types, "sched_process_exec"), 3);
	assert_int_equal(kernel_types__tracepoint_parameters(types, "no_such_tracepoint"), 0);
}

static const char *name(const struct btf *btf, __u32 offset)
{
	return btf__name_by_offset(btf, offset);
}

/* The structs have the same fields, and so have structs in them. */
static void assert_same(const struct btf *picked, __u32 picked_id, __u32 kernel_id)
{
	const struct btf_type *is = btf__type_by_id(picked, picked_id);
	const struct btf_type *should_be = btf__type_by_id(kernel, kernel_id);

	assert_int_equal(is->info, should_be->info);
	assert_string_equal(name(picked, is->name_off), name(kernel, should_be->name_off));
	if (btf_is_mod(is) || btf_is_typedef(is))
		return assert_same(picked, is->type, should_be->type);
	if (!btf_is_ptr(is) && !btf_is_fwd(is))
		assert_int_equal(btf__resolve_size(picked, picked_id),
				 btf__resolve_size(kernel, kernel_id));
	if (!btf_is_composite(is))
		return;
	for (int i = 0; i < btf_vlen(is); i++) {
		assert_string_equal(name(picked, btf_members(is)[i].name_off),
				    name(kernel, btf_members(should_be)[i].name_off));
		assert_int_equal(btf_members(is)[i].offset, btf_members(should_be)[i].offset);
		assert_same(picked, btf_members(is)[i].type, btf_members(should_be)[i].type);
	}
}

static void test_pick(void **state)
{
	const char *wanted[] = { "task_struct___old", "mm_struct", "no_such_struct" };
	struct btf *local, *picked;
	char path[64];
	int fd;

	require_types();
	local = btf__new_empty();
	fd = memfd_create("types", MFD_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_true(btf__add_struct(local, wanted[i], 4) > 0);
	assert_int_equal(kernel_types__pick(types, local, fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	picked = btf__parse(path, NULL);
	assert_non_null(picked);
	assert_true(btf__type_cnt(picked) < btf__type_cnt(kernel) / 10);
	assert_int_equal(btf__find_by_name_kind(picked, "no_such_struct", BTF_KIND_STRUCT),
			 -ENOENT);
	assert_int_equal(btf__find_by_name_kind(picked, "inode", BTF_KIND_STRUCT), -ENOENT);
	assert_same(picked, btf__find_by_name_kind(picked, "task_struct", BTF_KIND_STRUCT),
		    btf__find_by_name_kind(kernel, "task_struct", BTF_KIND_STRUCT));
	assert_same(picked, btf__find_by_name_kind(picked, "mm_struct", BTF_KIND_STRUCT),
		    btf__find_by_name_kind(kernel, "mm_struct", BTF_KIND_STRUCT));
	btf__free(picked);
	btf__free(local);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_tracepoints),
		cmocka_unit_test(test_pick),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
