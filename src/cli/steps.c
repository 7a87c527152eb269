/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that a command lists; see steps.h.
 */
#include "steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "cli.h"

bool cli_steps_range(const char *command, const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
	if (ops_steps_parse(text, ret_first, ret_last))
		return true;
	cli_log("opstrobe %s: invalid range of steps '%s': not a step such as 3, or a first and a last one such as 3:5\n", command, text);
	return false;
}

bool cli_steps_parse(const char *command, const char *text, enum ops_format format, struct cli_steps *ret_steps)
{
	*ret_steps = (struct cli_steps){.is_range = text, .is_text = format == OPS_FORMAT_TEXT || format == OPS_FORMAT_MARKDOWN};
	return !text || cli_steps_range(command, text, &ret_steps->first, &ret_steps->last);
}

/* Adds "NAME: ", what is listed, and a blank line. */
static void add_to_head(struct cli_steps *steps, const char *path, const char *what)
{
	char name[4096] = "", *head = NULL;

	if (!steps->is_text)
		return;
	if (steps->by_name)
		snprintf(name, sizeof(name), "%s", path);
	ops_make_plain(name);
	if (asprintf(&head, "%s%s%s%s\n\n", steps->head ? steps->head : "", name, *name ? ": " : "", what) < 0)
		return;
	free(steps->head);
	steps->head = head;
}

/* Says of the whole trace that the steps are only a part of it. */
static void add_coverage(struct cli_steps *steps, const char *path, const struct ops_trace *trace)
{
	uint64_t first, last;
	char what[160];

	if (!ops_trace_opening(trace, &first, &last))
		return;
	if (first == last)
		snprintf(what, sizeof(what), "the whole trace; step %" PRIu64 " alone: --steps %" PRIu64, first, first);
	else
		snprintf(what, sizeof(what), "the whole trace; steps %" PRIu64 " to %" PRIu64 " alone: --steps %" PRIu64 ":%" PRIu64, first, last,
		         first, last);
	add_to_head(steps, path, what);
}

static void add_range(struct cli_steps *steps, const char *path)
{
	char what[64];

	if (steps->first == steps->last)
		snprintf(what, sizeof(what), "step %" PRIu64, steps->first);
	else
		snprintf(what, sizeof(what), "steps %" PRIu64 " to %" PRIu64, steps->first, steps->last);
	add_to_head(steps, path, what);
}

enum ops_code cli_steps_cut(struct cli_steps *steps, const char *path, const struct ops_trace **trace, struct ops_error *error)
{
	struct ops_trace_cut cut = {0};
	struct ops_trace *part = NULL;
	enum ops_code code;

	if (!steps->is_range) {
		add_coverage(steps, path, *trace);
		return OPS_OK;
	}
	code = ops_trace_find_steps(*trace, steps->first, steps->last, &cut.from_ns, &cut.to_ns, error);
	if (!code && !steps->is_whole)
		code = ops_trace_cut(*trace, &cut, &part, error);
	if (code)
		return code;
	if (part) {
		ops_trace_unref((struct ops_trace *)*trace);
		*trace = part;
	}
	add_range(steps, path);
	return OPS_OK;
}

void cli_steps_put_head(struct cli_steps *steps, enum ops_code code)
{
	if (!code && steps->head)
		fputs(steps->head, stdout);
	free(steps->head);
	steps->head = NULL;
}
