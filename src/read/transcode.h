/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts files of other formats to Chrome JSON while they are read, so that their events, arguments and flows have the same
 * meaning, and a format is one function that writes text.
 */
#ifndef OPS_READ_TRANSCODE_H
#define OPS_READ_TRANSCODE_H

#include "base/buffer.h"
#include "read/reading.h"

#define OPS_TRANSCODED_BYTES 65536u /* approximate amount of text that is produced at once */

struct ops_transcoder {
	/* Appends the text for the next part of the file; nothing at its end. */
	enum ops_code (*next)(struct ops_transcoder *transcoder, struct ops_buffer *text);
};

/* Append members of an object that begins in the same buffer, each preceded by a comma except for the first: a text, and a time
 * in microseconds. */
void ops_put_text_member(struct ops_buffer *out, const char *key, struct ops_string text);
void ops_put_time_member(struct ops_buffer *out, const char *key, int64_t ns);

enum ops_code ops_read_transcoded(struct ops_reading *reading, struct ops_transcoder *transcoder, struct ops_trace **ret_trace);

#endif
