/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings: their places, texts, severity and order.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/roofline/roof.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/modules.h"
#include "trace/inputs.h"
#include "trace/names.h"

/* Minimum gains of each severity. Below one percent, noise between steps hides the gain; a tenth of a step is worth an
 * interruption. */
#define GAIN_LOW_PCT 1.0
#define GAIN_MEDIUM_PCT 4.0
#define GAIN_HIGH_PCT 10.0

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static bool advice_report_matches(struct ops_string text, const char *pattern)
{
	size_t size = strlen(pattern), part;
	bool before = size > 1 && pattern[0] == '*', behind = size > 1 && pattern[size - 1] == '*';

	pattern += before;
	part = strcspn(pattern, "*");
	if (before && pattern[part] && pattern[part + 1]) /* "*x*y" */
		return ops_string_ends(text, pattern + part + 1) &&
		       memmem(text.bytes, text.size - strlen(pattern + part + 1), pattern, part) != NULL;
	size -= (size_t)before + behind;
	if (text.size < size)
		return false;
	if (before && behind)
		return memmem(text.bytes, text.size, pattern, size) != NULL;
	if (!before && !behind && text.size != size)
		return false;
	return memcmp(before ? text.bytes + text.size - size : text.bytes, pattern, size) == 0;
}

bool advice_text_like(struct ops_string text, const char *const *patterns)
{
	for (size_t i = 0; patterns[i]; i++)
		if (advice_report_matches(text, patterns[i]))
			return true;
	return false;
}

uint8_t *advice_names(const struct advice *advice, const char *const *names)
{
	uint8_t *which = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1);

	for (size_t i = 0; which && i < advice->named.count; i++) {
		uint32_t id = advice->events->name[advice->named.items[i]];

		for (size_t n = 0; names[n] && !which[id]; n++)
			if (advice_report_matches(ops_trace_string(advice->trace, id), names[n]))
				which[id] = (uint8_t)(n + 1);
	}
	return which;
}

void advice_list_calls(struct advice_result *result, const char *const *names)
{
	const struct advice *advice = result->advice;
	uint8_t *which = advice_names(advice, names);
	size_t count = 0;

	for (uint32_t row = 0; which && row < advice->events->count; row++) {
		size_t i = 0;

		if (!which[advice->events->name[row]] || advice->site[row] == OPS_NONE)
			continue;
		while (i < count && advice->site[result->also[i]] != advice->site[row])
			i++;
		if (i == ADVICE_ALSO_MAX) {
			count = 0;
			break;
		}
		result->also[i] = row;
		count += i == count;
	}
	result->also_count = count;
	ops_free(which);
}

uint8_t *advice_elementwise_names(const struct advice *advice, const char *const *further)
{
	uint8_t *which = advice_names(advice, further);

	for (size_t i = 0; which && i < ops_trace_string_count(advice->trace); i++)
		which[i] = which[i] || (operator_rows[advice->operators[i]].flags & OPERATOR_ELEMENTWISE);
	return which;
}

uint8_t *advice_random_names(const struct advice *advice, const char *const *further)
{
	static const char *const names[] = {"*rand*", "*dropout*", "*bernoulli*", "*normal_*", "aten::normal", "*uniform*", "*multinomial*", "*exponential*",
	                                    "*poisson*", "*rrelu*", "*geometric_*", "*cauchy_*", NULL};
	uint8_t *which = advice_names(advice, names), *also = advice_names(advice, further);

	for (size_t i = 0; which && also && i < ops_trace_string_count(advice->trace); i++)
		which[i] |= also[i];
	if (!also) {
		ops_free(which);
		which = NULL;
	}
	ops_free(also);
	return which;
}

uint8_t *advice_named_kinds(const struct advice *advice, const struct advice_named *names)
{
	uint8_t *kinds = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1);

	for (size_t i = 0; kinds && i < advice->named.count; i++) {
		uint32_t id = advice->events->name[advice->named.items[i]];

		for (size_t n = 0; names[n].pattern && !kinds[id]; n++)
			if (advice_report_matches(ops_trace_string(advice->trace, id), names[n].pattern))
				kinds[id] = names[n].kind;
	}
	return kinds;
}

