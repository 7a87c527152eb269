/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe diff`: compares two traces, for people, programs and pull requests.
 */
#include "cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/views.h>

#include "options.h"
#include "traces.h"
#include "write.h"

static const char usage[] =
	"usage: opstrobe diff [options] BASE NEW\n"
	"\n"
	"Compares two traces: the time of a step, of each of its parts, of operators and of\n"
	"kernels, all per step. A longer median step is a regression if the difference exceeds\n"
	"both the gate and the noise between steps. A verdict requires two steps on each side.\n"
	"\n"
	"options:\n"
	"  --format text|json|csv|markdown  default text\n"
	"  --gate PERCENT                   increase of the step time that is allowed: 3% (default 0%)\n"
	"  --gate, --gate counts            compare counts of operators, launches, bytes, waits and\n"
	"                                   recompiles, not times; exit with status 3 if NEW has more\n"
	"  --exit-on-regression             exit with status 3 if there is a regression\n"
	"  --rules opstrobe|tensorboard|hta\n"
	"                                   whose definitions apply; see opstrobe views --help\n"
	"  --flame FILE                     write the stacks of both, per step: .svg is a flame graph of\n"
	"                                   NEW, red where it takes longer than BASE and blue where\n"
	"                                   shorter; .folded has both times for flamegraph.pl\n"
	"  --metric cpu|device              the time that stacks show; default cpu\n"
	"  --keep-wrappers                  stacks: keep calls of libraries that only pass on to one other\n"
	"                                   call; by default they fold, and their caller has their self time\n"
	"  --keep-waits                     stacks: keep the time in which helper threads only wait\n"
	"  --help                           print this\n"
	"\n"
	"example:\n"
	"  opstrobe diff --gate 3% --exit-on-regression main.json.gz branch.json.gz\n"
	"  opstrobe diff --flame change.svg main.json.gz branch.json.gz\n";

/* Parses "3%" or "3". */
static bool parse_percentage(const char *text, double *ret_ratio)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0) || !(percent >= 0 && percent <= 1e6))
		return false;
	*ret_ratio = percent / 100;
	return true;
}

static bool parse_gate(const char *text, double *ret_ratio)
{
	if (parse_percentage(text, ret_ratio))
		return true;
	cli_log("opstrobe diff: invalid gate '%s': not a percentage such as 3%%, nor counts, nor a trace\n", text);
	return false;
}

/* If the path is NULL, no file is written. */
struct flame_file {
	const char *path;
	struct ops_flame_options options;
};

static int diff_compare(const char *const paths[2], const struct ops_diff_options *options, bool exit_on_regression,
                        struct flame_file flame)
{
	struct cli_traces base, experiment = {0};
	struct ops_diff_verdict verdict;
	struct ops_error error;
	int status = CLI_EXIT_FAILED;
	char *text = NULL;
	size_t size = 0;

	if (cli_one_trace_read(&base, paths[0]) && cli_one_trace_read(&experiment, paths[1])) {
		enum ops_code code = ops_diff(base.workers[0].trace, experiment.workers[0].trace, options, &text, &size, &verdict, &error);

		status = options->format == OPS_FORMAT_TEXT
		                 ? cli_print_folded(code, text, size, &error)
		                 : cli_print_data(options->format, code, text, size, &error);
	}
	if (!status && options->format == OPS_FORMAT_JSON)
		putchar('\n');
	if (!status && flame.path) {
		flame.options.base = base.workers[0].trace;
		if (!cli_write_flame_diff("diff", experiment.workers[0].trace, flame.path, &flame.options))
			status = CLI_EXIT_FAILED;
	}
	cli_traces_release(&base);
	cli_traces_release(&experiment);
	return !status && exit_on_regression && verdict.regression ? CLI_EXIT_REGRESSION : status;
}

/* Returns whether "--gate" has no value, because the next word is a trace or another option. */
static bool is_gate_alone(const char *next)
{
	double ratio;

	return !next || *next == '-' || (strcmp(next, "counts") != 0 && !parse_percentage(next, &ratio) && !access(next, F_OK));
}

/* Returns whether counts are compared, which Python does in SQL. A gate without a value gets the value "counts". */
static bool gates_counts(char **arguments)
{
	static char with_value[] = "--gate=counts";

	for (size_t i = 1; arguments[i] && strcmp(arguments[i], "--") != 0; i++) {
		if (!strcmp(arguments[i], "--gate") && is_gate_alone(arguments[i + 1]))
			arguments[i] = with_value;
		if (!strcmp(arguments[i], with_value) || (!strcmp(arguments[i], "--gate") && !strcmp(arguments[i + 1], "counts")))
			return true;
	}
	return false;
}

int cli_diff(char **arguments)
{
	static const char *const metrics[] = {"cpu", "device", NULL};
	const char *format = "text", *gate = "0%", *metric_name = "cpu", *rules_name = "opstrobe", *paths[2];
	struct flame_file flame = {.options = {.size = sizeof(flame.options)}};
	bool exit_on_regression = false, help;
	const struct cli_option options[] = {{"--format", &format, NULL},     {"--gate", &gate, NULL},
	                                     {"--flame", &flame.path, NULL}, {"--metric", &metric_name, NULL},
	                                     {"--rules", &rules_name, NULL},
	                                     {"--keep-wrappers", NULL, &flame.options.keep_wrappers},
	                                     {"--keep-waits", NULL, &flame.options.keep_waits},
	                                     {"--exit-on-regression", NULL, &exit_on_regression}, {NULL, NULL, NULL}};
	struct ops_diff_options how = {0};
	int chosen, metric, rules, status;

	if (gates_counts(arguments))
		return cli_hand_over("opstrobe.ci.gate", arguments);
	status = cli_parse(arguments, options, usage, paths, 2, &help);

	if (status || help)
		return status;
	chosen = cli_choice("diff", "format", format, ops_format_names);
	metric = cli_choice("diff", "metric", metric_name, metrics);
	rules = cli_choice("diff", "rules", rules_name, ops_rules_names);
	if (chosen < 0 || metric < 0 || rules < 0 || !parse_gate(gate, &how.gate_ratio) ||
	    (flame.path && !cli_can_write_flame_diff("diff", flame.path, paths, 2)))
		return CLI_EXIT_USAGE;
	flame.options.device_time = metric == 1;
	how.format = (enum ops_format)chosen;
	how.rules = (enum ops_rules)rules;
	how.columns = cli_columns();
	return diff_compare(paths, &how, exit_on_regression, flame);
}
