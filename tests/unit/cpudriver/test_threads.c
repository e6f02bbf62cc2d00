/* SPDX-License-Identifier: Apache-2.0
 *
 * test_threads.c: many threads at once, each with streams, captures, graphs and memory of its own. Of most use under
 * the thread sanitizer.
 */
#include <pthread.h>

#include "device.h"

enum { THREADS = 6, ROUNDS = 20 };

#define GOOD(call)                                                                                                     \
	do {                                                                                                           \
		if ((call) != CU_SUCCESS) {                                                                            \
			__atomic_fetch_add(failures, 1, __ATOMIC_RELAXED);                                             \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)

static cu_graph record_two(cu_stream stream, cu_deviceptr list, uint32_t first)
{
	cu_graph graph = NULL;

	if (cuStreamBeginCapture_v2(stream, CU_MODE_THREAD_LOCAL))
		return NULL;
	for (uint32_t value = first; value < first + 2; value++) {
		void *params[] = { &list, (void *)&value };

		cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
	}
	cuStreamEndCapture(stream, &graph);
	return graph;
}

static void one_round(int *failures)
{
	struct cu_update_result update;
	uint32_t got[16] = { 0 };
	cu_stream stream, side;
	cu_event event;
	cu_deviceptr list;
	cu_graph one, two;
	cu_graph_exec exec;

	GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	GOOD(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	GOOD(cuEventCreate(&event, 0));
	GOOD(cuMemAlloc_v2(&list, 64));
	GOOD(cuMemsetD8Async(list, 0, 64, stream));
	one = record_two(stream, list, 1);
	two = record_two(stream, list, 3);
	GOOD(!one || !two);
	GOOD(cuGraphInstantiateWithFlags(&exec, one, 0));
	GOOD(cuGraphLaunch(exec, stream));
	GOOD(cuGraphExecUpdate_v2(exec, two, &update));
	GOOD(cuGraphLaunch(exec, side)); /* waits for its own last launch */
	GOOD(cuEventRecord(event, side));
	GOOD(cuGraphDestroy(one));
	GOOD(cuGraphDestroy(two));
	GOOD(cuGraphExecDestroy(exec));
	GOOD(cuStreamWaitEvent(CU_PER_THREAD, event, 0));
	GOOD(cuMemcpyDtoHAsync_v2(got, list, sizeof(got), CU_PER_THREAD));
	GOOD(got[0] != 4 || got[1] != 1 || got[2] != 2 || got[3] != 3 || got[4] != 4);
	GOOD(cuEventDestroy_v2(event));
	GOOD(cuStreamDestroy_v2(stream));
	GOOD(cuStreamDestroy_v2(side));
	GOOD(cuMemFreeAsync(list, CU_PER_THREAD));
}

static void *work(void *failures)
{
	if (cuCtxSetCurrent(context))
		return failures;
	for (int i = 0; i < ROUNDS; i++)
		one_round(failures);
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[THREADS];
	int failures = 0;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &failures), 0);
	for (int i = 0; i < THREADS; i++) {
		void *started;

		pthread_join(thread[i], &started);
		assert_null(started);
	}
	assert_int_equal(failures, 0);
	OK(cuCtxSynchronize());
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads) };

	return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
