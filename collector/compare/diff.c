/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.c: the course of a comparison, its reasons and its first divergence. Rows are judged in judge.c, the conditions
 * in valid.c.
 *
 * Equal is the verdict that nothing may reach by accident: a row is equal only when every donation and restore of both
 * runs has a mate, both are measured, and every fact of every plane is the same. All else adds a reason.
 */
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compare/arm.h"
#include "compare/coverage.h"
#include "compare/fold.h"
#include "compare/judge.h"
#include "print/print.h"
#include "read/settle.h"
#include "verbs.h"

const char *row_verdict_name(enum row_verdict verdict)
{
	static const char *const name[ROW_VERDICT_COUNT] = { "equal",         "differs",       "within_tolerance",
							     "never_fired_a", "never_fired_b", "never_fired_both",
							     "unpaired",      "lost",          "truncated",
							     "incomparable" };

	return name[verdict];
}

const char *explain_kind_name(enum explain_kind kind)
{
	static const char *const name[EXPLAIN_KIND_COUNT] = { "non_finite", "zero",         "stale",
							      "misplaced",  "wrong_length", "unknown" };

	return name[kind];
}

const char *diff_arm(const struct diff *diff, unsigned side)
{
	const char *arm = diff->run[side].run.manifest.arm;

	return arm && *arm ? arm : NULL;
}

void diff_row_name(const struct diff *diff, uint32_t row, char *out, size_t size)
{
	const struct align_row *r = &diff->al.row[row];
	const struct align_group *group = &diff->al.group[r->group];

	if (r->slot == LOG_NO_SLOT)
		snprintf(out, size, "%s/%s/?", group->rank, group->pool);
	else
		snprintf(out, size, "%s/%s/%lld", group->rank, group->pool, (long long)r->slot);
}

bool diff_pool_is_silent(const struct diff *diff, uint32_t group)
{
	const struct align_group *g = &diff->al.group[group];

	return g->layout[0] && g->layout[1] && !g->donations[0] && !g->donations[1];
}

/* ---- what is missing may have been allowed ---- */

static int mark_allowed(struct diff *diff, const struct options *options, struct error *err)
{
	const char *pattern = options_text(options, "allow-missing");
	regex_t regex;

	if (!pattern)
		return 0;
	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
		error_set(err, "--allow-missing '%s' is not a regular expression", pattern);
		return -1;
	}
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		char name[256];

		diff_row_name(diff, i, name, sizeof name);
		diff->row[i].allowed = regexec(&regex, name, 0, NULL, 0) == 0;
	}
	regfree(&regex);
	return 0;
}

static void excuse_event(struct coverage_excuse *excuse, const struct align_side *side, struct align_ref at)
{
	const struct model_event *e = align_event(side, at);

	excuse[at.process].lost[e->kind == LOG_EV_RESTORE][e->outcome]++;
}

/* What of each process's losses was allowed; the caller frees it. NULL: out of memory. */
static struct coverage_excuse *excuse_of(const struct diff *diff, unsigned s)
{
	const struct align_side *side = &diff->al.side[s];
	struct coverage_excuse *excuse = calloc(side->model->n_processes + 1, sizeof *excuse);

	for (size_t i = 0; excuse && i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];

		if (!diff->row[o->row].allowed)
			continue;
		if (o->at.event != ALIGN_NONE)
			excuse_event(excuse, side, o->at);
		for (uint32_t k = o->restore; k != ALIGN_NONE; k = side->restore[k].next)
			excuse_event(excuse, side, side->restore[k].at);
	}
	return excuse;
}

/* ---- reasons from the rows ---- */

/* What nobody allowed to be missing, and what of it found no mate, by side: donations and restores. */
struct alone {
	uint64_t donations[2], restores[2], all_donations[2], all_restores[2];
};

static struct alone count_alone(const struct diff *diff)
{
	struct alone n = { { 0 }, { 0 }, { 0 }, { 0 } };

