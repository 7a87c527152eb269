/* SPDX-License-Identifier: Apache-2.0
 *
 * A report of advice as JSON, text or Markdown.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_rest.h"
#include "analyze/fit.h"
#include "analyze/format.h"
#include "analyze/views/view_step_stats.h"
#include "base/escape.h"
#include "derive/program.h"

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

const char *advice_bound_name(enum advice_bound bound)
{
	static const char *const names[] = {"about", "at least", "at most"};

	return names[bound];
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void write_where(struct ops_json_writer *json, const struct advice_where *where)
{
	ops_json_open(json, '{');
	ops_json_member_string_or_null(json, "file", where->file);
	ops_json_member_if(json, "line", where->line != 0, where->line);
	ops_json_member_string_or_null(json, "function", where->function);
	ops_json_member_string_or_null(json, "module", where->module);
	ops_json_member_string_or_null(json, "operator", where->operator_name);
	ops_json_member_if(json, "trace", where->row != OPS_NONE, where->trace);
	ops_json_member_if(json, "row", where->row != OPS_NONE, where->row);
	ops_json_member_open(json, "through", '[');
	for (size_t i = 0; i < where->through_count; i++) {
		ops_json_open(json, '{');
		ops_json_member_string(json, "file", where->through[i].file);
		ops_json_member_string(json, "path", ops_file_in_package(where->through[i].file));
		ops_json_member(json, "line", where->through[i].line);
		ops_json_member_string(json, "function", where->through[i].function);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

static void write_advice(struct ops_json_writer *json, const struct advice_finding *finding)
{
	struct ops_buffer advice = {0};

	ops_buffer_append(&advice, finding->detail.bytes, finding->detail.size);
	ops_buffer_append_text(&advice, finding->detail.size ? " " : "");
	ops_buffer_append_text(&advice, finding->rule->advice);
	if (finding->rule->code)
		ops_buffer_printf(&advice, "\n\n%s", finding->rule->code);
	ops_json_key(json, "advice");
	ops_json_text(json, ops_buffer_text(&advice), advice.size);
	json->out->failed |= advice.failed;
	ops_buffer_release(&advice);
}

static void advice_write_proof(struct ops_json_writer *json, const struct advice_proof *proof)
{
	ops_json_key(json, "measured");
	if (!proof->is_known) {
		ops_json_null(json);
		return;
	}
	ops_json_open(json, '{');
	ops_json_member_string_or_null(json, "fix", proof->fix);
	ops_json_member_number(json, "gain_ms_per_step", proof->gain_ms);
	ops_json_member_number(json, "gain_percent", proof->gain_pct);
	ops_json_member_number(json, "gain_lower_percent", proof->lower_pct);
	ops_json_member_number(json, "gain_upper_percent", proof->upper_pct);
	ops_json_member_text(json, "results", proof->results);
	ops_json_close(json, '}');
}

#define GAIN_ROOM 128
#define GAIN_TEXT_ROOM 512
/* "between 2.00 % and 9.80 %"; of a bound, the other end. */
static void format_interval(const struct advice_finding *finding, char ret_text[GAIN_ROOM])
{
	struct ops_figure lower = ops_figure_of_percent(finding->lower_pct), upper = ops_figure_of_percent(finding->upper_pct);

	if (finding->bound == ADVICE_ABOUT)
		snprintf(ret_text, GAIN_ROOM, "between %s and %s", lower.text, upper.text);
	else if (finding->bound == ADVICE_AT_MOST)
		snprintf(ret_text, GAIN_ROOM, "at least %s", lower.text);
	else
		snprintf(ret_text, GAIN_ROOM, "at most %s", upper.text);
}

/* "waited for a CPU: 23.0 %", which every gain has next to it if the machine distorted the figures. Returns false if not. */
static bool format_gain_warning(const struct advice_report *report, char ret_text[GAIN_ROOM])
{
	if (!view_waited_distorts(report->waited))
		return false;
	snprintf(ret_text, GAIN_ROOM, "waited for a CPU: %s", ops_figure_of_percent(100 * report->waited.ratio).text);
	return true;
}

