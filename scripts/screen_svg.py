r"""A terminal's screen as an SVG image.

What comes in is what `tmux capture-pane -e -p` prints: lines of text with SGR sequences.
What comes out needs nothing else: no font, no script, no link. Every run of cells of one
style is a piece of text of a fixed width at a fixed place, so that columns stay columns
whichever monospace font there is.

    >>> [(cell.text, cell.wide, cell.style.fg) for cell in cells("\x1b[31ma\x1b[0m日")]
    [('a', 1, 1), ('日', 2, None)]
    >>> after(PLAIN, "1;38;5;117;48;2;1;2;3") == PLAIN._replace(fg=117, bg=(1, 2, 3), bold=True)
    True
    >>> web(117, THEMES["dark"]), web(240, THEMES["dark"]), web((1, 2, 3), THEMES["dark"])
    ('#87d7ff', '#585858', '#010203')
    >>> "&lt;b&gt;" in svg("<b>", "dark", "A <screen>") and "&lt;screen&gt;" in svg("x", "dark", "A <screen>")
    True
"""

import re
import unicodedata
from collections import namedtuple
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

Theme = namedtuple("Theme", "ground text colours")
Style = namedtuple("Style", "fg bg bold dim italic underline reverse")
Cell = namedtuple("Cell", "text wide style")

PLAIN = Style(None, None, False, False, False, False, False)
FONTS = (
    "ui-monospace, 'SF Mono', 'Cascadia Mono', 'JetBrains Mono', Menlo, Consolas, "
    "'DejaVu Sans Mono', 'Noto Sans Mono', 'Noto Sans Mono CJK JP', monospace"
)
# The size of a cell, and where in it letters stand.
WIDTH, HEIGHT, SIZE, BASELINE = 9, 19, 15, 14
MARGIN = 14
# Rules and blocks that reach from cell to cell are no letters: left, top, width and height,
# as shares of a cell.
DRAWN = {
    "│": (4 / WIDTH, 0, 1 / WIDTH, 1),
    "─": (0, 9 / HEIGHT, 1, 1 / HEIGHT),
    "▌": (0, 0, 4 / WIDTH, 1),
    "█": (0, 0, 1, 1),
}

# The sixteen colours that are a terminal's own; the others are the same everywhere.
THEMES = {
    "dark": Theme(
        "#16181d",
        "#d6d9e0",
        "#2b2f38 #f0716b #7fc98b #e0b860 #6fb0f2 #c59af0 #62c7cf #c8ccd4 "
        "#666d7a #ff8f88 #9be3a6 #f6d488 #97c8ff #dcbaff #8be3ea #f2f4f8".split(),
    ),
    "light": Theme(
        "#fbfbf9",
        "#24272e",
        "#24272e #b3261e #1e7a34 #8a5a00 #1f5fae #7b3fae #0f7480 #d9dbe0 "
        "#6b7280 #d0382f #2b9447 #a87208 #2f78d0 #9657cc #178c99 #fbfbf9".split(),
    ),
}


def svg(screen, theme, label):
    """The image of a screen, in a theme of `THEMES`; the label is for those who cannot see."""
    theme = THEMES[theme]
    rows, style = [], PLAIN
    for line in screen.rstrip("\n").split("\n"):
        # tmux prints only changes: a style goes on in the next line.
        row, style = styled(line, style)
        rows.append(row)
    width = MARGIN * 2 + WIDTH * max(sum(cell.wide for cell in row) for row in rows)
    height = MARGIN * 2 + HEIGHT * len(rows)
    shapes, texts = [], []
    for number, row in enumerate(rows):
        y = MARGIN + HEIGHT * number
        for x, style, run in runs(row):
            ink, ground = colours(style, theme)
            if ground != theme.ground:
                shapes.append(box(x, y, sum(cell.wide for cell in run), ground))
            # Blanks would be stretched with the letters.
            while run and run[0].text == " " and not style.underline:
                x, run = x + 1, run[1:]
            while run and run[-1].text == " " and not style.underline:
                run = run[:-1]
            if run and run[0].text in DRAWN:
                shapes.append(box(x, y, len(run), ink, DRAWN[run[0].text]))
            elif run:
                texts.append(piece(x, y, run, ink, theme))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" role="img" aria-label={quoteattr(label)}>',
        f"<title>{escape(label)}</title>",
        f'<rect width="100%" height="100%" rx="10" fill="{theme.ground}"/>',
        f'<g shape-rendering="crispEdges">',
        *shapes,
        "</g>",
        f'<g font-family="{FONTS}" font-size="{SIZE}" fill="{theme.text}" xml:space="preserve">',
        *texts,
        "</g>",
        "</svg>",
        "",
    ])


