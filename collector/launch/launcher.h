/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.h: does a command start its program in a way that loses the preload, or an adapter.
 */
#ifndef COLLECTOR_LAUNCHER_H
#define COLLECTOR_LAUNCHER_H

enum launcher_loss {
	LAUNCHER_LOSES_NOTHING, /* that is known */
	LAUNCHER_LOSES_ALL,     /* nothing that it starts can record into this run */
	LAUNCHER_LOSES_PACKAGES /* the preload works; adapters on PYTHONPATH are not loaded */
};

struct launcher {
	enum launcher_loss loss;
	const char *text, *remedy; /* text goes behind the command's name */
};

/* By its name and options alone: what it does otherwise, a configuration may change. */
struct launcher launcher_look(int argc, char *const *argv);

#endif
