// SPDX-License-Identifier: GPL-3.0-or-later
/* Maps the library, files for shared memory and copies of lists into a running process, by system calls of one of its threads. */
#include "attach_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "file.h"
#include "inside_abi.h"
#include "remote.h"

/*
 * Opens the descriptor @number of the process, if it is an empty file in memory without a name.
 * While one thread is stopped, another may have put a different file there, to which this process
 * may write and the other may not.
 */
static int open_file(pid_t pid, long number)
{
	_cleanup_(close_fd) int path_fd = -1;
	struct stat status;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%ld", pid, number);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	if (path_fd < 0 || fstat(path_fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_nlink || status.st_size)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Only files in memory have seals. */
	if (fcntl(fd, F_GET_SEALS) < 0) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Makes a file in memory in the process and opens it here. Returns this process's descriptor. */
static int make_file(pid_t pid, struct remote *remote, const char *name, long *number)
{
	__u64 at = remote__put(remote, name, strlen(name) + 1);
	int fd;

	*number = at ? remote__system_call(remote, SYS_memfd_create, at, MFD_CLOEXEC, 0, 0, 0, 0)
		     : -EFAULT;
	if (*number < 0)
		return *number;
	fd = open_file(pid, *number);
	if (fd < 0)
		remote__system_call(remote, SYS_close, *number, 0, 0, 0, 0, 0);
	return fd;
}

static int map_at(struct remote *remote, __u64 address, __u64 size, int protection, long fd,
		  __u64 offset)
{
	int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	long result =
		remote__system_call(remote, SYS_mmap, address, size, protection, flags, fd, offset);

	return result < 0 && result > -4096 ? result : 0;
}

static int map_segment(const struct mapped_library *library, struct remote *remote,
		       const Elf64_Phdr *segment, long fd)
{
	__u64 start = segment->p_vaddr & ~(PAGE - 1);
	__u64 file_end = segment->p_vaddr + segment->p_filesz;
	__u64 mapped_end = (file_end + PAGE - 1) & ~(PAGE - 1);
	__u64 end = (segment->p_vaddr + segment->p_memsz + PAGE - 1) & ~(PAGE - 1);
	int protection = (segment->p_flags & PF_R ? PROT_READ : 0) |
			 (segment->p_flags & PF_W ? PROT_WRITE : 0) |
			 (segment->p_flags & PF_X ? PROT_EXEC : 0);
	int err = map_at(remote, library->base + start, mapped_end - start, protection, fd,
			 segment->p_offset & ~(PAGE - 1));

	if (!err && end > mapped_end)
		err = map_at(remote, library->base + mapped_end, end - mapped_end, protection, -1,
			     0);
	return err;
}

/* Returns where the last segment ends in the file. What is behind it, such as section headers, is not
 * copied to the process: the rest of a page that the kernel maps is 0 then, as the data that is not
 * in the file has to be, also if this allocprof is killed at any moment. */
static size_t end_of_segments(const struct library_file *file)
{
	const Elf64_Phdr *segment;
	size_t end = 0;

	for (size_t i = 0; (segment = library_file__segment(file, i)); i++)
		if (segment->p_type == PT_LOAD && segment->p_offset + segment->p_filesz > end)
			end = segment->p_offset + segment->p_filesz;
	return end;
}

/* Has the thread map the library's segments that have @flags (PF_W, ...) anew. Returns 0 or a negative
 * errno. */
static int mapped_library__map_segments(const struct mapped_library *library, struct remote *remote,
					__u32 flags)
{
	const Elf64_Phdr *segment;
	long number;
	int fd = make_file(library->pid, remote, ATTACH_LIBRARY_NAME, &number), err;

	if (fd < 0)
		return fd;
	err = fd__write_all(fd, library->file->bytes, end_of_segments(library->file));
	for (size_t i = 0; !err && (segment = library_file__segment(library->file, i)); i++)
		if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags)
			err = map_segment(library, remote, segment, number);
	remote__system_call(remote, SYS_close, number, 0, 0, 0, 0, 0);
	close(fd);
	return err;
}

