/* SPDX-License-Identifier: Apache-2.0
 *
 * The module `opstrobe._serve`: serves trace files, over HTTP (Server) and within the process (Api), and writes reports. It is a
 * separate module, so that recording a program does not load the server. Work is done by threads of the C library, which do not
 * use Python; waiting for them releases the GIL.
 *
 * A forked child has the objects but none of the threads: it cannot use them, and does not free them.
 */
#include "ext.h"

#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/api.h>
#include <opstrobe/serve.h>

struct api_object {
	PyObject_HEAD
	struct ops_api *api; /* NULL once closed */
	Py_ssize_t asking;   /* calls that use it now; the last of them closes it if a close was requested */
	bool closed;
	pid_t pid;
};

struct server_object {
	PyObject_HEAD
	struct ops_server *server; /* NULL once stopped */
	PyObject *url, *token;
	uint16_t port;
	pid_t pid;
};

/* --- paths ---------------------------------------------------------------------------------------------------------- */

/* Returns the array for the options from a tuple of bytes; freed by PyMem_Free. Returns NULL with an exception set. */
static const char **path_array(PyObject *paths)
{
	Py_ssize_t count = PyTuple_GET_SIZE(paths);
	const char **array = PyMem_Calloc((size_t)count + 1, sizeof(*array));

	if (!array)
		return (const char **)PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < count; i++) {
		char *path;

		if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(paths, i), &path, NULL) < 0) {
			PyMem_Free((void *)array);
			return NULL;
		}
		array[i] = path;
	}
	return array;
}

/* --- Api ------------------------------------------------------------------------------------------------------------ */

static PyObject *api_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"paths", "watch", "memory_bytes", "request_memory_bytes", "request_seconds", NULL};
	struct ops_api_options options = {0};
	unsigned long long memory_bytes = 0, request_memory_bytes = 0;
	int watch = false;
	struct api_object *self;
	struct ops_error error;
	enum ops_code code;
	PyObject *paths;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$pKKd:Api", names, &PyTuple_Type, &paths, &watch, &memory_bytes,
	                                 &request_memory_bytes, &options.request_seconds))
		return NULL;
	self = (struct api_object *)type->tp_alloc(type, 0);
	options.paths = self ? path_array(paths) : NULL;
	if (!options.paths) {
		Py_XDECREF(self);
		return NULL;
	}
	options.path_count = (size_t)PyTuple_GET_SIZE(paths);
	options.watch = watch;
	options.memory_bytes = memory_bytes;
	options.request_memory_bytes = request_memory_bytes;
	self->pid = getpid();
	Py_BEGIN_ALLOW_THREADS
	code = ops_api_new(&options, &self->api, &error);
	Py_END_ALLOW_THREADS
	PyMem_Free((void *)options.paths);
	if (!code)
		return (PyObject *)self;
	self->api = NULL;
	Py_DECREF(self);
	return ops_ext_raise(&error);
}

static void free_api(struct api_object *self)
{
	struct ops_api *api = self->api;

	self->api = NULL;
	if (!api || self->pid != getpid())
		return;
	Py_BEGIN_ALLOW_THREADS
	ops_api_free(api);
	Py_END_ALLOW_THREADS
}

static PyObject *api_get(PyObject *object, PyObject *target)
{
	struct api_object *self = (struct api_object *)object;
	struct ops_reply reply = {0};
	struct ops_error error;
	enum ops_code code;
	PyObject *answer;
	char *text;

	if (self->closed)
		return PyErr_Format(PyExc_RuntimeError, "it was closed");
	if (self->pid != getpid())
		return PyErr_Format(PyExc_RuntimeError, "it belongs to the process that this one was forked from");
	if (!PyUnicode_FSConverter(target, &target))
		return NULL;
	text = PyBytes_AS_STRING(target);
	self->asking++;
	Py_BEGIN_ALLOW_THREADS
	code = ops_api_get(self->api, text, &reply, &error);
	Py_END_ALLOW_THREADS
	if (!--self->asking && self->closed)
		free_api(self);
	Py_DECREF(target);
	if (code)
		return ops_ext_raise(&error);
	answer = Py_BuildValue("(isy#)", reply.status, reply.type, reply.body, (Py_ssize_t)reply.size);
	ops_reply_release(&reply);
	return answer;
}

static PyObject *api_close(PyObject *object, PyObject *unused)
{
	struct api_object *self = (struct api_object *)object;

	(void)unused;
	self->closed = true;
	if (!self->asking)
		free_api(self);
	Py_RETURN_NONE;
}

static void api_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	free_api((struct api_object *)object);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef api_methods[] = {
	{"get", api_get, METH_O, "get(target)\n--\n\nWhat a GET of the target answers: (status, type, body)."},
	{"close", api_close, METH_NOARGS, "close()\n--\n\nEnds its threads, when the last call of get is done."},
	{0},
};

static PyType_Slot api_slots[] = {
	{Py_tp_doc, "Api(paths, *, watch=False, memory_bytes=0, request_memory_bytes=0, request_seconds=0.0)\n--\n\n"
	            "Answers about traces, within the process."},
	{Py_tp_new, api_new},
	{Py_tp_dealloc, api_dealloc},
	{Py_tp_methods, api_methods},
	{0, NULL},
};

