/* SPDX-License-Identifier: Apache-2.0
 *
 * Data shared by the views: the part of each row, the host tree, the operators that launched device work, and the
 * steps.
 *
 *     view_model.c      ops_views_init: assigns parts, then builds tree, launches and steps
 *     view_tree.c       host nodes of each thread, nested by time, sums
 *     view_launches.c   device work → launching call → node
 *     view_steps.c      steps and how their time is spent
 *     view_*.c          one view each
 *
 * Times are nanoseconds. A node, launch or device event is an index into its array; OPS_NONE is the root of a thread,
 * or none.
 */
#ifndef OPS_ANALYZE_VIEWS_H
#define OPS_ANALYZE_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/intervals.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/occupancy.h"
#include "base/order.h"
#include "base/sum.h"
#include "derive/modules.h"
#include "derive/policy.h"
#include "derive/steps.h"

/* The part of a row in the views. */
enum view_part {
	VIEW_NOTHING,
	VIEW_OPERATOR,
	VIEW_LABEL,        /* a range of the user or of torch */
	VIEW_DEVICE_LABEL, /* a copy of a label on the row of a device */
	VIEW_OLD_PYTHON,   /* category "python" in files of 2020 */
	VIEW_FUNCTION,     /* a Python call other than a module call */
	VIEW_MODULE,
	VIEW_STEP,
	VIEW_LOADER,
	VIEW_OPTIMIZER,
	VIEW_LIGHTNING_HOOK,
	VIEW_LAUNCH, /* runtime or driver call */
	VIEW_KERNEL,
	VIEW_COPY,
	VIEW_FILL,
	VIEW_WINDOW, /* the range of a session */
};

/* Properties of a name, computed once per string. */
enum view_name {
	VIEW_NAME_KNOWN = 1, /* the other bits are valid */
	VIEW_NAME_STEP = 2,
	VIEW_NAME_LOADER = 4,
	VIEW_NAME_OPTIMIZER_STEP = 8,
	VIEW_NAME_OPTIMIZER = 16, /* anything that belongs to an optimizer */
	VIEW_NAME_NCCL = 32, /* a collective that kernels perform */
	VIEW_NAME_GLOO = 64, /* a collective that the host performs */
	VIEW_NAME_DP = 128,
	VIEW_NAME_DDP = 256,
	VIEW_NAME_TENSOR_CORES = 512, /* a kernel that uses tensor cores */
	VIEW_NAME_ELIGIBLE = 1024,    /* an operator that could use them */
	VIEW_NAME_EMPTY = 2048,       /* aten::empty… */
	VIEW_NAME_LIGHTNING_HOOK = 4096,
	VIEW_NAME_COMMUNICATES = 8192, /* a kernel that communicates */
	VIEW_NAME_ELIGIBLE_SINCE = 16384, /* the same as ELIGIBLE, for names unknown to the TensorBoard plugin */
};
#define VIEW_NAME_COLLECTIVE (VIEW_NAME_NCCL | VIEW_NAME_GLOO)

/* A host node. Rows are in order of start, so parents precede their children, and the nodes of a thread are in the
 * order of a depth-first walk. */
struct view_node {
	uint32_t row;
	uint32_t parent;     /* parent, skipping folded nodes */
	uint32_t kept;       /* the node it is folded into, or itself */
	uint32_t calls_of;   /* node whose launching calls it has: those of a folded node count for the kept one */
	uint32_t collective; /* index of the collective whose host part the node is or lies in; OPS_NONE: none */
	uint32_t children;   /* direct children */
	uint32_t operators;  /* direct children that are operators; see the sums below */
	uint8_t part;
	bool eligible;       /* for tensor cores: itself or a child */
	bool eligible_below; /* some descendant is eligible */
	int64_t inner_ns; /* durations of the launching calls directly in it and of its direct children */
	int64_t device_self_ns;
	int64_t device_total_ns;
	int64_t tensor_self_ns;
	int64_t tensor_total_ns;
	int64_t kernel_self_ns; /* kernels only */
	int64_t operators_device_ns; /* device total of direct operator children, */
	int64_t operators_host_ns;   /* and their durations */
};

struct view_launch {
	uint32_t row;
	uint32_t node;
	uint32_t first; /* first device event; `next` links further ones */
	bool is_lost;   /* its work does not count in the tables by operator */
};

/* Properties from a kernel's arguments; NAN and OPS_NONE if they are absent. */
struct view_kernel {
	double blocks_per_sm;
	double occupancy_pct;
	double own_blocks_per_sm; /* the same, but computed if the file has 0 or no value */
	double own_occupancy_pct;
	int64_t registers; /* -1: none */
	int64_t shared_memory;
	int64_t device;
	uint32_t grid; /* texts, interned in ops_views.texts */
	uint32_t block;
};

