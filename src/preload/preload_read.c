// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the shared memory of the processes, and trusts nothing in it: chunks of data, programs,
 * threads, refusals. */
#include "preload_internal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "file.h"
#include "profile_totals.h"

/*
 * An index of programs by process number and PID namespace, so that the programs of a process are
 * found without going through all programs.
 */

static bool has_pid(const void *owner, __u32 id, const void *wanted)
{
	const struct pid_program *of_pid = &((const struct pid_programs *)owner)->list[id - 1];
	const struct pid_program *key = wanted;

	return of_pid->pid == key->pid && of_pid->pid_namespace == key->pid_namespace;
}

static __u64 hash_of(const struct pid_programs *programs, __u64 pid_namespace, __u32 pid)
{
	return hash_mix(hash_mix(programs->seed, pid_namespace), pid);
}

/* Returns NULL if no program was in the process. */
static const struct pid_program *pid_programs__find(const struct pid_programs *programs,
						    __u64 pid_namespace, __u32 pid)
{
	const struct pid_program key = { .pid_namespace = pid_namespace, .pid = pid };
	__u32 id = hash_table__find(&programs->index, hash_of(programs, pid_namespace, pid),
				    has_pid, programs, &key);

	return id ? &programs->list[id - 1] : NULL;
}

static int pid_programs__add(struct pid_programs *programs, __u64 pid_namespace, __u32 pid,
			     int program, bool has_exited)
{
	struct pid_program *of_pid =
		(struct pid_program *)pid_programs__find(programs, pid_namespace, pid);

	if (!of_pid) {
		if (array__reserve(&programs->list, &programs->room, programs->n + 1,
				   sizeof(*programs->list)) ||
		    hash_table__insert(&programs->index, hash_of(programs, pid_namespace, pid),
				       programs->n + 1))
			return -ENOMEM;
		of_pid = &programs->list[programs->n++];
		*of_pid = (struct pid_program){ .pid_namespace = pid_namespace, .pid = pid };
	}
	of_pid->last = program;
	/* After an exit the number may be another process's. */
	of_pid->not_exited = has_exited ? -1 : program;
	return 0;
}

static void pid_programs__release(struct pid_programs *programs)
{
	hash_table__release(&programs->index);
	free(programs->list);
}

__u64 reader__add(__u64 sum, __u64 n)
{
	if (n > AP_MAX_SUM)
		n = AP_MAX_SUM;
	return sum > AP_MAX_SUM - n ? AP_MAX_SUM : sum + n;
}

bool reader__get(struct reader *reader, __u64 offset, void *out, size_t size)
{
	if (offset < sizeof(struct inside_header) || offset > reader->end ||
	    size > reader->end - offset || offset % 8 || size > reader->left) {
		reader->n_damaged++;
		return false;
	}
	reader->left -= size;
	reader->read_bytes += size;
	if (fd__read_all_at(reader->fd, out, size, offset)) {
		reader->n_damaged++;
		return false;
	}
	return true;
}

__u64 reader__next_data(struct reader *reader, __u64 offset, __u64 end)
{
	off_t data = lseek(reader->fd, offset, SEEK_DATA);

	/* The seek is charged like the reading of a page, which costs about as much. */
	reader->left -= reader->left < INSIDE_PAGE ? reader->left : INSIDE_PAGE;
	if (data < 0)
		return errno == ENXIO ? end : offset;
	return (__u64)data < end ? (__u64)data : end;
}

/* At most READS times the size of the file, plus MORE_BYTES, is read. */
#define READS	   4
#define MORE_BYTES (64 << 20)

/* Returns for how many elements the array has chunks: the array's own @n, which processes write,
 * is no limit. */
static __u32 room_of(const struct inside_array *array)
{
	__u32 room = 0, begins = 0;

	for (int chunk = 0; chunk < INSIDE_CHUNKS; chunk++) {
		begins += (__u32)INSIDE_FIRST << chunk;
		if (array->chunks[chunk])
			room = begins;
	}
	return room;
}

static void set_limits(struct reader *reader, const struct stat *status)
{
	__u64 size_bytes = status->st_size < 0 ? 0 : status->st_size;
	__u64 most = (__u64)status->st_blocks * 512 * READS + MORE_BYTES;

	reader->end = reader->header.next < size_bytes ? reader->header.next : size_bytes;
	reader->left = most > reader->read_bytes ? most - reader->read_bytes : 0;
}

int reader__look_again(struct reader *reader)
{
	struct stat status;

	if (fstat(reader->fd, &status) ||
	    fd__read_all_at(reader->fd, &reader->header.next, sizeof(reader->header.next),
			    offsetof(struct inside_header, next)))
		return -EIO;
	set_limits(reader, &status);
	return 0;
}

