// SPDX-License-Identifier: GPL-3.0-or-later
#include "json.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "cleanup.h"
#include "json_text.h"
#include "profile.h"
#include "text.h"

json_object *json__string(const char *text)
{
	_cleanup_(free_ptr) char *utf8 = NULL;

	if (utf8__is_valid(text))
		return json_object_new_string(text);
	utf8 = utf8__from_bytes(text);
	return utf8 ? json_object_new_string(utf8) : NULL;
}

json_object *json__seconds(double seconds)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", seconds);
	return json_object_new_double_s(seconds, text);
}

int json__write(json_object *root, FILE *to)
{
	_cleanup_(free_ptr) char *text = NULL;
	int err = json_text__make(root, true, &text, NULL);

	if (err)
		return err;
	errno = 0;
	if (fprintf(to, "%s\n", text) < 0 || fflush(to))
		return errno ? -errno : -EIO;
	return 0;
}

int json__print(json_object *value, FILE *to)
{
	_cleanup_(free_ptr) char *text = NULL;
	int err = json_text__make(value, false, &text, NULL);

	if (!err)
		fputs(text, to);
	return err;
}

int json__print_string(const char *text, FILE *to)
{
	json_object *string = json__string(text);
	int err = string ? json__print(string, to) : -ENOMEM;

	json_object_put(string);
	return err;
}

int json__begin(json_object *root, FILE *to)
{
	errno = 0;
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	int err = json_text__make(root, true, &text, &size);

	/* The closing bracket and the newline before it are left out. */
	if (!err)
		fprintf(to, "%.*s", (int)size - 2, text);
	return err;
}

int json__list(const char *key, json_object *(*next)(void *context), void *context, FILE *to)
{
	json_object *item;

	fprintf(to, ",\n  \"%s\": [", key);
	for (bool first = true; !ferror(to) && (item = next(context)); first = false) {
		int err;

		fputs(first ? "\n    " : ",\n    ", to);
		err = json__print(item, to);
		json_object_put(item);
		if (err)
			return err;
	}
	fputs("\n  ]", to);
	return 0;
}

int json__end(FILE *to)
{
	fputs("\n}\n", to);
	if (fflush(to) || ferror(to))
		return errno ? -errno : -EIO;
	return 0;
}

json_object *json__meta(const struct profile *profile, const char *key)
{
	const char *value = profile__meta(profile, key);

	return value ? json__string(value) : NULL;
}

json_object *json__ledger(const struct profile *profile)
{
	json_object *ledger = json_object_new_object();

	for (size_t i = 0; i < profile->n_ledger; i++)
		json__add(ledger, profile->ledger[i].name, json__count(profile->ledger[i].value));
	return ledger;
}

json_object *json__rss_samples(const struct profile_rss_sample *samples, size_t n)
{
	json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		const struct profile_rss_sample *sample = &samples[i];
		json_object *object = json_object_new_object();

		json__add(object, "time_ns", json__count(sample->time_ns));
		for (enum rss_kind kind = 0; kind < RSS_KINDS; kind++)
			if (sample->bytes[kind])
				json__add(object, rss_kind__name(kind),
					  json__count(sample->bytes[kind]));
		json__add(object, "torn_ms", json__count(sample->torn_ms));
		json_object_array_add(array, object);
	}
	return array;
}
