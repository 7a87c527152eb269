/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with CUPTI's entry points and without a GPU, so that loading, buffers, threads and errors are real. The activity of
 * the GPU comes from a test that launches (fake_cupti_launch), or from a file of records that is delivered when the collector
 * flushes (FAKE_CUPTI_RECORDS in the environment; ../replay/records.h describes it). Times are shifted so that the file's start
 * is the start of the collection. Records are the structures of CUPTI's own headers. FAKE_CUPTI_VERSION in the environment is the
 * version that it reports.
 */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H

#include <stdbool.h>
#include <stdint.h>

/* Makes an entry point fail from now on with a CUptiResult; 0 lets it work again. */
void fake_cupti_fail(const char *function, int result);

/* The calling thread launches a kernel with the runtime: a record of the call, and one of the kernel, which runs `delay_ns` after
 * it for `run_ns`. The correlation of both. */
uint32_t fake_cupti_launch(const char *mangled_name, uint32_t blocks, uint32_t threads, uint64_t delay_ns,
                           uint64_t run_ns);
/* The same of a copy from pageable memory to the device. */
uint32_t fake_cupti_copy(uint64_t bytes, uint64_t delay_ns, uint64_t run_ns);
/* The calling thread launches a kernel on a device that runs until the device is waited for (fake_cupti_synchronize, which is what
 * the fake driver does then). A forced flush delivers it without an end. */
void fake_cupti_launch_long(const char *mangled_name, uint32_t on_device);
void fake_cupti_synchronize(uint32_t device);
/* The calling thread launches a graph that was instantiated: a record of the call, and one of a kernel for each of these nodes.
 * The correlation of all. */
uint32_t fake_cupti_launch_graph(const uint64_t *nodes, uint32_t count);
/* The calling thread captures a node of a CUDA graph; or, with an original, instantiates a copy of that one. */
void fake_cupti_capture(uint64_t node, uint64_t original);
/* The calling thread has instantiated a graph of the driver's, with that result (CUresult), once it has made the copies. */
void fake_cupti_instantiate(uint64_t graph, int result);
/* The calling thread ends the context, and loses records that CUPTI has not delivered. */
void fake_cupti_end_context(void);
/* Returns whether a kind of activity (CUpti_ActivityKind) is being recorded. */
bool fake_cupti_is_enabled(int kind);
/* Returns whether a call of the runtime or driver is not recorded although its kind is. */
bool fake_cupti_is_quiet(bool runtime, uint32_t callback);
/* Returns whether a signal can reach the thread that last read records. */
bool fake_cupti_reader_takes(int signal);
/* As if the GPU had recorded this; copied. */
void fake_cupti_emit(const void *record, uint32_t size);

/* How counters of the hardware are being sampled. */
struct fake_sampling {
	uint64_t started_ns; /* on the clock of records; 0: they are not, or it is paused */
	uint64_t interval;   /* of the latest configuration, as the next two */
	bool by_time;
	bool keeps_latest;
	uint32_t waiting; /* samples that were not decoded yet */
};
struct fake_sampling fake_cupti_sampling(void);
/* As if the GPU had sampled so often, one right behind the other; 0: without times. Nothing while sampling is paused. Metric m of
 * sample n, both counted from 0, is 100 m + n. */
void fake_cupti_sample(uint64_t start_ns, uint64_t length_ns, uint32_t count);
/* As if there had been no room for samples. */
void fake_cupti_overflow(void);
/* From now on, decodes only half of the pending data. */
void fake_cupti_stop_early(void);

#endif
