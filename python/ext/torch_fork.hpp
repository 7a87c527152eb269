/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks and torch's lock. Torch keeps its callbacks under a lock of its own, which threads take when they add or remove one, and
 * when they see that another did. A child that is forked while another thread holds it can never take it: it would hang at its
 * first profile. Part of torch_bridge.cpp.
 */
#ifndef OPS_TORCH_FORK_HPP
#define OPS_TORCH_FORK_HPP

#include <ATen/record_function.h>

#include <pthread.h>
#include <time.h>

#include <cstdlib>
#include <mutex>

namespace {
namespace forking {

/* Held while the bridge changes torch's callbacks, and by who forks: then no child finds torch's lock held by us. */
std::mutex changing;
bool is_known = false; /* that torch's lock is not held by a thread that is not there; a process does not know that it is a child */

/* Shared by two threads, of which one may never come back; the later one frees it. */
struct question {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
	bool answered = false;
	bool abandoned = false;
};

/* A thread's first look at its callbacks takes torch's lock. */
void *take_lock(void *argument)
{
	auto *const asked = static_cast<question *>(argument);

	(void)at::get_record_function_tls_();
	pthread_mutex_lock(&asked->lock);
	asked->answered = true;
	const bool abandoned = asked->abandoned;
	pthread_cond_signal(&asked->changed);
	pthread_mutex_unlock(&asked->lock);
	if (abandoned)
		delete asked;
	return nullptr;
}

/* Whether torch's lock can be taken in this process. Waits for two seconds if it cannot. */
bool can_change()
{
	timespec until;
	pthread_t thread;

	if (is_known)
		return true;
	auto *const asked = new question;
	if (pthread_create(&thread, nullptr, take_lock, asked) != 0) {
		delete asked;
		return true; /* nothing is known, as before */
	}
	pthread_detach(thread);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	pthread_mutex_lock(&asked->lock);
	while (!asked->answered && pthread_cond_timedwait(&asked->changed, &asked->lock, &until) == 0)
		;
	const bool answered = asked->answered;
	asked->abandoned = !answered;
	pthread_mutex_unlock(&asked->lock);
	if (answered)
		delete asked;
	is_known = answered;
	return answered;
}

void before()
{
	changing.lock();
}

void in_parent()
{
	changing.unlock();
}

void in_child()
{
	changing.unlock();
	is_known = false;
}

} // namespace forking
} // namespace

#endif
