/* SPDX-License-Identifier: Apache-2.0
 *
 * Summary of a trace: where and when it was recorded, and the numbers of its records. trace_facts.c writes it as a page.
 */
#include <string.h>

#include "analyze/about/trace_facts.h"
#include "analyze/analysis.h"
#include "analyze/ranks/trace_job.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/extent.h"

enum { FACTS_FILE = 1, FACTS_WORLD = 2, FACTS_HOST = 4, FACTS_PROCESS = 8, FACTS_RECORDING = 16, FACTS_STEPS = 32, FACTS_GPUS = 64 };

#define FACT(member) RESULT_FIELD(struct trace_facts, member)
static const struct result_column fact_columns[] = {
	{.name = "file", .type = RESULT_TEXT, .title = "File", .about = "Path of the file", .option = FACTS_FILE, .when = "for a file", FACT(file)},
	{.name = "rank", .type = RESULT_INTEGER, .title = "Rank", .about = "Rank of the process in its job; null: unknown", FACT(rank)},
	{.name = "world_size", .type = RESULT_INTEGER, .title = "World size", .about = "Number of processes of the job",
	 .option = FACTS_WORLD, .when = "if the trace states it", FACT(world_size)},
	{.name = "host", .type = RESULT_TEXT, .title = "Host", .about = "Name of the machine", .option = FACTS_HOST, .when = "if known",
	 FACT(host)},
	{.name = "process", .type = RESULT_TEXT, .title = "Process", .about = "Name of the process", .option = FACTS_PROCESS,
	 .when = "if known", FACT(process)},
	{.name = "gpus", .type = RESULT_TEXT, .title = "GPUs", .about = "Models of the devices, and how many of each", .option = FACTS_GPUS,
	 .when = "if the file has properties of devices", FACT(gpus)},
	{.name = "recording", .type = RESULT_JSON, .title = "Recording", .about = "What the recording was made with: an object",
	 .option = FACTS_RECORDING, .when = "for recordings of Opstrobe", FACT(recording)},
	{.name = "start_ns", .type = RESULT_INTEGER, .title = "Start", .about = "Time of the first event, since 1970", .unit = "ns",
	 FACT(start_ns)},
	{.name = "duration_us", .type = RESULT_TIME, .title = "Duration", .about = "Time from the first event to the last", FACT(duration_ns)},
	{.name = "steps", .type = RESULT_COUNT, .title = "Steps", .about = "Number of steps", FACT(steps)},
	{.name = "steps_from", .type = RESULT_TEXT, .title = "Steps from",
	 .about = "What the steps are taken from: marks, optimizer, batches, iterations, loop or none", FACT(steps_from)},
	{.name = "steps_source", .type = RESULT_TEXT, .title = "Steps from", .about = "The same for people", FACT(steps_source)},
	{.name = "first_step", .type = RESULT_INTEGER, .title = "First step", .about = "Number of the first step", .option = FACTS_STEPS,
	 .when = "if there are steps", FACT(first_step)},
	{.name = "last_step", .type = RESULT_INTEGER, .title = "Last step", .about = "Number of the last step", .option = FACTS_STEPS,
	 .when = "if there are steps", FACT(last_step)},
	{.name = "events", .type = RESULT_COUNT, .title = "Events", .about = "Number of events", FACT(events)},
	{.name = "events_by_kind", .type = RESULT_JSON, .title = "Events by kind", .about = "Numbers of events by kind: an object", FACT(by_kind)},
	{.name = "threads", .type = RESULT_COUNT, .title = "Threads", .about = "Number of threads with events", FACT(threads)},
	{.name = "streams", .type = RESULT_COUNT, .title = "Streams", .about = "Number of device streams with events", FACT(streams)},
	{.name = "arrows", .type = RESULT_COUNT, .title = "Links", .about = "Number of links between events", FACT(links)},
	{.name = "memory_records", .type = RESULT_COUNT, .title = "Memory records", .about = "Number of allocations and frees", FACT(memory)},
	{.name = "counter_values", .type = RESULT_COUNT, .title = "Counter values", .about = "Number of values of counters", FACT(counters)},
	{.name = "modules", .type = RESULT_COUNT, .title = "Modules", .about = "Number of modules of the program", FACT(modules)},
	{.name = "module_calls", .type = RESULT_COUNT, .title = "Module calls", .about = "Number of calls of modules", FACT(module_calls)},
	{.name = "call_stacks", .type = RESULT_COUNT, .title = "Call stacks",
	 .about = "Number of events with a call stack, which have it because no Python calls were recorded, or from the file", FACT(call_stacks)},
	{.name = "input_shapes", .type = RESULT_COUNT, .title = "Operators with inputs",
	 .about = "Number of operators for which the inputs were recorded: shapes, types and values", FACT(input_shapes)},
	{.name = "lost_records", .type = RESULT_COUNT, .title = "Lost events", .about = "Number of events that the recording lost", FACT(lost)},
	{.name = "notes", .type = RESULT_COUNT, .title = "Problems of the file",
	 .about = "Number of kinds of errors in the file; 'opstrobe validate' lists them", FACT(notes)},
};
const struct result_declaration table_info = RESULT_DECLARATION("info", "A trace", fact_columns);

