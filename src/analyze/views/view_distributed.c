/* SPDX-License-Identifier: Apache-2.0
 *
 * All workers of a run together. The shortest of one operation's ranges is its transfer time, at the end of each
 * worker's range; the rest of a range is wait time. Ranges are the host's event and each kernel; clocks are not
 * compared. The TensorBoard plugin matches by order alone, and shows nothing if workers differ in the number of
 * collectives. Here all operations with a counterpart are matched, and `shown` is true if the plugin would show them.
 */
#include "analyze/views/view_distributed.h"

#include <opstrobe/internal/trace.h>
#include <opstrobe/internal/views.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/order.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

/* Durations of one range of an operation over the workers. */
struct range_lengths {
	int64_t shortest_ns;
	int64_t longest_ns;
};

struct run {
	struct view_worker *const *workers;
	size_t count;
	bool shown;
	struct view_names names; /* by worker: its name as a unique key */
	struct ops_operations operations;
	struct ops_map ranges;     /* by operation and number of the range: index into `lengths` */
	OPS_ARRAY(struct range_lengths) lengths;
};

/* --- wait times ----------------------------------------------------------------------------------------------------- */

static bool view_distributed_add_range(struct run *run, uint32_t operation, uint32_t range, int64_t length_ns)
{
	uint32_t *at = ops_map_slot(&run->ranges, (uint64_t)operation << 32 | range, (uint32_t)run->lengths.count);
	struct range_lengths *lengths;

	if (!at)
		return false;
	if (*at < run->lengths.count) {
		lengths = &run->lengths.items[*at];
		lengths->shortest_ns = length_ns < lengths->shortest_ns ? length_ns : lengths->shortest_ns;
		lengths->longest_ns = length_ns > lengths->longest_ns ? length_ns : lengths->longest_ns;
		return true;
	}
	return OPS_ARRAY_APPEND(&run->lengths, ((struct range_lengths){length_ns, length_ns}));
}

/* Returns the durations of a range that was added before. */
static const struct range_lengths *lengths_of(const struct run *run, uint32_t operation, uint32_t range)
{
	return &run->lengths.items[ops_map_find(&run->ranges, (uint64_t)operation << 32 | range)];
}

OPS_ORDER(compare_spans, struct ops_interval, OPS_UP(start_ns))

/* Ranges are matched in order of time, regardless of their kind. */
static void sort_ranges(struct ops_views *views)
{
	for (size_t i = 0; i < views->collectives.count; i++) {
		const struct view_collective *collective = &views->collectives.items[i];

		qsort(views->ranges.items + collective->first, collective->count, sizeof(*views->ranges.items), compare_spans);
	}
}

static bool view_distributed_find_lengths(struct run *run, const struct view_worker *worker)
{
	const struct ops_views *views = &worker->views;

	for (size_t i = 0; i < views->collectives.count; i++) {
		const struct view_collective *collective = &views->collectives.items[i];

		for (uint32_t range = 0; range < collective->count; range++) {
			const struct ops_interval *span = &views->ranges.items[collective->first + range];

			if (!view_distributed_add_range(run, worker->operations[i], range, span->end_ns - span->start_ns))
				return false;
		}
	}
	return true;
}

/* The transfers of each worker are its ranges, shortened to the shortest duration. */
static bool cut_transfers(const struct run *run, struct view_worker *worker)
{
	const struct ops_views *views = &worker->views;
	struct ops_intervals *transfers = &worker->transfers;

	for (size_t i = 0; i < views->ranges.count; i++)
		if (!ops_intervals_push(transfers, views->ranges.items[i].start_ns, views->ranges.items[i].end_ns))
			return false;
	for (size_t i = 0; i < views->collectives.count; i++) {
		const struct view_collective *collective = &views->collectives.items[i];

		for (uint32_t range = 0; range < collective->count; range++) {
			struct ops_interval *span = &transfers->items[collective->first + range];

			span->start_ns = span->end_ns - lengths_of(run, worker->operations[i], range)->shortest_ns;
		}
	}
	return true;
}

