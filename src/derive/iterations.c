/* SPDX-License-Identifier: Apache-2.0
 *
 * Iterations of vLLM and SGLang; see iterations.h. The names used by these projects are in two tables, one for ranges
 * and one for Python functions.
 */
#include "derive/iterations.h"

#include <string.h>

#include <opstrobe/inputs.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/text.h"
#include "derive/calls.h"
#include "derive/captures.h"
#include "trace/kinds.h"

/* --- names ---------------------------------------------------------------------------------------------------------- */

/* What a row shows about iterations. */
enum says {
	NOT_CLASSIFIED,
	NOTHING,
	BEGINS,    /* an iteration is this row, with the rows that continue it */
	CONTINUES, /* belongs to the previous iteration */
	WARMS_UP,  /* rows inside are not iterations */
	MIXES,     /* the next iteration has both prompts and other sequences */
	SHOWS,     /* shows the kind of the iteration around it */
	ATTENDS,   /* an operator of attention over sequences of various lengths */
	CAPTURES,  /* a call that begins the capture of a graph */
};

enum server { VLLM = 1, SGLANG };

/* If several rows begin iterations, those of the lowest rank count, since they are the most exact. */
struct name {
	uint8_t says; /* enum says */
	uint8_t rank; /* rank of BEGINS */
	uint8_t server;
	uint8_t kind; /* enum ops_iteration_kind */
};

static const struct {
	const char *prefix;
	enum says says;
	uint8_t rank;
	enum server server;
} ranges[] = {
	/* The first match counts. */
	{"execute_", BEGINS, 1, VLLM}, /* contains the numbers of sequences and tokens: ops_iteration_kind_of_name */
	{"step[DRAFT", CONTINUES, 0, SGLANG},
	{"step[", BEGINS, 1, SGLANG},
	{"gpu_model_runner: preprocess", BEGINS, 2, VLLM},
	{"gpu_model_runner: forward", BEGINS, 3, VLLM},
	{"gpu_model_runner: ", CONTINUES, 0, VLLM},
};

static const struct {
	const char *package; /* a part of the file's path */
	const char *file;    /* prefix of its name */
	const char *function;
	enum says says;
	uint8_t rank;
	enum server server;
	enum ops_iteration_kind kind;
} functions[] = {
	{"vllm", "gpu_model_runner", "execute_model", BEGINS, 4, VLLM, OPS_ITERATION_UNKNOWN},
	{"vllm", "model_runner", "execute_model", BEGINS, 4, VLLM, OPS_ITERATION_UNKNOWN},
	{"vllm", "gpu_model_runner", "sample_tokens", CONTINUES, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "model_runner", "sample_tokens", CONTINUES, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "gpu_model_runner", "_dummy_run", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "gpu_model_runner", "profile_run", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "gpu_model_runner", "capture_model", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "model_runner", "profile_run", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "model_runner", "capture_model", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "gpu_worker", "compile_or_warm_up_model", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"vllm", "gpu_worker", "determine_available_memory", WARMS_UP, 0, VLLM, OPS_ITERATION_NONE},
	{"sglang", "tp_worker.py", "forward_batch_generation", BEGINS, 4, SGLANG, OPS_ITERATION_UNKNOWN},
	{"sglang", "model_runner.py", "forward", BEGINS, 5, SGLANG, OPS_ITERATION_UNKNOWN},
	{"sglang", "model_runner.py", "forward_decode", SHOWS, 0, SGLANG, OPS_ITERATION_DECODE},
	{"sglang", "model_runner.py", "forward_extend", SHOWS, 0, SGLANG, OPS_ITERATION_PREFILL},
	{"sglang", "model_runner.py", "forward_idle", SHOWS, 0, SGLANG, OPS_ITERATION_IDLE},
	{"sglang", "model_runner.py", "sample", CONTINUES, 0, SGLANG, OPS_ITERATION_NONE},
	{"sglang", "schedule_batch.py", "mix_with_running", MIXES, 0, SGLANG, OPS_ITERATION_NONE},
	{"sglang", "cuda_graph_runner.py", "replay", SHOWS, 0, SGLANG, OPS_ITERATION_DECODE},
	{"sglang", "cuda_graph_runner.py", "capture", WARMS_UP, 0, SGLANG, OPS_ITERATION_NONE},
	{"sglang", "cuda_graph_runner.py", "capture_one_batch_size", WARMS_UP, 0, SGLANG, OPS_ITERATION_NONE},
	{"sglang", "model_runner.py", "init_cuda_graphs", WARMS_UP, 0, SGLANG, OPS_ITERATION_NONE},
	{"sglang", "model_runner.py", "init_device_graphs", WARMS_UP, 0, SGLANG, OPS_ITERATION_NONE},
	{"sglang", "model_runner.py", "kernel_warmup", WARMS_UP, 0, SGLANG, OPS_ITERATION_NONE},
};

