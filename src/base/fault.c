/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors as chains of causes; see fault.h and opstrobe/error.h.
 */
#include "base/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"

static const char *const code_names[] = {
#define CODE_NAME(name, text) #name,
	OPS_CODES(CODE_NAME)
#undef CODE_NAME
};
static const char *const code_texts[] = {
#define CODE_TEXT(name, text) text,
	OPS_CODES(CODE_TEXT)
#undef CODE_TEXT
};
#define CODE_COUNT (sizeof(code_names) / sizeof(code_names[0]))

const char *ops_code_name(enum ops_code code)
{
	return (size_t)code < CODE_COUNT ? code_names[code] : "UNKNOWN";
}

const char *ops_code_text(enum ops_code code)
{
	return (size_t)code < CODE_COUNT ? code_texts[code] : "unknown error";
}

/* Paths may contain any bytes, and truncation may split a character, but the text is for a terminal. */
void ops_make_plain(char *text)
{
	const char *end = text + strlen(text);
	char *to = text;
	bool shows;

	for (const char *at = text; at < end;) {
		size_t length = ops_escape_next(at, end, &shows);

		memmove(to, shows ? at : "?", shows ? length : 1);
		to += shows ? length : 1;
		at += length;
	}
	*to = '\0';
}

enum ops_code ops_fault(struct ops_error *error, enum ops_code code, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return code;
	error->code = code;
	error->os_errno = 0;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	ops_make_plain(error->text);
	return code;
}

enum ops_code ops_fault_errno(struct ops_error *error, int os_errno, const char *format, ...)
{
	enum ops_code code = os_errno == ENOMEM ? OPS_NO_MEMORY : OPS_IO;
	char *cause;
	size_t used;
	va_list arguments;

	if (!error)
		return code;
	error->code = code;
	error->os_errno = os_errno;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	used = strlen(error->text);
	errno = os_errno;
	snprintf(error->text + used, sizeof(error->text) - used, ": %m");
	/* "No such file" → "no such file", the style of all other error texts. */
	cause = error->text + used;
	if (strlen(cause) > 3 && cause[2] >= 'A' && cause[2] <= 'Z' && cause[3] >= 'a' && cause[3] <= 'z')
		cause[2] = (char)(cause[2] - 'A' + 'a');
	ops_make_plain(error->text);
	return code;
}

enum ops_code ops_fault_memory(struct ops_error *error)
{
	return ops_fault(error, OPS_NO_MEMORY, "%s", ops_code_text(OPS_NO_MEMORY));
}

enum ops_code ops_fault_context(struct ops_error *error, enum ops_code code, const char *format, ...)
{
	char inner[sizeof(error->text)];
	size_t used;
	va_list arguments;

	if (!error)
		return code;
	memcpy(inner, error->text, sizeof(inner));
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	used = strlen(error->text);
	snprintf(error->text + used, sizeof(error->text) - used, ": %s", inner);
	ops_make_plain(error->text);
	return code;
}
