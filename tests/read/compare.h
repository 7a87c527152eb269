/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two traces column by column. Ids of strings may differ, the strings may not.
 */
#ifndef OPS_TEST_COMPARE_H
#define OPS_TEST_COMPARE_H

#include <string.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/trace.h>

static inline void assert_same_text(struct ops_string a, struct ops_string b)
{
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.bytes, b.bytes, a.size);
}

static inline void assert_same_string(const struct ops_trace *a, uint32_t id_a, const struct ops_trace *b, uint32_t id_b)
{
	assert_int_equal(id_a == OPS_NONE, id_b == OPS_NONE);
	if (id_a != OPS_NONE)
		assert_same_text(ops_trace_string(a, id_a), ops_trace_string(b, id_b));
}

#define SAME_NUMBER(column)                                                                        \
	assert_int_equal(!x->column, !y->column);                                                  \
	if (x->column)                                                                             \
		assert_int_equal(x->column[row], y->column[row]);
#define SAME_STRING(column)                                                                        \
	assert_int_equal(!x->column, !y->column);                                                  \
	if (x->column)                                                                             \
		assert_same_string(a, x->column[row], b, y->column[row]);

static inline void assert_same_events(const struct ops_trace *a, const struct ops_trace *b)
{
	const struct ops_events *x = ops_trace_events(a), *y = ops_trace_events(b);

	assert_int_equal(x->count, y->count);
	for (size_t row = 0; row < x->count; row++) {
		SAME_NUMBER(start_ns);
		SAME_NUMBER(end_ns);
		SAME_NUMBER(self_ns);
		SAME_NUMBER(sequence_nr);
		SAME_NUMBER(track);
		SAME_NUMBER(parent);
		SAME_NUMBER(forward_thread);
		SAME_NUMBER(flags);
		SAME_NUMBER(kind);
		SAME_NUMBER(scope);
		SAME_NUMBER(end_track);
		SAME_NUMBER(id);
		SAME_NUMBER(correlation);
		SAME_NUMBER(function);
		SAME_NUMBER(call_line);
		SAME_NUMBER(python_id);
		SAME_NUMBER(python_parent);
		SAME_NUMBER(python_module);
		SAME_NUMBER(module);
		SAME_STRING(name);
		SAME_STRING(overload);
		SAME_STRING(args);
		SAME_STRING(category);
		SAME_STRING(call_stack);
		SAME_STRING(extra);
		SAME_STRING(storages);
		assert_int_equal(!x->index, !y->index);
		assert_int_equal(x->inputs[row] == OPS_NONE, y->inputs[row] == OPS_NONE);
		if (x->inputs[row] != OPS_NONE)
			assert_same_text(ops_trace_inputs(a, x->inputs[row]), ops_trace_inputs(b, y->inputs[row]));
	}
}

static inline void assert_same_tracks(const struct ops_trace *a, const struct ops_trace *b)
{
	size_t count_a, count_b;
	const struct ops_track *x = ops_trace_tracks(a, &count_a), *y = ops_trace_tracks(b, &count_b);

	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_int_equal(x[i].kind, y[i].kind);
		assert_int_equal(x[i].flags, y[i].flags);
		assert_int_equal(x[i].number, y[i].number);
		assert_same_string(a, x[i].name, b, y[i].name);
		if (x[i].flags & OPS_TRACK_PID_TEXT)
			assert_same_string(a, (uint32_t)x[i].pid, b, (uint32_t)y[i].pid);
		else
			assert_int_equal(x[i].pid, y[i].pid);
		if (x[i].flags & OPS_TRACK_TID_TEXT)
			assert_same_string(a, (uint32_t)x[i].tid, b, (uint32_t)y[i].tid);
		else
			assert_int_equal(x[i].tid, y[i].tid);
	}
}

