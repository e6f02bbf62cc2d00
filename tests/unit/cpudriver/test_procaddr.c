/* SPDX-License-Identifier: Apache-2.0
 *
 * test_procaddr.c: cuGetProcAddress by name, version and flag; modules that cannot be loaded; the driver in a forked
 * child, at exit, and its counters.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"

static const struct {
	const char *name;
	int version;
	uint64_t flags;
	const char *symbol; /* NULL: none */
	int status;
} answers[] = {
	{ "cuGetProcAddress", 11030, 0, "cuGetProcAddress", CUX_PROC_FOUND },
	{ "cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2", CUX_PROC_FOUND },
	{ "cuGraphLaunch", 10000, 0, "cuGraphLaunch", CUX_PROC_FOUND },
	{ "cuGraphLaunch", 10000, CUX_PROC_LEGACY, "cuGraphLaunch", CUX_PROC_FOUND },
	{ "cuGraphLaunch", 10000, CUX_PROC_PER_THREAD, "cuGraphLaunch_ptsz", CUX_PROC_FOUND },
	{ "cuGraphLaunch", 9000, 0, NULL, CUX_PROC_TOO_NEW },
	{ "cuGraphInstantiate", 10000, 0, "cuGraphInstantiate", CUX_PROC_FOUND },
	{ "cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2", CUX_PROC_FOUND },
	{ "cuGraphInstantiate", 12000, 0, "cuGraphInstantiate_v2", CUX_PROC_FOUND },
	{ "cuGraphInstantiate", 13000, 2, "cuGraphInstantiate_v2", CUX_PROC_FOUND },
	{ "cuGraphInstantiateWithFlags", 11040, 0, "cuGraphInstantiateWithFlags", CUX_PROC_FOUND },
	{ "cuGraphInstantiateWithFlags", 11030, 0, NULL, CUX_PROC_TOO_NEW },
	{ "cuGraphInstantiateWithParams", 12000, 0, "cuGraphInstantiateWithParams", CUX_PROC_FOUND },
	{ "cuGraphInstantiateWithParams", 12000, 2, "cuGraphInstantiateWithParams_ptsz", CUX_PROC_FOUND },
	{ "cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture", CUX_PROC_FOUND },
	{ "cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2", CUX_PROC_FOUND },
	{ "cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz", CUX_PROC_FOUND },
	{ "cuStreamGetCaptureInfo", 10010, 0, "cuStreamGetCaptureInfo", CUX_PROC_FOUND },
	{ "cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2", CUX_PROC_FOUND },
	{ "cuStreamGetCaptureInfo", 12030, 2, "cuStreamGetCaptureInfo_v3_ptsz", CUX_PROC_FOUND },
	{ "cuGraphExecUpdate", 10020, 0, "cuGraphExecUpdate", CUX_PROC_FOUND },
	{ "cuGraphExecUpdate", 12000, 0, "cuGraphExecUpdate_v2", CUX_PROC_FOUND },
	{ "cuGraphKernelNodeGetParams", 11080, 0, "cuGraphKernelNodeGetParams", CUX_PROC_FOUND },
	{ "cuGraphKernelNodeGetParams", 12000, 0, "cuGraphKernelNodeGetParams_v2", CUX_PROC_FOUND },
	{ "cuGraphAddDependencies", 12020, 0, "cuGraphAddDependencies", CUX_PROC_FOUND },
	{ "cuGraphAddDependencies", 12030, 0, "cuGraphAddDependencies_v2", CUX_PROC_FOUND },
	{ "cuMemFree", 3020, 0, "cuMemFree_v2", CUX_PROC_FOUND },
	{ "cuMemFree", 2000, 0, "cuMemFree", CUX_PROC_FOUND },
	{ "cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds", CUX_PROC_FOUND },
	{ "cuMemcpyHtoD", 3020, 2, NULL, CUX_PROC_TOO_NEW },
	{ "cuCtxCreate", 11040, 0, "cuCtxCreate_v3", CUX_PROC_FOUND },
	{ "cuCtxCreate", 12040, 0, "cuCtxCreate_v3", CUX_PROC_FOUND },
	{ "cuCtxCreate", 13000, 0, "cuCtxCreate_v4", CUX_PROC_FOUND },
	{ "cuCtxSynchronize", 12080, 0, "cuCtxSynchronize", CUX_PROC_FOUND },
	{ "cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2", CUX_PROC_FOUND },
	{ "cuStreamGetCtx", 12050, 0, "cuStreamGetCtx_v2", CUX_PROC_FOUND },
	{ "cuGraphLaunch_ptsz", 13000, 0, NULL, CUX_PROC_UNKNOWN },
	{ "cuMemAlloc_v2", 13000, 0, NULL, CUX_PROC_UNKNOWN },
	{ "cuNoSuchThing", 13000, 0, NULL, CUX_PROC_UNKNOWN },
};

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		void *expected = answers[i].symbol ? dlsym(RTLD_DEFAULT, answers[i].symbol) : NULL;
		void *fn = (void *)1;
		int status = -1;

		if (answers[i].symbol && !expected)
			fail_msg("%s is not exported", answers[i].symbol);
		OK(cuGetProcAddress_v2(answers[i].name, &fn, answers[i].version, answers[i].flags, &status));
		if (fn != expected || status != answers[i].status)
			fail_msg("%s at %d, flags %d: not %s, status %d", answers[i].name, answers[i].version,
				 (int)answers[i].flags, answers[i].symbol ? answers[i].symbol : "NULL", status);
		assert_int_equal(cuGetProcAddress(answers[i].name, &fn, answers[i].version, answers[i].flags),
				 expected ? CU_SUCCESS : CU_NOT_FOUND);
		assert_ptr_equal(fn, expected);
	}
	assert_int_equal(cuGetProcAddress_v2("cuInit", NULL, 13000, 0, NULL), CU_INVALID_VALUE);
	OK(cuGetProcAddress_v2("cuInit", &(void *) { 0 }, 13000, 0, NULL));
	/* newer than the driver */
	assert_int_equal(cuGetProcAddress_v2("cuInit", &(void *) { 0 }, 13010, 0, NULL), CU_INVALID_VALUE);
}

