/* SPDX-License-Identifier: Apache-2.0
 *
 * A flame graph as a picture without scripts; the complete name and time of a frame are shown when the mouse is over it. Frames
 * are above their callers. Frames narrower than half a pixel are left out.
 */
#include "write/stack_files.h"

#include <string.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/markup.h"
#include "base/sum.h"
#include "trace/names.h"

#define WIDTH 1200.0
#define MARGIN 10.0
#define ROW 17
#define HEAD 30
#define LETTER 6.6 /* width of a character at the font size of the labels */
#define NARROWEST 0.5

struct box {
	int64_t total_ns;
	int64_t base_ns; /* for a difference: total_ns of the other trace */
	int64_t left_ns;
	int64_t next_ns; /* where the next callee begins */
	uint32_t depth;
};

struct picture {
	const struct ops_flame *flame;
	struct box *boxes; /* by chain; chain 0 is the complete graph */
	uint32_t depth;    /* of the highest box shown */
	struct ops_buffer text;
};

/* --- layout ------------------------------------------------------------------------------------------------------- */

static double pixels(const struct picture *picture, int64_t ns)
{
	return (double)ns / (double)picture->boxes[0].total_ns * (WIDTH - 2 * MARGIN);
}

static bool flame_svg_is_shown(const struct picture *picture, size_t chain)
{
	return picture->boxes[chain].total_ns > 0 && pixels(picture, picture->boxes[chain].total_ns) >= NARROWEST;
}

