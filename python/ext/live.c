/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe run --live`: a thread that shows, while the program runs, what has been recorded so far. It does not take the GIL.
 *
 * On a terminal it reserves the last lines, and the program's output scrolls above them (DECSTBM); each update is one write,
 * between saving and restoring the cursor. Elsewhere a line is written at a longer interval. A packet socket, whose other end is
 * `opstrobe tui --live`, receives a JSON object each time. If nobody reads, nothing is written, and the thread does not wait.
 */
#include "ext.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/live.h>

#include "live_text.h"
#include "repeating_thread.h"

#define PICTURE_ROOM ((size_t)LIVE_JSON_ROOM) /* also for LIVE_LINES */
#define SPARE_LINES 6 /* minimum number of lines left for the program */

struct display {
	struct repeating_thread thread;
	pid_t pid; /* process of the thread: a forked child has none */
	int fd;
	bool is_terminal;
	bool is_json;
	double interval_s;
	int64_t start_ns;
	struct ops_live *live;
	struct live_look look;
	unsigned lines; /* of the terminal, once lines are reserved; 0 before */
	size_t size;    /* size of the picture */
	char picture[PICTURE_ROOM];
};

static struct display *display; /* protected by the GIL; one per process */

/* --- writing --------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void draw(struct display *to, const char *format, ...)
{
	va_list values;
	int size;

	va_start(values, format);
	size = vsnprintf(to->picture + to->size, PICTURE_ROOM - to->size, format, values);
	va_end(values);
	if (size > 0 && (size_t)size < PICTURE_ROOM - to->size)
		to->size += (size_t)size;
}

static void live_show(struct display *to)
{
	struct pollfd ready = {.fd = to->fd, .events = POLLOUT};

	if (poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) && write(to->fd, to->picture, to->size) < 0 && errno == EPIPE)
		to->interval_s = 3600; /* nobody reads any more */
	to->size = 0;
}

/* --- terminal -------------------------------------------------------------------------------------------------------- */

/* Returns the reserved lines to the program. */
static void return_lines(struct display *to)
{
	if (!to->lines)
		return;
	draw(to, "\0337\033[r");
	for (unsigned i = 0; i < LIVE_LINES; i++)
		draw(to, "\033[%u;1H\033[2K", to->lines - LIVE_LINES + 1 + i);
	draw(to, "\0338");
	to->lines = 0;
}

/* Returns false if there is not enough room. */
static bool set_lines_apart(struct display *to)
{
	struct winsize size;

	if (ioctl(to->fd, TIOCGWINSZ, &size) || size.ws_row < LIVE_LINES + SPARE_LINES || !size.ws_col) {
		return_lines(to);
		return false;
	}
	to->look.columns = size.ws_col;
	if (to->lines == size.ws_row)
		return true;
	return_lines(to);
	to->lines = size.ws_row;
	for (unsigned i = 0; i < LIVE_LINES; i++)
		draw(to, "\n");
	draw(to, "\033[%uA\0337\033[1;%ur\0338", LIVE_LINES, to->lines - LIVE_LINES);
	return true;
}

static void draw_lines(struct display *to, const struct ops_live_state *state)
{
	char line[LIVE_LINE_ROOM + 1];

	draw(to, "\0337\033[?7l");
	for (unsigned i = 0; i < LIVE_LINES; i++) {
		live_text_line(state, &to->look, i, line);
		draw(to, "\033[%u;1H\033[2K%s%s%s", to->lines - LIVE_LINES + 1 + i, i ? "" : "\033[7m", line, i ? "" : "\033[0m");
	}
	draw(to, "\033[?7h\0338");
}

/* --- thread ---------------------------------------------------------------------------------------------------------- */

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (file && fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void live_read_state(struct display *to, struct ops_live_state *ret_state)
{
	to->look.elapsed_s = (double)(ops_clock_read_ns(CLOCK_MONOTONIC) - to->start_ns) / 1e9;
	to->look.resident_bytes = resident_bytes();
	ops_live_sample(to->live);
	ops_live_read(to->live, ret_state);
}

static void draw_summary(struct display *to, const struct ops_live_state *state)
{
	char line[LIVE_LINE_ROOM + 1];

	live_text_summary(state, &to->look, line);
	draw(to, "%s\n", line);
}

static void draw_json(struct display *to, const struct ops_live_state *state)
{
	live_text_json(state, &to->look, to->picture);
	to->size = strlen(to->picture);
}

static void *run(void *context)
{
	struct display *to = context;
	struct ops_live_state state;

	while (repeating_thread_wait(&to->thread, ops_clock_read_ns(CLOCK_MONOTONIC) + (int64_t)(to->interval_s * 1e9))) {
		live_read_state(to, &state);
		if (to->is_json)
			draw_json(to, &state);
		else if (to->is_terminal && set_lines_apart(to))
			draw_lines(to, &state);
		else
			draw_summary(to, &state);
		live_show(to);
	}
	live_read_state(to, &state);
	return_lines(to);
	if (to->is_json)
		draw_json(to, &state);
	else
		draw_summary(to, &state);
	live_show(to);
	return NULL;
}

/* --- lifetime -------------------------------------------------------------------------------------------------------- */

static bool is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static void display_free(struct display *of)
{
	ops_live_free(of->live);
	if (of->fd >= 0)
		close(of->fd);
	PyMem_RawFree(of);
}

static PyObject *live_start(PyObject *module, PyObject *args)
{
	const char *terminal = getenv("TERM");
	struct ops_error error;
	double interval_s;
	int fd, failure, is_json = false;

	(void)module;
	if (!PyArg_ParseTuple(args, "id|p:live_start", &fd, &interval_s, &is_json))
		return NULL;
	if (display && display->pid == getpid())
		return PyErr_Format(PyExc_RuntimeError, "what is recorded is shown already");
	display = PyMem_RawCalloc(1, sizeof(*display)); /* a forked child does not touch that of its parent */
	if (!display)
		return PyErr_NoMemory();
	display->pid = getpid();
	display->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	display->is_json = is_json;
	display->is_terminal = isatty(fd) && terminal && strcmp(terminal, "dumb") != 0;
	display->interval_s = interval_s > 0 ? interval_s : display->is_terminal ? 1 : 5;
	display->look.utf8 = is_utf8();
	display->start_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	if (display->fd < 0)
		failure = errno;
	else if (ops_live_new(&display->live, &error))
		failure = ENOMEM;
	else
		failure = repeating_thread_start(&display->thread, run, display);
	if (failure) {
		display_free(display);
		display = NULL;
		errno = failure;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	Py_RETURN_NONE;
}

static PyObject *live_stop(PyObject *module, PyObject *unused)
{
	struct display *of = display;

	(void)module;
	(void)unused;
	if (!of || of->pid != getpid())
		Py_RETURN_NONE;
	display = NULL;
	Py_BEGIN_ALLOW_THREADS
	repeating_thread_stop(&of->thread);
	display_free(of);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static PyMethodDef live_methods[] = {
	{"live_start", live_start, METH_VARARGS,
	 "live_start(fd: int, interval: float, as_json: bool = False) -> None\n\n"
	 "Shows what is recorded on a file descriptor, every `interval` seconds (0: 1 on a terminal, else 5), until live_stop(); "
	 "as JSON on a socket that keeps messages apart. "
	 "Runs in a separate thread."},
	{"live_stop", live_stop, METH_NOARGS,
	 "live_stop() -> None\n\nEnds that, with a line that says it all. Does nothing where nothing is shown."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_live(PyObject *module)
{
	return PyModule_AddFunctions(module, live_methods);
}
