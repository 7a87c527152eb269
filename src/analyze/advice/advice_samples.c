/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the program that run outside of operators, by sampled stacks, for traces in which calls were not recorded.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Finds the line of each sample, by its innermost frame of the program. */
static bool find_sample_sites(struct advice *advice)
{
	const struct ops_python_samples *samples = &advice->samples;
	uint32_t *frames = ops_sampled_program_frames(samples);
	bool done = frames != NULL;

	for (size_t i = 0; done && i < samples->samples.count; i++) {
		uint32_t stack = frames[samples->samples.items[i].stack];
		const struct ops_sampled_stack *frame;
		struct ops_function_text function;

		if (stack == OPS_NONE)
			continue;
		frame = &samples->stacks.items[stack];
		function = (struct ops_function_text){.file = samples->functions.items[frame->function].file, .line = frame->line};
		done = advice_add_function_site(advice, &function, (struct advice_site){OPS_NONE, frame->line, stack}, &advice->sample_site[i]);
	}
	ops_free(frames);
	return done;
}

bool advice_find_samples(struct advice *advice)
{
	if (advice->has & ADVICE_NEEDS_PYTHON)
		return true;
	if (!ops_python_samples_read(&advice->samples, advice->trace))
		return false;
	advice->sample_row = ops_python_sample_rows(&advice->samples, advice->trace);
	advice->sample_site = ops_alloc_none(advice->samples.samples.count + 1);
	return advice->sample_row && advice->sample_site && find_sample_sites(advice);
}
