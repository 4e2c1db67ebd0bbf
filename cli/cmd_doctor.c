// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof doctor`: says what can be measured on this machine, and why other things cannot. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "doctor.h"
#include "error.h"
#include "measure.h"
#include "message.h"
#include "number.h"
#include "options.h"
#include "process_set.h"
#include "probed_file.h"
#include "text.h"

static const struct argp_option doctor_options[] = {
	{ "pid", 'p', "PID", 0, "Look at the process PID instead of a program", 0 },
	{ 0 },
};

static int parse_doctor(int key, char *arg, struct options_input *input)
{
	struct measure *measure = input->options;

	if (key == OPTIONS_OPERAND && measure->argv)
		return options__reject_operand(arg, input->error);
	if (key == OPTIONS_END && measure->set && process_set__size(measure->set) > 1)
		return error__set(input->error, -EINVAL,
				  "doctor looks at one process; give -p one number");
	if (key == OPTIONS_END && measure->pid && measure->argv)
		return measure__check(measure, "doctor", input->error);
	if (key == 'p' || key == OPTIONS_OPERAND)
		return measure__parse(measure, key, arg, input);
	return OPTIONS_UNKNOWN;
}

static void print_facility(const char *name, bool there, const char *use)
{
	printf("  %-22s %-4s %s\n", name, there ? "yes" : "no", use);
}

/* Prints a feature that only a privileged user can test for. */
static void print_privileged(const struct kernel *kernel, const char *name, bool there,
			     const char *use)
{
	if (kernel->missing_capabilities[0])
		printf("  %-22s %-4s %s\n", name, "?", "unknown without the privileges");
	else
		print_facility(name, there, use);
}

static int print_program(const char *name, bool stacks, bool live, struct error *error)
{
	__u32 instructions;
	int err = doctor__load_programs(stacks, live, &instructions, error);

	if (!err)
		printf("  %-22s yes  accepted by the verifier after %s instructions of 1,000,000\n",
		       name, number__count(instructions).text);
	return err;
}

static void print_cache(void)
{
	struct error error = { 0 };
	char path[PATH_MAX], use[PATH_MAX + 64];
	__u64 size_bytes;
	int err = doctor__cache(path, sizeof(path), &size_bytes, &error);

	if (err) {
		print_facility("cache of tables", false,
			       error.text[0] ? error.text : strerror(-err));
		return;
	}
	snprintf(use, sizeof(use), "%s, %s bytes", path, number__count(size_bytes).text);
	print_facility("cache of tables", true, use);
}

static void print_preload(void)
{
	struct error error = { 0 };

	print_facility("preload library", !doctor__find_preload(NULL, &error),
		       error.text[0]
			       ? error.text
			       : "stat and record --engine=preload, which needs no privileges");
}

static void print_obstacle(const char *sentence, void *context)
{
	bool *is_first = context;
	char text[1024];

	snprintf(text, sizeof(text), "%s", sentence);
	utf8__clean(text);
	if (*is_first)
		printf("\nObstacles, certain and possible:\n");
	*is_first = false;
	printf("  %s.\n", text);
}

/* Prints whether recording works, and which engine measures a command unless --engine names one. */
static void print_engine(int err, const struct error *error)
{
	const char *engine = doctor__engine(err);

	if (err)
		printf("\nRecording by uprobes does not work here: %s.\n",
		       error->text[0] ? error->text : strerror(-err));
	else
		printf("\nRecording works here.\n");
	if (engine)
		printf("Commands are measured by the engine %s unless --engine says otherwise.\n",
		       engine);
}

