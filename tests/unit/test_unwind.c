// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The programs' unwinding, compiled for the host (tests/twin): over our own stacks, against what
 * libgcc's unwinder says; over made-up ones, whose frames are known; and over nonsense. Built a second time
 * (INSIDE_HOST) for the unwinder that is preloaded into processes.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <unwind.h>

#include "cfi.h"
#include "twin.h"
#include "random.h"
#include "record_abi.h"

static struct unwind_tables *tables;

static int set_up(void **state)
{
	twin__reset();
	tables = unwind_tables__new(&(struct unwind_writer){ .write = twin__write });
	return !tables;
}

static int tear_down(void **state)
{
	unwind_tables__free(tables);
	twin__free();
	return 0;
}

static void assert_same(const struct twin_walk *walk, const struct twin_walk *other)
{
	assert_int_equal(walk->n_frames, other->n_frames);
	assert_int_equal(walk->end, other->end);
	assert_memory_equal(walk->frames, other->frames, walk->n_frames * sizeof(walk->frames[0]));
	assert_int_equal(walk->hash, other->hash);
}

/* The same with nothing remembered; what is remembered afterwards is of that walk. */
static void walk_fresh(const struct twin_hit *hit, struct twin_walk *walk)
{
	twin__forget();
	twin__walk(hit, walk);
}

/* ---- our own stacks ---- */

#define MAX_MAPPINGS 512
#define CAPTURED_MAX (1 << 20)

static struct twin_mapping own[MAX_MAPPINGS];
static char own_paths[MAX_MAPPINGS][256];
static size_t n_own;
static __u64 stack_ends[2]; /* of the thread's stack and the signal stack */
static unsigned char signal_stack[65536] __attribute__((aligned(4096)));

static struct {
	struct twin_hit hit;
	__u64 pcs[AP_MAX_DEPTH];
	__u32 n_pcs;
	struct twin_memory memory[2];
	unsigned char *bytes[2];
	bool done;
} captured;

/* What a probe sees at a function's entry. */
struct twin_hit entry;
void capture(void);
void capture_at_entry(void);

__asm__(".text\n"
	".globl capture\n"
	".type capture, @function\n"
	"capture:\n"
	"	.cfi_startproc\n"
	"	mov entry@GOTPCREL(%rip), %rax\n"
	"	mov %rsp, (%rax)\n"
	"	mov %rbp, 8(%rax)\n"
	"	jmp capture_at_entry\n"
	"	.cfi_endproc\n"
	".size capture, . - capture\n");

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *skip)
{
	int before;
	__u64 pc = _Unwind_GetIPInfo(context, &before);

	/* The first is capture_at_entry() itself. */
	if ((*(int *)skip)-- > 0)
		return _URC_NO_REASON;
	if (pc && captured.n_pcs < AP_MAX_DEPTH)
		captured.pcs[captured.n_pcs++] = pc;
	return _URC_NO_REASON;
}

/* Word by word, past all red zones. */
__attribute__((no_sanitize_address, no_sanitize("undefined"), noinline)) static void
copy_stack(unsigned char *to, __u64 from, size_t size)
{
	const volatile __u64 *words = (const volatile __u64 *)(uintptr_t)from;

	for (size_t i = 0; i < size / 8; i++)
		((volatile __u64 *)to)[i] = words[i];
}

static void capture_region(int i, __u64 start, __u64 end)
{
	size_t size = end - start < CAPTURED_MAX ? end - start : CAPTURED_MAX;

	copy_stack(captured.bytes[i], start, size);
	captured.memory[i] = (struct twin_memory){ start, size, captured.bytes[i] };
}

void capture_at_entry(void)
{
	__u64 low = (uintptr_t)signal_stack;
	int skip = 1;

	captured.hit = entry;
	captured.n_pcs = 0;
	_Unwind_Backtrace(note_frame, &skip);
	if (entry.sp - low < sizeof(signal_stack)) {
		capture_region(1, entry.sp & ~7ULL, low + sizeof(signal_stack));
		/* The interrupted frames lie further up than this function's caller's did. */
		capture_region(0, stack_ends[1], stack_ends[0]);
	} else {
		capture_region(0, entry.sp & ~7ULL, stack_ends[0]);
		captured.memory[1] = (struct twin_memory){ 0 };
	}
	captured.done = true;
}

