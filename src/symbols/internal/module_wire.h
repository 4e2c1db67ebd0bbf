/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The job of one module on its way to a worker, and what came of it on its way back. */
#ifndef ALLOCPROF_MODULE_WIRE_H
#define ALLOCPROF_MODULE_WIRE_H

struct module_job;
struct wire_reader;
struct wire_writer;
struct worker_call;

/* All of the job but its descriptor, functions and results. */
void module_wire__put_job(struct wire_writer *writer, const struct module_job *job);

/* Sets the places and the text of @job from a worker's reply. 0, -EPROTO if it is none to this job, or -ENOMEM. */
int module_wire__get_result(struct wire_reader *reader, struct module_job *job);

/* worker_options.serve: runs a job. */
int module_wire__serve(struct worker_call *call);

#endif
