// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Interposes the functions that execute programs: the executed program gets this library in
 * LD_PRELOAD, which the target itself does not see. All memory is on the stack, since a child of
 * vfork(2) shares its parent's heap.
 */
#include "exec.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/unistd.h>
#include <stdarg.h>

#include "preloadable.h"
#include "environment.h"
#include "live.h"
#include "memory.h"
#include "objects.h"
#include "output.h"
#include "process.h"
#include "refusal_abi.h"
#include "sys.h"

#define SIG_SETMASK 2

static struct {
	/* Number of the process whose thread holds the lock; 0: nobody. In a forked child it may
	 * be the parent's number. */
	__u32 holder;
	__u32 callers; /* how many threads are in system(), popen() or wordexp() */
	/* The environment with the library, and the array from which it was made. */
	char **array, **before;
	char *text;
	char *others;		/* the target's entry that @text replaces; NULL: none */
	size_t room, text_room; /* how many entries and bytes there is memory for */
} shown;

/* Takes the lock with all signals blocked: a signal handler must not wait for its own thread. */
static void lock(__u64 *mask)
{
	const __u64 all = ~0ULL;
	__u32 own = sys__pid(), holder = 0;

	sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)mask, sizeof(all), 0, 0);
	while (!__atomic_compare_exchange_n(&shown.holder, &holder, own, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (holder == own) {
			holder = 0;
			sys(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
		}
	}
}

static void unlock(const __u64 *mask)
{
	__atomic_store_n(&shown.holder, 0, __ATOMIC_RELEASE);
	sys(__NR_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, sizeof(*mask), 0, 0);
}

/* Makes room. An array that has become too small is not freed, since other threads may still read
 * it. */
static bool reserve(size_t n, size_t text_bytes)
{
	if (shown.array && n <= shown.room && text_bytes <= shown.text_room)
		return true;
	shown.room = n * 2;
	shown.text_room = text_bytes * 2;
	shown.array = memory__take_private(shown.room * sizeof(char *) + shown.text_room);
	shown.text = (char *)(shown.array + shown.room);
	return shown.array;
}

static bool show_library(char ***variable, const char *directory, const char *name)
{
	struct environment environment;

	if (!environment__look(&environment, *variable, directory))
		return false;
	/* The target has made this array its own, and has removed the library from it. */
	if (*variable == shown.array)
		shown.array = NULL;
	if (!reserve(environment.n + 2, environment__text_bytes(&environment, directory, name)) ||
	    !environment__fill(&environment, directory, name, shown.array, shown.text))
		return false;
	shown.before = *variable;
	shown.others = environment.entry;
	__atomic_store_n(variable, shown.array, __ATOMIC_RELEASE);
	return true;
}

/* Returns whether the array still is as show_library() has made it; setenv(3) changes entries in
 * place. */
static bool is_unchanged(void)
{
	char *none = NULL, **at = shown.array, **before = shown.before ?: &none;
	bool has_library = false;

	for (;; at++, before++) {
		if (*at == shown.text) {
			has_library = true;
			at++;
		}
		while (*before && environment__is_preload(*before))
			before++;
		if (*at != *before)
			return false;
		if (!*at)
			return has_library;
	}
}

/* Removes the library from an environment that the target has changed or copied, and so owns now. */
static void take_out(char **entry)
{
	char **to = entry;

	for (; *entry; entry++) {
		if (*entry != shown.text)
			*to++ = *entry;
		else if (shown.others)
			*to++ = shown.others;
	}
	*to = NULL;
}

static void hide(char ***variable)
{
	if (*variable == shown.array && is_unchanged()) {
		*variable = shown.before;
		return;
	}
	if (*variable)
		take_out(*variable);
	if (*variable == shown.array)
		shown.array = NULL;
}

bool shown__begin(const char *directory, const char *name)
{
	char ***variable = environment__variable();
	bool is_shown;
	__u64 mask;

	if (!variable)
		return false;
	lock(&mask);
	is_shown = (shown.callers && environment__has(*variable, directory)) ||
		   show_library(variable, directory, name);
	shown.callers += is_shown;
	unlock(&mask);
	return is_shown;
}

void shown__end(void)
{
	__u64 mask;

	lock(&mask);
	/* The count is 0 in a child that a signal handler of this thread has forked. */
	if (shown.callers && !--shown.callers)
		hide(environment__variable());
	unlock(&mask);
}

void shown__forked(void)
{
	char ***variable = environment__variable();

	shown.holder = 0;
	if (variable && shown.array && *variable == shown.array)
		*variable = shown.before;
	shown.callers = 0;
}

#define EXPORT		 __attribute__((visibility("default")))
#define NEXT(name, type) ((type)next__get(NEXT_##name))

#define X_OK 1

typedef int (*execve_t)(const char *, char *const *, char *const *);

/* How this library changes the environment of one exec. */
struct injection {
	struct environment environment; /* the environment that the target has passed */
	/* This library's directory; NULL: the environment is not changed. */
	const char *directory;
	const char *name; /* the name that LD_PRELOAD gets; NULL: this library is removed from it */
};

/* Longer paths are not tried, since a child of vfork(2) may have a small stack. */
#define SEARCHED_BYTES 512

static bool has_slash(const char *name)
{
	while (*name && *name != '/')
		name++;
	return *name;
}

static const char *searched_directories(void)
{
	char ***variable = environment__variable();

	for (char **entry = variable ? *variable : NULL; entry && *entry; entry++)
		if (text__begins(*entry, "PATH="))
			return *entry + 5;
	return "/bin:/usr/bin";
}

#define S_IFMT	0170000
#define S_IFREG 0100000

static bool is_program(const char *path)
{
	struct stat status;

	/* faccessat(2) permits to execute directories, too, so the type is checked. */
	return !sys(__NR_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) &&
	       !sys(__NR_newfstatat, AT_FDCWD, (long)path, (long)&status, 0, 0, 0) &&
	       (status.st_mode & S_IFMT) == S_IFREG;
}

/* Stores the path of the file that execvp(3) will find in @path. Returns false if there is none. */
static bool search(const char *name, char path[SEARCHED_BYTES])
{
	const char *stop = path + SEARCHED_BYTES, *from = searched_directories();

	if (has_slash(name))
		return text__append(path, stop, name);
	for (;; from++) {
		char *end = path;

		while (*from && *from != ':' && end + 2 < stop)
			*end++ = *from++;
		/* An empty entry of PATH means the working directory. */
		if (end > path)
			*end++ = '/';
		if ((!*from || *from == ':') && text__append(end, stop, name) && is_program(path))
			return true;
		while (*from && *from != ':')
			from++;
		if (!*from)
			return false;
	}
}

/* Stores a path for the file @path below the directory @fd in @out; if @path is empty, for the
 * file @fd itself. */
static void path_below(int fd, const char *path, char out[INSIDE_PATH_BYTES])
{
	char digits[12], *first = digits + sizeof(digits) - 1, *end;
	const char *stop = out + INSIDE_PATH_BYTES;

	*first = 0;
	do {
		*--first = '0' + fd % 10;
		fd /= 10;
	} while (fd > 0);
	end = text__append(out, stop, *path ? "/proc/thread-self/fd/" : "/proc/self/fd/");
	end = text__append(end, stop, first);
	if (*path)
		text__append(text__append(end, stop, "/"), stop, path);
}

static bool note_refusal(const struct program *program, const char *name,
			 enum inside_refusal refusal)
{
	char path[INSIDE_PATH_BYTES];

	if (!program)
		return process__note_refusal(name, refusal);
	if (program->at == AT_FDCWD || *program->path == '/')
		return process__note_refusal(program->path, refusal);
	path_below(program->at, program->path, path);
	return process__note_refusal(path, refusal);
}

/* Decides how the environment of an exec is changed. @program is NULL where the C library searches
 * for @name. */
static void injection__begin(struct injection *out, const struct program *program, const char *name,
			     char *const *environment)
{
	char path[SEARCHED_BYTES];
	const struct program searched = { AT_FDCWD, path };
	const char *directory;
	bool by_other_engine = false;
	int refusal = -1;

	*out = (struct injection){ .environment.entries = environment };
	if (!process__follows())
		return;
	live__share();
	directory = process__directory();
	/* allocprof has attached to this process or to one that has forked it: there is no directory from
	 * which programs could load the library. */
	if (!*directory) {
		if (!program && search(name, path))
			program = &searched;
		note_refusal(program, name, INSIDE_REFUSES_HIDDEN);
		return;
	}
	if (!environment__look(&out->environment, environment, directory) ||
	    (program && !program__has_path(program)))
		return;
	if (!program && search(name, path))
		program = &searched;
	if (sys__is_limited())
		refusal = INSIDE_REFUSES_CONFINED;
	else if (!output__is_on() && !directory__is_reachable(directory))
		refusal = INSIDE_REFUSES_HIDDEN;
	else if (sanitizer__is_preloaded(out->environment.preloaded))
		refusal = INSIDE_REFUSES_SANITIZER;
	else if (program)
		refusal = program__refusal(program, process.header->hands_over);
	if (refusal >= 0)
		by_other_engine = note_refusal(program, name, refusal);
	/* Where the environment asks for files, it is the target's to pass on, and the library stays
	 * where it is. */
	if (output__is_on() &&
	    (refusal == INSIDE_REFUSES_STATIC || !ap_refusal__clears_environment(refusal)))
		return;
	if (!ap_refusal__clears_environment(refusal) && !out->environment.traces) {
		__atomic_fetch_add(&process.header->n_injected, 1, __ATOMIC_RELAXED);
		out->name = by_other_engine && refusal == INSIDE_REFUSES_ALLOCATOR ? INSIDE_OTHER
										   : INSIDE_LIBRARY;
	}
	/* Without a new name the library must still be removed if the process's own environment
	 * has it, as it has while another thread is in system(3). */
	if (out->name || out->environment.has_library)
		out->directory = directory;
}

/* Called when an exec has failed. */
static void injection__failed(const struct injection *injection)
{
	if (injection->name)
		__atomic_fetch_sub(&process.header->n_injected, 1, __ATOMIC_RELAXED);
}

/* Executes a program. Evaluates to the result if that fails. */
#define EXECUTE(injection, call)                                                                   \
	({                                                                                         \
		int result_;                                                                       \
		live__leave(INSIDE_EXECED);                                                        \
		result_ = (call);                                                                  \
		live__stay();                                                                      \
		injection__failed(injection);                                                      \
		result_;                                                                           \
	})

/* Evaluates to the environment for the exec, which is in the caller's frame. */
#define INJECTED(injection)                                                                        \
	((injection)->directory                                                                    \
		 ? injection__fill(                                                                \
			   (injection),                                                            \
			   __builtin_alloca(((injection)->environment.n + 2) * sizeof(char *)),    \
			   __builtin_alloca(injection__text_bytes(injection)))                     \
		 : (injection)->environment.entries)

static size_t injection__text_bytes(const struct injection *injection)
{
	return environment__text_bytes(&injection->environment, injection->directory,
				       injection->name);
}

static char *const *injection__fill(const struct injection *injection, char **array, char *text)
{
	return environment__fill(&injection->environment, injection->directory, injection->name,
				 array, text)
		       ? array
		       : injection->environment.entries;
}

static char *const *current_environment(void)
{
	char ***variable = environment__variable();

	return variable ? *variable : NULL;
}

EXPORT int execve(const char *path, char *const argv[], char *const environment[]);
EXPORT int execve(const char *path, char *const argv[], char *const environment[])
{
	struct program program = { AT_FDCWD, path };
	struct injection injection;

	injection__begin(&injection, &program, NULL, environment);
	return EXECUTE(&injection, NEXT(execve, execve_t)(path, argv, INJECTED(&injection)));
}

EXPORT int execv(const char *path, char *const argv[]);
EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, current_environment());
}