/* What is not implemented exists, and refuses. */
static void test_missing(void **state)
{
	(void)state;
	assert_null(dlsym(RTLD_DEFAULT, "cuNoSuchThing"));
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "cuMulticastCreate"), (void *)cuMulticastCreate);
	assert_int_equal(cuMulticastCreate(), CU_NOT_SUPPORTED);
	assert_int_equal(cuGraphAddExternalSemaphoresWaitNode(NULL, NULL, NULL, 0, NULL), CU_NOT_SUPPORTED);
}

static cu_result load(const char *text)
{
	cu_module module;

	return cuModuleLoadData(&module, text);
}

static void test_modules(void **state)
{
	cu_module module;
	cu_function f;

	(void)state;
	assert_int_equal(load("hello"), CUX_INVALID_IMAGE);
	assert_int_equal(load(""), CUX_INVALID_IMAGE);
	assert_int_equal(load("\177ELF\2\1\1"), CUX_NO_BINARY_FOR_GPU);
	assert_int_equal(load(".version 7.0\n"), CUX_INVALID_PTX);
	assert_int_equal(load(".version 7.0 .target sm_120 .address_size 64"), CUX_NO_BINARY_FOR_GPU);
	assert_int_equal(load(".version 7.0 .target sm_70 .address_size 64 nonsense"), CUX_INVALID_PTX);
	assert_int_equal(load(".version 99.0 .target sm_70"), 222);
	assert_int_equal(load(".version 7.0 .target sm_70 .visible .entry k(.param .u65 a) {}"), CUX_INVALID_PTX);
	assert_int_equal(load(".version 7.0 .target sm_70 .visible .entry k(.param .u64 a"), CUX_INVALID_PTX);
	OK(cuModuleLoadData(&module, kernels_ptx));
	assert_int_equal(cuModuleGetFunction(&f, module, "nonsense"), CU_NOT_FOUND);
	assert_int_equal(cuModuleGetFunction(&f, module, "nothing"), CU_NOT_FOUND); /* no host code */
	OK(cuModuleGetFunction(&f, module, "append"));
	OK(cuModuleUnload(module));
	assert_int_equal(cuModuleUnload(module), CUX_INVALID_HANDLE);
	assert_int_equal(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]) { 0, 0 }, NULL), CUX_INVALID_HANDLE);
}