bool advice_input(const struct advice *advice, uint32_t row, size_t i, struct ops_input *ret_input)
{
	uint32_t id = advice->events->inputs[row];
	struct ops_string list;

	if (id == OPS_NONE)
		return false;
	list = ops_trace_inputs(advice->trace, id);
	return ops_inputs_at(ops_inputs_open(list.bytes, list.size), i, ret_input);
}

bool advice_is_contiguous(const struct ops_input *tensor)
{
	int64_t stride = 1;

	if (tensor->tag != OPS_INPUT_TENSOR)
		return false;
	for (size_t i = tensor->n; i-- > 0; stride = ops_product(stride, ops_input_int(tensor, i)))
		if (ops_input_int(tensor, i) > 1 && ops_input_int(tensor, tensor->n + i) != stride)
			return false;
	return true;
}

int64_t advice_input_elements(const struct ops_input *input)
{
	int64_t elements = 1;

	if (!ops_input_is_tensor(input->tag))
		return -1;
	for (size_t i = 0; i < input->n; i++) {
		int64_t size = ops_input_int(input, i);

		elements = size < 0 ? 0 : ops_product(elements, size);
	}
	return elements;
}

struct ops_input advice_largest_input(const struct advice *advice, uint32_t row)
{
	struct ops_input input, largest = {0};

	for (size_t i = 0; advice_input(advice, row, i, &input); i++)
		if (advice_input_elements(&input) > (largest.tag ? advice_input_elements(&largest) : -1))
			largest = input;
	return largest;
}

struct advice_tensor advice_describe_tensor(const struct ops_input *tensor)
{
	struct advice_tensor described;
	int used = snprintf(described.text, sizeof(described.text), "%s [", ops_dtype_python_name(tensor->dtype));

	for (size_t i = 0; i < tensor->n && used > 0 && (size_t)used + 24 < sizeof(described.text); i++)
		used += snprintf(described.text + used, sizeof(described.text) - (size_t)used, "%s%lld", i ? ", " : "",
		                 (long long)ops_input_int(tensor, i));
	snprintf(described.text + used, sizeof(described.text) - (size_t)used, "]");
	return described;
}

int64_t advice_elements(const struct advice *advice, uint32_t row, uint8_t *ret_dtype)
{
	struct ops_input input;

	for (size_t i = 0; i < 2 && advice_input(advice, row, i, &input); i++) {
		int64_t elements = advice_input_elements(&input);

		if (elements < 0)
			continue;
		*ret_dtype = input.dtype;
		return elements;
	}
	return -1;
}

/* By c10::ScalarType. Types of a byte or less, and unknown types, count as one byte. */
int64_t advice_input_bytes(const struct ops_input *input)
{
	return ops_product(advice_input_elements(input), (int64_t)advice_dtype_bytes(input->dtype));
}

size_t advice_dtype_bytes(uint8_t dtype)
{
	size_t bytes = ops_dtype_bytes(dtype);

	return bytes ? bytes : 1;
}

uint32_t advice_own_site(const struct advice *advice, uint32_t row)
{
	return advice->own_site[advice->events->name[row]];
}

uint32_t advice_self_site(const struct advice *advice, uint32_t row)
{
	uint32_t frame = advice->views->parts[row] == VIEW_STEP && advice->caller[row] != OPS_NONE ? advice->caller[row] : row;
	uint32_t site = advice_own_site(advice, frame);

	return site == OPS_NONE ? advice->site[frame] : site;
}

/* --- findings ------------------------------------------------------------------------------------------------------- */

bool advice_report_keep(struct advice_report *report, const char *bytes, size_t size, struct ops_string *ret_text)
{
	char *copy = ops_arena_copy(&report->texts, bytes, size);

	if (copy)
		*ret_text = (struct ops_string){copy, size};
	return copy != NULL;
}

/* Returns the operator that a row is, or that calls it; else the row itself if it is a driver call, a kernel, a loader,
 * an optimizer or a collective. Files of 2020 have steps among operators. */
static struct ops_string advice_report_operator_of(const struct advice *advice, uint32_t row)
{
	const struct ops_events *events = advice->events;

