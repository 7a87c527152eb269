/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of a trace in Arrow's C data interface. Each column is an array of its own that keeps the trace, for who takes
 * a batch may take it apart.
 */
#include <opstrobe/arrow.h>

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/utf8.h"

enum column {
	COLUMN_NAME, COLUMN_CATEGORY, COLUMN_START, COLUMN_DURATION, COLUMN_SELF, COLUMN_PID, COLUMN_TID, COLUMN_PARENT,
	COLUMN_ID, COLUMN_SEQUENCE, COLUMN_CORRELATION, COLUMN_FLAGS, COLUMN_ARGS, COLUMN_COUNT
};

static const struct {
	const char *name;
	const char *format; /* of the column, or of its indexes */
	bool nullable, dictionary;
} columns[COLUMN_COUNT] = {
	[COLUMN_NAME] = {"name", "I", false, true},
	[COLUMN_CATEGORY] = {"category", "I", false, true},
	[COLUMN_START] = {"start_ns", "l", false, false},
	[COLUMN_DURATION] = {"duration_ns", "l", false, false},
	[COLUMN_SELF] = {"self_ns", "l", false, false},
	[COLUMN_PID] = {"pid", "l", false, false},
	[COLUMN_TID] = {"tid", "l", false, false},
	[COLUMN_PARENT] = {"parent", "I", true, false},
	[COLUMN_ID] = {"external_id", "L", false, false},
	[COLUMN_SEQUENCE] = {"sequence_nr", "l", true, false},
	[COLUMN_CORRELATION] = {"correlation", "l", true, false},
	[COLUMN_FLAGS] = {"flags", "S", false, false},
	[COLUMN_ARGS] = {"args", "I", true, true},
};

/* --- schema --------------------------------------------------------------------------------------------------------- */

static void release_schema(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++) {
		if (schema->children[i] && schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
		ops_free(schema->children[i]);
	}
	ops_free(schema->children);
	if (schema->dictionary && schema->dictionary->release)
		schema->dictionary->release(schema->dictionary);
	ops_free(schema->dictionary);
	schema->release = NULL;
}

static bool arrow_describe(enum column column, struct ArrowSchema *schema)
{
	*schema = (struct ArrowSchema){.format = columns[column].format, .name = columns[column].name,
	                               .flags = columns[column].nullable ? ARROW_FLAG_NULLABLE : 0, .release = release_schema};
	if (!columns[column].dictionary)
		return true;
	schema->dictionary = ops_alloc_zeroed(1, sizeof(*schema->dictionary));
	if (schema->dictionary)
		*schema->dictionary = (struct ArrowSchema){.format = "U", .name = "", .release = release_schema};
	return schema->dictionary;
}

enum ops_code ops_arrow_schema(struct ArrowSchema *ret_schema, struct ops_error *error)
{
	struct ArrowSchema schema = {.format = "+s", .name = "", .release = release_schema};
	bool done;

	schema.children = ops_alloc_zeroed(COLUMN_COUNT, sizeof(*schema.children));
	done = schema.children;
	for (int i = 0; done && i < COLUMN_COUNT; i++) {
		schema.children[i] = ops_alloc_zeroed(1, sizeof(**schema.children));
		schema.n_children++;
		done = schema.children[i] && arrow_describe((enum column)i, schema.children[i]);
	}
	if (!done) {
		release_schema(&schema);
		return ops_fault_memory(error);
	}
	*ret_schema = schema;
	return OPS_OK;
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* What a column or dictionary keeps alive. */
struct kept {
	struct ops_trace *trace;
	const void *buffers[3];
	void *owned[3];
};

static void release_array(struct ArrowArray *array)
{
	struct kept *kept = array->private_data;

	for (int64_t i = 0; i < array->n_children; i++) {
		if (array->children[i] && array->children[i]->release)
			array->children[i]->release(array->children[i]);
		ops_free(array->children[i]);
	}
	ops_free(array->children);
	if (array->dictionary && array->dictionary->release)
		array->dictionary->release(array->dictionary);
	ops_free(array->dictionary);
	if (kept) {
		for (int i = 0; i < 3; i++)
			ops_free(kept->owned[i]);
		ops_trace_unref(kept->trace);
		ops_free(kept);
	}
	array->release = NULL;
}

static struct kept *arrow_begin(struct ArrowArray *array, struct ops_trace *trace, size_t length, int64_t buffers)
{
	struct kept *kept = ops_alloc_zeroed(1, sizeof(*kept));

