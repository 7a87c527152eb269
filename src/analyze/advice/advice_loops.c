/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops in functions of the program: calls of one name at one line, repeated by one call of a function (or one step). Each
 * repetition is an iteration. Iterations of the same call that overlap in time belong to one loop. Of nested loops the
 * outermost counts whose operators are small, or else the innermost. Several calls of one name at a line are one iteration
 * unless the line is known to start again: `a.append(x); b.append(y)`.
 */
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "trace/names.h"

/* Minimum number of iterations; fewer are blocks of a model or parts of a step. */
#define ITERATIONS_MIN 16

/* A longer operator does real work, which one operator for all iterations does not save. Calls cost 1 to 10 µs, with
 * allocation and recording, and several times that with the calls of a few other operators inside. */
#define CALL_NS_MAX 40000

/* The same for each of the operators inside an operator that is composed of dozens, such as an LSTM cell, with itself. */
#define INNER_CALL_NS_MAX 15000

struct iteration {
	uint32_t parent;
	uint32_t count;       /* number of calls */
	uint32_t visits;      /* number of visits of the line that contain them */
	uint32_t arrivals;    /* those of the visits that came from another line */
	uint32_t last_visit, last_arrival;
	uint32_t first;
	int64_t start_ns, end_ns;
	int64_t own_ns;       /* time of the calls at this line */
};

/* The current line of a call, by the first call made there. The line starts again if the call reaches it from another line,
 * or repeats that first call. */
struct visit {
	uint32_t line;
	uint32_t first_name;
	uint32_t number;
	uint32_t arrival; /* how often the call has reached it from another line, or has reached an unknown line */
};

/* Outermost operators of one name with equal inputs. */
struct kind {
	int64_t quickest_ns;
	int64_t flops;
};

struct search {
	struct ops_map iterations_by_key;
	struct ops_map visits_by_call;
	OPS_ARRAY(struct visit) visits;
	struct ops_map unbound;   /* by call of a function of the program: rows of the tensor that it iterated over last */
	struct ops_map next_loop; /* by call: the loop that may contain its next row */
	OPS_ARRAY(struct iteration) iterations;
	int64_t *quickest_ns; /* by name */
	struct ops_map kinds; /* of outermost operators, by name and inputs */
	OPS_ARRAY(struct kind) of_kind;
	uint8_t *slicing;     /* by name */
	uint8_t *reading;
	uint8_t *choosing;
	uint8_t *looking_up;
};

/* A loop ends with its step: steps that no row marks are in one call of a function. */
static uint64_t advice_loops_key_of(const struct advice *advice, uint32_t row)
{
	uint64_t key = (uint64_t)advice->step_of[row] << 32 | advice->events->parent[row];
	uint32_t line = advice->events->call_line ? advice->events->call_line[row] : 0;

	key = key * 0x9e3779b97f4a7c15u + line;
	return key * 0x9e3779b97f4a7c15u + advice->events->name[row];
}

/* Returns true for a row directly below a function of the program, or below a range or step in one. */
static bool advice_loops_is_candidate(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row], caller = advice->caller[row];

	return advice_counts(advice, row) && parent != OPS_NONE && caller != OPS_NONE && advice->site[row] != OPS_NONE &&
	       !(advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER | ADVICE_IN_OPERATOR)) &&
	       advice->views->parts[row] != VIEW_STEP &&
	       advice->events->name[advice->sites.items[advice->site[row]].frame] == advice->events->name[caller];
}

/* Returns the visit that contains a row; NULL if out of memory. Without lines each call counts as a visit. */
static const struct visit *visit_of(struct search *search, const struct advice *advice, uint32_t row)
{
	const struct ops_events *events = advice->events;
	uint32_t line = events->call_line ? events->call_line[row] : 0;
	struct visit *visit = OPS_ARRAY_AT(&search->visits, ops_map_number(&search->visits_by_call, events->parent[row]));

	if (!visit)
		return NULL;
	if (!line || visit->line != line)
		*visit = (struct visit){line, events->name[row], visit->number + 1, visit->arrival + 1};
	else if (visit->first_name == events->name[row])
		visit->number++;
	return visit;
}

/* Minimum number of calls of the first name at a line to count as iterations of a loop within it, even if the line
 * itself is in a loop. Fewer calls may be written one after another. */
#define INNER_ITERATIONS_MIN 4

static uint32_t iterations_of(const struct iteration *iteration)
{
	return iteration->arrivals > 1 && iteration->visits / INNER_ITERATIONS_MIN < iteration->arrivals ? iteration->arrivals
	                                                                                                 : iteration->visits;
}

