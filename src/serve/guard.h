/* SPDX-License-Identifier: Apache-2.0
 *
 * Access control. Any page that the user opens can send requests to the user's own machine, and so can any other user of it; a
 * name in a foreign domain can be made to resolve to it (DNS rebinding). So a request must have the token of this run, must name
 * this server as its host, and must not come from another page.
 */
#ifndef OPS_SERVE_GUARD_H
#define OPS_SERVE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_SIZE 32

struct guard {
	char token[TOKEN_SIZE + 1];
	char cookie[32]; /* name of the cookie, which contains the port because cookies do not depend on ports */
	bool remote;     /* other machines can reach the server: then any address, and the machine's name, is accepted as host */
	char host_name[256];
};

/* Creates a token. Returns false if the system cannot provide random numbers. */
bool guard_init(struct guard *guard, uint16_t port, bool remote);

bool guard_token_is(const struct guard *guard, const char *text, size_t size);
/* Returns whether "name=value; …" contains the token. NULL is allowed. */
bool guard_cookie_is(const struct guard *guard, const char *cookies);
/* Returns whether a header is "Bearer TOKEN". NULL is allowed. */
bool guard_authorization_is(const struct guard *guard, const char *header);
/* Returns whether a "Host" header is this server; false for NULL. */
bool guard_host_is(const struct guard *guard, const char *host);
/* Returns whether an "Origin" header is a page of the host itself; true for NULL, a missing header. */
bool guard_origin_is(const char *origin, const char *host);

#endif
