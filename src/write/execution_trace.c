/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution traces (opstrobe/internal/execution_trace.h). Nodes are stored one after another in chunks, each as a struct ops_node
 * followed by its texts and values. Chunks never move, so that adding a node takes one copy under the lock.
 */
#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/execution_trace.h>
#include <opstrobe/trace.h>

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/text.h"

#define SCHEMA "1.1.1-chakra.0.0.4"
#define CHUNK_BYTES ((size_t)1 << 18)
#define DEPTH_MAX 64 /* nested lists */
#define GZIP_LEVEL 4

struct chunk {
	struct chunk *next;
	size_t size;
	size_t capacity;
	_Alignas(8) char bytes[];
};

struct ops_execution_trace {
	pthread_mutex_t lock; /* protects all following members */
	struct chunk *first;
	struct chunk *last;
	uint64_t nodes;
	uint64_t lost;
	time_t time;
	int64_t start_ms;
};

static int64_t now_ms(void)
{
	return ops_clock_read_ns(CLOCK_MONOTONIC) / 1000000;
}

struct ops_execution_trace *ops_execution_trace_new(void)
{
	struct ops_execution_trace *trace = ops_alloc_zeroed(1, sizeof(*trace));

	if (!trace)
		return NULL;
	pthread_mutex_init(&trace->lock, NULL);
	trace->time = time(NULL);
	trace->start_ms = now_ms();
	return trace;
}

void ops_execution_trace_free(struct ops_execution_trace *trace)
{
	struct chunk *chunk;

	if (!trace)
		return;
	while ((chunk = trace->first)) {
		trace->first = chunk->next;
		ops_free(chunk);
	}
	pthread_mutex_destroy(&trace->lock);
	ops_free(trace);
}

/* --- adding --------------------------------------------------------------------------------------------------------- */

static size_t padded(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* The texts of a node, in the order in which they are stored. */
#define TEXT_COUNT 7
static void texts_of(struct ops_node *node, struct ops_node_text *ret_texts[TEXT_COUNT])
{
	ret_texts[0] = &node->name;
	ret_texts[1] = &node->schema;
	ret_texts[2] = &node->kernel_backend;
	ret_texts[3] = &node->kernel_file;
	ret_texts[4] = &node->inputs;
	ret_texts[5] = &node->outputs;
	ret_texts[6] = &node->tensor_range;
}

/* Returns room in the last chunk or a new one; NULL if out of memory. */
static char *reserve_room(struct ops_execution_trace *trace, size_t bytes)
{
	struct chunk *chunk = trace->last;

	if (!chunk || chunk->capacity - chunk->size < bytes) {
		size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		chunk = ops_alloc(sizeof(*chunk) + capacity);
		if (!chunk)
			return NULL;
		*chunk = (struct chunk){.capacity = capacity};
		if (trace->last)
			trace->last->next = chunk;
		else
			trace->first = chunk;
		trace->last = chunk;
	}
	chunk->size += bytes;
	return chunk->bytes + chunk->size - bytes;
}

void ops_execution_trace_add(struct ops_execution_trace *trace, const struct ops_node *node)
{
	struct ops_node copy = *node;
	struct ops_node_text *texts[TEXT_COUNT];
	size_t bytes = sizeof(copy);
	char *room;

	texts_of(&copy, texts);
	for (size_t i = 0; i < TEXT_COUNT; i++)
		bytes += padded(texts[i]->size);
	pthread_mutex_lock(&trace->lock);
	room = reserve_room(trace, bytes);
	if (room) {
		char *at = room + sizeof(copy);

		for (size_t i = 0; i < TEXT_COUNT; i++) {
			if (texts[i]->size)
				memcpy(at, texts[i]->bytes, texts[i]->size);
			texts[i]->bytes = at;
			at += padded(texts[i]->size);
		}
		memcpy(room, &copy, sizeof(copy));
		trace->nodes++;
	} else {
		trace->lost++;
	}
	pthread_mutex_unlock(&trace->lock);
}

void ops_execution_trace_counts(struct ops_execution_trace *trace, uint64_t *ret_nodes, uint64_t *ret_lost)
{
	pthread_mutex_lock(&trace->lock);
	*ret_nodes = trace->nodes;
	*ret_lost = trace->lost;
	pthread_mutex_unlock(&trace->lock);
}

/* --- values --------------------------------------------------------------------------------------------------------- */

/* The four lists that a node has for its values. */
enum view { VALUES, SHAPES, TYPES, STRIDES, VIEW_COUNT };

struct cursor {
	const char *at;
	const char *end;
};

/* Reads `size` bytes and their padding; NULL if fewer remain. */
static const char *execution_trace_read(struct cursor *cursor, size_t size)
{
	const char *bytes = cursor->at;

	if ((size_t)(cursor->end - bytes) < padded(size))
		return NULL;
	cursor->at += padded(size);
	return bytes;
}

static bool execution_trace_put_item(struct ops_buffer *out, struct cursor *cursor, enum view view, int depth);

/* Writes n items between brackets. Types are texts, whose brackets the caller writes. */
static bool put_items(struct ops_buffer *out, struct cursor *cursor, uint32_t n, enum view view, int depth)
{
	ops_buffer_append_text(out, "[");
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			ops_buffer_append_text(out, ",");
		if (!execution_trace_put_item(out, cursor, view, depth))
			return false;
	}
	ops_buffer_append_text(out, "]");
	return true;
}

