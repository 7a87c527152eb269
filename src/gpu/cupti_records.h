/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts CUPTI's activity records to activities of the intake. The records of CUPTI 11.8 to 13 have a common prefix; nothing
 * after it is read.
 */
#ifndef OPS_GPU_CUPTI_RECORDS_H
#define OPS_GPU_CUPTI_RECORDS_H

#include "base/array.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "gpu/cupti_library.h"
#include "base/occupancy.h"
#include "record/activities.h"

#define OPS_CUPTI_RECENT_NAMES 256u    /* a power of two, like the next */
#define OPS_CUPTI_RECENT_LAUNCHES 512u

/* The data shared by all calls of a function; name 0: not read yet. */
struct ops_cupti_call {
	uint32_t name;
	uint32_t details;
	bool is_shown;
};

/* What kernel launches that differ only in time and name have in common. Has no padding, because it is compared as bytes. */
struct ops_cupti_launch {
	struct ops_kernel_shape shape;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t graph;
	uint32_t channel;
	uint32_t channel_type;
	int32_t priority;
	uint32_t unused;
	uint64_t graph_node;
};
_Static_assert(sizeof(struct ops_cupti_launch) == 72, "no padding");

/* An NVTX range that has begun. */
struct ops_cupti_marker {
	int64_t start_ns;
	uint32_t name;
	bool is_open;
};

/* A CUDA event that was recorded on a stream. */
struct ops_cupti_event {
	uint32_t context;
	uint32_t event;
	uint32_t correlation; /* of the call that recorded it */
	uint32_t stream;
};

/* A synchronisation, whose device and event are known only at the end. */
struct ops_cupti_sync {
	struct ops_activity activity;
	uint32_t type; /* CUpti_ActivitySynchronizationType */
	uint32_t context;
	uint32_t event;
};

/* An allocation or a free. */
struct ops_cupti_memory {
	int64_t time_ns;
	uint64_t address;
	uint64_t bytes;
	uint64_t pool; /* address of the pool; 0: none */
	uint32_t correlation;
	uint32_t context;
	int32_t stream;    /* -1: none */
	uint32_t kind;     /* CUpti_ActivityMemoryKind */
	uint32_t variable; /* text: variable that the memory belongs to; 0: none */
	uint16_t device;
	bool is_release;
};

/* A decoder lives as long as a session. A text, and the details of a launch shape, are built once. */
struct ops_cupti_decoder {
	const struct ops_cupti *library;
	struct ops_activities *activities;
	uint32_t kinds; /* requested kinds */
	OPS_ARRAY(struct ops_multiprocessor) devices; /* by ordinal; all zero if unknown */
	struct ops_intern names;       /* as in CUPTI's records */
	OPS_ARRAY(uint32_t) name_texts; /* text id for activities, by number in names */
	struct ops_intern shapes;      /* launches, copies and other keys of texts, as bytes */
	OPS_ARRAY(uint32_t) details;   /* text id for activities, by number in shapes */
	struct ops_intern contexts;    /* contexts that had work: uint32_t */
	OPS_ARRAY(uint16_t) context_devices; /* by number in contexts */
	OPS_ARRAY(struct ops_cupti_event) events;
	OPS_ARRAY(struct ops_cupti_sync) syncs;
	OPS_ARRAY(struct ops_cupti_memory) memories;
	struct ops_intern marker_ids;
	OPS_ARRAY(struct ops_cupti_marker) markers; /* by number in marker_ids */
	size_t open_markers;
	struct ops_cupti_call *runtime_calls; /* by callback id; NULL before the first call */
	struct ops_cupti_call *driver_calls;
	struct {
		const char *mangled;
		uint32_t number; /* number in names */
	} recent[OPS_CUPTI_RECENT_NAMES]; /* by address: most kernels ran before, with the name at the same address */
	struct {
		struct ops_cupti_launch launch;
		uint32_t details; /* text; 0: none */
	} recent_launches[OPS_CUPTI_RECENT_LAUNCHES]; /* by the members of launches that differ most */
	struct ops_buffer text;        /* scratch */
};

void ops_cupti_decoder_init(struct ops_cupti_decoder *decoder, const struct ops_cupti *library,
                            struct ops_activities *activities, uint32_t kinds);
void ops_cupti_decoder_release(struct ops_cupti_decoder *decoder);

/* Adds the activity of a record if its kind is requested; `size` is the number of readable bytes. A record that is too short, has
 * no time or cannot be stored counts as lost. */
void ops_cupti_decode(struct ops_cupti_decoder *decoder, const CUpti_Activity *record, size_t size);
/* Adds what can only be derived from all records. Called once, after the last one. */
void ops_cupti_decode_end(struct ops_cupti_decoder *decoder);

#endif
