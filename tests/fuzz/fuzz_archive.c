// SPDX-License-Identifier: GPL-3.0-or-later
/* Archives of modules whose paths a data file has made up: their members have relative names that lead nowhere else. */
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "fuzz.h"
#include "profile.h"
#include "profile_archive.h"

static char directory[] = "/tmp/allocprof-fuzz.XXXXXX";

static void make_directory(void)
{
	char path[64];
	int fd;

	FUZZ_CHECK(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a", directory);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	FUZZ_CHECK(fd >= 0 && write(fd, "a", 1) == 1);
	close(fd);
}

static void note_missing(const char *path, const char *why, void *context)
{
	FUZZ_CHECK(*why);
}

static void check_members(const char *path)
{
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;

	archive_read_support_filter_gzip(archive);
	archive_read_support_format_tar(archive);
	FUZZ_CHECK(archive_read_open_filename(archive, path, 65536) == ARCHIVE_OK);
	while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
		const char *name = archive_entry_pathname(entry);

		FUZZ_CHECK(name && *name && *name != '/');
		FUZZ_CHECK(strcmp(name, "..") && strncmp(name, "../", 3) && !strstr(name, "/../"));
	}
	archive_read_free(archive);
}

/* A line is a path: what comes before the first letter, our directory, and the rest. */
static void add_module(struct profile *profile, const char *line)
{
	size_t slashes = strspn(line, "/.");
	char *path;
	__u32 id;

	FUZZ_CHECK(asprintf(&path, "%.*s%s/%s", (int)slashes, line, directory + 1, line + slashes) >
		   0);
	profile__add_module(profile, path, "", &id);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct profile_archive_options options = { .missing = note_missing };
	struct profile *profile = profile__new();
	struct profile_archive_result result;
	char *text = fuzz__text(data, size), path[64], *next = text;
	struct error error = { "" };

	if (access(directory, F_OK))
		make_directory();
	snprintf(path, sizeof(path), "%s/tar.gz", directory);
	while (next && *next)
		add_module(profile, strsep(&next, "\n"));
	if (!profile__archive(profile, &options, path, &result, &error))
		check_members(path);
	else
		FUZZ_CHECK(error.text[0]);
	profile__free(profile);
	free(text);
	return 0;
}
