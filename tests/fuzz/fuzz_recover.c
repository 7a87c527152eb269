/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a recording file: the result is an error or a valid trace. fuzzing.h describes how to run it.
 *
 * What the reader would reject at once, such as another version, is corrected, so that inputs remain useful across versions.
 */
#include <string.h>

#include <opstrobe/internal/analyze.h>

#include "fuzzing.h"
#include "segments.h"
#include "read/recovery.h"
#include "record/spill_format.h"

#define FILE_BYTES_MAX (24u * OPS_BLOCK_BYTES)

static char file[FILE_BYTES_MAX];

static void make_current(void)
{
	struct ops_block head;
	struct ops_spill_header header;

	memcpy(&head, file, sizeof(head));
	memcpy(&header, file + sizeof(head), sizeof(header));
	head.magic = OPS_SPILL_MAGIC;
	head.abi = OPS_COLLECTOR_ABI;
	header.version = OPS_SPILL_VERSION;
	header.byte_order = OPS_SPILL_BYTE_ORDER;
	header.slot_bytes = sizeof(struct ops_slot);
	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head), &header, sizeof(header));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct ops_recovery_source source = {.fd = -1, .bytes = file, .size = segments_read(file, sizeof(file), bytes, size)};
	struct ops_trace *trace = NULL;
	struct ops_flame *flame = NULL;
	struct ops_recovery recovery;
	struct ops_error error;

	make_current();
	if (ops_trace_recover_from(&source, &trace, &recovery, &error))
		expect(error.code == OPS_CORRUPT || error.code == OPS_UNSUPPORTED, error.text);
	else
		expect(ops_trace_check(trace, &error) == OPS_OK, error.text);
	if (trace && !ops_flame_sampled_new(trace, &(struct ops_flame_choices){0}, &flame, &error))
		ops_flame_free(flame);
	ops_trace_unref(trace);
	return 0;
}
