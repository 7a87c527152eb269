/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread waits for or does, and a sentence about the cause of an incident; see incident.h.
 */
#include "analyze/incident/incident.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>

#include "analyze/format.h"
#include "base/alloc.h"
#include "base/text.h"
#include "derive/program.h"

/* An activity that takes at least this share of the time is the cause. */
#define CAUSE_SHARE 0.5
/* Reading a page from a disk takes about 100 us. */
#define FAULT_NS 100000
#define NEAR_LIMIT 0.9

static const struct {
	const char *name;
	const char *text;
} doings[] = {
	[INCIDENT_RUNS] = {"computing", "running"},
	[INCIDENT_SLEEPS] = {"sleep", "sleeping"},
	[INCIDENT_LOCK] = {"lock", "waiting for a lock or another thread"},
	[INCIDENT_GIL] = {"gil", "waiting for the interpreter's lock (GIL)"},
	[INCIDENT_LOADER] = {"data_loader", "waiting for the workers of a data loader"},
	[INCIDENT_LOADS] = {"data_loading", "loading data"},
	[INCIDENT_COLLECTIVE] = {"collective", "waiting in a collective operation"},
	[INCIDENT_CHILD] = {"child_process", "waiting for a child process"},
	[INCIDENT_FILE] = {"file", "reading or writing a file"},
	[INCIDENT_SOCKET] = {"socket", "waiting for a socket or pipe"},
	[INCIDENT_IO] = {"io", "waiting for a file, a pipe or the network"},
	[INCIDENT_DISK] = {"disk", "waiting for a disk"},
	[INCIDENT_COLLECTS] = {"garbage_collection", "garbage collection"},
	[INCIDENT_UNKNOWN] = {"unknown", "at an unknown place"},
};

const char *incident_doing_name(enum incident_doing doing)
{
	return doings[doing].name;
}

const char *incident_doing_text(enum incident_doing doing)
{
	return doings[doing].text;
}

/* --- stacks --------------------------------------------------------------------------------------------------------- */

/* Code without a file, as with `python -c`, belongs to the program. */
static bool is_program(const struct incident_frame *frame)
{
	return ops_string_is(frame->file, "<string>") || ops_string_is(frame->file, "<stdin>") ||
	       !ops_file_is_library(frame->file);
}

static size_t program_frame(const struct incident_stack *stack)
{
	size_t i = 0;

	while (i < stack->frame_count && !is_program(&stack->frames[i]))
		i++;
	return i;
}

const struct incident_frame *incident_stack_place(const struct incident_stack *stack)
{
	size_t i = program_frame(stack);

	if (!stack->frame_count)
		return NULL;
	return &stack->frames[i < stack->frame_count ? i : 0];
}

static bool is_in(const struct incident_frame *frame, const char *file)
{
	return ops_string_ends(frame->file, file);
}

/* What the library frames inside the program's innermost frame reveal. INCIDENT_UNKNOWN: nothing. */
static enum incident_doing doing_by_frames(const struct incident_stack *stack)
{
	size_t place = program_frame(stack);
	enum incident_doing doing = INCIDENT_UNKNOWN;

	for (size_t i = 0; i < stack->frame_count; i++) {
		const struct incident_frame *frame = &stack->frames[i];

		if (is_in(frame, "torch/utils/data/dataloader.py"))
			return i < place && ops_string_starts(frame->function, "_MultiProcessing") ? INCIDENT_LOADER : INCIDENT_LOADS;
		if (i >= place)
			continue;
		if (is_in(frame, "torch/distributed/distributed_c10d.py") || is_in(frame, "torch/distributed/c10d_logger.py"))
			return INCIDENT_COLLECTIVE;
		if (is_in(frame, "/subprocess.py") || is_in(frame, "/multiprocessing/popen_fork.py"))
			return INCIDENT_CHILD;
		if (is_in(frame, "/threading.py") || is_in(frame, "/queue.py") || is_in(frame, "/concurrent/futures/_base.py"))
			doing = INCIDENT_LOCK;
	}
	return doing;
}

