/* SPDX-License-Identifier: Apache-2.0
 *
 * A device registered for torch's profiler, with a clock that every event advances by one tick. It can be made to fail, and to
 * run another operator whenever it records an event.
 */
#include <ATen/ops/ones.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <atomic>
#include <stdexcept>

namespace {

using torch::profiler::impl::ProfilerStubs;
using torch::profiler::impl::ProfilerVoidEventStub;

std::atomic<int64_t> clock_us{0}, living{0}, waits{0};
std::atomic<int64_t> tick_us{1}, failing_records{0}, failing_elapsed{0};
std::atomic<bool> fails_to_wait{false}, is_enabled{true}, runs_operators{false};

struct Event {
	int64_t at_us;
	Event() : at_us(clock_us += tick_us)
	{
		living++;
	}
	~Event()
	{
		living--;
	}
};

/* One less to fail, and whether this one does. */
bool fails(std::atomic<int64_t> &left)
{
	return left > 0 && left-- > 0;
}

struct Device final : ProfilerStubs {
	void record(c10::DeviceIndex *, ProfilerVoidEventStub *event, int64_t *) const override
	{
		if (runs_operators)
			at::ones({1});
		if (fails(failing_records))
			throw std::runtime_error("the device is lost\nand this is where");
		*event = std::make_shared<Event>();
	}
	float elapsed(const ProfilerVoidEventStub *start, const ProfilerVoidEventStub *end) const override
	{
		if (fails(failing_elapsed))
			throw std::runtime_error("no such event");
		return static_cast<float>(static_cast<const Event *>(end->get())->at_us -
		                          static_cast<const Event *>(start->get())->at_us);
	}
	void synchronize() const override
	{
		waits++;
		if (fails_to_wait)
			throw std::runtime_error("nobody to wait for");
	}
	bool enabled() const override
	{
		return is_enabled;
	}
	void mark(const char *) const override {}
	void rangePush(const char *) const override {}
	void rangePop() const override {}
	void onEachDevice(std::function<void(int)>) const override {}
};

Device device;

} // namespace

extern "C" {

void device_register(bool as_cuda)
{
	if (as_cuda)
		torch::profiler::impl::registerCUDAMethods(&device);
	else
		torch::profiler::impl::registerPrivateUse1Methods(&device);
}

void device_enable(bool enabled)
{
	is_enabled = enabled;
}

void device_tick(int64_t us)
{
	tick_us = us;
}

void device_fail(int64_t records, int64_t elapsed, bool waits_too)
{
	failing_records = records;
	failing_elapsed = elapsed;
	fails_to_wait = waits_too;
}

void device_run_operators(bool run)
{
	runs_operators = run;
}

int64_t device_ticks(void)
{
	return clock_us;
}

int64_t device_living(void)
{
	return living;
}

int64_t device_waits(void)
{
	return waits;
}
}
