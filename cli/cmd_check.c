// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof check`: holds commands to the limits of a budget. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#include "check.h"
#include "cleanup.h"
#include "command.h"
#include "measure.h"
#include "message.h"
#include "new_file.h"
#include "options.h"
#include "output_file.h"

/* Maximum depth of stacks, the default of `record`. */
#define STACK_DEPTH 127

enum {
	OPT_UPDATE = 256,
	OPT_BASELINE_DIR,
	OPT_JUNIT,
	OPT_STRICT_LIMITS,
	OPT_AGAINST,
	OPT_FAIL_OVER,
	OPT_MARKDOWN,
	OPT_JSON,
	OPT_BENCHMARK_JSON,
};

/* Files of all results. */
enum check_file {
	CHECK_JUNIT,
	CHECK_MARKDOWN,
	CHECK_JSON,
	CHECK_BENCHMARK,
	CHECK_FILES,
};

static const struct {
	const char *option;
	check_writer *write;
} files[CHECK_FILES] = {
	[CHECK_JUNIT] = { "--junit", junit__write },
	[CHECK_MARKDOWN] = { "--markdown", check_markdown__write },
	[CHECK_JSON] = { "--json", check_json__write },
	[CHECK_BENCHMARK] = { "--benchmark-json", check_benchmark__write },
};

