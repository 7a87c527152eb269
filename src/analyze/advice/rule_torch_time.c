/* SPDX-License-Identifier: Apache-2.0
 *
 * Python code of torch that does more than call operators, such as compiling, tracing, printing or checking: time in steps that no
 * operator explains. The code between a module and its operators is left out.
 *
 *     train.py:49 ──▶ torch/_dynamo/eval_frame.py ──▶ everything below it, without operators
 */
#include <stdio.h>

#include <opstrobe/internal/trace.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define SHARE_MIN 0.05 /* minimum share of the steps */
#define AMONG 3        /* one of three iterations must have that share: torch compiles and initialises in the first ones */

enum torch_file { FILE_UNKNOWN, FILE_ELSEWHERE, FILE_PROGRAM, FILE_CONNECTS, FILE_WORKS };

struct torch_time {
	uint8_t *file;       /* by string: enum torch_file */
	uint32_t *entry;     /* by row: the outermost call of such code around it; OPS_NONE: none */
	int64_t *by_beat;
	int64_t longest_ns;  /* of the self time of a function */
	uint32_t longest;    /* row of it; OPS_NONE: none */
};

/* Code that only calls operators, or that other rules are about. */
static bool only_connects(struct ops_string path)
{
	static const char *const parts[] = {
		"nn/modules/*", "nn/functional.py", "nn/parameter.py", "nn/init.py", "nn/utils/*", "optim/*", "autograd/*", "_tensor.py", "utils/data/*", "utils/_contextlib.py",
		"utils/_foreach_utils.py", "utils/checkpoint.py", "distributions/*", "utils/hooks.py", "utils/_device.py", "utils/_pytree.py", "_ops.py", "functional.py", "_VF.py", "_jit_internal.py",
		"_compile.py", "overrides.py", "random.py", "profiler/*", "__init__.py", "_library/*", "cuda/*", "amp/*", "distributed/*", NULL};

	return !path.size || advice_text_like(path, parts);
}

/* Functions of modules that go through all modules and parameters below them. */
static bool walks_modules(const struct ops_function_text *function)
{
	static const char *const walks[] = {"parameters", "*named_parameters", "*_named_members", "*named_modules", "modules", "*buffers", "*children",
	                                    "*state_dict", "*_save_to_state_dict", "train", "eval", "apply", "requires_grad_", "zero_grad",
	                                    "get_submodule", "get_parameter", NULL};

	return ops_string_is(ops_path_in_torch(function->file), "nn/modules/module.py") && advice_text_like(function->name, walks);
}

static enum torch_file torch_file_of(struct torch_time *all, const struct advice *advice, uint32_t row)
{
	uint8_t *slot = &all->file[advice->events->name[row]];
	struct ops_function_text function;

	if (*slot != FILE_UNKNOWN)
		return (enum torch_file)*slot;
	if (advice->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
		return FILE_ELSEWHERE;
	if (advice_own_site(advice, row) != OPS_NONE)
		*slot = FILE_PROGRAM;
	else if (!ops_event_function(advice->trace, row, &function) || !ops_path_in_torch(function.file).size)
		*slot = FILE_ELSEWHERE;
	else
		*slot = only_connects(ops_path_in_torch(function.file)) && !walks_modules(&function) ? FILE_CONNECTS : FILE_WORKS;
	return (enum torch_file)*slot;
}

static void torch_time_add(struct torch_time *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	uint32_t parent = advice->events->parent[row];
	enum torch_file file = torch_file_of(all, advice, row);
	int64_t ns;

	if (file == FILE_WORKS || file == FILE_ELSEWHERE)
		all->entry[row] = parent != OPS_NONE && all->entry[parent] != OPS_NONE ? all->entry[parent] : file == FILE_WORKS ? row : OPS_NONE;
	if (all->entry[row] == OPS_NONE || advice_is_operator(advice, row) || !advice_counts(advice, row) ||
	    (advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER | ADVICE_WAITING)) || advice->claimed[row])
		return;
	ns = advice_self_left_ns(advice, row);
	if (ns <= 0)
		return;
	advice_claim_self(result, row, ns);
	advice_add_at(result, advice->site[all->entry[row]], all->entry[row], ns);
	all->by_beat[advice_beat_of(advice, row)] += ns;
	if (advice_ns(advice, all->entry[row]) > all->longest_ns) {
		all->longest_ns = advice_ns(advice, all->entry[row]);
		all->longest = all->entry[row];
	}
}

