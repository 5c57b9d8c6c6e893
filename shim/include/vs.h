/*
 * vs.h: annotations for programs that are checked by vsrun.
 *
 *   VS_toss(n)    a nondeterministic int in 0..n (both included).  Under vsrun a visible
 *                 operation, and every value is explored.
 *   VS_assert(e)  e must hold.  It is not switched off by NDEBUG.
 *
 *   VS_own(p, n)            from here on the calling thread alone uses the n bytes at p.
 *   VS_disown(p, n)         from here on nobody does, until some thread owns them.
 *   VS_hand_over(p, n, t)   from here on thread t (a pthread_t of this process) alone uses them;
 *                           t may be VS_ANYBODY: whoever uses or owns them next.
 *                 These are the exclusive access predicates of Stoller and Cohen.  They hold until
 *                 the memory is allocated anew, are checked and never trusted, and are nothing
 *                 without vsrun.  See docs/PREDICATES.md.
 *
 *   VS_progress()           the program has got on: output, an accepted connection, the beginning
 *                 and the end of a thread say so by themselves.  An execution that makes no
 *                 progress for long is cut (--max-idle).  Nothing without vsrun.
 *
 *   vs_check(test, arg)     a test of a test suite: test(arg) is explored by vsrun.  0: explored
 *                 completely, no bug; 1: a bug; 2: it could not be explored; 3: no bug, and not
 *                 everything was explored.  See below and docs/TESTING.md.
 *
 * Header only.  A program that uses it builds without vsrun and runs without it: then VS_toss
 * gives a pseudo-random value (repeatable when the environment variable VS_SEED holds a number)
 * and VS_assert prints a message and aborts.
 *
 * Under vsrun the preloaded library defines
 *     int  vsrun_toss(int n);
 *     void vsrun_assert_fail(const char *expr, const char *file, int line, const char *func);
 * Both are weak references here.  A plain weak reference would not do: in code that is not
 * position independent the linker resolves it to 0 for good, and what is preloaded at run time is
 * never looked at.  Hence on x86-64 the address is read from the global offset table, whose slot
 * the dynamic loader fills in with the preloaded definition, or with 0 if there is none.  That
 * holds with -pie, -no-pie and -static, with and without optimization.
 */
#ifndef VS_H
#define VS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* vs_check needs POSIX, which -std=c99 and the like hide; the rest of this file does not. */
#if defined(_POSIX_C_SOURCE) && _POSIX_C_SOURCE >= 200112L
#define VS_HAS_CHECK 1
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*vs_toss_fn)(int);
typedef void (*vs_assert_fn)(const char *, const char *, int, const char *);
typedef void (*vs_claim_fn)(volatile void *, size_t);
typedef void (*vs_hand_over_fn)(volatile void *, size_t, unsigned long);
typedef void (*vs_progress_fn)(void);

