/* What functions of libc do to memory of their caller's: one thread uses memory by a function, another one by instructions of its own,
   and nothing orders them. Either of them may come first: with "met" it is a failure that one has met what the other has done, with
   "missed" that it has not. With "fixed" a lock orders them, and there is no failure. */
#define _GNU_SOURCE
#include <assert.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <regex.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <arpa/inet.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *what;
static int fixed, met;
static char text[64] = "1 old";
static char other[8] __attribute__((aligned(8))) = "o";
static int number;
static int many[4] = {4, 3, 2, 1};
static void *pointer;
static time_t when;
static struct tm moment;
static sem_t sem;
static FILE *file;
static pthread_key_t key;

static int is(const char *name) { return strcmp(what, name) == 0; }
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

__attribute__((noinline, format(printf, 1, 2))) static void prints(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
}

/* By a function of libc. Gives whether it has met what the other thread has done. */
static int by_libc(void) {
    char own[64];
    if (is("snprintf"))
        snprintf(text, sizeof text, "%s %d %.1f", "new", 1, 2.5);
    if (is("sprintf"))
        sprintf(text, "%s", "new");
    if (is("vsnprintf"))
        prints("%*d %s", 3, 4, "new");
    if (is("asprintf")) {
        char *made = NULL;
        int n = asprintf(&made, "%d%d%d%d%d%d%f%s", 1, 2, 3, 4, 5, 6, 1.0, text);
        n = n > 0 && strstr(made, "new") != NULL;
        free(made);
        return n;
    }
    if (is("print-text")) {
        snprintf(own, sizeof own, "%d %f %Lf %s", 1, 1.0, 2.0L, text);
        return strstr(own, "new") != NULL;
    }
    if (is("precision")) {
        snprintf(own, sizeof own, "%.*s", 1, text);
        return own[0] == 'n';
    }
    if (is("print-two")) {
        snprintf(own, sizeof own, "%.1s%.1s", text, other);
        return own[0] == '1' && own[1] == 'n';
    }
    if (is("print-count"))
        snprintf(own, sizeof own, "%s%n", "new", &number);
    if (is("sscanf")) {
        assert(sscanf("7 new", "%d %63s", &number, text) == 2);
        assert(strcmp(text, "new") == 0);
    }
    if (is("scan-text"))
        return sscanf(text, "%*d %s", own) == 1 && own[0] == 'n';
    if (is("strtol"))
        return strtol(text, NULL, 10) == 2;
    if (is("strtol-end"))
        strtol("12x", (char **)&pointer, 10);
    if (is("strdup")) {
        char *copy = strdup(text);
        int n = copy[0] == 'n';
        free(copy);
        return n;
    }
    if (is("strcspn"))
        return strcspn(text, "n") == 0;
    if (is("qsort"))
        qsort(many, 4, sizeof many[0], less);
    if (is("fgets"))
        fgets(text, sizeof text, file);
    if (is("fread"))
        fread(text, 1, 3, file);
    if (is("getline")) {
        size_t n = 0;
        getline((char **)&pointer, &n, file);
    }
    if (is("fwrite") || is("fputs")) {
        is("fwrite") ? (int)fwrite(text, 1, 3, file) : fputs(text, file);
        rewind(file);
        return fgetc(file) == 'n';
    }
    if (is("localtime_r")) {
        time_t t = 86400 * 400;
        gmtime_r(&t, &moment);
    }
    if (is("time"))
        time(&when);
    if (is("sem_getvalue"))
        sem_getvalue(&sem, &number);
    if (is("key"))
        return pthread_key_create(&key, NULL) == 0 && key == 1;
    if (is("getenv"))
        return getenv("VS_LIBRARY") != NULL;
    if (is("strtok")) {
        snprintf(own, sizeof own, "x,y");
        strtok(own, ",");
        char *next = strtok(NULL, ",");
        return next == NULL || *next != 'y';
    }
    if (is("strtok_r")) {
        char *state = NULL;
        return strcmp(strtok_r(text, " ", &state), "n") == 0;
    }
    if (is("inet_pton"))
        inet_pton(AF_INET, "1.2.3.4", &number);
    if (is("sigaddset"))
        sigaddset((sigset_t *)&pointer, SIGHUP);
    if (is("unknown"))
        regcomp((regex_t *)&(regex_t){0}, text, 0);
    return 0;
}

/* By instructions. */
static int by_itself(void) {
    static const char *const texts_written[] = {"asprintf", "print-text", "precision", "scan-text", "strdup", "strcspn", "fwrite", "fputs"};
    for (unsigned n = 0; n < sizeof texts_written / sizeof texts_written[0]; n++)
        if (is(texts_written[n])) {
            text[0] = 'n';
            if (!is("scan-text") && !is("precision"))
                text[1] = 'e', text[2] = 'w';
            if (is("scan-text"))
                text[0] = '1', text[2] = 'n';
            return 0;
        }
    if (is("strtol"))
        text[0] = '2';
    if (is("print-two"))
        text[0] = 'n', other[0] = 'n';
    if (is("strtok_r"))
        text[0] = 'n';
    if (is("snprintf") || is("sprintf") || is("fgets") || is("fread"))
        return text[0] == 'n';
    if (is("vsnprintf"))
        return text[4] == 'n';
    if (is("print-count"))
        return number == 3;
    if (is("sscanf"))
        return number == 7;
    if (is("strtol-end") || is("sigaddset") || is("getline"))
        return pointer != NULL;
    if (is("qsort"))
        return many[0] == 1;
    if (is("localtime_r"))
        return moment.tm_year == 71;
    if (is("time"))
        return when != 0;
    if (is("sem_getvalue"))
        return number == 5;
    if (is("key")) {
        pthread_key_t other;
        pthread_key_create(&other, NULL);
    }
    if (is("getenv"))
        setenv("VS_LIBRARY", "1", 1);
    if (is("strtok")) {
        char own[] = "a b";
        strtok(own, " ");
    }
    if (is("inet_pton"))
        return number != 0;
    return 0;
}

static void *first(void *unused) {
    if (fixed)
        pthread_mutex_lock(&lock);
    met |= by_libc();
    if (fixed)
        pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    assert(argc > 2);
    what = argv[1];
    fixed = strcmp(argv[2], "fixed") == 0;
    sem_init(&sem, 0, 5);
    if (is("fgets") || is("fread") || is("getline") || is("fwrite") || is("fputs"))
        file = tmpfile();
    if (is("fgets") || is("fread") || is("getline")) {
        fputs("new\n", file);
        rewind(file);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, first, NULL);
    if (fixed)
        pthread_mutex_lock(&lock);
    int meets = by_itself();
    if (fixed)
        pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    met |= meets;
    assert(fixed || (strcmp(argv[2], "met") == 0 ? !met : met));
    return 0;
}
