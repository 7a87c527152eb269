/* SPDX-License-Identifier: Apache-2.0
 *
 * What the views share: which row plays which part, the host tree, which operator launched what on a device, and the
 * steps.
 *
 *     view_model.c      ops_views_init: parts, then tree, launches, steps, all below
 *     view_tree.c       host nodes of each thread, nested by time, sums
 *     view_launches.c   device work → launching call → node
 *     view_steps.c      steps and where their time goes
 *     view_*.c          a view each, which writes itself
 *
 * Times are nanoseconds. A node, launch or device event is an index into its array; OPS_NONE is the root of a thread or
 * nothing at all.
 */
#ifndef OPS_ANALYZE_VIEWS_H
#define OPS_ANALYZE_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "analyze/sum.h"
#include "base/array.h"
#include "base/intern.h"
#include "base/intervals.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/occupancy.h"
#include "derive/modules.h"
#include "derive/steps.h"

/* What a row is to the views. */
enum view_part {
	VIEW_NOTHING,
	VIEW_OPERATOR,
	VIEW_LABEL,        /* a range of the user's, or of torch's */
	VIEW_DEVICE_LABEL, /* its copy on a device's row */
	VIEW_OLD_PYTHON,   /* category "python" of 2020 */
	VIEW_FUNCTION,     /* a Python call that is not a module's */
	VIEW_MODULE,
	VIEW_STEP,
	VIEW_LOADER,
	VIEW_OPTIMIZER,
	VIEW_LIGHTNING_HOOK,
	VIEW_LAUNCH, /* runtime or driver call */
	VIEW_KERNEL,
	VIEW_COPY,
	VIEW_FILL,
	VIEW_WINDOW, /* the span of a session */
};

/* What a name says; worked out once a string. */
enum view_name {
	VIEW_NAME_KNOWN = 1, /* the others are worked out */
	VIEW_NAME_STEP = 2,
	VIEW_NAME_LOADER = 4,
	VIEW_NAME_OPTIMIZER_STEP = 8,
	VIEW_NAME_OPTIMIZER = 16, /* anything of an optimizer */
	VIEW_NAME_NCCL = 32, /* a collective that kernels carry out */
	VIEW_NAME_GLOO = 64, /* one that the host carries out */
	VIEW_NAME_DP = 128,
	VIEW_NAME_DDP = 256,
	VIEW_NAME_TENSOR_CORES = 512, /* of a kernel that uses them */
	VIEW_NAME_ELIGIBLE = 1024,    /* of an operator that could */
	VIEW_NAME_EMPTY = 2048,       /* aten::empty… */
	VIEW_NAME_LIGHTNING_HOOK = 4096,
	VIEW_NAME_COMMUNICATES = 8192, /* of a kernel that communicates */
	VIEW_NAME_ELIGIBLE_SINCE = 16384, /* likewise, by names that the plugin did not know */
};
#define VIEW_NAME_COLLECTIVE (VIEW_NAME_NCCL | VIEW_NAME_GLOO)

/* A host node. Rows are in order of start, so parents precede their children, and a thread's nodes are in the order
 * of a walk through its tree. */
struct view_node {
	uint32_t row;
	uint32_t parent;     /* folded nodes skipped */
	uint32_t kept;       /* the node it is folded into, or itself */
	uint32_t calls_of;   /* whose launching calls it has: those of a folded node belong to the kept one */
	uint32_t collective; /* index of the collective whose host part it is or is in, OPS_NONE none */
	uint32_t children;   /* direct ones */
	uint32_t operators;  /* direct children that are operators; see the sums below */
	uint8_t part;
	bool eligible;       /* for tensor cores, itself or a child */
	bool eligible_below; /* some descendant is */
	int64_t inner_ns; /* durations of the launching calls directly in it and of its direct children */
	int64_t device_self_ns;
	int64_t device_total_ns;
	int64_t tensor_self_ns;
	int64_t tensor_total_ns;
	int64_t kernel_self_ns; /* kernels alone */
	int64_t operators_device_ns; /* device total of direct operator children, */
	int64_t operators_host_ns;   /* and their durations */
};

struct view_launch {
	uint32_t row;
	uint32_t node;
	uint32_t first; /* device event, chained by `next` */
};

/* What a kernel's arguments say; NAN and OPS_NONE where they do not. */
struct view_kernel {
	double blocks_per_sm;
	double occupancy_pct;
	double own_blocks_per_sm; /* likewise, but where that is 0 or not said, worked out */
	double own_occupancy_pct;
	int64_t registers; /* -1 none */
	int64_t shared_memory;
	int64_t device;
	uint32_t grid; /* texts, interned in ops_views.texts */
	uint32_t block;
};

