/* SPDX-License-Identifier: Apache-2.0
 *
 * The flame graphs of two traces as one, per step. Only events that begin in a step count, so that work before the
 * first step makes no difference between recordings with different numbers of steps. Traces without steps are compared
 * by their totals. Modules have their paths in the program if both traces know them, since the numbers in the names of their calls
 * depend on the order of calls.
 */
#include "analyze/flame.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/modules.h"
#include "derive/steps.h"

/* One of the two traces. */
struct side {
	struct ops_event_list events;
	struct ops_flame *flame;
	int64_t steps; /* its times are divided by this */
};

static void keep_in_steps(struct ops_event_list *list, const struct ops_steps *steps)
{
	const struct ops_events *events = ops_trace_events(list->trace);
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (!(list->refs[i] & OPS_MEMORY_REF) && ops_steps_averages(steps, events->start_ns[list->refs[i]]))
			list->refs[kept++] = list->refs[i];
	list->count = kept;
}

static enum ops_code side_init(struct side *side, const struct ops_trace *trace, const struct ops_flame_choices *choices,
                               struct ops_error *error)
{
	const struct ops_steps *steps = ops_steps_of(trace);
	enum ops_code code = steps ? ops_event_list_init(&side->events, trace, false, error) : ops_fault_memory(error);
	struct ops_rows rows;

	if (code)
		return code;
	side->steps = ops_steps_averaged(steps) ? (int64_t)ops_steps_averaged(steps) : 1;
	if (steps->list.count)
		keep_in_steps(&side->events, steps);
	rows = ops_rows_of_events(&side->events);
	return ops_flame_new(trace, NULL, &rows, choices, &side->flame, error);
}

static void side_release(struct side *side)
{
	ops_flame_free(side->flame);
	ops_event_list_release(&side->events);
}

/* Removes the address from "<built-in method item of Tensor object at 0x7f31>", since it differs in each process.
 * Returns false if out of memory. */
static bool append_without_addresses(struct ops_buffer *text, struct ops_string name)
{
	static const char mark[] = " at 0x";
	const char *at = name.bytes, *end = ops_string_end(name), *found;

	text->size = 0;
	while ((found = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
		ops_buffer_append(text, at, (size_t)(found - at));
		at = found + sizeof(mark) - 1;
		while (at < end && ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f') || (*at >= 'A' && *at <= 'F')))
			at++;
	}
	ops_buffer_append(text, at, (size_t)(end - at));
	return !text->failed;
}

static bool flame_diff_grow(struct ops_flame *diff)
{
	while (diff->self_ns.count < diff->frames.frames.count) {
		int64_t *self_ns = OPS_ARRAY_PUSH(&diff->self_ns), *base_ns = OPS_ARRAY_PUSH(&diff->base_ns);

		if (!self_ns || !base_ns)
			return false;
		*self_ns = *base_ns = 0;
	}
	return true;
}

/* Maps the names of modules to their paths. A name that several modules share stays. Returns false if out of memory. */
static bool flame_diff_map_modules(struct ops_flame *diff, const struct ops_trace *trace, uint32_t *mapped)
{
	size_t count;
	const struct ops_module *modules = ops_trace_modules(trace, &count);
	struct ops_buffer text = {0};
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		struct ops_string path = ops_trace_string(trace, modules[i].unique_path), name = ops_trace_string(trace, modules[i].name);
		uint32_t *to = &mapped[modules[i].name], path_name;

		if (!name.size || !path.size)
			continue;
		text.size = 0;
		ops_buffer_append(&text, name.bytes, name.size - ops_module_path(name).size);
		ops_buffer_append(&text, path.bytes, path.size);
		path_name = text.failed ? OPS_NONE : ops_frames_name(&diff->frames, (struct ops_string){text.bytes, text.size});
		*to = *to == OPS_NONE || *to == path_name ? path_name : ops_frames_name(&diff->frames, name);
		done = *to != OPS_NONE;
	}
	ops_buffer_release(&text);
	return done;
}

/* Maps names of the flame to names of the difference. Returns NULL if out of memory. */
static uint32_t *flame_diff_map_names(struct ops_flame *diff, const struct ops_flame *flame, bool by_path)
{
	size_t count = flame->frames.frames.count, names = ops_frames_name_count(&flame->frames);
	uint32_t *mapped = ops_alloc_none(names + 1);
	struct ops_buffer text = {0};
	bool done = mapped && (!by_path || flame_diff_map_modules(diff, flame->frames.trace, mapped));

	for (size_t i = 1; done && i < count; i++) {
		uint32_t name = flame->frames.frames.items[i].name;

		if (mapped[name] != OPS_NONE)
			continue;
		done = append_without_addresses(&text, ops_frames_text(&flame->frames, name));
		if (done)
			mapped[name] = ops_frames_name(&diff->frames, (struct ops_string){ops_buffer_text(&text), text.size});
		done = done && mapped[name] != OPS_NONE;
	}
	ops_buffer_release(&text);
	if (done)
		return mapped;
	ops_free(mapped);
	return NULL;
}

/* Returns false if out of memory. */
static bool flame_diff_add(struct ops_flame *diff, const struct side *side, bool is_base, bool by_path)
{
	size_t count = side->flame->frames.frames.count;
	uint32_t *chains = ops_alloc_zeroed(count + 1, sizeof(*chains)), *names = flame_diff_map_names(diff, side->flame, by_path);
	bool done = chains && names;

	for (size_t i = 1; done && i < count; i++) {
		const struct ops_frame *frame = &side->flame->frames.frames.items[i];
		int64_t self_ns = side->flame->self_ns.items[i];

		chains[i] = ops_frames_add(&diff->frames, chains[frame->caller], names[frame->name]);
		done = chains[i] != OPS_NONE && flame_diff_grow(diff);
		if (done && self_ns > 0) {
			int64_t *sum = &(is_base ? diff->base_ns.items : diff->self_ns.items)[chains[i]];

			*sum = ops_sum(*sum, self_ns / side->steps);
		}
	}
	if (!is_base)
		diff->waits_ns = side->flame->waits_ns / side->steps;
	ops_free(chains);
	ops_free(names);
	return done;
}

enum ops_code ops_flame_diff_new(const struct ops_trace *base, const struct ops_trace *experiment,
                                 const struct ops_flame_choices *choices, struct ops_flame **ret_flame,
                                 struct ops_error *error)
{
	struct ops_flame *diff = ops_alloc_zeroed(1, sizeof(*diff));
	struct side sides[2] = {{.steps = 0}};
	bool by_path = ops_has_module_paths(base) && ops_has_module_paths(experiment);
	enum ops_code code = diff && ops_frames_init(&diff->frames, experiment) && flame_diff_grow(diff) ? OPS_OK
	                                                                                                 : ops_fault_memory(error);

	if (!code)
		code = side_init(&sides[0], base, choices, error);
	if (!code)
		code = side_init(&sides[1], experiment, choices, error);
	if (!code && !(flame_diff_add(diff, &sides[0], true, by_path) && flame_diff_add(diff, &sides[1], false, by_path)))
		code = ops_fault_memory(error);
	side_release(&sides[0]);
	side_release(&sides[1]);
	if (code)
		ops_flame_free(diff);
	else
		*ret_flame = diff;
	return code;
}
