/* SPDX-License-Identifier: Apache-2.0
 *
 * See trace_head.h.
 */
#include "read/trace_head.h"

#include <string.h>
#include <sys/stat.h>

#include "base/source.h"
#include "read/reading.h"

/* More than the description of eight devices, which is the first thing in a file of torch's, and than what a test bench says
 * of itself before (26 kB in a file of HTA's). */
#define HEAD_BYTES (64u << 10)

/* Reads on until `room` is full or the source ends; less after a failure. */
static size_t read_on(struct ops_source *source, char *out, size_t room)
{
	size_t size = 0, got = 1;

	while (got && size < room && !ops_source_read(source, out + size, room - size, &got, NULL))
		size += got;
	return size;
}

static bool trace_head_looks_like_trace(const char *text, size_t size)
{
	static const char *const words[] = {"\"traceEvents\"", "\"deviceProperties\"", "\"ph\""};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(text, size, words[i], strlen(words[i])))
			return true;
	return ops_is_format_but_json(text, size);
}

bool ops_begins_like_trace(const char *path)
{
	struct ops_source *source = NULL;
	char text[HEAD_BYTES];
	bool compressed = false;
	struct stat about;
	size_t size;

	/* Who opens a pipe waits. */
	if (stat(path, &about) || !S_ISREG(about.st_mode) || ops_source_open_file(path, &source, NULL))
		return false;
	size = read_on(source, text, 4);
	if (ops_source_decompress(&source, text, size, &compressed, NULL))
		return false;
	size = compressed ? read_on(source, text, sizeof(text)) : size + read_on(source, text + size, sizeof(text) - size);
	ops_source_close(source);
	return trace_head_looks_like_trace(text, size);
}
