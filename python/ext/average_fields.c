/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes that FunctionEvent and FunctionEventAvg share: members of struct ops_average as Python values.
 */
#include "views.h"

/* Formats "12.345us", "1.235ms", "2.000s" as in the tables: three decimals, the unit by magnitude, negative values in us. */
static PyObject *time_text(double us)
{
	const char *unit = "us";
	PyObject *text;
	char *digits;

	if (us >= 1e6) {
		us /= 1e6;
		unit = "s";
	} else if (us >= 1e3) {
		us /= 1e3;
		unit = "ms";
	}
	digits = PyOS_double_to_string(us, 'f', 3, 0, NULL);
	if (!digits)
		return NULL;
	text = PyUnicode_FromFormat("%s%s", digits, unit);
	PyMem_Free(digits);
	return text;
}

static double average_fields_time_us(const struct ops_average *row, int field)
{
	switch (field) {
	case FIELD_CPU_TIME_TOTAL:
		return (double)row->cpu_time_total_ns / 1000.0;
	case FIELD_SELF_CPU_TIME_TOTAL:
		return (double)row->self_cpu_time_total_ns / 1000.0;
	case FIELD_DEVICE_TIME_TOTAL:
		return (double)row->device_time_total_ns / 1000.0;
	case FIELD_SELF_DEVICE_TIME_TOTAL:
		return (double)row->self_device_time_total_ns / 1000.0;
	case FIELD_CPU_TIME:
		return row->count ? (double)row->cpu_time_total_ns / 1000.0 / (double)row->count : 0;
	default:
		return row->count ? (double)row->device_time_total_ns / 1000.0 / (double)row->count : 0;
	}
}

PyObject *ops_ext_average_field(const struct ops_average *row, int field)
{
	switch (field) {
	case FIELD_CPU_MEMORY:
		return PyLong_FromLongLong(row->cpu_memory_usage);
	case FIELD_DEVICE_MEMORY:
		return PyLong_FromLongLong(row->device_memory_usage);
	case FIELD_SELF_CPU_MEMORY:
		return PyLong_FromLongLong(row->self_cpu_memory_usage);
	case FIELD_SELF_DEVICE_MEMORY:
		return PyLong_FromLongLong(row->self_device_memory_usage);
	case FIELD_FLOPS:
		return PyLong_FromLongLong(row->flops);
	case FIELD_COUNT:
		return PyLong_FromUnsignedLongLong(row->count);
	case FIELD_SCOPE:
		return PyLong_FromLong(row->scope);
	case FIELD_IS_ASYNC:
		return PyBool_FromLong(row->is_async);
	case FIELD_IS_LEGACY:
		return PyBool_FromLong(row->is_legacy);
	case FIELD_IS_USER_ANNOTATION:
		return PyBool_FromLong(row->is_user_annotation);
	default:
		if (field & FIELD_AS_TEXT)
			return time_text(average_fields_time_us(row, field & ~FIELD_AS_TEXT));
		return PyFloat_FromDouble(average_fields_time_us(row, field));
	}
}
