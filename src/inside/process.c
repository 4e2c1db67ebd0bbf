// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "process.h"

#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time_types.h>

#include "counted.h"
#include "domains.h"
#include "environment.h"
#include "live.h"
#include "memory.h"
#include "objects.h"
#include "output.h"
#include "own.h"
#include "python.h"
#include "regions.h"
#include "sys.h"
#include "thread_names.h"
#include "walk.h"

static struct mapped_array refused_offsets;

/* Copies the target of a link in /proc to @out, or the path itself if it is no link. */
static void copy_path(char *out, const char *path)
{
	long n = -1;

	if (text__begins(path, "/proc/self/"))
		n = sys(__NR_readlinkat, AT_FDCWD, (long)path, (long)out, INSIDE_PATH_BYTES - 1, 0,
			0);
	if (n < 0)
		text__append(out, out + INSIDE_PATH_BYTES, path);
}

static bool await_answer(const struct inside_refused *refused)
{
	if (!__atomic_load_n(&process.header->hands_over, __ATOMIC_RELAXED))
		return false;
	memory__wake();
	memory__await(&refused->answer, INSIDE_NO_ANSWER);
	return __atomic_load_n(&refused->answer, __ATOMIC_ACQUIRE) == INSIDE_BY_OTHER;
}

bool process__note_refusal(const char *path, enum inside_refusal reason)
{
	struct inside_refused *refused;
	__u32 index;

	memory__add_gap(INSIDE_GAP_EXECS);
	refused = mapped_array__add(&refused_offsets, &process.header->refused, sizeof(*refused),
				    &index);
	if (!refused)
		return false;
	refused->reason = reason;
	refused->program = process__is_itself() ? process.program : 0;
	refused->pid = sys__pid();
	refused->pid_namespace = sys__pid_namespace();
	copy_path(refused->path, path);
	__atomic_store_n(&refused->state, INSIDE_READY, __ATOMIC_RELEASE);
	return await_answer(refused);
}

enum {
	NOT_BEGUN,
	BEGINNING, /* one thread begins to measure the process */
	MEASURED,
	NOT_MEASURED,
	HANDED_OVER, /* by another engine; programs that it executes may be measured here again */
};

static volatile __u32 never_alive;

struct process process = { .alive = &never_alive };
__thread struct thread *self;

static struct {
	__u32 state;
	__u32 pid;
	struct inside_program *program;
	__u32 early;	       /* calls that other threads made while the process began */
	volatile __u32 *alive; /* a word in the page that the kernel clears in a forked child */
	struct thread *threads, *hand;
	bool is_joined; /* process__is_joined() has been called */
	struct mapped_array programs, thread_offsets;
	char directory[INSIDE_PATH_BYTES];
	process_keep_fn keep; /* NULL: the dynamic linker keeps @self */
	__u32 key;	      /* first argument of @keep */
} local;

const char *process__directory(void)
{
	return local.state == MEASURED || local.state == HANDED_OVER ? local.directory : NULL;
}

bool process__follows(void)
{
	/* A child of vfork(2) must not begin to measure a thread here: the struct would belong to
	 * its parent. */
	if (!*process.alive && !thread__current() && local.state != HANDED_OVER)
		return false;
	return process.header->settings.follow && !header__has_ended(process.header);
}

/* Stores the directory of this library, which LD_PRELOAD names, and the library's name in it in
 * *@name. */
static bool find_directory(const char **name)
{
	const char *path = objects__own_path();
	char *stop = local.directory + sizeof(local.directory);
	size_t length;

	if (!path || !text__append(local.directory, stop, path))
		return false;
	length = text__length(local.directory);
	while (length && local.directory[length - 1] != '/')
		length--;
	*name = INSIDE_LIBRARY;
	if (text__equal(local.directory + length, INSIDE_OTHER))
		*name = INSIDE_OTHER;
	/* A directory of a measurement has links to the library by these names. By its own name it was
	 * not allocprof that had it loaded. */
	if (text__equal(local.directory + length, INSIDE_FILE))
		*name = INSIDE_FILE;
	if (!length || !text__equal(local.directory + length, *name))
		return false;
	local.directory[length - 1] = 0;
	return true;
}

