// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The handler gets every record once, in order and on the caller's thread, also what the other thread took out of the
 * ring buffer meanwhile. libbpf's ring buffer is replaced (--wrap) by one whose records are numbers.
 */
#include "unit.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "ring_reader.h"

static struct {
	ring_buffer_sample_fn keep;
	void *context;
	__u64 written, read; /* atomic */
} buffer;

struct ring_buffer *__wrap_ring_buffer__new(int fd, ring_buffer_sample_fn keep, void *context,
					    const struct ring_buffer_opts *options);
int __wrap_ring_buffer__consume(struct ring_buffer *ring);
void __wrap_ring_buffer__free(struct ring_buffer *ring);

struct ring_buffer *__wrap_ring_buffer__new(int fd, ring_buffer_sample_fn keep, void *context,
					    const struct ring_buffer_opts *options)
{
	buffer.keep = keep;
	buffer.context = context;
	buffer.written = buffer.read = 0;
	return (struct ring_buffer *)&buffer;
}

/* As libbpf's: a negative result of the callback ends it, after its record. */
int __wrap_ring_buffer__consume(struct ring_buffer *ring)
{
	int n = 0;

	while (buffer.read < __atomic_load_n(&buffer.written, __ATOMIC_ACQUIRE)) {
		__u64 record = buffer.read;
		int err = buffer.keep(buffer.context, &record, sizeof(record));

		__atomic_store_n(&buffer.read, buffer.read + 1, __ATOMIC_RELEASE);
		if (err < 0)
			return err;
		n++;
	}
	return n;
}

void __wrap_ring_buffer__free(struct ring_buffer *ring)
{
}

struct handled {
	pthread_t thread;
	__u64 n;
	__u64 refused; /* number of a record for which the handler fails; 0: none */
};

static int handle(void *context, void *record, size_t size)
{
	struct handled *handled = context;

	assert_true(pthread_equal(pthread_self(), handled->thread));
	assert_int_equal(size, sizeof(__u64));
	assert_int_equal(*(__u64 *)record, handled->n);
	handled->n++;
	return handled->refused && handled->n > handled->refused ? -EINVAL : 0;
}

static void write_records(__u64 n)
{
	__atomic_add_fetch(&buffer.written, n, __ATOMIC_RELEASE);
}

static void await_reading(void)
{
	while (__atomic_load_n(&buffer.read, __ATOMIC_ACQUIRE) < buffer.written)
		usleep(1000);
}

static struct ring_reader *new_reader(struct handled *handled)
{
	struct ring_reader *reader;

	handled->thread = pthread_self();
	assert_int_equal(ring_reader__new(-1, 1ULL << 30, handle, handled, &reader), 0);
	return reader;
}

static void test_in_order(void **state)
{
	struct handled handled = { 0 };
	struct ring_reader *reader = new_reader(&handled);

	write_records(10);
	assert_int_equal(ring_reader__read(reader), 10);
	assert_false(ring_reader__has_kept(reader));

	/* Enough for several pieces. */
	write_records(300000);
	ring_reader__step_back(reader);
	await_reading();
	ring_reader__resume(reader);
	assert_int_equal(handled.n, 10);
	assert_true(ring_reader__has_kept(reader));
	write_records(5);
	assert_int_equal(ring_reader__read(reader), 300005);
	assert_int_equal(handled.n, 300015);
	assert_false(ring_reader__has_kept(reader));
	ring_reader__free(reader);
}

static void test_error_of_the_handler(void **state)
{
	struct handled handled = { .refused = 3 };
	struct ring_reader *reader = new_reader(&handled);

	write_records(10);
	ring_reader__step_back(reader);
	await_reading();
	ring_reader__resume(reader);
	assert_int_equal(ring_reader__read(reader), -EINVAL);
	assert_int_equal(handled.n, 4);
	ring_reader__free(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_error_of_the_handler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