static enum incident_doing doing_by_system_call(int64_t number)
{
	switch (number) {
	case SYS_clock_nanosleep:
	case SYS_nanosleep:
		return INCIDENT_SLEEPS;
	case SYS_futex:
#ifdef SYS_futex_waitv
	case SYS_futex_waitv:
#endif
	case SYS_flock:
	case SYS_fcntl:
		return INCIDENT_LOCK;
	case SYS_wait4:
	case SYS_waitid:
		return INCIDENT_CHILD;
	case SYS_read:
	case SYS_pread64:
	case SYS_readv:
	case SYS_write:
	case SYS_pwrite64:
	case SYS_writev:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_openat:
		return INCIDENT_FILE;
#ifdef SYS_poll
	case SYS_poll:
	case SYS_select:
	case SYS_epoll_wait:
#endif
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_epoll_pwait:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return INCIDENT_SOCKET;
	default:
		return INCIDENT_UNKNOWN;
	}
}

size_t incident_stack_launchers(const struct incident_stack *stack)
{
	size_t count = stack->frame_count;

	while (count > 1 && ops_is_launcher(stack->frames[count - 1].file, stack->frames[count - 1].function))
		count--;
	return stack->frame_count - count;
}

enum incident_doing incident_stack_doing(const struct incident_stack *stack)
{
	enum incident_doing doing = doing_by_frames(stack);

	if (doing == INCIDENT_LOADS && doing_by_system_call(stack->system_call) == INCIDENT_SLEEPS)
		return INCIDENT_LOADS;
	if (doing != INCIDENT_UNKNOWN)
		return doing;
	if (stack->state == 'R')
		return INCIDENT_RUNS;
	doing = doing_by_system_call(stack->system_call);
	if (doing == INCIDENT_UNKNOWN || doing == INCIDENT_FILE)
		return stack->state == 'D' ? INCIDENT_DISK : doing;
	return doing;
}

/* --- sentences -------------------------------------------------------------------------------------------------------- */

void incident_place_append(struct ops_buffer *out, const struct incident_frame *place)
{
	ops_buffer_append(out, place->file.bytes, place->file.size);
	if (place->line)
		ops_buffer_printf(out, ":%" PRId64, place->line);
}

static void append_duration(struct ops_buffer *out, double ns)
{
	char text[OPS_FORMAT_ROOM];

	ops_format_duration(text, ns);
	ops_buffer_append_text(out, text);
}

static void append_at(struct ops_buffer *out, const struct incident_frame *place)
{
	if (!place->file.size)
		return;
	ops_buffer_append_text(out, " at ");
	incident_place_append(out, place);
	if (place->function.size) {
		ops_buffer_append_text(out, " in ");
		ops_buffer_append(out, place->function.bytes, place->function.size);
	}
}

static void set_place(struct incident_cause *cause, const struct incident_stack *stack)
{
	const struct incident_frame *place = incident_stack_place(stack);

	if (place)
		cause->place = *place;
}

/* Begins the text with a capital letter: "Sleeping at train.py:12 in step". */
static void cause_begin(struct incident_cause *cause, const char *text)
{
	char first = text[0];

	if (first >= 'a' && first <= 'z')
		first = (char)(first - 'a' + 'A');
	ops_buffer_append(&cause->text, &first, 1);
	ops_buffer_append_text(&cause->text, text + 1);
	append_at(&cause->text, &cause->place);
}

static void cause_set_doing(struct incident_cause *cause, enum incident_doing doing, const struct incident_stack *stack)
{
	cause->doing = doing;
	cause->kind = incident_doing_name(doing);
	set_place(cause, stack);
}

/* Returns the name of the collective in the program: the outermost function of torch.distributed. */
static struct ops_string called_collective(const struct incident_stack *stack)
{
	struct ops_string name = {0};

	for (size_t i = 0; i < program_frame(stack); i++)
		if (is_in(&stack->frames[i], "torch/distributed/distributed_c10d.py"))
			name = stack->frames[i].function;
	return name;
}

static const struct incident_stack *thread_find(const struct incident_facts *facts, int64_t tid)
{
	for (size_t i = 0; i < facts->threads.count; i++)
		if (facts->threads.items[i].tid == tid)
			return &facts->threads.items[i];
	return NULL;
}

/* --- slow steps ------------------------------------------------------------------------------------------------------- */

static bool is_same_place(const struct incident_frame *a, const struct incident_frame *b)
{
	return a && b && a->line == b->line && ops_string_equals(a->file, b->file);
}

