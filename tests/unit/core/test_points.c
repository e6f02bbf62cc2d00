/* SPDX-License-Identifier: Apache-2.0
 *
 * test_points.c: steps, ranks, an adapter's own points, and what the shim tells besides.
 */
#include "fake.h"

#include <errno.h>
#include <string.h>

static int fresh(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

static void steps(void **state)
{
	struct slotprobe_step step = { sizeof step, "decode", 7, 3, 4, SLOTPROBE_MODE_GRAPH };

	(void)state;
	assert_int_equal(slotprobe_step(&step), 0);
	assert_row(CTR_ROW_STEP, 1, CTR_COMMITTED);
	assert_string_equal(fake_find(LOG_STEP, 0)->step.name, "decode");
	assert_int_equal(fake_find(LOG_STEP, 0)->step.number, 1);
	assert_int_equal(fake_find(LOG_STEP, 0)->step.value, 7);
	assert_int_equal(fake_find(LOG_STEP, 0)->step.padded, 4);
	record_hot.recording = 0;
	assert_int_equal(slotprobe_step(&step), 0);
	record_hot.recording = 1;
	step.name = NULL;
	assert_int_equal(slotprobe_step(&step), 0);
	assert_int_equal(fake_find(LOG_STEP, 1)->step.number, 3); /* numbered while paused, too */
	assert_int_equal(fake_row(CTR_ROW_STEP)->outcome[CTR_FILTERED_PAUSED], 1);
	fake.queue_full = true;
	assert_int_equal(slotprobe_step(&step), -EAGAIN);
	assert_int_equal(fake_row(CTR_ROW_STEP)->outcome[CTR_DROPPED_QUEUE], 1);
	record_hot.disk_stopped = 1;
	record_hot.recording = 0;
	assert_int_equal(slotprobe_step(&step), -EAGAIN);
	assert_int_equal(fake_row(CTR_ROW_STEP)->outcome[CTR_SKIPPED_DISK], 1);
	step.mode = SLOTPROBE_MODE_SEEN + 1;
	assert_int_equal(slotprobe_step(&step), -EINVAL);
	assert_int_equal(slotprobe_step(NULL), -EINVAL);
	step.size = 4;
	assert_int_equal(slotprobe_step(&step), -EINVAL);
	assert_int_equal(fake_row(CTR_ROW_STEP)->outcome[CTR_ERROR_ARGUMENT], 3);
	assert_int_equal(CTR_IN_FLIGHT(fake_row(CTR_ROW_STEP)->begun), 0);
}

static uint32_t mode_seen(void)
{
	struct slotprobe_step step = { sizeof step, "decode", 7, 3, 4, SLOTPROBE_MODE_SEEN };

	assert_int_equal(slotprobe_step(&step), 0);
	return fake_find(LOG_STEP, fake_count(LOG_STEP) - 1)->step.mode;
}

static void the_mode_can_be_what_was_seen(void **state)
{
	(void)state;
	assert_int_equal(mode_seen(), SLOTPROBE_MODE_EAGER);
	fake_graph_launch(NULL, 1); /* failed: nothing ran */
	assert_int_equal(mode_seen(), SLOTPROBE_MODE_EAGER);
	fake_graph_launch(NULL, 0);
	assert_int_equal(mode_seen(), SLOTPROBE_MODE_GRAPH);
	assert_int_equal(mode_seen(), SLOTPROBE_MODE_EAGER);
	fake_graph_launch(NULL, 0);
	assert_int_equal(mode_seen(), SLOTPROBE_MODE_GRAPH);
	record_source.forked();
	assert_int_equal(mode_seen(), SLOTPROBE_MODE_EAGER);
}

static void events_say_the_step(void **state)
{
	struct slotprobe_step step = { sizeof step, "decode", 7, 3, 4, 0 };
	struct slotprobe_claim c;

	(void)state;
	c = toy_claim(toy_add(0), 1);
	slotprobe_donate(&c);
	slotprobe_step(&step);
	slotprobe_donate(&c);
	assert_int_equal(fake_find(LOG_EVENT, 0)->event.step, 0);
	assert_int_equal(fake_find(LOG_EVENT, 1)->event.step, 1);
	fake_turns(2);
}

static void ranks(void **state)
{
	(void)state;
	assert_int_equal(slotprobe_rank("dp", 1, 2), 0);
	assert_string_equal(fake.rank, "tp0.pp0.dp1");
	assert_int_equal(slotprobe_rank("ep", 5, 8), 0);
	assert_int_equal(slotprobe_rank("tp", 3, 4), 0);
	assert_string_equal(fake.rank, "tp3.pp0.dp1.ep5");
	assert_int_equal(fake_count(LOG_RANK), 3);
	assert_string_equal(fake_find(LOG_RANK, 1)->rank.axis, "ep");
	assert_int_equal(fake_find(LOG_RANK, 1)->rank.index, 5);
	assert_int_equal(fake_find(LOG_RANK, 1)->rank.count, 8);
	assert_int_equal(slotprobe_rank("tp", 3, 4), 0);
	assert_int_equal(fake_count(LOG_RANK), 3); /* said once */
	assert_int_equal(slotprobe_rank("tp", 4, 4), -EINVAL);
	assert_int_equal(slotprobe_rank("tp", -1, 4), -EINVAL);
	assert_int_equal(slotprobe_rank(NULL, 0, 1), -EINVAL);
	assert_int_equal(slotprobe_rank("", 0, 1), -EINVAL);
	assert_int_equal(slotprobe_rank("t p", 0, 1), -EINVAL);
	assert_int_equal(slotprobe_rank("much.too.long.a.name", 0, 1), -EINVAL);
	assert_int_equal(slotprobe_rank("abcdefghijklmnop", 0, 1), -EINVAL); /* one more than is kept */
	assert_string_equal(fake.rank, "tp3.pp0.dp1.ep5");
	assert_int_equal(slotprobe_rank("tp", 3, 8), 0); /* another count is news */
	assert_int_equal(fake_find(LOG_RANK, 3)->rank.count, 8);
}

static void more_axes_than_are_kept(void **state)
{
	static const char *const all[] = { "tp", "pp", "dp", "ep", "moe_ep", "abcdefghijklmno", "c", "d" };

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(slotprobe_rank(all[i], 1, 2), 0);
	assert_int_equal(slotprobe_rank("f", 0, 2), -EAGAIN);
	assert_string_equal(fake.rank, "tp1.pp1.dp1.ep1.moe_ep1.abcdefghijklmno1.c1.d1");
}

static void a_forks_child_says_its_rank_anew(void **state)
{
	(void)state;
	assert_int_equal(slotprobe_rank("tp", 1, 4), 0);
	record_source.forked();
	fake.n = 0;
	shim_observer.cuda_ready();
	assert_true(fake_count(LOG_RANK) >= 1);
	assert_string_equal(fake_find(LOG_RANK, 0)->rank.axis, "tp");
	assert_int_equal(fake_find(LOG_RANK, 0)->rank.index, 1);
}

static void ranks_before_the_recording_are_said_when_it_starts(void **state)
{
	(void)state;
	record_hot.state = RECORD_IDLE;
	record_hot.recording = 0;
	fake.n = 0;
	assert_int_equal(slotprobe_rank("tp", 2, 4), 0);
	assert_int_equal(fake.n, 0);
	shim_observer.cuda_ready();
	assert_int_equal(record_area.page.driver_seen, 1);
	assert_true(fake_count(LOG_RANK) >= 1);
	assert_string_equal(fake_find(LOG_RANK, 0)->rank.axis, "tp");
	assert_int_equal(fake_find(LOG_RANK, 0)->rank.index, 2);
}

static void points(void **state)
{
	int id = slotprobe_point("toy.donate"), other = slotprobe_point("toy.restore");
	const struct ctr_row *row = &record_area.page.row[id];

	(void)state;
	assert_true(id >= (int)CTR_CORE_ROW_COUNT);
	assert_int_not_equal(id, other);
	assert_int_equal(slotprobe_point("toy.donate"), id);
	assert_int_equal(row->begun, 0);
	assert_int_equal(slotprobe_hit(id, SLOTPROBE_HIT_COMMITTED), 0);
	assert_int_equal(slotprobe_hit(id, SLOTPROBE_HIT_FILTERED), 0);
	assert_int_equal(slotprobe_hit(id, SLOTPROBE_HIT_ERROR), 0);
	assert_int_equal(slotprobe_hit(id, 3), -EINVAL);
	assert_int_equal(CTR_ATTEMPTED(row->begun), 4);
	assert_int_equal(CTR_IN_FLIGHT(row->begun), 0);
	assert_int_equal(row->outcome[CTR_COMMITTED], 1);
	assert_int_equal(row->outcome[CTR_FILTERED_ADAPTER], 1);
	assert_int_equal(row->outcome[CTR_ERROR_ADAPTER], 1);
	assert_int_equal(row->outcome[CTR_ERROR_ARGUMENT], 1);
	assert_int_equal(slotprobe_hit(CTR_ROW_DONATE, 0), -EINVAL); /* not an adapter's */
	assert_int_equal(slotprobe_hit(other + 1, 0), -EINVAL);
	assert_int_equal(slotprobe_hit(-1, 0), -EINVAL);
	assert_int_equal(slotprobe_hit(100000, 0), -EINVAL);
	assert_int_equal(slotprobe_point("core.mine"), -EINVAL);
	assert_int_equal(slotprobe_point("nodot"), -EINVAL);
	assert_int_equal(slotprobe_point(".x"), -EINVAL);
	assert_int_equal(slotprobe_point("a b.c"), -EINVAL);
	assert_int_equal(slotprobe_point(NULL), -EINVAL);
	assert_row(CTR_ROW_DONATE, 0, CTR_COMMITTED);
}

static void unrouted(void **state)
{
	(void)state;
	shim_observer.unrouted("cuGraphLaunch", 10000, 2);
	assert_int_equal(fake_row(CTR_ROW_UNROUTED)->outcome[0], 1);
	assert_string_equal(fake_find(LOG_UNROUTED, 0)->unrouted.name, "cuGraphLaunch");
	assert_int_equal(fake_find(LOG_UNROUTED, 0)->unrouted.flags, 2);
}

/* Looked for about once a second and at the end, not on every turn. */
static void bypassed(void **state)
{
	unsigned before = fake_gpu.bypass_looks;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		record_source.poll();
	assert_in_range(fake_gpu.bypass_looks - before, 0, 5);
	before = fake_gpu.bypass_looks;
	record_source.abandon(CTR_DROPPED_EXIT);
	assert_int_equal(fake_gpu.bypass_looks, before + 1);
	shim_observer.bypassed("cuGraphLaunch", "/opt/plugin.so");
	assert_int_equal(fake_row(CTR_ROW_BYPASSED)->outcome[0], 1);
	assert_string_equal(fake_find(LOG_BYPASSED, 0)->bypassed.symbol, "cuGraphLaunch");
	assert_string_equal(fake_find(LOG_BYPASSED, 0)->bypassed.object, "/opt/plugin.so");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		T(steps),
		T(the_mode_can_be_what_was_seen),
		T(events_say_the_step),
		T(ranks),
		T(a_forks_child_says_its_rank_anew),
		T(ranks_before_the_recording_are_said_when_it_starts),
		T(points),
		T(unrouted),
		T(bypassed),
		T(more_axes_than_are_kept), /* last: it takes them all */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
