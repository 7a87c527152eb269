/* SPDX-License-Identifier: Apache-2.0
 *
 * The TensorBoard plugin's seven recommendations, with the figures that trigger them. Thresholds are those of the
 * plugin; a figure equal to its threshold triggers nothing.
 */
#include <math.h>
#include <string.h>

#include "analyze/device.h"
#include "analyze/views/views.h"
#include "base/alloc.h"

#define LOADER_PCT 5.0
#define COMMUNICATION_PCT 10.0
#define UTILIZATION_RATIO 0.5
#define MEMORY_RATIO 0.9
#define GIB (1024.0 * 1024.0 * 1024.0)

/* Figures that trigger each recommendation; NAN and OPS_NONE: not triggered. */
struct recommendations {
	double loader_pct;
	bool prefer_ddp;
	bool prefer_nccl;
	double communication_pct;
	OPS_ARRAY(int64_t) idle_gpus;
	double eligible_pct;
	double memory_pct;
	double memory_gib; /* memory of the device */
	uint32_t memory_device;
};

static double share_above(const struct ops_views *views, enum view_category category, double threshold_pct)
{
	double step_ns = view_step_average_ns(views, VIEW_TIME_COUNT);
	double pct = step_ns > 0 ? 100 * view_step_average_ns(views, category) / step_ns : 0;

	return pct > threshold_pct ? pct : (double)NAN;
}

static void judge_parallel(const struct ops_views *views, struct recommendations *found)
{
	bool capable = false;

	found->prefer_ddp = views->has_dp && views->used.count > 1;
	for (size_t i = 0; i < views->devices.count; i++) {
		const struct view_device *device = &views->devices.items[i];

		capable |= device->major > 3 || (device->major == 3 && device->minor >= 5);
	}
	/* Without device work, NCCL is of no use. */
	found->prefer_nccl = views->has_ddp && !views->has_nccl && capable && views->device_events.count;
}

static bool judge_utilization(const struct ops_views *views, struct recommendations *found)
{
	for (size_t i = 0; i < views->gpus.count; i++) {
		struct view_gpu_figures figures;

		if (!view_gpu_figures(views, views->gpus.items[i], &figures))
			return false;
		if (!(figures.utilization_ratio < UTILIZATION_RATIO))
			continue;
		if (!OPS_ARRAY_APPEND(&found->idle_gpus, views->gpus.items[i]))
			return false;
	}
	return true;
}

/* Kernel names identify only the tensor cores of NVIDIA devices. */
static void judge_amp(const struct ops_views *views, struct recommendations *found)
{
	double eligible = view_tensor_cores_eligible(views);
	const struct view_device *device = views->devices.items;

	if (views->devices.count && device->major >= 7 && device->warp_size != 64 && view_tensor_cores_used(views) == 0 &&
	    eligible > 0)
		found->eligible_pct = 100 * eligible;
}

/* Considers memory of accelerators only, not of the CPU: the first device that is near its limit. */
static void judge_memory(const struct ops_views *views, struct recommendations *found)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(views->trace, &count);

	for (size_t d = 0; d < views->devices.count && isnan(found->memory_pct); d++) {
		const struct view_device *device = &views->devices.items[d];
		uint64_t peak_bytes = 0;

		for (size_t i = 0; i < count; i++)
			if (!ops_device_is_host(records[i].device_type) && records[i].device_index == (int64_t)d &&
			    !records[i].out_of_memory && records[i].total_allocated > peak_bytes)
				peak_bytes = records[i].total_allocated;
		if (device->memory_bytes <= 0 || !((double)peak_bytes > MEMORY_RATIO * (double)device->memory_bytes))
			continue;
		found->memory_pct = 100 * (double)peak_bytes / (double)device->memory_bytes;
		found->memory_gib = (double)device->memory_bytes / GIB;
		found->memory_device = (uint32_t)d;
	}
}

static bool view_recommendations_judge(const struct ops_views *views, struct recommendations *found)
{
	*found = (struct recommendations){.loader_pct = share_above(views, VIEW_TIME_LOADER, LOADER_PCT),
	                                  .communication_pct = share_above(views, VIEW_TIME_COMMUNICATION, COMMUNICATION_PCT),
	                                  .eligible_pct = (double)NAN, .memory_pct = (double)NAN};
	judge_parallel(views, found);
	judge_amp(views, found);
	judge_memory(views, found);
	return judge_utilization(views, found);
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static void view_recommendations_begin(struct ops_json_writer *json, const char *id)
{
	ops_json_open(json, '{');
	ops_json_member_text(json, "id", id);
}

/* Rounds half to even, as all of these views do. */
static void view_recommendations_write_number(struct ops_json_writer *json, const char *key, double value, double scale)
{
	ops_json_member_number(json, key, rint(value * scale) / scale);
}

static void write_percent(struct ops_json_writer *json, const char *id, double pct, double scale)
{
	if (isnan(pct))
		return;
	view_recommendations_begin(json, id);
	view_recommendations_write_number(json, "percent", pct, scale);
	ops_json_close(json, '}');
}

static void view_recommendations_write_id(struct ops_json_writer *json, const char *id)
{
	view_recommendations_begin(json, id);
	ops_json_close(json, '}');
}

static void write_gpus(struct ops_json_writer *json, const struct recommendations *found)
{
	view_recommendations_begin(json, "LOW_GPU_UTILIZATION");
	OPS_JSON_LIST(json, "gpus", i, found->idle_gpus.count, ops_json_integer(json, found->idle_gpus.items[i]));
	ops_json_close(json, '}');
}

static void view_recommendations_write_memory(struct ops_json_writer *json, const struct recommendations *found)
{
	view_recommendations_begin(json, "GPU_MEMORY_NEAR_LIMIT");
	view_recommendations_write_number(json, "percent", found->memory_pct, 10);
	view_recommendations_write_number(json, "capacity_gb", found->memory_gib, 10);
	ops_json_member(json, "gpu", found->memory_device);
	ops_json_close(json, '}');
}

bool view_write_recommendations(const struct ops_views *views, struct ops_json_writer *json)
{
	struct recommendations found;
	bool done = view_recommendations_judge(views, &found);

	ops_json_member_open(json, "recommendations", '[');
	write_percent(json, "DATALOADER_BOUND", found.loader_pct, 10);
	if (found.prefer_ddp)
		view_recommendations_write_id(json, "PREFER_DDP_OVER_DP");
	if (found.prefer_nccl)
		view_recommendations_write_id(json, "PREFER_NCCL");
	write_percent(json, "COMMUNICATION_BOUND", found.communication_pct, 10);
	if (found.idle_gpus.count)
		write_gpus(json, &found);
	write_percent(json, "ENABLE_AMP", found.eligible_pct, 1);
	if (!isnan(found.memory_pct))
		view_recommendations_write_memory(json, &found);
	ops_json_close(json, ']');
	OPS_ARRAY_RELEASE(&found.idle_gpus);
	return done;
}