int mapped_library__map_data(const struct mapped_library *library, struct remote *remote)
{
	const struct library_file *file = library->file;
	__u64 at = library->base + file->stub_functions;
	_cleanup_(free_ptr) void *functions = malloc(file->stub_functions_bytes);
	int err;

	if (!functions)
		return -ENOMEM;
	err = process_memory__read(library->pid, at, functions, file->stub_functions_bytes);
	if (!err)
		err = mapped_library__map_segments(library, remote, PF_W);
	return err ? err
		   : process_memory__write(library->pid, at, functions, file->stub_functions_bytes);
}

int mapped_library__map(struct library_file *file, pid_t pid, struct remote *remote, __u64 *base)
{
	struct mapped_library library = { .file = file, .pid = pid };
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (*base ? MAP_FIXED_NOREPLACE : 0);
	long at = remote__system_call(remote, SYS_mmap, *base, file->memory_bytes, PROT_NONE, flags,
				      -1, 0);
	int err;

	if (at < 0 && at > -4096)
		return at;
	library.base = at;
	library_file__relocate(file, at);
	err = mapped_library__map_segments(&library, remote, 0);
	if (err)
		remote__system_call(remote, SYS_munmap, at, file->memory_bytes, 0, 0, 0, 0);
	else
		*base = at;
	return err;
}

int process__share_file(pid_t pid, struct remote *remote, const char *name, size_t size,
			int protection, __u64 *address)
{
	long number, result;
	int fd = make_file(pid, remote, name, &number);

	if (fd < 0)
		return fd;
	result = remote__system_call(remote, SYS_mmap, 0, size, protection, MAP_SHARED, number, 0);
	remote__system_call(remote, SYS_close, number, 0, 0, 0, 0, 0);
	if (result < 0 && result > -4096) {
		close(fd);
		return result;
	}
	*address = result;
	return fd;
}

