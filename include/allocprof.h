/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Regions of a program whose allocations `allocprof stat` and `allocprof check` count apart: allocprof-stat(1),
 * Regions. For C (C99 and later) and C++; there is no library to link with. Unmeasured a mark is one nop
 * and, on x86-64 and arm64, a load and a branch; and a note in the file that is not loaded.
 *
 *	ALLOCPROF_REGION("parse");
 *
 * is a declaration: from there to the end of the scope, however that is left.
 *
 *	ALLOCPROF_BEGIN("parse");
 *	...
 *	ALLOCPROF_END("parse");
 *
 * are statements, both to be passed by the same function. Names are string literals without a colon. The marks
 * are the USDT probes allocprof_begin:parse and allocprof_end:parse, for --start-on and --stop-on; in C the end
 * of an ALLOCPROF_REGION is allocprof_leave:scope, whatever the region.
 *
 *	struct allocprof_figures figures;
 *	int answer = allocprof_read("parse", &figures);
 *
 *	if (answer != ALLOCPROF_READ_NOBODY)
 *		assert(answer > 0 && figures.allocations == 0);
 *
 * reads what was counted so far: allocprof-targets(7), FIGURES IN THE PROGRAM.
 *
 *	struct allocprof_task task = { 0 };
 *
 *	ALLOCPROF_ENTER("request", &task);
 *	...
 *	ALLOCPROF_LEAVE("request", &task);
 *
 * are statements, too, around each part of asynchronous work, in whatever function or thread. In a C++20 coroutine
 *
 *	ALLOCPROF_TASK("request", task);
 *	auto text = co_await task.await(socket.read());
 *
 * is a declaration as ALLOCPROF_REGION is, and the thread is out of the region while the coroutine is suspended.
 */
#ifndef ALLOCPROF_H
#define ALLOCPROF_H

/* Figures of all threads of this process together, in a region, or since the process is measured. The words are
 * those of `allocprof stat`. Fields may be added at the end: a program is told no more than it was compiled for. */
struct allocprof_figures {
	unsigned long long allocations, reallocations, deallocations;
	/* Without ALLOCPROF_READ_LIVE the bytes that allocations and reallocations asked for. With it
	 * reallocations count by what they add to blocks or take from them, and are in all three
	 * sums, as the crate stats_alloc has it. */
	unsigned long long bytes_allocated;
	long long bytes_reallocated;
	/* The fields from here to @entered are 0 without ALLOCPROF_READ_LIVE. */
	unsigned long long bytes_deallocated;
	/* Allocated and not freed yet. Negative where more was freed than allocated, as a region may. */
	long long live, live_bytes;
	/* For the process only, otherwise 0. @peak_bytes is the most that was live in all measured
	 * processes together. */
	unsigned long long peak_bytes, temporary, temporary_bytes;
	/* How often the region was begun, or the task entered; 0 for the process and the thread. */
	unsigned long long entered;
};

/* In place of a region's name: what the calling thread has done. Names of regions have no colon. */
#define ALLOCPROF_THREAD ":thread"

/* The answers of allocprof_read() are greater than 0 where the figures are exact. */
enum allocprof_answer {
	/* Nobody measures this process. All figures are 0. */
	ALLOCPROF_READ_NOBODY = 0,
	ALLOCPROF_READ_COUNTS = 1, /* calls are counted */
	ALLOCPROF_READ_LIVE = 2,   /* blocks are followed, too: --live, or check */
	/* Probes in the kernel count, which the program cannot read. All figures are 0.
	 * --engine=preload counts where it can. */
	ALLOCPROF_READ_PROBES = -1,
	/* This command counts no regions: stat and check do. All figures are 0. */
	ALLOCPROF_READ_NO_REGIONS = -2,
	/* Calls were missed, so the figures may be too low; the report says which. */
	ALLOCPROF_READ_INCOMPLETE = -3,
	/* Nobody has begun a region of this name since the measurement began, as where the name is
	 * misspelt. All figures are 0. */
	ALLOCPROF_READ_NOT_BEGUN = -4
};

#if defined(__linux__) && defined(__LP64__) && defined(__GNUC__)

/* Versions of clang-format do not agree on it. */
/* clang-format off */
/* As SystemTap's sdt.h writes them, version 3 of the note. The name is in quotes. The arguments tell the kinds of
 * beginnings apart. */
