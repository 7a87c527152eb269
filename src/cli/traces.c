/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads all traces of a command at once, and shared code of commands that write files.
 */
#include "traces.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <opstrobe/internal/format.h>

#include "cli.h"
#include "diagnose.h"
#include "stream.h"

bool cli_traces_each(char *const *paths, size_t count, bool (*take)(void *context, const struct ops_rank *worker),
                     void *context)
{
	struct cli_stream stream;
	struct ops_error error;
	bool done = cli_stream_open(&stream, paths, count, CLI_AHEAD, 0);

	for (size_t i = 0; done && i < stream.count; i++) {
		const struct ops_trace_file *file = &stream.files.list.items[i];
		struct ops_trace *trace;

		if (cli_stream_get(&stream, i, &trace, &error)) {
			cli_log("opstrobe: %s\n", error.text);
			done = false;
		} else {
			done = take(context, &(struct ops_rank){.trace = trace, .name = file->worker, .span = file->span});
			ops_trace_unref(trace);
		}
	}
	cli_stream_close(&stream);
	return done;
}

/* Smaller traces are analyzed faster than a message can be read. */
#define PROGRESS_EVENTS_MIN 1000000

enum ops_code cli_adviser_add(struct ops_adviser *adviser, const struct ops_rank *worker, struct ops_error *error)
{
	size_t events = ops_trace_events(worker->trace)->count;
	bool show = events >= PROGRESS_EVENTS_MIN && isatty(STDERR_FILENO);
	enum ops_code code;

	if (show)
		fprintf(stderr, "\r\033[Kapplying the rules of advice to %s events", ops_figure_of_number((double)events).text);
	code = ops_adviser_add(adviser, worker, error);
	if (show)
		fputs("\r\033[K", stderr);
	return code;
}

bool cli_traces_read(struct cli_traces *traces, char *const *paths, size_t count)
{
	struct cli_stream stream;
	struct ops_error error;
	bool done = cli_stream_open(&stream, paths, count, SIZE_MAX / 2, 0);

	*traces = (struct cli_traces){.workers = done ? cli_stream_ranks(&stream) : NULL};
	if (done && !traces->workers) {
		fputs("opstrobe: out of memory\n", stderr);
		done = false;
	}
	for (size_t i = 0; done && i < stream.count; i++) {
		struct ops_trace *trace;

		done = !cli_stream_get(&stream, i, &trace, &error);
		if (done)
			traces->workers[traces->count++].trace = trace;
		else
			cli_log("opstrobe: %s\n", error.text);
	}
	traces->files = stream.files;
	stream.files = (struct cli_files){0};
	cli_stream_close(&stream);
	return done;
}

bool cli_one_trace_read(struct cli_traces *traces, const char *path)
{
	char *const paths[] = {(char *)path};

	if (!cli_traces_read(traces, paths, 1))
		return false;
	if (traces->count > 1)
		cli_log("opstrobe: '%s' contains %zu traces; name one of them\n", path, traces->count);
	return traces->count == 1;
}

