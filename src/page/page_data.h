/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Writes the data of a page: blocks that web/data.js reads by name. A block is deflated and in
 * base64, so nothing in it can end the block. page__end() reports errors of the FILE.
 */
#ifndef ALLOCPROF_PAGE_DATA_H
#define ALLOCPROF_PAGE_DATA_H

#include <json-c/json.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

/* The type of a block, as a script gets it: */
enum page_type {
	PAGE_U8,      /* Uint8Array */
	PAGE_U16,     /* Uint16Array */
	PAGE_U32,     /* Uint32Array */
	PAGE_F64,     /* Float64Array: exact up to 2^53 */
	PAGE_STRINGS, /* list of strings, each of which ends with '\0' */
	PAGE_JSON,    /* any value */
};

/* A block that is written piece by piece. */
struct page_block {
	FILE *to;
	z_stream stream;
	unsigned char out
		/* A multiple of 3, except for the last piece, so that there is no padding in
		 * between. */
		[49152];
	size_t n_out;
};

/* Write a whole block of numbers, in the narrowest type that has all of them exactly. Return 0 or
 * -ENOMEM. */
int page_data__u32(const char *name, const __u32 *values, size_t n, FILE *to);
int page_data__f64(const char *name, const double *values, size_t n, FILE *to);
/* Writes a whole block. Bytes that are not UTF-8 are read as Latin-1. Returns 0 or -ENOMEM. */
int page_data__strings(const char *name, const char *const *texts, size_t n, FILE *to);
/* Writes @value, which it takes over. NULL means that there was no memory for it. */
int page_data__json(const char *name, json_object *value, FILE *to);

#endif
