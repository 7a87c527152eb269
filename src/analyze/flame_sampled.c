/* SPDX-License-Identifier: Apache-2.0
 *
 * The flame graph of sampled Python stacks.
 */
#include <string.h>

#include "analyze/flame.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/sum.h"
#include "derive/program.h"
#include "derive/python_samples.h"

struct sampled_flame {
	struct ops_flame *flame;
	const struct ops_python_samples *samples;
	uint32_t *chains; /* by stack, for the current thread; OPS_NONE: not added yet */
	OPS_ARRAY(uint32_t) path; /* scratch: stacks without a chain, innermost first */
	struct ops_buffer text;
	uint8_t *waits; /* by sample: 1 if it is left out because a helper thread waits; NULL: all are kept */
};

static uint32_t add_text_frame(struct sampled_flame *s, uint32_t caller)
{
	uint32_t name;

	if (s->text.failed)
		return OPS_NONE;
	name = ops_frames_name(&s->flame->frames, (struct ops_string){ops_buffer_text(&s->text), s->text.size});
	return name == OPS_NONE ? OPS_NONE : ops_frames_add(&s->flame->frames, caller, name);
}

/* Appends "loader worker 0, " for a process that the program started. */
static void flame_append_process(struct sampled_flame *s, int64_t pid)
{
	const struct ops_trace *trace = s->flame->frames.trace;
	size_t count;
	const struct ops_process *processes = ops_trace_processes(trace, &count);

	if (pid == ops_trace_info(trace)->pid)
		return;
	for (size_t i = 0; i < count; i++)
		if (processes[i].pid == pid && processes[i].name != OPS_NONE) {
			struct ops_string name = ops_trace_string(trace, processes[i].name);

			ops_buffer_append(&s->text, name.bytes, name.size);
			ops_buffer_append_text(&s->text, ", ");
			return;
		}
}

/* Adds the frame of a thread: "MainThread", "loader worker 0, MainThread", or "thread 1469" without a name. */
static uint32_t flame_add_thread(struct sampled_flame *s, int64_t tid)
{
	const struct ops_trace *trace = s->flame->frames.trace;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	s->text.size = 0;
	for (size_t i = 0; i < count && !s->text.size; i++)
		if (tracks[i].kind == OPS_TRACK_THREAD && tracks[i].tid == tid && tracks[i].name != OPS_NONE) {
			struct ops_string name = ops_trace_string(trace, tracks[i].name);

			flame_append_process(s, tracks[i].pid);
			ops_buffer_append(&s->text, name.bytes, name.size);
		}
	if (!s->text.size)
		ops_buffer_printf(&s->text, "thread %lld", (long long)tid);
	return add_text_frame(s, 0);
}

static uint32_t add_frame(struct sampled_flame *s, uint32_t caller, const struct ops_sampled_stack *stack)
{
	s->text.size = 0;
	ops_sampled_frame_append(&s->text, s->samples, stack);
	return add_text_frame(s, caller);
}

/* Adds a frame, unless it is Opstrobe's: what runs the program has no frames, nor do the functions around its calls. */
static uint32_t add_frame_of_program(struct sampled_flame *s, uint32_t root, uint32_t caller, const struct ops_sampled_stack *stack)
{
	const struct ops_sampled_function *function = &s->samples->functions.items[stack->function];

	if (!ops_file_is_own(function->file))
		return add_frame(s, caller, stack);
	return ops_is_launcher(function->file, function->name) ? root : caller;
}

/* Returns the chain of a stack below `root`. */
static uint32_t add_stack(struct sampled_flame *s, uint32_t root, uint32_t stack)
{
	const struct ops_sampled_stack *stacks = s->samples->stacks.items;
	uint32_t chain = root;

	s->path.count = 0;
	for (uint32_t at = stack; at != OPS_NONE; at = stacks[at].caller) {
		if (s->chains[at] != OPS_NONE) {
			chain = s->chains[at];
			break;
		}
		if (!OPS_ARRAY_APPEND(&s->path, at))
			return OPS_NONE;
	}
	while (s->path.count && chain != OPS_NONE) {
		uint32_t at = s->path.items[--s->path.count];

		chain = s->chains[at] = add_frame_of_program(s, root, chain, &stacks[at]);
	}
	return chain;
}

/* Adds the state in which the thread waited, if it did, below a chain. */
static uint32_t flame_add_state(struct sampled_flame *s, uint32_t chain, enum ops_thread_state state)
{
	static const char *const names[] = {OPS_THREAD_STATE_NAMES};

	if (chain == OPS_NONE || state == OPS_THREAD_RUNNING || state == OPS_THREAD_STATES)
		return chain;
	s->text.size = 0;
	ops_buffer_printf(&s->text, "[%s]", names[state]);
	return add_text_frame(s, chain);
}

static bool flame_add_samples(struct sampled_flame *s)
{
	const struct ops_python_samples *samples = s->samples;
	uint32_t root = OPS_NONE;

	for (size_t i = 0; i < samples->samples.count; i++) {
		const struct ops_python_sample *sample = &samples->samples.items[i];

		if (!i || sample->tid != sample[-1].tid) {
			memset(s->chains, 0xff, samples->stacks.count * sizeof(*s->chains)); /* all OPS_NONE */
			root = flame_add_thread(s, sample->tid);
		}
		if (s->waits && s->waits[i]) {
			s->flame->waits_ns = ops_sum(s->flame->waits_ns, sample->weight_ns);
			continue;
		}
		if (root == OPS_NONE ||
		    !ops_flame_add(s->flame, flame_add_state(s, add_stack(s, root, sample->stack), sample->state), sample->weight_ns))
			return false;
	}
	return true;
}

enum ops_code ops_flame_sampled_new(const struct ops_trace *trace, const struct ops_flame_choices *choices, struct ops_flame **ret_flame,
                                    struct ops_error *error)
{
	struct ops_python_samples samples;
	struct sampled_flame s = {.flame = ops_alloc_zeroed(1, sizeof(*s.flame)), .samples = &samples};
	bool done = ops_python_samples_read(&samples, trace) && s.flame && ops_frames_init(&s.flame->frames, trace);

	s.chains = done ? ops_alloc_none(samples.stacks.count + 1) : NULL;
	s.waits = done && !choices->keep_waits ? ops_python_sample_waits(&samples, trace) : NULL;
	done = s.chains && (s.waits || choices->keep_waits) && flame_add_samples(&s);
	ops_free(s.chains);
	ops_free(s.waits);
	OPS_ARRAY_RELEASE(&s.path);
	ops_buffer_release(&s.text);
	ops_python_samples_release(&samples);
	if (done) {
		*ret_flame = s.flame;
		return OPS_OK;
	}
	ops_flame_free(s.flame);
	return ops_fault_memory(error);
}