	for (uint32_t at = row; at != OPS_NONE && events->kind[at] != OPS_EVENT_PYTHON_FUNCTION; at = events->parent[at])
		if (advice_is_operator(advice, at) && advice->views->parts[at] != VIEW_STEP)
			return advice_name(advice, at);
	if (advice->views->parts[row] == VIEW_LAUNCH || advice->views->parts[row] == VIEW_LOADER ||
	    advice->views->parts[row] == VIEW_OPTIMIZER || advice->views->parts[row] == VIEW_KERNEL ||
	    (advice->views->names[events->name[row]] & VIEW_NAME_COLLECTIVE))
		return advice_name(advice, row);
	return (struct ops_string){"", 0};
}

static struct advice_through describe_site(const struct advice *advice, const struct advice_site *site)
{
	struct advice_through line = {.line = site->line};
	struct ops_function_text function;

	if (site->frame == OPS_NONE) {
		const struct ops_sampled_function *sampled = &advice->samples.functions.items[advice->samples.stacks.items[site->stack].function];

		line.file = sampled->file;
		line.function = sampled->name;
	} else if (ops_event_function(advice->trace, site->frame, &function) || advice_stack_function(advice, site->frame, &function)) {
		line.file = function.file;
		line.function = function.name;
	}
	return line;
}

struct advice_where advice_describe(const struct advice *advice, uint32_t site, uint32_t row)
{
	struct advice_where where = {.module = ops_place_module(&advice->places, row),
	                             .operator_name = row == OPS_NONE ? ops_string_of("") : advice_report_operator_of(advice, row),
	                             .trace = advice->report->traces,
	                             .row = row};
	struct advice_through line;

	if (site == OPS_NONE)
		return where;
	line = describe_site(advice, &advice->sites.items[site]);
	where.file = line.file;
	where.function = line.function;
	where.line = line.line;
	return where;
}

void advice_report_release(struct advice_report *report)
{
	OPS_ARRAY_RELEASE(&report->findings);
	OPS_ARRAY_RELEASE(&report->rest.lines);
	ops_arena_release(&report->texts);
}

void advice_format_line(const struct advice *advice, uint32_t row, char *text, size_t size)
{
	struct advice_where where;

	*text = '\0';
	if (row == OPS_NONE || advice->site[row] == OPS_NONE)
		return;
	where = advice_describe(advice, advice->site[row], row);
	snprintf(text, size, "%.*s (%.*s:%u)", (int)where.function.size, where.function.bytes, (int)where.file.size, where.file.bytes, where.line);
}

struct advice_through advice_describe_through(const struct advice *advice, uint32_t library_site)
{
	return describe_site(advice, &advice->library_sites.items[library_site]);
}

bool advice_report_keep_where(struct advice_report *report, struct advice_where *where)
{
	for (size_t i = 0; i < where->through_count; i++) {
		struct advice_through *through = &where->through[i];

		if (!advice_report_keep(report, through->file.bytes, through->file.size, &through->file) ||
		    !advice_report_keep(report, through->function.bytes, through->function.size, &through->function))
			return false;
	}
	return advice_report_keep(report, where->file.bytes, where->file.size, &where->file) &&
	       advice_report_keep(report, where->function.bytes, where->function.size, &where->function) &&
	       advice_report_keep(report, where->module.bytes, where->module.size, &where->module) &&
	       advice_report_keep(report, where->operator_name.bytes, where->operator_name.size, &where->operator_name);
}

OPS_ORDER(compare_costs, struct advice_cost, OPS_DOWN(ns) OPS_UP(row))

bool advice_same_line(const struct advice_where *a, const struct advice_where *b)
{
	return a->line == b->line && ops_string_equals(a->file, b->file);
}

/* Returns true if a finding already has the place. A comprehension is a separate function at the same line. */
static bool is_told(const struct advice_finding *finding, const struct advice_where *place)
{
	for (size_t i = 0; place->line && i < finding->where_count; i++)
		if (advice_same_line(&finding->where[i], place))
			return true;
	return false;
}

/* Minimum share of libraries in the cost of a place, and of one of their lines. */
#define LIBRARIES_MIN 0.5
#define LIBRARY_LINE_MIN 0.1