static void read_own_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[1024];

	assert_non_null(file);
	n_own = 0;
	while (fgets(line, sizeof(line), file) && n_own < MAX_MAPPINGS) {
		struct twin_mapping *mapping = &own[n_own];
		unsigned long long start, end, offset, inode;
		unsigned int major, minor;
		char protection[8], path[256] = "";

		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %255s", &start, &end, protection,
			   &offset, &major, &minor, &inode, path) < 7)
			continue;
		if (!strcmp(path, "[stack]"))
			stack_ends[0] = end;
		*mapping = (struct twin_mapping){
			start, end, offset, inode, major << 20 | minor, protection[2] == 'x'
		};
		strcpy(own_paths[n_own++], path);
	}
	fclose(file);
	twin__set_mappings(own, n_own);
}

/* As user space does on a module's record. */
static void meet_file(const struct ap_module_record *record)
{
	struct loaded_table loaded = { 0 };
	struct cfi_table *table = NULL;
	int fd;

	for (size_t i = 0; i < n_own; i++) {
		if (own[i].inode != record->inode || own[i].device != record->device)
			continue;
		fd = open(own_paths[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			break;
		if (!cfi_table__build(fd, own_paths[i], &table, NULL))
			assert_int_equal(unwind_tables__load(tables, table, &loaded), 0);
		cfi_table__free(table);
		close(fd);
		break;
	}
	assert_int_equal(unwind_tables__assign(tables, record->id, &loaded), 0);
}

/* The frame's address in the process. */
static __u64 frame_pc(const struct ap_frame *frame, const __u64 *candidates, __u32 n)
{
	if (!frame->module)
		return frame->offset;
	for (__u32 i = 0; i < n; i++)
		for (size_t j = 0; j < n_own; j++)
			if (own[j].executable && candidates[i] >= own[j].start &&
			    candidates[i] <= own[j].end &&
			    candidates[i] - own[j].start + own[j].offset == frame->offset)
				return candidates[i];
	return 0;
}

static void check_captured(void)
{
	struct twin_walk walk, again;

	assert_true(captured.done);
	captured.done = false;
	twin__set_memory(captured.memory, captured.memory[1].size ? 2 : 1);
	walk_fresh(&captured.hit, &walk);
	for (__u32 i = 0; i < walk.n_frames && i < captured.n_pcs; i++)
		if (frame_pc(&walk.frames[i], &captured.pcs[i], 1) != captured.pcs[i])
			fail_msg("frame %u is %u+%#llx, libgcc says %#llx", i,
				 walk.frames[i].module, walk.frames[i].offset, captured.pcs[i]);
	assert_int_equal(walk.n_frames, captured.n_pcs);
	assert_int_equal(walk.end, AP_END_COMPLETE);
	twin__walk(&captured.hit, &again);
	assert_same(&again, &walk);
}

static volatile int one = 1;

static __attribute__((noinline)) int recurse(int depth)
{
	if (!depth) {
		capture();
		return one;
	}
	return recurse(depth - one) + one;
}

static __attribute__((noinline)) int with_alloca(size_t size)
{
	volatile char *block = __builtin_alloca(size);
	int result;

	block[0] = one;
	result = recurse(3);
	return result + block[0];
}

static __attribute__((noinline)) int realigned(void)
{
	volatile char block[128] __attribute__((aligned(128)));
	int result;

	block[0] = one;
	result = with_alloca(one * 1000);
	return result + block[0];
}

static __attribute__((noinline)) int large_frame(void)
{
	volatile char block[20000];
	int result;

	block[0] = block[sizeof(block) - 1] = one;
	result = realigned();
	return result + block[0];
}

static void on_signal(int signal)
{
	recurse(2);
}

static int compare(const void *a, const void *b)
{
	if (!captured.done)
		recurse(1);
	return *(const int *)a - *(const int *)b;
}

static void set_up_own(void)
{
	for (int i = 0; i < 2; i++) {
		captured.bytes[i] = malloc(CAPTURED_MAX);
		assert_non_null(captured.bytes[i]);
	}
	read_own_mappings();
	twin__on_module(meet_file);
}

static void tear_down_own(void)
{
	for (int i = 0; i < 2; i++)
		free(captured.bytes[i]);
}

static void test_own_stacks(void **state)
{
	int numbers[] = { 3, 1, 2 };

	set_up_own();
	capture();
	check_captured();
	for (int depth = 0; depth < 60; depth += 7) {
		recurse(depth);
		check_captured();
	}
	with_alloca(one * 333);
	check_captured();
	realigned();
	check_captured();
	large_frame();
	check_captured();
	qsort(numbers, ARRAY_SIZE(numbers), sizeof(numbers[0]), compare);
	check_captured();
	tear_down_own();
}

static void test_own_signal_frames(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	stack_t stack = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) }, old_stack;

	set_up_own();
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	raise(SIGUSR1);
	check_captured();
	assert_int_equal(sigaltstack(&stack, &old_stack), 0);
	action.sa_flags = SA_ONSTACK;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	/* Far enough down for all that raise() and the kernel put there. */
	stack_ends[1] = ((uintptr_t)__builtin_frame_address(0) - 16384) & ~7ULL;
	raise(SIGUSR1);
	check_captured();
	sigaltstack(&old_stack, NULL);
	sigaction(SIGUSR1, &old, NULL);
	tear_down_own();
}

