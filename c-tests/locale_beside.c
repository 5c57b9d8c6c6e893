/* The locale, and what syslog is told by openlog, are changed beside a thread that goes by them: that is said, and nothing is called complete. */
#include "t.h"
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <syslog.h>

static const char *what;

static void *changes(void *arg)
{
    if (!strcmp(what, "locale"))
        MUST(!setlocale(LC_ALL, "C.UTF-8"));
    if (!strcmp(what, "asked"))
        MUST(!setlocale(LC_ALL, NULL));
    if (!strcmp(what, "log"))
        openlog("other", LOG_PID, LOG_DAEMON);
    return arg;
}

int main(int argc, char **argv)
{
    MUST(argc != 2);
    what = argv[1];
    pthread_t t = go(changes, NULL);
    int changed = !strcmp(nl_langinfo(CODESET), "UTF-8");
    join(t);
    printf("%d\n", changed);
    return 0;
}
