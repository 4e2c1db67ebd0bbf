// SPDX-License-Identifier: GPL-3.0-or-later
#include "preload_engine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator.h"
#include "allocator_parse.h"
#include "array.h"
#include "cleanup.h"
#include "clock.h"
#include "collector.h"
#include "command_path.h"
#include "definitions.h"
#include "epoll.h"
#include "error.h"
#include "file.h"
#include "inside_abi.h"
#include "live_collector.h"
#include "parser.h"
#include "preload_attach.h"
#include "preload_engine_internal.h"
#include "preload_refusal.h"
#include "probed_file.h"
#include "refusal_abi.h"
#include "runtimes.h"
#include "sample_abi.h"
#include "table_cache.h"
#include "target.h"

/* Places of the library relative to the tool's directory: that of the installation, which may have
 * been moved, and that of the build. */
static const char *const library_paths[] = {
	"/" ALLOCPROF_LIBRARY_FROM_TOOL "/" INSIDE_FILE,
	"/../src/inside/" INSIDE_FILE,
};

/* Finds the library that is preloaded, relative to this program's file. The environment is not
 * consulted, since it may be another user's. Returns -ENOENT with @error set. */
static int preload_library__find(char path[PATH_MAX], struct error *error)
{
	char directory[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	char *slash;

	if (length < 0)
		return error__set(error, -errno, "cannot find this program's file: %s",
				  strerror(errno));
	directory[length] = 0;
	slash = strrchr(directory, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < ARRAY_SIZE(library_paths); i++)
		if (snprintf(path, PATH_MAX, "%s%s", directory, library_paths[i]) < PATH_MAX &&
		    !access(path, R_OK))
			return 0;
	return error__set(error, -ENOENT,
			  "cannot find " INSIDE_FILE ", which --engine=preload loads into "
			  "the command: install allocprof anew, on x86-64 or arm64");
}

/* Hands over what this engine cannot measure to another engine of the session, if there is one. */

static __u64 own_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

static int take(struct preload_engine *engine, struct handover process)
{
	const struct engine_others *others = &engine->others;
	int err;

	if (!others->take)
		return -EOPNOTSUPP;
	process.library = preload__library(engine->preload);
	err = others->take(others->context, &process);
	if (err != -EPERM && err != -EOPNOTSUPP)
		return err;
	/* No process need ask again. */
	engine->others.take = NULL;
	preload__hand_over(engine->preload, false);
	return err;
}

static bool take_refused(void *context, const struct preload_refused *refused)
{
	struct preload_engine *engine = context;
	const struct handover process = {
		.pid = refused->pid,
		.program = refused->program + 1,
		.path = refused->path,
	};

	/* A probe in translated code would kill the process. If the process is in another PID
	 * namespace, its number means another process here. */
	if (refused->reason == INSIDE_REFUSES_TRANSLATOR || !refused->pid_namespace ||
	    refused->pid_namespace != own_namespace() ||
	    !preload_engine__runs(engine, refused->pid))
		return false;
	return !take(engine, process);
}

int preload_engine__take_refused(struct preload_engine *engine)
{
	return preload__take_refused(engine->preload, take_refused, engine);
}

/* Refuses to hand over any further process, also those that are waiting for the answer. */
static int preload_engine__take_no_more(struct preload_engine *engine)
{
	int err = engine->others.take ? preload__hand_over(engine->preload, false) : 0;

	engine->others.take = NULL;
	return err ? err : preload_engine__take_refused(engine);
}

/* Returns whether the program defines malloc, also if it does not export it and only its own code
 * calls it. */
static bool has_malloc(const struct preload_engine *engine, const char *path)
{
	_cleanup_(close_fd) int fd = regular_file__open(path);
	struct allocator *allocator;
	bool has;

	if (fd < 0 || allocator__parse(engine->parser, fd, path, &allocator, NULL))
		return false;
	has = (!allocator->is_wrapper || allocator->goes_past) &&
	      allocator__find(allocator, AP_MALLOC);
	allocator__free(allocator);
	return has;
}

/* Returns whether the command @argv has a malloc of its own, whose calls do not come to the library,
 * and has another engine get ready for it, if there is one. */
static bool preload_engine__misses_malloc(struct preload_engine *engine, char *const argv[])
{
	_cleanup_(free_ptr) char *path = NULL, *program = NULL;

	if (command_path__find(argv[0], getenv("PATH"), &path) ||
	    command_path__elf(path, getenv("PATH"), &program) || !has_malloc(engine, program))
		return false;
	/* The other engine needs longer to be ready than a short command runs. */
	(void)take(engine, (struct handover){ 0 });
	return true;
}

static void preload_engine__hand_over_command(struct preload_engine *engine)
{
	const struct handover process = {
		.pid = engine->target->pid,
		.path = engine->command,
	};

	if (engine->command_refusal >= 0 && engine->command_refusal != INSIDE_REFUSES_TRANSLATOR)
		engine->is_command_by_other = !take(engine, process);
}

bool preload_engine__is_followed_by_other(const struct preload_engine *engine, size_t program,
					  struct followed_by_other *out)
{
	const struct engine_others *others = &engine->others;

	return others->find && others->find(others->context, program + 1, out);
}

/* How long a thread that meets a new file waits for the unwind table at most. */
#define WAIT_MS 5000

/* Reason in messages why only calls of the C library's functions are noticed. */
#define NO_PROBES "which sets no probes and notices calls of the C library's functions only"

static int refuse_options(const struct session_options *options, struct error *error)
{
	const struct {
		bool is_given;
		const char *name, *why;
	} refused[] = {
		{ options->isolates, "--isolate",
		  "which sets no probes, so that no other process meets any" },
		{ options->window.start_on, "--start-on", NO_PROBES },
		{ options->window.stop_on, "--stop-on", NO_PROBES },
		{ definitions__count_in_all(options->definitions), "--allocator mmap or --faults",
		  NO_PROBES },
		{ options->ignored && options->ignored[0], "--ignore",
		  "which does not name the functions that it does not know" },
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (refused[i].is_given)
			return error__set(error, -EOPNOTSUPP,
					  "%s cannot be used with the engine preload, %s; use "
					  "--engine=uprobe, as root",
					  refused[i].name, refused[i].why);
	return 0;
}

int preload_engine__find_library(char *path, struct error *error)
{
	char found[PATH_MAX];

	return preload_library__find(path ? path : found, error);
}

static void close_engine(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);

	preload_engine__leave(engine);
	preload_engine__free_attached(engine);
	/* The collector is freed first, since its loader may still be writing tables into the
	 * shared memory. */
	collector__free(engine->collector);
	preload_within__free(engine->within);
	preload_engine__close_events(engine);
	live_collector__free(engine->live);
	runtimes__free(engine->runtimes);
	parser__free(engine->parser);
	preload_results__free(&engine->counted);
	preload_results__free(&engine->at_cut);
	preload_results__free(&engine->forgotten);
	engine_regions__release(&engine->regions);
	moved_counts__release(&engine->moved);
	preload__free(engine->preload);
	free(engine->environment);
	free(engine->command);
	for (size_t i = 0; i < engine->n_files; i++)
		free(engine->files[i].path);
	free(engine->files);
	free(engine->programs);
	free(engine);
}

static const struct ap_within *code_within(int fd, const char *path, void *context)
{
	return preload_within__code(((struct preload_engine *)context)->within, fd, path);
}

static int set_within(__u32 module, const struct ap_within *within, void *context)
{
	return preload__set_within(((struct preload_engine *)context)->preload, module, within);
}

static int open_collector(struct preload_engine *engine, struct error *error)
{
	const struct unwind_writer writer = {
		.write = preload__write_table,
		.context = engine->preload,
	};
	struct collector_options options = {
		.profile = engine->profile,
		.tables.tables = unwind_tables__new(&writer),
		.max_depth = engine->options.max_depth,
		.reads_groups = true,
		/* The programs that the library begins in tell them. */
		.reads_arguments = !engine->options.omits_arguments && !engine->options.launches,
		.sample = engine->options.sample_bytes,
		.sample_unit_shift = engine->sample_unit_shift,
		.within = engine->within ? code_within : NULL,
		.set_within = set_within,
		.context = engine,
	};
	int err = parser__new(&options.tables.parser, error);

	if (err) {
		unwind_tables__free(options.tables.tables);
		return err;
	}
	/* If the cache cannot be opened, each recording compiles its own tables. */
	if (!engine->options.no_cache)
		table_cache__open(&options.tables.cache, NULL);
	engine->collector = collector__new(&options);
	if (!engine->collector)
		return -ENOMEM;
	err = collector__add_vdso(engine->collector);
	return err ? error__set(error, err, "cannot prepare for the vDSO: %s", strerror(-err)) : 0;
}

/* Returns how many parts have at most @bytes; 0: of any size. */
static __u32 event_parts(__u32 bytes)
{
	__u32 parts = INSIDE_EVENT_PARTS;

	while (bytes && parts > 1 &&
	       (INSIDE_FIRST_EVENT_CHUNKS << parts) * sizeof(struct inside_event_chunk) > bytes)
		parts--;
	return parts;
}

static enum inside_mode mode_of(const struct session_options *options)
{
	if (options->live)
		return INSIDE_LIVE;
	return options->stacks ? INSIDE_RECORD : INSIDE_COUNT;
}

static int open_engine(const struct engine_options *engine_options, struct engine **out,
		       struct error *error)
{
	const struct session_options *options = engine_options->session;
	struct preload_options preload_options = {
		.settings = {
			.mode = mode_of(options),
			.stacks = options->stacks,
			.max_records = preload_engine__max_records(options),
			.max_blocks = preload_engine__max_blocks(options),
			.max_depth = options->stacks ? options->max_depth : AP_MAX_DEPTH,
			.within = options->window.within != NULL,
			.regions = options->regions,
			.events = !options->events_path ? INSIDE_NO_EVENTS
				  : options->throttle	? INSIDE_THROTTLED_EVENTS
							: INSIDE_EVENTS,
			.event_parts = event_parts(options->limits.ring_bytes),
			.follow = options->follow,
			.arguments = options->stacks && !options->omits_arguments,
			.wait_ms = WAIT_MS,
			.max_live_shift = PRELOAD_MAX_LIVE_SHIFT,
			.recorded = options->functions & (options->live ? ~AP_FREEING : ~0ULL),
		},
	};
	_cleanup_(free_ptr) struct inside_all_counted *counted = NULL;
	struct preload_engine *engine;
	char library[PATH_MAX];
	int err = refuse_options(options, error);

	if (!err && options->definitions)
		err = preload_counted__make(options->definitions, &counted, error);
	preload_options.counted = counted;
	if (!err)
		err = preload_library__find(library, error);
	if (err)
		return err;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->engine.operations = &preload_engine;
	engine->options = *options;
	engine->target = engine_options->target;
	engine->stop_limit_ns = options->stop_limit_ns;
	engine->profile = engine_options->profile;
	engine->others = engine_options->others;
	if (options->sample_bytes)
		ap_sample__configure(options->sample_bytes, &preload_options.settings.sampling);
	engine->sample_unit_shift = preload_options.settings.sampling.sample_unit_shift;
	preload_options.library = library;
	err = parser__new(&engine->parser, error);
	if (!err)
		engine->runtimes = runtimes__new(&(struct file_identifier){ 0 }, engine->parser);
	if (!err && !engine->runtimes)
		err = -ENOMEM;
	if (!err)
		err = preload__new(&preload_options, &engine->preload, error);
	if (!err && engine->others.take)
		err = preload__hand_over(engine->preload, true);
	if (!err && options->window.within)
		err = preload_within__new(options->window.within, engine->parser, &engine->within,
					  error);
	if (!err && session_options__walk(options))
		err = open_collector(engine, error);
	if (!err && options->live)
		err = preload_engine__open_live(engine);
	if (!err && options->events_path)
		err = preload_engine__open_events(engine, error);
	if (err) {
		close_engine(&engine->engine);
		return err;
	}
	*out = &engine->engine;
	return 0;
}

static int await_child(struct engine *base, bool awaits, struct error *error)
{
	return 0;
}

static int make_environment(struct engine *base, char *const argv[], char ***out)
{
	struct preload_engine *engine = preload_engine__of(base);

	engine->command_refusal = preload_refusal__of(engine->parser, argv, environ);
	if (engine->command_refusal < 0 && preload_engine__misses_malloc(engine, argv))
		engine->command_refusal = INSIDE_REFUSES_ALLOCATOR;
	if (ap_refusal__clears_environment(engine->command_refusal))
		return 0;
	free(engine->environment);
	engine->environment = preload__environment(
		engine->preload, environ, engine->command_refusal == INSIDE_REFUSES_ALLOCATOR);
	if (!engine->environment)
		return -ENOMEM;
	*out = engine->environment;
	return 0;
}

static int launch(struct engine *base, char *const argv[], struct error *error)
{
	struct preload_engine *engine = preload_engine__of(base);
	int err = preload_engine__prepare_command(engine, argv, error);

	if (!err)
		preload_engine__hand_over_command(engine);
	return err;
}

static int start(struct engine *base, __u64 now_ns, struct error *error)
{
	struct preload_engine *engine = preload_engine__of(base);
	int err = engine->live ? preload_engine__start_live(engine, now_ns) : 0;

	return err ? error__set(error, err, "cannot write to the shared memory: %s", strerror(-err))
		   : 0;
}

static int watch(const struct engine *base, int epoll_fd)
{
	return epoll__watch(epoll_fd, preload__wake_fd(preload_engine__of(base)->preload));
}

static int read_events(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);
	int err;

	runtimes__attend(engine->runtimes, clock__now_ns());
	preload__watch_room(engine->preload);
	preload__wait(engine->preload, 0);
	err = preload__retire(engine->preload);
	if (!err)
		err = preload_engine__take_refused(engine);
	if (!err)
		err = preload_engine__take_modules(engine);
	if (!err && engine->events)
		err = preload_engine__attend_events(engine);
	return err || !engine->live ? err : preload_engine__attend_live(engine);
}