struct view_device_event {
	uint32_t row;
	uint32_t launch;     /* OPS_NONE: unknown */
	uint32_t next;       /* of the same launch */
	uint32_t node;       /* that launched it */
	uint32_t label;      /* string id of the innermost label or function around the launch, or OPS_NONE */
	uint32_t arguments;  /* index into `kernels` */
	uint32_t collective; /* OPS_NONE: none that is known */
	uint8_t part;
	bool in_tree;        /* counts in the tables by operator */
	bool communicates;
	int64_t device;
};

enum view_category {
	VIEW_TIME_KERNEL,
	VIEW_TIME_MEMCPY,
	VIEW_TIME_MEMSET,
	VIEW_TIME_COMMUNICATION,
	VIEW_TIME_RUNTIME,
	VIEW_TIME_LOADER,
	VIEW_TIME_CPU,
	VIEW_TIME_OTHER,
	VIEW_TIME_COUNT
};

struct view_step {
	struct ops_string name;
	int64_t host_start_ns;
	int64_t host_end_ns;
	int64_t start_ns;
	int64_t end_ns;
	uint64_t device_events; /* launched inside */
	int64_t device_start_ns;
	int64_t device_end_ns;
	int64_t time_ns[VIEW_TIME_COUNT];
	int64_t label_ns; /* of the CPU's: within labels alone, where no operator runs */
	int64_t call_ns;  /* of communication: the host's calls alone, while no kernel of theirs runs */
};

/* Host part and device parts of one collective operation. */
struct view_collective {
	uint32_t row;
	uint32_t step; /* OPS_NONE: in none */
	uint32_t first; /* range of the host event in `ranges`; its kernels follow */
	uint32_t count;
	uint64_t id;
	int64_t bytes;
	bool has_inputs; /* of tensors, whose bytes these are; else of messages, from the arguments of its kernels */
};

/* What a trace says of a device, from "deviceProperties". */
struct view_device {
	int64_t id;
	struct ops_string name_json; /* "" when not said */
	int64_t memory_bytes;        /* -1 not said, and so below */
	int64_t major;
	int64_t minor;
	int64_t sm_count;
	int64_t warp_size; /* 64: AMD's, which have matrix cores under other names */
	struct ops_multiprocessor multiprocessor; /* 0: not said */
};

struct ops_views {
	const struct ops_trace *trace;
	const struct ops_events *events;
	int64_t base_ns;  /* what the file's times count from */
	int64_t first_ns; /* earliest start of all that the views take, and latest end */
	int64_t last_ns;
	uint64_t parsed;  /* rows and memory records that the views take */
	enum ops_module_source modules;
	uint16_t *names;      /* enum view_name by string id */
	uint8_t *parts;       /* by row */
	uint32_t *node_of;    /* by row */
	OPS_ARRAY(struct view_node) nodes;
	OPS_ARRAY(struct view_launch) launches;
	OPS_ARRAY(struct view_device_event) device_events;
	OPS_ARRAY(struct view_kernel) kernels;
	OPS_ARRAY(struct view_step) steps;
	const struct ops_steps *host_steps; /* of the trace; those of processes that take them together are one in `steps` */
	size_t left_out; /* steps at the end that are not among them */
	bool unmarked;   /* the trace has no steps, and all of it is one */
	OPS_ARRAY(struct view_collective) collectives;
	struct ops_intervals ranges; /* of collectives; not merged */
	OPS_ARRAY(struct view_device) devices;
	OPS_ARRAY(int64_t) gpus;  /* that ran a kernel, ascending */
	uint32_t *gpu_kernels;    /* device events that are kernels, those of each of `gpus` together, in order of time */
	uint32_t *gpu_first;      /* by place in `gpus`: its first there; one more for their end */
	struct ops_map device_of; /* id of a device → index into `devices` */
	OPS_ARRAY(int64_t) used;  /* devices of all device events, ascending */
	struct ops_intervals times[VIEW_TIME_COUNT]; /* merged */
	struct ops_intervals all_kernels;
	struct ops_intern texts;
	bool worked_out; /* whether any kernel's own figures are */
	bool has_launches, has_kernels, has_copies, has_collectives, has_nccl, has_gloo, has_dp, has_ddp, has_modules;
};

/* Everything up to the steps. `views` is released by ops_views_release in any case. Linear in the trace but for sorting of
 * what has to be. */
