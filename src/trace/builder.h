/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a trace. A builder takes strings, tracks, input lists, events and records, in any order. At the end it sorts the rows
 * and builds the tree with its self times, folds and links:
 *
 *     struct ops_builder *b = ops_builder_new();           // NULL if out of memory
 *     ops_builder_expect(b, events, memory_records);        // optional: columns are allocated once at the right size
 *     uint32_t name = ops_builder_string(b, "aten::mm", 8);
 *     uint32_t track = ops_builder_track(b, &(struct ops_track){.pid = 1, .tid = 1, .number = 1});
 *     ops_builder_event(b, &(struct ops_new_event){OPS_NEW_EVENT, .start_ns = 10, .end_ns = 20, .name = name, .track = track});
 *     ops_builder_info(b, &info);
 *     code = ops_builder_finish(b, &trace, error);          // always frees the builder
 *
 * Forward and backward operators are linked by their sequence numbers, unless the links are added explicitly.
 *
 * Running out of memory is sticky: later calls do nothing, and ops_builder_finish returns the error. Rows that are added nearly
 * in order (a merge of threads, or one thread after another) are sorted in linear time.
 */
#ifndef OPS_TRACE_BUILDER_H
#define OPS_TRACE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

struct ops_builder;

/* A row to add. Everything else is computed. */
struct ops_new_event {
	int64_t start_ns;
	int64_t end_ns; /* >= start_ns */
	int64_t sequence_nr;
	uint64_t id;       /* the id in the file; 0: none */
	uint32_t name;     /* string id */
	uint32_t track;
	uint32_t inputs;   /* input list id or OPS_NONE */
	uint32_t forward_thread;
	uint32_t overload; /* string id; 0 (the empty string): none */
	uint32_t end_track; /* OPS_NONE: the track where it started; another track makes the event asynchronous */
	uint32_t args;     /* string id or OPS_NONE */
	uint32_t storages; /* string id or OPS_NONE */
	int64_t correlation; /* -1: none. It and the following as in struct ops_events; OPS_NONE: none */
	uint32_t category;
	uint32_t call_stack;
	uint32_t function;
	uint32_t call_line; /* 0: none */
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
/* Default values of a row, as the first initialiser; values that differ are assigned after it. */
#define OPS_NEW_EVENT                                                                              \
	.sequence_nr = -1, .inputs = OPS_NONE, .end_track = OPS_NONE, .args = OPS_NONE, .storages = OPS_NONE,   \
	.correlation = -1, .category = OPS_NONE, .call_stack = OPS_NONE, .function = OPS_NONE,                  \
	.python_id = OPS_NONE, .python_parent = OPS_NONE, .python_module = OPS_NONE, .module = OPS_NONE, .extra = OPS_NONE,         \
	.index = OPS_NONE

/* One end of a flow in a file. The ends with the same kind, category and id, in order of time, are the points of flows. */
struct ops_new_flow {
	int64_t time_ns;
	uint64_t id;
	uint32_t category; /* string id; OPS_NONE: that of the kind */
	uint32_t track;
	uint32_t row;  /* number, in order of adding, of the event at this end; OPS_NONE: found by track and time */
	uint8_t kind;  /* enum ops_link_kind */
	uint8_t phase; /* enum ops_flow_phase */
};
enum ops_flow_phase { OPS_FLOW_START, OPS_FLOW_STEP, OPS_FLOW_FINISH };

struct ops_builder *ops_builder_new(void);
void ops_builder_free(struct ops_builder *builder); /* discards what was built; NULL is allowed */

/* Reserves memory; called once, before the first row. Not a limit. */
void ops_builder_expect(struct ops_builder *builder, size_t events, size_t memory_records);

/* Returns the id of a string, added if new. "" is 0. Returns OPS_NONE if out of memory. */
uint32_t ops_builder_string(struct ops_builder *builder, const char *bytes, size_t size);
/* Returns the string of an id. */
struct ops_string ops_builder_text(const struct ops_builder *builder, uint32_t id);
/* Returns the id of an input list in the form of opstrobe/inputs.h. Returns OPS_NONE if out of memory or the list is malformed. */
uint32_t ops_builder_inputs(struct ops_builder *builder, const char *bytes, size_t size);
/* Adds a track and returns its index. A thread's `number` may be set later, see ops_builder_number_track. */
uint32_t ops_builder_track(struct ops_builder *builder, const struct ops_track *track);
void ops_builder_number_track(struct ops_builder *builder, uint32_t track, uint32_t number);

/* Returns the index of a function, added if new. Returns OPS_NONE if out of memory. */
uint32_t ops_builder_function(struct ops_builder *builder, const struct ops_function *function);

/* Adds a row. Returns its number in order of adding (for ops_builder_set_sequence), or OPS_NONE if out of memory. */
uint32_t ops_builder_event(struct ops_builder *builder, const struct ops_new_event *event);
/* Changes an added row's sequence number and forward thread. */
void ops_builder_set_sequence(struct ops_builder *builder, uint32_t row, int64_t sequence_nr, uint32_t forward_thread);

/* Changes the end of an added row to `end_ns`, which must not be before its start. */
void ops_builder_set_end(struct ops_builder *builder, uint32_t row, int64_t end_ns, uint16_t flags);
/* Moves an added row to another track, as an asynchronous event. */
void ops_builder_set_apart(struct ops_builder *builder, uint32_t row, uint32_t track);
/* Returns the further arguments of an added row, empty if it has none, and changes them to a string id. */
struct ops_string ops_builder_extra(const struct ops_builder *builder, uint32_t row);
void ops_builder_set_extra(struct ops_builder *builder, uint32_t row, uint32_t extra);
/* Adds `offset_ns` to the times of everything added so far. */
void ops_builder_shift(struct ops_builder *builder, int64_t offset_ns);

/* Add a flow between rows, given by their numbers in order of adding (which may be numbers of future rows), or one end of a flow. */
void ops_builder_link(struct ops_builder *builder, const struct ops_link *link);
void ops_builder_flow(struct ops_builder *builder, const struct ops_new_flow *flow);
/* Disables links from sequence numbers: all links from forward to backward operators are added explicitly. */
void ops_builder_links_given(struct ops_builder *builder);

void ops_builder_process(struct ops_builder *builder, const struct ops_process *process);
/* Adds `count` diagnostics of a kind; the first call sets the byte. */
void ops_builder_notes(struct ops_builder *builder, enum ops_note_kind kind, uint64_t count, uint64_t byte);
uint64_t ops_builder_note_count(const struct ops_builder *builder); /* of all kinds together */

/* Add a module, after its parent, or an additional path of a module, in order of modules. */
void ops_builder_module(struct ops_builder *builder, const struct ops_module *module);
void ops_builder_module_alias(struct ops_builder *builder, const struct ops_module_alias *alias);

void ops_builder_memory(struct ops_builder *builder, const struct ops_memory_record *record);
/* Gives the last added memory record a call stack, a string id. */
void ops_builder_memory_stack(struct ops_builder *builder, uint32_t stack);
void ops_builder_role(struct ops_builder *builder, const struct ops_role_record *record);
void ops_builder_counter(struct ops_builder *builder, const struct ops_counter_record *record);
/* Copies the texts; NULL is "". */
void ops_builder_info(struct ops_builder *builder, const struct ops_trace_info *info);

/* Returns whether memory has run out, so that a reader can stop early. */
bool ops_builder_failed(const struct ops_builder *builder);

/* Allows more to be added after memory ran out. What could not be added is missing; the rest is complete. */
void ops_builder_retry(struct ops_builder *builder);

/* The amount of everything in a builder to which device activity adds. */
struct ops_builder_mark {
	size_t events;
	size_t tracks;
	size_t counters;
	size_t processes;
	size_t links;
};

struct ops_builder_mark ops_builder_mark(const struct ops_builder *builder);
/* Removes all events, tracks, counters, processes and links that were added after the mark, and calls ops_builder_retry(). Must
 * not be called after ops_builder_try_finish(). */
void ops_builder_rewind(struct ops_builder *builder, const struct ops_builder_mark *mark);

/* Builds the trace, and frees the builder even on failure. The only error is OPS_NO_MEMORY. */
enum ops_code ops_builder_finish(struct ops_builder *take_builder, struct ops_trace **ret_trace, struct ops_error *error);
/* Like ops_builder_finish(), but on failure the builder is kept and this may be called again. On success `*builder` is NULL. For
 * a builder without flows and stacks of memory records. */
enum ops_code ops_builder_try_finish(struct ops_builder **builder, struct ops_trace **ret_trace, struct ops_error *error);

#endif
