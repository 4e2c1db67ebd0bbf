// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Compares our unwind tables with libdw, row by row: both sides' answers are evaluated over random
 * registers and a memory whose every word is a hash of its address, and CFA, sp, fp and return
 * address must come out the same.
 *
 *	cfi_oracle [-j PROCESSES] [-v] FILE-OR-DIRECTORY...
 *
 * Exits 1 on a mismatch, an error of libdw's that we do not share, or too many unsupported rows.
 */
#include "cfi.h"
#include "cfi_frames.h"
#include "cleanup.h"
#include "error.h"
#include "libdw_rules.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_UNSUPPORTED_PER_MILLE 1
#define MAX_MISMATCHES_SHOWN	  20
#define MAX_PROCESSES		  16
#define OUTSIDE_STEP		  16
#define OUTSIDE_SAMPLES		  65536

#define FP	  cfi_arch_host.registers[CFI_COLUMN_FP]
#define SP	  cfi_arch_host.registers[CFI_COLUMN_SP]
#define RA	  cfi_arch_host.registers[CFI_COLUMN_RA]
#define REGISTERS DWARF_REGISTERS

struct totals {
	uint64_t files;
	uint64_t skipped; /* ELF files without CFI, or not of this machine */
	uint64_t bytes;	  /* of tables */
	uint64_t rows;
	uint64_t rows_none;
	uint64_t unsupported[UNWIND_UNSUPPORTED_KINDS];
	uint64_t unsupported_reg[REGISTERS];
	uint64_t rejected[CFI_REJECTS];
	uint64_t pcs;
	uint64_t mismatches;
	uint64_t libdw_errors; /* where we have no explanation either */
	uint64_t build_ns;
	uint64_t oracle_ns;
};