static const struct argp_option check_options[] = {
	{ "budget", 'b', "FILE", 0, "The tests and their limits", 0 },
	{ "name", 'n', "TEST", 0, "Only this test of the budget", 0 },
	SERIES_OPTIONS("0"),
	{ "against", OPT_AGAINST, "BASE", 0,
	  "Compare with BASE, run in turns with it: a command, a directory where the test's own command is the base's, "
	  "or a file of record --live",
	  0 },
	{ "fail-over", OPT_FAIL_OVER, "N%|N", 0,
	  "With --against, by how much total_allocations may grow where the budget does not say so (default: 0)",
	  0 },
	{ "update", OPT_UPDATE, NULL, 0,
	  "Write what is measured into the budget as its limits; with a command makes the budget, or the "
	  "test of --name, where there is none",
	  0 },
	{ "strict-limits", OPT_STRICT_LIMITS, NULL, 0,
	  "Fail where a figure is below its lower limit, too", 0 },
	{ "baseline-dir", OPT_BASELINE_DIR, "DIR", 0,
	  "Where recordings of the last pass are (default: FILE.baselines)", 0 },
	{ "junit", OPT_JUNIT, "FILE", 0, "Write the results to FILE as JUnit's XML", 0 },
	{ "markdown", OPT_MARKDOWN, "FILE", 0,
	  "Write the results to FILE as Markdown, for a pull request or GITHUB_STEP_SUMMARY", 0 },
	{ "json", OPT_JSON, "FILE", 0, "Write the results to FILE as JSON", 0 },
	{ "benchmark-json", OPT_BENCHMARK_JSON, "FILE", 0,
	  "Write the figures to FILE as customSmallerIsBetter of github-action-benchmark", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard error", 0 },
	MEASURE_OPTION_NO_FOLLOW,
	{ "user", OPT_USER, "NAME", 0, "Run the command as this user, with its groups", 0 },
	MEASURE_OPTION_EXPECT,
	MEASURE_OPTION_ENGINE,
	MEASURE_OPTIONS_ISOLATE,
	MEASURE_OPTION_NO_CACHE,
	MEASURE_OPTION_VERBOSE,
	MEASURE_OPTION_IGNORE,
	MEASURE_OPTIONS_DEFINITIONS,
	MEASURE_OPTION_INJECT,
	{ 0 },
};

struct check_options {
	struct measure measure;
	struct series series;
	const char *budget, *name, *baseline_dir, *output, *against;
	const char *files[CHECK_FILES];
	struct growth_limit fail_over;
	bool update, strict_limits, limits_growth;
};

static int check_words(struct check_options *options, struct error *error)
{
	if (options->limits_growth && !options->against)
		return error__set(
			error, -EINVAL,
			"--fail-over means nothing without --against, which names what to "
			"compare with");
	if (!options->budget && options->update)
		return error__set(error, -EINVAL,
				  "no budget to update; name the file of limits with --budget");
	if (options->budget || (options->against && options->measure.argv))
		return measure__resolve(&options->measure, error);
	return error__set(error, -EINVAL, "no budget; name the file of limits with --budget%s",
			  options->against ? ", or give the command to compare" : "");
}

static int parse_check(int key, char *arg, struct options_input *input)
{
	struct check_options *options = input->options;

	switch (key) {
	case 'b':
		options->budget = arg;
		return 0;
	case 'n':
		if (options->name)
			return error__set(
				input->error, -EINVAL,
				"--name is given twice; it chooses one test, and without it all "
				"are run");
		options->name = arg;
		return 0;
	case 'o':
		options->output = arg;
		return 0;
	case 'r':
	case OPT_WARMUP:
		return series__parse(&options->series, key, arg, input->error);
	case OPT_UPDATE:
		options->update = true;
		return 0;
	case OPT_STRICT_LIMITS:
		options->strict_limits = true;
		return 0;
	case OPT_BASELINE_DIR:
		options->baseline_dir = arg;
		return 0;
	case OPT_JUNIT:
		options->files[CHECK_JUNIT] = arg;
		return 0;
	case OPT_MARKDOWN:
		options->files[CHECK_MARKDOWN] = arg;
		return 0;
	case OPT_JSON:
		options->files[CHECK_JSON] = arg;
		return 0;
	case OPT_BENCHMARK_JSON:
		options->files[CHECK_BENCHMARK] = arg;
		return 0;
	case OPT_AGAINST:
		options->against = arg;
		return 0;
	case OPT_FAIL_OVER:
		options->limits_growth = true;
		return growth_limit__parse(arg, &options->fail_over, input->error);
	case OPTIONS_END:
		return check_words(options, input->error);
	default:
		return measure__parse(&options->measure, key, arg, input);
	}
}

struct check_run {
	const struct check_options *options;
	struct check_context context;
	struct budget budget;
	bool is_new;		   /* the budget file does not exist yet */
	bool is_added;		   /* the test is not in it yet */
	struct budget_test *tests; /* tests of the budget that are to be run */
	size_t n_tests;
	struct check_result *results;
	size_t n_results;
	char *baseline;	 /* owned */
	wordexp_t words; /* of the command of --against */
	struct late_output output, files[CHECK_FILES];
	char *text; /* text that will be written */
	size_t size;
	FILE *to;
};

static bool is_same_command(const char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return !*a && !*b;
}

/* Refuses to replace the limits of one command by those of another, which --update could do by
 * mistake. */
static int refuse_other_command(const struct check_run *run, struct error *error)
{
	const struct check_options *options = run->options;
	const struct budget_test *test = run->budget.tests;

	if (!options->update || !options->measure.argv || options->name ||
	    run->budget.n_tests != 1 || !test->command ||
	    is_same_command(test->command, options->measure.argv))
		return 0;
	return error__set(error, -EINVAL,
			  "test '%.64s' of the budget has another command; --name with that name "
			  "changes its limits, and with another one adds a test of this command",
			  test->name);
}

/* Chooses the tests to run. Writes EXIT_USAGE to *@status if the options do not fit the budget. */
static int choose_tests(struct check_run *run, int *status, struct error *error)
{
	const struct check_options *options = run->options;
	int err = 0;

	run->tests = run->budget.tests;
	run->n_tests = run->budget.n_tests;
	*status = EXIT_USAGE;
	err = refuse_other_command(run, error);
	if (err)
		return err;
	if (options->name) {
		run->tests = budget__find(&run->budget, options->name, error);
		run->n_tests = 1;
		if (!run->tests)
			return -ENOENT;
	}
	if (options->measure.argv && run->n_tests > 1)
		return error__set(error, -EINVAL,
				  "the budget has %zu tests and '%.64s' can be one of them; name "
				  "it with --name",
				  run->n_tests, options->measure.argv[0]);
	for (size_t i = 0; i < run->n_tests; i++)
		if (!options->measure.argv && !run->tests[i].command)
			return error__set(error, -EINVAL,
					  "test '%.64s' has no \"command\"; give one on the "
					  "command line",
					  run->tests[i].name);
	*status = EXIT_FAILED;
	/* --update writes what the file itself defines, so values from the environment do not
	 * apply. */
	for (size_t i = 0; i < run->n_tests && !err && !options->update; i++)
		err = budget_test__read_environment(&run->tests[i], error);
	return err;
}

static bool is_recording(const char *path)
{
	static const char magic[] = "SQLite format 3";
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char first[sizeof(magic)];

	return fd >= 0 && read(fd, first, sizeof(first)) == sizeof(first) &&
	       !memcmp(first, magic, sizeof(magic));
}

/* Opens the directory in the base that corresponds to the budget's. */
static int open_base_root(struct check_run *run, struct error *error)
{
	struct check_base *base = &run->context.base;
	_cleanup_(free_ptr) char *copy = strdup(run->options->budget ?: "./");
	_cleanup_(free_ptr) char *path = copy ? realpath(dirname(copy), NULL) : NULL;
	_cleanup_(free_ptr) char *here = realpath(".", NULL);
	size_t length = here ? strlen(here) : 0;
	const char *below = ".";

	/* A budget from elsewhere is of no directory of the base, and is taken for one of its top. */
	if (path && here && !strncmp(path, here, length) && path[length] == '/')
		below = path + length + 1;
	base->root_fd = openat(base->here_fd, below, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base->root_fd < 0)
		return error__set(
			error, -errno,
			"the base %.256s has no directory %.256s, where the budget is here: %s",
			base->path, below, strerror(errno));
	return 0;
}

/* Finds out what --against names. */
static int open_base(struct check_run *run, struct error *error)
{
	struct check_base *base = &run->context.base;
	const char *text = run->options->against;
	int err;

	base->allowed = run->options->fail_over;
	base->path = text;
	if (!text)
		return 0;
	base->here_fd = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base->here_fd >= 0) {
		base->kind = CHECK_BASE_DIRECTORY;
		return open_base_root(run, error);
	}
	if (run->n_tests > 1)
		return error__set(
			error, -EINVAL,
			"--against names one command or recording, and the budget has %zu tests: "
			"choose one with --name, or name a directory in which the base is "
			"built, where each test's command is run",
			run->n_tests);
	if (is_recording(text)) {
		base->kind = CHECK_BASE_RECORDING;
		return 0;
	}
	err = wordexp(text, &run->words, WRDE_NOCMD | WRDE_UNDEF);
	if (err || !run->words.we_wordc)
		return error__set(
			error, -EINVAL,
			"--against: '%.256s' cannot be split into the words of a command; a "
			"script can have pipes, substitutions and the like",
			text);
	base->argv = run->words.we_wordv;
	base->kind = CHECK_BASE_COMMAND;
	return 0;
}