EXPORT int execvpe(const char *file, char *const argv[], char *const environment[]);
EXPORT int execvpe(const char *file, char *const argv[], char *const environment[])
{
	struct injection injection;

	injection__begin(&injection, NULL, file, environment);
	return EXECUTE(&injection, NEXT(execvpe, execve_t)(file, argv, INJECTED(&injection)));
}

EXPORT int execvp(const char *file, char *const argv[]);
EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, current_environment());
}

EXPORT int fexecve(int fd, char *const argv[], char *const environment[]);
EXPORT int fexecve(int fd, char *const argv[], char *const environment[])
{
	struct program program = { fd, "" };
	struct injection injection;

	injection__begin(&injection, &program, NULL, environment);
	return EXECUTE(&injection, NEXT(fexecve, int (*)(int, char *const *, char *const *))(
					   fd, argv, INJECTED(&injection)));
}

EXPORT int execveat(int at, const char *path, char *const argv[], char *const environment[],
		    int flags);
EXPORT int execveat(int at, const char *path, char *const argv[], char *const environment[],
		    int flags)
{
	struct program program = { at, path };
	struct injection injection;

	injection__begin(&injection, &program, NULL, environment);
	return EXECUTE(&injection,
		       NEXT(execveat, int (*)(int, const char *, char *const *, char *const *,
					      int))(at, path, argv, INJECTED(&injection), flags));
}

