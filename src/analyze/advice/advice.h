/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rules of advice share: the steps of a trace, the line of the program of each row, and the findings.
 *
 *     advice_model.c    places, sums over subtrees
 *     advice_steps.c    steps, and which are steady
 *     advice_capture.c  when CUDA graphs are captured
 *     advice_claim.c    claims of rules, and their attribution
 *     advice_frees.c    where the program releases memory
 *     advice_memory.c   the row of each memory record
 *     advice_interpreter.c when other threads run Python
 *     advice_loops.c    loops of the program
 *     advice_recurrent.c loops whose iterations depend on each other
 *     advice_idle.c     when a device was idle, and why
 *     advice_device.c   costs of rows of the host on a device
 *     advice_ranks.c    the summary of each rank of a run
 *     advice_machine.c  effects of the machine and the recording on times
 *     advice_waits.c    which rows waited for a processor
 *     advice_replay.c   gains by replay of the steps
 *     advice_stalls.c   which rows waited for a lock, the interpreter, a file or a time, as the kernel says
 *     advice_proof.c    what was measured with the fix of a finding
 *     advice_report.c   tallies by place, findings, their order
 *     advice_rules.c    the table of rules
 *     advice_run_rules.c      runs the rules, trace by trace, and then those of all ranks
 *     advice_write.c    JSON, text, Markdown
 *     advice_list.c     the rules themselves, for the manual
 *     rule_*.c          one rule each, its thresholds with their reasons
 *
 * Advice is made in phases. The model of a trace (struct advice) is built once and does not change while rules run:
 *
 *     select      a rule selects events, adds their costs by place, and claims the time that its advice saves
 *                 (struct advice_result)
 *     attribute   the runner settles whose time it is where several rules claim the same (advice_claim.c)
 *     report      the runner sorts, limits and describes the findings (advice_report.c)
 *
 * Costs are of the steady steps: those that take up to three times the median, that did not wait for a processor, and of steps
 * that make the same calls the faster half. Times are without the overhead of recording. If a device works, the time of an
 * event is what the device takes for it and is idle in it.
 *
 * No time is counted twice. Rules run in stages (enum advice_stage). All rules of a stage see the same state, so that the order
 * of the table does not matter; those of a later stage only have what earlier ones left, and leave alone what earlier ones
 * mainly explain (advice_is_explained).
 */
#ifndef OPS_ANALYZE_ADVICE_H
#define OPS_ANALYZE_ADVICE_H

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/advice.h>

#include "analyze/advice/advice_idle.h"
#include "analyze/advice/advice_ranks.h"
#include "analyze/flow/data_flow.h"
#include "analyze/views/views.h"
#include "base/arena.h"
#include "base/array.h"
#include "derive/blocking.h"
#include "derive/thread_states.h"
#include "derive/waits.h"
#include "base/buffer.h"
#include "base/map.h"

enum advice_severity { ADVICE_INFO, ADVICE_LOW, ADVICE_MEDIUM, ADVICE_HIGH };
enum advice_confidence { ADVICE_UNSURE, ADVICE_LIKELY, ADVICE_SURE };
/* Bound of a predicted gain. Removed work saves its time, and more if the rest of the step then finds its caches warm, which
 * a recording does not show. It is unknown how much of the idle time of a device or a link can be used. */
enum advice_bound { ADVICE_ABOUT, ADVICE_AT_LEAST, ADVICE_AT_MOST };

/* What a rule requires of a trace; without it the rule is not applied. */
enum advice_need {
	ADVICE_NEEDS_OPERATORS = 1,
	ADVICE_NEEDS_PYTHON = 2,  /* Python calls */
	ADVICE_NEEDS_SHAPES = 4,
	ADVICE_NEEDS_MEMORY = 8,
	ADVICE_NEEDS_DEVICE = 16, /* work on an accelerator */
	ADVICE_NEEDS_STEPS = 32,  /* two or more */
	ADVICE_NEEDS_STORAGES = 64,
	ADVICE_NEEDS_COMMUNICATION = 128,
	ADVICE_NEEDS_RANKS = 256, /* ranks that communicate, of a whole run */
};

