/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/recording.h: what the Python extension adds to a session of opstrobe/record.h: what the program holds a
 * storage for, and, before a trace is built, what modules, Python functions and pairs of device events the slots of a recording
 * refer to.
 */
#ifndef OPSTROBE_RECORDING_H
#define OPSTROBE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/internal/shadow_steps.h>
#include <opstrobe/storage.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ops_session;
struct ops_recording;

/* Says that the window is over now and not first at the stop: what is recorded until then, such as roles of storages,
 * belongs to its last moment. Idempotent, any thread. */
void ops_session_end_window(struct ops_session *session);

/* Records a range of this thread that is over, from one reading of ops_ticks() to another, both since the session's start. */
void ops_range_add(const char *name, size_t name_bytes, uint64_t start_ticks, uint64_t end_ticks);

/* Says what the program holds a storage for, at this moment, and what it is called ("encoder.weight"). */
void ops_storage_role(const char *name, size_t name_bytes, const struct ops_storage *storage);

struct ops_text {
	const char *bytes;
	size_t size;
};

/* A module whose calls are slots of kind OPS_SLOT_MODULE; the fields as in struct ops_module (opstrobe/trace.h). */
struct ops_recorded_module {
	int64_t id; /* the slots' number for it; -1: it was not called */
	struct ops_text name;
	struct ops_text class_name;
	struct ops_text path;
	const struct ops_text *aliases; /* further paths */
	size_t alias_count;
	uint32_t parent;    /* index of the module that holds it, which is lower; UINT32_MAX none */
	uint32_t number;    /* of the modules of its class; UINT32_MAX if it was not called */
	uint64_t address;
	uint64_t parameter_count;
	uint64_t parameter_bytes;
	uint64_t own_parameter_count;
	uint64_t own_parameter_bytes;
};

/* Says what the recording's module slots mean; copies all. At most once for a recording. OPS_NO_MEMORY, and then the calls of
 * modules count as lost. */
enum ops_code ops_recording_set_modules(struct ops_recording *recording, const struct ops_recorded_module *modules,
                                        size_t count, struct ops_error *error);

/* A function whose calls were recorded: how its rows are called, its qualified name and the path of its source (NULL for
 * none), and its first line, 0 for none. Borrowed. */
struct ops_recorded_function {
	const char *row_name;
	size_t row_name_bytes;
	const char *name;
	size_t name_bytes;
	const char *file;
	size_t file_bytes;
	uint32_t line;
};

/* Adds to a recording the next function that slots of kind OPS_SLOT_PYTHON name: 1, 2, … False when memory is out. */
bool ops_recording_add_function(struct ops_recording *recording, const struct ops_recorded_function *function);

/* The following are for sessions with a recording file, which get at once what others get at the stop. In others they do
 * nothing. Whether there is such a session: */
bool ops_session_wants_notes(void);
/* The function that slots of kind OPS_SLOT_PYTHON will name: 1, 2, … in order. */
void ops_session_note_function(uint32_t number, const struct ops_recorded_function *function);
/* The module that slots of kind OPS_SLOT_MODULE will name, and its number among those of its class. */
void ops_session_note_module(uint32_t id, uint32_t number, struct ops_text name, struct ops_text class_name);
/* All modules known so far, and the ids that slots name them by. */
void ops_session_note_modules(const struct ops_recorded_module *modules, const uint32_t *ids, size_t count);
/* Metadata of the trace to come. */
void ops_session_note_metadata(const char *key, size_t key_bytes, const char *json, size_t json_bytes);
/* What recording costs at present. */
void ops_session_note_overhead(const struct ops_overhead *overhead);

/* Removes the file of a recording that was made with keep_spill, and is freed. */
bool ops_recording_file_remove(const char *path);

/* Says how long it was, in ns, between the events of each pair that named values speak of (OPS_VALUE_PAIR); OPS_COUNT_UNKNOWN where
 * it is not known. Copied; at most once for a recording. OPS_NO_MEMORY, and then none of them is known. */
enum ops_code ops_recording_set_pair_times(struct ops_recording *recording, const int64_t *times_ns, size_t count,
                                           struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
