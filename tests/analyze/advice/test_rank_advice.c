/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice on runs of several ranks: late ranks, needless communication, and traces that are released as soon as they are
 * added.
 */
#include "device_trace.h"

#include "../../base/failing.h"

#define STEPS 4
#define RANKS 3

/* The activity of a rank in each step of `step_us`. */
struct plan {
	double step_us;
	double late_us;       /* how much longer rank 1 computes than the others */
	int late_every;       /* only in each step with a number divisible by this, of 12, which then takes that much longer; 0: in all of them */
	int collectives;      /* number of collectives, one after another, each with this many bytes and this transfer time */
	int elements;
	double transfer_us;
	bool alike;           /* by the same operator */
	bool overlapped;      /* a kernel runs at the same time */
	const char *group;    /* of ranks 0 and 1; rank 2, if there is one, is alone */
	double slow_group_us; /* time of transfers of another group */
};

static void add_collective(struct device_trace *trace, const struct plan *plan, const char *group, double us, double end_us)
{
	char args[512];

	device_trace_add(trace, "cpu_op", "c10d::allreduce_", 1, 1, us, 9, "");
	snprintf(args, sizeof(args), "\"correlation\": %d", trace->correlation);
	device_trace_add(trace, "cuda_runtime", "cudaLaunchKernelExC", 1, 1, us + 2, 5, args);
	snprintf(args, sizeof(args),
	         "\"correlation\": %d, \"device\": 0, \"stream\": 20, \"Collective name\": \"allreduce\", \"In msg nelems\": %d, "
	         "\"Out msg nelems\": %d, \"dtype\": \"Float\", \"Group size\": 2, \"Process Group Ranks\": \"%s\"",
	         trace->correlation++, plan->elements, plan->elements, group);
	device_trace_add(trace, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 20, us + 8, end_us - us - 8, args);
}

/* Kernels of the forward and backward pass for 200 us, then collectives that end on all ranks when the last rank has arrived and
 * the transfer is done. */
static void add_rank(struct device_trace *trace, const struct plan *plan, int rank)
{
	device_trace_open(trace);
	for (int step = 0; step < (plan->late_every ? 12 : STEPS); step++) {
		bool is_late = !plan->late_every || step % plan->late_every == plan->late_every - 1;
		double late_us = is_late ? plan->late_us : 0, own_us = 200 + (rank == 1 ? late_us : 0), end_us;
		double at = step * plan->step_us + (plan->late_every ? (double)(step / plan->late_every) * plan->late_us : 0);

		device_trace_step(trace, step, at, plan->step_us - 1 + (plan->late_every ? late_us : 0));
		trace->device_us = at;
		device_trace_work(trace, rank == 1 && !plan->alike ? "aten::bmm" : "aten::mm", "", "kernel", "gemm_tensorop", "", at,
		                  own_us - 8);
		if (plan->overlapped)
			device_trace_work(trace, "aten::mm", "", "kernel", "gemm_tensorop", "", at + 20, plan->step_us - own_us - 100);
		end_us = at + 200 + late_us;
		for (int i = 0; i < plan->collectives; i++) {
			double start_us = i ? end_us : at + own_us;

			end_us += plan->transfer_us;
			add_collective(trace, plan, plan->group ? plan->group : "[0, 1, 2]", start_us, end_us);
		}
		if (plan->slow_group_us > 0)
			add_collective(trace, plan, "[2, 3]", end_us, end_us + plan->slow_group_us);
	}
}

