// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Executes a program one instruction at a time, x86-64, and says what the machine did, for what is concluded from
 * code to be held to:
 *
 *	jumps JUMPS FUNCTIONS COMMAND [ARGUMENT...]
 *
 * JUMPS and FUNCTIONS are files with a line "PATH HEX-OFFSET" each: ends of jumps, and entries of functions. At each of
 * these entries prints a line: the return addresses on the stack as the calls left them, innermost first, each followed
 * by those of the jumps that were taken since that call, in their order: "PATH+OFFSET,PATH+OFFSET<tab>...".
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_MAPPINGS 1000
#define MAX_PLACES   20000
#define MAX_DEPTH    20000
#define MAX_JUMPS    24
#define CACHE_BITS   20

struct place {
	char path[256];
	uint64_t offset;
};

struct places {
	struct place list[MAX_PLACES];
	uint64_t addresses[MAX_PLACES]; /* those that are mapped */
	size_t n, n_mapped;
};

struct mapping {
	uint64_t start, end, offset;
	char path[256];
};

struct call {
	uint64_t return_address, sp;
	uint64_t jumps[MAX_JUMPS];
	size_t n_jumps;
};

enum kind {
	OTHER,
	CALL,
	JUMP,
	SYSTEM_CALL
};

struct insn {
	uint64_t pc; /* 0: nothing is known */
	enum kind kind;
	unsigned int length; /* of calls and jumps */
};

static struct places jumps, functions;
static struct mapping mappings[MAX_MAPPINGS];
static size_t n_mappings;
static struct call calls[MAX_DEPTH];
static size_t depth;
static struct insn cache[1 << CACHE_BITS];
static pid_t pid;

static void read_places(const char *path, struct places *places)
{
	FILE *file = fopen(path, "re");

	while (file && places->n < MAX_PLACES &&
	       fscanf(file, "%255s %" SCNx64, places->list[places->n].path,
		      &places->list[places->n].offset) == 2)
		places->n++;
	if (file)
		fclose(file);
}

static void map_places(struct places *places)
{
	places->n_mapped = 0;
	for (size_t i = 0; i < places->n; i++) {
		const struct place *place = &places->list[i];

		for (size_t j = 0; j < n_mappings; j++) {
			const struct mapping *mapping = &mappings[j];

			if (!strcmp(place->path, mapping->path) &&
			    place->offset >= mapping->offset &&
			    place->offset - mapping->offset <= mapping->end - mapping->start)
				places->addresses[places->n_mapped++] =
					place->offset - mapping->offset + mapping->start;
		}
	}
}

static bool is_among(const struct places *places, uint64_t address)
{
	for (size_t i = 0; i < places->n_mapped; i++)
		if (places->addresses[i] == address)
			return true;
	return false;
}

static void read_mappings(void)
{
	char name[64], line[1024], permissions[8];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	file = fopen(name, "re");
	n_mappings = 0;
	while (file && n_mappings < MAX_MAPPINGS && fgets(line, sizeof(line), file)) {
		struct mapping *mapping = &mappings[n_mappings];

		mapping->path[0] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s",
			   &mapping->start, &mapping->end, permissions, &mapping->offset,
			   mapping->path) >= 4 &&
		    permissions[2] == 'x')
			n_mappings++;
	}
	if (file)
		fclose(file);
	map_places(&jumps);
	map_places(&functions);
	memset(cache, 0, sizeof(cache));
}

/* Bytes of a ModRM operand. */
static unsigned int operand_bytes(const uint8_t *modrm)
{
	unsigned int mode = modrm[0] >> 6, base = modrm[0] & 7, n = 1;

	if (mode != 3 && base == 4) {
		n++;
		base = modrm[1] & 7;
	}
	if (mode == 1)
		return n + 1;
	return mode == 2 || (mode == 0 && base == 5) ? n + 4 : n;
}

