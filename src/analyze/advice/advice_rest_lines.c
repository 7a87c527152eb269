/* SPDX-License-Identifier: Apache-2.0
 *
 * The lines at which the time is that no finding explains, and what they do.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_activity.h"
#include "analyze/advice/advice_rest.h"
#include "analyze/advice/advice_unusual.h"
#include "analyze/advice/advice_walk.h"
#include "analyze/roofline/roofline.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/sample_moves.h"

#define KEPT_MAX 64         /* lines of a trace that are kept for the average over traces */
#define SHOWN_MAX 8         /* lines that are reported */
#define LINE_PCT_MIN 1.0    /* and the minimum part of a step of each but the first */
#define SHARE_MIN 0.5       /* minimum share of a line that has something in common */
#define UNUSUAL_MIN 0.25    /* minimum share of a line in operators with unusual tensors */
#define THROUGH_MIN 0.05    /* minimum share of a line of the program in a line of a library */
#define MODULE_MIN 0.05     /* minimum share of a line in a module */
#define ONE_MODULE 0.9      /* share of a line in a module from which on it is the only one that is named */

#define ROW_MIN 0.0005      /* minimum share of a step of an operator whose tensors are examined */

static const char *const state_names[] = {OPS_THREAD_STATE_NAMES};

/* A line, module, operator or kernel. */
struct rest_group {
	uint32_t site;   /* OPS_NONE: none */
	uint32_t row;    /* forward operator with the most time below it, or the row with the most self time */
	uint32_t name;   /* of an operator or kernel without line and module; else OPS_NONE */
	bool of_operator; /* `row` is an operator */
	double row_ns;
	double all_ns, ns[REST_KINDS];
	double open_ns[REST_KINDS]; /* part of `ns` in which Python code runs: self time of steps, modules and ranges */
	double wait_ns[OPS_THREAD_STATES];
	double roof_ns, bound_ns; /* time of operators with a lower bound, and that bound */
	double loop_ns, copied_ns;
	double unusual_ns, unusual_row_ns;
	uint64_t calls;
	uint32_t unusual_row;
	struct unusual_call unusual;
};

/* The time of a group in one operator, in one module, or through one line of a library. */
struct group_part {
	uint32_t group;
	uint32_t id; /* of a string, of a text of `modules`, or of a library site */
	double ns;
};

struct group_parts {
	struct group_part *items;
	size_t count, capacity;
	struct ops_map numbers;
};

struct rest_lines {
	const struct advice *advice;
	struct rest_times times;
	double *device_ns;   /* by row: device work that it launches itself */
	int64_t *exposed_ns; /* by row: without a device, its self time in which only collectives run */
	int64_t outside_exposed_ns; /* the same in no row */
	double *below_ns;    /* by row: time of it and the rows below that no finding explains */
	uint32_t *outermost; /* by row: the operator around it, or the forward one of its backward pass; OPS_NONE: none */
	uint32_t *group_of;  /* by row; OPS_NONE: none */
	uint8_t *copies;     /* by string: copies or converts */
	struct ops_intern modules;
	struct ops_map numbers;
	OPS_ARRAY(struct rest_group) groups;
	struct group_parts operators, in_modules, through;
};

static double row_ns(const struct rest_lines *lines, uint32_t row)
{
	return lines->times.self_ns[row] * lines->times.part[row];
}

/* --- groups ----------------------------------------------------------------------------------------------------------- */

static bool is_step_mark(const struct advice *advice, uint32_t row)
{
	return advice->views->parts[row] == VIEW_STEP;
}

enum { KEY_LINE = 1, KEY_MODULE, KEY_OPERATOR, KEY_NOWHERE };

static uint64_t rest_line_key(uint32_t site)
{
	return (uint64_t)KEY_LINE << 32 | site;
}

/* Returns the group of a place, which it adds if it is new; OPS_NONE if out of memory. `row`: OPS_NONE for time in no row. */
static uint32_t find_group(struct rest_lines *lines, uint32_t site, uint32_t row)
{
	const struct advice *advice = lines->advice;
	bool has_line = site != OPS_NONE, nowhere = !has_line && (row == OPS_NONE || is_step_mark(advice, row));
	struct ops_string module = has_line || row == OPS_NONE ? (struct ops_string){"", 0} : ops_place_module(&advice->places, row);
	uint32_t name = has_line || nowhere ? OPS_NONE : advice->events->name[lines->outermost[row] == OPS_NONE ? row : lines->outermost[row]], number;
	uint64_t key = has_line ? rest_line_key(site) : nowhere ? (uint64_t)KEY_NOWHERE << 32 : (uint64_t)KEY_OPERATOR << 32 | name;
	struct rest_group *group;
	bool is_new;

	if (module.size)
		key = (uint64_t)KEY_MODULE << 32 | ops_intern_add(&lines->modules, module.bytes, module.size);
	number = ops_map_number(&lines->numbers, key);
	is_new = number == lines->groups.count;
	group = OPS_ARRAY_AT(&lines->groups, number);
	if (!group)
		return OPS_NONE;
	if (is_new)
		*group = (struct rest_group){.site = site, .row = OPS_NONE, .name = module.size ? OPS_NONE : name, .unusual_row = OPS_NONE};
	return number;
}

