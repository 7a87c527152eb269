/* SPDX-License-Identifier: Apache-2.0
 *
 * A report of advice as JSON, text or Markdown.
 */
#include <string.h>

#include "analyze/advice/advice.h"

const char *advice_severity_name(enum advice_severity severity)
{
	static const char *const names[] = {"info", "low", "medium", "high"};

	return names[severity];
}

const char *advice_confidence_name(enum advice_confidence confidence)
{
	static const char *const names[] = {"low", "medium", "high"};

	return names[confidence];
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void write_text(struct ops_json_writer *json, const char *key, const char *text)
{
	ops_json_key(json, key);
	ops_json_text(json, text, strlen(text));
}

static void write_known(struct ops_json_writer *json, const char *key, struct ops_string text)
{
	ops_json_key(json, key);
	if (text.size)
		ops_json_text(json, text.bytes, text.size);
	else
		ops_json_null(json);
}

static void write_number(struct ops_json_writer *json, const char *key, uint32_t number, bool known)
{
	ops_json_key(json, key);
	if (known)
		ops_json_integer(json, number);
	else
		ops_json_null(json);
}

static void write_where(struct ops_json_writer *json, const struct advice_where *where)
{
	ops_json_open(json, '{');
	write_known(json, "file", where->file);
	write_number(json, "line", where->line, where->line != 0);
	write_known(json, "function", where->function);
	write_known(json, "module", where->module);
	write_known(json, "operator", where->operator_name);
	write_number(json, "trace", where->trace, where->row != OPS_NONE);
	write_number(json, "row", where->row, where->row != OPS_NONE);
	ops_json_close(json, '}');
}

static void write_finding(struct ops_json_writer *json, const struct advice_finding *finding)
{
	struct ops_buffer advice = {0};

	ops_json_open(json, '{');
	write_text(json, "id", finding->rule->id);
	write_text(json, "title", finding->rule->title);
	write_text(json, "severity", advice_severity_name(finding->severity));
	write_text(json, "confidence", advice_confidence_name(finding->confidence));
	ops_json_key(json, "where");
	ops_json_open(json, '[');
	for (size_t i = 0; i < finding->where_count; i++)
		write_where(json, &finding->where[i]);
	ops_json_close(json, ']');
	write_known(json, "evidence", finding->evidence);
	write_text(json, "explanation", finding->rule->explanation);
	ops_buffer_append(&advice, finding->detail.bytes, finding->detail.size);
	ops_buffer_append_text(&advice, finding->detail.size ? " " : "");
	ops_buffer_append_text(&advice, finding->rule->advice);
	ops_json_key(json, "advice");
	ops_json_text(json, advice.size ? advice.bytes : "", advice.size);
	json->out->failed |= advice.failed;
	ops_buffer_release(&advice);
	ops_json_key(json, "predicted_gain_ms_per_step");
	ops_json_number(json, finding->gain_ms);
	ops_json_key(json, "predicted_gain_percent");
	ops_json_number(json, finding->gain_pct);
	ops_json_key(json, "links");
	ops_json_open(json, '[');
	ops_json_text(json, finding->rule->link, strlen(finding->rule->link));
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

void advice_write_json(const struct advice_report *report, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};

	ops_json_open(&json, '{');
	ops_json_key(&json, "findings");
	ops_json_open(&json, '[');
	for (size_t i = 0; i < report->findings.count; i++)
		write_finding(&json, &report->findings.items[i]);
	ops_json_close(&json, ']');
	ops_json_key(&json, "checked");
	ops_json_open(&json, '[');
	for (size_t i = 0; i < advice_rule_count; i++)
		if (report->checked >> i & 1)
			ops_json_text(&json, advice_rules[i]->id, strlen(advice_rules[i]->id));
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
	ops_buffer_append_text(out, "\n");
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

#define WIDTH 79

/* Words in lines of at most WIDTH, each after `indent` spaces; without an indent as they are, for Markdown. */
static void append_wrapped(struct ops_buffer *out, size_t indent, const char *text, size_t size)
{
	size_t column = 0;

	for (size_t at = 0; at < size;) {
		size_t word = 0;

		while (at + word < size && text[at + word] != ' ')
			word++;
		if (indent && column && column + 1 + word > WIDTH) {
			ops_buffer_append_text(out, "\n");
			column = 0;
		}
		if (!column)
			ops_buffer_printf(out, "%*s", (int)indent, "");
		else
			ops_buffer_append_text(out, " ");
		column += column ? 1 + word : indent + word;
		for (size_t i = 0; i < word; i++)
			ops_buffer_append(out, (unsigned char)text[at + i] < ' ' ? "?" : &text[at + i], 1);
		at += word;
		while (at < size && text[at] == ' ')
			at++;
	}
	ops_buffer_append_text(out, "\n");
}

static void append_where(struct ops_buffer *out, const struct advice_where *where, const char *before)
{
	struct ops_buffer line = {0};

	if (where->file.size) {
		ops_buffer_append(&line, where->file.bytes, where->file.size);
		if (where->line)
			ops_buffer_printf(&line, ":%u", where->line);
	}
	if (where->function.size)
		ops_buffer_printf(&line, "%sin %.*s", line.size ? " " : "", (int)where->function.size, where->function.bytes);
	if (where->operator_name.size)
		ops_buffer_printf(&line, "%s%.*s", line.size ? ", " : "", (int)where->operator_name.size,
		                  where->operator_name.bytes);
	if (where->module.size)
		ops_buffer_printf(&line, "%smodule %.*s", line.size ? ", " : "", (int)where->module.size, where->module.bytes);
	if (line.size) {
		ops_buffer_append_text(out, before);
		for (size_t i = 0; i < line.size; i++)
			ops_buffer_append(out, (unsigned char)line.bytes[i] < ' ' ? "?" : &line.bytes[i], 1);
		ops_buffer_append_text(out, "\n");
	}
	out->failed |= line.failed;
	ops_buffer_release(&line);
}

static void append_finding(struct ops_buffer *out, const struct advice_finding *finding, size_t number, bool markdown)
{
	size_t indent = markdown ? 0 : 3;

	ops_buffer_printf(out, markdown ? "\n### %zu. %s\n\n" : "\n%zu. %s\n", number, finding->rule->title);
	ops_buffer_printf(out, "%*s%s, saves about %.3g ms a step (%.1f %%), confidence %s [%s]\n", (int)indent, "",
	                  advice_severity_name(finding->severity), finding->gain_ms, finding->gain_pct,
	                  advice_confidence_name(finding->confidence), finding->rule->id);
	ops_buffer_append_text(out, markdown ? "\n" : "");
	for (size_t i = 0; i < finding->where_count; i++)
		append_where(out, &finding->where[i], markdown ? "- " : "   at ");
	ops_buffer_append_text(out, markdown ? "\n" : "");
	append_wrapped(out, indent, finding->evidence.bytes, finding->evidence.size);
	ops_buffer_append_text(out, markdown ? "\n" : "");
	append_wrapped(out, indent, finding->rule->explanation, strlen(finding->rule->explanation));
	ops_buffer_append_text(out, markdown ? "\n" : "");
	if (finding->detail.size)
		append_wrapped(out, indent, finding->detail.bytes, finding->detail.size);
	append_wrapped(out, indent, finding->rule->advice, strlen(finding->rule->advice));
	ops_buffer_printf(out, markdown ? "\n<%s>\n" : "   %s\n", finding->rule->link);
}

void advice_write_text(const struct advice_report *report, bool markdown, struct ops_buffer *out)
{
	size_t checked = (size_t)__builtin_popcountll(report->checked);

	ops_buffer_append_text(out, markdown ? "## Advice\n\n" : "");
	if (report->findings.count)
		ops_buffer_printf(out, "%zu finding%s, %zu of %zu rules checked\n", report->findings.count,
		                  report->findings.count == 1 ? "" : "s", checked, advice_rule_count);
	else
		ops_buffer_printf(out, "nothing to find fault with, %zu of %zu rules checked\n", checked, advice_rule_count);
	for (size_t i = 0; i < report->findings.count; i++)
		append_finding(out, &report->findings.items[i], i + 1, markdown);
}
