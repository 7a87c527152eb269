/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of event tables as rows of a result.
 */
#ifndef OPS_ANALYZE_EVENT_LIST_H
#define OPS_ANALYZE_EVENT_LIST_H

#include "analyze/analysis.h"

#define EVENT_LIST_ANNOTATED 1u /* option of the table of events: include annotations */

void event_list_put(struct result_table *out, const struct event_set *set, const struct event_table *table,
                    const struct event_row *row, struct ops_string annotation);

#endif
