/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the target of a request, and as a request to the API: decoded targets are valid, and every reply is JSON.
 * fuzzing.h describes how to run it, with src/serve/ in addition; the corpus is query/.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

#include "base/json.h"
#include "serve/query.h"

static void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

static void check_query(const char *target)
{
	struct query query;
	struct ops_error error;
	enum ops_code code = query_parse(&query, target, &error);
	uint32_t numbers[8];
	int64_t number = 0;
	size_t count = 0;

	expect(!code || code == OPS_INVALID, "an odd code");
	for (size_t i = 0; !code && i < query.segment_count; i++) {
		expect(query.segments[i].size && strlen(query.segments[i].bytes) == query.segments[i].size, "an odd segment");
		expect(strcmp(query.segments[i].bytes, "..") != 0, "a way up");
	}
	for (size_t i = 0; !code && i < query.parameter_count; i++) {
		const char *name = query.parameters[i].name.bytes;

		expect(strlen(query.parameters[i].value.bytes) == query.parameters[i].value.size, "an odd value");
		expect(query_find(&query, name) == &query.parameters[i].value, "a parameter twice");
		if (!query_integer(&query, name, -5, 5, &number, &error))
			expect(number >= -5 && number <= 5, "a number beyond its bounds");
		if (!query_numbers(&query, name, numbers, 8, &count, &error))
			expect(count <= 8, "more numbers than there is room");
	}
	query_release(&query);
}

/* Of no traces: routes, parameters and errors. */
static void check_reply(const char *target)
{
	static struct ops_api *api;
	const struct ops_api_options options = {0};
	struct ops_reply reply;
	struct ops_error error;

	expect(api || !ops_api_new(&options, &api, &error), "no API");
	expect(!ops_api_get(api, target, &reply, &error), "no reply");
	expect(reply.status == 200 || (reply.status >= 400 && reply.status < 500), "an odd status");
	expect(strcmp(reply.type, "application/json") != 0 || !ops_json_validate(reply.body, reply.size, &error), "no JSON");
	ops_reply_release(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *target = malloc(size + 1);

	expect(target != NULL, "no memory");
	memcpy(target, bytes, size);
	target[size] = '\0';
	check_query(target);
	check_reply(target);
	free(target);
	return 0;
}

#ifndef OPS_FUZZER
/* Each line of the files is one input. */
int main(int count, char **paths)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t size;
	int lines = 0;

	for (int i = 1; i < count; i++) {
		FILE *file = fopen(paths[i], "rb");

		expect(file != NULL, paths[i]);
		for (; (size = getline(&line, &room, file)) > 0; lines++)
			LLVMFuzzerTestOneInput((const uint8_t *)line, (size_t)size - (line[size - 1] == '\n'));
		fclose(file);
	}
	free(line);
	printf("%d lines\n", lines);
	return lines ? 0 : 1;
}
#endif
