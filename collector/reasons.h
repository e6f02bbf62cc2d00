/* SPDX-License-Identifier: Apache-2.0
 *
 * reasons.h: the one table of reasons for which a run or a comparison is not what was hoped: code, class, text, remedy.
 *
 * Classes: INVALID an invalid comparison (before a difference), BROKEN a measured difference or a broken invariant,
 * UNPROVEN anything else that was not proven. Precedence: INVALID 3 > BROKEN 1 > UNPROVEN 3 > 0.
 */
#ifndef COLLECTOR_REASONS_H
#define COLLECTOR_REASONS_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum reason_class { REASON_INVALID, REASON_BROKEN, REASON_UNPROVEN };

#define REASONS(X)                                                                                                     \
	X(switch_had_no_effect, INVALID, "the run did not do what its arm promises",                                   \
	  "check that the server obeyed its graph switch, then record again")                                          \
	X(arm_unknown, INVALID, "a run has no arm, or one that is misspelt",                                           \
	  "record both runs with --arm graph-on or --arm graph-off, spelt exactly so")                                 \
	X(same_process, INVALID, "a process is in both runs: one is a copy of the other",                              \
	  "record the workload twice, and give diff the two recordings")                                               \
	X(workload_mismatch, INVALID, "the two runs served different workloads",                                       \
	  "record both with the same requests and the same seed, and with fixed prompts where later ones hold "        \
	  "answers: a fault that changes one changes what follows it")                                                 \
	X(layout_mismatch, INVALID, "a pool has another layout in the other run",                                      \
	  "record both with the same model, dtype and parallelism")                                                    \
	X(no_common_slots, INVALID, "no slot was donated in both runs", "record both with the same workload")          \
	X(never_loaded, UNPROVEN, "no process recorded anything",                                                      \
	  "run 'slotprobe doctor -- CMD'; a static or setuid program, or one that never touched CUDA, cannot record")  \
	X(probe_never_fired, UNPROVEN, "a probe never fired",                                                          \
	  "check that the adapter fits the server's version and that the workload reaches that code")                  \
	X(below_expected, UNPROVEN, "a probe fired less often than expected",                                          \
	  "give a longer workload, or expect less")                                                                    \
	X(no_launch_before_donation, UNPROVEN, "no graph that touches the pool was launched before what was compared", \
	  "give requests that decode through graphs before they donate")                                               \
	X(claimed_len_mismatch, UNPROVEN, "claimed lengths do not line up",                                            \
	  "drive the server one request at a time, or align by key")                                                   \
	X(within_tolerance, UNPROVEN, "rows differ, within the tolerance that was asked for",                          \
	  "without --rtol these rows count as differences")                                                            \
	X(within_noise, UNPROVEN, "rows differ, no farther apart than two runs of one arm",                            \
	  "nothing can be said of these rows: make the server reproducible, or read them one by one")                  \
	X(noise_unknown, UNPROVEN, "the noise could not be measured",                                                  \
	  "give with --noise a second recording of one of the two arms, of the same workload")                         \
	X(slot_missing, UNPROVEN, "a donation has no partner in the other run",                                        \
	  "record both with the same workload, or name what may be missing with --allow-missing")                      \
	X(lone_restore_differs, UNPROVEN, "a restore without a partner does not hold what was donated in its run",     \
	  "something wrote the slot after its donation: 'slotprobe check RUN' shows where")                            \
	X(filtered_differs, UNPROVEN, "another number of donations or restores was left out in the other run",         \
	  "pause and resume both recordings at the same place, with the same adapters")                                \
	X(internal_error, UNPROVEN, "slotprobe counted errors of its own",                                             \
	  "this is a defect of slotprobe or a lack of memory: keep the run, and record again")                         \
	X(rank_missing, UNPROVEN, "a rank is missing in one of the runs",                                              \
	  "record every rank of both runs; where one was started again, align by key")                                 \
	X(records_dropped, UNPROVEN, "records were dropped",                                                           \
	  "lower the load (or the level, where it is above donations) or free disk space, and record again")           \
	X(log_truncated, UNPROVEN, "a log ends in the middle of a chunk, or is gone",                                  \
	  "let the server end by itself, or record again")                                                             \
	X(log_damaged, UNPROVEN, "a log has a bad checksum, a gap or a record that makes no sense", "record again")    \
	X(counters_damaged, UNPROVEN, "a counters page is missing or damaged", "record again")                         \
	X(counters_unreconciled, UNPROVEN, "attempts do not equal outcomes plus those in flight",                      \
	  "this is a defect of slotprobe or damage to the page: keep the run, and record again")                       \
	X(log_counters_disagree, UNPROVEN, "the log does not hold what the counters say it holds",                     \
	  "this is a defect of slotprobe or damage to the log: keep the run, and record again")                        \
	X(in_flight_lost, UNPROVEN, "attempts were still in flight when a process went, or was killed",                \
	  "let the server end by itself")                                                                              \
	X(not_finished, UNPROVEN, "a process was still running and had not finished when this was read",               \
	  "wait until the server is idle or has ended, then ask again")                                                \
	X(adapter_error, UNPROVEN, "an adapter's probe reported errors",                                               \
	  "it did not understand what the server did: check that the adapter fits the server's version")               \
	X(skipped_needed, UNPROVEN, "a measurement that is needed was skipped",                                        \
	  "the counters name the cause; 'slotprobe status RUN' shows them")                                            \
	X(unrouted_entry, UNPROVEN, "a driver entry resolved to an address that slotprobe does not know",              \
	  "report the driver and runtime version; launches through it were not seen")                                  \
	X(bypassed_object, UNPROVEN, "a loaded object is bound to the driver or to dlsym past slotprobe",              \
	  "record with --audit; if that was so, open the object without RTLD_DEEPBIND: what it launched was not seen") \
	X(nothing_measured, UNPROVEN, "nothing was measured",                                                          \
	  "give requests whose state is handed over for reuse, while recording is on ('slotprobe ctl RUN start')")     \
	X(never_written, BROKEN, "a donated slot was never written since its allocation",                              \
	  "the kernel that should write it wrote elsewhere: look at the call site and at slot 0")                      \
	X(restore_differs, BROKEN, "a restored state is not the one that was donated",                                 \
	  "something wrote the slot after its donation")                                                               \
	X(copy_differs, BROKEN, "a copy is not equal to its source", "look at what copies slots, and on which stream") \
	X(length_disagrees, BROKEN, "state length and key length do not agree",                                        \
	  "the state handed over belongs to another number of tokens than its key")                                    \
	X(non_finite, BROKEN, "a donated state holds NaN or Inf", "find the first event that had it in the report")    \
	X(same_hash_other_key, BROKEN, "two different keys have the same state",                                       \
	  "one of them holds the other's state, or neither was written")                                               \
	X(slot_differs, BROKEN, "a slot's state differs between the runs", "the explanation says whose bytes it holds")

