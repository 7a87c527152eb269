/* SPDX-License-Identifier: Apache-2.0
 *
 * Roofs; see roof.h.
 */
#include "analyze/roofline/roof.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "trace/inputs.h"

/* Approximate duration of an empty kernel on the devices of the table. */
#define KERNEL_NS 2000

enum roof_type roof_type_of(uint8_t dtype)
{
	switch (dtype) {
	case OPS_DTYPE_UINT8: case OPS_DTYPE_INT8: case OPS_DTYPE_QINT8: case OPS_DTYPE_QUINT8: return ROOF_INT8;
	case OPS_DTYPE_HALF: case OPS_DTYPE_COMPLEX_HALF: return ROOF_FLOAT16;
	case OPS_DTYPE_FLOAT: case OPS_DTYPE_COMPLEX_FLOAT: return ROOF_FLOAT32;
	case OPS_DTYPE_DOUBLE: case OPS_DTYPE_COMPLEX_DOUBLE: return ROOF_FLOAT64;
	case OPS_DTYPE_BFLOAT16: return ROOF_BFLOAT16;
	default: return ops_dtype_is_float8(dtype) ? ROOF_FLOAT8 : ROOF_NO_TYPE;
	}
}

const char *roof_type_name(enum roof_type type)
{
	static const char *const names[] = {"float64", "float32", "tfloat32", "float16", "bfloat16", "float8", "int8", ""};

	return names[type];
}

const char *roof_dtype_name(uint8_t dtype, enum roof_type type)
{
	/* Formats of one size have a roof in common. */
	bool common = type == ROOF_TFLOAT32 || type == ROOF_FLOAT8 || dtype == OPS_DTYPE_QINT8 || dtype == OPS_DTYPE_QUINT8;

	return common ? roof_type_name(type) : ops_dtype_python_name(dtype);
}

/* --- published peaks ---------------------------------------------------------------------------------------------- */

/* Peak rates that the manufacturers publish: dense TFLOP/s without sparsity at the boost clock, memory in GB/s, caches
 * in MB. Sources: NVIDIA's data sheets and architecture whitepapers of each product (GeForce: with 32-bit
 * accumulation), AMD's data sheets of the Instinct series (MI250 and MI250X: one of the two devices that a card appears
 * as). float64 and float32 are the faster of vector and matrix units. The speed of NVIDIA's second-level cache is 64
 * bytes a clock for each multiprocessor (CUDA C++ Best Practices Guide and whitepapers), AMD's that of the Infinity
 * Cache. The first row whose name is a word of the device's name applies. */
