// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "debug_file.h"
#include "debuginfod.h"
#include "elf_file.h"
#include "hash_table.h"
#include "symbols_module.h"
#include "worker.h"

/* Looks up the names of all addresses of a recording, in workers that run at the same time. */

struct named_module {
	__u32 id;
	int fd;
	char *path, *build_id;
	char *text;	/* NULL: nothing was looked up */
	bool is_unread; /* the process that read the file failed; @text says how */
};

struct symbols {
	struct symbols_options options;
	struct named_module *modules;
	size_t n_modules;
	struct hash_table index;
	char fetch_problem[512]; /* "": none */
};

static struct named_module *symbols__find_module(const struct symbols *symbols, __u32 id);

/* Default limits: without progress, and for all files together. */
#define DEBUGINFOD_TIMEOUT_MS 5000
#define DEBUGINFOD_TOTAL_MS   300000
#define MAX_WORKERS	      64
/* Time between two callbacks. */
#define TICK_MS 100
/* How many files may delay their workers, so that they do not keep the look-up busy for ever. */
#define MAX_LATE 4
/* Memory that reading takes in addition to debug sections. */
#define SPARE_MEMORY (1UL << 30)

_Static_assert(sizeof(struct symbols_line) == sizeof(struct address_line), "they are the same");

/* The look-up of one module. */
struct job {
	struct named_module *module;
	struct module_job run;
	struct module_job better; /* second pass, with fetched files */
	size_t n_noted;		  /* number of addresses that already count in n_done */
	bool is_better;		  /* the results of @better are applied */
};

/* A worker and the job that it does. */
struct slot {
	struct look_up *look_up;
	struct worker *worker;
	struct job *job; /* NULL: idle */
};

/* The look-up. All modules are first looked up in local files, then again those for which a server
 * may have a file; if that fails, the first results are kept. */
struct look_up {
	struct symbols *symbols;
	struct job *jobs;
	size_t n_jobs;
	struct slot slots[MAX_WORKERS];
	size_t n_slots;
	size_t next_job;
	bool is_fetching;    /* the second pass is running */
	bool is_over;	     /* start no more jobs */
	unsigned int n_late; /* number of workers that were killed for taking too long */
	bool has_ended;	     /* the client of the servers has ended, and the reason was reported */
	size_t n_done, n_addresses, reported_done;
	__u64 reported_ms;
	struct debuginfod *debuginfod;
	const char *fetch_path; /* NULL: nothing is being fetched */
	long fetch_done, fetch_total;
};

/* Runs the callbacks. */
static void report(struct look_up *look_up)
{
	const struct symbols_options *options = &look_up->symbols->options;

	look_up->reported_ms = clock__now_ns() / NS_PER_MS;
	if (options->progress && look_up->n_done != look_up->reported_done)
		options->progress(options->context, look_up->n_done, look_up->n_addresses);
	look_up->reported_done = look_up->n_done;
	if (options->fetching && look_up->fetch_path)
		options->fetching(options->context, look_up->fetch_path, look_up->fetch_done,
				  look_up->fetch_total);
	if (options->stop && options->stop(options->context))
		look_up->is_over = true;
}

/* Called during a download. */
static int note_fetched(void *context, long done_bytes, long total_bytes)
{
	struct look_up *look_up = context;

	look_up->fetch_done = done_bytes;
	look_up->fetch_total = total_bytes;
	report(look_up);
	return look_up->is_over;
}

/* Reports why nothing more is fetched: @err is the error of debuginfod__fetch() that ended the
 * client. */
static void explain_end(struct look_up *look_up, const char *path, int err)
{
	struct symbols *symbols = look_up->symbols;
	unsigned int timeout_ms = symbols->options.debuginfod_timeout_ms ?: DEBUGINFOD_TIMEOUT_MS;
	char *text = symbols->fetch_problem;
	size_t size = sizeof(symbols->fetch_problem);

	if (look_up->has_ended)
		return;
	look_up->has_ended = true;
	if (err == -ETIMEDOUT)
		snprintf(
			text, size,
			"the debuginfod servers sent nothing for %g s, or nearly so, when they were "
			"asked for the debug file of %.256s",
			timeout_ms / 1e3, path);
	else if (err == -ETIME)
		snprintf(text, size, "fetching from the debuginfod servers took longer than %d s",
			 DEBUGINFOD_TOTAL_MS / 1000);
	else if (err == -ECANCELED)
		snprintf(text, size, "fetching from the debuginfod servers was interrupted");
	else
		snprintf(text, size,
			 "%s, the client of the debuginfod servers, is missing or has crashed",
			 debuginfod__client);
}

