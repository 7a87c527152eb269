/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication between ranks: collectives that computation could hide but does not, small collectives, links slower
 * than others, and the remaining exposed time.
 */
#include <math.h>
#include <stdio.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Sums over all ranks. Findings show the average rank. */
struct communication {
	int64_t transfer_ns;
	int64_t exposed_ns; /* part of it that is exposed */
	int64_t hideable_ns;
	int64_t backward_ns; /* time of the backward pass in which no collective runs */
	int64_t steps_ns;
	size_t steps;
	uint64_t collectives;
};

static struct communication rule_communication_sum_up(const struct advice_ranks *ranks)
{
	struct communication sum = {0};

	for (size_t r = 0; r < ranks->ranks.count; r++) {
		const struct rank *rank = &ranks->ranks.items[r];

		sum.steps += rank->step_count;
		sum.steps_ns = ops_sum(sum.steps_ns, rank->steps_ns);
		sum.collectives += rank->collectives.count;
		for (size_t s = 0; s < rank->steps.count; s++) {
			const struct rank_step *step = &rank->steps.items[s];
			int64_t exposed_ns = step->exposed_ns < step->transfer_ns ? step->exposed_ns : step->transfer_ns;

			if (!step->steady)
				continue;
			sum.transfer_ns = ops_sum(sum.transfer_ns, step->transfer_ns);
			sum.exposed_ns = ops_sum(sum.exposed_ns, exposed_ns);
			sum.backward_ns = ops_sum(sum.backward_ns, step->backward_ns);
			sum.hideable_ns = ops_sum(sum.hideable_ns, exposed_ns < step->backward_ns ? exposed_ns : step->backward_ns);
		}
	}
	return sum;
}

static double each_ms(const struct communication *sum, double ns)
{
	return sum->steps ? ns / 1e6 / (double)sum->steps : 0;
}

static struct advice_phrase describe_collectives(const struct communication *sum)
{
	return advice_phrase_of((double)sum->collectives / (double)sum->steps, "collective in each step takes", "collectives in each step take");
}

static double rule_communication_percent(const struct communication *sum, double ns)
{
	return sum->steps_ns > 0 ? 100 * ns / (double)sum->steps_ns : 0;
}

/* --- places --------------------------------------------------------------------------------------------------------- */

/* Finds the places of collectives, those with most time first; only of collectives that `chosen` accepts. */
static bool rule_communication_find_places(const struct advice_ranks *ranks,
                                           bool (*chosen)(const struct rank_collective *collective), struct advice_where *where,
                                           size_t *ret_count)
{
	int64_t *times_ns = ops_alloc_zeroed(ranks->places.count + 1, sizeof(*times_ns));

	*ret_count = 0;
	if (!times_ns)
		return false;
	for (size_t r = 0; r < ranks->ranks.count; r++)
		for (size_t i = 0; i < ranks->ranks.items[r].collectives.count; i++) {
			const struct rank_collective *collective = &ranks->ranks.items[r].collectives.items[i];

			if (!chosen || chosen(collective))
				times_ns[collective->place] = ops_sum(times_ns[collective->place],
				                                      ranks->shortest_ns[collective->operation] + 1);
		}
	while (*ret_count < ADVICE_WHERE_MAX) {
		size_t most = 0;

		for (size_t i = 1; i < ranks->places.count; i++)
			most = times_ns[i] > times_ns[most] ? i : most;
		if (!times_ns[most])
			break;
		times_ns[most] = 0;
		where[(*ret_count)++] = advice_place(ranks, (uint32_t)most);
	}
	ops_free(times_ns);
	return true;
}

/* --- not overlapped ------------------------------------------------------------------------------------------------- */

/* If most of the transfer time is hidden, the rest belongs mainly to the last gradients, which no computation
 * follows. */
#define EXPOSED_MIN 0.5

