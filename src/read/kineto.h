/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal declarations of the reader of Chrome trace JSON, as all versions of Kineto, and Opstrobe, write it:
 *
 *     source ─▶ window ─▶ object and members ─▶ kineto_event.c ─▶ builder
 *                                                 kineto_values.c: numbers, times, strings
 *                                                 kineto_categories.c: kinds of events
 *                                                 kineto_args.c: arguments, inputs
 *                                                 kineto_records.c: memory, counters, flows
 *                                                 kineto_storages.c: storages and roles of Opstrobe's files
 *                                                 kineto_tracks.c: threads, streams, processes, functions
 *
 * Events are read one at a time. In addition to the trace, only small tables are in memory: known texts and their results.
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

/* Times further from 0 than this (about the year 2096) are invalid, so that the sum of two times does not overflow. */
#define KINETO_TIME_MAX INT64_C(4000000000000000000)

#define KINETO_CATEGORIES_MAX 64u

/* A category in a file. */
struct kineto_category {
	char text[64];
	uint32_t size;
	uint32_t id;        /* string id if it is not the kind's own, else OPS_NONE */
	uint32_t link_id;   /* the same for flows */
	uint8_t kind;       /* enum ops_event_kind */
	uint8_t link_kind;  /* enum ops_link_kind */
	bool on_device;     /* rows of this category are on a stream */
};

/* The process and thread of an event. Has no padding, because it is hashed. */
struct kineto_place {
	int64_t pid;
	int64_t tid;
	uint64_t flags; /* enum ops_track_flag */
};

struct kineto_track {
	struct ops_track track;
	bool has_events; /* has events of the program on the host */
	uint32_t open;   /* innermost event that has begun and not ended: index in `opens` + 1; 0: none */
};

/* An event whose end has not been read yet. */
struct kineto_open {
	uint32_t row;
	uint32_t below; /* index + 1 */
	int64_t start_ns;
};

/* A known list of inputs. */
struct kineto_inputs {
	uint32_t id;    /* OPS_NONE: the trace cannot represent it */
	bool keep_text; /* the input list is incomplete, so the text is kept */
};

/* Known arguments without columns. */
struct kineto_extra {
	uint32_t string;
	bool words; /* contains bare words */
};

struct kineto_metadata {
	uint32_t key; /* string ids */
	uint32_t json;
};

#define KINETO_ARG_NAMES_MAX 32
#define KINETO_ARG_SIZE_MAX 32 /* of a name; no known name is longer */

/* The known names of arguments, by their lengths: indexes in their table plus one; 0 ends a chain. */
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
	bool has_events;      /* traceEvents has been read */
	bool own;             /* the file was written by Opstrobe */
	bool named_tracks;    /* its head lists tracks with their names */
	bool recorded;        /* and contains a recording: the frame of the recording is known from its head */
	bool row_ids;         /* ids are the default ids of rows */
	bool has_session;     /* start_ns and stop_ns have been set */
	int64_t base_ns;
	int64_t start_ns;     /* of the session; without base_ns */
	int64_t stop_ns;
	int64_t first_ns;     /* earliest and latest time so far */
	int64_t last_ns;
	int64_t pid;
	bool has_pid;
	uint64_t lost;
	bool has_roles;       /* roles have been read */
	uint32_t module_count;
	uint32_t host_name;   /* string ids */
	uint32_t process_name;
	OPS_ARRAY(struct kineto_metadata) metadata;

	/* Known texts. */
	struct kineto_category categories[KINETO_CATEGORIES_MAX];
	uint32_t category_count;
	uint32_t last_category;
	bool has_known_category; /* an event has a category of PyTorch's profiler */
	const struct ops_foreign_file *foreign; /* other format that the file resembles; NULL: none */
	struct ops_intern lanes;              /* struct kineto_place → … */
	OPS_ARRAY(uint32_t) lane_tracks;      /* … track */
	struct kineto_place last_place;
	uint32_t last_lane;
	OPS_ARRAY(struct kineto_track) tracks;
	OPS_ARRAY(struct ops_process) processes;
	OPS_ARRAY(uint32_t) functions;        /* in Opstrobe's files: indexes in the trace */
	OPS_ARRAY(struct ops_storage) storages; /* in Opstrobe's files: by index */
	struct ops_intern process_keys;
	struct ops_intern inputs_texts;
	OPS_ARRAY(struct kineto_inputs) inputs;
	struct ops_intern extra_texts;
	OPS_ARRAY(struct kineto_extra) extras;
	struct ops_buffer scratch;
	struct ops_buffer text;               /* scratch: arguments */
	struct ops_buffer list;

	/* Events without their end. */
	OPS_ARRAY(struct kineto_open) opens;
	struct ops_intern pair_keys;
	OPS_ARRAY(struct kineto_open) pairs;  /* asynchronous ones; row OPS_NONE: ended */
	OPS_ARRAY(struct kineto_open) unfinished;

	/* The current event. */
	uint32_t index;       /* in traceEvents */
	uint64_t byte;
	uint32_t last_row;    /* row of the previous event, for the flows that follow */
	uint32_t last_track;
	int64_t last_start_ns;
	const char *failure;  /* why the event is invalid; NULL: it is valid */
	bool out_of_memory;   /* out of memory for its track */
	enum ops_code code;   /* the error that ended reading */
};

