// SPDX-License-Identifier: GPL-3.0-or-later
#include "attachment.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "error.h"
#include "translator.h"

struct attachment {
	int multi_fd;			  /* -1: one link per probe */
	void (*meanwhile)(void *context); /* as in struct probe_program, or NULL */
	void *context;
	__u32 n_links;
	struct single_link {
		struct bpf_link *link;
		pthread_t closer;
		bool has_closer;
	} links[];
};

static int attach_single(const struct attachment_request *request, const char *path,
			 struct attachment *attachment)
{
	for (__u32 i = 0; i < request->n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = request->cookies[i],
			    .retprobe = request->kind == UPROBE_RETURN,
			    .ref_ctr_offset = request->semaphores ? request->semaphores[i] : 0);
		struct bpf_link *link = bpf_program__attach_uprobe_opts(
			request->run.program, request->run.pid ? request->run.pid : -1, path,
			request->offsets[i], &options);

		if (!link)
			return -errno;
		attachment->links[attachment->n_links++].link = link;
		if (attachment->meanwhile)
			attachment->meanwhile(attachment->context);
	}
	return 0;
}

int attachment__new(const struct attachment_request *request, struct attachment **out,
		    struct error *error)
{
	struct attachment *attachment;
	char path[64];
	int err;

	if (!request->run.pid && !request->run.ends_translators) {
		err = translator__refuse_mapped(request->fd, request->path, error);
		if (err)
			return err;
	}
	attachment = calloc(1, sizeof(*attachment) + request->n * sizeof(attachment->links[0]));
	if (!attachment)
		return -ENOMEM;
	attachment->multi_fd = -1;
	attachment->meanwhile = request->run.meanwhile;
	attachment->context = request->run.context;
	/* Probes the file that was read, even if the path now names another one. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", request->fd);
	if (request->run.multi) {
		err = uprobe_multi__link(bpf_program__fd(request->run.program), request->kind, path,
					 request->offsets, request->cookies, request->semaphores,
					 request->n, request->run.pid);
		if (err >= 0) {
			attachment->multi_fd = err;
			err = 0;
		}
	} else {
		err = attach_single(request, path, attachment);
	}
	if (err) {
		attachment__free(attachment);
		if (err == -ESRCH)
			return error__set(error, err, "process %d ended while its probes were set",
					  request->run.pid);
		return error__set(error, err, "cannot set probes in %s: %s%s", request->path,
				  strerror(-err),
				  err == -EINVAL || err == -EIO
					  ? "; its file system may not support them (FUSE, network)"
					  : "");
	}
	*out = attachment;
	return 0;
}

static void *destroy_link(void *link)
{
	bpf_link__destroy(link);
	return NULL;
}

/* Time between two calls of meanwhile() while probes are removed. */
#define MEANWHILE_NS 50000000

static void await_closer(struct attachment *attachment, const struct single_link *link)
{
	struct timespec until;
	__u64 until_ns;

	do {
		if (attachment->meanwhile)
			attachment->meanwhile(attachment->context);
		until_ns = clock__now_ns() + MEANWHILE_NS;
		until = (struct timespec){ until_ns / NS_PER_S, until_ns % NS_PER_S };
	} while (pthread_clockjoin_np(link->closer, NULL, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
}

void attachment__leave(struct attachment *attachment)
{
	if (attachment && attachment->multi_fd >= 0) {
		uprobe_multi__leave(attachment->multi_fd);
		attachment->multi_fd = -1;
	}
	attachment__free(attachment);
}

void attachment__free(struct attachment *attachment)
{
	if (!attachment)
		return;
	if (attachment->multi_fd >= 0)
		close(attachment->multi_fd);
	/* Each close waits for a grace period, about 0.1 s, so they run in parallel. */
	for (__u32 i = 0; i < attachment->n_links; i++) {
		struct single_link *link = &attachment->links[i];

		link->has_closer = !pthread_create(&link->closer, NULL, destroy_link, link->link);
		if (!link->has_closer)
			destroy_link(link->link);
	}
	for (__u32 i = 0; i < attachment->n_links; i++)
		if (attachment->links[i].has_closer)
			await_closer(attachment, &attachment->links[i]);
	free(attachment);
}
