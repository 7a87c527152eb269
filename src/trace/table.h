/* SPDX-License-Identifier: Apache-2.0
 *
 * The internal representation of a trace, for src/trace and for tests that damage one on purpose. All other code reads it through
 * opstrobe/trace.h and builds it with trace/builder.h.
 */
#ifndef OPS_TRACE_TABLE_H
#define OPS_TRACE_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/intern.h"
#include "trace/derived.h"
#include "trace/kinds.h"

/* The list of columns: type, name. Every trace has these, 56 bytes an event. The optional ones below exist only if some event
 * needs them. */
#define OPS_COLUMNS(X)                                                                             \
	X(int64_t, start_ns)                                                                       \
	X(int64_t, end_ns)                                                                         \
	X(int64_t, self_ns)                                                                        \
	X(int64_t, sequence_nr)                                                                    \
	X(uint32_t, name)                                                                          \
	X(uint32_t, track)                                                                         \
	X(uint32_t, parent)                                                                        \
	X(uint32_t, inputs)                                                                        \
	X(uint32_t, forward_thread)                                                                \
	X(uint16_t, flags)                                                                         \
	X(uint8_t, kind)                                                                           \
	X(uint8_t, scope)
/* For these, also the value for "none". For end_track, the builder uses the row's own track instead. */
#define OPS_OPTIONAL_COLUMNS(X)                                                                    \
	X(uint32_t, overload, 0)                                                                   \
	X(uint32_t, end_track, OPS_NONE)                                                           \
	X(uint32_t, args, OPS_NONE)                                                                \
	X(uint32_t, storages, OPS_NONE)                                                            \
	X(uint64_t, id, 0)                                                                         \
	X(int64_t, correlation, -1)                                                                \
	X(uint32_t, category, OPS_NONE)                                                            \
	X(uint32_t, call_stack, OPS_NONE)                                                          \
	X(uint32_t, function, OPS_NONE)                                                            \
	X(uint32_t, call_line, 0)                                                                  \
	X(uint32_t, python_id, OPS_NONE)                                                           \
	X(uint32_t, python_parent, OPS_NONE)                                                       \
	X(uint32_t, python_module, OPS_NONE)                                                       \
	X(uint32_t, module, OPS_NONE)                                                              \
	X(uint32_t, extra, OPS_NONE)                                                               \
	X(uint32_t, index, OPS_NONE)

/* The columns while they are filled; each is a separate allocation of `capacity` items. */
struct ops_columns {
	size_t count;
	size_t capacity;
#define OPS_COLUMN_FIELD(type, name, ...) type *name;
	OPS_COLUMNS(OPS_COLUMN_FIELD)
	OPS_OPTIONAL_COLUMNS(OPS_COLUMN_FIELD)
#undef OPS_COLUMN_FIELD
};

/* Key and value of one metadata entry; each is a NUL-terminated allocation. */
struct ops_metadata_entry {
	char *key;
	char *json;
	size_t key_size;
	size_t json_size;
};

struct ops_trace {
	uint32_t references;
	pthread_mutex_t derived_lock; /* recursive, because an object may be derived from another */
	struct ops_derived_object derived[OPS_DERIVED_COUNT]; /* protected by that lock */
	struct ops_columns columns; /* owned */
	struct ops_events events;   /* read-only view of the columns; set by ops_trace_seal */
	struct ops_intern strings;
	struct ops_intern inputs;
	OPS_ARRAY(struct ops_track) tracks;
	OPS_ARRAY(struct ops_memory_record) memory;
	OPS_ARRAY(uint32_t) memory_stacks; /* one for each of `memory`, or empty */
	OPS_ARRAY(struct ops_role_record) roles;
	OPS_ARRAY(struct ops_counter_record) counters;
	OPS_ARRAY(struct ops_link) links;
	OPS_ARRAY(struct ops_function) functions;
	OPS_ARRAY(struct ops_process) processes;
	OPS_ARRAY(struct ops_module) modules;
	OPS_ARRAY(struct ops_module_alias) aliases;
	OPS_ARRAY(struct ops_note) notes;
	OPS_ARRAY(struct ops_metadata_entry) metadata;
	struct ops_trace_info info; /* its texts are strings of the trace */
	uint32_t *whole_rows;       /* see ops_trace_whole_row(); NULL: not made by ops_trace_cut() */
};

/* Adds to the count of a kind of notes. Returns false if out of memory. */
bool ops_trace_note(struct ops_trace *trace, enum ops_note_kind kind, uint64_t count, uint64_t byte);

/* Sets `events` to point at the columns. */
void ops_trace_seal(struct ops_trace *trace);

/* Bookkeeping operators that tables and events() omit. In every trace made by a builder they are the strings 1, 2, … (string 0 is
 * ""), so that a name is recognised by its id. */
#define OPS_HIDDEN_NAMES(X)                                                                        \
	X("profiler::_record_function_enter")                                                      \
	X("profiler::_record_function_enter_new")                                                  \
	X("profiler::_record_function_exit")                                                       \
	X("aten::is_leaf")                                                                         \
	X("aten::output_nr")                                                                       \
	X("aten::_version")
#define OPS_HIDDEN_NAME_COUNT 6

/* --- tree.c ------------------------------------------------------------------------------------------------------- */

/* What the tree adds to the rows: computed columns, each with room for all rows. In `flags` it sets or clears OPS_EVENT_HIDDEN
 * and OPS_EVENT_FOLDED and leaves the other flags. */
struct ops_tree {
	uint32_t *parent;
	int64_t *self_ns;
	uint16_t *flags;
};

/* Fills the tree of the trace's sorted rows. Returns false if out of memory. Linear. */
bool ops_tree_build(const struct ops_trace *trace, const struct ops_tree *tree);

/* --- links.c ------------------------------------------------------------------------------------------------------ */

/* Fills trace->links with the links from forward operators to their backward nodes, ascending by `from`. Returns false if out of
 * memory. Linear in practice. */
bool ops_links_build(struct ops_trace *trace);
/* Sorts the links. Returns false if out of memory. */
bool ops_links_sort(struct ops_trace *trace);

/* --- flows.c ------------------------------------------------------------------------------------------------------ */

struct ops_new_flow;

/* Returns whether two rows are device work launched by the same call. */
static inline bool ops_is_one_launch(const struct ops_trace *trace, uint32_t a, uint32_t b)
{
	const struct ops_columns *c = &trace->columns;

	return trace->tracks.items[c->track[a]].kind == OPS_TRACK_STREAM &&
	       trace->tracks.items[c->track[b]].kind == OPS_TRACK_STREAM && c->correlation && c->correlation[a] >= 0 &&
	       c->correlation[a] == c->correlation[b];
}

/* Returns whether a flow may lead from a call to work that it started. Such work includes graph nodes on the host and those that
 * record events. */
static inline bool ops_is_launch(const struct ops_trace *trace, uint32_t call, uint32_t work)
{
	const struct ops_columns *c = &trace->columns;

	return (ops_kind_is_call(c->kind[call]) || c->kind[call] == OPS_EVENT_OVERHEAD) &&
	       (ops_kind_is_work(c->kind[work]) ||
	        (c->kind[work] == OPS_EVENT_OTHER && trace->tracks.items[c->track[work]].kind == OPS_TRACK_STREAM));
}

/* Adds the links between these flow ends to trace->links, and a note for ends without another end or event. The rows must be
 * sorted and have their tree. Reorders `flows`. Returns false if out of memory. */
bool ops_flows_join(struct ops_trace *trace, struct ops_new_flow *flows, size_t count);

#endif
