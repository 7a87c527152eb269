/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds files of the viewer by name; see assets.h.
 */
#include "serve/assets.h"

#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/search.h"

const struct asset *assets_find(const char *name)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, embedded_asset_count, mid, strcmp(embedded_assets[mid].name, name) < 0);
	if (low < embedded_asset_count && strcmp(embedded_assets[low].name, name) == 0)
		return &embedded_assets[low];
	return NULL;
}

bool assets_have_viewer(void)
{
	return assets_find("app.js");
}

const char *assets_build_id(void)
{
	return embedded_build_id;
}

char *asset_unpack(const struct asset *asset)
{
	z_stream stream = {.next_in = (unsigned char *)asset->packed, .avail_in = (uInt)asset->packed_size};
	char *bytes = ops_realloc_array(NULL, asset->size + 1, 1);

	if (!bytes || inflateInit2(&stream, 15 + 16) != Z_OK) {
		ops_free(bytes);
		return NULL;
	}
	stream.next_out = (unsigned char *)bytes;
	stream.avail_out = (uInt)asset->size;
	inflate(&stream, Z_FINISH);
	inflateEnd(&stream);
	bytes[asset->size] = '\0';
	return bytes;
}
