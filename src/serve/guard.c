/* SPDX-License-Identifier: Apache-2.0
 *
 * Access control; see guard.h.
 */
#include "serve/guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

bool guard_init(struct guard *guard, uint16_t port, bool remote)
{
	unsigned char random[TOKEN_SIZE / 2];

	*guard = (struct guard){.remote = remote};
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(guard->token + 2 * i, 3, "%02x", random[i]);
	snprintf(guard->cookie, sizeof(guard->cookie), "opstrobe_%u", port);
	if (gethostname(guard->host_name, sizeof(guard->host_name) - 1))
		guard->host_name[0] = '\0';
	return true;
}

/* Takes the same time for any wrong token, so that the time does not reveal a correct prefix. */
bool guard_token_is(const struct guard *guard, const char *text, size_t size)
{
	unsigned char different = 0;

	if (size != TOKEN_SIZE)
		return false;
	for (size_t i = 0; i < TOKEN_SIZE; i++)
		different |= (unsigned char)(text[i] ^ guard->token[i]);
	return !different;
}

bool guard_cookie_is(const struct guard *guard, const char *cookies)
{
	size_t name_size = strlen(guard->cookie);

	for (const char *at = cookies; at && *at; at += strcspn(at, ";"), at += strspn(at, "; ")) {
		size_t size = strcspn(at, ";");

		if (size > name_size && !memcmp(at, guard->cookie, name_size) && at[name_size] == '=' &&
		    guard_token_is(guard, at + name_size + 1, size - name_size - 1))
			return true;
	}
	return false;
}

bool guard_authorization_is(const struct guard *guard, const char *header)
{
	return header && !strncasecmp(header, "Bearer ", 7) && guard_token_is(guard, header + 7, strlen(header + 7));
}

/* Returns the size of the name in "name:port" or "[address]:port"; 0 if the text is neither. */
static size_t name_size(const char *host)
{
	size_t size = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
	const char *port = host + size;

	if (size > strlen(host) || (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
		return 0;
	return size;
}

/* The port is ignored, because a tunnel may use another one. */
bool guard_host_is(const struct guard *guard, const char *host)
{
	size_t size = host ? name_size(host) : 0;
	unsigned char address[sizeof(struct in6_addr)];
	char name[256];

	if (!size || size >= sizeof(name))
		return false;
	memcpy(name, host, size);
	name[size] = '\0';
	if (!strcasecmp(name, "localhost") || !strcmp(name, "[::1]"))
		return true;
	if (name[0] == '[') {
		name[size - 1] = '\0';
		return guard->remote && inet_pton(AF_INET6, name + 1, address) == 1;
	}
	if (inet_pton(AF_INET, name, address) == 1)
		return guard->remote || address[0] == 127;
	return guard->remote && !strcasecmp(name, guard->host_name);
}

bool guard_origin_is(const char *origin, const char *host)
{
	if (!origin)
		return true;
	if (!strncmp(origin, "http://", 7))
		origin += 7;
	else if (!strncmp(origin, "https://", 8)) /* of a proxy */
		origin += 8;
	else
		return false;
	return !strcasecmp(origin, host);
}