/* Members of `recording`, and kinds of events. Their titles are those of the viewer. */
static const struct result_column recording_columns[] = {
	{.name = "command", .type = RESULT_TEXT, .title = "Command", .about = "The command line"},
	{.name = "git_revision", .type = RESULT_TEXT, .title = "Git revision", .about = "The commit of the program"},
	{.name = "opstrobe", .type = RESULT_TEXT, .title = "Opstrobe", .about = "Version of Opstrobe"},
	{.name = "python", .type = RESULT_TEXT, .title = "Python", .about = "Version of Python"},
	{.name = "torch", .type = RESULT_TEXT, .title = "PyTorch", .about = "Version of PyTorch"},
	{.name = "cuda", .type = RESULT_TEXT, .title = "CUDA", .about = "Version of CUDA that PyTorch was built for"},
	{.name = "hip", .type = RESULT_TEXT, .title = "HIP", .about = "Version of HIP that PyTorch was built for"},
	{.name = "cpu", .type = RESULT_TEXT, .title = "CPU", .about = "Model of the CPU"},
	{.name = "gpus", .type = RESULT_TEXT, .title = "GPUs", .about = "Models of the devices"},
	{.name = "threads", .type = RESULT_TEXT, .title = "Intra-op threads", .about = "Threads that one operator may use"},
	{.name = "interop_threads", .type = RESULT_TEXT, .title = "Inter-op threads", .about = "Threads that run operators at the same time"},
	{.name = "emulated_types", .type = RESULT_TEXT, .title = "Emulated types", .about = "Types of floating-point numbers that the CPU has no instructions for"},
	{.name = "settings", .type = RESULT_TEXT, .title = "Slow settings", .about = "Settings of the process that make its code slower"},
	{.name = "options", .type = RESULT_TEXT, .title = "Options", .about = "What was recorded"},
};
const struct result_declaration table_recording = RESULT_DECLARATION("recording", "What a recording was made with", recording_columns);

static const struct result_column kind_columns[] = {
	{.name = "cpu_op", .type = RESULT_COUNT, .title = "Operators"},
	{.name = "user_annotation", .type = RESULT_COUNT, .title = "Annotations"},
	{.name = "python_function", .type = RESULT_COUNT, .title = "Python functions"},
	{.name = "cpu_instant_event", .type = RESULT_COUNT, .title = "Instants"},
	{.name = "kernel", .type = RESULT_COUNT, .title = "Kernels"},
	{.name = "gpu_memcpy", .type = RESULT_COUNT, .title = "Memory copies"},
	{.name = "gpu_memset", .type = RESULT_COUNT, .title = "Memory sets"},
	{.name = "gpu_user_annotation", .type = RESULT_COUNT, .title = "Annotations on devices"},
	{.name = "cuda_runtime", .type = RESULT_COUNT, .title = "Runtime calls"},
	{.name = "cuda_driver", .type = RESULT_COUNT, .title = "Driver calls"},
	{.name = "cuda_sync", .type = RESULT_COUNT, .title = "Synchronisation"},
	{.name = "overhead", .type = RESULT_COUNT, .title = "Overhead of the profiler"},
	{.name = "Trace", .type = RESULT_COUNT, .title = "Profiler windows"},
	{.name = "mark", .type = RESULT_COUNT, .title = "Marks"},
	{.name = "other", .type = RESULT_COUNT, .title = "Other events"},
};
const struct result_declaration table_event_kinds = RESULT_DECLARATION("event_kinds", "Numbers of events by kind", kind_columns);

/* --- facts ---------------------------------------------------------------------------------------------------------- */

