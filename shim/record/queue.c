/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.c: the bounded queue from any thread to the writer. No lock, no allocation, no system call on the way in.
 *
 * Every slot carries a turn word that says whose move it is; a producer claims a position by compare-and-swap of the
 * tail and publishes by the turn word. A producer that stops between the two (killed thread, signal handler that never
 * returns) holds up the slots behind it; record_queue_close steps over such a slot, whose attempt stays in flight.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define QUEUE_ITEMS  RECORD_QUEUE_ITEMS
#define QUEUE_MASK   (QUEUE_ITEMS - 1)
#define QUEUE_CLOSED (1ull << 63)

_Static_assert(sizeof(struct record_item) == 256, "item");

struct record_queue record_queue __attribute__((aligned(64)));
static uint64_t head __attribute__((aligned(64)));

/* Made once; the mapping then stays where it is, because in a fork a signal handler's frame may still point into it. */
int record_queue_make(void)
{
	void *made;

	if (record_queue.items)
		return 0;
	made = mmap(NULL, sizeof *record_queue.items * QUEUE_ITEMS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (made == MAP_FAILED)
		return -errno;
	__atomic_store_n(&record_queue.items, made, __ATOMIC_RELEASE);
	return 0;
}

void record_queue_forget(void)
{
	if (record_queue.items)
		(void)mmap(record_queue.items, sizeof *record_queue.items * QUEUE_ITEMS, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	__atomic_store_n(&record_queue.tail, 0, __ATOMIC_RELAXED);
	head = 0;
}

static uint64_t turn_of(struct record_item *item, uint64_t position)
{
	return __atomic_load_n(&item->turn, __ATOMIC_ACQUIRE) + (position & QUEUE_MASK);
}

static void give_turn(struct record_item *item, uint64_t position, uint64_t turn)
{
	__atomic_store_n(&item->turn, turn - (position & QUEUE_MASK), __ATOMIC_RELEASE);
}

bool record_put(const void *record, struct ctr_row *commit)
{
	const struct log_record *h = record;
	uint64_t position = __atomic_load_n(&record_queue.tail, __ATOMIC_RELAXED);
	struct record_item *item;

	if (!record_active())
		return false;
	if (h->bytes > RECORD_ITEM_MAX || h->bytes < sizeof *h || h->bytes % 8) {
		ctr_internal_error();
		return false;
	}
	for (;;) {
		if (position & QUEUE_CLOSED)
			return false;
		item = &record_queue.items[position & QUEUE_MASK];
		int64_t ahead = (int64_t)(turn_of(item, position) - position);
		if (ahead < 0)
			return false;
		if (ahead > 0)
			position = __atomic_load_n(&record_queue.tail, __ATOMIC_RELAXED);
		else if (__atomic_compare_exchange_n(&record_queue.tail, &position, position + 1, true,
						     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
	}
	memcpy(item->record, record, h->bytes);
	item->commit = commit;
	record_queue_give(item, position);
	return true;
}

bool record_put_meta(const void *record)
{
	const struct timespec nap = { 0, 200000 };
	uint64_t deadline;
	int saved = errno;
	bool done;

	if (record_writer_is_this_thread()) {
		record_append(record, NULL);
		return true;
	}
	done = record_put(record, NULL);
	if (!done && record_active()) {
		deadline = record_now_ns() + NS_PER_S / 5;
		do {
			record_wake(false);
			nanosleep(&nap, NULL);
			done = record_put(record, NULL);
		} while (!done && record_active() && record_now_ns() < deadline);
		if (!done)
			ctr_add(ctr_core(CTR_ROW_META_LOST), 1);
	}
	errno = saved;
	return done;
}

static bool take(void)
{
	struct record_item *item = &record_queue.items[head & QUEUE_MASK];

	if (turn_of(item, head) != head + 1)
		return false;
	record_chunk_add(item->record, item->commit);
	give_turn(item, head, head + QUEUE_ITEMS);
	head++;
	return true;
}

/* At most one round, so that a flood of records cannot keep the writer from its other work. */
void record_queue_drain(void)
{
	for (unsigned n = 0; n < QUEUE_ITEMS && take(); n++)
		;
}

void record_queue_close(uint64_t deadline_ns)
{
	const struct timespec nap = { 0, 50000 };
	uint64_t end = __atomic_fetch_or(&record_queue.tail, QUEUE_CLOSED, __ATOMIC_ACQ_REL) & ~QUEUE_CLOSED;

	while (head < end) {
		if (take())
			continue;
		if (record_now_ns() < deadline_ns)
			nanosleep(&nap, NULL);
		else
			head++; /* claimed and never published */
	}
}