long exec__by_number(long number, long a, long b, long c, long d, long e)
{
	if (number == __NR_execve)
		return execve((const char *)a, (char *const *)b, (char *const *)c);
	return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d, (int)e);
}

/* Returns the number of arguments with the terminating NULL. */
static size_t count_arguments(const char *first, va_list list)
{
	size_t n = 1;

	while (first) {
		first = va_arg(list, const char *);
		n++;
	}
	return n;
}

static void copy_arguments(char **argv, size_t n, const char *first, va_list list)
{
	argv[0] = (char *)first;
	for (size_t i = 1; i < n; i++)
		argv[i] = va_arg(list, char *);
}

/* Declares @argv with the arguments of execl() and its variants, in the frame of the calling
 * function. */
#define LIST_ARGUMENTS(argv, first, list)                                                          \
	do {                                                                                       \
		size_t n_;                                                                         \
		va_start(list, first);                                                             \
		n_ = count_arguments(first, list);                                                 \
		va_end(list);                                                                      \
		argv = __builtin_alloca(n_ * sizeof(char *));                                      \
		va_start(list, first);                                                             \
		copy_arguments(argv, n_, first, list);                                             \
	} while (0)

EXPORT int execl(const char *path, const char *first, ...);
EXPORT int execl(const char *path, const char *first, ...)
{
	va_list list;
	char **argv;

	LIST_ARGUMENTS(argv, first, list);
	va_end(list);
	return execve(path, argv, current_environment());
}

