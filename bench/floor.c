// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * floor stat|record|live COMMAND [ARGUMENT...]: runs COMMAND with an empty program at the sites that
 * `allocprof stat`, `record` or `record --live` would probe, in every process as they do. Nothing can
 * cost less than this. Exit status: the command's; 125, 126 and 127 as allocprof's.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi.h"
#include "attachment.h"
#include "error.h"
#include "floor.skel.h"
#include "kernel.h"
#include "parser.h"
#include "probes.h"
#include "target.h"
#include "user.h"

#define EVERY_FUNCTION AP_ALL_FUNCTIONS

#define STATUS_OURS	  125
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND  127

static int load(const struct kernel *kernel, struct floor_bpf **out, struct error *error)
{
	struct floor_bpf *skeleton;
	int err;

	skeleton = floor_bpf__open();
	if (!skeleton)
		return error__set(error, -errno, "cannot read the program: %s", strerror(errno));
	if (kernel->uprobe_multi)
		bpf_program__set_expected_attach_type(skeleton->progs.do_nothing,
						      ATTACH_TYPE_UPROBE_MULTI);
	if (kernel->uprobe_session)
		bpf_program__set_expected_attach_type(skeleton->progs.do_nothing_twice,
						      ATTACH_TYPE_UPROBE_SESSION);
	bpf_program__set_autoload(skeleton->progs.do_nothing_twice, kernel->uprobe_session);
	err = floor_bpf__load(skeleton);
	if (err) {
		floor_bpf__destroy(skeleton);
		return error__set(error, err, "cannot load the program: %s", strerror(-err));
	}
	*out = skeleton;
	return 0;
}

static int is_loaded(void *context, struct bpf_program **program, struct error *error)
{
	return 0;
}

/* The same roles as the session's, all empty. */
static void choose_programs(const struct floor_bpf *skeleton, const struct kernel *kernel,
			    bool live, struct probes_options *options)
{
	options->load_program = is_loaded;
	options->unknown_program = skeleton->progs.do_nothing;
	options->run.program = skeleton->progs.do_nothing;
	options->run.multi = kernel->uprobe_multi;
	options->sites_fd = bpf_map__fd(skeleton->maps.sites);
	options->internal_returns_fd = bpf_map__fd(skeleton->maps.internal_returns);
	if (!live)
		return;
	options->free_program = skeleton->progs.do_nothing;
	options->described_free_program = skeleton->progs.do_nothing;
	options->return_instruction_program = skeleton->progs.do_nothing;
	if (kernel->uprobe_session)
		options->session_program = skeleton->progs.do_nothing_twice;
	else
		options->return_program = skeleton->progs.do_nothing;
}

/* Probes are left to the exit of this program to remove: it follows at once. */
static int run(struct target *target, char *const argv[], __u64 functions, bool live,
	       struct error *error)
{
	struct probes_options options = { .functions = functions };
	struct target_inheritance inheritance = { 0 };
	struct probes *probes = NULL;
	struct floor_bpf *skeleton = NULL;
	struct kernel kernel;
	struct pollfd ended;
	int err;

	kernel__probe(&kernel, NULL);
	err = kernel__require(&kernel, error);
	if (!err)
		err = parser__new(&options.parser, error);
	if (!err)
		err = load(&kernel, &skeleton, error);
	if (err)
		return err;
	choose_programs(skeleton, &kernel, live, &options);
	getrlimit(RLIMIT_NOFILE, &inheritance.files);
	sigprocmask(SIG_SETMASK, NULL, &inheritance.signal_mask);
	err = target__hold(target, argv, &inheritance, error);
	if (!err)
		err = probes__new(&options, &probes);
	if (!err)
		err = probes__add_command(probes, argv, error);
	if (!err)
		err = target__go(target, argv[0], error);
	if (err)
		return err;
	ended = (struct pollfd){ .fd = target->pidfd, .events = POLLIN };
	while (!target__has_ended(target))
		poll(&ended, 1, -1);
	return 0;
}

static bool is_way(const char *word, bool *live, __u64 *functions)
{
	*live = !strcmp(word, "live");
	*functions = EVERY_FUNCTION;
	if (!strcmp(word, "record"))
		*functions &= ~(1ULL << AP_FREE);
	return *live || !strcmp(word, "record") || !strcmp(word, "stat");
}

int main(int argc, char **argv)
{
	struct error error = { 0 };
	struct target target;
	__u64 functions;
	bool live;
	int err;

	if (argc < 3 || !is_way(argv[1], &live, &functions)) {
		fprintf(stderr, "usage: floor stat|record|live COMMAND [ARGUMENT...]\n");
		return STATUS_OURS;
	}
	libbpf_set_print(NULL);
	err = run(&target, argv + 2, functions, live, &error);
	if (!err)
		return target__exit_status(&target);
	fprintf(stderr, "floor: %s\n", error.text[0] ? error.text : strerror(-err));
	if (err == -ENOENT)
		return STATUS_NOT_FOUND;
	return err == -EACCES || err == -ENOEXEC ? STATUS_CANNOT_RUN : STATUS_OURS;
}
