// SPDX-License-Identifier: GPL-3.0-or-later
#include "tracing.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "kernel_types.h"

/* libbpf's callback has no context but what is the same for all objects. */
static _Thread_local const struct kernel_types *used_types;

static __u32 find_target(enum bpf_attach_type type, const char *name)
{
	char iterator[128];

	switch (type) {
	case BPF_TRACE_RAW_TP:
		return kernel_types__tracepoint(used_types, name);
	case BPF_TRACE_FENTRY:
		return kernel_types__function(used_types, name);
	case BPF_TRACE_ITER:
		snprintf(iterator, sizeof(iterator), "bpf_iter_%s", name);
		return kernel_types__function(used_types, iterator);
	default:
		return 0;
	}
}

/* libbpf reads the kernel's types if a program is of this type before it is loaded, so it becomes so only now. */
static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	const char *name = strchr(bpf_program__section_name(program), '/');

	if (used_types && name)
		options->attach_btf_id = find_target(options->expected_attach_type, name + 1);
	if (!options->attach_btf_id)
		return -ESRCH;
	return bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
}

static int registered;

static void register_sections(void)
{
	static const struct {
		const char *section;
		enum bpf_attach_type type;
	} sections[] = {
		{ "tp_btf/", BPF_TRACE_RAW_TP },
		{ "fentry/", BPF_TRACE_FENTRY },
		{ "iter/", BPF_TRACE_ITER },
	};
	LIBBPF_OPTS(libbpf_prog_handler_opts, options, .prog_prepare_load_fn = prepare);

	for (size_t i = 0; i < ARRAY_SIZE(sections) && registered >= 0; i++)
		registered = libbpf_register_prog_handler(sections[i].section,
							  BPF_PROG_TYPE_RAW_TRACEPOINT,
							  sections[i].type, &options);
}

int tracing__take_over(void)
{
	/* They are never taken back: with the last one libbpf 1.1 frees its list, and uses it again. */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_sections);
	return registered < 0 ? registered : 0;
}

void tracing__use(const struct kernel_types *types)
{
	used_types = types;
}
