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

/* A process runs one command, and what it read is gone by the time it prints: so the list belongs to the process. */
static struct ops_diagnostic *kept;
static size_t kept_count;

void cli_print_diagnostic(const struct ops_diagnostic *item)
{
	if (!strcmp(item->kind, "lost"))
		cli_log("opstrobe: '%s': %" PRIu64 " %s\n", item->source, item->count, item->message);
	else if (item->count > 1)
		cli_log("opstrobe: '%s': %s (%" PRIu64 " times, first at byte %" PRIu64 ")\n", item->source, item->message,
		        item->count, item->byte);
	else
		cli_log("opstrobe: '%s': %s (byte %" PRIu64 ")\n", item->source, item->message, item->byte);
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
