/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of lines by sampled stacks, for traces without calls: where Python itself takes time between operators.
 *
 *     train.py(3): main      ├───────────────────────────────────────────┤
 *       net.py(7): tokenize     ├── Python ───┤
 *       module, called at 9                     ├─ Python ─┤ aten::mm ├─┤   net.py(20): forward
 *       samples                    ·      ·      ·      ·      ·      ·
 *
 * - In no event that has a line, a sample is self time of the innermost line of the program in its stack.
 * - The self time of modules and ranges is known, and is Python code: it is divided among the innermost lines of the samples in them.
 * - Operators are not Python code: their self time stays where it is.
 * - A line also has the time of the samples in whose stack it is, unless an event that was running then has been counted for it.
 */
#include "analyze/lines/line_costs.h"

#include "base/alloc.h"
#include "base/sum.h"
#include "derive/sample_moves.h"

struct sampled_lines {
	struct line_costs *costs;
	uint32_t *program_frames; /* by stack: see ops_sampled_program_frames */
	uint32_t *place;          /* by stack: the line of its innermost frame; OPS_NONE: it is not the program's */
	uint32_t *line_mark, *file_mark; /* by line, by file: the last sample that it was counted for */
	struct ops_sample_moves moves;   /* of the self time of modules and ranges, by line */
};

/* --- places ---------------------------------------------------------------------------------------------------------- */

static bool place_stacks(struct sampled_lines *lines)
{
	const struct ops_python_samples *samples = &lines->costs->samples;
	uint32_t *frames = ops_sampled_program_frames(samples);
	bool done = frames != NULL;

	for (uint32_t i = 0; done && i < samples->stacks.count; i++) {
		const struct ops_sampled_stack *stack = &samples->stacks.items[i];
		const struct ops_sampled_function *function = &samples->functions.items[stack->function];

		if (frames[i] != i)
			continue;
		lines->place[i] = line_costs_find(lines->costs, &(struct ops_function_text){
			.file = function->file, .name = function->name, .line = stack->line});
		done = lines->place[i] != OPS_NONE;
	}
	lines->program_frames = frames;
	return done;
}

/* --- self time ------------------------------------------------------------------------------------------------------- */

/* Divides the self time of modules and ranges of each line in proportion to the samples. */
static void apply_moves(struct sampled_lines *lines)
{
	struct line_cost *of = lines->costs->lines.items;

	for (size_t i = 0; i < lines->moves.moves.count; i++) {
		const struct ops_sample_move *move = &lines->moves.moves.items[i];
		int64_t moved_ns = (int64_t)(move->part * (double)of[move->from].open_ns);

		of[move->from].self_ns -= moved_ns;
		of[move->to].self_ns = ops_sum(of[move->to].self_ns, moved_ns);
	}
	for (size_t i = 0; i < lines->costs->lines.count; i++)
		if (of[i].host_ns < of[i].self_ns)
			of[i].host_ns = of[i].self_ns;
}

/* --- samples --------------------------------------------------------------------------------------------------------- */

/* Marks a line as counted for a sample, and its file. Returns whether each was not yet. */
static void mark_line(struct sampled_lines *lines, uint32_t line, uint32_t sample, bool *ret_line, bool *ret_file)
{
	uint32_t *of_line = &lines->line_mark[line], *of_file = &lines->file_mark[lines->costs->lines.items[line].file];

	*ret_line = *of_line != sample;
	*ret_file = *of_file != sample;
	*of_line = *of_file = sample;
}

/* Adds a sample to the times with calls of the lines and files in its stack, once each. What runs in an event of a line has been counted
 * for the line. */
static void add_to_callers(struct sampled_lines *lines, uint32_t number, uint32_t row)
{
	struct line_costs *costs = lines->costs;
	const struct ops_python_sample *sample = &costs->samples.samples.items[number];
	bool line, file;

	for (; row != OPS_NONE; row = costs->events->parent[row])
		if (costs->place[row] != OPS_NONE)
			mark_line(lines, costs->place[row], number, &line, &file);
	for (uint32_t at = sample->stack; at != OPS_NONE; at = costs->samples.stacks.items[at].caller) {
		struct line_cost *of;

		if (lines->place[at] == OPS_NONE)
			continue;
		of = &costs->lines.items[lines->place[at]];
		mark_line(lines, lines->place[at], number, &line, &file);
		if (line)
			of->host_ns = ops_sum(of->host_ns, sample->weight_ns);
		if (file)
			costs->files.items[of->file].host_ns = ops_sum(costs->files.items[of->file].host_ns, sample->weight_ns);
	}
}

static bool add_sample(struct sampled_lines *lines, uint32_t number, uint32_t row)
{
	struct line_costs *costs = lines->costs;
	const struct ops_python_sample *sample = &costs->samples.samples.items[number];
	uint32_t innermost = lines->program_frames[sample->stack], place;

	if (innermost == OPS_NONE)
		return true;
	place = lines->place[innermost];
	add_to_callers(lines, number, row);
	if (row == OPS_NONE || costs->place[row] == OPS_NONE) {
		costs->lines.items[place].self_ns = ops_sum(costs->lines.items[place].self_ns, sample->weight_ns);
		return true;
	}
	return !line_costs_is_open(costs->events, row) ||
	       ops_sample_moves_add(&lines->moves, costs->place[row], place, sample->state, sample->weight_ns);
}

static bool has_calls(const struct line_costs *costs)
{
	for (uint32_t row = 0; row < costs->events->count; row++)
		if (costs->inside[row] != OPS_NONE && costs->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			return true;
	return false;
}

static bool line_samples_add(struct sampled_lines *lines)
{
	const struct line_costs *costs = lines->costs;
	const struct ops_python_samples *samples = &costs->samples;
	uint32_t *rows = ops_python_sample_rows(samples, costs->trace);
	uint8_t *waits = ops_python_sample_waits(samples, costs->trace);
	bool done = rows && waits;

	for (size_t i = 0; done && i < samples->samples.count; i++)
		if (waits[i])
			lines->costs->waits_ns = ops_sum(costs->waits_ns, samples->samples.items[i].weight_ns);
		else
			done = add_sample(lines, (uint32_t)i, rows[i]);
	ops_free(rows);
	ops_free(waits);
	return done;
}

bool line_costs_add_samples(struct line_costs *costs)
{
	struct sampled_lines lines = {.costs = costs};
	bool done;

	if (has_calls(costs))
		return true;
	if (!ops_python_samples_read(&costs->samples, costs->trace))
		return false;
	if (!costs->samples.samples.count)
		return true;
	lines.place = ops_alloc_none(costs->samples.stacks.count + 1);
	done = lines.place && place_stacks(&lines);
	if (done) {
		lines.line_mark = ops_alloc_none(costs->lines.count + 1);
		lines.file_mark = ops_alloc_none(costs->files.count + 1);
		done = lines.line_mark && lines.file_mark && line_samples_add(&lines) && ops_sample_moves_divide(&lines.moves);
	}
	if (done)
		apply_moves(&lines);
	ops_free(lines.program_frames);
	ops_free(lines.place);
	ops_free(lines.line_mark);
	ops_free(lines.file_mark);
	ops_sample_moves_release(&lines.moves);
	return done;
}
