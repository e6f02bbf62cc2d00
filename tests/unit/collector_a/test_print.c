/* SPDX-License-Identifier: Apache-2.0
 *
 * test_print.c: escaping, JSON values, tables, reasons.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "print/print.h"
#include "reasons.h"
#include "verbs.h"

static void escapes(void **state)
{
	static const struct {
		const char *in, *out;
	} row[] = { { "", "" },
		    { "plain ~", "plain ~" },
		    { "a\tb\nc\x1b[31m\x7f", "a\\x09b\\x0ac\\x1b[31m\\x7f" },
		    { "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		    { "\xc2\x9b", "\\xc2\\x9b" },          /* C1 */
		    { "\xe2\x80\xae", "\\xe2\\x80\\xae" }, /* right-to-left override */
		    { "\xc0\xaf", "\\xc0\\xaf" },          /* overlong */
		    { "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* surrogate */
		    { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" } /* past the end of Unicode */,
		    { "\xe2\x82", "\\xe2\\x82" }, /* cut short */
		    { "\xff\x80", "\\xff\\x80" } };
	char out[200];

	(void)state;
	for (size_t i = 0; i < N(row); i++) {
		assert_string_equal(text_safe(out, sizeof(out), row[i].in, 100), row[i].out);
		assert_string_equal(safe(row[i].in), row[i].out);
	}
}

static void cuts_at_a_character(void **state)
{
	char out[16];

	(void)state;
	for (size_t size = 1; size <= sizeof(out); size++) {
		memset(out, '#', sizeof(out));
		text_safe(out, size,
			  "\xe2\x82\xac\x01\xe2\x82\xac"
			  "abc",
			  100);
		assert_true(strlen(out) < size);
		assert_true(strlen(out) == 0 || strlen(out) == 3 || strlen(out) == 7 || strlen(out) >= 10);
	}
	assert_string_equal(text_safe(out, sizeof(out), "abcdef", 3), "abc"); /* no NUL within n */
}

static void every_byte_pair_makes_valid_json(void **state)
{
	(void)state;
	for (unsigned pair = 1; pair < 65536; pair++) {
		char in[3] = { (char)(pair & 255), (char)(pair >> 8), 0 };
		json_t *value = json_text(in);

		assert_true(json_is_string(value));
		json_decref(value);
	}
}

static void makes_json_values(void **state)
{
	json_t *array = json_pack("[o, o, o, o, o, o, o]", json_hex(0x8000000000000001ull), json_count(UINT64_MAX),
				  json_number(NAN), json_number(-INFINITY), json_number(INFINITY), json_number(0.5),
				  json_text(NULL));
	char *text = json_dumps(array, JSON_COMPACT);

	(void)state;
	assert_string_equal(text, "[\"0x8000000000000001\",9223372036854775807,\"nan\",\"-inf\",\"inf\",0.5,null]");
	free(text);
	json_decref(array);
}

static char *printed(void (*print)(FILE *f, const void *what), const void *what)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	print(f, what);
	fclose(f);
	return text;
}

static void print_a_table(FILE *f, const void *what)
{
	table_print(f, what, "  ", false);
}

static void aligns_tables(void **state)
{
	struct table *table = table_new("name|>n|last");
	char *text;

	(void)state;
	table_row(table, "%s|%d|%s", "a|b", 5, "x");
	table_row(table, "%s|%d|%s", "\xc3\xa4", 12345, "");
	text = printed(print_a_table, table);
	assert_string_equal(text, "  name      n  last\n  a|b       5  x\n  \xc3\xa4     12345  \n");
	free(text);
	table_free(table);
}

static void reasons_keep_precedence(void **state)
{
	struct reasons r = { 0 };

	(void)state;
	assert_int_equal(reasons_exit_status(&r), 0);
	reasons_add(&r, REASON_records_dropped, "%d", 1);
	assert_int_equal(reasons_exit_status(&r), EXIT_NOT_PROVEN);
	reasons_add(&r, REASON_slot_differs, "%d", 1);
	assert_int_equal(reasons_exit_status(&r), EXIT_DIFFERS);
	reasons_add(&r, REASON_arm_unknown, "%d", 1);
	assert_int_equal(reasons_exit_status(&r), EXIT_NOT_PROVEN);
	reasons_free(&r);
}

static void reasons_are_bounded_and_escaped(void **state)
{
	struct reasons r = { 0 };
	const char *text;
	json_t *json;

	(void)state;
	for (int i = 0; i < 1000; i++)
		reasons_add(&r, REASON_slot_missing, "slot %d\x1b", i);
	assert_int_equal(r.n, REASONS_PER_CODE);
	assert_int_equal(reasons_of_class(&r, REASON_UNPROVEN), 1000);
	json = reasons_json(&r);
	assert_int_equal(json_array_size(json), REASONS_PER_CODE);
	text = json_string_value(json_object_get(json_array_get(json, REASONS_PER_CODE - 1), "text"));
	assert_non_null(strstr(text, "slot 7\\x1b (and 992 more of these)"));
	text = json_string_value(json_object_get(json_array_get(json, 0), "text"));
	assert_null(strstr(text, "more of these"));
	json_decref(json);
	reasons_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(cuts_at_a_character),
		cmocka_unit_test(every_byte_pair_makes_valid_json),
		cmocka_unit_test(makes_json_values),
		cmocka_unit_test(aligns_tables),
		cmocka_unit_test(reasons_keep_precedence),
		cmocka_unit_test(reasons_are_bounded_and_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