static bool find_iterations(struct search *search, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		const struct visit *visit;
		struct iteration *iteration;

		if (!advice_loops_is_candidate(advice, row))
			continue;
		visit = visit_of(search, advice, row);
		if (!visit)
			return false;
		iteration = OPS_ARRAY_AT(&search->iterations,
		                         ops_map_number(&search->iterations_by_key, advice_loops_key_of(advice, row)));
		if (!iteration)
			return false;
		if (!iteration->count)
			*iteration = (struct iteration){.parent = advice->events->parent[row], .first = row,
			                                .start_ns = advice->events->start_ns[row]};
		iteration->count++;
		iteration->visits += visit->number != iteration->last_visit;
		iteration->arrivals += visit->arrival != iteration->last_arrival;
		iteration->last_visit = visit->number;
		iteration->last_arrival = visit->arrival;
		iteration->end_ns = advice->events->end_ns[row];
		iteration->own_ns = ops_sum(iteration->own_ns, advice_ns(advice, row));
	}
	return true;
}

OPS_ORDER(compare_rounds, struct iteration, OPS_UP(parent) OPS_UP(start_ns) OPS_UP(first))

static void add_iteration(struct advice_loop *loop, const struct iteration *iteration)
{
	loop->iterations = iterations_of(iteration) > loop->iterations ? iterations_of(iteration) : loop->iterations;
	loop->least_count = iterations_of(iteration) < loop->least_count ? iterations_of(iteration) : loop->least_count;
	loop->end_ns = iteration->end_ns > loop->end_ns ? iteration->end_ns : loop->end_ns;
	if (iteration->own_ns >= loop->row_ns) {
		loop->row_ns = iteration->own_ns;
		loop->row = iteration->first;
	}
}

static bool join_rounds(struct search *search, struct advice *advice)
{
	struct advice_loop *loop = NULL;

	OPS_ARRAY_SORT(&search->iterations, compare_rounds);
	for (size_t i = 0; i < search->iterations.count; i++) {
		const struct iteration *iteration = &search->iterations.items[i];

		if (iterations_of(iteration) < ITERATIONS_MIN)
			continue;
		if (!loop || loop->parent != iteration->parent || loop->end_ns <= iteration->start_ns) {
			if (!ops_map_slot(&search->next_loop, iteration->parent, (uint32_t)advice->loops.count) ||
			    !(loop = OPS_ARRAY_PUSH(&advice->loops)))
				return false;
			*loop = (struct advice_loop){.parent = iteration->parent, .begin = iteration->first, .begin_count = iteration->count,
			                             .least_count = iterations_of(iteration), .start_ns = iteration->start_ns};
		}
		add_iteration(loop, iteration);
	}
	return true;
}

/* Maximum number of elements at which the time of an operator is that of its call: its arithmetic takes less than a
 * microsecond. */
#define SMALL_ELEMENTS 4096

static uint64_t operator_kind(const struct advice *advice, uint32_t row)
{
	return (uint64_t)advice->events->name[row] << 32 | advice->events->inputs[row];
}

static bool has_inputs(const struct advice *advice, uint32_t row)
{
	return advice->events->inputs && advice->events->inputs[row] != OPS_NONE;
}

/* Returns true for operators of which others with equal inputs do the same work. What those of a device cost depends on what it
 * still has to do. */
static bool has_kind(const struct advice *advice, uint32_t row)
{
	return !(advice->has & ADVICE_NEEDS_DEVICE) && has_inputs(advice, row);
}

static const struct kind *kind_of_operator(const struct search *search, const struct advice *advice, uint32_t row)
{
	return &search->of_kind.items[ops_map_find(&search->kinds, operator_kind(advice, row))];
}

/* Operators with fewer operations do not show how quickly the machine computes. */
#define MANY_FLOPS 1000000

/* Returns the part of the time of a small operator that its operations take in an operator for all iterations. The share is that of the
 * quickest equal operator, since a busy machine makes others slower. */
static int64_t arithmetic_ns(const struct search *search, const struct advice *advice, uint32_t row)
{
	const struct kind *kind = has_kind(advice, row) ? kind_of_operator(search, advice, row) : NULL;
	double needed_ns = kind && advice->flops_per_ns > 0 ? (double)kind->flops / advice->flops_per_ns : 0;
	double share = needed_ns > 0 && kind->quickest_ns > 0 ? needed_ns / (double)kind->quickest_ns : 0;

	return (int64_t)((double)advice_ns(advice, row) * (share < 1 ? share : 1));
}

