/* SPDX-License-Identifier: Apache-2.0
 *
 * Each device that ran a kernel: the share of all steps in which it was busy, the use and occupancy of its
 * multiprocessors, and its utilization over time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/order.h"

#define BUCKETS_MAX 100

struct gpu {
	const struct ops_views *views;
	int64_t id;
	const uint32_t *kernels; /* its device events */
	size_t kernel_count;
	struct ops_intervals busy;
	struct ops_interval steps; /* range of all steps, including gaps */
	bool own;               /* whether computed figures of kernels are summed */
	uint64_t with_blocks, with_occupancy;
	uint64_t stretches;
	struct view_gpu_figures figures;
};

/* The end of a kernel. */
struct end {
	int64_t time_ns;
	uint32_t event; /* index of the device event; orders equal times */
};

OPS_ORDER(view_gpus_compare_ends, struct end, OPS_UP(time_ns) OPS_UP(event))

static double cut_ns(const struct ops_interval *steps, int64_t start_ns, int64_t end_ns)
{
	int64_t from_ns = start_ns > steps->start_ns ? start_ns : steps->start_ns;
	int64_t to_ns = end_ns < steps->end_ns ? end_ns : steps->end_ns;

	return to_ns > from_ns ? (double)(to_ns - from_ns) : 0;
}

static struct gpu gpu_of(const struct ops_views *views, size_t place, bool own)
{
	return (struct gpu){.views = views, .id = views->gpus.items[place], .own = own,
	                    .kernels = views->gpu_kernels.order + views->gpu_kernels.first[place],
	                    .kernel_count = views->gpu_kernels.first[place + 1] - views->gpu_kernels.first[place]};
}

/* Returns the share of the device's multiprocessors that a kernel takes while it runs; 0: unknown. */
static double blocks_of(const struct gpu *gpu, size_t event)
{
	const struct view_device_event *at = &gpu->views->device_events.items[event];
	const struct view_kernel *kernel = &gpu->views->kernels.items[at->arguments];
	double blocks = gpu->own ? kernel->own_blocks_per_sm : kernel->blocks_per_sm;

	return blocks > 0 ? blocks : 0;
}

/* Use of the multiprocessors during the walk over time. */
struct sweep {
	double taken;
	double sum;
	int64_t at_ns;
};

static void go_to(struct gpu *gpu, struct sweep *sweep, int64_t time_ns, double blocks)
{
	if (time_ns > sweep->at_ns && sweep->taken > 0) {
		gpu->stretches++;
		sweep->sum += (sweep->taken < 1 ? sweep->taken : 1) * cut_ns(&gpu->steps, sweep->at_ns, time_ns);
	}
	sweep->at_ns = time_ns;
	sweep->taken += blocks;
}

/* The blocks of all kernels that run at a time share the multiprocessors: 1 is all of them. Kernels are in order of
 * start, so only the ends have to be sorted. At equal times starts come first. */
static void sweep_kernels(struct gpu *gpu, const struct end *ends, size_t count)
{
	const struct ops_views *views = gpu->views;
	struct sweep sweep = {0, 0, INT64_MIN};
	size_t ended = 0;

	for (size_t i = 0; i < gpu->kernel_count; i++) {
		double blocks = blocks_of(gpu, gpu->kernels[i]);
		int64_t start_ns = view_start(views, views->device_events.items[gpu->kernels[i]].row);

		if (!(blocks > 0))
			continue;
		for (; ended < count && ends[ended].time_ns < start_ns; ended++)
			go_to(gpu, &sweep, ends[ended].time_ns, -blocks_of(gpu, ends[ended].event));
		go_to(gpu, &sweep, start_ns, blocks);
	}
	for (; ended < count; ended++)
		go_to(gpu, &sweep, ends[ended].time_ns, -blocks_of(gpu, ends[ended].event));
	gpu->figures.sm_efficiency_ratio =
		sweep.sum > 0 ? sweep.sum / (double)(gpu->steps.end_ns - gpu->steps.start_ns) : (double)NAN;
}