static bool find_transfers(struct run *run)
{
	bool done = true;

	for (size_t w = 0; done && w < run->count; w++) {
		sort_ranges(&run->workers[w]->views);
		done = view_collectives_number(&run->operations, &run->workers[w]->texts, run->workers[w]->keys,
		                               run->workers[w]->views.collectives.count, run->workers[w]->operations) &&
		       view_distributed_find_lengths(run, run->workers[w]);
	}
	for (size_t w = 0; done && w < run->count; w++)
		done = cut_transfers(run, run->workers[w]);
	return done;
}

static void release_run(struct run *run)
{
	view_names_release(&run->names);
	ops_operations_release(&run->operations);
	ops_map_release(&run->ranges);
	OPS_ARRAY_RELEASE(&run->lengths);
}

static bool measure_waits(struct view_worker *worker)
{
	struct ops_views *views = &worker->views;
	size_t count = views->collectives.count;

	view_collectives_by_step(views, worker->order);
	for (size_t i = 0, next; i < count; i = next) {
		uint32_t step = views->collectives.items[worker->order[i]].step;
		int64_t ranges_ns, transfers_ns;

		next = view_collectives_step_end(views, worker->order, i);
		if (step == OPS_NONE)
			continue;
		if (!view_collectives_cover(views, &views->ranges, worker->order + i, next - i, &ranges_ns) ||
		    !view_collectives_cover(views, &worker->transfers, worker->order + i, next - i, &transfers_ns))
			return false;
		worker->waits[step] = (struct view_wait){transfers_ns, ranges_ns - transfers_ns};
	}
	return true;
}

/* Finds, in each step, the range for which another worker waited longest for this one. */
static void find_late_ranges(const struct run *run, struct view_worker *worker)
{
	const struct ops_views *views = &worker->views;

	for (uint32_t i = 0; i < views->collectives.count; i++) {
		const struct view_collective *collective = &views->collectives.items[i];
		struct view_late *late;

		if (collective->step == OPS_NONE)
			continue;
		late = &worker->lates[collective->step];
		for (uint32_t range = 0; range < collective->count; range++) {
			const struct ops_interval *span = &views->ranges.items[collective->first + range];
			int64_t wait_ns = lengths_of(run, worker->operations[i], range)->longest_ns - (span->end_ns - span->start_ns);

			if (wait_ns > late->wait_ns)
				*late = (struct view_late){.wait_ns = wait_ns, .collective = i, .span = *span};
		}
	}
}

static bool measure_overlaps(struct view_worker *worker)
{
	const struct ops_views *views = &worker->views;
	struct view_overlaps overlaps;
	bool done = view_overlaps_init(&overlaps, views);

	for (size_t i = 0; done && i < views->steps.count; i++)
		worker->overlaps[i] = view_overlaps_next(&overlaps, &views->steps.items[i]);
	view_overlaps_release(&overlaps);
	return done;
}

/* --- devices -------------------------------------------------------------------------------------------------------- */

/* "node_3" is process 3 of the node. Otherwise the complete name is the node, and processes are counted. */
static size_t node_size(const char *name, const char **ret_process)
{
	const char *line = strrchr(name, '_');

	*ret_process = NULL;
	if (!line || !line[1] || strspn(line + 1, "0123456789") != strlen(line + 1))
		return strlen(name);
	*ret_process = line + 1;
	return (size_t)(line - name);
}

static void view_distributed_write_gpu(struct ops_json_writer *json, const struct view_device *device)
{
	char text[64];

	ops_json_open(json, '{');
	ops_json_member_raw(json, "Name", device->name_json);
	ops_json_key(json, "Memory");
	snprintf(text, sizeof(text), "%.2f GB", (double)device->memory_bytes / GIB);
	ops_json_word(json, text);
	ops_json_member(json, "Memory Raw", device->memory_bytes);
	ops_json_key(json, "Compute Capability");
	snprintf(text, sizeof(text), "%lld.%lld", (long long)device->major, (long long)device->minor);
	ops_json_word(json, text);
	ops_json_close(json, '}');
}