static bool rest_add_part(struct group_parts *parts, uint32_t group, uint32_t id, double ns)
{
	uint32_t at = ops_map_number(&parts->numbers, (uint64_t)group << 32 | id);
	struct group_part *part = OPS_ARRAY_AT(parts, at);

	if (!part)
		return false;
	part->group = group;
	part->id = id;
	part->ns += ns;
	return true;
}

static void release_parts(struct group_parts *parts)
{
	OPS_ARRAY_RELEASE(parts);
	ops_map_release(&parts->numbers);
}

#define PARTS_MAX 3
_Static_assert(REST_PARTS_MAX <= PARTS_MAX && ADVICE_THROUGH_MAX <= PARTS_MAX, "room for the parts that are reported");

/* Finds the parts of a group with the most time. Returns their number. */
static int find_longest_parts(const struct group_parts *parts, uint32_t group, struct group_part longest[PARTS_MAX])
{
	int count = 0;

	for (size_t i = 0; i < parts->count; i++) {
		const struct group_part *part = &parts->items[i];
		int at = count;

		if (part->group != group || part->ns <= 0)
			continue;
		while (at > 0 && part->ns > longest[at - 1].ns)
			at--;
		if (at == PARTS_MAX)
			continue;
		count += count < PARTS_MAX;
		memmove(&longest[at + 1], &longest[at], (size_t)(count - 1 - at) * sizeof(*longest));
		longest[at] = *part;
	}
	return count;
}

static void add_time(struct rest_group *group, enum advice_rest_kind kind, double ns)
{
	group->ns[kind] += ns;
	group->all_ns += ns;
}

/* --- rows ------------------------------------------------------------------------------------------------------------- */

static enum advice_rest_kind rest_kind_of(const struct rest_lines *lines, uint32_t row)
{
	const struct advice *advice = lines->advice;
	uint32_t operator = lines->outermost[row];

	if (advice_is_device_work(advice, row))
		return REST_DEVICE;
	if (advice->views->names[advice->events->name[operator == OPS_NONE ? row : operator]] & VIEW_NAME_COLLECTIVE)
		return REST_COMMUNICATION;
	if (advice->views->device_events.count)
		return REST_IDLE;
	if (is_step_mark(advice, row) && advice_self_site(advice, row) == OPS_NONE)
		return REST_OUTSIDE;
	if (advice->zone[row] & ADVICE_WAITING)
		return REST_WAITING;
	return operator != OPS_NONE ? REST_OPERATORS : REST_PYTHON;
}

/* Iterations that need the results of others do not read rows of one tensor. */
static bool is_in_loop_over_rows(const struct advice *advice, uint32_t row)
{
	uint32_t index = advice->loop_of[row];

	return (advice->zone[row] & ADVICE_IN_ROW_LOOP) && (index == OPS_NONE || !advice->loops.items[index].recurrent);
}

/* The operator of a group with the most time, or without operators the row with the most self time. */
static void find_longest(struct rest_lines *lines, struct rest_group *group, uint32_t row)
{
	const struct advice *advice = lines->advice;
	bool is_operator = lines->outermost[row] == row && advice->forward[row] == OPS_NONE;
	double ns = is_operator ? lines->below_ns[row] : row_ns(lines, row);

	if (lines->outermost[row] != OPS_NONE && !is_operator) {
		group->row = group->row == OPS_NONE ? row : group->row;
		return;
	}
	if (is_operator) {
		group->calls += ns > 0;
		group->loop_ns += is_in_loop_over_rows(advice, row) ? ns : 0;
		group->copied_ns += lines->copies[advice->events->name[row]] ? ns : 0;
	}
	if (group->row != OPS_NONE && (is_operator == group->of_operator ? ns <= group->row_ns : group->of_operator))
		return;
	group->row = row;
	group->row_ns = ns;
	group->of_operator = is_operator;
}

static bool add_module(struct rest_lines *lines, uint32_t number, uint32_t row, double ns)
{
	struct ops_string module = ops_place_module(&lines->advice->places, row);
	uint32_t id = module.size ? ops_intern_add(&lines->modules, module.bytes, module.size) : OPS_INTERN_NONE;

	return !module.size || (id != OPS_INTERN_NONE && rest_add_part(&lines->in_modules, number, id, ns));
}

/* Returns the part of the self time of a row in which only collectives run, not more than `own_ns`. */
static double exposed_in_row(const struct rest_lines *lines, uint32_t row, double own_ns)
{
	return fmin((double)lines->exposed_ns[row], own_ns);
}

