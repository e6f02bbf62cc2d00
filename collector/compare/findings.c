/* SPDX-License-Identifier: Apache-2.0
 *
 * findings.c: groups the rows that differ into findings: one cause is one finding, and as few causes as explain all rows.
 *
 * A row may have several explanations. NaN is a cause of its own. Of the other causes the one that explains most of the rows
 * that are left is taken first, and so on; what nothing explains is `unknown`, and one finding. Rows of another cause that
 * have no tensor in common, not even by way of others, are two findings.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/diff.h"

#define WRITERS_SOUGHT 8

static const struct {
	const char *name, *text;
} causes[CAUSE_COUNT] = {
	[CAUSE_NON_FINITE] = { "non_finite", "a numeric fault, or a slot that was cleared by multiplying with 0" },
	[CAUSE_NOT_WRITTEN] = { "not_written", "its writer wrote elsewhere, not at all, or after the hand-over" },
	[CAUSE_MISPLACED] = { "misplaced", "a wrong index: padded rows, an index buffer that was not refreshed" },
	[CAUSE_WRONG_LENGTH] = { "wrong_length", "the state of another token position was stored, or state was lost" },
	[CAUSE_UNKNOWN] = { "unknown", "other arithmetic, a race, or a writer that no probe sees" },
};

const char *finding_cause_name(enum finding_cause cause)
{
	return causes[cause].name;
}

const char *finding_cause_text(enum finding_cause cause)
{
	return causes[cause].text;
}

const struct explanation *row_explained(const struct diff_row *row, enum explain_kind kind)
{
	for (uint32_t i = 0; i < row->n_explain; i++) {
		if (row->explain[i].kind == kind)
			return &row->explain[i];
	}
	return NULL;
}

/* ---- what may have caused a row ---- */

/* Where the place alone proves nothing, the bytes may be there for their length. */
static uint32_t causes_of(const struct diff_row *row)
{
	const struct explanation *misplaced = row_explained(row, EXPLAIN_MISPLACED);
	uint32_t set = 0;

	if (row_explained(row, EXPLAIN_NON_FINITE))
		return 1u << CAUSE_NON_FINITE;
	if (row_explained(row, EXPLAIN_ZERO) || row_explained(row, EXPLAIN_STALE))
		set |= 1u << CAUSE_NOT_WRITTEN;
	if (misplaced)
		set |= 1u << CAUSE_MISPLACED;
	if (row_explained(row, EXPLAIN_WRONG_LENGTH) || (misplaced && !misplaced->strong))
		set |= 1u << CAUSE_WRONG_LENGTH;
	return set ? set : 1u << CAUSE_UNKNOWN;
}

struct grouping {
	struct diff *diff;
	uint32_t *row, n; /* those that differ */
	uint32_t *set;    /* the causes that are possible; 0 once one was taken */
	enum finding_cause *cause;
	uint64_t *tensors; /* of the differing planes, a bit each */
	struct map bit_of; /* hash of a tensor's name -> its bit */
	unsigned n_bits;
	uint32_t parts[64]; /* tensors that belong together: a bit's part */
};

/* Of two causes that explain as many, the place is taken only where most of its rows speak for it alone. */
static enum finding_cause most_common(const struct grouping *g)
{
	uint32_t n[CAUSE_COUNT] = { 0 };
	enum finding_cause best = CAUSE_NON_FINITE;
	uint32_t strong = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct explanation *x = row_explained(&g->diff->row[g->row[i]], EXPLAIN_MISPLACED);

		for (int cause = 0; cause < CAUSE_COUNT; cause++)
			n[cause] += g->set[i] >> cause & 1;
		strong += g->set[i] && x && x->strong;
	}
	for (int cause = 0; cause < CAUSE_COUNT; cause++) {
		if (n[cause] > n[best] || (cause == CAUSE_WRONG_LENGTH && best == CAUSE_MISPLACED &&
					   strong <= n[best] / 2 && n[cause] == n[best]))
			best = (enum finding_cause)cause;
	}
	return best;
}

static void choose_causes(struct grouping *g)
{
	for (uint32_t left = g->n; left;) {
		enum finding_cause cause = most_common(g);

		for (uint32_t i = 0; i < g->n; i++) {
			if (!(g->set[i] >> cause & 1))
				continue;
			g->cause[i] = cause;
			g->set[i] = 0;
			left--;
		}
	}
}

/* ---- tensors ---- */

static const struct model_pool *pool_of(const struct diff *diff, const struct diff_row *row)
{
	const struct align_side *side = &diff->al.side[0];

	return &align_process(side, row->shown[0])->pool[align_event(side, row->shown[0])->pool];
}

