// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Gives out the stubs, and finds what a stub is for. */
#include "stubs.h"

#include "interface_abi.h"
#include "memory.h"

struct own_functions own_functions;
/* All code of own_functions is between these, which only move apart. */
static __u64 bodies_start = ~0ULL, bodies_end;

/* allocprof keeps the list between measurements; it finds it by this symbol. */
extern struct own_functions allocprof_functions
	__attribute__((alias("own_functions"), visibility("protected")));

__u32 stubs__find(const void *address, const struct interface_function *row)
{
	__u32 n = __atomic_load_n(&own_functions.n, __ATOMIC_ACQUIRE);

	for (__u32 i = 0; i < n; i++)
		if (own_functions.list[i].address == address && own_functions.list[i].row == row)
			return i;
	return OWN_FUNCTIONS;
}

void stubs__widen(const struct own_function *function)
{
	__u64 start = (__u64)function->address, end = start + function->size;

	if (start < bodies_start)
		__atomic_store_n(&bodies_start, start, __ATOMIC_RELAXED);
	if (end > bodies_end)
		__atomic_store_n(&bodies_end, end, __ATOMIC_RELAXED);
}

bool stubs__may_have(__u64 return_address)
{
	return return_address > __atomic_load_n(&bodies_start, __ATOMIC_RELAXED) &&
	       return_address <= __atomic_load_n(&bodies_end, __ATOMIC_RELAXED);
}

__u32 stubs__add(const void *address, __u64 size, const struct interface_function *row)
{
	__u32 n = __atomic_load_n(&own_functions.n, __ATOMIC_RELAXED);
	struct own_function *function;

	do {
		if (n == OWN_FUNCTIONS) {
			memory__add_gap(INSIDE_GAP_FUNCTIONS);
			return n;
		}
	} while (!__atomic_compare_exchange_n(&own_functions.n, &n, n + 1, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	function = &own_functions.list[n];
	*function = (struct own_function){ (void *)address, size, row, NULL };
	if (row && !row->throws)
		function->returning = function;
	stubs__widen(function);
	return n;
}

__u64 stubs__lead_to(const void *address, __u64 size, const struct interface_function *row)
{
	__u32 number = stubs__find(address, row);

	if (number == OWN_FUNCTIONS)
		number = stubs__add(address, size, row);
	return number == OWN_FUNCTIONS ? 0 : stub__address(number);
}

const struct own_function *stubs__function_at(__u64 address)
{
	__u64 at = address - (__u64)allocprof_stubs, number = at / INSIDE_STUB_BYTES;

	return at % INSIDE_STUB_BYTES == 0 && number < own_functions.n ? &own_functions.list[number]
								       : NULL;
}
