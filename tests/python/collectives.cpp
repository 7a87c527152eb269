/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports about a function what torch's NCCL backend reports about a collective, with the same macro, and calls a test's function
 * where that backend launches its kernel.
 */
#include <ATen/ops/ones.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

extern "C" void collective(const char *name, int rank, int64_t in, int64_t out, int64_t splits, int size, const char *group,
                           void (*launch)())
{
	const std::vector<at::Tensor> inputs{at::ones({in})}, outputs{at::ones({out})};
	const std::vector<int64_t> in_splits(static_cast<size_t>(splits), 2), out_splits;

	RECORD_PARAM_COMMS_DATA(std::make_tuple(int64_t{7}, false), std::make_tuple(std::string(group), std::string("a group")),
	                        inputs, outputs, rank, std::string(name), in, out, at::kHalf, in_splits, out_splits, 0,
	                        size > 1 ? 1 : 0, size);
	launch();
}