/* Beyond 64 names the rest share a bit: then less is told apart. */
static bool bits_of(struct grouping *g, const struct diff_row *row, uint64_t *bits)
{
	const char *last = "";
	uint64_t bit = 0;

	*bits = 0;
	for (uint32_t i = 0; i < row->n_planes; i++) {
		const char *tensor = pool_of(g->diff, row)->plane[row->plane[i]].tensor;
		uint64_t key = log_key_hash(tensor, strlen(tensor));

		if (!*bits || strcmp(tensor, last) != 0)
			bit = map_get(&g->bit_of, key);
		last = tensor;
		if (bit == MAP_NONE) {
			bit = g->n_bits < 63 ? g->n_bits++ : 63;
			if (!map_set(&g->bit_of, key, bit))
				return false;
		}
		*bits |= 1ull << bit;
	}
	return true;
}

static unsigned part_of(const uint32_t *parts, unsigned bit)
{
	while (parts[bit] != bit)
		bit = parts[bit];
	return bit;
}

/* Joins the tensors that some row of that cause has together. */
static void join_tensors(struct grouping *g, enum finding_cause cause)
{
	for (unsigned bit = 0; bit < 64; bit++)
		g->parts[bit] = bit;
	for (uint32_t i = 0; i < g->n; i++) {
		unsigned first;

		if (g->cause[i] != cause || !g->tensors[i])
			continue;
		first = part_of(g->parts, (unsigned)__builtin_ctzll(g->tensors[i]));
		for (unsigned bit = 0; bit < 64; bit++) {
			if (g->tensors[i] >> bit & 1)
				g->parts[part_of(g->parts, bit)] = first;
		}
	}
}

/* ---- findings ---- */

static struct finding *finding_new(struct diff *diff, enum finding_cause cause, unsigned side)
{
	struct finding *f = &diff->finding[diff->n_findings++];

	memset(f, 0, sizeof *f);
	f->cause = cause;
	f->side = side;
	f->first_row = ALIGN_NONE;
	for (unsigned k = 0; k < EXPLAIN_KIND_COUNT; k++)
		f->first_of[k] = ALIGN_NONE;
	return f;
}

static bool is_earlier(const struct diff *diff, uint32_t row, uint32_t than)
{
	unsigned s = diff->suspect;

	return than == ALIGN_NONE || diff_before(&diff->al.side[s], diff->row[row].shown[s], diff->row[than].shown[s]);
}

static void finding_add(struct diff *diff, struct finding *f, uint32_t index)
{
	const struct diff_row *row = &diff->row[index];

	f->n_rows++;
	if (is_earlier(diff, index, f->first_row))
		f->first_row = index;
	for (uint32_t i = 0; i < row->n_explain; i++) {
		enum explain_kind kind = row->explain[i].kind;

		f->rows_of[kind]++;
		if (is_earlier(diff, index, f->first_of[kind]))
			f->first_of[kind] = index;
	}
}

/* Rows of one cause, by the part that their tensors belong to and by the run that is thought wrong. */
static void split(struct grouping *g, enum finding_cause cause)
{
	size_t of[64][2] = { { 0 } }; /* 1 + the finding's index */

	join_tensors(g, cause);
	for (uint32_t i = 0; i < g->n; i++) {
		struct diff_row *row = &g->diff->row[g->row[i]];
		/* What is unknown has no cause that could be told apart from another. */
		unsigned part = cause == CAUSE_UNKNOWN || !g->tensors[i]
					? 63
					: part_of(g->parts, (unsigned)__builtin_ctzll(g->tensors[i]));
		unsigned side = row->explain[0].side;

		if (g->cause[i] != cause)
			continue;
		if (!of[part][side]) {
			finding_new(g->diff, cause, side);
			of[part][side] = g->diff->n_findings;
		}
		finding_add(g->diff, &g->diff->finding[of[part][side] - 1], g->row[i]);
		row->finding = (uint32_t)of[part][side] - 1;
	}
}

static int by_first_row(const void *a, const void *b, void *arg)
{
	const struct finding *x = a, *y = b;

	return x->first_row == y->first_row ? 0 : is_earlier(arg, x->first_row, y->first_row) ? -1 : 1;
}

/* In the order of their first rows: what comes later may follow from what came before. */
static bool sort_findings(struct diff *diff)
{
	uint32_t *first = calloc(diff->n_findings + 1, sizeof *first),
		 *place = calloc(diff->n_findings + 1, sizeof *place);
	bool fine = first && place;

	for (size_t i = 0; fine && i < diff->n_findings; i++)
		first[i] = diff->finding[i].first_row;
	if (fine)
		qsort_r(diff->finding, diff->n_findings, sizeof *diff->finding, by_first_row, diff);
	for (size_t i = 0; fine && i < diff->n_findings; i++) {
		for (size_t k = 0; k < diff->n_findings; k++) {
			if (diff->finding[k].first_row == first[i])
				place[i] = (uint32_t)k;
		}
	}
	for (uint32_t i = 0; fine && i < diff->al.n_rows; i++) {
		if (diff->row[i].finding != ALIGN_NONE)
			diff->row[i].finding = place[diff->row[i].finding];
	}
	free(first);
	free(place);
	return fine;
}

