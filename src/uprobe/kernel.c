// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "array.h"
#include "attachment.h"
#include "cleanup.h"
#include "confinement.h"
#include "error.h"
#include "kernel_types.h"
#include "processor_abi.h"
#include "tracepoints.h"
#include "user.h"

static bool has_capability(const struct __user_cap_data_struct *data, int capability)
{
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

static void find_missing_capabilities(char *missing, size_t size)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	static const struct {
		int capability;
		const char *name;
		bool sys_admin_will_do;
	} needed[] = {
		{ CAP_BPF, "CAP_BPF", true },
		{ CAP_PERFMON, "CAP_PERFMON", true },
		/* Needed to open files that another user's process has mapped. */
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false },
	};
	size_t len = 0;

	missing[0] = '\0';
	if (syscall(SYS_capget, &header, data))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		if (has_capability(data, needed[i].capability))
			continue;
		/* Here processes that the user could not trace are not followed, so the capability
		 * is not needed. */
		if (needed[i].capability == CAP_SYS_PTRACE && borrowed__is_any())
			continue;
		if (needed[i].sys_admin_will_do && has_capability(data, CAP_SYS_ADMIN))
			continue;
		len += snprintf(missing + len, size - len, "%s%s", len ? ", " : "", needed[i].name);
	}
}

/* Makes the calls that a filter may forbid, with arguments that need no privileges: only whether the filter acts
 * matters. */
static void make_calls(void)
{
	syscall(SYS_bpf, -1, NULL, 0);
	syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0);
	syscall(SYS_fsopen, NULL, -1);
}

static bool bpf_works(void)
{
	_cleanup_(close_fd) int fd = -1;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe_bpf", 4, 4, 1, NULL);
	return fd >= 0;
}

/* Returns whether fentry works for @function: not every kernel with BPF supports it
 * (CONFIG_FUNCTION_TRACER, and calls from traced functions to a program, which arm64 has since Linux
 * 6.4). Loading a program is proof enough where there are such calls; if it were attached, detaching
 * it would wait for all tasks. */
static bool fentry_works(const struct kernel_types *types, const char *function)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	__u32 id = kernel_types__function(types, function);
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = id);
	const char *needed = AP_FENTRY_FUNCTION;
	_cleanup_(close_fd) int program = -1;

	if (!id || (needed && !kernel_types__function(types, needed)))
		return false;
	program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "probe_fentry", "GPL", instructions, 2,
				&options);
	return program >= 0;
}

/* Returns whether the process still has its memory at the exit tracepoint: the kernel moved
 * sched_process_exit before the release of the mm in the release that gave it a second parameter. */
static bool exit_tracepoints_show_memory(const struct kernel_types *types)
{
	return kernel_types__tracepoint_parameters(types, "sched_process_exit") >= 2 &&
	       kernel_types__tracepoint_parameters(types, "sched_prepare_exec") >= 1;
}

/* Returns whether the kernel preempts programs at tracepoints, which only its version tells. */
static bool preempts_tracepoints(const char *release)
{
	return strtoul(release, NULL, 10) >= 7;
}

static void probe_types(struct kernel *kernel, const struct kernel_types *types)
{
	kernel->sleepable = sleepable__supported(types);
	kernel->mapping_hook = fentry_works(types, "perf_event_mmap");
	kernel->exit_tracepoints = exit_tracepoints_show_memory(types);
	kernel->exit_hook = kernel->mapping_hook && !kernel->exit_tracepoints &&
			    fentry_works(types, "exit_mm_release") &&
			    fentry_works(types, "exec_mm_release");
}

void kernel__probe(struct kernel *kernel, struct kernel_types **types)
{
	struct kernel_types *all;
	struct utsname uts;

	if (types)
		*types = NULL;
	memset(kernel, 0, sizeof(*kernel));
	if (!uname(&uts))
		snprintf(kernel->release, sizeof(kernel->release), "%s", uts.release);
	kernel->preempts = preempts_tracepoints(kernel->release);
	find_missing_capabilities(kernel->missing_capabilities,
				  sizeof(kernel->missing_capabilities));
	kernel->btf = !access("/sys/kernel/btf/vmlinux", R_OK);
	kernel->uprobe_pmu = !access("/sys/bus/event_source/devices/uprobe/type", R_OK);
	kernel->is_filtered = confinement__is_filtered() && !confinement__outlives(make_calls);
	kernel->bpf = !kernel->is_filtered && bpf_works();
	if (!kernel->bpf)
		return;
	kernel->perf_tracepoints = kernel->preempts && tracepoints__have_perf();
	kernel->uprobe_multi = uprobe_multi__supported(&kernel->uprobe_multi_pid);
	kernel->uprobe_session = uprobe_session__supported();
	if (!kernel->btf || kernel_types__open(&all))
		return;
	probe_types(kernel, all);
	if (types)
		*types = all;
	else
		kernel_types__free(all);
}

int kernel__require(const struct kernel *kernel, struct error *error)
{
	if (kernel->missing_capabilities[0])
		return error__set(error, -EPERM,
				  "recording needs %s, which this user lacks; run it as root (sudo "
				  "allocprof …)",
				  kernel->missing_capabilities);
	if (kernel->is_filtered || (!kernel->bpf && confinement__is_filtered()))
		return error__set(
			error, -EPERM,
			"a filter of system calls (seccomp) refuses bpf(2), perf_event_open(2) or "
			"fsopen(2), so that no uprobes can be set; let them pass (docker run "
			"--privileged; systemd: SystemCallFilter=@system-service @mount seccomp bpf "
			"perf_event_open), or let allocprof start the command with --engine=preload");
	if (!kernel->bpf)
		return error__set(
			error, -ENOSYS,
			"kernel %s refuses bpf(2); allocprof needs Linux 5.17 or newer with "
			"CONFIG_BPF_SYSCALL",
			kernel->release);
	if (!kernel->btf)
		return error__set(
			error, -EOPNOTSUPP,
			"kernel %s has no type information in /sys/kernel/btf/vmlinux; use a "
			"kernel built with CONFIG_DEBUG_INFO_BTF, as distributions' are",
			kernel->release);
	if (!kernel->uprobe_pmu && !kernel->uprobe_multi)
		return error__set(error, -EOPNOTSUPP,
				  "kernel %s has no user-space probes; use one built with "
				  "CONFIG_UPROBE_EVENTS",
				  kernel->release);
	return 0;
}
