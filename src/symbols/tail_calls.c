// SPDX-License-Identifier: GPL-3.0-or-later
#include "tail_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "elf_file.h"
#include "profile.h"
#include "symbols.h"
#include "tail_call_search.h"
#include "worker.h"

static void tail_call_pairs__release(struct tail_call_pairs *pairs)
{
	hash_table__release(&pairs->index);
	free(pairs->list);
}

static bool is_pair(const void *owner, __u32 id, const void *key)
{
	const struct tail_call_pair *pair = &((const struct tail_call_pairs *)owner)->list[id - 1];
	const struct tail_call_pair *wanted = key;

	return pair->inner == wanted->inner && pair->outer == wanted->outer &&
	       pair->function == wanted->function;
}

static __u64 hash_of(const struct tail_call_pairs *pairs, const struct tail_call_pair *pair)
{
	return hash_mix(hash_mix(hash_mix(pairs->seed, pair->inner), pair->outer), pair->function);
}

const struct tail_call_pair *tail_call_pairs__find(const struct tail_call_pairs *pairs,
						   const struct tail_call_pair *wanted)
{
	__u32 id = hash_table__find(&pairs->index, hash_of(pairs, wanted), is_pair, pairs, wanted);

	return id ? &pairs->list[id - 1] : NULL;
}

int tail_call_pairs__add(struct tail_call_pairs *pairs, const struct tail_call_pair *pair)
{
	int err = array__reserve(&pairs->list, &pairs->room, pairs->n + 1, sizeof(*pairs->list));

	if (!err)
		err = hash_table__insert(&pairs->index, hash_of(pairs, pair), pairs->n + 1);
	if (!err)
		pairs->list[pairs->n++] = *pair;
	return err;
}

static bool is_tail_call(const struct profile *profile, __u32 frame)
{
	return profile->frames[frame - 1].tail_call;
}

bool stack__may_begin(const struct profile *profile, const struct profile_stack *stack)
{
	return stack->n_frames && !is_tail_call(profile, stack->frames[0]);
}

bool stack__may_have_between(const struct profile *profile, const struct profile_stack *stack,
			     __u32 i)
{
	return i + 1 < stack->n_frames && stack->frames[i + 1] &&
	       !is_tail_call(profile, stack->frames[i]) &&
	       !is_tail_call(profile, stack->frames[i + 1]);
}

int stacks__functions(const struct profile *profile, __u64 **out)
{
	__u64 *functions = calloc(profile->n_stacks + 1, sizeof(*functions));

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_counts; i++)
		functions[profile->counts[i].stack - 1] |= 1ULL << profile->counts[i].function;
	*out = functions;
	return 0;
}

#define TIMEOUT_MS   120000
#define MEMORY_BYTES (2UL << 30)

struct insertion {
	struct profile *profile;
	const struct symbols *symbols;
	struct tail_call_pairs pairs;
	/* Ids of the frames of pairs.list[i].calls. Their number is smaller than that of the calls
	 * if there is another frame at the address of a call. */
	struct inserted {
		__u32 n;
		__u32 frames[TAIL_CALLS_MAX];
	} * inserted;
	bool *is_outer; /* by frame id - 1: it is the outer frame of a pair */
};

/* Runs in the worker: the parent opens the file. */
static int open_file(void *context, __u32 module, struct elf_file **out)
{
	const struct insertion *insertion = context;
	const struct profile_module *of_profile = &insertion->profile->modules[module - 1];
	struct wire_writer question = { 0 };
	_cleanup_(close_fd) int fd = -1;
	int err;

	wire__put_u32(&question, of_profile->id);
	fd = worker_call__ask(&question);
	wire__release(&question);
	if (fd < 0)
		return fd;
	err = elf_file__open(fd, of_profile->path, out, NULL);
	if (err || symbols__is_file(insertion->symbols, of_profile->id, *out))
		return err;
	elf_file__free(*out);
	return -ENOENT;
}

