/* SPDX-License-Identifier: Apache-2.0
 *
 * test_image.c: the embedded PTX is there, ends in NUL, and says what old drivers need to hear.
 */
#include "tests/unit/kernel/cmocka.h"
#include "probes/core/kernel/fingerprint.h"

#include <stdio.h>

static void test_image(void **state)
{
	(void)state;
	assert_non_null(strstr(fp_image, "\n.version 7.0\n"));
	assert_non_null(strstr(fp_image, "\n.target sm_70\n"));
	assert_non_null(strstr(fp_image, ".visible .entry " FP_KERNEL_NAME "("));
	assert_non_null(strstr(fp_image, ".visible .entry " FP_READY_NAME "("));
	char block[64];
	snprintf(block, sizeof(block), ".maxntid %d,", FP_THREADS);
	assert_non_null(strstr(fp_image, block));
	char param[96];
	snprintf(param, sizeof(param), "param_0[%zu]", sizeof(struct fp_launch));
	assert_non_null(strstr(fp_image, param));
	const char *last = strrchr(fp_image, '}');
	assert_non_null(last);
	assert_true(strspn(last + 1, " \n") == strlen(last + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_image) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
