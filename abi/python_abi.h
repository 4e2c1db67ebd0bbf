/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User space tells the BPF programs where CPython's interpreters have their frames, and they send the code objects of these. */
#ifndef ALLOCPROF_PYTHON_ABI_H
#define ALLOCPROF_PYTHON_ABI_H

#include "abi.h"

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

/* How much of a frame and of a code object the programs read: all fields of struct python_layout are in that, and those of 8 bytes
 * are aligned. */
#define AP_PYTHON_FRAME_BYTES 80
#define AP_PYTHON_CODE_BYTES  160

/* An interpreter, by the module that it is in. */
struct ap_python {
	__u64 loop, loop_bytes; /* file offset and size of _PyEval_EvalFrameDefault */
	/* How far behind it in memory are _PyRuntime and PyCode_Type. */
	__u64 runtime, code_type;
	struct python_layout layout;
};

/* Files with an interpreter that one recording may meet. */
#define AP_MAX_PYTHONS 64

/*
 * With a stack of the ring buffer the frames of Python follow those of the stack, innermost first: frames with AP_FRAME_PYTHON, whose
 * @offset is the key of a struct ap_code_record. Behind those that one call of the interpreter's loop has, there is one with an @offset of
 * 0, whose @module is the number of that call's frame in the stack, from 0.
 */

#define AP_CODE_NAME_BYTES  256
#define AP_CODE_FILE_BYTES  512
#define AP_CODE_LINES_BYTES 6144

/* A code object and a position in it. @n_lines bytes of its table of locations follow, if that has no more than AP_CODE_LINES_BYTES. */
struct ap_code_record {
	__u32 type;	  /* AP_RECORD_CODE */
	__u32 position;	  /* offset of the next instruction, plus 2; 0: there is none yet */
	__u64 key;	  /* of both, in one process */
	__u32 first_line; /* of the def */
	__u32 n_lines;	  /* bytes that the table has */
	/* Strings as the interpreter has them: bytes for each character, and how many bytes there are of them here. */
	__u32 name_kind, n_name;
	__u32 file_kind, n_file;
	char name[AP_CODE_NAME_BYTES];
	char file[AP_CODE_FILE_BYTES];
};

#endif
