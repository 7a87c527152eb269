/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of an incident as JSON: see watch_facts.h.
 */
#include "watch/watch_facts.h"

#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "derive/program.h"

static const char *const trigger_names[] = {
#define TRIGGER_NAME(name, text) text,
	OPS_TRIGGERS(TRIGGER_NAME)
#undef TRIGGER_NAME
};

const char *ops_trigger_name(enum ops_trigger trigger)
{
	return trigger_names[trigger];
}

enum ops_trigger ops_trigger_find(const char *name, size_t size)
{
	int trigger = 0;

	while (trigger < OPS_TRIGGER_COUNT && !ops_string_is((struct ops_string){name, size}, trigger_names[trigger]))
		trigger++;
	return (enum ops_trigger)trigger;
}

static struct ops_string facts_file_of(const struct ops_stack_frame *frame)
{
	return (struct ops_string){frame->file, strnlen(frame->file, sizeof(frame->file))};
}

/* Leaves out frames that are Opstrobe's: the program is in its step, its error or its own hook, not in the code that reports it. */
static void facts_write_frames(const struct ops_stack *stack, struct ops_json_writer *json)
{
	uint32_t count = stack->count < OPS_STACK_FRAMES ? stack->count : OPS_STACK_FRAMES;

	ops_json_key(json, "python");
	ops_json_open(json, '[');
	for (uint32_t i = 0; i < count; i++) {
		const struct ops_stack_frame *frame = &stack->frames[i];

		if (ops_file_is_own(facts_file_of(frame)))
			continue;
		ops_json_open(json, '{');
		ops_json_member_string(json, "file", facts_file_of(frame));
		ops_json_member(json, "line", frame->line);
		ops_json_member_string(json, "function",
		                       (struct ops_string){frame->function, strnlen(frame->function, sizeof(frame->function))});
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void facts_write_stack(const struct ops_stack *stack, int64_t main_tid, struct ops_json_writer *json)
{
	char state[2] = {stack->state, '\0'};

	ops_json_member(json, "tid", stack->tid);
	ops_json_member_string(json, "name", (struct ops_string){stack->name, strnlen(stack->name, sizeof(stack->name))});
	ops_json_key(json, "is_main");
	ops_json_bool(json, stack->tid == main_tid);
	ops_json_key(json, "has_gil");
	ops_json_bool(json, stack->has_gil);
	ops_json_member_text(json, "state", state);
	ops_json_member_or_null(json, "system_call", stack->system_call);
	facts_write_frames(stack, json);
}

static void facts_write_threads(const struct watch_facts *facts, struct ops_json_writer *json)
{
	ops_json_key(json, "threads");
	ops_json_open(json, '[');
	for (uint32_t i = 0; facts->threads && i < facts->threads->count && i < OPS_WATCH_THREADS; i++) {
		ops_json_open(json, '{');
		facts_write_stack(&facts->threads->stacks[i], facts->page->main_tid, json);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void facts_write_samples(const struct watch_facts *facts, struct ops_json_writer *json)
{
	const struct watch_samples *samples = facts->samples;

	if (!samples || !samples->total)
		return;
	ops_json_member(json, "sample_count", samples->total);
	ops_json_member(json, "samples_collecting", samples->collecting);
	ops_json_key(json, "samples");
	ops_json_open(json, '[');
	for (uint32_t i = 0; i < samples->kinds; i++) {
		ops_json_open(json, '{');
		ops_json_member(json, "count", samples->counts[i]);
		facts_write_stack(&samples->stacks[i], facts->page->main_tid, json);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void facts_write_process(const struct ops_watch_page *page, struct ops_json_writer *json)
{
	ops_json_member(json, "pid", page->pid);
	ops_json_member_text(json, "process", page->process_name);
	ops_json_member_text(json, "host", page->host_name);
	ops_json_member_text(json, "command", page->command);
	ops_json_member_or_null(json, "rank", page->rank);
	ops_json_member(json, "world_size", page->world_size);
	ops_json_member(json, "started_ns", page->started_ns);
}

static void facts_write_step(const struct watch_step *step, struct ops_json_writer *json)
{
	ops_json_key(json, "step");
	if (!step || step->number < 0) {
		ops_json_null(json);
		return;
	}
	ops_json_open(json, '{');
	ops_json_member(json, "number", step->number);
	ops_json_member(json, "duration_ns", step->duration_ns);
	ops_json_member(json, "usual_ns", step->median_ns);
	ops_json_key(json, "goes_on");
	ops_json_bool(json, step->goes_on);
	ops_json_close(json, '}');
}

static const struct {
	int number;
	const char *name;
} signal_names[] = {
#define NAMED(name) {name, #name}
	NAMED(SIGSEGV), NAMED(SIGBUS), NAMED(SIGABRT), NAMED(SIGFPE), NAMED(SIGILL),
	NAMED(SIGQUIT), NAMED(SIGSYS), NAMED(SIGTERM), NAMED(SIGHUP),
#undef NAMED
};

static void facts_write_signal(const struct ops_watch_page *page, struct ops_json_writer *json)
{
	const char *name = "";

	for (size_t i = 0; i < sizeof(signal_names) / sizeof(signal_names[0]); i++)
		if (signal_names[i].number == page->signal)
			name = signal_names[i].name;
	ops_json_key(json, "signal");
	ops_json_open(json, '{');
	ops_json_member(json, "number", page->signal);
	ops_json_member_text(json, "name", name);
	ops_json_member(json, "code", page->signal_code);
	ops_json_member(json, "address", (int64_t)page->signal_address);
	facts_write_stack(&page->end_stack, page->main_tid, json);
	ops_json_close(json, '}');
}

static void facts_write_exit(const struct ops_watch_page *page, struct ops_json_writer *json)
{
	ops_json_key(json, "exit");
	ops_json_open(json, '{');
	ops_json_member(json, "status", page->exit_status);
	facts_write_stack(&page->end_stack, page->main_tid, json);
	ops_json_close(json, '}');
}

static void facts_write_over(const struct watch_facts *facts, struct ops_json_writer *json)
{
	if (!facts->over)
		return;
	ops_json_key(json, "over");
	ops_json_open(json, '{');
	ops_json_member(json, "duration_ns", facts->over_ns);
	ops_json_member(json, "ran_ns", facts->over->ran_ns);
	ops_json_member(json, "waited_ns", facts->over->waited_ns);
	ops_json_member(json, "collecting_ns", facts->collecting_ns);
	ops_json_member(json, "minor_faults", facts->over->minor_faults);
	ops_json_member(json, "major_faults", facts->over->major_faults);
	ops_json_close(json, '}');
}

static void facts_write_memory_facts(const struct watch_facts *facts, struct ops_json_writer *json)
{
	int64_t oom_kills = facts->memory->oom_kills - facts->page->oom_kills;

	ops_json_key(json, "process_memory");
	ops_json_open(json, '{');
	ops_json_member(json, "rss_bytes", facts->memory->rss_bytes);
	ops_json_member(json, "limit_bytes", facts->memory->limit_bytes);
	ops_json_member(json, "failures", facts->memory->failures);
	ops_json_member(json, "oom_kills", oom_kills > 0 ? oom_kills : 0); /* since the start of the watch */
	ops_json_close(json, '}');
}

void watch_facts_write(const struct watch_facts *facts, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};

	ops_json_open(&json, '{');
	ops_json_member(&json, "version", 1);
	ops_json_member_text(&json, "trigger", ops_trigger_name(facts->trigger));
	ops_json_member(&json, "time_ns", facts->time_ns);
	facts_write_process(facts->page, &json);
	ops_json_key(&json, "tid");
	if (facts->tid)
		ops_json_integer(&json, facts->tid);
	else
		ops_json_null(&json);
	facts_write_step(facts->step, &json);
	if (facts->quiet_ns)
		ops_json_member(&json, "quiet_ns", facts->quiet_ns);
	if (facts->trigger == OPS_TRIGGER_SIGNAL)
		facts_write_signal(facts->page, &json);
	if (facts->trigger == OPS_TRIGGER_EXIT)
		facts_write_exit(facts->page, &json);
	if (facts->members.size) {
		ops_buffer_append_text(out, ",");
		ops_buffer_append(out, facts->members.bytes, facts->members.size);
	}
	facts_write_over(facts, &json);
	if (facts->memory)
		facts_write_memory_facts(facts, &json);
	facts_write_samples(facts, &json);
	facts_write_threads(facts, &json);
	if (facts->native.size)
		ops_json_member_raw(&json, "native", facts->native);
	ops_json_key(&json, "suppressed");
	ops_json_open(&json, '{');
	for (int trigger = 0; facts->suppressed && trigger < OPS_TRIGGER_COUNT; trigger++)
		if (facts->suppressed[trigger])
			ops_json_member(&json, trigger_names[trigger], (int64_t)facts->suppressed[trigger]);
	ops_json_close(&json, '}');
	ops_json_close(&json, '}');
}