/* Adds the time of a row, without its waits, which have separate places. */
static bool rest_add_row(struct rest_lines *lines, uint32_t row)
{
	const struct advice *advice = lines->advice;
	double ns = row_ns(lines, row), self_ns = lines->times.self_ns[row], device_ns = lines->device_ns[row], waits_ns, exposed_ns;
	uint32_t number, operator = lines->outermost[row];
	struct rest_group *group;

	if (self_ns <= 0 && operator != row)
		return true;
	number = find_group(lines, advice_self_site(advice, row), row);
	if (number == OPS_NONE)
		return false;
	lines->group_of[row] = number;
	group = &lines->groups.items[number];
	if (self_ns > 0) {
		enum advice_rest_kind kind = rest_kind_of(lines, row);

		device_ns = device_ns < self_ns ? device_ns : self_ns;
		waits_ns = (double)advice->stalled_self_ns[row] < self_ns - device_ns ? (double)advice->stalled_self_ns[row] : self_ns - device_ns;
		exposed_ns = fmax(0, exposed_in_row(lines, row, self_ns - device_ns) - waits_ns);
		self_ns -= device_ns + waits_ns + exposed_ns;
		add_time(group, REST_DEVICE, lines->times.part[row] * device_ns);
		add_time(group, REST_COMMUNICATION, lines->times.part[row] * exposed_ns);
		add_time(group, kind, lines->times.part[row] * self_ns);
		if (operator == OPS_NONE) {
			group->open_ns[REST_COMMUNICATION] += lines->times.part[row] * exposed_ns;
			group->open_ns[kind] += lines->times.part[row] * self_ns;
		}
	}
	find_longest(lines, group, row);
	if (ns > 0 && group->site != OPS_NONE && !add_module(lines, number, advice->forward[row] == OPS_NONE ? row : advice->forward[row], ns))
		return false;
	if (ns > 0 && advice->through[row] != OPS_NONE && !rest_add_part(&lines->through, number, advice->through[row], ns))
		return false;
	if (operator == OPS_NONE && !advice_is_device_work(advice, row))
		return true;
	return ns <= 0 || rest_add_part(&lines->operators, number, advice->events->name[operator == OPS_NONE ? row : operator], ns);
}

/* Waits in the self time of rows, at the lines at which they wait. While only collectives run, a row mainly waits for them. */
static bool rest_add_stalls(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;

	for (size_t i = 0; i < advice->stalls.count; i++) {
		const struct advice_stall *stall = &advice->stalls.items[i];
		double self_ns = lines->times.self_ns[stall->row], stalled_ns = (double)advice->stalled_self_ns[stall->row], ns, exposed_ns;
		uint32_t number;

		if (self_ns <= 0 || stalled_ns <= 0)
			continue;
		ns = (double)stall->ns * lines->times.part[stall->row] * (stalled_ns > self_ns ? self_ns / stalled_ns : 1);
		number = find_group(lines, stall->site, stall->row);
		if (number == OPS_NONE)
			return false;
		exposed_ns = ns * exposed_in_row(lines, stall->row, stalled_ns) / stalled_ns;
		add_time(&lines->groups.items[number], REST_COMMUNICATION, exposed_ns);
		add_time(&lines->groups.items[number], REST_WAITING, ns - exposed_ns);
		lines->groups.items[number].wait_ns[stall->state] += ns - exposed_ns;
		if (lines->groups.items[number].row == OPS_NONE)
			lines->groups.items[number].row = stall->row;
	}
	return true;
}

/* Adds the time in no row. Returns its group; OPS_NONE if out of memory. */
static uint32_t add_outside(struct rest_lines *lines)
{
	enum advice_rest_kind kind = lines->advice->views->device_events.count ? REST_IDLE : REST_OUTSIDE;
	double exposed_ns = fmin((double)lines->outside_exposed_ns, lines->times.outside_ns), ns = lines->times.outside_ns - exposed_ns;
	uint32_t number = find_group(lines, OPS_NONE, OPS_NONE);
	struct rest_group *group = number != OPS_NONE ? &lines->groups.items[number] : NULL;

	if (group) {
		add_time(group, REST_COMMUNICATION, exposed_ns);
		add_time(group, kind, ns);
		group->open_ns[REST_COMMUNICATION] += exposed_ns;
		group->open_ns[kind] += ns;
	}
	return number;
}

/* Returns true for the thread of a sample if steps run on it. */
static bool is_of_steps(const struct advice *advice, size_t sample)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(advice->trace, &count);

	for (size_t i = 0; i < count; i++)
		if (advice->step_tracks[i] && tracks[i].kind == OPS_TRACK_THREAD && tracks[i].tid == advice->samples.samples.items[sample].tid)
			return true;
	return false;
}

