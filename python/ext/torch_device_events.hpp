/* SPDX-License-Identifier: Apache-2.0
 *
 * Times on a device without a collector: a pair of device events around each operator and range, recorded with the functions of
 * torch's own profiler, so that every device registered there is supported. Part of torch_bridge.cpp.
 *
 *     operator   record ├──────────┤ record
 *                         slot: number of the pair ──▶ pairs ──▶ times, after the stop
 *
 * Only complete pairs are kept: if one event fails or comes after the stop, the slot has no time. There are never more pairs than
 * slots, which the recorder limits.
 */
#ifndef OPS_TORCH_DEVICE_EVENTS_HPP
#define OPS_TORCH_DEVICE_EVENTS_HPP

#include "torch_bridge.h"

#include <torch/csrc/profiler/stubs/base.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace {

namespace device_events {

using torch::profiler::impl::ProfilerStubs;
using event = torch::profiler::impl::ProfilerVoidEventStub;

struct event_pair {
	event start;
	event end;
};

/* The pairs of one session after another; protected by the lock. */
struct store {
	std::mutex lock;
	uint64_t session = 0; /* 0: no session */
	std::deque<event_pair> pairs;
	uint64_t failures = 0;
	std::string problem; /* the first line of the first error */

	bool takes(uint64_t of_session)
	{
		std::lock_guard<std::mutex> held(lock);
		return session == of_session;
	}
	void fail(const char *why) noexcept
	{
		try {
			std::lock_guard<std::mutex> held(lock);
			if (failures++ == 0)
				problem.assign(why, std::strcspn(why, "\n"));
		} catch (...) { /* out of memory: counted */
		}
	}
};

/* NULL before the first session that uses it. Never freed, because operators may end long after their session. */
store *current = nullptr;
std::atomic<const ProfilerStubs *> stubs{nullptr}; /* of the session; kept after it, for operators that end late. Relaxed */

/* Operators that a device runs to record an event do not belong to the program and have no events around them. */
thread_local bool is_recording = false;

inline const ProfilerStubs *stubs_of(ops_device_events device)
{
	switch (device) {
	case OPS_DEVICE_EVENTS_CUDA:
		return torch::profiler::impl::cudaStubs();
	case OPS_DEVICE_EVENTS_PRIVATEUSE1:
		return torch::profiler::impl::privateuse1Stubs();
	default:
		return nullptr;
	}
}

inline const ProfilerStubs *session_stubs()
{
	return stubs.load(std::memory_order_relaxed);
}

bool available(ops_device_events device) noexcept
{
	try {
		const ProfilerStubs *found = stubs_of(device);
		return found && found->enabled();
	} catch (...) {
		return false;
	}
}

/* Runs a call that may fail, and counts failures. */
template <typename Call>
bool attempt(store *of, Call call) noexcept
{
	try {
		call();
		return true;
	} catch (const std::exception &error) {
		of->fail(error.what());
	} catch (...) {
		of->fail("an unknown error");
	}
	return false;
}

inline bool record(store *of, event *ret_event) noexcept
{
	is_recording = true;
	const bool recorded = attempt(of, [&] { session_stubs()->record(nullptr, ret_event, nullptr); });
	is_recording = false;
	return recorded;
}

/* Releases an object that may hold events without destroying them. Destructors of events throw if the device fails, or in a
 * forked child, or when the process ends, if an operator outlasts its session. */
template <typename Thing>
void abandon(Thing &thing) noexcept
{
	auto *const memory = static_cast<Thing *>(std::malloc(sizeof(Thing)));

	if (memory)
		new (memory) Thing(std::move(thing));
}

/* The pair of one operator while it runs. */
class open_pair {
public:
	/* Called before the slot is reserved, because the device may run operators. */
	void begin(uint64_t of_session) noexcept
	{
		of = current;
		if (record(of, &start))
			session = of_session;
		else if (start)
			abandon(start);
	}
	/* Called before the slot is closed. Writes the number of the pair to `value`, unless the session has ended. */
	void end(char *value) noexcept
	{
		event stop;

		if (!session)
			return;
		if (of != current || !of->takes(session) || !record(of, &stop))
			abandon(start);
		else
			keep(stop, value);
		session = 0;
	}

private:
	void keep(event &stop, char *value) noexcept
	{
		attempt(of, [&] {
			std::lock_guard<std::mutex> held(of->lock);
			const auto number = static_cast<int64_t>(of->pairs.size());
			if (of->session != session)
				return;
			of->pairs.push_back({std::move(start), std::move(stop)});
			std::memcpy(value, &number, sizeof(number));
		});
	}

	event start;
	store *of = nullptr;
	uint64_t session = 0; /* 0: not begun */
};

/* Throws if out of memory. */
inline void open(uint64_t session, ops_device_events device)
{
	if (!current)
		current = new store;
	std::lock_guard<std::mutex> held(current->lock);
	stubs.store(stubs_of(device), std::memory_order_relaxed);
	current->session = session;
}

/* No more pairs are kept. */
inline void close()
{
	if (!current)
		return;
	std::lock_guard<std::mutex> held(current->lock);
	current->session = 0;
}

/* A forked child cannot use the parent's events. */
inline void forked()
{
	current = nullptr;
}

/* Returns nanoseconds; 0 if the times are invalid. */
int64_t time_between(const event_pair &pair)
{
	const double us = session_stubs()->elapsed(&pair.start, &pair.end);

	return us > 0 && us < 9e15 ? static_cast<int64_t>(us * 1000 + 0.5) : 0;
}

void measure(store *of, std::deque<event_pair> &pairs, int64_t *times_ns)
{
	for (event_pair &pair : pairs) {
		*times_ns = OPS_COUNT_UNKNOWN;
		if (!attempt(of, [&] { *times_ns = time_between(pair); }))
			abandon(pair);
		times_ns++;
	}
}

void pop_times(ops_bridge_times *ret_times) noexcept
{
	std::deque<event_pair> pairs;

	*ret_times = {};
	if (!current)
		return;
	{
		std::lock_guard<std::mutex> held(current->lock);
		pairs.swap(current->pairs);
	}
	ret_times->ns = static_cast<int64_t *>(std::malloc((pairs.size() + 1) * sizeof(int64_t)));
	if (!attempt(current, [] { session_stubs()->synchronize(); })) {
		abandon(pairs);
	} else if (ret_times->ns) {
		measure(current, pairs, ret_times->ns);
		ret_times->count = pairs.size();
	}
	std::lock_guard<std::mutex> held(current->lock);
	ret_times->failures = std::exchange(current->failures, 0);
	std::strncpy(ret_times->problem, current->problem.c_str(), sizeof(ret_times->problem) - 1);
}

} // namespace device_events

} // namespace

#endif
