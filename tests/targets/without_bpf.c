// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * without_bpf CALL ERRNO CMD [ARGS...]: executes CMD under a seccomp filter in which a system call,
 * "bpf" or "perf", fails with the number ERRNO, as in a container or on a kernel without it. Exit
 * status is CMD's; 2 where this cannot be done.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "raw.h"

int main(int argc, char **argv)
{
	unsigned int number = argc > 1 && !strcmp(argv[1], "perf") ? SYS_perf_event_open : SYS_bpf;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO | number_or(argc > 2 ? argv[2] : NULL, 1)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (argc < 4 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 2;
	execvp(argv[3], argv + 3);
	return 2;
}