bool ops_views_init(struct ops_views *views, const struct ops_trace *trace);
void ops_views_release(struct ops_views *views);
/* Frees the tree of nodes, the largest part of the model, for callers that use the rows of the trace instead. */
void ops_views_forget_nodes(struct ops_views *views);
/* The views of a trace that nobody changes: those that are kept with it. If none are, they are made, and kept with it for all to
 * come, or else (`keep` is false, as for traces of a run that only meet once) in `own`, which is released in any case. NULL when
 * memory is out. */
const struct ops_views *ops_views_open(struct ops_views *own, const struct ops_trace *trace, bool keep);
/* Frees all that needs the trace; what stays are steps, collectives and their ranges, and devices. */
void ops_views_forget_trace(struct ops_views *views);

bool view_tree_build(struct ops_views *views);
/* Sums of every node, when the launches are linked. */
void view_tree_sum(struct ops_views *views);
bool view_launches_link(struct ops_views *views);
bool view_kernels_describe(struct ops_views *views);
bool view_collectives_find(struct ops_views *views);
bool view_steps_find(struct ops_views *views);
bool view_devices_read(struct ops_views *views);

/* Sums of a file's numbers stop at the ends of their type. */
static inline void view_add(int64_t *to, int64_t more)
{
	*to = ops_sum(*to, more);
}

/* Whether a row is a node that what follows on its thread may lie in: asynchronous ones only begin there. */
static inline bool view_holds(const struct ops_views *views, uint32_t row)
{
	return views->node_of[row] != OPS_NONE && !(views->events->flags[row] & OPS_EVENT_ASYNC);
}

static inline int64_t view_start(const struct ops_views *views, uint32_t row)
{
	return views->events->start_ns[row];
}

static inline int64_t view_end(const struct ops_views *views, uint32_t row)
{
	return views->events->end_ns[row];
}

static inline int64_t view_duration(const struct ops_views *views, uint32_t row)
{
	return views->events->end_ns[row] - views->events->start_ns[row];
}

/* Whether a name is that of a kernel on tensor cores, or of an operator that could use them. */
bool view_kernel_uses_tensor_cores(struct ops_string name);
bool view_operator_is_eligible(struct ops_string name);
bool view_operator_is_eligible_since(struct ops_string name);

/* An operator in the sense of all tables. */
static inline bool view_is_operator(const struct ops_views *views, const struct view_node *node)
{
	uint16_t name = views->names[views->events->name[node->row]];

	return node->part == VIEW_OPERATOR && !(name & (VIEW_NAME_DP | VIEW_NAME_DDP | VIEW_NAME_OPTIMIZER));
}

static inline struct ops_string view_row_name(const struct ops_views *views, uint32_t row)
{
	return ops_trace_string(views->trace, views->events->name[row]);
}

/* Children of a broken file may outlast their parent, which then has no self time. */
static inline int64_t view_host_self_ns(const struct ops_views *views, const struct view_node *node)
{
	int64_t self_ns = ops_difference(view_duration(views, node->row), node->inner_ns);

	return self_ns > 0 ? self_ns : 0;
}

/* As steps name it; VIEW_TIME_COUNT is "total". */
const char *view_category_name(enum view_category category);
/* In texts; not of VIEW_TIME_COUNT. */
const char *view_category_title(enum view_category category);
/* The step whose part on the host a time is in; the number of steps if there is none. */
size_t view_step_at(const struct ops_views *views, int64_t time_ns);

/* --- the views: each writes its members; false when memory is out ------------------------------------------------- */

bool view_write_overview(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_steps(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_gpus(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_tensor_cores(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_operators(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_call_stacks(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_kernels(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_memory(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_modules(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_communication(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_recommendations(const struct ops_views *views, struct ops_json_writer *json);

/* Figures that advice needs and more than one view works out. */
struct view_gpu_figures {
	double utilization_ratio;
	double sm_efficiency_ratio;    /* NAN: no kernel says */
	double occupancy_pct;          /* likewise */
	double own_sm_efficiency_ratio; /* with what is worked out; NAN: it cannot be */
	double own_occupancy_pct;
	double tensor_core_time_ratio; /* NAN: no kernel hangs on an operator */
};
bool view_gpu_figures(const struct ops_views *views, int64_t gpu, struct view_gpu_figures *ret_figures);
/* Shares of 7.4; NAN without kernels, and 0. */
double view_tensor_cores_used(const struct ops_views *views);
double view_tensor_cores_eligible(const struct ops_views *views);
double view_step_average_ns(const struct ops_views *views, enum view_category category); /* COUNT: all of it */
/* What surfaces show of a step: labels in which no operator runs are OTHER, and the host's calls of collectives are CPU time. */
int64_t view_step_shown_ns(const struct view_step *step, enum view_category category);
double view_step_shown_average_ns(const struct ops_views *views, enum view_category category);


#endif
