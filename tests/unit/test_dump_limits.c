// SPDX-License-Identifier: GPL-3.0-or-later
/* When limits of memory are reached, and what is no limit. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "dump_limits.h"
#include "error.h"
#include "session.h"

#define MIB (1ULL << 20)

static struct dump_limits parse(const char *text)
{
	struct dump_limits limits = { 0 };
	struct error error = { 0 };

	assert_int_equal(dump_limits__parse(&limits, text, &error), 0);
	return limits;
}

/* Asserts which limits are reached with that memory, "" for none. */
static void assert_reached(struct dump_limits *limits, struct session_use use, __u64 now_s,
			   const char *expected)
{
	char text[DUMP_LIMITS_TEXT] = "";

	dump_limits__add_reached(limits, &use, now_s * NS_PER_S, text);
	assert_string_equal(text, expected);
}

#define RSS(mib)  ((struct session_use){ .rss_bytes = (mib)*MIB })
#define LIVE(mib) ((struct session_use){ .live_bytes = (mib)*MIB })

/* Only from below, and again only after a tenth less. */
static void test_level(void **state)
{
	struct dump_limits limits = parse("rss=100M,live=1G");

	assert_reached(&limits, RSS(99), 0, "");
	assert_reached(&limits, RSS(100), 1, "rss=100M");
	assert_reached(&limits, RSS(300), 2, "");
	assert_reached(&limits, RSS(91), 3, "");
	assert_reached(&limits, RSS(100), 4, "");
	assert_reached(&limits, RSS(89), 5, "");
	assert_reached(&limits, RSS(101), 6, "rss=100M");
	assert_reached(&limits, LIVE(1024), 7, "live=1G");
}

/* Against the least memory of the last minute, and anew after each time. */
static void test_growth(void **state)
{
	struct dump_limits limits = parse("growth=10M/1m");

	for (__u64 s = 0; s < 300; s++)
		assert_reached(&limits, RSS(100 + s / 7), s, ""); /* less than 10 in a minute */
	assert_reached(&limits, RSS(155), 300, "growth=10M/1m");
	assert_reached(&limits, RSS(164), 301, "");
	assert_reached(&limits, RSS(165), 302, "growth=10M/1m");
	assert_reached(&limits, RSS(20), 303, "");
	assert_reached(&limits, RSS(29), 340, "");
	assert_reached(&limits, RSS(30), 360, "growth=10M/1m");
}

/* A time that is shorter than the parts' number times the looks' distance looks no farther back. */
static void test_short_growth(void **state)
{
	struct dump_limits limits = parse("growth=50M/1s");

	for (__u64 s = 0; s < 40; s++)
		assert_reached(&limits, RSS(100 + 20 * s), s, "");
	assert_reached(&limits, RSS(100 + 20 * 39 + 55), 40, "growth=50M/1s");
}

static void test_group(void **state)
{
	struct dump_limits limits = parse("cgroup=90%,oom");

	assert_reached(&limits, (struct session_use){ .group_bytes = 95 * MIB }, 0, "");
	assert_reached(&limits, (struct session_use){ .group_bytes = 89, .group_limit_bytes = 100 },
		       1, "");
	assert_reached(
		&limits,
		(struct session_use){ .group_bytes = 90, .group_limit_bytes = 100, .oom_kills = 1 },
		2, "cgroup=90%,oom");
	assert_reached(
		&limits,
		(struct session_use){ .group_bytes = 95, .group_limit_bytes = 100, .oom_kills = 3 },
		3, "oom");
}

static void test_signals(void **state)
{
	struct dump_limits limits = parse("signal=USR2,signal=SIGUSR1");

	assert_reached(&limits, (struct session_use){ .signals = { 0, 1 } }, 0, "signal=USR2");
	assert_reached(&limits, (struct session_use){ .signals = { 1, 1 } }, 0, "signal=SIGUSR1");
	assert_reached(&limits, (struct session_use){ .signals = { 1, 1 } }, 0, "");
}

/* A limit that has not been served yet is not named twice. */
static void test_named_once(void **state)
{
	struct dump_limits limits = parse("oom");
	char text[DUMP_LIMITS_TEXT] = "";

	for (__u64 kills = 1; kills < 4; kills++)
		dump_limits__add_reached(&limits, &(struct session_use){ .oom_kills = kills }, 0,
					 text);
	assert_string_equal(text, "oom");
}

static void test_bad_limits(void **state)
{
	static const char *const bad[] = {
		"",
		"rss",
		"rss=",
		"rss=x",
		"rss=1G,",
		"growth=1G",
		"growth=1G/",
		"growth=/1m",
		"growth=1G/0",
		"cgroup=2",
		"cgroup=x%",
		"signal=SIGKILL",
		"signal=",
		"oom=1",
		"OOM",
		"rss=0",
		"live=0",
		"growth=0/1s",
		"cgroup=0%",
		"rss=00000000000000000000000000000000000000000000000000000000000000001",
	};
	struct error error = { 0 };
	__u64 bytes = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct dump_limits limits = { 0 };

		if (dump_limits__parse(&limits, bad[i], &error) != -EINVAL || !error.text[0])
			fail_msg("'%s' is taken", bad[i]);
	}
	assert_int_equal(dump_limits__parse_begin("live=5M", &bytes, &error), -EINVAL);
	assert_int_equal(bytes, 7);
	assert_int_equal(dump_limits__parse_begin("rss=5M", &bytes, &error), 0);
	assert_int_equal(bytes, 5 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level),	     cmocka_unit_test(test_growth),
		cmocka_unit_test(test_short_growth), cmocka_unit_test(test_group),
		cmocka_unit_test(test_signals),	     cmocka_unit_test(test_named_once),
		cmocka_unit_test(test_bad_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