/* `brief`: for one line of a list, without the texts and with only the first place. */
static void write_finding(struct ops_json_writer *json, const struct advice_report *report, const struct advice_finding *finding,
                          bool brief)
{
	char interval[GAIN_ROOM], warning[GAIN_ROOM];

	ops_json_open(json, '{');
	ops_json_member_text(json, "id", finding->rule->id);
	ops_json_member_text(json, "title", finding->rule->title);
	ops_json_member_text(json, "severity", advice_severity_name(finding->severity));
	ops_json_member_text(json, "confidence", advice_confidence_name(finding->confidence));
	ops_json_member_open(json, "where", '[');
	for (size_t i = 0; i < finding->where_count && (!brief || i < 1); i++)
		write_where(json, &finding->where[i]);
	ops_json_close(json, ']');
	if (!brief) {
		ops_json_member_string_or_null(json, "evidence", finding->evidence);
		ops_json_member_string(json, "facts", finding->facts);
		ops_json_member_text(json, "explanation", finding->rule->explanation);
		write_advice(json, finding);
	}
	ops_json_member_number(json, "predicted_gain_ms_per_step", finding->gain_ms);
	ops_json_member_number(json, "predicted_gain_percent", finding->gain_pct);
	ops_json_member_number(json, "predicted_gain_lower_percent", finding->lower_pct);
	ops_json_member_number(json, "predicted_gain_upper_percent", finding->upper_pct);
	ops_json_member_text(json, "predicted_gain_bound", advice_bound_name(finding->bound));
	ops_json_key(json, "predicted_gain_interval");
	if (finding->gain_pct > 0) {
		format_interval(finding, interval);
		ops_json_word(json, interval);
	} else {
		ops_json_null(json);
	}
	ops_json_key(json, "predicted_gain_warning");
	if (format_gain_warning(report, warning))
		ops_json_word(json, warning);
	else
		ops_json_null(json);
	advice_write_proof(json, &finding->proof);
	if (!brief) {
		ops_json_member_open(json, "links", '[');
		ops_json_word(json, finding->rule->link);
		ops_json_close(json, ']');
	}
	ops_json_close(json, '}');
}

void advice_write_top(const struct advice_report *report, bool brief, struct ops_json_writer *json)
{
	ops_json_key(json, "top_finding");
	if (report->findings.count)
		write_finding(json, report, &report->findings.items[0], brief);
	else
		ops_json_null(json);
}

/* Writes the number of findings, or why there are none, for every output format. */
static void append_outcome(struct ops_buffer *out, const struct advice_report *report)
{
	size_t checked = 0, count = report->findings.count;

	for (size_t i = 0; i < advice_rule_count; i++)
		checked += report->checked[i];
	if (count)
		ops_buffer_printf(out, "%zu finding%s", count, count == 1 ? "" : "s");
	else if (!checked && report->of_samples)
		ops_buffer_append_text(out, "This profile has samples, so no rule of advice applies");
	else if (!checked)
		ops_buffer_append_text(out, "No rule applies to this trace");
	else
		ops_buffer_append_text(out, report->incomplete ? "No findings" : "No problems found");
	if (checked)
		ops_buffer_printf(out, " (%zu of %zu rules applied)", checked, advice_rule_count);
}

#define BASE_ROOM 640
#define EXCLUDED_MIN 0.01 /* share of the base above which it says that something is excluded */

/* Names in JSON and in text. */
static const struct {
	const char *name, *of;
} excluded_parts[ADVICE_EXCLUDED_PARTS] = {
	[ADVICE_EXCLUDED_WAITS] = {"waits_for_cpu", "waiting for a CPU"},
	[ADVICE_EXCLUDED_IMPORTS] = {"imports", "imports"},
	[ADVICE_EXCLUDED_RECORDING] = {"recording", "overhead of recording"},
};