static char *advise(const struct plan *plan)
{
	struct ops_adviser *adviser = ops_adviser_new();
	char *text = NULL;
	size_t size;

	assert_non_null(adviser);
	for (int rank = 0; rank < RANKS; rank++) {
		char name[] = "rank-0";
		struct device_trace trace;
		struct ops_rank worker = {.name = name};

		name[5] = (char)('0' + rank);
		add_rank(&trace, plan, rank);
		worker.trace = device_trace_read(&trace);
		assert_int_equal(ops_adviser_add(adviser, &worker, NULL), OPS_OK);
		ops_trace_unref((struct ops_trace *)worker.trace);
	}
	assert_int_equal(ops_adviser_finish(adviser, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	ops_adviser_free(adviser);
	return text;
}

static void assert_gain(const char *text, const char *id, double ms)
{
	double gain_ms = finding_ms(text, id);

	if (!(gain_ms > ms * 0.97 && gain_ms < ms * 1.03))
		fail_msg("%s gains %g ms, not %g", id, gain_ms, ms);
}

static void finds_the_late_rank(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .late_us = 300, .collectives = 1, .elements = 10000000,
	                                   .transfer_us = 100});
	const char *facts;

	(void)state;
	/* Two of three ranks wait 300 us for an operator that they do not have: all of that would be saved with it. */
	assert_gain(text, "uneven-ranks", 0.3);
	assert_non_null(strstr(text, "\"evidence\":\"Rank 1 is the last of 3 in 4 of 4 steps"));
	facts = strstr(text, "\"facts\":\"Rank 1 is the last of 3 in 4 of 4 steps");
	assert_non_null(facts);
	assert_null(memmem(facts, (size_t)(strstr(facts, "\",\"explanation\"") - facts), "Predicted gain", strlen("Predicted gain")));
	assert_non_null(strstr(text, "aten::bmm"));
	assert_true(finding_ms(text, "tiny-collectives") < 0);
	assert_true(finding_ms(text, "slow-link") < 0);
	ops_free(text);
}

/* In three of twelve steps, which take seven times as long, all wait for a rank. */
static void finds_the_rank_that_is_sometimes_late(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .late_us = 6000, .late_every = 4, .collectives = 1, .elements = 10000000,
	                                   .transfer_us = 100});

	(void)state;
	assert_gain(text, "uneven-ranks", 6.0 * 3 / 12);
	assert_non_null(strstr(text, "Rank 1 is the last of 3 in 3 of 12 steps"));
	assert_non_null(strstr(text, "In these steps, a rank waits 4.00 ms for others"));
	assert_non_null(strstr(text, "aten::bmm"));
	ops_free(text);
}

/* The same operator takes longer: of the mean wait of 200 us. */
static void shares_out_what_all_do(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .late_us = 300, .collectives = 1, .elements = 10000000,
	                                   .transfer_us = 100, .alike = true});

	(void)state;
	assert_gain(text, "uneven-ranks", 0.2);
	ops_free(text);
}

static void leaves_even_ranks_alone(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .collectives = 1, .elements = 10000000, .transfer_us = 600,
	                                   .overlapped = true});

	(void)state;
	assert_true(finding_ms(text, "uneven-ranks") < 0);
	assert_true(finding_ms(text, "tiny-collectives") < 0);
	assert_true(finding_ms(text, "communication-not-overlapped") < 0);
	ops_free(text);
}

static void finds_little_messages(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .collectives = 20, .elements = 1000, .transfer_us = 25});

	(void)state;
	/* 20 collectives of which one is left: 19 times 25 us, 17 of which the device is at work, and 8 that the host takes until then. */
	assert_gain(text, "tiny-collectives", 19 * (17 + 8) / 1000.0);
	assert_true(finding_ms(text, "uneven-ranks") < 0);
	ops_free(text);
}

static void finds_slow_links(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .collectives = 1, .elements = 1000000, .transfer_us = 108,
	                                   .group = "[0, 1]", .slow_group_us = 408});

	(void)state;
	/* 400 us in place of 100. */
	assert_gain(text, "slow-link", 0.3);
	assert_non_null(strstr(text, "[2, 3]"));
	ops_free(text);
}

