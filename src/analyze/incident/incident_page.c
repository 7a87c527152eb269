/* SPDX-License-Identifier: Apache-2.0
 *
 * A report on an incident as a page of text or Markdown, rendered from the report's JSON alone.
 */
#include <opstrobe/internal/incidents.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analyze/format.h"
#include "analyze/incident/incident.h"
#include "base/escape.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"

#define FRAMES_SHOWN 20

struct incident_page {
	const struct incident_facts *facts;
	struct ops_string report;
	bool markdown;
	struct ops_buffer out;
	struct ops_buffer scratch;
};

static struct ops_string page_member(struct incident_page *page, struct ops_string object, const char *key)
{
	struct ops_string value;

	page->scratch.size = 0;
	if (!ops_json_find_member(object, key, &value) || !ops_json_decode_value(&page->scratch, value))
		return (struct ops_string){0};
	return (struct ops_string){ops_buffer_text(&page->scratch), page->scratch.size};
}

static void incident_put_text(struct incident_page *page, struct ops_string text)
{
	if (page->markdown)
		ops_markdown_append(&page->out, text.bytes, text.size);
	else
		ops_plain_append(&page->out, text.bytes, text.size);
}

static void incident_put_code(struct incident_page *page, struct ops_string text)
{
	if (page->markdown)
		ops_code_append(&page->out, text.bytes, text.size);
	else
		ops_plain_append(&page->out, text.bytes, text.size);
}

static void incident_put_heading(struct incident_page *page, const char *text)
{
	ops_buffer_printf(&page->out, page->markdown ? "\n### %s\n\n" : "\n%s\n", text);
}

static void begin_line(struct incident_page *page, const char *name)
{
	ops_buffer_printf(&page->out, page->markdown ? "- %s: " : "%-9s ", name);
}

static void incident_put_place(struct incident_page *page, const struct incident_frame *place)
{
	page->scratch.size = 0;
	incident_place_append(&page->scratch, place);
	incident_put_code(page, (struct ops_string){ops_buffer_text(&page->scratch), page->scratch.size});
	if (!place->function.size)
		return;
	ops_buffer_append_text(&page->out, " in ");
	incident_put_code(page, place->function);
}

void incident_moment_append(struct ops_buffer *out, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	char text[40];
	struct tm moment;

	gmtime_r(&seconds, &moment);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &moment);
	ops_buffer_append_text(out, text);
}

static void incident_put_overhead(struct incident_page *page)
{
	struct ops_string box;
	char text[OPS_OVERHEAD_ROOM];

	if (!ops_json_find_member(page->report, "black_box", &box))
		return;
	if (ops_overhead_describe(box, text)) {
		begin_line(page, "overhead");
		ops_buffer_printf(&page->out, "%s\n", text);
	}
	if (ops_detail_describe(box, text)) {
		begin_line(page, "detail");
		ops_buffer_printf(&page->out, "%s\n", text);
	}
}

static void incident_put_head(struct incident_page *page)
{
	const struct incident_facts *facts = page->facts;
	char duration[OPS_FORMAT_ROOM], usual[OPS_FORMAT_ROOM];

	if (page->markdown)
		ops_buffer_append_text(&page->out, "## ");
	incident_put_text(page, page_member(page, page->report, "title"));
	ops_buffer_append_text(&page->out, page->markdown ? "\n\n**Cause:** " : "\n\ncause: ");
	incident_put_text(page, page_member(page, page->report, "cause"));
	ops_buffer_append_text(&page->out, "\n\n");
	begin_line(page, "when");
	incident_moment_append(&page->out, facts->time_ns);
	ops_buffer_append_text(&page->out, " UTC\n");
	begin_line(page, "process");
	incident_put_text(page, facts->process);
	ops_buffer_printf(&page->out, " (%" PRId64 ")", facts->pid);
	if (facts->host.size) {
		ops_buffer_append_text(&page->out, " on ");
		incident_put_text(page, facts->host);
	}
	if (facts->rank >= 0)
		ops_buffer_printf(&page->out, ", rank %" PRId64 " of %" PRId64, facts->rank, facts->world_size);
	ops_buffer_append_text(&page->out, "\n");
	if (facts->command.size) {
		begin_line(page, "command");
		incident_put_code(page, facts->command);
		ops_buffer_append_text(&page->out, "\n");
	}
	incident_put_overhead(page);
	if (!facts->has_step)
		return;
	begin_line(page, "step");
	ops_format_duration(duration, (double)facts->step_ns);
	ops_format_duration(usual, (double)facts->usual_ns);
	ops_buffer_printf(&page->out, "%" PRId64 ", %s%s%s%s\n", facts->step, facts->step_goes_on ? "under way for " : "took ", duration,
	                  facts->usual_ns ? ", usually " : "", facts->usual_ns ? usual : "");
}

