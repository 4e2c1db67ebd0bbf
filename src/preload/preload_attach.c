// SPDX-License-Identifier: GPL-3.0-or-later
/* Maps the library of src/inside into a running process, has a thread of the process call it, and leaves again. */
#include "preload_attach.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "attach_internal.h"
#include "cleanup.h"
#include "clock.h"
#include "elf_host.h"
#include "error.h"
#include "hold.h"
#include "inside_abi.h"
#include "memory_group.h"
#include "preload_internal.h"
#include "proc.h"
#include "remote.h"

/* The longest waits for threads to stop, for the library, and for the linker's lock. */
#define STOP_NS (2 * NS_PER_S)
#define CALL_NS (3 * NS_PER_S)
#define LOCK_NS (20 * NS_PER_MS)
#define TRIES	100
#define TRY_US	2000

/* A call of the library by an allocprof that was killed: the longest wait for its end, and how long
 * it may seem to wait for allocprof until it can be told from one that nobody makes. */
#define EARLIER_NS (5 * NS_PER_S)
#define SEEMING_NS (2 * NS_PER_S)

struct preload_attach {
	struct preload *preload;
	pid_t pid;
	struct library_file file;
	struct attach_calls calls;
	struct remote_code code;
	int memory_fd, tables_fd; /* files in memory that the process has made */
	__u64 base;		  /* 0: not mapped yet */
	bool has_filters;	  /* the process has seccomp(2) filters */
	bool is_unused;		  /* the mapped memory is not in use yet */
	bool was_mapped;	  /* an earlier measurement has mapped the library */
	bool is_memory_used;	  /* a thread was within the library when the process was left */
	__u64 limit_ns;		  /* all threads have to stop within this time */
	__u64 prepared_ns;	  /* longest stop of one thread alone, before all were stopped */
	struct inside_request request;
	pid_t guard;  /* child that leaves the process if this allocprof is killed; 0: none */
	int guard_fd; /* eventfd(2): the guard ends without doing anything */
	struct attach_left left;
};

static struct mapped_library library_of(const struct preload_attach *attach)
{
	return (struct mapped_library){ &attach->file, attach->pid, attach->base };
}

static __u64 stubs_of(const struct preload_attach *attach)
{
	return attach->base + attach->file.stubs;
}

/* The first process makes the files of the shared memory, and the others get the same. */
static int make_memory(struct preload_attach *attach, struct remote *remote)
{
	struct inside_request *request = &attach->request;
	const struct preload *preload = attach->preload;
	int err;

	if (preload->n_attached) {
		err = process__map_file(attach->pid, remote, preload->memory_fd,
					INSIDE_HEADER_BYTES, PROT_READ | PROT_WRITE,
					&request->memory);
		return err || preload->tables_fd < 0
			       ? err
			       : process__map_file(attach->pid, remote, preload->tables_fd,
						   INSIDE_PAGE, PROT_READ, &request->tables);
	}
	attach->memory_fd =
		process__share_file(attach->pid, remote, ATTACH_MEMORY_NAME, INSIDE_HEADER_BYTES,
				    PROT_READ | PROT_WRITE, &request->memory);
	if (attach->memory_fd < 0)
		return attach->memory_fd;
	/* The locks show other allocprofs that this process lives. */
	(void)flock(attach->memory_fd, LOCK_EX | LOCK_NB);
	if (preload->tables_fd < 0)
		return 0;
	attach->tables_fd = process__share_file(attach->pid, remote, ATTACH_TABLES_NAME,
						INSIDE_PAGE, PROT_READ, &request->tables);
	if (attach->tables_fd < 0)
		return attach->tables_fd;
	(void)flock(attach->tables_fd, LOCK_EX | LOCK_NB);
	return 0;
}

/* Choosing a thread that can be made to call something. */

struct choosing {
	const struct preload_attach *attach;
	enum inside_action action; /* what the thread is to do */
	struct remote *remote;
	int err;
};

/* Lifts the thread's filters: a system call that meets one may end the process. The process, or a
 * child that it has forked, may have got them since preload_attach__new(); then the library, which
 * does not know them, must not begin. */
