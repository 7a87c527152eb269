/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rules share: the steps of a trace, the program line of each row, and the findings.
 *
 *     advice_model.c    places, sums over subtrees
 *     advice_steps.c    steps, and which are steady
 *     advice_capture.c  when CUDA graphs are captured
 *     advice_claim.c    claims of rules, and their attribution
 *     advice_interval.c intervals of predicted gains
 *     advice_frees.c    where the program releases memory
 *     advice_memory.c   the row of each memory record
 *     advice_parts.c    which part of a storage an operator reads
 *     advice_python.c   what functions of the program spend their time on
 *     advice_pointers.c when Python reads tensors without operators
 *     advice_interpreter.c when other threads run Python
 *     advice_loops.c    loops of the program
 *     advice_recurrent.c loops whose iterations depend on each other
 *     advice_idle.c     when a device was idle, and why
 *     advice_walk.c     which rows run at a time
 *     advice_activity.c when the program computes, and when it communicates
 *     advice_device.c   costs of rows of the host on a device
 *     advice_ranks.c    the summary of each rank of a run
 *     advice_machine.c  effects of the machine and the recording on times
 *     advice_waits.c    which rows waited for a processor
 *     advice_replay.c   gains by replay of the steps
 *     advice_stalls.c   which rows waited for a lock, the interpreter, a file or a time, from thread states
 *     advice_vain.c     operators whose results do not matter
 *     advice_unusual.c  what is unusual about the tensors of an operator
 *     advice_need.c     the part of each result that is needed
 *     advice_beats.c    the steps that are compared with each other
 *     advice_proof.c    measured gains of the fixes of findings
 *     advice_rest.c     the time that no finding explains, by line; advice_rest_lines.c describes the lines
 *     advice_report.c   tallies by place, findings, their order
 *     advice_rules.c    the table of rules
 *     advice_ask.c      runs the rules, trace by trace, and then those of all ranks
 *     advice_write.c    JSON, text, Markdown
 *     advice_list.c     the list of rules, for the manual
 *     rule_*.c          one rule each, with its thresholds and their reasons
 *
 * Advice is made in phases. The model of a trace (struct advice) is built once and does not change while rules run:
 *
 *     select      a rule selects events, adds their costs by place, and claims the time that its advice saves
 *                 (struct advice_result)
 *     attribute   the runner decides which rule gets time that several rules claim (advice_claim.c)
 *     report      the runner sorts, limits and describes the findings (advice_report.c)
 *
 * Costs cover the steady steps only. A steady step takes up to three times the median of its kind, or recurs and makes more calls, and
 * did not wait for a processor.
 * If the steps make the same calls, only the faster half of them counts. Times exclude the overhead of recording. If a
 * device works, the time of an event is the device time of its work and the time in which the device is idle during it.
 *
 * No time is counted twice. Rules run in stages (enum advice_stage). All rules of a stage see the same state, so that
 * the order of the table does not matter; those of a later stage only get the time that earlier ones left, and skip
 * events that earlier ones mainly explain (advice_is_explained).
 */
#ifndef OPS_ANALYZE_ADVICE_H
#define OPS_ANALYZE_ADVICE_H

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/internal/format.h>

#include "analyze/advice/advice_idle.h"
#include "analyze/advice/advice_ranks.h"
#include "analyze/flow/data_content.h"
#include "analyze/flow/data_flow.h"
#include "analyze/views/view_step_stats.h"
#include "analyze/views/views.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/text.h"
#include "derive/blocking.h"
#include "derive/flops.h"
#include "derive/memory_events.h"
#include "derive/operators.h"
#include "derive/places.h"
#include "derive/python_samples.h"
#include "derive/source.h"
#include "derive/thread_states.h"
#include "derive/waits.h"
#include "base/buffer.h"
#include "base/map.h"

enum advice_severity { ADVICE_INFO, ADVICE_LOW, ADVICE_MEDIUM, ADVICE_HIGH };
enum advice_confidence { ADVICE_UNSURE, ADVICE_LIKELY, ADVICE_SURE };
/* Kind of a predicted gain. Removing work saves its time, and more if the rest of the step then finds its caches warm,
 * which a recording does not show. How much of the idle time of a device or a link can be used is unknown. */
enum advice_bound { ADVICE_ABOUT, ADVICE_AT_LEAST, ADVICE_AT_MOST };

/* What a rule requires of a trace. A rule whose requirements are not met is not applied. */
enum advice_need {
	ADVICE_NEEDS_OPERATORS = 1,
	ADVICE_NEEDS_PYTHON = 2,  /* Python calls */
	ADVICE_NEEDS_SHAPES = 4,
	ADVICE_NEEDS_MEMORY = 8,
	ADVICE_NEEDS_DEVICE = 16, /* work on an accelerator */
	ADVICE_NEEDS_STEPS = 32,  /* two or more */
	ADVICE_NEEDS_STORAGES = 64,
	ADVICE_NEEDS_COMMUNICATION = 128,
	ADVICE_NEEDS_RANKS = 256, /* communicating ranks of a complete run */
	ADVICE_NEEDS_ROOF = 512,  /* roof of the CPU or the device */
};

/* When a rule runs. Rules that know a cause for certain come first; general rules get the rest. */
enum advice_stage {
	ADVICE_STAGE_CALLS,     /* calls known by name, with everything below them */
	ADVICE_STAGE_READS,     /* reads of values of tensors */
	ADVICE_STAGE_WAITS,     /* output, waits, and the data loader */
	ADVICE_STAGE_MODE,      /* operators that should not run at all */
	ADVICE_STAGE_COPIES,    /* copies of tensors */
	ADVICE_STAGE_FORMULAS,  /* groups of operators that have a fused equivalent */
	ADVICE_STAGE_REPEATED,  /* work that repeats earlier work */
	ADVICE_STAGE_MEMORY,    /* allocation */
	ADVICE_STAGE_NUMBERS,   /* slow arithmetic */
	ADVICE_STAGE_FUNCTIONS, /* autograd functions in Python */
	ADVICE_STAGE_ROW_LOOPS,
	ADVICE_STAGE_LOOPS,
	ADVICE_STAGE_WIDTH,     /* types that are wider than necessary, and other slow operators */
	ADVICE_STAGE_GRAPH,     /* autograd's graph */
	ADVICE_STAGE_DEVICE,    /* device work */
	ADVICE_STAGE_PYTHON,    /* the rest of the time in Python */
	ADVICE_STAGE_REST,      /* everything else */
	ADVICE_STAGES
};

