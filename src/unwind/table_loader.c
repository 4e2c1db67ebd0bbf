// SPDX-License-Identifier: GPL-3.0-or-later
#include "table_loader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "cfi.h"
#include "parser.h"
#include "table_cache.h"
#include "thread.h"

/* Assumed size of the entry point's code in a file without any call frame information (musl's). */
#define BARE_ENTRY_BYTES 64

struct loader_file {
	struct table_file source;
	struct loaded_table loaded;
	bool done; /* loaded is set */
};

enum urgency {
	JOB_NONE,
	JOB_MET, /* code of the file will be executed */
	JOB_HIT,
	JOB_AWAITED, /* a probe waits for the table, or did until recently */
	JOB_ASKED,   /* a thread of this process waits for it */
};

struct job {
	size_t file;
	__u32 module; /* 0: only the file's tables are requested */
	enum urgency urgency;
};

struct table_loader {
	/* Process that has the thread; after a fork the child has none, and need not lock. */
	pid_t pid;
	struct unwind_tables *tables;
	struct table_cache *cache;
	struct parser *parser;
	const __u32 *awaited;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t changed;
	struct loader_file *files;
	size_t n_files, files_room;
	struct job *jobs; /* in the order of their arrival */
	size_t n_jobs, jobs_room;
	bool works; /* a job is being done */
	bool has_worked;
	bool finishing, quit;
};

struct table_loader *table_loader__new(const struct table_loader_options *options)
{
	struct table_loader *loader = calloc(1, sizeof(*loader));

	if (!loader || !options->tables) {
		unwind_tables__free(options->tables);
		table_cache__close(options->cache);
		parser__free(options->parser);
		free(loader);
		return NULL;
	}
	loader->pid = getpid();
	loader->awaited = options->awaited;
	loader->cache = options->cache;
	loader->parser = options->parser;
	pthread_mutex_init(&loader->lock, NULL);
	pthread_cond_init(&loader->changed, NULL);
	loader->tables = options->tables;
	return loader;
}

static bool is_ours(const struct table_loader *loader)
{
	return loader->pid == getpid();
}

void table_loader__free(struct table_loader *loader)
{
	if (!loader)
		return;
	if (loader->has_thread && is_ours(loader)) {
		pthread_mutex_lock(&loader->lock);
		loader->quit = true;
		pthread_cond_broadcast(&loader->changed);
		pthread_mutex_unlock(&loader->lock);
		pthread_join(loader->thread, NULL);
	}
	unwind_tables__free(loader->tables);
	table_cache__close(loader->cache);
	parser__free(loader->parser);
	free(loader->files);
	free(loader->jobs);
	free(loader);
}

/* Finds the entry point's code, which is the outermost frame even if its call frame information
 * does not say so. */
static void find_entry(const struct table_file *file, const struct cfi_table *table,
		       struct loaded_table *loaded)
{
	struct cfi_range range = { .lo = file->entry, .hi = file->entry + BARE_ENTRY_BYTES };

	if (!file->has_entry)
		return;
	if (table && cfi_table__range(table, file->entry, &range) &&
	    range.rule.cfa != UNWIND_CFA_NONE)
		return;
	loaded->entry_offset = file->entry_offset;
	/* This includes the return address behind the last call. */
	loaded->entry_size = range.hi - file->entry + 1;
}

static struct cfi_table *get_table(struct table_loader *loader, const struct table_file *file)
{
	struct cfi_table *table = NULL;
	struct table_key key;
	bool is_cached;

	if (file->fd < 0 || !loader->parser)
		return NULL;
	is_cached = loader->cache && !table_key__of(file->fd, file->build_id, &key);
	if (is_cached && !table_cache__get(loader->cache, &key, &table))
		return table;
	if (cfi_table__build_by(loader->parser, file->fd, file->path, &table, NULL))
		return NULL;
	if (is_cached)
		table_cache__put(loader->cache, &key, file->fd, table);
	return table;
}

/* Loads a file's table. Without call frame information, or without room for it, the programs
 * unwind the file like code without it, and mark each stack. */
static void load(struct table_loader *loader, const struct table_file *file,
		 struct loaded_table *loaded)
{
	struct cfi_table *table = get_table(loader, file);

	if (table)
		unwind_tables__load(loader->tables, table, loaded);
	find_entry(file, table, loaded);
	cfi_table__free(table);
}

static enum urgency urgency_of(const struct table_loader *loader, const struct job *job)
{
	if (job->urgency == JOB_ASKED)
		return JOB_ASKED;
	if (loader->finishing)
		return JOB_NONE;
	if (loader->awaited && job->module == __atomic_load_n(loader->awaited, __ATOMIC_RELAXED))
		return JOB_AWAITED;
	return job->urgency;
}

/* Removes the oldest of the most urgent jobs. Returns false if there is none. */
static bool take_job(struct table_loader *loader, struct job *out)
{
	enum urgency most = JOB_NONE;
	size_t at = 0;

	for (size_t i = 0; i < loader->n_jobs; i++) {
		enum urgency urgency = urgency_of(loader, &loader->jobs[i]);

		if (urgency > most) {
			most = urgency;
			at = i;
		}
	}
	if (most == JOB_NONE)
		return false;
	*out = loader->jobs[at];
	loader->n_jobs--;
	for (; at < loader->n_jobs; at++)
		loader->jobs[at] = loader->jobs[at + 1];
	return true;
}