	for (unsigned s = 0; s < 2; s++) {
		const struct align_side *side = &diff->al.side[s];

		for (size_t i = 0; i < side->n_occurrences; i++) {
			const struct align_occurrence *o = &side->occurrence[i];

			if (diff->row[o->row].allowed)
				continue;
			n.all_donations[s] += o->at.event != ALIGN_NONE;
			n.donations[s] += o->at.event != ALIGN_NONE && o->mate == ALIGN_NONE;
			n.all_restores[s] += o->n_restores;
			for (uint32_t k = o->restore; k != ALIGN_NONE; k = side->restore[k].next)
				n.restores[s] += side->restore[k].mate == ALIGN_NONE;
		}
	}
	return n;
}

/* By key the rest is listed, as long as 95 % of each run's donations, and of its restores, found their mates. */
static bool alone_is_tolerated(const struct diff *diff, const uint64_t alone[2], const uint64_t all[2])
{
	return !(alone[0] || alone[1]) ||
	       (diff->al.mode == ALIGN_KEY && alone[0] <= all[0] / 20 && alone[1] <= all[1] / 20);
}

/* What a living process has not measured yet is not lost. */
static bool row_still_runs(const struct diff *diff, const struct diff_row *row)
{
	for (unsigned s = 0; s < 2; s++) {
		const struct model_process *p = row->has[s] ? align_process(&diff->al.side[s], row->shown[s]) : NULL;

		if (p && p->from->state == PROCESS_RUNNING &&
		    !model_measured(p, align_event(&diff->al.side[s], row->shown[s])))
			return true;
	}
	return false;
}

static void reason_for_row(struct diff *diff, uint32_t index, bool tolerated)
{
	const struct diff_row *row = &diff->row[index];
	const struct align_row *r = &diff->al.row[index];
	char name[256];

	diff_row_name(diff, index, name, sizeof name);
	switch (row->verdict) {
	case ROW_NEVER_FIRED_A:
	case ROW_NEVER_FIRED_B:
	case ROW_UNPAIRED:
		/* Where a run donated nothing at all, that is the reason, and not each of its slots. */
		if (!tolerated && diff->al.side[0].donations && diff->al.side[1].donations)
			reasons_add(&diff->reasons, REASON_slot_missing,
				    "%s: %u donations in run A, %u in run B, %u of them paired%s", name,
				    r->side[0].donations, r->side[1].donations, row->paired,
				    row->shows_restore ? "; a restore has no partner" : "");
		break;
	case ROW_NEVER_FIRED_BOTH:
		break; /* core.donate never fired: said already */
	case ROW_LOST:
		reasons_add(&diff->reasons, REASON_skipped_needed, "%s: occurrence %u has no fingerprint", name,
			    row->number);
		break;
	case ROW_TRUNCATED:
		reasons_add(&diff->reasons, row_still_runs(diff, row) ? REASON_not_finished : REASON_log_truncated,
			    "%s: the fingerprint of occurrence %u %s", name, row->number,
			    row_still_runs(diff, row) ? "has not come" : "is missing");
		break;
	default:
		break;
	}
}

static void reason_for_claims(struct diff *diff, uint32_t index)
{
	const struct diff_row *row = &diff->row[index];
	const struct model_event *e[2];
	char name[256];

	if (!row->has[0] || !row->has[1] || !diff->al.group[diff->al.row[index].group].same_layout)
		return;
	diff_row_name(diff, index, name, sizeof name);
	for (unsigned s = 0; s < 2; s++)
		e[s] = align_event(&diff->al.side[s], row->shown[s]);
	if (e[0]->discarded != e[1]->discarded)
		reasons_add(&diff->reasons, REASON_claimed_len_mismatch, "%s: occurrence %u was taken on one side only",
			    name, row->number);
	else if (e[0]->claimed_len == e[1]->claimed_len && e[0]->key != e[1]->key)
		reasons_add(&diff->reasons, REASON_claimed_len_mismatch,
			    "%s: occurrence %u claims one length, %lld, for two keys", name, row->number,
			    (long long)e[0]->claimed_len);
	else
		reasons_add(&diff->reasons, REASON_claimed_len_mismatch, "%s: occurrence %u claims %lld and %lld%s",
			    name, row->number, (long long)e[0]->claimed_len, (long long)e[1]->claimed_len,
			    e[0]->key != e[1]->key ? ", and has another key" : "");
}

