// SPDX-License-Identifier: GPL-3.0-or-later
/* Frames of Python: each has an id, which its names decide, and all are in one module of the profile. */
#include "collector_internal.h"

#include <errno.h>
#include <string.h>

#include "profile.h"
#include "text.h"

/* The name of a frame that stands for frames that could not be read. */
#define MISSING "[Python frames missing]"

static int name_frame(struct profile *profile, __u32 frame, const char *name, const char *file,
		      __u32 line)
{
	struct profile_line named = { .line = line };
	int err = profile__add_function(profile, name, name, name, &named.function);

	if (!err && *file)
		err = profile__add_file(profile, file, &named.file);
	return err ? err : profile__set_frame_lines(profile, frame, &named, 1);
}

int collector__add_python_frame(struct collector *collector, __u64 id, __u32 *frame)
{
	struct profile *profile = collector->profile;
	int err = 0;

	if (!collector->python) {
		err = profile__add_module(profile, PROFILE_PYTHON_MODULE, "", &collector->python);
		if (!err)
			err = profile__set_module_symbols(profile, collector->python,
							  "the interpreter");
	}
	if (!err)
		err = profile__add_frame(profile, collector->python, id, false, frame);
	/* Until its names come, the frame is one of those that are missing. */
	if (!err && !profile->frames[*frame - 1].n_lines)
		err = name_frame(profile, *frame, MISSING, "", 0);
	return err;
}

/* Copies text of a process, without what is unsafe on a terminal. */
static void copy_text(char *out, const char *text, size_t n)
{
	memcpy(out, text, n);
	out[n] = '\0';
	utf8__clean(out);
}

int collector__handle_python(struct collector *collector, const struct ap_python_record *record,
			     size_t size)
{
	char name[AP_PYTHON_NAME_BYTES + 1], file[AP_PYTHON_FILE_BYTES + 1];
	const char *text = (const char *)(record + 1);
	__u32 frame;
	int err;

	if (size < sizeof(*record) || !record->id || record->n_name > AP_PYTHON_NAME_BYTES ||
	    record->n_file > AP_PYTHON_FILE_BYTES ||
	    size < sizeof(*record) + record->n_name + record->n_file)
		return 0;
	copy_text(name, text, record->n_name);
	copy_text(file, text + record->n_name, record->n_file);
	err = collector__add_python_frame(collector, record->id, &frame);
	return err ? err : name_frame(collector->profile, frame, name, file, record->line);
}
