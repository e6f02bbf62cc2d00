/* SPDX-License-Identifier: Apache-2.0
 *
 * test_options.c: the option parser: what it takes, what it refuses, and the rules that the tables must keep.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "options.h"

#define PARSE(verb, o, ...)                                                                                            \
	options_parse(VERB_##verb, (int)N(((char *[]) { #verb, __VA_ARGS__ })),                                        \
		      (char *[]) { #verb, __VA_ARGS__, NULL }, o)

static void takes_every_spelling(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(diff, &o, "a", "--rtol=0.5", "--align", "key", "-oFILE", "--json", "b", "--expect",
			       "x.y>=3", "--expect=z.*>=0"),
			 -1);
	assert_int_equal(o.n_operands, 2);
	assert_string_equal(o.operands[0], "a");
	assert_string_equal(o.operands[1], "b");
	assert_true(o.json);
	assert_string_equal(options_text(&o, "output"), "FILE");
	assert_string_equal(options_text(&o, "align"), "key");
	assert_true(options_real(&o, "rtol", 9) == 0.5);
	assert_int_equal(options_count(&o, "expect"), 2);
	assert_string_equal(options_nth(&o, "expect", 1), "z.*>=0");
	assert_null(options_nth(&o, "expect", 2));
	options_free(&o);
}

static void knows_fallbacks(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(record, &o, "cmd"), -1);
	assert_true(options_size(&o, "min-free") == 2ull << 30);
	assert_true(options_size(&o, "max-size") == 8ull << 30);
	assert_string_equal(options_text(&o, "level"), "donations");
	assert_null(options_text(&o, "arm"));
	assert_false(options_given(&o, "paused"));
	options_free(&o);
	assert_int_equal(PARSE(diff, &o, "a", "b"), -1);
	assert_true(options_real(&o, "rtol", 9) == 9);
	assert_false(o.json);
	options_free(&o);
}

static void leaves_the_command_alone(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(record, &o, "--paused", "cmd", "--paused", "--nonsense", "--"), -1);
	assert_int_equal(o.n_operands, 4);
	assert_string_equal(o.operands[3], "--");
	options_free(&o);
	assert_int_equal(PARSE(record, &o, "--", "--cmd"), -1);
	assert_string_equal(o.operands[0], "--cmd");
	options_free(&o);
	assert_int_equal(PARSE(status, &o, "--", "--run"), -1);
	assert_string_equal(o.operands[0], "--run");
	options_free(&o);
}

static void refuses(void **state)
{
	struct options o;

	(void)state;
	assert_int_equal(PARSE(record, &o, "--nonsense", "cmd"), 125);
	assert_int_equal(PARSE(record, &o, "--"), 125);
	assert_int_equal(PARSE(diff, &o, "a"), 2);
	assert_int_equal(PARSE(diff, &o, "a", "b", "c"), 2);
	assert_int_equal(PARSE(diff, &o, "a", "b", "--align"), 2);
	assert_int_equal(PARSE(diff, &o, "a", "b", "--align="), 2);
	assert_int_equal(PARSE(diff, &o, "a", "b", "--align", "ke"), 2);
	assert_int_equal(PARSE(diff, &o, "a", "b", "--align", "slot/key"), 2);
	assert_int_equal(PARSE(diff, &o, "a", "b", "--al", "key"), 2); /* abbreviations break when options are added */
	assert_int_equal(PARSE(diff, &o, "a", "b", "--watch"), 2);     /* another verb's */
	assert_int_equal(PARSE(diff, &o, "a", "b", "--align", "key", "--align", "slot"), 2);
}

static void parses_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
	} good[] = { { "0", 0 },
		     { "1K", 1024 },
		     { "3m", 3u << 20 },
		     { "2G", 2ull << 30 },
		     { "16777215T", 16777215ull << 40 },
		     { "18446744073709551615", UINT64_MAX } };
	static const char *const bad[] = {
		"", "K", "-1", "+1", " 1", "1 ", "1KB", "1.5G", "0x10", "16777216T", "18446744073709551616"
	};
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < N(good); i++) {
		assert_int_equal(size_parse(good[i].text, &size), 0);
		assert_true(size == good[i].size);
	}
	for (size_t i = 0; i < N(bad); i++)
		assert_int_equal(size_parse(bad[i], &size), -1);
}

static void parses_expectations(void **state)
{
	static const char *const bad[] = {
		"", "x", ">=1", "x>=", "x>=-1", "x>=1K", "x>1", "x=1", "x y>=1", "x>=1 ", "x>=99999999999999999999"
	};
	struct expect e;

	(void)state;
	assert_int_equal(expect_parse("core.donate>=12", &e), 0);
	assert_string_equal(e.probe, "core.donate");
	assert_true(e.at_least == 12);
	assert_int_equal(expect_parse("sgl[ab]*.?>=0", &e), 0);
	for (size_t i = 0; i < N(bad); i++)
		assert_int_equal(expect_parse(bad[i], &e), -1);
}

/* What the parser relies on, and what a new row could break. */
static void tables_are_sound(void **state)
{
	(void)state;
	assert_true(VERB_COUNT < 32);
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *a = &option_rows[i];

		assert_true(a->verbs && a->help && *a->help);
		assert_int_equal(a->kind == OPTION_FLAG, !a->metavar);
		assert_int_equal(a->kind == OPTION_CHOICE, a->choices != NULL);
		for (size_t j = i + 1; j < n_option_rows; j++) {
			const struct option_row *b = &option_rows[j];

			if (!(a->verbs & b->verbs))
				continue;
			assert_string_not_equal(a->name, b->name);
			assert_true(!a->letter || a->letter != b->letter);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_spelling),
		cmocka_unit_test(knows_fallbacks),
		cmocka_unit_test(leaves_the_command_alone),
		cmocka_unit_test(refuses),
		cmocka_unit_test(parses_sizes),
		cmocka_unit_test(parses_expectations),
		cmocka_unit_test(tables_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
