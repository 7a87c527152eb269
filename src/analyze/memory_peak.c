/* SPDX-License-Identifier: Apache-2.0
 *
 * The time at which most memory is held, and what holds it: the live blocks at that time, summed by what allocated
 * them. An allocation has the row of its innermost event, so its operator, module, line and stack follow from the tree.
 */
#include <opstrobe/internal/format.h>
#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/trace.h>

#include <stdlib.h>
#include <string.h>

#include "analyze/frames.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/extent.h"
#include "derive/places.h"
#include "trace/names.h"

static const struct ops_string nothing = {"", 0};

/* --- source of an allocation --------------------------------------------------------------------------------------- */

static struct ops_places places_of(const struct ops_memory_timeline *timeline)
{
	return (struct ops_places){timeline->trace, timeline->places};
}

struct ops_string ops_memory_operator(const struct ops_memory_timeline *timeline, uint32_t block)
{
	uint32_t row = timeline->blocks[block].row, operator = row == OPS_NONE ? OPS_NONE : timeline->places[row].operator;

	return operator == OPS_NONE ? nothing : ops_trace_string(timeline->trace, ops_trace_events(timeline->trace)->name[operator]);
}

struct ops_string ops_memory_module(const struct ops_memory_timeline *timeline, uint32_t block)
{
	struct ops_places places = places_of(timeline);

	return ops_place_module(&places, timeline->blocks[block].row);
}

struct ops_string ops_memory_line(const struct ops_memory_timeline *timeline, uint32_t block, uint32_t *ret_line)
{
	struct ops_places places = places_of(timeline);
	struct ops_string file = ops_place_line(&places, timeline->blocks[block].row, ret_line);
	uint32_t stack = timeline->blocks[block].stack;

	return file.size || stack == OPS_NONE ? file : ops_stack_line(ops_trace_string(timeline->trace, stack), ret_line);
}

struct ops_string ops_memory_shape(const struct ops_memory_timeline *timeline, uint32_t block)
{
	uint32_t shape = timeline->blocks[block].shape;

	return shape ? ops_intern_text(timeline->shapes, shape - 1) : nothing;
}

/* --- sums ------------------------------------------------------------------------------------------------------------ */

OPS_ORDER(compare_keys, struct ops_memory_share, OPS_BY_TEXT(name) OPS_UP(line))

OPS_ORDER(memory_peak_compare_bytes, struct ops_memory_share, OPS_DOWN(bytes) OPS_BY_TEXT(name) OPS_UP(line))

/* Sums the shares of each key. Returns the number of keys. */
static size_t memory_peak_sum_up(struct ops_memory_share *shares, size_t count)
{
	size_t sums = 0;

	qsort(shares, count, sizeof(*shares), compare_keys);
	for (size_t i = 0; i < count; i++) {
		if (sums && compare_keys(&shares[sums - 1], &shares[i]) == 0) {
			shares[sums - 1].bytes += shares[i].bytes;
			shares[sums - 1].blocks++;
		} else {
			shares[sums++] = shares[i];
		}
	}
	qsort(shares, sums, sizeof(*shares), memory_peak_compare_bytes);
	return sums;
}

enum key { BY_OPERATOR, BY_MODULE, BY_LINE, BY_SHAPE };

/* Groups the live blocks by one key. Blocks without it are listed as "", unless none has it. Returns false if out of
 * memory. */
static bool memory_peak_share_out(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak, enum key key,
                                  struct ops_memory_share **ret_shares, size_t *ret_count)
{
	struct ops_memory_share *shares = ops_realloc_array(NULL, peak->block_count + 1, sizeof(*shares));

	if (!shares)
		return false;
	for (size_t i = 0; i < peak->block_count; i++) {
		uint32_t block = peak->blocks[i];

		shares[i] = (struct ops_memory_share){.bytes = timeline->blocks[block].bytes, .blocks = 1};
		shares[i].name = key == BY_OPERATOR ? ops_memory_operator(timeline, block)
		                 : key == BY_MODULE ? ops_memory_module(timeline, block)
		                 : key == BY_SHAPE  ? ops_memory_shape(timeline, block)
		                                    : ops_memory_line(timeline, block, &shares[i].line);
	}
	*ret_count = memory_peak_sum_up(shares, peak->block_count);
	if (*ret_count == 1 && shares[0].name.size == 0)
		*ret_count = 0;
	*ret_shares = shares;
	return true;
}