	*array = (struct ArrowArray){.length = (int64_t)length, .n_buffers = buffers, .release = release_array,
	                             .private_data = kept};
	if (!kept)
		return NULL;
	kept->trace = ops_trace_ref(trace);
	array->buffers = kept->buffers;
	return kept;
}

/* Room for a buffer that the array owns. */
static void *own(struct kept *kept, int i, size_t count, size_t bytes_each)
{
	kept->owned[i] = ops_alloc_zeroed(count + 1, bytes_each);
	kept->buffers[i] = kept->owned[i];
	return kept->owned[i];
}

/* Marks the rows whose value is not `none`. */
#define MARK_VALID(array, kept, values, count, none)                                               \
	do {                                                                                       \
		uint8_t *valid = own(kept, 0, (count) / 8, 1);                                     \
		for (size_t row = 0; valid && row < (count); row++) {                              \
			if ((values)[row] != (none))                                               \
				valid[row / 8] |= (uint8_t)(1u << row % 8);                        \
			else                                                                       \
				(array)->null_count++;                                             \
		}                                                                                  \
	} while (0)

/* --- dictionaries --------------------------------------------------------------------------------------------------- */

static void append_utf8(struct ops_buffer *out, struct ops_string text)
{
	const char *end = text.bytes + text.size;

	for (const char *at = text.bytes; at < end;) {
		size_t size = (uint8_t)*at < 0x80 ? 1 : ops_utf8_length(at, end);

		if (size)
			ops_buffer_append(out, at, size);
		else
			ops_buffer_append_text(out, "\xef\xbf\xbd");
		at += size ? size : 1;
	}
}

/* The values of a dictionary: each once, also where only what replaces bytes makes them equal. */
struct texts {
	struct ops_intern unique;
	struct ops_buffer scratch;
};

/* The number of a text among those met; OPS_NONE when memory is out. */
static uint32_t arrow_number_of(struct texts *texts, struct ops_string text)
{
	texts->scratch.size = 0;
	append_utf8(&texts->scratch, text);
	if (texts->scratch.failed)
		return OPS_NONE;
	return ops_intern_add(&texts->unique, ops_buffer_text(&texts->scratch), texts->scratch.size);
}

static bool finish_dictionary(struct ArrowArray *array, struct ops_trace *trace, const struct texts *texts)
{
	size_t count = texts->unique.count, size = 0;
	struct kept *kept;
	int64_t *offsets;
	char *bytes;

	for (size_t i = 0; i < count; i++)
		size += texts->unique.entries[i].size;
	array->dictionary = ops_alloc_zeroed(1, sizeof(*array->dictionary));
	kept = array->dictionary ? arrow_begin(array->dictionary, trace, count, 3) : NULL;
	offsets = kept ? own(kept, 1, count, sizeof(*offsets)) : NULL;
	bytes = offsets ? own(kept, 2, size, 1) : NULL;
	for (size_t i = 0; bytes && i < count; i++) {
		const struct ops_intern_entry *entry = &texts->unique.entries[i];

		if (entry->size)
			memcpy(bytes + offsets[i], entry->bytes, entry->size);
		offsets[i + 1] = offsets[i] + (int64_t)entry->size;
	}
	return bytes;
}

/* Indexes of strings by id, OPS_NONE for null. */
static bool fill_strings(struct ArrowArray *array, struct ops_trace *trace, struct texts *texts, const uint32_t *ids)
{
	size_t count = ops_trace_events(trace)->count, strings = ops_trace_string_count(trace);
	struct kept *kept = array->private_data;
	uint32_t *numbers = ops_realloc_array(NULL, strings + 1, sizeof(*numbers));
	uint32_t *indexes = own(kept, 1, count, sizeof(*indexes));
	bool done = numbers && indexes;

	if (numbers)
		memset(numbers, 0xff, (strings + 1) * sizeof(*numbers));
	for (size_t row = 0; done && row < count; row++) {
		uint32_t id = ids ? ids[row] : OPS_NONE;

		if (id == OPS_NONE)
			continue;
		if (numbers[id] == OPS_NONE)
			numbers[id] = arrow_number_of(texts, ops_trace_string(trace, id));
		done = numbers[id] != OPS_NONE;
		indexes[row] = numbers[id];
	}
	ops_free(numbers);
	return done;
}

/* Categories: what the file calls otherwise, and those of kinds. */
static bool fill_categories(struct ArrowArray *array, struct ops_trace *trace, struct texts *texts)
{
	const struct ops_events *e = ops_trace_events(trace);
	struct kept *kept = array->private_data;
	uint32_t kinds[OPS_EVENT_KIND_COUNT];
	uint32_t *indexes;
	bool done = true;

	if (e->category && !fill_strings(array, trace, texts, e->category))
		return false;
	indexes = e->category ? kept->owned[1] : own(kept, 1, e->count, sizeof(*indexes));
	for (int kind = 0; done && kind < OPS_EVENT_KIND_COUNT; kind++) {
		const char *text = ops_event_kind_category((enum ops_event_kind)kind);

		kinds[kind] = arrow_number_of(texts, (struct ops_string){text, strlen(text)});
		done = kinds[kind] != OPS_NONE;
	}
	for (size_t row = 0; done && indexes && row < e->count; row++)
		if (!e->category || e->category[row] == OPS_NONE)
			indexes[row] = kinds[e->kind[row]];
	return done && indexes;
}

static bool fill_dictionary(enum column column, struct ArrowArray *array, struct ops_trace *trace)
{
	const struct ops_events *e = ops_trace_events(trace);
	struct texts texts = {0};
	bool done;

	if (column == COLUMN_CATEGORY)
		done = fill_categories(array, trace, &texts);
	else
		done = fill_strings(array, trace, &texts, column == COLUMN_NAME ? e->name : e->extra);
	done = done && finish_dictionary(array, trace, &texts);
	ops_buffer_release(&texts.scratch);
	ops_intern_release(&texts.unique);
	return done;
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

/* Columns that the trace does not have in this form. */
static bool fill_numbers(enum column column, struct kept *kept, const struct ops_trace *trace)
{
	const struct ops_events *e = ops_trace_events(trace);
	size_t tracks;
	const struct ops_track *track = ops_trace_tracks(trace, &tracks);
	int64_t *values = own(kept, 1, e->count, sizeof(*values));

	for (size_t row = 0; values && row < e->count; row++) {
		if (column == COLUMN_DURATION)
			values[row] = e->end_ns[row] - e->start_ns[row];
		else if (column == COLUMN_PID)
			values[row] = track[e->track[row]].flags & OPS_TRACK_PID_TEXT ? -1 : track[e->track[row]].pid;
		else if (column == COLUMN_TID)
			values[row] = track[e->track[row]].flags & OPS_TRACK_TID_TEXT ? -1 : track[e->track[row]].tid;
		else if (column == COLUMN_CORRELATION)
			values[row] = e->correlation ? e->correlation[row] : -1;
		else
			values[row] = (int64_t)(e->id ? e->id[row] : row + 1);
	}
	return values;
}

static bool fill_column(enum column column, struct ArrowArray *array, struct ops_trace *trace)
{
	const struct ops_events *e = ops_trace_events(trace);
	struct kept *kept = arrow_begin(array, trace, e->count, 2);
	bool done = kept;

	if (!done)
		return false;
	if (columns[column].dictionary)
		done = fill_dictionary(column, array, trace);
	else if (column == COLUMN_START)
		kept->buffers[1] = e->start_ns;
	else if (column == COLUMN_SELF)
		kept->buffers[1] = e->self_ns;
	else if (column == COLUMN_PARENT)
		kept->buffers[1] = e->parent;
	else if (column == COLUMN_SEQUENCE)
		kept->buffers[1] = e->sequence_nr;
	else if (column == COLUMN_FLAGS)
		kept->buffers[1] = e->flags;
	else
		done = fill_numbers(column, kept, trace);
	if (done && column == COLUMN_PARENT)
		MARK_VALID(array, kept, e->parent, e->count, OPS_NONE);
	else if (done && column == COLUMN_SEQUENCE)
		MARK_VALID(array, kept, e->sequence_nr, e->count, -1);
	else if (done && column == COLUMN_CORRELATION)
		MARK_VALID(array, kept, (const int64_t *)kept->owned[1], e->count, -1);
	else if (done && column == COLUMN_ARGS && e->extra)
		MARK_VALID(array, kept, e->extra, e->count, OPS_NONE);
	else if (done && column == COLUMN_ARGS && own(kept, 0, e->count / 8, 1))
		array->null_count = (int64_t)e->count;
	return done && (!columns[column].nullable || kept->owned[0]);
}

enum ops_code ops_arrow_array(struct ops_trace *trace, struct ArrowArray *ret_array, struct ops_error *error)
{
	struct ArrowArray array;
	bool done = arrow_begin(&array, trace, ops_trace_events(trace)->count, 1);

	array.children = done ? ops_alloc_zeroed(COLUMN_COUNT, sizeof(*array.children)) : NULL;
	done = array.children;
	for (int i = 0; done && i < COLUMN_COUNT; i++) {
		array.children[i] = ops_alloc_zeroed(1, sizeof(**array.children));
		array.n_children++;
		done = array.children[i] && fill_column((enum column)i, array.children[i], trace);
	}
	if (!done) {
		release_array(&array);
		return ops_fault_memory(error);
	}
	*ret_array = array;
	return OPS_OK;
}