/* Adds the lines of libraries through which a place has its costs. */
static bool add_through(const struct advice_tally *tally, const struct advice_cost *cost, struct advice_where *where)
{
	const struct advice *advice = tally->advice;
	OPS_ARRAY(struct advice_cost) costs = {0};
	int64_t sum_ns = 0;
	bool done = true;

	for (size_t i = 0; done && i < advice->library_sites.count; i++) {
		if (!tally->through[i].count || tally->through[i].site != cost->site)
			continue;
		sum_ns = ops_sum(sum_ns, tally->through[i].ns);
		done = OPS_ARRAY_APPEND(&costs, tally->through[i]);
	}
	OPS_ARRAY_SORT(&costs, compare_costs);
	for (size_t i = 0; (double)sum_ns >= LIBRARIES_MIN * (double)cost->ns && i < costs.count && where->through_count < ADVICE_THROUGH_MAX; i++)
		if (!i || (double)costs.items[i].ns >= LIBRARY_LINE_MIN * (double)cost->ns)
			where->through[where->through_count++] = advice_describe_through(advice, advice->through[costs.items[i].row]);
	OPS_ARRAY_RELEASE(&costs);
	return done;
}

void advice_add_place(struct advice_where place, struct advice_finding *finding)
{
	if (finding->where_count < ADVICE_WHERE_MAX && !is_told(finding, &place))
		finding->where[finding->where_count++] = place;
}

/* Adds the places with the highest costs. Places below a twentieth of the total are omitted. */
static bool add_places(const struct advice_result *result, const struct advice_tally *tally, struct advice_finding *finding)
{
	const struct advice *advice = result->advice;
	struct advice_cost *costs = ops_realloc_array(NULL, tally->count, sizeof(*costs));
	size_t used = 0;
	bool done = costs != NULL;

	for (size_t i = 0; done && i < tally->count; i++)
		if (tally->costs[i].count)
			costs[used++] = tally->costs[i];
	if (used)
		qsort(costs, used, sizeof(*costs), compare_costs);
	for (size_t i = 0; done && i < used && finding->where_count < ADVICE_WHERE_MAX; i++) {
		struct advice_where place;

		if (i && costs[i].ns <= tally->ns / 20)
			break;
		place = advice_describe(advice, costs[i].site, costs[i].row);
		done = add_through(tally, &costs[i], &place);
		advice_add_place(place, finding);
		for (size_t k = 0; !i && k < result->also_count; k++)
			advice_add_place(advice_describe(advice, advice->site[result->also[k]], result->also[k]), finding);
	}
	ops_free(costs);
	return done;
}

static enum advice_severity severity_of(const struct advice_finding *finding)
{
	enum advice_severity severity = finding->gain_pct >= GAIN_HIGH_PCT     ? ADVICE_HIGH
	                                : finding->gain_pct >= GAIN_MEDIUM_PCT ? ADVICE_MEDIUM
	                                : finding->gain_pct >= GAIN_LOW_PCT    ? ADVICE_LOW
	                                                                       : ADVICE_INFO;

	if (finding->always && finding->severity_min > severity)
		severity = finding->severity_min;
	/* A finding that may be wrong is not worth an interruption. */
	if (finding->confidence == ADVICE_UNSURE && severity > ADVICE_MEDIUM)
		severity = ADVICE_MEDIUM;
	return finding->rule->severity_max && severity > finding->rule->severity_max ? finding->rule->severity_max : severity;
}

/* The texts of rules mention steps. For a trace without steps this rewrites them to mention the recording. Applied
 * before names of the trace are inserted. */
static void append_of_recording(struct ops_buffer *out, const char *text)
{
	static const char *const words[][2] = {
		{"Each step", "The recording"},
		{"each step", "the recording"},
		{" of a step", " of the recording"},
		{" of the steps", " of the recording"},
		{" in a step", " in the recording"},
		{" a step", ""},
	};

	while (*text) {
		size_t i = 0;

		while (i < sizeof(words) / sizeof(words[0]) && strncmp(text, words[i][0], strlen(words[i][0])) != 0)
			i++;
		if (i < sizeof(words) / sizeof(words[0])) {
			ops_buffer_append_text(out, words[i][1]);
			text += strlen(words[i][0]);
		} else {
			ops_buffer_append(out, text++, 1);
		}
	}
}

