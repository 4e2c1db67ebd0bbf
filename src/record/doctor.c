// SPDX-License-Identifier: GPL-3.0-or-later
/* Reports what this kernel permits and this user may do, and what a distribution, a container or
 * an administrator has switched off. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cleanup.h"
#include "confinement.h"
#include "error.h"
#include "kernel.h"
#include "parser.h"
#include "preload_engine.h"
#include "probes.h"
#include "profile.h"
#include "session_internal.h"
#include "table_cache.h"
#include "target.h"
#include "uprobe_engine.h"

void doctor__probe_kernel(struct kernel *kernel)
{
	kernel__probe(kernel, NULL);
}

int doctor__cache(char *path, size_t size, __u64 *size_bytes, struct error *error)
{
	struct table_cache *cache;
	int err = table_cache__open(&cache, error);

	if (err)
		return err;
	snprintf(path, size, "%s", table_cache__path(cache));
	*size_bytes = table_cache__size_bytes(cache);
	table_cache__close(cache);
	return 0;
}

int doctor__find_preload(char *path, struct error *error)
{
	return preload_engine__find_library(path, error);
}

int doctor__load_programs(bool stacks, bool live, __u32 *instructions, struct error *error)
{
	struct session_options options = {
		.stacks = stacks,
		.live = live,
		/* stat and check use regions; check records with --live. */
		.regions = !stacks || live,
		.follow = true,
		.max_depth = AP_MAX_DEPTH,
		.stack_dump_bytes = AP_MAX_STACK_DUMP,
	};
	const struct target target = { 0 };
	const struct engine_options engine_options = {
		.session = &options,
		.profile = profile__new(),
		.target = &target,
	};
	struct memory_group group;
	struct engine *engine;
	int err = -ENOMEM;

	session__take_shares(&options, &group);
	/* Programs that were loaded before may still count as memory of the group, so its free
	 * memory means nothing. */
	options.free_bytes = UINT64_MAX;
	if (engine_options.profile)
		err = uprobe_engine.open(&engine_options, &engine, error);
	if (!err) {
		*instructions = uprobe_engine__verified_instructions(engine);
		uprobe_engine.close(engine);
	}
	profile__free(engine_options.profile);
	return err;
}

const char *doctor__engine(int err)
{
	if (!err)
		return uprobe_engine.name;
	return session__lacks_uprobes(err) && !preload_engine__find_library(NULL, NULL)
		       ? preload_engine.name
		       : NULL;
}

struct doctor {
	struct probes *probes;
	struct parser *parser;
};

static int find(struct probes *probes, char *const argv[], pid_t pid, struct error *error)
{
	int err;

	if (pid)
		return probes__add_process(probes, pid, error);
	err = probes__add_command(probes, argv, error);
	if (err == -EACCES && strchr(argv[0], '/'))
		err = probes__add_library(probes, argv[0], error);
	return err;
}

int doctor__find(char *const argv[], pid_t pid, struct doctor **out, struct error *error)
{
	/* Without a program in these options nothing is probed. */
	struct probes_options options = { .functions = AP_ALL_FUNCTIONS };
	struct doctor *doctor = calloc(1, sizeof(*doctor));
	int err;

	if (!doctor)
		return -ENOMEM;
	err = parser__new(&doctor->parser, error);
	options.parser = doctor->parser;
	if (!err)
		err = probes__new(&options, &doctor->probes);
	if (!err)
		err = find(doctor->probes, argv, pid, error);
	if (err) {
		doctor__free(doctor);
		return err;
	}
	*out = doctor;
	return 0;
}

bool doctor__file(const struct doctor *doctor, size_t index, struct probed_file *out)
{
	const struct probed_allocator *list;
	size_t n;

	list = probes__list(doctor->probes, &n);
	if (index >= n)
		return false;
	*out = probed_allocator__file(&list[index]);
	return true;
}

void doctor__free(struct doctor *doctor)
{
	if (!doctor)
		return;
	probes__free(doctor->probes);
	parser__free(doctor->parser);
	free(doctor);
}

#define TEXT_SIZE 512
/* With --live blocks take one part in LIVE_PART of the machine's memory unless options set a
 * limit, and BLOCK_BYTES each (allocprof-record(1)). */
#define LIVE_PART    4
#define BLOCK_BYTES  160
#define OLDEST_MAJOR 5
#define OLDEST_MINOR 17
/* gVisor's kernel reports this version, whatever kernel runs below it. */
#define GVISOR_VERSION "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"

struct search {
	const struct kernel *kernel;
	bool works;
	doctor_say *say;
	void *context;
};

