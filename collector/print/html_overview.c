/* SPDX-License-Identifier: Apache-2.0
 *
 * html_overview.c: the drawing that is there without the script: when donations came, and how large the states were.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "print/html.h"

#define BINS   120
#define WIDTH  960
#define HEIGHT 96

struct overview {
	uint64_t donations[BINS], most;
	double absmax[BINS], largest; /* < 0: nothing measured */
	uint64_t non_finite;
};

static void look(struct overview *o, const struct html_page *page, unsigned r)
{
	const struct model *model = page->run[r];

	memset(o, 0, sizeof *o);
	o->largest = -1;
	for (unsigned i = 0; i < BINS; i++)
		o->absmax[i] = -1;
	for (size_t i = 0; i < model->n_processes; i++) {
		const struct model_process *p = &model->process[i];

		for (size_t k = 0; k < p->n_events; k++) {
			const struct model_event *e = &p->event[k];
			const struct model_print *print;
			double at = page->span[r] ? (double)(e->t_ns - page->zero[r][i]) / (double)page->span[r] : 0;
			unsigned bin = at < 1 ? (unsigned)(at * BINS) : BINS - 1;

			if (e->kind != LOG_EV_DONATE)
				continue;
			if (++o->donations[bin] > o->most)
				o->most = o->donations[bin];
			if (!model_measured(p, e))
				continue;
			print = model_subject(p, e);
			o->non_finite += print->nan || print->inf;
			if (isfinite(print->absmax) && print->absmax > o->absmax[bin])
				o->absmax[bin] = print->absmax;
			if (isfinite(print->absmax) && print->absmax > o->largest)
				o->largest = print->absmax;
		}
	}
}

static void bars(FILE *f, const struct overview *o)
{
	fputs("<path class=\"bars\" d=\"", f);
	for (unsigned i = 0; i < BINS; i++) {
		double height = o->most ? (double)o->donations[i] / (double)o->most * HEIGHT : 0;

		if (o->donations[i])
			fprintf(f, "M%u %d v%.1f h%d v%.1f z", i * (WIDTH / BINS), HEIGHT, -height, WIDTH / BINS - 1,
				height);
	}
	fputs("\"/>\n", f);
}

static void line(FILE *f, const struct overview *o)
{
	bool pen = false;

	fputs("<path class=\"line\" d=\"", f);
	for (unsigned i = 0; i < BINS; i++) {
		if (o->absmax[i] < 0 || o->largest <= 0)
			continue;
		fprintf(f, "%c%u %.1f", pen ? 'L' : 'M', i * (WIDTH / BINS) + WIDTH / BINS / 2,
			HEIGHT - o->absmax[i] / o->largest * (HEIGHT - 4));
		pen = true;
	}
	fputs("\"/>\n", f);
}

static void run_figure(FILE *f, const struct html_page *page, unsigned r)
{
	struct overview o;
	const char *name = html_run_name(page, r);

	look(&o, page, r);
	fprintf(f,
		"<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"ov%u\" "
		"preserveAspectRatio=\"none\">\n",
		WIDTH, HEIGHT, r);
	bars(f, &o);
	line(f, &o);
	fprintf(f,
		"</svg><figcaption id=\"ov%u\">%s over %.3f seconds: bars are donations, at most %" PRIu64
		" in a bar; ",
		r, name, (double)page->span[r] / 1e9, o.most);
	if (o.largest >= 0)
		fprintf(f, "the line is the largest abs-max of any slot, up to %.6g; ", o.largest);
	fprintf(f,
		"%" PRIu64 " donations held NaN or Inf. Each bar stands for 1/%d of the time.</figcaption></figure>\n",
		o.non_finite, BINS);
}

void html_overview(FILE *f, const struct html_page *page)
{
	for (unsigned r = 0; r < page->n_runs; r++)
		run_figure(f, page, r);
}