static int lift_filters(const struct choosing *choosing, pid_t tid)
{
	const struct preload_attach *attach = choosing->attach;

	if (!process__has_filters(attach->pid, tid))
		return 0;
	if (choosing->action == INSIDE_ATTACH && !attach->has_filters)
		return -EACCES;
	return remote__lift_filters(choosing->remote) ? -EACCES : 0;
}

static int try_thread(void *context, pid_t tid)
{
	struct choosing *choosing = context;
	const struct preload_attach *attach = choosing->attach;

	choosing->err = remote__begin(attach->pid, tid, &attach->code, &choosing->remote);
	if (!choosing->err)
		choosing->err = lift_filters(choosing, tid);
	if (choosing->err) {
		remote__end(choosing->remote);
		choosing->remote = NULL;
	}
	return !choosing->err;
}

static int choose_thread(const struct preload_attach *attach, const struct hold *hold,
			 enum inside_action action, struct remote **out)
{
	struct choosing choosing = { .attach = attach, .action = action, .err = -ESRCH };

	hold__each_stopped(hold, try_thread, &choosing);
	*out = choosing.remote;
	return choosing.err;
}

/* Unmaps the memory that was mapped in the process; no word leads to it. */
static void unmap(struct preload_attach *attach, struct remote *remote)
{
	struct inside_request *request = &attach->request;
	const struct {
		__u64 at, size;
	} mapped[] = {
		{ request->memory, INSIDE_HEADER_BYTES },
		{ request->tables, INSIDE_PAGE },
		{ request->filters, request->filters_bytes },
		{ request->functions, request->functions_bytes },
		{ attach->was_mapped ? 0 : attach->base, attach->file.memory_bytes },
	};

	for (size_t i = 0; i < ARRAY_SIZE(mapped); i++)
		if (mapped[i].at)
			remote__system_call(remote, SYS_munmap, mapped[i].at, mapped[i].size, 0, 0,
					    0, 0);
	/* Another thread may map something there. */
	request->memory = request->tables = request->filters = request->functions = 0;
	if (!attach->was_mapped)
		attach->base = 0;
}

/* Returns whether the process has this code, apart from breakpoints that the kernel has put there
 * for uprobes: this or another program may measure the library's functions. */
static bool is_same_code(const unsigned char *in_process, const unsigned char *code, size_t size)
{
	for (size_t at = 0, n = elf_host.breakpoint_bytes; at + n <= size; at += n)
		if (memcmp(in_process + at, code + at, n) != 0 &&
		    memcmp(in_process + at, elf_host.breakpoint, n) != 0)
			return false;
	return true;
}

/* Returns -ESTALE if the process has executed another program before it was held. */
static int check_program(const struct preload_attach *attach)
{
	const struct library_file *file = &attach->file;
	unsigned char code[64];
	__u64 linker;

	if (process__find_linker(attach->pid, &linker) || linker != attach->request.linker)
		return -ESTALE;
	/* The code segment has the same offset in the file as in memory. */
	return attach->base && (process_memory__read(attach->pid, attach->base + file->attach, code,
						     sizeof(code)) ||
				!is_same_code(code, file->bytes + file->attach, sizeof(code)))
		       ? -ESTALE
		       : 0;
}

/* Lets the threads go on. Returns how long they were held, in ns. */
static __u64 release_threads(struct hold *hold)
{
	__u64 begin_ns = hold ? hold__begin_ns(hold) : 0;

	hold__release(hold, 0);
	return begin_ns ? clock__now_ns() - begin_ns : 0;
}

/* A program's calls of its own allocator can lead to a library near it only. */
static int map_library(struct preload_attach *attach, struct remote *remote)
{
	__u64 base = 0;
	int err =
		attach->calls.n_functions
			? attach_calls__find_room(&attach->calls, attach->file.memory_bytes, &base)
			: 0;

	if (!err)
		err = mapped_library__map(&attach->file, attach->pid, remote, &base);
	if (!err)
		attach->base = base;
	/* Another thread has just mapped something there. */
	return err == -EEXIST ? -EAGAIN : err;
}

