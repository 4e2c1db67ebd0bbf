// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads the settings of ALLOCPROF_OUTPUT, and makes and maps the file in which this process counts. */
#include "output.h"

#include <asm/poll.h>
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/time.h>
#include <linux/utsname.h>

#include "environment.h"
#include "inside_abi.h"
#include "memory.h"
#include "sample_abi.h"
#include "sys.h"

/* How many frames a stack has at the most if the settings do not say so, as with record. */
#define DEFAULT_DEPTH 127
/* The largest size of the file if the settings do not say so, and the limits of what they may say. */
#define DEFAULT_BYTES (1ULL << 30)
#define LEAST_BYTES   (16ULL << 20)
#define MOST_BYTES    (1ULL << 40)

/* A process's tables may have so many slots as with record; its file's size is the limit. */
#define MAX_LIVE_SHIFT 26

/* After so many names that exist already, the process is not measured. */
#define MOST_NAMES 10000

static struct {
	bool is_on;
	bool warns;	    /* a process that cannot be measured says so on its standard error */
	bool filtered;	    /* one under a filter of system calls is measured, too */
	bool is_endangered; /* a system call may kill the process */
	char pattern[INSIDE_VALUE_BYTES + 1];
	char settings_text[INSIDE_VALUE_BYTES + 1];
	struct inside_settings settings;
	__u64 size_bytes, sample_bytes;
} output;

bool output__is_on(void)
{
	return output.is_on;
}

#define BIT(signal) (1ULL << (signal - 1))

/* Signals that the kernel sends for a write to a pipe without a reader, or past the largest size of a file. */
#define BY_WRITING (BIT(SIGPIPE) | BIT(SIGXFSZ))

/* Writes to the standard error, unless it has no room. The write sends no signal, and loses none that was pending. */
static void write_line(const char *line, size_t size)
{
	struct pollfd error = { .fd = 2, .events = POLLOUT };
	const long now[2] = { 0, 0 };
	__u64 before, pending = 0, sent;

	/* A filter that permits a program anything permits this. */
	if (output.is_endangered) {
		sys(__NR_write, 2, (long)line, size, 0, 0, 0);
		return;
	}
	if (!sys__block_signals(&before))
		return;
	if (!sys(__NR_rt_sigpending, (long)&pending, sizeof(pending), 0, 0, 0, 0) &&
	    sys(__NR_ppoll, (long)&error, 1, (long)now, 0, 0, 0) == 1 && error.revents & POLLOUT &&
	    sys(__NR_write, 2, (long)line, size, 0, 0, 0) < 0) {
		sent = BY_WRITING & ~pending;
		sys(__NR_rt_sigtimedwait, (long)&sent, 0, (long)now, sizeof(sent), 0, 0);
	}
	sys__restore_signals(before);
}

static void warn(const char *what, const char *why)
{
	char line[2 * INSIDE_VALUE_BYTES] = "";
	const char *stop = line + sizeof(line) - 1;
	char *end = text__append(line, stop, "allocprof: the process is not measured: ");

	end = text__append(end, stop, what);
	end = text__append(end, stop, why);
	if (!end || !output.warns)
		return;
	*end++ = '\n';
	write_line(line, end - line);
}

/* Takes the value of a variable, of which @entry is the beginning if it has more than @bytes bytes.
 * Returns false if it is another variable. */
static bool take(const char *entry, size_t bytes, const char *name, char *value)
{
	size_t length = text__length(name);

	if (!text__begins(entry, name))
		return false;
	/* A value that is cut off is another one; then no process is measured. */
	if (bytes - length > INSIDE_VALUE_BYTES ||
	    !text__append(value, value + INSIDE_VALUE_BYTES + 1, entry + length))
		value[0] = 0;
	return true;
}

/* Reads /proc/self/environ: when the first call comes, the C library may have no environment yet. */
static bool read_environment(void)
{
	char entry[INSIDE_VALUE_BYTES + 32], buffer[512];
	int fd = sys__open("/proc/self/environ", O_RDONLY);
	bool is_asked = false;
	size_t bytes = 0;
	long n;

	if (fd < 0)
		return false;
	while ((n = sys__read(fd, buffer, sizeof(buffer))) > 0)
		for (long i = 0; i < n; i++) {
			if (bytes < sizeof(entry))
				entry[bytes] = buffer[i];
			bytes++;
			if (buffer[i])
				continue;
			entry[sizeof(entry) - 1] = 0;
			is_asked |=
				take(entry, bytes - 1, INSIDE_OUTPUT_VARIABLE "=", output.pattern);
			take(entry, bytes - 1, INSIDE_SETTINGS_VARIABLE "=", output.settings_text);
			bytes = 0;
		}
	sys__close(fd);
	return is_asked;
}

