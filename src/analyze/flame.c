/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a flame graph: each event with its self time, below all functions, ranges and operators that were
 * open around it. Equal stacks are merged. A backward node is placed where its forward operator was called, unless the
 * graph shows the order of execution or the forward operator is unknown; then it stays where it ran. Averages are
 * placed below the frames that they are grouped by. Wrappers (derive/program.h) have no frames unless they are kept.
 * Their self time counts for their caller, so modules and operators have the same self time here as in tables; without
 * a caller it counts for the call that they lead to. Waits of helper threads (derive/helper_waits.h) are left out unless
 * they are kept.
 */
#include "analyze/flame.h"

#include <string.h>

#include "analyze/visible.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "base/sum.h"
#include "derive/backward.h"
#include "derive/helper_waits.h"
#include "derive/program.h"

/* --- place of each row -------------------------------------------------------------------------------------------- */

struct placing {
	struct ops_frames *frames;
	const struct ops_events *events;
	const uint32_t *forward; /* ops_forward_rows; NULL: backward nodes stay where they ran */
	const uint32_t *into;    /* ops_wrappers; NULL: none, or they are kept */
	uint32_t *chains;  /* by row, the result; owned by the caller */
	uint32_t *labels;  /* by string: the displayed name; OPS_NONE: not computed yet */
	uint8_t *framed;   /* bits by row: is a Python function or has one around it */
};

/* Names are displayed as in tables: all steps have the same name. */
static uint32_t flame_label_of(const struct placing *p, uint32_t string)
{
	struct ops_average row = {.key = OPS_KEY_NAME, .name = string};

	if (p->labels[string] == OPS_NONE)
		p->labels[string] = ops_frames_name(p->frames, ops_average_name(p->frames->trace, &row));
	return p->labels[string];
}

static bool flame_folds(const struct placing *p, uint32_t row)
{
	return p->into && p->into[row] != OPS_NONE && ops_event_visible(p->events, p->into[row]);
}

/* Returns false if out of memory. */
static bool flame_place_row(const struct placing *p, uint32_t row)
{
	const struct ops_events *events = p->events;
	uint32_t around = 0, host = events->parent[row];
	bool framed = events->kind[row] == OPS_EVENT_PYTHON_FUNCTION;

	/* In malformed files a forward operator can follow its backward node. It has no chain yet. */
	if (p->forward && p->forward[row] < OPS_ROW_PLAIN && p->chains[p->forward[row]]) {
		host = p->forward[row];
		around = p->frames->frames.items[p->chains[host]].caller;
	} else if (host != OPS_NONE) {
		around = p->chains[host];
	}
	framed |= host != OPS_NONE && ops_bit(p->framed, host);
	if (!framed && events->call_stack && events->call_stack[row] != OPS_NONE) {
		around = ops_frames_add_text(p->frames, around,
		                             ops_trace_string(p->frames->trace, events->call_stack[row]), NULL);
		framed = true;
	}
	if (framed)
		ops_bit_set(p->framed, row);
	if (flame_folds(p, row))
		p->chains[row] = around;
	else
		p->chains[row] = ops_frames_add(p->frames, around, flame_label_of(p, events->name[row]));
	return p->chains[row] != OPS_NONE;
}

