/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/api.h: replies of the HTTP interface within a process, for the Python extension.
 */
#ifndef OPSTROBE_INTERNAL_API_H
#define OPSTROBE_INTERNAL_API_H

#include <opstrobe/serve.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ops_api;

struct ops_reply {
	int status;       /* as in HTTP: 200 */
	const char *type; /* "application/json", "application/octet-stream", a file's. Static */
	char *body;       /* ends with a NUL, which the size does not count */
	size_t size;
};

/* OPS_IO when a path is not there. */
enum ops_code ops_api_new(const struct ops_api_options *options, struct ops_api **ret_api, struct ops_error *error);
/* Nobody may be asking. NULL is allowed. */
void ops_api_free(struct ops_api *api);
/* What a GET of "/api/v1/…" answers, or of the viewer's files ("/", "/app.js"); waits for it. Errors that are the asker's
 * are replies. OPS_NO_MEMORY. The reply is released with ops_reply_release. */
enum ops_code ops_api_get(struct ops_api *api, const char *target, struct ops_reply *ret_reply, struct ops_error *error);
void ops_reply_release(struct ops_reply *reply);

#ifdef __cplusplus
}
#endif
#endif
