/* SPDX-License-Identifier: Apache-2.0
 *
 * A separate folder for each test, and inspection of its contents.
 */
#ifndef OPS_TEST_FOLDER_H
#define OPS_TEST_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"

/* Setup and teardown of a test: the test runs in the folder, whose path is its state. */
static inline int enter_folder(void **state)
{
	char *path = strdup("/tmp/opstrobe-write-XXXXXX");

	*state = mkdtemp(path);
	return *state && chdir(path) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state)
{
	char command[256];
	int result;

	snprintf(command, sizeof(command), "chmod -R u+rwx '%s' && rm -rf '%s'", (char *)*state, (char *)*state);
	result = chdir("/") == 0 ? system(command) : -1;
	free(*state);
	return result;
}

static inline size_t count_files(void)
{
	DIR *entries = opendir(".");
	size_t count = 0;

	while (readdir(entries))
		count++;
	closedir(entries);
	return count - 2;
}

static inline void put_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	fputs(text, file);
	fclose(file);
}

/* All of a file with a NUL behind, not by the library's allocation, which may be made to fail. */
static inline struct ops_buffer read_whole(const char *path)
{
	struct ops_buffer whole = {0};
	FILE *file = fopen(path, "r");
	struct stat status;

	if (!file || fstat(fileno(file), &status) != 0)
		return whole;
	whole.bytes = malloc((size_t)status.st_size + 1);
	whole.size = fread(whole.bytes, 1, (size_t)status.st_size, file);
	whole.bytes[whole.size] = '\0';
	fclose(file);
	return whole;
}

#endif
