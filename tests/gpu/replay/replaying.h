/* SPDX-License-Identifier: Apache-2.0
 *
 * Replays records to a valid trace, or fails the test.
 */
#ifndef OPS_TESTS_GPU_REPLAYING_H
#define OPS_TESTS_GPU_REPLAYING_H

#include <stdio.h>
#include <stdlib.h>

#include "replayer.h"

struct loaded {
	char *bytes; /* with a NUL behind */
	size_t size;
};

static inline struct loaded load_file(const char *path)
{
	FILE *opened = fopen(path, "rb");
	struct loaded file;

	if (!opened)
		fail_msg("cannot open %s", path);
	fseek(opened, 0, SEEK_END);
	file.size = (size_t)ftell(opened);
	rewind(opened);
	file.bytes = malloc(file.size + 1);
	assert_int_equal(fread(file.bytes, 1, file.size, opened), file.size);
	file.bytes[file.size] = '\0';
	fclose(opened);
	return file;
}

static inline struct ops_trace *replay_bytes(const void *bytes, size_t size)
{
	struct replayer replayer;
	struct ops_trace *trace = NULL;
	struct ops_error error;

	assert_true(replayer_init(&replayer, bytes, size));
	if (replayer_trace(&replayer, OPS_ACTIVITY_ALL, &trace, &error) || ops_trace_check(trace, &error))
		fail_msg("%s", error.text);
	replayer_release(&replayer);
	return trace;
}

#endif
