/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of a trace as a page: what recorded it, and what it contains. The titles are those of the tables `info`,
 * `recording` and `event_kinds`, which the viewer shows too.
 */
#include "analyze/about/trace_facts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analyze/fit.h"
#include "analyze/format.h"
#include "analyze/tables.h"
#include "base/escape.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"

#define TITLE_WIDTH 30
#define TEXT_LEAST 30 /* narrower texts are not wrapped */
#define SECONDS_MIN 946684800 /* in 2000; earlier times are those of a clock that began at another moment */

struct fact_page {
	struct ops_buffer *out;
	struct ops_buffer scratch; /* of a value that is decoded or put together */
	struct ops_buffer line;
	size_t columns;
	bool markdown;
};

static void fact_heading(struct fact_page *page, const char *title)
{
	if (page->out->size)
		ops_buffer_append_text(page->out, "\n");
	if (page->markdown)
		ops_buffer_printf(page->out, "### %s\n\n| | |\n|---|---|\n", title);
	else
		ops_buffer_printf(page->out, "%s\n", title);
}

/* Wraps a value, and indents its lines so that they are below each other. */
static void append_wrapped(struct fact_page *page, struct ops_string value)
{
	size_t room = page->columns > TITLE_WIDTH + TEXT_LEAST ? page->columns - TITLE_WIDTH : 0;
	struct ops_buffer lines = {0};

	page->line.size = 0;
	ops_plain_append(&page->line, value.bytes, value.size);
	fit_wrap(&lines, (struct ops_string){ops_buffer_text(&page->line), page->line.size}, room, 0);
	for (size_t i = 0; i < lines.size; i++) {
		ops_buffer_append(page->out, &lines.bytes[i], 1);
		if (lines.bytes[i] == '\n' && i + 1 < lines.size)
			ops_buffer_printf(page->out, "%*s", TITLE_WIDTH, "");
	}
	page->out->failed |= lines.failed || page->line.failed;
	ops_buffer_release(&lines);
}

static void put_fact(struct fact_page *page, struct ops_string title, struct ops_string value, unsigned depth)
{
	size_t width = ops_text_length(title) + 2 + 2 * depth;

	if (!value.size)
		return;
	if (page->markdown) {
		ops_buffer_append_text(page->out, "| ");
		ops_markdown_append(page->out, title.bytes, title.size);
		ops_buffer_append_text(page->out, " | ");
		ops_markdown_append(page->out, value.bytes, value.size);
		ops_buffer_append_text(page->out, " |\n");
		return;
	}
	ops_buffer_printf(page->out, "%*s", (int)(2 + 2 * depth), "");
	ops_plain_append(page->out, title.bytes, title.size);
	ops_buffer_printf(page->out, "%*s", width < TITLE_WIDTH ? (int)(TITLE_WIDTH - width) : 1, "");
	append_wrapped(page, value);
}

/* Appends a value of JSON as text: a list as its elements, joined by commas. */
static void append_json(struct ops_buffer *out, struct ops_string value)
{
	struct ops_json_walk list = ops_json_walk(value.bytes, value.size);
	struct ops_string each;

	if (value.size && value.bytes[0] == '[') {
		for (size_t i = 0; ops_json_next_element(&list, &each); i++) {
			ops_buffer_append_text(out, i ? ", " : "");
			append_json(out, each);
		}
	} else if (!ops_json_decode_value(out, value)) {
		ops_buffer_append(out, value.bytes, value.size);
	}
}

static const struct result_column *find_title(const struct result_declaration *declaration, struct ops_string name)
{
	for (size_t i = 0; i < declaration->count; i++)
		if (ops_string_is(name, declaration->columns[i].name))
			return &declaration->columns[i];
	return NULL;
}

