// SPDX-License-Identifier: GPL-3.0-or-later
/* Watches for programs that take memory from the kernel without hitting a probe (unprobed.h). */
#include "uprobe_internal.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "allocprof.skel.h"
#include "array.h"
#include "error.h"
#include "record_abi.h"
#include "tracepoints.h"

bool uprobe__finds_unprobed(const struct uprobe *uprobe)
{
	const __u64 allocating = AP_ALL_FUNCTIONS & ~AP_FREEING;

	return (uprobe->kernel.exit_tracepoints || uprobe->kernel.exit_hook) &&
	       (uprobe->options.functions & allocating) == allocating;
}

/* Selects the programs to load. */
void uprobe__choose_unprobed(struct uprobe *uprobe)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	bool finds = uprobe__finds_unprobed(uprobe), hooks = finds && uprobe->kernel.exit_hook;

	tracepoints__choose(skeleton, AP_TRACEPOINT_PREPARE_EXEC, finds && !hooks,
			    uprobe__is_preempted(uprobe));
	bpf_program__set_autoload(skeleton->progs.on_exit_memory, hooks);
	bpf_program__set_autoload(skeleton->progs.on_exec_memory, hooks);
	bpf_program__set_autoload(skeleton->progs.look_at_processes, finds);
}

int uprobe__attach_unprobed(struct uprobe *uprobe, struct error *error)
{
	struct allocprof_bpf *skeleton = uprobe->skeleton;
	struct {
		struct bpf_program *program;
		struct bpf_link **link;
	} hooks[] = {
		{ skeleton->progs.on_exit_memory, &skeleton->links.on_exit_memory },
		{ skeleton->progs.on_exec_memory, &skeleton->links.on_exec_memory },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (!bpf_program__autoload(hooks[i].program))
			continue;
		*hooks[i].link = bpf_program__attach_trace(hooks[i].program);
		if (!*hooks[i].link)
			return error__set(
				error, -errno,
				"cannot trace when processes release their memory (%s): %s",
				bpf_program__name(hooks[i].program), strerror(errno));
	}
	return 0;
}

void uprobe__look_for_unprobed(struct uprobe *uprobe)
{
	if (uprobe__finds_unprobed(uprobe) &&
	    uprobe__iterate(uprobe->skeleton->progs.look_at_processes))
		uprobe->counters->unread++;
}

int uprobe__handle_unprobed(struct uprobe *uprobe, const void *record, size_t size)
{
	const struct ap_unprobed_record *unprobed = record;

	if (size < sizeof(*unprobed) || unprobed->type != AP_RECORD_UNPROBED)
		return 0;
	return unprobed__add(&uprobe->unprobed, unprobed);
}
