/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that kill the program while `opstrobe run` records it: prints a line that says that no trace is written and how to make
 * one from the recording file, if there is one. A Python signal handler would run too late, or never. The process still dies of
 * the signal, with its core file. SIGKILL is reported by the process that watches this one (src/cli/run.c).
 */
#include "ext.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
	int number;
	const char *text;
} signals[] = {
#define LINE(name) {name, "opstrobe: no trace was written: the program was killed by " #name}
	LINE(SIGSEGV), LINE(SIGBUS), LINE(SIGABRT), LINE(SIGFPE), LINE(SIGILL), LINE(SIGQUIT), LINE(SIGTRAP), LINE(SIGSYS),
	/* Job schedulers send these before they kill a job. */
	LINE(SIGUSR1), LINE(SIGUSR2), LINE(SIGALRM), LINE(SIGXCPU),
#undef LINE
};
#define COUNT (sizeof(signals) / sizeof(signals[0]))

static char hint[4000] = "\n"; /* end of the message */
static int watcher = -1; /* socket of the process that reports SIGKILL; -1: there is none */
static pid_t watcher_pid; /* the process that it watches */
static volatile sig_atomic_t watched_pid; /* 0: none; a forked child is not the program */

/* Sends the watcher what to report if the program is killed; "d": nothing. Called in signal handlers, too. */
static void send_to_watcher(const char *message)
{
	if (watcher >= 0 && watcher_pid == getpid() && send(watcher, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		watcher = -1;
}

static void fatal_signals_report(int number)
{
	send_to_watcher("d");
	for (size_t i = 0; i < COUNT && watched_pid == getpid(); i++)
		if (signals[i].number == number && (write(STDERR_FILENO, signals[i].text, strlen(signals[i].text)) < 0 ||
		                                    write(STDERR_FILENO, hint, strlen(hint)) < 0))
			break; /* standard error is closed */
	raise(number); /* blocked until the handler returns; SA_RESETHAND has restored the default */
}

static PyObject *fatal_signals_watch(PyObject *module, PyObject *args)
{
	struct sigaction action = {.sa_handler = fatal_signals_report, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
	PyObject *text = NULL;
	const char *killed = "d";
	int is_on;

	(void)module;
	if (!PyArg_ParseTuple(args, "p|O&si:watch_fatal_signals", &is_on, PyUnicode_FSConverter, &text, &killed, &watcher))
		return NULL;
	if (text)
		snprintf(hint, sizeof(hint), "%s\n", PyBytes_AS_STRING(text));
	Py_XDECREF(text);
	if (is_on)
		watcher_pid = getpid();
	send_to_watcher(killed);
	watched_pid = is_on ? getpid() : 0;
	for (size_t i = 0; i < COUNT; i++) {
		struct sigaction present;

		if (sigaction(signals[i].number, NULL, &present) ||
		    present.sa_handler != (is_on ? SIG_DFL : fatal_signals_report))
			continue; /* handled by the program */
		if (!is_on)
			action = (struct sigaction){.sa_handler = SIG_DFL};
		sigaction(signals[i].number, &action, NULL);
	}
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{"watch_fatal_signals", fatal_signals_watch, METH_VARARGS,
	 "watch_fatal_signals(on, hint='', killed='d', watcher=-1)\n--\n\nWhether to report on standard error that the process dies "
	 "of a signal, without a trace. `hint` is the end of the line. `killed` goes to the socket of the process that reports SIGKILL."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_fatal_signals(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
