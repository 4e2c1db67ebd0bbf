// SPDX-License-Identifier: GPL-3.0-or-later
/* Draws `allocprof top` by ncurses, and reads its keys. */
#define NCURSES_WIDECHAR 1
#include "top_screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "array.h"
#include "data_file.h"
#include "error.h"
#include "text.h"
#include "top_view.h"

/* A smaller terminal has no room for a row. */
#define LEAST_COLUMNS 40
#define LEAST_LINES   (TOP_STATUS_LINES + 4)

/* Milliseconds until a lone Escape is taken for one. */
#define ESCAPE_MS 50

enum mode {
	MODE_ROWS,
	MODE_FRAMES,
	MODE_HELP,
	MODE_FILTER, /* a line is typed */
	MODE_WRITE,
};

struct top_screen {
	struct top_view *view;
	SCREEN *terminal;
	bool has_colours, is_utf8;
	enum mode mode;
	__u64 cursor; /* key of the row */
	size_t at;    /* its index when it was drawn last */
	size_t first; /* index of the row that is drawn first */
	__u32 first_frame;
	__u64 opened; /* key of the stack of MODE_FRAMES */
	char typed[TOP_TEXT];
};

static const char *const help[] = {
	"Up Down PgUp PgDn Home End   choose a row",
	"Enter         open it: the stacks of a row, the frames of a stack",
	"Esc Backspace leave what was opened",
	"Tab F5        rows of functions, stacks, threads, processes (Shift-Tab back)",
	"F6 > <        sort by the next column, the one before",
	"C B M G K     sort by calls, bytes, live memory, growth, peak",
	"1 2 3 4 5     show or hide the columns",
	"F4 / \\        filter: part of a function's name, a pattern with *, /regex/,",
	"              or process=NAME, thread=NAME, module=NAME, through=, not-through=,",
	"              function=",
	"t             calls and bytes in all since the mark, or by second",
	"r             mark: totals begin anew",
	"p Space       pause: the recording goes on, the screen stands still",
	"w             write a recording, for allocprof report and all others",
	"h ? F1        this help",
	"q F10 Ctrl-C  quit",
	"",
	"CALLS/s and BYTES/s are of the time between the last two copies of the recording,",
	"GROWTH is that of live memory in the last minute, PEAK a row's part of the most",
	"memory that was live at a time. Memory counts from when the recording began.",
};

/* Returns how many columns the character takes, 0 if it is not to be shown. */
static int columns_of(const char *text, size_t size)
{
	wchar_t wide;
	mbstate_t state = { 0 };

	if (mbrtowc(&wide, text, size, &state) != size)
		return 0;
	return wcwidth(wide) > 0 ? wcwidth(wide) : 0;
}

/* Puts @text into @width columns at the cursor, the rest of which become blanks. */
static void put(const struct top_screen *screen, const char *text, int width)
{
	int used = 0;

	while (*text && used < width) {
		size_t size = utf8__printable(text);
		int columns = 1;

		if (size > 1)
			columns = screen->is_utf8 ? columns_of(text, size) : 0;
		/* A wide character that would be cut ends the text. */
		if (columns > width - used)
			break;
		if (size && columns)
			addnstr(text, size);
		else
			addch('?');
		used += columns ? columns : 1;
		text += size ? size : 1;
	}
	for (; used < width; used++)
		addch(' ');
}

static void put_line(const struct top_screen *screen, int y, const char *text, int attributes)
{
	move(y, 0);
	attron(attributes);
	put(screen, text, COLS);
	attroff(attributes);
}

/* The number of lines for rows, between the titles and the line of keys. */
static int room(void)
{
	return LINES - TOP_STATUS_LINES - 2;
}

static int title_attributes(const struct top_screen *screen, enum top_column column)
{
	return screen->view->wish.sort == column ? A_REVERSE | A_BOLD : A_REVERSE;
}