/* --- differences ---------------------------------------------------------------------------------------------------------- */

static void incident_put_more(struct incident_page *page, struct ops_string object, const char *name, const char *value, const char *typical,
                     bool is_count)
{
	double here = ops_json_number_of(object, value, 0), usual = ops_json_number_of(object, typical, 0);
	char text[3][OPS_FORMAT_ROOM];

	ops_buffer_append_text(&page->out, page->markdown ? "- " : "  ");
	incident_put_text(page, page_member(page, object, name));
	if (is_count) {
		ops_buffer_printf(&page->out, ": +%s (%s, usually %s)\n", ops_figure_of_number(here - usual).text, ops_figure_of_number(here).text,
		                  ops_figure_of_number(usual).text);
		return;
	}
	ops_format_duration(text[0], 1000 * (here - usual));
	ops_format_duration(text[1], 1000 * here);
	ops_format_duration(text[2], 1000 * usual);
	ops_buffer_printf(&page->out, ": +%s (%s, usually %s)\n", text[0], text[1], text[2]);
}

static const char excess_text[] = "Operators are recorded only in the part of a slow step that was too long, so other steps have none";

/* Returns whether operators were recorded only where the step was too long. */
static bool has_operators_of_excess(const struct incident_page *page)
{
	struct ops_string box;
	char text[OPS_OVERHEAD_ROOM];

	return ops_string_is(page->facts->trigger, "slow_step") && ops_json_find_member(page->report, "black_box", &box) &&
	       ops_detail_describe(box, text);
}

static void incident_put_difference(struct incident_page *page)
{
	struct ops_string difference, list, object;
	struct ops_json_walk cursor;

	if (!ops_json_find_typed(page->report, "difference", '{', &difference))
		return;
	incident_put_heading(page, "more than in other steps");
	if (ops_json_find_member(difference, "causes", &list)) {
		cursor = ops_json_walk(list.bytes, list.size);
		while (ops_json_next_element(&cursor, &object))
			incident_put_more(page, object, "title", "value", "typical",
			         ops_json_is_true(object, "is_count"));
	}
	if (ops_json_find_member(difference, "events", &list)) {
		cursor = ops_json_walk(list.bytes, list.size);
		while (ops_json_next_element(&cursor, &object))
			incident_put_more(page, object, "name", "self", "typical_self", false);
	}
	if (has_operators_of_excess(page))
		ops_buffer_printf(&page->out, "%s%s.\n", page->markdown ? "\n" : "  ", excess_text);
}

static void incident_put_over(struct incident_page *page)
{
	const struct incident_facts *facts = page->facts;
	char text[4][OPS_FORMAT_ROOM];

	if (!facts->has_over)
		return;
	ops_format_duration(text[0], (double)facts->over_ns);
	ops_format_duration(text[1], (double)facts->ran_ns);
	ops_format_duration(text[2], (double)facts->waited_ns);
	ops_format_duration(text[3], (double)facts->collecting_ns);
	incident_put_heading(page, "while it was too long");
	ops_buffer_printf(&page->out,
	                  "%s%s: its thread ran for %s, waited for a CPU for %s, collected garbage for %s; page faults: %" PRId64
	                  " from a disk, %" PRId64 " others\n",
	                  page->markdown ? "" : "  ", text[0], text[1], text[2], text[3], facts->major_faults, facts->minor_faults);
}

/* --- threads -------------------------------------------------------------------------------------------------------------- */

static void incident_put_stack(struct incident_page *page, const struct incident_stack *stack)
{
	size_t count = stack->frame_count - incident_stack_launchers(stack), shown = count < FRAMES_SHOWN ? count : FRAMES_SHOWN;

	for (size_t i = 0; i < stack->native_count; i++) {
		ops_buffer_append_text(&page->out, page->markdown ? "  - C: " : "    C: ");
		incident_put_place(page, &stack->native[i]);
		ops_buffer_append_text(&page->out, "\n");
	}
	for (size_t i = 0; i < shown; i++) {
		ops_buffer_append_text(&page->out, page->markdown ? "  - " : "    ");
		incident_put_place(page, &stack->frames[i]);
		ops_buffer_append_text(&page->out, "\n");
	}
	if (shown < count)
		ops_buffer_printf(&page->out, "%sand %zu more\n", page->markdown ? "  - " : "    ", count - shown);
}