/* Prints what the kernel supports. Returns whether recording by uprobes can work. */
static bool print_kernel(const struct kernel *kernel)
{
	struct error error = { 0 };
	bool is_first = true;
	int err;

	printf("Kernel %s\n", kernel->release);
	print_facility("privileges", !kernel->missing_capabilities[0],
		       kernel->missing_capabilities[0] ? kernel->missing_capabilities
						       : "all that is needed");
	print_privileged(kernel, "bpf(2)", kernel->bpf, "programs at the probes");
	print_facility("type information", kernel->btf,
		       "/sys/kernel/btf/vmlinux, adapts the programs to this kernel");
	print_privileged(kernel, "uprobe_multi links", kernel->uprobe_multi,
			 kernel->uprobe_multi ? "used: all probes are set and removed at once"
					      : "(Linux 6.6) probes are set one by one instead");
	print_privileged(kernel, "  for one process", kernel->uprobe_multi_pid,
			 kernel->uprobe_multi_pid
				 ? "used for -p and --no-follow"
				 : "(Linux 6.10) -p and --no-follow set probes one by one");
	print_privileged(
		kernel, "  with sessions", kernel->uprobe_session,
		kernel->uprobe_session
			? "used for --live: entry and return in one program"
			: "(Linux 6.13) --live sets return probes beside the entry probes");
	print_privileged(kernel, "fentry programs", kernel->mapping_hook,
			 kernel->mapping_hook ? "used: replaced code is noticed at once"
					      : "mapping changes are detected by comparing counts");
	print_privileged(kernel, "sleepable programs", kernel->sleepable,
			 kernel->sleepable
				 ? "used: swapped-out pages of a stack are read in"
				 : "(Linux 6.9) a stack ends before a page that is swapped out");
	if (kernel->preempts)
		print_privileged(
			kernel, "tracepoints by perf", kernel->perf_tracepoints,
			kernel->perf_tracepoints
				? "used: find processes while other programs are preempted"
				: "tracefs cannot be read: where many processes begin at once, "
				  "some may be missed");
	print_facility("uprobe perf events", kernel->uprobe_pmu,
		       kernel->uprobe_multi_pid ? "not used" : "used where multi links are not");
	print_cache();
	print_preload();
	err = print_program("stat's program", false, false, &error);
	if (!err)
		err = print_program("record's program", true, false, &error);
	if (!err)
		err = print_program("stat --live's", false, true, &error);
	if (!err)
		err = print_program("record --live's", true, true, &error);
	utf8__clean(error.text);
	doctor__obstacles(kernel, !err, print_obstacle, &is_first);
	print_engine(err, &error);
	return !err;
}

static void print_line(const char *line)
{
	puts(line);
}

static int print_allocators(const struct measure *measure, struct error *error)
{
	struct probed_file file;
	struct doctor *doctor;
	int err = doctor__find(measure->argv, measure->pid, &doctor, error);

	if (err)
		return err;
	for (size_t i = 0; doctor__file(doctor, i, &file); i++) {
		putchar('\n');
		probed_text__print(&file, print_line);
	}
	doctor__free(doctor);
	return 0;
}

/* Prints a text after the results, even if both streams go to one file. */
static void print_last(const char *text)
{
	fflush(stdout);
	message__print("%s", text);
}

static int run_doctor(char **argv)
{
	struct measure measure = { 0 };
	struct error error = { 0 };
	struct kernel kernel;
	bool works;
	int err = 0, status;

	status = options__read(&cmd_doctor, parse_doctor, &measure, argv);
	if (status != OPTIONS_READ)
		return status;
	doctor__probe_kernel(&kernel);
	works = print_kernel(&kernel);
	if (measure.pid || measure.argv) {
		err = print_allocators(&measure, &error);
		if (err)
			print_last(error.text[0] ? error.text : strerror(-err));
	}
	return works && !err ? EXIT_GOOD : EXIT_FAILED;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "Show what this kernel can do and where a program would be probed",
	.args_doc = "[PROGRAM|LIBRARY]\n-p PID",
	.doc = "Show what this kernel and this user can do and, for a program, library or process, "
	       "where its allocator would be probed and what that costs.\v"
	       "For example: allocprof doctor /usr/bin/jq",
	.options = doctor_options,
	.run = run_doctor,
};