static int timeout_ms(const struct engine *base, int most)
{
	const struct preload_engine *engine = preload_engine__of(base);

	if (engine->events)
		most = preload_engine__events_timeout_ms(engine, most);
	return engine->live ? preload_engine__live_timeout_ms(engine, most) : most;
}

static int open_gate(struct engine *base, bool open)
{
	struct preload_engine *engine = preload_engine__of(base);
	int err = preload__set_gate(engine->preload, open ? INSIDE_OPEN : INSIDE_CLOSED);

	if (err)
		return err;
	engine->is_open = open;
	engine->was_open |= open;
	return 0;
}

static void progress(const struct engine *base, struct session_progress *progress)
{
	const struct preload_engine *engine = preload_engine__of(base);
	struct preload_results results;

	if (preload__read(engine->preload, &results))
		return;
	for (int i = 0; i < AP_FUNCTIONS; i++)
		if (engine->options.functions >> i & 1)
			progress->calls +=
				results.functions[i].calls - engine->forgotten.functions[i].calls;
	for (int i = 0; i < AP_MAX_DEFINITIONS; i++)
		if (engine->options.functions >> definition__function(i, 0) & 1)
			progress->calls += results.counted[i] - engine->forgotten.counted[i];
	for (int reason = 0; reason < AP_LOST_UNACCOUNTED; reason++)
		progress->lost += results.stats[AP_STAT_LOST + reason] -
				  engine->forgotten.stats[AP_STAT_LOST + reason];
	if (engine->live)
		progress->live_size_bytes += preload_engine__live_bytes(engine, &results);
	preload_results__free(&results);
}