#if defined(__x86_64__) && defined(__ELF__)
/* Not volatile, no clobbers: the value never changes, so it may be moved or shared. */
#define VS_WEAK_ADDRESS(type, name)                                                             \
    __extension__({                                                                             \
        void *vs_address_;                                                                      \
        __asm__(".weak " #name "\n\tmovq " #name "@GOTPCREL(%%rip), %0" : "=r"(vs_address_));   \
        (type)vs_address_;                                                                      \
    })
#else
int vsrun_toss(int n) __attribute__((weak));
void vsrun_assert_fail(const char *expr, const char *file, int line, const char *func)
    __attribute__((weak));
void vsrun_own(volatile void *at, size_t size) __attribute__((weak));
void vsrun_disown(volatile void *at, size_t size) __attribute__((weak));
void vsrun_hand_over(volatile void *at, size_t size, unsigned long to) __attribute__((weak));
void vsrun_progress(void) __attribute__((weak));
#define VS_WEAK_ADDRESS(type, name) ((type)name)
#endif

/* Without vsrun: splitmix64 over a counter.  No state but the counter, so it is thread safe. */
static inline int vs_native_toss(int n)
{
    static uint64_t drawn;
    const char *text = getenv("VS_SEED");
    uint64_t z;
    if (n <= 0)
        return 0;
    z = text ? strtoull(text, (char **)0, 0)
             : ((uint64_t)time((time_t *)0) << 20) ^ (uint64_t)getpid();
    z += (__atomic_fetch_add(&drawn, 1, __ATOMIC_RELAXED) + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (int)(z % ((uint64_t)n + 1));
}

static inline int vs_toss(int n)
{
    vs_toss_fn toss = VS_WEAK_ADDRESS(vs_toss_fn, vsrun_toss);
    return toss ? toss(n) : vs_native_toss(n);
}

__attribute__((noreturn)) static inline void vs_assert_failed(const char *expr, const char *file,
                                                              int line, const char *func)
{
    vs_assert_fn fail = VS_WEAK_ADDRESS(vs_assert_fn, vsrun_assert_fail);
    if (fail)
        fail(expr, file, line, func);
    fprintf(stderr, "%s:%d: %s: VS_assert(%s) failed\n", file, line, func, expr);
    abort();
}

/* pthread_t is an unsigned long, and 0 is none. */
#define VS_ANYBODY 0ul

static inline void vs_own(volatile void *at, size_t size)
{
    vs_claim_fn own = VS_WEAK_ADDRESS(vs_claim_fn, vsrun_own);
    if (own)
        own(at, size);
}

static inline void vs_disown(volatile void *at, size_t size)
{
    vs_claim_fn disown = VS_WEAK_ADDRESS(vs_claim_fn, vsrun_disown);
    if (disown)
        disown(at, size);
}

static inline void vs_hand_over(volatile void *at, size_t size, unsigned long to)
{
    vs_hand_over_fn hand_over = VS_WEAK_ADDRESS(vs_hand_over_fn, vsrun_hand_over);
    if (hand_over)
        hand_over(at, size, to);
}

static inline void vs_progress(void)
{
    vs_progress_fn progress = VS_WEAK_ADDRESS(vs_progress_fn, vsrun_progress);
    if (progress)
        progress();
}

#ifdef VS_HAS_CHECK
/*
 * vs_check(test, arg) in an ordinary test program, with `void test(void *)`:
 *
 *   - There is vsrun (the file that the environment variable VSRUN names, else `vsrun` in PATH): the program is executed once
 *     more, by vsrun, with the same arguments.  There it runs up to this very call, whose test is run, in one interleaving after
 *     the other, and then the process exits: other calls of vs_check run nothing there.  So a test may use what was set up before it,
 *     and a program with many of them is best told by an argument which to run (ctest, gtest's filters do that).
 *   - There is none, or VSRUN is empty: the test runs natively, VS_CHECK_RUNS times (once).
 *   - The program was started by `vsrun ./program`: the test runs, as a part of that.
 *
 * A test fails by VS_assert, assert, abort, a fatal signal, a deadlock, whatever vsrun finds; natively the first three end the program.
 * vsrun's options are those of VS_CHECK_OPTIONS (separated by blanks), after those of vs_check_with; `--time 60` unless there is another
 * --time.  What came of it is a line on standard error; of a bug the report, with the scenario that replays it.
 *
 * 2 is also what one gets where the program did not come to this call again, in some execution: what ran then is not what was asked for.
 */
struct vs_result {
    int code;            /* what vs_check returns: 0 explored completely, 1 bug, 2 could not, 3 no bug so far */
    int native;          /* nothing was explored: the test ran natively */
    long executions;     /* executions explored */
    char scenario[1024]; /* of the bug; empty if there is none */
    char summary[512];   /* the line about it, or why it could not be explored */
};

/* One count for all of the program's files. */
__attribute__((weak)) int vs_checks_begun;
/* A test has been begun under vsrun: calls in it are parts of it. */
__attribute__((weak)) int vs_check_reached;

/* The exit status of an execution that came to its test and got through it. */
#define VS_CHECK_DONE 86
/* Names the call whose test is to be run. */
#define VS_CHECK_ID "VS_CHECK_ID"
/* What the program says where it does not get there. */
#define VS_CHECK_MISSED "vs_check is reached again"

/* The process that was started, not one that it has forked. */
__attribute__((weak)) int vs_check_process;

__attribute__((constructor, unused)) static void vs_check_begins(void)
{
    if (getenv(VS_CHECK_ID))
        vs_check_process = getpid();
}

/* It ends by itself without having come to its test. */
__attribute__((destructor, unused)) static void vs_check_missed(void)
{
    vs_assert_fn fail = VS_WEAK_ADDRESS(vs_assert_fn, vsrun_assert_fail);
    const char *id = getenv(VS_CHECK_ID);
    if (fail && id && !vs_check_reached && getpid() == vs_check_process)
        fail(VS_CHECK_MISSED, id, 0, "exit");
}

/* The member `name` of the JSON in `text`, from `from` on, is copied to `to` as text; false: it is not there. */
static inline int vs_json_member(const char *text, const char *name, char *to, size_t size)
{
    char key[64];
    size_t n = 0;
    const char *at;
    int quoted;
    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(text, key);
    to[0] = 0;
    if (!at)
        return 0;
    at += strlen(key);
    quoted = *at == '"';
    for (at += quoted; *at && n + 1 < size && (quoted ? *at != '"' : !strchr(",}]", *at)); at++) {
        if (quoted && *at == '\\' && at[1])
            at++;
        to[n++] = *at;
    }
    to[n] = 0;
    return quoted || strcmp(to, "null") != 0;
}

/* Whether every execution that ran to its end, as far as the JSON report tells them apart, got through its test. */
static inline int vs_check_all_done(const char *report)
{
    static const char status[] = "\"program_status\":";
    char done[32];
    int seen = 0;
    report = strstr(report, "\"outcomes\":{");
    if (!report)
        return 0;
    snprintf(done, sizeof done, "{\"exit\":%d}", VS_CHECK_DONE);
    for (; (report = strstr(report, status)); seen = 1) {
        report += sizeof status - 1;
        if (strncmp(report, done, strlen(done)) != 0)
            return 0;
    }
    return seen;
}

/* Splits `text` at blanks, in place. */
static inline int vs_words(char *text, char **words, int most)
{
    int n = 0;
    for (text = strtok(text, " \t\n"); text && n < most; text = strtok((char *)0, " \t\n"))
        words[n++] = text;
    return n;
}

extern char **environ;

/* Runs a program with standard output to `out` and one more variable in its environment; gives its exit status, 127 if there is none. */
static inline int vs_run(char **argv, const char *variable, int out)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = 0, failed;
    size_t n = 0;
    char **env;
    while (environ[n])
        n++;
    env = (char **)calloc(n + 2, sizeof *env);
    if (!env)
        return 127;
    memcpy(env + (variable != 0), environ, n * sizeof *env);
    if (variable)
        env[0] = (char *)variable;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    failed = posix_spawnp(&pid, argv[0], &files, (posix_spawnattr_t *)0, argv, env);
    posix_spawn_file_actions_destroy(&files);
    free(env);
    if (failed)
        return 127;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

/* All of a file, with a 0 at its end; the caller frees it. */
static inline char *vs_read_all(int fd, size_t *length)
{
    size_t size = 1 << 14;
    char *text = (char *)malloc(size);
    ssize_t n;
    for (*length = 0; text && (n = read(fd, text + *length, size - *length - 1)) > 0; *length += (size_t)n)
        if (*length + (size_t)n + 1 >= size) {
            char *more = (char *)realloc(text, size *= 2);
            if (!more)
                free(text);
            text = more;
        }
    if (text)
        text[*length] = 0;
    return text;
}

/* The test's part of an execution of vsrun: does not come back. */
static inline void vs_check_run(void (*test)(void *), void *arg)
{
    vs_check_reached = 1;
    test(arg);
    fflush((FILE *)0);
    _exit(VS_CHECK_DONE);
}

static inline int vs_check_explore(struct vs_result *result, const char *name, const char *id, const char *options)
{
    enum { MOST = 200 };
    char *argv[2 * MOST + 16], *report = 0, *arguments = 0, *at;
    char given[4096], variable[1280], program[4096], number[32];
    const char *vsrun = getenv("VSRUN"), *more = getenv("VS_CHECK_OPTIONS");
    size_t length;
    ssize_t got;
    int n = 0, out, code, fd;
    FILE *file = tmpfile();
    got = readlink("/proc/self/exe", program, sizeof program - 1);
    fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    arguments = fd >= 0 ? vs_read_all(fd, &length) : 0;
    if (fd >= 0)
        close(fd);
    n = snprintf(given, sizeof given, "%s %s", options ? options : "", more ? more : "");
    if (!file || got <= 0 || !arguments || n < 0 || (size_t)n >= sizeof given) {
        if (file)
            fclose(file);
        free(arguments);
        snprintf(result->summary, sizeof result->summary, "no temporary file, no /proc, or too many options");
        return result->code = 2;
    }
    program[got] = 0;
    n = 0;
    argv[n++] = (char *)(vsrun ? vsrun : "vsrun");
    if (!strstr(given, "--time")) {
        argv[n++] = (char *)"--time";
        argv[n++] = (char *)"60";
    }
    n += vs_words(given, argv + n, MOST);
    argv[n++] = (char *)"--format";
    argv[n++] = (char *)"json";
    argv[n++] = (char *)"--output";
    argv[n++] = (char *)"/dev/null";
    argv[n++] = (char *)"--";
    argv[n++] = program;
    for (at = arguments + strlen(arguments) + 1; at < arguments + length && n < 2 * MOST; at += strlen(at) + 1)
        argv[n++] = at;
    if (at < arguments + length)
        argv[0] = (char *)""; /* Fewer arguments would be another program: there is no such file. */
    argv[n] = 0;
    snprintf(variable, sizeof variable, "%s=%s", VS_CHECK_ID, id);
    fflush((FILE *)0);
    out = fileno(file);
    code = vs_run(argv, variable, out);
    if (code != 127 && lseek(out, 0, SEEK_SET) == 0)
        report = vs_read_all(out, &length);
    fclose(file);
    free(arguments);
    result->code = code >= 0 && code <= 3 ? code : 2;
    if (!report || !*report) {
        snprintf(result->summary, sizeof result->summary, "%s gave no report", argv[0]);
        free(report);
        return result->code = 2;
    }
    if (vs_json_member(report, "executions", number, sizeof number))
        result->executions = strtol(number, (char **)0, 10);
    if (code == 1 || code == 2 || code == 4)
        vs_json_member(report, "summary", result->summary, sizeof result->summary);
    if (code == 1)
        vs_json_member(report, "scenario", result->scenario, sizeof result->scenario);
    if (code == 1 && strstr(result->summary, VS_CHECK_MISSED))
        result->code = 2;
    if ((code == 0 || code == 3) && result->executions > 0 && !vs_check_all_done(report))
        result->code = 2;
    if (code == 3 && result->executions == 0)
        result->code = 2;
    if (result->code == 2 && (code == 0 || code == 1 || code == 3)) {
        result->scenario[0] = 0;
        snprintf(result->summary, sizeof result->summary,
                 "run again by vsrun, the program did not come through this call in every execution");
    }
    free(report);
    if (result->code == 1 && result->scenario[0]) {
        char *again[] = {argv[0], (char *)"replay", result->scenario, 0};
        vs_run(again, (const char *)0, 2);
    }
    (void)name;
    return result->code;
}

static inline int vs_has_vsrun(void)
{
    const char *vsrun = getenv("VSRUN"), *path = getenv("PATH");
    char file[4096];
    size_t n;
    if (vsrun)
        return *vsrun != 0;
    for (; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        if (n && n + sizeof "/vsrun" < sizeof file) {
            memcpy(file, path, n);
            strcpy(file + n, "/vsrun");
            if (access(file, X_OK) == 0)
                return 1;
        }
    }
    return 0;
}

/* `result` may be 0. */
static inline int vs_check_at(const char *name, const char *file, int line, void (*test)(void *), void *arg,
                              const char *options, struct vs_result *result)
{
    static const char *const words[] = {"explored completely", "BUG", "could not be explored", "no bug, not explored completely"};
    struct vs_result own;
    char id[1200];
    const char *wanted = getenv(VS_CHECK_ID), *runs = getenv("VS_CHECK_RUNS");
    int begun = __atomic_add_fetch(&vs_checks_begun, 1, __ATOMIC_RELAXED);
    long left;
    if (!result)
        result = &own;
    memset(result, 0, sizeof *result);
    snprintf(id, sizeof id, "%d:%s:%d:%s", begun, file, line, name);
    if (VS_WEAK_ADDRESS(vs_toss_fn, vsrun_toss)) {
        if (wanted && !vs_check_reached) {
            if (strcmp(wanted, id) == 0)
                vs_check_run(test, arg);
            return 0;
        }
        result->native = 1;
        test(arg);
        return 0;
    }
    if (!vs_has_vsrun()) {
        result->native = 1;
        for (left = runs ? strtol(runs, (char **)0, 10) : 1; left > 0; left--)
            test(arg);
        return 0;
    }
    vs_check_explore(result, name, id, options);
    fprintf(stderr, "vs_check(%s) %s:%d: %s, executions: %ld%s%s%s%s\n", name, file, line, words[result->code], result->executions,
            result->summary[0] ? ": " : "", result->summary, result->scenario[0] ? "; scenario: " : "", result->scenario);
    return result->code;
}

#define vs_check(test, arg) vs_check_at(#test, __FILE__, __LINE__, test, arg, (const char *)0, (struct vs_result *)0)
/* With options for vsrun, and a place for what came of it (or 0). */
#define vs_check_with(options, test, arg, result) vs_check_at(#test, __FILE__, __LINE__, test, arg, options, result)
#endif

#define VS_own(p, n) vs_own((volatile void *)(p), n)
#define VS_disown(p, n) vs_disown((volatile void *)(p), n)
#define VS_hand_over(p, n, to) vs_hand_over((volatile void *)(p), n, (unsigned long)(to))
#define VS_progress() vs_progress()
#define VS_toss(n) vs_toss(n)
#define VS_assert(e) ((e) ? (void)0 : vs_assert_failed(#e, __FILE__, __LINE__, __func__))

#ifdef __cplusplus
}
#endif

#endif
