// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Chooses the name under which a thread is counted: its own, its own with '*' in place of digits,
 * or INSIDE_OTHER_NAMES. */
#include "thread_names.h"

#include <stdbool.h>

#include "abi.h"
#include "memory.h"
#include "sys.h"

/* Limits of the number of threads' own names, and of names with '*'. */
#define MOST_NAMES    512
#define MOST_PATTERNS 64

/* Slots of the hash table: a power of two that leaves room. */
#define SLOTS 1024

static struct thread_name names[SLOTS], of_all;
static __u32 n_names;

struct thread_name *thread_names__of_all(void)
{
	return &of_all;
}

static __u64 hash_of(const char *comm)
{
	__u64 hash = 0xcbf29ce484222325ULL;

	for (int i = 0; i < AP_COMM_LEN && comm[i]; i++)
		hash = (hash ^ (__u8)comm[i]) * 0x100000001b3ULL;
	return hash | 1;
}

/* Finds or adds the name. Returns NULL if it is new and there are @most names already. */
static struct thread_name *find(const char *comm, __u32 most)
{
	__u64 hash = hash_of(comm);

	for (__u32 i = 0; i < SLOTS; i++) {
		struct thread_name *name = &names[((hash >> 32) + i) % SLOTS];
		__u64 has = __atomic_load_n(&name->hash, __ATOMIC_RELAXED);

		if (has == hash)
			return name;
		if (has)
			continue;
		if (__atomic_load_n(&n_names, __ATOMIC_RELAXED) >= most)
			return NULL;
		if (__atomic_compare_exchange_n(&name->hash, &has, hash, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(&n_names, 1, __ATOMIC_RELAXED);
			return name;
		}
		if (has == hash)
			return name;
	}
	return NULL;
}

static void replace_digits(char *comm)
{
	int n = 0;

	for (int i = 0; i < AP_COMM_LEN && comm[i]; i++) {
		bool is_digit = comm[i] >= '0' && comm[i] <= '9';

		if (!is_digit)
			comm[n++] = comm[i];
		else if (!n || comm[n - 1] != '*')
			comm[n++] = '*';
	}
	memset(comm + n, 0, AP_COMM_LEN - n);
}

struct thread_name *thread_names__choose(char *comm)
{
	struct thread_name *name = find(comm, MOST_NAMES);

	if (name)
		return name;
	memory__add_gap(INSIDE_GAP_NAMES);
	replace_digits(comm);
	name = find(comm, MOST_NAMES + MOST_PATTERNS);
	if (name)
		return name;
	memset(comm, 0, AP_COMM_LEN);
	text__append(comm, comm + AP_COMM_LEN, INSIDE_OTHER_NAMES);
	return &of_all;
}

void thread_names__forget(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (names[i].hash)
			names[i] = (struct thread_name){ 0 };
	of_all = (struct thread_name){ 0 };
	n_names = 0;
}