static int answer(void *context, struct wire_reader *question)
{
	const struct insertion *insertion = context;
	__u32 id = wire__get_u32(question);

	return wire__is_read(question) ? symbols__open_file(insertion->symbols, id) : -EPROTO;
}

/* Runs in the worker. */
static int search(struct worker_call *call)
{
	struct insertion *insertion = call->context;
	const struct tail_call_files files = { .open = open_file, .context = insertion };
	struct tail_call_pairs pairs = { .seed = insertion->pairs.seed };
	int err = tail_calls__search(insertion->profile, &files, &pairs);

	for (size_t i = 0; i < pairs.n && !err; i++)
		if (pairs.list[i].n)
			wire__put_bytes(&call->reply, &pairs.list[i], sizeof(pairs.list[i]));
	tail_call_pairs__release(&pairs);
	return err;
}

static bool is_valid(const struct profile *profile, const struct tail_call_pair *pair)
{
	if (pair->inner > profile->n_frames || !pair->outer || pair->outer > profile->n_frames ||
	    pair->function >= AP_FUNCTIONS || !pair->n || pair->n > TAIL_CALLS_MAX)
		return false;
	for (__u32 i = 0; i < pair->n; i++)
		if (!pair->calls[i].module || pair->calls[i].module > profile->n_modules)
			return false;
	return true;
}

/* Reads the pairs. Fails with -EPROTO if the worker did not write them. */
static int take_pairs(struct insertion *insertion, struct wire_reader *reply)
{
	struct tail_call_pair pair;
	int err = 0;

	while (reply->left && !err) {
		const void *bytes = wire__get_bytes(reply, sizeof(pair));

		if (!bytes)
			return -EPROTO;
		memcpy(&pair, bytes, sizeof(pair));
		if (!is_valid(insertion->profile, &pair) ||
		    tail_call_pairs__find(&insertion->pairs, &pair))
			return -EPROTO;
		err = tail_call_pairs__add(&insertion->pairs, &pair);
	}
	return err;
}

/* Notes that the worker failed: then frames of tail calls are missing, which the report says. */
static int note_failure(struct insertion *insertion, const struct worker *worker, int err)
{
	char why[256];

	insertion->pairs.n = 0;
	hash_table__release(&insertion->pairs.index);
	insertion->pairs.index = (struct hash_table){ 0 };
	if (worker__has_failed(worker))
		snprintf(why, sizeof(why), "the process that read the machine code %s",
			 worker__problem(worker));
	else
		snprintf(why, sizeof(why), "the machine code could not be read: %s",
			 strerror(-err));
	return profile__add_unread(insertion->profile, "functions that ended by a tail call", why);
}

static int find_pairs(struct insertion *insertion)
{
	const struct wire_writer request = { 0 };
	struct wire_reader reply;
	struct worker *worker = worker__new(&(struct worker_options){
		.name = "allocprof-code",
		.serve = search,
		.answer = answer,
		.context = insertion,
		.opens_nothing = true,
		.timeout_ms = TIMEOUT_MS,
		.memory_bytes = MEMORY_BYTES,
	});
	int err;

	if (!worker)
		return -ENOMEM;
	err = worker__call(worker, &request, NULL, 0, &reply);
	if (!err)
		err = take_pairs(insertion, &reply);
	if (err == -EPROTO)
		err = worker__refuse(worker);
	if (err)
		err = note_failure(insertion, worker, err);
	worker__free(worker);
	return err;
}

