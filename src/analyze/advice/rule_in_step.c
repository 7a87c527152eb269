/* SPDX-License-Identifier: Apache-2.0
 *
 * Work within steps that the model does not need: checkpoints, waiting. Each is known by the function it ends in.
 */
#include "analyze/advice/advice.h"

static bool report(struct advice *advice, const struct advice_rule *rule, const char *const *patterns, const char *what)
{
	struct advice_tally tally;
	bool done = advice_tally_init(&tally, advice) && advice_tally_names(&tally, advice, patterns, ADVICE_IN_LOADER | ADVICE_ASIDE) &&
	            advice_report_add(advice, rule, &tally,
	                              (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_SURE},
	                              "%s takes %.3f ms a step (%.1f %%) in %s calls. Gain: all of their time.", what,
	                              advice_step_ms(advice, (double)tally.ns), advice_percent(advice, (double)tally.ns),
	                              advice_average(advice, tally.events).text);

	advice_tally_release(&tally);
	return done;
}

static bool check_checkpoint(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"*torch/serialization.py(*", "*: Module.state_dict", "*: Optimizer.state_dict",
	                                       "<built-in function dump>", "<built-in function dumps>", "*: savez",
	                                       "*safetensors/*", "<built-in method dump of *",
	                                       "*: Tensor.__deepcopy__", "*: Parameter.__deepcopy__", NULL};

	return report(advice, rule, patterns, "saving state");
}

static bool check_waiting(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"<built-in function sleep>", "<built-in method recv of *",
	                                       "<built-in method recv_into of *", "<built-in method read of *",
	                                       "*subprocess.py(*", "<built-in function waitpid>",
	                                       "<built-in method poll of select.*", NULL};

	return report(advice, rule, patterns, "waiting");
}

const struct advice_rule advice_rule_checkpoint = {
	.id = "checkpoint-in-step",
	.title = "State is saved within steps",
	.explanation = "Saving copies every parameter, pickles it and waits for the disk, and meanwhile nothing is trained.",
	.advice = "Save every so many steps or once an epoch, or in the background: copy the state, then write it in another "
		  "thread (torch.distributed.checkpoint.async_save). Check: torch.save is in few steps.",
	.link = "https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.bound = ADVICE_AT_LEAST,
	.check = check_checkpoint,
};

const struct advice_rule advice_rule_waiting = {
	.id = "waiting-in-step",
	.title = "The program sleeps or waits within steps",
	.explanation = "The thread does nothing until a time has passed or another program answers.",
	.advice = "Wait for an event instead of sleeping, and fetch what comes from elsewhere ahead of time, in a worker or a "
		  "thread. Check: the call is gone from the steps.",
	.link = "https://docs.pytorch.org/docs/stable/data.html",
	.needs = ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.check = check_waiting,
};