/* Devices are numbered by their position in the list. */
static void view_distributed_write_process(struct ops_json_writer *json, const struct view_worker *worker,
                                           struct ops_string process)
{
	const struct ops_views *views = &worker->views;
	char text[64];

	ops_json_key_of(json, process.bytes, process.size);
	ops_json_open(json, '{');
	for (size_t i = 0; i < views->used.count; i++) {
		int64_t id = views->used.items[i];

		if (id < 0 || (uint64_t)id >= views->devices.count)
			continue;
		snprintf(text, sizeof(text), "GPU%lld", (long long)id);
		ops_json_key(json, text);
		view_distributed_write_gpu(json, &views->devices.items[id]);
	}
	ops_json_close(json, '}');
}

static bool same_node(const struct view_worker *a, const struct view_worker *b)
{
	const char *process;
	size_t left = node_size(a->name, &process), right = node_size(b->name, &process);

	return left == right && memcmp(a->name, b->name, left) == 0;
}

static bool has_devices(const struct view_worker *worker)
{
	return worker->views.used.count && worker->views.devices.count;
}

/* Names a process by the number in its worker's name, or by its position. */
static bool name_process(struct view_names *processes, const struct view_worker *worker)
{
	const char *process;
	char text[64];

	node_size(worker->name, &process);
	snprintf(text, sizeof(text), "Process %zu", processes->texts.count);
	if (process)
		snprintf(text, sizeof(text), "Process %s", process);
	return view_names_add(processes, (struct ops_string){text, strlen(text)});
}

/* Writes all workers with devices on the node of this worker, which is its first. */
static bool write_node(const struct run *run, size_t first, struct ops_json_writer *json)
{
	struct view_names processes = {0};
	const char *process;
	bool done = true;

	ops_json_key_of(json, run->workers[first]->name, node_size(run->workers[first]->name, &process));
	ops_json_open(json, '{');
	for (size_t w = first; done && w < run->count; w++) {
		if (!has_devices(run->workers[w]) || !same_node(run->workers[first], run->workers[w]))
			continue;
		done = name_process(&processes, run->workers[w]);
		if (done)
			view_distributed_write_process(json, run->workers[w],
			                               view_names_at(&processes, processes.texts.count - 1));
	}
	ops_json_close(json, '}');
	view_names_release(&processes);
	return done;
}

static bool view_distributed_write_devices(const struct run *run, struct ops_json_writer *json)
{
	bool any = false, done = true;

	ops_json_key(json, "gpu_info");
	for (size_t w = 0; w < run->count; w++)
		any |= has_devices(run->workers[w]);
	if (!any) {
		ops_json_null(json);
		return true;
	}
	ops_json_open(json, '{');
	for (size_t w = 0; done && w < run->count; w++) {
		bool known = false;

		for (size_t before = 0; before < w && !known; before++)
			known = has_devices(run->workers[before]) && same_node(run->workers[before], run->workers[w]);
		if (!known && has_devices(run->workers[w]))
			done = write_node(run, w, json);
	}
	ops_json_close(json, '}');
	return done;
}

/* --- by step -------------------------------------------------------------------------------------------------------- */

static void write_worker_key(const struct run *run, size_t w, struct ops_json_writer *json)
{
	struct ops_string name = view_names_at(&run->names, w);

	ops_json_key_of(json, name.bytes, name.size);
}

static void write_step_overlap(struct ops_json_writer *json, const struct view_worker *worker, size_t step)
{
	ops_json_open(json, '{');
	view_write_overlap(json, &worker->overlaps[step]);
	ops_json_close(json, '}');
}

static void write_wait(struct ops_json_writer *json, int64_t transfer_ns, int64_t synchronizing_ns)
{
	ops_json_open(json, '{');
	ops_json_member_us(json, "data_transfer", transfer_ns);
	ops_json_member_us(json, "synchronizing", synchronizing_ns);
	ops_json_close(json, '}');
}

