/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of a trace in Arrow's C data interface. Each column is a separate array with a reference to the trace, because
 * consumers may release the columns of a batch one by one.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "write/arrow_array.h"

enum column {
	COLUMN_NAME, COLUMN_CATEGORY, COLUMN_START, COLUMN_DURATION, COLUMN_SELF, COLUMN_PID, COLUMN_TID, COLUMN_PARENT,
	COLUMN_ID, COLUMN_SEQUENCE, COLUMN_CORRELATION, COLUMN_FLAGS, COLUMN_ARGS, COLUMN_COUNT
};

static const struct {
	const char *name;
	const char *format; /* of the column or, for a dictionary, of its indexes */
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

static bool arrow_describe(enum column column, struct ArrowSchema *schema)
{
	*schema = (struct ArrowSchema){.format = columns[column].format, .name = columns[column].name,
	                               .flags = columns[column].nullable ? ARROW_FLAG_NULLABLE : 0, .release = arrow_release_schema};
	if (!columns[column].dictionary)
		return true;
	schema->dictionary = ops_alloc_zeroed(1, sizeof(*schema->dictionary));
	if (schema->dictionary)
		*schema->dictionary = (struct ArrowSchema){.format = "U", .name = "", .release = arrow_release_schema};
	return schema->dictionary;
}

enum ops_code ops_arrow_schema(struct ArrowSchema *ret_schema, struct ops_error *error)
{
	struct ArrowSchema schema = {.format = "+s", .name = "", .release = arrow_release_schema};
	bool done;

	schema.children = ops_alloc_zeroed(COLUMN_COUNT, sizeof(*schema.children));
	done = schema.children;
	for (int i = 0; done && i < COLUMN_COUNT; i++) {
		schema.children[i] = ops_alloc_zeroed(1, sizeof(**schema.children));
		schema.n_children++;
		done = schema.children[i] && arrow_describe((enum column)i, schema.children[i]);
	}
	if (!done) {
		arrow_release_schema(&schema);
		return ops_fault_memory(error);
	}
	*ret_schema = schema;
	return OPS_OK;
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* Marks the rows whose value is not `none`. */
#define MARK_VALID(array, kept, values, count, none)                                               \
	do {                                                                                       \
		uint8_t *valid = arrow_own(kept, 0, (count) / 8, 1);                                     \
		for (size_t row = 0; valid && row < (count); row++) {                              \
			if ((values)[row] != (none))                                               \
				valid[row / 8] |= (uint8_t)(1u << row % 8);                        \
			else                                                                       \
				(array)->null_count++;                                             \
		}                                                                                  \
	} while (0)

/* --- strings -------------------------------------------------------------------------------------------------------- */

/* Indexes of strings by string id; OPS_NONE becomes null. */
static bool fill_strings(struct ArrowArray *array, struct ops_trace *trace, struct arrow_texts *texts, const uint32_t *ids)
{
	size_t count = ops_trace_events(trace)->count, strings = ops_trace_string_count(trace);
	struct arrow_kept *kept = array->private_data;
	uint32_t *numbers = ops_realloc_array(NULL, strings + 1, sizeof(*numbers));
	uint32_t *indexes = arrow_own(kept, 1, count, sizeof(*indexes));
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

/* Uses the category that the file gives an event, else that of its kind. */
static bool fill_categories(struct ArrowArray *array, struct ops_trace *trace, struct arrow_texts *texts)
{
	const struct ops_events *e = ops_trace_events(trace);
	struct arrow_kept *kept = array->private_data;
	uint32_t kinds[OPS_EVENT_KIND_COUNT];
	uint32_t *indexes;
	bool done = true;

	if (e->category && !fill_strings(array, trace, texts, e->category))
		return false;
	indexes = e->category ? kept->owned[1] : arrow_own(kept, 1, e->count, sizeof(*indexes));
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
	struct arrow_texts texts = {0};
	bool done;

	if (column == COLUMN_CATEGORY)
		done = fill_categories(array, trace, &texts);
	else
		done = fill_strings(array, trace, &texts, column == COLUMN_NAME ? e->name : e->extra);
	done = done && arrow_finish_dictionary(array, trace, &texts);
	arrow_texts_release(&texts);
	return done;
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

/* Fills columns that the trace does not have in this form. */
static bool fill_numbers(enum column column, struct arrow_kept *kept, const struct ops_trace *trace)
{
	const struct ops_events *e = ops_trace_events(trace);
	size_t tracks;
	const struct ops_track *track = ops_trace_tracks(trace, &tracks);
	int64_t *values = arrow_own(kept, 1, e->count, sizeof(*values));

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
	struct arrow_kept *kept = arrow_begin(array, trace, e->count, 2);
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
	else if (done && column == COLUMN_ARGS && arrow_own(kept, 0, e->count / 8, 1))
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
		arrow_release_array(&array);
		return ops_fault_memory(error);
	}
	*ret_array = array;
	return OPS_OK;
}
