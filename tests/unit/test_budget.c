// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "budget.h"
#include "error.h"

static int parse(const char *text, struct budget *budget, struct error *error)
{
	return budget__parse(text, strlen(text), "b.json", budget, error);
}

/* Runs that are all alike. */
static const struct budget_measured *measured(const __s64 values[BUDGET_FIGURES])
{
	static struct budget_measured made[BUDGET_FIGURES];

	for (int i = 0; i < BUDGET_FIGURES; i++)
		made[i] = (struct budget_measured){ values[i], values[i], values[i] };
	return made;
}

static const char whole[] =
	"{\"comment\": \"all\", \"tests\": {\n"
	" \"z\": {\"command\": [\"./t\", \"-v\"], \"runs\": 10, \"warmup\": 0, \"directory\": \"d\",\n"
	"  \"total_allocations\": {\"max\": 7050}, \"peak_bytes\": {\"min\": 5, \"max\": 900}},\n"
	" \"a\": {\"comment\": \"later\", \"remaining_allocations\": {\"max\": 0}}}}";

static void test_whole(void **state)
{
	struct error error = { 0 };
	struct budget budget;

	assert_int_equal(parse(whole, &budget, &error), 0);
	assert_int_equal(budget.n_tests, 2);
	assert_string_equal(budget.tests[0].name, "z");
	assert_string_equal(budget.tests[0].command[1], "-v");
	assert_null(budget.tests[0].command[2]);
	assert_int_equal(budget.tests[0].runs, 10);
	assert_int_equal(budget.tests[0].warmup, 0);
	assert_string_equal(budget.tests[0].directory, "d");
	assert_int_equal(budget.tests[0].limits[BUDGET_TOTAL_ALLOCATIONS].max, 7050);
	assert_false(budget.tests[0].limits[BUDGET_TOTAL_ALLOCATIONS].has_min);
	assert_int_equal(budget.tests[0].limits[BUDGET_PEAK_BYTES].min, 5);
	assert_null(budget.tests[1].command);
	assert_int_equal(budget.tests[1].runs, BUDGET_DEFAULT_RUNS);
	assert_int_equal(budget.tests[1].warmup, BUDGET_DEFAULT_WARMUP);
	assert_ptr_equal(budget__find(&budget, "a", &error), &budget.tests[1]);
	assert_null(budget__find(&budget, "b", &error));
	assert_string_equal(error.text, "no test 'b' in the budget; it has z, a");
	budget__release(&budget);
}