static void draw_titles(const struct top_screen *screen)
{
	const struct top_view *view = screen->view;
	char text[TOP_COLUMN_WIDTH + 1];
	int left = COLS;

	move(TOP_STATUS_LINES, 0);
	for (int i = 0; i < TOP_COLUMNS && left > 2 * TOP_COLUMN_WIDTH; i++) {
		if (!top_view__has(view, i))
			continue;
		snprintf(text, sizeof(text), "%c%s", (int)view->wish.sort == i ? '>' : ' ',
			 top_view__title(view, i));
		attron(title_attributes(screen, i));
		for (int j = strlen(text); j < TOP_COLUMN_WIDTH; j++)
			addch(' ');
		put(screen, text, strlen(text));
		attroff(title_attributes(screen, i));
		left -= TOP_COLUMN_WIDTH;
	}
	attron(A_REVERSE);
	addch(' ');
	addch(' ');
	put(screen, top_view__kind(view), left - 2);
	attroff(A_REVERSE);
}

static int growth_colour(const struct top_screen *screen, const struct top_row *row,
			 enum top_column column)
{
	if (!screen->has_colours || column != TOP_GROWTH || !row->values[TOP_GROWTH])
		return 0;
	return COLOR_PAIR(row->values[TOP_GROWTH] > 0 ? 1 : 2);
}

static void draw_row(const struct top_screen *screen, int y, const struct top_row *row,
		     int attributes)
{
	char text[TOP_TEXT];
	int left = COLS;

	move(y, 0);
	for (int i = 0; i < TOP_COLUMNS && left > 2 * TOP_COLUMN_WIDTH; i++) {
		int colour = attributes ? 0 : growth_colour(screen, row, i);

		if (!top_view__has(screen->view, i))
			continue;
		top_view__number(screen->view, row, i, text, sizeof(text));
		attron(attributes | colour);
		for (int j = strlen(text); j < TOP_COLUMN_WIDTH; j++)
			addch(' ');
		put(screen, text, strlen(text));
		attroff(attributes | colour);
		left -= TOP_COLUMN_WIDTH;
	}
	top_view__name(screen->view, row, text, sizeof(text));
	attron(attributes);
	addch(' ');
	addch(' ');
	put(screen, text, left - 2);
	attroff(attributes);
}

/* Finds the row of the cursor again, or takes the one that is where it was. */
static void follow_cursor(struct top_screen *screen)
{
	const struct top_rows *rows = &screen->view->rows;
	size_t lines = room();

	for (size_t i = 0; screen->cursor && i < rows->n; i++)
		if (rows->rows[i].key == screen->cursor)
			screen->at = i;
	if (screen->at >= rows->n)
		screen->at = rows->n ? rows->n - 1 : 0;
	if (screen->first > screen->at)
		screen->first = screen->at;
	if (screen->at - screen->first >= lines)
		screen->first = screen->at - lines + 1;
}

static void draw_rows(struct top_screen *screen)
{
	const struct top_rows *rows = &screen->view->rows;

	follow_cursor(screen);
	draw_titles(screen);
	for (int i = 0; i < room(); i++) {
		size_t at = screen->first + i;

		if (at < rows->n)
			draw_row(screen, TOP_STATUS_LINES + 1 + i, &rows->rows[at],
				 at == screen->at ? A_STANDOUT : 0);
		else
			put_line(screen, TOP_STATUS_LINES + 1 + i, "", 0);
	}
}

/* Each copy has other numbers of groups: the stack is found again by its key. */
static const struct top_row *find_opened(const struct top_screen *screen)
{
	const struct top_rows *rows = &screen->view->rows;

	for (size_t i = 0; i < rows->n; i++)
		if (rows->rows[i].key == screen->opened)
			return &rows->rows[i];
	return NULL;
}

static bool find_frame(const struct top_screen *screen, __u32 n, char *text, size_t size)
{
	const struct top_row *row = find_opened(screen);

	return row && top_view__frame(screen->view, row, n, text, size);
}

static void draw_frames(struct top_screen *screen)
{
	char name[TOP_TEXT], text[TOP_TEXT + 16];

	put_line(screen, TOP_STATUS_LINES, "  FRAMES, from the inside outwards (Esc goes back)",
		 A_REVERSE);
	for (int i = 0; i < room(); i++) {
		__u32 n = screen->first_frame + i;

		text[0] = '\0';
		if (find_frame(screen, n, name, sizeof(name)))
			snprintf(text, sizeof(text), "%4u  %s", n, name);
		put_line(screen, TOP_STATUS_LINES + 1 + i, text, 0);
	}
}