/* Returns the chain of each visible row, which includes the row itself. Returns NULL if out of memory. */
static uint32_t *place_rows(struct ops_frames *frames, const struct ops_flame_choices *choices)
{
	struct placing p = {.frames = frames, .events = ops_trace_events(frames->trace)};
	const struct ops_wrappers *wrappers = choices->keep_wrappers ? NULL : ops_wrappers_of(frames->trace);
	size_t count = p.events->count, strings = ops_trace_string_count(frames->trace);
	bool ok;

	p.forward = choices->backward_as_run ? NULL : ops_forward_rows(frames->trace);
	p.into = wrappers ? wrappers->into : NULL;
	p.chains = ops_alloc_zeroed(count + 1, sizeof(*p.chains));
	p.labels = ops_alloc_none(strings + 1);
	p.framed = ops_alloc_zeroed(count / 8 + 1, 1);
	ok = (p.forward || choices->backward_as_run) && (wrappers || choices->keep_wrappers) && p.chains && p.labels &&
	     p.framed;
	for (size_t row = 0; ok && row < count; row++)
		if (ops_event_visible(p.events, row))
			ok = flame_place_row(&p, (uint32_t)row);
	for (uint32_t row = 0; ok && p.into && row < count; row++)
		if (ops_event_visible(p.events, row) && p.chains[row] == 0)
			p.chains[row] = p.chains[p.into[row]];
	ops_free(p.labels);
	ops_free(p.framed);
	if (ok)
		return p.chains;
	ops_free(p.chains);
	return NULL;
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

struct summing {
	struct ops_flame *flame;
	const struct ops_stacks *stacks;
	const struct ops_flame_choices *choices;
	const struct ops_helper_waits *waits; /* NULL: they are kept */
	uint32_t *chains; /* by row; NULL before the first event */
	uint32_t *names;  /* storage for the frames of an average */
	size_t name_room;
};

/* Returns the chain of an average: the frames it shows, and its name below them. */
static uint32_t chain_of_average(struct summing *s, const struct ops_average *row)
{
	struct ops_frames *frames = &s->flame->frames;
	size_t count, depth = 0;
	const struct ops_frame *of_stacks = s->stacks ? ops_stack_frames(s->stacks, &count) : NULL;
	uint32_t chain = 0, at = s->stacks ? ops_stack_of(s->stacks, row->first) : 0;

	for (; at != 0 && depth < row->stack_frames; at = of_stacks[at].caller) {
		if (depth == s->name_room) {
			uint32_t *grown = ops_realloc_array(s->names, s->name_room * 2 + 64, sizeof(*grown));

			if (!grown)
				return OPS_NONE;
			s->names = grown;
			s->name_room = s->name_room * 2 + 64;
		}
		s->names[depth++] = of_stacks[at].name;
	}
	while (depth-- > 0)
		chain = ops_frames_add(frames, chain, ops_frames_name(frames, ops_stack_text(s->stacks, s->names[depth])));
	return ops_frames_add(frames, chain, ops_frames_name(frames, ops_average_name(frames->trace, row)));
}

static uint32_t chain_of(struct summing *s, const struct ops_average *row)
{
	if (row->stack_frames != OPS_ALL_FRAMES || (row->first & OPS_MEMORY_REF))
		return chain_of_average(s, row);
	if (!s->chains)
		s->chains = place_rows(&s->flame->frames, s->choices);
	return s->chains ? s->chains[row->first] : OPS_NONE;
}

/* Device time counts at the launch, since rows on a stream have no stack. */
static int64_t flame_value_of(const struct summing *s, const struct ops_average *row)
{
	if (!(row->first & OPS_MEMORY_REF) && ops_event_on_device(s->flame->frames.trace, row->first))
		return 0;
	return s->choices->metric == OPS_STACKS_SELF_DEVICE ? row->self_device_time_total_ns : row->self_cpu_time_total_ns;
}

/* Rows of averages show no single thread, so their waits are kept. */
static bool is_left_out(const struct summing *s, const struct ops_average *row)
{
	return s->waits && row->stack_frames == OPS_ALL_FRAMES && !(row->first & OPS_MEMORY_REF) &&
	       ops_bit(s->waits->rows, row->first);
}

static bool grow_sums(struct ops_flame *flame)
{
	while (flame->self_ns.count < flame->frames.frames.count)
		if (!OPS_ARRAY_APPEND(&flame->self_ns, 0))
			return false;
	return true;
}

bool ops_flame_add(struct ops_flame *flame, uint32_t chain, int64_t ns)
{
	if (chain == OPS_NONE || !grow_sums(flame))
		return false;
	flame->self_ns.items[chain] = ops_sum(flame->self_ns.items[chain], ns);
	return true;
}

static bool flame_add_row(struct summing *s, const struct ops_average *row)
{
	int64_t value = flame_value_of(s, row);

	if (value == 0)
		return true;
	if (is_left_out(s, row)) {
		s->flame->waits_ns = ops_sum(s->flame->waits_ns, value);
		return true;
	}
	return ops_flame_add(s->flame, chain_of(s, row), value);
}

enum ops_code ops_flame_new(const struct ops_trace *trace, const struct ops_stacks *stacks, const struct ops_rows *rows,
                            const struct ops_flame_choices *choices, struct ops_flame **ret_flame, struct ops_error *error)
{
	struct ops_flame *flame = ops_alloc_zeroed(1, sizeof(*flame));
	struct summing s = {.flame = flame, .stacks = stacks, .choices = choices};
	struct ops_average row;
	bool ok = flame && ops_frames_init(&flame->frames, trace);

	s.waits = choices->keep_waits ? NULL : ops_helper_waits_of(trace);
	ok = ok && (s.waits || choices->keep_waits);
	for (size_t i = 0; ok && i < rows->count; i++) {
		rows->get(rows->context, i, &row);
		ok = flame_add_row(&s, &row);
	}
	ok = ok && grow_sums(flame);
	ops_free(s.chains);
	ops_free(s.names);
	if (ok) {
		*ret_flame = flame;
		return OPS_OK;
	}
	ops_flame_free(flame);
	return ops_fault_memory(error);
}

void ops_flame_free(struct ops_flame *flame)
{
	if (!flame)
		return;
	ops_frames_release(&flame->frames);
	OPS_ARRAY_RELEASE(&flame->self_ns);
	OPS_ARRAY_RELEASE(&flame->base_ns);
	ops_free(flame);
}
