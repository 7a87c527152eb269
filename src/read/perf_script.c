/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of Linux's `perf script`: a line with program, thread, time, period and event of a sample, then its stack, innermost
 * frame first, then an empty line.
 *
 *     python3  7412 [001] 63017.679500:   10101010 cpu-clock:
 *                 24f43f drop_gil+0x5f (/usr/lib/libpython3.11.so.1.0)
 *
 * A sample of a clock (cpu-clock, task-clock) represents the period that ends with it; a sample of another event, such as cycles,
 * lasts a nanosecond, since its time is not known. Samples become spans of Chrome JSON (stack_rows.h).
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/json_value.h"
#include "base/map.h"
#include "base/text.h"
#include "read/stack_rows.h"

struct perf_header {
	struct ops_string program;
	struct ops_string event; /* without the modifiers that perf appends after ':' */
	struct ops_string place; /* frame of a sample without a stack */
	int64_t pid;             /* 0 if perf does not print it */
	int64_t tid;
	int64_t time_ns;
	int64_t period;
};

struct perf_thread {
	struct ops_stack_thread stack;
	int64_t end_ns; /* end of its last sample */
};

struct perf_script {
	struct ops_transcoder transcoder; /* the first member, because `next` receives it */
	struct ops_stack_rows rows;
	struct ops_map by_tid;
	OPS_ARRAY(struct perf_thread) threads;
	OPS_ARRAY(uint32_t) stack; /* stack of the current sample, innermost frame first */
	struct ops_buffer event; /* event of the first sample */
	uint32_t thread;   /* thread of the current sample; OPS_NONE: no sample */
	int64_t time_ns;   /* time of the sample */
	int64_t length_ns; /* length of its span */
	bool has_ended;
};

/* --- lines ---------------------------------------------------------------------------------------------------------- */

static struct ops_string next_word(const char **at, const char *end)
{
	const char *start;

	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
	start = *at;
	while (*at < end && **at != ' ' && **at != '\t')
		(*at)++;
	return (struct ops_string){start, (size_t)(*at - start)};
}

/* Parses the number that begins at `*at`. Returns false without digits, or with too many. */
static bool parse_digits(const char **at, const char *end, int64_t *ret_number)
{
	const char *start = *at;

	for (*ret_number = 0; *at < end && **at >= '0' && **at <= '9' && *at - start < 18; (*at)++)
		*ret_number = *ret_number * 10 + (**at - '0');
	return *at > start && (*at == end || **at < '0' || **at > '9');
}

/* Parses "7412" or "7410/7412". */
static bool parse_thread(struct ops_string word, struct perf_header *header)
{
	const char *at = word.bytes, *end = ops_string_end(word);

	header->pid = 0;
	if (!parse_digits(&at, end, &header->tid))
		return false;
	if (at == end)
		return true;
	header->pid = header->tid;
	return *at++ == '/' && parse_digits(&at, end, &header->tid) && at == end;
}

/* Parses "63017.679500:". */
static bool parse_perf_time(struct ops_string word, int64_t *ret_ns)
{
	return word.size > 2 && word.bytes[word.size - 1] == ':' && word.bytes[0] >= '0' && word.bytes[0] <= '9' &&
	       memchr(word.bytes, '.', word.size) && ops_json_decimal(word.bytes, word.size - 1, 9, OPS_TIME_MAX_NS, ret_ns);
}

/* The name of the program may have spaces. It ends at the first word that is a thread and is followed by a time, perhaps with a
 * processor between. `*at` is then after the time. */
static bool parse_taker(struct ops_string line, struct perf_header *header, const char **at)
{
	const char *end = ops_string_end(line);
	struct ops_string word = next_word(at, end);

	if (!word.size || word.bytes != line.bytes)
		return false;
	for (word = next_word(at, end); word.size; word = next_word(at, end)) {
		const char *rest = *at;
		struct ops_string time;

		if (!parse_thread(word, header))
			continue;
		time = next_word(&rest, end);
		if (time.size && time.bytes[0] == '[')
			time = next_word(&rest, end);
		if (!parse_perf_time(time, &header->time_ns))
			continue;
		*at = rest;
		header->program = (struct ops_string){line.bytes, (size_t)(word.bytes - line.bytes)};
		while (header->program.bytes[header->program.size - 1] == ' ')
			header->program.size--;
		return true;
	}
	return false;
}

