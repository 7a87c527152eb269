/* SPDX-License-Identifier: Apache-2.0
 *
 * What CUPTI's records cost once they are there: decoding them, and making a trace of them, each kernel under the operator that
 * launched it. The records are those of launches by the runtime in the structures of CUPTI's headers, in buffers of its size.
 * Times are those of one thread, the least of three rounds.
 *
 *     device_records [KERNELS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "base/alloc.h"
#include "gpu/cupti_buffers.h"
#include "gpu/cupti_records.h"
#include "gpu/intake.h"
#include "record/recording.h"

#define ROUNDS 3
#define KERNELS 1000000
#define NAMES 200    /* different kernels */
#define SHAPES 300    /* different launches of them, on each of four streams */
#define RECORDS_MIN 5e6 /* a second: the budget */
#define BYTES_MAX 64   /* of a record, and its share of the texts: the budget */

struct launch {
	CUpti_ActivityAPI call;
	CUpti_ActivityKernel9 kernel;
};
#define LAUNCHES_A_BUFFER (OPS_CUPTI_BUFFER_BYTES / sizeof(struct launch))

static char names[NAMES][160];
static struct launch *buffer;
static struct ops_cupti_decoder decoder;
static struct ops_activities *activities;
static int64_t begin_ns; /* of the next launch */

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static CUptiResult CUPTIAPI name_call(CUpti_CallbackDomain domain, uint32_t callback, const char **name)
{
	(void)domain;
	(void)callback;
	*name = "cudaLaunchKernel_v7000";
	return CUPTI_SUCCESS;
}

/* --- a collector that is given its records -------------------------------------------------------------------------- */

static enum ops_code start(void *self, uint32_t kinds, struct ops_activities *into, struct ops_error *error)
{
	static const struct ops_cupti library = {.cuptiGetCallbackName = name_call, .version = CUPTI_API_VERSION};
	static const struct ops_multiprocessor device = {9, 0, 132, 32, 2048, 65536, 233472, 1024, 32};

	(void)self;
	(void)error;
	activities = into;
	ops_cupti_decoder_init(&decoder, &library, into, kinds);
	*OPS_ARRAY_PUSH(&decoder.devices) = device;
	return OPS_OK;
}

static enum ops_code stop(void *self, struct ops_activities *into, struct ops_error *error)
{
	(void)self;
	(void)into;
	(void)error;
	ops_cupti_decode_end(&decoder);
	ops_cupti_decoder_release(&decoder);
	return OPS_OK;
}

static int64_t clock_ns(void *self)
{
	struct timespec time;

	(void)self;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* --- the program that is recorded ----------------------------------------------------------------------------------- */

/* An operator, which launches a kernel that runs a little later. */
static void launch(const struct ops_collector *collector, struct ops_thread *thread, uint32_t name, struct launch *records, uint32_t i)
{
	struct ops_slot *slot = ops_reserve(collector, thread, ops_collector_epoch(collector), 0);
	uint32_t correlation = i + 1;

	*slot = (struct ops_slot){.sequence_nr = -1, .kind = OPS_SLOT_OP, .name = name};
	slot->start_ticks = ops_ticks(collector->tsc);
	begin_ns = clock_ns(NULL);
	*records = (struct launch){
		.call = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
	                 .cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
	                 .start = (uint64_t)begin_ns,
	                 .end = (uint64_t)begin_ns + 10,
	                 .threadId = (uint32_t)syscall(SYS_gettid),
	                 .correlationId = correlation},
		.kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	                   .start = (uint64_t)begin_ns + 5000,
	                   .end = (uint64_t)begin_ns + 5300,
	                   .registersPerThread = 40,
	                   .contextId = 1,
	                   .streamId = 7 + i % 4,
	                   .gridX = (int32_t)(1 + i * 7919u % SHAPES),
	                   .gridY = 1,
	                   .gridZ = 1,
	                   .blockX = 256,
	                   .blockY = 1,
	                   .blockZ = 1,
	                   .correlationId = correlation,
	                   .name = names[i * 31 % NAMES]},
	};
	ops_publish(thread);
	ops_slot_close(slot, ops_ticks(collector->tsc), 0);
}