/* Each is refused, with the place. */
static void test_bad(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "line 1, byte 1" },
		{ "{\n\"tests\": {,}}", "line 2, byte 11" },
		{ "{\"tests\": {}", "b.json is no JSON" },
		{ "{} {}", "b.json is no JSON" },
		{ "[]", "no budget" },
		{ "{}", "has no tests" },
		{ "{\"tests\": {}}", "has no tests" },
		{ "{\"tests\": 3}", "has no tests" },
		{ "{\"test\": {\"a\": {}}}", "unknown key \"test\"" },
		{ "{\"tests\": {\"a\": 3}}", "test 'a': it has to be an object" },
		{ "{\"tests\": {\"a/b\": {}}}", "test 'a/b': the name" },
		{ "{\"tests\": {\"..\": {}}}", "test '..': the name" },
		{ "{\"tests\": {\"\": {}}}", "test '': the name" },
		{ "{\"tests\": {\"a\": {\"comand\": []}}}", "test 'a', \"comand\": unknown key" },
		{ "{\"tests\": {\"a\": {\"command\": []}}}", "a list of words" },
		{ "{\"tests\": {\"a\": {\"command\": \"ls\"}}}", "a list of words" },
		{ "{\"tests\": {\"a\": {\"command\": [1]}}}", "a string" },
		{ "{\"tests\": {\"a\": {\"command\": [\"a\\u0000b\"]}}}", "a zero byte" },
		{ "{\"tests\": {\"a\": {\"runs\": 0}}}", "from 1 to 10000" },
		{ "{\"tests\": {\"a\": {\"runs\": 10001}}}", "from 1 to 10000" },
		{ "{\"tests\": {\"a\": {\"runs\": 1.5}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"warmup\": -1}}}", "cannot be negative" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": 5}}}", "{\"max\": 1000}" },
		{ "{\"tests\": {\"a\": {\"regions\": 5}}}", "a key for each region" },
		{ "{\"tests\": {\"a\": {\"regions\": {}}}}", "a key for each region" },
		{ "{\"tests\": {\"a\": {\"regions\": {\"r\": 5}}}}",
		  "test 'a', region 'r': it has to be an object" },
		{ "{\"tests\": {\"a\": {\"regions\": {\"r\": {\"runs\": 5}}}}}",
		  "test 'a', region 'r', \"runs\": unknown key; a region has" },
		{ "{\"tests\": {\"a\": {\"regions\": {\"r\": {\"peak_bytes\": {\"max\": 5}}}}}}",
		  "region 'r', \"peak_bytes\": unknown key" },
		{ "{\"tests\": {\"a\": {\"regions\": {\"r\": {\"total_allocations\": {\"max\": -5}}}}}}",
		  "region 'r', \"total_allocations\": max is -5" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {}}}}", "none of" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": -1}}}}",
		  "test 'a', \"peak_bytes\": max is -1; it cannot be negative" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": \"5\"}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": null}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"most\": 5}}}}", "unknown key \"most\"" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 5, \"min\": 6}}}}",
		  "max 5 is less than min 6" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": NaN}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": Infinity}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 5.0}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 1e3}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 0x10}}}}", "b.json is no JSON" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": [5]}}}}", "a whole number" },
		{ "{\"tests\": {\"a\": {}}, // more\n}", "b.json is no JSON" },
		{ "\xef\xbb\xbf{\"tests\": {\"a\": {}}}", "line 1, byte 1" },
		{ "{\"tests\": {\"\xff\": {}}}", "b.json is no JSON" },
		{ "{\"tests\": {\"a\\u001b\": {}}}", "the name" },
		{ "{\"tests\": {\"a\": {},\n \"b\": {}, \"a\": {}}}",
		  "has the key \"a\" twice, again at line 2, byte 11" },
		{ "{\"tests\": {\"a\": {}, \"\\u0061\": {}}}", "the key \"a\" twice" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 5, \"max\" : 6}}}}",
		  "the key \"max\" twice" },
		{ "{\"tests\": {\"a\": {}}, \"tests\": {\"b\": {}}}", "the key \"tests\" twice" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 99999999999999999999}}}}",
		  "b.json, line 1, byte 40: no limit can be 99999999999999999999; it has to be from 0 to "
		  "9223372036854775806" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 9223372036854775808}}}}",
		  "no limit can be 9223372036854775808;" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 9223372036854775807}}}}",
		  "max is 9223372036854775807; it has to be from 0 to 9223372036854775806" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": -9223372036854775809}}}}",
		  "no limit can be -9223372036854775809;" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": -9223372036854775808}}}}",
		  "max is -9223372036854775808; it cannot be negative" },
		{ "{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 99999999999999999999.0}}}}",
		  "a whole number" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error error = { 0 };
		struct budget budget;
		int err = parse(cases[i].text, &budget, &error);

		if (err != -EINVAL || !strstr(error.text, cases[i].says) ||
		    !strstr(error.text, "b.json"))
			fail_msg("%s: %d, '%s' does not say '%s'", cases[i].text, err, error.text,
				 cases[i].says);
	}
}

/* One key in several objects, keys that are values too, and what looks like a key. */
static void test_not_repeated(void **state)
{
	static const char *const texts[] = {
		"{\"tests\": {\"a\": {\"comment\": \"comment\"}, \"b\": {\"comment\": \"\"}}}",
		"{\"tests\": {\"comment\": {\"command\": [\"a\", \"a\"]}}, \"comment\": \"x\"}",
		"{\"tests\": {\"a\": {\"comment\": \"\\\"b\\\": {\\\\\"}, \"b\": {}}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error error = { 0 };
		struct budget budget;

		if (parse(texts[i], &budget, &error))
			fail_msg("%s: %s", texts[i], error.text);
		budget__release(&budget);
	}
}