static bool parse_header(struct ops_string line, struct perf_header *ret_header)
{
	const char *at = line.bytes, *end = ops_string_end(line), *digits;
	struct ops_string word;

	if (!parse_taker(line, ret_header, &at))
		return false;
	word = next_word(&at, end);
	digits = word.bytes;
	if (parse_digits(&digits, word.bytes + word.size, &ret_header->period) && digits == word.bytes + word.size)
		word = next_word(&at, end);
	else
		ret_header->period = 0;
	if (word.size < 2 || word.bytes[word.size - 1] != ':')
		return false;
	ret_header->event = (struct ops_string){word.bytes, (size_t)((const char *)memchr(word.bytes, ':', word.size) - word.bytes)};
	ret_header->place = (struct ops_string){at, (size_t)(end - at)};
	return true;
}

/* Parses "  24f43f drop_gil+0x5f (/usr/lib/libpython3.so)": the symbol without its offset or, if unknown, the file. */
static bool parse_stack_line(struct ops_string line, struct ops_string *ret_name)
{
	const char *at = line.bytes, *end = ops_string_end(line), *mark;
	struct ops_string address = next_word(&at, end), object = {"", 0};

	for (size_t i = 0; i < address.size; i++)
		if (!strchr("0123456789abcdef", address.bytes[i]) || !address.bytes[i])
			return false;
	while (at < end && *at == ' ')
		at++;
	while (end > at && end[-1] == ' ')
		end--;
	mark = end > at && end[-1] == ')' ? memrchr(at, '(', (size_t)(end - at)) : NULL;
	if (mark) {
		object = (struct ops_string){mark + 1, (size_t)(end - 1 - (mark + 1))};
		end = mark > at && mark[-1] == ' ' ? mark - 1 : mark;
	}
	mark = memrchr(at, '+', (size_t)(end - at));
	if (mark && ops_begins_with(mark, (size_t)(end - mark), "+0x"))
		end = mark;
	*ret_name = (struct ops_string){at, (size_t)(end - at)};
	if ((ops_string_is(*ret_name, "[unknown]") || !ret_name->size) && object.size)
		*ret_name = object;
	return address.size && ret_name->size;
}

/* --- samples -------------------------------------------------------------------------------------------------------- */

/* Returns OPS_NONE if out of memory. */
static uint32_t perf_thread_of(struct perf_script *p, const struct perf_header *header, struct ops_buffer *out)
{
	uint32_t number = ops_map_number(&p->by_tid, (uint64_t)header->pid << 32 ^ (uint64_t)header->tid);
	struct perf_thread *thread;

	if (number < p->threads.count)
		return number;
	thread = number == OPS_NONE ? NULL : OPS_ARRAY_PUSH(&p->threads);
	p->rows.failed |= !thread;
	if (!thread)
		return OPS_NONE;
	*thread = (struct perf_thread){.stack = {.pid = header->pid, .tid = header->tid}};
	ops_stack_put_name(&p->rows, &thread->stack, "thread_name", header->program, out);
	return number;
}

static void note_line(const struct perf_script *p, enum ops_note_kind kind, struct ops_string line)
{
	ops_builder_notes(p->rows.in->builder, kind, 1, ops_window_offset(&p->rows.in->window, line.bytes));
}

static void add_stack_line(struct perf_script *p, struct ops_string line)
{
	struct ops_string name;

	if (parse_stack_line(line, &name))
		p->rows.failed |= !OPS_ARRAY_APPEND(&p->stack, ops_stack_frame(&p->rows, (struct ops_string){"", 0}, 0, name));
}

