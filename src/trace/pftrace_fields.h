/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers of Perfetto's messages, for the reader and the writer, from Perfetto's published protos/perfetto/trace.
 */
#ifndef OPS_TRACE_PFTRACE_FIELDS_H
#define OPS_TRACE_PFTRACE_FIELDS_H

/* Name of an annotation that marks files of Opstrobe, in which some arguments have a meaning for Opstrobe only. */
#define PFTRACE_MARK "opstrobe"

enum { TRACE_PACKET = 1 };
/* TracePacket, and its TracePacketDefaults */
enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_GPU_STAGE = 53,
	PACKET_CLOCK = 58,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	DEFAULTS_TRACK_EVENT = 11,
};
/* ClockSnapshot and its Clock */
enum { SNAPSHOT_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, CLOCK_IS_INCREMENTAL = 3, CLOCK_MULTIPLIER = 4 };
/* Clocks */
enum { REALTIME = 1, BOOTTIME = 6, FIRST_SEQUENCE_CLOCK = 64, LAST_SEQUENCE_CLOCK = 127 };
/* TrackDescriptor and its descriptors */
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6, PROCESS_LABELS = 8 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
/* TrackEvent */
enum {
	EVENT_CATEGORY_ID = 3,
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_ID = 10,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_COUNTER = 30,
	EVENT_COUNTER_DOUBLE = 44,
	EVENT_FLOW = 47,
	EVENT_FLOW_END = 48,
};
enum { COUNTER_UNIT = 3, COUNTER_UNIT_BYTES = 3 };
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
/* DebugAnnotation */
enum {
	ANNOTATION_NAME_ID = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_TEXT = 6,
	ANNOTATION_POINTER = 7,
	ANNOTATION_JSON = 9,
	ANNOTATION_NAME = 10,
	ANNOTATION_DICT = 11,
	ANNOTATION_ARRAY = 12,
	ANNOTATION_TEXT_ID = 17,
};
/* InternedData, and the common fields of its entries */
enum {
	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_ANNOTATION_NAMES = 3,
	INTERNED_GPU_SPECIFICATIONS = 24,
	INTERNED_TEXTS = 29,
	INTERNED_KERNELS = 1000,
	ENTRY_ID = 1,
	ENTRY_NAME = 2,
};
/* GpuRenderStageEvent, and its ComputeKernelLaunch */
enum {
	STAGE_DURATION = 2,
	STAGE_EXTRA = 6,
	STAGE_GPU = 11,
	STAGE_QUEUE = 13,
	STAGE_STAGE = 14,
	STAGE_NAME = 17,
	STAGE_KERNEL = 19,
	STAGE_NAME_ID = 20,
	STAGE_LAUNCH = 21,
	LAUNCH_GRID = 1,
	LAUNCH_BLOCK = 2,
};

#endif