/* Returns the most frequent combination of activity and line among the samples. */
static const struct incident_stack *samples_find(const struct incident_facts *facts, double *ret_share)
{
	const struct incident_stack *best = NULL;
	int64_t most = 0;

	for (size_t i = 0; i < facts->samples.count; i++) {
		const struct incident_stack *stack = &facts->samples.items[i];
		int64_t count = 0;

		for (size_t j = 0; j < facts->samples.count; j++) {
			const struct incident_stack *other = &facts->samples.items[j];

			if (incident_stack_doing(other) == incident_stack_doing(stack) &&
			    is_same_place(incident_stack_place(other), incident_stack_place(stack)))
				count += other->count;
		}
		if (count > most) {
			most = count;
			best = stack;
		}
	}
	*ret_share = facts->sample_count ? fmin(1, (double)most / (double)facts->sample_count) : 0;
	return best;
}

static void append_share(struct incident_cause *cause, double share)
{
	if (share > 0)
		ops_buffer_printf(&cause->text, ", %s of the time that the step took too long", ops_figure_of_percent(100 * share).text);
}

/* Appends what took longer than in other steps according to the trace. Used if samples are missing or only say that the
 * thread runs. */
static void append_outlier(struct incident_cause *cause, const struct ops_views *views, const struct view_outlier *outlier)
{
	bool any = false;

	for (size_t i = 0; i < outlier->cause_count && !outlier->causes[i].is_count; i++) {
		ops_buffer_append_text(&cause->text, any ? ", " : " More than in other steps: ");
		ops_buffer_printf(&cause->text, "%s +", outlier->causes[i].title);
		append_duration(&cause->text, outlier->causes[i].value - outlier->causes[i].typical);
		any = true;
	}
	for (size_t i = 0; i < outlier->excess_count && i < 2; i++) {
		struct ops_string name = ops_trace_string(views->trace, outlier->excesses[i].name);

		ops_buffer_append_text(&cause->text, any ? ", " : " More than in other steps: ");
		ops_buffer_append(&cause->text, name.bytes, name.size);
		ops_buffer_append_text(&cause->text, " +");
		append_duration(&cause->text, outlier->excesses[i].self_ns - outlier->excesses[i].typical_self_ns);
		any = true;
	}
	ops_buffer_append_text(&cause->text, any ? "." : "");
}

/* Returns what the largest item in the trace says that the thread did; INCIDENT_UNKNOWN: nothing in particular. */
static enum incident_doing doing_by_trace(const struct view_outlier *outlier)
{
	static const struct {
		const char *name;
		enum incident_doing doing;
	} known[] = {{"garbage_collection", INCIDENT_COLLECTS}, {"dataloader", INCIDENT_LOADER}, {"communication", INCIDENT_COLLECTIVE}};

	for (size_t i = 0; outlier && outlier->cause_count && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, outlier->causes[0].name))
			return known[i].doing;
	return INCIDENT_UNKNOWN;
}

/* Explains the step without samples, by the largest item in the trace. */
static void explain_by_trace(struct incident_cause *cause, const struct view_outlier *outlier)
{
	enum incident_doing doing = doing_by_trace(outlier);

	cause->doing = INCIDENT_UNKNOWN;
	cause->kind = incident_doing_name(doing);
	if (outlier && outlier->cause_count) {
		if (doing == INCIDENT_UNKNOWN)
			cause->kind = outlier->causes[0].name;
		cause_begin(cause, outlier->causes[0].title);
	} else {
		ops_buffer_append_text(&cause->text, "Unknown: nothing was seen while the step took too long");
	}
}

static void explain_by_samples(struct incident_cause *cause, const struct incident_sampled *sampled,
                               const struct incident_sampled_place *place)
{
	cause->doing = place->doing;
	cause->kind = incident_doing_name(place->doing);
	cause->place = place->place;
	cause_begin(cause, incident_doing_text(place->doing));
	ops_buffer_printf(&cause->text, ": %s of the sampled time of the step, %s of that of other steps",
	                  ops_figure_of_percent(100 * incident_sampled_share(place->ns, sampled->total_ns)).text,
	                  ops_figure_of_percent(100 * incident_sampled_share(place->usual_ns, sampled->usual_total_ns)).text);
}

