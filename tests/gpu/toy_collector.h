/* SPDX-License-Identifier: Apache-2.0
 *
 * A collector for a device that does not exist: the test provides what "ran", on the monotonic clock. It is also the example in
 * docs/devices.md, and shows all that a collector requires.
 */
#ifndef OPS_TESTS_TOY_COLLECTOR_H
#define OPS_TESTS_TOY_COLLECTOR_H

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gpu/intake.h"

struct toy {
	uint32_t kinds; /* requested; 0 while it does not collect */
	struct ops_activities *activities;
	uint64_t correlation;
};

static int64_t toy_clock_ns(void *self)
{
	struct timespec now;

	(void)self;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum ops_code toy_start(void *self, uint32_t kinds, struct ops_activities *activities, struct ops_error *error)
{
	struct toy *toy = self;
	static const char properties[] = "{\"id\":0,\"name\":\"toy\"}";

	(void)error;
	*toy = (struct toy){.kinds = kinds, .activities = activities};
	ops_activities_device(activities, 0, properties, sizeof(properties) - 1);
	return OPS_OK;
}

static enum ops_code toy_stop(void *self, struct ops_activities *activities, struct ops_error *error)
{
	(void)activities;
	(void)error;
	((struct toy *)self)->kinds = 0;
	return OPS_OK;
}

static struct ops_device_collector toy_collector(struct toy *toy)
{
	return (struct ops_device_collector){"toy", toy, toy_start, toy_stop, toy_clock_ns, NULL};
}

/* Adds an activity if its kind is wanted. */
static void toy_add(struct toy *toy, enum ops_activity_kind kind, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct ops_activity activity = {
		.kind = (uint8_t)kind,
		.start_ns = start_ns,
		.end_ns = end_ns,
		.bytes = kind == OPS_ACTIVITY_MEMCPY ? 4096 : 0,
		.correlation = toy->correlation,
		.name = ops_activities_text(toy->activities, name, strlen(name)),
	};

	if (ops_activity_is_call(&activity))
		activity.thread = (uint32_t)syscall(SYS_gettid);
	else
		activity.stream = 7;
	if (toy->kinds & OPS_ACTIVITY_BIT(kind))
		ops_activities_add(toy->activities, &activity);
}

/* The calling thread launches work, which runs `delay_ns` later for `run_ns`. */
static void toy_launch(struct toy *toy, enum ops_activity_kind kind, const char *name, int64_t delay_ns, int64_t run_ns)
{
	int64_t begin_ns = toy_clock_ns(toy);
	int64_t end_ns = toy_clock_ns(toy);

	toy->correlation++;
	toy_add(toy, OPS_ACTIVITY_RUNTIME, "toyLaunch", begin_ns, end_ns);
	toy_add(toy, kind, name, end_ns + delay_ns, end_ns + delay_ns + run_ns);
}

#endif
