/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameter `steps`: the route is applied to the trace that `opstrobe cut --steps` would produce.
 */
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "serve/api.h"

enum ops_code request_stretch(struct request *request, const struct ops_trace *trace, int64_t *ret_from_ns,
                              int64_t *ret_to_ns, struct ops_error *error)
{
	const struct ops_string *steps = query_find(&request->query, "steps");
	uint64_t first, last;
	struct ops_error unknown;

	if (!steps)
		return OPS_OK;
	if (!ops_steps_parse(steps->bytes, &first, &last))
		return request_fail(request, 400, error, "'%.80s' is not a range of steps such as 3 or 3:5", steps->bytes);
	if (!ops_trace_find_steps(trace, first, last, ret_from_ns, ret_to_ns, &unknown))
		return OPS_OK;
	return request_fail(request, 404, error, "%s", unknown.text);
}

enum ops_code request_cut(struct request *request, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	if (!request->route->by_steps || request->parts || !query_find(&request->query, "steps"))
		return OPS_OK;
	request->parts = ops_alloc_zeroed(request->trace_count, sizeof(*request->parts));
	if (!request->parts)
		return ops_fault_memory(error);
	for (size_t i = 0; !code && i < request->trace_count; i++) {
		const struct ops_trace *trace = request->traces[i]->trace;
		struct ops_trace_cut cut = {0};

		code = request_stretch(request, trace, &cut.from_ns, &cut.to_ns, error);
		if (!code)
			code = ops_trace_cut(trace, &cut, &request->parts[i], error);
	}
	return code;
}

struct ops_trace *request_trace(const struct request *request, size_t i)
{
	return request->parts ? request->parts[i] : request->traces[i]->trace;
}

void request_free_parts(struct request *request)
{
	for (size_t i = 0; request->parts && i < request->trace_count; i++)
		ops_trace_unref(request->parts[i]);
	ops_free(request->parts);
	request->parts = NULL;
}
