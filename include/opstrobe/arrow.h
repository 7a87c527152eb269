/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/arrow.h: the events of a trace in Arrow's C data interface, for dataframe libraries. Columns that the trace stores in the
 * same form are not copied. Requires no Arrow library.
 *
 * A record batch has a row for each event in the order of the trace, including hidden ones:
 *
 *     name, category, args      dictionary of large strings; bytes that are not UTF-8 are replaced; args may be null
 *     start_ns, duration_ns, self_ns, pid, tid                int64; of device work, device and stream
 *     parent                    uint32, the row of the enclosing event, may be null
 *     external_id               uint64
 *     sequence_nr, correlation  int64, may be null
 *     flags                     uint16, enum ops_event_flag
 */
#ifndef OPSTROBE_ARROW_H
#define OPSTROBE_ARROW_H

#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The interface, as its specification defines it: https://arrow.apache.org/docs/format/CDataInterface.html */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};
#endif

/* Returns the columns. The caller calls `release` of the schema. OPS_NO_MEMORY. */
enum ops_code ops_arrow_schema(struct ArrowSchema *ret_schema, struct ops_error *error);
/* Returns the events. They keep a reference to the trace until the caller calls `release` of the array. OPS_NO_MEMORY. */
enum ops_code ops_arrow_array(struct ops_trace *trace, struct ArrowArray *ret_array, struct ops_error *error);

/* Returns a table of the trace (docs/reference/schema.md): "events", "kernels", "steps", … with the columns of these names, in
 * their order, or all if `columns` is NULL. Integers are int64, flags bool, other numbers double, texts dictionaries of large
 * strings, JSON large strings. Metadata of a field: "meaning" and, if the column has a unit, "unit"; of the table:
 * "opstrobe.schema_version". The caller frees both
 * results with their `release`; they do not refer to the trace. If `trace` is NULL, only `ret_schema` is set. OPS_INVALID: a
 * table or column that does not exist. OPS_NO_MEMORY. */
enum ops_code ops_arrow_table(const struct ops_trace *trace, const char *table, const char *const *columns, size_t count,
                              struct ArrowSchema *ret_schema, struct ArrowArray *ret_array, struct ops_error *error);
/* Returns {"relations_version": 1, "relations": [{"id", "about", "columns": [{"name", "type", "unit", "about", …}]}]} of all these tables. The caller
 * frees the text with ops_free. */
enum ops_code ops_arrow_tables_json(char **ret_text, size_t *ret_size, struct ops_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