struct view_device_event {
	uint32_t row;
	uint32_t launch;     /* OPS_NONE: unknown */
	uint32_t next;       /* next device event of the same launch */
	uint32_t origin;     /* the launch of its operator: for work of a graph, the captured one; else `launch` */
	uint32_t node;       /* node of that operator */
	uint32_t label;      /* string id of the innermost label or function around the launch, or OPS_NONE */
	uint32_t arguments;  /* index into `kernels` */
	uint32_t collective; /* OPS_NONE: no known collective */
	uint8_t part;
	bool in_tree;        /* counts in the tables by operator */
	bool communicates;
	bool queued_before;  /* launched before the recording: belongs to no step */
	int64_t device;
};

/* Device work whose origin in the program is only partly in the trace. */
struct view_origins {
	size_t queued;      /* launched before the recording: belongs to no step */
	int64_t queued_ns;
	size_t replayed;    /* launched by graphs, */
	size_t captured;    /* of these, work whose capture is in the trace */
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
	enum ops_iteration_kind kind;
	uint64_t device_events; /* number of device events launched inside */
	int64_t device_start_ns;
	int64_t device_end_ns;
	int64_t time_ns[VIEW_TIME_COUNT];
	int64_t label_ns; /* part of CPU time: only within labels, where no operator runs */
	int64_t call_ns;  /* part of communication: only in host calls, while no kernel of theirs runs */
};

/* Host part and device parts of one collective operation. */
struct view_collective {
	uint32_t row;
	uint32_t step; /* OPS_NONE: outside of steps */
	uint32_t first; /* range of the host event in `ranges`; its kernels follow */
	uint32_t count;
	uint64_t id;
	int64_t bytes;
	bool has_inputs; /* the bytes are those of tensors; else of messages, from the arguments of its kernels */
};

/* Properties of a device, from "deviceProperties". */
struct view_device {
	int64_t id;
	struct ops_string name_json; /* "" if absent */
	int64_t memory_bytes;        /* -1: absent; also for the members below */
	int64_t major;
	int64_t minor;
	int64_t sm_count;
	int64_t warp_size; /* 64 for AMD devices, which have matrix cores under other names */
	struct ops_multiprocessor multiprocessor; /* 0: absent */
};

struct ops_views {
	const struct ops_trace *trace;
	const struct ops_policy *policy;
	const struct ops_events *events;
	int64_t base_ns;  /* base of the file's times */
	int64_t first_ns; /* earliest start and latest end of everything that the views cover */
	int64_t last_ns;
	uint64_t parsed;  /* number of rows and memory records that the views cover */
	enum ops_module_source modules;
	uint16_t *names;      /* enum view_name by string id */
	uint8_t *parts;       /* by row */
	uint32_t *node_of;    /* by row */
	OPS_ARRAY(struct view_node) nodes;
	OPS_ARRAY(struct view_launch) launches;
	OPS_ARRAY(struct view_device_event) device_events;
	OPS_ARRAY(struct view_kernel) kernels;
	OPS_ARRAY(struct view_step) steps;
	const struct ops_steps *host_steps; /* steps of the trace; `steps` merges those that processes run together */
	size_t left_out; /* number of steps at the end that are not in `steps` */
	bool unmarked;   /* the trace has no steps and counts as one */
	OPS_ARRAY(struct view_collective) collectives;
	struct ops_intervals ranges; /* ranges of collectives; not merged */
	OPS_ARRAY(struct view_device) devices;
	OPS_ARRAY(int64_t) gpus;  /* devices that ran a kernel, ascending */
	struct ops_groups gpu_kernels; /* device events that are kernels, by index in `gpus`, in order of time */
	struct ops_map device_of; /* from id of a device to index in `devices` */
	OPS_ARRAY(int64_t) used;  /* devices of all device events, ascending */
	struct ops_intervals times[VIEW_TIME_COUNT]; /* merged */
	struct ops_intervals all_kernels;
	struct ops_intern texts;
	bool worked_out; /* figures of at least one kernel were computed */
	bool has_launches, has_kernels, has_copies, has_collectives, has_nccl, has_gloo, has_dp, has_ddp, has_modules;
};

/* Builds everything up to the steps, by these rules. The caller must call ops_views_release() in any case. Takes linear time except for
 * sorting. */
bool ops_views_init(struct ops_views *views, const struct ops_trace *trace, enum ops_rules rules);
void ops_views_release(struct ops_views *views);
/* Frees the tree of nodes, the largest part of the model, for callers that use the rows of the trace instead. */
void ops_views_forget_nodes(struct ops_views *views);
/* Returns the shared, unmodifiable views of a trace, which are kept with it. If there are none yet, builds them, and
 * keeps them with the trace. If `keep` is false, as for traces of a run that are used only once, or by other rules than
 * Opstrobe's, builds them in `own`, which the caller must release in any case. Returns NULL if out of memory. */
const struct ops_views *ops_views_open(struct ops_views *own, const struct ops_trace *trace, enum ops_rules rules, bool keep);
/* Frees everything that refers to the trace. Steps, collectives with their ranges, and devices remain. */
void ops_views_forget_trace(struct ops_views *views);

