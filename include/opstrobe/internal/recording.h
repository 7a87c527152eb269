/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/recording.h: what the Python extension adds to a session of opstrobe/record.h: the roles of storages and,
 * before a trace is built, the modules, Python functions and pairs of device events that the slots of a recording refer to.
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

/* Ends the recorded window now instead of at the stop: what is recorded until then, such as roles of storages, belongs to its
 * last moment. Idempotent, any thread. */
void ops_session_end_window(struct ops_session *session);

/* Records a range of this thread that has ended, between two readings of ops_ticks(), both after the session's start. */
void ops_range_add(const char *name, size_t name_bytes, uint64_t start_ticks, uint64_t end_ticks);

/* Records the current role of a storage, and its name ("encoder.weight"). */
void ops_storage_role(const char *name, size_t name_bytes, const struct ops_storage *storage);

struct ops_text {
	const char *bytes;
	size_t size;
};

/* A module whose calls are slots of kind OPS_SLOT_MODULE; other members as in struct ops_module (opstrobe/trace.h). */
struct ops_recorded_module {
	int64_t id; /* its number in slots; -1: it was not called */
	struct ops_text name;
	struct ops_text class_name;
	struct ops_text path;
	const struct ops_text *aliases; /* additional paths */
	size_t alias_count;
	uint32_t parent;    /* index of the module that contains it, always lower; UINT32_MAX: none */
	uint32_t number;    /* number among the modules of its class; UINT32_MAX if it was not called */
	uint64_t address;
	uint64_t parameter_count;
	uint64_t parameter_bytes;
	uint64_t own_parameter_count;
	uint64_t own_parameter_bytes;
};

/* Sets the modules that the recording's module slots refer to; copies everything. At most once for a recording. OPS_NO_MEMORY:
 * the calls of modules count as lost. */
enum ops_code ops_recording_set_modules(struct ops_recording *recording, const struct ops_recorded_module *modules,
                                        size_t count, struct ops_error *error);

/* A function whose calls were recorded: the name of its rows, its qualified name and the path of its source (NULL: none), and its
 * first line (0: none). Borrowed. */
struct ops_recorded_function {
	const char *row_name;
	size_t row_name_bytes;
	const char *name;
	size_t name_bytes;
	const char *file;
	size_t file_bytes;
	uint32_t line;
};

/* Adds to a recording the next function, numbered 1, 2, …, that slots of kind OPS_SLOT_PYTHON refer to. Returns false if out of
 * memory. */
bool ops_recording_add_function(struct ops_recording *recording, const struct ops_recorded_function *function);

/* The following functions are for sessions with a recording file, which receive at once what others receive at the stop. In other
 * sessions they do nothing. ops_session_wants_notes returns whether the session has a recording file. */
bool ops_session_wants_notes(void);
/* Adds a function that later slots of kind OPS_SLOT_PYTHON refer to, numbered 1, 2, … in order. */
void ops_session_note_function(uint32_t number, const struct ops_recorded_function *function);
/* Adds a module that later slots of kind OPS_SLOT_MODULE refer to, and its number among those of its class. */
void ops_session_note_module(uint32_t id, uint32_t number, struct ops_text name, struct ops_text class_name);
/* Sets all modules known so far, and the ids by which slots refer to them. */
void ops_session_note_modules(const struct ops_recorded_module *modules, const uint32_t *ids, size_t count);
/* Sets metadata of the future trace. */
void ops_session_note_metadata(const char *key, size_t key_bytes, const char *json, size_t json_bytes);
/* Sets the current overhead of recording. */
void ops_session_note_overhead(const struct ops_overhead *overhead);

/* Removes the file of a recording that was made with keep_spill and has been freed. */
bool ops_recording_file_remove(const char *path);

/* Sets the time, in ns, between the events of each pair that named values refer to (OPS_VALUE_PAIR), or OPS_COUNT_UNKNOWN.
 * Copied; at most once for a recording. OPS_NO_MEMORY: none of the times is known. */
enum ops_code ops_recording_set_pair_times(struct ops_recording *recording, const int64_t *times_ns, size_t count,
                                           struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
