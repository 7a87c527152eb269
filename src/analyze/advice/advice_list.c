/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of rules as a table or as a page of the manual. All texts are those of the rules.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/result.h"

/* What the needs of a rule require of a trace. */
static const struct {
	uint32_t need;
	const char *text;
} needs[] = {
	{ADVICE_NEEDS_OPERATORS, "operators"},
	{ADVICE_NEEDS_PYTHON, "Python calls (`with_stack=True`)"},
	{ADVICE_NEEDS_SHAPES, "shapes (`record_shapes=True`)"},
	{ADVICE_NEEDS_MEMORY, "memory (`profile_memory=True`)"},
	{ADVICE_NEEDS_STORAGES, "storages of tensors (recorded by Opstrobe)"},
	{ADVICE_NEEDS_ROOF, "the roof of the machine (`opstrobe roof`)"},
	{ADVICE_NEEDS_DEVICE, "work on a device"},
	{ADVICE_NEEDS_STEPS, "two or more steps"},
	{ADVICE_NEEDS_COMMUNICATION, "collectives"},
	{ADVICE_NEEDS_RANKS, "ranks with collectives"},
};

static void append_needs(struct ops_buffer *out, uint32_t of)
{
	bool first = true;

	for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++) {
		if (!(of & needs[i].need))
			continue;
		ops_buffer_printf(out, "%s%s", first ? "" : ", ", needs[i].text);
		first = false;
	}
}

/* --- page ----------------------------------------------------------------------------------------------------------- */

static void advice_list_append_text(const struct advice_style *style, const char *before, const char *text)
{
	ops_buffer_append_text(style->out, before);
	advice_append_words(style, ADVICE_OF_RULE, text, strlen(text));
}

static void append_rule(const struct advice_style *style, const struct advice_rule *rule)
{
	ops_buffer_printf(style->out, "\n## %s\n\n**%s.**\n\n", rule->id, rule->title);
	advice_list_append_text(style, "- **Reported if:** ", rule->condition);
	ops_buffer_append_text(style->out, "- **Predicted gain:** ");
	if (strncmp(rule->gain, "none", 4) != 0)
		ops_buffer_printf(style->out, "%s ", advice_bound_name(rule->bound));
	advice_list_append_text(style, "", rule->gain);
	ops_buffer_append_text(style->out, "- **Requires:** ");
	append_needs(style->out, rule->needs);
	if (rule->severity_max)
		ops_buffer_printf(style->out, "\n- **Severity:** at most %s", advice_severity_name(rule->severity_max));
	advice_list_append_text(style, "\n\nWhy: ", rule->explanation);
	advice_list_append_text(style, "\nTo do: ", rule->advice);
	if (rule->code)
		advice_append_code(style, rule->code);
	ops_buffer_printf(style->out, "\n[Documentation](%s)\n", rule->link);
}

static void advice_list_write_page(struct ops_buffer *out)
{
	const struct advice_style style = {out, true};

	ops_buffer_printf(out, "# Rules of advice\n\n"
	                  "<!-- Written by `opstrobe advise --list-rules --format markdown`: change the texts in src/analyze/advice. -->\n\n"
	                  "[`opstrobe advise`](../manual/advice.md) applies these %zu rules to a trace or a run.\n\n"
	                  "| rule | finding | requires |\n|---|---|---|\n", advice_rule_count);
	for (size_t i = 0; i < advice_rule_count; i++) {
		ops_buffer_printf(out, "| [%s](#%s) | %s | ", advice_rules[i]->id, advice_rules[i]->id, advice_rules[i]->title);
		append_needs(out, advice_rules[i]->needs);
		ops_buffer_append_text(out, " |\n");
	}
	for (size_t i = 0; i < advice_rule_count; i++)
		append_rule(&style, advice_rules[i]);
}

/* --- table ---------------------------------------------------------------------------------------------------------- */

enum { IN_DATA = 1 };

static const struct result_column columns[] = {
	{.name = "id", .type = RESULT_TEXT, .title = "Rule", .about = "Identifier", RESULT_FIELD(struct advice_rule, id)},
	{.name = "title", .type = RESULT_TEXT, .title = "Finding", .about = "What it finds", RESULT_FIELD(struct advice_rule, title)},
	{.name = "condition", .type = RESULT_TEXT, .about = "When it reports a finding", .option = IN_DATA, .when = "in JSON and CSV",
	 RESULT_FIELD(struct advice_rule, condition)},
	{.name = "gain", .type = RESULT_TEXT, .about = "How the gain is computed", .option = IN_DATA, .when = "in JSON and CSV",
	 RESULT_FIELD(struct advice_rule, gain)},
	{.name = "explanation", .type = RESULT_TEXT, .about = "Why it costs time or memory", .option = IN_DATA, .when = "in JSON and CSV",
	 RESULT_FIELD(struct advice_rule, explanation)},
	{.name = "advice", .type = RESULT_TEXT, .about = "What to change, and how to check that it helped", .option = IN_DATA,
	 .when = "in JSON and CSV", RESULT_FIELD(struct advice_rule, advice)},
	{.name = "link", .type = RESULT_TEXT, .about = "Documentation", .option = IN_DATA, .when = "in JSON and CSV",
	 RESULT_FIELD(struct advice_rule, link)},
};
static const struct result_declaration table_rules = RESULT_DECLARATION("rules", "A rule of advice", columns);

static bool advice_list_write_table(enum ops_format format, struct ops_buffer *out)
{
	struct result result;
	bool done;

	result_init(&result);
	result_declare(&result.table, &table_rules, format == OPS_FORMAT_TEXT ? 0 : IN_DATA);
	for (size_t i = 0; i < advice_rule_count; i++)
		result_add(&result.table, advice_rules[i]);
	done = result_write(&result, format, out);
	result_release(&result);
	return done;
}

enum ops_code ops_advice_rules(enum ops_format format, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};

	if (format == OPS_FORMAT_MARKDOWN)
		advice_list_write_page(&out);
	else
		out.failed |= !advice_list_write_table(format, &out);
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
