/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Offsets of the fields of an interpreter's structs that python.c reads, by version of CPython. */
#ifndef ALLOCPROF_INSIDE_PYTHON_LAYOUT_H
#define ALLOCPROF_INSIDE_PYTHON_LAYOUT_H

#include <linux/types.h>
#include <stdbool.h>

/* Offsets in bytes. Those of structs that CPython keeps in fixed places are the same in a debug build. */
struct python_layout {
	__u32 version; /* as PY_VERSION_HEX, without the two lowest bytes */
	/* _PyRuntimeState; finalizing: the thread state that ends the interpreter and then frees all others, 0: there is
	 * none; gil_owner: the thread state that holds the GIL, 0: it does not say. */
	__u32 interpreters, finalizing, gil_owner;
	/* Where in it the key is under which a thread keeps its state, give or take some words that releases of the
	 * version do not share. */
	__u32 about_key;
	/* PyInterpreterState, PyThreadState. */
	__u32 next_interpreter, threads, interpreter_id;
	__u32 next_thread, native_id, interpreter;
	/* A thread that may run Python code, so that its state stays: the bits of a 32-bit word that
	 * are set in its state. 0: gil_owner says so. */
	__u32 attached, attached_bit;
	/* The first frame: in the thread state or, if cframe is not 0, in the struct to which a word
	 * of the thread state points. */
	__u32 cframe, frame;
	/* 0: a frame on the C stack stands between those of two calls of the interpreter, and is
	 * told by owner, which is at least that of @entry_owner. Else a byte of the last frame of such a
	 * call is 1, and the struct of @cframe is on the C stack, and has the next one at @next_cframe. */
	__u32 is_entry, next_cframe;
	/* _PyInterpreterFrame */
	__u32 code, previous, instruction, owner, entry_owner;
	/* PyCodeObject */
	__u32 file, name, lines, first_line, bytecode;
	/* A number of 32 bits that no other code object of the interpreter has had; 0: they have none. */
	__u32 number;
	/* Objects: the type; the number of elements; of strings the length, what they are made of, the lowest
	 * bit of their kind in that, and where the characters are if all are ASCII, and if not; of bytes the data. */
	__u32 type, size;
	__u32 length, state, kind_bit, ascii, characters;
	__u32 data;
};

/* Bytes of _PyRuntimeState from the beginning that python_layout__find() is to be given. */
#define PYTHON_OFFSETS_BYTES 576

/* Finds the layout of an interpreter, by the words at the beginning of its _PyRuntimeState and, in versions before
 * 3.13, by @version (PY_VERSION_HEX). Returns false if the version is not known. */
bool python_layout__find(const __u64 words[PYTHON_OFFSETS_BYTES / 8], __u32 version,
			 struct python_layout *out);

#endif