static const struct published {
	const char *name;
	double flops[ROOF_TYPE_COUNT]; /* float64, float32, tfloat32, float16, bfloat16, float8, int8 */
	double bandwidth, cache, cache_bandwidth;
} published[] = {
	{"GB200", {40, 80, 1250, 2500, 2500, 5000, 5000}, 8000, 126, 20000},
	{"B200", {40, 80, 1100, 2250, 2250, 4500, 4500}, 8000, 126, 20000},
	{"GH200", {67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9}, 4900, 50, 16700},
	{"H200", {67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9}, 4800, 50, 16700},
	{"H100 PCIe", {51, 51, 378, 756, 756, 1513, 1513}, 2000, 50, 12800},
	{"H100 NVL", {60, 60, 417.5, 835.5, 835.5, 1671, 1671}, 3900, 50, 15000},
	{"H100", {67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9}, 3350, 50, 16700},
	{"H20", {44, 44, 74, 148, 148, 296, 296}, 4000, 60, 11000},
	{"A100-SXM4-40GB", {19.5, 19.5, 156, 312, 312, 0, 624}, 1555, 40, 9700},
	{"A100-PCIE-40GB", {19.5, 19.5, 156, 312, 312, 0, 624}, 1555, 40, 9700},
	{"A100 80GB PCIe", {19.5, 19.5, 156, 312, 312, 0, 624}, 1935, 40, 9700},
	{"A100", {19.5, 19.5, 156, 312, 312, 0, 624}, 2039, 40, 9700},
	{"A800", {19.5, 19.5, 156, 312, 312, 0, 624}, 2039, 40, 9700},
	{"A30", {10.3, 10.3, 82, 165, 165, 0, 330}, 933, 24, 5200},
	{"A40", {0.6, 37.4, 74.8, 149.7, 149.7, 0, 299.3}, 696, 6, 9400},
	{"RTX A6000", {0.6, 38.7, 77.4, 154.8, 154.8, 0, 309.7}, 768, 6, 9700},
	{"A10G", {0.55, 35, 70, 140, 140, 0, 280}, 600, 6, 8800},
	{"A10", {0.49, 31.2, 62.5, 125, 125, 0, 250}, 600, 6, 7800},
	{"L40S", {1.4, 91.6, 183, 362, 362, 733, 733}, 864, 96, 22900},
	{"L40", {1.4, 90.5, 90.5, 181, 181, 362, 362}, 864, 96, 22600},
	{"L4", {0.47, 30.3, 60, 121, 121, 242.5, 242.5}, 300, 48, 7600},
	{"T4", {0.25, 8.1, 0, 65, 0, 0, 130}, 320, 4, 4100},
	{"V100S", {8.2, 16.4, 0, 130, 0, 0, 0}, 1134, 6, 8200},
	{"V100-PCIE", {7, 14, 0, 112, 0, 0, 0}, 900, 6, 7000},
	{"V100", {7.8, 15.7, 0, 125, 0, 0, 0}, 900, 6, 7900},
	{"P100", {5.3, 10.6, 0, 21.2, 0, 0, 0}, 732, 4, 5300},
	{"RTX 6000 Ada", {1.4, 91.1, 182.1, 364.2, 364.2, 728.5, 728.5}, 960, 96, 22800},
	{"RTX 5090", {1.6, 104.8, 104.8, 209.5, 209.5, 419, 838}, 1792, 96, 26200},
	{"RTX 4090", {1.3, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6}, 1008, 72, 20600},
	{"RTX 4080", {0.76, 48.7, 48.7, 97.5, 97.5, 194.9, 389.9}, 717, 64, 12200},
	{"RTX 3090", {0.56, 35.6, 35.6, 71, 71, 0, 284}, 936, 6, 8900},
	{"RTX 3080", {0.47, 29.8, 29.8, 59.5, 59.5, 0, 238}, 760, 5, 7400},
	{"RTX 2080 Ti", {0.44, 14.2, 0, 56.9, 0, 0, 227.7}, 616, 5.5, 7100},
	{"TITAN RTX", {0.51, 16.3, 0, 130.5, 0, 0, 261}, 672, 6, 8200},
	{"MI355X", {78.6, 157.3, 157.3, 2516.6, 2516.6, 5033.2, 5033.2}, 8000, 256, 17200},
	{"MI350X", {72.1, 144.2, 144.2, 2307, 2307, 4614, 4614}, 8000, 256, 17200},
	{"MI325X", {163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9}, 6000, 256, 17200},
	{"MI300X", {163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9}, 5300, 256, 17200},
	{"MI250X", {47.9, 47.9, 47.9, 191.5, 191.5, 0, 191.5}, 1638, 8, 3500},
	{"MI250", {45.3, 45.3, 45.3, 181, 181, 0, 181}, 1638, 8, 3500},
	{"MI210", {45.3, 45.3, 45.3, 181, 181, 0, 181}, 1638, 8, 3500},
	{"MI100", {11.5, 46.1, 46.1, 184.6, 92.3, 0, 184.6}, 1229, 8, 3000},
};

/* Returns true if a device's name contains a product's name as a word: "A40" is also part of "RTX A4000". */
static bool names_product(const char *device, const char *product)
{
	const char *at = strstr(device, product);
	char before = at && at > device ? at[-1] : ' ', after = at ? at[strlen(product)] : ' ';

	return at && !isalnum((unsigned char)before) && !isdigit((unsigned char)after);
}

static void find_published(struct roof *roof)
{
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		const struct published *row = &published[i];

		if (!names_product(roof->name, row->name))
			continue;
		roof->source = ROOF_PUBLISHED;
		for (int type = 0; type < ROOF_TYPE_COUNT; type++)
			roof->flops[type] = row->flops[type] * 1e12;
		roof->levels[0].per_second = row->bandwidth * 1e9;
		roof->level_count = 1;
		roof->cache_bytes = row->cache * 1e6;
		roof->cache_per_second = row->cache_bandwidth * 1e9;
		roof->call_ns = KERNEL_NS;
		return;
	}
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Copies a JSON string, truncated to the capacity. */
static void parse_name(struct ops_string value, struct roof *roof)
{
	struct ops_buffer text = {0};
	size_t size;

	if (!ops_json_decode_value(&text, value))
		return;
	size = text.failed ? 0 : text.size < ROOF_NAME_ROOM - 1 ? text.size : ROOF_NAME_ROOM - 1;
	memcpy(roof->name, ops_buffer_text(&text), size);
	roof->name[size] = '\0';
	ops_buffer_release(&text);
}