static void draw_help(const struct top_screen *screen)
{
	put_line(screen, TOP_STATUS_LINES, "  KEYS (any key goes back)", A_REVERSE);
	for (int i = 0; i < room(); i++)
		put_line(screen, TOP_STATUS_LINES + 1 + i, i < (int)ARRAY_SIZE(help) ? help[i] : "",
			 0);
}

static void draw_bottom(const struct top_screen *screen)
{
	char text[TOP_TEXT + 64];

	switch (screen->mode) {
	case MODE_FILTER:
		snprintf(text, sizeof(text), "Filter: %s_", screen->typed);
		break;
	case MODE_WRITE:
		snprintf(text, sizeof(text), "Write a recording to: %s_", screen->typed);
		break;
	default:
		snprintf(
			text, sizeof(text), "%s",
			screen->view->note[0]
				? screen->view->note
				: "F1 Help F4 Filter F5 By F6 Sort  Enter Open  p Pause r Mark w Write "
				  "F10 Quit");
	}
	/* The last column stays empty: some terminals scroll when it is written. */
	move(LINES - 1, 0);
	attron(A_REVERSE);
	put(screen, text, COLS - 1);
	attroff(A_REVERSE);
}

/* ncurses ignores SIGTSTP while it writes: blocked, a Ctrl-Z that comes then is not lost. */
static void show(void)
{
	sigset_t stop, before;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigprocmask(SIG_BLOCK, &stop, &before);
	refresh();
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void top_screen__draw(struct top_screen *screen)
{
	char text[TOP_TEXT];

	erase();
	if (COLS < LEAST_COLUMNS || LINES < LEAST_LINES) {
		move(0, 0);
		snprintf(text, sizeof(text), "%d x %d is too small: %d x %d, or --batch", COLS,
			 LINES, LEAST_COLUMNS, LEAST_LINES);
		put(screen, text, COLS - 1);
		show();
		return;
	}
	for (int i = 0; i < TOP_STATUS_LINES; i++) {
		top_view__status(screen->view, i, text, sizeof(text));
		put_line(screen, i, text, i ? 0 : A_BOLD);
	}
	if (screen->mode == MODE_HELP)
		draw_help(screen);
	else if (screen->mode == MODE_FRAMES)
		draw_frames(screen);
	else
		draw_rows(screen);
	draw_bottom(screen);
	show();
}

static void say(struct top_screen *screen, const struct error *error)
{
	snprintf(screen->view->note, sizeof(screen->view->note), "%.900s", error->text);
}

static void refresh_view(struct top_screen *screen)
{
	if (top_view__refresh(screen->view))
		say(screen, &(struct error){ "out of memory" });
}

static void write_recording(struct top_screen *screen)
{
	struct top_view *view = screen->view;
	struct error error = { 0 };

	if (!screen->typed[0])
		return;
	if (!view->now.profile)
		error__set(&error, -ENODATA, "there is nothing to write yet");
	else if (!data_file__write(view->now.profile, screen->typed, &error))
		error__set(&error, 0, "recording written: %.900s", screen->typed);
	say(screen, &error);
}

static void end_typing(struct top_screen *screen)
{
	struct error error = { 0 };

	if (screen->mode == MODE_WRITE)
		write_recording(screen);
	else if (top_view__filter(screen->view, screen->typed, &error))
		say(screen, &error);
	screen->mode = MODE_ROWS;
}

static void type_key(struct top_screen *screen, int key)
{
	size_t len = strlen(screen->typed);

	switch (key) {
	case '\r':
	case '\n':
	case KEY_ENTER:
		end_typing(screen);
		break;
	case 27:
		screen->mode = MODE_ROWS;
		break;
	case KEY_BACKSPACE:
	case 127:
	case '\b':
		/* A character of UTF-8 is deleted as a whole. */
		while (len && (screen->typed[--len] & 0xc0) == 0x80)
			;
		screen->typed[len] = '\0';
		break;
	case 'U' - '@':
		screen->typed[0] = '\0';
		break;
	default:
		if (key >= ' ' && key < 256 && len + 1 < sizeof(screen->typed) / 2) {
			screen->typed[len] = key;
			screen->typed[len + 1] = '\0';
		}
	}
}

static void begin_typing(struct top_screen *screen, enum mode mode, const char *text)
{
	screen->mode = mode;
	snprintf(screen->typed, sizeof(screen->typed), "%s", text);
}

static void move_cursor(struct top_screen *screen, long by)
{
	const struct top_rows *rows = &screen->view->rows;
	long at = (long)screen->at + by;

	if (!rows->n)
		return;
	screen->at = at < 0 ? 0 : at >= (long)rows->n ? rows->n - 1 : (size_t)at;
	screen->cursor = rows->rows[screen->at].key;
}

/* Rows of another kind have other keys. */
static void forget_cursor(struct top_screen *screen)
{
	screen->cursor = 0;
	screen->at = screen->first = 0;
}

static void open_row(struct top_screen *screen)
{
	const struct top_rows *rows = &screen->view->rows;
	int err;

	if (screen->at >= rows->n)
		return;
	screen->opened = rows->rows[screen->at].key;
	err = top_view__open(screen->view, &rows->rows[screen->at]);
	if (!err)
		forget_cursor(screen);
	if (err != -ENOENT)
		return;
	screen->mode = MODE_FRAMES;
	screen->first_frame = 0;
}

static void sort_by(struct top_screen *screen, enum top_column column)
{
	screen->view->wish.sort = column;
	refresh_view(screen);
}

/* Sorts by the next column that is shown. */
static void sort_next(struct top_screen *screen, int step)
{
	int column = screen->view->wish.sort;

	for (int i = 0; i < TOP_COLUMNS; i++) {
		column = (column + TOP_COLUMNS + step) % TOP_COLUMNS;
		if (top_view__has(screen->view, column))
			break;
	}
	sort_by(screen, column);
}

static void mark(struct top_screen *screen)
{
	struct top_view *view = screen->view;

	if (!view->now.profile)
		return;
	if (top__mark(&view->top))
		say(screen, &(struct error){ "out of memory" });
	view->wish.since_mark = true;
	refresh_view(screen);
}

static void turn(struct top_screen *screen, int step)
{
	if (top_view__turn(screen->view, step))
		say(screen, &(struct error){ "out of memory" });
	forget_cursor(screen);
}

/* Moves where there are rows. Returns whether the key is for that. */
static bool move_by_key(struct top_screen *screen, int key)
{
	static const struct {
		int key;
		int lines, pages;
	} moves[] = {
		{ KEY_UP, -1, 0 },
		{ KEY_DOWN, 1, 0 },
		{ 'k', -1, 0 },
		{ 'j', 1, 0 },
		{ KEY_PPAGE, 0, -1 },
		{ KEY_NPAGE, 0, 1 },
		{ KEY_HOME, 0, -1000000 },
		{ KEY_END, 0, 1000000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(moves); i++) {
		if (moves[i].key != key)
			continue;
		move_cursor(screen, moves[i].lines + (long)moves[i].pages * room());
		return true;
	}
	return false;
}

/* Obeys a key where rows are shown. Returns false if the user quits. */
static bool obey(struct top_screen *screen, int key)
{
	static const char sorts[TOP_COLUMNS] = { 'C', 'B', 'M', 'G', 'K' };
	struct top_view *view = screen->view;

	view->note[0] = '\0';
	if (move_by_key(screen, key))
		return true;
	for (int i = 0; i < TOP_COLUMNS; i++) {
		if (key == sorts[i])
			sort_by(screen, i);
		if (key == '1' + i)
			view->hidden[i] = !view->hidden[i];
	}
	switch (key) {
	case 'q':
	case KEY_F(10):
		return false;
	case 'h':
	case '?':
	case KEY_F(1):
		screen->mode = MODE_HELP;
		break;
	case '\t':
	case KEY_F(5):
		turn(screen, 1);
		break;
	case KEY_BTAB:
		turn(screen, -1);
		break;
	case '\r':
	case '\n':
	case KEY_ENTER:
		open_row(screen);
		break;
	case 27:
	case KEY_BACKSPACE:
	case 127:
	case '\b':
		if (top_view__leave(view))
			forget_cursor(screen);
		break;
	case KEY_F(6):
	case '>':
		sort_next(screen, 1);
		break;
	case '<':
		sort_next(screen, -1);
		break;
	case KEY_F(4):
	case '/':
	case '\\':
		begin_typing(screen, MODE_FILTER, view->filter);
		break;
	case 't':
		view->wish.since_mark = !view->wish.since_mark;
		refresh_view(screen);
		break;
	case 'r':
		mark(screen);
		break;
	case 'p':
	case ' ':
		view->is_paused = !view->is_paused;
		break;
	case 'w':
		begin_typing(screen, MODE_WRITE, DATA_FILE_DEFAULT);
		break;
	}
	return true;
}

static void scroll_frames(struct top_screen *screen, int key)
{
	char text[TOP_TEXT];

	if (key == KEY_UP || key == 'k')
		screen->first_frame -= screen->first_frame > 0;
	else if ((key == KEY_DOWN || key == 'j') &&
		 find_frame(screen, screen->first_frame + room(), text, sizeof(text)))
		screen->first_frame++;
	else if (key == KEY_PPAGE || key == KEY_HOME)
		screen->first_frame = 0;
	else if (key == 27 || key == KEY_BACKSPACE || key == 127 || key == '\b')
		screen->mode = MODE_ROWS;
}

bool top_screen__attend(struct top_screen *screen)
{
	bool goes_on = true;
	int key;

	while (goes_on && (key = getch()) != ERR) {
		if (key == KEY_RESIZE)
			continue;
		if (screen->mode == MODE_FILTER || screen->mode == MODE_WRITE)
			type_key(screen, key);
		else if (key == 'q' || key == KEY_F(10))
			goes_on = false;
		else if (screen->mode == MODE_HELP)
			screen->mode = MODE_ROWS;
		else if (screen->mode == MODE_FRAMES)
			scroll_frames(screen, key);
		else
			goes_on = obey(screen, key);
	}
	if (goes_on)
		top_screen__draw(screen);
	return goes_on;
}

static void set_colours(struct top_screen *screen)
{
	const char *refuses = getenv("NO_COLOR");

	if ((refuses && *refuses) || !has_colors() || start_color() == ERR ||
	    use_default_colors() == ERR)
		return;
	init_pair(1, COLOR_RED, -1);
	init_pair(2, COLOR_GREEN, -1);
	screen->has_colours = true;
}

int top_screen__check(struct error *error)
{
	const char *name = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error__set(error, -ENOTTY,
				  "standard input or output is no terminal; --batch prints text");
	if (!name || !*name || !strcmp(name, "dumb"))
		return error__set(
			error, -ENOTTY,
			"the terminal is %s, on which nothing can be drawn; --batch prints "
			"text, or set TERM to the terminal's name",
			name && *name ? "dumb" : "unknown");
	return 0;
}

int top_screen__open(struct top_view *view, struct top_screen **out, struct error *error)
{
	struct top_screen *screen;

	screen = calloc(1, sizeof(*screen));
	if (!screen)
		return error__set(error, -ENOMEM, "out of memory");
	screen->view = view;
	/* Only characters: numbers are written as everywhere in allocprof. */
	setlocale(LC_CTYPE, "");
	screen->is_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	screen->terminal = newterm(NULL, stdout, stdin);
	if (!screen->terminal) {
		free(screen);
		return error__set(
			error, -ENOTTY,
			"the terminal '%.64s' is not known here; --batch prints text, or set "
			"TERM to one that is (xterm)",
			getenv("TERM"));
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	set_colours(screen);
	*out = screen;
	return 0;
}

void top_screen__close(struct top_screen *screen)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen->terminal);
	free(screen);
}