/* When a rule runs. What is known for certain comes first; general rules have the rest. */
enum advice_stage {
	ADVICE_STAGE_CALLS,     /* calls known by name, with everything below them */
	ADVICE_STAGE_READS,     /* reads of values of tensors */
	ADVICE_STAGE_WAITS,     /* output, waits, the data loader */
	ADVICE_STAGE_MODE,      /* operators that should not run at all */
	ADVICE_STAGE_COPIES,    /* copies of tensors */
	ADVICE_STAGE_FORMULAS,  /* groups of operators with a fused one */
	ADVICE_STAGE_MEMORY,    /* allocation */
	ADVICE_STAGE_NUMBERS,   /* slow arithmetic */
	ADVICE_STAGE_FUNCTIONS, /* autograd functions in Python */
	ADVICE_STAGE_REPEATED,  /* work that was done before */
	ADVICE_STAGE_ROW_LOOPS,
	ADVICE_STAGE_LOOPS,
	ADVICE_STAGE_WIDTH,     /* the width of numbers */
	ADVICE_STAGE_GRAPH,     /* autograd's graph */
	ADVICE_STAGE_DEVICE,    /* the work of devices */
	ADVICE_STAGE_PYTHON,    /* the rest of the time in Python */
	ADVICE_STAGE_REST,      /* the rest */
	ADVICE_STAGES
};

struct advice;
struct advice_report;
struct advice_result;

/* A rule is a selector of events with their costs, and a text. */
struct advice_rule {
	const char *id;
	const char *title;
	const char *condition;   /* when it reports a finding, for the manual */
	const char *gain;        /* how the gain is computed, also a part of the evidence: "the time of the calls" */
	const char *explanation; /* why it costs time */
	const char *advice;      /* what to change, and how to check the result */
	const char *code;        /* an example in Python; NULL none */
	const char *link;
	const char *const *names; /* patterns of the names that it is about, for advice_names(); NULL none */
	uint32_t needs;
	enum advice_stage stage;
	enum advice_severity severity_max; /* ADVICE_INFO: any */
	enum advice_confidence confidence;
	enum advice_bound bound;
	bool general;            /* it is true of most programs, or names where time goes and no cause */
	/* Fills the result, which is empty. Returns false if memory is out. */
	bool (*find)(const struct advice *advice, struct advice_result *result);
	/* Likewise of a rule about a run. */
	bool (*find_in_ranks)(const struct advice_ranks *ranks, struct advice_result *result);
};

/* A line of the program. */
struct advice_site {
	uint32_t frame; /* row of a call of the function */
	uint32_t line;  /* 0 unknown */
};

struct advice_where {
	struct ops_string file; /* texts belong to the report; "" unknown */
	struct ops_string function;
	struct ops_string module;
	struct ops_string operator_name;
	uint32_t line;
	uint32_t trace; /* position of the trace among those added */
	uint32_t row;   /* the costliest event there; OPS_NONE unknown */
};

#define ADVICE_WHERE_MAX 5

/* Measured by `opstrobe prove`. */
struct advice_proof {
	bool is_known;
	struct ops_string fix;
	const char *results;       /* equal, close, changed or unknown */
	double gain_ms, gain_pct;  /* of a step; negative: the fix costs time */
	double lower_pct, upper_pct;
};

struct advice_finding {
	const struct advice_rule *rule;
	enum advice_severity severity;
	enum advice_confidence confidence;
	struct ops_string evidence;
	struct ops_string detail; /* start of the advice; "" none */
	double gain_ms;           /* a step */
	double gain_pct;
	struct advice_proof proof;
	bool always;              /* report whatever the gain, with this severity or a higher one */
	enum advice_severity severity_min;
	size_t where_count;
	struct advice_where where[ADVICE_WHERE_MAX];
};