/* Per steady step. */
static double excluded_ms(const struct advice_report *report, int part)
{
	return report->steady ? (double)report->excluded_ns[part] / 1e6 / report->steady : 0;
}

/* An operator ends when its last thread has: its own wait is longer than that of the thread of the steps, which is the measured one. */
static bool excludes_other_threads(const struct advice_report *report, int part)
{
	return part == ADVICE_EXCLUDED_WAITS && excluded_ms(report, part) > (1 + EXCLUDED_MIN) * report->mean_ms * report->waited.ratio;
}

/* ", which excludes 1.9 ms of waiting for a CPU, 310 µs of overhead of recording" */
static void excluded_text(const struct advice_report *report, char *text, size_t room)
{
	size_t used = 0;

	*text = '\0';
	for (int i = 0; i < ADVICE_EXCLUDED_PARTS; i++) {
		double ms = excluded_ms(report, i);
		char time[OPS_FORMAT_ROOM];

		if (!(ms > EXCLUDED_MIN * report->step_ms))
			continue;
		ops_format_duration(time, ms * 1e6);
		used += (size_t)snprintf(text + used, room - used, "%s %s of %s%s", used ? "," : ", which excludes", time, excluded_parts[i].of,
		                         excludes_other_threads(report, i) ? " by all threads of operators" : "");
	}
}

/* Writes what the percentages refer to, for every output format; nothing without percentages. */
static size_t base_text(const struct advice_report *report, char *text, size_t room)
{
	bool waited = view_waited_distorts(report->waited);
	char step[OPS_FORMAT_ROOM], mean[OPS_FORMAT_ROOM], excluded[BASE_ROOM / 4];
	size_t used;

	if ((!report->findings.count && !advice_rest_is_shown(&report->rest)) || !(report->step_ms > 0))
		return 0;
	ops_format_duration(step, report->step_ms * 1e6);
	ops_format_duration(mean, report->mean_ms * 1e6);
	excluded_text(report, excluded, sizeof(excluded));
	if (report->traces > 1)
		used = (size_t)snprintf(text, room, "Percentages are shares of the average steady step of a trace.");
	else if (!report->steps)
		used = (size_t)snprintf(text, room, "The trace has no steps. Percentages are shares of its total time, %s%s.", step,
		                        excluded);
	else if (report->steady == report->steps)
		used = (size_t)snprintf(text, room, "Percentages are shares of the average step, %s%s.", step, excluded);
	else
		used = (size_t)snprintf(text, room, "Percentages are shares of the average steady step, %s%s (%u of %u steps are steady; "
		                        "the mean step takes %s).", step, excluded, report->steady, report->steps, mean);
	if (report->waited.ratio > VIEW_WAITED_MUCH)
		used += (size_t)snprintf(text + used, room - used, " %s%s waited for a CPU for %s of %s time, because %s had it%s.",
		                         report->steps ? "Steps" : "The recording", report->traces > 1 ? " of a trace" : "",
		                         ops_figure_of_percent(100 * report->waited.ratio).text, report->steps ? "their" : "its",
		                         view_waited_for(report->waited), waited ? ": figures are too high" : "");
	if (report->outside_ratio > VIEW_OUTSIDE_MUCH)
		used += (size_t)snprintf(text + used, room - used, " %s of the time of operators%s is not in a step, and was not examined.",
		                         ops_figure_of_percent(100 * report->outside_ratio).text, report->traces > 1 ? " of the first trace" : "");
	return used;
}