#define ALLOCPROF_NOTE_TEXT_(provider, name, arguments)                                                     \
	"990:	nop\n"                                                                               \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                                              \
	".balign 4\n"                                                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                                                         \
	"991:	.asciz \"stapsdt\"\n"                                                                \
	"992:	.balign 4\n"                                                                         \
	"993:	.8byte 990b\n"                                                                       \
	"	.8byte _.stapsdt.base\n"                                                                 \
	"	.8byte 0\n"                                                                              \
	"	.asciz \"" provider "\"\n"                                                              \
	"	.asciz " name "\n"                                                                      \
	"	.asciz \"" arguments "\"\n"                                                             \
	"994:	.balign 4\n"                                                                         \
	".popsection\n"                                                                            \
	".ifndef _.stapsdt.base\n"                                                                 \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                    \
	".weak _.stapsdt.base\n"                                                                   \
	".hidden _.stapsdt.base\n"                                                                 \
	"_.stapsdt.base: .space 1\n"                                                               \
	".size _.stapsdt.base, 1\n"                                                                \
	".popsection\n"                                                                            \
	".endif\n"
/* The name is a literal. */
#define ALLOCPROF_NOTE_(provider, name, arguments)                                                          \
	__asm__ __volatile__(ALLOCPROF_NOTE_TEXT_(provider, #name, arguments) ::: "memory")

/* What `allocprof --engine=preload` loads into the process defines a function that the mark calls. Its address is in the
 * global offset table, where it is 0 otherwise, also in static programs; C alone would refer to it without the table
 * in programs that are not position independent, where it is 0 for good. */
#if defined(__x86_64__) && !defined(__code_model_large__)
#define ALLOCPROF_LOAD_(symbol) "mov{q	" symbol "@GOTPCREL(%%rip), %0|	%0, QWORD PTR " symbol "@GOTPCREL[rip]}\n"
#define ALLOCPROF_LOAD_NOP_	"movz{bl	990b(%%rip), %1|x	%1, BYTE PTR 990b[rip]}\n"
#define ALLOCPROF_NOP_		0x90
#elif defined(__aarch64__) && !defined(__AARCH64_CMODEL_LARGE__)
#define ALLOCPROF_LOAD_(symbol) "adrp	%0, :got:" symbol "\n	ldr	%0, [%0, :got_lo12:" symbol "]\n"
#define ALLOCPROF_LOAD_NOP_	"ldr	%w1, 990b\n"
#define ALLOCPROF_NOP_		((int)0xd503201fU)
#endif
#ifdef ALLOCPROF_LOAD_
#define ALLOCPROF_CALL_(kind, name)                                                                         \
	do {                                                                                       \
		void (*allocprof_call_)(int, const char *);                                        \
		__asm__(".weak allocprof_mark_\n" ALLOCPROF_LOAD_("allocprof_mark_") : "=r"(allocprof_call_)); \
		if (__builtin_expect(allocprof_call_ != 0, 0)) {                                   \
			allocprof_call_(kind, name);                                               \
			/* No jump out of a frame that is gone then. */                            \
			__asm__ __volatile__("" ::: "memory");                                     \
		}                                                                                  \
	} while (0)
#else
#define ALLOCPROF_CALL_(kind, name) ((void)0)
#endif
/* clang-format on */

/* The kinds of marks, as the measurement knows them: enum ap_region_mark. */
#define ALLOCPROF_MARK_(provider, name, arguments, kind)                                           \
	do {                                                                                       \
		ALLOCPROF_NOTE_(provider, name, arguments);                                        \
		ALLOCPROF_CALL_(kind, name);                                                       \
	} while (0)

#define ALLOCPROF_JOIN_(a, b)	a##b
#define ALLOCPROF_UNIQUE_(a, b) ALLOCPROF_JOIN_(a, b)

#define ALLOCPROF_BEGIN(name)  ALLOCPROF_MARK_("allocprof_begin", name, "", 0)
#define ALLOCPROF_ENTER_(name) ALLOCPROF_MARK_("allocprof_begin", name, "-4@$1", 1)
#define ALLOCPROF_END(name)    ALLOCPROF_MARK_("allocprof_end", name, "", 2)
/* A begin of asynchronous work, which no frame ends. */
#define ALLOCPROF_RESUME_(name) ALLOCPROF_MARK_("allocprof_begin", name, "-4@$2", 4)

/* Marks of a scope are in the function's own frame, also where nothing else is inlined: so a call above it is
 * known to be outside of the region. */
#ifdef __cplusplus
#define ALLOCPROF_REGION(name)                                                                     \
	struct ALLOCPROF_UNIQUE_(allocprof_region_, __LINE__) {                                    \
		__attribute__((__always_inline__))                                                 \
		ALLOCPROF_UNIQUE_(allocprof_region_, __LINE__)()                                   \
		{                                                                                  \
			ALLOCPROF_ENTER_(name);                                                    \
		}                                                                                  \
		__attribute__((__always_inline__)) ~ALLOCPROF_UNIQUE_(allocprof_region_,           \
								      __LINE__)()                  \
		{                                                                                  \
			ALLOCPROF_END(name);                                                       \
		}                                                                                  \
	} ALLOCPROF_UNIQUE_(allocprof_in_, __LINE__)
#else
static inline __attribute__((__always_inline__)) void allocprof_leave_(const char *scope)
{
	(void)scope;
	ALLOCPROF_MARK_("allocprof_leave", "scope", "", 3);
}

#define ALLOCPROF_REGION(name)                                                                     \
	__attribute__((__cleanup__(allocprof_leave_), __unused__)) const char ALLOCPROF_UNIQUE_(   \
		allocprof_in_, __LINE__) = __extension__({                                         \
		ALLOCPROF_ENTER_(name);                                                            \
		(char)0;                                                                           \
	})
#endif

/* clang-format off */
/* A probe that is set at this note has a breakpoint in the place of the nop: so the program knows that probes count. */
#ifdef ALLOCPROF_LOAD_
#define ALLOCPROF_SOURCE_(function, nop)                                                                    \
	__asm__ __volatile__(ALLOCPROF_NOTE_TEXT_("allocprof_read", "\"figures\"", "")             \
		".weak allocprof_read_\n" ALLOCPROF_LOAD_("allocprof_read_") ALLOCPROF_LOAD_NOP_    \
		: "=&r"(function), "=r"(nop)                                                       \
		:                                                                                  \
		: "memory")
#else
#define ALLOCPROF_NOP_			 0
#define ALLOCPROF_SOURCE_(function, nop) ((void)0)
#endif
/* clang-format on */

/*
 * Stores in *@figures what was counted in the region of this name by all threads of this process, or by this
 * thread if it is ALLOCPROF_THREAD, or in the process if it is a null pointer. Returns an enum allocprof_answer.
 * It allocates nothing.
 */
static inline int allocprof_read(const char *region, struct allocprof_figures *figures)
{
	int (*function)(const char *, void *, unsigned long) = 0;
	int nop = ALLOCPROF_NOP_;

	ALLOCPROF_SOURCE_(function, nop);
	__builtin_memset(figures, 0, sizeof(*figures));
	if (function)
		return function(region, figures, sizeof(*figures));
	return nop != ALLOCPROF_NOP_ ? ALLOCPROF_READ_PROBES : ALLOCPROF_READ_NOBODY;
}

#else

#define ALLOCPROF_JOIN_(a, b)	a##b
#define ALLOCPROF_UNIQUE_(a, b) ALLOCPROF_JOIN_(a, b)

static inline int allocprof_read(const char *region, struct allocprof_figures *figures)
{
	static const struct allocprof_figures none = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

	(void)region;
	*figures = none;
	return ALLOCPROF_READ_NOBODY;
}

#define ALLOCPROF_BEGIN(name)	((void)0)
#define ALLOCPROF_RESUME_(name) ((void)0)
#define ALLOCPROF_END(name)	((void)0)
/* A declaration here too. */
#define ALLOCPROF_REGION(name)	struct ALLOCPROF_UNIQUE_(allocprof_region_, __LINE__)

#endif

/* Asynchronous work: figures of its own, of what threads do between ALLOCPROF_ENTER() and ALLOCPROF_LEAVE(). To be
 * initialized with zeros. */
struct allocprof_task {
	/* The sums of the parts that threads have left so far, and what allocprof_read() answered in them: if not
	 * always the same, ALLOCPROF_READ_INCOMPLETE. */
	struct allocprof_figures figures;
	int answer;
	int is_entered_;
	unsigned long long entered_;
	struct allocprof_figures before_; /* the thread's when it entered */
};

static inline void allocprof_task_enter_(struct allocprof_task *task)
{
	int answer = allocprof_read(ALLOCPROF_THREAD, &task->before_);

	if (!task->entered_++)
		task->answer = answer;
	else if (task->answer != answer)
		task->answer = ALLOCPROF_READ_INCOMPLETE;
	task->is_entered_ = 1;
}

static inline void allocprof_task_leave_(struct allocprof_task *task)
{
	struct allocprof_figures now, *sum = &task->figures;
	const struct allocprof_figures *before = &task->before_;
	int answer = allocprof_read(ALLOCPROF_THREAD, &now);

	task->is_entered_ = 0;
	if (task->answer != answer)
		task->answer = ALLOCPROF_READ_INCOMPLETE;
	if (answer <= 0 && answer != ALLOCPROF_READ_INCOMPLETE)
		return;
	sum->allocations += now.allocations - before->allocations;
	sum->reallocations += now.reallocations - before->reallocations;
	sum->deallocations += now.deallocations - before->deallocations;
	sum->bytes_allocated += now.bytes_allocated - before->bytes_allocated;
	sum->bytes_reallocated += now.bytes_reallocated - before->bytes_reallocated;
	sum->bytes_deallocated += now.bytes_deallocated - before->bytes_deallocated;
	sum->live += now.live - before->live;
	sum->live_bytes += now.live_bytes - before->live_bytes;
	sum->entered = task->entered_;
}

/* Between them nothing may be suspended. Each entering is a beginning of the region. */
#define ALLOCPROF_ENTER(name, task)                                                                \
	do {                                                                                       \
		ALLOCPROF_RESUME_(name);                                                           \
		allocprof_task_enter_(task);                                                       \
	} while (0)
#define ALLOCPROF_LEAVE(name, task)                                                                \
	do {                                                                                       \
		allocprof_task_leave_(task);                                                       \
		ALLOCPROF_END(name);                                                               \
	} while (0)

#if defined(__cplusplus) && defined(__cpp_impl_coroutine) && defined(__cpp_concepts)
template <class Awaitable> constexpr decltype(auto) allocprof_awaiter_(Awaitable &&awaitable)
{
	if constexpr (requires { static_cast<Awaitable &&>(awaitable).operator co_await(); })
		return static_cast<Awaitable &&>(awaitable).operator co_await();
	else if constexpr (requires { operator co_await(static_cast<Awaitable &&>(awaitable)); })
		return operator co_await(static_cast<Awaitable &&>(awaitable));
	else
		return static_cast<Awaitable &&>(awaitable);
}

/* Leaves the task before @awaiter suspends the coroutine, which another thread may resume before that returns, and
 * enters it before @awaiter gives the result. */
template <class Task, class Awaiter> struct allocprof_await_ {
	Task &task;
	Awaiter awaiter;

	bool await_ready()
	{
		return awaiter.await_ready();
	}
	/* Not inlined, since some versions of clang keep the variables of an inlined one in the coroutine's frame, which may be
	 * gone by then. */
	template <class Handle>
	__attribute__((__noinline__)) auto await_suspend(Handle handle)
		-> decltype(awaiter.await_suspend(handle))
	{
		/* What throws has not suspended it, and there will be no await_resume(). */
		struct enter_if_thrown {
			Task *task;
			~enter_if_thrown()
			{
				if (task)
					task->enter();
			}
		} guard{ &task };

		task.leave();
		if constexpr (__is_same(decltype(awaiter.await_suspend(handle)), void)) {
			awaiter.await_suspend(handle);
			guard.task = nullptr;
		} else {
			auto next = awaiter.await_suspend(handle);

			guard.task = nullptr;
			return next;
		}
	}
	decltype(auto) await_resume()
	{
		task.enter();
		return awaiter.await_resume();
	}
};

template <class Marks> class allocprof_task_
{
      public:
	__attribute__((__always_inline__)) allocprof_task_()
	{
		enter();
	}
	__attribute__((__always_inline__)) ~allocprof_task_()
	{
		leave();
	}
	allocprof_task_(const allocprof_task_ &) = delete;
	allocprof_task_ &operator=(const allocprof_task_ &) = delete;

	/* These do nothing where it is entered, or left, already. */
	__attribute__((__always_inline__)) void enter()
	{
		if (task.is_entered_)
			return;
		Marks::begin();
		allocprof_task_enter_(&task);
	}
	__attribute__((__always_inline__)) void leave()
	{
		if (!task.is_entered_)
			return;
		allocprof_task_leave_(&task);
		Marks::end();
	}
	/* What is to be awaited instead of @awaitable, at once. */
	template <class Awaitable> auto await(Awaitable &&awaitable)
	{
		using awaiter = decltype(allocprof_awaiter_(static_cast<Awaitable &&>(awaitable)));

		return allocprof_await_<allocprof_task_, awaiter>{
			*this, allocprof_awaiter_(static_cast<Awaitable &&>(awaitable))
		};
	}
	/* As allocprof_read(), with the figures until now. */
	int read(struct allocprof_figures *figures) const
	{
		struct allocprof_task now = task;

		if (now.is_entered_)
			allocprof_task_leave_(&now);
		*figures = now.figures;
		return now.answer;
	}

      private:
	struct allocprof_task task = {};
};

#define ALLOCPROF_TASK(name, task)                                                                 \
	struct ALLOCPROF_UNIQUE_(allocprof_marks_, __LINE__) {                                     \
		__attribute__((__always_inline__)) static void begin()                             \
		{                                                                                  \
			ALLOCPROF_RESUME_(name);                                                   \
		}                                                                                  \
		__attribute__((__always_inline__)) static void end()                               \
		{                                                                                  \
			ALLOCPROF_END(name);                                                       \
		}                                                                                  \
	};                                                                                         \
	allocprof_task_<ALLOCPROF_UNIQUE_(allocprof_marks_, __LINE__)> task
#endif

#endif