/* Tells another engine by a USDT probe that this process's calls are counted here (INSIDE_BEGINS). */
static __attribute__((noinline)) void announce(__u32 program)
{
	__asm__ volatile("990:	nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f, 994f-993f, 3\n"
			 "991:	.asciz \"stapsdt\"\n"
			 "992:	.balign 4\n"
			 "993:	.8byte 990b, 0, 0\n"
			 "	.asciz \"allocprof_inside\"\n"
			 "	.asciz \"begins\"\n"
			 "	.asciz \"" PROCESSOR_NOTE_ARGUMENT "\"\n"
			 "994:	.balign 4\n"
			 ".popsection\n" ::PROCESSOR_NOTE_CONSTRAINT(program));
}

/* The linker defines these: where the library begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static bool add_program(enum inside_birth birth)
{
	struct inside_program *program;
	__u32 index, pid = sys__pid();

	/* A process that may not call getpid(2) cannot be told from others, so it gets no program. */
	program = pid ? mapped_array__add(&local.programs, &process.header->programs,
					  sizeof(*program), &index)
		      : NULL;
	if (!program) {
		memory__add_gap(INSIDE_GAP_PROGRAMS);
		return false;
	}
	program->birth = birth;
	local.pid = pid;
	local.program = program;
	program->pid = local.pid;
	program->parent = sys__parent_pid();
	/* In a file of its own no other program has a number. */
	program->forked_from = birth == INSIDE_BORN_FORK && !output__is_on() ? process.program : 0;
	program->begin_ns = sys__now_ns();
	program->library = (__u64)__ehdr_start;
	program->library_end = (__u64)_end;
	program->mappings = spared__address();
	program->pid_namespace = sys__pid_namespace();
	sys__comm(program->comm);
	/* A process that ran before, or was forked, may have forbidden itself to open files; one that has just made its own has not. */
	if ((birth == INSIDE_BORN_EXEC || output__is_on()) && process.header->settings.arguments)
		program->argument_bytes = sys__read_text("/proc/self/cmdline", program->arguments,
							 sizeof(program->arguments));
	process.program = index + 1;
	process.inherits = birth == INSIDE_BORN_FORK;
	live__begin(program);
	__atomic_store_n(&program->state, INSIDE_READY, __ATOMIC_RELEASE);
	return true;
}

/* Publishes the file of CPython, if the process has loaded it, so that allocprof can tell the user
 * that CPython's arenas hold small objects. */
static void publish_python(void)
{
	struct definition found;

	if (objects__find_function("PyObject_Malloc", &found))
		code__publish((__u64)found.address);
}

static void take_settings(struct inside_header *header)
{
	process.header = header;
	process.mode = header->settings.mode;
	process.has_stacks = process.mode == INSIDE_RECORD ||
			     (process.mode == INSIDE_LIVE && header->settings.stacks);
	process.within = header->settings.within;
	process.walks = process.has_stacks || process.within;
	process.samples = process.mode != INSIDE_COUNT && header->settings.sampling.sample;
	process.events = process.mode == INSIDE_LIVE && header->settings.events;
	process.count_bytes =
		process.samples ? sizeof(struct inside_sampled_count) : sizeof(struct inside_count);
	process.record_bytes = process.samples ? sizeof(struct inside_sampled_record)
					       : sizeof(struct inside_record);
	process.recorded = process.mode == INSIDE_COUNT ? 0 : header->settings.recorded;
	counted__begin();
	domains__begin();
	python__want(process.has_stacks);
}

static bool begin_program(enum inside_birth birth)
{
	local.alive = sys__map_private(INSIDE_PAGE);
	if (!local.alive ||
	    sys(__NR_madvise, (long)local.alive, INSIDE_PAGE, MADV_WIPEONFORK, 0, 0, 0)) {
		memory__add_gap(INSIDE_GAP_PROGRAMS);
		return false;
	}
	if (!add_program(birth))
		return false;
	if (process.walks)
		code__begin();
	else
		publish_python();
	return true;
}