/* Returns true if the time recurs: enough iterations have a large share of it. */
static bool recurs(const struct torch_time *all, const struct advice *advice)
{
	size_t beats = advice_beats(advice), many = 0;

	for (size_t i = 0; i < beats; i++)
		many += (double)all->by_beat[i] * (double)beats >= SHARE_MIN * (double)advice->steps_ns;
	return beats >= AMONG && many * AMONG >= beats;
}

/* Beginning of the advice, by the folder. */
static const char *torch_time_detail(struct ops_string path)
{
	static const char *const compiles[] = {"_dynamo/*", "_inductor/*", "_functorch/*", "fx/*", "_subclasses/*", "_guards.py", NULL};
	static const char *const prints[] = {"_tensor_str.py", NULL};
	static const char *const walks[] = {"nn/modules/module.py", NULL};

	if (advice_text_like(path, compiles))
		return "torch.compile compiles again or checks its guards: TORCH_LOGS=recompiles prints why. Sizes that change are compiled once with "
		       "dynamic=True or torch._dynamo.mark_dynamic.";
	if (advice_text_like(path, walks))
		return "Going through all modules and parameters takes a call for each: keep list(model.parameters()) and dictionaries of them, made once.";
	if (advice_text_like(path, prints))
		return "Tensors are turned into text: print them rarely, or only their shape.";
	return NULL;
}

static bool torch_time_report(const struct torch_time *all, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	struct ops_function_text function;
	struct ops_string path;

	if (all->longest == OPS_NONE || !recurs(all, advice) || !ops_event_function(advice->trace, all->longest, &function))
		return true;
	path = ops_path_in_torch(function.file);
	result->detail = torch_time_detail(path);
	return advice_report_costs(result, "Python code of torch runs in each step for %s, and operators do not explain it. Most of it is in %.*s of torch/%.*s "
	                                   "and what that calls.",
	                           advice_spent(advice, (double)result->tally.ns).text, (int)function.name.size, function.name.bytes, (int)path.size, path.bytes);
}

static bool rule_torch_time_find(const struct advice *advice, struct advice_result *result)
{
	struct torch_time all = {.file = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1), .entry = ops_alloc_none(advice->events->count + 1),
	                         .longest = OPS_NONE};
	bool done = all.file && all.entry;

	all.by_beat = done ? ops_alloc_zeroed(advice_beats(advice) + 1, sizeof(*all.by_beat)) : NULL;
	done = all.by_beat != NULL;
	for (uint32_t row = 0; done && advice_beats(advice) && row < advice->events->count; row++)
		torch_time_add(&all, result, row);
	if (done && !recurs(&all, advice))
		result->claims.count = 0;
	done = done && torch_time_report(&all, result);
	ops_free(all.by_beat);
	ops_free(all.file);
	ops_free(all.entry);
	return done;
}

const struct advice_rule advice_rule_torch_time = {
	.id = "torch-in-step",
	.title = "Python code of torch does more than call operators",
	.condition = "Code of torch, other than that between modules, optimizers or autograd and their operators, takes 5 % of the steps outside of operators, "
		     "in one of three steps or iterations at least. Other rules and waits do not explain the time.",
	.gain = "that time",
	.explanation = "Compiling, tracing, printing, checking and converting are Python code, some thousand times slower than an operator on one tensor.",
	.advice = "Do it once before the loop, or rarely, or change the call so that it is not needed. To check: the time outside of operators at the line.",
	.link = "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
	.needs = ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_REST,
	.bound = ADVICE_AT_LEAST,
	.general = true,
	.confidence = ADVICE_LIKELY,
	.find = rule_torch_time_find,
};
