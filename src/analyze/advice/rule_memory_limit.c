/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory close to its limit, on a device or in the process, and memory that an allocator reserves but does not use.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Share of the limit above which no further large tensor fits, and the allocator begins to free and allocate again. */
#define GIB (1024.0 * 1024 * 1024)
#define NEAR 0.9
/* Minimum share of reserved memory that is unused at the peak of reserved memory: free, but in segments too small for
 * the requests. */
#define UNUSED 0.3
#define RESERVED 0.5 /* minimum share of the device's memory */

struct peak {
	uint64_t allocated, reserved; /* at the time of most reserved memory */
	size_t record;
};

static struct peak find_peak(const struct ops_memory_record *records, size_t count, int64_t device)
{
	struct peak peak = {.record = SIZE_MAX};

	for (size_t i = 0; i < count; i++) {
		if (records[i].device_type == 0 || records[i].device_index != device || records[i].out_of_memory)
			continue;
		if (records[i].total_reserved > peak.reserved ||
		    (records[i].total_reserved == peak.reserved && records[i].total_allocated > peak.allocated))
			peak = (struct peak){records[i].total_allocated, records[i].total_reserved, i};
	}
	return peak;
}

/* Records of a device on one side of the peak of memory in use: before it, or after it. */
struct side {
	uint64_t lowest;
	size_t count;
};

/* Minimum share of the records after the peak, so that their lowest value shows what is kept. */
#define AFTER_MIN 0.1

/* Returns true if memory is filled on purpose, as by the cache of a server: most of it is kept, and twice the rest
 * would still fit. Kept memory is in use all the time on one side of the peak, whether it was allocated within the
 * recording or before. */
static bool is_filled(const struct ops_memory_record *records, size_t count, int64_t device, double limit)
{
	struct side before = {UINT64_MAX, 0}, after = {UINT64_MAX, 0};
	uint64_t most = 0, stays;

	for (size_t i = 0; i < count; i++) {
		uint64_t allocated = records[i].total_allocated;

		if (records[i].device_type == 0 || records[i].device_index != device || records[i].out_of_memory)
			continue;
		if (allocated > most) {
			most = allocated;
			before.lowest = after.lowest < before.lowest ? after.lowest : before.lowest;
			before.count += after.count;
			after = (struct side){UINT64_MAX, 0};
		}
		after.lowest = allocated < after.lowest ? allocated : after.lowest;
		after.count++;
	}
	stays = before.count ? before.lowest : 0;
	if ((double)after.count >= AFTER_MIN * (double)(before.count + after.count) && after.count > 1 && after.lowest > stays)
		stays = after.lowest;
	return most > 0 && (double)stays > (double)most / 2 && (double)(most - stays) < limit - (double)most;
}

static bool check_device(const struct advice *advice, struct advice_result *result, const struct view_device *device)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	struct peak peak = find_peak(records, count, device->id);
	double limit = (double)device->memory_bytes;
	bool near = peak.record != SIZE_MAX && (double)peak.reserved >= NEAR * limit &&
	            !is_filled(records, count, device->id, limit);
	bool pieces = peak.record != SIZE_MAX && (double)peak.reserved >= RESERVED * limit && peak.allocated <= peak.reserved &&
	              (double)(peak.reserved - peak.allocated) >= UNUSED * (double)peak.reserved;
	struct advice_tally tally = {0};
	uint32_t *rows;
	bool done;

	if (!near && !pieces)
		return true;
	rows = advice_memory_rows(advice);
	done = rows && advice_tally_init(&tally, advice);
	if (done && rows[peak.record] != OPS_NONE)
		advice_tally_add(&tally, rows[peak.record], 1);
	result->detail = pieces ? "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True combines free segments." : NULL;
	done = done && advice_report_at(result, &tally, 0,
	                                "At the peak, %s are reserved on GPU %lld, %s of them in use, of a total "
	                                "of %s.",
	                                advice_bytes((double)peak.reserved).text, (long long)device->id, advice_bytes((double)peak.allocated).text, advice_bytes(limit).text);
	advice_tally_release(&tally);
	ops_free(rows);
	return done;
}

static bool check_host(const struct advice *advice, struct advice_result *result)
{
	double most = (double)advice->machine.memory_peak_bytes, limit = (double)advice->machine.memory_limit_bytes;

	return limit <= 0 || most < NEAR * limit ||
	       advice_report_costs(result, "The program used %s of %s available to it.", advice_bytes(most).text, advice_bytes(limit).text);
}

static bool rule_memory_limit_find(const struct advice *advice, struct advice_result *result)
{
	bool done;

	result->always = true;
	result->severity = ADVICE_MEDIUM;
	done = check_host(advice, result);
	for (size_t i = 0; done && i < advice->views->devices.count; i++)
		if (advice->views->devices.items[i].memory_bytes > 0)
			done = check_device(advice, result, &advice->views->devices.items[i]);
	return done;
}

const struct advice_rule advice_rule_memory_limit = {
	.id = "memory-limit",
	.title = "Memory is close to its limit",
	.condition = "90 % of the memory of a device is reserved, or 90 % of the memory available to the program is in use; or "
		     "half of the memory of a device is reserved and 30 % of that is unused. Memory that is filled on "
		     "purpose, as by the cache of a server, does not count: more than half of it stays in use, and twice the "
		     "rest would fit.",
	.gain = "none in time",
	.explanation = "A larger batch or a longer sequence ends the program. Before that, the allocator frees memory and "
		       "allocates it again within steps.",
	.advice = "Use smaller batches with accumulated gradients, torch.utils.checkpoint, bf16, or "
		  "zero_grad(set_to_none=True), and free what the next step does not need. To check: the peak.",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management",
	.needs = ADVICE_NEEDS_MEMORY,
	.severity_max = ADVICE_MEDIUM,
	.stage = ADVICE_STAGE_REST,
	.confidence = ADVICE_LIKELY,
	.find = rule_memory_limit_find,
};