/* ---- made-up programs ---- */

#define TEXT	       0x400000ULL
#define TEXT_OFFSET    0x3000ULL
#define FUNCTION_BYTES (1 << UNWIND_BLOCK_SHIFT)
#define N_FUNCTIONS    600
#define STACK_TOP      0x7ffff000ULL
#define STACK_BYTES    (256 << 10)
#define STACK_START    (STACK_TOP - STACK_BYTES)
#define MAX_CALLS      600

enum kind {
	KIND_SP,	/* no frame pointer */
	KIND_SP_SAVES,	/* saves it and uses it for something else */
	KIND_FP,	/* frame pointer */
	KIND_AT_SP,	/* the CFA is in a word of stack */
	KIND_SIGNAL,	/* the kernel's frame around a handler */
	KIND_BARE_FP,	/* no call frame information, frame pointer */
	KIND_OUTERMOST, /* _start */
	KINDS,
};

struct call {
	__u16 function;
	__u16 at; /* the return address, in the function */
};

static enum kind kinds[N_FUNCTIONS];
static __u32 sizes[N_FUNCTIONS]; /* of frames, with the return address: bytes */
static __u64 stack[STACK_BYTES / 8];

static struct unwind_rule make_rule(enum kind kind, __u32 size)
{
	struct unwind_rule rule = {
		.cfa = UNWIND_CFA_SP,
		.ra_where = UNWIND_AT_CFA,
		.cfa_offset = size,
		.ra_offset = -8,
	};

	switch (kind) {
	case KIND_SP_SAVES:
		rule.fp_where = UNWIND_AT_CFA;
		rule.fp_offset = -16;
		break;
	case KIND_FP:
		rule.cfa = UNWIND_CFA_FP;
		rule.cfa_offset = 16;
		rule.fp_where = UNWIND_AT_CFA;
		rule.fp_offset = -16;
		break;
	case KIND_AT_SP:
		rule.cfa = UNWIND_CFA_AT_SP;
		rule.cfa_offset = 8;
		rule.cfa_add = 24;
		break;
	case KIND_SIGNAL:
		rule.flags = UNWIND_SIGNAL_FRAME;
		break;
	case KIND_BARE_FP:
		memset(&rule, 0, sizeof(rule));
		break;
	case KIND_OUTERMOST:
		rule.ra_where = UNWIND_UNDEFINED;
		break;
	default:
		break;
	}
	return rule;
}

