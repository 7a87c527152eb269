/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of `opstrobe run --live`; see live_text.h. Names come from the program and are escaped, so that they cannot move the
 * cursor.
 */
#include "live_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/internal/memory.h>

#define NAME_COLUMNS 36
#define BAR_COLUMNS 16
#define CURVE_COLUMNS 24
#define JSON_NAME_COLUMNS 100

struct line {
	char *text;
	size_t size;
	size_t room; /* including the NUL */
};

__attribute__((format(printf, 2, 3))) static void live_text_put(struct line *line, const char *format, ...)
{
	size_t room = line->room - line->size;
	va_list values;
	int size;

	va_start(values, format);
	size = vsnprintf(line->text + line->size, room, format, values);
	va_end(values);
	if (size > 0 && (size_t)size < room)
		line->size += (size_t)size;
	line->text[line->size] = '\0';
}

/* --- names ----------------------------------------------------------------------------------------------------------- */

/* Decodes the first character of some bytes; returns 0 if it is invalid or not suitable for a terminal. Sets its size. */
static uint32_t next_utf8_character(const unsigned char *bytes, size_t size, size_t *ret_size)
{
	size_t length = bytes[0] < 0x80 ? 1 : bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
	uint32_t code = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);

	*ret_size = 1;
	if (length > size || (length > 1 && bytes[0] < 0xc2) || bytes[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (bytes[i] & 0x3f);
	}
	*ret_size = length;
	if (code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
	    (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff)
		return 0; /* control characters, and those that change the direction of writing */
	return code;
}

/* Writes a name in at most this number of columns. Returns the number of columns used. */
static unsigned live_text_put_name(struct line *line, const struct ops_live_row *row, const struct live_look *look,
                                   unsigned columns)
{
	const unsigned char *bytes = (const unsigned char *)row->name;
	unsigned taken = 0;
	size_t size;

	for (size_t i = 0; i < row->name_bytes && taken < columns; i += size) {
		uint32_t code = next_utf8_character(bytes + i, row->name_bytes - i, &size);

		if (!code || (code >= 0x80 && !look->utf8))
			live_text_put(line, "?");
		else
			live_text_put(line, "%.*s", (int)size, (const char *)bytes + i);
		taken += code >= 0x1100 ? 2 : 1;
	}
	return taken;
}

/* --- figures --------------------------------------------------------------------------------------------------------- */

static void live_text_put_time(struct line *line, double ns, int width, const struct live_look *look)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, "s "}, {1e6, "ms"}, {1e3, "us"}, {0, "ns"}};
	int i = 0;

	while (ns < units[i].ns)
		i++;
	live_text_put(line, "%*.*f %s", width, i == 3 ? 0 : 2, i == 3 ? ns : ns / units[i].ns,
	              i == 2 && look->utf8 ? OPS_MICROSECONDS : units[i].name);
}

static void live_text_put_bytes(struct line *line, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double scaled = (double)bytes;
	int i = 0;

	for (; scaled >= 1024 && i < 4; i++)
		scaled /= 1024;
	live_text_put(line, "%.*f %s", i ? 1 : 0, scaled, units[i]);
}

static void put_bar(struct line *line, double share, const struct live_look *look)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned parts = (unsigned)(share * BAR_COLUMNS * 8 + 0.5);

	for (unsigned i = 0; i < parts / 8; i++)
		live_text_put(line, look->utf8 ? "█" : "#");
	live_text_put(line, "%s", look->utf8 ? eighths[parts % 8] : "");
}

/* Writes a curve of the last steps' durations, from 0 to the longest. */
static void put_curve(struct line *line, const struct ops_live_state *state, const struct live_look *look)
{
	static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char plain[] = "_.-=+*%#";
	size_t first = state->step_count > CURVE_COLUMNS ? state->step_count - CURVE_COLUMNS : 0;
	uint64_t most = 1;

	for (size_t i = first; i < state->step_count; i++)
		most = state->step_ns[i] > most ? state->step_ns[i] : most;
	live_text_put(line, "  ");
	for (size_t i = first; i < state->step_count; i++) {
		unsigned level = (unsigned)((double)state->step_ns[i] / (double)most * 7.99);

		if (look->utf8)
			live_text_put(line, "%s", levels[level]);
		else
			live_text_put(line, "%c", plain[level]);
	}
}

static void live_text_put_steps(struct line *line, const struct ops_live_state *state, const struct live_look *look)
{
	double sum = 0;

	live_text_put(line, "%" PRIu64 " step%s", state->steps, state->steps == 1 ? "" : "s");
	for (size_t i = 0; i < state->step_count; i++)
		sum += (double)state->step_ns[i];
	if (state->step_count) {
		live_text_put(line, ", ");
		live_text_put_time(line, sum / (double)state->step_count, 0, look);
		if (line->text[line->size - 1] == ' ')
			line->text[--line->size] = '\0';
		live_text_put(line, " each");
	}
}

/* --- lines ----------------------------------------------------------------------------------------------------------- */

static void put_memory(struct line *line, const struct ops_live_state *state, const struct live_look *look)
{
	live_text_put_bytes(line, look->resident_bytes);
	live_text_put(line, " resident");
	for (size_t i = 0; i < state->memory_count; i++) {
		const struct ops_live_memory *memory = &state->memory[i];
		char title[OPS_MEMORY_DEVICE_ROOM];

		ops_memory_device_title((struct ops_memory_device){(uint8_t)memory->device_type, memory->device_index}, title);
		live_text_put(line, ", %s ", title);
		live_text_put_bytes(line, memory->allocated_bytes);
		live_text_put(line, " allocated (at most ");
		live_text_put_bytes(line, memory->peak_bytes);
		live_text_put(line, ")");
	}
}

