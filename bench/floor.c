// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * floor stat|record COMMAND [ARGUMENT...]: runs COMMAND with an empty program at the sites that
 * `allocprof stat` or `allocprof record` would probe, in every process as they do. Nothing can cost
 * less than this. Exit status: the command's; 125, 126 and 127 as allocprof's.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "allocator.h"
#include "attachment.h"
#include "cleanup.h"
#include "error.h"
#include "floor.skel.h"
#include "kernel.h"
#include "probes.h"
#include "target.h"
#include "uprobe_multi.h"

#define EVERY_FUNCTION ((1U << AP_FUNCTIONS) - 1)

#define STATUS_OURS	  125
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND  127

static int load(bool multi, struct floor_bpf **out, struct error *error)
{
	struct floor_bpf *skeleton;
	int err;

	skeleton = floor_bpf__open();
	if (!skeleton)
		return error__set(error, -errno, "cannot read the program: %s", strerror(errno));
	if (multi)
		bpf_program__set_expected_attach_type(skeleton->progs.do_nothing,
						      ATTACH_TYPE_UPROBE_MULTI);
	err = floor_bpf__load(skeleton);
	if (err) {
		floor_bpf__destroy(skeleton);
		return error__set(error, err, "cannot load the program: %s", strerror(-err));
	}
	*out = skeleton;
	return 0;
}

static int attach_allocator(const struct probes *probes, const struct probed_allocator *entry,
			    struct bpf_program *program, bool multi, struct attachment **out,
			    struct error *error)
{
	_cleanup_(close_fd) int fd = open(entry->path, O_RDONLY | O_CLOEXEC);
	__u64 offsets[AP_FUNCTIONS], cookies[AP_FUNCTIONS] = { 0 };
	struct attachment_request request = {
		.program = program,
		.multi = multi,
		.fd = fd,
		.path = entry->path,
		.offsets = offsets,
		.cookies = cookies,
	};

	if (fd < 0)
		return error__set(error, -errno, "cannot open %s: %s", entry->path,
				  strerror(errno));
	for (size_t i = 0; entry->allocator && i < entry->allocator->n_sites; i++)
		if (probes__uses(probes, &entry->allocator->sites[i]))
			offsets[request.n++] = entry->allocator->sites[i].probe_offset;
	return request.n ? attachment__new(&request, out, error) : 0;
}

/* Probes are left to the exit of this program to remove: it follows at once. */
static int attach_all(const struct probes *probes, struct bpf_program *program, bool multi,
		      struct error *error)
{
	const struct probed_allocator *list;
	struct attachment *attachment;
	size_t n;
	int err = 0;

	list = probes__list(probes, &n);
	for (size_t i = 0; i < n && !err; i++)
		err = attach_allocator(probes, &list[i], program, multi, &attachment, error);
	return err;
}

static int run(struct target *target, char *const argv[], __u32 functions, struct error *error)
{
	struct probes_options options = { .functions = functions };
	struct target_inheritance inheritance;
	struct probes *probes = NULL;
	struct floor_bpf *skeleton = NULL;
	struct kernel kernel;
	struct pollfd ended;
	int err;

	kernel__probe(&kernel);
	err = kernel__require(&kernel, error);
	if (!err)
		err = load(kernel.uprobe_multi, &skeleton, error);
	if (err)
		return err;
	getrlimit(RLIMIT_NOFILE, &inheritance.files);
	sigprocmask(SIG_SETMASK, NULL, &inheritance.signal_mask);
	err = target__hold(target, argv, &inheritance, error);
	if (!err)
		err = probes__new(&options, &probes);
	if (!err)
		err = probes__add_command(probes, argv, error);
	if (!err)
		err = attach_all(probes, skeleton->progs.do_nothing, kernel.uprobe_multi, error);
	if (!err)
		err = target__go(target, argv[0], error);
	if (err)
		return err;
	ended = (struct pollfd){ .fd = target->pidfd, .events = POLLIN };
	while (!target__has_ended(target))
		poll(&ended, 1, -1);
	return 0;
}

int main(int argc, char **argv)
{
	struct error error = { 0 };
	struct target target;
	__u32 functions;
	int err;

	if (argc > 2 && !strcmp(argv[1], "stat")) {
		functions = EVERY_FUNCTION;
	} else if (argc > 2 && !strcmp(argv[1], "record")) {
		functions = EVERY_FUNCTION & ~(1U << AP_FREE);
	} else {
		fprintf(stderr, "usage: floor stat|record COMMAND [ARGUMENT...]\n");
		return STATUS_OURS;
	}
	libbpf_set_print(NULL);
	err = run(&target, argv + 2, functions, &error);
	if (!err)
		return target__exit_status(&target);
	fprintf(stderr, "floor: %s\n", error.text[0] ? error.text : strerror(-err));
	if (err == -ENOENT)
		return STATUS_NOT_FOUND;
	return err == -EACCES || err == -ENOEXEC ? STATUS_CANNOT_RUN : STATUS_OURS;
}
