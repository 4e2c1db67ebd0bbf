// SPDX-License-Identifier: GPL-3.0-or-later
#include "gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attachment.h"
#include "cleanup.h"
#include "error.h"
#include "function_code.h"

enum role {
	ROLE_WITHIN,
	ROLE_START,
	ROLE_STOP,
	ROLES,
};

static const struct {
	const char *option;
	enum ap_gate_event event;
} roles[ROLES] = {
	[ROLE_WITHIN] = { "--within", AP_GATE_ENTER },
	[ROLE_START] = { "--start-on", AP_GATE_START },
	[ROLE_STOP] = { "--stop-on", AP_GATE_STOP },
};

/* A file with some of these functions. */
struct gate_file {
	dev_t device;
	ino_t inode;
	bool tried[ROLES];
	struct function_code code[ROLES];
	struct attachment *attachments[ROLES];
	struct gate_file *next;
};

struct gate {
	struct gate_options options;
	struct wanted_function wanted[ROLES];
	struct gate_file *files;
	struct error error;
	int err;
};

int gate__new(const struct gate_options *options, struct gate **out, struct error *error)
{
	const char *texts[ROLES] = {
		[ROLE_WITHIN] = options->window.within,
		[ROLE_START] = options->window.start_on,
		[ROLE_STOP] = options->window.stop_on,
	};
	struct gate *gate = calloc(1, sizeof(*gate));
	int err = 0;

	if (!gate)
		return -ENOMEM;
	gate->options = *options;
	for (int i = 0; i < ROLES && !err; i++)
		err = wanted_function__parse(&gate->wanted[i], texts[i], roles[i].option,
					     i == ROLE_WITHIN, error);
	if (err) {
		gate__free(gate);
		return err;
	}
	*out = gate;
	return 0;
}

void gate__detach(struct gate *gate)
{
	if (!gate)
		return;
	for (struct gate_file *file = gate->files; file; file = file->next)
		for (int i = 0; i < ROLES; i++) {
			attachment__free(file->attachments[i]);
			file->attachments[i] = NULL;
		}
}

void gate__free(struct gate *gate)
{
	struct gate_file *file;

	if (!gate)
		return;
	gate__detach(gate);
	while ((file = gate->files)) {
		gate->files = file->next;
		free(file);
	}
	for (int i = 0; i < ROLES; i++)
		wanted_function__release(&gate->wanted[i]);
	free(gate);
}

static struct gate_file *find_file(struct gate *gate, const struct stat *st)
{
	struct gate_file *file = gate->files;

	while (file && (file->device != st->st_dev || file->inode != st->st_ino))
		file = file->next;
	return file;
}

static struct gate_file *get_file(struct gate *gate, const struct stat *st)
{
	struct gate_file *file = find_file(gate, st);

	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->next = gate->files;
	gate->files = file;
	return file;
}

static int attach(struct gate *gate, struct gate_file *file, int fd, const char *path,
		  enum role role, struct error *error)
{
	struct function_code *code = &file->code[role];
	__u64 cookies[AP_MAX_WITHIN_RANGES];
	struct attachment_request request = {
		.run = gate->options.run,
		.fd = fd,
		.path = path,
		.n = code->n_entries,
		.offsets = code->entries,
		.semaphores = code->semaphores,
		.cookies = cookies,
	};

	for (size_t i = 0; i < code->n_entries; i++)
		cookies[i] = roles[role].event;
	return attachment__new(&request, &file->attachments[role], error);
}

/* Two probes at one location run in an unspecified order. */
static int check_apart(const struct gate_file *file, struct error *error)
{
	const struct function_code *start = &file->code[ROLE_START];
	const struct function_code *stop = &file->code[ROLE_STOP];

	for (size_t i = 0; i < start->n_entries; i++)
		for (size_t j = 0; j < stop->n_entries; j++)
			if (start->entries[i] == stop->entries[j])
				return error__set(
					error, -EINVAL,
					"--start-on and --stop-on name the same function; "
					"--within counts what is called in one");
	return 0;
}