static void test_bad_launches(void **state)
{
	cu_deviceptr list = device_new(64);
	void *params[] = { &list, &(uint32_t) { 1 } };
	uint64_t buffer[2] = { list, 0 };
	size_t bytes = 16;
	void *extra[] = { CU_EXTRA_BUFFER, buffer, CU_EXTRA_SIZE, &bytes, CU_EXTRA_END };
	struct cux_launch_attribute cluster = { .id = CUX_ATTR_CLUSTER, .value = { .cluster = { 3, 1, 1 } } };
	struct cux_launch_config config = { { 1, 1, 1 }, { 1, 1, 1 }, 0, NULL, NULL, 0 };

	(void)state;
	assert_int_equal(cuLaunchKernel(append, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CU_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(append, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL), CU_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUX_LAUNCH_OUT_OF_RESOURCES);
	bytes = 8; /* what is missing of the parameters is not missed */
	OK(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	/* much shared memory is for who asked for it */
	assert_int_equal(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 65536, NULL, params, NULL), CU_INVALID_VALUE);
	OK(cuFuncSetAttribute(append, 8, 65536));
	OK(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 65536, NULL, params, NULL));
	assert_int_equal(cuFuncSetAttribute(append, 8, 1 << 20), CU_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel((cu_function)params, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			 CUX_INVALID_HANDLE);
	OK(cuLaunchKernelEx(&config, append, params, NULL));
	config.attributes = &cluster;
	config.n_attributes = 1;
	assert_int_equal(cuLaunchKernelEx(&config, append, params, NULL), CUX_INVALID_CLUSTER_SIZE);
	OK(cuCtxSynchronize());
}

static void test_errors_have_names(void **state)
{
	const char *text;

	(void)state;
	OK(cuGetErrorName(CU_CAPTURE_IMPLICIT, &text));
	assert_string_equal(text, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT");
	OK(cuGetErrorString(CU_SUCCESS, &text));
	assert_string_equal(text, "no error");
	assert_int_equal(cuGetErrorName(12345, &text), CU_INVALID_VALUE);
	assert_null(text);
}

static void test_device(void **state)
{
	char name[64];
	int value;

	(void)state;
	OK(cuDeviceGetName(name, sizeof(name), 0));
	assert_string_equal(name, "slotprobe CPU driver");
	OK(cuDriverGetVersion(&value));
	assert_int_equal(value, 13000);
	OK(cuDeviceGetAttribute(&value, CU_ATTRIBUTE_CAPABILITY_MAJOR, 0));
	assert_int_equal(value, 9);
	OK(cuDeviceGetCount(&value));
	assert_int_equal(value, 1);
	assert_int_equal(cuDeviceGetName(name, sizeof(name), 1), CUX_INVALID_DEVICE);
}

/* ---- other processes: each is this program again, in a role ---- */

static void run_role(const char *role, int expected_status)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		char path[4096];
		ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

		if (n < 0)
			_exit(99);
		path[n] = 0;
		execl(path, path, role, (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), expected_status);
}

/* Exits while a kernel runs that never ends, and more waits behind it. */
static int role_exit_busy(void)
{
	cu_deviceptr list;

	alarm(20);
	device_setup(NULL);
	list = device_new(64);
	launch_hold(NULL, new_flag());
	launch_append(NULL, list, 1);
	return 7;
}

static int role_fork_child(void)
{
	int status;
	pid_t pid;

	alarm(20);
	device_setup(NULL);
	pid = fork();
	if (!pid) {
		cu_context ctx;

		_exit(cuInit(0) == CU_NOT_INITIALIZED && cuCtxGetCurrent(&ctx) == CU_NOT_INITIALIZED ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int role_fork_then_init(void)
{
	int status;
	pid_t pid = fork();

	alarm(20);
	if (!pid) {
		cu_context ctx;

		_exit(cuCtxGetCurrent(&ctx) == CU_NOT_INITIALIZED && !cuInit(0) && !cuCtxGetCurrent(&ctx) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int role_count(void)
{
	int n;

	cuInit(0);
	for (int i = 0; i < 5; i++)
		cuDeviceGetCount(&n);
	return n;
}

static void test_exit(void **state)
{
	(void)state;
	run_role("exit-busy", 7);
	run_role("fork-child", 0);
	run_role("fork-then-init", 0);
}

static void test_counts(void **state)
{
	char pattern[] = "/tmp/cpudriver-counts-XXXXXX", line[128];
	bool counted = false, zero = false;
	FILE *file;

	(void)state;
	close(mkstemp(pattern));
	setenv("CPUDRIVER_COUNTS", pattern, 1);
	setenv("CPUDRIVER_DEVICES", "3", 1);
	run_role("count", 3);
	unsetenv("CPUDRIVER_COUNTS");
	unsetenv("CPUDRIVER_DEVICES");
	file = fopen(pattern, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		counted |= !strcmp(line, "cuDeviceGetCount 5\n");
		zero |= !strcmp(line, "cuGraphLaunch_ptsz 0\n");
	}
	fclose(file);
	unlink(pattern);
	assert_true(counted);
	assert_true(zero);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_bad_launches),
		cmocka_unit_test(test_errors_have_names),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_counts),
	};

	if (argc > 1 && !strcmp(argv[1], "exit-busy"))
		return role_exit_busy();
	if (argc > 1 && !strcmp(argv[1], "fork-child"))
		return role_fork_child();
	if (argc > 1 && !strcmp(argv[1], "fork-then-init"))
		return role_fork_then_init();
	if (argc > 1 && !strcmp(argv[1], "count"))
		return role_count();
	return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
