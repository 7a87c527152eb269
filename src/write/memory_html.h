/* SPDX-License-Identifier: Apache-2.0
 *
 * The page that memory_json.c leaves to memory_html.c.
 */
#ifndef OPS_WRITE_MEMORY_HTML_H
#define OPS_WRITE_MEMORY_HTML_H

#include <opstrobe/internal/write.h>

struct ops_sink;

/* The page. OPS_NO_MEMORY; errors of the sink show when it is closed. */
enum ops_code ops_write_memory_html(struct ops_sink *sink, const struct ops_memory_timeline *timeline,
                                    struct ops_memory_device device, struct ops_error *error);

#endif