/* Every pair with another claim is a reason, in a row that differs elsewhere too. */
static void reasons_for_mismatches(struct diff *diff)
{
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		if (diff->row[i].verdict == ROW_INCOMPARABLE)
			reason_for_claims(diff, i);
	}
	if (diff->al.mismatched && !diff->reasons.seen[REASON_claimed_len_mismatch])
		reasons_add(&diff->reasons, REASON_claimed_len_mismatch, "%llu of the donations that pair",
			    (unsigned long long)diff->al.mismatched);
}

/* A restore without a partner is held against its own run: that it is not what was donated there no tolerance covers. */
static void judge_lone_restore(struct diff *diff, unsigned s, struct align_ref at, struct align_ref donation)
{
	const struct align_side *side = &diff->al.side[s];
	const struct model_process *p = align_process(side, at);
	const struct model_event *e = align_event(side, at), *d = align_event(side, donation);

	if (at.process != donation.process || !model_measured(p, e) || !model_measured(p, d))
		return;
	if (model_subject(p, d)->rollup == model_subject(p, e)->rollup &&
	    model_subject(p, d)->digest == model_subject(p, e)->digest)
		return;
	reasons_add(&diff->reasons, REASON_lone_restore_differs,
		    "run %c, %s/%s/%lld: restore %llu, of length %lld, does not hold what donation %llu did", "AB"[s],
		    p -> rank, p -> pool[e->pool].name, (long long)e->slot, (unsigned long long)e->id,
		    (long long)e->claimed_len, (unsigned long long)d->id);
}

/* A donation and a restore of it: of one slot, key and length. */
static uint64_t donation_name(uint32_t row, const struct model_event *e)
{
	return log_mix64(log_mix64(log_mix64(row + 1ull) + e->key) + (uint64_t)e->claimed_len);
}

/* false: out of memory. */
static bool judge_lone_restores(struct diff *diff, unsigned s)
{
	const struct align_side *side = &diff->al.side[s];
	struct map latest = { NULL, 0, 0 };
	bool fine = true;

	for (uint32_t row = 0; row < diff->al.n_rows; row++) {
		for (uint32_t i = diff->al.row[row].side[s].first; fine && i != ALIGN_NONE;
		     i = side->occurrence[i].next) {
			const struct align_occurrence *o = &side->occurrence[i];
			const struct model_event *d = align_event(side, o->at);

			if (d && !d->discarded)
				fine = map_set(&latest, donation_name(row, d), i);
			for (uint32_t k = o->restore; k != ALIGN_NONE; k = side->restore[k].next) {
				struct align_ref at = side->restore[k].at;
				uint64_t found = map_get(&latest, donation_name(row, align_event(side, at)));

				if (side->restore[k].mate == ALIGN_NONE && found != MAP_NONE)
					judge_lone_restore(diff, s, at, side->occurrence[found].at);
			}
		}
	}
	map_free(&latest);
	return fine;
}

