/* SPDX-License-Identifier: Apache-2.0
 *
 * The position of TorchScript's interpreter on this thread, as texts: the lines of the script and the modules around them. Part
 * of torch_bridge.cpp; a separate file because the header is internal to torch. Without it these texts are not recorded.
 */
#ifndef OPS_TORCH_SCRIPT_HPP
#define OPS_TORCH_SCRIPT_HPP

#include <string>

#if __has_include(<torch/csrc/jit/runtime/interpreter.h>)
#include <torch/csrc/jit/runtime/interpreter.h>
#define OPS_HAVE_TORCH_SCRIPT 1
#endif

namespace scripting {

/* Returns whether this thread runs a script. */
inline bool is_running()
{
#ifdef OPS_HAVE_TORCH_SCRIPT
	return !torch::jit::currentCallstack().empty();
#else
	return false;
#endif
}

/* Returns frames, innermost first, each followed by ';'; a frame without a file is left out. Empty outside of a script. */
inline std::string call_stack()
{
	std::string text;
#ifdef OPS_HAVE_TORCH_SCRIPT
	for (const torch::jit::StackEntry &entry : torch::jit::currentCallstack()) {
		const auto &source = entry.range.source();
		if (!source || !source->filename())
			continue;
		const size_t line = source->starting_line_no() + source->lineno_for_offset(entry.range.start());
		text += *source->filename() + "(" + std::to_string(line) + "): " + entry.filename + ";"; /* the function's name */
	}
#endif
	return text;
}

/* Returns "TOP(Net)::forward.layer(Linear)::forward.", outermost first. Empty outside of a script. */
inline std::string module_hierarchy()
{
	std::string text;
#ifdef OPS_HAVE_TORCH_SCRIPT
	for (const std::string &module : torch::jit::currentModuleHierarchy())
		text += module + ".";
#endif
	return text;
}

} // namespace scripting

#endif
