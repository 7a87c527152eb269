/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics on standard error and in JSON; see diagnose.h.
 */
#include "diagnose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The list belongs to the process, because a process runs one command, and the traces are released before it prints. */
static struct ops_diagnostic *kept;
static size_t kept_count;

/* Describes the problem, without the file. */
static void diagnose_describe(const struct ops_diagnostic *item, char *text, size_t room)
{
	if (!strcmp(item->kind, "lost"))
		snprintf(text, room, "%" PRIu64 " %s", item->count, item->message);
	else if (item->count > 1)
		snprintf(text, room, "%s (%" PRIu64 " times, first at byte %" PRIu64 ")", item->message, item->count, item->byte);
	else
		snprintf(text, room, "%s (byte %" PRIu64 ")", item->message, item->byte);
}

void cli_print_diagnostic(const struct ops_diagnostic *item)
{
	char text[512];

	diagnose_describe(item, text, sizeof(text));
	cli_log("opstrobe: '%s': %s\n", item->source, text);
}

void cli_print_markdown_diagnostics(void)
{
	char text[512];

	for (size_t i = 0; i < kept_count; i++) {
		const char *slash = strrchr(kept[i].source, '/');

		diagnose_describe(&kept[i], text, sizeof(text));
		fputs("> **Warning:** `", stdout);
		for (const char *at = slash ? slash + 1 : kept[i].source; *at; at++)
			putchar((unsigned char)*at < ' ' || *at == '`' ? '?' : *at);
		printf("`: %s\n%s", text, i + 1 < kept_count ? ">\n" : "\n");
	}
}

static void diagnose_keep(const struct ops_diagnostic *items, size_t count)
{
	struct ops_diagnostic *grown = realloc(kept, (kept_count + count) * sizeof(*kept));
	char *source = strdup(items[0].source);

	if (grown)
		kept = grown;
	if (!grown || !source) {
		fputs("opstrobe: out of memory\n", stderr);
		free(source);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		kept[kept_count] = items[i];
		kept[kept_count++].source = source;
	}
}

void cli_diagnose(const struct ops_trace *trace, const char *path)
{
	struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];
	size_t count = ops_trace_diagnostics(trace, path, items);

	for (size_t i = 0; i < count; i++)
		cli_print_diagnostic(&items[i]);
	if (count)
		diagnose_keep(items, count);
}

enum ops_code cli_add_diagnostics(char **text, size_t *size, struct ops_error *error)
{
	return ops_diagnostics_add(kept, kept_count, text, size, error);
}
