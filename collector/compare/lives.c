/* SPDX-License-Identifier: Apache-2.0
 *
 * lives.c: see lives.h.
 */
#include <string.h>

#include "compare/lives.h"

static bool same_rank_and_pool(const struct align_group *x, const struct align_group *y)
{
	return x->rank_length == y->rank_length && memcmp(x->rank, y->rank, x->rank_length) == 0 &&
	       strcmp(x->pool, y->pool) == 0;
}

/* The first group of that rank and pool: of the first life. */
static bool find_first(const struct alignment *al, struct map *first, uint32_t group, uint32_t *found)
{
	const struct align_group *g = &al->group[group];
	uint64_t key = model_place_key(g->rank, g->rank_length, g->pool);
	uint64_t at;

	for (;; key = log_mix64(key + 1)) {
		at = map_get(first, key);
		if (at == MAP_NONE || same_rank_and_pool(&al->group[at], g))
			break;
	}
	*found = at == MAP_NONE ? group : (uint32_t)at;
	return at != MAP_NONE || map_set(first, key, group);
}

static const struct model_pool *layout_of(const struct align_group *g)
{
	return g->layout[0] ? g->layout[0] : g->layout[1];
}

/* Two processes that say no rank and were there together may hold different parts of one model: alike in keys, not in bytes. */
static bool may_be_lives(const struct align_group *g)
{
	return g->says_rank || !g->beside;
}

static bool are_kin(const struct align_group *first, const struct align_group *g)
{
	return first->same_layout && g->steady[0] && g->steady[1] && may_be_lives(first) && may_be_lives(g) &&
	       model_same_layout(layout_of(first), layout_of(g)) && (!g->layout[0] || !g->layout[1] || g->same_layout);
}

/* The order of donations goes on in the next life only where each life is over when the next begins, in both runs. */
static void judge_order(struct alignment *al, uint32_t first, uint32_t group)
{
	al->group[first].in_turn &= !al->group[group].beside;
}

bool lives_find(struct alignment *al)
{
	struct map first_of = { NULL, 0, 0 };
	bool fine = true;

	for (uint32_t i = 0; fine && i < al->n_groups; i++) {
		struct align_group *g = &al->group[i];
		uint32_t first;

		g->in_turn = !g->beside;
		fine = find_first(al, &first_of, i, &first);
		g->kin = g->first_life = first;
		for (unsigned s = 0; fine && s < 2; s++)
			al->group[first].lives[s] += g->layout[s] != NULL;
		if (!fine || first == i)
			continue;
		judge_order(al, first, i);
		if (are_kin(&al->group[first], g)) {
			g->same_layout = true;
			al->several_lives = true;
		} else {
			g->kin = i;
		}
	}
	map_free(&first_of);
	return fine;
}

uint32_t lives_count(const struct alignment *al, uint32_t group, unsigned s)
{
	return al->group[al->group[group].first_life].lives[s];
}

bool lives_mix(const struct alignment *al, uint32_t group)
{
	const struct align_group *first = &al->group[al->group[group].kin];

	if (al->mode == ALIGN_KEY)
		return true;
	return al->mode == ALIGN_ORDER && first->in_turn && first->lives[0] != first->lives[1];
}
