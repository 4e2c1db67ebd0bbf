/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The engine that reads what processes have kept in files of their own (own_file.h): its results are those of the
 * engine preload, and there is nothing to launch or to attach to. */
#ifndef ALLOCPROF_SALVAGE_ENGINE_H
#define ALLOCPROF_SALVAGE_ENGINE_H

#include "engine.h"

struct own_files;

/* Opens the engine for @files, which stay the caller's and must outlive it. Of the operations only finish(),
 * results(), add_modules(), name_frames(), list_without_table(), file() and close() may be called. */
int salvage_engine__open(const struct own_files *files, const struct engine_options *options,
			 struct engine **out, struct error *error);

#endif