struct advice_report {
	struct ops_arena texts;
	OPS_ARRAY(struct advice_finding) findings;
	uint64_t checked; /* bit i: rule i of the table applies */
	uint32_t has;     /* enum advice_need, of any trace */
	uint32_t traces;  /* number of traces before this one */
	uint32_t incomplete; /* number of them that end early */
	double step_ms;   /* the average steady step of the first trace, the base of percentages */
	double mean_ms;   /* average of all its steps */
	double waited_ratio; /* of their time they were ready to run, but other threads had the CPUs; NAN: not recorded */
	uint32_t steady, steps; /* numbers of its steady steps, and of all; 0 without steps */
	double gained_pct; /* of all findings about a trace, the maximum of all traces */
};

/* A loop of one call of a function. */
struct advice_loop {
	uint32_t parent;      /* the call */
	uint32_t iterations;
	uint32_t row;         /* the first at the most expensive line */
	uint32_t begin;       /* the first of all; an iteration starts with begin_count rows of its kind */
	uint32_t begin_count, least_count;
	int64_t row_ns;
	int64_t start_ns, end_ns;
	int64_t span_ns;      /* its time, without the overhead of recording */
	int64_t inside_ns;    /* of the calls in it; the rest is self time of its function */
	int64_t backward_ns;
	int64_t operators_ns, work_ns; /* of outermost operators: all, and beyond that of calls */
	int64_t dependent_ns;          /* of those that require results of an earlier iteration */
	uint32_t operators;
	uint32_t in_place;             /* of them: they change a tensor of the program */
	uint32_t modules;     /* called in it: if as many as iterations, these are layers of a model */
	bool recurrent;       /* each iteration requires the previous one */
	bool small;           /* the time of operators is mostly that of calls */
	bool slices;          /* they select rows */
	bool reads;           /* and read values of tensors */
};

/* The machine of the recording; 0 unknown. */
struct advice_machine {
	double processors;
	double page_ns;        /* the first use of a page of memory */
	int64_t threads;
	int64_t memory_limit_bytes, memory_peak_bytes;
	struct ops_step_wait *waits; /* by step */
	bool has_waits;
	double waited_ratio; /* of the steps that say, see view_waits_find() */
};

/* A part of the self time of a row of a steady step in which its thread neither ran nor was ready to. */
struct advice_stall {
	uint32_t row;
	uint32_t site;
	enum ops_thread_state state;
	int64_t ns;
	uint32_t holder;      /* row of another thread that ran meanwhile, of a lock the only one that did not wait; OPS_NONE */
	uint32_t holder_site; /* OPS_NONE */
};

