/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.c: reads names and parameter layout of the entries of a PTX text. Bodies are skipped: their code is on the host.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

#define SHARED_UNASKED 49152 /* dynamic shared bytes that a launch may have without cuFuncSetAttribute */

struct lexer {
	const char *at;
	const char *word; /* the current token: a word, a string or one character; empty at the end */
	size_t length;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void skip_space(struct lexer *lexer)
{
	for (;;) {
		while (isspace((unsigned char)*lexer->at))
			lexer->at++;
		if (lexer->at[0] == '/' && lexer->at[1] == '/') {
			lexer->at += strcspn(lexer->at, "\n");
		} else if (lexer->at[0] == '/' && lexer->at[1] == '*') {
			const char *end = strstr(lexer->at + 2, "*/");

			lexer->at = end ? end + 2 : lexer->at + strlen(lexer->at);
		} else {
			return;
		}
	}
}

static void advance(struct lexer *lexer)
{
	skip_space(lexer);
	lexer->word = lexer->at;
	if (is_word(*lexer->at)) {
		while (is_word(*lexer->at))
			lexer->at++;
	} else if (*lexer->at == '"') {
		lexer->at++;
		lexer->at += strcspn(lexer->at, "\"");
		lexer->at += *lexer->at == '"';
	} else if (*lexer->at) {
		lexer->at++;
	}
	lexer->length = (size_t)(lexer->at - lexer->word);
}

static bool is(const struct lexer *lexer, const char *text)
{
	return lexer->length == strlen(text) && !memcmp(lexer->word, text, lexer->length);
}

static bool accept(struct lexer *lexer, const char *text)
{
	if (!is(lexer, text))
		return false;
	advance(lexer);
	return true;
}

static size_t number(struct lexer *lexer)
{
	size_t value = strtoul(lexer->word, NULL, 0);

	advance(lexer);
	return value;
}

/* .u32 -> 4; 0 for what is no type */
static size_t type_bytes(const struct lexer *lexer)
{
	if (lexer->length < 3 || lexer->word[0] != '.' || !strchr("usbf", lexer->word[1]))
		return 0;
	if (is(lexer, ".f16x2"))
		return 4;
	switch (strtoul(lexer->word + 2, NULL, 10)) {
	case 8:
		return 1;
	case 16:
		return 2;
	case 32:
		return 4;
	case 64:
		return 8;
	case 128:
		return 16;
	default:
		return 0;
	}
}

static size_t round_up(size_t value, size_t alignment)
{
	return (value + alignment - 1) / alignment * alignment;
}

/* [.SPACE] [.align N] */
static void skip_pointer_hints(struct lexer *lexer)
{
	while (lexer->length && lexer->word[0] == '.') {
		if (accept(lexer, ".align"))
			number(lexer);
		else
			advance(lexer);
	}
}

/* .param [.align N] TYPE [.ptr [.SPACE] [.align N]] NAME ['[' N ']'] */
static bool parse_param(struct lexer *lexer, struct ptx_entry *entry)
{
	size_t alignment = 0, bytes, n = 1;
	struct ptx_param *param;

	if (!accept(lexer, ".param"))
		return false;
	if (accept(lexer, ".align"))
		alignment = number(lexer);
	bytes = type_bytes(lexer);
	if (!bytes)
		return false;
	advance(lexer);
	if (accept(lexer, ".ptr"))
		skip_pointer_hints(lexer);
	advance(lexer); /* its name */
	if (accept(lexer, "[")) {
		n = number(lexer);
		if (!accept(lexer, "]"))
			return false;
	}
	if (alignment & (alignment - 1) || !n || n > 32768)
		return false;
	entry->param = realloc(entry->param, (entry->n_params + 1) * sizeof(*entry->param));
	param = &entry->param[entry->n_params++];
	param->offset = round_up(entry->param_bytes, alignment ? alignment : bytes);
	param->bytes = bytes * n;
	entry->param_bytes = param->offset + param->bytes;
	return true;
}

static bool parse_entry(struct lexer *lexer, struct ptx *ptx)
{
	struct ptx_entry *entry;

	if (!lexer->length || !is_word(lexer->word[0]))
		return false;
	ptx->entry = realloc(ptx->entry, (ptx->n_entries + 1) * sizeof(*ptx->entry));
	entry = &ptx->entry[ptx->n_entries++];
	*entry = (struct ptx_entry) { .name = strndup(lexer->word, lexer->length), .most_shared = SHARED_UNASKED };
	advance(lexer);
	if (!accept(lexer, "("))
		return true; /* no parameters */
	while (!accept(lexer, ")")) {
		if (!parse_param(lexer, entry))
			return false;
		if (!is(lexer, ")") && !accept(lexer, ","))
			return false;
	}
	return true;
}

/* .version X.Y .target sm_NN: what is newer than the device that we pretend to be is refused, as the real one does. */
static cu_result parse_header(struct lexer *lexer)
{
	if (!accept(lexer, ".version"))
		return CUX_INVALID_IMAGE;
	if (strtod(lexer->word, NULL) > 9.0)
		return 222; /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
	advance(lexer);
	if (!accept(lexer, ".target") || lexer->length < 4 || memcmp(lexer->word, "sm_", 3))
		return CUX_INVALID_PTX;
	return strtol(lexer->word + 3, NULL, 10) > 90 ? CUX_NO_BINARY_FOR_GPU : CU_SUCCESS;
}

/* Between two statements outside of every body stands a directive, and nothing else. */
struct statements {
	unsigned depth;
	bool between;
};

static cu_result step(struct lexer *lexer, struct ptx *ptx, struct statements *at)
{
	if (at->between && lexer->word[0] != '.' && lexer->word[0] != '@')
		return CUX_INVALID_PTX;
	at->between = false;
	if (accept(lexer, ".entry"))
		return parse_entry(lexer, ptx) ? CU_SUCCESS : CUX_INVALID_PTX;
	if (accept(lexer, ".address_size")) { /* the last line of the header */
		number(lexer);
		at->between = true;
		return CU_SUCCESS;
	}
	at->depth += is(lexer, "{");
	at->depth -= is(lexer, "}") && at->depth;
	at->between = !at->depth && (is(lexer, "}") || is(lexer, ";"));
	advance(lexer);
	return CU_SUCCESS;
}

cu_result ptx_parse(const char *text, struct ptx *ptx)
{
	struct lexer lexer = { .at = text };
	struct statements at = { 0 };
	cu_result result;

	*ptx = (struct ptx) { 0 };
	if (!memcmp(text, "\177ELF", 4) || !memcmp(text, "\x50\xed\x55\xba", 4)) {
		cpu_say("a module image is a cubin or fatbin: only PTX text can be loaded");
		return CUX_NO_BINARY_FOR_GPU;
	}
	advance(&lexer);
	result = parse_header(&lexer);
	while (!result && lexer.length)
		result = step(&lexer, ptx, &at);
	if (result) {
		cpu_say("a module image is not PTX that can be loaded (error %d) near: %.40s", result, lexer.word);
		ptx_free(ptx);
		return result;
	}
	for (unsigned i = 0; i < ptx->n_entries; i++)
		*(void **)&ptx->entry[i].code = kernels_find(ptx->entry[i].name);
	return CU_SUCCESS;
}

void ptx_free(struct ptx *ptx)
{
	for (unsigned i = 0; i < ptx->n_entries; i++) {
		free(ptx->entry[i].name);
		free(ptx->entry[i].param);
	}
	free(ptx->entry);
	*ptx = (struct ptx) { 0 };
}
