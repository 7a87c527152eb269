/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/memory.h: what holds memory over time. The allocator's reports of a trace become blocks, each the lifetime of
 * one storage. The operators that read and write them, and the roles that the program reported, determine the category of each
 * block:
 *
 *     struct ops_memory_timeline *timeline = NULL;
 *     ops_memory_timeline_new(trace, &timeline, &error);
 *     ops_write_memory_timeline(timeline, "memory.html", OPS_MEMORY_HTML, NULL, &error);
 *     ops_memory_timeline_free(timeline);
 *
 * A timeline does not change, so several threads may read it. It keeps a reference to its trace.
 */
#ifndef OPSTROBE_INTERNAL_MEMORY_H
#define OPSTROBE_INTERNAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name, and colour in plots (light, dark background). The order is that of torch's exports.
 *
 * PARAMETER         of a model, or of an optimizer; without either, what is used to compute and then changed by a gradient
 * OPTIMIZER_STATE   what an optimizer keeps from step to step
 * INPUT             what the model computes with that does not come from parameters: data, targets, masks, buffers
 * TEMPORARY         made and freed within one operator, or within one step of an optimizer; or made from gradients
 * ACTIVATION        computed from parameters, outside the backward pass
 * GRADIENT          what is accumulated into a leaf's .grad
 * AUTOGRAD_DETAIL   everything else that the backward pass makes
 * UNKNOWN           the rest
 */
#define OPS_MEMORY_CATEGORIES(X)                                                                   \
	X(PARAMETER, "Parameter", "#2a7d4f", "#4fb37c")                                            \
	X(OPTIMIZER_STATE, "Optimizer state", "#c98a1b", "#e0ab4a")                                \
	X(INPUT, "Input", "#4a4f57", "#b9bec7")                                                    \
	X(TEMPORARY, "Temporary", "#8d6bc4", "#a98be0")                                            \
	X(ACTIVATION, "Activation", "#c8453b", "#e8746b")                                          \
	X(GRADIENT, "Gradient", "#2457b3", "#5b8def")                                              \
	X(AUTOGRAD_DETAIL, "Autograd detail", "#4aa3c7", "#7cc6e4")                                \
	X(UNKNOWN, "Unknown", "#a3a7ad", "#6b7078")

enum ops_memory_category {
#define OPS_MEMORY_CATEGORY_ENUM(name, title, light, dark) OPS_MEMORY_##name,
	OPS_MEMORY_CATEGORIES(OPS_MEMORY_CATEGORY_ENUM)
#undef OPS_MEMORY_CATEGORY_ENUM
	OPS_MEMORY_CATEGORY_COUNT
};
const char *ops_memory_category_name(enum ops_memory_category category); /* "OPTIMIZER_STATE", as torch and data name it; static */
const char *ops_memory_category_title(enum ops_memory_category category); /* "Optimizer state", in text; static */

enum ops_memory_action {
	OPS_MEMORY_PREEXISTING = 1, /* existed when the recording began; time -1 */
	OPS_MEMORY_CREATE = 2,
	OPS_MEMORY_INCREMENT_VERSION = 3, /* changed in place */
	OPS_MEMORY_DESTROY = 4,
};

/* The lifetime of a storage. */
struct ops_memory_block {
	int64_t start_ns; /* INT64_MIN: before the recording */
	int64_t end_ns;   /* INT64_MAX: after the recording */
	uint64_t address;
	int64_t bytes;        /* >= 0 */
	uint32_t row;         /* innermost event that allocated it; OPS_NONE: unknown */
	uint32_t stack;       /* string id: the call stack that the file gives the allocation, as ops_events.call_stack; OPS_NONE:
	                       * none */
	uint32_t name;        /* string id of its name in the program; "" if it has none */
	uint32_t shape;       /* for ops_memory_shape */
	uint8_t category;     /* enum ops_memory_category; the last one if it changes */
	uint8_t device_type;  /* c10::DeviceType */
	int16_t device_index; /* -1 for the CPU */
};

/* A change of memory. */
struct ops_memory_step {
	int64_t time_ns; /* -1 for PREEXISTING */
	uint32_t block;
	uint32_t version; /* version of the block before an INCREMENT_VERSION, else the current one */
	uint8_t action;
	uint8_t category;
	uint8_t next_category; /* category after an INCREMENT_VERSION, else the same as `category` */
};