static inline void assert_same_records(const struct ops_trace *a, const struct ops_trace *b)
{
	size_t count_a, count_b;
	const struct ops_memory_record *m = ops_trace_memory(a, &count_a), *n = ops_trace_memory(b, &count_b);
	const uint32_t *stacks = ops_trace_memory_stacks(a), *other_stacks = ops_trace_memory_stacks(b);
	const struct ops_counter_record *c, *d;
	const struct ops_role_record *r, *s;
	const struct ops_link *k, *l;

	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++)
		assert_memory_equal(&m[i], &n[i], sizeof(m[i]));
	assert_int_equal(!stacks, !other_stacks);
	for (size_t i = 0; stacks && i < count_a; i++)
		assert_same_string(a, stacks[i], b, other_stacks[i]);
	c = ops_trace_counters(a, &count_a);
	d = ops_trace_counters(b, &count_b);
	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_int_equal(c[i].time_ns, d[i].time_ns);
		assert_memory_equal(&c[i].value, &d[i].value, sizeof(c[i].value));
		assert_int_equal(c[i].track, d[i].track);
		assert_same_string(a, c[i].name, b, d[i].name);
		assert_same_string(a, c[i].series, b, d[i].series);
	}
	r = ops_trace_roles(a, &count_a);
	s = ops_trace_roles(b, &count_b);
	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_int_equal(r[i].time_ns, s[i].time_ns);
		assert_memory_equal(&r[i].storage, &s[i].storage, sizeof(r[i].storage));
		assert_int_equal(r[i].track, s[i].track);
		assert_same_string(a, r[i].name, b, s[i].name);
	}
	k = ops_trace_links(a, &count_a);
	l = ops_trace_links(b, &count_b);
	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_int_equal(k[i].from, l[i].from);
		assert_int_equal(k[i].to, l[i].to);
		assert_int_equal(k[i].kind, l[i].kind);
		assert_same_string(a, k[i].category, b, l[i].category);
	}
}

static inline void assert_same_processes(const struct ops_trace *a, const struct ops_trace *b)
{
	size_t count_a, count_b;
	const struct ops_process *p = ops_trace_processes(a, &count_a), *q = ops_trace_processes(b, &count_b);

	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_int_equal(p[i].flags, q[i].flags);
		assert_int_equal(p[i].sort_index, q[i].sort_index);
		assert_same_string(a, p[i].name, b, q[i].name);
		assert_same_string(a, p[i].labels, b, q[i].labels);
	}
}

static inline void assert_same_modules(const struct ops_trace *a, const struct ops_trace *b)
{
	size_t count_a, count_b;
	const struct ops_module *x = ops_trace_modules(a, &count_a), *y = ops_trace_modules(b, &count_b);
	const struct ops_module_alias *k, *l;

	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_same_string(a, x[i].name, b, y[i].name);
		assert_same_string(a, x[i].class_name, b, y[i].class_name);
		assert_same_string(a, x[i].path, b, y[i].path);
		assert_int_equal(x[i].parent, y[i].parent);
		assert_int_equal(x[i].number, y[i].number);
		assert_int_equal(x[i].address, y[i].address);
		assert_int_equal(x[i].parameter_count, y[i].parameter_count);
		assert_int_equal(x[i].parameter_bytes, y[i].parameter_bytes);
		assert_int_equal(x[i].own_parameter_count, y[i].own_parameter_count);
		assert_int_equal(x[i].own_parameter_bytes, y[i].own_parameter_bytes);
	}
	k = ops_trace_module_aliases(a, &count_a);
	l = ops_trace_module_aliases(b, &count_b);
	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_int_equal(k[i].module, l[i].module);
		assert_same_string(a, k[i].path, b, l[i].path);
	}
}

static inline void assert_same_functions(const struct ops_trace *a, const struct ops_trace *b)
{
	size_t count_a, count_b;
	const struct ops_function *x = ops_trace_functions(a, &count_a), *y = ops_trace_functions(b, &count_b);

	assert_int_equal(count_a, count_b);
	for (size_t i = 0; i < count_a; i++) {
		assert_same_string(a, x[i].name, b, y[i].name);
		assert_same_string(a, x[i].file, b, y[i].file);
		assert_int_equal(x[i].line, y[i].line);
	}
}

static inline void assert_same_trace(const struct ops_trace *a, const struct ops_trace *b)
{
	const struct ops_trace_info *x = ops_trace_info(a), *y = ops_trace_info(b);

	assert_int_equal(x->start_ns, y->start_ns);
	assert_int_equal(x->stop_ns, y->stop_ns);
	assert_int_equal(x->pid, y->pid);
	assert_int_equal(x->lost, y->lost);
	assert_string_equal(x->host_name, y->host_name);
	assert_string_equal(x->process_name, y->process_name);
	assert_same_tracks(a, b);
	assert_same_functions(a, b);
	assert_same_modules(a, b);
	assert_same_events(a, b);
	assert_same_records(a, b);
	assert_same_processes(a, b);
	assert_int_equal(ops_trace_metadata_count(a), ops_trace_metadata_count(b));
	for (size_t i = 0; i < ops_trace_metadata_count(a); i++) {
		struct ops_string key_a, key_b, json_a, json_b;

		ops_trace_metadata(a, i, &key_a, &json_a);
		ops_trace_metadata(b, i, &key_b, &json_b);
		assert_same_text(key_a, key_b);
		assert_same_text(json_a, json_b);
	}
}

#endif