/* Parses the number after `word`. Returns false if there is none. */
static bool number_after(struct ops_string name, const char *word, uint64_t *ret_number)
{
	const char *at = memmem(name.bytes, name.size, word, strlen(word)), *end = name.bytes + name.size;
	uint64_t number = 0;
	int digits = 0;

	if (!at)
		return false;
	for (at += strlen(word); at < end && *at >= '0' && *at <= '9' && digits < 18; at++, digits++)
		number = number * 10 + (uint64_t)(*at - '0');
	*ret_number = number;
	return digits > 0;
}

/* vLLM: "execute_context_1(888)_generation_4(4)", "execute_32_context_0(sq0sk0…)_generation_32(sq32sk550…)" with the
 * size of the graph, and "execute_new_1_cached_4", where cached sequences may still have prompts to process. */
static enum ops_iteration_kind vllm_kind(struct ops_string name)
{
	uint64_t prompts, others;

	if (number_after(name, "context_", &prompts) && number_after(name, "_generation_", &others)) {
		if (!prompts && !others)
			return OPS_ITERATION_IDLE;
		return prompts && others ? OPS_ITERATION_MIXED : prompts ? OPS_ITERATION_PREFILL : OPS_ITERATION_DECODE;
	}
	if (number_after(name, "execute_new_", &prompts) && number_after(name, "_cached_", &others))
		return prompts && !others ? OPS_ITERATION_PREFILL : OPS_ITERATION_UNKNOWN;
	return OPS_ITERATION_NONE;
}

/* SGLang: "step[DECODE bs=4]", "step[prefill bs=1 toks=512]", "step[idle]". */
static enum ops_iteration_kind sglang_kind(struct ops_string name)
{
	static const struct {
		const char *mode;
		enum ops_iteration_kind kind;
	} modes[] = {
		{"decode", OPS_ITERATION_DECODE},   {"DECODE", OPS_ITERATION_DECODE},   {"TARGET_VERIFY", OPS_ITERATION_DECODE},
		{"prefill", OPS_ITERATION_PREFILL}, {"EXTEND", OPS_ITERATION_PREFILL},  {"SPLIT_PREFILL", OPS_ITERATION_PREFILL},
		{"mixed", OPS_ITERATION_MIXED},     {"MIXED", OPS_ITERATION_MIXED},     {"idle", OPS_ITERATION_IDLE},
		{"IDLE", OPS_ITERATION_IDLE},
	};
	const char *mode = name.bytes + strlen("step[");
	size_t left = name.size - strlen("step["), size = 0;

	while (size < left && mode[size] != ' ' && mode[size] != ']')
		size++;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (ops_string_is((struct ops_string){mode, size}, modes[i].mode))
			return modes[i].kind;
	return size && ops_string_contains(name, " bs=") ? OPS_ITERATION_UNKNOWN : OPS_ITERATION_NONE;
}

