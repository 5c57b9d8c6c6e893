/* A program that says when it is ready, and a client that may not come before. By the first argument: `create`, `rename`, `link`, `mkdir`, `mknod`, `bind`,
 * `symlink`: the file `ready` comes so, after the name `use` has been made; `gone`: it is made and taken away at once; `never`; `print`: "ready" is
 * printed in pieces, by a process of its own, to both streams; `buffered`: by two threads, through a stream; `order`: two threads print, and only one of the orders
 * comes to the text; `dir`: the file comes with the name of its directory. `client`: aborts unless `use` is there. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(const char *name)
{
    int file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0)
        abort();
    close(file);
}

static void say(int to, const char *text)
{
    if (write(to, text, strlen(text)) < 0)
        abort();
}

static void *first(void *arg)
{
    say(1, arg);
    return NULL;
}

static void *puts_it(void *arg)
{
    fputs(arg, stdout);
    return NULL;
}

static void both(void *(*body)(void *), const char *one, const char *two)
{
    pthread_t thread;
    pthread_create(&thread, NULL, body, (void *)one);
    body((void *)two);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    struct sockaddr_un name = {AF_UNIX, "ready"};
    int s;
    if (strcmp(how, "client") == 0) {
        if (access("use", F_OK) != 0)
            abort();
        return 0;
    }
    make("use");
    if (strcmp(how, "create") == 0)
        make("ready");
    if (strcmp(how, "rename") == 0) {
        make("other");
        if (rename("other", "ready") != 0)
            abort();
    }
    if (strcmp(how, "link") == 0 && link("use", "ready") != 0)
        abort();
    if (strcmp(how, "symlink") == 0 && symlink("nowhere", "ready") != 0)
        abort();
    if (strcmp(how, "mkdir") == 0 && mkdir("ready", 0700) != 0)
        abort();
    if (strcmp(how, "mknod") == 0 && mknod("ready", S_IFREG | 0600, 0) != 0)
        abort();
    if (strcmp(how, "dir") == 0) {
        if (mkdir("later", 0700) != 0)
            abort();
        make("later/ready");
        if (rename("later", "now") != 0)
            abort();
    }
    if (strcmp(how, "bind") == 0) {
        s = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(s, (struct sockaddr *)&name, sizeof name) != 0)
            abort();
    }
    if (strcmp(how, "gone") == 0) {
        make("ready");
        unlink("ready");
    }
    if (strcmp(how, "print") == 0) {
        say(1, "reareare");
        if (fork() == 0) {
            say(2, "ad");
            _exit(0);
        }
        wait(NULL);
        say(1, "y\n");
    }
    if (strcmp(how, "buffered") == 0) {
        both(puts_it, "rea", "dy");
        fflush(stdout);
    }
    if (strcmp(how, "order") == 0)
        both(first, "rea", "dy");
    return 0;
}