static void trace_facts_count_events(struct trace_facts *facts, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_json_writer json = {.out = &facts->kinds};
	uint64_t kinds[OPS_EVENT_KIND_COUNT] = {0};

	for (size_t i = 0; i < events->count; i++)
		kinds[events->kind[i]]++;
	facts->events = events->count;
	ops_json_open(&json, '{');
	for (int kind = 0; kind < OPS_EVENT_KIND_COUNT; kind++) {
		const char *name = ops_event_kind_category((enum ops_event_kind)kind);

		if (kinds[kind])
			ops_json_member(&json, *name ? name : kind == OPS_EVENT_MARK ? "mark" : "other", ops_clamped(kinds[kind]));
	}
	ops_json_close(&json, '}');
	facts->by_kind = (struct ops_string){ops_buffer_text(&facts->kinds), facts->kinds.size};
}

static void count_tracks(struct trace_facts *facts, const struct ops_trace *trace)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	for (size_t i = 0; i < count; i++)
		facts->streams += tracks[i].kind == OPS_TRACK_STREAM;
	facts->threads = ops_thread_count(trace);
}

/* Returns false if out of memory. */
static bool trace_facts_count_steps(struct trace_facts *facts, const struct ops_trace *trace)
{
	struct ops_intern numbers = {0}; /* ranks merged into one trace share step numbers */
	const struct ops_steps *steps = ops_steps_of(trace);
	bool done = steps != NULL;

	facts->first_step = INT64_MAX;
	facts->last_step = INT64_MIN;
	for (size_t i = 0; done && i < steps->list.count; i++) {
		int64_t number = steps->list.items[i].number;

		facts->first_step = number < facts->first_step ? number : facts->first_step;
		facts->last_step = number > facts->last_step ? number : facts->last_step;
		done = ops_intern_add(&numbers, &number, sizeof(number)) != OPS_INTERN_NONE;
	}
	facts->steps = numbers.count;
	facts->present |= numbers.count ? FACTS_STEPS : 0;
	facts->steps_from = ops_steps_source_name(done ? steps->source : OPS_STEPS_NONE);
	facts->steps_source = ops_steps_source_about(done ? steps->source : OPS_STEPS_NONE);
	ops_intern_release(&numbers);
	return done;
}

/* Counts the names of modules of a trace that has no list of modules: torch's profiler writes only their calls. Returns false if out of
 * memory. */
static bool count_named_modules(struct trace_facts *facts, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint8_t *seen = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, 1);

	for (size_t i = 0; seen && events->python_module && i < events->count; i++)
		if (events->python_module[i] != OPS_NONE && !seen[events->name[i]]) {
			seen[events->name[i]] = 1;
			facts->modules++;
		}
	ops_free(seen);
	return seen != NULL;
}

static bool count_parts(struct trace_facts *facts, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;

	ops_trace_links(trace, &count);
	facts->links = count;
	ops_trace_memory(trace, &count);
	facts->memory = count;
	ops_trace_counters(trace, &count);
	facts->counters = count;
	ops_trace_modules(trace, &count);
	facts->modules = count;
	for (size_t i = 0; events->python_module && i < events->count; i++)
		facts->module_calls += events->python_module[i] != OPS_NONE;
	for (size_t i = 0; events->call_stack && i < events->count; i++)
		facts->call_stacks += events->call_stack[i] != OPS_NONE;
	for (size_t i = 0; i < events->count; i++)
		facts->input_shapes += events->kind[i] == OPS_EVENT_CPU_OP && events->inputs[i] != OPS_NONE;
	facts->lost = ops_trace_info(trace)->lost;
	ops_trace_notes(trace, &count);
	facts->notes = count;
	return facts->modules || !facts->module_calls || count_named_modules(facts, trace);
}

/* Reads the names of the devices: "NVIDIA A100-SXM4-40GB (8)". */
static void read_gpus(struct trace_facts *facts, const struct ops_trace *trace)
{
	struct ops_string json, device, name, last = {0};
	size_t count = 0;
	struct ops_json_walk walk;

	if (!ops_trace_find_metadata(trace, "deviceProperties", &json))
		return;
	walk = ops_json_walk(json.bytes, json.size);
	while (ops_json_next_element(&walk, &device)) {
		if (!ops_json_find_member(device, "name", &name))
			continue;
		if (count && ops_string_equals(name, last)) {
			count++;
			continue;
		}
		if (count > 1)
			ops_buffer_printf(&facts->devices, " (%zu)", count);
		ops_buffer_append_text(&facts->devices, count ? ", " : "");
		ops_json_decode_value(&facts->devices, name);
		last = name;
		count = 1;
	}
	if (count > 1)
		ops_buffer_printf(&facts->devices, " (%zu)", count);
	facts->gpus = (struct ops_string){ops_buffer_text(&facts->devices), facts->devices.size};
	facts->present |= facts->gpus.size ? FACTS_GPUS : 0;
}

