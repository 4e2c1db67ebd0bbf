// SPDX-License-Identifier: GPL-3.0-or-later
/* The shared memory of processes that count inside of themselves, to which each of them may write anything. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "file.h"
#include "fuzz.h"
#include "preload_internal.h"
#include "sample_abi.h"

#define USED_BYTES (256 << 10)
/* As many as an array has room for. */
#define MOST_PROGRAMS (INSIDE_FIRST << INSIDE_CHUNKS)

static int take_stack(void *context, const struct ap_stack_record *record)
{
	const struct ap_frame *frames = (const struct ap_frame *)(record + 1);

	FUZZ_CHECK(record->n_frames <= AP_MAX_DEPTH && record->end < AP_STACK_ENDS);
	FUZZ_CHECK(record->process && record->process <= MOST_PROGRAMS);
	for (__u32 i = 0; i < record->n_frames; i++)
		FUZZ_CHECK(frames[i].module < UNWIND_MAX_MODULES);
	return 0;
}

static int take_python(void *context, const struct ap_python_record *record)
{
	FUZZ_CHECK(record->n_name <= AP_PYTHON_NAME_BYTES &&
		   record->n_file <= AP_PYTHON_FILE_BYTES);
	FUZZ_CHECK(!(record->id >> 63));
	return 0;
}

static int take_count(void *context, __u32 thread, const struct ap_count_key *key,
		      const struct ap_count *count)
{
	FUZZ_CHECK(key->function < AP_DEFINED && key->process && key->process <= MOST_PROGRAMS);
	FUZZ_CHECK(count->calls <= AP_MAX_SUM && count->size_bytes <= AP_MAX_SUM);
	FUZZ_CHECK(!key->thread[AP_COMM_LEN - 1]);
	return 0;
}

static int take_block(void *context, const struct ap_block_key *key, const struct ap_block *block)
{
	FUZZ_CHECK(block->record && key->space && block->weight);
	return 0;
}

static int take_lifetime(void *context, const struct ap_lifetime_key *key,
			 const struct ap_lifetime *lifetime)
{
	FUZZ_CHECK(key->born <= key->died && key->shift < 64 && key->died < AP_MAX_EPOCHS);
	FUZZ_CHECK(lifetime->blocks);
	return 0;
}

static int take_module(void *context, const struct ap_module_record *record, const char *path)
{
	FUZZ_CHECK(record->id > AP_MODULE_VDSO && record->id < UNWIND_MAX_MODULES);
	FUZZ_CHECK(strlen(path) <= INSIDE_PATH_BYTES);
	return 0;
}

static bool take_refused(void *context, const struct preload_refused *refused)
{
	FUZZ_CHECK(refused->reason < INSIDE_REFUSALS);
	FUZZ_CHECK(strlen(refused->path) < sizeof(refused->path));
	return true;
}

static int take_event(void *context, __u32 program, const struct inside_event *event)
{
	struct inside_record_key key;

	FUZZ_CHECK(event->number && event->number <= AP_MAX_SUM);
	if (preload__read_record_key(context, event->record, &key))
		preload__read_stack(context, &key, take_stack, NULL);
	return 0;
}

static void read_events(struct preload *preload)
{
	struct preload_events *events = preload_events__new(preload, take_event, preload);
	size_t n;

	if (!events)
		return;
	if (!preload_events__look(events, &n))
		preload_events__read(events, 0, &n);
	preload_events__finish(events, 0, false);
	preload_events__free(events);
}

static void read_all(struct preload *preload)
{
	struct preload_results results;
	struct preload_live live;
	bool has_python;

	if (!preload__read(preload, &results)) {
		for (size_t i = 0; i < results.n_programs; i++) {
			const struct preload_program *program = &results.programs[i];

			FUZZ_CHECK(program->before < (int)i && program->parent_program < (int)i);
			FUZZ_CHECK(program->pid <= INT32_MAX && program->parent <= INT32_MAX);
			FUZZ_CHECK(program->begin_ns <= AP_MAX_SUM &&
				   program->end_ns <= AP_MAX_SUM);
		}
		for (size_t i = 0; i < results.n_refused; i++)
			FUZZ_CHECK(results.refused[i].program < (int)results.n_programs);
		preload_results__free(&results);
	}
	if (!preload__read_live(preload, &live)) {
		for (size_t i = 0; i < live.n_records; i++)
			FUZZ_CHECK(live.records[i].key.function < AP_DEFINED);
		preload_live__free(&live);
	}
	preload__take_refused(preload, take_refused, NULL);
	preload__take_modules(preload, take_module, NULL);
	preload__read_stacks(preload, take_stack, NULL, &has_python);
	preload__read_python(preload, take_python, NULL);
	preload__read_counts(preload, take_count, NULL);
	preload__read_blocks(preload, take_block, NULL, NULL);
	preload__read_lifetimes(preload, take_lifetime, NULL);
	read_events(preload);
}

/* Three bytes of the input are a word: a number, a place, or some of both. */
static __u64 make_word(const uint8_t *bytes)
{
	__u64 value = bytes[1] << 8 | bytes[2];

	switch (bytes[0] % 8) {
	case 0:
		return bytes[2];
	case 1:
		return value;
	case 2:
		return value * 8 % USED_BYTES;
	case 3:
		return (value << 12) % USED_BYTES;
	case 4:
		return (__u64)bytes[1] << 32 | bytes[2];
	case 5:
		return ~0ULL >> bytes[2] % 64;
	case 6:
		return value << 48;
	default:
		return value * 0x9e3779b97f4a7c15ULL;
	}
}

static struct preload *make(__u64 sample_bytes)
{
	struct preload_options options = {
		.library = "/proc/self/exe",
		.settings = { .mode = INSIDE_LIVE, .max_depth = 127 },
	};
	struct preload *preload;

	if (sample_bytes)
		ap_sample__configure(sample_bytes, &options.settings.sampling);
	FUZZ_CHECK(!preload__new(&options, &preload, NULL));
	return preload;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	__u64 *words = calloc(1, USED_BYTES);
	struct preload *preload;
	size_t n = 0;

	if (!size) {
		free(words);
		return 0;
	}
	preload = make(data[size - 1] % 4 ? 0 : 4096);
	for (; size >= 3 && n < USED_BYTES / sizeof(*words); data += 3, size -= 3)
		words[n++] = make_word(data);
	FUZZ_CHECK(!ftruncate(preload->memory_fd, USED_BYTES));
	((struct inside_header *)words)->next = USED_BYTES;
	FUZZ_CHECK(!fd__write_all_at(preload->memory_fd, words, USED_BYTES, 0));
	read_all(preload);
	preload__free(preload);
	free(words);
	return 0;
}
