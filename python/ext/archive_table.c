/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of an archive, as the command prints them.
 */
#include "ext.h"

#include <string.h>

#include <opstrobe/internal/archive.h>
#include <opstrobe/internal/format.h>

static PyObject *archive_table(PyObject *module, PyObject *arguments)
{
	const char *id, *rows, *name;
	Py_ssize_t size, limit, columns;
	size_t format = 0, written = 0;
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;

	(void)module;
	if (!PyArg_ParseTuple(arguments, "ss#snn:archive_table", &id, &rows, &size, &name, &limit, &columns))
		return NULL;
	while (ops_format_names[format] && strcmp(ops_format_names[format], name) != 0)
		format++;
	if (!ops_format_names[format] || limit < 0 || columns < 0)
		return PyErr_Format(PyExc_ValueError, "invalid format '%s', limit %zd or width %zd", name, limit, columns);
	code = ops_archive_table(id, (struct ops_string){rows, (size_t)size}, (enum ops_format)format, (size_t)limit, (size_t)columns, &text, &written, &error);
	return ops_ext_result_text(code, text, written, &error);
}

static PyMethodDef archive_methods[] = {
	{"archive_table", archive_table, METH_VARARGS,
	 "archive_table(id: str, rows: str, format: str, limit: int, columns: int) -> str\n\nA table of an archive from a JSON array of its rows, in the\n"
	 "format json, text, csv or markdown. `limit`: maximum number of rows, 0: all; `columns`: width of a line of text, 0: any."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_archive_table(PyObject *module)
{
	return PyModule_AddFunctions(module, archive_methods);
}