/* A program with a function per block of its table, whose first is the outermost. */
static void make_program(const unsigned int *weights)
{
	static const struct twin_mapping mappings[] = {
		{ TEXT, TEXT + N_FUNCTIONS * FUNCTION_BYTES, TEXT_OFFSET, 77, 1, true },
		{ STACK_START, STACK_TOP, 0, 0, 0, false },
	};
	static const struct twin_memory memory = { STACK_START, STACK_BYTES, stack };
	static struct unwind_rule rules[N_FUNCTIONS];
	static struct unwind_row rows[N_FUNCTIONS];
	static __u32 blocks[N_FUNCTIONS + 1];
	struct unwind_segment segment = {
		.file_offset = TEXT_OFFSET,
		.vaddr = TEXT,
		.size = N_FUNCTIONS * FUNCTION_BYTES,
	};
	struct cfi_table table = { &segment, blocks,	      rows,	   rules,
				   1,	     N_FUNCTIONS + 1, N_FUNCTIONS, N_FUNCTIONS };
	struct loaded_table loaded = { 0 };
	unsigned int sum = 0, pick;

	for (int kind = 0; kind < KINDS; kind++)
		sum += weights[kind];
	for (__u32 i = 0; i < N_FUNCTIONS; i++) {
		pick = below(sum);
		kinds[i] = 0;
		while (pick >= weights[kinds[i]])
			pick -= weights[kinds[i]++];
		if (!i)
			kinds[i] = KIND_OUTERMOST;
		sizes[i] = 32 + 8 * below(i % 50 ? 8 : 300);
		rules[i] = make_rule(kinds[i], sizes[i]);
		rows[i] = (struct unwind_row){ .pc_lo = i * FUNCTION_BYTES, .rule = i };
		blocks[i] = i;
	}
	blocks[N_FUNCTIONS] = N_FUNCTIONS;
	assert_int_equal(unwind_tables__load(tables, &table, &loaded), 0);
	/* The id that the program's file will get. */
	assert_int_equal(unwind_tables__assign(tables, AP_MODULE_VDSO + 1, &loaded), 0);
	twin__set_mappings(mappings, ARRAY_SIZE(mappings));
	twin__set_memory(&memory, 1);
	for (size_t i = 0; i < ARRAY_SIZE(stack); i++)
		stack[i] = random_u64();
}

static void put_word(__u64 address, __u64 value)
{
	stack[(address - STACK_START) / 8] = value;
}

static struct call random_call(void)
{
	struct call call = { 1 + below(N_FUNCTIONS - 1), 1 + below(FUNCTION_BYTES - 1) };

	return call;
}

static __u64 call_pc(const struct call *call)
{
	return TEXT + call->function * FUNCTION_BYTES + call->at;
}

/* Makes the stack of the calls, outermost first, up to an allocator's entry. */
static struct twin_hit make_stack(const struct call *calls, __u32 n)
{
	__u64 sp = STACK_TOP - 256, fp = 0, cfa;

	for (__u32 i = 0; i < n; i++) {
		__u32 function = calls[i].function;

		cfa = sp;
		if (i)
			put_word(cfa - 8, call_pc(&calls[i - 1]));
		sp = cfa - sizes[function];
		switch (kinds[function]) {
		case KIND_SP_SAVES:
			put_word(cfa - 16, fp);
			fp = call_pc(&calls[i]) * 0x9e3779b97f4a7c15ULL;
			break;
		case KIND_FP:
		case KIND_BARE_FP:
			put_word(cfa - 16, fp);
			fp = cfa - 16;
			break;
		case KIND_AT_SP:
			put_word(sp + 8, cfa - 24);
			break;
		default:
			break;
		}
	}
	put_word(sp - 8, call_pc(&calls[n - 1]));
	return (struct twin_hit){ sp - 8, fp };
}

static void check_frames(const struct twin_walk *walk, const struct call *calls, __u32 n,
			 __u32 max_depth)
{
	__u32 end = AP_END_COMPLETE, wanted = n < max_depth ? n : max_depth;
	bool interrupted = false;

	assert_int_equal(walk->n_frames, wanted);
	for (__u32 i = 0; i < wanted; i++) {
		const struct call *call = &calls[n - 1 - i];

		assert_int_equal(walk->frames[i].module, AP_MODULE_VDSO + 1);
		assert_int_equal(walk->frames[i].offset, call_pc(call) - TEXT + TEXT_OFFSET);
		assert_int_equal(walk->frames[i].flags, interrupted ? AP_FRAME_INTERRUPTED : 0);
		interrupted = kinds[call->function] == KIND_SIGNAL;
		if (kinds[call->function] == KIND_BARE_FP)
			end = AP_END_FRAME_POINTERS;
	}
	assert_int_equal(walk->end, n > max_depth ? AP_END_MAX_DEPTH : end);
}

