/* SPDX-License-Identifier: Apache-2.0
 *
 * The overhead of a black box: the metadata "black_box" of its traces, which is also a member of reports.
 */
#include <opstrobe/internal/format.h>
#include <opstrobe/internal/incidents.h>

#include <stdio.h>

#include "analyze/incident/incident.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"

static bool percent_of(struct ops_string object, const char *key, double *ret_percent)
{
	struct ops_string value;

	if (!ops_json_find_member(object, key, &value) || !ops_json_parse_number(value, ret_percent))
		return false;
	*ret_percent *= 100;
	return true;
}

/* What the overhead is a share of. */
struct overhead_unit {
	const char *share, *shadows;
};

/* Recordings of earlier versions compared steps, and do not say so. */
static const struct overhead_unit *overhead_unit_find(struct ops_string json)
{
	static const struct overhead_unit step = {"a step", "shadow steps"}, call = {"a call of the model", "shadow calls"};
	struct ops_string unit;

	return ops_json_find_member(json, "unit", &unit) && ops_string_is(unit, "\"call\"") ? &call : &step;
}

struct measured {
	bool is_known;
	double share, low, high; /* percent */
	int64_t steps; /* number of shadow steps, or calls */
};

/* Returns false if the overhead was not measured. */
static bool overhead_read(struct ops_string json, struct measured *ret_measured)
{
	struct ops_string overhead, steps;

	if (!ops_json_find_member(json, "overhead", &overhead) || !overhead.size)
		return false;
	ret_measured->is_known = overhead.bytes[0] == '{';
	if (!ret_measured->is_known)
		return ops_json_find_member(json, "shadow_steps", &steps) && ops_json_parse_integer(steps, &ret_measured->steps);
	return percent_of(overhead, "share", &ret_measured->share) && percent_of(overhead, "low", &ret_measured->low) &&
	       percent_of(overhead, "high", &ret_measured->high) && ops_json_find_member(overhead, "shadow_steps", &steps) &&
	       ops_json_parse_integer(steps, &ret_measured->steps);
}

bool ops_overhead_describe(struct ops_string json, char ret_text[OPS_OVERHEAD_ROOM])
{
	const struct overhead_unit *unit = overhead_unit_find(json);
	struct measured measured;

	if (!overhead_read(json, &measured))
		return false;
	if (measured.is_known)
		snprintf(ret_text, OPS_OVERHEAD_ROOM, "%s of %s (%s to %s, %lld %s)", ops_figure_of_percent(measured.share).text, unit->share,
		         ops_figure_of_percent(measured.low).text, ops_figure_of_percent(measured.high).text, (long long)measured.steps, unit->shadows);
	else
		snprintf(ret_text, OPS_OVERHEAD_ROOM, "not yet known (%lld %s)", (long long)measured.steps, unit->shadows);
	return true;
}

/* Text about the events that each reduced detail leaves out. */
static const struct reduced_detail {
	const char *name, *sentence, *note;
} reduced_details[] = {
	{"\"allocations\"", "operators are not recorded", "without operators"},
	{"\"modules\"", "operators and allocations are not recorded", "without operators and allocations"},
	{"\"ranges\"", "operators, allocations and calls of modules are not recorded", "without operators, allocations and modules"},
	{"\"steps\"", "only steps are recorded", "only steps"},
};

/* Returns NULL if everything is recorded. */
static const struct reduced_detail *reduced_detail_find(struct ops_string json)
{
	struct ops_string detail;

	if (!ops_json_find_member(json, "detail", &detail))
		return NULL;
	for (size_t i = 0; i < sizeof(reduced_details) / sizeof(reduced_details[0]); i++)
		if (ops_string_is(detail, reduced_details[i].name))
			return &reduced_details[i];
	return NULL;
}

void incident_overhead_append(struct ops_buffer *out, struct ops_string json)
{
	const struct reduced_detail *reduced = reduced_detail_find(json);
	struct measured measured;

	if (!overhead_read(json, &measured))
		return;
	if (measured.is_known)
		ops_buffer_printf(out, "%s (%s to %s)", ops_figure_of_percent(measured.share).text, ops_figure_of_percent(measured.low).text, ops_figure_of_percent(measured.high).text);
	else
		ops_buffer_append_text(out, "not yet known");
	if (reduced)
		ops_buffer_printf(out, ", %s", reduced->note);
}

bool ops_detail_describe(struct ops_string json, char ret_text[OPS_OVERHEAD_ROOM])
{
	const struct reduced_detail *reduced = reduced_detail_find(json);
	double exceeded, budget;

	if (!reduced || !percent_of(json, "exceeded", &exceeded) || !percent_of(json, "budget", &budget))
		return false;
	snprintf(ret_text, OPS_OVERHEAD_ROOM, "%s: recording %s %s of %s, and the budget is %s", reduced->sentence,
	         ops_json_is_true(json, "expected") ? "would take about" : "took", ops_figure_of_percent(exceeded).text, overhead_unit_find(json)->share, ops_figure_of_percent(budget).text);
	return true;
}
