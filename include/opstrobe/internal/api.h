/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/api.h: requests of the HTTP interface within a process, for the Python extension.
 */
#ifndef OPSTROBE_INTERNAL_API_H
#define OPSTROBE_INTERNAL_API_H

#include <opstrobe/serve.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ops_api;

struct ops_reply {
	int status;       /* HTTP status, such as 200 */
	const char *type; /* content type: "application/json", "application/octet-stream" or that of a file. Static */
	char *body;       /* ends with a NUL that `size` does not count */
	size_t size;
};

/* OPS_IO if a path does not exist. */
enum ops_code ops_api_new(const struct ops_api_options *options, struct ops_api **ret_api, struct ops_error *error);
/* No request may be in progress. NULL is allowed. */
void ops_api_free(struct ops_api *api);
/* Answers a GET request for "/api/v1/…" or a file of the viewer ("/", "/app.js"), and waits for the reply. Errors of the request
 * are replies. OPS_NO_MEMORY. The caller releases the reply with ops_reply_release. */
enum ops_code ops_api_get(struct ops_api *api, const char *target, struct ops_reply *ret_reply, struct ops_error *error);
void ops_reply_release(struct ops_reply *reply);

#ifdef __cplusplus
}
#endif
#endif