/* Holds one thread and has it map the library and the shared memory, while the other threads run. */
static int prepare(struct preload_attach *attach)
{
	__u64 until_ns = clock__now_ns() + STOP_NS;
	struct hold *hold = hold__new();
	struct remote *remote = NULL;
	int err = hold ? hold__add_thread(hold, attach->pid, until_ns) : -ENOMEM;

	if (err >= 0)
		err = choose_thread(attach, hold, INSIDE_ATTACH, &remote);
	/* The first thread has ended or cannot make calls, so another is held. */
	if (err == -ENOTSUP || err == -ENOEXEC || err == -ESRCH) {
		int n = hold__add(hold, attach->pid, until_ns);

		if (n > 0)
			err = choose_thread(attach, hold, INSIDE_ATTACH, &remote);
		else if (n < 0 || !proc__has_ended(attach->pid))
			err = n < 0 ? n : -EAGAIN;
	}
	if (!err)
		err = check_program(attach);
	if (!err && !attach->base)
		err = map_library(attach, remote);
	if (!err)
		err = make_memory(attach, remote);
	if (!err && attach->has_filters)
		err = process__copy_filters(attach->pid, remote, &attach->request);
	if (!err)
		err = attach_calls__copy(&attach->calls, remote, &attach->request);
	if (err && remote)
		unmap(attach, remote);
	attach->is_unused = !err;
	remote__end(remote);
	attach->prepared_ns = release_threads(hold);
	return err;
}

/* Tries again if the thread could not be held. */
static int prepare_in_time(struct preload_attach *attach)
{
	int err = prepare(attach);

	for (int i = 1; (err == -EAGAIN || err == -ENOEXEC) && i < TRIES; i++) {
		usleep(TRY_US);
		err = prepare(attach);
	}
	return err;
}

static int clear_words(void *context, pid_t tid)
{
	const struct preload_attach *attach = context;
	const __u64 none = 0;
	__u64 thread;

	if (!remote__thread_data(tid, &thread))
		for (int i = 0; i < INSIDE_THREAD_WORDS; i++)
			(void)process_memory__write(attach->pid,
						    thread + attach->request.offsets[i], &none,
						    sizeof(none));
	return 0;
}

/* Calls of the library's functions. */

struct awaiting {
	pid_t pid;
	__u64 address;	/* address of the request's stage */
	__u64 locks_ns; /* until when the dynamic linker's lock is waited for */
	__u32 stage;
};

static enum remote_state get_state(void *context)
{
	struct awaiting *awaiting = context;

	if (process_memory__read(awaiting->pid, awaiting->address, &awaiting->stage,
				 sizeof(awaiting->stage)))
		return REMOTE_WORKS;
	if (awaiting->stage == INSIDE_STAGE_DONE)
		return REMOTE_DONE;
	if (awaiting->stage == INSIDE_STAGE_LOCKS && clock__now_ns() > awaiting->locks_ns)
		return REMOTE_GIVEN_UP;
	return awaiting->stage == INSIDE_STAGE_RETURNS ? REMOTE_RETURNS : REMOTE_WORKS;
}

static int read_request(struct preload_attach *attach)
{
	return process_memory__read(attach->pid, attach->base + attach->file.request,
				    &attach->request, sizeof(attach->request));
}

static int request(struct preload_attach *attach, struct remote *remote, enum inside_action action)
{
	__u64 at = attach->base + attach->file.request, now_ns = clock__now_ns();
	struct awaiting awaiting = {
		.pid = attach->pid,
		.address = at + offsetof(struct inside_request, stage),
		.locks_ns = now_ns + LOCK_NS,
	};
	int err;

	attach->request.action = action;
	attach->request.stage = INSIDE_STAGE_CALLED;
	attach->request.result = 0;
	err = process_memory__write(attach->pid, at, &attach->request, sizeof(attach->request));
	if (!err)
		err = remote__call(remote, attach->base + attach->file.attach, get_state, &awaiting,
				   now_ns + CALL_NS);
	/* The request's results are complete even if they come late. */
	if (!err || err == -ECANCELED)
		err = read_request(attach);
	else if (err == -ETIMEDOUT && awaiting.stage == INSIDE_STAGE_LOCKS)
		return -EAGAIN;
	return err ? err : attach->request.result;
}

