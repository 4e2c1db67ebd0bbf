/* SPDX-License-Identifier: GPL-3.0-or-later */
/* V8 puts a mark before a function's name that says which of its compilers made the code: one function is "JS:~f", "JS:^f",
 * "JS:+f" and "JS:*f" by turns (v8/src/objects/code-kind.cc, CodeKindToMarker()). */
#ifndef ALLOCPROF_JS_TIER_H
#define ALLOCPROF_JS_TIER_H

/* @name without the mark, to be freed; NULL if it has none, or on ENOMEM. */
char *js_tier__remove(const char *name);

#endif
