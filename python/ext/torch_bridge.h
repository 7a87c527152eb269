/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of the torch bridge. The bridge is a separate shared library, compiled with the headers of the torch version in
 * use, often on the user's machine (opstrobe/recording/bridge.py). It converts torch's callbacks to records through
 * opstrobe/internal/collector.h and depends on nothing else of the core: it receives everything it needs at attach.
 *
 * The library has one visible symbol, ops_torch_bridge_get. It is never unloaded: torch may keep our callbacks and contexts for
 * as long as the process lives.
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

/* Increased with every change in this file. */
#define OPS_TORCH_BRIDGE_ABI 10u
#define OPS_TORCH_BRIDGE_SYMBOL "ops_torch_bridge_get"

/* The devices whose events torch's profiler can record around operators: CUDA, or the backend that the process has registered. */
enum ops_device_events { OPS_DEVICE_EVENTS_NONE, OPS_DEVICE_EVENTS_CUDA, OPS_DEVICE_EVENTS_PRIVATEUSE1 };

/* What is recorded of allocations. */
enum ops_allocations {
	OPS_ALLOCATIONS_NONE,
	OPS_ALLOCATIONS_FREES, /* frees of those that are known; new ones are not recorded, and neither are their frees */
	OPS_ALLOCATIONS_ALL,
};

/* What a session records. */
struct ops_torch_options {
	bool record_shapes;          /* operators' inputs: sizes, strides, dtypes, scalars; with memory also their storages */
	bool profile_memory;         /* allocator reports */
	bool all_threads;            /* all threads, not only the caller's and those that inherit torch's thread state */
	bool own_memory;             /* with profile_memory and all_threads: allocations of CPU memory are reported by an allocator of
	                              * the bridge, which takes less time than torch's reports. It does not see storages from
	                              * before that are resized */
	bool script_stacks;          /* TorchScript: the lines of the script from which an operator is called */
	bool script_modules;         /* TorchScript: the modules around an operator */
	bool capture_overload_names; /* "Tensor" of aten::add.Tensor in addition to the name */
	bool record_ids;             /* torch's RecordFunction ids, requested by an observer; if false, they are recorded while
	                              * one of the bridge's own observers runs */
	const struct ops_counters *counters; /* counters to read in each operator; NULL: none */
	enum ops_device_events device_events; /* events to record around each operator and range; must be available */
};

/* Times measured by pairs of device events. */
struct ops_bridge_times {
	int64_t *ns;       /* by number of the pair; OPS_COUNT_UNKNOWN if it failed; freed with free(). NULL if out of memory */
	size_t count;
	uint64_t failures; /* number of failed calls of the device, and the reason of the first; "": none */
	char problem[256];
};

/* Receives the nodes of an observer. Called from any thread, one node at a time. */
struct ops_node_sink {
	void (*add)(void *context, const struct ops_node *node);
	void *context;
};

/* What an observer records about integer input tensors. Borrowed during the call. */
struct ops_integer_options {
	bool ranges;             /* their smallest and largest elements, in the node */
	const char *data_of;     /* names of operators, separated by commas, whose inputs are saved to files; "": none */
	const char *data_folder; /* for these files, with a '/' at its end; nothing is saved while it does not exist */
};

/* Constant and valid forever. No function throws an exception. */
struct ops_torch_bridge {
	uint32_t abi;           /* OPS_TORCH_BRIDGE_ABI of the bridge; always the first member */
	uint32_t collector_abi; /* its OPS_COLLECTOR_ABI */
	const char *torch_version; /* version of the headers with which it was compiled, "2.13.0+cpu" */

	/* Starts recording into the session that `collector` is recording, on the calling thread and wherever torch propagates
	 * its state (autograd threads, forks), or on all threads. Returns NULL, or the reason of a failure: static text; then
	 * nothing has started. The caller ensures that only one is attached. */
	const char *(*attach)(const struct ops_collector *collector, const struct ops_torch_options *options);

	/* Ends recording, from any thread. What the attaching thread still has of the bridge is inactive, and is removed with its
	 * next operator. */
	void (*detach)(void);

	/* Sets what is recorded from now on: operators, torch's ranges and allocations; any thread. A session begins with all of
	 * them. Unlike during a pause of the session, torch does not call the bridge for what is not recorded. When allocations are
	 * switched off, those that live are recorded as freed, because their frees would be missing. Without `own_memory` they are
	 * always recorded. */
	void (*set_detail)(bool operators, bool ranges, enum ops_allocations allocations);

	/* Removes the session's state from the calling thread, or puts it back: without operators, ranges and allocations torch does not
	 * need it, but copies it for each node of a backward pass. */
	void (*set_state)(bool wanted);

	/* While they run, observers create a node for every operator on every thread, with or without a profile. Several may run
	 * at once. One thread at a time may call these four functions. */

	/* Creates an observer that does not run yet; `*ret_observer` is its number, never 0. Returns NULL, or the reason of a
	 * failure: static text. */
	const char *(*observer_open)(const struct ops_node_sink *sink, const struct ops_integer_options *integers,
	                             uint64_t *ret_observer);
	/* Start and pause an observer; no effect if it is in that state already. An operator that began before the pause is still
	 * recorded. Returns NULL, or the reason that it cannot start. */
	const char *(*observer_start)(uint64_t observer);
	void (*observer_stop)(uint64_t observer);
	/* Adds the last node and releases the sink. */
	void (*observer_close)(uint64_t observer);

	/* Own ranges for observers of torch's ranges: torch's RecordFunction of scope USER_SCOPE. Used only while `*observed` is
	 * not 0 (relaxed), because without observers a range does not need torch. Returns NULL if out of memory. `*ret_recorded`
	 * is set if the session has recorded the range, too. `args` may be NULL. */
	const int *observed;
	void *(*range_begin)(const char *name, const char *args, size_t args_size, bool *ret_recorded);
	void (*range_end)(void *range);

	/* Storages of tensors, given by the address of their c10::TensorImpl, or of the gradient of one. One thread at a time may
	 * call these four functions. */

	/* Returns false if the tensor has no memory. */
	bool (*tensor_storage)(const void *tensor, bool gradient, struct ops_storage *ret_storage);
	/* Tracks a storage without keeping it alive: returns a handle, valid until it is dropped. Returns NULL if the tensor has
	 * no storage. */
	void *(*storage_hold)(const void *tensor, bool gradient);
	/* Returns false if the storage no longer exists or has no memory. */
	bool (*storage_look)(void *held, struct ops_storage *ret_storage);
	void (*storage_drop)(void *held);

	/* Returns whether the device can time operators by its events. */
	bool (*device_events_available)(enum ops_device_events device);
	/* Called after detach, without the GIL: waits for the device and measures all pairs of the session. */
	void (*pop_device_times)(struct ops_bridge_times *ret_times);

	/* Returns whether torch traces a function on this thread, so that its calls become part of a graph. */
	bool (*is_tracing)(void);
	/* Returns whether profiles are to show which backward node belongs to which forward operator, as set in torch. */
	bool (*forward_backward_enabled)(void);
};

const struct ops_torch_bridge *ops_torch_bridge_get(void);

#ifdef __cplusplus
}
#endif
#endif