/* What one recvmsg(2) needs and writes, as it lies in the process. */
struct receiving {
	struct msghdr header;
	struct iovec part;
	char byte;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

/* Returns whether the other end is the process's own, too: another thread may have closed the pair and got a
 * connection of this number to somebody else, who must not get the file. */
static bool is_own_connection(int socket, pid_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == pid;
}

/* Puts @fd into the socket @number of the process, one of a pair that it has made. */
static int send_file(pid_t pid, long number, int fd)
{
	_cleanup_(close_fd) int process = syscall(SYS_pidfd_open, pid, 0), socket = -1;
	char byte = 0;
	struct receiving sent = { .part = { &byte, sizeof(byte) } };
	struct cmsghdr *control = (struct cmsghdr *)sent.control;

	if (process < 0)
		return -errno;
	socket = syscall(SYS_pidfd_getfd, process, (int)number, 0);
	if (socket < 0)
		return -errno;
	if (!is_own_connection(socket, pid))
		return -EAGAIN;
	sent.header = (struct msghdr){
		.msg_iov = &sent.part,
		.msg_iovlen = 1,
		.msg_control = sent.control,
		.msg_controllen = sizeof(sent.control),
	};
	*control = (struct cmsghdr){ CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(control), &fd, sizeof(fd));
	return sendmsg(socket, &sent.header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

/* Has the thread take the file from its socket. Returns the process's descriptor of it, or a negative
 * errno. */
static long receive_file(pid_t pid, struct remote *remote, long number)
{
	struct receiving received = { 0 };
	__u64 at = remote__put(remote, &received, sizeof(received));
	const struct cmsghdr *control = (const struct cmsghdr *)received.control;
	long n;
	int fd;

	received.part.iov_base = (void *)(at + offsetof(struct receiving, byte));
	received.part.iov_len = 1;
	received.header.msg_iov = (void *)(at + offsetof(struct receiving, part));
	received.header.msg_iovlen = 1;
	received.header.msg_control = (void *)(at + offsetof(struct receiving, control));
	received.header.msg_controllen = sizeof(received.control);
	if (!at || remote__put(remote, &received, sizeof(received)) != at)
		return -EFAULT;
	n = remote__system_call(remote, SYS_recvmsg, number, at, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0,
				0, 0);
	if (n < 0)
		return n;
	if (process_memory__read(pid, at, &received, sizeof(received)))
		return -EFAULT;
	if (received.header.msg_controllen < CMSG_LEN(sizeof(fd)) ||
	    control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	return fd;
}

int process__map_file(pid_t pid, struct remote *remote, int fd, size_t size, int protection,
		      __u64 *address)
{
	__u64 at = remote__put(remote, (int[2]){ 0 }, sizeof(int[2]));
	int ends[2];
	long result = at ? remote__system_call(remote, SYS_socketpair, AF_UNIX,
					       SOCK_STREAM | SOCK_CLOEXEC, 0, at, 0, 0)
			 : -EFAULT;

	if (result < 0)
		return result;
	if (process_memory__read(pid, at, ends, sizeof(ends)))
		return -EFAULT;
	result = send_file(pid, ends[0], fd);
	if (!result)
		result = receive_file(pid, remote, ends[1]);
	for (int i = 0; i < 2; i++)
		remote__system_call(remote, SYS_close, ends[i], 0, 0, 0, 0, 0);
	if (result < 0)
		return result;
	fd = result;
	result = remote__system_call(remote, SYS_mmap, 0, size, protection, MAP_SHARED, fd, 0);
	remote__system_call(remote, SYS_close, fd, 0, 0, 0, 0, 0);
	if (result < 0 && result > -4096)
		return result;
	*address = result;
	return 0;
}

static int map_memory(struct remote *remote, size_t size, __u64 *address)
{
	long at = remote__system_call(remote, SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at < 0 && at > -4096)
		return at;
	*address = at;
	return 0;
}

int process__map_copy(pid_t pid, struct remote *remote, const void *bytes, size_t size,
		      __u64 *address)
{
	int err;

	*address = 0;
	if (!size)
		return 0;
	err = map_memory(remote, size, address);
	return err ? err : process_memory__write(pid, *address, bytes, size);
}

/* Each thread has its own list of seccomp filters, but usually all have the same. */
#define MAX_FILTERS 64

/* Copies the list, and the filters behind it, to which it points. */
static int map_filters(pid_t pid, struct remote *remote, struct inside_request *request,
		       struct sock_fprog *filters, const struct sock_filter *code, size_t n_code)
{
	size_t list_bytes = request->n_filters * sizeof(*filters),
	       code_bytes = n_code * sizeof(*code);
	int err;

	request->filters_bytes = list_bytes + code_bytes;
	err = map_memory(remote, request->filters_bytes, &request->filters);
	if (err)
		return err;
	for (size_t i = 0, done = 0; i < request->n_filters; done += filters[i++].len)
		filters[i].filter = (struct sock_filter *)(request->filters + list_bytes) + done;
	err = process_memory__write(pid, request->filters, filters, list_bytes);
	return err ? err
		   : process_memory__write(pid, request->filters + list_bytes, code, code_bytes);
}

int process__copy_filters(pid_t pid, struct remote *remote, struct inside_request *request)
{
	struct sock_fprog filters[MAX_FILTERS];
	_cleanup_(free_ptr) struct sock_filter *code = NULL;
	size_t n = 0, n_code = 0, room = 0, length;
	int err = 0;

	while (n < MAX_FILTERS && !err) {
		if (array__reserve(&code, &room, n_code + BPF_MAXINSNS, sizeof(*code)))
			return -ENOMEM;
		err = remote__read_filter(remote, n, code + n_code, &length);
		if (err)
			break;
		filters[n++].len = length;
		n_code += length;
	}
	if (err != -ENOENT)
		return -EACCES;
	request->n_filters = n;
	return n ? map_filters(pid, remote, request, filters, code, n_code) : 0;
}