static __u32 random_calls(struct call *calls, __u32 n)
{
	calls[0] = (struct call){ 0, 1 + below(FUNCTION_BYTES - 1) };
	for (__u32 i = 1; i < n; i++)
		calls[i] = random_call();
	return n;
}

static const unsigned int plain[KINDS] = { 3, 3, 3 };
static const unsigned int all[KINDS] = { 20, 20, 20, 2, 1, 1 };

static void test_memory(void **state)
{
	struct call calls[40];
	struct twin_walk walk, again, other;
	struct twin_hit hit;

	seed(1);
	make_program(plain);
	random_calls(calls, 40);
	hit = make_stack(calls, 40);
	walk_fresh(&hit, &walk);
	check_frames(&walk, calls, 40, 127);
	assert_true(walk.lookups > 40);

	/* The same again: nothing is looked up. */
	twin__walk(&hit, &again);
	assert_same(&again, &walk);
	assert_int_equal(again.lookups, 0);

	/* The innermost of the frames are others: only these are looked up. */
	for (int i = 35; i < 40; i++)
		calls[i] = random_call();
	hit = make_stack(calls, 40);
	twin__walk(&hit, &other);
	check_frames(&other, calls, 40, 127);
	assert_int_not_equal(other.hash, walk.hash);
	assert_true(other.lookups <= 6 * 3);

	/* A function in the middle calls from another place, all else being equal. */
	calls[20].at ^= 0x80;
	calls[20].at |= 1;
	hit = make_stack(calls, 40);
	twin__walk(&hit, &again);
	check_frames(&again, calls, 40, 127);
	assert_int_not_equal(again.hash, other.hash);
	assert_true(again.lookups > 0 && again.lookups <= 3);

	/* Returns and calls. */
	for (__u32 n = 40; n; n--) {
		hit = make_stack(calls, n);
		twin__walk(&hit, &again);
		check_frames(&again, calls, n, 127);
		assert_int_equal(again.lookups, 0);
	}
	hit = make_stack(calls, 40);
	twin__walk(&hit, &again);
	check_frames(&again, calls, 40, 127);

	/* Code was mapped or unmapped: nothing that was remembered counts. */
	twin__change_code();
	twin__walk(&hit, &other);
	assert_same(&other, &again);
	assert_true(other.lookups > 40);
}

/* A copy that reaches beyond the stack's memory fails. Where that ends is found once, and not by each stack that is
 * deeper or shallower than the one before. */
static void test_end_of_memory(void **state)
{
	struct call calls[20];
	struct twin_walk walk;
	struct twin_hit hit;
	__u32 faults = 0;

	seed(7);
	make_program(plain);
	for (int i = 0; i < 20; i++) {
		__u32 n = i & 1 ? 20 : 2;

		random_calls(calls, 20);
		hit = make_stack(calls, n);
		if (i)
			twin__walk(&hit, &walk);
		else
			walk_fresh(&hit, &walk);
		check_frames(&walk, calls, n, 127);
		faults += walk.faults;
	}
	assert_in_range(faults, 0, 2);
}

static void test_max_depth(void **state)
{
	static struct call calls[MAX_CALLS];
	struct twin_walk walk, again;
	struct twin_hit hit;

	seed(2);
	make_program(plain);
	random_calls(calls, MAX_CALLS);
	for (__u32 n = 500; n <= 530; n += 6) {
		hit = make_stack(calls, n);
		for (__u32 depth = 1; depth <= AP_MAX_DEPTH; depth += depth < 500 ? 101 : 1) {
			twin__set_max_depth(depth);
			walk_fresh(&hit, &walk);
			check_frames(&walk, calls, n, depth);
			twin__walk(&hit, &again);
			assert_same(&again, &walk);
		}
	}
}