static bool reasons_from_rows(struct diff *diff)
{
	const struct alone n = count_alone(diff);
	bool donations = alone_is_tolerated(diff, n.donations, n.all_donations);
	bool restores = alone_is_tolerated(diff, n.restores, n.all_restores);
	bool tolerated = donations && restores;

	if (!judge_lone_restores(diff, 0) || !judge_lone_restores(diff, 1))
		return false;
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		if (diff->row[i].verdict != ROW_DIFFERS && !diff->row[i].allowed && diff_row_speaks(diff, i))
			reason_for_row(diff, i, tolerated);
	}
	reasons_for_mismatches(diff);
	/* A row that differs, or that was lost, may hide what has no mate. */
	if (!tolerated && !diff->reasons.seen[REASON_slot_missing] && !diff->reasons.seen[REASON_probe_never_fired])
		reasons_add(&diff->reasons, REASON_slot_missing,
			    "%llu donations and %llu restores of run A, %llu and %llu of run B",
			    (unsigned long long)n.donations[0], (unsigned long long)n.restores[0],
			    (unsigned long long)n.donations[1], (unsigned long long)n.restores[1]);
	return true;
}

/* ---- the first divergence ---- */

static void choose_suspect(struct diff *diff)
{
	bool a = arm_promise(diff_arm(diff, 0)) == ARM_PROMISES_LAUNCHES;
	bool b = arm_promise(diff_arm(diff, 1)) == ARM_PROMISES_LAUNCHES;

	diff->told_by_arm = a != b;
	diff->suspect = a && !b ? 0 : 1;
}

bool diff_before(const struct align_side *side, struct align_ref a, struct align_ref b)
{
	const struct model_event *x = align_event(side, a), *y = align_event(side, b);

	if (a.process == b.process)
		return x->id < y->id;
	return x->t_ns < y->t_ns;
}

static void find_first(struct diff *diff)
{
	const struct align_side *side = &diff->al.side[diff->suspect];

	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		const struct diff_row *row = &diff->row[i];

		if (row->verdict != ROW_DIFFERS)
			continue;
		if (diff->has_first &&
		    !diff_before(side, row->shown[diff->suspect], diff->row[diff->first_row].shown[diff->suspect]))
			continue;
		diff->has_first = true;
		diff->first_row = i;
	}
	for (uint32_t i = 0; diff->has_first && i < side->n_occurrences; i++) {
		const struct align_occurrence *o = &side->occurrence[i];

		if (!o->equal || o->at.event == ALIGN_NONE ||
		    !diff_before(side, o->at, diff->row[diff->first_row].shown[diff->suspect]))
			continue;
		if (diff->has_last_equal && diff_before(side, o->at, side->occurrence[diff->last_equal].at))
			continue;
		diff->has_last_equal = true;
		diff->last_equal = i;
	}
}

/* ---- all of it ---- */

/* One reason for all rows: the rows themselves follow. */
static void reason_for_difference(struct diff *diff)
{
	const struct diff_row *row = &diff->row[diff->first_row];
	char name[256];

	if (!diff->has_first)
		return;
	diff_row_name(diff, diff->first_row, name, sizeof name);
	reasons_add(&diff->reasons, REASON_slot_differs, "%llu of %llu slots, first %s, occurrence %u%s",
		    (unsigned long long)diff->summary.differs, (unsigned long long)diff->summary.slots, name,
		    row->number, row->shows_restore ? ", when restored" : "");
}

/* Whatever went unsaid above: what was not compared may not pass as equal. */
static void judge_silence(struct diff *diff)
{
	uint64_t open = 0;

	if (reasons_exit_status(&diff->reasons))
		return;
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		enum row_verdict verdict = diff->row[i].verdict;

		/* Missing rows that were neither allowed nor tolerated have their reason. */
		open += verdict != ROW_EQUAL && !row_is_missing(verdict) && !diff->row[i].allowed;
	}
	if (open)
		reasons_add(&diff->reasons, REASON_skipped_needed, "%llu slots could not be compared",
			    (unsigned long long)open);
	else if (!diff->measured)
		reasons_add(&diff->reasons, REASON_nothing_measured, "%s", "");
}

