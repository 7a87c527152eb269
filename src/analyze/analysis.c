/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of analyses, and how they are run.
 */
#include "analyze/analysis.h"

#include <stdio.h>
#include <string.h>

#include "analyze/events/event_filter.h"
#include "base/alloc.h"
#include "base/options.h"
#include "base/text.h"

#define RANKS_OPTION {"ranks", "null", "a list of ranks; null: the lowest rank"}
static const struct ops_query_option no_options[] = {{0}};

static const struct ops_query_option kernel_type_options[] = {
	{"num_kernels", "10", "has no effect here; see gpu_kernel_breakdown.by_kernel"},
	{"duration_ratio", "0.8", "has no effect here"},
	{"include_memory_kernels", "true", "also count memory copies and sets"},
	{0},
};
static const struct ops_query_option kernel_options[] = {
	{"num_kernels", "10", "maximum number of kernels for each rank and type; the rest are summed as others"},
	{"duration_ratio", "0.8", "maximum share of the total time that they cover together"},
	{"include_memory_kernels", "true", "also count memory copies and sets"},
	{"order", "\"kernel_type,name,rank\"", "or \"rank,kernel_type,sum desc,name\""},
	{0},
};
static const struct ops_query_option annotation_options[] = {
	{"use_gpu_annotation", "true", "annotations on devices; false: annotations on the host"},
	{"num_kernels", "1000", "maximum number of names for each rank; the rest are summed as others"},
	{"duration_ratio", "0.8", "maximum share of the total time that they cover together"},
	{"allowlist_patterns", "null", "names that contain one of these texts are always listed"},
	{0},
};

static const struct ops_query_option info_options[] = {
	{"metadata", "true", "the metadata of the file"},
	{0},
};
static const struct ops_query_option averages_options[] = {
	{"sort_by", "\"self_cpu_time_total\"", "an attribute of torch's averages, largest first; null: in order of appearance"},
	{"group_by_input_shape", "false", "a row for each set of input shapes"},
	{"with_flops", "false", "estimate floating-point operations"},
	{0},
};
static const struct ops_query_option straggler_options[] = {
	{"num_candidates", "2", "number of ranks"},
	{"profiler_steps", "null", "a step or a list of steps; null: all"},
	{0},
};
static const struct ops_query_option compare_options[] = {
	{"control_iteration", "null", "a step of the control trace or a list; null: the first; \"all\": all but the last"},
	{"test_iteration", "null", "the same for the test trace"},
	{"device_type", "\"ALL\"", "CPU, GPU or ALL"},
	{"use_short_name", "false", "combine the instances of a template"},
	{"whole", "false", "the complete table instead of a summary"},
	{"per_step", "false", "also the mean per step and the noise of the difference: two standard errors"},
	{"limit", "null", "maximum number of names; null: 12 in the summary, all in the complete table"},
	{0},
};
static const struct ops_query_option diff_options[] = {
	{"control_iteration", "null", "a step of the control trace or a list; null: the first; \"all\": all but the last"},
	{"test_iteration", "null", "the same for the test trace"},
	{"device_type", "\"ALL\"", "CPU, GPU or ALL"},
	{"limit", "8", "maximum number of names of each kind"},
	{0},
};
static const struct ops_query_option roofline_options[] = {
	{"by", "\"operator\"", "operator, shape, kernel, line or module: what a row is"},
	{"roof", "null", "FLOP/s and bytes/s instead of the roof that the trace has: \"67T,3.35T\""},
	{0},
};
static const struct ops_query_option ranks_options[] = {
	RANKS_OPTION,
	{0},
};
static const struct ops_query_option collectives_options[] = {
	{"filter", "\"collective_name != '' and stream != -1\"", "an expression that selects events"},
	{0},
};
static const struct ops_query_option memory_options[] = {
	{"series", "false", "the complete curve as a table"},
	{"points", "[744]", "indices of the points to show, in ascending order"},
	{0},
};
static const struct ops_query_option execution_options[] = {
	{"columns", "[\"et_node_name\", \"op_schema\"]",
	 "columns of the nodes; also available: input_shapes, input_types, output_shapes, output_types"},
	{"limit", "30", "maximum number of rows"},
	{0},
};
static const struct ops_query_option idle_options[] = {
	RANKS_OPTION,
	{"streams", "null", "a stream or a list of streams; null: all"},
	{"consecutive_kernel_delay", "30", "gaps shorter than this number of microseconds are kernel_wait"},
	{0},
};
static const struct ops_query_option launch_options[] = {
	RANKS_OPTION,
	{"runtime_cutoff", "50", "calls longer than this number of microseconds are outliers"},
	{"launch_delay_cutoff", "100", "launch delays longer than this number of microseconds are outliers"},
	{"include_memory_events", "true", "also count memory copies and sets"},
	{"launches", "false", "a table of all launches instead of statistics"},
	{0},
};
static const struct ops_query_option annotated_options[] = {
	{"kernels", "false", "a table of all device events with their annotations, instead of sums"},
	{0},
};
static const struct ops_query_option series_options[] = {
	RANKS_OPTION,
	{"series", "false", "also all points of the series"},
	{0},
};
static const struct ops_query_option counter_options[] = {
	RANKS_OPTION,
	{"output_dir", "null", "the directory of the copies; null: that of each file"},
	{0},
};
static const struct ops_query_option full_options[] = {
	RANKS_OPTION,
	{"max_queue_length", "1024", "length from which a queue counts as full"},
	{0},
};

