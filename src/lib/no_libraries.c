// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Keeps an allocprof without shared libraries from loading any: they would bring the C library of the machine, beside the one
 * that is linked in. libdw, SQLite and others look for optional ones, and glibc for those that /etc/nsswitch.conf names.
 */
#include <dlfcn.h>
#include <nss.h>
#include <stddef.h>

void *dlopen(const char *name, int flags)
{
	return NULL;
}

void *dlsym(void *library, const char *name)
{
	return NULL;
}

int dlclose(void *library)
{
	return -1;
}

char *dlerror(void)
{
	return (char *)"this allocprof loads no libraries";
}

/* Users and groups are those of /etc/passwd and /etc/group, which glibc reads by itself. */
__attribute__((constructor)) static void read_files_only(void)
{
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
	__nss_configure_lookup("initgroups", "files");
}