struct advice;
struct advice_report;
struct advice_result;

/* A rule selects events with their costs, and has texts. */
struct advice_rule {
	const char *id;
	const char *title;
	const char *condition;   /* when it reports a finding, for the manual */
	const char *gain;        /* how the gain is computed, also a part of the evidence: "the time of the calls" */
	const char *explanation; /* why it costs time */
	const char *advice;      /* what to change, and how to check the result */
	const char *code;        /* an example in Python; NULL: none */
	const char *link;
	const char *const *names; /* patterns of the names that it applies to, for advice_names(); NULL: none */
	uint32_t needs;
	enum advice_stage stage;
	enum advice_severity severity_max; /* ADVICE_INFO: no limit */
	enum advice_confidence confidence;
	enum advice_bound bound;
	bool usual;              /* a default of torch that most programs have */
	bool general;            /* applies to most programs, or shows where time goes but not why */
	/* Fills the result, which is empty. Returns false if out of memory. */
	bool (*find)(const struct advice *advice, struct advice_result *result);
	/* The same for a rule about a run. */
	bool (*find_in_ranks)(const struct advice_ranks *ranks, struct advice_result *result);
};

/* A line of the program, or of a library. */
struct advice_site {
	uint32_t frame; /* row of a call of the function, or of an operator with a call stack that begins in it; OPS_NONE: `stack` has it */
	uint32_t line;  /* 0: unknown */
	uint32_t stack; /* a sampled stack that begins in it */
};

struct advice_sites {
	struct advice_site *items;
	size_t count, capacity;
	struct ops_map numbers; /* by function and line */
};

/* A line of a library. */
struct advice_through {
	struct ops_string file; /* texts belong to the report */
	struct ops_string function;
	uint32_t line;
};

#define ADVICE_THROUGH_MAX 3

struct advice_where {
	struct ops_string file; /* texts belong to the report; "": unknown */
	struct ops_string function;
	struct ops_string module;
	struct ops_string operator_name;
	uint32_t line;
	uint32_t trace; /* index of the trace among those added */
	uint32_t row;   /* the event with the highest cost there; OPS_NONE: unknown */
	/* If most of the cost arises in libraries that the line calls: their lines, the highest cost first. */
	struct advice_through through[ADVICE_THROUGH_MAX];
	size_t through_count;
};

#define ADVICE_WHERE_MAX 5

/* Measured by `opstrobe prove`. */
struct advice_proof {
	bool is_known;
	struct ops_string fix;
	const char *results;       /* equal, close, changed or unknown */
	double gain_ms, gain_pct;  /* per step; negative: the fix costs time */
	double lower_pct, upper_pct;
};

struct advice_finding {
	const struct advice_rule *rule;
	enum advice_severity severity;
	enum advice_confidence confidence;
	enum advice_bound bound; /* of the gain */
	struct ops_string evidence; /* what was observed, and how the gain is computed */
	struct ops_string facts;    /* the part of the evidence that was observed */
	struct ops_string detail; /* beginning of the advice; "": none */
	double gain_ms;           /* per step */
	double gain_pct;
	double noise;             /* standard error of the gain between steps, relative to it; 0: unknown */
	double lower_pct, upper_pct; /* the interval of the gain; set by advice_set_interval() */
	struct advice_proof proof;
	bool general;             /* as that of the rule, unless the evidence names a cause */
	bool always;              /* report regardless of the gain, with at least this severity */
	enum advice_severity severity_min;
	size_t where_count;
	struct advice_where where[ADVICE_WHERE_MAX];
};

/* What happens during a time. With a device, time of the host counts as far as the device is idle. */
enum advice_rest_kind {
	REST_DEVICE,        /* a device works */
	REST_OPERATORS,
	REST_PYTHON,        /* functions, and what else a thread does between operators */
	REST_WAITING,       /* a call waits for a lock, another thread or process, a file, or a time */
	REST_COMMUNICATION, /* only collectives run */
	REST_IDLE,          /* the device is idle */
	REST_OUTSIDE,       /* no recorded event of the step runs */
	REST_KINDS
};

#define REST_PARTS_MAX 3

/* An operator or a module. */
struct advice_rest_part {
	struct ops_string name;
	double pct;
};

/* A line; without Python calls a module, an operator or a kernel. The texts belong to the report. */
struct advice_rest_line {
	struct advice_where where; /* `row`: the operator with the most time */
	double ns;                 /* per step */
	double pct;                /* of the step */
	double kinds[REST_KINDS];  /* parts of `pct` */
	struct advice_rest_part operators[REST_PARTS_MAX]; /* those with the most of it; without a name: none */
	struct advice_rest_part modules[REST_PARTS_MAX];   /* the same, if several have it */
	double calls;              /* operators that it calls, per step, without their backward passes */
	double roof_pct;           /* lower bound of the time of its operators by that time; NAN: unknown */
	struct ops_string waits_for; /* state of the thread during most of its waits; "": unknown */
	struct ops_string tensor;    /* largest input of the longest operator; "": unknown */
	struct ops_string unusual;   /* what is unusual about its tensors, in sentences; "": nothing known */
	double through_pct[ADVICE_THROUGH_MAX]; /* parts of `pct`, of `where.through` */
};

/* Sums over the traces of a report, and after advice_rest_finish() their average. */
struct advice_rest {
	double ns;            /* per step */
	double pct;           /* of the step */
	double explained_pct; /* the rest of the step */
	uint32_t traces;
	bool has_lines;       /* some time is at lines of the program */
	OPS_ARRAY(struct advice_rest_line) lines; /* most time first */
};

#define ADVICE_RULES_MAX 128

/* Parts of the recorded time of steady steps that their length excludes. */
enum advice_excluded {
	ADVICE_EXCLUDED_WAITS, /* waiting for a CPU that other programs have */
	ADVICE_EXCLUDED_IMPORTS,
	ADVICE_EXCLUDED_RECORDING, /* overhead of recording */
	ADVICE_EXCLUDED_PARTS
};

