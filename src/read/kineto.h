/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the reader of Chrome trace JSON, as Kineto of every age and Opstrobe write it:
 *
 *     source ─▶ window ─▶ object taken apart ─▶ kineto_event.c ─▶ builder
 *                                                 kineto_values.c: numbers, times, strings
 *                                                 kineto_categories.c: what an event is
 *                                                 kineto_args.c: arguments, inputs
 *                                                 kineto_records.c: memory, counters, arrows
 *                                                 kineto_storages.c: storages and roles of own files
 *                                                 kineto_tracks.c: threads, streams, processes, functions
 *
 * One event at a time; beyond the trace itself only small tables are kept: of texts met before and what became of them.
 */
#ifndef OPS_READ_KINETO_H
#define OPS_READ_KINETO_H

#include <opstrobe/read.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/json_scan.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "read/reading.h"
#include "trace/builder.h"

/* Times that are further from 0 than this are none (about the year 2096), so that sums of two fit. */
#define KINETO_TIME_MAX INT64_C(4000000000000000000)

#define KINETO_CATEGORIES_MAX 64u

/* A category as a file writes it. */
struct kineto_category {
	char text[64];
	uint32_t size;
	uint32_t id;        /* string id if it is not the kind's own, else OPS_NONE */
	uint32_t link_id;   /* the same for arrows */
	uint8_t kind;       /* enum ops_event_kind */
	uint8_t link_kind;  /* enum ops_link_kind */
	bool on_device;     /* its rows are on a stream */
};

/* How process and thread are named; without holes, for it is hashed. */
struct kineto_place {
	int64_t pid;
	int64_t tid;
	uint64_t flags; /* enum ops_track_flag */
};

struct kineto_track {
	struct ops_track track;
	bool has_events; /* of the host's program */
	uint32_t open;   /* innermost event that began and has not ended: index into `opens` + 1, 0 none */
};

/* An event of which only the beginning was met. */
struct kineto_open {
	uint32_t row;
	uint32_t below; /* index + 1 */
	int64_t start_ns;
};

/* A list of inputs met before. */
struct kineto_inputs {
	uint32_t id;    /* OPS_NONE: none that the trace can hold */
	bool keep_text; /* the trace's form does not say everything */
};

/* Arguments without columns, met before. */
struct kineto_extra {
	uint32_t string;
	bool words; /* has bare words */
};

struct kineto_metadata {
	uint32_t key; /* string ids */
	uint32_t json;
};

#define KINETO_ARG_NAMES_MAX 32
#define KINETO_ARG_SIZE_MAX 32 /* of a name; no known one is as long */

/* The names of arguments that are known, by their lengths: places in their table plus one, 0 ends. */
struct kineto_arg_chains {
	uint8_t first[KINETO_ARG_SIZE_MAX];
	uint8_t next[KINETO_ARG_NAMES_MAX];
};

struct kineto_reader {
	struct kineto_arg_chains arg_chains;
	struct ops_reading *in;
	struct ops_builder *builder;
	struct ops_json_object *object;

	/* The document. */
	bool has_events;      /* traceEvents was met */
	bool own;             /* Opstrobe's own file */
	bool recorded;        /* and of a recording: what frames it says nothing new */
	bool row_ids;         /* ids are those that rows have without being said */
	bool has_session;     /* start_ns and stop_ns are known */
	int64_t base_ns;
	int64_t start_ns;     /* of the session; base_ns is not added yet */
	int64_t stop_ns;
	int64_t first_ns;     /* earliest and latest time met */
	int64_t last_ns;
	int64_t pid;
	bool has_pid;
	uint64_t lost;
	bool has_roles;       /* they were met */
	uint32_t module_count;
	uint32_t host_name;   /* string ids */
	uint32_t process_name;
	OPS_ARRAY(struct kineto_metadata) metadata;

	/* Texts met before. */
	struct kineto_category categories[KINETO_CATEGORIES_MAX];
	uint32_t category_count;
	uint32_t last_category;
	bool has_known_category; /* an event has one that PyTorch's profiler writes */
	const struct ops_foreign_file *foreign; /* what the file looks like instead; NULL: nothing else */
	struct ops_intern lanes;              /* struct kineto_place → … */
	OPS_ARRAY(uint32_t) lane_tracks;      /* … track */
	struct kineto_place last_place;
	uint32_t last_lane;
	OPS_ARRAY(struct kineto_track) tracks;
	OPS_ARRAY(struct ops_process) processes;
	OPS_ARRAY(uint32_t) functions;        /* of an own file: indexes in the trace */
	OPS_ARRAY(struct ops_storage) storages; /* of an own file, by place */
	struct ops_intern process_keys;
	struct ops_intern inputs_texts;
	OPS_ARRAY(struct kineto_inputs) inputs;
	struct ops_intern extra_texts;
	OPS_ARRAY(struct kineto_extra) extras;
	struct ops_buffer scratch;
	struct ops_buffer text;               /* arguments put together */
	struct ops_buffer list;

	/* Events that are not whole yet. */
	OPS_ARRAY(struct kineto_open) opens;
	struct ops_intern pair_keys;
	OPS_ARRAY(struct kineto_open) pairs;  /* row OPS_NONE: ended */
	OPS_ARRAY(struct kineto_open) unfinished;

	/* The event in hand. */
	uint32_t index;       /* in traceEvents */
	uint64_t byte;
	uint32_t last_row;    /* the event before it, for the arrows that follow */
	uint32_t last_track;
	int64_t last_start_ns;
	const char *failure;  /* why the event makes no sense, if it makes none */
	bool out_of_memory;   /* memory for its track is out */
	enum ops_code code;   /* why the file cannot be read on */
};

