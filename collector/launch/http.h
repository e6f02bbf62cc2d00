/* SPDX-License-Identifier: Apache-2.0
 *
 * http.h: one GET, by libcurl.
 */
#ifndef COLLECTOR_HTTP_H
#define COLLECTOR_HTTP_H

#include <stddef.h>

#include "error.h"

/* name, what to do about it */
#define HTTP_TROUBLE(X)                                                                                                \
	X(OURS, "do that first: no server was asked")                                                                  \
	X(UNREACHABLE, "see that the server is up, and give its URL, as http://127.0.0.1:30000")                       \
	X(SILENT, "something takes connections there and does not answer: wait until the server has loaded its "       \
		  "model, or see in its log where it hangs")                                                           \
	X(KEY, "give the key that the server's clients use in SLOTPROBE_API_KEY; if it is set, it is another one")     \
	X(STRANGE, "give the URL at which the server itself answers, without a path such as /v1, and see that it is "  \
		   "one that an adapter knows")

enum http_trouble {
#define TROUBLE(id, remedy) HTTP_##id,
	HTTP_TROUBLE(TROUBLE)
#undef TROUBLE
};

/* Why there is no answer. */
struct http_error {
	struct error why;
	enum http_trouble trouble;
};

const char *http_remedy(enum http_trouble trouble);

/* The body, at most `most` bytes, NUL-terminated; free() it. NULL: `error` says why. A key in SLOTPROBE_API_KEY goes along, to
 * nobody but that server. libcurl is opened when it is needed, so that nothing else needs it. */
char *http_get(const char *url, size_t most, struct http_error *error);

#endif