/* Lets calls count from now on. */
static void count_calls(void)
{
	announce(process.program);
	*local.alive = 1;
	process.alive = local.alive;
}

/* Finishes begin_process() when the settings are known. Returns the process's new state. */
static __u32 begin_counting(struct inside_header *header)
{
	if (!begin_program(INSIDE_BORN_EXEC))
		return NOT_MEASURED;
	if (objects__is_preceded("malloc"))
		process__note_refusal("/proc/self/exe", INSIDE_REFUSES_ALLOCATOR);
	own__update();
	__atomic_fetch_add(&header->gaps[INSIDE_GAP_EARLY], local.early, __ATOMIC_RELAXED);
	count_calls();
	return MEASURED;
}

/* Begins to measure the process with a file of its own, if the environment asks for one. */
static __u32 begin_own(void)
{
	if (!output__read() || !output__begin())
		return NOT_MEASURED;
	next__prepare();
	take_settings(memory__header());
	return begin_counting(memory__header());
}

/* Begins to measure the process. Returns its new state. */
static __u32 begin_process(void)
{
	struct inside_header *header;
	const char *name;

	if (!find_directory(&name))
		return NOT_MEASURED;
	if (text__equal(name, INSIDE_FILE))
		return begin_own();
	if (!memory__open(local.directory)) {
		environment__hide(local.directory);
		return NOT_MEASURED;
	}
	next__prepare();
	header = memory__header();
	process.header = header;
	__atomic_fetch_add(&header->n_begun, 1, __ATOMIC_RELAXED);
	if (memory__is_left()) {
		environment__hide(local.directory);
		return NOT_MEASURED;
	}
	if (text__equal(name, INSIDE_OTHER)) {
		environment__hide(local.directory);
		return HANDED_OVER;
	}
	take_settings(header);
	environment__hide(local.directory);
	return begin_counting(header);
}

/* Has a forked child use a file of its own. Returns false if there can be none, which its parent's file then
 * says. */
static bool begin_own_again(void)
{
	if (!output__begin()) {
		memory__add_gap(INSIDE_GAP_PROGRAMS);
		return false;
	}
	local.programs = local.thread_offsets = refused_offsets = (struct mapped_array){ 0 };
	live__forget();
	take_settings(memory__header());
	if (process.walks)
		code__begin_again();
	return true;
}

/* Begins to measure a forked child, at its first call; it has one thread. */
static bool begin_child(void)
{
	/* The memory of the parent's other threads is not used again in the child. */
	local.threads = local.hand = NULL;
	stand_ins__forget();
	thread_names__forget();
	memory__forget();
	own__forked();
	if (!process.header->settings.follow || (output__is_on() && !begin_own_again()) ||
	    !add_program(INSIDE_BORN_FORK)) {
		process.alive = &never_alive;
		__atomic_store_n(&local.state, NOT_MEASURED, __ATOMIC_RELEASE);
		return false;
	}
	announce(process.program);
	*local.alive = 1;
	return true;
}

/* The tid of a struct thread that no thread uses. */
#define NO_THREAD 0xffffffff

/* The tid of a struct thread that no thread uses and whose parts another thread is taking over. */
#define GIVING_THREAD 0xfffffffd

/* How many structs a new thread checks for an ended owner, by a system call each, and how many
 * structs it goes through in all. */
#define REUSE_TRIES 8
#define REUSE_STEPS 128

bool thread__has_comm(const struct thread *thread, const char *comm)
{
	for (int i = 0; i < AP_COMM_LEN; i++)
		if (thread->shared->comm[i] != comm[i])
			return false;
	return true;
}

/* Hands the memory of an ended thread over to the thread @tid. Returns false if its owner has not
 * ended, or another thread was faster. */
