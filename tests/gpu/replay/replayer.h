/* SPDX-License-Identifier: Apache-2.0
 *
 * A collector of the intake that replays a file of records (records.h), in addition to CUPTI's collector: its records go through
 * the same decoder. With the host ranges in the file, the result is a recording that is the same on every machine and at any
 * time.
 */
#ifndef OPS_TESTS_GPU_REPLAYER_H
#define OPS_TESTS_GPU_REPLAYER_H

#include <opstrobe/trace.h>

#include "gpu/cupti_records.h"
#include "gpu/intake.h"
#include "records.h"

struct replayer {
	const void *bytes;
	size_t size;
	uint32_t version;
	struct ops_cupti library;
	struct ops_cupti_decoder decoder;
	struct ops_intern text_numbers; /* uint64_t */
	OPS_ARRAY(const char *) texts;  /* by place in text_numbers; lie in text_store */
	struct ops_intern text_store;
	struct records_clock start, stop; /* of the file */
	bool has_clock;
	uint64_t records;               /* replayed */
};

/* The file must outlive the replayer. Returns false if it is not such a file. A process has one replayer at a time. */
bool replayer_init(struct replayer *replayer, const void *bytes, size_t size);
void replayer_release(struct replayer *replayer);
struct ops_device_collector replayer_collector(struct replayer *replayer);

/* Converts the file, its ranges and records, to a trace. */
enum ops_code replayer_trace(struct replayer *replayer, uint32_t kinds, struct ops_trace **ret_trace, struct ops_error *error);

#endif
