// SPDX-License-Identifier: GPL-3.0-or-later
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "confinement.h"
#include "packet.h"
#include "random.h"
#include "worker.h"
#include "worker_internal.h"

#define BIG (3 * PACKET_BYTES + 5)

enum what {
	ECHO,
	FAIL,
	READ_FD,
	OPEN,
	READLINK,
	REALPATH,
	ASK,
	NOTE,
	CRASH,
	ABORT,
	HANG,
	EXIT,
	GROW,
	WRITE_SHARED,
	/* System calls that a worker may not make. */
	SOCKET,
	EXECUTE,
	FORK,
	MAP_CODE,
	MAP_SHARED_MEMORY,
	UNLINK,
	KILL_PARENT,
	/* Packets that are none. */
	SHORT_PACKET,
	UNKNOWN_PACKET,
	POSITIVE_STATUS,
	NO_PATH,
	LONG_PATH,
	UNASKED_FD,
	NAME_WITHOUT_FD,
	MUCH,
};

static char *volatile shared;

static void send_raw(__u32 kind, __s32 status, const void *bytes, size_t size)
{
	struct packet packet = { .kind = kind, .status = status };

	memcpy(packet.bytes, bytes, size);
	packet__send(3, &packet, size, NULL, 0);
}

static void put_file(struct worker_call *call, int fd)
{
	char bytes[16] = "";
	ssize_t n = fd < 0 ? -errno : read(fd, bytes, sizeof(bytes));

	wire__put_u32(&call->reply, n);
	wire__put_bytes(&call->reply, bytes, n > 0 ? n : 0);
}