/* Returns the time of an operator beyond its call overhead: for a large operator, beyond the fastest one of the same
 * name. */
static int64_t work_of(const struct search *search, const struct advice *advice, uint32_t row)
{
	int64_t call_ns = search->quickest_ns[advice->events->name[row]], elements;
	uint8_t dtype;

	/* Selecting a row takes no longer for a large tensor. */
	if (search->slicing[advice->events->name[row]])
		return 0;
	elements = advice_elements(advice, row, &dtype);
	if (elements <= SMALL_ELEMENTS)
		return arithmetic_ns(search, advice, row);
	return advice_ns(advice, row) - (call_ns < CALL_NS_MAX ? call_ns : CALL_NS_MAX);
}

/* A busy machine makes operators slower, most of all those that share their work with another thread, so an operator counts with
 * at most twice the time of the quickest one with equal inputs. */
#define SLOWER_MAX 2

static int64_t typical_ns(const struct search *search, const struct advice *advice, uint32_t row)
{
	int64_t ns = advice_ns(advice, row), most_ns;

	if (!has_kind(advice, row))
		return ns;
	most_ns = SLOWER_MAX * kind_of_operator(search, advice, row)->quickest_ns;
	return ns < most_ns ? ns : most_ns;
}

/* Loops of a call are in order of time, and so are the rows below it. */
static uint32_t find_loop(struct search *search, const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row], *next;
	const struct advice_loop *loops = advice->loops.items;

	if (parent == OPS_NONE || !advice_counts(advice, row))
		return OPS_NONE;
	if (advice->loop_of[parent] != OPS_NONE)
		return advice->loop_of[parent];
	if (ops_map_find(&search->next_loop, parent) == OPS_NONE)
		return OPS_NONE;
	next = ops_map_slot(&search->next_loop, parent, 0); /* the slot exists, so this allocates nothing */
	while (*next + 1 < advice->loops.count && loops[*next + 1].parent == parent &&
	       loops[*next + 1].start_ns <= advice->events->start_ns[row])
		++*next;
	return !loops[*next].opened && advice->events->start_ns[row] >= loops[*next].start_ns && advice->events->start_ns[row] < loops[*next].end_ns
	               ? *next : OPS_NONE;
}

/* A loop over a tensor unbinds it before the first iteration: in the function that contains the loop, or, if a
 * comprehension is a separate function, in the function around that. */
static bool find_unbound(struct search *search, struct advice *advice)
{
	static const char *const patterns[] = {"aten::unbind", NULL};
	uint8_t *which = advice_names(advice, patterns);
	bool done = which != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t frame = advice->caller[row], *slot;
		struct ops_input input;

		if (!which[advice->events->name[row]] || !advice_counts(advice, row) || (advice->zone[row] & ADVICE_IN_OPERATOR) ||
		    !advice_input(advice, row, 0, &input) || !input.n)
			continue;
		/* Tensor.__iter__ belongs to torch. */
		if (frame != OPS_NONE && advice_own_site(advice, frame) == OPS_NONE)
			frame = advice->caller[frame];
		if (frame == OPS_NONE)
			continue;
		slot = ops_map_slot(&search->unbound, frame, 0);
		done = slot != NULL;
		if (slot)
			*slot = (uint32_t)ops_input_int(&input, 0);
	}
	ops_free(which);
	return done;
}

static bool goes_through(const struct search *search, const struct advice *advice, const struct advice_loop *loop)
{
	uint32_t frame = loop->parent;

	for (int i = 0; i < 2 && frame != OPS_NONE; i++, frame = advice->caller[frame]) {
		uint32_t rows = ops_map_find(&search->unbound, frame);

		if (rows != OPS_NONE && rows && loop->iterations % rows == 0)
			return true;
	}
	return false;
}

/* The self waits of a function are attributed to its loop by its share of the self time. */
static void leave_out_own_waits(struct advice_loop *loop, const struct advice *advice)
{
	int64_t lost_ns = advice->lost_ns[loop->parent], own_ns = ops_difference(loop->span_ns, loop->inside_ns);
	int64_t all_ns = ops_sum(advice->self_ns[loop->parent], lost_ns);

	if (lost_ns > 0 && own_ns > 0)
		loop->span_ns -= own_ns < all_ns ? (int64_t)((double)lost_ns * (double)own_ns / (double)all_ns) : lost_ns;
}

