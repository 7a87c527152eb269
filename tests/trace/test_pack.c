/* SPDX-License-Identifier: Apache-2.0
 *
 * A packed trace is restored completely; truncated or damaged bytes result in an error or a valid trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <opstrobe/internal/pack.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "base/alloc.h"
#include "random.h"
#include "rich.h"

static struct ops_trace *rich_trace(void)
{
	struct ops_trace *trace;

	assert_int_equal(ops_builder_finish(rich_builder(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(trace, "a\0b", 3, "{\"x\": 1}", 8, NULL), OPS_OK);
	assert_int_equal(ops_trace_set_metadata(trace, "c", 1, "[]", 2, NULL), OPS_OK);
	return trace;
}

static void assert_same_text(struct ops_string a, struct ops_string b)
{
	assert_int_equal(a.size, b.size);
	assert_memory_equal(a.bytes, b.bytes, a.size);
}

static void assert_same_id(const struct ops_trace *a, uint32_t x, const struct ops_trace *b, uint32_t y)
{
	assert_int_equal(x == OPS_NONE, y == OPS_NONE);
	if (x != OPS_NONE)
		assert_same_text(ops_trace_string(a, x), ops_trace_string(b, y));
}

static void assert_same_events(const struct ops_trace *a, const struct ops_trace *b)
{
	const struct ops_events *x = ops_trace_events(a), *y = ops_trace_events(b);

	assert_int_equal(x->count, y->count);
#define ASSERT_SAME_COLUMN(name) assert_memory_equal(x->name, y->name, x->count * sizeof(*x->name))
	ASSERT_SAME_COLUMN(start_ns);
	ASSERT_SAME_COLUMN(end_ns);
	ASSERT_SAME_COLUMN(self_ns);
	ASSERT_SAME_COLUMN(sequence_nr);
	ASSERT_SAME_COLUMN(track);
	ASSERT_SAME_COLUMN(parent);
	ASSERT_SAME_COLUMN(forward_thread);
	ASSERT_SAME_COLUMN(flags);
	ASSERT_SAME_COLUMN(kind);
	ASSERT_SAME_COLUMN(scope);
	ASSERT_SAME_COLUMN(end_track);
	ASSERT_SAME_COLUMN(id);
	for (size_t row = 0; row < x->count; row++) {
		assert_same_id(a, x->name[row], b, y->name[row]);
		assert_same_id(a, x->overload[row], b, y->overload[row]);
		assert_same_id(a, x->args[row], b, y->args[row]);
		assert_int_equal(x->inputs[row] == OPS_NONE, y->inputs[row] == OPS_NONE);
		if (x->inputs[row] != OPS_NONE)
			assert_same_text(ops_trace_inputs(a, x->inputs[row]), ops_trace_inputs(b, y->inputs[row]));
	}
}

static void assert_same_records(const struct ops_trace *a, const struct ops_trace *b)
{
	size_t n, m;
	const struct ops_track *tracks = ops_trace_tracks(a, &n), *other_tracks = ops_trace_tracks(b, &m);
	const struct ops_memory_record *memory, *other_memory;
	const struct ops_counter_record *counters, *other_counters;

	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(tracks[i].kind, other_tracks[i].kind);
		assert_int_equal(tracks[i].pid, other_tracks[i].pid);
		assert_int_equal(tracks[i].tid, other_tracks[i].tid);
		assert_int_equal(tracks[i].number, other_tracks[i].number);
		assert_same_id(a, tracks[i].name, b, other_tracks[i].name);
	}
	memory = ops_trace_memory(a, &n);
	other_memory = ops_trace_memory(b, &m);
	assert_int_equal(n, m);
	assert_memory_equal(memory, other_memory, n * sizeof(*memory));
	for (size_t i = 0; i < n; i++)
		assert_same_id(a, ops_trace_memory_stacks(a)[i], b, ops_trace_memory_stacks(b)[i]);
	counters = ops_trace_counters(a, &n);
	other_counters = ops_trace_counters(b, &m);
	assert_int_equal(n, m);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(counters[i].time_ns, other_counters[i].time_ns);
		assert_true(counters[i].value == other_counters[i].value);
		assert_same_id(a, counters[i].name, b, other_counters[i].name);
	}
}

static void assert_same(const struct ops_trace *a, const struct ops_trace *b)
{
	const struct ops_trace_info *info = ops_trace_info(a), *other = ops_trace_info(b);
	size_t n, m;
	const struct ops_link *links = ops_trace_links(a, &n), *other_links = ops_trace_links(b, &m);

	assert_same_events(a, b);
	assert_same_records(a, b);
	assert_int_equal(n, m);
	assert_memory_equal(links, other_links, n * sizeof(*links));
	assert_int_equal(info->start_ns, other->start_ns);
	assert_int_equal(info->stop_ns, other->stop_ns);
	assert_int_equal(info->pid, other->pid);
	assert_int_equal(info->lost, other->lost);
	assert_int_equal(info->base_ns, other->base_ns);
	assert_int_equal(info->file_events, other->file_events);
	assert_string_equal(info->host_name, other->host_name);
	assert_string_equal(info->process_name, other->process_name);
	assert_int_equal(ops_trace_metadata_count(a), ops_trace_metadata_count(b));
	for (size_t i = 0; i < ops_trace_metadata_count(a); i++) {
		struct ops_string key, json, other_key, other_json;
		ops_trace_metadata(a, i, &key, &json);
		ops_trace_metadata(b, i, &other_key, &other_json);
		assert_same_text(key, other_key);
		assert_same_text(json, other_json);
	}
}

static void test_there_and_back(void **state)
{
	struct ops_trace *trace = rich_trace(), *back;
	char *bytes;
	size_t size;

	(void)state;
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	assert_int_equal(ops_trace_unpack(bytes, size, &back, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(back, NULL), OPS_OK);
	assert_same(trace, back);
	ops_free(bytes);
	ops_trace_unref(back);
	ops_trace_unref(trace);
}

static void test_empty(void **state)
{
	struct ops_trace *trace, *back;
	char *bytes;
	size_t size;

	(void)state;
	assert_int_equal(ops_builder_finish(ops_builder_new(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	assert_int_equal(ops_trace_unpack(bytes, size, &back, NULL), OPS_OK);
	assert_int_equal(ops_trace_events(back)->count, 0);
	ops_free(bytes);
	ops_trace_unref(back);
	ops_trace_unref(trace);
}

static void test_cut(void **state)
{
	struct ops_trace *trace = rich_trace(), *back = NULL;
	struct ops_error error;
	char *bytes;
	size_t size;

	(void)state;
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	for (size_t cut = 0; cut < size; cut++) {
		char *copy = malloc(cut + 1); /* so that a sanitizer sees a read behind the end */
		memcpy(copy, bytes, cut);
		copy = realloc(copy, cut ? cut : 1);
		assert_int_equal(ops_trace_unpack(copy, cut, &back, &error), OPS_CORRUPT);
		assert_non_null(strstr(error.text, "byte "));
		assert_null(back);
		free(copy);
	}
	bytes = realloc(bytes, size + 1);
	bytes[size] = 0;
	assert_int_equal(ops_trace_unpack(bytes, size + 1, &back, &error), OPS_CORRUPT);
	ops_free(bytes);
	ops_trace_unref(trace);
}