int reader__begin(struct reader *reader, const struct preload *preload)
{
	struct stat status;
	__u64 most;

	if (fstat(preload->memory_fd, &status))
		return -errno;
	reader->fd = preload->memory_fd;
	reader->sampling = &preload->sampling;
	reader->functions = preload->functions;
	if (fd__read_all_at(reader->fd, &reader->header, sizeof(reader->header), 0))
		return -EIO;
	set_limits(reader, &status);
	most = (__u64)status.st_blocks * 512 / sizeof(struct inside_record);
	if (reader->header.live.n_records > most)
		reader->header.live.n_records = most;
	reader->n_programs = room_of(&reader->header.programs);
	if (reader->n_programs > reader->header.programs.n)
		reader->n_programs = reader->header.programs.n;
	return 0;
}

#define PART_BYTES (64 << 10)

/* Reads the elements @from to @to of the chunk at @offset, whose first element is number @begins
 * of the array. */
static int read_chunk(struct reader *reader, __u64 offset, __u32 begins, __u32 from, __u32 to,
		      size_t size, reader_take_t take)
{
	const __u32 at_once = PART_BYTES / size;
	char *elements = malloc(PART_BYTES);
	int err = elements ? 0 : -ENOMEM;

	while (from < to && !err) {
		__u32 n = to - from < at_once ? to - from : at_once;

		if (!reader__get(reader, offset + (__u64)from * size, elements, n * size))
			break;
		for (__u32 i = 0; i < n && !err; i++)
			err = take(reader, begins + from + i, elements + i * size);
		from += n;
	}
	free(elements);
	return err;
}

int reader__each(struct reader *reader, const struct inside_array *array, __u32 first, size_t size,
		 reader_take_t take)
{
	__u32 end = array->n, begins = 0;
	int err = 0;

	for (int chunk = 0; chunk < INSIDE_CHUNKS && begins < end && !err; chunk++) {
		__u32 n = (__u32)INSIDE_FIRST << chunk;

		if (n > end - begins)
			n = end - begins;
		/* There was no memory for this chunk when processes took elements of it. */
		if (!array->chunks[chunk]) {
			reader->n_unfinished += n;
			reader->n_without_chunk += n;
		} else {
			err = read_chunk(reader, array->chunks[chunk], begins,
					 first > begins ? first - begins : 0, n, size, take);
		}
		begins += (__u32)INSIDE_FIRST << chunk;
	}
	return err;
}

static void copy_text(char *out, const char *in, size_t size)
{
	memcpy(out, in, size);
	out[size] = 0;
}

/* Returns @ns, limited to 63 bits as all times in a data file are. */
static __u64 time_of(struct reader *reader, __u64 ns)
{
	reader->n_damaged += ns > AP_MAX_SUM;
	return ns > AP_MAX_SUM ? AP_MAX_SUM : ns;
}

/* A process that was attached to has the number that it has for allocprof. */
static void number_attached(const struct preload *preload, const struct inside_program *program,
			    struct preload_program *to)
{
	for (size_t i = 0; i < preload->n_attached; i++) {
		const struct attached_number *number = &preload->attached[i];

		if (preload->n_attached > 1 && (number->own_pid != program->pid ||
						number->pid_namespace != program->pid_namespace))
			continue;
		to->pid = number->pid;
		to->in_other_namespace = false;
		return;
	}
}

static int take_program(struct reader *reader, __u32 index, const void *element)
{
	struct preload_results *results = reader->results;
	const struct inside_program *program = element;
	const struct preload *preload = reader->context;
	const struct pid_program *parents, *own;
	struct preload_program *to;

	if (array__reserve(&results->programs, &reader->programs_room, results->n_programs + 1,
			   sizeof(*results->programs)))
		return -ENOMEM;
	to = &results->programs[results->n_programs++];
	/* An unfinished entry gets an element, too, so that the numbers of later ones stay right. */
	*to = (struct preload_program){ .before = -1, .parent_program = -1 };
	if (program->state != INSIDE_READY) {
		to->writer = program->pid;
		reader->n_unfinished++;
		return 0;
	}
	if (program->pid > INT32_MAX || program->parent > INT32_MAX) {
		reader->n_damaged++;
		return 0;
	}
	to->pid = program->pid;
	to->parent = program->parent;
	to->in_other_namespace = program->pid_namespace && preload->pid_namespace &&
				 program->pid_namespace != preload->pid_namespace;
	if (program->birth == INSIDE_BORN_ATTACHED)
		number_attached(preload, program, to);
	to->is_fork = program->birth == INSIDE_BORN_FORK;
	to->begin_ns = time_of(reader, program->begin_ns);
	to->end = program->ended <= INSIDE_EXECED ? program->ended : INSIDE_RUNS;
	to->end_ns = time_of(reader, program->end_ns);
	to->end_generation = program->end_generation;
	copy_text(to->comm, program->comm, sizeof(program->comm));
	if (program->argument_bytes < sizeof(program->arguments))
		to->argument_bytes = program->argument_bytes;
	memcpy(to->arguments, program->arguments, to->argument_bytes);
	parents = pid_programs__find(&reader->pids, program->pid_namespace, to->parent);
	if (parents)
		to->parent_program = parents->last;
	own = pid_programs__find(&reader->pids, program->pid_namespace, to->pid);
	if (!to->is_fork || !program->forked_from)
		to->before = own ? own->not_exited : -1;
	else if (program->forked_from < results->n_programs)
		to->before = program->forked_from - 1;
	else
		reader->n_damaged++;
	return pid_programs__add(&reader->pids, program->pid_namespace, to->pid,
				 results->n_programs - 1, to->end == INSIDE_EXITED);
}

