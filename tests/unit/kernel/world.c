/* SPDX-License-Identifier: Apache-2.0
 *
 * world.c: see world.h.
 */
#include "tests/unit/kernel/cmocka.h"
#include "tests/unit/kernel/world.h"

#define ENTRY_BYTES (sizeof(struct fp_entry) + (WORLD_PLANES + WORLD_CHUNKS) * sizeof(struct fp_record))

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

void world_start(struct world *w, int64_t first_slot)
{
	free(w->entry);
	memset(w, 0, sizeof(*w));
	w->entry = malloc(ENTRY_BYTES);
	assert_non_null(w->entry);
	w->launch.chunks = address_of(w->chunk);
	w->chunk_bytes = FP_CHUNK_UNIT;
	w->launch.entry = address_of(w->entry);
	w->launch.regions = address_of(w->region);
	w->launch.first_slot = first_slot;
	w->launch.n_slots = WORLD_SLOTS;
}

void world_plane(struct world *w, uint32_t dtype, uint64_t bytes, uint32_t shift, uint32_t gap, enum fill fill)
{
	struct world_plane *p = &w->plane[w->n_planes];
	uint64_t whole = (bytes + gap) * WORLD_SLOTS - gap;
	assert_true(w->n_planes < WORLD_PLANES);
	/* the pool ends where nothing is mapped: who reads past the last slot dies */
	char *data = guarded(whole, (16 - (whole + 16 - shift) % 16) % 16, 1);
	assert_non_null(data);
	fill_plane(data, whole, dtype, fill, w->n_planes + 1000 * bytes);
	p->base = address_of(data);
	p->stride = (int64_t)(bytes + gap);
	p->bytes = bytes;
	p->elems = bytes / reference_elem_bytes(dtype);
	p->dtype = dtype;
	w->n_planes++;
}

void world_region(struct world *w, uint32_t n, uint32_t value_bytes)
{
	uint32_t r = w->launch.n_regions++;
	char *data = (char *)w->region_data[r];
	for (uint32_t i = 0; i < n && i < FP_REGION_VALUES; i++) {
		int64_t v = -1 - (int64_t)i;
		memcpy(data + (size_t)i * value_bytes, &v, value_bytes);
	}
	w->region[r].base = address_of(data);
	w->region[r].n_values = n;
	w->region[r].value_bytes = value_bytes;
}

static void describe(struct world *w)
{
	w->launch.n_chunks = w->n_records = 0;
	for (uint32_t i = 0; i < w->n_planes; i++) {
		struct world_plane *p = &w->plane[i];
		p->n_chunks = fp_plane_chunks(p->bytes, w->chunk_bytes);
		p->record = w->n_records;
		assert_true(w->launch.n_chunks + p->n_chunks <= WORLD_CHUNKS);
		for (uint32_t k = 0; k < p->n_chunks; k++)
			w->chunk[w->launch.n_chunks++] = fp_chunk_of(p->base, p->stride, p->bytes, p->elems, p->dtype,
								     w->chunk_bytes, k, p->record);
		w->n_records += 1 + p->n_chunks;
	}
}

void world_arm(struct world *w)
{
	describe(w);
	memset(w->entry, 0xa5, ENTRY_BYTES);
	w->launch.sequence++;
	assert_int_equal(world_records_in(w), 0);
}

uint32_t world_records_in(const struct world *w)
{
	return fp_records_in(w->entry, w->launch.sequence, 0, w->n_records);
}

const void *world_address(const struct world *w, uint32_t plane, int64_t slot)
{
	return (const void *)(uintptr_t)(w->plane[plane].base +
					 (uint64_t)((slot - w->launch.first_slot) * w->plane[plane].stride));
}

static void expect_regions(const struct world *w)
{
	assert_true(fp_regions_in(w->entry, w->launch.sequence, w->region, w->launch.n_regions));
	for (uint32_t r = 0; r < w->launch.n_regions; r++)
		for (uint32_t i = 0; i < w->region[r].n_values && i < FP_REGION_VALUES; i++)
			assert_true(w->entry->region[r].value[i] == -1 - (int64_t)i);
}

static void expect_end(const struct world *w, int64_t slot, uint32_t status)
{
	int64_t found;
	const unsigned char *after = (const unsigned char *)&w->entry->record[w->n_records];

	assert_int_equal(world_records_in(w), w->n_records);
	assert_int_equal(fp_records_in(w->entry, w->launch.sequence + 1, 0, w->n_records), 0);
	assert_int_equal(fp_read_status(w->entry, w->n_records, &found), status);
	assert_true(found == slot);
	for (; after < (const unsigned char *)w->entry + ENTRY_BYTES; after++)
		assert_int_equal(*after, 0xa5);
}

void world_expect(const struct world *w, int64_t slot)
{
	expect_end(w, slot, FP_OK);
	expect_regions(w);
	for (uint32_t i = 0; i < w->n_planes; i++) {
		struct fp_print want, got;
		const struct world_plane *p = &w->plane[i];
		reference_plane(world_address(w, i, slot), p->bytes, p->elems, p->dtype, w->chunk_bytes, &want);
		fp_read_plane(w->entry, p->record, p->n_chunks, p->bytes, &got);
		if (memcmp(&want, &got, sizeof(want)))
			fail_msg("plane %u dtype %u bytes %llu: l2 %a, not %a; absmax %a, not %a; hash %llx, not %llx",
				 i, p->dtype, (unsigned long long)p->bytes, got.l2, want.l2, got.absmax, want.absmax,
				 (unsigned long long)got.hash, (unsigned long long)want.hash);
	}
}

void world_expect_nothing(const struct world *w, int64_t slot, uint32_t status)
{
	const unsigned char *regions = (const unsigned char *)w->entry->region;

	expect_end(w, slot, status);
	assert_true(fp_regions_in(w->entry, w->launch.sequence, w->region, w->launch.n_regions));
	for (size_t i = 0; i < sizeof(w->entry->region); i++)
		assert_int_equal(regions[i], 0xa5);
	for (uint32_t i = 0; i < w->n_records; i++)
		for (uint32_t k = 0; k < FP_SLOT; k++)
			assert_true(w->entry->record[i].word[k] == 0);
}