/* Callers precede their callees in the array: sums are computed backwards, positions forwards. */
static void flame_svg_lay_out(struct picture *picture)
{
	const struct ops_frame *frames = picture->flame->frames.frames.items;
	size_t count = picture->flame->self_ns.count;
	struct box *boxes = picture->boxes;

	for (size_t i = count; i-- > 1;) {
		int64_t self_ns = picture->flame->self_ns.items[i];

		if (self_ns > 0)
			boxes[i].total_ns = ops_sum(boxes[i].total_ns, self_ns);
		boxes[frames[i].caller].total_ns = ops_sum(boxes[frames[i].caller].total_ns, boxes[i].total_ns);
		if (ops_flame_is_diff(picture->flame)) {
			boxes[i].base_ns = ops_sum(boxes[i].base_ns, picture->flame->base_ns.items[i]);
			boxes[frames[i].caller].base_ns = ops_sum(boxes[frames[i].caller].base_ns, boxes[i].base_ns);
		}
	}
	for (size_t i = 1; i < count; i++) {
		struct box *caller = &boxes[frames[i].caller];

		boxes[i].left_ns = boxes[i].next_ns = caller->next_ns;
		boxes[i].depth = caller->depth + 1;
		caller->next_ns = ops_sum(caller->next_ns, boxes[i].total_ns);
		if (flame_svg_is_shown(picture, i) && boxes[i].depth > picture->depth)
			picture->depth = boxes[i].depth;
	}
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* Returns the colour class: warm for Python functions, intermediate for C functions and modules, cool for operators and ranges. */
static char flame_svg_class_of(struct ops_string name, bool is_python)
{
	static const struct {
		const char *start;
		char class;
	} classes[] = {{"<built-in", 'c'}, {OPS_MODULE_PREFIX, 'm'}, {"Python GC", 'c'}};

	if (is_python)
		return 'p';
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (name.size >= strlen(classes[i].start) && memcmp(name.bytes, classes[i].start, strlen(classes[i].start)) == 0)
			return classes[i].class;
	return 'o';
}

/* Writes "1.250 ms → 980.000 µs". */
static void flame_svg_put_times(struct picture *picture, int64_t base_ns, int64_t ns)
{
	char base[OPS_FORMAT_ROOM], now[OPS_FORMAT_ROOM];

	ops_format_duration(base, (double)base_ns);
	ops_format_duration(now, (double)ns);
	ops_buffer_printf(&picture->text, "%s → %s", base, now);
}

/* Writes both times and the colour: red for more self time, blue for less. */
static void flame_svg_put_change(struct picture *picture, size_t chain)
{
	const struct box *box = &picture->boxes[chain], *whole = &picture->boxes[0];
	int64_t self_ns = picture->flame->self_ns.items[chain], base_ns = picture->flame->base_ns.items[chain];
	double shade = ops_flame_shade(base_ns, self_ns, whole->total_ns > whole->base_ns ? whole->total_ns : whole->base_ns);
	int pale = 245 - (int)(165 * (shade < 0 ? -shade : shade));

	ops_buffer_append_text(&picture->text, " (");
	flame_svg_put_times(picture, box->base_ns, box->total_ns);
	ops_buffer_append_text(&picture->text, ", self ");
	flame_svg_put_times(picture, base_ns, self_ns);
	ops_buffer_printf(&picture->text, ")</title><rect fill=\"rgb(%d,%d,%d)\"", shade < 0 ? pale : 245, pale, shade > 0 ? pale : 245);
}

static void put_box(struct picture *picture, size_t chain)
{
	const struct box *box = &picture->boxes[chain];
	struct ops_string name = ops_frames_text(&picture->flame->frames, picture->flame->frames.frames.items[chain].name);
	struct ops_function_text function = {.name = name};
	bool is_python = ops_function_parse(name, &function);
	double x = MARGIN + pixels(picture, box->left_ns), width = pixels(picture, box->total_ns);
	unsigned y = HEAD + (picture->depth - box->depth) * ROW;
	size_t letters = (size_t)((width - 4) / LETTER > 0 ? (width - 4) / LETTER : 0);
	char time[OPS_FORMAT_ROOM];

	ops_format_duration(time, (double)box->total_ns);
	ops_buffer_append_text(&picture->text, "<g><title>");
	ops_markup_append(&picture->text, name.bytes, name.size, SIZE_MAX);
	if (ops_flame_is_diff(picture->flame))
		flame_svg_put_change(picture, chain);
	else
		ops_buffer_printf(&picture->text, " (%s, %s)</title><rect class=\"%c\"", time,
		                  ops_figure_of_percent((double)box->total_ns * 100 / (double)picture->boxes[0].total_ns).text,
		                  flame_svg_class_of(name, is_python));
	ops_buffer_printf(&picture->text, " x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%d\"/>", x, y, width, ROW - 1);
	if (letters > 3) {
		ops_buffer_printf(&picture->text, "<text x=\"%.1f\" y=\"%u\">", x + 3, y + 12);
		ops_markup_append(&picture->text, function.name.bytes, function.name.size,
		                  letters - (letters < function.name.size ? 2 : 0));
		ops_buffer_append_text(&picture->text, "</text>");
	}
	ops_buffer_append_text(&picture->text, "</g>\n");
}

static void flame_svg_put_head(struct picture *picture)
{
	unsigned height = HEAD + (picture->depth + 1) * ROW;
	char time[OPS_FORMAT_ROOM];

	ops_buffer_printf(&picture->text,
	                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%u\" viewBox=\"0 0 %.0f %u\">\n"
	                  "<style>text{font:11px monospace;fill:#111}rect{stroke:#fff;stroke-width:.5}.p{fill:#f6b26b}"
	                  ".c{fill:#ffe08a}.m{fill:#b6d7a8}.o{fill:#8fb8de}g:hover rect{stroke:#111}</style>\n"
	                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
	                  WIDTH, height, WIDTH, height);
	if (ops_flame_is_diff(picture->flame)) {
		ops_buffer_printf(&picture->text, "<text x=\"%.0f\" y=\"18\">per step: ", MARGIN);
		flame_svg_put_times(picture, picture->boxes[0].base_ns, picture->boxes[0].total_ns);
		ops_buffer_append_text(&picture->text, "; red: more self time, blue: less</text>\n");
		return;
	}
	ops_format_duration(time, (double)picture->boxes[0].total_ns);
	ops_buffer_printf(&picture->text, "<text x=\"%.0f\" y=\"18\">%s</text>", MARGIN, time);
	ops_buffer_printf(&picture->text, "<g transform=\"translate(%.0f 8)\">", WIDTH - 420);
	for (int i = 0; i < 4; i++)
		ops_buffer_printf(&picture->text,
		                  "<rect class=\"%c\" x=\"%d\" width=\"12\" height=\"12\"/><text x=\"%d\" y=\"10\">%s</text>",
		                  "pcmo"[i], i * 100, i * 100 + 16,
		                  (const char *const[]){"Python", "C function", "module", "operator, range"}[i]);
	ops_buffer_append_text(&picture->text, "</g>\n");
}

bool ops_put_flame_svg(const struct ops_flame *flame, struct ops_sink *sink, struct ops_flame_cut *cut)
{
	struct picture picture = {.flame = flame};
	bool ok;

	(void)cut;
	picture.boxes = ops_alloc_zeroed(flame->self_ns.count, sizeof(*picture.boxes));
	if (!picture.boxes)
		return false;
	flame_svg_lay_out(&picture);
	flame_svg_put_head(&picture);
	for (size_t i = 1; i < flame->self_ns.count; i++) {
		if (flame_svg_is_shown(&picture, i))
			put_box(&picture, i);
		ops_sink_write(sink, picture.text.bytes, picture.text.size);
		picture.text.size = 0;
	}
	ops_buffer_append_text(&picture.text, "</svg>\n");
	ops_sink_write(sink, picture.text.bytes, picture.text.size);
	ok = !picture.text.failed;
	ops_buffer_release(&picture.text);
	ops_free(picture.boxes);
	return ok;
}
