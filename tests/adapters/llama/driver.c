/* SPDX-License-Identifier: Apache-2.0
 *
 * driver.c: plays a script against the stand-in library, as a server would. One command a line on stdin:
 *
 *   context N recurrent|hybrid|attention    context N is made; later commands mean it
 *   use N | free                            another context is meant; the context goes
 *   run SEQ TOKEN...                        an extended batch of one sequence
 *   embed SEQ                               one embedding that is no token
 *   plain SEQ TOKEN...                      the same with the older call
 *   fail N                                  what the next batches answer; 0: they run again
 *   lie SEQ                                 blobs say that they are of this sequence
 *   get SEQ FLAGS NAME [LENGTH]             a state goes to the blob NAME; LENGTH is claimed before
 *   set SEQ FLAGS NAME                      and comes back
 *   rm SEQ P0 P1 | cp SRC DST | shift SEQ | clear
 *   cuda                                    the CUDA driver is initialised
 *   poke NAME OFFSET BYTE | cut NAME BYTES | make NAME BYTES    blobs spoilt, shortened, made of zeros
 *
 * A blob remembers the tokens that its sequence had, for the stand-in has them nowhere else.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define CONTEXTS 4
#define BLOBS    64
#define ROOM     512

static struct blob {
	char name[32];
	uint8_t *data;
	size_t size;
	int32_t n, token[ROOM];
} blobs[BLOBS];

static void *contexts[CONTEXTS], *ctx;
static int32_t held_n[CONTEXTS][8], held[CONTEXTS][8][ROOM]; /* tokens of each sequence */
static int current;

static struct blob *blob_named(const char *name)
{
	for (int i = 0; i < BLOBS; i++) {
		if (!blobs[i].name[0])
			snprintf(blobs[i].name, sizeof blobs[i].name, "%s", name);
		if (!strcmp(blobs[i].name, name))
			return &blobs[i];
	}
	exit(3);
}

static int32_t tokens_of(char *text, int32_t *token)
{
	int32_t n = 0;

	for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
		token[n++] = atoi(word);
	return n;
}

static void note(int32_t seq, const int32_t *token, int32_t n, int32_t result)
{
	if (result)
		return;
	memcpy(held[current][seq] + held_n[current][seq], token, (size_t)n * sizeof *token);
	held_n[current][seq] += n;
}

static void run(int32_t seq, char *text, bool plain)
{
	static void *batch;
	int32_t token[ROOM], pos[ROOM], n = tokens_of(text, token), from = held_n[current][seq], result;

	for (int32_t i = 0; i < n; i++)
		pos[i] = from + i;
	if (plain) {
		int32_t ones[ROOM], *ids[ROOM];
		for (int32_t i = 0; i < n; i++) {
			ones[i] = 1;
			ids[i] = &seq;
		}
		result = llama_decode(ctx, (struct standin_batch) { n, token, NULL, pos, ones, ids, NULL });
	} else {
		if (!batch)
			batch = llama_batch_ext_init(ctx);
		llama_batch_ext_clear(batch);
		for (int32_t i = 0; i < n; i++)
			llama_batch_ext_set_pos(batch, llama_batch_ext_add_token(batch, seq, token[i]), &pos[i]);
		result = llama_process(ctx, 1, batch);
	}
	note(seq, token, n, result);
}

static void embed(int32_t seq)
{
	const float row[4] = { 1, 2, 3, 4 };
	int32_t pos = held_n[current][seq], token = 0;
	void *batch = llama_batch_ext_init(ctx);

	llama_batch_ext_set_pos(batch, llama_batch_ext_add_embd(batch, seq, (struct standin_embd) { row, 1, 4 }), &pos);
	note(seq, &token, 1, llama_process(ctx, 1, batch));
	llama_batch_ext_free(batch);
}

static void get(int32_t seq, uint32_t flags, const char *name, int64_t length)
{
	struct blob *b = blob_named(name);

	b->size = llama_state_seq_get_size_ext(ctx, seq, flags);
	b->data = realloc(b->data, b->size);
	if (length >= 0)
		_ZN24common_prompt_checkpoint10update_posElii(NULL, length, 0, 0);
	llama_state_seq_get_data_ext(ctx, b->data, b->size, seq, flags);
	b->n = held_n[current][seq];
	memcpy(b->token, held[current][seq], sizeof b->token);
}

