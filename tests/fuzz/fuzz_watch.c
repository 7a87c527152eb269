/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the watch file of an ended process: its facts are valid JSON, of which a report and its page can be made.
 * fuzzing.h describes how to run it.
 */
#include <string.h>

#include <opstrobe/internal/incidents.h>

#include "base/json.h"
#include "fuzzing.h"
#include "segments.h"
#include "watch/left_behind.h"

static struct ops_watch_page page;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *report = NULL, *text = NULL;
	struct ops_buffer facts = {0};
	struct ops_error error;
	size_t report_size, text_size;

	segments_read((char *)&page, sizeof(page), bytes, size);
	page.magic = OPS_WATCH_MAGIC; /* what would be rejected at once is corrected */
	page.version = OPS_WATCH_VERSION;
	page.bytes = sizeof(page);
	expect(left_page_check(&page), "the page is rejected");
	left_page_facts(&page, page.signal ? page.signal_ns : page.samples[page.latest].time_ns, &facts);
	expect(!facts.failed, "no memory");
	expect(ops_json_validate(facts.bytes, facts.size, &error) == OPS_OK, error.text);
	expect(ops_incident_report(facts.bytes, facts.size, NULL, &report, &report_size, &error) == OPS_OK, error.text);
	expect(ops_json_validate(report, report_size, &error) == OPS_OK, error.text);
	for (int format = 0; format < 2; format++) {
		expect(ops_incident_page(report, report_size, format ? OPS_FORMAT_MARKDOWN : OPS_FORMAT_TEXT, &text, &text_size, &error) ==
		               OPS_OK,
		       error.text);
		ops_free(text);
	}
	ops_free(report);
	ops_buffer_release(&facts);
	return 0;
}