void advice_write_json(const struct advice_report *report, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};
	struct ops_buffer summary = {0};
	char text[BASE_ROOM];

	ops_json_open(&json, '{');
	OPS_JSON_LIST(&json, "findings", i, report->findings.count,
	              write_finding(&json, report, &report->findings.items[i], false));
	advice_rest_write_json(report, &json);
	/* Of the first trace; percentages are shares of this. */
	ops_json_member_open(&json, "base", '{');
	ops_json_member_number(&json, "ms", report->step_ms);
	ops_json_member_number(&json, "average_step_ms", report->mean_ms);
	ops_json_member_if(&json, "steady_steps", true, report->steady);
	ops_json_member_if(&json, "steps", true, report->steps);
	ops_json_member_open(&json, "excluded_ms", '{');
	for (int i = 0; i < ADVICE_EXCLUDED_PARTS; i++)
		ops_json_member_number(&json, excluded_parts[i].name, excluded_ms(report, i));
	ops_json_close(&json, '}');
	ops_json_member_number(&json, "waited_for_cpu_ratio", report->waited.ratio); /* null: not recorded */
	ops_json_member_number(&json, "outside_of_steps_ratio", report->outside_ratio);
	ops_json_key(&json, "text");
	ops_json_text(&json, text, base_text(report, text, sizeof(text)));
	ops_json_close(&json, '}');
	ops_json_member_open(&json, "checked", '[');
	for (size_t i = 0; i < advice_rule_count; i++)
		if (report->checked[i])
			ops_json_word(&json, advice_rules[i]->id);
	ops_json_close(&json, ']');
	ops_json_member(&json, "rules", (int64_t)advice_rule_count);
	append_outcome(&summary, report);
	ops_json_key(&json, "summary");
	ops_json_text(&json, summary.bytes, summary.size);
	ops_json_close(&json, '}');
	out->failed |= summary.failed;
	ops_buffer_release(&summary);
	ops_buffer_append_text(out, "\n");
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

#define WIDTH 79
#define MICROSECONDS "\302\265s" /* the unit of durations */

/* Texts of rules have code in backticks. Other characters with a meaning in Markdown are escaped. */
static void append_byte(const struct advice_style *style, char byte, bool *quoted)
{
	if (byte == '`')
		*quoted = !*quoted;
	else if (style->markdown && !*quoted && byte && strchr("_*<|", byte))
		ops_buffer_append_text(style->out, "\\");
	ops_buffer_append(style->out, &byte, 1);
}

static bool has_markup(const char *word, size_t size)
{
	if (size >= strlen(MICROSECONDS) && !memcmp(word, MICROSECONDS, strlen(MICROSECONDS))) {
		word += strlen(MICROSECONDS);
		size -= strlen(MICROSECONDS);
	}
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)word[i] >= 0x7f || (unsigned char)word[i] < ' ' || strchr("`*_<>|[]!@\\~#&$", word[i]))
			return true;
	return memmem(word, size, "://", 3) || memmem(word, size, "www.", 4);
}

/* Texts about a trace contain its names, which may be any bytes. */
static void append_word(const struct advice_style *style, const char *word, size_t size)
{
	if (!style->markdown)
		ops_plain_append(style->out, word, size);
	else if (has_markup(word, size))
		ops_code_append(style->out, word, size);
	else
		ops_buffer_append(style->out, word, size);
}

static void advice_write_append_wrapped(const struct advice_style *style, enum advice_speaker speaker, const char *text,
                                        size_t size, size_t indent)
{
	struct ops_buffer paragraph = {0};
	struct advice_style words = *style;
	bool quoted = false;

	words.out = &paragraph;
	for (size_t at = 0, word; at < size; at += word) {
		while (at < size && text[at] == ' ')
			at++;
		for (word = 0; at + word < size && text[at + word] != ' ';)
			word++;
		ops_buffer_append_text(&paragraph, word && paragraph.size ? " " : "");
		if (speaker == ADVICE_OF_TRACE)
			append_word(&words, text + at, word);
		for (size_t i = 0; speaker == ADVICE_OF_RULE && i < word; i++)
			append_byte(&words, text[at + i], &quoted);
	}
	style->out->failed |= paragraph.failed;
	fit_wrap(style->out, (struct ops_string){ops_buffer_text(&paragraph), paragraph.size}, style->markdown ? 0 : WIDTH, indent);
	ops_buffer_release(&paragraph);
}

