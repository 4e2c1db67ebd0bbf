// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Leads the words of tables by which an object calls its allocators to stubs, and back again. */
#include "domains.h"

#include "inside_abi.h"
#include "interface_abi.h"
#include "memory.h"
#include "stack.h"
#include "stubs.h"
#include "sys.h"

/* The words of struct PyMemAllocatorEx. */
enum {
	WORD_CONTEXT,
	WORD_MALLOC,
	WORD_CALLOC,
	WORD_REALLOC,
	WORD_FREE,
	TABLE_WORDS,
};

/* Number of the domain whose default functions are malloc and its like. */
#define RAW 0

#define MAX_TABLES 16

/* They do not change, as stubs of earlier measurements refer to them, too. */
#define ROW(...)                                                                                   \
	{                                                                                          \
		"", .kind = INTERFACE_DOMAIN, __VA_ARGS__                                          \
	}
#define ROWS                                                                                       \
	{                                                                                          \
		[WORD_MALLOC] = ROW(.size = 2), [WORD_CALLOC] = ROW(.size = 3, .count = 2),        \
		[WORD_REALLOC] = ROW(.size = 3, .pointer = 2), [WORD_FREE] = ROW(.pointer = 2),    \
	}
static const struct interface_function rows[INSIDE_DOMAINS][TABLE_WORDS] = {
	ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS,
};

static const __u32 kinds[TABLE_WORDS] = {
	[WORD_REALLOC] = AP_DEFINED_REALLOC,
	[WORD_FREE] = AP_DEFINED_FREE,
};

struct domain_table {
	__u64 *words; /* NULL: the entry is free */
	__u64 expected[TABLE_WORDS];
	const struct object *object;
	__u64 start, end; /* addresses of the object */
	__u32 domain;
	bool is_used; /* a call came by it */
};

static struct domain_table tables[MAX_TABLES];
static __u32 n_tables, n_unloads;
__u32 domains_n;

/* By domain: 1: the table had other functions when something else was called. If they hand calls on to those of before,
 * each has been counted there; if not, nobody knows how many there were. */
static __u32 are_doubted[INSIDE_DOMAINS];

void domains__begin(void)
{
	__u32 n = memory__header()->counted.n_domains;

	domains_n = n < INSIDE_DOMAINS ? n : INSIDE_DOMAINS;
}

static __u64 load(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static bool leads_to_us(const struct domain_table *table)
{
	bool leads = true;

	for (int i = WORD_MALLOC; i < TABLE_WORDS; i++)
		leads &= load(&table->words[i]) == load(&table->expected[i]);
	return leads;
}

/* Returns false if another thread has changed the word meanwhile. */
static bool replace(__u64 *word, __u64 before, __u64 after)
{
	return __atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_RELEASE,
					   __ATOMIC_RELAXED);
}

/* Has the words lead to stubs. A word that another thread changes meanwhile stays as it is, and is found the next
 * time. Returns whether the first one led past the stubs. */
static bool redirect(struct domain_table *table)
{
	bool led_past = !stubs__function_at(load(&table->words[WORD_MALLOC]));

	for (int i = WORD_MALLOC; i < TABLE_WORDS; i++) {
		__u64 value = load(&table->words[i]), stub = value;

		if (value && !stubs__function_at(value)) {
			stub = stubs__lead_to((void *)value, 0, &rows[table->domain][i]);
			if (!stub) {
				memory__add_gap(INSIDE_GAP_FUNCTIONS);
				stub = value;
			} else if (!replace(&table->words[i], value, stub)) {
				continue;
			}
		}
		__atomic_store_n(&table->expected[i], stub, __ATOMIC_RELAXED);
	}
	return led_past;
}

static bool is_mapped(const struct domain_table *table)
{
	return __atomic_load_n(&table->words, __ATOMIC_ACQUIRE) &&
	       (likely(!__atomic_load_n(&n_unloads, __ATOMIC_ACQUIRE)) ||
		table->object == objects__first());
}

