/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware counters sampled along with the collector for CUDA, with a library that has CUPTI's entry points and no GPU
 * (fake_cupti/). With a library without the entry points for sampling, like CUPTI before 12.6, only that is tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cupti.h>
#include <cupti_pmsampling.h>
#include <dlfcn.h>

#include <opstrobe/internal/timeline.h>

#include "asking.h"
#include "base/alloc.h"
#include "fake_cupti/fake_cupti.h"
#include "gpu/cupti.h"
#include "gpu/cupti_pm_sampling.h"

#define ACTIVE "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
#define DRAM "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
#define LENGTH_NS 1000u

static __typeof__(&fake_cupti_fail) fail_function;
static __typeof__(&fake_cupti_emit) emit;
static __typeof__(&fake_cupti_sampling) sampled_now;
static __typeof__(&fake_cupti_sample) sample;
static __typeof__(&fake_cupti_overflow) overflow;
static __typeof__(&fake_cupti_stop_early) stop_early;
static __typeof__(&cuptiPmSamplingEnable) enable;
static __typeof__(&cuptiPmSamplingDisable) disable;

static int load_fake(void **state)
{
	void *handle = dlopen(getenv("OPSTROBE_CUPTI"), RTLD_NOW);

	(void)state;
	if (!handle)
		return -1;
	fail_function = (__typeof__(fail_function))(uintptr_t)dlsym(handle, "fake_cupti_fail");
	emit = (__typeof__(emit))(uintptr_t)dlsym(handle, "fake_cupti_emit");
	sampled_now = (__typeof__(sampled_now))(uintptr_t)dlsym(handle, "fake_cupti_sampling");
	sample = (__typeof__(sample))(uintptr_t)dlsym(handle, "fake_cupti_sample");
	overflow = (__typeof__(overflow))(uintptr_t)dlsym(handle, "fake_cupti_overflow");
	stop_early = (__typeof__(stop_early))(uintptr_t)dlsym(handle, "fake_cupti_stop_early");
	enable = (__typeof__(enable))(uintptr_t)dlsym(handle, "cuptiPmSamplingEnable");
	disable = (__typeof__(disable))(uintptr_t)dlsym(handle, "cuptiPmSamplingDisable");
	return fail_function && emit ? 0 : -1;
}

/* --- sampling during a session -------------------------------------------------------------------------------------- */

struct sampled_run {
	struct run run;
	struct ops_device_collector collector;
	struct ops_cuda_sampling sampling;
	const char *metrics[8];
};

/* Metrics end with NULL. */
static void want(struct sampled_run *sampled, ...)
{
	va_list metrics;

	*sampled = (struct sampled_run){.collector = *ops_cupti_collector()};
	va_start(metrics, sampled);
	while ((sampled->metrics[sampled->sampling.metric_count] = va_arg(metrics, const char *)))
		sampled->sampling.metric_count++;
	va_end(metrics);
	sampled->sampling.metrics = sampled->metrics;
	sampled->collector.self = &sampled->sampling;
}

static void start_sampled(struct sampled_run *sampled)
{
	start_run(&sampled->run, &sampled->collector, OPS_ACTIVITY_ALL);
}

/* A kernel from a time on. */
static void run_kernel(uint64_t start_ns)
{
	CUpti_ActivityKernel9 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .streamId = 7, .name = "kernel",
	                                .start = start_ns, .end = start_ns + LENGTH_NS};

	emit(&kernel, sizeof(kernel));
}

/* Returns the counters of a name, in order of time. */
static size_t counters_of(const struct ops_trace *trace, const char *name, struct ops_counter_record *ret_first, size_t room)
{
	size_t count, found = 0;
	const struct ops_counter_record *counters = ops_trace_counters(trace, &count);

	for (size_t i = 0; i < count; i++) {
		struct ops_string text = ops_trace_string(trace, counters[i].name);

		if (text.size != strlen(name) || memcmp(text.bytes, name, text.size) != 0)
			continue;
		if (found < room)
			ret_first[found] = counters[i];
		found++;
	}
	return found;
}

