/* SPDX-License-Identifier: Apache-2.0
 *
 * test_claims.c: every way in which a donation, a restore or a slot event can end: what it returns, what it counts
 * (once), what it records, and that it leaves nothing behind.
 */
#include "fake.h"

#include <errno.h>
#include <string.h>

/* Whatever happened: nothing of ours is left open, and no shot is lost. */
static void assert_clean(void)
{
	assert_int_equal(fake_gpu.guards_open, 0);
	assert_int_equal(fake_gpu.legacy_open, 0);
	assert_int_equal(fake_gpu.pushes, fake_gpu.pops);
	for (unsigned i = 0; i < PROBE_POOLS; i++) {
		assert_int_equal(probe_pools[i].users, 0);
		assert_int_equal(probe_pools[i].in_flight, 0);
	}
}

static int fresh(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

/* ---- what is measured ---- */

static void donation_is_recorded_with_its_print(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 3);
	const struct fake_record *e, *f;
	int64_t id;

	(void)state;
	assert_int_equal(pool, 0);
	c.key = 9;
	c.key_len = 40;
	id = slotprobe_donate(&c);
	assert_true(id > 0);
	assert_int_equal(CTR_IN_FLIGHT(fake_row(CTR_ROW_DONATE)->begun), 1);
	assert_int_equal(fake_turns(1), 1); /* the event is drained between two polls */
	assert_null(fake_find(LOG_FINGERPRINT, 0));
	assert_int_equal(fake_turns(1), 0);
	assert_row(CTR_ROW_DONATE, 1, CTR_COMMITTED);
	e = fake_find(LOG_EVENT, 0);
	assert_int_equal(e->event.id, id);
	assert_int_equal(e->event.kind, LOG_EV_DONATE);
	assert_int_equal(e->event.slot, 3);
	assert_int_equal(e->event.claimed_len, 42);
	assert_int_equal(e->event.key, 9);
	assert_int_equal(e->event.key_len, 40);
	assert_int_equal(e->event.src, -1);
	assert_int_equal(e->event.context, (uintptr_t)FAKE_CTX);
	assert_int_equal(e->event.callsite, 77);
	assert_int_equal(e->event.has_fingerprint, 1);
	assert_int_equal(e->event.outcome, CTR_COMMITTED);
	f = fake_find(LOG_FINGERPRINT, 0);
	assert_true(f > e);
	assert_int_equal(f->fingerprint.event, id);
	assert_int_equal(f->fingerprint.role, LOG_ROLE_SUBJECT);
	assert_int_equal(f->fingerprint.total_planes, TOY_PLANES);
	assert_print_is_of(f, &toy, 3);
	assert_clean();
}

static void a_changed_bit_changes_the_print(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 2);

	(void)state;
	slotprobe_donate(&c);
	((unsigned char *)&toy.ssm[1][2][299])[0] ^= 1;
	slotprobe_donate(&c);
	fake_turns(2);
	assert_int_not_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.rollup,
			     fake_find(LOG_FINGERPRINT, 1)->fingerprint.rollup);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 1), &toy, 2);
}

static void restore_alloc_clear_are_measured(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 1);

	(void)state;
	assert_int_equal(slotprobe_restore(&c), 0);
	assert_int_equal(slotprobe_slot(SLOTPROBE_ALLOC, &c, 5), 0);
	assert_int_equal(slotprobe_slot(SLOTPROBE_CLEAR, &c, 5), 0);
	fake_turns(2);
	assert_row(CTR_ROW_RESTORE, 1, CTR_COMMITTED);
	assert_row(CTR_ROW_ALLOC, 1, CTR_COMMITTED);
	assert_row(CTR_ROW_CLEAR, 1, CTR_COMMITTED);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 3);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.kind, LOG_EV_RESTORE);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.kind, LOG_EV_ALLOC);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.src, -1);
	assert_clean();
}

