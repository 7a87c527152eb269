/* SPDX-License-Identifier: Apache-2.0
 *
 * Rooflines as JSON, as tables, and as text.
 */
#include <math.h>
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "analyze/format.h"
#include "analyze/roofline/roofline.h"
#include "analyze/tables.h"
#include "base/sum.h"

#define ABOVE_ROOF 1.1 /* a larger ratio is not noise */

enum { BY_SHAPE = ROOFLINE_BY_SHAPE, FOR_TEXT = 2 };

/* --- columns ------------------------------------------------------------------------------------------------------ */

struct answer_row {
	struct ops_string name, shapes;
	const char *type, *processor, *bound;
	int64_t count, time_ns, flops, bytes, roof_ns, avoidable_ns, event;
	double intensity, gflops, gbps, percent;
};

#define FIELD(member) RESULT_FIELD(struct answer_row, member)

/* Columns of the table, and members of the JSON objects. */
#define COLUMNS \
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the operator or kernel; or line, or module", FIELD(name)}, \
	{.name = "input_shapes", .type = RESULT_TEXT, .title = "Shapes", .about = "Shapes of the inputs", .when = "by shape", \
	 .option = BY_SHAPE, .nullable = true, FIELD(shapes)}, \
	{.name = "dtype", .type = RESULT_TEXT, .title = "Type", \
	 .about = "Type that it computes with; tfloat32: float32 by tensor cores", FIELD(type)}, \
	{.name = "processor", .type = RESULT_TEXT, .priority = RESULT_MINOR, .title = "On", .about = "CPU or GPU", \
	 FIELD(processor)}, \
	{.name = "count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of calls or kernels", FIELD(count)}, \
	{.name = "time_us", .type = RESULT_TIME, .priority = RESULT_MAJOR, .title = "Time", \
	 .about = "Time of the calls; on a GPU that of their kernels", FIELD(time_ns)}, \
	{.name = "flops", .type = RESULT_COUNT, .priority = RESULT_MINOR, .title = "FLOPs", \
	 .about = "Floating-point operations, from the shapes", FIELD(flops)}, \
	{.name = "bytes", .type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Bytes", \
	 .about = "Bytes of the tensors that are read and written, each once", FIELD(bytes)}, \
	{.name = "flops_per_byte", .type = RESULT_NUMBER, .priority = RESULT_MINOR, .title = "FLOP/B", .unit = "FLOP/B", \
	 .about = "Intensity: floating-point operations for each byte", .nullable = true, FIELD(intensity)}, \
	{.name = "gflops_per_second", .type = RESULT_NUMBER, .title = "GFLOP/s", .unit = "GFLOP/s", \
	 .about = "Floating-point operations by time", .nullable = true, FIELD(gflops)}, \
	{.name = "gb_per_second", .type = RESULT_NUMBER, .title = "GB/s", .unit = "GB/s", .about = "Bytes by time", \
	 .nullable = true, FIELD(gbps)}, \
	{.name = "bound", .type = RESULT_TEXT, .title = "Bound by", \
	 .about = "What limits the operator at the roof: compute, memory, or overhead if the calls cost more than their work", \
	 .nullable = true, FIELD(bound)}, \
	{.name = "roof_us", .type = RESULT_TIME, .priority = RESULT_MINOR, .title = "At the roof", \
	 .about = "Lower bound of the time, from FLOPs and bytes", .nullable = true, FIELD(roof_ns)}, \
	{.name = "avoidable_us", .type = RESULT_TIME, .title = "Avoidable", .about = "Time above the lower bound", \
	 .nullable = true, FIELD(avoidable_ns)}, \
	{.name = "percent_of_roof", .type = RESULT_PERCENT, .unbounded = true, .priority = RESULT_MAJOR, .title = "Of the roof", \
	 .about = "Time at the roof by the time of the calls", .nullable = true, FIELD(percent)}

RESULT_GETTER(roofline_answers_get_bar, struct answer_row, number, row->percent / 100)