enum ops_iteration_kind ops_iteration_kind_of_name(struct ops_string name)
{
	if (ops_string_starts(name, "execute_"))
		return vllm_kind(name);
	return ops_string_starts(name, "step[") ? sglang_kind(name) : OPS_ITERATION_NONE;
}

static struct name name_of_range(struct ops_string name)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		struct name found = {(uint8_t)ranges[i].says, ranges[i].rank, (uint8_t)ranges[i].server, OPS_ITERATION_UNKNOWN};

		if (!ops_string_starts(name, ranges[i].prefix))
			continue;
		if (found.rank == 1)
			found.kind = (uint8_t)ops_iteration_kind_of_name(name);
		return found.kind == OPS_ITERATION_NONE ? (struct name){NOTHING, 0, 0, 0} : found;
	}
	return (struct name){NOTHING, 0, 0, 0};
}

/* Returns "execute_model" for "GPUModelRunner.execute_model". */
static struct ops_string behind_last(struct ops_string text, char separator)
{
	const char *last = text.size ? memrchr(text.bytes, separator, text.size) : NULL;

	if (!last)
		return text;
	return (struct ops_string){last + 1, text.size - (size_t)(last + 1 - text.bytes)};
}

static struct name name_of_function(const struct ops_trace *trace, uint32_t row)
{
	struct ops_function_text text;
	struct ops_string name, file;

	if (!ops_event_function(trace, row, &text) || !text.file.size)
		return (struct name){NOTHING, 0, 0, 0};
	name = behind_last(text.name, '.');
	file = behind_last(text.file, '/');
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (ops_string_is(name, functions[i].function) && ops_string_starts(file, functions[i].file) &&
		    ops_string_contains(text.file, functions[i].package))
			return (struct name){(uint8_t)functions[i].says, functions[i].rank, (uint8_t)functions[i].server,
			                     (uint8_t)functions[i].kind};
	return (struct name){NOTHING, 0, 0, 0};
}

static struct name name_of_operator(struct ops_string name)
{
	bool attends = ops_string_ends(name, "::varlen_fwd") || ops_string_ends(name, "_fa3_C::fwd") || ops_string_is(name, "sgl_kernel::fwd");

	return attends ? (struct name){ATTENDS, 0, 0, 0} : name_of_range(name);
}

static struct name name_of_row(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_string name = ops_trace_string(trace, events->name[row]);

	switch (events->kind[row]) {
	case OPS_EVENT_PYTHON_FUNCTION:
		return name_of_function(trace, row);
	case OPS_EVENT_USER_ANNOTATION:
		return name_of_range(name);
	case OPS_EVENT_CPU_OP:
		return name_of_operator(name);
	case OPS_EVENT_RUNTIME:
	case OPS_EVENT_DRIVER:
		return (struct name){ops_call_of(name) & OPS_CALL_CAPTURE ? CAPTURES : NOTHING, 0, 0, 0};
	default:
		return (struct name){NOTHING, 0, 0, 0};
	}
}

/* --- search --------------------------------------------------------------------------------------------------------- */

/* State of a process. */
struct serving {
	uint8_t rank;           /* rank of the rows that begin its iterations; 0: none */
	uint8_t server;
	uint32_t track;         /* thread of these rows */
	int64_t warm_up_end_ns; /* rows that begin earlier are not iterations */
	struct ops_iteration open;
	bool is_open;
	bool captures;          /* the open iteration captures a graph */
	bool mixes;             /* the next iteration has both prompts and other sequences */
	bool attends, has_prompts; /* the open iteration has attention; some of it has more tokens than sequences */
	int64_t number;
};

struct iteration_finder {
	const struct ops_trace *trace;
	const struct ops_events *events;
	struct ops_iterations *iterations;
	struct name *names;     /* by string */
	uint32_t *process_of;   /* by track */
	struct serving *processes;
	size_t process_count;
	const struct ops_captures *captures;
	size_t capture, loop; /* cursors into their times and loops */
};