static void free_and_discard_only_record(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 1);

	(void)state;
	fake_gpu.capturing = CU_CAPTURE_ACTIVE; /* does not matter to them */
	assert_int_equal(slotprobe_slot(SLOTPROBE_FREE, &c, 0), 0);
	assert_int_equal(slotprobe_slot(SLOTPROBE_DISCARD, &c, 17), 0);
	assert_int_equal(fake_gpu.launches, 0);
	assert_row(CTR_ROW_FREE, 1, CTR_COMMITTED);
	assert_row(CTR_ROW_DISCARD, 1, CTR_COMMITTED);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.src, 17);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.has_fingerprint, 0);
	assert_clean();
}

static void copy_measures_both_and_counts_once(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 6);

	(void)state;
	fake_gpu.hold = true;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 2), 0);
	fake_turns(3);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 0);
	fp_host_launch(&fake_gpu.held[1]); /* the destination alone is in */
	assert_int_equal(fake_turns(3), 1);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 0);
	fp_host_launch(&fake_gpu.held[0]);
	assert_int_equal(fake_turns(1), 0);
	assert_row(CTR_ROW_COPY, 1, CTR_COMMITTED);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.src, 2);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.role, LOG_ROLE_SOURCE);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 0), &toy, 2);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.role, LOG_ROLE_SUBJECT);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 1), &toy, 6);
	assert_clean();
}

static void copy_of_a_source_on_the_device(void **state)
{
	static int64_t from __attribute__((aligned(8)));
	static int32_t narrow[2];
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 6);

	(void)state;
	fake_gpu.hold = true;
	c.src_ptr = (uintptr_t)&from;
	c.src_ptr_bytes = 8;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 99), 0); /* the number says nothing */
	from = 3;
	fake_run();
	fake_turns(2);
	assert_row(CTR_ROW_COPY, 1, CTR_COMMITTED);
	assert_true(fake_find(LOG_EVENT, 0)->event.src == LOG_NO_SLOT);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.role, LOG_ROLE_SOURCE);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 0), &toy, 3);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 1), &toy, 6);

	/* what was copied from a slot that is none is not known: such a copy is not measured, though its own slot is */
	from = -1;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 0), 0);
	fake_run();
	fake_turns(2);
	from = TOY_SLOTS;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 0), 0);
	fake_run();
	fake_turns(2);
	assert_int_equal(fake_row(CTR_ROW_COPY)->outcome[CTR_COMMITTED], 1);
	assert_int_equal(fake_row(CTR_ROW_COPY)->outcome[CTR_FILTERED_PADDING], 1);
	assert_int_equal(fake_row(CTR_ROW_COPY)->outcome[CTR_ERROR_SLOT], 1);
	assert_int_equal(CTR_IN_FLIGHT(fake_row(CTR_ROW_COPY)->begun), 0);
	from = 3;

	/* other events take no notice of it, and callers from before it have a number */
	assert_int_equal(slotprobe_slot(SLOTPROBE_DISCARD, &c, 17), 0);
	assert_int_equal(fake_find(LOG_EVENT, 3)->event.src, 17);
	c.size = offsetof(struct slotprobe_claim, src_ptr);
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 2), 0);
	fake_run();
	fake_turns(2);
	assert_int_equal(fake_find(LOG_EVENT, 4)->event.src, 2);

	c.size = sizeof c;
	c.src_ptr = (uintptr_t)narrow + 1;
	c.src_ptr_bytes = 4;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 2), -EINVAL); /* would fault */
	c.src_ptr = (uintptr_t)narrow;
	c.src_ptr_bytes = 2;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 2), -EINVAL);
	assert_clean();
}

static void watched_slots_follow_each_donation(void **state)
{
	int pool;
	struct slotprobe_claim c;

	(void)state;
	fake.options.watch[0] = 0;
	fake.options.watch[1] = 99; /* not in this pool */
	fake.options.watch[2] = 7;
	fake.options.n_watch = 3;
	pool = toy_add(0);
	c = toy_claim(pool, 1);
	slotprobe_donate(&c);
	slotprobe_restore(&c); /* no watching here */
	fake_turns(2);
	assert_row(CTR_ROW_WATCH, 2, CTR_COMMITTED);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 4);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.role, LOG_ROLE_SUBJECT);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.role, LOG_ROLE_WATCHED);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.event, fake_find(LOG_EVENT, 0)->event.id);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 2), &toy, 7);
	assert_clean();
}

