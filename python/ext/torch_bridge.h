/* SPDX-License-Identifier: Apache-2.0
 *
 * The torch bridge's C face. The bridge is a shared library of its own, compiled against the headers of the torch it
 * serves, often on the user's machine (opstrobe/recording/bridge.py). It turns torch's callbacks into records through
 * opstrobe/internal/collector.h and knows nothing else of the core: what it needs it is handed at attach.
 *
 * The library has one visible symbol, ops_torch_bridge_get. It is never unloaded: torch may keep our callbacks and
 * contexts for as long as the process lives.
 */
#ifndef OPS_TORCH_BRIDGE_H
#define OPS_TORCH_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/counters.h>
#include <opstrobe/internal/execution_trace.h>
#include <opstrobe/storage.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change in this file. */
#define OPS_TORCH_BRIDGE_ABI 7u
#define OPS_TORCH_BRIDGE_SYMBOL "ops_torch_bridge_get"

/* Whose events torch's profiler can record around operators: those of CUDA, or of the backend that the process has registered. */
enum ops_device_events { OPS_DEVICE_EVENTS_NONE, OPS_DEVICE_EVENTS_CUDA, OPS_DEVICE_EVENTS_PRIVATEUSE1 };

/* What a session wants recorded. */
struct ops_torch_options {
	bool record_shapes;          /* operators' inputs: sizes, strides, dtypes, scalars; with memory their storages too */
	bool profile_memory;         /* allocator reports */
	bool all_threads;            /* every thread, not only the caller's and those that inherit torch's thread state */
	bool script_stacks;          /* TorchScript: the lines of the script that an operator is called from */
	bool script_modules;         /* likewise its modules around it */
	bool capture_overload_names; /* "Tensor" of aten::add.Tensor beside the name */
	bool record_ids;             /* torch's RecordFunction ids, for which an observer has asked; without this they are
	                              * recorded while one of the bridge's own observers runs */
	const struct ops_counters *counters; /* what to count in each operator; NULL: nothing */
	enum ops_device_events device_events; /* to put around each operator and range; only such as are available */
};

/* What pairs of a device's events measured. */
struct ops_bridge_times {
	int64_t *ns;       /* by number of the pair, OPS_COUNT_UNKNOWN where that failed; free() it. NULL when memory is out */
	size_t count;
	uint64_t failures; /* calls of the device that failed, and why the first did: "" when none */
	char problem[256];
};

/* Who takes the nodes that an observer makes. Called from any thread, one node at a time. */
struct ops_node_sink {
	void (*take)(void *context, const struct ops_node *node);
	void *context;
};

/* What an observer records of input tensors of integers. Borrowed for the call. */
struct ops_integer_options {
	bool ranges;             /* their least and greatest elements, in the node */
	const char *data_of;     /* names of operators, with commas between, whose inputs are kept in files; "": none */
	const char *data_folder; /* of these, with a '/' at its end; nothing is kept while it does not exist */
};

/* Never changes and lives for ever. No function lets an exception out. */
struct ops_torch_bridge {
	uint32_t abi;           /* OPS_TORCH_BRIDGE_ABI of the bridge; the first field for ever */
	uint32_t collector_abi; /* its OPS_COLLECTOR_ABI */
	const char *torch_version; /* of the headers it was compiled against, "2.13.0+cpu" */

	/* Begins to record into the session that `collector` is recording, on the calling thread and wherever torch carries
	 * the calling thread's state (autograd threads, forks), or on all threads. NULL, or why not: static text, and then
	 * nothing was begun. One attach at a time; the caller sees to that. */
	const char *(*attach)(const struct ops_collector *collector, const struct ops_torch_options *options);

	/* Ends it, from any thread. What the attaching thread still holds of the bridge then does nothing, and goes away
	 * with its next operator. */
	void (*detach)(void);

	/* Whether operators are recorded from here on, and torch's ranges; any thread. A session begins with both. Unlike in a pause of the
	 * session, torch does not call the bridge for what is not recorded. Allocations are recorded in any case. */
	void (*set_detail)(bool operators, bool ranges);

	/* Observers make a node of every operator on every thread, profile or not, while they run. Several may at once. The
	 * four are called by one thread at a time. */

	/* Makes an observer that does not run yet; `*ret_observer` is its number, never 0. NULL, or why not: static text. */
	const char *(*observer_open)(const struct ops_node_sink *sink, const struct ops_integer_options *integers,
	                             uint64_t *ret_observer);
	/* Begins, and pauses; both do nothing when it is so already. An operator that began before the pause is still taken
	 * down. NULL, or why it cannot begin. */
	const char *(*observer_start)(uint64_t observer);
	void (*observer_stop)(uint64_t observer);
	/* Adds the last node and lets go of the sink. */
	void (*observer_close)(uint64_t observer);

	/* Ranges of our own, for those who observe torch's: its RecordFunction of scope USER_SCOPE. To be used only while
	 * `*observed` is not 0 (relaxed), for without observers a range needs no torch. NULL when there is no memory.
	 * `*ret_recorded` is set when the session has taken the range down too. `args` NULL: none. */
	const int *observed;
	void *(*range_begin)(const char *name, const char *args, size_t args_size, bool *ret_recorded);
	void (*range_end)(void *range);

	/* Storages of tensors, which are told by the address of their c10::TensorImpl, or of the gradient that one has. The
	 * four are called by one thread at a time. */

	/* False when there is no memory. */
	bool (*tensor_storage)(const void *tensor, bool gradient, struct ops_storage *ret_storage);
	/* Keeps track of a storage without keeping it alive: a number of it, until it is dropped. NULL when there is none. */
	void *(*storage_hold)(const void *tensor, bool gradient);
	/* False when the storage is gone, or has no memory any more. */
	bool (*storage_look)(void *held, struct ops_storage *ret_storage);
	void (*storage_drop)(void *held);

	/* Whether the device can time operators by its events. */
	bool (*device_events_available)(enum ops_device_events device);
	/* After detach, and without the GIL: waits for the device and measures all pairs of the session. */
	void (*take_device_times)(struct ops_bridge_times *ret_times);

	/* Whether torch traces a function on this thread: what it calls becomes part of a graph. */
	bool (*is_tracing)(void);
	/* Whether profiles are to show which backward node belongs to which forward operator, as torch was told. */
	bool (*forward_backward_enabled)(void);
};

const struct ops_torch_bridge *ops_torch_bridge_get(void);

#ifdef __cplusplus
}
#endif
#endif