EXPORT int execlp(const char *file, const char *first, ...);
EXPORT int execlp(const char *file, const char *first, ...)
{
	va_list list;
	char **argv;

	LIST_ARGUMENTS(argv, first, list);
	va_end(list);
	return execvpe(file, argv, current_environment());
}

EXPORT int execle(const char *path, const char *first, ...);
EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *environment;
	va_list list;
	char **argv;

	LIST_ARGUMENTS(argv, first, list);
	environment = va_arg(list, char *const *);
	va_end(list);
	return execve(path, argv, environment);
}

typedef int (*spawn_t)(int *, const char *, const void *, const void *, char *const *,
		       char *const *);

EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
		       char *const argv[], char *const environment[]);
EXPORT int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
		       char *const argv[], char *const environment[])
{
	struct program program = { AT_FDCWD, path };
	struct injection injection;
	int err;

	injection__begin(&injection, &program, NULL, environment);
	err = NEXT(posix_spawn, spawn_t)(pid, path, actions, attributes, argv,
					 INJECTED(&injection));
	if (err)
		injection__failed(&injection);
	return err;
}

EXPORT int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes,
			char *const argv[], char *const environment[]);
EXPORT int posix_spawnp(int *pid, const char *file, const void *actions, const void *attributes,
			char *const argv[], char *const environment[])
{
	struct injection injection;
	int err;

	injection__begin(&injection, NULL, file, environment);
	err = NEXT(posix_spawnp, spawn_t)(pid, file, actions, attributes, argv,
					  INJECTED(&injection));
	if (err)
		injection__failed(&injection);
	return err;
}

/* Shows the library to the shell that the C library is about to execute. Returns whether
 * shown__end() must be called afterwards. */
static bool injection__show(struct injection *injection)
{
	injection__begin(injection, NULL, "/bin/sh", current_environment());
	if (injection->name && shown__begin(injection->directory, injection->name))
		return true;
	injection__failed(injection);
	return false;
}

EXPORT int system(const char *command);
EXPORT int system(const char *command)
{
	struct injection injection;
	bool is_shown = command && injection__show(&injection);
	int status = NEXT(system, int (*)(const char *))(command);

	if (is_shown)
		shown__end();
	return status;
}

/* Returns whether wordexp(3) executes a shell for @words. */
static bool has_command(const char *words, int flags)
{
	const int no_commands = 1 << 2;

	for (; words && !(flags & no_commands) && *words; words++)
		if (*words == '`' || (*words == '$' && words[1] == '(' && words[2] != '('))
			return true;
	return false;
}

EXPORT int wordexp(const char *words, void *expanded, int flags);
EXPORT int wordexp(const char *words, void *expanded, int flags)
{
	struct injection injection;
	bool is_shown = has_command(words, flags) && injection__show(&injection);
	int err = NEXT(wordexp, int (*)(const char *, void *, int))(words, expanded, flags);

	if (is_shown)
		shown__end();
	return err;
}

EXPORT void *popen(const char *command, const char *type);
EXPORT void *popen(const char *command, const char *type)
{
	struct injection injection;
	bool is_shown = injection__show(&injection);
	void *stream = NEXT(popen, void *(*)(const char *, const char *))(command, type);

	if (is_shown)
		shown__end();
	return stream;
}
