/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds when Python reads tensors through a pointer, and makes tensors of memory that torch did not allocate. No operator shows which
 * tensor is read, or what was written to that memory.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/search.h"

/* tolist() makes an object of each element, which takes longer than this. */
#define ELEMENT_NS_MIN 4
#define ELEMENT_BYTES_MAX 16

enum pointer_name { NAME_POINTER = 1, NAME_LIST };

bool advice_find_pointer_reads(struct advice *advice)
{
	static const struct advice_named names[] = {
		{"<built-in method tolist of *", NAME_LIST}, {"*: Tensor.tolist", NAME_LIST}, {"<built-in method numpy of *", NAME_POINTER},
		{"<built-in method data_ptr of *", NAME_POINTER}, {"<built-in method __dlpack__ of *", NAME_POINTER}, {"*: Tensor.__array__", NAME_POINTER},
		{"*: Tensor.untyped_storage", NAME_POINTER}, {"*: Tensor.__reduce_ex__", NAME_POINTER}, {"*: Tensor.__dlpack__", NAME_POINTER}, {0}};
	uint8_t *kind = advice_named_kinds(advice, names);
	bool done = kind != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		int64_t ns = ops_difference(advice->events->end_ns[row], advice->events->start_ns[row]);
		bool is_list = done && kind[advice->events->name[row]] == NAME_LIST;

		if (kind[advice->events->name[row]])
			done = OPS_ARRAY_APPEND(&advice->pointer_reads, ((struct advice_pointer_read){
				advice->events->start_ns[row], is_list ? ops_product(ns / ELEMENT_NS_MIN, ELEMENT_BYTES_MAX) : INT64_MAX}));
	}
	ops_free(kind);
	return done;
}

static size_t first_read(const struct advice *advice, int64_t from_ns)
{
	size_t at = 0;

	OPS_LOWER_BOUND(at, advice->pointer_reads.count, i, advice->pointer_reads.items[i].time_ns < from_ns);
	return at;
}

bool advice_reads_pointers(const struct advice *advice, int64_t from_ns, int64_t until_ns)
{
	size_t at = first_read(advice, from_ns);

	return at < advice->pointer_reads.count && advice->pointer_reads.items[at].time_ns <= until_ns;
}

#define READS_MAX 256 /* more of them may have read anything */

bool advice_may_read_block(const struct advice *advice, const struct ops_memory_block *block)
{
	size_t first = first_read(advice, block->start_ns);

	for (size_t i = first; i < advice->pointer_reads.count && advice->pointer_reads.items[i].time_ns <= block->end_ns; i++)
		if (i - first >= READS_MAX || advice->pointer_reads.items[i].bytes >= block->bytes / 8)
			return true;
	return false;
}

uint8_t *advice_foreign_names(const struct advice *advice)
{
	static const char *const patterns[] = {"*from_numpy*", "*as_tensor*", "*frombuffer*", "*dlpack*", "*rebuild_*", "*shared*", NULL};

	return advice_names(advice, patterns);
}

bool advice_has_foreign_memory(const struct advice *advice, const uint8_t *foreign_names)
{
	bool is_foreign = !(advice->has & ADVICE_NEEDS_PYTHON);

	for (uint32_t row = 0; !is_foreign && row < advice->events->count; row++)
		is_foreign = foreign_names[advice->events->name[row]] && advice->step_of[row] != OPS_NONE;
	return is_foreign;
}