static void totals__add(struct totals *to, const struct totals *from)
{
	uint64_t *sums = (uint64_t *)to;
	const uint64_t *terms = (const uint64_t *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		sums[i] += terms[i];
}

static uint64_t totals__unsupported(const struct totals *totals)
{
	uint64_t sum = 0;

	for (int i = 0; i < UNWIND_UNSUPPORTED_KINDS; i++)
		sum += totals->unsupported[i];
	return sum;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* The made-up thread that both sides unwind. */
struct machine {
	uint64_t regs[REGISTERS];
	uint64_t seed;
};

static void machine__init(struct machine *m, uint64_t pc)
{
	m->seed = mix(pc);
	for (int i = 0; i < REGISTERS; i++)
		m->regs[i] = mix(m->seed + (uint64_t)i);
	/* Files are loaded at multiples of the page size. */
	m->regs[RA] = (m->regs[RA] & ~(uint64_t)0xfff) + pc;
}

static uint64_t machine__load(const struct machine *m, uint64_t address)
{
	return mix(address ^ ~m->seed);
}

struct word {
	bool defined;
	uint64_t value;
};

struct answer {
	const char *failure; /* why there are no values */
	bool has_cfi;
	bool signal;
	struct word cfa, sp, fp, ra;
};

/* ---- libdw's side ---- */

static bool load(void *context, __u64 address, __u64 *value)
{
	*value = machine__load(context, address);
	return true;
}

static const char *failure_of(int err)
{
	return err == -EINVAL ? "libdw or its expression is at fault" : strerror(-err);
}

static const char *libdw_register(Dwarf_Frame *frame, const struct dwarf_machine *machine, int reg,
				  uint64_t cfa, struct word *out)
{
	__u64 value;
	int err = dwarf_frame__caller_register(frame, machine, reg, cfa, &value);

	if (err && err != -ENOENT)
		return failure_of(err);
	out->defined = !err;
	out->value = err ? machine->registers[reg] : value;
	return NULL;
}

static const char *libdw_values(Dwarf_Frame *frame, const struct machine *m, struct answer *out)
{
	struct dwarf_machine machine = { .known = ~0ULL, .load = load, .context = (void *)m };
	const char *failure;
	__u64 cfa;
	int err;

	memcpy(machine.registers, m->regs, sizeof(machine.registers));
	dwarf_frame_info(frame, NULL, NULL, &out->signal);
	err = dwarf_frame__cfa(frame, &machine, &cfa);
	if (err)
		return err == -ENOENT ? "undefined CFA" : failure_of(err);
	out->cfa.defined = true;
	out->cfa.value = cfa;
	failure = libdw_register(frame, &machine, SP, cfa, &out->sp);
	if (!failure)
		failure = libdw_register(frame, &machine, FP, cfa, &out->fp);
	if (!failure)
		failure = libdw_register(frame, &machine, RA, cfa, &out->ra);
	return failure;
}

/* Either may be NULL; .eh_frame is asked first. */
struct libdw {
	Dwarf_CFI *eh_frame;
	Dwarf_CFI *debug_frame;
};

static struct answer libdw_answer(const struct libdw *libdw, const struct machine *m, uint64_t pc)
{
	Dwarf_CFI *sources[2] = { libdw->eh_frame, libdw->debug_frame };
	struct answer answer = { 0 };

	for (int i = 0; i < 2; i++) {
		_cleanup_(free_ptr) Dwarf_Frame *frame = NULL;

		if (!sources[i])
			continue;
		if (!dwarf_cfi_addrframe(sources[i], pc, &frame)) {
			answer.has_cfi = true;
			answer.failure = libdw_values(frame, m, &answer);
			return answer;
		}
		frame = NULL;
		answer.failure = dwarf_errmsg(-1);
		/* The code of this error is not in any public header. */
		if (strcmp(answer.failure, "no matching address range")) {
			answer.has_cfi = true;
			return answer;
		}
		answer.failure = NULL;
	}
	return answer;
}

/* ---- our side ---- */

static struct word rule_where(const struct machine *m, uint8_t where, int64_t offset, uint64_t cfa,
			      int reg)
{
	switch (where) {
	case UNWIND_SAME:
		return (struct word){ true, m->regs[reg] };
	case UNWIND_AT_CFA:
		return (struct word){ true, machine__load(m, cfa + (uint64_t)offset) };
	case UNWIND_AT_SP:
		return (struct word){ true, machine__load(m, m->regs[SP] + (uint64_t)offset) };
	case UNWIND_AT_FP:
		return (struct word){ true, machine__load(m, m->regs[FP] + (uint64_t)offset) };
	default:
		return (struct word){ false, 0 };
	}
}

static struct answer rule_answer(const struct unwind_rule *rule, const struct machine *m)
{
	struct answer answer = { .has_cfi = rule->cfa != UNWIND_CFA_NONE };
	uint64_t sp = m->regs[SP], fp = m->regs[FP];
	uint64_t offset = (uint64_t)(int64_t)rule->cfa_offset;
	uint64_t add = (uint64_t)(int64_t)rule->cfa_add;

	switch (rule->cfa) {
	case UNWIND_CFA_NONE:
		return answer;
	case UNWIND_CFA_SP:
		answer.cfa.value = sp + offset;
		break;
	case UNWIND_CFA_FP:
		answer.cfa.value = fp + offset;
		break;
	case UNWIND_CFA_AT_SP:
		answer.cfa.value = machine__load(m, sp + offset) + add;
		break;
	case UNWIND_CFA_AT_FP:
		answer.cfa.value = machine__load(m, fp + offset) + add;
		break;
	case UNWIND_CFA_PLT:
		answer.cfa.value = sp + offset + ((m->regs[RA] & 15) >= add ? 8 : 0);
		break;
	default:
		answer.failure = "unsupported";
		return answer;
	}
	answer.cfa.defined = true;
	answer.sp = answer.cfa;
	answer.fp = rule_where(m, rule->fp_where, rule->fp_offset, answer.cfa.value, FP);
	answer.ra = rule_where(m, rule->ra_where, rule->ra_offset, answer.cfa.value, RA);
	answer.signal = rule->flags & UNWIND_SIGNAL_FRAME;
	return answer;
}

/* ---- what libdw has to be helped with ---- */

static void put_length(unsigned char *entry, uint32_t length)
{
	memcpy(entry, &length, sizeof(length));
}

/*
 * libdw takes a zero length inside of .debug_frame for its end, and so misses what Go and C objects
 * linked together have behind it. Such words become part of the entry before them, where they are
 * four DW_CFA_nop.
 */
static void absorb_zero_lengths(unsigned char *data, size_t size)
{
	unsigned char *last = NULL;
	uint32_t length;
	size_t at = 0;

	while (size - at >= sizeof(length)) {
		memcpy(&length, data + at, sizeof(length));
		if (length >= 0xfffffff0 || length > size - at - sizeof(length))
			return;
		if (length) {
			last = data + at;
		} else if (last) {
			memcpy(&length, last, sizeof(length));
			put_length(last, length + 4);
			length = 0;
		}
		at += sizeof(length) + length;
	}
}

static void mend_debug_frame(Elf *elf)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr))
			continue;
		name = elf_strptr(elf, names, shdr.sh_name);
		if (!name || strcmp(name, ".debug_frame"))
			continue;
		if (shdr.sh_flags & SHF_COMPRESSED)
			elf_compress(scn, 0, 0);
		data = elf_rawdata(scn, NULL);
		if (data && data->d_buf)
			absorb_zero_lengths(data->d_buf, data->d_size);
		return;
	}
}

