/* SPDX-License-Identifier: Apache-2.0
 *
 * Folded (collapsed) stacks, the format of flamegraph.pl and similar tools: a line for each stack, with its frames from the
 * outermost on, separated by ';', a space and a number. The format does not define the unit of the number; it is shown as
 * nanoseconds, which is what Opstrobe writes. The stacks are placed one after another.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/text.h"
#include "base/window.h"
#include "read/stack_rows.h"

struct folded {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_stack_rows rows;
	struct ops_stack_thread thread;
	OPS_ARRAY(uint32_t) stack;
	int64_t now_ns;
	bool has_ended;
};

/* Parses the number that ends a line, and the stack before it. Decimals of numbers are dropped. */
static bool parse_line(struct ops_string line, struct ops_string *ret_stack, int64_t *ret_count)
{
	const char *space = memrchr(line.bytes, ' ', line.size), *at;
	int64_t count = 0;

	if (!space)
		return false;
	for (at = space + 1; at < line.bytes + line.size && *at >= '0' && *at <= '9' && count < OPS_TIME_MAX_NS / 10; at++)
		count = count * 10 + (*at - '0');
	if (at == space + 1)
		return false;
	if (at < line.bytes + line.size && *at == '.')
		for (at++; at < line.bytes + line.size && *at >= '0' && *at <= '9';)
			at++;
	*ret_stack = (struct ops_string){line.bytes, (size_t)(space - line.bytes)};
	*ret_count = count;
	return at == line.bytes + line.size;
}

static enum ops_code put_folded_line(struct folded *f, struct ops_string line, struct ops_buffer *out)
{
	struct ops_reading *in = f->rows.in;
	struct ops_string stack;
	int64_t count;

	if (!parse_line(line, &stack, &count))
		return ops_reading_fault(in, line.bytes, "a line of folded stacks that does not end in a space and a number");
	f->stack.count = 0;
	for (const char *at = stack.bytes, *end = ops_string_end(stack), *next; at <= end; at = next + 1) {
		next = at < end ? memchr(at, ';', (size_t)(end - at)) : NULL;
		next = next ? next : end;
		if (next > at && !OPS_ARRAY_APPEND(&f->stack, ops_stack_frame_text(&f->rows, (struct ops_string){at, (size_t)(next - at)})))
			return ops_fault_memory(in->error);
	}
	if (count > OPS_TIME_MAX_NS - f->now_ns)
		return ops_reading_fault(in, line.bytes, "numbers whose sum is too large");
	ops_stack_report(&f->rows, ops_window_offset(&in->window, line.bytes), false, false);
	ops_stack_set(&f->rows, &f->thread, f->stack.items, f->stack.count, f->now_ns, out);
	f->now_ns += count;
	return OPS_OK;
}

static enum ops_code folded_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct folded *f = (struct folded *)(void *)transcoder;
	enum ops_code code = OPS_OK;

	while (!code && !f->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES) {
		struct ops_string line;

		code = ops_reading_line(f->rows.in, &line);
		if (code)
			break;
		if (!line.bytes) {
			ops_stack_set(&f->rows, &f->thread, NULL, 0, f->now_ns, text);
			ops_stack_put_end(&f->rows, text);
			f->has_ended = true;
		} else if (line.size && line.bytes[0] != '#') {
			code = put_folded_line(f, line, text);
		}
		text->failed |= f->rows.failed;
	}
	return code;
}

/* The first line that is not a comment must be a stack. */
bool ops_is_folded(const char *head, size_t size)
{
	struct ops_string line = ops_stack_first_line(head, size), stack;
	int64_t count;

	for (size_t i = 0; i < line.size; i++)
		if ((uint8_t)line.bytes[i] < ' ' && line.bytes[i] != '\t' && line.bytes[i] != '\r')
			return false;
	return line.size && line.bytes[0] != '{' && line.bytes[0] != '[' && line.bytes[0] != ' ' && parse_line(line, &stack, &count);
}

enum ops_code ops_read_folded(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct folded f = {.transcoder = {folded_next}, .rows = {.in = reading}, .thread = {.tid = 1}};
	enum ops_code code = ops_read_transcoded(reading, &f.transcoder, ret_trace);

	ops_stack_rows_release(&f.rows);
	OPS_ARRAY_RELEASE(&f.thread.open);
	OPS_ARRAY_RELEASE(&f.stack);
	return code;
}
