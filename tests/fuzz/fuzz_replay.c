/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a file of CUPTI's records (tests/gpu/replay/records.h): the result is an error, or a valid trace that has views.
 * fuzzing.h describes how to run it; it needs tests/gpu/replay/{records,replayer}.c and CUPTI's headers in addition.
 */
#include <opstrobe/internal/views.h>

#include "../gpu/replay/replayer.h"
#include "fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct replayer replayer;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	char *views;
	size_t views_size;

	if (!replayer_init(&replayer, bytes, size))
		return 0;
	expect(replayer_trace(&replayer, OPS_ACTIVITY_ALL, &trace, &error) == OPS_OK, error.text);
	expect(ops_trace_check(trace, &error) == OPS_OK, error.text);
	expect(ops_views_json(trace, OPS_RULES_OPSTROBE, &views, &views_size, &error) == OPS_OK, error.text);
	ops_free(views);
	ops_trace_unref(trace);
	replayer_release(&replayer);
	return 0;
}
