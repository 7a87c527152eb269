/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces server.c in builds without libmicrohttpd.
 */
#include <opstrobe/serve.h>

#include "base/fault.h"

enum ops_code ops_server_start(const struct ops_server_options *options, struct ops_server **ret_server,
                               struct ops_error *error)
{
	(void)options;
	(void)ret_server;
	return ops_fault(error, OPS_UNSUPPORTED,
	                 "Opstrobe was built without libmicrohttpd, so it cannot serve: install libmicrohttpd-dev and build again");
}

const char *ops_server_url(const struct ops_server *server)
{
	(void)server;
	return "";
}

const char *ops_server_token(const struct ops_server *server)
{
	(void)server;
	return "";
}

uint16_t ops_server_port(const struct ops_server *server)
{
	(void)server;
	return 0;
}

void ops_server_stop(struct ops_server *server)
{
	(void)server;
}
