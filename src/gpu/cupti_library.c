/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and loads libcupti; see cupti_library.h.
 */
#include "gpu/cupti_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "gpu/cuda_devices.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held until the library is loaded */
static bool is_loaded;
static struct ops_cupti library;
static struct ops_error failure;
static char path[PATH_MAX];

/* --- location ------------------------------------------------------------------------------------------------------ */

/* torch loads the library by an absolute path, so the loader does not find it by name. */
static int find_loaded(struct dl_phdr_info *info, size_t size, void *ret_found)
{
	const char *name = strrchr(info->dlpi_name, '/');

	(void)size;
	if (!name || strncmp(name, "/libcupti.so", 12) != 0 || strlen(info->dlpi_name) >= sizeof(path))
		return 0;
	strcpy(path, info->dlpi_name);
	*(bool *)ret_found = true;
	return 1;
}

static void *open_at(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (handle && name != path)
		snprintf(path, sizeof(path), "%s", name);
	return handle;
}

static void *open_under(const char *root, const char *below)
{
	char name[PATH_MAX];

	if (!root || snprintf(name, sizeof(name), "%s/%s", root, below) >= (int)sizeof(name))
		return NULL;
	return open_at(name);
}

/* Opens the library of the PyPI package, which is installed next to this one. */
static void *open_package(void)
{
	static const char *const below[] = {"../nvidia/cu13/lib/libcupti.so.13", "../nvidia/cuda_cupti/lib/libcupti.so.12",
	                                    "../nvidia/cuda_cupti/lib/libcupti.so.11.8"};
	char folder[PATH_MAX];
	void *handle = NULL;
	Dl_info ours;

	if (!dladdr(&library, &ours) || strlen(ours.dli_fname) >= sizeof(folder) || !strchr(ours.dli_fname, '/'))
		return NULL;
	strcpy(folder, ours.dli_fname);
	*strrchr(folder, '/') = '\0';
	for (size_t i = 0; !handle && i < sizeof(below) / sizeof(below[0]); i++)
		handle = open_under(folder, below[i]);
	return handle;
}

static void *open_library(void)
{
	static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};
	const char *named = getenv("OPSTROBE_CUPTI");
	void *handle = NULL;
	bool loaded = false;

	if (named)
		return open_at(named);
	dl_iterate_phdr(find_loaded, &loaded);
	if (loaded)
		return open_at(path);
	handle = open_package(); /* prefers torch's library, even before torch is imported, to that of the system */
	for (size_t i = 0; !handle && i < sizeof(names) / sizeof(names[0]); i++)
		handle = open_at(names[i]);
	if (!handle)
		handle = open_under(getenv("CUDA_HOME"), "extras/CUPTI/lib64/libcupti.so");
	return handle ? handle : open_under("/usr/local/cuda", "extras/CUPTI/lib64/libcupti.so");
}

/* --- contents ------------------------------------------------------------------------------------------------------- */

/* Returns the name of a missing function; NULL if there is none. */
static const char *cupti_library_find_functions(void *handle)
{
#define FIND(name) library.name = (__typeof__(&name))(uintptr_t)dlsym(handle, #name);
#define NEED(name)                                                                                 \
	FIND(name)                                                                                 \
	if (!library.name)                                                                         \
		return #name;
	OPS_CUPTI_FUNCTIONS(NEED, FIND)
#undef NEED
#undef FIND
	return NULL;
}

static void cupti_library_load(void)
{
	void *handle = open_library();
	const char *missing;

	if (!handle) {
		ops_fault(&failure, OPS_UNSUPPORTED,
		          "no libcupti was found: neither with torch, nor by the loader, nor under CUDA_HOME; "
		          "OPSTROBE_CUPTI may name one");
		return;
	}
	missing = cupti_library_find_functions(handle);
	if (missing)
		ops_fault(&failure, OPS_UNSUPPORTED, "'%s' has no %s", path, missing);
	else if (library.cuptiGetVersion(&library.version) != CUPTI_SUCCESS)
		ops_fault(&failure, OPS_UNSUPPORTED, "'%s' does not report its version", path);
	else if (library.version < OPS_CUPTI_VERSION_MIN)
		ops_fault(&failure, OPS_UNSUPPORTED, "'%s' is older than CUPTI 11.8", path);
	library.path = path;
	if (failure.code)
		dlclose(handle);
}

enum ops_code ops_cupti_load(const struct ops_cupti **ret_library, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	pthread_mutex_lock(&lock);
	if (!is_loaded) {
		failure.code = OPS_OK;
		cupti_library_load();
		is_loaded = failure.code == OPS_OK;
	}
	if (is_loaded)
		*ret_library = &library;
	else
		code = ops_fault(error, failure.code, "%s", failure.text);
	pthread_mutex_unlock(&lock);
	return code;
}

/* --- callbacks ------------------------------------------------------------------------------------------------------ */

void ops_cupti_enable_callbacks(const struct ops_cupti *from, CUpti_SubscriberHandle subscriber,
                                const struct ops_cupti_callback *callbacks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		from->cuptiEnableCallback(1, subscriber, callbacks[i].domain, callbacks[i].id);
}

bool ops_cupti_is_among(const struct ops_cupti_callback *callbacks, size_t count, CUpti_CallbackDomain domain,
                        CUpti_CallbackId id)
{
	for (size_t i = 0; i < count; i++)
		if (callbacks[i].domain == domain && callbacks[i].id == id)
			return true;
	return false;
}

/* --- errors --------------------------------------------------------------------------------------------------------- */

/* Returns the CUDA version of a CUPTI in the driver's form: 13050 is 13.5. Before 13 only the major version is known. */
static uint32_t cuda_of(uint32_t version)
{
	if (version >= 130000)
		return version / 10000 * 1000 + version / 100 % 100 * 10;
	return version > OPS_CUPTI_VERSION_MIN ? 12000 : 11080;
}

enum ops_code ops_cupti_fault(const struct ops_cupti *from, struct ops_error *error, CUptiResult result,
                              const char *what)
{
	const char *text = NULL;

	if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
		return ops_fault(error, OPS_STATE, "%s: another profiler of CUDA is active in this process", what);
	if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES || result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
		return ops_fault(error, OPS_STATE,
		                 "%s: the driver lets only administrators profile (ERR_NVGPUCTRPERM)", what);
	if (ops_cuda_driver_version() && ops_cuda_driver_version() < cuda_of(from->version))
		return ops_fault(error, OPS_STATE, "%s: the driver is made for CUDA %u.%u, and '%s' for CUDA %u.%u (%d)", what,
		                 ops_cuda_driver_version() / 1000, ops_cuda_driver_version() % 1000 / 10, from->path,
		                 cuda_of(from->version) / 1000, cuda_of(from->version) % 1000 / 10, (int)result);
	if (from->cuptiGetResultString(result, &text) != CUPTI_SUCCESS || !text)
		text = "unknown error";
	return ops_fault(error, OPS_STATE, "%s: %s (%d)", what, text, (int)result);
}
