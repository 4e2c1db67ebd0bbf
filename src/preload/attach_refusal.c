// SPDX-License-Identifier: GPL-3.0-or-later
/* Says why a running process is not measured from inside. */
#include "attach_internal.h"

#include <errno.h>
#include <string.h>

#include "error.h"

int attach__refuse(struct error *error, int err, pid_t pid, const char *why)
{
	return error__set(error, err,
			  "cannot measure process %d from inside: %s; "
			  "--engine=uprobe measures it from outside, as root",
			  pid, why);
}

int attach__explain(struct error *error, int err, pid_t pid)
{
	switch (err) {
	case -EPERM:
		return attach__refuse(
			error, err, pid,
			"another process traces it, as debuggers and strace do, or this user may "
			"not (ptrace(2))");
	case -EACCES:
		return attach__refuse(
			error, -EPERM, pid,
			"it runs with a filter of system calls (seccomp(2)), which only root may "
			"read, outside of such filters");
	case -ESTALE:
		return attach__refuse(error, err, pid, "it executed another program just then");
	case -ESRCH:
		return error__set(error, err,
				  "process %d ended while the library was loaded into it", pid);
	case -ENOTSUP:
		return attach__refuse(
			error, err, pid,
			"it has no C library that allocprof knows, or no thread on a stack of its own");
	case -ENOSYS:
		return attach__refuse(
			error, -EOPNOTSUPP, pid,
			"its C library has no room for a thread's data (pthread_key_create(3))");
	case -EEXIST:
		return attach__refuse(
			error, err, pid,
			"the program has a malloc of its own, which passes its calls on");
	case -EILSEQ:
		return attach__refuse(
			error, err, pid,
			"the program has a malloc of its own, and its code is not as in its file");
	case -EUCLEAN:
		return attach__refuse(error, err, pid,
				      "an earlier measurement has found other functions in it");
	case -EFAULT:
		return attach__refuse(
			error, err, pid,
			"a part of its memory cannot be read or written, or the library failed in it");
	case -ENOSPC:
		return attach__refuse(
			error, err, pid,
			"the program has a malloc of its own, and no room for the library "
			"near its code");
	case -EAGAIN:
	case -EBUSY:
		return attach__refuse(
			error, err, pid,
			"whenever allocprof looked it was stopped (SIGSTOP), waited for a child of "
			"vfork(2), or its dynamic linker was at work");
	case -ENOEXEC:
		return attach__refuse(
			error, err, pid,
			"whenever allocprof looked, each of its threads was in the processor's "
			"streaming mode (SME), in which it can run no other code");
	case -ETIME:
		return attach__refuse(
			error, err, pid,
			"its threads did not all stop within the time that --stop-limit allows");
	case -ETIMEDOUT:
		return attach__refuse(error, err, pid,
				      "a thread did not stop, or the library did not return");
	}
	return attach__refuse(error, err, pid, strerror(-err));
}