/* Which of the rows are near enough, and which no farther apart than noise. */
static int judge_near(struct diff *diff, struct error *err)
{
	size_t n[3] = { 0 };

	if (!diff->summary.differs || !(diff->tolerance.asked || diff->noise.known))
		return 0;
	if (tolerance_judge(diff, err) != 0)
		return -1;
	judge_rows(diff);
	n[NEAR_RTOL] = diff->tolerance.within;
	n[NEAR_NOISE] = diff->noise.within;
	if (n[NEAR_RTOL])
		reasons_add(&diff->reasons, REASON_within_tolerance,
			    "%zu of %llu donations and restores that differ; the tolerance is %g", n[NEAR_RTOL],
			    (unsigned long long)diff->tolerance.pairs, diff->tolerance.rtol);
	if (n[NEAR_NOISE])
		reasons_add(&diff->reasons, REASON_within_noise,
			    "%zu of %llu donations and restores that differ; of the same arm twice %llu differ",
			    n[NEAR_NOISE], (unsigned long long)diff->noise.pairs,
			    (unsigned long long)diff->noise.noisy);
	return 0;
}

/* Two arms that promise no launches are told apart by how they were started alone. */
static void judge_config(struct diff *diff)
{
	const char *a = diff_arm(diff, 0), *b = diff_arm(diff, 1);

	if (diff->config.known && !json_array_size(diff->config.differences) && a && b && strcmp(a, b) != 0 &&
	    arm_promise(a) == ARM_PROMISES_NONE && arm_promise(b) == ARM_PROMISES_NONE)
		reasons_add(&diff->reasons, REASON_switch_had_no_effect,
			    "%s and %s were started with the same command line, options and environment", a, b);
}

const char *diff_config_note(const struct diff *diff)
{
	const char *a = diff_arm(diff, 0), *b = diff_arm(diff, 1);
	size_t n = json_array_size(diff->config.differences);

	if (!diff->config.known || !a || !b)
		return NULL;
	if (strcmp(a, b) == 0)
		return n ? "two runs of one arm that were not started alike" : NULL;
	if (n > 1)
		return "not a single-variable experiment: more than one thing differs in how the runs were started";
	return n ? NULL : "nothing that was recorded differs in how the runs were started: where is the switch?";
}

static int judge(struct diff *diff, const struct options *options, struct error *err)
{
	if (mark_allowed(diff, options, err) != 0)
		return -1;
	judge_rows(diff);
	if (judge_near(diff, err) != 0)
		return -1;
	judge_config(diff);
	if (judge_validity(diff) != 0) {
		error_set(err, "out of memory");
		return -1;
	}
	for (unsigned s = 0; s < 2; s++) {
		struct coverage_excuse *excuse = excuse_of(diff, s);
		struct coverage_ask ask = { .run = s ? "B" : "A", .launches = true, .excuse = excuse };

		if (!excuse) {
			error_set(err, "out of memory");
			return -1;
		}
		coverage_judge(&diff->run[s], &ask, options, &diff->reasons);
		free(excuse);
	}
	if (!judge_sides(diff) || !reasons_from_rows(diff)) {
		error_set(err, "out of memory");
		return -1;
	}
	choose_suspect(diff);
	find_first(diff);
	reason_for_difference(diff);
	judge_silence(diff);
	if (diff->noise.asked && !diff->noise.known)
		reasons_add(&diff->reasons, REASON_noise_unknown, "%s", diff->noise.why);
	if (diff->shallow)
		return 0;
	if (explain_rows(diff, err) != 0)
		return -1;
	find_patterns(diff, ALIGN_NONE, &diff->patterns);
	if (find_findings(diff) == 0)
		return 0;
	error_set(err, "out of memory");
	return -1;
}

static enum align_mode mode_asked(const struct options *options)
{
	const char *text = options_text(options, "align");

	for (int mode = ALIGN_SLOT; text && mode <= ALIGN_ORDER; mode++) {
		if (strcmp(text, align_mode_name(mode)) == 0)
			return (enum align_mode)mode;
	}
	return ALIGN_AUTO;
}

