// SPDX-License-Identifier: GPL-3.0-or-later
#include "attachment.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "error.h"
#include "thread.h"
#include "translator.h"

/* The member link_create of union bpf_attr for uprobe_multi, Linux 6.6. */
struct link_create {
	__u32 prog_fd;
	__u32 target_fd;
	__u32 attach_type;
	__u32 flags;
	__u64 path;
	__u64 offsets;
	__u64 ref_ctr_offsets;
	__u64 cookies;
	__u32 n;
	__u32 multi_flags;
	__u32 pid;
	__u32 pad;
};

/* The member of union bpf_attr for BPF_OBJ_PIN, Linux 6.5. */
struct object_pin {
	__u64 path;
	__u32 bpf_fd;
	__u32 file_flags;
	__s32 path_fd;
	__u32 pad; /* the kernel refuses anything but 0 */
};

/* BPF_F_PATH_FD: path is relative to path_fd. */
#define PIN_PATH_FD (1U << 14)

/* BPF_F_UPROBE_MULTI_RETURN */
#define MULTI_RETURN 1

/* The attach type to load the link's programs with. */
static int uprobe_multi__attach_type(enum uprobe_kind kind)
{
	return kind == UPROBE_SESSION ? ATTACH_TYPE_UPROBE_SESSION : ATTACH_TYPE_UPROBE_MULTI;
}

/*
 * Creates a link with @n probes at @offsets in the file at @path, with @cookies and, unless it is
 * NULL, @semaphores (file offsets, 0: none), for the process @pid, or all if it is 0. The program
 * must have been loaded with the kind's attach type. Returns a file descriptor, whose close
 * detaches the probes, or a negative errno.
 */
static int uprobe_multi__link(int prog_fd, enum uprobe_kind kind, const char *path,
			      const __u64 *offsets, const __u64 *cookies, const __u64 *semaphores,
			      __u32 n, pid_t pid)
{
	struct link_create attr = {
		.prog_fd = prog_fd,
		.attach_type = uprobe_multi__attach_type(kind),
		.multi_flags = kind == UPROBE_RETURN ? MULTI_RETURN : 0,
		.path = (__u64)(uintptr_t)path,
		.offsets = (__u64)(uintptr_t)offsets,
		.ref_ctr_offsets = (__u64)(uintptr_t)semaphores,
		.cookies = (__u64)(uintptr_t)cookies,
		.n = n,
		.pid = pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* Makes a BPF file system that nobody else sees, and that ends when it is closed. Returns a
 * negative number if it cannot. */
static int mount_bpf(void)
{
	_cleanup_(close_fd) int context = fsopen("bpf", FSOPEN_CLOEXEC);

	if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	return fsmount(context, FSMOUNT_CLOEXEC, 0);
}

/*
 * Closes the link. Where the kernel can, it detaches the probes by itself: their programs may run
 * for a few more milliseconds, but this function does not wait for the grace periods that close(2)
 * waits for.
 */
static void uprobe_multi__leave(int link_fd)
{
	/* A worker of the kernel releases a link if its file name is the last reference to it. */
	_cleanup_(close_fd) int mount = mount_bpf();
	struct object_pin attr = {
		.path = (__u64)(uintptr_t) "probes",
		.bpf_fd = link_fd,
		.file_flags = PIN_PATH_FD,
		.path_fd = mount,
	};

	if (mount >= 0)
		syscall(SYS_bpf, BPF_OBJ_PIN, &attr, sizeof(attr));
	/* The descriptor must be closed before the mount. If the link has no file name, closing it
	 * waits for the release. */
	close(link_fd);
}

/* Returns whether the kernel supports links of @kind; sets *@prog to a program for them. */
static bool knows(enum uprobe_kind kind, int *prog)
{
	const struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = uprobe_multi__attach_type(kind));
	__u64 offset = 0, cookie = 0;

	*prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "probe_multi", "GPL", instructions, 2,
			      &options);
	/* A directory cannot be probed, but a kernel that does not support the link refuses it
	 * before it checks that. */
	return *prog >= 0 &&
	       uprobe_multi__link(*prog, kind, "/", &offset, &cookie, NULL, 1, 0) == -EBADF;
}

bool uprobe_session__supported(void)
{
	_cleanup_(close_fd) int prog = -1;

	return knows(UPROBE_SESSION, &prog);
}

bool uprobe_multi__supported(bool *pid_works)
{
	_cleanup_(close_fd) int prog = -1;
	__u64 offset = 0, cookie = 0;
	int err;

	*pid_works = false;
	if (!knows(UPROBE_ENTRY, &prog))
		return false;
	/* Kernels with the fixed pid filter (Linux 6.10) check for a negative pid first. */
	err = uprobe_multi__link(prog, UPROBE_ENTRY, "/proc/self/exe", &offset, &cookie, NULL, 1,
				 -1);
	*pid_works = err == -EINVAL;
	return true;
}

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

		link->has_closer = thread__start(&link->closer, destroy_link, link->link);
		if (!link->has_closer)
			destroy_link(link->link);
	}
	for (__u32 i = 0; i < attachment->n_links; i++)
		if (attachment->links[i].has_closer)
			await_closer(attachment, &attachment->links[i]);
	free(attachment);
}
