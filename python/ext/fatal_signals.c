/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that kill the program while `opstrobe run` records it: prints a line that says that no trace is written and how to make
 * one from the recording file, if there is one. A Python signal handler would run too late, or never. The process still dies of
 * the signal, with its core file.
 */
#include "ext.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
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

static char hint[4096] = "\n"; /* end of the message */
static volatile sig_atomic_t watched_pid; /* 0: none; a forked child is not the program */

static void fatal_signals_report(int number)
{
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
	int is_on;

	(void)module;
	if (!PyArg_ParseTuple(args, "p|O&:watch_fatal_signals", &is_on, PyUnicode_FSConverter, &text))
		return NULL;
	if (text)
		snprintf(hint, sizeof(hint), "%s\n", PyBytes_AS_STRING(text));
	Py_XDECREF(text);
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
	 "watch_fatal_signals(on, hint='')\n--\n\nWhether to report on standard error that the process dies of a signal, without a "
	 "trace. `hint` is the end of the line."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_fatal_signals(PyObject *module)
{
	return PyModule_AddFunctions(module, functions);
}