static bool is_on_host(uint8_t kind)
{
	return kind == OPS_EVENT_PYTHON_FUNCTION || kind == OPS_EVENT_USER_ANNOTATION || kind == OPS_EVENT_CPU_OP || ops_kind_is_call(kind);
}

/* A device's copy of a range has the name of the range. */
static struct name iteration_name(struct iteration_finder *finder, uint32_t row)
{
	struct name *name = &finder->names[finder->events->name[row]];

	if (!is_on_host(finder->events->kind[row]))
		return (struct name){NOTHING, 0, 0, 0};
	if (name->says == NOT_CLASSIFIED)
		*name = name_of_row(finder->trace, row);
	return *name;
}

static bool iterations_find_processes(struct iteration_finder *finder)
{
	struct ops_map by_pid = {0};
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(finder->trace, &count);
	bool done = true;

	finder->process_of = ops_alloc_zeroed(count + 1, sizeof(*finder->process_of));
	finder->processes = ops_alloc_zeroed(count + 1, sizeof(*finder->processes));
	for (size_t i = 0; finder->process_of && finder->processes && done && i < count; i++) {
		uint32_t *process = ops_map_slot(&by_pid, (uint64_t)tracks[i].pid, (uint32_t)by_pid.count);

		done = process != NULL;
		if (done)
			finder->process_of[i] = *process;
	}
	finder->process_count = by_pid.count;
	ops_map_release(&by_pid);
	return done && finder->process_of && finder->processes;
}

/* Finds the lowest rank of each process, and the first thread that has it. */
static bool find_servers(struct iteration_finder *finder)
{
	bool any = false;

	for (uint32_t row = 0; row < finder->events->count; row++) {
		struct serving *process = &finder->processes[finder->process_of[finder->events->track[row]]];
		struct name name = iteration_name(finder, row);

		if (name.says != BEGINS || (process->rank && process->rank <= name.rank))
			continue;
		process->rank = name.rank;
		process->server = name.server;
		process->track = finder->events->track[row];
		any = true;
	}
	return any;
}

static bool close_iteration(struct iteration_finder *finder, struct serving *process)
{
	bool counts = process->is_open && !process->captures;

	process->is_open = false;
	if (process->open.kind == OPS_ITERATION_UNKNOWN && process->attends && !process->has_prompts)
		process->open.kind = OPS_ITERATION_DECODE;
	process->open.number = process->number;
	process->number += counts;
	return !counts || OPS_ARRAY_APPEND(&finder->iterations->list, process->open);
}

static bool begin_iteration(struct iteration_finder *finder, struct serving *process, uint32_t row, struct name name)
{
	const struct ops_events *events = finder->events;
	bool inside = process->is_open && events->start_ns[row] < process->open.end_ns;

	if (inside || name.rank != process->rank || events->start_ns[row] < process->warm_up_end_ns)
		return true;
	/* What is captured does not run, and what runs before warms up. */
	if (ops_intervals_within(&finder->captures->times, events->start_ns[row], events->start_ns[row] + 1, &finder->capture) ||
	    ops_intervals_within(&finder->captures->loops, events->start_ns[row], events->start_ns[row] + 1, &finder->loop))
		return true;
	if (!close_iteration(finder, process))
		return false;
	process->open = (struct ops_iteration){.start_ns = events->start_ns[row], .end_ns = events->end_ns[row],
	                                       .track = events->track[row], .kind = name.kind};
	if (process->mixes && name.kind == OPS_ITERATION_UNKNOWN)
		process->open.kind = OPS_ITERATION_MIXED;
	process->is_open = true;
	process->captures = process->mixes = process->attends = process->has_prompts = false;
	return true;
}

/* In a decode there are as many tokens as sequences: the first dimension of the query is one less than the length of
 * the next vector, which has the offsets of the sequences and the end. */