/* @domain: that of the stub by which the call came, INSIDE_DOMAINS: none. */
static __attribute__((noinline, cold)) void take_changes(struct domain_table *table, __u32 domain)
{
	/* Only the functions of the raw domain call malloc each time, by which they are noticed at their first call. */
	if (redirect(table) && table->is_used && table->domain != domain &&
	    memory__header()->counted.domains[table->domain].number != RAW)
		__atomic_store_n(&are_doubted[table->domain], 1, __ATOMIC_RELAXED);
}

static inline void check(struct domain_table *table, __u32 domain)
{
	if (unlikely(!leads_to_us(table)))
		take_changes(table, domain);
}

bool domains__called(const struct interface_function *row, struct interface_function *out)
{
	__u32 domain = (row - rows[0]) / TABLE_WORDS, word = (row - rows[0]) % TABLE_WORDS;
	__u32 n = __atomic_load_n(&n_tables, __ATOMIC_ACQUIRE), definition;

	if (domain >= domains_n)
		return false;
	for (__u32 i = 0; i < n; i++) {
		struct domain_table *table = &tables[i];

		if (!is_mapped(table))
			continue;
		if (table->domain == domain)
			table->is_used = true;
		check(table, domain);
	}
	definition = memory__header()->counted.domains[domain].definition;
	if (definition >= AP_MAX_DEFINITIONS)
		return false;
	*out = *row;
	out->function =
		(enum ap_function)(AP_DEFINED + definition * AP_DEFINED_KINDS + kinds[word]);
	return true;
}

void domains__returned(const struct interface_function *row, bool was_handed_on)
{
	__u32 *is_doubted = &are_doubted[(row - rows[0]) / TABLE_WORDS];

	if (likely(!__atomic_load_n(is_doubted, __ATOMIC_RELAXED)))
		return;
	if (__atomic_exchange_n(is_doubted, 0, __ATOMIC_RELAXED) && !was_handed_on)
		memory__add_gap(INSIDE_GAP_FUNCTIONS);
}

void domains__check(__u64 return_address)
{
	__u32 n = __atomic_load_n(&n_tables, __ATOMIC_ACQUIRE);

	for (__u32 i = 0; i < n; i++)
		if (return_address - tables[i].start < tables[i].end - tables[i].start &&
		    is_mapped(&tables[i]))
			check(&tables[i], INSIDE_DOMAINS);
}

typedef void (*get_t)(__u32 domain, __u64 table[TABLE_WORDS]);

void domains__await_locks(const struct inside_all_counted *counted)
{
	const struct object *object = objects__first();
	__u64 copy[TABLE_WORDS];
	struct definition getter;

	for (; counted->n_domains && object; object = object->next)
		for (__u32 i = 0; i < counted->n_domains && i < INSIDE_DOMAINS; i++)
			if (object__defines(object, counted->domains[i].getter, &getter))
				((get_t)getter.address)(counted->domains[i].number, copy);
}

struct look {
	const struct object *object;
	const struct object_span *span;
	get_t get;
	__u32 domain, number;
	__u64 sought[TABLE_WORDS];
	bool is_found;
};

static bool is_at(const __u64 *words, const __u64 sought[TABLE_WORDS])
{
	for (int i = 0; i < TABLE_WORDS; i++)
		if (words[i] != sought[i])
			return false;
	return true;
}

static bool is_known(const struct object *object, __u32 domain)
{
	for (__u32 i = 0; i < n_tables; i++)
		if (tables[i].words && tables[i].object == object && tables[i].domain == domain)
			return true;
	return false;
}

static void add(const struct look *look, __u64 *words)
{
	struct domain_table *table = tables;
	struct inside_domain *domain = &memory__header()->counted.domains[look->domain];

	__atomic_store_n(&domain->is_found, 1, __ATOMIC_RELAXED);
	while (table < tables + n_tables && table->words)
		table++;
	if (table == tables + MAX_TABLES) {
		memory__add_gap(INSIDE_GAP_FUNCTIONS);
		return;
	}
	*table = (struct domain_table){
		.object = look->object,
		.start = look->span->start,
		.end = look->span->end,
		.domain = look->domain,
	};
	__atomic_store_n(&table->words, words, __ATOMIC_RELEASE);
	redirect(table);
	if (table == tables + n_tables)
		__atomic_store_n(&n_tables, n_tables + 1, __ATOMIC_RELEASE);
}

