/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of a trace, and the page that shows them.
 */
#ifndef OPS_ANALYZE_ABOUT_TRACE_FACTS_H
#define OPS_ANALYZE_ABOUT_TRACE_FACTS_H

#include "analyze/result.h"
#include "base/buffer.h"

/* A row of the table `info`. Texts are borrowed from the trace. */
struct trace_facts {
	unsigned present; /* bits of the columns that depend on the trace */
	const char *file, *host, *process;
	int64_t rank, world_size;
	struct ops_string recording; /* an object */
	int64_t start_ns, duration_ns;
	uint64_t steps;
	const char *steps_from, *steps_source;
	int64_t first_step, last_step;
	uint64_t events;
	struct ops_string by_kind; /* an object */
	struct ops_string gpus;
	struct ops_buffer kinds, devices; /* storage of by_kind and gpus */
	uint64_t threads, streams, links, memory, counters, modules, module_calls, call_stacks, input_shapes, lost, notes;
};

/* Appends the facts as text for a terminal of `columns` characters (0: any), or as Markdown. */
void trace_facts_write(const struct trace_facts *facts, bool markdown, size_t columns, struct ops_buffer *out);

#endif