static const struct ops_query_option operator_launches_options[] = {
	{"ranks", "null", "a rank or a list; null: the lowest rank"},
	{"sort_by", "[\"occurrence_count\"]", "columns to sort by, largest first"},
	{0},
};
static const struct ops_query_option call_graph_options[] = {
	{"nodes", "false", "a table of all nodes instead of statistics"},
	{"event", "null", "the calls around the event with this index in the file"},
	{0},
};
static const struct ops_query_option kernel_sequences_options[] = {
	{"operator_name", "\"\"", "text that the operator's name contains"},
	{"min_pattern_len", "3", "minimum number of kernels in a pattern"},
	{"output_dir", "null", "a directory for overlaid_FILE: the trace with the patterns as events"},
	{"top_k", "5", "number of patterns in that file"},
	{"compress_other_kernels", "false", "make that file smaller: number the events outside of patterns and drop their arguments"},
	{"rank", "null", "a rank or a list; null: the lowest rank"},
	{0},
};
static const struct ops_query_option module_kernels_options[] = {
	RANKS_OPTION,
	{"names", "[\"nn.Module: \"]", "prefixes of the names of calls"},
	{"output_dir", "null", "a directory for aligned_FILE: the trace with these spans above the kernels"},
	{0},
};
static const struct ops_query_option kernels_options[] = {
	{"by_operator", "false", "a row for each operator and launch configuration"},
	{"by_category", "false", "a row for each category of device work: matrix products, attention, …"},
	{0},
};
static const struct ops_query_option modules_options[] = {
	{"by_class", "false", "a row for each class of modules"},
	{0},
};
static const struct ops_query_option peak_options[] = {
	{"at_ns", "null", "the moment, in ns since the first event; null: the peak of each device"},
	{"steps", "null", "\"3\" or \"3:5\": the peak in these steps; null: in the trace"},
	{0},
};
static const struct ops_query_option gate_options[] = {
	{"gate_percent", "0", "a median step that is longer by no more than this is not a regression"},
	{0},
};
static const struct ops_query_option whatif_options[] = {
	{"remove_syncs", "false", "the host does not wait for devices"},
	{"no_launch_overhead", "false", "operators that launch work take no time on the host, as in a CUDA graph"},
	{"workers", "null", "number of worker processes of data loaders"},
	{"scale", "null", "\"PATTERN=FACTOR\" or a list: what the pattern names takes FACTOR times as long"},
	{"drop", "null", "a pattern or a list: what it names does not run; also \"FILE:LINE\""},
	{"overlap", "null", "a part of the name of a collective operation, or a list: only the end of the step waits for it"},
	{0},
};
static const struct ops_query_option critical_path_options[] = {
	{"rank", "null", "a rank or a list; null: the lowest rank"},
	{"annotation", "\"\"", "text that the region's name contains; empty: all"},
	{"instance_id", "null", "index of the region among those, or the first and last index of several; null: the first"},
	{"data_load_events", "null", "texts that the names of data-loading events contain"},
	{"add_zero_weight_launch_edges", "false", "also draw launches that nothing waited for"},
	{"edges", "false", "a table of the path's edges instead of statistics"},
	{"output_dir", "null", "a directory for overlaid_critical_path_FILE: the trace with the path drawn on it"},
	{"only_show_critical_events", "true", "omit events off the path from that file, except annotations and Python calls"},
	{"show_all_edges", "false", "draw all edges in that file"},
	{"what_if", "null", "factors by text in a name, by bound or by edge type: {\"aten::mm\": 0.5}"},
	{0},
};

