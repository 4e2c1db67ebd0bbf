// SPDX-License-Identifier: GPL-3.0-or-later
/* Attaches the programs that count page faults to the kernel's events and functions. */
#include "faults.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Must come before the skeleton, which uses its types. */
#include "event_abi.h"

#include "abi.h"
#include "allocator.h"
#include "allocprof.skel.h"
#include "error.h"
#include "interface.h"
#include "mappings.h"

struct faults {
	struct bpf_link *kernel; /* of the faults without an event; NULL: the kernel has no fexit */
	struct bpf_link **events; /* one for each kind of fault and processor */
	size_t n_events;
};

void faults__choose(struct allocprof_bpf *skeleton, bool wanted, bool stacks, bool fexit)
{
	bpf_program__set_autoload(skeleton->progs.fault_count, wanted && !stacks);
	bpf_program__set_autoload(skeleton->progs.fault_record, wanted && stacks);
	bpf_program__set_autoload(skeleton->progs.kernel_fault_count, wanted && fexit && !stacks);
	bpf_program__set_autoload(skeleton->progs.kernel_fault_record, wanted && fexit && stacks);
	bpf_program__set_autoload(skeleton->progs.look_at_faults, wanted);
}

/* The kernel never throttles an event that is counted one by one: it calls the program for each
 * fault (perf_swevent_overflow()), whatever perf_event_max_sample_rate says. */
static int open_event(int kind, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = kind == 0 ? PERF_COUNT_SW_PAGE_FAULTS_MIN : PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		.sample_period = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int attach_event(struct faults *faults, const struct bpf_program *program, int kind, int cpu)
{
	LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = kind);
	struct bpf_link *link;
	int fd = open_event(kind, cpu);

	/* The processor is offline. What happens there if it comes online counts as unseen. */
	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return fd;
	link = bpf_program__attach_perf_event_opts(program, fd, &options);
	if (!link) {
		int err = -errno;

		close(fd);
		return err;
	}
	faults->events[faults->n_events++] = link;
	return 0;
}

static int attach_events(struct faults *faults, const struct bpf_program *program)
{
	int n_cpus = libbpf_num_possible_cpus(), err = n_cpus < 0 ? n_cpus : 0;

	if (err)
		return err;
	faults->events = calloc((size_t)n_cpus * AP_FAULT_FUNCTIONS, sizeof(*faults->events));
	if (!faults->events)
		return -ENOMEM;
	for (int cpu = 0; cpu < n_cpus && !err; cpu++)
		for (int kind = 0; kind < AP_FAULT_FUNCTIONS && !err; kind++)
			err = attach_event(faults, program, kind, cpu);
	return err;
}

int faults__attach(struct allocprof_bpf *skeleton, struct faults **out, struct error *error)
{
	const bool stacks = skeleton->rodata->config.stacks;
	const struct bpf_program *program =
		stacks ? skeleton->progs.fault_record : skeleton->progs.fault_count;
	const struct bpf_program *kernel =
		stacks ? skeleton->progs.kernel_fault_record : skeleton->progs.kernel_fault_count;
	struct faults *faults = calloc(1, sizeof(*faults));
	int err = faults ? attach_events(faults, program) : -ENOMEM;

	if (err) {
		faults__free(faults);
		return error__set(error, err, "cannot count page faults (%s): %s",
				  bpf_program__name(program), strerror(-err));
	}
	/* Without it these faults count as unseen. */
	if (bpf_program__autoload(kernel))
		faults->kernel = bpf_program__attach_trace(kernel);
	*out = faults;
	return 0;
}

void faults__free(struct faults *faults)
{
	if (!faults)
		return;
	bpf_link__destroy(faults->kernel);
	for (size_t i = 0; i < faults->n_events; i++)
		bpf_link__destroy(faults->events[i]);
	free(faults->events);
	free(faults);
}

struct allocator *faults__allocator(void)
{
	static const struct interface_function interfaces[AP_FAULT_FUNCTIONS] = {
		{ .name = "minor-fault", .function = AP_MINOR_FAULT },
		{ .name = "major-fault", .function = AP_MAJOR_FAULT },
	};

	return kernel_allocator__new(AP_MINOR_FAULT, interfaces, AP_FAULT_FUNCTIONS);
}
