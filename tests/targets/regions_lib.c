// SPDX-License-Identifier: GPL-3.0-or-later
/* What regions.c loads: marks a region of its own, and one that the program has too. */
#define REGIONS_ELSEWHERE
#include "regions.h"

void library_run(void);

void library_run(void)
{
	{
		SCOPE("emit", EMIT);
		give(take(60), 60);
	}
	BEGIN("parse", PARSE);
	give(take(70), 70);
	END("parse", PARSE);
	give(take(80), 80);
}
