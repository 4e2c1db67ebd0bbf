// SPDX-License-Identifier: GPL-3.0-or-later
#include "symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cleanup.h"
#include "debug_file.h"
#include "debuginfod.h"
#include "elf_file.h"
#include "hash_table.h"
#include "symbols_module.h"

/* Default limits: without progress, and for all files together. */
#define DEBUGINFOD_TIMEOUT_MS 5000
#define DEBUGINFOD_TOTAL_MS   300000
#define MAX_THREADS	      64
/* Interval between the callbacks. */
#define TICK_NS 100000000

_Static_assert(sizeof(struct symbols_line) == sizeof(struct place_line), "they are the same");

struct named_module {
	__u32 id;
	int fd;
	char *path, *build_id;
	char *text; /* NULL: nothing was looked up */
};

struct symbols {
	struct symbols_options options;
	struct named_module *modules;
	size_t n_modules;
	struct hash_table index;
	char fetch_problem[512]; /* "": none */
};

/* The look-up of one module. */
struct job {
	struct named_module *module;
	struct module_job run;
	struct module_job better; /* second pass, with fetched files */
	struct look_up *look_up;
	size_t n_noted; /* addresses already counted in n_done */
	bool is_done;
	bool is_better; /* apply better instead */
	int err;
};

/* State that the threads of a look-up share. First all modules are looked up in local files, then
 * those again for which a server may have a file; if that fails, the first results stand. */
struct look_up {
	struct symbols *symbols;
	struct job *jobs;
	size_t n_jobs;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t changed;
	size_t next_job, n_jobs_done;
	bool is_fetching; /* in the second pass */
	bool is_over;	  /* start no more jobs */
	size_t n_done, n_places;
	pthread_mutex_t fetching; /* held during a download; taken before @lock */
	struct debuginfod *debuginfod;
	const char *fetch_path; /* NULL: no change to report */
	long fetch_done, fetch_total;
};

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

static struct named_module *find_module(const struct symbols *symbols, __u32 id)
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
	if (find_module(symbols, id))
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

int symbols__open_code(const struct symbols *symbols, __u32 id, struct elf_file **out)
{
	const struct named_module *module = find_module(symbols, id);
	_cleanup_(close_fd) int fd = -1;
	int err;

	if (!module)
		return -ENOENT;
	/* A mapping without a file has no absolute path. */
	if (module->fd >= 0)
		fd = fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
	else if (*module->path == '/')
		fd = debug_file__open_path(module->path);
	if (fd < 0)
		return -ENOENT;
	err = elf_file__open(fd, module->path, out, NULL);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	if (!*module->build_id || !strcmp(module->build_id, elf_file__build_id(*out)))
		return 0;
	elf_file__free(*out);
	return -ENOENT;
}

const char *symbols__module_text(const struct symbols *symbols, __u32 id)
{
	const struct named_module *module = find_module(symbols, id);

	return module && module->text ? module->text : "";
}

const char *symbols__fetch_problem(const struct symbols *symbols)
{
	return symbols->fetch_problem;
}

/* Called by a thread during a download. */
static int note_fetched(void *context, long done_bytes, long total_bytes)
{
	struct look_up *look_up = context;
	int stop;

	pthread_mutex_lock(&look_up->lock);
	look_up->fetch_done = done_bytes;
	look_up->fetch_total = total_bytes;
	stop = look_up->is_over;
	pthread_cond_signal(&look_up->changed);
	pthread_mutex_unlock(&look_up->lock);
	return stop;
}

/* Keeps the reason of the first error, after which nothing is fetched. */
static void explain(struct look_up *look_up, const char *path, int err)
{
	struct symbols *symbols = look_up->symbols;
	unsigned int timeout_ms = symbols->options.debuginfod_timeout_ms ?: DEBUGINFOD_TIMEOUT_MS;
	char *text = symbols->fetch_problem;
	size_t size = sizeof(symbols->fetch_problem);

	if (*text)
		return;
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
			 "libdebuginfod, the client of the debuginfod servers, is missing or has "
			 "crashed");
}