static void device_slot_ids(void **state)
{
	static int64_t wide __attribute__((aligned(8)));
	static int32_t narrow;
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 0);

	(void)state;
	fake_gpu.hold = true; /* read by the kernel, not by the call */
	wide = 1;
	c.slot_ptr = (uintptr_t)&wide;
	c.slot_ptr_bytes = 8;
	assert_true(slotprobe_donate(&c) > 0);
	c.slot_ptr = (uintptr_t)&narrow;
	c.slot_ptr_bytes = 4;
	assert_true(slotprobe_donate(&c) > 0);
	wide = 5;
	narrow = 6;
	fake_run();
	fake_turns(2);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.slot, LOG_NO_SLOT);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.slot_ptr, (uintptr_t)&wide);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 0), &toy, 5);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 1), &toy, 6);
	assert_row(CTR_ROW_DONATE, 2, CTR_COMMITTED);
	/* what was read there is nothing to the claim that comes next, with its result in the same place */
	c = toy_claim(pool, 2);
	assert_true(slotprobe_donate(&c) > 0);
	fake_run();
	fake_turns(2);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 2), &toy, 2);
	assert_clean();
}

static void device_slot_ids_that_are_none(void **state)
{
	static int64_t id;
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 0);
	const struct ctr_row *row = fake_row(CTR_ROW_DONATE);

	(void)state;
	c.slot_ptr = (uintptr_t)&id;
	c.slot_ptr_bytes = 8;
	id = -1;
	assert_true(slotprobe_donate(&c) > 0);
	id = TOY_SLOTS;
	assert_true(slotprobe_donate(&c) > 0);
	fake_turns(2);
	assert_int_equal(row->outcome[CTR_FILTERED_PADDING], 1);
	assert_int_equal(row->outcome[CTR_ERROR_SLOT], 1);
	assert_int_equal(row->outcome[CTR_COMMITTED], 0);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), 0);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.outcome, CTR_FILTERED_PADDING);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.n_planes, 0);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.slot, -1);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.outcome, CTR_ERROR_SLOT);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.slot, TOY_SLOTS);
	assert_clean();
}

static void keys(void **state)
{
	int pool;
	struct slotprobe_claim c;
	char text[501];

	(void)state;
	fake.options.keep_keys = true;
	pool = toy_add(0);
	c = toy_claim(pool, 1);
	memset(text, 'k', 500);
	text[500] = 0;
	c.key = 5;
	c.key_text = text; /* wins */
	slotprobe_donate(&c);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.key, log_key_hash(text, 500));
	assert_int_equal(fake_count(LOG_KEY_TEXT), 3);
	assert_int_equal(fake_find(LOG_KEY_TEXT, 2)->key_text.offset, 400);
	assert_int_equal(fake_find(LOG_KEY_TEXT, 2)->key_text.bytes, 100);
	fake.options.keep_keys = false;
	slotprobe_donate(&c);
	assert_int_equal(fake_count(LOG_KEY_TEXT), 3);
	fake_turns(2);
	assert_clean();
}

/* ---- what is not ---- */

static void assert_unmeasured(int64_t got, int64_t wanted, enum ctr_outcome outcome, bool said)
{
	assert_int_equal(got, wanted);
	fake_turns(3);
	assert_row(CTR_ROW_DONATE, 1, outcome);
	assert_int_equal(fake_count(LOG_EVENT), said);
	if (said) {
		assert_int_equal(fake_find(LOG_EVENT, 0)->event.outcome, outcome);
		assert_int_equal(fake_find(LOG_EVENT, 0)->event.has_fingerprint, 0);
	}
	assert_int_equal(fake_count(LOG_FINGERPRINT), 0);
	assert_clean();
}

static void paused(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	record_hot.recording = 0;
	assert_unmeasured(slotprobe_donate(&c), 0, CTR_FILTERED_PAUSED, false);
}

static void disk_stopped(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	record_hot.disk_stopped = 1;
	record_hot.recording = 0;
	assert_unmeasured(slotprobe_donate(&c), -EAGAIN, CTR_SKIPPED_DISK, false);
}