/* --- time of the peak -------------------------------------------------------------------------------------------------- */

/* Finds when most is held within a time range. Returns the number of steps up to and including that of the peak. */
static size_t find_moment(const struct ops_memory_timeline *timeline, int64_t from_ns, int64_t to_ns,
                          struct ops_memory_peak *peak)
{
	int64_t held[OPS_MEMORY_CATEGORY_COUNT] = {0};
	uint32_t row = OPS_NONE;
	size_t steps = 0;

	for (size_t i = 0; i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];
		const struct ops_memory_block *block = &timeline->blocks[step->block];
		int64_t next_ns = i + 1 < timeline->step_count ? timeline->steps[i + 1].time_ns : INT64_MAX;

		if (step->time_ns > to_ns)
			break;
		if (ops_memory_on_device(block, peak->device)) {
			ops_memory_apply(timeline, step, held);
			if (step->action == OPS_MEMORY_CREATE)
				row = block->row;
		}
		/* Compares the bytes held from this step to the next, because the range may begin in between. */
		if (next_ns == step->time_ns || (next_ns <= from_ns && i + 1 < timeline->step_count))
			continue;
		if (ops_sum_all(held, OPS_MEMORY_CATEGORY_COUNT) > peak->bytes) {
			peak->bytes = ops_sum_all(held, OPS_MEMORY_CATEGORY_COUNT);
			peak->time_ns = step->time_ns > from_ns ? step->time_ns : from_ns;
			peak->row = row;
			memcpy(peak->by_category, held, sizeof(held));
			steps = i + 1;
		}
	}
	return steps;
}

struct by_size {
	int64_t bytes;
	uint32_t block;
};

OPS_ORDER(memory_peak_compare_sizes, struct by_size, OPS_DOWN(bytes) OPS_UP(block))

/* Finds the blocks that live after the first `steps` steps, largest first. */
static bool find_blocks(const struct ops_memory_timeline *timeline, size_t steps, struct ops_memory_peak *peak)
{
	uint8_t *lives = ops_alloc_zeroed(timeline->block_count + 1, sizeof(*lives));
	OPS_ARRAY(struct by_size) found = {0};
	bool ok = lives != NULL;

	for (size_t i = 0; ok && i < steps; i++)
		lives[timeline->steps[i].block] = timeline->steps[i].action != OPS_MEMORY_DESTROY;
	for (size_t i = 0; ok && i < timeline->block_count; i++) {
		if (!lives[i] || !ops_memory_on_device(&timeline->blocks[i], peak->device))
			continue;
		ok = OPS_ARRAY_APPEND(&found, (struct by_size){timeline->blocks[i].bytes, (uint32_t)i});
	}
	if (ok)
		OPS_ARRAY_SORT(&found, memory_peak_compare_sizes);
	peak->blocks = ok ? ops_realloc_array(NULL, found.count + 1, sizeof(*peak->blocks)) : NULL;
	for (size_t i = 0; peak->blocks && i < found.count; i++)
		peak->blocks[i] = found.items[i].block;
	peak->block_count = found.count;
	OPS_ARRAY_RELEASE(&found);
	ops_free(lives);
	return peak->blocks != NULL;
}

static int64_t sum_before(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak)
{
	int64_t sum = 0;

	for (size_t i = 0; i < peak->block_count; i++)
		if (timeline->blocks[peak->blocks[i]].start_ns == INT64_MIN)
			sum = ops_sum(sum, timeline->blocks[peak->blocks[i]].bytes);
	return sum;
}

enum ops_code ops_memory_peak_within(const struct ops_memory_timeline *timeline, struct ops_memory_device device,
                                     int64_t from_ns, int64_t to_ns, struct ops_memory_peak *ret_peak,
                                     struct ops_error *error)
{
	struct ops_memory_peak peak = {.device = device, .time_ns = from_ns == INT64_MIN ? -1 : from_ns, .row = OPS_NONE,
	                               .chosen = from_ns == to_ns};
	size_t steps = find_moment(timeline, from_ns, to_ns, &peak);