static bool find_overlap(const struct advice_ranks *ranks, struct advice_result *result)
{
	struct communication sum = rule_communication_sum_up(ranks);
	struct advice_where where[ADVICE_WHERE_MAX];
	size_t count;

	if ((double)sum.exposed_ns < EXPOSED_MIN * (double)sum.transfer_ns ||
	    !rule_communication_find_places(ranks, NULL, where, &count))
		return (double)sum.exposed_ns < EXPOSED_MIN * (double)sum.transfer_ns;
	result->explained_ns += (double)sum.hideable_ns;
	return advice_report_of_run(
		result,
		(struct advice_finding){.gain_ms = each_ms(&sum, (double)sum.hideable_ns),
		                        .gain_pct = rule_communication_percent(&sum, (double)sum.hideable_ns),
		                        .confidence = ADVICE_UNSURE,
		                        .where_count = count},
		where,
		"%s %s without waits for other ranks. During %s of "
		"that (%s) nothing is computed.",
		describe_collectives(&sum).text, advice_time(each_ms(&sum, (double)sum.transfer_ns)).text,
		advice_time(each_ms(&sum, (double)sum.exposed_ns)).text, ops_figure_of_percent(rule_communication_percent(&sum, (double)sum.exposed_ns)).text);
}

/* --- small messages ------------------------------------------------------------------------------------------------- */

/* A message of this size takes about as long as an empty one, since the latency of a link exceeds the transfer time. */
#define TINY_BYTES (256 * 1024)
/* Default bucket of DistributedDataParallel. */
#define BUCKET_BYTES (25e6)
/* Fewer collectives are statistics or flags. */
#define TINY_MIN 8

static bool is_tiny(const struct rank_collective *collective)
{
	return collective->bytes > 0 && collective->bytes < TINY_BYTES;
}

static bool find_tiny(const struct advice_ranks *ranks, struct advice_result *result)
{
	struct communication sum = rule_communication_sum_up(ranks);
	struct advice_where where[ADVICE_WHERE_MAX];
	int64_t transfer_ns = 0, calls_ns = 0, bytes = 0;
	double saved, gain_ns, tiny = 0, left;
	size_t count;

	for (size_t r = 0; r < ranks->ranks.count; r++)
		for (size_t i = 0; i < ranks->ranks.items[r].collectives.count; i++) {
			const struct rank_collective *collective = &ranks->ranks.items[r].collectives.items[i];

			if (!is_tiny(collective))
				continue;
			tiny++;
			bytes = ops_sum(bytes, collective->bytes);
			transfer_ns = ops_sum(transfer_ns, ranks->shortest_ns[collective->operation]);
			calls_ns = ops_sum(calls_ns, collective->call_ns);
		}
	if (tiny < TINY_MIN * (double)sum.steps)
		return true;
	left = (double)sum.steps * ceil((double)bytes / (double)sum.steps / BUCKET_BYTES);
	saved = left < tiny ? 1 - left / tiny : 0;
	result->explained_ns += saved * (double)(transfer_ns < sum.exposed_ns ? transfer_ns : sum.exposed_ns);
	gain_ns = saved * ((double)(transfer_ns < sum.exposed_ns ? transfer_ns : sum.exposed_ns) + (double)calls_ns);
	return rule_communication_find_places(ranks, is_tiny, where, &count) &&
	       advice_report_of_run(
		       result,
		       (struct advice_finding){.gain_ms = each_ms(&sum, gain_ns),
		                               .gain_pct = rule_communication_percent(&sum, gain_ns),
		                               .confidence = ADVICE_LIKELY,
		                               .where_count = count},
		       where,
		       "%s of %s collectives in each step have less than %d KiB, %s in total. They take %s, "
		       "of which at most %s do not overlap with computation, and their calls take %s on "
		       "the host.",
		       ops_figure_of_number(tiny / (double)sum.steps).text,
		       ops_figure_of_number((double)sum.collectives / (double)sum.steps).text, TINY_BYTES / 1024,
		       advice_bytes((double)bytes / (double)sum.steps).text, advice_time(each_ms(&sum, (double)transfer_ns)).text,
		       advice_time(each_ms(&sum, (double)sum.exposed_ns)).text, advice_time(each_ms(&sum, (double)calls_ns)).text);
}