static bool count_slots(struct diff *diff)
{
	struct map seen = { NULL, 0, 0 };
	bool fine = true;

	for (uint32_t i = 0; fine && i < diff->al.n_rows; i++) {
		const struct align_row *r = &diff->al.row[i];
		const char *pool = diff->al.group[r->group].pool;
		uint64_t key;

		if (diff->row[i].finding == ALIGN_NONE)
			continue;
		key = log_mix64(log_mix64(log_key_hash(pool, strlen(pool)) + (uint64_t)r->slot) + diff->row[i].finding);
		diff->finding[diff->row[i].finding].n_slots += map_get(&seen, key) == MAP_NONE;
		fine = map_set(&seen, key, 1);
	}
	map_free(&seen);
	return fine;
}

/* ---- where it began ---- */

/* A state that is the same in the other run is no fault, whatever it holds. */
static bool note_equal_claims(const struct align_side *side, struct map *equal)
{
	bool fine = true;

	for (size_t i = 0; fine && i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];

		if (o->equal && o->at.event != ALIGN_NONE)
			fine = map_set(equal, (uint64_t)o->at.process << 32 | o->at.event, 1);
	}
	return fine;
}

/* The first event of the whole run whose fingerprint has NaN or Inf, in whichever slot. */
static bool find_origin(const struct diff *diff, struct finding *f)
{
	const struct align_side *side = &diff->al.side[f->side];
	struct map equal = { NULL, 0, 0 };
	bool fine = note_equal_claims(side, &equal);

	for (uint32_t p = 0; fine && p < side->model->n_processes; p++) {
		const struct model_process *process = &side->model->process[p];

		for (uint32_t i = 0; i < process->n_prints; i++) {
			const struct model_print *print = &process->print[i];
			const struct model_event *e =
				print->nan || print->inf ? model_event(process, print->event) : NULL;
			struct align_ref at = { p, e ? (uint32_t)(e - process->event) : 0 };

			if (!e || print->outcome != CTR_COMMITTED ||
			    map_get(&equal, (uint64_t)p << 32 | at.event) != MAP_NONE)
				continue;
			if (f->has_origin && !diff_before(side, at, f->origin))
				continue;
			f->has_origin = true;
			f->origin = at;
			f->origin_slot = print->slot;
		}
	}
	map_free(&equal);
	return fine;
}

/* The earliest restore that brought back another state than in the other run. */
static bool first_wrong_restore(const struct diff *diff, unsigned s, struct align_ref *at)
{
	const struct align_side *side = &diff->al.side[s];
	bool any = false;

	for (size_t i = 0; i < side->n_restores; i++) {
		const struct align_restore *r = &side->restore[i];

		if (!r->differs || (any && !diff_before(side, r->at, *at)))
			continue;
		*at = r->at;
		any = true;
	}
	return any;
}

static bool look_back(struct diff *diff, struct finding *f)
{
	unsigned s = diff->suspect;

	if (f->cause == CAUSE_NON_FINITE)
		return find_origin(diff, f);
	if (f->cause == CAUSE_UNKNOWN && first_wrong_restore(diff, s, &f->heirloom))
		f->inherited = diff_before(&diff->al.side[s], f->heirloom, diff->row[f->first_row].shown[s]);
	return true;
}

/* ---- all of it ---- */

static bool gather(struct grouping *g)
{
	uint32_t n = g->diff->al.n_rows > UINT32_MAX ? UINT32_MAX : (uint32_t)g->diff->al.n_rows;
	bool fine;

	g->row = calloc(n + 1ul, sizeof *g->row);
	g->set = calloc(n + 1ul, sizeof *g->set);
	g->cause = calloc(n + 1ul, sizeof *g->cause);
	g->tensors = calloc(n + 1ul, sizeof *g->tensors);
	g->diff->finding = calloc((size_t)CAUSE_COUNT * 64 * 2, sizeof *g->diff->finding);
	fine = g->row && g->set && g->cause && g->tensors && g->diff->finding;
	for (uint32_t i = 0; fine && i < n; i++) {
		if (g->diff->row[i].verdict != ROW_DIFFERS)
			continue;
		g->row[g->n] = i;
		g->set[g->n] = causes_of(&g->diff->row[i]);
		fine = bits_of(g, &g->diff->row[i], &g->tensors[g->n++]);
	}
	return fine;
}

int find_findings(struct diff *diff)
{
	struct grouping g = { .diff = diff };
	bool fine = true;

	if (!diff->summary.differs)
		return 0;
	fine = gather(&g);
	if (fine) {
		choose_causes(&g);
		for (int cause = 0; cause < CAUSE_COUNT; cause++)
			split(&g, (enum finding_cause)cause);
		fine = sort_findings(diff) && count_slots(diff);
	}
	for (uint32_t i = 0; fine && i < diff->n_findings; i++) {
		find_patterns(diff, i, &diff->finding[i].patterns);
		/* Each look reads a log again. */
		diff->finding[i].has_writer =
			i < WRITERS_SOUGHT && find_writer(diff, &diff->finding[i], &diff->finding[i].writer);
		fine = look_back(diff, &diff->finding[i]);
	}
	free(g.row);
	free(g.set);
	free(g.cause);
	free(g.tensors);
	map_free(&g.bit_of);
	return fine ? 0 : -1;
}
