/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware counters, sampled at an interval while activities are recorded: CUPTI's PM sampling, from 12.6 on.
 *
 *     GPU ─▶ its buffer ── decode thread, about ten times a second ─▶ image ─▶ samples ── at the end ─▶ activities
 *
 * Clock: CUPTI's guide says that the times of samples are CPU times ("CUPTI PM Sampling API", evaluation), and according to
 * NVIDIA (pytorch/kineto#1526) they are converted like those of kernels, with the registered callback for time stamps. So they
 * are on the clock of all other records and need no separate clock readings. As a check, a sample that is not between the start
 * and now is dropped and counted.
 *
 * The behaviour of CUPTI is taken from its headers, from the host side of a real libcupti 12.6, which needs no GPU (an unknown
 * metric is CUPTI_ERROR_INVALID_PARAMETER, and so is a structure that is longer than it knows), and from published measurements:
 * - the image must hold a complete pass, because samples after a full image have no times;
 * - the configuration is read through the given pointer, so it stays valid until the end;
 * - after a stop there are samples of zero length, which are ignored;
 * - cuptiProfilerDeInitialize does not count its users, so it is not called;
 * - the GPU's clocks are locked during sampling.
 * Thread safety of its functions is not documented, so one lock protects them.
 */
#ifndef OPS_GPU_CUPTI_PM_SAMPLING_H
#define OPS_GPU_CUPTI_PM_SAMPLING_H

#include "base/occupancy.h"
#include "gpu/cupti_library.h"
#include "record/activities.h"

struct ops_cupti_sampler;

/* Prepares sampling without starting it. OPS_INVALID if metrics are unknown or too many for one pass; else the reason that they
 * cannot be sampled. `wanted` is only read during this call. */
enum ops_code ops_cupti_sampler_open(const struct ops_cupti *library, const struct ops_cuda_sampling *wanted,
                                     const struct ops_multiprocessor *device, struct ops_cupti_sampler **ret_sampler,
                                     struct ops_error *error);
/* Starts (true) or pauses (false) sampling; a pause decodes the pending samples. `clock_ns` reads the clock of CUPTI's records. */
enum ops_code ops_cupti_sampler_run(struct ops_cupti_sampler *sampler, bool on,
                                    int64_t (*clock_ns)(const struct ops_cupti *library), struct ops_error *error);
/* Adds the samples to `activities`, after the final pause. An error gives the reason for missing samples; the others are added. */
enum ops_code ops_cupti_sampler_flush(struct ops_cupti_sampler *sampler, struct ops_activities *activities,
                                      struct ops_error *error);
void ops_cupti_sampler_free(struct ops_cupti_sampler *sampler); /* NULL is allowed */

#endif
