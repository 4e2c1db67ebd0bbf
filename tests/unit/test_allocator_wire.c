// SPDX-License-Identifier: GPL-3.0-or-later
/* What a worker says of a file's allocator: all of it arrives, and nonsense is refused. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_internal.h"
#include "allocator_parse.h"
#include "dump_unwind_internal.h"
#include "elf_headers.h"
#include "parser.h"
#include "random.h"
#include "definitions.h"
#include "wire.h"

struct fixture {
	int fd;
	char *path;
	struct allocator *allocator; /* of the C library */
	struct executable_parts parts;
	struct wire_writer bytes;
};

static int find_libc(struct dl_phdr_info *info, size_t size, void *context)
{
	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(char **)context = strdup(info->dlpi_name);
	return 1;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	dl_iterate_phdr(find_libc, &fixture->path);
	assert_non_null(fixture->path);
	fixture->fd = open(fixture->path, O_RDONLY | O_CLOEXEC);
	assert_true(fixture->fd >= 0);
	assert_int_equal(
		allocator__read(fixture->fd, fixture->path, SITE_BEST, &fixture->allocator, NULL),
		0);
	assert_int_equal(executable_parts__read(fixture->fd, &fixture->parts), 0);
	allocator__write(fixture->allocator, &fixture->bytes);
	assert_false(fixture->bytes.has_failed);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	allocator__free(fixture->allocator);
	wire__release(&fixture->bytes);
	close(fixture->fd);
	free(fixture->path);
	free(fixture);
	return 0;
}

static void assert_same_site(const struct site *a, const struct site *b)
{
	assert_int_equal(a->function, b->function);
	assert_int_equal(a->names, b->names);
	assert_int_equal(a->n_aliases, b->n_aliases);
	for (size_t i = 0; i < a->n_aliases; i++)
		assert_string_equal(a->aliases[i], b->aliases[i]);
	assert_int_equal(a->entry_vaddr, b->entry_vaddr);
	assert_int_equal(a->probe_vaddr, b->probe_vaddr);
	assert_int_equal(a->entry_offset, b->entry_offset);
	assert_int_equal(a->probe_offset, b->probe_offset);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->emulated, b->emulated);
	assert_string_equal(a->instruction, b->instruction);
	assert_string_equal(a->reason, b->reason);
	assert_memory_equal(a->argument_at, b->argument_at, sizeof(a->argument_at));
	assert_int_equal(a->lowered_bytes, b->lowered_bytes);
	assert_string_equal(a->entry_instruction, b->entry_instruction);
	assert_int_equal(a->tail_calls, b->tail_calls);
	assert_ptr_equal(a->interface, b->interface);
	assert_null(b->usdt);
	assert_int_equal(a->is_own, b->is_own);
	assert_int_equal(a->throws, b->throws);
	assert_int_equal(a->may_jump, b->may_jump);
	assert_int_equal(a->must_jump, b->must_jump);
	assert_int_equal(a->returns, b->returns);
}

static void assert_same_numbers(const __u64 *a, size_t n, const __u64 *b, size_t m)
{
	assert_int_equal(n, m);
	if (n)
		assert_memory_equal(a, b, n * sizeof(*a));
}

