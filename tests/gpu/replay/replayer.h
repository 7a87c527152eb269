/* SPDX-License-Identifier: Apache-2.0
 *
 * A file of records (records.h) as a collector of the intake, beside CUPTI's: its records go through the same decoder. With the
 * ranges that the file has of the host, it becomes a recording that is the same on every machine and at any time.
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

/* The file has to outlive it. False for what is no such file. One replayer at a time in a process. */
bool replayer_init(struct replayer *replayer, const void *bytes, size_t size);
void replayer_release(struct replayer *replayer);
struct ops_device_collector replayer_collector(struct replayer *replayer);

/* The file from its ranges and records to the trace. */
enum ops_code replayer_trace(struct replayer *replayer, uint32_t kinds, struct ops_trace **ret_trace, struct ops_error *error);

#endif
