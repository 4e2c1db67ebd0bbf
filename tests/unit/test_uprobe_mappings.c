// SPDX-License-Identifier: GPL-3.0-or-later
/* A mapping event that cannot be kept for want of memory counts as lost, since an allocator may have been missed. The
 * linker puts the functions below in the place of the library's (--wrap). */
#include "unit.h"

#include <errno.h>

#include "collector.h"
#include "mapping_events.h"
#include "uprobe_internal.h"

#define LOST_BY_THE_KERNEL 5

static int handled; /* what the collector returns */

void __wrap_mapping_events__read(struct mapping_events *events,
				 void (*handle)(const struct mapping_event *event, void *context),
				 void *context);
__u64 __wrap_mapping_events__lost(const struct mapping_events *events);
int __wrap_collector__handle_mapping(struct collector *collector,
				     const struct mapping_event *event);

void __wrap_mapping_events__read(struct mapping_events *events,
				 void (*handle)(const struct mapping_event *event, void *context),
				 void *context)
{
	const struct mapping_event event = { .kind = MAPPING_EXEC };

	handle(&event, context);
	handle(&event, context);
}

__u64 __wrap_mapping_events__lost(const struct mapping_events *events)
{
	return LOST_BY_THE_KERNEL;
}

int __wrap_collector__handle_mapping(struct collector *collector, const struct mapping_event *event)
{
	return handled;
}

static void test_kept(void **state)
{
	struct uprobe uprobe = { 0 };

	handled = 0;
	uprobe__read_mappings(&uprobe);
	assert_int_equal(uprobe__mappings_lost(&uprobe), LOST_BY_THE_KERNEL);
}

static void test_dropped(void **state)
{
	struct uprobe uprobe = { 0 };

	handled = -ENOMEM;
	uprobe__read_mappings(&uprobe);
	assert_int_equal(uprobe__mappings_lost(&uprobe), LOST_BY_THE_KERNEL + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