/* One trace. */
struct advice {
	struct advice_report *report;
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_views *views;
	struct ops_views own_views; /* without nodes, if the trace keeps none */
	uint32_t has;          /* enum advice_need */
	struct advice_machine machine;
	int64_t *ns;           /* by row: total and self time, without waits and the overhead of recording; with a device,
	                          rows of the host have their costs there (advice_device.c) */
	int64_t *self_ns;
	int64_t *device_ns;    /* by row of the host: part of that in which a device worked, for it and its children */
	int64_t *lost_ns;      /* by row: its waits for a processor, subtracted from both */
	int64_t *stalled_ns;   /* by row: its stalls, and those below it */
	int64_t *stalled_self_ns; /* by row: those in its self time */
	OPS_ARRAY(struct advice_stall) stalls;
	bool sampled;          /* the trace says what threads waited for */
	uint32_t *step_of;     /* by row: index of the steady step that contains it, or its launch; OPS_NONE */
	uint32_t *site;        /* by row: index into `sites`, OPS_NONE unknown */
	uint32_t *caller;      /* by row: that of the Python function around it; OPS_NONE */
	uint8_t *zone;         /* by row: enum advice_zone */
	/* What earlier stages claimed. Only advice_attribute() changes it. */
	uint8_t *claimed;      /* by row: it and all its children are claimed */
	int64_t *claimed_ns;   /* by row: claimed time of it and its children */
	int64_t *row_claimed_ns; /* by row: by claims of this row */
	int64_t *self_claimed_ns; /* by row: part of that in its self time */
	int64_t *backward_claimed_ns; /* by row: claimed part of `backward_ns` */
	int64_t *backward_row_claimed_ns; /* by row: by claims of this row */
	int64_t *backward_ns;  /* by row: time of the backward pass of the operators in it */
	uint32_t *forward;     /* by row that the engine runs: its forward operator; OPS_NONE */
	int64_t *engine_ns;    /* by row that runs a backward pass: time of the engine for each node */
	int64_t *operator_ns;  /* by row: time of the outermost operators in it */
	uint32_t *own_site;    /* by string, of rows of a function */
	struct ops_map site_map;
	OPS_ARRAY(struct advice_site) sites;
	OPS_ARRAY(struct advice_loop) loops;
	uint32_t *loop_of;     /* by row: index into `loops`, OPS_NONE */
	struct ops_intervals captures; /* of CUDA graphs, outside all steps; merged */
	uint8_t *steady;       /* by step */
	size_t step_count;     /* steady ones */
	int64_t steps_ns;      /* their sum */
	struct data_flow *flow; /* NULL without shapes or memory */
	double fault_ns;       /* time of page faults for each byte allocated on the host; 0 unknown */
	struct advice_idle idle;
	bool real_steps;       /* the trace has steps */
	bool is_of_samples;    /* of stacks that are samples: no rule applies, for they look at calls and their times */
	bool incomplete;       /* the trace ends early: the missing part would change every share, so gains are unknown */
};

enum advice_zone {
	ADVICE_IN_LOADER = 1,
	ADVICE_IN_OPTIMIZER = 2,
	ADVICE_IN_BACKWARD = 4,
	ADVICE_IN_OPERATOR = 8, /* below an operator */
	ADVICE_IN_ROW_LOOP = 16, /* in a loop of small operators over rows */
	ADVICE_PARALLEL = 64,      /* on a thread other than those of the steps, which do not wait for it */
	ADVICE_WAITING = 128,    /* in a call that waits for a lock, another thread or process, or a time */
};

bool advice_init(struct advice *advice, const struct ops_trace *trace, struct advice_report *report);
void advice_release(struct advice *advice); /* also after init failed */
/* Parts of init. */
bool advice_find_loops(struct advice *advice);
bool advice_find_recurrent(struct advice *advice);
/* Gives loops at a line the same verdict, by loop: yes if one of `among` of them has it. In single steps the machine may be busy.
 * Returns false if memory is out. */
bool advice_loops_agree(const struct advice *advice, uint8_t *verdicts, int among);
bool advice_read_machine(struct advice *advice);
/* Borrowed from the metadata of the trace. */
struct advice_proof advice_find_proof(const struct advice *advice, const char *rule);
void advice_correct_times(struct advice *advice);
bool advice_take_out_waits(struct advice *advice);
bool advice_find_captures(struct advice *advice);
bool advice_find_stalls(struct advice *advice);
bool advice_find_steps(struct advice *advice);
bool advice_charge_device(struct advice *advice);
/* Adds the times during which steady steps run and capture no graph, merged, to an empty list. */
bool advice_steady_spans(const struct advice *advice, struct ops_intervals *ret_spans);
/* What all steady steps take together if each takes the median: one in which another program had the processor does not
 * decide. The times by step are sorted. */
double advice_typical_ns(const struct advice *advice, int64_t *by_step);
/* The last step that began until a time, or the first; `at` is that of an earlier time. */
size_t advice_next_step(const struct advice *advice, size_t at, int64_t ns);
void advice_find_faults(struct advice *advice);
enum advice_replayed {
	ADVICE_WITHOUT, /* these rows do not run */
	ADVICE_OVERLAPPED, /* nothing but the end of the step waits for them */
};
/* What all steady steps save together in a replay. Leaves `*gain_ns` alone if a replay is too far from the measurement. Returns
 * false if memory is out. */