struct costs {
	double decode;
	double link;
	double bytes; /* of memory that decoding took */
};

static void decode(size_t launches)
{
	for (size_t i = 0; i < launches; i++) {
		ops_cupti_decode(&decoder, (const CUpti_Activity *)&buffer[i].call, sizeof(buffer[i].call));
		ops_cupti_decode(&decoder, (const CUpti_Activity *)&buffer[i].kernel, sizeof(buffer[i].kernel));
	}
}

/* Bytes of memory that the process has. */
static double resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* With devices or without: the difference is what they cost. */
static struct costs run(uint32_t kernels, bool with_devices)
{
	static const struct ops_device_collector device = {.name = "a bench", .start = start, .stop = stop, .clock_ns = clock_ns};
	const struct ops_collector *collector = ops_collector_get();
	struct ops_recording *recording;
	struct ops_device_session *devices;
	struct ops_session *session;
	struct ops_trace *trace;
	struct ops_error error;
	struct costs costs = {0};
	uint32_t done = 0, name;
	double from;

	if (ops_session_start(NULL, &session, &error) ||
	    ops_device_start(&device, with_devices ? OPS_ACTIVITY_ALL : 0, &devices, &error))
		exit(1);
	name = collector->intern(collector->thread(), "aten::add", 9, NULL, 0);
	while (done < kernels) {
		size_t launches = 0;
		double before;

		while (launches < LAUNCHES_A_BUFFER && done < kernels)
			launch(collector, collector->thread(), name, &buffer[launches++], done++);
		before = resident();
		from = seconds();
		decode(launches);
		costs.decode += seconds() - from;
		costs.bytes += resident() - before;
	}
	if (ops_session_stop(session, &recording, &error) || ops_device_stop(devices, recording, &error))
		exit(1);
	from = seconds();
	if (ops_trace_from_recording(recording, &trace, &error))
		exit(1);
	costs.link = seconds() - from;
	ops_trace_unref(trace);
	return costs;
}

int main(int count, char **arguments)
{
	uint32_t kernels = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : KERNELS;
	struct costs best = {1e9, 1e9, 0};
	double records = 2.0 * kernels, alone = 1e9, rate;

	for (int i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof(names[i]),
		         "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15FillFunctorTypeIfE%03dENS_6detail5ArrayIPcLi1EEEEEviT0_T1_",
		         i);
	buffer = aligned_alloc(64, OPS_CUPTI_BUFFER_BYTES);
	for (int i = 0; i < ROUNDS; i++) {
		struct costs costs = run(kernels, true), host = run(kernels, false);

		best.decode = costs.decode < best.decode ? costs.decode : best.decode;
		best.link = costs.link < best.link ? costs.link : best.link;
		alone = host.link < alone ? host.link : alone;
		best.bytes = costs.bytes > best.bytes ? costs.bytes : best.bytes; /* later rounds use what earlier ones gave back */
	}
	best.link -= alone;
	rate = records / (best.decode + best.link);
	printf("\nCUPTI's records, from its buffers to the trace: %u launches, as many kernels, as many operators\n", kernels);
	printf("  decoding                     %8.1f ns a record\n", best.decode / records * 1e9);
	printf("  rows of the trace            %8.1f ns a record more than the operators alone\n", best.link / records * 1e9);
	printf("  both                         %8.2f million records a second  >= 5 million  %s\n", rate / 1e6,
	       rate >= RECORDS_MIN ? "ok" : "MISSED");
	printf("  kept                         %8.1f bytes a record  <= %d  %s\n", best.bytes / records, BYTES_MAX,
	       best.bytes / records <= BYTES_MAX ? "ok" : "MISSED");
	free(buffer);
	return 0;
}
