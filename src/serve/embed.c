/* SPDX-License-Identifier: Apache-2.0
 *
 * A program for the build: writes files, compressed, as a table in C for assets.c. Files are named without their folders and
 * sorted by name.
 *
 *     embed VERSION FILE... >viewer_files.c
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const struct {
	const char *suffix, *type;
} types[] = {
	{".html", "text/html; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"}, {".css", "text/css; charset=utf-8"},
	{".svg", "image/svg+xml"},             {".txt", "text/plain; charset=utf-8"},
};

struct file {
	const char *name;
	const char *type;
	unsigned char *bytes;
	size_t size;
};

static void embed_fail(const char *what, const char *name)
{
	fprintf(stderr, "embed: %s '%s'\n", what, name);
	exit(1);
}

static const char *type_of(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t size = strlen(name), suffix_size = strlen(types[i].suffix);

		if (size > suffix_size && !strcmp(name + size - suffix_size, types[i].suffix))
			return types[i].type;
	}
	embed_fail("what kind of file is", name);
	return NULL;
}

static struct file read_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct file file = {.name = slash ? slash + 1 : path};
	FILE *in = fopen(path, "rb");
	long size = 0;

	if (!in || fseek(in, 0, SEEK_END) || (size = ftell(in)) < 0 || fseek(in, 0, SEEK_SET))
		embed_fail("cannot read", path);
	file.type = type_of(file.name);
	file.size = (size_t)size;
	file.bytes = malloc(file.size + 1);
	if (!file.bytes || fread(file.bytes, 1, file.size, in) != file.size)
		embed_fail("cannot read", path);
	fclose(in);
	return file;
}

static int embed_compare_files(const void *left, const void *right)
{
	return strcmp(((const struct file *)left)->name, ((const struct file *)right)->name);
}

/* FNV-1a; collisions made on purpose are not a concern. */
static uint64_t add_hash(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static size_t write_packed(const struct file *file, size_t number)
{
	z_stream stream = {0};
	uLong room = compressBound(file->size) + 64;
	unsigned char *packed = malloc(room);

	if (!packed || deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		embed_fail("cannot compress", file->name);
	stream.next_in = file->bytes;
	stream.avail_in = (uInt)file->size;
	stream.next_out = packed;
	stream.avail_out = (uInt)room;
	if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
		embed_fail("cannot compress", file->name);
	printf("static const unsigned char packed_%zu[] = {", number);
	for (size_t i = 0; i < stream.total_out; i++)
		printf("%s%u,", i % 32 ? "" : "\n", packed[i]);
	puts("\n};");
	deflateEnd(&stream);
	free(packed);
	return stream.total_out;
}

int main(int count, char **arguments)
{
	size_t files = count > 2 ? (size_t)count - 2 : 0;
	struct file *file = calloc(files + 1, sizeof(*file));
	size_t *packed = calloc(files + 1, sizeof(*packed));
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	if (!files || !file || !packed)
		embed_fail("no file", count > 2 ? arguments[2] : "");
	hash = add_hash(hash, arguments[1], strlen(arguments[1]) + 1);
	for (size_t i = 0; i < files; i++)
		file[i] = read_file(arguments[i + 2]);
	qsort(file, files, sizeof(*file), embed_compare_files);
	puts("/* Made by the build. */\n#include \"serve/assets.h\"");
	for (size_t i = 0; i < files; i++) {
		hash = add_hash(hash, file[i].name, strlen(file[i].name) + 1);
		hash = add_hash(hash, file[i].bytes, file[i].size);
		packed[i] = write_packed(&file[i], i);
	}
	puts("const struct asset embedded_assets[] = {");
	for (size_t i = 0; i < files; i++)
		printf("\t{\"%s\", \"%s\", packed_%zu, %zu, %zu},\n", file[i].name, file[i].type, i, packed[i], file[i].size);
	printf("};\nconst size_t embedded_asset_count = %zu;\nconst char embedded_build_id[] = \"%016" PRIx64 "\";\n", files, hash);
	for (size_t i = 0; i < files; i++)
		free(file[i].bytes);
	free(file);
	free(packed);
	return fflush(stdout) || ferror(stdout);
}