/* Says in the process that no thread makes the call any more, which is held or will return by
 * itself, and what became of it. Else the next allocprof waits for it. */
static void note_end(struct preload_attach *attach, int err)
{
	struct inside_request *request = &attach->request;
	__u64 at = attach->base + attach->file.request;

	request->stage = INSIDE_STAGE_RETURNS;
	if (err)
		request->result = err;
	(void)process_memory__write(attach->pid, at + offsetof(struct inside_request, result),
				    &request->result, sizeof(request->result));
	(void)process_memory__write(attach->pid, at + offsetof(struct inside_request, stage),
				    &request->stage, sizeof(request->stage));
}

/*
 * Waits until no thread makes a call that an allocprof had it make which was killed meanwhile: the
 * thread completes it by itself. Another call at the same time would find the library half begun.
 * Returns -EBUSY if that takes too long.
 */
static int await_earlier_call(const struct preload_attach *attach)
{
	__u64 begin_ns = clock__now_ns(), since_ns = begin_ns;
	__u32 stage = INSIDE_STAGE_RETURNS;

	for (;;) {
		struct inside_request now;
		int err = process_memory__read(attach->pid, attach->base + attach->file.request,
					       &now, sizeof(now));

		if (err)
			return err;
		if (!now.memory || now.stage == INSIDE_STAGE_RETURNS)
			return 0;
		if (now.stage != stage)
			since_ns = clock__now_ns();
		stage = now.stage;
		/* allocprof was killed before a thread made the call, or when it had been made. */
		if ((stage == INSIDE_STAGE_CALLED || stage == INSIDE_STAGE_DONE) &&
		    clock__now_ns() - since_ns > SEEMING_NS)
			return 0;
		if (clock__now_ns() - begin_ns > EARLIER_NS)
			return -EBUSY;
		usleep(TRY_US);
	}
}

/* Returns whether words may lead to the library after this request, which is not under way. */
static bool request__leaves_words(const struct inside_request *request)
{
	bool is_called = request->memory && request->stage != INSIDE_STAGE_CALLED;

	if (request->action == INSIDE_ATTACH)
		return is_called && request->result != -EAGAIN && request->result != -EEXIST;
	return request->action == INSIDE_DETACH && (!is_called || request->result);
}

/* Ends what is left of an earlier measurement, and lets the library begin anew. */
static int begin_again(struct preload_attach *attach, const struct hold *hold,
		       struct remote *remote, bool may_be_within)
{
	struct mapped_library library = library_of(attach);
	struct inside_request now = attach->request;
	struct calls_changed changed;
	int err = read_request(attach);
	bool was_used = !err && attach->request.has_keys;

	/* Without keys the earlier allocprof was killed before the library did anything. */
	if (was_used)
		attach_calls__restore(&attach->calls, stubs_of(attach), &changed);
	if (was_used && request__leaves_words(&attach->request))
		err = request(attach, remote, INSIDE_DETACH);
	if (!err && may_be_within)
		err = -EBUSY;
	if (!err && was_used)
		err = request(attach, remote, INSIDE_CLEAN);
	if (!err)
		err = mapped_library__map_data(&library, remote);
	if (!err && was_used)
		hold__each_stopped(hold, clear_words, attach);
	attach->request.memory = now.memory;
	attach->request.tables = now.tables;
	attach->request.linker = now.linker;
	attach->request.filters = now.filters;
	attach->request.filters_bytes = now.filters_bytes;
	attach->request.n_filters = now.n_filters;
	attach->request.functions = now.functions;
	attach->request.functions_bytes = now.functions_bytes;
	attach->request.n_functions = now.n_functions;
	return err;
}

/* Changes the words and the program's own calls, or restores them. All threads are held. */
static int change_calls(struct preload_attach *attach, struct remote *remote,
			enum inside_action action, struct preload_attached *out)
{
	struct calls_changed changed = { 0 };
	int err = 0;