/* `outside`: group of the sample if no row runs. */
static bool rest_add_move(struct rest_lines *lines, struct ops_sample_moves *moves, size_t sample, uint32_t outside)
{
	const struct advice *advice = lines->advice;
	const struct ops_python_sample *of = &advice->samples.samples.items[sample];
	uint32_t row = advice->sample_row[sample], from = row == OPS_NONE ? outside : lines->group_of[row], to;

	if (from == OPS_NONE || (row != OPS_NONE && lines->outermost[row] != OPS_NONE) || advice->sample_site[sample] == OPS_NONE)
		return true;
	if (row != OPS_NONE && advice->sampled && ops_thread_state_waits(of->state)) /* see rest_add_stalls() */
		return true;
	to = find_group(lines, advice->sample_site[sample], row);
	if (to == OPS_NONE)
		return false;
	if (lines->groups.items[to].row == OPS_NONE)
		lines->groups.items[to].row = row;
	return ops_sample_moves_add(moves, from, to, of->state, of->weight_ns);
}

/* Moves the time of a group to another line in which a thread was found in a state. */
static void rest_apply_move(struct rest_lines *lines, const struct ops_sample_move *move)
{
	struct rest_group *from = &lines->groups.items[move->from], *to = &lines->groups.items[move->to];
	bool waits = ops_thread_state_waits(move->state);

	for (int kind = 0; kind < REST_KINDS; kind++) {
		double ns = fmin(move->part * from->open_ns[kind], from->ns[kind]); /* rounded */
		bool stays = kind == REST_IDLE || kind == REST_COMMUNICATION;
		enum advice_rest_kind is = stays ? (enum advice_rest_kind)kind : waits ? REST_WAITING : kind == REST_OUTSIDE ? REST_PYTHON : (enum advice_rest_kind)kind;

		from->ns[kind] -= ns;
		from->all_ns = fmax(from->all_ns - ns, 0);
		add_time(to, is, ns);
		to->wait_ns[move->state] += is == REST_WAITING ? ns : 0;
	}
}

/* Divides the time outside of operators among the lines in which samples found the program. */
static bool rest_add_samples(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	const struct ops_python_sample *samples = advice->samples.samples.items;
	struct ops_sample_moves moves = {0};
	struct ops_intervals steady = {0};
	uint32_t outside = add_outside(lines);
	bool done = outside != OPS_NONE && advice_steady_spans(advice, &steady), of_steps = false;
	size_t cursor = 0;

	for (size_t i = 0; done && i < advice->samples.samples.count; i++) {
		if (!i || samples[i].tid != samples[i - 1].tid) {
			of_steps = is_of_steps(advice, i);
			cursor = 0;
		}
		done = rest_add_move(lines, &moves, i,
		                     of_steps && ops_intervals_within(&steady, samples[i].time_ns, samples[i].time_ns + 1, &cursor) ? outside : OPS_NONE);
	}
	done = done && ops_sample_moves_divide(&moves);
	for (size_t i = 0; done && i < moves.moves.count; i++)
		rest_apply_move(lines, &moves.moves.items[i]);
	ops_sample_moves_release(&moves);
	ops_intervals_release(&steady);
	return done;
}

/* Time in which only collectives run, at the lines that start them. */
static bool add_exposed(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	double all_ns = 0;

	for (int pass = 0; lines->times.exposed_ns > 0 && pass < 2; pass++)
		for (size_t i = 0; i < advice->views->device_events.count; i++) {
			const struct view_device_event *event = &advice->views->device_events.items[i];
			uint32_t row = advice_launch_row(advice, event), number;
			double ns = (double)ops_difference(advice->events->end_ns[event->row], advice->events->start_ns[event->row]);

			if (!event->communicates || advice->step_of[event->row] == OPS_NONE)
				continue;
			all_ns += pass ? 0 : ns;
			if (!pass || all_ns <= 0)
				continue;
			number = find_group(lines, advice->site[row], row);
			if (number == OPS_NONE || !rest_add_part(&lines->operators, number, advice->events->name[event->row], lines->times.exposed_ns * ns / all_ns))
				return false;
			add_time(&lines->groups.items[number], REST_COMMUNICATION, lines->times.exposed_ns * ns / all_ns);
			if (lines->groups.items[number].row == OPS_NONE)
				lines->groups.items[number].row = row;
		}
	if (all_ns <= 0)
		lines->times.exposed_ns = 0;
	return true;
}

/* Kernels that no operator launches, as those of graphs, are named at the line that launches them. */
static bool add_kernels(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;

	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		uint32_t row = advice_launch_row(advice, event);
		double ns = (double)advice->ns[event->row] * lines->times.part[row];

		if (row == event->row || event->communicates || lines->group_of[row] == OPS_NONE || lines->outermost[row] != OPS_NONE || ns <= 0)
			continue;
		if (!rest_add_part(&lines->operators, lines->group_of[row], advice->events->name[event->row], ns))
			return false;
	}
	return true;
}

/* --- roof and tensors ------------------------------------------------------------------------------------------------- */