/* Counts one of these at the event in hand. */
static inline void kineto_note(struct kineto_reader *reader, enum ops_note_kind kind)
{
	ops_builder_notes(reader->builder, kind, 1, reader->byte);
}

static inline bool kineto_is(const char *text, size_t size, const char *other, size_t other_size)
{
	return size == other_size && __builtin_memcmp(text, other, size) == 0;
}
#define KINETO_IS(text, size, literal) kineto_is(text, size, literal, sizeof(literal) - 1)

/* --- kineto_values.c ------------------------------------------------------------------------------------------------ */

/* Notes what is wrong with the characters of a value. */
void kineto_note_text(struct kineto_reader *reader, const struct ops_json_member *value);
/* The string id of a raw string. */
uint32_t kineto_string(struct kineto_reader *reader, const struct ops_json_member *value);
/* Microseconds as nanoseconds. */
bool kineto_time(const struct ops_json_member *value, int64_t *ret_ns);
bool kineto_integer(const struct ops_json_member *value, int64_t *ret_value);

/* --- kineto_categories.c -------------------------------------------------------------------------------------------- */

/* The category of the member cat, which may be NULL. */
struct kineto_category kineto_category_of(struct kineto_reader *reader, const struct ops_json_member *cat);

/* --- kineto_event.c ------------------------------------------------------------------------------------------------- */

/* The members of an event that are looked at; NULL for those that are not there. */
struct kineto_event {
	const struct ops_json_member *ph, *cat, *name, *pid, *tid, *ts, *dur, *id, *track;
};

/* Takes the event in reader->object. False when the reader cannot go on: memory is out, or `failure` says why. */
bool kineto_read_event(struct kineto_reader *reader);
/* Ends the open events, and adds the session to the builder. */
void kineto_end_events(struct kineto_reader *reader);
/* Name, track and start. False, and a note, when it cannot be a row. */
bool kineto_read_place(struct kineto_reader *reader, const struct kineto_event *e, struct ops_new_event *event);
void kineto_extend_span(struct kineto_reader *reader, int64_t start_ns, int64_t end_ns);

/* --- kineto_records.c ----------------------------------------------------------------------------------------------- */

/* The number of an argument, or `default_value`. */
int64_t kineto_number_arg(const struct kineto_reader *reader, const char *key, int64_t default_value);
bool kineto_is_memory(const struct kineto_reader *reader, const struct ops_json_member *name);
/* Each false as kineto_read_event. */
bool kineto_read_memory(struct kineto_reader *reader, const struct kineto_event *e);
bool kineto_read_counter(struct kineto_reader *reader, const struct kineto_event *e);
bool kineto_read_flow(struct kineto_reader *reader, const struct kineto_event *e, uint8_t phase);

/* --- kineto_args.c -------------------------------------------------------------------------------------------------- */

/* What args say to a reader of Opstrobe's own files, beyond the columns. */
struct kineto_own_args {
	uint32_t name;  /* OPS_NONE not said */
	bool unfinished;
	int8_t async;   /* -1 not said */
};

/* Fills the chains, which are zeroed. */
void kineto_chain_args(struct kineto_arg_chains *chains);

/* Fills the columns of an event from reader->object's args. False as kineto_read_event. */
bool kineto_read_args(struct kineto_reader *reader, struct ops_new_event *event, struct kineto_own_args *own);
const struct ops_json_member *kineto_find_arg(const struct kineto_reader *reader, const char *key);

/* The input list of four JSON arrays, each of which may be missing (value NULL): "Input Dims", "Input type", "Input
 * Strides", "Concrete Inputs". */
struct kineto_inputs kineto_convert_inputs(struct kineto_reader *reader, const struct ops_json_member *const arrays[4]);

/* --- kineto_tracks.c ------------------------------------------------------------------------------------------------ */

/* The track of the members pid and tid, either of which may be NULL; OPS_NONE when memory is out. */
uint32_t kineto_track(struct kineto_reader *reader, const struct ops_json_member *pid, const struct ops_json_member *tid);
/* A row of metadata. */
void kineto_read_meta(struct kineto_reader *reader, const struct ops_json_member *name,
                      const struct ops_json_member *pid, const struct ops_json_member *tid);
/* The tracks of an own file, in its words: [[kind, pid, tid, shown tid, number, "name"], …]. */
void kineto_read_own_tracks(struct kineto_reader *reader, const struct ops_json_member *array);
/* The functions of an own file: [["name", "path", line], …]. */
void kineto_read_functions(struct kineto_reader *reader, const struct ops_json_member *array);
/* The modules of an own file. */
void kineto_read_own_modules(struct kineto_reader *reader, const struct ops_json_member *array);
/* --- kineto_storages.c ---------------------------------------------------------------------------------------------- */

/* Those of an own file; the storages before the roles, and the tracks before both. */
void kineto_read_own_storages(struct kineto_reader *reader, const struct ops_json_member *array);
void kineto_read_own_roles(struct kineto_reader *reader, const struct ops_json_member *array);
/* The column of an operator's storages; false when they make no sense. */
bool kineto_read_storages(struct kineto_reader *reader, const struct ops_json_member *array, uint32_t *ret_string);

/* Numbers the threads and hands all to the builder. */
void kineto_end_tracks(struct kineto_reader *reader);

#endif