static int add_frames(struct insertion *insertion)
{
	insertion->inserted = calloc(insertion->pairs.n + 1, sizeof(*insertion->inserted));
	insertion->is_outer = calloc(insertion->profile->n_frames + 1, sizeof(bool));
	if (!insertion->inserted || !insertion->is_outer)
		return -ENOMEM;
	for (size_t i = 0; i < insertion->pairs.n; i++) {
		const struct tail_call_pair *pair = &insertion->pairs.list[i];
		struct inserted *inserted = &insertion->inserted[i];

		insertion->is_outer[pair->outer - 1] = true;
		for (__u32 j = 0; j < pair->n; j++) {
			int err = profile__add_tail_call(insertion->profile, pair->calls[j].module,
							 pair->calls[j].offset,
							 &inserted->frames[inserted->n]);

			if (err && err != -EEXIST)
				return err;
			inserted->n += !err;
		}
	}
	return 0;
}

/* Appends the frames between @inner and @outer, which is no frame that was inserted, to @frames. */
static void append(const struct insertion *insertion, __u32 inner, __u32 outer,
		   enum ap_function function, __u32 *frames, size_t *n)
{
	const struct tail_call_pair wanted = { .inner = inner,
					       .outer = outer,
					       .function = function };
	const struct tail_call_pair *pair =
		insertion->is_outer[outer - 1] ? tail_call_pairs__find(&insertion->pairs, &wanted)
					       : NULL;
	const struct inserted *inserted;

	if (!pair)
		return;
	inserted = &insertion->inserted[pair - insertion->pairs.list];
	memcpy(frames + *n, inserted->frames, inserted->n * sizeof(*frames));
	*n += inserted->n;
}

/* Inserts frames before the first one, if all functions called from this stack agree on them. */
static void begin_stack(const struct insertion *insertion, const struct profile_stack *stack,
			__u64 functions, __u32 *frames, size_t *n)
{
	__u32 others[TAIL_CALLS_MAX];
	bool is_first = true;

	for (int function = 0; function < AP_FUNCTIONS; function++) {
		size_t n_others = 0;

		if (!(functions & 1ULL << function))
			continue;
		append(insertion, 0, stack->frames[0], function, others, &n_others);
		if (!is_first &&
		    (*n != n_others || memcmp(frames, others, *n * sizeof(*frames)) != 0)) {
			*n = 0;
			return;
		}
		*n = n_others;
		memcpy(frames, others, *n * sizeof(*frames));
		is_first = false;
	}
}

static int insert(const struct insertion *insertion, const struct profile_stack *stack,
		  __u64 functions)
{
	_cleanup_(free_ptr) __u32 *frames = NULL;
	size_t n = 0;

	if (!stack->n_frames)
		return 0;
	frames = calloc((size_t)stack->n_frames * (TAIL_CALLS_MAX + 1), sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	if (stack__may_begin(insertion->profile, stack))
		begin_stack(insertion, stack, functions, frames, &n);
	for (__u32 i = 0; i < stack->n_frames; i++) {
		frames[n++] = stack->frames[i];
		if (stack__may_have_between(insertion->profile, stack, i))
			append(insertion, stack->frames[i], stack->frames[i + 1], 0, frames, &n);
	}
	if (n == stack->n_frames || n > AP_MAX_DEPTH)
		return 0;
	return profile__set_stack_frames(insertion->profile, stack->id, frames, n);
}

static int insert_all(const struct insertion *insertion)
{
	const struct profile *profile = insertion->profile;
	_cleanup_(free_ptr) __u64 *functions = NULL;
	int err = stacks__functions(profile, &functions);

	for (size_t i = 0; i < profile->n_stacks && !err; i++)
		err = insert(insertion, &profile->stacks[i], functions[i]);
	return err;
}

int profile__add_tail_calls(struct profile *profile, const struct symbols *symbols)
{
	struct insertion insertion = {
		.profile = profile,
		.symbols = symbols,
		.pairs.seed = hash_seed(),
	};
	int err = profile->n_stacks ? find_pairs(&insertion) : 0;

	if (!err && insertion.pairs.n)
		err = add_frames(&insertion);
	if (!err && insertion.pairs.n)
		err = insert_all(&insertion);
	free(insertion.inserted);
	free(insertion.is_outer);
	tail_call_pairs__release(&insertion.pairs);
	return err;
}
