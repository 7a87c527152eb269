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
#include <sys/stat.h>
#include <unistd.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

#define EVENT(category, name, args) \
	"{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1,\"args\":{" args "}}"
#define PROCESS "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"secret.py(1): f\"}}"

static char folder[] = "/tmp/opstrobe-source-XXXXXX";
static char trace_path[64], source_path[64], data_path[64], hidden_folder[64], hidden_path[80];

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
	snprintf(hidden_folder, sizeof(hidden_folder), "%s/code", folder);
	snprintf(hidden_path, sizeof(hidden_path), "%s/hidden.py", hidden_folder);
	if (mkdir(hidden_folder, 0700))
		return -1;
	write_file(hidden_path, "secret = 1\n");
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(trace_path);
	unlink(source_path);
	unlink(data_path);
	unlink(hidden_path);
	rmdir(hidden_folder);
	return rmdir(folder);
}

/* The status that a request for a file has, of a trace with these events and members. */
static int get_status(const char *members, const char *events, const char *file)
{
	const char *const paths[] = {trace_path};
	const struct ops_api_options options = {.paths = paths, .path_count = 1};
	struct ops_api *api = NULL;
	struct ops_reply reply;
	struct ops_error error;
	char text[1024], target[128];
	const char *id;
	int status;

	snprintf(text, sizeof(text), "{%s\"traceEvents\":[%s]}", members, events);
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

static int ask(const char *events, const char *file)
{
	return get_status("", events, file);
}

static void frames_name_files(void **state)
{
	(void)state;
	assert_int_equal(ask(EVENT("python_function", "secret.py(1): f", ""), "secret.py"), 200);
	assert_int_equal(ask(EVENT("cpu_op", "aten::mm", "\"Call stack\":\"model.py(3): g;secret.py(1): f\""), "secret.py"), 200);
	assert_int_equal(ask(EVENT("python_function", "secret.py(1): f", ""), "model.py"), 404);
	assert_int_equal(ask(EVENT("python_function", "data.txt(1): f", ""), "data.txt"), 404);
}

/* Paths are recorded without the directory in which modules are found; "source" has the complete ones. */
static void recordings_say_where_files_are(void **state)
{
	const char *event = EVENT("cpu_op", "aten::mm", "\"Call stack\":\"hidden.py(3): g;\"");
	char source[256];

	(void)state;
	assert_int_equal(ask(event, "hidden.py"), 404);
	snprintf(source, sizeof(source), "\"source\":{\"%s/hidden.py.py\":{},\"%s/longer/path/hidden.py\":{},\"%s/hidden.py\":{}},", folder, folder, hidden_folder);
	assert_int_equal(get_status(source, event, "hidden.py"), 200);
	assert_int_equal(get_status(source, event, "other.py"), 404);
	assert_int_equal(get_status("\"source\":[1],", event, "hidden.py"), 404);
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
	const struct CMUnitTest tests[] = {cmocka_unit_test(frames_name_files), cmocka_unit_test(recordings_say_where_files_are), cmocka_unit_test(other_names_do_not)};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