	if (!find_blocks(timeline, steps, &peak) ||
	    !memory_peak_share_out(timeline, &peak, BY_OPERATOR, &peak.operators, &peak.operator_count) ||
	    !memory_peak_share_out(timeline, &peak, BY_MODULE, &peak.modules, &peak.module_count) ||
	    !memory_peak_share_out(timeline, &peak, BY_LINE, &peak.lines, &peak.line_count) ||
	    !memory_peak_share_out(timeline, &peak, BY_SHAPE, &peak.shapes, &peak.shape_count)) {
		ops_memory_peak_release(&peak);
		return ops_fault_memory(error);
	}
	peak.before_bytes = sum_before(timeline, &peak);
	*ret_peak = peak;
	return OPS_OK;
}

enum ops_code ops_memory_peak_of(const struct ops_memory_timeline *timeline, struct ops_memory_device device,
                                 struct ops_memory_peak *ret_peak, struct ops_error *error)
{
	return ops_memory_peak_within(timeline, device, INT64_MIN, INT64_MAX, ret_peak, error);
}

#define DEVICES_MAX 256

/* Checks that a moment, in nanoseconds since the start, is within the trace. */
static enum ops_code check_moment(const struct ops_trace *trace, int64_t at_ns, struct ops_error *error)
{
	struct ops_interval extent = ops_extent_of(trace);
	int64_t length_ns = ops_difference(extent.end_ns, extent.start_ns);

	return at_ns >= 0 && at_ns <= length_ns ? OPS_OK
	       : ops_fault(error, OPS_INVALID, "%s is not within the trace, which takes %s", ops_figure_of_duration((double)at_ns).text,
	                   ops_figure_of_duration((double)length_ns).text);
}

/* Finds the range of time in whose peak memory is described. */
static enum ops_code find_memory_range(const struct ops_trace *trace, const struct ops_memory_moment *moment, int64_t *ret_from_ns,
                                int64_t *ret_to_ns, struct ops_error *error)
{
	uint64_t first, last;

	*ret_from_ns = INT64_MIN;
	*ret_to_ns = INT64_MAX;
	if (moment && moment->at_ns) {
		*ret_from_ns = *ret_to_ns = ops_sum(ops_trace_origin(trace), *moment->at_ns);
		return check_moment(trace, *moment->at_ns, error);
	}
	if (!moment || !moment->steps)
		return OPS_OK;
	if (!ops_steps_parse(moment->steps, &first, &last))
		return ops_fault(error, OPS_INVALID, "'%s' is not a range of steps such as 3 or 3:5", moment->steps);
	return ops_trace_find_steps(trace, first, last, ret_from_ns, ret_to_ns, error);
}

enum ops_code ops_memory_each_peak(const struct ops_trace *trace, const struct ops_memory_moment *moment, ops_memory_visitor *visit,
                                   void *context, struct ops_error *error)
{
	struct ops_memory_timeline *timeline = NULL;
	struct ops_memory_device device;
	int64_t from_ns, to_ns;
	enum ops_code code = find_memory_range(trace, moment, &from_ns, &to_ns, error);
	bool more;

	code = code ? code : ops_memory_timeline_new((struct ops_trace *)trace, &timeline, error);
	more = !code && ops_memory_next_device(timeline, NULL, &device);
	for (int i = 0; !code && more && i < DEVICES_MAX; i++) {
		struct ops_memory_peak peak = {0};

		code = ops_memory_peak_within(timeline, device, from_ns, to_ns, &peak, error);
		if (!code && !visit(context, timeline, &peak))
			code = ops_fault_memory(error);
		ops_memory_peak_release(&peak);
		more = ops_memory_next_device(timeline, &device, &device);
	}
	ops_memory_timeline_free(timeline);
	return code;
}

void ops_memory_peak_release(struct ops_memory_peak *peak)
{
	ops_free(peak->blocks);
	ops_free(peak->operators);
	ops_free(peak->modules);
	ops_free(peak->lines);
	ops_free(peak->shapes);
	*peak = (struct ops_memory_peak){0};
}
