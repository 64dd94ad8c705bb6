"""Figures of a made-up campaign, by their names."""

from peakmark.views import figure_style, figures, layout_tables


def shown(frames, name):
    """What a figure shows; the layout is the campaign's."""
    layout = layout_tables.layout_of(frames)
    arranged = layout_tables.for_print(frames, layout)
    (found,) = (each for each in figures.figures_of(arranged, layout) if each.name == name)
    return found


def draw(frames, name):
    """The drawing of a figure."""
    figure_style.begin()
    figure = figures.draw(shown(frames, name))
    figure.draw_without_rendering()
    return figure