static void execution_trace_put_ints(struct ops_buffer *out, const char *ints, uint32_t n)
{
	ops_buffer_append_text(out, "[");
	for (uint32_t i = 0; i < n; i++) {
		int64_t value;

		memcpy(&value, ints + (size_t)i * sizeof(value), sizeof(value));
		if (i)
			ops_buffer_append_text(out, ",");
		ops_buffer_append_int(out, value);
	}
	ops_buffer_append_text(out, "]");
}

static bool execution_trace_put_tensor(struct ops_buffer *out, struct cursor *cursor, const struct ops_node_head *head,
                                       enum view view)
{
	const char *fixed = execution_trace_read(cursor, sizeof(struct ops_node_tensor));
	const char *sizes = fixed ? execution_trace_read(cursor, (size_t)head->n * sizeof(int64_t)) : NULL;
	const char *strides = sizes ? execution_trace_read(cursor, (size_t)head->n * sizeof(int64_t)) : NULL;
	struct ops_node_tensor tensor;

	if (!strides)
		return false;
	memcpy(&tensor, fixed, sizeof(tensor));
	tensor.device[sizeof(tensor.device) - 1] = '\0';
	if (view == TYPES) {
		ops_buffer_append_text(out, "Tensor(");
		ops_buffer_append_text(out, ops_dtype_name(head->dtype));
		ops_buffer_append_text(out, ")");
	} else if (view == VALUES) {
		ops_buffer_printf(out, "[%llu,%llu,%lld,%lld,%lld,", (unsigned long long)tensor.id,
				  (unsigned long long)tensor.storage_id, (long long)tensor.offset,
				  (long long)tensor.elements, (long long)tensor.element_bytes);
		ops_json_string(out, tensor.device, strlen(tensor.device));
		ops_buffer_append_text(out, "]");
	} else {
		execution_trace_put_ints(out, view == SHAPES ? sizes : strides, head->n);
	}
	return true;
}

/* JSON has no representation of infinities and NaN; they are texts, as in torch's files. */
static void execution_trace_put_double(struct ops_buffer *out, double value)
{
	char text[40];
	char *end;

	if (isnan(value)) {
		ops_buffer_append_text(out, "\"nan\"");
	} else if (isinf(value)) {
		ops_buffer_append_text(out, value < 0 ? "\"-inf\"" : "\"inf\"");
	} else {
		end = ops_json_double_to(text, value);
		ops_buffer_append(out, text, (size_t)(end - text));
		if (!memchr(text, '.', (size_t)(end - text)) && !memchr(text, 'e', (size_t)(end - text)))
			ops_buffer_append_text(out, ".0");
	}
}

static void put_bracketed(struct ops_buffer *out, const char *text, size_t size)
{
	ops_buffer_append_text(out, "\"<");
	ops_buffer_append(out, text, size); /* the name of a type needs no escapes */
	ops_buffer_append_text(out, ">\"");
}