static void capturing(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.capturing = CU_CAPTURE_ACTIVE;
	assert_unmeasured(slotprobe_donate(&c), -EBUSY, CTR_SKIPPED_CAPTURING, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void capturing_and_broken(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.capturing = CU_CAPTURE_BROKEN;
	assert_unmeasured(slotprobe_donate(&c), -EBUSY, CTR_SKIPPED_CAPTURING, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void capturing_with_906(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.capture_rc = CU_CAPTURE_IMPLICIT;
	assert_unmeasured(slotprobe_donate(&c), -EBUSY, CTR_SKIPPED_CAPTURING, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void capture_found_at_the_launch(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.launch_rc = CU_CAPTURE_UNSUPPORTED;
	assert_unmeasured(slotprobe_donate(&c), -EBUSY, CTR_SKIPPED_CAPTURING, true);
}

static void legacy_stream_refused(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	c.stream = 0;
	fake_gpu.legacy_refused = true;
	assert_unmeasured(slotprobe_donate(&c), -EBUSY, CTR_SKIPPED_LEGACY, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void legacy_stream_in_a_blocking_capture(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	c.stream = 1;
	fake_gpu.capture_rc = CU_CAPTURE_IMPLICIT;
	assert_unmeasured(slotprobe_donate(&c), -EBUSY, CTR_SKIPPED_LEGACY, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void legacy_streams_are_held_while_launching(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	for (c.stream = 0; c.stream <= 2; c.stream++) /* the fake driver asserts that the gate is held for 0 and 1 */
		assert_true(slotprobe_donate(&c) > 0);
	assert_int_equal(fake_gpu.launches, 3);
	fake_turns(2);
	assert_row(CTR_ROW_DONATE, 3, CTR_COMMITTED);
	assert_clean();
}

static void foreign_context(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.stream_ctx = FAKE_OTHER;
	assert_unmeasured(slotprobe_donate(&c), -EINVAL, CTR_SKIPPED_NO_CONTEXT, true);
	assert_int_equal(fake_gpu.launches, 0);
}

/* Everything is of one context, which is not the pool's: its kernel must not meet the pool's memory. */
static void current_context_is_a_foreign_one(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.current = fake_gpu.stream_ctx = FAKE_OTHER;
	assert_unmeasured(slotprobe_donate(&c), -EINVAL, CTR_SKIPPED_NO_CONTEXT, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void legacy_stream_of_a_foreign_context(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	c.stream = 0;
	fake_gpu.current = FAKE_OTHER;
	assert_unmeasured(slotprobe_donate(&c), -EINVAL, CTR_SKIPPED_NO_CONTEXT, true);
	assert_int_equal(fake_gpu.launches, 0);
}

static void context_is_pushed_where_it_is_not_current(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);
	unsigned before = fake_gpu.pushes;

	(void)state;
	fake_gpu.current = FAKE_OTHER;
	assert_true(slotprobe_donate(&c) > 0);
	fake_gpu.current = NULL;
	assert_true(slotprobe_donate(&c) > 0);
	c.stream = 0;
	assert_true(slotprobe_donate(&c) > 0);
	assert_int_equal(fake_gpu.pushes, before + 3);
	assert_null(fake_gpu.current);
	fake_turns(2);
	assert_clean();
}

static void driver_fails(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.launch_rc = 700;
	assert_unmeasured(slotprobe_donate(&c), -EAGAIN, CTR_ERROR_DRIVER, true);
}

static void copy_of_which_the_second_launch_fails(void **state)
{
	struct slotprobe_claim c;
	int pool;

	(void)state;
	fake.options.n_watch = 0;
	pool = toy_add(0);
	c = toy_claim(pool, 6);
	/* one shot left: the source takes it, the destination finds none */
	fake_gpu.hold = true;
	for (uint32_t i = 0; i + 1 < probe_pools[0].ring.shots; i++)
		assert_true(slotprobe_donate(&c) > 0);
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 2), -EAGAIN);
	fake_run();
	fake_turns(3);
	assert_row(CTR_ROW_COPY, 1, CTR_DROPPED_RING);
	assert_clean();
}

/* The donation has the last place for a result, the watched slot has none. */
static void watched_slot_that_finds_no_place(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.hold = true;
	for (uint32_t i = 0; i + 1 < probe_pools[0].ring.shots; i++)
		assert_true(slotprobe_donate(&c) > 0);
	fake.options.n_watch = 1;
	assert_true(slotprobe_donate(&c) > 0);
	assert_row(CTR_ROW_WATCH, 1, CTR_DROPPED_RING);
	fake_run();
	fake_turns(3);
	assert_row(CTR_ROW_DONATE, probe_pools[0].ring.shots, CTR_COMMITTED);
	assert_clean();
}

static void ring_full(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);
	uint32_t shots = probe_pools[0].ring.shots;
	const struct ctr_row *row = fake_row(CTR_ROW_DONATE);

	(void)state;
	assert_int_equal(shots, toy_shots());
	fake_gpu.hold = true;
	for (uint32_t i = 0; i < shots; i++)
		assert_true(slotprobe_donate(&c) > 0);
	assert_true(fake.wakes > 0);
	assert_int_equal(slotprobe_donate(&c), -EAGAIN);
	assert_int_equal(row->outcome[CTR_DROPPED_RING], 1);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), shots);
	assert_int_equal(fake_turns(3), shots);
	fake_run();
	assert_int_equal(fake_turns(1), 0);
	assert_int_equal(row->outcome[CTR_COMMITTED], shots);
	for (uint32_t i = 0; i + 1 < shots; i++) /* in the order of the calls */
		assert_true(fake_find(LOG_FINGERPRINT, i)->fingerprint.event <
			    fake_find(LOG_FINGERPRINT, i + 1)->fingerprint.event);
	fake_gpu.hold = false;
	assert_true(slotprobe_donate(&c) > 0);
	fake_turns(2);
	assert_clean();
}

static void prints_come_in_the_order_of_their_events(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.hold = true;
	for (int i = 0; i < 3; i++)
		slotprobe_donate(&c);
	fp_host_launch(&fake_gpu.held[0]); /* shot 0 is free again, and the next event gets it */
	fake_turns(2);
	slotprobe_donate(&c);
	fake_turns(1); /* all of them are armed, and due at the next poll */
	fake_run();
	fake_turns(1);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fake_find(LOG_FINGERPRINT, i)->fingerprint.event, fake_find(LOG_EVENT, i)->event.id);
}

/* Shots become free here and there and are taken again, and the writer was long away: thousands are due at once, in many runs. */
static void many_prints_come_in_the_order_of_their_events(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);
	const uint32_t shots = probe_pools[0].ring.shots;
	uint32_t random = 1, left = 0;

	(void)state;
	fake_gpu.hold = true;
	for (uint32_t i = 0; i < shots; i++)
		assert_true(slotprobe_donate(&c) > 0);
	for (uint32_t i = 0; i < shots; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 31)
			fp_host_launch(&fake_gpu.held[i]);
		else
			fake_gpu.held[left++] = fake_gpu.held[i];
	}
	fake_gpu.n_held = left;
	fake_turns(2);
	assert_int_equal(fake_count(LOG_FINGERPRINT), shots - left);
	assert_in_range(left, shots / 3, shots - shots / 3);
	for (uint32_t i = left; i < shots; i++) /* between those that are still out */
		assert_true(slotprobe_donate(&c) > 0);
	fake_turns(1);
	fake_run();
	assert_int_equal(fake_turns(1), 0);
	assert_int_equal(fake_count(LOG_FINGERPRINT), shots + shots - left);
	for (uint32_t i = shots - left; i + 1 < shots + shots - left; i++)
		assert_true(fake_find(LOG_FINGERPRINT, i)->fingerprint.event <
			    fake_find(LOG_FINGERPRINT, i + 1)->fingerprint.event);
}

static void queue_full(void **state)
{
	struct slotprobe_claim c;

	(void)state;
	fake.options.n_watch = 1; /* slot 0 */
	c = toy_claim(toy_add(0), 1);
	fake.queue_full = true;
	assert_unmeasured(slotprobe_donate(&c), -EAGAIN, CTR_DROPPED_QUEUE, false);
	assert_row(CTR_ROW_WATCH, 1, CTR_DROPPED_QUEUE);
	assert_int_equal(slotprobe_slot(SLOTPROBE_FREE, &c, 0), -EAGAIN);
	assert_row(CTR_ROW_FREE, 1, CTR_DROPPED_QUEUE);
}

static void result_of_a_dropped_event_is_thrown_away_when_it_comes(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.hold = true;
	fake.queue_full = true;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 0), -EAGAIN);
	assert_row(CTR_ROW_COPY, 1, CTR_DROPPED_QUEUE);
	assert_int_equal(slotprobe_donate(&c), -EAGAIN);
	assert_row(CTR_ROW_DONATE, 1, CTR_DROPPED_QUEUE);
	fake_turns(3);
	assert_int_equal(probe_pools[0].in_flight, 3); /* the kernels may still write there */
	fake_run();
	fake_turns(1);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 0);
	assert_clean();
}

