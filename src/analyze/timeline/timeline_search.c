/* SPDX-License-Identifier: Apache-2.0
 *
 * Search for events by a part of their name or of their arguments. Each text is tested once; a pass over the rows then
 * tests a bit.
 */
#include <string.h>

#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "trace/inputs.h"

#define NAMES_MAX 4096

struct searching {
	const struct ops_timeline *timeline;
	const struct ops_search *search;
	uint8_t *wanted; /* bits by track, NULL: all */
	uint8_t *match;  /* bits by string */
	uint8_t *inputs; /* bits by input list; NULL: arguments are not searched */
	uint8_t *met;    /* bits by string: some row has the name */
	uint64_t *bins;
	uint64_t total;
	OPS_ARRAY(uint32_t) hits;
	OPS_ARRAY(uint32_t) names;
	struct ops_buffer lower; /* scratch */
};

/* --- names ---------------------------------------------------------------------------------------------------------- */

static char lower(char letter)
{
	return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Appends a text in lower case. */
static void append_lower(struct ops_buffer *out, const char *bytes, size_t size)
{
	size_t from = out->size;

	ops_buffer_append(out, bytes, size);
	for (size_t at = from; at < out->size; at++)
		out->bytes[at] = lower(out->bytes[at]);
}

/* `text` is in lower case. */
static bool timeline_search_holds(struct searching *s, struct ops_string name, struct ops_string text)
{
	if (text.size > name.size)
		return false;
	s->lower.size = 0;
	append_lower(&s->lower, name.bytes, name.size);
	return !s->lower.failed && (!text.size || memmem(s->lower.bytes, s->lower.size, text.bytes, text.size));
}

static bool match_inputs(struct searching *s, struct ops_string text)
{
	size_t count = ops_trace_inputs_count(s->timeline->trace);
	struct ops_buffer inputs = {0};

	s->inputs = ops_alloc_zeroed(count / 8 + 1, 1);
	for (uint32_t id = 0; s->inputs && !inputs.failed && id < count; id++) {
		inputs.size = 0;
		ops_inputs_json_args(&inputs, ops_trace_inputs(s->timeline->trace, id));
		if (timeline_search_holds(s, (struct ops_string){inputs.bytes, inputs.size}, text))
			ops_bit_set(s->inputs, id);
	}
	ops_buffer_release(&inputs);
	return s->inputs != NULL;
}

/* Boxes of modules have their paths as labels. */
static void match_module_paths(struct searching *s)
{
	size_t count;
	const struct ops_module *modules = ops_trace_modules(s->timeline->trace, &count);

	for (size_t i = 0; i < count; i++)
		if (ops_bit(s->match, modules[i].unique_path))
			ops_bit_set(s->match, modules[i].name);
}

static bool match_names(struct searching *s)
{
	size_t strings = ops_trace_string_count(s->timeline->trace);
	struct ops_buffer text = {0};
	struct ops_string wanted;
	bool ok;

	s->match = ops_alloc_zeroed(strings / 8 + 1, 1);
	s->met = ops_alloc_zeroed(strings / 8 + 1, 1);
	append_lower(&text, s->search->text, s->search->text_size);
	ok = !text.failed && s->match && s->met;
	wanted = (struct ops_string){text.bytes, text.size};
	for (uint32_t id = 0; ok && id < strings; id++)
		if (timeline_search_holds(s, ops_trace_string(s->timeline->trace, id), wanted))
			ops_bit_set(s->match, id);
	if (ok)
		match_module_paths(s);
	ok = ok && (!s->search->arguments || match_inputs(s, wanted)) && !s->lower.failed;
	ops_buffer_release(&text);
	ops_buffer_release(&s->lower);
	return ok;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static bool is_match(const struct searching *s, const uint32_t *column, uint32_t row)
{
	return column && column[row] != OPS_NONE && ops_bit(s->match, column[row]);
}

static bool arguments_match(const struct searching *s, uint32_t row)
{
	const struct ops_events *events = s->timeline->events;

	return is_match(s, events->extra, row) || is_match(s, events->args, row) || is_match(s, events->overload, row) ||
	       (events->inputs && events->inputs[row] != OPS_NONE && ops_bit(s->inputs, events->inputs[row]));
}

static bool is_hit(const struct searching *s, uint32_t row)
{
	uint32_t track;

	if (!ops_bit(s->match, s->timeline->events->name[row]) && !(s->inputs && arguments_match(s, row)))
		return false;
	track = timeline_track_of(s->timeline, row);
	return track != OPS_NONE && (!s->wanted || ops_bit(s->wanted, track));
}

static bool count_hit(struct searching *s, uint32_t row)
{
	uint32_t name = s->timeline->events->name[row];

	s->total++;
	if (s->bins) {
		const struct ops_window *window = &s->search->window;
		bool to_end = window->to_ns >= s->timeline->duration_ns;
		double end_ns = to_end ? (double)s->timeline->duration_ns + 1 : (double)window->to_ns;
		double share = ((double)timeline_start(s->timeline, row) - (double)window->from_ns) / (end_ns - (double)window->from_ns);
		uint32_t last = s->search->bins - 1;
		uint32_t bin = share >= 1 ? last : share > 0 ? (uint32_t)(share * s->search->bins) : 0; /* also 0 for NaN */

		s->bins[bin < last ? bin : last]++;
	}
	if (!ops_bit(s->met, name)) {
		uint32_t *slot = s->names.count < NAMES_MAX ? OPS_ARRAY_PUSH(&s->names) : &name;

		if (!slot)
			return false;
		*slot = name;
		ops_bit_set(s->met, name);
	}
	return true;
}

static bool add_hit(struct searching *s, uint32_t row)
{
	uint32_t *slot = OPS_ARRAY_PUSH(&s->hits);

	if (slot)
		*slot = row;
	return slot;
}

/* Counts all hits and keeps the requested ones. */
static bool timeline_search_find_rows(struct searching *s)
{
	const struct ops_search *search = s->search;
	struct timeline_rows rows;
	bool done = timeline_rows_in(s->timeline, &search->window, &rows), back;
	uint32_t at, first;

	if (!done)
		return false;
	for (size_t i = 0; done && i < rows.straddler_count; i++)
		if (is_hit(s, rows.straddlers[i]))
			done = count_hit(s, rows.straddlers[i]);
	for (uint32_t row = rows.first; done && row < rows.last; row++)
		if (is_hit(s, row))
			done = count_hit(s, row);
	ops_free(rows.straddlers);
	back = search->before != OPS_NONE;
	first = search->after == OPS_NONE || search->after < rows.first ? rows.first : search->after + 1;
	for (at = first; done && !back && at < rows.last && s->hits.count < search->window.limit; at++)
		if (is_hit(s, at))
			done = add_hit(s, at);
	at = !back || search->before > rows.last ? rows.last : search->before;
	for (; done && back && at > rows.first && s->hits.count < search->window.limit; at--)
		if (is_hit(s, at - 1))
			done = add_hit(s, at - 1);
	return done;
}

/* --- result --------------------------------------------------------------------------------------------------------- */

static void write_hits(const struct searching *s, struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	ops_json_member(json, "total", (int64_t)s->total);
	OPS_JSON_LIST(json, "names", i, s->names.count, ops_json_integer(json, s->names.items[i]));
	OPS_JSON_LIST(json, "hits", i, s->hits.count,
	              timeline_write_place(s->timeline, json, NULL, s->hits.items[i]));
	ops_json_key(json, "bins");
	if (s->bins) {
		ops_json_open(json, '[');
		for (size_t i = 0; i < s->search->bins; i++)
			ops_json_integer(json, (int64_t)s->bins[i]);
		ops_json_close(json, ']');
	} else {
		ops_json_null(json);
	}
	ops_json_close(json, '}');
}

enum ops_code ops_timeline_search(const struct ops_timeline *timeline, const struct ops_search *search, char **ret_text,
                                  size_t *ret_size, struct ops_error *error)
{
	struct searching s = {.timeline = timeline, .search = search};
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = timeline_wanted(timeline, &search->window, &s.wanted, error);

	if (!code && search->bins) {
		s.bins = ops_alloc_zeroed(search->bins, sizeof(*s.bins));
		code = s.bins ? OPS_OK : ops_fault_memory(error);
	}
	if (!code && !(match_names(&s) && timeline_search_find_rows(&s)))
		code = ops_fault_memory(error);
	if (!code)
		write_hits(&s, &json);
	ops_free(s.wanted);
	ops_free(s.match);
	ops_free(s.inputs);
	ops_free(s.met);
	ops_free(s.bins);
	OPS_ARRAY_RELEASE(&s.hits);
	OPS_ARRAY_RELEASE(&s.names);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