/* Too deep for the parser, which says so. */
static void test_deep(void **state)
{
	char text[8192] = "{\"tests\": ";
	struct error error = { 0 };
	struct budget budget;

	for (int i = 0; i < 4000; i++)
		strcat(text, "[");
	assert_int_equal(parse(text, &budget, &error), -EINVAL);
	assert_non_null(strstr(error.text, "b.json is no JSON: line 1, byte "));
}

static void assert_judged(struct budget_limit limit, int figure, __s64 value, int verdict)
{
	assert_int_equal(budget_limit__judge(&limit, figure, value), verdict);
}

static void test_judges(void **state)
{
	const struct budget_limit both = { true, true, 100, 90 }, max = { true, false, 7050, 0 };
	const struct budget_limit small = { true, false, 999, 0 }, min = { false, true, 0, 5 };

	assert_judged(both, BUDGET_PEAK_BYTES, 101, BUDGET_OVER);
	assert_judged(both, BUDGET_PEAK_BYTES, 100, BUDGET_WITHIN);
	assert_judged(both, BUDGET_PEAK_BYTES, 90, BUDGET_WITHIN);
	assert_judged(both, BUDGET_PEAK_BYTES, 89, BUDGET_STALE);
	/* SwiftNIO's: max - 1000 < total <= max. */
	assert_judged(max, BUDGET_TOTAL_ALLOCATIONS, 6051, BUDGET_WITHIN);
	assert_judged(max, BUDGET_TOTAL_ALLOCATIONS, 6050, BUDGET_STALE);
	assert_judged(max, BUDGET_TOTAL_ALLOCATED_BYTES, 0, BUDGET_WITHIN);
	assert_judged(small, BUDGET_TOTAL_ALLOCATIONS, 0, BUDGET_WITHIN);
	assert_judged(small, BUDGET_REMAINING_ALLOCATIONS, -3, BUDGET_WITHIN);
	assert_judged(min, BUDGET_TOTAL_ALLOCATIONS, 4, BUDGET_STALE);
	assert_judged(min, BUDGET_TOTAL_ALLOCATIONS, 1 << 30, BUDGET_WITHIN);
	assert_judged((struct budget_limit){ 0 }, BUDGET_TOTAL_ALLOCATIONS, 1, BUDGET_WITHIN);
}

static void test_slack(void **state)
{
	static const struct {
		__s64 value, max, min;
	} cases[] = {
		{ 0, 0, 0 },	    { 999, 999, 999 },	 { 1000, 1050, 51 },
		{ 1049, 1050, 51 }, { 1050, 1100, 101 }, { 75001, 75050, 74051 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct budget_limit limit = budget__slack(cases[i].value);

		assert_int_equal(limit.max, cases[i].max);
		assert_int_equal(limit.min, cases[i].min);
		assert_judged(limit, BUDGET_TOTAL_ALLOCATIONS, cases[i].value, BUDGET_WITHIN);
	}
	assert_judged(budget__slack(-3), BUDGET_REMAINING_ALLOCATIONS, -3, BUDGET_WITHIN);
}

/* Values change in place; all else, and the order, stays. */
static void test_update(void **state)
{
	static const __s64 values[BUDGET_FIGURES] = { 7004, 9, 0, 9, 800 };
	char path[] = "/tmp/test_budget.XXXXXX";
	struct error error = { 0 };
	struct budget budget, again;
	struct stat st;
	bool changed;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0640), 0);
	close(fd);
	assert_int_equal(parse(whole, &budget, &error), 0);
	assert_int_equal(budget_test__update(&budget.tests[0], measured(values), &changed), 0);
	assert_true(changed);
	assert_int_equal(budget_test__update(&budget.tests[1], measured(values), &changed), 0);
	assert_false(changed);
	assert_int_equal(budget__write(&budget, path, &error), 0);
	budget__release(&budget);

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(budget__read(path, &again, &error), 0);
	assert_string_equal(
		json_object_to_json_string_ext(again.root, JSON_C_TO_STRING_PLAIN),
		"{\"comment\":\"all\",\"tests\":{"
		"\"z\":{\"command\":[\".\\/t\",\"-v\"],\"runs\":10,\"warmup\":0,\"directory\":\"d\","
		"\"total_allocations\":{\"max\":7050},\"peak_bytes\":{\"min\":800,\"max\":800}},"
		"\"a\":{\"comment\":\"later\",\"remaining_allocations\":{\"max\":0}}}}");
	budget__release(&again);
	unlink(path);
}