/* Reports why this file was not fetched, unless that was reported of another one. */
static void explain_file(struct look_up *look_up, const char *path, int err)
{
	char *text = look_up->symbols->fetch_problem;
	size_t size = sizeof(look_up->symbols->fetch_problem);

	if (*text)
		return;
	if (err == -ENOEXEC)
		snprintf(text, size,
			 "a debuginfod server sent something other than an ELF file as the debug "
			 "file of %.256s",
			 path);
	else if (err == -EACCES || err == -EPERM || err == -EROFS || err == -ENOSPC ||
		 err == -EDQUOT)
		snprintf(text, size,
			 "what the debuginfod servers send cannot be kept: %s; let "
			 "DEBUGINFOD_CACHE_PATH name another directory%s",
			 strerror(-err),
			 geteuid() ? "" : ", no part of which others than root may write to");
	else
		snprintf(text, size,
			 "the debuginfod servers could not be asked for the debug file of "
			 "%.256s: %s",
			 path, strerror(-err));
}

/* worker_options.answer: returns the debug file of the build id for which the worker asks. */
static int fetch(void *context, struct wire_reader *question)
{
	struct slot *slot = context;
	struct look_up *look_up = slot->look_up;
	const char *build_id = wire__get_string(question, BUILD_ID_SIZE);
	int fd;

	if (!build_id || !wire__is_read(question) || !slot->job || !look_up->debuginfod)
		return -EINVAL;
	look_up->fetch_path = slot->job->module->path;
	look_up->fetch_done = look_up->fetch_total = 0;
	fd = debuginfod__fetch(look_up->debuginfod, build_id);
	if (fd < 0 && debuginfod__is_ended(look_up->debuginfod))
		explain_end(look_up, look_up->fetch_path, fd);
	else if (fd < 0 && fd != -ENOENT)
		explain_file(look_up, look_up->fetch_path, fd);
	look_up->fetch_path = NULL;
	return fd;
}

/* worker_options.note: counts @n_done further addresses. */
static void note_done(void *context, __u64 n_done)
{
	struct slot *slot = context;
	struct job *job = slot->job;

	if (!job || slot->look_up->is_fetching || n_done > job->run.n_addresses - job->n_noted)
		return;
	job->n_noted += n_done;
	slot->look_up->n_done += n_done;
}

static struct job *take_job(struct look_up *look_up)
{
	while (look_up->next_job < look_up->n_jobs && !look_up->is_over) {
		struct job *job = &look_up->jobs[look_up->next_job++];

		if (!look_up->is_fetching || job->run.wants_file)
			return job;
	}
	return NULL;
}

static struct module_job *run_of(const struct look_up *look_up, struct job *job)
{
	return look_up->is_fetching ? &job->better : &job->run;
}

/* Drops the results of @run, and notes why there are none. */
static void note_failure(const struct slot *slot, struct module_job *run, int err)
{
	for (size_t i = 0; i < run->n_addresses; i++)
		run->addresses[i].n_lines = 0;
	run->wants_file = false;
	run->is_unread = true;
	if (err == -ECANCELED)
		snprintf(run->text, sizeof(run->text),
			 "it was not read: reading each of %d other files took too long", MAX_LATE);
	else if (worker__has_failed(slot->worker))
		snprintf(run->text, sizeof(run->text),
			 "it could not be read safely: the process that read it %s",
			 worker__problem(slot->worker));
	else if (err == -ENOMEM)
		snprintf(run->text, sizeof(run->text), "reading it takes too much memory");
	else
		snprintf(run->text, sizeof(run->text), "it could not be read: %s", strerror(-err));
}

static void finish_job(struct slot *slot, int err)
{
	struct look_up *look_up = slot->look_up;
	struct job *job = slot->job;

	slot->job = NULL;
	look_up->n_late += err == -ETIMEDOUT && worker__has_failed(slot->worker);
	if (err)
		note_failure(slot, run_of(look_up, job), err);
	if (look_up->is_fetching)
		job->is_better = !err;
	else
		look_up->n_done += job->run.n_addresses - job->n_noted;
}

