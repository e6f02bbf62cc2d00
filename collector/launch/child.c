/* SPDX-License-Identifier: Apache-2.0
 *
 * child.c: fork, exec, and the forwarding of signals.
 *
 * Every signal that can be forwarded is blocked and taken one at a time with sigwaitinfo, so nothing runs in a handler. A
 * signal that the terminal sent has already reached the command, which is in our process group: only what somebody sent to
 * us alone goes on to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/child.h"

/* All but those that cannot be caught, and those that speak of a fault of our own. */
static void forwarded_set(sigset_t *set)
{
	static const int ours[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,
				    SIGTRAP, SIGSYS,  SIGABRT, SIGTTIN, SIGTTOU, SIGPIPE };

	sigfillset(set);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		sigdelset(set, ours[i]);
}

static void child_exec(char *const *argv, const sigset_t *mask, const struct sigaction *sigchld, int pipe_end)
{
	int why;

	sigaction(SIGCHLD, sigchld, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	why = errno;
	if (write(pipe_end, &why, sizeof(why)) < 0)
		_exit(126);
	_exit(127);
}

/* errno of a failed exec, 0 when it succeeded: then the pipe closes without a word. */
static int exec_result(int pipe_end)
{
	int why = 0;
	ssize_t n;

	do
		n = read(pipe_end, &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	return n == sizeof(why) ? why : 0;
}

/* The command has stopped or ended. True: it has ended. */
static bool child_changed(pid_t pid, int *status)
{
	pid_t got;

	while ((got = waitpid(pid, status, WNOHANG | WUNTRACED)) == pid || (got < 0 && errno == EINTR)) {
		if (got < 0)
			continue;
		if (!WIFSTOPPED(*status))
			return true;
		/* Stop with it, so that a shell's job control sees what it would see without us. */
		raise(SIGSTOP);
	}
	return got < 0 && errno == ECHILD;
}

static int child_wait(pid_t pid, const sigset_t *forwarded)
{
	int status = 0;

	for (;;) {
		siginfo_t info;
		int number = sigwaitinfo(forwarded, &info);

		if (number < 0)
			continue;
		if (number == SIGCHLD) {
			if (child_changed(pid, &status))
				return status;
		} else if (info.si_code != SI_KERNEL || number == SIGCONT) {
			kill(pid, number);
		}
	}
}

int child_run(char *const *argv, int *exec_errno, pid_t *pid)
{
	struct sigaction sigchld, standard = { .sa_handler = SIG_DFL };
	sigset_t forwarded, mask;
	int ends[2], status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC)) {
		*exec_errno = errno;
		return -1;
	}
	/* An inherited "ignore" of SIGCHLD would lose the command's status. The command gets it back. */
	sigaction(SIGCHLD, &standard, &sigchld);
	forwarded_set(&forwarded);
	sigprocmask(SIG_BLOCK, &forwarded, &mask);
	child = fork();
	if (!child)
		child_exec(argv, &mask, &sigchld, ends[1]);
	*exec_errno = child < 0 ? errno : 0;
	close(ends[1]);
	if (child > 0)
		*exec_errno = exec_result(ends[0]);
	close(ends[0]);
	if (pid)
		*pid = child;
	if (child > 0 && !*exec_errno)
		return child_wait(child, &forwarded);
	if (child > 0)
		waitpid(child, &status, 0);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return -1;
}