bool advice_replay_gain(const struct advice *advice, enum advice_replayed how, const uint32_t *rows, size_t count, double *gain_ns);

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static inline int64_t advice_ns(const struct advice *advice, uint32_t row)
{
	return advice->ns[row];
}

/* Time of a row on the host, whatever a device does meanwhile. */
static inline int64_t advice_host_ns(const struct advice *advice, uint32_t row)
{
	return advice->views->device_events.count ? ops_difference(advice->events->end_ns[row], advice->events->start_ns[row])
	                                         : advice->ns[row];
}

/* Likewise, without its children. */
static inline int64_t advice_host_self_ns(const struct advice *advice, uint32_t row)
{
	return advice->views->device_events.count ? advice->events->self_ns[row] : advice->self_ns[row];
}

/* Cost of a time range of the host: all of it, or the idle time of a device in it. */
int64_t advice_cost_ns(const struct advice *advice, int64_t start_ns, int64_t end_ns);
/* Share of the time of a row that is its work; 1 without a device. Cheaper work leaves the rest. */
double advice_work_share(const struct advice *advice, uint32_t row);
/* Overhead of recording a row, in addition to its time. */
int64_t advice_recording_ns(const struct advice *advice, uint32_t row);

/* Time of a node in the backward pass, with that of the engine for it. */
static inline int64_t advice_node_ns(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return parent == OPS_NONE ? advice->ns[row] : ops_sum(advice->ns[row], advice->engine_ns[parent]);
}

static inline struct ops_string advice_name(const struct advice *advice, uint32_t row)
{
	return ops_trace_string(advice->trace, advice->events->name[row]);
}

/* Whether there are more threads than processors: then threads of the program wait for each other. */
static inline bool advice_is_oversubscribed(const struct advice *advice)
{
	return advice->machine.processors > 0 && (double)advice->machine.threads > advice->machine.processors + 0.5;
}

static inline bool advice_is_operator(const struct advice *advice, uint32_t row)
{
	return advice->events->kind[row] == OPS_EVENT_CPU_OP;
}

static inline bool advice_is_device_work(const struct advice *advice, uint32_t row)
{
	uint8_t part = advice->views->parts[row];

	return part == VIEW_KERNEL || part == VIEW_COPY || part == VIEW_FILL;
}

/* The call that launched work on a device, or the work itself if the call is unknown. */
static inline uint32_t advice_launch_row(const struct advice *advice, const struct view_device_event *event)
{
	return event->launch == OPS_NONE ? event->row : advice->views->launches.items[event->launch].row;
}

/* Whether the row takes time of a steady step: it is on its thread, or on one that it waits for. */
static inline bool advice_counts(const struct advice *advice, uint32_t row)
{
	return advice->step_of[row] != OPS_NONE && !(advice->zone[row] & ADVICE_PARALLEL);
}

/* For each string of the trace the 1-based place of the first pattern that it matches, or 0. NULL ends the list. "x*" is a
 * beginning, "*x" an end, "*x*" what a name contains. Freed with ops_free; NULL when memory is out. */
uint8_t *advice_names(const struct advice *advice, const char *const *names);
/* Whether a text matches one of such patterns. */
bool advice_text_like(struct ops_string text, const char *const *patterns);
/* Elements of the first tensor among a row's inputs, and its element type; -1 unknown. */
int64_t advice_elements(const struct advice *advice, uint32_t row, uint8_t *ret_dtype);
/* The `i`th input. Returns false if it does not exist. */
bool advice_input(const struct advice *advice, uint32_t row, size_t i, struct ops_input *ret_input);
int64_t advice_input_elements(const struct ops_input *input);
size_t advice_dtype_bytes(uint8_t dtype);
/* Time of a row, and of its backward pass, that earlier stages did not claim. */
int64_t advice_left_ns(const struct advice *advice, uint32_t row);
int64_t advice_backward_left_ns(const struct advice *advice, uint32_t row);
/* Whether claims of earlier stages explain a span of time, so that a general rule has nothing to add: a fix changes the rest
 * as well. A tenth is enough: a loop may have ten calls of equal cost, one of which is the cause. */