bool view_tree_build(struct ops_views *views);
/* Computes the sums of every node, once launches are linked. */
void view_tree_sum(struct ops_views *views);
bool view_launches_link(struct ops_views *views);
/* Returns false if out of memory. */
bool view_origins_find(const struct ops_views *views, struct view_origins *origins);
bool view_kernels_describe(struct ops_views *views);
bool view_collectives_find(struct ops_views *views);
bool view_steps_find(struct ops_views *views);
bool view_devices_read(struct ops_views *views);

/* Adds numbers from a file. Saturates at the limits of the type. */
static inline void view_add(int64_t *to, int64_t more)
{
	*to = ops_sum(*to, more);
}

/* Returns true if a row is a node that can contain later rows of its thread. Asynchronous rows only begin there. */
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

/* Returns true if the name is that of a kernel on tensor cores. */
bool view_kernel_uses_tensor_cores(struct ops_string name);

/* Returns true for an operator in the sense of all tables. */
static inline bool view_is_operator(const struct ops_views *views, const struct view_node *node)
{
	uint16_t name = views->names[views->events->name[node->row]];

	return node->part == VIEW_OPERATOR && !(name & (VIEW_NAME_DP | VIEW_NAME_DDP | VIEW_NAME_OPTIMIZER));
}

/* Returns whether operators have times on devices, by which they are then compared. */
static inline bool view_has_device_times(const struct ops_views *views)
{
	return views->has_kernels || views->has_copies;
}

static inline struct ops_string view_row_name(const struct ops_views *views, uint32_t row)
{
	return ops_trace_string(views->trace, views->events->name[row]);
}

/* In a malformed file, children may outlast their parent, which then has no self time. */
static inline int64_t view_host_self_ns(const struct ops_views *views, const struct view_node *node)
{
	int64_t self_ns = ops_difference(view_duration(views, node->row), node->inner_ns);

	return self_ns > 0 ? self_ns : 0;
}

/* Returns the name in steps; "total" for VIEW_TIME_COUNT. */
const char *view_category_name(enum view_category category);
/* Returns the name in texts; not for VIEW_TIME_COUNT. */
const char *view_category_title(enum view_category category);
/* Returns the step whose host part contains a time; the number of steps if there is none. */
size_t view_step_at(const struct ops_views *views, int64_t time_ns);
/* Returns the share of the time of operators, on the thread of the steps, that is in no step; 0 without steps. Above the limit, texts
 * say so. */
#define VIEW_OUTSIDE_MUCH 0.5
double view_outside_ratio(const struct ops_views *views);

/* --- views: each function writes the members of its view, and returns false if out of memory ---------------------- */

bool view_write_overview(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_steps(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_gpus(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_tensor_cores(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_operators(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_call_stacks(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_kernels(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_categories(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_memory(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_modules(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_communication(const struct ops_views *views, struct ops_json_writer *json);
bool view_write_recommendations(const struct ops_views *views, struct ops_json_writer *json);

/* Figures that advice requires and that more than one view computes. */
struct view_gpu_figures {
	double utilization_ratio;
	double sm_efficiency_ratio;    /* NAN: no kernel has it */
	double occupancy_pct;          /* NAN: no kernel has it */
	double own_sm_efficiency_ratio; /* including computed values; NAN: cannot be computed */
	double own_occupancy_pct;
	double tensor_core_time_ratio; /* NAN: no kernel belongs to an operator */
};
bool view_gpu_figures(const struct ops_views *views, int64_t gpu, struct view_gpu_figures *ret_figures);
/* Finds the thread that has the steps; without steps, the busiest one. OPS_NONE: there is none. Returns false if out of memory. */
bool view_main_track(const struct ops_views *views, uint32_t *ret_track);
/* Returns the share of kernel time on tensor cores: 0 if kernels take no time, NAN if there are no kernels. */
double view_tensor_cores_used(const struct ops_views *views);
double view_tensor_cores_eligible(const struct ops_views *views);
/* Figures per step are means of what begins in the steps that means cover. Returns true if that is the case at this time, or if there are no
 * steps. */
bool view_averages(const struct ops_views *views, int64_t time_ns);
/* The same for work of a device, which belongs to the step that launches it, even if that has ended when it runs. */
bool view_averages_event(const struct ops_views *views, const struct view_device_event *event);
/* Returns the number of those steps; NAN without steps. */
double view_step_divisor(const struct ops_views *views);
/* Returns the index of the first step that means cover: 1 if the first step is apart, by Opstrobe's rules. */
size_t view_averaged_from(const struct ops_views *views);
double view_step_average_ns(const struct ops_views *views, enum view_category category); /* COUNT: the complete step */
/* Returns the time of a category as displayed: labels in which no operator runs are OTHER, and host calls of
 * collectives are CPU time. */
int64_t view_step_shown_ns(const struct view_step *step, enum view_category category);
/* The same for the mean of the steps that means cover. */
double view_step_shown_average_ns(const struct ops_views *views, enum view_category category);


#endif