static int do_allowed(struct worker_call *call, enum what what)
{
	const char *text = wire__get_string(&call->request, PATH_MAX);
	char path[PATH_MAX] = "";
	struct wire_writer question = { 0 };
	int fd;

	switch (what) {
	case ECHO:
		for (size_t i = 0, n = wire__get_u64(&call->request); i < n; i++)
			wire__put_bytes(&call->reply, "x", 1);
		wire__put_string(&call->reply, text);
		break;
	case FAIL:
		return -ENODATA;
	case READ_FD:
		put_file(call, call->n_fds == 1 ? call->fds[0] : -1);
		break;
	case OPEN:
		put_file(call, open(text, O_RDONLY));
		break;
	case READLINK:
		snprintf(path, sizeof(path), "/proc/self/fd/%d", call->fds[0]);
		memset(path + 100, 0, 100);
		wire__put_u32(&call->reply, readlink(path, path + 100, 100));
		wire__put_string(&call->reply, path + 100);
		break;
	case REALPATH: {
		char *real;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", call->fds[0]);
		real = realpath(path, NULL);
		wire__put_string(&call->reply, real);
		free(real);
		break;
	}
	case ASK:
		wire__put_string(&question, text);
		fd = worker_call__ask(&question);
		wire__release(&question);
		if (fd < 0)
			return fd;
		put_file(call, fd);
		break;
	case NOTE:
		for (int i = 0; i < 1000; i++)
			worker_call__note(i);
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static void do_harm(enum what what)
{
	struct packet packet = { .kind = PACKET_NAME };
	char path[2] = "xx";
	char *const arguments[] = { (char *)"true", NULL };

	switch (what) {
	case CRASH:
		raise(SIGSEGV);
		break;
	case ABORT:
		abort();
	case HANG:
		for (;;)
			poll(NULL, 0, 1000);
	case EXIT:
		_exit(0);
	case GROW:
		/* Touched, since what is not is not paid for. */
		for (char *block; (block = malloc(1 << 20));)
			memset(block, 1, 1 << 20);
		_exit(7);
	case WRITE_SHARED:
		*shared = 'y';
		break;
	case SOCKET:
		socket(AF_UNIX, SOCK_STREAM, 0);
		break;
	case EXECUTE:
		execv("/bin/true", arguments);
		break;
	case FORK:
		(void)!fork();
		break;
	case MAP_CODE:
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		break;
	case MAP_SHARED_MEMORY:
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		break;
	case UNLINK:
		unlink("/nowhere/at/all");
		break;
	case KILL_PARENT:
		kill(getppid(), SIGTERM);
		break;
	case SHORT_PACKET:
		(void)!write(3, path, 2);
		break;
	case UNKNOWN_PACKET:
		send_raw(99, 0, path, 2);
		break;
	case POSITIVE_STATUS:
		send_raw(PACKET_DONE, 5, path, 0);
		break;
	case NO_PATH:
		send_raw(PACKET_OPEN, 0, path, 2);
		break;
	case LONG_PATH:
		send_raw(PACKET_OPEN, 0, "a\0b", 4);
		break;
	case UNASKED_FD: {
		int fds[PACKET_MAX_FDS] = { 0 };

		packet.kind = 99;
		packet__send(3, &packet, 0, fds, PACKET_MAX_FDS);
		break;
	}
	case NAME_WITHOUT_FD:
		packet__send(3, &packet, 0, NULL, 0);
		break;
	case MUCH:
		packet.kind = PACKET_PART;
		for (;;)
			packet__send(3, &packet, PACKET_BYTES, NULL, 0);
	default:
		break;
	}
	/* What is refused ends the process meanwhile. */
	for (;;)
		poll(NULL, 0, 1000);
}

static int serve(struct worker_call *call)
{
	enum what what = wire__get_u32(&call->request);

	if (what >= CRASH)
		do_harm(what);
	return do_allowed(call, what);
}

static int answer(void *context, struct wire_reader *question)
{
	const char *text = wire__get_string(question, 64);

	if (!text || !wire__is_read(question) || strcmp(text, "null") != 0)
		return -ENXIO;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void note(void *context, __u64 number)
{
	__u64 *sum = context;

	*sum += number;
}

static struct worker *new_worker(__u64 *sum, unsigned int timeout_ms)
{
	struct worker *worker = worker__new(&(struct worker_options){
		.name = "test-worker",
		.serve = serve,
		.answer = answer,
		.note = note,
		.context = sum,
		.timeout_ms = timeout_ms,
		.memory_bytes = 64 << 20,
		.max_reply = 1 << 20,
	});

	assert_non_null(worker);
	return worker;
}

static int call(struct worker *worker, enum what what, const char *text, size_t n, int fd,
		struct wire_reader *reply)
{
	struct wire_writer request = { 0 };
	int err;

	wire__put_u32(&request, what);
	wire__put_string(&request, text);
	wire__put_u64(&request, n);
	err = worker__call(worker, &request, &fd, fd >= 0, reply);
	wire__release(&request);
	return err;
}

static void test_answers(void **state)
{
	struct worker *worker = new_worker(NULL, 0);
	struct wire_reader reply;
	char *text = malloc(BIG);

	memset(text, 'a', 5000);
	text[4000] = '\0';
	/* Both ways over several packets, one after the other. */
	for (size_t n = 0; n < BIG; n += BIG / 3) {
		assert_int_equal(call(worker, ECHO, text, n, -1, &reply), 0);
		for (size_t i = 0; i < n; i++)
			assert_memory_equal(wire__get_bytes(&reply, 1), "x", 1);
		assert_string_equal(wire__get_string(&reply, BIG), text);
		assert_true(wire__is_read(&reply));
	}
	assert_int_equal(call(worker, FAIL, "", 0, -1, &reply), -ENODATA);
	assert_int_equal(reply.left, 0);
	assert_false(worker__has_failed(worker));
	assert_string_equal(worker__problem(worker), "");
	free(text);
	worker__free(worker);
	worker__free(NULL);
}

static void test_big_request(void **state)
{
	struct worker *worker = new_worker(NULL, 0);
	struct wire_writer request = { 0 };
	struct wire_reader reply;

	wire__put_u32(&request, ECHO);
	wire__put_string(&request, "text");
	wire__put_u64(&request, 0);
	while (request.size < BIG)
		wire__put_bytes(&request, "y", 1);
	assert_int_equal(worker__call(worker, &request, NULL, 0, &reply), 0);
	assert_string_equal(wire__get_string(&reply, 5), "text");
	wire__release(&request);
	worker__free(worker);
}

static void stop(void *context)
{
	raise(SIGSTOP);
}

/* One that has been stopped holds its parent up for a time that does not depend on what it is asked. */
static void test_stopped_at_its_start(void **state)
{
	struct worker *worker = worker__new(&(struct worker_options){
		.name = "test-worker", .serve = serve, .prepare = stop, .timeout_ms = 120000 });
	__u64 begin_ns = clock__now_ns();

	assert_non_null(worker);
	assert_int_equal(worker__start(worker), -ETIMEDOUT);
	assert_true(clock__now_ns() - begin_ns < 60 * NS_PER_S);
	assert_string_equal(worker__problem(worker), "did not react for 10 s");
	worker__free(worker);
}

static int open_result(struct worker *worker, const char *path)
{
	struct wire_reader reply;

	assert_int_equal(call(worker, OPEN, path, 0, -1, &reply), 0);
	return (int)wire__get_u32(&reply);
}

static void test_files(void **state)
{
	struct worker *worker = new_worker(NULL, 0);
	char directory[] = "/tmp/test_worker.XXXXXX", path[64], real[PATH_MAX];
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct wire_reader reply;
	ssize_t size = readlink("/proc/self/exe", real, sizeof(real) - 1);

	assert_true(size > 0);
	real[size] = '\0';
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(open_result(worker, real), 16);
	assert_int_equal(open_result(worker, path), -ENOTSUP);
	assert_int_equal(open_result(worker, "/dev/zero"), -ENOTSUP);
	assert_int_equal(open_result(worker, "/tmp"), -EISDIR);
	assert_int_equal(open_result(worker, "/nowhere/at/all"), -ENOENT);
	/* No ELF file. */
	assert_int_equal(open_result(worker, "/etc/passwd"), -ENOEXEC);
	assert_int_equal(call(worker, READ_FD, NULL, 0, fd, &reply), 0);
	assert_int_equal(wire__get_u32(&reply), 16);
	assert_memory_equal(wire__get_bytes(&reply, 4), "\177ELF", 4);
	assert_int_equal(call(worker, REALPATH, NULL, 0, fd, &reply), 0);
	assert_string_equal(wire__get_string(&reply, PATH_MAX), real);
	assert_int_equal(call(worker, READLINK, NULL, 0, fd, &reply), 0);
	assert_int_equal(wire__get_u32(&reply), size < 100 ? size : 100);
	assert_int_equal(call(worker, ASK, "null", 0, -1, &reply), 0);
	assert_int_equal(wire__get_u32(&reply), 0);
	assert_int_equal(call(worker, ASK, "other", 0, -1, &reply), -ENXIO);
	/* None of these ended it. */
	assert_string_equal(worker__problem(worker), "");
	close(fd);
	unlink(path);
	rmdir(directory);
	worker__free(worker);
}

static void test_notes(void **state)
{
	__u64 sum = 0;
	struct worker *worker = new_worker(&sum, 0);
	struct wire_reader reply;

	assert_int_equal(call(worker, NOTE, NULL, 0, -1, &reply), 0);
	assert_int_equal(sum, 999 * 1000 / 2);
	worker__free(worker);
}

static void test_harm(void **state)
{
	static const struct {
		enum what what;
		int err;
		const char *problem;
	} cases[] = {
		{ CRASH, -ECHILD, "signal 11" },
		{ ABORT, -ECHILD, "signal 6" },
		{ HANG, -ETIMEDOUT, "took longer than 0.3 s" },
		{ EXIT, -ECHILD, "ended" },
		{ WRITE_SHARED, -ECHILD, "signal 11" },
		{ SOCKET, -ECHILD, "made a system call that is not allowed" },
		{ EXECUTE, -ECHILD, "made a system call that is not allowed" },
		{ FORK, -ECHILD, "made a system call that is not allowed" },
		{ MAP_CODE, -ECHILD, "made a system call that is not allowed" },
		{ MAP_SHARED_MEMORY, -ECHILD, "made a system call that is not allowed" },
		{ UNLINK, -ECHILD, "made a system call that is not allowed" },
		{ KILL_PARENT, -ECHILD, "made a system call that is not allowed" },
		{ SHORT_PACKET, -EPROTO, "no valid answer" },
		{ UNKNOWN_PACKET, -EPROTO, "no valid answer" },
		{ POSITIVE_STATUS, -EPROTO, "no valid answer" },
		{ NO_PATH, -EPROTO, "no valid answer" },
		{ LONG_PATH, -EPROTO, "no valid answer" },
		{ UNASKED_FD, -EPROTO, "no valid answer" },
		{ NAME_WITHOUT_FD, -EPROTO, "no valid answer" },
		{ MUCH, -EMSGSIZE, "more than 1 MiB" },
#ifndef __SANITIZE_ADDRESS__ /* with its allocator the limit did not end it within a minute */
		{ GROW, -ECHILD, "ended" },
#endif
	};

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*shared = 'x';
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* A short limit for what hangs alone: the machine may be busy. */
		struct worker *worker = new_worker(NULL, cases[i].what == HANG ? 300 : 0);
		struct wire_reader reply;
		int err = call(worker, cases[i].what, NULL, 0, -1, &reply);

		if (err != cases[i].err || !strstr(worker__problem(worker), cases[i].problem))
			fail_msg("%d: expected %d and \"%s\", got %d and \"%s\"", cases[i].what,
				 cases[i].err, cases[i].problem, err, worker__problem(worker));
		assert_true(worker__has_failed(worker));
		/* The next one does what it is asked. */
		if (cases[i].what != HANG)
			assert_int_equal(call(worker, ECHO, "x", 0, -1, &reply), 0);
		worker__free(worker);
	}
	assert_int_equal(*shared, 'x');
	munmap(shared, 4096);
	/* None is left behind. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* Readers of bytes that nobody wrote get nothing that is not there. */
static void test_wire(void **state)
{
	struct wire_writer writer = { 0 };
	struct wire_reader reader;
	unsigned char bytes[64];

	wire__put_u32(&writer, 1);
	wire__put_u64(&writer, 2);
	wire__put_string(&writer, NULL);
	wire__put_string(&writer, "");
	wire__put_string(&writer, "abc");
	wire__put_u64(&writer, 2);
	wire__put_bytes(&writer, "12345678", 8);
	reader = wire__reader(writer.bytes, writer.size);
	assert_int_equal(wire__get_u32(&reader), 1);
	assert_int_equal(wire__get_u64(&reader), 2);
	assert_null(wire__get_string(&reader, 10));
	assert_string_equal(wire__get_string(&reader, 1), "");
	assert_string_equal(wire__get_string(&reader, 4), "abc");
	assert_int_equal(wire__get_count(&reader, 4), 2);
	assert_non_null(wire__get_bytes(&reader, 8));
	assert_true(wire__is_read(&reader));
	assert_int_equal(wire__get_u32(&reader), 0);
	assert_true(reader.is_bad);
	/* Too long, and more elements than there are bytes. */
	reader = wire__reader(writer.bytes + 20, writer.size - 20);
	assert_null(wire__get_string(&reader, 3));
	assert_true(reader.is_bad);
	reader = wire__reader(writer.bytes + 4, 8);
	assert_int_equal(wire__get_count(&reader, 1), 0);
	assert_true(reader.is_bad);
	wire__release(&writer);
	seed(1);
	for (int i = 0; i < 100000; i++) {
		const char *text;

		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = below(4);
		reader = wire__reader(bytes, sizeof(bytes));
		while (!reader.is_bad && reader.left) {
			text = wire__get_string(&reader, 32);
			assert_true(!text || strlen(text) < 32);
			assert_true(wire__get_count(&reader, 3) <= sizeof(bytes) / 3);
		}
	}
}

static void test_server_cannot_fork(void **state)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	(void)state;
	if (!pid) {
		const struct confinement confinement = {
			.kind = CONFINE_SERVER,
			.name = "server",
			.parent = parent,
			.fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
		};

		if (confinement__enter(&confinement) || confinement__close(CONFINE_SERVER))
			_exit(1);
		_exit(fork() < 0 && errno == EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped_at_its_start),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_big_request),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_harm),
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_server_cannot_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
