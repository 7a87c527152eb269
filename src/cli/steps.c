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

#define RANGE_ROOM 64

/* Writes "step 3" or "steps 3 to 5". */
static void name_range(char text[RANGE_ROOM], uint64_t first, uint64_t last)
{
	int size = snprintf(text, RANGE_ROOM, first == last ? "step %" PRIu64 : "steps %" PRIu64, first);

	if (first != last)
		snprintf(text + size, RANGE_ROOM - (size_t)size, " to %" PRIu64, last);
}

/* Says of the whole trace that the steps are only a part of it. */
static void add_coverage(struct cli_steps *steps, const char *path, const struct ops_trace *trace)
{
	uint64_t first, last;
	char range[RANGE_ROOM], what[3 * RANGE_ROOM];
	int size;

	if (!ops_trace_opening(trace, &first, &last))
		return;
	name_range(range, first, last);
	size = snprintf(what, sizeof(what), "the whole trace; %s alone: --steps %" PRIu64, range, first);
	if (first != last)
		snprintf(what + size, sizeof(what) - (size_t)size, ":%" PRIu64, last);
	add_to_head(steps, path, what);
}

enum ops_code cli_steps_cut(struct cli_steps *steps, const char *path, const struct ops_trace **trace, struct ops_error *error)
{
	struct ops_trace_cut cut = {0};
	struct ops_trace *part = NULL;
	char range[RANGE_ROOM];
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
	name_range(range, steps->first, steps->last);
	add_to_head(steps, path, range);
	return OPS_OK;
}

void cli_steps_put_head(struct cli_steps *steps, enum ops_code code)
{
	if (!code && steps->head)
		fputs(steps->head, stdout);
	free(steps->head);
	steps->head = NULL;
}
