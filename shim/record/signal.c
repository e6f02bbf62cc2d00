/* SPDX-License-Identifier: Apache-2.0
 *
 * signal.c: keeps a signal that our own writing provokes from the server, whose thread we write on.
 *
 * The kernel sends SIGXFSZ to the thread whose write goes over RLIMIT_FSIZE, and its default is to kill. One that was
 * pending before is the server's and stays.
 */
#include "internal.h"

#include <pthread.h>
#include <time.h>

#include "shim/compat.h"

#define RESTORE_TRIES 4u

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

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	held->blocked = !pthread_sigmask(SIG_BLOCK, &set, &held->before);
	held->pending = !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
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
	if (!held->pending)
		record_signal_swallow(SIGXFSZ);
	record_signals_restore(&held->before);
}