static bool put_plain_value(struct ops_buffer *out, const struct ops_node_head *head, const char *data)
{
	int64_t integer;
	double number;

	switch (head->tag) {
	case OPS_NODE_NONE:
		put_bracketed(out, "None", 4);
		return true;
	case OPS_NODE_INT:
		memcpy(&integer, data, sizeof(integer));
		ops_buffer_append_int(out, integer);
		return true;
	case OPS_NODE_DOUBLE:
		memcpy(&number, data, sizeof(number));
		execution_trace_put_double(out, number);
		return true;
	case OPS_NODE_BOOL:
		ops_buffer_append_text(out, head->n ? "true" : "false");
		return true;
	case OPS_NODE_OTHER:
		put_bracketed(out, data, head->n);
		return true;
	default:
		ops_json_string(out, data, head->n);
		return true;
	}
}

static size_t plain_bytes(const struct ops_node_head *head)
{
	if (head->tag == OPS_NODE_INT || head->tag == OPS_NODE_DOUBLE)
		return 8;
	return head->tag == OPS_NODE_NONE || head->tag == OPS_NODE_BOOL ? 0 : head->n;
}

static bool put_plain(struct ops_buffer *out, struct cursor *cursor, const struct ops_node_head *head, enum view view)
{
	static const char *const types[] = {"None", "Int", "Double", "Bool", "String", "Device"};
	const char *data = execution_trace_read(cursor, plain_bytes(head));

	if (!data)
		return false;
	if (view == VALUES)
		return put_plain_value(out, head, data);
	if (view != TYPES)
		ops_buffer_append_text(out, "[]");
	else if (head->tag == OPS_NODE_OTHER)
		ops_buffer_append(out, data, head->n);
	else
		ops_buffer_append_text(out, types[head->tag]);
	return true;
}

/* Writes one item in a view. A type is written without quotes, because the quotes enclose all types. */
static bool execution_trace_put_item(struct ops_buffer *out, struct cursor *cursor, enum view view, int depth)
{
	const char *bytes = execution_trace_read(cursor, sizeof(struct ops_node_head));
	struct ops_node_head head;

	if (!bytes || depth > DEPTH_MAX)
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.tag >= OPS_NODE_TAG_COUNT)
		return false;
	if (head.tag == OPS_NODE_TENSOR)
		return execution_trace_put_tensor(out, cursor, &head, view);
	if (head.tag < OPS_NODE_TENSOR)
		return put_plain(out, cursor, &head, view);
	if (view == TYPES)
		ops_buffer_append_text(out, head.tag == OPS_NODE_LIST ? "GenericList" : "Tuple");
	return put_items(out, cursor, head.n, view, depth + 1);
}

/* Writes all items of a sequence in one view; everything after a malformed item is left out. */
static void put_view(struct ops_buffer *out, struct ops_node_text values, enum view view)
{
	struct cursor cursor = {values.bytes, values.bytes + values.size};
	size_t good = out->size;

	while (cursor.at < cursor.end) {
		if (cursor.at > values.bytes)
			ops_buffer_append_text(out, ",");
		if (view == TYPES)
			ops_buffer_append_text(out, "\"");
		if (!execution_trace_put_item(out, &cursor, view, 0)) {
			out->size = good;
			return;
		}
		if (view == TYPES)
			ops_buffer_append_text(out, "\"");
		good = out->size;
	}
}

/* --- nodes ---------------------------------------------------------------------------------------------------------- */

static void put_values(struct ops_buffer *out, const char *which, struct ops_node_text values)
{
	static const char *const keys[VIEW_COUNT] = {"values", "shapes", "types", "strides"};

	ops_buffer_printf(out, ",\n        \"%s\": {", which);
	for (int view = 0; view < VIEW_COUNT; view++) {
		ops_buffer_printf(out, "%s\"%s\": [", view ? ", " : "", keys[view]);
		put_view(out, values, (enum view)view);
		ops_buffer_append_text(out, "]");
	}
	ops_buffer_append_text(out, "}");
}

static void execution_trace_put_number(struct ops_buffer *out, const char *name, uint64_t value)
{
	ops_buffer_printf(out, "{\"name\": \"%s\", \"type\": \"uint64\", \"value\": %llu},", name, (unsigned long long)value);
}

static void execution_trace_put_text(struct ops_buffer *out, const char *name, struct ops_node_text text)
{
	ops_buffer_printf(out, "{\"name\": \"%s\", \"type\": \"string\", \"value\": ", name);
	ops_json_string(out, text.bytes, text.size);
	ops_buffer_append_text(out, "}");
}