static bool has_watched(const struct model *model)
{
	for (size_t i = 0; i < model->n_processes; i++) {
		for (size_t k = 0; k < model->process[i].n_prints; k++) {
			if (model->process[i].print[k].role == LOG_ROLE_WATCHED)
				return true;
		}
	}
	return false;
}

/* The first row whose slot was not written where it should have been. ALIGN_NONE. */
static uint32_t unwritten_row(const struct diff *diff)
{
	for (uint32_t i = 0; i < diff->al.n_rows; i++) {
		for (uint32_t k = 0; k < diff->row[i].n_explain; k++) {
			if (diff->row[i].explain[k].kind == EXPLAIN_ZERO ||
			    diff->row[i].explain[k].kind == EXPLAIN_STALE)
				return i;
		}
	}
	return ALIGN_NONE;
}

static bool hint_of_watch(const struct diff *diff, char *out, size_t size)
{
	uint32_t row = unwritten_row(diff);
	const struct model_pool *pool;
	long long slot;

	if (row == ALIGN_NONE || has_watched(&diff->run[0]) || has_watched(&diff->run[1]))
		return false;
	pool = diff->al.group[diff->al.row[row].group].layout[diff->suspect];
	slot = pool ? (long long)pool->first_slot : 0;
	snprintf(out, size, "record again with --watch-slot %lld: a write that went to slot %lld would be seen there",
		 slot, slot);
	return true;
}

/* Two names of which neither promises anything: that graphs made the difference, or none, is not what was compared. */
static bool hint_of_arms(const struct diff *diff, char *out, size_t size)
{
	const char *a = diff_arm(diff, 0), *b = diff_arm(diff, 1);

	if (!a || !b || strcmp(a, b) == 0 || arm_promise(a) != ARM_PROMISES_NOTHING ||
	    arm_promise(b) != ARM_PROMISES_NOTHING)
		return false;
	snprintf(out, size,
		 "neither arm promises graphs or none: with --arm graph-on and --arm graph-off it would be proven that "
		 "one "
		 "had them");
	return true;
}

bool diff_hint(const struct diff *diff, char *out, size_t size)
{
	return hint_of_watch(diff, out, size) || hint_of_arms(diff, out, size);
}