/* Appends a paragraph. */
void advice_append_words(const struct advice_style *style, enum advice_speaker speaker, const char *text, size_t size)
{
	advice_write_append_wrapped(style, speaker, text, size, style->markdown ? 0 : 3);
}

/* The same, after a label. */
static void append_paragraph(const struct advice_style *style, const char *label, enum advice_speaker speaker, const char *text,
                             size_t size)
{
	struct ops_buffer paragraph = {0};

	ops_buffer_append_text(style->out, style->markdown ? "\n" : "");
	if (style->markdown)
		ops_buffer_printf(style->out, "**%s** ", label);
	else
		ops_buffer_printf(&paragraph, "%s ", label);
	ops_buffer_append(&paragraph, text, size);
	advice_append_words(style, speaker, ops_buffer_text(&paragraph), paragraph.size);
	style->out->failed |= paragraph.failed;
	ops_buffer_release(&paragraph);
}

/* --- places --------------------------------------------------------------------------------------------------------- */

static void append_name(const struct advice_style *style, struct ops_string name)
{
	(style->markdown ? ops_code_append : ops_plain_append)(style->out, name.bytes, name.size);
}

void advice_append_through(struct ops_buffer *out, const struct advice_through *through)
{
	struct ops_string path = ops_file_in_package(through->file);

	ops_buffer_append(out, path.bytes, path.size);
	ops_buffer_printf(out, ":%u in ", through->line);
	ops_buffer_append(out, through->function.bytes, through->function.size);
}

/* Writes a line for a line of a library. */
static void append_through_line(const struct advice_style *style, const struct advice_through *through)
{
	struct ops_buffer text = {0};

	ops_buffer_append_text(&text, "through ");
	advice_append_through(&text, through);
	ops_buffer_append_text(style->out, style->markdown ? "  - " : "");
	advice_write_append_wrapped(style, ADVICE_OF_TRACE, ops_buffer_text(&text), text.size, style->markdown ? 0 : 6);
	style->out->failed |= text.failed;
	ops_buffer_release(&text);
}

/* Writes "at train.py:12 in step, aten::mm, module net.0", as far as known, on a new line if the line gets too long. */
static void append_where(const struct advice_style *style, const struct advice_where *where)
{
	const struct {
		const char *before;
		struct ops_string name;
	} parts[] = {{"", where->file}, {"in ", where->function}, {"", where->operator_name}, {"module ", where->module}};
	size_t column = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t size = strlen(parts[i].before) + parts[i].name.size;

		if (!parts[i].name.size)
			continue;
		if (!column)
			ops_buffer_append_text(style->out, style->markdown ? "- " : "   at ");
		else if (!style->markdown && column + 2 + size > WIDTH)
			ops_buffer_append_text(style->out, "\n      ");
		else
			ops_buffer_append_text(style->out, i == 1 ? " " : ", ");
		column = (!column || column + 2 + size > WIDTH ? 6 : column + 2) + size;
		ops_buffer_append_text(style->out, parts[i].before);
		append_name(style, parts[i].name);
		if (i == 0 && where->line)
			ops_buffer_printf(style->out, ":%u", where->line);
	}
	ops_buffer_append_text(style->out, column ? "\n" : "");
	for (size_t i = 0; i < where->through_count; i++)
		append_through_line(style, &where->through[i]);
}

/* --- findings ------------------------------------------------------------------------------------------------------- */

/* Findings without a gain in time are about memory, or show where time goes. */
static bool gains(const struct advice_finding *finding)
{
	return finding->gain_pct >= 0.05;
}

bool advice_is_per_step(const struct advice_report *report)
{
	return report->steps || report->traces > 1;
}

