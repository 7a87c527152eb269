/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of the Perfetto writer share: pftrace.c, the packets, and pftrace_args.c, the arguments of events.
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

/* False when memory is out; released or not, ops_pf_args_release is allowed. */
bool ops_pf_args_init(struct ops_pf_args *args, const struct ops_trace *trace);
void ops_pf_args_release(struct ops_pf_args *args);

/* Appends the annotations of a row to a TrackEvent. */
void ops_pf_put_args(struct ops_pf_args *args, struct ops_buffer *event, uint32_t row);
/* Appends one annotation. JSON is one value. */
void ops_pf_put_int(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, int64_t value);
void ops_pf_put_bool(struct ops_buffer *event, struct ops_buffer *scratch, const char *name, bool value);
/* Of a column of string ids; it may be NULL, and OPS_NONE gives nothing. */
void ops_pf_put_string_column(struct ops_pf_args *args, struct ops_buffer *event, const char *name, const uint32_t *column,
                              size_t row);
void ops_pf_put_json(struct ops_buffer *event, struct ops_buffer *scratch, struct ops_string name, struct ops_string json);
/* Appends bytes as a field of text, with U+FFFD for invalid UTF-8. */
void ops_pf_put_text(struct ops_buffer *out, uint32_t field, struct ops_string text);

#endif