static void write_step_wait(struct ops_json_writer *json, const struct view_worker *worker, size_t step)
{
	write_wait(json, worker->waits[step].transfer_ns, worker->waits[step].synchronizing_ns);
}

/* Writes null if no worker waited for this one. */
static void write_step_late(struct ops_json_writer *json, const struct view_worker *worker, size_t step)
{
	const struct view_late *late = &worker->lates[step];

	if (!late->wait_ns) {
		ops_json_null(json);
		return;
	}
	ops_json_open(json, '{');
	ops_json_member_string(json, "name", ops_intern_text(&worker->texts, worker->names[late->collective]));
	ops_json_member(json, "row", worker->views.collectives.items[late->collective].row);
	ops_json_member_us(json, "start", late->span.start_ns - worker->origin_ns);
	ops_json_member_us(json, "end", late->span.end_ns - worker->origin_ns);
	ops_json_member_us(json, "wait", late->wait_ns);
	ops_json_close(json, '}');
}

/* Means are truncated to whole microseconds. */
static int64_t view_distributed_mean_ns(int64_t sum_ns, size_t count)
{
	return count ? sum_ns / (int64_t)count / 1000 * 1000 : 0;
}

struct view_overlap view_worker_mean_overlap(const struct view_worker *worker)
{
	struct view_overlap sum = {0};
	size_t count = worker->views.steps.count;

	for (size_t i = 0; i < count; i++) {
		view_add(&sum.computation_only_ns, worker->overlaps[i].computation_only_ns);
		view_add(&sum.overlap_ns, worker->overlaps[i].overlap_ns);
		view_add(&sum.communication_only_ns, worker->overlaps[i].communication_only_ns);
		view_add(&sum.other_ns, worker->overlaps[i].other_ns);
	}
	return (struct view_overlap){view_distributed_mean_ns(sum.computation_only_ns, count), view_distributed_mean_ns(sum.overlap_ns, count),
	                             view_distributed_mean_ns(sum.communication_only_ns, count), view_distributed_mean_ns(sum.other_ns, count)};
}

struct view_wait view_worker_mean_wait(const struct view_worker *worker)
{
	struct view_wait sum = {0};
	size_t count = worker->views.steps.count;

	for (size_t i = 0; i < count; i++) {
		view_add(&sum.transfer_ns, worker->waits[i].transfer_ns);
		view_add(&sum.synchronizing_ns, worker->waits[i].synchronizing_ns);
	}
	return (struct view_wait){view_distributed_mean_ns(sum.transfer_ns, count), view_distributed_mean_ns(sum.synchronizing_ns, count)};
}

static void write_mean_overlap(struct ops_json_writer *json, const struct view_worker *worker)
{
	struct view_overlap mean = view_worker_mean_overlap(worker);

	ops_json_open(json, '{');
	view_write_overlap(json, &mean);
	ops_json_close(json, '}');
}

static void write_mean_wait(struct ops_json_writer *json, const struct view_worker *worker)
{
	struct view_wait mean = view_worker_mean_wait(worker);

	write_wait(json, mean.transfer_ns, mean.synchronizing_ns);
}

/* --- late rank ------------------------------------------------------------------------------------------------------ */

/* A rank is late if the others wait for more than this share of their communication. */
#define LATE_SHARE 0.1

struct view_late_rank view_late_rank_find(const struct view_worker *const *workers, size_t count, struct ops_string step)
{
	struct view_late_rank late = {.worker = SIZE_MAX};
	double waits_ns = 0, talks_ns = 0, least_ns = INFINITY, least_talk_ns = 0;
	size_t found = 0;