static int stop(struct engine *base)
{
	return preload__set_gate(preload_engine__of(base)->preload, INSIDE_STOPPED);
}

static int finish(struct engine *base)
{
	struct preload_engine *engine = preload_engine__of(base);
	int err = engine->is_snapshot ? 0 : stop(base);

	/* The other engines have finished already, so no process can be handed over any more. */
	if (!err && !engine->is_snapshot)
		err = preload_engine__take_no_more(engine);
	preload_engine__leave(engine);
	engine->is_open = false;
	return err ? err : preload_engine__collect(engine);
}

int preload_engine__add_modules(const struct engine *base, struct symbols *symbols, bool files)
{
	return collector__add_modules(preload_engine__of(base)->collector, symbols, files);
}

static int name_frames(struct engine *base)
{
	return collector__name_jit_frames(preload_engine__of(base)->collector);
}

static void list_without_table(const struct engine *base, FILE *to)
{
	collector__list_without_table(preload_engine__of(base)->collector, to);
}

static bool file(const struct engine *base, size_t index, struct probed_file *out)
{
	const struct preload_engine *engine = preload_engine__of(base);

	if (index >= engine->n_files)
		return false;
	*out = (struct probed_file){
		.path = engine->files[index].path,
		.build_id = engine->files[index].build_id,
		.gap = "",
		.live_gap = "",
	};
	return true;
}

static __u64 unknown_calls(const struct engine *base, size_t file, size_t index)
{
	return 0;
}

const struct engine_operations preload_engine = {
	.name = "preload",
	.open = open_engine,
	.close = close_engine,
	.await_child = await_child,
	.environment = make_environment,
	.launch = launch,
	.attach = preload_engine__attach,
	.attach_more = preload_engine__attach_more,
	.list_redirections = preload_engine__list_redirections,
	.start = start,
	.watch = watch,
	.read = read_events,
	.timeout_ms = timeout_ms,
	.open_gate = open_gate,
	.progress = progress,
	.cut = preload_engine__cut,
	.become_snapshot = preload_engine__become_snapshot,
	.forget = preload_engine__forget,
	.lose_forgotten = preload_engine__lose_forgotten,
	.reset = preload_engine__reset,
	.stop = stop,
	.read_blocks = preload_engine__read_blocks,
	.finish = finish,
	.results = preload_engine__results,
	.add_modules = preload_engine__add_modules,
	.name_frames = name_frames,
	.list_without_table = list_without_table,
	.file = file,
	.unknown_calls = unknown_calls,
};