/* A test that has no limits yet gets those that SwiftNIO has. */
static void test_update_adds(void **state)
{
	static const __s64 values[BUDGET_FIGURES] = { 7004, 9, 4, 9, 800 };
	struct error error = { 0 };
	struct budget budget;
	bool changed;

	assert_int_equal(parse("{\"tests\": {\"a\": {}}}", &budget, &error), 0);
	assert_int_equal(budget_test__update(&budget.tests[0], measured(values), &changed), 0);
	assert_true(changed);
	assert_string_equal(json_object_to_json_string_ext(budget.root, JSON_C_TO_STRING_PLAIN),
			    "{\"tests\":{\"a\":{\"total_allocations\":{\"max\":7050},"
			    "\"remaining_allocations\":{\"max\":4,\"min\":4}}}}");
	budget__release(&budget);
}

/* More was freed than allocated: no lower limit holds, and the file can be read again. */
static void test_update_below_zero(void **state)
{
	static const __s64 values[BUDGET_FIGURES] = { 7, 9, -4, -100, 800 };
	struct error error = { 0 };
	struct budget budget, again;
	const char *text;
	bool changed;

	assert_int_equal(parse("{\"tests\": {\"a\": {\"remaining_allocations\": {\"min\": 5},"
			       "\"remaining_bytes\": {\"min\": 50, \"max\": 90}}}}",
			       &budget, &error),
			 0);
	assert_int_equal(budget_test__update(&budget.tests[0], measured(values), &changed), 0);
	assert_true(changed);
	text = json_object_to_json_string_ext(budget.root, JSON_C_TO_STRING_PLAIN);
	assert_string_equal(text, "{\"tests\":{\"a\":{\"remaining_bytes\":{\"max\":0}}}}");
	assert_int_equal(parse(text, &again, &error), 0);
	budget__release(&again);
	budget__release(&budget);
}

/* Made of a command, it is what reading the written file gives. */
static void test_new(void **state)
{
	char *const command[] = { (char *)"./bin/a b", (char *)"\"\\", (char *)"", NULL };
	char *const not_utf8[] = { (char *)"a", (char *)"\xff", NULL };
	char *const no_name[] = { (char *)"..", NULL };
	struct error error = { 0 };
	struct budget budget = { 0 }, again;
	const char *text;

	assert_int_equal(budget__add(&budget, "b.json", NULL, command, &error), 0);
	assert_int_equal(budget.n_tests, 1);
	assert_string_equal(budget.tests[0].name, "a b");
	assert_false(budget_test__has_limits(&budget.tests[0]));
	text = json_object_to_json_string_ext(budget.root, JSON_C_TO_STRING_PLAIN);
	assert_int_equal(parse(text, &again, &error), 0);
	assert_string_equal(again.tests[0].command[1], "\"\\");
	assert_string_equal(again.tests[0].command[2], "");
	assert_null(again.tests[0].command[3]);
	budget__release(&again);
	/* A second one comes behind it; one that cannot be added leaves the budget as it is. */
	assert_int_equal(budget__add(&budget, "b.json", "other", command, &error), 0);
	assert_int_equal(budget__add(&budget, "b.json", NULL, not_utf8, &error), -EINVAL);
	assert_non_null(strstr(error.text, "is not UTF-8"));
	assert_int_equal(budget__add(&budget, "b.json", NULL, no_name, &error), -EINVAL);
	assert_non_null(strstr(error.text, "the name has to be one that files can have"));
	assert_int_equal(budget.n_tests, 2);
	assert_string_equal(budget.tests[0].name, "a b");
	assert_string_equal(budget.tests[1].name, "other");
	text = json_object_to_json_string_ext(budget.root, JSON_C_TO_STRING_PLAIN);
	assert_int_equal(parse(text, &again, &error), 0);
	assert_int_equal(again.n_tests, 2);
	budget__release(&again);
	budget__release(&budget);
}

