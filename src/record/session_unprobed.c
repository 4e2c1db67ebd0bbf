// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "allocprof.skel.h"
#include "array.h"
#include "error.h"
#include "record_abi.h"

bool session__finds_unprobed(const struct session *session)
{
	const __u64 allocating = AP_ALL_FUNCTIONS & ~AP_FREEING;

	return (session->kernel.exit_tracepoints || session->kernel.exit_hook) &&
	       (session->options.functions & allocating) == allocating;
}

/* Selects the programs to load. */
void session__choose_unprobed(struct session *session)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	bool finds = session__finds_unprobed(session), hooks = finds && session->kernel.exit_hook;

	bpf_program__set_autoload(skeleton->progs.on_prepare_exec, finds && !hooks);
	bpf_program__set_autoload(skeleton->progs.on_exit_memory, hooks);
	bpf_program__set_autoload(skeleton->progs.on_exec_memory, hooks);
	bpf_program__set_autoload(skeleton->progs.look_at_processes, finds);
}

int session__attach_unprobed(struct session *session, struct error *error)
{
	struct allocprof_bpf *skeleton = session->skeleton;
	struct {
		struct bpf_program *program;
		struct bpf_link **link;
	} hooks[] = {
		{ skeleton->progs.on_prepare_exec, &skeleton->links.on_prepare_exec },
		{ skeleton->progs.on_exit_memory, &skeleton->links.on_exit_memory },
		{ skeleton->progs.on_exec_memory, &skeleton->links.on_exec_memory },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (!bpf_program__autoload(hooks[i].program))
			continue;
		*hooks[i].link = bpf_program__attach(hooks[i].program);
		if (!*hooks[i].link)
			return error__set(
				error, -errno,
				"cannot trace when processes release their memory (%s): %s",
				bpf_program__name(hooks[i].program), strerror(errno));
	}
	return 0;
}

/* Runs the iterator over processes that still run. 0 or a negative errno. */
static int look_at_processes(struct session *session)
{
	struct bpf_link *link =
		bpf_program__attach_iter(session->skeleton->progs.look_at_processes, NULL);
	char none[64];
	ssize_t n;
	int fd, err = 0;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = fd;
	} else {
		while ((n = read(fd, none, sizeof(none))) > 0)
			;
		err = n < 0 ? -errno : 0;
		close(fd);
	}
	bpf_link__destroy(link);
	return err;
}

void session__look_for_unprobed(struct session *session)
{
	if (session__finds_unprobed(session) && look_at_processes(session))
		session->counters->unread++;
}

int session__handle_unprobed(struct session *session, const void *record, size_t size)
{
	const struct ap_unprobed_record *unprobed = record;

	if (size < sizeof(*unprobed) || unprobed->type != AP_RECORD_UNPROBED)
		return 0;
	return unprobed__add(&session->unprobed, unprobed);
}
