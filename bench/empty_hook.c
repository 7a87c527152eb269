/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python profile function that does nothing: the least that a profiler of Python calls can cost this way. No header of
 * Python is needed: all arguments are ignored.
 */
int empty_hook(void *object, void *frame, int what, void *argument)
{
	(void)object, (void)frame, (void)what, (void)argument;
	return 0;
}