/* --- slow links ----------------------------------------------------------------------------------------------------- */

/* Smaller transfers show latency rather than bandwidth. */
#define LARGE_BYTES (1024 * 1024)
/* Links of one kind differ by less than this factor. */
#define SLOWER 2.0

struct link_use {
	uint32_t kind;
	uint32_t group;
	size_t size; /* number of ranks in the group */
	double bytes;
	double ns;
};

struct links {
	OPS_ARRAY(struct link_use) uses;
	struct ops_map by_group;
};

/* Counts the commas in "[0, 1]". */
static size_t group_size(struct ops_string group)
{
	size_t size = group.size > 0;

	for (size_t i = 0; i < group.size; i++)
		size += group.bytes[i] == ',';
	return size;
}

/* Counts each collective once, whichever ranks record it. Collectives recorded by only one rank are skipped, since
 * their time may include waiting. */
static bool gather_links(struct links *links, const struct advice_ranks *ranks, uint8_t *seen)
{
	for (size_t r = 0; r < ranks->ranks.count; r++)
		for (size_t i = 0; i < ranks->ranks.items[r].collectives.count; i++) {
			const struct rank_collective *collective = &ranks->ranks.items[r].collectives.items[i];
			uint64_t key = (uint64_t)collective->group << 32 | collective->kind;
			struct ops_string group = rank_text(ranks, collective->group);
			struct link_use *use;
			uint32_t *at;
			bool known;

			if (collective->bytes < LARGE_BYTES || !group.size || seen[collective->operation] ||
			    ranks->taking[collective->operation] < 2)
				continue;
			seen[collective->operation] = 1;
			at = ops_map_slot(&links->by_group, key, (uint32_t)links->uses.count);
			known = at && *at < links->uses.count;
			use = !at ? NULL : known ? &links->uses.items[*at] : OPS_ARRAY_PUSH(&links->uses);
			if (!use)
				return false;
			if (!known)
				*use = (struct link_use){collective->kind, collective->group, group_size(group), 0, 0};
			use->bytes += (double)collective->bytes;
			use->ns += (double)ranks->shortest_ns[collective->operation];
		}
	return true;
}

static bool report_links(const struct links *links, const struct advice_ranks *ranks, struct advice_result *result)
{
	const struct link_use *slow = NULL, *quick = NULL;
	const struct rank *rank = &ranks->ranks.items[0];
	double saved_ns = 0;
	struct ops_string kind, group, other;

	for (size_t i = 0; i < links->uses.count; i++)
		for (size_t k = 0; k < links->uses.count; k++) {
			const struct link_use *a = &links->uses.items[i], *b = &links->uses.items[k];
			double ns = a->ns - a->bytes * b->ns / b->bytes;

			if (a->kind != b->kind || a->size != b->size || !(a->ns > SLOWER * a->bytes * b->ns / b->bytes) || ns <= saved_ns)
				continue;
			slow = a;
			quick = b;
			saved_ns = ns;
		}
	if (!slow)
		return true;
	result->explained_ns += saved_ns * (double)ranks->ranks.count;
	kind = rank_text(ranks, slow->kind);
	group = rank_text(ranks, slow->group);
	other = rank_text(ranks, quick->group);
	return advice_report_of_run(result,
	                            (struct advice_finding){.gain_ms = rank_step_ms(rank, saved_ns),
	                                                    .gain_pct = rank->steps_ns ? 100 * saved_ns / (double)rank->steps_ns : 0,
	                                                    .confidence = ADVICE_UNSURE},
	                            NULL,
	                            "%.*s among ranks %.*s transfers %s GB/s, among ranks %.*s %s GB/s. The slower group "
	                            "transfers %s in each step.", (int)kind.size, kind.bytes, (int)group.size, group.bytes,
	                            ops_figure_of_number(slow->bytes / slow->ns).text, (int)other.size, other.bytes, ops_figure_of_number(quick->bytes / quick->ns).text,
	                            advice_bytes(rank->step_count ? slow->bytes / (double)rank->step_count : 0).text);
}

