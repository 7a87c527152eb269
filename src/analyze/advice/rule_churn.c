/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory returned to the operating system and allocated again within steps. On the host these are tensors so large that
 * the C library maps each separately, so every page faults, is cleared, and is unmapped in the end. On a device these
 * are calls of cudaMalloc and cudaFree, which the caching allocator normally avoids.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* glibc always maps larger allocations, regardless of earlier frees (DEFAULT_MMAP_THRESHOLD_MAX). */
#define MAPPED_BYTES (32 * 1024 * 1024)
/* Time per element in memory that is already mapped, if no operator of the trace shows it: two or three times four
 * bytes at about ten gigabytes per second. */
#define ELEMENT_NS 0.5
/* Time of a page fault if the recording did not measure it. */
#define PAGE_NS 500
#define PAGE_BYTES 4096

struct churn {
	int64_t *bytes;      /* by row: bytes of large allocations of an outermost operator */
	uint8_t *pointwise;  /* by name */
	double element_ns;   /* time per element of the quickest operator without large allocations */
	uint64_t allocations, calls;
	double estimated_ns; /* part of the gain that follows from the size of allocations alone */
	int64_t all_bytes;
};

/* Maximum nesting of operators. */
#define DEPTH_MAX 64

static bool find_allocations(struct churn *churn, const struct advice *advice)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	uint32_t *rows = advice_memory_rows(advice);

	for (size_t i = 0; rows && i < count; i++) {
		uint32_t row = rows[i];

		if (records[i].device_type != 0 || records[i].bytes < MAPPED_BYTES || records[i].out_of_memory || row == OPS_NONE)
			continue;
		for (int k = 0; k < DEPTH_MAX && (advice->zone[row] & ADVICE_IN_OPERATOR); k++)
			row = advice->events->parent[row];
		if (!advice_is_operator(advice, row) || !advice_counts(advice, row))
			continue;
		churn->bytes[row] = ops_sum(churn->bytes[row], records[i].bytes);
		churn->all_bytes = ops_sum(churn->all_bytes, records[i].bytes);
		churn->allocations++;
	}
	ops_free(rows);
	return rows != NULL;
}

static void find_speed(struct churn *churn, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t elements;
		uint8_t dtype;

		if (!churn->pointwise[advice->events->name[row]] || churn->bytes[row] || !advice_counts(advice, row))
			continue;
		/* The rest of a call that waited is an estimate. */
		if (2 * advice_ns(advice, row) < ops_difference(advice->events->end_ns[row], advice->events->start_ns[row]))
			continue;
		elements = advice_elements(advice, row, &dtype);
		if (elements >= MAPPED_BYTES / 16 && (double)advice_ns(advice, row) < churn->element_ns * (double)elements)
			churn->element_ns = (double)advice_ns(advice, row) / (double)elements;
	}
}

/* Returns the upper bound of the time that an operator without known arithmetic spends on new memory: that of a fault for
 * each page of its large allocations, and at most half of its time. */
static double memory_ns_max(const struct advice *advice, int64_t bytes, double ns)
{
	double page_ns = advice->machine.page_ns > 0 ? advice->machine.page_ns : PAGE_NS;
	double faults_ns = page_ns * (double)bytes / PAGE_BYTES;

	return faults_ns < ns / 2 ? faults_ns : ns / 2;
}

/* Adds the time of operators beyond their arithmetic, which is known for pointwise operators. For others it is estimated
 * from the pages of their allocations. */
static void rule_churn_add_operators(struct churn *churn, const struct advice *advice, struct advice_result *result)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		double ns = (double)advice_left_ns(advice, row), work_ns = churn->element_ns * (double)churn->bytes[row] / 4;

		if (!churn->bytes[row] || advice_is_claimed(result, row))
			continue;
		if (!churn->pointwise[advice->events->name[row]]) {
			double least_ns = ns - memory_ns_max(advice, churn->bytes[row], ns);

			work_ns = work_ns > least_ns ? work_ns : least_ns;
			churn->estimated_ns += ns > work_ns ? ns - work_ns : 0;
		}
		if (ns > work_ns)
			advice_add_share(result, row, (ns - work_ns) / ns);
	}
}

