/* SPDX-License-Identifier: Apache-2.0
 *
 * Inspects a trace of an arbitrary file in many ways. `expect` is defined by the test.
 */
#ifndef OPS_TEST_LOOK_AT_H
#define OPS_TEST_LOOK_AT_H

#include <opstrobe/internal/memory.h>
#include <opstrobe/internal/modules.h>
#include <opstrobe/internal/views.h>

static inline void read_everything(struct ops_trace *trace, void (*expect)(int holds, const char *what))
{
	struct ops_memory_timeline *timeline;
	struct ops_module_tree *tree;
	struct ops_error error;
	char *text;
	size_t size;

	expect(ops_trace_check(trace, &error) == OPS_OK, error.text);
	expect(ops_views_json(trace, OPS_RULES_OPSTROBE, &text, &size, &error) == OPS_OK, error.text);
	ops_free(text);
	expect(ops_module_tree_new(trace, &tree, &error) == OPS_OK, error.text);
	ops_module_tree_free(tree);
	expect(ops_memory_timeline_new(trace, &timeline, &error) == OPS_OK, error.text);
	ops_memory_timeline_free(timeline);
}

#endif