static void bad_arguments(void **state)
{
	static int64_t id;
	int pool = toy_add(0);
	const struct slotprobe_claim good = toy_claim(pool, 1);
	struct slotprobe_claim c;
	unsigned n = 0;

	(void)state;
#define BAD(change)                                                                                                    \
	do {                                                                                                           \
		c = good;                                                                                              \
		change;                                                                                                \
		assert_int_equal(slotprobe_donate(&c), -EINVAL);                                                       \
		assert_row(CTR_ROW_DONATE, ++n, CTR_ERROR_ARGUMENT);                                                   \
	} while (0)
	BAD(c.size = 8);
	BAD(c.pool = -38);
	BAD(c.pool = 1);
	BAD(c.pool = INT32_MAX);
	BAD(c.pool = pool + (int32_t)PROBE_POOLS); /* it would be in the place of this one */
	BAD(c.flags = 1);
	BAD(c.state = (uintptr_t)&toy); /* this pool has a place of its own */
	BAD(c.slot_ptr = (uintptr_t)&id);
	BAD((c.slot_ptr = (uintptr_t)&id, c.slot_ptr_bytes = 2));
	BAD((c.slot_ptr = (uintptr_t)&id + 4, c.slot_ptr_bytes = 8));
	fake_gpu.unknown_low = (uintptr_t)&id;
	fake_gpu.unknown_high = (uintptr_t)(&id + 1);
	BAD((c.slot_ptr = (uintptr_t)&id, c.slot_ptr_bytes = 8));
	fake_gpu.unknown_low = fake_gpu.unknown_high = 0;
	fake_gpu.other_low = (uintptr_t)&id;
	fake_gpu.other_high = (uintptr_t)(&id + 1);
	BAD((c.slot_ptr = (uintptr_t)&id, c.slot_ptr_bytes = 8));
	assert_int_equal(slotprobe_donate(NULL), -EINVAL);
	assert_row(CTR_ROW_DONATE, ++n, CTR_ERROR_ARGUMENT);
	assert_int_equal(slotprobe_slot(SLOTPROBE_DISCARD, &good, 0), -EINVAL);
	assert_row(CTR_ROW_DISCARD, 1, CTR_ERROR_ARGUMENT);
	assert_int_equal(slotprobe_slot(0, &good, 0), -EINVAL);
	assert_int_equal(slotprobe_slot(6, &good, 0), -EINVAL);
	assert_int_equal(fake_gpu.launches, 0);
	assert_clean();
}