static void start_job(struct slot *slot, struct job *job)
{
	const struct module_job *run = run_of(slot->look_up, job);
	struct wire_writer request = { 0 };
	int err;

	slot->job = job;
	if (slot->look_up->n_late >= MAX_LATE) {
		finish_job(slot, -ECANCELED);
		return;
	}
	module_wire__put_job(&request, run);
	err = worker__send(slot->worker, &request, &run->fd, run->fd >= 0);
	wire__release(&request);
	if (err)
		finish_job(slot, err);
}

/* Receives the result of a job. Returns 0, -ENOMEM if this process has no memory, or -EAGAIN while
 * there is no result. */
static int receive(struct slot *slot)
{
	struct module_job *run = run_of(slot->look_up, slot->job);
	struct wire_reader reply;
	int err = worker__receive(slot->worker, &reply);

	if (err == -EAGAIN)
		return err;
	if (!err) {
		err = module_wire__get_result(&reply, run);
		if (err == -ENOMEM)
			return err;
		if (err)
			err = worker__refuse(slot->worker);
	}
	finish_job(slot, err);
	return 0;
}

static void wait_for_slots(const struct look_up *look_up)
{
	struct pollfd polled[MAX_WORKERS];
	size_t n = 0;

	for (size_t i = 0; i < look_up->n_slots; i++)
		if (look_up->slots[i].job)
			polled[n++] = (struct pollfd){ .fd = worker__fd(look_up->slots[i].worker),
						       .events = POLLIN };
	poll(polled, n, TICK_MS);
}

/* Gives jobs to all idle workers. Returns whether any worker has one. */
static bool start_jobs(struct look_up *look_up)
{
	bool is_busy = false;

	for (size_t i = 0; i < look_up->n_slots; i++) {
		struct slot *slot = &look_up->slots[i];
		struct job *job;

		while (!slot->job && (job = take_job(look_up)))
			start_job(slot, job);
		is_busy |= slot->job != NULL;
	}
	return is_busy;
}

/* Runs the jobs of one pass. Returns 0, -EINTR if it was stopped before all were done, or -ENOMEM. */
static int run_jobs(struct look_up *look_up)
{
	look_up->next_job = 0;
	while (start_jobs(look_up)) {
		wait_for_slots(look_up);
		for (size_t i = 0; i < look_up->n_slots; i++)
			if (look_up->slots[i].job && receive(&look_up->slots[i]) == -ENOMEM)
				return -ENOMEM;
		if (clock__now_ns() / NS_PER_MS >= look_up->reported_ms + TICK_MS)
			report(look_up);
		if (look_up->is_over)
			return -EINTR;
	}
	report(look_up);
	return look_up->next_job < look_up->n_jobs ? -EINTR : 0;
}

static int apply(struct job *job, symbols_found_fn found, void *context)
{
	const struct module_job *run = job->is_better ? &job->better : &job->run;
	int err = 0;

	free(job->module->text);
	job->module->text = strdup(run->text);
	job->module->is_unread = run->is_unread;
	if (!job->module->text)
		err = -ENOMEM;
	for (size_t i = 0; i < run->n_addresses && !err; i++) {
		struct symbols_query query = { job->module->id, run->addresses[i].vaddr };

		if (run->addresses[i].n_lines)
			err = found(context, &query, (const void *)run->addresses[i].lines,
				    run->addresses[i].n_lines);
	}
	return err;
}

static int make_workers(struct look_up *look_up)
{
	unsigned int wanted = look_up->symbols->options.workers;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = processors > 0 ? processors : 1;

	if (wanted && wanted < n)
		n = wanted;
	if (n > MAX_WORKERS)
		n = MAX_WORKERS;
	if (n > look_up->n_jobs)
		n = look_up->n_jobs;
	for (; look_up->n_slots < n; look_up->n_slots++) {
		struct slot *slot = &look_up->slots[look_up->n_slots];

		slot->look_up = look_up;
		slot->worker = worker__new(&(struct worker_options){
			.name = "allocprof-names",
			.serve = module_wire__serve,
			.answer = fetch,
			.note = note_done,
			.context = slot,
			.timeout_ms = module_job__timeout_ms(),
			.memory_bytes = debug_file__most_memory_bytes() + SPARE_MEMORY,
		});
		if (!slot->worker)
			return -ENOMEM;
	}
	return 0;
}

