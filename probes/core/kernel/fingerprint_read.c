/* SPDX-License-Identifier: Apache-2.0
 *
 * fingerprint_read.c: the reader's side of a launch: which records are in, and what they say together. A GPU may write into an
 * entry while it is read: nothing is believed before its check holds.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")
#else
#pragma STDC FP_CONTRACT OFF
#endif

#include "probes/core/kernel/fingerprint_sums.h"

static int record_in(const struct fp_record *record, uint32_t sequence)
{
	uint64_t word[FP_RECORD_WORDS], check = __atomic_load_n(&record->check, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < FP_RECORD_WORDS; i++)
		word[i] = __atomic_load_n(&record->word[i], __ATOMIC_RELAXED);
	return fp_record_check(word, sequence) == check;
}

uint32_t fp_records_in(const struct fp_entry *entry, uint32_t sequence, uint32_t from, uint32_t records)
{
	while (from < records && record_in(&entry->record[from], sequence))
		from++;
	return from;
}

static int region_in(const struct fp_region_values *values, uint32_t sequence, uint32_t n)
{
	uint64_t check = __atomic_load_n(&values->check, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		check -= fp_record_mix((uint64_t)__atomic_load_n(&values->value[i], __ATOMIC_RELAXED), i, sequence);
	return !check;
}

int fp_regions_in(const struct fp_entry *entry, uint32_t sequence, const struct fp_region *region, uint32_t n)
{
	/* The block that writes them is that of the first two records. */
	if (entry->record[0].word[FP_STATUS] != FP_OK)
		return 1;
	for (uint32_t r = 0; r < n; r++) {
		uint32_t values = region[r].n_values < FP_REGION_VALUES ? region[r].n_values : FP_REGION_VALUES;
		if (values && !region_in(&entry->region[r], sequence, values))
			return 0;
	}
	return 1;
}

uint32_t fp_read_status(const struct fp_entry *entry, uint32_t records, int64_t *slot)
{
	const uint64_t *first = entry->record[0].word;
	uint32_t status = (uint32_t)first[FP_STATUS];

	*slot = (int64_t)first[FP_SLOT];
	for (uint32_t i = 1; i < records; i++) {
		const uint64_t *word = entry->record[i].word;
		if (word[FP_STATUS] != first[FP_STATUS] || (status == FP_OK && word[FP_SLOT] != first[FP_SLOT]))
			status = FP_OUT_OF_RANGE;
	}
	return status;
}

void fp_read_plane(const struct fp_entry *entry, uint32_t first, uint32_t n_chunks, uint64_t bytes,
		   struct fp_print *out)
{
	struct fp_sums sums;

	fp_sums_begin(&sums);
	for (uint32_t i = 0; i < n_chunks; i++) {
		const uint64_t *word = entry->record[first + 1 + i].word;
		fp_sums_add(&sums, fp_f64(word[FP_SUM]), word[FP_HASH], word[FP_MAX], (uint32_t)word[FP_SPECIAL],
			    word[FP_SPECIAL] >> 32);
	}
	fp_sums_finish(&sums, bytes, out);
	for (uint32_t i = 0; i < FP_SAMPLES; i++)
		out->sample[i] = entry->record[first].word[i];
}