struct advice_report {
	struct ops_arena texts;
	OPS_ARRAY(struct advice_finding) findings;
	uint8_t checked[ADVICE_RULES_MAX]; /* by rule of the table: it applies */
	uint32_t has;     /* enum advice_need, met by any trace */
	uint32_t traces;  /* number of traces before this one */
	uint32_t incomplete; /* number of them that end early */
	uint32_t of_samples; /* number of traces to which no rule applies, because they consist of samples */
	double step_ms;   /* the average steady step of the first trace, the base of percentages */
	double mean_ms;   /* mean of its steps, without a first one that is apart */
	int64_t excluded_ns[ADVICE_EXCLUDED_PARTS]; /* sums over its `steady` steps */
	struct view_waited waited; /* of the trace in which steps waited for the largest share of their time */
	double outside_ratio; /* see view_outside_ratio() */
	uint32_t steady, steps; /* numbers of its steady steps and of all steps; 0 without steps */
	double gained_pct; /* sum over all findings about a trace; the maximum over traces */
	struct advice_rest rest;
};

/* A loop within one call of a function. */
struct advice_loop {
	uint32_t parent;      /* the call of the function */
	uint32_t iterations;
	uint32_t inner;       /* the loop in it that takes most of its time, or itself */
	uint32_t row;         /* first row at the line with the highest cost */
	uint32_t begin;       /* first row of all; see advice_iteration() */
	uint32_t begin_count, least_count;
	int64_t row_ns;
	int64_t start_ns, end_ns;
	int64_t span_ns;      /* its time without the overhead of recording */
	int64_t inside_ns;    /* time of the calls in it; the rest is self time of its function */
	int64_t backward_ns;
	int64_t apart_ns;     /* time of calls without operators that take long, such as copy.deepcopy */
	int64_t operators_ns, work_ns; /* time of the outermost operators: total, and beyond the overhead of their calls */
	int64_t typical_ns;            /* total, without what other work on the machine adds to single operators */
	int64_t dependent_ns;          /* time of operators that require results of an earlier iteration */
	uint32_t header, outer_header; /* sites of the statement around the line of the row, and of the one around that; OPS_NONE: unknown */
	uint32_t chain;                /* number of iterations that depend on each other, one through another; 0: most operators depend on none */
	uint32_t operators;            /* number of the outermost operators */
	uint32_t all_operators;        /* with those inside them */
	uint32_t in_place;             /* number of the outermost ones that change a tensor of the program */
	uint32_t modules;     /* modules called in it; if there are as many as iterations, these are layers of a model */
	bool recurrent;       /* each iteration requires the previous one */
	bool differentiates;  /* its iterations run backward passes of what they computed */
	bool small;           /* the time of its operators is mostly call overhead */
	bool slices;          /* its operators select rows */
	bool reads;           /* and read values of tensors */
	bool chooses, looks_up; /* its operators choose indices, such as tokens; and look up rows by indices */
	bool opened;          /* its iterations do much, so that the loops in them count in its place */
};

/* The machine of the recording; 0: unknown. */
struct advice_machine {
	double processors;
	double page_ns;        /* time of the first use of a page of memory */
	int64_t threads;
	int64_t memory_limit_bytes, memory_peak_bytes;
	struct ops_step_wait *waits; /* by step */
	bool has_waits;
	struct view_waited waited; /* of the steps with such data */
};

/* A part of the self time of a row in a steady step, during which its thread was neither running nor ready to run. */
struct advice_stall {
	uint32_t row;
	uint32_t site;
	enum ops_thread_state state;
	int64_t ns;
	uint32_t holder;      /* row of another thread that ran meanwhile; for a lock, of the only thread that did not
	                       * wait. OPS_NONE: none */
	uint32_t holder_site; /* OPS_NONE: none */
};

struct advice_pointer_read {
	int64_t time_ns;
	int64_t bytes; /* at most, by the duration of the call; INT64_MAX: unknown */
};

/* One trace. */
struct advice {
	struct advice_report *report;
	const struct ops_trace *trace;
	const struct ops_events *events;
	const struct ops_views *views;
	struct ops_views own_views; /* without nodes if the trace does not keep any */
	uint32_t has;          /* enum advice_need */
	OPS_ARRAY(uint32_t) named; /* the first row of each name; a trace also has other strings */
	struct advice_machine machine;
	int64_t *ns;           /* by row: total and self time, without waits and the overhead of recording. With a
	                        * device, the costs of host rows on it (advice_device.c) */
	int64_t *self_ns;
	int64_t *device_ns;    /* by host row: part of `ns` in which a device worked for it and its children */
	int64_t *lost_ns;      /* by row: time of its waits for a processor and of imports, subtracted from both */
	int64_t *stalled_ns;   /* by row: time of its stalls and of those below it */
	int64_t *stalled_self_ns; /* by row: time of the stalls in its self time */
	OPS_ARRAY(struct advice_stall) stalls;
	bool sampled;          /* the trace has thread states */
	uint32_t *step_of;     /* by row: index of the steady step that contains it, or its launch; OPS_NONE: none */
	uint32_t *site;        /* by row: index into `sites`; OPS_NONE: unknown */
	uint32_t *through;     /* by row: index into `library_sites`, of the innermost line of a library other than torch that `site` calls; OPS_NONE: none */
	uint32_t *caller;      /* by row: row of the Python function around it; OPS_NONE: none */
	uint8_t *zone;         /* by row: enum advice_zone */
	/* Sampled stacks, if no calls were recorded: of each the row in which it was taken, and the line of the program. */
	struct ops_python_samples samples;
	uint32_t *sample_row, *sample_site;
	/* Time claimed by earlier stages. Only advice_attribute() changes it. */
	uint8_t *claimed;      /* bits by row: it and all its children are claimed */
	int64_t *claimed_ns;   /* by row: claimed time of it and its children */
	int64_t *row_claimed_ns; /* by row: time claimed through this row */
	int64_t *self_claimed_ns; /* by row: part of that within its self time */
	int64_t *backward_claimed_ns; /* by row: claimed part of `backward_ns` */
	int64_t *backward_row_claimed_ns; /* by row: time claimed through this row */
	int64_t *backward_ns;  /* by row: time of the backward pass of the operators in it */
	uint32_t *forward;     /* by row run by the engine: its forward operator; OPS_NONE: none */
	int64_t *engine_ns;    /* by row that runs a backward pass: time of the engine per node */
	int64_t *operator_ns;  /* by row: time of the outermost operators in it */
	uint32_t *own_site;    /* by string, for rows of a function */
	uint32_t *search_site; /* by string: where a function of the program searches with `in`; OPS_NONE: unknown */
	struct ops_source source;
	struct advice_sites sites, library_sites;
	OPS_ARRAY(struct advice_loop) loops;
	uint32_t *loop_of;     /* by row: index into `loops`; OPS_NONE: none */
	double flops_per_ns;   /* the highest of an outermost operator with many operations; 0: unknown */
	struct ops_intervals captures; /* of CUDA graphs, and warm-ups of servers, over all steps; merged */
	uint8_t *steady;       /* by step */
	size_t step_count;     /* number of steady steps */
	int64_t steps_ns;      /* their sum */
	int64_t excluded_ns[ADVICE_EXCLUDED_PARTS]; /* what was subtracted from that */
	int64_t contended_ns;  /* part of that in which the step waits for a processor that other threads or child processes of the
	                        * program have; in no row */
	struct ops_places places;
	const uint16_t *operators; /* by string: rows of derive/operators.h */
	struct ops_demand *demands; /* by row: ops_demands_within */
	struct data_flow *flow; /* NULL without shapes or memory */
	struct data_content *contents; /* by value of the flow; NULL without it */
	OPS_ARRAY(struct advice_pointer_read) pointer_reads; /* calls by which Python reads a tensor without an operator, in order of time;
	                                                      * empty without a flow */
	uint8_t *step_tracks;  /* by track: a thread of the steps */
	bool inside_loader;    /* only what makes batches counts; see advice_loader.c */
	double fault_ns;       /* time of page faults per byte allocated on the host; 0: unknown */
	struct advice_idle idle;
	bool real_steps;       /* the trace has steps */
	bool is_of_samples;    /* stacks are samples: no rule applies, since rules use calls and their times */
	bool has_no_times;     /* no rule applies: an execution trace has no times */
	bool incomplete;       /* the trace ends early: gains are unknown, since the missing part would change every
	                        * share */
};

