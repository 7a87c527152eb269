/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin's seven pieces of advice (5), with the figures that call for them. Thresholds are the plugin's; a figure that
 * is exactly on one does not call for anything.
 */
#include <math.h>
#include <string.h>

#include "analyze/views/views.h"

#define LOADER_PCT 5.0
#define COMMUNICATION_PCT 10.0
#define UTILIZATION_RATIO 0.5
#define MEMORY_RATIO 0.9
#define GIB (1024.0 * 1024.0 * 1024.0)

static void begin(struct ops_json_writer *json, const char *id)
{
	ops_json_open(json, '{');
	ops_json_key(json, "id");
	ops_json_text(json, id, strlen(id));
}

/* Half to even, as everywhere in these views. */
static double rounded(double value, double scale)
{
	return rint(value * scale) / scale;
}

static void advise_share(const struct ops_views *views, struct ops_json_writer *json, const char *id,
                         enum view_category category, double threshold_pct)
{
	double step_ns = view_step_average_ns(views, VIEW_TIME_COUNT);
	double pct = step_ns > 0 ? 100 * view_step_average_ns(views, category) / step_ns : 0;

	if (!(pct > threshold_pct))
		return;
	begin(json, id);
	ops_json_key(json, "percent");
	ops_json_number(json, rounded(pct, 10));
	ops_json_close(json, '}');
}

static void advise_parallel(const struct ops_views *views, struct ops_json_writer *json)
{
	bool capable = false;

	if (views->has_dp && views->used.count > 1) {
		begin(json, "PREFER_DDP_OVER_DP");
		ops_json_close(json, '}');
	}
	for (size_t i = 0; i < views->devices.count; i++) {
		const struct view_device *device = &views->devices.items[i];

		capable |= device->major > 3 || (device->major == 3 && device->minor >= 5);
	}
	/* Without work on a device NCCL serves nobody (F21). */
	if (views->has_ddp && !views->has_nccl && capable && views->device_events.count) {
		begin(json, "PREFER_NCCL");
		ops_json_close(json, '}');
	}
}

static bool advise_utilization(struct ops_views *views, struct ops_json_writer *json)
{
	bool any = false;

	for (size_t i = 0; i < views->gpus.count; i++) {
		struct view_gpu_figures figures;

		if (!view_gpu_figures(views, views->gpus.items[i], &figures))
			return false;
		if (!(figures.utilization_ratio < UTILIZATION_RATIO))
			continue;
		if (!any) {
			begin(json, "LOW_GPU_UTILIZATION");
			ops_json_key(json, "gpus");
			ops_json_open(json, '[');
		}
		any = true;
		ops_json_integer(json, views->gpus.items[i]);
	}
	if (any) {
		ops_json_close(json, ']');
		ops_json_close(json, '}');
	}
	return true;
}

static void advise_amp(const struct ops_views *views, struct ops_json_writer *json)
{
	double eligible = view_tensor_cores_eligible(views);

	if (!views->devices.count || views->devices.items[0].major < 7 || view_tensor_cores_used(views) != 0 || !(eligible > 0))
		return;
	begin(json, "ENABLE_AMP");
	ops_json_key(json, "percent");
	ops_json_number(json, rounded(100 * eligible, 1));
	ops_json_close(json, '}');
}

/* Memory of an accelerator, and not the CPU's (F11): the first device that is near its limit. */
static void advise_memory(const struct ops_views *views, struct ops_json_writer *json)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(views->trace, &count);

	for (size_t d = 0; d < views->devices.count; d++) {
		const struct view_device *device = &views->devices.items[d];
		uint64_t peak_bytes = 0;

		for (size_t i = 0; i < count; i++)
			if (records[i].device_type == 1 && records[i].device_index == (int64_t)d &&
			    !records[i].out_of_memory && records[i].total_allocated > peak_bytes)
				peak_bytes = records[i].total_allocated;
		if (device->memory_bytes <= 0 || !((double)peak_bytes > MEMORY_RATIO * (double)device->memory_bytes))
			continue;
		begin(json, "GPU_MEMORY_NEAR_LIMIT");
		ops_json_key(json, "percent");
		ops_json_number(json, rounded(100 * (double)peak_bytes / (double)device->memory_bytes, 10));
		ops_json_key(json, "capacity_gb");
		ops_json_number(json, rounded((double)device->memory_bytes / GIB, 10));
		ops_json_key(json, "gpu");
		ops_json_integer(json, (int64_t)d);
		ops_json_close(json, '}');
		return;
	}
}

bool view_write_recommendations(struct ops_views *views, struct ops_json_writer *json)
{
	bool done;

	ops_json_key(json, "recommendations");
	ops_json_open(json, '[');
	advise_share(views, json, "DATALOADER_BOUND", VIEW_TIME_LOADER, LOADER_PCT);
	advise_parallel(views, json);
	advise_share(views, json, "COMMUNICATION_BOUND", VIEW_TIME_COMMUNICATION, COMMUNICATION_PCT);
	done = advise_utilization(views, json);
	advise_amp(views, json);
	advise_memory(views, json);
	ops_json_close(json, ']');
	return done;
}