static void host_slots_out_of_range(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, TOY_SLOTS);

	(void)state;
	assert_int_equal(slotprobe_donate(&c), -EINVAL);
	c.slot = INT64_MAX;
	assert_int_equal(slotprobe_donate(&c), -EINVAL);
	assert_row(CTR_ROW_DONATE, 2, CTR_ERROR_SLOT);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.outcome, CTR_ERROR_SLOT);
	c.slot = -1;
	assert_int_equal(slotprobe_restore(&c), 0);
	assert_row(CTR_ROW_RESTORE, 1, CTR_FILTERED_PADDING);
	c.slot = 1;
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, TOY_SLOTS), -EINVAL);
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, -1), -EINVAL);
	assert_row(CTR_ROW_COPY, 2, CTR_ERROR_SLOT);
	assert_int_equal(fake_gpu.launches, 0);
	assert_clean();
}

static void pool_gone(void **state)
{
	int pool = toy_add(0);
	struct slotprobe_claim c = toy_claim(pool, 1);

	(void)state;
	assert_int_equal(slotprobe_pool_remove(pool), 0);
	assert_unmeasured(slotprobe_donate(&c), -EINVAL, CTR_SKIPPED_POOL_GONE, true);
}

static void not_recorded(void **state)
{
	struct slotprobe_claim c = toy_claim(0, 1);

	(void)state;
	record_hot.state = RECORD_IDLE;
	record_hot.recording = 0;
	fake.options.dir = NULL;
	errno = 1234;
	assert_int_equal(toy_add(0), -ENOSYS);
	assert_int_equal(slotprobe_donate(&c), -ENOSYS);
	assert_int_equal(slotprobe_slot(SLOTPROBE_FREE, &c, 0), -ENOSYS);
	assert_int_equal(slotprobe_pool_remove(0), -ENOSYS);
	assert_int_equal(slotprobe_region("r", 4096, 8, SLOTPROBE_I32), -ENOSYS);
	assert_int_equal(slotprobe_tap("t", 1, 1, 0, 0), -ENOSYS);
	assert_int_equal(errno, 1234);
	assert_row(CTR_ROW_DONATE, 0, CTR_COMMITTED);
	assert_int_equal(fake.n, 0);
}