/* What an analysis is about. Without device work, the answer of one about it is empty or an error. */
enum subject { ANY_EVENTS, DEVICE_WORK, OTHER_FILES };

static const struct ops_query_info analyses[] = {
#define ROW(id, inputs, subject, options, function, summary, unfiltered_because) {id, summary, OPS_QUERY_##inputs, options},
	ANALYSES(ROW) MORE_ANALYSES(ROW)
#undef ROW
#define ROW(id, inputs, rules, options, function, summary) {id, summary, OPS_QUERY_##inputs, options},
	TABLES(ROW)
#undef ROW
};

/* Internal properties of the analyses. */
static const struct {
	analysis_function *answer;
	const char *unfiltered_because;
	enum subject subject;
	bool has_rules;
} inner[] = {
#define ROW(id, inputs, subject, options, function, summary, unfiltered_because) \
	{function, unfiltered_because, subject, OPS_QUERY_##inputs != OPS_QUERY_FILES},
	ANALYSES(ROW) MORE_ANALYSES(ROW)
#undef ROW
#define ROW(id, inputs, rules, options, function, summary) \
	{function, "it sums up complete traces; 'opstrobe cut' extracts steps", ANY_EVENTS, rules},
	TABLES(ROW)
#undef ROW
};

#define COUNT_ONE(...) +1
#define TABLE_COUNT (0 TABLES(COUNT_ONE))
#define QUERY_COUNT (sizeof(analyses) / sizeof(analyses[0]))
#define ANALYSIS_COUNT (QUERY_COUNT - TABLE_COUNT)

const struct ops_query_info *ops_queries(size_t *ret_count)
{
	*ret_count = QUERY_COUNT;
	return analyses;
}

const struct ops_query_info *ops_analyses(size_t *ret_count)
{
	*ret_count = ANALYSIS_COUNT;
	return analyses;
}

const struct ops_query_info *ops_query_find(const char *id)
{
	for (size_t i = 0; i < QUERY_COUNT; i++)
		if (!strcmp(analyses[i].id, id))
			return &analyses[i];
	return NULL;
}

static bool is_analysis(const struct ops_query_info *query)
{
	return (size_t)(query - analyses) < ANALYSIS_COUNT;
}

const struct ops_query_info *ops_analysis_find(const char *id)
{
	const struct ops_query_info *found = ops_query_find(id);

	return found && is_analysis(found) ? found : NULL;
}

bool ops_analysis_needs_device_work(const struct ops_query_info *analysis)
{
	return inner[analysis - analyses].subject == DEVICE_WORK;
}

bool ops_analysis_reads_other_files(const struct ops_query_info *analysis)
{
	return inner[analysis - analyses].subject == OTHER_FILES;
}

/* Options of every analysis: limits on the result, … */
static const struct ops_query_option table_options[] = {
	{"limit", "null", "keep at most this many rows of a table"},
	{0},
};
/* … steps of ranks … */
static const struct ops_query_option step_options[] = {
	{"include_last_profiler_step", "false", "keep the last step, which is often cut short"},
	{0},
};
/* … definitions, for queries whose answers depend on them (derive/policy.h) … */
static const struct ops_query_option rules_options[] = {
	{"rules", "\"opstrobe\"", "whose definitions apply: opstrobe, tensorboard (PyTorch's legacy plugin) or hta (Holistic Trace Analysis)"},
	{0},
};
/* … and rows. */
static const struct ops_query_option row_options[] = {
	{"where", "null", "a filter: an expression, \"dur > 100\", or {\"name\": \"aten::\", \"iterations\": [5]}"},
	{0},
};

static const char *unfiltered_because(const struct ops_query_info *analysis)
{
	return inner[analysis - analyses].unfiltered_because;
}

/* Returns the option of that name; NULL if there is none. */
static const struct ops_query_option *find_option(const struct ops_query_info *analysis, struct ops_string name)
{
	const struct ops_query_option *const lists[] = {
		analysis->options, table_options,
		analysis->inputs == OPS_QUERY_RANKS && is_analysis(analysis) ? step_options : no_options,
		inner[analysis - analyses].has_rules ? rules_options : no_options,
		unfiltered_because(analysis) ? no_options : row_options,
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const struct ops_query_option *option = lists[i]; option->name; option++)
			if (ops_string_is(name, option->name))
				return option;
	return NULL;
}

/* Checks that the value is a list or a text if the default is one. Functions that read values of other types check
 * them. */
static enum ops_code check_option(const struct analysis_run *run, struct ops_string name, struct ops_string value)
{
	const struct ops_query_option *option = find_option(run->analysis, name);
	const char *reason = unfiltered_because(run->analysis);
	char type;

	if (reason && ops_string_is(name, row_options->name))
		return ops_fault(run->error, OPS_INVALID, "%s takes no filter: %s", run->analysis->id, reason);
	if (!option)
		return ops_fault(run->error, OPS_INVALID, "%s has no option '%.*s'; 'opstrobe analyze %s --help' lists them",
		                 run->analysis->id, (int)(name.size < 80 ? name.size : 80), name.bytes, run->analysis->id);
	type = option->default_value[0];
	if ((type == '[' || type == '"') && value.bytes[0] != type && !ops_string_is(value, "null"))
		return ops_fault(run->error, OPS_INVALID, "option '%s' of %s must be a %s, such as %s", option->name,
		                 run->analysis->id, type == '[' ? "list" : "text", option->default_value);
	return OPS_OK;
}

static enum ops_code analysis_check_args(struct analysis_run *run, const char *args)
{
	struct ops_json_walk cursor;
	struct ops_string key, value;
	enum ops_code code;

	args = args ? args : "{}";
	run->args = (struct ops_string){args, strlen(args)};
	code = ops_json_validate(run->args.bytes, run->args.size, run->error);
	if (code)
		return ops_fault_context(run->error, code, "options");
	cursor = ops_json_walk(run->args.bytes, run->args.size);
	if (cursor.at == args || cursor.at[-1] != '{')
		return ops_fault(run->error, OPS_INVALID, "options must be a JSON object");
	while (!code && ops_json_next_member(&cursor, &key, &value))
		code = check_option(run, key, value);
	return code;
}

static enum ops_code check_ranks(const struct analysis_run *run)
{
	size_t wanted = run->analysis->inputs == OPS_QUERY_PAIR ? 2 : 1;

	if (run->analysis->inputs == OPS_QUERY_NOTHING)
		return OPS_OK;
	if (run->count < wanted || (wanted == 2 && run->count > 2))
		return ops_fault(run->error, OPS_INVALID, "%s takes %s", run->analysis->id,
		                 wanted == 2 ? "two traces: control and test" : "at least one trace");
	for (size_t i = 0; i < run->count; i++)
		if (!run->ranks[i].trace && !run->source && run->analysis->inputs != OPS_QUERY_FILES)
			return ops_fault(run->error, OPS_INVALID, "'%s' is not a trace", run->ranks[i].path ? run->ranks[i].path : "");
	return OPS_OK;
}

/* Drops the rows of a table beyond the limit. */
static enum ops_code analysis_cut(struct analysis_run *run)
{
	int64_t rows = analysis_limit(run);

	if (!run->code && rows >= 0)
		result_table_cut(&run->result.table, (size_t)rows);
	return run->code;
}

static enum ops_code parse_rules(struct analysis_run *run)
{
	struct ops_string name;

	if (!inner[run->analysis - analyses].has_rules)
		return OPS_OK;
	name = analysis_text(run, "rules");
	return run->code ? run->code : ops_rules_parse(name.size ? name.bytes : NULL, &run->rules, run->error);
}

/* Writes the result, unless the analysis wrote a page. */
static enum ops_code write_result(struct analysis_run *run, struct ops_buffer *out)
{
	if (run->written.size || run->written.failed) {
		*out = run->written;
		return OPS_OK;
	}
	return result_write(&run->result, run->format, out) ? OPS_OK : ops_fault_memory(run->error);
}

/* Answers a query of complete traces with a table or page. Only a page of text is in `written`. */
static enum ops_code analysis_answer_table(struct analysis_run *run, struct ops_buffer *out)
{
	enum ops_code code;

	if (run->format == OPS_FORMAT_BRIEF && strcmp(run->analysis->id, "advise") != 0)
		return ops_fault(run->error, OPS_INVALID, "%s has no brief form", run->analysis->id);
	run->result.table.copies = true;
	code = inner[run->analysis - analyses].answer(run);
	return code ? code : write_result(run, out);
}

/* Why a result may have no rows; NULL: nothing is known. */
static const char *reason_for_nothing(const struct analysis_run *run)
{
	static const struct {
		const char *id, *reason;
	} reasons[] = {
		{"profiler_steps", "no steps: the traces have no events of steps, ProfilerStep#N, which opstrobe run and profile.step() record"},
		{"user_annotation_breakdown", "no annotations on a device; --use-gpu-annotation false counts those of the host"},
		{"potential_stragglers", "no stragglers: the traces have no steps with communication between ranks"},
		{"collective_bandwidth", "no collective operations with their sizes"},
		{"nccl_collectives", "no collective operations with their arguments"},
		{"memory_bw_summary", "no memory copies or sets on a device"},
		{"memory_bw_time_series", "no memory copies or sets on a device"},
	};

	if (run->events.where.size)
		return "no results: the filter keeps no such events";
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reasons[i].id, run->analysis->id) == 0)
			return reasons[i].reason;
	return inner[run->analysis - analyses].subject == DEVICE_WORK ? "no results: the traces have no such device work" : NULL;
}

