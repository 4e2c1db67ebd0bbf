// SPDX-License-Identifier: GPL-3.0-or-later
/* Programs that unmap, protect or replace whatever they find mapped: the memory of the library of src/inside stays, or the library says
 * that it counts no more. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inside_host.h"
#include "measured_process.h"
#include "memory.h"
#include "process.h"
#include "stack.h"
#include "sys.h"

#define PAGE	4096UL
#define N_PAGES 5

/* Pages of the program; the second and the fourth are the library's. */
static char *map_pages(void)
{
	char *pages = mmap(NULL, N_PAGES * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	memset(pages, 1, N_PAGES * PAGE);
	spared__add((__u64)pages + PAGE, PAGE);
	spared__add((__u64)pages + 3 * PAGE, PAGE);
	return pages;
}

static void give_up_pages(char *pages)
{
	spared__remove((__u64)pages + PAGE);
	spared__remove((__u64)pages + 3 * PAGE);
	munmap(pages, N_PAGES * PAGE);
}

static bool is_mapped(const char *page)
{
	return !msync((void *)page, PAGE, MS_ASYNC);
}

static void test_unmapped_around(void **state)
{
	char *pages = map_pages();

	assert_int_equal(inside_munmap(pages, N_PAGES * PAGE), 0);
	for (int i = 0; i < N_PAGES; i++)
		assert_int_equal(is_mapped(pages + i * PAGE), i == 1 || i == 3);
	assert_int_equal(inside_syscall(__NR_munmap, pages + PAGE, PAGE), 0);
	assert_true(is_mapped(pages + PAGE));
	give_up_pages(pages);
}

/* The range ends within the library's memory. */
static void test_unmapped_in_part(void **state)
{
	char *pages = map_pages();

	spared__add((__u64)pages, N_PAGES * PAGE);
	assert_int_equal(inside_munmap(pages, 2 * PAGE), 0);
	assert_int_equal(inside_munmap(pages + PAGE, PAGE), 0);
	for (int i = 0; i < N_PAGES; i++)
		assert_true(is_mapped(pages + i * PAGE));
	spared__remove((__u64)pages);
	give_up_pages(pages);
}

static void test_protected_and_dropped_around(void **state)
{
	char *pages = map_pages();

	assert_int_equal(inside_madvise(pages, N_PAGES * PAGE, MADV_DONTNEED), 0);
	for (int i = 0; i < N_PAGES; i++)
		assert_int_equal(pages[i * PAGE], i == 1 || i == 3);
	assert_int_equal(inside_mprotect(pages, N_PAGES * PAGE, PROT_NONE), 0);
	for (int i = 0; i < N_PAGES; i++)
		assert_int_equal(memory__read_some((__u64)pages + i * PAGE, &(char){ 0 }, 1),
				 i == 1 || i == 3 ? 1 : -EFAULT);
	/* The kernel refuses the first part, as it would have refused all. */
	assert_int_equal(inside_mprotect(pages, N_PAGES * PAGE, 0x1000000), -1);
	assert_int_equal(errno, EINVAL);
	give_up_pages(pages);
}

static void test_not_moved(void **state)
{
	char *pages = map_pages();

	errno = 0;
	assert_ptr_equal(inside_mremap(pages, N_PAGES * PAGE, PAGE, 0), MAP_FAILED);
	assert_int_equal(errno, EFAULT);
	assert_true(is_mapped(pages + 4 * PAGE));
	assert_ptr_equal(inside_mremap(pages + 4 * PAGE, PAGE, PAGE, 0), pages + 4 * PAGE);
	give_up_pages(pages);
}

/* As many as there is room for; of further ones the library's counts may be taken. */
static void test_room(void **state)
{
	const __u64 first = 1ULL << 46, most = 40000;
	__u64 n = 0;

	for (__u64 i = 0; i < most; i++)
		spared__add(first + i * PAGE, PAGE);
	while (n < most && spared__overlaps(first + n * PAGE, PAGE))
		n++;
	assert_true(n > 30000 && n < most);
	spared__remove(first);
	assert_false(spared__overlaps(first, PAGE));
	/* The free place is found again. */
	spared__add(first + n * PAGE, PAGE);
	assert_true(spared__overlaps(first + n * PAGE, PAGE));
	for (__u64 i = 0; i < most; i++)
		spared__remove(first + i * PAGE);
	assert_false(spared__overlaps(first, most * PAGE));
	/* The kernel takes neither of these for a range. */
	assert_false(spared__overlaps(first + 1, PAGE));
	assert_false(spared__overlaps(first, -PAGE));
}

static void map_over_header(void)
{
	inside_free(inside_malloc(1));
	CHECK(inside_mmap(memory__header(), PAGE, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory__header());
	inside_free(inside_malloc(2));
}

static void move_over_header(void)
{
	char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	inside_free(inside_malloc(1));
	CHECK(inside_mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory__header()) ==
	      memory__header());
	inside_free(inside_malloc(2));
}

static void test_replaced(void **state)
{
	void (*const programs[])(void) = { map_over_header, move_over_header };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const struct inside_settings settings = { .mode = INSIDE_COUNT };
		struct measured measured;

		measure(&settings, programs[i], &measured);
		assert_int_equal(measured.results.gaps[INSIDE_GAP_REPLACED], 1);
		assert_int_equal(measured.results.functions[AP_MALLOC].calls, 1);
		measured__finish(&measured);
	}
}

/* Unmaps all shared mappings, which are the library's memory. */
static void unmap_all(void)
{
	size_t size = (sizeof(struct inside_header) + PAGE - 1) & -PAGE;

	inside_free(inside_malloc(1));
	CHECK(!inside_munmap(memory__header(), size) && !inside_munmap(self->shared, PAGE));
	CHECK(!inside_mprotect(memory__header(), size, PROT_NONE));
	inside_free(inside_malloc(2));
}

static void test_counts_go_on(void **state)
{
	const struct inside_settings settings = { .mode = INSIDE_RECORD };
	struct measured measured;

	measure(&settings, unmap_all, &measured);
	assert_int_equal(measured.results.functions[AP_MALLOC].calls, 2);
	measured__finish(&measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmapped_around),
		cmocka_unit_test(test_unmapped_in_part),
		cmocka_unit_test(test_protected_and_dropped_around),
		cmocka_unit_test(test_not_moved),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_counts_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