static void assert_complete(const struct ops_trace *trace, size_t samples, uint64_t lost)
{
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 1);
	assert_int_equal(counters_of(trace, "SM Active (%)", NULL, 0), samples);
	assert_int_equal(ops_trace_info(trace)->lost, lost);
}

/* The viewer has a row for it. */
static void assert_drawn(const struct ops_trace *trace, const char *label)
{
	struct ops_timeline *timeline = NULL;
	char *json = NULL;
	size_t size;

	assert_int_equal(ops_timeline_new(trace, &timeline, NULL), OPS_OK);
	assert_int_equal(ops_timeline_json(timeline, &json, &size, NULL), OPS_OK);
	assert_non_null(strstr(json, label));
	ops_free(json);
	ops_timeline_free(timeline);
}

/* --- tests ---------------------------------------------------------------------------------------------------------- */

static void samples_are_counters_on_the_clock_of_kernels(void **state)
{
	struct sampled_run sampled;
	struct ops_counter_record active[4], dram[4];
	struct ops_string metadata, process;
	struct ops_trace *trace;
	const struct ops_events *e;
	uint64_t begun;

	(void)state;
	want(&sampled, ACTIVE, DRAM, "lts__t_bytes.sum", NULL);
	start_sampled(&sampled);
	begun = sampled_now().started_ns;
	assert_true(begun > 0);
	assert_int_equal(sampled_now().interval, 1000000);
	assert_true(sampled_now().by_time && sampled_now().keeps_latest);
	sample(begun, LENGTH_NS, 4);
	run_kernel(begun + 2 * LENGTH_NS);
	trace = checked_trace(stop_run(&sampled.run));
	assert_int_equal(sampled.sampling.problem.code, OPS_OK);
	assert_int_equal(sampled_now().started_ns, 0);

	assert_complete(trace, 4, 0);
	e = ops_trace_events(trace);
	assert_int_equal(counters_of(trace, "SM Active (%)", active, 4), 4);
	assert_int_equal(counters_of(trace, "DRAM BW (%)", dram, 4), 4);
	assert_int_equal(counters_of(trace, "lts__t_bytes.sum", NULL, 0), 4);
	for (int i = 0; i < 4; i++) {
		assert_true(active[i].value == i && dram[i].value == 100 + i);
		assert_int_equal(active[i].time_ns, dram[i].time_ns);
		if (i)
			assert_in_range(active[i].time_ns - active[i - 1].time_ns, LENGTH_NS - 1, LENGTH_NS + 1);
	}
	assert_int_equal(active[2].time_ns, e->start_ns[find_row(trace, OPS_EVENT_KERNEL, "kernel")]);
	process = ops_trace_string(trace, (uint32_t)ops_trace_tracks(trace, &(size_t){0})[active[0].track].pid);
	assert_int_equal(process.size, strlen("GPU 0 Counters"));
	assert_memory_equal(process.bytes, "GPU 0 Counters", process.size);
	assert_true(ops_trace_find_metadata(trace, "pm_sampling", &metadata));
	assert_string_equal(metadata.bytes, "{\"device\":0,\"chip\":\"GH100\",\"interval_ns\":1000000,\"metrics\":{"
	                                    "\"SM Active (%)\":\"" ACTIVE "\",\"DRAM BW (%)\":\"" DRAM
	                                    "\",\"lts__t_bytes.sum\":\"lts__t_bytes.sum\"}}");
	assert_drawn(trace, "\"SM Active (%)\"");
	ops_trace_unref(trace);
}