/* Regions have limits of their own, and a test that is about regions needs no others. */
static void test_regions(void **state)
{
	static const __s64 values[BUDGET_FIGURES] = { 7004, 9, 4, 9, 800 };
	struct error error = { 0 };
	struct budget budget;
	bool changed;

	assert_int_equal(
		parse("{\"tests\": {\"a\": {\"regions\": {\"r\": {}, \"s\": {\"comment\": \"c\", "
		      "\"remaining_bytes\": {\"max\": 1}}}}, \"b\": {\"regions\": {\"r\": {}}}}}",
		      &budget, &error),
		0);
	assert_int_equal(budget.tests[0].n_parts, 2);
	assert_true(budget_test__has_limits(&budget.tests[0]));
	assert_false(budget_test__has_limits(&budget.tests[1]));
	assert_int_equal(budget_test__update(&budget.tests[0], measured(values), &changed), 0);
	assert_false(changed);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			budget_part__update(&budget.tests[0].parts[i], measured(values), &changed),
			0);
		assert_true(changed);
	}
	assert_string_equal(
		json_object_to_json_string_ext(budget.tests[0].object, JSON_C_TO_STRING_PLAIN),
		"{\"regions\":{\"r\":{\"total_allocations\":{\"max\":7050}},"
		"\"s\":{\"comment\":\"c\",\"remaining_bytes\":{\"max\":9}}}}");
	budget__release(&budget);
}

static const char *says(void *context, enum budget_condition condition)
{
	static const char *const here[BUDGET_CONDITIONS] = {
		[BUDGET_MACHINE] = "x86_64",
		[BUDGET_LIBC] = "GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.",
		[BUDGET_LIBRARY] = "/usr/bin/a\n/usr/lib/libstdc++.so.6.0.30\n/usr/lib/libc.so.6",
	};

	return context ? NULL : here[condition];
}

static const char of_places[] =
	"{\"tests\": {\"a\": {\"peak_bytes\": {\"max\": 1}, \"regions\": {\"r\": {"
	"\"total_allocations\": {\"max\": 7}, \"remaining_bytes\": {\"max\": 8}}}, \"when\": ["
	"{\"libc\": \"2[.]41\", \"peak_bytes\": {\"max\": 2}},"
	"{\"machine\": \"64$\", \"library\": \"^/usr/lib/libstdc[+]+[.]so[.]6[.]0[.]30$\","
	" \"peak_bytes\": {\"max\": 3}, \"temporary_allocations\": {\"max\": 4},"
	" \"regions\": {\"r\": {\"total_allocations\": {\"max\": 5}}}},"
	"{\"machine\": \".\", \"peak_bytes\": {\"max\": 6}}]}}}";

/* The first entry that holds takes the place of what it limits, too, and nothing else. */
static void test_when(void **state)
{
	struct error error = { 0 };
	struct budget budget;
	struct budget_test *test;
	int nowhere;

	assert_int_equal(parse(of_places, &budget, &error), 0);
	test = &budget.tests[0];
	assert_int_equal(budget_test__choose_when(test, says, NULL, &error), 0);
	assert_int_equal(test->limits[BUDGET_PEAK_BYTES].max, 3);
	assert_int_equal(test->limits[BUDGET_TEMPORARY_ALLOCATIONS].max, 4);
	assert_ptr_equal(test->owners[BUDGET_PEAK_BYTES],
			 test->owners[BUDGET_TEMPORARY_ALLOCATIONS]);
	assert_ptr_equal(test->owners[BUDGET_TOTAL_ALLOCATIONS], test->object);
	assert_ptr_not_equal(test->owners[BUDGET_PEAK_BYTES], test->object);
	assert_int_equal(test->n_parts, 2);
	assert_false(test->parts[0].limits[BUDGET_TOTAL_ALLOCATIONS].has_max);
	assert_int_equal(test->parts[0].limits[BUDGET_REMAINING_BYTES].max, 8);
	assert_int_equal(test->parts[1].limits[BUDGET_TOTAL_ALLOCATIONS].max, 5);
	assert_false(test->parts[0].is_off || test->parts[1].is_off);
	budget__release(&budget);

	/* Where nothing is known no condition holds. */
	assert_int_equal(parse(of_places, &budget, &error), 0);
	test = &budget.tests[0];
	assert_int_equal(budget_test__choose_when(test, says, &nowhere, &error), 0);
	assert_int_equal(test->limits[BUDGET_PEAK_BYTES].max, 1);
	assert_true(!test->parts[0].is_off && test->parts[1].is_off);
	assert_int_equal(test->parts[0].limits[BUDGET_TOTAL_ALLOCATIONS].max, 7);
	budget__release(&budget);
}

