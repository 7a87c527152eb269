/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording files as trace files, such as the copies that `opstrobe dump` writes.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "read/reading.h"
#include "read/recovery.h"
#include "record/spill_format.h"

bool ops_is_recording(const char *head, size_t size)
{
	const uint32_t magic = OPS_SPILL_MAGIC;

	return size >= sizeof(magic) && !memcmp(head, &magic, sizeof(magic));
}

/* Returns whether a path leads to an uncompressed recording file. It is read in units, because a process may write to it. */
static bool is_uncompressed_recording(const char *path)
{
	char head[sizeof(uint32_t)];
	struct stat about;
	FILE *file = !stat(path, &about) && S_ISREG(about.st_mode) ? fopen(path, "re") : NULL;
	size_t size = file ? fread(head, 1, sizeof(head), file) : 0;

	if (file)
		fclose(file);
	return ops_is_recording(head, size);
}

enum ops_code ops_read_recording(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct ops_recovery_source source = {.fd = -1};
	struct ops_buffer bytes = {0};
	enum ops_code code;

	if (reading->path && is_uncompressed_recording(reading->path))
		return ops_trace_recover_path(reading->path, 0, ret_trace, NULL, reading->error);
	code = ops_reading_all(reading, &bytes);
	source.bytes = ops_buffer_text(&bytes);
	source.size = bytes.size;
	if (!code)
		code = ops_trace_recover_from(&source, ret_trace, NULL, reading->error);
	ops_buffer_release(&bytes);
	return code;
}
