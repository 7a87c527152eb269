/* SPDX-License-Identifier: Apache-2.0
 *
 * A process that answers questions about an archive of traces: `opstrobe archive answer`, which uses DuckDB. It reads questions
 * from its input and writes replies to its output, each a line of JSON (python/opstrobe/archiving/answers.py). The first line is
 * written when the archive is open: {"folder": …}, the directory for traces that are opened, or {"error": …}.
 */
#ifndef OPS_SERVE_ARCHIVE_H
#define OPS_SERVE_ARCHIVE_H

#include <opstrobe/common.h>
#include <opstrobe/error.h>

#include "base/buffer.h"

struct archive;

/* Starts the process and waits until the archive is open. `command` ends with NULL. */
enum ops_code archive_start(const char *const *command, struct archive **ret_archive, struct ops_error *error);
/* Returns the directory that contains the traces that were opened. It is removed when the process ends. */
const char *archive_folder(const struct archive *archive);
/* Returns the reply to a question, a JSON object without a member "error"; `reply` is released by the caller even on failure.
 * OPS_INVALID with the error in the reply; OPS_IO if the process has ended. Any thread may call this; questions wait for each
 * other. */
enum ops_code archive_request(struct archive *archive, struct ops_string question, struct ops_buffer *reply, struct ops_error *error);
/* Makes the question in progress fail, and all later ones. NULL is allowed. */
void archive_cancel(struct archive *archive);
/* Ends the process. NULL is allowed. */
void archive_stop(struct archive *archive);

#endif