static void incident_put_open_events(struct incident_page *page, int64_t tid)
{
	struct ops_string list, object;
	struct ops_json_walk cursor;
	bool any = false;

	if (!ops_json_find_member(page->report, "open_events", &list))
		return;
	cursor = ops_json_walk(list.bytes, list.size);
	while (ops_json_next_element(&cursor, &object)) {
		if (ops_json_integer_of(object, "tid", -1) != tid)
			continue;
		ops_buffer_append_text(&page->out, any ? " in " : page->markdown ? "  - was in " : "    was in ");
		incident_put_code(page, page_member(page, object, "name"));
		any = true;
	}
	ops_buffer_append_text(&page->out, any ? "\n" : "");
}

static void incident_put_thread(struct incident_page *page, const struct incident_stack *stack)
{
	ops_buffer_printf(&page->out, "%s%" PRId64 " ", page->markdown ? "- " : "  ", stack->tid);
	incident_put_text(page, stack->name);
	ops_buffer_printf(&page->out, "%s%s: %s\n", stack->is_main ? ", main" : "", stack->has_gil ? ", has the GIL" : "",
	                  incident_doing_text(incident_stack_doing(stack)));
	incident_put_open_events(page, stack->tid);
	incident_put_stack(page, stack);
}

static void incident_put_samples(struct incident_page *page)
{
	const struct incident_facts *facts = page->facts;

	if (!facts->samples.count)
		return;
	incident_put_heading(page, "where it was meanwhile");
	for (size_t i = 0; i < facts->samples.count && i < 5; i++) {
		const struct incident_stack *stack = &facts->samples.items[i];
		const struct incident_frame *place = incident_stack_place(stack);

		if (200 * stack->count < facts->sample_count)
			continue; /* "0 %" */

		ops_buffer_printf(&page->out, "%s%6s  %s", page->markdown ? "- " : "  ",
		                  ops_figure_of_percent(100.0 * (double)stack->count / (double)facts->sample_count).text,
		                  incident_doing_text(incident_stack_doing(stack)));
		if (place) {
			ops_buffer_append_text(&page->out, " at ");
			incident_put_place(page, place);
		}
		ops_buffer_append_text(&page->out, "\n");
	}
}

/* "/home/train.py:12 in f", of the member "where" of an object. */
static void incident_put_where(struct incident_page *page, struct ops_string object)
{
	struct ops_string where;
	double line;

	if (!ops_json_find_typed(object, "where", '{', &where))
		return;
	ops_buffer_append_text(&page->out, " at ");
	line = ops_json_number_of(where, "line", 0);
	page_member(page, where, "file");
	if (line > 0)
		ops_buffer_printf(&page->scratch, ":%.0f", line);
	incident_put_code(page, (struct ops_string){ops_buffer_text(&page->scratch), page->scratch.size});
	ops_buffer_append_text(&page->out, " in ");
	incident_put_code(page, page_member(page, where, "function"));
}

static void incident_put_sampled(struct incident_page *page)
{
	struct ops_string sampled, list, place;
	struct ops_json_walk cursor;
	char period[OPS_FORMAT_ROOM];

	if (!ops_json_find_typed(page->report, "sampled", '{', &sampled) ||
	    !ops_json_find_member(sampled, "places", &list))
		return;
	incident_put_heading(page, "sampled stacks of its thread");
	ops_format_duration(period, ops_json_number_of(sampled, "period_ns", 0));
	ops_buffer_printf(&page->out, "%s%s samples of the step and %s of %s other steps, one each %s of wall-clock time\n%s",
	                  page->markdown ? "" : "  ", ops_figure_of_number(ops_json_number_of(sampled, "samples", 0)).text, ops_figure_of_number(ops_json_number_of(sampled, "usual_samples", 0)).text,
	                  ops_figure_of_number(ops_json_number_of(sampled, "usual_steps", 0)).text, period, page->markdown ? "\n" : "");
	cursor = ops_json_walk(list.bytes, list.size);
	while (ops_json_next_element(&cursor, &place)) {
		ops_buffer_printf(&page->out, "%s%6s (%s in other steps)  ", page->markdown ? "- " : "  ",
		                  ops_figure_of_percent(100 * ops_json_number_of(place, "share", 0)).text, ops_figure_of_percent(100 * ops_json_number_of(place, "usual_share", 0)).text);
		incident_put_text(page, page_member(page, place, "doing"));
		incident_put_where(page, place);
		ops_buffer_append_text(&page->out, "\n");
	}
}