/* Appends where the threads other than `stack`'s are, since one of them might hold what it waits for. */
static void append_others(struct incident_cause *cause, const struct incident_facts *facts, const struct incident_stack *stack)
{
	for (size_t i = 0, listed = 0; i < facts->threads.count && listed < 2; i++) {
		const struct incident_stack *other = &facts->threads.items[i];
		const struct incident_frame *place = incident_stack_place(other);

		if (other->tid == stack->tid || !place || !is_program(place))
			continue;
		ops_buffer_printf(&cause->text, " Thread %" PRId64 " is %s", other->tid,
		                  incident_doing_text(incident_stack_doing(other)));
		append_at(&cause->text, place);
		ops_buffer_append_text(&cause->text, ".");
		listed++;
	}
}

static void explain_slow(struct incident_cause *cause, const struct incident_facts *facts, const struct ops_views *views,
                         const struct view_outlier *outlier, const struct incident_sampled *sampled)
{
	const struct incident_sampled_place *place = incident_sampled_cause(sampled);
	double share = 0, over_ns = fmax(1, (double)facts->over_ns);
	const struct incident_stack *stack = samples_find(facts, &share);
	double collecting = (double)facts->collecting_ns / over_ns, waited = (double)facts->waited_ns / over_ns;
	/* Of the time in which it did not wait for a processor, which takes longer for everything. */
	double faulted = (double)facts->major_faults * FAULT_NS / fmax(1, over_ns - (double)facts->waited_ns);

	if (stack)
		cause_set_doing(cause, incident_stack_doing(stack), stack);
	if (facts->has_over && collecting >= CAUSE_SHARE) {
		cause->doing = INCIDENT_COLLECTS;
		cause->kind = incident_doing_name(INCIDENT_COLLECTS);
		cause_begin(cause, incident_doing_text(INCIDENT_COLLECTS));
		append_share(cause, fmin(1, collecting));
	} else if (facts->has_over && waited >= CAUSE_SHARE) {
		cause->kind = "waited_for_cpu";
		cause_begin(cause, "waiting for a CPU, which other threads and processes had,");
		append_share(cause, fmin(1, waited));
	} else if (facts->has_over && faulted >= CAUSE_SHARE) {
		cause->kind = "page_faults";
		cause_begin(cause, "reading memory pages from a disk");
		ops_buffer_printf(&cause->text, ", %" PRId64 " page faults", facts->major_faults);
	} else if (stack) {
		cause_begin(cause, incident_doing_text(cause->doing));
		append_share(cause, share);
	} else if (place && doing_by_trace(outlier) == INCIDENT_UNKNOWN) {
		explain_by_samples(cause, sampled, place);
	} else {
		explain_by_trace(cause, outlier);
	}
	ops_buffer_append_text(&cause->text, ".");
	if (stack && cause->doing == INCIDENT_LOCK)
		append_others(cause, facts, stack);
	if (outlier)
		append_outlier(cause, views, outlier);
}

/* --- hangs -------------------------------------------------------------------------------------------------------------- */

/* Returns the thread that holds the GIL in C code while others wait for it. */
static const struct incident_stack *gil_holder_of(const struct incident_facts *facts, const struct incident_stack *stack)
{
	for (size_t i = 0; i < facts->threads.count; i++)
		if (facts->threads.items[i].has_gil && facts->threads.items[i].tid != stack->tid)
			return &facts->threads.items[i];
	return NULL;
}

/* Appends the innermost C function of a thread whose name is known. */
static void append_native(struct ops_buffer *out, const struct incident_stack *stack)
{
	for (size_t i = 0; i < stack->native_count; i++) {
		const struct incident_frame *frame = &stack->native[i];

		if (!frame->function.size)
			continue;
		ops_buffer_printf(out, ", which is in the C function %.*s", (int)frame->function.size, frame->function.bytes);
		if (frame->file.size) {
			ops_buffer_append_text(out, " of ");
			incident_place_append(out, frame);
		}
		return;
	}
}

