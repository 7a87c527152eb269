/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe incidents`: records of programs that became slow, hung or ended abnormally.
 */
#include "cli.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/common.h>
#include <opstrobe/internal/incidents.h>

#include "options.h"
#include "table_command.h"

static const char usage[] =
	"usage: opstrobe incidents [options]\n"
	"       opstrobe incidents [options] show ID\n"
	"       opstrobe incidents [options] open [ID]\n"
	"\n"
	"Lists the incidents that the black box kept, newest first: when, which process, what\n"
	"happened, why and at which line. Processes that were killed are found here, too: their\n"
	"black boxes become incidents first.\n"
	"\n"
	"'show' prints the report of an incident: the cause, what differed from the steps\n"
	"before, the stack of each thread, and what holds memory. 'open' shows the report in the\n"
	"browser, with its trace in all views; without ID, the list. ID may be 'latest', or the\n"
	"beginning of an ID.\n"
	"\n"
	"options:\n"
	"  --directory DIR                  where incidents are (default: $OPSTROBE_INCIDENTS, else\n"
	"                                   ~/.local/state/opstrobe/incidents)\n"
	"  --box DIR                        where black boxes are (default: $OPSTROBE_BLACK_BOX_DIR,\n"
	"                                   else /dev/shm/opstrobe-UID)\n"
	"  --format text|json|csv|markdown  of the list or report, which has no csv; default text\n"
	"  --limit N                        maximum number of incidents in the list (0: all); default 20\n"
	"  --help                           print this\n"
	"\n"
	"examples:\n"
	"  opstrobe incidents show latest\n"
	"  opstrobe incidents show --format markdown 20261123-104512-4711 > incident.md\n";

static int incidents_fail(const struct ops_error *error)
{
	cli_log("opstrobe incidents: %s\n", error->text);
	return CLI_EXIT_FAILED;
}

static int list_incidents(const char *directory, char **names, size_t count, enum ops_format format)
{
	struct ops_string *ids = calloc(count + 1, sizeof(*ids)), *reports = calloc(count + 1, sizeof(*reports));
	struct ops_error error;
	enum ops_code code = ids && reports ? OPS_OK : OPS_NO_MEMORY;
	size_t known = 0, size;
	char *text;

	for (size_t i = 0; !code && i < count; i++) {
		if (ops_incident_read(directory, names[i], &text, &size, &error)) {
			cli_log("opstrobe incidents: %s\n", error.text); /* the other incidents are still listed */
			continue;
		}
		ids[known] = (struct ops_string){names[i], strlen(names[i])};
		reports[known++] = (struct ops_string){text, size};
	}
	if (code)
		snprintf(error.text, sizeof(error.text), "out of memory");
	else
		code = ops_incident_table(ids, reports, known, format, cli_table_columns(), &text, &size, &error);
	if (!code) {
		fwrite(text, 1, size, stdout);
		ops_free(text);
	}
	for (size_t i = 0; i < known; i++)
		ops_free((char *)reports[i].bytes);
	free(ids);
	free(reports);
	return code ? incidents_fail(&error) : CLI_EXIT_OK;
}

/* Finds the incident whose name begins with `id`. Returns NULL, after printing an error, if there are none or several. */
static const char *incidents_choose(char **names, size_t count, const char *id)
{
	const char *found = NULL;
	size_t matches = 0;

	if (count && !strcmp(id, "latest"))
		return names[0];
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(names[i], id))
			return names[i];
		if (!strncmp(names[i], id, strlen(id))) {
			found = names[i];
			matches++;
		}
	}
	if (matches > 1)
		cli_log("opstrobe incidents: the IDs of %zu incidents begin with '%s'\n", matches, id);
	else if (!matches)
		cli_log("opstrobe incidents: no incident '%s'; 'opstrobe incidents' lists them\n", id);
	return matches == 1 ? found : NULL;
}

static int show_incident(const char *directory, const char *name, enum ops_format format)
{
	struct ops_error error;
	char *report, *text, trace[PATH_MAX];
	size_t size;
	enum ops_code code = ops_incident_read(directory, name, &report, &size, &error);

	if (code)
		return incidents_fail(&error);
	code = ops_incident_page(report, size, format, &text, &size, &error);
	ops_free(report);
	if (code)
		return incidents_fail(&error);
	if (format == OPS_FORMAT_TEXT)
		printf("incident %s: ", name);
	fwrite(text, 1, size, stdout);
	ops_free(text);
	snprintf(trace, sizeof(trace), "%s/%s/" OPS_INCIDENT_TRACE, directory, name);
	if (format == OPS_FORMAT_TEXT && access(trace, R_OK) == 0)
		printf("\ntrace     %s\n", trace);
	return CLI_EXIT_OK;
}

/* Opens the page of an incident or, if the name is "", of all incidents. */
static int open_incident(const char *directory, const char *name)
{
	char page[NAME_MAX + sizeof("#/incidents/")];
	char *arguments[] = {"serve", "--open", (char *)directory, NULL};

	snprintf(page, sizeof(page), "#/incidents/%s", name);
	return cli_serve_page(arguments, page);
}

int cli_incidents(char **arguments)
{
	const char *directory = NULL, *box = NULL, *format_name = "text", *limit_text = "20";
	bool markdown = false, json = false, help;
	const struct cli_option options[] = {{"--directory", &directory, NULL}, {"--box", &box, NULL},
	                                     {"--format", &format_name, NULL},  {"--limit", &limit_text, NULL},
	                                     {"--markdown", NULL, &markdown},   {"--json", NULL, &json},
	                                     {NULL, NULL, NULL}};
	char default_directory[PATH_MAX], default_box[PATH_MAX], **names = NULL;
	struct ops_error error;
	size_t words, count = 0, limit;
	int status = cli_parse_paths(arguments, options, usage, 0, 2, &words, &help), format;
	const char *id;

	if (status || help)
		return status;
	format = cli_choice("incidents", "format", format_name, ops_format_names);
	if (format < 0 || !cli_number("incidents", "number of incidents", limit_text, &limit))
		return CLI_EXIT_USAGE;
	format = json ? OPS_FORMAT_JSON : markdown ? OPS_FORMAT_MARKDOWN : format; /* former names */
	if (words && format == OPS_FORMAT_CSV) {
		cli_log("opstrobe incidents: a report has no format 'csv' (choose from text, json, markdown)\n");
		return CLI_EXIT_USAGE;
	}
	if (words && strcmp(arguments[1], "open") != 0 && (strcmp(arguments[1], "show") != 0 || words == 1)) {
		cli_log("opstrobe incidents: expected 'show ID' or 'open [ID]'; see 'opstrobe incidents --help'\n");
		return CLI_EXIT_USAGE;
	}
	if (!directory && !ops_incidents_default_directory(default_directory, sizeof(default_directory))) {
		cli_log("opstrobe incidents: no directory for incidents: set OPSTROBE_INCIDENTS or HOME\n");
		return CLI_EXIT_USAGE;
	}
	directory = directory ? directory : default_directory;
	ops_black_box_directory(default_box, sizeof(default_box));
	ops_incidents_adopt(box ? box : default_box, directory, 0);
	if (ops_incidents_list(directory, &names, &count, &error))
		return incidents_fail(&error);
	if (!words) {
		if (!count && format == OPS_FORMAT_TEXT)
			printf("no incidents in '%s'\n", directory);
		else
			status = list_incidents(directory, names, limit && limit < count ? limit : count, (enum ops_format)format);
	} else {
		id = words == 1 ? "" : incidents_choose(names, count, arguments[2]);
		status = !id                              ? CLI_EXIT_FAILED
		         : !strcmp(arguments[1], "show") ? show_incident(directory, id, (enum ops_format)format)
		                                         : open_incident(directory, id);
	}
	ops_incidents_free(names, count);
	return status;
}
