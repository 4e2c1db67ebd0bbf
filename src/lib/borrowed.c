// SPDX-License-Identifier: GPL-3.0-or-later
#include "borrowed.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"

bool borrowed__is_any(void)
{
	/* It is also set where a security module changes root's domain. */
	return getauxval(AT_SECURE) && getuid();
}

int borrowed__reduce(struct error *error)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (getuid() != geteuid() || getgid() != getegid())
		return error__set(
			error, -EPERM,
			"allocprof does not run set-user-ID or set-group-ID; remove these bits "
			"(chmod ug-s), and give it capabilities (allocprof(1), SECURITY)");
	if (!borrowed__is_any())
		return 0;
	if (!syscall(SYS_capget, &header, data)) {
		for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
			__u32 kept = i == CAP_TO_INDEX(CAP_BPF) ? CAP_TO_MASK(CAP_BPF) : 0;

			kept |= i == CAP_TO_INDEX(CAP_PERFMON) ? CAP_TO_MASK(CAP_PERFMON) : 0;
			data[i].effective &= kept;
			data[i].permitted &= kept;
			data[i].inheritable = 0;
		}
		/* fs.suid_dumpable may let others of the user look into this process. */
		if (!syscall(SYS_capset, &header, data) && !prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
			return 0;
	}
	return error__set(error, -errno, "cannot give up the capabilities of allocprof's file: %s",
			  strerror(errno));
}

int borrowed__check_process(pid_t pid, struct error *error)
{
	char name[64], none[1];

	if (!borrowed__is_any())
		return 0;
	/* Asks for what ptrace(2) does to read. */
	snprintf(name, sizeof(name), "/proc/%d/exe", pid);
	if (readlink(name, none, sizeof(none)) >= 0 || (errno != EACCES && errno != EPERM))
		return 0;
	return borrowed__refuse(pid, error);
}

int borrowed__refuse(pid_t pid, struct error *error)
{
	return error__set(error, -EPERM,
			  "process %d is another user's, or has more privileges than this user; "
			  "run allocprof as root, as by the capabilities of its file it measures "
			  "only what its user could trace",
			  pid);
}
