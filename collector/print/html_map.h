/* SPDX-License-Identifier: Apache-2.0
 *
 * html_map.h: the map of slots x planes, as data for the page's script.
 */
#ifndef PRINT_HTML_MAP_H
#define PRINT_HTML_MAP_H

#include "print/html.h"

/* "map":{...}. 0, or -1 with *err set. */
int html_map_data(FILE *f, const struct html_page *page, struct error *err);

#endif