enum advice_zone {
	ADVICE_IN_LOADER = 1,
	ADVICE_IN_OPTIMIZER = 2,
	ADVICE_IN_BACKWARD = 4,
	ADVICE_IN_OPERATOR = 8, /* below an operator */
	ADVICE_IN_ROW_LOOP = 16, /* in a loop of small operators over rows */
	ADVICE_IN_IMPORT = 32,   /* in an import, which only the first use of a module waits for */
	ADVICE_PARALLEL = 64,      /* on a thread other than those of the steps, which do not wait for it */
	ADVICE_WAITING = 128,    /* in a call that waits for a lock, another thread or process, or for time to pass */
};

bool advice_init(struct advice *advice, const struct ops_trace *trace, struct advice_report *report, bool inside_loader);
void advice_release(struct advice *advice); /* also to be called after init failed */
/* Parts of init: */
bool advice_find_loops(struct advice *advice);
bool advice_find_recurrent(struct advice *advice);
/* Returns true if a row is of the kind that starts an iteration of a loop. An iteration may have several such rows. */
bool advice_may_begin(const struct advice *advice, const struct advice_loop *loop, uint32_t row);
/* Returns the number of an iteration, from 1, by the number of such rows up to its last row. */
static inline uint32_t advice_iteration(const struct advice_loop *loop, uint32_t begun)
{
	uint32_t rows = loop->begin_count / loop->least_count;

	return (begun + rows - 1) / rows;
}
/* Returns true for a loop that mainly changes separate tensors in place, such as parameters. */
static inline bool advice_loop_updates(const struct advice_loop *loop)
{
	return !loop->slices && loop->in_place * 2 >= loop->operators;
}
/* Returns by row whether the row is a call of a function with such a loop, freed with ops_free. Returns NULL if out of memory. */
uint8_t *advice_updating_functions(const struct advice *advice);
/* Gives all loops at a line the same verdict: true if one in `among` of them has it, since the machine may be busy in
 * single steps. Verdicts are by loop. Returns false if out of memory. */
bool advice_loops_agree(const struct advice *advice, uint8_t *verdicts, int among);
bool advice_read_machine(struct advice *advice);
/* The texts are borrowed from the metadata of the trace. */
struct advice_proof advice_find_proof(const struct advice *advice, const char *rule);
void advice_correct_times(struct advice *advice);
bool advice_find_lost_waits(struct advice *advice);
bool advice_subtract_lost(struct advice *advice);
bool advice_find_captures(struct advice *advice);
bool advice_find_stalls(struct advice *advice);
bool advice_find_steps(struct advice *advice);
/* Returns the thread of a worker of the data loader in another process, the one with most time in operators and Python functions; OPS_NONE:
 * none is recorded. */
uint32_t advice_loader_track(const struct advice *advice);
/* Leaves in the steps only the rows of that thread, or those in a loader of the steps' thread. Returns false if out of memory. */
bool advice_keep_loader(struct advice *advice);
/* Adds to the finding about the loader, among those from `first` on, what takes most of the loader's time. Returns false if out of
 * memory. */
bool advice_explain_loader(struct advice_report *report, size_t first, const struct ops_trace *trace);
bool advice_charge_device(struct advice *advice);
/* Adds the times during which steady steps run and no graph is captured to an empty list, merged. */
bool advice_steady_spans(const struct advice *advice, struct ops_intervals *ret_spans);
/* Returns the sum over all steady steps if each took the median, so that a step in which another program had the
 * processor does not matter. Sorts the times by step. */
double advice_typical_ns(const struct advice *advice, int64_t *by_step);
/* Returns the last step that began at or before a time, or the first step. `at` is the result for an earlier time. */
size_t advice_next_step(const struct advice *advice, size_t at, int64_t ns);
void advice_find_faults(struct advice *advice);
enum advice_replayed {
	ADVICE_WITHOUT, /* these rows do not run */
	ADVICE_OVERLAPPED, /* only the end of the step waits for them */
};
/* Computes by replay what all steady steps together save. Leaves `*gain_ns` unchanged if the replay differs too much
 * from the measurement. Returns false if out of memory. */
bool advice_replay_gain(const struct advice *advice, enum advice_replayed how, const uint32_t *rows, size_t count, double *gain_ns);

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static inline int64_t advice_ns(const struct advice *advice, uint32_t row)
{
	return advice->ns[row];
}

/* Time of a row on the host, regardless of what a device does meanwhile. */
static inline int64_t advice_host_ns(const struct advice *advice, uint32_t row)
{
	return advice->views->device_events.count ? ops_difference(advice->events->end_ns[row], advice->events->start_ns[row])
	                                         : advice->ns[row];
}

/* The same without its children. */
static inline int64_t advice_host_self_ns(const struct advice *advice, uint32_t row)
{
	return advice->views->device_events.count ? advice->events->self_ns[row] : advice->self_ns[row];
}

