/* SPDX-License-Identifier: Apache-2.0
 *
 * planted.c: what the hot path must not have, planted: a loop, a lock and an allocation in front of every launch and every claim. It is
 * linked into a library of its own, whose launch.o and usual.o have their functions under other names.
 */
#include <pthread.h>
#include <stdlib.h>

#include "probes/core/core.h"
#include "probes/core/graph.h"

cu_result planted_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result);
cu_result planted_own_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result);
int64_t planted_claim_usual(enum log_event_kind kind, struct ctr_row *row, const struct slotprobe_claim *claim);

static void waste(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	void *volatile memory = malloc(24); /* volatile: or the compiler leaves both out */

	pthread_mutex_lock(&lock);
	for (volatile int i = 0; i < 10; i++)
		;
	pthread_mutex_unlock(&lock);
	free(memory);
}

cu_result probe_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	waste();
	return planted_launch_end(exec, stream, result);
}

cu_result probe_own_launch_end(cu_graph_exec exec, cu_stream stream, cu_result result)
{
	waste();
	return planted_own_launch_end(exec, stream, result);
}

int64_t probe_claim_usual(enum log_event_kind kind, struct ctr_row *row, const struct slotprobe_claim *claim)
{
	waste();
	return planted_claim_usual(kind, row, claim);
}
