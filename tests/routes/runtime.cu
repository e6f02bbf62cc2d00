/* SPDX-License-Identifier: Apache-2.0
 *
 * runtime.cu: one route through the CUDA runtime: launches a captured graph, and says how many times; the device counts
 * too. Built with cudart linked statically and shared, for both default streams, and with -DPLUGIN as a library.
 *
 *	runtime N [threads]
 */
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>

static void check(cudaError_t result, const char *what)
{
	if (result == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
	_Exit(2);
}
#define CHECK(call) check(call, #call)

static __global__ void count(unsigned *launches)
{
	atomicAdd(launches, 1u);
}

/* On the default stream, which is the per-thread one where it was built so. */
static void launch(unsigned n, unsigned *launches)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	count<<<1, 1, 0, stream>>>(launches);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned i = 0; i < n; i++)
		CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
}

static unsigned run(unsigned n, unsigned n_threads)
{
	unsigned *launches, seen = 0;
	std::vector<std::thread> threads;

	CHECK(cudaMalloc((void **)&launches, sizeof(*launches)));
	CHECK(cudaMemset(launches, 0, sizeof(*launches)));
	CHECK(cudaDeviceSynchronize());
	for (unsigned i = 1; i < n_threads; i++)
		threads.emplace_back(launch, n, launches);
	launch(n, launches);
	for (auto &thread : threads)
		thread.join();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(&seen, launches, sizeof(seen), cudaMemcpyDeviceToHost));
	if (seen != n * n_threads) {
		fprintf(stderr, "the device counted %u launches, not %u\n", seen, n * n_threads);
		_Exit(2);
	}
	return seen;
}

#ifdef PLUGIN
extern "C" __attribute__((visibility("default"))) unsigned plugin_work(const char *, const char *, unsigned n)
{
	return run(n, 1);
}
#else
int main(int argc, char **argv)
{
	unsigned launched = run(argc > 1 ? atoi(argv[1]) : 1, argc > 2 ? atoi(argv[2]) : 1);

	printf("launches %u pid %d\n", launched, (int)getpid());
	return 0;
}
#endif