	for (size_t w = 0; w < count; w++) {
		uint32_t at = step.size ? ops_intern_find(&workers[w]->steps.texts, step.bytes, step.size) : 1;
		struct view_wait wait;

		if (at == OPS_INTERN_NONE)
			continue;
		wait = step.size ? workers[w]->waits[at - 1] : view_worker_mean_wait(workers[w]);
		found++;
		waits_ns += (double)wait.synchronizing_ns;
		talks_ns += (double)wait.synchronizing_ns + (double)wait.transfer_ns;
		if ((double)wait.synchronizing_ns < least_ns) {
			least_ns = (double)wait.synchronizing_ns;
			least_talk_ns = least_ns + (double)wait.transfer_ns;
			late.worker = w;
		}
	}
	if (found < 2)
		return (struct view_late_rank){.worker = SIZE_MAX};
	late.wait_ns = (waits_ns - least_ns) / (double)(found - 1) - least_ns;
	if (!(late.wait_ns > LATE_SHARE * (talks_ns - least_talk_ns) / (double)(found - 1)))
		late.worker = SIZE_MAX;
	return late;
}

static void write_late_rank(const struct run *run, struct ops_string step, struct ops_json_writer *json)
{
	struct view_late_rank late = view_late_rank_find((const struct view_worker *const *)run->workers, run->count, step);

	if (late.worker == SIZE_MAX) {
		ops_json_null(json);
		return;
	}
	ops_json_open(json, '{');
	ops_json_member_string(json, "worker", view_names_at(&run->names, late.worker));
	ops_json_member_number(json, "wait", late.wait_ns / 1000);
	ops_json_close(json, '}');
}

/* {"all": …, step: …}: the rank for which the others wait, and how much longer than it does; null if there is none. */
static void write_late_ranks(const struct run *run, struct ops_json_writer *json)
{
	const struct view_names *steps = &run->workers[0]->steps;

	ops_json_member_open(json, "late_rank", '{');
	ops_json_key(json, "all");
	write_late_rank(run, (struct ops_string){0}, json);
	for (size_t i = 1; i < steps->texts.count; i++) {
		struct ops_string name = view_names_at(steps, i);

		ops_json_key_of(json, name.bytes, name.size);
		write_late_rank(run, name, json);
	}
	ops_json_close(json, '}');
}

/* --- figures by step ------------------------------------------------------------------------------------------------ */