/* Fetches the debug file of a build id: 0 and its path in *@debug_path, to be freed. */
static int fetch(void *context, const char *path, const char *build_id, char **debug_path)
{
	struct look_up *look_up = ((struct job *)context)->look_up;
	int err;

	pthread_mutex_lock(&look_up->fetching);
	pthread_mutex_lock(&look_up->lock);
	look_up->fetch_path = path;
	look_up->fetch_done = look_up->fetch_total = 0;
	pthread_mutex_unlock(&look_up->lock);
	err = debuginfod__fetch(look_up->debuginfod, build_id, debug_path);
	pthread_mutex_lock(&look_up->lock);
	look_up->fetch_path = NULL;
	if (err && debuginfod__is_ended(look_up->debuginfod))
		explain(look_up, path, err);
	pthread_mutex_unlock(&look_up->lock);
	pthread_mutex_unlock(&look_up->fetching);
	return err;
}

static void note_done(void *context, size_t n_done)
{
	struct job *job = context;
	struct look_up *look_up = job->look_up;

	pthread_mutex_lock(&look_up->lock);
	job->n_noted += n_done;
	look_up->n_done += n_done;
	pthread_cond_signal(&look_up->changed);
	pthread_mutex_unlock(&look_up->lock);
}

/* The next job to run, or NULL. Call with @lock held. */
static struct job *take_job(struct look_up *look_up)
{
	while (look_up->next_job < look_up->n_jobs && !look_up->is_over) {
		struct job *job = &look_up->jobs[look_up->next_job++];

		if (!look_up->is_fetching || job->run.wants_file)
			return job;
		look_up->n_jobs_done++;
	}
	return NULL;
}

static void *work(void *context)
{
	struct look_up *look_up = context;
	struct job *job;

	pthread_mutex_lock(&look_up->lock);
	while ((job = take_job(look_up))) {
		struct module_job *run = look_up->is_fetching ? &job->better : &job->run;
		int err;

		pthread_mutex_unlock(&look_up->lock);
		err = module_job__run(run);
		pthread_mutex_lock(&look_up->lock);
		if (look_up->is_fetching) {
			job->is_better = !err;
		} else {
			job->err = err;
			look_up->n_done += job->run.n_places - job->n_noted;
		}
		job->is_done = true;
		look_up->n_jobs_done++;
		pthread_cond_signal(&look_up->changed);
	}
	pthread_mutex_unlock(&look_up->lock);
	return NULL;
}

/* Runs the callbacks, in the calling thread only. Call with @lock held; drops it meanwhile. */
static void report(struct look_up *look_up, size_t *reported_done)
{
	const struct symbols_options *options = &look_up->symbols->options;
	const char *path = look_up->fetch_path;
	long done_bytes = look_up->fetch_done, total_bytes = look_up->fetch_total;
	size_t done = look_up->n_done;
	bool stop = false;

	pthread_mutex_unlock(&look_up->lock);
	if (options->progress && done != *reported_done)
		options->progress(options->context, done, look_up->n_places);
	*reported_done = done;
	/* The path belongs to a module, which outlives the download. */
	if (options->fetching && path)
		options->fetching(options->context, path, done_bytes, total_bytes);
	if (options->stop)
		stop = options->stop(options->context);
	pthread_mutex_lock(&look_up->lock);
	look_up->is_over |= stop;
}

static int apply(struct job *job, symbols_found_fn found, void *context)
{
	const struct module_job *run = job->is_better ? &job->better : &job->run;
	int err = job->err;

	free(job->module->text);
	job->module->text = strdup(run->text);
	if (!job->module->text)
		err = -ENOMEM;
	for (size_t i = 0; i < run->n_places && !err; i++) {
		struct symbols_query query = { job->module->id, run->places[i].vaddr };

		if (run->places[i].n_lines)
			err = found(context, &query, (const void *)run->places[i].lines,
				    run->places[i].n_lines);
	}
	return err;
}

static void release_run(struct module_job *run)
{
	arena__release(&run->arena);
	free(run->places);
	run->places = NULL;
	run->n_places = 0;
}

static void wait_for_change(struct look_up *look_up)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_clockwait(&look_up->changed, &look_up->lock, CLOCK_MONOTONIC, &until);
}

static size_t n_threads(const struct look_up *look_up)
{
	unsigned int wanted = look_up->symbols->options.threads;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t n = processors > 0 ? processors : 1;

	if (wanted && wanted < n)
		n = wanted;
	if (n > MAX_THREADS)
		n = MAX_THREADS;
	return n < look_up->n_jobs ? n : look_up->n_jobs;
}

