/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/incidents.h: records of moments at which a program became slow, hung or ended abnormally.
 *
 * An incident is a directory, named after its time, with the report (report.json) and, if there was a recording, its last part
 * (trace.json.gz):
 *
 *     ~/.local/state/opstrobe/incidents/20261123-104512-4711/report.json
 *                                                           /trace.json.gz
 *
 * The directory is written under another name first, so that it is always complete.
 */
#ifndef OPSTROBE_INCIDENTS_H
#define OPSTROBE_INCIDENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/query.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPS_INCIDENT_REPORT "report.json"
#define OPS_INCIDENT_TRACE "trace.json.gz"

/* --- reports -------------------------------------------------------------------------------------------------------- */

/* Returns the report on the facts of an incident and its trace (NULL: none), as a JSON object that has the facts as members; see
 * docs/manual/incidents.md. OPS_CORRUPT if the facts are not a JSON object. The caller frees the text with ops_free. */
enum ops_code ops_incident_report(const char *facts, size_t facts_size, const struct ops_trace *trace, char **ret_text,
                                  size_t *ret_size, struct ops_error *error);

/* Renders a report as a page of text or Markdown. */
enum ops_code ops_incident_page(const char *report, size_t report_size, enum ops_format format, char **ret_text, size_t *ret_size,
                                struct ops_error *error);

/* Returns a table of incidents from their reports, in the given order. `ids` are the names of their directories. */
enum ops_code ops_incident_table(const struct ops_string *ids, const struct ops_string *reports, size_t count, enum ops_format format,
                                 unsigned columns, char **ret_text, size_t *ret_size, struct ops_error *error);

/* --- overhead of recording ------------------------------------------------------------------------------------------ */

#define OPS_OVERHEAD_ROOM 256
/* Describes the overhead in the metadata "black_box" of a trace, or in that member of a report: "0.4 % of a step (0.2 to
 * 0.6 %, 31 shadow steps)", or "not yet known (3 shadow steps)". Returns false if it was not measured. */
bool ops_overhead_describe(struct ops_string json, char ret_text[OPS_OVERHEAD_ROOM]);
/* Describes the detail that is switched off to stay within the budget, and why. Returns false if everything is recorded. */
bool ops_detail_describe(struct ops_string json, char ret_text[OPS_OVERHEAD_ROOM]);

/* --- directories ---------------------------------------------------------------------------------------------------- */

/* Returns the directory of incidents: OPSTROBE_INCIDENTS, or opstrobe/incidents in the user's state directory (XDG). Returns
 * false if there is no home directory. */
bool ops_incidents_default_directory(char ret_path[], size_t room);

/* Returns the directory for the black boxes of running processes: OPSTROBE_BLACK_BOX_DIR, or a directory of this user in shared
 * memory. */
bool ops_black_box_directory(char ret_path[], size_t room);

/* Writes an incident and returns its directory in `ret_path` (PATH_MAX bytes). Then removes the oldest incidents until they take
 * at most `max_bytes` (0: OPS_INCIDENTS_MAX_BYTES) and number at most OPS_INCIDENTS_MAX. */
#define OPS_INCIDENTS_MAX 200
#define OPS_INCIDENTS_MAX_BYTES (UINT64_C(2) << 30)
enum ops_code ops_incident_write(const char *directory, const char *facts, size_t facts_size, const struct ops_trace *trace,
                                 int64_t time_ns, int64_t pid, uint64_t max_bytes, char *ret_path, struct ops_error *error);

/* Returns the names of the incidents in the directory, newest first; freed with ops_incidents_free. The list is empty if the
 * directory does not exist. */
enum ops_code ops_incidents_list(const char *directory, char ***ret_names, size_t *ret_count, struct ops_error *error);
void ops_incidents_free(char **names, size_t count);

/* Returns the report of an incident. OPS_IO if it cannot be read. */
enum ops_code ops_incident_read(const char *directory, const char *name, char **ret_text, size_t *ret_size, struct ops_error *error);

/* Makes incidents from the watch files (and recording files) in `box` whose processes have ended, and removes these files.
 * Returns their number, even if some could not be read. */
size_t ops_incidents_adopt(const char *box, const char *directory, uint64_t max_bytes);

#ifdef __cplusplus
}
#endif
#endif
