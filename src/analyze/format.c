/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and text widths of tables; see format.h. The order of arithmetic operations is that of Python code, so that
 * the last digit agrees.
 */
#include "analyze/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

enum ops_time_unit ops_time_unit_of(const char *text)
{
	if (!text)
		return OPS_TIME_BY_SIZE;
	if (strcmp(text, "s") == 0)
		return OPS_TIME_S;
	if (strcmp(text, "ms") == 0)
		return OPS_TIME_MS;
	return strcmp(text, "us") == 0 ? OPS_TIME_US : OPS_TIME_BY_SIZE;
}

void ops_format_time(char *out, double us, enum ops_time_unit unit)
{
	if (unit == OPS_TIME_BY_SIZE)
		unit = us >= 1e6 ? OPS_TIME_S : us >= 1e3 ? OPS_TIME_MS : OPS_TIME_US;
	if (unit == OPS_TIME_S)
		snprintf(out, OPS_FORMAT_ROOM, "%.3fs", us / 1e6);
	else if (unit == OPS_TIME_MS)
		snprintf(out, OPS_FORMAT_ROOM, "%.3fms", us / 1e3);
	else
		snprintf(out, OPS_FORMAT_ROOM, "%.3fus", us);
}

struct duration_unit {
	double ns;
	const char *name;
};

/* The unit of a duration of at least a microsecond. */
static struct duration_unit duration_unit_of(double ns)
{
	if (ns >= 1e9)
		return (struct duration_unit){1e9, "s"};
	return ns >= 1e6 ? (struct duration_unit){1e6, "ms"} : (struct duration_unit){1e3, OPS_MICROSECONDS};
}

void ops_format_duration(char *out, double ns)
{
	double size = fabs(ns);

	if (size < 1000)
		snprintf(out, OPS_FORMAT_ROOM, size > 0 ? "%.3g ns" : "0", ns);
	else
		snprintf(out, OPS_FORMAT_ROOM, "%.3f %s", ns / duration_unit_of(size).ns, duration_unit_of(size).name);
}

void ops_format_estimate(char *out, double ns)
{
	double size = fabs(ns);
	double figure;

	if (size < 1000) {
		ops_format_duration(out, ns);
		return;
	}
	figure = size / duration_unit_of(size).ns;
	snprintf(out, OPS_FORMAT_ROOM, "%.*f %s", figure < 9.995 ? 2 : figure < 99.95 ? 1 : 0, ns / duration_unit_of(size).ns,
	         duration_unit_of(size).name);
}

int ops_field_width(const char *text, int columns)
{
	size_t size = strlen(text);
	int more = (int)(size - ops_text_length((struct ops_string){text, size}));

	return columns < 0 ? columns - more : columns + more;
}

size_t ops_format_ascii(char *text, size_t size)
{
	const size_t unit = strlen(OPS_MICROSECONDS);
	size_t to = 0;

	for (size_t at = 0; at < size; at++) {
		bool found = size - at >= unit && !memcmp(text + at, OPS_MICROSECONDS, unit);

		text[to++] = found ? 'u' : text[at];
		at += found ? unit - 2 : 0; /* continue at the "s" */
	}
	return to;
}

void ops_format_count(char *out, double count)
{
	static const char *const prefixes[] = {"", "K", "M", "G", "T", "P"};
	size_t i = 0;

	for (; fabs(count) >= 1000 && i + 1 < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		count /= 1000;
	snprintf(out, OPS_FORMAT_ROOM, i ? "%.2f %s" : "%.0f", count, prefixes[i]);
}

void ops_format_integer(char *out, uint64_t number)
{
	char digits[OPS_FORMAT_ROOM];
	int count = snprintf(digits, sizeof(digits), "%" PRIu64, number);

	for (int i = 0; i < count; i++) {
		if (i && (count - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = '\0';
}

void ops_format_share(char *out, double us, double total_us)
{
	if (total_us == 0)
		strcpy(out, "NaN");
	else
		snprintf(out, OPS_FORMAT_ROOM, "%.2f%%", us * 100.0 / total_us);
}

void ops_format_memory(char *out, int64_t bytes)
{
	static const struct {
		int64_t bytes;
		const char *name;
	} units[] = {{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (bytes >= units[i].bytes || bytes <= -units[i].bytes) {
			snprintf(out, OPS_FORMAT_ROOM, "%.2f %s", (double)bytes / (double)units[i].bytes, units[i].name);
			return;
		}
	}
	snprintf(out, OPS_FORMAT_ROOM, "%lld B", (long long)bytes);
}

void ops_format_bytes(char *out, int64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double size = (double)bytes;
	size_t unit = 0;

	for (; fabs(size) >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		size /= 1024;
	snprintf(out, OPS_FORMAT_ROOM, unit ? "%.2f %s" : "%.0f %s", size, units[unit]);
}

size_t ops_text_length(struct ops_string text)
{
	const char *end = ops_string_end(text);
	size_t length = 0;

	for (const char *at = text.bytes; at < end; at += ops_utf8_step(at, end))
		length++;
	return length;
}

struct ops_string ops_text_prefix(struct ops_string text, size_t length)
{
	const char *end = ops_string_end(text);
	const char *at = text.bytes;

	for (; length > 0 && at < end; length--)
		at += ops_utf8_step(at, end);
	return (struct ops_string){text.bytes, (size_t)(at - text.bytes)};
}
