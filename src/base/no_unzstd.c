/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of unzstd.c where libzstd was not there when this was built.
 */
#include "base/source.h"

#include "base/fault.h"

enum ops_code ops_source_open_zstd(struct ops_source *take_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error)
{
	(void)head;
	(void)head_size;
	(void)ret_source;
	ops_source_close(take_inner);
	return ops_fault(error, OPS_UNSUPPORTED, "compressed with zstd, and this build has no libzstd: decompress it "
	                 "first (zstd -d)");
}