/* Calls, returns and calls from elsewhere, as a program makes them. */
static __u32 change_calls(struct call *calls, __u32 n)
{
	__u32 keep = 1 + below(n);

	if (!below(4)) {
		calls[keep - 1].at = 1 + below(FUNCTION_BYTES - 1);
		return n;
	}
	n = keep + below(keep < MAX_CALLS - 12 ? 12 : 1);
	if (!below(20))
		n = 1 + below(150);
	for (__u32 i = keep; i < n; i++)
		calls[i] = random_call();
	return n;
}

static void test_remembered_is_fresh(void **state)
{
	static struct call calls[MAX_CALLS];
	static unsigned char kept[1 << 20];
	struct twin_walk walk, fresh;
	struct twin_hit hit;
	__u32 n, depth;
	size_t size;
	void *scratch = twin__memory_of_last(&size);

	assert_true(size <= sizeof(kept));
	for (int program = 0; program < 10; program++) {
		seed(100 + program);
		depth = 127;
		make_program(program & 1 ? all : plain);
		n = random_calls(calls, 20);
		for (int i = 0; i < 1000; i++) {
			if (!below(50)) {
				depth = 1 + below(below(3) ? 127 : AP_MAX_DEPTH);
				twin__set_max_depth(depth);
			}
			n = change_calls(calls, n);
			hit = make_stack(calls, n);
			twin__walk(&hit, &walk);
			memcpy(kept, scratch, size);
			walk_fresh(&hit, &fresh);
			memcpy(scratch, kept, size);
			assert_same(&walk, &fresh);
			check_frames(&walk, calls, n, depth);
		}
		tear_down(NULL);
		set_up(NULL);
		scratch = twin__memory_of_last(&size);
	}
}

/* ---- nonsense ---- */

static __u64 random_word(void)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return ~0ULL >> below(64);
	case 2:
	case 3:
		return STACK_START + below(STACK_BYTES + 4096);
	case 4:
		return STACK_START + (below(STACK_BYTES) & ~7U);
	case 5:
		return random_u64();
	default:
		return TEXT + below(N_FUNCTIONS * FUNCTION_BYTES + 4096);
	}
}

static void random_bytes(void *to, size_t size)
{
	unsigned char *bytes = to;

	for (size_t i = 0; i < size; i++)
		bytes[i] = random_u64() >> 40;
}

static void make_hostile_tables(void)
{
	static struct unwind_chunk chunk;
	struct unwind_rule rule;
	struct unwind_slice slice;
	struct unwind_table table = { .n_slices = random_word(), .state = below(4) };

	for (__u32 i = 0; i < 64; i++) {
		random_bytes(&rule, sizeof(rule));
		rule.cfa %= 9;
		rule.ra_where %= 6;
		rule.fp_where %= 6;
		rule.flags &= 1;
		if (below(4)) {
			rule.cfa_offset = 8 * below(64);
			rule.ra_offset = -8 * (int)below(8);
			rule.fp_offset = -8 * (int)below(8);
		}
		twin__write(NULL, UNWIND_MAP_RULES, i, &rule);
	}
	for (__u32 i = 0; i < UNWIND_CHUNK_WORDS; i++)
		chunk.words[i] = below(4) ? (i & 63) << 16 | below(65536) : random_u64();
	for (__u32 i = 0; i < 4; i++) {
		random_bytes(&slice, sizeof(slice));
		slice.chunk = below(8) ? 0 : random_u64();
		if (below(4)) {
			slice.file_offset = TEXT_OFFSET + i * (below(2) ? 65536 : 1);
			slice.size = below(2) ? N_FUNCTIONS * FUNCTION_BYTES : random_word();
			slice.first_rule = 0;
		}
		if (!below(4))
			memset(&slice, 0xff, sizeof(slice));
		twin__write(NULL, UNWIND_MAP_SLICES, i, &slice);
	}
	if (!below(4)) {
		memset(&chunk, 0xff, sizeof(chunk));
		memset(&rule, 0xff, sizeof(rule));
		twin__write(NULL, UNWIND_MAP_RULES, 0, &rule);
	}
	twin__write(NULL, UNWIND_MAP_CHUNKS, 0, &chunk);
	if (below(8)) {
		table.state = UNWIND_TABLE_READY;
		table.n_slices = 1 + below(4);
	}
	if (!below(8)) {
		table.first_slice = random_u64();
		table.entry_size = random_u64();
		table.entry_offset = random_u64();
	}
	twin__write(NULL, UNWIND_MAP_TABLES, AP_MODULE_VDSO + 1, &table);
}

