// SPDX-License-Identifier: GPL-3.0-or-later
#include "export_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "error.h"
#include "event_log.h"
#include "json.h"
#include "path.h"
#include "profile.h"

/* How many bytes of texts of stacks and sites are kept: most events have a few of them. */
#define MOST_KEPT_BYTES (256 << 20)

static const char *const backtraces[BACKTRACES] = {
	[BACKTRACE_NONE] = "none",
	[BACKTRACE_ADDR] = "addr",
	[BACKTRACE_NAME] = "name",
	[BACKTRACE_FULL] = "full",
};

const char *backtrace__name(enum backtrace backtrace)
{
	return backtraces[backtrace];
}

int backtrace__by_name(const char *name)
{
	for (int i = 0; i < BACKTRACES; i++)
		if (!strcmp(name, backtraces[i]))
			return i;
	return -ENOENT;
}

static const char *const kinds[AP_EVENT_KINDS] = {
	[AP_EVENT_ALLOC] = "alloc",	    [AP_EVENT_FREE] = "free",
	[EVENT_LOG_REALLOC] = "realloc",    [AP_EVENT_UNSEEN] = "unseen",
	[AP_EVENT_FAILED] = "failed",	    [AP_EVENT_RELEASED] = "released",
	[AP_EVENT_UNTRACKED] = "untracked", [AP_EVENT_UNFINISHED] = "unfinished",
	[AP_EVENT_NOOP] = "noop",
};

static const char *const starts[] = {
	[EVENT_LOG_SEEN] = "start",
	[EVENT_LOG_FORKED] = "fork",
	[EVENT_LOG_EXECED] = "exec",
};

struct kept {
	char *text; /* NULL: the text has not been made yet */
};

struct events_writer {
	struct event_log_reader *log;
	const struct event_log_reader *known;
	const struct profile *names;
	__u32 n_named; /* number of the log's first stacks that @names has under the same ids */
	enum backtrace backtrace;
	FILE *to;
	struct kept *sites; /* sites by id - 1 */
	size_t n_sites;
	size_t kept_bytes;
};

static void release(struct events_writer *writer)
{
	for (size_t i = 0; i < writer->n_sites; i++)
		free(writer->sites[i].text);
	free(writer->sites);
}

/* Returns "libfoo.so.1+0x1234", or the address if no file is known; in brackets if it stands for a
 * name. */
static json_object *location_text(const char *module, __u64 offset, bool in_brackets)
{
	_cleanup_(free_ptr) char *text = NULL;
	int size;

	if (!module && in_brackets)
		return json_object_new_string("[unknown]");
	if (!module)
		size = asprintf(&text, "0x%llx", offset);
	else
		size = asprintf(&text, "%s%s+0x%llx%s", in_brackets ? "[" : "", path__name(module),
				offset, in_brackets ? "]" : "");
	if (size < 0) {
		text = NULL;
		return NULL;
	}
	return json__string(text);
}

static json_object *full_frame(const char *module, __u64 offset)
{
	json_object *object = json_object_new_object();
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", offset);
	json__add(object, "module", module ? json__string(module) : NULL);
	json__add(object, "offset", json_object_new_string(text));
	return object;
}

/* Adds the functions of @frame, beginning with the innermost inlined one. */
static void add_named(const struct events_writer *writer, const struct profile_frame *frame,
		      json_object *frames)
{
	const struct profile *names = writer->names;
	const char *module = frame->module ? names->modules[frame->module - 1].path : NULL;
	bool full = writer->backtrace == BACKTRACE_FULL;

	if (!frame->n_lines)
		json_object_array_add(frames, full ? full_frame(module, frame->offset)
						   : location_text(module, frame->offset, true));
	for (__u32 i = 0; i < frame->n_lines; i++) {
		const struct profile_line *line = &frame->lines[i];
		json_object *name = json__string(names->functions[line->function - 1].name), *one;

		if (!full) {
			json_object_array_add(frames, name);
			continue;
		}
		one = full_frame(module, frame->offset);
		json__add(one, "function", name);
		json__add(one, "file",
			  line->file ? json__string(names->files[line->file - 1].path) : NULL);
		json__add(one, "line", line->line ? json__count(line->line) : NULL);
		json__add(one, "inlined", json_object_new_boolean(line->inlined));
		json_object_array_add(frames, one);
	}
}

