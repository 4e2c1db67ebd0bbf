// SPDX-License-Identifier: GPL-3.0-or-later
#include "json_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"

struct printer {
	FILE *to;
	bool indented;
	int depth;
	bool out_of_memory;
};

static void print_value(struct printer *printer, json_object *value);

/* Prints text in which json-c has escaped the characters below a space. Terminals may act on DEL
 * and on U+0080 to U+009F, too, so these are escaped here; they occur in strings only. */
static void print_escaped(const char *text, FILE *to)
{
	const char *printed = text;

	for (const char *c = text; *c; c++) {
		const unsigned char byte = *c, next = c[1];
		const bool is_c1 = byte == 0xc2 && next >= 0x80 && next <= 0x9f;

		if (byte != 0x7f && !is_c1)
			continue;
		fwrite(printed, 1, c - printed, to);
		fprintf(to, "\\u%04x", is_c1 ? next : byte);
		c += is_c1;
		printed = c + 1;
	}
	fputs(printed, to);
}

/* All versions of json-c print scalars the same way. */
static void print_scalar(struct printer *printer, json_object *value)
{
	const char *text =
		value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE)
		      : "null";

	if (text)
		print_escaped(text, printer->to);
	else
		printer->out_of_memory = true;
}

static void begin_line(struct printer *printer)
{
	if (printer->indented)
		fprintf(printer->to, "\n%*s", 2 * printer->depth, "");
}

static void begin_member(struct printer *printer, bool first)
{
	if (!first)
		fputc(',', printer->to);
	begin_line(printer);
}

static void print_array(struct printer *printer, json_object *array)
{
	size_t n = json_object_array_length(array);

	fputc('[', printer->to);
	printer->depth++;
	for (size_t i = 0; i < n; i++) {
		begin_member(printer, i == 0);
		print_value(printer, json_object_array_get_idx(array, i));
	}
	printer->depth--;
	if (n)
		begin_line(printer);
	fputc(']', printer->to);
}

static void print_key(struct printer *printer, const char *key)
{
	json_object *name = json_object_new_string(key);

	if (name)
		print_scalar(printer, name);
	else
		printer->out_of_memory = true;
	json_object_put(name);
	fputs(printer->indented ? ": " : ":", printer->to);
}

static void print_object(struct printer *printer, json_object *object)
{
	bool first = true;

	fputc('{', printer->to);
	printer->depth++;
	json_object_object_foreach(object, key, value)
	{
		begin_member(printer, first);
		first = false;
		print_key(printer, key);
		print_value(printer, value);
	}
	printer->depth--;
	if (!first)
		begin_line(printer);
	fputc('}', printer->to);
}

static void print_value(struct printer *printer, json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_array:
		print_array(printer, value);
		break;
	case json_type_object:
		print_object(printer, value);
		break;
	default:
		print_scalar(printer, value);
		break;
	}
}

int json_text__make(json_object *value, bool indented, char **text, size_t *size)
{
	_cleanup_(free_ptr) char *made = NULL;
	size_t made_size;
	struct printer printer = { .to = open_memstream(&made, &made_size), .indented = indented };

	if (!printer.to)
		return -ENOMEM;
	print_value(&printer, value);
	/* A memory stream fails only on ENOMEM. */
	if (ferror(printer.to))
		printer.out_of_memory = true;
	if (fclose(printer.to) || printer.out_of_memory)
		return -ENOMEM;
	*text = made;
	made = NULL;
	if (size)
		*size = made_size;
	return 0;
}