/* Counts a problem at the current event. */
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

/* Reports problems with the characters of a value. */
void kineto_note_text(struct kineto_reader *reader, const struct ops_json_member *value);
/* Returns the string id of a raw string. */
uint32_t kineto_string(struct kineto_reader *reader, const struct ops_json_member *value);
/* Parses microseconds as nanoseconds. */
bool kineto_time(const struct ops_json_member *value, int64_t *ret_ns);
bool kineto_integer(const struct ops_json_member *value, int64_t *ret_value);

/* --- kineto_categories.c -------------------------------------------------------------------------------------------- */

/* Returns the category of the member cat, which may be NULL. */
struct kineto_category kineto_category_of(struct kineto_reader *reader, const struct ops_json_member *cat);

/* --- kineto_event.c ------------------------------------------------------------------------------------------------- */

/* The members of an event that are used; NULL if missing. */
struct kineto_event {
	const struct ops_json_member *ph, *cat, *name, *pid, *tid, *ts, *dur, *id, *track;
};

/* Reads the event in reader->object. Returns false if reading cannot continue: out of memory, or `failure` gives the reason. */
bool kineto_read_event(struct kineto_reader *reader);
/* Ends the open events, and adds the session to the builder. */
void kineto_end_events(struct kineto_reader *reader);
/* Reads name, track and start. Returns false, with a note, if the event cannot be a row. */
bool kineto_read_place(struct kineto_reader *reader, const struct kineto_event *e, struct ops_new_event *event);
void kineto_extend_span(struct kineto_reader *reader, int64_t start_ns, int64_t end_ns);

/* --- kineto_records.c ----------------------------------------------------------------------------------------------- */

/* Returns the number of an argument, or `default_value`. */
int64_t kineto_number_arg(const struct kineto_reader *reader, const char *key, int64_t default_value);
bool kineto_is_memory(const struct kineto_reader *reader, const struct ops_json_member *name);
/* These return false in the same cases as kineto_read_event. */
bool kineto_read_memory(struct kineto_reader *reader, const struct kineto_event *e);
bool kineto_read_counter(struct kineto_reader *reader, const struct kineto_event *e);
bool kineto_read_flow(struct kineto_reader *reader, const struct kineto_event *e, uint8_t phase);

/* --- kineto_args.c -------------------------------------------------------------------------------------------------- */

/* Arguments in Opstrobe's files that have no column. */
struct kineto_own_args {
	uint32_t name;  /* OPS_NONE: not given */
	bool unfinished;
	int8_t async;   /* -1: not given */
};

/* Builds the chains, which must be zeroed. */
void kineto_chain_args(struct kineto_arg_chains *chains);

/* Sets the columns of an event from reader->object's args. Returns false in the same cases as kineto_read_event. */
bool kineto_read_args(struct kineto_reader *reader, struct ops_new_event *event, struct kineto_own_args *own);
const struct ops_json_member *kineto_find_arg(const struct kineto_reader *reader, const char *key);

/* Converts four JSON arrays to an input list. Each may be missing (value NULL): "Input Dims", "Input type", "Input Strides",
 * "Concrete Inputs". */
struct kineto_inputs kineto_convert_inputs(struct kineto_reader *reader, const struct ops_json_member *const arrays[4]);

/* --- kineto_tracks.c ------------------------------------------------------------------------------------------------ */

/* Returns the track for the members pid and tid, either of which may be NULL; OPS_NONE if out of memory. */
uint32_t kineto_track(struct kineto_reader *reader, const struct ops_json_member *pid, const struct ops_json_member *tid);
/* Reads a metadata row. */
void kineto_read_meta(struct kineto_reader *reader, const struct ops_json_member *name,
                      const struct ops_json_member *pid, const struct ops_json_member *tid);
/* Reads the tracks of Opstrobe's files: [[kind, pid, tid, shown tid, number, "name"], …]. */
void kineto_read_own_tracks(struct kineto_reader *reader, const struct ops_json_member *array);
/* Reads the functions of Opstrobe's files: [["name", "path", line], …]. */
void kineto_read_functions(struct kineto_reader *reader, const struct ops_json_member *array);
/* Reads the modules of Opstrobe's files. */
void kineto_read_own_modules(struct kineto_reader *reader, const struct ops_json_member *array);
/* --- kineto_storages.c ---------------------------------------------------------------------------------------------- */

/* Read the storages and roles of Opstrobe's files; storages before roles, and tracks before both. */
void kineto_read_own_storages(struct kineto_reader *reader, const struct ops_json_member *array);
void kineto_read_own_roles(struct kineto_reader *reader, const struct ops_json_member *array);
/* Reads an operator's storages as the value of their column. Returns false if they are invalid. */
bool kineto_read_storages(struct kineto_reader *reader, const struct ops_json_member *array, uint32_t *ret_string);

/* Numbers the threads, and adds tracks and processes to the builder. */
void kineto_end_tracks(struct kineto_reader *reader);

#endif
