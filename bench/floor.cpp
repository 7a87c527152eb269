/* SPDX-License-Identifier: Apache-2.0
 *
 * The floor of what observing torch's operators can cost: thread-local RecordFunction callbacks that record nothing, with
 * and without asking for inputs, and with and without reading the clock. Every figure of the hot path is held against it.
 */
#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <opstrobe/internal/collector.h>

namespace {

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction &)
{
	return nullptr;
}

void end(const at::RecordFunction &, at::ObserverContext *) {}

volatile uint64_t last_ticks;

std::unique_ptr<at::ObserverContext> timed_start(const at::RecordFunction &)
{
	last_ticks = ops_ticks(1);
	return nullptr;
}

void timed_end(const at::RecordFunction &, at::ObserverContext *)
{
	last_ticks = ops_ticks(1);
}

} // namespace

extern "C" uint64_t floor_add(bool needs_inputs, bool reads_clock)
{
	at::RecordFunctionCallback callback = reads_clock ? at::RecordFunctionCallback(timed_start, timed_end)
							  : at::RecordFunctionCallback(start, end);

	return at::addThreadLocalCallback(callback.needsInputs(needs_inputs));
}

extern "C" void floor_remove(uint64_t handle)
{
	at::removeCallback(handle);
}

/* Adds two tensors of four floats `calls` times, with no Python in between. Returns a value that depends on the sums. */
extern "C" int64_t floor_add_tensors(int64_t calls)
{
	const at::Tensor a = at::ones({4}), b = at::ones({4});
	int64_t elements = 0;

	for (int64_t i = 0; i < calls; i++)
		elements += at::add(a, b).numel();
	return elements;
}