enum reason_code {
#define REASON_ENUM(code, ...) REASON_##code,
	REASONS(REASON_ENUM)
#undef REASON_ENUM
		REASON_COUNT
};

struct reason_row {
	const char *code;
	enum reason_class class;
	const char *text, *remedy;
};
extern const struct reason_row reason_rows[REASON_COUNT];

/* What was found: a code and, after the table's text, what exactly. */
struct reason {
	enum reason_code code;
	char *detail; /* safe to print; "" if there is nothing to add */
};

/* At most REASONS_PER_CODE of one code are kept, the others only counted: a damaged log must not print a million lines. */
#define REASONS_PER_CODE 8
struct reasons {
	struct reason *list; /* as they were found, but what may only follow from another comes last */
	size_t n;
	size_t seen[REASON_COUNT]; /* how often each was added */
};

void reasons_add(struct reasons *reasons, enum reason_code code, const char *detail, ...)
	__attribute__((format(printf, 3, 4)));
void reasons_free(struct reasons *reasons);
size_t reasons_of_class(const struct reasons *reasons, enum reason_class class); /* how many were added */
int reasons_exit_status(const struct reasons *reasons);                /* by the precedence above: 0, 1 or 3 */
json_t *reasons_json(const struct reasons *reasons);                   /* [{code, text, remedy}] */
void reasons_print(FILE *f, const struct reasons *reasons, int color); /* text and remedy, a line each */

#endif