static int look_up(struct gate *gate, int fd, const char *path, enum role role, struct error *error)
{
	struct gate_file *file;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	file = get_file(gate, &st);
	if (!file)
		return -ENOMEM;
	if (file->tried[role])
		return 0;
	file->tried[role] = true;
	err = wanted_function__find(&gate->wanted[role], gate->options.parser, fd, path,
				    roles[role].option, &file->code[role], error);
	if (!err)
		err = check_apart(file, error);
	return err ? err : attach(gate, file, fd, path, role, error);
}

int gate__prepare(struct gate *gate, const char *program, const char *root, struct error *error)
{
	for (int i = 0; i < ROLES; i++) {
		const struct wanted_function *wanted = &gate->wanted[i];
		_cleanup_(free_ptr) char *path = NULL;
		_cleanup_(close_fd) int fd = -1;
		int probed, err;

		if (!wanted->symbol || !wanted_function__is_path(wanted))
			continue;
		fd = wanted_function__open(wanted, program, root, &path);
		if (fd < 0)
			return error__set(error, fd == -ENOENT ? -ESRCH : fd,
					  "%s: cannot read %s: %s", roles[i].option,
					  path ? path : "it", strerror(-fd));
		probed = gate->options.isolate(fd, path, gate->options.context);
		err = look_up(gate, probed, path, (enum role)i, error);
		if (err)
			return err;
		if (gate->options.use_file)
			gate->options.use_file(probed, path, gate->options.context);
	}
	return 0;
}

bool gate__wants(struct gate *gate, int fd, const char *path)
{
	for (int i = 0; i < ROLES; i++)
		if (wanted_function__is_in(&gate->wanted[i], gate->options.parser, fd, path))
			return true;
	return false;
}

void gate__on_new_file(struct gate *gate, int fd, const char *path)
{
	struct error error = { 0 };

	for (int i = 0; i < ROLES; i++) {
		int err;

		if (!wanted_function__is_in(&gate->wanted[i], gate->options.parser, fd, path))
			continue;
		err = look_up(gate, fd, path, (enum role)i, &error);
		if (err && !gate->err) {
			gate->err = err;
			gate->error = error;
		}
	}
}

const struct ap_within *gate__within(struct gate *gate, int fd, const char *path)
{
	struct gate_file *file;
	struct stat st;

	if (!gate->wanted[ROLE_WITHIN].symbol || fstat(fd, &st))
		return NULL;
	gate__on_new_file(gate, fd, path);
	file = find_file(gate, &st);
	return file && file->code[ROLE_WITHIN].within.n ? &file->code[ROLE_WITHIN].within : NULL;
}

int gate__check(const struct gate *gate, struct error *error)
{
	if (gate->err && error)
		*error = gate->error;
	return gate->err;
}

void gate__poll(struct gate *gate)
{
	if (!__atomic_load_n(&gate->options.shared->entered, __ATOMIC_RELAXED))
		return;
	for (struct gate_file *file = gate->files; file; file = file->next) {
		attachment__free(file->attachments[ROLE_WITHIN]);
		file->attachments[ROLE_WITHIN] = NULL;
	}
}

const char *gate__never_opened(const struct gate *gate, bool matched)
{
	const struct ap_gate *shared = gate->options.shared;

	if (gate->err)
		return gate->error.text;
	if (!shared->opened)
		return gate->options.window.paused ? "`allocprof ctl start` was not called"
						   : "the target ended before the delay was over";
	for (int i = 0; i < ROLE_STOP; i++) {
		const struct wanted_function *wanted = &gate->wanted[i];

		if (!wanted->symbol || (i == ROLE_START && shared->started) ||
		    (i == ROLE_WITHIN && (shared->entered || matched)))
			continue;
		if (!wanted->found)
			return wanted_function__not_found(wanted);
		return i == ROLE_START ? "the function of --start-on was not called"
				       : "the function of --within was not called";
	}
	return NULL;
}
