/* SPDX-License-Identifier: Apache-2.0
 *
 * Output within steps: calls that write, print, flush or log. They are identified by function rather than by file,
 * since a library that writes images also decodes them.
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"

enum output {
	NO_OUTPUT,
	OUTPUT,
	PART_OF_OUTPUT, /* counts if its function also writes: opening and closing the file, formatting the text */
};

/* Buffers in memory (_io.StringIO, _io.BytesIO) and sockets have the same methods. */
static const char *const outputs[] = {
	"<built-in function print>", "<built-in function fsync>", "<built-in function write>",
	"<built-in method write of _io.TextIOWrapper*", "<built-in method write of _io.Buffered*",
	"<built-in method write of _io.FileIO*", "<built-in method writelines of _io.TextIOWrapper*",
	"<built-in method writelines of _io.Buffered*", "<built-in method flush of _io.TextIOWrapper*",
	"<built-in method flush of _io.Buffered*", "<built-in method writerow of *", "<built-in method writerows of *",
	"<built-in function imwrite>", NULL};

static const char *const parts_of_output[] = {
	"<built-in function open>", "<built-in method close of _io.*", "<built-in method __exit__ of _io.*", NULL};

/* Functions by the end of their file's path and by name; "*" at the end matches any rest of the name. */
static const struct {
	const char *file, *name;
	enum output output;
} functions[] = {
	{"logging/__init__.py", "_log", OUTPUT},
	{"loguru/_logger.py", "_log", OUTPUT},
	{"tensorboard/writer.py", "add_*", OUTPUT},
	{"tensorboard/writer.py", "flush", OUTPUT},
	{"tensorboardX/writer.py", "add_*", OUTPUT},
	{"tensorboardX/writer.py", "flush", OUTPUT},
	{"wandb/sdk/wandb_run.py", "log", OUTPUT},
	{"mlflow/tracking/fluent.py", "log_*", OUTPUT},
	{"json/__init__.py", "dump", OUTPUT},
	{"json/__init__.py", "dumps", PART_OF_OUTPUT},
	{"rich/console.py", "print", OUTPUT},
	{"matplotlib/figure.py", "savefig", OUTPUT},
	{"PIL/Image.py", "save", OUTPUT},
};

static bool rule_logging_is_file(struct ops_string path, const char *end)
{
	size_t size = strlen(end);

	return path.size >= size && memcmp(path.bytes + path.size - size, end, size) == 0 &&
	       (path.size == size || path.bytes[path.size - size - 1] == '/');
}

static enum output output_of(struct ops_string text)
{
	struct ops_function_text function;
	const char *dot;

	if (advice_text_like(text, outputs))
		return OUTPUT;
	if (advice_text_like(text, parts_of_output))
		return PART_OF_OUTPUT;
	if (!ops_function_parse(text, &function))
		return NO_OUTPUT;
	/* "Logger._log" in a recording, "_log" in a file written by torch. */
	dot = function.name.size ? memrchr(function.name.bytes, '.', function.name.size) : NULL;
	if (dot)
		function.name = (struct ops_string){dot + 1, function.name.size - (size_t)(dot + 1 - function.name.bytes)};
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (rule_logging_is_file(function.file, functions[i].file) &&
		    advice_text_like(function.name, (const char *const[]){functions[i].name, NULL}))
			return functions[i].output;
	return NO_OUTPUT;
}

/* Returns the outputs by string; NULL if out of memory. */
static uint8_t *find_outputs(const struct advice *advice)
{
	uint8_t *which = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1);

	for (size_t i = 0; which && i < advice->named.count; i++)
		which[advice->events->name[advice->named.items[i]]] = (uint8_t)output_of(advice_name(advice, advice->named.items[i]));
	return which;
}

/* Returns, by row of a function, whether it writes itself; NULL if out of memory. */
static uint8_t *find_writers(const struct advice *advice, const uint8_t *which)
{
	uint8_t *writes = ops_alloc_zeroed(advice->events->count + 1, 1);

	for (uint32_t row = 0; writes && row < advice->events->count; row++)
		if (which[advice->events->name[row]] == OUTPUT && advice->caller[row] != OPS_NONE)
			writes[advice->caller[row]] = 1;
	return writes;
}

/* Returns true if a function of Python passes messages to another process or machine, through pipes and sockets that it writes to. */
static bool passes_messages(const struct advice *advice, uint32_t row)
{
	static const char *const files[] = {"multiprocessing/connection.py", "socket.py", "asyncio/unix_events.py", "asyncio/selector_events.py"};
	struct ops_function_text function;

	for (size_t i = 0; row != OPS_NONE && ops_event_function(advice->trace, row, &function) && i < sizeof(files) / sizeof(*files); i++)
		if (rule_logging_is_file(function.file, files[i]))
			return true;
	return false;
}

static bool rule_logging_find(const struct advice *advice, struct advice_result *result)
{
	uint8_t *which = find_outputs(advice), *writes = which ? find_writers(advice, which) : NULL;
	bool done = writes != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint8_t output = which[advice->events->name[row]];
		uint32_t caller = advice->caller[row];

		if (output && passes_messages(advice, caller))
			output = NO_OUTPUT;
		advice_add_outermost(result, row,
		                     output == OUTPUT || (output == PART_OF_OUTPUT && caller != OPS_NONE && writes[caller]),
		                     ADVICE_IN_LOADER);
	}
	ops_free(which);
	ops_free(writes);
	return done && advice_report_costs(result, "Printing, logging and writing files takes %s a step in %s.",
	                                   advice_cost(result).text, advice_events(result, "call", "calls").text);
}

const struct advice_rule advice_rule_logging = {
	.id = "logging-in-step",
	.title = "Logging and writing files hold up the program",
	.condition = "Steps print, log, write or flush files, or save images or figures, outside of the data loader. Opening, "
		     "closing and JSON formatting in the same function count as well; reading does not.",
	.gain = "the time of the calls",
	.explanation = "The training thread formats and writes the output, and waits for the terminal or the disk.",
	.advice = "Collect statistics as tensors and write them every N steps. Keep files open and buffered. To check: most "
		  "steps no longer contain these calls.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_WAITS,
	.confidence = ADVICE_SURE,
	.find = rule_logging_find,
};
