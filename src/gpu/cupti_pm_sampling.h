/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters of the hardware, sampled at an interval beside the records of activities: CUPTI's PM sampling, from 12.6 on.
 *
 *     GPU ─▶ its buffer ── decode thread, some ten times a second ─▶ image ─▶ samples ── at the end ─▶ activities
 *
 * Clock. CUPTI's guide calls the times of samples times of the CPU ("CUPTI PM Sampling API", evaluation), and NVIDIA told Kineto's
 * authors (pytorch/kineto#1526) that they are converted as those of kernels are, with the registered callback for time stamps.
 * So they are on the clock of all other records, and need no pairs of readings of their own. Each is checked against that: one
 * that does not lie between the start and now is dropped and counted.
 *
 * What CUPTI does was learnt from its headers, from the host side of a real libcupti 12.6, which needs no GPU (an unknown metric is
 * CUPTI_ERROR_INVALID_PARAMETER, and so is a structure that is longer than it knows), and from what others measured:
 * - the image must hold all of a pass, for behind a full one come samples without times;
 * - the configuration is read through the pointer that was given, so it stays until the end;
 * - after a stop come samples of no length, which are none;
 * - cuptiProfilerDeInitialize does not count who else is there, so it is left alone;
 * - the GPU's clocks are locked while sampling goes on.
 * Whether its functions may be called by several threads at once is not said: here one lock is around them.
 */
#ifndef OPS_GPU_CUPTI_PM_SAMPLING_H
#define OPS_GPU_CUPTI_PM_SAMPLING_H

#include "base/occupancy.h"
#include "gpu/cupti_library.h"
#include "record/activities.h"

struct ops_cupti_sampler;

/* Gets everything ready; nothing is sampled yet. OPS_INVALID when the metrics are wrong: unknown, or too many for one pass. Else
 * why they cannot be sampled here. `wanted` is read in this call alone. */
enum ops_code ops_cupti_sampler_open(const struct ops_cupti *library, const struct ops_cuda_sampling *wanted,
                                     const struct ops_multiprocessor *device, struct ops_cupti_sampler **ret_sampler,
                                     struct ops_error *error);
/* Samples (true) or pauses (false), then with what was sampled decoded. `clock_ns` reads the clock of CUPTI's records. */
enum ops_code ops_cupti_sampler_run(struct ops_cupti_sampler *sampler, bool on,
                                    int64_t (*clock_ns)(const struct ops_cupti *library), struct ops_error *error);
/* Adds what was sampled, once it is paused for good. A failure tells why samples are missing; what there is was added. */
enum ops_code ops_cupti_sampler_take(struct ops_cupti_sampler *sampler, struct ops_activities *activities,
                                     struct ops_error *error);
void ops_cupti_sampler_free(struct ops_cupti_sampler *sampler); /* NULL is allowed */

#endif