static inline bool advice_is_explained(int64_t claimed_ns, int64_t span_ns)
{
	return claimed_ns >= span_ns / 10;
}
/* Time during which both the thread of the steps and another thread are in Python functions: one of them waits for the GIL.
 * Returns false if memory is out. */
bool advice_find_shared_ns(const struct advice *advice, int64_t *ret_ns);
/* Whether torch.compile compiled the region of an operator: it is not Python code of the program. */
bool advice_is_region(struct ops_string name);
/* Place of the self time of a function of the program: its line with the most calls, or its first. OPS_NONE for other rows. */
uint32_t advice_own_site(const struct advice *advice, uint32_t row);
/* The index of the place of a line in the function of a row, which is added if it is new. Only while the model is made. */
bool advice_add_site(struct advice *advice, uint32_t frame, uint32_t line, uint32_t *ret_site);
/* " Meanwhile another thread is in save (train.py:7).", for waits of a kind of lock; "" if none was mostly there. */
void advice_describe_holder(const struct advice *advice, enum ops_thread_state state, char *text, size_t size);
/* The row directly below the function of the program that contains work of the engine: the call of backward(). */
uint32_t advice_calling_row(const struct advice *advice, uint32_t row);
/* The innermost row around each memory record; OPS_NONE. Freed with ops_free; NULL when memory is out. */
uint32_t *advice_memory_rows(const struct advice *advice);

/* Time of a function between two calls in which it released large tensors on the host. */
struct advice_free {
	uint32_t row; /* of the function */
	int64_t start_ns;
	int64_t ns;
};

struct advice_frees {
	size_t count, capacity;
	struct advice_free *items;
};

/* Marks the steps in which operators leave memory that grows. */
bool advice_find_kept(const struct advice *advice, uint8_t *kept);

bool advice_find_frees(const struct advice *advice, int64_t bytes_min, struct advice_frees *ret_frees);

/* --- tallies -------------------------------------------------------------------------------------------------------- */

struct advice_cost {
	int64_t ns;
	uint64_t count;
	uint32_t row; /* the costliest */
	uint32_t site;
	int64_t row_ns;
};

/* By place; the last is for rows without one. */
struct advice_tally {
	struct advice_cost *costs;
	size_t count;
	int64_t ns;
	uint64_t events;
};

bool advice_tally_init(struct advice_tally *tally, const struct advice *advice);
void advice_tally_release(struct advice_tally *tally);
void advice_tally_add(struct advice_tally *tally, const struct advice *advice, uint32_t row, int64_t ns);
void advice_tally_add_at(struct advice_tally *tally, uint32_t site, uint32_t row, int64_t ns);

/* --- results -------------------------------------------------------------------------------------------------------- */

/* Time of a row that the advice of a rule saves. */
struct advice_claim {
	int64_t ns;
	int64_t backward_ns; /* in its backward pass */
	uint32_t row;
	bool whole;          /* it and all below is explained */
	bool self;           /* of the own time of a function, in no row below */
	bool rest;           /* whatever other claims of the rule leave of it */
};

/* What a rule found. The runner initializes it, and releases all of it. */
struct advice_result {
	const struct advice *advice; /* NULL: of a run */
	struct advice_report *report;
	const struct advice_rule *rule;
	uint8_t *which;              /* by string: place of the name in those of the rule, from 1; 0 none */
	struct advice_tally tally;   /* costs by place; its sum is the gain unless advice_report_gain() has another */
	OPS_ARRAY(struct advice_claim) claims;
	uint8_t *claimed;            /* by row: claimed by this rule; by advice_add_outermost() also what is below */
	OPS_ARRAY(struct advice_finding) findings;
	/* To be set before advice_report_costs(): */
	enum advice_confidence confidence; /* at first that of the rule */
	const char *detail;          /* what the advice begins with; NULL none */
	bool always;                 /* report whatever the gain, with at least the severity */
	enum advice_severity severity;
	double explained_ns;         /* of a run: exposed communication that this explains, over all ranks */
	bool failed;                 /* memory is out */
};