	if (action == INSIDE_DETACH)
		attach_calls__restore(&attach->calls, stubs_of(attach), &changed);
	else if (action == INSIDE_ATTACH)
		err = attach_calls__check(&attach->calls, stubs_of(attach));
	if (!err)
		err = request(attach, remote, action);
	if (!err && action == INSIDE_ATTACH) {
		err = attach_calls__redirect(&attach->calls, stubs_of(attach), &changed);
		if (err) {
			attach_calls__restore(&attach->calls, stubs_of(attach), &changed);
			/* The library must stay if anything may still lead to it. */
			if (request(attach, remote, INSIDE_DETACH) || changed.n_lost)
				attach->is_unused = false;
		}
	}
	out->n_words = attach->request.n_words + changed.n;
	out->n_lost = attach->request.n_lost + changed.n_lost;
	return err;
}

/* Holds all threads and has the library do @action. */
static int act(struct preload_attach *attach, enum inside_action action,
	       struct preload_attached *out)
{
	__u64 limit_ns = action == INSIDE_ATTACH ? attach->limit_ns : STOP_NS;
	__u64 until_ns = clock__now_ns() + limit_ns;
	struct hold *hold = hold__new();
	struct remote *remote = NULL;
	int n = hold ? hold__add(hold, attach->pid, until_ns) : -ENOMEM;
	/* Threads that wait in vfork(2) or were stopped (SIGSTOP) do not run anyway. */
	struct mapped_library library = library_of(attach);
	bool may_be_within = true, is_called;
	int err = n < 0 ? n : n == 0 ? (proc__has_ended(attach->pid) ? -ESRCH : -EAGAIN) : 0;

	if (!err && action == INSIDE_ATTACH && clock__now_ns() > until_ns)
		err = -ETIME;
	/* The program's code is changed only while nothing runs it, in no process that has the same memory,
	 * either. A thread that is in a system call may return from it. */
	if (!err && attach->calls.n_functions && action != INSIDE_CLEAN &&
	    (hold__count_running(hold) || process__shares_memory(attach->pid)))
		err = -EAGAIN;
	if (!err)
		err = check_program(attach);
	/* Here each thread still has its own registers. */
	if (!err && attach->base && (action != INSIDE_ATTACH || attach->was_mapped))
		may_be_within = mapped_library__may_be_used(&library, hold);
	if (!err)
		err = choose_thread(attach, hold, action, &remote);
	/* The guard does not know the library's results yet. */
	if (!err && action == INSIDE_DETACH)
		err = read_request(attach);
	if (!err && action == INSIDE_ATTACH && attach->was_mapped)
		err = begin_again(attach, hold, remote, may_be_within);
	if (!err && action == INSIDE_ATTACH)
		attach_left__remove(&attach->left, &library, remote);
	if (!err && action == INSIDE_CLEAN && may_be_within)
		err = -EBUSY;
	is_called = !err;
	if (!err)
		err = change_calls(attach, remote, action, out);
	attach->is_memory_used = may_be_within;
	if (!err && action == INSIDE_DETACH && !may_be_within)
		(void)request(attach, remote, INSIDE_CLEAN);
	remote__end(remote);
	if (is_called)
		note_end(attach, err);
	out->stopped_ns = release_threads(hold);
	if (action == INSIDE_ATTACH && out->stopped_ns < attach->prepared_ns)
		out->stopped_ns = attach->prepared_ns;
	out->n_threads = n;
	return err;
}

static int act_in_time(struct preload_attach *attach, enum inside_action action,
		       struct preload_attached *out)
{
	int err = 0;

	for (int i = 0; i < TRIES; i++) {
		if (i)
			usleep(TRY_US);
		err = act(attach, action, out);
		if (err != -EAGAIN && err != -EBUSY && err != -ENOEXEC)
			break;
	}
	return err;
}

/* Checks that the library of an earlier measurement is the same as this one. */
static int check_mapped(struct preload_attach *attach, struct error *error)
{
	const struct library_file *file = &attach->file;
	size_t size = file->code_end - file->code_start;
	_cleanup_(free_ptr) unsigned char *code = malloc(size);
	int err;

	if (attach_left__is_measured(attach->pid))
		return attach__refuse(error, -EBUSY, attach->pid, "another allocprof does so now");
	if (!code)
		return error__set(error, -ENOMEM, "no memory");
	/* The segments have the same offsets in the file as in memory, except for the last one. */
	err = process_memory__read(attach->pid, attach->base + file->code_start, code, size);
	if (err)
		return attach__explain(error, err, attach->pid);
	if (!is_same_code(code, file->bytes + file->code_start, size))
		return attach__refuse(error, -EBUSY, attach->pid,
				      "another version of allocprof has left its library there");
	return 0;
}