/* A file with more groups than this does not describe links of a cluster. */
#define GROUPS_MAX 1024

static bool find_links(const struct advice_ranks *ranks, struct advice_result *result)
{
	struct links links = {0};
	uint8_t *seen = ops_alloc_zeroed(ranks->operations.numbers.count + 1, 1);
	bool done = seen && gather_links(&links, ranks, seen);

	if (done && links.uses.count <= GROUPS_MAX)
		done = report_links(&links, ranks, result);
	OPS_ARRAY_RELEASE(&links.uses);
	ops_map_release(&links.by_group);
	ops_free(seen);
	return done;
}

/* --- bound by communication ------------------------------------------------------------------------------------------ */

/* Minimum share of exposed communication for steps that count as limited by it. */
#define BOUND_MIN_PCT 10.0

/* Describes the bandwidth of collectives of known size; "": none. */
static void describe_bandwidth(const struct advice_ranks *ranks, const struct communication *sum, char *text, size_t size)
{
	double bytes = 0, ns = 0;

	text[0] = '\0';
	for (size_t r = 0; r < ranks->ranks.count; r++)
		for (size_t i = 0; i < ranks->ranks.items[r].collectives.count; i++) {
			const struct rank_collective *collective = &ranks->ranks.items[r].collectives.items[i];

			if (collective->bus_bytes <= 0)
				continue;
			bytes += collective->bus_bytes;
			ns += (double)ranks->shortest_ns[collective->operation];
		}
	if (ns > 0)
		snprintf(text, size, " The link of each rank transfers %s in each step at a bus bandwidth of %s GB/s.",
		         advice_bytes(bytes / (double)sum->steps).text, ops_figure_of_number(bytes / ns).text);
}

static bool find_bound(const struct advice_ranks *ranks, struct advice_result *result)
{
	struct communication sum = rule_communication_sum_up(ranks);
	struct advice_where where[ADVICE_WHERE_MAX];
	double left_ns = (double)sum.exposed_ns - ranks->explained_ns;
	char bandwidth[192], waits[128] = "", rest[128] = "No backward pass without collectives is left to hide it.";
	size_t count;

	if (rule_communication_percent(&sum, left_ns) <= BOUND_MIN_PCT)
		return true;
	if (each_ms(&sum, (double)sum.backward_ns) >= 0.001)
		snprintf(rest, sizeof(rest), "Only %s of the backward pass, without collectives so far, could hide more.",
		         advice_time(each_ms(&sum, (double)sum.backward_ns)).text);
	describe_bandwidth(ranks, &sum, bandwidth, sizeof(bandwidth));
	if (ranks->largest_group > (int64_t)ranks->ranks.count)
		snprintf(waits, sizeof(waits), " Only %zu of %lld ranks were given, so waits for the others count as transfers.",
		         ranks->ranks.count, (long long)ranks->largest_group);
	else if (ranks->ranks.count == 1)
		snprintf(waits, sizeof(waits), " Only one rank was given, so waits for the others count as transfers.");
	return rule_communication_find_places(ranks, NULL, where, &count) &&
	       advice_report_of_run(result,
	                            (struct advice_finding){.gain_ms = each_ms(&sum, left_ns),
	                                                    .gain_pct = rule_communication_percent(&sum, left_ns),
	                                                    .confidence = *waits ? ADVICE_UNSURE : ADVICE_LIKELY,
	                                                    .where_count = count},
	                            where,
	                            "%s %s. During %s of that (%s) nothing is "
	                            "computed. %s%s%s",
	                            describe_collectives(&sum).text,
	                            advice_time(each_ms(&sum, (double)sum.transfer_ns)).text, advice_time(each_ms(&sum, (double)sum.exposed_ns)).text,
	                            ops_figure_of_percent(rule_communication_percent(&sum, (double)sum.exposed_ns)).text, rest, bandwidth, waits);
}