def box(x, y, count, fill, part=(0, 0, 1, 1)):
    """Cells filled with a colour, or the part of each that is told."""
    left, top, wide, high = part
    place = f'x="{MARGIN + (x + left) * WIDTH:g}" y="{y + top * HEIGHT:g}"'
    size = f'width="{(count - 1 + wide) * WIDTH:g}" height="{high * HEIGHT:g}"'
    return f'<rect {place} {size} fill="{fill}"/>'


def piece(x, y, run, ink, theme):
    """Letters of one style. Their length is said, in case the font is wider than a cell."""
    style = run[0].style
    length = sum(cell.wide for cell in run) * WIDTH
    attributes = [f'x="{MARGIN + x * WIDTH:g}" y="{y + BASELINE}" textLength="{length:g}"']
    if len(run) > 1:
        attributes.append('lengthAdjust="spacingAndGlyphs"')
    if ink != theme.text:
        attributes.append(f'fill="{ink}"')
    if style.bold:
        attributes.append('font-weight="bold"')
    if style.italic:
        attributes.append('font-style="italic"')
    if style.underline:
        attributes.append('text-decoration="underline"')
    if style.dim:
        attributes.append('opacity="0.65"')
    text = "".join(cell.text for cell in run)
    return f"<text {' '.join(attributes)}>{escape(text)}</text>"


def cells(line):
    """The characters of a line, with how wide they are and how they look."""
    return styled(line, PLAIN)[0]


def styled(line, style):
    """The characters of a line that begins with a style, and the style at its end."""
    found = []
    for sequence, character in re.findall(r"\x1b\[([0-9;:]*)m|([^\x1b])", line):
        if not character:
            style = after(style, sequence)
            continue
        wide = columns(character)
        if wide == 0 and found:
            found[-1] = found[-1]._replace(text=found[-1].text + character)
        elif wide:
            found.append(Cell(character, wide, style))
    return found, style


def columns(character):
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cc", "Cf", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def runs(row):
    """Neighbours of one style: (place, style, cells).

    Signs that are no letters stand alone, and so do wide characters: fonts differ most in
    them, and one that is missing comes from another font with widths of its own.
    """
    x = 0
    numbered = enumerate(row)
    for _, group in groupby(numbered, key=lambda item: (item[1].style, *kind(*item))):
        group = [cell for _, cell in group]
        yield x, group[0].style, group
        x += sum(cell.wide for cell in group)


def kind(number, cell):
    """What is drawn in one piece with its neighbours of the same kind."""
    if cell.text == "─":
        return ("rule", 0)
    if cell.wide == 1 and (cell.text.isascii() or cell.text.isalpha()):
        return ("letters", 0)
    return ("sign", number)


def after(style, sequence):
    """The style that a sequence makes of another."""
    codes = [int(code or 0) for code in re.split("[;:]", sequence or "0")]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = PLAIN
        elif code in FLAGS:
            style = style._replace(**FLAGS[code])
        elif code in (38, 48):
            field = "fg" if code == 38 else "bg"
            mode = codes.pop(0) if codes else 0
            take = {5: 1, 2: 3}.get(mode, 0)
            colour, codes = codes[:take], codes[take:]
            if take and len(colour) == take:
                style = style._replace(**{field: colour[0] if mode == 5 else tuple(colour)})
        elif code == 39:
            style = style._replace(fg=None)
        elif code == 49:
            style = style._replace(bg=None)
        elif 30 <= code <= 37:
            style = style._replace(fg=code - 30)
        elif 90 <= code <= 97:
            style = style._replace(fg=code - 90 + 8)
        elif 40 <= code <= 47:
            style = style._replace(bg=code - 40)
        elif 100 <= code <= 107:
            style = style._replace(bg=code - 100 + 8)
    return style


FLAGS = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
}


def colours(style, theme):
    """The letters' colour and the ground's."""
    ink = theme.text if style.fg is None else web(style.fg, theme)
    ground = theme.ground if style.bg is None else web(style.bg, theme)
    return (ground, ink) if style.reverse else (ink, ground)


def web(colour, theme):
    if isinstance(colour, tuple):
        red, green, blue = colour
    elif colour < 16:
        return theme.colours[colour]
    elif colour < 232:
        steps = (0, 95, 135, 175, 215, 255)
        red, green, blue = (steps[(colour - 16) // by % 6] for by in (36, 6, 1))
    else:
        red = green = blue = 8 + 10 * (colour - 232)
    return f"#{red:02x}{green:02x}{blue:02x}"
