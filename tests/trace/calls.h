/* SPDX-License-Identifier: Apache-2.0
 *
 * A small trace of Python calls.
 */
#ifndef OPS_TEST_CALLS_H
#define OPS_TEST_CALLS_H

#include <string.h>

#include "trace/builder.h"

static inline uint32_t calls_string(struct ops_builder *builder, const char *text)
{
	return ops_builder_string(builder, text, strlen(text));
}

/* Rows, in the order of the finished trace; main is called from nowhere, what it calls from the lines behind:
 *
 *     0 a "b"(1).py(3): main    0……………………………………100     id 1
 *     1 step                      10…………………………90     line 5, an annotation
 *     2 <built-in function len>     20……70           line 6, id 2
 *     3 aten::mm                      30…60          line 6
 *     4 nn.Module: Net_0                   80…85     line 7, id 3, module 4, function Net.call
 *     5 Python GC                          81…82     id 4
 */
static inline struct ops_builder *calls_builder(void)
{
	struct ops_builder *b = ops_builder_new();
	struct ops_new_event event = {OPS_NEW_EVENT};
	uint32_t file, functions[3];

	if (!b)
		return NULL;
	file = calls_string(b, "/src/a \"b\"(1).py");
	for (uint32_t i = 0; i < 3; i++) {
		static const char *const names[] = {"main", "<built-in function len>", "Net.call"};
		struct ops_function function = {calls_string(b, names[i]), i == 1 ? 0 : file, i == 1 ? 0 : i + 3};
		functions[i] = ops_builder_function(b, &function);
	}
	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 9, .number = 1});

	event = (struct ops_new_event){OPS_NEW_EVENT, .end_ns = 100, .name = calls_string(b, "a \"b\"(1).py(3): main"),
	                               .kind = OPS_EVENT_PYTHON_FUNCTION};
	event.function = functions[0];
	event.python_id = 1;
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 10, .end_ns = 90, .name = calls_string(b, "step"),
	                               .kind = OPS_EVENT_USER_ANNOTATION, .scope = 7, .call_line = 5};
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 20, .end_ns = 70, .call_line = 6,
	                               .name = calls_string(b, "<built-in function len>"),
	                               .kind = OPS_EVENT_PYTHON_FUNCTION};
	event.function = functions[1];
	event.python_id = 2;
	event.python_parent = 1;
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 30, .end_ns = 60, .name = calls_string(b, "aten::mm"),
	                               .call_line = 6};
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 80, .end_ns = 85, .call_line = 7,
	                               .name = calls_string(b, "nn.Module: Net_0"), .kind = OPS_EVENT_PYTHON_FUNCTION};
	event.function = functions[2];
	event.python_id = 3;
	event.python_parent = 1;
	event.python_module = 4;
	ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 81, .end_ns = 82, .name = calls_string(b, "Python GC"),
	                               .kind = OPS_EVENT_PYTHON_FUNCTION};
	event.python_id = 4;
	event.python_parent = 3;
	ops_builder_event(b, &event);
	ops_builder_info(b, &(struct ops_trace_info){.start_ns = 0, .stop_ns = 100, .pid = 9});
	return b;
}

#endif
