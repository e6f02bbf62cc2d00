/* SPDX-License-Identifier: Apache-2.0
 *
 * stranger.c: a library that exports a driver's name for data of its own, as loaders of function pointers do.
 */
int cuGraphLaunch = 1234;
