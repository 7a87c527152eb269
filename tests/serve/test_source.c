/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files of the program the server shows: Python files named by a frame of the trace, and no others, whatever else in the
 * trace looks like a frame.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

#define EVENT(category, name, args) \
	"{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1,\"args\":{" args "}}"
#define PROCESS "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"secret.py(1): f\"}}"

static char folder[] = "/tmp/opstrobe-source-XXXXXX";
static char trace_path[64], source_path[64], data_path[64];

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(trace_path, sizeof(trace_path), "%s/trace.json", folder);
	snprintf(source_path, sizeof(source_path), "%s/secret.py", folder);
	snprintf(data_path, sizeof(data_path), "%s/data.txt", folder);
	write_file(source_path, "secret = 1\n");
	write_file(data_path, "data\n");
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(trace_path);
	unlink(source_path);
	unlink(data_path);
	return rmdir(folder);
}

/* The status that a request for a file has, of a trace with these events. */
static int ask(const char *events, const char *file)
{
	const char *const paths[] = {trace_path};
	const struct ops_api_options options = {.paths = paths, .path_count = 1};
	struct ops_api *api = NULL;
	struct ops_reply reply;
	struct ops_error error;
	char text[1024], target[128];
	const char *id;
	int status;

	snprintf(text, sizeof(text), "{\"traceEvents\":[%s]}", events);
	write_file(trace_path, text);
	assert_int_equal(ops_api_new(&options, &api, &error), OPS_OK);
	assert_int_equal(ops_api_get(api, "/api/v1/traces", &reply, &error), OPS_OK);
	id = strstr(reply.body, "\"id\":\"");
	assert_non_null(id);
	snprintf(target, sizeof(target), "/api/v1/traces/%.12s/source?file=%s", id + 6, file);
	ops_reply_release(&reply);
	assert_int_equal(ops_api_get(api, target, &reply, &error), OPS_OK);
	status = reply.status;
	assert_int_equal(strstr(reply.body, "secret = 1") != NULL, status == 200);
	ops_reply_release(&reply);
	ops_api_free(api);
	return status;
}

static void frames_name_files(void **state)
{
	(void)state;
	assert_int_equal(ask(EVENT("python_function", "secret.py(1): f", ""), "secret.py"), 200);
	assert_int_equal(ask(EVENT("cpu_op", "aten::mm", "\"Call stack\":\"model.py(3): g;secret.py(1): f\""), "secret.py"), 200);
	assert_int_equal(ask(EVENT("python_function", "secret.py(1): f", ""), "model.py"), 404);
	assert_int_equal(ask(EVENT("python_function", "data.txt(1): f", ""), "data.txt"), 404);
}

static void other_names_do_not(void **state)
{
	(void)state;
	assert_int_equal(ask(PROCESS, "secret.py"), 404); /* a trace without events */
	assert_int_equal(ask(PROCESS "," EVENT("cpu_op", "aten::mm", ""), "secret.py"), 404);
	assert_int_equal(ask(EVENT("user_annotation", "secret.py(1): f", ""), "secret.py"), 404);
	assert_int_equal(ask(EVENT("cpu_op", "aten::mm", "\"note\":\"secret.py(1): f\""), "secret.py"), 404);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(frames_name_files), cmocka_unit_test(other_names_do_not)};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