static bool asks(const struct look *look, __u64 out[TABLE_WORDS])
{
	outside__begin();
	look->get(look->number, out);
	outside__end();
	return out[WORD_MALLOC];
}

/* Looks for the table among the words of an object's data. Others may have the same values: copies of the table, and
 * tables of other domains. So one of its words gets the stub's address, by which the same is called, and the object's
 * own function has to find that there. */
static void look_at(void *context, __u64 *start, __u64 *filled_end, __u64 *end)
{
	struct look *look = context;
	const struct own_function *stub;
	__u64 before = look->sought[WORD_MALLOC], other;

	for (__u64 *words = start; !look->is_found && words + TABLE_WORDS <= filled_end; words++) {
		__u64 now[TABLE_WORDS] = { 0 };

		if (load(&words[WORD_MALLOC]) != before || !is_at(words, look->sought))
			continue;
		stub = stubs__function_at(before);
		other = stub ? (__u64)stub->address
			     : stubs__lead_to((void *)before, 0, &rows[look->domain][WORD_MALLOC]);
		if (!other)
			return;
		if (!replace(&words[WORD_MALLOC], before, other))
			continue;
		look->is_found = asks(look, now) && now[WORD_MALLOC] == other;
		if (look->is_found)
			add(look, words);
		else
			replace(&words[WORD_MALLOC], other, before);
	}
}

void domains__look(const struct object *object, const struct object_span *span)
{
	const struct inside_domain *domains = memory__header()->counted.domains;

	for (__u32 i = 0; i < domains_n; i++) {
		struct look look = {
			.object = object,
			.span = span,
			.domain = i,
			.number = domains[i].number,
		};
		struct definition getter;

		if (is_known(object, i) || !object__defines(object, domains[i].getter, &getter))
			continue;
		look.get = (get_t)getter.address;
		if (asks(&look, look.sought))
			objects__each_data(span, look_at, &look);
		if (!look.is_found)
			memory__add_gap(INSIDE_GAP_FUNCTIONS);
	}
}

void domains__forget_unloaded(void)
{
	for (__u32 i = 0; i < n_tables; i++)
		if (!object__is_listed(tables[i].object))
			__atomic_store_n(&tables[i].words, NULL, __ATOMIC_RELEASE);
}

void domains__begin_unload(void)
{
	__atomic_fetch_add(&n_unloads, 1, __ATOMIC_SEQ_CST);
}

void domains__end_unload(void)
{
	__atomic_fetch_sub(&n_unloads, 1, __ATOMIC_SEQ_CST);
}

void domains__forked(void)
{
	n_unloads = 0;
}

static bool is_of_domain(const struct own_function *function)
{
	return function && function->row && function->row->kind == INTERFACE_DOMAIN;
}

/* The program may have made pages of its data unreadable, so they are copied. */
static void restore_data(void *context, __u64 *start, __u64 *filled_end, __u64 *end)
{
	enum {
		PAGE_WORDS = 512
	};
	static __u64 copy[PAGE_WORDS];
	__u64 n;

	for (__u64 *word = start; word < end; word += n) {
		/* Up to the end of the page. */
		n = PAGE_WORDS - ((__u64)word / sizeof(*word)) % PAGE_WORDS;
		n = n < (__u64)(end - word) ? n : (__u64)(end - word);
		if (!memory__read((__u64)word, copy, n * sizeof(*word)))
			continue;
		for (__u64 i = 0; i < n; i++) {
			const struct own_function *function = stubs__function_at(copy[i]);

			if (is_of_domain(function))
				__atomic_store_n(&word[i], (__u64)function->address,
						 __ATOMIC_RELEASE);
		}
	}
}

__u64 domains__restore(void)
{
	const struct object *object = objects__first();
	struct object_span span;
	__u64 n_lost = 0;

	for (__u32 i = 0; i < n_tables; i++)
		n_lost += tables[i].words && !leads_to_us(&tables[i]);
	for (; n_tables && object; object = object->next)
		if (objects__span((__u64)object->dynamic, &span))
			objects__each_data(&span, restore_data, NULL);
	n_tables = 0;
	return n_lost;
}
