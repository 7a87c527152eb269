/* SPDX-License-Identifier: Apache-2.0
 *
 * See recording_steps.h.
 */
#include "read/recording_steps.h"

#include "base/search.h"
#include "base/text.h"
#include "read/slot_values.h"

static bool is_noticed_step(const struct ops_block *block, const struct ops_slot *slot)
{
	const uint16_t flags = OPS_SLOT_ADDED | OPS_SLOT_NAME_INLINE;
	struct ops_payload payload = {(const char *)block + slot->payload, slot->payload_bytes};
	struct ops_string name;

	return slot->kind == OPS_SLOT_RANGE && (slot->flags & flags) == flags &&
	       (uint64_t)slot->payload + slot->payload_bytes <= block->bytes && ops_payload_text(&payload, &name) &&
	       ops_begins_with(name.bytes, name.size, "ProfilerStep#");
}

static bool add_border(struct recording_borders *borders, uint64_t ticks)
{
	struct recording_border *last = borders->list.count ? &borders->list.items[borders->list.count - 1] : NULL;

	if (last && ticks <= last->ticks)
		return true; /* where the previous step ends */
	return OPS_ARRAY_APPEND(&borders->list, (struct recording_border){.ticks = ticks});
}

static bool is_call(const struct ops_slot *slot)
{
	return (slot->kind == OPS_SLOT_PYTHON || slot->kind == OPS_SLOT_MODULE || slot->kind == OPS_SLOT_OP ||
	        slot->kind == OPS_SLOT_RANGE) &&
	       !(slot->flags & (OPS_SLOT_ASYNC | OPS_SLOT_DROPPED | OPS_SLOT_HELD | OPS_SLOT_ADDED));
}

/* Records a call that contains one border only. The call around the last border may be everything that the program does, so there
 * it must be the function that is around the previous border. */
static void note_call(struct recording_borders *borders, const struct ops_slot *slot)
{
	const size_t count = borders->list.count;
	const uint64_t end_ticks = ops_slot_end(slot);
	struct recording_border *border;
	size_t at = 0;

	OPS_LOWER_BOUND(at, count, mid, borders->list.items[mid].ticks <= slot->start_ticks);
	border = borders->list.items + at;
	if (at == 1 && count > 2 && end_ticks > border[1].ticks && slot->start_ticks > borders->loop_ticks)
		borders->loop_ticks = slot->start_ticks;
	if (!at && count > 2 && end_ticks > border[1].ticks && end_ticks <= border[2].ticks && end_ticks > borders->first_end_ticks)
		borders->first_end_ticks = end_ticks;
	if (at == count || end_ticks <= border->ticks || (at + 1 < count && end_ticks > border[1].ticks) ||
	    (border->call_end_ticks && border->call_start_ticks <= slot->start_ticks))
		return;
	if (at + 1 == count && (at < 2 || slot->kind != OPS_SLOT_PYTHON || !border[-1].call_end_ticks ||
	                        border[-1].call_kind != slot->kind || border[-1].call_name != slot->name))
		return;
	border->call_start_ticks = slot->start_ticks;
	border->call_end_ticks = end_ticks;
	border->call_kind = slot->kind;
	border->call_name = slot->name;
}

static bool begins_near(const struct recording_border *border)
{
	return border->ticks - border->call_start_ticks < border->call_end_ticks - border->ticks;
}

bool recording_steps_find(struct recording_borders *borders, const struct ops_share *share)
{
	const struct ops_block *block;
	size_t moved = 0, near = 0;

	for (block = share->blocks; block; block = block->next)
		for (uint32_t i = 0; i < block->count; i++)
			if (is_noticed_step(block, &block->slots[i]) &&
			    (!add_border(borders, block->slots[i].start_ticks) || !add_border(borders, ops_slot_end(&block->slots[i]))))
				return false;
	for (block = share->blocks; block && borders->list.count; block = block->next)
		for (uint32_t i = 0; i < block->count; i++)
			if (is_call(&block->slots[i]))
				note_call(borders, &block->slots[i]);
	for (size_t i = 1; i < borders->list.count; i++) {
		moved += borders->list.items[i].call_end_ticks != 0;
		near += borders->list.items[i].call_end_ticks && begins_near(&borders->list.items[i]);
	}
	borders->begins = near > moved / 2;
	if (borders->first_end_ticks && !borders->begins)
		borders->list.items[1].call_end_ticks = borders->first_end_ticks;
	return true;
}

static uint64_t move_border(const struct recording_borders *borders, uint64_t ticks)
{
	const struct recording_border *border;
	size_t at = 0;

	OPS_LOWER_BOUND(at, borders->list.count, mid, borders->list.items[mid].ticks < ticks);
	if (at == borders->list.count)
		return ticks;
	border = &borders->list.items[at];
	if (border->ticks != ticks || !border->call_end_ticks)
		return ticks;
	/* The first border is a batch's, or the end of creating an optimizer, whatever the others are. */
	return (at ? borders->begins : begins_near(border)) ? border->call_start_ticks : border->call_end_ticks;
}

uint64_t recording_steps_move(const struct recording_borders *borders, uint64_t ticks)
{
	const bool is_first = borders->list.count && borders->list.items[0].ticks == ticks;
	const uint64_t moved = move_border(borders, ticks);

	return is_first && moved < borders->loop_ticks ? borders->loop_ticks : moved;
}
