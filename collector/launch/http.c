/* SPDX-License-Identifier: Apache-2.0
 *
 * http.c: one GET, by libcurl, whose few numbers below are part of its ABI.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "launch/http.h"

enum {
	CURLOPT_WRITEDATA = 10001,
	CURLOPT_URL = 10002,
	CURLOPT_TIMEOUT_MS = 155,
	CURLOPT_PROTOCOLS = 181,
	CURLOPT_NOSIGNAL = 99,
	CURLOPT_WRITEFUNCTION = 20011,
	CURLINFO_RESPONSE_CODE = 0x200002,
	CURLPROTO_HTTP = 1,
	CURLPROTO_HTTPS = 2,
};

#define HTTP_TIMEOUT_MS 15000L

struct curl {
	void *(*init)(void);
	int (*setopt)(void *easy, int option, ...);
	int (*perform)(void *easy);
	int (*getinfo)(void *easy, int info, ...);
	const char *(*strerror)(int code);
	void (*cleanup)(void *easy);
};

struct body {
	char *text;
	size_t n, most;
	bool too_long;
};

static bool find(void *library, const char *name, void *entry)
{
	void *found = dlsym(library, name);

	memcpy(entry, &found, sizeof(found));
	return found != NULL;
}

static int load(struct curl *curl, struct error *error)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
	if (library && find(library, "curl_easy_init", &curl->init) &&
	    find(library, "curl_easy_setopt", &curl->setopt) && find(library, "curl_easy_perform", &curl->perform) &&
	    find(library, "curl_easy_getinfo", &curl->getinfo) &&
	    find(library, "curl_easy_strerror", &curl->strerror) && find(library, "curl_easy_cleanup", &curl->cleanup))
		return 0;
	error_set(error, "there is no libcurl.so.4: install it (Debian: apt-get install libcurl4)");
	return -1;
}

static size_t take(const char *data, size_t size, size_t n, void *to)
{
	struct body *body = to;
	char *grown;

	n *= size;
	if (n > body->most - body->n) {
		body->too_long = true;
		return 0;
	}
	grown = realloc(body->text, body->n + n + 1);
	if (!grown)
		return 0;
	body->text = grown;
	memcpy(body->text + body->n, data, n);
	body->n += n;
	body->text[body->n] = 0;
	return n;
}

static int get(const struct curl *curl, void *easy, const char *url, struct body *body, struct error *error)
{
	long status = 0;
	int code;

	curl->setopt(easy, CURLOPT_URL, url);
	curl->setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	curl->setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->setopt(easy, CURLOPT_TIMEOUT_MS, HTTP_TIMEOUT_MS);
	curl->setopt(easy, CURLOPT_WRITEFUNCTION, take);
	curl->setopt(easy, CURLOPT_WRITEDATA, body);
	code = curl->perform(easy);
	if (body->too_long)
		error_set(error, "the answer is longer than %zu bytes", body->most);
	else if (code)
		error_set(error, "%s", curl->strerror(code));
	else if (curl->getinfo(easy, CURLINFO_RESPONSE_CODE, &status) || status != 200)
		error_set(error, "the server answered with HTTP status %ld", status);
	return body->too_long || code || status != 200 ? -1 : 0;
}

char *http_get(const char *url, size_t most, struct error *error)
{
	struct body body = { .most = most };
	struct curl curl;
	void *easy;
	int failed;

	if (load(&curl, error))
		return NULL;
	easy = curl.init();
	if (!easy) {
		error_set(error, "libcurl cannot start");
		return NULL;
	}
	failed = get(&curl, easy, url, &body, error);
	curl.cleanup(easy);
	if (!failed && !body.text)
		body.text = strdup("");
	if (!failed)
		return body.text;
	free(body.text);
	return NULL;
}
