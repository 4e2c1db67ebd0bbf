// SPDX-License-Identifier: GPL-3.0-or-later
/* `allocprof env`: prints the environment by which processes keep what they count in files of their own. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "command.h"
#include "doctor.h"
#include "error.h"
#include "inside_abi.h"
#include "options.h"
#include "output_file.h"
#include "sample_abi.h"
#include "text.h"

enum {
	OPT_LIVE = 256,
	OPT_SAMPLE,
	OPT_MAX_DEPTH,
	OPT_MAX_SIZE,
	OPT_NO_FOLLOW,
	OPT_WARN,
	OPT_FILTERED,
	OPT_LIBRARY,
	OPT_FORMAT,
};

/* The largest and the smallest size of a file, which the library checks, too. */
#define LEAST_BYTES (16ULL << 20)
#define MOST_BYTES  (1ULL << 40)

static const struct argp_option env_options[] = {
	{ "output", 'o', "PATTERN", 0,
	  "The processes' files, an absolute path: %p is the process, %e its name, %t the time, %h "
	  "the host, %% a % (default: /var/tmp/allocprof.%e.%p)",
	  0 },
	{ "live", OPT_LIVE, NULL, 0, "Follow memory until it is freed", 0 },
	{ "sample", OPT_SAMPLE, "BYTES", 0,
	  "Sample one call for about every BYTES requested, and estimate the rest", 0 },
	{ "max-depth", OPT_MAX_DEPTH, "N", 0, "Keep N frames of a stack, 1 to 512 (default 127)",
	  0 },
	{ "max-size", OPT_MAX_SIZE, "SIZE", 0,
	  "Let a file have SIZE at the most, 16M to 1024G (default 1G)", 0 },
	{ "no-follow", OPT_NO_FOLLOW, NULL, 0, "Leave out the processes that a process forks", 0 },
	{ "warn", OPT_WARN, NULL, 0,
	  "Have a process that cannot be measured say so on its standard error", 0 },
	{ "filtered", OPT_FILTERED, NULL, 0,
	  "Measure a process under a seccomp filter, too (default with docker and kubernetes)", 0 },
	{ "library", OPT_LIBRARY, "FILE", 0,
	  "Name the library FILE, where it is at another path in the container", 0 },
	{ "format", OPT_FORMAT, "PLACE", 0,
	  "Print lines for a shell (shell, the default), a unit (systemd), a Dockerfile (docker), or a pod "
	  "(kubernetes)",
	  0 },
	{ 0 },
};

enum env_format {
	FORMAT_SHELL,
	FORMAT_SYSTEMD,
	FORMAT_DOCKER,
	FORMAT_KUBERNETES,
};

static const char *const formats[] = { "shell", "systemd", "docker", "kubernetes", NULL };

struct env_options {
	const char *pattern, *library;
	char found[PATH_MAX], *real; /* the library, if it was not named */
	__u64 sample_bytes, max_depth, max_bytes;
	bool live, no_follow, warns, filtered;
	enum env_format format;
};

static int parse_format(const char *text, struct env_options *options, struct error *error)
{
	for (int i = 0; formats[i]; i++)
		if (!strcmp(formats[i], text)) {
			options->format = i;
			return 0;
		}
	return error__set(error, -EINVAL,
			  "'%s' is no format; --format takes shell, systemd, docker or kubernetes",
			  text);
}

static int parse_size(const char *text, __u64 least, __u64 most, const char *takes, __u64 *bytes,
		      struct error *error)
{
	int err = number__parse_size(text, bytes, error);

	if (!err && (*bytes < least || *bytes > most))
		err = error__set(error, -EINVAL, "'%s' is out of range; %s", text, takes);
	return err;
}

/* The library reads a path as a list, and neither a unit file nor a shell's line is to need quotes. */
static int check_text(const char *text, const char *option, struct error *error)
{
	if (*text != '/')
		return error__set(
			error, -EINVAL,
			"'%s' is no absolute path, which %s takes: a process may work in any "
			"directory",
			text, option);
	if (strlen(text) > INSIDE_VALUE_BYTES)
		return error__set(error, -EINVAL, "the path of %s is longer than %d bytes", option,
				  INSIDE_VALUE_BYTES);
	for (; *text; text++)
		if (!isgraph((unsigned char)*text) || strchr(":$\"'\\`;#&|<>()*?[]!", *text))
			return error__set(
				error, -EINVAL,
				"the path of %s has a space or another character that LD_PRELOAD, a unit "
				"file or a shell reads as something else",
				option);
	return 0;
}

static int check_pattern(const char *pattern, struct error *error)
{
	int err = check_text(pattern, "-o", error);

	for (const char *at = pattern; *at && !err; at++)
		if (*at == '%' && (!*++at || !strchr("peth%", *at)))
			return error__set(
				error, -EINVAL,
				"'%s' has a %% that is followed by none of p, e, t, h and %%",
				pattern);
	return err;
}

