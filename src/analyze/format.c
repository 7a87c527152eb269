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

#define PERCENT_LEAST 0.005 /* what two decimals show */
#define FORMAT_MOST 1e18    /* larger figures have an exponent, so that they fit into OPS_FORMAT_ROOM */

const char *const ops_format_names[] = {[OPS_FORMAT_JSON] = "json", [OPS_FORMAT_TEXT] = "text", [OPS_FORMAT_CSV] = "csv",
                                        [OPS_FORMAT_MARKDOWN] = "markdown", NULL};

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

/* Number of decimals of a figure with three significant digits, after rounding: 9.996 is "10.0". */
static int decimals_of(double figure)
{
	double size = fabs(figure);

	return size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
}

/* Inserts a comma after every third digit before the point. The text has room for them. */
static void group_thousands(char *text)
{
	char *first = text + (*text == '-' || *text == '+');
	size_t digits = strspn(first, "0123456789");

	for (size_t at = digits; at > 3; at -= 3) {
		char *from = first + at - 3;

		memmove(from + 1, from, strlen(from) + 1);
		*from = ',';
	}
}

/* Formats a figure with three significant digits, and with all digits before the point. */
static void format_digits(char *out, double figure, bool has_sign, const char *unit)
{
	if (fabs(figure) >= FORMAT_MOST)
		snprintf(out, OPS_FORMAT_ROOM, has_sign ? "%+.2e%s" : "%.2e%s", figure, unit);
	else
		snprintf(out, OPS_FORMAT_ROOM, has_sign ? "%+.*f%s" : "%.*f%s", decimals_of(figure), figure, unit);
	group_thousands(out);
}

void ops_format_duration(char *out, double ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, " s"}, {1e6, " ms"}, {1e3, " " OPS_MICROSECONDS}};
	double size = fabs(ns);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (size >= 0.9995 * units[i].ns) { /* 999.6 us is "1.00 ms" */
			format_digits(out, ns / units[i].ns, false, units[i].name);
			return;
		}
	}
	snprintf(out, OPS_FORMAT_ROOM, size >= 0.0005 ? "%.3g ns" : "0", ns);
}

void ops_format_moment(char *out, int64_t ns)
{
	uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	if (size >= 1000000000)
		snprintf(out, OPS_FORMAT_ROOM, "%.6f s", (double)ns / 1e9);
	else if (size >= 1000000)
		snprintf(out, OPS_FORMAT_ROOM, "%.3f ms", (double)ns / 1e6);
	else if (size >= 1000)
		snprintf(out, OPS_FORMAT_ROOM, "%.3f " OPS_MICROSECONDS, (double)ns / 1e3);
	else
		snprintf(out, OPS_FORMAT_ROOM, ns ? "%d ns" : "0", (int)ns);
	group_thousands(out);
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
	static const char *const prefixes[] = {"", " K", " M", " G", " T", " P"};
	size_t i = 0;

	for (; fabs(count) >= 999.5 && i + 1 < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		count /= 1000;
	if (i)
		format_digits(out, count, false, prefixes[i]);
	else
		snprintf(out, OPS_FORMAT_ROOM, "%.0f", count);
}

/* Drops zeros at the end of a fraction: an average of 13.999 operators is "14". */
static void drop_zeros(char *text)
{
	size_t size = strlen(text);

	if (!strchr(text, '.') || strchr(text, 'e'))
		return;
	while (text[size - 1] == '0')
		size--;
	text[size - (text[size - 1] == '.')] = '\0';
}

void ops_format_number(char *out, double number)
{
	double size = fabs(number);

	if (size < 1e15 && number == trunc(number)) {
		snprintf(out, OPS_FORMAT_ROOM, "%.0f", number);
		group_thousands(out);
	} else if (size >= 0.9995) {
		format_digits(out, number, false, "");
		drop_zeros(out);
	} else {
		snprintf(out, OPS_FORMAT_ROOM, "%.3g", number);
	}
}

void ops_format_percent(char *out, double percent)
{
	if (percent > 0 && percent < PERCENT_LEAST)
		strcpy(out, "<0.01 %");
	else if (fabs(percent) < PERCENT_LEAST)
		strcpy(out, "0 %");
	else
		format_digits(out, percent, false, " %");
}

void ops_format_change(char *out, double percent)
{
	if (fabs(percent) < PERCENT_LEAST)
		strcpy(out, "0 %");
	else
		format_digits(out, percent, true, " %");
}

void ops_format_integer(char *out, uint64_t number)
{
	snprintf(out, OPS_FORMAT_ROOM, "%" PRIu64, number);
	group_thousands(out);
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
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
	double size = (double)bytes;
	size_t unit = 0;

	for (; fabs(size) >= (unit ? 1023.5 : 1024) && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		size /= 1024;
	if (unit) {
		format_digits(out, size, false, units[unit]);
	} else {
		snprintf(out, OPS_FORMAT_ROOM, "%.0f B", size);
		group_thousands(out);
	}
}

struct ops_figure ops_figure_of_duration(double ns)
{
	struct ops_figure figure;

	ops_format_duration(figure.text, ns);
	return figure;
}

struct ops_figure ops_figure_of_bytes(int64_t bytes)
{
	struct ops_figure figure;

	ops_format_bytes(figure.text, bytes);
	return figure;
}

struct ops_figure ops_figure_of_percent(double percent)
{
	struct ops_figure figure;

	ops_format_percent(figure.text, percent);
	return figure;
}

struct ops_figure ops_figure_of_change(double percent)
{
	struct ops_figure figure;

	ops_format_change(figure.text, percent);
	return figure;
}

struct ops_figure ops_figure_of_number(double number)
{
	struct ops_figure figure;

	ops_format_number(figure.text, number);
	return figure;
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