static PyType_Spec api_spec = {
	.name = "opstrobe._serve.Api",
	.basicsize = sizeof(struct api_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = api_slots,
};

/* --- Server --------------------------------------------------------------------------------------------------------- */

static bool keep_address(struct server_object *self)
{
	self->url = PyUnicode_FromString(ops_server_url(self->server));
	self->token = PyUnicode_FromString(ops_server_token(self->server));
	self->port = ops_server_port(self->server);
	return self->url && self->token;
}

static PyObject *server_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"paths", "port", "address", "remote", "frame_origin", "watch", "memory_bytes",
	                        "request_memory_bytes", "request_seconds", NULL};
	struct ops_server_options options = {.size = sizeof(options)};
	unsigned long long memory_bytes = 0, request_memory_bytes = 0;
	int port = 0, remote = false, watch = false;
	struct server_object *self;
	struct ops_error error;
	enum ops_code code;
	PyObject *paths;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$izpzpKKd:Server", names, &PyTuple_Type, &paths, &port,
	                                 &options.address, &remote, &options.frame_origin, &watch, &memory_bytes,
	                                 &request_memory_bytes, &options.api.request_seconds))
		return NULL;
	if (port < 0 || port > UINT16_MAX)
		return PyErr_Format(PyExc_ValueError, "port %d does not exist", port);
	self = (struct server_object *)type->tp_alloc(type, 0);
	options.api.paths = self ? path_array(paths) : NULL;
	if (!options.api.paths) {
		Py_XDECREF(self);
		return NULL;
	}
	options.api.path_count = (size_t)PyTuple_GET_SIZE(paths);
	options.api.watch = watch;
	options.api.memory_bytes = memory_bytes;
	options.api.request_memory_bytes = request_memory_bytes;
	options.port = (uint16_t)port;
	options.remote = remote;
	self->pid = getpid();
	Py_BEGIN_ALLOW_THREADS
	code = ops_server_start(&options, &self->server, &error);
	Py_END_ALLOW_THREADS
	PyMem_Free((void *)options.api.paths);
	if (code)
		self->server = NULL;
	if (!code && keep_address(self))
		return (PyObject *)self;
	Py_DECREF(self);
	return code ? ops_ext_raise(&error) : NULL;
}

static void stop_server(struct server_object *self)
{
	struct ops_server *server = self->server;

	self->server = NULL;
	if (!server || self->pid != getpid())
		return;
	Py_BEGIN_ALLOW_THREADS
	ops_server_stop(server);
	Py_END_ALLOW_THREADS
}

static PyObject *server_stop(PyObject *object, PyObject *unused)
{
	(void)unused;
	stop_server((struct server_object *)object);
	Py_RETURN_NONE;
}

static void server_dealloc(PyObject *object)
{
	struct server_object *self = (struct server_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	stop_server(self);
	Py_XDECREF(self->url);
	Py_XDECREF(self->token);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef server_methods[] = {
	{"stop", server_stop, METH_NOARGS, "stop()\n--\n\nEnds it and its threads; nothing the second time."},
	{0},
};

static PyMemberDef server_members[] = {
	{"url", T_OBJECT, offsetof(struct server_object, url), READONLY, "Where it is, with the token."},
	{"token", T_OBJECT, offsetof(struct server_object, token), READONLY, "Who has it may ask."},
	{"port", T_USHORT, offsetof(struct server_object, port), READONLY, "Where it listens."},
	{0},
};

static PyType_Slot server_slots[] = {
	{Py_tp_doc, "Server(paths, *, port=0, address=None, remote=False, frame_origin=None, watch=False, memory_bytes=0)\n--"
	            "\n\nAnswers about traces over HTTP, from now on."},
	{Py_tp_new, server_new},
	{Py_tp_dealloc, server_dealloc},
	{Py_tp_methods, server_methods},
	{Py_tp_members, server_members},
	{0, NULL},
};

static PyType_Spec server_spec = {
	.name = "opstrobe._serve.Server",
	.basicsize = sizeof(struct server_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = server_slots,
};

/* --- module --------------------------------------------------------------------------------------------------------- */

static PyObject *module_write_report(PyObject *module, PyObject *args)
{
	PyObject *trace, *path = NULL;
	struct ops_error error;
	enum ops_code code;

	(void)module;
	if (!PyArg_ParseTuple(args, "O&O&:write_report", PyUnicode_FSConverter, &trace, PyUnicode_FSConverter, &path))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	code = ops_report_write(PyBytes_AS_STRING(trace), PyBytes_AS_STRING(path), NULL, &error);
	Py_END_ALLOW_THREADS
	Py_DECREF(trace);
	Py_DECREF(path);
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
	{"write_report", module_write_report, METH_VARARGS,
	 "write_report(trace, path)\n--\n\nWrites one HTML file that shows a trace without a server."},
	{NULL, NULL, 0, NULL},
};

static int serve_add_type(PyObject *module, PyType_Spec *spec)
{
	PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	int failed = !type || PyModule_AddType(module, type) < 0;

	Py_XDECREF(type);
	return failed ? -1 : 0;
}

static int serve_module_exec(PyObject *module)
{
	return serve_add_type(module, &api_spec) || serve_add_type(module, &server_spec) ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, serve_module_exec},
	{0, NULL},
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "opstrobe._serve",
	.m_doc = "The server and the report. Use opstrobe.serve and opstrobe.show instead.",
	.m_methods = module_methods,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__serve(void)
{
	return PyModuleDef_Init(&module_def);
}