/* Prepares the second pass of the job: the same module, new arrays, with debuginfod. */
static int prepare_better(struct job *job)
{
	job->better = job->run;
	job->better.arena = (struct arena){ 0 };
	job->better.with_servers = true;
	job->better.addresses = calloc(job->run.n_addresses, sizeof(*job->better.addresses));
	if (!job->better.addresses)
		return -ENOMEM;
	for (size_t i = 0; i < job->run.n_addresses; i++)
		job->better.addresses[i].vaddr = job->run.addresses[i].vaddr;
	return 0;
}

static int fetch_files(struct look_up *look_up)
{
	const struct symbols_options *symbols_options = &look_up->symbols->options;
	const struct debuginfod_options options = {
		.timeout_ms = symbols_options->debuginfod_timeout_ms ?: DEBUGINFOD_TIMEOUT_MS,
		.total_ms = DEBUGINFOD_TOTAL_MS,
		.progress = note_fetched,
		.context = look_up,
	};
	bool is_wanted = false;
	int err = 0;

	for (size_t i = 0; i < look_up->n_jobs && !err; i++) {
		if (!look_up->jobs[i].run.wants_file)
			continue;
		is_wanted = true;
		err = prepare_better(&look_up->jobs[i]);
	}
	if (err || !is_wanted)
		return err;
	if (look_up->is_over) {
		explain_end(look_up, "", -ECANCELED);
		return 0;
	}
	look_up->debuginfod = debuginfod__new(&options);
	if (!look_up->debuginfod)
		return 0;
	look_up->is_fetching = true;
	err = run_jobs(look_up);
	debuginfod__free(look_up->debuginfod);
	return err == -ENOMEM ? err : 0;
}

/* Runs all jobs, then applies their results in order. */
static int run_all_jobs(struct look_up *look_up, symbols_found_fn found, void *context)
{
	int err = make_workers(look_up);

	if (!err)
		err = run_jobs(look_up);
	if (!err && look_up->symbols->options.debuginfod)
		err = fetch_files(look_up);
	for (size_t i = 0; i < look_up->n_jobs && !err; i++) {
		err = apply(&look_up->jobs[i], found, context);
		module_job__release(&look_up->jobs[i].run);
		module_job__release(&look_up->jobs[i].better);
	}
	return err;
}

static int compare_queries(const void *left, const void *right)
{
	const struct symbols_query *a = left, *b = right;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Compares jobs, so that those that take longest start first. */
static int compare_jobs(const void *left, const void *right)
{
	const struct job *a = left, *b = right;

	if (a->run.n_addresses != b->run.n_addresses)
		return a->run.n_addresses > b->run.n_addresses ? -1 : 1;
	return (a->module->id > b->module->id) - (a->module->id < b->module->id);
}

/* Makes a job for the module of @n sorted queries. */
static int make_job(struct look_up *look_up, const struct symbols_query *queries, size_t n)
{
	const struct symbols_options *options = &look_up->symbols->options;
	struct named_module *module = symbols__find_module(look_up->symbols, queries->module);
	struct job *job = &look_up->jobs[look_up->n_jobs];
	struct address *addresses;
	size_t n_addresses = 0;

	if (!module)
		return 0;
	addresses = calloc(n, sizeof(*addresses));
	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!i || queries[i].vaddr != queries[i - 1].vaddr)
			addresses[n_addresses++].vaddr = queries[i].vaddr;
	job->module = module;
	job->run = (struct module_job){
		.fd = module->fd,
		.path = module->path,
		.build_id = module->build_id,
		.debug_dirs = options->debug_dirs,
		.n_debug_dirs = options->n_debug_dirs,
		.addresses = addresses,
		.n_addresses = n_addresses,
	};
	look_up->n_jobs++;
	look_up->n_addresses += n_addresses;
	return 0;
}

