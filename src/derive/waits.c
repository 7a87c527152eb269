/* SPDX-License-Identifier: Apache-2.0
 *
 * How the operating system scheduled each step; see waits.h.
 */
#include "derive/waits.h"

#include <math.h>

#include "base/alloc.h"
#include "base/json_walk.h"
#include "base/text.h"

/* Skips rows that are not a list of five numbers. Negative times count as 0. */
static bool waits_add_row(struct ops_step_waits *waits, struct ops_string row)
{
	struct ops_json_walk walk = ops_json_walk(row.bytes, row.size);
	int64_t fields[5] = {-1, 0, 0, 0, 0};
	struct ops_string value;

	for (size_t i = 0; i < 5 && ops_json_next_element(&walk, &value); i++)
		if (!ops_json_parse_integer(value, &fields[i]))
			return true;
	for (size_t i = 1; i < 5; i++)
		fields[i] = fields[i] < 0 ? 0 : fields[i];
	return OPS_ARRAY_APPEND(&waits->items, (struct ops_step_wait){fields[0], fields[1], fields[2], fields[3], fields[4]});
}

static double waits_share(struct ops_string value, double most)
{
	double share;

	return ops_json_parse_number(value, &share) && share > 0 ? fmin(share, most) : 0;
}

bool ops_step_waits_read(struct ops_step_waits *waits, const struct ops_trace *trace)
{
	struct ops_string json, key, value, row;
	struct ops_json_walk walk, steps;
	bool done = true;

	*waits = (struct ops_step_waits){0};
	if (!ops_trace_find_metadata(trace, "machine", &json) || json.bytes[0] != '{')
		return true;
	walk = ops_json_walk(json.bytes, json.size);
	while (done && ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "threads_share"))
			waits->threads_share = waits_share(value, 1);
		else if (ops_string_is(key, "children_share"))
			waits->children_share = waits_share(value, 1 - waits->threads_share);
		if (!ops_string_is(key, "steps"))
			continue;
		steps = ops_json_walk(value.bytes, value.size);
		while (done && ops_json_next_element(&steps, &row))
			done = waits_add_row(waits, row);
	}
	return done;
}

void ops_step_waits_release(struct ops_step_waits *waits)
{
	OPS_ARRAY_RELEASE(&waits->items);
}

const struct ops_step_wait *ops_step_waits_find(const struct ops_step_waits *waits, int64_t number, size_t *cursor)
{
	for (size_t i = *cursor; i < waits->items.count; i++)
		if (waits->items.items[i].number == number) {
			*cursor = i + 1;
			return &waits->items.items[i];
		}
	return NULL;
}