/* All-reduces of 40 MB for 600 of 1000 us after the last kernel: there is nothing left to overlap them with. */
static void finds_exposed_communication(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .collectives = 1, .elements = 10000000, .transfer_us = 600});

	(void)state;
	assert_true(strstr(text, "\"id\":\"communication-bound\"") == strstr(text, "\"id\":"));
	assert_gain(text, "communication-bound", 0.592);
	/* 40 MB × 2 × (2 − 1) / 2 in 592 us. */
	assert_non_null(strstr(text, "38.1 MiB in each step at a bus bandwidth of 67.6 GB/s"));
	/* True of inference, too, which has no backward pass. */
	assert_non_null(strstr(text, "No backward pass without collectives is left to hide it."));
	assert_non_null(strstr(text, "In inference, split the model over fewer ranks."));
	assert_non_null(strstr(text, "\"confidence\":\"medium\""));
	ops_free(text);
	text = advise(&(struct plan){.step_us = 1000, .collectives = 1, .elements = 10000000, .transfer_us = 600,
	                             .overlapped = true});
	assert_true(finding_ms(text, "communication-bound") < 0);
	ops_free(text);
}

/* What fewer collectives save is not counted a second time. */
static void counts_exposed_communication_once(void **state)
{
	char *text = advise(&(struct plan){.step_us = 1000, .collectives = 20, .elements = 1000, .transfer_us = 25});

	(void)state;
	assert_true(finding_ms(text, "tiny-collectives") > 0);
	assert_true(finding_ms(text, "communication-bound") < 0);
	ops_free(text);
}

/* One of two ranks: its waits look like transfers. */
static void doubts_one_rank_alone(void **state)
{
	struct ops_rank worker = {.name = "rank-0"};
	struct device_trace trace;
	char *text;
	size_t size;

	(void)state;
	add_rank(&trace, &(struct plan){.step_us = 1000, .collectives = 1, .elements = 10000000, .transfer_us = 600}, 0);
	worker.trace = device_trace_read(&trace);
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	assert_gain(text, "communication-bound", 0.592);
	assert_non_null(strstr(text, "Only 1 of 2 ranks were given"));
	assert_non_null(strstr(text, "\"confidence\":\"low\""));
	ops_free(text);
	ops_trace_unref((struct ops_trace *)worker.trace);
}

struct pair {
	struct ops_rank workers[2];
};

static void ask(void *context)
{
	struct pair *pair = context;
	struct ops_error error;
	char *text = NULL;
	size_t size;

	if (ops_advise(pair->workers, 2, OPS_FORMAT_TEXT, &text, &size, &error))
		assert_int_equal(error.code, OPS_NO_MEMORY);
	ops_free(text);
}

static void survives_failures(void **state)
{
	static const struct plan plan = {.step_us = 1000, .late_us = 300, .collectives = 9, .elements = 1000, .transfer_us = 30,
	                                 .group = "[0, 1]", .slow_group_us = 50};
	struct device_trace traces[2];
	struct pair pair;

	(void)state;
	for (int rank = 0; rank < 2; rank++) {
		add_rank(&traces[rank], &plan, rank);
		pair.workers[rank] = (struct ops_rank){.trace = device_trace_read(&traces[rank]), .name = rank ? "rank-1" : "rank-0"};
	}
	assert_true(fail_each(ask, &pair) > 100);
	for (int rank = 0; rank < 2; rank++)
		ops_trace_unref((struct ops_trace *)pair.workers[rank].trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_late_rank), cmocka_unit_test(finds_the_rank_that_is_sometimes_late), cmocka_unit_test(shares_out_what_all_do),
		cmocka_unit_test(leaves_even_ranks_alone),
		cmocka_unit_test(finds_little_messages), cmocka_unit_test(finds_slow_links),
		cmocka_unit_test(finds_exposed_communication), cmocka_unit_test(counts_exposed_communication_once),
		cmocka_unit_test(doubts_one_rank_alone), cmocka_unit_test(survives_failures)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
