/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns available in expressions, and their values for an event: the columns of the event table, and the
 * arguments that HTA turns into columns, with HTA's values for missing ones.
 */
#include "analyze/events/event_query.h"

#include <math.h>
#include <string.h>

#include "base/json_value.h"
#include "base/text.h"
#include "trace/inputs.h"

/* Columns of every row, in the order of the list below. */
enum row_column {
	COLUMN_INDEX, COLUMN_TS, COLUMN_DUR, COLUMN_END, COLUMN_NAME, COLUMN_SHOWN_NAME, COLUMN_CAT, COLUMN_SHOWN_CAT, COLUMN_PID,
	COLUMN_TID, COLUMN_RANK, COLUMN_STREAM, COLUMN_CORRELATION, COLUMN_PARTNER, COLUMN_STEP,
};

#define NUMBER(name, key, default_value) {name, key, QUERY_NUMBER, default_value, NULL}
#define TEXT(name, key, default_value) {name, key, QUERY_TEXT, 0, default_value}

static const struct query_column columns[] = {
	NUMBER("index", NULL, NAN), NUMBER("ts", NULL, NAN), NUMBER("dur", NULL, NAN), NUMBER("end", NULL, NAN),
	TEXT("name", NULL, NULL), TEXT("s_name", NULL, NULL), TEXT("cat", NULL, NULL), TEXT("s_cat", NULL, NULL),
	NUMBER("pid", NULL, NAN), NUMBER("tid", NULL, NAN), NUMBER("rank", NULL, NAN), NUMBER("stream", NULL, NAN),
	NUMBER("correlation", NULL, NAN), NUMBER("index_correlation", NULL, NAN), NUMBER("iteration", NULL, NAN),

	NUMBER("bytes", "bytes", -1),
	NUMBER("memory_bw_gbps", "memory bandwidth (GB/s)", 0),
	NUMBER("wait_on_stream", "wait_on_stream", -1),
	NUMBER("wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_record_corr_id", -1),
	TEXT("input_dims", "Input Dims", "-1"),
	TEXT("input_type", "Input type", "-1"),
	TEXT("input_strides", "Input Strides", "-1"),
	NUMBER("external_id", "External id", -1),
	NUMBER("python_id", "Python id", -1),
	NUMBER("python_parent_id", "Python parent id", -1),
	TEXT("collective_name", "Collective name", ""),
	NUMBER("in_msg_nelems", "In msg nelems", 0),
	NUMBER("out_msg_nelems", "Out msg nelems", 0),
	TEXT("msg_dtype", "dtype", ""),
	NUMBER("group_size", "Group size", 0),
	NUMBER("process_rank", "Rank", -1),
	TEXT("in_split_size", "In split size", "[]"),
	TEXT("out_split_size", "Out split size", "[]"),
	TEXT("process_group_name", "Process Group Name", ""),
	TEXT("process_group_desc", "Process Group Description", ""),
	TEXT("process_group_ranks", "Process Group Ranks", "[]"),
	NUMBER("seq_num", "Seq", -1),
	TEXT("concrete_inputs", "Concrete Inputs", NULL),
	NUMBER("fwd_thread_id", "Fwd thread id", NAN),
	NUMBER("sequence", "Sequence number", NAN),
	TEXT("kernel_backend", "kernel_backend", ""),
	TEXT("kernel_hash", "kernel_hash", ""),
	NUMBER("cbid", "cbid", NAN),
	NUMBER("blocks_per_sm", "blocks per SM", NAN),
	NUMBER("est_occupancy", "est. achieved occupancy %", NAN),
	NUMBER("warps_per_sm", "warps per SM", NAN),
	NUMBER("context", "context", NAN),
	NUMBER("device", "device", NAN),
	NUMBER("queued", "queued", NAN),
	NUMBER("shared_memory", "shared memory", NAN),
	TEXT("block", "block", NULL),
	TEXT("grid", "grid", NULL),
	NUMBER("registers_per_thread", "registers per thread", NAN),
	NUMBER("op_count", "Op count", NAN),
	NUMBER("in_msg_size", "In msg size", NAN),
	NUMBER("out_msg_size", "Out msg size", NAN),
	NUMBER("batch_size", "batchSize", NAN),
	NUMBER("batch_id", "batchId", NAN),
};

#define COUNT (sizeof(columns) / sizeof(columns[0]))

const struct query_column *query_column_find(struct ops_string name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (ops_string_is(name, columns[i].name))
			return &columns[i];
	return NULL;
}

/* --- values --------------------------------------------------------------------------------------------------------- */

static struct query_value number_value(double number)
{
	return (struct query_value){.type = isnan(number) ? QUERY_ANY : QUERY_NUMBER, .number = number};
}

static struct query_value text_value(struct ops_string text)
{
	return (struct query_value){.type = QUERY_TEXT, .text = text};
}

/* Returns the number; missing if the file has a text instead. */
static double number_unless(bool is_text, int64_t number)
{
	return is_text ? (double)NAN : (double)number;
}