/* ": saves about 12.3 ms a step (4.5 %, between 2.0 % and 9.8 %; waited for a CPU: 23.0 %)" */
static void format_gain(const struct advice_report *report, const struct advice_finding *finding, bool with_interval, char text[GAIN_TEXT_ROOM])
{
	char ms[OPS_FORMAT_ROOM], warning[GAIN_ROOM], interval[GAIN_ROOM] = "";
	bool warns = format_gain_warning(report, warning);

	if (!gains(finding))
		return;
	if (with_interval)
		format_interval(finding, interval);
	ops_format_duration(ms, finding->gain_ms * 1e6);
	snprintf(text, GAIN_TEXT_ROOM, ": saves %s %s%s (%s%s%s%s%s)", advice_bound_name(finding->bound), ms,
	         advice_is_per_step(report) ? " a step" : "", ops_figure_of_percent(finding->gain_pct).text, with_interval ? ", " : "", interval, warns ? "; " : "",
	         warns ? warning : "");
}

static void append_judgement(const struct advice_style *style, const struct advice_report *report,
                             const struct advice_finding *finding)
{
	char text[2 * GAIN_TEXT_ROOM], gain[GAIN_TEXT_ROOM] = "";

	format_gain(report, finding, true, gain);
	snprintf(text, sizeof(text), "%s%s, confidence %s [%s]", advice_severity_name(finding->severity), gain,
	         advice_confidence_name(finding->confidence), finding->rule->id);
	advice_append_words(style, ADVICE_OF_RULE, text, strlen(text));
}

/* "measured: saves 31.2 % of a step, 12.3 ms (29.0 % to 33.1 %), results equal [fused-optimizer]" */
static void append_proof(const struct advice_style *style, const struct advice_proof *proof)
{
	bool helps = proof->lower_pct > 0, costs = proof->upper_pct < 0;
	char text[384], ms[OPS_FORMAT_ROOM];

	if (!proof->is_known)
		return;
	ops_format_duration(ms, fabs(proof->gain_ms) * 1e6);
	if (helps || costs)
		snprintf(text, sizeof(text), "measured: %s %s of a step, %s (%s to %s), results %s [%.*s]",
		         helps ? "saves" : "costs", ops_figure_of_percent(fabs(proof->gain_pct)).text, ms, ops_figure_of_percent(helps ? proof->lower_pct : -proof->upper_pct).text,
		         ops_figure_of_percent(helps ? proof->upper_pct : -proof->lower_pct).text, proof->results, (int)proof->fix.size, proof->fix.bytes);
	else
		snprintf(text, sizeof(text), "measured: no difference found (%s to %s of a step), results %s [%.*s]",
		         ops_figure_of_change(proof->lower_pct).text, ops_figure_of_change(proof->upper_pct).text, proof->results, (int)proof->fix.size, proof->fix.bytes);
	ops_buffer_append_text(style->out, style->markdown ? "\n" : "");
	advice_append_words(style, ADVICE_OF_RULE, text, strlen(text));
}

void advice_append_code(const struct advice_style *style, const char *code)
{
	ops_buffer_append_text(style->out, style->markdown ? "\n```python\n" : "");
	while (*code) {
		size_t size = strcspn(code, "\n");

		ops_buffer_printf(style->out, "%s%.*s\n", style->markdown ? "" : "       ", (int)size, code);
		code += size + (code[size] == '\n');
	}
	ops_buffer_append_text(style->out, style->markdown ? "```\n" : "");
}