/* A label belongs to one metric, and a ratio of nothing has no value. */
static void names_are_unlike_and_values_numbers(void **state)
{
	struct sampled_run sampled;
	struct ops_trace *trace;

	(void)state;
	want(&sampled, ACTIVE, "sm__cycles_active.max.pct_of_peak_sustained_elapsed", "sm__cycles_active.sum", "sm__odd.ratio", NULL);
	start_sampled(&sampled);
	sample(sampled_now().started_ns, LENGTH_NS, 4);
	trace = checked_trace(stop_run(&sampled.run));
	assert_int_equal(counters_of(trace, "SM Active (%)", NULL, 0), 4);
	assert_int_equal(counters_of(trace, "sm__cycles_active.max.pct_of_peak_sustained_elapsed", NULL, 0), 4);
	assert_int_equal(counters_of(trace, "SM Active", NULL, 0), 4);
	assert_int_equal(counters_of(trace, "sm__odd.ratio", NULL, 0), 2);
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	ops_trace_unref(trace);
}

/* Far more than the image holds, but decoded as they come. */
static void samples_are_decoded_while_they_come(void **state)
{
	struct sampled_run sampled;
	struct ops_trace *trace;
	uint64_t begun;

	(void)state;
	want(&sampled, ACTIVE, NULL);
	sampled.sampling.interval_ns = LENGTH_NS;
	start_sampled(&sampled);
	begun = sampled_now().started_ns;
	for (uint64_t i = 0; i < 8; i++) {
		sample(begun + i * 500 * LENGTH_NS, LENGTH_NS, 500);
		while (sampled_now().waiting)
			usleep(1000);
	}
	stop_early();
	sample(begun + 4000 * LENGTH_NS, LENGTH_NS, 500);
	run_kernel(begun);
	trace = checked_trace(stop_run(&sampled.run));
	assert_complete(trace, 4500, 0);
	ops_trace_unref(trace);
}

static void what_is_paused_is_not_sampled(void **state)
{
	struct sampled_run sampled;
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	want(&sampled, ACTIVE, NULL);
	start_sampled(&sampled);
	run_kernel(sampled_now().started_ns);
	sample(sampled_now().started_ns, LENGTH_NS, 2);
	assert_int_equal(ops_device_toggle(sampled.run.devices, false, &error), OPS_OK);
	assert_int_equal(sampled_now().started_ns, 0);
	assert_int_equal(ops_device_toggle(sampled.run.devices, false, &error), OPS_OK);
	sample(1, LENGTH_NS, 1);
	assert_int_equal(ops_device_toggle(sampled.run.devices, true, &error), OPS_OK);
	sample(sampled_now().started_ns, LENGTH_NS, 3);
	trace = checked_trace(stop_run(&sampled.run));
	assert_complete(trace, 5, 0);
	ops_trace_unref(trace);
}

static void assert_refused(struct sampled_run *sampled, const char *text)
{
	struct ops_device_session *session = NULL;
	struct ops_error error;

	assert_int_equal(ops_device_start(&sampled->collector, OPS_ACTIVITY_ALL, &session, &error), OPS_INVALID);
	assert_string_equal(error.text, text);
}

static void wrong_metrics_are_refused_by_name(void **state)
{
	struct sampled_run sampled;

	(void)state;
	want(&sampled, "cycles", ACTIVE, "sm__cycles_active", NULL);
	assert_refused(&sampled, "cannot record devices with CUPTI: CUPTI does not know these metrics of GH100: cycles "
	                         "sm__cycles_active");
	want(&sampled, "a__a.sum", "b__b.sum", "c__c.sum", "d__d.sum", "e__e.sum", NULL);
	assert_refused(&sampled, "cannot record devices with CUPTI: the metrics need 2 passes on GH100, of which sampling has one: "
	                         "a__a.sum b__b.sum c__c.sum d__d.sum e__e.sum");
	want(&sampled, ACTIVE, NULL);
	sampled.sampling.device = 1;
	assert_refused(&sampled, "cannot record devices with CUPTI: CUDA device 1 does not exist");
	samples_are_counters_on_the_clock_of_kernels(state); /* nothing is left behind */
}