bool advice_may_begin(const struct advice *advice, const struct advice_loop *loop, uint32_t row)
{
	const struct ops_events *events = advice->events;

	return events->parent[row] == loop->parent && events->name[row] == events->name[loop->begin] &&
	       (!events->call_line || events->call_line[row] == events->call_line[loop->begin]);
}

bool advice_loops_agree(const struct advice *advice, uint8_t *verdicts, int among)
{
	int64_t *votes = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*votes));

	for (size_t i = 0; votes && i < advice->loops.count; i++)
		votes[advice->site[advice->loops.items[i].begin]] += verdicts[i] ? among - 1 : -1;
	for (size_t i = 0; votes && i < advice->loops.count; i++)
		verdicts[i] = votes[advice->site[advice->loops.items[i].begin]] >= 0;
	ops_free(votes);
	return votes != NULL;
}

/* Returns true if the operators of a loop are mostly call overhead. */
static bool is_quick(const struct advice_loop *loop)
{
	return loop->operators && (loop->typical_ns / loop->operators <= CALL_NS_MAX ||
	                           loop->typical_ns / loop->all_operators <= INNER_CALL_NS_MAX);
}

/* A busy machine makes operators slower, never quicker, so the quickest tenth of the loops decides. */
#define QUICK_AMONG 10

static bool find_small_loops(struct advice *advice)
{
	uint8_t *small = ops_alloc_zeroed(advice->loops.count + 1, 1);
	bool done = small != NULL;

	for (size_t i = 0; done && i < advice->loops.count; i++)
		small[i] = is_quick(&advice->loops.items[i]);
	done = done && advice_loops_agree(advice, small, QUICK_AMONG);
	for (size_t i = 0; done && i < advice->loops.count; i++)
		advice->loops.items[i].small = small[i];
	ops_free(small);
	return done;
}

/* Minimum time of a call without operators that handling a row does not need. */
#define APART_NS_MIN 50000

/* Returns true for the outermost call without operators, if it takes long. */
static bool is_apart(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return !advice->operator_ns[row] && parent != OPS_NONE && advice->operator_ns[parent] && advice_ns(advice, row) >= APART_NS_MIN;
}

/* Resets what weigh_rows() sums up. */
static void reset_loops(struct search *search, struct advice *advice)
{
	for (size_t i = advice->loops.count; i-- > 0;) {
		struct advice_loop *loop = &advice->loops.items[i];

		/* The slot exists, so this allocates nothing. In the end it has the first loop of the call. */
		*ops_map_slot(&search->next_loop, loop->parent, 0) = (uint32_t)i;
		loop->span_ns = advice_cost_ns(advice, loop->start_ns, loop->end_ns);
		loop->inside_ns = loop->apart_ns = loop->backward_ns = loop->operators_ns = loop->typical_ns = loop->work_ns = 0;
		loop->operators = loop->all_operators = loop->in_place = 0;
		loop->slices = loop->reads = loop->chooses = loop->looks_up = false;
	}
}

static bool weigh_rows(struct search *search, struct advice *advice)
{
	reset_loops(search, advice);
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row] = find_loop(search, advice, row);
		struct advice_loop *loop;

		if (index == OPS_NONE)
			continue;
		loop = &advice->loops.items[index];
		if (loop->parent == advice->events->parent[row]) {
			loop->inside_ns = ops_sum(loop->inside_ns, advice_ns(advice, row));
			loop->backward_ns = ops_sum(loop->backward_ns, advice->backward_ns[row]);
			loop->span_ns = ops_sum(loop->span_ns, advice->device_ns[row]);
		}
		if (is_apart(advice, row))
			loop->apart_ns = ops_sum(loop->apart_ns, advice_ns(advice, row));
		loop->span_ns = ops_difference(loop->span_ns, ops_sum(advice_recording_ns(advice, row), advice->lost_ns[row]));
		if (!advice_is_operator(advice, row))
			continue;
		loop->all_operators++;
		if (advice->zone[row] & ADVICE_IN_OPERATOR)
			continue;
		loop->operators++;
		loop->in_place += advice_name(advice, row).size && advice_name(advice, row).bytes[advice_name(advice, row).size - 1] == '_';
		loop->operators_ns = ops_sum(loop->operators_ns, advice_ns(advice, row));
		loop->typical_ns = ops_sum(loop->typical_ns, typical_ns(search, advice, row));
		loop->work_ns = ops_sum(loop->work_ns, work_of(search, advice, row));
		loop->slices |= search->slicing[advice->events->name[row]] != 0;
		loop->reads |= search->reading[advice->events->name[row]] != 0;
		loop->chooses |= search->choosing[advice->events->name[row]] != 0;
		loop->looks_up |= search->looking_up[advice->events->name[row]] != 0;
	}
	for (size_t i = 0; i < advice->loops.count; i++) {
		struct advice_loop *loop = &advice->loops.items[i];

		leave_out_own_waits(loop, advice);
		/* A step that waits for a thread waits for its operators, one by one. What the thread does in between may be in
		 * parallel to the step. */
		if (advice->zone[loop->parent] & ADVICE_PARALLEL && loop->span_ns > loop->inside_ns)
			loop->span_ns = loop->inside_ns;
		loop->slices |= goes_through(search, advice, loop);
	}
	return find_small_loops(advice);
}

