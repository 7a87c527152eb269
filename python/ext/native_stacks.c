/* SPDX-License-Identifier: Apache-2.0
 *
 * A program: writes the native stacks of all threads of a process as JSON, for reports of incidents.
 *
 *     native-stacks PID   ─▶   [{"tid": 7, "frames": [{"function": "spin", "file": "/src/spin.c", "line": 12, "library": "spin.so"}, …]}, …]
 *
 * It is a separate process, because no thread can stop another one of its process, and because the process it reads may be broken in
 * any way. It waits for a byte or the end of its input, until its parent has permitted it to read the parent. Frames are found and
 * named by libdw of elfutils, which is loaded at run time. Without it, or if the kernel forbids reading the process, it writes nothing.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libdw.so.1"
#define FRAMES_MAX 64
#define THREADS_MAX 64
#define TEXT_MAX 400
#define SECONDS_MAX 20

/* The part of libdwfl's interface that is used, as of elfutils 0.158 and later; its handles are opaque. */
struct dwfl_callbacks {
	void (*find_elf)(void);
	void (*find_debuginfo)(void);
	void (*section_address)(void);
	char **debuginfo_path;
};

#define DWFL_FUNCTIONS(X)                                                                                               \
	X(void *, begin, (const struct dwfl_callbacks *))                                                               \
	X(int, linux_proc_report, (void *dwfl, pid_t))                                                                  \
	X(int, report_end, (void *dwfl, void *removed, void *argument))                                                 \
	X(int, linux_proc_attach, (void *dwfl, pid_t, bool stopped))                                                    \
	X(int, getthreads, (void *dwfl, int (*each)(void *thread, void *argument), void *argument))                     \
	X(pid_t, thread_tid, (void *thread))                                                                            \
	X(int, thread_getframes, (void *thread, int (*each)(void *frame, void *argument), void *argument))              \
	X(bool, frame_pc, (void *frame, uint64_t *ret_address, bool *ret_exact))                                        \
	X(void *, addrmodule, (void *dwfl, uint64_t address))                                                           \
	X(const char *, module_addrname, (void *module, uint64_t address))                                              \
	X(void *, module_getsrc, (void *module, uint64_t address))                                                      \
	X(const char *, module_info, (void *module, void ***, uint64_t *, uint64_t *, uint64_t *, uint64_t *, const char **, const char **)) \
	X(const char *, lineinfo, (void *line, uint64_t *, int *ret_line, int *, void *, void *))

static struct {
#define DWFL_MEMBER(type, name, parameters) type(*name) parameters;
	DWFL_FUNCTIONS(DWFL_MEMBER)
#undef DWFL_MEMBER
} dwfl;

static void *library;

/* Converts the address of a symbol to a pointer to a function. */
static bool stacks_find(const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool stacks_load(struct dwfl_callbacks *ret_callbacks)
{
	bool found;

	library = dlopen(LIBRARY, RTLD_NOW);
	if (!library)
		return false;
	found = stacks_find("dwfl_linux_proc_find_elf", &ret_callbacks->find_elf) &&
		stacks_find("dwfl_standard_find_debuginfo", &ret_callbacks->find_debuginfo);
#define DWFL_FIND(type, name, parameters) found = found && stacks_find("dwfl_" #name, &dwfl.name);
	DWFL_FUNCTIONS(DWFL_FIND)
#undef DWFL_FIND
	return found;
}

/* --- frames ------------------------------------------------------------------------------------------------------------ */

/* Writes a member with a string. Bytes that are not printable ASCII become '?'. */
static void stacks_write_text(const char *key, const char *text)
{
	printf("\"%s\":\"", key);
	for (size_t i = 0; text && text[i] && i < TEXT_MAX; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '"' || byte == '\\')
			putchar('\\');
		putchar(byte < ' ' || byte > '~' ? '?' : byte);
	}
	putchar('"');
}

struct stacks_walk {
	void *session;
	int threads, frames;
};

static const char *stacks_base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Returns the name of a function of C++ as in its source, for free(); NULL: not such a name, or no C++ library. */
static char *stacks_demangle(const char *name)
{
	static char *(*demangle)(const char *name, char *buffer, size_t *size, int *ret_status);
	static bool is_tried;
	void *cpp = is_tried ? NULL : dlopen("libstdc++.so.6", RTLD_NOW), *symbol = cpp ? dlsym(cpp, "__cxa_demangle") : NULL;
	int status;

	is_tried = true;
	if (symbol)
		memcpy(&demangle, &symbol, sizeof(symbol));
	return demangle && name && strncmp(name, "_Z", 2) == 0 ? demangle(name, NULL, NULL, &status) : NULL;
}

static int stacks_write_frame(void *frame, void *argument)
{
	struct stacks_walk *walk = argument;
	const char *file = NULL, *name;
	char *demangled;
	uint64_t address;
	bool exact = false;
	void *module, *source;
	int line = 0;

	if (!dwfl.frame_pc(frame, &address, &exact) || walk->frames == FRAMES_MAX)
		return 1;
	if (!exact)
		address--; /* of the call, not of the instruction after it */
	module = dwfl.addrmodule(walk->session, address);
	source = module ? dwfl.module_getsrc(module, address) : NULL;
	if (source)
		file = dwfl.lineinfo(source, NULL, &line, NULL, NULL, NULL);
	printf("%s{", walk->frames++ ? "," : "");
	name = module ? dwfl.module_addrname(module, address) : NULL;
	demangled = stacks_demangle(name);
	stacks_write_text("function", demangled ? demangled : name);
	free(demangled);
	putchar(',');
	stacks_write_text("file", file);
	printf(",\"line\":%d,", line > 0 ? line : 0);
	stacks_write_text("library",
			  module ? stacks_base_name(dwfl.module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL)) : NULL);
	putchar('}');
	return 0;
}

static int stacks_write_thread(void *thread, void *argument)
{
	struct stacks_walk *walk = argument;

	if (walk->threads == THREADS_MAX)
		return 1;
	printf("%s{\"tid\":%d,\"frames\":[", walk->threads++ ? "," : "", (int)dwfl.thread_tid(thread));
	walk->frames = 0;
	dwfl.thread_getframes(thread, stacks_write_frame, walk);
	fputs("]}", stdout);
	return 0;
}

int main(int count, char **words)
{
	static char *no_path = NULL;
	struct dwfl_callbacks callbacks = {.debuginfo_path = &no_path};
	long pid = count == 2 ? strtol(words[1], NULL, 10) : 0;
	struct stacks_walk walk = {0};
	char permission;

	if (pid <= 0) {
		fputs("usage: native-stacks PID\n", stderr);
		return 2;
	}
	alarm(SECONDS_MAX);
	unsetenv("DEBUGINFOD_URLS"); /* debugging information is not fetched from servers */
	if (!stacks_load(&callbacks) || read(STDIN_FILENO, &permission, 1) < 0)
		return 1;
	walk.session = dwfl.begin(&callbacks);
	if (!walk.session || dwfl.linux_proc_report(walk.session, (pid_t)pid) || dwfl.report_end(walk.session, NULL, NULL) ||
	    dwfl.linux_proc_attach(walk.session, (pid_t)pid, false))
		return 1;
	putchar('[');
	dwfl.getthreads(walk.session, stacks_write_thread, &walk);
	puts("]");
	return walk.threads ? 0 : 1;
}
