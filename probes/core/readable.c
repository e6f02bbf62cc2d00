/* SPDX-License-Identifier: Apache-2.0
 *
 * readable.c: asks the kernel whether memory may be read, before we read it in somebody's server.
 *
 * rt_sigprocmask with a `how` that does not exist copies the 8 bytes of the set in, then refuses: EFAULT where they cannot
 * be read, and nothing is changed either way. Chosen over process_vm_readv, which refuses what a device driver mapped
 * (VM_IO, VM_PFNMAP: pinned memory may be that) and is refused by container filters; over a pipe, which needs
 * descriptors; over mincore, which knows nothing of protection or of a file that was cut.
 *
 * Long rows are first asked about by one MADV_POPULATE_READ, which makes the page faults that our reading would make, and
 * costs less than a call for each page. Its yes is believed; its no may mean an old kernel or a driver's
 * memory.
 */
#include "core.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_SUCH_HOW   0x7fffffff
#define SET_BYTES     8u
#define POPULATE_READ 22 /* MADV_POPULATE_READ, of Linux 5.14 */
#define LONG_PAGES    16u

static bool page_readable(uint64_t address)
{
	long rc = syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, (void *)(uintptr_t)(address & ~(uint64_t)(SET_BYTES - 1)),
			  NULL, SET_BYTES);

	return !(rc < 0 && errno == EFAULT);
}

static bool pages_readable(uint64_t first, uint64_t last, uint64_t page)
{
	for (uint64_t at = first;; at += page) {
		if (!page_readable(at))
			return false;
		if (last - at < page)
			return true;
	}
}

static bool populated(uint64_t first, uint64_t last, uint64_t page)
{
	const uint64_t bytes = (last - first) / page * page + page;

	return bytes >= LONG_PAGES * page && !syscall(SYS_madvise, (void *)(uintptr_t)first, bytes, POPULATE_READ);
}

bool probe_readable(uint64_t address, uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), last = address + bytes - 1;
	uint64_t first;

	if (!bytes)
		return true;
	/* Nothing lies in page 0, and to ask about it would be to give no set, which is no error. */
	if (last < address || address < page)
		return false;
	first = address & ~(page - 1);
	return populated(first, last, page) || pages_readable(first, last, page);
}