static int make_jobs(struct look_up *look_up, const struct symbols_query *queries, size_t n)
{
	size_t n_modules = 0, last;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		n_modules += !i || queries[i].module != queries[i - 1].module;
	look_up->jobs = calloc(n_modules + 1, sizeof(*look_up->jobs));
	if (!look_up->jobs)
		return -ENOMEM;
	for (size_t first = 0; first < n && !err; first = last) {
		last = first + 1;
		while (last < n && queries[last].module == queries[first].module)
			last++;
		err = make_job(look_up, queries + first, last - first);
	}
	qsort(look_up->jobs, look_up->n_jobs, sizeof(*look_up->jobs), compare_jobs);
	return err;
}

int symbols__look_up(struct symbols *symbols, const struct symbols_query *queries, size_t n,
		     symbols_found_fn found, void *context)
{
	struct look_up look_up = { .symbols = symbols };
	_cleanup_(free_ptr) struct symbols_query *sorted =
		reallocarray(NULL, n + 1, sizeof(*sorted));
	int err;

	if (!sorted)
		return -ENOMEM;
	if (n)
		memcpy(sorted, queries, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_queries);
	err = make_jobs(&look_up, sorted, n);
	if (!err && look_up.n_jobs)
		err = run_all_jobs(&look_up, found, context);
	for (size_t i = 0; i < look_up.n_slots; i++)
		worker__free(look_up.slots[i].worker);
	for (size_t i = 0; i < look_up.n_jobs; i++) {
		module_job__release(&look_up.jobs[i].run);
		module_job__release(&look_up.jobs[i].better);
	}
	free(look_up.jobs);
	return err;
}

struct symbols *symbols__new(const struct symbols_options *options)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	elf_version(EV_CURRENT);
	if (symbols && options)
		symbols->options = *options;
	return symbols;
}

static void release_module(struct named_module *module)
{
	free(module->path);
	free(module->build_id);
	free(module->text);
	close_fd(&module->fd);
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->n_modules; i++)
		release_module(&symbols->modules[i]);
	free(symbols->modules);
	hash_table__release(&symbols->index);
	free(symbols);
}

static bool match_module(const void *owner, __u32 at, const void *key)
{
	return ((const struct symbols *)owner)->modules[at - 1].id == *(const __u32 *)key;
}

/* Returns the module; NULL if there is none. */
static struct named_module *symbols__find_module(const struct symbols *symbols, __u32 id)
{
	__u32 at = hash_table__find(&symbols->index, hash_mix(0, id), match_module, symbols, &id);

	return at ? &symbols->modules[at - 1] : NULL;
}

int symbols__add_module(struct symbols *symbols, __u32 id, int fd, const char *path,
			const char *build_id)
{
	struct named_module module = { .id = id, .fd = -1 };
	struct named_module *grown;
	int err = -ENOMEM;

	if (!id)
		return -EINVAL;
	if (symbols__find_module(symbols, id))
		return -EEXIST;
	grown = reallocarray(symbols->modules, symbols->n_modules + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	symbols->modules = grown;
	module.path = strdup(path);
	module.build_id = strdup(build_id);
	if (!module.path || !module.build_id)
		goto fail;
	if (fd >= 0) {
		module.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (module.fd < 0) {
			err = -errno;
			goto fail;
		}
	}
	symbols->modules[symbols->n_modules] = module;
	err = hash_table__insert(&symbols->index, hash_mix(0, id), symbols->n_modules + 1);
	if (err)
		goto fail;
	symbols->n_modules++;
	return 0;
fail:
	release_module(&module);
	return err;
}

int symbols__open_file(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = symbols__find_module(symbols, id);
	int fd;

	if (!module)
		return -ENOENT;
	if (module->fd >= 0) {
		fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	/* A mapping without a file has no absolute path. */
	return *module->path == '/' ? worker__open_file(module->path) : -ENOENT;
}

bool symbols__is_file(const struct symbols *symbols, __u32 id, const struct elf_file *elf)
{
	const struct named_module *module = symbols__find_module(symbols, id);

	return module && (!*module->build_id || !strcmp(module->build_id, elf_file__build_id(elf)));
}

const char *symbols__module_text(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = symbols__find_module(symbols, id);

	return module && module->text ? module->text : "";
}

bool symbols__is_unread(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = symbols__find_module(symbols, id);

	return module && module->is_unread;
}

const char *symbols__fetch_problem(const struct symbols *symbols)
{
	return symbols->fetch_problem;
}

bool symbols__have_servers(void)
{
	return debuginfod__has_servers();
}