/* Data that the trace lacks, so that some categories are missing. */
enum ops_memory_gap {
	OPS_MEMORY_NO_RECORDS = 1, /* no memory records: there is nothing to show */
	OPS_MEMORY_NO_STORAGES = 2, /* no shapes: INPUT and ACTIVATION become UNKNOWN, and only gradients that an optimizer saw or
	                             * that existed at the end are known */
	OPS_MEMORY_NO_ROLES = 4,    /* the program did not report parameters and optimizer states */
};
const char *ops_memory_gap_text(enum ops_memory_gap gap); /* one line of text; static */

struct ops_memory_timeline {
	struct ops_trace *trace;
	struct ops_memory_block *blocks; /* in order of first appearance */
	struct ops_memory_step *steps;   /* by time, then action */
	size_t block_count;
	size_t step_count;
	uint32_t *devices; /* for ops_memory_next_device: the devices of the blocks, in order */
	size_t device_count;
	uint32_t gaps; /* enum ops_memory_gap */
	struct ops_intern *shapes; /* texts; NULL without storages */
	const struct ops_place *places; /* by row, borrowed from the trace: derive/places.h */
};

/* Derives the timeline of a trace. Linear in the size of the trace, except for sorting the steps. */
enum ops_code ops_memory_timeline_new(struct ops_trace *trace, struct ops_memory_timeline **ret_timeline,
                                      struct ops_error *error);
/* Updates the bytes of each category by a step. */
void ops_memory_apply(const struct ops_memory_timeline *timeline, const struct ops_memory_step *step,
                      int64_t held[OPS_MEMORY_CATEGORY_COUNT]);
void ops_memory_timeline_free(struct ops_memory_timeline *timeline); /* NULL is allowed */

/* Selects the blocks of one device. */
struct ops_memory_device {
	uint8_t type;  /* c10::DeviceType */
	int16_t index; /* -1 for the CPU */
};
static inline bool ops_memory_on_device(const struct ops_memory_block *block, struct ops_memory_device device)
{
	return block->device_type == device.type && block->device_index == device.index;
}

/* Size of a buffer for the name or title of a device. */
#define OPS_MEMORY_DEVICE_ROOM 32
/* "cpu", "cuda:0": as torch and data name the device. */
void ops_memory_device_name(struct ops_memory_device device, char ret_name[OPS_MEMORY_DEVICE_ROOM]);
/* "CPU", and "GPU 0" for cuda:0, hip:0 and xpu:0, in text; devices of other types have torch's name. */
void ops_memory_device_title(struct ops_memory_device device, char ret_title[OPS_MEMORY_DEVICE_ROOM]);

/* Returns the device of blocks that comes after another by type and index (NULL: the first device). Returns false if there are no
 * more. */
bool ops_memory_next_device(const struct ops_memory_timeline *timeline, const struct ops_memory_device *after,
                            struct ops_memory_device *ret_device);

/* --- the peak ----------------------------------------------------------------------------------------------------- */

/* Bytes of one group at the peak. */
struct ops_memory_share {
	int64_t bytes;
	struct ops_string name; /* for a line, its file; "" if it has none. Borrowed from the trace */
	uint32_t line;          /* line number; 0 in the other lists */
	uint32_t blocks;        /* number of blocks */
};

/* A moment and the memory held then. Lists are sorted by bytes, largest first. */
struct ops_memory_peak {
	struct ops_memory_device device;
	int64_t time_ns;      /* -1: before the recording */
	int64_t bytes;
	int64_t before_bytes; /* bytes of these that were allocated before the recording */
	bool chosen;          /* the caller selected this moment; it is not the peak of a range */
	uint32_t row;         /* innermost event of the allocation that made the peak, or OPS_NONE */
	int64_t by_category[OPS_MEMORY_CATEGORY_COUNT];
	uint32_t *blocks;     /* blocks that existed then, as indexes into those of the timeline */
	size_t block_count;
	struct ops_memory_share *operators; /* outermost operators that allocated the blocks */
	size_t operator_count;
	struct ops_memory_share *modules;   /* innermost modules; empty without recorded module calls */
	size_t module_count;
	struct ops_memory_share *lines;     /* innermost lines outside of torch; empty without recorded Python calls */
	size_t line_count;
	struct ops_memory_share *shapes;    /* shapes of tensors; empty without recorded storages */
	size_t shape_count;
};
/* Computes the peak. */
enum ops_code ops_memory_peak_of(const struct ops_memory_timeline *timeline, struct ops_memory_device device,
                                 struct ops_memory_peak *ret_peak, struct ops_error *error);
