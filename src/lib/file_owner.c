// SPDX-License-Identifier: GPL-3.0-or-later
#include "file_owner.h"

bool directory__is_safe(int directory, uid_t owner, bool may_be_shared)
{
	struct stat st;

	if (fstat(directory, &st) || (st.st_uid != owner && !(may_be_shared && !st.st_uid)))
		return false;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) || (may_be_shared && st.st_mode & S_ISVTX);
}
