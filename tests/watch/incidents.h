/* SPDX-License-Identifier: Apache-2.0
 *
 * A directory of incidents for the duration of a test, and what its reports contain.
 */
#ifndef OPS_TEST_INCIDENTS_H
#define OPS_TEST_INCIDENTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <opstrobe/internal/incidents.h>
#include <opstrobe/internal/watch.h>

static char directory[64];

static int directory_make(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/opstrobe-watch-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int directory_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return system(command);
}

static size_t incidents_count(void)
{
	struct ops_error error;
	char **names;
	size_t count;

	assert_int_equal(ops_incidents_list(directory, &names, &count, &error), OPS_OK);
	ops_incidents_free(names, count);
	return count;
}

/* Expects that the newest incident's report contains the text. */
static void expect_report(const char *text)
{
	struct ops_error error;
	size_t count, size;
	char **names, *report;

	assert_int_equal(ops_incidents_list(directory, &names, &count, &error), OPS_OK);
	assert_true(count > 0);
	assert_int_equal(ops_incident_read(directory, names[0], &report, &size, &error), OPS_OK);
	if (!strstr(report, text))
		print_message("no '%s' in %s\n", text, report);
	assert_non_null(strstr(report, text));
	ops_free(report);
	ops_incidents_free(names, count);
}

#endif