/* Computes the peak of a range of time, in ns of the trace's clock. If the range is a single moment, returns the memory held then. */
enum ops_code ops_memory_peak_within(const struct ops_memory_timeline *timeline, struct ops_memory_device device,
                                     int64_t from_ns, int64_t to_ns, struct ops_memory_peak *ret_peak,
                                     struct ops_error *error);
/* The time at which the memory of each device is described. Zeroed: at its peak in the trace. */
struct ops_memory_moment {
	const int64_t *at_ns; /* this time after ops_trace_origin */
	const char *steps;    /* at the peak in these steps: "3" or "3:5" */
};
/* Visits each device of a trace, by type and index, at a moment (NULL: at its peak). OPS_INVALID if the trace does not have the time or
 * the steps. Visits at most 256 devices, because a corrupt file could list any number and each costs a pass over all
 * blocks. A visitor returns false if out of memory. */
typedef bool ops_memory_visitor(void *context, const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak);
enum ops_code ops_memory_each_peak(const struct ops_trace *trace, const struct ops_memory_moment *moment, ops_memory_visitor *visit,
                                   void *context, struct ops_error *error);
/* Return the outermost operator, module or line that allocated a block, as in the lists of the peak. */
struct ops_string ops_memory_operator(const struct ops_memory_timeline *timeline, uint32_t block);
struct ops_string ops_memory_module(const struct ops_memory_timeline *timeline, uint32_t block);
struct ops_string ops_memory_line(const struct ops_memory_timeline *timeline, uint32_t block, uint32_t *ret_line);
/* Returns the first tensor that an operator saw to fill the block: "[8, 64] float"; "": unknown. Borrowed from the timeline. */
struct ops_string ops_memory_shape(const struct ops_memory_timeline *timeline, uint32_t block);
void ops_memory_peak_release(struct ops_memory_peak *peak); /* zeroed or released ones are allowed */

/* Why a result is empty. */
#define OPS_MEMORY_EMPTY "no allocations were recorded: record with profile_memory=True or opstrobe run --memory"

/* Renders each device of a trace at a moment, as ops_memory_each_peak visits them. Text and errors as in ops_memory_peak_text. */
enum ops_code ops_memory_text(struct ops_trace *trace, size_t top, size_t columns, const struct ops_memory_moment *moment, char **ret_text,
                              size_t *ret_size, struct ops_error *error);
/* Renders the peak as text for people that fits `columns` characters (0: unlimited), or as one JSON object. `top` limits each
 * list; 0: no lists. The caller frees the text with ops_free. */
enum ops_code ops_memory_peak_text(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak,
                                   size_t top, size_t columns, char **ret_text, size_t *ret_size, struct ops_error *error);
enum ops_code ops_memory_peak_json(const struct ops_memory_timeline *timeline, const struct ops_memory_peak *peak,
                                   size_t top, char **ret_text, size_t *ret_size, struct ops_error *error);

/* --- data for charts: JSON as in docs/openapi.yaml, freed with ops_free ------------------------------------------- */

/* A device and a range of time; times in ns since `origin_ns`. */
struct ops_memory_window {
	struct ops_memory_device device;
	int64_t origin_ns;
	int64_t from_ns;
	int64_t to_ns;
	size_t limit; /* maximum number of points or blocks; at least 1 */
};

/* Returns categories, gaps, and all devices (not only that of the window) with their peaks in the window. `limit` applies to each
 * list; 0: no lists. */
enum ops_code ops_memory_json(const struct ops_memory_timeline *timeline, const struct ops_memory_window *window,
                              char **ret_text, size_t *ret_size, struct ops_error *error);
/* Returns the bytes of each category over time: for each of `limit` equal parts of the window, those at its peak. */
enum ops_code ops_memory_curve_json(const struct ops_memory_timeline *timeline, const struct ops_memory_window *window,
                                    char **ret_text, size_t *ret_size, struct ops_error *error);
/* Returns the blocks that exist in the window, largest first. */
enum ops_code ops_memory_blocks_json(const struct ops_memory_timeline *timeline, const struct ops_memory_window *window,
                                     char **ret_text, size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
