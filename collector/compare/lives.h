/* SPDX-License-Identifier: Apache-2.0
 *
 * lives.h: which groups are lives of one rank: a process that was started again has a pool of the same rank and name, in slots
 * that are handed out anew.
 */
#ifndef COMPARE_LIVES_H
#define COMPARE_LIVES_H

#include "compare/align.h"

/* Gives each group its kin. Groups of one rank and pool name are kin where they have one layout and cannot be two ranks that
 * say nothing of it: they say their rank, or came one after the other. false: out of memory. */
bool lives_find(struct alignment *al);

/* How many lives of that group's rank and pool there are in run s, whether they are kin or not. */
uint32_t lives_count(const struct alignment *al, uint32_t group, unsigned s);

/* Whether donations of one life may have mates in another, by the way that is used. */
bool lives_mix(const struct alignment *al, uint32_t group);

#endif
