/* SPDX-License-Identifier: Apache-2.0
 *
 * sight.c: see sight.h. All lists of one kind of one question are made together: its matches sorted by what they have in common, in
 * slices.
 */
#include <stdlib.h>

#include "compare/sight.h"

bool sight_of(const struct sights *sights, uint32_t question, uint32_t match, struct sighting *s)
{
	const struct find_match *m = &sights->find->question[question].match[match];
	const struct align_side *side = &sights->al->side[m->side];

	s->order = match;
	s->side = m->side;
	s->p = &side->model->process[m->process];
	s->print = &s->p->print[m->print];
	s->e = model_event(s->p, s->print->event);
	if (!s->e)
		return false;
	s->at = (struct align_ref) { m->process, (uint32_t)(s->e - s->p->event) };
	return true;
}

bool sight_is_claim(const struct sighting *s)
{
	return s->print->role == LOG_ROLE_SUBJECT && (s->e->kind == LOG_EV_DONATE || s->e->kind == LOG_EV_RESTORE);
}

/* ---- what the members of a list have in common ---- */

static uint64_t in_common(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return log_mix64(log_mix64(log_mix64(log_mix64(a + 1) + b) + c) + d);
}

/* What the wrong run claims may be wrong there too. If it is right and paired, the right run has it as well. */
static bool is_credible(const struct sights *sights, const struct sighting *s, unsigned wrong)
{
	uint64_t key = (uint64_t)s->at.process << 32 | s->at.event;

	return s->side != wrong || (s->e->kind == LOG_EV_DONATE && map_get(&sights->paired[s->side], key) == MAP_NONE);
}

/* By key the slots of the two runs have nothing to do with each other: what lies there rightly is not known. */
static bool may_lie_elsewhere(struct sights *sights, uint32_t question, const struct sighting *s, unsigned wrong,
			      uint64_t right_process)
{
	if (s->side != wrong ||
	    (sights->al->mode == ALIGN_KEY && !sight_is_claim(s) && s->print->role != LOG_ROLE_WATCHED))
		return false;
	/* Bytes that lie in that slot in the right run too belong there. */
	return !sight_list(sights, question, SIGHT_PLACE, !wrong, right_process, (uint64_t)s->print->slot, 0).n;
}

/* Of a match: whether it is in a list of that kind, and in which. The parameter is what not every member has a value of its own
 * for. */
static bool group_of(struct sights *sights, uint32_t question, enum sight_kind kind, uint64_t parameter,
		     const struct sighting *s, uint64_t *group)
{
	uint64_t process = s->at.process, slot = (uint64_t)s->print->slot;

	switch (kind) {
	case SIGHT_OF_SLOT:
		*group = in_common(s->side, process, s->e->pool, slot);
		return true;
	case SIGHT_PLACE:
		*group = in_common(s->side, process, slot, 0);
		return true;
	case SIGHT_CLAIMS:
		*group = in_common(s->side, 0, 0, 0);
		return sight_is_claim(s);
	case SIGHT_CLAIMS_NEAR:
		*group = in_common(s->side, process, 0, 0);
		return sight_is_claim(s);
	case SIGHT_OF_CLAIM:
		*group = in_common(s->side, s->e->key, (uint64_t)s->e->claimed_len, 0);
		return sight_is_claim(s);
	case SIGHT_ELSEWHERE:
		*group = in_common(s->side, process, parameter >> 1, 0);
		return may_lie_elsewhere(sights, question, s, parameter & 1, parameter >> 1);
	case SIGHT_CREDIBLE:
		*group = in_common(parameter, 0, 0, 0);
		return sight_is_claim(s) && is_credible(sights, s, (unsigned)parameter);
	default:
		*group = in_common(parameter, s->e->key, 0, 0);
		return sight_is_claim(s) && is_credible(sights, s, (unsigned)parameter);
	}
}

static uint64_t parameter_of(enum sight_kind kind, uint64_t a, uint64_t c)
{
	switch (kind) {
	case SIGHT_ELSEWHERE:
		return c << 1 | a;
	case SIGHT_CREDIBLE:
	case SIGHT_CREDIBLE_OF_KEY:
		return a;
	default:
		return 0;
	}
}

/* ---- making them ---- */

struct member {
	uint64_t group, moment, key;
	int64_t length;
	uint32_t match;
	bool claims;
};

static int by_group(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->moment != y->moment)
		return x->moment < y->moment ? -1 : 1;
	return (x->match > y->match) - (x->match < y->match);
}

static bool is_by_moment(enum sight_kind kind)
{
	return kind == SIGHT_CLAIMS_NEAR || kind == SIGHT_ELSEWHERE;
}