/* Runs the jobs of one pass; n_jobs_done says whether all were run. */
static void run_jobs(struct look_up *look_up)
{
	pthread_t threads[MAX_THREADS];
	size_t n = 0, wanted = n_threads(look_up), reported_done = 0;

	look_up->next_job = look_up->n_jobs_done = 0;
	while (n < wanted && !pthread_create(&threads[n], NULL, work, look_up))
		n++;
	if (!n)
		work(look_up);
	pthread_mutex_lock(&look_up->lock);
	while (look_up->n_jobs_done < look_up->n_jobs && !look_up->is_over) {
		wait_for_change(look_up);
		report(look_up, &reported_done);
	}
	report(look_up, &reported_done);
	pthread_mutex_unlock(&look_up->lock);
	while (n)
		pthread_join(threads[--n], NULL);
}

/* Prepares the second pass of the job: the same module, new arrays, with debuginfod. */
static int prepare_better(struct job *job)
{
	job->better = job->run;
	job->better.arena = (struct arena){ 0 };
	job->better.fetch = fetch;
	job->better.progress = NULL;
	job->better.places = calloc(job->run.n_places, sizeof(*job->better.places));
	if (!job->better.places)
		return -ENOMEM;
	for (size_t i = 0; i < job->run.n_places; i++)
		job->better.places[i].vaddr = job->run.places[i].vaddr;
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
		explain(look_up, "", -ECANCELED);
		return 0;
	}
	look_up->debuginfod = debuginfod__new(&options);
	if (!look_up->debuginfod)
		return 0;
	look_up->is_fetching = true;
	run_jobs(look_up);
	debuginfod__free(look_up->debuginfod);
	return 0;
}

/* Runs all jobs, then applies their results in order. */
static int run_all_jobs(struct look_up *look_up, symbols_found_fn found, void *context)
{
	int err = 0;

	run_jobs(look_up);
	if (look_up->n_jobs_done < look_up->n_jobs)
		return -EINTR;
	if (look_up->symbols->options.debuginfod)
		err = fetch_files(look_up);
	for (size_t i = 0; i < look_up->n_jobs && !err; i++) {
		err = apply(&look_up->jobs[i], found, context);
		release_run(&look_up->jobs[i].run);
		release_run(&look_up->jobs[i].better);
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

/* Jobs that take longest start first. */
static int compare_jobs(const void *left, const void *right)
{
	const struct job *a = left, *b = right;

	if (a->run.n_places != b->run.n_places)
		return a->run.n_places > b->run.n_places ? -1 : 1;
	return (a->module->id > b->module->id) - (a->module->id < b->module->id);
}

/* Makes a job for the module of @n sorted queries. */
static int make_job(struct look_up *look_up, const struct symbols_query *queries, size_t n)
{
	const struct symbols_options *options = &look_up->symbols->options;
	struct named_module *module = find_module(look_up->symbols, queries->module);
	struct job *job = &look_up->jobs[look_up->n_jobs];
	struct place *places;
	size_t n_places = 0;

	if (!module)
		return 0;
	places = calloc(n, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!i || queries[i].vaddr != queries[i - 1].vaddr)
			places[n_places++].vaddr = queries[i].vaddr;
	job->module = module;
	job->run = (struct module_job){
		.fd = module->fd,
		.path = module->path,
		.build_id = module->build_id,
		.debug_dirs = options->debug_dirs,
		.n_debug_dirs = options->n_debug_dirs,
		.places = places,
		.n_places = n_places,
		.progress = note_done,
	};
	job->look_up = look_up;
	look_up->n_jobs++;
	look_up->n_places += n_places;
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
	for (size_t i = 0; i < look_up->n_jobs; i++)
		look_up->jobs[i].run.context = &look_up->jobs[i];
	return err;
}

int symbols__look_up(struct symbols *symbols, const struct symbols_query *queries, size_t n,
		     symbols_found_fn found, void *context)
{
	struct look_up look_up = {
		.symbols = symbols,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
		.fetching = PTHREAD_MUTEX_INITIALIZER,
	};
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
	for (size_t i = 0; i < look_up.n_jobs; i++) {
		release_run(&look_up.jobs[i].run);
		release_run(&look_up.jobs[i].better);
	}
	free(look_up.jobs);
	return err;
}

bool symbols__have_servers(void)
{
	return debuginfod__has_servers();
}
