/* SPDX-License-Identifier: Apache-2.0
 *
 * How a trace is made. A builder takes strings, tracks, input lists, events and records, in any order, and at the end
 * sorts the rows, builds the tree with its self times, folds and links:
 *
 *     struct ops_builder *b = ops_builder_new();           // NULL when memory is out
 *     ops_builder_expect(b, events, memory_records);        // optional: columns are allocated once at the right size
 *     uint32_t name = ops_builder_string(b, "aten::mm", 8);
 *     uint32_t track = ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 1, .number = 1});
 *     ops_builder_event(b, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 10, .end_ns = 20, .name = name, .track = track});
 *     ops_builder_info(b, &info);
 *     code = ops_builder_finish(b, &trace, error);          // takes the builder in every case
 *
 * Running out of memory is sticky: what follows does nothing, and ops_builder_finish tells. Rows that come nearly in
 * order (a merge of threads, or one thread after the other) are sorted in linear time.
 */
#ifndef OPS_TRACE_BUILDER_H
#define OPS_TRACE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

struct ops_builder;

/* One row to be. Everything else is computed. */
struct ops_new_event {
	int64_t start_ns;
	int64_t end_ns; /* >= start_ns */
	int64_t sequence_nr;
	uint64_t id;       /* the file's own id; 0 none */
	uint32_t name;     /* string id */
	uint32_t track;
	uint32_t inputs;   /* input list id or OPS_NONE */
	uint32_t forward_thread;
	uint32_t overload; /* string id, 0 (the empty string) for none */
	uint32_t end_track; /* OPS_NONE: where it started. Elsewhere makes the event asynchronous */
	uint32_t args;     /* string id or OPS_NONE */
	uint16_t flags;    /* OPS_EVENT_ASYNC, OPS_EVENT_UNFINISHED */
	uint8_t kind;
	uint8_t scope;
};
/* What a row has when nothing is said, as first initialiser; who has something to say assigns these four afterwards. */
#define OPS_NEW_EVENT .sequence_nr = -1, .inputs = OPS_NONE, .end_track = OPS_NONE, .args = OPS_NONE

struct ops_builder *ops_builder_new(void);
void ops_builder_free(struct ops_builder *builder); /* gives up; NULL is allowed */

/* Makes room, once and before the first row. Not a limit. */
void ops_builder_expect(struct ops_builder *builder, size_t events, size_t memory_records);

/* The id of a string, added if new. "" is 0. OPS_NONE when memory is out. */
uint32_t ops_builder_string(struct ops_builder *builder, const char *bytes, size_t size);
/* The id of an input list in the form of opstrobe/inputs.h. OPS_NONE when memory is out or the list is malformed. */
uint32_t ops_builder_inputs(struct ops_builder *builder, const char *bytes, size_t size);
/* Adds a track and gives its index. A thread's `number` may be set later, see ops_builder_number_track. */
uint32_t ops_builder_track(struct ops_builder *builder, const struct ops_track *track);
void ops_builder_number_track(struct ops_builder *builder, uint32_t track, uint32_t number);

/* Adds a row; gives its place in order of adding (for ops_builder_set_sequence), OPS_NONE when memory is out. */
uint32_t ops_builder_event(struct ops_builder *builder, const struct ops_new_event *event);
/* Changes an added row's sequence number and forward thread. */
void ops_builder_set_sequence(struct ops_builder *builder, uint32_t row, int64_t sequence_nr, uint32_t forward_thread);

void ops_builder_memory(struct ops_builder *builder, const struct ops_memory_record *record);
void ops_builder_counter(struct ops_builder *builder, const struct ops_counter_record *record);
/* Copies the texts; NULL stands for "". */
void ops_builder_info(struct ops_builder *builder, const struct ops_trace_info *info);

/* Whether memory has run out, so that a reader can stop early. */
bool ops_builder_failed(const struct ops_builder *builder);

/* Makes the trace and frees the builder in every case. Only OPS_NO_MEMORY can go wrong. */
enum ops_code ops_builder_finish(struct ops_builder *take_builder, struct ops_trace **ret_trace, struct ops_error *error);

#endif