/* Claims a row, its children and their backward pass. Returns their unclaimed time. */
int64_t advice_claim(struct advice_result *result, uint32_t row);
/* Claims a row and its children, except for other claims of the rule there. */
void advice_claim_rest(struct advice_result *result, uint32_t row);
/* Claims a share of the unclaimed time of a row and its backward pass. Returns the time. */
int64_t advice_claim_share(struct advice_result *result, uint32_t row, double share);
/* Claims own time of a function. */
void advice_claim_self(struct advice_result *result, uint32_t row, int64_t ns);

/* How the claims of a result are spread over the steady steps. */
struct advice_spread {
	size_t steps; /* with claims */
	double usual; /* share of the claimed time if no step has many times more of it than the median one */
};
bool advice_find_spread(const struct advice_result *result, struct advice_spread *ret_spread); /* false if memory is out */

/* Whether an earlier stage claimed the row or one around it, or this rule the row. */
static inline bool advice_is_claimed(const struct advice_result *result, uint32_t row)
{
	return result->claimed[row] || result->advice->claimed[row];
}

/* Adds the cost of a row at its place, or at a given one. */
void advice_add(struct advice_result *result, uint32_t row, int64_t ns);
void advice_add_at(struct advice_result *result, uint32_t site, uint32_t row, int64_t ns);
/* Also at the lines of the calls that lead there in the same step; of two with the same cost the inner one is first. */
void advice_add_calls(struct advice_result *result, uint32_t row, int64_t ns);
/* Claims a share of a row and adds it. */
static inline void advice_add_share(struct advice_result *result, uint32_t row, double share)
{
	advice_add(result, row, advice_claim_share(result, row, share));
}
/* Called for each row in order: adds and claims those that match and are in no other that does, if they are in steady steps
 * but not in `zones_left_out` nor claimed. Returns whether it did. */
bool advice_add_outermost(struct advice_result *result, uint32_t row, bool matches, uint8_t zones_left_out);
/* Does so for the rows with one of the rule's names. */
void advice_add_names(struct advice_result *result, uint8_t zones_left_out);

/* Reports a finding with its evidence, in the format of printf. The places are those of the tally, and its sum is the gain, of
 * all steady steps together. Return false if memory is out. */
__attribute__((format(printf, 2, 3))) bool advice_report_costs(struct advice_result *result, const char *format, ...);
__attribute__((format(printf, 3, 4))) bool advice_report_gain(struct advice_result *result, double gain_ns,
                                                            const char *format, ...);
/* Likewise with the places of another tally. */
__attribute__((format(printf, 4, 5))) bool advice_report_at(struct advice_result *result, const struct advice_tally *places,
                                                        double gain_ns, const char *format, ...);
/* Likewise of a run: the finding has gain, confidence and number of places. */
__attribute__((format(printf, 4, 5))) bool advice_report_of_run(struct advice_result *result, struct advice_finding finding,
                                                            const struct advice_where *where, const char *format, ...);

bool advice_result_init(struct advice_result *result, const struct advice_rule *rule, const struct advice *advice,
                        struct advice_report *report, uint8_t *claimed);
void advice_result_release(struct advice_result *result);
/* Attributes claims to their rules, the results with the largest gain first: what is claimed already reduces the gain of
 * the others. Sorts the results. */
void advice_attribute(struct advice *advice, struct advice_result *results, size_t count);
/* Adds findings to the report that matter, the largest gain first. Together they gain no more than `left_pct` of a step; what is
 * left is returned. Sorts them. */