static struct query_value row_value(enum row_column column, const struct event_set *set, const struct event_table *table,
                                    const struct event_row *row)
{
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(table->trace, &count)[row->track];

	switch (column) {
	case COLUMN_INDEX: return number_value(row->index);
	case COLUMN_TS: return number_value((double)(row->ts_ns - set->first_ns) / 1e3);
	case COLUMN_DUR: return number_value((double)row->dur_ns / 1e3);
	case COLUMN_END: return number_value((double)(event_end(row) - set->first_ns) / 1e3);
	case COLUMN_NAME:
	case COLUMN_SHOWN_NAME: return text_value(event_name(table, row));
	case COLUMN_CAT:
	case COLUMN_SHOWN_CAT: return text_value(ops_event_category(table->trace, row->source));
	case COLUMN_PID: return number_value(number_unless(track->flags & OPS_TRACK_PID_TEXT, track->pid));
	case COLUMN_TID: return number_value(number_unless(track->flags & OPS_TRACK_TID_TEXT, track->tid));
	case COLUMN_RANK: return number_value((double)table->rank);
	case COLUMN_STREAM: return number_value((double)row->stream);
	case COLUMN_CORRELATION: return number_value((double)row->correlation);
	case COLUMN_PARTNER: return number_value(row->partner == OPS_NONE ? -1 : (double)table->rows[row->partner].index);
	case COLUMN_STEP: return number_value((double)row->step);
	}
	return (struct query_value){0};
}

/* Returns an argument that is a column of the trace. Inputs are JSON without spaces. */
static struct query_value kept_value(const struct ops_trace *trace, uint32_t row, const char *key, struct ops_buffer *scratch)
{
	static const struct {
		const char *key;
		void (*write)(struct ops_buffer *out, struct ops_string inputs);
	} inputs[] = {{"Input Dims", ops_inputs_json_dims},
	              {"Input type", ops_inputs_json_types},
	              {"Input Strides", ops_inputs_json_strides},
	              {"Concrete Inputs", ops_inputs_json_concrete}};
	const struct ops_events *events = ops_trace_events(trace);

	if (!strcmp(key, "External id") && (!events->id || events->id[row]))
		return number_value(events->id ? (double)events->id[row] : (double)row + 1);
	if (!strcmp(key, "Sequence number") && events->sequence_nr[row] >= 0)
		return number_value((double)events->sequence_nr[row]);
	if (!strcmp(key, "Fwd thread id") && events->forward_thread[row])
		return number_value(events->forward_thread[row]);
	if (!strcmp(key, "Python id") && events->python_id && events->python_id[row] != OPS_NONE)
		return number_value(events->python_id[row]);
	if (!strcmp(key, "Python parent id") && events->python_parent && events->python_parent[row] != OPS_NONE)
		return number_value(events->python_parent[row]);
	for (size_t i = 0; events->inputs[row] != OPS_NONE && i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		if (strcmp(key, inputs[i].key) != 0)
			continue;
		scratch->size = 0;
		inputs[i].write(scratch, ops_trace_inputs(trace, events->inputs[row]));
		return text_value((struct ops_string){ops_buffer_text(scratch), scratch->size});
	}
	return (struct query_value){0};
}

struct query_value query_argument_value(const struct event_table *table, const struct event_row *row, const char *key,
                                        struct ops_buffer *scratch)
{
	struct ops_string json;
	struct ops_string slice;
	double number;

	if (!ops_event_arg(table->trace, row->source, key, &json))
		return kept_value(table->trace, row->source, key, scratch);
	slice = json;
	if (json.size >= 2 && json.bytes[0] == '"') {
		if (!memchr(json.bytes, '\\', json.size))
			return text_value((struct ops_string){json.bytes + 1, json.size - 2});
		scratch->size = 0;
		ops_json_decode(scratch, json.bytes + 1, json.size - 2);
		return text_value((struct ops_string){ops_buffer_text(scratch), scratch->size});
	}
	if (ops_string_is(slice, "true") || ops_string_is(slice, "false"))
		return (struct query_value){.type = QUERY_TRUTH, .number = json.bytes[0] == 't'};
	if (ops_string_is(slice, "null"))
		return (struct query_value){0};
	if (ops_json_parse_number(slice, &number))
		return number_value(number);
	return text_value(json); /* a list, unchanged */
}

/* An argument whose type is not that of its column counts as missing. */
struct query_value query_column_value(const struct query_column *column, const struct event_set *set,
                                      const struct event_table *table, const struct event_row *row,
                                      struct ops_buffer *scratch)
{
	struct query_value value;

	if (!column->key)
		return row_value((enum row_column)(column - columns), set, table, row);
	value = query_argument_value(table, row, column->key, scratch);
	if (value.type == column->type)
		return value;
	if (column->type == QUERY_NUMBER)
		return number_value(column->number);
	return column->text ? text_value((struct ops_string){column->text, strlen(column->text)}) : (struct query_value){0};
}
