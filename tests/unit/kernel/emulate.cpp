/* SPDX-License-Identifier: Apache-2.0
 *
 * emulate.cpp: the emulator of emulator.h around the kernel's source.
 */
#include "tests/unit/kernel/emulate.h"
#include "tests/unit/kernel/emulator.h"

/* in a namespace: some of its names are those of the host twin */
namespace
{
#include "probes/core/kernel/fingerprint.cu"
}

#include <ucontext.h>
#include <vector>

struct emulated_index threadIdx, blockIdx;
unsigned char emulated_exchange[1024][16];

#define STACK_BYTES (64 * 1024)

struct barrier {
	unsigned arrived, generation;
	int sum, result;
};

static ucontext_t scheduler, fibers[FP_THREADS];
static char *stacks;
static bool live[FP_THREADS];
static unsigned n_live, warp_live[FP_THREADS / 32];
static struct barrier block_barrier, warp_barrier[FP_THREADS / 32];
static const struct fp_launch *running;
void (*emulate_before_turn)(void);

static void release(struct barrier *b, unsigned want)
{
	if (!b->arrived || b->arrived != want)
		return;
	b->result = b->sum;
	b->arrived = 0;
	b->sum = 0;
	b->generation++;
}

static int wait_at(struct barrier *b, const unsigned *want, int p)
{
	const uint32_t self = threadIdx.x;
	const unsigned generation = b->generation;
	b->arrived++;
	b->sum += p != 0;
	release(b, *want);
	while (b->generation == generation)
		swapcontext(&fibers[self], &scheduler);
	return b->result;
}

int emulated_barrier(int p)
{
	return wait_at(&block_barrier, &n_live, p);
}

void emulated_warp_barrier(void)
{
	wait_at(&warp_barrier[threadIdx.x / 32], &warp_live[threadIdx.x / 32], 0);
}

static void fiber(void)
{
	slotprobe_fingerprint(*running);
	const uint32_t self = threadIdx.x;
	live[self] = false;
	n_live--;
	warp_live[self / 32]--;
	release(&block_barrier, n_live); /* who has left counts as arrived */
	release(&warp_barrier[self / 32], warp_live[self / 32]);
}

static void shuffle(std::vector<uint32_t> &order, uint64_t *seed)
{
	for (uint32_t i = 0; i < order.size(); i++)
		order[i] = i;
	for (uint32_t i = (uint32_t)order.size(); *seed && i > 1; i--) {
		*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
		std::swap(order[i - 1], order[(*seed >> 33) % i]);
	}
}

static void run_block(uint64_t *seed)
{
	std::vector<uint32_t> order(FP_THREADS);
	shuffle(order, seed);
	n_live = FP_THREADS;
	for (uint32_t i = 0; i < FP_THREADS; i++) {
		live[i] = true;
		warp_live[i / 32] = 32;
		getcontext(&fibers[i]);
		fibers[i].uc_stack.ss_sp = stacks + (size_t)i * STACK_BYTES;
		fibers[i].uc_stack.ss_size = STACK_BYTES;
		fibers[i].uc_link = &scheduler;
		makecontext(&fibers[i], fiber, 0);
	}
	/* a barrier that not all reach shows as a test that does not end: bounded */
	for (unsigned turn = 0; n_live; turn++) {
		if (turn > 100000)
			abort();
		for (uint32_t i : order) {
			if (!live[i])
				continue;
			threadIdx.x = i;
			if (emulate_before_turn)
				emulate_before_turn();
			swapcontext(&scheduler, &fibers[i]);
		}
	}
}

void emulate_launch(const struct fp_launch *launch, uint64_t order_seed, void (*before_block)(void *arg, uint32_t done),
		    void *arg)
{
	const uint32_t grid = launch->n_chunks;
	std::vector<uint32_t> order(grid);
	if (!stacks)
		stacks = (char *)malloc((size_t)FP_THREADS * STACK_BYTES);
	running = launch;
	shuffle(order, &order_seed);
	for (uint32_t i = 0; i < grid; i++) {
		if (before_block)
			before_block(arg, i);
		blockIdx.x = order[i];
		run_block(&order_seed);
	}
}

void emulate_ready(uint64_t word, uint32_t value)
{
	slotprobe_ready(word, value);
}
