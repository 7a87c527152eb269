/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks and torch's lock. Torch protects its callbacks with a lock, which threads take when they add or remove one, and when they
 * notice that another thread did. A child that is forked while another thread holds it can never take it, and would hang at its
 * first profile. Part of torch_bridge.cpp.
 */
#ifndef OPS_TORCH_FORK_HPP
#define OPS_TORCH_FORK_HPP

#include <ATen/record_function.h>

#include <pthread.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <mutex>

namespace {
namespace forking {

/* Held while the bridge changes torch's callbacks, and during a fork, so that no child finds torch's lock held by the bridge. */
std::mutex changing;
bool is_known = false; /* it is known that no thread of a parent process holds torch's lock */

/* Returns whether this process was forked and runs the program of its parent: Linux's flag PF_FORKNOEXEC. Returns true if that is
 * not known. */
bool may_be_child()
{
	std::FILE *const file = std::fopen("/proc/self/stat", "re");
	char text[1024] = "";
	unsigned flags;

	if (!file)
		return true;
	const size_t bytes = std::fread(text, 1, sizeof(text) - 1, file);
	std::fclose(file);
	text[bytes] = '\0';
	const char *const name_end = std::strrchr(text, ')'); /* of the program's name, which may contain anything */
	return !name_end || std::sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1 || (flags & 0x40);
}

/* Shared by two threads, one of which may never return; then the other one frees it. */
struct question {
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
	bool answered = false;
	bool abandoned = false;
};

/* A thread's first use of its callbacks takes torch's lock. */
void *try_lock(void *argument)
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

/* Returns whether torch's lock can be taken in this process. Waits for two seconds if it cannot. */
bool can_change()
{
	timespec until;
	pthread_t thread;

	is_known = is_known || !may_be_child();
	if (is_known)
		return true;
	auto *const asked = new question;
	if (pthread_create(&thread, nullptr, try_lock, asked) != 0) {
		delete asked;
		return true; /* unknown, as before */
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	pthread_mutex_lock(&asked->lock);
	while (!asked->answered && pthread_cond_timedwait(&asked->changed, &asked->lock, &until) == 0)
		;
	const bool answered = asked->answered;
	asked->abandoned = !answered;
	pthread_mutex_unlock(&asked->lock);
	if (answered) {
		pthread_join(thread, nullptr);
		delete asked;
	} else {
		pthread_detach(thread);
	}
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