static bool add_bounds(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	struct roofline roofline;
	bool done;

	if (!(advice->has & ADVICE_NEEDS_ROOF) || !(advice->has & ADVICE_NEEDS_SHAPES))
		return true;
	done = roofline_init(&roofline, advice->trace, OPS_ROOFLINE_OPERATOR, NULL, NULL) == OPS_OK;
	for (size_t i = 0; done && i < roofline.calls.count; i++) {
		const struct roofline_call *call = &roofline.calls.items[i];
		uint32_t number = lines->group_of[call->row];
		double part = lines->times.part[call->row], ns = (double)(roofline.has_device_work ? call->time_ns : advice_ns(advice, call->row));

		if (number == OPS_NONE || !call->roof || call->roof->source == ROOF_UNKNOWN || ns <= 0)
			continue;
		lines->groups.items[number].roof_ns += part * ns;
		lines->groups.items[number].bound_ns += part * (call->bound_ns < ns ? call->bound_ns : ns);
	}
	roofline_release(&roofline);
	return done;
}

static bool add_unusual(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	uint8_t *grown = advice->flow ? advice_unusual_grown(advice) : NULL;

	for (uint32_t row = 0; grown && row < advice->events->count; row++) {
		uint32_t number = lines->group_of[row];
		enum operator_kind kind = advice_kind(advice, row);
		double ns = lines->below_ns[row];
		struct rest_group *group;
		struct unusual_call call;

		if (number == OPS_NONE || advice->flow->memory.rows.node[row] != row || lines->outermost[row] != row || 
		    ns * (double)advice->step_count < ROW_MIN * (double)advice->steps_ns)
			continue;
		call = advice_unusual_of(advice, grown, row);
		if (!call.kind)
			call.kind = advice_unusual_layout(advice, row, kind >= OPERATOR_PRODUCT);
		group = &lines->groups.items[number];
		group->unusual_ns += call.kind ? ns : 0;
		if (!call.kind || ns <= group->unusual_row_ns)
			continue;
		group->unusual = call;
		group->unusual_row = row;
		group->unusual_row_ns = ns;
	}
	ops_free(grown);
	return grown || !advice->flow;
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

static bool rest_keep_text(struct advice_report *report, const char *text, struct ops_string *ret_text)
{
	return advice_report_keep(report, text, strlen(text), ret_text);
}

static bool describe_tensors(const struct rest_lines *lines, const struct rest_group *group, struct advice_rest_line *line)
{
	const struct advice *advice = lines->advice;
	struct ops_input input = {0};
	char text[1024] = "";

	if (group->of_operator)
		input = advice_largest_input(advice, group->row);
	if (group->loop_ns >= SHARE_MIN * group->all_ns)
		snprintf(text, sizeof(text), "A loop calls operators on one row after another.");
	else if (group->copied_ns >= SHARE_MIN * group->all_ns)
		snprintf(text, sizeof(text), "Most of the time is copies and conversions.");
	if (group->unusual.kind && group->unusual_ns >= UNUSUAL_MIN * group->all_ns) {
		size_t used = strlen(text);

		text[used] = used ? ' ' : '\0';
		used += used > 0;
		snprintf(text + used, sizeof(text) - used, "%s: ", advice_name(advice, group->unusual_row).bytes);
		used = strlen(text);
		advice_describe_unusual(advice, &group->unusual, group->unusual_row, text + used, sizeof(text) - used);
	}
	return rest_keep_text(advice->report, text, &line->unusual) &&
	       rest_keep_text(advice->report, input.tag ? advice_describe_tensor(&input).text : "", &line->tensor);
}

/* Adds the operators of a group with the most time. */
static bool describe_operators(const struct rest_lines *lines, uint32_t number, struct advice_rest_line *line)
{
	static const char engine[] = "autograd::engine::evaluate_function: ";
	const struct advice *advice = lines->advice;
	struct group_part longest[PARTS_MAX];
	int count = find_longest_parts(&lines->operators, number, longest);

	for (int i = 0; i < count; i++) {
		struct ops_string name = ops_trace_string(advice->trace, longest[i].id);

		if (ops_string_starts(name, engine))
			name = (struct ops_string){name.bytes + strlen(engine), name.size - strlen(engine)};
		line->operators[i].pct = advice_percent(advice, longest[i].ns);
		if (!advice_report_keep(advice->report, name.bytes, name.size, &line->operators[i].name))
			return false;
	}
	return true;
}

/* Adds the modules of a line with the most time, instead of that of its longest event, unless nearly all of it is in one. */
static bool describe_modules(const struct rest_lines *lines, uint32_t number, struct advice_rest_line *line)
{
	struct group_part longest[PARTS_MAX];
	int count = find_longest_parts(&lines->in_modules, number, longest);
	double all_ns = lines->groups.items[number].all_ns, in_modules_ns = 0, part;

	for (size_t i = 0; i < lines->in_modules.count; i++)
		in_modules_ns += lines->in_modules.items[i].group == number ? lines->in_modules.items[i].ns : 0;
	part = in_modules_ns > all_ns ? all_ns / in_modules_ns : 1; /* findings explain the rest */
	if (!count || part * longest[0].ns >= ONE_MODULE * all_ns)
		return true;
	line->where.module = (struct ops_string){"", 0};
	for (int i = 0; i < count && part * longest[i].ns >= MODULE_MIN * all_ns; i++) {
		struct ops_string name = ops_intern_text(&lines->modules, longest[i].id);

		line->modules[i].pct = advice_percent(lines->advice, part * longest[i].ns);
		if (!advice_report_keep(lines->advice->report, name.bytes, name.size, &line->modules[i].name))
			return false;
	}
	return true;
}

/* Adds the lines of libraries through which a group has the most time. */
static void describe_through(const struct rest_lines *lines, uint32_t number, struct advice_rest_line *line)
{
	struct group_part longest[PARTS_MAX];
	int count = find_longest_parts(&lines->through, number, longest);

	for (int i = 0; i < count; i++) {
		line->through_pct[i] = advice_percent(lines->advice, longest[i].ns);
		if (line->through_pct[i] < THROUGH_MIN * line->pct)
			break;
		line->where.through[line->where.through_count++] = advice_describe_through(lines->advice, longest[i].id);
	}
}

static bool describe_group(const struct rest_lines *lines, uint32_t number, struct advice_rest_line *line)
{
	const struct rest_group *group = &lines->groups.items[number];
	const struct advice *advice = lines->advice;
	int waits = OPS_THREAD_STATES;

	*line = (struct advice_rest_line){.where = advice_describe(advice, group->site, group->row), .ns = group->all_ns / (double)advice->step_count,
	                                  .pct = advice_percent(advice, group->all_ns), .calls = advice_per_step(advice, group->calls),
	                                  .roof_pct = group->roof_ns >= SHARE_MIN * group->all_ns ? 100 * group->bound_ns / group->roof_ns : (double)NAN};
	if (group->name != OPS_NONE)
		line->where.operator_name = ops_trace_string(advice->trace, group->name);
	for (int kind = 0; kind < REST_KINDS; kind++)
		line->kinds[kind] = advice_percent(advice, group->ns[kind]);
	for (int state = 0; state < OPS_THREAD_STATES; state++)
		if (group->wait_ns[state] > (waits == OPS_THREAD_STATES ? 0 : group->wait_ns[waits]))
			waits = state;
	describe_through(lines, number, line);
	return describe_modules(lines, number, line) && advice_report_keep_where(advice->report, &line->where) && describe_operators(lines, number, line) && describe_tensors(lines, group, line) &&
	       rest_keep_text(advice->report, waits == OPS_THREAD_STATES ? "" : state_names[waits], &line->waits_for);
}

/* Returns true if two lines of different traces, or of two functions at a line, are the same. */
static bool is_same_rest(const struct advice_where *a, const struct advice_where *b)
{
	if (a->line || b->line)
		return advice_same_line(a, b);
	return ops_string_equals(a->module, b->module) && (a->module.size || ops_string_equals(a->operator_name, b->operator_name));
}

/* Adds a line to that of the same place, of which the one with more time is described. */
static bool merge_line(struct advice_rest *rest, const struct advice_rest_line *line)
{
	for (size_t i = 0; i < rest->lines.count; i++) {
		struct advice_rest_line *same = &rest->lines.items[i], sum = line->pct > same->pct ? *line : *same;

		if (!is_same_rest(&same->where, &line->where))
			continue;
		sum.ns = same->ns + line->ns;
		sum.pct = same->pct + line->pct;
		sum.calls = same->calls + line->calls;
		for (int kind = 0; kind < REST_KINDS; kind++)
			sum.kinds[kind] = same->kinds[kind] + line->kinds[kind];
		*same = sum;
		return true;
	}
	return OPS_ARRAY_APPEND(&rest->lines, *line);
}

struct rest_rank {
	double ns;
	uint32_t group;
};

OPS_ORDER(compare_rest_ranks, struct rest_rank, OPS_DOWN(ns) OPS_UP(group))

/* Adds time of steps that belongs to no row. */
static bool add_line_without_place(const struct advice *advice, double ns, enum advice_rest_kind kind, const char *waits_for)
{
	struct advice_rest_line line = {.where = {.trace = advice->report->traces, .row = OPS_NONE}, .ns = ns / (double)advice->step_count,
	                                .pct = advice_percent(advice, ns), .roof_pct = (double)NAN,
	                                .waits_for = {waits_for, strlen(waits_for)}};

	line.kinds[kind] = line.pct;
	return merge_line(&advice->report->rest, &line);
}

static bool report_groups(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	struct rest_rank *ranks = ops_realloc_array(NULL, lines->groups.count + 1, sizeof(*ranks));
	double contended_ns = lines->times.contended_ns, sum_ns = contended_ns;
	struct advice_rest *rest = &advice->report->rest;
	size_t used = 0;
	bool done = ranks != NULL;

	for (uint32_t i = 0; done && i < lines->groups.count; i++) {
		sum_ns += lines->groups.items[i].all_ns;
		if (lines->groups.items[i].all_ns > 0)
			ranks[used++] = (struct rest_rank){lines->groups.items[i].all_ns, i};
	}
	if (used)
		qsort(ranks, used, sizeof(*ranks), compare_rest_ranks);
	for (size_t i = 0; done && i < used && i < KEPT_MAX; i++) {
		struct advice_rest_line line;

		done = describe_group(lines, ranks[i].group, &line) && merge_line(rest, &line);
		rest->has_lines |= line.where.line != 0;
	}
	done = done && (!(contended_ns > 0) || add_line_without_place(advice, contended_ns, REST_WAITING, state_names[OPS_THREAD_READY]));
	ops_free(ranks);
	sum_ns = sum_ns < (double)advice->steps_ns ? sum_ns : (double)advice->steps_ns;
	rest->ns += sum_ns / (double)advice->step_count;
	rest->pct += advice_percent(advice, sum_ns);
	rest->explained_pct += 100 - advice_percent(advice, sum_ns);
	rest->traces++;
	return done;
}

/* --- trace ------------------------------------------------------------------------------------------------------------ */

static void rest_find_rows(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	const struct ops_events *events = advice->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row], outer = parent == OPS_NONE ? OPS_NONE : lines->outermost[parent];

		if (outer == OPS_NONE && advice_is_operator(advice, row) && !is_step_mark(advice, row) && advice->views->parts[row] == VIEW_OPERATOR)
			outer = row;
		if (advice->forward[row] != OPS_NONE)
			outer = lines->outermost[advice->forward[row]] != OPS_NONE ? lines->outermost[advice->forward[row]] : advice->forward[row];
		lines->outermost[row] = outer;
		lines->device_ns[row] += (double)advice->device_ns[row];
		if (parent != OPS_NONE)
			lines->device_ns[parent] -= (double)advice->device_ns[row];
	}
	for (uint32_t row = (uint32_t)events->count; row-- > 0;) {
		lines->below_ns[row] += row_ns(lines, row);
		if (events->parent[row] != OPS_NONE)
			lines->below_ns[events->parent[row]] += lines->below_ns[row];
	}
}