/* Puts the members of an object: the declared ones in order, then the others, under their names. */
static void fact_put_members(struct fact_page *page, const struct result_declaration *declaration, struct ops_string object, unsigned depth)
{
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size);
	struct ops_string name, value;
	char number[OPS_FORMAT_ROOM];
	int64_t count;

	for (size_t i = 0; i < declaration->count; i++) {
		const struct result_column *column = &declaration->columns[i];

		if (!ops_json_find_member(object, column->name, &value))
			continue;
		page->scratch.size = 0;
		if (column->type == RESULT_COUNT && ops_json_parse_integer(value, &count)) {
			ops_format_integer(number, (uint64_t)count);
			ops_buffer_append_text(&page->scratch, number);
		} else {
			append_json(&page->scratch, value);
		}
		put_fact(page, ops_string_of(column->title), (struct ops_string){ops_buffer_text(&page->scratch), page->scratch.size}, depth);
	}
	while (ops_json_next_member(&walk, &name, &value)) {
		if (find_title(declaration, name))
			continue;
		page->scratch.size = 0;
		append_json(&page->scratch, value);
		put_fact(page, name, (struct ops_string){ops_buffer_text(&page->scratch), page->scratch.size}, depth);
	}
}

static void format_moment(struct ops_buffer *out, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm moment;
	char text[40];

	gmtime_r(&seconds, &moment);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &moment);
	ops_buffer_printf(out, "%s.%03" PRId64 " UTC", text, ns / 1000000 % 1000);
}

static void format_steps(struct ops_buffer *out, const struct trace_facts *facts)
{
	if (!facts->steps) {
		ops_buffer_append_text(out, "none");
		return;
	}
	ops_buffer_printf(out, "%" PRIu64 ", ", facts->steps);
	if (facts->first_step != facts->last_step)
		ops_buffer_printf(out, "%" PRId64 " to %" PRId64 ", ", facts->first_step, facts->last_step);
	ops_buffer_printf(out, "from %s", facts->steps_source);
}

/* Returns whether a fact is shown as part of another one. */
static bool fact_is_part(const char *name, const struct trace_facts *facts)
{
	static const char *const of_steps[] = {"steps_from", "steps_source", "first_step", "last_step"};
	struct ops_string value;

	for (size_t i = 0; i < sizeof(of_steps) / sizeof(of_steps[0]); i++)
		if (!strcmp(name, of_steps[i]))
			return true;
	return !strcmp(name, "gpus") && ops_json_find_member(facts->recording, "gpus", &value);
}

/* Puts a column of the table. Some facts may be unknown. */
static void fact_put_column(struct fact_page *page, const struct result_column *column, const struct trace_facts *facts)
{
	char room[OPS_FORMAT_ROOM];
	struct ops_string value;

	page->scratch.size = 0;
	if (!strcmp(column->name, "start_ns")) {
		if (facts->start_ns / 1000000000 >= SECONDS_MIN)
			format_moment(&page->scratch, facts->start_ns);
	} else if (!strcmp(column->name, "steps")) {
		format_steps(&page->scratch, facts);
	} else if (!fact_is_part(column->name, facts)) {
		value = result_cell_text(column, facts, room);
		ops_buffer_append(&page->scratch, value.bytes, value.size);
		if (!strcmp(column->name, "notes") && facts->notes)
			ops_buffer_append_text(&page->scratch, ", which 'opstrobe validate' lists");
	}
	put_fact(page, ops_string_of(column->title), (struct ops_string){ops_buffer_text(&page->scratch), page->scratch.size}, 0);
}

void trace_facts_write(const struct trace_facts *facts, bool markdown, size_t columns, struct ops_buffer *out)
{
	struct fact_page page = {.out = out, .columns = columns, .markdown = markdown};
	const struct result_declaration *declaration = &table_info;

	fact_heading(&page, "Trace");
	for (size_t i = 0; i < declaration->count; i++) {
		const struct result_column *column = &declaration->columns[i];

		if (column->option && !(column->option & facts->present))
			continue;
		if (!strcmp(column->name, "recording")) {
			fact_heading(&page, column->title);
			fact_put_members(&page, &table_recording, facts->recording, 0);
		} else if (!strcmp(column->name, "events_by_kind")) {
			fact_put_members(&page, &table_event_kinds, facts->by_kind, 1);
		} else {
			if (!strcmp(column->name, "start_ns"))
				fact_heading(&page, "Contents");
			fact_put_column(&page, column, facts);
		}
	}
	out->failed |= page.scratch.failed;
	ops_buffer_release(&page.scratch);
	ops_buffer_release(&page.line);
}
