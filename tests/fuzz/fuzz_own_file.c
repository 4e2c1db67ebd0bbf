// SPDX-License-Identifier: GPL-3.0-or-later
/* The file that a process has kept for itself, to which it may have written anything, made into a profile. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "file.h"
#include "fuzz.h"
#include "inside_abi.h"
#include "profile.h"
#include "record_abi.h"
#include "session.h"

/* Where the parts of the file are. All of them are reached in a file as a process would write it. */
enum {
	ORIGIN_AT = 64 << 10,
	PROGRAMS_AT = 72 << 10,
	THREADS_AT = 88 << 10,
	MODULES_AT = 92 << 10,
	REFUSED_AT = 112 << 10,
	THREAD_AT = 132 << 10,
	COUNTS_AT = 144 << 10,
	STACK_AT = 152 << 10,
	STACKS_AT = 160 << 10,
	FILE_BYTES = STACKS_AT + (sizeof(struct inside_stack) << INSIDE_FIRST_STACKS),
};

_Static_assert(sizeof(struct inside_header) <= ORIGIN_AT, "the header has room");
_Static_assert(sizeof(struct inside_thread) <= COUNTS_AT - THREAD_AT, "the thread has room");

static void fill_header(struct inside_header *header, bool is_live)
{
	*header = (struct inside_header){
		.magic = INSIDE_MAGIC,
		.version = INSIDE_VERSION,
		.header_bytes = sizeof(*header),
		.size_bytes = FILE_BYTES,
		.settings = {
			.mode = is_live ? INSIDE_LIVE : INSIDE_RECORD,
			.max_depth = 127,
			.stacks = 1,
			.is_own = 1,
		},
		.next = FILE_BYTES,
		.programs = { { PROGRAMS_AT }, 1, 0 },
		.threads = { { THREADS_AT }, 1, 0 },
		.modules = { { MODULES_AT }, 1, 0 },
		.refused = { { REFUSED_AT }, 1, 0 },
		.stacks = { STACKS_AT },
		.n_stacks = { 1 },
		.origin = ORIGIN_AT,
	};
}

static void fill(char *bytes, bool is_live, bool is_sampled)
{
	struct ap_stack_record *stack = (void *)(bytes + STACK_AT);
	struct inside_thread *thread = (void *)(bytes + THREAD_AT);
	struct inside_module *module = (void *)(bytes + MODULES_AT);
	struct inside_count *count = (void *)(bytes + COUNTS_AT);
	struct inside_origin *origin = (void *)(bytes + ORIGIN_AT);

	fill_header((void *)bytes, is_live);
	origin->sample_bytes = is_sampled ? 4096 : 0;
	origin->command_bytes = sizeof("a\0b");
	memcpy(origin->command, "a\0b", sizeof("a\0b"));
	*(struct inside_program *)(bytes + PROGRAMS_AT) =
		(struct inside_program){ .state = INSIDE_READY, .pid = 9, .comm = "a" };
	*(__u64 *)(bytes + THREADS_AT) = THREAD_AT;
	module->state = INSIDE_READY;
	strcpy(module->path, "/nonexistent");
	*(struct inside_refused *)(bytes + REFUSED_AT) =
		(struct inside_refused){ .state = INSIDE_READY, .path = "b" };
	thread->state = INSIDE_READY;
	thread->program = 1;
	*(is_live ? &thread->records : &thread->counts) = COUNTS_AT | 4;
	count->stack = 5;
	count->calls = 1;
	((struct inside_stack *)(bytes + STACKS_AT))[5] =
		(struct inside_stack){ .hash = 5, .offset = STACK_AT };
	*stack = (struct ap_stack_record){
		.type = AP_RECORD_STACK,
		.n_frames = 1,
		.stack = 5,
		.process = 1,
	};
	*(struct ap_frame *)(stack + 1) =
		(struct ap_frame){ .module = INSIDE_FIRST_MODULE, .offset = 8 };
}

/* The words of the file that can be changed: a place has two bytes of the input, of which the largest parts have
 * most. */
static __u64 *place_of(char *bytes, const uint8_t *input)
{
	static const __u32 parts[] = { 0,	   0,	       ORIGIN_AT,  PROGRAMS_AT,
				       THREADS_AT, MODULES_AT, REFUSED_AT, THREAD_AT,
				       COUNTS_AT,  STACK_AT,   STACKS_AT };
	__u32 part = input[0] % (sizeof(parts) / sizeof(parts[0]));
	__u32 word = input[1] | (part == 1 ? 0x100 : 0);

	return (__u64 *)(bytes + parts[part]) + word;
}

static __u64 make_word(__u64 before, const uint8_t *input)
{
	__u64 value = input[1] << 8 | input[2];

	switch (input[0] % 6) {
	case 0:
		return value;
	case 1:
		return value * 8;
	case 2:
		return ~0ULL >> input[2] % 64;
	case 3:
		return before ^ 1ULL << input[2] % 64;
	case 4:
		return before + input[1] - input[2];
	default:
		return value * 0x9e3779b97f4a7c15ULL;
	}
}

static void check(const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_counts; i++)
		FUZZ_CHECK(profile->counts[i].calls <= AP_MAX_SUM);
	for (size_t i = 0; i < profile->n_processes; i++)
		FUZZ_CHECK(profile->processes[i].pid <= INT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/tmp/fuzz_own_file.XXXXXX", *bytes = calloc(1, FILE_BYTES);
	char *const paths[] = { path };
	int fd = mkstemp(path);
	struct error error = { 0 };
	struct session *session;

	FUZZ_CHECK(bytes && fd >= 0);
	fill(bytes, size && data[0] & 1, size && data[0] & 2);
	for (size_t i = 1; i + 5 <= size; i += 5) {
		__u64 *place = place_of(bytes, data + i);

		*place = make_word(*place, data + i + 2);
	}
	FUZZ_CHECK(!fd__write_all(fd, bytes, FILE_BYTES));
	if (!session__salvage(paths, 1, &session, &error)) {
		check(session__profile(session));
		session__close(session);
	} else {
		FUZZ_CHECK(error.text[0]);
	}
	unlink(path);
	close(fd);
	free(bytes);
	return 0;
}
