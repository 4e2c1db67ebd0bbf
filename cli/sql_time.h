/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ends the process when SQL of the user takes too long. */
#ifndef ALLOCPROF_SQL_TIME_H
#define ALLOCPROF_SQL_TIME_H

#include <linux/types.h>

/* Ends the process with @message and a newline, which must stay valid, a second after SQLite should have stopped: when
 * @cpu_ns of processor time have passed, and one instruction of SQLite's machine goes on, such as a call of instr() on long
 * texts. */
void sql_time__limit(__u64 cpu_ns, const char *message);
void sql_time__unlimit(void);

#endif
