/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may ask. Any page that the user opens can send requests to his own machine, and any other user of it too; a name of
 * somebody else's domain can be made to lead there (DNS rebinding). So a request needs the token of this run, names this
 * server as its host, and comes from no other page.
 */
#ifndef OPS_SERVE_GUARD_H
#define OPS_SERVE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_SIZE 32

struct guard {
	char token[TOKEN_SIZE + 1];
	char cookie[32]; /* its name, which contains the port because cookies do not depend on ports */
	bool remote;     /* others may reach it: then any address will do as its host, and the machine's name */
	char host_name[256];
};

/* Makes a token. False when the system has no random numbers. */
bool guard_init(struct guard *guard, uint16_t port, bool remote);

bool guard_token_is(const struct guard *guard, const char *text, size_t size);
/* Whether "name=value; …" has the token. NULL is allowed. */
bool guard_cookie_is(const struct guard *guard, const char *cookies);
/* Whether it is "Bearer TOKEN". NULL is allowed. */
bool guard_authorization_is(const struct guard *guard, const char *header);
/* Whether a "Host" is this server. NULL is none. */
bool guard_host_is(const struct guard *guard, const char *host);
/* Whether an "Origin" is a page of the host itself; NULL, which is none, too. */
bool guard_origin_is(const char *origin, const char *host);

#endif
