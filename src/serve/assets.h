/* SPDX-License-Identifier: Apache-2.0
 *
 * The viewer's files, which the build puts into the library (embed.c), compressed as they are sent.
 */
#ifndef OPS_SERVE_ASSETS_H
#define OPS_SERVE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct asset {
	const char *name; /* "app.js" */
	const char *type;
	const unsigned char *packed; /* gzip */
	size_t packed_size;
	size_t size;
};

/* Finds an asset by name; without a viewer there is a page that says so. NULL if there is none. */
const struct asset *assets_find(const char *name);
bool assets_have_viewer(void);
/* Follows from what the files hold, and the version. */
const char *assets_build_id(void);
/* What was packed, freed by ops_free, with a NUL behind; NULL when memory is out. */
char *asset_unpack(const struct asset *asset);

/* Made by the build, by name. */
extern const struct asset embedded_assets[];
extern const size_t embedded_asset_count;
extern const char embedded_build_id[];

#endif