/* All else is recorded, and the reason is there at once. */
static void assert_not_sampled(const char *text)
{
	struct sampled_run sampled;
	struct ops_trace *trace;

	want(&sampled, ACTIVE, NULL);
	start_sampled(&sampled);
	assert_string_equal(sampled.sampling.problem.text, text);
	assert_true(sampled.sampling.problem.code != OPS_OK);
	run_kernel(1000);
	trace = checked_trace(stop_run(&sampled.run));
	assert_complete(trace, 0, 0);
	assert_false(ops_trace_find_metadata(trace, "pm_sampling", &(struct ops_string){0}));
	ops_trace_unref(trace);
}

static void without_sampling_all_else_is_recorded(void **state)
{
	static const struct {
		const char *function;
		CUptiResult result;
		const char *text;
	} faults[] = {
		{"cuptiPmSamplingGetCounterAvailability", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
	         "CUPTI does not sample counters: the driver lets only administrators profile (ERR_NVGPUCTRPERM)"},
		{"cuptiPmSamplingEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
	         "CUPTI does not sample counters: the driver lets only administrators profile (ERR_NVGPUCTRPERM)"},
		{"cuptiPmSamplingGetCounterAvailability", CUPTI_ERROR_NOT_SUPPORTED,
	         "CUPTI does not sample counters: device 0 cannot (27)"},
		{"cuptiProfilerHostInitialize", CUPTI_ERROR_NOT_SUPPORTED, "CUPTI does not sample counters: device 0 cannot (27)"},
		{"cuptiProfilerHostGetConfigImage", CUPTI_ERROR_UNKNOWN, "CUPTI does not sample counters: CUPTI_ERROR (999)"},
		{"cuptiPmSamplingSetConfig", CUPTI_ERROR_UNKNOWN, "CUPTI does not sample counters: CUPTI_ERROR (999)"},
		{"cuptiPmSamplingCounterDataImageInitialize", CUPTI_ERROR_UNKNOWN,
	         "CUPTI does not sample counters: CUPTI_ERROR (999)"},
		{"cuptiPmSamplingStart", CUPTI_ERROR_UNKNOWN, "CUPTI does not sample counters: CUPTI_ERROR (999)"},
	};
	CUpti_PmSampling_Enable_Params other = {.structSize = CUpti_PmSampling_Enable_Params_STRUCT_SIZE};
	CUpti_PmSampling_Disable_Params end = {.structSize = CUpti_PmSampling_Disable_Params_STRUCT_SIZE};
	char text[600];

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		fail_function(faults[i].function, faults[i].result);
		assert_not_sampled(faults[i].text);
	}
	fail_function("cuptiProfilerInitialize", CUPTI_ERROR_NOT_INITIALIZED);
	snprintf(text, sizeof(text), "CUPTI does not sample counters: libnvperf_host.so and libnvperf_target.so, which belong to '%s', "
	         "cannot be loaded (15)", getenv("OPSTROBE_CUPTI"));
	assert_not_sampled(text);
	fail_function("", 0);
	assert_int_equal(enable(&other), CUPTI_SUCCESS);
	assert_not_sampled("CUPTI does not sample counters: device 0 is already being sampled (7)");
	end.pPmSamplingObject = other.pPmSamplingObject;
	disable(&end);
	samples_are_counters_on_the_clock_of_kernels(state); /* nothing is left behind */
}

static void overflow_samples(uint64_t begun)
{
	overflow();
	sample(begun, LENGTH_NS, 3);
}

/* The image holds 1024. */
static void sample_too_many(uint64_t begun)
{
	sample(begun, LENGTH_NS, 1027);
}

static void sample_without_times(uint64_t begun)
{
	sample(begun, LENGTH_NS, 1);
	sample(0, 0, 2);
	sample(begun + LENGTH_NS, LENGTH_NS, 2);
}

/* Before the session, long after now, and not behind the one before. */
static void sample_at_wrong_times(uint64_t begun)
{
	sample(begun - 1000000000, LENGTH_NS, 1);
	sample(begun + 1000000000000, LENGTH_NS, 1);
	sample(UINT64_MAX - 10 * LENGTH_NS, LENGTH_NS, 1);
	sample(begun + 5 * LENGTH_NS, LENGTH_NS, 1);
	sample(begun + 4 * LENGTH_NS, LENGTH_NS, 2);
	sample(begun + 6 * LENGTH_NS, LENGTH_NS, 2);
}