static void note_attention(struct iteration_finder *finder, struct serving *process, uint32_t row)
{
	struct ops_string list = finder->events->inputs[row] == OPS_NONE ? (struct ops_string){NULL, 0}
	                                                                 : ops_trace_inputs(finder->trace, finder->events->inputs[row]);
	struct ops_input_cursor cursor = ops_inputs_open(list.bytes, list.size);
	struct ops_input item;
	int64_t tokens = -1;

	while (list.size && ops_inputs_next(&cursor, &item)) {
		if (!ops_input_is_tensor(item.tag) || !item.n)
			continue;
		if (tokens < 0) {
			tokens = ops_input_int(&item, 0);
		} else if (item.n == 1) {
			process->attends = true;
			process->has_prompts |= tokens != ops_input_int(&item, 0) - 1;
			return;
		}
	}
}

static bool visit(struct iteration_finder *finder, struct serving *process, uint32_t row, struct name name)
{
	const struct ops_events *events = finder->events;
	bool inside = process->is_open && events->start_ns[row] < process->open.end_ns;

	switch (name.says) {
	case BEGINS:
		return begin_iteration(finder, process, row, name);
	case CONTINUES:
		if (process->is_open && name.server == process->server && events->end_ns[row] > process->open.end_ns)
			process->open.end_ns = events->end_ns[row];
		return true;
	case WARMS_UP:
		if (!inside && events->end_ns[row] > process->warm_up_end_ns)
			process->warm_up_end_ns = events->end_ns[row];
		return true;
	case MIXES:
		process->mixes = true;
		return true;
	case SHOWS:
		if (inside && process->open.kind == OPS_ITERATION_UNKNOWN)
			process->open.kind = name.kind;
		return true;
	case ATTENDS:
		if (inside)
			note_attention(finder, process, row);
		return true;
	case CAPTURES:
		process->captures |= inside;
		return true;
	default:
		return true;
	}
}

static bool find_served_iterations(struct iteration_finder *finder)
{
	const struct ops_events *events = finder->events;
	bool done;

	finder->captures = ops_captures_of(finder->trace);
	done = finder->captures != NULL;
	for (uint32_t row = 0; done && row < events->count; row++) {
		struct serving *process = &finder->processes[finder->process_of[events->track[row]]];

		if (process->rank && events->track[row] == process->track)
			done = visit(finder, process, row, iteration_name(finder, row));
	}
	for (size_t i = 0; done && i < finder->process_count; i++)
		done = close_iteration(finder, &finder->processes[i]);
	return done;
}

bool ops_iterations_find(struct ops_iterations *iterations, const struct ops_trace *trace)
{
	struct iteration_finder finder = {.trace = trace, .events = ops_trace_events(trace), .iterations = iterations};
	bool done;

	*iterations = (struct ops_iterations){0};
	finder.names = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, sizeof(*finder.names));
	done = finder.names && iterations_find_processes(&finder);
	if (done && find_servers(&finder))
		done = find_served_iterations(&finder);
	ops_free(finder.names);
	ops_free(finder.process_of);
	ops_free(finder.processes);
	return done;
}

bool ops_iterations_add_warm_ups(const struct ops_trace *trace, struct ops_intervals *times)
{
	struct iteration_finder finder = {.trace = trace, .events = ops_trace_events(trace)};
	bool done;

	finder.names = ops_alloc_zeroed(ops_trace_string_count(trace) + 1, sizeof(*finder.names));
	done = finder.names != NULL;
	for (uint32_t row = 0; done && row < finder.events->count; row++)
		if (finder.events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && iteration_name(&finder, row).says == WARMS_UP)
			done = ops_intervals_push(times, finder.events->start_ns[row], finder.events->end_ns[row]);
	ops_free(finder.names);
	return done;
}

void ops_iterations_release(struct ops_iterations *iterations)
{
	OPS_ARRAY_RELEASE(&iterations->list);
}

const char *ops_iteration_kind_name(enum ops_iteration_kind kind)
{
	static const char *const names[OPS_ITERATION_KIND_COUNT] = {"", "prefill", "decode", "mixed", "idle", "unknown"};

	return names[kind];
}