/* Returns whether the kernel filters the process's system calls: its filter is older than the program, so which calls
 * it forbids, and whether it kills for them, cannot be known. */
static bool is_filtered(void)
{
	static const char name[] = "\nSeccomp:\t";
	int fd = sys__open("/proc/self/status", O_RDONLY);
	char buffer[512], mode = '0';
	size_t matched = 0;
	long n;

	if (fd < 0)
		return false;
	while ((n = sys__read(fd, buffer, sizeof(buffer))) > 0)
		for (long i = 0; i < n; i++) {
			if (matched == sizeof(name) - 1)
				mode = buffer[i];
			matched = buffer[i] == name[matched] ? matched + 1 : buffer[i] == name[0];
		}
	sys__close(fd);
	return mode != '0';
}

/* Reads a decimal number of at most @most. Returns what follows it, or NULL. */
static const char *read_number(const char *text, __u64 most, __u64 *out)
{
	__u64 value = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		value = value * 10 + (*text - '0');
		if (value > most)
			return NULL;
	}
	*out = value;
	return text;
}

/* Takes a setting at @text. Returns what follows it, or NULL. */
static const char *take_setting(const char *text)
{
	static const struct {
		const char *name;
		enum inside_mode mode;
	} modes[] = {
		{ "record", INSIDE_RECORD },
		{ "live", INSIDE_LIVE },
	};
	struct inside_settings *settings = &output.settings;
	__u64 depth;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (text__begins(text, modes[i].name)) {
			settings->mode = modes[i].mode;
			return text + text__length(modes[i].name);
		}
	if (text__begins(text, "alone")) {
		settings->follow = 0;
		return text + 5;
	}
	if (text__begins(text, "filtered")) {
		output.filtered = true;
		return text + 8;
	}
	if (text__begins(text, "warn"))
		return text + 4;
	if (text__begins(text, "sample=")) {
		text = read_number(text + 7, AP_MAX_SAMPLE_BYTES, &output.sample_bytes);
		return output.sample_bytes ? text : NULL;
	}
	if (text__begins(text, "size="))
		return read_number(text + 5, MOST_BYTES, &output.size_bytes);
	if (!text__begins(text, "depth="))
		return NULL;
	text = read_number(text + 6, AP_MAX_DEPTH, &depth);
	if (text)
		settings->max_depth = depth;
	return text;
}

static bool take_settings(void)
{
	struct inside_settings *settings = &output.settings;
	const char *at = output.settings_text;

	*settings = (struct inside_settings){
		.mode = INSIDE_RECORD,
		.max_depth = DEFAULT_DEPTH,
		.follow = 1,
		.max_live_shift = MAX_LIVE_SHIFT,
		.max_records = INT32_MAX,
		.is_own = 1,
	};
	output.size_bytes = DEFAULT_BYTES;
	/* A bad setting is to be reported, too. */
	output.warns = text__contains(at, "warn");
	while (*at) {
		at = take_setting(at);
		if (!at || (*at && *at != ','))
			return false;
		at += !!*at;
	}
	settings->stacks = 1;
	settings->arguments = 1;
	settings->recorded = AP_ALL_FUNCTIONS & ~AP_FREEING;
	if (output.sample_bytes)
		ap_sample__configure(output.sample_bytes, &settings->sampling);
	return settings->max_depth && output.size_bytes >= LEAST_BYTES;
}

bool output__read(void)
{
	bool is_good;

	output.is_on = read_environment();
	if (!output.is_on)
		return false;
	is_good = take_settings();
	output.is_endangered = !output.filtered && is_filtered();
	if (!is_good)
		warn(INSIDE_SETTINGS_VARIABLE, " is not as `allocprof env` prints it");
	else if (output.pattern[0] != '/')
		warn(INSIDE_OUTPUT_VARIABLE, " is no absolute path");
	else if (output.is_endangered)
		warn("a filter of system calls may kill it", " (see allocprof env --filtered)");
	else
		return true;
	output.pattern[0] = 0;
	return true;
}

static char *append_number(char *end, const char *stop, __u64 number)
{
	char digits[24], *first = digits + sizeof(digits) - 1;

	*first = 0;
	do {
		*--first = '0' + number % 10;
		number /= 10;
	} while (number);
	return text__append(end, stop, first);
}

