/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of SQLite in use. Its library is loaded when a database is first opened, so that it is not required otherwise.
 */
#ifndef OPS_READ_SQLITE_LIBRARY_H
#define OPS_READ_SQLITE_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/error.h>

struct sqlite3;
struct sqlite3_stmt;

/* SQLite's functions, without the prefix sqlite3_, and its constants. */
struct ops_sqlite {
	int (*open_v2)(const char *path, struct sqlite3 **ret_database, int flags, const char *vfs);
	int (*close_v2)(struct sqlite3 *database);
	const char *(*errmsg)(struct sqlite3 *database);
	int (*prepare_v2)(struct sqlite3 *database, const char *sql, int size, struct sqlite3_stmt **ret_statement, const char **tail);
	int (*step)(struct sqlite3_stmt *statement);
	int (*finalize)(struct sqlite3_stmt *statement);
	int (*column_type)(struct sqlite3_stmt *statement, int column);
	int64_t (*column_int64)(struct sqlite3_stmt *statement, int column);
	const unsigned char *(*column_text)(struct sqlite3_stmt *statement, int column);
	int (*column_bytes)(struct sqlite3_stmt *statement, int column);
};
enum { OPS_SQLITE_ROW = 100, OPS_SQLITE_DONE = 101, OPS_SQLITE_NULL = 5, OPS_SQLITE_OPEN_READONLY = 1 };

/* OPS_UNSUPPORTED if libsqlite3 is not installed. */
enum ops_code ops_sqlite_load(const struct ops_sqlite **ret_sqlite, struct ops_error *error);

#endif
