/* SPDX-License-Identifier: Apache-2.0
 *
 * A C extension that hangs; planted.py calls it with the GIL.
 */
static volatile int goes_on = 1;

static __attribute__((noinline)) void spin_inner(void)
{
	while (goes_on)
		; /* plant: native */
}

void spin_forever(void);
void spin_forever(void)
{
	spin_inner();
	goes_on = 1; /* so that the call above is not the last instruction */
}
