/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns the records of --events into a log, with the ids of the collector's profile. */
#ifndef ALLOCPROF_EVENT_COLLECTOR_H
#define ALLOCPROF_EVENT_COLLECTOR_H

#include <linux/types.h>
#include <stddef.h>

struct collector;
struct error;
struct event_collector;
struct event_log_choice;
struct event_log_results;
struct profile;

/* Creates the log at @path. @choice: which blocks it has; NULL: all. It must outlive the log. Returns 0 or a negative
 * errno with @error set. */
int event_collector__new(const char *path, const struct event_log_choice *choice,
			 struct collector *collector, struct event_collector **out,
			 struct error *error);
/* Accepts NULL. */
void event_collector__free(struct event_collector *events);

/*
 * Handles a record that the collector has handled before, and ignores records of other types. If
 * the log cannot be written, its events count as lost, and the recording goes on.
 */
void event_collector__handle_record(struct event_collector *events, const void *record,
				    size_t size);
/* To be called after records and stack dumps were handled: writes events that are older than a
 * second. */
void event_collector__attend(struct event_collector *events);
/* To be called when no more records come. @n_lost is the number of events that the programs could
 * not send. */
void event_collector__finish(struct event_collector *events, __u64 n_lost);

/* Adds a call that has not returned when the recording ends. @weight: as in struct ap_event_record. */
void event_collector__add_unfinished(struct event_collector *events, __u32 record, __u32 thread,
				     __u64 size_bytes, __u32 weight);

/* To be called after event_collector__finish(). */
void event_collector__results(const struct event_collector *events, struct event_log_results *out);

/* Adds to the profile how many events the log has, and how many it lacks, if there is a log. Fails
 * with -ENOMEM. */
int event_log_results__add(const struct event_log_results *log, struct profile *profile);

#endif
