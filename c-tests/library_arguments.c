// Functions of libc that are called with what is no argument of theirs in the registers of further arguments: nothing there is looked at.
#define _GNU_SOURCE
#include <assert.h>
#include <libintl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

typedef char *(*with_more)(const char *, long, long);

static void *run(void *argument) {
    // No address of anything.
    long nothing = 0x44aadf40;
    with_more looks = (with_more)(void *)gettext, sets = (with_more)(void *)textdomain;
    assert(!strcmp(looks(argument, nothing, nothing), argument));
    assert(!strcmp(sets(NULL, nothing, nothing), "messages"));
    psignal(SIGUSR1, argument);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, "the first");
    pthread_join(thread, NULL);
    run("the second");
    return 0;
}
