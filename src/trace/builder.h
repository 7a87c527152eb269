/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a trace. A builder takes strings, tracks, input lists, events and records, in any order. At the end it
 * sorts the rows and builds the tree with its self times, folds and links:
 *
 *     struct ops_builder *b = ops_builder_new();           // NULL when memory is out
 *     ops_builder_expect(b, events, memory_records);        // optional: columns are allocated once at the right size
 *     uint32_t name = ops_builder_string(b, "aten::mm", 8);
 *     uint32_t track = ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 1, .number = 1});
 *     ops_builder_event(b, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 10, .end_ns = 20, .name = name, .track = track});
 *     ops_builder_info(b, &info);
 *     code = ops_builder_finish(b, &trace, error);          // takes the builder in every case
 *
 * Forward and backward operators are linked by their sequence numbers, unless the links are added explicitly.
 *
 * Running out of memory is sticky: later calls do nothing, and ops_builder_finish returns the error. Rows that come nearly in
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
	uint32_t storages; /* string id or OPS_NONE */
	int64_t correlation; /* -1 none; the rest as in struct ops_events, OPS_NONE none */
	uint32_t category;
	uint32_t call_stack;
	uint32_t function;
	uint32_t call_line; /* 0 none */
	uint32_t python_id;
	uint32_t python_parent;
	uint32_t python_module;
	uint32_t module;
	uint32_t extra;
	uint32_t index;
	uint16_t flags;    /* OPS_EVENT_ASYNC, OPS_EVENT_UNFINISHED */
	uint8_t kind;
	uint8_t scope;
};
/* What a row has when nothing is said, as first initialiser; who has something to say assigns these afterwards. */
#define OPS_NEW_EVENT                                                                              \
	.sequence_nr = -1, .inputs = OPS_NONE, .end_track = OPS_NONE, .args = OPS_NONE, .storages = OPS_NONE,   \
	.correlation = -1, .category = OPS_NONE, .call_stack = OPS_NONE, .function = OPS_NONE,                  \
	.python_id = OPS_NONE, .python_parent = OPS_NONE, .python_module = OPS_NONE, .module = OPS_NONE, .extra = OPS_NONE,         \
	.index = OPS_NONE

/* One end of an arrow, as files have them: arrows are the points of one kind, category and id, in order of time. */
struct ops_new_flow {
	int64_t time_ns;
	uint64_t id;
	uint32_t category; /* string id, OPS_NONE: the kind's own */
	uint32_t track;
	uint32_t row;  /* the place, in order of adding, of the event it is on, OPS_NONE: found by track and time */
	uint8_t kind;  /* enum ops_link_kind */
	uint8_t phase; /* enum ops_flow_phase */
};
enum ops_flow_phase { OPS_FLOW_START, OPS_FLOW_STEP, OPS_FLOW_FINISH };

struct ops_builder *ops_builder_new(void);
void ops_builder_free(struct ops_builder *builder); /* gives up; NULL is allowed */

/* Makes room, once and before the first row. Not a limit. */
void ops_builder_expect(struct ops_builder *builder, size_t events, size_t memory_records);

/* The id of a string, added if new. "" is 0. OPS_NONE when memory is out. */
uint32_t ops_builder_string(struct ops_builder *builder, const char *bytes, size_t size);
/* The string of an id. */
struct ops_string ops_builder_text(const struct ops_builder *builder, uint32_t id);
/* The id of an input list in the form of opstrobe/inputs.h. OPS_NONE when memory is out or the list is malformed. */
uint32_t ops_builder_inputs(struct ops_builder *builder, const char *bytes, size_t size);
/* Adds a track and gives its index. A thread's `number` may be set later, see ops_builder_number_track. */
uint32_t ops_builder_track(struct ops_builder *builder, const struct ops_track *track);
void ops_builder_number_track(struct ops_builder *builder, uint32_t track, uint32_t number);