static double share_of(const struct ops_live_state *state, const struct ops_live_row *row)
{
	return state->self_ns ? (double)row->self_ns / (double)state->self_ns : 0;
}

static void live_text_put_row(struct line *line, const struct ops_live_state *state, const struct live_look *look,
                              const struct ops_live_row *row)
{
	double share = share_of(state, row);
	unsigned columns = look->columns >= 110 ? NAME_COLUMNS + look->columns - 110 : NAME_COLUMNS;

	columns = columns > 80 ? 80 : columns;
	for (unsigned taken = live_text_put_name(line, row, look, columns); taken < columns; taken++)
		live_text_put(line, " ");
	live_text_put(line, " %10" PRIu64, row->calls);
	live_text_put_time(line, (double)row->self_ns, 9, look);
	live_text_put(line, " %5.1f %% ", share * 100);
	put_bar(line, share, look);
}

void live_text_line(const struct ops_live_state *state, const struct live_look *look, unsigned index,
                    char ret_line[LIVE_LINE_ROOM + 1])
{
	struct line line = {ret_line, 0, LIVE_LINE_ROOM + 1};

	*ret_line = '\0';
	if (index == 0) {
		live_text_put(&line, "opstrobe %.1f s  ", look->elapsed_s);
		live_text_put_steps(&line, state, look);
		put_curve(&line, state, look);
	} else if (index == 1) {
		put_memory(&line, state, look);
		live_text_put(&line, ", %" PRIu64 " records, ", state->records);
		live_text_put_bytes(&line, state->recorder_bytes);
		if (state->lost)
			live_text_put(&line, ", %" PRIu64 " LOST: out of memory", state->lost);
	} else if (index - 2 < state->row_count) {
		live_text_put_row(&line, state, look, &state->rows[index - 2]);
	}
}

void live_text_summary(const struct ops_live_state *state, const struct live_look *look, char ret_line[LIVE_LINE_ROOM + 1])
{
	struct line line = {ret_line, 0, LIVE_LINE_ROOM + 1};

	*ret_line = '\0';
	live_text_put(&line, "opstrobe: %.1f s, ", look->elapsed_s);
	live_text_put_steps(&line, state, look);
	live_text_put(&line, ", ");
	put_memory(&line, state, look);
	if (state->lost)
		live_text_put(&line, ", %" PRIu64 " LOST", state->lost);
	for (size_t i = 0; i < state->row_count && i < 3; i++) {
		live_text_put(&line, "%s", i ? ", " : "; self time: ");
		live_text_put_name(&line, &state->rows[i], look, NAME_COLUMNS);
		live_text_put(&line, " %.0f %%", share_of(state, &state->rows[i]) * 100);
	}
}

/* --- JSON ------------------------------------------------------------------------------------------------------------ */

/* Names contain no control characters at this point. */
static void put_json_name(struct line *line, const struct ops_live_row *row)
{
	const struct live_look look = {.utf8 = true};
	char name[4 * JSON_NAME_COLUMNS + 1];
	struct line plain = {name, 0, sizeof(name)};

	*name = '\0';
	live_text_put_name(&plain, row, &look, JSON_NAME_COLUMNS);
	live_text_put(line, "\"");
	for (const char *at = name; *at; at++)
		live_text_put(line, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
	live_text_put(line, "\"");
}

void live_text_json(const struct ops_live_state *state, const struct live_look *look, char ret_text[LIVE_JSON_ROOM])
{
	struct line line = {ret_text, 0, LIVE_JSON_ROOM};

	live_text_put(&line, "{\"elapsed_ms\": %" PRIu64 ", \"steps\": %" PRIu64 ", \"records\": %" PRIu64 ", \"lost\": %" PRIu64,
	              (uint64_t)(look->elapsed_s * 1000), state->steps, state->records, state->lost);
	live_text_put(&line, ", \"recorder_bytes\": %" PRIu64 ", \"resident_bytes\": %" PRIu64 ", \"self_ns\": %" PRIu64,
	              state->recorder_bytes, look->resident_bytes, state->self_ns);
	live_text_put(&line, ", \"step_ns\": [");
	for (size_t i = 0; i < state->step_count; i++)
		live_text_put(&line, "%s%" PRIu64, i ? ", " : "", state->step_ns[i]);
	live_text_put(&line, "], \"memory\": [");
	for (size_t i = 0; i < state->memory_count; i++)
		live_text_put(&line, "%s{\"device\": %d, \"allocated_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 "}", i ? ", " : "",
		              state->memory[i].device_index, state->memory[i].allocated_bytes, state->memory[i].peak_bytes);
	live_text_put(&line, "], \"rows\": [");
	for (size_t i = 0; i < state->row_count && i < LIVE_JSON_ROWS; i++) {
		const struct ops_live_row *row = &state->rows[i];

		live_text_put(&line, "%s{\"name\": ", i ? ", " : "");
		put_json_name(&line, row);
		live_text_put(&line, ", \"calls\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"self_ns\": %" PRIu64 "}", row->calls,
		              row->total_ns, row->self_ns);
	}
	live_text_put(&line, "]}");
}