/* A device has its own intervals of collectives, see add_exposed(). */
static bool rest_find_exposed(struct rest_lines *lines)
{
	const struct advice *advice = lines->advice;
	struct advice_activity activity = {0};
	struct advice_walk walk = {0};
	struct ops_intervals steady = {0}, exposed = {0};
	bool done = true;

	if (!advice->views->device_events.count && advice->views->has_collectives)
		done = advice_activity_find(advice, &activity) && advice_steady_spans(advice, &steady) && ops_intervals_intersect(&activity.exposed, &steady, &exposed) &&
		       advice_walk_init(&walk, advice);
	for (size_t i = 0; done && i < exposed.count; i++)
		advice_walk_divide(&walk, OPS_NONE, exposed.items[i].start_ns, exposed.items[i].end_ns, lines->exposed_ns);
	lines->outside_exposed_ns = ops_intervals_length(&exposed);
	for (uint32_t row = 0; row < advice->events->count; row++)
		lines->outside_exposed_ns -= lines->exposed_ns[row];
	advice_walk_release(&walk);
	advice_activity_release(&activity);
	ops_intervals_release(&steady);
	ops_intervals_release(&exposed);
	return done;
}

static bool find_lines(struct rest_lines *lines)
{
	static const char *const copies[] = {"aten::copy_", "aten::clone", "aten::contiguous", "aten::to", "aten::_to_copy", "aten::cat", "aten::stack", NULL};
	const struct advice *advice = lines->advice;
	size_t count = advice->events->count + 1;
	bool done;

	lines->device_ns = ops_alloc_zeroed(count, sizeof(*lines->device_ns));
	lines->below_ns = ops_alloc_zeroed(count, sizeof(*lines->below_ns));
	lines->exposed_ns = ops_alloc_zeroed(count, sizeof(*lines->exposed_ns));
	lines->outermost = ops_alloc_none(count);
	lines->group_of = ops_alloc_none(count);
	lines->copies = advice_names(advice, copies);
	done = lines->device_ns && lines->below_ns && lines->exposed_ns && rest_find_exposed(lines) && lines->outermost && lines->group_of && lines->copies;
	if (done)
		rest_find_rows(lines);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		done = rest_add_row(lines, row);
	done = done && rest_add_stalls(lines) && rest_add_samples(lines) && add_exposed(lines) && add_kernels(lines) && add_bounds(lines) && add_unusual(lines);
	if (!done)
		return false;
	return report_groups(lines);
}