/* Makes the directory of baselines. Every test has a result without it, so a failure only causes a
 * warning. */
static void make_baseline_dir(struct check_run *run)
{
	_cleanup_(free_ptr) char *path = NULL;
	const struct check_options *options = run->options;
	int err;

	if (options->baseline_dir)
		path = strdup(options->baseline_dir);
	else if (asprintf(&path, "%s.baselines", options->budget ?: "allocprof") < 0)
		path = NULL;
	err = path ? new_file__make_directory(path, 0777) : -ENOMEM;
	errno = -err;
	if (!err || err == -EEXIST) {
		_cleanup_(close_fd) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && !faccessat(fd, ".", W_OK | X_OK, AT_EACCESS))
			run->baseline = realpath(path, NULL);
	}
	if (!run->baseline)
		message__print("cannot keep recordings in %.256s: %s; failures cannot be explained",
			       path ? path : "a directory", strerror(errno));
	run->context.baseline = run->baseline;
}

/* Opens the budget's directory, which the tests' working directories are relative to. */
static int open_root(struct check_run *run, struct error *error)
{
	_cleanup_(free_ptr) char *path = strdup(run->options->budget ?: "./");

	if (!path)
		return error__set(error, -ENOMEM, "out of memory");
	run->context.root_fd = open(dirname(path), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (run->context.root_fd < 0)
		return error__set(error, -errno, "cannot open the directory of %.256s: %s",
				  run->options->budget, strerror(errno));
	return 0;
}

static int open_outputs(struct check_run *run, struct error *error)
{
	const char *budget = run->options->budget;
	int err;

	run->output.path = run->options->output;
	run->output.option = "-o";
	err = output_file__check(run->output.path, run->output.option, budget, "the budget", error);
	for (int i = 0; i < CHECK_FILES && !err; i++) {
		run->files[i].path = run->options->files[i];
		run->files[i].option = files[i].option;
		err = output_file__check(run->files[i].path, files[i].option, budget, "the budget",
					 error);
	}
	if (!err)
		err = late_output__reserve(&run->output, error);
	for (int i = 0; i < CHECK_FILES && !err; i++)
		err = late_output__reserve(&run->files[i], error);
	if (err)
		return err;
	run->to = stderr;
	if (run->output.path)
		run->to = open_memstream(&run->text, &run->size);
	return run->to ? 0 : error__set(error, -ENOMEM, "out of memory");
}

/* Finds mistakes before anything is run. */
static int check_expressions(const struct budget *budget, const char *path, struct error *error)
{
	for (size_t i = 0; i < budget->n_tests; i++) {
		const struct budget_test *test = &budget->tests[i];

		for (size_t j = 0; j < test->n_parts; j++) {
			struct filter_where where;
			int err = test->parts[j].kind == BUDGET_WHERE
					  ? filter_where__parse(&where, test->parts[j].name, error)
					  : 0;

			if (err)
				return error__wrap(error, err, "%.256s, test '%.64s'", path,
						   test->name);
		}
	}
	return 0;
}

/* Reads the budget. With --update, makes the budget, or the test of the command, if there is none. */
static int read_budget(struct check_run *run, struct error *error)
{
	const struct check_options *options = run->options;
	bool may_add = options->update && options->measure.argv;
	int err;

	if (!options->budget)
		return budget__add(&run->budget, "the command line", options->name,
				   options->measure.argv, error);
	err = budget__read(options->budget, &run->budget, error);

	if (err && err != -ENOENT)
		return err;
	run->is_new = err && may_add;
	run->is_added = !err && may_add && options->name &&
			!budget__find(&run->budget, options->name, NULL);
	if (run->is_new || run->is_added)
		return budget__add(&run->budget, options->budget, options->name,
				   options->measure.argv, error);
	if (!err)
		return check_expressions(&run->budget, options->budget, error);
	return error__set(error, err, "there is no budget %.256s; %s", options->budget,
			  options->update
				  ? "give a command after --, and the budget is made from it"
				  : "check --update with a command makes one");
}

static int prepare(struct check_run *run, int *status, struct error *error)
{
	int err = read_budget(run, error);

	*status = EXIT_FAILED;
	if (!err)
		err = choose_tests(run, status, error);
	if (!err) {
		*status = EXIT_USAGE;
		err = open_base(run, error);
	}
	if (!err) {
		*status = EXIT_OURS;
		err = open_root(run, error);
	}
	if (!err && run->options->update)
		err = budget__check_writable(run->options->budget, error);
	if (!err)
		err = open_outputs(run, error);
	if (!err) {
		run->results = calloc(run->n_tests, sizeof(*run->results));
		if (!run->results)
			err = error__set(error, -ENOMEM, "out of memory");
	}
	return err;
}

static int run_tests(struct check_run *run, struct error *error)
{
	bool is_updated = false, goes_on = true;
	int err;

	make_baseline_dir(run);
	for (size_t i = 0; i < run->n_tests && goes_on; i++) {
		struct check_result *result = &run->results[run->n_results++];

		check__run(&run->context, &run->tests[i], result);
		check_report__print(result, run->to);
		is_updated |= result->is_updated;
		goes_on = result->outcome != CHECK_INTERRUPTED;
	}
	if (!is_updated)
		return 0;
	err = budget__write(&run->budget, run->options->budget, error);
	if (!err && run->is_new)
		message__print("%s is new, with the command of test '%s' and its limits",
			       run->options->budget, run->tests->name);
	if (!err && run->is_added)
		message__print("test '%s' is new in %s, with the command and its limits",
			       run->tests->name, run->options->budget);
	return err;
}

static int write_file(struct check_run *run, enum check_file file, struct error *error)
{
	_cleanup_(free_ptr) char *path = strdup(run->options->budget ?: "allocprof");
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;

	if (!run->files[file].path)
		return 0;
	if (!path || files[file].write(basename(path), run->results, run->n_results, &text, &size))
		return error__set(error, -ENOMEM, "cannot write %.256s: out of memory",
				  run->files[file].path);
	return late_output__write(&run->files[file], text, size, error);
}

static int write_output(struct check_run *run, struct error *error)
{
	int err = 0;

	if (!run->output.path)
		return 0;
	if (fclose(run->to))
		err = error__set(error, -ENOMEM, "cannot write %.256s: out of memory",
				 run->output.path);
	run->to = NULL;
	return err ? err : late_output__write(&run->output, run->text, run->size, error);
}

static void release(struct check_run *run)
{
	for (size_t i = 0; i < run->n_results; i++)
		check_result__release(&run->results[i]);
	free(run->results);
	if (run->output.path && run->to)
		fclose(run->to);
	free(run->text);
	late_output__release(&run->output);
	for (int i = 0; i < CHECK_FILES; i++)
		late_output__release(&run->files[i]);
	if (run->context.root_fd >= 0)
		close(run->context.root_fd);
	if (run->context.base.here_fd >= 0)
		close(run->context.base.here_fd);
	if (run->context.base.root_fd >= 0)
		close(run->context.base.root_fd);
	if (run->context.base.argv)
		wordfree(&run->words);
	free(run->baseline);
	budget__release(&run->budget);
}

static int check_budget(struct check_run *run)
{
	struct error error = { 0 };
	int status, err, failed;

	err = prepare(run, &status, &error);
	if (err) {
		message__error(&error, err);
		return status;
	}
	err = run_tests(run, &error);
	if (err)
		message__error(&error, err);
	failed = err;
	for (int i = 0; i <= CHECK_FILES; i++) {
		error = (struct error){ 0 };
		err = i < CHECK_FILES ? write_file(run, i, &error) : write_output(run, &error);
		if (err)
			message__error(&error, err);
		failed = failed ? failed : err;
	}
	return failed ? EXIT_OURS : check__status(run->results, run->n_results);
}

static int run_check(char **argv)
{
	struct check_options options = {
		.measure.session = {
			.stacks = true,
			.live = true,
			.regions = true,
			.functions = AP_ALL_FUNCTIONS & ~AP_FREEING,
			.follow = true,
			.max_depth = STACK_DEPTH,
			.stack_dump_bytes = AP_MAX_STACK_DUMP,
		},
		.measure.quiet = true,
	};
	struct measure_surroundings surroundings = { 0 };
	struct check_run run = {
		.options = &options,
		.context = {
			.measure = &options.measure,
			.surroundings = &surroundings,
			.root_fd = -1,
			.base = { .here_fd = -1, .root_fd = -1 },
		},
	};
	int status;

	status = options__read(&cmd_check, parse_check, &options, argv);
	if (status != OPTIONS_READ)
		return status;
	run.context.series = options.series;
	run.context.argv = options.measure.argv;
	run.context.update = options.update;
	run.context.strict_limits = options.strict_limits;
	status = check_budget(&run);
	release(&run);
	measure_surroundings__release(&surroundings);
	return status;
}

const struct command cmd_check = {
	.name = "check",
	.summary = "Hold commands to limits of what they may allocate",
	.args_doc =
		"--budget FILE [[--] COMMAND [ARGUMENT...]]\n--against BASE [--] COMMAND [ARGUMENT...]",
	.doc = "Run the tests of a budget, and compare what they allocate with their limits.\v"
	       "For example: allocprof check --budget allocations.json --name parse ./parse-test\n"
	       "The exit status is 0 where nothing is over its limit, 1 where something is, 3 with "
	       "--strict-limits where a figure is below its lower limit, 4 where data is incomplete, "
	       "5 where limits, or what they are of, are missing, 2 where a test failed, and 125, "
	       "126 and 127 where one could not be run.",
	.options = check_options,
	.launches = true,
	.run = run_check,
};