static bool take_over(struct thread *thread, __u32 tid)
{
	__u32 before = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED);

	return (before == NO_THREAD || sys__thread_has_ended(local.pid, before)) &&
	       __atomic_compare_exchange_n(&thread->tid, &before, tid, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static struct thread *take_ended(struct thread_name *name, __u32 tid)
{
	for (int i = 0; i < REUSE_TRIES; i++) {
		struct thread *thread = __atomic_load_n(&name->hand, __ATOMIC_RELAXED);

		if (!thread)
			thread = __atomic_load_n(&name->threads, __ATOMIC_ACQUIRE);
		if (!thread)
			return NULL;
		__atomic_store_n(&name->hand, thread->namesake, __ATOMIC_RELAXED);
		if (take_over(thread, tid))
			return thread;
	}
	return NULL;
}

void thread__give(struct thread *thread, struct thread *from)
{
	thread->walker = from->walker;
	thread->live = from->live;
	from->walker = NULL;
	from->live = NULL;
	if (thread->live)
		live_memory__forget(thread->live);
}

static bool take_from_ended(struct thread *thread)
{
	int tries = 0;

	for (int i = 0; i < REUSE_STEPS && tries < REUSE_TRIES; i++) {
		struct thread *from = __atomic_load_n(&local.hand, __ATOMIC_RELAXED);

		if (!from)
			from = __atomic_load_n(&local.threads, __ATOMIC_ACQUIRE);
		if (!from)
			return false;
		__atomic_store_n(&local.hand, from->next, __ATOMIC_RELAXED);
		if (from == thread || !__atomic_load_n(&from->walker, __ATOMIC_RELAXED))
			continue;
		tries++;
		if (!take_over(from, GIVING_THREAD))
			continue;
		thread__give(thread, from);
		__atomic_store_n(&from->tid, NO_THREAD, __ATOMIC_RELEASE);
		if (thread->walker)
			return true;
	}
	return false;
}

static bool publish(struct inside_thread *shared, __u64 offset)
{
	__u32 index;
	__u64 *element = mapped_array__add(&local.thread_offsets, &process.header->threads,
					   sizeof(*element), &index);

	if (!element)
		return false;
	__atomic_store_n(&shared->state, INSIDE_READY, __ATOMIC_RELEASE);
	__atomic_store_n(element, offset, __ATOMIC_RELEASE);
	return true;
}

void thread__push(struct thread **list, struct thread *thread)
{
	thread->next = __atomic_load_n(list, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(list, &thread->next, thread, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

static struct walker *new_walker(void)
{
	struct walker *walker = memory__take_private(sizeof(*walker));

	if (!walker)
		return NULL;
	walker->max_depth = process.header->settings.max_depth;
	if (walker->max_depth > AP_MAX_DEPTH)
		walker->max_depth = AP_MAX_DEPTH;
	walker->generation = code__generation();
	walker->own_module = code__own_module();
	walker__forget(walker);
	return walker;
}

struct thread *thread__new(__u32 tid, const char *comm)
{
	struct thread *thread = memory__take_private(sizeof(*thread));
	struct inside_thread *shared;
	__u64 offset;

	if (!thread)
		return NULL;
	shared = memory__take(sizeof(*shared), &offset);
	if (!shared)
		return NULL;
	if (domains__any()) {
		thread->defined = memory__take(sizeof(*thread->defined), &shared->defined);
		if (!thread->defined)
			return NULL;
	}
	thread->shared = shared;
	thread->tid = tid;
	shared->tid = tid;
	shared->program = process.program;
	memcpy(shared->comm, comm, AP_COMM_LEN);
	return publish(shared, offset) ? thread : NULL;
}

bool thread__have_walker(struct thread *thread, bool (*take)(struct thread *thread))
{
	if (!process.walks || thread->walker || take(thread))
		return true;
	thread->walker = new_walker();
	return thread->walker;
}

/* Chooses the name under which the thread is counted; without stacks threads are not counted by
 * name. */
static struct thread_name *choose_name(char *comm)
{
	return process.has_stacks ? thread_names__choose(comm) : thread_names__of_all();
}

/* Adds a thread that is called @comm and counted under @name. NULL if there is no memory. */
static struct thread *add_thread(struct thread_name *name, __u32 tid, const char *comm)
{
	struct thread *thread = thread__new(tid, comm);

	if (!thread)
		return NULL;
	thread__push(&local.threads, thread);
	thread->namesake = __atomic_load_n(&name->threads, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&name->threads, &thread->namesake, thread, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return thread;
}

/* Begins to measure the calling thread. @open: the regions that it has open; NULL: none. */
static struct thread *begin_thread(const struct ap_region_thread *open)
{
	__u32 tid = process__is_itself() ? sys__tid() : PARENT_THREAD;
	struct thread_name *name;
	struct thread *thread;
	char comm[AP_COMM_LEN];

	sys__comm(comm);
	name = choose_name(comm);
	if (process.mode == INSIDE_LIVE)
		live__join(__atomic_load_n(&local.threads, __ATOMIC_ACQUIRE));
	thread = take_ended(name, tid);
	if (!thread)
		thread = add_thread(name, tid, comm);
	if (!thread || !thread__have_walker(thread, take_from_ended)) {
		memory__add_gap(INSIDE_GAP_THREADS);
		if (thread)
			__atomic_store_n(&thread->tid, NO_THREAD, __ATOMIC_RELEASE);
		return NULL;
	}
	thread->shared->tid = tid;
	thread__drop_claims(thread);
	thread->outermost.sp = 0;
	thread->owner = thread;
	/* The walker's range is the stack of the struct's previous owner. */
	if (thread->walker)
		walker__leave_stack(thread->walker);
	if (process.samples)
		thread->random = sys__random();
	thread->number = __atomic_add_fetch(&process.header->live.n_threads, 1, __ATOMIC_RELAXED);
	regions__begin_thread(thread, open);
	self = thread;
	if (local.keep) {
		outside__begin();
		local.keep(local.key, thread);
		outside__end();
	}
	return thread;
}

struct inside_program *process__program(void)
{
	return local.program;
}

static void add_published(const struct thread *thread, __s64 *blocks, __s64 *size_bytes)
{
	for (; thread; thread = thread->next) {
		const __u64 *stats = thread->shared->stats;

		*blocks += stats[AP_STAT_ALLOCATIONS] - stats[AP_STAT_FREES] - thread->live_blocks +
			   thread->given_blocks;
		*size_bytes += stats[AP_STAT_ALLOCATED_BYTES] - stats[AP_STAT_FREED_BYTES] -
			       thread->live_bytes + thread->given_bytes;
	}
}

const struct thread *process__first_thread(void)
{
	return __atomic_load_n(&local.threads, __ATOMIC_ACQUIRE);
}

void process__sum_published(__s64 *blocks, __s64 *size_bytes)
{
	*blocks = *size_bytes = 0;
	add_published(process__first_thread(), blocks, size_bytes);
	add_published(stand_ins__first(), blocks, size_bytes);
}

bool process__is_itself(void)
{
	return *process.alive && local.pid == sys__pid();
}

__u32 process__child(void)
{
	return *process.alive && local.pid && !process__is_itself() ? sys__pid() : 0;
}

void process__is_joined(void)
{
	local.is_joined = true;
}

bool process__is_alone(void)
{
	const struct thread *first = __atomic_load_n(&local.threads, __ATOMIC_RELAXED);

	return first && !first->next && !stand_ins__first() && !local.is_joined &&
	       __atomic_load_n(&process.header->programs.n, __ATOMIC_RELAXED) == 1;
}

struct thread *thread__begin(void)
{
	__u32 state = __atomic_load_n(&local.state, __ATOMIC_ACQUIRE);
	/* In a forked child @self points to the struct of the parent's thread, which goes on in
	 * the parent. */
	const struct thread *before = self && *process.alive ? NULL : self;
	struct thread *thread;
	__u64 signals;

	if (state == NOT_MEASURED || state == HANDED_OVER)
		return NULL;
	if (state == NOT_BEGUN &&
	    __atomic_compare_exchange_n(&local.state, &state, BEGINNING, false, __ATOMIC_ACQUIRE,
					__ATOMIC_ACQUIRE)) {
		state = begin_process();
		__atomic_store_n(&local.state, state, __ATOMIC_RELEASE);
	}
	if (state == BEGINNING)
		__atomic_fetch_add(&local.early, 1, __ATOMIC_RELAXED);
	/* Threads that begin after the end of the measurement have nothing to count. */
	if (state != MEASURED || header__has_ended(process.header))
		return NULL;
	sys__block_signals(&signals);
	thread = *local.alive || begin_child() ? begin_thread(before ? regions__open(before) : NULL)
					       : NULL;
	sys__restore_signals(signals);
	return thread;
}

/* Gives the calling thread another struct when its name has changed, since each struct counts
 * under one name. */
void process__renamed(void)
{
	struct thread *thread = self;
	struct ap_region_thread open;
	char comm[AP_COMM_LEN];
	struct claim claim;

	if (!thread || !*process.alive || !thread__is_own(thread) || !process.has_stacks ||
	    header__has_ended(process.header))
		return;
	/* A child of vfork(2) has its own name, but uses its parent's struct thread. A call that a
	 * signal has interrupted goes on with the struct that it has. */
	claim__sign(&claim, __builtin_frame_address(0));
	if (!process__is_itself() || thread__is_claimed(thread, &claim))
		return;
	sys__comm(comm);
	if (thread__has_comm(thread, comm))
		return;
	choose_name(comm);
	if (thread__has_comm(thread, comm))
		return;
	memset(&open, 0, sizeof(open));
	if (regions__open(thread))
		open = *regions__open(thread);
	/* Another thread of the former name may take the struct over. */
	self = NULL;
	__atomic_store_n(&thread->tid, NO_THREAD, __ATOMIC_RELEASE);
	begin_thread(&open);
}

void process__give_up(void)
{
	if (!*process.alive)
		return;
	memory__add_gap(INSIDE_GAP_REPLACED);
	process.alive = &never_alive;
	__atomic_store_n(&local.state, NOT_MEASURED, __ATOMIC_RELEASE);
	spared__end();
}

int process__attach(__u64 memory, __u64 tables)
{
	if (!memory__adopt(memory, tables))
		return -ENOMEM;
	next__prepare();
	take_settings(memory__header());
	__atomic_fetch_add(&process.header->n_begun, 1, __ATOMIC_RELAXED);
	if (!begin_program(INSIDE_BORN_ATTACHED))
		return -ENOMEM;
	own__began();
	count_calls();
	__atomic_store_n(&local.state, MEASURED, __ATOMIC_RELEASE);
	return 0;
}

void process__detach(void)
{
	own__stop();
	process.alive = &never_alive;
	__atomic_store_n(&local.state, NOT_MEASURED, __ATOMIC_RELEASE);
}

void process__clean(void)
{
	memory__close();
	spared__unmap_all();
}

void process__keep_threads(process_keep_fn keep, __u32 key, __u64 tid_offset)
{
	local.keep = keep;
	local.key = key;
	process.tid_offset = tid_offset;
}

void process__forked(void)
{
	thread__current();
}

/* A constructor, so that a program that never allocates is measured, too. */
__attribute__((constructor)) void process__loaded(void)
{
	/* At the first call the C library may not have set up its environment yet, so the library
	 * is hidden again. */
	thread__current();
	if (local.directory[0] && !output__is_on())
		environment__hide(local.directory);
	if (local.state != MEASURED)
		return;
	/* An auditor (LD_AUDIT) has a namespace with a C library of its own, whose calls are not
	 * counted. musl has no auditors. */
	if ((environment__names_auditors() || objects__program_names_auditors()) &&
	    objects__linker_code())
		memory__add_gap(INSIDE_GAP_LOADS);
	own__began();
}
