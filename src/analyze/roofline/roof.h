/* SPDX-License-Identifier: Apache-2.0
 *
 * The roof of a processor: the highest rates that it can reach. For the CPU `opstrobe roof` measures them; for a GPU
 * they are the manufacturer's figures.
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
	ROOF_TFLOAT32, /* float32 on tensor cores */
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
	char name[ROOF_NAME_ROOM]; /* name of the processor; may be empty */
	double flops[ROOF_TYPE_COUNT]; /* per second; 0: unknown */
	/* Measured bytes per second by working set, the smallest first. A single level applies to all sizes. */
	struct {
		double bytes;
		double per_second;
	} levels[ROOF_LEVELS_MAX];
	size_t level_count;
	/* Capacity and bandwidth of a cache whose contents survive between kernels. 0: none. */
	double cache_bytes, cache_per_second;
	double call_ns; /* shortest possible duration of a call; 0: unknown */
};

/* Maps a c10::ScalarType. */
enum roof_type roof_type_of(uint8_t dtype);
const char *roof_type_name(enum roof_type type);
/* Returns the name of a dtype, including types that no roof has: "int64". `type`: that of the dtype, or TFLOAT32. */
const char *roof_dtype_name(uint8_t dtype, enum roof_type type);

/* Parses "FLOPS,BANDWIDTH" per second with prefixes ("67T,3.35T"), or a JSON object (docs/manual/roofline.md). Returns
 * OPS_INVALID for any other text. */
enum ops_code roof_parse(struct ops_string text, struct roof *ret_roof, struct ops_error *error);
/* The roof of the CPU, from the metadata "roof"; unknown if that is absent or malformed. */
void roof_of_cpu(const struct ops_trace *trace, struct roof *ret_roof);
/* The roof of the first device in "deviceProperties", by its name. If its peaks are unknown, only the name is set. */
void roof_of_device(const struct ops_trace *trace, struct roof *ret_roof);

/* Returns the shortest time for a number of operations; 0 if the roof does not have the rate. */
double roof_compute_ns(const struct roof *roof, enum roof_type type, double flops);
/* Returns the shortest time to move this many bytes, assuming they are in memory. If the call was faster than that, as
 * many of them as fit count as being in the cache. */
double roof_memory_ns(const struct roof *roof, double bytes, double time_ns);
/* {"name", "source", "flops", "bandwidth", "call_us"} */
void roof_write(const struct roof *roof, struct ops_json_writer *json);

#endif
