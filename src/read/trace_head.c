/* SPDX-License-Identifier: Apache-2.0
 *
 * See trace_head.h.
 */
#include "read/trace_head.h"

#include <string.h>
#include <sys/stat.h>

#include "base/json_scan.h"
#include "base/source.h"
#include "read/reading.h"

/* More than the description of eight devices, which comes first in torch's files, and than a test bench's description of itself
 * before that (26 kB in one of HTA's files). */
#define HEAD_BYTES (64u << 10)

/* Reads until `room` is full or the source ends; less after a failure. */
static size_t read_on(struct ops_source *source, char *out, size_t room)
{
	size_t size = 0, got = 1;

	while (got && size < room && !ops_source_read(source, out + size, room - size, &got, NULL))
		size += got;
	return size;
}

/* Returns whether the first member is that of Kineto's and Opstrobe's files. Small files of other programs begin with it, too. */
static bool has_schema_first(const char *text, size_t size)
{
	static const char word[] = "\"schemaVersion\"";
	const char *end = text + size, *at = ops_json_space_end(text, end);

	if (at == end || *at != '{')
		return false;
	at = ops_json_space_end(at + 1, end);
	return (size_t)(end - at) >= strlen(word) && !memcmp(at, word, strlen(word));
}

static bool trace_head_looks_like_trace(const char *text, size_t size)
{
	static const char *const words[] = {"\"traceEvents\"", "\"deviceProperties\"", "\"ph\""};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(text, size, words[i], strlen(words[i])))
			return true;
	/* Metadata of a recording, such as its samples of stacks, may be longer than that. */
	if (size == HEAD_BYTES && has_schema_first(text, size))
		return true;
	/* An execution trace lies next to the trace of the same run: it is not another one. */
	return ops_is_format_but_json(text, size) && !ops_is_execution_trace(text, size);
}

bool ops_begins_like_trace(const char *path)
{
	struct ops_source *source = NULL;
	char text[HEAD_BYTES];
	bool compressed = false;
	struct stat about;
	size_t size;

	/* Opening a pipe would wait. */
	if (stat(path, &about) || !S_ISREG(about.st_mode) || ops_source_open_file(path, &source, NULL))
		return false;
	size = read_on(source, text, 4);
	if (ops_source_decompress(&source, text, size, &compressed, NULL))
		return false;
	size = compressed ? read_on(source, text, sizeof(text)) : size + read_on(source, text + size, sizeof(text) - size);
	ops_source_close(source);
	return trace_head_looks_like_trace(text, size);
}
