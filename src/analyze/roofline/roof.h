/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a processor can be at most: its roof. Of the CPU what `opstrobe roof` measured, of a GPU what its maker says.
 */
#ifndef OPS_ANALYZE_ROOF_H
#define OPS_ANALYZE_ROOF_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#include "base/json_writer.h"

/* Types that processors compute with at different speeds. */
enum roof_type {
	ROOF_FLOAT64,
	ROOF_FLOAT32,
	ROOF_TFLOAT32, /* of float32 by tensor cores */
	ROOF_FLOAT16,
	ROOF_BFLOAT16,
	ROOF_FLOAT8,
	ROOF_INT8,
	ROOF_TYPE_COUNT,
	ROOF_NO_TYPE = ROOF_TYPE_COUNT,
};

#define ROOF_LEVELS_MAX 16
#define ROOF_NAME_ROOM 160

enum roof_source { ROOF_UNKNOWN, ROOF_MEASURED, ROOF_PUBLISHED, ROOF_GIVEN };

struct roof {
	enum roof_source source;
	char name[ROOF_NAME_ROOM]; /* of the processor; may be empty */
	double flops[ROOF_TYPE_COUNT]; /* a second; 0: not known */
	/* Bytes a second that were measured with a number of bytes in use, the fewest first; one level: always. */
	struct {
		double bytes;
		double per_second;
	} levels[ROOF_LEVELS_MAX];
	size_t level_count;
	/* A cache that outlives kernels. What an operator finds there it moves so fast. 0: none. */
	double cache_bytes, cache_per_second;
	double call_ns; /* the least that a call takes; 0: not known */
};

/* By c10::ScalarType. */
enum roof_type roof_type_of(uint8_t dtype);
const char *roof_type_name(enum roof_type type);

/* What a text says: "FLOPS,BANDWIDTH" a second with prefixes ("67T,3.35T"), or a JSON object (docs/manual/roofline.md).
 * OPS_INVALID for another text. */
enum ops_code roof_parse(struct ops_string text, struct roof *ret_roof, struct ops_error *error);
/* Of the CPU: the metadata "roof". Where there is none, or none that makes sense, unknown. */
void roof_of_cpu(const struct ops_trace *trace, struct roof *ret_roof);
/* Of the first device in "deviceProperties", by its name; the name alone where its peaks are not known. */
void roof_of_device(const struct ops_trace *trace, struct roof *ret_roof);

/* The least time for a number of operations; 0 where the roof does not say. */
double roof_compute_ns(const struct roof *roof, enum roof_type type, double flops);
/* Likewise for bytes, which are in memory; only where the call was faster than that, as much of them in the cache as fits. */
double roof_memory_ns(const struct roof *roof, double bytes, double time_ns);
/* {"name", "source", "flops", "bandwidth", "call_us"} */
void roof_write(const struct roof *roof, struct ops_json_writer *json);

#endif