/* Cost of a time range of the host: all of it, or the idle time of a device in it. */
int64_t advice_cost_ns(const struct advice *advice, int64_t start_ns, int64_t end_ns);
/* Share of the time of a row that is its work; 1 without a device. Cheaper work leaves the rest. */
double advice_work_share(const struct advice *advice, uint32_t row);
/* Overhead of recording a row. It is not part of the row's time. */
int64_t advice_recording_ns(const struct advice *advice, uint32_t row);

/* Time of a node in the backward pass, including that of the engine for it. */
static inline int64_t advice_node_ns(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return parent == OPS_NONE ? advice->ns[row] : ops_sum(advice->ns[row], advice->engine_ns[parent]);
}

/* Returns the forward operator of a row in the backward pass, which is known for the engine's range around it; OPS_NONE: none. */
static inline uint32_t advice_forward_of(const struct advice *advice, uint32_t row)
{
	for (; row != OPS_NONE; row = advice->events->parent[row])
		if (advice->forward[row] != OPS_NONE)
			return advice->forward[row];
	return OPS_NONE;
}

/* Returns the row of an operator in the table of operators. */
static inline const struct operator_row *advice_operator(const struct advice *advice, uint32_t row)
{
	return &operator_rows[advice->operators[advice->events->name[row]]];
}

static inline enum operator_kind advice_kind(const struct advice *advice, uint32_t row)
{
	return advice_operator(advice, row)->kind;
}

static inline struct ops_string advice_name(const struct advice *advice, uint32_t row)
{
	return ops_trace_string(advice->trace, advice->events->name[row]);
}

/* Returns true for a row of the engine for a node of the backward pass. */
static inline bool advice_is_node(const struct advice *advice, uint32_t row)
{
	return ops_string_starts(advice_name(advice, row), "autograd::engine::");
}

/* Returns true if there are more threads than processors. Threads of the program then wait for each other. */
static inline bool advice_is_oversubscribed(const struct advice *advice)
{
	return advice->machine.processors > 0 && (double)advice->machine.threads > advice->machine.processors + 0.5;
}

/* Returns the rule about the waits for processors that the program itself has. */
const struct advice_rule *advice_contention_rule(const struct advice *advice);

/* Returns how long the steps that count wait for workers of loaders, without the longest wait, in which these start. */
int64_t advice_waits_for_workers_ns(const struct advice *advice);

/* Operators on fewer elements are not divided among threads (at::internal::GRAIN_SIZE). */
#define ADVICE_GRAIN_ELEMENTS 32768

