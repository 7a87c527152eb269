/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the two parts of the Perfetto writer: pftrace.c, packets, and pftrace_args.c, arguments of events.
 */
#ifndef OPS_WRITE_PFTRACE_H
#define OPS_WRITE_PFTRACE_H

#include <opstrobe/trace.h>

#include "base/buffer.h"
#include "write/fragments.h"

struct ops_pf_args {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct ops_fragments inputs; /* input list id → annotations */
	struct ops_buffer scratch;   /* one annotation */
	bool was_read;
};

/* Returns false if out of memory; ops_pf_args_release is allowed even then, and repeatedly. */
bool ops_pf_args_init(struct ops_pf_args *args, const struct ops_trace *trace);
void ops_pf_args_release(struct ops_pf_args *args);

/* Appends the annotations of a row to a TrackEvent. */
void ops_pf_put_args(struct ops_pf_args *args, struct ops_buffer *event, uint32_t row);
/* Appends one annotation. `json` is one value. */
void ops_pf_put_int(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, int64_t value);
void ops_pf_put_bool(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, bool value);
/* Appends a string of a column of string ids. Does nothing if the column is NULL or the id OPS_NONE. */
void ops_pf_put_string_column(struct ops_pf_args *args, struct ops_buffer *event, const char *name, const uint32_t *column,
                              size_t row);
void ops_pf_put_json(struct ops_buffer *event, struct ops_buffer *scratch, struct ops_string name, struct ops_string json);
/* Appends bytes as a text field, with U+FFFD for invalid UTF-8. */
void ops_pf_put_text(struct ops_buffer *out, uint32_t field, struct ops_string text);

#endif