/* Maximum number of nested loops. */
#define NESTED_MAX 4

/* Opens loops whose operators are large. Returns false if there are none. */
static bool open_loops(struct advice *advice)
{
	bool opened = false;

	for (size_t i = 0; i < advice->loops.count; i++) {
		struct advice_loop *loop = &advice->loops.items[i];

		opened |= !loop->opened && loop->operators && !loop->small;
		loop->opened |= loop->operators && !loop->small;
	}
	return opened;
}

static bool weigh(struct search *search, struct advice *advice)
{
	bool done = weigh_rows(search, advice);

	for (int i = 0; done && i < NESTED_MAX && open_loops(advice); i++)
		done = weigh_rows(search, advice);
	if (!done)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row], forward = advice->forward[row];

		if (index != OPS_NONE && advice->loops.items[index].small && advice->loops.items[index].slices)
			advice->zone[row] |= ADVICE_IN_ROW_LOOP;
		/* A backward pass in each iteration is in the time of the loop already. */
		if (index != OPS_NONE && forward != OPS_NONE && advice->loop_of[forward] == index) {
			advice->loops.items[index].backward_ns = 0;
			advice->loops.items[index].differentiates = true;
		}
	}
	return true;
}

/* Counts the modules called in loops, each once, except for those called by another module in the loop. */
static bool count_modules(struct advice *advice)
{
	const struct ops_events *events = advice->events;
	struct ops_map seen = {0};
	uint8_t *inside = ops_alloc_zeroed(events->count + 1, 1); /* by row: it is, or is inside, a module call in the
	                                                           * loop */
	bool done = inside != NULL;

	for (uint32_t row = 0; done && row < events->count; row++) {
		uint32_t index = advice->loop_of[row], parent = events->parent[row], module, *slot;

		if (index == OPS_NONE)
			continue;
		inside[row] = parent != OPS_NONE && advice->loop_of[parent] == index && inside[parent];
		if (inside[row] || events->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
			continue;
		/* A recording numbers modules, Kineto names them "nn.Module: Block_3". */
		module = events->module ? events->module[row] : OPS_NONE;
		if (module == OPS_NONE && ops_is_module_name(advice_name(advice, row)))
			module = events->name[row];
		if (module == OPS_NONE)
			continue;
		inside[row] = 1;
		slot = ops_map_slot(&seen, (uint64_t)index << 32 | module, 0);
		done = slot != NULL;
		if (slot && !(*slot)++)
			advice->loops.items[index].modules++;
	}
	ops_map_release(&seen);
	ops_free(inside);
	return done;
}

static void keep_least(int64_t *least, int64_t ns)
{
	if (!*least || ns < *least)
		*least = ns;
}

static bool find_quickest(struct search *search, struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct kind *kind;

		if (!advice_is_operator(advice, row))
			continue;
		keep_least(&search->quickest_ns[advice->events->name[row]], advice_ns(advice, row));
		if ((advice->zone[row] & ADVICE_IN_OPERATOR) || !has_inputs(advice, row))
			continue;
		kind = OPS_ARRAY_AT(&search->of_kind, ops_map_number(&search->kinds, operator_kind(advice, row)));
		if (!kind)
			return false;
		if (!kind->quickest_ns)
			kind->flops = advice->demands[row].flops;
		keep_least(&kind->quickest_ns, advice_ns(advice, row));
		if (kind->flops >= MANY_FLOPS && kind->quickest_ns > 0 && (double)kind->flops / (double)kind->quickest_ns > advice->flops_per_ns)
			advice->flops_per_ns = (double)kind->flops / (double)kind->quickest_ns;
	}
	return true;
}

/* Finds in each loop the one that takes most of its time, if that is one line in all iterations: a loop over images that calls a
 * function with a loop over classes. */