/* Reads what names the trace, and the settings of the recording, which its metadata has as `recording`: an object of texts,
 * numbers and lists. */
static void read_origin(struct trace_facts *facts, const struct ops_rank *rank)
{
	const struct ops_trace_info *info = ops_trace_info(rank->trace);
	struct ops_string recording;
	struct ops_trace_job job;

	trace_job_read(rank->trace, rank->path, &job);
	facts->file = rank->path;
	facts->rank = job.rank >= 0 ? job.rank : RESULT_NULL;
	facts->world_size = job.world_size;
	facts->host = info->host_name;
	facts->process = info->process_name;
	facts->present |= (rank->path ? FACTS_FILE : 0) | (job.world_size >= 0 ? FACTS_WORLD : 0) | (*info->host_name ? FACTS_HOST : 0) |
	                  (*info->process_name ? FACTS_PROCESS : 0);
	read_gpus(facts, rank->trace);
	if (ops_trace_find_metadata(rank->trace, "recording", &recording) && recording.size && recording.bytes[0] == '{') {
		facts->recording = recording;
		facts->present |= FACTS_RECORDING;
	}
}

/* Returns false if out of memory. The caller releases the facts in any case. */
static bool trace_facts_read(struct trace_facts *facts, const struct ops_rank *rank)
{
	const struct ops_events *events = ops_trace_events(rank->trace);
	struct ops_interval extent = ops_extent_of(rank->trace);

	*facts = (struct trace_facts){.start_ns = events->count ? events->start_ns[0] : 0,
	                              .duration_ns = ops_difference(extent.end_ns, extent.start_ns)};
	read_origin(facts, rank);
	trace_facts_count_events(facts, rank->trace);
	count_tracks(facts, rank->trace);
	return count_parts(facts, rank->trace) && trace_facts_count_steps(facts, rank->trace) && !facts->kinds.failed && !facts->devices.failed;
}

/* --- output --------------------------------------------------------------------------------------------------------- */

static void write_metadata(struct ops_json_writer *json, const struct ops_trace *trace)
{
	struct ops_string key, value;

	ops_json_member_open(json, "metadata", '{');
	for (size_t i = 0; i < ops_trace_metadata_count(trace); i++) {
		ops_trace_metadata(trace, i, &key, &value);
		ops_json_key_of(json, key.bytes, key.size);
		ops_json_raw(json, value.bytes, value.size);
	}
	ops_json_close(json, '}');
}

static bool write_trace(struct analysis_run *run, const struct ops_rank *rank, bool metadata)
{
	struct ops_json_writer *json = &run->result.json;
	bool is_page = run->format == OPS_FORMAT_TEXT || run->format == OPS_FORMAT_MARKDOWN;
	struct trace_facts facts;
	bool done = trace_facts_read(&facts, rank);

	if (done && is_page)
		trace_facts_write(&facts, run->format == OPS_FORMAT_MARKDOWN, run->columns, &run->written);
	if (done && !is_page) {
		ops_json_open(json, '{');
		result_members_json(&table_info, facts.present, &facts, json);
		if (metadata)
			write_metadata(json, rank->trace);
		ops_json_close(json, '}');
	}
	ops_buffer_release(&facts.kinds);
	ops_buffer_release(&facts.devices);
	return done;
}

enum ops_code analysis_info(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;
	const struct ops_trace *trace;
	bool metadata = analysis_bool(run, "metadata"), done = true, is_list;
	enum ops_code code = run->code ? run->code : analysis_first_trace(run, &trace);

	if (code)
		return code;
	is_list = run->count > 1 || !run->ranks[0].trace;
	if (is_list)
		ops_json_open(json, '[');
	for (size_t i = 0; done && i < run->count; i++)
		done = !run->ranks[i].trace || write_trace(run, &run->ranks[i], metadata);
	if (is_list)
		ops_json_close(json, ']');
	return done ? OPS_OK : ops_fault_memory(run->error);
}