static void set(int32_t seq, uint32_t flags, const char *name)
{
	struct blob *b = blob_named(name);

	standin_tokens = b->token;
	standin_n_tokens = b->n;
	if (!llama_state_seq_set_data_ext(ctx, b->data, b->size, seq, flags))
		return;
	held_n[current][seq] = b->n;
	memcpy(held[current][seq], b->token, sizeof b->token);
}

static void change_sequence(const char *verb, int32_t a, int32_t b, int32_t c)
{
	void *mem = llama_get_memory(ctx);

	if (!strcmp(verb, "rm")) {
		if (llama_memory_seq_rm(mem, a, b, c) && b <= 0)
			held_n[current][a] = 0;
	} else if (!strcmp(verb, "cp")) {
		llama_memory_seq_cp(mem, a, b, -1, -1);
		held_n[current][b] = held_n[current][a];
		memcpy(held[current][b], held[current][a], sizeof held[0][0]);
	} else if (!strcmp(verb, "shift")) {
		llama_memory_seq_add(mem, a, 1, -1, 1);
	} else {
		llama_memory_clear(mem, true);
		memset(held_n[current], 0, sizeof held_n[current]);
	}
}

static void change_blob(const char *verb, const char *name, size_t a, int b)
{
	struct blob *blob = blob_named(name);

	if (!strcmp(verb, "make")) {
		blob->data = calloc(1, a + 1);
		blob->size = a;
	} else if (!strcmp(verb, "cut")) {
		/* to a buffer of exactly that size: a byte read behind it is found */
		uint8_t *shorter = malloc(a ? a : 1);
		memcpy(shorter, blob->data, a);
		free(blob->data);
		blob->data = shorter;
		blob->size = a;
	} else {
		blob->data[a] = (uint8_t)b;
	}
}

static void context(int n, const char *kind)
{
	current = n;
	if (*kind)
		contexts[n] = standin_new(*kind == 'r'   ? STANDIN_RECURRENT
					  : *kind == 'h' ? STANDIN_HYBRID
							 : STANDIN_ATTENTION);
	ctx = contexts[n];
}

static void start_cuda(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;

	if (!init || init(0))
		exit(4);
}

static void command(char *line)
{
	char verb[16] = "", name[32] = "", rest[sizeof verb + 4096] = "";
	int a = 0, b = 0, c = -1;
	long length = -1;

	sscanf(line, "%15s", verb);
	if (sscanf(line, "run %d %4095[^\n]", &a, rest) == 2)
		run(a, rest, false);
	else if (sscanf(line, "plain %d %4095[^\n]", &a, rest) == 2)
		run(a, rest, true);
	else if (sscanf(line, "embed %d", &a) == 1)
		embed(a);
	else if (sscanf(line, "context %d %31s", &a, name) == 2 || sscanf(line, "use %d", &a) == 1)
		context(a, name);
	else if (sscanf(line, "fail %d", &a) == 1)
		standin_fail = a;
	else if (sscanf(line, "lie %d", &a) == 1)
		standin_lie = a;
	else if (sscanf(line, "get %d %d %31s %ld", &a, &b, name, &length) >= 3)
		get(a, (uint32_t)b, name, length);
	else if (sscanf(line, "set %d %d %31s", &a, &b, name) == 3)
		set(a, (uint32_t)b, name);
	else if (!strcmp(verb, "cuda"))
		start_cuda();
	else if (!strcmp(verb, "free"))
		llama_free(ctx);
	else if (sscanf(line, "rm %d %d %d", &a, &b, &c) == 3 || sscanf(line, "cp %d %d", &a, &b) == 2 ||
		 sscanf(line, "shift %d", &a) == 1 || !strcmp(verb, "clear"))
		change_sequence(verb, a, b, c);
	else if (sscanf(line, "%*s %31s %d %d", name, &a, &b) >= 2)
		change_blob(verb, name, (size_t)a, b);
}

int main(void)
{
	char line[4096];

	while (fgets(line, sizeof line, stdin))
		command(line + strspn(line, " \t"));
	puts("done");
	return 0;
}