static void append_finding(const struct advice_style *style, const struct advice_report *report,
                           const struct advice_finding *finding, size_t number)
{
	const struct advice_rule *rule = finding->rule;

	ops_buffer_printf(style->out, style->markdown ? "\n### %zu. %s\n\n" : "\n%zu. %s\n", number, rule->title);
	append_judgement(style, report, finding);
	append_proof(style, &finding->proof);
	ops_buffer_append_text(style->out, style->markdown ? "\n" : "");
	for (size_t i = 0; i < finding->where_count; i++)
		append_where(style, &finding->where[i]);
	append_paragraph(style, "Evidence:", ADVICE_OF_TRACE, finding->evidence.bytes, finding->evidence.size);
	append_paragraph(style, "Why:", ADVICE_OF_RULE, rule->explanation, strlen(rule->explanation));
	if (finding->detail.size)
		append_paragraph(style, "First:", ADVICE_OF_TRACE, finding->detail.bytes, finding->detail.size);
	append_paragraph(style, "To do:", ADVICE_OF_RULE, rule->advice, strlen(rule->advice));
	if (rule->code)
		advice_append_code(style, rule->code);
	ops_buffer_printf(style->out, style->markdown ? "\n<%s>\n" : "   %s\n", rule->link);
}

/* --- report --------------------------------------------------------------------------------------------------------- */

static void append_count(const struct advice_style *style, const struct advice_report *report)
{
	append_outcome(style->out, report);
	ops_buffer_append_text(style->out, "\n");
	if (report->incomplete)
		ops_buffer_printf(style->out, "%s%s early, so gains are unknown\n", style->markdown ? "\n" : "",
		                  report->traces > 1 ? "Traces end" : "The trace ends");
}

static void advice_write_append_base(const struct advice_style *style, const struct advice_report *report)
{
	char text[BASE_ROOM];
	size_t used = base_text(report, text, sizeof(text));

	if (!used)
		return;
	ops_buffer_append_text(style->out, style->markdown ? "\n" : "");
	advice_write_append_wrapped(style, ADVICE_OF_TRACE, text, used, 0);
}

/* What `opstrobe run --advise` records of every program. */
#define RECORDED_BY_RUN \
	(ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_ROOF)

/* Says how many more rules a recording by `opstrobe run --advise` would let apply. */
static void append_hint(const struct advice_style *style, const struct advice_report *report)
{
	uint32_t missing = 0;
	size_t more = 0;
	char text[256];

	for (size_t i = 0; i < advice_rule_count; i++) {
		uint32_t needs = advice_rules[i]->needs & ~report->has;

		if (!needs || (needs & ~RECORDED_BY_RUN))
			continue;
		missing |= needs;
		more++;
	}
	if (!more || !(report->has & ADVICE_NEEDS_OPERATORS))
		return;
	if (missing == ADVICE_NEEDS_ROOF)
		snprintf(text, sizeof(text), "To apply %zu more rule%s, run `opstrobe roof` before recording: it measures the machine.", more,
		         more == 1 ? "" : "s");
	else
		snprintf(text, sizeof(text), "To apply %zu more rule%s, record with `opstrobe run --advise`, or with_stack, record_shapes and "
		         "profile_memory%s.", more, more == 1 ? "" : "s", report->has & ADVICE_NEEDS_STEPS ? "" : ", and mark steps");
	ops_buffer_append_text(style->out, "\n");
	advice_append_words(style, ADVICE_OF_RULE, text, strlen(text));
}

static struct ops_string file_name(struct ops_string path)
{
	const char *slash = memrchr(path.bytes, '/', path.size);

	return slash ? (struct ops_string){slash + 1, path.size - (size_t)(slash + 1 - path.bytes)} : path;
}

/* A table of the findings. */
static void append_summary(const struct advice_style *style, const struct advice_report *report)
{
	ops_buffer_printf(style->out, "\n| finding | severity | gain%s | where |\n|---|---|---|---|\n",
	                  advice_is_per_step(report) ? " a step" : "");
	for (size_t i = 0; i < report->findings.count; i++) {
		const struct advice_finding *finding = &report->findings.items[i];
		char ms[OPS_FORMAT_ROOM];

		ops_format_duration(ms, finding->gain_ms * 1e6);
		ops_buffer_printf(style->out, "| %s | %s | ", finding->rule->title, advice_severity_name(finding->severity));
		if (gains(finding))
			ops_buffer_printf(style->out, "%s %s (%s)", advice_bound_name(finding->bound), ms,
			                  ops_figure_of_percent(finding->gain_pct).text);
		ops_buffer_append_text(style->out, " | ");
		if (finding->where_count && finding->where[0].file.size) {
			append_name(style, file_name(finding->where[0].file));
			ops_buffer_printf(style->out, ":%u", finding->where[0].line);
		} else if (finding->where_count) {
			append_name(style, finding->where[0].operator_name);
		}
		ops_buffer_append_text(style->out, " |\n");
	}
}