static const struct result_column operator_roofline_columns[] = {
	COLUMNS,
	{.name = "bar", .type = RESULT_BAR, .title = "", .option = FOR_TEXT, .when = "text", .about = "The same as a bar",
	 .get = roofline_answers_get_bar},
};
const struct result_declaration table_operator_roofline =
	RESULT_DECLARATION("operator_roofline", "Calls of an operator, or a kernel, against the roof", operator_roofline_columns);

static const struct result_column roofline_row_columns[] = {
	COLUMNS,
	{.name = "row", .type = RESULT_INTEGER, .about = "Longest call: a row of the trace", FIELD(event)},
};
const struct result_declaration table_roofline_row =
	RESULT_DECLARATION("RooflineRow", "Calls of an operator, or a kernel, against the roof", roofline_row_columns);

/* Rounds to two decimals, or more for small numbers. */
static double shown(double value)
{
	return result_round(value, fabs(value) < 1 ? 4 : 2);
}

static int64_t whole(double value)
{
	return value >= 9.2e18 ? INT64_MAX : value > 0 ? (int64_t)(value + 0.5) : 0;
}

static struct answer_row answer_of(const struct roofline_row *row)
{
	bool known = row->roof->source != ROOF_UNKNOWN;
	double time_ns = row->time_ns > 0 ? (double)row->time_ns : (double)NAN;
	int64_t bound_ns = whole(row->bound_ns);

	return (struct answer_row){
		.name = row->name,
		.shapes = result_text_or_null(row->shapes),
		.type = row->type,
		.processor = row->processor,
		.bound = roofline_bound(row),
		.count = row->count,
		.time_ns = row->time_ns,
		.flops = whole(row->flops),
		.bytes = whole(row->bytes),
		.roof_ns = known ? bound_ns : RESULT_NULL,
		.avoidable_ns = !known ? RESULT_NULL : row->time_ns > bound_ns ? row->time_ns - bound_ns : 0,
		.event = row->longest,
		.intensity = row->bytes > 0 ? shown(row->flops / row->bytes) : (double)NAN,
		.gflops = shown(row->flops / time_ns),
		.gbps = shown(row->bytes / time_ns),
		.percent = known ? result_round(100 * row->bound_ns / time_ns, 4) : (double)NAN,
	};
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

struct sums {
	int64_t time_ns; /* time of rows whose roof is known */
	double bound_ns;
};

static struct sums sums_of(const struct roofline *roofline)
{
	struct sums sums = {0};

	for (size_t i = 0; i < roofline->rows.count; i++) {
		const struct roofline_row *row = &roofline->rows.items[i];

		if (row->roof->source == ROOF_UNKNOWN)
			continue;
		sums.time_ns = ops_sum(sums.time_ns, row->time_ns);
		sums.bound_ns += row->bound_ns;
	}
	return sums;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void write_json(const struct roofline *roofline, size_t rows, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};
	struct sums sums = sums_of(roofline);

