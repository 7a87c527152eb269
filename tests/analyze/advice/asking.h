/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests advice while memory runs out, for fail_each().
 */
#ifndef TEST_ASKING_H
#define TEST_ASKING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/internal/advice.h>

static inline void advise_as(struct ops_trace *trace, enum ops_format format)
{
	struct ops_rank worker = {.trace = trace, .name = "w"};
	struct ops_error error;
	char *text = NULL;
	size_t size;

	if (ops_advise(&worker, 1, format, &text, &size, &error))
		assert_int_equal(error.code, OPS_NO_MEMORY);
	ops_free(text);
}

#endif