bool refused__read(const struct inside_refused *refused, size_t n_programs,
		   struct preload_refused *out)
{
	*out = (struct preload_refused){
		.reason = refused->reason,
		.program = refused->program && refused->program <= n_programs
				   ? (int)refused->program - 1
				   : -1,
		.pid = refused->pid,
		.pid_namespace = refused->pid_namespace,
	};
	copy_text(out->path, refused->path, sizeof(out->path) - 1);
	return refused->reason < INSIDE_REFUSALS;
}

static int take_refused(struct reader *reader, __u32 index, const void *element)
{
	struct preload_results *results = reader->results;
	const struct inside_refused *refused = element;
	const struct preload *preload = reader->context;
	struct preload_refused *to;

	if (refused->state != INSIDE_READY) {
		reader->n_unfinished++;
		return 0;
	}
	if (array__reserve(&results->refused, &reader->refused_room, results->n_refused + 1,
			   sizeof(*results->refused)))
		return -ENOMEM;
	to = &results->refused[results->n_refused];
	if (!refused__read(refused, results->n_programs, to)) {
		reader->n_damaged++;
		return 0;
	}
	to->was_preloaded = pid_programs__find(&reader->pids, to->pid_namespace, to->pid);
	to->by_other_engine =
		index < preload->n_answers && preload->answers[index] == INSIDE_BY_OTHER;
	results->n_refused++;
	return 0;
}

void preload_results__add_thread(struct preload_results *results, struct reader *reader,
				 const struct inside_thread *thread)
{
	struct inside_thread_defined defined;

	if (thread->defined && reader__get(reader, thread->defined, &defined, sizeof(defined)))
		for (int i = AP_DEFINED; i < AP_FUNCTIONS; i++)
			site_counts__add(&results->functions[i],
					 &defined.functions[i - AP_DEFINED]);
	for (int i = 0; i < AP_DEFINED; i++)
		site_counts__add(&results->functions[i], &thread->functions[i]);
	for (int i = 0; i < AP_MAX_DEFINITIONS; i++)
		results->counted[i] = reader__add(results->counted[i], thread->counted[i]);
	for (int i = 0; i < AP_STATS; i++)
		results->stats[i] = reader__add(results->stats[i], thread->stats[i]);
	results->n_threads++;
}

static int take_thread(struct reader *reader, __u32 index, const void *element)
{
	struct preload_results *results = reader->results;
	const __u64 *offset = element;
	struct inside_thread thread;
	struct preload_program *program;

	if (!*offset) {
		reader->n_unfinished++;
		return 0;
	}
	if (*offset == INSIDE_RETIRED)
		return 0;
	if (!reader__get(reader, *offset, &thread, sizeof(thread)))
		return 0;
	if (thread.state != INSIDE_READY || !thread.program ||
	    thread.program > results->n_programs) {
		reader->n_damaged++;
		return 0;
	}
	preload_results__add_thread(results, reader, &thread);
	if (preload_results__add_regions(results, reader, &thread))
		return -ENOMEM;
	program = &results->programs[thread.program - 1];
	program->live_blocks += thread.stats[AP_STAT_ALLOCATIONS] - thread.stats[AP_STAT_FREES];
	program->live_bytes +=
		thread.stats[AP_STAT_ALLOCATED_BYTES] - thread.stats[AP_STAT_FREED_BYTES];
	return 0;
}

/* Gives @results, which is a copy of another struct, regions of its own. Fails with -ENOMEM. */
static int preload_results__copy_regions(struct preload_results *results)
{
	struct preload_regions *copy;

	if (!results->regions)
		return 0;
	copy = malloc(sizeof(*copy));
	if (copy)
		*copy = *results->regions;
	results->regions = copy;
	return copy ? 0 : -ENOMEM;
}

