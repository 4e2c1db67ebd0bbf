// SPDX-License-Identifier: GPL-3.0-or-later
/* Tells when a copy of the recording is to be written because the target has more resident memory than
 * before. */
#include "dump_peak.h"

#include <stdio.h>

#include "clock.h"
#include "message.h"
#include "number.h"

/*
 * A copy is due when resident memory exceeds that of the last one by STEP, or by LEFT and has stopped
 * to grow; but not before LEAST_NS, and as long as the last one took, have gone by. If both are so,
 * the second time is not waited for, and a copy that is being written, which is not of the peak then, is
 * given up, but no two in a row.
 */
#define STEP	 0.05
#define LEFT	 0.005
#define LEAST_NS (250 * NS_PER_MS)

void dump_peak__note(struct dump_peak *peak, __u64 rss_bytes)
{
	peak->last_bytes = rss_bytes;
	if (rss_bytes > peak->most_bytes)
		peak->most_bytes = rss_bytes;
}

static bool is_due(const struct dump_peak *peak, __u64 rss_bytes, bool is_writing, __u64 now_ns)
{
	bool is_above = rss_bytes > peak->copied_bytes * (1 + STEP);
	bool is_left = rss_bytes > peak->copied_bytes * (1 + LEFT) &&
		       rss_bytes <= peak->last_bytes * (1 + LEFT);

	if (!peak->path)
		return false;
	if (is_above && is_left && now_ns >= peak->begin_ns + LEAST_NS)
		return !is_writing || !peak->was_given_up;
	return !is_writing && now_ns >= peak->due_ns && (is_above || is_left);
}

bool dump_peak__is_due(struct dump_peak *peak, __u64 rss_bytes, bool is_writing)
{
	__u64 now_ns = clock__now_ns();

	if (!is_due(peak, rss_bytes, is_writing, now_ns))
		return false;
	peak->was_given_up = is_writing;
	peak->begin_ns = now_ns;
	return true;
}

void dump_peak__begin(struct dump_peak *peak, __u64 rss_bytes)
{
	peak->copied_bytes = rss_bytes;
	dump_peak__note(peak, rss_bytes);
}

void dump_peak__end(struct dump_peak *peak, bool is_written, const char *said)
{
	__u64 now_ns = clock__now_ns(), cost_ns = now_ns - peak->begin_ns;

	peak->due_ns = now_ns + (cost_ns > LEAST_NS ? cost_ns : LEAST_NS);
	snprintf(peak->why_not, sizeof(peak->why_not), "%.127s", is_written ? "" : said);
	if (is_written) {
		peak->is_written = true;
		peak->written_bytes = peak->copied_bytes;
	} else {
		peak->copied_bytes = peak->written_bytes;
	}
}

void dump_peak__report(const struct dump_peak *peak, bool is_quiet)
{
	if (!peak->is_written)
		message__print("no copy at the peak was written: %s",
			       peak->why_not[0] ? peak->why_not
			       : peak->most_bytes
				       ? "the recording was too short"
				       : "the recording ended before its memory was looked at");
	else if (!is_quiet)
		message__print("at the peak: %s of resident memory when %s was written, at most %s "
			       "at any look%s%s%s",
			       number__bytes(peak->written_bytes, false).text, peak->path,
			       number__bytes(peak->most_bytes, false).text,
			       peak->held_ns ? "; copies held the target for " : "",
			       peak->held_ns ? number__time(peak->held_ns).text : "",
			       peak->held_ns ? " at most" : "");
}
