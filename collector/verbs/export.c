/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c: slotprobe export: a run for other tools.
 */
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "print/export.h"
#include "read/log.h"

/* Before -o FILE is emptied: every log must be one. */
static int check_logs(const struct run *run, struct error *error)
{
	for (size_t i = 0; i < run->n_processes; i++) {
		struct log log;

		if (!run->processes[i].log_path)
			continue;
		if (log_open(&log, run->processes[i].log_path, error))
			return -1;
		log_close(&log);
	}
	return 0;
}

static int export_to(const struct options *o, const struct run *run, struct error *error)
{
	const char *format = options_text(o, "format");
	export_run *write = !strcmp(format, "csv")     ? export_csv
			    : !strcmp(format, "jsonl") ? export_jsonl
						       : export_perfetto;
	struct output output;
	size_t damaged = 0;
	int failed;

	if (check_logs(run, error) || output_open(&output, options_text(o, "output"), error))
		return EXIT_TROUBLE;
	failed = write(output.f, run, &damaged, error);
	if (output_close(&output, failed ? NULL : error) || failed)
		return EXIT_TROUBLE;
	if (damaged)
		complain("export", "'%s' is readable with loss: %s damaged or missing; 'slotprobe verify' says more",
			 run->path, amount_of(damaged, "file", "files"));
	return 0;
}

int cmd_export(int argc, char **argv)
{
	struct options o;
	struct error error;
	struct run run;
	int status = options_parse(VERB_export, argc, argv, &o);

	if (status >= 0)
		return status;
	if (!options_given(&o, "format"))
		status = options_usage(VERB_export, "--format is missing: jsonl, csv or perfetto");
	else if (!strcmp(options_text(&o, "format"), "perfetto") && !options_text(&o, "output") &&
		 isatty(STDOUT_FILENO))
		status = options_usage(VERB_export, "perfetto is binary and standard output a terminal: give -o FILE");
	if (status < 0) {
		status = run_open(&run, o.operands[0], &error) ? EXIT_TROUBLE : export_to(&o, &run, &error);
		if (status)
			complain("export", "%s", error.text);
		run_close(&run);
	}
	options_free(&o);
	return status;
}