void cli_traces_release(struct cli_traces *traces)
{
	for (size_t i = 0; i < traces->count; i++)
		ops_trace_unref((struct ops_trace *)traces->workers[i].trace);
	free(traces->workers);
	cli_files_release(&traces->files);
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

static enum cli_color color;

void cli_set_color(enum cli_color when)
{
	color = when;
}

bool cli_colours(void)
{
	const char *terminal = getenv("TERM"), *none = getenv("NO_COLOR");

	if (color != CLI_COLOR_AUTO)
		return color == CLI_COLOR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(none && *none) && terminal && strcmp(terminal, "dumb") != 0;
}

bool cli_ascii(void)
{
	setlocale(LC_CTYPE, "");
	return isatty(STDOUT_FILENO) && strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

int cli_print(enum ops_code code, char *text, size_t size, const struct ops_error *error)
{
	if (code) {
		cli_log("opstrobe: %s\n", error->text);
		return cli_status(code);
	}
	fwrite(text, 1, cli_ascii() ? ops_format_ascii(text, size) : size, stdout);
	ops_free(text);
	return CLI_EXIT_OK;
}

int cli_print_data(enum ops_format format, enum ops_code code, char *text, size_t size, struct ops_error *error)
{
	if (!code && format == OPS_FORMAT_JSON) {
		code = cli_add_diagnostics(&text, &size, error);
		if (code)
			ops_free(text);
	}
	if (!code && format == OPS_FORMAT_MARKDOWN)
		cli_print_markdown_diagnostics();
	return cli_print(code, text, size, error);
}

int cli_status(enum ops_code code)
{
	if (code == OPS_INVALID)
		return CLI_EXIT_USAGE;
	return code ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

unsigned cli_table_columns(void)
{
	struct winsize size;

	return !isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

unsigned cli_columns(void)
{
	unsigned columns = cli_table_columns();

	if (!columns)
		return 80;
	return columns < 60 ? 60 : columns < 160 ? columns : 160;
}

/* Returns the size of the character or colour escape sequence at `at`, which is `*ret_columns` columns wide. */
static size_t piece(const char *at, const char *end, size_t *ret_columns)
{
	const char *next = at + 1;

	*ret_columns = *at != '\033';
	while (next < end && (*ret_columns ? (*next & 0xc0) == 0x80 : next[-1] != 'm'))
		next++;
	return (size_t)(next - at);
}

/* Returns where to break the line that starts at `line` so that it takes at most `columns`: after the last word that fits or, if
 * a word is too long, within it. A percent sign stays with its figure. */
static const char *fold_at(const char *line, const char *end, size_t columns)
{
	const char *blank = NULL;
	size_t column = 0, more;

	for (const char *at = line; at < end; at += piece(at, end, &more), column += more) {
		if (column > columns && blank)
			return blank;
		if (*at == ' ' && at > line && at[-1] != ' ' && (at + 1 == end || at[1] != '%'))
			blank = at;
	}
	return column > columns && blank ? blank : end;
}

/* Returns the indentation of continuation lines, which align with the text after "1. " or "   at ". */
static size_t indent_of(const char *line, const char *end)
{
	const char *at = line;

	while (at < end && *at == ' ')
		at++;
	return (size_t)(at - line) + (at < end && *at >= '1' && *at <= '9' ? 3 : 2);
}

/* Returns whether the line ends in a command, which a reader copies: such a line is not broken. */
static bool has_command(const char *line, const char *end)
{
	static const char before[] = ": opstrobe ";

	return memmem(line, (size_t)(end - line), before, strlen(before)) != NULL;
}

static void print_folded(const char *line, const char *end, size_t columns)
{
	size_t indent = indent_of(line, end);
	const char *to = fold_at(line + strspn(line, " "), end, columns - strspn(line, " "));

	fwrite(line, 1, (size_t)(to - line), stdout);
	while (to < end) {
		line = to + strspn(to, " ");
		to = fold_at(line, end, columns - indent);
		printf("\n%*s%.*s", (int)indent, "", (int)(to - line), line);
	}
	putchar('\n');
}

int cli_print_folded(enum ops_code code, char *text, size_t size, const struct ops_error *error)
{
	if (code)
		return cli_print(code, text, size, error);
	size = cli_ascii() ? ops_format_ascii(text, size) : size;
	for (const char *line = text, *end; line < text + size; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + size - line));
		end = end ? end : text + size;
		print_folded(line, end, has_command(line, end) ? SIZE_MAX : cli_columns());
	}
	ops_free(text);
	return CLI_EXIT_OK;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = number;
}

void cli_interrupt_begin(void)
{
	/* A second Ctrl-C ends the process at once. An ignored interrupt stays ignored. */
	struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND}, old;

	if (!sigaction(SIGINT, NULL, &old) && old.sa_handler == SIG_DFL)
		sigaction(SIGINT, &action, NULL);
}

int cli_interrupted(void *context, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	return interrupted != 0;
}

void cli_interrupt_end(void)
{
	if (!interrupted)
		return;
	signal(SIGINT, SIG_DFL);
	raise(SIGINT);
}
