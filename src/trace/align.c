/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the clock offsets of a run's ranks. A collective operation ends for all ranks when the last of them has taken part, so
 * its ends on all ranks are the same moment. Operations are matched by name and number. Some pairs are wrong if ranks take part
 * in different groups or one trace begins later; the median tolerates them.
 */
#include <opstrobe/internal/pack.h>
#include <opstrobe/merge.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/fault.h"
#include "base/order.h"
#include "base/text.h"
#include "trace/collectives.h"

struct end {
	struct ops_string name;
	int64_t end_ns;
};

typedef OPS_ARRAY(struct end) end_list;

/* Returns true for an operation that ends for all ranks at once: not those between two ranks, nor those that only write to the
 * memory of others. */
static bool align_is_collective(uint8_t kind, struct ops_string name, bool device)
{
	static const char *const one_sided[] = {"SendRecv", "send", "recv", "Send", "Recv", "nvshmem", "deep_ep::", NULL};

	if (device ? kind != OPS_EVENT_KERNEL || !ops_communicates(name)
	           : (kind != OPS_EVENT_CPU_OP && kind != OPS_EVENT_USER_ANNOTATION) || ops_collective_of(name) != OPS_COLLECTIVE_HOST)
		return false;
	return !ops_string_contains_any(name, one_sided);
}

static int align_compare_ends(const void *a, const void *b)
{
	const struct end *left = a, *right = b;
	int order = ops_string_compare(left->name, right->name);

	return order ? order : (left->end_ns > right->end_ns) - (left->end_ns < right->end_ns);
}

/* Collects the ends, sorted by name and time. Returns false if out of memory. */
static bool align_collect(const struct ops_trace *trace, end_list *ends)
{
	const struct ops_events *e = ops_trace_events(trace);

	for (int device = 1; device >= 0 && !ends->count; device--)
		for (uint32_t row = 0; row < e->count; row++) {
			struct ops_string name = ops_trace_string(trace, e->name[row]);
			struct end *end = align_is_collective(e->kind[row], name, device) ? OPS_ARRAY_PUSH(ends) : NULL;

			if (end)
				*end = (struct end){name, e->end_ns[row]};
			else if (align_is_collective(e->kind[row], name, device))
				return false;
		}
	if (ends->count)
		qsort(ends->items, ends->count, sizeof(*ends->items), align_compare_ends);
	return true;
}

static size_t run_of(const end_list *ends, size_t from)
{
	size_t to = from;

	while (to < ends->count && ops_string_equals(ends->items[to].name, ends->items[from].name))
		to++;
	return to - from;
}

/* Compares all operations of each name that both ranks have equally often. */
static bool compare_clocks(const end_list *first, const end_list *other, struct ops_clock_shift *ret_shift)
{
	OPS_ARRAY(int64_t) apart = {0};
	size_t i = 0, k = 0;
	bool done = true;

	while (done && i < first->count && k < other->count) {
		size_t ours = run_of(first, i), theirs = run_of(other, k);
		int order = align_compare_ends(&(struct end){first->items[i].name, 0}, &(struct end){other->items[k].name, 0});

		for (size_t n = 0; done && !order && ours == theirs && n < ours; n++) {
			int64_t *slot = OPS_ARRAY_PUSH(&apart);

			done = slot != NULL;
			if (slot && __builtin_sub_overflow(first->items[i + n].end_ns, other->items[k + n].end_ns, slot))
				apart.count--;
		}
		i += order <= 0 ? ours : 0;
		k += order >= 0 ? theirs : 0;
	}
	if (done && apart.count)
		*ret_shift = (struct ops_clock_shift){ops_sort_to_middle(apart.items, apart.count), apart.count};
	OPS_ARRAY_RELEASE(&apart);
	return done;
}

static bool have_one_clock(const struct ops_trace *first, const struct ops_trace *other)
{
	const char *host = ops_trace_info(first)->host_name;

	return *host && !strcmp(host, ops_trace_info(other)->host_name);
}

enum ops_code ops_trace_align(const struct ops_trace *const *traces, size_t count, struct ops_clock_shift *ret_shifts,
                              struct ops_error *error)
{
	end_list first = {0};
	bool done = !count || align_collect(traces[0], &first);

	for (size_t i = 0; i < count; i++)
		ret_shifts[i] = (struct ops_clock_shift){0};
	for (size_t i = 1; done && i < count; i++) {
		end_list other = {0};

		if (have_one_clock(traces[0], traces[i]))
			continue;
		done = align_collect(traces[i], &other) && compare_clocks(&first, &other, &ret_shifts[i]);
		OPS_ARRAY_RELEASE(&other);
	}
	OPS_ARRAY_RELEASE(&first);
	return done ? OPS_OK : ops_fault_memory(error);
}