/* NULL: no memory, or none. */
static struct member *members(struct sights *sights, uint32_t question, enum sight_kind kind, uint64_t parameter,
			      uint32_t *n)
{
	const struct find_question *q = &sights->find->question[question];
	struct member *member = calloc(q->n_matches + 1, sizeof *member);
	struct sighting s;

	*n = 0;
	sights->no_memory |= !member;
	for (uint32_t i = 0; member && i < q->n_matches; i++) {
		struct member *m = &member[*n];

		if (!sight_of(sights, question, i, &s) || !group_of(sights, question, kind, parameter, &s, &m->group))
			continue;
		m->moment = is_by_moment(kind) ? s.e->id : 0;
		m->key = s.e->key;
		m->length = s.e->claimed_len;
		m->match = i;
		m->claims = sight_is_claim(&s);
		(*n)++;
	}
	if (member)
		qsort(member, *n, sizeof *member, by_group);
	return member;
}

static bool claim_the_same(const struct member *a, const struct member *b)
{
	return a->claims && b->claims && a->key == b->key && a->length == b->length;
}

static void link_list(struct sight_list *list, const struct member *member)
{
	for (uint32_t i = 0; i < list->n; i++) {
		bool same = i && claim_the_same(&member[i], &member[i - 1]);

		list->match[i] = member[i].match;
		list->previous[i] = same ? list->previous[i - 1] : i ? i - 1 : SIGHT_END;
	}
	for (uint32_t i = list->n; i-- > 0;) {
		bool last = i + 1 == list->n, same_length = !last && member[i].length == member[i + 1].length;

		list->next_length[i] = same_length ? list->next_length[i + 1] : i + 1;
		list->next[i] = !last && claim_the_same(&member[i], &member[i + 1]) ? list->next[i + 1] : i + 1;
	}
}

static uint64_t name_of(uint32_t question, enum sight_kind kind, uint64_t group)
{
	return log_mix64(log_mix64((uint64_t)question * SIGHT_KINDS + (uint64_t)kind + 1) + group);
}

static bool add_list(struct sights *sights, uint64_t name, const struct member *member, uint32_t n, uint32_t *block)
{
	struct sight_list *list;

	if (!array_room(&sights->list, &sights->room_lists, sights->n_lists, sizeof *sights->list) ||
	    !map_set(&sights->slice, name, sights->n_lists))
		return false;
	list = &sights->list[sights->n_lists++];
	*list = (struct sight_list) {
		.n = n, .match = block, .next = block + n, .previous = block + 2ul * n, .next_length = block + 3ul * n
	};
	link_list(list, member);
	return true;
}

static bool make(struct sights *sights, uint32_t question, enum sight_kind kind, uint64_t parameter)
{
	uint32_t n, from = 0, *block;
	struct member *member = members(sights, question, kind, parameter, &n);
	bool fine = member && array_room(&sights->block, &sights->room_blocks, sights->n_blocks, sizeof *sights->block);

	block = fine ? malloc(4ul * n * sizeof *block + 1) : NULL;
	fine = block != NULL;
	if (fine)
		sights->block[sights->n_blocks++] = block;
	for (uint32_t i = 1; fine && i <= n; i++) {
		if (i < n && member[i].group == member[from].group)
			continue;
		fine = add_list(sights, name_of(question, kind, member[from].group), &member[from], i - from,
				block + 4ul * from);
		from = i;
	}
	free(member);
	return fine;
}

struct sight_list sight_list(struct sights *sights, uint32_t question, enum sight_kind kind, uint64_t a, uint64_t b,
			     uint64_t c, uint64_t d)
{
	static const struct sight_list none;
	uint64_t parameter = parameter_of(kind, a, c), at;

	if (question == ALIGN_NONE)
		return none;
	if (map_get(&sights->made, name_of(question, kind, parameter)) == MAP_NONE) {
		if (!make(sights, question, kind, parameter) ||
		    !map_set(&sights->made, name_of(question, kind, parameter), 1))
			sights->no_memory = true;
	}
	at = map_get(&sights->slice, name_of(question, kind, in_common(a, b, c, d)));
	return at == MAP_NONE ? none : sights->list[at];
}

uint32_t sight_from(const struct sights *sights, uint32_t question, const struct sight_list *list, uint64_t id)
{
	uint32_t low = 0, high = list->n;
	struct sighting s;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sight_of(sights, question, list->match[middle], &s) && s.e->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void sights_free(struct sights *sights)
{
	for (size_t i = 0; i < sights->n_blocks; i++)
		free(sights->block[i]);
	free(sights->block);
	free(sights->list);
	map_free(&sights->made);
	map_free(&sights->slice);
	sights->block = NULL;
	sights->list = NULL;
	sights->n_lists = sights->room_lists = sights->n_blocks = sights->room_blocks = 0;
}