static bool parse_positive(struct ops_string value, double *ret_number)
{
	return ops_json_parse_number(value, ret_number) && isfinite(*ret_number) && *ret_number > 0;
}

static void parse_flops(struct ops_string object, struct roof *roof)
{
	struct ops_json_walk walk = ops_json_walk(object.bytes, object.size);
	struct ops_string key, value;
	double number;

	while (ops_json_next_member(&walk, &key, &value))
		for (int type = 0; type < ROOF_TYPE_COUNT; type++)
			if (ops_string_is(key, roof_type_name((enum roof_type)type)) && parse_positive(value, &number))
				roof->flops[type] = number;
}

/* Parses a number, or a list of [bytes, bytes per second]. A larger working set is never faster; measurements that say
 * so are noise. */
static void parse_bandwidth(struct ops_string value, struct roof *roof)
{
	struct ops_json_walk walk = ops_json_walk(value.bytes, value.size), pair;
	struct ops_string element, part;
	double bytes, speed;

	if (parse_positive(value, &speed)) {
		roof->levels[0].per_second = speed;
		roof->level_count = 1;
		return;
	}
	while (roof->level_count < ROOF_LEVELS_MAX && ops_json_next_element(&walk, &element)) {
		size_t at = roof->level_count;

		pair = ops_json_walk(element.bytes, element.size);
		if (!ops_json_next_element(&pair, &part) || !parse_positive(part, &bytes) || !ops_json_next_element(&pair, &part) ||
		    !parse_positive(part, &speed) || (at && bytes <= roof->levels[at - 1].bytes))
			continue;
		roof->levels[at].bytes = bytes;
		roof->levels[at].per_second = speed;
		roof->level_count++;
	}
	for (size_t i = roof->level_count; i-- > 1;)
		roof->levels[i - 1].per_second = fmax(roof->levels[i - 1].per_second, roof->levels[i].per_second);
}

static bool has_peaks(const struct roof *roof)
{
	for (int type = 0; type < ROOF_TYPE_COUNT; type++)
		if (roof->flops[type] > 0)
			return true;
	return roof->level_count > 0;
}

static bool parse_object(struct ops_string text, enum roof_source source, struct roof *ret_roof)
{
	struct ops_json_walk walk = ops_json_walk(text.bytes, text.size);
	struct roof roof = {.source = source};
	struct ops_string key, value;
	double call_us;

	while (ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "name"))
			parse_name(value, &roof);
		else if (ops_string_is(key, "flops"))
			parse_flops(value, &roof);
		else if (ops_string_is(key, "bandwidth"))
			parse_bandwidth(value, &roof);
		else if (ops_string_is(key, "call_us") && parse_positive(value, &call_us))
			roof.call_ns = call_us * 1000;
	}
	if (!has_peaks(&roof))
		return false;
	*ret_roof = roof;
	return true;
}

/* "3.35T" */
static bool parse_scaled(const char *text, size_t size, double *ret_number)
{
	static const char prefixes[] = "kMGTP";
	const char *prefix = size ? memchr(prefixes, text[size - 1], sizeof(prefixes) - 1) : NULL;

	if (!parse_positive((struct ops_string){text, size - (prefix ? 1 : 0)}, ret_number))
		return false;
	*ret_number *= prefix ? pow(1000, (double)(prefix - prefixes + 1)) : 1;
	return true;
}

static bool parse_pair(struct ops_string text, struct roof *ret_roof)
{
	const char *comma = memchr(text.bytes, ',', text.size);
	struct roof roof = {.source = ROOF_GIVEN, .level_count = 1};
	double flops;

	if (!comma || !parse_scaled(text.bytes, (size_t)(comma - text.bytes), &flops) ||
	    !parse_scaled(comma + 1, (size_t)(text.bytes + text.size - comma - 1), &roof.levels[0].per_second))
		return false;
	for (int type = 0; type < ROOF_TYPE_COUNT; type++)
		roof.flops[type] = flops;
	*ret_roof = roof;
	return true;
}

