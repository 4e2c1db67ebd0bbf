// SPDX-License-Identifier: GPL-3.0-or-later
/* Has a worker without privileges search the memory of processes for pointers, and keeps what it
 * has found. */
#include "reach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "reach_roots.h"
#include "worker.h"

/* How long a search may take; the process stands still meanwhile. */
#define TIMEOUT_MS (600 * 1000)
/* Their numbers have to fit into 31 bits. */
#define MOST_BLOCKS (1UL << 30)

struct reach *reach__new(void)
{
	return calloc(1, sizeof(struct reach));
}

void reach_process__release(struct reach_process *process)
{
	reach_blocks__release(&process->blocks);
	free(process->classes);
	reach_ranges__release(&process->own);
	*process = (struct reach_process){ 0 };
}

void reach__clear(struct reach *reach)
{
	for (size_t i = 0; i < reach->n; i++)
		reach_process__release(&reach->processes[i]);
	reach->n = 0;
}

void reach__free(struct reach *reach)
{
	if (!reach)
		return;
	reach__clear(reach);
	free(reach->processes);
	free(reach);
}

struct search {
	const struct reach_process *process;
	struct reach_roots roots;
};

/* Runs in the worker, which has the blocks and roots from the fork. */
static int serve_search(struct worker_call *call)
{
	const struct search *search = call->context;
	const struct reach_blocks *blocks = &search->process->blocks;
	_cleanup_(free_ptr) __u8 *classes = malloc(blocks->n + 1);
	struct reach_figures figures;
	int err;

	if (!classes)
		return -ENOMEM;
	if (call->n_fds != 2)
		return -EINVAL;
	err = reach_scan__run(blocks, &search->roots, call->fds[0], call->fds[1], classes,
			      &figures);
	if (err)
		return err;
	wire__put_bytes(&call->reply, &figures, sizeof(figures));
	wire__put_bytes(&call->reply, classes, blocks->n);
	return 0;
}

static int take_reply(struct reach_process *process, struct wire_reader *reply)
{
	size_t n = process->blocks.n;

	const void *figures = wire__get_bytes(reply, sizeof(process->figures));
	const __u8 *classes = wire__get_bytes(reply, n);

	if (!wire__is_read(reply))
		return -EPROTO;
	for (size_t i = 0; i < n; i++)
		if (classes[i] == REACH_UNKNOWN || classes[i] >= REACH_CLASSES)
			return -EPROTO;
	memcpy(&process->figures, figures, sizeof(process->figures));
	memcpy(process->classes, classes, n);
	return 0;
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int call_worker(struct reach_process *process, struct search *search)
{
	const struct worker_options options = {
		.name = "allocprof-reach",
		.serve = serve_search,
		.context = search,
		.opens_nothing = true,
		.timeout_ms = TIMEOUT_MS,
		.memory_bytes = (1UL << 30) + 8 * process->blocks.n,
		.max_reply = sizeof(process->figures) + process->blocks.n,
	};
	_cleanup_(close_fd) int memory = open_of(process->pid, "mem");
	_cleanup_(close_fd) int pagemap = open_of(process->pid, "pagemap");
	struct worker *worker = worker__new(&options);
	struct wire_writer request = { 0 };
	struct wire_reader reply;
	int err = memory < 0 ? memory : pagemap < 0 ? pagemap : worker ? 0 : -ENOMEM;

	wire__put_u32(&request, 0);
	if (!err)
		err = worker__call(worker, &request, (int[]){ memory, pagemap }, 2, &reply)
			      ?: take_reply(process, &reply);
	if (err && worker && worker__has_failed(worker))
		snprintf(process->why, sizeof(process->why), "the process that read it %.100s",
			 worker__problem(worker));
	wire__release(&request);
	worker__free(worker);
	return err;
}

static int search(struct reach_process *process, const pid_t *tids, size_t n_tids)
{
	struct search search = { .process = process };
	int err = process->blocks.n > MOST_BLOCKS ? -E2BIG : reach_blocks__sort(&process->blocks);

	if (!err)
		err = reach_roots__read(process->pid, tids, n_tids, &process->own, &search.roots);
	if (err)
		return err;
	process->classes = calloc(process->blocks.n + 1, 1);
	err = process->classes ? call_worker(process, &search) : -ENOMEM;
	reach_roots__release(&search.roots);
	return err;
}

static int add_process(struct reach *reach, const struct reach_process *process)
{
	if (array__reserve(&reach->processes, &reach->room, reach->n + 1,
			   sizeof(*reach->processes)))
		return -ENOMEM;
	reach->processes[reach->n++] = *process;
	return 0;
}

int reach__search(struct reach *reach, struct reach_process *process, const pid_t *tids,
		  size_t n_tids)
{
	struct reach_process none = { .pid = process->pid };
	int err = search(process, tids, n_tids);

	if (!err)
		err = add_process(reach, process);
	if (!err)
		return 0;
	memcpy(none.why, process->why, sizeof(none.why));
	reach_process__release(process);
	if (err == -ENOMEM)
		return err;
	return reach__refuse(reach, none.pid, none.why[0] ? none.why : strerror(-err));
}

int reach__refuse(struct reach *reach, pid_t pid, const char *why)
{
	struct reach_process process = { .pid = pid };

	snprintf(process.why, sizeof(process.why), "%s", why);
	return add_process(reach, &process);
}

bool reach__has(const struct reach *reach, pid_t pid)
{
	for (size_t i = 0; i < reach->n; i++)
		if (reach->processes[i].pid == pid)
			return true;
	return false;
}

enum reach_class reach__class(const struct reach *reach, const void *owner, __u32 space,
			      __u64 address)
{
	for (size_t i = 0; i < reach->n; i++) {
		const struct reach_process *process = &reach->processes[i];
		const __u64 *begins = process->blocks.begins;
		size_t at;

		if (process->owner != owner || process->space != space)
			continue;
		at = ARRAY_LOWER_BOUND(process->blocks.n, k, begins[k] < address);
		if (at < process->blocks.n && begins[at] == address)
			return process->classes[at];
	}
	return REACH_UNKNOWN;
}
