// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * measure LIBRARY OUTPUT [NAME=VALUE...] COMMAND [ARGUMENT...]: runs the command with the library in its
 * processes, and with these variables in their environment, and writes what they counted as JSON. Exit status
 * is the command's.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error.h"
#include "preload.h"

static const char *const names[AP_DEFINED] = {
	"malloc",	 "calloc",   "realloc",	   "reallocarray", "posix_memalign",
	"aligned_alloc", "memalign", "valloc",	   "pvalloc",	   "free",
	"new",		 "delete",   "free_sized",
};

static void add_number(struct json_object *to, const char *name, __u64 value)
{
	json_object_object_add(to, name, json_object_new_uint64(value));
}

static struct json_object *functions_json(const struct preload_results *results)
{
	struct json_object *all = json_object_new_object();

	for (int i = 0; i < AP_DEFINED; i++) {
		const struct ap_site_counts *counts = &results->functions[i];
		struct json_object *one;

		if (!names[i])
			continue;
		one = json_object_new_object();
		add_number(one, "calls", counts->calls);
		add_number(one, "bytes", counts->size_bytes);
		add_number(one, "fresh", counts->fresh);
		add_number(one, "fresh_bytes", counts->fresh_size_bytes);
		add_number(one, "released", counts->released);
		add_number(one, "null", counts->null);
		add_number(one, "internal", counts->internal);
		json_object_object_add(all, names[i], one);
	}
	return all;
}

static struct json_object *images_json(const struct preload_results *results)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < results->n_images; i++) {
		const struct preload_image *image = &results->images[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "comm", json_object_new_string(image->comm));
		add_number(one, "pid", image->pid);
		add_number(one, "parent", image->parent);
		json_object_object_add(one, "before", json_object_new_int(image->before));
		json_object_object_add(one, "is_fork", json_object_new_boolean(image->is_fork));
		json_object_array_add(all, one);
	}
	return all;
}

static struct json_object *refused_json(const struct preload_results *results)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < results->n_refused; i++) {
		const struct preload_refused *refused = &results->refused[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "path", json_object_new_string(refused->path));
		json_object_object_add(
			one, "reason",
			json_object_new_string(preload__refusal_name(refused->reason)));
		json_object_array_add(all, one);
	}
	return all;
}

static int write_results(const struct preload *preload, const char *path)
{
	struct json_object *all, *gaps;
	struct preload_results results;
	int err = preload__read(preload, &results);

	if (err)
		return err;
	all = json_object_new_object();
	json_object_object_add(all, "functions", functions_json(&results));
	json_object_object_add(all, "images", images_json(&results));
	json_object_object_add(all, "refused", refused_json(&results));
	gaps = json_object_new_array();
	for (int i = 0; i < INSIDE_GAPS; i++)
		json_object_array_add(gaps, json_object_new_uint64(results.gaps[i]));
	json_object_object_add(all, "gaps", gaps);
	add_number(all, "threads", results.n_threads);
	add_number(all, "unfinished", results.n_unfinished);
	add_number(all, "damaged", results.n_damaged);
	if (json_object_to_file_ext(path, all, JSON_C_TO_STRING_PRETTY))
		err = -EIO;
	json_object_put(all);
	preload_results__free(&results);
	return err;
}

int main(int argc, char **argv)
{
	struct preload_options options = {
		.library = argv[1],
		.settings = { .mode = INSIDE_COUNT, .max_depth = AP_MAX_DEPTH, .follow = 1 },
	};
	struct error error = { "" };
	struct preload *preload;
	char **environment, **command = argv + 3;
	int status;
	pid_t pid;

	if (argc < 4) {
		fprintf(stderr,
			"usage: measure LIBRARY OUTPUT [NAME=VALUE...] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	for (; *command && strchr(*command, '='); command++)
		putenv(*command);
	if (preload__new(&options, &preload, &error) || preload__open(preload, true)) {
		fprintf(stderr, "measure: %s\n", error.text);
		return 126;
	}
	environment = preload__environment(preload, environ);
	pid = environment ? fork() : -1;
	if (!pid) {
		execvpe(command[0], command, environment);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || write_results(preload, argv[2])) {
		fprintf(stderr, "measure: failed\n");
		status = 126 << 8;
	}
	free(environment);
	preload__free(preload);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
