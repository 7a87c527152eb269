/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes flame graphs to files; the file name selects the format.
 */
#include "write/stack_files.h"

#include <opstrobe/internal/write.h>

#include <string.h>

#include "base/fault.h"
#include "base/options.h"
#include "base/text.h"

static const struct {
	const char *suffix;
	int level; /* gzip level; 0: no compression */
	bool (*put)(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut);
} formats[] = {
	{".speedscope.json", 0, ops_put_speedscope},
	{".svg", 0, ops_put_flame_svg},
	{".pb.gz", 6, ops_put_pprof},
	{".pb", 0, ops_put_pprof},
	{"", 0, ops_put_collapsed},
};

enum ops_code ops_flame_write(const struct ops_flame *flame, const char *path, struct ops_flame_cut *ret_cut,
                              struct ops_error *error)
{
	struct ops_sink *sink;
	enum ops_code code;
	struct ops_flame_cut cut = {0};
	size_t format = 0;

	while (!ops_ends_with(path, formats[format].suffix))
		format++;
	code = ops_sink_open_file(path, formats[format].level, &sink, error);
	if (code)
		return ops_fault_context(error, code, "cannot write stacks '%s'", path);
	if (formats[format].put(flame, sink, &cut)) {
		code = ops_sink_close(sink, error);
	} else {
		ops_sink_abandon(sink);
		code = ops_fault_memory(error);
	}
	if (code)
		return ops_fault_context(error, code, "cannot write stacks '%s'", path);
	cut.waits_ns = flame->waits_ns;
	if (ret_cut)
		*ret_cut = cut;
	return OPS_OK;
}

static enum ops_code write_diff(const struct ops_trace *base, const struct ops_trace *trace, const char *path,
                                const struct ops_flame_choices *choices, struct ops_flame_cut *ret_cut, struct ops_error *error)
{
	struct ops_flame *flame = NULL;
	enum ops_code code;

	if (ops_ends_with(path, ".speedscope.json"))
		return ops_fault(error, OPS_INVALID, "cannot write stacks '%s': speedscope's format has no differences", path);
	code = ops_flame_diff_new(base, trace, choices, &flame, error);
	if (!code)
		code = ops_flame_write(flame, path, ret_cut, error);
	ops_flame_free(flame);
	return code;
}

static enum ops_code write_sampled(const struct ops_trace *trace, const char *path, const struct ops_flame_choices *choices,
                                   struct ops_flame_cut *ret_cut, struct ops_error *error)
{
	struct ops_flame *flame = NULL;
	enum ops_code code = ops_flame_sampled_new(trace, choices, &flame, error);

	if (!code && !flame->self_ns.count)
		code = ops_fault(error, OPS_INVALID, "cannot write '%s': the trace has no sampled Python stacks, which a black box records", path);
	if (!code)
		code = ops_flame_write(flame, path, ret_cut, error);
	ops_flame_free(flame);
	return code;
}

enum ops_code ops_write_flame(const struct ops_trace *trace, const char *path, const struct ops_flame_options *options,
                              struct ops_flame_cut *ret_cut, struct ops_error *error)
{
	struct ops_event_list events = {0};
	struct ops_flame_options given;
	struct ops_stacks *stacks = NULL;
	struct ops_flame *flame = NULL;
	struct ops_rows rows;
	struct ops_flame_choices choices;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);

	if (code)
		return code;
	choices = (struct ops_flame_choices){.metric = given.device_time ? OPS_STACKS_SELF_DEVICE : OPS_STACKS_SELF_CPU,
	                                     .keep_wrappers = given.keep_wrappers, .keep_waits = given.keep_waits};
	if (given.base && given.sampled)
		return ops_fault(error, OPS_INVALID, "sampled stacks of two traces cannot be compared");
	if (given.base)
		return write_diff(given.base, trace, path, &choices, ret_cut, error);
	if (given.sampled)
		return write_sampled(trace, path, &choices, ret_cut, error);
	code = ops_event_list_init(&events, trace, false, error);
	rows = ops_rows_of_events(&events);
	if (!code)
		code = ops_stacks_new(trace, &stacks, error);
	if (!code)
		code = ops_flame_new(trace, stacks, &rows, &choices, &flame, error);
	if (!code)
		code = ops_flame_write(flame, path, ret_cut, error);
	ops_flame_free(flame);
	ops_stacks_free(stacks);
	ops_event_list_release(&events);
	return code;
}
