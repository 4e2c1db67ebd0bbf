// SPDX-License-Identifier: GPL-3.0-or-later
/* The rules of single addresses, held to those of libdw; and call frame information that had libdw take gigabytes. */
#include "unit.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cfi_frames.h"
#include "cfi_internal.h"
#include "cleanup.h"

#define RBX 3

/* Whether libdw's operations say the same; other forms than these are not compared. */
static bool is_same_cfa(const struct frame_rule *rule, const Dwarf_Op *ops, size_t n)
{
	if (n != 1)
		return rule->how == FRAME_IS_EXPRESSION;
	if (ops[0].atom == DW_OP_bregx)
		return rule->how == FRAME_REGISTER && rule->value == (__s64)ops[0].number &&
		       rule->offset == (__s64)ops[0].number2;
	return rule->how == FRAME_REGISTER && rule->value == ops[0].atom - DW_OP_breg0 &&
	       rule->offset == (__s64)ops[0].number;
}

static void check_register(const struct frame_rules *rules, Dwarf_Frame *frame, int number)
{
	const struct frame_rule *rule = &rules->registers[number];
	Dwarf_Op memory[3], *ops = NULL;
	size_t n = 0;

	assert_int_equal(dwarf_frame_register(frame, number, memory, &ops, &n), 0);
	if (n == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst) {
		assert_int_equal(rule->how, FRAME_AT_CFA);
		assert_int_equal(rule->value, ops[1].number);
	} else if (n == 1 && ops[0].atom == DW_OP_call_frame_cfa) {
		assert_int_equal(rule->how, FRAME_AT_CFA);
		assert_int_equal(rule->value, 0);
	}
}

static unsigned int check_address(struct cfi_frames *frames, Dwarf_CFI *cfi, __u64 vaddr)
{
	_cleanup_(free_ptr) Dwarf_Frame *frame = NULL;
	struct frame_rules rules;
	bool is_signal;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_cfi_addrframe(cfi, vaddr, &frame)) {
		frame = NULL;
		return 0;
	}
	assert_true(cfi_frames__find(frames, vaddr, &rules));
	assert_true(dwarf_frame_info(frame, NULL, NULL, &is_signal) >= 0);
	assert_int_equal(is_signal, rules.is_signal);
	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	assert_true(is_same_cfa(&rules.cfa, ops, n));
	for (int i = 0; i < DWARF_REGISTERS; i++)
		check_register(&rules, frame, i);
	return 1;
}

static void test_as_libdw(void **state)
{
	struct cfi_frames *frames;
	unsigned int n = 0;
	Dwarf_CFI *cfi;
	Dl_info info;
	Elf *elf;
	int fd;

	assert_true(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	assert_int_equal(cfi_frames__open(fd, &frames), 0);
	for (__u64 vaddr = 0x20000; vaddr < 0x180000; vaddr += 0x1f)
		n += check_address(frames, cfi, vaddr);
	/* libc has a million bytes of code. */
	assert_true(n > 10000);
	cfi_frames__free(frames);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
}

/* A register of which libdw would keep 2^28, and eight states to remember. */
static const char great_register[] =
	".globl work\n.type work, @function\nwork:\n.cfi_startproc\npush %rbx\n"
	".cfi_adjust_cfa_offset 8\n.cfi_offset %rbx, -16\n"
	".cfi_escape 0x08, 0xf0, 0xff, 0xff, 0x7f\n"
	".cfi_escape 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a\n"
	"mov %rsp, %rbx\n.cfi_escape 0x0c, 0x03, 0x10\nnop\nnop\nret\n.cfi_endproc\n";

static long most_kilobytes(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

static void test_great_register(void **state)
{
	char directory[] = "/tmp/allocprof-test.XXXXXX", command[256], path[64];
	long before = most_kilobytes();
	struct cfi_frames *frames;
	struct frame_rules rules;
	FILE *file;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file.so", directory);
	snprintf(command, sizeof(command),
		 "gcc -x assembler - -shared -nostdlib -Wl,-Ttext=0x1000 -o %s", path);
	file = popen(command, "w");
	assert_non_null(file);
	assert_true(fputs(great_register, file) >= 0);
	assert_int_equal(pclose(file), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(cfi_frames__open(fd, &frames), 0);
	/* The file may be cut off now: nothing of it is mapped. */
	assert_int_equal(truncate(path, 0), 0);
	assert_true(cfi_frames__find(frames, 0x1005, &rules));
	assert_int_equal(rules.cfa.how, FRAME_REGISTER);
	assert_int_equal(rules.cfa.value, RBX);
	assert_int_equal(rules.cfa.offset, 16);
	assert_int_equal(rules.registers[RBX].how, FRAME_AT_CFA);
	assert_int_equal(rules.registers[RBX].value, -16);
	assert_in_range(most_kilobytes() - before, 0, 100000);
	cfi_frames__free(frames);
	close(fd);
	unlink(path);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_libdw),
		cmocka_unit_test(test_great_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