static bool is_one_folder(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A page shows every donation, and where no slot need be the mate of its like nothing can be folded. */
static bool may_fold(const struct options *options)
{
	return !options->html && (mode_asked(options) == ALIGN_AUTO || mode_asked(options) == ALIGN_SLOT) &&
	       !options_text(options, "noise") && !options_text(options, "third") && !settle_asked("whole");
}

static int open_whole(struct diff *diff, const char *a, const char *b, struct error *err)
{
	if (model_open(&diff->run[0], a, err) != 0)
		return -1;
	if (is_one_folder(a, b)) {
		error_set(err, "'%s' and '%s' are one run, which cannot be compared with itself: record a second one",
			  a, b);
		return -1;
	}
	return model_open(&diff->run[1], b, err);
}

/* Two runs, without noise and without a third. */
static int compare(struct diff *diff, const char *a, const char *b, const struct options *options, struct error *err)
{
	bool folded = may_fold(options) && !is_one_folder(a, b) && fold_runs(&diff->run[0], &diff->run[1], a, b);

	if (!folded && settle_asked("folded")) {
		error_set(err, "'%s' and '%s' cannot be folded", a, b);
		return -1;
	}
	if (!folded && open_whole(diff, a, b, err) != 0)
		return -1;
	if (align_runs(&diff->al, &diff->run[0], &diff->run[1], mode_asked(options)) != 0)
		goto no_memory;
	diff->row = calloc(diff->al.n_rows + 1, sizeof *diff->row);
	if (!diff->row || !config_compare(&diff->config, &diff->run[0].run.manifest, &diff->run[1].run.manifest))
		goto no_memory;
	return 0;
no_memory:
	error_set(err, "out of memory");
	return -1;
}

/* A comparison beside the main one: its verdict and its pairs, and no explanations. NULL with *err set. */
static struct diff *compare_beside(const char *a, const char *b, const struct options *options, struct error *err)
{
	struct diff *diff = calloc(1, sizeof *diff);

	if (!diff) {
		error_set(err, "out of memory");
		return NULL;
	}
	diff->shallow = true;
	if (compare(diff, a, b, options, err) == 0 && judge(diff, options, err) == 0)
		return diff;
	diff_free(diff);
	free(diff);
	return NULL;
}

/* Which of the two runs a second one of its arm was given for: of B where both are of that arm. -1: neither. */
static int arm_of_noise(const struct diff *diff, const char *arm)
{
	for (int s = 1; s >= 0; s--) {
		if (arm && diff_arm(diff, (unsigned)s) && strcmp(arm, diff_arm(diff, (unsigned)s)) == 0)
			return s;
	}
	return -1;
}

static int measure_noise(struct diff *diff, const char *path, const struct options *options, struct error *err)
{
	struct noise *noise = &diff->noise;
	struct manifest second;
	struct diff *beside;
	int side, status;

	noise->asked = true;
	if (manifest_read(&second, path, err) != 0)
		return -1;
	side = arm_of_noise(diff, second.arm);
	manifest_free(&second);
	if (side < 0) {
		snprintf(noise->why, sizeof noise->why, "the run for noise is of neither run's arm");
		return 0;
	}
	noise->side = (unsigned)side;
	beside = compare_beside(diff->run[side].run.path, path, options, err);
	if (!beside)
		return -1;
	status = diff_exit_status(beside);
	if (status == EXIT_NOT_PROVEN)
		snprintf(noise->why, sizeof noise->why, "the two runs of one arm cannot be compared (%s)",
			 beside->reasons.n ? reason_rows[beside->reasons.list[0].code].code : "?");
	status = status == EXIT_NOT_PROVEN ? 0 : noise_measure(noise, beside, err);
	diff_free(beside);
	free(beside);
	return status;
}

static int compare_third(struct diff *diff, const char *path, const struct options *options, struct error *err)
{
	for (unsigned s = 0; s < 2; s++) {
		diff->third[s] = compare_beside(diff->run[s].run.path, path, options, err);
		if (!diff->third[s])
			return -1;
	}
	return 0;
}

int diff_runs(struct diff *diff, const char *a, const char *b, const struct options *options, struct error *err)
{
	const char *noise = options_text(options, "noise"), *third = options_text(options, "third");

	memset(diff, 0, sizeof *diff);
	diff->tolerance.asked = options_given(options, "rtol");
	diff->tolerance.rtol = options_real(options, "rtol", 0);
	if (compare(diff, a, b, options, err) == 0 && (!noise || measure_noise(diff, noise, options, err) == 0) &&
	    judge(diff, options, err) == 0 && (!third || compare_third(diff, third, options, err) == 0))
		return 0;
	diff_free(diff);
	return -1;
}

void diff_free(struct diff *diff)
{
	for (unsigned s = 0; s < 2; s++) {
		if (diff->third[s])
			diff_free(diff->third[s]);
		free(diff->third[s]);
	}
	for (size_t i = 0; diff->row && i < diff->al.n_rows; i++)
		free(diff->row[i].plane);
	free(diff->row);
	free(diff->finding);
	noise_free(&diff->noise);
	map_free(&diff->near);
	config_free(&diff->config);
	align_free(&diff->al);
	reasons_free(&diff->reasons);
	model_close(&diff->run[0]);
	model_close(&diff->run[1]);
	memset(diff, 0, sizeof *diff);
}

int diff_exit_status(const struct diff *diff)
{
	return reasons_exit_status(&diff->reasons);
}

const char *diff_verdict(const struct diff *diff)
{
	switch (diff_exit_status(diff)) {
	case EXIT_HOLDS:
		return "equal";
	case EXIT_DIFFERS:
		return "differs";
	default:
		return "not_proven";
	}
}