static bool measure_efficiency(struct gpu *gpu)
{
	const struct ops_views *views = gpu->views;
	struct end *ends;
	size_t count = 0;

	for (size_t i = 0; i < gpu->kernel_count; i++)
		gpu->with_blocks += blocks_of(gpu, gpu->kernels[i]) > 0;
	ends = ops_realloc_array(NULL, (size_t)gpu->with_blocks + 1, sizeof(*ends));
	if (!ends)
		return false;
	for (size_t i = 0; i < gpu->kernel_count; i++) {
		uint32_t event = gpu->kernels[i];

		if (blocks_of(gpu, event) > 0)
			ends[count++] = (struct end){view_end(views, views->device_events.items[event].row), event};
	}
	if (count)
		qsort(ends, count, sizeof(*ends), view_gpus_compare_ends);
	sweep_kernels(gpu, ends, count);
	ops_free(ends);
	return true;
}

static bool measure_use(struct gpu *gpu)
{
	const struct ops_views *views = gpu->views;
	double length_ns = (double)(gpu->steps.end_ns - gpu->steps.start_ns);
	double weighted = 0, weight = 0, tensor = 0, kernels = 0;
	bool linked = false;
	struct ops_intervals steps = {&gpu->steps, 1, 0};

	for (size_t i = 0; i < gpu->kernel_count; i++) {
		const struct view_device_event *event = &views->device_events.items[gpu->kernels[i]];
		const struct view_kernel *kernel = &views->kernels.items[event->arguments];
		double occupancy = gpu->own ? kernel->own_occupancy_pct : kernel->occupancy_pct;
		int64_t start_ns = view_start(views, event->row), end_ns = view_end(views, event->row);

		if (!ops_intervals_merge(&gpu->busy, start_ns, end_ns))
			return false;
		if (occupancy >= 0) {
			gpu->with_occupancy++;
			weighted += occupancy * cut_ns(&gpu->steps, start_ns, end_ns);
			weight += cut_ns(&gpu->steps, start_ns, end_ns);
		}
		linked |= event->in_tree;
		kernels += (double)(end_ns - start_ns); /* regardless of what launched them */
		if (views->names[views->events->name[event->row]] & VIEW_NAME_TENSOR_CORES)
			tensor += (double)(end_ns - start_ns);
	}
	gpu->figures.utilization_ratio = length_ns > 0 ? (double)ops_intervals_common(&gpu->busy, &steps) / length_ns : 0;
	gpu->figures.occupancy_pct = weight > 0 ? weighted / weight : (double)NAN;
	gpu->figures.tensor_core_time_ratio = linked && kernels > 0 ? tensor / kernels : (double)NAN;
	return true;
}

static bool measure_once(struct gpu *gpu)
{
	const struct ops_views *views = gpu->views;

	if (views->steps.count)
		gpu->steps = (struct ops_interval){views->steps.items[0].start_ns,
		                                views->steps.items[views->steps.count - 1].end_ns};
	return measure_use(gpu) && measure_efficiency(gpu);
}

static bool view_gpus_measure(struct gpu *gpu)
{
	struct gpu own = *gpu;
	bool done;

	own.own = true;
	done = measure_once(gpu) && (!gpu->views->worked_out || measure_once(&own));
	if (!gpu->views->worked_out)
		own.figures = gpu->figures;
	gpu->figures.own_sm_efficiency_ratio = own.figures.sm_efficiency_ratio;
	gpu->figures.own_occupancy_pct = own.figures.occupancy_pct;
	ops_intervals_release(&own.busy);
	return done;
}

bool view_gpu_figures(const struct ops_views *views, int64_t id, struct view_gpu_figures *ret_figures)
{
	const int64_t *at = bsearch(&id, views->gpus.items, views->gpus.count, sizeof(id), ops_compare_int64);
	struct gpu gpu;
	bool done;

	if (!at)
		return true;
	gpu = gpu_of(views, (size_t)(at - views->gpus.items), false);
	done = view_gpus_measure(&gpu);
	if (done)
		*ret_figures = gpu.figures;
	ops_intervals_release(&gpu.busy);
	return done;
}

/* --- over time ------------------------------------------------------------------------------------------------------ */

/* The range of the session, or of the complete trace. */
static struct ops_interval range_of(const struct ops_views *views)
{
	struct ops_interval range = {views->first_ns, views->last_ns};

