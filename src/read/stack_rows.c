/* SPDX-License-Identifier: Apache-2.0
 *
 * See stack_rows.h.
 */
#include "read/stack_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "read/frame_text.h"

static uint32_t keep_frame(struct ops_stack_rows *rows, const char *bytes, size_t size)
{
	uint32_t frame = ops_intern_add(&rows->frames, bytes, size);

	rows->failed |= frame == OPS_INTERN_NONE;
	return frame;
}

uint32_t ops_stack_frame(struct ops_stack_rows *rows, struct ops_string file, uint32_t line, struct ops_string name)
{
	rows->scratch.size = 0;
	ops_put_frame(&rows->scratch, file, line, name);
	rows->failed |= rows->scratch.failed;
	return keep_frame(rows, ops_buffer_text(&rows->scratch), rows->scratch.size);
}

/* Parses the digits before `end`, which must follow `divider`. Returns false if there are none. */
static bool line_before(const char *start, const char *end, char divider, const char **ret_divider, uint32_t *ret_line)
{
	const char *at = end;
	uint32_t line = 0;

	while (at > start && at[-1] >= '0' && at[-1] <= '9')
		at--;
	if (at == end || end - at > 9 || at == start || at[-1] != divider)
		return false;
	*ret_divider = at - 1;
	for (; at < end; at++)
		line = line * 10 + (uint32_t)(*at - '0');
	*ret_line = line;
	return true;
}

uint32_t ops_stack_frame_text(struct ops_stack_rows *rows, struct ops_string text)
{
	const char *start = text.bytes, *end = ops_string_end(text), *divider, *mark;
	uint32_t line;

	mark = text.size > 3 && end[-1] == ')' ? memrchr(start, '(', text.size) : NULL;
	if (mark > start && mark[-1] == ' ' && line_before(mark, end - 1, ':', &divider, &line))
		return ops_stack_frame(rows, (struct ops_string){mark + 1, (size_t)(divider - mark - 1)}, line,
		                       (struct ops_string){start, (size_t)(mark - 1 - start)});
	mark = memmem(start, text.size, "):_", 3); /* collapsed stacks have '_' instead of a space */
	if (mark && line_before(start, mark, '(', &divider, &line))
		return ops_stack_frame(rows, (struct ops_string){start, (size_t)(divider - start)}, line,
		                       (struct ops_string){mark + 3, (size_t)(end - mark - 3)});
	return ops_stack_frame(rows, (struct ops_string){"", 0}, 0, text);
}

static void stack_begin_row(struct ops_stack_rows *rows, const struct ops_stack_thread *thread, const char *phase, struct ops_buffer *out)
{
	ops_buffer_printf(out, "%s{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRId64, rows->has_rows ? ",\n" : "{\"traceEvents\":[", phase,
	                  thread->pid, thread->tid);
	rows->has_rows = true;
}

/* Calls begin and end in separate rows, so that of two calls with the same times the outer one comes first. */
void ops_stack_open(struct ops_stack_rows *rows, struct ops_stack_thread *thread, uint32_t frame, int64_t ns, struct ops_buffer *out)
{
	struct ops_string name = frame == OPS_INTERN_NONE ? (struct ops_string){"", 0} : ops_intern_text(&rows->frames, frame);

	rows->failed |= !OPS_ARRAY_APPEND(&thread->open, frame);
	stack_begin_row(rows, thread, "B", out);
	ops_put_text_member(out, "name", name);
	ops_put_text_member(out, "cat", ops_string_of("python_function")); /* although some are native functions, as in torch's
	                                                                    * traces */
	ops_put_time_member(out, "ts", ns);
	ops_buffer_append_text(out, "}");
	rows->in->events++;
}

void ops_stack_close(struct ops_stack_rows *rows, struct ops_stack_thread *thread, int64_t ns, struct ops_buffer *out)
{
	thread->open.count--;
	stack_begin_row(rows, thread, "E", out);
	ops_put_time_member(out, "ts", ns);
	ops_buffer_append_text(out, "}");
}

void ops_stack_reverse(uint32_t *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		uint32_t frame = frames[i];

		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = frame;
	}
}

void ops_stack_set(struct ops_stack_rows *rows, struct ops_stack_thread *thread, const uint32_t *frames, size_t count, int64_t ns,
                   struct ops_buffer *out)
{
	size_t same = 0;

	while (same < count && same < thread->open.count && thread->open.items[same] == frames[same])
		same++;
	while (thread->open.count > same)
		ops_stack_close(rows, thread, ns, out);
	for (; same < count; same++)
		ops_stack_open(rows, thread, frames[same], ns, out);
}

void ops_stack_report(struct ops_stack_rows *rows, uint64_t byte, bool has_order, bool is_time)
{
	ops_builder_notes(rows->in->builder, OPS_NOTE_SAMPLED, 1, byte);
	if (!has_order)
		ops_builder_notes(rows->in->builder, OPS_NOTE_NO_ORDER, 1, byte);
	if (!is_time)
		ops_builder_notes(rows->in->builder, OPS_NOTE_NOT_TIME, 1, byte);
}

struct ops_string ops_stack_first_line(const char *head, size_t size)
{
	for (const char *at = head, *end = head + size, *next; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		next = next ? next : end;
		if (next > at && *at != '#')
			return (struct ops_string){at, (size_t)(next - at) - (next[-1] == '\r')};
	}
	return (struct ops_string){NULL, 0};
}

void ops_stack_put_name(struct ops_stack_rows *rows, const struct ops_stack_thread *thread, const char *what, struct ops_string name,
                        struct ops_buffer *out)
{
	if (!name.size)
		return;
	stack_begin_row(rows, thread, "M", out);
	ops_buffer_printf(out, ",\"name\":\"%s\",\"args\":{", what);
	ops_put_text_member(out, "name", name);
	ops_buffer_append_text(out, "}}");
}

void ops_stack_put_end(struct ops_stack_rows *rows, struct ops_buffer *out)
{
	ops_buffer_append_text(out, rows->has_rows ? "]}" : "{\"traceEvents\":[]}");
}

void ops_stack_rows_release(struct ops_stack_rows *rows)
{
	ops_intern_release(&rows->frames);
	ops_buffer_release(&rows->scratch);
}