static struct insn decode(uint64_t pc)
{
	struct insn insn = { .pc = pc };
	uint8_t bytes[16] = { 0 };
	const uint8_t *at = bytes;
	struct iovec to = { bytes, sizeof(bytes) }, from = { (void *)pc, sizeof(bytes) };

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) <= 0) {
		from.iov_len = 4096 - (pc & 4095);
		process_vm_readv(pid, &to, 1, &from, 1, 0);
	}
	while (at < bytes + 6 &&
	       (strchr("\xf2\xf3\x3e\x2e\x66\x67", *at) || (*at & 0xf0) == 0x40) && *at)
		at++;
	insn.length = (unsigned int)(at - bytes);
	if (at[0] == 0xe8 || at[0] == 0xe9) {
		insn.kind = at[0] == 0xe8 ? CALL : JUMP;
		insn.length += 5;
	} else if (at[0] == 0xeb || (at[0] & 0xf0) == 0x70) {
		insn.kind = JUMP;
		insn.length += 2;
	} else if (at[0] == 0x0f && (at[1] & 0xf0) == 0x80) {
		insn.kind = JUMP;
		insn.length += 6;
	} else if (at[0] == 0x0f && at[1] == 0x05) {
		insn.kind = SYSTEM_CALL;
	} else if (at[0] == 0xff && ((at[1] >> 3 & 7) == 2 || (at[1] >> 3 & 7) == 4)) {
		insn.kind = (at[1] >> 3 & 7) == 2 ? CALL : JUMP;
		insn.length += 1 + operand_bytes(at + 1);
	}
	return insn;
}

static void print_place(char before, uint64_t address)
{
	if (before)
		putchar(before);
	for (size_t i = 0; i < n_mappings; i++) {
		if (address < mappings[i].start || address > mappings[i].end)
			continue;
		printf("%s+%" PRIx64, mappings[i].path,
		       address - mappings[i].start + mappings[i].offset);
		return;
	}
	printf("?+%" PRIx64, address);
}

static void print_stack(void)
{
	for (size_t i = depth; i-- > 0;) {
		print_place(i + 1 < depth ? '\t' : '\0', calls[i].return_address);
		for (size_t j = 0; j < calls[i].n_jumps; j++)
			print_place(',', calls[i].jumps[j]);
	}
	putchar('\n');
}

/* What the instruction did, of which the registers are known before and after. */
static void note_step(const struct insn *insn, const struct user_regs_struct *after)
{
	uint64_t next = insn->pc + insn->length;
	struct call *call;

	while (depth && after->rsp > calls[depth - 1].sp)
		depth--;
	if (insn->kind == CALL && depth < MAX_DEPTH)
		calls[depth++] = (struct call){ .return_address = next, .sp = after->rsp };
	if (insn->kind != JUMP || !depth || after->rip == next || !is_among(&jumps, next))
		return;
	call = &calls[depth - 1];
	if (call->n_jumps < MAX_JUMPS)
		call->jumps[call->n_jumps++] = next;
}

/* False when the program has ended. */
static bool step(struct user_regs_struct *registers)
{
	int signal = 0, status;

	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, signal) || waitpid(pid, &status, 0) < 0 ||
		    !WIFSTOPPED(status))
			return false;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	} while (signal);
	return !ptrace(PTRACE_GETREGS, pid, 0, registers);
}

int main(int argc, char **argv)
{
	struct user_regs_struct registers;
	int status, null;

	if (argc < 4)
		return 2;
	read_places(argv[1], &jumps);
	read_places(argv[2], &functions);
	pid = fork();
	if (!pid) {
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, STDOUT_FILENO);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[3], argv + 3);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, pid, 0, &registers))
		return 1;
	read_mappings();
	do {
		struct insn *insn =
			&cache[(registers.rip * 0x9e3779b97f4a7c15) >> (64 - CACHE_BITS)];
		bool is_mapping;

		if (insn->pc != registers.rip)
			*insn = decode(registers.rip);
		if (is_among(&functions, registers.rip))
			print_stack();
		/* mmap, mprotect, munmap. */
		is_mapping = insn->kind == SYSTEM_CALL && registers.rax >= 9 && registers.rax <= 11;
		if (!step(&registers))
			break;
		if (is_mapping)
			read_mappings();
		else
			note_step(insn, &registers);
	} while (true);
	return 0;
}