/* Writes what was observed, and how the gain is computed. */
static bool format_evidence(const struct advice_result *result, struct advice_finding *finding, const char *format,
                            va_list arguments)
{
	struct ops_buffer text = {0}, of_recording = {0};
	bool is_recording = result->advice && !result->advice->real_steps;
	const char *gain = result->rule->gain;
	char facts[1024] = "";
	bool done;

	if (is_recording) {
		append_of_recording(&of_recording, format);
		ops_buffer_append(&of_recording, "", 1);
		format = of_recording.failed ? "" : of_recording.bytes;
	}
	vsnprintf(facts, sizeof(facts), format, arguments);
	ops_buffer_printf(&text, "%s Predicted gain: ", facts);
	if (is_recording)
		append_of_recording(&text, gain);
	else
		ops_buffer_append_text(&text, gain);
	ops_buffer_append_text(&text, ".");
	done = !text.failed && !of_recording.failed && advice_report_keep(result->report, text.bytes, text.size, &finding->evidence);
	if (done)
		finding->facts = (struct ops_string){finding->evidence.bytes, strlen(facts)};
	ops_buffer_release(&of_recording);
	ops_buffer_release(&text);
	return done;
}

/* Adds the result's settings to the finding, copies borrowed texts, and appends the finding. */
static bool advice_report_push(struct advice_result *result, struct advice_finding finding, const char *format,
                               va_list arguments)
{
	const char *detail = result->detail ? result->detail : "";
	struct advice_finding *added;
	bool done = format_evidence(result, &finding, format, arguments) &&
	            advice_report_keep(result->report, detail, strlen(detail), &finding.detail) &&
	            (!finding.proof.is_known ||
	             advice_report_keep(result->report, finding.proof.fix.bytes, finding.proof.fix.size, &finding.proof.fix));

	for (size_t i = 0; done && i < finding.where_count; i++)
		done = advice_report_keep_where(result->report, &finding.where[i]);
	added = done ? OPS_ARRAY_PUSH(&result->findings) : NULL;
	finding.rule = result->rule;
	finding.bound = result->bound;
	finding.general = result->general;
	if (added)
		*added = finding;
	return added != NULL;
}

bool advice_is_reported(const struct advice_finding *finding)
{
	return finding->gain_pct >= GAIN_LOW_PCT || finding->always;
}

static bool advice_report_report(struct advice_result *result, const struct advice_tally *places, double gain_ns,
                                 const char *format, va_list arguments)
{
	const struct advice *advice = result->advice;
	struct advice_finding finding = {.confidence = result->confidence, .always = result->always,
	                                 .severity_min = result->severity};
	struct advice_spread spread;

	if (!advice_find_spread(result, &spread))
		return false;
	/* Waits differ from step to step for reasons within the program. */
	if (result->rule->stage > ADVICE_STAGE_WAITS)
		gain_ns *= spread.usual;
	/* A predicted gain is an estimate, and may exceed the available time. */
	gain_ns = !(gain_ns > 0) || advice->incomplete ? 0 : gain_ns < (double)advice->steps_ns ? gain_ns : (double)advice->steps_ns;
	finding.gain_ms = advice_step_ms(advice, gain_ns);
	finding.gain_pct = advice_percent(advice, gain_ns);
	finding.noise = spread.noise;
	finding.proof = advice_find_proof(advice, result->rule->id);
	if (!advice_is_reported(&finding))
		return true;
	return add_places(result, places, &finding) && advice_report_push(result, finding, format, arguments);
}

bool advice_report_at(struct advice_result *result, const struct advice_tally *places, double gain_ns, const char *format, ...)
{
	va_list arguments;
	bool done;

	va_start(arguments, format);
	done = advice_report_report(result, places, gain_ns, format, arguments);
	va_end(arguments);
	return done;
}

bool advice_report_gain(struct advice_result *result, double gain_ns, const char *format, ...)
{
	va_list arguments;
	bool done;

	va_start(arguments, format);
	done = advice_report_report(result, &result->tally, gain_ns, format, arguments);
	va_end(arguments);
	return done;
}

