/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of libcairo that pictures use, with cairo's own types. */
#ifndef ALLOCPROF_CAIRO_FUNCTIONS_H
#define ALLOCPROF_CAIRO_FUNCTIONS_H

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>

/* Calls X with each name, without cairo's prefix. */
#define CAIRO_FUNCTIONS(X)                                                                         \
	X(arc)                                                                                     \
	X(clip)                                                                                    \
	X(close_path)                                                                              \
	X(create)                                                                                  \
	X(destroy)                                                                                 \
	X(fill)                                                                                    \
	X(fill_preserve)                                                                           \
	X(font_options_create)                                                                     \
	X(font_options_destroy)                                                                    \
	X(font_options_set_antialias)                                                              \
	X(font_options_set_hint_metrics)                                                           \
	X(font_options_set_hint_style)                                                             \
	X(image_surface_create)                                                                    \
	X(line_to)                                                                                 \
	X(move_to)                                                                                 \
	X(new_path)                                                                                \
	X(paint)                                                                                   \
	X(path_extents)                                                                            \
	X(pdf_surface_create_for_stream)                                                           \
	X(pdf_surface_set_metadata)                                                                \
	X(rectangle)                                                                               \
	X(restore)                                                                                 \
	X(save)                                                                                    \
	X(scale)                                                                                   \
	X(select_font_face)                                                                        \
	X(set_dash)                                                                                \
	X(set_font_options)                                                                        \
	X(set_font_size)                                                                           \
	X(set_line_join)                                                                           \
	X(set_line_width)                                                                          \
	X(set_source_rgb)                                                                          \
	X(show_text)                                                                               \
	X(status)                                                                                  \
	X(stroke)                                                                                  \
	X(stroke_preserve)                                                                         \
	X(surface_destroy)                                                                         \
	X(surface_finish)                                                                          \
	X(surface_status)                                                                          \
	X(surface_write_to_png_stream)                                                             \
	X(svg_surface_create_for_stream)                                                           \
	X(svg_surface_set_document_unit)                                                           \
	X(text_extents)

#define CAIRO_MEMBER(name) __typeof__(cairo_##name) *name;

struct cairo_library {
	CAIRO_FUNCTIONS(CAIRO_MEMBER)
};

#endif
