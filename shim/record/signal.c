/* SPDX-License-Identifier: Apache-2.0
 *
 * signal.c: keeps a signal that our own writing provokes from the server, whose thread we write on.
 *
 * The kernel sends SIGXFSZ to the thread whose write goes over RLIMIT_FSIZE, SIGPIPE to one that writes where nobody reads, and
 * their default is to kill. One that was pending before is the server's and stays.
 */
#include "internal.h"

#include <pthread.h>
#include <time.h>

#include "shim/compat.h"

#define RESTORE_TRIES 4u

static const int provoked[RECORD_PROVOKED] = { SIGXFSZ, SIGPIPE };

void record_signal_swallow(int number)
{
	const struct timespec now = { 0, 0 };
	sigset_t set, pending;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (!sigpending(&pending) && sigismember(&pending, number) == 1)
		(void)sigtimedwait(&set, NULL, &now);
}

void record_signals_hold(struct record_signals *held)
{
	sigset_t set, pending;
	bool known;

	sigemptyset(&set);
	for (unsigned i = 0; i < RECORD_PROVOKED; i++)
		sigaddset(&set, provoked[i]);
	held->blocked = !pthread_sigmask(SIG_BLOCK, &set, &held->before);
	known = !sigpending(&pending);
	for (unsigned i = 0; i < RECORD_PROVOKED; i++)
		held->pending[i] = known && sigismember(&pending, provoked[i]) == 1;
}

void record_signals_restore(const sigset_t *mask)
{
	for (unsigned i = 0; i < RESTORE_TRIES && pthread_sigmask(SIG_SETMASK, mask, NULL); i++)
		;
}

void record_signals_release(const struct record_signals *held)
{
	if (!held->blocked)
		return;
	for (unsigned i = 0; i < RECORD_PROVOKED; i++)
		if (!held->pending[i])
			record_signal_swallow(provoked[i]);
	record_signals_restore(&held->before);
}