/* Returns true if operators divided among threads waited for threads to which other programs left no processor. */
static inline bool advice_threads_starve(const struct advice *advice)
{
	return advice->machine.threads > 1 && advice->machine.waited.ratio > VIEW_WAITED_MUCH;
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

/* Returns the call that launched work on a device, or the work itself if the call is unknown. */
static inline uint32_t advice_launch_row(const struct advice *advice, const struct view_device_event *event)
{
	return event->launch == OPS_NONE ? event->row : advice->views->launches.items[event->launch].row;
}

/* Returns true if the row takes time of a steady step: it is on the step's thread, or on one that the step waits
 * for. */
static inline bool advice_counts(const struct advice *advice, uint32_t row)
{
	return advice->step_of[row] != OPS_NONE && !(advice->zone[row] & ADVICE_PARALLEL);
}

/* Returns true if the trace has a backward pass or a step of an optimizer. */
bool advice_trains(const struct advice *advice);

/* Returns, for each name of events, the 1-based index of the first pattern that it matches, or 0; 0 for other strings of the trace. NULL ends the
 * list of patterns. "x*" matches a prefix, "*x" a suffix, "*x*" a part, "*x*y" a part
 * and a suffix after it. Freed with ops_free. Returns NULL if out of memory. */
uint8_t *advice_names(const struct advice *advice, const char *const *names);
/* Returns, for each string of the trace, whether it is an elementwise operator by the table of operators, or one of these further
 * names. Freed with ops_free. Returns NULL if out of memory. */
uint8_t *advice_elementwise_names(const struct advice *advice, const char *const *further);
/* Returns, for each name of events, whether it draws random numbers, or matches one of these further patterns. Freed with ops_free. Returns
 * NULL if out of memory. */
uint8_t *advice_random_names(const struct advice *advice, const char *const *further);
/* Like advice_names, with the kind of the first name that matches instead of its index. A NULL pattern ends the list. */
struct advice_named {
	const char *pattern;
	uint8_t kind; /* not 0 */
};
uint8_t *advice_named_kinds(const struct advice *advice, const struct advice_named *names);
/* Returns true if a text matches one of such patterns. */
bool advice_text_like(struct ops_string text, const char *const *patterns);
/* Returns the number of elements of the first tensor among a row's inputs, and its element type; -1: unknown. */
int64_t advice_elements(const struct advice *advice, uint32_t row, uint8_t *ret_dtype);
/* Gets input `i`. Returns false if it does not exist. */
bool advice_input(const struct advice *advice, uint32_t row, size_t i, struct ops_input *ret_input);
int64_t advice_input_elements(const struct ops_input *input);
/* Returns the bytes of that many elements. */
int64_t advice_input_bytes(const struct ops_input *input);
/* Returns the largest tensor among the inputs of a row; without a tag if there is none. */
struct ops_input advice_largest_input(const struct advice *advice, uint32_t row);
size_t advice_dtype_bytes(uint8_t dtype);
/* Returns true for a tensor with strides whose elements are in order and without gaps. */
bool advice_is_contiguous(const struct ops_input *tensor);
struct advice_tensor {
	char text[96]; /* "float32 [3000, 64]" */
};
struct advice_tensor advice_describe_tensor(const struct ops_input *tensor);
/* Time of a row, and of its backward pass, that earlier stages did not claim. */
int64_t advice_left_ns(const struct advice *advice, uint32_t row);
int64_t advice_backward_left_ns(const struct advice *advice, uint32_t row);
/* Self time of a row that neither claims nor its waits explain. Claimed time may be waits. */
static inline int64_t advice_self_left_ns(const struct advice *advice, uint32_t row)
{
	int64_t claimed_ns = advice->self_claimed_ns[row], stalled_ns = advice->stalled_self_ns[row];

	return ops_difference(advice->self_ns[row], claimed_ns > stalled_ns ? claimed_ns : stalled_ns);
}
/* Returns the time of creating a node of the graph, estimated from the times of views, which are sorted; 0 without views. */
double advice_creation_ns(int64_t *view_ns, size_t count);
/* Returns true if claims of earlier stages explain a span of time, so that a general rule has nothing to add: a fix
 * changes the rest as well. A tenth suffices, since a loop may have ten calls of equal cost, one of which is the
 * cause. */
static inline bool advice_is_explained(int64_t claimed_ns, int64_t span_ns)
{
	return claimed_ns >= span_ns / 10;
}
/* Computes the time during which both the thread of the steps and another thread are in Python functions, so that one
 * of them waits for the GIL. Returns false if out of memory. */
bool advice_find_shared_ns(const struct advice *advice, int64_t *ret_ns);
/* Returns true if the name is that of a region compiled by torch.compile, which is not Python code of the program. */
bool advice_is_region(struct ops_string name);
/* Returns true for a file of a package other than torch and Opstrobe, whose lines say less than the names of operators. */
bool advice_is_named_library(struct ops_string file);
/* Returns the place of the self time of a function of the program: its line with the most calls, or its first line.
 * OPS_NONE for other rows. */
uint32_t advice_own_site(const struct advice *advice, uint32_t row);
/* Returns the place of the self time of a row; of a mark of a step the place of the function around it. OPS_NONE: unknown. */
uint32_t advice_self_site(const struct advice *advice, uint32_t row);
/* Gets the index of a line in the function of a row, and adds it if it is new. Only to be called while the model is
 * built. */
bool advice_add_site(struct advice *advice, uint32_t frame, uint32_t line, uint32_t *ret_site);
/* The same for the line of a call stack or sampled stack. */
bool advice_add_function_site(struct advice *advice, const struct ops_function_text *function, struct advice_site site, uint32_t *ret_site);
/* Finds the function of the program in which a row's call stack begins. Returns false if it has none. */
bool advice_stack_function(const struct advice *advice, uint32_t row, struct ops_function_text *ret_function);
/* Reads the sampled stacks of a trace without calls (advice_samples.c). Returns false if out of memory. */
bool advice_find_samples(struct advice *advice);
/* Formats " Meanwhile another thread is in save (train.py:7)." for waits for a kind of lock; "" if no place had it most
 * of the time. */
void advice_describe_holder(const struct advice *advice, enum ops_thread_state state, char *text, size_t size);
/* Returns the row directly below the function of the program around work of the engine: the call of backward(). */
uint32_t advice_calling_row(const struct advice *advice, uint32_t row);
/* Returns the innermost call of a function of the program around a row; OPS_NONE: none. */
uint32_t advice_function_around(const struct advice *advice, uint32_t row);
static inline uint32_t *advice_memory_rows(const struct advice *advice)
{
	return ops_memory_events(advice->trace);
}

/* Time of a function between two calls in which it released large tensors on the host. */
struct advice_free {
	uint32_t row; /* row of the function */
	int64_t start_ns;
	int64_t ns;
};

/* Finds `pointer_reads`. Returns false if out of memory. */
bool advice_find_pointer_reads(struct advice *advice);
/* Returns whether Python read a tensor through a pointer in a range of time. */
bool advice_reads_pointers(const struct advice *advice, int64_t from_ns, int64_t until_ns);
/* Returns whether, while a block existed, Python may have read an eighth of it or more through a pointer. */
bool advice_may_read_block(const struct advice *advice, const struct ops_memory_block *block);
/* Returns, by string, whether a call has the name of one that makes a tensor in memory of another library or process. Freed with
 * ops_free. Returns NULL if out of memory. */
uint8_t *advice_foreign_names(const struct advice *advice);
/* Returns whether steps may get tensors in memory that another library or process owns and writes to, by calls of those names. Without
 * Python calls that is unknown, and so assumed. */
bool advice_has_foreign_memory(const struct advice *advice, const uint8_t *foreign_names);

#define ADVICE_BEATS_MIN 6 /* minimum number of iterations */

/* Returns the number of steps that are compared with each other: the first ones; 0 without steps. */
size_t advice_beats(const struct advice *advice);
/* Returns the index of the one of a row, or of the last one before it. Rows before the first one belong to it. */
uint32_t advice_beat_of(const struct advice *advice, uint32_t row);

/* Operators whose results are only read in vain. Requires a flow. */
enum advice_vain_kind { ADVICE_IN_VAIN = 1, ADVICE_DISCARDS /* only its backward pass is in vain */ };
struct advice_vain {
	uint8_t *nodes; /* by row: enum advice_vain_kind */
	uint8_t *uses;  /* by use of the flow */
};

/* Returns false if out of memory. The caller must release it in any case. */
bool advice_vain_init(struct advice_vain *vain, const struct advice *advice);
void advice_vain_release(struct advice_vain *vain);
/* Marks a node and all that it reads. */
void advice_vain_add_reads(struct advice_vain *vain, const struct advice *advice, uint32_t node);
/* Marks operators of the forward pass of which everything that they make is read in vain alone, and then what they read. `names`, by
 * string: only these operators; NULL: all. */
void advice_vain_follow(struct advice_vain *vain, const struct advice *advice, const uint8_t *names);

/* The part of the results of an operator that anything needs. */
struct advice_part_needed {
	double share;
	uint32_t selection;  /* node that selects the part; OPS_NONE: none */
	int64_t first;       /* size of the first dimension of what it selects from */
	uint8_t dimensions;  /* number of its dimensions; 0: no selection */
	uint8_t selected;    /* the dimensions in which it selects: bits, counted from the last dimension */
	bool is_unknown;     /* which part it selects is unknown */
	bool is_layer;       /* the part is followed through a layer that mixes the elements of a row */
	bool is_proportional; /* the operator takes time in proportion to the part */
	bool is_set;         /* the row is an operator of the forward pass that makes something */
};

/* Returns them by row, freed with ops_free. Requires a flow. Returns NULL if out of memory. */
struct advice_part_needed *advice_needs_of(const struct advice *advice);

struct advice_frees {
	size_t count, capacity;
	struct advice_free *items;
};

/* Marks the steps in which operators leave memory behind, so that it grows. */
bool advice_find_kept(const struct advice *advice, uint8_t *kept);

bool advice_find_frees(const struct advice *advice, int64_t bytes_min, struct advice_frees *ret_frees);

/* Time that functions of the program spend outside of operators in one way. */
struct advice_python_part {
	uint32_t row;   /* the call with it; OPS_NONE: none */
	uint32_t site;
	int64_t ns;
	uint64_t calls;
};

struct advice_python_parts {
	struct advice_python_part called; /* in calls of one function of a library, or in C */
	struct advice_python_part search; /* in a function that searches with `in`, itself */
};

/* Adds the lines of searches to the model. Returns false if out of memory. */
bool advice_find_search_lines(struct advice *advice);
/* Finds them in the data loader, or in the rest of the steps. Returns false if out of memory. */
bool advice_find_python_parts(const struct advice *advice, bool in_loader, struct advice_python_parts *ret_parts);
/* Formats a sentence about the part that takes most of a time, which it calls `of` ("that"), and one about what to do, or "". Returns the
 * part; NULL: none. */
const struct advice_python_part *advice_describe_python(const struct advice *advice, const struct advice_python_parts *parts, const char *of, double all_ns,
                                                        char *fact, char *advised, size_t size);

/* --- tallies -------------------------------------------------------------------------------------------------------- */

struct advice_cost {
	int64_t ns;
	uint64_t count;
	uint32_t row; /* row with the highest cost */
	uint32_t site;
	int64_t row_ns;
};

/* Costs by place. The last entry is for rows without a place. */
struct advice_tally {
	const struct advice *advice;
	struct advice_cost *costs;
	struct advice_cost *through; /* by library site: costs that also count at the place `site` */
	size_t count;
	int64_t ns;
	uint64_t events;
};

bool advice_tally_init(struct advice_tally *tally, const struct advice *advice);
void advice_tally_release(struct advice_tally *tally);
void advice_tally_add(struct advice_tally *tally, uint32_t row, int64_t ns);
void advice_tally_add_at(struct advice_tally *tally, uint32_t site, uint32_t row, int64_t ns);

/* --- results -------------------------------------------------------------------------------------------------------- */

/* Time of a row that following the advice saves. */
struct advice_claim {
	int64_t ns;
	int64_t backward_ns; /* of its backward pass */
	uint32_t row;
	bool whole;          /* the row and everything below it is explained */
	bool self;           /* self time of a function, in no row below it */
	bool rest;           /* the part that other claims of the rule leave */
};

#define ADVICE_ALSO_MAX 2

/* Result of a rule. The runner initializes and releases it. */
struct advice_result {
	const struct advice *advice; /* NULL: rule about a run */
	struct advice_report *report;
	const struct advice_rule *rule;
	uint8_t *which;              /* by string: 1-based index of the matching name of the rule; 0: none */
	struct advice_tally tally;   /* costs by place; their sum is the gain unless advice_report_gain() sets another */
	OPS_ARRAY(struct advice_claim) claims;
	OPS_ARRAY(struct advice_claim) costs; /* what the tally consists of, for a rule without claims; never attributed */
	uint8_t *claimed;            /* by row: claimed by this rule; for advice_add_outermost() also rows below claimed
	                              * ones */
	OPS_ARRAY(struct advice_finding) findings;
	/* To be set before advice_report_costs(): */
	enum advice_confidence confidence; /* default: that of the rule */
	enum advice_bound bound;           /* likewise */
	const char *detail;          /* beginning of the advice; NULL: none */
	bool general;                /* default: that of the rule */
	uint32_t also[ADVICE_ALSO_MAX]; /* rows without cost at which the cause is set, whose lines are listed second */
	size_t also_count;
	bool always;                 /* report regardless of the gain, with at least the severity */
	enum advice_severity severity;
	int64_t outside_ns;          /* part of the tally in which no row runs that counts, so that no claim has it */
	double explained_ns;         /* for a run: exposed communication that this explains, summed over all ranks */
	bool failed;                 /* out of memory */
};

/* Claims a row, its children and their backward pass. Returns their unclaimed time. */
int64_t advice_claim(struct advice_result *result, uint32_t row);
/* Claims a row and its children, except for the other claims of the rule there. */
void advice_claim_rest(struct advice_result *result, uint32_t row);
/* Claims a share of the unclaimed time of a row and its backward pass. Returns the time. */
int64_t advice_claim_share(struct advice_result *result, uint32_t row, double share);
/* Claims self time of a function. */
void advice_claim_self(struct advice_result *result, uint32_t row, int64_t ns);

/* Adds a share of the idle time of a device of a cause to `costs` and `outside_ns`, not to the tally: it is spread over all rows of the host in it, see
 * advice_idle_divide(). Returns false if out of memory. */
bool advice_spread_idle(struct advice_result *result, enum advice_idle_cause cause, double share);

/* How the claims of a result are distributed over the steady steps. */
struct advice_spread {
	size_t steps; /* steps that have claims */
	double usual; /* share of the claimed time that remains if no step may have many times more of it than the
	               * median step */
	double noise; /* standard error of the claimed time of a step, relative to it; 0: unknown */
};
bool advice_find_spread(const struct advice_result *result, struct advice_spread *ret_spread); /* returns false if out of memory */

/* Returns true if an earlier stage claimed the row or one around it, or this rule claimed the row. */
static inline bool advice_is_claimed(const struct advice_result *result, uint32_t row)
{
	return result->claimed[row] || result->advice->claimed[row];
}

/* Adds the cost of a row at its place, or at the given one. */
void advice_add(struct advice_result *result, uint32_t row, int64_t ns);
void advice_add_at(struct advice_result *result, uint32_t site, uint32_t row, int64_t ns);
/* Adds it to `costs` alone. */
void advice_add_cost(struct advice_result *result, uint32_t row, int64_t ns);
/* Also adds it at the lines of the calls that lead to the row in the same step. Of two lines with the same cost the
 * inner one comes first. */
void advice_add_calls(struct advice_result *result, uint32_t row, int64_t ns);
/* Claims a share of a row and adds it. */
static inline void advice_add_share(struct advice_result *result, uint32_t row, double share)
{
	advice_add(result, row, advice_claim_share(result, row, share));
}
/* To be called for each row in order. Adds and claims the outermost matching rows in steady steps that are neither in
 * `zones_left_out` nor claimed. Returns true if it added the row. */
bool advice_add_outermost(struct advice_result *result, uint32_t row, bool matches, uint8_t zones_left_out);
/* Does this for the rows with one of the rule's names. */
void advice_add_names(struct advice_result *result, uint8_t zones_left_out);

/* Sets `also` to calls with one of such names, one for each line of the program that makes them; none if there are more lines than
 * ADVICE_ALSO_MAX. The calls may be in no step. */
void advice_list_calls(struct advice_result *result, const char *const *names);

/* Reports a finding with its evidence, in the format of printf. The places are those of the tally, and its sum is the
 * gain, of all steady steps together. These functions return false if out of memory. */
__attribute__((format(printf, 2, 3))) bool advice_report_costs(struct advice_result *result, const char *format, ...);
__attribute__((format(printf, 3, 4))) bool advice_report_gain(struct advice_result *result, double gain_ns,
                                                            const char *format, ...);
/* The same with the places of another tally. */
__attribute__((format(printf, 4, 5))) bool advice_report_at(struct advice_result *result, const struct advice_tally *places,
                                                        double gain_ns, const char *format, ...);
/* The same for a run. The caller sets gain, confidence and number of places in the finding. */
__attribute__((format(printf, 4, 5))) bool advice_report_of_run(struct advice_result *result, struct advice_finding finding,
                                                            const struct advice_where *where, const char *format, ...);

bool advice_result_init(struct advice_result *result, const struct advice_rule *rule, const struct advice *advice,
                        struct advice_report *report, uint8_t *claimed);
void advice_result_release(struct advice_result *result);
/* Attributes claims to their rules, the result with the largest gain first: time that is already claimed reduces the
 * gain of later ones. Sorts the results. */
void advice_attribute(struct advice *advice, struct advice_result *results, size_t count);
/* Adds the findings that matter to the report, the largest gain first. Their total gain is at most `left_pct` of a
 * step; sets `left_pct` to the remainder. Sorts the findings. */
bool advice_report_add(struct advice_report *report, struct advice_finding *findings, size_t count, double *left_pct);

/* Returns whether a finding gains enough to be reported, or is reported in any case. */
bool advice_is_reported(const struct advice_finding *finding);

/* Sets the interval of the final gain. */
void advice_set_interval(struct advice_finding *finding);

void advice_report_release(struct advice_report *report);
/* Copies a text, and those of a place, into the report. Return false if out of memory. */
bool advice_report_keep(struct advice_report *report, const char *bytes, size_t size, struct ops_string *ret_text);
/* Adds a place to a finding, unless it is there already or there are enough. */
void advice_add_place(struct advice_where place, struct advice_finding *finding);
bool advice_report_keep_where(struct advice_report *report, struct advice_where *where);
bool advice_same_line(const struct advice_where *a, const struct advice_where *b);
/* Describes the place of a row, which may be OPS_NONE. The texts belong to the trace or to the ranks. */
struct advice_where advice_describe(const struct advice *advice, uint32_t site, uint32_t row);
struct advice_through advice_describe_through(const struct advice *advice, uint32_t library_site);
/* Formats the line of a row: "forward (train.py:45)"; "" if it is unknown. */
void advice_format_line(const struct advice *advice, uint32_t row, char *text, size_t size);
struct advice_where advice_place(const struct advice_ranks *ranks, uint32_t place);

/* The complete time, plus rounding errors. */
#define ADVICE_SHARE_MAX (1 + 1e-6)

/* Milliseconds per step, for evidence. */
static inline double advice_step_ms(const struct advice *advice, double ns)
{
	assert(ns >= 0);
	return advice->step_count ? ns / 1e6 / (double)advice->step_count : 0;
}

/* Share of the steady steps. A rule with a share above 1 counts time twice. */
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

/* "12.3 ms", in a suitable unit. */
struct ops_figure advice_time(double ms);

/* "1.50 MiB", in a suitable unit. */
struct ops_figure advice_bytes(double bytes);

/* "12.3 ms (6.7 %)" per step. */
struct ops_figure advice_spent(const struct advice *advice, double ns);

/* Cost of a result per step. */
static inline struct ops_figure advice_cost(const struct advice_result *result)
{
	return advice_spent(result->advice, (double)result->tally.ns);
}

/* A number with the words that follow it. */
struct advice_phrase {
	char text[96];
};
struct advice_phrase advice_phrase_of(double number, const char *one, const char *several);

/* "1 operator in each step computes" or "2.5 operators in each step compute": a count per step, … */
static inline struct advice_phrase advice_counted(const struct advice *advice, uint64_t count, const char *one, const char *several)
{
	return advice_phrase_of(advice_per_step(advice, count), one, several);
}

/* … and the count of the events of a result. */
static inline struct advice_phrase advice_events(const struct advice_result *result, const char *one, const char *several)
{
	return advice_counted(result->advice, result->tally.events, one, several);
}

/* --- table of rules ------------------------------------------------------------------------------------------------- */

extern const struct advice_rule *const advice_rules[];
extern const size_t advice_rule_count;

/* Builds the model of a trace, and adds the findings of all rules to the report. Returns false if out of memory. */
bool advice_run_rules(struct advice *advice, const struct advice_rule *const *rules, size_t count);

void advice_report_sort(struct advice_report *report);
/* Completes the report of an advisor, which owns it. Replaces ops_adviser_finish(). */
enum ops_code advice_finish(struct ops_adviser *adviser, const struct advice_report **ret_report, struct ops_error *error);
void advice_write_json(const struct advice_report *report, struct ops_buffer *out);
/* Writes the member "top_finding": the first finding, or null. `brief`: for one line of a list. */
void advice_write_top(const struct advice_report *report, bool brief, struct ops_json_writer *json);
/* Writes the members about a trace in a list of traces. Returns false if out of memory. (advice_about.c) */
bool advice_write_about(const struct ops_rank *rank, struct ops_json_writer *json);
void advice_write_csv(const struct advice_report *report, struct ops_buffer *out);
void advice_write_text(const struct advice_report *report, bool markdown, struct ops_buffer *out);
void advice_write_brief(const struct advice_report *report, struct ops_buffer *out);
/* Layout of text: wrapped on a terminal; in Markdown one line per paragraph, with special characters escaped. */
struct advice_style {
	struct ops_buffer *out;
	bool markdown;
};
/* Source of a text. Texts of rules have code in backticks. Texts about a trace contain its names, which may be any
 * bytes. */
enum advice_speaker { ADVICE_OF_RULE, ADVICE_OF_TRACE };
/* Appends a paragraph. */
void advice_append_words(const struct advice_style *style, enum advice_speaker speaker, const char *text, size_t size);
void advice_append_code(const struct advice_style *style, const char *code);
/* Appends "lightning/pytorch/loops/loop.py:12 in run", as a text about a trace. */
void advice_append_through(struct ops_buffer *out, const struct advice_through *through);
/* Returns whether gains and times are per step; without steps in the trace they refer to the complete recording. */
bool advice_is_per_step(const struct advice_report *report);
const char *advice_severity_name(enum advice_severity severity);
const char *advice_confidence_name(enum advice_confidence confidence);
const char *advice_bound_name(enum advice_bound bound);

#endif
