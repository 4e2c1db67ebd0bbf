// SPDX-License-Identifier: GPL-3.0-or-later
#include "page_data.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "json_text.h"
#include "text.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are written as they are");

static const char *const types[] = {
	[PAGE_U8] = "u8",   [PAGE_U16] = "u16",		[PAGE_U32] = "u32",
	[PAGE_F64] = "f64", [PAGE_STRINGS] = "strings", [PAGE_JSON] = "json",
};

/* Begins a block. Returns 0, or -ENOMEM; then it must not be closed. @name must be a literal. */
static int page_block__open(struct page_block *block, const char *name, enum page_type type,
			    FILE *to)
{
	block->to = to;
	block->n_out = 0;
	block->stream = (z_stream){ 0 };
	if (deflateInit(&block->stream, Z_DEFAULT_COMPRESSION) != Z_OK)
		return -ENOMEM;
	fprintf(to, "<script type=\"application/octet-stream\" data-name=\"%s\" data-type=\"%s\">",
		name, types[type]);
	return 0;
}

static void print_base64(struct page_block *block)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *at = block->out;
	char text[4 * 1024];
	size_t n = 0;

	for (size_t left = block->n_out; left; left -= left < 3 ? left : 3, at += 3) {
		unsigned int word =
			at[0] << 16 | (left > 1 ? at[1] << 8 : 0) | (left > 2 ? at[2] : 0);

		text[n++] = digits[word >> 18];
		text[n++] = digits[word >> 12 & 63];
		text[n++] = left > 1 ? digits[word >> 6 & 63] : '=';
		text[n++] = left > 2 ? digits[word & 63] : '=';
		if (n == sizeof(text) || left <= 3) {
			fwrite(text, 1, n, block->to);
			n = 0;
		}
	}
	block->n_out = 0;
}

static void deflate_some(struct page_block *block, int flush)
{
	int done;

	do {
		block->stream.next_out = block->out + block->n_out;
		block->stream.avail_out = sizeof(block->out) - block->n_out;
		done = deflate(&block->stream, flush);
		block->n_out = sizeof(block->out) - block->stream.avail_out;
		if (block->n_out == sizeof(block->out))
			print_base64(block);
	} while (flush == Z_FINISH ? done == Z_OK : block->stream.avail_in);
}

/* Adds @size bytes: whole elements, little-endian. */
static void page_block__add(struct page_block *block, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	while (size) {
		size_t n = size < 1U << 30 ? size : 1U << 30;

		block->stream.next_in = (unsigned char *)at;
		block->stream.avail_in = n;
		deflate_some(block, Z_NO_FLUSH);
		at += n;
		size -= n;
	}
}

static void page_block__close(struct page_block *block)
{
	deflate_some(block, Z_FINISH);
	print_base64(block);
	deflateEnd(&block->stream);
	fputs("</script>\n", block->to);
}

static double u32_at(const void *values, size_t i)
{
	return ((const __u32 *)values)[i];
}

static double f64_at(const void *values, size_t i)
{
	return ((const double *)values)[i];
}

static enum page_type narrowest(double (*at)(const void *values, size_t i), const void *values,
				size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++) {
		double value = at(values, i);

		if (!(value >= 0 && value <= UINT32_MAX) || value != (__u32)value)
			return PAGE_F64;
		if (value > most)
			most = value;
	}
	return most <= UINT8_MAX ? PAGE_U8 : most <= UINT16_MAX ? PAGE_U16 : PAGE_U32;
}

static size_t encode(enum page_type type, double value, unsigned char *to)
{
	const __u32 whole = type == PAGE_F64 ? 0 : value;
	const __u16 half = whole;

	switch (type) {
	case PAGE_U8:
		*to = whole;
		return 1;
	case PAGE_U16:
		memcpy(to, &half, sizeof(half));
		return sizeof(half);
	case PAGE_U32:
		memcpy(to, &whole, sizeof(whole));
		return sizeof(whole);
	default:
		memcpy(to, &value, sizeof(value));
		return sizeof(value);
	}
}

static int write_numbers(const char *name, double (*at)(const void *values, size_t i),
			 const void *values, size_t n, FILE *to)
{
	_cleanup_(free_ptr) struct page_block *block = malloc(sizeof(*block));
	enum page_type type = narrowest(at, values, n);
	int err = block ? page_block__open(block, name, type, to) : -ENOMEM;
	unsigned char part[4096];
	size_t size = 0;

	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		size += encode(type, at(values, i), part + size);
		if (size == sizeof(part) || i == n - 1) {
			page_block__add(block, part, size);
			size = 0;
		}
	}
	page_block__close(block);
	return 0;
}

int page_data__u32(const char *name, const __u32 *values, size_t n, FILE *to)
{
	return write_numbers(name, u32_at, values, n, to);
}

int page_data__f64(const char *name, const double *values, size_t n, FILE *to)
{
	return write_numbers(name, f64_at, values, n, to);
}

int page_data__strings(const char *name, const char *const *texts, size_t n, FILE *to)
{
	_cleanup_(free_ptr) struct page_block *block = malloc(sizeof(*block));
	int err = block ? page_block__open(block, name, PAGE_STRINGS, to) : -ENOMEM;

	if (err)
		return err;
	for (size_t i = 0; i < n && !err; i++) {
		_cleanup_(free_ptr) char *text = utf8__from_bytes(texts[i]);

		if (text)
			page_block__add(block, text, strlen(text) + 1);
		else
			err = -ENOMEM;
	}
	page_block__close(block);
	return err;
}

int page_data__json(const char *name, json_object *value, FILE *to)
{
	_cleanup_(free_ptr) struct page_block *block = malloc(sizeof(*block));
	_cleanup_(free_ptr) char *text = NULL;
	size_t size;
	int err = value && block ? json_text__make(value, false, &text, &size) : -ENOMEM;

	json_object_put(value);
	if (!err)
		err = page_block__open(block, name, PAGE_JSON, to);
	if (err)
		return err;
	page_block__add(block, text, size);
	page_block__close(block);
	return 0;
}