/* Begins a sample at a line that is not part of a stack. Samples of events other than the first are left out. */
static void begin_sample(struct perf_script *p, struct ops_string line, struct ops_buffer *out)
{
	struct perf_header header;
	bool is_clock;

	p->stack.count = 0;
	p->thread = OPS_NONE;
	if (!parse_header(line, &header)) {
		note_line(p, OPS_NOTE_NOT_AN_EVENT, line);
		return;
	}
	if (!p->event.size)
		ops_buffer_append(&p->event, header.event.bytes, header.event.size);
	p->rows.failed |= p->event.failed;
	if (!ops_string_equals(header.event, (struct ops_string){ops_buffer_text(&p->event), p->event.size})) {
		note_line(p, OPS_NOTE_OTHER_EVENT, line);
		return;
	}
	is_clock = (ops_string_is(header.event, "cpu-clock") || ops_string_is(header.event, "task-clock")) && header.period;
	p->thread = perf_thread_of(p, &header, out);
	p->time_ns = header.time_ns;
	p->length_ns = is_clock ? header.period < header.time_ns ? header.period : header.time_ns : 1;
	ops_stack_report(&p->rows, ops_window_offset(&p->rows.in->window, line.bytes), true, is_clock);
	add_stack_line(p, header.place);
}

/* Adds a sample with its complete stack. If it begins about where the previous one of the thread ends, it continues that one. */
static void end_sample(struct perf_script *p, struct ops_buffer *out)
{
	struct perf_thread *thread;
	int64_t start_ns, end_ns = p->time_ns;

	if (p->thread == OPS_NONE)
		return;
	thread = &p->threads.items[p->thread];
	p->thread = OPS_NONE;
	start_ns = p->time_ns - p->length_ns;
	if (p->length_ns == 1) {
		start_ns = p->time_ns;
		end_ns = p->time_ns + 1;
	}
	ops_stack_reverse(p->stack.items, p->stack.count);
	if (start_ns > thread->end_ns + p->length_ns / 2)
		ops_stack_set(&p->rows, &thread->stack, NULL, 0, thread->end_ns, out);
	else
		start_ns = thread->end_ns;
	if (end_ns < start_ns) /* perf prints in order of time; other samples have no position */
		return;
	ops_stack_set(&p->rows, &thread->stack, p->stack.items, p->stack.count, start_ns, out);
	thread->end_ns = end_ns;
}

static void end_threads(struct perf_script *p, struct ops_buffer *out)
{
	for (size_t i = 0; i < p->threads.count; i++)
		ops_stack_set(&p->rows, &p->threads.items[i].stack, NULL, 0, p->threads.items[i].end_ns, out);
	ops_stack_put_end(&p->rows, out);
	p->has_ended = true;
}

static enum ops_code perf_next(struct ops_transcoder *transcoder, struct ops_buffer *text)
{
	struct perf_script *p = (struct perf_script *)(void *)transcoder;
	enum ops_code code = OPS_OK;

	while (!code && !p->has_ended && !text->failed && text->size < OPS_TRANSCODED_BYTES) {
		struct ops_string line;

		code = ops_reading_line(p->rows.in, &line);
		if (code || (line.bytes && line.size && line.bytes[0] == '#'))
			continue;
		if (line.size && (line.bytes[0] == ' ' || line.bytes[0] == '\t')) {
			add_stack_line(p, line);
		} else {
			end_sample(p, text);
			if (!line.bytes)
				end_threads(p, text);
			else if (line.size)
				begin_sample(p, line, text);
		}
		text->failed |= p->rows.failed;
	}
	return code;
}

/* The first line that is not a comment must be a complete header of a sample. */
bool ops_is_perf_script(const char *head, size_t size)
{
	struct ops_string line = ops_stack_first_line(head, size);
	struct perf_header header;
	const char *end;

	if (!line.size)
		return false;
	end = ops_string_end(line);
	return memchr(end, '\n', (size_t)(head + size - end)) && parse_header(line, &header);
}

enum ops_code ops_read_perf_script(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct perf_script p = {.transcoder = {perf_next}, .rows = {.in = reading}, .thread = OPS_NONE};
	enum ops_code code = ops_read_transcoded(reading, &p.transcoder, ret_trace);

	for (size_t i = 0; i < p.threads.count; i++)
		OPS_ARRAY_RELEASE(&p.threads.items[i].stack.open);
	ops_stack_rows_release(&p.rows);
	ops_map_release(&p.by_tid);
	OPS_ARRAY_RELEASE(&p.threads);
	OPS_ARRAY_RELEASE(&p.stack);
	ops_buffer_release(&p.event);
	return code;
}