static void assert_same(const struct allocator *a, const struct allocator *b)
{
	assert_string_equal(a->path, b->path);
	assert_string_equal(a->build_id, b->build_id);
	assert_int_equal(a->text_start, b->text_start);
	assert_int_equal(a->text_end, b->text_end);
	assert_int_equal(a->n_sites, b->n_sites);
	for (size_t i = 0; i < a->n_sites; i++)
		assert_same_site(&a->sites[i], &b->sites[i]);
	assert_int_equal(a->n_unknown, b->n_unknown);
	for (size_t i = 0; i < a->n_unknown; i++) {
		assert_string_equal(a->unknown[i].name, b->unknown[i].name);
		assert_int_equal(a->unknown[i].offset, b->unknown[i].offset);
	}
	for (int i = 0; i < AP_FUNCTIONS; i++) {
		assert_int_equal(a->names[i].n, b->names[i].n);
		for (size_t j = 0; j < a->names[i].n; j++)
			assert_string_equal(a->names[i].list[j], b->names[i].list[j]);
	}
	assert_int_equal(a->is_described, b->is_described);
	assert_int_equal(a->is_wrapper, b->is_wrapper);
	assert_int_equal(a->goes_past, b->goes_past);
	assert_int_equal(a->is_collected, b->is_collected);
	assert_int_equal(a->is_in_program, b->is_in_program);
	assert_int_equal(a->has_unclear_references, b->has_unclear_references);
	assert_int_equal(a->n_references, b->n_references);
	if (a->n_references)
		assert_memory_equal(a->references, b->references,
				    a->n_references * sizeof(*a->references));
	assert_same_numbers(a->internal_returns, a->n_internal_returns, b->internal_returns,
			    b->n_internal_returns);
	assert_same_numbers(a->return_offsets, a->n_return_offsets, b->return_offsets,
			    b->n_return_offsets);
	assert_same_numbers(a->nest_offsets, a->n_nest_offsets, b->nest_offsets, b->n_nest_offsets);
}

static void test_all_arrives(void **state)
{
	struct fixture *fixture = *state;
	struct allocator *allocator;
	struct parser *parser;

	assert_int_equal(parser__new(&parser, NULL), 0);
	assert_int_equal(allocator__parse(parser, fixture->fd, fixture->path, &allocator, NULL), 0);
	assert_in_range(allocator->n_sites, 9, 100);
	assert_same(fixture->allocator, allocator);
	allocator__free(allocator);
	parser__free(parser);
}

static bool is_code(const struct fixture *fixture, __u64 offset)
{
	return executable_parts__have_offset(&fixture->parts, offset);
}

/* Whether it is accepted; then it is as good as one that was read here. */
static bool take(const struct fixture *fixture, const struct wire_writer *bytes, size_t size)
{
	struct wire_reader reader = wire__reader(bytes->bytes, size);
	struct allocator *allocator;
	int err = allocator__take(&reader, fixture->path, NULL, &fixture->parts, &allocator);

	if (err) {
		assert_int_equal(err, -EPROTO);
		return false;
	}
	assert_in_range(allocator->n_sites, 0, MAX_SITES);
	for (size_t i = 0; i < allocator->n_sites; i++) {
		const struct site *site = &allocator->sites[i];

		assert_in_range(site->function, 0, AP_DEFINED - 1);
		assert_non_null(site->interface);
		assert_non_null(site->interface->name);
		assert_in_range(site->n_aliases, 0, MAX_ALIASES);
		assert_true(is_code(fixture, site->entry_offset));
		assert_true(is_code(fixture, site->probe_offset));
		assert_in_range(strlen(site->instruction), 0, sizeof(site->instruction) - 1);
	}
	for (size_t i = 0; i < allocator->n_return_offsets; i++)
		assert_true(is_code(fixture, allocator->return_offsets[i]));
	for (size_t i = 1; i < allocator->n_internal_returns; i++)
		assert_true(allocator->internal_returns[i - 1] < allocator->internal_returns[i]);
	allocator__free(allocator);
	return true;
}

static void test_nonsense(void **state)
{
	const struct fixture *fixture = *state;
	const struct wire_writer *good = &fixture->bytes;
	struct wire_writer bad = { 0 };
	int accepted = 0;

	seed(2);
	assert_true(take(fixture, good, good->size));
	for (int i = 0; i < 2000; i++)
		assert_false(take(fixture, good, below(good->size)));
	for (int i = 0; i < 5000; i++) {
		bad.size = 0;
		wire__put_bytes(&bad, good->bytes, good->size);
		for (int n = 1 + below(3); n; n--)
			bad.bytes[below(bad.size)] ^= below(2) ? random_u64() : 1ULL << below(8);
		accepted += take(fixture, &bad, bad.size);
	}
	/* Among what may be any number are addresses of internal calls. */
	assert_in_range(accepted, 1, 4999);
	for (int i = 0; i < 5000; i++) {
		bad.size = 0;
		for (int n = below(200); n; n--)
			wire__put_u32(&bad, below(2) ? below(4) : random_u64());
		assert_false(take(fixture, &bad, bad.size));
	}
	wire__release(&bad);
}