/* ---- host memory ---- */

static void host_pool(void **state)
{
	int pool;
	struct slotprobe_claim c;

	(void)state;
	fake_gpu.absent = true; /* needs none */
	shim_driver_found = NULL;
	pool = toy_add(-1);
	assert_int_equal(pool, 0);
	c = toy_claim(pool, 4);
	assert_true(slotprobe_donate(&c) > 0);
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 1), 0);
	memset(&toy.ssm, 0, sizeof toy.ssm); /* it was read when it was reported */
	fake_turns(2);
	assert_row(CTR_ROW_DONATE, 1, CTR_COMMITTED);
	assert_row(CTR_ROW_COPY, 1, CTR_COMMITTED);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.outcome, CTR_COMMITTED);
	assert_true(fake_find(LOG_FINGERPRINT, 0)->fingerprint.plane[0].absmax > 1000);
	c.slot_ptr = (uintptr_t)&c.slot;
	c.slot_ptr_bytes = 8;
	assert_int_equal(slotprobe_restore(&c), -EINVAL);
	assert_row(CTR_ROW_RESTORE, 1, CTR_ERROR_ARGUMENT);
	assert_clean();
}

/* ---- host memory without a fixed place ---- */

static void floating_pool(void **state)
{
	static float blob[2][16] = { { 1, 2, 3 }, { 4, 5, 6 } };
	struct slotprobe_plane plane = { "state", 0, SLOTPROBE_F32, 8, 0, 14 };
	struct slotprobe_pool said = { sizeof said, "blob", -1, 0, 4, &plane, 1, SLOTPROBE_POOL_FLOATING };
	struct slotprobe_claim c;
	struct fp_print print;

	(void)state;
	fake.options.n_watch = 1; /* nothing can be looked up there */
	c = toy_claim(slotprobe_pool_add(&said), 3);
	for (int i = 0; i < 2; i++) {
		c.state = (uintptr_t)blob[i];
		assert_true(slotprobe_donate(&c) > 0);
	}
	fake_turns(2);
	for (unsigned i = 0; i < 2; i++) {
		fp_host_plane((const char *)blob[i] + 8, 56, 14, SLOTPROBE_F32, &print);
		assert_memory_equal(&print, &fake_find(LOG_FINGERPRINT, i)->fingerprint.plane[0], sizeof print);
	}
	assert_row(CTR_ROW_DONATE, 2, CTR_COMMITTED);
	assert_row(CTR_ROW_WATCH, 0, CTR_COMMITTED);
	assert_int_equal(slotprobe_slot(SLOTPROBE_COPY, &c, 1), -EINVAL);
	c.state = 0;
	assert_int_equal(slotprobe_slot(SLOTPROBE_FREE, &c, 0), 0); /* measures nothing */
	assert_int_equal(slotprobe_restore(&c), -EINVAL);
	c.state = (uintptr_t)blob;
	c.size = offsetof(struct slotprobe_claim, state); /* built before it existed */
	assert_int_equal(slotprobe_restore(&c), -EINVAL);
	c = toy_claim(toy_add(-1), 1);
	c.state = (uintptr_t)blob;
	assert_int_equal(slotprobe_restore(&c), -EINVAL); /* this one has a place */
	said.device = 0;
	assert_int_equal(slotprobe_pool_add(&said), -EINVAL);
	said.device = -1;
	said.flags = 2;
	assert_int_equal(slotprobe_pool_add(&said), -EINVAL);
	shim_observer.releasing(8, UINT64_MAX - 8, SHIM_RELEASE_FREE_HOST);
	shim_observer.releasing(8, 0, SHIM_RELEASE_FREE_HOST);
	assert_int_equal(fake_find(LOG_POOL_REMOVE, 0)->removed.pool, 1); /* the toy pool alone */
	assert_int_equal(fake_count(LOG_POOL_REMOVE), 1);
	assert_clean();
}

