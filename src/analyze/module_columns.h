/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of a module as columns of tables. The columns that name the module differ from table to table and precede them.
 */
#ifndef OPS_ANALYZE_MODULE_COLUMNS_H
#define OPS_ANALYZE_MODULE_COLUMNS_H

#include <opstrobe/modules.h>

#include "analyze/result.h"

#define MODULE_COLUMN_COUNT 15

/* Their rows are struct ops_module_row. */
extern const struct result_column module_columns[MODULE_COLUMN_COUNT];

#endif
