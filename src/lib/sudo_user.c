// SPDX-License-Identifier: GPL-3.0-or-later
#include "sudo_user.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_ID UINT32_MAX

/* The environment is trusted: the caller who set it is root. */
static uint32_t get_id(const char *variable)
{
	const char *text = getenv(variable);
	unsigned long long id;

	if (!text || !*text || strlen(text) > 10 || text[strspn(text, "0123456789")])
		return NO_ID;
	id = strtoull(text, NULL, 10);
	return id < NO_ID ? id : NO_ID;
}

bool sudo_user__find(uid_t *uid, gid_t *gid)
{
	uint32_t user = get_id("SUDO_UID");

	if (geteuid() || !user || user == NO_ID)
		return false;
	*uid = user;
	*gid = get_id("SUDO_GID");
	return true;
}