bool advice_report_add(struct advice_report *report, struct advice_finding *findings, size_t count, double *left_pct);

/* Describes the place of a row. The texts belong to the trace, or to the ranks. */
struct advice_where advice_describe(const struct advice *advice, uint32_t site, uint32_t row);
struct advice_where advice_place(const struct advice_ranks *ranks, uint32_t place);

/* The complete time, and what rounding adds. */
#define ADVICE_SHARE_MAX (1 + 1e-6)

/* Milliseconds a step, for evidence. */
static inline double advice_step_ms(const struct advice *advice, double ns)
{
	assert(ns >= 0);
	return advice->step_count ? ns / 1e6 / (double)advice->step_count : 0;
}

/* Share of the steady steps. A rule with more than all of them counts time twice. */
static inline double advice_percent(const struct advice *advice, double ns)
{
	double share = advice->steps_ns > 0 ? ns / (double)advice->steps_ns : 0;

	assert(share >= 0 && share <= ADVICE_SHARE_MAX);
	return share < 1 ? 100 * share : 100;
}

static inline double advice_per_step(const struct advice *advice, uint64_t count)
{
	return advice->step_count ? (double)count / (double)advice->step_count : 0;
}

/* A number with few digits: "0.5", "12.3", "1590". */
struct advice_number {
	char text[32];
};
struct advice_number advice_number(double value);

/* "12.345 ms (6.7 %)" a step. */
struct advice_number advice_spent(const struct advice *advice, double ns);

static inline struct advice_number advice_average(const struct advice *advice, uint64_t count)
{
	return advice_number(advice_per_step(advice, count));
}

/* The costs that a result adds up, and the number of its events in a step. */
static inline struct advice_number advice_cost(const struct advice_result *result)
{
	return advice_spent(result->advice, (double)result->tally.ns);
}

static inline struct advice_number advice_events(const struct advice_result *result)
{
	return advice_average(result->advice, result->tally.events);
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

extern const struct advice_rule *const advice_rules[];
extern const size_t advice_rule_count;

/* The model of a trace, with the findings of all rules in the report. Returns false if memory is out. */
bool advice_run_rules(struct advice *advice, const struct advice_rule *const *rules, size_t count);

void advice_report_sort(struct advice_report *report);
/* Completes the report of an adviser, which keeps it: instead of ops_adviser_finish(). */
enum ops_code advice_finish(struct ops_adviser *adviser, const struct advice_report **ret_report, struct ops_error *error);
void advice_write_json(const struct advice_report *report, struct ops_buffer *out);
/* The member "top_finding": the first finding, null without one; `brief` for a line of a list. */
void advice_write_top(const struct advice_report *report, bool brief, struct ops_json_writer *json);
/* The members that a list of traces shows of one; false if memory is out. (advice_about.c) */
bool advice_write_about(const struct ops_rank *rank, struct ops_json_writer *json);
void advice_write_csv(const struct advice_report *report, struct ops_buffer *out);
void advice_write_text(const struct advice_report *report, bool markdown, struct ops_buffer *out);
void advice_write_brief(const struct advice_report *report, struct ops_buffer *out);
/* What text looks like: on a terminal wrapped, in Markdown a paragraph a line and without what would be markup. */
struct advice_style {
	struct ops_buffer *out;
	bool markdown;
};
/* Texts of rules have code in backticks. Texts about a trace contain its names, which may be any bytes. */
enum advice_speaker { ADVICE_OF_RULE, ADVICE_OF_TRACE };
/* A paragraph. */
void advice_append_words(const struct advice_style *style, enum advice_speaker speaker, const char *text, size_t size);
void advice_append_code(const struct advice_style *style, const char *code);
const char *advice_severity_name(enum advice_severity severity);
const char *advice_confidence_name(enum advice_confidence confidence);
const char *advice_bound_name(enum advice_bound bound);

#endif
