/* SPDX-License-Identifier: Apache-2.0
 *
 * The page for OPS_MEMORY_HTML, which memory_json.c calls.
 */
#ifndef OPS_WRITE_MEMORY_HTML_H
#define OPS_WRITE_MEMORY_HTML_H

#include <opstrobe/internal/write.h>

struct ops_sink;

/* Writes the page. OPS_NO_MEMORY; errors of the sink are returned when it is closed. */
enum ops_code ops_write_memory_html(struct ops_sink *sink, const struct ops_memory_timeline *timeline,
                                    struct ops_memory_device device, struct ops_error *error);

#endif
