/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c: starts the driver, serves, and says how it went. Exit status: 0 served; 1 the device does not hold or answer
 * what the host's own arithmetic says; 2 trouble.
 */
#include "server.h"

#include <inttypes.h>

static int start_driver(const struct toy_options *o)
{
	toy_context context;
	char name[64];
	int device, version;

	toy_cuda_load(o->driver_lib, o->by_proc_address);
	CHECK(init(0));
	CHECK(driver_version(&version));
	CHECK(device_get(&device, 0));
	CHECK(device_name(name, sizeof(name), device));
	if (o->check_driver)
		printf("CUDA %d.%d, %s\n", version / 1000, version % 1000 / 10, name);
	CHECK(ctx_retain(&context, device));
	CHECK(ctx_set(context));
	return device;
}

static int conclude(struct toy_server *s)
{
	int wrong = toy_shadow_compare(&s->shadow, &s->pool, s->stream);

	toy_journal_end(&s->journal, &s->report, s->model.captured, wrong < 0 && !s->shadow.wrong_outputs);
	printf("%d requests, %" PRIu64 " tokens in %" PRIu64 " steps, %" PRIu64 " graph launches, %" PRIu64
	       " donations, %" PRIu64 " restores\n",
	       s->n_requests, s->tokens, s->steps, s->journal.launches, s->journal.donations, s->journal.restores);
	if (wrong >= 0)
		fprintf(stderr, "toyserver: slot %d does not hold on the device what the host works out\n", wrong);
	if (s->shadow.wrong_outputs)
		fprintf(stderr, "toyserver: %" PRIu64 " tokens are not those that the host works out\n",
			s->shadow.wrong_outputs);
	return wrong >= 0 || s->shadow.wrong_outputs;
}

int main(int argc, char **argv)
{
	static struct toy_server server;
	struct toy_options options;
	int device, status;

	toy_options_parse(&options, argc, argv);
	device = start_driver(&options);
	if (options.check_driver)
		return 0;
	toy_server_open(&server, &options);
	toy_server_run(&server);
	status = conclude(&server);
	toy_server_close(&server);
	CHECK(ctx_release(device));
	return status;
}