/* {"all": {worker: …}, step: {worker: …}}; without `mean`, there is no "all". */
static void write_by_step(const struct run *run, struct ops_json_writer *json, const char *key,
                          void (*mean)(struct ops_json_writer *json, const struct view_worker *worker),
                          void (*one)(struct ops_json_writer *json, const struct view_worker *worker, size_t step))
{
	const struct view_names *steps = &run->workers[0]->steps;

	ops_json_member_open(json, key, '{');
	if (mean)
		ops_json_member_open(json, "all", '{');
	for (size_t w = 0; mean && w < run->count; w++) {
		write_worker_key(run, w, json);
		mean(json, run->workers[w]);
	}
	if (mean)
		ops_json_close(json, '}');
	for (size_t i = 1; i < steps->texts.count; i++) {
		struct ops_string name = view_names_at(steps, i);

		ops_json_key_of(json, name.bytes, name.size);
		ops_json_open(json, '{');
		for (size_t w = 0; w < run->count; w++) {
			uint32_t step = ops_intern_find(&run->workers[w]->steps.texts, name.bytes, name.size);

			if (step == OPS_INTERN_NONE)
				continue;
			write_worker_key(run, w, json);
			one(json, run->workers[w], step - 1);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, '}');
}

/* --- by operation --------------------------------------------------------------------------------------------------- */

static int view_distributed_compare_names(const void *a, const void *b, void *context)
{
	const struct view_worker *worker = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	if (worker->names[left] != worker->names[right])
		return worker->names[left] < worker->names[right] ? -1 : 1;
	return (left > right) - (left < right);
}

static int64_t view_distributed_average(int64_t value, size_t count)
{
	return (int64_t)rint((double)value / (double)count);
}

/* Writes the `count` collectives of one name. */
static bool view_distributed_write_operation(const struct view_worker *worker, struct ops_json_writer *json,
                                             const uint32_t *order, size_t count)
{
	const struct ops_views *views = &worker->views;
	int64_t bytes = view_collectives_bytes(views, order, count), latency_ns, transfer_ns;

	if (!view_collectives_cover(&worker->views, &views->ranges, order, count, &latency_ns) ||
	    !view_collectives_cover(&worker->views, &worker->transfers, order, count, &transfer_ns))
		return false;
	ops_json_open(json, '{');
	ops_json_member_string(json, "name", ops_intern_text(&worker->texts, worker->names[order[0]]));
	ops_json_member(json, "calls", (int64_t)count);
	ops_json_member_if(json, "total_bytes", bytes != RESULT_NULL, bytes);
	ops_json_member_if(json, "avg_bytes", bytes != RESULT_NULL, view_distributed_average(bytes, count));
	ops_json_member_us(json, "total_latency", latency_ns);
	ops_json_member(json, "avg_latency", view_distributed_average(latency_ns, count * 1000));
	ops_json_member_us(json, "data_transfer", transfer_ns);
	ops_json_member(json, "avg_data_transfer", view_distributed_average(transfer_ns, count * 1000));
	ops_json_close(json, '}');
	return true;
}

static bool write_operations(const struct run *run, struct ops_json_writer *json)
{
	ops_json_member_open(json, "ops", '{');
	for (size_t w = 0; w < run->count; w++) {
		struct view_worker *worker = run->workers[w];
		size_t count = worker->views.collectives.count;

		qsort_r(worker->order, count, sizeof(*worker->order), view_distributed_compare_names, worker);
		write_worker_key(run, w, json);
		ops_json_open(json, '[');
		for (size_t i = 0, next; i < count; i = next) {
			next = i + 1;
			while (next < count && worker->names[worker->order[next]] == worker->names[worker->order[i]])
				next++;
			if (!view_distributed_write_operation(worker, json, worker->order + i, next - i))
				return false;
		}
		ops_json_close(json, ']');
	}
	ops_json_close(json, '}');
	return true;
}

/* --- analysis ------------------------------------------------------------------------------------------------------- */

static bool view_distributed_write_run(const struct run *run, struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	ops_json_member_open(json, "workers", '[');
	for (size_t w = 0; w < run->count; w++) {
		struct ops_string name = view_names_at(&run->names, w);

		ops_json_text(json, name.bytes, name.size);
	}
	ops_json_close(json, ']');
	ops_json_member_if(json, "span", run->workers[0]->span, run->workers[0]->span);
	ops_json_member_bool(json, "shown", run->shown);
	if (!view_distributed_write_devices(run, json))
		return false;
	write_by_step(run, json, "overlap", write_mean_overlap, write_step_overlap);
	write_by_step(run, json, "wait", write_mean_wait, write_step_wait);
	write_by_step(run, json, "late", NULL, write_step_late);
	write_late_ranks(run, json);
	if (!write_operations(run, json))
		return false;
	ops_json_close(json, '}');
	return true;
}

/* Measures the waits of workers that all communicate. The caller must release the run in any case. */
static bool measure_run(struct run *run)
{
	bool done = find_transfers(run);

	for (size_t w = 0; done && w < run->count; w++)
		find_late_ranges(run, run->workers[w]);
	for (size_t w = 0; done && w < run->count; w++)
		done = measure_waits(run->workers[w]) &&
		       view_names_add(&run->names, (struct ops_string){run->workers[w]->name, strlen(run->workers[w]->name)});
	return done;
}

static bool view_distributed_communicates(struct view_worker *const *workers, size_t count)
{
	bool communicates = count > 0;

	for (size_t w = 0; w < count; w++)
		communicates &= workers[w]->views.collectives.count > 0;
	return communicates;
}

bool view_workers_measure(struct view_worker *const *workers, size_t count, bool *ret_communicate)
{
	struct run run = {.workers = workers, .count = count};
	bool done;

	*ret_communicate = view_distributed_communicates(workers, count);
	done = !*ret_communicate || measure_run(&run);
	release_run(&run);
	return done;
}

bool view_write_distributed(struct view_worker *const *workers, size_t count, struct ops_json_writer *json)
{
	struct run run = {.workers = workers, .count = count, .shown = true};
	bool done;

	if (!view_distributed_communicates(workers, count)) {
		ops_json_null(json);
		return true;
	}
	for (size_t w = 0; w < count; w++)
		run.shown &= workers[w]->views.collectives.count == workers[0]->views.collectives.count;
	done = measure_run(&run) && view_distributed_write_run(&run, json);
	release_run(&run);
	return done;
}

/* --- workers -------------------------------------------------------------------------------------------------------- */

static bool view_distributed_keep_text(struct view_worker *worker, struct ops_string *text)
{
	uint32_t id = ops_intern_add(&worker->texts, text->bytes, text->size);

	if (id == OPS_INTERN_NONE)
		return false;
	*text = ops_intern_text(&worker->texts, id);
	return true;
}

/* Copies all texts that belong to the trace. */
static bool keep_texts(struct view_worker *worker)
{
	struct ops_views *views = &worker->views;
	bool done = view_names_add(&worker->steps, (struct ops_string){"all", 3});

	for (size_t i = 0; done && i < views->steps.count; i++)
		if ((done = view_names_add(&worker->steps, views->steps.items[i].name)))
			views->steps.items[i].name = view_names_at(&worker->steps, i + 1);
	for (size_t i = 0; done && i < views->devices.count; i++)
		done = view_distributed_keep_text(worker, &views->devices.items[i].name_json);
	for (uint32_t i = 0; done && i < views->collectives.count; i++) {
		struct ops_string name = view_row_name(views, views->collectives.items[i].row);

		worker->names[i] = ops_intern_add(&worker->texts, name.bytes, name.size);
		done = worker->names[i] != OPS_INTERN_NONE;
	}
	return done;
}

bool view_worker_init(struct view_worker *worker, const struct ops_rank *about, struct ops_views *views)
{
	size_t steps = views->steps.count + 1, collectives = views->collectives.count + 1;
	bool done;

	*worker = (struct view_worker){.name = about->name, .span = about->span, .origin_ns = ops_trace_origin(views->trace), .views = *views};
	*views = (struct ops_views){0};
	worker->overlaps = ops_alloc_zeroed(steps, sizeof(*worker->overlaps));
	worker->waits = ops_alloc_zeroed(steps, sizeof(*worker->waits));
	worker->lates = ops_alloc_zeroed(steps, sizeof(*worker->lates));
	worker->order = ops_realloc_array(NULL, collectives, sizeof(*worker->order));
	worker->names = ops_realloc_array(NULL, collectives, sizeof(*worker->names));
	worker->keys = ops_realloc_array(NULL, collectives, sizeof(*worker->keys));
	worker->operations = ops_realloc_array(NULL, collectives, sizeof(*worker->operations));
	done = worker->overlaps && worker->waits && worker->lates && worker->order && worker->names && worker->keys && worker->operations &&
	       measure_overlaps(worker) && keep_texts(worker) &&
	       view_collectives_find_kinds(&worker->views, &worker->texts, worker->keys);
	/* Rows are only links from now on, into the complete trace. */
	for (size_t i = 0; i < worker->views.collectives.count; i++)
		worker->views.collectives.items[i].row = ops_trace_whole_row(worker->views.trace, worker->views.collectives.items[i].row);
	ops_views_forget_trace(&worker->views);
	return done;
}

void view_worker_release(struct view_worker *worker)
{
	ops_views_release(&worker->views);
	ops_intern_release(&worker->texts);
	view_names_release(&worker->steps);
	ops_intervals_release(&worker->transfers);
	ops_free(worker->overlaps);
	ops_free(worker->waits);
	ops_free(worker->lates);
	ops_free(worker->order);
	ops_free(worker->names);
	ops_free(worker->keys);
	ops_free(worker->operations);
}