static void incident_put_memory(struct incident_page *page)
{
	struct ops_string memory, growth, text;
	char bytes[OPS_FORMAT_ROOM];
	int64_t number;

	if (!ops_json_find_typed(page->report, "memory", '{', &memory))
		return;
	incident_put_heading(page, "memory");
	if (ops_json_find_member(memory, "growth_per_step_bytes", &growth) && ops_json_parse_integer(growth, &number)) {
		ops_format_bytes(bytes, number);
		ops_buffer_printf(&page->out, "%sa step adds %s (median)\n%s", page->markdown ? "" : "  ", bytes, page->markdown ? "\n" : "");
	}
	text = page_member(page, memory, "text");
	ops_buffer_append_text(&page->out, page->markdown ? "```\n" : "");
	for (const char *at = text.bytes, *end = ops_string_end(text); text.size && at < end;) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		const char *stop = line ? line : end;

		ops_plain_append(&page->out, at, (size_t)(stop - at));
		ops_buffer_append_text(&page->out, "\n");
		at = stop + 1;
	}
	ops_buffer_append_text(&page->out, page->markdown ? "```\n" : "");
}

static void incident_put_suppressed(struct incident_page *page)
{
	struct ops_string suppressed, key, value;
	struct ops_json_walk cursor;
	bool any = false;

	if (!ops_json_find_member(page->report, "suppressed", &suppressed))
		return;
	cursor = ops_json_walk(suppressed.bytes, suppressed.size);
	while (ops_json_next_member(&cursor, &key, &value)) {
		ops_buffer_append_text(&page->out, any ? ", " : "\nnot kept before, because there were too many: ");
		ops_buffer_append(&page->out, value.bytes, value.size);
		ops_buffer_append_text(&page->out, " ");
		incident_put_text(page, key);
		any = true;
	}
	ops_buffer_append_text(&page->out, any ? "\n" : "");
}

static void page_put(struct incident_page *page)
{
	const struct incident_facts *facts = page->facts;

	incident_put_head(page);
	incident_put_difference(page);
	incident_put_over(page);
	incident_put_samples(page);
	incident_put_sampled(page);
	if (facts->end.frame_count) {
		incident_put_heading(page, "where it ended");
		incident_put_stack(page, &facts->end);
	}
	if (facts->threads.count)
		incident_put_heading(page, "threads");
	for (size_t i = 0; i < facts->threads.count; i++)
		incident_put_thread(page, &facts->threads.items[i]);
	incident_put_memory(page);
	incident_put_suppressed(page);
}

/* Writes the report, with the sentences of a page that are computed from it as the members "overhead_text" and "detail_text". */
static enum ops_code incident_page_write_json(struct incident_page *page, struct ops_error *error)
{
	struct ops_json_writer json = {.out = &page->out};
	struct ops_json_walk walk = ops_json_walk(page->report.bytes, page->report.size);
	struct ops_string key, value, box;
	char text[OPS_OVERHEAD_ROOM];
	enum ops_code code = ops_json_validate(page->report.bytes, page->report.size, error);

	if (code)
		return code;
	ops_json_open(&json, '{');
	while (ops_json_next_member(&walk, &key, &value)) {
		ops_json_key_of(&json, key.bytes, key.size);
		ops_json_raw(&json, value.bytes, value.size);
	}
	if (ops_json_find_member(page->report, "black_box", &box)) {
		if (ops_overhead_describe(box, text))
			ops_json_member_text(&json, "overhead_text", text);
		if (ops_detail_describe(box, text))
			ops_json_member_text(&json, "detail_text", text);
	}
	if (has_operators_of_excess(page))
		ops_json_member_text(&json, "difference_text", excess_text);
	ops_json_close(&json, '}');
	ops_buffer_append_text(&page->out, "\n");
	return OPS_OK;
}

enum ops_code ops_incident_page(const char *report, size_t report_size, enum ops_format format, char **ret_text, size_t *ret_size,
                                struct ops_error *error)
{
	struct incident_facts facts;
	struct incident_page page = {.facts = &facts, .report = {report, report_size}, .markdown = format == OPS_FORMAT_MARKDOWN};
	enum ops_code code;

	if (format == OPS_FORMAT_JSON) {
		code = incident_page_write_json(&page, error);
		return ops_buffer_detach(&page.out, code, ret_text, ret_size, error);
	}
	if (format != OPS_FORMAT_TEXT && format != OPS_FORMAT_MARKDOWN)
		return ops_fault(error, OPS_INVALID, "an incident is shown as text, Markdown or JSON");
	code = incident_facts_read(&facts, page.report, error);
	if (!code)
		page_put(&page);
	if (!code && page.scratch.failed)
		code = ops_fault_memory(error);
	ops_buffer_release(&page.scratch);
	incident_facts_release(&facts);
	return ops_buffer_detach(&page.out, code, ret_text, ret_size, error);
}