static enum ops_code analysis_answer(struct analysis_run *run, const struct ops_analyze_options *options,
                                     struct ops_buffer *out)
{
	struct ops_string where = analysis_arg(run, "where");
	bool include_last = false;
	enum ops_code code;

	if (!ops_string_is(analysis_arg(run, "include_last_profiler_step"), "null"))
		include_last = analysis_bool(run, "include_last_profiler_step");
	code = run->code;
	if (!code && !ops_string_is(where, "null"))
		code = event_filter_check(where, run->error);
	if (code)
		return code;
	if (run->analysis->inputs != OPS_QUERY_FILES)
		code = event_set_init(&run->events, run->ranks, run->count, options, include_last, run->rules, run->error);
	run->events.all_steps = run->events.apart = run->analysis->inputs == OPS_QUERY_PAIR;
	if (!ops_string_is(where, "null"))
		run->events.where = where;
	run->result.table.empty = reason_for_nothing(run);
	run->result.table.rounded = options->round_to_us;
	if (!code)
		code = inner[run->analysis - analyses].answer(run);
	if (options->format == OPS_FORMAT_TEXT && !run->result.table.failed)
		result_table_sort(&run->result.table);
	if (!code)
		code = analysis_cut(run);
	run->result.leaves_out = run->events.leaves_out;
	if (run->events.leaves_out)
		run->result.left_out_step = run->events.steps.items[run->events.steps.count - 1];
	return code ? code : write_result(run, out);
}

