/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c: the life of a slot: allocation, checkpoint, hand-over, restore, release.
 */
#include "server.h"

#define NO_SLOT        (-1)
#define PERTURBED_BYTE 1 /* in the mantissa: the number stays finite */

static void give(struct toy_server *s, int slot)
{
	toy_report_slot(&s->report, TOY_CALL_FREE, slot, -1);
	toy_journal_slot(&s->journal, TOY_CALL_FREE, slot, -1);
	toy_pool_give(&s->pool, slot, s->stream);
}

static int take(struct toy_server *s, int request, const char *use)
{
	int slot = toy_pool_take(&s->pool, s->stream);

	if (slot < 0) {
		int oldest = toy_cache_evict(&s->cache);

		if (oldest < 0)
			toy_die("every slot is in use");
		give(s, oldest);
		slot = toy_pool_take(&s->pool, s->stream);
	}
	toy_report_slot(&s->report, TOY_CALL_ALLOC, slot, -1);
	toy_journal_alloc(&s->journal, request, slot, use);
	return slot;
}

static enum toy_clear way_to_clear(const struct toy_server *s, int slot)
{
	if (s->bug->leak_conv)
		return TOY_CLEAR_SSM;
	if (s->bug->clear_multiplies)
		return TOY_CLEAR_MULTIPLY;
	if (s->bug->clear_owned_only && s->pool.owners[slot] == 1)
		return TOY_CLEAR_NOTHING;
	return TOY_CLEAR_ALL;
}

void toy_slots_live(struct toy_server *s, struct toy_request *r)
{
	enum toy_clear how;

	r->live = take(s, r->id, "live");
	how = way_to_clear(s, r->live);
	toy_pool_clear(&s->pool, r->live, how, s->stream);
	if (how == TOY_CLEAR_MULTIPLY)
		toy_model_multiply(&s->model, r->live);
	toy_shadow_clear(&s->shadow, r->live, how);
	toy_report_slot(&s->report, TOY_CALL_CLEAR, r->live, -1);
	toy_journal_slot(&s->journal, TOY_CALL_CLEAR, r->live, -1);
}

void toy_slots_track(struct toy_server *s, struct toy_request *r)
{
	r->track = take(s, r->id, "track");
}

void toy_slots_restore(struct toy_server *s, struct toy_request *r, const struct toy_cached *from)
{
	toy_report_restore(&s->report, from->slot, from->len, from->key);
	toy_journal_restore(&s->journal, r->id, from->slot, from->len, from->key);
	toy_pool_copy(&s->pool, r->live, from->slot, s->stream);
	toy_shadow_copy(&s->shadow, r->live, from->slot);
	toy_report_slot(&s->report, TOY_CALL_COPY, r->live, from->slot);
	toy_journal_slot(&s->journal, TOY_CALL_COPY, r->live, from->slot);
	r->len = (int)from->len;
}

static void perturb(struct toy_server *s, int slot)
{
	const int layer = s->pool.layers - 1;
	unsigned char value;

	if (!s->options->perturb_slot || slot != s->options->perturb_slot ||
	    s->journal.notes[slot].donations + 1 != (uint64_t)s->options->perturb_occurrence)
		return;
	value = toy_shadow_perturb(&s->shadow, slot, PERTURBED_BYTE);
	CHECK(set(toy_pool_ssm(&s->pool, layer, slot) + PERTURBED_BYTE, value, 1, s->stream));
	toy_journal_perturb(&s->journal, slot, layer, PERTURBED_BYTE);
}

/* The donation path. false: it was not walked, and the slot still is the request's. */
static bool donate(struct toy_server *s, const struct toy_request *r, int slot, const char *why)
{
	const int least = s->bug->never_walk ? INT32_MAX : 1; /* shorter states are not worth a slot */
	uint64_t key;
	int64_t id;

	if (r->len < least)
		return false;
	key = toy_cache_key(r->tokens, r->len);
	perturb(s, slot);
	id = toy_report_donate(&s->report, slot, r->len, key);
	toy_journal_donate(&s->journal, r->id, slot, why, r->len, key, id);
	if (toy_cache_insert(&s->cache, key, r->len, slot))
		return true;
	if (id) {
		toy_report_slot(&s->report, TOY_CALL_DISCARD, slot, id);
		toy_journal_slot(&s->journal, TOY_CALL_DISCARD, slot, id);
	}
	give(s, slot);
	return true;
}

void toy_slots_donate_track(struct toy_server *s, struct toy_request *r, const char *why)
{
	if (donate(s, r, r->track, why))
		toy_slots_track(s, r);
}

void toy_slots_finish(struct toy_server *s, struct toy_request *r)
{
	give(s, r->track);
	if (!donate(s, r, r->live, "end"))
		give(s, r->live);
	r->live = r->track = NO_SLOT;
}
