/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a long list in a JSON file element by element. The list is the document, an array, or a member of an object. The file is
 * plain or gzip. Memory is bounded by the longest element.
 */
#ifndef OPS_BASE_JSON_LIST_H
#define OPS_BASE_JSON_LIST_H

#include <opstrobe/error.h>

#include "base/json_scan.h"

/* Receives an element, which is borrowed. Any code other than OPS_OK ends the walk and is returned. */
typedef enum ops_code ops_json_list_add(void *context, const struct ops_json_member *element, struct ops_error *error);

/* Reads the list that is the document or, if `key` is not NULL, the member `key` of it. OPS_CORRUPT if the list is missing or the
 * text is not JSON; OPS_IO if the file cannot be read. */
enum ops_code ops_json_list_read(const char *path, const char *key, ops_json_list_add *take, void *context,
                                 struct ops_error *error);

#endif