int preload__read(const struct preload *preload, struct preload_results *out)
{
	struct reader reader = {
		.results = out,
		.pids.seed = hash_seed(),
		.context = (void *)preload,
	};
	int err = reader__begin(&reader, preload);

	*out = (struct preload_results){ 0 };
	if (err)
		return err;
	*out = preload->retired;
	err = preload_results__copy_regions(out);
	if (err)
		return err;
	for (int i = 0; i < INSIDE_GAPS; i++)
		out->gaps[i] = reader__add(0, reader.header.gaps[i]);
	for (__u32 i = 0; i < INSIDE_COUNTED; i++) {
		const struct inside_counted *counted = &reader.header.counted.list[i];

		if (counted->is_found && counted->function >= AP_DEFINED &&
		    reader__has_function(&reader, counted->function))
			out->is_found[ap_function__definition(counted->function)] = true;
	}
	for (__u32 i = 0; i < INSIDE_DOMAINS; i++) {
		const struct inside_domain *domain = &reader.header.counted.domains[i];

		if (domain->is_found && domain->definition < AP_MAX_DEFINITIONS)
			out->is_found[domain->definition] = true;
	}
	out->n_begun = reader.header.n_begun;
	out->waits = reader__add(0, reader.header.waits.count);
	out->waits_ns = reader__add(0, reader.header.waits.total_ns);
	err = reader__each(&reader, &reader.header.programs, 0, sizeof(struct inside_program),
			   take_program);
	if (!err)
		err = reader__each(&reader, &reader.header.threads, 0, sizeof(__u64), take_thread);
	if (!err)
		err = reader__each(&reader, &reader.header.refused, 0,
				   sizeof(struct inside_refused), take_refused);
	out->n_unfinished = reader.n_unfinished;
	out->n_awaited = reader.n_unfinished - reader.n_without_chunk;
	out->n_damaged = reader.n_damaged;
	pid_programs__release(&reader.pids);
	if (err)
		preload_results__free(out);
	return err;
}

static int look_at_entry(struct reader *reader, __u32 index, const void *element)
{
	/* The state is the first member of programs and of refused programs. */
	const __u32 *state = element;

	reader->n_unfinished += *state != INSIDE_READY;
	return 0;
}

static int look_at_offset(struct reader *reader, __u32 index, const void *element)
{
	const __u64 *offset = element;

	reader->n_unfinished += !*offset;
	return 0;
}

int preload__count_awaited(const struct preload *preload, __u64 *n)
{
	struct reader reader = { 0 };
	const struct inside_header *header = &reader.header;
	int err = reader__begin(&reader, preload);

	if (!err)
		err = reader__each(&reader, &header->programs, 0, sizeof(struct inside_program),
				   look_at_entry);
	if (!err)
		err = reader__each(&reader, &header->threads, 0, sizeof(__u64), look_at_offset);
	if (!err)
		err = reader__each(&reader, &header->refused, 0, sizeof(struct inside_refused),
				   look_at_entry);
	if (!err)
		*n = reader.n_unfinished - reader.n_without_chunk;
	return err;
}

void preload_results__free(struct preload_results *results)
{
	free(results->programs);
	free(results->refused);
	free(results->regions);
	*results = (struct preload_results){ 0 };
}

/* Reads what threads have counted by region, and which regions and sets there are. */

/* Adds all counters of either of two structs, which have no other members. */
static void add_words(__u64 *sum, const __u64 *words, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*sum); i++)
		sum[i] = reader__add(sum[i], words[i]);
}

int preload_results__add_regions(struct preload_results *results, struct reader *reader,
				 const struct inside_thread *thread)
{
	struct inside_thread_regions regions;
	struct inside_region_counts counts;

	if (!thread->regions || !reader__get(reader, thread->regions, &regions, sizeof(regions)))
		return 0;
	if (!results->regions)
		results->regions = calloc(1, sizeof(*results->regions));
	if (!results->regions)
		return -ENOMEM;
	add_words(results->regions->begins, regions.begins, sizeof(regions.begins));
	for (int set = 1; set < AP_MAX_REGION_SETS; set++)
		if (regions.sets[set] &&
		    reader__get(reader, regions.sets[set], &counts, sizeof(counts)))
			add_words((__u64 *)&results->regions->sets[set], (const __u64 *)&counts,
				  sizeof(counts));
	return 0;
}

int preload__read_regions(const struct preload *preload, struct inside_regions *out)
{
	struct reader reader = { 0 };
	int err = reader__begin(&reader, preload);

	if (err)
		return err;
	*out = reader.header.regions;
	for (int i = 0; i < AP_MAX_REGIONS; i++) {
		out->list[i].name[AP_REGION_NAME_BYTES] = 0;
		if (out->list[i].state != INSIDE_READY)
			out->list[i].name[0] = 0;
	}
	return 0;
}