/* The index of a function, added if new. OPS_NONE when memory is out. */
uint32_t ops_builder_function(struct ops_builder *builder, const struct ops_function *function);

/* Adds a row; gives its place in order of adding (for ops_builder_set_sequence), OPS_NONE when memory is out. */
uint32_t ops_builder_event(struct ops_builder *builder, const struct ops_new_event *event);
/* Changes an added row's sequence number and forward thread. */
void ops_builder_set_sequence(struct ops_builder *builder, uint32_t row, int64_t sequence_nr, uint32_t forward_thread);

/* Ends an added row elsewhere than it said: at `end_ns`, not before its start. */
void ops_builder_set_end(struct ops_builder *builder, uint32_t row, int64_t end_ns, uint16_t flags);
/* Moves an added row to another track, as an asynchronous event. */
void ops_builder_set_apart(struct ops_builder *builder, uint32_t row, uint32_t track);
/* Adds `offset_ns` to the times of everything added so far. */
void ops_builder_shift(struct ops_builder *builder, int64_t offset_ns);

/* Adds an arrow between rows by their places in order of adding, the last of which may come later, or an end of one. */
void ops_builder_link(struct ops_builder *builder, const struct ops_link *link);
void ops_builder_flow(struct ops_builder *builder, const struct ops_new_flow *flow);
/* Sequence numbers give no arrows: those from forward to backward operators are given, all of them. */
void ops_builder_links_given(struct ops_builder *builder);

void ops_builder_process(struct ops_builder *builder, const struct ops_process *process);
/* Adds `count` diagnostics of a kind; the first call sets the byte. */
void ops_builder_notes(struct ops_builder *builder, enum ops_note_kind kind, uint64_t count, uint64_t byte);
uint64_t ops_builder_note_count(const struct ops_builder *builder); /* of all kinds together */

/* Adds a module, after its parent; or a further path to one, in order of modules. */
void ops_builder_module(struct ops_builder *builder, const struct ops_module *module);
void ops_builder_module_alias(struct ops_builder *builder, const struct ops_module_alias *alias);

void ops_builder_memory(struct ops_builder *builder, const struct ops_memory_record *record);
/* Gives the memory record that was added last a call stack, a string id. */
void ops_builder_memory_stack(struct ops_builder *builder, uint32_t stack);
void ops_builder_role(struct ops_builder *builder, const struct ops_role_record *record);
void ops_builder_counter(struct ops_builder *builder, const struct ops_counter_record *record);
/* Copies the texts; NULL is "". */
void ops_builder_info(struct ops_builder *builder, const struct ops_trace_info *info);

/* Whether memory has run out, so that a reader can stop early. */
bool ops_builder_failed(const struct ops_builder *builder);

/* Allows more to be added after memory ran out. What could not be added is missing; the rest is complete. */
void ops_builder_retry(struct ops_builder *builder);

/* How much of what device activity adds is in a builder. */
struct ops_builder_mark {
	size_t events;
	size_t tracks;
	size_t counters;
	size_t processes;
	size_t links;
};

struct ops_builder_mark ops_builder_mark(const struct ops_builder *builder);
/* Removes all events, tracks, counters, processes and links that were added after the mark, and calls ops_builder_retry(). Not to
 * be called after ops_builder_try_finish(). */
void ops_builder_rewind(struct ops_builder *builder, const struct ops_builder_mark *mark);

/* Makes the trace and frees the builder in every case. The only error is OPS_NO_MEMORY. */
enum ops_code ops_builder_finish(struct ops_builder *take_builder, struct ops_trace **ret_trace, struct ops_error *error);
/* Like ops_builder_finish(), but on failure the builder stays and this may be called again. On success `*builder` is NULL. For a
 * builder without flows and stacks of memory records. */
enum ops_code ops_builder_try_finish(struct ops_builder **builder, struct ops_trace **ret_trace, struct ops_error *error);

#endif