static void check_bounds(const struct twin_walk *walk, __u32 max_depth)
{
	assert_true(walk->n_frames <= max_depth);
	assert_true(walk->end < AP_STACK_ENDS);
	assert_true(walk->lookups < max_depth * 40 + 40);
}

static void make_hostile_stack(struct twin_hit *hit)
{
	for (size_t i = 0; i < ARRAY_SIZE(stack) / 8; i++)
		stack[below(ARRAY_SIZE(stack))] = random_word();
	hit->sp = below(4) ? STACK_START + (below(STACK_BYTES) & ~7U) : random_word();
	hit->fp = random_word();
}

static void test_hostile(void **state)
{
	__u32 depth;

	for (int round = 0; round < 60; round++) {
		struct twin_walk walk, fresh;
		struct twin_hit hit;

		tear_down(NULL);
		set_up(NULL);
		seed(1000 + round);
		depth = 127;
		make_program(round & 1 ? all : plain);
		if (round % 3)
			make_hostile_tables();
		for (int i = 0; i < 100; i++) {
			if (!below(10)) {
				depth = 1 + below(AP_MAX_DEPTH);
				twin__set_max_depth(depth);
			}
			make_hostile_stack(&hit);
			twin__walk(&hit, &walk);
			check_bounds(&walk, depth);
			twin__walk(&hit, &walk);
			check_bounds(&walk, depth);
			walk_fresh(&hit, &fresh);
			check_bounds(&fresh, depth);
			/* Slices that overlap answer by what was asked first. */
			if (!(round % 3))
				assert_same(&walk, &fresh);
		}
	}
}

#ifndef INSIDE_HOST
/* Whatever the memory of the last stack holds, the walk stays in bounds. The process's own memory, which
 * src/inside has, is as good as the process. */
static void test_hostile_memory(void **state)
{
	static struct call calls[100];
	struct twin_walk walk;
	struct twin_hit hit;
	size_t size;
	unsigned char *scratch;

	seed(5);
	make_program(all);
	random_calls(calls, 100);
	for (int i = 0; i < 2000; i++) {
		hit = make_stack(calls, 1 + below(100));
		twin__walk(&hit, &walk);
		assert_true(walk.n_frames <= 127);
		scratch = twin__memory_of_last(&size);
		/* The first word says that nobody holds it. */
		for (int j = 0; j < 200; j++)
			scratch[4 + below(size - 4)] = random_u64();
		if (!below(4))
			memset(scratch + 4, 0xff, size - 4);
	}
}

#endif

static void test_cycles(void **state)
{
	static const unsigned int bare[KINDS] = { [KIND_BARE_FP] = 1 };
	struct twin_walk walk;
	struct twin_hit hit = { STACK_START + 800, STACK_START + 1600 };

	seed(6);
	make_program(bare);
	put_word(hit.sp, TEXT + 1000);
	/* A frame that is its own caller, two that call one another, one below. */
	for (int i = 0; i < 3; i++) {
		put_word(hit.fp, i == 0 ? hit.fp : i == 1 ? hit.fp + 64 : hit.fp - 64);
		put_word(hit.fp + 8, TEXT + 2000);
		put_word(hit.fp + 64, hit.fp);
		put_word(hit.fp + 72, TEXT + 3000);
		walk_fresh(&hit, &walk);
		assert_int_equal(walk.end, AP_END_BAD_FRAME);
		assert_true(walk.n_frames <= 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_own_signal_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_end_of_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_max_depth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_remembered_is_fresh, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile, set_up, tear_down),
#ifndef INSIDE_HOST
		cmocka_unit_test_setup_teardown(test_hostile_memory, set_up, tear_down),
#endif
		cmocka_unit_test_setup_teardown(test_cycles, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