/* Unmaps what is not in use yet. Returns -EBUSY if a thread is within the library, which returns
 * from it by itself. */
static int try_to_take_back(struct preload_attach *attach)
{
	struct mapped_library library = library_of(attach);
	struct hold *hold = hold__new();
	struct remote *remote = NULL;
	int err = -ESRCH;

	if (hold && hold__add(hold, attach->pid, clock__now_ns() + STOP_NS) > 0)
		err = attach->base && !attach->was_mapped &&
				      mapped_library__may_be_used(&library, hold)
			      ? -EBUSY
			      : choose_thread(attach, hold, INSIDE_CLEAN, &remote);
	if (!err)
		unmap(attach, remote);
	remote__end(remote);
	hold__release(hold, 0);
	return err;
}

static void take_back(struct preload_attach *attach)
{
	for (int i = 0; try_to_take_back(attach) == -EBUSY && i < TRIES; i++)
		usleep(TRY_US);
}

/* Runs in a child that leaves the process if allocprof is killed before it has done so. */
static void guard(struct preload_attach *attach, int parent)
{
	struct pollfd wait[] = { { .fd = parent, .events = POLLIN },
				 { .fd = attach->guard_fd, .events = POLLIN } };
	struct inside_request mapped = attach->request;
	struct preload_attached done;
	sigset_t all;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "allocprof-guard");
	while (poll(wait, ARRAY_SIZE(wait), -1) < 0)
		;
	if (wait[1].revents || preload__set_gate(attach->preload, INSIDE_STOPPED))
		_exit(0);
	err = await_earlier_call(attach);
	if (!err)
		err = read_request(attach);
	if (err)
		_exit(0);
	if (attach->request.memory == mapped.memory) {
		if (request__leaves_words(&attach->request))
			(void)preload_attach__leave(attach, &done);
		else if (attach->request.action != INSIDE_ATTACH)
			(void)act_in_time(attach, INSIDE_CLEAN, &done);
		else
			take_back(attach);
	} else {
		attach->request = mapped;
		take_back(attach);
	}
	_exit(0);
}

/*
 * If there is no guard, the next allocprof that measures the process cleans up. The guard is told
 * to end by an event, and not by a pipe that is closed: the kernel closes a pipe of a process that
 * is killed before it says that the process has ended.
 */
static void begin_guard(struct preload_attach *attach)
{
	_cleanup_(close_fd) int parent = syscall(SYS_pidfd_open, getpid(), 0);
	pid_t child;

	attach->guard_fd = eventfd(0, EFD_CLOEXEC);
	if (parent < 0 || attach->guard_fd < 0)
		return;
	child = fork();
	if (!child)
		guard(attach, parent);
	attach->guard = child > 0 ? child : 0;
}

static void end_guard(struct preload_attach *attach)
{
	if (attach->guard > 0 && !eventfd_write(attach->guard_fd, 1))
		while (waitpid(attach->guard, NULL, 0) < 0 && errno == EINTR)
			;
	attach->guard = 0;
	close_fd(&attach->guard_fd);
}

static int find_calls(struct preload_attach *attach, struct parser *parser, struct error *error)
{
	const char *why;
	int err = attach_calls__find(parser, attach->pid, &attach->calls, &why);

	return err == -EEXIST ? attach__refuse(error, err, attach->pid, why)
	       : err	      ? attach__explain(error, err, attach->pid)
			      : 0;
}

int preload_attach__new(struct preload *preload, struct parser *parser, pid_t pid,
			struct preload_attach **out, struct error *error)
{
	struct preload_attach *attach = calloc(1, sizeof(*attach));
	int err, found;

