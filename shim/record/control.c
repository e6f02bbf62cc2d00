/* SPDX-License-Identifier: Apache-2.0
 *
 * control.c: obeys the control words of the counters page, and writes down when each took effect.
 */
#include "internal.h"

#include <string.h>

static void say(uint32_t what, uint32_t value, const char *label)
{
	struct log_control record = { .t_ns = record_now_ns(), .what = what, .value = value };

	record_fill(&record, LOG_CONTROL);
	record_text_copy(record.label, sizeof record.label, label);
	record_chunk_add(&record, NULL);
}

static void obey_recording(struct ctr_page *page)
{
	uint32_t wanted = __atomic_load_n(&page->ctl_recording, __ATOMIC_ACQUIRE);

	if (wanted > 1 || wanted == page->recording)
		return;
	record_queue_drain(); /* what came before the word goes before it in the log */
	record_set_recording(wanted);
	__atomic_store_n(&page->recording, wanted, __ATOMIC_RELEASE);
	say(LOG_CONTROL_RECORDING, wanted, "");
}

static void obey_level(struct ctr_page *page)
{
	uint32_t wanted = __atomic_load_n(&page->ctl_level, __ATOMIC_ACQUIRE);

	/* Level nodes is not built: refused, and `level` goes on saying what is obeyed. */
	if (wanted > LOG_LEVEL_LAUNCHES || wanted == page->level)
		return;
	record_queue_drain();
	record_set_level(wanted);
	__atomic_store_n(&page->level, wanted, __ATOMIC_RELEASE);
	say(LOG_CONTROL_LEVEL, wanted, "");
}

/* A seqlock with its writer in another process: words that changed while we read are read again in the next turn. */
static void obey_label(struct ctr_page *page)
{
	uint64_t seq = __atomic_load_n(&page->ctl_label_seq, __ATOMIC_ACQUIRE);
	char label[sizeof page->ctl_label + 1];

	if (seq == page->label_done || seq & 1)
		return;
	for (size_t i = 0; i < sizeof page->ctl_label; i++)
		label[i] = __atomic_load_n(&page->ctl_label[i], __ATOMIC_ACQUIRE);
	label[sizeof page->ctl_label] = '\0';
	if (__atomic_load_n(&page->ctl_label_seq, __ATOMIC_RELAXED) != seq)
		return;
	record_queue_drain();
	say(LOG_CONTROL_LABEL, 0, label);
	__atomic_store_n(&page->label_done, seq, __ATOMIC_RELEASE);
}

void record_control_obey(void)
{
	struct ctr_page *page = record_page();

	obey_recording(page);
	obey_level(page);
	obey_label(page);
}

bool record_control_flush_wanted(uint64_t *token)
{
	*token = __atomic_load_n(&record_page()->ctl_flush, __ATOMIC_ACQUIRE);
	return *token != record_page()->flush_done;
}

void record_control_flush_done(uint64_t token)
{
	__atomic_store_n(&record_page()->flush_done, token, __ATOMIC_RELEASE);
}