static void add_logged(const struct events_writer *writer, const struct event_log_reader *known,
		       __u32 id, json_object *frames)
{
	const struct event_log_frame *frame = event_log_reader__frame(known, id);
	const char *module = event_log_reader__module(known, frame->module);

	json_object_array_add(frames, writer->backtrace == BACKTRACE_FULL
					      ? full_frame(module, frame->offset)
					      : location_text(module, frame->offset,
							      writer->backtrace == BACKTRACE_NAME));
}

/* Returns the frames of the stack, innermost first. */
static json_object *backtrace_of(const struct events_writer *writer,
				 const struct event_log_reader *known, __u32 id)
{
	json_object *frames = json_object_new_array();
	const struct profile *names = writer->names;
	struct event_log_stack stack;

	if (names && writer->backtrace >= BACKTRACE_NAME && id <= writer->n_named) {
		const struct profile_stack *named = &names->stacks[id - 1];

		for (__u32 i = 0; i < named->n_frames; i++)
			add_named(writer, &names->frames[named->frames[i] - 1], frames);
	} else if (event_log_reader__stack(known, id, &stack)) {
		for (__u32 i = 0; i < stack.n_frames; i++)
			add_logged(writer, known, stack.frames[i], frames);
	}
	return frames;
}

/* A log that is still being written may have got sites, and stacks of them, since it was read. */
static const struct event_log_reader *reader_of_site(const struct events_writer *writer, __u32 id)
{
	const struct event_log_site *site = event_log_reader__site(writer->known, id);

	return site && site->stack ? writer->known : writer->log;
}

/* Returns the members of an event that its site determines, beginning with a comma. The caller
 * frees the text; NULL if there is no memory. */
static char *make_site_text(const struct events_writer *writer, __u32 id)
{
	const struct event_log_reader *known = reader_of_site(writer, id);
	const struct event_log_site *site = event_log_reader__site(known, id);
	json_object *backtrace = NULL;
	char *text = NULL;
	int err;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	fprintf(to, ",\"site\":%u,\"function\":", id);
	err = json__print_string(site->function, to);
	fputs(",\"thread_name\":", to);
	if (!err)
		err = json__print_string(site->thread, to);
	if (site->stack)
		fprintf(to, ",\"stack\":%u", site->stack);
	else
		fputs(",\"stack\":null", to);
	if (writer->backtrace != BACKTRACE_NONE && site->stack) {
		backtrace = backtrace_of(writer, known, site->stack);
		fputs(",\"backtrace\":", to);
		if (!err)
			err = backtrace ? json__print(backtrace, to) : -ENOMEM;
		json_object_put(backtrace);
	}
	if (fclose(to) || err) {
		free(text);
		return NULL;
	}
	return text;
}

static int print_site(struct events_writer *writer, __u32 id)
{
	_cleanup_(free_ptr) char *text = NULL;
	struct kept *kept;

	if (!event_log_reader__site(reader_of_site(writer, id), id))
		return 0;
	if (array__reserve_zeroed(&writer->sites, &writer->n_sites, id, sizeof(*writer->sites)))
		return -ENOMEM;
	kept = &writer->sites[id - 1];
	if (kept->text) {
		fputs(kept->text, writer->to);
		return 0;
	}
	text = make_site_text(writer, id);
	if (!text)
		return -ENOMEM;
	fputs(text, writer->to);
	writer->kept_bytes += strlen(text);
	/* The text is kept only if the site's stack is known, since otherwise it may still become
	 * known. */
	if (writer->kept_bytes < MOST_KEPT_BYTES &&
	    event_log_reader__site(reader_of_site(writer, id), id)->stack) {
		kept->text = text;
		text = NULL;
	}
	return 0;
}