/* ---- the comparison ---- */

static bool same_word(struct word a, struct word b)
{
	return a.defined == b.defined && (!a.defined || a.value == b.value);
}

static bool same_answer(const struct answer *a, const struct answer *b)
{
	if (a->has_cfi != b->has_cfi)
		return false;
	return !a->has_cfi ||
	       (a->signal == b->signal && same_word(a->cfa, b->cfa) && same_word(a->sp, b->sp) &&
		same_word(a->fp, b->fp) && same_word(a->ra, b->ra));
}

static void print_word(const char *name, struct word word)
{
	if (word.defined)
		printf(" %s=%016" PRIx64, name, word.value);
	else
		printf(" %s=undefined", name);
}

static void print_answer(const char *who, const struct answer *answer)
{
	printf("    %s:", who);
	if (answer->failure) {
		printf(" error: %s\n", answer->failure);
		return;
	}
	if (!answer->has_cfi) {
		printf(" no CFI\n");
		return;
	}
	print_word("cfa", answer->cfa);
	print_word("sp", answer->sp);
	print_word("fp", answer->fp);
	print_word("ra", answer->ra);
	printf("%s\n", answer->signal ? " signal" : "");
}

static void report(const char *path, uint64_t pc, const char *what, const struct answer *expected,
		   const struct answer *got, const struct unwind_rule *rule, uint64_t nth)
{
	if (nth > MAX_MISMATCHES_SHOWN)
		return;
	printf("  %s: %s at 0x%" PRIx64 "\n", path, what, pc);
	print_answer("expected (libdw)", expected);
	print_answer("got", got);
	printf("    rule: cfa %u %d %d, fp %u %d, ra %u %d, flags %u\n", rule->cfa,
	       rule->cfa_offset, rule->cfa_add, rule->fp_where, rule->fp_offset, rule->ra_where,
	       rule->ra_offset, rule->flags);
}

static void check_pc(const char *path, const struct libdw *libdw, const struct cfi_table *table,
		     uint64_t pc, const struct unwind_rule *rule, struct totals *totals)
{
	struct unwind_rule looked_up = { 0 };
	struct answer expected, got;
	struct machine m;

	totals->pcs++;
	machine__init(&m, pc);
	expected = libdw_answer(libdw, &m, pc);
	cfi_table__lookup(table, pc, &looked_up);
	got = rule_answer(&looked_up, &m);
	if (memcmp(&looked_up, rule, sizeof(*rule))) {
		report(path, pc, "look-up differs from range", &expected, &got, rule,
		       ++totals->mismatches);
		return;
	}
	/* Go's own table is held to its .debug_frame, where there is one. That does not know of other stacks, of which
	 * the runtime's functions have these rules, of outermost frames, nor that crosscall2 saves the frame pointer. */
	if (rule->flags & UNWIND_OF_CODE) {
		if (!expected.has_cfi || rule->cfa != UNWIND_CFA_SP ||
		    rule->ra_where == UNWIND_UNDEFINED)
			return;
		got.fp = expected.fp;
	}
	/* Saying that one does not know is right whatever the truth is, as long as there is one. */
	if (rule->cfa == UNWIND_CFA_UNSUPPORTED && expected.has_cfi)
		return;
	if (expected.failure)
		report(path, pc, "libdw error", &expected, &got, rule, ++totals->libdw_errors);
	else if (!same_answer(&expected, &got))
		report(path, pc, "mismatch", &expected, &got, rule, ++totals->mismatches);
}

static void check_range(const char *path, const struct libdw *libdw, const struct cfi_table *table,
			const struct cfi_range *range, struct totals *totals)
{
	const struct unwind_rule *rule = &range->rule;
	uint64_t step = (range->hi - range->lo) / 2;

	totals->rows++;
	if (rule->cfa == UNWIND_CFA_NONE)
		totals->rows_none++;
	if (rule->cfa == UNWIND_CFA_UNSUPPORTED) {
		totals->unsupported[rule->cfa_offset]++;
		if (rule->cfa_offset == UNWIND_UNSUPPORTED_CFA_REGISTER &&
		    (uint16_t)rule->cfa_add < REGISTERS)
			totals->unsupported_reg[rule->cfa_add]++;
	}
	/* This rule is the one that depends on the address: every byte of two entries. */
	if (rule->cfa == UNWIND_CFA_PLT)
		step = range->hi - range->lo <= 64 ? 1 : 7;
	if (!step)
		step = 1;
	for (uint64_t pc = range->lo; pc < range->hi; pc += step)
		check_pc(path, libdw, table, pc, rule, totals);
	check_pc(path, libdw, table, range->hi - 1, rule, totals);
}

