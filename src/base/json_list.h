/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is a long list in JSON, element by element: an array, or one that is a member of an object. Plain or gzip.
 * Memory is bounded by the longest element.
 */
#ifndef OPS_BASE_JSON_LIST_H
#define OPS_BASE_JSON_LIST_H

#include <opstrobe/error.h>

#include "base/json_scan.h"

/* Takes an element, which is borrowed. Any code but OPS_OK ends the walk and is its answer. */
typedef enum ops_code ops_json_list_take(void *context, const struct ops_json_member *element, struct ops_error *error);

/* Reads a list that is the document, or its member `key` if that is not NULL. OPS_CORRUPT if the list is missing or the text
 * is not JSON; OPS_IO if the file cannot be read. */
enum ops_code ops_json_list_read(const char *path, const char *key, ops_json_list_take *take, void *context,
                                 struct ops_error *error);

#endif