enum ops_code ops_analyze(const char *id, const struct ops_rank *ranks, size_t count,
                          const struct ops_analyze_options *options, char **ret_text, size_t *ret_size,
                          struct ops_error *error)
{
	static const struct ops_analyze_options defaults;
	struct analysis_run run = {
		.analysis = ops_query_find(id), .ranks = ranks, .count = count, .error = error};
	struct ops_buffer out = {0};
	enum ops_code code;

	options = options ? options : &defaults;
	run.round_to_us = options->round_to_us;
	run.source = options->source;
	run.format = options->format;
	run.columns = options->columns;
	*ret_text = NULL;
	*ret_size = 0;
	if (!run.analysis)
		return ops_fault(error, OPS_INVALID, "unknown query '%s'", id);
	code = analysis_check_args(&run, options->args);
	if (!code)
		code = check_ranks(&run);
	if (!code)
		code = parse_rules(&run);
	result_init(&run.result);
	run.result.table.copies = run.source != NULL;
	run.result.room = options->columns;
	run.result.keeps_parts = options->format != OPS_FORMAT_JSON;
	if (!code)
		code = is_analysis(run.analysis) ? analysis_answer(&run, options, &out) : analysis_answer_table(&run, &out);
	result_release(&run.result);
	event_set_release(&run.events);
	ops_arena_release(&run.texts);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}