static __u64 realtime_ns(void)
{
	struct {
		long seconds, ns;
	} now = { 0 };

	sys(__NR_clock_gettime, CLOCK_REALTIME, (long)&now, 0, 0, 0, 0);
	return now.seconds * 1000000000ULL + now.ns;
}

/* Appends a name, which is no path. */
static char *append_name(char *end, const char *stop, char *name)
{
	for (char *at = name; *at; at++)
		if (*at == '/')
			*at = '!';
	return text__append(end, stop, name);
}

static char *append_field(char *end, const char *stop, char field)
{
	char comm[AP_COMM_LEN + 1] = "";
	struct new_utsname names = { 0 };

	switch (field) {
	case '%':
		return text__append(end, stop, "%");
	case 'p':
		return append_number(end, stop, sys__pid());
	case 't':
		return append_number(end, stop, realtime_ns() / 1000000000);
	case 'e':
		sys__comm(comm);
		return append_name(end, stop, comm);
	case 'h':
		sys(__NR_uname, (long)&names, 0, 0, 0, 0, 0);
		return append_name(end, stop, names.nodename);
	default:
		return NULL;
	}
}

/* Puts the file's path together. Returns its end, or NULL. */
static char *make_path(char *path, const char *stop)
{
	char *end = path, one[2] = "";

	*path = 0;
	for (const char *at = output.pattern; *at && end; at++) {
		one[0] = *at;
		if (*at == '%' && !*++at)
			return NULL;
		end = *one == '%' ? append_field(end, stop, *at) : text__append(end, stop, one);
	}
	return end;
}

static bool add_origin(struct inside_header *header)
{
	struct new_utsname names = { 0 };
	struct inside_origin *origin;
	__u64 offset;

	origin = memory__take_pages(sizeof(*origin), &offset);
	if (!origin)
		return false;
	origin->realtime_ns = realtime_ns();
	origin->monotonic_ns = sys__now_ns();
	origin->sample_bytes = output.sample_bytes;
	origin->machine = PROCESSOR_MACHINE;
	origin->command_bytes =
		sys__read_text("/proc/self/cmdline", origin->command, sizeof(origin->command));
	sys__read_text("/proc/sys/kernel/random/boot_id", origin->boot_id, sizeof(origin->boot_id));
	sys(__NR_uname, (long)&names, 0, 0, 0, 0, 0);
	text__append(origin->kernel, origin->kernel + sizeof(origin->kernel), names.release);
	header->origin = offset;
	return true;
}

/* Has the processor's counter tell the time of blocks, where the kernel's clock uses it, too. */
static void set_clock(struct inside_settings *settings)
{
	char source[16];
	int mode = 0;

	settings->start_ticks = 0;
	/* Whoever executed the program may have forbidden the instruction. */
	if (settings->mode != INSIDE_LIVE || sys(__NR_prctl, PR_GET_TSC, (long)&mode, 0, 0, 0, 0) ||
	    mode != PR_TSC_ENABLE)
		return;
	sys__read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		       sizeof(source));
	if ((text__equal(source, "tsc\n") || text__equal(source, "kvm-clock\n")) &&
	    !sys__read_clocks(&settings->start_ns, &settings->start_ticks))
		settings->start_ticks = 0;
}

bool output__begin(void)
{
	char path[MEMORY_PATH_BYTES];
	const char *stop = path + sizeof(path);
	char *end = output.pattern[0] ? make_path(path, stop) : NULL;
	int err = -EEXIST;

	if (!end) {
		if (output.pattern[0])
			warn(output.pattern, " is no pattern of a path, or too long a one");
		return false;
	}
	output.settings.epoch_ns = sys__now_ns();
	set_clock(&output.settings);
	for (int n = 1; err == -EEXIST && n < MOST_NAMES; n++) {
		if (n > 1 && !append_number(text__append(end, stop, "."), stop, n))
			return false;
		err = memory__make(path, &output.settings, output.size_bytes);
	}
	if (err) {
		warn(path, err == -EACCES || err == -EPERM || err == -EROFS ? ": permission denied"
			   : err == -ENOENT				    ? ": no such directory"
			   : err == -EEXIST ? ": too many files have this name"
			   : err == -ENOSPC
				   ? ": less than 64 MiB or 1 % of its file system are free"
			   : err == -EFAULT || err == -EFBIG ? ": no room, or a limit of file sizes"
							     : ": the file cannot be made");
		return false;
	}
	/* In a forked child, descriptor 2 may be a file of the target's; its parent's file says what it
	 * lacks. */
	output.warns = false;
	return add_origin(memory__header());
}
