// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_results.h"

#include "profile.h"

void site_counts__add(struct ap_site_counts *sum, const struct ap_site_counts *more)
{
	sum->calls = profile__add_up(sum->calls, more->calls);
	sum->internal = profile__add_up(sum->internal, more->internal);
	sum->size_bytes = profile__add_up(sum->size_bytes, more->size_bytes);
	sum->fresh = profile__add_up(sum->fresh, more->fresh);
	sum->fresh_size_bytes = profile__add_up(sum->fresh_size_bytes, more->fresh_size_bytes);
	sum->released = profile__add_up(sum->released, more->released);
	sum->null = profile__add_up(sum->null, more->null);
	sum->failed = profile__add_up(sum->failed, more->failed);
	sum->returned_bytes = profile__add_up(sum->returned_bytes, more->returned_bytes);
}