static void put_attributes(struct ops_buffer *out, const struct ops_node *node)
{
	ops_buffer_append_text(out, ",\n        \"attrs\": [");
	execution_trace_put_number(out, "rf_id", node->record_id);
	execution_trace_put_number(out, "fw_parent", node->forward_parent);
	ops_buffer_printf(out, "{\"name\": \"seq_id\", \"type\": \"int64\", \"value\": %lld},", (long long)node->sequence_nr);
	execution_trace_put_number(out, "scope", node->scope);
	execution_trace_put_number(out, "tid", node->thread);
	execution_trace_put_number(out, "fw_tid", node->forward_thread);
	execution_trace_put_text(out, "op_schema", node->schema);
	ops_buffer_append_text(out, ",");
	execution_trace_put_text(out, "kernel_backend", node->kernel_backend);
	ops_buffer_append_text(out, ",");
	execution_trace_put_text(out, "kernel_file", node->kernel_file);
	ops_buffer_append_text(out, ",");
	execution_trace_put_text(out, "tensor_range", node->tensor_range);
	ops_buffer_append_text(out, "]");
}

static void put_node(struct ops_buffer *out, const struct ops_node *node)
{
	ops_buffer_printf(out, "\n      {\n        \"id\": %llu, \"name\": ", (unsigned long long)node->id);
	ops_json_string(out, node->name.bytes, node->name.size);
	ops_buffer_printf(out, ", \"ctrl_deps\": %llu", (unsigned long long)node->parent);
	put_values(out, "inputs", node->inputs);
	put_values(out, "outputs", node->outputs);
	put_attributes(out, node);
	ops_buffer_append_text(out, "\n      }");
}

/* --- file ----------------------------------------------------------------------------------------------------------- */

static void execution_trace_write_head(const struct ops_execution_trace *trace, struct ops_buffer *out)
{
	char text[32] = "";
	struct tm local;

	if (localtime_r(&trace->time, &local))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
	ops_buffer_printf(out, "{\n  \"schema\": \"" SCHEMA "\", \"pid\": %lld, \"time\": \"%s\", \"start_ts\": %lld,\n  \"nodes\": [",
			  (long long)getpid(), text, (long long)trace->start_ms);
}

static void execution_trace_flush(struct ops_buffer *out, struct ops_sink *sink)
{
	ops_sink_write(sink, out->bytes, out->size);
	out->size = 0;
}

/* Returns false if out of memory. */
static bool write_nodes(const struct ops_execution_trace *trace, struct ops_buffer *out, struct ops_sink *sink)
{
	bool first = true;

	for (const struct chunk *chunk = trace->first; chunk; chunk = chunk->next) {
		for (size_t at = 0; at < chunk->size && !ops_sink_failed(sink);) {
			struct ops_node node;
			struct ops_node_text *texts[TEXT_COUNT];

			memcpy(&node, chunk->bytes + at, sizeof(node));
			if (!first)
				ops_buffer_append_text(out, ",");
			first = false;
			put_node(out, &node);
			if (out->failed)
				return false;
			execution_trace_flush(out, sink);
			texts_of(&node, texts);
			at += sizeof(node);
			for (size_t i = 0; i < TEXT_COUNT; i++)
				at += padded(texts[i]->size);
		}
	}
	return true;
}

static bool execution_trace_write_all(const struct ops_execution_trace *trace, struct ops_sink *sink)
{
	struct ops_buffer out = {0};
	bool ok;

	execution_trace_write_head(trace, &out);
	ok = write_nodes(trace, &out, sink);
	ops_buffer_printf(&out, "\n  ],\n  \"finish_ts\": %lld\n}\n", (long long)now_ms());
	ok = ok && !out.failed;
	if (ok)
		execution_trace_flush(&out, sink);
	ops_buffer_release(&out);
	return ok;
}

enum ops_code ops_execution_trace_write(struct ops_execution_trace *trace, const char *path, struct ops_error *error)
{
	struct ops_sink *sink = NULL;
	enum ops_code code = ops_sink_open_file(path, ops_ends_with(path, ".gz") ? GZIP_LEVEL : 0, &sink, error);

	if (!code) {
		bool ok;

		pthread_mutex_lock(&trace->lock);
		ok = execution_trace_write_all(trace, sink);
		pthread_mutex_unlock(&trace->lock);
		if (ok) {
			code = ops_sink_close(sink, error);
		} else {
			ops_sink_abandon(sink);
			code = ops_fault_memory(error);
		}
	}
	return code ? ops_fault_context(error, code, "cannot write execution trace '%s'", path) : OPS_OK;
}