/* Reads the first bytes of a file, without a newline at their end. Returns false if it cannot be
 * read. */
static bool read_text(const char *path, char text[TEXT_SIZE])
{
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t len = fd < 0 ? -1 : read(fd, text, TEXT_SIZE - 1);

	if (len < 0)
		return false;
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

static void look_at_machine(const struct search *search)
{
	char version[TEXT_SIZE];

	if (search->works || !read_text("/proc/version", version))
		return;
	if (!strncmp(version, GVISOR_VERSION, strlen(GVISOR_VERSION)))
		search->say(
			"this is a sandbox of gVisor, which has neither BPF nor uprobes; let allocprof "
			"start the command with --engine=preload, or use another runtime (docker run "
			"--runtime=runc)",
			search->context);
	else if (strcasestr(version, "microsoft-standard") || strstr(version, "WSL2"))
		search->say("this is WSL2, some of whose kernels have no BTF and no uprobes; "
			    "update it (wsl --update), or boot a kernel with "
			    "CONFIG_DEBUG_INFO_BTF and CONFIG_UPROBE_EVENTS (.wslconfig)",
			    search->context);
	else if (strstr(version, "Microsoft"))
		search->say("this is WSL1, which has no Linux kernel; use WSL2 (wsl "
			    "--set-version)",
			    search->context);
}

static void look_at_version(const struct search *search)
{
	unsigned major, minor;
	char text[TEXT_SIZE];

	if (search->works || sscanf(search->kernel->release, "%u.%u", &major, &minor) != 2 ||
	    major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
		return;
	snprintf(
		text, sizeof(text),
		"Linux %.60s is older than %d.%d; boot a newer one, where RLIMIT_MEMLOCK is no limit of "
		"BPF either, as before Linux 5.11",
		search->kernel->release, OLDEST_MAJOR, OLDEST_MINOR);
	search->say(text, search->context);
}

static void look_at_lockdown(const struct search *search)
{
	char lockdown[TEXT_SIZE];

	if (read_text("/sys/kernel/security/lockdown", lockdown) &&
	    strstr(lockdown, "[confidentiality]"))
		search->say("the kernel is locked down (confidentiality), so that BPF programs may "
			    "not read memory; boot with lockdown=integrity, or none",
			    search->context);
}

static void look_at_namespace(const struct search *search)
{
	unsigned inner, outer, n;
	char map[TEXT_SIZE];

	if (!read_text("/proc/self/uid_map", map))
		return;
	if (sscanf(map, "%u %u %u", &inner, &outer, &n) == 3 && !inner && !outer && n == UINT_MAX)
		return;
	search->say(
		"this is a namespace of users, whose root the kernel lets set no probes; run "
		"allocprof outside of it, a container as root and without userns-remap (podman: "
		"sudo), or let it start the command with --engine=preload",
		search->context);
}

/* Returns whether a needed capability is missing from the bounding set, so that no privilege
 * helps. */
static bool lacks_for_good(void)
{
	bool is_admin = prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) != 0;

	return (!is_admin && (prctl(PR_CAPBSET_READ, CAP_BPF) == 0 ||
			      prctl(PR_CAPBSET_READ, CAP_PERFMON) == 0)) ||
	       prctl(PR_CAPBSET_READ, CAP_SYS_PTRACE) == 0;
}

static void look_at_bounds(const struct search *search)
{
	char text[TEXT_SIZE];

	if (!search->kernel->missing_capabilities[0] || !lacks_for_good())
		return;
	snprintf(
		text, sizeof(text),
		"recording needs %s, which this user lacks, also as root, and sudo does not help; "
		"start the container with --privileged, or --cap-add BPF,PERFMON,SYS_PTRACE (systemd: "
		"CapabilityBoundingSet=)",
		search->kernel->missing_capabilities);
	search->say(text, search->context);
}

static void look_at_settings(const struct search *search)
{
	char paranoid[TEXT_SIZE] = "?", disabled[TEXT_SIZE] = "?", text[3 * TEXT_SIZE];

	if (!search->kernel->missing_capabilities[0])
		return;
	read_text("/proc/sys/kernel/perf_event_paranoid", paranoid);
	read_text("/proc/sys/kernel/unprivileged_bpf_disabled", disabled);
	snprintf(
		text, sizeof(text),
		"kernel.perf_event_paranoid is %.20s and kernel.unprivileged_bpf_disabled %.20s; "
		"with the capabilities neither matters, and without them no value of these is enough",
		paranoid, disabled);
	search->say(text, search->context);
}

/* Looks for what refuses recordings although the capabilities are there. */
static void look_at_refusals(const struct search *search)
{
	char enforces[TEXT_SIZE], label[TEXT_SIZE], text[2 * TEXT_SIZE];

	if (search->works || search->kernel->missing_capabilities[0])
		return;
	if (confinement__is_filtered())
		search->say(
			"a filter of system calls (seccomp) is in place, as in containers; start "
			"the container with --privileged, or with a profile that lets bpf(2) and "
			"perf_event_open(2) pass (--security-opt seccomp=FILE); systemd: "
			"SystemCallFilter=@system-service @mount seccomp bpf perf_event_open",
			search->context);
	if (read_text("/sys/fs/selinux/enforce", enforces) && enforces[0] == '1') {
		if (!read_text("/proc/self/attr/current", label))
			strcpy(label, "unknown");
		snprintf(text, sizeof(text),
			 "SELinux is enforcing, and the domain is %.200s; if `ausearch -m avc -c "
			 "allocprof` shows denials, allow them (audit2allow)",
			 label);
		search->say(text, search->context);
	} else if ((read_text("/proc/self/attr/apparmor/current", label) ||
		    read_text("/proc/self/attr/current", label)) &&
		   strstr(label, "(enforce)")) {
		snprintf(
			text, sizeof(text),
			"the AppArmor profile %.200s is enforced; give it `capability bpf,`, `capability "
			"perfmon,` and `ptrace,`, or start the container with --security-opt "
			"apparmor=unconfined",
			label);
		search->say(text, search->context);
	}
}

/* Lowers *@least to the smallest limit that the group @path or one of its parents below @mount has in @file. Changes
 * @path. */
static void take_limits(const char *mount, char *path, const char *file, unsigned long long *least)
{
	char name[PATH_MAX], text[TEXT_SIZE];
	char *slash;

	for (;;) {
		unsigned long long limit;
		int n = snprintf(name, sizeof(name), "%s%s/%s", mount, path, file);

		if (n > 0 && (size_t)n < sizeof(name) && read_text(name, text) &&
		    sscanf(text, "%llu", &limit) == 1 && limit < *least)
			*least = limit;
		slash = strrchr(path, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

static unsigned long long memory_limit(void)
{
	_cleanup_(close_file) FILE *groups = fopen("/proc/self/cgroup", "re");
	unsigned long long least = ULLONG_MAX;
	char line[TEXT_SIZE];

	while (groups && fgets(line, sizeof(line), groups)) {
		char *path = strrchr(line, ':');

		line[strcspn(line, "\n")] = '\0';
		if (!path)
			continue;
		*path++ = '\0';
		if (strstr(line, ":memory"))
			take_limits("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", &least);
		else if (!strcmp(line, "0:"))
			take_limits("/sys/fs/cgroup", path, "memory.max", &least);
	}
	return least;
}

/* Compares the needed memory with the limit of this process's group, since the kernel counts maps
 * of BPF programs in the group that makes them. */
static void look_at_memory(const struct search *search)
{
	unsigned long long limit = memory_limit(), needed;
	struct sysinfo info;
	char text[TEXT_SIZE];

	if (sysinfo(&info))
		return;
	needed = (unsigned long long)info.totalram * info.mem_unit / LIVE_PART;
	if (limit >= needed)
		return;
	snprintf(
		text, sizeof(text),
		"the memory of this control group is limited to %llu MiB, and the tables of --live grow to "
		"%llu MiB, a quarter of the machine's, if there are so many blocks; raise the limit, or "
		"say --max-live=%llu",
		limit >> 20, needed >> 20, limit / LIVE_PART / BLOCK_BYTES);
	search->say(text, search->context);
}

/* Looks for what makes the kernel refuse recordings of any user. */
static void look_at_surroundings(const struct search *search)
{
	look_at_machine(search);
	look_at_version(search);
	look_at_lockdown(search);
	look_at_namespace(search);
	look_at_bounds(search);
}

void doctor__obstacles(const struct kernel *kernel, bool works, doctor_say *say, void *context)
{
	const struct search search = { kernel, works, say, context };

	look_at_surroundings(&search);
	look_at_settings(&search);
	look_at_refusals(&search);
	look_at_memory(&search);
}

/* Sets the error to the first sentence, and ignores further ones. */
static void set_error(const char *sentence, void *context)
{
	struct error *error = context;

	if (!error->text[0])
		error__set(error, 0, "%s", sentence);
}

bool doctor__first_obstacle(const struct kernel *kernel, struct error *error)
{
	struct error first = { 0 };
	const struct search search = { kernel, false, set_error, &first };

	look_at_surroundings(&search);
	if (first.text[0])
		*error = first;
	return first.text[0];
}
