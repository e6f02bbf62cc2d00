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
	CURLOPT_XOAUTH2_BEARER = 10220,
	CURLOPT_TIMEOUT_MS = 155,
	CURLOPT_HTTPAUTH = 107,
	CURLOPT_PROTOCOLS = 181,
	CURLOPT_NOSIGNAL = 99,
	CURLOPT_WRITEFUNCTION = 20011,
	CURLINFO_RESPONSE_CODE = 0x200002,
	CURLPROTO_HTTP = 1,
	CURLPROTO_HTTPS = 2,
	CURLAUTH_BEARER = 1 << 6,
	CURLE_OPERATION_TIMEDOUT = 28,
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

static void give_key(const struct curl *curl, void *easy)
{
	const char *key = getenv("SLOTPROBE_API_KEY");

	if (!key || !*key)
		return;
	curl->setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
	curl->setopt(easy, CURLOPT_XOAUTH2_BEARER, key);
}

static int perform(const struct curl *curl, void *easy, struct body *body)
{
	curl->setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	curl->setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl->setopt(easy, CURLOPT_TIMEOUT_MS, HTTP_TIMEOUT_MS);
	curl->setopt(easy, CURLOPT_WRITEFUNCTION, take);
	curl->setopt(easy, CURLOPT_WRITEDATA, body);
	give_key(curl, easy);
	return curl->perform(easy);
}

static bool answered(const struct curl *curl, void *easy, const struct body *body, int code, struct http_error *error)
{
	long status = 0;

	if (body->too_long) {
		error->trouble = HTTP_STRANGE;
		error_set(&error->why, "the answer is longer than %zu bytes", body->most);
	} else if (code) {
		error->trouble = code == CURLE_OPERATION_TIMEDOUT ? HTTP_SILENT : HTTP_UNREACHABLE;
		error_set(&error->why, "%s", curl->strerror(code));
	} else if (curl->getinfo(easy, CURLINFO_RESPONSE_CODE, &status) || status != 200) {
		error->trouble = status == 401 || status == 403 ? HTTP_KEY : HTTP_STRANGE;
		error_set(&error->why, "the server answered with HTTP status %ld", status);
	} else {
		return true;
	}
	return false;
}

char *http_get(const char *url, size_t most, struct http_error *error)
{
	struct body body = { .most = most };
	struct curl curl;
	bool fine;
	void *easy;

	error->trouble = HTTP_OURS;
	if (load(&curl, &error->why))
		return NULL;
	easy = curl.init();
	if (!easy) {
		error_set(&error->why, "libcurl cannot start");
		return NULL;
	}
	curl.setopt(easy, CURLOPT_URL, url);
	fine = answered(&curl, easy, &body, perform(&curl, easy, &body), error);
	curl.cleanup(easy);
	if (fine && !body.text)
		body.text = strdup("");
	if (fine)
		return body.text;
	free(body.text);
	return NULL;
}

const char *http_remedy(enum http_trouble trouble)
{
	static const char *const remedy[] = {
#define TROUBLE(id, text) [HTTP_##id] = text,
		HTTP_TROUBLE(TROUBLE)
#undef TROUBLE
	};

	return remedy[trouble];
}
