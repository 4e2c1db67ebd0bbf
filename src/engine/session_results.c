// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_results.h"

const char *region_gap__name(enum ap_region_gap gap)
{
	static const char *const names[AP_REGION_GAPS] = {
		[AP_REGION_GAP_DEPTH] = "depth",
		[AP_REGION_GAP_THREADS] = "threads",
		[AP_REGION_GAP_SETS] = "sets",
	};

	return names[gap];
}

const char *region_gap__words(enum ap_region_gap gap)
{
	static const char *const words[AP_REGION_GAPS] = {
		[AP_REGION_GAP_DEPTH] = "region{|s} {was|were} begun within too many others",
		[AP_REGION_GAP_THREADS] =
			"region{|s} {was|were} begun by threads that found no room",
		[AP_REGION_GAP_SETS] = "call{|s} {was|were} in too many different sets of regions",
	};

	return words[gap];
}
