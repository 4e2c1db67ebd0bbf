// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data_file.h"
#include "error.h"
#include "fixture.h"
#include "profile.h"

/* Each test runs in an empty directory of its own. */
static int enter_directory(void **state)
{
	char template[] = "/tmp/allocprof-test.XXXXXX";

	if (!mkdtemp(template) || chdir(template))
		return -1;
	*state = strdup(template);
	return 0;
}

static int leave_directory(void **state)
{
	struct dirent *entry;
	DIR *dir = opendir(*state);

	while (dir && (entry = readdir(dir))) {
		if (unlinkat(dirfd(dir), entry->d_name, 0))
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
	rmdir(*state);
	free(*state);
	return 0;
}

static int n_files(void)
{
	struct dirent *entry;
	DIR *dir = opendir(".");
	int n = 0;

	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void write_fixture(const char *path)
{
	struct profile *profile = fixture__new();
	struct error error = { 0 };

	assert_non_null(profile);
	if (data_file__write(profile, path, &error))
		fail_msg("%s", error.text);
	profile__free(profile);
}

static void assert_same_lifetimes(const struct profile *first, const struct profile *second)
{
	struct profile_lifetime a, b;
	__u32 at = 0, second_at = 0;

	while (profile__next_lifetime(first, &at, &a)) {
		assert_true(profile__next_lifetime(second, &second_at, &b));
		assert_int_equal(a.count, b.count);
		assert_int_equal(a.born, b.born);
		assert_int_equal(a.died, b.died);
		assert_int_equal(a.exited, b.exited);
		assert_true(a.blocks == b.blocks);
		assert_true(a.size_bytes == b.size_bytes);
	}
}

static void assert_same(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->n_modules, b->n_modules);
	for (size_t i = 0; i < a->n_modules; i++) {
		assert_string_equal(a->modules[i].path, b->modules[i].path);
		assert_string_equal(a->modules[i].build_id, b->modules[i].build_id);
		assert_string_equal(a->modules[i].symbols, b->modules[i].symbols);
	}
	assert_int_equal(a->n_processes, b->n_processes);
	for (size_t i = 0; i < a->n_processes; i++) {
		assert_int_equal(a->processes[i].parent, b->processes[i].parent);
		assert_int_equal(a->processes[i].pid, b->processes[i].pid);
		assert_true(a->processes[i].start_ns == b->processes[i].start_ns);
		assert_true(a->processes[i].end_ns == b->processes[i].end_ns);
		assert_int_equal(a->processes[i].execed, b->processes[i].execed);
		assert_int_equal(a->processes[i].run, b->processes[i].run);
		assert_string_equal(a->processes[i].comm, b->processes[i].comm);
	}
	assert_int_equal(a->n_frames, b->n_frames);
	for (size_t i = 0; i < a->n_frames; i++) {
		assert_int_equal(a->frames[i].module, b->frames[i].module);
		assert_true(a->frames[i].offset == b->frames[i].offset);
		assert_int_equal(a->frames[i].place, b->frames[i].place);
		assert_int_equal(a->frames[i].n_lines, b->frames[i].n_lines);
		for (__u32 j = 0; j < a->frames[i].n_lines; j++)
			assert_memory_equal(&a->frames[i].lines[j], &b->frames[i].lines[j],
					    offsetof(struct profile_line, inlined));
	}
	assert_int_equal(a->n_functions, b->n_functions);
	for (size_t i = 0; i < a->n_functions; i++) {
		assert_string_equal(a->functions[i].symbol, b->functions[i].symbol);
		assert_string_equal(a->functions[i].name, b->functions[i].name);
		assert_string_equal(a->functions[i].full_name, b->functions[i].full_name);
	}
	assert_int_equal(a->n_files, b->n_files);
	for (size_t i = 0; i < a->n_files; i++)
		assert_string_equal(a->files[i].path, b->files[i].path);
	assert_int_equal(a->n_threads, b->n_threads);
	for (size_t i = 0; i < a->n_threads; i++) {
		assert_int_equal(a->threads[i].process, b->threads[i].process);
		assert_string_equal(a->threads[i].name, b->threads[i].name);
	}
	assert_int_equal(a->n_stacks, b->n_stacks);
	for (size_t i = 0; i < a->n_stacks; i++) {
		assert_int_equal(a->stacks[i].end, b->stacks[i].end);
		assert_int_equal(a->stacks[i].n_frames, b->stacks[i].n_frames);
		if (a->stacks[i].n_frames)
			assert_memory_equal(a->stacks[i].frames, b->stacks[i].frames,
					    a->stacks[i].n_frames * sizeof(__u32));
	}
	assert_int_equal(a->n_counts, b->n_counts);
	for (size_t i = 0; i < a->n_counts; i++) {
		struct profile_blocks of_a, of_b;

		/* Where its blocks are packed differs. */
		assert_memory_equal(&a->counts[i], &b->counts[i],
				    offsetof(struct profile_count, blocks));
		assert_int_equal(profile__count_blocks(a, &a->counts[i], &of_a),
				 profile__count_blocks(b, &b->counts[i], &of_b));
		assert_memory_equal(&of_a.failed, &of_b.failed,
				    sizeof(of_a) - offsetof(struct profile_blocks, failed));
	}
	assert_int_equal(a->n_samples, b->n_samples);
	for (size_t i = 0; i < a->n_samples; i++)
		assert_memory_equal(&a->samples[i].of, &b->samples[i].of, sizeof(a->samples[i].of));
	assert_int_equal(a->n_lifetimes, b->n_lifetimes);
	assert_same_lifetimes(a, b);
	assert_int_equal(a->n_timeline, b->n_timeline);
	for (size_t i = 0; i < a->n_timeline; i++)
		assert_memory_equal(&a->timeline[i], &b->timeline[i], sizeof(a->timeline[i]));
	assert_int_equal(a->n_ledger, b->n_ledger);
	for (size_t i = 0; i < a->n_ledger; i++)
		assert_true(a->ledger[i].value == profile__ledger(b, a->ledger[i].name));
	for (size_t i = 0; i < a->n_meta; i++)
		assert_string_equal(a->meta[i].value, profile__meta(b, a->meta[i].key));
}

static void test_round_trip(void **state)
{
	struct profile *wrote = fixture__new(), *read = NULL;
	struct error error = { 0 };
	struct stat st;

	write_fixture("a.data");
	assert_int_equal(n_files(), 1);
	assert_int_equal(stat("a.data", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(chmod("a.data", 0400), 0);
	if (data_file__read("a.data", &read, &error))
		fail_msg("%s", error.text);
	assert_int_equal(n_files(), 1);
	assert_same(wrote, read);
	assert_true(profile__ledger_adds_up(read));
	/* What was read can be written and read again. */
	assert_int_equal(data_file__write(read, "b.data", &error), 0);
	profile__free(read);
	assert_int_equal(data_file__read("b.data", &read, &error), 0);
	assert_same(wrote, read);
	profile__free(read);
	profile__free(wrote);
}

static void test_round_trip_of_samples(void **state)
{
	static const struct profile_estimate greatest = { PROFILE_MAX, 1e40, 0.1 };
	struct profile *wrote = fixture__new(), *read = NULL;
	struct profile_samples *samples;
	struct error error = { 0 };

	for (__u32 count = 1; count <= wrote->n_counts; count++) {
		assert_int_equal(profile__get_samples(wrote, count, &samples), 0);
		samples->of[PROFILE_SAMPLED_CALLS] = (struct profile_estimate){ count, 2, 0 };
		if (count == 2)
			samples->of[PROFILE_SAMPLED_LIVE] = greatest;
	}
	assert_int_equal(profile__get_samples(wrote, 0, &samples), -EINVAL);
	assert_int_equal(profile__get_samples(wrote, wrote->n_counts + 1, &samples), -EINVAL);
	assert_int_equal(profile__set_meta(wrote, "sample_bytes", "4096"), 0);
	assert_false(profile__ledger_adds_up(wrote));
	assert_int_equal(profile__settle_samples(wrote, 0), 0);
	assert_int_equal(profile__set_ledger(wrote, "events",
					     profile__ledger(wrote, "sampled") +
						     profile__ledger(wrote, "lost")),
			 0);
	assert_int_equal(data_file__write(wrote, "s.data", &error), 0);
	if (data_file__read("s.data", &read, &error))
		fail_msg("%s", error.text);
	assert_same(wrote, read);
	assert_int_equal(profile__sample_bytes(read), 4096);
	assert_true(profile__ledger_adds_up(read));
	assert_int_equal(profile__settle_samples(read, 1), 0);
	assert_false(profile__ledger_adds_up(read));
	profile__free(read);
	profile__free(wrote);
}

static void test_round_trip_of_exits(void **state)
{
	static const struct profile_lifetime left = { 1, 2, PROFILE_LIVE, 7, 5, 50 };
	struct profile *wrote = fixture__new(), *read = NULL;
	struct error error = { 0 };

	assert_int_equal(profile__add_lifetime(wrote, &left), 0);
	assert_int_equal(data_file__write(wrote, "e.data", &error), 0);
	if (data_file__read("e.data", &read, &error))
		fail_msg("%s", error.text);
	assert_same(wrote, read);
	profile__free(read);
	profile__free(wrote);
}

/* Text or NULL, as profile__add_gap() takes both. */
static void test_round_trip_of_gaps(void **state)
{
	const struct profile_gap gaps[] = {
		{ .kind = GAP_TORN, .number = 7 },
		{ .kind = GAP_PROGRAM_UNPROBED,
		  .number = UINT64_MAX,
		  .size_bytes = 4096,
		  .pid = 12,
		  .object = "a\nprogram",
		  .detail = "why" },
	};
	struct profile *wrote = fixture__new(), *read;
	struct error error = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++)
		assert_int_equal(profile__add_gap(wrote, &gaps[i]), 0);
	assert_int_equal(data_file__write(wrote, "gaps.data", &error), 0);
	assert_int_equal(data_file__read("gaps.data", &read, &error), 0);
	assert_false(data_file__is_altered(read));
	assert_int_equal(read->n_gaps, ARRAY_SIZE(gaps));
	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
		assert_int_equal(read->gaps[i].kind, gaps[i].kind);
		assert_true(read->gaps[i].number == profile__add_up(gaps[i].number, 0));
		assert_true(read->gaps[i].size_bytes == gaps[i].size_bytes);
		assert_int_equal(read->gaps[i].pid, gaps[i].pid);
		assert_string_equal(read->gaps[i].object, gaps[i].object ?: "");
		assert_string_equal(read->gaps[i].detail, gaps[i].detail ?: "");
	}
	profile__free(read);
	profile__free(wrote);
}

static void test_round_trip_of_resident_memory(void **state)
{
	const struct profile_rss rss[] = {
		{ 1, RSS_SLACK, 4000 },
		{ 1, RSS_BLOCKS, 96 },
		{ 2, RSS_HUGE, PROFILE_MAX },
	};
	const struct profile_heap heaps[] = {
		{ 1, HEAP_ARENA, 1ULL << 63, 1, 4096, 96, 4000, 0, 2, 7 },
		{ 1, HEAP_ARENA, 1ULL << 63, 2, 8192, 96, 4000, 4096, 2, 7 },
		{ 2, HEAP_MAIN, 0, 1, 4096, 0, 0, 4096, 0, 0 },
	};
	const struct profile_size_class classes[] = {
		{ SIZE_RULE_JEMALLOC, 16, 1, 9, 16 },
		{ SIZE_RULE_UNKNOWN, 16, 2, 18, 0 },
		{ SIZE_RULE_JEMALLOC, 16, 2, 32, 32 },
	};
	const struct profile_rss_sample samples[] = {
		{ 5, 0, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 } },
		{ 6, 70, { PROFILE_MAX, [RSS_CHANGED] = 1 } },
	};
	const struct profile_blocks blocks = {
		.count = 1,
		.resident_bytes = 96,
		.pages = 1,
		.unique_pages = 1,
		.unique_slack_bytes = 4000,
		.rounding_bytes = 15,
	};
	struct profile_blocks found;
	struct profile *wrote = fixture__new(), *read;
	struct error error = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_int_equal(profile__add_rss_sample(wrote, &samples[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(heaps); i++)
		assert_int_equal(profile__add_heap(wrote, &heaps[i]), 0);
	assert_int_equal(profile__add_heap(wrote, &heaps[0]), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		assert_int_equal(profile__add_size_class(wrote, &classes[i]), 0);
	assert_int_equal(profile__add_rss_sample(wrote, &samples[1]), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(rss); i++)
		assert_int_equal(profile__add_rss(wrote, &rss[i]), 0);
	assert_int_equal(profile__add_rss(wrote, &rss[2]), -EINVAL);
	assert_int_equal(profile__add_rss(wrote, &rss[0]), -EINVAL);
	assert_int_equal(profile__add_blocks(wrote, &blocks), 0);
	assert_int_equal(data_file__write(wrote, "resident.data", &error), 0);
	assert_int_equal(data_file__read("resident.data", &read, &error), 0);
	assert_same(wrote, read);
	assert_true(profile__count_blocks(read, &read->counts[0], &found));
	assert_true(found.unique_slack_bytes == 4000 && found.rounding_bytes == 15);
	assert_int_equal(read->n_rss, ARRAY_SIZE(rss));
	/* They are read by the names of their kinds. */
	assert_int_equal(read->rss[0].kind, RSS_BLOCKS);
	assert_int_equal(read->rss[0].size_bytes, 96);
	assert_int_equal(read->rss[2].process, 2);
	assert_true(read->rss[2].size_bytes == PROFILE_MAX);
	assert_int_equal(read->n_rss_samples, ARRAY_SIZE(samples));
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_memory_equal(&read->rss_samples[i], &samples[i], sizeof(samples[i]));
	/* What is alike was added up. */
	assert_int_equal(read->n_heaps, 2);
	assert_int_equal(read->heaps[0].kind, HEAP_ARENA);
	assert_true(read->heaps[0].address == 1ULL << 63 && read->heaps[0].mappings == 3);
	assert_true(read->heaps[0].resident_bytes == 12288 && read->heaps[0].size_bytes == 14);
	assert_int_equal(read->n_size_classes, 2);
	for (size_t i = 0; i < read->n_size_classes; i++) {
		const struct profile_size_class *sizes = &read->size_classes[i];
		bool is_known = sizes->rule == SIZE_RULE_JEMALLOC;

		assert_int_equal(sizes->blocks, is_known ? 3 : 2);
		assert_int_equal(sizes->usable_bytes, is_known ? 48 : 0);
	}
	assert_true(profile_rss_sample__sum(&samples[0]) == 66);
	assert_true(profile_rss_sample__sum(&samples[1]) == PROFILE_MAX);
	profile__free(wrote);
	profile__free(read);
}

static void test_round_trip_of_ends(void **state)
{
	const struct profile_blocks more = {
		.count = 1, .grown = 1, .grown_bytes = 1, .freed_by_others = 1
	};
	const struct profile_blocks too_many = { .count = 1, .grown = PROFILE_MAX };
	struct profile *wrote = fixture__new(), *read;
	struct profile_blocks before, found;
	struct error error = { 0 };

	assert_true(profile__count_blocks(wrote, &wrote->counts[0], &before));
	assert_true(before.frees >= 2);
	assert_int_equal(profile__add_blocks(wrote, &more), 0);
	assert_int_equal(data_file__write(wrote, "ends.data", &error), 0);
	assert_int_equal(data_file__read("ends.data", &read, &error), 0);
	assert_same(wrote, read);
	assert_true(profile__count_blocks(read, &read->counts[0], &found));
	assert_int_equal(found.grown, 1);
	assert_int_equal(found.grown_bytes, 1);
	assert_int_equal(found.freed_by_others, 1);
	assert_true(found.frees == before.frees);
	profile__free(read);
	assert_int_equal(profile__add_blocks(wrote, &too_many), 0);
	assert_int_equal(data_file__write(wrote, "ends.data", &error), 0);
	assert_int_equal(data_file__read("ends.data", &read, &error), -EINVAL);
	profile__free(wrote);
}

static void test_round_trip_of_reachable_blocks(void **state)
{
	struct profile *wrote = fixture__new(), *read;
	struct profile_blocks blocks, found;
	struct error error = { 0 };

	assert_false(profile__has_reach(wrote));
	assert_true(profile__count_blocks(wrote, &wrote->counts[0], &blocks));
	assert_true(profile_blocks__live(&blocks) >= 2);
	for (int i = 0; i < 2; i++) {
		const struct profile_blocks more = {
			.count = 1,
			.reached = { [PROFILE_LOST] = { 1 - i, 5 - 5 * i },
				     [PROFILE_REACHABLE] = { i, 7 * i } },
		};

		assert_int_equal(profile__add_blocks(wrote, &more), 0);
	}
	assert_int_equal(data_file__write(wrote, "reach.data", &error), 0);
	assert_int_equal(data_file__read("reach.data", &read, &error), 0);
	assert_same(wrote, read);
	assert_true(profile__has_reach(read));
	assert_true(profile__count_blocks(read, &read->counts[0], &found));
	assert_int_equal(found.reached[PROFILE_LOST].blocks, 1);
	assert_int_equal(found.reached[PROFILE_LOST].size_bytes, 5);
	assert_int_equal(found.reached[PROFILE_POSSIBLY_LOST].blocks, 0);
	assert_int_equal(found.reached[PROFILE_REACHABLE].size_bytes, 7);
	assert_true(profile_blocks__live(&found) == profile_blocks__live(&blocks));
	profile__free(wrote);
	profile__free(read);
}

/* What looks like the table and is none is not read. */
static void test_files_from_before_gaps(void **state)
{
	static const char *const changes[] = {
		"DROP TABLE gaps",
		"DROP TABLE gaps; DROP TABLE resident; DROP TABLE rss; DROP TABLE rss_samples; DROP TABLE heaps; "
		"DROP TABLE size_classes; DROP TABLE rounding; DROP TABLE reach",
		"DROP TABLE gaps; CREATE VIEW gaps AS WITH RECURSIVE r(k) AS (SELECT 1 UNION ALL SELECT k "
		"FROM r) SELECT 0, 'torn_ms', 1, 0, 0, '', '' FROM r",
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct profile *profile;
		struct error error = { 0 };
		sqlite3 *db;

		unlink("before.data");
		write_fixture("before.data");
		assert_int_equal(sqlite3_open("before.data", &db), SQLITE_OK);
		assert_int_equal(sqlite3_exec(db, changes[i], NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		if (data_file__read("before.data", &profile, &error))
			fail_msg("%s", error.text);
		assert_int_equal(profile->n_gaps, 0);
		assert_false(data_file__is_altered(profile));
		profile__free(profile);
	}
}

static void test_odd_paths(void **state)
{
	static const char *const paths[] = { "a b?c#d%41&e;f", "\xff\xc3", "file:x", ":memory:" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct profile *profile;

		write_fixture(paths[i]);
		assert_int_equal(data_file__read(paths[i], &profile, NULL), 0);
		profile__free(profile);
	}
}

static void test_older_file_is_kept(void **state)
{
	struct stat first, old;

	write_fixture("a.data");
	assert_int_equal(stat("a.data", &first), 0);
	write_fixture("a.data");
	assert_int_equal(stat("a.data.old", &old), 0);
	assert_int_equal(first.st_ino, old.st_ino);
	write_fixture("a.data");
	assert_int_equal(n_files(), 2);
}

static void name_a_frame(struct profile *profile)
{
	struct profile_line line = { .line = 7 };

	assert_int_equal(profile__add_function(profile, "_Z1fv", "f", "f()", &line.function), 0);
	assert_int_equal(profile__add_file(profile, "/f.cc", &line.file), 0);
	assert_int_equal(profile__set_frame_lines(profile, 2, &line, 1), 0);
	assert_int_equal(profile__set_module_symbols(profile, 1, "its DWARF"), 0);
}

static void test_names_are_added(void **state)
{
	struct profile *profile = fixture__new(), *read;
	struct data_file_version version;
	struct error error = { 0 };
	struct stat st;

	write_fixture("a.data");
	assert_int_equal(data_file__write_first(profile, "a.data", &version, &error), 0);
	assert_int_equal(n_files(), 2);
	assert_int_equal(data_file__read("a.data", &read, &error), 0);
	assert_same(profile, read);
	profile__free(read);
	name_a_frame(profile);
	if (data_file__write_names(profile, "a.data", &version, &error))
		fail_msg("%s", error.text);
	assert_int_equal(n_files(), 2);
	assert_int_equal(stat("a.data", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(data_file__read("a.data", &read, &error), 0);
	assert_same(profile, read);
	profile__free(read);
	/* Somebody took the first away and put another there. */
	assert_int_equal(data_file__write_first(profile, "b.data", &version, &error), 0);
	assert_int_equal(rename("b.data", "taken"), 0);
	write_fixture("b.data");
	assert_int_equal(data_file__write_names(profile, "b.data", &version, &error), 0);
	assert_int_equal(n_files(), 5);
	assert_int_equal(data_file__read("b.data", &read, &error), 0);
	assert_same(profile, read);
	profile__free(read);
	profile__free(profile);
}

/* The name that only a file has that could not be read back; to be freed. */
static char *find_beside(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(".");
	char *name = NULL;

	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, path, strlen(path)) || !strcmp(entry->d_name, path))
			continue;
		assert_null(name);
		name = strdup(entry->d_name);
	}
	closedir(dir);
	assert_non_null(name);
	return name;
}

static void test_what_cannot_be_read_back_replaces_nothing(void **state)
{
	struct profile *profile = fixture__new(), *read;
	struct error error = { 0 };
	struct stat before, after;
	char *beside;

	write_fixture("a.data");
	assert_int_equal(stat("a.data", &before), 0);
	/* No recording has this. */
	profile__add_blocks(profile, &(struct profile_blocks){ .count = 1, .frees = 1000000 });
	assert_int_equal(data_file__write(profile, "a.data", &error), -EINVAL);
	assert_non_null(strstr(error.text, "a.data is not written"));
	assert_int_equal(stat("a.data", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(data_file__read("a.data", &read, NULL), 0);
	profile__free(read);
	assert_int_equal(n_files(), 2);
	beside = find_beside("a.data");
	assert_non_null(strstr(error.text, beside));
	free(beside);
	profile__free(profile);
}

static void expect_unwritable(const char *path, int err, const char *words)
{
	struct profile *profile = fixture__new();
	struct error error = { 0 };

	assert_int_equal(data_file__check_writable(path, &error), err);
	if (!strstr(error.text, words))
		fail_msg("expected '%s' in: %s", words, error.text);
	error.text[0] = '\0';
	assert_int_equal(data_file__write(profile, path, &error), err);
	if (!strstr(error.text, words))
		fail_msg("expected '%s' in: %s", words, error.text);
	profile__free(profile);
}

static void test_places_that_cannot_be_written(void **state)
{
	assert_int_equal(mkdir("dir", 0700), 0);
	expect_unwritable("dir", -EISDIR, "is a directory");
	expect_unwritable("none/x", -ENOENT, "create the directory");
	expect_unwritable("/dev/null", -EINVAL, "not a regular file");
	expect_unwritable("/dev/null/x", -ENOTDIR, "create the directory");
	expect_unwritable("", -EINVAL, "name a file");
	assert_int_equal(data_file__check_writable("a.data", NULL), 0);
	assert_int_equal(n_files(), 1);
	assert_int_equal(mkdir("a.data.old", 0700), 0);
	expect_unwritable("a.data", -EISDIR, "could not become a.data.old");
	assert_int_equal(n_files(), 2);
}

/* A full disk that needs no root: a limit on the size of files. */
static void test_full_disk_leaves_the_older_file(void **state)
{
	struct rlimit limit, small;
	struct profile *profile = fixture__new();
	struct error error = { 0 };
	struct stat before, after;

	write_fixture("a.data");
	assert_int_equal(stat("a.data", &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	for (rlim_t size = 0; size < (rlim_t)before.st_size; size += 4000) {
		small.rlim_cur = size;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		error.text[0] = '\0';
		assert_true(data_file__write(profile, "a.data", &error) < 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_non_null(strstr(error.text, "cannot write a.data"));
		assert_int_equal(n_files(), 1);
	}
	assert_int_equal(stat("a.data", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(data_file__write(profile, "a.data", &error), 0);
	profile__free(profile);
}

static void expect_unreadable(const char *path, int err, const char *words)
{
	struct profile *profile = (void *)1;
	struct error error = { 0 };
	int got = data_file__read(path, &profile, &error);

	if (got != err || !strstr(error.text, words))
		fail_msg("expected %d with '%s', got %d with '%s'", err, words, got, error.text);
	assert_ptr_equal(profile, (void *)1);
	assert_null(strchr(error.text, '\n'));
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void test_files_that_are_not_ours(void **state)
{
	sqlite3 *db;

	expect_unreadable("none", -ENOENT, "run `allocprof record` first, or name another");
	write_bytes("empty", "", 0);
	expect_unreadable("empty", -EINVAL, "it is empty");
	write_bytes("text", "hello\n", 6);
	expect_unreadable("text", -EINVAL, "is not a data file of allocprof");
	expect_unreadable(".", -EISDIR, "is a directory");
	expect_unreadable("/dev/null", -EINVAL, "is not a data file of allocprof");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	expect_unreadable("fifo", -EINVAL, "is not a data file of allocprof");
	assert_int_equal(sqlite3_open("other", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE t(a)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	expect_unreadable("other", -EINVAL, "is not a data file of allocprof");
}

static size_t slurp(const char *path, unsigned char **bytes)
{
	struct stat st;
	FILE *file = fopen(path, "r");

	assert_int_equal(fstat(fileno(file), &st), 0);
	*bytes = malloc(st.st_size);
	assert_int_equal(fread(*bytes, 1, st.st_size, file), st.st_size);
	fclose(file);
	return st.st_size;
}

static void test_every_truncation(void **state)
{
	unsigned char *bytes;
	size_t size;

	write_fixture("a.data");
	size = slurp("a.data", &bytes);
	for (size_t len = 1; len < size; len += len < 200 ? 1 : 509) {
		struct profile *profile;
		struct error error = { 0 };

		write_bytes("cut", bytes, len);
		assert_int_equal(data_file__read("cut", &profile, &error), -EINVAL);
		assert_non_null(strstr(error.text, "is damaged"));
	}
	free(bytes);
}

/* Whatever is read must fail with words or be a profile that holds together. */
static void test_flipped_bytes(void **state)
{
	unsigned char *bytes;
	unsigned int random = 12345;
	size_t size;

	write_fixture("a.data");
	size = slurp("a.data", &bytes);
	for (int i = 0; i < 3000; i++) {
		struct profile *profile = NULL;
		struct error error = { 0 };
		size_t at[4];
		unsigned char was[4];

		for (int j = 0; j < 4; j++) {
			random = random * 1103515245 + 12345;
			at[j] = (random >> 3) % size;
			was[j] = bytes[at[j]];
			bytes[at[j]] = random >> 24;
		}
		write_bytes("bad", bytes, size);
		if (data_file__read("bad", &profile, &error))
			assert_true(strlen(error.text) > 0);
		else
			profile__free(profile);
		for (int j = 3; j >= 0; j--)
			bytes[at[j]] = was[j];
	}
	free(bytes);
}

static void test_hostile_content(void **state)
{
	static const struct {
		const char *sql, *words;
		int err;
	} cases[] = {
		{ "UPDATE meta SET value = 1 WHERE key = 'schema_version'",
		  "written by an older allocprof: schema 1, this one reads 5", -EPROTONOSUPPORT },
		{ "UPDATE meta SET value = 6 WHERE key = 'schema_version'",
		  "written by a newer allocprof: schema 6, this one reads up to 5",
		  -EPROTONOSUPPORT },
		{ "UPDATE meta SET value = 'x' WHERE key = 'schema_version'", "damaged", -EINVAL },
		{ "UPDATE meta SET value = 0 WHERE key = 'schema_version'", "damaged", -EINVAL },
		{ "DELETE FROM meta", "damaged", -EINVAL },
		{ "UPDATE meta SET value = x'00' WHERE key = 'kernel'", "meta", -EINVAL },
		{ "UPDATE meta SET value = 'a' || char(0) || 'b' WHERE key = 'kernel'", "meta",
		  -EINVAL },
		{ "INSERT INTO meta VALUES('sample_bytes', '')", "meta", -EINVAL },
		{ "INSERT INTO meta VALUES('sample_bytes', '0x')", "meta", -EINVAL },
		{ "INSERT INTO meta VALUES('peak_bytes', ' 7')", "meta", -EINVAL },
		{ "INSERT INTO meta VALUES('exit_status', '-')", "meta", -EINVAL },
		{ "INSERT INTO meta VALUES('elapsed_seconds', 'nan')", "meta", -EINVAL },
		{ "INSERT INTO run_meta VALUES(1, 'peak_bytes', '1e3')", "run_meta", -EINVAL },
		{ "UPDATE ledger SET value = -1 WHERE name = 'lost'", "ledger", -EINVAL },
		{ "UPDATE ledger SET value = 'x' WHERE name = 'lost'", "ledger", -EINVAL },
		{ "UPDATE ledger SET value = 1.5 WHERE name = 'lost'", "ledger", -EINVAL },
		{ "UPDATE modules SET build_id = '../..'", "modules", -EINVAL },
		{ "UPDATE modules SET path = '/x', build_id = 'aa'", "modules", -EINVAL },
		{ "INSERT INTO run_meta VALUES(0, 'k', 'v')", "run_meta", -EINVAL },
		{ "INSERT INTO run_meta VALUES(2, 'k', 'v')", "run_meta", -EINVAL },
		{ "INSERT INTO run_meta VALUES(4294967297, 'k', 'v')", "run_meta", -EINVAL },
		{ "INSERT INTO run_meta VALUES(1, 'k', x'00')", "run_meta", -EINVAL },
		{ "INSERT INTO run_ledger VALUES(1, 'lost', 0)", "run_ledger", -EINVAL },
		{ "INSERT INTO run_meta VALUES(1, 'k', 'v'); "
		  "INSERT INTO run_ledger VALUES(1, 'lost', -1)",
		  "run_ledger", -EINVAL },
		{ "INSERT INTO run_meta VALUES(1, 'k', 'v'); UPDATE processes SET run = 2",
		  "processes", -EINVAL },
		{ "INSERT INTO run_meta VALUES(1, 'k', 'v'); UPDATE timeline SET run = 2",
		  "timeline", -EINVAL },
		{ "INSERT INTO gaps VALUES(0, 'nonsense', 1, 0, 0, '', '')", "gaps", -EINVAL },
		{ "INSERT INTO gaps VALUES(1, 'torn_ms', 1, 0, 0, '', '')", "gaps", -EINVAL },
		{ "INSERT INTO gaps VALUES(0, 'torn_ms', -1, 0, 0, '', '')", "gaps", -EINVAL },
		{ "INSERT INTO gaps VALUES(0, 'torn_ms', 1, 0, 4294967296, '', '')", "gaps",
		  -EINVAL },
		{ "INSERT INTO gaps VALUES(0, 'torn_ms', 1, 0, 0, x'00', '')", "gaps", -EINVAL },
		{ "INSERT INTO resident VALUES(99, 1, 1, 1, 0)", "resident", -EINVAL },
		{ "INSERT INTO resident VALUES(0, 1, 1, 1, 0)", "resident", -EINVAL },
		{ "INSERT INTO resident VALUES(1, 1, 1, 2, 0)", "resident", -EINVAL },
		{ "INSERT INTO resident VALUES(1, 1, 1, 1, 4097)", "resident", -EINVAL },
		{ "INSERT INTO resident VALUES(1, 1, 1 << 60, 1, 0)", "resident", -EINVAL },
		{ "INSERT INTO resident VALUES(1, -1, 1, 1, 0)", "resident", -EINVAL },
		{ "INSERT INTO reach VALUES(99, 1, 1, 0, 0, 0, 0, 0, 0)", "reach", -EINVAL },
		{ "INSERT INTO reach VALUES(0, 1, 1, 0, 0, 0, 0, 0, 0)", "reach", -EINVAL },
		{ "INSERT INTO reach VALUES(1, -1, 1, 0, 0, 0, 0, 0, 0)", "reach", -EINVAL },
		{ "INSERT INTO reach VALUES(1, 0, 0, 1 << 60, 1, 0, 0, 0, 0)", "reach", -EINVAL },
		{ "INSERT INTO reach SELECT count, allocations - frees - discarded, 0, 0, 0, 0, 0, 1, 0 "
		  "FROM blocks WHERE count = 1",
		  "reach", -EINVAL },
		{ "INSERT INTO rss VALUES(0, 'blocks', 1)", "rss", -EINVAL },
		{ "INSERT INTO heaps VALUES(99, 'main', 0, 1, 1, 1, 0, 0, 1, 1)", "heaps",
		  -EINVAL },
		{ "INSERT INTO heaps VALUES(1, 'none', 0, 1, 1, 1, 0, 0, 1, 1)", "heaps", -EINVAL },
		{ "INSERT INTO size_classes VALUES('glibc', 24, 1, 20, 19)", "size_classes",
		  -EINVAL },
		{ "INSERT INTO size_classes VALUES('unknown', 24, 1, 20, 24)", "size_classes",
		  -EINVAL },
		{ "INSERT INTO size_classes VALUES('none', 24, 1, 20, 24)", "size_classes",
		  -EINVAL },
		{ "INSERT INTO rss_samples VALUES(1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)",
		  "rss_samples", -EINVAL },
		{ "INSERT INTO rss VALUES(99, 'blocks', 1)", "rss", -EINVAL },
		{ "INSERT INTO rss VALUES(1, 'nonsense', 1)", "rss", -EINVAL },
		{ "INSERT INTO rss VALUES(1, 'blocks', -1)", "rss", -EINVAL },
		{ "UPDATE processes SET run = 10001", "processes", -EINVAL },
		{ "UPDATE timeline SET run = 0", "timeline", -EINVAL },
		{ "DELETE FROM modules WHERE id = 1", "modules", -EINVAL },
		{ "UPDATE modules SET id = 1000000000 WHERE id = 3", "modules", -EINVAL },
		{ "UPDATE processes SET parent = 2 WHERE id = 2", "processes", -EINVAL },
		{ "UPDATE processes SET pid = -5", "processes", -EINVAL },
		{ "UPDATE processes SET start_ns = -1", "processes", -EINVAL },
		{ "UPDATE frames SET module = 4 WHERE id = 1", "frames", -EINVAL },
		{ "UPDATE frames SET module = -1 WHERE id = 1", "frames", -EINVAL },
		{ "UPDATE frames SET offset = 'x' WHERE id = 1", "frames", -EINVAL },
		{ "UPDATE frames SET interrupted = 3 WHERE id = 1", "frames", -EINVAL },
		{ "UPDATE processes SET run = 0", "processes", -EINVAL },
		{ "UPDATE threads SET process = 0", "threads", -EINVAL },
		{ "UPDATE threads SET process = 3", "threads", -EINVAL },
		{ "UPDATE threads SET process = 2, name = 'pool'", "threads", -EINVAL },
		{ "UPDATE functions SET name = x'41' WHERE id = 1", "functions", -EINVAL },
		{ "UPDATE functions SET id = 99 WHERE id = 1", "functions", -EINVAL },
		{ "INSERT INTO files VALUES(2, 'x')", "files", -EINVAL },
		{ "UPDATE lines SET function = 99 WHERE frame = 1", "lines", -EINVAL },
		{ "UPDATE lines SET function = 0 WHERE frame = 1", "lines", -EINVAL },
		{ "UPDATE lines SET file = 1 WHERE frame = 1", "lines", -EINVAL },
		{ "UPDATE lines SET inlined = 1 WHERE frame = 1", "lines", -EINVAL },
		{ "UPDATE lines SET depth = 1 WHERE frame = 1", "lines", -EINVAL },
		{ "UPDATE lines SET frame = 99 WHERE frame = 1", "lines", -EINVAL },
		{ "UPDATE blocks SET frees = allocations + 1", "blocks", -EINVAL },
		{ "UPDATE blocks SET temporary = frees + 1", "blocks", -EINVAL },
		{ "UPDATE blocks SET count = 99", "blocks", -EINVAL },
		{ "UPDATE blocks SET count = 0", "blocks", -EINVAL },
		{ "INSERT INTO samples VALUES(99, 'calls', 1, 0.0, 0.0)", "samples", -EINVAL },
		{ "INSERT INTO samples VALUES(0, 'calls', 1, 0.0, 0.0)", "samples", -EINVAL },
		{ "INSERT INTO samples VALUES(1, 'free', 1, 0.0, 0.0)", "samples", -EINVAL },
		{ "INSERT INTO samples VALUES(1, 'calls', 0, 0.0, 0.0)", "samples", -EINVAL },
		{ "INSERT INTO samples VALUES(1, 'calls', 1, -1.0, 0.0)", "samples", -EINVAL },
		{ "INSERT INTO samples VALUES(1, 'calls', 1, 0.0, 9e999)", "samples", -EINVAL },
		{ "INSERT INTO samples VALUES(1, 'calls', 1, 'x', 0.0)", "samples", -EINVAL },
		{ "UPDATE size_histogram SET bucket = 65", "blocks", -EINVAL },
		{ "UPDATE size_histogram SET count = 2", "blocks", -EINVAL },
		{ "UPDATE lifetime_histogram SET count = -1", "blocks", -EINVAL },
		{ "UPDATE lifetimes SET count = 99", "lifetimes", -EINVAL },
		{ "UPDATE lifetimes SET born = 8 WHERE died = 7", "lifetimes", -EINVAL },
		{ "UPDATE lifetimes SET died = 4294967296", "lifetimes", -EINVAL },
		{ "UPDATE lifetimes SET exited = 4294967296 WHERE died IS NULL", "lifetimes",
		  -EINVAL },
		{ "UPDATE lifetimes SET exited = 2 WHERE born = 3", "lifetimes", -EINVAL },
		{ "UPDATE lifetimes SET exited = 7 WHERE died = 7", "lifetimes", -EINVAL },
		{ "UPDATE timeline SET live = -1", "timeline", -EINVAL },
		{ "UPDATE stacks SET end = 'nonsense' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET id = 8 WHERE id = 6", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[7,1]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[9,1]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[0,1]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[-1]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[18446744073709551617]' WHERE id = 1", "stacks",
		  -EINVAL },
		{ "UPDATE stacks SET frames = '[1,[2]]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[1,]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[1' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '[1]]' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = '' WHERE id = 1", "stacks", -EINVAL },
		{ "UPDATE stacks SET frames = 1 WHERE id = 1", "stacks", -EINVAL },
		/* 513 frames. */
		{ "UPDATE stacks SET frames = '[' || replace(hex(zeroblob(512)), '00', '1,') || '1]' "
		  "WHERE id = 1",
		  "stacks", -EINVAL },
		{ "UPDATE counts SET stack = 7 WHERE stack = 6", "counts", -EINVAL },
		{ "UPDATE counts SET thread = 4 WHERE stack = 6", "counts", -EINVAL },
		{ "UPDATE counts SET process = 1 WHERE stack = 6", "counts", -EINVAL },
		{ "UPDATE counts SET calls = -1", "counts", -EINVAL },
		{ "UPDATE counts SET bytes = -1", "counts", -EINVAL },
		{ "UPDATE counts SET bytes = NULL", "", 1 },
		{ "UPDATE counts SET function = 'f' WHERE stack = 6", "counts", -EINVAL },
		/* 32 KiB and one more. */
		{ "UPDATE functions SET name = replace(hex(zeroblob(32769)), '00', 'n') WHERE id = 1",
		  "a text of more than 32768 bytes: functions", -EINVAL },
		{ "UPDATE modules SET path = replace(hex(zeroblob(32769)), '00', '/') WHERE id = 1",
		  "a text of more than 32768 bytes: modules", -EINVAL },
		{ "INSERT INTO files VALUES(1, replace(hex(zeroblob(32769)), '00', '/'))",
		  "a text of more than 32768 bytes: files", -EINVAL },
		{ "UPDATE threads SET name = replace(hex(zeroblob(32769)), '00', 't') WHERE id = 1",
		  "a text of more than 32768 bytes: threads", -EINVAL },
		{ "UPDATE processes SET comm = replace(hex(zeroblob(32769)), '00', 'p') WHERE id = 1",
		  "a text of more than 32768 bytes: processes", -EINVAL },
		{ "UPDATE ledger SET name = replace(hex(zeroblob(32769)), '00', 'l') WHERE name = 'lost'",
		  "a text of more than 32768 bytes: ledger", -EINVAL },
		{ "INSERT INTO run_meta VALUES(1, replace(hex(zeroblob(32769)), '00', 'k'), '')",
		  "a text of more than 32768 bytes: run_meta", -EINVAL },
		{ "DROP TABLE counts", "definitions", -EINVAL },
		{ "DROP TABLE counts; CREATE VIEW counts AS WITH RECURSIVE r(process) AS (SELECT 1 "
		  "UNION ALL SELECT 1 FROM r) SELECT process, 1 AS stack, 'malloc' AS function, 1 AS "
		  "calls, 1 AS bytes FROM r",
		  "definitions", -EINVAL },
		{ "DROP TABLE meta; CREATE VIEW meta AS WITH RECURSIVE r(k) AS (SELECT 1 UNION ALL "
		  "SELECT 1 FROM r) SELECT k AS key, 1 AS value FROM r",
		  "damaged", -EINVAL },
		{ "PRAGMA application_id = 1", "is not a data file of allocprof", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sqlite3 *db;
		int status;

		write_fixture("a.data");
		assert_int_equal(sqlite3_open("a.data", &db), SQLITE_OK);
		status = sqlite3_exec(db, cases[i].sql, NULL, NULL, NULL);
		sqlite3_close(db);
		/* Some damage SQLite itself does not let happen. */
		if (cases[i].err == 1)
			assert_int_equal(status, SQLITE_CONSTRAINT);
		else if (status != SQLITE_OK)
			fail_msg("%s: %s", cases[i].sql, sqlite3_errstr(status));
		else
			expect_unreadable("a.data", cases[i].err, cases[i].words);
	}
}

/* As an allocprof wrote them that knew functions by all of their names. */
static void test_rows_of_one_symbol_are_one_function(void **state)
{
	struct profile *profile;
	sqlite3 *db;
	__u32 before;

	write_fixture("a.data");
	assert_int_equal(data_file__read("a.data", &profile, NULL), 0);
	before = profile->n_functions;
	assert_int_equal(profile->frames[0].lines[0].function, 1);
	profile__free(profile);
	assert_int_equal(sqlite3_open("a.data", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "INSERT INTO functions SELECT (SELECT max(id) FROM functions)"
				      " + 1, symbol, name, full_name FROM functions WHERE id = 1;"
				      "UPDATE lines SET function = (SELECT max(id) FROM functions) "
				      "WHERE frame = 1",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(data_file__read("a.data", &profile, NULL), 0);
	assert_int_equal(profile->n_functions, before);
	assert_int_equal(profile->frames[0].lines[0].function, 1);
	profile__free(profile);
}

/* Names may have what demanglers make, and commands and lists in meta are as long as they are. */
static void test_long_texts(void **state)
{
	struct profile *profile;
	struct error error = { 0 };
	sqlite3 *db;

	write_fixture("a.data");
	assert_int_equal(sqlite3_open("a.data", &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "UPDATE functions SET name = replace(hex(zeroblob(32768)), '00', 'n') "
			     "WHERE id = 1;"
			     "UPDATE meta SET value = replace(hex(zeroblob(300000)), '00', 'c') "
			     "WHERE key = 'command';"
			     "INSERT INTO run_meta VALUES(1, 'command', "
			     "replace(hex(zeroblob(300000)), '00', 'c'))",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	if (data_file__read("a.data", &profile, &error))
		fail_msg("%s", error.text);
	assert_int_equal(strlen(profile->functions[0].name), 32768);
	assert_int_equal(strlen(profile__meta(profile, "command")), 300000);
	profile__free(profile);
}

static void test_what_users_add_is_no_harm(void **state)
{
	struct profile *profile;
	sqlite3 *db;

	write_fixture("a.data");
	assert_int_equal(sqlite3_open("a.data", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "CREATE INDEX i ON counts(stack); CREATE TABLE mine(a);"
				      "CREATE VIEW v AS SELECT * FROM calls",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(data_file__read("a.data", &profile, NULL), 0);
	profile__free(profile);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_round_trip),
		IN_DIRECTORY(test_round_trip_of_samples),
		IN_DIRECTORY(test_round_trip_of_exits),
		IN_DIRECTORY(test_round_trip_of_gaps),
		IN_DIRECTORY(test_round_trip_of_resident_memory),
		IN_DIRECTORY(test_round_trip_of_ends),
		IN_DIRECTORY(test_round_trip_of_reachable_blocks),
		IN_DIRECTORY(test_files_from_before_gaps),
		IN_DIRECTORY(test_odd_paths),
		IN_DIRECTORY(test_older_file_is_kept),
		IN_DIRECTORY(test_names_are_added),
		IN_DIRECTORY(test_what_cannot_be_read_back_replaces_nothing),
		IN_DIRECTORY(test_places_that_cannot_be_written),
		IN_DIRECTORY(test_full_disk_leaves_the_older_file),
		IN_DIRECTORY(test_files_that_are_not_ours),
		IN_DIRECTORY(test_every_truncation),
		IN_DIRECTORY(test_flipped_bytes),
		IN_DIRECTORY(test_hostile_content),
		IN_DIRECTORY(test_rows_of_one_symbol_are_one_function),
		IN_DIRECTORY(test_long_texts),
		IN_DIRECTORY(test_what_users_add_is_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