static void fail_to_decode(uint64_t begun)
{
	fail_function("cuptiPmSamplingDecodeData", CUPTI_ERROR_UNKNOWN);
	sample(begun, LENGTH_NS, 3);
}

static void overflow_for_good(uint64_t begun)
{
	fail_function("cuptiPmSamplingDecodeData", CUPTI_ERROR_OUT_OF_MEMORY);
	sample(begun, LENGTH_NS, 3);
}

static void fail_to_evaluate(uint64_t begun)
{
	fail_function("cuptiProfilerHostEvaluateToGpuValues", CUPTI_ERROR_UNKNOWN);
	sample(begun, LENGTH_NS, 3);
}

/* Each is reported once, with the number of missing samples; the others are kept. */
static void missing_samples_are_reported_and_counted(void **state)
{
#define MISSING "CUPTI could not finish recording devices: samples of counters are missing: "
	static const struct {
		void (*happen)(uint64_t begun_ns);
		size_t samples;
		uint64_t lost;
		const char *text;
	} faults[] = {
		{overflow_samples, 3, 1, MISSING "the hardware's buffer overflowed, which a longer interval helps against"},
		{sample_too_many, 1024, 1 + 4, MISSING "more came at once than could be decoded, which a longer interval helps against"},
		{sample_without_times, 3, 2, MISSING "their times are none of the recording"},
		{sample_at_wrong_times, 3, 5, MISSING "their times are none of the recording"},
		{overflow_for_good, 0, 1, MISSING "the hardware's buffer overflowed, which a longer interval helps against"},
		{fail_to_decode, 0, 1, "CUPTI could not finish recording devices: CUPTI samples counters no more: CUPTI_ERROR (999)"},
		{fail_to_evaluate, 0, 1, "CUPTI could not finish recording devices: CUPTI samples counters no more: CUPTI_ERROR (999)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct sampled_run sampled;
		struct ops_recording *recording = NULL;
		struct ops_error error;
		struct ops_trace *trace;

		want(&sampled, ACTIVE, NULL);
		start_sampled(&sampled);
		run_kernel(sampled_now().started_ns);
		faults[i].happen(sampled_now().started_ns);
		assert_int_equal(ops_session_stop(sampled.run.session, &recording, NULL), OPS_OK);
		assert_true(ops_device_stop(sampled.run.devices, recording, &error) != OPS_OK);
		fail_function("", 0);
		assert_string_equal(error.text, faults[i].text);
		trace = checked_trace(recording);
		assert_complete(trace, faults[i].samples, faults[i].lost);
		ops_trace_unref(trace);
	}
#undef MISSING
}

/* Chips that cannot be triggered by time count cycles, and the oldest of them keeps what came first. */
static void older_chips_count_cycles(void **state)
{
	static const struct {
		struct ops_multiprocessor device;
		bool by_time;
		bool keeps_latest;
	} chips[] = {
		{{.compute_major = 7, .compute_minor = 5}, false, false},
		{{.compute_major = 8, .compute_minor = 0}, false, true},
		{{.compute_major = 8, .compute_minor = 6}, true, true},
	};
	struct sampled_run sampled;
	const struct ops_cupti *library;

	(void)state;
	assert_int_equal(ops_cupti_load(&library, NULL), OPS_OK);
	want(&sampled, ACTIVE, NULL);
	for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
		struct ops_cupti_sampler *sampler = NULL;

		assert_int_equal(ops_cupti_sampler_open(library, &sampled.sampling, &chips[i].device, &sampler, NULL), OPS_OK);
		assert_int_equal(sampled_now().by_time, chips[i].by_time);
		assert_int_equal(sampled_now().keeps_latest, chips[i].keeps_latest);
		ops_cupti_sampler_free(sampler);
	}
}