/* Code outside of the table's segments, of which libdw must know nothing either. */
static void check_outside(const char *path, Elf *elf, const struct libdw *libdw,
			  const struct cfi_table *table, struct totals *totals)
{
	struct unwind_rule none = { 0 };
	struct cfi_range range;
	size_t count, samples = 0;

	if (elf_getphdrnum(elf, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    !(phdr.p_flags & PF_X))
			continue;
		for (uint64_t pc = phdr.p_vaddr;
		     pc < phdr.p_vaddr + phdr.p_filesz && samples < OUTSIDE_SAMPLES;
		     pc += OUTSIDE_STEP) {
			if (cfi_table__range(table, pc, &range)) {
				pc = range.hi - OUTSIDE_STEP;
				continue;
			}
			samples++;
			check_pc(path, libdw, table, pc, &none, totals);
		}
	}
}

static void check_table(const char *path, Elf *elf, const struct libdw *libdw,
			const struct cfi_table *table, struct totals *totals)
{
	struct cfi_range range;

	for (uint32_t i = 0; i < table->segment_count; i++) {
		const struct unwind_segment *segment = &table->segments[i];
		uint64_t pc = segment->vaddr;

		while (pc < segment->vaddr + segment->size && cfi_table__range(table, pc, &range)) {
			if (range.lo != pc || range.hi <= pc) {
				printf("  %s: row at 0x%" PRIx64 " says it starts at 0x%" PRIx64
				       "\n",
				       path, pc, (uint64_t)range.lo);
				totals->mismatches++;
				return;
			}
			check_range(path, libdw, table, &range, totals);
			pc = range.hi;
		}
		if (pc != segment->vaddr + segment->size) {
			printf("  %s: rows end at 0x%" PRIx64 "\n", path, pc);
			totals->mismatches++;
		}
	}
	if (totals->rows != table->row_count) {
		printf("  %s: %u rows, but %" PRIu64 " were found\n", path, table->row_count,
		       totals->rows);
		totals->mismatches++;
	}
	check_outside(path, elf, libdw, table, totals);
}

static void print_file(const char *path, const struct totals *t)
{
	printf("%s: %" PRIu64 " rows (%" PRIu64 " gaps), %" PRIu64 " pcs, %" PRIu64
	       " mismatches, %" PRIu64 " libdw errors, %" PRIu64
	       " unsupported, %.2f ms to build, %.0f ms to check\n",
	       path, t->rows, t->rows_none, t->pcs, t->mismatches, t->libdw_errors,
	       totals__unsupported(t), (double)t->build_ns / 1e6, (double)t->oracle_ns / 1e6);
	for (int i = 0; i < UNWIND_UNSUPPORTED_KINDS; i++)
		if (t->unsupported[i])
			printf("    unsupported, %s: %" PRIu64 "\n", cfi__unsupported_name(i),
			       t->unsupported[i]);
	for (int i = 0; i < CFI_REJECTS; i++)
		if (t->rejected[i])
			printf("    rejected, %s: %" PRIu64 "\n", cfi__reject_name(i),
			       t->rejected[i]);
}

static void end_elf(Elf **elf)
{
	elf_end(*elf);
}

static void free_table(struct cfi_table **table)
{
	cfi_table__free(*table);
}

static void check_file(const char *path, bool verbose, struct totals *sum)
{
	_cleanup_(free_table) struct cfi_table *table = NULL;
	_cleanup_(end_elf) Elf *elf = NULL;
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct totals totals = { .files = 1 };
	struct libdw libdw;
	struct error error = { 0 };
	uint64_t start;
	Dwarf *dwarf;
	int err;

	if (fd < 0) {
		printf("%s: %s\n", path, strerror(errno));
		sum->skipped++;
		return;
	}
	start = now_ns();
	err = cfi_table__build(fd, path, &table, &error);
	totals.build_ns = now_ns() - start;
	if (err) {
		if (verbose)
			printf("%s: skipped: %s\n", path, error.text);
		sum->skipped++;
		return;
	}
	totals.bytes = cfi_table__size_bytes(table);
	for (int i = 0; i < CFI_REJECTS; i++)
		totals.rejected[i] = table->stats.rejected[i];

	start = now_ns();
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	mend_debug_frame(elf);
	libdw.eh_frame = dwarf_getcfi_elf(elf);
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	libdw.debug_frame = dwarf ? dwarf_getcfi(dwarf) : NULL;
	if (!libdw.eh_frame && !libdw.debug_frame && table->stats.go_table_bytes) {
		totals.rows = table->row_count;
	} else if (!libdw.eh_frame && !libdw.debug_frame) {
		printf("%s: libdw finds no CFI: %s\n", path, dwarf_errmsg(-1));
		totals.libdw_errors++;
	} else {
		check_table(path, elf, &libdw, table, &totals);
	}
	totals.oracle_ns = now_ns() - start;
	dwarf_cfi_end(libdw.eh_frame);
	dwarf_end(dwarf);
	if (verbose || totals.mismatches || totals.libdw_errors)
		print_file(path, &totals);
	totals__add(sum, &totals);
}