/* Does a job. Called with the lock held, which it drops during the work. */
static void do_job(struct table_loader *loader, const struct job *job)
{
	struct table_file source = loader->files[job->file].source;
	struct loaded_table loaded = loader->files[job->file].loaded;
	bool done = loader->files[job->file].done;

	loader->works = true;
	pthread_mutex_unlock(&loader->lock);
	if (!done)
		load(loader, &source, &loaded);
	/*
	 * Fails only for modules beyond the map's size, which the programs do not look up either.
	 */
	if (job->module)
		unwind_tables__assign(loader->tables, job->module, &loaded);
	pthread_mutex_lock(&loader->lock);
	loader->files[job->file].loaded = loaded;
	/* Release order, also for a child that is forked at this moment. */
	__atomic_store_n(&loader->files[job->file].done, true, __ATOMIC_RELEASE);
	loader->works = false;
	loader->has_worked = true;
	pthread_cond_broadcast(&loader->changed);
}

/* Makes room for further tables. Called when idle: no probe waits for a table, so the grace period
 * is short. If it fails, the next tables have to wait for their own. */
static void prepare(struct table_loader *loader)
{
	pthread_mutex_unlock(&loader->lock);
	unwind_tables__prepare(loader->tables);
	pthread_mutex_lock(&loader->lock);
}

static void *work(void *context)
{
	struct table_loader *loader = context;
	struct job job;

	pthread_mutex_lock(&loader->lock);
	while (!loader->quit) {
		if (take_job(loader, &job)) {
			do_job(loader, &job);
			if (!loader->n_jobs && !loader->finishing)
				prepare(loader);
		} else {
			pthread_cond_wait(&loader->changed, &loader->lock);
		}
	}
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

static void start_thread(struct table_loader *loader)
{
	loader->has_thread = thread__start(&loader->thread, work, loader);
}

/* Adds a job. To be called with the lock held. */
static int add_job(struct table_loader *loader, size_t number, __u32 module, enum urgency urgency)
{
	struct job job;

	if (array__reserve(&loader->jobs, &loader->jobs_room, loader->n_jobs + 1,
			   sizeof(*loader->jobs)))
		return -ENOMEM;
	loader->jobs[loader->n_jobs++] =
		(struct job){ .file = number, .module = module, .urgency = urgency };
	if (!loader->has_thread)
		start_thread(loader);
	/* Without a thread the job is done synchronously. */
	while (!loader->has_thread && take_job(loader, &job))
		do_job(loader, &job);
	pthread_cond_broadcast(&loader->changed);
	return 0;
}

int table_loader__add(struct table_loader *loader, const struct table_file *file, size_t *number)
{
	bool is_locked = is_ours(loader);
	int err;

	if (is_locked)
		pthread_mutex_lock(&loader->lock);
	err = array__reserve(&loader->files, &loader->files_room, loader->n_files + 1,
			     sizeof(*loader->files));
	if (!err) {
		loader->files[loader->n_files] = (struct loader_file){ .source = *file };
		*number = loader->n_files++;
	}
	if (is_locked)
		pthread_mutex_unlock(&loader->lock);
	return err;
}

int table_loader__assign(struct table_loader *loader, size_t number, __u32 module, bool hit)
{
	int err;

	if (!is_ours(loader))
		return 0;
	pthread_mutex_lock(&loader->lock);
	err = add_job(loader, number, module, hit ? JOB_HIT : JOB_MET);
	pthread_mutex_unlock(&loader->lock);
	return err;
}

void table_loader__wait(struct table_loader *loader)
{
	pthread_mutex_lock(&loader->lock);
	while (loader->n_jobs || loader->works)
		pthread_cond_wait(&loader->changed, &loader->lock);
	pthread_mutex_unlock(&loader->lock);
}

bool table_loader__progresses(struct table_loader *loader)
{
	bool progresses;

	pthread_mutex_lock(&loader->lock);
	progresses = loader->has_worked || (!loader->n_jobs && !loader->works);
	loader->has_worked = false;
	pthread_mutex_unlock(&loader->lock);
	return progresses;
}

void table_loader__finish(struct table_loader *loader)
{
	pthread_mutex_lock(&loader->lock);
	loader->finishing = true;
	pthread_mutex_unlock(&loader->lock);
}

int table_loader__find(struct table_loader *loader, size_t number, struct loaded_table *loaded)
{
	int err = 0;

	if (!is_ours(loader)) {
		if (!loader->files[number].done)
			return -EAGAIN;
		*loaded = loader->files[number].loaded;
		return 0;
	}
	pthread_mutex_lock(&loader->lock);
	if (!loader->files[number].done)
		err = add_job(loader, number, 0, JOB_ASKED);
	while (!err && !loader->files[number].done)
		pthread_cond_wait(&loader->changed, &loader->lock);
	if (!err)
		*loaded = loader->files[number].loaded;
	pthread_mutex_unlock(&loader->lock);
	return err;
}