static void test_damaged(void **state)
{
	struct random random = {7};
	struct ops_trace *trace = rich_trace(), *back;
	unsigned sound = 0, refused = 0;
	char *bytes, *copy;
	size_t size;

	(void)state;
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	copy = malloc(size);
	for (int i = 0; i < 20000; i++) {
		memcpy(copy, bytes, size);
		for (uint32_t changes = 1 + random_below(&random, 3); changes-- > 0;)
			copy[random_below(&random, (uint32_t)size)] = (char)random_below(&random, 256);
		switch (ops_trace_unpack(copy, size, &back, NULL)) {
		case OPS_OK:
			sound++;
			assert_int_equal(ops_trace_check(back, NULL), OPS_OK);
			ops_trace_unref(back);
			break;
		case OPS_CORRUPT:
		case OPS_INVALID: /* metadata */
			refused++;
			break;
		default:
			fail();
		}
	}
	assert_true(sound > 100 && refused > 100);
	free(copy);
	ops_free(bytes);
	ops_trace_unref(trace);
}

static void test_out_of_memory(void **state)
{
	struct ops_trace *trace = rich_trace();
	bool done = false;

	(void)state;
	for (uint64_t nth = 1; !done; nth++) {
		struct ops_trace *back = NULL;
		char *bytes = NULL;
		size_t size;
		enum ops_code code;

		ops_alloc_fail_at(nth, false);
		code = ops_trace_pack(trace, &bytes, &size, NULL);
		if (!code)
			code = ops_trace_unpack(bytes, size, &back, NULL);
		done = ops_alloc_count() < nth;
		ops_alloc_fail_at(0, false);
		assert_true(code == OPS_OK || (code == OPS_NO_MEMORY && !back && !done));
		ops_free(bytes);
		ops_trace_unref(back);
	}
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_empty),   cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),        cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
