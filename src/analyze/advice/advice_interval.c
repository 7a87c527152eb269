/* SPDX-License-Identifier: Apache-2.0
 *
 * The interval of a predicted gain, in which the measured gain of the fix lies nine times in ten.
 */
#include <math.h>

#include "analyze/advice/advice.h"

/* A prediction is wrong about the time that the fix saves, about the time that remains, or both. So its error is a factor of their ratio,
 * which keeps the interval between nothing and a complete step, and small next to both. The factors are those that nine in ten of the
 * programs with a measured gain stay within (docs/diagnosis.md). What an estimate leaves out is mostly memory
 * that need not be allocated and caches that stay warm, so more fixes save more than predicted than less. A bound ends the interval on its side. */
static const struct {
	double below, above;
} errors[] = {
	[ADVICE_ABOUT] = {3, 6},
	[ADVICE_AT_LEAST] = {1, 6},
	[ADVICE_AT_MOST] = {8, 1},
};
/* Nine in ten values of a normal distribution are within this multiple of its standard deviation. */
#define NINE_IN_TEN 1.645
/* The part of a step that no fix removes, so that a gain of all of it has a ratio. */
#define REMAINS_MIN 0.005

/* Returns the percentage whose ratio of saved to remaining time is `factor` times that of a gain. */
static double gain_at_odds(double gain_pct, double factor)
{
	double remains_pct = 100 - gain_pct > 100 * REMAINS_MIN ? 100 - gain_pct : 100 * REMAINS_MIN;

	return 100 * factor * gain_pct / (factor * gain_pct + remains_pct);
}

void advice_set_interval(struct advice_finding *finding)
{
	double below = log(errors[finding->bound].below), above = log(errors[finding->bound].above);
	double noise = NINE_IN_TEN * finding->noise;

	finding->lower_pct = below > 0 ? gain_at_odds(finding->gain_pct, exp(-hypot(below, noise))) : finding->gain_pct;
	finding->upper_pct = above > 0 ? gain_at_odds(finding->gain_pct, exp(hypot(above, noise))) : finding->gain_pct;
	/* Rounding, and a gain of all of a step. */
	finding->lower_pct = fmin(finding->lower_pct, finding->gain_pct);
	finding->upper_pct = fmax(finding->upper_pct, finding->gain_pct);
}