const struct advice_rule advice_rule_overlap = {
	.id = "communication-not-overlapped",
	.title = "Communication does not overlap with computation",
	.condition = "During half or more of the transfer time of collectives, nothing is computed. Confidence is low.",
	.gain = "the time without computation, as far as a backward pass exists to hide it",
	.explanation = "Gradients of the last layers are ready long before those of the first. If they are sent at once, the "
		       "rest of the backward pass hides their transfer.",
	.advice = "torch.nn.parallel.DistributedDataParallel sends gradients as they become ready. With your own collectives, "
		       "pass async_op=True and wait just before the result is used. To check: operators or kernels run during "
		       "collectives.",
	.code = "work = dist.all_reduce(gradient, async_op=True)\n"
		"...  # compute\n"
		"work.wait()",
	.link = "https://docs.pytorch.org/docs/stable/notes/ddp.html",
	.needs = ADVICE_NEEDS_RANKS,
	.stage = ADVICE_STAGE_WAITS,
	.find_in_ranks = find_overlap,
};

const struct advice_rule advice_rule_tiny = {
	.id = "tiny-collectives",
	.title = "Ranks exchange many small messages",
	.condition = "Steps contain eight collectives or more of less than 256 kB.",
	.gain = "the share of their time, and of their calls, that one collective for each 25 MB saves",
	.explanation = "A collective takes a fixed time to start and to synchronize its ranks, however little it transfers.",
	.advice = "Combine them: a larger bucket_cap_mb of DistributedDataParallel, torch.cat of tensors that belong together, "
		       "or all_reduce_coalesced. Reduce statistics every N steps. To check: fewer and larger collectives in a "
		       "step.",
	.code = "model = DistributedDataParallel(model, bucket_cap_mb=25)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
	.needs = ADVICE_NEEDS_RANKS,
	.stage = ADVICE_STAGE_WAITS,
	.find_in_ranks = find_tiny,
};

const struct advice_rule advice_rule_links = {
	.id = "slow-link",
	.title = "Some ranks exchange data more slowly than others",
	.condition = "A group transfers less than half as many bytes a second as another group of the same size, in the same "
		       "operation, in messages of 1 MB or more.",
	.gain = "the time that the slower group takes longer",
	.explanation = "A group is as fast as the slowest link between its ranks, and everything that depends on it waits.",
	.advice = "Compare the links that NCCL chose (NCCL_DEBUG=INFO), the cables and the topology of both groups. Place "
		       "ranks that exchange the most on one node. To check: the bandwidth of both groups.",
	.link = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
	.needs = ADVICE_NEEDS_RANKS,
	.stage = ADVICE_STAGE_WAITS,
	.find_in_ranks = find_links,
};

const struct advice_rule advice_rule_bound = {
	.id = "communication-bound",
	.title = "Communication between ranks limits the speed",
	.condition = "Collectives during which nothing is computed take more than 10 % of the step. The evidence says what the "
		       "link of each rank transfers in a step, and the bus bandwidth as nccl-tests defines it. If traces of "
		       "some ranks are missing, waits for them count as transfers, and confidence is low.",
	.gain = "that time, except for what other findings count",
	.explanation = "The computation after a collective, such as the optimizer's, waits for all ranks. Communication that takes "
		       "longer than the computation it overlaps with extends each step by the difference.",
	.advice = "Transfer fewer bytes for each sample: use larger batches, and in training, accumulate gradients of several "
		       "micro-batches under model.no_sync(), or compress them (bf16_compress_hook, PowerSGD); try other values of "
		       "bucket_cap_mb. In inference, split the model over fewer ranks. Compare the bandwidth with that of the "
		       "link: nccl-tests measures it, and NCCL_DEBUG=INFO names the transport (NVLink, InfiniBand, sockets). To "
		       "check: the exposed time of collectives.",
	.code = "with model.no_sync():  # all micro-batches but the last\n"
		"    model(x).mean().backward()\n"
		"model(x).mean().backward()  # one all-reduce for all\n"
		"model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
	.link = "https://docs.pytorch.org/docs/stable/ddp_comm_hooks.html",
	.needs = ADVICE_NEEDS_RANKS,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_REST,
	.find_in_ranks = find_bound,
};
