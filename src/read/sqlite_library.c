/* SPDX-License-Identifier: Apache-2.0
 *
 * See sqlite_library.h.
 */
#include "read/sqlite_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/fault.h"

static struct ops_sqlite sqlite;
static bool is_complete;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define FUNCTION(name) {"sqlite3_" #name, offsetof(struct ops_sqlite, name)}
	FUNCTION(open_v2), FUNCTION(close_v2), FUNCTION(errmsg), FUNCTION(prepare_v2), FUNCTION(step), FUNCTION(finalize),
	FUNCTION(column_type), FUNCTION(column_int64), FUNCTION(column_text), FUNCTION(column_bytes),
#undef FUNCTION
};

static void load_sqlite(void)
{
	void *handle = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

	is_complete = handle != NULL;
	for (size_t i = 0; is_complete && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(handle, functions[i].name);

		memcpy((char *)&sqlite + functions[i].offset, &function, sizeof(function));
		is_complete = function != NULL;
	}
}

enum ops_code ops_sqlite_load(const struct ops_sqlite **ret_sqlite, struct ops_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_sqlite);
	*ret_sqlite = &sqlite;
	if (is_complete)
		return OPS_OK;
	return ops_fault(error, OPS_UNSUPPORTED, "an SQLite database, which requires libsqlite3.so.0: install libsqlite3-0");
}