static bool has_place(const struct advice_where *where)
{
	return where->file.size || where->module.size || where->operator_name.size;
}

/* A line with time that no finding explains. */
static void append_rest_line(const struct advice_style *style, const struct advice_report *report, const struct advice_rest_line *line)
{
	struct advice_where where = line->where;
	struct ops_buffer text = {0};

	if (where.line)
		where.operator_name = (struct ops_string){"", 0}; /* the description has them all */
	where.through_count = 0;
	append_where(style, &where);
	advice_rest_describe(report, line, &text);
	if (style->markdown)
		ops_buffer_append_text(style->out, has_place(&where) ? "  " : "- ");
	advice_write_append_wrapped(style, ADVICE_OF_TRACE, ops_buffer_text(&text), text.size, style->markdown ? 0 : has_place(&where) ? 6 : 3);
	style->out->failed |= text.failed;
	ops_buffer_release(&text);
}

static void append_rest(const struct advice_style *style, const struct advice_report *report)
{
	const char *hint = advice_rest_hint(report);
	char title[REST_TITLE_ROOM];

	if (!advice_rest_is_shown(&report->rest))
		return;
	advice_rest_title(report, title);
	ops_buffer_printf(style->out, style->markdown ? "\n### %s\n\n" : "\n%s\n", title);
	for (size_t i = 0; i < report->rest.lines.count; i++)
		append_rest_line(style, report, &report->rest.lines.items[i]);
	if (*hint) {
		ops_buffer_append_text(style->out, style->markdown ? "\n" : "");
		advice_append_words(style, ADVICE_OF_TRACE, hint, strlen(hint));
	}
}

void advice_write_text(const struct advice_report *report, bool markdown, struct ops_buffer *out)
{
	const struct advice_style style = {out, markdown};

	ops_buffer_append_text(out, markdown ? "## Advice\n\n" : "");
	append_count(&style, report);
	advice_write_append_base(&style, report);
	if (markdown && report->findings.count > 1)
		append_summary(&style, report);
	for (size_t i = 0; i < report->findings.count; i++)
		append_finding(&style, report, &report->findings.items[i], i + 1);
	append_rest(&style, report);
	append_hint(&style, report);
}

#define BRIEF_MAX 3

void advice_write_brief(const struct advice_report *report, struct ops_buffer *out)
{
	const struct advice_style style = {out, false};
	size_t count = report->findings.count, shown = count < BRIEF_MAX ? count : BRIEF_MAX;

	for (size_t i = 0; i < shown; i++) {
		const struct advice_finding *finding = &report->findings.items[i];
		char gain[GAIN_TEXT_ROOM] = "";

		format_gain(report, finding, false, gain);
		ops_buffer_printf(out, "%zu. %s%s\n", i + 1, finding->rule->title, gain);
		if (finding->where_count)
			append_where(&style, &finding->where[0]);
	}
	if (shown < count)
		ops_buffer_printf(out, "%zu more. ", count - shown);
	if (count)
		ops_buffer_append_text(out, "Run opstrobe advise for explanations and fixes\n");
	else
		append_count(&style, report);
	for (size_t i = 0; !count && advice_rest_is_shown(&report->rest) && i < report->rest.lines.count; i++) {
		const struct advice_rest_line *line = &report->rest.lines.items[i];

		if (!has_place(&line->where))
			continue;
		ops_buffer_append_text(out, "Most time:\n");
		append_rest_line(&style, report, line);
		break;
	}
}
