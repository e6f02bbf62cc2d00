/* SPDX-License-Identifier: Apache-2.0
 *
 * world.c: see world.h.
 */
#include "tests/unit/kernel/cmocka.h"
#include "tests/unit/kernel/world.h"

#define ENTRY_BYTES (sizeof(struct fp_entry) + WORLD_PLANES * sizeof(struct fp_print))

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
	w->launch.planes = address_of(w->plane);
	w->launch.chunks = address_of(w->chunk);
	w->launch.scratch = address_of(w->scratch);
	w->launch.entry = address_of(w->entry);
	w->launch.regions = address_of(w->region);
	w->launch.first_slot = first_slot;
	w->launch.n_slots = WORLD_SLOTS;
}

void world_plane(struct world *w, uint32_t dtype, uint64_t bytes, uint32_t shift, uint32_t gap, enum fill fill)
{
	struct fp_launch *l = &w->launch;
	struct fp_plane *p = &w->plane[l->n_planes];
	uint64_t whole = (bytes + gap) * WORLD_SLOTS - gap;
	assert_true(l->n_planes < WORLD_PLANES);
	/* the pool ends where nothing is mapped: who reads past the last slot dies */
	char *data = guarded(whole, (16 - (whole + 16 - shift) % 16) % 16, 1);
	assert_non_null(data);
	fill_plane(data, whole, dtype, fill, l->n_planes + 1000 * bytes);
	p->base = address_of(data);
	p->stride = (int64_t)(bytes + gap);
	p->bytes = bytes;
	p->elems = bytes / reference_elem_bytes(dtype);
	p->dtype = dtype;
	p->first_chunk = l->n_chunks;
	p->n_chunks = fp_plane_chunks(bytes);
	assert_true(l->n_chunks + p->n_chunks <= WORLD_CHUNKS);
	for (uint32_t i = 0; i < p->n_chunks; i++)
		w->chunk[l->n_chunks++] = l->n_planes;
	l->n_planes++;
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

void world_arm(struct world *w)
{
	memset(w->entry, 0xa5, ENTRY_BYTES);
	w->entry->done = 0;
	w->launch.sequence++;
}

const void *world_address(const struct world *w, uint32_t plane, int64_t slot)
{
	return (const void *)(uintptr_t)(w->plane[plane].base +
					 (uint64_t)((slot - w->launch.first_slot) * w->plane[plane].stride));
}

static void expect_regions(const struct world *w)
{
	for (uint32_t r = 0; r < FP_MAX_REGIONS; r++) {
		uint32_t n = r < w->launch.n_regions ? w->region[r].n_values : 0;
		n = n < FP_REGION_VALUES ? n : FP_REGION_VALUES;
		assert_int_equal(w->entry->region_values[r], n);
		for (uint32_t i = 0; i < n; i++)
			assert_true(w->entry->region_value[r][i] == -1 - (int64_t)i);
	}
}

static void expect_end(const struct world *w, int64_t slot, uint32_t status)
{
	assert_int_equal(w->entry->done, w->launch.sequence);
	assert_int_equal(w->entry->status, status);
	assert_true(w->entry->slot == slot);
	for (size_t i = 0; i < sizeof(w->scratch) / 8; i++)
		assert_true(w->scratch[i] == 0);
}

void world_expect(const struct world *w, int64_t slot)
{
	expect_end(w, slot, FP_OK);
	expect_regions(w);
	for (uint32_t i = 0; i < w->launch.n_planes; i++) {
		struct fp_print want;
		const struct fp_plane *p = &w->plane[i];
		reference_plane(world_address(w, i, slot), p->bytes, p->elems, p->dtype, &want);
		if (memcmp(&want, &w->entry->plane[i], sizeof(want)))
			fail_msg("plane %u dtype %u bytes %llu: l2 %a, not %a; absmax %a, not %a; hash %llx, not %llx",
				 i, p->dtype, (unsigned long long)p->bytes, w->entry->plane[i].l2, want.l2,
				 w->entry->plane[i].absmax, want.absmax, (unsigned long long)w->entry->plane[i].hash,
				 (unsigned long long)want.hash);
	}
}

void world_expect_nothing(const struct world *w, int64_t slot, uint32_t status)
{
	expect_end(w, slot, status);
	for (uint32_t r = 0; r < FP_MAX_REGIONS; r++)
		assert_int_equal(w->entry->region_values[r], 0);
	const unsigned char *prints = (const unsigned char *)w->entry->plane;
	for (size_t i = 0; i < WORLD_PLANES * sizeof(struct fp_print); i++)
		assert_int_equal(prints[i], 0xa5);
}