	if (!attach)
		return error__set(error, -ENOMEM, "no memory");
	attach->preload = preload;
	attach->pid = pid;
	attach->memory_fd = attach->tables_fd = attach->guard_fd = -1;
	err = library_file__read(preload->library, &attach->file);
	if (err) {
		error__set(error, err, "cannot read the library '%s': %s", preload->library,
			   strerror(-err));
		goto fail;
	}
	if (process__find_filters(pid, &attach->has_filters)) {
		err = attach__refuse(
			error, -EPERM, pid,
			"its threads have forbidden themselves different system calls, or nearly "
			"all (seccomp(2))");
		goto fail;
	}
	if (memory_group__is_frozen(pid)) {
		err = attach__refuse(error, -EBUSY, pid, "its control group is frozen; thaw it");
		goto fail;
	}
	/* First, so that a program that is executed now is found out. */
	err = process__find_linker(pid, &attach->request.linker);
	if (err && err != -ENOTSUP) {
		attach__explain(error, err, pid);
		goto fail;
	}
	found = find_calls(attach, parser, error);
	if (found) {
		err = found;
		goto fail;
	}
	if (!err)
		err = remote_code__find(pid, &attach->code);
	if (!err && attach_left__find_library(pid, NULL, &attach->base)) {
		attach->was_mapped = true;
		library_file__relocate(&attach->file, attach->base);
		err = check_mapped(attach, error);
		if (err)
			goto fail;
		err = await_earlier_call(attach);
		if (err) {
			attach__explain(error, err, pid);
			goto fail;
		}
	}
	if (!err)
		attach_left__find(pid, &attach->left);
	if (!err)
		err = prepare_in_time(attach);
	if (!err && !preload->n_attached)
		err = preload__move(preload, &attach->memory_fd, &attach->tables_fd);
	if (!err)
		err = preload__add_attached(preload, pid);
	if (err) {
		attach__explain(error, err, pid);
		goto fail;
	}
	begin_guard(attach);
	*out = attach;
	return 0;
fail:
	preload_attach__free(attach);
	return err;
}

int preload_attach__enter(struct preload_attach *attach, __u64 limit_ns,
			  struct preload_attached *out, struct error *error)
{
	int err;

	attach->limit_ns = limit_ns ? limit_ns : STOP_NS;
	err = act_in_time(attach, INSIDE_ATTACH, out);
	/* Other errors occur before the library has changed anything, or that was undone. */
	if (!err || err == -ENOMEM || err == -ETIMEDOUT || err == -ESRCH)
		attach->is_unused = false;
	return err ? attach__explain(error, err, attach->pid) : 0;
}

int preload_attach__list(const struct preload_attach *attach, struct inside_redirections *out)
{
	int err = process_memory__read(attach->pid, attach->base + attach->file.redirections, out,
				       sizeof(*out));

	return err ? err : out->n > INSIDE_REDIRECTIONS ? -EINVAL : 0;
}

int preload_attach__leave(struct preload_attach *attach, struct preload_attached *out)
{
	struct preload_attached again = { 0 };
	int err = act_in_time(attach, INSIDE_DETACH, out);

	/* No word leads to the library now. The next measurement unmaps what threads still use. */
	if (!err && attach->is_memory_used && !act_in_time(attach, INSIDE_CLEAN, &again) &&
	    again.stopped_ns > out->stopped_ns)
		out->stopped_ns = again.stopped_ns;
	return err;
}

bool preload_attach__is_origin(const struct preload_attach *attach,
			       const struct preload_forked *child)
{
	return attach->base == child->base && attach->request.linker == child->linker;
}

int preload_attach__leave_forked(const struct preload_attach *attach,
				 const struct preload_forked *child, struct preload_attached *out)
{
	struct preload_attach like = *attach;

	like.pid = like.calls.pid = child->pid;
	return preload_attach__leave(&like, out);
}

void preload_attach__free(struct preload_attach *attach)
{
	if (!attach)
		return;
	end_guard(attach);
	if (attach->is_unused)
		take_back(attach);
	close_fd(&attach->memory_fd);
	close_fd(&attach->tables_fd);
	attach_calls__release(&attach->calls);
	library_file__release(&attach->file);
	free(attach);
}
