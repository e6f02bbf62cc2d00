/* SPDX-License-Identifier: Apache-2.0
 *
 * dynamic.c: a program that knows libcuda only by dlopen: every way to an address, before and after libcuda is there.
 */
#include <link.h>

#include "check.h"

static void *libcuda;

static unsigned count(const char *symbol)
{
	unsigned (*f)(const char *) = (unsigned (*)(const char *))dlsym(libcuda, "fake_count");

	return f(symbol);
}

/* Nothing is there until libcuda is, and dlerror says so; afterwards it is, and dlerror is quiet. */
static void absent_then_there(void)
{
	static const char *const names[] = { "cuInit", "cuGraphLaunch", "cuGetProcAddress_v2", "cuMemFree_v2" };
	void *self = dlopen(NULL, RTLD_NOW);

	for (unsigned i = 0; i < 4; i++) {
		dlerror();
		CHECK(!dlsym(RTLD_DEFAULT, names[i]));
		CHECK(dlerror());
		CHECK(!dlsym(self, names[i]));
		CHECK(dlerror());
	}
	CHECK(!dlsym(RTLD_DEFAULT, "cudaGraphLaunch"));
	CHECK(dlerror());
	CHECK(!dlsym(self, "cudaGraphLaunch_ptsz"));
	/* from the program, libc finds the export of the preload, and nobody may stand between the two */
	CHECK_INT(((any_fn *)dlsym(RTLD_NEXT, "cuInit"))(0, 0, 0, 0, 0, 0), 3);
	CHECK(dlsym(RTLD_DEFAULT, "slotprobe_test_seen"));
	CHECK(!dlsym(RTLD_DEFAULT, "cuNoSuchThing"));
	CHECK(!dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY)); /* asking has not loaded it */

	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(libcuda);
	for (unsigned i = 0; i < 4; i++) {
		void *by_handle = dlsym(libcuda, names[i]);

		CHECK(by_handle);
		CHECK(!dlerror());
		CHECK(dlsym(RTLD_DEFAULT, names[i]));
		CHECK(!dlerror());
	}
	CHECK(!dlsym(libcuda, "cuNoSuchThing"));
	CHECK(dlerror());
}

/* The whole way of a runtime: dlsym for cuGetProcAddress, and everything else through that. */
static void proc_address(const char *first)
{
	static const struct {
		const char *name, *symbol;
		int version;
		uint64_t flags;
	} asked[] = {
		{ "cuGraphLaunch", "cuGraphLaunch", 10000, 0 },
		{ "cuGraphLaunch", "cuGraphLaunch", 12000, 1 },
		{ "cuGraphLaunch", "cuGraphLaunch_ptsz", 10000, 2 },
		{ "cuGraphInstantiate", "cuGraphInstantiate", 10000, 0 },
		{ "cuGraphInstantiate", "cuGraphInstantiate_v2", 11000, 0 },
		{ "cuGraphInstantiate", "cuGraphInstantiate_v2", 12000, 0 },
		{ "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags", 11040, 0 },
		{ "cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams", 12000, 0 },
		{ "cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams_ptsz", 12000, 2 },
		{ "cuGraphExecUpdate", "cuGraphExecUpdate", 11000, 0 },
		{ "cuGraphExecUpdate", "cuGraphExecUpdate_v2", 12000, 0 },
		{ "cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams", 10010, 0 },
		{ "cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2", 12000, 0 },
		{ "cuStreamBeginCapture", "cuStreamBeginCapture", 10000, 0 },
		{ "cuStreamBeginCapture", "cuStreamBeginCapture_v2_ptsz", 10010, 2 },
		{ "cuMemFree", "cuMemFree", 2000, 0 },
		{ "cuMemFree", "cuMemFree_v2", 3020, 0 },
		{ "cuInit", "cuInit", 2000, 0 },
	};
	struct seen *s = seen();
	void *p, *raw_v2, *exec = NULL;
	get_v2_fn *get;
	get_v1_fn *get_v1;
	int status = 9;

	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(libcuda);
	get = (get_v2_fn *)dlsym(libcuda, "cuGetProcAddress_v2");
	get_v1 = (get_v1_fn *)dlsym(libcuda, "cuGetProcAddress");
	CHECK(get && get_v1 && (void *)get != (void *)get_v1);
	if (!strcmp(first, "v1")) {
		/* a runtime of 11.x: from the first version it asks for the second */
		CHECK(!get_v1("cuGetProcAddress", &p, 12000, 0));
		CHECK(p == (void *)get);
		CHECK(!get_v1("cuGetProcAddress", &p, 11030, 0));
		CHECK(p == (void *)get_v1);
	}
	CHECK(!get("cuGetProcAddress", &raw_v2, 12000, 0, &status));
	CHECK(raw_v2 == (void *)get);
	CHECK_INT(status, 0);

	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		unsigned before = count(asked[i].symbol);

		if (!strcmp(first, "v1"))
			CHECK(!get_v1(asked[i].name, &p, asked[i].version, asked[i].flags));
		else
			CHECK(!get(asked[i].name, &p, asked[i].version, asked[i].flags, NULL));
		if (p != dlsym(libcuda, asked[i].symbol)) {
			fprintf(stderr, "%s at %d is not our %s\n", asked[i].name, asked[i].version, asked[i].symbol);
			exit(1);
		}
		((any_fn *)p)((uintptr_t)&exec, 2, 3, 4, 5, 6);
		CHECK_INT(count(asked[i].symbol), before + 1);
	}
	CHECK_INT(BEGINS(s), 3);
	CHECK_INT(s->instantiated, 6);
	CHECK_INT(s->updated, 2);
	CHECK_INT(s->ready, 1);
	CHECK_INT(s->releasing, 2);
	CHECK_INT(s->unrouted, 0);

	/* too old or unknown: success, null, and the driver's own status */
	CHECK(!get("cuGraphLaunch", &p, 2000, 0, &status));
	CHECK(!p && status == 2);
	CHECK(!get("cuNoSuchThing", &p, 12000, 0, &status));
	CHECK(!p && status == 1);
	CHECK_INT(s->unrouted, 0);
	/* none of ours: untouched, and not worth a word */
	CHECK(!get("cuFakeOther", &p, 14000, 0, &status));
	CHECK(p == dlsym(libcuda, "fake_launch_of_the_future"));
	CHECK_INT(s->unrouted, 0);
	/* ours by name, and an ABI that we do not know: untouched, and counted */
	CHECK(!get("cuGraphLaunch", &p, 14000, 2, &status));
	CHECK(p == dlsym(libcuda, "fake_launch_of_the_future"));
	CHECK_INT(s->unrouted, 1);
	CHECK(!strcmp(s->unrouted_name, "cuGraphLaunch") && s->unrouted_version == 14000 && s->unrouted_flags == 2);
	CHECK_INT(((int (*)(void *, void *, int))p)(NULL, NULL, 1), 4242);
}

