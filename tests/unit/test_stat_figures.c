// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include "measure_options.h"
#include "profile.h"
#include "stat_figures.h"

/* A failed request of a function counts with its size, so that each function can have as much as a sum can hold. */
static void test_sums_of_bytes_end(void **state)
{
	static const int functions[] = { AP_MALLOC, AP_CALLOC, AP_REALLOC };
	struct profile *profile = profile__new();
	struct measure measure = { .session.functions = AP_ALL_FUNCTIONS };
	struct stat_figures figures;
	struct stat_totals totals;

	assert_non_null(profile);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		profile->totals.functions[functions[i]].probed = true;
		profile->totals.functions[functions[i]].counts = (struct ap_site_counts){
			.calls = 2,
			.size_bytes = PROFILE_MAX,
		};
	}
	totals = stat_totals__of(&measure, profile);
	figures = stat_figures__of(&measure, profile);
	assert_int_equal(totals.allocations_size_bytes, PROFILE_MAX);
	assert_int_equal(stat_totals__total_bytes(&totals), PROFILE_MAX);
	assert_int_equal(figures.values[STAT_TOTAL_ALLOCATED_BYTES], PROFILE_MAX);
	assert_int_equal(figures.values[STAT_TOTAL_ALLOCATIONS], 6);

	profile->totals.has_live = true;
	profile->totals.live.stats[AP_STAT_ALLOCATED_BYTES] = PROFILE_MAX;
	profile->totals.live.stats[AP_STAT_GROWN_BYTES] = 2;
	profile->totals.live.stats[AP_STAT_SHRUNK_BYTES] = 2;
	profile->totals.live.stats[AP_STAT_FREED_BYTES] = PROFILE_MAX;
	profile->totals.live.stats[AP_STAT_DEALLOCATED_BYTES] = PROFILE_MAX;
	totals = stat_totals__of(&measure, profile);
	assert_int_equal(totals.bytes_allocated, PROFILE_MAX);
	assert_int_equal(totals.bytes_deallocated, PROFILE_MAX);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_of_bytes_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