static bool find_inner(struct advice *advice)
{
	struct advice_loop *loops = advice->loops.items;
	const uint32_t count = (uint32_t)advice->loops.count;
	int64_t *inner_ns = ops_alloc_zeroed(count + 1, sizeof(*inner_ns));

	if (!inner_ns)
		return false;
	for (uint32_t i = 0; i < count; i++)
		loops[i].inner = i;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t outer = advice->loop_of[loops[i].parent];

		if (outer != OPS_NONE && (loops[outer].inner == outer || loops[i].span_ns > loops[loops[outer].inner].span_ns))
			loops[outer].inner = i;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t outer = advice->loop_of[loops[i].parent];

		if (outer != OPS_NONE && advice->site[loops[i].begin] == advice->site[loops[loops[outer].inner].begin])
			inner_ns[outer] = ops_sum(inner_ns[outer], loops[i].span_ns);
	}
	for (uint32_t i = 0; i < count; i++)
		if (inner_ns[i] < loops[i].span_ns / 2)
			loops[i].inner = i;
	ops_free(inner_ns);
	return true;
}

/* Adds the line of the statement around a line of a loop, if the source is known and it is in the same function. */
static bool add_header(struct advice *advice, uint32_t of, uint32_t *ret_site)
{
	struct ops_function_text function;
	uint32_t line, frame;

	*ret_site = OPS_NONE;
	if (of == OPS_NONE || !advice->sites.items[of].line || !ops_event_function(advice->trace, advice->sites.items[of].frame, &function))
		return true;
	frame = advice->sites.items[of].frame;
	line = ops_source_loop(&advice->source, function.file, advice->sites.items[of].line);
	return line <= function.line || advice_add_site(advice, frame, line, ret_site);
}

static bool find_headers(struct advice *advice)
{
	bool done = true;

	for (size_t i = 0; done && i < advice->loops.count; i++) {
		struct advice_loop *loop = &advice->loops.items[i];

		done = add_header(advice, advice->site[loop->row], &loop->header) && add_header(advice, loop->header, &loop->outer_header);
	}
	return done;
}

bool advice_find_loops(struct advice *advice)
{
	static const char *const slicing[] = {"aten::select", "aten::slice", "aten::index", "aten::index_put_", "aten::narrow",
	                                      "aten::unbind", NULL};
	static const char *const reading[] = {"aten::item", "aten::is_nonzero", "aten::_local_scalar_dense", NULL};
	static const char *const choosing[] = {"aten::multinomial", "aten::argmax", "aten::topk", NULL};
	static const char *const looking_up[] = {"aten::embedding", "aten::index_select", NULL};
	struct search search = {.slicing = advice_names(advice, slicing), .reading = advice_names(advice, reading),
	                        .choosing = advice_names(advice, choosing), .looking_up = advice_names(advice, looking_up)};
	bool done;

	advice->loop_of = ops_realloc_array(NULL, advice->events->count + 1, sizeof(*advice->loop_of));
	search.quickest_ns = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, sizeof(*search.quickest_ns));
	done = advice->loop_of && search.slicing && search.reading && search.choosing && search.looking_up && search.quickest_ns && find_iterations(&search, advice) &&
	       join_rounds(&search, advice);
	done = done && find_unbound(&search, advice) && find_quickest(&search, advice) && weigh(&search, advice);
	done = done && count_modules(advice) && advice_find_recurrent(advice) && find_inner(advice) && find_headers(advice);
	ops_map_release(&search.iterations_by_key);
	ops_map_release(&search.visits_by_call);
	OPS_ARRAY_RELEASE(&search.visits);
	ops_map_release(&search.next_loop);
	ops_map_release(&search.unbound);
	OPS_ARRAY_RELEASE(&search.iterations);
	ops_map_release(&search.kinds);
	OPS_ARRAY_RELEASE(&search.of_kind);
	ops_free(search.quickest_ns);
	ops_free(search.slicing);
	ops_free(search.reading);
	ops_free(search.choosing);
	ops_free(search.looking_up);
	return done;
}

uint8_t *advice_updating_functions(const struct advice *advice)
{
	uint8_t *updates = ops_alloc_zeroed(advice->events->count + 1, 1);

	for (size_t i = 0; updates && i < advice->loops.count; i++)
		if (advice_loop_updates(&advice->loops.items[i]) && advice->loops.items[i].parent != OPS_NONE)
			updates[advice->loops.items[i].parent] = 1;
	return updates;
}