static void test_growth(void **state)
{
	static const struct {
		const char *limit;
		__s64 before, after;
		bool allows;
	} cases[] = {
		{ "0", 5, 5, true },	       { "0", 5, 6, false },
		{ "0", 5, 4, true },	       { "1000", 0, 1000, true },
		{ "1000", 0, 1001, false },    { "1%", 100, 101, true },
		{ "1%", 100, 102, false },     { "0.5%", 1000, 1005, true },
		{ "0.5%", 1000, 1006, false }, { "1%", 0, 1, false },
		{ "1%", 0, 0, true },	       { "10%", -100, -90, true },
		{ "10%", -100, -89, false },
	};
	static const char *const bad[] = { "",	  "%",	"-1",  "1.5", ".5%",
					   "1%%", " 1", "1e3", "x",   "9999999%" };
	struct growth_limit limit;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(growth_limit__parse(cases[i].limit, &limit, NULL), 0);
		if (growth_limit__allows(&limit, cases[i].before, cases[i].after) !=
		    cases[i].allows)
			fail_msg("%s: %lld to %lld", cases[i].limit, cases[i].before,
				 cases[i].after);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(growth_limit__parse(bad[i], &limit, NULL), -EINVAL);
}

/* Runs that differ get as much room beyond the greatest of them as they are apart. */
static void test_slack_of_runs(void **state)
{
	const struct budget_measured few = { 10, 10, 14 }, many = { 2000, 2000, 2008 },
				     middle = { 12, 10, 14 };

	assert_int_equal(budget__slack_of(&few).max, 18);
	assert_int_equal(budget__slack_of(&few).min, 6);
	assert_int_equal(budget__slack_of(&many).max, 2050);
	assert_int_equal(budget__slack_of(&many).min, 1051);
	assert_int_equal(budget__slack_of(&middle).max, 16);
	assert_int_equal(budget__slack_of(&middle).min, 8);
}

static void test_environment(void **state)
{
	struct error error = { 0 };
	struct budget budget;

	assert_int_equal(parse("{\"tests\": {\"a.b-c\": {\"total_allocations\": "
			       "{\"max\": 5, \"min\": 5}}}}",
			       &budget, &error),
			 0);
	assert_int_equal(budget_test__read_environment(&budget.tests[0], &error), 0);
	assert_int_equal(budget.tests[0].limits[BUDGET_TOTAL_ALLOCATIONS].max, 5);
	setenv("MAX_ALLOCS_ALLOWED_a_b_c", "1200", 1);
	assert_int_equal(budget_test__read_environment(&budget.tests[0], &error), 0);
	assert_int_equal(budget.tests[0].limits[BUDGET_TOTAL_ALLOCATIONS].max, 1200);
	assert_false(budget.tests[0].limits[BUDGET_TOTAL_ALLOCATIONS].has_min);
	for (const char *const *bad =
		     (const char *const[]){ "", "-1", "1x", " 1", "99999999999999999999", NULL };
	     *bad; bad++) {
		setenv("MAX_ALLOCS_ALLOWED_a_b_c", *bad, 1);
		assert_int_equal(budget_test__read_environment(&budget.tests[0], &error), -EINVAL);
	}
	unsetenv("MAX_ALLOCS_ALLOWED_a_b_c");
	budget__release(&budget);
}

static void test_ranges(void **state)
{
	struct figure_range range = figures__range((__s64[]){ 5, -1, 9, 7 }, 4);

	assert_int_equal(range.min, -1);
	assert_int_equal(range.median, 5);
	assert_int_equal(range.max, 9);
	range = figures__range((__s64[]){ 3 }, 1);
	assert_int_equal(range.min, 3);
	assert_int_equal(range.median, 3);
	assert_int_equal(range.max, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_judges),
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_update),
		cmocka_unit_test(test_update_adds),
		cmocka_unit_test(test_update_below_zero),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_not_repeated),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_slack_of_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