/* Large enough, since ranks of a program need no names. */
#define RANK_NAME_BYTES 32
struct named_ranks {
	struct ops_rank *items;
	char (*names)[RANK_NAME_BYTES];
};

static bool name_ranks(struct named_ranks *named, const struct ops_rank *ranks, size_t count)
{
	named->items = ops_realloc_array(NULL, count + 1, sizeof(*named->items));
	named->names = ops_realloc_array(NULL, count + 1, sizeof(*named->names));
	for (size_t i = 0; named->items && named->names && i < count; i++) {
		named->items[i] = ranks[i];
		if (ranks[i].name)
			continue;
		snprintf(named->names[i], RANK_NAME_BYTES, "rank %lld", (long long)ranks[i].rank);
		named->items[i].name = ranks[i].path ? ranks[i].path : named->names[i];
	}
	return named->items && named->names;
}

enum ops_code ops_query(const struct ops_run *run, const char *id, const struct ops_query_options *options, char **ret_text,
                        size_t *ret_size, struct ops_error *error)
{
	static const struct ops_run nothing;
	struct named_ranks named = {NULL, NULL};
	struct ops_query_options given;
	enum ops_code code = ops_options_read(&given, sizeof(given), options, error);
	struct ops_analyze_options used = {
		.format = given.format, .round_to_us = given.round_to_us, .args = given.args, .columns = given.columns};
	char *text = NULL;
	size_t size = 0;

	run = run ? run : &nothing;
	used.source = run->source;
	if (!code && !name_ranks(&named, run->ranks, run->count))
		code = ops_fault_memory(error);
	if (!code)
		code = ops_analyze(id, named.items, run->count, &used, &text, &size, error);
	ops_free(named.items);
	ops_free(named.names);
	if (code)
		return code;
	*ret_text = text;
	*ret_size = size;
	return OPS_OK;
}
