/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draws a top_view on the whole terminal, and obeys keys. */
#ifndef ALLOCPROF_TOP_SCREEN_H
#define ALLOCPROF_TOP_SCREEN_H

#include <stdbool.h>

struct error;
struct top_screen;
struct top_view;

/* Returns 0 if the terminal can be drawn on, or a negative errno with @error set. */
int top_screen__check(struct error *error);
/* Takes the terminal of standard input and output. Returns 0 or a negative errno with @error set;
 * then the terminal is as before. */
int top_screen__open(struct top_view *view, struct top_screen **out, struct error *error);
/* Gives the terminal back as it was. */
void top_screen__close(struct top_screen *screen);
void top_screen__draw(struct top_screen *screen);
/* Obeys the keys that have been pressed, and draws. Returns false if the user quits. */
bool top_screen__attend(struct top_screen *screen);

#endif
