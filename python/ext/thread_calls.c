/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread waits for: see thread_calls.h.
 */
#include "thread_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* Addresses of the interpreter's state. */
static uintptr_t runtime_start, runtime_end;

void ops_thread_calls_init(void)
{
	void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (runtime && dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol) {
		runtime_start = (uintptr_t)runtime;
		runtime_end = runtime_start + symbol->st_size;
	}
}

enum ops_thread_state ops_thread_call_state(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	uintptr_t address = (uintptr_t)strtoull(end, NULL, 16);

	if (strncmp(text, "running", strlen("running")) == 0)
		return OPS_THREAD_RUNNING;
	switch (number) {
	case SYS_futex:
		return address >= runtime_start && address < runtime_end ? OPS_THREAD_GIL : OPS_THREAD_LOCK;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return OPS_THREAD_SLEEPING;
	case SYS_wait4:
	case SYS_waitid:
		return OPS_THREAD_PROCESS;
	default:
		return OPS_THREAD_IO; /* a page that has to be read is, too */
	}
}
