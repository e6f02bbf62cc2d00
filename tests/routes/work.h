/* SPDX-License-Identifier: Apache-2.0
 *
 * work.h: what a route program does once it has a driver: launches graphs, so many that it can say how many.
 */
#ifndef ROUTES_WORK_H
#define ROUTES_WORK_H

/* Graph launches that succeeded in this process, by the program's own count. */
extern unsigned launched;

/* what: plain, threads, update, set, memory, conditional; n launches (threads: each of 8). */
void work(const char *how, const char *what, unsigned n);

/* "launches N pid P", once a process, before it ends or becomes another. */
void say_launches(void);

#endif