/* ---- files ---- */

static struct {
	char **paths;
	size_t count;
} files;

static void add_file(const char *path)
{
	files.paths = reallocarray(files.paths, files.count + 1, sizeof(*files.paths));
	if (files.paths)
		files.paths[files.count] = strdup(path);
	if (!files.paths || !files.paths[files.count]) {
		fprintf(stderr, "cfi_oracle: out of memory\n");
		exit(2);
	}
	files.count++;
}

static bool is_elf(const char *path)
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[SELFMAG];

	return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, ELFMAG, SELFMAG);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && S_ISREG(st->st_mode) && is_elf(path))
		add_file(path);
	return 0;
}

static void add_argument(const char *path)
{
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		nftw(path, visit, 64, FTW_PHYS);
	else
		add_file(path);
}

/* What the processes share. */
struct shared {
	atomic_size_t next;
	struct totals totals[MAX_PROCESSES];
};

static void work(struct shared *shared, int self, bool verbose)
{
	size_t i;

	while ((i = atomic_fetch_add(&shared->next, 1)) < files.count) {
		check_file(files.paths[i], verbose, &shared->totals[self]);
		fflush(stdout);
	}
}

/* True if all of them ended well. */
static bool work_in_processes(struct shared *shared, int processes, bool verbose)
{
	bool good = true;
	int status;

	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("cfi_oracle: fork");
			good = false;
		}
		if (pid == 0) {
			work(shared, i, verbose);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		good = good && !status;
	return good;
}

int main(int argc, char **argv)
{
	struct totals total = { 0 };
	struct shared *shared;
	bool verbose = false, good;
	uint64_t unsupported, with_cfi;
	int processes = 1, opt;

	while ((opt = getopt(argc, argv, "j:v")) != -1) {
		switch (opt) {
		case 'j':
			processes = atoi(optarg);
			break;
		case 'v':
			verbose = true;
			break;
		default:
			return 2;
		}
	}
	if (optind == argc || processes < 1 || processes > MAX_PROCESSES) {
		fprintf(stderr, "usage: cfi_oracle [-j PROCESSES] [-v] FILE-OR-DIRECTORY...\n");
		return 2;
	}
	for (int i = optind; i < argc; i++)
		add_argument(argv[i]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("cfi_oracle: mmap");
		return 2;
	}
	good = work_in_processes(shared, processes, verbose);
	for (int i = 0; i < processes; i++)
		totals__add(&total, &shared->totals[i]);

	unsupported = totals__unsupported(&total);
	with_cfi = total.rows - total.rows_none;
	printf("\n%" PRIu64 " files, %" PRIu64 " skipped, %" PRIu64 " bytes of tables\n",
	       total.files, total.skipped, total.bytes);
	print_file("total", &total);
	for (int i = 0; i < REGISTERS; i++)
		if (total.unsupported_reg[i])
			printf("    CFA register %d: %" PRIu64 "\n", i, total.unsupported_reg[i]);
	if (total.rows)
		printf("%.1f ns to build a row, %.2f bytes of table per row\n",
		       (double)total.build_ns / (double)total.rows,
		       (double)total.bytes / (double)total.rows);
	if (with_cfi)
		printf("unsupported share: %.4f %%\n",
		       100.0 * (double)unsupported / (double)with_cfi);

	if (!good)
		printf("FAIL: a process of the oracle crashed\n");
	if (!total.rows)
		printf("FAIL: nothing was checked\n");
	if (total.mismatches || total.libdw_errors)
		printf("FAIL: answers differ\n");
	if (unsupported * 1000 > with_cfi * MAX_UNSUPPORTED_PER_MILLE)
		printf("FAIL: more than %d per mille unsupported\n", MAX_UNSUPPORTED_PER_MILLE);
	return !good || !total.rows || total.mismatches || total.libdw_errors ||
	       unsupported * 1000 > with_cfi * MAX_UNSUPPORTED_PER_MILLE;
}