static int64_t clock_of_records(const struct ops_cupti *library)
{
	uint64_t now = 0;

	library->cuptiGetTimestamp(&now);
	return (int64_t)now;
}

/* Samples for which there is no memory at the end are lost, and counted. */
static void sampled_out_of_memory(const struct ops_cupti *library, const struct sampled_run *sampled,
                                  const struct ops_multiprocessor *device)
{
	struct ops_activities *activities = ops_activities_new();
	struct ops_cupti_sampler *sampler = NULL;

	assert_int_equal(ops_cupti_sampler_open(library, &sampled->sampling, device, &sampler, NULL), OPS_OK);
	assert_int_equal(ops_cupti_sampler_run(sampler, true, clock_of_records, NULL), OPS_OK);
	sample(sampled_now().started_ns, LENGTH_NS, 3);
	assert_int_equal(ops_cupti_sampler_run(sampler, false, clock_of_records, NULL), OPS_OK);
	ops_alloc_fail_at(1, true);
	assert_int_equal(ops_cupti_sampler_flush(sampler, activities, NULL), OPS_OK);
	ops_alloc_fail_at(0, false);
	assert_int_equal(activities->lost, 3);
	ops_cupti_sampler_free(sampler);
	ops_activities_free(activities);
}

static void memory_may_be_out_at_any_point(void **state)
{
	struct sampled_run sampled;
	const struct ops_cupti *library;
	struct ops_multiprocessor device = {.compute_major = 9};
	enum ops_code code = OPS_NO_MEMORY;
	uint64_t nth;

	(void)state;
	assert_int_equal(ops_cupti_load(&library, NULL), OPS_OK);
	want(&sampled, ACTIVE, DRAM, NULL);
	for (nth = 1; code == OPS_NO_MEMORY; nth++) {
		struct ops_cupti_sampler *sampler = NULL;

		ops_alloc_fail_at(nth, false);
		code = ops_cupti_sampler_open(library, &sampled.sampling, &device, &sampler, NULL);
		ops_alloc_fail_at(0, false);
		ops_cupti_sampler_free(sampler);
	}
	assert_int_equal(code, OPS_OK);
	assert_true(nth > 5);
	sampled_out_of_memory(library, &sampled, &device);
	for (nth = 1; nth < 5; nth++) {
		struct ops_cupti_sampler *sampler = NULL;

		want(&sampled, nth % 2 ? "cycles" : ACTIVE, "more", NULL);
		ops_alloc_fail_at(nth, true);
		code = ops_cupti_sampler_open(library, &sampled.sampling, &device, &sampler, NULL);
		ops_alloc_fail_at(0, false);
		assert_int_equal(code, OPS_NO_MEMORY);
	}
}

static void a_library_that_is_too_old_is_named(void **state)
{
	char text[600];

	(void)state;
	snprintf(text, sizeof(text), "'%s' does not sample counters: CUPTI 12.6 or newer is needed", getenv("OPSTROBE_CUPTI"));
	assert_not_sampled(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_counters_on_the_clock_of_kernels),
		cmocka_unit_test(names_are_unlike_and_values_numbers),
		cmocka_unit_test(samples_are_decoded_while_they_come),
		cmocka_unit_test(what_is_paused_is_not_sampled),
		cmocka_unit_test(wrong_metrics_are_refused_by_name),
		cmocka_unit_test(without_sampling_all_else_is_recorded),
		cmocka_unit_test(missing_samples_are_reported_and_counted),
		cmocka_unit_test(older_chips_count_cycles),
		cmocka_unit_test(memory_may_be_out_at_any_point),
	};
	const struct CMUnitTest old_tests[] = {
		cmocka_unit_test(a_library_that_is_too_old_is_named),
	};
	void *state = NULL;

	if (load_fake(&state))
		return 1;
	if (!sampled_now)
		return cmocka_run_group_tests(old_tests, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