bool advice_rest_add(const struct advice *advice, struct advice_explanations *explanations, struct advice_finding *findings, size_t count)
{
	struct rest_lines lines = {.advice = advice};
	bool done;

	if (advice->is_of_samples || advice->has_no_times || advice->steps_ns <= 0 || !advice->step_count)
		return true;
	done = rest_times_find(advice, explanations, findings, count, &lines.times) && find_lines(&lines);
	rest_times_release(&lines.times);
	ops_free(lines.device_ns);
	ops_free(lines.below_ns);
	ops_free(lines.exposed_ns);
	ops_free(lines.outermost);
	ops_free(lines.group_of);
	ops_free(lines.copies);
	ops_intern_release(&lines.modules);
	ops_map_release(&lines.numbers);
	OPS_ARRAY_RELEASE(&lines.groups);
	release_parts(&lines.operators);
	release_parts(&lines.in_modules);
	release_parts(&lines.through);
	return done;
}

/* --- report ----------------------------------------------------------------------------------------------------------- */

static void subtract_from_line(struct advice_rest *rest, struct advice_rest_line *line, enum advice_rest_kind kind, double pct)
{
	double part = line->pct > 0 ? pct / line->pct : 0;

	rest->ns -= line->ns * part;
	rest->pct -= pct;
	rest->explained_pct += pct;
	line->ns -= line->ns * part;
	line->pct -= pct;
	line->kinds[kind] -= pct;
}

