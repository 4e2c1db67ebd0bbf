// SPDX-License-Identifier: GPL-3.0-or-later
/* Checks the figures of meta, and reads the table of gaps, which were among them once. */
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "data_file_db.h"
#include "data_file_reader.h"
#include "gaps.h"
#include "profile.h"

int data_reader__read_gaps(struct data_reader *reader)
{
	_cleanup_(finalize) sqlite3_stmt *statement = NULL;
	struct profile_gap gap = { 0 };
	__u64 run, pid;
	const char *key;
	int kind, err;

	if (reader->lacks_gaps)
		return 0;
	err = prepare(reader->db, "SELECT * FROM gaps NOT INDEXED", &statement);
	while (!err && (err = data_reader__next(reader, statement, "gaps")) > 0) {
		err = data_reader__get_row(reader, statement, "ntnnntt", &run, &key, &gap.number,
					   &gap.size_bytes, &pid, &gap.object, &gap.detail);
		if (err)
			break;
		kind = gap__by_key(key);
		if (kind < 0 || run > reader->profile->n_runs || pid > INT32_MAX)
			return -EINVAL;
		gap.run = run;
		gap.pid = pid;
		gap.kind = kind;
		err = profile__add_gap(reader->profile, &gap);
	}
	return err;
}

/* Entries of meta that are whole numbers; of others only the shape of the text is known to who shows them. */
static bool is_number(const char *key)
{
	/* clang-format off */
	static const char *const keys[] = {
		"attached_pid", "attached_rss_bytes", "exit_status", "exit_signal",
		"impossible_calls", "oom_kills", "group_limit_bytes", "own_in_group", "own_bytes",
		"kernel_bytes", "max_live", "max_records", "events_stacks", "peak_bytes", "runs",
		"sample_bytes", "waits", "waits_ns", "wanted_runs", "warmup_runs",
		"window_delay_ns",
	};
	/* clang-format on */
	int kind;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(key, keys[i]))
			return true;
	kind = gap__by_key(key);
	return kind >= 0 && kind < GAP_NUMBERS;
}

int data_reader__check_figure(const char *key, const char *value)
{
	static const char digits[] = "0123456789";
	size_t len = strlen(value);

	/* Times depend on this one. */
	if (!strcmp(key, "epoch_ns"))
		return *value < '1' || *value > '9' || strspn(value, digits) != len || len > 18
			       ? -EINVAL
			       : 0;
	if (!strcmp(key, "elapsed_seconds"))
		return !strspn(value, digits) || strspn(value, "0123456789.") != len ? -EINVAL : 0;
	if (!is_number(key))
		return 0;
	if (*value == '-') {
		value++;
		len--;
	}
	return !len || strspn(value, digits) != len || len > 20 ? -EINVAL : 0;
}
