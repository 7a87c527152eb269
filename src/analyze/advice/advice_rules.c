/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of rules. Add a new rule to ADVICE_RULES. The order is that of "checked" in JSON and of the list of rules;
 * the stage of a rule decides when it runs.
 */
#include "analyze/advice/advice.h"

#define ADVICE_RULES(X) \
	X(gc)             \
	X(anomaly)        \
	X(settings)       \
	X(distribution)   \
	X(setup)          \
	X(recompile)      \
	X(checkpoint)     \
	X(synchronise)    \
	X(logging)        \
	X(parent)         \
	X(waiting)        \
	X(locks)          \
	X(gil)            \
	X(restarts)       \
	X(loader)         \
	X(contention)     \
	X(training_mode)  \
	X(vain)           \
	X(unused)         \
	X(growing)        \
	X(concatenation)  \
	X(shifted)        \
	X(slices)         \
	X(slice_gradients) \
	X(types)          \
	X(layouts)        \
	X(columns)        \
	X(clone)          \
	X(unread_gradient) \
	X(dropped)        \
	X(create_graph)   \
	X(jacobian)       \
	X(unread_part)    \
	X(selection)      \
	X(ignored)        \
	X(intermediate)   \
	X(windows)        \
	X(redundant)      \
	X(masked)         \
	X(order)          \
	X(inverse)        \
	X(factor)         \
	X(full_matrices)  \
	X(general_eigenvalues) \
	X(few_values)     \
	X(complex)        \
	X(filters)        \
	X(bases)          \
	X(sparse)         \
	X(zero_gradients) \
	X(penalty)        \
	X(recomputed)     \
	X(attention)      \
	X(formula)        \
	X(embedding)      \
	X(churn)          \
	X(denormal)       \
	X(integers)       \
	X(function)       \
	X(repeat)         \
	X(small_changes)  \
	X(selected_rows)  \
	X(after_loop)     \
	X(prefix)         \
	X(frozen)         \
	X(optimizer)      \
	X(rows)           \
	X(passes_again)   \
	X(small)          \
	X(slow)           \
	X(double)         \
	X(emulated)       \
	X(passes)         \
	X(graph)          \
	X(growth)         \
	X(no_grad)        \
	X(evaluation)     \
	X(launch)         \
	X(loading)        \
	X(copies)         \
	X(precision)      \
	X(pointwise)      \
	X(occupancy)      \
	X(pageable)       \
	X(python_time)    \
	X(idle)           \
	X(torch_time)     \
	X(avoidable)      \
	X(threads)        \
	X(memory_limit)   \
	X(first_steps)    \
	X(stragglers)     \
	X(overlap)        \
	X(tiny)           \
	X(links)          \
	X(bound)

#define DECLARE(name) extern const struct advice_rule advice_rule_##name;
ADVICE_RULES(DECLARE)

#define ENTER(name) &advice_rule_##name,
const struct advice_rule *const advice_rules[] = {ADVICE_RULES(ENTER)};
const size_t advice_rule_count = sizeof(advice_rules) / sizeof(*advice_rules);

_Static_assert(sizeof(advice_rules) / sizeof(*advice_rules) <= ADVICE_RULES_MAX, "advice_report.checked has an entry for each");