static int write_event(struct events_writer *writer, const struct event_log_event *event)
{
	const struct event_log_process *process =
		event_log_reader__process(writer->log, event->process);
	FILE *to = writer->to;
	int err;

	fputs("{\"id\":", to);
	if (event->id)
		fprintf(to, "%llu", event->id);
	else
		fputs("null", to);
	fprintf(to, ",\"time_ns\":%llu,\"kind\":\"%s\"", event->time_ns, kinds[event->kind]);
	if (event->address || event->kind == AP_EVENT_NOOP)
		fprintf(to, ",\"address\":\"0x%llx\"", event->address);
	else
		fputs(",\"address\":null", to);
	fprintf(to, ",\"size\":%llu", event->size_bytes);
	if (event->kind == EVENT_LOG_REALLOC)
		fprintf(to,
			",\"previous_address\":\"0x%llx\",\"previous_size\":%llu,\"previous_site\":%u",
			event->old_address, event->old_size_bytes, event->old_site);
	fprintf(to, ",\"thread\":%u,\"process\":%u", event->thread, event->process);
	if (process)
		fprintf(to, ",\"pid\":%u", process->pid);
	if (event->temporary)
		fputs(",\"temporary\":true", to);
	if (event->weight != 1)
		fprintf(to, ",\"weight\":%u", event->weight);
	if (event->old_weight > 1)
		fprintf(to, ",\"previous_weight\":%u", event->old_weight);
	err = print_site(writer, event->site);
	fputs("}\n", to);
	return err;
}

static int write_process(struct events_writer *writer, __u32 id,
			 const struct event_log_process *process)
{
	int err;

	fprintf(writer->to,
		"{\"time_ns\":%llu,\"kind\":\"%s\",\"process\":%u,\"pid\":%u,\"parent\":%u,\"space\":%u,"
		"\"ended_space\":%u,\"comm\":",
		process->time_ns, starts[process->start], id, process->pid, process->parent,
		process->space, process->ended_space);
	err = json__print_string(process->comm, writer->to);
	fputs("}\n", writer->to);
	return err;
}

static void write_exit(struct events_writer *writer, const struct event_log_exit *exit)
{
	fprintf(writer->to,
		"{\"time_ns\":%llu,\"kind\":\"exit\",\"process\":%u,\"ended_space\":%u}\n",
		exit->time_ns, exit->process, exit->ended_space);
}

int export_events__write(struct event_log_reader *log, const struct event_log_reader *known,
			 const struct profile *names, enum backtrace backtrace, FILE *to,
			 struct error *error)
{
	_cleanup_(release) struct events_writer writer = {
		.log = log,
		.known = known,
		.names = names,
		.backtrace = backtrace,
		.to = to,
	};
	struct event_log_item item;
	int more = 0, err = 0;

	if (names && profile__meta(names, "events_stacks"))
		writer.n_named = profile__meta_number(names, "events_stacks");
	else if (names)
		writer.n_named = names->n_stacks;
	if (names && writer.n_named > names->n_stacks)
		writer.n_named = names->n_stacks;
	while (!err && !ferror(to) && (more = event_log_reader__next(log, &item, error)) > 0) {
		switch (item.what) {
		case EVENT_LOG_EVENT:
			err = write_event(&writer, &item.event);
			break;
		case EVENT_LOG_PROCESS:
			err = write_process(&writer, item.process_id, &item.process);
			break;
		case EVENT_LOG_EXIT:
			write_exit(&writer, &item.exit);
			break;
		}
	}
	if (err)
		return error__set(error, err, "out of memory");
	return ferror(to) ? 0 : more;
}
