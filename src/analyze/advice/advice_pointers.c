/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds when Python reads tensors through a pointer. No operator shows which tensor is read.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/search.h"

bool advice_find_pointer_reads(struct advice *advice)
{
	static const char *const patterns[] = {"<built-in method numpy of *", "<built-in method tolist of *", "<built-in method data_ptr of *",
	                                       "<built-in method __dlpack__ of *", "*: Tensor.__array__", "*: Tensor.tolist",
	                                       "*: Tensor.untyped_storage", "*: Tensor.__reduce_ex__", "*: Tensor.__dlpack__", NULL};
	uint8_t *which = advice_names(advice, patterns);
	bool done = which != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (which[advice->events->name[row]])
			done = OPS_ARRAY_APPEND(&advice->pointer_reads, advice->events->start_ns[row]);
	ops_free(which);
	return done;
}

bool advice_reads_pointers(const struct advice *advice, int64_t from_ns, int64_t until_ns)
{
	size_t at = 0;

	OPS_LOWER_BOUND(at, advice->pointer_reads.count, i, advice->pointer_reads.items[i] < from_ns);
	return at < advice->pointer_reads.count && advice->pointer_reads.items[at] <= until_ns;
}

bool advice_find_foreign_memory(const struct advice *advice, bool *ret_foreign)
{
	static const char *const patterns[] = {"*from_numpy*", "*as_tensor*", "*frombuffer*", "*dlpack*", "*rebuild_*", "*shared*", NULL};
	uint8_t *which = advice_names(advice, patterns);

	*ret_foreign = !(advice->has & ADVICE_NEEDS_PYTHON);
	for (uint32_t row = 0; which && !*ret_foreign && row < advice->events->count; row++)
		*ret_foreign = which[advice->events->name[row]] && advice->step_of[row] != OPS_NONE;
	ops_free(which);
	return which != NULL;
}
