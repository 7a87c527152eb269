/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared code of the fuzz targets. With clang's -fsanitize=fuzzer each is a fuzzer, which tools/fuzz.sh builds and runs; without
 * it, as in the tests, a target reads the files on its command line.
 */
#ifndef OPS_TEST_FUZZING_H
#define OPS_TEST_FUZZING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <opstrobe/read.h>

static inline void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* SQLite opens a database by its name, so these bytes become a file in memory. */
static inline enum ops_code read_database(const uint8_t *bytes, size_t size, struct ops_trace **ret_trace, struct ops_error *error)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	enum ops_code code;
	char path[64];

	expect(fd >= 0 && write(fd, bytes, size) == (ssize_t)size, "cannot make a file in memory");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	code = ops_trace_read(path, NULL, ret_trace, error);
	close(fd);
	return code;
}

/* Returns NULL if the bytes are not a trace. */
static inline struct ops_trace *read_bytes(const uint8_t *bytes, size_t size)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;
	enum ops_code code;

	if (size > 15 && memcmp(bytes, "SQLite format 3", 15) == 0)
		code = read_database(bytes, size, &trace, &error);
	else
		code = ops_trace_read_memory((const char *)bytes, size, NULL, &trace, &error);
	if (code)
		expect(error.code == OPS_CORRUPT || error.code == OPS_UNSUPPORTED, error.text);
	return trace;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#ifndef OPS_FUZZER
int main(int count, char **paths)
{
	for (int i = 1; i < count; i++) {
		FILE *file = fopen(paths[i], "rb");
		uint8_t *bytes;
		size_t size;

		expect(file && fseek(file, 0, SEEK_END) == 0, paths[i]);
		size = (size_t)ftell(file);
		rewind(file);
		bytes = malloc(size + 1);
		expect(bytes && fread(bytes, 1, size, file) == size, paths[i]);
		fclose(file);
		LLVMFuzzerTestOneInput(bytes, size);
		free(bytes);
	}
	printf("%d files\n", count - 1);
	return count > 1 ? 0 : 1;
}
#endif

#endif