static void explain_hang(struct incident_cause *cause, const struct incident_facts *facts)
{
	const struct incident_stack *stack = thread_find(facts, facts->tid), *holder;
	struct ops_string collective;

	if (!stack) {
		cause->kind = incident_doing_name(INCIDENT_UNKNOWN);
		ops_buffer_append_text(&cause->text, "Unknown: the stack of the program could not be read.");
		return;
	}
	cause_set_doing(cause, incident_stack_doing(stack), stack);
	holder = cause->doing == INCIDENT_LOCK ? gil_holder_of(facts, stack) : NULL;
	if (holder) {
		cause_set_doing(cause, INCIDENT_GIL, holder);
		ops_buffer_printf(&cause->text, "Thread %" PRId64 " holds the interpreter's lock (GIL) in C code called", holder->tid);
		append_at(&cause->text, &cause->place);
		append_native(&cause->text, holder);
		ops_buffer_append_text(&cause->text, ".");
		return;
	}
	if (stack->has_gil && cause->doing != INCIDENT_RUNS) {
		cause->doing = INCIDENT_GIL;
		cause->kind = incident_doing_name(INCIDENT_GIL);
		cause_begin(cause, incident_doing_text(incident_stack_doing(stack)));
		ops_buffer_append_text(&cause->text, ", in C code that holds the interpreter's lock (GIL)");
		append_native(&cause->text, stack);
	} else {
		cause_begin(cause, incident_doing_text(cause->doing));
	}
	if (cause->doing == INCIDENT_RUNS)
		append_native(&cause->text, stack);
	collective = called_collective(stack);
	if (cause->doing == INCIDENT_COLLECTIVE && collective.size)
		ops_buffer_printf(&cause->text, ": %.*s", (int)collective.size, collective.bytes);
	if (cause->doing == INCIDENT_COLLECTIVE && facts->rank >= 0)
		ops_buffer_printf(&cause->text, " on rank %" PRId64 " of %" PRId64 ", for another rank", facts->rank, facts->world_size);
	ops_buffer_append_text(&cause->text, ".");
	if (cause->doing == INCIDENT_LOCK)
		append_others(cause, facts, stack);
}

/* --- ends --------------------------------------------------------------------------------------------------------------- */

static bool is_near_limit(const struct incident_facts *facts)
{
	return facts->limit_bytes > 0 && (double)facts->rss_bytes >= NEAR_LIMIT * (double)facts->limit_bytes;
}

static void explain_kill(struct incident_cause *cause, const struct incident_facts *facts)
{
	const struct incident_stack *stack = thread_find(facts, facts->tid);
	char rss[OPS_FORMAT_ROOM], limit[OPS_FORMAT_ROOM];
	bool is_sure = facts->oom_kills > 0, is_oom = is_sure || is_near_limit(facts);

	cause->kind = is_oom ? "oom_kill" : "killed";
	if (stack)
		set_place(cause, stack);
	ops_format_bytes(rss, facts->rss_bytes);
	ops_format_bytes(limit, facts->limit_bytes);
	if (is_oom)
		ops_buffer_printf(&cause->text, "Out of memory: %skilled by the kernel, at %s of %s.", is_sure ? "" : "probably ", rss, limit);
	else
		ops_buffer_append_text(&cause->text, "Killed from outside: by SIGKILL, or with the machine or container.");
	if (!cause->place.file.size)
		return;
	ops_buffer_append_text(&cause->text, " Last seen");
	append_at(&cause->text, &cause->place);
	ops_buffer_printf(&cause->text, ", %s.", incident_doing_text(incident_stack_doing(stack)));
}

static void explain_end(struct incident_cause *cause, const struct incident_facts *facts)
{
	set_place(cause, &facts->end);
	if (ops_string_is(facts->trigger, "signal")) {
		cause->kind = "signal";
		ops_buffer_printf(&cause->text, "%.*s", (int)facts->signal_name.size, facts->signal_name.bytes);
		append_at(&cause->text, &cause->place);
		if (facts->signal_address || ops_string_is(facts->signal_name, "SIGSEGV"))
			ops_buffer_printf(&cause->text, ", at address 0x%" PRIx64, (uint64_t)facts->signal_address);
	} else if (ops_string_is(facts->trigger, "exit")) {
		cause->kind = "exit";
		ops_buffer_printf(&cause->text, "os._exit(%" PRId64 ")", facts->exit_status);
		append_at(&cause->text, &cause->place);
	} else {
		cause->kind = ops_string_is(facts->trigger, "oom") ? "out_of_memory" : "exception";
		ops_buffer_append(&cause->text, facts->exception_type.bytes, facts->exception_type.size);
		append_at(&cause->text, &cause->place);
		if (facts->exception_message.size)
			ops_buffer_printf(&cause->text, ": %.*s", (int)facts->exception_message.size, facts->exception_message.bytes);
	}
	ops_buffer_append_text(&cause->text, ".");
}