enum ops_code roof_parse(struct ops_string text, struct roof *ret_roof, struct ops_error *error)
{
	while (text.size && strchr(" \t\r\n", text.bytes[0]))
		text = (struct ops_string){text.bytes + 1, text.size - 1};
	if (text.size && text.bytes[0] == '{') {
		enum ops_code code = ops_json_validate(text.bytes, text.size, error);

		if (code)
			return ops_fault_context(error, code, "invalid roof");
		if (parse_object(text, ROOF_GIVEN, ret_roof))
			return OPS_OK;
		return ops_fault(error, OPS_INVALID, "invalid roof: the object has neither 'flops' nor 'bandwidth'");
	}
	if (parse_pair(text, ret_roof))
		return OPS_OK;
	return ops_fault(error, OPS_INVALID,
	                 "invalid roof '%.*s': give FLOP/s and bytes/s as '67T,3.35T', or what 'opstrobe roof' writes",
	                 (int)(text.size < 80 ? text.size : 80), text.bytes);
}

void roof_of_cpu(const struct ops_trace *trace, struct roof *ret_roof)
{
	struct ops_string json;

	*ret_roof = (struct roof){0};
	if (ops_trace_find_metadata(trace, "roof", &json))
		parse_object(json, ROOF_MEASURED, ret_roof);
}

void roof_of_device(const struct ops_trace *trace, struct roof *ret_roof)
{
	struct ops_string json, device, key, value;
	struct ops_json_walk walk;

	*ret_roof = (struct roof){0};
	if (!ops_trace_find_metadata(trace, "deviceProperties", &json))
		return;
	walk = ops_json_walk(json.bytes, json.size);
	if (!ops_json_next_element(&walk, &device) || device.bytes[0] != '{')
		return;
	walk = ops_json_walk(device.bytes, device.size);
	while (ops_json_next_member(&walk, &key, &value))
		if (ops_string_is(key, "name"))
			parse_name(value, ret_roof);
	find_published(ret_roof);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

double roof_compute_ns(const struct roof *roof, enum roof_type type, double flops)
{
	double peak = type < ROOF_TYPE_COUNT ? roof->flops[type] : 0;

	return peak > 0 ? flops / peak * 1e9 : 0;
}

double roof_memory_ns(const struct roof *roof, double bytes, double time_ns)
{
	double cached = bytes < roof->cache_bytes ? bytes : roof->cache_bytes, per_second;
	size_t level = 0;

	if (!roof->level_count)
		return 0;
	while (level + 1 < roof->level_count && bytes >= roof->levels[level + 1].bytes)
		level++;
	per_second = roof->levels[level].per_second;
	if (cached <= 0 || bytes / per_second * 1e9 <= time_ns)
		return bytes / per_second * 1e9;
	return ((bytes - cached) / per_second + cached / roof->cache_per_second) * 1e9;
}

void roof_write(const struct roof *roof, struct ops_json_writer *json)
{
	static const char *const sources[] = {"unknown", "measured", "published", "given"};

	ops_json_open(json, '{');
	ops_json_member_text(json, "name", roof->name);
	ops_json_member_text(json, "source", sources[roof->source]);
	ops_json_member_open(json, "flops", '{');
	for (int type = 0; type < ROOF_TYPE_COUNT; type++)
		if (roof->flops[type] > 0)
			ops_json_member_number(json, roof_type_name((enum roof_type)type), roof->flops[type]);
	ops_json_close(json, '}');
	ops_json_member_open(json, "bandwidth", '[');
	if (roof->cache_bytes > 0) {
		ops_json_open(json, '[');
		ops_json_number(json, 0);
		ops_json_number(json, roof->cache_per_second);
		ops_json_close(json, ']');
	}
	for (size_t i = 0; i < roof->level_count; i++) {
		ops_json_open(json, '[');
		ops_json_number(json, roof->cache_bytes > 0 ? roof->cache_bytes : roof->levels[i].bytes);
		ops_json_number(json, roof->levels[i].per_second);
		ops_json_close(json, ']');
	}
	ops_json_close(json, ']');
	ops_json_member_number(json, "call_us", roof->call_ns / 1000);
	ops_json_close(json, '}');
}