/* Findings about a run explain communication, as much as they gain. */
static void subtract_communication(struct advice_report *report)
{
	struct advice_rest *rest = &report->rest;
	double gain_pct = 0, all_pct = 0;

	for (size_t i = 0; i < report->findings.count; i++)
		gain_pct += report->findings.items[i].rule->find_in_ranks ? report->findings.items[i].gain_pct : 0;
	for (size_t i = 0; i < rest->lines.count; i++)
		all_pct += rest->lines.items[i].kinds[REST_COMMUNICATION];
	for (size_t i = 0; all_pct > 0 && i < rest->lines.count; i++) {
		struct advice_rest_line *line = &rest->lines.items[i];

		subtract_from_line(rest, line, REST_COMMUNICATION, line->kinds[REST_COMMUNICATION] * (gain_pct < all_pct ? gain_pct / all_pct : 1));
	}
}

/* What findings about a run gain in addition is time of calls and waits of the host, at unknown lines. Of one trace, the gains and the rest
 * take no longer than the step; of several, each may have other findings. */
static void limit_rest(struct advice_report *report)
{
	struct advice_rest *rest = &report->rest;
	double gain_pct = 0, left_pct, part;

	for (size_t i = 0; i < report->findings.count; i++)
		gain_pct += report->findings.items[i].gain_pct;
	assert(report->traces != 1 || gain_pct <= 100 * ADVICE_SHARE_MAX);
	left_pct = fmax(0, 100 - gain_pct);
	if (report->traces != 1 || rest->pct <= left_pct + 100 * (ADVICE_SHARE_MAX - 1))
		return;
	part = left_pct / rest->pct;
	rest->ns *= part;
	rest->pct = left_pct;
	rest->explained_pct = 100 - left_pct;
	for (size_t i = 0; i < rest->lines.count; i++) {
		struct advice_rest_line *line = &rest->lines.items[i];

		line->ns *= part;
		line->pct *= part;
		for (int kind = 0; kind < REST_KINDS; kind++)
			line->kinds[kind] *= part;
	}
}

static void average_line(struct advice_rest_line *line, double traces)
{
	line->ns /= traces;
	line->pct /= traces;
	line->calls /= traces;
	for (int kind = 0; kind < REST_KINDS; kind++)
		line->kinds[kind] /= traces;
}

/* What findings explain has been subtracted from the line, not from its parts. */
static void limit_parts(struct advice_rest_line *line)
{
	for (int i = 0; i < REST_PARTS_MAX; i++) {
		line->operators[i].pct = fmin(line->operators[i].pct, line->pct);
		line->modules[i].pct = fmin(line->modules[i].pct, line->pct);
	}
	for (int i = 0; i < ADVICE_THROUGH_MAX; i++)
		if (line->through_pct[i] > line->pct)
			line->through_pct[i] = line->pct;
}

OPS_ORDER(compare_rest_lines, struct advice_rest_line, OPS_DOWN(pct) OPS_UP(where.line) OPS_UP(where.row))

void advice_rest_finish(struct advice_report *report)
{
	struct advice_rest *rest = &report->rest;
	double traces = rest->traces ? (double)rest->traces : 1;
	size_t shown = 0;

	rest->ns /= traces;
	rest->pct /= traces;
	rest->explained_pct /= traces;
	for (size_t i = 0; i < rest->lines.count; i++)
		average_line(&rest->lines.items[i], traces);
	subtract_communication(report);
	limit_rest(report);
	for (size_t i = 0; i < rest->lines.count; i++)
		limit_parts(&rest->lines.items[i]);
	if (rest->lines.count)
		qsort(rest->lines.items, rest->lines.count, sizeof(*rest->lines.items), compare_rest_lines);
	while (shown < rest->lines.count && shown < SHOWN_MAX && rest->lines.items[shown].pct >= (shown ? LINE_PCT_MIN : 0.05))
		shown++;
	rest->lines.count = shown;
}