bool advice_report_costs(struct advice_result *result, const char *format, ...)
{
	va_list arguments;
	bool done;

	va_start(arguments, format);
	done = advice_report_report(result, &result->tally, (double)result->tally.ns, format, arguments);
	va_end(arguments);
	return done;
}

bool advice_report_of_run(struct advice_result *result, struct advice_finding finding, const struct advice_where *where,
                          const char *format, ...)
{
	va_list arguments;
	bool done;

	if (!(finding.gain_pct >= GAIN_LOW_PCT))
		return true;
	if (finding.where_count)
		memcpy(finding.where, where, finding.where_count * sizeof(*where));
	va_start(arguments, format);
	done = advice_report_push(result, finding, format, arguments);
	va_end(arguments);
	return done;
}

/* How much a finding counts in the order. A general finding covers the time that findings with a cause do not, and what most programs have
 * is not a mistake: a cause of half its gain is more useful. So is one that is likely, compared with one that is not. */
static double weighted_ms(const struct advice_finding *finding)
{
	double ms = finding->gain_pct < GAIN_LOW_PCT ? 0 : finding->gain_ms;

	ms /= finding->rule->usual ? 3 : finding->general ? 2 : 1;
	return finding->confidence == ADVICE_UNSURE ? ms / 2 : ms;
}

static int compare_findings(const void *a, const void *b)
{
	const struct advice_finding *left = a, *right = b;

	/* Findings with almost no gain in time are, for example, about memory. They are ordered by severity. */
	double left_ms = weighted_ms(left), right_ms = weighted_ms(right);

	if (left_ms != right_ms)
		return left_ms < right_ms ? 1 : -1;
	if (left->severity != right->severity)
		return left->severity < right->severity ? 1 : -1;
	if (left->rule != right->rule)
		return strcmp(left->rule->id, right->rule->id);
	return (left->where[0].trace > right->where[0].trace) - (left->where[0].trace < right->where[0].trace);
}

OPS_ORDER(compare_gains, struct advice_finding, OPS_DOWN(gain_pct) OPS_BY_WORD(rule->id))

bool advice_report_add(struct advice_report *report, struct advice_finding *findings, size_t count, double *left_pct)
{
	if (count)
		qsort(findings, count, sizeof(*findings), compare_gains);
	for (size_t i = 0; i < count; i++) {
		struct advice_finding *finding = &findings[i];

		if (finding->gain_pct > *left_pct) {
			finding->gain_ms *= *left_pct / finding->gain_pct;
			finding->gain_pct = *left_pct;
		}
		if (!advice_is_reported(finding))
			continue;
		*left_pct -= finding->gain_pct;
		finding->severity = severity_of(finding);
		advice_set_interval(finding);
		if (!OPS_ARRAY_APPEND(&report->findings, *finding))
			return false;
	}
	return true;
}

/* Several workers may report the same finding at the same place. The one with the largest gain stays. */
static bool same(const struct advice_finding *a, const struct advice_finding *b)
{
	return a->rule == b->rule && (a->where_count > 0) == (b->where_count > 0) &&
	       (!a->where_count || advice_same_line(a->where, b->where));
}

/* No finding saves a negative time, or more than a step. */
static void check_gains(const struct advice_report *report)
{
	for (size_t i = 0; i < report->findings.count; i++) {
		const struct advice_finding *finding = &report->findings.items[i];

		assert(finding->gain_ms >= 0 && finding->gain_pct >= 0 && finding->gain_pct <= 100 * ADVICE_SHARE_MAX);
		(void)finding;
	}
}

void advice_report_sort(struct advice_report *report)
{
	size_t kept = 0;

	check_gains(report);

	if (!report->findings.count)
		return;
	qsort(report->findings.items, report->findings.count, sizeof(*report->findings.items), compare_findings);
	for (size_t i = 0; i < report->findings.count; i++) {
		bool again = false;

		/* The loops are short, since each rule has few findings. */
		for (size_t k = 0; k < kept && !again; k++)
			again = same(&report->findings.items[k], &report->findings.items[i]);
		if (!again)
			report->findings.items[kept++] = report->findings.items[i];
	}
	report->findings.count = kept;
}
