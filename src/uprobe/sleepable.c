// SPDX-License-Identifier: GPL-3.0-or-later
#include "sleepable.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "array.h"
#include "cleanup.h"
#include "kernel_types.h"

/* libbpf's callback has no context but what is the same for all objects. */
static _Thread_local const struct sleepable *used;

void sleepable__find(struct sleepable *sleepable, const struct kernel_types *types)
{
	sleepable->lock = kernel_types__function(types, "bpf_rcu_read_lock");
	sleepable->unlock = kernel_types__function(types, "bpf_rcu_read_unlock");
}

/* Replaces the numbers that stand for the functions. */
static void set_functions(const struct sleepable *sleepable, struct bpf_insn *instructions,
			  size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bpf_insn *call = &instructions[i];

		if (call->code != (BPF_JMP | BPF_CALL) || call->src_reg ||
		    (call->imm != AP_CALL_RCU_READ_LOCK && call->imm != AP_CALL_RCU_READ_UNLOCK))
			continue;
		call->src_reg = BPF_PSEUDO_KFUNC_CALL;
		call->imm =
			call->imm == AP_CALL_RCU_READ_LOCK ? sleepable->lock : sleepable->unlock;
	}
}

/*
 * Linux 6.2 has the functions. Since 6.9 the lock may be held while a function of the program is called, which has what else
 * is needed.
 */
bool sleepable__supported(const struct kernel_types *types)
{
	struct bpf_insn instructions[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = AP_CALL_RCU_READ_LOCK },
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 3 },
		{ .code = BPF_JMP | BPF_CALL, .imm = AP_CALL_RCU_READ_UNLOCK },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
		/* The function. */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_SLEEPABLE);
	_cleanup_(close_fd) int program = -1;
	struct sleepable sleepable;

	sleepable__find(&sleepable, types);
	if (!sleepable.lock || !sleepable.unlock)
		return false;
	set_functions(&sleepable, instructions, ARRAY_SIZE(instructions));
	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "probe_sleepable", "GPL", instructions,
				ARRAY_SIZE(instructions), &options);
	return program >= 0;
}

/* libbpf calls it when it has appended the functions that the program calls. */
static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *options, long cookie)
{
	_cleanup_(free_ptr) struct bpf_insn *instructions = NULL;
	size_t n = bpf_program__insn_cnt(program);

	if (!used)
		return 0;
	instructions = malloc(n * sizeof(*instructions));
	if (!instructions)
		return -ENOMEM;
	memcpy(instructions, bpf_program__insns(program), n * sizeof(*instructions));
	set_functions(used, instructions, n);
	options->prog_flags |= BPF_F_SLEEPABLE;
	return bpf_program__set_insns(program, instructions, n);
}

static int registered;

static void register_section(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, options, .prog_prepare_load_fn = prepare);

	registered = libbpf_register_prog_handler("sleepable", BPF_PROG_TYPE_KPROBE, 0, &options);
}

int sleepable__take_over(void)
{
	/* Never taken back, as in tracing.c. */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_section);
	return registered < 0 ? registered : 0;
}

void sleepable__use(const struct sleepable *sleepable)
{
	used = sleepable;
}