/* ---- the end ---- */

static void abandon_counts_what_is_lost(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);
	const struct ctr_row *row = fake_row(CTR_ROW_DONATE);

	(void)state;
	slotprobe_donate(&c); /* done, and not polled twice: it must not be lost */
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	slotprobe_slot(SLOTPROBE_COPY, &c, 2);
	record_source.poll();
	record_source.abandon(CTR_DROPPED_EXIT);
	assert_int_equal(row->outcome[CTR_COMMITTED], 1);
	assert_int_equal(row->outcome[CTR_DROPPED_EXIT], 1);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), 0);
	assert_row(CTR_ROW_COPY, 1, CTR_DROPPED_EXIT);
	assert_print_is_of(fake_find(LOG_FINGERPRINT, 0), &toy, 1);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 1)->fingerprint.outcome, CTR_DROPPED_EXIT);
	assert_clean();
}

static void a_fork_forgets(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 1);

	(void)state;
	fake_gpu.hold = true;
	slotprobe_donate(&c);
	record_source.forked();
	assert_int_equal(record_source.poll(), 0);
	assert_int_equal(slotprobe_donate(&c), -EINVAL); /* its pool was the parent's */
	assert_int_equal(fake_row(CTR_ROW_DONATE)->outcome[CTR_SKIPPED_POOL_GONE], 1);
	assert_int_not_equal(toy_add(0), c.pool);
	assert_int_equal(slotprobe_donate(&c), -EINVAL); /* and still is */
	assert_int_equal(fake_row(CTR_ROW_DONATE)->outcome[CTR_SKIPPED_POOL_GONE], 2);
	assert_int_equal(fake_count(LOG_DEVICE), 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		T(donation_is_recorded_with_its_print),
		T(a_changed_bit_changes_the_print),
		T(restore_alloc_clear_are_measured),
		T(free_and_discard_only_record),
		T(copy_measures_both_and_counts_once),
		T(copy_of_a_source_on_the_device),
		T(watched_slots_follow_each_donation),
		T(device_slot_ids),
		T(device_slot_ids_that_are_none),
		T(keys),
		T(paused),
		T(disk_stopped),
		T(capturing),
		T(capturing_and_broken),
		T(capturing_with_906),
		T(capture_found_at_the_launch),
		T(legacy_stream_refused),
		T(legacy_stream_in_a_blocking_capture),
		T(legacy_streams_are_held_while_launching),
		T(foreign_context),
		T(current_context_is_a_foreign_one),
		T(legacy_stream_of_a_foreign_context),
		T(context_is_pushed_where_it_is_not_current),
		T(driver_fails),
		T(copy_of_which_the_second_launch_fails),
		T(watched_slot_that_finds_no_place),
		T(ring_full),
		T(prints_come_in_the_order_of_their_events),
		T(many_prints_come_in_the_order_of_their_events),
		T(queue_full),
		T(result_of_a_dropped_event_is_thrown_away_when_it_comes),
		T(bad_arguments),
		T(host_slots_out_of_range),
		T(pool_gone),
		T(not_recorded),
		T(host_pool),
		T(floating_pool),
		T(abandon_counts_what_is_lost),
		T(a_fork_forgets),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	fake_usual = false;
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