static void test_places_outside_of_code(void **state)
{
	struct fixture *fixture = *state;
	struct wire_writer bytes = { 0 };
	struct site *site = &fixture->allocator->sites[0];
	const struct site before = *site;

	/* In the file, and no code: an uprobe there would change data. */
	site->probe_offset = site->entry_offset = 0;
	site->probe_vaddr = site->entry_vaddr = 0;
	allocator__write(fixture->allocator, &bytes);
	assert_false(take(fixture, &bytes, bytes.size));
	/* Code, and somewhere else than the address says. */
	*site = before;
	site->probe_offset++;
	bytes.size = 0;
	allocator__write(fixture->allocator, &bytes);
	assert_false(take(fixture, &bytes, bytes.size));
	*site = before;
	site->probe_offset = site->entry_offset + SITE_MAX_DISTANCE + 1;
	site->probe_vaddr = site->entry_vaddr + SITE_MAX_DISTANCE + 1;
	bytes.size = 0;
	allocator__write(fixture->allocator, &bytes);
	assert_false(take(fixture, &bytes, bytes.size));
	/* An argument in the register of one that has none. */
	*site = before;
	site->argument_at[1] = SITE_REGISTERS + 1;
	bytes.size = 0;
	allocator__write(fixture->allocator, &bytes);
	assert_false(take(fixture, &bytes, bytes.size));
	/* A return address that is no word's distance above the stack pointer, and one that is too far above. */
	*site = before;
	for (__u32 bytes_below = 12; bytes_below < 4096; bytes_below += SITE_MAX_LOWERED - 4) {
		site->lowered_bytes = bytes_below;
		bytes.size = 0;
		allocator__write(fixture->allocator, &bytes);
		assert_false(take(fixture, &bytes, bytes.size));
	}
	*site = before;
	bytes.size = 0;
	allocator__write(fixture->allocator, &bytes);
	assert_true(take(fixture, &bytes, bytes.size));
	wire__release(&bytes);
}

/* The frames of a stack dump. */
static void test_nonsense_for_frames(void **state)
{
	struct ap_frame frames[4], written[5] = { { .offset = 1 }, { .offset = 2 } };
	struct wire_writer bytes = { 0 };
	enum ap_stack_end end = AP_END_BAD_FRAME;
	struct wire_reader reader;

	for (__u64 n = 0; n < 6; n++) {
		bytes.size = 0;
		wire__put_u32(&bytes, AP_END_COMPLETE);
		wire__put_u64(&bytes, n);
		wire__put_bytes(&bytes, written, sizeof(written[0]) * (n < 5 ? n : 0));
		reader = wire__reader(bytes.bytes, bytes.size);
		assert_int_equal(dump_unwind__take(&reader, frames, 4, &end),
				 n <= 4 ? (int)n : -EPROTO);
	}
	assert_int_equal(end, AP_END_COMPLETE);
	for (int i = 0; i < 3; i++) {
		written[0].flags = i == 0 ? AP_FRAME_INTERRUPTED << 1 : 0;
		written[0].module = i == 1;
		bytes.size = 0;
		wire__put_u32(&bytes, i == 2 ? AP_STACK_ENDS : AP_END_COMPLETE);
		wire__put_u64(&bytes, 1);
		wire__put_bytes(&bytes, written, sizeof(written[0]));
		reader = wire__reader(bytes.bytes, bytes.size);
		assert_int_equal(dump_unwind__take(&reader, frames, 4, &end), -EPROTO);
	}
	seed(3);
	for (int i = 0; i < 10000; i++) {
		int n;

		bytes.size = 0;
		for (int words = below(30); words; words--)
			wire__put_u32(&bytes, below(2) ? below(8) : random_u64());
		reader = wire__reader(bytes.bytes, bytes.size);
		n = dump_unwind__take(&reader, frames, 4, &end);
		assert_true(n == -EPROTO || (n >= 0 && n <= 4 && end < AP_STACK_ENDS));
	}
	wire__release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_arrives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nonsense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_places_outside_of_code, set_up, tear_down),
		cmocka_unit_test(test_nonsense_for_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