	for (uint32_t row = 0; row < views->events->count; row++) {
		struct ops_string name;

		if (views->parts[row] != VIEW_WINDOW)
			continue;
		name = view_row_name(views, row);
		if (name.size == strlen("PyTorch Profiler (0)") && memcmp(name.bytes, "PyTorch Profiler (0)", name.size) == 0)
			return (struct ops_interval){view_start(views, row), view_end(views, row)};
	}
	return range;
}

static void write_width(struct ops_json_writer *json, int64_t width_us)
{
	char text[48];
	int size;

	if (width_us >= 1000000)
		size = snprintf(text, sizeof(text), "%lld s", (long long)(width_us / 1000000));
	else if (width_us >= 1000)
		size = snprintf(text, sizeof(text), "%lld ms", (long long)(width_us / 1000));
	else
		size = snprintf(text, sizeof(text), "%lld us", (long long)width_us);
	ops_json_text(json, text, (size_t)size);
}

/* The last bucket is the rest of the range. */
static void write_timeline(const struct gpu *gpu, struct ops_interval range, struct ops_json_writer *json)
{
	int64_t length_ns = ops_difference(range.end_ns, range.start_ns);
	int64_t width_ns = 1000, count;
	size_t cursor = 0;

	while (length_ns / BUCKETS_MAX > width_ns || (length_ns / BUCKETS_MAX == width_ns && length_ns % BUCKETS_MAX))
		width_ns *= 10;
	count = length_ns / width_ns;
	ops_json_member_open(json, "utilization_timeline", '{');
	ops_json_key(json, "bucket");
	write_width(json, width_ns / 1000);
	ops_json_member_us(json, "start", ops_difference(range.start_ns, gpu->views->base_ns));
	ops_json_member_us(json, "end", ops_difference(range.end_ns, gpu->views->base_ns));
	ops_json_member_open(json, "values", '[');
	for (int64_t i = 0; i < count; i++) {
		int64_t start_ns = range.start_ns + i * width_ns;
		int64_t end_ns = i + 1 < count ? start_ns + width_ns : range.end_ns;

		ops_json_number(json, (double)ops_intervals_within(&gpu->busy, start_ns, end_ns, &cursor) /
		                              (double)(end_ns - start_ns));
	}
	ops_json_close(json, ']');
	ops_json_close(json, '}');
}

static bool view_gpus_write_gpu(struct gpu *gpu, struct ops_interval range, struct ops_json_writer *json)
{
	if (!view_gpus_measure(gpu))
		return false;
	ops_json_open(json, '{');
	ops_json_member(json, "id", gpu->id);
	ops_json_member_number(json, "utilization_ratio", gpu->figures.utilization_ratio);
	ops_json_member_number(json, "est_sm_efficiency_ratio", gpu->figures.sm_efficiency_ratio);
	ops_json_member_number(json, "est_achieved_occupancy_pct", gpu->figures.occupancy_pct);
	ops_json_member_number(json, "sm_efficiency_ratio", gpu->figures.own_sm_efficiency_ratio);
	ops_json_member_number(json, "occupancy_pct", gpu->figures.own_occupancy_pct);
	ops_json_member_number(json, "tensor_core_time_ratio", gpu->figures.tensor_core_time_ratio);
	ops_json_member(json, "kernels_with_blocks_per_sm", (int64_t)gpu->with_blocks);
	ops_json_member(json, "kernels_with_occupancy", (int64_t)gpu->with_occupancy);
	write_timeline(gpu, range, json);
	ops_json_member(json, "sm_efficiency_ranges", (int64_t)gpu->stretches);
	ops_json_close(json, '}');
	return true;
}

bool view_write_gpus(const struct ops_views *views, struct ops_json_writer *json)
{
	struct ops_interval range = range_of(views);
	bool done = true;

	ops_json_member_open(json, "gpus", '[');
	for (size_t i = 0; done && i < views->gpus.count; i++) {
		struct gpu gpu = gpu_of(views, i, false);

		done = view_gpus_write_gpu(&gpu, range, json);
		ops_intervals_release(&gpu.busy);
	}
	ops_json_close(json, ']');
	return done;
}
