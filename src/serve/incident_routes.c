/* SPDX-License-Identifier: Apache-2.0
 *
 * Routes for incidents in the served directories: their list, and the report of each, as printed by `opstrobe incidents`.
 */
#include <string.h>

#include <opstrobe/internal/incidents.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "serve/api.h"

/* Both arrays own their texts. */
struct incident_list {
	OPS_ARRAY(struct ops_string) ids;
	OPS_ARRAY(struct ops_string) reports;
};

static void incident_list_release(struct incident_list *list)
{
	for (size_t i = 0; i < list->ids.count; i++)
		ops_free((char *)list->ids.items[i].bytes);
	for (size_t i = 0; i < list->reports.count; i++)
		ops_free((char *)list->reports.items[i].bytes);
	OPS_ARRAY_RELEASE(&list->ids);
	OPS_ARRAY_RELEASE(&list->reports);
}

/* A path that is not a directory or has no incidents adds none; neither does an incident whose report cannot be read. */
static bool incident_list_add(struct incident_list *list, const char *directory)
{
	struct ops_error ignored;
	char **names, *report;
	size_t count, size;
	bool done = true;

	if (ops_incidents_list(directory, &names, &count, &ignored))
		return true;
	done = OPS_ARRAY_RESERVE(&list->ids, count) && OPS_ARRAY_RESERVE(&list->reports, count);
	for (size_t i = 0; done && i < count; i++) {
		if (ops_incident_read(directory, names[i], &report, &size, &ignored))
			continue;
		list->ids.items[list->ids.count++] = (struct ops_string){names[i], strlen(names[i])};
		list->reports.items[list->reports.count++] = (struct ops_string){report, size};
		names[i] = NULL;
	}
	ops_incidents_free(names, count);
	return done;
}

static enum ops_code answer_incidents(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const path_list *paths = &request->api->catalog->paths;
	struct incident_list list = {0};
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < paths->count; i++)
		if (!incident_list_add(&list, paths->items[i]))
			code = ops_fault_memory(error);
	if (!code)
		code = ops_incident_table(list.ids.items, list.reports.items, list.ids.count, OPS_FORMAT_JSON, 0, ret_text, ret_size,
		                          error);
	incident_list_release(&list);
	return code;
}

static enum ops_code answer_incident(struct request *request, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	const path_list *paths = &request->api->catalog->paths;
	const char *name = request->query.segments[3].bytes;
	enum ops_code code = OPS_IO;
	char *report = NULL;
	size_t size = 0;

	for (size_t i = 0; code && i < paths->count; i++)
		code = ops_incident_read(paths->items[i], name, &report, &size, error);
	if (code)
		return request_fail(request, 404, error, "incident '%.80s' does not exist", name);
	code = ops_incident_page(report, size, OPS_FORMAT_JSON, ret_text, ret_size, error);
	ops_free(report);
	return code;
}

const struct route incident_routes[] = {
	{.path = "incidents", .parameters = "", .answer = answer_incidents, .unstable = true},
	{.path = "incidents/{incident}", .parameters = "", .answer = answer_incident, .unstable = true},
	{0},
};