/* dlvsym is libc's own; what it gives is real, and works. */
static void by_dlvsym(void)
{
	void *(*real)(void *, const char *) = NULL;
	launch_fn *launch;

	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(!dlvsym(libcuda, "cuGraphLaunch", "NO_SUCH_VERSION"));
#ifdef __x86_64__
	real = (void *(*)(void *, const char *))dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5");
#else
	real = (void *(*)(void *, const char *))dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.17");
#endif
	CHECK(real && real != dlsym);
	launch = (launch_fn *)real(libcuda, "cuGraphLaunch");
	CHECK(launch && launch != (launch_fn *)dlsym(libcuda, "cuGraphLaunch"));
	CHECK_INT(launch(NULL, NULL), 0);
	CHECK_INT(BEGINS(seen()), 0);
}

#ifdef __x86_64__
/* A program built before glibc 2.34 asks for another version of dlsym, and gets ours just the same. */
extern void *old_dlsym(void *handle, const char *name);
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5");
#else
#define old_dlsym dlsym
#endif

static void by_old_dlsym(void)
{
	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	((launch_fn *)old_dlsym(libcuda, "cuGraphLaunch"))(NULL, NULL);
	CHECK_INT(BEGINS(seen()), 1);
}

/* A library that has the name for something of its own. */
static void stranger(void)
{
	void *lib = dlopen("libstranger.so", RTLD_NOW | RTLD_LOCAL);
	int *data;

	CHECK(lib);
	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	data = (int *)dlsym(lib, "cuGraphLaunch");
	CHECK(data && *data == 1234);
	CHECK_INT(seen()->unrouted, 1);
}

/* All functions at one address: only the exact name can tell, and each goes its own way. */
static void stub(void)
{
	void *init, *launch;
	int status;

	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(libcuda);
	init = dlsym(libcuda, "cuInit");
	launch = dlsym(libcuda, "cuGraphLaunch");
	CHECK(init && launch && init != launch);
	((launch_fn *)launch)(NULL, NULL);
	CHECK_INT(BEGINS(seen()), 1);
	CHECK_INT(seen()->ready, 0);
	((any_fn *)init)(0, 0, 0, 0, 0, 0);
	CHECK_INT(seen()->ready, 1);
	/* a name alone, where the symbol is not known: which of them it is must not be guessed */
	CHECK(!((get_v2_fn *)dlsym(libcuda, "cuGetProcAddress_v2"))("cuMemFree", &launch, 3020, 0, &status));
	CHECK(launch == dlsym(libcuda, "fake_stub"));
	CHECK_INT(seen()->unrouted, 1);
}

/* What is not ours must look as without us: same answer, caller and all. */
static void untouched(void)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	void *plugin = dlopen("libplugin.so", RTLD_NOW | RTLD_LOCAL);
	int (*ask)(void) = (int (*)(void))dlsym(plugin, "plugin_finds_its_own");

	CHECK(libc && dlsym(libc, "malloc") == dlsym(RTLD_DEFAULT, "malloc"));
	CHECK(dlsym(RTLD_NEXT, "printf") == dlsym(libc, "printf"));
	CHECK(!dlsym(RTLD_DEFAULT, "plugin_finds_its_own"));
	CHECK(ask && ask()); /* RTLD_DEFAULT from inside a local library sees that library */
	CHECK(!dlsym(RTLD_DEFAULT, ""));
	CHECK(!dlsym(RTLD_DEFAULT, "c"));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "absent"))
		absent_then_there();
	else if (!strcmp(what, "v1") || !strcmp(what, "v2"))
		proc_address(what);
	else if (!strcmp(what, "dlvsym"))
		by_dlvsym();
	else if (!strcmp(what, "old"))
		by_old_dlsym();
	else if (!strcmp(what, "stranger"))
		stranger();
	else if (!strcmp(what, "stub"))
		stub();
	else if (!strcmp(what, "untouched"))
		untouched();
	else
		return 2;
	return 0;
}