static void explain_other(struct incident_cause *cause, const struct incident_facts *facts)
{
	const struct incident_stack *stack = thread_find(facts, facts->tid);
	char rss[OPS_FORMAT_ROOM], limit[OPS_FORMAT_ROOM];

	if (stack)
		cause_set_doing(cause, incident_stack_doing(stack), stack);
	ops_format_bytes(rss, facts->rss_bytes);
	ops_format_bytes(limit, facts->limit_bytes);
	if (ops_string_is(facts->trigger, "memory")) {
		cause->kind = "memory";
		ops_buffer_printf(&cause->text, facts->limit_bytes ? "The process holds %s of %s. " : "The process holds %s. ", rss, limit);
	} else if (!stack) {
		cause->kind = incident_doing_name(INCIDENT_UNKNOWN);
	}
	if (stack) {
		cause_begin(cause, incident_doing_text(cause->doing));
		ops_buffer_append_text(&cause->text, ".");
	}
}

/* --- titles --------------------------------------------------------------------------------------------------------------- */

static void cause_title(struct incident_cause *cause, const struct incident_facts *facts)
{
	struct ops_buffer *title = &cause->title;
	char text[OPS_FORMAT_ROOM], usual[OPS_FORMAT_ROOM];
	bool in_step = facts->has_step;

	if (ops_string_is(facts->trigger, "slow_step")) {
		ops_format_duration(text, (double)facts->step_ns);
		ops_format_duration(usual, (double)facts->usual_ns);
		ops_buffer_printf(title, "step %" PRId64 " took %s, usually %s", facts->step, text, usual);
		in_step = false;
	} else if (ops_string_is(facts->trigger, "hang")) {
		ops_format_duration(text, (double)facts->quiet_ns);
		ops_buffer_printf(title, "no progress for %s", text);
	} else if (ops_string_is(facts->trigger, "signal")) {
		ops_buffer_printf(title, "killed by %.*s", (int)facts->signal_name.size, facts->signal_name.bytes);
	} else if (ops_string_is(facts->trigger, "exit")) {
		ops_buffer_printf(title, "ended by os._exit(%" PRId64 ")", facts->exit_status);
	} else if (ops_string_is(facts->trigger, "killed")) {
		ops_buffer_append_text(title, is_near_limit(facts) ? "killed, probably out of memory" : "killed");
	} else if (facts->exception_type.size) {
		ops_buffer_printf(title, "%.*s", (int)facts->exception_type.size, facts->exception_type.bytes);
	} else if (ops_string_is(facts->trigger, "memory")) {
		ops_format_bytes(text, facts->rss_bytes);
		ops_buffer_printf(title, "memory reached %s", text);
	} else {
		ops_buffer_append_text(title, "requested");
	}
	if (in_step)
		ops_buffer_printf(title, " in step %" PRId64, facts->step);
}

bool incident_cause_find(const struct incident_facts *facts, const struct ops_views *views, const struct view_outlier *outlier,
                         const struct incident_sampled *sampled, struct incident_cause *ret_cause)
{
	*ret_cause = (struct incident_cause){.doing = INCIDENT_UNKNOWN, .kind = "unknown"};
	if (ops_string_is(facts->trigger, "slow_step"))
		explain_slow(ret_cause, facts, views, outlier, sampled);
	else if (ops_string_is(facts->trigger, "hang"))
		explain_hang(ret_cause, facts);
	else if (ops_string_is(facts->trigger, "killed"))
		explain_kill(ret_cause, facts);
	else if (ops_string_is(facts->trigger, "signal") || ops_string_is(facts->trigger, "exit") || facts->exception_type.size)
		explain_end(ret_cause, facts);
	else
		explain_other(ret_cause, facts);
	cause_title(ret_cause, facts);
	return !ret_cause->text.failed && !ret_cause->title.failed;
}