/* Returning memory also takes time, in the function that releases it. */
static bool add_frees(const struct advice *advice, struct advice_result *result)
{
	struct advice_frees frees = {0};
	bool done = advice_find_frees(advice, MAPPED_BYTES, &frees);

	for (size_t i = 0; done && i < frees.count; i++) {
		const struct advice_free *gap = &frees.items[i];

		if (!advice_counts(advice, gap->row))
			continue;
		result->tally.ns = ops_sum(result->tally.ns, gap->ns);
		advice_claim_self(result, gap->row, gap->ns);
	}
	OPS_ARRAY_RELEASE(&frees);
	return done;
}

static const char *const names[] = {"cudaMalloc", "cudaFree", "hipMalloc", "hipFree", "cuMemCreate", "cuMemUnmap",
                                    "hipMemCreate", "hipMemUnmap", NULL};

static bool rule_churn_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const pointwise[] = {"aten::add", "aten::sub", "aten::mul", "aten::div", "aten::relu", "aten::clamp*",
	                                        "aten::where", "aten::clone", "aten::neg", "aten::add_", "aten::mul_", "aten::copy_",
	                                        "aten::fill_", "aten::zeros*", "aten::ones*", "aten::_to_copy", NULL};
	struct churn churn = {.element_ns = ELEMENT_NS};
	char tensors[224] = "", calls[160] = "", speed[96] = "";
	bool done;

	churn.bytes = ops_alloc_zeroed(advice->events->count + 1, sizeof(*churn.bytes));
	churn.pointwise = advice_names(advice, pointwise);
	done = churn.bytes && churn.pointwise && find_allocations(&churn, advice);
	/* A single allocation is not repeated. */
	if (done && advice_per_step(advice, churn.allocations) >= 1) {
		find_speed(&churn, advice);
		rule_churn_add_operators(&churn, advice, result);
		done = add_frees(advice, result);
	}
	if (churn.estimated_ns > (double)result->tally.ns / 2)
		result->confidence = ADVICE_UNSURE;
	churn.calls = result->tally.events;
	advice_add_names(result, 0);
	churn.calls = result->tally.events - churn.calls;
	if (churn.calls)
		snprintf(calls, sizeof(calls), "allocates or frees device memory in %s",
		         advice_counted(advice, churn.calls, "call", "calls").text);
	if (churn.allocations)
		snprintf(tensors, sizeof(tensors), "allocates %s of 32 MiB or more, %s in total",
		         advice_counted(advice, churn.allocations, "tensor", "tensors").text,
		         advice_bytes(advice_per_step(advice, (uint64_t)churn.all_bytes)).text);
	if (churn.allocations)
		snprintf(speed, sizeof(speed), "; arithmetic takes %s for each element", advice_time(churn.element_ns / 1e6).text);
	done = done && advice_report_costs(result, "Each step %s%s%s%s.", tensors, *tensors && *calls ? ", and " : "", calls, speed);
	ops_free(churn.bytes);
	ops_free(churn.pointwise);
	return done;
}

const struct advice_rule advice_rule_churn = {
	.id = "allocation-churn",
	.title = "Memory is returned to the system and allocated again",
	.condition = "Operators in steps allocate tensors of 32 MiB or more on the host, or call cudaMalloc and cudaFree. Confidence is low if more than half "
		     "of the gain is estimated from the pages of operators that are not elementwise.",
	.gain = "the time of these operators beyond their arithmetic (for operators that are not elementwise, a page fault for "
		"each page of their large allocations), of returning the memory, and of the calls",
	.explanation = "The system maps large temporaries on the host again each time and clears every page on first use, "
		       "which costs more than the arithmetic. A device must stop to change its memory.",
	.advice = "Write into persistent tensors (out=…, in-place operators, a buffer allocated before the loop), process "
		  "smaller parts, or use an allocator that keeps memory (jemalloc; MALLOC_MMAP_MAX_=0). To check: steps "
		  "contain no allocations of that size.",
	.code = "torch.add(x, y, out=buffer)  # made once, before the loop",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_MEMORY,
	.stage = ADVICE_STAGE_MEMORY,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.general = true, /* the memory is needed for something, which may have a cause itself */
	.find = rule_churn_find,
};
