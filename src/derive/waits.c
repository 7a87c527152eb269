/* SPDX-License-Identifier: Apache-2.0
 *
 * How the operating system scheduled each step; see waits.h.
 */
#include "derive/waits.h"

#include <math.h>

#include "base/alloc.h"
#include "base/json_walk.h"
#include "base/text.h"

/* Share of a time in which a thread was sampled, below which the samples do not describe it. */
#define SAMPLED_MIN 0.5

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

/* --- samples of threads --------------------------------------------------------------------------------------------- */

/* A time in which a thread was ready or ran. Samples know how long it did either, but not in which order (python/ext/thread_states.c):
 * a span of the first kind, then one of the second. */
struct activity {
	int64_t start_ns, end_ns;
	int64_t ready_ns;
};

/* Returns the activity that begins with a span, and moves behind it. */
static struct activity waits_next_activity(const struct ops_thread_samples *thread, size_t *at)
{
	const struct ops_thread_span *span = &thread->spans.items[(*at)++];
	bool is_ready = span->state == OPS_THREAD_READY;
	struct activity activity = {span->start_ns, span->end_ns, is_ready ? span->end_ns - span->start_ns : 0};

	if (is_ready && *at < thread->spans.count && span[1].state == OPS_THREAD_RUNNING && span[1].start_ns == span->end_ns) {
		activity.end_ns = span[1].end_ns;
		(*at)++;
	}
	return activity;
}

bool ops_step_wait_sampled(const struct ops_thread_samples *thread, int64_t start_ns, int64_t end_ns, struct ops_step_wait *ret_wait)
{
	const struct ops_thread_span *spans = thread->spans.items;
	double waited_ns = 0, ran_ns = 0, known_ns = 0, length_ns = (double)end_ns - (double)start_ns;
	size_t at = ops_thread_span_after(thread, start_ns);

	if (at > 0 && at < thread->spans.count && spans[at].state == OPS_THREAD_RUNNING && spans[at - 1].state == OPS_THREAD_READY &&
	    spans[at - 1].end_ns == spans[at].start_ns)
		at--;
	while (at < thread->spans.count && spans[at].start_ns < end_ns) {
		enum ops_thread_state state = spans[at].state;
		struct activity activity = waits_next_activity(thread, &at);
		double all_ns = (double)(activity.end_ns - activity.start_ns);
		double inside_ns = fmin((double)activity.end_ns, (double)end_ns) - fmax((double)activity.start_ns, (double)start_ns);

		known_ns += fmax(0, inside_ns);
		if (inside_ns <= 0 || (state != OPS_THREAD_READY && state != OPS_THREAD_RUNNING))
			continue;
		waited_ns += inside_ns * (double)activity.ready_ns / all_ns;
		ran_ns += inside_ns * (1 - (double)activity.ready_ns / all_ns);
	}
	if (known_ns <= SAMPLED_MIN * length_ns)
		return false;
	*ret_wait = (struct ops_step_wait){.ran_ns = llround(ran_ns), .waited_ns = llround(waited_ns)};
	return true;
}
