/* SPDX-License-Identifier: Apache-2.0
 *
 * test_kept.c: a donation's hash can be asked for, once it is in and for a while.
 */
#include "fake.h"

#include <errno.h>

static int fresh(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

static void the_hash_is_what_was_logged(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 3);
	uint64_t hash = 5;
	int64_t id = slotprobe_donate(&c), other;

	(void)state;
	assert_int_equal(slotprobe_hash(id, &hash), -EAGAIN);
	fake_turns(3);
	assert_int_equal(slotprobe_hash(id, &hash), 0);
	assert_int_equal(hash, fake_find(LOG_FINGERPRINT, 0)->fingerprint.rollup);
	c.slot = 2;
	other = slotprobe_donate(&c);
	fake_turns(3);
	assert_int_equal(slotprobe_hash(other, &hash), 0);
	assert_int_equal(hash, fake_find(LOG_FINGERPRINT, 1)->fingerprint.rollup);
	assert_int_not_equal(hash, fake_find(LOG_FINGERPRINT, 0)->fingerprint.rollup);
}

static void a_watched_slot_is_not_the_donated_one(void **state)
{
	struct slotprobe_claim c;
	uint64_t hash;
	int64_t id;

	(void)state;
	fake.options.watch[0] = 2;
	fake.options.n_watch = 1;
	c = toy_claim(toy_add(0), 3);
	id = slotprobe_donate(&c);
	fake_turns(3);
	assert_int_equal(fake_count(LOG_FINGERPRINT), 2);
	assert_int_equal(slotprobe_hash(id, &hash), 0);
	assert_int_equal(hash, fake_find(LOG_FINGERPRINT, 0)->fingerprint.rollup);
	assert_int_equal(fake_find(LOG_FINGERPRINT, 0)->fingerprint.role, LOG_ROLE_SUBJECT);
}

static void what_was_not_measured_has_none(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 0);
	int64_t slot = 1 << 20, id;
	uint64_t hash;

	(void)state;
	c.slot_ptr = (uintptr_t)&slot;
	c.slot_ptr_bytes = 8;
	id = slotprobe_donate(&c);
	assert_true(id > 0);
	fake_turns(3);
	assert_int_equal(slotprobe_hash(id, &hash), -ENOENT);
}

static void it_is_kept_for_a_while(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 3);
	uint64_t hash;
	int64_t first = slotprobe_donate(&c), last = first;

	(void)state;
	fake_turns(3);
	while (last < first + 1023) {
		last = slotprobe_donate(&c);
		fake_turns(3);
	}
	assert_int_equal(slotprobe_hash(first, &hash), 0);
	last = slotprobe_donate(&c);
	fake_turns(3);
	assert_int_equal(slotprobe_hash(first, &hash), -ENOENT);
	assert_int_equal(slotprobe_hash(last, &hash), 0);
}

static void nonsense_is_refused(void **state)
{
	struct slotprobe_claim c = toy_claim(toy_add(0), 3);
	int64_t id = slotprobe_donate(&c);
	uint64_t hash;

	(void)state;
	fake_turns(3);
	assert_int_equal(slotprobe_hash(0, &hash), -EINVAL);
	assert_int_equal(slotprobe_hash(-3, &hash), -EINVAL);
	assert_int_equal(slotprobe_hash(id + 1, &hash), -EINVAL);
	assert_int_equal(slotprobe_hash(id, NULL), -EINVAL);
	record_hot.state = RECORD_ENDED;
	assert_int_equal(slotprobe_hash(id, &hash), -ENOSYS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		T(the_hash_is_what_was_logged),
		T(a_watched_slot_is_not_the_donated_one),
		T(what_was_not_measured_has_none),
		T(it_is_kept_for_a_while),
		T(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