	ops_json_open(&json, '{');
	ops_json_key(&json, "cpu");
	roof_write(&roofline->cpu, &json);
	ops_json_key(&json, "gpu");
	if (roofline->has_device_work)
		roof_write(&roofline->device, &json);
	else
		ops_json_null(&json);
	ops_json_member_us(&json, "total_us", roofline->total_ns);
	ops_json_member_us(&json, "known_us", roofline->known_ns);
	ops_json_member_us(&json, "bounded_us", sums.time_ns);
	ops_json_member_us(&json, "roof_us", whole(sums.bound_ns));
	ops_json_member_bool(&json, "has_shapes", roofline->has_shapes);
	ops_json_member(&json, "distinct", (int64_t)roofline->rows.count);
	ops_json_member_open(&json, "rows", '[');
	for (size_t i = 0; i < rows; i++) {
		struct answer_row row = answer_of(&roofline->rows.items[i]);

		row.event = ops_trace_whole_row(roofline->trace, (uint32_t)row.event);
		result_object_json(&table_roofline_row, BY_SHAPE, &row, &json);
	}
	ops_json_close(&json, ']');
	ops_json_close(&json, '}');
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Appends a number with a prefix but without the space before it: "1.98T". */
static void append_speed(struct ops_buffer *out, double per_second, const char *unit)
{
	char text[OPS_FORMAT_ROOM];

	ops_format_count(text, per_second);
	ops_buffer_printf(out, "%s%s/s", text, unit);
}

/* Returns true if a row limited by that roof has that type. */
static bool roofline_answers_has_type(const struct roofline *roofline, const struct roof *roof, enum roof_type type)
{
	for (size_t i = 0; i < roofline->rows.count; i++)
		if (roofline->rows.items[i].roof == roof && !strcmp(roofline->rows.items[i].type, roof_type_name(type)))
			return true;
	return false;
}

static void append_roof(struct ops_buffer *out, const char *processor, const struct roofline *roofline, const struct roof *roof)
{
	static const char *const sources[] = {"not known", "measured", "published peaks", "as given"};

	ops_buffer_printf(out, "Roof of the %s: %s%s%s\n", processor, roof->name, roof->name[0] ? ", " : "", sources[roof->source]);
	for (int type = 0; type < ROOF_TYPE_COUNT; type++) {
		if (roof->flops[type] <= 0 || !roofline_answers_has_type(roofline, roof, (enum roof_type)type))
			continue;
		ops_buffer_append_text(out, "  ");
		append_speed(out, roof->flops[type], "FLOP");
		ops_buffer_printf(out, " %s\n", roof_type_name((enum roof_type)type));
	}
	if (roof->level_count) {
		ops_buffer_append_text(out, "  ");
		append_speed(out, roof->levels[roof->level_count - 1].per_second, "B");
		ops_buffer_append_text(out, " memory");
	}
	if (roof->cache_bytes > 0 || roof->level_count > 1) {
		ops_buffer_append_text(out, ", ");
		append_speed(out, roof->cache_bytes > 0 ? roof->cache_per_second : roof->levels[0].per_second, "B");
		ops_buffer_append_text(out, " caches");
	}
	ops_buffer_append_text(out, roof->level_count ? "\n" : "");
	if (roof->source == ROOF_UNKNOWN && !strcmp(processor, "CPU"))
		ops_buffer_append_text(out, "  Run 'opstrobe roof' before recording, or give --roof FLOPS,BANDWIDTH, such as 200G,20G\n");
	else if (roof->source == ROOF_UNKNOWN)
		ops_buffer_append_text(out, "  Give --roof FLOPS,BANDWIDTH, such as 67T,3.35T\n");
}

static bool has_processor(const struct roofline *roofline, const struct roof *roof)
{
	for (size_t i = 0; i < roofline->rows.count; i++)
		if (roofline->rows.items[i].roof == roof)
			return true;
	return false;
}

static void append_sums(struct ops_buffer *out, const struct roofline *roofline)
{
	const char *what = roofline->has_device_work ? "kernels" : "operators";
	char known[OPS_FORMAT_ROOM], total[OPS_FORMAT_ROOM], bound[OPS_FORMAT_ROOM], time[OPS_FORMAT_ROOM];
	struct sums sums = sums_of(roofline);
	size_t above = 0;

	ops_format_duration(known, (double)roofline->known_ns);
	ops_format_duration(total, (double)roofline->total_ns);
	ops_buffer_printf(out, "FLOPs and bytes are known of %s of %s of %s", known, total, what);
	if (roofline->total_ns > 0)
		ops_buffer_printf(out, " (%s)", ops_figure_of_percent(100 * (double)roofline->known_ns / (double)roofline->total_ns).text);
	ops_buffer_append_text(out, "\n");
	if (sums.time_ns <= 0)
		return;
	ops_format_duration(bound, sums.bound_ns);
	ops_format_duration(time, (double)sums.time_ns);
	ops_buffer_printf(out, "At the roof %s would take %s (%s)\n", time, bound, ops_figure_of_percent(100 * sums.bound_ns / (double)sums.time_ns).text);
	for (size_t i = 0; i < roofline->rows.count; i++)
		above += roofline->rows.items[i].bound_ns > ABOVE_ROOF * (double)roofline->rows.items[i].time_ns;
	if (above)
		ops_buffer_printf(out, "The roof is too low: %zu of %zu rows are above it. Measure it again when nothing else runs.\n", above,
		                  roofline->rows.count);
}

static void append_head(struct ops_buffer *out, const struct roofline *roofline)
{
	if (!roofline->has_shapes) {
		ops_buffer_append_text(out, "no shapes were recorded: record with record_shapes=True or 'opstrobe run --record-shapes'\n");
		return;
	}
	if (!roofline->rows.count) {
		ops_buffer_append_text(out, roofline->by == OPS_ROOFLINE_KERNEL && !roofline->has_device_work
		                                    ? "no kernels were recorded\n"
		                                    : "no operator's work is known\n");
		return;
	}
	if (has_processor(roofline, &roofline->device))
		append_roof(out, "GPU", roofline, &roofline->device);
	if (has_processor(roofline, &roofline->cpu))
		append_roof(out, "CPU", roofline, &roofline->cpu);
	append_sums(out, roofline);
	ops_buffer_append_text(out, "\n");
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static bool write_table(const struct roofline *roofline, size_t rows, const struct ops_roofline_options *options,
                        struct ops_buffer *out)
{
	bool text = options->format == OPS_FORMAT_TEXT;
	struct result result;
	bool done;

	result_init(&result);
	result.room = options->columns;
	result.table.copies = true;
	result_declare(&result.table, &table_operator_roofline,
	               (roofline->by == OPS_ROOFLINE_SHAPE ? BY_SHAPE : 0) | (text && sums_of(roofline).time_ns > 0 ? FOR_TEXT : 0));
	result.table.ascii = options->ascii;
	for (size_t i = 0; i < rows; i++) {
		struct answer_row row = answer_of(&roofline->rows.items[i]);

		result_add(&result.table, &row);
	}
	if (text)
		append_head(out, roofline);
	done = (text && !roofline->rows.count) || result_write(&result, options->format, out);
	if (text && rows < roofline->rows.count)
		ops_buffer_printf(out, "and %zu more; --limit 0 shows all\n", roofline->rows.count - rows);
	result_release(&result);
	return done && !out->failed;
}

enum ops_code operator_roofline_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                                     struct ops_error *error)
{
	const struct ops_roofline_options *options = context;
	struct roofline roofline;
	enum ops_code code = roofline_init(&roofline, trace, options->by, options->roof, error);

	for (size_t i = 0; !code && i < roofline.rows.count && i < rows->limit; i++) {
		struct answer_row row = answer_of(&roofline.rows.items[i]);

		run_rows_add(rows, &row);
	}
	roofline_release(&roofline);
	return code;
}

enum ops_code ops_roofline(const struct ops_trace *trace, const struct ops_roofline_options *options, char **ret_text,
                           size_t *ret_size, struct ops_error *error)
{
	static const struct ops_roofline_options defaults;
	struct ops_buffer out = {0};
	struct roofline roofline;
	size_t rows;
	enum ops_code code;

	options = options ? options : &defaults;
	*ret_text = NULL;
	*ret_size = 0;
	code = roofline_init(&roofline, trace, options->by, options->roof, error);
	rows = !options->rows_max || roofline.rows.count < options->rows_max ? roofline.rows.count : options->rows_max;
	if (!code && options->format == OPS_FORMAT_JSON)
		write_json(&roofline, rows, &out);
	else if (!code && !write_table(&roofline, rows, options, &out))
		out.failed = true;
	roofline_release(&roofline);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
