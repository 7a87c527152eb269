/* SPDX-License-Identifier: Apache-2.0
 *
 * What torch knows about a collective when its operator, record_param_comms, begins, as named values in the form of a payload.
 * Part of torch_bridge.cpp; a separate file because not every build of torch has the header, and not every version all members.
 */
#ifndef OPS_TORCH_COLLECTIVE_HPP
#define OPS_TORCH_COLLECTIVE_HPP

#include "torch_values.hpp"

#include <c10/core/ScalarType.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <c10/util/hash.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <opstrobe/internal/collector.h>

#if __has_include(<torch/csrc/distributed/c10d/ParamCommsUtils.hpp>)
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#define OPS_HAVE_TORCH_COLLECTIVES 1
#endif

namespace collectives {

constexpr char operator_name[] = "record_param_comms";
constexpr size_t list_max = 30; /* maximum of numbers that torch shows; of more, the first 29 and the last are shown */

using named::add;
using named::add_unsigned;
using named::values;

inline void add(values &to, const char *name, const std::vector<int64_t> &numbers)
{
	const size_t count = numbers.size();
	std::string text = "[";

	for (size_t i = 0; i < count; i++) {
		text += i ? ", " : "";
		if (count > list_max && i == list_max - 1) {
			text += "..., ";
			i = count - 1;
		}
		text += std::to_string(numbers[i]);
	}
	add(to, name, text + "]");
}

inline void add_if_set(values &to, const char *name, const std::string &text)
{
	if (!text.empty())
		add(to, name, text);
}

#ifdef OPS_HAVE_TORCH_COLLECTIVES
/* Members that torch 2.4 lacks: chosen if `info` has them, because the second argument matches better. */
template <class Info>
auto add_sequence(values &to, const Info &info, int) -> decltype(static_cast<void>(info.getSequenceNumber()))
{
	if (info.getSequenceNumber() >= 0)
		add(to, "Seq", info.getSequenceNumber());
}
template <class Info>
void add_sequence(values &, const Info &, long)
{
}
template <class Info>
auto add_async(values &to, const Info &info, int) -> decltype(static_cast<void>(info.isAsynchronizedOp()))
{
	add(to, "Is asynchronized op", static_cast<int64_t>(info.isAsynchronizedOp()));
}
template <class Info>
void add_async(values &, const Info &, long)
{
}

/* The same number on all ranks of a collective: torch's hash of its identity. Older versions of torch do not have it. */
template <class Info>
auto add_id(values &to, const Info &info, int) -> decltype(static_cast<void>(info.getIsP2P()))
{
	if (info.getSequenceNumber() >= 0)
		add_unsigned(to, "Comms Id",
		             c10::get_hash(info.getProcessGroupName(), info.getSequenceNumber(), info.getIsP2P(),
		                           info.getGlobalRankStart(), info.getGlobalRankStride(), info.getWorldSize()));
}
template <class Info>
void add_id(values &, const Info &, long)
{
}

inline void add_group(values &to, const torch::ParamCommsDebugInfo &info)
{
	if (info.getGlobalRankStart() >= 0)
		add(to, "Global rank start", info.getGlobalRankStart());
	if (info.getGlobalRankStride() > 0)
		add(to, "Global rank stride", info.getGlobalRankStride());
	add(to, "Group size", info.getWorldSize());
	add_if_set(to, "Process Group Name", info.getProcessGroupName());
	add_if_set(to, "Process Group Description", info.getProcessGroupDesc());
	add(to, "Process Group Ranks", info.getGroupRanks());
}

/* Adds the rank in the group and, for point-to-point operations, the other's rank in the world. */
inline void add_rank(values &to, const torch::ParamCommsDebugInfo &info, const std::string &name)
{
	const auto &ranks = info.getGroupRanks();
	const int rank = info.getRank();

	add(to, "Rank", rank);
	if (rank < 0 || static_cast<size_t>(rank) >= ranks.size())
		return;
	if (name == "send")
		add(to, "Dst Rank", ranks[static_cast<size_t>(rank)]);
	else if (name == "recv")
		add(to, "Src Rank", ranks[static_cast<size_t>(rank)]);
}
#endif

/* Returns nothing if torch has no information on this thread. The name comes first, because the reader recognises the values by
 * it. */
inline values describe()
{
	values all;
#ifdef OPS_HAVE_TORCH_COLLECTIVES
	const auto *info = dynamic_cast<torch::ParamCommsDebugInfo *>(
		c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
	if (!info)
		return all;
	const std::string name = info->getCollectiveName();
	add(all, "Collective name", name);
	add(all, "dtype", c10::toString(info->getDType()));
	add(all, "In msg nelems", static_cast<int64_t>(info->getInMessageNelems()));
	add(all, "Out msg nelems", static_cast<int64_t>(info->getOutMessageNelems()));
	add(all, "In split size", info->getInputSplitSizes());
	add(all, "Out split size", info->getOutputSplitSizes());
	add_group(all, *info);
	add_rank(all, *info, name);
	add_sequence(all, *info, 0);
	add_id(all, *info, 0);
	add_async(all, *info, 0);
#endif
	return all;
}

} // namespace collectives

#endif