static int check_env(struct env_options *options, struct error *error)
{
	int err = check_pattern(options->pattern, error);

	if (!err && !options->library) {
		err = doctor__find_preload(options->found, error);
		/* It may have been found by the way of this program's file. */
		options->library = options->real = err ? NULL : realpath(options->found, NULL);
		if (!err && !options->real)
			err = error__set(error, -errno, "cannot find %s: %s", options->found,
					 strerror(errno));
	}
	return err ? err : check_text(options->library, "--library", error);
}

static int parse_env(int key, char *arg, struct options_input *input)
{
	struct env_options *options = input->options;

	switch (key) {
	case 'o':
		options->pattern = arg;
		return 0;
	case OPT_LIVE:
		options->live = true;
		return 0;
	case OPT_SAMPLE:
		return parse_size(arg, 1, AP_MAX_SAMPLE_BYTES,
				  "--sample takes 1 byte to 1G, 512K for example",
				  &options->sample_bytes, input->error);
	case OPT_MAX_DEPTH:
		if (number__parse_between(arg, 1, AP_MAX_DEPTH, &options->max_depth))
			return 0;
		return error__set(input->error, -EINVAL,
				  "'%s' is no depth; --max-depth takes 1 to %d", arg, AP_MAX_DEPTH);
	case OPT_MAX_SIZE:
		return parse_size(arg, LEAST_BYTES, MOST_BYTES, "--max-size takes 16M to 1024G",
				  &options->max_bytes, input->error);
	case OPT_NO_FOLLOW:
		options->no_follow = true;
		return 0;
	case OPT_WARN:
		options->warns = true;
		return 0;
	case OPT_FILTERED:
		options->filtered = true;
		return 0;
	case OPT_LIBRARY:
		options->library = arg;
		return 0;
	case OPT_FORMAT:
		return parse_format(arg, options, input->error);
	case OPTIONS_OPERAND:
		return options__reject_operand(arg, input->error);
	case OPTIONS_END:
		return check_env(options, input->error);
	default:
		return OPTIONS_UNKNOWN;
	}
}

static void print_settings(const struct env_options *options, FILE *to)
{
	fputs(options->live ? "live" : "record", to);
	if (options->sample_bytes)
		fprintf(to, ",sample=%llu", options->sample_bytes);
	if (options->max_depth)
		fprintf(to, ",depth=%llu", options->max_depth);
	if (options->max_bytes)
		fprintf(to, ",size=%llu", options->max_bytes);
	if (options->no_follow)
		fputs(",alone", to);
	if (options->warns)
		fputs(",warn", to);
	/* The filter that every container has fails what it forbids, and does not kill for it. */
	if (options->filtered || options->format == FORMAT_DOCKER ||
	    options->format == FORMAT_KUBERNETES)
		fputs(",filtered", to);
}

/* A unit file has specifiers, which begin with %. */
static void print_systemd(FILE *to, const char *name, const char *value)
{
	fprintf(to, "Environment=%s=", name);
	for (; *value; value++) {
		if (*value == '%')
			fputc('%', to);
		fputc(*value, to);
	}
	fputc('\n', to);
}

static void print_variable(const struct env_options *options, FILE *to, const char *name,
			   const char *value)
{
	switch (options->format) {
	case FORMAT_SHELL:
		fprintf(to, "export %s=%s\n", name, value);
		break;
	case FORMAT_SYSTEMD:
		print_systemd(to, name, value);
		break;
	case FORMAT_DOCKER:
		fprintf(to, "ENV %s=%s\n", name, value);
		break;
	case FORMAT_KUBERNETES:
		fprintf(to, "- name: %s\n  value: \"%s\"\n", name, value);
		break;
	}
}

static int print_environment(FILE *to, const void *context)
{
	const struct env_options *options = context;
	_cleanup_(free_ptr) char *settings = NULL;
	size_t size;
	FILE *text = open_memstream(&settings, &size);

	if (!text)
		return -ENOMEM;
	print_settings(options, text);
	if (fclose(text))
		return -ENOMEM;
	print_variable(options, to, "LD_PRELOAD", options->library);
	print_variable(options, to, INSIDE_OUTPUT_VARIABLE, options->pattern);
	print_variable(options, to, INSIDE_SETTINGS_VARIABLE, settings);
	return 0;
}

static int run_env(char **argv)
{
	struct env_options options = { .pattern = "/var/tmp/allocprof.%e.%p" };
	struct error error = { 0 };
	int err, status;

	status = options__read(&cmd_env, parse_env, &options, argv);
	if (status == OPTIONS_READ) {
		err = output_file__write(NULL, NULL, false, print_environment, &options, &error);
		status = err ? output_file__status(err, &error) : EXIT_GOOD;
	}
	free(options.real);
	return status;
}

const struct command cmd_env = {
	.name = "env",
	.summary = "Print the environment by which services record themselves",
	.doc = "Print environment variables by which a process, and those that it starts, keep what they allocate "
	       "in files of their own, with no allocprof beside them and no privileges; `allocprof salvage` makes "
	       "a recording of the files.\v"
	       "For example: eval \"$(allocprof env -o /var/tmp/app.%p --sample 512K)\"; ./app",
	.options = env_options,
	.run = run_env,
};
