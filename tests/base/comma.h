/* SPDX-License-Identifier: Apache-2.0
 *
 * A locale whose decimal point is a comma, as a program may have set.
 */
#ifndef OPS_TESTS_BASE_COMMA_H
#define OPS_TESTS_BASE_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Calls `work` in such a locale, which is made where the system has the parts; else the test is skipped. */
static inline void with_comma(void (*work)(void))
{
	char folder[] = "/tmp/opstrobe-locale-XXXXXX";
	char command[256];
	bool is_set;

	assert_non_null(mkdtemp(folder));
	setenv("LOCPATH", folder, 1);
	snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", folder);
	if (system(command) != 0)
		unsetenv("LOCPATH");
	is_set = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
	if (is_set) {
		assert_string_equal(localeconv()->decimal_point, ",");
		work();
		setlocale(LC_NUMERIC, "C");
	}
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
	if (!is_set)
		skip();
}

#endif
